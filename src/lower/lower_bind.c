/* Bindings: how a host tensor lies in the allocations of its shards. The storage of a part is a
 * nest of digits (program_digits). A window of it is cut into full sub-nests: a ragged head, whole
 * blocks, a ragged tail at each level. Each piece is then clipped at the part's logical end, axis
 * by axis: what lies beyond is padding and has no slice. */
#include "lower/lower_internal.h"

#include <string.h>

struct piece {
    struct program_digit digit[PROGRAM_MAX_DIGITS];
    uint32_t n;
    uint32_t at[3];  /* coordinate of its first element in the part */
    uint32_t offset; /* byte in the part's storage */
};

struct bind {
    struct lower *l;
    const struct program_value *v;
    const struct program_tensor *t;
    uint32_t step; /* of the slices */
    struct program_shard s;
    struct program_digit nest[PROGRAM_MAX_DIGITS];
    uint32_t n_nest, alloc, block, covered; /* covered: elements of the shard with a slice */
};

static void add_slice(struct bind *b, const struct piece *p) {
    const struct program_tensor *t = b->t;
    struct tg_slice s = {.alloc = b->alloc,
                         .step = b->step,
                         .block = b->block,
                         .mem_offset = p->offset - b->s.window,
                         .tensor_offset = t->offset + b->block * b->v->step_sequence};
    for (uint32_t a = 0; a < 3; a++)
        s.tensor_offset += (uint64_t)(b->s.start[a] + p->at[a]) * t->step[a];
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->digit[i].extent == 1) continue;
        s.count[s.n_dims] = p->digit[i].extent;
        s.tensor_step[s.n_dims] = p->digit[i].step * t->step[p->digit[i].axis];
        s.mem_step[s.n_dims++] = p->digit[i].stride;
    }
    if (s.n_dims == 0) {
        s.count[0] = 1;
        s.tensor_step[0] = 1;
        s.mem_step[0] = program_format_bytes(b->v->layout.format);
        s.n_dims = 1;
    }
    uint32_t elements = 1;
    for (uint32_t i = 0; i < s.n_dims; i++) elements *= s.count[i];
    b->covered += elements;
    g_array_append_val(b->l->b.slices, s);
}

/* Clips axis a of the piece, then the next ones. An axis has at most two digits: the outer one
 * steps by the inner one's extent. */
static void clip(struct bind *b, const struct piece *p, uint32_t a) {
    if (a == 3) {
        add_slice(b, p);
        return;
    }
    const uint32_t limit = b->s.end[a] - b->s.start[a];
    if (p->at[a] >= limit) return;
    const uint32_t left = limit - p->at[a];
    uint32_t outer = p->n, inner = p->n, reach = 1;
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->digit[i].axis != a) continue;
        if (p->digit[i].step > 1) outer = i;
        else inner = i;
        reach += (p->digit[i].extent - 1) * p->digit[i].step;
    }
    if (reach <= left) {
        clip(b, p, a + 1);
        return;
    }
    struct piece q = *p;
    if (outer == p->n) { /* only the inner digit */
        q.digit[inner].extent = left;
        clip(b, &q, a + 1);
        return;
    }
    const uint32_t step = p->digit[outer].step;
    const uint32_t width = inner < p->n ? p->digit[inner].extent : 1;
    const uint32_t whole = left >= width ? (left - width) / step + 1 : 0;
    if (whole > 0) {
        q.digit[outer].extent = MIN(whole, p->digit[outer].extent);
        clip(b, &q, a + 1);
    }
    if (whole >= p->digit[outer].extent || whole * step >= left || inner == p->n) return;
    q = *p;
    q.at[a] += whole * step;
    q.offset += whole * p->digit[outer].stride;
    q.digit[outer].extent = 1;
    q.digit[inner].extent = MIN(width, left - whole * step);
    clip(b, &q, a + 1);
}

/* Bytes [from, to) of the sub-nest of digits level.., which begins at `base`. */
static void cut(struct bind *b, uint32_t level, const struct piece *base, uint32_t from,
                uint32_t to) {
    if (from >= to) return;
    const struct program_digit *d = &b->nest[level];
    const uint32_t first = ceil_div_u32(from, d->stride), last = to / d->stride;
    if (first > last) { /* inside one block */
        struct piece p = *base;
        p.at[d->axis] += last * d->step;
        p.offset += last * d->stride;
        cut(b, level + 1, &p, from - last * d->stride, to - last * d->stride);
        return;
    }
    if (from < first * d->stride) {
        struct piece p = *base;
        p.at[d->axis] += (first - 1) * d->step;
        p.offset += (first - 1) * d->stride;
        cut(b, level + 1, &p, from - (first - 1) * d->stride, d->stride);
    }
    if (last > first) {
        struct piece p = *base;
        p.n = b->n_nest - level;
        memcpy(p.digit, d, p.n * sizeof *d);
        p.digit[0].extent = last - first;
        p.at[d->axis] += first * d->step;
        p.offset += first * d->stride;
        clip(b, &p, 0);
    }
    if (to > last * d->stride) {
        struct piece p = *base;
        p.at[d->axis] += last * d->step;
        p.offset += last * d->stride;
        cut(b, level + 1, &p, 0, to - last * d->stride);
    }
}

/* Slices of one value that holds (part of) tensor t. */
static void bind_shards(struct lower *l, uint32_t v, const struct program_tensor *t, bool result) {
    const struct program_value *x = lower_value(l, v);
    struct bind b = {.l = l, .v = x, .t = t, .step = result ? l->made_step[v] : 0};
    const uint32_t n = program_n_shards(x), blocks = x->sequence ? x->sequence : 1;
    for (uint32_t i = 0; i < n; i++) {
        program_shard_at(x, i, &b.s);
        b.n_nest = program_digits(&x->layout, &b.s, b.nest);
        b.alloc = l->alloc_of[v][i];
        for (b.block = 0; b.block < blocks; b.block++) {
            const struct piece whole = {0};
            b.covered = 0;
            cut(&b, 0, &whole, b.s.window, b.s.window + b.s.bytes);
        }
        struct tg_alloc_row *row = &g_array_index(l->b.allocs, struct tg_alloc_row, b.alloc);
        const uint32_t bytes = program_format_bytes(x->layout.format);
        if (b.covered * bytes < b.s.bytes && x->role != PROGRAM_OUTPUT && !result)
            row->flags |= TG_ZEROED;
    }
}

static bool same_tensor(const struct program_value *a, const struct program_value *b) {
    return a->role == b->role && a->layout.format == b->layout.format &&
           a->layout.exponent == b->layout.exponent && strcmp(a->tensor.name, b->tensor.name) == 0;
}

static struct tg_binding binding_of(const struct lower *l, const struct program_value *v,
                                    const struct program_tensor *tensor, uint8_t kind) {
    struct tg_binding t = {.name = tensor->name,
                           .kind = kind,
                           .format = v->layout.format,
                           .scale = v->layout.exponent,
                           .n_dims = tensor->n_dims,
                           .first_slice = l->b.slices->len};
    memcpy(t.shape, tensor->shape, sizeof t.shape);
    return t;
}

/* One binding for all values that hold (parts of) a tensor in one format. */
static void bind_tensor(struct lower *l, uint32_t v) {
    static const uint8_t KINDS[] = {[PROGRAM_INPUT] = TG_BIND_INPUT,
                                    [PROGRAM_PARAMETER] = TG_BIND_PARAMETER,
                                    [PROGRAM_OUTPUT] = TG_BIND_OUTPUT};
    const struct program_value *x = lower_value(l, v);
    struct tg_binding t = binding_of(l, x, &x->tensor, KINDS[x->role]);
    for (uint32_t w = v; w < l->p->n_values; w++) {
        const struct program_value *y = lower_value(l, w);
        if (y->role == PROGRAM_LOCAL || !same_tensor(x, y)) continue;
        bind_shards(l, w, &y->tensor, false);
        /* Indices into several tables are held to the smallest. */
        if (y->tensor.bound != 0 && (t.bound == 0 || y->tensor.bound < t.bound))
            t.bound = y->tensor.bound;
    }
    t.end_slice = l->b.slices->len;
    g_array_append_val(l->b.bindings, t);
}

static bool same_result(const struct lower *l, const struct program_result *a,
                        const struct program_result *b) {
    const struct program_layout *x = &lower_value(l, a->value)->layout;
    const struct program_layout *y = &lower_value(l, b->value)->layout;
    return strcmp(a->tensor.name, b->tensor.name) == 0 && x->format == y->format &&
           x->exponent == y->exponent;
}

/* As the tensors of the host: all parts of a result together. */
static void bind_results(struct lower *l) {
    const struct program_result *r = l->p->results;
    for (uint32_t i = 0; i < l->p->n_results; i++) {
        bool first = true;
        for (uint32_t k = 0; first && k < i; k++) first = !same_result(l, &r[i], &r[k]);
        if (!first) continue;
        struct tg_binding t =
            binding_of(l, lower_value(l, r[i].value), &r[i].tensor, TG_BIND_RESULT);
        for (uint32_t k = i; k < l->p->n_results; k++)
            if (same_result(l, &r[i], &r[k])) bind_shards(l, r[k].value, &r[k].tensor, true);
        t.end_slice = l->b.slices->len;
        g_array_append_val(l->b.bindings, t);
    }
}

bool lower_bind(struct lower *l) {
    for (uint32_t v = 0; v < l->p->n_values; v++) {
        if (lower_value(l, v)->role == PROGRAM_LOCAL) continue;
        bool first = true;
        for (uint32_t w = 0; first && w < v; w++)
            first = lower_value(l, w)->role == PROGRAM_LOCAL ||
                    !same_tensor(lower_value(l, w), lower_value(l, v));
        if (first) bind_tensor(l, v);
    }
    if (l->options.results) bind_results(l);
    return true;
}
