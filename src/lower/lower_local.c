/* Copies inside tiles. Spans of one length at equal distances become rows of one strided copy, and
 * such copies at equal distances become its outer loop: a launch costs more than most spans do.
 *
 * Spans of a tile come in the order of their destinations. Greedy, one look at each span. */
#include "lower/lower_internal.h"

/* outer x rows runs. */
struct nest {
    struct lower_span first;
    uint32_t rows, in_row, out_row, outer, in_outer, out_outer;
};
enum { MOST_STRIDED_BYTES = 127 * 8, MOST_ROWS = 8191, MOST_OUTER = 1 << 16 };

/* Distance from a to b in an allocation pair, if it is forward in both. */
static bool distance(const struct lower_span *a, const struct lower_span *b, uint32_t *ret_in,
                     uint32_t *ret_out) {
    if (a->tile != b->tile || a->bytes != b->bytes || a->from.alloc != b->from.alloc ||
        a->to.alloc != b->to.alloc || b->from.offset < a->from.offset ||
        b->to.offset < a->to.offset || a->bytes > MOST_STRIDED_BYTES)
        return false;
    *ret_in = b->from.offset - a->from.offset;
    *ret_out = b->to.offset - a->to.offset;
    return *ret_in % 8 == 0 && *ret_out % 8 == 0;
}

static bool add_row(struct nest *n, const struct lower_span *s) {
    uint32_t in, out;
    if (n->outer != 1 || n->rows == MOST_ROWS || !distance(&n->first, s, &in, &out)) return false;
    if (n->rows == 1) {
        n->in_row = in;
        n->out_row = out;
    } else if (in != n->rows * n->in_row || out != n->rows * n->out_row) {
        return false;
    }
    n->rows++;
    return true;
}

static bool add_outer(struct nest *n, const struct nest *x) {
    uint32_t in, out;
    if (n->outer == MOST_OUTER || n->rows != x->rows || n->in_row != x->in_row ||
        n->out_row != x->out_row || !distance(&n->first, &x->first, &in, &out))
        return false;
    if (n->outer == 1) {
        n->in_outer = in;
        n->out_outer = out;
    } else if (in != n->outer * n->in_outer || out != n->outer * n->out_outer) {
        return false;
    }
    n->outer++;
    return true;
}

static bool emit(struct lower *l, const struct nest *n) {
    enum { FEW_RUNS = 2 }; /* a strided call takes as long as three plain ones */
    const struct lower_span *s = &n->first;
    struct kernel_spec spec = {
        KERNEL_COPY_STRIDED,
        {n->rows, s->bytes, n->in_row, n->out_row, n->outer, n->in_outer, n->out_outer}};
    struct tg_ref operands[] = {s->to, s->from};
    if (n->rows * n->outer > FEW_RUNS) return tg_call(&l->b, s->tile, &spec, operands, l->error);
    spec = (struct kernel_spec){KERNEL_COPY_U64, {s->bytes}};
    for (uint32_t i = 0; i < n->rows * n->outer; i++) {
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
        operands[0].offset += n->rows > 1 ? n->out_row : n->out_outer;
        operands[1].offset += n->rows > 1 ? n->in_row : n->in_outer;
    }
    return true;
}

/* Spans by tile, each tile's in their order. */
static uint32_t *order_by_tile(const struct lower *l) {
    const uint32_t n = l->local->len;
    uint32_t *next = g_new0(uint32_t, l->p->n_tiles + 1), *order = g_new(uint32_t, n + 1);
    for (uint32_t i = 0; i < n; i++) next[g_array_index(l->local, struct lower_span, i).tile + 1]++;
    for (uint32_t t = 0; t < l->p->n_tiles; t++) next[t + 1] += next[t];
    for (uint32_t i = 0; i < n; i++)
        order[next[g_array_index(l->local, struct lower_span, i).tile]++] = i;
    g_free(next);
    return order;
}

bool lower_local_copies(struct lower *l) {
    GArray *nests = g_array_new(FALSE, FALSE, sizeof(struct nest));
    uint32_t *order = order_by_tile(l);
    for (uint32_t i = 0; i < l->local->len; i++) {
        const struct lower_span *s = &g_array_index(l->local, struct lower_span, order[i]);
        if (nests->len && add_row(&g_array_index(nests, struct nest, nests->len - 1), s)) continue;
        const struct nest n = {*s, 1, 0, 0, 1, 0, 0};
        g_array_append_val(nests, n);
    }
    bool ok = true;
    for (uint32_t i = 0; ok && i < nests->len;) {
        struct nest n = g_array_index(nests, struct nest, i++);
        while (i < nests->len && add_outer(&n, &g_array_index(nests, struct nest, i))) i++;
        ok = emit(l, &n);
    }
    g_array_set_size(l->local, 0);
    g_array_free(nests, TRUE);
    g_free(order);
    if (ok) tg_close_compute(&l->b, l->phase_operation, tg_name(&l->b, "copy"));
    return ok;
}
