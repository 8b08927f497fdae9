/* A second fabric for the tests of room fabric: slot by slot and item by item, straight from exchange
 * 10.3 and 10.4, with the decoder of room isa. It says which bytes end up where (slow_run), and by
 * itself whether a few conditions of 10.6 hold that a single slot can show (slow_judge): lanes, formats,
 * guards, the state on exit, rule 3.3-7, complete pairs, reads beside writes. It shares no code with the
 * room. Cost: slots x tiles, so phases of few tiles. */
#ifndef TESTS_FABRIC_SLOW_H
#define TESTS_FABRIC_SLOW_H

#include "fabric/fabric.h"
#include "isa/isa_exch.h"

#include <stdlib.h>
#include <string.h>

struct slow_item {
    uint32_t address;
    uint8_t sctl; /* 0 = nothing on the bus */
    bool first;   /* of a message */
};
struct slow_tile {
    uint32_t phys, slots, room;
    struct slow_item *item;
    uint32_t *mux, *pair, *fmt; /* value in force in a slot; UINT32_MAX = no event (while walking) */
    uint32_t *ptr, *base;       /* event in a slot or UINT32_MAX; base: INCOMING_BASE */
    bool *control, *paired_control; /* a control takes effect in the slot; one of a pair */
    uint32_t mux_end, pair_end, fmt_end; /* on exit */
};
struct slow_move { /* one word on its way */
    uint32_t read, write;
    uint16_t source, tile;
    uint32_t from, to;
    uint32_t value;
};

enum { SLOW_INCOMING_BASE = 0xa4, SLOW_OUTGOING_BASE = 0xa7 };

/* The instruction at word `at`, n = the slots that it takes in a row; false at the row's end. */
static inline bool slow_decode(const struct fabric_tile *t, uint32_t at, struct isa_exch *ret) {
    if (at >= t->n_words) return false;
    *ret = isa_exch_decode(t->words + at, t->n_words - at);
    if (ret->kind == ISA_EXCH_SETZI) ret->n = 1;
    if (ret->kind == ISA_EXCH_PUT) {
        if (ret->sel != SLOW_INCOMING_BASE && ret->sel != SLOW_OUTGOING_BASE) return false;
        ret->n = 13;
    }
    return ret->kind != ISA_EXCH_RETURN && ret->kind != ISA_EXCH_OTHER;
}

static inline uint32_t slow_length(const struct fabric_tile *t) {
    uint32_t slots = 0;
    struct isa_exch x;
    for (uint32_t at = 0; slow_decode(t, at, &x);) {
        slots += x.n;
        at += x.n_words;
    }
    return slots;
}

static inline void slow_control(struct slow_tile *s, uint32_t csel, uint32_t slot, uint32_t value) {
    if (csel == ISA_CSEL_MUX) s->mux[slot] = value;
    if (csel == ISA_CSEL_PAIR) s->pair[slot] = value;
    if (csel == ISA_CSEL_FMT) s->fmt[slot] = value;
    if (csel == ISA_CSEL_PTR) s->ptr[slot] = value;
    s->control[slot] = true;
    s->paired_control[slot] |= csel == ISA_CSEL_PAIR || csel == ISA_CSEL_FMT;
}

/* The controls that an instruction starting in slot c carries. */
static inline void slow_controls(struct slow_tile *s, const struct isa_exch *x, uint32_t c) {
    const uint32_t pic = x->sel == ISA_PIC_FMT ? ISA_CSEL_FMT : ISA_CSEL_PTR;
    if (x->kind == ISA_EXCH_SENDPICP) {
        slow_control(s, pic, c, x->value);
        slow_control(s, x->pair ? ISA_CSEL_PAIR : ISA_CSEL_MUX, c, x->mux);
    }
    if (x->kind == ISA_EXCH_SENDPIC) slow_control(s, x->sel, c, x->value);
    if (x->kind == ISA_EXCH_DELAYPIC) slow_control(s, pic, c + x->n - 1, x->value);
    if (x->kind == ISA_EXCH_DELAYXPIC)
        slow_control(s, x->sel == ISA_XPIC_PAIR ? ISA_CSEL_PAIR : ISA_CSEL_MUX, c + x->n - 1, x->value);
}

static inline void slow_walk(struct slow_tile *s, const struct fabric_tile *t) {
    uint32_t c = 0, cursor = 0, sctl = 0, base = t->csr.outgoing_base, running = UINT32_MAX, m[16] = {0};
    if (t->m != NULL) memcpy(m, t->m, sizeof m);
    m[15] = 0;
    struct isa_exch x;
    for (uint32_t at = 0; slow_decode(t, at, &x);) {
        at += x.n_words;
        slow_controls(s, &x, c);
        if (x.kind == ISA_EXCH_SETZI && x.m != 15) m[x.m] = x.value;
        if (x.kind == ISA_EXCH_PUT && x.sel == SLOW_OUTGOING_BASE) base = m[x.m];
        if (x.kind == ISA_EXCH_PUT && x.sel == SLOW_INCOMING_BASE) s->base[c + x.n - 1] = m[x.m];
        const bool both = x.kind == ISA_EXCH_SENDPICP, starts = x.kind == ISA_EXCH_SEND;
        const bool goes_on = x.kind == ISA_EXCH_SENDOFF || x.kind == ISA_EXCH_SENDPIC;
        if (both && x.sctl == 0) running = UINT32_MAX; /* the stream is closed */
        const bool sends = starts || (both && x.sctl != 0) || (goes_on && running != UINT32_MAX);
        const bool fresh = starts || (both && running != c);
        if (starts || (both && x.sctl != 0)) cursor = x.address;
        if (x.kind == ISA_EXCH_SENDOFF) cursor += x.address;
        if (starts || both || x.kind == ISA_EXCH_SENDOFF) sctl = x.sctl;
        for (uint32_t i = 0; sends && i < x.n; i++) {
            const uint32_t size = (sctl & ISA_SCTL_64) != 0 ? 8 : 4;
            s->item[c + i] = (struct slow_item){base + size * cursor++, (uint8_t)sctl, fresh && i == 0};
        }
        c += x.n;
        if (sends) running = c;
    }
}

/* Events to values in force from a slot on; returns the value on exit. */
static inline uint32_t slow_hold(uint32_t *line, uint32_t room, uint32_t entry) {
    uint32_t value = entry;
    for (uint32_t c = 0; c < room; c++) {
        if (line[c] != UINT32_MAX) value = line[c];
        line[c] = value;
    }
    return value;
}

static inline uint32_t *slow_line(uint32_t room) {
    uint32_t *line = g_new(uint32_t, room);
    memset(line, 0xff, room * sizeof *line);
    return line;
}

static inline struct slow_tile slow_start(const struct fabric_tile *t) {
    struct slow_tile s = {.phys = target_ptile((struct ltile){t->tile}).n, .slots = slow_length(t)};
    s.room = s.slots + 1;
    s.item = g_new0(struct slow_item, s.room);
    s.control = g_new0(bool, s.room);
    s.paired_control = g_new0(bool, s.room);
    uint32_t **const lines[] = {&s.mux, &s.pair, &s.fmt, &s.ptr, &s.base};
    for (uint32_t k = 0; k < ARRAY_LEN(lines); k++) *lines[k] = slow_line(s.room);
    slow_walk(&s, t);
    s.mux_end = slow_hold(s.mux, s.room, t->csr.incoming_mux);
    s.pair_end = slow_hold(s.pair, s.room, t->csr.incoming_muxpair);
    s.fmt_end = slow_hold(s.fmt, s.room, t->csr.incoming_format);
    return s;
}

static inline void slow_stop(struct slow_tile *s) {
    g_free(s->item);
    g_free(s->control);
    g_free(s->paired_control);
    g_free(s->mux);
    g_free(s->pair);
    g_free(s->fmt);
    g_free(s->ptr);
    g_free(s->base);
}

struct slow_phase {
    struct slow_tile *tiles;
    int32_t by_phys[TARGET_N_TILES];
    uint32_t n;
    GArray *moves;
    GString *wrong; /* what slow_judge found, or NULL: not asked */
};

static inline const struct slow_tile *slow_find(const struct slow_phase *p, uint32_t phys) {
    return phys < TARGET_N_TILES && p->by_phys[phys] >= 0 ? &p->tiles[p->by_phys[phys]] : NULL;
}
static inline struct ptile slow_ptile(uint32_t phys) { return (struct ptile){(uint16_t)phys}; }

/* Pair mux of `owner` in a slot; neutral outside its row. */
static inline uint32_t slow_pair(const struct slow_tile *owner, int64_t slot) {
    if (owner == NULL || slot < 0 || slot >= owner->slots) return TARGET_EXCH_MUX_NEUTRAL;
    return owner->pair[slot];
}

/* The item that tile `from` puts on its bus in `slot` towards `to`, if its width is right. */
static inline const struct slow_item *slow_item(const struct slow_phase *p, uint32_t from,
                                                uint32_t to, int64_t slot, bool paired) {
    const struct slow_tile *s = slow_find(p, from);
    if (s == NULL || slot < 0 || slot >= s->slots) return NULL;
    const struct slow_item *it = &s->item[slot];
    const bool width = ((it->sctl & ISA_SCTL_64) != 0) == paired;
    const bool way = (it->sctl & target_direction(slow_ptile(from), slow_ptile(to))) != 0;
    return width && way ? it : NULL;
}

/* What reaches tile r's pointer stage in slot z, with its sender and send slot. */
static inline const struct slow_item *slow_arrival(const struct slow_phase *p,
                                                   const struct slow_tile *r, int64_t z,
                                                   uint32_t *ret_from, int64_t *ret_slot) {
    const int64_t x = z - 52 - 2 * (int64_t)(r->phys >> 6);
    const struct slow_tile *partner = slow_find(p, r->phys ^ 2);
    if (x >= 0 && x < r->slots && slow_pair(r, x) == TARGET_EXCH_MUX_NEUTRAL &&
        slow_pair(partner, x - 1) == TARGET_EXCH_MUX_NEUTRAL && r->mux[x] < TARGET_N_TILES) {
        *ret_from = r->mux[x];
        *ret_slot = x - target_ttm(slow_ptile(*ret_from), slow_ptile(r->phys));
        const struct slow_item *it = slow_item(p, *ret_from, r->phys, *ret_slot, false);
        if (it != NULL) return it;
    }
    /* Paired: stage x is t + t2, so the early member's mux decides in slot x - 1. */
    const struct slow_tile *owners[] = {r, partner};
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t value = slow_pair(owners[k], x - 1);
        if (value >= TARGET_N_TILES) continue;
        const uint32_t from = value ^ (owners[k]->phys & 2);
        if (from >= TARGET_N_TILES) continue;
        const int32_t own = target_ttm(slow_ptile(from), slow_ptile(owners[k]->phys));
        const int32_t other = target_ttm(slow_ptile(from), slow_ptile(owners[k]->phys ^ 2));
        if (own > other) continue;
        *ret_from = from;
        *ret_slot = x - 1 - own;
        const struct slow_item *it = slow_item(p, from, r->phys, *ret_slot, true);
        if (it != NULL) return it;
    }
    return NULL;
}

/* --- Conditions of one slot. --- */

static inline void slow_wrong(struct slow_phase *p, const struct slow_tile *s, const char *what, int64_t slot) {
    if (p->wrong != NULL && p->wrong->len < 400)
        g_string_append_printf(p->wrong, "%s on physical tile %u, slot %d; ", what, s->phys, (int)slot);
}

static inline uint32_t slow_format(const struct slow_tile *s, int64_t slot) {
    return slot < 0 ? 0 : slot < s->slots ? s->fmt[slot] : s->fmt_end;
}

/* 10.4-6 and 10.5: format and guard of one arriving item; 10.4-8: both members take a paired one. */
static inline void slow_judge_item(struct slow_phase *p, const struct slow_tile *r, int64_t z,
                                   uint32_t from, int64_t slot, bool paired) {
    const uint32_t want = paired ? target_direction(slow_ptile(from), slow_ptile(r->phys)) : 0;
    for (uint32_t k = 0; k < (paired ? 1 : 3); k++)
        if (slow_format(r, z - 2 + k) != want) slow_wrong(p, r, "format", z - 2 + k);
    if (z + 7 > r->slots) slow_wrong(p, r, "guard", z);
    if (!paired) return;
    const struct slow_tile *partner = slow_find(p, r->phys ^ 2);
    uint32_t other;
    int64_t when;
    const int64_t shift = 2 * ((int64_t)(r->phys >> 6) - (int64_t)((r->phys ^ 2) >> 6));
    const bool both = partner != NULL && slow_arrival(p, partner, z - shift, &other, &when) != NULL &&
                      other == from && when == slot;
    if (!both) slow_wrong(p, r, "half a pair", z);
}

/* Lanes, rule 3.3-7, guards of paired controls, exit. */
static inline void slow_judge_tile(struct slow_phase *p, const struct slow_tile *s) {
    const struct slow_tile *partner = slow_find(p, s->phys ^ 2);
    for (uint32_t c = 0; c < s->slots; c++) {
        const struct slow_item *it = &s->item[c];
        const bool sends = (it->sctl & ISA_SCTL_BOTH) != 0;
        const struct slow_item *lent = partner != NULL && c < partner->slots ? &partner->item[c] : NULL;
        if (sends && lent != NULL && lent->sctl > ISA_SCTL_64) slow_wrong(p, s, "lane", c);
        if (it->first && (s->control[c] || (c > 0 && s->control[c - 1]))) slow_wrong(p, s, "label", c);
        if (s->paired_control[c] && c + 8 > s->slots) slow_wrong(p, s, "paired guard", c);
    }
    if (s->mux_end != TARGET_EXCH_MUX_NEUTRAL || s->pair_end != TARGET_EXCH_MUX_NEUTRAL || s->fmt_end != 0)
        slow_wrong(p, s, "exit", s->slots);
}

/* 6.3: a read in slot t beside a word at the pointer stage in slot z, 1 <= t - z <= 6, one element. */
static inline void slow_judge_memory(struct slow_phase *p, const struct slow_move *m) {
    const struct slow_tile *r = slow_find(p, target_ptile((struct ltile){m->tile}).n);
    for (uint32_t t = m->write - 6; t < m->write && t < r->slots; t++) {
        const struct slow_item *it = &r->item[t];
        if ((it->sctl & ISA_SCTL_BOTH) == 0 || !target_in_sram(it->address)) continue;
        if (target_element(it->address) == target_element(m->to)) slow_wrong(p, r, "element", t);
    }
}

/* --- The run. --- */

static inline void slow_receive(struct slow_phase *p, uint32_t i, const struct fabric_tile *t) {
    const struct slow_tile *r = &p->tiles[i];
    uint32_t cursor = t->csr.incoming_delta, base = t->csr.incoming_base;
    const struct slow_tile *partner = slow_find(p, r->phys ^ 2); /* its pair mux may hold for longer */
    const int64_t end = partner == NULL ? r->slots : MAX(r->slots, partner->slots);
    for (int64_t z = 0; z < end + 120; z++) {
        if (z < r->slots && r->ptr[z] != UINT32_MAX) cursor = 4 * r->ptr[z];
        if (z < r->slots && r->base[z] != UINT32_MAX) base = r->base[z];
        uint32_t from;
        int64_t slot;
        const struct slow_item *it = slow_arrival(p, r, z, &from, &slot);
        if (it == NULL) continue;
        const bool paired = (it->sctl & ISA_SCTL_64) != 0;
        if (p->wrong != NULL) slow_judge_item(p, r, z, from, slot, paired);
        if (paired && (base + cursor) % 8 != 0) slow_wrong(p, r, "alignment", z);
        for (uint32_t k = 0; k < (paired ? 2 : 1); k++) {
            const struct slow_move m = {.read = (uint32_t)slot, .write = (uint32_t)z + 7,
                .source = target_ltile(slow_ptile(from)).n, .tile = t->tile,
                .from = it->address + 4 * k, .to = base + cursor + 4 * k};
            g_array_append_val(p->moves, m);
        }
        cursor += paired ? 8 : 4;
    }
}

static inline int slow_by_read(const void *a, const void *b) {
    const struct slow_move *x = *(struct slow_move *const *)a, *y = *(struct slow_move *const *)b;
    return (x->read > y->read) - (x->read < y->read);
}
static inline int slow_by_write(const void *a, const void *b) {
    const struct slow_move *x = *(struct slow_move *const *)a, *y = *(struct slow_move *const *)b;
    if (x->write != y->write) return (x->write > y->write) - (x->write < y->write);
    return (x > y) - (x < y); /* of one tile: in order of arrival */
}

/* Reads and writes in order of slots, the writes of a slot before its reads. */
static inline void slow_apply(GArray *moves, struct sram *s) {
    const uint32_t n = moves->len;
    struct slow_move *m = (struct slow_move *)(void *)moves->data;
    struct slow_move **reads = g_new(struct slow_move *, n + 1), **writes = g_new(struct slow_move *, n + 1);
    for (uint32_t k = 0; k < n; k++) reads[k] = writes[k] = &m[k];
    qsort(reads, n, sizeof *reads, slow_by_read);
    qsort(writes, n, sizeof *writes, slow_by_write);
    for (uint32_t a = 0, b = 0; b < n;) {
        if (a < n && reads[a]->read < writes[b]->write) {
            memcpy(&reads[a]->value, sram_at(s, reads[a]->source, reads[a]->from), 4);
            a++;
            continue;
        }
        memcpy(sram_at(s, writes[b]->tile, writes[b]->to), &writes[b]->value, 4);
        sram_mark_written(s, writes[b]->tile, writes[b]->to, 4);
        b++;
    }
    g_free(reads);
    g_free(writes);
}

/* Executes the rows on s. Addresses must be inside SRAM: false (and nothing done) otherwise. `wrong`,
 * when given, gets the conditions of this file that do not hold; it stays empty when all do. */
static inline bool slow_judge(const struct fabric_tile *tiles, uint32_t n, struct sram *s, GString *wrong) {
    struct slow_phase *p = g_new0(struct slow_phase, 1);
    memset(p->by_phys, 0xff, sizeof p->by_phys);
    p->n = n;
    p->wrong = wrong;
    p->tiles = g_new0(struct slow_tile, n);
    p->moves = g_array_new(FALSE, FALSE, sizeof(struct slow_move));
    for (uint32_t i = 0; i < n; i++) {
        p->tiles[i] = slow_start(&tiles[i]);
        p->by_phys[p->tiles[i].phys] = (int32_t)i;
    }
    for (uint32_t i = 0; i < n; i++) slow_receive(p, i, &tiles[i]);
    bool ok = true;
    for (uint32_t k = 0; k < p->moves->len; k++) {
        const struct slow_move *m = &g_array_index(p->moves, struct slow_move, k);
        ok &= sram_range_ok(m->from, 4) && sram_range_ok(m->to, 4);
        if (ok && wrong != NULL) slow_judge_memory(p, m);
    }
    for (uint32_t i = 0; i < n && wrong != NULL; i++) slow_judge_tile(p, &p->tiles[i]);
    if (ok) slow_apply(p->moves, s);
    for (uint32_t i = 0; i < n; i++) slow_stop(&p->tiles[i]);
    g_array_free(p->moves, TRUE);
    g_free(p->tiles);
    g_free(p);
    return ok;
}

static inline bool slow_run(const struct fabric_tile *tiles, uint32_t n, struct sram *s) {
    return slow_judge(tiles, n, s, NULL);
}

#endif
