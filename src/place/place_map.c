/* The independent checker. It knows only the requests and the addresses, shares no code with the
 * solver, and follows the meaning of the constraints in place.h literally: bytes and elements are
 * compared request by request. Cost: quadratic in the live requests of a tile. */
#include "place/place.h"

struct view {
    const struct place_problem *p;
    const uint32_t *address;
    uint32_t tile, begin, end;
    uint32_t *root, *first, *last; /* [end - begin]: storage root and lifetime of the storage */
    bool *executable;              /* of the storage, at its root */
    char *message;
};

static const char *request_name(const struct view *v, uint32_t r) {
    return v->p->name[v->p->request[r].name];
}

static bool violation(struct view *v, uint32_t r, const char *what) {
    v->message = g_strdup_printf("tile %u: '%s' at 0x%x %s", v->tile, request_name(v, r),
                                 v->address[r], what);
    return false;
}
static bool violation_pair(struct view *v, uint32_t r, uint32_t s, const char *what) {
    v->message =
        g_strdup_printf("tile %u: '%s' at 0x%x and '%s' at 0x%x %s", v->tile, request_name(v, r),
                        v->address[r], request_name(v, s), v->address[s], what);
    return false;
}

static uint64_t end_of_payload(const struct view *v, uint32_t r) {
    const struct place_request *q = &v->p->request[r];
    const uint64_t blocks = q->n_blocks > 1 ? q->n_blocks : 1;
    return v->address[r] + (blocks - 1) * place_request_stride(q) + q->bytes;
}
static uint64_t end_of_tail(const struct view *v, uint32_t r) {
    return end_of_payload(v, r) + v->p->request[r].tail_bytes;
}
/* End of the bytes that are the request's own. */
static uint64_t end_of_own(const struct view *v, uint32_t r) {
    return v->p->request[r].flags & PLACE_TAIL_SHARED ? end_of_payload(v, r) : end_of_tail(v, r);
}

static uint64_t element_number(const struct place_memory *m, uint64_t a) {
    if (a >= m->interleaved_base) {
        const uint64_t off = a - m->interleaved_base;
        return (UINT64_C(1) << 32) +
               (m->interleaved_element_bytes ? off / m->interleaved_element_bytes : 0);
    }
    return m->element_bytes ? (a - m->base) / m->element_bytes : 0;
}
static bool share_element(const struct place_memory *m, uint64_t a, uint64_t a_end, uint64_t b,
                          uint64_t b_end) {
    return element_number(m, a) <= element_number(m, b_end - 1) &&
           element_number(m, b) <= element_number(m, a_end - 1);
}

static void find_storages(struct view *v) {
    for (uint32_t r = v->begin; r < v->end; r++) {
        uint32_t root = r;
        while (v->p->request[root].flags & PLACE_ALIAS) root = v->p->request[root].alias;
        v->root[r - v->begin] = root - v->begin;
        v->first[r - v->begin] = UINT32_MAX;
        v->last[r - v->begin] = 0;
        v->executable[r - v->begin] = false;
    }
    for (uint32_t r = v->begin; r < v->end; r++) {
        const uint32_t k = v->root[r - v->begin];
        v->first[k] = MIN(v->first[k], v->p->request[r].first_step);
        v->last[k] = MAX(v->last[k], v->p->request[r].last_step);
        v->executable[k] |= (v->p->request[r].flags & PLACE_EXECUTABLE) != 0;
    }
}

static bool check_range(struct view *v, uint32_t r) {
    const struct place_memory *m = &v->p->memory;
    const struct place_request *q = &v->p->request[r];
    const uint64_t a = v->address[r], end = end_of_tail(v, r);
    const bool fixed = v->p->request[v->begin + v->root[r - v->begin]].flags & PLACE_FIXED;
    bool usable = fixed && a >= m->base && end <= m->end;
    for (uint32_t i = 0; i < m->n_ranges; i++)
        usable |= a >= m->range_base[i] && end <= m->range_end[i];
    if (!usable) return violation(v, r, "leaves the usable memory");
    if (q->memory_class == PLACE_STANDARD && end > m->interleaved_base)
        return violation(v, r, "is not in standard memory");
    if (q->memory_class == PLACE_INTERLEAVED && a < m->interleaved_base)
        return violation(v, r, "is not in interleaved memory");
    if (q->flags & PLACE_NO_HOST_WINDOW && m->window_bytes != 0 && end > m->window_base &&
        a < (uint64_t)m->window_base + m->window_bytes)
        return violation(v, r, "touches the host window");
    if (q->flags & PLACE_EXECUTABLE && end + m->fetch_guard_bytes > m->interleaved_base)
        return violation(v, r, "has no room for its fetch guard below interleaved memory");
    return true;
}

static bool check_single(struct view *v, uint32_t r) {
    const struct place_request *q = &v->p->request[r];
    const uint32_t a = v->address[r];
    if (a == PLACE_NO_ADDRESS) {
        v->message = g_strdup_printf("tile %u: '%s' has no address", v->tile, request_name(v, r));
        return false;
    }
    if (q->align != 0 && a % q->align != 0) return violation(v, r, "is not aligned");
    if (q->flags & PLACE_FIXED && a != q->address)
        return violation(v, r, "is not at its fixed address");
    if (q->flags & PLACE_ALIAS && a != v->address[q->alias] + q->displacement)
        return violation_pair(v, r, q->alias, "are not the displacement apart");
    return check_range(v, r);
}

static bool check_two(struct view *v, uint32_t r, uint32_t s) {
    const uint32_t x = v->root[r - v->begin], y = v->root[s - v->begin];
    if (x == y || v->first[x] > v->last[y] || v->first[y] > v->last[x]) return true;
    if (v->address[r] < end_of_own(v, s) && v->address[s] < end_of_own(v, r))
        return violation_pair(v, r, s, "share bytes while both are live");
    if (v->executable[x] == v->executable[y]) return true;
    const uint32_t data = v->executable[x] ? y : x;
    if (v->p->request[v->begin + data].flags & PLACE_NEAR_CODE) return true;
    const struct place_memory *m = &v->p->memory;
    const uint32_t gr = v->executable[x] ? m->fetch_guard_bytes : 0;
    const uint32_t gs = v->executable[y] ? m->fetch_guard_bytes : 0;
    if (share_element(m, v->address[r], end_of_tail(v, r) + gr, v->address[s],
                      end_of_tail(v, s) + gs))
        return violation_pair(v, r, s, "share an element: code and data");
    return true;
}

static bool check_tile_map(struct view *v) {
    for (uint32_t r = v->begin; r < v->end; r++)
        if (!check_single(v, r)) return false;
    for (uint32_t r = v->begin; r < v->end; r++)
        for (uint32_t s = v->begin; s < r; s++)
            if (!check_two(v, r, s)) return false;
    return true;
}

static bool check_pairs(struct view *v, uint32_t *pair) {
    const struct place_problem *p = v->p;
    for (; *pair < p->n_pairs && p->pair_a[*pair] < v->end; ++*pair) {
        const uint32_t a = p->pair_a[*pair], b = p->pair_b[*pair];
        if (v->address[a] == PLACE_NO_ADDRESS) continue;
        if (share_element(&p->memory, v->address[a], end_of_tail(v, a), v->address[b],
                          end_of_tail(v, b)))
            return violation_pair(v, a, b, "share an element and must not");
    }
    return true;
}

static bool has_addresses(const struct view *v) {
    for (uint32_t r = v->begin; r < v->end; r++)
        if (v->address[r] != PLACE_NO_ADDRESS) return true;
    return false;
}

bool place_map_check(const struct place_problem *p, const uint32_t *address, char **ret_message) {
    uint32_t most = 0, pair = 0;
    for (uint32_t t = 0; t < p->n_tiles; t++) most = MAX(most, p->first[t + 1] - p->first[t]);
    struct view v = {.p = p,
                     .address = address,
                     .root = g_new(uint32_t, most),
                     .first = g_new(uint32_t, most),
                     .last = g_new(uint32_t, most),
                     .executable = g_new(bool, most)};
    bool ok = true;
    for (uint32_t t = 0; t < p->n_tiles && ok; t++) {
        v.tile = t;
        v.begin = p->first[t];
        v.end = p->first[t + 1];
        if (has_addresses(&v)) {
            find_storages(&v);
            ok = check_tile_map(&v);
        }
        ok = ok && check_pairs(&v, &pair);
    }
    g_free(v.root);
    g_free(v.first);
    g_free(v.last);
    g_free(v.executable);
    if (!ok && ret_message != NULL) *ret_message = v.message;
    else g_free(v.message);
    return ok;
}
