/* Values by the numbers of their elements. A plain value numbers its elements as the graph's tensor
 * does (row-major), whatever its layout; every view of a tensor is then a split of the result's
 * number into digits with steps (struct program_view), and one copy realises it. Digits that run on
 * into each other are merged, so that a view that changes nothing is found to be none. */
#include "plan/plan_build.h"

#include <string.h>

void build_steps(const struct graph_shape *s, uint32_t ret_step[GRAPH_MAX_DIMS]) {
    uint32_t step = 1;
    for (uint32_t i = s->n_dims; i-- > 0;) {
        ret_step[i] = step;
        step *= s->dim[i];
    }
}

void build_digit(struct program_view *v, uint32_t extent, uint32_t step) {
    BUG_ON(v->n == PROGRAM_VIEW_DIGITS);
    v->extent[v->n] = extent;
    v->step[v->n++] = step;
}

/* Without a cut: digits of extent 1 dropped, neighbours merged where one continues the other. */
static struct program_view simplified(const struct program_view *v) {
    if (v->cut_end) return *v;
    struct program_view x = {.offset = v->offset};
    for (uint32_t i = 0; i < v->n; i++) {
        if (v->extent[i] == 1) continue;
        if (x.n && x.step[x.n - 1] == v->extent[i] * v->step[i]) {
            x.extent[x.n - 1] *= v->extent[i];
            x.step[x.n - 1] = v->step[i];
        } else {
            build_digit(&x, v->extent[i], v->step[i]);
        }
    }
    if (x.n == 0) build_digit(&x, 1, 0);
    return x;
}

static bool changes_nothing(const struct program_view *v) {
    return v->n == 1 && v->offset == 0 && v->cut_end == 0 && (v->step[0] == 1 || v->extent[0] == 1);
}

struct program_view build_broadcast(const struct graph_shape *from, const struct graph_shape *to) {
    struct program_view v = {0};
    uint32_t step[GRAPH_MAX_DIMS];
    build_steps(from, step);
    for (uint32_t i = 0; i < to->n_dims; i++) {
        const uint32_t missing = to->n_dims - from->n_dims;
        const bool moves = i >= missing && from->dim[i - missing] > 1;
        build_digit(&v, to->dim[i], moves ? step[i - missing] : 0);
    }
    return simplified(&v);
}

uint32_t build_view_copy(struct build *b, const struct graph_op *op, uint32_t from,
                         const struct program_view *view, const struct program_value *to) {
    const struct program_view v = simplified(view);
    const struct program_value *x = &b->p->values[from];
    if (changes_nothing(&v) && memcmp(&x->layout, &to->layout, sizeof x->layout) == 0 &&
        x->batch == to->batch && x->rows == to->rows && x->cols == to->cols)
        return from;
    const struct held whole = {from, program_map_identity(), false};
    const uint32_t copy = build_copy(b, op, "gather", &whole, to);
    b->p->ops[b->p->n_ops - 1].view = v;
    return copy;
}

void build_view_more(struct build *b, const struct graph_op *op, uint32_t from,
                     const struct program_view *view, uint32_t to) {
    const struct program_op copy = {.kind = PROGRAM_COPY,
                                    .operation = op->name,
                                    .reason = "gather",
                                    .output = to,
                                    .n_inputs = 1,
                                    .inputs = {from},
                                    .map = program_map_identity(),
                                    .view = *view,
                                    .more = true};
    program_add_op(b->p, &copy, b->repeat);
}

struct program_value build_even(const struct build *b, const char *name,
                                const struct graph_shape *s) {
    struct program_value v = {.name = name,
                              .batch = 1,
                              .inside = PROGRAM_NONE,
                              .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_LEFT, PROGRAM_ANY)};
    plan_matrix(s, &v.rows, &v.cols);
    const uint32_t tiles = b->p->n_tiles, rows = MIN(v.rows, tiles);
    const uint32_t columns = MIN(ceil_div_u32(v.cols, 16), tiles / rows);
    build_axis(&v.layout, PROGRAM_ROWS, rows, columns);
    build_axis(&v.layout, PROGRAM_COLS, columns, 1);
    return v;
}

bool build_is_even(const struct build *b, const struct program_value *v) {
    const struct program_layout *l = &v->layout;
    if (l->format != PROGRAM_F16 || l->count[PROGRAM_PARTIAL] * l->count[PROGRAM_REPLICA] != 1 ||
        (l->order != PROGRAM_AMP_LEFT && l->order != PROGRAM_AMP_BATCHED))
        return false;
    const uint64_t pieces = (uint64_t)v->batch * v->rows * ceil_div_u32(v->cols, 16);
    return 2 * (uint64_t)program_n_shards(v) >= MIN(pieces, b->p->n_tiles);
}

struct program_value build_even_matrices(const struct build *b, const char *name,
                                         const uint32_t shape[3]) {
    struct program_value v = {.name = name,
                              .batch = shape[0],
                              .rows = shape[1],
                              .cols = shape[2],
                              .inside = PROGRAM_NONE,
                              .layout = build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_ANY)};
    const uint32_t tiles = b->p->n_tiles, n = MIN(v.batch, tiles), r = MIN(v.rows, tiles / n);
    const uint32_t c = MIN(ceil_div_u32(v.cols, 16), tiles / n / r);
    build_axis(&v.layout, PROGRAM_BATCH, n, r * c);
    build_axis(&v.layout, PROGRAM_ROWS, r, c);
    build_axis(&v.layout, PROGRAM_COLS, c, 1);
    return v;
}

/* --- Plain values --- */

static bool is_identity(const struct program_map *m) {
    const struct program_map identity = program_map_identity();
    return memcmp(m, &identity, sizeof identity) == 0;
}

/* A map that is not the identity counts images apart or all rows. */
static uint32_t realised(struct build *b, const struct graph_op *op, const struct held *h,
                         const struct graph_shape *s) {
    const char *name = arena_printf(b->p->arena, "%s.plain", op->name);
    struct program_value to = build_even(b, name, s);
    if (h->map.inner[0] != UINT32_MAX && s->n_dims == 3) to = build_even_matrices(b, name, s->dim);
    return build_copy(b, op, "gather", h, &to);
}

/* F16, each element once, numbered as the tensor. */
static bool is_plain(const struct build *b, const struct held *h, const struct graph_shape *s) {
    const struct program_value *v = &b->p->values[h->value];
    return is_identity(&h->map) && !h->swapped && v->layout.format == PROGRAM_F16 &&
           v->layout.count[PROGRAM_PARTIAL] == 1 &&
           (uint64_t)v->batch * v->rows * v->cols == graph_shape_elements(s);
}

uint32_t build_plain(struct build *b, const struct graph_op *op, uint32_t graph_value) {
    const uint32_t value = plan_resolve(b->g, graph_value);
    const struct graph_shape *s = &b->g->values[value].shape;
    struct plain *known = &b->plain[value];
    if (known->value != PROGRAM_NONE && (known->repeat == PROGRAM_NONE || known->repeat == b->repeat))
        return known->value;
    const struct held *h = &b->held[value];
    if (h->value != PROGRAM_NONE && is_plain(b, h, s)) return h->value;
    if (h->value == PROGRAM_NONE) {
        const struct program_value like = build_even(b, b->g->values[value].name, s);
        const bool block = b->g->values[value].kind == GRAPH_ARGUMENT;
        *known = (struct plain){build_source(b, value, &like), block ? b->repeat : PROGRAM_NONE};
    } else {
        *known = (struct plain){realised(b, op, h, s), b->repeat};
    }
    return known->value;
}

struct held build_held(struct build *b, const struct graph_op *op, uint32_t graph_value,
                       const struct program_value *want) {
    const uint32_t value = plan_resolve(b->g, graph_value);
    const struct graph_shape *s = &b->g->values[value].shape;
    struct held h = b->held[value];
    if (h.value == PROGRAM_NONE || is_identity(&h.map)) return h;
    const bool images = h.map.inner[0] != UINT32_MAX;
    if (images ? s->n_dims == 3 && want->batch == s->dim[0] && want->rows == s->dim[1]
               : want->batch == 1)
        return h;
    return (struct held){build_plain(b, op, value), program_map_identity(), false};
}

void build_as_matrices(struct build *b, const struct graph_op *op, struct held *from,
                       const struct program_value *want) {
    const struct program_value v = b->p->values[from->value];
    if (!is_identity(&from->map) || (v.batch == want->batch && v.rows == want->rows)) return;
    if (v.batch == 1) { /* all rows in one matrix */
        from->map.inner_to[0][0] = 0;
        from->map.inner_to[0][1] = (int32_t)want->rows;
    } else if (want->batch == 1) {
        from->map.inner[1] = v.rows;
        from->map.outer_to[1][0] = 1;
    } else {
        const uint32_t shape[3] = {want->batch, want->rows, want->cols};
        const struct program_value to = build_even_matrices(
            b, arena_printf(b->p->arena, "%s.matrices", op->name), shape);
        struct program_view all = {0};
        build_digit(&all, v.batch * v.rows * v.cols, 1);
        from->value = build_view_copy(b, op, from->value, &all, &to);
    }
}

/* --- A host tensor or a computed one in a wanted layout, broadcast as the view says --- */

/* Steps of the tensor along the axes of `want`, if the view has them: all of it, one row for all
 * rows, or one element a row. */
static bool direct_steps(const struct program_view *v, const struct program_value *want,
                         uint64_t ret[3]) {
    const uint32_t rows = want->batch * want->rows, cols = want->cols;
    if (v->offset || v->cut_end) return false;
    if (v->n == 1 && v->step[0] == 1) {
        ret[0] = (uint64_t)want->rows * cols;
        ret[1] = cols;
        ret[2] = 1;
        return true;
    }
    const bool two = v->n == 2 && v->extent[0] == rows && v->extent[1] == cols;
    ret[0] = two && v->step[0] == 1 && v->step[1] == 0 ? want->rows : 0;
    ret[1] = two && v->step[0] == 1 && v->step[1] == 0 ? 1 : 0;
    ret[2] = two && v->step[0] == 0 && v->step[1] == 1 ? 1 : 0;
    return ret[1] + ret[2] > 0;
}

/* Host inputs may be written in any layout; a parameter is stored once, or many times if small. */
static bool may_store(const struct build *b, uint32_t value, const struct program_value *want,
                      bool once) {
    enum { SMALL_BYTES = 4096 };
    const struct graph_value *v = &b->g->values[value];
    const bool input = v->kind == GRAPH_INPUT && !b->o->inputs_once;
    const uint64_t times = b->repeat == PROGRAM_NONE ? 1 : b->count;
    if (v->kind == GRAPH_INPUT && b->o->inputs_once && !once) return false;
    return once || input || times * program_value_tile_bytes(want, b->p->n_tiles) <= SMALL_BYTES;
}

uint32_t build_viewed(struct build *b, const struct graph_op *op, uint32_t graph_value,
                      const struct program_view *view, const struct program_value *want) {
    const uint32_t value = plan_resolve(b->g, graph_value);
    const struct program_view v = simplified(view);
    uint64_t steps[3];
    const uint64_t elements = graph_shape_elements(&b->g->values[value].shape);
    const bool once = changes_nothing(&v) && want->layout.count[PROGRAM_REPLICA] == 1 &&
                      (uint64_t)want->batch * want->rows * want->cols == elements;
    if (build_is_source(b, value) && b->plain[value].value == PROGRAM_NONE &&
        direct_steps(&v, want, steps) && may_store(b, value, want, once)) {
        struct program_value home = *want;
        for (uint32_t a = 0; a < 3; a++) home.tensor.step[a] = steps[a];
        return build_source(b, value, &home);
    }
    return build_view_copy(b, op, build_plain(b, op, value), view, want);
}
