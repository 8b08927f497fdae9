/* Helpers of the fabric's tests: the phases of tests/data/phases, contents that name their place, and
 * a second fabric that works slot by slot and item by item (exchange 10.3, 10.4), with the decoder of
 * room isa. It knows nothing of faults: it says which bytes end up where. */
#ifndef TESTS_FABRIC_HELP_H
#define TESTS_FABRIC_HELP_H

#include "fabric/fabric.h"
#include "isa/isa_exch.h"

#include <stdlib.h>
#include <string.h>

struct help_case {
    struct fabric_rows rows;
    struct fabric_expect expect;
    struct fabric_tile *tiles;
    uint32_t n;
};

static inline char *help_path(const char *name, const char *what) {
    char *file = g_strdup_printf("%s.%s.zst", name, what);
    char *path = g_build_filename(g_getenv("IPU_SOURCE"), "tests/data/phases", file, NULL);
    g_free(file);
    return path;
}

/* Fresh tiles of a case: registers as before the phase. */
static inline void help_tiles(struct help_case *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        c->tiles[i] = (struct fabric_tile){.tile = c->rows.tile[i],
            .words = c->rows.words + c->rows.first[i],
            .n_words = c->rows.first[i + 1] - c->rows.first[i], .csr = fabric_csr_initial()};
        c->tiles[i].csr.incoming_base = c->rows.base[i];
    }
}

/* with_problem: NAME.json.zst exists. */
static inline struct help_case help_load(const char *name, bool with_problem) {
    struct help_case c = {0};
    GError *error = NULL;
    char *rows = help_path(name, "rows"), *problem = help_path(name, "json");
    fabric_rows_read(rows, &c.rows, &error);
    g_assert_no_error(error);
    if (with_problem) fabric_expect_read(problem, 0, &c.expect, &error);
    g_assert_no_error(error);
    g_free(rows);
    g_free(problem);
    c.n = c.rows.n_active;
    c.tiles = g_new0(struct fabric_tile, c.n);
    help_tiles(&c);
    return c;
}

static inline void help_free(struct help_case *c) {
    fabric_rows_clear(&c->rows);
    fabric_expect_clear(&c->expect);
    g_free(c->tiles);
}

/* A word that names its place. */
static inline uint32_t help_word(uint32_t tile, uint32_t address) {
    return (uint32_t)rand_u64(1, tile, address);
}

static inline uint32_t help_get(const struct sram *s, uint32_t tile, uint32_t address) {
    uint32_t v;
    memcpy(&v, sram_at(s, tile, address), 4);
    return v;
}

static inline void help_fill(struct sram *s, uint32_t tile, uint32_t address, uint32_t words) {
    for (uint32_t k = 0; k < words; k++) {
        const uint32_t v = help_word(tile, address + 4 * k);
        memcpy(sram_at(s, tile, address + 4 * k), &v, 4);
    }
    sram_mark_written(s, tile, address, 4 * words);
}

/* SRAM with all sources of the list filled. */
static inline struct sram *help_sources(const struct fabric_expect *e) {
    struct sram *s = sram_new(TARGET_N_TILES);
    for (uint32_t x = 0; x < e->n_transfers; x++)
        help_fill(s, e->source[x], e->source_address[x], e->words[x]);
    return s;
}

/* Number of words in which two memories (contents or written-bits) differ on the tiles of a case. */
static inline uint32_t help_differences(const struct sram *a, const struct sram *b,
                                        const struct help_case *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t t = c->tiles[i].tile;
        for (uint32_t w = 0; w < SRAM_WRITTEN_WORDS; w++) {
            const uint64_t wa = sram_written(a, t)[w], wb = sram_written(b, t)[w];
            n += (uint32_t)__builtin_popcountll(wa ^ wb);
            for (uint64_t both = wa & wb; both != 0; both &= both - 1) {
                const uint32_t address = TARGET_SRAM_BASE + 4 * (w * 64 + (uint32_t)__builtin_ctzll(both));
                n += help_get(a, t, address) != help_get(b, t, address);
            }
        }
    }
    return n;
}

/* --- Slot by slot. --- */

struct slow_item {
    uint32_t address;
    uint8_t sctl; /* 0 = nothing on the bus */
};
struct slow_tile {
    uint32_t phys, slots, room;
    struct slow_item *item;
    uint16_t *mux, *pair, *fmt; /* value in force in a slot; UINT16_MAX = no event (while walking) */
    uint32_t *ptr;              /* event in a slot or UINT32_MAX */
};
struct slow_move { /* one word on its way */
    uint32_t read, write;
    uint16_t source, tile;
    uint32_t from, to;
    uint32_t value;
};

static inline uint32_t slow_length(const struct fabric_tile *t) {
    uint32_t slots = 0;
    for (uint32_t at = 0; at < t->n_words;) {
        const struct isa_exch x = isa_exch_decode(t->words + at, t->n_words - at);
        if (x.kind == ISA_EXCH_RETURN || x.kind == ISA_EXCH_OTHER) break;
        slots += x.n;
        at += x.n_words;
    }
    return slots;
}

static inline void slow_control(struct slow_tile *s, uint32_t csel, uint32_t slot, uint32_t value) {
    if (csel == ISA_CSEL_MUX) s->mux[slot] = (uint16_t)value;
    if (csel == ISA_CSEL_PAIR) s->pair[slot] = (uint16_t)value;
    if (csel == ISA_CSEL_FMT) s->fmt[slot] = (uint16_t)value;
    if (csel == ISA_CSEL_PTR) s->ptr[slot] = value;
}

static inline void slow_walk(struct slow_tile *s, const struct fabric_tile *t) {
    uint32_t c = 0, cursor = 0, sctl = 0;
    bool open = false;
    for (uint32_t at = 0; at < t->n_words;) {
        const struct isa_exch x = isa_exch_decode(t->words + at, t->n_words - at);
        if (x.kind == ISA_EXCH_RETURN || x.kind == ISA_EXCH_OTHER) break;
        at += x.n_words;
        const bool sends = x.kind == ISA_EXCH_SEND || x.kind == ISA_EXCH_SENDOFF ||
                           x.kind == ISA_EXCH_SENDPIC ||
                           (x.kind == ISA_EXCH_SENDPICP && x.sctl != 0);
        if (x.kind == ISA_EXCH_SENDPICP) {
            slow_control(s, x.sel == ISA_PIC_FMT ? ISA_CSEL_FMT : ISA_CSEL_PTR, c, x.value);
            slow_control(s, x.pair ? ISA_CSEL_PAIR : ISA_CSEL_MUX, c, x.mux);
            if (x.sctl == 0) open = false;
        }
        if (x.kind == ISA_EXCH_SENDPIC) slow_control(s, x.sel, c, x.value);
        if (x.kind == ISA_EXCH_DELAYPIC)
            slow_control(s, x.sel == ISA_PIC_FMT ? ISA_CSEL_FMT : ISA_CSEL_PTR, c + x.n - 1, x.value);
        if (x.kind == ISA_EXCH_DELAYXPIC)
            slow_control(s, x.sel == ISA_XPIC_PAIR ? ISA_CSEL_PAIR : ISA_CSEL_MUX, c + x.n - 1, x.value);
        if (x.kind == ISA_EXCH_SEND || (x.kind == ISA_EXCH_SENDPICP && x.sctl != 0)) {
            cursor = x.address;
            open = true;
        }
        if (x.kind == ISA_EXCH_SENDOFF) cursor += x.address;
        if (x.kind != ISA_EXCH_SENDPIC && sends) sctl = x.sctl;
        for (uint32_t i = 0; sends && open && i < x.n; i++) {
            const uint32_t size = (sctl & ISA_SCTL_64) != 0 ? 8 : 4;
            s->item[c + i] = (struct slow_item){t->csr.outgoing_base + size * cursor++, (uint8_t)sctl};
        }
        c += x.n;
    }
}

static inline struct slow_tile slow_start(const struct fabric_tile *t) {
    struct slow_tile s = {.phys = target_ptile((struct ltile){t->tile}).n, .slots = slow_length(t)};
    s.room = s.slots + 1;
    s.item = g_new0(struct slow_item, s.room);
    s.mux = g_new(uint16_t, s.room);
    s.pair = g_new(uint16_t, s.room);
    s.fmt = g_new(uint16_t, s.room);
    s.ptr = g_new(uint32_t, s.room);
    memset(s.mux, 0xff, s.room * 2);
    memset(s.pair, 0xff, s.room * 2);
    memset(s.fmt, 0xff, s.room * 2);
    memset(s.ptr, 0xff, s.room * 4);
    slow_walk(&s, t);
    uint16_t mux = TARGET_EXCH_MUX_NEUTRAL, pair = mux, fmt = 0;
    for (uint32_t c = 0; c < s.room; c++) { /* events to values in force */
        mux = s.mux[c] != UINT16_MAX ? s.mux[c] : mux;
        pair = s.pair[c] != UINT16_MAX ? s.pair[c] : pair;
        fmt = s.fmt[c] != UINT16_MAX ? s.fmt[c] : fmt;
        s.mux[c] = mux;
        s.pair[c] = pair;
        s.fmt[c] = fmt;
    }
    return s;
}

struct slow_phase {
    struct slow_tile *tiles;
    int32_t by_phys[TARGET_N_TILES];
    uint32_t n;
    GArray *moves;
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

static inline void slow_receive(struct slow_phase *p, uint32_t i, const struct fabric_tile *t) {
    const struct slow_tile *r = &p->tiles[i];
    uint32_t cursor = t->csr.incoming_delta;
    const struct slow_tile *partner = slow_find(p, r->phys ^ 2); /* its pair mux may hold for longer */
    const int64_t end = partner == NULL ? r->slots : MAX(r->slots, partner->slots);
    for (int64_t z = 0; z < end + 120; z++) {
        if (z < r->slots && r->ptr[z] != UINT32_MAX) cursor = 4 * r->ptr[z];
        uint32_t from;
        int64_t slot;
        const struct slow_item *it = slow_arrival(p, r, z, &from, &slot);
        if (it == NULL) continue;
        const uint32_t words = (it->sctl & ISA_SCTL_64) != 0 ? 2 : 1;
        for (uint32_t k = 0; k < words; k++) {
            const struct slow_move m = {.read = (uint32_t)slot, .write = (uint32_t)z + 7,
                .source = target_ltile(slow_ptile(from)).n, .tile = t->tile,
                .from = it->address + 4 * k, .to = t->csr.incoming_base + cursor + 4 * k};
            g_array_append_val(p->moves, m);
        }
        cursor += 4 * words;
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
            reads[a]->value = help_get(s, reads[a]->source, reads[a]->from);
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

/* Executes the rows on s. Addresses must be inside SRAM: false (and nothing done) otherwise. Rows
 * with put or setzi are not its business. */
static inline bool slow_run(const struct fabric_tile *tiles, uint32_t n, struct sram *s) {
    struct slow_phase *p = g_new0(struct slow_phase, 1);
    memset(p->by_phys, 0xff, sizeof p->by_phys);
    p->n = n;
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
    }
    if (ok) slow_apply(p->moves, s);
    for (uint32_t i = 0; i < n; i++) {
        g_free(p->tiles[i].item);
        g_free(p->tiles[i].mux);
        g_free(p->tiles[i].pair);
        g_free(p->tiles[i].fmt);
        g_free(p->tiles[i].ptr);
    }
    g_array_free(p->moves, TRUE);
    g_free(p->tiles);
    g_free(p);
    return ok;
}

#endif
