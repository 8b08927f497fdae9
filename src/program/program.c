/* Building programs. Arrays grow by doubling inside the program's arena. */
#include "program/program.h"

#include <string.h>

static void *grown(struct arena *arena, void *old, size_t item_bytes, uint32_t n, uint32_t *cap) {
    if (n < *cap) return old;
    *cap = *cap ? *cap * 2 : 16;
    void *fresh = arena_alloc(arena, item_bytes * *cap);
    if (n) memcpy(fresh, old, item_bytes * n);
    return fresh;
}

struct program *program_new(const char *name, uint32_t n_tiles) {
    struct arena *arena = arena_new();
    struct program *p = arena_alloc(arena, sizeof *p);
    p->arena = arena;
    p->name = arena_strdup(arena, name);
    p->n_tiles = n_tiles;
    return p;
}

void program_free(struct program *p) {
    if (p) arena_free(p->arena);
}

uint32_t program_add_value(struct program *p, const struct program_value *v) {
    p->values = grown(p->arena, p->values, sizeof *p->values, p->n_values, &p->cap_values);
    struct program_value *w = &p->values[p->n_values];
    *w = *v;
    w->name = arena_strdup(p->arena, v->name);
    if (v->tensor.name) w->tensor.name = arena_strdup(p->arena, v->tensor.name);
    return p->n_values++;
}

static void append(struct arena *arena, uint32_t **list, uint32_t *n, uint32_t item) {
    if ((*n & (*n - 1)) == 0) {
        uint32_t *fresh = arena_new_array(arena, uint32_t, *n ? *n * 2 : 1);
        if (*n) memcpy(fresh, *list, *n * sizeof(uint32_t));
        *list = fresh;
    }
    (*list)[(*n)++] = item;
}

uint32_t program_add_op(struct program *p, const struct program_op *op, uint32_t repeat) {
    p->ops = grown(p->arena, p->ops, sizeof *p->ops, p->n_ops, &p->cap_ops);
    struct program_op *o = &p->ops[p->n_ops];
    *o = *op;
    o->operation = arena_strdup(p->arena, op->operation);
    o->reason = arena_strdup(p->arena, op->reason);
    if (repeat == PROGRAM_NONE) {
        append(p->arena, &p->main, &p->n_main, p->n_ops);
    } else {
        struct program_repeat *r = &p->repeats[repeat];
        append(p->arena, &r->ops, &r->n_ops, p->n_ops);
    }
    return p->n_ops++;
}

uint32_t program_add_repeat(struct program *p, const struct program_repeat *r) {
    p->repeats = grown(p->arena, p->repeats, sizeof *p->repeats, p->n_repeats, &p->cap_repeats);
    struct program_repeat *x = &p->repeats[p->n_repeats];
    *x = *r;
    x->carried = arena_copy(p->arena, r->carried, r->n_carried * sizeof *r->carried);
    x->iterated = arena_copy(p->arena, r->iterated, r->n_iterated * sizeof *r->iterated);
    x->n_ops = 0;
    x->ops = NULL;
    return p->n_repeats++;
}

void program_add_result(struct program *p, const struct program_result *r) {
    p->results = grown(p->arena, p->results, sizeof *p->results, p->n_results, &p->cap_results);
    struct program_result *x = &p->results[p->n_results++];
    *x = *r;
    x->tensor.name = arena_strdup(p->arena, r->tensor.name);
}

struct program_map program_map_identity(void) {
    struct program_map m = {.inner = {UINT32_MAX, UINT32_MAX, UINT32_MAX}};
    for (uint32_t a = 0; a < 3; a++) m.inner_to[a][a] = 1;
    return m;
}
