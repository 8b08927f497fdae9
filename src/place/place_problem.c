/* Problems: the builder (collects requests, sorts them by tile with one counting sort), the
 * machine's memory, lifetimes across repeats. */
#include "place/place.h"

#include <stdlib.h>
#include <string.h>

struct place_memory place_memory_c600(bool window_usable) {
    const uint32_t window_end = TARGET_HOST_WINDOW_BASE + TARGET_HOST_WINDOW_BYTES;
    struct place_memory m = {
        .base = TARGET_SRAM_BASE,
        .end = TARGET_SRAM_END,
        .interleaved_base = TARGET_REGION1_BASE,
        .element_bytes = TARGET_ELEMENT_BYTES,
        .interleaved_element_bytes = TARGET_ELEMENT_PAIR_BYTES,
        .window_base = TARGET_HOST_WINDOW_BASE,
        .window_bytes = TARGET_HOST_WINDOW_BYTES,
        .fetch_guard_bytes = TARGET_FETCH_AHEAD_BYTES,
        .n_ranges = 2,
        .range_base = {TARGET_CODE_BASE, TARGET_DATA_BASE},
        .range_end = {window_usable ? TARGET_COMPLETION_WORD : TARGET_HOST_WINDOW_BASE,
                      TARGET_SRAM_LOAD_END},
    };
    BUG_ON(window_end != TARGET_COMPLETION_WORD);
    return m;
}

struct place_builder {
    struct place_memory memory;
    uint32_t n_tiles;
    GArray *request, *tile, *pair; /* struct place_request; u32; pairs of u32 */
    GHashTable *name_number;
    GPtrArray *name;
};

struct place_builder *place_builder_new(uint32_t n_tiles, const struct place_memory *memory) {
    struct place_builder *b = g_new0(struct place_builder, 1);
    b->memory = *memory;
    b->n_tiles = n_tiles;
    b->request = g_array_new(FALSE, FALSE, sizeof(struct place_request));
    b->tile = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    b->pair = g_array_new(FALSE, FALSE, 2 * sizeof(uint32_t));
    b->name_number = g_hash_table_new(g_str_hash, g_str_equal);
    b->name = g_ptr_array_new_with_free_func(g_free);
    return b;
}

uint32_t place_builder_name(struct place_builder *b, const char *name) {
    void *number;
    if (g_hash_table_lookup_extended(b->name_number, name, NULL, &number))
        return GPOINTER_TO_UINT(number);
    char *copy = g_strdup(name);
    const uint32_t n = b->name->len;
    g_ptr_array_add(b->name, copy);
    g_hash_table_insert(b->name_number, copy, GUINT_TO_POINTER(n));
    return n;
}

uint32_t place_builder_add(struct place_builder *b, uint32_t tile,
                           const struct place_request *request) {
    BUG_ON(tile >= b->n_tiles);
    g_array_append_val(b->tile, tile);
    g_array_append_vals(b->request, request, 1);
    return b->request->len - 1;
}

void place_builder_separate(struct place_builder *b, uint32_t handle_a, uint32_t handle_b) {
    BUG_ON(handle_a >= b->request->len || handle_b >= b->request->len);
    const uint32_t pair[2] = {handle_a, handle_b};
    g_array_append_vals(b->pair, pair, 1);
}

static int compare_pairs(const void *va, const void *vb) {
    const uint32_t *a = va, *b = vb;
    if (a[0] != b[0]) return a[0] < b[0] ? -1 : 1;
    return a[1] < b[1] ? -1 : a[1] > b[1];
}

/* Renumbers, orders and removes duplicates. */
static void finish_pairs(const struct place_builder *b, const uint32_t *number,
                         struct place_problem *p) {
    uint32_t(*pair)[2] = (void *)b->pair->data;
    const uint32_t n = b->pair->len;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t x = number[pair[i][0]], y = number[pair[i][1]];
        pair[i][0] = MIN(x, y);
        pair[i][1] = MAX(x, y);
    }
    if (n != 0) qsort(pair, n, sizeof pair[0], compare_pairs);
    p->pair_a = arena_new_array(p->arena, uint32_t, n);
    p->pair_b = arena_new_array(p->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        if (i != 0 && compare_pairs(pair[i - 1], pair[i]) == 0) continue;
        p->pair_a[p->n_pairs] = pair[i][0];
        p->pair_b[p->n_pairs++] = pair[i][1];
    }
}

static void finish_requests(const struct place_builder *b, uint32_t *number,
                            struct place_problem *p) {
    const uint32_t *tile = (const uint32_t *)(void *)b->tile->data;
    const struct place_request *request = (const struct place_request *)(void *)b->request->data;
    p->first = arena_new_array(p->arena, uint32_t, p->n_tiles + 1);
    p->request = arena_new_array(p->arena, struct place_request, p->n_requests);
    for (uint32_t i = 0; i < p->n_requests; i++) p->first[tile[i] + 1]++;
    for (uint32_t t = 0; t < p->n_tiles; t++) p->first[t + 1] += p->first[t];
    uint32_t *next = g_memdup2(p->first, (p->n_tiles + 1) * sizeof *next);
    for (uint32_t i = 0; i < p->n_requests; i++) number[i] = next[tile[i]]++;
    g_free(next);
    for (uint32_t i = 0; i < p->n_requests; i++) {
        struct place_request *r = &p->request[number[i]];
        *r = request[i];
        if (r->flags & PLACE_ALIAS && r->alias < p->n_requests) r->alias = number[r->alias];
    }
}

struct place_problem *place_builder_finish(struct place_builder *b, uint32_t **ret_number) {
    struct arena *arena = arena_new();
    struct place_problem *p = arena_new_array(arena, struct place_problem, 1);
    p->arena = arena;
    p->memory = b->memory;
    p->n_tiles = b->n_tiles;
    p->n_requests = b->request->len;
    p->n_names = b->name->len;
    uint32_t *number = g_new(uint32_t, p->n_requests);
    finish_requests(b, number, p);
    finish_pairs(b, number, p);
    p->name = arena_new_array(arena, char *, p->n_names);
    for (uint32_t i = 0; i < p->n_names; i++) p->name[i] = arena_strdup(arena, b->name->pdata[i]);
    if (ret_number != NULL) *ret_number = number;
    else g_free(number);
    g_array_free(b->request, TRUE);
    g_array_free(b->tile, TRUE);
    g_array_free(b->pair, TRUE);
    g_hash_table_destroy(b->name_number);
    g_ptr_array_free(b->name, TRUE);
    g_free(b);
    return p;
}

void place_problem_free(struct place_problem *p) {
    if (p != NULL) arena_free(p->arena);
}

uint32_t place_request_stride(const struct place_request *r) {
    if (r->stride != 0) return r->stride;
    const uint64_t block = (uint64_t)r->bytes + (r->flags & PLACE_BLOCK_TAILS ? r->tail_bytes : 0);
    return (uint32_t)align_up_u64(block, r->align ? r->align : 1);
}

uint64_t place_request_extent(const struct place_request *r) {
    if (r->n_blocks <= 1) return r->bytes;
    return (uint64_t)(r->n_blocks - 1) * place_request_stride(r) + r->bytes;
}

uint32_t place_request_tile(const struct place_problem *p, uint32_t request) {
    uint32_t lo = 0, hi = p->n_tiles;
    while (hi - lo > 1) {
        const uint32_t mid = lo + (hi - lo) / 2;
        if (p->first[mid] <= request) lo = mid;
        else hi = mid;
    }
    return lo;
}

void place_steps_extend(const struct place_steps *s, bool carried, uint32_t *first_step,
                        uint32_t *last_step) {
    for (uint32_t i = 0; i < s->n_repeats; i++) {
        const uint32_t first = s->repeat_first[i], last = s->repeat_last[i];
        if (*first_step > last || *last_step < first) continue;
        if (!carried && *first_step >= first && *last_step <= last) continue;
        *first_step = MIN(*first_step, first);
        *last_step = MAX(*last_step, last);
    }
}
