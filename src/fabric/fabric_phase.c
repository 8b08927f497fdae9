/* One phase from rows to result: allocates the flat arrays, runs the passes in order, collects the
 * faults. The context keeps its arrays; a run clears only what its participating tiles use. */
#include "fabric/fabric_impl.h"

#include <stdlib.h>
#include <string.h>

void fabric_grow(void **array, size_t *capacity, size_t need, size_t size) {
    if (need <= *capacity) return;
    *capacity = MAX(need, *capacity + *capacity / 2 + 16);
    *array = g_realloc_n(*array, *capacity, size);
}

void fabric_grow_u32(void **array, uint32_t *capacity, uint32_t need, size_t size) {
    if (need <= *capacity) return;
    size_t wide = *capacity;
    fabric_grow(array, &wide, need, size);
    *capacity = (uint32_t)wide;
}

struct fabric *fabric_new(void) {
    struct fabric *f = g_new0(struct fabric, 1);
    memset(f->plan_of, 0xff, sizeof f->plan_of);
    return f;
}

void fabric_free(struct fabric *f) {
    if (f == NULL) return;
    for (uint32_t k = 0; k < f->n_workers; k++) {
        struct worker *w = &f->workers[k];
        g_free(w->out.v);
        g_free(w->faults);
        g_free(w->arrivals);
        g_free(w->lines);
        g_free(w->blocked);
        g_free(w->bitmap);
        g_free(w->scratch);
    }
    g_free(f->workers);
    g_free(f->plans);
    g_free(f->controls);
    g_free(f->pieces);
    g_free(f->messages);
    g_free(f->faults);
    g_free(f->staging);
    g_free(f->events);
    g_free(f);
}

void fabric_flag(struct fabric *f, uint32_t thread, const struct flag *flag) {
    struct worker *w = &f->workers[thread];
    const char class = fabric_conditions[flag->what].class;
    BUG_ON(class == 'N');
    const bool relaxed = (f->phase->flags & FABRIC_RELAXED) != 0;
    const bool error = class == 'E' || (class == 'S' && !relaxed);
    fabric_grow_u32((void **)&w->faults, &w->capacity_faults, w->n_faults + 1, sizeof *w->faults);
    w->faults[w->n_faults++] = (struct fabric_fault){.what = (uint16_t)flag->what,
                                                     .tile = (uint16_t)flag->tile,
                                                     .other = (uint16_t)flag->other,
                                                     .error = error,
                                                     .slot = flag->slot,
                                                     .address = flag->address};
    w->n_errors += error;
}

uint32_t fabric_errors(const struct fabric *f) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < f->n_workers; k++) n += f->workers[k].n_errors;
    return n;
}

static int compare_faults(const void *a, const void *b) {
    const struct fabric_fault *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    if (x->tile != y->tile) return x->tile < y->tile ? -1 : 1;
    if (x->what != y->what) return x->what < y->what ? -1 : 1;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    if (x->other != y->other) return x->other < y->other ? -1 : 1;
    return (int)y->error - (int)x->error;
}

void fabric_faults_collect(struct fabric *f, struct fabric_result *result) {
    size_t n = 0;
    for (uint32_t k = 0; k < f->n_workers; k++) n += f->workers[k].n_faults;
    fabric_grow((void **)&f->faults, &f->capacity_faults, n, sizeof *f->faults);
    size_t at = 0;
    for (uint32_t k = 0; k < f->n_workers; k++) {
        const struct worker *w = &f->workers[k];
        if (w->n_faults == 0) continue;
        memcpy(f->faults + at, w->faults, w->n_faults * sizeof *f->faults);
        at += w->n_faults;
    }
    if (n > 1) qsort(f->faults, n, sizeof *f->faults, compare_faults);
    memset(result->count, 0, sizeof result->count);
    result->n_errors = result->n_warnings = 0;
    result->first = NULL;
    for (size_t k = 0; k < n; k++) {
        const struct fabric_fault *x = &f->faults[k];
        result->count[x->what]++;
        if (!x->error) {
            result->n_warnings++;
            continue;
        }
        result->n_errors++;
        if (result->first == NULL) result->first = x;
    }
    result->faults = f->faults;
    result->ok = result->n_errors == 0;
}

/* --- Passes. --- */

static void start_workers(struct fabric *f) {
    const uint32_t want = par_threads();
    if (want > f->n_workers) {
        f->workers = g_renew(struct worker, f->workers, want);
        memset(f->workers + f->n_workers, 0, (want - f->n_workers) * sizeof *f->workers);
        f->n_workers = want;
    }
    for (uint32_t k = 0; k < f->n_workers; k++)
        f->workers[k].out.n = f->workers[k].n_faults = f->workers[k].n_errors = 0;
}

static void start_plans(struct fabric *f, const struct fabric_phase *phase) {
    for (uint32_t i = 0; i < f->n_plans; i++) f->plan_of[f->plans[i].phys] = NO_PLAN;
    fabric_grow((void **)&f->plans, &f->capacity_plans, phase->n_tiles, sizeof *f->plans);
    f->own = *phase;
    f->phase = &f->own;
    f->n_plans = phase->n_tiles;
    const uint16_t *physical = target_physical_of_logical();
    for (uint32_t i = 0; i < phase->n_tiles; i++) {
        const struct fabric_tile *t = &phase->tiles[i];
        BUG_ON(t->tile >= TARGET_N_TILES || (i > 0 && t->tile <= phase->tiles[i - 1].tile));
        BUG_ON(phase->sram != NULL && t->tile >= phase->sram->n_tiles);
        const uint16_t phys = physical[t->tile];
        f->plans[i] = (struct tile_plan){
            .tile = t->tile, .phys = phys, .row = phys >> 6, .row_address = t->row_address};
        f->plan_of[phys] = (uint16_t)i;
    }
}

/* Gives every tile its stretch of the flat arrays by the measured bounds. */
static void place_plans(struct fabric *f) {
    size_t controls = 0, pieces = 0;
    for (uint32_t i = 0; i < f->n_plans; i++) {
        struct tile_plan *p = &f->plans[i];
        p->first_control = (uint32_t)controls;
        p->first_piece = p->first_message = (uint32_t)pieces;
        controls += p->bound_controls;
        pieces += p->bound_pieces;
    }
    BUG_ON(controls > UINT32_MAX || pieces > UINT32_MAX);
    fabric_grow((void **)&f->controls, &f->capacity_controls, controls, sizeof *f->controls);
    fabric_grow((void **)&f->pieces, &f->capacity_pieces, pieces, sizeof *f->pieces);
    fabric_grow((void **)&f->messages, &f->capacity_messages, pieces, sizeof *f->messages);
}

static void pass_measure(uint32_t i, uint32_t thread, void *f) {
    fabric_decode_measure(f, i, thread);
}
static void pass_decode(uint32_t i, uint32_t thread, void *f) {
    fabric_decode_tile(f, i, thread);
}
static void pass_receive(uint32_t i, uint32_t thread, void *context) {
    struct fabric *f = context;
    fabric_decode_lanes(f, i, thread);
    fabric_receive_tile(f, i, thread);
}
static void pass_check(uint32_t i, uint32_t thread, void *f) {
    fabric_memory_check(f, i, thread);
}
static void pass_source(uint32_t i, uint32_t thread, void *f) {
    fabric_memory_source(f, i, thread);
}

/* C3: tiles with neither a row nor the inactive sequence. */
static void check_absent(struct fabric *f) {
    const struct tileset *inactive = f->phase->inactive;
    if (inactive == NULL) return;
    const uint32_t n = f->phase->sram != NULL ? f->phase->sram->n_tiles : TARGET_N_TILES;
    const uint16_t *physical = target_physical_of_logical();
    for (uint32_t t = 0; t < n; t++)
        if (!tileset_has(inactive, t) && f->plan_of[physical[t]] == NO_PLAN)
            fabric_flag(f, 0,
                        &(struct flag){.what = FABRIC_C3, .tile = t, .other = FABRIC_NO_TILE});
}

static void sum_result(struct fabric *f, struct fabric_result *r) {
    *r = (struct fabric_result){0};
    for (uint32_t i = 0; i < f->n_plans; i++) {
        const struct tile_plan *p = &f->plans[i];
        f->phase->tiles[i].csr = p->exit;
        r->horizon = MAX(r->horizon, f->phase->tiles[i].slots);
        r->n_messages += p->n_messages;
        r->n_deliveries += p->n_deliveries;
        r->words_sent += p->words_sent;
        r->words_moved += p->words_moved;
    }
}

void fabric_phase_run(struct fabric *f, const struct fabric_phase *phase,
                      struct fabric_result *ret_result) {
    BUG_ON((phase->flags & FABRIC_ANY_ADDRESS) != 0 && phase->sram != NULL);
    start_workers(f);
    start_plans(f, phase);
    par_for(f->n_plans, pass_measure, f);
    place_plans(f);
    par_for(f->n_plans, pass_decode, f);
    par_for(f->n_plans, pass_receive, f);
    par_for(f->n_plans, pass_check, f);
    check_absent(f);
    if (phase->sram != NULL) {
        par_for(f->n_plans, pass_source, f);
        if (fabric_errors(f) == 0 || (phase->flags & FABRIC_PERMISSIVE) != 0) fabric_memory_move(f);
    }
    sum_result(f, ret_result);
    fabric_faults_collect(f, ret_result);
}

const struct fabric_delivery *fabric_deliveries(const struct fabric *f, uint32_t tile,
                                                uint32_t *ret_n) {
    BUG_ON(tile >= TARGET_N_TILES);
    const uint16_t i = f->plan_of[target_physical_of_logical()[tile]];
    *ret_n = 0;
    if (i == NO_PLAN) return NULL;
    *ret_n = f->plans[i].n_deliveries;
    return fabric_plan_deliveries(f, &f->plans[i]);
}
