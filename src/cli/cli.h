/* cli: the ipu-stack command. One file cmd_VERB.c per verb; cmd.def lists them all.
 *
 * A verb gets argc and argv from its own name on, parses them with GOptionContext (cli_options) and
 * returns an exit status. Reports go to stdout (with --json: one JSON object and nothing else),
 * logs and errors to stderr. Only main.c exits.
 */
#ifndef IPU_CLI_H
#define IPU_CLI_H

#include "base/base.h"

enum cli_status {
    CLI_OK = 0,
    CLI_CHECK_FAILED = 1, /* ran, but a comparison or test did not pass */
    CLI_WRONG_INPUT = 2,
    CLI_INFEASIBLE = 3,
    CLI_DEVICE_FAULT = 4,
};

#define CMD(name, function, summary) int function(int argc, char **argv);
#include "cli/cmd.def"
#undef CMD

/* Parses options with GLib; --help prints the verb's help and sets *ret_done. Returns false after
 * printing one line to stderr when an option is wrong. Positional arguments stay in argv[1..].
 * `usage` is the text behind the verb's name, `help` a paragraph below the option list. */
bool cli_options(int *argc, char ***argv, const GOptionEntry *entries, const char *usage,
                 const char *help, bool *ret_done);

/* Prints `ipu-stack VERB: message (E123)`, frees the error and returns CLI_WRONG_INPUT. */
int cli_fail(const char *verb, GError *error);

/* A number given for an option must be least..most. */
bool cli_number_check(const char *option, gint64 v, gint64 least, gint64 most, GError **error);

enum { CLI_MAX_THREADS = 1024 };
/* Checks the number given with --threads and sets it; 0 = one per core. */
bool cli_threads_set(gint threads, GError **error);

#endif
