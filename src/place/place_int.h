/* place, inside: one tile in the solver's form, shared by the solver's files only (the checker does
 * not include this).
 *
 * A storage (a root request with its aliases) is an item. Every constraint of an item against
 * another one is a set of forbidden intervals of starts once the other has an address, and every
 * constraint of its own is a list of allowed start spans. All allocations are in the tile's arena.
 */
#ifndef IPU_PLACE_INT_H
#define IPU_PLACE_INT_H

#include "place/place.h"

/* Starts lo, lo + align, .. hi, both ends allowed. */
struct span {
    uint32_t lo, hi;
};

/* My bytes [my_offset, my_offset + my_bytes) and the other item's must touch no common element. */
struct edge {
    uint32_t other;
    uint32_t my_offset, my_bytes, other_offset, other_bytes;
};

struct item {
    uint32_t size;             /* bytes that no other live item may touch */
    uint32_t full;             /* with shared tails: bytes that must be mapped */
    uint32_t align, residue;   /* start mod align = residue */
    uint32_t first, last;      /* sections of the tile's time, inclusive */
    uint32_t domain, n_domain; /* allowed start spans, ascending */
    uint32_t edge, n_edges;
    uint32_t root; /* request number within the tile */
    uint8_t parts; /* bit enum place_part: the item is confined to this part */
    bool fixed, executable, near_code;
    bool crossing; /* has an edge with displaced parts (see place_search.c) */
};

struct tile {
    const struct place_memory *memory;
    struct arena *arena;
    uint32_t n, n_requests;
    struct item *item;
    struct span *span;
    struct edge *edge;
    uint32_t *item_of, *offset_of; /* [n_requests] */
    uint32_t n_sections, *step; /* first step of each section: between two steps nothing changes */
    uint64_t *overlaps;         /* n x words bits: live at a common step and not the same */
    uint32_t words;             /* of a row of overlaps */
};

static inline bool tile_overlap(const struct tile *t, uint32_t i, uint32_t j) {
    return (t->overlaps[(size_t)i * t->words + (j >> 6)] >> (j & 63)) & 1;
}

/* First byte of the element of an address, and the first byte behind it. */
static inline uint32_t element_floor(const struct place_memory *m, uint32_t address) {
    const bool high = address >= m->interleaved_base;
    const uint32_t base = high ? m->interleaved_base : m->base;
    const uint32_t bytes = high ? m->interleaved_element_bytes : m->element_bytes;
    return bytes == 0 ? base : address - (address - base) % bytes;
}
static inline uint32_t element_end(const struct place_memory *m, uint32_t address) {
    const bool high = address >= m->interleaved_base;
    const uint32_t bytes = high ? m->interleaved_element_bytes : m->element_bytes;
    const uint32_t part_end = high ? m->end : m->interleaved_base;
    if (bytes == 0) return part_end;
    return MIN(element_floor(m, address) + bytes, part_end);
}

/* place_item.c: builds the items of tile t. Zero-size arrays are allowed. */
struct tile *tile_build(const struct place_problem *p, uint32_t t, struct arena *arena);
/* Every byte range of the memory that belongs to a part, clipped to the usable ranges. */
enum { PART_MAX_RANGES = PLACE_MAX_RANGES + 1, N_PARTS = 4 };
uint32_t part_ranges(const struct place_memory *m, enum place_part part,
                     struct span ret_range[PART_MAX_RANGES]); /* span: lo .. hi - 1 bytes */

/* place_fit.c: where an item may start while others have addresses. */
struct fit {
    const struct tile *tile;
    uint32_t *address;             /* [n], PLACE_NO_ADDRESS = not placed */
    uint32_t *placed, n_placed;    /* items by ascending address */
    struct span *free, *forbidden; /* scratch: results of fit_spans */
    uint32_t max_forbidden;
    uint64_t n_steps; /* positions tried */
};
struct fit *fit_new(const struct tile *t, struct arena *arena);
void fit_clear(struct fit *f); /* only the fixed items are placed */
/* The free start spans of item i in f->free, ascending, aligned; returns their number. */
uint32_t fit_spans(struct fit *f, uint32_t i);
/* Item i at start against the placed item j. */
bool fit_conflict(const struct fit *f, uint32_t i, uint32_t start, uint32_t j);
void fit_place(struct fit *f, uint32_t i, uint32_t address);
void fit_remove(struct fit *f, uint32_t i);

/* place_greedy.c: constructive orders; true if all items have addresses in f->address. */
bool greedy_solve(struct fit *f, uint64_t max_steps);

/* place_bound.c: a proof that the tile cannot be solved, or kind PLACE_PROOF_NONE. Users are item
 * roots in the arena. */
struct place_proof bound_prove(const struct tile *t);

/* The usable ranges of a part at a section of time minus the live fixed items, as bytes lo .. hi -
 * 1, ascending; room for PART_MAX_RANGES + the number of fixed items + 1. */
uint32_t free_ranges(const struct tile *t, enum place_part part, uint32_t section,
                     struct span *ret);

/* place_search.c: exact search; SEARCH_FOUND sets address[n], the others leave it. */
enum search_status { SEARCH_FOUND, SEARCH_INFEASIBLE, SEARCH_UNDECIDED };
enum search_status search_solve(const struct tile *t, uint64_t max_steps, uint32_t *address,
                                uint64_t *n_steps);

/* place_traffic.c: improves the complete map in f->address for the tile's traffic; `base` is the
 * tile's first request. Leaves a complete map in f->address. */
void traffic_improve(struct fit *f, const struct place_traffic *all, uint32_t tile, uint32_t base);

/* place_repair.c: a complete map in f->address that keeps most of `previous` (addresses of the
 * tile's requests, PLACE_NO_ADDRESS = new); false if that needs more than local changes. */
bool repair_solve(struct fit *f, const uint32_t *previous);

#endif
