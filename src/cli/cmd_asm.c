/* ipu-stack asm: assembles one file or standard input, to an object, to words, to a listing. */
#include "cli/cli.h"
#include "cli/cli_asm.h"
#include "isa/isa_asm.h"

#include <stdio.h>
#include <string.h>

struct options {
    char *output, *sdk_header, *base, **defines, **includes, **warnings;
    gboolean hex, listing, hardware, cpp, worker, supervisor, allow_operands;
};

static char **cpp_flags(const struct options *o) {
    GPtrArray *flags = g_ptr_array_new();
    for (char **d = o->defines; d != NULL && *d != NULL; d++)
        g_ptr_array_add(flags, g_strdup_printf("-D%s", *d));
    for (char **i = o->includes; i != NULL && *i != NULL; i++)
        g_ptr_array_add(flags, g_strdup_printf("-I%s", *i));
    g_ptr_array_add(flags, NULL);
    return (char **)g_ptr_array_free(flags, FALSE);
}

/* Text of the source; through the preprocessor for names in .S or when asked for. */
static bool read_source(const char *path, const struct options *o, char **ret_text,
                        size_t *ret_size, GError **error) {
    if (o->cpp || o->defines != NULL || o->includes != NULL || g_str_has_suffix(path, ".S")) {
        char **flags = cpp_flags(o);
        const bool ok = isa_preprocess(path, (const char *const *)flags, ret_text, ret_size, error);
        g_strfreev(flags);
        return ok;
    }
    return cli_input(path, 64 * 1024 * 1024, ret_text, ret_size, error);
}

/* The linked contents as words, the first at `base`; the last one filled up with zeros. */
static void print_hex(struct isa_object *object, uint32_t base, struct isa_messages *messages) {
    const struct isa_layout layout = {.text_base = base, .base_zero = true, .anywhere = true};
    struct isa_image *image = isa_link(&object, 1, &layout, messages);
    if (image == NULL) return;
    GByteArray *bytes = g_byte_array_new();
    isa_image_flat(image, bytes);
    while (bytes->len % 4 != 0) g_byte_array_append(bytes, (const uint8_t *)"", 1);
    for (uint32_t at = 0; at < bytes->len; at += 4)
        printf("%02x%02x%02x%02x\n", bytes->data[at + 3], bytes->data[at + 2], bytes->data[at + 1],
               bytes->data[at]);
    g_byte_array_free(bytes, true);
    isa_image_free(image);
}

static bool write_object(const struct isa_object *object, const char *path, GError **error) {
    GByteArray *bytes = g_byte_array_new();
    isa_object_write(object, bytes);
    const bool ok = cli_output(path, bytes->data, bytes->len, error);
    g_byte_array_free(bytes, true);
    return ok;
}

static char *default_output(const char *path) {
    if (strcmp(path, "-") == 0) return NULL;
    char *name = g_path_get_basename(path), *dot = strrchr(name, '.');
    if (dot != NULL) *dot = 0;
    char *out = g_strconcat(name, ".o", NULL);
    g_free(name);
    return out;
}

static int assemble(const char *path, const struct options *o, struct isa_asm_options *asm_options,
                    const char *text, size_t size) {
    uint32_t base = 0;
    GError *error = NULL;
    if (!cli_address("--base", o->base, &base, &error)) return cli_fail("asm", error);
    struct isa_messages messages;
    isa_messages_init(&messages);
    GString *listing = g_string_new(NULL);
    if (o->listing) asm_options->listing = listing;
    const char *name = strcmp(path, "-") == 0 ? "<stdin>" : path;
    struct isa_object *object = isa_asm_source(text, size, name, asm_options, &messages);
    if (object != NULL && o->hex) print_hex(object, base, &messages);
    fputs(listing->str, stdout);
    g_string_free(listing, true);
    int status = messages.n_errors == 0 ? CLI_OK : CLI_WRONG_INPUT;
    GString *report = g_string_new(NULL);
    isa_messages_print(&messages, report);
    fputs(report->str, stderr);
    g_string_free(report, true);
    isa_messages_clear(&messages);
    char *output = o->output != NULL ? g_strdup(o->output) : default_output(path);
    const bool write =
        status == CLI_OK && output != NULL && (o->output != NULL || !(o->hex || o->listing));
    if (write && !write_object(object, output, &error)) status = cli_fail("asm", error);
    g_free(output);
    isa_object_free(object);
    return status;
}

/* -W names: error=pad, or nothing else. */
static bool check_warnings(char **warnings, bool *ret_pad, GError **error) {
    for (; warnings != NULL && *warnings != NULL; warnings++) {
        *ret_pad |= strcmp(*warnings, "error=pad") == 0;
        if (strcmp(*warnings, "error=pad") == 0) continue;
        diag_set(error, CLI_CHOICE, "--warn", *warnings, "error=pad");
        return false;
    }
    return true;
}

static int run(const char *path, const struct options *o) {
    struct isa_asm_options asm_options = {.mode = o->worker       ? ISA_MODE_W
                                                  : o->supervisor ? ISA_MODE_S
                                                                  : 0,
                                          .include_dirs = (const char *const *)o->includes,
                                          .allow_invalid_operands = o->allow_operands,
                                          .target_hardware = o->hardware || o->sdk_header != NULL};
    GError *error = NULL;
    char *text = NULL, *header = NULL;
    size_t size = 0, header_size = 0;
    int status;
    if (!check_warnings(o->warnings, &asm_options.pad_is_error, &error) ||
        (o->sdk_header != NULL &&
         !file_read(o->sdk_header, 64 * 1024 * 1024, (uint8_t **)&header, &header_size, &error)) ||
        !read_source(path, o, &text, &size, &error)) {
        status = cli_fail("asm", error);
    } else {
        char *header_text = header != NULL ? g_strndup(header, header_size) : NULL;
        asm_options.sdk_header = header_text;
        status = assemble(path, o, &asm_options, text, size);
        g_free(header_text);
    }
    g_free(text);
    g_free(header);
    return status;
}

int cmd_asm(int argc, char **argv) {
    struct options o = {0};
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &o.output, "Object to write (NAME.o here)",
         "FILE"},
        {"hex", 0, 0, G_OPTION_ARG_NONE, &o.hex, "Print one 8-digit word a line instead", NULL},
        {"base", 0, 0, G_OPTION_ARG_STRING, &o.base, "Address of the first word of --hex (0)",
         "ADDR"},
        {"listing", 0, 0, G_OPTION_ARG_NONE, &o.listing, "Print offsets, words and source lines",
         NULL},
        {"target-hardware", 0, 0, G_OPTION_ARG_NONE, &o.hardware,
         "Hardware numbers for symbolic flags; refuses what is not public", NULL},
        {"sdk-header", 0, 0, G_OPTION_ARG_FILENAME, &o.sdk_header,
         "Header of an SDK whose #define lines give those numbers", "FILE"},
        {"cpp", 0, 0, G_OPTION_ARG_NONE, &o.cpp, "Run the C preprocessor (always for names in .S)",
         NULL},
        {"define", 'D', 0, G_OPTION_ARG_STRING_ARRAY, &o.defines, "For the preprocessor",
         "NAME[=VALUE]"},
        {"include", 'I', 0, G_OPTION_ARG_FILENAME_ARRAY, &o.includes,
         "For #include, .include and .incbin", "DIR"},
        {"worker", 0, 0, G_OPTION_ARG_NONE, &o.worker, "As .worker at the start", NULL},
        {"supervisor", 0, 0, G_OPTION_ARG_NONE, &o.supervisor, "As .supervisor at the start", NULL},
        {"allow-invalid-operands", 0, 0, G_OPTION_ARG_NONE, &o.allow_operands, "Accept $a8 to $a13",
         NULL},
        {"warn", 'W', 0, G_OPTION_ARG_STRING_ARRAY, &o.warnings,
         "error=pad: an inserted nop is an error", "NAME"},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "FILE|-", "--hex without a file reads standard input.",
                     &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    const char *path = argc == 2 ? argv[1] : "-";
    if (argc > 2 || (argc < 2 && !o.hex)) {
        fprintf(stderr, "ipu-stack asm: one file or - is needed; see ipu-stack asm --help\n");
        return CLI_WRONG_INPUT;
    }
    const int status = run(path, &o);
    g_free(o.output);
    g_free(o.base);
    g_free(o.sdk_header);
    g_strfreev(o.defines);
    g_strfreev(o.includes);
    g_strfreev(o.warnings);
    return status;
}
