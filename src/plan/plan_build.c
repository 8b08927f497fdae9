/* The chosen candidates as a program: per product the in-phase copies, the product, the sum of its
 * partials, then the elementwise operations on the owned windows. */
#include "plan/plan_internal.h"

#include <string.h>

struct build {
    const struct plan_path *path;
    const struct graph *g;
    struct program *p;
    uint32_t *value_of; /* graph value -> program value holding it, or PROGRAM_NONE */
    GError **error;
};

/* Last axis = columns, all others flattened into rows. */
static void matrix_of(const struct graph_shape *s, uint32_t *rows, uint32_t *columns) {
    *columns = s->n_dims ? s->dim[s->n_dims - 1] : 1;
    *rows = (uint32_t)(graph_shape_elements(s) / *columns);
}

static void set_tensor(struct program_value *v, const struct graph_value *t, bool transposed) {
    v->tensor.name = t->name;
    v->tensor.n_dims = t->shape.n_dims;
    memcpy(v->tensor.shape, t->shape.dim, sizeof v->tensor.shape);
    const uint64_t width = t->shape.n_dims ? t->shape.dim[t->shape.n_dims - 1] : 1;
    v->tensor.step[1] = transposed ? 1 : width;
    v->tensor.step[2] = transposed ? width : 1;
}

static struct program_layout layout(uint8_t order, uint8_t memory) {
    struct program_layout l = {.format = PROGRAM_F16, .order = order, .memory = memory,
                               .window_grain = 32};
    for (uint32_t i = 0; i < PROGRAM_N_AXES; i++) l.count[i] = 1;
    l.grain[0] = l.grain[1] = l.pad[0] = l.pad[1] = 1;
    l.grain[2] = l.pad[2] = 16;
    if (order == PROGRAM_COEFF || order == PROGRAM_COEFF_T) l.grain[1] = l.pad[1] = 16;
    return l;
}

static void axis(struct program_layout *l, uint32_t a, uint32_t count, uint32_t stride) {
    l->count[a] = count;
    l->stride[a] = stride;
}

static uint32_t add_copy(struct build *b, const char *operation, const char *reason, uint32_t from,
                         const struct program_value *to) {
    const uint32_t v = program_add_value(b->p, to);
    struct program_op op = {.kind = PROGRAM_COPY, .operation = operation, .reason = reason,
                            .output = v, .n_inputs = 1, .inputs = {from}};
    op.map = program_map_identity();
    program_add_op(b->p, &op, PROGRAM_NONE);
    return v;
}

/* The left operand where the grid reads it: every row part and K part on all column parts. */
static uint32_t left_operand(struct build *b, const struct plan_gemm *m,
                             const struct plan_candidate *c) {
    const struct graph_value *t = &b->g->values[m->left];
    const char *name = b->g->ops[m->op].name;
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.left", name), .batch = 1,
                              .rows = m->rows, .cols = m->inner, .inside = PROGRAM_NONE,
                              .layout = layout(PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    axis(&v.layout, PROGRAM_COLS, c->k, c->stride_k);
    axis(&v.layout, PROGRAM_REPLICA, c->c, c->stride_c);
    if (b->value_of[m->left] != PROGRAM_NONE)
        return add_copy(b, name, "gather", b->value_of[m->left], &v);
    struct program_value source = v;
    source.role = t->kind == GRAPH_INPUT ? PROGRAM_INPUT : PROGRAM_PARAMETER;
    set_tensor(&source, t, false);
    if (!m->free_input) { /* stored once: each reader owns an equal window of what it reads */
        source.name = t->name;
        const uint64_t rows32 = (uint64_t)(m->rows / c->r) * (ceil_div_u32(m->inner, 16) / c->k);
        axis(&source.layout, PROGRAM_REPLICA, 1, 0);
        axis(&source.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, c->c), c->stride_c);
    }
    const uint32_t s = program_add_value(b->p, &source);
    if (m->free_input) return s;
    b->value_of[m->left] = s;
    return c->c == 1 ? s : add_copy(b, name, "gather", s, &v);
}

/* Coefficients: homes are equal windows of the panels on the tiles that read them. */
static uint32_t right_operand(struct build *b, const struct plan_gemm *m,
                              const struct plan_candidate *c) {
    const struct graph_value *t = &b->g->values[m->right];
    const char *name = b->g->ops[m->op].name;
    struct program_value v = {
        .name = arena_printf(b->p->arena, "%s.right", name), .batch = 1, .rows = m->inner,
        .cols = m->columns, .inside = PROGRAM_NONE,
        .layout = layout(PROGRAM_COEFF, c->interleaved ? PROGRAM_INTERLEAVED : PROGRAM_STANDARD)};
    axis(&v.layout, PROGRAM_ROWS, c->k, c->stride_k);
    axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    axis(&v.layout, PROGRAM_REPLICA, c->r, c->stride_r);
    struct program_value home = v;
    home.name = t->name;
    home.role = t->kind == GRAPH_INPUT ? PROGRAM_INPUT : PROGRAM_PARAMETER;
    set_tensor(&home, t, m->transpose_right);
    axis(&home.layout, PROGRAM_REPLICA, 1, 0);
    if (c->r == 1) return program_add_value(b->p, &home);
    const uint64_t rows32 = 16 * (uint64_t)(ceil_div_u32(m->inner, 16) / c->k) *
                            (ceil_div_u32(m->columns, 16) / c->c);
    axis(&home.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, c->r), c->stride_r);
    if (c->home == PLAN_HOME_INSIDE) home.inside = b->p->n_values + 1;
    else home.layout.memory = PROGRAM_ANY;
    const uint32_t h = program_add_value(b->p, &home);
    return add_copy(b, name, "coefficients", h, &v);
}

static uint32_t compute(struct build *b, const struct program_op *op, const struct program_value *v) {
    struct program_op o = *op;
    o.kind = PROGRAM_COMPUTE;
    o.passes = 1;
    o.output = program_add_value(b->p, v);
    o.map = program_map_identity();
    program_add_op(b->p, &o, PROGRAM_NONE);
    return o.output;
}

static void build_gemm(struct build *b, const struct plan_gemm *m, const struct plan_candidate *c) {
    const struct graph_op *op = &b->g->ops[m->op];
    const char *name = op->name;
    const uint32_t left = left_operand(b, m, c), right = right_operand(b, m, c);
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.product", name), .batch = 1,
                              .rows = m->rows, .cols = m->columns, .inside = PROGRAM_NONE,
                              .layout = layout(PROGRAM_AMP_LEFT, PROGRAM_INTERLEAVED)};
    axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    axis(&v.layout, PROGRAM_PARTIAL, c->k, c->stride_k);
    if (c->k == 1) v.name = name;
    const struct program_op product = {.compute = PROGRAM_PRODUCT, .operation = name,
                                       .reason = "operator", .n_inputs = 2,
                                       .inputs = {left, right}};
    uint32_t result = compute(b, &product, &v);
    if (c->k > 1) {
        v.name = name;
        v.layout.memory = PROGRAM_ANY;
        axis(&v.layout, PROGRAM_PARTIAL, 1, 0);
        axis(&v.layout, PROGRAM_WINDOW, c->k, c->stride_k);
        const struct program_op sum = {.compute = PROGRAM_SUM, .operation = name,
                                       .reason = "reduction", .n_inputs = 1, .inputs = {result}};
        result = compute(b, &sum, &v);
    }
    b->value_of[op->results[0]] = result;
}

static void build_gelu(struct build *b, const struct graph_op *op) {
    const uint32_t in = b->value_of[op->operands[0]];
    struct program_value v = b->p->values[in];
    v.name = op->name;
    v.role = PROGRAM_LOCAL;
    v.inside = PROGRAM_NONE;
    v.tensor = (struct program_tensor){0};
    const struct program_op gelu = {.compute = PROGRAM_KERNEL, .kernel = PROGRAM_KERNEL_GELU,
                                    .operation = op->name, .reason = "operator", .n_inputs = 1,
                                    .inputs = {in}};
    b->value_of[op->results[0]] = compute(b, &gelu, &v);
}

/* An input that only elementwise operations read: spread evenly over the tiles. */
static void build_source(struct build *b, uint32_t value) {
    const struct graph_value *t = &b->g->values[value];
    struct program_value v = {.name = t->name, .batch = 1, .inside = PROGRAM_NONE,
                              .role = t->kind == GRAPH_INPUT ? PROGRAM_INPUT : PROGRAM_PARAMETER,
                              .layout = layout(PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    matrix_of(&t->shape, &v.rows, &v.cols);
    const uint64_t rows32 = (uint64_t)v.rows * ceil_div_u32(v.cols, 16);
    axis(&v.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, b->p->n_tiles), 1);
    set_tensor(&v, t, false);
    b->value_of[value] = program_add_value(b->p, &v);
}

static void mark_outputs(struct build *b) {
    for (uint32_t i = 0; i < b->g->n_outputs; i++) {
        const uint32_t value = b->g->outputs[i].value;
        struct program_value *v = &b->p->values[b->value_of[value]];
        v->role = PROGRAM_OUTPUT;
        set_tensor(v, &b->g->values[value], false);
        v->tensor.name = arena_strdup(b->p->arena, v->tensor.name);
    }
}

struct program *plan_build_program(const struct plan_path *path, GError **error) {
    const struct graph *g = path->g;
    struct program *p = program_new(g->name, path->o->n_tiles);
    struct build b = {.path = path, .g = g, .p = p, .error = error,
                      .value_of = arena_new_array(p->arena, uint32_t, g->n_values)};
    memset(b.value_of, 0xff, g->n_values * sizeof *b.value_of);
    uint32_t next = 0;
    for (uint32_t i = 0; i < g->blocks[0].n_ops; i++) {
        const struct graph_op *op = &g->ops[g->blocks[0].ops[i]];
        if (op->kind == GRAPH_GEMM) {
            build_gemm(&b, &path->gemms[next], &path->chosen[next]);
            next++;
        } else {
            if (b.value_of[op->operands[0]] == PROGRAM_NONE) build_source(&b, op->operands[0]);
            build_gelu(&b, op);
        }
    }
    mark_outputs(&b);
    return p;
}
