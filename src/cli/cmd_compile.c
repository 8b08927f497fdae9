/* ipu-stack compile: a network to a package. */
#include "cli/cli.h"
#include "cli/cli_net.h"

#include <stdio.h>

static int report(const struct cli_built *b, bool json) {
    GString *text = g_string_new(NULL);
    if (b->package == NULL) {
        if (json) printf("%s\n", b->report_json);
        fputs(b->report, stderr);
    } else {
        if (json) package_json(b->package, text);
        else package_print(b->package, text);
        fputs(text->str, stdout);
    }
    g_string_free(text, true);
    return b->package != NULL ? CLI_OK : CLI_INFEASIBLE;
}

static int compile_net(struct cli_net *n, const char *output, bool json) {
    GError *error = NULL;
    struct cli_built b;
    if (!cli_net_build(n, &error) || !cli_net_compile(n, &b, &error))
        return cli_fail("compile", error);
    const struct package_write_options o = {.no_parameters = n->no_parameters};
    const bool ok = b.package == NULL ||
                    ((n->no_parameters || cli_net_parameters(n, b.package, &error)) &&
                     package_write(b.package, output, &o, &error));
    const int status = ok ? report(&b, json) : cli_fail("compile", error);
    cli_built_clear(&b);
    return status;
}

int cmd_compile(int argc, char **argv) {
    struct cli_net n;
    cli_net_defaults(&n);
    char *output = NULL;
    gboolean json = false;
    const GOptionEntry own[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Package to write", "FILE"},
        {"no-parameters", 0, 0, G_OPTION_ARG_NONE, &n.no_parameters,
         "Leave the values of parameters out", NULL},
        {"diagnostic-run", 0, 0, G_OPTION_ARG_NONE, &n.diagnostic,
         "Say in the package where intermediate values lie (run --diagnostic-output)", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "One JSON object", NULL},
        {0}};
    GOptionEntry *entries = cli_net_entries(&n, own);
    bool done;
    int status = CLI_WRONG_INPUT;
    GError *error = NULL;
    if (cli_options(&argc, &argv, entries, "", "Parameters get random contents from --seed; run "
                    "takes others from a file.", &done)) {
        if (done) {
            status = CLI_OK;
        } else if (argc != 1 || output == NULL) {
            diag_set(&error, CLI_ARGUMENTS,
                     argc != 1 ? "no arguments are taken besides options"
                               : "give -o FILE, the package to write");
            status = cli_fail("compile", error);
        } else {
            status = compile_net(&n, output, json);
        }
    }
    g_free(entries);
    g_free(output);
    cli_net_clear(&n);
    return status;
}
