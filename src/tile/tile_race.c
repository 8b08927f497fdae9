/* Word-exact races: two contexts touch a word between two barriers and at least one writes.
 *
 * One record per word of SRAM, valid for one epoch; an epoch ends with a barrier: `sync 2` that has
 * seen all workers exit, or `runall`, which needs them inactive. `run` is no barrier for the other
 * workers, only an order between the supervisor and the worker it starts: what the supervisor did
 * before the launch comes before everything the worker does. Launches are counted, the record keeps
 * the count at the supervisor's last accesses.
 * Reads inside declared access tails are exempt (isa 6.3). */
#include "tile/tile_exec.h"

struct word {
    uint32_t epoch;
    uint32_t super_read, super_write; /* launches before the supervisor's last access, + 1; 0 = none */
    uint8_t writer;                   /* worker's context of the last write, 0 = none */
    uint8_t readers;                  /* bit per worker's context */
};

struct tile_races {
    uint32_t epoch, launches;
    uint32_t launch[TILE_N_CONTEXTS]; /* by context: number of its launch */
    struct word words[SRAM_BYTES / 4];
};

void tile_race_sync(struct tile *t) {
    if (t->race != NULL) t->race->epoch++;
}

void tile_race_launch(struct tile *t, uint32_t worker) {
    t->race->launch[worker + 1] = ++t->race->launches;
}

static void report(struct tile_exec *e, bool both_write, uint32_t address, uint32_t other) {
    tile_raise(e, both_write ? TILE_FAULT_RACE_WRITE_WRITE : TILE_FAULT_RACE_READ_WRITE, address, other);
}

static void touch_supervisor(struct tile_exec *e, struct word *w, uint32_t address, bool store) {
    const uint32_t now = e->t->race->launches + 1;
    if (w->writer != 0) report(e, store, address, w->writer);
    if (store && w->readers != 0) report(e, false, address, (uint32_t)__builtin_ctz(w->readers));
    if (store)
        w->super_write = now;
    else
        w->super_read = now;
}

static void touch_worker(struct tile_exec *e, struct word *w, uint32_t address, bool store) {
    const uint32_t me = e->context, mine = e->t->race->launch[me];
    const uint32_t others = w->readers & ~(1u << me);
    /* Accesses of the supervisor with fewer launches before them than this worker's own are earlier. */
    if (w->super_write > mine) report(e, store, address, 0);
    if (store && w->super_read > mine) report(e, false, address, 0);
    if (w->writer != 0 && w->writer != me) report(e, store, address, w->writer);
    if (store && others != 0) report(e, false, address, (uint32_t)__builtin_ctz(others));
    if (store)
        w->writer = (uint8_t)me;
    else
        w->readers |= (uint8_t)(1u << me);
}

void tile_race_access(struct tile_exec *e, uint32_t address, uint32_t bytes, bool store) {
    struct tile_races *r = e->t->race;
    for (uint32_t at = address; at < address + bytes; at = (at & ~3u) + 4) {
        if (!store && tile_in_tail(e->t, at)) continue;
        struct word *w = &r->words[(at - TARGET_SRAM_BASE) / 4];
        if (w->epoch != r->epoch) *w = (struct word){.epoch = r->epoch};
        (e->context == 0 ? touch_supervisor : touch_worker)(e, w, at & ~3u, store);
    }
}

void tile_race_start(struct tile *t) {
    if (t->race == NULL) t->race = g_new0(struct tile_races, 1);
    t->race->epoch++;
}
