/* Operations that only move elements: factor views and their inverse, slices, transpositions,
 * concatenations, rows of a table. Each is one copy (concat: one per operand) into an even spread. */
#include "plan/plan_build.h"

/* [.., n*d at axis, ..] to [.., n merged behind `into`, ..]. */
static struct program_view split_view(const struct graph_attrs *a, const struct graph_shape *x,
                                      const uint32_t *step) {
    struct program_view v = {0};
    const uint32_t d = x->dim[a->axis] / a->count;
    for (uint32_t i = 0; i < x->n_dims; i++) {
        build_digit(&v, i == a->axis ? d : x->dim[i], step[i]);
        if (i == a->into) build_digit(&v, a->count, d * step[a->axis]);
    }
    return v;
}

static struct program_view merge_view(const struct graph_attrs *a, const struct graph_shape *y,
                                      const uint32_t *step) {
    struct program_view v = {0};
    for (uint32_t i = 0; i < y->n_dims; i++) {
        if (i == a->axis) {
            build_digit(&v, a->count, step[a->into]);
            build_digit(&v, y->dim[i] / a->count, step[i]);
        } else {
            build_digit(&v, y->dim[i], i == a->into ? a->count * step[i] : step[i]);
        }
    }
    return v;
}

static struct program_view view_of(const struct build *b, const struct graph_op *op) {
    const struct graph_shape *x = &b->g->values[op->operands[0]].shape;
    const struct graph_shape *y = &b->g->values[op->results[0]].shape;
    uint32_t step[GRAPH_MAX_DIMS];
    build_steps(x, step);
    if (op->kind == GRAPH_SPLIT) return split_view(&op->attrs, x, step);
    if (op->kind == GRAPH_MERGE) return merge_view(&op->attrs, y, step);
    struct program_view v = {0};
    for (uint32_t i = 0; i < y->n_dims; i++)
        build_digit(&v, y->dim[i], step[op->kind == GRAPH_TRANSPOSE ? op->attrs.perm[i] : i]);
    if (op->kind == GRAPH_SLICE) v.offset = op->attrs.start * step[op->attrs.axis];
    if (v.n == 0) build_digit(&v, 1, 0);
    return v;
}

bool build_move(struct build *b, const struct graph_op *op) {
    const struct program_view v = view_of(b, op);
    const struct program_value y = build_even(b, op->name, &b->g->values[op->results[0]].shape);
    const uint32_t x = build_plain(b, op, op->operands[0]);
    build_hold(b, op->results[0], build_view_copy(b, op, x, &v, &y));
    return true;
}

/* Matrices of the axis that becomes the last and the one that was it, the other axes in front:
 * turned in blocks they move on in runs of 16. */
static uint32_t turned_matrices(struct build *b, const struct graph_op *op, uint32_t from,
                                uint32_t ret_step[GRAPH_MAX_DIMS]) {
    const struct graph_shape *x = &b->g->values[op->operands[0]].shape;
    const uint32_t last = x->n_dims - 1, row = op->attrs.perm[last];
    uint32_t step[GRAPH_MAX_DIMS], number = x->dim[row] * x->dim[last];
    build_steps(x, step);
    struct program_view v = {0};
    for (uint32_t i = last; i-- > 0;) {
        if (i == row) continue;
        ret_step[i] = number;
        number *= x->dim[i];
    }
    ret_step[row] = x->dim[last];
    ret_step[last] = 1;
    for (uint32_t i = 0; i < last; i++)
        if (i != row) build_digit(&v, x->dim[i], step[i]);
    build_digit(&v, x->dim[row], step[row]);
    build_digit(&v, x->dim[last], 1);
    const uint32_t shape[3] = {number / x->dim[row] / x->dim[last], x->dim[row], x->dim[last]};
    return build_turned(b, op, from, &v, shape);
}

bool build_transpose(struct build *b, const struct graph_op *op) {
    const struct graph_shape *y = &b->g->values[op->results[0]].shape;
    if (y->n_dims == 0 || op->attrs.perm[y->n_dims - 1] == y->n_dims - 1) return build_move(b, op);
    uint32_t step[GRAPH_MAX_DIMS];
    const uint32_t x = build_plain(b, op, op->operands[0]);
    const uint32_t turned = turned_matrices(b, op, x, step);
    if (turned == PROGRAM_NONE) return build_move(b, op);
    struct program_view v = {0};
    for (uint32_t i = 0; i < y->n_dims; i++) build_digit(&v, y->dim[i], step[op->attrs.perm[i]]);
    const struct program_value even = build_even(b, op->name, y);
    build_hold(b, op->results[0], build_view_copy(b, op, turned, &v, &even));
    return true;
}

bool build_concat(struct build *b, const struct graph_op *op) {
    const struct graph_shape *s = &b->g->values[op->results[0]].shape;
    const struct program_value y = build_even(b, op->name, s);
    uint32_t from[8], at = 0, result = PROGRAM_NONE;
    for (uint32_t i = 0; i < op->n_operands; i++) from[i] = build_plain(b, op, op->operands[i]);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct graph_shape *x = &b->g->values[op->operands[i]].shape;
        uint32_t step[GRAPH_MAX_DIMS];
        build_steps(x, step);
        struct program_view v = {
            .cut = op->attrs.axis, .cut_from = at, .cut_end = at + x->dim[op->attrs.axis]};
        for (uint32_t k = 0; k < s->n_dims; k++) build_digit(&v, s->dim[k], step[k]);
        if (i == 0) result = build_view_copy(b, op, from[i], &v, &y);
        else build_view_more(b, op, from[i], &v, result);
        at = v.cut_end;
    }
    build_hold(b, op->results[0], result);
    return true;
}

/* Every tile has all rows of its columns of the table and finds the rows of its indices there. */
bool build_embed(struct build *b, const struct graph_op *op) {
    const uint32_t words = plan_resolve(b->g, op->operands[1]);
    if (!build_is_source(b, words) || b->plain[words].value != PROGRAM_NONE)
        return plan_refuse(op, "its indices must be a host tensor that nothing else reads",
                           b->error);
    const struct graph_shape *t = &b->g->values[op->operands[0]].shape;
    if (t->dim[0] > 1 << 16)
        return plan_refuse(op, "its table has more than 65536 rows", b->error);
    struct program_value y = build_even(b, op->name, &b->g->values[op->results[0]].shape);
    const uint32_t tiles = b->p->n_tiles, c = MIN(ceil_div_u32(y.cols, 16), tiles);
    const uint32_t r = MIN(y.rows, tiles / c);
    build_axis(&y.layout, PROGRAM_COLS, c, 1);
    build_axis(&y.layout, PROGRAM_ROWS, r, c);
    struct program_value table = y, index = y;
    table.name = arena_printf(b->p->arena, "%s.table", op->name);
    table.rows = t->dim[0];
    build_axis(&table.layout, PROGRAM_ROWS, 1, 0);
    build_axis(&table.layout, PROGRAM_REPLICA, r, c);
    index.name = arena_printf(b->p->arena, "%s.indices", op->name);
    index.rows = 1;
    index.cols = y.rows;
    index.layout = build_layout(PROGRAM_U32, PROGRAM_ROW_MAJOR, PROGRAM_ANY);
    build_axis(&index.layout, PROGRAM_COLS, r, c);
    build_axis(&index.layout, PROGRAM_REPLICA, c, 1);
    index.tensor.bound = table.rows;
    struct program_view all = {0};
    build_digit(&all, table.rows * table.cols, 1);
    const struct program_op gather = {.compute = PROGRAM_KERNEL,
                                      .kernel = PROGRAM_KERNEL_GATHER,
                                      .operation = op->name,
                                      .reason = "operator",
                                      .n_inputs = 2,
                                      .inputs = {build_viewed(b, op, op->operands[0], &all, &table),
                                                 build_source(b, words, &index)}};
    build_hold(b, op->results[0], build_compute(b, &gather, &y));
    return true;
}
