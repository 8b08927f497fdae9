/* Greedy over all waiting messages, for multicast: gap first, remaining work second.
 *
 * Every waiting message has a score from the ends of its endpoints' time lines:
 *     - mean over its recipients of min(idle, cap) - sender weight x min(sender idle, cap)
 *     + weight x largest remaining work of its endpoints (receiving and sending apart)
 * The best one is placed in the first slot that admits it from there on, and only messages that
 * share an endpoint with it are scored again. So messages that follow each other at common
 * recipients from like places of the die (no gap at any of them) find each other. Cost: messages x
 * (neighbours x fan-out). */
#include "exchange/exch_int.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

enum { N = TARGET_N_TILES, MAX_FEW = 64 };

struct tile_end {
    uint32_t src, pay, fmt; /* labels where source, payload and format lines end */
    uint32_t send;          /* slot where the own lane is free */
    uint32_t left_in, left_out;
    uint8_t mode; /* 0 nothing yet, 1 ordinary, 2 paired */
    uint8_t format;
};

struct greedy {
    const struct exch_msgs *m;
    const struct exch_route *route;
    const struct exch_greedy_options *o;
    struct exch_lines *l;
    struct tile_end tile[N];
    uint32_t *first, *list; /* messages that touch a tile, CSR */
    float *score;
    uint32_t *slot;                       /* estimated */
    uint32_t *waiting, n_waiting, *place; /* dense list of waiting messages */
    uint32_t *stamp, now;
    uint64_t evaluations;
};

/* Earliest payload label at recipient j that its lines admit, as a send slot. */
static int32_t need(const struct greedy *k, uint32_t i, uint32_t j, uint32_t lag) {
    const struct exch_msgs *m = k->m;
    const struct tile_end *t = &k->tile[m->rec_tile[j]];
    const int32_t x = m->rec_x[j];
    if (!m->paired[i]) return MAX((int32_t)t->src - x, (int32_t)(t->pay - lag) - x);
    const int32_t f = x + (int32_t)lag - 1;
    int32_t s = (int32_t)(t->mode == 1 ? t->pay : t->fmt) - f;
    if (t->mode == 2 && t->format != (m->rec_flag[j] & REC_FORMAT)) s++;
    return MAX(s, (int32_t)t->src - ((m->rec_flag[j] & REC_EARLY) ? x : f));
}

static void evaluate(struct greedy *k, uint32_t i) {
    const struct exch_msgs *m = k->m;
    const struct tile_end *src = &k->tile[m->src[i]];
    uint32_t free = src->send, left = src->left_out;
    if (m->paired[i]) free = MAX(free, k->tile[m->src[i] ^ 1].send);
    int32_t s = (int32_t)MAX(free, m->s_min[i]);
    uint32_t lag = 0, last = UINT32_MAX;
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) {
        if (m->rec_tile[j] != last) lag = exch_lag(k->route, last = m->rec_tile[j]);
        s = MAX(s, need(k, i, j, lag));
        left = MAX(left, k->tile[m->rec_tile[j]].left_in);
    }
    uint32_t idle = 0;
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) {
        const struct tile_end *t = &k->tile[m->rec_tile[j]];
        const uint32_t p = (uint32_t)(s + m->rec_x[j]) + exch_lag(k->route, m->rec_tile[j]);
        const uint32_t gap = p - MIN(p, t->pay);
        idle += MIN(gap, k->o->cap);
    }
    const uint32_t n = m->rec0[i + 1] - m->rec0[i];
    const uint32_t wait = MIN((uint32_t)s - free, k->o->cap);
    k->slot[i] = (uint32_t)s;
    k->score[i] = k->o->weight * (float)left - (float)idle / (float)n -
                  k->o->sender_weight * (float)wait - k->o->time_weight * (float)s;
    if (k->o->tier != NULL) k->score[i] -= 1e6f * (float)k->o->tier[i];
    k->evaluations += n;
}

static void link_tiles(struct greedy *k) {
    const struct exch_msgs *m = k->m;
    k->first = g_new0(uint32_t, N + 2);
    for (uint32_t i = 0; i < m->n; i++) {
        k->first[m->src[i] + 1]++;
        if (m->paired[i]) k->first[(m->src[i] ^ 1) + 1]++;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) k->first[m->rec_tile[j] + 1]++;
    }
    for (uint32_t t = 0; t < N; t++) k->first[t + 1] += k->first[t];
    uint32_t *at = g_memdup2(k->first, (N + 1) * sizeof(uint32_t));
    k->list = g_new(uint32_t, k->first[N] + 1);
    for (uint32_t i = 0; i < m->n; i++) {
        k->list[at[m->src[i]]++] = i;
        if (m->paired[i]) k->list[at[m->src[i] ^ 1]++] = i;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) k->list[at[m->rec_tile[j]]++] = i;
    }
    g_free(at);
}

static void rescore_tile(struct greedy *k, uint32_t t) {
    uint32_t keep = k->first[t];
    for (uint32_t c = k->first[t]; c < k->first[t + 1] && k->list[c] != UINT32_MAX; c++) {
        const uint32_t i = k->list[c];
        if (k->place[i] == UINT32_MAX) continue; /* done: drop from the list */
        k->list[keep++] = i;
        if (k->stamp[i] == k->now) continue;
        k->stamp[i] = k->now;
        evaluate(k, i);
    }
    if (keep < k->first[t + 1]) k->list[keep] = UINT32_MAX;
}

static void update_ends(struct greedy *k, uint32_t i, uint32_t s) {
    const struct exch_msgs *m = k->m;
    const uint32_t n = m->items[i];
    struct tile_end *src = &k->tile[m->src[i]];
    src->send = MAX(src->send, s + n);
    src->left_out -= n;
    if (m->paired[i]) {
        struct tile_end *o = &k->tile[m->src[i] ^ 1];
        o->send = MAX(o->send, s + n);
        o->left_out -= n;
    }
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) {
        struct tile_end *t = &k->tile[m->rec_tile[j]];
        const uint32_t x = s + (uint32_t)m->rec_x[j];
        const uint32_t p = x + exch_lag(k->route, m->rec_tile[j]);
        t->left_in -= n;
        const uint32_t end = m->paired[i] ? p + 1 + n : p + n;
        if (end <= t->pay) continue; /* went into a hole */
        t->pay = end;
        t->mode = m->paired[i] ? 2 : 1;
        t->format = m->rec_flag[j] & REC_FORMAT;
        t->fmt = m->paired[i] ? p - 1 + n : t->fmt;
        t->src = m->paired[i] && !(m->rec_flag[j] & REC_EARLY) ? p - 1 + n : x + n;
    }
}

static void place(struct greedy *k, uint32_t i, uint32_t s, struct exch_sched *ret) {
    const struct exch_msgs *m = k->m;
    exch_lines_commit(k->l, i, s);
    ret->slot[i] = s;
    ret->horizon = MAX(ret->horizon, exch_message_end(m, i, s));
    update_ends(k, i, s);
    const uint32_t last = k->waiting[--k->n_waiting];
    k->waiting[k->place[i]] = last;
    k->place[last] = k->place[i];
    k->place[i] = UINT32_MAX;
    k->now++;
    rescore_tile(k, m->src[i]);
    if (m->paired[i]) rescore_tile(k, m->src[i] ^ 1u);
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) rescore_tile(k, m->rec_tile[j]);
}

/* The best few by estimate, best first; ties by number. */
static uint32_t best_waiting(const struct greedy *k, uint32_t max, uint32_t *best) {
    uint32_t n = 0;
    for (uint32_t w = 0; w < k->n_waiting; w++) {
        const uint32_t i = k->waiting[w];
        uint32_t at = n;
        while (at > 0 && (k->score[best[at - 1]] < k->score[i] ||
                          (k->score[best[at - 1]] == k->score[i] && best[at - 1] > i)))
            at--;
        if (at >= max) continue;
        n = MIN(n + 1, max);
        for (uint32_t c = n - 1; c > at; c--) best[c] = best[c - 1];
        best[at] = i;
    }
    return n;
}

/* Of the best few the one with the best score in its real slot: element windows and labels may hold
 * a message far behind the ends of its endpoints' lines. */
static uint32_t choose(struct greedy *k, uint32_t *ret_slot) {
    uint32_t few[MAX_FEW] = {0};
    const uint32_t n = best_waiting(k, k->o->few, few);
    float best = -FLT_MAX;
    uint32_t chosen = few[0];
    for (uint32_t c = 0; c < n; c++) {
        const uint32_t i = few[c];
        if (c > 0 && k->score[i] + 0.01f < best) break;
        const uint32_t s = exch_lines_find(k->l, i, k->o->holes ? 0 : k->slot[i]);
        const float late = s > k->slot[i] ? (float)(s - k->slot[i]) : 0;
        const float score = k->score[i] - late * k->o->late_weight;
        if (score <= best) continue;
        best = score;
        chosen = i;
        *ret_slot = s;
    }
    return chosen;
}

void exch_sched_greedy(const struct exch_msgs *m, const struct exch_greedy_options *o, bool relaxed,
                       struct exch_sched *ret) {
    struct greedy *k = g_new0(struct greedy, 1);
    k->m = m;
    k->route = exch_route();
    k->o = o;
    k->l = exch_lines_new(m, relaxed);
    k->score = g_new(float, m->n + 1);
    k->slot = g_new(uint32_t, m->n + 1);
    k->waiting = g_new(uint32_t, m->n + 1);
    k->place = g_new(uint32_t, m->n + 1);
    k->stamp = g_new0(uint32_t, m->n + 1);
    k->n_waiting = m->n;
    link_tiles(k);
    for (uint32_t t = 0; t < N; t++)
        k->tile[t].pay = TARGET_EXCH_PTR_DELAY + 1u + 2u * k->route->row[t];
    for (uint32_t i = 0; i < m->n; i++) {
        k->waiting[i] = k->place[i] = i;
        k->tile[m->src[i]].left_out += m->items[i];
        if (m->paired[i]) k->tile[m->src[i] ^ 1].left_out += m->items[i];
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            k->tile[m->rec_tile[j]].left_in += m->items[i];
    }
    for (uint32_t i = 0; i < m->n; i++) evaluate(k, i);
    ret->horizon = 0;
    while (k->n_waiting > 0) {
        uint32_t s = 0;
        const uint32_t i = choose(k, &s);
        place(k, i, s, ret);
    }
    ret->evaluations += exch_lines_work(k->l) + k->evaluations / 16;
    exch_lines_free(k->l);
    g_free(k->first);
    g_free(k->list);
    g_free(k->score);
    g_free(k->slot);
    g_free(k->waiting);
    g_free(k->place);
    g_free(k->stamp);
    g_free(k);
}
