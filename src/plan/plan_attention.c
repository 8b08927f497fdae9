/* Attention with the keys split over tiles. Every (batch, row part, key part) is a tile: its scores
 * stay there. In order: queries and keys to the grid; scores; row maxima of the key parts, combined
 * by two small exchanges; exponentials in place; product with the values, whose column of ones
 * makes the denominators; partial results summed by rows; division.
 *
 * A tile takes several matrices of the batch if there are more of them than tiles; then neither
 * rows nor keys are split. */
#include "plan/plan_build.h"
#include "numeric/num_format.h"

#include <math.h>
#include <string.h>

struct attention {
    struct build *b;
    const struct graph_op *op;
    uint32_t batch, rows, keys, width, out; /* width of queries and keys, out of values */
    uint32_t n, r, c;                       /* parts of batch, rows, keys */
    float scale;
    bool qk8, pv8; /* that product's operands in F8 */
};

/* --- Grid --- */

static uint64_t gemm_cycles(bool f8, uint32_t rows, uint32_t inner, uint32_t columns) {
    const struct kernel_spec s = {
        f8 ? KERNEL_GEMM_F8 : KERNEL_GEMM_F16,
        {rows, align_up_u32(inner, f8 ? 32 : 16), align_up_u32(columns, 16), 0, 1}};
    return kernel_cycles(&s);
}

static uint64_t grid_cycles(const struct attention *a, uint32_t r, uint32_t c) {
    const uint32_t rows = ceil_div_u32(a->rows, r),
                   keys = 32 * ceil_div_u32(ceil_div_u32(a->keys, 32), c);
    const uint32_t width = align_up_u32(a->width, 16), out = align_up_u32(a->out + 1, 16);
    const uint64_t q = (uint64_t)rows * width / (c % 2 ? 2 : 4);
    const uint64_t kv = (r > 1 || c > 1 ? 1 : 0) * (uint64_t)keys * (width + out) / 2;
    const uint32_t valid = MIN(keys, a->keys);
    const struct kernel_spec maxima = {KERNEL_ROW_MAX, {rows, keys, valid}};
    const struct kernel_spec exponential = {
        KERNEL_EXP_PANELS, {rows, keys, valid, num_f16_from_f32(a->scale), a->pv8}};
    uint64_t cycles = plan_phase_cycles(q + kv, 64) + gemm_cycles(a->qk8, rows, width, keys) +
                      kernel_cycles(&maxima) + kernel_cycles(&exponential) +
                      gemm_cycles(a->pv8, rows, keys, out);
    const uint32_t owned = ceil_div_u32(rows, MIN(c, a->rows / r));
    const struct kernel_spec divide = {KERNEL_NORMALISE_PANELS, {owned, out, a->out}};
    cycles += kernel_cycles(&divide);
    if (c == 1) return cycles;
    const struct kernel_spec combine = {KERNEL_ROW_MAX, {owned, align_up_u32(2 * c, 16), 2 * c}};
    const struct kernel_spec reduce = {KERNEL_REDUCE_F16, {c, 16 * owned}};
    return cycles + plan_phase_cycles((uint64_t)owned * c, 1) + kernel_cycles(&combine) +
           plan_phase_cycles(rows, owned) +
           plan_phase_cycles((uint64_t)owned * out * (c - 1) / 2, owned * 8) +
           out / 16 * kernel_cycles(&reduce);
}

static bool choose_grid(struct attention *a) {
    const uint32_t tiles = a->b->p->n_tiles;
    enum { MOST_ROWS = 2000, MOST_KEYS = 4096 }; /* of a kernel call */
    a->n = MIN(a->batch, tiles);
    a->r = a->c = 1;
    uint64_t best = UINT64_MAX;
    const uint32_t each = a->batch > tiles ? 1 : tiles / a->n, groups = ceil_div_u32(a->keys, 32);
    for (uint32_t r = 1; r <= MIN(each, a->rows); r++)
        for (uint32_t c = 1; c <= MIN(each / r, groups); c++) {
            if (ceil_div_u32(a->rows, r) > MOST_ROWS) continue;
            if (32 * ceil_div_u32(groups, c) > MOST_KEYS) continue;
            if (c > 1 && (a->n * r + 1) * c > tiles) continue; /* see row_maxima */
            const uint64_t cycles = grid_cycles(a, r, c);
            if (cycles >= best) continue;
            best = cycles;
            a->r = r;
            a->c = c;
        }
    return best != UINT64_MAX;
}

/* --- Layouts: strides of the grid; batch outermost, keys innermost --- */

static struct program_value value(const struct attention *a, const char *name, uint32_t rows,
                                  uint32_t cols, struct program_layout l) {
    struct program_value v = {.name = arena_printf(a->b->p->arena, "%s.%s", a->op->name, name),
                              .batch = a->batch,
                              .rows = rows,
                              .cols = cols,
                              .inside = PROGRAM_NONE,
                              .layout = l};
    build_axis(&v.layout, PROGRAM_BATCH, a->n, a->r * a->c);
    return v;
}

static void by_rows(const struct attention *a, struct program_value *v) {
    build_axis(&v->layout, PROGRAM_ROWS, a->r, a->c);
}

/* Each of the c tiles of a row part owns a window of its rows, as far as there are rows. */
static void own_rows(const struct attention *a, struct program_value *v) {
    by_rows(a, v);
    const uint32_t n = MIN(a->c, a->rows / a->r);
    if (n == 1) return;
    build_axis(&v->layout, PROGRAM_WINDOW, n, 1);
    v->layout.window_rows = n;
    v->layout.window_cols = 1;
}

/* Keys are padded to 32 on every tile: whole K groups in either format. */
static struct program_layout key_layout(uint8_t format, uint8_t order, uint8_t memory,
                                        uint32_t axis) {
    struct program_layout l = build_layout(format, order, memory);
    l.grain[axis] = l.pad[axis] = 32;
    return l;
}

static uint8_t qk_format(const struct attention *a) {
    return a->qk8 ? PROGRAM_F8_F143 : PROGRAM_F16;
}

static uint8_t pv_format(const struct attention *a) {
    return a->pv8 ? PROGRAM_F8_F143 : PROGRAM_F16;
}

static void set_exponent(const struct attention *a, struct program_value *v, bool qk) {
    const struct plan_options *o = a->b->o;
    if (v->layout.format == PROGRAM_F8_F143)
        v->layout.exponent = (int8_t)(qk ? o->attention_qk_exponent : o->attention_pv_exponent);
}

/* F16 boxes (each element on one tile) and their cast; *v gives shape, owners and the F8 format. */
static uint32_t cast_boxes(const struct attention *a, const struct held *from,
                           const struct program_value *v) {
    struct program_value boxes = *v;
    boxes.name = arena_printf(a->b->p->arena, "%s.boxes", v->name);
    boxes.layout.format = PROGRAM_F16;
    boxes.layout.exponent = 0;
    boxes.layout.memory = PROGRAM_INTERLEAVED;
    const struct program_op cast = {.compute = PROGRAM_CAST,
                                    .operation = a->op->name,
                                    .reason = "cast",
                                    .n_inputs = 1,
                                    .inputs = {build_copy(a->b, a->op, "gather", from, &boxes)}};
    return build_compute(a->b, &cast, v);
}

/* A host operand is stored as the grid reads it; computed ones are copied, by way of a cast on
 * boxes of rows where F8 is wanted. */
static uint32_t operand(const struct attention *a, uint32_t k, const struct program_value *want) {
    struct build *b = a->b;
    if (build_is_source(b, a->op->operands[k])) return build_source(b, a->op->operands[k], want);
    if (!a->qk8) return build_place(b, a->op, a->op->operands[k], want, false);
    struct program_value boxes =
        value(a, k == 0 ? "queries.f8" : "keys.f8", want->rows, want->cols,
              build_layout(PROGRAM_F8_F143, PROGRAM_AMP_BATCHED, PROGRAM_ANY));
    boxes.layout.exponent = want->layout.exponent;
    if (k == 0) {
        own_rows(a, &boxes);
    } else {
        boxes.layout.grain[1] = 32; /* the key parts; each cut in windows over the row parts */
        build_axis(&boxes.layout, PROGRAM_ROWS, a->c, 1);
        const uint32_t last = a->keys - program_part_start(a->keys, 32, a->c, a->c - 1);
        const uint32_t n = MIN(a->r, last);
        build_axis(&boxes.layout, PROGRAM_WINDOW, n, a->c);
        boxes.layout.window_rows = boxes.layout.window_cols = n > 1 ? 1 : 0;
        if (n > 1) boxes.layout.window_rows = n;
    }
    const struct held cast = {
        cast_boxes(a, &b->held[plan_resolve(b->g, a->op->operands[k])], &boxes),
        program_map_identity(), false};
    return build_copy(b, a->op, "gather", &cast, want);
}

/* The transposed values in F8: whole rows (channels) spread over the tiles. */
static uint32_t cast_values(const struct attention *a, const struct held *from) {
    const struct program_value *t = &a->b->p->values[from->value];
    struct program_value v = {.name = arena_printf(a->b->p->arena, "%s.values.f8", a->op->name),
                              .batch = t->batch,
                              .rows = t->rows,
                              .cols = t->cols,
                              .inside = PROGRAM_NONE,
                              .layout =
                                  build_layout(PROGRAM_F8_F143, PROGRAM_AMP_BATCHED, PROGRAM_ANY)};
    set_exponent(a, &v, false);
    const uint32_t parts = MIN(t->rows, a->b->p->n_tiles);
    build_axis(&v.layout, PROGRAM_ROWS, parts, a->b->p->n_tiles / parts);
    const struct held whole = {from->value, program_map_identity(), false};
    return cast_boxes(a, &whole, &v);
}

/* Values as coefficients, keys inner, with a column of ones behind them. */
static uint32_t values(const struct attention *a) {
    struct build *b = a->b;
    struct program_value v =
        value(a, "values", a->keys, a->out + 1,
              key_layout(pv_format(a), PROGRAM_COEFF, PROGRAM_INTERLEAVED, PROGRAM_ROWS));
    set_exponent(a, &v, false);
    build_axis(&v.layout, PROGRAM_ROWS, a->c, 1);
    struct held from = b->held[plan_resolve(b->g, a->op->operands[2])];
    if (from.value == PROGRAM_NONE) {
        struct program_value home = v;
        home.cols = a->out;
        from = (struct held){build_source(b, a->op->operands[2], &home), program_map_identity(),
                             false};
    } else if (a->pv8) {
        from.value = cast_values(a, &from);
    }
    build_axis(&v.layout, PROGRAM_REPLICA, a->r, a->c);
    BUG_ON(b->ones == PROGRAM_NONE);
    const uint32_t copy = build_copy(b, a->op, "gather", &from, &v);
    struct program_op *op = &b->p->ops[b->p->n_ops - 1];
    op->inputs[op->n_inputs++] = b->ones;
    return copy;
}

static uint32_t compute(const struct attention *a, struct program_op op,
                        const struct program_value *v) {
    op.operation = a->op->name;
    op.reason = op.compute == PROGRAM_SUM ? "reduction" : "operator";
    return build_compute(a->b, &op, v);
}

/* The maxima of the c key parts of a row are single words that come together in one row of 32
 * bytes. A tile has no call that moves a single word, so nobody combines its own maxima: those of a
 * row part are combined on the tiles of the next one, those of the last on unused tiles. */
static uint32_t row_maxima(const struct attention *a, uint32_t scores) {
    struct program_layout pair = build_layout(PROGRAM_F16, PROGRAM_ROW_MAJOR, PROGRAM_ANY);
    pair.grain[2] = pair.pad[2] = 2;
    if (a->n < a->batch) pair.grain[1] = pair.pad[1] = 2; /* the next matrix stays 8-byte aligned */
    struct program_value own = value(a, "maxima", a->rows, 2 * a->c, pair);
    by_rows(a, &own);
    build_axis(&own.layout, PROGRAM_COLS, a->c, 1);
    const struct program_op op = {
        .compute = PROGRAM_KERNEL, .kernel = PROGRAM_KERNEL_ROW_MAX, .n_inputs = 1};
    struct program_op first = op;
    first.inputs[0] = scores;
    const uint32_t partial = compute(a, first, &own);
    if (a->c == 1) return partial;
    struct program_value all = value(a, "maxima.all", a->rows, 2 * a->c,
                                     build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_ANY));
    own_rows(a, &all);
    all.layout.base = a->c;
    const struct held from = {partial, program_map_identity(), false};
    struct program_op second = op;
    second.inputs[0] = build_copy(a->b, a->op, "maxima", &from, &all);
    struct program_value rows = value(a, "maxima.rows", a->rows, 2, pair);
    own_rows(a, &rows);
    rows.layout.base = a->c;
    const struct held combined = {compute(a, second, &rows), program_map_identity(), false};
    struct program_value each = value(a, "maxima.each", a->rows, 2, pair);
    by_rows(a, &each);
    build_axis(&each.layout, PROGRAM_REPLICA, a->c, 1);
    return build_copy(a->b, a->op, "maxima", &combined, &each);
}

/* Unnormalised probabilities in the place of the scores. */
static uint32_t probabilities(const struct attention *a, uint32_t queries, uint32_t keys) {
    struct program_value v =
        value(a, "scores", a->rows, a->keys,
              key_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED, PROGRAM_COLS));
    by_rows(a, &v);
    build_axis(&v.layout, PROGRAM_COLS, a->c, 1);
    const uint32_t scores = compute(
        a,
        (struct program_op){.compute = PROGRAM_PRODUCT, .n_inputs = 2, .inputs = {queries, keys}},
        &v);
    const uint32_t maxima = row_maxima(a, scores);
    v.name = arena_printf(a->b->p->arena, "%s.probabilities", a->op->name);
    v.layout.format = pv_format(a);
    if (a->pv8) v.layout.memory = PROGRAM_ANY;
    set_exponent(a, &v, false);
    return compute(a,
                   (struct program_op){.compute = PROGRAM_KERNEL,
                                       .kernel = PROGRAM_KERNEL_EXPONENTIAL,
                                       .n_inputs = 2,
                                       .inputs = {scores, maxima},
                                       .real = a->scale},
                   &v);
}

/* Bias of the values, one row per matrix of the batch; PROGRAM_NONE if there is none. */
static uint32_t bias_rows(const struct attention *a) {
    struct build *b = a->b;
    const struct plan_value_bias *bias = &b->order->value_bias[a->op - b->g->ops];
    if (bias->value == GRAPH_NONE) return PROGRAM_NONE;
    uint32_t n, heads_width;
    plan_matrix(&b->g->values[bias->value].shape, &n, &heads_width);
    const uint32_t heads = (heads_width - bias->first) / a->out;
    struct program_value v =
        value(a, "bias", a->r, a->out,
              build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED));
    by_rows(a, &v);
    build_axis(&v.layout, PROGRAM_REPLICA, a->c, 1);
    struct program_value home = {.name = v.name,
                                 .batch = 1,
                                 .rows = 1,
                                 .cols = heads_width,
                                 .inside = PROGRAM_NONE,
                                 .layout =
                                     build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    struct held from = {build_spread(b, bias->value, &home), program_map_identity(), false};
    from.map.inner[0] = heads; /* matrix i*heads + h, column j <- column first + h*out + j */
    from.map.outer_to[0][0] = 0;
    from.map.inner_to[0][0] = 0;
    from.map.inner_to[0][2] = (int32_t)a->out;
    from.map.inner_to[1][1] = 0;
    from.map.offset[2] = (int32_t)bias->first;
    return build_copy(b, a->op, "gather", &from, &v);
}

static uint32_t weighted_values(const struct attention *a, uint32_t p, uint32_t v, uint32_t bias) {
    struct program_value y =
        value(a, "weighted", a->rows, a->out + 1,
              build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED));
    by_rows(a, &y);
    build_axis(&y.layout, PROGRAM_PARTIAL, a->c, 1);
    uint32_t result = compute(
        a, (struct program_op){.compute = PROGRAM_PRODUCT, .n_inputs = 2, .inputs = {p, v}}, &y);
    build_axis(&y.layout, PROGRAM_PARTIAL, 1, 0);
    if (a->c > 1) {
        own_rows(a, &y);
        y.name = arena_printf(a->b->p->arena, "%s.sum", a->op->name);
        result = compute(
            a, (struct program_op){.compute = PROGRAM_SUM, .n_inputs = 1, .inputs = {result}}, &y);
    }
    y.cols = a->out;
    y.name = a->op->name;
    result = compute(a,
                     (struct program_op){.compute = PROGRAM_KERNEL,
                                         .kernel = PROGRAM_KERNEL_NORMALISE,
                                         .n_inputs = 1,
                                         .inputs = {result}},
                     &y);
    if (bias == PROGRAM_NONE) return result;
    y.name = arena_printf(a->b->p->arena, "%s.biased", a->op->name);
    return compute(a,
                   (struct program_op){.compute = PROGRAM_SUM,
                                       .epilogue = PROGRAM_EPILOGUE_BIAS,
                                       .n_inputs = 2,
                                       .inputs = {result, bias}},
                   &y);
}

bool build_attention(struct build *b, const struct graph_op *op) {
    const struct graph_shape *q = &b->g->values[op->operands[0]].shape;
    const struct graph_shape *k = &b->g->values[op->operands[1]].shape;
    const struct graph_shape *v = &b->g->values[op->operands[2]].shape;
    struct attention a = {.b = b,
                          .op = op,
                          .rows = q->dim[q->n_dims - 2],
                          .width = q->dim[q->n_dims - 1],
                          .keys = k->dim[k->n_dims - 2],
                          .out = v->dim[v->n_dims - 1]};
    a.batch = (uint32_t)(graph_shape_elements(q) / a.rows / a.width);
    a.scale = op->attrs.scale != 0 ? op->attrs.scale : 1 / sqrtf((float)a.width);
    a.qk8 = b->o->attention_qk_fp8;
    a.pv8 = b->o->attention_pv_fp8;
    if (plan_attention_is_by_rows(b->g, op)) return build_attention_rows(b, op);
    if (!choose_grid(&a)) return plan_refuse(op, "no grid within the kernels' limits", b->error);
    const struct held *values_held = &b->held[plan_resolve(b->g, op->operands[2])];
    if (values_held->value != PROGRAM_NONE && !values_held->swapped)
        return build_attention_rows(b, op);
    struct program_value queries =
        value(&a, "queries", a.rows, a.width,
              build_layout(qk_format(&a), PROGRAM_AMP_BATCHED, PROGRAM_ANY));
    set_exponent(&a, &queries, true);
    by_rows(&a, &queries);
    build_axis(&queries.layout, PROGRAM_REPLICA, a.c, 1);
    struct program_value keys =
        value(&a, "keys", a.keys, a.width,
              key_layout(qk_format(&a), PROGRAM_COEFF_T, PROGRAM_INTERLEAVED, PROGRAM_ROWS));
    set_exponent(&a, &keys, true);
    build_axis(&keys.layout, PROGRAM_ROWS, a.c, 1);
    build_axis(&keys.layout, PROGRAM_REPLICA, a.r, a.c);
    const uint32_t x = operand(&a, 0, &queries), y = operand(&a, 1, &keys), z = values(&a);
    const uint32_t bias = bias_rows(&a);
    build_hold(b, op->results[0], weighted_values(&a, probabilities(&a, x, y), z, bias));
    return true;
}
