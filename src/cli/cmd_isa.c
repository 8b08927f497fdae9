/* ipu-stack isa: the instruction set as a manual. */
#include "cli/cli.h"
#include "isa/isa.h"

#include <stdio.h>

int cmd_isa(int argc, char **argv) {
    const GOptionEntry entries[] = {{0}};
    bool done;
    if (!cli_options(
            &argc, &argv, entries, "[NAME...]",
            "Instructions, machine registers ($WSR) and flags; * and ? stand for any letters.\n"
            "Without arguments the whole manual, in Markdown.",
            &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    GString *out = g_string_new(NULL);
    int status = CLI_OK;
    if (argc == 1) isa_manual(out);
    for (int i = 1; i < argc && status == CLI_OK; i++)
        if (!isa_manual_entry(out, argv[i])) {
            GError *error = NULL;
            char *hint = isa_manual_suggest(argv[i]);
            diag_set(&error, CLI_ISA_NAME, argv[i], hint);
            g_free(hint);
            status = cli_fail("isa", error);
        }
    if (status == CLI_OK) fputs(out->str, stdout);
    g_string_free(out, true);
    return status;
}
