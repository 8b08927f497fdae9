/* Attention by whole rows: the product of queries and keys, softmax of whole rows of scores, the
 * product with the values, each on a grid of its own. Serves what the plan with split keys does not:
 * the causal form, value widths that fill their panels, values that no product makes transposed. */
#include "plan/plan_build.h"

#include <math.h>
#include <string.h>

struct attention_rows {
    struct build *b;
    const struct graph_op *op;
    uint32_t batch, rows, keys, width, out;
    float scale;
};

bool plan_attention_is_by_rows(const struct graph *g, const struct graph_op *op) {
    const struct graph_shape *v = &g->values[op->operands[2]].shape;
    return op->attrs.causal || v->dim[v->n_dims - 1] % 16 == 0;
}

/* An operand whose leading axes are the batch; rows and columns as `turned` tells. */
static struct build_operand operand(const struct attention_rows *a, uint32_t i, uint32_t rows,
                                    uint32_t cols, bool turned) {
    struct build_operand m = {.graph_value = a->op->operands[i],
                              .rows = turned ? cols : rows,
                              .cols = turned ? rows : cols,
                              .step_row = turned ? 1 : cols,
                              .step_col = turned ? cols : 1,
                              .matrices = {a->batch, rows, cols}};
    build_digit(&m.lead, a->batch, rows * cols);
    return m;
}

static const char *name_of(const struct attention_rows *a, const char *part) {
    return arena_printf(a->b->p->arena, "%s.%s", a->op->name, part);
}

/* Softmax of the scores, whole rows spread over the tiles. */
static uint32_t probabilities(const struct attention_rows *a, uint32_t scores) {
    enum { MOST_ROWS = 2000 }; /* of a call */
    const uint32_t shape[3] = {a->batch, a->rows, a->keys}, tiles = a->b->p->n_tiles;
    struct program_value v = build_even_matrices(a->b, name_of(a, "rows"), shape);
    const uint32_t n = MIN(a->batch, tiles), r = MIN(a->rows, tiles / n);
    build_axis(&v.layout, PROGRAM_BATCH, n, r);
    build_axis(&v.layout, PROGRAM_ROWS, r, 1);
    build_axis(&v.layout, PROGRAM_COLS, 1, 0);
    build_row_windows(&v, MOST_ROWS);
    struct program_view all = {0};
    build_digit(&all, a->batch * a->rows * a->keys, 1);
    const struct program_op softmax = {
        .compute = PROGRAM_KERNEL,
        .kernel = a->op->attrs.causal ? PROGRAM_KERNEL_SOFTMAX_CAUSAL : PROGRAM_KERNEL_SOFTMAX,
        .operation = a->op->name,
        .reason = "operator",
        .n_inputs = 1,
        .inputs = {build_view_copy(a->b, a->op, scores, &all, &v)},
        .real = a->scale};
    v.name = name_of(a, "probabilities");
    return build_compute(a->b, &softmax, &v);
}

static bool refused(const struct attention_rows *a) {
    enum { MOST_KEYS = 4080 }; /* of a softmax call */
    const struct plan_options *o = a->b->o;
    if (o->attention_qk_fp8 || o->attention_pv_fp8)
        return !plan_refuse(a->op, "in F8 it must not be causal, and the width of its values no "
                            "multiple of 16", a->b->error);
    if (a->keys > MOST_KEYS)
        return !plan_refuse(a->op, "its keys (second operand) have more than 4080 rows", a->b->error);
    return false;
}

bool build_attention_rows(struct build *b, const struct graph_op *op) {
    const struct graph_shape *q = &b->g->values[op->operands[0]].shape;
    const struct graph_shape *k = &b->g->values[op->operands[1]].shape;
    const struct graph_shape *v = &b->g->values[op->operands[2]].shape;
    struct attention_rows a = {.b = b,
                               .op = op,
                               .rows = q->dim[q->n_dims - 2],
                               .width = q->dim[q->n_dims - 1],
                               .keys = k->dim[k->n_dims - 2],
                               .out = v->dim[v->n_dims - 1]};
    a.batch = (uint32_t)(graph_shape_elements(q) / a.rows / a.width);
    a.scale = op->attrs.scale != 0 ? op->attrs.scale : 1 / sqrtf((float)a.width);
    if (refused(&a)) return false;
    const struct build_product scores = {.op = op,
                                         .name = name_of(&a, "scores"),
                                         .batch = a.batch,
                                         .rows = a.rows,
                                         .inner = a.width,
                                         .columns = a.keys,
                                         .left = operand(&a, 0, a.rows, a.width, false),
                                         .right = operand(&a, 1, a.keys, a.width, true)};
    const uint32_t s = build_product(b, &scores);
    if (s == PROGRAM_NONE) return false;
    struct build_product weighted = {.op = op,
                                     .name = op->name,
                                     .batch = a.batch,
                                     .rows = a.rows,
                                     .inner = a.keys,
                                     .columns = a.out,
                                     .left = operand(&a, 0, a.rows, a.keys, false),
                                     .right = operand(&a, 2, a.keys, a.out, false)};
    weighted.left.graph_value = GRAPH_NONE;
    weighted.left.value = probabilities(&a, s);
    const uint32_t result = build_product(b, &weighted);
    if (result == PROGRAM_NONE) return false;
    build_hold(b, op->results[0], result);
    return true;
}
