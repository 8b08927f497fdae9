/* Building and checking graphs. Arrays grow by doubling inside the graph's arena; the waste is
 * freed with it. The verifier rebuilds every shape through the same rules as the builder, and
 * checks dominance with one mark per value. */
#include "graph/graph.h"

#include <string.h>

uint64_t graph_shape_elements(const struct graph_shape *s) {
    uint64_t n = 1;
    for (uint32_t i = 0; i < s->n_dims; i++) n *= s->dim[i];
    return n;
}

bool graph_shape_equal(const struct graph_shape *a, const struct graph_shape *b) {
    return a->n_dims == b->n_dims && memcmp(a->dim, b->dim, a->n_dims * sizeof a->dim[0]) == 0;
}

static void *grown(struct arena *arena, void *old, size_t item_bytes, uint32_t n, uint32_t *cap) {
    if (n < *cap) return old;
    *cap = *cap ? *cap * 2 : 16;
    void *fresh = arena_alloc(arena, item_bytes * *cap);
    if (n) memcpy(fresh, old, item_bytes * n);
    return fresh;
}

static uint32_t add_block(struct graph *g) {
    g->blocks = grown(g->arena, g->blocks, sizeof *g->blocks, g->n_blocks, &g->cap_blocks);
    g->blocks[g->n_blocks] = (struct graph_block){0};
    return g->n_blocks++;
}

struct graph *graph_new(const char *name) {
    struct arena *arena = arena_new();
    struct graph *g = arena_alloc(arena, sizeof *g);
    g->arena = arena;
    g->name = arena_strdup(arena, name);
    g->open_block = add_block(g);
    g->open_op = GRAPH_NONE;
    return g;
}

void graph_free(struct graph *g) {
    if (g) arena_free(g->arena);
}

static uint32_t add_value(struct graph *g, const char *name, enum graph_value_kind kind,
                          struct graph_shape shape) {
    g->values = grown(g->arena, g->values, sizeof *g->values, g->n_values, &g->cap_values);
    g->values[g->n_values] = (struct graph_value){.name = arena_strdup(g->arena, name),
                                                  .kind = (uint8_t)kind,
                                                  .shape = shape,
                                                  .op = GRAPH_NONE};
    return g->n_values++;
}

uint32_t graph_add_input(struct graph *g, const char *name, struct graph_shape shape,
                         struct graph_fill fill) {
    const uint32_t v = add_value(g, name, GRAPH_INPUT, shape);
    g->values[v].fill = fill;
    return v;
}

uint32_t graph_add_parameter(struct graph *g, const char *name, struct graph_shape shape,
                             struct graph_fill fill) {
    const uint32_t v = add_value(g, name, GRAPH_PARAMETER, shape);
    g->values[v].fill = fill;
    return v;
}

static void append(struct arena *arena, uint32_t **list, uint32_t *n, uint32_t item) {
    if ((*n & (*n - 1)) == 0) { /* full at 0, 1, 2, 4, ... */
        uint32_t *fresh = arena_new_array(arena, uint32_t, *n ? *n * 2 : 1);
        if (*n) memcpy(fresh, *list, *n * sizeof(uint32_t));
        *list = fresh;
    }
    (*list)[(*n)++] = item;
}

static uint32_t add_op(struct graph *g, const struct graph_op *op) {
    g->ops = grown(g->arena, g->ops, sizeof *g->ops, g->n_ops, &g->cap_ops);
    g->ops[g->n_ops] = *op;
    struct graph_block *b = &g->blocks[g->open_block];
    append(g->arena, &b->ops, &b->n_ops, g->n_ops);
    return g->n_ops++;
}

uint32_t graph_add_op(struct graph *g, enum graph_op_kind kind, const char *result_name,
                      const uint32_t *operands, uint32_t n_operands,
                      const struct graph_attrs *attrs, GError **error) {
    const struct graph_attrs none = {0};
    if (!attrs) attrs = &none;
    const struct graph_request request = {kind, result_name, operands, n_operands, attrs};
    struct graph_shape shape;
    if (!graph_infer_shape(g, &request, &shape, error)) return GRAPH_NONE;
    const uint32_t v = add_value(g, result_name, GRAPH_RESULT, shape);
    struct graph_op op = {.kind = (uint8_t)kind,
                          .name = g->values[v].name,
                          .attrs = *attrs,
                          .n_operands = n_operands,
                          .n_results = 1};
    op.operands = arena_copy(g->arena, operands, n_operands * sizeof *operands);
    op.results = arena_copy(g->arena, &v, sizeof v);
    g->values[v].op = add_op(g, &op);
    return v;
}

static bool repeat_check(const struct graph *g, const struct graph_repeat_request *r,
                         GError **error) {
    if (g->open_op != GRAPH_NONE) {
        diag_set(error, GRAPH_REPEAT, r->name, "a repeat inside a repeat is not supported");
        return false;
    }
    if (r->count == 0) {
        diag_set(error, GRAPH_REPEAT, r->name, "count must be at least 1");
        return false;
    }
    for (uint32_t i = r->n_carried + r->n_invariant;
         i < r->n_carried + r->n_invariant + r->n_iterated; i++) {
        const struct graph_value *v = &g->values[r->operands[i]];
        if (v->shape.n_dims >= 1 && v->shape.dim[0] >= r->count) continue;
        diag_set(error, GRAPH_REPEAT, r->name,
                 "an iterated operand needs at least `count` slices along its first axis");
        return false;
    }
    return true;
}

bool graph_repeat_begin(struct graph *g, const struct graph_repeat_request *r,
                        uint32_t *ret_arguments, GError **error) {
    if (!repeat_check(g, r, error)) return false;
    const uint32_t n = r->n_carried + r->n_invariant + r->n_iterated;
    struct graph_op op = {.kind = GRAPH_REPEAT,
                          .name = arena_strdup(g->arena, r->name),
                          .n_operands = n,
                          .attrs.count = r->count};
    op.operands = arena_copy(g->arena, r->operands, n * sizeof *r->operands);
    op.repeat = (struct graph_repeat){r->n_carried, r->n_invariant, r->n_iterated, add_block(g)};
    g->open_op = add_op(g, &op);
    g->open_block = op.repeat.body;
    for (uint32_t i = 0; i < n; i++) {
        struct graph_shape shape = g->values[r->operands[i]].shape;
        if (i >= r->n_carried + r->n_invariant) {
            shape.n_dims--;
            memmove(shape.dim, shape.dim + 1, shape.n_dims * sizeof shape.dim[0]);
        }
        const uint32_t v = add_value(g, r->argument_names[i], GRAPH_ARGUMENT, shape);
        g->values[v].op = g->open_op;
        g->values[v].index = i;
        struct graph_block *b = &g->blocks[op.repeat.body];
        append(g->arena, &b->arguments, &b->n_arguments, v);
        ret_arguments[i] = v;
    }
    return true;
}

bool graph_repeat_end(struct graph *g, const uint32_t *yields, const char *const *result_names,
                      uint32_t *ret_results, GError **error) {
    struct graph_op *op = &g->ops[g->open_op];
    struct graph_block *b = &g->blocks[g->open_block];
    op->results = arena_new_array(g->arena, uint32_t, op->repeat.n_carried);
    for (uint32_t i = 0; i < op->repeat.n_carried; i++) {
        if (!graph_shape_equal(&g->values[yields[i]].shape, &g->values[b->arguments[i]].shape)) {
            diag_set(error, GRAPH_REPEAT, op->name,
                     "a yield differs in shape from its carried argument");
            return false;
        }
        append(g->arena, &b->yields, &b->n_yields, yields[i]);
    }
    for (uint32_t i = 0; i < op->repeat.n_carried; i++) {
        const uint32_t v = add_value(g, result_names[i], GRAPH_RESULT, g->values[yields[i]].shape);
        g->values[v].op = g->open_op;
        g->values[v].index = i;
        op->results[op->n_results++] = v;
        ret_results[i] = v;
    }
    g->open_block = 0;
    g->open_op = GRAPH_NONE;
    return true;
}

void graph_add_output(struct graph *g, struct graph_output output) {
    g->outputs = grown(g->arena, g->outputs, sizeof *g->outputs, g->n_outputs, &g->cap_outputs);
    g->outputs[g->n_outputs++] = output;
}

uint32_t graph_find_value(const struct graph *g, const char *name) {
    for (uint32_t i = 0; i < g->n_values; i++)
        if (strcmp(g->values[i].name, name) == 0) return i;
    return GRAPH_NONE;
}

/* --- Verifier --- */

struct check {
    const struct graph *g;
    bool *defined;
    GError **error;
};

bool graph_error_at(const struct graph *g, uint32_t line, GError **error) {
    if (line != 0) g_prefix_error(error, "%s:%u: ", g->file, line);
    return false;
}

static bool operands_defined(struct check *c, const struct graph_op *op) {
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (op->operands[i] < c->g->n_values && c->defined[op->operands[i]]) continue;
        diag_set(c->error, GRAPH_UNDEFINED, op->name, i);
        return false;
    }
    return true;
}

static bool check_block(struct check *c, uint32_t block, bool inner);

static bool check_repeat(struct check *c, const struct graph_op *op, bool inner) {
    const struct graph_repeat *r = &op->repeat;
    const struct graph_block *b = &c->g->blocks[r->body];
    const bool ok = !inner && r->body > 0 && r->body < c->g->n_blocks && op->attrs.count >= 1 &&
                    op->n_operands == r->n_carried + r->n_invariant + r->n_iterated &&
                    b->n_arguments == op->n_operands && b->n_yields == r->n_carried &&
                    op->n_results == r->n_carried;
    if (!ok) {
        diag_set(c->error, GRAPH_REPEAT, op->name, "operands, arguments and yields do not match");
        return false;
    }
    for (uint32_t i = 0; i < b->n_arguments; i++) c->defined[b->arguments[i]] = true;
    if (!check_block(c, r->body, true)) return false;
    for (uint32_t i = 0; i < b->n_yields; i++) {
        const struct graph_shape *carried = &c->g->values[b->arguments[i]].shape;
        if (c->defined[b->yields[i]] &&
            graph_shape_equal(&c->g->values[b->yields[i]].shape, carried))
            continue;
        diag_set(c->error, GRAPH_REPEAT, op->name,
                 "a yield is undefined or differs in shape from its carried argument");
        return false;
    }
    for (uint32_t i = 0; i < b->n_arguments; i++) c->defined[b->arguments[i]] = false;
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const struct graph_op *o = &c->g->ops[b->ops[i]];
        for (uint32_t j = 0; j < o->n_results; j++) c->defined[o->results[j]] = false;
    }
    return true;
}

static bool check_op(struct check *c, const struct graph_op *op, bool inner) {
    if (!operands_defined(c, op)) return false;
    if (op->kind == GRAPH_REPEAT) {
        if (!check_repeat(c, op, inner)) return false;
    } else {
        const struct graph_request r = {op->kind, op->name, op->operands, op->n_operands,
                                        &op->attrs};
        struct graph_shape shape;
        if (!graph_infer_shape(c->g, &r, &shape, c->error)) return false;
        if (!graph_shape_equal(&shape, &c->g->values[op->results[0]].shape)) {
            diag_set(c->error, GRAPH_SHAPE, op->name, graph_op_text(op->kind),
                     "the result's shape is not the one that the operands give");
            return false;
        }
    }
    for (uint32_t i = 0; i < op->n_results; i++) c->defined[op->results[i]] = true;
    return true;
}

static bool check_block(struct check *c, uint32_t block, bool inner) {
    const struct graph_block *b = &c->g->blocks[block];
    for (uint32_t i = 0; i < b->n_ops; i++)
        if (!check_op(c, &c->g->ops[b->ops[i]], inner)) return false;
    return true;
}

static bool check_names(const struct graph *g, GError **error) {
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    bool ok = true;
    for (uint32_t i = 0; ok && i < g->n_values; i++) {
        ok = g_hash_table_add(names, (char *)g->values[i].name);
        if (!ok) diag_set(error, GRAPH_NAME_TWICE, g->values[i].name);
    }
    g_hash_table_destroy(names);
    return ok;
}

static bool check_sizes(const struct graph *g, GError **error) {
    for (uint32_t i = 0; i < g->n_values; i++) {
        const struct graph_shape *s = &g->values[i].shape;
        uint64_t n = 1;
        for (uint32_t k = 0; k < s->n_dims && n <= GRAPH_MAX_ELEMENTS; k++) n *= s->dim[k];
        if (n <= GRAPH_MAX_ELEMENTS) continue;
        diag_set(error, GRAPH_TOO_LARGE, g->values[i].name, (unsigned)GRAPH_MAX_ELEMENTS);
        return graph_error_at(g, g->values[i].line, error);
    }
    return true;
}

static bool check_outputs(const struct check *c) {
    const struct graph *g = c->g;
    if (g->n_outputs == 0) {
        diag_set(c->error, GRAPH_NO_OUTPUT, g->name);
        return graph_error_at(g, g->line, c->error);
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const uint32_t value = g->outputs[i].value;
        if (value >= g->n_values || !c->defined[value]) {
            diag_set(c->error, GRAPH_OUTPUT, i);
            return false;
        }
        for (uint32_t k = 0; k < i; k++) {
            if (g->outputs[k].value != value) continue;
            diag_set(c->error, GRAPH_OUTPUT_TWICE, g->values[value].name);
            return graph_error_at(g, g->outputs[i].line, c->error);
        }
    }
    return true;
}

bool graph_verify(const struct graph *g, GError **error) {
    if (!check_names(g, error) || !check_sizes(g, error)) return false;
    struct arena *scratch = arena_new();
    struct check c = {g, arena_new_array(scratch, bool, g->n_values + 1), error};
    for (uint32_t i = 0; i < g->n_values; i++)
        c.defined[i] = g->values[i].kind == GRAPH_INPUT || g->values[i].kind == GRAPH_PARAMETER;
    const bool ok = check_block(&c, 0, false) && check_outputs(&c);
    arena_free(scratch);
    return ok;
}
