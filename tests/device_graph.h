/* device_graph: tile graphs by hand, for tests. Everything lives in the graph's arena; arrays are
 * large enough for small graphs (BUG_ON otherwise). */
#ifndef IPU_TESTS_DEVICE_GRAPH_H
#define IPU_TESTS_DEVICE_GRAPH_H

#include "lower/tile_graph.h"

enum { DG_MAX = 2048 };

static inline uint32_t dg_name(struct tile_graph *g, const char *name) {
    for (uint32_t i = 0; i < g->n_names; i++)
        if (g_strcmp0(g->names[i], name) == 0) return i;
    BUG_ON(g->n_names == DG_MAX);
    g->names[g->n_names] = arena_strdup(g->arena, name);
    return g->n_names++;
}

static inline struct tile_graph *dg_new(uint32_t n_tiles) {
    struct arena *a = arena_new();
    struct tile_graph *g = arena_alloc(a, sizeof *g);
    g->arena = a;
    g->n_tiles = n_tiles;
    g->names = arena_new_array(a, const char *, DG_MAX);
#define ARRAY(field, type) g->field = arena_new_array(a, type, DG_MAX)
    ARRAY(allocs.tile, uint16_t);
    ARRAY(allocs.bytes, uint32_t);
    ARRAY(allocs.tail_bytes, uint32_t);
    ARRAY(allocs.align, uint16_t);
    ARRAY(allocs.memory, uint8_t);
    ARRAY(allocs.flags, uint8_t);
    ARRAY(allocs.value, uint32_t);
    ARRAY(allocs.first_step, uint32_t);
    ARRAY(allocs.last_step, uint32_t);
    ARRAY(allocs.alias, uint32_t);
    ARRAY(allocs.alias_offset, uint32_t);
    ARRAY(allocs.blocks, uint32_t);
    ARRAY(allocs.stride, uint32_t);
    ARRAY(separations.a, uint32_t);
    ARRAY(separations.b, uint32_t);
    ARRAY(steps, struct tg_step);
    ARRAY(transfers.source, struct tg_ref);
    ARRAY(transfers.words, uint32_t);
    ARRAY(transfers.first_recipient, uint32_t);
    ARRAY(transfers.recipient, struct tg_ref);
    ARRAY(calls.spec, uint32_t);
    ARRAY(calls.first_operand, uint32_t);
    ARRAY(calls.operand, struct tg_ref);
    ARRAY(specs, struct kernel_spec);
    ARRAY(bindings, struct tg_binding);
    ARRAY(slices, struct tg_slice);
#undef ARRAY
    g->call_of_tile = arena_new_array(a, uint32_t, DG_MAX * (n_tiles + 1));
    return g;
}

static inline uint32_t dg_alloc(struct tile_graph *g, uint32_t tile, uint32_t bytes, uint8_t flags,
                                const char *name) {
    struct tg_allocs *a = &g->allocs;
    const uint32_t i = a->n++;
    BUG_ON(i >= DG_MAX);
    a->tile[i] = (uint16_t)tile;
    a->bytes[i] = bytes;
    a->align[i] = 8;
    a->flags[i] = flags;
    a->value[i] = dg_name(g, name);
    a->alias[i] = TG_NONE;
    a->blocks[i] = 1;
    return i;
}

static inline struct tg_step *dg_step(struct tile_graph *g, uint8_t kind, const char *operation) {
    struct tg_step *s = &g->steps[g->n_steps++];
    s->kind = kind;
    s->operation = dg_name(g, operation);
    s->reason = dg_name(g, kind == TG_EXCHANGE ? "copy" : "operator");
    s->first = s->end = kind == TG_EXCHANGE ? g->transfers.n : g->calls.n;
    return s;
}

/* Adds a transfer to the last step. */
static inline void dg_transfer(struct tile_graph *g, uint32_t source, uint32_t words,
                               const uint32_t *recipients, uint32_t n) {
    struct tg_transfers *x = &g->transfers;
    g_assert_cmpuint(MAX(x->n, x->n_recipients + n), <, DG_MAX);
    x->source[x->n] = (struct tg_ref){source, 0};
    x->words[x->n] = words;
    for (uint32_t i = 0; i < n; i++)
        x->recipient[x->n_recipients++] = (struct tg_ref){recipients[i], 0};
    x->first_recipient[++x->n] = x->n_recipients;
    g->steps[g->n_steps - 1].end = x->n;
}

/* Adds a call to the last step; calls of a step are added in order of their tiles. */
static inline void dg_call(struct tile_graph *g, uint32_t tile, struct kernel_spec spec,
                           const uint32_t *operands, uint32_t n) {
    struct tg_calls *c = &g->calls;
    const uint32_t step = g->n_steps - 1;
    g->steps[step].first_call = step * (g->n_tiles + 1);
    uint32_t *of_tile = g->call_of_tile + g->steps[step].first_call;
    g->specs[g->n_specs] = spec;
    c->spec[c->n] = g->n_specs++;
    uint32_t at = c->first_operand[c->n];
    for (uint32_t i = 0; i < n; i++) c->operand[at++] = (struct tg_ref){operands[i], 0};
    if (g->steps[step].first == c->n)
        for (uint32_t t = 0; t <= g->n_tiles; t++) of_tile[t] = c->n;
    c->first_operand[++c->n] = at;
    for (uint32_t t = tile + 1; t <= g->n_tiles; t++) of_tile[t] = c->n;
    g->steps[step].end = c->n;
}

/* A tensor of F16 elements that lies as it is in one allocation. */
static inline void dg_bind(struct tile_graph *g, uint32_t alloc, uint8_t kind, const char *name) {
    const uint32_t n = g->allocs.bytes[alloc] / 2;
    g->slices[g->n_slices] = (struct tg_slice){.alloc = alloc, .n_dims = 1, .count = {n},
                                               .tensor_step = {1}, .mem_step = {2}};
    g->bindings[g->n_bindings++] = (struct tg_binding){.name = arena_strdup(g->arena, name),
                                                       .kind = kind, .format = TG_F16,
                                                       .n_dims = 1, .shape = {n},
                                                       .first_slice = g->n_slices,
                                                       .end_slice = g->n_slices + 1};
    g->n_slices++;
}

#endif
