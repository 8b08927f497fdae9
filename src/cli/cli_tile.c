/* Sources and objects to one tile, with what the options put into memory and registers. */
#include "cli/cli_tile.h"

#include "cli/cli.h"
#include "isa/isa_form.h"
#include "numeric/num_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_VERTEX = 0x60000, MAX_FILE = 64 << 20 };

bool cli_tile_refuse(const struct cli_tile *c, GError *error) {
    if (c->said == NULL) {
        cli_fail(c->verb, error);
        return false;
    }
    g_string_append_printf(c->said, "%s (E%d)\n", error->message, error->code);
    g_error_free(error);
    return false;
}

/* --- Files to an image. --- */

static char **cpp_flags(const struct cli_tile *c) {
    GPtrArray *flags = g_ptr_array_new();
    for (char **d = c->defines; d != NULL && *d != NULL; d++)
        g_ptr_array_add(flags, g_strdup_printf("-D%s", *d));
    for (char **i = c->includes; i != NULL && *i != NULL; i++)
        g_ptr_array_add(flags, g_strdup_printf("-I%s", *i));
    g_ptr_array_add(flags, NULL);
    return (char **)g_ptr_array_free(flags, FALSE);
}

static struct isa_object *read_source(const struct cli_tile *c, const char *path,
                                      struct isa_messages *messages, GError **error) {
    char **flags = cpp_flags(c), *text = NULL;
    size_t size = 0;
    const struct isa_asm_options options = {.mode = c->supervisor ? ISA_MODE_S : ISA_MODE_W};
    struct isa_object *o = NULL;
    if (isa_preprocess(path, (const char *const *)flags, &text, &size, error))
        o = isa_asm_source(text, size, path, &options, messages);
    g_strfreev(flags);
    g_free(text);
    return o;
}

/* Damaged ones too, which the reader refuses: no source has bytes that are 0. */
static bool is_object(const char *path, const uint8_t *data, size_t size) {
    return g_str_has_suffix(path, ".o") || (size > 4 && memcmp(data, "\177ELF", 4) == 0) ||
           (size != 0 && memchr(data, 0, size) != NULL);
}

/* A relocatable object, or a linked image as *ret_image. */
static struct isa_object *read_file(const struct cli_tile *c, const char *path,
                                    struct isa_image **ret_image, struct isa_messages *messages,
                                    GError **error) {
    uint8_t *data;
    size_t size;
    if (!file_read(path, MAX_FILE, &data, &size, error)) return NULL;
    if (!is_object(path, data, size)) {
        g_free(data);
        return read_source(c, path, messages, error);
    }
    const bool image = size > 17 && data[16] == 2; /* e_type: executable */
    struct isa_object *o = NULL;
    if (image)
        *ret_image = isa_image_read(data, size, path, error);
    else
        o = isa_object_read(data, size, path, error);
    g_free(data);
    return o;
}

static void print_messages(struct isa_messages *messages) {
    GString *text = g_string_new(NULL);
    isa_messages_print(messages, text);
    fputs(text->str, stderr);
    g_string_free(text, true);
    isa_messages_clear(messages);
}

/* A linked image stands alone. */
static bool read_all(struct cli_tile *c, char **paths, GPtrArray *objects, struct isa_messages *messages,
                     GError **error) {
    for (char **p = paths; *p != NULL; p++) {
        struct isa_object *o = read_file(c, *p, &c->image, messages, error);
        if (o != NULL) g_ptr_array_add(objects, o);
        if (c->image != NULL && (objects->len != 0 || p != paths || p[1] != NULL)) {
            diag_set(error, CLI_TILE_IMAGE, *p);
            return false;
        }
        if (o == NULL && c->image == NULL) return false;
    }
    return true;
}

static bool make_image(struct cli_tile *c, char **paths) {
    GPtrArray *objects = g_ptr_array_new_with_free_func((GDestroyNotify)isa_object_free);
    struct isa_messages messages;
    GError *error = NULL;
    isa_messages_init(&messages);
    bool ok = read_all(c, paths, objects, &messages, &error);
    if (ok && c->image == NULL) {
        const struct isa_layout layout = {0};
        c->image = isa_link((struct isa_object *const *)objects->pdata, objects->len, &layout,
                            &messages);
    }
    g_ptr_array_free(objects, true);
    print_messages(&messages);
    if (ok && c->image != NULL && c->image->hardware) {
        diag_set(&error, ISA_HARDWARE_IMAGE);
        ok = false;
    }
    if (error != NULL) cli_fail(c->verb, error);
    return ok && c->image != NULL;
}

static bool load_image(struct cli_tile *c) {
    for (uint32_t i = 0; i < c->image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(c->image->segments, struct isa_segment, i);
        if (s->size != 0 && !sram_range_ok(s->address, s->size)) {
            GError *error = NULL;
            diag_set(&error, CLI_TILE_SEGMENT, s->name, s->address, (gint64)s->address + s->size);
            return cli_tile_refuse(c, error);
        }
        if (s->bytes == NULL || s->size == 0) continue; /* unwritten */
        memcpy(sram_at(c->sram, 0, s->address), s->bytes, s->size);
        sram_mark_written(c->sram, 0, s->address, s->size);
    }
    return true;
}

/* --- Values of options. --- */

char *cli_tile_suggest(const struct cli_tile *c, const char *name) {
    GPtrArray *names = g_ptr_array_new();
    for (uint32_t i = 0; i < c->image->symbols->len; i++)
        g_ptr_array_add(names, g_array_index(c->image->symbols, struct isa_image_symbol, i).name);
    char *text = isa_suggest(name, (const char *const *)names->pdata, names->len);
    g_ptr_array_free(names, true);
    return text;
}

/* A whole 32-bit number, signed or not. */
static bool number(const char *text, uint32_t *ret) {
    char *end;
    errno = 0;
    const long long v = strtoll(text, &end, 0);
    if (end == text || *end != 0 || errno != 0 || v < INT32_MIN || v > UINT32_MAX) return false;
    *ret = (uint32_t)v;
    return true;
}

bool cli_tile_address(const struct cli_tile *c, const char *text, uint32_t *ret) {
    if (number(text, ret)) return true;
    const size_t n = strcspn(text, "+-");
    uint32_t more = 0;
    if (text[n] != 0 && !number(text + n + 1, &more)) return false;
    char *name = g_strndup(text, n);
    const struct isa_image_symbol *s = isa_image_find(c->image, name);
    const bool ok = s != NULL || number(name, ret);
    g_free(name);
    if (!ok) return false;
    const uint32_t base = s != NULL ? s->address : *ret;
    *ret = text[n] == '-' ? base - more : base + more;
    return true;
}

bool cli_tile_want_address(const struct cli_tile *c, const char *option, const char *text, uint32_t *ret) {
    if (cli_tile_address(c, text, ret)) return true;
    GError *error = NULL;
    char *name = g_strndup(text, strcspn(text, "+-")), *hint = cli_tile_suggest(c, name);
    diag_set(&error, CLI_TILE_SYMBOL, option, text, hint);
    g_free(name);
    g_free(hint);
    return cli_tile_refuse(c, error);
}

bool cli_tile_value(const struct cli_tile *c, const char *option, const char *text, uint32_t *ret) {
    char *end;
    const size_t n = strlen(text);
    const bool hex = g_str_has_prefix(text, "0x");
    if (n > 1 && !hex && (text[n - 1] == 'f' || text[n - 1] == 'h')) {
        const double v = g_ascii_strtod(text, &end);
        if (end == text + n - 1) {
            *ret = text[n - 1] == 'f' ? num_f32_bits((float)v)
                                      : num_f16_from_f32((float)v) * 0x10001u;
            return true;
        }
    }
    return cli_tile_want_address(c, option, text, ret);
}

/* ADDR SIGN REST; both ends are not empty. */
static bool split(const struct cli_tile *c, const char *option, char *text, char sign,
                  const char *expected, uint32_t *ret_address, char **ret_rest) {
    char *at = strchr(text, sign);
    if (at == NULL || at == text || at[1] == 0) {
        GError *error = NULL;
        diag_set(&error, CLI_TILE_SPEC, option, text, expected);
        return cli_tile_refuse(c, error);
    }
    *at = 0;
    const bool ok = cli_tile_want_address(c, option, text, ret_address);
    *at = sign;
    *ret_rest = at + 1;
    return ok;
}

static bool inside(const struct cli_tile *c, const char *option, const char *text, uint32_t address,
                   uint64_t size) {
    if (sram_range_ok(address, size)) return true;
    GError *error = NULL;
    diag_set(&error, CLI_TILE_OUTSIDE, option, text, address, (gint64)(address + size),
             (uint32_t)TARGET_SRAM_BASE, (uint32_t)TARGET_SRAM_END);
    return cli_tile_refuse(c, error);
}

/* Bytes of an option to memory; two options never say two things about one byte. */
static bool put_bytes(struct cli_tile *c, const struct cli_tile_range *r, const void *data) {
    if (!inside(c, r->option, r->text, r->address, r->bytes)) return false;
    for (uint32_t i = 0; i < c->given->len; i++) {
        const struct cli_tile_range *o = &g_array_index(c->given, struct cli_tile_range, i);
        if (r->address >= o->address + o->bytes || o->address >= r->address + r->bytes) continue;
        GError *error = NULL;
        diag_set(&error, CLI_TILE_OVERLAP, r->option, r->text, o->option, o->text,
                 MAX(r->address, o->address));
        return cli_tile_refuse(c, error);
    }
    memcpy(sram_at(c->sram, 0, r->address), data, r->bytes);
    sram_mark_written(c->sram, 0, r->address, r->bytes);
    g_array_append_val(c->given, *r);
    return true;
}

static bool apply_data(struct cli_tile *c, char *text) {
    uint32_t address;
    char *path;
    if (!split(c, "--data", text, '=', "ADDR=FILE", &address, &path)) return false;
    uint8_t *data;
    size_t size;
    GError *error = NULL;
    if (!file_read(path, MAX_FILE, &data, &size, &error)) return cli_tile_refuse(c, error);
    const struct cli_tile_range r = {address, (uint32_t)size, "--data", text};
    if (size == 0) diag_set(&error, CLI_TILE_EMPTY, "--data", text);
    const bool ok = error == NULL ? put_bytes(c, &r, data) : cli_tile_refuse(c, error);
    g_free(data);
    return ok;
}

static bool apply_words(struct cli_tile *c, char *text) {
    uint32_t address;
    char *rest;
    if (!split(c, "--word", text, '=', "ADDR=VALUE,VALUE...", &address, &rest)) return false;
    if (address % 4 != 0) {
        GError *error = NULL;
        diag_set(&error, CLI_TILE_ALIGN, "--word", text, address, 4u);
        return cli_tile_refuse(c, error);
    }
    char **values = g_strsplit(rest, ",", -1);
    const uint32_t n = g_strv_length(values);
    uint32_t *words = g_new0(uint32_t, n);
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) ok = cli_tile_value(c, "--word", values[i], &words[i]);
    ok = ok && put_bytes(c, &(struct cli_tile_range){address, 4 * n, "--word", text}, words);
    g_free(words);
    g_strfreev(values);
    return ok;
}

static void set_register(struct cli_tile *c, bool m, uint32_t n, uint32_t value) {
    const uint32_t bit = 1u << (m ? n : 16 + n);
    if (c->supervisor) {
        c->tile.s.m[n] = value;
        c->tile.s.defined |= bit;
        return;
    }
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++) {
        (m ? c->tile.w[w].m : c->tile.w[w].a)[n] = value;
        c->tile.w[w].defined |= bit;
    }
}

bool cli_tile_register(const char *text, size_t length, bool supervisor, bool *ret_m, uint32_t *ret_n) {
    if (length > 0 && text[0] == '$') text++, length--;
    if (length < 2 || length > 3 || (text[0] != 'm' && (text[0] != 'a' || supervisor))) return false;
    uint32_t n = 0;
    for (size_t i = 1; i < length; i++) {
        if (!g_ascii_isdigit(text[i])) return false;
        n = 10 * n + (uint32_t)(text[i] - '0');
    }
    *ret_m = text[0] == 'm';
    *ret_n = n;
    return n < (*ret_m ? 12 : 8);
}

static bool apply_set(struct cli_tile *c, char *text) {
    const char *sign = strchr(text, '=');
    bool m;
    uint32_t n, value;
    GError *error = NULL;
    if (sign == NULL || sign[1] == 0) {
        diag_set(&error, CLI_TILE_SPEC, "--set", text, "REG=VALUE");
        return cli_tile_refuse(c, error);
    }
    if (!cli_tile_register(text, (size_t)(sign - text), c->supervisor, &m, &n)) {
        diag_set(&error, CLI_TILE_REGISTER, text, c->supervisor ? "supervisor" : "worker",
                 c->supervisor ? "m0..m11" : "m0..m11 and a0..a7");
        return cli_tile_refuse(c, error);
    }
    if (!cli_tile_value(c, "--set", sign + 1, &value)) return false;
    set_register(c, m, n, value);
    return true;
}

static bool apply_tail(struct cli_tile *c, char *text) {
    uint32_t address, bytes;
    char *rest;
    if (!split(c, "--tail", text, ':', "ADDR:LEN", &address, &rest)) return false;
    if (!cli_tile_want_address(c, "--tail", rest, &bytes)) return false;
    if (!inside(c, "--tail", text, address, bytes)) return false;
    tile_tail_add(&c->tile, address, bytes);
    return true;
}

static bool apply_all(struct cli_tile *c, char **texts, bool (*apply)(struct cli_tile *, char *)) {
    for (; texts != NULL && *texts != NULL; texts++)
        if (!apply(c, *texts)) return false;
    return true;
}

static bool choose(const struct cli_tile *c, const char *option, const char *text,
                   const char *const *names, int *ret) {
    if (text == NULL) return true;
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = i;
            return true;
        }
    GError *error = NULL;
    char *known = g_strjoinv(", ", (char **)(void *)names);
    diag_set(&error, CLI_CHOICE, option, text, known);
    g_free(known);
    return cli_tile_refuse(c, error);
}

static bool make_config(struct cli_tile *c) {
    static const char *const AMP[] = {"exact", "window", NULL};
    static const char *const SIMD[] = {"auto", "scalar", "avx2", "avx512", NULL};
    int amp = 0, simd = 0;
    if (!choose(c, "--amp-model", c->amp, AMP, &amp) || !choose(c, "--simd", c->simd, SIMD, &simd))
        return false;
    if (simd > (int)tile_simd_best()) {
        GError *error = NULL;
        diag_set(&error, CLI_TILE_SIMD, c->simd, SIMD[tile_simd_best()]);
        return cli_tile_refuse(c, error);
    }
    c->config = (struct tile_config){.permissive = c->permissive, .races = c->races,
                                     .plain = c->plain, .interleave = c->interleave,
                                     .timing_only = c->timing,
                                     .standalone = true, .exp_slots = (uint8_t)c->exp_slots,
                                     .amp_model = (enum tile_amp_model)amp,
                                     .simd = (enum tile_simd)simd};
    return true;
}

/* --- Start. --- */

static bool is_code(const struct cli_tile *c, uint32_t address) {
    for (uint32_t i = 0; i < c->image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(c->image->segments, struct isa_segment, i);
        if (s->exec && address >= s->address && address - s->address < s->size) return true;
    }
    return false;
}

static bool find_entry(struct cli_tile *c) {
    if (c->entry != NULL) return cli_tile_want_address(c, "--entry", c->entry, &c->entry_pc);
    c->entry_pc = c->image->entry;
    for (uint32_t i = 0; c->entry_pc == 0 && i < c->image->symbols->len; i++) {
        const struct isa_image_symbol *s =
            &g_array_index(c->image->symbols, struct isa_image_symbol, i);
        if (!s->absolute && s->binding == ISA_GLOBAL && is_code(c, s->address)) c->entry_pc = s->address;
    }
    if (c->entry_pc != 0) return true;
    GError *error = NULL;
    diag_set(&error, CLI_TILE_NO_ENTRY);
    return cli_tile_refuse(c, error);
}

static bool find_vertex(struct cli_tile *c) {
    c->vertex_base = DEFAULT_VERTEX;
    const struct isa_image_symbol *s = isa_image_find(c->image, "vertex");
    if (s != NULL) c->vertex_base = s->address;
    if (c->vertex == NULL) return true;
    if (!cli_tile_want_address(c, "--vertex", c->vertex, &c->vertex_base)) return false;
    if (c->vertex_base % 4 == 0) return true;
    GError *error = NULL;
    diag_set(&error, CLI_TILE_ALIGN, "--vertex", c->vertex, c->vertex_base, 4u);
    return cli_tile_refuse(c, error);
}

static void start(struct cli_tile *c) {
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++)
        c->tile.worker_base[w] = TARGET_WORKER_STACK_BASE + w * TARGET_WORKER_STACK_BYTES;
    if (!c->supervisor) {
        tile_start_workers(&c->tile, c->entry_pc, c->vertex_base, (uint32_t)c->workers, 0);
        return;
    }
    set_register(c, true, 10, 0); /* the return address that ends the program */
    set_register(c, true, 11, TARGET_SUPERVISOR_STACK_TOP);
    tile_start(&c->tile, c->entry_pc, 0);
}

/* Numbers in their ranges; what only workers have is refused beside --supervisor. */
static bool check_options(struct cli_tile *c, char **paths) {
    GError *error = NULL;
    const char *idle = c->workers != CLI_TILE_NOT_GIVEN ? "--workers" : c->vertex != NULL ? "--vertex" : NULL;
    if (c->supervisor && idle != NULL)
        diag_set(&error, CLI_IRRELEVANT, idle, "worker code", "--supervisor: the program launches its workers");
    if (c->workers == CLI_TILE_NOT_GIVEN) c->workers = TILE_N_WORKERS;
    if (c->exp_slots == CLI_TILE_NOT_GIVEN) c->exp_slots = 2;
    if (error == NULL && *paths == NULL) diag_set(&error, CLI_ARGUMENTS, "give a source or an object");
    const bool ok = error == NULL &&
                    cli_number_check("--workers", c->workers, 1, TILE_N_WORKERS, &error) &&
                    cli_number_check("--exp-slots", c->exp_slots, 1, 8, &error) &&
                    cli_number_check("--max-cycles", c->max_cycles, 1, INT64_MAX, &error);
    return ok || cli_tile_refuse(c, error);
}

bool cli_tile_open(struct cli_tile *c, char **paths) {
    if (!check_options(c, paths)) return false;
    c->sram = sram_new(1);
    c->given = g_array_new(false, false, sizeof(struct cli_tile_range));
    if (!make_config(c) || !make_image(c, paths)) return false;
    tile_init(&c->tile, &c->config, c->sram, 0);
    if (!load_image(c) || !find_entry(c) || !find_vertex(c)) return false;
    start(c);
    return apply_all(c, c->data, apply_data) && apply_all(c, c->words, apply_words) &&
           apply_all(c, c->set, apply_set) && apply_all(c, c->tails, apply_tail);
}

bool cli_tile_restart(struct cli_tile *c) {
    tile_reset(&c->tile);
    start(c);
    return apply_all(c, c->set, apply_set);
}

void cli_tile_close(struct cli_tile *c) {
    if (c->tile.config != NULL) tile_free(&c->tile);
    if (c->image != NULL) isa_image_free(c->image);
    if (c->given != NULL) g_array_free(c->given, true);
    sram_free(c->sram);
    char *single[] = {c->entry, c->vertex, c->amp, c->simd};
    for (uint32_t i = 0; i < ARRAY_LEN(single); i++) g_free(single[i]);
    char **lists[] = {c->data, c->words, c->set, c->tails, c->defines, c->includes};
    for (uint32_t i = 0; i < ARRAY_LEN(lists); i++) g_strfreev(lists[i]);
}
