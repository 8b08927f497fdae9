/* Where an item may start while others have addresses: its own spans minus one forbidden interval
 * per live placed item, edge or code rule. The placed items are kept by ascending address, so that
 * the forbidden intervals come nearly sorted and one sweep suffices: linear in the placed items. */
#include "place/place_int.h"

#include <string.h>

struct fit *fit_new(const struct tile *t, struct arena *arena) {
    struct fit *f = arena_new_array(arena, struct fit, 1);
    uint32_t n_spans = 1;
    for (uint32_t i = 0; i < t->n; i++) n_spans = MAX(n_spans, t->item[i].n_domain);
    f->tile = t;
    f->address = arena_new_array(arena, uint32_t, t->n);
    f->placed = arena_new_array(arena, uint32_t, t->n);
    /* One interval per item, one per edge, one per code rule. */
    f->max_forbidden = 2 * t->n;
    for (uint32_t i = 0; i < t->n; i++) f->max_forbidden += t->item[i].n_edges;
    f->forbidden = arena_new_array(arena, struct span, f->max_forbidden);
    f->free = arena_new_array(arena, struct span, f->max_forbidden + n_spans);
    fit_clear(f);
    return f;
}

void fit_clear(struct fit *f) {
    f->n_placed = 0;
    for (uint32_t i = 0; i < f->tile->n; i++) f->address[i] = PLACE_NO_ADDRESS;
    for (uint32_t i = 0; i < f->tile->n; i++)
        if (f->tile->item[i].fixed) fit_place(f, i, f->tile->span[f->tile->item[i].domain].lo);
}

void fit_place(struct fit *f, uint32_t i, uint32_t address) {
    uint32_t k = f->n_placed++;
    for (; k > 0 && f->address[f->placed[k - 1]] > address; k--) f->placed[k] = f->placed[k - 1];
    f->placed[k] = i;
    f->address[i] = address;
}

void fit_remove(struct fit *f, uint32_t i) {
    uint32_t k = 0;
    while (f->placed[k] != i) k++;
    memmove(f->placed + k, f->placed + k + 1, (--f->n_placed - k) * sizeof *f->placed);
    f->address[i] = PLACE_NO_ADDRESS;
}

/* Adds starts lo..hi (inclusive, may be negative) to the sorted list. */
static void forbid(struct fit *f, uint32_t *n, int64_t lo, int64_t hi) {
    if (hi < 0) return;
    const uint32_t from = lo < 0 ? 0 : (uint32_t)lo;
    uint32_t k = (*n)++;
    for (; k > 0 && f->forbidden[k - 1].lo > from; k--) f->forbidden[k] = f->forbidden[k - 1];
    f->forbidden[k] = (struct span){from, (uint32_t)hi};
}

/* My bytes [mo, mo + mb) keep clear of the elements of bytes [start, start + bytes). */
static void forbid_elements(struct fit *f, uint32_t *n, uint32_t start, uint32_t bytes, uint32_t mo,
                            uint32_t mb) {
    const struct place_memory *m = f->tile->memory;
    const int64_t lo = element_floor(m, start), hi = element_end(m, start + bytes - 1);
    forbid(f, n, lo - mo - mb + 1, hi - mo - 1);
}

static void forbid_code(struct fit *f, uint32_t *n, const struct item *it, const struct item *o,
                        uint32_t start) {
    const uint32_t guard = f->tile->memory->fetch_guard_bytes;
    if (it->executable == o->executable || (it->executable ? o : it)->near_code) return;
    forbid_elements(f, n, start, o->full + (o->executable ? guard : 0), 0,
                    it->full + (it->executable ? guard : 0));
}

static bool meet_elements(const struct place_memory *m, uint64_t a, uint32_t na, uint32_t b,
                          uint32_t nb) {
    return a < element_end(m, b + nb - 1) && element_floor(m, b) < a + na;
}

bool fit_conflict(const struct fit *f, uint32_t i, uint32_t start, uint32_t j) {
    const struct tile *t = f->tile;
    const struct item *it = &t->item[i], *o = &t->item[j];
    const uint32_t a = f->address[j], guard = t->memory->fetch_guard_bytes;
    if (tile_overlap(t, i, j)) {
        if (start < a + o->size && a < start + it->size) return true;
        if (it->executable != o->executable && !(it->executable ? o : it)->near_code &&
            meet_elements(t->memory, start, it->full + (it->executable ? guard : 0), a,
                          o->full + (o->executable ? guard : 0)))
            return true;
    }
    for (uint32_t e = it->edge; e < it->edge + it->n_edges; e++) {
        const struct edge *d = &t->edge[e];
        if (d->other == j && meet_elements(t->memory, (uint64_t)start + d->my_offset, d->my_bytes,
                                           a + d->other_offset, d->other_bytes))
            return true;
    }
    return false;
}

static uint32_t collect_forbidden(struct fit *f, uint32_t i) {
    const struct tile *t = f->tile;
    const struct item *it = &t->item[i];
    uint32_t n = 0;
    for (uint32_t k = 0; k < f->n_placed; k++) {
        const uint32_t j = f->placed[k];
        if (!tile_overlap(t, i, j)) continue;
        const struct item *o = &t->item[j];
        const int64_t a = f->address[j];
        forbid(f, &n, a - it->size + 1, a + o->size - 1);
        forbid_code(f, &n, it, o, f->address[j]);
    }
    for (uint32_t e = it->edge; e < it->edge + it->n_edges; e++) {
        const struct edge *d = &t->edge[e];
        const uint32_t a = f->address[d->other];
        if (a == PLACE_NO_ADDRESS) continue;
        forbid_elements(f, &n, a + d->other_offset, d->other_bytes, d->my_offset, d->my_bytes);
    }
    return n;
}

/* Adds the aligned starts within [lo, hi]. */
static uint32_t free_add(struct fit *f, uint32_t n, const struct item *it, uint32_t lo,
                         uint32_t hi) {
    const uint64_t first = lo + (uint64_t)((it->residue - lo) & (it->align - 1));
    const uint32_t back = (hi - it->residue) & (it->align - 1);
    if (back > hi || first > hi - back) return n;
    f->free[n] = (struct span){(uint32_t)first, hi - back};
    return n + 1;
}

uint32_t fit_spans(struct fit *f, uint32_t i) {
    const struct item *it = &f->tile->item[i];
    const uint32_t n_forbidden = collect_forbidden(f, i);
    uint32_t n = 0, k = 0;
    f->n_steps++;
    for (uint32_t d = it->domain; d < it->domain + it->n_domain; d++) {
        const struct span s = f->tile->span[d];
        uint64_t lo = s.lo;
        /* Intervals that end below an earlier domain stay behind: lo is never lowered. */
        for (k = 0; k < n_forbidden && lo <= s.hi; k++) {
            const struct span x = f->forbidden[k];
            if (x.lo > s.hi) break;
            if (x.lo > lo) n = free_add(f, n, it, (uint32_t)lo, x.lo - 1);
            if (x.hi >= lo) lo = (uint64_t)x.hi + 1;
        }
        if (lo <= s.hi) n = free_add(f, n, it, (uint32_t)lo, s.hi);
    }
    return n;
}
