/* kernel_embed: a tool of the build. Assembles the preprocessed sources of device/ and writes the
 * relocatable objects as arrays of a C file (kernel_objects).
 *
 * Usage: kernel-embed OUT.c [--allow-padding NAME] [--strip FOLDER/] FILE.i...
 * A nop inserted in front of a bundle is an error, because slot counts are read off the sources;
 * NAME (without .i) may have them. FOLDER/ is taken off the file names that the preprocessor left, so
 * that objects, and packages made of them, do not depend on where the tree lies. */
#include "isa/isa_asm.h"

#include <stdio.h>
#include <string.h>

static const char *strip_folder = "";

/* Line markers name files in quotes: takes the folder off each. */
static void strip_names(char **text, gsize *length) {
    if (*strip_folder == 0) return;
    g_autofree char *quoted = g_strdup_printf("\"%s", strip_folder);
    GString *s = g_string_new_len(*text, (gssize)*length);
    g_string_replace(s, quoted, "\"", 0);
    g_free(*text);
    *length = s->len;
    *text = g_string_free(s, false);
}

static bool embed_assemble(const char *path, bool allow_padding, GByteArray *out) {
    g_autoptr(GError) error = NULL;
    g_autofree char *text = NULL;
    gsize length;
    if (!g_file_get_contents(path, &text, &length, &error)) {
        fprintf(stderr, "%s\n", error->message);
        return false;
    }
    strip_names(&text, &length);
    struct isa_messages messages = {0};
    isa_messages_init(&messages);
    const struct isa_asm_options options = {.pad_is_error = !allow_padding};
    struct isa_object *object = isa_asm_source(text, length, path, &options, &messages);
    GString *report = g_string_new(NULL);
    isa_messages_print(&messages, report);
    fputs(report->str, stderr);
    g_string_free(report, true);
    isa_messages_clear(&messages);
    if (!object) return false;
    isa_object_write(object, out);
    isa_object_free(object);
    return true;
}

static char *embed_name(const char *path) {
    char *name = g_path_get_basename(path);
    char *dot = strchr(name, '.');
    if (dot) *dot = 0;
    return name;
}

static void embed_array(GString *c, uint32_t i, const GByteArray *bytes) {
    g_string_append_printf(c, "static const uint8_t object_%u[] __attribute__((aligned(8))) = {",
                           i);
    for (guint k = 0; k < bytes->len; k++)
        g_string_append_printf(c, "%s%u,", k % 24 ? "" : "\n", bytes->data[k]);
    g_string_append(c, "\n};\n");
}

int main(int argc, char **argv) {
    const char *padded = NULL;
    GString *c = g_string_new("#include \"kernel/kernel.h\"\n");
    GString *table = g_string_new("static const struct kernel_object objects[] = {\n");
    uint32_t n = 0;
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], "--allow-padding") == 0 && i + 1 < argc) {
            padded = argv[++i];
            continue;
        }
        if (strcmp(argv[i], "--strip") == 0 && i + 1 < argc) {
            strip_folder = argv[++i];
            continue;
        }
        g_autofree char *name = embed_name(argv[i]);
        GByteArray *bytes = g_byte_array_new();
        if (!embed_assemble(argv[i], padded && strcmp(name, padded) == 0, bytes)) return 1;
        embed_array(c, n, bytes);
        g_string_append_printf(table, "    {\"%s\", object_%u, sizeof object_%u},\n", name, n, n);
        g_byte_array_unref(bytes);
        n++;
    }
    g_string_append(table, "};\nconst struct kernel_object *kernel_objects(size_t *ret_n) {\n"
                           "    *ret_n = ARRAY_LEN(objects);\n    return objects;\n}\n");
    g_string_append(c, table->str);
    g_autoptr(GError) error = NULL;
    if (argc < 2 || !g_file_set_contents(argv[1], c->str, (gssize)c->len, &error)) {
        fprintf(stderr, "%s\n", error ? error->message : "usage: kernel-embed OUT.c FILE.i...");
        return 1;
    }
    return 0;
}
