/* ipu-stack profile-render: a profile as a self-contained page. */
#include "cli/cli.h"
#include "profile/profile.h"

#include <stdio.h>

int cmd_profile_render(int argc, char **argv) {
    char *output = NULL;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output, "Page to write (default: PROFILE.html)",
         "FILE"},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "PROFILE", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    GError *error = NULL;
    if (argc != 2) {
        diag_set(&error, CLI_ARGUMENTS, "give one profile");
        return cli_fail("profile-render", error);
    }
    struct profile *p = profile_read(argv[1], &error);
    if (p == NULL) return cli_fail("profile-render", error);
    if (output == NULL) output = g_strdup_printf("%s.html", argv[1]);
    const bool ok = profile_page_write(p, output, &error);
    if (ok) printf("page: %s\n", output);
    profile_free(p);
    g_free(output);
    return ok ? CLI_OK : cli_fail("profile-render", error);
}
