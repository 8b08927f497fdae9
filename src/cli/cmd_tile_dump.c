/* ipu-stack tile-dump: what lies in one tile's memory before anything runs: of a package, or of
 * sources and objects as tile-run loads them. */
#include "cli/cli.h"
#include "cli/cli_tile.h"
#include "package/package.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dump {
    struct cli_tile c;
    struct package *package; /* NULL: sources and objects */
    gint tile;
    char **dumps, **code;
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

/* The tile's segments to SRAM; the tile of struct cli_tile is number 0. */
static bool load_package(struct dump *d, const char *path) {
    GError *error = NULL;
    d->package = package_read(path, &error);
    if (d->package == NULL) {
        cli_fail("tile-dump", error);
        return false;
    }
    const struct package *p = d->package;
    if (d->tile < 0 || (uint32_t)d->tile >= p->meta.n_tiles) {
        fprintf(stderr, "ipu-stack tile-dump: %s has tiles 0..%u\n", path, p->meta.n_tiles - 1);
        return false;
    }
    d->c.sram = sram_new(1);
    d->c.supervisor = true;
    for (uint32_t i = p->first_segment[d->tile]; i < p->first_segment[d->tile + 1]; i++) {
        const struct package_segment *s = &p->segments[i];
        if (s->kind != PACKAGE_SEGMENT_ZERO)
            memcpy(sram_at(d->c.sram, 0, s->address), p->image + s->offset, s->bytes);
        sram_mark_written(d->c.sram, 0, s->address, s->bytes);
    }
    return true;
}

static void print_package_segments(const struct dump *d) {
    const struct package *p = d->package;
    printf("tile %d: %u segments\n", d->tile,
           p->first_segment[d->tile + 1] - p->first_segment[d->tile]);
    for (uint32_t i = p->first_segment[d->tile]; i < p->first_segment[d->tile + 1]; i++) {
        const struct package_segment *s = &p->segments[i];
        printf("  0x%05x..0x%05x  %7u bytes  %s\n", s->address, s->address + s->bytes, s->bytes,
               kind_name(s->kind));
    }
}

static void print_image_segments(const struct dump *d) {
    for (uint32_t i = 0; i < d->c.image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(d->c.image->segments, struct isa_segment, i);
        printf("  0x%05x..0x%05x  %7u bytes  %s\n", s->address, s->address + s->size, s->size, s->name);
    }
    for (uint32_t i = 0; i < d->c.image->symbols->len; i++) {
        const struct isa_image_symbol *s =
            &g_array_index(d->c.image->symbols, struct isa_image_symbol, i);
        if (!s->absolute) printf("  0x%05x  %s\n", s->address, s->name);
    }
}

/* Symbols of a package are asked by address; ADDR is a number there. */
static bool code_address(const struct dump *d, const char *text, uint32_t *ret) {
    if (d->package == NULL) return cli_tile_address(&d->c, text, ret);
    char *end;
    *ret = (uint32_t)strtoul(text, &end, 0);
    if (end != text && *end == 0) return true;
    for (uint32_t i = 0; i < d->package->n_symbols; i++)
        if (strcmp(d->package->symbols[i].name, text) == 0) {
            *ret = d->package->symbols[i].address;
            return true;
        }
    return false;
}

static void print_label(const struct dump *d, uint32_t address) {
    GString *text = g_string_new(NULL);
    if (d->package != NULL)
        package_symbolize(d->package, (uint32_t)d->tile, address, text);
    else
        cli_tile_where(&d->c, address, text);
    printf("%s:\n", text->str);
    g_string_free(text, true);
}

/* ADDR[:N]: N slots of disassembly. */
static bool print_code(const struct dump *d, const char *spec) {
    char **part = g_strsplit(spec, ":", 2);
    uint32_t at = 0;
    const unsigned long n = part[0] != NULL && part[1] != NULL ? strtoul(part[1], NULL, 0) : 16;
    const bool ok = part[0] != NULL && code_address(d, part[0], &at) && at % 4 == 0;
    g_strfreev(part);
    if (!ok) {
        fprintf(stderr, "ipu-stack tile-dump: '%s': expected ADDR|SYM[:N]\n", spec);
        return false;
    }
    print_label(d, at);
    for (unsigned long k = 0; k < n && sram_range_ok(at, 8); k++) {
        uint32_t word;
        memcpy(&word, sram_at(d->c.sram, 0, at), 4);
        GString *text = g_string_new(NULL);
        cli_tile_slot(&d->c, at, text);
        printf("  0x%05x  %s\n", at, text->str);
        g_string_free(text, true);
        at += word >> 31 && at % 8 == 0 ? 8 : 4;
    }
    return true;
}

static int run(struct dump *d, char **paths) {
    const bool package = paths[0] != NULL && is_package(paths[0]);
    if (!(package ? load_package(d, paths[0]) : cli_tile_open(&d->c, paths))) return CLI_WRONG_INPUT;
    if (package)
        print_package_segments(d);
    else
        print_image_segments(d);
    bool ok = true;
    for (char **c = d->code; ok && c != NULL && *c != NULL; c++) ok = print_code(d, *c);
    GString *text = g_string_new(NULL);
    for (char **s = d->dumps; ok && s != NULL && *s != NULL; s++) ok = cli_tile_dump(&d->c, *s, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
    return ok ? CLI_OK : CLI_WRONG_INPUT;
}

int cmd_tile_dump(int argc, char **argv) {
    struct dump d = {.c = {.verb = "tile-dump"}};
    const GOptionEntry entries[] = {
        {"tile", 't', 0, G_OPTION_ARG_INT, &d.tile, "Logical tile of a package (0)", "N"},
        {"code", 0, 0, G_OPTION_ARG_STRING_ARRAY, &d.code, "Disassembly", "ADDR|SYM[:N]"},
        {"dump", 0, 0, G_OPTION_ARG_STRING_ARRAY, &d.dumps, "Memory",
         "ADDR:LEN[:words|f16|f32|f8|bytes]"},
        {"supervisor", 's', 0, G_OPTION_ARG_NONE, &d.c.supervisor, "Sources start as .supervisor", NULL},
        {"define", 'D', 0, G_OPTION_ARG_STRING_ARRAY, &d.c.defines, "For the preprocessor",
         "NAME[=VALUE]"},
        {"include", 'I', 0, G_OPTION_ARG_FILENAME_ARRAY, &d.c.includes, "For the preprocessor", "DIR"},
        {0}};
    bool done;
    int status = CLI_WRONG_INPUT;
    if (cli_options(&argc, &argv, entries, "PACKAGE.ipuexe|FILE.S|OBJECT...", NULL, &done))
        status = done ? CLI_OK : run(&d, argv + 1);
    cli_tile_close(&d.c);
    package_free(d.package);
    g_strfreev(d.dumps);
    g_strfreev(d.code);
    return status;
}
