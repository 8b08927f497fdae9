/* From requests to items: aliases are merged into their root, memory classes, alignments, code
 * rules and separations inside a storage become spans of allowed starts, pairs become edges. Cost:
 * linear in the requests, quadratic (bit operations) in the items of a tile. */
#include "place/place_int.h"

#include <stdlib.h>
#include <string.h>

/* Adds [lo, hi) unless it is empty. */
static uint32_t range_add(struct span *range, uint32_t n, uint32_t lo, uint32_t hi) {
    if (lo >= hi) return n;
    range[n] = (struct span){lo, hi};
    return n + 1;
}

uint32_t part_ranges(const struct place_memory *m, enum place_part part,
                     struct span ret_range[PART_MAX_RANGES]) {
    const uint32_t window_end = m->window_base + m->window_bytes;
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_ranges; i++) {
        const uint32_t lo = m->range_base[i], hi = m->range_end[i];
        if (part == PLACE_PART_STANDARD) {
            n = range_add(ret_range, n, lo, MIN(hi, m->interleaved_base));
        } else if (part == PLACE_PART_INTERLEAVED) {
            n = range_add(ret_range, n, MAX(lo, m->interleaved_base), hi);
        } else if (part == PLACE_PART_NO_WINDOW && m->window_bytes != 0) {
            n = range_add(ret_range, n, lo, MIN(hi, m->window_base));
            n = range_add(ret_range, n, MAX(lo, window_end), hi);
        } else {
            n = range_add(ret_range, n, lo, hi);
        }
    }
    return n;
}

/* Intersection of two ascending lists of inclusive spans; ret_out has room for na + nb. */
static uint32_t spans_intersect(const struct span *a, uint32_t na, const struct span *b,
                                uint32_t nb, struct span *ret_out) {
    uint32_t n = 0;
    for (uint32_t i = 0, j = 0; i < na && j < nb;) {
        const uint32_t lo = MAX(a[i].lo, b[j].lo), hi = MIN(a[i].hi, b[j].hi);
        if (lo <= hi) ret_out[n++] = (struct span){lo, hi};
        if (a[i].hi < b[j].hi) i++;
        else j++;
    }
    return n;
}

struct domain {
    struct arena *arena;
    struct span *span;
    uint32_t n;
};

static void domain_restrict(struct domain *d, const struct span *span, uint32_t n) {
    struct span *out = arena_new_array(d->arena, struct span, d->n + n);
    d->n = spans_intersect(d->span, d->n, span, n, out);
    d->span = out;
}

/* Keeps the starts with which bytes [offset, offset + bytes) of the item lie in one of the ranges.
 */
static void domain_inside(struct domain *d, uint32_t offset, uint64_t bytes,
                          const struct span *range, uint32_t n_ranges) {
    struct span starts[PART_MAX_RANGES];
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_ranges; i++) {
        if (range[i].hi - range[i].lo < bytes) continue;
        const uint64_t hi = range[i].hi - bytes;
        if (hi < offset) continue;
        starts[n++] =
            (struct span){range[i].lo > offset ? range[i].lo - offset : 0, (uint32_t)(hi - offset)};
    }
    domain_restrict(d, starts, n);
}

/* Two members of one storage must be separated: an element boundary lies between them. */
static void domain_separate(struct domain *d, const struct place_memory *m, uint32_t end_low,
                            uint32_t start_high) {
    uint32_t n_elements = 0, n = 0;
    for (uint32_t b = m->base; b < m->end; b = element_end(m, b)) n_elements++;
    struct span *starts = arena_new_array(d->arena, struct span, n_elements);
    for (uint32_t b = m->base; b < m->end; b = element_end(m, b)) {
        if (b < start_high || start_high < end_low) continue;
        const uint32_t lo = b - start_high, hi = b - end_low;
        if (n != 0 && lo <= starts[n - 1].hi) starts[n - 1].hi = hi;
        else starts[n++] = (struct span){lo, hi};
    }
    domain_restrict(d, starts, n);
}

static void domain_align(struct domain *d, uint32_t align, uint32_t residue) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->n; i++) {
        const uint64_t lo = d->span[i].lo + (uint64_t)((residue - d->span[i].lo) & (align - 1));
        const uint32_t back = (d->span[i].hi - residue) & (align - 1);
        if (back > d->span[i].hi || lo > d->span[i].hi - back) continue;
        d->span[n++] = (struct span){(uint32_t)lo, d->span[i].hi - back};
    }
    d->n = n;
}

/* Resolves aliases: item_of is the root's request number, offset_of the bytes from its start. */
static void resolve_aliases(const struct place_problem *p, uint32_t base, struct tile *t) {
    for (uint32_t i = 0; i < t->n_requests; i++) {
        uint32_t root = i, offset = 0;
        while (p->request[base + root].flags & PLACE_ALIAS) {
            offset += p->request[base + root].displacement;
            root = p->request[base + root].alias - base;
        }
        t->item_of[i] = root;
        t->offset_of[i] = offset;
    }
}

static void member_limit(const struct place_memory *m, const struct place_request *r,
                         uint32_t offset, struct domain *d) {
    struct span range[PART_MAX_RANGES];
    const uint64_t full = place_request_extent(r) + r->tail_bytes;
    domain_inside(d, offset, full, range, part_ranges(m, PLACE_PART_ALL, range));
    if (r->memory_class == PLACE_STANDARD)
        domain_inside(d, offset, full, range, part_ranges(m, PLACE_PART_STANDARD, range));
    if (r->memory_class == PLACE_INTERLEAVED)
        domain_inside(d, offset, full, range, part_ranges(m, PLACE_PART_INTERLEAVED, range));
    if (r->flags & PLACE_NO_HOST_WINDOW)
        domain_inside(d, offset, full, range, part_ranges(m, PLACE_PART_NO_WINDOW, range));
    if (r->flags & PLACE_EXECUTABLE) {
        range[0] = (struct span){m->base, m->interleaved_base};
        domain_inside(d, offset, full + m->fetch_guard_bytes, range, 1);
    }
}

/* Folds one member (root or alias) into its item. */
static void member_join(struct item *it, const struct place_request *r, uint32_t offset) {
    const uint64_t extent = offset + place_request_extent(r);
    const uint64_t full = extent + r->tail_bytes;
    const uint64_t size = r->flags & PLACE_TAIL_SHARED ? extent : full;
    const uint32_t align = r->align ? r->align : 1;
    if (full > it->full) it->full = (uint32_t)MIN(full, UINT32_MAX);
    if (size > it->size) it->size = (uint32_t)MIN(size, UINT32_MAX);
    if (align > it->align) {
        it->align = align;
        it->residue = (0 - offset) & (align - 1);
    }
    it->first = MIN(it->first, r->first_step);
    it->last = MAX(it->last, r->last_step);
    it->executable |= (r->flags & PLACE_EXECUTABLE) != 0;
}

static bool inside_part(const struct place_memory *m, enum place_part part, const struct item *it,
                        const struct domain *d) {
    struct span range[PART_MAX_RANGES];
    const uint32_t n = part_ranges(m, part, range);
    for (uint32_t i = 0; i < d->n; i++) {
        bool inside = false;
        for (uint32_t k = 0; k < n; k++)
            inside |=
                d->span[i].lo >= range[k].lo && (uint64_t)d->span[i].hi + it->full <= range[k].hi;
        if (!inside) return false;
    }
    return true;
}

static void item_finish(struct tile *t, const struct place_request *root, struct domain *d,
                        struct item *it, uint32_t *n_spans) {
    if (it->fixed) {
        d->span[0] = (struct span){root->address, root->address};
        d->n = 1;
    } else {
        domain_align(d, it->align, it->residue);
    }
    for (uint32_t part = 0; part < N_PARTS; part++)
        if (inside_part(t->memory, part, it, d)) it->parts |= (uint8_t)(1 << part);
    it->domain = *n_spans;
    it->n_domain = d->n;
    memcpy(t->span + *n_spans, d->span, d->n * sizeof d->span[0]);
    *n_spans += d->n;
}

/* The byte range of a request, tail included, from its item's start. */
static uint32_t member_bytes(const struct place_request *r) {
    return (uint32_t)MIN(place_request_extent(r) + r->tail_bytes, UINT32_MAX);
}

/* First pair of the problem with a >= request. */
static uint32_t pair_lower(const struct place_problem *p, uint32_t request) {
    uint32_t lo = 0, hi = p->n_pairs;
    while (lo < hi) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (p->pair_a[mid] < request) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

struct pairs {
    const struct place_problem *p;
    uint32_t base, begin, end; /* request base of the tile, pairs of the tile */
};

static void build_domains(struct tile *t, const struct pairs *q, struct domain *d) {
    const struct place_request *request = q->p->request + q->base;
    for (uint32_t i = 0; i < t->n_requests; i++)
        member_limit(t->memory, &request[i], t->offset_of[i], &d[t->item_of[i]]);
    for (uint32_t k = q->begin; k < q->end; k++) {
        uint32_t a = q->p->pair_a[k] - q->base, b = q->p->pair_b[k] - q->base;
        if (t->item_of[a] != t->item_of[b]) continue;
        if (t->offset_of[a] > t->offset_of[b]) {
            const uint32_t swap = a;
            a = b;
            b = swap;
        }
        domain_separate(&d[t->item_of[a]], t->memory, t->offset_of[a] + member_bytes(&request[a]),
                        t->offset_of[b]);
    }
}

/* Both directions of every pair between two items, by counting sort. */
static void build_edges(struct tile *t, const struct pairs *q) {
    const struct place_request *request = q->p->request + q->base;
    uint32_t *next = arena_new_array(t->arena, uint32_t, t->n + 1);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t k = q->begin; k < q->end; k++) {
            const uint32_t a = q->p->pair_a[k] - q->base, b = q->p->pair_b[k] - q->base;
            const uint32_t i = t->item_of[a], j = t->item_of[b];
            if (i == j) continue;
            if (pass == 0) {
                t->item[i].n_edges++;
                t->item[j].n_edges++;
                continue;
            }
            const uint32_t oa = t->offset_of[a], ob = t->offset_of[b];
            const uint32_t na = member_bytes(&request[a]), nb = member_bytes(&request[b]);
            t->edge[next[i]++] = (struct edge){j, oa, na, ob, nb};
            t->edge[next[j]++] = (struct edge){i, ob, nb, oa, na};
            if (oa != 0 || ob != 0) t->item[i].crossing = t->item[j].crossing = true;
        }
        if (pass != 0) break;
        for (uint32_t i = 0, sum = 0; i < t->n; i++) {
            t->item[i].edge = next[i] = sum;
            sum += t->item[i].n_edges;
        }
    }
}

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t section_of(const struct tile *t, uint32_t step) {
    uint32_t lo = 0, hi = t->n_sections;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (t->step[mid] <= step) lo = mid;
        else hi = mid;
    }
    return lo;
}

/* Cuts time at every first step and behind every last step; lifetimes become ranges of sections. */
static void build_sections(struct tile *t) {
    uint32_t *cut = arena_new_array(t->arena, uint32_t, 2 * (size_t)t->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        cut[n++] = t->item[i].first;
        if (t->item[i].last != UINT32_MAX) cut[n++] = t->item[i].last + 1;
    }
    if (n != 0) qsort(cut, n, sizeof *cut, compare_u32);
    t->step = cut;
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || cut[i] != cut[i - 1]) t->step[t->n_sections++] = cut[i];
    for (uint32_t i = 0; i < t->n; i++) {
        t->item[i].first = section_of(t, t->item[i].first);
        t->item[i].last = section_of(t, t->item[i].last);
    }
}

static void build_overlaps(struct tile *t) {
    t->words = (t->n + 63) / 64;
    t->overlaps = arena_new_array(t->arena, uint64_t, (size_t)t->n * t->words);
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t j = 0; j < t->n; j++)
            if (i != j && t->item[i].first <= t->item[j].last &&
                t->item[j].first <= t->item[i].last)
                t->overlaps[(size_t)i * t->words + (j >> 6)] |= UINT64_C(1) << (j & 63);
}

/* Renumbers roots to items 0..n-1 and folds the members in. Domains are per root request. */
static void build_items(struct tile *t, const struct place_request *request, struct domain *d) {
    uint32_t *number = arena_new_array(t->arena, uint32_t, t->n_requests);
    t->item = arena_new_array(t->arena, struct item, t->n_requests);
    for (uint32_t i = 0; i < t->n_requests; i++) {
        if (t->item_of[i] != i) continue;
        number[i] = t->n;
        t->item[t->n++] = (struct item){.root = i,
                                        .align = 1,
                                        .first = UINT32_MAX,
                                        .fixed = (request[i].flags & PLACE_FIXED) != 0,
                                        .near_code = (request[i].flags & PLACE_NEAR_CODE) != 0};
    }
    uint32_t n_spans = 0;
    for (uint32_t i = 0; i < t->n_requests; i++)
        member_join(&t->item[number[t->item_of[i]]], &request[i], t->offset_of[i]);
    for (uint32_t i = 0; i < t->n; i++) n_spans += d[t->item[i].root].n + 1;
    t->span = arena_new_array(t->arena, struct span, n_spans);
    n_spans = 0;
    for (uint32_t i = 0; i < t->n; i++)
        item_finish(t, &request[t->item[i].root], &d[t->item[i].root], &t->item[i], &n_spans);
    for (uint32_t i = 0; i < t->n_requests; i++) t->item_of[i] = number[t->item_of[i]];
}

struct tile *tile_build(const struct place_problem *p, uint32_t tile, struct arena *arena) {
    struct tile *t = arena_new_array(arena, struct tile, 1);
    const uint32_t base = p->first[tile];
    t->memory = &p->memory;
    t->arena = arena;
    t->n_requests = p->first[tile + 1] - base;
    t->item_of = arena_new_array(arena, uint32_t, t->n_requests);
    t->offset_of = arena_new_array(arena, uint32_t, t->n_requests);
    resolve_aliases(p, base, t);
    const struct pairs q = {p, base, pair_lower(p, base), pair_lower(p, p->first[tile + 1])};
    struct domain *d = arena_new_array(arena, struct domain, t->n_requests);
    static const struct span everywhere = {0, UINT32_MAX};
    for (uint32_t i = 0; i < t->n_requests; i++)
        d[i] = (struct domain){arena, arena_copy(arena, &everywhere, sizeof everywhere), 1};
    build_domains(t, &q, d);
    build_items(t, p->request + base, d);
    t->edge = arena_new_array(arena, struct edge, 2 * (size_t)(q.end - q.begin));
    build_edges(t, &q);
    build_sections(t);
    build_overlaps(t);
    return t;
}
