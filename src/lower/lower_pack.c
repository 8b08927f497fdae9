/* Runs of halves that do not lie on words. The exchange moves words, so each tile receives the
 * words around what it wants in a staging buffer (stretches of one source shard that touch or
 * nearly touch are joined), or reads them where they are if it owns the source; behind the phase
 * calls of COPY_U16 move the halves to their places. Runs at equal distances become one call; of the
 * two orders, by destination and by source, the one with the cheaper calls is taken.
 *
 * The destination is cleared first, because a word that a call writes by half must hold something;
 * a copy that adds to another's output finds it so. */
#include "lower/lower_internal.h"

#include <stdlib.h>

struct segment {
    uint32_t shard, from, end; /* bytes of the source shard, whole words */
    uint32_t at;               /* in the staging buffer */
};
struct piece { /* a run with its source on one tile */
    struct tg_ref from;
    uint32_t to, bytes;
};
struct pack {
    struct lower *l;
    const struct program_op *op;
    uint32_t d_shard, n;
    const struct lower_run *runs;
    uint32_t *segment_of; /* by run */
    GArray *segments;
    uint32_t bytes; /* of the staging buffer */
};

static int by_source(const void *a, const void *b, void *user) {
    const struct lower_run *runs = user;
    const struct lower_run *x = &runs[*(const uint32_t *)a], *y = &runs[*(const uint32_t *)b];
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

static void find_segments(struct pack *p) {
    enum { GAP_BYTES = 16 };
    uint32_t *order = g_new(uint32_t, p->n);
    for (uint32_t i = 0; i < p->n; i++) order[i] = i;
    g_qsort_with_data(order, (gint)p->n, sizeof *order, by_source, (void *)p->runs);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct lower_run *r = &p->runs[order[i]];
        const uint32_t from = r->from & ~3u, end = align_up_u32(r->from + r->bytes, 4);
        struct segment *last =
            p->segments->len ? &g_array_index(p->segments, struct segment, p->segments->len - 1)
                             : NULL;
        if (last && last->shard == r->shard && from <= last->end + GAP_BYTES) {
            last->end = MAX(last->end, end);
        } else {
            const struct segment s = {r->shard, from, end, 0};
            g_array_append_val(p->segments, s);
        }
        p->segment_of[order[i]] = p->segments->len - 1;
    }
    for (uint32_t i = 0; i < p->segments->len; i++) {
        struct segment *s = &g_array_index(p->segments, struct segment, i);
        s->at = p->bytes;
        p->bytes += s->end - s->from;
    }
    g_free(order);
}

static bool is_near(const struct pack *p, uint32_t shard, uint32_t tile) {
    return lower_source_near(p->l, p->op->inputs[0], shard, tile) != TG_NONE;
}

/* The staging buffer of a replica, TG_NONE if its tile owns all sources. */
static uint32_t add_staging(const struct pack *p, uint32_t tile) {
    bool remote = false;
    for (uint32_t i = 0; i < p->segments->len; i++)
        remote = remote || !is_near(p, g_array_index(p->segments, struct segment, i).shard, tile);
    if (!remote) return TG_NONE;
    struct lower *l = p->l;
    const struct tg_alloc_row row = {.tile = (uint16_t)tile,
                                     .bytes = align_up_u32(p->bytes, 8),
                                     .align = 8,
                                     .alias = TG_NONE,
                                     .blocks = 1,
                                     .value = tg_name(&l->b, "staging")};
    return tg_alloc_add(&l->b, &row);
}

static void send_segments(const struct pack *p, const uint32_t *staging, uint32_t n) {
    struct lower *l = p->l;
    const uint32_t source = p->op->inputs[0];
    const uint32_t n_s = lower_value(l, source)->layout.count[PROGRAM_REPLICA];
    struct tg_ref *to = g_new(struct tg_ref, n);
    for (uint32_t i = 0; i < p->segments->len; i++) {
        const struct segment *s = &g_array_index(p->segments, struct segment, i);
        uint32_t n_to = 0;
        for (uint32_t k = 0; k < n; k++)
            if (staging[k] != TG_NONE && !is_near(p, s->shard, lower_tile_of(l, staging[k])))
                to[n_to++] = (struct tg_ref){staging[k], s->at};
        if (n_to == 0) continue;
        const uint32_t chosen = p->d_shard / n % n_s;
        const struct tg_ref from = {l->alloc_of[source][s->shard + chosen], s->from};
        lower_send(l, from, s->end - s->from, to, n_to);
    }
    g_free(to);
}

static int by_to(const void *a, const void *b) {
    const struct piece *x = a, *y = b;
    return x->to < y->to ? -1 : x->to > y->to;
}

static int by_from(const void *a, const void *b) {
    const struct piece *x = a, *y = b;
    if (x->from.alloc != y->from.alloc) return x->from.alloc < y->from.alloc ? -1 : 1;
    if (x->from.offset != y->from.offset) return x->from.offset < y->from.offset ? -1 : 1;
    return by_to(a, b);
}

static bool steps(const struct piece *a, const struct piece *b, uint32_t in, uint32_t out) {
    return b->from.alloc == a->from.alloc && b->bytes == a->bytes &&
           b->from.offset == a->from.offset + in && b->to == a->to + out;
}

/* Calls for pieces[0..n) in this order, appended to `calls`; returns their cycles. */
static uint64_t group(const struct pack *p, uint32_t d_alloc, const struct piece *pieces,
                      GArray *calls) {
    enum { MOST_ROWS = 4096 };
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < p->n;) {
        const struct piece *a = &pieces[i];
        uint32_t n = 1, in = 0, out = 0;
        if (i + 1 < p->n && a[1].to >= a->to && a[1].from.offset >= a->from.offset) {
            in = a[1].from.offset - a->from.offset;
            out = a[1].to - a->to;
            while (i + n < p->n && n < MOST_ROWS && steps(&a[n - 1], &a[n], in, out)) n++;
        }
        const struct lower_move m = {
            lower_tile_of(p->l, d_alloc),
            {KERNEL_COPY_U16, {n, a->bytes / 2, n > 1 ? out : 0, n > 1 ? in : 0}},
            {d_alloc, a->to},
            a->from};
        g_array_append_val(calls, m);
        cycles += kernel_cycles(&m.spec);
        i += n;
    }
    return cycles;
}

static void add_calls(const struct pack *p, uint32_t d_alloc, uint32_t staging) {
    struct lower *l = p->l;
    const uint32_t source = p->op->inputs[0], tile = lower_tile_of(l, d_alloc);
    struct piece *pieces = g_new(struct piece, p->n);
    for (uint32_t i = 0; i < p->n; i++) {
        const struct lower_run *r = &p->runs[i];
        const struct segment *s = &g_array_index(p->segments, struct segment, p->segment_of[i]);
        const uint32_t near = lower_source_near(l, source, r->shard, tile);
        const struct tg_ref own = {near == TG_NONE ? 0 : l->alloc_of[source][r->shard + near],
                                   r->from};
        const struct tg_ref staged = {staging, s->at + r->from - s->from};
        pieces[i] = (struct piece){near == TG_NONE ? staged : own, r->to, r->bytes};
    }
    GArray *calls[2];
    uint64_t cycles[2];
    for (uint32_t k = 0; k < 2; k++) {
        calls[k] = g_array_new(FALSE, FALSE, sizeof(struct lower_move));
        qsort(pieces, p->n, sizeof *pieces, k ? by_from : by_to);
        cycles[k] = group(p, d_alloc, pieces, calls[k]);
    }
    const GArray *best = calls[cycles[1] < cycles[0]];
    g_array_append_vals(l->after, best->data, best->len);
    for (uint32_t k = 0; k < 2; k++) g_array_free(calls[k], TRUE);
    g_free(pieces);
}

bool lower_pack_runs(struct lower *l, const struct program_op *op, uint32_t d_shard,
                     const struct lower_run *runs, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if ((runs[i].from | runs[i].to | runs[i].bytes) % 2 == 0) continue;
        diag_set(l->error, LOWER_NEEDS_PACKER, op->operation, runs[i].bytes);
        return false;
    }
    struct pack p = {.l = l,
                     .op = op,
                     .d_shard = d_shard,
                     .n = n,
                     .runs = runs,
                     .segment_of = g_new(uint32_t, n),
                     .segments = g_array_new(FALSE, FALSE, sizeof(struct segment))};
    find_segments(&p);
    const uint32_t n_d = lower_value(l, op->output)->layout.count[PROGRAM_REPLICA];
    uint32_t *staging = g_new(uint32_t, n_d);
    for (uint32_t i = 0; i < n_d; i++) {
        const uint32_t alloc = l->alloc_of[op->output][d_shard + i];
        staging[i] = add_staging(&p, lower_tile_of(l, alloc));
        if (op->more) continue;
        struct program_shard s;
        program_shard_at(lower_value(l, op->output), d_shard + i, &s);
        const struct lower_span all = {lower_tile_of(l, alloc), s.bytes, {alloc, 0}, {0, 0}};
        g_array_append_val(l->clear, all);
    }
    send_segments(&p, staging, n_d);
    for (uint32_t i = 0; i < n_d; i++)
        add_calls(&p, l->alloc_of[op->output][d_shard + i], staging[i]);
    g_array_free(p.segments, TRUE);
    g_free(p.segment_of);
    g_free(staging);
    return true;
}
