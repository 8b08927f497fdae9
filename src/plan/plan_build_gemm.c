/* A product as operations: the in-phase copies, the product, residual beside the partials, the sum with
 * its epilogue on the owned windows. */
#include "plan/plan_build.h"

#include <string.h>

/* The grid's left layout: every row part and K part on all column parts. */
static struct program_value left_layout(struct build *b, const struct plan_gemm *m,
                                        const struct plan_candidate *c) {
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.left", b->g->ops[m->op].name),
                              .batch = 1, .rows = m->rows, .cols = m->inner, .inside = PROGRAM_NONE,
                              .layout = build_layout(m->format, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    if (m->format != PROGRAM_F16) v.layout.exponent = (int8_t)b->o->fp8_exponent;
    build_axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    build_axis(&v.layout, PROGRAM_COLS, c->k, c->stride_k);
    build_axis(&v.layout, PROGRAM_REPLICA, c->c, c->stride_c);
    return v;
}

/* Each reader owns a sub-box of what it reads, as narrow as the column groups allow (long runs). */
static void own_boxes(const struct plan_gemm *m, const struct plan_candidate *c,
                      struct program_layout *l) {
    const uint32_t groups = ceil_div_u32(m->inner, plan_group(m)) / c->k;
    const uint32_t columns = MIN(groups, c->c), rows = MIN(c->c / columns, m->rows / c->r);
    build_axis(l, PROGRAM_REPLICA, 1, 0);
    build_axis(l, PROGRAM_WINDOW, rows * columns, c->stride_c);
    l->window_rows = rows;
    l->window_cols = columns;
}

/* A computed left operand in F8: F16 boxes on the readers, cast there, then multicast. */
static uint32_t left_cast(struct build *b, const struct plan_gemm *m, const struct plan_candidate *c,
                          const struct program_value *want) {
    const struct graph_op *op = &b->g->ops[m->op];
    struct program_value f8 = *want, f16;
    own_boxes(m, c, &f8.layout);
    f8.name = arena_printf(b->p->arena, "%s.cast", op->name);
    f16 = f8;
    f16.name = arena_printf(b->p->arena, "%s.boxes", op->name);
    f16.layout.format = PROGRAM_F16;
    f16.layout.exponent = 0;
    f16.layout.memory = PROGRAM_INTERLEAVED;
    const uint32_t in = build_place(b, op, m->left, &f16, false);
    const struct program_op cast = {.compute = PROGRAM_CAST, .operation = op->name, .reason = "cast",
                                    .n_inputs = 1, .inputs = {in}};
    const struct held from = {build_compute(b, &cast, &f8), program_map_identity()};
    return c->c == 1 ? from.value : build_copy(b, op, "gather", &from, want);
}

static uint32_t left_operand(struct build *b, const struct plan_gemm *m,
                             const struct plan_candidate *c) {
    const struct graph_op *op = &b->g->ops[m->op];
    struct program_value v = left_layout(b, m, c);
    if (!build_is_source(b, m->left)) {
        if (m->format != PROGRAM_F16) return left_cast(b, m, c, &v);
        return build_place(b, op, m->left, &v, false);
    }
    if (m->free_input || c->c == 1) return build_source(b, m->left, &v);
    /* stored once: each reader owns an equal window of what it reads */
    struct program_value home = v;
    const uint64_t rows32 = (uint64_t)(m->rows / c->r) * (ceil_div_u32(m->inner, plan_group(m)) / c->k);
    build_axis(&home.layout, PROGRAM_REPLICA, 1, 0);
    build_axis(&home.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, c->c), c->stride_c);
    const struct held from = {build_source(b, m->left, &home), program_map_identity()};
    if (m->format == PROGRAM_F16 && b->repeat == PROGRAM_NONE)
        b->held[plan_resolve(b->g, m->left)] = from;
    return build_copy(b, op, "gather", &from, &v);
}

/* Coefficients: homes are equal windows of the panels on the tiles that read them. */
static uint32_t right_operand(struct build *b, const struct plan_gemm *m,
                              const struct plan_candidate *c) {
    const struct graph_op *op = &b->g->ops[m->op];
    const uint8_t memory = c->interleaved ? PROGRAM_INTERLEAVED : PROGRAM_STANDARD;
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.right", op->name), .batch = 1,
                              .rows = m->inner, .cols = m->columns, .inside = PROGRAM_NONE,
                              .layout = build_layout(m->format, PROGRAM_COEFF, memory)};
    if (m->format != PROGRAM_F16) v.layout.exponent = (int8_t)b->o->fp8_exponent;
    build_axis(&v.layout, PROGRAM_ROWS, c->k, c->stride_k);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_REPLICA, c->r, c->stride_r);
    struct program_value home = v;
    home.tensor.step[1] = m->transpose_right ? 1 : m->columns;
    home.tensor.step[2] = m->transpose_right ? m->inner : 1;
    build_axis(&home.layout, PROGRAM_REPLICA, 1, 0);
    if (c->r == 1) return build_source(b, m->right, &home);
    const uint64_t rows32 = 16 * (uint64_t)(ceil_div_u32(m->inner, plan_group(m)) / c->k) *
                            (ceil_div_u32(m->columns, 16) / c->c);
    build_axis(&home.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, c->r), c->stride_r);
    if (c->home == PLAN_HOME_INSIDE) home.inside = b->p->n_values + 1; /* the copy's output */
    else home.layout.memory = PROGRAM_ANY;
    const struct held from = {build_source(b, m->right, &home), program_map_identity()};
    return build_copy(b, op, "coefficients", &from, &v);
}

/* Bias of the column part on every tile of its row parts and owners. */
static uint32_t bias_operand(struct build *b, const struct plan_gemm *m, const struct plan_candidate *c) {
    struct program_value v = {.name = b->g->values[m->bias].name, .batch = 1, .rows = c->r,
                              .cols = m->columns, .inside = PROGRAM_NONE,
                              .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_INTERLEAVED)};
    build_axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_REPLICA, c->k, c->stride_k);
    v.tensor.step[2] = 1; /* every row is the vector */
    return build_source(b, m->bias, &v);
}

bool build_gemm(struct build *b, const struct plan_gemm *m, const struct plan_candidate *c) {
    const struct graph_op *op = &b->g->ops[m->op];
    const char *name = b->g->values[m->result].name;
    const uint32_t left = left_operand(b, m, c), right = right_operand(b, m, c);
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.partial", op->name), .batch = 1,
                              .rows = m->rows, .cols = m->columns, .inside = PROGRAM_NONE,
                              .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_INTERLEAVED)};
    build_axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_PARTIAL, c->k, c->stride_k);
    const bool summed = c->k > 1 || m->epilogue;
    if (!summed) v.name = name;
    const struct program_op product = {.compute = PROGRAM_PRODUCT, .operation = op->name,
                                       .reason = "operator", .n_inputs = 2, .inputs = {left, right}};
    uint32_t result = build_compute(b, &product, &v);
    if (summed) {
        struct program_op sum = {.compute = PROGRAM_SUM, .epilogue = m->epilogue,
                                 .operation = b->g->values[m->result].name, .reason = "reduction",
                                 .n_inputs = 1, .inputs = {result}};
        build_axis(&v.layout, PROGRAM_PARTIAL, 1, 0);
        if (c->k > 1) build_axis(&v.layout, PROGRAM_WINDOW, c->k, c->stride_k);
        if (m->epilogue & PROGRAM_EPILOGUE_BIAS) sum.inputs[sum.n_inputs++] = bias_operand(b, m, c);
        if (m->epilogue & PROGRAM_EPILOGUE_RESIDUAL) {
            v.name = arena_printf(b->p->arena, "%s.residual", name);
            sum.inputs[sum.n_inputs++] = build_place(b, op, m->residual, &v, true);
        }
        v.name = name;
        if (c->k > 1) v.layout.memory = PROGRAM_ANY;
        result = build_compute(b, &sum, &v);
    }
    build_hold(b, m->result, result);
    return true;
}
