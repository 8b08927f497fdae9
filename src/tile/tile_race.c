/* Word-exact races: two contexts touch a word between two barriers and at least one writes.
 * One record per word of SRAM, valid for one epoch; an epoch ends when all workers have exited and
 * when a launch finds none active. Reads inside declared access tails are exempt (isa 6.3). */
#include "tile/tile_exec.h"

struct word {
    uint32_t epoch;
    uint8_t writer;  /* context + 1, 0 = none */
    uint8_t readers; /* bit per context */
};

struct tile_races {
    uint32_t epoch;
    struct word words[SRAM_BYTES / 4];
};

void tile_race_sync(struct tile *t) {
    if (t->race != NULL) t->race->epoch++;
}

static void touch(struct tile_exec *e, struct word *w, uint32_t address, bool store) {
    const uint32_t me = e->context;
    const uint32_t others = w->readers & ~(1u << me);
    const bool written = w->writer != 0 && w->writer != me + 1;
    if (store && written) tile_raise(e, TILE_FAULT_RACE_WRITE_WRITE, address, w->writer - 1u);
    if (store && others)
        tile_raise(e, TILE_FAULT_RACE_READ_WRITE, address, (uint32_t)__builtin_ctz(others));
    if (store) {
        w->writer = (uint8_t)(me + 1);
        return;
    }
    if (tile_in_tail(e->t, address)) return;
    if (written) tile_raise(e, TILE_FAULT_RACE_READ_WRITE, address, w->writer - 1u);
    w->readers |= (uint8_t)(1u << me);
}

void tile_race_access(struct tile_exec *e, uint32_t address, uint32_t bytes, bool store) {
    struct tile_races *r = e->t->race;
    const uint32_t first = (address - TARGET_SRAM_BASE) / 4;
    const uint32_t end = (address - TARGET_SRAM_BASE + bytes + 3) / 4;
    for (uint32_t k = first; k < end; k++) {
        struct word *w = &r->words[k];
        if (w->epoch != r->epoch) *w = (struct word){.epoch = r->epoch};
        touch(e, w, TARGET_SRAM_BASE + 4 * k, store);
    }
}

void tile_race_start(struct tile *t) {
    if (t->race == NULL) t->race = g_new0(struct tile_races, 1);
    t->race->epoch++;
}
