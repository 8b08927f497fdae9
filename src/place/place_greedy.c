/* Constructive orders: items in a fixed order of importance, each at the best free start of a
 * policy. An item that finds no room moves to the front of the order and the order is tried again
 * ("the squeaky wheel"); after some rounds the next order and policy. Cost of a round: n^2. Not
 * complete: it proves nothing. */
#include "place/place_int.h"

#include <stdlib.h>
#include <string.h>

enum policy { POLICY_LOW, POLICY_HIGH, POLICY_SPLIT, POLICY_BEST, N_POLICIES };
enum order { ORDER_LIFETIME, ORDER_CONFINED, ORDER_SIZE, ORDER_AREA, ORDER_EDGES, ORDER_TIME };

struct attempt {
    uint8_t order, policy;
};
/* The first line solves nearly every real tile; the rest is for tight ones. */
static const struct attempt attempts[] = {
    {ORDER_LIFETIME, POLICY_LOW},   {ORDER_CONFINED, POLICY_LOW}, {ORDER_SIZE, POLICY_LOW},
    {ORDER_LIFETIME, POLICY_SPLIT}, {ORDER_AREA, POLICY_LOW},     {ORDER_EDGES, POLICY_LOW},
    {ORDER_LIFETIME, POLICY_HIGH},  {ORDER_SIZE, POLICY_BEST},    {ORDER_CONFINED, POLICY_SPLIT},
    {ORDER_SIZE, POLICY_SPLIT},     {ORDER_AREA, POLICY_BEST},    {ORDER_EDGES, POLICY_SPLIT},
    {ORDER_SIZE, POLICY_HIGH},      {ORDER_TIME, POLICY_LOW},     {ORDER_TIME, POLICY_BEST},
};
enum { ROUNDS = 24 };

struct key {
    uint64_t bump, major, minor;
    uint32_t item;
};

static int compare_keys(const void *va, const void *vb) {
    const struct key *a = va, *b = vb;
    if (a->bump != b->bump) return a->bump > b->bump ? -1 : 1;
    if (a->major != b->major) return a->major > b->major ? -1 : 1;
    if (a->minor != b->minor) return a->minor > b->minor ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static uint64_t domain_starts(const struct tile *t, const struct item *it) {
    uint64_t n = 0;
    for (uint32_t d = it->domain; d < it->domain + it->n_domain; d++)
        n += (uint64_t)(t->span[d].hi - t->span[d].lo) + 1;
    return n;
}

static struct key item_key(const struct tile *t, uint32_t i, enum order order) {
    const struct item *it = &t->item[i];
    const uint64_t life = it->last - it->first + 1;
    struct key k = {.item = i, .major = it->size, .minor = life};
    switch (order) {
    case ORDER_LIFETIME:
        k.major = life;
        k.minor = it->size;
        break;
    case ORDER_CONFINED:
        k.major = UINT64_MAX - domain_starts(t, it) / 0x4000;
        k.minor = life * it->size;
        break;
    case ORDER_AREA:
        k.major = life * it->size;
        break;
    case ORDER_EDGES:
        k.major = it->n_edges + 2 * (it->executable ? 1 : 0);
        k.minor = it->size;
        break;
    case ORDER_TIME:
        k.major = UINT64_MAX - it->first;
        k.minor = it->size;
        break;
    case ORDER_SIZE:
        break;
    }
    return k;
}

/* The start that the policy prefers among n > 0 free spans. */
static uint32_t choose_start(const struct fit *f, uint32_t i, uint32_t n, enum policy policy) {
    const struct tile *t = f->tile;
    const struct item *it = &t->item[i];
    const uint32_t life = it->last - it->first + 1;
    if (policy == POLICY_SPLIT) policy = 2 * life >= t->n_sections ? POLICY_LOW : POLICY_HIGH;
    if (policy == POLICY_LOW) return f->free[0].lo;
    if (policy == POLICY_HIGH) return f->free[n - 1].hi;
    uint32_t best = 0;
    for (uint32_t k = 1; k < n; k++)
        if (f->free[k].hi - f->free[k].lo < f->free[best].hi - f->free[best].lo) best = k;
    return f->free[best].lo;
}

/* One pass over the order; the item that found no room, or n. */
static uint32_t run_order(struct fit *f, const struct key *key, enum policy policy) {
    const uint32_t n = f->tile->n;
    fit_clear(f);
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = key[k].item;
        if (f->tile->item[i].fixed) continue;
        const uint32_t n_free = fit_spans(f, i);
        if (n_free == 0) return k;
        fit_place(f, i, choose_start(f, i, n_free, policy));
    }
    return n;
}

bool greedy_solve(struct fit *f, uint64_t max_steps) {
    const uint32_t n = f->tile->n;
    struct key *key = arena_new_array(f->tile->arena, struct key, n);
    const uint64_t limit = f->n_steps + max_steps;
    if (n == 0) return true;
    for (uint32_t a = 0; a < ARRAY_LEN(attempts); a++) {
        for (uint32_t i = 0; i < n; i++) key[i] = item_key(f->tile, i, attempts[a].order);
        for (uint32_t round = 0; round < ROUNDS && f->n_steps < limit; round++) {
            if (n != 0) qsort(key, n, sizeof *key, compare_keys);
            const uint32_t failed = run_order(f, key, attempts[a].policy);
            if (failed == n) return true;
            key[failed].bump = round + 1;
            if (failed == 0) break; /* no room even for the first: another order is no help */
        }
    }
    return false;
}
