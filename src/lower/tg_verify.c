/* The verifier: references, kernel contracts, word alignment, disjoint destinations, nesting. An
 * own reading of the form; it shares no code with lowering. */
#include "lower/lower.h"
#include "target/target.h"

#include <string.h>

struct verify {
    const struct tile_graph *g;
    char **ret_message;
};

#define FAIL(v, ...) return (*(v)->ret_message = g_strdup_printf(__VA_ARGS__), false)

static struct tg_ref root_of(const struct tile_graph *g, struct tg_ref r) {
    while (g->allocs.alias[r.alloc] != TG_NONE) {
        r.offset += g->allocs.alias_offset[r.alloc];
        r.alloc = g->allocs.alias[r.alloc];
    }
    return r;
}

static bool inside(const struct tile_graph *g, struct tg_ref r, uint64_t bytes) {
    return r.alloc < g->allocs.n && (uint64_t)r.offset + bytes <= g->allocs.bytes[r.alloc];
}

static bool verify_allocs(struct verify *v) {
    const struct tile_graph *g = v->g;
    const struct tg_allocs *a = &g->allocs;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->tile[i] >= g->n_tiles || a->bytes[i] == 0 || a->blocks[i] == 0)
            FAIL(v, "allocation %u: tile, size or block count", i);
        if (a->align[i] == 0 || (a->align[i] & (a->align[i] - 1)))
            FAIL(v, "allocation %u: alignment %u", i, a->align[i]);
        if (a->alias[i] == TG_NONE) continue;
        const struct tg_ref target = {a->alias[i], a->alias_offset[i]};
        if (!inside(g, target, a->bytes[i]) || a->tile[a->alias[i]] != a->tile[i])
            FAIL(v, "allocation %u: its alias leaves allocation %u", i, a->alias[i]);
        if (a->first_step[i] < a->first_step[a->alias[i]] ||
            a->last_step[i] > a->last_step[a->alias[i]])
            FAIL(v, "allocation %u lives longer than its storage", i);
    }
    return true;
}

static bool alive(const struct tile_graph *g, uint32_t alloc, uint32_t step) {
    return g->allocs.first_step[alloc] <= step && step <= g->allocs.last_step[alloc];
}

struct span {
    uint32_t alloc, start, end;
};
static int by_place(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    if (x->alloc != y->alloc) return x->alloc < y->alloc ? -1 : 1;
    return x->start < y->start ? -1 : x->start > y->start;
}

static bool verify_transfer(struct verify *v, uint32_t step, uint32_t x, struct span **to) {
    const struct tile_graph *g = v->g;
    const struct tg_transfers *t = &g->transfers;
    const struct tg_ref s = t->source[x];
    const uint64_t bytes = 4 * (uint64_t)t->words[x];
    const uint32_t first = t->first_recipient[x], end = t->first_recipient[x + 1];
    if (t->words[x] == 0 || t->words[x] > TARGET_EXCH_MAX_ITEMS || first >= end)
        FAIL(v, "step %u transfer %u: length or recipients", step, x);
    if (!inside(g, s, bytes) || s.offset % 4 || !alive(g, s.alloc, step))
        FAIL(v, "step %u transfer %u: source", step, x);
    for (uint32_t r = first; r < end; r++) {
        const struct tg_ref d = t->recipient[r];
        if (!inside(g, d, bytes) || d.offset % 4 || !alive(g, d.alloc, step))
            FAIL(v, "step %u transfer %u: recipient %u", step, x, r - first);
        if (end - first == 1 && g->allocs.tile[d.alloc] == g->allocs.tile[s.alloc])
            FAIL(v, "step %u transfer %u: only to its own tile", step, x);
        const struct tg_ref root = root_of(g, d);
        *(*to)++ = (struct span){root.alloc, root.offset, root.offset + (uint32_t)bytes};
    }
    return true;
}

static bool verify_exchange(struct verify *v, uint32_t step) {
    const struct tg_step *s = &v->g->steps[step];
    const struct tg_transfers *t = &v->g->transfers;
    if (s->first >= s->end || s->end > t->n) FAIL(v, "step %u: range of transfers", step);
    const uint32_t n = t->first_recipient[s->end] - t->first_recipient[s->first];
    struct span *spans = g_new(struct span, n + 1), *to = spans;
    bool ok = true;
    for (uint32_t x = s->first; ok && x < s->end; x++) ok = verify_transfer(v, step, x, &to);
    if (ok) qsort(spans, n, sizeof *spans, by_place);
    for (uint32_t i = 1; ok && i < n; i++) {
        ok = spans[i].alloc != spans[i - 1].alloc || spans[i].start >= spans[i - 1].end;
        if (!ok)
            *v->ret_message = g_strdup_printf("step %u: two transfers write allocation %u at %u",
                                              step, spans[i].alloc, spans[i].start);
    }
    g_free(spans);
    return ok;
}

static bool separated(const GHashTable *pairs, uint32_t a, uint32_t b) {
    const uint64_t key = (uint64_t)MIN(a, b) << 32 | MAX(a, b);
    return g_hash_table_contains((GHashTable *)pairs, &key);
}

static bool verify_operand(struct verify *v, uint32_t step, uint32_t tile,
                           const struct kernel_operand *o, struct tg_ref r) {
    const struct tile_graph *g = v->g;
    if (!inside(g, r, o->bytes) || !alive(g, r.alloc, step))
        FAIL(v, "step %u tile %u: operand of %u bytes in allocation %u", step, tile, o->bytes,
             r.alloc);
    if (g->allocs.tile[r.alloc] != tile)
        FAIL(v, "step %u tile %u: operand on tile %u", step, tile, g->allocs.tile[r.alloc]);
    const struct tg_ref root = root_of(g, r);
    const uint64_t end = (uint64_t)root.offset + o->bytes + o->tail_bytes;
    if (end > (uint64_t)g->allocs.bytes[root.alloc] + g->allocs.tail_bytes[root.alloc])
        FAIL(v, "step %u tile %u: access tail of allocation %u", step, tile, root.alloc);
    if (root.offset % o->align || g->allocs.align[root.alloc] % o->align)
        FAIL(v, "step %u tile %u: alignment of allocation %u", step, tile, root.alloc);
    if (o->memory != KERNEL_MEMORY_ANY && g->allocs.memory[root.alloc] != o->memory)
        FAIL(v, "step %u tile %u: memory class of allocation %u", step, tile, root.alloc);
    return true;
}

static bool verify_call(struct verify *v, uint32_t step, uint32_t tile, uint32_t call,
                        const GHashTable *pairs) {
    const struct tg_calls *c = &v->g->calls;
    struct kernel_needs needs;
    GError *error = NULL;
    if (c->spec[call] >= v->g->n_specs ||
        !kernel_describe(&v->g->specs[c->spec[call]], &needs, &error)) {
        const char *why = error ? error->message : "no such spec";
        *v->ret_message = g_strdup_printf("step %u tile %u: %s", step, tile, why);
        g_clear_error(&error);
        return false;
    }
    const struct tg_ref *operand = c->operand + c->first_operand[call];
    if (c->first_operand[call + 1] - c->first_operand[call] != needs.n_operands)
        FAIL(v, "step %u tile %u: number of operands", step, tile);
    for (uint32_t i = 0; i < needs.n_operands; i++)
        if (!verify_operand(v, step, tile, &needs.operand[i], operand[i])) return false;
    for (uint32_t i = 0; i < needs.n_operands; i++)
        for (uint32_t j = 0; j < needs.n_operands; j++) {
            if (!(needs.separate[i] >> j & 1)) continue;
            const uint32_t a = root_of(v->g, operand[i]).alloc, b = root_of(v->g, operand[j]).alloc;
            if (!separated(pairs, a, b))
                FAIL(v, "step %u tile %u: operands %u and %u are not separated", step, tile, i, j);
        }
    return true;
}

static bool verify_compute(struct verify *v, uint32_t step, const GHashTable *pairs) {
    const struct tile_graph *g = v->g;
    const struct tg_step *s = &g->steps[step];
    const uint32_t *first = g->call_of_tile + s->first_call;
    if (s->end > g->calls.n || first[0] != s->first || first[g->n_tiles] != s->end)
        FAIL(v, "step %u: range of calls", step);
    for (uint32_t t = 0; t < g->n_tiles; t++)
        for (uint32_t c = first[t]; c < first[t + 1]; c++)
            if (!verify_call(v, step, t, c, pairs)) return false;
    return true;
}

static bool verify_slices(struct verify *v) {
    const struct tile_graph *g = v->g;
    for (uint32_t i = 0; i < g->n_bindings; i++) {
        const struct tg_binding *b = &g->bindings[i];
        uint64_t elements = 1;
        for (uint32_t d = 0; d < b->n_dims; d++) elements *= b->shape[d];
        for (uint32_t k = b->first_slice; k < b->end_slice; k++) {
            const struct tg_slice *s = &g->slices[k];
            uint64_t mem = s->mem_offset, element = s->tensor_offset;
            for (uint32_t d = 0; d < s->n_dims; d++) {
                mem += (uint64_t)(s->count[d] - 1) * s->mem_step[d];
                element += (s->count[d] - 1) * s->tensor_step[d];
            }
            if (s->alloc >= g->allocs.n || mem >= g->allocs.bytes[s->alloc] ||
                element >= elements || s->block >= g->allocs.blocks[s->alloc])
                FAIL(v, "binding %s: slice %u", b->name, k - b->first_slice);
        }
    }
    return true;
}

static bool verify_steps(struct verify *v, const GHashTable *pairs) {
    bool open = false;
    for (uint32_t i = 0; i < v->g->n_steps; i++) {
        const struct tg_step *s = &v->g->steps[i];
        if (s->operation >= v->g->n_names || s->reason >= v->g->n_names)
            FAIL(v, "step %u: provenance", i);
        if (s->kind == TG_EXCHANGE && !verify_exchange(v, i)) return false;
        if (s->kind == TG_COMPUTE && !verify_compute(v, i, pairs)) return false;
        if ((s->kind == TG_REPEAT_BEGIN && open) || (s->kind == TG_REPEAT_END && !open))
            FAIL(v, "step %u: nesting of repeats", i);
        if (s->kind == TG_REPEAT_BEGIN) open = true;
        if (s->kind == TG_REPEAT_END) open = false;
    }
    if (open) FAIL(v, "a repeat has no end");
    return true;
}

bool tg_verify(const struct tile_graph *g, char **ret_message) {
    struct verify v = {g, ret_message};
    GHashTable *pairs = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    for (uint32_t i = 0; i < g->separations.n; i++) {
        const uint32_t a = g->separations.a[i], b = g->separations.b[i];
        const uint64_t key = (uint64_t)MIN(a, b) << 32 | MAX(a, b);
        g_hash_table_add(pairs, g_memdup2(&key, sizeof key));
    }
    const bool ok = verify_allocs(&v) && verify_steps(&v, pairs) && verify_slices(&v);
    g_hash_table_destroy(pairs);
    return ok;
}
