/* Lower bounds of the horizon that hold for every admissible schedule, and why (exchange 9, 17.6).
 *
 * w(x) = words/2 if transfer x is pairable, else words: no schedule gives a message fewer items at
 * a receiver or on the lanes of its sender's pair. S_min is the smallest first slot that keeps
 * every source label at least 1, in the width that allows the smaller one. receiver  min over its
 * messages of max(0, S_min + ttm) + sum of w + 58 + 2R: arrivals are disjoint. sender    nothing
 * pairable: smallest start + words + smallest tail. lanes     two tiles of a pair together: (words
 * of both)/2 between the first start and the last tail. controls  strict, nothing pairable at the
 * tile: each receive needs a MUX label of its own and labels S, S+1 of a send hold none: receives +
 * sum over its sends of min(n, 2). elements  a tile's sends from an element and receives into it
 * are serial. Parts of a transfer have its recipients, start and tail, so all of these also hold
 * when it is split. */
#include "exchange/exch_int.h"

struct tile_bound {
    uint64_t in_items, out_words;
    uint32_t first_in; /* min of max(0, S_min + ttm) */
    uint32_t n_in, n_out, control_out, longest;
    bool pairable_in, pairable_out;
    uint32_t start, tail; /* smallest of its messages */
    uint32_t out_elem, in_elem;
    uint64_t elem_items[TARGET_N_ELEMENTS];
};

struct bounder {
    const struct exch_problem *p;
    const struct exch_route *route;
    struct tile_bound *tile;
    bool any_width;
};

struct shape {
    int32_t least_ttm, least_pair; /* over receivers, of ttm and of the pair's larger ttm */
    uint32_t tail;                 /* max of ttm + 58 + 2R, at least 0 */
};

static struct shape shape_of(const struct bounder *b, uint32_t x) {
    const struct exch_problem *p = b->p;
    const uint32_t s = p->source_tile[x];
    struct shape k = {INT32_MAX, INT32_MAX, 0};
    for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++) {
        const uint32_t d = p->recipient_tile[r];
        const int32_t t = b->route->ttm[s][d], other = b->route->ttm[s][d ^ 1];
        k.least_ttm = MIN(k.least_ttm, t);
        k.least_pair = MIN(k.least_pair, MAX(t, other));
        const int32_t tail =
            t + TARGET_EXCH_PTR_DELAY + TARGET_EXCH_TAIL_GUARD + 1 + 2 * b->route->row[d];
        k.tail = MAX(k.tail, (uint32_t)MAX(tail, 0));
    }
    return k;
}

static void add(struct bounder *b, uint32_t x) {
    const struct exch_problem *p = b->p;
    const bool pairable = b->any_width && exch_pairable(p, x) &&
                          (p->width == NULL || p->width[x] != EXCH_WIDTH_ORDINARY);
    const uint32_t words = p->words[x], items = pairable ? words / 2 : words;
    const struct shape k = shape_of(b, x);
    uint32_t start = (uint32_t)MAX(0, -k.least_ttm);
    if (pairable) start = MIN(start, (uint32_t)MAX(0, 1 - k.least_pair));
    struct tile_bound *s = &b->tile[p->source_tile[x]];
    s->out_words += words;
    s->pairable_out |= pairable;
    s->control_out += MIN(items, 2);
    s->n_out++;
    s->start = MIN(s->start, start);
    s->tail = MIN(s->tail, k.tail);
    const uint32_t read = exch_element_mask(p->source_address[x], 4 * (uint64_t)words);
    s->out_elem |= read;
    for (uint32_t e = read; e != 0; e &= e - 1) s->elem_items[__builtin_ctz(e)] += items;
    for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++) {
        const uint32_t d = p->recipient_tile[r];
        struct tile_bound *t = &b->tile[d];
        const int32_t at = (int32_t)start + b->route->ttm[p->source_tile[x]][d];
        t->first_in = MIN(t->first_in, (uint32_t)MAX(0, at));
        t->in_items += items;
        t->n_in++;
        t->pairable_in |= pairable;
        const uint32_t write = exch_element_mask(p->recipient_address[r], 4 * (uint64_t)words);
        t->in_elem |= write;
        for (uint32_t e = write; e != 0; e &= e - 1) t->elem_items[__builtin_ctz(e)] += items;
    }
}

struct best {
    uint64_t value;
    uint32_t tile;
    const char *reason;
};
static void raise_to(struct best *b, uint64_t value, uint32_t tile, const char *reason) {
    if (value > b->value) *b = (struct best){value, tile, reason};
}

static void bound_tile(const struct bounder *b, uint32_t t, struct best *best) {
    const struct tile_bound *k = &b->tile[t];
    const uint32_t guard = TARGET_EXCH_PTR_DELAY + TARGET_EXCH_TAIL_GUARD + 1;
    if (k->n_in > 0)
        raise_to(best, k->first_in + k->in_items + guard + 2u * b->route->row[t], t,
                 "words received by a tile");
    if (k->n_out > 0 && !k->pairable_out)
        raise_to(best, k->out_words + k->start + k->tail, t, "words sent by a tile");
    if (!k->pairable_in && !k->pairable_out)
        raise_to(best, (uint64_t)k->n_in + k->control_out, t, "controls of a tile");
    for (uint32_t e = k->out_elem & k->in_elem; e != 0; e &= e - 1)
        raise_to(best, k->elem_items[__builtin_ctz(e)], t, "sends and receives of one element");
    if (t % 2 != 0) return;
    const struct tile_bound *o = k + 1;
    if (k->n_out + o->n_out > 0)
        raise_to(best,
                 MIN(k->start, o->start) + ceil_div_u64(k->out_words + o->out_words, 2) +
                     MIN(k->tail, o->tail),
                 t, "words sent on the lanes of a pair");
}

static struct best bound(const struct exch_problem *p, bool any_width) {
    struct bounder b = {p, exch_route(), g_new0(struct tile_bound, TARGET_N_TILES), any_width};
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        struct tile_bound *k = &b.tile[t];
        k->first_in = k->start = k->tail = UINT32_MAX / 4;
    }
    for (uint32_t x = 0; x < p->n_transfers; x++) add(&b, x);
    struct best best = {0, 0, "nothing to do"};
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) bound_tile(&b, t, &best);
    g_free(b.tile);
    return best;
}

void exch_bounds(const struct exch_problem *p, struct exch_bounds *ret) {
    const struct best any = bound(p, true), ordinary = bound(p, false);
    *ret = (struct exch_bounds){.any_width = (uint32_t)any.value,
                                .ordinary = (uint32_t)ordinary.value,
                                .tile = (uint16_t)any.tile,
                                .reason = any.reason};
}
