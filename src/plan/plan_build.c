/* The chosen candidates as a program. Walks the operations in program order; each finds its
 * operands where they are held and says in which layout it wants them. Views (split, merge, slice)
 * change only the map by which a value is held. */
#include "plan/plan_build.h"

#include <string.h>

struct program_value build_local_like(const struct program_value *v, const char *name) {
    struct program_value x = *v;
    x.name = name;
    x.role = PROGRAM_LOCAL;
    x.inside = PROGRAM_NONE;
    x.sequence = 0;
    x.tensor = (struct program_tensor){0};
    return x;
}

struct program_layout build_layout(uint8_t format, uint8_t order, uint8_t memory) {
    const uint32_t m = program_micro(format);
    const uint32_t pads[PROGRAM_N_ORDERS][3] = {[PROGRAM_ROW_MAJOR] = {1, 1, 1},
                                                [PROGRAM_AMP_LEFT] = {1, 1, m},
                                                [PROGRAM_AMP_BATCHED] = {1, 1, m},
                                                [PROGRAM_COEFF] = {1, m, 16},
                                                [PROGRAM_COEFF_T] = {1, 16, m}};
    struct program_layout l = {
        .format = format, .order = order, .memory = memory, .window_grain = 32};
    for (uint32_t i = 0; i < PROGRAM_N_AXES; i++) l.count[i] = 1;
    for (uint32_t a = 0; a < 3; a++) l.grain[a] = l.pad[a] = pads[order][a];
    return l;
}

const char *build_name(struct build *b, const char *name) {
    const char *unique = name;
    for (uint32_t i = 2; !g_hash_table_add(b->names, (char *)unique); i++)
        unique = arena_printf(b->p->arena, "%s.%u", name, i);
    return unique;
}

static uint32_t resolve(const struct build *b, uint32_t value) {
    return plan_resolve(b->g, value);
}

bool build_is_source(const struct build *b, uint32_t graph_value) {
    return b->held[resolve(b, graph_value)].value == PROGRAM_NONE;
}

void build_hold(struct build *b, uint32_t graph_value, uint32_t value) {
    b->held[graph_value] = (struct held){value, program_map_identity(), false};
}

uint32_t build_value(struct build *b, const struct program_value *v) {
    struct program_value x = *v;
    x.name = build_name(b, arena_strdup(b->p->arena, v->name));
    return program_add_value(b->p, &x);
}

uint32_t build_compute(struct build *b, const struct program_op *op,
                       const struct program_value *v) {
    struct program_op o = *op;
    o.kind = PROGRAM_COMPUTE;
    o.output = build_value(b, v);
    o.map = program_map_identity();
    program_add_op(b->p, &o, b->repeat);
    return o.output;
}

uint32_t build_copy(struct build *b, const struct graph_op *op, const char *reason,
                    const struct held *from, const struct program_value *to) {
    const struct program_op copy = {.kind = PROGRAM_COPY,
                                    .operation = op->name,
                                    .reason = reason,
                                    .output = build_value(b, to),
                                    .n_inputs = 1,
                                    .inputs = {from->value},
                                    .map = from->map};
    program_add_op(b->p, &copy, b->repeat);
    return copy.output;
}

/* The parameter behind a source and, for an iterated argument, the number of its blocks. */
static const struct graph_value *source_tensor(const struct build *b, uint32_t value,
                                               uint32_t *ret_blocks) {
    const struct graph_value *v = &b->g->values[value];
    *ret_blocks = 0;
    if (v->kind != GRAPH_ARGUMENT) return v;
    const struct graph_value *t = &b->g->values[resolve(b, b->g->ops[v->op].operands[v->index])];
    *ret_blocks = t->shape.dim[0];
    return t;
}

uint32_t build_source(struct build *b, uint32_t graph_value, const struct program_value *like) {
    const uint32_t value = resolve(b, graph_value);
    uint32_t blocks;
    const struct graph_value *t = source_tensor(b, value, &blocks);
    struct program_value v = *like;
    v.name = t->name;
    v.role = t->kind == GRAPH_INPUT ? PROGRAM_INPUT : PROGRAM_PARAMETER;
    v.tensor.name = t->name;
    v.tensor.n_dims = t->shape.n_dims;
    memcpy(v.tensor.shape, t->shape.dim, sizeof v.tensor.shape);
    if (v.tensor.step[0] + v.tensor.step[1] + v.tensor.step[2] == 0) {
        v.tensor.step[0] = (uint64_t)v.rows * v.cols;
        v.tensor.step[1] = v.cols;
        v.tensor.step[2] = 1;
    }
    v.sequence = blocks;
    if (blocks) v.step_sequence = graph_shape_elements(&t->shape) / blocks;
    const uint32_t s = build_value(b, &v);
    if (!blocks) return s;
    struct program_value block = *like;
    block.name = b->g->values[value].name;
    block.tensor = (struct program_tensor){0};
    const struct program_iterated i = {s, build_value(b, &block)};
    g_array_append_val(b->iterated, i);
    return i.argument;
}

static bool same_layout(const struct program_layout *x, const struct program_layout *y) {
    return memcmp(x, y, sizeof *x) == 0;
}

static bool is_identity(const struct program_map *m) {
    const struct program_map identity = program_map_identity();
    return memcmp(m, &identity, sizeof identity) == 0;
}

/* Stored once: the whole matrix in AMP_LEFT, in equal runs on as many tiles as there are rows of 32
 * bytes. */
static struct program_value spread_home(const struct build *b, const struct program_value *want,
                                        uint32_t rows) {
    struct program_value v = {.name = want->name,
                              .batch = 1,
                              .rows = rows,
                              .cols = want->cols,
                              .inside = PROGRAM_NONE,
                              .layout =
                                  build_layout(want->layout.format, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    v.layout.exponent = want->layout.exponent;
    const uint64_t rows32 =
        (uint64_t)rows * ceil_div_u32(want->cols, program_micro(want->layout.format));
    build_axis(&v.layout, PROGRAM_WINDOW, (uint32_t)MIN(rows32, b->p->n_tiles), 1);
    return v;
}

uint32_t build_spread(struct build *b, uint32_t graph_value, const struct program_value *like) {
    const struct program_value home = spread_home(b, like, like->rows);
    return build_source(b, graph_value, &home);
}

uint32_t build_place(struct build *b, const struct graph_op *op, uint32_t graph_value,
                     const struct program_value *want, bool direct) {
    const uint32_t value = resolve(b, graph_value);
    uint32_t rows, columns;
    plan_matrix(&b->g->values[value].shape, &rows, &columns);
    const bool spread = want->batch == 1 && want->rows != rows; /* broadcast along rows */
    struct held from = build_held(b, op, value, want);
    if (from.value == PROGRAM_NONE) {
        if (direct && (!spread || rows == 1)) {
            struct program_value v = *want;
            v.tensor.step[1] = spread ? 0 : columns;
            v.tensor.step[2] = 1;
            return build_source(b, value, &v);
        }
        const struct program_value home = spread_home(b, want, rows);
        from = (struct held){build_source(b, value, &home), program_map_identity(), false};
    }
    if (from.value != PROGRAM_NONE && want->batch == 1 && is_identity(&from.map) &&
        b->p->values[from.value].batch > 1) { /* one matrix per batch index, read as rows */
        from.map.inner[1] = b->p->values[from.value].rows;
        from.map.outer_to[1][0] = 1;
    } else if (spread) {
        from.map.inner[1] = rows;
        from.map.outer_to[1][1] = 0;
    }
    if (!spread) build_as_matrices(b, op, &from, want);
    const struct program_value *v = &b->p->values[from.value];
    if (is_identity(&from.map) && same_layout(&v->layout, &want->layout) && v->rows == want->rows &&
        v->cols == want->cols)
        return from.value;
    return build_copy(b, op, "gather", &from, want);
}

/* --- Operations other than products --- */

static bool build_gelu(struct build *b, const struct graph_op *op) {
    struct held *in = &b->held[resolve(b, op->operands[0])];
    if (in->value == PROGRAM_NONE) {
        struct program_value like = {.name = op->name,
                                     .batch = 1,
                                     .inside = PROGRAM_NONE,
                                     .layout =
                                         build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
        plan_matrix(&b->g->values[op->operands[0]].shape, &like.rows, &like.cols);
        const struct program_value home = spread_home(b, &like, like.rows);
        build_hold(b, resolve(b, op->operands[0]), build_source(b, op->operands[0], &home));
    }
    struct program_value v = b->p->values[in->value];
    v.name = op->name;
    v.role = PROGRAM_LOCAL;
    v.inside = PROGRAM_NONE;
    v.sequence = 0;
    v.tensor = (struct program_tensor){0};
    const struct program_op gelu = {.compute = PROGRAM_KERNEL,
                                    .kernel = op->attrs.form == GRAPH_GELU_TANH
                                                  ? PROGRAM_KERNEL_GELU
                                                  : PROGRAM_KERNEL_GELU_ERF,
                                    .operation = op->name,
                                    .reason = "operator",
                                    .n_inputs = 1,
                                    .inputs = {in->value}};
    b->held[op->results[0]] = (struct held){build_compute(b, &gelu, &v), in->map, in->swapped};
    return true;
}

/* Sum of a held value and an operand of the same matrix form, or of one row: an epilogue alone. */
static bool build_add(struct build *b, const struct graph_op *op) {
    const struct graph_shape *s = &b->g->values[op->results[0]].shape;
    uint32_t left = op->operands[0], right = op->operands[1];
    if (build_is_source(b, left) || !graph_shape_equal(&b->g->values[left].shape, s)) {
        left = op->operands[1];
        right = op->operands[0];
    }
    const struct held *in = &b->held[resolve(b, left)];
    if (in->value == PROGRAM_NONE || !is_identity(&in->map) ||
        !graph_shape_equal(&b->g->values[left].shape, s) ||
        !plan_is_suffix(&b->g->values[right].shape, s))
        return build_point(b, op);
    struct program_value want = b->p->values[in->value];
    const struct program_layout *l = &want.layout;
    uint32_t rows, columns;
    plan_matrix(&b->g->values[right].shape, &rows, &columns);
    if (columns != want.cols || want.rows % rows || want.batch != 1 ||
        l->count[PROGRAM_REPLICA] > 1 || l->format != PROGRAM_F16 || l->order != PROGRAM_AMP_LEFT ||
        l->window_rows)
        return build_point(b, op);
    want.layout.memory = PROGRAM_INTERLEAVED;
    want.role = PROGRAM_LOCAL;
    want.inside = PROGRAM_NONE;
    want.tensor = (struct program_tensor){0};
    want.name = arena_printf(b->p->arena, "%s.right", op->name);
    const uint32_t left_value = build_place(b, op, left, &want, false);
    const uint32_t other = build_place(b, op, right, &want, true);
    const struct program_op sum = {.compute = PROGRAM_SUM,
                                   .epilogue = PROGRAM_EPILOGUE_RESIDUAL,
                                   .operation = op->name,
                                   .reason = "operator",
                                   .n_inputs = 2,
                                   .inputs = {left_value, other}};
    want.name = op->name;
    build_hold(b, op->results[0], build_compute(b, &sum, &want));
    return true;
}

/* [b, s, h*d] -> [b*h, s, d] (axis 2 into 0) and back; windows of the last axis. */
static bool build_view(struct build *b, const struct graph_op *op) {
    const struct held *in = &b->held[resolve(b, op->operands[0])];
    const struct graph_shape *x = &b->g->values[op->operands[0]].shape;
    const struct graph_attrs *a = &op->attrs;
    if (b->held[op->results[0]].value != PROGRAM_NONE)
        return true; /* a product holds this window */
    if (in->value == PROGRAM_NONE) return build_move(b, op);
    const uint32_t images = b->p->values[in->value].batch;
    if (op->kind == GRAPH_MERGE ? images != x->dim[0] : !in->swapped && images != 1)
        return build_move(b, op); /* the maps below count other axes */
    struct held y = *in;
    if (in->swapped) { /* values: (b*n + h, s, d) <- image b, row h*D + d, column s */
        if (op->kind != GRAPH_SPLIT || x->n_dims != 3 || a->axis != 2 || a->into != 0)
            return build_move(b, op);
        y.map = (struct program_map){.inner = {a->count, UINT32_MAX, UINT32_MAX}};
        y.map.outer_to[0][0] = 1;
        y.map.inner_to[0][1] = (int32_t)(x->dim[2] / a->count);
        y.map.inner_to[1][2] = 1;
        y.map.inner_to[2][1] = 1;
        b->held[op->results[0]] = y;
        return true;
    }
    if (op->kind == GRAPH_SLICE) {
        if (a->axis + 1 != x->n_dims || !is_identity(&in->map))
            for (uint32_t i = 0; i < 3; i++)
                if (in->map.inner[i] != UINT32_MAX || a->axis + 1 != x->n_dims)
                    return build_move(b, op);
        y.map.offset[2] += (int32_t)a->start;
    } else {
        bool plain = x->n_dims == 3 && a->axis == 2 && a->into == 0;
        for (uint32_t i = 0; i < 3; i++) plain = plain && in->map.inner[i] == UINT32_MAX;
        if (!plain) return build_move(b, op);
        const uint32_t n = a->count;
        if (op->kind == GRAPH_SPLIT) { /* (b*n + h, s, d) <- row b*S + s, column h*D + d */
            y.map.inner[0] = n;
            y.map.outer_to[0][0] = 0;
            y.map.outer_to[0][1] = (int32_t)x->dim[1];
            y.map.inner_to[0][0] = 0;
            y.map.inner_to[0][2] = (int32_t)(x->dim[2] / n);
        } else { /* (b*S + s, h*D + d) <- batch b*n + h, row s, column d */
            y.map.inner[1] = x->dim[1];
            y.map.outer_to[1][0] = (int32_t)n;
            y.map.inner[2] = x->dim[2];
            y.map.outer_to[2][0] = 1;
        }
    }
    b->held[op->results[0]] = y;
    return true;
}

static bool build_op(struct build *b, const struct graph_op *op, uint32_t *at) {
    const uint32_t number = (uint32_t)(op - b->g->ops);
    switch (op->kind) {
    case GRAPH_GEMM:
        if (b->order->gemm_of[number] == PROGRAM_NONE) return build_batched(b, op);
        return build_gemms(b, *at - 1);
    case GRAPH_ATTENTION:
        return build_attention(b, op);
    case GRAPH_GELU:
        return build_gelu(b, op);
    case GRAPH_ADD:
        return build_add(b, op);
    case GRAPH_MUL:
        return build_point(b, op);
    case GRAPH_LAYER_NORM: {
        const struct graph_shape *s = &b->g->values[op->operands[0]].shape;
        const bool whole = s->dim[s->n_dims - 1] % 16 == 0 && op->attrs.epsilon == 1e-6f;
        return whole ? build_norm(b, op) : build_rows_norm(b, op);
    }
    case GRAPH_RMS_NORM:
        return build_rows_norm(b, op);
    case GRAPH_SOFTMAX:
        return build_softmax(b, op);
    case GRAPH_CAST:
        return build_cast(b, op);
    case GRAPH_TRANSPOSE:
        return build_transpose(b, op);
    case GRAPH_CONCAT:
        return build_concat(b, op);
    case GRAPH_EMBED:
        return build_embed(b, op);
    case GRAPH_SPLIT:
    case GRAPH_MERGE:
    case GRAPH_SLICE:
        return build_view(b, op);
    case GRAPH_REPEAT:
        return build_repeat(b, op, at);
    default:
        return plan_refuse(op, "this operation cannot be planned yet", b->error);
    }
}

/* All operations of one block from position *at on. */
bool build_ops(struct build *b, uint32_t *at, uint32_t repeat) {
    const struct plan_order *o = b->order;
    while (*at < o->n_ops && o->repeat_of[*at] == repeat) {
        const uint32_t number = o->ops[(*at)++];
        if (!o->fused[number] && !b->built[number] && !build_op(b, &b->g->ops[number], at))
            return false;
        build_note_results(b);
    }
    return true;
}

/* 32 ones on every tile, for the sums of attention; made once. */
static void build_ones(struct build *b) {
    bool wanted = false;
    for (uint32_t i = 0; i < b->g->n_ops; i++) wanted |= b->g->ops[i].kind == GRAPH_ATTENTION;
    if (!wanted) return;
    struct program_value v = {.name = "ones",
                              .batch = 1,
                              .rows = 1,
                              .cols = 32,
                              .inside = PROGRAM_NONE,
                              .layout = build_layout(b->o->attention_pv_fp8 ? PROGRAM_F8_F143
                                                                            : PROGRAM_F16,
                                                     PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    if (b->o->attention_pv_fp8) v.layout.exponent = (int8_t)b->o->attention_pv_exponent;
    v.layout.grain[2] = v.layout.pad[2] = 32;
    build_axis(&v.layout, PROGRAM_REPLICA, b->p->n_tiles, 1);
    const struct program_op op = {.compute = PROGRAM_KERNEL,
                                  .kernel = PROGRAM_KERNEL_ONES,
                                  .operation = "ones",
                                  .reason = "operator"};
    b->ones = build_compute(b, &op, &v);
}

static struct program *build_pass(struct build *b) {
    const struct graph *g = b->g;
    b->p = program_new(g->name, b->o->n_tiles);
    b->held = arena_new_array(b->p->arena, struct held, g->n_values);
    b->built = arena_new_array(b->p->arena, bool, g->n_ops + 1);
    b->repeat = PROGRAM_NONE;
    b->ones = PROGRAM_NONE;
    b->next_base = 0;
    b->plain = arena_new_array(b->p->arena, struct plain, g->n_values);
    memset(b->plain, 0xff, g->n_values * sizeof *b->plain);
    b->cast = arena_new_array(b->p->arena, uint32_t, g->n_values);
    memset(b->cast, 0xff, g->n_values * sizeof *b->cast);
    b->iterated = g_array_new(FALSE, FALSE, sizeof(struct program_iterated));
    b->names = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t i = 0; i < g->n_values; i++)
        b->held[i] = (struct held){PROGRAM_NONE, program_map_identity(), false};
    build_ones(b);
    uint32_t at = 0;
    const bool ok = build_ops(b, &at, GRAPH_NONE) && build_outputs(b);
    g_array_free(b->iterated, TRUE);
    g_hash_table_destroy(b->names);
    if (ok) return b->p;
    program_free(b->p);
    return NULL;
}

/* Of the values whose shard alone is more than a tile has, the largest is named. */
static bool values_fit(const struct build *b, const struct program *p,
                       struct plan_infeasible *ret_misfit) {
    const uint64_t has = b->o->standard_bytes + b->o->interleaved_bytes;
    for (uint32_t i = 0; i < p->n_values; i++) {
        uint32_t tile;
        const uint64_t needs = program_value_fullest(&p->values[i], p->n_tiles, &tile);
        if (needs <= MAX(has, ret_misfit->needs_bytes)) continue;
        const char *name = g_intern_string(p->values[i].name);
        *ret_misfit = (struct plan_infeasible){.operation = name,
                                               .memory = "all",
                                               .tile = tile,
                                               .needs_bytes = needs,
                                               .has_bytes = has,
                                               .n_users = 1,
                                               .users = {{name, needs}}};
    }
    return ret_misfit->needs_bytes == 0;
}

struct program *plan_build_program(const struct plan_order *order, const struct plan_options *o,
                                   const struct plan_candidate *chosen,
                                   struct plan_infeasible *ret_misfit, GError **error) {
    const struct graph *g = order->g;
    struct arena *scratch = arena_new();
    struct build b = {.order = order,
                      .o = o,
                      .chosen = chosen,
                      .g = g,
                      .error = error,
                      .carried = arena_new_array(scratch, struct program_value, g->n_values + 1),
                      .final = g->n_blocks == 1};
    struct program *p = build_pass(&b);
    if (p && !b.final) {
        program_free(p);
        b.final = true;
        p = build_pass(&b);
    }
    if (p == NULL) {
        *ret_misfit = b.misfit;
    } else if (!values_fit(&b, p, ret_misfit)) {
        program_free(p);
        p = NULL;
    }
    arena_free(scratch);
    return p;
}
