/* Exact search over canonical maps.
 *
 * In a canonical map no item can move to a lower start while the others stay. Every feasible tile
 * has one (move items down until nothing moves), so only canonical maps are searched. Items are
 * placed by ascending address. Then an item's start is the lowest one that the items already placed
 * allow ("low"): whatever comes later lies above and cannot have blocked a lower start. What
 * follows: candidates   only items whose low is at or above the floor (the last address placed).
 * One whose low is below the floor waits until something blocks its hole; if its whole hole lies
 *                below the floor, nothing can: dead end.
 *   dominance    no candidate at or above the lowest top of any item placed at its low: that item
 *                would fit beneath.
 *   refutation   once "i at s" has failed, i at s is not tried in the later branches of the node.
 *   inference    in every section of time the live unplaced items must fit between the lowest of
 *                their possible starts and the end of the memory; the same for each memory class.
 *   waiting      an item that waits ends above some item placed later: its possible start rises.
 *   sections     unplaced items that share no time, edge or code rule any more are solved apart.
 * Items with edges or code rules ("not loose") can be blocked by elements of later items: for them
 * waiting and dominance are not used. If an edge joins displaced parts (aliases inside a storage),
 * a later item can lie below by parts; such an item ("crossing") also tries every element boundary.
 *
 * Restarts: the order among equal starts is a static rank; each restart takes the next rank
 * function or the weights that failing sections have given to their items, from the second turn on
 * with (counted, repeatable) random noise. Solvable problems are solved by a lucky order with few
 * steps back, so most restarts are short; every fourth batch is longer, following the Luby
 * sequence, so that one of them is complete in the end. Steps are candidate placements. Cost of a
 * step: items + sections, with a sort of the candidates. */
#include "place/place_int.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX
enum { MAX_ITEMS = 4000 };

enum outcome { FOUND, FAILED, OUT_OF_BUDGET };

struct candidate {
    uint32_t start, rank, item;
    bool waits; /* may not be placed before something blocks its lowest start */
};

struct saved { /* of an item, before a placement changed it */
    uint32_t item, low, sky;
    bool placement;
};

struct level { /* scratch of one depth of the search */
    struct candidate *candidate;
    uint32_t *rest;
    struct saved_refuted {
        uint32_t item, start;
    } * refuted;
};

struct search {
    const struct tile *t;
    struct arena *arena;
    const struct place_memory *m;
    uint32_t *address;                  /* [n] result */
    uint32_t *low, *sky, *refuted;      /* [n]; sky: highest top of the placed items it overlaps */
    uint32_t *rank;                     /* [n] */
    double *weight;                     /* [n] from failing sections */
    bool *plain;                        /* [n] no edges, no code that is still to be placed */
    uint64_t *adjacent;                 /* n x words bits: overlap or edge */
    uint64_t *rest_set, *component_set; /* [words] scratch */
    uint32_t n_fixed, *fixed;           /* items */
    uint32_t n_code, *code;             /* executable items that are not fixed */
    uint32_t n_code_placed;
    uint32_t n_placed, *placed; /* stack */
    uint32_t *queue, *raised;   /* scratch */
    uint64_t *total[3];         /* [sections] unplaced bytes: all, standard, interleaved */
    bool confined[3];           /* is there any such item */
    uint32_t *skip;             /* [sections + 1] union-find of inference */
    uint32_t *free_first;       /* [sections + 1] ranges minus fixed items */
    struct span *free;          /* bytes lo .. hi - 1 */
    bool one_range;             /* free[0] is all there is in every section, up to the end */
    struct saved *trail;
    uint32_t n_trail, max_trail;
    struct level *level;
    uint64_t n_steps, limit;
    const uint32_t
        *winner; /* of the batch: a lower number than `number` makes this round pointless */
    uint32_t number;
};

/* --- Lowest starts. --- */

static uint32_t domain_ceil(const struct search *s, const struct item *it, uint64_t from) {
    for (uint32_t d = it->domain; d < it->domain + it->n_domain; d++) {
        const struct span x = s->t->span[d];
        if (from <= x.lo) return x.lo;
        const uint64_t a = from + ((it->residue - (uint32_t)from) & (it->align - 1));
        if (a <= x.hi) return (uint32_t)a;
    }
    return NONE;
}

/* If my bytes at start + mo meet an element of the other's bytes, the first start beyond it. */
static uint64_t beyond_elements(const struct search *s, uint64_t start, uint32_t mo, uint32_t mb,
                                uint32_t other, uint32_t ob) {
    const uint64_t lo = element_floor(s->m, other), hi = element_end(s->m, other + ob - 1);
    return start + mo < hi && lo < start + mo + mb ? hi - mo : start;
}

static bool code_rule(const struct item *a, const struct item *b) {
    return a->executable != b->executable && !(a->executable ? b : a)->near_code;
}

static uint64_t beyond_item(const struct search *s, uint32_t k, uint64_t start, uint32_t j) {
    const struct item *it = &s->t->item[k], *o = &s->t->item[j];
    const uint64_t a = s->address[j];
    if (!tile_overlap(s->t, k, j)) return start;
    if (start < a + o->size && a < start + it->size) start = a + o->size;
    if (!code_rule(it, o)) return start;
    const uint32_t guard = s->m->fetch_guard_bytes;
    return beyond_elements(s, start, 0, it->full + (it->executable ? guard : 0), (uint32_t)a,
                           o->full + (o->executable ? guard : 0));
}

/* The lowest start >= from that everything placed allows, or NONE. */
static uint32_t next_start(const struct search *s, uint32_t k, uint64_t from) {
    const struct item *it = &s->t->item[k];
    for (;;) {
        const uint32_t start = domain_ceil(s, it, from);
        if (start == NONE) return NONE;
        uint64_t at = start;
        for (uint32_t i = 0; i < s->n_fixed; i++) at = beyond_item(s, k, at, s->fixed[i]);
        if (at < s->sky[k] || it->executable)
            for (uint32_t i = 0; i < s->n_placed; i++) at = beyond_item(s, k, at, s->placed[i]);
        else
            for (uint32_t i = 0; i < s->n_code; i++)
                if (s->address[s->code[i]] != NONE) at = beyond_item(s, k, at, s->code[i]);
        for (uint32_t e = it->edge; e < it->edge + it->n_edges; e++) {
            const struct edge *d = &s->t->edge[e];
            if (s->address[d->other] == NONE) continue;
            at = beyond_elements(s, at, d->my_offset, d->my_bytes,
                                 s->address[d->other] + d->other_offset, d->other_bytes);
        }
        if (at == start) return start;
        from = at;
    }
}

/* --- Placing and taking back. --- */

static uint64_t usable_between(const struct search *s, uint32_t section, uint32_t lo, uint32_t hi) {
    if (s->one_range) return hi > MAX(lo, s->free[0].lo) ? hi - MAX(lo, s->free[0].lo) : 0;
    uint64_t sum = 0;
    for (uint32_t k = s->free_first[section]; k < s->free_first[section + 1]; k++) {
        const uint32_t from = MAX(lo, s->free[k].lo), to = MIN(hi, s->free[k].hi);
        if (from < to) sum += to - from;
    }
    return sum;
}

static bool is_adjacent(const struct search *s, uint32_t i, uint32_t j) {
    return (s->adjacent[(size_t)i * s->t->words + (j >> 6)] >> (j & 63)) & 1;
}

/* No item that is still to be placed can block it by elements. */
static bool is_loose(const struct search *s, uint32_t i) {
    const struct item *it = &s->t->item[i];
    if (s->plain[i]) return true;
    if (it->executable) return false;
    if (!it->near_code && s->n_code_placed < s->n_code && s->low[i] < s->m->interleaved_base)
        return false;
    for (uint32_t e = it->edge; e < it->edge + it->n_edges; e++)
        if (s->address[s->t->edge[e].other] == NONE) return false;
    return true;
}

static void totals_add(struct search *s, uint32_t i, bool add) {
    const struct item *it = &s->t->item[i];
    for (uint32_t c = 0; c < 3; c++) {
        if (c != 0 && !(it->parts >> c & 1)) continue;
        const uint64_t delta = add ? it->size : 0 - (uint64_t)it->size;
        for (uint32_t u = it->first; u <= it->last; u++) s->total[c][u] += delta;
    }
}

static void trail_push(struct search *s, uint32_t k, bool placement) {
    if (s->n_trail == s->max_trail) {
        s->max_trail *= 2;
        s->trail = g_renew(struct saved, s->trail, s->max_trail);
    }
    s->trail[s->n_trail++] = (struct saved){k, s->low[k], s->sky[k], placement};
}

static void trail_undo(struct search *s, uint32_t mark) {
    while (s->n_trail > mark) {
        const struct saved x = s->trail[--s->n_trail];
        s->low[x.item] = x.low;
        s->sky[x.item] = x.sky;
        if (!x.placement) continue;
        s->address[x.item] = NONE;
        s->n_code_placed -= s->t->item[x.item].executable;
        s->n_placed--;
        totals_add(s, x.item, true);
    }
}

/* Effects of i at p on another unplaced item of its section; false if that one has no start left.
 */
static bool push_up(struct search *s, uint32_t i, uint32_t p, uint32_t k) {
    const struct tile *t = s->t;
    const struct item *it = &t->item[i], *o = &t->item[k];
    if (!is_adjacent(s, i, k)) return true;
    const bool overlap = tile_overlap(t, i, k);
    const uint32_t top = p + it->size;
    uint32_t low = s->low[k], sky = s->sky[k];
    if (overlap && top > sky) sky = top;
    const bool hit = overlap && low < top && p < low + o->size;
    if (!hit && s->plain[k]) {
        if (sky == s->sky[k]) return true;
        trail_push(s, k, false);
        s->sky[k] = sky;
        return true;
    }
    trail_push(s, k, false);
    s->sky[k] = sky;
    s->low[k] = next_start(s, k, hit ? sky : low);
    return s->low[k] != NONE;
}

static bool place_item(struct search *s, uint32_t i, uint32_t p, const uint32_t *rest,
                       uint32_t n_rest) {
    trail_push(s, i, true);
    s->address[i] = p;
    s->placed[s->n_placed++] = i;
    s->n_code_placed += s->t->item[i].executable;
    totals_add(s, i, false);
    /* Cheap and often enough: what is still to come in i's sections lies above it. */
    const struct item *it = &s->t->item[i];
    for (uint32_t u = it->first; u <= it->last; u++)
        if (s->total[0][u] > usable_between(s, u, p + it->size, s->m->end)) return false;
    for (uint32_t k = 0; k < n_rest; k++)
        if (!push_up(s, i, p, rest[k])) return false;
    return true;
}

/* --- Inference. --- */

static uint32_t skip_find(uint32_t *skip, uint32_t u) {
    while (skip[u] != u) u = skip[u] = skip[skip[u]];
    return u;
}

static void blame(struct search *s, const struct candidate *c, uint32_t n, uint32_t section) {
    for (uint32_t k = 0; k < n; k++) {
        const struct item *it = &s->t->item[c[k].item];
        if (it->first <= section && section <= it->last) s->weight[c[k].item] += 1;
    }
}

/* In sections first..last. Candidates by ascending start: the first that covers a section gives the
 * section's floor. */
static bool sections_fit(struct search *s, const struct candidate *c, uint32_t n, uint32_t class,
                         uint32_t first, uint32_t last) {
    const uint32_t hi = class == 1 ? s->m->interleaved_base : s->m->end;
    for (uint32_t u = first; u <= last + 1; u++) s->skip[u] = u;
    for (uint32_t k = 0; k < n; k++) {
        const struct item *it = &s->t->item[c[k].item];
        if (it->last < first || it->first > last) continue;
        if (class != 0 && !(it->parts >> class & 1)) continue;
        const uint32_t end = MIN(it->last, last);
        for (uint32_t u = skip_find(s->skip, MAX(it->first, first)); u <= end;
             u = skip_find(s->skip, u)) {
            if (s->total[class][u] > usable_between(s, u, c[k].start, hi)) {
                blame(s, c, n, u);
                return false;
            }
            s->skip[u] = u + 1;
        }
    }
    return true;
}

static bool all_classes_fit(struct search *s, const struct candidate *c, uint32_t n, uint32_t first,
                            uint32_t last) {
    for (uint32_t class = 0; class < 3; class ++)
        if (s->confined[class] && !sections_fit(s, c, n, class, first, last)) return false;
    return true;
}

/* --- The search. --- */

static bool comes_before(const struct candidate *a, const struct candidate *b) {
    if (a->start != b->start) return a->start < b->start;
    return a->rank < b->rank;
}

static void insert_candidate(struct candidate *c, uint32_t k, struct candidate x) {
    for (; k > 0 && comes_before(&x, &c[k - 1]); k--) c[k] = c[k - 1];
    c[k] = x;
}

/* Every item of the component at its lowest start above the floor, sorted; the lowest top. The
 * items come in the order of the level above, so that insertion moves little. */
static uint32_t list_candidates(struct search *s, const uint32_t *items, uint32_t n, uint32_t floor,
                                struct candidate *c) {
    uint32_t lowest_top = NONE;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = items[k];
        uint32_t start = s->low[i];
        bool waits = s->refuted[i] == start;
        if (is_loose(s, i)) {
            lowest_top = MIN(lowest_top, start + s->t->item[i].size);
            waits |= start < floor;
            start = MAX(start, floor);
        } else if (start < floor) {
            start = next_start(s, i, floor);
            waits = s->refuted[i] == start;
        }
        insert_candidate(c, k, (struct candidate){start, s->rank[i], i, waits});
    }
    return lowest_top;
}

/* A plain item that waits ends up above something that is placed from now on. */
static uint32_t raised_start(const struct search *s, const struct candidate *c, uint32_t n,
                             uint32_t i) {
    uint32_t bound = NONE;
    for (uint32_t j = 0; j < n && c[j].start < bound; j++)
        if (tile_overlap(s->t, i, c[j].item))
            bound = MIN(bound, c[j].start + s->t->item[c[j].item].size);
    return bound == NONE ? NONE : domain_ceil(s, &s->t->item[i], bound);
}

static void raise_waiting(struct search *s, struct candidate *c, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (c[k].waits && s->plain[c[k].item]) s->raised[k] = raised_start(s, c, n, c[k].item);
    for (uint32_t k = 0; k < n; k++) {
        struct candidate x = c[k];
        if (x.waits && s->plain[x.item]) x.start = s->raised[k];
        insert_candidate(c, k, x);
    }
}

static enum outcome solve_component(struct search *s, const uint32_t *items, uint32_t n,
                                    uint32_t depth, uint32_t floor);

/* Moves the items that hang together with rest[0] to the front, keeping the order of both parts;
 * returns their number. */
static uint32_t split_component(struct search *s, uint32_t *rest, uint32_t n) {
    const uint32_t words = s->t->words;
    uint64_t *open = s->rest_set, *found = s->component_set;
    memset(open, 0, words * sizeof *open);
    memset(found, 0, words * sizeof *found);
    for (uint32_t k = 1; k < n; k++) open[rest[k] >> 6] |= UINT64_C(1) << (rest[k] & 63);
    uint32_t *queue = s->queue, n_queue = 1;
    queue[0] = rest[0];
    for (uint32_t k = 0; k < n_queue && n_queue < n; k++) {
        const uint64_t *row = s->adjacent + (size_t)queue[k] * words;
        for (uint32_t w = 0; w < words; w++) {
            uint64_t fresh = row[w] & open[w];
            open[w] &= ~fresh;
            found[w] |= fresh;
            for (; fresh != 0; fresh &= fresh - 1)
                queue[n_queue++] = w * 64 + (uint32_t)__builtin_ctzll(fresh);
        }
    }
    if (n_queue == n) return n;
    found[rest[0] >> 6] |= UINT64_C(1) << (rest[0] & 63);
    uint32_t n_front = 0, n_back = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (found[rest[k] >> 6] >> (rest[k] & 63) & 1) rest[n_front++] = rest[k];
        else queue[n_back++] = rest[k];
    }
    memcpy(rest + n_front, queue, n_back * sizeof *rest);
    return n_front;
}

static enum outcome solve_rest(struct search *s, uint32_t *rest, uint32_t n, uint32_t depth,
                               uint32_t floor) {
    while (n != 0) {
        const uint32_t count = split_component(s, rest, n);
        const enum outcome out = solve_component(s, rest, count, depth, floor);
        if (out != FOUND) return out;
        rest += count;
        n -= count;
    }
    return FOUND;
}

static struct level *level_at(struct search *s, uint32_t depth, uint32_t n) {
    struct level *l = &s->level[depth];
    if (l->candidate == NULL) {
        /* Deeper levels hold fewer items: the size of the first visit need not suffice. */
        const uint32_t room = s->t->n - MIN(depth, s->t->n - 1);
        l->candidate = arena_new_array(s->arena, struct candidate, room);
        l->rest = arena_new_array(s->arena, uint32_t, room);
        l->refuted = arena_new_array(s->arena, struct saved_refuted, room);
    }
    BUG_ON(n > s->t->n - MIN(depth, s->t->n - 1));
    return l;
}

/* Tries item i at p, then everything else of the component. */
static enum outcome try_candidate(struct search *s, uint32_t n, uint32_t depth,
                                  const struct candidate *c) {
    const struct level *l = &s->level[depth];
    uint32_t *rest = l->rest, n_rest = 0;
    if (++s->n_steps > s->limit) return OUT_OF_BUDGET;
    if (__atomic_load_n(s->winner, __ATOMIC_RELAXED) < s->number) return OUT_OF_BUDGET;
    for (uint32_t k = 0; k < n; k++)
        if (l->candidate[k].item != c->item) rest[n_rest++] = l->candidate[k].item;
    const uint32_t mark = s->n_trail;
    enum outcome out = FAILED;
    if (place_item(s, c->item, c->start, rest, n_rest))
        out = solve_rest(s, rest, n_rest, depth + 1, c->start);
    if (out != FOUND) trail_undo(s, mark);
    return out;
}

/* A crossing item also tries the starts behind element boundaries above its lowest one. */
static enum outcome try_boundaries(struct search *s, uint32_t n, uint32_t depth,
                                   const struct candidate *c) {
    const struct item *it = &s->t->item[c->item];
    uint32_t last = c->start;
    for (uint32_t b = element_floor(s->m, c->start); b < s->m->end; b = element_end(s->m, b)) {
        for (uint32_t e = it->edge; e < it->edge + it->n_edges; e++) {
            const uint32_t offset = s->t->edge[e].my_offset;
            if (b < offset || b - offset <= last) continue;
            const uint32_t start = next_start(s, c->item, b - offset);
            if (start == NONE || start <= last) continue;
            const struct candidate x = {start, c->rank, c->item, false};
            const enum outcome out = try_candidate(s, n, depth, &x);
            if (out != FAILED) return out;
        }
    }
    return FAILED;
}

/* Lists the candidates and applies the inference; false if the component has no map. */
static bool enter_component(struct search *s, const uint32_t *items, uint32_t n, uint32_t floor,
                            struct candidate *c, uint32_t *ret_lowest_top) {
    *ret_lowest_top = list_candidates(s, items, n, floor, c);
    raise_waiting(s, c, n);
    if (c[n - 1].start == NONE) return false;
    uint32_t first = NONE, last = 0;
    for (uint32_t k = 0; k < n; k++) {
        first = MIN(first, s->t->item[c[k].item].first);
        last = MAX(last, s->t->item[c[k].item].last);
    }
    return all_classes_fit(s, c, n, first, last);
}

/* Candidate k has failed: from now on it waits, and its sections must still fit. */
static bool after_failure(struct search *s, struct candidate *c, uint32_t n, uint32_t k) {
    struct candidate x = c[k];
    const struct item *it = &s->t->item[x.item];
    c[k].waits = true;
    if (!s->plain[x.item]) return true;
    const uint32_t start = raised_start(s, c, n, x.item);
    if (start == NONE) return false;
    x.waits = true;
    x.start = MAX(start, x.start);
    for (; k + 1 < n && comes_before(&c[k + 1], &x); k++) c[k] = c[k + 1];
    c[k] = x;
    return all_classes_fit(s, c, n, it->first, it->last);
}

static enum outcome solve_component(struct search *s, const uint32_t *items, uint32_t n,
                                    uint32_t depth, uint32_t floor) {
    struct level *l = level_at(s, depth, n);
    uint32_t n_refuted = 0, lowest_top;
    if (!enter_component(s, items, n, floor, l->candidate, &lowest_top)) return FAILED;
    enum outcome out = FAILED;
    for (;;) {
        uint32_t k = 0;
        while (k < n && l->candidate[k].waits) k++;
        if (k == n || l->candidate[k].start >= lowest_top) break;
        const struct candidate c = l->candidate[k];
        out = try_candidate(s, n, depth, &c);
        if (out == FAILED && s->t->item[c.item].crossing) out = try_boundaries(s, n, depth, &c);
        if (out != FAILED) break;
        l->refuted[n_refuted++] = (struct saved_refuted){c.item, s->refuted[c.item]};
        s->refuted[c.item] = c.start;
        if (!after_failure(s, l->candidate, n, k)) break;
    }
    while (n_refuted > 0) {
        const struct saved_refuted x = l->refuted[--n_refuted];
        s->refuted[x.item] = x.start;
    }
    return out;
}

/* --- Orders and restarts. --- */

struct rank_key {
    double major, minor;
    uint32_t item;
};

static int compare_rank_keys(const void *va, const void *vb) {
    const struct rank_key *a = va, *b = vb;
    if (a->major != b->major) return a->major > b->major ? -1 : 1;
    if (a->minor != b->minor) return a->minor > b->minor ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

enum { N_RANKS = 4 };

static void rank_items(struct search *s, uint32_t round) {
    const struct tile *t = s->t;
    struct rank_key *key = g_new(struct rank_key, t->n + 1);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct item *it = &t->item[i];
        const double life = it->last - it->first + 1, size = it->size;
        uint64_t total = 0; /* the fullest section it lives in */
        for (uint32_t u = it->first; u <= it->last; u++) total = MAX(total, s->total[0][u]);
        key[i] = (struct rank_key){.item = i};
        switch (round % N_RANKS) {
        case 0:
            key[i].major = life;
            key[i].minor = size;
            break;
        case 1:
            key[i].major = (double)total;
            key[i].minor = life * size;
            break;
        case 2:
            key[i].major = life * size;
            key[i].minor = life;
            break;
        default:
            key[i].major = s->weight[i];
            key[i].minor = life * size;
        }
        const double noise = round < N_RANKS ? 0 : 0.1 + 0.1 * (round / N_RANKS % 4);
        key[i].major *= 1 + noise * (2 * (double)rand_uniform(1, round, i) - 1);
    }
    if (t->n != 0) qsort(key, t->n, sizeof *key, compare_rank_keys);
    for (uint32_t k = 0; k < t->n; k++) s->rank[key[k].item] = k;
    g_free(key);
}

static void search_ranges(struct search *s) {
    const struct tile *t = s->t;
    struct span *scratch = arena_new_array(s->arena, struct span, PART_MAX_RANGES + s->n_fixed + 1);
    s->free_first = arena_new_array(s->arena, uint32_t, t->n_sections + 1);
    s->free = arena_new_array(s->arena, struct span,
                              (size_t)t->n_sections * (PART_MAX_RANGES + s->n_fixed + 1));
    for (uint32_t u = 0; u < t->n_sections; u++) {
        const uint32_t n = free_ranges(t, PLACE_PART_ALL, u, scratch);
        memcpy(s->free + s->free_first[u], scratch, n * sizeof *scratch);
        s->free_first[u + 1] = s->free_first[u] + n;
    }
    s->one_range =
        t->memory->n_ranges == 1 && s->n_fixed == 0 && t->memory->range_end[0] == t->memory->end;
}

static void search_adjacency(struct search *s) {
    const struct tile *t = s->t;
    const size_t words = (size_t)t->n * t->words;
    s->adjacent = arena_copy(s->arena, t->overlaps, words * sizeof *s->adjacent);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct item *it = &t->item[i];
        s->plain[i] = it->n_edges == 0 && !it->executable && (it->near_code || s->n_code == 0);
        for (uint32_t e = it->edge; e < it->edge + it->n_edges; e++) {
            const uint32_t j = t->edge[e].other;
            s->adjacent[(size_t)i * t->words + (j >> 6)] |= UINT64_C(1) << (j & 63);
        }
    }
}

static struct search *search_new(const struct tile *t) {
    struct arena *a = arena_new();
    struct search *s = arena_new_array(a, struct search, 1);
    const uint32_t n = t->n;
    s->arena = a;
    s->t = t;
    s->m = t->memory;
    uint32_t **arrays[] = {&s->address, &s->low,  &s->sky,    &s->refuted, &s->rank,
                           &s->fixed,   &s->code, &s->placed, &s->queue,   &s->raised};
    for (uint32_t i = 0; i < ARRAY_LEN(arrays); i++) *arrays[i] = arena_new_array(a, uint32_t, n);
    s->weight = arena_new_array(a, double, n);
    s->plain = arena_new_array(a, bool, n);
    s->skip = arena_new_array(a, uint32_t, t->n_sections + 2);
    s->rest_set = arena_new_array(a, uint64_t, t->words);
    s->component_set = arena_new_array(a, uint64_t, t->words);
    s->level = arena_new_array(a, struct level, n + 1);
    s->max_trail = 4 * n + 16;
    s->trail = g_new(struct saved, s->max_trail);
    for (uint32_t c = 0; c < 3; c++) s->total[c] = arena_new_array(a, uint64_t, t->n_sections + 1);
    for (uint32_t i = 0; i < n; i++) {
        s->address[i] = t->item[i].fixed ? t->span[t->item[i].domain].lo : NONE;
        if (t->item[i].fixed) s->fixed[s->n_fixed++] = i;
        else if (t->item[i].executable) s->code[s->n_code++] = i;
    }
    search_ranges(s);
    search_adjacency(s);
    for (uint32_t c = 1; c < 3; c++)
        for (uint32_t i = 0; i < n; i++)
            s->confined[c] |= !t->item[i].fixed && (t->item[i].parts >> c & 1);
    s->confined[0] = true;
    for (uint32_t i = 0; i < n; i++)
        if (!t->item[i].fixed) totals_add(s, i, true);
    return s;
}

static void search_free(struct search *s) {
    if (s == NULL) return;
    g_free(s->trail);
    arena_free(s->arena);
}

enum { MAX_SLOTS = 8, SINGLE_ROUNDS = 4, MAX_SLOT_ITEMS = 1000 };

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ..: no restart length is favoured by more than a logarithm. */
static uint64_t luby(uint32_t i) {
    for (uint32_t k = 1;; k++) {
        if (i == (1U << k) - 1) return UINT64_C(1) << (k - 1);
        if (i < (1U << k) - 1) {
            i -= (1U << (k - 1)) - 1;
            k = 0;
        }
    }
}

/* Of a restart, in units: lucky orders need few steps, so three batches of four are short; the
 * fourth grows without limit. */
static uint64_t round_length(uint32_t round) {
    const uint32_t batch = round / MAX_SLOTS;
    return batch % 4 != 3 ? 1 : 2 * luby(batch / 4 + 1);
}

static void reset_items(struct search *s, const uint32_t *items, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        s->sky[items[k]] = 0;
        s->refuted[items[k]] = NONE;
    }
    for (uint32_t k = 0; k < n; k++) s->low[items[k]] = next_start(s, items[k], 0);
}

/* Restarts run in batches, each in a slot of its own, so that two cores share one hard tile. The
 * first of a batch that decides wins, whatever the others do: the same answer for any number of
 * threads. */
struct group {
    const struct tile *t;
    struct search *slot[MAX_SLOTS];
    const uint32_t *items;
    uint32_t n, first_round, winner;
    uint64_t budget; /* steps left for each round of the batch, at most */
    enum outcome out[MAX_SLOTS];
    uint64_t steps[MAX_SLOTS];
};

static void run_round(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    struct group *g = context;
    struct search *s = g->slot[i];
    const uint32_t round = g->first_round + i;
    const uint64_t share = (uint64_t)(8 * g->n) * round_length(round);
    s->winner = &g->winner;
    s->number = i;
    s->n_steps = 0;
    s->limit = MIN(share, g->budget);
    rank_items(s, round);
    reset_items(s, g->items, g->n);
    g->out[i] = solve_component(s, g->items, g->n, 0, 0);
    g->steps[i] = s->n_steps;
    if (g->out[i] == OUT_OF_BUDGET) return;
    uint32_t best = __atomic_load_n(&g->winner, __ATOMIC_RELAXED);
    while (i < best && !__atomic_compare_exchange_n(&g->winner, &best, i, false, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED)) {}
}

/* All slots learn what failed in any of them, and forget half of it. */
static void share_weights(struct group *g, uint32_t n_slots) {
    for (uint32_t k = 0; k < g->n; k++) {
        const uint32_t i = g->items[k];
        double sum = 0;
        for (uint32_t q = 0; q < n_slots; q++) sum += g->slot[q]->weight[i];
        for (uint32_t q = 0; q < n_slots; q++) g->slot[q]->weight[i] = sum / (2 * n_slots);
    }
}

/* Restarts one independent group of items until it is decided or the budget is spent. */
static enum outcome solve_group(struct group *g, uint64_t max_steps, uint32_t *address,
                                uint64_t *n_steps) {
    enum outcome out = OUT_OF_BUDGET;
    for (g->first_round = 0; out == OUT_OF_BUDGET && *n_steps < max_steps;) {
        const bool single = g->first_round < SINGLE_ROUNDS || g->n > MAX_SLOT_ITEMS;
        const uint32_t n_slots = single ? 1 : MAX_SLOTS;
        for (uint32_t q = 0; q < n_slots; q++)
            if (g->slot[q] == NULL) g->slot[q] = search_new(g->t);
        g->winner = n_slots;
        g->budget = (max_steps - *n_steps + n_slots - 1) / n_slots;
        par_for(n_slots, run_round, g);
        for (uint32_t q = 0; q < n_slots && q <= g->winner; q++) *n_steps += g->steps[q];
        if (g->winner < n_slots) out = g->out[g->winner];
        if (out == FOUND)
            for (uint32_t k = 0; k < g->n; k++)
                address[g->items[k]] = g->slot[g->winner]->address[g->items[k]];
        for (uint32_t q = 0; q < n_slots; q++) trail_undo(g->slot[q], 0);
        share_weights(g, n_slots);
        g->first_round += n_slots;
    }
    return out;
}

enum search_status search_solve(const struct tile *t, uint64_t max_steps, uint32_t *address,
                                uint64_t *n_steps) {
    if (t->n > MAX_ITEMS) return SEARCH_UNDECIDED;
    struct group g = {.t = t, .slot = {search_new(t)}};
    uint32_t *items = arena_new_array(t->arena, uint32_t, t->n), n = 0;
    uint32_t *found = arena_new_array(t->arena, uint32_t, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        found[i] = g.slot[0]->address[i];
        if (!t->item[i].fixed) items[n++] = i;
    }
    uint64_t steps = 0;
    enum outcome out = FOUND;
    for (uint32_t k = 0; k < n && out == FOUND; k += g.n) {
        g.items = items + k;
        g.n = split_component(g.slot[0], items + k, n - k);
        out = solve_group(&g, max_steps, found, &steps);
    }
    *n_steps += steps;
    if (out == FOUND) memcpy(address, found, t->n * sizeof *address);
    for (uint32_t q = 0; q < MAX_SLOTS; q++) search_free(g.slot[q]);
    return out == FOUND ? SEARCH_FOUND : out == FAILED ? SEARCH_INFEASIBLE : SEARCH_UNDECIDED;
}
