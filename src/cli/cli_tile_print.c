/* Texts of one tile: places, disassembly, registers, contexts, faults, memory. */
#include "cli/cli_tile.h"

#include "numeric/num_format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* What ends last at or before an address: an option's bytes, a symbol with a size, or the last symbol of a
 * section. */
static void print_before(const struct cli_tile *c, uint32_t address, GString *out) {
    uint32_t best = 0, end;
    const char *option = "", *name = NULL;
    for (uint32_t i = 0; i < c->given->len; i++) {
        const struct cli_tile_range *r = &g_array_index(c->given, struct cli_tile_range, i);
        end = r->address + r->bytes;
        if (end <= address && end > best) best = end, option = r->option, name = r->text;
    }
    for (uint32_t i = 0; i < c->image->symbols->len; i++) {
        const struct isa_image_symbol *s = &g_array_index(c->image->symbols, struct isa_image_symbol, i);
        end = s->address + s->size;
        if (!s->absolute && s->size != 0 && end <= address && end > best)
            best = end, option = "", name = s->name;
    }
    for (uint32_t i = 0; i < c->image->segments->len; i++) {
        const struct isa_segment *g = &g_array_index(c->image->segments, struct isa_segment, i);
        end = g->address + g->size;
        if (g->size == 0 || end > address || end <= best) continue;
        const struct isa_image_symbol *s = isa_image_at(c->image, end - 1);
        best = end, option = s != NULL ? "" : "section", name = s != NULL ? s->name : g->name;
    }
    g_string_append(out, "nothing");
    if (name == NULL) return;
    g_string_append_printf(out, "; %u bytes behind the end of %s%s%s", address - best, option,
                           option[0] ? " " : "", name);
}

void cli_tile_owner(const struct cli_tile *c, uint32_t address, GString *out) {
    for (uint32_t i = 0; i < c->given->len; i++) {
        const struct cli_tile_range *r = &g_array_index(c->given, struct cli_tile_range, i);
        if (address < r->address || address - r->address >= r->bytes) continue;
        g_string_append_printf(out, "%s %s, byte %u", r->option, r->text, address - r->address);
        return;
    }
    const struct isa_image_symbol *s = isa_image_at(c->image, address);
    if (s != NULL)
        g_string_append_printf(out, "%s+0x%x", s->name, address - s->address);
    else
        print_before(c, address, out);
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

struct target_name {
    const struct cli_tile *c;
    char text[128];
};

/* "label" or "label+8": where a branch goes. */
static const char *target_name(uint32_t address, void *context) {
    struct target_name *t = context;
    const struct isa_image_symbol *s = isa_image_at(t->c->image, address);
    if (s == NULL) return NULL;
    const uint32_t more = address - s->address;
    if (more == 0) return s->name;
    g_snprintf(t->text, sizeof t->text, "%s+%u", s->name, more);
    return t->text;
}

void cli_tile_slot(const struct cli_tile *c, uint32_t address, uint32_t context, GString *out) {
    uint32_t w[2] = {0, 0};
    struct isa_slot s;
    struct target_name name = {.c = c};
    const struct isa_print options = {.symbol = c->image != NULL ? target_name : NULL, .context = &name,
                                      .mode = context == CLI_TILE_ANY ? ISA_MODE_B
                                              : context == 0          ? ISA_MODE_S
                                                                      : ISA_MODE_W,
                                      .flag_names = true};
    const uint32_t n = words_at(c, address, w);
    if (isa_slot_decode(w, n, address, &s) == ISA_SLOT_OK)
        isa_slot_print(out, &s, &options);
    else
        g_string_append_printf(out, ".word 0x%08x", w[0]);
}

uint32_t cli_tile_window_at(const struct cli_tile *c, uint32_t pc, uint32_t before, uint32_t after,
                            uint32_t ret[CLI_TILE_WINDOW]) {
    uint32_t ring[16] = {0}, n = 0, n_shown = 0;
    const struct isa_image_symbol *s = isa_image_at(c->image, pc);
    BUG_ON(before > ARRAY_LEN(ring) || before + after >= CLI_TILE_WINDOW);
    for (uint32_t at = s != NULL ? s->address : pc; at < pc; at += slot_bytes(c, at))
        ring[n++ % ARRAY_LEN(ring)] = at;
    const uint32_t first = n < before ? n : before;
    uint32_t at = first ? ring[(n - first) % ARRAY_LEN(ring)] : pc;
    for (; n_shown < first + 1 + after && sram_range_ok(at, 4); at += slot_bytes(c, at)) {
        if (at > pc && sram_first_unwritten(c->sram, 0, at, 4) != UINT32_MAX) break; /* no code */
        ret[n_shown++] = at;
    }
    return n_shown;
}

uint32_t cli_tile_window_context(const struct cli_tile *c, uint32_t pc, uint32_t at, uint32_t context) {
    if (!c->supervisor) return context;
    return isa_image_at(c->image, at) == isa_image_at(c->image, pc) ? context : CLI_TILE_ANY;
}

void cli_tile_window(const struct cli_tile *c, uint32_t pc, uint32_t before, uint32_t after,
                     uint32_t context, GString *out) {
    uint32_t at[CLI_TILE_WINDOW];
    const uint32_t n = cli_tile_window_at(c, pc, before, after, at);
    for (uint32_t i = 0; i < n; i++) {
        g_string_append_printf(out, "%s 0x%05x  ", at[i] == pc ? "=>" : "  ", at[i]);
        cli_tile_slot(c, at[i], cli_tile_window_context(c, pc, at[i], context), out);
        g_string_append_c(out, '\n');
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
    g_string_append_printf(out, "fp_ctl %06x  fp_sts %x  tas ", w->fp_ctl, w->fp_sts);
    if (w->tas_defined)
        g_string_append_printf(out, "%08x", w->tas);
    else
        g_string_append(out, "--------");
    g_string_append_printf(out, "  repeat %u\n", w->repeat_count);
}

const char *cli_tile_context_name(uint32_t context) {
    static const char *const NAMES[TILE_N_CONTEXTS] = {"supervisor", "worker 0", "worker 1", "worker 2",
                                                       "worker 3", "worker 4", "worker 5"};
    return NAMES[context];
}

const char *cli_tile_context_state(const struct cli_tile *c, uint32_t context) {
    static const char *const STATES[] = {"off", "runs", "sync 2", "sync", "row", "trap", "done"};
    const struct tile *t = &c->tile;
    const bool fault = t->stop.reason == TILE_STOP_FAULT && t->fault.context == context;
    if (fault) return "fault";
    if (context == 0) return STATES[t->s.state];
    const struct tile_worker *w = &t->w[context - 1];
    return w->active ? "runs" : w->slots != 0 ? "exited" : "idle";
}

uint32_t cli_tile_context_pc(const struct cli_tile *c, uint32_t context) {
    const struct tile_supervisor *s = &c->tile.s;
    const bool waits = s->state == TILE_SUPERVISOR_LOCAL || s->state == TILE_SUPERVISOR_SYNC;
    if (context == 0) return waits ? s->pc - 4 : s->pc; /* at its sync */
    const struct tile_worker *w = &c->tile.w[context - 1];
    return w->active || w->pc < 4 ? w->pc : w->pc - 4; /* behind its exit, which is a lone instruction */
}

uint64_t cli_tile_context_cycle(const struct cli_tile *c, uint32_t context) {
    if (context == 0) return c->tile.s.ready_cycle;
    const struct tile_worker *w = &c->tile.w[context - 1];
    return w->active ? w->next_cycle : w->exit_cycle;
}

void cli_tile_contexts(const struct cli_tile *c, GString *out) {
    for (uint32_t k = c->supervisor ? 0 : 1; k < TILE_N_CONTEXTS; k++) {
        const uint32_t pc = cli_tile_context_pc(c, k);
        g_string_append_printf(out, "%-10s  %s", cli_tile_context_name(k), cli_tile_context_state(c, k));
        if (k == 0 || c->tile.w[k - 1].slots != 0 || c->tile.w[k - 1].active) {
            const int pad = 8 - (int)strlen(cli_tile_context_state(c, k));
            g_string_append_printf(out, "%*s  cycle %-10" G_GUINT64_FORMAT "  0x%05x  ",
                                   pad, "", cli_tile_context_cycle(c, k), pc);
            if (pc != 0) cli_tile_where(c, pc, out);
        }
        g_string_append_c(out, '\n');
    }
}

static void print_exception(const struct tile_fault *f, GString *out) {
    uint32_t cause;
    const char *name = tile_fault_exception(f, &cause);
    if (name == NULL)
        g_string_append(out, "exception none: the hardware is silent about this\n");
    else
        g_string_append_printf(out, "exception %s, cause %u (%s)\n", name, cause, tile_cause_text(cause));
}

void cli_tile_fault(const struct cli_tile *c, GString *out) {
    const struct tile_fault *f = &c->tile.fault;
    tile_fault_print(&c->tile, f, out);
    g_string_append(out, "\nat ");
    cli_tile_where(c, f->pc, out);
    g_string_append_c(out, '\n');
    print_exception(f, out);
    if (f->number == TILE_FAULT_MODE_SUPERVISOR && !c->supervisor)
        g_string_append(out, "hint      supervisor code is started with --supervisor\n");
    if (tile_fault_has_address(f)) {
        g_string_append_printf(out, "address   0x%x: ", f->address);
        cli_tile_owner(c, f->address, out);
        g_string_append_c(out, '\n');
    }
    g_string_append(out, "operation ");
    cli_tile_where(c, c->entry_pc, out);
    g_string_append_c(out, '\n');
    cli_tile_window(c, f->pc, 4, 3, f->context, out);
    cli_tile_registers(c, f->context, out);
    g_string_append(out, "contexts\n");
    cli_tile_contexts(c, out);
}

/* --- Memory. --- */

static const char *const FORMATS[] = {"words", "f16", "f32", "f8", "bytes"};
enum { WORDS, F16, F32, F8, BYTES };

/* What a dump without a length shows: the symbol at its address, up to the next one if it has no size; else
 * a word. */
static uint32_t default_bytes(const struct cli_tile *c, uint32_t address) {
    const struct isa_image_symbol *s = c->image != NULL ? isa_image_at(c->image, address) : NULL;
    if (s == NULL || s->address != address) return 4;
    if (s->size != 0) return s->size;
    uint32_t end = address + 4;
    while (sram_range_ok(end, 4) && isa_image_at(c->image, end) == s) end += 4;
    return end - address;
}

bool cli_tile_dump_parse(const struct cli_tile *c, const char *option, const char *spec,
                         struct cli_tile_dump *ret) {
    char **part = g_strsplit(spec, ":", 3);
    const uint32_t n = g_strv_length(part);
    GError *error = NULL;
    struct cli_tile_dump d = {.spec = spec};
    bool ok = n != 0 && part[0][0] != 0;
    if (!ok) diag_set(&error, CLI_TILE_SPEC, option, spec, CLI_TILE_DUMP_SPEC);
    ok = ok && cli_tile_want_address(c, option, part[0], &d.address);
    if (ok && (n == 1 || part[1][0] == 0)) d.bytes = default_bytes(c, d.address);
    else ok = ok && cli_tile_want_address(c, option, part[1], &d.bytes);
    for (; ok && n == 3 && d.format < ARRAY_LEN(FORMATS); d.format++)
        if (strcmp(part[2], FORMATS[d.format]) == 0) break;
    if (ok && d.format == ARRAY_LEN(FORMATS))
        diag_set(&error, CLI_CHOICE, option, part[2], "words, f16, f32, f8, bytes");
    else if (ok && !sram_range_ok(d.address, d.bytes))
        diag_set(&error, CLI_TILE_OUTSIDE, option, spec, d.address, (gint64)d.address + d.bytes,
                 (uint32_t)TARGET_SRAM_BASE, (uint32_t)TARGET_SRAM_END);
    else if (ok && d.address % 4 != 0)
        diag_set(&error, CLI_TILE_ALIGN, option, spec, d.address, 4u);
    else if (ok && d.bytes == 0)
        diag_set(&error, CLI_TILE_SPEC, option, spec, "at least one byte");
    g_strfreev(part);
    if (error != NULL) cli_tile_refuse(c, error);
    if (!ok || error != NULL) return false;
    *ret = d;
    return true;
}

/* One value as text; the bytes it takes. */
static uint32_t dump_value(const struct cli_tile *c, uint32_t address, uint32_t format, GString *out) {
    const uint8_t *p = sram_at(c->sram, 0, address);
    uint16_t half;
    uint32_t word;
    switch (format) {
    case F16:
        memcpy(&half, p, 2);
        g_string_append_printf(out, "%g", (double)num_f16_to_f32(half));
        return 2;
    case F8: g_string_append_printf(out, "%g", num_f8_to_f64(*p, NUM_F143, 0)); return 1;
    case BYTES: g_string_append_printf(out, "%02x", *p); return 1;
    case F32:
        memcpy(&word, p, 4);
        g_string_append_printf(out, "%g", (double)num_f32_from_bits(word));
        return 4;
    default:
        memcpy(&word, p, 4);
        g_string_append_printf(out, "%08x", word);
        return 4;
    }
}

void cli_tile_dump_print(const struct cli_tile *c, const struct cli_tile_dump *d, GString *out) {
    for (uint32_t at = 0; at < d->bytes;) {
        if (at % 32 == 0) g_string_append_printf(out, "%s0x%05x:", at ? "\n" : "", d->address + at);
        g_string_append_c(out, ' ');
        if (sram_first_unwritten(c->sram, 0, d->address + at, 1) != UINT32_MAX) {
            g_string_append(out, "--------");
            at += 4;
            continue;
        }
        at += dump_value(c, d->address + at, d->format, out);
    }
    g_string_append_c(out, '\n');
}

void cli_tile_json_dump(JsonBuilder *b, const struct cli_tile *c, const struct cli_tile_dump *d) {
    json_builder_begin_object(b);
    cli_tile_json_text(b, "dump", d->spec);
    cli_tile_json_int(b, "address", d->address);
    cli_tile_json_int(b, "bytes", d->bytes);
    cli_tile_json_text(b, "format", FORMATS[d->format]);
    json_builder_set_member_name(b, "values");
    json_builder_begin_array(b);
    static const uint32_t SIZE[] = {4, 2, 4, 1, 1};
    for (uint32_t at = 0; at < d->bytes; at += SIZE[d->format]) {
        GString *text = g_string_new(NULL);
        const bool written = sram_first_unwritten(c->sram, 0, d->address + at, 1) == UINT32_MAX;
        if (written) dump_value(c, d->address + at, d->format, text);
        const double v = d->format == WORDS || d->format == BYTES
                             ? (double)g_ascii_strtoull(text->str, NULL, 16)
                             : g_ascii_strtod(text->str, NULL);
        if (!written || v != v || v - v != 0)
            json_builder_add_null_value(b); /* nothing there, or no number of JSON */
        else if (d->format == WORDS || d->format == BYTES)
            json_builder_add_int_value(b, (gint64)v);
        else
            json_builder_add_double_value(b, v);
        g_string_free(text, true);
    }
    json_builder_end_array(b);
    json_builder_end_object(b);
}

const char *cli_tile_stop_name(enum tile_stop_reason r) {
    static const char *const NAMES[] = {"none", "sync", "row", "done", "trap",
                                        "fault", "limit", "break"};
    return NAMES[r];
}
