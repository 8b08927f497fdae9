/* ipu-stack disasm: words, raw files, objects and images as instructions. */
#include "cli/cli.h"
#include "cli/cli_asm.h"
#include "isa/isa_asm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    char *base;
    gboolean hex, worker, supervisor, flags, source;
};

/* Words separated by blanks or lines; an 0x in front and comments behind # are allowed. */
static bool parse_words(const char *name, char *text, size_t size, GArray *words, GError **error) {
    uint32_t number = 1;
    for (char *p = text; (p = memchr(p, 0, size - (size_t)(p - text))) != NULL;) *p = 1;
    for (char *line = text; line != NULL; number++) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = 0;
        line[strcspn(line, "#")] = 0;
        char *save = NULL;
        for (char *w = strtok_r(line, " \t\r,", &save); w != NULL;
             w = strtok_r(NULL, " \t\r,", &save)) {
            const char *digits = w[0] == '0' && (w[1] == 'x' || w[1] == 'X') ? w + 2 : w;
            const size_t n = strlen(digits);
            if (n != 8 || strspn(digits, "0123456789abcdefABCDEF") != n) {
                char *shown = g_strescape(w, NULL);
                diag_set(error, ISA_HEX_LINE, name, number, shown);
                g_free(shown);
                return false;
            }
            const uint32_t v = (uint32_t)strtoul(digits, NULL, 16);
            g_array_append_val(words, v);
        }
        line = end != NULL ? end + 1 : NULL;
    }
    return true;
}

/* One line per instruction, a bundle or sendpicp taking two words. Number of words refused. */
static uint32_t print_words(const uint32_t *words, size_t n, const struct isa_print *print) {
    uint32_t refused = 0;
    GString *line = g_string_new(NULL);
    for (size_t i = 0; i < n;) {
        struct isa_slot slot;
        const enum isa_slot_error e = isa_slot_decode(words + i, n - i, 0, &slot);
        g_string_truncate(line, 0);
        if (e == ISA_SLOT_OK) {
            isa_slot_print(line, &slot, print);
            i += slot.n_words;
        } else {
            g_string_printf(line, ".word 0x%08x  // %s", words[i], isa_slot_error_text(e));
            refused++;
            i++;
        }
        puts(line->str);
    }
    g_string_free(line, true);
    return refused;
}

static int disassemble_hex(const char *path, char *text, size_t size,
                           const struct isa_print *print) {
    char *copy = g_memdup2(text, size + 1);
    GArray *words = g_array_new(false, false, sizeof(uint32_t));
    GError *error = NULL;
    int status = CLI_OK;
    if (!parse_words(strcmp(path, "-") == 0 ? "<stdin>" : path, copy, size, words, &error)) {
        status = cli_fail("disasm", error);
    } else {
        const uint32_t refused =
            print_words((const uint32_t *)(const void *)words->data, words->len, print);
        if (refused != 0) {
            fprintf(stderr, "ipu-stack disasm: %u of %u words are no instruction\n", refused,
                    words->len);
            status = CLI_WRONG_INPUT;
        }
    }
    g_array_free(words, true);
    g_free(copy);
    return status;
}

/* Objects and images by their headers; everything else is raw words. */
/* An object as source that can be assembled again. */
static int print_source(const char *path, const char *text, size_t size) {
    GError *error = NULL;
    GString *out = g_string_new(NULL);
    struct isa_object *o = isa_object_read(text, size, path, &error);
    if (o != NULL && isa_object_source(out, o, &error)) fputs(out->str, stdout);
    isa_object_free(o);
    g_string_free(out, true);
    return error != NULL ? cli_fail("disasm", error) : CLI_OK;
}

static int disassemble_file(const char *path, const char *text, size_t size, uint32_t base,
                            const struct isa_print *print) {
    GString *out = g_string_new(NULL);
    GError *error = NULL;
    if (size >= 18 && memcmp(text, "\177ELF", 4) == 0) {
        const bool linked = text[16] == 2;
        struct isa_object *o = linked ? NULL : isa_object_read(text, size, path, &error);
        struct isa_image *image = linked ? isa_image_read(text, size, path, &error) : NULL;
        if (o != NULL) isa_object_dump(out, o, ISA_DUMP_CODE, print);
        if (image != NULL) isa_image_dump(out, image, ISA_DUMP_CODE, print);
        isa_object_free(o);
        isa_image_free(image);
    } else {
        isa_dump_bytes(out, (const uint8_t *)text, size, base, print);
    }
    fputs(out->str, stdout);
    g_string_free(out, true);
    return error != NULL ? cli_fail("disasm", error) : CLI_OK;
}

int cmd_disasm(int argc, char **argv) {
    struct options o = {0};
    const GOptionEntry entries[] = {
        {"hex", 0, 0, G_OPTION_ARG_NONE, &o.hex, "Read 8-digit words, print one line each", NULL},
        {"base", 0, 0, G_OPTION_ARG_STRING, &o.base, "Address of the first word of a raw file (0)",
         "ADDR"},
        {"worker", 0, 0, G_OPTION_ARG_NONE, &o.worker, "Name registers as workers see them", NULL},
        {"supervisor", 0, 0, G_OPTION_ARG_NONE, &o.supervisor,
         "Name registers as the supervisor sees them", NULL},
        {"source", 0, 0, G_OPTION_ARG_NONE, &o.source,
         "Print an object as source that can be assembled again", NULL},
        {"flag-names", 0, 0, G_OPTION_ARG_NONE, &o.flags,
         "Print AMP flags by name (words with the model's numbers only)", NULL},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "[FILE|-]", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    if (argc > 2 || (argc < 2 && !o.hex)) {
        fprintf(stderr, "ipu-stack disasm: one file or - is needed; see ipu-stack disasm --help\n");
        return CLI_WRONG_INPUT;
    }
    const char *path = argc == 2 ? argv[1] : "-";
    const struct isa_print print = {.flag_names = o.flags,
                                    .mode = o.worker       ? ISA_MODE_W
                                            : o.supervisor ? ISA_MODE_S
                                                           : 0};
    char *text = NULL;
    size_t size = 0;
    GError *error = NULL;
    int status;
    uint32_t base = 0;
    if (g_str_has_suffix(path, ".S") || g_str_has_suffix(path, ".s")) {
        diag_set(&error, CLI_SOURCE_GIVEN, path);
        status = cli_fail("disasm", error);
    } else if (!cli_address("--base", o.base, &base, &error) ||
               !cli_input(path, 256 * 1024 * 1024, &text, &size, &error))
        status = cli_fail("disasm", error);
    else if (o.source) status = print_source(path, text, size);
    else if (o.hex) status = disassemble_hex(path, text, size, &print);
    else status = disassemble_file(path, text, size, base, &print);
    g_free(text);
    g_free(o.base);
    return status;
}
