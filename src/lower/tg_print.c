/* Printer, lifetimes and sums over a tile graph. */
#include "lower/lower.h"

#include <string.h>

static void touch(struct tg_allocs *a, uint32_t alloc, uint32_t step, bool *seen) {
    if (!seen[alloc]) a->first_step[alloc] = a->last_step[alloc] = step;
    seen[alloc] = true;
    a->first_step[alloc] = MIN(a->first_step[alloc], step);
    a->last_step[alloc] = MAX(a->last_step[alloc], step);
}

static void touch_steps(struct tile_graph *g, bool *seen) {
    for (uint32_t i = 0; i < g->n_steps; i++) {
        const struct tg_step *s = &g->steps[i];
        if (s->kind == TG_EXCHANGE) {
            for (uint32_t x = s->first; x < s->end; x++)
                touch(&g->allocs, g->transfers.source[x].alloc, i, seen);
            for (uint32_t r = g->transfers.first_recipient[s->first];
                 r < g->transfers.first_recipient[s->end]; r++)
                touch(&g->allocs, g->transfers.recipient[r].alloc, i, seen);
        } else if (s->kind == TG_COMPUTE) {
            for (uint32_t o = g->calls.first_operand[s->first]; o < g->calls.first_operand[s->end];
                 o++)
                touch(&g->allocs, g->calls.operand[o].alloc, i, seen);
        }
    }
}

/* Widens uses that reach into a repeat from outside to all of it. */
static void widen_repeats(struct tile_graph *g) {
    struct tg_allocs *a = &g->allocs;
    for (uint32_t b = 0; b < g->n_steps; b++) {
        if (g->steps[b].kind != TG_REPEAT_BEGIN) continue;
        uint32_t e = b;
        while (g->steps[e].kind != TG_REPEAT_END) e++;
        for (uint32_t i = 0; i < a->n; i++) {
            const bool starts_in = a->first_step[i] > b && a->first_step[i] < e;
            const bool ends_in = a->last_step[i] > b && a->last_step[i] < e;
            if (starts_in && ends_in) continue;
            if (starts_in) a->first_step[i] = b;
            if (ends_in) a->last_step[i] = e;
        }
    }
}

void tg_lifetimes(struct tile_graph *g) {
    struct tg_allocs *a = &g->allocs;
    const uint32_t last = g->n_steps ? g->n_steps - 1 : 0;
    bool *seen = g_new0(bool, a->n + 1);
    memset(a->first_step, 0, a->n * sizeof *a->first_step);
    memset(a->last_step, 0, a->n * sizeof *a->last_step);
    touch_steps(g, seen);
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->flags[i] & (TG_PARAMETER | TG_HOST_INPUT)) a->first_step[i] = 0;
        if (a->flags[i] & (TG_PARAMETER | TG_HOST_OUTPUT)) a->last_step[i] = last;
        seen[i] = seen[i] || (a->flags[i] & (TG_PARAMETER | TG_HOST_INPUT | TG_HOST_OUTPUT));
    }
    for (uint32_t i = 0; i < a->n; i++) {
        if (!seen[i]) continue;
        for (uint32_t r = i; a->alias[r] != TG_NONE;) {
            r = a->alias[r];
            touch(a, r, a->first_step[i], seen);
            touch(a, r, a->last_step[i], seen);
        }
    }
    widen_repeats(g);
    g_free(seen);
}

void tile_graph_peaks(const struct tile_graph *g, uint32_t *ret_total, uint32_t *ret_standard,
                      uint32_t *ret_interleaved) {
    const struct tg_allocs *a = &g->allocs;
    uint32_t *const results[3] = {ret_total, ret_standard, ret_interleaved};
    const size_t width = (size_t)g->n_steps + 1;
    for (uint32_t k = 0; k < 3; k++) {
        if (!results[k]) continue;
        int64_t *change = g_new0(int64_t, g->n_tiles * width);
        for (uint32_t i = 0; i < a->n; i++) {
            if (a->alias[i] != TG_NONE || (k > 0 && a->memory[i] != k)) continue;
            const int64_t bytes = (int64_t)a->bytes[i] * a->blocks[i] + a->tail_bytes[i];
            change[a->tile[i] * width + a->first_step[i]] += bytes;
            change[a->tile[i] * width + a->last_step[i] + 1] -= bytes;
        }
        for (uint32_t t = 0; t < g->n_tiles; t++) {
            int64_t now = 0, most = 0;
            for (uint32_t s = 0; s < width; s++) {
                now += change[t * width + s];
                most = MAX(most, now);
            }
            results[k][t] = (uint32_t)most;
        }
        g_free(change);
    }
}

uint64_t tile_graph_input_bytes(const struct tile_graph *g) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < g->allocs.n; i++)
        if (g->allocs.flags[i] & TG_HOST_INPUT) bytes += g->allocs.bytes[i];
    return bytes;
}

static void print_ref(const struct tile_graph *g, struct tg_ref r, GString *out) {
    g_string_append_printf(out, "%u:%s#%u+%u", g->allocs.tile[r.alloc],
                           g->names[g->allocs.value[r.alloc]], r.alloc, r.offset);
}

static void print_allocs(const struct tile_graph *g, GString *out) {
    static const char *const MEMORY[] = {"any", "standard", "interleaved"};
    const struct tg_allocs *a = &g->allocs;
    for (uint32_t i = 0; i < a->n; i++) {
        g_string_append_printf(out, "alloc %u tile %u %s bytes %u tail %u align %u %s steps %u..%u",
                               i, a->tile[i], g->names[a->value[i]], a->bytes[i], a->tail_bytes[i],
                               a->align[i], MEMORY[a->memory[i]], a->first_step[i],
                               a->last_step[i]);
        if (a->alias[i] != TG_NONE)
            g_string_append_printf(out, " in %u+%u", a->alias[i], a->alias_offset[i]);
        if (a->blocks[i] > 1) g_string_append_printf(out, " blocks %u", a->blocks[i]);
        if (a->flags[i]) g_string_append_printf(out, " flags %u", a->flags[i]);
        g_string_append_c(out, '\n');
    }
}

static void print_call(const struct tile_graph *g, uint32_t tile, uint32_t call, GString *out) {
    const struct kernel_spec *s = &g->specs[g->calls.spec[call]];
    g_string_append_printf(out, "  %u %s", tile, kernel_name(s->kernel));
    for (uint32_t i = 0; i < KERNEL_MAX_PARAMS; i++)
        if (kernel_param_name(s->kernel, i))
            g_string_append_printf(out, " %s=%u", kernel_param_name(s->kernel, i), s->p[i]);
    for (uint32_t o = g->calls.first_operand[call]; o < g->calls.first_operand[call + 1]; o++) {
        g_string_append_c(out, ' ');
        print_ref(g, g->calls.operand[o], out);
    }
    g_string_append_c(out, '\n');
}

static void print_step(const struct tile_graph *g, const struct tg_step *s, GString *out) {
    static const char *const KINDS[] = {"exchange", "compute", "repeat", "end"};
    g_string_append_printf(out, "%s %s (%s)", KINDS[s->kind], g->names[s->operation],
                           g->names[s->reason]);
    if (s->kind == TG_REPEAT_BEGIN) g_string_append_printf(out, " count %u", s->count);
    g_string_append_c(out, '\n');
    if (s->kind == TG_EXCHANGE)
        for (uint32_t x = s->first; x < s->end; x++) {
            g_string_append(out, "  ");
            print_ref(g, g->transfers.source[x], out);
            g_string_append_printf(out, " words %u ->", g->transfers.words[x]);
            for (uint32_t r = g->transfers.first_recipient[x];
                 r < g->transfers.first_recipient[x + 1]; r++) {
                g_string_append_c(out, ' ');
                print_ref(g, g->transfers.recipient[r], out);
            }
            g_string_append_c(out, '\n');
        }
    if (s->kind == TG_COMPUTE)
        for (uint32_t t = 0; t < g->n_tiles; t++)
            for (uint32_t c = g->call_of_tile[s->first_call + t];
                 c < g->call_of_tile[s->first_call + t + 1]; c++)
                print_call(g, t, c, out);
}

void tg_print(const struct tile_graph *g, GString *out) {
    g_string_append_printf(out, "tile graph, %u tiles\n", g->n_tiles);
    print_allocs(g, out);
    for (uint32_t i = 0; i < g->separations.n; i++)
        g_string_append_printf(out, "separate %u %u\n", g->separations.a[i], g->separations.b[i]);
    for (uint32_t i = 0; i < g->n_steps; i++) print_step(g, &g->steps[i], out);
    for (uint32_t i = 0; i < g->n_bindings; i++) {
        const struct tg_binding *b = &g->bindings[i];
        g_string_append_printf(out, "binding %s kind %u format %u slices %u", b->name, b->kind,
                               b->format, b->end_slice - b->first_slice);
        if (b->bound) g_string_append_printf(out, " bound %u", b->bound);
        g_string_append_c(out, '\n');
    }
}
