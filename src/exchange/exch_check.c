/* Check of rows: decodes every row, and compares what the words do with the problem. Written
 * against exchange 2.1 to 2.3, 3.3, 3.4, 4 and 6.2; uses nothing of the encoder or the time lines.
 *
 * Per row: instruction forms, alignment of two-word forms, controls that may share a label, labels
 * S and S+1 of each send, base switches, return. Over rows: for each message and recipient the
 * multiplexer is on the sender and the pointer on the address for all items, formats are right; in
 * turn the words that the multiplexers of a tile select add up to the words of its messages
 * (nothing foreign). Per tile: element windows, guards. Costs about as much as encoding. */
#include "exchange/exch_int.h"
#include "isa/isa_exch.h"

#include <stdlib.h>
#include <string.h>

struct seen_send {
    uint32_t slot, items, address; /* address in bytes */
    uint8_t sctl;
    bool after_put;
};
struct seen_control { /* one kind per list, ascending */
    uint32_t slot, value;
};
struct seen_row {
    struct seen_send *send;
    struct seen_control *mux, *pair, *ptr, *fmt;
    uint32_t n_send, n_mux, n_pair, n_ptr, n_fmt;
    uint32_t horizon, put; /* put: slot or UINT32_MAX */
};

struct check {
    const struct exch_problem *p;
    const struct exch_result *r;
    const struct exch_route *route;
    struct arena *arena;
    struct seen_row *row;   /* [tiles] */
    uint64_t *expected;     /* [tiles] ordinary items that its messages bring */
    uint64_t *paired_items; /* [tiles] */
    /* where a check failed */
    uint32_t transfer, tile, slot;
    const char *why;
};

static bool fail(struct check *k, uint32_t tile, uint32_t slot, const char *why) {
    k->tile = tile;
    k->slot = slot;
    k->why = why;
    return false;
}

/* --- One row --- */

struct reader {
    struct check *k;
    struct seen_row *row;
    uint32_t tile, slot;
    bool open;                        /* a message is running */
    uint32_t last_control, n_at_last; /* controls at the latest control slot */
    uint32_t kinds_at_last;           /* bit per enum exch_control_kind */
    uint32_t cap;
};

static bool control(struct reader *d, uint32_t slot, uint32_t kind, uint32_t value) {
    struct seen_row *row = d->row;
    if (d->n_at_last > 0 && d->last_control == slot) {
        d->kinds_at_last |= 1u << kind;
        if (++d->n_at_last > 2 || d->kinds_at_last != (1u << CTL_MUX | 1u << CTL_PTR))
            return fail(d->k, d->tile, slot, "controls that may not share a label");
    } else {
        d->last_control = slot;
        d->n_at_last = 1;
        d->kinds_at_last = 1u << kind;
    }
    struct seen_control **list[] = {&row->mux, &row->pair, &row->ptr, &row->fmt};
    uint32_t *n[] = {&row->n_mux, &row->n_pair, &row->n_ptr, &row->n_fmt};
    (*list[kind])[(*n[kind])++] = (struct seen_control){slot, value};
    return true;
}

static bool begin_send(struct reader *d, uint32_t items, uint32_t address, uint32_t sctl) {
    if (sctl == 0 || sctl == 4) return fail(d->k, d->tile, d->slot, "a send without direction");
    d->row->send[d->row->n_send++] = (struct seen_send){
        d->slot, items, address * (sctl & 4 ? 8 : 4), (uint8_t)sctl, d->row->put != UINT32_MAX};
    d->open = true;
    return true;
}

static bool more_items(struct reader *d, uint32_t n) {
    struct seen_send *s = d->row->n_send > 0 ? &d->row->send[d->row->n_send - 1] : NULL;
    if (!d->open || s == NULL || s->slot + s->items != d->slot)
        return fail(d->k, d->tile, d->slot, "items without a running message");
    s->items += n;
    return true;
}

static bool two_word(struct reader *d, const struct isa_exch *i, bool odd) {
    if (odd) return fail(d->k, d->tile, d->slot, "a two-word instruction at an odd word");
    if (!control(d, d->slot, i->sel == ISA_PIC_FMT ? CTL_FMT : CTL_PTR, i->value) ||
        !control(d, d->slot, i->pair ? CTL_PAIR : CTL_MUX, i->mux))
        return false;
    if (i->sctl == 0) {
        d->open = false;
        return true;
    }
    const struct seen_send *s = d->row->n_send > 0 ? &d->row->send[d->row->n_send - 1] : NULL;
    const uint32_t address = i->address * (i->sctl & 4 ? 8 : 4);
    const bool inside = d->open && s != NULL && s->slot + s->items == d->slot &&
                        s->sctl == i->sctl &&
                        s->address + s->items * (s->sctl & 4 ? 8u : 4u) == address;
    return inside ? more_items(d, i->n) : begin_send(d, i->n, i->address, i->sctl);
}

static bool step(struct reader *d, const struct isa_exch *i, bool odd) {
    const uint32_t last = d->slot + i->n - 1;
    switch (i->kind) {
    case ISA_EXCH_DELAY:
        d->open = false;
        break;
    case ISA_EXCH_DELAYPIC:
        d->open = false;
        if (!control(d, last, i->sel == ISA_PIC_FMT ? CTL_FMT : CTL_PTR, i->value)) return false;
        break;
    case ISA_EXCH_DELAYXPIC:
        d->open = false;
        if (!control(d, last, i->sel == ISA_XPIC_PAIR ? CTL_PAIR : CTL_MUX, i->value)) return false;
        break;
    case ISA_EXCH_SEND:
        if (!begin_send(d, i->n, i->address, i->sctl)) return false;
        break;
    case ISA_EXCH_SENDOFF:
        if (i->address != 0 ||
            (d->row->n_send > 0 && i->sctl != d->row->send[d->row->n_send - 1].sctl))
            return fail(d->k, d->tile, d->slot, "a continuation that changes its message");
        if (!more_items(d, i->n)) return false;
        break;
    case ISA_EXCH_SENDPIC:
        if (!control(d, d->slot, i->sel, i->value) || !more_items(d, i->n)) return false;
        break;
    case ISA_EXCH_SENDPICP:
        if (!two_word(d, i, odd)) return false;
        break;
    case ISA_EXCH_PUT:
        if (i->sel != EXCH_CSR_OUTGOING_BASE || i->m != EXCH_REG_ZERO || d->row->put != UINT32_MAX)
            return fail(d->k, d->tile, d->slot, "a register write that rows do not need");
        d->row->put = d->slot;
        d->open = false;
        d->slot += TARGET_EXCH_PUT_SLOTS;
        return true;
    default:
        return fail(d->k, d->tile, d->slot, "a word that is no row instruction");
    }
    d->slot += i->n;
    return true;
}

static bool read_row(struct check *k, uint32_t t) {
    const uint32_t a = k->r->first_word[t], n = k->r->first_word[t + 1] - a;
    struct seen_row *row = &k->row[t];
    row->put = UINT32_MAX;
    if ((n > 0) != (k->r->active[t] != 0))
        return fail(k, t, 0, "active without a row or the reverse");
    if (n == 0) return true;
    row->send = arena_new_array(k->arena, struct seen_send, n);
    struct seen_control *all = arena_new_array(k->arena, struct seen_control, 4 * n);
    row->mux = all;
    row->pair = all + n;
    row->ptr = all + 2 * n;
    row->fmt = all + 3 * n;
    struct reader d = {.k = k, .row = row, .tile = t};
    for (uint32_t w = 0; w < n;) {
        const struct isa_exch i = isa_exch_decode(k->r->words + a + w, n - w);
        if (i.kind == ISA_EXCH_RETURN) {
            row->horizon = d.slot;
            if (d.slot != k->r->tile_horizon[t]) return fail(k, t, d.slot, "another horizon");
            return w + 1 == n || fail(k, t, d.slot, "words behind the return");
        }
        if (!step(&d, &i, w % 2 != 0)) return false;
        w += i.n_words;
    }
    return fail(k, t, d.slot, "no return");
}

/* --- Rules inside a row --- */

static uint32_t find_control(const struct seen_control *c, uint32_t n, uint32_t slot) {
    uint32_t lo = 0, hi = n; /* number of controls with slot <= `slot` */
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (c[mid].slot <= slot) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

static bool has_control(const struct seen_row *row, uint32_t slot) {
    const struct seen_control *list[] = {row->mux, row->pair, row->ptr, row->fmt};
    const uint32_t n[] = {row->n_mux, row->n_pair, row->n_ptr, row->n_fmt};
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t at = find_control(list[i], n[i], slot);
        if (at > 0 && list[i][at - 1].slot == slot) return true;
    }
    return false;
}

static bool check_sends(struct check *k, uint32_t t) {
    const struct seen_row *row = &k->row[t];
    for (uint32_t i = 0; i < row->n_send; i++) {
        const struct seen_send *s = &row->send[i];
        if (has_control(row, s->slot) ||
            (!k->r->relaxed && s->slot > 0 && has_control(row, s->slot - 1)))
            return fail(k, t, s->slot, "a control at label S or S+1 of a send");
    }
    for (uint32_t e = 0; row->put != UINT32_MAX && e < TARGET_EXCH_PUT_SLOTS; e++)
        if (has_control(row, row->put + e))
            return fail(k, t, row->put, "a control in a base switch");
    return true;
}

static bool check_exit(struct check *k, uint32_t t) {
    const struct seen_row *row = &k->row[t];
    if (row->n_mux > 0 && row->mux[row->n_mux - 1].value != TARGET_EXCH_MUX_NEUTRAL)
        return fail(k, t, row->horizon, "the multiplexer is not neutral at the end");
    if (row->n_pair > 0 && row->pair[row->n_pair - 1].value != TARGET_EXCH_MUX_NEUTRAL)
        return fail(k, t, row->horizon, "the pair multiplexer is not neutral at the end");
    if (row->n_fmt > 0 && row->fmt[row->n_fmt - 1].value != 0)
        return fail(k, t, row->horizon, "the format is not 0 at the end");
    return true;
}

/* --- Messages --- */

static const struct seen_send *find_send(const struct seen_row *row, uint32_t slot) {
    uint32_t lo = 0, hi = row->n_send;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (row->send[mid].slot <= slot) lo = mid + 1;
        else hi = mid;
    }
    return lo > 0 && row->send[lo - 1].slot == slot ? &row->send[lo - 1] : NULL;
}

/* Value v from slot a on, unchanged before slot b. */
static bool holds(const struct seen_control *c, uint32_t n, uint32_t a, uint32_t b, uint32_t v) {
    uint32_t at = find_control(c, n, a);
    if (at == 0 || c[at - 1].value != v) return false;
    for (; at < n && c[at].slot < b; at++)
        if (c[at].value != v) return false;
    return true;
}

/* A pointer at the first item, or none (then check_arrivals compares with the message before). */
static bool check_pointer(struct check *k, uint32_t t, uint32_t z, uint32_t items,
                          uint32_t address) {
    const struct seen_row *row = &k->row[t];
    const uint32_t at = find_control(row->ptr, row->n_ptr, z);
    if (at == 0) return fail(k, t, z, "no pointer");
    if (at < row->n_ptr && row->ptr[at].slot <= z + items - 1)
        return fail(k, t, row->ptr[at].slot, "a pointer inside a message");
    if (row->ptr[at - 1].slot == z && row->ptr[at - 1].value * 4 != address)
        return fail(k, t, z, "a pointer to another address");
    return true;
}

static bool check_ordinary(struct check *k, const struct exch_message *m, uint32_t t,
                           uint32_t address) {
    const uint32_t src = k->p->source_tile[m->transfer], n = m->words;
    const struct seen_row *row = &k->row[t];
    const uint32_t x = m->slot + (uint32_t)k->route->ttm[src][t];
    const uint32_t z = x + exch_lag(k->route, t);
    if (!holds(row->mux, row->n_mux, x, x + n, k->route->phys[src]))
        return fail(k, t, x, "the multiplexer is not on the sender");
    const uint32_t f = find_control(row->fmt, row->n_fmt, z - 2);
    if ((f > 0 && row->fmt[f - 1].value != 0) || (f < row->n_fmt && row->fmt[f].slot <= z + n - 1))
        return fail(k, t, z, "a format during an ordinary message");
    if (row->horizon < z + 1 + n + TARGET_EXCH_TAIL_GUARD)
        return fail(k, t, row->horizon, "the row ends before its last words are written");
    k->expected[t] += n;
    return check_pointer(k, t, z, n, address);
}

static bool check_paired(struct check *k, const struct exch_message *m, uint32_t t,
                         uint32_t address) {
    const uint32_t src = k->p->source_tile[m->transfer], n = m->words / 2;
    const struct seen_row *row = &k->row[t];
    const int32_t a = k->route->ttm[src][t], b = k->route->ttm[src][t ^ 1];
    const uint32_t z = m->slot + (uint32_t)MAX(a, b) + exch_lag(k->route, t);
    const bool early = a < b;
    const struct seen_row *who = early ? row : &k->row[t ^ 1];
    const uint32_t lane = k->route->phys[early ? t : t ^ 1] & 2;
    const uint32_t x = m->slot + (uint32_t)MIN(a, b);
    if (!holds(who->pair, who->n_pair, x, x + n, k->route->phys[src] ^ lane))
        return fail(k, t, x, "the pair multiplexer is not on the sender");
    if (!holds(row->fmt, row->n_fmt, z - 2, z + n - 2, k->route->dir[src][t]))
        return fail(k, t, z, "the format is not the direction of a paired message");
    const uint32_t c = find_control(row->ptr, row->n_ptr, z);
    if (c == 0 || row->ptr[c - 1].slot != z || row->ptr[c - 1].value * 4 != address ||
        (c < row->n_ptr && row->ptr[c].slot <= z + n - 1))
        return fail(k, t, z, "the pointer of a paired message");
    if (row->horizon < z - 1 + n + TARGET_EXCH_PAIR_TAIL_GUARD)
        return fail(k, t, row->horizon, "the row ends before its last words are written");
    k->paired_items[t] += n;
    return true;
}

static bool check_message(struct check *k, uint32_t i) {
    const struct exch_message *m = &k->r->messages[i];
    const struct exch_problem *p = k->p;
    k->transfer = m->transfer;
    const uint32_t src = p->source_tile[m->transfer];
    const struct seen_send *s = find_send(&k->row[src], m->slot);
    const uint32_t items = m->paired ? m->words / 2 : m->words;
    if (s == NULL || s->items != items ||
        s->address != p->source_address[m->transfer] + 4 * m->first_word ||
        ((s->sctl & 4) != 0) != m->paired)
        return fail(k, src, m->slot, "the send of a message");
    const bool moves = p->source_stride != NULL && p->source_stride[m->transfer] != 0;
    const uint32_t base = k->r->outgoing_base[src];
    if (base == EXCH_BASE_MOVING && moves == s->after_put)
        return fail(k, src, m->slot, "a send on the wrong side of the base switch");
    if (base == EXCH_BASE_MOVING && !moves && k->row[src].put == UINT32_MAX)
        return fail(k, src, m->slot, "a fixed send without a base switch");
    for (uint32_t r = p->first_recipient[m->transfer]; r < p->first_recipient[m->transfer + 1];
         r++) {
        const uint32_t t = p->recipient_tile[r];
        const uint32_t address = p->recipient_address[r] + 4 * m->first_word;
        if ((k->route->dir[src][t] & s->sctl) == 0)
            return fail(k, src, m->slot, "a direction that does not reach a recipient");
        if (!(m->paired ? check_paired(k, m, t, address) : check_ordinary(k, m, t, address)))
            return false;
    }
    return true;
}

/* Every transfer is covered by its messages, which follow each other. */
static bool check_cover(struct check *k) {
    uint32_t x = 0, done = 0;
    for (uint32_t i = 0; i < k->r->n_messages; i++) {
        const struct exch_message *m = &k->r->messages[i];
        k->transfer = x;
        if (m->transfer != x || m->first_word != done || m->words == 0)
            return fail(k, 0, m->slot, "messages do not cover their transfer");
        done += m->words;
        if (done == k->p->words[x]) {
            x++;
            done = 0;
        }
    }
    return x == k->p->n_transfers || fail(k, 0, 0, "a transfer has no message");
}

/* --- Nothing foreign: words selected by the multiplexers of a tile --- */

static bool check_foreign(struct check *k, uint32_t t) {
    const struct seen_row *row = &k->row[t];
    const uint16_t *logical = target_logical_of_physical();
    uint64_t got = 0;
    for (uint32_t c = 0; c < row->n_mux; c++) {
        const uint32_t v = row->mux[c].value;
        if (v == TARGET_EXCH_MUX_NEUTRAL) continue;
        if (v >= TARGET_N_TILES) return fail(k, t, row->mux[c].slot, "a multiplexer on no tile");
        const uint32_t src = logical[v];
        const int32_t shift = k->route->ttm[src][t];
        const int64_t a = (int64_t)row->mux[c].slot - shift;
        const int64_t b = (c + 1 < row->n_mux ? (int64_t)row->mux[c + 1].slot : INT32_MAX) - shift;
        const struct seen_row *from = &k->row[src];
        uint32_t lo = 0, hi = from->n_send; /* first send that ends behind a */
        while (lo < hi) {
            const uint32_t mid = (lo + hi) / 2;
            if ((int64_t)from->send[mid].slot + from->send[mid].items > a) hi = mid;
            else lo = mid + 1;
        }
        for (; lo < from->n_send && from->send[lo].slot < b; lo++) {
            const struct seen_send *s = &from->send[lo];
            if ((s->sctl & k->route->dir[src][t]) == 0) continue;
            if (s->sctl & 4)
                return fail(k, t, row->mux[c].slot, "a 64-bit item on an ordinary bus");
            got += (uint64_t)(MIN((int64_t)s->slot + s->items, b) - MAX((int64_t)s->slot, a));
        }
    }
    return got == k->expected[t] || fail(k, t, 0, "foreign words are selected");
}

/* --- Arrivals of a tile in order: pointers that continue, elements, overlaps --- */

struct arrival {
    uint32_t z, n, address, message; /* n items */
};
static int compare_arrival(const void *a, const void *b) {
    const struct arrival *x = a, *y = b;
    return x->z < y->z ? -1 : x->z > y->z;
}

static uint32_t *arrivals_first(const struct check *k) {
    uint32_t *first = g_new0(uint32_t, TARGET_N_TILES + 1);
    for (uint32_t i = 0; i < k->r->n_messages; i++) {
        const uint32_t x = k->r->messages[i].transfer;
        for (uint32_t r = k->p->first_recipient[x]; r < k->p->first_recipient[x + 1]; r++)
            first[k->p->recipient_tile[r] + 1]++;
    }
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) first[t + 1] += first[t];
    return first;
}

static void fill_arrivals(const struct check *k, const uint32_t *first, struct arrival *a) {
    uint32_t *at = g_memdup2(first, (TARGET_N_TILES + 1) * sizeof *first);
    for (uint32_t i = 0; i < k->r->n_messages; i++) {
        const struct exch_message *m = &k->r->messages[i];
        const uint32_t src = k->p->source_tile[m->transfer];
        for (uint32_t r = k->p->first_recipient[m->transfer];
             r < k->p->first_recipient[m->transfer + 1]; r++) {
            const uint32_t t = k->p->recipient_tile[r];
            const int32_t own = k->route->ttm[src][t], other = k->route->ttm[src][t ^ 1];
            const uint32_t ttm = (uint32_t)(m->paired ? MAX(own, other) : own);
            a[at[t]++] = (struct arrival){m->slot + ttm + exch_lag(k->route, t),
                                          m->paired ? m->words / 2 : m->words,
                                          k->p->recipient_address[r] + 4 * m->first_word, i};
        }
    }
    g_free(at);
}

static bool check_arrivals(struct check *k, uint32_t t, const struct arrival *a, uint32_t n) {
    const struct seen_row *row = &k->row[t];
    uint32_t next = UINT32_MAX, end = 0;
    bool was_paired = false;
    for (uint32_t i = 0; i < n; i++) {
        const bool paired = k->r->messages[a[i].message].paired;
        k->transfer = k->r->messages[a[i].message].transfer;
        if (a[i].z < end) return fail(k, t, a[i].z, "two messages arrive at once");
        const uint32_t c = find_control(row->ptr, row->n_ptr, a[i].z);
        const bool own = c > 0 && row->ptr[c - 1].slot == a[i].z;
        if (!own && (paired || was_paired || next != a[i].address))
            return fail(k, t, a[i].z, "a message continues at another address");
        if (!own && c > 0 && i > 0 && row->ptr[c - 1].slot >= end)
            return fail(k, t, a[i].z, "a pointer between two continued messages");
        end = a[i].z + a[i].n;
        next = a[i].address + a[i].n * (paired ? 8u : 4u);
        was_paired = paired;
    }
    return true;
}

/* Windows of sends and receives that share an element are disjoint (6.2-1). Both lists are disjoint
 * and ascending, so one walk finds every overlap. */
static bool check_elements(struct check *k, uint32_t t, const struct arrival *a, uint32_t n) {
    const struct seen_row *row = &k->row[t];
    const struct exch_problem *p = k->p;
    uint32_t first = 0;
    for (uint32_t i = 0; i < row->n_send; i++) {
        const struct seen_send *s = &row->send[i];
        const uint32_t bytes = s->items * (s->sctl & 4 ? 8u : 4u);
        uint32_t read = exch_element_mask(s->address, bytes);
        const bool moves = k->r->outgoing_base[t] == EXCH_BASE_MOVING && !s->after_put;
        for (uint32_t it = 1; moves && it < p->n_iterations; it++)
            read |= exch_element_mask(s->address + it * (uint32_t)k->r->moving_stride[t], bytes);
        while (first < n && a[first].z + 1 + a[first].n + TARGET_EXCH_TAIL_GUARD <= s->slot)
            first++;
        for (uint32_t j = first; j < n && a[j].z + 1 < s->slot + s->items; j++) {
            const uint32_t size = k->r->messages[a[j].message].words * 4;
            if ((read & exch_element_mask(a[j].address, size)) == 0) continue;
            if (a[j].z + 1 + a[j].n + TARGET_EXCH_TAIL_GUARD <= s->slot) continue;
            k->transfer = k->r->messages[a[j].message].transfer;
            return fail(k, t, s->slot, "a send and a receive use one element at once");
        }
    }
    return true;
}

/* Own and borrowed lane: no two items at once. */
static bool check_lanes(struct check *k, uint32_t t) {
    const struct seen_row *own = &k->row[t], *other = &k->row[t ^ 1];
    uint32_t j = 0;
    for (uint32_t i = 0; i < own->n_send; i++) {
        const struct seen_send *s = &own->send[i];
        if (i > 0 && own->send[i - 1].slot + own->send[i - 1].items > s->slot)
            return fail(k, t, s->slot, "two sends overlap");
        if (!(s->sctl & 4)) continue;
        while (j < other->n_send && other->send[j].slot + other->send[j].items <= s->slot) j++;
        if (j < other->n_send && other->send[j].slot < s->slot + s->items)
            return fail(k, t, s->slot, "the partner sends while its lane is borrowed");
    }
    return true;
}

static bool check_all(struct check *k) {
    for (uint32_t t = 0; t < TARGET_N_TILES; t++)
        if (!read_row(k, t) || !check_sends(k, t) || !check_exit(k, t)) return false;
    if (!check_cover(k)) return false;
    for (uint32_t i = 0; i < k->r->n_messages; i++)
        if (!check_message(k, i)) return false;
    uint32_t *first = arrivals_first(k);
    struct arrival *a = g_new(struct arrival, first[TARGET_N_TILES] + 1);
    fill_arrivals(k, first, a);
    bool ok = true;
    for (uint32_t t = 0; t < TARGET_N_TILES && ok; t++) {
        const uint32_t n = first[t + 1] - first[t];
        qsort(a + first[t], n, sizeof *a, compare_arrival);
        ok = check_lanes(k, t) && check_foreign(k, t) && check_arrivals(k, t, a + first[t], n) &&
             check_elements(k, t, a + first[t], n);
    }
    g_free(first);
    g_free(a);
    return ok;
}

bool exch_rows_check(const struct exch_problem *p, const struct exch_result *r, GError **error) {
    struct arena *a = arena_new();
    struct check k = {.p = p,
                      .r = r,
                      .route = exch_route(),
                      .arena = a,
                      .row = arena_new_array(a, struct seen_row, TARGET_N_TILES),
                      .expected = arena_new_array(a, uint64_t, TARGET_N_TILES),
                      .paired_items = arena_new_array(a, uint64_t, TARGET_N_TILES)};
    const bool ok = check_all(&k);
    if (!ok) diag_set(error, EXCH_CHECK, k.transfer, k.tile, k.slot, k.why);
    arena_free(a);
    return ok;
}
