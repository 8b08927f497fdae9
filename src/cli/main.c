/* The ipu-stack command: finds the verb in cmd.def and calls it. */
#include "cli/cli.h"

#include "isa/isa_form.h"

#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cmd {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
};

static const struct cmd cmds[] = {
#define CMD(name, function, summary) {name, function, summary},
#include "cli/cmd.def"
#undef CMD
};

static void print_verbs(FILE *f) {
    fprintf(f, "usage: ipu-stack VERB [OPTION...]\n\nVerbs (each has --help):\n");
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
        fprintf(f, "  %-24s %s\n", cmds[i].name, cmds[i].summary);
}

int cli_fail(const char *verb, GError *error) {
    fprintf(stderr, "ipu-stack %s: %s", verb, error->message);
    if (error->domain == diag_quark()) fprintf(stderr, " (E%d)", error->code);
    fputc('\n', stderr);
    g_error_free(error);
    return CLI_WRONG_INPUT;
}

bool cli_number_check(const char *option, gint64 v, gint64 least, gint64 most, GError **error) {
    if (v >= least && v <= most) return true;
    diag_set(error, CLI_NUMBER, option, (gint64)v, least, most);
    return false;
}

bool cli_threads_set(gint threads, GError **error) {
    if (!cli_number_check("--threads", threads, 0, CLI_MAX_THREADS, error)) return false;
    par_set_threads((uint32_t)threads);
    return true;
}

/* Strings of options live as long as the command: they stay reachable here, so that a verb may
 * return from anywhere without freeing them (and may free them). */
static void keep_strings(const GOptionEntry *entries) {
    static GPtrArray *kept;
    if (kept == NULL) kept = g_ptr_array_new();
    for (const GOptionEntry *e = entries; e->long_name != NULL; e++)
        if (e->arg == G_OPTION_ARG_STRING || e->arg == G_OPTION_ARG_FILENAME ||
            e->arg == G_OPTION_ARG_STRING_ARRAY || e->arg == G_OPTION_ARG_FILENAME_ARRAY)
            g_ptr_array_add(kept, *(void **)e->arg_data);
}

/* "; did you mean '--workers'?" for an option that does not exist, or ""; g_free'd. */
static char *suggest_option(const GError *error, const GOptionEntry *entries) {
    const char *given = strstr(error->message, "--");
    if (!g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION) || given == NULL)
        return g_strdup("");
    char *name = g_strndup(given, strcspn(given, "="));
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (const GOptionEntry *e = entries; e->long_name != NULL; e++)
        g_ptr_array_add(names, g_strdup_printf("--%s", e->long_name));
    char *hint = isa_suggest(name, (const char *const *)names->pdata, names->len);
    g_ptr_array_free(names, true);
    g_free(name);
    return hint;
}

static void refuse_option(const char *verb, GError *error, const GOptionEntry *entries) {
    GError *said = NULL;
    char *hint = suggest_option(error, entries);
    diag_set(&said, CLI_OPTION, error->message, verb, hint);
    cli_fail(verb, said);
    g_free(hint);
    g_error_free(error);
}

static int refuse_verb(const char *verb) {
    const char *names[ARRAY_LEN(cmds)];
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++) names[i] = cmds[i].name;
    char *hint = isa_suggest(verb, names, ARRAY_LEN(names));
    GError *error = NULL;
    diag_set(&error, CLI_VERB, verb, hint);
    fprintf(stderr, "ipu-stack: %s (E%d)\n", error->message, error->code);
    g_error_free(error);
    g_free(hint);
    return CLI_WRONG_INPUT;
}

/* -DNAME, -Werror=pad, -w1: values written behind the letter, as compilers take them. */
static void split_letters(int argc, char **argv, const GOptionEntry *entries) {
    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        for (const GOptionEntry *e = entries; e->long_name != NULL; e++) {
            if (e->short_name == 0 || e->arg == G_OPTION_ARG_NONE) continue;
            if (argv[i][0] != '-' || argv[i][1] != e->short_name || argv[i][2] == 0) continue;
            char *text = g_strdup_printf("--%s=%s", e->long_name, argv[i] + 2);
            argv[i] = (char *)(uintptr_t)g_intern_string(text);
            g_free(text);
            break;
        }
}

bool cli_options(int *argc, char ***argv, const GOptionEntry *entries, const char *usage,
                 const char *help, bool *ret_done) {
    const char *verb = (*argv)[0];
    *ret_done = false;
    char *name = g_strdup_printf("ipu-stack %s", verb);
    g_set_prgname(name);
    g_free(name);
    GOptionContext *context = g_option_context_new(usage);
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_help_enabled(context, false);
    if (help != NULL) g_option_context_set_description(context, help);
    gboolean want_help = false;
    const GOptionEntry help_entry[] = {
        {"help", 'h', 0, G_OPTION_ARG_NONE, &want_help, "Show this help", NULL}, {0}};
    g_option_context_add_main_entries(context, help_entry, NULL);
    split_letters(*argc, *argv, entries);
    GError *error = NULL;
    const bool ok = g_option_context_parse(context, argc, argv, &error);
    keep_strings(entries);
    if (!ok) {
        refuse_option(verb, error, entries);
    } else if (want_help) {
        char *text = g_option_context_get_help(context, true, NULL);
        fputs(text, stdout);
        g_free(text);
        *ret_done = true;
    }
    g_option_context_free(context);
    return ok;
}

/* Idle threads sleep instead of spinning, which would slow everything else on the machine. The
 * OpenMP library reads its policy when it is loaded, so one of our own takes a second start; a policy
 * in the environment stays. */
static void let_idle_threads_sleep(char **argv) {
    if (getenv("OMP_WAIT_POLICY") != NULL || setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
    char *self = g_file_read_link("/proc/self/exe", NULL);
    if (self != NULL) execv(self, argv); /* returns only when it fails: then they spin */
    g_free(self);
}

/* A report that could not be written is no success. */
static int finish(int status) {
    errno = 0;
    const bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed) return status;
    fprintf(stderr, "ipu-stack: standard output cannot be written: %s\n",
            errno != 0 ? g_strerror(errno) : "an earlier write failed");
    return status == CLI_OK ? CLI_WRONG_INPUT : status;
}

int main(int argc, char **argv) {
    let_idle_threads_sleep(argv);
    setlocale(LC_ALL, "C");
    signal(SIGXFSZ, SIG_IGN); /* a write beyond a file-size limit is an error, not the end */
    if (argc < 2) {
        print_verbs(stderr);
        return CLI_WRONG_INPUT;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_verbs(stdout);
        return finish(CLI_OK);
    }
    for (size_t i = 0; i < ARRAY_LEN(cmds); i++)
        if (strcmp(argv[1], cmds[i].name) == 0)
            return finish(cmds[i].run(argc - 1, argv + 1));
    return refuse_verb(argv[1]);
}
