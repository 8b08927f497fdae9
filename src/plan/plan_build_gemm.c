/* A product as operations: the in-phase copies, the product, residual beside the partials, the sum
 * with its epilogue on the owned windows. */
#include "plan/plan_build.h"

#include <string.h>

/* The grid's left layout: every row part and K part on all column parts. */
static struct program_value left_layout(struct build *b, const struct plan_gemm *m,
                                        const struct plan_candidate *c) {
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.left", b->g->ops[m->op].name),
                              .batch = 1,
                              .rows = m->rows,
                              .cols = m->inner,
                              .inside = PROGRAM_NONE,
                              .layout = build_layout(m->format, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    if (m->format != PROGRAM_F16) v.layout.exponent = (int8_t)b->o->fp8_exponent;
    v.layout.base = c->base;
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

/* The graph's left operand in F8: F16 boxes on the tiles that read them, cast there. Products that
 * read the same value share it. */
uint32_t build_f8(struct build *b, const struct plan_gemm *m, const struct plan_candidate *c) {
    const struct graph_op *op = &b->g->ops[m->op];
    const uint32_t value = plan_resolve(b->g, m->left);
    if (b->cast[value] != PROGRAM_NONE) return b->cast[value];
    if (build_is_source(b, m->left)) {
        struct program_value like = left_layout(b, m, c);
        if (m->swapped) like.rows = m->batch * m->columns;
        return b->cast[value] = build_spread(b, m->left, &like);
    }
    struct program_value f8 = left_layout(b, m, c), f16;
    if (m->swapped) { /* its columns are what a normal product has as rows */
        f8.rows = m->batch * m->columns;
        build_axis(&f8.layout, PROGRAM_ROWS, c->c, c->stride_c);
        build_axis(&f8.layout, PROGRAM_REPLICA, 1, 0);
    } else {
        own_boxes(m, c, &f8.layout);
    }
    f8.name = arena_printf(b->p->arena, "%s.cast", op->name);
    f16 = f8;
    f16.name = arena_printf(b->p->arena, "%s.boxes", op->name);
    f16.layout.format = PROGRAM_F16;
    f16.layout.exponent = 0;
    f16.layout.memory = PROGRAM_INTERLEAVED;
    const uint32_t in = build_place(b, op, m->left, &f16, false);
    const struct program_op cast = {.compute = PROGRAM_CAST,
                                    .operation = op->name,
                                    .reason = "cast",
                                    .n_inputs = 1,
                                    .inputs = {in}};
    b->cast[value] = build_compute(b, &cast, &f8);
    return b->cast[value];
}

/* A value that is held by rows or heads would reach its many readers in pieces of 32 bytes. Brought
 * first to boxes on the readers it costs one short phase and then moves in long messages. */
static void hold_boxes(struct build *b, const struct plan_gemm *m, const struct plan_candidate *c) {
    const uint32_t value = plan_resolve(b->g, m->left);
    if (b->p->values[b->held[value].value].layout.window_rows &&
        b->p->values[b->held[value].value].layout.count[PROGRAM_COLS] > 1)
        return; /* boxes of another product */
    struct program_value boxes = left_layout(b, m, c);
    boxes.name = arena_printf(b->p->arena, "%s.boxes", b->g->ops[m->op].name);
    own_boxes(m, c, &boxes.layout);
    build_hold(b, value, build_place(b, &b->g->ops[m->op], m->left, &boxes, false));
}

/* Rows [first, first + n) of a product: all, or those of a pass. */
struct row_range {
    uint32_t first, n;
};

/* The left operand stored by the host where it is read. */
static uint32_t left_source(struct build *b, const struct plan_gemm *m,
                            const struct program_value *v, struct row_range rows) {
    struct program_value part = *v;
    if (rows.n != m->rows) {
        part.tensor.offset = (uint64_t)rows.first * m->inner;
        part.tensor.step[1] = m->inner;
        part.tensor.step[2] = 1;
    }
    return build_source(b, m->left, &part);
}

/* A host operand stored once: each reader owns an equal window of what it reads. */
static struct held left_home(struct build *b, const struct plan_gemm *m,
                             const struct plan_candidate *c) {
    const uint32_t value = plan_resolve(b->g, m->left);
    struct program_value home = left_layout(b, m, c);
    const uint64_t rows32 =
        (uint64_t)(m->rows / c->r) * (ceil_div_u32(m->inner, plan_group(m)) / c->k);
    build_axis(&home.layout, PROGRAM_REPLICA, 1, 0);
    build_axis(&home.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, c->c), c->stride_c);
    const struct held from = {build_source(b, m->left, &home), program_map_identity(), false};
    if (b->repeat == PROGRAM_NONE && m->format == PROGRAM_F16) b->held[value] = from;
    if (b->repeat == PROGRAM_NONE && m->format != PROGRAM_F16) b->cast[value] = from.value;
    return from;
}

/* Where the left operand of the passes comes from, in its format, one row of it a row. */
static struct held left_from(struct build *b, const struct plan_gemm *m,
                             const struct plan_candidate *c) {
    const uint32_t value = plan_resolve(b->g, m->left);
    struct held from = {b->cast[value], program_map_identity(), false};
    if (build_is_source(b, m->left))
        return m->format != PROGRAM_F16 && from.value != PROGRAM_NONE ? from : left_home(b, m, c);
    if (m->format != PROGRAM_F16) {
        from.value = build_f8(b, m, c);
        return from;
    }
    if (c->passes > 1 || (m->source == PROGRAM_NONE && c->c > 1)) hold_boxes(b, m, c);
    return b->held[value];
}

static uint32_t left_operand(struct build *b, const struct plan_gemm *m,
                             const struct plan_candidate *c, struct row_range rows) {
    const struct graph_op *op = &b->g->ops[m->op];
    struct program_value v = left_layout(b, m, c);
    v.rows = rows.n;
    if (build_is_source(b, m->left) &&
        (m->free_input || (c->c == 1 && (m->format == PROGRAM_F16 ||
                                         b->cast[plan_resolve(b->g, m->left)] == PROGRAM_NONE))))
        return left_source(b, m, &v, rows);
    struct held from = left_from(b, m, c);
    if (rows.n == m->rows && m->format == PROGRAM_F16 && !build_is_source(b, m->left))
        return build_place(b, op, m->left, &v, false);
    const struct program_value *x = &b->p->values[from.value];
    if (rows.n == m->rows && memcmp(&x->layout, &v.layout, sizeof v.layout) == 0 &&
        m->format != PROGRAM_F16)
        return from.value;
    from.map.offset[1] += (int32_t)rows.first;
    return build_copy(b, op, "gather", &from, &v);
}

/* Coefficients: homes are equal windows of the panels on the tiles that read them. */
static uint32_t right_operand(struct build *b, const struct plan_gemm *m,
                              const struct plan_candidate *c) {
    const struct graph_op *op = &b->g->ops[m->op];
    const uint8_t memory = c->interleaved ? PROGRAM_INTERLEAVED : PROGRAM_STANDARD;
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.right", op->name),
                              .batch = 1,
                              .rows = m->inner,
                              .cols = m->columns,
                              .inside = PROGRAM_NONE,
                              .layout = build_layout(m->format, PROGRAM_COEFF, memory)};
    if (m->format != PROGRAM_F16) v.layout.exponent = (int8_t)b->o->fp8_exponent;
    v.layout.base = c->base;
    build_axis(&v.layout, PROGRAM_ROWS, c->k, c->stride_k);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_REPLICA, c->r, c->stride_r);
    struct program_value home = v;
    home.tensor.step[1] = m->transpose_right ? 1 : m->width;
    home.tensor.step[2] = m->transpose_right ? m->inner : 1;
    build_axis(&home.layout, PROGRAM_REPLICA, 1, 0);
    if (c->r == 1) return build_source(b, m->right, &home);
    const uint64_t rows32 = 16 * (uint64_t)(ceil_div_u32(m->inner, plan_group(m)) / c->k) *
                            (ceil_div_u32(m->columns, 16) / c->c);
    build_axis(&home.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, c->r), c->stride_r);
    if (c->home == PLAN_HOME_INSIDE) home.inside = b->p->n_values + 1; /* the copy's output */
    else home.layout.memory = PROGRAM_ANY;
    const struct held from = {build_source(b, m->right, &home), program_map_identity(), false};
    return build_copy(b, op, "coefficients", &from, &v);
}

/* Bias of the column part on every tile of its row parts and owners. */
static uint32_t bias_operand(struct build *b, const struct plan_gemm *m,
                             const struct plan_candidate *c) {
    struct program_value v = {.name = b->g->values[m->bias].name,
                              .batch = 1,
                              .rows = c->r,
                              .cols = m->columns,
                              .inside = PROGRAM_NONE,
                              .layout =
                                  build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_INTERLEAVED)};
    v.layout.base = c->base;
    build_axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_REPLICA, c->k, c->stride_k);
    v.tensor.step[2] = 1; /* every row is the vector */
    return build_source(b, m->bias, &v);
}

/* Rows are columns of the parameter: home in windows on its readers. */
static uint32_t swapped_left(struct build *b, const struct plan_gemm *m,
                             const struct plan_candidate *c) {
    struct program_value v = left_layout(b, m, c), home = v;
    home.tensor.offset = m->first;
    home.tensor.step[1] = 1;
    home.tensor.step[2] = m->width;
    if (c->c == 1) return build_source(b, m->right, &home);
    const uint64_t rows32 =
        (uint64_t)(m->rows / c->r) * (ceil_div_u32(m->inner, plan_group(m)) / c->k);
    build_axis(&home.layout, PROGRAM_REPLICA, 1, 0);
    build_axis(&home.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, c->c), c->stride_c);
    const struct held from = {build_source(b, m->right, &home), program_map_identity(), false};
    return build_copy(b, &b->g->ops[m->op], "coefficients", &from, &v);
}

/* The graph's left operand as coefficients: one matrix of columns for each image. */
static uint32_t swapped_right(struct build *b, const struct plan_gemm *m,
                              const struct plan_candidate *c) {
    const struct graph_op *op = &b->g->ops[m->op];
    const uint8_t memory = c->interleaved ? PROGRAM_INTERLEAVED : PROGRAM_STANDARD;
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.columns", op->name),
                              .batch = m->batch,
                              .rows = m->columns,
                              .cols = m->inner,
                              .inside = PROGRAM_NONE,
                              .layout = build_layout(m->format, PROGRAM_COEFF_T, memory)};
    v.layout.base = c->base;
    build_axis(&v.layout, PROGRAM_ROWS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_COLS, c->k, c->stride_k);
    build_axis(&v.layout, PROGRAM_REPLICA, c->r, c->stride_r);
    const uint32_t value = plan_resolve(b->g, m->left);
    struct held from = build_held(b, op, value, &v);
    if (m->format != PROGRAM_F16) v.layout.exponent = (int8_t)b->o->fp8_exponent;
    if (build_is_source(b, m->left) && b->g->values[value].kind == GRAPH_INPUT &&
        !b->o->inputs_once)
        return build_source(b, m->left, &v);
    if (m->format != PROGRAM_F16) {
        from = (struct held){build_f8(b, m, c), program_map_identity(), false};
    } else if (from.value == PROGRAM_NONE) {
        struct program_value like = left_layout(b, m, c); /* any even spread serves */
        like.rows = m->batch * m->columns;
        from.value = build_spread(b, m->left, &like);
    }
    build_as_matrices(b, op, &from, &v);
    return build_copy(b, op, "gather", &from, &v);
}

/* A product under construction, or one pass over its rows. */
struct work {
    const struct plan_gemm *m;
    struct plan_candidate c;
    struct row_range rows;
    uint32_t left, right, result, bias;
    uint32_t whole, first_part; /* the joined result of all passes; PROGRAM_NONE: there is one */
};

static void swapped_product(struct build *b, struct work *w) {
    const struct plan_gemm *m = w->m;
    const struct plan_candidate *c = &w->c;
    struct program_value v = {
        .name = arena_printf(b->p->arena, "%s.partial", b->g->values[m->result].name),
        .batch = m->batch,
        .rows = m->rows,
        .cols = m->columns,
        .inside = PROGRAM_NONE,
        .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED)};
    v.layout.base = c->base;
    build_axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_PARTIAL, c->k, c->stride_k);
    const struct program_op product = {.compute = PROGRAM_PRODUCT,
                                       .operation = b->g->ops[m->op].name,
                                       .reason = "operator",
                                       .n_inputs = 2,
                                       .inputs = {w->left, w->right}};
    w->result = build_compute(b, &product, &v);
}

static void swapped_sum(struct build *b, struct work *w) {
    const struct plan_gemm *m = w->m;
    if (w->c.k > 1) {
        struct program_value v = b->p->values[w->result];
        build_axis(&v.layout, PROGRAM_PARTIAL, 1, 0);
        build_axis(&v.layout, PROGRAM_WINDOW, w->c.owners, w->c.stride_k);
        v.layout.memory = PROGRAM_ANY;
        v.name = b->g->values[m->result].name;
        const struct program_op sum = {.compute = PROGRAM_SUM,
                                       .operation = b->g->ops[m->op].name,
                                       .reason = "reduction",
                                       .n_inputs = 1,
                                       .inputs = {w->result}};
        w->result = build_compute(b, &sum, &v);
    }
    struct program_map map = {.inner = {UINT32_MAX, m->columns, UINT32_MAX}};
    map.outer_to[1][0] = 1; /* row i * columns + t, column j: image i, row j, column t */
    map.inner_to[1][2] = 1;
    map.inner_to[2][1] = 1;
    b->held[m->result] = (struct held){w->result, map, true};
}

/* Products on few tiles lie side by side, so that their parameters do not pile up on the first
 * ones. */
static struct plan_candidate place_grid(struct build *b, const struct plan_candidate *c) {
    struct plan_candidate x = *c;
    const uint32_t span = align_up_u32(c->r * c->c * c->k, 2);
    if (span > b->p->n_tiles / 2) return x;
    if (b->next_base + span > b->p->n_tiles) b->next_base = 0;
    x.base = b->next_base;
    b->next_base += span;
    return x;
}

/* A host tensor that others read in F16 is stored so and cast like a computed one. */
static void hold_mixed(struct build *b, const struct plan_gemm *m) {
    const uint32_t value = plan_resolve(b->g, m->left);
    if (m->format == PROGRAM_F16 || !build_is_source(b, value) || !plan_is_mixed(b->order, value))
        return;
    build_hold(b, value, build_plain(b, &b->g->ops[m->op], value));
}

static bool is_summed(const struct work *w) {
    return w->c.k > 1 || w->m->epilogue;
}

/* The result of a pass is made in its place of the whole result. */
static void make_part(struct build *b, const struct work *w, struct program_value *v) {
    if (w->whole == PROGRAM_NONE) return;
    v->name = arena_printf(b->p->arena, "%s.pass", v->name);
    v->inside = w->whole;
    v->first_part = w->first_part;
    v->parts = w->c.r;
}

static void normal_product(struct build *b, struct work *w) {
    const struct plan_gemm *m = w->m;
    const struct plan_candidate *c = &w->c;
    const struct graph_op *op = &b->g->ops[m->op];
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.partial", op->name),
                              .batch = 1,
                              .rows = w->rows.n,
                              .cols = m->columns,
                              .inside = PROGRAM_NONE,
                              .layout =
                                  build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_INTERLEAVED)};
    v.layout.base = c->base;
    build_axis(&v.layout, PROGRAM_ROWS, c->r, c->stride_r);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    build_axis(&v.layout, PROGRAM_PARTIAL, c->k, c->stride_k);
    if (!is_summed(w)) {
        v.name = b->g->values[m->result].name;
        make_part(b, w, &v);
    }
    const struct program_op product = {.compute = PROGRAM_PRODUCT,
                                       .operation = op->name,
                                       .reason = "operator",
                                       .n_inputs = 2,
                                       .inputs = {w->left, w->right}};
    w->result = build_compute(b, &product, &v);
}

static struct program_value result_layout(const struct build *b, const struct work *w,
                                          uint32_t partial) {
    struct program_value v = b->p->values[partial];
    build_axis(&v.layout, PROGRAM_PARTIAL, 1, 0);
    if (w->c.k > 1) build_axis(&v.layout, PROGRAM_WINDOW, w->c.owners, w->c.stride_k);
    return v;
}

static uint32_t residual_operand(struct build *b, const struct work *w,
                                 const struct program_value *want) {
    const struct plan_gemm *m = w->m;
    const struct graph_op *op = &b->g->ops[m->op];
    if (w->whole == PROGRAM_NONE) return build_place(b, op, m->residual, want, true);
    struct held from = b->held[plan_resolve(b->g, m->residual)];
    if (from.value == PROGRAM_NONE) {
        struct program_value v = *want;
        v.tensor.offset = (uint64_t)w->rows.first * v.cols;
        v.tensor.step[1] = v.cols;
        v.tensor.step[2] = 1;
        return build_source(b, m->residual, &v);
    }
    if (b->p->values[from.value].batch > 1) { /* a matrix of rows first */
        struct program_value rows = *want;
        rows.rows = m->rows;
        from = (struct held){build_place(b, op, m->residual, &rows, true), program_map_identity(),
                             false};
    }
    from.map.offset[1] += (int32_t)w->rows.first;
    return build_copy(b, op, "gather", &from, want);
}

static void normal_sum(struct build *b, struct work *w) {
    const struct plan_gemm *m = w->m;
    const char *name = b->g->values[m->result].name;
    if (!is_summed(w)) return;
    struct program_value v = result_layout(b, w, w->result);
    struct program_op sum = {.compute = PROGRAM_SUM,
                             .epilogue = m->epilogue,
                             .operation = name,
                             .reason = "reduction",
                             .n_inputs = 1,
                             .inputs = {w->result}};
    if (m->epilogue & PROGRAM_EPILOGUE_BIAS) {
        if (w->bias == PROGRAM_NONE) w->bias = bias_operand(b, m, &w->c);
        sum.inputs[sum.n_inputs++] = w->bias;
    }
    if (m->epilogue & PROGRAM_EPILOGUE_RESIDUAL) {
        v.name = arena_printf(b->p->arena, "%s.residual", name);
        sum.inputs[sum.n_inputs++] = residual_operand(b, w, &v);
    }
    v.name = name;
    if (w->c.k > 1) v.layout.memory = PROGRAM_ANY;
    make_part(b, w, &v);
    w->result = build_compute(b, &sum, &v);
}

static void product(struct build *b, struct work *w) {
    if (w->m->swapped) swapped_product(b, w);
    else normal_product(b, w);
}

/* --- Passes over the rows --- */

/* The whole result: the row parts of all passes, pass by pass on the same tiles. */
static uint32_t whole_result(struct build *b, const struct work *w) {
    const struct plan_candidate *c = &w->c;
    struct program_value v = {.name = b->g->values[w->m->result].name,
                              .batch = 1,
                              .rows = w->m->rows,
                              .cols = w->m->columns,
                              .inside = PROGRAM_NONE,
                              .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT,
                                                     c->k > 1 ? PROGRAM_ANY : PROGRAM_INTERLEAVED)};
    v.layout.base = c->base;
    build_axis(&v.layout, PROGRAM_ROWS, c->passes * c->r, c->stride_r);
    build_axis(&v.layout, PROGRAM_COLS, c->c, c->stride_c);
    if (c->k > 1) build_axis(&v.layout, PROGRAM_WINDOW, c->owners, c->stride_k);
    v.layout.wrap = c->r;
    return build_value(b, &v);
}

/* One pass after the other: its left operand, product and sum; the coefficients stay. */
static void build_passes(struct build *b, struct work *w) {
    const struct plan_candidate *c = &w->c;
    struct program_op join = {.kind = PROGRAM_COMPUTE,
                              .compute = PROGRAM_KERNEL,
                              .kernel = PROGRAM_KERNEL_JOIN,
                              .operation = b->g->ops[w->m->op].name,
                              .reason = "operator",
                              .map = program_map_identity()};
    w->whole = join.output = whole_result(b, w);
    for (uint32_t i = 0; i < c->passes; i++) {
        const uint32_t parts = c->passes * c->r;
        w->first_part = i * c->r;
        w->rows.first = program_part_start(w->m->rows, 1, parts, w->first_part);
        w->rows.n = program_part_start(w->m->rows, 1, parts, w->first_part + c->r) - w->rows.first;
        w->left = left_operand(b, w->m, c, w->rows);
        if (i == 0) w->right = right_operand(b, w->m, c);
        normal_product(b, w);
        normal_sum(b, w);
        join.inputs[join.n_inputs++] = w->result;
    }
    program_add_op(b->p, &join, b->repeat);
    build_hold(b, w->m->result, w->whole);
}

/* --- Products that share phases --- */

/* What a product holds while the others of its group do the same. */
static uint64_t group_bytes(const struct plan_gemm *m, const struct plan_candidate *c) {
    const uint64_t left = m->free_input && !m->swapped ? 0 : c->left_bytes;
    const uint64_t right = m->free_input && m->swapped ? 0 : c->right_bytes;
    return left + right + c->out_bytes + c->received_bytes + c->result_bytes;
}

/* Products [*first, return value) are made together. */
static uint32_t group_end(struct build *b, uint32_t position, uint32_t first) {
    const struct plan_order *o = b->order;
    const uint64_t most = ((uint64_t)b->o->standard_bytes + b->o->interleaved_bytes) / 4;
    const uint32_t left = plan_resolve(b->g, o->gemms[first].left);
    uint32_t n = first, op = o->ops[position];
    uint64_t bytes = 0;
    for (;;) {
        uint32_t end = n;
        for (; end < o->n_gemms && o->gemms[end].op == op; end++)
            bytes += group_bytes(&o->gemms[end], &b->chosen[end]);
        if (n > first && (bytes > most || b->chosen[n].passes > 1)) return n;
        b->built[op] = true;
        n = end;
        if (b->chosen[first].passes > 1) return n;
        do {
            if (++position == o->n_ops) return n;
        } while (o->fused[o->ops[position]]);
        op = o->ops[position];
        if (b->g->ops[op].kind != GRAPH_GEMM || o->gemm_of[op] != n ||
            o->repeat_of[position] != o->repeat_of[position - 1] ||
            plan_resolve(b->g, o->gemms[n].left) != left)
            return n;
    }
}

static struct work start_work(struct build *b, uint32_t i) {
    const struct plan_gemm *m = &b->order->gemms[i];
    return (struct work){.m = m,
                         .c = place_grid(b, &b->chosen[i]),
                         .rows = {0, m->rows},
                         .bias = PROGRAM_NONE,
                         .whole = PROGRAM_NONE};
}

static void operands(struct build *b, struct work *w) {
    w->left = w->m->swapped ? swapped_left(b, w->m, &w->c) : left_operand(b, w->m, &w->c, w->rows);
    w->right = w->m->swapped ? swapped_right(b, w->m, &w->c) : right_operand(b, w->m, &w->c);
}

bool build_gemms(struct build *b, uint32_t position) {
    const uint32_t first = b->order->gemm_of[b->order->ops[position]];
    const uint32_t n = group_end(b, position, first) - first;
    /* In a repeat a tile sends from one moving sequence in a phase. */
    const bool apart = b->order->gemms[first].repeated;
    struct work *w = arena_new_array(b->p->arena, struct work, n);
    for (uint32_t i = 0; i < n; i++) {
        w[i] = start_work(b, first + i);
        hold_mixed(b, w[i].m);
        if (w[i].c.passes > 1) {
            build_passes(b, &w[i]);
            continue;
        }
        operands(b, &w[i]);
        if (apart) product(b, &w[i]);
    }
    for (uint32_t i = 0; i < n && !apart; i++)
        if (w[i].c.passes == 1) product(b, &w[i]);
    for (uint32_t i = 0; i < n; i++) {
        if (w[i].c.passes > 1) continue;
        if (w[i].m->swapped) {
            swapped_sum(b, &w[i]);
            continue;
        }
        normal_sum(b, &w[i]);
        build_hold(b, w[i].m->result, w[i].result);
    }
    return true;
}
