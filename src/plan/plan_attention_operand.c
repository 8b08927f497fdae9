/* Operands of attention on its grids.
 *
 * Heads begin inside the 16-column panels of the products that make queries and keys. Both are
 * gathered in the whole panels around a head, so that they move in long runs; the columns of the
 * neighbours are cleared on one side, the queries, and so do not count in the scores. */
#include "plan/plan_attention.h"

#include <string.h>

struct program_value attention_value(const struct attention *a, const char *name, uint32_t rows,
                                     uint32_t cols, struct program_layout l,
                                     struct attention_grid g) {
    struct program_value v = {.name = arena_printf(a->b->p->arena, "%s.%s", a->op->name, name),
                              .batch = a->batch,
                              .rows = rows,
                              .cols = cols,
                              .inside = PROGRAM_NONE,
                              .layout = l};
    build_axis(&v.layout, PROGRAM_BATCH, a->n, g.r * g.c);
    return v;
}

void attention_by_rows(struct program_value *v, struct attention_grid g) {
    build_axis(&v->layout, PROGRAM_ROWS, g.r, g.c);
}

void attention_own_rows(const struct attention *a, struct program_value *v,
                        struct attention_grid g) {
    attention_by_rows(v, g);
    const uint32_t n = MIN(g.c, a->rows / g.r);
    if (n == 1) return;
    build_axis(&v->layout, PROGRAM_WINDOW, n, 1);
    v->layout.window_rows = n;
    v->layout.window_cols = 1;
}

struct program_layout attention_key_layout(uint8_t format, uint8_t order, uint8_t memory,
                                           uint32_t axis) {
    struct program_layout l = build_layout(format, order, memory);
    l.grain[axis] = l.pad[axis] = 32;
    return l;
}

uint8_t attention_format(bool f8) {
    return f8 ? PROGRAM_F8_F143 : PROGRAM_F16;
}

void attention_exponent(const struct attention *a, struct program_value *v, bool qk) {
    const struct plan_options *o = a->b->o;
    if (v->layout.format == PROGRAM_F8_F143)
        v->layout.exponent = (int8_t)(qk ? o->attention_qk_exponent : o->attention_pv_exponent);
}

static const struct held *held_operand(const struct attention *a, uint32_t k) {
    return &a->operand[k];
}

void attention_settle(struct attention *a) {
    struct build *b = a->b;
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t value = plan_resolve(b->g, a->op->operands[k]);
        const struct program_value like = {
            .batch = a->batch, .rows = k ? a->keys : a->rows, .cols = a->width};
        struct held *h = &a->operand[k];
        *h = build_held(b, a->op, value, &like);
        if (h->value == PROGRAM_NONE && (!a->qk8 || !plan_is_mixed(b->order, value))) continue;
        if (h->value == PROGRAM_NONE) h->value = build_plain(b, a->op, value);
        build_as_matrices(b, a->op, h, &like);
    }
}

/* --- Whole panels --- */

/* Heads after which one begins at a panel border again. */
static uint32_t period(const struct attention *a) {
    uint32_t n = 1;
    while (n * a->width % 16) n++;
    return n;
}

uint32_t attention_gathered(const struct attention *a) {
    if (!a->whole) return a->width;
    return align_up_u32((period(a) - 1) * (a->width % 16) + a->width, 16);
}

/* The windows of a period begin at equal distances, and cleared columns are whole words. */
static bool panels_held(const struct attention *a, uint32_t k) {
    const struct held *h = held_operand(a, k);
    if (h->value == PROGRAM_NONE || h->swapped) return false;
    const struct program_value *v = &a->b->p->values[h->value];
    const uint32_t heads = h->map.inner[0];
    return v->layout.order == PROGRAM_AMP_LEFT && v->layout.format == PROGRAM_F16 &&
           v->batch == 1 && heads != UINT32_MAX && h->map.inner_to[0][2] == (int32_t)a->width &&
           h->map.offset[2] % 16 == 0 && heads % period(a) == 0;
}

bool attention_whole_panels(const struct attention *a) {
    const uint32_t ragged = a->width % 16;
    return !a->qk8 && ragged != 0 && ragged % 4 == 0 && (period(a) - 1) * ragged < 16 &&
           panels_held(a, 0) && panels_held(a, 1);
}

static struct held whole_panels(const struct attention *a, const struct held *from) {
    struct held h = *from;
    if (!a->whole) return h;
    const uint32_t n = period(a);
    h.map.low = n;
    h.map.inner_to[0][2] = (int32_t)(n * a->width);
    h.map.low_to[2] = (int32_t)(a->width / 16 * 16);
    return h;
}

/* --- Casts --- */

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

/* A host operand's part: rows [first, ..) of every matrix. */
static uint32_t source_rows(const struct attention *a, uint32_t k, uint32_t first, uint32_t rows,
                            const struct program_value *like) {
    struct program_value v = *like;
    v.tensor.offset = (uint64_t)first * v.cols;
    v.tensor.step[0] = (uint64_t)rows * v.cols;
    v.tensor.step[1] = v.cols;
    v.tensor.step[2] = 1;
    return build_source(a->b, a->op->operands[k], &v);
}

static struct held from_row(const struct held *from, uint32_t axis, uint32_t first) {
    struct held h = *from;
    h.map.offset[axis] += (int32_t)first;
    return h;
}

/* Boxes of queries: the rows of a part over its tiles. */
static uint32_t queries_f8(const struct attention *a, const struct program_value *want) {
    struct program_value boxes =
        attention_value(a, "queries.f8", want->rows, want->cols,
                        build_layout(PROGRAM_F8_F143, PROGRAM_AMP_BATCHED, PROGRAM_ANY), a->qk);
    boxes.layout.exponent = want->layout.exponent;
    attention_own_rows(a, &boxes, a->qk);
    return cast_boxes(a, held_operand(a, 0), &boxes);
}

/* Boxes of keys: the key parts, each cut in windows over the row parts. */
static uint32_t keys_f8(const struct attention *a, const struct program_value *want,
                        const struct held *from) {
    struct program_value boxes =
        attention_value(a, "keys.f8", want->rows, want->cols,
                        build_layout(PROGRAM_F8_F143, PROGRAM_AMP_BATCHED, PROGRAM_ANY), a->qk);
    const uint32_t c = want->layout.count[PROGRAM_ROWS];
    boxes.layout.exponent = want->layout.exponent;
    boxes.layout.grain[1] = 32;
    build_axis(&boxes.layout, PROGRAM_ROWS, c, 1);
    const uint32_t last = want->rows - program_part_start(want->rows, 32, c, c - 1);
    const uint32_t n = MIN(a->qk.r, last);
    build_axis(&boxes.layout, PROGRAM_WINDOW, n, a->qk.c);
    boxes.layout.window_rows = n > 1 ? n : 0;
    boxes.layout.window_cols = n > 1 ? 1 : 0;
    return cast_boxes(a, from, &boxes);
}

/* --- Queries and keys --- */

/* The neighbours' columns of the gathered panels become zero. */
uint32_t attention_keep_own(const struct attention *a, uint32_t queries) {
    if (!a->whole) return queries;
    struct program_value v = a->b->p->values[queries];
    v.name = arena_printf(a->b->p->arena, "%s.own", v.name);
    return attention_compute(a,
                             (struct program_op){.compute = PROGRAM_KERNEL,
                                                 .kernel = PROGRAM_KERNEL_KEEP,
                                                 .n_inputs = 1,
                                                 .inputs = {queries},
                                                 .real = (float)a->width},
                             &v);
}

uint32_t attention_queries(const struct attention *a) {
    struct build *b = a->b;
    struct program_value v = attention_value(
        a, "queries", a->rows, attention_gathered(a),
        build_layout(attention_format(a->qk8), PROGRAM_AMP_BATCHED, PROGRAM_ANY), a->qk);
    attention_exponent(a, &v, true);
    attention_by_rows(&v, a->qk);
    build_axis(&v.layout, PROGRAM_REPLICA, a->qk.c, 1);
    if (a->operand[0].value == PROGRAM_NONE) return build_source(b, a->op->operands[0], &v);
    struct held from = whole_panels(a, held_operand(a, 0));
    if (a->qk8) from = (struct held){queries_f8(a, &v), program_map_identity(), false};
    return build_copy(b, a->op, "gather", &from, &v);
}

uint32_t attention_keys(const struct attention *a, struct attention_keys range) {
    struct build *b = a->b;
    struct program_value v =
        attention_value(a, "keys", range.n, attention_gathered(a),
                        attention_key_layout(attention_format(a->qk8), PROGRAM_COEFF_T,
                                             PROGRAM_INTERLEAVED, PROGRAM_ROWS),
                        a->qk);
    attention_exponent(a, &v, true);
    build_axis(&v.layout, PROGRAM_ROWS, a->qk.c, 1);
    build_axis(&v.layout, PROGRAM_REPLICA, a->qk.r, a->qk.c);
    if (a->operand[1].value == PROGRAM_NONE) return source_rows(a, 1, range.first, a->keys, &v);
    const struct held whole = whole_panels(a, held_operand(a, 1));
    struct held from = from_row(&whole, 1, range.first);
    if (a->qk8) from = (struct held){keys_f8(a, &v, &from), program_map_identity(), false};
    return build_copy(b, a->op, "gather", &from, &v);
}

/* --- Values --- */

/* The transposed values in F8: whole rows (channels) spread over the tiles. */
static uint32_t values_f8(const struct attention *a, const struct held *from) {
    const struct program_value *t = &a->b->p->values[from->value];
    struct program_value v = {.name = arena_printf(a->b->p->arena, "%s.values.f8", a->op->name),
                              .batch = t->batch,
                              .rows = t->rows,
                              .cols = t->cols,
                              .inside = PROGRAM_NONE,
                              .layout =
                                  build_layout(PROGRAM_F8_F143, PROGRAM_AMP_BATCHED, PROGRAM_ANY)};
    attention_exponent(a, &v, false);
    const uint32_t parts = MIN(t->rows, a->b->p->n_tiles);
    build_axis(&v.layout, PROGRAM_ROWS, parts, a->b->p->n_tiles / parts);
    const struct held whole = {from->value, program_map_identity(), false};
    return cast_boxes(a, &whole, &v);
}

uint32_t attention_values(const struct attention *a, struct attention_keys range) {
    struct build *b = a->b;
    const uint32_t graph_value = plan_resolve(b->g, a->op->operands[2]);
    struct program_value v =
        attention_value(a, "values", range.n, a->out + 1,
                        attention_key_layout(attention_format(a->pv8), PROGRAM_COEFF,
                                             PROGRAM_INTERLEAVED, PROGRAM_ROWS),
                        a->pv);
    attention_exponent(a, &v, false);
    build_axis(&v.layout, PROGRAM_ROWS, a->pv.c, 1);
    struct held from = b->held[graph_value];
    if (from.value == PROGRAM_NONE) {
        struct program_value home = v;
        home.cols = a->out;
        from = (struct held){source_rows(a, 2, range.first, a->keys, &home), program_map_identity(),
                             false};
    } else {
        if (a->pv8 && b->cast[graph_value] == PROGRAM_NONE)
            b->cast[graph_value] = values_f8(a, &from);
        if (a->pv8) from.value = b->cast[graph_value];
        from = from_row(&from, 2, range.first);
    }
    build_axis(&v.layout, PROGRAM_REPLICA, a->pv.r, a->pv.c);
    BUG_ON(b->ones == PROGRAM_NONE);
    const uint32_t copy = build_copy(b, a->op, "gather", &from, &v);
    struct program_op *op = &b->p->ops[b->p->n_ops - 1];
    op->inputs[op->n_inputs++] = b->ones;
    return copy;
}

uint32_t attention_bias(const struct attention *a) {
    struct build *b = a->b;
    const struct plan_value_bias *bias = &b->order->value_bias[a->op - b->g->ops];
    if (bias->value == GRAPH_NONE) return PROGRAM_NONE;
    uint32_t n, heads_width;
    plan_matrix(&b->g->values[bias->value].shape, &n, &heads_width);
    const uint32_t heads = (heads_width - bias->first) / a->out;
    struct program_value v =
        attention_value(a, "bias", a->pv.r, a->out,
                        build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED), a->pv);
    attention_by_rows(&v, a->pv);
    build_axis(&v.layout, PROGRAM_REPLICA, a->pv.c, 1);
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
