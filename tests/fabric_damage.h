/* Small random phases of every kind for the fabric's tests, and ways to damage them. A phase is composed
 * by the text of exchange 12.2 and 12.3 on six random pairs of tiles (fabric_compose.h), then its rows
 * are rewritten to use base registers and, where it stays right, a base write in the middle of a row. */
#ifndef TESTS_FABRIC_DAMAGE_H
#define TESTS_FABRIC_DAMAGE_H

#include "fabric_compose.h"
#include "fabric_help.h"

enum { DAMAGE_PAIRS = 6, DAMAGE_TILES = 2 * DAMAGE_PAIRS, DAMAGE_MESSAGES = 14, DAMAGE_SPARE = 8 };

#define DAMAGE_FAMILIES(X)                                                                        \
    X(UNICAST, "unicast") X(MULTICAST, "multicast") X(LOOPBACK, "loopback") X(PAIRED, "paired")   \
    X(PERSISTENT, "persistent") X(BORROWED, "borrowed") X(MIXED, "mixed")
enum damage_family {
#define X(id, name) FAMILY_##id,
    DAMAGE_FAMILIES(X)
#undef X
        N_FAMILIES
};
static const char *const damage_families[] = {
#define X(id, name) name,
    DAMAGE_FAMILIES(X)
#undef X
};

/* Rows with their registers; words[i] has DAMAGE_SPARE words of room behind n_words. */
struct damage_rows {
    struct fabric_tile tile[DAMAGE_TILES];
    uint32_t *words[DAMAGE_TILES], m[DAMAGE_TILES][16];
    uint32_t n;
    struct tileset inactive; /* told to the fabric; all tiles without a row, if undamaged */
};
struct damage_phase {
    struct comp_tile *composed; /* [N_TILES] */
    uint16_t tiles[DAMAGE_TILES]; /* logical, pairs side by side */
    uint32_t next[DAMAGE_TILES]; /* free address */
    struct damage_rows good;
    struct fabric_expect expect;
};

static inline uint32_t damage_draw(uint32_t n) { return (uint32_t)g_test_rand_int_range(0, (int)n); }

/* --- Messages. --- */

static inline bool damage_has(const struct comp_message *m, uint32_t tile) {
    for (uint32_t k = 0; k < m->n_to; k++)
        if (m->to[k] == tile) return true;
    return false;
}

/* Lengths that fit at no offset (12.3). */
static inline bool damage_never_fits(const struct comp_message *m) {
    if (m->paired && m->n < 3) return true;
    for (uint32_t k = 0; k < m->n_to; k++) {
        const uint32_t row = target_row(comp_phys(m->to[k]));
        if (m->paired && (m->n == 51 + 2 * row || m->n == 53 + 2 * row)) return true;
        if (m->to[k] == m->source && m->n >= 27 && m->n <= 29) return true;
    }
    return false;
}

/* A receiver, or a pair of them, other than those that the message has; not the sender (its pair). */
static inline void damage_receiver(struct damage_phase *p, struct comp_message *m) {
    const uint32_t t = p->tiles[damage_draw(DAMAGE_TILES)];
    if (damage_has(m, t) || (m->paired ? t / 2 == m->source / 2 : t == m->source)) return;
    m->to[m->n_to++] = m->paired ? t & ~1u : t;
    if (m->paired) m->to[m->n_to++] = t | 1;
}

static inline void damage_message(struct damage_phase *p, enum damage_family f, struct comp_message *m) {
    *m = (struct comp_message){.source = p->tiles[damage_draw(DAMAGE_TILES)], .n = 1 + damage_draw(90),
                               .address = 0x50000 + 8 * damage_draw(500)};
    const bool loop = f == FAMILY_LOOPBACK || (f == FAMILY_MIXED && damage_draw(4) == 0);
    m->paired = f == FAMILY_PAIRED || f == FAMILY_PERSISTENT ||
                ((f == FAMILY_BORROWED || f == FAMILY_MIXED || f == FAMILY_LOOPBACK) && damage_draw(2) == 0);
    const uint32_t most = f == FAMILY_UNICAST ? 1 : f == FAMILY_PAIRED ? 2 : 1 + damage_draw(4);
    if (f == FAMILY_PERSISTENT || (f == FAMILY_BORROWED && m->paired)) { /* one pair takes from many */
        m->source = p->tiles[2 + damage_draw(DAMAGE_TILES - 2)];
        m->to[0] = p->tiles[0];
        m->to[1] = p->tiles[1];
        m->n_to = 2;
    }
    if (f == FAMILY_BORROWED && !m->paired) m->to[m->n_to++] = p->tiles[2 + damage_draw(4)];
    if (m->n_to == 1 && m->to[0] == m->source) m->n_to = 0;
    while (m->n_to == 0 || (f != FAMILY_PERSISTENT && m->n_to < (m->paired ? 2 : 1) * most && damage_draw(3) != 0))
        damage_receiver(p, m);
    if (loop && !m->paired) m->to[m->n_to++] = m->source;
    if (loop && m->paired) {
        m->to[m->n_to++] = m->source & ~1u;
        m->to[m->n_to++] = m->source | 1;
    }
    while (damage_never_fits(m)) m->n++;
}

static inline uint32_t damage_number(const struct damage_phase *p, uint32_t tile) {
    uint32_t k = 0;
    while (p->tiles[k] != tile) k++;
    return k;
}

/* Destinations: behind each other or with a gap, far from every source. */
static inline void damage_place(struct damage_phase *p, struct comp_message *m) {
    for (uint32_t k = 0; k < m->n_to; k++) {
        uint32_t *at = &p->next[damage_number(p, m->to[k])];
        if (damage_draw(2) != 0) *at += 64;
        *at = align_up_u32(*at, 8);
        m->at[k] = *at;
        *at += m->n * (m->paired ? 8 : 4);
    }
}

/* --- Base registers. --- */

/* Makes addresses behind word `from` relative to bases that are larger by these bytes. */
static inline void damage_rebase(uint32_t *w, uint32_t n, uint32_t from, uint32_t out, uint32_t in) {
    for (uint32_t at = from; at < n;) {
        const struct isa_exch x = isa_exch_decode(w + at, n - at);
        const uint32_t size = (x.sctl & ISA_SCTL_64) != 0 ? 8 : 4;
        if (x.kind == ISA_EXCH_SEND || (x.kind == ISA_EXCH_SENDPICP && x.sctl != 0)) w[at] -= out / size << 3;
        if (x.kind == ISA_EXCH_SENDPICP && x.sel == ISA_PIC_PTR) w[at + 1] -= in / 4;
        if (x.kind == ISA_EXCH_DELAYPIC && x.sel == ISA_PIC_PTR) w[at] -= in / 4;
        if (x.kind == ISA_EXCH_SENDPIC && x.sel == ISA_CSEL_PTR) w[at] -= in / 4;
        at += x.n_words;
    }
}

/* Turns one long enough delay of row i into `setzi; put; delay` of the same length. */
static inline bool damage_put(struct damage_rows *r, uint32_t i, bool incoming) {
    uint32_t *w = r->words[i], n = r->tile[i].n_words, found[64], n_found = 0;
    for (uint32_t at = 0; at < n; at += isa_exch_decode(w + at, n - at).n_words) {
        const struct isa_exch x = isa_exch_decode(w + at, n - at);
        if (x.kind == ISA_EXCH_DELAY && x.n > 14 && n_found < ARRAY_LEN(found)) found[n_found++] = at;
    }
    if (n_found == 0) return false;
    const uint32_t at = found[damage_draw(n_found)], slots = isa_exch_decode(w + at, 1).n;
    const uint32_t old = incoming ? r->tile[i].csr.incoming_base : r->tile[i].csr.outgoing_base;
    const uint32_t base = old + 8 * damage_draw(64), m = 6 + damage_draw(3);
    memmove(w + at + 2, w + at, (n - at) * sizeof *w);
    w[at] = isa_word_setzi(m, base);
    w[at + 1] = isa_word_put(incoming ? 0xa4 : 0xa7, m);
    w[at + 2] = isa_word_delay(slots - 14);
    damage_rebase(w, n + 2, at + 3, incoming ? 0 : base - old, incoming ? base - old : 0);
    r->tile[i].n_words = n + 2;
    return true;
}

static inline struct damage_rows damage_copy(const struct damage_rows *from) {
    struct damage_rows r = *from;
    for (uint32_t i = 0; i < r.n; i++) {
        r.words[i] = g_new0(uint32_t, r.tile[i].n_words + DAMAGE_SPARE);
        memcpy(r.words[i], from->words[i], r.tile[i].n_words * sizeof(uint32_t));
    }
    return r;
}
static inline void damage_release(struct damage_rows *r) {
    for (uint32_t i = 0; i < r->n; i++) g_free(r->words[i]);
}

/* The rows as a phase: registers as before it. A copy, because a run changes them. */
static inline uint32_t damage_tiles(struct damage_rows *r, struct fabric_tile *ret, uint32_t (*ret_m)[16]) {
    for (uint32_t i = 0; i < r->n; i++) {
        memcpy(ret_m[i], r->m[i], sizeof r->m[i]);
        ret[i] = r->tile[i];
        ret[i].words = r->words[i];
        ret[i].m = ret_m[i];
    }
    return r->n;
}

static inline bool damage_accepted(struct fabric *f, struct damage_rows *r, const struct fabric_expect *e,
                                   struct sram *s, struct fabric_result *ret) {
    struct fabric_tile tiles[DAMAGE_TILES];
    uint32_t m[DAMAGE_TILES][16];
    const uint32_t n = damage_tiles(r, tiles, m);
    fabric_phase_run(f, &(struct fabric_phase){.sram = s, .tiles = tiles, .n_tiles = n,
                                               .inactive = &r->inactive}, ret);
    fabric_expect_check(f, e, ret);
    return ret->ok;
}

static inline void damage_bases(struct damage_phase *p, struct fabric *f) {
    struct damage_rows *r = &p->good;
    struct fabric_result result;
    for (uint32_t i = 0; i < r->n; i++) {
        const uint32_t out = 8 * damage_draw(64), in = 8 * damage_draw(64);
        r->tile[i].csr.outgoing_base = out;
        r->tile[i].csr.incoming_base = in;
        damage_rebase(r->words[i], r->tile[i].n_words, 0, out, in);
    }
    for (uint32_t k = 0; k < 4; k++) { /* where payload passes meanwhile, without */
        struct damage_rows before = damage_copy(r);
        const bool put = damage_put(r, damage_draw(r->n), damage_draw(2) != 0);
        const bool keep = !put || damage_accepted(f, r, &p->expect, NULL, &result);
        damage_release(keep ? &before : r);
        if (!keep) *r = before;
        if (put && keep) return; /* the spare room is for one */
    }
}

/* --- Making and freeing. --- */

static inline void damage_pick_tiles(struct damage_phase *p) {
    for (uint32_t k = 0; k < DAMAGE_PAIRS; k++) {
        uint32_t pair;
        bool known;
        do {
            pair = damage_draw(TARGET_N_TILES / 2);
            known = false;
            for (uint32_t j = 0; j < k; j++) known |= p->tiles[2 * j] == 2 * pair;
        } while (known);
        p->tiles[2 * k] = (uint16_t)(2 * pair);
        p->tiles[2 * k + 1] = (uint16_t)(2 * pair + 1);
    }
}

static inline struct damage_phase *damage_new(enum damage_family family, struct fabric *f) {
    struct damage_phase *p = g_new0(struct damage_phase, 1);
    p->composed = g_new0(struct comp_tile, TARGET_N_TILES);
    damage_pick_tiles(p);
    for (uint32_t k = 0; k < DAMAGE_TILES; k++) p->next[k] = 0x90000;
    p->expect = (struct fabric_expect){.source = g_new(uint16_t, DAMAGE_MESSAGES),
        .source_address = g_new(uint32_t, DAMAGE_MESSAGES), .words = g_new(uint32_t, DAMAGE_MESSAGES),
        .first = g_new0(uint32_t, DAMAGE_MESSAGES + 1), .tile = g_new(uint16_t, 8 * DAMAGE_MESSAGES),
        .address = g_new(uint32_t, 8 * DAMAGE_MESSAGES)};
    for (uint32_t k = 2 + damage_draw(DAMAGE_MESSAGES - 2); k > 0; k--) {
        struct comp_message m;
        damage_message(p, family, &m);
        damage_place(p, &m);
        comp_append(p->composed, &m, damage_draw(3) == 0 ? damage_draw(200) : 0, true);
        comp_expect_add(&p->expect, &m);
    }
    struct damage_rows *r = &p->good;
    r->n = comp_tiles(p->composed, TARGET_N_TILES, r->tile);
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) tileset_add(&r->inactive, t);
    for (uint32_t i = 0; i < r->n; i++) {
        tileset_remove(&r->inactive, r->tile[i].tile);
        r->words[i] = g_new0(uint32_t, r->tile[i].n_words + DAMAGE_SPARE);
        memcpy(r->words[i], r->tile[i].words, r->tile[i].n_words * sizeof(uint32_t));
    }
    if (damage_draw(2) == 0) damage_bases(p, f);
    return p;
}

static inline void damage_free(struct damage_phase *p) {
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) comp_release(&p->composed[t]);
    g_free(p->composed);
    damage_release(&p->good);
    fabric_expect_clear(&p->expect);
    g_free(p);
}

/* --- Damage. --- */

#define DAMAGES(X)                                                                                 \
    X(BIT, "bit") X(FIELD, "field") X(COUNT, "count") X(ADDRESS, "address") X(DROP, "drop")        \
    X(DOUBLE, "double") X(NEIGHBOURS, "neighbours") X(SWAP, "swap") X(SHIFT_ROW, "shifted row")    \
    X(SHIFT_ONE, "shifted instruction") X(GUARD, "guard") X(BASE, "base") X(ENTRY, "entry")        \
    X(REGISTER, "register") X(NO_ROW, "no row") X(SILENT, "neither row nor inactive")              \
    X(BOTH, "row and inactive") X(CROSS, "crossed rows") X(CUT, "cut") X(SENDER, "sender")
enum damage {
#define X(id, name) DAMAGE_##id,
    DAMAGES(X)
#undef X
        N_DAMAGES
};
static const char *const damage_names[] = {
#define X(id, name) name,
    DAMAGES(X)
#undef X
};

struct damage_at { /* an instruction of a row */
    uint32_t *w, n, at;
    struct isa_exch x;
};

/* Instructions of row i; returns how many (at most 64). */
static inline uint32_t damage_starts(const struct damage_rows *r, uint32_t i, uint32_t starts[64]) {
    const uint32_t n = r->tile[i].n_words;
    uint32_t k = 0;
    for (uint32_t at = 0; at < n && k < 64; at += isa_exch_decode(r->words[i] + at, n - at).n_words)
        starts[k++] = at;
    return k;
}
static inline struct damage_at damage_pick(const struct damage_rows *r, uint32_t i) {
    uint32_t starts[64];
    const uint32_t k = damage_starts(r, i, starts), n = r->tile[i].n_words, at = starts[damage_draw(k)];
    return (struct damage_at){r->words[i], n, at, isa_exch_decode(r->words[i] + at, n - at)};
}

static inline uint32_t damage_count_unit(const struct isa_exch *x) {
    return x->kind == ISA_EXCH_DELAY ? 1 : x->kind == ISA_EXCH_DELAYPIC ? 1u << 19
           : x->kind == ISA_EXCH_DELAYXPIC ? 1u << 14 : 1u << 21;
}
static inline void damage_length(struct damage_at *a, int32_t by) {
    a->w[a->at] += damage_count_unit(&a->x) * (uint32_t)by;
}
/* Fields of all row instructions as (shift, width); any of them gets a random value. */
static inline void damage_field(struct damage_at *a) {
    static const struct { uint8_t shift, width; } fields[] = {{0, 3}, {3, 18}, {3, 11}, {21, 6}, {14, 6},
        {14, 12}, {19, 7}, {0, 13}, {0, 18}, {13, 1}, {18, 1}, {18, 2}, {27, 1}, {20, 4}, {26, 6}, {0, 12}};
    const uint32_t k = damage_draw(ARRAY_LEN(fields)), mask = ((1u << fields[k].width) - 1) << fields[k].shift;
    const uint32_t word = a->at + damage_draw(a->x.n_words);
    a->w[word] = (a->w[word] & ~mask) | ((uint32_t)g_test_rand_int() & mask);
}
static inline void damage_swap(uint32_t *w, struct damage_at a, struct damage_at b) {
    if (a.at == b.at) return;
    if (a.at > b.at) {
        const struct damage_at c = a;
        a = b;
        b = c;
    }
    uint32_t first[2], second[2];
    memcpy(first, w + a.at, 4 * a.x.n_words);
    memcpy(second, w + b.at, 4 * b.x.n_words);
    const uint32_t from = a.at + a.x.n_words;
    memmove(w + a.at + b.x.n_words, w + from, 4 * (b.at - from));
    memcpy(w + a.at, second, 4 * b.x.n_words);
    memcpy(w + b.at + b.x.n_words - a.x.n_words, first, 4 * a.x.n_words);
}

/* What concerns single words of row i. */
static inline void damage_words(struct damage_rows *r, uint32_t i, enum damage what) {
    if (r->tile[i].n_words == 0) return; /* cut before */
    struct damage_at a = damage_pick(r, i);
    const int32_t by = (int32_t)(1 + damage_draw(damage_draw(4) == 0 ? 30 : 2)) * (damage_draw(2) != 0 ? 1 : -1);
    uint32_t *n = &r->tile[i].n_words, *w = a.w;
    switch (what) {
    case DAMAGE_BIT: w[a.at + damage_draw(a.x.n_words)] ^= 1u << damage_draw(32); break;
    case DAMAGE_FIELD: damage_field(&a); break;
    case DAMAGE_COUNT: damage_length(&a, by); break;
    case DAMAGE_ADDRESS:
        if (a.x.kind == ISA_EXCH_SENDPICP && damage_draw(2) != 0) w[a.at + 1] += (uint32_t)by;
        else w[a.at] += (uint32_t)by * (a.x.kind == ISA_EXCH_SEND || a.x.kind == ISA_EXCH_SENDPICP ? 8u : 1u);
        break;
    case DAMAGE_DROP:
        memmove(w + a.at, w + a.at + a.x.n_words, (a.n - a.at - a.x.n_words) * sizeof *w);
        *n -= a.x.n_words;
        break;
    case DAMAGE_DOUBLE:
        memmove(w + a.at + a.x.n_words, w + a.at, (a.n - a.at) * sizeof *w);
        *n += a.x.n_words;
        break;
    case DAMAGE_NEIGHBOURS:
        if (a.at + a.x.n_words < a.n) {
            const uint32_t next = a.at + a.x.n_words;
            damage_swap(w, a, (struct damage_at){w, a.n, next, isa_exch_decode(w + next, a.n - next)});
        }
        break;
    case DAMAGE_SWAP: damage_swap(w, a, damage_pick(r, i)); break;
    case DAMAGE_SHIFT_ONE: { /* this one later or earlier, the rest where it was */
        const uint32_t next = a.at + a.x.n_words;
        damage_length(&a, by);
        if (next >= a.n) break;
        struct damage_at b = {w, a.n, next, isa_exch_decode(w + next, a.n - next)};
        damage_length(&b, -by);
        break;
    }
    case DAMAGE_SHIFT_ROW:
        memmove(w + 2, w, a.n * sizeof *w);
        w[0] = w[1] = isa_word_delay((uint32_t)ABS(by));
        *n += 2;
        break;
    case DAMAGE_CUT: *n = a.at; break;
    case DAMAGE_SENDER: /* another tile's number, or the partner's */
        if (a.x.kind == ISA_EXCH_DELAYXPIC) {
            const uint32_t k = damage_draw(r->n);
            w[a.at] = (w[a.at] & ~0x1fffu) | (comp_phys(r->tile[k].tile).n ^ 2 * damage_draw(2));
        }
        break;
    default: /* GUARD: the last instruction before the return */
        if (a.n >= 2) {
            a.at = a.n - 2;
            a.x = isa_exch_decode(w + a.at, 2);
            damage_length(&a, by);
        }
    }
}

static inline void damage_without(struct damage_rows *r, uint32_t i) {
    g_free(r->words[i]);
    for (uint32_t k = i + 1; k < r->n; k++) {
        r->tile[k - 1] = r->tile[k];
        r->words[k - 1] = r->words[k];
        memcpy(r->m[k - 1], r->m[k], sizeof r->m[k]);
    }
    r->n--;
}

/* What concerns a tile as a whole; false: this is not such a damage. */
static inline bool damage_tile(struct damage_rows *r, uint32_t i, enum damage what) {
    struct fabric_csr *c = &r->tile[i].csr;
    uint32_t *const registers[] = {&c->incoming_mux, &c->incoming_muxpair, &c->incoming_format};
    uint32_t *const bases[] = {&c->incoming_base, &c->outgoing_base};
    switch (what) {
    case DAMAGE_BASE: *bases[damage_draw(2)] += 4 * (1 + damage_draw(8)); return true;
    case DAMAGE_ENTRY: *registers[damage_draw(3)] = damage_draw(3); return true;
    case DAMAGE_REGISTER: r->m[i][6 + damage_draw(3)] += 8; return true;
    case DAMAGE_BOTH: tileset_add(&r->inactive, r->tile[i].tile); return true;
    case DAMAGE_NO_ROW: tileset_add(&r->inactive, r->tile[i].tile); /* fall through */
    case DAMAGE_SILENT: damage_without(r, i); return true;
    case DAMAGE_CROSS: {
        const uint32_t k = damage_draw(r->n), n = r->tile[i].n_words;
        uint32_t *w = r->words[i];
        r->words[i] = r->words[k];
        r->words[k] = w;
        r->tile[i].n_words = r->tile[k].n_words;
        r->tile[k].n_words = n;
        return true;
    }
    default: return false;
    }
}

static inline enum damage damage_do(struct damage_rows *r) {
    const enum damage what = (enum damage)damage_draw(N_DAMAGES);
    const uint32_t i = damage_draw(r->n);
    if (!damage_tile(r, i, what)) damage_words(r, i, what);
    return what;
}

#endif
