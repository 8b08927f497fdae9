/* ipu-stack tile-dump: what lies in one tile's memory before anything runs: of a package, or of
 * sources and objects as tile-run loads them. */
#include "cli/cli.h"
#include "cli/cli_tile.h"
#include "package/package.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct code {
    uint32_t address, n; /* slots */
};
struct dump {
    struct cli_tile c;
    struct package *package; /* NULL: sources and objects */
    gint tile;
    gboolean json;
    char **dump_specs, **code_specs;
    struct code *code;
    uint32_t n_code;
    struct cli_tile_dump *dumps;
    uint32_t n_dumps;
};

static bool is_package(const char *path) {
    char head[16] = {0};
    FILE *f = fopen(path, "rb");
    const size_t n = f != NULL ? fread(head, 1, sizeof head, f) : 0;
    if (f != NULL) fclose(f);
    return n == sizeof head && memcmp(head, "SQLite format 3", sizeof head) == 0;
}

static const char *kind_name(uint32_t kind) {
    static const char *const NAMES[] = {"code", "program", "rows", "zero"};
    return kind < ARRAY_LEN(NAMES) ? NAMES[kind] : "?";
}

/* The segments and symbols of the tile as those of a linked image, without contents. */
static struct isa_image *image_of(const struct package *p, uint32_t tile) {
    struct isa_image *image = g_new0(struct isa_image, 1);
    image->segments = g_array_new(false, false, sizeof(struct isa_segment));
    image->symbols = g_array_new(false, false, sizeof(struct isa_image_symbol));
    image->lines = g_array_new(false, false, sizeof(struct isa_line));
    image->files = g_ptr_array_new();
    for (uint32_t i = p->first_segment[tile]; i < p->first_segment[tile + 1]; i++) {
        const struct package_segment *s = &p->segments[i];
        const struct isa_segment segment = {.address = s->address, .size = s->bytes,
                                            .exec = s->kind != PACKAGE_SEGMENT_ZERO,
                                            .name = g_strdup(kind_name(s->kind))};
        g_array_append_val(image->segments, segment);
    }
    for (uint32_t i = 0; i < p->n_symbols; i++) {
        const struct isa_image_symbol symbol = {.name = g_strdup(p->symbols[i].name),
                                                .address = p->symbols[i].address,
                                                .size = p->symbols[i].bytes, .binding = ISA_GLOBAL};
        g_array_append_val(image->symbols, symbol);
    }
    return image;
}

/* The tile's segments to SRAM; the tile of struct cli_tile is number 0. */
static bool load_package(struct dump *d, char **paths) {
    GError *error = NULL;
    if (paths[1] != NULL)
        diag_set(&error, CLI_ARGUMENTS, "give one package");
    else
        d->package = package_read(paths[0], &error);
    const struct package *p = d->package;
    if (p != NULL && (d->tile < 0 || (uint32_t)d->tile >= p->meta.n_tiles))
        diag_set(&error, CLI_TILE_DUMP_TILE, paths[0], p->meta.n_tiles - 1, d->tile);
    if (error != NULL) {
        cli_tile_refuse(&d->c, error);
        return false;
    }
    d->c.sram = sram_new(1);
    d->c.given = g_array_new(false, false, sizeof(struct cli_tile_range));
    d->c.supervisor = true;
    d->c.image = image_of(p, (uint32_t)d->tile);
    for (uint32_t i = p->first_segment[d->tile]; i < p->first_segment[d->tile + 1]; i++) {
        const struct package_segment *s = &p->segments[i];
        if (s->kind != PACKAGE_SEGMENT_ZERO)
            memcpy(sram_at(d->c.sram, 0, s->address), p->image + s->offset, s->bytes);
        sram_mark_written(d->c.sram, 0, s->address, s->bytes);
    }
    return true;
}

/* ADDR|SYM[:N]: N slots of disassembly. */
static bool parse_code(const struct dump *d, const char *spec, struct code *ret) {
    char **part = g_strsplit(spec, ":", 2);
    GError *error = NULL;
    bool ok = cli_tile_want_address(&d->c, "--code", part[0] != NULL ? part[0] : "", &ret->address);
    ret->n = 16;
    if (ok && part[1] != NULL) {
        char *end;
        ret->n = (uint32_t)strtoul(part[1], &end, 0);
        if (end == part[1] || *end != 0 || ret->n == 0)
            diag_set(&error, CLI_TILE_SPEC, "--code", spec, "ADDR|SYM[:SLOTS]");
    }
    if (ok && error == NULL && ret->address % 4 != 0)
        diag_set(&error, CLI_TILE_ALIGN, "--code", spec, ret->address, 4u);
    if (ok && error == NULL && !sram_range_ok(ret->address, 8))
        diag_set(&error, CLI_TILE_OUTSIDE, "--code", spec, ret->address, (gint64)ret->address + 8,
                 (uint32_t)TARGET_SRAM_BASE, (uint32_t)TARGET_SRAM_END);
    if (error != NULL) cli_tile_refuse(&d->c, error);
    ok = ok && error == NULL;
    g_strfreev(part);
    return ok;
}

static bool prepare(struct dump *d, char **paths) {
    const bool package = paths[0] != NULL && is_package(paths[0]);
    if (!(package ? load_package(d, paths) : cli_tile_open(&d->c, paths))) return false;
    d->n_code = d->code_specs != NULL ? g_strv_length(d->code_specs) : 0;
    d->n_dumps = d->dump_specs != NULL ? g_strv_length(d->dump_specs) : 0;
    d->code = g_new0(struct code, d->n_code + 1);
    d->dumps = g_new0(struct cli_tile_dump, d->n_dumps + 1);
    for (uint32_t i = 0; i < d->n_code; i++)
        if (!parse_code(d, d->code_specs[i], &d->code[i])) return false;
    for (uint32_t i = 0; i < d->n_dumps; i++)
        if (!cli_tile_dump_parse(&d->c, "--dump", d->dump_specs[i], &d->dumps[i])) return false;
    return true;
}

static void print_where(const struct dump *d, uint32_t address, GString *out) {
    if (d->package != NULL)
        package_symbolize(d->package, (uint32_t)d->tile, address, out);
    else
        cli_tile_where(&d->c, address, out);
}

/* Packages hold both kinds of code. */
static uint32_t dump_mode(const struct dump *d) {
    return d->package != NULL ? CLI_TILE_ANY : d->c.supervisor ? 0 : 1;
}

/* The address behind the slot there. */
static uint32_t slot_end(const struct dump *d, uint32_t at) {
    uint32_t word;
    memcpy(&word, sram_at(d->c.sram, 0, at), 4);
    return at + (word >> 31 && at % 8 == 0 ? 8 : 4);
}

/* --- Text. --- */

static void print_segments(const struct dump *d, GString *out) {
    const struct isa_image *image = d->c.image;
    if (d->package != NULL)
        g_string_append_printf(out, "tile %d: %u segments\n", d->tile, image->segments->len);
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        g_string_append_printf(out, "  0x%05x..0x%05x  %7u bytes  %s\n", s->address, s->address + s->size,
                               s->size, s->name);
    }
    for (uint32_t i = 0; d->package == NULL && i < image->symbols->len; i++) {
        const struct isa_image_symbol *s = &g_array_index(image->symbols, struct isa_image_symbol, i);
        if (!s->absolute) g_string_append_printf(out, "  0x%05x  %s\n", s->address, s->name);
    }
}

static void print_code(const struct dump *d, const struct code *c, GString *out) {
    print_where(d, c->address, out);
    g_string_append(out, ":\n");
    uint32_t at = c->address;
    for (uint32_t k = 0; k < c->n && sram_range_ok(at, 8); k++, at = slot_end(d, at)) {
        g_string_append_printf(out, "  0x%05x  ", at);
        cli_tile_slot(&d->c, at, dump_mode(d), out);
        g_string_append_c(out, '\n');
    }
}

static void print_text(const struct dump *d) {
    GString *text = g_string_new(NULL);
    print_segments(d, text);
    for (uint32_t i = 0; i < d->n_code; i++) print_code(d, &d->code[i], text);
    for (uint32_t i = 0; i < d->n_dumps; i++) cli_tile_dump_print(&d->c, &d->dumps[i], text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}

/* --- JSON. --- */

static void json_segments(JsonBuilder *b, const struct isa_image *image) {
    json_builder_set_member_name(b, "segments");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        json_builder_begin_object(b);
        cli_tile_json_int(b, "address", s->address);
        cli_tile_json_int(b, "bytes", s->size);
        cli_tile_json_text(b, "name", s->name);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
    json_builder_set_member_name(b, "symbols");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < image->symbols->len; i++) {
        const struct isa_image_symbol *s = &g_array_index(image->symbols, struct isa_image_symbol, i);
        if (s->absolute) continue;
        json_builder_begin_object(b);
        cli_tile_json_text(b, "name", s->name);
        cli_tile_json_int(b, "address", s->address);
        cli_tile_json_int(b, "bytes", s->size);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void json_code(JsonBuilder *b, const struct dump *d, const struct code *c) {
    GString *text = g_string_new(NULL);
    print_where(d, c->address, text);
    json_builder_begin_object(b);
    cli_tile_json_text(b, "where", text->str);
    json_builder_set_member_name(b, "slots");
    json_builder_begin_array(b);
    uint32_t at = c->address;
    for (uint32_t k = 0; k < c->n && sram_range_ok(at, 8); k++, at = slot_end(d, at)) {
        g_string_truncate(text, 0);
        cli_tile_slot(&d->c, at, dump_mode(d), text);
        json_builder_begin_object(b);
        cli_tile_json_int(b, "address", at);
        cli_tile_json_text(b, "text", text->str);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
    json_builder_end_object(b);
    g_string_free(text, true);
}

static void print_json(const struct dump *d) {
    JsonBuilder *b = json_builder_new();
    json_builder_begin_object(b);
    cli_tile_json_int(b, "tile", (uint64_t)d->tile);
    json_segments(b, d->c.image);
    json_builder_set_member_name(b, "code");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < d->n_code; i++) json_code(b, d, &d->code[i]);
    json_builder_end_array(b);
    json_builder_set_member_name(b, "dumps");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < d->n_dumps; i++) cli_tile_json_dump(b, &d->c, &d->dumps[i]);
    json_builder_end_array(b);
    json_builder_end_object(b);
    cli_tile_json_print(b);
}

int cmd_tile_dump(int argc, char **argv) {
    struct dump d = {.c = CLI_TILE_DEFAULTS("tile-dump")};
    const GOptionEntry entries[] = {
        {"tile", 't', 0, G_OPTION_ARG_INT, &d.tile, "Logical tile of a package (0)", "N"},
        {"code", 0, 0, G_OPTION_ARG_STRING_ARRAY, &d.code_specs, "Disassembly", "ADDR|SYM[:N]"},
        {"dump", 0, 0, G_OPTION_ARG_STRING_ARRAY, &d.dump_specs, "Memory",
         CLI_TILE_DUMP_SPEC},
        {"supervisor", 's', 0, G_OPTION_ARG_NONE, &d.c.supervisor, "Sources start as .supervisor", NULL},
        {"define", 'D', 0, G_OPTION_ARG_STRING_ARRAY, &d.c.defines, "For the preprocessor",
         "NAME[=VALUE]"},
        {"include", 'I', 0, G_OPTION_ARG_FILENAME_ARRAY, &d.c.includes, "For the preprocessor", "DIR"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &d.json, "One JSON object", NULL},
        {0}};
    bool done = false;
    int status = CLI_WRONG_INPUT;
    if (cli_options(&argc, &argv, entries, "PACKAGE.ipuexe|FILE.S|OBJECT...", NULL, &done))
        status = done || prepare(&d, argv + 1) ? CLI_OK : CLI_WRONG_INPUT;
    if (status == CLI_OK && !done) (d.json ? print_json : print_text)(&d);
    cli_tile_close(&d.c);
    package_free(d.package);
    g_strfreev(d.dump_specs);
    g_strfreev(d.code_specs);
    g_free(d.code);
    g_free(d.dumps);
    return status;
}
