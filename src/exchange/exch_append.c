/* Composer by appending (exchange 12.3, literally): transfers in the given order, each at the first
 * offset at which sender and recipients accept it and all rows encode; receives only behind the
 * last one of a tile.
 *
 * The reference for the time lines: slow, without portfolio or holes, element windows not applied,
 * and with the conventions (guard 6 at 52 words, padding to 6 slots, plain encoder) that the
 * published rows have. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

enum mode { NONE, ORDINARY, PAIRED };

struct tile_state {
    GArray *sends;  /* struct exch_send, ascending */
    GArray *events; /* struct exch_control, ascending */
    uint32_t borrowed, end;
    enum mode mode;
    uint32_t src_end, pay_end, next, format, format_off; /* of the last receive */
};

struct record { /* one recipient at offset 0 */
    struct exch_control event[5];
    uint32_t n_events, src, p, f, tile, address, format, guard;
    bool early;
};

struct appender {
    const struct exch_msgs *m;
    const struct exch_route *route;
    struct tile_state tile[TARGET_N_TILES];
    struct record *rec; /* of the current message */
    uint32_t n_rec, items, s0;
    bool paired;
};

static void add_event(struct record *r, uint32_t label, uint32_t kind, uint32_t value) {
    r->event[r->n_events++] =
        (struct exch_control){.label = label, .kind = (uint8_t)kind, .value = value};
}

static void make_record(struct appender *k, uint32_t i, uint32_t j, struct record *r) {
    const struct exch_msgs *m = k->m;
    const uint32_t n = m->items[i], src = m->src[i];
    *r = (struct record){.tile = m->rec_tile[j],
                         .address = exch_rec_address(m, i, j),
                         .format = m->rec_flag[j] & REC_FORMAT,
                         .early = (m->rec_flag[j] & REC_EARLY) != 0};
    const uint32_t x = k->s0 + (uint32_t)m->rec_x[j], lag = exch_lag(k->route, r->tile);
    if (!k->paired) {
        r->src = x;
        r->p = x + lag;
        add_event(r, x, CTL_MUX, k->route->phys[src]);
        add_event(r, r->p, CTL_PTR, r->address / 4);
        add_event(r, x + n, CTL_MUX, TARGET_EXCH_MUX_NEUTRAL);
        r->guard = n == TARGET_EXCH_PTR_DELAY ? TARGET_EXCH_TAIL_GUARD + 1 : TARGET_EXCH_TAIL_GUARD;
        return;
    }
    r->f = x + lag - 1;
    r->p = r->f + 2;
    r->src = r->early ? x : r->f;
    add_event(r, r->f, CTL_FMT, r->format);
    add_event(r, r->p, CTL_PTR, r->address / 4);
    add_event(r, r->f + n, CTL_FMT, 0);
    if (r->early) {
        add_event(r, x, CTL_PAIR, k->route->phys[src] ^ (k->route->phys[r->tile] & 2));
        add_event(r, x + n, CTL_PAIR, TARGET_EXCH_MUX_NEUTRAL);
    }
    uint32_t last = 0;
    for (uint32_t e = 0; e < r->n_events; e++) last = MAX(last, r->event[e].label);
    r->guard = last + TARGET_EXCH_PAIR_TAIL_GUARD - MAX(r->src + n, r->p + n);
}

static bool keeps_format(const struct appender *k, const struct record *r, uint32_t off) {
    const struct tile_state *t = &k->tile[r->tile];
    return k->paired && t->mode == PAIRED && t->format == r->format && t->format_off == r->f + off;
}

/* The record's events at an offset, without those that neighbours make superfluous. */
static uint32_t new_events(const struct appender *k, const struct record *r, uint32_t off,
                           struct exch_control out[5]) {
    const struct tile_state *t = &k->tile[r->tile];
    const bool keep = keeps_format(k, r, off);
    const bool carry = !k->paired && t->mode == ORDINARY && t->next == r->address;
    uint32_t n = 0;
    for (uint32_t e = 0; e < r->n_events; e++) {
        struct exch_control c = r->event[e];
        if (carry && c.kind == CTL_PTR) continue;
        if (keep && c.kind == CTL_FMT && c.value != 0) continue;
        c.label += off;
        out[n++] = c;
    }
    return n;
}

/* Existing event that the record replaces. */
static bool replaced(const struct appender *k, const struct record *r, uint32_t off,
                     const struct exch_control *old) {
    const struct tile_state *t = &k->tile[r->tile];
    const bool keep = keeps_format(k, r, off);
    if (keep && old->kind == CTL_FMT && old->value == 0 && old->label == t->format_off) return true;
    if (r->src + off != t->src_end || old->label != t->src_end ||
        old->value != TARGET_EXCH_MUX_NEUTRAL)
        return false;
    return (old->kind == CTL_MUX && !k->paired && t->mode == ORDINARY) ||
           (old->kind == CTL_PAIR && k->paired && keep);
}

static const struct record *record_of(const struct appender *k, uint32_t tile) {
    for (uint32_t j = 0; j < k->n_rec; j++)
        if (k->rec[j].tile == tile) return &k->rec[j];
    return NULL;
}

static bool may_share(const struct exch_control *a, const struct exch_control *b) {
    return (a->kind == CTL_PTR && b->kind == CTL_MUX) || (a->kind == CTL_MUX && b->kind == CTL_PTR);
}

static bool sender_fits(const struct appender *k, uint32_t i, uint32_t off) {
    const uint32_t tile = k->m->src[i], s = k->s0 + off, e = s + k->items;
    const struct tile_state *t = &k->tile[tile];
    if (s < t->borrowed) return false;
    for (uint32_t n = 0; n < t->sends->len; n++) {
        const struct exch_send *o = &g_array_index(t->sends, struct exch_send, n);
        if (s < o->slot + o->items && o->slot < e) return false;
    }
    const struct record *self = record_of(k, tile);
    for (uint32_t n = 0; n < t->events->len; n++) {
        const struct exch_control *c = &g_array_index(t->events, struct exch_control, n);
        if (self != NULL && replaced(k, self, off, c)) continue;
        if (c->label == s || c->label == s + 1) return false;
    }
    if (!k->paired) return true;
    const struct tile_state *o = &k->tile[tile ^ 1];
    if (o->borrowed > s) return false;
    for (uint32_t n = 0; n < o->sends->len; n++) {
        const struct exch_send *v = &g_array_index(o->sends, struct exch_send, n);
        if (v->slot + v->items > s) return false;
    }
    return true;
}

static bool events_fit(const struct appender *k, const struct record *r, uint32_t off,
                       uint32_t own_send) {
    const struct tile_state *t = &k->tile[r->tile];
    struct exch_control c[5];
    const uint32_t n = new_events(k, r, off, c);
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < a; b++)
            if (c[a].label == c[b].label && !may_share(&c[a], &c[b])) return false;
        uint32_t there = 0;
        for (uint32_t o = 0; o < t->events->len; o++) {
            const struct exch_control *old = &g_array_index(t->events, struct exch_control, o);
            if (old->label != c[a].label || replaced(k, r, off, old)) continue;
            if (!may_share(old, &c[a]) || ++there > 1) return false;
        }
        for (uint32_t b = 0; b < n; b++) there += b != a && c[b].label == c[a].label;
        if (there > 1) return false;
        if (own_send != UINT32_MAX && (c[a].label == own_send || c[a].label == own_send + 1))
            return false;
        for (uint32_t s = 0; s < t->sends->len; s++) {
            const uint32_t slot = g_array_index(t->sends, struct exch_send, s).slot;
            if (c[a].label == slot || c[a].label == slot + 1) return false;
        }
    }
    return true;
}

static bool fits(const struct appender *k, uint32_t i, uint32_t off) {
    if (!sender_fits(k, i, off)) return false;
    for (uint32_t j = 0; j < k->n_rec; j++) {
        const struct record *r = &k->rec[j];
        const struct tile_state *t = &k->tile[r->tile];
        if (r->src + off < t->src_end || r->p + off < t->pay_end) return false;
        if (k->paired && t->mode == ORDINARY && r->f + off < t->pay_end) return false;
        if (!events_fit(k, r, off, r->tile == k->m->src[i] ? k->s0 + off : UINT32_MAX))
            return false;
    }
    return true;
}

static void insert_event(GArray *events, const struct exch_control *c) {
    uint32_t at = events->len;
    while (at > 0 && g_array_index(events, struct exch_control, at - 1).label > c->label) at--;
    g_array_insert_val(events, at, *c);
}

static void append_receive(struct appender *k, uint32_t i, uint32_t j, uint32_t off) {
    const struct record *r = &k->rec[j];
    struct tile_state *t = &k->tile[r->tile];
    struct exch_control c[5];
    const uint32_t n = new_events(k, r, off, c);
    for (uint32_t o = t->events->len; o > 0; o--)
        if (replaced(k, r, off, &g_array_index(t->events, struct exch_control, o - 1)))
            g_array_remove_index(t->events, o - 1);
    for (uint32_t a = 0; a < n; a++) {
        c[a].transfer = k->m->transfer[i];
        c[a].recipient = exch_rec_index(k->m, i, k->m->rec0[i] + j);
        insert_event(t->events, &c[a]);
    }
    t->mode = k->paired ? PAIRED : ORDINARY;
    t->src_end = r->src + off + k->items;
    t->pay_end = r->p + off + k->items;
    t->next = r->address + k->items * (k->paired ? 8 : 4);
    t->format = r->format;
    t->format_off = k->paired ? r->f + off + k->items : 0;
    t->end = MAX(t->end, MAX(t->src_end, t->pay_end) + r->guard);
}

static void append(struct appender *k, uint32_t i, uint32_t off) {
    const struct exch_msgs *m = k->m;
    struct tile_state *t = &k->tile[m->src[i]];
    const struct exch_send send = {.slot = k->s0 + off,
                                   .items = k->items,
                                   .address = exch_src_address(m, i),
                                   .transfer = m->transfer[i],
                                   .sctl = m->sctl[i]};
    uint32_t at = t->sends->len;
    while (at > 0 && g_array_index(t->sends, struct exch_send, at - 1).slot > send.slot) at--;
    const uint32_t end = MAX(6, k->s0 + k->items) + off;
    for (uint32_t j = 0; j < k->n_rec; j++) append_receive(k, i, j, off);
    g_array_insert_val(t->sends, at, send);
    t->end = MAX(t->end, end);
    if (!k->paired) return;
    struct tile_state *o = &k->tile[m->src[i] ^ 1];
    o->borrowed = MAX(o->borrowed, end);
    o->end = MAX(o->end, end);
}

static bool tile_has_row(const struct tile_state *t) {
    return t->sends->len + t->events->len > 0;
}

static bool encode(const struct tile_state *t, GArray *words, GArray *sites) {
    struct exch_row_writer w = {words, sites, words->len, true};
    return exch_encode_row(&w, (struct exch_send *)t->sends->data, t->sends->len,
                           (struct exch_control *)t->events->data, t->events->len, t->end);
}

static struct tile_state copy_state(const struct tile_state *t) {
    struct tile_state c = *t;
    c.sends = g_array_copy(t->sends);
    c.events = g_array_copy(t->events);
    return c;
}
static void restore(struct tile_state *t, struct tile_state *saved) {
    g_array_free(t->sends, TRUE);
    g_array_free(t->events, TRUE);
    *t = *saved;
}
static void drop(struct tile_state *saved) {
    g_array_free(saved->sends, TRUE);
    g_array_free(saved->events, TRUE);
}

/* Appends at this offset if every touched row still encodes. */
static bool append_encodes(struct appender *k, uint32_t i, uint32_t off) {
    uint32_t touched[TARGET_N_TILES + 2], n = 0;
    for (uint32_t j = 0; j < k->n_rec; j++) touched[n++] = k->rec[j].tile;
    if (record_of(k, k->m->src[i]) == NULL) touched[n++] = k->m->src[i];
    const uint32_t partner = k->m->src[i] ^ 1;
    if (k->paired && record_of(k, partner) == NULL) touched[n++] = partner;
    struct tile_state *saved = g_new(struct tile_state, n);
    for (uint32_t a = 0; a < n; a++) saved[a] = copy_state(&k->tile[touched[a]]);
    append(k, i, off);
    GArray *words = g_array_new(FALSE, FALSE, 4),
           *sites = g_array_new(FALSE, FALSE, sizeof(struct exch_site));
    bool ok = true;
    for (uint32_t a = 0; a < n && ok; a++)
        if (tile_has_row(&k->tile[touched[a]])) ok = encode(&k->tile[touched[a]], words, sites);
    for (uint32_t a = 0; a < n; a++) {
        if (ok) drop(&saved[a]);
        else restore(&k->tile[touched[a]], &saved[a]);
    }
    g_array_free(words, TRUE);
    g_array_free(sites, TRUE);
    g_free(saved);
    return ok;
}

uint32_t exch_append_all(const struct exch_msgs *m, GArray *ret_words, uint32_t *ret_first_word,
                         uint32_t *ret_slot) {
    struct appender *k = g_new0(struct appender, 1);
    k->m = m;
    k->route = exch_route();
    k->rec = g_new(struct record, TARGET_N_TILES);
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        k->tile[t].sends = g_array_new(FALSE, FALSE, sizeof(struct exch_send));
        k->tile[t].events = g_array_new(FALSE, FALSE, sizeof(struct exch_control));
    }
    for (uint32_t i = 0; i < m->n; i++) {
        k->items = m->items[i];
        k->s0 = m->s_min[i];
        k->paired = m->paired[i] != 0;
        k->n_rec = m->rec0[i + 1] - m->rec0[i];
        for (uint32_t j = 0; j < k->n_rec; j++) make_record(k, i, m->rec0[i] + j, &k->rec[j]);
        uint32_t off = 0;
        while (!fits(k, i, off) || !append_encodes(k, i, off)) off++;
        if (ret_slot != NULL) ret_slot[i] = k->s0 + off;
    }
    GArray *sites = g_array_new(FALSE, FALSE, sizeof(struct exch_site));
    uint32_t horizon = 0;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        ret_first_word[t] = ret_words->len;
        if (!tile_has_row(&k->tile[t])) continue;
        const bool ok = encode(&k->tile[t], ret_words, sites);
        BUG_ON(!ok);
        horizon = MAX(horizon, k->tile[t].end);
    }
    ret_first_word[TARGET_N_TILES] = ret_words->len;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) drop(&k->tile[t]);
    g_array_free(sites, TRUE);
    g_free(k->rec);
    g_free(k);
    return horizon;
}
