/* ipu-stack link: objects to an image at addresses. */
#include "cli/cli.h"
#include "cli/cli_asm.h"
#include "isa/isa_asm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    char *output, *base, *data_base, *entry, **symbols, **places, **roots;
    gboolean flat, map;
};

static bool read_objects(char **paths, GPtrArray *objects, GError **error) {
    for (; *paths != NULL; paths++) {
        uint8_t *data;
        size_t size;
        if (!file_read(*paths, 256 * 1024 * 1024, &data, &size, error)) return false;
        struct isa_object *o = isa_object_read(data, size, *paths, error);
        g_free(data);
        if (o == NULL) return false;
        g_ptr_array_add(objects, o);
    }
    return true;
}

/* NAME=NUMBER arguments; names are cut at the sign. */
static bool split(const char *option, char **texts, GArray *out, GError **error) {
    for (; texts != NULL && *texts != NULL; texts++) {
        char *sign = strchr(*texts, '=');
        uint32_t v = 0;
        if (sign == NULL) {
            char *text = g_strdup_printf("%s: '%s': expected NAME=NUMBER", option, *texts);
            diag_set(error, CLI_ARGUMENTS, text);
            g_free(text);
            return false;
        }
        if (!cli_address(option, sign + 1, &v, error)) return false;
        *sign = 0;
        const struct isa_define d = {*texts, v};
        g_array_append_val(out, d);
    }
    return true;
}

static int link_objects(const GPtrArray *objects, const struct options *o,
                        const struct isa_layout *layout) {
    struct isa_messages messages;
    isa_messages_init(&messages);
    struct isa_image *image =
        isa_link((struct isa_object *const *)objects->pdata, objects->len, layout, &messages);
    GString *text = g_string_new(NULL);
    isa_messages_print(&messages, text);
    fputs(text->str, stderr);
    isa_messages_clear(&messages);
    int status = image != NULL ? CLI_OK : CLI_WRONG_INPUT;
    if (image != NULL) {
        GByteArray *bytes = g_byte_array_new();
        if (o->flat) isa_image_flat(image, bytes);
        else isa_image_write(image, bytes);
        GError *error = NULL;
        if (!cli_output(o->output, bytes->data, bytes->len, &error))
            status = cli_fail("link", error);
        g_byte_array_free(bytes, true);
        g_string_truncate(text, 0);
        if (o->map) isa_image_dump(text, image, ISA_DUMP_SECTIONS | ISA_DUMP_SYMBOLS, NULL);
        if (o->map) fputs(text->str, stdout);
    }
    g_string_free(text, true);
    isa_image_free(image);
    return status;
}

static int run(struct options *o, char **paths) {
    GArray *defines = g_array_new(false, false, sizeof(struct isa_define));
    GArray *places = g_array_new(false, false, sizeof(struct isa_define));
    GPtrArray *objects = g_ptr_array_new_with_free_func((GDestroyNotify)isa_object_free);
    int status = CLI_WRONG_INPUT;
    GError *error = NULL;
    G_STATIC_ASSERT(sizeof(struct isa_define) == sizeof(struct isa_place));
    uint32_t base = 0, data_base = 0;
    if (!split("--symbol", o->symbols, defines, &error) ||
        !split("--section", o->places, places, &error) ||
        !cli_address("--base", o->base, &base, &error) ||
        !cli_address("--data", o->data_base, &data_base, &error) ||
        !read_objects(paths, objects, &error)) {
        status = cli_fail("link", error);
    } else {
        const struct isa_layout layout = {
            .text_base = base,
            .base_zero = o->base != NULL,
            .data_base = data_base,
            .entry = o->entry,
            .defines = (const struct isa_define *)(const void *)defines->data,
            .n_defines = defines->len,
            .places = (const struct isa_place *)(const void *)places->data,
            .n_places = places->len,
            .roots = (const char *const *)o->roots,
            .n_roots = o->roots != NULL ? g_strv_length(o->roots) : 0};
        status = link_objects(objects, o, &layout);
    }
    g_ptr_array_free(objects, true);
    g_array_free(defines, true);
    g_array_free(places, true);
    return status;
}

int cmd_link(int argc, char **argv) {
    struct options o = {0};
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &o.output, "Image to write", "FILE"},
        {"base", 0, 0, G_OPTION_ARG_STRING, &o.base, "Address of the code (0x4c018)", "ADDR"},
        {"data", 0, 0, G_OPTION_ARG_STRING, &o.data_base, "Address of the data (behind the code)",
         "ADDR"},
        {"section", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.places,
         "Sections NAME and NAME.* from ADDR on", "NAME=ADDR"},
        {"symbol", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.symbols, "An absolute symbol", "NAME=ADDR"},
        {"entry", 'e', 0, G_OPTION_ARG_STRING, &o.entry, "Symbol where execution starts", "NAME"},
        {"root", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.roots,
         "Keep only sections reachable from the roots and the entry", "NAME"},
        {"flat", 0, 0, G_OPTION_ARG_NONE, &o.flat, "Write bytes without headers", NULL},
        {"map", 0, 0, G_OPTION_ARG_NONE, &o.map, "Print segments and symbols", NULL},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "OBJECT... -o FILE", NULL, &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    int status = CLI_WRONG_INPUT;
    if (argc < 2 || o.output == NULL)
        fprintf(stderr,
                "ipu-stack link: objects and -o FILE are needed; see ipu-stack link --help\n");
    else status = run(&o, argv + 1);
    g_free(o.output);
    g_free(o.base);
    g_free(o.data_base);
    g_free(o.entry);
    g_strfreev(o.places);
    g_strfreev(o.symbols);
    g_strfreev(o.roots);
    return status;
}
