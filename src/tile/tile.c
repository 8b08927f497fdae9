/* One tile: life, starting and stopping, and the order of its contexts.
 *
 * Order. The supervisor issues in the first free lane at or after the cycle it is ready. Workers go
 * first as soon as one of them has a slot before that cycle: without `interleave` each then runs to
 * its exit (or to the end of a long quantum, so that contexts that wait for each other through
 * memory make progress), after which all exits up to there, and so all free lanes, are known. With
 * `interleave` only the worker whose slot comes first runs, for that one slot. Both give the same
 * cycles; memory is the same for programs without races.
 */
#include "tile/tile_exec.h"

enum { QUANTUM_CYCLES = 6 << 20, FIRST_POISON = 0xdead0000 };

void tile_init(struct tile *t, const struct tile_config *config, struct sram *sram, uint32_t n) {
    BUG_ON(n >= sram->n_tiles);
    *t = (struct tile){.config = config, .sram = sram, .n = n};
    t->bytes = sram_at(sram, n, TARGET_SRAM_BASE);
    t->written = sram_written(sram, n);
    tile_reset(t);
}

void tile_free(struct tile *t) {
    if (t->tails != NULL) g_array_free(t->tails, true);
    g_free(t->race);
    tile_weights_free(t);
    *t = (struct tile){0};
}

/* Undefined registers hold patterns that stand out: $m an odd address, $a a NaN. */
static void worker_reset(struct tile_worker *w, uint32_t n) {
    *w = (struct tile_worker){.wsr = n};
    for (uint32_t r = 0; r < 12; r++) w->m[r] = FIRST_POISON | r << 4 | 0xd;
    for (uint32_t r = 0; r < 8; r++) w->a[r] = NUM_F32_NAN | 0xdead0 | r;
    for (uint32_t r = 0; r < 16; r++) w->acc.even[r] = w->acc.odd[r] = num_f32_from_bits(NUM_F32_NAN);
    w->exit_cycle = 0;
}

void tile_reset(struct tile *t) {
    t->s = (struct tile_supervisor){0};
    for (uint32_t r = 0; r < 12; r++) t->s.m[r] = FIRST_POISON | r << 4 | 0xd;
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++) worker_reset(&t->w[w], w);
    memset(t->worker_base, 0, sizeof t->worker_base);
    memset(t->weights, 0, sizeof t->weights);
    t->weights_defined = 0;
    tile_weights_changed(t);
    t->stop = (struct tile_stop){0};
    t->fault = (struct tile_fault){0};
    t->counters = (struct tile_counters){0};
    t->lanes_cycle = 0;
    t->n_active = 0;
    t->shown = 0;
    if (t->config->races) tile_race_start(t);
}

void tile_start(struct tile *t, uint32_t pc, uint64_t cycle) {
    t->s.pc = pc;
    t->s.ready_cycle = cycle;
    t->s.state = TILE_SUPERVISOR_RUNS;
}

void tile_start_workers(struct tile *t, uint32_t pc, uint32_t vertex_base, uint32_t n_workers,
                        uint64_t cycle) {
    BUG_ON(n_workers == 0 || n_workers > TILE_N_WORKERS);
    t->s.state = TILE_SUPERVISOR_OFF;
    for (uint32_t w = 0; w < n_workers; w++) tile_worker_launch(t, w, pc, vertex_base, cycle);
}

void tile_release_sync(struct tile *t, uint64_t cycle) {
    BUG_ON(t->s.state != TILE_SUPERVISOR_SYNC);
    t->s.state = TILE_SUPERVISOR_RUNS;
    if (cycle > t->s.ready_cycle) t->s.ready_cycle = cycle;
}

void tile_resume_after_row(struct tile *t, uint32_t pc, uint64_t cycle,
                           const uint32_t exchange[TILE_N_EXCHANGE_CSRS]) {
    BUG_ON(t->s.state != TILE_SUPERVISOR_ROW);
    memcpy(t->s.exchange, exchange, sizeof t->s.exchange);
    t->s.state = TILE_SUPERVISOR_RUNS;
    t->s.pc = pc;
    t->s.ready_cycle = cycle;
}

void tile_resume_after_trap(struct tile *t, uint64_t cycle) {
    BUG_ON(t->s.state != TILE_SUPERVISOR_TRAP);
    t->s.state = TILE_SUPERVISOR_RUNS;
    t->s.pc += 4;
    if (cycle > t->s.ready_cycle) t->s.ready_cycle = cycle;
}

/* The active worker with the earliest slot, or NULL. */
static struct tile_worker *first_worker(struct tile *t) {
    struct tile_worker *first = NULL;
    for (uint32_t i = 0; i < TILE_N_WORKERS && t->n_active != 0; i++) {
        struct tile_worker *w = &t->w[i];
        if (w->active && (first == NULL || w->next_cycle < first->next_cycle)) first = w;
    }
    return first;
}

static bool one_by_one(const struct tile *t) {
    return t->config->interleave || t->config->races || t->observer != NULL;
}

static void workers_run(struct tile *t, struct tile_worker *first, uint64_t max_cycle) {
    if (one_by_one(t)) {
        tile_worker_run(t, (uint32_t)(first - t->w), first->next_cycle + 1);
        return;
    }
    const uint64_t quantum = first->next_cycle + QUANTUM_CYCLES;
    const uint64_t limit = quantum < max_cycle ? quantum : max_cycle;
    for (uint32_t i = 0; i < TILE_N_WORKERS && t->stop.reason == TILE_STOP_NONE; i++)
        if (t->w[i].active) tile_worker_run(t, i, limit);
}

/* No worker is active: what a barrier with the workers, or kernels alone, wait for. */
static void workers_ended(struct tile *t) {
    if (t->race != NULL) tile_race_sync(t);
    if (t->s.state == TILE_SUPERVISOR_OFF) {
        t->stop = (struct tile_stop){.reason = TILE_STOP_DONE, .cycle = t->lanes_cycle};
        return;
    }
    t->s.state = TILE_SUPERVISOR_RUNS;
    if (t->lanes_cycle > t->s.ready_cycle) t->s.ready_cycle = t->lanes_cycle;
}

static void run_step(struct tile *t, uint64_t max_cycle) {
    struct tile_worker *first = first_worker(t);
    const bool waits = t->s.state == TILE_SUPERVISOR_LOCAL || t->s.state == TILE_SUPERVISOR_OFF;
    if (first == NULL && waits) {
        workers_ended(t);
        return;
    }
    const struct tile_slot *slot = NULL;
    const uint64_t next = tile_super_next(t, &slot);
    const uint64_t limit = next < max_cycle ? next : max_cycle;
    if (t->stop.reason != TILE_STOP_NONE) return; /* its fetch faulted */
    if (first != NULL && first->next_cycle < limit)
        workers_run(t, first, max_cycle);
    else if (next >= max_cycle)
        t->stop = (struct tile_stop){.reason = TILE_STOP_LIMIT, .cycle = max_cycle};
    else
        tile_super_step(t, slot, next);
    if (t->n_active == 0) tile_super_alone(t, max_cycle);
}

enum tile_stop_reason tile_run(struct tile *t, uint64_t max_cycle) {
    if (t->stop.reason == TILE_STOP_FAULT || t->s.state == TILE_SUPERVISOR_DONE ||
        t->s.state == TILE_SUPERVISOR_SYNC || t->s.state == TILE_SUPERVISOR_ROW ||
        t->s.state == TILE_SUPERVISOR_TRAP)
        return t->stop.reason;
    t->stop = (struct tile_stop){0};
    while (t->stop.reason == TILE_STOP_NONE) run_step(t, max_cycle);
    return t->stop.reason;
}

void tile_tail_add(struct tile *t, uint32_t address, uint32_t bytes) {
    const uint32_t range[2] = {address, address + bytes};
    if (t->tails == NULL) t->tails = g_array_new(false, false, sizeof(uint32_t));
    g_array_append_vals(t->tails, range, 2);
}

void tile_tail_clear(struct tile *t) {
    if (t->tails != NULL) g_array_set_size(t->tails, 0);
}

bool tile_in_tail(const struct tile *t, uint32_t address) {
    if (t->tails == NULL) return false;
    const uint32_t *v = (const uint32_t *)(const void *)t->tails->data;
    for (uint32_t i = 0; i + 1 < t->tails->len; i += 2)
        if (address >= v[i] && address < v[i + 1]) return true;
    return false;
}

uint32_t tile_word_unwritten(const struct tile *t, uint32_t address, uint32_t bytes) {
    for (uint32_t at = address; at < address + bytes; at = (at & ~3u) + 4) {
        const uint32_t word = (at - TARGET_SRAM_BASE) / 4;
        if ((t->written[word / 64] >> word % 64 & 1) == 0 && !tile_in_tail(t, at)) return at & ~3u;
    }
    return UINT32_MAX;
}

bool tile_word_is_row(uint32_t word) {
    struct isa_insn i;
    if (!isa_decode(word, 0, &i)) return false;
    return isa_form(i.op)->kind == ISA_KIND_EXCH || i.op == ISA_OP_DELAY;
}
