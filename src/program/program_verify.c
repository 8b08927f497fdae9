/* The verifier: layouts are well formed, owners exist, values are defined before use, and every
 * compute finds its operands on the tiles that its output says. Walks all shards of compute
 * outputs. */
#include "program/program.h"
#include "program/program_names.h"

#include <string.h>

struct check {
    const struct program *p;
    bool *defined;
    GError **error;
};

static bool bad_value(struct check *c, const struct program_value *v, const char *why) {
    diag_set(c->error, PROGRAM_VALUE, v->name, why);
    return false;
}

static bool bad_op(struct check *c, const struct program_op *op, const char *why) {
    diag_set(c->error, PROGRAM_OP, op->operation, op->reason, why);
    return false;
}

static bool check_axes(struct check *c, const struct program_value *v) {
    const struct program_layout *l = &v->layout;
    const uint32_t extents[3] = {v->batch, v->rows, v->cols};
    for (uint32_t a = 0; a < 3; a++) {
        if (extents[a] == 0 || l->grain[a] == 0 || l->pad[a] == 0 || l->count[a] == 0)
            return bad_value(c, v, "an extent, grain, padding or part count is 0");
        if (l->count[a] > ceil_div_u32(extents[a], l->grain[a]))
            return bad_value(c, v, "an axis has empty parts");
        if (l->count[a] > 1 && l->grain[a] % l->pad[a])
            return bad_value(c, v, "the grain of an axis is no multiple of its padding");
    }
    return true;
}

static bool check_order(struct check *c, const struct program_value *v) {
    const struct program_layout *l = &v->layout;
    const uint32_t m = program_micro(l->format);
    const uint32_t want[PROGRAM_N_ORDERS][3] = {[PROGRAM_ROW_MAJOR] = {1, 1, 1},
                                                [PROGRAM_AMP_LEFT] = {1, 1, m},
                                                [PROGRAM_AMP_BATCHED] = {1, 1, m},
                                                [PROGRAM_COEFF] = {1, m, 16},
                                                [PROGRAM_COEFF_T] = {1, 16, m}};
    for (uint32_t a = 0; a < 3; a++)
        if (l->pad[a] % want[l->order][a])
            return bad_value(c, v, "the padding does not fit the order");
    return true;
}

static bool check_layout(struct check *c, const struct program_value *v) {
    const struct program_layout *l = &v->layout;
    if (l->format > PROGRAM_U32 || l->order >= PROGRAM_N_ORDERS ||
        l->memory > PROGRAM_INTERLEAVED)
        return bad_value(c, v, "format, order or memory class");
    if (!check_axes(c, v) || !check_order(c, v)) return false;
    uint64_t last = l->base, shards = 1;
    for (uint32_t a = 0; a < PROGRAM_N_AXES; a++) {
        if (l->count[a] == 0) return bad_value(c, v, "a count is 0");
        const bool wraps = a == PROGRAM_ROWS && l->wrap && l->wrap < l->count[a];
        last += program_owner_step(l, a, (wraps ? l->wrap : l->count[a]) - 1);
        shards *= l->count[a];
    }
    if (last >= c->p->n_tiles) return bad_value(c, v, "an owner is beyond the tiles");
    if (shards > UINT32_MAX / 2) return bad_value(c, v, "too many shards");
    if (l->window_grain == 0 || l->window_grain % 8)
        return bad_value(c, v, "the window grain is no multiple of 8 bytes");
    if ((l->window_rows == 0) != (l->window_cols == 0) ||
        (l->window_rows && l->window_rows * l->window_cols != l->count[PROGRAM_WINDOW]))
        return bad_value(c, v, "the split of its windows is not their number");
    if (l->count[PROGRAM_WINDOW] == 1) return true;
    for (uint32_t i = 0; i < program_n_shards(v); i++) {
        struct program_shard s;
        program_shard_at(v, i, &s);
        if (s.bytes == 0) return bad_value(c, v, "a window is empty");
    }
    return true;
}

static bool check_values(struct check *c) {
    GHashTable *names = g_hash_table_new(g_str_hash, g_str_equal);
    bool ok = true;
    for (uint32_t i = 0; ok && i < c->p->n_values; i++) {
        const struct program_value *v = &c->p->values[i];
        ok = check_layout(c, v);
        if (ok && !g_hash_table_add(names, (char *)v->name))
            ok = bad_value(c, v, "its name is used twice");
        if (ok && v->role != PROGRAM_LOCAL && !v->tensor.name)
            ok = bad_value(c, v, "it has a role but no tensor");
        if (ok && v->tensor.bound != 0 && v->layout.format != PROGRAM_U32)
            ok = bad_value(c, v, "it has a bound but holds no indices");
        if (ok && v->inside != PROGRAM_NONE && v->inside >= c->p->n_values)
            ok = bad_value(c, v, "it lies inside a value that does not exist");
        if (ok && v->parts && v->inside == PROGRAM_NONE)
            ok = bad_value(c, v, "it is a part of no value");
        c->defined[i] = v->role == PROGRAM_INPUT || v->role == PROGRAM_PARAMETER;
    }
    g_hash_table_destroy(names);
    return ok;
}

/* True if `v` has on tile t a shard with these part indices (any replica). */
static bool on_tile(const struct program_value *v, const uint32_t index[PROGRAM_N_AXES],
                    uint32_t t) {
    uint32_t first = v->layout.base;
    for (uint32_t a = 0; a < PROGRAM_REPLICA; a++) {
        if (index[a] >= v->layout.count[a]) return false;
        first += program_owner_step(&v->layout, a, index[a]);
    }
    const uint32_t n = v->layout.count[PROGRAM_REPLICA], s = v->layout.stride[PROGRAM_REPLICA];
    if (s == 0) return t == first;
    return t >= first && (t - first) % s == 0 && (t - first) / s < n;
}

static bool same_axis(const struct program_value *a, uint32_t axis_a, const struct program_value *b,
                      uint32_t axis_b) {
    const uint32_t ea[3] = {a->batch, a->rows, a->cols}, eb[3] = {b->batch, b->rows, b->cols};
    return ea[axis_a] == eb[axis_b] && a->layout.count[axis_a] == b->layout.count[axis_b] &&
           (a->layout.grain[axis_a] == b->layout.grain[axis_b] || a->layout.count[axis_a] == 1) &&
           a->layout.pad[axis_a] == b->layout.pad[axis_b];
}

static bool check_product(struct check *c, const struct program_op *op) {
    const struct program_value *o = &c->p->values[op->output];
    if (op->n_inputs != 2) return bad_op(c, op, "a product has two inputs");
    const struct program_value *a = &c->p->values[op->inputs[0]], *w = &c->p->values[op->inputs[1]];
    const bool turned = w->layout.order == PROGRAM_COEFF_T, shared = w->batch == 1;
    const bool shared_left = a->batch == 1 && o->batch > 1;
    if (!turned && w->layout.order != PROGRAM_COEFF)
        return bad_op(c, op, "the right input is not in a coefficient order");
    const uint32_t k = turned ? PROGRAM_COLS : PROGRAM_ROWS,
                   n = turned ? PROGRAM_ROWS : PROGRAM_COLS;
    if ((!shared_left && !same_axis(o, PROGRAM_BATCH, a, PROGRAM_BATCH)) ||
        !same_axis(o, PROGRAM_ROWS, a, PROGRAM_ROWS))
        return bad_op(c, op, "output and left input differ in rows or batch");
    if (!same_axis(o, PROGRAM_COLS, w, n))
        return bad_op(c, op, "output and right input differ in columns");
    if (!same_axis(a, PROGRAM_COLS, w, k)) return bad_op(c, op, "left and right input differ in K");
    if (o->layout.count[PROGRAM_PARTIAL] != a->layout.count[PROGRAM_COLS])
        return bad_op(c, op, "the output's partials are not the K parts of the inputs");
    if (!shared && !same_axis(o, PROGRAM_BATCH, w, PROGRAM_BATCH))
        return bad_op(c, op, "output and right input differ in batch");
    if (o->layout.count[PROGRAM_WINDOW] * a->layout.count[PROGRAM_WINDOW] *
            w->layout.count[PROGRAM_WINDOW] * o->layout.count[PROGRAM_REPLICA] !=
        1)
        return bad_op(c, op, "a product's operands are whole parts and its output has no replicas");
    for (uint32_t i = 0; i < program_n_shards(o); i++) {
        struct program_shard s;
        program_shard_at(o, i, &s);
        const uint32_t kk = s.index[PROGRAM_PARTIAL], cc = s.index[PROGRAM_COLS];
        const uint32_t ia[PROGRAM_N_AXES] = {shared_left ? 0 : s.index[0], s.index[1], kk};
        const uint32_t iw[PROGRAM_N_AXES] = {shared ? 0 : s.index[0], turned ? cc : kk,
                                             turned ? kk : cc};
        if (!on_tile(a, ia, s.tile) || !on_tile(w, iw, s.tile))
            return bad_op(c, op, "an operand is not on the tile of its output");
    }
    return true;
}

static bool same_parts(const struct program_value *a, const struct program_value *b) {
    return same_axis(a, 0, b, 0) && same_axis(a, 1, b, 1) && same_axis(a, 2, b, 2) &&
           a->layout.order == b->layout.order && a->layout.format == b->layout.format;
}

static bool check_same_place(struct check *c, const struct program_op *op,
                             const struct program_value *o, const struct program_value *x) {
    if (!same_parts(o, x) || o->layout.base != x->layout.base ||
        memcmp(o->layout.count, x->layout.count, sizeof o->layout.count) != 0 ||
        memcmp(o->layout.stride, x->layout.stride, sizeof o->layout.stride) != 0)
        return bad_op(c, op, "output and an input differ in layout");
    return true;
}

static bool check_epilogue(struct check *c, const struct program_op *op) {
    const struct program_value *o = &c->p->values[op->output];
    const bool bias = op->epilogue & PROGRAM_EPILOGUE_BIAS;
    const bool residual = op->epilogue & PROGRAM_EPILOGUE_RESIDUAL;
    if (op->n_inputs != 1u + bias + residual)
        return bad_op(c, op, "the epilogue's operands are missing or too many");
    if (op->epilogue && o->layout.order != PROGRAM_AMP_LEFT &&
        o->layout.order != PROGRAM_AMP_BATCHED)
        return bad_op(c, op, "an epilogue needs 16-column panels");
    if (residual && !check_same_place(c, op, o, &c->p->values[op->inputs[1 + bias]])) return false;
    if (!bias) return true;
    const struct program_value *v = &c->p->values[op->inputs[1]];
    for (uint32_t i = 0; i < program_n_shards(o); i++) {
        struct program_shard s;
        program_shard_at(o, i, &s);
        const bool batched = v->layout.count[PROGRAM_BATCH] > 1;
        const uint32_t index[PROGRAM_N_AXES] = {batched ? s.index[0] : 0, s.index[1], s.index[2]};
        if (!on_tile(v, index, s.tile))
            return bad_op(c, op, "the bias is not on the tile of its output");
    }
    return true;
}

static bool boxes_or_whole(const struct program_value *v) {
    return v->layout.window_rows || v->layout.count[PROGRAM_WINDOW] == 1;
}

static bool check_sum(struct check *c, const struct program_op *op) {
    const struct program_value *o = &c->p->values[op->output];
    if (op->n_inputs < 1) return bad_op(c, op, "a sum needs an input");
    const struct program_value *p = &c->p->values[op->inputs[0]];
    if (!same_parts(o, p))
        return bad_op(c, op, "output and partials differ in parts, order or format");
    if ((p->layout.count[PROGRAM_PARTIAL] < 2 && !op->epilogue) ||
        o->layout.count[PROGRAM_PARTIAL] != 1)
        return bad_op(c, op, "a sum needs partials or an epilogue and leaves no partials");
    if (o->layout.window_cols > 1) return bad_op(c, op, "a sum's windows are linear or rows");
    if (!check_epilogue(c, op)) return false;
    if (p->layout.count[PROGRAM_PARTIAL] == 1) return check_same_place(c, op, o, p);
    if (p->layout.count[PROGRAM_WINDOW] * p->layout.count[PROGRAM_REPLICA] != 1)
        return bad_op(c, op, "partials are whole parts without replicas");
    return true;
}

/* The last column is divided by and left out. */
static bool check_normalise(struct check *c, const struct program_op *op,
                            const struct program_value *o, const struct program_value *x) {
    const uint32_t pad = o->layout.pad[2];
    if (o->cols + 1 != x->cols || ceil_div_u32(o->cols, pad) != ceil_div_u32(x->cols, pad) ||
        o->layout.count[PROGRAM_COLS] != 1 || !same_axis(o, 0, x, 0) || !same_axis(o, 1, x, 1) ||
        memcmp(&o->layout, &x->layout, sizeof o->layout) != 0)
        return bad_op(c, op,
                      "the input has one column more in the same panels and the same layout");
    return true;
}

/* Two columns per column part of the input, on the same tiles. */
static bool check_row_max(struct check *c, const struct program_op *op,
                          const struct program_value *o, const struct program_value *x) {
    if (o->cols != 2 * x->layout.count[PROGRAM_COLS] || o->layout.order != PROGRAM_ROW_MAJOR ||
        !same_axis(o, 0, x, 0) || o->rows != x->rows || o->layout.base != x->layout.base ||
        memcmp(o->layout.count, x->layout.count, sizeof o->layout.count) != 0 ||
        memcmp(o->layout.stride, x->layout.stride, sizeof o->layout.stride) != 0)
        return bad_op(c, op, "maxima are two columns for each column part of the input");
    return true;
}

/* Words of indices on every tile of the output, the table's columns cut as the output's. */
static bool check_gather(struct check *c, const struct program_op *op,
                         const struct program_value *o, const struct program_value *table) {
    const struct program_value *index = &c->p->values[op->inputs[1]];
    if (index->layout.format != PROGRAM_U32 || index->layout.order != PROGRAM_ROW_MAJOR)
        return bad_op(c, op, "indices are words in row_major");
    if (o->layout.order != PROGRAM_AMP_LEFT || table->layout.order != PROGRAM_AMP_LEFT ||
        !same_axis(o, PROGRAM_COLS, table, PROGRAM_COLS) || o->batch * table->batch != 1 ||
        index->cols != o->rows || table->layout.count[PROGRAM_ROWS] != 1)
        return bad_op(c, op, "table and output are amp_left with equal columns");
    for (uint32_t i = 0; i < program_n_shards(o); i++) {
        struct program_shard s;
        program_shard_at(o, i, &s);
        const uint32_t it[PROGRAM_N_AXES] = {0, 0, s.index[2]}, ii[PROGRAM_N_AXES] = {0, 0, s.index[1]};
        if (!on_tile(table, it, s.tile) || !on_tile(index, ii, s.tile))
            return bad_op(c, op, "an operand is not on the tile of its output");
    }
    return true;
}

/* The same boxes as coefficients, on the same tiles. */
static bool check_pack(struct check *c, const struct program_op *op,
                       const struct program_value *o, const struct program_value *x) {
    struct program_layout want = x->layout;
    want.order = PROGRAM_COEFF;
    want.memory = o->layout.memory;
    if (x->layout.order != PROGRAM_AMP_BATCHED || x->layout.format != PROGRAM_F16 ||
        o->batch != x->batch || o->rows != x->rows || o->cols != x->cols ||
        x->layout.count[PROGRAM_WINDOW] * x->layout.count[PROGRAM_PARTIAL] != 1 ||
        memcmp(&want, &o->layout, sizeof want) != 0)
        return bad_op(c, op, "input and output differ in more than amp_batched and coeff");
    return true;
}

/* Equal parts of batch and rows on the same tiles. */
static bool check_merge(struct check *c, const struct program_op *op,
                        const struct program_value *o) {
    const bool last = o->layout.format == PROGRAM_F16;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const struct program_value *x = &c->p->values[op->inputs[i]];
        if (!same_axis(o, 0, x, 0) || o->batch != x->batch || o->rows != x->rows ||
            o->layout.base != x->layout.base || x->layout.count[PROGRAM_COLS] != 1 ||
            memcmp(o->layout.count, x->layout.count, 2 * sizeof o->layout.count[0]) != 0 ||
            memcmp(o->layout.stride, x->layout.stride, 2 * sizeof o->layout.stride[0]) != 0)
            return bad_op(c, op, "a merge's operands are the same rows on the same tiles");
    }
    const struct program_value *w = &c->p->values[op->inputs[op->n_inputs - 2]];
    if (last ? op->n_inputs != 3 || o->cols + 1 != w->cols
             : o->layout.format != PROGRAM_F32 || o->cols != 4 + align_up_u32(w->cols, 16))
        return bad_op(c, op, "a merge makes a state of 4 + columns floats, or the divided values");
    return true;
}

/* The inputs are the output's row parts, in order. */
static bool check_join(struct check *c, const struct program_op *op,
                       const struct program_value *o) {
    uint32_t part = 0, rows = 0;
    for (uint32_t i = 0; i < op->n_inputs; i++) {
        const struct program_value *x = &c->p->values[op->inputs[i]];
        struct program_layout want = o->layout;
        want.count[PROGRAM_ROWS] = x->layout.count[PROGRAM_ROWS];
        want.wrap = 0;
        if (x->parts == 1) want.stride[PROGRAM_ROWS] = 0;
        if (x->inside != op->output || x->parts != x->layout.count[PROGRAM_ROWS] ||
            x->first_part != part || x->batch != o->batch || x->cols != o->cols ||
            rows != program_part_start(o->rows, o->layout.grain[1], o->layout.count[1], part) ||
            memcmp(&want, &x->layout, sizeof want) != 0)
            return bad_op(c, op, "the inputs of a join are its output's row parts in order");
        part += x->parts;
        rows += x->rows;
    }
    if (part != o->layout.count[PROGRAM_ROWS] || rows != o->rows)
        return bad_op(c, op, "the inputs of a join are all of its output");
    return true;
}

/* Two floats a row for each column part of the input, on the same tiles. */
static bool check_moments(struct check *c, const struct program_op *op,
                          const struct program_value *o, const struct program_value *x) {
    if (o->layout.format != PROGRAM_F32 || o->layout.order != PROGRAM_ROW_MAJOR ||
        o->cols != 2 * x->layout.count[PROGRAM_COLS] || o->rows != x->rows || o->batch != x->batch ||
        o->layout.base != x->layout.base ||
        memcmp(o->layout.count, x->layout.count, sizeof o->layout.count) != 0 ||
        memcmp(o->layout.stride, x->layout.stride, sizeof o->layout.stride) != 0)
        return bad_op(c, op, "moments are two columns for each column part of the input");
    return true;
}

static bool check_kernel(struct check *c, const struct program_op *op) {
    const struct program_value *o = &c->p->values[op->output];
    if (op->kernel == PROGRAM_KERNEL_ONES) {
        if (op->n_inputs || o->batch * o->rows != 1 || o->cols != 32 ||
            o->layout.order != PROGRAM_AMP_LEFT ||
            (o->layout.format != PROGRAM_F16 && o->layout.format != PROGRAM_F8_F143))
            return bad_op(c, op, "ones are one row of 32 columns, F16 or F143");
        return true;
    }
    if (op->n_inputs < 1) return bad_op(c, op, "a kernel needs an input");
    const struct program_value *x = &c->p->values[op->inputs[0]];
    if (op->kernel == PROGRAM_KERNEL_EXPONENTIAL) { /* the result may be F8 */
        struct program_value same = *x;
        same.layout.format = o->layout.format;
        return check_same_place(c, op, o, &same);
    }
    if (op->kernel == PROGRAM_KERNEL_NORMALISE) return check_normalise(c, op, o, x);
    if (op->kernel == PROGRAM_KERNEL_ROW_MAX) return check_row_max(c, op, o, x);
    if (op->kernel == PROGRAM_KERNEL_PACK) return check_pack(c, op, o, x);
    if (op->kernel == PROGRAM_KERNEL_GATHER) return check_gather(c, op, o, x);
    if (op->kernel == PROGRAM_KERNEL_ADD || op->kernel == PROGRAM_KERNEL_MUL)
        if (op->n_inputs != 2 || !check_same_place(c, op, o, &c->p->values[op->inputs[1]]))
            return bad_op(c, op, "two inputs in the layout of the output");
    if (op->kernel == PROGRAM_KERNEL_MERGE) return check_merge(c, op, o);
    if (op->kernel == PROGRAM_KERNEL_JOIN) return check_join(c, op, o);
    if (op->kernel == PROGRAM_KERNEL_MOMENTS) return check_moments(c, op, o, x);
    if (op->kernel == PROGRAM_KERNEL_KEEP &&
        (o->layout.order != PROGRAM_AMP_BATCHED || o->layout.format != PROGRAM_F16 ||
         o->layout.count[PROGRAM_COLS] != 1 || !(op->real >= 1 && op->real <= (float)o->cols)))
        return bad_op(c, op, "kept columns are of whole rows in F16 panels");
    return check_same_place(c, op, o, x);
}

static bool check_cast(struct check *c, const struct program_op *op) {
    const struct program_value *o = &c->p->values[op->output];
    if (op->n_inputs != 1) return bad_op(c, op, "a cast has one input");
    const struct program_value *x = &c->p->values[op->inputs[0]];
    if (o->batch != x->batch || o->rows != x->rows || o->cols != x->cols)
        return bad_op(c, op, "output and input of a cast differ in shape");
    if (!boxes_or_whole(o) || !boxes_or_whole(x) || program_n_shards(o) != program_n_shards(x))
        return bad_op(c, op, "a cast's operands are equal boxes");
    for (uint32_t i = 0; i < program_n_shards(o); i++) {
        struct program_shard a, b;
        program_shard_at(o, i, &a);
        program_shard_at(x, i, &b);
        if (a.tile != b.tile || memcmp(a.start, b.start, sizeof a.start) != 0 ||
            memcmp(a.extent, b.extent, sizeof a.extent) != 0)
            return bad_op(c, op, "a cast's operands are equal boxes on the same tiles");
    }
    return true;
}

/* The digits cover the destination, and no number leaves the source. */
static bool check_view(struct check *c, const struct program_op *op) {
    const struct program_view *w = &op->view;
    const struct program_value *o = &c->p->values[op->output], *x = &c->p->values[op->inputs[0]];
    const uint64_t to = (uint64_t)o->batch * o->rows * o->cols;
    const uint64_t from = (uint64_t)x->batch * x->rows * x->cols;
    if (w->n > PROGRAM_VIEW_DIGITS) return bad_op(c, op, "a view has too many digits");
    if (w->cut_end && (w->cut >= w->n || w->cut_from >= w->cut_end ||
                       w->cut_end > w->extent[w->cut]))
        return bad_op(c, op, "the cut of a view is not a range of one of its digits");
    uint64_t all = 1, last = w->offset;
    for (uint32_t i = 0; i < w->n; i++) {
        if (w->extent[i] == 0 || all > to) return bad_op(c, op, "the digits of a view are too many");
        all *= w->extent[i];
        const bool cut = w->cut_end && i == w->cut;
        last += (uint64_t)((cut ? w->cut_end - w->cut_from : w->extent[i]) - 1) * w->step[i];
    }
    if (all != to) return bad_op(c, op, "the digits of a view are not its destination's elements");
    if (last >= from) return bad_op(c, op, "a view leaves its source");
    return true;
}

static bool check_copy(struct check *c, const struct program_op *op) {
    if (op->n_inputs != 1 && op->n_inputs != 2) return bad_op(c, op, "a copy has one input or two");
    const struct program_value *o = &c->p->values[op->output], *x = &c->p->values[op->inputs[0]];
    if (o->layout.count[PROGRAM_PARTIAL] != 1 || x->layout.count[PROGRAM_PARTIAL] != 1)
        return bad_op(c, op, "partials are not copied");
    for (uint32_t a = 0; a < 3; a++)
        if (op->map.inner[a] == 0) return bad_op(c, op, "an inner extent of the map is 0");
    if (op->view.n && op->n_inputs != 1) return bad_op(c, op, "a view takes no filler");
    if (op->view.n) return check_view(c, op);
    return true;
}

static bool check_op(struct check *c, const struct program_op *op) {
    if (op->output >= c->p->n_values || op->n_inputs > PROGRAM_MAX_INPUTS)
        return bad_op(c, op, "operands out of range");
    for (uint32_t i = 0; i < op->n_inputs; i++)
        if (op->inputs[i] >= c->p->n_values || !c->defined[op->inputs[i]])
            return bad_op(c, op, "an input is not defined before its use");
    const bool more = op->kind == PROGRAM_COPY && op->more;
    if (more && !c->defined[op->output]) return bad_op(c, op, "no copy began its output");
    if (!more && c->defined[op->output]) return bad_op(c, op, "its output is defined twice");
    c->defined[op->output] = true;
    if (op->kind == PROGRAM_COPY) return check_copy(c, op);
    switch (op->compute) {
    case PROGRAM_PRODUCT:
        return check_product(c, op);
    case PROGRAM_SUM:
        return check_sum(c, op);
    case PROGRAM_KERNEL:
        return check_kernel(c, op);
    default:
        return check_cast(c, op);
    }
}

static bool check_repeat(struct check *c, const struct program_op *op) {
    if (op->repeat >= c->p->n_repeats) return bad_op(c, op, "no such repeat");
    const struct program_repeat *r = &c->p->repeats[op->repeat];
    if (r->count == 0) return bad_op(c, op, "count is 0");
    for (uint32_t i = 0; i < r->n_carried; i++) {
        if (!c->defined[r->carried[i].initial])
            return bad_op(c, op, "an initial value is not defined");
        c->defined[r->carried[i].argument] = true;
    }
    for (uint32_t i = 0; i < r->n_iterated; i++) {
        if (c->p->values[r->iterated[i].sequence].sequence < r->count)
            return bad_op(c, op, "a sequence has too few blocks");
        c->defined[r->iterated[i].argument] = true;
    }
    for (uint32_t i = 0; i < r->n_ops; i++) {
        if (c->p->ops[r->ops[i]].kind == PROGRAM_REPEAT)
            return bad_op(c, op, "repeats do not nest");
        if (!check_op(c, &c->p->ops[r->ops[i]])) return false;
    }
    for (uint32_t i = 0; i < r->n_carried; i++) {
        const struct program_value *a = &c->p->values[r->carried[i].argument];
        const struct program_value *y = &c->p->values[r->carried[i].yield];
        if (!c->defined[r->carried[i].yield] ||
            memcmp(&a->layout, &y->layout, sizeof a->layout) != 0)
            return bad_op(c, op, "a yield is undefined or differs in layout from its argument");
    }
    return true;
}

static bool check_result(struct check *c, const struct program_result *r) {
    if (r->value >= c->p->n_values) {
        diag_set(c->error, PROGRAM_VALUE, r->tensor.name, "a value that does not exist holds it");
        return false;
    }
    const struct program_value *v = &c->p->values[r->value];
    const uint32_t extent[3] = {v->batch, v->rows, v->cols};
    uint64_t elements = 1, last = r->tensor.offset;
    for (uint32_t i = 0; i < r->tensor.n_dims; i++) elements *= r->tensor.shape[i];
    for (uint32_t a = 0; a < 3; a++) last += (uint64_t)(extent[a] - 1) * r->tensor.step[a];
    if (!c->defined[r->value]) return bad_value(c, v, "a result that nothing defines");
    if (v->layout.count[PROGRAM_PARTIAL] > 1) return bad_value(c, v, "a result in partials");
    return last < elements || bad_value(c, v, "a result that leaves its tensor");
}

bool program_verify(const struct program *p, GError **error) {
    struct arena *scratch = arena_new();
    struct check c = {p, arena_new_array(scratch, bool, p->n_values + 1), error};
    bool ok = check_values(&c);
    for (uint32_t i = 0; ok && i < p->n_main; i++) {
        const struct program_op *op = &p->ops[p->main[i]];
        ok = op->kind == PROGRAM_REPEAT ? check_repeat(&c, op) : check_op(&c, op);
    }
    for (uint32_t i = 0; ok && i < p->n_values; i++)
        if (p->values[i].role == PROGRAM_OUTPUT && !c.defined[i])
            ok = bad_value(&c, &p->values[i], "an output that nothing defines");
    for (uint32_t i = 0; ok && i < p->n_results; i++) ok = check_result(&c, &p->results[i]);
    arena_free(scratch);
    return ok;
}
