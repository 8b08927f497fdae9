/* Products outside the search: right operands with leading axes or computed ones, transposed left
 * operands, any broadcasting of leading axes. One matrix product per batch index: the batch is
 * spread over tiles first, then rows, columns and K of each product; the cheapest grid by the same
 * closed forms. Tiles take several matrices if there are more of them than tiles.
 *
 * An operand is a view of a tensor: its leading axes as digits, and the steps from row to row and
 * from column to column. A host tensor is stored as the grid reads it where the host can write it
 * so. A computed one is copied; where its contiguous axis is not the one that the operand wants in
 * groups, blocks of 16 x 16 are turned on the tiles (PACK) before or behind the copy. */
#include "plan/plan_build.h"

#include <string.h>

struct batched {
    struct build *b;
    const struct build_product *x;
    uint32_t n, r, c, k;
    bool left_moves, right_moves; /* computed: not where the grid reads them */
    struct plan_infeasible misfit; /* of the grid that misses by the least */
};

/* --- Grid --- */

static uint32_t groups16(uint32_t extent) {
    return ceil_div_u32(extent, 16);
}

/* Owners of a result block's sums: a block of few 32-byte rows has no more than these. */
static uint32_t owners(const struct build_product *x, uint32_t r, uint32_t c, uint32_t k) {
    return MIN(k, x->rows / r * (groups16(x->columns) / c));
}

static uint64_t grid_cycles(const struct batched *a, uint32_t r, uint32_t c, uint32_t k) {
    const struct build_product *x = a->x;
    const uint32_t rows = ceil_div_u32(x->rows, r);
    const uint32_t inner = 16 * ceil_div_u32(groups16(x->inner), k);
    const uint32_t columns = 16 * ceil_div_u32(groups16(x->columns), c);
    /* Matrices of their own right operands are a batch of one call. */
    const uint32_t each = ceil_div_u32(x->batch, a->n),
                   joined = x->shared ? 1 : MIN(each, KERNEL_MAX_BATCH);
    const struct kernel_spec gemm = {KERNEL_GEMM_F16, {rows, inner, columns, 0, 1, joined}};
    uint64_t cycles = ceil_div_u32(each, joined) * kernel_cycles(&gemm);
    const uint64_t read = (a->left_moves ? rows : 0) + (a->right_moves ? columns : 0);
    cycles += plan_phase_cycles(inner * read / 2, 64);
    if (k == 1) return cycles;
    const uint32_t owned = 16 * ceil_div_u32(rows * (columns / 16), owners(x, r, c, k));
    const struct kernel_spec reduce = {KERNEL_REDUCE_F16, {k, owned}};
    return cycles + plan_phase_cycles((uint64_t)owned * (k - 1) / 2, owned / 2) +
           kernel_cycles(&reduce);
}

/* Bytes on a tile: both operands, result, received partials. */
static uint64_t grid_bytes(const struct batched *a, uint32_t r, uint32_t c, uint32_t k) {
    const struct build_product *x = a->x;
    const uint64_t rows = ceil_div_u32(x->rows, r);
    const uint64_t inner = 16 * ceil_div_u32(groups16(x->inner), k);
    const uint64_t columns = 16 * ceil_div_u32(groups16(x->columns), c);
    return 2 * ceil_div_u32(x->batch, a->n) *
           (rows * inner + inner * columns + rows * columns * (k > 1 ? 2 : 1));
}

static void note_misfit(struct batched *a, uint64_t needs, uint64_t has) {
    struct plan_infeasible *x = &a->misfit;
    if (x->needs_bytes && x->needs_bytes <= needs) return;
    *x = (struct plan_infeasible){.operation = a->x->op->name,
                                  .memory = "interleaved",
                                  .needs_bytes = needs,
                                  .has_bytes = has,
                                  .n_users = 1,
                                  .users = {{"operands and result", needs}}};
}

/* The cheapest grid of at least `least` tiles a matrix; UINT64_MAX if there is none. */
static uint64_t cheapest_grid(struct batched *a, uint32_t each, uint64_t least, uint32_t ret[3]) {
    const struct build_product *x = a->x;
    const struct plan_options *o = a->b->o;
    const uint32_t column_groups = groups16(x->columns), inner_groups = groups16(x->inner);
    uint64_t best = UINT64_MAX;
    for (uint32_t r = 1; r <= MIN(each, x->rows); r++)
        for (uint32_t c = 1; c <= MIN(each / r, column_groups); c++)
            for (uint32_t k = 1; k <= MIN(each / r / c, inner_groups); k++) {
                const uint64_t bytes = grid_bytes(a, r, c, k);
                if (bytes > o->interleaved_bytes) {
                    note_misfit(a, bytes, o->interleaved_bytes);
                    continue;
                }
                if ((uint64_t)r * c * k < least) continue;
                const uint64_t cycles = grid_cycles(a, r, c, k);
                if (cycles >= best) continue;
                best = cycles;
                ret[0] = r;
                ret[1] = c;
                ret[2] = k;
            }
    return best;
}

/* The cheapest grid; one on at least half of the tiles, if the work is enough for them and it is nearly
 * as cheap. */
static bool choose_grid(struct batched *a) {
    const struct build_product *x = a->x;
    a->n = MIN(x->batch, a->b->p->n_tiles);
    const uint32_t each = a->b->p->n_tiles / a->n;
    const uint64_t useful = (uint64_t)x->rows * groups16(x->columns) * groups16(x->inner);
    uint32_t any[3], wide[3];
    const uint64_t best = cheapest_grid(a, each, 1, any);
    if (best == UINT64_MAX) return false;
    const uint64_t half = ceil_div_u32(ceil_div_u32(a->b->p->n_tiles, 2), a->n);
    const uint64_t many = cheapest_grid(a, each, MIN(MIN(each, useful), half), wide);
    const uint32_t *grid = many != UINT64_MAX && many * 50 <= best * 51 ? wide : any;
    a->r = grid[0];
    a->c = grid[1];
    a->k = grid[2];
    return true;
}

/* --- Operands --- */

static struct program_value value(const struct batched *a, const char *name,
                                  const uint32_t shape[3], struct program_layout l) {
    struct program_value v = {.name = arena_printf(a->b->p->arena, "%s.%s", a->x->name, name),
                              .batch = shape[0],
                              .rows = shape[1],
                              .cols = shape[2],
                              .inside = PROGRAM_NONE,
                              .layout = l};
    if (shape[0] > 1) build_axis(&v.layout, PROGRAM_BATCH, a->n, a->r * a->c * a->k);
    return v;
}

static struct program_view view_of(const struct build_operand *m, bool turned) {
    struct program_view v = m->lead;
    build_digit(&v, turned ? m->cols : m->rows, turned ? m->step_col : m->step_row);
    build_digit(&v, turned ? m->rows : m->cols, turned ? m->step_row : m->step_col);
    return v;
}

/* The host writes it so: its leading axes are one axis or none. */
static bool stored(const struct batched *a, const struct build_operand *m,
                   const struct program_value *v, bool turned, uint32_t *ret) {
    uint64_t step = 0, n = 1;
    if (m->graph_value == GRAPH_NONE || !build_is_source(a->b, m->graph_value)) return false;
    for (uint32_t i = m->lead.n; i-- > 0; n *= m->lead.extent[i]) {
        if (m->lead.extent[i] == 1) continue;
        if (n == 1) step = m->lead.step[i];
        if (m->lead.step[i] != step * n) return false;
    }
    if (v->batch == 1 && n > 1) return false; /* matrices merged into rows */
    struct program_value home = *v;
    home.tensor.step[0] = step;
    home.tensor.step[1] = turned ? m->step_col : m->step_row;
    home.tensor.step[2] = turned ? m->step_row : m->step_col;
    *ret = build_source(a->b, m->graph_value, &home);
    return true;
}

static uint32_t plain_of(const struct batched *a, const struct build_operand *m) {
    return m->graph_value == GRAPH_NONE ? m->value : build_plain(a->b, a->x->op, m->graph_value);
}

static uint32_t pack(struct build *b, const struct graph_op *op, uint32_t in,
                     struct program_value v) {
    v.layout.order = PROGRAM_COEFF;
    v.layout.memory = PROGRAM_INTERLEAVED;
    v.name = arena_printf(b->p->arena, "%s.packed", v.name);
    const struct program_op kernel = {.compute = PROGRAM_KERNEL,
                                      .kernel = PROGRAM_KERNEL_PACK,
                                      .operation = op->name,
                                      .reason = "pack",
                                      .n_inputs = 1,
                                      .inputs = {in}};
    return build_compute(b, &kernel, &v);
}

uint32_t build_turned(struct build *b, const struct graph_op *op, uint32_t from,
                      const struct program_view *view, const uint32_t shape[3]) {
    enum { LEAST = 8, MOST_ROWS = 8176, MOST_COLUMNS = 2032 }; /* smaller: element by element */
    if (shape[1] < LEAST || shape[2] < LEAST) return PROGRAM_NONE;
    struct program_value v =
        build_even_matrices(b, arena_printf(b->p->arena, "%s.blocks", op->name), shape);
    const uint32_t tiles = b->p->n_tiles, n = MIN(v.batch, tiles);
    const uint32_t c = MIN(groups16(v.cols), tiles / n), r = MIN(groups16(v.rows), tiles / n / c);
    v.layout.grain[1] = v.layout.pad[1] = 16;
    build_axis(&v.layout, PROGRAM_BATCH, n, r * c);
    build_axis(&v.layout, PROGRAM_ROWS, r, c);
    build_axis(&v.layout, PROGRAM_COLS, c, 1);
    if (16 * ceil_div_u32(groups16(v.rows), r) > MOST_ROWS ||
        16 * ceil_div_u32(groups16(v.cols), c) > MOST_COLUMNS)
        return PROGRAM_NONE;
    return pack(b, op, build_view_copy(b, op, from, view, &v), v);
}

static uint32_t left_operand(const struct batched *a) {
    const struct build_product *x = a->x;
    const struct build_operand *m = &x->left;
    const uint32_t shape[3] = {x->batch, x->rows, x->inner};
    struct program_value v =
        value(a, "left", shape, build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_ANY));
    build_axis(&v.layout, PROGRAM_ROWS, a->r, a->c);
    build_axis(&v.layout, PROGRAM_COLS, a->k, a->r * a->c);
    build_axis(&v.layout, PROGRAM_REPLICA, a->c, 1);
    uint32_t from;
    if (stored(a, m, &v, false, &from)) return from;
    from = plain_of(a, m);
    if (m->step_col != 1) {
        struct program_view all = {0};
        build_digit(&all, m->matrices[0] * m->matrices[1] * m->matrices[2], 1);
        const uint32_t turned = build_turned(a->b, x->op, from, &all, m->matrices);
        if (turned != PROGRAM_NONE) from = turned;
    }
    const struct program_view view = view_of(m, false);
    return build_view_copy(a->b, x->op, from, &view, &v);
}

/* Coefficients as the host writes them; computed ones with K contiguous as rows of columns; others
 * turned on the tiles that read them. */
static uint32_t right_operand(const struct batched *a) {
    const struct build_product *x = a->x;
    const struct build_operand *m = &x->right;
    const uint32_t n = x->shared ? 1 : x->batch;
    const uint32_t shape[3] = {n, x->inner, x->columns}, turned[3] = {n, x->columns, x->inner};
    struct program_value v =
        value(a, "right", shape, build_layout(PROGRAM_F16, PROGRAM_COEFF, PROGRAM_INTERLEAVED));
    build_axis(&v.layout, PROGRAM_ROWS, a->k, a->r * a->c);
    build_axis(&v.layout, PROGRAM_COLS, a->c, 1);
    build_axis(&v.layout, PROGRAM_REPLICA, a->r, a->c);
    uint32_t from;
    if (stored(a, m, &v, false, &from)) return from;
    from = plain_of(a, m);
    if (m->step_row == 1) {
        struct program_value t = value(
            a, "right", turned, build_layout(PROGRAM_F16, PROGRAM_COEFF_T, PROGRAM_INTERLEAVED));
        build_axis(&t.layout, PROGRAM_COLS, a->k, a->r * a->c);
        build_axis(&t.layout, PROGRAM_ROWS, a->c, 1);
        build_axis(&t.layout, PROGRAM_REPLICA, a->r, a->c);
        const struct program_view view = view_of(m, true);
        return build_view_copy(a->b, x->op, from, &view, &t);
    }
    v.layout.order = PROGRAM_AMP_BATCHED;
    v.layout.memory = PROGRAM_ANY;
    const struct program_view view = view_of(m, false);
    return pack(a->b, x->op, build_view_copy(a->b, x->op, from, &view, &v), v);
}

/* --- The product --- */

static bool is_computed(const struct build *b, const struct build_operand *m) {
    return m->graph_value == GRAPH_NONE || !build_is_source(b, m->graph_value);
}

uint32_t build_product(struct build *b, const struct build_product *x) {
    struct batched a = {.b = b,
                        .x = x,
                        .left_moves = is_computed(b, &x->left),
                        .right_moves = is_computed(b, &x->right)};
    if (!choose_grid(&a)) {
        b->misfit = a.misfit;
        return PROGRAM_NONE;
    }
    const uint32_t left = left_operand(&a), right = right_operand(&a);
    const uint32_t shape[3] = {x->batch, x->rows, x->columns};
    struct program_value y = value(
        &a, "partial", shape, build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED));
    build_axis(&y.layout, PROGRAM_ROWS, a.r, a.c);
    build_axis(&y.layout, PROGRAM_COLS, a.c, 1);
    build_axis(&y.layout, PROGRAM_PARTIAL, a.k, a.r * a.c);
    if (a.k == 1) y.name = x->name;
    const struct program_op product = {.compute = PROGRAM_PRODUCT,
                                       .operation = x->op->name,
                                       .reason = "operator",
                                       .n_inputs = 2,
                                       .inputs = {left, right}};
    const uint32_t result = build_compute(b, &product, &y);
    if (a.k == 1) return result;
    y.name = x->name;
    build_axis(&y.layout, PROGRAM_PARTIAL, 1, 0);
    build_axis(&y.layout, PROGRAM_WINDOW, owners(x, a.r, a.c, a.k), a.r * a.c);
    const struct program_op sum = {.compute = PROGRAM_SUM,
                                   .operation = x->op->name,
                                   .reason = "reduction",
                                   .n_inputs = 1,
                                   .inputs = {result}};
    return build_compute(b, &sum, &y);
}

/* Leading axes of an operand as digits of the result's. */
static struct program_view leading(const struct graph_shape *x, const struct graph_shape *y) {
    struct program_view v = {0};
    uint32_t step[GRAPH_MAX_DIMS];
    build_steps(x, step);
    const uint32_t missing = y->n_dims - x->n_dims;
    for (uint32_t i = 0; i + 2 < y->n_dims; i++) {
        const bool moves = i >= missing && x->dim[i - missing] > 1;
        build_digit(&v, y->dim[i], moves ? step[i - missing] : 0);
    }
    return v;
}

static struct build_operand operand_of(const struct build *b, const struct graph_op *op, uint32_t i,
                                       bool transposed) {
    const struct graph_shape *x = &b->g->values[op->operands[i]].shape;
    const uint32_t rows = x->dim[x->n_dims - 2], columns = x->dim[x->n_dims - 1];
    return (struct build_operand){
        .graph_value = op->operands[i],
        .lead = leading(x, &b->g->values[op->results[0]].shape),
        .rows = transposed ? columns : rows,
        .cols = transposed ? rows : columns,
        .step_row = transposed ? 1 : columns,
        .step_col = transposed ? columns : 1,
        .matrices = {(uint32_t)(graph_shape_elements(x) / rows / columns), rows, columns}};
}

bool build_batched(struct build *b, const struct graph_op *op) {
    const struct graph_shape *y = &b->g->values[op->results[0]].shape;
    struct build_product x = {.op = op,
                              .name = op->name,
                              .rows = y->dim[y->n_dims - 2],
                              .columns = y->dim[y->n_dims - 1],
                              .left = operand_of(b, op, 0, op->attrs.transpose_left),
                              .right = operand_of(b, op, 1, op->attrs.transpose_right)};
    x.inner = x.left.matrices[op->attrs.transpose_left ? 1 : 2];
    x.batch = (uint32_t)(graph_shape_elements(y) / x.rows / x.columns);
    if (x.right.matrices[0] == 1) { /* one right operand: all rows are one matrix */
        x.shared = true;
        x.rows *= x.batch;
        x.batch = 1;
        x.right.lead = (struct program_view){0};
        if (!op->attrs.transpose_left && x.left.matrices[0] * x.left.matrices[1] == x.rows) {
            x.left.lead = (struct program_view){0};
            x.left.rows = x.rows;
        }
    }
    const uint32_t result = build_product(b, &x);
    if (result == PROGRAM_NONE) return false;
    build_hold(b, op->results[0], result);
    return true;
}
