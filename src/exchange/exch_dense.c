/* Dense unicast: a greedy driven by the senders in order of time (exchange 17.3, 17.5).
 *
 * The sender that is due first picks among all its waiting receivers the message with the best score. For each
 * decision all receivers are compared at once (16-bit vectors): those that could accept within the
 * look-ahead are scored
 *     - sender idle - min(receiver idle, cap) + weight x urgency of the receiver
 * where idle already lost is sunk (the cap), and urgency is the projected finish (start + words still to
 * come) or the words still to come. A sender without a candidate comes back later. The time lines
 * then say whether the slot obeys every rule. Time per message does not depend on their number.
 * Only for problems without dependencies, moving sources and multicast. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

enum { N = TARGET_N_TILES, WHEEL_SHIFT = 128, MAX_HITS = N };

struct pending { /* messages of one sender by receiver */
    uint32_t first, n; /* into dense.list */
};

struct dense {
    const struct exch_msgs *m;
    const struct exch_route *route;
    const struct exch_dense_options *o;
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
    uint32_t cursor[N];   /* slot from which the sender looks */
    uint32_t left_out[N], left_in[N]; /* words */
    uint32_t n_left;
    int32_t mean[N];      /* mean ttm of a sender, for the order of time */
    uint8_t hit[N];
    int16_t start[N];
    /* time wheel: senders due in a slot, linked */
    uint32_t n_buckets;
    int32_t *bucket;      /* head of list or -1 */
    int32_t next[N];
    uint64_t evaluations;
};

/* Receivers that wait for the sender and whose free label admits a start up to `limit`. */
__attribute__((target_clones("avx2", "default"))) static uint32_t
find_hits(const int16_t *near_free, const int8_t *ttm, const uint8_t *pend, int16_t limit,
          uint8_t *hit) {
    uint32_t any = 0;
    for (uint32_t d = 0; d < N; d++) {
        const int16_t start = (int16_t)(near_free[d] - ttm[d]);
        const uint8_t h = (uint8_t)((start <= limit) & (pend[d] != 0));
        hit[d] = h;
        any += h;
    }
    return any;
}

static void set_near(struct dense *k, uint32_t d) {
    const int32_t v = k->free_label[d] - (int32_t)k->epoch;
    k->near_free[d] = (int16_t)CLAMP(v, -16000, 30000);
}

static void move_epoch(struct dense *k, uint32_t slot) {
    if (slot < k->epoch + 8000) return;
    k->epoch = slot - 4000;
    for (uint32_t d = 0; d < N; d++) set_near(k, d);
}

static void wheel_add(struct dense *k, uint32_t sender) {
    uint32_t at = k->cursor[sender] + (uint32_t)(k->mean[sender] + WHEEL_SHIFT);
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
    float score;
};

static float score(const struct dense *k, uint32_t s, uint32_t d, uint32_t slot) {
    const int32_t arrive = (int32_t)slot + k->route->ttm[s][d] + 1;
    const int32_t receiver_idle = arrive - k->free_label[d];
    const float idle = (float)(slot - k->cursor[s]) +
                       (float)MIN(receiver_idle, (int32_t)k->o->cap) * k->o->receiver_weight;
    const uint32_t urgency = k->left_in[d] + (k->o->projected ? (uint32_t)(arrive + 128) : 0);
    return k->o->weight * (float)urgency - idle;
}

/* Best message of a sender within the look-ahead; false if there is none. */
static bool choose(struct dense *k, uint32_t s, struct candidate *ret) {
    const uint32_t from = k->cursor[s], limit = from + k->o->look;
    const int32_t near_limit = (int32_t)limit - (int32_t)k->epoch + 1;
    if (find_hits(k->near_free, k->route->ttm[s], k->pend + (size_t)s * N, (int16_t)near_limit,
                  k->hit) == 0)
        return false;
    static _Thread_local struct candidate c[MAX_HITS];
    uint32_t n = 0;
    for (uint32_t w = 0; w < N; w += 8) {
        uint64_t v;
        memcpy(&v, k->hit + w, 8);
        for (; v != 0; v &= v - 1) {
            const uint32_t d = w + (uint32_t)__builtin_ctzll(v) / 8;
            const int32_t ttm = k->route->ttm[s][d];
            const int32_t at = k->free_label[d] - ttm - 1;
            const uint32_t slot = (uint32_t)MAX(MAX((int32_t)from, at), -ttm);
            if (slot > limit) continue;
            c[n++] = (struct candidate){d, slot, score(k, s, d, slot)};
        }
    }
    while (n > 0) {
        uint32_t best = 0;
        for (uint32_t i = 1; i < n; i++)
            if (c[i].score > c[best].score) best = i;
        struct candidate *b = &c[best];
        const uint32_t message = k->list[k->head[k->pair_of[(size_t)s * N + b->d]]];
        const uint32_t v = exch_lines_try(k->l, message, b->slot);
        k->evaluations++;
        if (v == b->slot) {
            *ret = *b;
            return true;
        }
        if (v > limit) {
            *b = c[--n];
            continue;
        }
        b->slot = v;
        b->score = score(k, s, b->d, v);
    }
    return false;
}

static void take(struct dense *k, uint32_t s, const struct candidate *c) {
    const uint32_t pair = k->pair_of[(size_t)s * N + c->d], i = k->list[k->head[pair]++];
    const uint32_t left = k->pair_end[pair] - k->head[pair], n = k->m->items[i];
    k->pend[(size_t)s * N + c->d] = (uint8_t)MIN(left, 255u);
    exch_lines_commit(k->l, i, c->slot);
    k->s->slot[i] = c->slot;
    k->cursor[s] = c->slot + n;
    k->free_label[c->d] = (int32_t)c->slot + k->route->ttm[s][c->d] + 1 + (int32_t)n;
    set_near(k, c->d);
    k->left_out[s] -= n;
    k->left_in[c->d] -= n;
    k->n_left--;
}

/* Senders due in one slot: most work left first (17.3), then by number. */
static uint32_t due(struct dense *k, uint32_t at, uint32_t *list) {
    uint32_t n = 0;
    for (int32_t s = k->bucket[at]; s >= 0; s = k->next[s]) {
        uint32_t i = n++;
        while (i > 0 && (k->left_out[list[i - 1]] < k->left_out[s] ||
                         (k->left_out[list[i - 1]] == k->left_out[s] && list[i - 1] > (uint32_t)s))) {
            list[i] = list[i - 1];
            i--;
        }
        list[i] = (uint32_t)s;
    }
    k->bucket[at] = -1;
    return n;
}

/* No candidate: look again where the first of the receivers becomes free, but not step by step. */
static void postpone(struct dense *k, uint32_t s) {
    const uint8_t *pend = k->pend + (size_t)s * N;
    int32_t first = INT32_MAX;
    for (uint32_t d = 0; d < N; d++)
        if (pend[d] != 0) first = MIN(first, MAX(k->free_label[d] - 1, 0) - k->route->ttm[s][d]);
    const int32_t next = (int32_t)(k->cursor[s] + k->o->look / 2 + 1);
    k->cursor[s] = (uint32_t)MAX(next, first - (int32_t)k->o->look / 2);
}

static void count_pairs(struct dense *k) {
    const struct exch_msgs *m = k->m;
    uint32_t *key = g_new0(uint32_t, (size_t)N * N + 1);
    for (uint32_t i = 0; i < m->n; i++) {
        key[(size_t)m->src[i] * N + m->rec_tile[m->rec0[i]]]++;
        k->left_out[m->src[i]] += m->items[i];
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
        k->list[k->pair_end[k->pair_of[(size_t)m->src[i] * N + m->rec_tile[m->rec0[i]]]]++] = i;
    g_free(key);
}

static void prepare(struct dense *k) {
    count_pairs(k);
    k->n_left = k->m->n;
    for (uint32_t s = 0; s < N; s++) {
        int32_t sum = 0;
        for (uint32_t d = 0; d < N; d++) sum += k->route->ttm[s][d];
        k->mean[s] = sum / N;
        int32_t first = INT32_MAX;
        for (uint32_t d = 0; d < N; d++)
            if (k->pend[(size_t)s * N + d]) first = MIN(first, MAX(0, -k->route->ttm[s][d]));
        k->cursor[s] = first == INT32_MAX ? 0 : (uint32_t)first;
        k->free_label[s] = 1;
        set_near(k, s);
        if (k->left_out[s] > 0) wheel_add(k, s);
    }
}

bool exch_dense_applies(const struct exch_msgs *m) {
    if (m->p->first_dependency != NULL || m->n_rec != m->n || m->n < 4 * N) return false;
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
    k->s = ret;
    k->l = exch_lines_new(m, relaxed);
    k->list = g_new(uint32_t, m->n + 1);
    k->pair_of = g_new(uint32_t, (size_t)N * N);
    k->pend = g_new0(uint8_t, (size_t)N * N);
    prepare(k);
    uint32_t list[N];
    for (uint32_t at = 0; k->n_left > 0; at++) {
        BUG_ON(at >= k->n_buckets);
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
    ret->evaluations += k->evaluations;
    exch_lines_free(k->l);
    g_free(k->list);
    g_free(k->head);
    g_free(k->pair_end);
    g_free(k->pair_of);
    g_free(k->pend);
    g_free(k->bucket);
    g_free(k);
}
