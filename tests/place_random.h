/* Random placement problems with every kind of constraint, for several test programs. Problem
 * `seed` is the same everywhere. Problems that place_problem_check refuses are left to the caller.
 */
#ifndef PLACE_RANDOM_H
#define PLACE_RANDOM_H

#include "place/place.h"

struct random_source {
    uint64_t seed, n;
};
static inline uint32_t random_below(struct random_source *r, uint32_t n) {
    return (uint32_t)(rand_u64(r->seed, 77, r->n++) % n);
}
static inline bool random_chance(struct random_source *r, uint32_t percent) {
    return random_below(r, 100) < percent;
}

/* A memory in miniature: 8-byte elements below the interleaved part, 16-byte elements in it. */
static inline struct place_memory random_memory(struct random_source *r) {
    struct place_memory m = {.base = 16,
                             .end = 16 + 48,
                             .interleaved_base = 16 + 24,
                             .element_bytes = 8,
                             .interleaved_element_bytes = 16,
                             .window_base = 24,
                             .window_bytes = 8,
                             .fetch_guard_bytes = 2,
                             .n_ranges = 1,
                             .range_base = {17},
                             .range_end = {62}};
    if (random_chance(r, 40)) {
        m.n_ranges = 2;
        m.range_end[0] = 32;
        m.range_base[1] = 34;
        m.range_end[1] = 62;
    }
    if (random_chance(r, 20)) m.element_bytes = m.interleaved_element_bytes = 0;
    if (random_chance(r, 20)) m.window_bytes = 0;
    return m;
}

static inline struct place_request random_request(struct random_source *r, uint32_t scale,
                                                  uint32_t n_steps) {
    const uint32_t a = random_below(r, n_steps), b = random_below(r, n_steps);
    struct place_request q = {
        .bytes = 1 + random_below(r, 9 * scale), .first_step = MIN(a, b), .last_step = MAX(a, b)};
    if (random_chance(r, 10)) q.last_step = PLACE_STEP_END;
    if (random_chance(r, 25)) q.tail_bytes = 1 + random_below(r, 4 * scale);
    if (random_chance(r, 50)) q.align = 1U << random_below(r, 4);
    if (random_chance(r, 15)) q.memory_class = PLACE_STANDARD;
    else if (random_chance(r, 20)) q.memory_class = PLACE_INTERLEAVED;
    if (random_chance(r, 20)) q.flags |= PLACE_NO_HOST_WINDOW;
    if (random_chance(r, 40)) q.flags |= PLACE_TAIL_SHARED;
    if (random_chance(r, 15)) q.flags |= PLACE_NEAR_CODE;
    if (q.memory_class != PLACE_INTERLEAVED && random_chance(r, 12)) q.flags |= PLACE_EXECUTABLE;
    if (random_chance(r, 15)) {
        q.n_blocks = 2 + random_below(r, 2);
        q.bytes = 1 + q.bytes / 3;
        if (random_chance(r, 50)) q.flags |= PLACE_BLOCK_TAILS;
        if (random_chance(r, 30)) q.stride = place_request_stride(&q) + (q.align ? q.align : 1);
    }
    return q;
}

/* n storages on one tile, some with aliases, some fixed, some separated. scale 1 gives the
 * miniature memory; larger scales the machine's memory with sizes of 512 x scale. */
static inline struct place_problem *random_problem(uint64_t seed, uint32_t n, uint32_t scale) {
    struct random_source r = {seed, 0};
    struct place_memory m = scale == 1 ? random_memory(&r) : place_memory_c600(seed & 1);
    struct place_builder *b = place_builder_new(1, &m);
    const uint32_t n_steps = 2 + random_below(&r, 1 + n / 2);
    uint32_t n_handles = 0;
    uint32_t *handle = g_new(uint32_t, 4 * n + 4);
    for (uint32_t i = 0; i < n; i++) {
        struct place_request q = random_request(&r, scale, n_steps);
        char name[32];
        g_snprintf(name, sizeof name, "v%u", i);
        q.name = place_builder_name(b, name);
        if (random_chance(&r, 8) && scale == 1) {
            const uint32_t align = q.align ? q.align : 1;
            q.flags |= PLACE_FIXED;
            q.address = align_up_u32(m.base + random_below(&r, m.end - m.base), align);
        }
        const uint32_t h = handle[n_handles++] = place_builder_add(b, 0, &q);
        const uint32_t extent = (uint32_t)place_request_extent(&q);
        for (uint32_t k = 0; k < 2 && random_chance(&r, 20); k++) {
            struct place_request alias = {.flags = PLACE_ALIAS, .alias = h, .name = q.name};
            alias.displacement = random_below(&r, extent);
            alias.bytes = 1 + random_below(&r, extent - alias.displacement);
            alias.first_step = q.first_step;
            alias.last_step = alias.first_step + random_below(&r, 2);
            if (random_chance(&r, 30)) alias.align = 1U << random_below(&r, 3);
            if (random_chance(&r, 20)) alias.tail_bytes = 1 + random_below(&r, 3);
            handle[n_handles++] = place_builder_add(b, 0, &alias);
        }
    }
    const uint32_t n_pairs = random_chance(&r, 60) ? random_below(&r, 1 + n / 2) : 0;
    for (uint32_t k = 0; k < n_pairs; k++)
        place_builder_separate(b, handle[random_below(&r, n_handles)],
                               handle[random_below(&r, n_handles)]);
    g_free(handle);
    return place_builder_finish(b, NULL);
}

#endif
