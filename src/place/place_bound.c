/* Proofs of impossibility that need no search, cheapest first: live bytes against the memory and
 * against its parts, one request against the free spans, large requests against the spans, elements
 * that executables and separated requests need. Cost: items x sections. */
#include "place/place_int.h"

#include <stdlib.h>
#include <string.h>

static bool live_at(const struct item *it, uint32_t section) {
    return it->first <= section && section <= it->last;
}

static bool in_part(const struct item *it, enum place_part part) {
    return !it->fixed && (it->parts >> part & 1);
}

/* The part's ranges at a section minus the live fixed items, ascending. */
uint32_t free_ranges(const struct tile *t, enum place_part part, uint32_t section,
                     struct span *ret) {
    struct span range[PART_MAX_RANGES];
    const uint32_t n_ranges = part_ranges(t->memory, part, range);
    uint32_t n = n_ranges;
    memcpy(ret, range, n * sizeof range[0]);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct item *it = &t->item[i];
        if (!it->fixed || !live_at(it, section)) continue;
        const uint32_t lo = t->span[it->domain].lo, hi = lo + it->size;
        for (uint32_t k = 0; k < n; k++) {
            if (hi <= ret[k].lo || lo >= ret[k].hi) continue;
            const struct span s = ret[k];
            memmove(ret + k, ret + k + 1, (n - k - 1) * sizeof *ret);
            n--;
            uint32_t at = k;
            for (uint32_t side = 0; side < 2; side++) {
                const struct span piece = side == 0 ? (struct span){s.lo, MIN(lo, s.hi)}
                                                    : (struct span){MAX(hi, s.lo), s.hi};
                if (piece.lo >= piece.hi) continue;
                memmove(ret + at + 1, ret + at, (n - at) * sizeof *ret);
                ret[at++] = piece;
                n++;
            }
            k = at - 1; /* pieces of this range do not meet the item again */
        }
    }
    return n;
}

struct user {
    uint32_t size, root;
};

static int compare_users(const void *va, const void *vb) {
    const struct user *a = va, *b = vb;
    if (a->size != b->size) return a->size > b->size ? -1 : 1;
    return a->root < b->root ? -1 : a->root > b->root;
}

/* Fills the users: live items of the part with at least min_size bytes, largest first. */
static void proof_users(const struct tile *t, struct place_proof *proof, uint32_t section,
                        enum place_part part, uint32_t min_size) {
    struct user *user = arena_new_array(t->arena, struct user, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        if (live_at(&t->item[i], section) && in_part(&t->item[i], part) &&
            t->item[i].size >= min_size)
            user[proof->n_users++] = (struct user){t->item[i].size, t->item[i].root};
    if (proof->n_users != 0) qsort(user, proof->n_users, sizeof *user, compare_users);
    proof->user = arena_new_array(t->arena, uint32_t, proof->n_users);
    for (uint32_t k = 0; k < proof->n_users; k++) proof->user[k] = user[k].root;
}

/* Largest power of two that divides all starts of the live items of the part. */
static uint32_t common_align(const struct tile *t, enum place_part part, uint32_t section) {
    uint32_t align = 1U << 31;
    for (uint32_t i = 0; i < t->n; i++) {
        const struct item *it = &t->item[i];
        if (!live_at(it, section) || !in_part(it, part)) continue;
        align = MIN(align, it->align);
        if (it->residue != 0) align = MIN(align, it->residue & (0 - it->residue));
    }
    return align;
}

static uint64_t round_up(uint64_t v, uint32_t align) {
    return (v + align - 1) & ~(uint64_t)(align - 1);
}

/* Bytes of the ranges between aligned addresses, the end of a range counting as aligned: the last
 * item's padding may reach beyond it. */
static uint64_t aligned_bytes(const struct span *range, uint32_t n, uint32_t align) {
    uint64_t sum = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint64_t lo = round_up(range[k].lo, align), hi = round_up(range[k].hi, align);
        if (lo < hi) sum += hi - lo;
    }
    return sum;
}

static struct place_proof prove_peak(const struct tile *t, struct span *scratch) {
    for (uint32_t section = 0; section < t->n_sections; section++) {
        for (uint32_t part = 0; part < N_PARTS; part++) {
            uint64_t need = 0, padded = 0;
            const uint32_t align = common_align(t, part, section);
            for (uint32_t i = 0; i < t->n; i++) {
                if (!live_at(&t->item[i], section) || !in_part(&t->item[i], part)) continue;
                need += t->item[i].size;
                padded += round_up(t->item[i].size, align);
            }
            if (need == 0) continue;
            const uint32_t n = free_ranges(t, part, section, scratch);
            uint64_t has = aligned_bytes(scratch, n, 1);
            if (need <= has) {
                need = padded;
                has = aligned_bytes(scratch, n, align);
            }
            if (need <= has) continue;
            struct place_proof proof = {.kind = part == PLACE_PART_ALL ? PLACE_PROOF_LIVE_PEAK
                                                                       : PLACE_PROOF_CLASS_PEAK,
                                        .part = (uint8_t)part,
                                        .step = t->step[section],
                                        .need_bytes = need,
                                        .has_bytes = has};
            proof_users(t, &proof, section, part, 0);
            return proof;
        }
    }
    return (struct place_proof){0};
}

/* One section: do the spans hold all live items of at least each size? Items by size, largest
 * first. */
static struct place_proof prove_spans(const struct tile *t, const uint32_t *by_size,
                                      uint32_t section, enum place_part part,
                                      struct span *scratch) {
    const uint32_t n = free_ranges(t, part, section, scratch);
    uint64_t wanted = 0, largest = 0;
    for (uint32_t k = 0; k < n; k++) largest = MAX(largest, scratch[k].hi - scratch[k].lo);
    for (uint32_t i = 0; i < t->n; i++) {
        const struct item *it = &t->item[by_size[i]];
        if (!live_at(it, section) || !in_part(it, part)) continue;
        uint64_t room = 0;
        wanted++;
        for (uint32_t k = 0; k < n; k++) room += (scratch[k].hi - scratch[k].lo) / it->size;
        if (wanted <= room) continue;
        struct place_proof proof = {.kind = PLACE_PROOF_CONTIGUITY,
                                    .part = (uint8_t)part,
                                    .step = t->step[section],
                                    .need_bytes = room == 0 ? it->size : wanted * it->size,
                                    .has_bytes = room == 0 ? largest : room * it->size};
        proof_users(t, &proof, section, part, it->size);
        return proof;
    }
    return (struct place_proof){0};
}

static struct place_proof prove_contiguity(const struct tile *t, struct span *scratch) {
    struct user *user = arena_new_array(t->arena, struct user, t->n);
    uint32_t *by_size = arena_new_array(t->arena, uint32_t, t->n);
    for (uint32_t i = 0; i < t->n; i++) user[i] = (struct user){t->item[i].size, i};
    if (t->n != 0) qsort(user, t->n, sizeof *user, compare_users);
    for (uint32_t i = 0; i < t->n; i++) by_size[i] = user[i].root;
    struct place_proof proof = {0};
    for (uint32_t section = 0; section < t->n_sections; section++)
        for (uint32_t part = 0; part < N_PARTS && proof.kind == PLACE_PROOF_NONE; part++)
            proof = prove_spans(t, by_size, section, part, scratch);
    return proof;
}

/* Usable bytes of every element of the part at a section that no fixed executable closes; room in
 * the closed ones is added to *ret_closed. Returns the number of open elements with any room. */
static uint32_t open_elements(const struct tile *t, enum place_part part, uint32_t section,
                              struct span *scratch, uint32_t *ret_room, uint64_t *ret_closed) {
    const struct place_memory *m = t->memory;
    const uint32_t n = free_ranges(t, part, section, scratch);
    uint32_t n_open = 0;
    *ret_closed = 0;
    for (uint32_t lo = m->base; lo < m->end; lo = element_end(m, lo)) {
        const uint32_t hi = element_end(m, lo);
        uint32_t room = 0;
        bool closed = false;
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t from = MAX(lo, scratch[k].lo), to = MIN(hi, scratch[k].hi);
            if (from < to) room += to - from;
        }
        for (uint32_t i = 0; i < t->n; i++) {
            const struct item *it = &t->item[i];
            if (!it->fixed || !it->executable || !live_at(it, section)) continue;
            const uint32_t start = t->span[it->domain].lo;
            closed |= start < hi && start + it->full + m->fetch_guard_bytes > lo;
        }
        if (closed) *ret_closed += room;
        else if (room != 0) ret_room[n_open++] = room;
    }
    return n_open;
}

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Executables close whole elements: what is left must hold the data. */
static struct place_proof prove_code(const struct tile *t, struct span *scratch) {
    uint32_t n_elements = 0, n_code = 0;
    for (uint32_t lo = t->memory->base; lo < t->memory->end; lo = element_end(t->memory, lo))
        n_elements++;
    for (uint32_t i = 0; i < t->n; i++) n_code += t->item[i].executable;
    if (n_code == 0) return (struct place_proof){0};
    uint32_t *room = arena_new_array(t->arena, uint32_t, n_elements);
    for (uint32_t section = 0; section < t->n_sections; section++) {
        for (uint32_t part = 0; part < N_PARTS; part++) {
            uint64_t closed, code = 0, need = 0, has = 0;
            const uint32_t n = open_elements(t, part, section, scratch, room, &closed);
            for (uint32_t i = 0; i < t->n; i++) {
                const struct item *it = &t->item[i];
                if (!live_at(it, section) || !in_part(it, part)) continue;
                if (it->executable) code += it->size;
                else if (!it->near_code) need += it->size;
            }
            if (n != 0) qsort(room, n, sizeof *room, compare_u32);
            code -= MIN(code, closed);
            uint32_t n_closed = 0; /* elements that the code needs at least */
            for (uint32_t k = n; k > 0 && code > 0; k--, n_closed++) code -= MIN(code, room[k - 1]);
            for (uint32_t k = n_closed; k < n; k++) has += room[k];
            if (need <= has && code == 0) continue;
            struct place_proof proof = {.kind = PLACE_PROOF_SEPARATION,
                                        .part = (uint8_t)part,
                                        .step = t->step[section],
                                        .need_bytes = need + code,
                                        .has_bytes = has};
            proof_users(t, &proof, section, part, 0);
            return proof;
        }
    }
    return (struct place_proof){0};
}

static bool separated(const struct tile *t, uint32_t i, uint32_t j) {
    for (uint32_t e = t->item[i].edge; e < t->item[i].edge + t->item[i].n_edges; e++)
        if (t->edge[e].other == j) return true;
    return false;
}

/* Bytes of the smallest separated part of an item: what one of its edges keeps apart. */
static uint32_t separated_bytes(const struct tile *t, uint32_t i) {
    uint32_t bytes = UINT32_MAX;
    for (uint32_t e = t->item[i].edge; e < t->item[i].edge + t->item[i].n_edges; e++)
        bytes = MIN(bytes, t->edge[e].my_bytes);
    return bytes;
}

/* Mutually separated items need an element each, or more: cliques grown greedily from each item. */
static struct place_proof prove_separation(const struct tile *t) {
    const struct place_memory *m = t->memory;
    uint32_t *clique = arena_new_array(t->arena, uint32_t, t->n);
    const uint32_t largest = MAX(m->element_bytes, m->interleaved_element_bytes);
    for (uint32_t part = 0; part < N_PARTS; part++) {
        struct span range[PART_MAX_RANGES];
        const uint32_t n_ranges = part_ranges(m, part, range);
        const uint32_t element = part == PLACE_PART_STANDARD      ? m->element_bytes
                                 : part == PLACE_PART_INTERLEAVED ? m->interleaved_element_bytes
                                                                  : largest;
        uint32_t has = 0;
        for (uint32_t lo = m->base; lo < m->end; lo = element_end(m, lo)) {
            bool usable = false;
            for (uint32_t k = 0; k < n_ranges; k++)
                usable |= range[k].lo < element_end(m, lo) && range[k].hi > lo;
            has += usable;
        }
        for (uint32_t i = 0; i < t->n; i++) {
            uint32_t n = 0;
            uint64_t need = 0;
            for (uint32_t at = 0; at < t->n; at++) {
                const uint32_t j = (i + at) % t->n;
                bool all = t->item[j].n_edges != 0 && in_part(&t->item[j], part);
                for (uint32_t k = 0; k < n && all; k++) all = separated(t, j, clique[k]);
                if (!all) {
                    if (at == 0) break;
                    continue;
                }
                clique[n++] = j;
                need += element == 0 ? 1 : (separated_bytes(t, j) + element - 1) / element;
            }
            if (need <= has) continue;
            const uint32_t unit = element == 0 ? 1 : element;
            struct place_proof proof = {.kind = PLACE_PROOF_SEPARATION,
                                        .part = (uint8_t)part,
                                        .step = t->step[t->item[i].first],
                                        .need_bytes = need * unit,
                                        .has_bytes = (uint64_t)has * unit,
                                        .n_users = n};
            proof.user = arena_new_array(t->arena, uint32_t, n);
            for (uint32_t k = 0; k < n; k++) proof.user[k] = t->item[clique[k]].root;
            return proof;
        }
    }
    return (struct place_proof){0};
}

/* An item that has no start at all, whatever the others do. */
static struct place_proof prove_domain(const struct tile *t) {
    for (uint32_t i = 0; i < t->n; i++) {
        const struct item *it = &t->item[i];
        if (it->n_domain != 0) continue;
        struct span range[PART_MAX_RANGES];
        const uint32_t n = part_ranges(t->memory, PLACE_PART_ALL, range);
        struct place_proof proof = {.kind = PLACE_PROOF_CONTIGUITY,
                                    .step = t->step[it->first],
                                    .need_bytes = it->full,
                                    .n_users = 1};
        for (uint32_t k = 0; k < n; k++)
            proof.has_bytes = MAX(proof.has_bytes, range[k].hi - range[k].lo);
        if (proof.has_bytes >= it->full) proof.kind = PLACE_PROOF_SEARCH;
        proof.user = arena_copy(t->arena, &it->root, sizeof it->root);
        return proof;
    }
    return (struct place_proof){0};
}

struct place_proof bound_prove(const struct tile *t) {
    uint32_t n_fixed = 0;
    for (uint32_t i = 0; i < t->n; i++) n_fixed += t->item[i].fixed;
    struct span *scratch = arena_new_array(t->arena, struct span, PART_MAX_RANGES + n_fixed + 1);
    struct place_proof proof = prove_peak(t, scratch);
    if (proof.kind == PLACE_PROOF_NONE) proof = prove_domain(t);
    if (proof.kind == PLACE_PROOF_NONE) proof = prove_contiguity(t, scratch);
    if (proof.kind == PLACE_PROOF_NONE) proof = prove_code(t, scratch);
    if (proof.kind == PLACE_PROOF_NONE) proof = prove_separation(t);
    return proof;
}
