/* What a tile receives. Its muxes are piecewise constant and the senders' items come in pieces, so
 * each interval of a mux is intersected with the pieces of the sender that it selects, shifted by
 * the route's latency (exchange 10.7). The intersections, ordered by pointer stage, are checked
 * against the format and cut where the pointer or the incoming base changes: each cut is one
 * delivery.
 *
 *   ordinary: item at the mux in slot X = t + ttm, at the pointer in z = X + 52 + 2 row
 *   paired:   selected by the early member's pair mux in X = t + ttm(early); both members z = t +
 *             t2 + 52 + 2 row, t2 the larger of the two latencies
 *
 * Cost: controls x log(pieces of the sender) + intersections. Flags M1, M4 to M8, ENTRY's
 * consequences, P1 to P4, P6, R8 (paired pointer with a mux write), R13, S5, H7 (elements), C1. */
#include "fabric/fabric_impl.h"

#include <stdlib.h>
#include <string.h>

struct rx {
    struct fabric *f;
    struct worker *me;
    uint32_t thread;
    const struct fabric_tile *t;
    struct tile_plan *p;
    const uint16_t *logical;
};

static void flag(const struct rx *r, enum fabric_fault_index what, int64_t slot, uint32_t other) {
    fabric_flag(r->f, r->thread,
                &(struct flag){.what = what,
                               .tile = r->p->tile,
                               .slot = slot < 0 ? 0 : (uint32_t)slot,
                               .other = other});
}

static uint32_t logical_or_none(const struct rx *r, uint32_t phys) {
    return phys < TARGET_N_TILES ? r->logical[phys] : (uint32_t)FABRIC_NO_TILE;
}

static int32_t route(uint32_t s, uint32_t d) {
    return target_ttm((struct ptile){(uint16_t)s}, (struct ptile){(uint16_t)d});
}

/* --- Mux intervals against pieces. --- */

/* A selected sender during [from, to) of this tile's slots; sender slot = slot - latency. */
struct window {
    int64_t from, to;
    uint32_t sender;    /* physical */
    int32_t latency;    /* from send slot to the slot in which the mux must hold */
    int32_t stage;      /* from send slot to pointer stage */
    uint32_t direction; /* that reaches this tile */
    bool paired;
    bool quiet; /* faults of this window are the partner's to report */
};

static void add_arrival(struct rx *r, const struct arrival *a) {
    struct worker *me = r->me;
    fabric_grow_u32((void **)&me->arrivals, &me->capacity_arrivals, me->n_arrivals + 1,
                    sizeof *me->arrivals);
    me->arrivals[me->n_arrivals++] = *a;
}

static bool ends_behind(const struct piece *pc, int64_t slot) {
    return (int64_t)pc->slot + pc->n > slot;
}

/* First piece of p that ends behind `slot`. Senders send steadily, so a guess by proportion is
 * near: gallop from it, then halve; a few neighbouring cache lines instead of log n distant
 * ones. */
static uint32_t piece_behind(const struct fabric *f, const struct tile_plan *p, int64_t slot) {
    const struct piece *v = f->pieces + p->first_piece;
    const uint32_t n = p->n_pieces;
    if (n == 0 || slot < 0) return p->first_piece;
    const int64_t end = f->phase->tiles[p - f->plans].slots;
    const uint32_t guess = slot >= end ? n - 1 : (uint32_t)(slot * n / end);
    uint32_t lo, hi; /* answer in [lo, hi] */
    if (ends_behind(&v[guess], slot)) {
        uint32_t step = 1;
        hi = guess;
        while (hi >= step && ends_behind(&v[hi - step], slot)) {
            hi -= step;
            step *= 2;
        }
        lo = hi >= step ? hi - step + 1 : 0;
    } else {
        uint32_t step = 1;
        lo = guess + 1;
        while (lo + step <= n && !ends_behind(&v[lo + step - 1], slot)) {
            lo += step;
            step *= 2;
        }
        hi = MIN(n, lo + step - 1);
    }
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (ends_behind(&v[mid], slot)) hi = mid;
        else lo = mid + 1;
    }
    return p->first_piece + lo;
}

/* Whether a piece of `plan` with (sctl & mask) == want and a direction that reaches r lies in
 * sender slots [from, to); its first common slot goes to *ret_slot. */
static bool piece_passes(const struct rx *r, uint16_t plan, const struct window *w, uint32_t want,
                         int64_t *ret_slot) {
    if (plan == NO_PLAN) return false;
    const struct tile_plan *p = &r->f->plans[plan];
    const int64_t from = w->from - w->latency, to = w->to - w->latency;
    for (uint32_t k = piece_behind(r->f, p, from); k < p->first_piece + p->n_pieces; k++) {
        const struct piece *pc = &r->f->pieces[k];
        if (pc->slot >= to) return false;
        if ((pc->sctl & SCTL_PAIRED) == want && (pc->sctl & w->direction) != 0) {
            *ret_slot = MAX(from, (int64_t)pc->slot) + w->latency;
            return true;
        }
    }
    return false;
}

/* The part [from, to) of a window in which the selected tile sends nothing. */
static void check_idle(struct rx *r, const struct window *w, int64_t from, int64_t to) {
    if (w->quiet || from >= to) return;
    struct window gap = *w;
    gap.from = from;
    gap.to = to;
    const uint16_t partner = r->f->plan_of[w->sender ^ 2];
    const uint32_t name = logical_or_none(r, w->sender ^ 2);
    int64_t slot;
    if (!w->paired && piece_passes(r, partner, &gap, SCTL_PAIRED, &slot))
        flag(r, FABRIC_M7, slot, name);
    if (w->paired && piece_passes(r, partner, &gap, SCTL_PAIRED, &slot))
        flag(r, FABRIC_M5, slot, name);
    if (w->paired && piece_passes(r, partner, &gap, 0, &slot)) flag(r, FABRIC_M7, slot, name);
    flag(r, FABRIC_M1, from, logical_or_none(r, w->sender));
}

/* One piece inside a window: an arrival or the reason why not. */
static void select_piece(struct rx *r, const struct window *w, uint16_t plan, uint32_t k) {
    const struct piece *pc = &r->f->pieces[k];
    const int64_t from = MAX(w->from - w->latency, (int64_t)pc->slot);
    const int64_t to = MIN(w->to - w->latency, (int64_t)pc->slot + pc->n);
    const bool paired = (pc->sctl & SCTL_PAIRED) != 0;
    const uint32_t other = r->f->plans[plan].tile;
    if ((pc->sctl & w->direction) == 0) {
        if (!w->quiet) flag(r, FABRIC_S5, from + w->latency, other);
        return;
    }
    if (paired != w->paired) {
        if (!w->quiet) flag(r, FABRIC_M7, from + w->latency, other);
        return;
    }
    if (from + w->stage < 0) { /* at the pointer before slot 0: no pointer can hold yet */
        flag(r, FABRIC_P1, 0, other);
        return;
    }
    add_arrival(r, &(struct arrival){.stage = (uint32_t)(from + w->stage),
                                     .send = (uint32_t)from,
                                     .n = (uint32_t)(to - from),
                                     .piece = k,
                                     .sender = plan,
                                     .paired = paired});
}

static void select_window(struct rx *r, const struct window *w) {
    const uint16_t plan = r->f->plan_of[w->sender];
    int64_t seen = w->from;
    if (plan != NO_PLAN) {
        const struct tile_plan *p = &r->f->plans[plan];
        const int64_t from = w->from - w->latency, to = w->to - w->latency;
        for (uint32_t k = piece_behind(r->f, p, from); k < p->first_piece + p->n_pieces; k++) {
            const struct piece *pc = &r->f->pieces[k];
            if (pc->slot >= to) break;
            check_idle(r, w, seen, pc->slot + w->latency);
            select_piece(r, w, plan, k);
            seen = (int64_t)pc->slot + pc->n + w->latency;
        }
    }
    check_idle(r, w, seen, w->to);
}

/* --- Pair muxes. --- */

/* Interval i of a time line whose value on entry was `entry`; i = 0 is the entry interval. */
struct span {
    int64_t from, to;
    uint32_t value;
};
static struct span line_span(const struct control *v, uint32_t n, uint32_t i, uint32_t entry,
                             uint32_t end) {
    struct span s = {.from = i == 0 ? INT32_MIN : (int64_t)v[i - 1].slot,
                     .to = i < n ? v[i].slot : end,
                     .value = i == 0 ? entry : v[i - 1].value};
    if (s.to < s.from) s.to = s.from;
    return s;
}

static void add_blocked(struct rx *r, int64_t from, int64_t to) {
    struct worker *me = r->me;
    fabric_grow_u32((void **)&me->blocked, &me->capacity_blocked, me->n_blocked + 1,
                    sizeof *me->blocked);
    me->blocked[me->n_blocked++] = (struct control){(uint32_t)MAX(from, 0), (uint32_t)MAX(to, 0)};
}

/* Selects what the pair mux of `owner` (this tile or its partner) brings to this tile. */
static void select_pair_line(struct rx *r, const struct tile_plan *owner) {
    const bool mine = owner == r->p;
    const struct fabric_tile *t = &r->f->phase->tiles[owner - r->f->plans];
    uint32_t n;
    const struct control *v = fabric_line(r->f, owner, CONTROL_PAIR, &n);
    for (uint32_t i = 0; i <= n; i++) {
        const struct span s = line_span(v, n, i, t->csr.incoming_muxpair, t->slots);
        if (s.value == TARGET_EXCH_MUX_NEUTRAL || s.from >= s.to) continue;
        add_blocked(r, s.from + !mine, s.to + !mine); /* the late member follows one slot later */
        const uint32_t sender = s.value ^ (owner->phys & 2u);
        if (s.value >= TARGET_N_TILES || sender >= TARGET_N_TILES) {
            if (mine) flag(r, FABRIC_M4, s.from, FABRIC_NO_TILE);
            continue;
        }
        const int32_t own = route(sender, owner->phys), late = route(sender, owner->phys ^ 2u);
        if (own > late) {
            if (mine) flag(r, FABRIC_M5, s.from, logical_or_none(r, sender));
            continue;
        }
        const struct ptile from = {(uint16_t)sender}, to = {r->p->phys};
        const struct window w = {.from = s.from,
                                 .to = s.to,
                                 .sender = sender,
                                 .latency = own,
                                 .stage = late + TARGET_EXCH_PTR_DELAY + 2 * r->p->row,
                                 .direction = target_direction(from, to),
                                 .paired = true,
                                 .quiet = !mine};
        const uint32_t before = r->me->n_arrivals;
        select_window(r, &w);
        if (mine && r->me->n_arrivals > before && r->f->plan_of[owner->phys ^ 2] == NO_PLAN)
            flag(r, FABRIC_M7, s.from, r->logical[owner->phys ^ 2]);
    }
}

/* M5: pair muxes of both members set at the same time, or one written while the other's is set. */
static void check_pair_owners(struct rx *r, const struct tile_plan *partner) {
    uint32_t n_mine, n_other, k = 0;
    const struct control *mine = fabric_line(r->f, r->p, CONTROL_PAIR, &n_mine);
    const struct control *other = fabric_line(r->f, partner, CONTROL_PAIR, &n_other);
    const struct fabric_tile *t = &r->f->phase->tiles[partner - r->f->plans];
    for (uint32_t i = 0; i < n_mine; i++) {
        while (k < n_other && other[k].slot <= mine[i].slot) k++;
        const uint32_t value = k == 0 ? t->csr.incoming_muxpair : other[k - 1].value;
        const bool ended = k == n_other && t->slots <= mine[i].slot;
        if (value != TARGET_EXCH_MUX_NEUTRAL && !ended)
            flag(r, FABRIC_M5, mine[i].slot, partner->tile);
    }
}

static int compare_controls(const void *a, const void *b) {
    const struct control *x = a, *y = b;
    return x->slot != y->slot ? (x->slot > y->slot) - (x->slot < y->slot)
                              : (x->value > y->value) - (x->value < y->value);
}
static int compare_arrivals(const void *a, const void *b) {
    const struct arrival *x = a, *y = b;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

static void select_pairs(struct rx *r) {
    const uint16_t k = r->f->plan_of[r->p->phys ^ 2];
    const struct tile_plan *partner = k == NO_PLAN ? NULL : &r->f->plans[k];
    select_pair_line(r, r->p);
    if (partner == NULL) return;
    select_pair_line(r, partner);
    check_pair_owners(r, partner);
    if (r->me->n_blocked > 1)
        qsort(r->me->blocked, r->me->n_blocked, sizeof *r->me->blocked, compare_controls);
}

/* --- Ordinary mux. --- */

static void select_ordinary(struct rx *r) {
    const struct worker *me = r->me;
    const struct fabric_tile *t = r->t;
    uint32_t n, b = 0;
    const struct control *v = fabric_line(r->f, r->p, CONTROL_MUX, &n);
    for (uint32_t i = 0; i <= n; i++) {
        const struct span s = line_span(v, n, i, t->csr.incoming_mux, t->slots);
        while (b < me->n_blocked && me->blocked[b].value <= s.from) b++;
        if (i > 0 && b < me->n_blocked && me->blocked[b].slot <= s.from)
            flag(r, FABRIC_M6, s.from, FABRIC_NO_TILE);
        if (s.value == TARGET_EXCH_MUX_NEUTRAL || s.from >= s.to) continue;
        if (s.value >= TARGET_N_TILES) {
            flag(r, FABRIC_M4, s.from, FABRIC_NO_TILE);
            continue;
        }
        const struct ptile from = {(uint16_t)s.value}, to = {r->p->phys};
        const int32_t latency = target_ttm(from, to);
        struct window w = {.from = s.from,
                           .sender = s.value,
                           .latency = latency,
                           .stage = latency + TARGET_EXCH_PTR_DELAY + 2 * r->p->row,
                           .direction = target_direction(from, to)};
        for (uint32_t k = b; k < me->n_blocked && me->blocked[k].slot < s.to; k++) {
            w.to = MAX((int64_t)me->blocked[k].slot, w.from);
            flag(r, FABRIC_M6, w.to, r->logical[s.value]);
            if (w.to > w.from) select_window(r, &w);
            w.from = MAX(w.from, (int64_t)me->blocked[k].value);
        }
        w.to = s.to;
        if (w.from < w.to) select_window(r, &w);
    }
}

/* --- Format. --- */

/* First slot of [from, to) in which the format is not `want`, or -1. *at: control in force at
 * `from` + 1, kept between calls with ascending `from`. */
static int64_t format_mismatch(const struct control *v, uint32_t n, uint32_t entry, uint32_t *at,
                               const struct span *s) {
    while (*at < n && v[*at].slot <= s->from) (*at)++;
    for (uint32_t k = *at;; k++) {
        const uint32_t value = k == 0 ? entry : v[k - 1].value & ~CONTROL_MERGED;
        if (value != s->value) return MAX(s->from, k == 0 ? 0 : (int64_t)v[k - 1].slot);
        if (k >= n || v[k].slot >= s->to) return -1;
    }
}

static void check_formats(struct rx *r) {
    uint32_t n, at = 0;
    const struct control *v = fabric_line(r->f, r->p, CONTROL_FMT, &n);
    const uint32_t entry = r->t->csr.incoming_format;
    for (uint32_t i = 0; i < r->me->n_arrivals; i++) {
        const struct arrival *a = &r->me->arrivals[i];
        const struct tile_plan *s = &r->f->plans[a->sender];
        const int64_t from = (int64_t)a->stage - TARGET_EXCH_FMT_LEAD;
        struct span span = {.from = from, .to = from + a->n};
        if (a->paired)
            span.value = target_direction((struct ptile){s->phys}, (struct ptile){r->p->phys});
        else span.to = (int64_t)a->stage + a->n;
        if (n == 0 && entry == span.value) continue;
        const int64_t bad = format_mismatch(v, n, entry, &at, &span);
        if (bad >= 0) flag(r, FABRIC_M8, bad, s->tile);
    }
}

/* --- Pointer and base. --- */

struct pointer {
    const struct control *ptr, *base;
    uint32_t n_ptr, n_base, at_ptr, at_base; /* at: controls already in force */
    uint32_t cursor, base_value;
    bool merged, used; /* of the pointer write in force */
};

static void add_delivery(struct rx *r, const struct fabric_delivery *d) {
    struct deliveries *out = &r->me->out;
    fabric_grow_u32((void **)&out->v, &out->capacity, out->n + 1, sizeof *out->v);
    out->v[out->n++] = *d;
}

static void flag_at(const struct rx *r, enum fabric_fault_index what, uint32_t address,
                    const struct arrival *a) {
    fabric_flag(r->f, r->thread,
                &(struct flag){.what = what,
                               .tile = r->p->tile,
                               .slot = a->stage,
                               .address = address,
                               .other = r->f->plans[a->sender].tile});
}

/* Range, alignment and loopback elements of one delivery. */
static void check_target(const struct rx *r, const struct arrival *a, uint64_t from, uint64_t end) {
    if (a->paired && from % 8 != 0) flag_at(r, FABRIC_P4, (uint32_t)from, a);
    if ((r->f->phase->flags & FABRIC_ANY_ADDRESS) != 0) return;
    if (from < TARGET_SRAM_BASE || end > TARGET_SRAM_END || from % 4 != 0)
        flag_at(r, FABRIC_P3,
                (uint32_t)(from < TARGET_SRAM_BASE ? from : MAX(from, TARGET_SRAM_END)), a);
    const struct message *msg = &r->f->messages[r->f->pieces[a->piece].message];
    if (&r->f->plans[msg->sender] == r->p && (msg->elements & fabric_elements(from, end)) != 0)
        flag_at(r, FABRIC_H7, (uint32_t)from, a);
}

static void deliver(struct rx *r, struct pointer *q, const struct arrival *a) {
    const uint32_t size = a->paired ? 8 : 4;
    const struct piece *pc = &r->f->pieces[a->piece];
    if (q->at_ptr == 0) flag_at(r, FABRIC_P1, q->cursor, a);
    if (q->at_ptr > 0 && !q->used && q->ptr[q->at_ptr - 1].slot < a->stage)
        flag(r, FABRIC_P_EARLY, q->ptr[q->at_ptr - 1].slot, r->f->plans[a->sender].tile);
    if (q->merged && a->paired) flag_at(r, FABRIC_R8, 0, a);
    if (a->paired && !q->used && q->at_ptr > 0 &&
        q->ptr[q->at_ptr - 1].slot + 1 + TARGET_EXCH_PAIR_TAIL_GUARD > r->t->slots)
        flag(r, FABRIC_C1, q->ptr[q->at_ptr - 1].slot, FABRIC_NO_TILE);
    q->used = true;
    const uint64_t from = (uint64_t)q->base_value + q->cursor;
    check_target(r, a, from, from + (uint64_t)a->n * size);
    add_delivery(r, &(struct fabric_delivery){.stage = a->stage,
                                              .send = a->send,
                                              .items = a->n,
                                              .source = pc->address + (a->send - pc->slot) * size,
                                              .destination = (uint32_t)from,
                                              .message = pc->message,
                                              .source_tile = r->f->plans[a->sender].tile,
                                              .paired = a->paired});
    r->p->words_moved += (uint64_t)a->n * (size / 4);
    q->cursor += a->n * size;
}

/* Pointer and base writes up to and in `slot`. */
static void advance_pointer(struct pointer *q, uint32_t slot) {
    while (q->at_ptr < q->n_ptr && q->ptr[q->at_ptr].slot <= slot) {
        const uint32_t value = q->ptr[q->at_ptr++].value;
        q->cursor = (value & ~CONTROL_MERGED) * 4;
        q->merged = (value & CONTROL_MERGED) != 0;
        q->used = false;
    }
    while (q->at_base < q->n_base && q->base[q->at_base].slot <= slot)
        q->base_value = q->base[q->at_base++].value;
}

/* R13: a base write takes 13 slots up to its own; no payload may pass meanwhile. */
static void check_base(const struct rx *r, const struct pointer *q, const struct arrival *a) {
    for (uint32_t k = q->at_base; k < q->n_base; k++) {
        const uint32_t last = q->base[k].slot, first = last + 1 - TARGET_EXCH_PUT_SLOTS;
        if (first >= a->stage + a->n) return;
        if (a->stage <= last) flag_at(r, FABRIC_R13, q->base[k].value, a);
    }
}

static void place_arrivals(struct rx *r) {
    struct pointer q = {.cursor = r->t->csr.incoming_delta, .base_value = r->t->csr.incoming_base};
    q.ptr = fabric_line(r->f, r->p, CONTROL_PTR, &q.n_ptr);
    q.base = fabric_line(r->f, r->p, CONTROL_BASE, &q.n_base);
    uint32_t message = UINT32_MAX, behind = 0; /* of the item before */
    for (uint32_t i = 0; i < r->me->n_arrivals; i++) {
        struct arrival a = r->me->arrivals[i];
        const uint32_t end = a.stage + a.n;
        const uint32_t own = r->f->pieces[a.piece].message;
        if (i > 0 && a.stage < behind) flag_at(r, FABRIC_P6, 0, &a);
        if (q.n_base > 0) check_base(r, &q, &a);
        while (a.n > 0) {
            const uint32_t running = q.cursor, pointers = q.at_ptr;
            advance_pointer(&q, a.stage);
            if (q.at_ptr > pointers && q.cursor != running && message == own && behind == a.stage &&
                q.ptr[q.at_ptr - 1].slot == a.stage)
                flag_at(r, FABRIC_P2, q.base_value + q.cursor, &a);
            uint32_t cut = end;
            if (q.at_ptr < q.n_ptr) cut = MIN(cut, q.ptr[q.at_ptr].slot);
            if (q.at_base < q.n_base) cut = MIN(cut, q.base[q.at_base].slot);
            const uint32_t rest = end - cut;
            a.n = cut - a.stage;
            deliver(r, &q, &a);
            message = own;
            behind = cut;
            a.send += a.n;
            a.stage = cut;
            a.n = rest;
        }
    }
    advance_pointer(&q, UINT32_MAX);
    r->p->exit.incoming_base = q.base_value;
    r->p->exit.incoming_delta = q.cursor;
}

/* --- Completion. --- */

static void check_completion(struct rx *r) {
    if (r->p->stopped) return;
    const uint32_t slots = r->t->slots;
    for (uint32_t i = r->me->n_arrivals; i-- > 0;) {
        const struct arrival *a = &r->me->arrivals[i];
        const uint32_t last = a->stage + a->n - 1;
        if (last + TARGET_EXCH_WRITE_DELAY <= slots) break;
        flag(r, FABRIC_C1, last, r->f->plans[a->sender].tile);
    }
    static const uint32_t paired[] = {CONTROL_PAIR, CONTROL_FMT};
    for (uint32_t k = 0; k < ARRAY_LEN(paired); k++) {
        uint32_t n;
        const struct control *v = fabric_line(r->f, r->p, paired[k], &n);
        if (n > 0 && v[n - 1].slot + 1 + TARGET_EXCH_PAIR_TAIL_GUARD > slots)
            flag(r, FABRIC_C1, v[n - 1].slot, FABRIC_NO_TILE);
    }
}

/* Notes for every message whether its own tile (pair) and others accept it; relaxed stores of
 * ones. */
static void mark_accepted(struct rx *r) {
    for (uint32_t i = 0; i < r->me->n_arrivals; i++) {
        const struct arrival *a = &r->me->arrivals[i];
        struct message *msg = &r->f->messages[r->f->pieces[a->piece].message];
        const uint32_t s = r->f->plans[a->sender].phys, d = r->p->phys;
        const bool self = a->paired ? (s | 2) == (d | 2) : s == d;
        __atomic_store_n(self ? &msg->by_self : &msg->by_other, 1, __ATOMIC_RELAXED);
    }
}

static bool pair_in_use(const struct fabric *f, const struct tile_plan *p) {
    const struct fabric_tile *t = &f->phase->tiles[p - f->plans];
    return p->line[CONTROL_PAIR].n > 0 || t->csr.incoming_muxpair != TARGET_EXCH_MUX_NEUTRAL;
}

void fabric_receive_tile(struct fabric *f, uint32_t i, uint32_t thread) {
    struct rx r = {.f = f,
                   .me = &f->workers[thread],
                   .thread = thread,
                   .t = &f->phase->tiles[i],
                   .p = &f->plans[i],
                   .logical = target_logical_of_physical()};
    r.me->n_arrivals = r.me->n_blocked = 0;
    r.p->thread = thread;
    r.p->first_delivery = r.me->out.n;
    const uint16_t partner = f->plan_of[r.p->phys ^ 2];
    const bool pair =
        pair_in_use(f, r.p) || (partner != NO_PLAN && pair_in_use(f, &f->plans[partner]));
    if (pair) select_pairs(&r);
    select_ordinary(&r);
    if (pair && r.me->n_arrivals > 1)
        qsort(r.me->arrivals, r.me->n_arrivals, sizeof *r.me->arrivals, compare_arrivals);
    check_formats(&r);
    mark_accepted(&r);
    place_arrivals(&r);
    check_completion(&r);
    r.p->n_deliveries = r.me->out.n - r.p->first_delivery;
}
