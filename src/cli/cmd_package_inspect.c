/* ipu-stack package-inspect: what a package holds. */
#include "cli/cli.h"
#include "package/package.h"

#include <stdio.h>

static void print_tile(const struct package *p, uint32_t tile) {
    static const char *const kind[] = {"code", "program", "rows", "zero"};
    printf("tile %u, entry 0x%x\n", tile, p->meta.entry);
    for (uint32_t i = p->first_segment[tile]; i < p->first_segment[tile + 1]; i++)
        printf("  0x%05x..0x%05x  %7u B  %s\n", p->segments[i].address,
               p->segments[i].address + p->segments[i].bytes, p->segments[i].bytes,
               kind[p->segments[i].kind]);
    for (uint32_t i = p->first_owner[tile]; i < p->first_owner[tile + 1]; i++)
        printf("  0x%05x..0x%05x  %7u B  steps %u..%u  %s\n", p->owners[i].address,
               p->owners[i].address + p->owners[i].bytes, p->owners[i].bytes,
               p->owners[i].first_step, p->owners[i].last_step, p->names[p->owners[i].name]);
}

int cmd_package_inspect(int argc, char **argv) {
    gboolean json = false;
    gint tile = G_MININT; /* none */
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "One JSON object", NULL},
        {"tile", 0, 0, G_OPTION_ARG_INT, &tile, "Segments and allocations of one tile", "N"},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "PACKAGE", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    GError *error = NULL;
    if (argc != 2) {
        diag_set(&error, CLI_ARGUMENTS, "give one package");
        return cli_fail("package-inspect", error);
    }
    struct package *p = package_read(argv[1], &error);
    if (p == NULL) return cli_fail("package-inspect", error);
    if ((tile != G_MININT && tile < 0) || tile >= (gint)p->meta.n_tiles) {
        diag_set(&error, CLI_NUMBER, "--tile", (gint64)tile, (gint64)0, (gint64)p->meta.n_tiles - 1);
        package_free(p);
        return cli_fail("package-inspect", error);
    }
    GString *text = g_string_new(NULL);
    if (json) package_json(p, text);
    else package_print(p, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
    if (tile >= 0 && !json) print_tile(p, (uint32_t)tile);
    package_free(p);
    return CLI_OK;
}
