/* The run: all tiles run on their own until they wait, then whatever they wait for happens, and so on.
 *
 *   1. every tile that can runs until it stops (tiles share nothing, so they run in parallel);
 *   2. a fault, or tiles that wait for tiles that are done, ends the run;
 *   3. all wait in a sync: they are released SYNC_INTERNAL_CYCLES after the last arrival; those that
 *      waited with `sync 3` may have a row: they run to its first instruction, all to the same cycle,
 *      and the fabric executes the rows; tiles that answered with `sans` run on.
 *
 * Cost: two parallel loops per phase. */
#include "device/device_impl.h"

#include <string.h>

enum { ZONE_ANS = 1, ZONE_INTERNAL = 3, ZONE_HOST = 7 };
enum { M_LINK = 10 }; /* rows end with `br m10` (exchange 2.1) */

/* --- Running tiles --- */

static void run_tile(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    struct device *d = context;
    if (d->zone[i] != UINT8_MAX) tile_run(&d->tiles[i], d->max_cycle);
}

/* zone[t]: UINT8_MAX = do not run. */
static void run_tiles(struct device *d) {
    par_for(d->options.n_tiles, run_tile, d);
}

static uint64_t fault_cycle(const struct tile *t) {
    return t->stop.reason == TILE_STOP_FAULT ? t->fault.cycle : t->stop.cycle;
}

/* False with the earliest fault among all tiles. */
static bool check_stops(struct device *d) {
    uint32_t worst = UINT32_MAX;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        const struct tile *t = &d->tiles[i];
        const enum tile_stop_reason r = t->stop.reason;
        if (r == TILE_STOP_SYNC || r == TILE_STOP_ROW || r == TILE_STOP_DONE) continue;
        if (worst == UINT32_MAX || fault_cycle(t) < fault_cycle(&d->tiles[worst])) worst = i;
    }
    if (worst == UINT32_MAX) return true;
    switch (d->tiles[worst].stop.reason) {
    case TILE_STOP_FAULT: device_fault_of_tile(d, worst); break;
    case TILE_STOP_TRAP:
        device_fault_set(d, DEVICE_FAULT_TILE, worst, "tile %u: trap %u at 0x%x", worst,
                         d->tiles[worst].stop.zone, d->tiles[worst].stop.pc);
        break;
    case TILE_STOP_LIMIT:
        device_fault_set(d, DEVICE_FAULT_LIMIT, worst,
                         "tile %u still runs after %" G_GUINT64_FORMAT " cycles", worst,
                         d->options.max_cycles);
        break;
    default: BUG_ON(true);
    }
    return false;
}

/* --- Barriers --- */

static void deadlock(struct device *d, uint32_t n_done) {
    GString *text = g_string_new(NULL);
    uint32_t waiting = UINT32_MAX, listed = 0;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        const struct tile *t = &d->tiles[i];
        if (t->stop.reason == TILE_STOP_DONE) continue;
        if (waiting == UINT32_MAX) waiting = i;
        if (listed++ < 8)
            g_string_append_printf(text, " %u (zone %u, pc 0x%x)", i, t->stop.zone, t->stop.pc);
    }
    device_fault_set(d, DEVICE_FAULT_DEADLOCK, waiting,
                     "%u tiles wait for %u that are done:%s%s", d->options.n_tiles - n_done,
                     n_done, text->str, listed > 8 ? " ..." : "");
    g_string_free(text, true);
}

/* All tiles wait: notes each one's zone and the last arrival. False when the zones do not go
 * together. */
static bool take_arrivals(struct device *d, struct device_phase *p, bool *ret_host) {
    p->first_arrival = UINT64_MAX;
    d->inactive = (struct tileset){0};
    *ret_host = d->tiles[0].stop.zone == ZONE_HOST;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        const struct tile_stop *s = &d->tiles[i].stop;
        const bool fits = *ret_host ? s->zone == ZONE_HOST
                                    : s->zone == ZONE_ANS || s->zone == ZONE_INTERNAL;
        if (!fits) {
            device_fault_set(d, DEVICE_FAULT_SYNC, i,
                             "tile %u waits in zone %u, tile 0 in zone %u", i, s->zone,
                             d->tiles[0].stop.zone);
            return false;
        }
        d->zone[i] = (uint8_t)s->zone;
        d->sync_pc[i] = s->pc;
        if (s->zone == ZONE_ANS) tileset_add(&d->inactive, i);
        p->first_arrival = MIN(p->first_arrival, s->cycle);
        if (i == 0 || s->cycle > p->last_arrival) {
            p->last_arrival = s->cycle;
            p->last_tile = i;
        }
    }
    p->release = p->last_arrival + TARGET_SYNC_INTERNAL_CYCLES;
    return true;
}

/* --- Rows --- */

static struct fabric_csr csr_of(const uint32_t x[TILE_N_EXCHANGE_CSRS]) {
    return (struct fabric_csr){.incoming_mux = x[0], .incoming_muxpair = x[1],
                               .incoming_delta = x[2], .incoming_format = x[3],
                               .incoming_base = x[4], .incoming_dcount = x[6],
                               .outgoing_base = x[7], .outgoing_delta = x[8]};
}

static void csr_to(const struct fabric_csr *c, uint32_t x[TILE_N_EXCHANGE_CSRS]) {
    x[0] = c->incoming_mux;
    x[1] = c->incoming_muxpair;
    x[2] = c->incoming_delta;
    x[3] = c->incoming_format;
    x[4] = c->incoming_base;
    x[6] = c->incoming_dcount;
    x[7] = c->outgoing_base;
    x[8] = c->outgoing_delta;
}

/* The code around a row on its tile: from the sync to the instruction to which the row returns, which
 * the link register names, and what is fetched ahead of that (exchange 6.2-2). */
static uint32_t code_elements(const struct device *d, const struct tile *t) {
    const uint32_t sync = d->sync_pc[t->n] - 4, link = t->s.m[M_LINK];
    const uint32_t here = fabric_elements(sync, d->sync_pc[t->n] + TARGET_FETCH_AHEAD_BYTES);
    return here | fabric_elements(link, (uint64_t)link + TARGET_FETCH_AHEAD_BYTES);
}

static struct fabric_tile row_of(const struct device *d, struct tile *t) {
    struct fabric_tile row = {.tile = (uint16_t)t->n, .row_address = t->stop.pc, .m = t->s.m,
                              .code_elements = code_elements(d, t), .csr = csr_of(t->s.exchange)};
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++)
        row.workers_active = row.workers_active || t->w[w].active;
    return row;
}

/* The tile whose slot 0 counts for all: the first with a row that waited with `sync 3`, else the first
 * with a row; UINT32_MAX without rows. */
static uint32_t first_row(const struct device *d) {
    uint32_t any = UINT32_MAX;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        if (d->tiles[i].stop.reason != TILE_STOP_ROW) continue;
        if (d->zone[i] == ZONE_INTERNAL) return i;
        if (any == UINT32_MAX) any = i;
    }
    return any;
}

/* Collects the rows of a phase; false when one comes in another cycle. Who has a row without `sync 3`,
 * or the other way round, is the fabric's to refuse (C3): when it will, the cycle of a row behind a
 * `sans` does not matter. */
static bool take_rows(struct device *d, struct device_phase *p, uint32_t *ret_n) {
    uint32_t n = 0;
    const uint32_t first = first_row(d);
    if (first != UINT32_MAX) p->slot0 = d->tiles[first].stop.cycle;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        struct tile *t = &d->tiles[i];
        if (t->stop.reason != TILE_STOP_ROW) continue;
        if (d->zone[i] == ZONE_HOST) {
            device_fault_set(d, DEVICE_FAULT_SYNC, i, "tile %u has a row behind a host sync", i);
            return false;
        }
        const bool refused = d->zone[i] != ZONE_INTERNAL && !d->options.permissive;
        if (t->stop.cycle != p->slot0 && !refused) {
            device_fault_set(d, DEVICE_FAULT_SYNC, i,
                             "slot 0 of tile %u is %" G_GINT64_FORMAT
                             " cycles off that of tile %u: the distances from sync to row differ",
                             i, (gint64)(t->stop.cycle - p->slot0), first);
            return false;
        }
        d->rows[n++] = row_of(d, t);
    }
    *ret_n = n;
    return true;
}

static bool run_rows(struct device *d, struct device_phase *p, uint32_t n) {
    const struct fabric_phase phase = {.sram = d->sram, .tiles = d->rows, .n_tiles = n,
                                       .inactive = &d->inactive,
                                       .flags = d->options.permissive ? FABRIC_PERMISSIVE : 0};
    struct fabric_result result;
    fabric_phase_run(d->fabric, &phase, &result);
    if (!result.ok && !d->options.permissive) {
        device_fault_of_fabric(d, result.first, p->slot0);
        return false;
    }
    d->counters.faults += result.n_errors;
    d->counters.items += result.words_moved;
    d->counters.phases++;
    p->active = n;
    p->horizon = result.horizon;
    p->last_exit = p->slot0 + result.horizon + TARGET_SUPER_BRANCH_CYCLES;
    d->counters.exchange_cycles += p->last_exit - p->last_arrival;
    g_array_append_val(d->phases, *p);
    for (uint32_t i = 0; i < n; i++) {
        struct tile *t = &d->tiles[d->rows[i].tile];
        uint32_t x[TILE_N_EXCHANGE_CSRS];
        memcpy(x, t->s.exchange, sizeof x);
        csr_to(&d->rows[i].csr, x);
        tile_resume_after_row(t, d->rows[i].end_pc, p->slot0 + d->rows[i].slots, x);
    }
    return true;
}

/* One barrier and what follows: at the end every tile waits again, is done or has a fault. */
static bool pass_barrier(struct device *d) {
    struct device_phase p = {0};
    bool host;
    if (!take_arrivals(d, &p, &host)) return false;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) tile_release_sync(&d->tiles[i], p.release);
    run_tiles(d);
    uint32_t n;
    if (!check_stops(d) || !take_rows(d, &p, &n)) return false;
    if (n == 0) return true;
    if (!run_rows(d, &p, n)) return false;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) d->zone[i] = UINT8_MAX;
    for (uint32_t i = 0; i < n; i++) d->zone[d->rows[i].tile] = 0;
    run_tiles(d);
    return check_stops(d);
}

/* --- Marks --- */

static int compare_pc(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The mark at an address of a tile's program. */
static uint32_t mark_at(const struct device *d, uint32_t tile, uint32_t at) {
    const uint32_t *pc = d->mark_pc + d->first_mark[tile] + tile;
    const uint32_t n = d->first_mark[tile + 1] - d->first_mark[tile] + 1;
    const uint32_t *hit = bsearch(&at, pc, n, sizeof *pc, compare_pc);
    BUG_ON(hit == NULL);
    return (uint32_t)(hit - pc);
}

void device_watch_seen(void *device, const struct tile *t, uint32_t pc) {
    struct device *d = device;
    d->options.seen(d->options.seen_user, d, t->n, mark_at(d, t->n, pc));
}

static void name_marks(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    struct device *d = context;
    for (uint32_t k = 0; k < d->watched[i]->len; k++) {
        const struct tile_watch *w = &g_array_index(d->watched[i], struct tile_watch, k);
        const struct device_mark mark = {.mark = mark_at(d, i, w->pc), .cycle = w->cycle};
        g_array_append_val(d->marks[i], mark);
    }
    g_array_set_size(d->watched[i], 0);
}

static void take_counters(struct device *d) {
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        const struct tile *t = &d->tiles[i];
        d->counters.worker_slots += t->counters.worker_slots;
        d->counters.fused_slots += t->counters.fused_slots;
        d->counters.loop_slots += t->counters.loop_slots;
        d->counters.launches += t->counters.launches;
        d->counters.supervisor_instructions += t->s.instructions;
        d->counters.cycles = MAX(d->counters.cycles, t->stop.cycle);
        for (uint32_t f = 0; f < TILE_FAULT_LIMIT; f++)
            d->counters.faults += t->counters.faults[f];
    }
}

static bool run_to_end(struct device *d) {
    run_tiles(d);
    if (!check_stops(d)) return false;
    for (;;) {
        uint32_t n_done = 0;
        for (uint32_t i = 0; i < d->options.n_tiles; i++)
            n_done += d->tiles[i].stop.reason == TILE_STOP_DONE;
        if (n_done == d->options.n_tiles) return true;
        if (n_done != 0) {
            deadlock(d, n_done);
            return false;
        }
        if (!pass_barrier(d)) return false;
    }
}

bool device_model_run(struct device *d) {
    d->fault = (struct device_fault){.kind = DEVICE_FAULT_NONE};
    d->counters = (struct device_counters){0};
    d->max_cycle = d->options.max_cycles != 0 ? d->options.max_cycles : UINT64_MAX;
    g_array_set_size(d->phases, 0);
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        tile_reset(&d->tiles[i]);
        tile_start(&d->tiles[i], d->entry, 0);
        d->zone[i] = 0;
        g_array_set_size(d->watched[i], 0);
        g_array_set_size(d->marks[i], 0);
    }
    const bool ok = run_to_end(d);
    if (d->options.marks) par_for(d->options.n_tiles, name_marks, d);
    take_counters(d);
    return ok;
}
