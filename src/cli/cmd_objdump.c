/* ipu-stack objdump: what objects and images hold. */
#include "cli/cli.h"
#include "isa/isa_asm.h"

#include <stdio.h>
#include <string.h>

static bool dump_file(const char *path, uint32_t what, const struct isa_print *print,
                      GError **error) {
    uint8_t *data;
    size_t size;
    if (!file_read(path, 256 * 1024 * 1024, &data, &size, error)) return false;
    const bool linked = size >= 18 && data[16] == 2;
    struct isa_object *o = linked ? NULL : isa_object_read(data, size, path, error);
    struct isa_image *image = linked ? isa_image_read(data, size, path, error) : NULL;
    g_free(data);
    GString *out = g_string_new(NULL);
    if (o != NULL) isa_object_dump(out, o, what, print);
    if (image != NULL) isa_image_dump(out, image, what, print);
    fputs(out->str, stdout);
    g_string_free(out, true);
    const bool ok = o != NULL || image != NULL;
    isa_object_free(o);
    isa_image_free(image);
    return ok;
}

int cmd_objdump(int argc, char **argv) {
    gboolean sections = false, symbols = false, code = false, data = false, supervisor = false;
    const GOptionEntry entries[] = {
        {"sections", 's', 0, G_OPTION_ARG_NONE, &sections, "Sections or segments", NULL},
        {"symbols", 't', 0, G_OPTION_ARG_NONE, &symbols, "Symbols", NULL},
        {"disassemble", 'd', 0, G_OPTION_ARG_NONE, &code,
         "Code with labels, relocations and source lines", NULL},
        {"data", 'x', 0, G_OPTION_ARG_NONE, &data, "Other contents in hexadecimal", NULL},
        {"supervisor", 0, 0, G_OPTION_ARG_NONE, &supervisor,
         "Name registers as the supervisor sees them", NULL},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "FILE...", "Without options everything is shown.",
                     &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    if (argc < 2) {
        fprintf(stderr, "ipu-stack objdump: a file is needed; see ipu-stack objdump --help\n");
        return CLI_WRONG_INPUT;
    }
    uint32_t what = (sections ? ISA_DUMP_SECTIONS : 0u) | (symbols ? ISA_DUMP_SYMBOLS : 0u) |
                    (code ? ISA_DUMP_CODE : 0u) | (data ? ISA_DUMP_DATA : 0u);
    if (what == 0) what = ISA_DUMP_SECTIONS | ISA_DUMP_SYMBOLS | ISA_DUMP_CODE | ISA_DUMP_DATA;
    const struct isa_print print = {.mode = supervisor ? ISA_MODE_S : ISA_MODE_W,
                                    .flag_names = true};
    for (int i = 1; i < argc; i++) {
        GError *error = NULL;
        if (!dump_file(argv[i], what, &print, &error)) return cli_fail("objdump", error);
    }
    return CLI_OK;
}
