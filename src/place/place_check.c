/* Contradictions in a problem, named before solving: one pass over each tile's requests and pairs,
 * quadratic only in the fixed requests of a tile. Also the reader's defence: nothing in the arrays
 * is trusted, and what passes here cannot make the solver fail. */
#include "place/place.h"

enum { MAX_ELEMENTS = 4096 };

struct check {
    const struct place_problem *p;
    uint32_t tile, base;
    GError **error;
};

static const char *name_of(const struct place_problem *p, uint32_t r) {
    const uint32_t n = p->request[r].name;
    return n < p->n_names ? p->name[n] : "?";
}

#define fail(c, r, code, ...)                                                                      \
    (diag_set((c)->error, code, (c)->tile, (r) - (c)->base, name_of((c)->p, (r)), ##__VA_ARGS__),  \
     false)

static bool check_elements(uint32_t bytes, uint32_t element) {
    return element == 0 || ((element & (element - 1)) == 0 && bytes / element <= MAX_ELEMENTS);
}

static const char *memory_fault(const struct place_memory *m) {
    if (m->base >= m->end || m->end > UINT32_MAX / 4) return "base and end";
    if (m->interleaved_base < m->base || m->interleaved_base > m->end) return "interleaved base";
    if (!check_elements(m->interleaved_base - m->base, m->element_bytes) ||
        !check_elements(m->end - m->interleaved_base, m->interleaved_element_bytes))
        return "element sizes";
    if (m->window_bytes != 0 && (m->window_base < m->base || m->window_base > m->end ||
                                 m->window_bytes > m->end - m->window_base))
        return "host window";
    if (m->fetch_guard_bytes > m->end - m->base) return "fetch guard";
    if (m->n_ranges == 0 || m->n_ranges > PLACE_MAX_RANGES) return "number of usable ranges";
    for (uint32_t i = 0; i < m->n_ranges; i++)
        if (m->range_base[i] < (i == 0 ? m->base : m->range_end[i - 1] + 1) ||
            m->range_base[i] >= m->range_end[i] || m->range_end[i] > m->end)
            return "usable ranges";
    return NULL;
}

static bool check_fields(const struct check *c, uint32_t r) {
    const struct place_request *q = &c->p->request[r];
    const uint32_t capacity = c->p->memory.end - c->p->memory.base;
    if (q->name >= c->p->n_names) return fail(c, r, PLACE_FIELD, "its name number is out of range");
    if (q->bytes == 0) return fail(c, r, PLACE_FIELD, "it has no bytes");
    if (q->align & (q->align - 1))
        return fail(c, r, PLACE_FIELD, "its alignment is no power of two");
    if (q->first_step > q->last_step)
        return fail(c, r, PLACE_FIELD, "its lifetime ends before it starts");
    if (q->memory_class > PLACE_INTERLEAVED || q->kind >= PLACE_N_KINDS ||
        q->flags & ~PLACE_ALL_FLAGS)
        return fail(c, r, PLACE_FIELD, "its class, kind or flags are out of range");
    if ((q->flags & PLACE_FIXED) && (q->flags & PLACE_ALIAS))
        return fail(c, r, PLACE_FIELD, "an alias cannot be fixed: fix its target");
    if ((q->flags & PLACE_EXECUTABLE) && q->memory_class == PLACE_INTERLEAVED)
        return fail(c, r, PLACE_FIELD, "executables cannot be fetched from interleaved memory");
    if (q->n_blocks > 1) {
        const uint32_t align = q->align ? q->align : 1;
        const uint64_t block =
            (uint64_t)q->bytes + (q->flags & PLACE_BLOCK_TAILS ? q->tail_bytes : 0);
        if (block > capacity) return fail(c, r, PLACE_FIELD, "a block is larger than the memory");
        if (q->stride != 0 && (q->stride < block || q->stride % align != 0))
            return fail(c, r, PLACE_STRIDE, q->stride, align);
    }
    /* A request that is merely too large is infeasible, not wrong; only absurd sizes are refused.
     */
    if (place_request_extent(q) + q->tail_bytes > UINT32_MAX / 4)
        return fail(c, r, PLACE_FIELD, "its extent is beyond any memory");
    return true;
}

static bool check_alias(const struct check *c, uint32_t r) {
    const struct place_problem *p = c->p;
    const struct place_request *q = &p->request[r];
    if (!(q->flags & PLACE_ALIAS)) return true;
    const uint32_t end = p->first[c->tile + 1];
    uint32_t at = r;
    for (uint32_t hops = 0; p->request[at].flags & PLACE_ALIAS; hops++) {
        const uint32_t next = p->request[at].alias;
        if (next < c->base || next >= end || next == at || hops >= end - c->base)
            return fail(c, r, PLACE_ALIAS_TARGET, p->request[at].alias - c->base);
        at = next;
    }
    const uint64_t last = (uint64_t)q->displacement + place_request_extent(q);
    const uint64_t has = place_request_extent(&p->request[q->alias]);
    if (last > has)
        return fail(c, r, PLACE_ALIAS_OUTSIDE, q->displacement, last, name_of(p, q->alias), has);
    return true;
}

/* Root and bytes from its start; aliases are known to be sound. */
static uint32_t root_of(const struct place_problem *p, uint32_t r, uint32_t *ret_offset) {
    *ret_offset = 0;
    while (p->request[r].flags & PLACE_ALIAS) {
        *ret_offset += p->request[r].displacement;
        r = p->request[r].alias;
    }
    return r;
}

/* The alignments of one storage as start = residue modulo align; classes must agree. Every member
 * is joined to the root in turn. */
static bool check_storage(const struct check *c, uint32_t r, uint32_t *align, uint32_t *residue) {
    const struct place_problem *p = c->p;
    const struct place_request *q = &p->request[r];
    uint32_t offset;
    const uint32_t root = root_of(p, r, &offset), k = root - c->base;
    const uint32_t mine = q->align ? q->align : 1, want = (0 - offset) & (mine - 1);
    if ((want ^ residue[k]) & (MIN(mine, align[k]) - 1))
        return fail(c, r, PLACE_ALIGN_ALIAS, mine, offset, name_of(p, root), residue[k], align[k]);
    if (mine > align[k]) {
        align[k] = mine;
        residue[k] = want;
    }
    const struct place_request *s = &p->request[root];
    const uint8_t low = PLACE_STANDARD, high = PLACE_INTERLEAVED;
    const bool low_class = q->memory_class == low || q->flags & PLACE_EXECUTABLE;
    if ((s->memory_class == high && low_class) ||
        (s->memory_class == low && q->memory_class == high))
        return fail(c, r, PLACE_CLASS_ALIAS, name_of(p, root));
    return true;
}

/* A fixed storage's member: alignment, SRAM, class. */
static bool check_fixed_member(const struct check *c, uint32_t r) {
    const struct place_problem *p = c->p;
    const struct place_memory *m = &p->memory;
    const struct place_request *q = &p->request[r];
    uint32_t offset;
    const uint32_t root = root_of(p, r, &offset);
    if (!(p->request[root].flags & PLACE_FIXED)) return true;
    const uint32_t guard = q->flags & PLACE_EXECUTABLE ? m->fetch_guard_bytes : 0;
    const uint64_t start = (uint64_t)p->request[root].address + offset;
    const uint64_t end = start + place_request_extent(q) + q->tail_bytes + guard;
    const uint32_t a = (uint32_t)MIN(start, UINT32_MAX);
    if (start < m->base || end > m->end) return fail(c, r, PLACE_FIXED_OUTSIDE, a, end, "the SRAM");
    if (start & ((q->align ? q->align : 1) - 1)) return fail(c, r, PLACE_ALIGN_FIXED, a, q->align);
    const bool low = q->memory_class == PLACE_STANDARD || q->flags & PLACE_EXECUTABLE;
    if (low && end > m->interleaved_base)
        return fail(c, r, PLACE_FIXED_OUTSIDE, a, end, "standard memory");
    if (q->memory_class == PLACE_INTERLEAVED && start < m->interleaved_base)
        return fail(c, r, PLACE_FIXED_OUTSIDE, a, end, "interleaved memory");
    const uint32_t window_end = m->window_base + m->window_bytes;
    if (q->flags & PLACE_NO_HOST_WINDOW && m->window_bytes != 0 && start < window_end &&
        end > m->window_base)
        return fail(c, r, PLACE_FIXED_OUTSIDE, a, end, "what is outside the host window");
    return true;
}

/* Lifetime and bytes of the storage of each root, for the fixed ones. */
struct storage {
    uint32_t root, first, last, size, full;
    bool executable, near_code;
};

static uint32_t collect_fixed(const struct check *c, struct storage *ret) {
    const struct place_problem *p = c->p;
    uint32_t n = 0;
    for (uint32_t r = c->base; r < p->first[c->tile + 1]; r++)
        if (p->request[r].flags & PLACE_FIXED)
            ret[n++] = (struct storage){.root = r,
                                        .first = UINT32_MAX,
                                        .near_code = (p->request[r].flags & PLACE_NEAR_CODE) != 0};
    for (uint32_t r = c->base; r < p->first[c->tile + 1] && n != 0; r++) {
        uint32_t offset;
        const struct place_request *q = &p->request[r];
        const uint32_t root = root_of(p, r, &offset);
        for (uint32_t k = 0; k < n; k++) {
            if (ret[k].root != root) continue;
            const uint32_t extent = offset + (uint32_t)place_request_extent(q);
            const uint32_t full = extent + q->tail_bytes;
            ret[k].size = MAX(ret[k].size, q->flags & PLACE_TAIL_SHARED ? extent : full);
            ret[k].full = MAX(ret[k].full, full);
            ret[k].first = MIN(ret[k].first, q->first_step);
            ret[k].last = MAX(ret[k].last, q->last_step);
            ret[k].executable |= (q->flags & PLACE_EXECUTABLE) != 0;
        }
    }
    return n;
}

static uint32_t element_of(const struct place_memory *m, uint32_t address) {
    if (address < m->interleaved_base)
        return m->element_bytes ? (address - m->base) / m->element_bytes : 0;
    return MAX_ELEMENTS + 1 +
           (m->interleaved_element_bytes
                ? (address - m->interleaved_base) / m->interleaved_element_bytes
                : 0);
}

static bool elements_meet(const struct place_memory *m, uint32_t a, uint32_t na, uint32_t b,
                          uint32_t nb) {
    return element_of(m, a) <= element_of(m, b + nb - 1) &&
           element_of(m, b) <= element_of(m, a + na - 1);
}

static bool check_fixed_pairs(const struct check *c, const struct storage *s, uint32_t n) {
    const struct place_problem *p = c->p;
    const uint32_t guard = p->memory.fetch_guard_bytes;
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (s[i].first > s[k].last || s[k].first > s[i].last) continue;
            const uint32_t a = p->request[s[k].root].address, b = p->request[s[i].root].address;
            const char *na = name_of(p, s[k].root), *nb = name_of(p, s[i].root);
            if (a < b + s[i].size && b < a + s[k].size) {
                diag_set(c->error, PLACE_FIXED_OVERLAP, c->tile, na, a, nb, b);
                return false;
            }
            if (s[i].executable == s[k].executable) continue;
            if ((s[i].executable ? s[k] : s[i]).near_code) continue;
            if (!elements_meet(&p->memory, a, s[k].full + (s[k].executable ? guard : 0), b,
                               s[i].full + (s[i].executable ? guard : 0)))
                continue;
            diag_set(c->error, PLACE_FIXED_ELEMENT, c->tile, na, a, nb, b);
            return false;
        }
    }
    return true;
}

static bool check_pair(const struct check *c, uint32_t i) {
    const struct place_problem *p = c->p;
    const uint32_t a = p->pair_a[i], b = p->pair_b[i];
    uint32_t oa, ob;
    const uint32_t ra = root_of(p, a, &oa), rb = root_of(p, b, &ob);
    const uint32_t na = (uint32_t)place_request_extent(&p->request[a]) + p->request[a].tail_bytes;
    const uint32_t nb = (uint32_t)place_request_extent(&p->request[b]) + p->request[b].tail_bytes;
    if (ra == rb && oa < ob + nb && ob < oa + na) {
        diag_set(c->error, PLACE_SEPARATE_SELF, c->tile, name_of(p, a), name_of(p, b));
        return false;
    }
    if (!(p->request[ra].flags & PLACE_FIXED) || !(p->request[rb].flags & PLACE_FIXED)) return true;
    const uint32_t xa = p->request[ra].address + oa, xb = p->request[rb].address + ob;
    if (!elements_meet(&p->memory, xa, na, xb, nb)) return true;
    diag_set(c->error, PLACE_FIXED_ELEMENT, c->tile, name_of(p, a), xa, name_of(p, b), xb);
    return false;
}

/* `pair` runs through the problem's pairs, which are sorted by request and thus by tile. */
static bool check_tile(const struct check *c, uint32_t *pair, struct arena *scratch) {
    const struct place_problem *p = c->p;
    const uint32_t end = p->first[c->tile + 1], n = end - c->base;
    for (uint32_t r = c->base; r < end; r++)
        if (!check_fields(c, r)) return false;
    for (uint32_t r = c->base; r < end; r++)
        if (!check_alias(c, r)) return false;
    uint32_t *align = arena_new_array(scratch, uint32_t, n);
    uint32_t *residue = arena_new_array(scratch, uint32_t, n);
    for (uint32_t k = 0; k < n; k++) align[k] = 1;
    for (uint32_t r = c->base; r < end; r++)
        if (!check_storage(c, r, align, residue) || !check_fixed_member(c, r)) return false;
    struct storage *fixed = arena_new_array(scratch, struct storage, n);
    if (!check_fixed_pairs(c, fixed, collect_fixed(c, fixed))) return false;
    for (; *pair < p->n_pairs && p->pair_a[*pair] < end; ++*pair) {
        if (p->pair_b[*pair] < end) {
            if (!check_pair(c, *pair)) return false;
            continue;
        }
        diag_set(c->error, PLACE_SEPARATE_TILES, *pair, p->pair_a[*pair], p->pair_b[*pair]);
        return false;
    }
    return true;
}

static const char *shape_fault(const struct place_problem *p) {
    if (p->n_tiles > TARGET_N_TILES) return "more tiles than the machine has";
    if (p->first[0] != 0 || p->first[p->n_tiles] != p->n_requests)
        return "the tile ranges are damaged";
    for (uint32_t t = 0; t < p->n_tiles; t++)
        if (p->first[t] > p->first[t + 1]) return "the tile ranges are damaged";
    return NULL;
}

static bool check_pair_order(const struct place_problem *p, GError **error) {
    for (uint32_t i = 0; i < p->n_pairs; i++) {
        const uint32_t a = p->pair_a[i], b = p->pair_b[i];
        bool ok = a <= b && b < p->n_requests;
        if (i != 0) ok &= p->pair_a[i - 1] < a || (p->pair_a[i - 1] == a && p->pair_b[i - 1] < b);
        if (ok) continue;
        diag_set(error, PLACE_SEPARATE_TILES, i, a, b);
        return false;
    }
    return true;
}

bool place_problem_check(const struct place_problem *p, GError **error) {
    const char *fault = memory_fault(&p->memory);
    if (fault != NULL) {
        diag_set(error, PLACE_MEMORY, fault);
        return false;
    }
    fault = shape_fault(p);
    if (fault != NULL) {
        diag_set(error, PLACE_SHAPE, fault);
        return false;
    }
    if (!check_pair_order(p, error)) return false;
    struct arena *scratch = arena_new();
    uint32_t pair = 0;
    bool ok = true;
    for (uint32_t t = 0; t < p->n_tiles && ok; t++) {
        const struct check c = {p, t, p->first[t], error};
        ok = check_tile(&c, &pair, scratch);
        arena_reset(scratch);
    }
    arena_free(scratch);
    return ok;
}
