/* A plain composer for the fabric's tests: exchange 12.2 and 12.3 word for word, first fitting offset,
 * no hazards of memory. It makes rows; it does not judge them. */
#ifndef TESTS_FABRIC_COMPOSE_H
#define TESTS_FABRIC_COMPOSE_H

#include "fabric/fabric.h"
#include "isa/isa_exch.h"

#include <stdlib.h>
#include <string.h>

enum comp_kind { COMP_MUX, COMP_NEUTRAL, COMP_PAIR, COMP_PNEUTRAL, COMP_PTR, COMP_PPTR, COMP_FMT };
enum comp_mode { COMP_NONE, COMP_ORDINARY, COMP_PAIRED };

struct comp_event {
    uint32_t label;
    enum comp_kind kind;
    uint32_t value;
};
struct comp_send {
    uint32_t start, n, address, sctl; /* address in items */
};
struct comp_tile {
    struct comp_event *events; /* by label */
    struct comp_send *sends;   /* by start */
    uint32_t n_events, n_sends, room_events, room_sends, borrowed, end;
    enum comp_mode mode;
    uint32_t source_end, pay_end, next_address, fmt, fmt_off; /* fmt_off 0 = none */
    bool listed;               /* has a row of its own */
    uint32_t *words, n_words, room_words;
};
struct comp_message {
    uint32_t source, address, n; /* n items */
    bool paired;
    uint32_t n_to, to[64], at[64]; /* tiles, byte addresses */
};
/* What a message is for one receiver at offset 0. */
struct comp_record {
    uint32_t source_start, pay, guard, n_events, fmt;
    struct comp_event events[5];
    bool early;
};
struct comp_primitive {
    uint32_t start, sctl;
    struct comp_record to[64];
};

static inline struct ptile comp_phys(uint32_t tile) {
    return target_ptile((struct ltile){(uint16_t)tile});
}

static inline void comp_ordinary(const struct comp_message *m, struct comp_primitive *p) {
    const struct ptile s = comp_phys(m->source);
    int32_t start = 0;
    for (uint32_t k = 0; k < m->n_to; k++) start = MAX(start, -target_ttm(s, comp_phys(m->to[k])));
    p->start = (uint32_t)start;
    p->sctl = m->n_to == 1 ? target_direction(s, comp_phys(m->to[0])) : 3;
    for (uint32_t k = 0; k < m->n_to; k++) {
        const struct ptile d = comp_phys(m->to[k]);
        const uint32_t x = (uint32_t)(start + target_ttm(s, d)) + 1, pay = x + 52 + 2 * target_row(d);
        p->to[k] = (struct comp_record){.source_start = x, .pay = pay, .guard = m->n == 52 ? 6 : 5,
            .n_events = 3, .events = {{x, COMP_MUX, s.n}, {pay, COMP_PTR, m->at[k] / 4},
                                      {x + m->n, COMP_NEUTRAL, TARGET_EXCH_MUX_NEUTRAL}}};
    }
}

static inline int32_t comp_late(struct ptile s, struct ptile d) {
    return MAX(target_ttm(s, d), target_ttm(s, target_partner(d)));
}

static inline void comp_paired(const struct comp_message *m, struct comp_primitive *p) {
    const struct ptile s = comp_phys(m->source);
    int32_t start = 0;
    bool self = false;
    for (uint32_t k = 0; k < m->n_to; k++) {
        start = MAX(start, 1 - comp_late(s, comp_phys(m->to[k])));
        self |= m->to[k] / 2 == m->source / 2;
    }
    p->start = (uint32_t)start;
    p->sctl = 4 + (m->n_to == 2 && !self ? target_direction(s, comp_phys(m->to[0])) : 3);
    for (uint32_t k = 0; k < m->n_to; k++) {
        const struct ptile d = comp_phys(m->to[k]);
        const uint32_t x = (uint32_t)(start + comp_late(s, d)), f = x + 51 + 2 * target_row(d);
        const uint32_t fmt = target_direction(s, d);
        struct comp_record r = {.early = target_ttm(s, d) < target_ttm(s, target_partner(d)),
            .pay = f + 2, .fmt = fmt, .n_events = 3,
            .events = {{f, COMP_FMT, fmt}, {f + 2, COMP_PPTR, m->at[k] / 4}, {f + m->n, COMP_FMT, 0}}};
        r.source_start = r.early ? x : f;
        if (r.early) {
            r.events[r.n_events++] = (struct comp_event){x, COMP_PAIR, s.n ^ (d.n & 2u)};
            r.events[r.n_events++] = (struct comp_event){x + m->n, COMP_PNEUTRAL, TARGET_EXCH_MUX_NEUTRAL};
        }
        uint32_t last = 0;
        for (uint32_t e = 0; e < r.n_events; e++) last = MAX(last, r.events[e].label);
        r.guard = last + 7 - MAX(r.source_start + m->n, r.pay + m->n);
        p->to[k] = r;
    }
}

static inline bool comp_is_mux(enum comp_kind k) { return k == COMP_MUX || k == COMP_NEUTRAL; }
/* A pointer may share its label with a mux when both are ordinary (3.4). */
static inline bool comp_clash(const struct comp_event *a, const struct comp_event *b) {
    if (a->label != b->label) return false;
    const bool allowed = (a->kind == COMP_PTR && comp_is_mux(b->kind)) ||
                         (b->kind == COMP_PTR && comp_is_mux(a->kind));
    return !allowed;
}

/* One receiver's view at an offset: the new events and which old ones they replace. */
struct comp_window {
    struct comp_event events[5];
    uint32_t n_events, source_start, pay, source_end, pay_end, horizon, fmt_on;
    bool keep_fmt;
};
static inline struct comp_window comp_view(const struct comp_tile *t, const struct comp_message *m,
                                           const struct comp_record *r, uint32_t k, uint32_t off) {
    struct comp_window w = {.source_start = r->source_start + off, .pay = r->pay + off};
    w.fmt_on = r->pay + off - 2;
    w.keep_fmt = m->paired && t->fmt == r->fmt && t->fmt_off != 0 && t->fmt_off == w.fmt_on;
    const bool carry = !m->paired && t->mode == COMP_ORDINARY && t->next_address == m->at[k];
    for (uint32_t e = 0; e < r->n_events; e++) {
        struct comp_event x = r->events[e];
        if (carry && x.kind == COMP_PTR) continue;
        if (w.keep_fmt && x.kind == COMP_FMT && x.value != 0) continue;
        x.label += off;
        w.events[w.n_events++] = x;
    }
    w.source_end = w.source_start + m->n;
    w.pay_end = w.pay + m->n;
    w.horizon = MAX(w.source_end, w.pay_end) + r->guard;
    return w;
}
static inline bool comp_replaced(const struct comp_tile *t, const struct comp_message *m,
                                 const struct comp_window *w, const struct comp_event *old) {
    if (w->keep_fmt && old->kind == COMP_FMT && old->value == 0 && old->label == t->fmt_off) return true;
    if (w->source_start != t->source_end || old->label != t->source_end) return false;
    if (old->kind == COMP_NEUTRAL) return !m->paired && t->mode == COMP_ORDINARY;
    return old->kind == COMP_PNEUTRAL && m->paired && w->keep_fmt;
}

static inline bool comp_fits_receiver(const struct comp_tile *t, const struct comp_message *m,
                                      const struct comp_window *w, bool is_sender, uint32_t start) {
    if (w->source_start < t->source_end || w->pay < t->pay_end) return false;
    if (m->paired && t->mode == COMP_ORDINARY && w->fmt_on < t->pay_end) return false;
    for (uint32_t a = 0; a < w->n_events; a++) {
        const struct comp_event *x = &w->events[a];
        for (uint32_t b = a + 1; b < w->n_events; b++)
            if (comp_clash(x, &w->events[b])) return false;
        for (uint32_t b = t->n_events; b-- > 0 && t->events[b].label >= x->label;)
            if (comp_clash(x, &t->events[b]) && !comp_replaced(t, m, w, &t->events[b])) return false;
        for (uint32_t s = 0; s < t->n_sends; s++)
            if (x->label == t->sends[s].start || x->label == t->sends[s].start + 1) return false;
        if (is_sender && (x->label == start || x->label == start + 1)) return false;
    }
    return true;
}

static inline bool comp_fits(struct comp_tile *tiles, const struct comp_message *m,
                             const struct comp_primitive *p, uint32_t off) {
    const struct comp_tile *s = &tiles[m->source];
    const uint32_t start = p->start + off, end = start + m->n;
    if (start < s->borrowed) return false;
    for (uint32_t k = 0; k < s->n_sends; k++)
        if (start < s->sends[k].start + s->sends[k].n && s->sends[k].start < end) return false;
    const struct comp_window *own = NULL;
    struct comp_window w[64];
    for (uint32_t k = 0; k < m->n_to; k++) {
        struct comp_tile *t = &tiles[m->to[k]];
        w[k] = comp_view(t, m, &p->to[k], k, off);
        if (t == s) own = &w[k];
        if (!comp_fits_receiver(t, m, &w[k], t == s, start)) return false;
    }
    for (uint32_t e = 0; e < s->n_events; e++)
        if ((s->events[e].label == start || s->events[e].label == start + 1) &&
            !(own != NULL && comp_replaced(s, m, own, &s->events[e])))
            return false;
    if (!m->paired) return true;
    const struct comp_tile *q = &tiles[m->source ^ 1];
    if (q->borrowed > start) return false;
    for (uint32_t k = 0; k < q->n_sends; k++)
        if (q->sends[k].start + q->sends[k].n > start) return false;
    return true;
}

/* --- Encoding (12.2). --- */

struct comp_encoder {
    struct comp_tile *t;
    uint32_t slot, next; /* next: event not yet encoded */
    bool failed;
};
static inline void comp_put(struct comp_encoder *e, uint32_t word) {
    struct comp_tile *t = e->t;
    if (t->n_words == t->room_words) {
        t->room_words = 2 * t->room_words + 16;
        t->words = g_renew(uint32_t, t->words, t->room_words);
    }
    t->words[t->n_words++] = word;
}
static inline void comp_delay(struct comp_encoder *e, uint32_t n) {
    if (n == 0) return;
    comp_put(e, isa_word_delay(n));
    e->slot += n;
}
static inline bool comp_is_two(const struct comp_encoder *e, uint32_t k) {
    return k + 1 < e->t->n_events && e->t->events[k].label == e->t->events[k + 1].label;
}
static inline uint32_t comp_csel(const struct comp_event *x) {
    const bool pointer = x->kind == COMP_PTR || x->kind == COMP_PPTR;
    return comp_is_mux(x->kind) ? ISA_CSEL_MUX : pointer ? ISA_CSEL_PTR
           : x->kind == COMP_FMT ? ISA_CSEL_FMT : ISA_CSEL_PAIR;
}
static inline void comp_put_two(struct comp_encoder *e, uint32_t n, uint32_t address, uint32_t sctl) {
    const struct comp_event *a = &e->t->events[e->next], *b = a + 1;
    const struct comp_event *ptr = a->kind == COMP_PTR ? a : b, *mux = a->kind == COMP_PTR ? b : a;
    uint32_t words[2];
    isa_word_sendpicp(&(struct isa_sendpicp){.n = n, .item_address = address, .sctl = sctl,
                          .p18 = ptr->value, .mux = mux->value}, words);
    if (e->t->n_words % 2 != 0) e->failed = true;
    comp_put(e, words[0]);
    comp_put(e, words[1]);
    e->slot += n;
    e->next += 2;
}
/* The next control outside a message; `boundary`: start of the next message, or the end. */
static inline void comp_outside(struct comp_encoder *e, uint32_t boundary) {
    const struct comp_event *x = &e->t->events[e->next];
    if (comp_is_two(e, e->next)) {
        const uint32_t d = x->label - 1 - e->slot;
        const bool odd = e->t->n_words % 2 != 0;
        e->failed |= (d == 0 && odd) || (d == 1 && !odd);
        if (d > 1 && !odd) comp_delay(e, d - 1);
        if (d > 0) comp_delay(e, x->label - 1 - e->slot);
        uint32_t until = boundary;
        if (e->next + 2 < e->t->n_events) until = MIN(until, e->t->events[e->next + 2].label - 1);
        comp_put_two(e, MIN(64, until - e->slot), 0, 0);
        return;
    }
    const uint32_t csel = comp_csel(x);
    const bool pic = csel == ISA_CSEL_PTR || csel == ISA_CSEL_FMT;
    const uint32_t max = pic ? ISA_DELAYPIC_MAX : ISA_DELAYXPIC_MAX;
    if (x->label - e->slot > max) comp_delay(e, x->label - e->slot - max);
    const uint32_t n = x->label - e->slot;
    comp_put(e, pic ? isa_word_delaypic(n, csel == ISA_CSEL_FMT, x->value)
                    : isa_word_delayxpic(n, csel == ISA_CSEL_PAIR, x->value));
    e->slot = x->label;
    e->next++;
}
/* Items of a message up to slot `until`; aligned: the next word must be at an even index. */
static inline void comp_items(struct comp_encoder *e, const struct comp_send *m, uint32_t until,
                              bool aligned) {
    uint32_t chunk[1024], n = 0, slot = e->slot;
    while (slot < until) {
        const uint32_t max = slot == m->start ? ISA_SEND_MAX : ISA_SENDOFF_MAX;
        BUG_ON(n + 1 >= ARRAY_LEN(chunk));
        chunk[n] = MIN(max, until - slot);
        slot += chunk[n++];
    }
    if (aligned && (e->t->n_words + n) % 2 != 0) {
        uint32_t k = n;
        while (k > 0 && chunk[k - 1] < 2) k--;
        if (k == 0) {
            e->failed = true;
        } else {
            memmove(chunk + k, chunk + k - 1, (n - k + 1) * sizeof *chunk);
            chunk[k - 1] = 1;
            chunk[k]--;
            n++;
        }
    }
    for (uint32_t k = 0; k < n; k++) {
        comp_put(e, e->slot == m->start ? isa_word_send(chunk[k], m->address, m->sctl)
                                        : isa_word_sendoff(chunk[k], 0, m->sctl));
        e->slot += chunk[k];
    }
}
static inline void comp_message_row(struct comp_encoder *e, const struct comp_send *m) {
    const uint32_t end = m->start + m->n;
    struct comp_tile *t = e->t;
    while (e->next < t->n_events && t->events[e->next].label <= end) {
        const struct comp_event *x = &t->events[e->next];
        const bool two = comp_is_two(e, e->next);
        comp_items(e, m, x->label - 1, two);
        const uint32_t after = e->next + (two ? 2 : 1);
        uint32_t n = MIN(64, end - e->slot);
        if (after < t->n_events) {
            const uint32_t gap = t->events[after].label - 1 - e->slot;
            const uint32_t words = t->n_words + (two ? 2 : 1);
            if (gap <= n && comp_is_two(e, after) && words % 2 != 0 && t->events[after].label <= end) {
                e->failed |= gap == 1;
                n = MAX(gap, 2) - 1;
            }
            n = MIN(n, gap);
        }
        if (two) {
            comp_put_two(e, n, m->address + (e->slot - m->start), m->sctl);
            continue;
        }
        comp_put(e, isa_word_sendpic(n, comp_csel(x), x->value));
        e->slot += n;
        e->next++;
    }
    comp_items(e, m, end, false);
}
static inline bool comp_encode(struct comp_tile *t) {
    struct comp_encoder e = {.t = t};
    t->n_words = 0;
    for (uint32_t k = 0; k <= t->n_sends; k++) {
        const uint32_t boundary = k < t->n_sends ? t->sends[k].start : t->end;
        while (e.next < t->n_events && (k == t->n_sends || t->events[e.next].label < boundary))
            comp_outside(&e, boundary);
        if (e.failed) return false;
        comp_delay(&e, boundary - e.slot);
        if (k < t->n_sends) comp_message_row(&e, &t->sends[k]);
    }
    comp_put(&e, isa_word_br(10));
    return !e.failed;
}

/* --- Appending. --- */

static inline void comp_add_event(struct comp_tile *t, const struct comp_event *x) {
    if (t->n_events == t->room_events) {
        t->room_events = 2 * t->room_events + 8;
        t->events = g_renew(struct comp_event, t->events, t->room_events);
    }
    uint32_t k = t->n_events++;
    for (; k > 0 && t->events[k - 1].label > x->label; k--) t->events[k] = t->events[k - 1];
    t->events[k] = *x;
}
static inline void comp_add_send(struct comp_tile *t, const struct comp_send *x) {
    if (t->n_sends == t->room_sends) {
        t->room_sends = 2 * t->room_sends + 8;
        t->sends = g_renew(struct comp_send, t->sends, t->room_sends);
    }
    uint32_t k = t->n_sends++;
    for (; k > 0 && t->sends[k - 1].start > x->start; k--) t->sends[k] = t->sends[k - 1];
    t->sends[k] = *x;
}
static inline struct comp_tile comp_copy(const struct comp_tile *t) {
    struct comp_tile c = *t;
    c.events = g_memdup2(t->events, t->room_events * sizeof *t->events);
    c.sends = g_memdup2(t->sends, t->room_sends * sizeof *t->sends);
    c.words = NULL;
    c.n_words = c.room_words = 0;
    return c;
}
static inline void comp_release(struct comp_tile *t) {
    g_free(t->events);
    g_free(t->sends);
    g_free(t->words);
}
static inline void comp_receive(struct comp_tile *t, const struct comp_message *m,
                                const struct comp_record *r, uint32_t k, uint32_t off) {
    const struct comp_window w = comp_view(t, m, r, k, off);
    uint32_t kept = 0;
    for (uint32_t e = 0; e < t->n_events; e++)
        if (!comp_replaced(t, m, &w, &t->events[e])) t->events[kept++] = t->events[e];
    t->n_events = kept;
    for (uint32_t e = 0; e < w.n_events; e++) comp_add_event(t, &w.events[e]);
    t->mode = m->paired ? COMP_PAIRED : COMP_ORDINARY;
    t->source_end = w.source_end;
    t->pay_end = w.pay_end;
    t->next_address = m->at[k] + 4 * m->n;
    t->fmt = r->fmt;
    t->fmt_off = m->paired ? w.fmt_on + m->n : 0;
    t->end = MAX(t->end, w.horizon);
    t->listed = true;
}
/* Appends at the first offset >= from that fits and can be encoded; returns the first send slot. With
 * encode false the touched rows are not encoded here (comp_encode does it at the end). */
static inline uint32_t comp_append(struct comp_tile *tiles, const struct comp_message *m,
                                   uint32_t from, bool encode) {
    struct comp_primitive p;
    if (m->paired) comp_paired(m, &p);
    else comp_ordinary(m, &p);
    const uint32_t sender_end = MAX(6, p.start + m->n);
    for (uint32_t off = from;; off++) {
        if (!comp_fits(tiles, m, &p, off)) continue;
        const uint32_t touched = m->n_to + 2;
        uint32_t list[66];
        struct comp_tile saved[66];
        memcpy(list, m->to, m->n_to * sizeof *list);
        list[m->n_to] = m->source;
        list[m->n_to + 1] = m->source ^ 1;
        for (uint32_t k = 0; encode && k < touched; k++) saved[k] = comp_copy(&tiles[list[k]]);
        comp_add_send(&tiles[m->source], &(struct comp_send){p.start + off, m->n,
                          m->address / (m->paired ? 8 : 4), p.sctl});
        struct comp_tile *s = &tiles[m->source], *q = &tiles[m->source ^ 1];
        s->listed = true;
        s->end = MAX(s->end, sender_end + off);
        for (uint32_t k = 0; k < m->n_to; k++) comp_receive(&tiles[m->to[k]], m, &p.to[k], k, off);
        if (m->paired) {
            q->borrowed = MAX(q->borrowed, sender_end + off);
            q->end = MAX(q->end, sender_end + off);
        }
        bool ok = true;
        for (uint32_t k = 0; encode && k < touched; k++) ok &= comp_encode(&tiles[list[k]]);
        for (uint32_t k = 0; encode && k < touched; k++) {
            if (ok) {
                comp_release(&saved[k]);
            } else if (k == 0 || list[k] != list[0]) {
                bool seen = false;
                for (uint32_t j = 0; j < k; j++) seen |= list[j] == list[k];
                if (!seen) {
                    comp_release(&tiles[list[k]]);
                    tiles[list[k]] = saved[k];
                } else {
                    comp_release(&saved[k]);
                }
            }
        }
        if (ok) return p.start + off;
    }
}

/* The rows as tiles of a phase; returns their number. */
static inline uint32_t comp_tiles(struct comp_tile *tiles, uint32_t n, struct fabric_tile *ret) {
    uint32_t k = 0;
    for (uint32_t t = 0; t < n; t++)
        if (tiles[t].listed) {
            BUG_ON(!comp_encode(&tiles[t]));
            ret[k++] = (struct fabric_tile){.tile = (uint16_t)t, .words = tiles[t].words,
                .n_words = tiles[t].n_words, .csr = fabric_csr_initial()};
        }
    return k;
}

/* Adds a message to what a phase must deliver. */
static inline void comp_expect_add(struct fabric_expect *e, const struct comp_message *m) {
    const uint32_t x = e->n_transfers++;
    e->source[x] = (uint16_t)m->source;
    e->source_address[x] = m->address;
    e->words[x] = m->n * (m->paired ? 2 : 1);
    for (uint32_t k = 0; k < m->n_to; k++) {
        e->tile[e->n_receivers] = (uint16_t)m->to[k];
        e->address[e->n_receivers++] = m->at[k];
    }
    e->first[x + 1] = e->n_receivers;
}

#endif
