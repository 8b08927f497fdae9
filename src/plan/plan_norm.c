/* Layer normalisation of rows of whole panels. Each row part lies on c tiles, a part of its columns
 * on each. With one it is a call on whole rows; with more, every tile makes the moments of its
 * part, gets those of the others and applies them. The number of column parts is that with the
 * smallest sum of closed forms. */
#include "plan/plan_build.h"

struct norm_grid {
    uint32_t r, c;
};

/* Rows arrive in runs of one panel's; moments are two words a row and column part. */
static uint64_t grid_cycles(uint32_t rows, uint32_t columns, struct norm_grid g) {
    const uint32_t height = ceil_div_u32(rows, g.r), width = columns / g.c;
    const uint64_t gather = plan_phase_cycles((uint64_t)height * width / 2, 8 * height);
    if (g.c == 1) {
        const struct kernel_spec norm = {KERNEL_NORM_F16, {height, width, 1}};
        return gather + kernel_cycles(&norm);
    }
    const struct kernel_spec moments = {KERNEL_MOMENTS_F16, {height, width, 1, 1}};
    const struct kernel_spec apply = {KERNEL_APPLY_MOMENTS_F16, {height, width, 1, g.c}};
    return gather + kernel_cycles(&moments) +
           plan_phase_cycles(2 * (uint64_t)height * (g.c - 1), 2 * height) + kernel_cycles(&apply);
}

static struct norm_grid choose_grid(const struct build *b, uint32_t rows, uint32_t columns) {
    enum { MOST_ROWS = 1000 }; /* of a call */
    const uint32_t tiles = b->p->n_tiles, panels = columns / 16;
    struct norm_grid best = {MIN(rows, tiles), 1};
    uint64_t best_cycles = UINT64_MAX;
    for (uint32_t c = 1; c <= MIN(panels, tiles); c++) {
        if (panels % c) continue; /* equal parts */
        if (b->o->norm_parts && c != b->o->norm_parts) continue;
        const struct norm_grid g = {MIN(rows, tiles / c), c};
        if (c > 1 && ceil_div_u32(rows, g.r) > MOST_ROWS) continue;
        const uint64_t cycles = grid_cycles(rows, columns, g);
        if (cycles >= best_cycles) continue;
        best_cycles = cycles;
        best = g;
    }
    return best;
}

/* Scale or bias of the column parts on every tile: stored there unless a sequence of them would
 * take too much. */
static uint32_t parameter_row(struct build *b, const struct graph_op *op, uint32_t i,
                              const struct program_value *x, struct norm_grid g) {
    enum { DIRECT_BYTES = 16 * 1024 };
    const uint32_t blocks = b->repeat == PROGRAM_NONE ? 1 : b->count;
    struct program_value row = {
        .name = arena_printf(b->p->arena, "%s.%s", op->name, i == 1 ? "scale" : "bias"),
        .batch = 1,
        .rows = 1,
        .cols = x->cols,
        .inside = PROGRAM_NONE,
        .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    build_axis(&row.layout, PROGRAM_COLS, g.c, 1);
    build_axis(&row.layout, PROGRAM_REPLICA, g.r, x->layout.stride[PROGRAM_ROWS]);
    return build_place(b, op, op->operands[i], &row, 4 * x->cols / g.c * blocks <= DIRECT_BYTES);
}

static uint32_t kernel(struct build *b, const struct graph_op *op, struct program_op call,
                       const struct program_value *v) {
    call.compute = PROGRAM_KERNEL;
    call.operation = op->name;
    call.reason = "operator";
    call.real = op->attrs.epsilon;
    return build_compute(b, &call, v);
}

/* Moments of all column parts on every tile of a row part, part by part. */
static uint32_t all_moments(struct build *b, const struct graph_op *op, uint32_t x,
                            struct norm_grid g) {
    struct program_value own = {.name = arena_printf(b->p->arena, "%s.moments", op->name),
                                .batch = 1,
                                .rows = b->p->values[x].rows,
                                .cols = 2 * g.c,
                                .inside = PROGRAM_NONE,
                                .layout =
                                    build_layout(PROGRAM_F32, PROGRAM_ROW_MAJOR, PROGRAM_ANY)};
    own.layout.grain[2] = own.layout.pad[2] = 2;
    build_axis(&own.layout, PROGRAM_ROWS, g.r, g.c);
    struct program_value all = own;
    build_axis(&own.layout, PROGRAM_COLS, g.c, 1);
    all.name = arena_printf(b->p->arena, "%s.moments.all", op->name);
    all.batch = g.c;
    all.cols = 2;
    build_axis(&all.layout, PROGRAM_REPLICA, g.c, 1);
    struct held from = {
        kernel(b, op,
               (struct program_op){.kernel = PROGRAM_KERNEL_MOMENTS, .n_inputs = 1, .inputs = {x}},
               &own),
        program_map_identity(), false};
    from.map.inner_to[0][0] = 0; /* part p, row, moment m: row, column 2 p + m */
    from.map.inner_to[0][2] = 2;
    return build_copy(b, op, "moments", &from, &all);
}

bool build_norm(struct build *b, const struct graph_op *op) {
    struct program_value v = {.name = arena_printf(b->p->arena, "%s.rows", op->name),
                              .batch = 1,
                              .inside = PROGRAM_NONE,
                              .layout =
                                  build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_INTERLEAVED)};
    plan_matrix(&b->g->values[op->operands[0]].shape, &v.rows, &v.cols);
    const struct norm_grid g = choose_grid(b, v.rows, v.cols);
    build_axis(&v.layout, PROGRAM_ROWS, g.r, g.c == 1 ? b->p->n_tiles / g.r : g.c);
    build_axis(&v.layout, PROGRAM_COLS, g.c, 1);
    const uint32_t x = build_place(b, op, op->operands[0], &v, false);
    const uint32_t scale = parameter_row(b, op, 1, &v, g), bias = parameter_row(b, op, 2, &v, g);
    v.name = op->name;
    struct program_op norm = {
        .kernel = PROGRAM_KERNEL_LAYER_NORM, .n_inputs = 3, .inputs = {x, scale, bias}};
    if (g.c > 1)
        norm = (struct program_op){.kernel = PROGRAM_KERNEL_APPLY_MOMENTS,
                                   .n_inputs = 4,
                                   .inputs = {x, all_moments(b, op, x, g), scale, bias}};
    build_hold(b, op->results[0], kernel(b, op, norm, &v));
    return true;
}
