/* From a problem to a result: chooses widths and pieces, tries orders, repairs, keeps the best.
 *
 * An attempt is one choice of widths and pieces, one way to make an order, and, where the messages
 * fall apart into small components, repair. Attempts go from the most promising to the exotic while
 * the budget of the effort lasts; it counts placed endpoints, so the same problem gives the same
 * result anywhere. Removing a constraint is not monotone for greedy orders: everything is compared
 * by horizon, then by the bytes of the largest row, and an attempt whose rows are too long loses
 * against any that fit. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

static const char *const priority_names[] = {
    "auto",
#define EXCH_PRIORITY(name, text) text,
#include "exchange/exch_priority.def"
#undef EXCH_PRIORITY
};

const char *exch_priority_name(enum exch_priority priority) {
    return priority_names[priority];
}

enum exch_priority exch_priority_find(const char *name) {
    uint32_t i = 0;
    while (i < EXCH_N_PRIORITIES && strcmp(name, priority_names[i]) != 0) i++;
    return (enum exch_priority)i;
}

/* --- Widths and static orders --- */

/* Pairable transfers that may be paired; returns how many. */
static uint32_t choose_widths(const struct exch_problem *p, enum exch_width width,
                              uint8_t *paired) {
    uint32_t n = 0;
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        const uint32_t only = p->width != NULL ? p->width[x] : EXCH_WIDTH_ANY;
        paired[x] = only == EXCH_WIDTH_PAIRED ||
                    (only == EXCH_WIDTH_ANY && width != EXCH_WIDTH_ORDINARY && exch_pairable(p, x));
        n += paired[x];
    }
    return n;
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

uint32_t exch_endpoint_bound(const struct exch_msgs *m) {
    uint32_t *work = tile_work(m), most = 0;
    for (uint32_t t = 0; t < 2 * TARGET_N_TILES; t++) most = MAX(most, work[t]);
    g_free(work);
    return most;
}

static void sort_keys(uint64_t *key, uint32_t n, uint32_t *order) {
    qsort(key, n, sizeof *key, exch_key_compare);
    for (uint32_t i = 0; i < n; i++) order[i] = (uint32_t)key[i];
}

/* Most work at any endpoint first; combined: sends and receives of a tile counted together. */
static void static_order(const struct exch_msgs *m, bool combined, uint32_t *order) {
    uint32_t *work = tile_work(m);
    for (uint32_t t = 0; t < TARGET_N_TILES && combined; t++) {
        work[t] += work[TARGET_N_TILES + t];
        work[TARGET_N_TILES + t] = work[t];
    }
    uint64_t *key = g_new(uint64_t, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t most = work[m->src[i]];
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            most = MAX(most, work[TARGET_N_TILES + m->rec_tile[j]]);
        key[i] = (uint64_t)(UINT32_MAX - most) << 32 | i;
    }
    sort_keys(key, m->n, order);
    g_free(work);
    g_free(key);
}

/* Waves in buffer order: each receiver's arrivals by address, wave by wave of `wave` words. */
static void stream_order(const struct exch_msgs *m, uint32_t wave, uint32_t *order) {
    uint64_t *key = g_new(uint64_t, m->n + 1);
    uint32_t base[TARGET_N_TILES];
    memset(base, 0xff, sizeof base);
    for (uint32_t i = 0; i < m->n; i++)
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            base[m->rec_tile[j]] = MIN(base[m->rec_tile[j]], exch_rec_address(m, i, j));
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t last = 0;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            last = MAX(last, exch_rec_address(m, i, j) - base[m->rec_tile[j]]);
        key[i] = (uint64_t)(last / 4 / wave) << 32 | i;
    }
    sort_keys(key, m->n, order);
    g_free(key);
}

static void round_order(const struct exch_msgs *m, uint32_t *order) {
    uint32_t *round = g_new(uint32_t, m->n + 1);
    exch_rounds(m, round);
    uint64_t *key = g_new(uint64_t, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++) key[i] = (uint64_t)round[i] << 32 | i;
    sort_keys(key, m->n, order);
    g_free(round);
    g_free(key);
}

/* --- The search --- */

struct search {
    const struct exch_problem *p;
    const struct exch_options *o;
    struct exch_bounds bounds;
    uint64_t budget, used; /* units of about 0.1 us: an endpoint looked at in the time lines */
    uint8_t *paired;
    uint16_t *pieces;
    struct exch_result *best;
    /* all results of a Pareto search, or NULL */
    GPtrArray *all;
    GError *error;
};

/* The messages of one choice of widths and pieces, and the best schedule of them so far. */
struct attempt {
    struct search *k;
    struct exch_msgs *m;
    struct arena *arena;
    struct exch_sched *s, *best;
    bool any, repairable, dense;
    const char *name;
    enum exch_width width;
};

static bool better(const struct search *k, const struct exch_result *a,
                   const struct exch_result *b) {
    const uint32_t limit = k->o->max_row_bytes;
    if (limit != 0 && (a->row_bytes_max <= limit) != (b->row_bytes_max <= limit))
        return a->row_bytes_max <= limit;
    if (a->horizon != b->horizon) return a->horizon < b->horizon;
    return a->row_bytes_max < b->row_bytes_max;
}

/* Makes rows of a schedule if it may win. */
static void offer(struct attempt *a, const struct exch_sched *s, const char *name) {
    struct search *k = a->k;
    const bool by_bytes = k->o->max_row_bytes != 0 || k->all != NULL;
    if (k->best != NULL && !by_bytes && s->horizon > k->best->horizon) return;
    GError *error = NULL;
    struct exch_result *r = exch_result_new(a->m, s, &error);
    if (r == NULL) {
        if (k->error == NULL) k->error = error;
        else g_error_free(error);
        return;
    }
    r->bounds = k->bounds;
    r->bounds.endpoint = exch_endpoint_bound(a->m);
    r->priority = name;
    r->width = a->width;
    if (k->all != NULL) {
        g_ptr_array_add(k->all, r);
        if (k->best == NULL || better(k, r, k->best)) k->best = r;
    } else if (k->best == NULL || better(k, r, k->best)) {
        exch_result_free(k->best);
        k->best = r;
    } else {
        exch_result_free(r);
    }
}

/* a->s holds a new schedule: offers it and keeps the attempt's best for repair. */
static void made(struct attempt *a, const char *name) {
    a->k->used += a->s->evaluations;
    a->s->evaluations = 0;
    offer(a, a->s, name);
    if (!a->any || a->s->horizon < a->best->horizon) {
        struct exch_sched *t = a->best;
        a->best = a->s;
        a->s = t;
        a->any = true;
        a->name = name;
    }
}

static bool finished(const struct search *k) {
    return k->best != NULL && k->best->horizon <= k->bounds.any_width && k->all == NULL &&
           k->o->max_row_bytes == 0;
}
static bool time_left(const struct search *k, uint64_t cost) {
    return k->used + cost <= k->budget && !finished(k);
}

static void serial(struct attempt *a, const uint32_t *order, const char *name) {
    exch_sched_serial(a->m, order, a->k->o->relaxed, a->s);
    made(a, name);
}

static void try_static(struct attempt *a) {
    uint32_t *order = g_new(uint32_t, a->m->n + 1);
    static_order(a->m, false, order);
    serial(a, order, "static");
    g_free(order);
}

/* Found by trials on seed 1 of the kinds of exchange 16. Phases of one length prefer the first two,
 * mixed ones the third, which then goes first. */
static const struct exch_dense_options dense_sets[] = {
    {8, 5, 0.006f, true, 0.03f, 1000, 0.05f, 0, false, NULL},
    {8, 5, 0.006f, true, 0.03f, 1000, 0.05f, 0, true, NULL},
    {16, 4, 0.003f, true, 0, 0, 0, 0, false, NULL},
    {8, 5, 0.003f, true, 0.03f, 1000, 0.05f, 0, false, NULL},
    {16, 8, 0.01f, true, 0.1f, 500, 0.1f, 0, false, NULL},
    {2, 4, 0.01f, true, 0, 0, 0.02f, 0, false, NULL},
    {16, 5, 0.01f, true, 0.05f, 800, 0.1f, 0, false, NULL},
    {24, 7, 0.02f, true, 0.1f, 500, 0.2f, 0, false, NULL},
    {8, 6, 0.01f, true, 0, 0, 0, 0, false, NULL},
    {16, 6, 0.03f, true, 0, 0, 0, 0, false, NULL},
    {4, 6, 0.01f, true, 0, 0, 0, 0, false, NULL},
    {32, 8, 0.05f, true, 0, 0, 0, 0, false, NULL},
    {12, 4, 0.02f, true, 0, 0, 0, 0, false, NULL},
};
/* Small rows: messages that continue their receiver's buffer and leave no gap are worth waiting for;
 * from short phases to short rows. */
static const struct exch_dense_options compact_sets[] = {
    {48, 3, 0.06f, true, 0.05f, 1000, 0.1f, 0, true,
     &(const struct exch_dense_small){15, 25, 20, 10, 1.5f, 0.02f}},
    {32, 2, 0.06f, true, 0.05f, 1000, 0.1f, 0, true,
     &(const struct exch_dense_small){30, 45, 40, 20, 1.5f, 0.015f}},
    {32, 2, 0.06f, true, 0.05f, 1000, 0.1f, 0, true,
     &(const struct exch_dense_small){50, 60, 50, 25, 1.5f, 0.015f}},
};
enum { DENSE_FOR_MIXED = 2 };

static bool one_length(const struct exch_msgs *m) {
    for (uint32_t i = 1; i < m->n; i++)
        if (m->items[i] != m->items[0]) return false;
    return true;
}

/* A set for another throw of the end of a schedule. */
static struct exch_dense_options throw_set(uint64_t *random, int32_t keep_before) {
    uint32_t r[6];
    for (uint32_t i = 0; i < 6; i++) {
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        r[i] = (uint32_t)(*random >> 40);
    }
    static const float weights[] = {0.003f, 0.006f, 0.01f, 0.02f, 0.03f, 0.05f};
    static const float tails[] = {0, 0.03f, 0.1f, 0.2f};
    return (struct exch_dense_options){.look = 4 + r[0] % 21,
                                       .cap = 4 + r[1] % 6,
                                       .weight = weights[r[2] % 6],
                                       .projected = true,
                                       .tail_weight = tails[r[3] % 4],
                                       .tail = 200 + r[4] % 600,
                                       .lead = 0.05f * (float)(r[5] % 5),
                                       .keep_before = keep_before};
}

/* The end decides: what is sent in the last part is scheduled again and again with other sets, in
 * parts that get shorter; the best is kept. */
static void try_ends(struct attempt *a) {
    static const uint32_t parts[] = {6, 10, 16, 26, 40}; /* the last 1/n of the words per tile */
    const uint32_t words = exch_endpoint_bound(a->m), first = a->best->horizon;
    uint64_t random = a->k->o->seed ^ UINT64_C(0x2545f4914f6cdd1d);
    const uint64_t share = (a->k->budget - MIN(a->k->budget, a->k->used)) / 2 / ARRAY_LEN(parts);
    for (uint32_t p = 0; p < ARRAY_LEN(parts); p++) {
        const uint64_t cost = 16 * (uint64_t)a->m->n / parts[p] + a->m->n + 500000;
        const uint32_t length = MAX(words / parts[p], 250);
        const uint32_t n = MIN((uint32_t)(share / cost), 24);
        for (uint32_t i = 0; i < n && a->best->horizon > length + 300; i++) {
            const struct exch_dense_options o =
                throw_set(&random, (int32_t)(a->best->horizon - length - 150));
            memcpy(a->s->slot, a->best->slot, a->m->n * sizeof *a->s->slot);
            exch_sched_dense(a->m, &o, a->k->o->relaxed, a->s);
            a->k->used += a->s->evaluations + a->m->n / 2 + 300000;
            a->s->evaluations = 0;
            if (a->s->horizon >= a->best->horizon) continue;
            struct exch_sched *t = a->best;
            a->best = a->s;
            a->s = t;
        }
    }
    if (a->best->horizon < first) offer(a, a->best, "finish");
}

/* Schedules for small rows, whose longest rows are then trimmed. */
static void try_compact(struct attempt *a) {
    const struct exch_trim_options o = {.limit = a->k->o->max_row_bytes / 4,
                                        .budget = 50000 + a->m->n / 4,
                                        .relaxed = a->k->o->relaxed};
    for (uint32_t i = 0; i < ARRAY_LEN(compact_sets); i++) {
        exch_sched_dense(a->m, &compact_sets[i], a->k->o->relaxed, a->s);
        exch_sched_trim(a->m, &o, a->s);
        made(a, "compact");
    }
}

/* In step a label rule costs two slots instead of one, which short messages meet too often. */
static bool long_messages(const struct exch_msgs *m) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n; i++) sum += m->items[i];
    return sum >= 16 * (uint64_t)m->n;
}

static void try_dense(struct attempt *a, uint32_t n_sets) {
    const uint64_t cost = 16 * (uint64_t)a->m->n;
    const bool mixed = !one_length(a->m), step = long_messages(a->m);
    for (uint32_t i = 0; i < n_sets && i < ARRAY_LEN(dense_sets); i++) {
        if (i > 0 && !time_left(a->k, cost + a->k->budget / 2)) break; /* half is for repair */
        uint32_t set = i;
        if (mixed && i <= DENSE_FOR_MIXED) set = i == 0 ? DENSE_FOR_MIXED : i - 1;
        if (dense_sets[set].in_step && !step) continue;
        exch_sched_dense(a->m, &dense_sets[set], a->k->o->relaxed, a->s);
        made(a, "finish");
    }
    const bool large = a->m->n > 200000; /* little to win where a tile has hundreds of messages */
    if (!finished(a->k) && (!large || a->k->o->effort == EXCH_EFFORT_BEST)) try_ends(a);
    if (a->k->all != NULL || a->k->o->max_row_bytes != 0) try_compact(a);
}

/* Tiers of the multicast greedy: ordinary and paired apart (each change costs a late member). */
static const struct greedy_set {
    struct exch_greedy_options o;
    int8_t tier; /* 0 none, 1 ordinary first, -1 paired first */
} greedy_sets[] = {
    {{50, 0.25f, 0.0f, 0.5f, 4, 0.3f, true, NULL}, 0},
    {{100, 0.25f, 0.1f, 0.3f, 4, 0.3f, true, NULL}, 0},
    {{100, 0.5f, 0.0f, 0.3f, 4, 0.3f, true, NULL}, 0},
    {{0, 0.02f, 0.1f, 0.1f, 4, 0.1f, true, NULL}, 1},
    {{0, 0.05f, 0.1f, 1.0f, 4, 1.0f, true, NULL}, 0},
    {{0, 0.01f, 0.1f, 0.1f, 4, 0.1f, true, NULL}, 0},
    {{25, 0.25f, 0.0f, 1.0f, 4, 0.3f, true, NULL}, 0},
    {{0, 0.25f, 0.1f, 1.0f, 4, 1.0f, true, NULL}, 1},
    {{200, 0.5f, 0.0f, 0.5f, 4, 0.3f, true, NULL}, 0},
    {{0, 0.01f, 0.1f, 0.1f, 4, 0.1f, true, NULL}, -1},
};

/* Neighbours scored per placement make the greedy quadratic in the messages of a tile. */
static uint64_t greedy_cost(const struct exch_msgs *m) {
    uint32_t *in = g_new0(uint32_t, TARGET_N_TILES);
    for (uint32_t j = 0; j < m->n_rec; j++) in[m->rec_tile[j]]++;
    uint64_t cost = 0;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++)
        cost += (uint64_t)in[t] * in[t] / 2 * (m->n_rec / m->n + 1);
    g_free(in);
    return cost;
}

static void try_greedy(struct attempt *a, uint32_t n_sets) {
    const uint64_t cost = greedy_cost(a->m) / 16;
    uint8_t *tier = g_new(uint8_t, a->m->n + 1);
    for (uint32_t i = 0; i < n_sets && i < ARRAY_LEN(greedy_sets); i++) {
        const struct greedy_set *g = &greedy_sets[i];
        if (!time_left(a->k, cost)) break;
        if (g->tier != 0 && a->width == EXCH_WIDTH_ORDINARY) continue;
        for (uint32_t x = 0; x < a->m->n; x++) tier[x] = (a->m->paired[x] != 0) == (g->tier > 0);
        struct exch_greedy_options o = g->o;
        o.tier = g->tier != 0 ? tier : NULL;
        exch_sched_greedy(a->m, &o, a->k->o->relaxed, a->s);
        made(a, "gap");
    }
    g_free(tier);
}

static void try_repair(struct attempt *a, uint64_t budget) {
    if (!a->repairable || !a->any || finished(a->k)) return;
    const struct exch_repair_options o = {.budget = budget,
                                          .goal = a->k->bounds.any_width,
                                          .patience = 200,
                                          .seed = a->k->o->seed,
                                          .relaxed = a->k->o->relaxed};
    memcpy(a->s->slot, a->best->slot, a->m->n * sizeof *a->s->slot);
    a->s->horizon = a->best->horizon;
    a->s->evaluations = 0;
    exch_sched_repair(a->m, &o, a->s);
    a->k->used += a->s->evaluations;
    a->s->evaluations = 0;
    if (a->s->horizon < a->best->horizon) made(a, "repair");
}

static void attempt_begin(struct attempt *a, struct search *k, enum exch_width width,
                          const uint16_t *pieces) {
    const uint32_t n_paired = choose_widths(k->p, width, k->paired);
    *a =
        (struct attempt){.k = k, .m = exch_msgs_new(k->p, k->paired, pieces), .arena = arena_new()};
    a->width = n_paired == 0                   ? EXCH_WIDTH_ORDINARY
               : n_paired == k->p->n_transfers ? EXCH_WIDTH_PAIRED
                                               : EXCH_WIDTH_ANY;
    a->s = exch_sched_new(a->arena, a->m, a->k->o->relaxed);
    a->best = exch_sched_new(a->arena, a->m, a->k->o->relaxed);
    a->dense = exch_dense_applies(a->m);
    a->repairable = exch_repair_applies(a->m);
}
static void attempt_end(struct attempt *a) {
    arena_free(a->arena);
    exch_msgs_free(a->m);
}

static uint32_t sets_for(const struct search *k) {
    return k->o->effort == EXCH_EFFORT_QUICK ? 1 : 16;
}

static void try_all(struct search *k, enum exch_width width, const uint16_t *pieces) {
    struct attempt a;
    attempt_begin(&a, k, width, pieces);
    if (a.dense) try_dense(&a, sets_for(k));
    if (!a.dense || (a.m->n < 40000 && time_left(k, 0))) try_static(&a);
    if (a.m->n_rec > a.m->n && a.repairable)
        try_greedy(&a, k->o->effort == EXCH_EFFORT_NORMAL ? (pieces != NULL ? 3 : 4) : sets_for(k));
    const uint64_t left = k->budget > k->used ? k->budget - k->used : 0;
    const bool many = a.m->n_rec > 60000;
    /* Moves pay where a generation is short; with many endpoints other orders pay more. */
    const uint64_t share = MIN(left, many && k->o->effort != EXCH_EFFORT_BEST ? 0 : k->budget / 4);
    if (a.m->n < 200000 && share > 4 * (uint64_t)a.m->n) try_repair(&a, share);
    attempt_end(&a);
}

/* One order alone. */
static void try_one(struct search *k, enum exch_width width, enum exch_priority priority) {
    struct attempt a;
    attempt_begin(&a, k, width, NULL);
    uint32_t *order = g_new(uint32_t, a.m->n + 1);
    static const struct exch_dense_options directional = {0, 1, 1.0f, false, 0, 0, 0, 0, false, NULL};
    switch (priority) {
    case EXCH_PRIORITY_FINISH:
    case EXCH_PRIORITY_REMAINING_DIRECTIONAL:
    case EXCH_PRIORITY_GAP:
        if (a.dense && priority != EXCH_PRIORITY_GAP)
            exch_sched_dense(a.m, priority == EXCH_PRIORITY_FINISH ? &dense_sets[1] : &directional,
                             k->o->relaxed, a.s);
        else if (a.repairable) exch_sched_greedy(a.m, &greedy_sets[1].o, k->o->relaxed, a.s);
        if (a.dense || a.repairable) made(&a, exch_priority_name(priority));
        if (a.dense || a.repairable) break;
        static_order(a.m, false, order); /* dependencies and moving sources: serial orders only */
        serial(&a, order, "static");
        break;
    default:
        if (priority == EXCH_PRIORITY_STREAM) stream_order(a.m, 256, order);
        else if (priority == EXCH_PRIORITY_MATCHING) round_order(a.m, order);
        else static_order(a.m, priority == EXCH_PRIORITY_REMAINING_COMBINED, order);
        serial(&a, order, exch_priority_name(priority));
        if (priority == EXCH_PRIORITY_REPAIR) try_repair(&a, k->budget);
    }
    g_free(order);
    attempt_end(&a);
}

/* Parts of at most `words`: long messages leave gaps that short ones do not. */
static bool cut(const struct search *k, uint32_t words) {
    bool any = false;
    for (uint32_t x = 0; x < k->p->n_transfers; x++) {
        const uint32_t n = ceil_div_u32(k->p->words[x], words);
        k->pieces[x] = (uint16_t)MIN(n, 256u);
        any |= n > 1;
    }
    return any;
}

static double ratio(const struct search *k) {
    return k->best == NULL ? 2 : (double)k->best->horizon / k->bounds.any_width;
}

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Words that a quarter of the transfers do not exceed, at least 64. */
static uint32_t short_length(const struct exch_problem *p) {
    uint32_t *w = g_memdup2(p->words, (p->n_transfers + 1) * sizeof *w);
    qsort(w, p->n_transfers, sizeof *w, compare_u32);
    const uint32_t length = w[p->n_transfers / 4];
    g_free(w);
    return MAX(length, 64);
}

static void try_pieces(struct search *k, enum exch_width width) {
    const uint32_t q = short_length(k->p);
    const uint32_t unicast[] = {150, 100, 64}, multicast[] = {q, 2 * q, q / 2 + q % 2};
    const bool many = k->p->n_recipients > k->p->n_transfers;
    for (uint32_t i = 0; i < 3 && time_left(k, 0) && ratio(k) > 1.02; i++) {
        if (i > (many ? 1 : 0) && k->o->effort != EXCH_EFFORT_BEST) return;
        if (cut(k, many ? multicast[i] : unicast[i])) try_all(k, width, k->pieces);
    }
}

static uint64_t default_budget(const struct exch_options *o) {
    if (o->budget != 0) return o->budget;
    static const uint64_t by_effort[] = {6000000, 60000000, 600000000};
    return by_effort[o->effort];
}

static void search(struct search *k) {
    const struct exch_options *o = k->o;
    const bool pairs = choose_widths(k->p, EXCH_WIDTH_PAIRED, k->paired) > 0;
    const enum exch_width first =
        pairs && o->width != EXCH_WIDTH_ORDINARY ? EXCH_WIDTH_PAIRED : EXCH_WIDTH_ORDINARY;
    const bool both = pairs && o->width == EXCH_WIDTH_ANY;
    if (o->priority != EXCH_PRIORITY_AUTO) {
        try_one(k, first, o->priority);
        if (both) try_one(k, EXCH_WIDTH_ORDINARY, o->priority);
        return;
    }
    try_all(k, first, NULL);
    if (both && !finished(k)) {
        /* worth trying only if it could win */
        if (k->bounds.ordinary < (k->best != NULL ? k->best->horizon : UINT32_MAX)) {
            k->budget = MAX(k->budget, k->used + default_budget(o) / 2);
            try_all(k, EXCH_WIDTH_ORDINARY, NULL);
        }
    }
    if (o->effort != EXCH_EFFORT_QUICK && k->p->first_dependency == NULL) try_pieces(k, first);
}

static void search_begin(struct search *k, const struct exch_problem *p,
                         const struct exch_options *o) {
    *k = (struct search){.p = p, .o = o, .budget = default_budget(o)};
    k->paired = g_new0(uint8_t, p->n_transfers + 1);
    k->pieces = g_new0(uint16_t, p->n_transfers + 1);
    exch_bounds(p, &k->bounds);
}
static void search_end(struct search *k) {
    g_free(k->paired);
    g_free(k->pieces);
}

struct exch_result *exch_schedule(const struct exch_problem *p, const struct exch_options *o,
                                  GError **error) {
    struct search k;
    search_begin(&k, p, o);
    search(&k);
    search_end(&k);
    if (k.best == NULL) {
        g_propagate_error(error, k.error);
        return NULL;
    }
    g_clear_error(&k.error);
    k.best->evaluations = k.used;
    return k.best;
}

/* --- Pareto set --- */

static int compare_bytes(const void *a, const void *b) {
    const struct exch_result *x = *(struct exch_result *const *)a,
                             *y = *(struct exch_result *const *)b;
    if (x->row_bytes_max != y->row_bytes_max) return x->row_bytes_max < y->row_bytes_max ? -1 : 1;
    return x->horizon < y->horizon ? -1 : x->horizon > y->horizon;
}

/* Keeps what no other beats in both, shortest horizons first when there are too many. */
static uint32_t keep_pareto(GPtrArray *all, uint32_t max, struct exch_result **ret) {
    qsort(all->pdata, all->len, sizeof(void *), compare_bytes);
    uint32_t n = 0, least = UINT32_MAX;
    for (uint32_t i = 0; i < all->len; i++) {
        struct exch_result *r = all->pdata[i];
        if (r->horizon >= least) {
            exch_result_free(r);
            continue;
        }
        least = r->horizon;
        if (n == max) {
            exch_result_free(ret[0]);
            memmove(ret, ret + 1, (n - 1) * sizeof *ret);
            n--;
        }
        ret[n++] = r;
    }
    return n;
}

uint32_t exch_pareto(const struct exch_problem *p, const struct exch_options *o, uint32_t max,
                     struct exch_result **ret_results, GError **error) {
    struct search k;
    search_begin(&k, p, o);
    k.all = g_ptr_array_new();
    search(&k);
    const bool paired = o->width != EXCH_WIDTH_ORDINARY;
    try_one(&k, paired ? EXCH_WIDTH_PAIRED : EXCH_WIDTH_ORDINARY, EXCH_PRIORITY_STREAM);
    search_end(&k);
    const uint32_t n = max == 0 ? 0 : keep_pareto(k.all, max, ret_results);
    g_ptr_array_free(k.all, TRUE);
    if (n == 0 && k.error != NULL) g_propagate_error(error, k.error);
    else g_clear_error(&k.error);
    return n;
}
