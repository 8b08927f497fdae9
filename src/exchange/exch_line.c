/* Time lines: for every tile, bit planes over slots and labels that say what is taken, so that each
 * rule of exchange 3.3, 3.4, 4.4 and 6.2 is one look at a few words.
 *
 * Planes of a tile are interleaved by word (one cache line holds all planes of 64 slots). Messages
 * may go anywhere, also into holes between receives: rules only ask about neighbours in time. A
 * pointer write is always reserved, also where the encoder will drop it as contiguous. Alignment: a
 * label with two controls (PTR and MUX) is admitted only if the two labels before hold none and no
 * message starts or ends in the two slots before; both are then reserved, so that the encoder
 * always finds room for its parity split and rows are encoded once (exchange 17.5-6). */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

enum plane {
    P_SEND, /* slots in which the own lane is busy */
    P_SRC,  /* labels of the source line of a receive */
    P_PAY,  /* payload labels of ordinary receives */
    P_MUX,
    P_PTR,
    P_OTH, /* labels of controls; OTH: those of paired messages */
    P_BAN, /* labels where no further control may be */
    P_BND, /* slots where a message starts or ends */
    P_NOB, /* slots where none may */
    P_FMT, /* format on, [f, f + n) */
    P_ON1,
    P_ON2,
    P_OFF1,
    P_OFF2, /* labels where a format goes on, off */
    N_PLANES = 16
};

struct tile_lines {
    uint64_t *w;    /* [cap][N_PLANES] */
    uint64_t *elem; /* [2 * n_shared][cap]: read windows, write windows */
    uint32_t cap;   /* in 64-bit words of a plane */
};
struct exch_lines {
    const struct exch_msgs *m;
    const struct exch_route *route;
    bool relaxed;
    uint64_t work; /* endpoints looked at */
    struct tile_lines tile[TARGET_N_TILES];
};

/* --- Bit planes --- */

static inline bool get(const uint64_t *w, uint32_t plane, uint32_t at) {
    return (w[(at >> 6) * N_PLANES + plane] >> (at & 63)) & 1;
}
static inline void set(uint64_t *w, uint32_t plane, uint32_t at) {
    w[(at >> 6) * N_PLANES + plane] |= UINT64_C(1) << (at & 63);
}
static inline void clear(uint64_t *w, uint32_t plane, uint32_t at) {
    w[(at >> 6) * N_PLANES + plane] &= ~(UINT64_C(1) << (at & 63));
}
/* Mask of the bits of word k that lie in [a, b). */
static inline uint64_t part(uint32_t k, uint32_t a, uint32_t b) {
    uint64_t mask = UINT64_MAX;
    if (k == a >> 6) mask &= UINT64_MAX << (a & 63);
    if (k == (b - 1) >> 6) mask &= UINT64_MAX >> (63 - ((b - 1) & 63));
    return mask;
}
/* Last set bit in [a, b), or UINT32_MAX. */
static inline uint32_t last_set(const uint64_t *w, uint32_t stride, uint32_t a, uint32_t b) {
    for (uint32_t k = (b - 1) >> 6;; k--) {
        const uint64_t v = w[k * stride] & part(k, a, b);
        if (v != 0) return k * 64 + 63 - (uint32_t)__builtin_clzll(v);
        if (k == a >> 6) return UINT32_MAX;
    }
}
static inline void set_range(uint64_t *w, uint32_t stride, uint32_t a, uint32_t b) {
    for (uint32_t k = a >> 6; k <= (b - 1) >> 6; k++) w[k * stride] |= part(k, a, b);
}

static void grow(struct exch_lines *l, uint32_t t, uint32_t upto) {
    struct tile_lines *tl = &l->tile[t];
    const uint32_t cap = MAX(MAX(tl->cap * 2, 64u), (upto >> 6) + 8);
    uint64_t *w = NULL;
    if (posix_memalign((void **)&w, 64, (size_t)cap * N_PLANES * 8) != 0) base_oom(cap);
    if (tl->cap != 0) memcpy(w, tl->w, (size_t)tl->cap * N_PLANES * 8);
    memset(w + (size_t)tl->cap * N_PLANES, 0, (size_t)(cap - tl->cap) * N_PLANES * 8);
    free(tl->w);
    tl->w = w;
    const uint32_t n = 2 * (uint32_t)__builtin_popcount(l->m->shared[t]);
    if (n != 0) {
        uint64_t *e = calloc((size_t)cap * n, 8);
        if (e == NULL) base_oom(cap);
        for (uint32_t k = 0; k < n && tl->elem != NULL; k++)
            memcpy(e + (size_t)k * cap, tl->elem + (size_t)k * tl->cap, (size_t)tl->cap * 8);
        free(tl->elem);
        tl->elem = e;
    }
    tl->cap = cap;
}

static inline struct tile_lines *lines_of(struct exch_lines *l, uint32_t t, uint32_t upto) {
    if (upto + 256 >= l->tile[t].cap * 64) grow(l, t, upto + 256);
    return &l->tile[t];
}

struct exch_lines *exch_lines_new(const struct exch_msgs *m, bool relaxed) {
    struct exch_lines *l = calloc(1, sizeof *l);
    if (l == NULL) base_oom(sizeof *l);
    l->m = m;
    l->route = exch_route();
    l->relaxed = relaxed;
    return l;
}

void exch_lines_free(struct exch_lines *l) {
    if (l == NULL) return;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        free(l->tile[t].w);
        free(l->tile[t].elem);
    }
    free(l);
}

void exch_lines_reset(struct exch_lines *l, uint32_t t) {
    struct tile_lines *tl = &l->tile[t];
    if (tl->cap == 0) return;
    memset(tl->w, 0, (size_t)tl->cap * N_PLANES * 8);
    l->work += 1 + tl->cap / 32;
    if (tl->elem != NULL)
        memset(tl->elem, 0, (size_t)tl->cap * 2 * (size_t)__builtin_popcount(l->m->shared[t]) * 8);
}

/* --- Rules --- */

static inline bool any_control(const uint64_t *w, uint32_t label) {
    const uint64_t *q = w + (label >> 6) * N_PLANES;
    return ((q[P_MUX] | q[P_PTR] | q[P_OTH]) >> (label & 63)) & 1;
}
static inline bool label_free(const uint64_t *w, uint32_t label) {
    const uint64_t *q = w + (label >> 6) * N_PLANES;
    return (((q[P_MUX] | q[P_PTR] | q[P_OTH] | q[P_BAN]) >> (label & 63)) & 1) == 0;
}
/* May hold one more ordinary control: no paired control, not reserved. */
static inline bool label_open(const uint64_t *w, uint32_t label) {
    const uint64_t *q = w + (label >> 6) * N_PLANES;
    return (((q[P_OTH] | q[P_BAN]) >> (label & 63)) & 1) == 0;
}

/* Own send of a message that returns to its sender; items 0 when it does not. */
struct self {
    uint32_t slot, items;
};
static inline bool self_bans(const struct self *s, uint32_t label, bool relaxed) {
    return s->items != 0 && (label == s->slot + 1 || (label == s->slot && !relaxed));
}
static inline bool self_bounds(const struct self *s, uint32_t slot) {
    return s->items != 0 && (slot == s->slot || slot == s->slot + s->items);
}

/* Ordinary controls of one receive: what is new and where two meet. */
struct plan {
    uint32_t x, end, p; /* labels of source, neutral, pointer */
    bool new_x, new_end;
    uint32_t n_pairs, pair[3];
};

static void add_pair(struct plan *k, uint32_t e) {
    for (uint32_t i = 0; i < k->n_pairs; i++)
        if (k->pair[i] == e) return;
    k->pair[k->n_pairs++] = e;
}

static bool pair_fits(const uint64_t *w, const struct plan *k, uint32_t e, const struct self *s) {
    for (uint32_t b = e - 2; b < e; b++) {
        if (any_control(w, b) || b == k->x || b == k->end || b == k->p) return false;
        if (get(w, P_BND, b) || self_bounds(s, b)) return false;
    }
    return true;
}

static inline bool plan_ordinary(const struct exch_lines *l, const uint64_t *w, struct plan *k,
                                 const struct self *s) {
    k->n_pairs = 0;
    k->new_x = !get(w, P_MUX, k->x);
    k->new_end = !get(w, P_MUX, k->end);
    if (k->new_x) {
        if (!label_open(w, k->x) || self_bans(s, k->x, l->relaxed)) return false;
        if (get(w, P_PTR, k->x)) add_pair(k, k->x);
    }
    if (k->new_end) {
        if (!label_open(w, k->end) || self_bans(s, k->end, l->relaxed)) return false;
        if (get(w, P_PTR, k->end) || k->end == k->p) add_pair(k, k->end);
    }
    if (!label_open(w, k->p) || get(w, P_PTR, k->p) || self_bans(s, k->p, l->relaxed)) return false;
    if (get(w, P_MUX, k->p)) add_pair(k, k->p);
    for (uint32_t i = 0; i < k->n_pairs; i++)
        if (k->pair[i] < 3 || !pair_fits(w, k, k->pair[i], s)) return false;
    return true;
}

static void commit_ordinary(uint64_t *w, const struct plan *k) {
    set(w, P_MUX, k->x);
    set(w, P_MUX, k->end);
    set(w, P_PTR, k->p);
    for (uint32_t i = 0; i < k->n_pairs; i++)
        for (uint32_t b = k->pair[i] - 2; b < k->pair[i]; b++) {
            set(w, P_BAN, b);
            set(w, P_NOB, b);
        }
}

/* Paired controls: labels that are new. */
struct paired_plan {
    uint32_t label[5], n;
    bool keep_on, keep_off;
};

static void plan_paired(const uint64_t *w, uint32_t flag, uint32_t x, uint32_t f, uint32_t n,
                        struct paired_plan *k) {
    const uint32_t fmt = flag & REC_FORMAT;
    k->keep_on = get(w, fmt == 1 ? P_OFF1 : P_OFF2, f);
    k->keep_off = get(w, fmt == 1 ? P_ON1 : P_ON2, f + n);
    k->n = 0;
    k->label[k->n++] = f + 2;
    if (!k->keep_on) k->label[k->n++] = f;
    if (!k->keep_off) k->label[k->n++] = f + n;
    if (flag & REC_EARLY) {
        if (!k->keep_on) k->label[k->n++] = x;
        if (!k->keep_off) k->label[k->n++] = x + n;
    }
}

static void commit_paired(uint64_t *w, uint32_t flag, uint32_t f, uint32_t n,
                          const struct paired_plan *k) {
    const uint32_t fmt = flag & REC_FORMAT;
    for (uint32_t i = 0; i < k->n; i++) set(w, P_OTH, k->label[i]);
    if (k->keep_on) {
        clear(w, P_OTH, f);
        clear(w, fmt == 1 ? P_OFF1 : P_OFF2, f);
    } else {
        set(w, fmt == 1 ? P_ON1 : P_ON2, f);
    }
    if (k->keep_off) {
        clear(w, P_OTH, f + n);
        clear(w, fmt == 1 ? P_ON1 : P_ON2, f + n);
    } else {
        set(w, fmt == 1 ? P_OFF1 : P_OFF2, f + n);
    }
}

/* Element windows: planes 0..n-1 reads, n..2n-1 writes, by rank of the element in the shared mask.
 */
static uint64_t *element_plane(const struct exch_lines *l, uint32_t t, uint32_t e, bool write) {
    const uint32_t shared = l->m->shared[t];
    const uint32_t rank = (uint32_t)__builtin_popcount(shared & ((1u << e) - 1));
    const uint32_t n = write ? (uint32_t)__builtin_popcount(shared) : 0;
    return l->tile[t].elem + (size_t)(n + rank) * l->tile[t].cap;
}
/* Last busy slot of the other side in [a, b) for the elements of `mask`, or UINT32_MAX. */
static uint32_t element_last(const struct exch_lines *l, uint32_t t, uint32_t mask, bool write,
                             uint32_t a, uint32_t b) {
    uint32_t last = UINT32_MAX;
    for (; mask != 0; mask &= mask - 1) {
        const uint32_t e = (uint32_t)__builtin_ctz(mask);
        const uint32_t v = last_set(element_plane(l, t, e, write), 1, a, b);
        if (v != UINT32_MAX && (last == UINT32_MAX || v > last)) last = v;
    }
    return last;
}
static void element_set(const struct exch_lines *l, uint32_t t, uint32_t mask, bool write,
                        uint32_t a, uint32_t b) {
    for (; mask != 0; mask &= mask - 1)
        set_range(element_plane(l, t, (uint32_t)__builtin_ctz(mask), write), 1, a, b);
}

static inline uint32_t try_sender(struct exch_lines *l, uint32_t i, uint32_t s) {
    const struct exch_msgs *m = l->m;
    const uint32_t t = m->src[i], n = m->items[i];
    const uint64_t *w = lines_of(l, t, s + n)->w;
    uint32_t v = last_set(w + P_SEND, N_PLANES, s, s + n);
    if (v != UINT32_MAX) return v + 1;
    if (m->paired[i]) {
        v = last_set(lines_of(l, t ^ 1, s + n)->w + P_SEND, N_PLANES, s, s + n);
        if (v != UINT32_MAX) return v + 1;
    }
    if (m->src_elem[i] != 0) {
        v = element_last(l, t, m->src_elem[i], true, s, s + n);
        if (v != UINT32_MAX) return v + 1;
    }
    if (any_control(w, s + 1) || (!l->relaxed && any_control(w, s))) return s + 1;
    if (get(w, P_NOB, s) || get(w, P_NOB, s + n)) return s + 1;
    return s;
}

/* Every return above s is s plus what the last obstacle demands. */
static inline uint32_t try_ordinary(struct exch_lines *l, uint32_t i, uint32_t j, uint32_t s) {
    const struct exch_msgs *m = l->m;
    const uint32_t t = m->rec_tile[j], n = m->items[i];
    const uint32_t x = s + (uint32_t)m->rec_x[j], p = x + exch_lag(l->route, t);
    const uint64_t *w = lines_of(l, t, p + n)->w;
    uint32_t v = last_set(w + P_SRC, N_PLANES, x, x + n);
    if (v != UINT32_MAX) return s + (v + 1 - x);
    v = last_set(w + P_PAY, N_PLANES, p, p + n);
    if (v != UINT32_MAX) return s + (v + 1 - p);
    v = last_set(w + P_FMT, N_PLANES, p - 2, p + n);
    if (v != UINT32_MAX) return s + (v + 3 - p);
    if (m->rec_elem[j] != 0) {
        v = element_last(l, t, m->rec_elem[j], false, p, p + n + TARGET_EXCH_TAIL_GUARD);
        if (v != UINT32_MAX) return s + (v + 1 - p);
    }
    struct plan k = {.x = x, .end = x + n, .p = p};
    const struct self self = {s, t == m->src[i] ? n : 0};
    return plan_ordinary(l, w, &k, &self) ? s : s + 1;
}

static inline uint32_t try_paired(struct exch_lines *l, uint32_t i, uint32_t j, uint32_t s) {
    const struct exch_msgs *m = l->m;
    const uint32_t t = m->rec_tile[j], n = m->items[i], flag = m->rec_flag[j];
    const uint32_t x = s + (uint32_t)m->rec_x[j], f = x + exch_lag(l->route, t) - 1;
    const uint64_t *w = lines_of(l, t, f + n)->w;
    const uint32_t src = (flag & REC_EARLY) ? x : f;
    uint32_t v = last_set(w + P_SRC, N_PLANES, src, src + n);
    if (v != UINT32_MAX) return s + (v + 1 - src);
    v = last_set(w + P_PAY, N_PLANES, f, f + n + 2);
    if (v != UINT32_MAX) return s + (v + 1 - f);
    v = last_set(w + P_FMT, N_PLANES, f, f + n);
    if (v != UINT32_MAX) return s + (v + 1 - f);
    if (m->rec_elem[j] != 0) {
        v = element_last(l, t, m->rec_elem[j], false, f + 2, f + 2 + n + TARGET_EXCH_TAIL_GUARD);
        if (v != UINT32_MAX) return s + (v + 1 - (f + 2));
    }
    struct paired_plan k;
    plan_paired(w, flag, x, f, n, &k);
    const struct self self = {s, t == m->src[i] ? n : 0};
    for (uint32_t c = 0; c < k.n; c++)
        if (!label_free(w, k.label[c]) || self_bans(&self, k.label[c], l->relaxed)) return s + 1;
    return s;
}

uint32_t exch_lines_try(struct exch_lines *l, uint32_t i, uint32_t s) {
    const struct exch_msgs *m = l->m;
    uint32_t v = try_sender(l, i, s);
    l->work++;
    if (v != s) return v;
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) {
        v = m->paired[i] ? try_paired(l, i, j, s) : try_ordinary(l, i, j, s);
        l->work++;
        if (v != s) return v;
    }
    return s;
}

uint64_t exch_lines_work(const struct exch_lines *l) {
    return l->work;
}

uint32_t exch_lines_find(struct exch_lines *l, uint32_t i, uint32_t from) {
    uint32_t s = MAX(from, l->m->s_min[i]);
    for (;;) {
        const uint32_t v = exch_lines_try(l, i, s);
        if (v == s) return s;
        s = v;
    }
}

void exch_lines_commit_receive(struct exch_lines *l, uint32_t i, uint32_t j, uint32_t s) {
    const struct exch_msgs *m = l->m;
    const uint32_t t = m->rec_tile[j], n = m->items[i], flag = m->rec_flag[j];
    const uint32_t x = s + (uint32_t)m->rec_x[j], lag = exch_lag(l->route, t);
    uint64_t *w = lines_of(l, t, x + lag + n)->w;
    uint32_t p = x + lag;
    if (m->paired[i]) {
        const uint32_t f = p - 1, src = (flag & REC_EARLY) ? x : f;
        struct paired_plan k;
        plan_paired(w, flag, x, f, n, &k);
        commit_paired(w, flag, f, n, &k);
        set_range(w + P_SRC, N_PLANES, src, src + n);
        set_range(w + P_FMT, N_PLANES, f, f + n);
        p = f + 2;
    } else {
        struct plan k = {.x = x, .end = x + n, .p = p};
        const struct self none = {0, 0};
        const bool fits = plan_ordinary(l, w, &k, &none);
        BUG_ON(!fits);
        commit_ordinary(w, &k);
        set_range(w + P_SRC, N_PLANES, x, x + n);
        set_range(w + P_PAY, N_PLANES, p, p + n);
    }
    if (m->rec_elem[j] != 0)
        element_set(l, t, m->rec_elem[j], true, p, p + n + TARGET_EXCH_TAIL_GUARD);
}

void exch_lines_commit_send(struct exch_lines *l, uint32_t i, uint32_t s) {
    const struct exch_msgs *m = l->m;
    const uint32_t t = m->src[i], n = m->items[i];
    uint64_t *w = lines_of(l, t, s + n)->w;
    set_range(w + P_SEND, N_PLANES, s, s + n);
    if (!l->relaxed) set(w, P_BAN, s);
    set(w, P_BAN, s + 1);
    set(w, P_BND, s);
    set(w, P_BND, s + n);
    if (m->paired[i]) set_range(lines_of(l, t ^ 1, s + n)->w + P_SEND, N_PLANES, s, s + n);
    if (m->src_elem[i] != 0) element_set(l, t, m->src_elem[i], false, s, s + n);
}

void exch_lines_commit(struct exch_lines *l, uint32_t i, uint32_t s) {
    const struct exch_msgs *m = l->m;
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) exch_lines_commit_receive(l, i, j, s);
    exch_lines_commit_send(l, i, s);
}

uint32_t exch_lines_put(struct exch_lines *l, uint32_t t, uint32_t from) {
    const uint32_t n = TARGET_EXCH_PUT_SLOTS;
    for (uint32_t b = from;; b++) {
        uint64_t *w = lines_of(l, t, b + n + 2)->w;
        bool ok = last_set(w + P_SEND, N_PLANES, b, b + n) == UINT32_MAX && !get(w, P_NOB, b) &&
                  !get(w, P_NOB, b + n);
        for (uint32_t e = b + 1; e <= b + n && ok; e++) ok = !any_control(w, e);
        if (!ok) continue;
        set_range(w + P_SEND, N_PLANES, b, b + n);
        for (uint32_t e = b + 1; e <= b + n; e++) set(w, P_BAN, e);
        set(w, P_BND, b);
        set(w, P_BND, b + n);
        return b;
    }
}

uint32_t exch_message_end(const struct exch_msgs *m, uint32_t i, uint32_t s) {
    const struct exch_route *route = exch_route();
    uint32_t end = s + m->items[i];
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) {
        const uint32_t x = s + (uint32_t)m->rec_x[j], lag = exch_lag(route, m->rec_tile[j]);
        /* p + n + 5, paired: f + n + 7 = p + n + 5 */
        const uint32_t p = m->paired[i] ? x + lag + 1 : x + lag;
        end = MAX(end, p + m->items[i] + TARGET_EXCH_TAIL_GUARD);
    }
    return end;
}
