/* Products outside the search: right operands with leading axes or computed ones, transposed left
 * operands. One matrix product per batch index: the batch is spread over tiles first, then rows,
 * columns and K of each product; the cheapest grid by the same closed forms. Tiles take several
 * matrices if there are more of them than tiles.
 *
 * A host operand is stored as the grid reads it, whatever its transposition. A computed right
 * operand must be transposed (its rows are then columns of the product, which need no repacking); a
 * computed left one must not be. */
#include "plan/plan_build.h"

#include <string.h>

struct batched {
    struct build *b;
    const struct graph_op *op;
    uint32_t batch, rows, inner, columns;
    bool shared; /* one right operand for the whole batch */
    uint32_t n, r, c, k;
    struct plan_infeasible misfit; /* of the grid that misses by the least */
};

static uint64_t grid_cycles(const struct batched *a, uint32_t r, uint32_t c, uint32_t k) {
    const uint32_t rows = ceil_div_u32(a->rows, r),
                   inner = 16 * ceil_div_u32(ceil_div_u32(a->inner, 16), k);
    const uint32_t columns = 16 * ceil_div_u32(ceil_div_u32(a->columns, 16), c);
    const struct kernel_spec gemm = {KERNEL_GEMM_F16, {rows, inner, columns, 0, 1}};
    uint64_t cycles = ceil_div_u32(a->batch, a->n) * kernel_cycles(&gemm);
    if (c > 1 || r > 1) cycles += plan_phase_cycles((uint64_t)inner * (rows + columns) / 2, 64);
    if (k == 1) return cycles;
    const uint32_t owned = 16 * ceil_div_u32(rows * columns / 16, k);
    const struct kernel_spec reduce = {KERNEL_REDUCE_F16, {k, owned}};
    return cycles + plan_phase_cycles((uint64_t)owned * (k - 1) / 2, owned / 2) +
           kernel_cycles(&reduce);
}

/* Bytes on a tile: both operands, result, received partials. */
static uint64_t grid_bytes(const struct batched *a, uint32_t r, uint32_t c, uint32_t k) {
    const uint64_t rows = ceil_div_u32(a->rows, r),
                   inner = 16 * ceil_div_u32(ceil_div_u32(a->inner, 16), k);
    const uint64_t columns = 16 * ceil_div_u32(ceil_div_u32(a->columns, 16), c);
    return 2 * ceil_div_u32(a->batch, a->n) *
           (rows * inner + inner * columns + rows * columns * (k > 1 ? 2 : 1));
}

static void note_misfit(struct batched *a, uint64_t needs, uint64_t has) {
    struct plan_infeasible *x = &a->misfit;
    if (x->needs_bytes && x->needs_bytes <= needs) return;
    *x = (struct plan_infeasible){.operation = a->op->name,
                                  .memory = "interleaved",
                                  .needs_bytes = needs,
                                  .has_bytes = has,
                                  .n_users = 1,
                                  .users = {{"operands and result", needs}}};
}

/* The cheapest grid of at least `least` tiles a matrix. */
static bool cheapest_grid(struct batched *a, uint32_t each, uint64_t least) {
    const struct plan_options *o = a->b->o;
    const uint32_t column_groups = ceil_div_u32(a->columns, 16);
    const uint32_t inner_groups = ceil_div_u32(a->inner, 16);
    uint64_t best = UINT64_MAX;
    for (uint32_t r = 1; r <= MIN(each, a->rows); r++)
        for (uint32_t c = 1; c <= MIN(each / r, column_groups); c++)
            for (uint32_t k = 1; k <= MIN(each / r / c, inner_groups); k++) {
                if ((uint64_t)(a->rows / r) * (column_groups / c) < k) break;
                const uint64_t bytes = grid_bytes(a, r, c, k);
                if (bytes > o->interleaved_bytes) {
                    note_misfit(a, bytes, o->interleaved_bytes);
                    continue;
                }
                if (r * c * k < least) continue;
                const uint64_t cycles = grid_cycles(a, r, c, k);
                if (cycles >= best) continue;
                best = cycles;
                a->r = r;
                a->c = c;
                a->k = k;
            }
    return best != UINT64_MAX;
}

/* Grids of less than a third of what the product could use are only tried when there are no others:
 * a small result limits the K partitions. */
static bool choose_grid(struct batched *a) {
    a->n = MIN(a->batch, a->b->p->n_tiles);
    const uint32_t each = a->b->p->n_tiles / a->n;
    const uint64_t useful = (uint64_t)a->rows * ceil_div_u32(a->columns, 16) *
                            ceil_div_u32(a->inner, 16);
    const uint64_t most = MIN(each, useful);
    return cheapest_grid(a, each, (most + 2) / 3) || cheapest_grid(a, each, 1);
}

static struct program_value value(const struct batched *a, const char *name,
                                  const uint32_t shape[3], struct program_layout l) {
    struct program_value v = {.name = arena_printf(a->b->p->arena, "%s.%s", a->op->name, name),
                              .batch = shape[0],
                              .rows = shape[1],
                              .cols = shape[2],
                              .inside = PROGRAM_NONE,
                              .layout = l};
    if (shape[0] > 1) build_axis(&v.layout, PROGRAM_BATCH, a->n, a->r * a->c * a->k);
    return v;
}

/* The host's matrices, transposed or not. */
static void set_steps(struct program_value *v, bool transposed) {
    v->tensor.step[0] = (uint64_t)v->rows * v->cols;
    v->tensor.step[1] = transposed ? 1 : v->cols;
    v->tensor.step[2] = transposed ? v->rows : 1;
}

static bool left_operand(const struct batched *a, uint32_t *ret) {
    const uint32_t shape[3] = {a->batch, a->rows, a->inner};
    struct program_value v =
        value(a, "left", shape, build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_ANY));
    build_axis(&v.layout, PROGRAM_ROWS, a->r, a->c);
    build_axis(&v.layout, PROGRAM_COLS, a->k, a->r * a->c);
    build_axis(&v.layout, PROGRAM_REPLICA, a->c, 1);
    if (build_is_source(a->b, a->op->operands[0])) {
        set_steps(&v, a->op->attrs.transpose_left);
        *ret = build_source(a->b, a->op->operands[0], &v);
        return true;
    }
    if (a->op->attrs.transpose_left)
        return plan_refuse(a->op, "a computed left operand cannot be transposed yet", a->b->error);
    *ret = build_place_matrices(a->b, a->op, a->op->operands[0], &v);
    return true;
}

static bool right_operand(const struct batched *a, uint32_t *ret) {
    const bool source = build_is_source(a->b, a->op->operands[1]),
               turned = a->op->attrs.transpose_right;
    if (!source && !turned)
        return plan_refuse(a->op, "a computed right operand needs transpose_right", a->b->error);
    const uint32_t n = a->shared ? 1 : a->batch;
    const uint32_t shape[3] = {n, source ? a->inner : a->columns, source ? a->columns : a->inner};
    struct program_value v = value(
        a, "right", shape,
        build_layout(PROGRAM_F16, source ? PROGRAM_COEFF : PROGRAM_COEFF_T, PROGRAM_INTERLEAVED));
    build_axis(&v.layout, source ? PROGRAM_ROWS : PROGRAM_COLS, a->k, a->r * a->c);
    build_axis(&v.layout, source ? PROGRAM_COLS : PROGRAM_ROWS, a->c, 1);
    build_axis(&v.layout, PROGRAM_REPLICA, a->r, a->c);
    if (!source) {
        *ret = build_place_matrices(a->b, a->op, a->op->operands[1], &v);
        return true;
    }
    set_steps(&v, turned);
    *ret = build_source(a->b, a->op->operands[1], &v);
    return true;
}

/* Shapes: the left operand has all leading axes of the result, the right one all or none. */
static bool load(struct batched *a) {
    const struct graph *g = a->b->g;
    const struct graph_shape *x = &g->values[a->op->operands[0]].shape;
    const struct graph_shape *w = &g->values[a->op->operands[1]].shape;
    const struct graph_shape *y = &g->values[a->op->results[0]].shape;
    a->columns = y->dim[y->n_dims - 1];
    a->rows = y->dim[y->n_dims - 2];
    a->inner = x->dim[x->n_dims - (a->op->attrs.transpose_left ? 2 : 1)];
    const uint64_t all = graph_shape_elements(y) / a->rows / a->columns;
    const uint64_t left = graph_shape_elements(x) / a->rows / a->inner;
    const uint64_t right = graph_shape_elements(w) / a->inner / a->columns;
    a->batch = (uint32_t)all;
    a->shared = right == 1;
    if (left != all || (right != 1 && right != all))
        return plan_refuse(a->op, "leading axes that broadcast in part are not supported yet",
                           a->b->error);
    if (a->shared && a->batch > 1) {
        if (a->op->attrs.transpose_left)
            return plan_refuse(
                a->op, "transpose_left with one right operand for a batch is not supported yet",
                a->b->error);
        a->rows *= a->batch; /* one matrix */
        a->batch = 1;
    }
    return true;
}

bool build_batched(struct build *b, const struct graph_op *op) {
    struct batched a = {.b = b, .op = op};
    if (!load(&a)) return false;
    if (!choose_grid(&a)) {
        b->misfit = a.misfit;
        return false;
    }
    uint32_t left = PROGRAM_NONE, right = PROGRAM_NONE;
    if (!left_operand(&a, &left) || !right_operand(&a, &right)) return false;
    const uint32_t shape[3] = {a.batch, a.rows, a.columns};
    struct program_value y = value(
        &a, "partial", shape, build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED));
    build_axis(&y.layout, PROGRAM_ROWS, a.r, a.c);
    build_axis(&y.layout, PROGRAM_COLS, a.c, 1);
    build_axis(&y.layout, PROGRAM_PARTIAL, a.k, a.r * a.c);
    if (a.k == 1) y.name = op->name;
    const struct program_op product = {.compute = PROGRAM_PRODUCT,
                                       .operation = op->name,
                                       .reason = "operator",
                                       .n_inputs = 2,
                                       .inputs = {left, right}};
    uint32_t result = build_compute(b, &product, &y);
    if (a.k > 1) {
        y.name = op->name;
        build_axis(&y.layout, PROGRAM_PARTIAL, 1, 0);
        build_axis(&y.layout, PROGRAM_WINDOW, a.k, a.r * a.c);
        const struct program_op sum = {.compute = PROGRAM_SUM,
                                       .operation = op->name,
                                       .reason = "reduction",
                                       .n_inputs = 1,
                                       .inputs = {result}};
        result = build_compute(b, &sum, &y);
    }
    build_hold(b, op->results[0], result);
    return true;
}
