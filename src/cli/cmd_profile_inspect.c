/* ipu-stack profile-inspect: a profile as a whole and by step. */
#include "cli/cli.h"
#include "profile/profile.h"

#include <stdio.h>

int cmd_profile_inspect(int argc, char **argv) {
    gboolean json = false;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "One JSON object", NULL}, {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "PROFILE", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    GError *error = NULL;
    if (argc != 2) {
        diag_set(&error, CLI_ARGUMENTS, "give one profile");
        return cli_fail("profile-inspect", error);
    }
    struct profile *p = profile_read(argv[1], &error);
    if (p == NULL) return cli_fail("profile-inspect", error);
    GString *text = g_string_new(NULL);
    if (json) profile_json(p, text);
    else profile_print(p, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
    profile_free(p);
    return CLI_OK;
}
