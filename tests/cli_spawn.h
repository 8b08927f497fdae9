/* cli_spawn: runs the built command and keeps what it said. */
#ifndef IPU_TESTS_CLI_SPAWN_H
#define IPU_TESTS_CLI_SPAWN_H

#include <glib.h>
#include <glib/gstdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct cli_said {
    int status;
    char *out, *err;
};

static inline void cli_limit_files(gpointer bytes) {
    const struct rlimit limit = {*(const rlim_t *)bytes, *(const rlim_t *)bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* `line` is split at blanks. file_bytes: largest file the command may write; 0 = any. */
static inline struct cli_said cli_run_limited(const char *line, rlim_t file_bytes) {
    const char *exe = g_getenv("IPU_STACK");
    g_assert_nonnull(exe);
    char *all = g_strdup_printf("%s %s", exe, line);
    char **argv = NULL;
    GError *error = NULL;
    struct cli_said said = {0};
    int wait;
    g_assert_true(g_shell_parse_argv(all, NULL, &argv, &error));
    g_spawn_sync(NULL, argv, NULL, G_SPAWN_DEFAULT, file_bytes != 0 ? cli_limit_files : NULL,
                 &file_bytes, &said.out, &said.err, &wait, &error);
    g_assert_no_error(error);
    said.status = WIFEXITED(wait) ? WEXITSTATUS(wait) : -1;
    g_strfreev(argv);
    g_free(all);
    return said;
}

static inline struct cli_said cli_run(const char *line) {
    return cli_run_limited(line, 0);
}

static inline void cli_said_clear(struct cli_said *s) {
    g_free(s->out);
    g_free(s->err);
}

/* Runs and requires the status and a part of what was said on stderr. */
static inline void cli_expect(const char *line, int status, const char *part) {
    struct cli_said s = cli_run(line);
    if (s.status != status || strstr(s.err, part) == NULL)
        g_error("%s\nstatus %d (expected %d), expected '%s' in:\n%s", line, s.status, status, part,
                s.err);
    cli_said_clear(&s);
}

/* The number behind "key": in a one-line report; g_error when it is not there. */
static inline double cli_number(const char *json, const char *key) {
    char *quoted = g_strdup_printf("\"%s\":", key);
    const char *at = strstr(json, quoted);
    if (at == NULL) g_error("no %s in %s", quoted, json);
    const double v = g_ascii_strtod(at + strlen(quoted), NULL);
    g_free(quoted);
    return v;
}

static inline char *cli_temp_dir(void) {
    GError *error = NULL;
    char *dir = g_dir_make_tmp("ipu-stack-XXXXXX", &error);
    g_assert_no_error(error);
    return dir;
}

/* Removes the files of a folder, then the folder. */
static inline void cli_temp_remove(char *dir) {
    GDir *d = g_dir_open(dir, 0, NULL);
    for (const char *name; d != NULL && (name = g_dir_read_name(d)) != NULL;) {
        char *path = g_build_filename(dir, name, NULL);
        g_unlink(path);
        g_free(path);
    }
    if (d != NULL) g_dir_close(d);
    g_rmdir(dir);
    g_free(dir);
}

#endif
