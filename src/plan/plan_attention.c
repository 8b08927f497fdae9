/* Attention. Three strategies, of which the cheapest is taken (attention_choose):
 *
 * key-split     Every (batch, row part, key part) is a tile: its scores stay there. In order:
 * queries and keys to the grid; scores; row maxima of the key parts, combined by two small
 *               exchanges; exponentials in place; product with the values, whose column of ones
 *               makes the denominators; partial results summed by rows; division.
 * materialised  The same work on three grids: scores are copied to whole rows for the softmax, the
 *               probabilities to the grid of the second product, each as far as the grids differ.
 * streaming     Every (batch, row part) is a tile and takes blocks of keys one after the other
 *               (plan_attention_stream.c).
 *
 * What none of them takes (causal masks, values that need a transposition) is made row by row
 * (plan_attention_rows.c).
 *
 * A tile takes several matrices of the batch if there are more of them than tiles; then neither
 * rows nor keys are split. */
#include "plan/plan_attention.h"

#include <math.h>
#include <string.h>

uint32_t attention_compute(const struct attention *a, struct program_op op,
                           const struct program_value *v) {
    op.operation = a->op->name;
    op.reason = op.compute == PROGRAM_SUM ? "reduction" : "operator";
    return build_compute(a->b, &op, v);
}

static bool same_grid(struct attention_grid x, struct attention_grid y) {
    return x.r == y.r && x.c == y.c;
}

/* Scores or probabilities on another grid. */
static uint32_t regrid(const struct attention *a, uint32_t value, struct attention_grid from,
                       struct attention_grid to) {
    if (same_grid(from, to)) return value;
    struct program_value v = a->b->p->values[value];
    v.name = arena_printf(a->b->p->arena, "%s.moved", v.name);
    build_axis(&v.layout, PROGRAM_BATCH, a->n, to.r * to.c);
    attention_by_rows(&v, to);
    build_axis(&v.layout, PROGRAM_COLS, to.c, 1);
    const struct held h = {value, program_map_identity(), false};
    return build_copy(a->b, a->op, "gather", &h, &v);
}

uint32_t attention_scores(const struct attention *a, uint32_t queries, uint32_t keys, uint32_t n) {
    struct program_value v = attention_value(
        a, "scores", a->rows, n,
        attention_key_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED, PROGRAM_COLS),
        a->qk);
    attention_by_rows(&v, a->qk);
    build_axis(&v.layout, PROGRAM_COLS, a->qk.c, 1);
    return attention_compute(
        a,
        (struct program_op){.compute = PROGRAM_PRODUCT, .n_inputs = 2, .inputs = {queries, keys}},
        &v);
}

static struct program_layout maxima_layout(const struct attention *a) {
    struct program_layout pair = build_layout(PROGRAM_F16, PROGRAM_ROW_MAJOR, PROGRAM_ANY);
    pair.grain[2] = pair.pad[2] = 2;
    if (a->n < a->batch) pair.grain[1] = pair.pad[1] = 2; /* the next matrix stays 8-byte aligned */
    return pair;
}

/* The maxima of the c key parts of a row are single words that come together in one row of 32
 * bytes. A tile has no call that moves a single word, so nobody combines its own maxima: those of a
 * row part are combined on the tiles of the next one, those of the last on unused tiles. */
static uint32_t combine_maxima(const struct attention *a, uint32_t partial) {
    const struct attention_grid g = a->soft;
    struct program_value all =
        attention_value(a, "maxima.all", a->rows, 2 * g.c,
                        build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_ANY), g);
    attention_own_rows(a, &all, g);
    all.layout.base = g.c;
    const struct held from = {partial, program_map_identity(), false};
    const struct program_op combine = {.compute = PROGRAM_KERNEL,
                                       .kernel = PROGRAM_KERNEL_ROW_MAX,
                                       .n_inputs = 1,
                                       .inputs = {build_copy(a->b, a->op, "maxima", &from, &all)}};
    struct program_value rows = attention_value(a, "maxima.rows", a->rows, 2, maxima_layout(a), g);
    attention_own_rows(a, &rows, g);
    rows.layout.base = g.c;
    const struct held combined = {attention_compute(a, combine, &rows), program_map_identity(),
                                  false};
    struct program_value each = attention_value(a, "maxima.each", a->rows, 2, maxima_layout(a), g);
    attention_by_rows(&each, g);
    build_axis(&each.layout, PROGRAM_REPLICA, g.c, 1);
    return build_copy(a->b, a->op, "maxima", &combined, &each);
}

uint32_t attention_maxima(const struct attention *a, uint32_t scores) {
    const struct attention_grid g = a->soft;
    struct program_value own = attention_value(a, "maxima", a->rows, 2 * g.c, maxima_layout(a), g);
    attention_by_rows(&own, g);
    build_axis(&own.layout, PROGRAM_COLS, g.c, 1);
    const uint32_t partial = attention_compute(a,
                                               (struct program_op){.compute = PROGRAM_KERNEL,
                                                                   .kernel = PROGRAM_KERNEL_ROW_MAX,
                                                                   .n_inputs = 1,
                                                                   .inputs = {scores}},
                                               &own);
    return g.c == 1 ? partial : combine_maxima(a, partial);
}

/* Unnormalised probabilities, in the place of the scores where they stay F16. */
uint32_t attention_exponentials(const struct attention *a, uint32_t scores, uint32_t maxima) {
    struct program_value v = a->b->p->values[scores];
    v.name = arena_printf(a->b->p->arena, "%s.probabilities", a->op->name);
    v.layout.format = attention_format(a->pv8);
    if (a->pv8) v.layout.memory = PROGRAM_ANY;
    attention_exponent(a, &v, false);
    return attention_compute(a,
                             (struct program_op){.compute = PROGRAM_KERNEL,
                                                 .kernel = PROGRAM_KERNEL_EXPONENTIAL,
                                                 .n_inputs = 2,
                                                 .inputs = {scores, maxima},
                                                 .real = a->scale},
                             &v);
}

static struct program_value result_value(const struct attention *a, const char *name) {
    struct program_value y =
        attention_value(a, name, a->rows, a->out + 1,
                        build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED), a->pv);
    attention_by_rows(&y, a->pv);
    return y;
}

uint32_t attention_weighted(const struct attention *a, uint32_t p, uint32_t v) {
    struct program_value y = result_value(a, "weighted");
    build_axis(&y.layout, PROGRAM_PARTIAL, a->pv.c, 1);
    return attention_compute(
        a, (struct program_op){.compute = PROGRAM_PRODUCT, .n_inputs = 2, .inputs = {p, v}}, &y);
}

/* Sum of the key parts' partials, divided by its last column. */
static uint32_t divided(const struct attention *a, uint32_t weighted) {
    struct program_value y = result_value(a, "sum");
    uint32_t result = weighted;
    if (a->pv.c > 1) {
        attention_own_rows(a, &y, a->pv);
        result = attention_compute(
            a, (struct program_op){.compute = PROGRAM_SUM, .n_inputs = 1, .inputs = {result}}, &y);
    }
    y.cols = a->out;
    y.name = a->op->name;
    return attention_compute(a,
                             (struct program_op){.compute = PROGRAM_KERNEL,
                                                 .kernel = PROGRAM_KERNEL_NORMALISE,
                                                 .n_inputs = 1,
                                                 .inputs = {result}},
                             &y);
}

static uint32_t biased(const struct attention *a, uint32_t result, uint32_t bias) {
    if (bias == PROGRAM_NONE) return result;
    struct program_value y = a->b->p->values[result];
    y.name = arena_printf(a->b->p->arena, "%s.biased", a->op->name);
    return attention_compute(a,
                             (struct program_op){.compute = PROGRAM_SUM,
                                                 .epilogue = PROGRAM_EPILOGUE_BIAS,
                                                 .n_inputs = 2,
                                                 .inputs = {result, bias}},
                             &y);
}

/* Key-split and materialised: the grids alone differ. */
static uint32_t attend(const struct attention *a, uint32_t *ret_bias) {
    const struct attention_keys all = {0, a->keys};
    uint32_t q = attention_queries(a);
    const uint32_t k = attention_keys(a, all), v = attention_values(a, all);
    *ret_bias = attention_bias(a);
    q = attention_keep_own(a, q);
    uint32_t x = attention_scores(a, q, k, a->keys);
    x = regrid(a, x, a->qk, a->soft);
    x = attention_exponentials(a, x, attention_maxima(a, x));
    x = regrid(a, x, a->soft, a->pv);
    return divided(a, attention_weighted(a, x, v));
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
                          .out = v->dim[v->n_dims - 1],
                          .qk8 = b->o->attention_qk_fp8,
                          .pv8 = b->o->attention_pv_fp8};
    a.batch = (uint32_t)(graph_shape_elements(q) / a.rows / a.width);
    a.scale = op->attrs.scale != 0 ? op->attrs.scale : 1 / sqrtf((float)a.width);
    a.n = MIN(a.batch, b->p->n_tiles);
    const struct held *values = &b->held[plan_resolve(b->g, op->operands[2])];
    if (plan_attention_is_by_rows(b->g, op) || (values->value != PROGRAM_NONE && !values->swapped))
        return build_attention_rows(b, op);
    attention_settle(&a);
    a.whole = attention_whole_panels(&a);
    if (!attention_choose(&a))
        return plan_refuse(op, "no grid within the kernels' limits", b->error);
    uint32_t bias = PROGRAM_NONE;
    const uint32_t result =
        a.strategy == PLAN_ATTENTION_STREAMING ? attention_stream(&a, &bias) : attend(&a, &bias);
    build_hold(b, op->results[0], biased(&a, result, bias));
    return true;
}
