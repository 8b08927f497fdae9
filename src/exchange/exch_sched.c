/* From a problem to a result: chooses widths, tries orders, keeps the best. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>
#include <stdio.h>

static const char *const priority_names[] = {
    "auto",
#define EXCH_PRIORITY(name, text) text,
#include "exchange/exch_priority.def"
#undef EXCH_PRIORITY
};

const char *exch_priority_name(enum exch_priority priority) { return priority_names[priority]; }

enum exch_priority exch_priority_find(const char *name) {
    uint32_t i = 0;
    while (i < EXCH_N_PRIORITIES && strcmp(name, priority_names[i]) != 0) i++;
    return (enum exch_priority)i;
}

static uint8_t *choose_widths(const struct exch_problem *p, enum exch_width width) {
    uint8_t *paired = g_new0(uint8_t, p->n_transfers + 1);
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        const uint32_t only = p->width != NULL ? p->width[x] : EXCH_WIDTH_ANY;
        if (only == EXCH_WIDTH_PAIRED) paired[x] = 1;
        else if (only == EXCH_WIDTH_ANY && width != EXCH_WIDTH_ORDINARY) paired[x] = exch_pairable(p, x);
    }
    return paired;
}

static uint32_t *tile_work(const struct exch_msgs *m) {
    uint32_t *w = g_new0(uint32_t, 2 * TARGET_N_TILES);
    for (uint32_t i = 0; i < m->n; i++) {
        w[m->src[i]] += m->items[i];
        if (m->paired[i]) w[m->src[i] ^ 1] += m->items[i];
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            w[TARGET_N_TILES + m->rec_tile[j]] += m->items[i];
    }
    return w;
}

static int compare_key(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Most work at any endpoint first, then longest, then by number. */
static void static_order(const struct exch_msgs *m, uint32_t *order) {
    uint32_t *work = tile_work(m);
    uint64_t *key = g_new(uint64_t, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t most = work[m->src[i]];
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            most = MAX(most, work[TARGET_N_TILES + m->rec_tile[j]]);
        key[i] = (uint64_t)(UINT32_MAX - most) << 32 | i;
    }
    qsort(key, m->n, sizeof *key, compare_key);
    for (uint32_t i = 0; i < m->n; i++) order[i] = (uint32_t)key[i];
    g_free(work);
    g_free(key);
}

uint32_t exch_endpoint_bound(const struct exch_msgs *m) {
    uint32_t *work = tile_work(m), most = 0;
    for (uint32_t t = 0; t < 2 * TARGET_N_TILES; t++) most = MAX(most, work[t]);
    g_free(work);
    return most;
}

struct exch_result *exch_schedule(const struct exch_problem *p, const struct exch_options *o,
                                  GError **error) {
    uint8_t *paired = choose_widths(p, o->width);
    struct exch_msgs *m = exch_msgs_new(p, paired, NULL);
    struct arena *a = arena_new();
    struct exch_sched *s = exch_sched_new(a, m);
    uint32_t *order = g_new(uint32_t, m->n + 1);
    struct exch_dense_options dense = {8, 6, 0.01f, true};
    if (getenv("U")) sscanf(getenv("U"), "%u,%u,%f", &dense.look, &dense.cap, &dense.weight);
    const bool is_dense = exch_dense_applies(m);
    if (is_dense) {
        exch_sched_dense(m, &dense, o->relaxed, s);
    } else {
        static_order(m, order);
        exch_sched_serial(m, order, o->relaxed, s);
    }
    struct exch_result *r = exch_result_new(m, s, error);
    if (r != NULL) {
        exch_bounds(p, &r->bounds);
        r->bounds.endpoint = exch_endpoint_bound(m);
        r->priority = is_dense ? "finish" : "static";
        r->relaxed = o->relaxed;
    }
    g_free(order);
    g_free(paired);
    arena_free(a);
    exch_msgs_free(m);
    return r;
}
