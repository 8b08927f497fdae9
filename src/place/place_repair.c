/* Local repair: keep the addresses of an earlier map where they still hold, place the rest around
 * them, and only where there is no room lift out the smallest set of items in the way.
 *
 * Items keep their address in the order of their lifetime and size, so that a conflict costs the
 * smaller one. An item without room takes the start whose obstacles are cheapest (bytes, times the
 * number of their earlier evictions + 1); the obstacles are placed again. Cost: one fit per item
 * and one look at items^2 pairs per eviction; evictions are bounded, then the caller solves afresh.
 */
#include "place/place_int.h"

#include <stdlib.h>
#include <string.h>

struct repair {
    struct fit *f;
    uint32_t *queue, n_queue; /* items without address */
    uint32_t *evictions;      /* [n] */
    uint32_t n_left;          /* evictions that may still happen */
};

struct key {
    uint64_t life, size;
    uint32_t item;
};

static int compare_keys(const void *va, const void *vb) {
    const struct key *a = va, *b = vb;
    if (a->life != b->life) return a->life > b->life ? -1 : 1;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static bool start_is_free(const struct fit *f, uint32_t n_free, uint32_t start) {
    for (uint32_t k = 0; k < n_free; k++)
        if (f->free[k].lo <= start && start <= f->free[k].hi) return true;
    return false;
}

/* Every item at its previous start if that is still free; the others are queued. */
static void keep_previous(struct repair *r, const uint32_t *previous) {
    const struct tile *t = r->f->tile;
    struct key *key = arena_new_array(t->arena, struct key, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        key[i] = (struct key){t->item[i].last - t->item[i].first, t->item[i].size, i};
    if (t->n != 0) qsort(key, t->n, sizeof *key, compare_keys);
    fit_clear(r->f);
    for (uint32_t k = 0; k < t->n; k++) {
        const uint32_t i = key[k].item, start = previous[t->item[i].root];
        if (t->item[i].fixed) continue;
        const bool aligned = ((start - t->item[i].residue) & (t->item[i].align - 1)) == 0;
        if (start != PLACE_NO_ADDRESS && aligned && start_is_free(r->f, fit_spans(r->f, i), start))
            fit_place(r->f, i, start);
        else r->queue[r->n_queue++] = i;
    }
}

/* Cost of the items in the way of i at start; UINT64_MAX if a fixed one is. */
static uint64_t obstacle_cost(const struct repair *r, uint32_t i, uint32_t start) {
    uint64_t cost = 0;
    for (uint32_t k = 0; k < r->f->n_placed; k++) {
        const uint32_t j = r->f->placed[k];
        if (!fit_conflict(r->f, i, start, j)) continue;
        if (r->f->tile->item[j].fixed) return UINT64_MAX;
        cost += ((uint64_t)r->f->tile->item[j].size + 1) * (r->evictions[j] + 1);
    }
    return cost;
}

struct spot {
    uint64_t cost;
    uint32_t start;
};

static void look_at(const struct repair *r, uint32_t i, uint64_t from, struct spot *best) {
    const struct tile *t = r->f->tile;
    const struct item *it = &t->item[i];
    const uint64_t start = from + ((it->residue - (uint32_t)from) & (it->align - 1));
    bool allowed = false;
    for (uint32_t d = it->domain; d < it->domain + it->n_domain; d++)
        allowed |= t->span[d].lo <= start && start <= t->span[d].hi;
    if (!allowed) return;
    const uint64_t cost = obstacle_cost(r, i, (uint32_t)start);
    if (cost < best->cost) *best = (struct spot){cost, (uint32_t)start};
}

/* The cheapest start among the low ends of the domain and the starts and tops of placed items. */
static struct spot cheapest_spot(const struct repair *r, uint32_t i) {
    const struct tile *t = r->f->tile;
    struct spot best = {UINT64_MAX, PLACE_NO_ADDRESS};
    for (uint32_t d = t->item[i].domain; d < t->item[i].domain + t->item[i].n_domain; d++)
        look_at(r, i, t->span[d].lo, &best);
    for (uint32_t k = 0; k < r->f->n_placed; k++) {
        const uint32_t j = r->f->placed[k], a = r->f->address[j];
        look_at(r, i, a, &best);
        look_at(r, i, (uint64_t)a + t->item[j].size, &best);
        look_at(r, i, element_end(t->memory, a + t->item[j].size - 1), &best);
    }
    return best;
}

static bool evict_and_place(struct repair *r, uint32_t i) {
    const struct spot spot = cheapest_spot(r, i);
    if (spot.start == PLACE_NO_ADDRESS) return false;
    for (uint32_t k = r->f->n_placed; k > 0; k--) {
        const uint32_t j = r->f->placed[k - 1];
        if (!fit_conflict(r->f, i, spot.start, j)) continue;
        if (r->n_left == 0) return false;
        r->n_left--;
        r->evictions[j]++;
        fit_remove(r->f, j);
        r->queue[r->n_queue++] = j;
    }
    fit_place(r->f, i, spot.start);
    return true;
}

/* The largest queued item leaves the queue. */
static uint32_t next_queued(struct repair *r) {
    uint32_t best = 0;
    for (uint32_t k = 1; k < r->n_queue; k++) {
        const struct item *a = &r->f->tile->item[r->queue[k]];
        if (a->size > r->f->tile->item[r->queue[best]].size) best = k;
    }
    const uint32_t i = r->queue[best];
    memmove(r->queue + best, r->queue + best + 1, (--r->n_queue - best) * sizeof *r->queue);
    return i;
}

bool repair_solve(struct fit *f, const uint32_t *previous) {
    struct arena *a = f->tile->arena;
    const uint32_t n = f->tile->n;
    struct repair r = {.f = f,
                       .n_left = 4 * n,
                       .queue = arena_new_array(a, uint32_t, n),
                       .evictions = arena_new_array(a, uint32_t, n)};
    keep_previous(&r, previous);
    while (r.n_queue != 0) {
        const uint32_t i = next_queued(&r);
        const uint32_t n_free = fit_spans(f, i);
        uint32_t best = 0; /* the tightest span, to keep the wide ones */
        for (uint32_t k = 1; k < n_free; k++)
            if (f->free[k].hi - f->free[k].lo < f->free[best].hi - f->free[best].lo) best = k;
        if (n_free != 0) fit_place(f, i, f->free[best].lo);
        else if (!evict_and_place(&r, i)) return false;
    }
    return true;
}
