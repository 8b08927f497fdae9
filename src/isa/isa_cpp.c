/* The C preprocessor, run as a program: sources of kernels use its macros. Line markers stay in, so
 * that messages and line tables name the source. */
#include "isa/isa_asm.h"

#include <stdio.h>
#include <string.h>

static GPtrArray *command(const char *path, const char *const *flags) {
    static const char *const defaults[] = {
        "-x",          "assembler-with-cpp",        "-undef",
        "-D__IPU__=1", "-D__IPU_ARCH_VERSION__=21", "-D__ASSEMBLER__=1"};
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);
    const char *cpp = g_getenv("CPP");
    char **words = g_strsplit(cpp != NULL && *cpp != 0 ? cpp : "cc -E", " ", 0);
    for (char **w = words; *w != NULL; w++)
        if (**w != 0) g_ptr_array_add(argv, g_strdup(*w));
    g_strfreev(words);
    for (size_t i = 0; i < ARRAY_LEN(defaults); i++) g_ptr_array_add(argv, g_strdup(defaults[i]));
    for (; flags != NULL && *flags != NULL; flags++) g_ptr_array_add(argv, g_strdup(*flags));
    g_ptr_array_add(argv, g_strdup(path));
    g_ptr_array_add(argv, NULL);
    return argv;
}

bool isa_preprocess(const char *path, const char *const *flags, char **ret_text, size_t *ret_size,
                    GError **error) {
    GPtrArray *argv = command(path, flags);
    char *text = NULL, *log = NULL;
    int status = 0;
    GError *problem = NULL;
    const bool ran = g_spawn_sync(NULL, (char **)argv->pdata, NULL,
                                  G_SPAWN_SEARCH_PATH | G_SPAWN_CHILD_INHERITS_STDIN, NULL, NULL,
                                  &text, &log, &status, &problem);
    g_ptr_array_free(argv, true);
    const bool ok = ran && g_spawn_check_wait_status(status, NULL);
    if (!ok) {
        diag_set(error, ISA_CPP, path, ran ? g_strstrip(log) : problem->message);
        g_free(text);
    } else {
        *ret_size = strlen(text);
        *ret_text = text;
        fputs(log, stderr); /* its warnings */
    }
    g_clear_error(&problem);
    g_free(log);
    return ok;
}
