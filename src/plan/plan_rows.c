/* Operations on whole rows: normalisations of any width and epsilon, softmax. The rows are spread
 * over the tiles, whole. */
#include "plan/plan_build.h"

#include <string.h>

enum { MOST_NORM_ROWS = 1000, MOST_SOFTMAX_ROWS = 2000, MOST_COLUMNS = 4080 }; /* of a call */

/* Parts of more rows than a call takes are cut in windows on the same tile. */
void build_row_windows(struct program_value *v, uint32_t most) {
    const uint32_t n = ceil_div_u32(ceil_div_u32(v->rows, v->layout.count[PROGRAM_ROWS]), most);
    if (n == 1) return;
    build_axis(&v->layout, PROGRAM_WINDOW, n, 0);
    v->layout.window_rows = n;
    v->layout.window_cols = 1;
}

static struct program_value whole_rows(const struct build *b, const struct graph_op *op,
                                       uint32_t most) {
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.rows", op->name),
                              .batch = 1,
                              .inside = PROGRAM_NONE,
                              .layout =
                                  build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_INTERLEAVED)};
    plan_matrix(&b->g->values[op->operands[0]].shape, &v.rows, &v.cols);
    const uint32_t parts = MIN(v.rows, b->p->n_tiles);
    build_axis(&v.layout, PROGRAM_ROWS, parts, b->p->n_tiles / parts);
    build_row_windows(&v, most);
    return v;
}

static struct program_view all_of(const struct program_value *v) {
    struct program_view x = {0};
    build_digit(&x, v->batch * v->rows * v->cols, 1);
    return x;
}

/* A division by a column leaves ones behind the columns, and copies by map may carry them along. */
static bool padding_is_zero(const struct build *b, uint32_t value) {
    for (uint32_t i = b->p->n_ops; i-- > 0;) {
        const struct program_op *op = &b->p->ops[i];
        if (op->kind == PROGRAM_REPEAT || op->output != value) continue;
        return op->kind == PROGRAM_COPY
                   ? op->view.n > 0
                   : op->compute == PROGRAM_KERNEL && (op->kernel == PROGRAM_KERNEL_LAYER_NORM ||
                                                       op->kernel == PROGRAM_KERNEL_RMS_NORM ||
                                                       op->kernel == PROGRAM_KERNEL_SOFTMAX);
    }
    return b->p->values[value].role != PROGRAM_LOCAL;
}

/* The operand in the rows' layout, zero behind the columns. */
static uint32_t clean_rows(struct build *b, const struct graph_op *op,
                           const struct program_value *v) {
    const struct program_view all = all_of(v);
    uint32_t x = build_viewed(b, op, op->operands[0], &all, v);
    if (v->cols % 16 == 0 || padding_is_zero(b, x)) return x;
    struct program_value apart = build_even(b, arena_printf(b->p->arena, "%s.clean", op->name),
                                            &b->g->values[op->operands[0]].shape);
    apart.layout.memory = v->layout.memory == PROGRAM_ANY ? PROGRAM_INTERLEAVED : PROGRAM_ANY;
    x = build_view_copy(b, op, x, &all, &apart); /* another class: a copy for certain */
    return build_view_copy(b, op, x, &all, v);
}

/* Scale or bias on every tile that has rows. */
static uint32_t shared_row(struct build *b, const struct graph_op *op, uint32_t i,
                           const struct program_value *rows) {
    struct program_value row = {.name = arena_printf(b->p->arena, "%s.%s", op->name,
                                                     i == 1 ? "scale" : "bias"),
                                .batch = 1,
                                .rows = 1,
                                .cols = rows->cols,
                                .inside = PROGRAM_NONE,
                                .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    build_axis(&row.layout, PROGRAM_REPLICA, rows->layout.count[PROGRAM_ROWS],
               rows->layout.stride[PROGRAM_ROWS]);
    const struct program_view all = all_of(&row);
    return build_viewed(b, op, op->operands[i], &all, &row);
}

bool build_rows_norm(struct build *b, const struct graph_op *op) {
    struct program_value v = whole_rows(b, op, MOST_NORM_ROWS);
    if (v.cols > 1 << 14)
        return plan_refuse(op, "its first operand has rows of more than 16384 columns", b->error);
    struct program_op norm = {.compute = PROGRAM_KERNEL,
                              .kernel = op->kind == GRAPH_RMS_NORM ? PROGRAM_KERNEL_RMS_NORM
                                                                   : PROGRAM_KERNEL_LAYER_NORM,
                              .operation = op->name,
                              .reason = "operator",
                              .n_inputs = op->n_operands,
                              .real = op->attrs.epsilon};
    norm.inputs[0] = clean_rows(b, op, &v);
    for (uint32_t i = 1; i < op->n_operands; i++) norm.inputs[i] = shared_row(b, op, i, &v);
    v.name = op->name;
    build_hold(b, op->results[0], build_compute(b, &norm, &v));
    return true;
}

bool build_softmax(struct build *b, const struct graph_op *op) {
    struct program_value v = whole_rows(b, op, MOST_SOFTMAX_ROWS);
    if (v.cols > MOST_COLUMNS)
        return plan_refuse(op, "its operand has rows of more than 4080 columns", b->error);
    v.layout.memory = PROGRAM_ANY;
    const struct program_view all = all_of(&v);
    struct program_op kernel = {.compute = PROGRAM_KERNEL,
                                .kernel = PROGRAM_KERNEL_SOFTMAX,
                                .operation = op->name,
                                .reason = "operator",
                                .n_inputs = 1,
                                .real = 1};
    kernel.inputs[0] = build_viewed(b, op, op->operands[0], &all, &v);
    v.name = op->name;
    build_hold(b, op->results[0], build_compute(b, &kernel, &v));
    return true;
}
