/* Exchange steps as scheduling problems. One problem per step; phases are scheduled in parallel,
 * each by itself. */
#include "compile/compile_impl.h"

#include <string.h>

static uint32_t address_of(const struct compile_state *c, struct tg_ref ref) {
    return c->address == NULL ? 0 : c->address[ref.alloc] + ref.offset;
}

/* Iterations of the repeat around a step, or 1. */
static uint32_t iterations(const struct tile_graph *g, uint32_t step) {
    for (uint32_t s = step; s-- > 0;) {
        if (g->steps[s].kind == TG_REPEAT_END) return 1;
        if (g->steps[s].kind == TG_REPEAT_BEGIN) return g->steps[s].count;
    }
    return 1;
}

static void add_strides(const struct compile_state *c, uint32_t step, struct exch_problem *p) {
    const struct tile_graph *g = c->g;
    p->n_iterations = iterations(g, step);
    if (p->n_iterations <= 1) return;
    exch_problem_add_strides(p);
    const struct tg_step *s = &g->steps[step];
    for (uint32_t x = s->first; x < s->end; x++) {
        const uint32_t a = g->transfers.source[x].alloc;
        if (g->allocs.blocks[a] > 1) p->source_stride[x - s->first] = (int32_t)c->stride[a];
    }
}

struct exch_problem *compile_phase_problem(const struct compile_state *c, uint32_t i) {
    const struct tile_graph *g = c->g;
    const struct tg_transfers *x = &g->transfers;
    const uint32_t step = c->exchange_step[i];
    const uint32_t first = g->steps[step].first, n = g->steps[step].end - first;
    const uint32_t first_recipient = x->first_recipient[first];
    struct exch_problem *p =
        exch_problem_new(n, x->first_recipient[first + n] - first_recipient);
    p->name = arena_printf(p->arena, "step %u, %s", step, g->names[g->steps[step].operation]);
    for (uint32_t k = 0; k < n; k++) {
        p->source_tile[k] = g->allocs.tile[x->source[first + k].alloc];
        p->source_address[k] = address_of(c, x->source[first + k]);
        p->words[k] = x->words[first + k];
        p->first_recipient[k + 1] = x->first_recipient[first + k + 1] - first_recipient;
    }
    for (uint32_t r = 0; r < p->n_recipients; r++) {
        p->recipient_tile[r] = g->allocs.tile[x->recipient[first_recipient + r].alloc];
        p->recipient_address[r] = address_of(c, x->recipient[first_recipient + r]);
    }
    add_strides(c, step, p);
    p->split_long = true;
    if (c->address != NULL) {
        p->row_address = c->support.rows_address;
        p->row_bytes = c->support.rows_bytes;
        p->tile_row_bytes = c->rows_reserved;
    }
    return p;
}

/* Addresses outside SRAM with a gap between buffers: what goes on inside a buffer is seen, elements are
 * not taken to be shared. */
static uint32_t *apart(const struct compile_state *c) {
    const struct tg_allocs *a = &c->g->allocs;
    uint32_t *address = g_new(uint32_t, a->n + 1), *next = g_new(uint32_t, c->g->n_tiles);
    for (uint32_t t = 0; t < c->g->n_tiles; t++) next[t] = align_up_u32(TARGET_SRAM_END, 32);
    for (uint32_t i = 0; i < a->n; i++) {
        address[i] = next[a->tile[i]];
        next[a->tile[i]] += align_up_u32(a->bytes[i], 32) + 32;
    }
    g_free(next);
    return address;
}

void compile_rows_estimate(struct compile_state *c) {
    uint32_t *row_bytes = g_new0(uint32_t, TARGET_N_TILES);
    const struct exch_load load = {.row_bytes = row_bytes};
    memset(c->rows_need, 0, sizeof *c->rows_need * TARGET_N_TILES);
    c->address = apart(c);
    for (uint32_t i = 0; i < c->n_exchanges; i++) {
        struct exch_problem *p = compile_phase_problem(c, i);
        struct exch_estimate estimate;
        memset(row_bytes, 0, sizeof *row_bytes * TARGET_N_TILES);
        exch_estimate(p, &load, &estimate);
        for (uint32_t t = 0; t < TARGET_N_TILES; t++) c->rows_need[t] += align_up_u32(row_bytes[t], 8);
        exch_problem_free(p);
    }
    g_clear_pointer(&c->address, g_free);
    g_free(row_bytes);
}

struct scheduling {
    struct compile_state *c;
    GError **errors;
};

static void schedule_phase(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    struct scheduling *s = context;
    struct exch_problem *p = compile_phase_problem(s->c, i);
    const struct exch_options o = {.effort = (enum exch_effort)s->c->o->effort};
    if (exch_problem_check(p, &s->errors[i])) {
        exch_problem_find_dependencies(p);
        s->c->rows[i] = exch_schedule(p, &o, &s->errors[i]);
    }
    exch_problem_free(p);
}

bool compile_schedule(struct compile_state *c, GError **error) {
    struct scheduling s = {.c = c, .errors = g_new0(GError *, c->n_exchanges + 1)};
    for (uint32_t i = 0; i < c->n_exchanges; i++) {
        exch_result_free(c->rows[i]);
        c->rows[i] = NULL;
    }
    par_for(c->n_exchanges, schedule_phase, &s);
    bool ok = true;
    for (uint32_t i = 0; i < c->n_exchanges; i++) {
        if (s.errors[i] == NULL) continue;
        if (ok) {
            const struct tg_step *step = &c->g->steps[c->exchange_step[i]];
            g_propagate_prefixed_error(error, s.errors[i], "exchange of step %u (%s): ",
                                       c->exchange_step[i], c->g->names[step->operation]);
        } else {
            g_error_free(s.errors[i]);
        }
        ok = false;
    }
    g_free(s.errors);
    return ok;
}

/* Bytes of a tile's rows up to the end of their last memory element, which nothing else can use. */
static uint32_t rows_reserve(const struct compile_state *c, uint32_t bytes) {
    const uint32_t end = align_up_u32(c->support.rows_address + bytes + TARGET_FETCH_AHEAD_BYTES,
                                      TARGET_ELEMENT_BYTES);
    return MIN(end, TARGET_REGION1_BASE) - TARGET_FETCH_AHEAD_BYTES - c->support.rows_address;
}

void compile_reserve_rows(struct compile_state *c) {
    c->support.rows_bytes = 0;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        c->rows_reserved[t] = rows_reserve(c, c->rows_need[t]);
        c->support.rows_bytes = MAX(c->support.rows_bytes, c->rows_reserved[t]);
    }
}

static uint32_t table_bytes(const struct exch_table *t, uint32_t tile) {
    return 4 * (t->first_word[tile + 1] - t->first_word[tile]);
}

static bool table_fits(const struct compile_state *c, const struct exch_table *t) {
    uint32_t tile = 0;
    while (tile < t->n_tiles && table_bytes(t, tile) <= c->rows_reserved[tile]) tile++;
    return tile == t->n_tiles;
}

/* Memory that the rows of all tiles take. */
static uint64_t table_cost(const struct compile_state *c, const struct exch_table *t) {
    uint64_t sum = 0;
    for (uint32_t tile = 0; tile < t->n_tiles; tile++) sum += rows_reserve(c, table_bytes(t, tile));
    return sum;
}

/* Bases and patches cost cycles, so they are taken only where equal rows are too long for the place that
 * they have; what fits none of the ways is placed again for the shortest. */
static struct exch_table *choose_table(const struct compile_state *c) {
    const struct exch_result *const *rows = (const struct exch_result *const *)c->rows;
    if (c->o->row_share != 0)
        return exch_table_new(rows, c->n_exchanges, (enum exch_share)(c->o->row_share - 1));
    struct exch_table *best = NULL;
    bool fits = false;
    for (enum exch_share share = EXCH_SHARE_EQUAL; share <= EXCH_SHARE_PATCHES && !fits; share++) {
        struct exch_table *t = exch_table_new(rows, c->n_exchanges, share);
        fits = table_fits(c, t);
        const bool better = best == NULL || fits || table_cost(c, t) < table_cost(c, best);
        exch_table_free(better ? best : t);
        if (better) best = t;
    }
    return best;
}

void compile_share_rows(struct compile_state *c) {
    exch_table_free(c->table);
    c->table = choose_table(c);
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) c->rows_need[t] = table_bytes(c->table, t);
    c->rows_tight = true;
}

bool compile_export_phases(const struct compile_state *c, GError **error) {
    struct exch_problem_set set = {.n_phases = c->n_exchanges,
                                   .phases = g_new0(struct exch_problem *, c->n_exchanges + 1),
                                   .number = g_new0(uint32_t, c->n_exchanges + 1)};
    for (uint32_t i = 0; i < c->n_exchanges; i++) {
        struct exch_problem *p = set.phases[i] = compile_phase_problem(c, i);
        set.number[i] = i;
        exch_problem_find_dependencies(p);
        /* The rows lie at one place on every tile, but not all tiles need all of it. */
        p->row_address = p->row_bytes = 0;
        p->tile_row_bytes = NULL;
    }
    const bool ok = exch_file_write(c->o->exchange_export, &set, error);
    for (uint32_t i = 0; i < c->n_exchanges; i++) exch_problem_free(set.phases[i]);
    g_free(set.phases);
    g_free(set.number);
    return ok;
}
