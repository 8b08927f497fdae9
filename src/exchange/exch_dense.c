/* Dense unicast: a greedy driven by the senders in order of time (exchange 17.3, 17.5).
 *
 * The sender that is due first picks among all its waiting receivers the message with the best
 * score. For each decision all receivers are compared at once (16-bit vectors): those that could
 * accept within the look-ahead are scored
 *     - sender idle - min(receiver idle, cap) + weight x urgency of the receiver
 * where idle already lost is sunk (the cap), and urgency is the projected finish (start + words
 * still to come) or the words still to come, with more weight on the last words so that all end
 * together. A sender without a candidate comes back later. The time lines then say whether the slot
 * obeys every rule. For small rows a pointer control, a neutral and a gap count as slots, the
 * pointer more at tiles whose rows are longer than the mean; and a message gains if the sender of
 * the one that continues it at the receiver will be free just when it ends, which the receiver then
 * counts on (in three of four cases that one follows). Time per message does not depend on their
 * number. Only for problems without dependencies, moving sources and multicast. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

enum { N = TARGET_N_TILES, WHEEL_SHIFT = 128 };

/* Loops over all receivers, compiled for wider vectors too; the result is the same. */
#define CLONES __attribute__((target_clones("avx2", "default")))

struct dense {
    const struct exch_msgs *m;
    const struct exch_route *route;
    const struct exch_dense_options *o;
    struct exch_dense_small small; /* all 0 where only slots count */
    struct exch_lines *l;
    struct exch_sched *s;
    uint32_t *list;       /* messages by (sender, receiver), taken from the front */
    uint32_t *head;       /* [pairs] next in list */
    uint32_t *pair_end;   /* [pairs] */
    uint32_t *pair_of;    /* [N * N] index of a pair, only where pend != 0 */
    uint8_t *pend;        /* [N * N] messages waiting, saturated at 255 */
    int16_t near_free[N]; /* free label of receivers relative to epoch, clamped */
    int32_t free_label[N];
    uint32_t epoch;
    uint32_t end[N];                  /* of the sender's last message */
    uint32_t cursor[N];               /* slot from which the sender looks */
    uint32_t left_out[N], left_in[N]; /* words */
    uint32_t n_left, now;             /* now: bucket of the wheel */
    uint64_t words_left;
    int32_t mean[N];    /* mean ttm of a sender, for the order of time */
    int16_t urgency[N]; /* weight x words left, fixed point */
    int16_t score[N];
    int16_t scale, ttm_weight, gapless;
    uint32_t in_step;      /* 1: every slot has its sender's parity */
    int16_t contiguous[N]; /* worth of a pointer control saved at the receiver */
    int32_t words[N];      /* of a tile, beyond sends and source controls, so far */
    int64_t words_sum;
    uint32_t
        *follower; /* [messages] the one whose destination starts where this ends, or UINT32_MAX */
    int16_t expect[N];
    /* [N * N] 1 where what goes in front of the pair's next message at the receiver is there */
    uint8_t *open;
    uint8_t *done;
    int16_t promised[N]; /* receiver that counts on the sender's next message, or -1 */
    /* time wheel: senders due in a slot, linked */
    uint32_t n_buckets;
    int32_t *bucket; /* head of list or -1 */
    int32_t next[N];
    uint64_t evaluations;
};

/* Scores of all receivers for one sender in fixed point: `from` is its slot (relative, + 1), NONE
 * where nothing waits or the start would be later than the look-ahead. Returns the largest. */
enum { NONE = INT16_MIN };
struct scoring {
    const int16_t *near_free, *urgency;
    const int8_t *ttm;
    const uint8_t *pend;
    const int16_t *contiguous;
    const int16_t *expect; /* sender whose message continues the buffer of a receiver, or -1 */
    const uint8_t *open;
    int16_t from, look, cap, scale, ttm_weight, sender, gapless;
};
/* 16 receivers at once; N is a multiple. */
typedef int16_t v16 __attribute__((vector_size(32), aligned(2), may_alias));
typedef int8_t b16 __attribute__((vector_size(16), aligned(1), may_alias));

/* As macros: a function of vectors has another calling convention with AVX than without, and the
 * default clone is compiled without. */
#define PICK(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))
#define LARGER(a, b) PICK((a) > (b), a, b)
#define WIDE(bytes) __builtin_convertvector(*(const b16 *)(bytes), v16)

static inline __attribute__((always_inline)) int16_t largest(const v16 *v) {
    int16_t best = (*v)[0];
    for (uint32_t i = 1; i < 16; i++) best = MAX(best, (*v)[i]);
    return best;
}

CLONES static int16_t score_all(const struct scoring *k, int16_t *score) {
    const v16 zero = {0}, from = zero + k->from, look = zero + k->look, cap = zero + k->cap;
    const v16 scale = zero + k->scale, ttm_weight = zero + k->ttm_weight, none = zero + NONE;
    const v16 sender = zero + k->sender;
    const v16 gapless = zero + k->gapless;
    v16 best = none;
    for (uint32_t d = 0; d < N; d += 16) {
        const v16 ttm = WIDE(k->ttm + d), pend = WIDE(k->pend + d);
        const v16 wait = *(const v16 *)(k->near_free + d) - ttm - from;
        const v16 idle = PICK(-wait < cap, -wait, cap);
        const v16 expect = *(const v16 *)(k->expect + d), follows = expect == sender;
        const v16 contiguous = *(const v16 *)(k->contiguous + d);
        const v16 bonus = ((follows | (expect < zero)) & contiguous) +
                          ((follows | (WIDE(k->open + d) != zero)) & contiguous) - contiguous +
                          ((wait <= zero) & gapless) + ((wait >= zero) & gapless);
        const v16 v =
            *(const v16 *)(k->urgency + d) - LARGER(wait, idle) * scale + ttm * ttm_weight + bonus;
        const v16 out = PICK((wait > look) | (pend == zero), none, v);
        *(v16 *)(score + d) = out;
        best = LARGER(best, out);
    }
    return largest(&best);
}
CLONES static int16_t score_max(const int16_t *score) {
    v16 best = (v16){0} + NONE;
    for (uint32_t d = 0; d < N; d += 16) best = LARGER(best, *(const v16 *)(score + d));
    return largest(&best);
}
/* First receiver with this score. */
CLONES static uint32_t score_find(const int16_t *score, int16_t value) {
    const v16 wanted = (v16){0} + value;
    for (uint32_t w = 0; w < N; w += 64) {
        v16 any = {0};
        for (uint32_t d = w; d < w + 64; d += 16) any |= *(const v16 *)(score + d) == wanted;
        uint64_t bits[4];
        memcpy(bits, &any, sizeof bits);
        if ((bits[0] | bits[1] | bits[2] | bits[3]) == 0) continue;
        for (uint32_t d = w; d < w + 64; d++)
            if (score[d] == value) return d;
    }
    return N;
}
/* Receivers with at least this score, ascending. */
CLONES static uint32_t score_list(const int16_t *score, int16_t least, uint16_t *list) {
    uint32_t n = 0;
    for (uint32_t w = 0; w < N; w += 16) {
        const v16 any = *(const v16 *)(score + w) >= (v16){0} + least;
        uint64_t bits[4];
        memcpy(bits, &any, sizeof bits);
        if ((bits[0] | bits[1] | bits[2] | bits[3]) == 0) continue;
        for (uint32_t d = w; d < w + 16; d++) {
            list[n] = (uint16_t)d;
            n += score[d] >= least;
        }
    }
    return n;
}
/* Earliest wait of a receiver with something pending. */
CLONES static int16_t first_wait(const int16_t *near_free, const int8_t *ttm, const uint8_t *pend) {
    const v16 zero = {0}, never = zero + INT16_MIN;
    v16 first = never; /* of the negated waits */
    for (uint32_t d = 0; d < N; d += 16) {
        const v16 at = WIDE(ttm + d) - *(const v16 *)(near_free + d);
        first = LARGER(first, PICK(WIDE(pend + d) == zero, never, at));
    }
    return (int16_t)-MAX(largest(&first), -INT16_MAX);
}

/* The parity of a latency is that of a number of the sender plus a number of the receiver. So,
 * where all lengths are even, messages whose slots have the parity of their senders' numbers leave
 * only even gaps: twice as many fit without one. In step: slots and labels rounded up to that. */
static inline uint32_t step_slot(const struct dense *k, uint32_t s, uint32_t slot) {
    return slot + (k->in_step & (slot + (uint32_t)k->route->ttm[s][0]) & 1);
}
static inline int32_t step_label(const struct dense *k, uint32_t d, int32_t label) {
    return label + (k->in_step & (label + 1 + k->route->ttm[0][d] + k->route->ttm[0][0]) & 1);
}

static void set_near(struct dense *k, uint32_t d) {
    const int32_t v = k->free_label[d] - (int32_t)k->epoch;
    k->near_free[d] = (int16_t)CLAMP(v, -16000, 30000);
}

/* A pointer control that meets a source control takes more: a two-word instruction at an even word.
 */
static int32_t pointer_words(const struct dense *k, uint32_t d, uint32_t items) {
    return exch_lag(k->route, d) % items == 0 ? 2 : 1;
}

/* Receivers that have more control words than the mean by now save with more weight. */
static void set_contiguous(struct dense *k, uint32_t d) {
    const float mean = (float)k->words_sum / (float)N;
    const float more = CLAMP(((float)k->words[d] - mean) * k->small.even, -0.7f, 2.0f);
    float v = k->small.contiguous * (1.0f + more) * (float)k->scale;
    if (k->expect[d] >= 0 && k->promised[k->expect[d]] == (int16_t)d) v *= k->small.guard;
    k->contiguous[d] = (int16_t)MIN(v, 7000.0f);
}

/* Fixed point: `scale` units per slot, so that the largest urgency and cost fit 16 bits. */
static void set_scale(struct dense *k) {
    uint32_t most = 1;
    for (uint32_t d = 0; d < N; d++) most = MAX(most, k->left_in[d]);
    const float room = 14000.0f / (k->o->weight * (float)most +
                                   k->o->tail_weight * (float)MIN(most, k->o->tail) + 1.0f);
    k->scale = (int16_t)CLAMP(room, 4.0f, 64.0f);
    const uint32_t worst = 2 * MAX(k->o->look, k->o->cap);
    if (worst * (uint32_t)k->scale > 12000) k->scale = (int16_t)(12000 / worst);
    /* at most, in slots */
    const float bonus =
        2 * (k->small.contiguous * k->small.guard + k->small.gapless) + k->small.ahead;
    if (bonus * (float)k->scale > 16000.0f) k->scale = (int16_t)MAX(16000.0f / bonus, 1.0f);
    for (uint32_t d = 0; d < N; d++) set_contiguous(k, d);
    k->gapless = (int16_t)(k->small.gapless * (float)k->scale);
    k->ttm_weight = (int16_t)(k->o->projected ? k->o->weight * (float)k->scale + 0.5f : 0);
}
static void set_urgency(struct dense *k, uint32_t d) {
    const uint32_t left = k->left_in[d];
    const float v =
        (k->o->weight * (float)left + k->o->tail_weight * (float)MIN(left, k->o->tail)) *
        (float)k->scale;
    k->urgency[d] = (int16_t)MIN(v, 16000.0f);
}

static void move_epoch(struct dense *k, uint32_t slot) {
    if (slot < k->epoch + 8000) return;
    k->epoch = slot - 4000;
    for (uint32_t d = 0; d < N; d++) set_near(k, d);
}

static void wheel_add(struct dense *k, uint32_t sender) {
    const float more = (float)k->left_out[sender] - (float)k->words_left / (float)N;
    const int32_t lead = (int32_t)CLAMP(k->o->lead * more, -16.0f, 16.0f);
    uint32_t at = k->cursor[sender] + (uint32_t)(k->mean[sender] + WHEEL_SHIFT - lead);
    at = MAX(at, k->now);
    if (at >= k->n_buckets) {
        const uint32_t n = at + at / 2 + 1024;
        k->bucket = g_renew(int32_t, k->bucket, n);
        for (uint32_t b = k->n_buckets; b < n; b++) k->bucket[b] = -1;
        k->n_buckets = n;
    }
    k->next[sender] = k->bucket[at];
    k->bucket[at] = (int32_t)sender;
}

struct candidate {
    uint32_t d, slot;
};

/* Score of a receiver that the rules pushed to a later slot. */
static int16_t later_score(const struct dense *k, const struct scoring *g, uint32_t d,
                           uint32_t push) {
    const int32_t wait = k->near_free[d] - g->ttm[d] - g->from;
    const int32_t receiver_idle = (int32_t)push - wait;
    const int32_t cost = (int32_t)push + MIN(receiver_idle, (int32_t)g->cap);
    const bool follows = g->expect[d] == g->sender;
    const int32_t bonus = (follows || g->expect[d] < 0 ? g->contiguous[d] : 0) +
                          (follows || g->open[d] ? g->contiguous[d] : 0) - g->contiguous[d] +
                          (receiver_idle <= 0 ? g->gapless : 0);
    return (int16_t)MAX(k->urgency[d] - cost * g->scale + g->ttm[d] * g->ttm_weight + bonus,
                        NONE + 1);
}

/* First waiting message of a sender for a receiver. */
static inline uint32_t next_message(const struct dense *k, uint32_t s, uint32_t d) {
    return k->list[k->head[k->pair_of[(size_t)s * N + d]]];
}

/* Worth of putting message i into this slot because of the message that continues it: most when the
 * sender of that will be free just when the receiver is. */
static int16_t ahead_worth(const struct dense *k, uint32_t i, uint32_t slot) {
    const uint32_t f = k->follower[i], n = k->m->items[i];
    if (f == UINT32_MAX || k->done[f]) return 0;
    const uint32_t s = k->m->src[i], d = k->m->rec_tile[k->m->rec0[i]], o = k->m->src[f];
    if (k->promised[o] >= 0 && k->promised[o] != (int16_t)d) return 0;
    if (o != s && next_message(k, o, d) != f) return 0;
    const uint32_t end = slot + n, free = o == s ? end : k->cursor[o];
    const int32_t gap = (int32_t)free + k->route->ttm[o][d] - (int32_t)end - k->route->ttm[s][d];
    const float v = k->small.ahead - k->small.ahead_gap * (float)ABS(gap);
    return v > 0 ? (int16_t)(v * (float)k->scale) : 0;
}

/* Adds it to the scores of all receivers that could be best with it. */
static int16_t score_ahead(struct dense *k, uint32_t s, const struct scoring *g, int16_t best) {
    const int32_t least = MAX(best - (int32_t)(k->small.ahead * (float)k->scale), NONE + 1);
    uint16_t list[N];
    const uint32_t n = score_list(k->score, (int16_t)least, list);
    for (uint32_t a = 0; a < n; a++) {
        const uint32_t d = list[a];
        const int32_t at = k->free_label[d] - g->ttm[d] - 1;
        const uint32_t slot = (uint32_t)MAX((int32_t)k->cursor[s], at);
        k->score[d] = (int16_t)(k->score[d] + ahead_worth(k, next_message(k, s, d), slot));
        best = MAX(best, k->score[d]);
    }
    return best;
}

/* Best message of a sender within the look-ahead; false if there is none. */
static bool choose(struct dense *k, uint32_t s, struct candidate *ret) {
    const uint32_t from = k->cursor[s], limit = from + k->o->look;
    const struct scoring g = {.near_free = k->near_free,
                              .urgency = k->urgency,
                              .ttm = k->route->ttm[s],
                              .pend = k->pend + (size_t)s * N,
                              .from = (int16_t)(from - k->epoch + 1),
                              .look = (int16_t)k->o->look,
                              .cap = (int16_t)k->o->cap,
                              .scale = k->scale,
                              .ttm_weight = k->ttm_weight,
                              .expect = k->expect,
                              .sender = (int16_t)s,
                              .open = k->open + (size_t)s * N,
                              .contiguous = k->contiguous,
                              .gapless = k->gapless};
    int16_t best = score_all(&g, k->score);
    if (k->small.ahead > 0 && best != NONE) best = score_ahead(k, s, &g, best);
    struct candidate pushed[N];
    uint32_t n_pushed = 0;
    while (best != NONE) {
        const uint32_t d = score_find(k->score, best);
        const int32_t at = k->free_label[d] - g.ttm[d] - 1;
        uint32_t slot = (uint32_t)MAX((int32_t)from, at), p = 0;
        while (p < n_pushed && pushed[p].d != d) p++;
        if (p < n_pushed) slot = pushed[p].slot;
        const uint32_t message = next_message(k, s, d);
        const uint32_t v = step_slot(k, s, exch_lines_try(k->l, message, slot));
        k->evaluations++;
        if (v == slot) {
            *ret = (struct candidate){d, slot};
            return true;
        }
        k->score[d] = v > limit ? NONE : later_score(k, &g, d, v - from);
        if (k->small.ahead > 0 && v <= limit)
            k->score[d] = (int16_t)(k->score[d] + ahead_worth(k, message, v));
        if (v <= limit) {
            pushed[p] = (struct candidate){d, v};
            n_pushed += p == n_pushed;
        }
        best = score_max(k->score);
    }
    return false;
}

/* The receiver waits for message f if it is the next that its sender would give it. */
static void set_expect(struct dense *k, uint32_t d, uint32_t f) {
    k->expect[d] = -1;
    if (f == UINT32_MAX || k->done[f]) return;
    const uint32_t s = k->m->src[f];
    if (next_message(k, s, d) != f) return;
    k->expect[d] = (int16_t)s;
    k->open[(size_t)s * N + d] = 1;
}

/* Control words that the choice costs its receiver and its sender. */
static void count_words(struct dense *k, uint32_t s, const struct candidate *c, uint32_t items) {
    const int32_t at = (int32_t)c->slot + k->route->ttm[s][c->d] + 1;
    const int32_t pointer = k->expect[c->d] == (int16_t)s ? 0 : pointer_words(k, c->d, items);
    const int32_t neutral = at > k->free_label[c->d], gap = c->slot > k->end[s];
    k->words[c->d] += pointer + neutral;
    k->words[s] += gap;
    k->words_sum += pointer + neutral + gap;
    k->end[s] = c->slot + items;
    set_contiguous(k, c->d);
}

/* Renews what the receiver waits for behind message i, and whether it counts on the sender of that.
 * A receiver that counted on the sender of i in vain keeps its guard until its own next message. */
static void set_promises(struct dense *k, uint32_t i) {
    const uint32_t d = k->m->rec_tile[k->m->rec0[i]];
    k->promised[k->m->src[i]] = -1;
    set_expect(k, d, k->follower[i]);
    if (ahead_worth(k, i, k->s->slot[i]) > 0) k->promised[k->m->src[k->follower[i]]] = (int16_t)d;
    set_contiguous(k, d);
}

static void take(struct dense *k, uint32_t s, const struct candidate *c) {
    const uint32_t pair = k->pair_of[(size_t)s * N + c->d], i = k->list[k->head[pair]++];
    const uint32_t left = k->pair_end[pair] - k->head[pair], n = k->m->items[i];
    if (k->small.even != 0) count_words(k, s, c, n);
    k->pend[(size_t)s * N + c->d] = (uint8_t)MIN(left, 255u);
    k->open[(size_t)s * N + c->d] = 0;
    exch_lines_commit(k->l, i, c->slot);
    k->s->slot[i] = c->slot;
    k->cursor[s] = c->slot + n;
    k->free_label[c->d] = (int32_t)c->slot + k->route->ttm[s][c->d] + 1 + (int32_t)n;
    set_near(k, c->d);
    k->done[i] = 1;
    if (k->small.contiguous > 0) set_promises(k, i);
    k->left_out[s] -= n;
    k->words_left -= n;
    k->left_in[c->d] -= n;
    set_urgency(k, c->d);
    k->n_left--;
}

/* Senders due in one slot: most work left first (17.3), then by number. */
static uint32_t due(struct dense *k, uint32_t at, uint32_t *list) {
    uint32_t n = 0;
    for (int32_t s = k->bucket[at]; s >= 0; s = k->next[s]) {
        uint32_t i = n++;
        while (i > 0 &&
               (k->left_out[list[i - 1]] < k->left_out[s] ||
                (k->left_out[list[i - 1]] == k->left_out[s] && list[i - 1] > (uint32_t)s))) {
            list[i] = list[i - 1];
            i--;
        }
        list[i] = (uint32_t)s;
    }
    k->bucket[at] = -1;
    return n;
}

/* No candidate: look again when the first of the receivers is near, but not step by step. */
static void postpone(struct dense *k, uint32_t s) {
    const int16_t wait = first_wait(k->near_free, k->route->ttm[s], k->pend + (size_t)s * N);
    const int32_t first = (int32_t)k->epoch + wait - 1, half = (int32_t)k->o->look / 2;
    k->cursor[s] = step_slot(k, s, (uint32_t)MAX((int32_t)k->cursor[s] + half + 1, first - half));
}

/* Messages by receiver and address: neighbours that touch follow each other. */
static void find_followers(struct dense *k) {
    const struct exch_msgs *m = k->m;
    k->follower = g_new(uint32_t, m->n + 1);
    memset(k->follower, 0xff, (m->n + 1) * sizeof *k->follower);
    memset(k->expect, 0xff, sizeof k->expect);
    memset(k->promised, 0xff, sizeof k->promised);
    if (k->small.contiguous == 0) return;
    uint32_t first[N + 1] = {0};
    for (uint32_t i = 0; i < m->n; i++) first[m->rec_tile[m->rec0[i]] + 1]++;
    for (uint32_t d = 0; d < N; d++) first[d + 1] += first[d];
    uint64_t *key = g_new(uint64_t, m->n + 1);
    uint32_t *at = g_memdup2(first, sizeof first);
    for (uint32_t i = 0; i < m->n; i++)
        key[at[m->rec_tile[m->rec0[i]]]++] = (uint64_t)exch_rec_address(m, i, m->rec0[i]) << 32 | i;
    for (uint32_t d = 0; d < N; d++) {
        qsort(key + first[d], first[d + 1] - first[d], sizeof *key, exch_key_compare);
        for (uint32_t a = first[d]; a + 1 < first[d + 1]; a++) {
            const uint32_t i = (uint32_t)key[a], j = (uint32_t)key[a + 1];
            if ((key[a] >> 32) + 4u * m->items[i] == key[a + 1] >> 32) k->follower[i] = j;
        }
    }
    g_free(key);
    g_free(at);
}

/* Stays where it is: sent before the cut in the sender's order of time. */
static inline bool kept(const struct dense *k, uint32_t i) {
    return k->o->keep_before != 0 &&
           (int32_t)k->s->slot[i] + k->mean[k->m->src[i]] < k->o->keep_before;
}

/* A kept message that reaches into the new part is committed; all push the ends of their endpoints.
 */
static void keep(struct dense *k, uint32_t i) {
    enum {
        REACH = 700
    }; /* slots: the largest lag and latency, and the longest message that matters */
    const struct exch_msgs *m = k->m;
    const uint32_t s = m->src[i], d = m->rec_tile[m->rec0[i]], slot = k->s->slot[i];
    const int32_t end = (int32_t)slot + m->items[i];
    if (end + k->mean[s] + REACH >= k->o->keep_before) exch_lines_commit(k->l, i, slot);
    k->cursor[s] = MAX(k->cursor[s], (uint32_t)end);
    k->free_label[d] = MAX(k->free_label[d], end + k->route->ttm[s][d] + 1);
    k->n_left--;
    k->done[i] = 1;
}

static void count_pairs(struct dense *k) {
    const struct exch_msgs *m = k->m;
    uint32_t *key = g_new0(uint32_t, (size_t)N * N + 1);
    for (uint32_t i = 0; i < m->n; i++) {
        if (kept(k, i)) {
            keep(k, i);
            continue;
        }
        key[(size_t)m->src[i] * N + m->rec_tile[m->rec0[i]]]++;
        k->left_out[m->src[i]] += m->items[i];
        k->words_left += m->items[i];
        k->left_in[m->rec_tile[m->rec0[i]]] += m->items[i];
    }
    uint32_t n_pairs = 0, at = 0;
    for (size_t c = 0; c < (size_t)N * N; c++) n_pairs += key[c] != 0;
    k->head = g_new(uint32_t, n_pairs + 1);
    k->pair_end = g_new(uint32_t, n_pairs + 1);
    n_pairs = 0;
    for (size_t c = 0; c < (size_t)N * N; c++) {
        if (key[c] == 0) continue;
        k->pend[c] = (uint8_t)MIN(key[c], 255u);
        k->pair_of[c] = n_pairs;
        k->head[n_pairs] = k->pair_end[n_pairs] = at;
        at += key[c];
        n_pairs++;
    }
    for (uint32_t i = 0; i < m->n; i++)
        if (!k->done[i])
            k->list[k->pair_end[k->pair_of[(size_t)m->src[i] * N + m->rec_tile[m->rec0[i]]]]++] = i;
    g_free(key);
}

static void first_slots(struct dense *k) {
    for (uint32_t s = 0; s < N; s++) {
        int32_t sum = 0;
        for (uint32_t d = 0; d < N; d++) sum += k->route->ttm[s][d];
        k->mean[s] = sum / N;
        k->free_label[s] = 1;
    }
}

static bool even_lengths(const struct exch_msgs *m) {
    for (uint32_t i = 0; i < m->n; i++)
        if (m->items[i] % 2 != 0) return false;
    return true;
}

static void prepare(struct dense *k) {
    first_slots(k);
    k->in_step = k->o->in_step && even_lengths(k->m);
    k->n_left = k->m->n;
    k->done = g_new0(uint8_t, k->m->n + 1);
    count_pairs(k);
    set_scale(k);
    find_followers(k);
    for (uint32_t s = 0; s < N; s++) {
        int32_t first = INT32_MAX;
        for (uint32_t d = 0; d < N; d++)
            if (k->pend[(size_t)s * N + d]) first = MIN(first, MAX(0, -k->route->ttm[s][d]));
        if (first != INT32_MAX) k->cursor[s] = MAX(k->cursor[s], (uint32_t)first);
        k->cursor[s] = step_slot(k, s, k->cursor[s]);
        k->free_label[s] = step_label(k, s, k->free_label[s]);
        set_near(k, s);
        set_urgency(k, s);
        if (k->left_out[s] > 0) wheel_add(k, s);
    }
}

bool exch_dense_applies(const struct exch_msgs *m) {
    if (m->p->first_dependency != NULL || m->n_rec != m->n || m->n < 2 * N) return false;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->moving[i] || m->paired[i]) return false;
    return true;
}

void exch_sched_dense(const struct exch_msgs *m, const struct exch_dense_options *o, bool relaxed,
                      struct exch_sched *ret) {
    struct dense *k = g_new0(struct dense, 1);
    k->m = m;
    k->route = exch_route();
    k->o = o;
    if (o->small != NULL) k->small = *o->small;
    k->s = ret;
    k->l = exch_lines_new(m, relaxed);
    k->list = g_new(uint32_t, m->n + 1);
    k->pair_of = g_new(uint32_t, (size_t)N * N);
    k->pend = g_new0(uint8_t, (size_t)N * N);
    k->open = g_new0(uint8_t, (size_t)N * N);
    prepare(k);
    uint32_t list[N];
    for (uint32_t at = 0; k->n_left > 0; at++) {
        BUG_ON(at >= k->n_buckets);
        k->now = at;
        while (k->bucket[at] >= 0) {
            const uint32_t n = due(k, at, list);
            for (uint32_t i = 0; i < n; i++) {
                const uint32_t s = list[i];
                move_epoch(k, k->cursor[s]);
                struct candidate c;
                if (choose(k, s, &c)) take(k, s, &c);
                else postpone(k, s);
                if (k->left_out[s] > 0) wheel_add(k, s);
            }
        }
    }
    ret->horizon = 0;
    for (uint32_t i = 0; i < m->n; i++)
        ret->horizon = MAX(ret->horizon, exch_message_end(m, i, ret->slot[i]));
    ret->evaluations += exch_lines_work(k->l) + 8 * k->evaluations;
    exch_lines_free(k->l);
    g_free(k->list);
    g_free(k->head);
    g_free(k->pair_end);
    g_free(k->pair_of);
    g_free(k->pend);
    g_free(k->open);
    g_free(k->bucket);
    g_free(k->follower);
    g_free(k->done);
    g_free(k);
}
