/* Sources and objects to one tile; texts of what is there. */
#include "cli/cli_tile.h"

#include "cli/cli.h"
#include "numeric/num_format.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_VERTEX = 0x60000, MAX_FILE = 64 << 20 };

static bool complain(const struct cli_tile *c, const char *what, const char *expected) {
    fprintf(stderr, "ipu-stack %s: '%s': %s\n", c->verb, what, expected);
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

static bool is_object(const uint8_t *data, size_t size) {
    return size > 4 && memcmp(data, "\177ELF", 4) == 0;
}

/* A relocatable object, or a linked image as *ret_image. */
static struct isa_object *read_file(const struct cli_tile *c, const char *path,
                                    struct isa_image **ret_image, struct isa_messages *messages,
                                    GError **error) {
    uint8_t *data;
    size_t size;
    if (!file_read(path, MAX_FILE, &data, &size, error)) return NULL;
    if (!is_object(data, size)) {
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

static bool make_image(struct cli_tile *c, char **paths) {
    GPtrArray *objects = g_ptr_array_new_with_free_func((GDestroyNotify)isa_object_free);
    struct isa_messages messages;
    GError *error = NULL;
    isa_messages_init(&messages);
    bool ok = true;
    for (; ok && *paths != NULL; paths++) {
        struct isa_object *o = read_file(c, *paths, &c->image, &messages, &error);
        if (o != NULL) g_ptr_array_add(objects, o);
        ok = o != NULL || c->image != NULL;
    }
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

static void load_image(struct cli_tile *c) {
    for (uint32_t i = 0; i < c->image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(c->image->segments, struct isa_segment, i);
        if (s->bytes == NULL || s->size == 0 || !sram_range_ok(s->address, s->size)) continue;
        memcpy(sram_at(c->sram, 0, s->address), s->bytes, s->size);
        sram_mark_written(c->sram, 0, s->address, s->size);
    }
}

/* --- Values of options. --- */

bool cli_tile_address(const struct cli_tile *c, const char *text, uint32_t *ret) {
    char *end;
    errno = 0;
    const unsigned long v = strtoul(text, &end, 0);
    if (end != text && *end == 0 && errno == 0) {
        *ret = (uint32_t)v;
        return true;
    }
    const char *plus = strchr(text, '+');
    char *name = plus ? g_strndup(text, (size_t)(plus - text)) : g_strdup(text);
    const struct isa_image_symbol *s = isa_image_find(c->image, name);
    g_free(name);
    if (s == NULL) return false;
    *ret = s->address + (plus ? (uint32_t)strtoul(plus + 1, NULL, 0) : 0);
    return true;
}

/* A word: number, symbol, F32 with f, F16 in both halves with h. */
static bool word_value(const struct cli_tile *c, const char *text, uint32_t *ret) {
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
    const long long v = strtoll(text, &end, 0);
    if (end != text && *end == 0) {
        *ret = (uint32_t)v;
        return true;
    }
    return cli_tile_address(c, text, ret);
}

/* Splits at `sign`; the part before it is an address. */
static bool split_address(const struct cli_tile *c, char *text, char sign, uint32_t *ret_address,
                          char **ret_rest) {
    char *at = strchr(text, sign);
    if (at == NULL) return false;
    *at = 0;
    const bool ok = cli_tile_address(c, text, ret_address);
    *at = sign;
    *ret_rest = at + 1;
    return ok;
}

static bool put_bytes(struct cli_tile *c, const char *what, uint32_t address, const void *data,
                      size_t size) {
    if (!sram_range_ok(address, size)) return complain(c, what, "does not fit in SRAM");
    memcpy(sram_at(c->sram, 0, address), data, size);
    sram_mark_written(c->sram, 0, address, (uint32_t)size);
    return true;
}

static bool apply_data(struct cli_tile *c, char *text) {
    uint32_t address;
    char *path;
    if (!split_address(c, text, '=', &address, &path))
        return complain(c, text, "expected ADDR=FILE");
    uint8_t *data;
    size_t size;
    GError *error = NULL;
    if (!file_read(path, MAX_FILE, &data, &size, &error)) {
        cli_fail(c->verb, error);
        return false;
    }
    const bool ok = put_bytes(c, text, address, data, size);
    g_free(data);
    return ok;
}

static bool apply_words(struct cli_tile *c, char *text) {
    uint32_t address;
    char *rest;
    if (!split_address(c, text, '=', &address, &rest))
        return complain(c, text, "expected ADDR=VALUE,VALUE...");
    char **values = g_strsplit(rest, ",", -1);
    bool ok = true;
    for (char **v = values; ok && *v != NULL; v++, address += 4) {
        uint32_t word;
        ok = word_value(c, *v, &word) || complain(c, *v, "expected a number or a symbol");
        ok = ok && put_bytes(c, text, address, &word, 4);
    }
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

static bool apply_set(struct cli_tile *c, char *text) {
    const char *name = text[0] == '$' ? text + 1 : text;
    char *end;
    const bool m = name[0] == 'm', a = name[0] == 'a';
    const unsigned long n = m || a ? strtoul(name + 1, &end, 10) : 99;
    const unsigned long last = m ? 11 : c->supervisor ? 0 : 7;
    if (n > last || (a && c->supervisor) || *end != '=')
        return complain(c, text, "expected m0..m11=VALUE or, for workers, a0..a7=VALUE");
    uint32_t value;
    if (!word_value(c, end + 1, &value)) return complain(c, text, "expected a number or a symbol");
    set_register(c, m, (uint32_t)n, value);
    return true;
}

static bool apply_tail(struct cli_tile *c, char *text) {
    uint32_t address, bytes;
    char *rest;
    if (!split_address(c, text, ':', &address, &rest) || !cli_tile_address(c, rest, &bytes))
        return complain(c, text, "expected ADDR:LEN");
    tile_tail_add(&c->tile, address, bytes);
    return true;
}

static bool apply_all(struct cli_tile *c, char **texts, bool (*apply)(struct cli_tile *, char *)) {
    for (; texts != NULL && *texts != NULL; texts++)
        if (!apply(c, *texts)) return false;
    return true;
}

static bool choose(const struct cli_tile *c, const char *text, const char *const *names, int *ret) {
    if (text == NULL) return true;
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0) {
            *ret = i;
            return true;
        }
    return complain(c, text, "is none of the choices; see --help");
}

static bool make_config(struct cli_tile *c) {
    static const char *const AMP[] = {"exact", "window", NULL};
    static const char *const SIMD[] = {"auto", "scalar", "avx2", "avx512", NULL};
    int amp = 0, simd = 0;
    if (!choose(c, c->amp, AMP, &amp) || !choose(c, c->simd, SIMD, &simd)) return false;
    if (c->exp_slots < 0 || c->exp_slots > 8) return complain(c, "exp-slots", "expected 1..8");
    if (simd > (int)tile_simd_best()) return complain(c, c->simd, "this machine does not have it");
    c->config = (struct tile_config){.permissive = c->permissive, .races = c->races,
                                     .plain = c->plain, .interleave = c->interleave,
                                     .timing_only = c->timing,
                                     .standalone = true, .exp_slots = (uint8_t)c->exp_slots,
                                     .amp_model = (enum tile_amp_model)amp,
                                     .simd = (enum tile_simd)simd};
    return true;
}

/* --- Start. --- */

static bool find_entry(struct cli_tile *c) {
    if (c->entry != NULL)
        return cli_tile_address(c, c->entry, &c->entry_pc) ||
               complain(c, c->entry, "no such symbol");
    c->entry_pc = c->image->entry;
    for (uint32_t i = 0; c->entry_pc == 0 && i < c->image->symbols->len; i++) {
        const struct isa_image_symbol *s =
            &g_array_index(c->image->symbols, struct isa_image_symbol, i);
        if (!s->absolute && s->binding == ISA_GLOBAL && s->address < TARGET_REGION1_BASE)
            c->entry_pc = s->address;
    }
    return c->entry_pc != 0 || complain(c, "entry", "no global symbol; give --entry");
}

static bool find_vertex(struct cli_tile *c) {
    c->vertex_base = DEFAULT_VERTEX;
    if (c->vertex == NULL) {
        const struct isa_image_symbol *s = isa_image_find(c->image, "vertex");
        if (s != NULL) c->vertex_base = s->address;
        return true;
    }
    return cli_tile_address(c, c->vertex, &c->vertex_base) ||
           complain(c, c->vertex, "no such symbol");
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

bool cli_tile_open(struct cli_tile *c, char **paths) {
    if (c->workers == 0) c->workers = TILE_N_WORKERS;
    if (c->max_cycles == 0) c->max_cycles = 100000000;
    if (c->workers < 1 || c->workers > TILE_N_WORKERS)
        return complain(c, "workers", "expected 1..6");
    if (*paths == NULL) return complain(c, "FILE", "a source or object is needed; see --help");
    c->sram = sram_new(1);
    if (!make_config(c) || !make_image(c, paths)) return false;
    tile_init(&c->tile, &c->config, c->sram, 0);
    load_image(c);
    if (!find_entry(c) || !find_vertex(c)) return false;
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
    sram_free(c->sram);
    char *single[] = {c->entry, c->vertex, c->amp, c->simd};
    for (uint32_t i = 0; i < ARRAY_LEN(single); i++) g_free(single[i]);
    char **lists[] = {c->data, c->words, c->set, c->tails, c->defines, c->includes};
    for (uint32_t i = 0; i < ARRAY_LEN(lists); i++) g_strfreev(lists[i]);
}

/* --- Texts. --- */

void cli_tile_where(const struct cli_tile *c, uint32_t address, GString *out) {
    const struct isa_image_symbol *s = isa_image_at(c->image, address);
    if (s == NULL)
        g_string_append_printf(out, "0x%x", address);
    else if (s->address == address)
        g_string_append(out, s->name);
    else
        g_string_append_printf(out, "%s+0x%x", s->name, address - s->address);
    const char *file = NULL;
    const uint32_t line = isa_image_line(c->image, address, &file);
    if (file != NULL) g_string_append_printf(out, " (%s:%u)", file, line);
}

/* Words at an address, up to two; number of them. */
static uint32_t words_at(const struct cli_tile *c, uint32_t address, uint32_t ret[2]) {
    uint32_t n = 0;
    for (; n < 2 && address % 4 == 0 && sram_range_ok(address + 4 * n, 4); n++)
        memcpy(&ret[n], sram_at(c->sram, 0, address + 4 * n), 4);
    return n;
}

/* Bytes of the slot at an address. */
static uint32_t slot_bytes(const struct cli_tile *c, uint32_t address) {
    uint32_t w[2];
    const uint32_t n = words_at(c, address, w);
    return n > 0 && w[0] >> 31 && address % 8 == 0 ? 8 : 4;
}

void cli_tile_slot(const struct cli_tile *c, uint32_t address, GString *out) {
    uint32_t w[2] = {0, 0};
    struct isa_slot s;
    const struct isa_print options = {.mode = c->supervisor ? ISA_MODE_B : ISA_MODE_W,
                                      .flag_names = true};
    const uint32_t n = words_at(c, address, w);
    if (isa_slot_decode(w, n, address, &s) == ISA_SLOT_OK)
        isa_slot_print(out, &s, &options);
    else
        g_string_append_printf(out, ".word 0x%08x", w[0]);
}

void cli_tile_window(const struct cli_tile *c, uint32_t pc, uint32_t before, uint32_t after,
                     GString *out) {
    uint32_t ring[16] = {0}, n = 0;
    const struct isa_image_symbol *s = isa_image_at(c->image, pc);
    BUG_ON(before > ARRAY_LEN(ring));
    for (uint32_t at = s != NULL ? s->address : pc; at < pc; at += slot_bytes(c, at))
        ring[n++ % ARRAY_LEN(ring)] = at;
    const uint32_t shown = n < before ? n : before;
    uint32_t at = shown ? ring[(n - shown) % ARRAY_LEN(ring)] : pc;
    for (uint32_t k = 0; k < shown + 1 + after && sram_range_ok(at, 4); k++) {
        g_string_append_printf(out, "%s 0x%05x  ", at == pc ? "=>" : "  ", at);
        cli_tile_slot(c, at, out);
        g_string_append_c(out, '\n');
        at += slot_bytes(c, at);
    }
}

static void print_file(const uint32_t *r, uint32_t n, char file, uint32_t defined, GString *out) {
    for (uint32_t i = 0; i < n; i++) {
        const bool known = defined >> i & 1;
        char *text = known ? g_strdup_printf("%08x", r[i]) : g_strdup("--------");
        g_string_append_printf(out, "%s%c%-2u %s", i % 8 ? "  " : "", file, i, text);
        if (i % 8 == 7 || i == n - 1) g_string_append_c(out, '\n');
        g_free(text);
    }
}

void cli_tile_registers(const struct cli_tile *c, uint32_t context, GString *out) {
    const struct tile *t = &c->tile;
    if (context == 0) {
        print_file(t->s.m, 16, 'm', t->s.defined | 0xf000, out);
        return;
    }
    const struct tile_worker *w = &t->w[context - 1];
    print_file(w->m, 16, 'm', (w->defined & 0xffff) | 0xf000, out);
    print_file(w->a, 8, 'a', w->defined >> 16, out);
    g_string_append_printf(out, "fp_ctl %06x  fp_sts %x  tas %08x  repeat %u\n", w->fp_ctl,
                           w->fp_sts, w->tas, w->repeat_count);
}

static void context_line(const struct cli_tile *c, const char *name, uint32_t pc, const char *state,
                         uint64_t cycle, GString *out) {
    g_string_append_printf(out, "%-10s  %-8s  cycle %-10" G_GUINT64_FORMAT "  0x%05x  ", name, state,
                           cycle, pc);
    if (pc != 0) cli_tile_where(c, pc, out);
    g_string_append_c(out, '\n');
}

void cli_tile_contexts(const struct cli_tile *c, GString *out) {
    static const char *const STATES[] = {"off", "runs", "sync 2", "sync", "row", "trap", "done"};
    const struct tile *t = &c->tile;
    if (c->supervisor)
        context_line(c, "supervisor", t->s.pc, STATES[t->s.state], t->s.ready_cycle, out);
    for (uint32_t i = 0; i < TILE_N_WORKERS; i++) {
        const struct tile_worker *w = &t->w[i];
        if (!w->active && w->slots == 0) continue;
        char *name = g_strdup_printf("worker %u", i);
        context_line(c, name, w->pc, w->active ? "runs" : "exited",
                     w->active ? w->next_cycle : w->exit_cycle, out);
        g_free(name);
    }
}

void cli_tile_fault(const struct cli_tile *c, GString *out) {
    const struct tile_fault *f = &c->tile.fault;
    tile_fault_print(&c->tile, f, out);
    g_string_append(out, "\nat ");
    cli_tile_where(c, f->pc, out);
    g_string_append_c(out, '\n');
    cli_tile_window(c, f->pc, 4, 3, out);
    cli_tile_registers(c, f->context, out);
}

static void dump_value(const struct cli_tile *c, uint32_t address, const char *format,
                       uint32_t *io_bytes, GString *out) {
    const uint8_t *p = sram_at(c->sram, 0, address);
    uint16_t half;
    uint32_t word;
    if (strcmp(format, "f16") == 0) {
        memcpy(&half, p, 2);
        g_string_append_printf(out, " %g", (double)num_f16_to_f32(half));
        *io_bytes = 2;
    } else if (strcmp(format, "f8") == 0) {
        g_string_append_printf(out, " %g", num_f8_to_f64(*p, NUM_F143, 0));
        *io_bytes = 1;
    } else if (strcmp(format, "bytes") == 0) {
        g_string_append_printf(out, " %02x", *p);
        *io_bytes = 1;
    } else {
        memcpy(&word, p, 4);
        if (strcmp(format, "f32") == 0)
            g_string_append_printf(out, " %g", (double)num_f32_from_bits(word));
        else
            g_string_append_printf(out, " %08x", word);
        *io_bytes = 4;
    }
}

static bool format_known(const char *f) {
    static const char *const NAMES[] = {"words", "f16", "f32", "f8", "bytes"};
    for (uint32_t i = 0; i < ARRAY_LEN(NAMES); i++)
        if (strcmp(f, NAMES[i]) == 0) return true;
    return false;
}

bool cli_tile_dump(const struct cli_tile *c, const char *spec, GString *out) {
    char **part = g_strsplit(spec, ":", 3);
    const uint32_t n = g_strv_length(part);
    const char *format = n == 3 ? part[2] : "words";
    uint32_t address = 0, bytes = 0;
    bool ok = n >= 2 && cli_tile_address(c, part[0], &address) &&
              cli_tile_address(c, part[1], &bytes) && format_known(format);
    ok = ok && sram_range_ok(address, bytes) && address % 4 == 0;
    if (!ok) complain(c, spec, "expected ADDR:LEN[:words|f16|f32|f8|bytes] inside SRAM, ADDR % 4 = 0");
    for (uint32_t at = 0; ok && at < bytes;) {
        uint32_t step = 4;
        if (at % 32 == 0) g_string_append_printf(out, "%s0x%05x:", at ? "\n" : "", address + at);
        if (sram_first_unwritten(c->sram, 0, address + at, 1) != UINT32_MAX) {
            g_string_append(out, " --------");
            at += 4;
            continue;
        }
        dump_value(c, address + at, format, &step, out);
        at += step;
    }
    if (ok) g_string_append_c(out, '\n');
    g_strfreev(part);
    return ok;
}

const char *cli_tile_stop_name(enum tile_stop_reason r) {
    static const char *const NAMES[] = {"none", "sync", "row", "done", "trap",
                                        "fault", "limit", "break"};
    return NAMES[r];
}
