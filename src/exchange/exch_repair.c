/* Repair: improves a schedule one connected component at a time.
 *
 * Tiles joined by messages form components; what happens in one does not touch the others, and the
 * worst one is the horizon. Real phases of few long messages fall apart into many components of 4
 * to 40 tiles, for which a schedule is generated in microseconds. So: order of a component ->
 * serial generation (with holes) -> its end. Starting orders are rounds of an edge colouring,
 * longest first, and the order of the given schedule; then iterated moves of the message that ends
 * last to a random earlier place, accepted when the end does not get worse. The worst component
 * goes first until the budget of placements is used or it has reached the bound. Only problems
 * without dependencies and moving sources. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

struct component {
    uint32_t first, n; /* messages in repair.order / repair.slot_of */
    uint32_t first_tile, n_tiles;
    uint32_t end;    /* of its best order */
    uint32_t rounds; /* of improvement without success */
};

struct repair {
    const struct exch_msgs *m;
    struct exch_lines *l;
    uint32_t n_comp;
    struct component *comp;
    uint32_t *order;              /* best orders, component by component */
    uint32_t *slot;               /* [messages] of the best orders */
    uint32_t *trial, *trial_slot; /* scratch of the largest component */
    uint32_t *tiles;
    uint64_t budget, used;
    uint64_t random;
    uint32_t goal;
};

static uint32_t draw(struct repair *k, uint32_t n) {
    k->random = k->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(((k->random >> 33) * n) >> 31);
}

/* --- Components --- */

static uint32_t root_of(uint32_t *up, uint32_t t) {
    while (up[t] != t) t = up[t] = up[up[t]];
    return t;
}
static void join(uint32_t *up, uint32_t a, uint32_t b) {
    a = root_of(up, a);
    b = root_of(up, b);
    if (a < b) up[b] = a;
    else up[a] = b;
}

static void find_components(struct repair *k) {
    const struct exch_msgs *m = k->m;
    uint32_t up[TARGET_N_TILES], of[TARGET_N_TILES];
    uint8_t used[TARGET_N_TILES] = {0};
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) up[t] = t;
    for (uint32_t i = 0; i < m->n; i++) {
        used[m->src[i]] = 1;
        if (m->paired[i]) {
            used[m->src[i] ^ 1] = 1;
            join(up, m->src[i], m->src[i] ^ 1);
        }
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) {
            used[m->rec_tile[j]] = 1;
            join(up, m->src[i], m->rec_tile[j]);
        }
    }
    k->comp = g_new0(struct component, TARGET_N_TILES + 1);
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        if (!used[t]) continue;
        const uint32_t r = root_of(up, t);
        if (r == t) of[t] = k->n_comp++;
        else of[t] = of[r];
        k->comp[of[t]].n_tiles++;
    }
    for (uint32_t i = 0; i < m->n; i++) k->comp[of[m->src[i]]].n++;
    uint32_t at = 0, tile_at = 0;
    for (uint32_t c = 0; c < k->n_comp; c++) {
        k->comp[c].first = at;
        k->comp[c].first_tile = tile_at;
        at += k->comp[c].n;
        tile_at += k->comp[c].n_tiles;
        k->comp[c].n = k->comp[c].n_tiles = 0;
    }
    for (uint32_t i = 0; i < m->n; i++) {
        struct component *c = &k->comp[of[m->src[i]]];
        k->order[c->first + c->n++] = i;
    }
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        if (!used[t]) continue;
        struct component *c = &k->comp[of[t]];
        k->tiles[c->first_tile + c->n_tiles++] = t;
    }
}

/* --- Generation --- */

/* Serial generation of a component. Stops as soon as a message ends behind `limit`; returns the end
 * and the position of the message that caused it. */
static uint32_t generate_order(struct repair *k, const struct component *c, const uint32_t *order,
                               uint32_t limit, uint32_t *ret_at) {
    for (uint32_t t = 0; t < c->n_tiles; t++) exch_lines_reset(k->l, k->tiles[c->first_tile + t]);
    uint32_t end = 0;
    for (uint32_t n = 0; n < c->n; n++) {
        const uint32_t i = order[n], s = exch_lines_find(k->l, i, 0);
        const uint32_t e = exch_message_end(k->m, i, s);
        if (e > end) {
            end = e;
            *ret_at = n;
            if (end > limit) return end;
        }
        exch_lines_commit(k->l, i, s);
        k->trial_slot[n] = s;
    }
    return end;
}

static uint32_t generate(struct repair *k, const struct component *c, const uint32_t *order,
                         uint32_t limit, uint32_t *ret_at) {
    const uint32_t end = generate_order(k, c, order, limit, ret_at);
    k->used = exch_lines_work(k->l);
    return end;
}

static void keep(struct repair *k, struct component *c, const uint32_t *order, uint32_t end) {
    memmove(k->order + c->first, order, c->n * sizeof *order);
    for (uint32_t n = 0; n < c->n; n++) k->slot[order[n]] = k->trial_slot[n];
    c->end = end;
}

static void consider(struct repair *k, struct component *c, const uint32_t *order) {
    uint32_t at;
    const uint32_t end = generate(k, c, order, c->end - 1, &at);
    if (end < c->end) keep(k, c, order, end);
}

/* --- Starting orders --- */

static void sort_trial(struct repair *k, const struct component *c, const uint32_t *key_of) {
    uint64_t *key = g_new(uint64_t, c->n + 1);
    for (uint32_t n = 0; n < c->n; n++) {
        const uint32_t i = k->order[c->first + n];
        key[n] = (uint64_t)key_of[i] << 32 | i;
    }
    qsort(key, c->n, sizeof *key, exch_key_compare);
    for (uint32_t n = 0; n < c->n; n++) k->trial[n] = (uint32_t)key[n];
    g_free(key);
}

/* --- Improvement --- */

/* Moves the message at position `from` to `to` < from. */
static void move_up(uint32_t *order, uint32_t from, uint32_t to) {
    const uint32_t i = order[from];
    memmove(order + to + 1, order + to, (from - to) * sizeof *order);
    order[to] = i;
}

/* Tries moves until `tries` are used up or the end falls. */
static bool improve(struct repair *k, struct component *c, uint32_t tries) {
    uint32_t at = 0;
    const uint32_t start = c->end;
    memcpy(k->trial, k->order + c->first, c->n * sizeof *k->trial);
    uint32_t end = generate(k, c, k->trial, UINT32_MAX, &at);
    uint32_t *back = g_new(uint32_t, c->n);
    for (uint32_t t = 0; t < tries && k->used < k->budget && c->end > k->goal; t++) {
        memcpy(back, k->trial, c->n * sizeof *back);
        const uint32_t from = draw(k, 4) != 0 || c->n < 2 ? at : 1 + draw(k, c->n - 1);
        if (from == 0) {
            const uint32_t a = draw(k, c->n), b = draw(k, c->n);
            const uint32_t i = k->trial[a];
            k->trial[a] = k->trial[b];
            k->trial[b] = i;
        } else {
            move_up(k->trial, from, draw(k, from));
        }
        uint32_t where = 0;
        const uint32_t e = generate(k, c, k->trial, end, &where);
        if (e <= end) {
            end = e;
            at = where;
            if (e < c->end) keep(k, c, k->trial, e);
        } else {
            memcpy(k->trial, back, c->n * sizeof *back);
        }
    }
    g_free(back);
    return c->end < start;
}

static uint32_t worst(const struct repair *k) {
    uint32_t w = 0;
    for (uint32_t c = 1; c < k->n_comp; c++)
        if (k->comp[c].end > k->comp[w].end) w = c;
    return w;
}

static void prepare(struct repair *k, const uint32_t *slot) {
    const struct exch_msgs *m = k->m;
    k->order = g_new(uint32_t, m->n + 1);
    k->slot = g_memdup2(slot, (m->n + 1) * sizeof *slot);
    k->tiles = g_new(uint32_t, TARGET_N_TILES);
    find_components(k);
    uint32_t largest = 0;
    for (uint32_t c = 0; c < k->n_comp; c++) {
        struct component *p = &k->comp[c];
        largest = MAX(largest, p->n);
        for (uint32_t n = 0; n < p->n; n++) {
            const uint32_t i = k->order[p->first + n];
            p->end = MAX(p->end, exch_message_end(m, i, slot[i]));
        }
    }
    k->trial = g_new(uint32_t, largest + 1);
    k->trial_slot = g_new(uint32_t, largest + 1);
}

/* Orders of a component by its rounds, the given slots, and length. */
static void starting_orders(struct repair *k, struct component *c, const uint32_t *slot,
                            const uint32_t *round, const uint32_t *shortness) {
    sort_trial(k, c, round);
    consider(k, c, k->trial);
    sort_trial(k, c, slot);
    /* keep this order as the base of moves even if it only reproduces the end */
    uint32_t at;
    const uint32_t end = generate(k, c, k->trial, UINT32_MAX, &at);
    if (end <= c->end) keep(k, c, k->trial, end);
    sort_trial(k, c, shortness);
    consider(k, c, k->trial);
}

bool exch_repair_applies(const struct exch_msgs *m) {
    if (m->p->first_dependency != NULL) return false;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->moving[i]) return false;
    return m->n > 1;
}

void exch_sched_repair(const struct exch_msgs *m, const struct exch_repair_options *o,
                       struct exch_sched *s) {
    struct repair k = {.m = m,
                       .budget = o->budget,
                       .goal = o->goal,
                       .random = UINT64_C(0x9e3779b97f4a7c15) ^ o->seed};
    k.l = exch_lines_new(m, o->relaxed);
    prepare(&k, s->slot);
    uint32_t *round = g_new(uint32_t, m->n + 1), *shortness = g_new(uint32_t, m->n + 1);
    exch_rounds(m, round);
    for (uint32_t i = 0; i < m->n; i++) shortness[i] = UINT32_MAX - m->items[i];
    for (uint32_t c = 0; c < k.n_comp && k.used < k.budget; c++)
        if (k.comp[c].end > k.goal) starting_orders(&k, &k.comp[c], s->slot, round, shortness);
    while (k.n_comp > 0 && k.used < k.budget) {
        struct component *c = &k.comp[worst(&k)];
        if (c->end <= k.goal || c->rounds >= o->patience) break;
        if (improve(&k, c, 64)) c->rounds = 0;
        else c->rounds++;
    }
    memcpy(s->slot, k.slot, m->n * sizeof *k.slot);
    s->horizon = 0;
    for (uint32_t c = 0; c < k.n_comp; c++) s->horizon = MAX(s->horizon, k.comp[c].end);
    s->evaluations += k.used;
    exch_lines_free(k.l);
    g_free(round);
    g_free(shortness);
    g_free(k.comp);
    g_free(k.order);
    g_free(k.slot);
    g_free(k.trial);
    g_free(k.trial_slot);
    g_free(k.tiles);
}
