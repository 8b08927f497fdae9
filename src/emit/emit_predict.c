/* The prediction: the program of every tile replayed step by step with the costs that were counted
 * while emitting. Between syncs tiles are independent; a phase starts SYNC_INTERNAL_CYCLES after its
 * last arrival, takes a call, its rows' horizons and a return. From the second iteration of a repeat on
 * each takes every tile the same time: a phase leaves the tiles at fixed distances from each other, and
 * without one a tile's time does not depend on the others. So at most three are replayed, the second
 * for all between. Cost: steps x tiles. */
#include "emit/emit_code.h"

#include <string.h>

enum { CALL_CYCLES = TARGET_SUPER_BRANCH_CYCLES }; /* sync to slot 0; return of a row */

struct replay {
    const struct emit_request *r;
    const struct emit_cost *cost;
    struct emit_result *e;
    uint64_t *now;   /* [n_tiles] */
    uint32_t *mark;  /* [n_tiles] next mark of the tile, absolute */
    uint64_t first_entry;
    bool first_iteration;
    uint64_t exchange_cycles;
};

/* Takes the tile's next mark, if it is of this step; TG_NONE otherwise. */
static uint32_t take_mark(struct replay *p, uint32_t t, uint32_t step) {
    struct emit_result *e = p->e;
    const uint32_t m = p->mark[t];
    if (!p->first_iteration || m == e->first_mark[t + 1] || e->marks[m].step != step)
        return TG_NONE;
    p->mark[t]++;
    e->predicted_start[m] = (uint32_t)p->now[t];
    if (m == e->first_mark[t]) p->first_entry = MAX(p->first_entry, p->now[t]);
    return m;
}

static void replay_exchange(struct replay *p, uint32_t step, uint32_t exchange) {
    const uint32_t n = p->e->n_tiles, n_steps = p->r->graph->n_steps;
    const struct exch_result *x = p->r->rows[exchange];
    uint64_t last = 0, exit = 0;
    for (uint32_t t = 0; t < n; t++)
        last = MAX(last, p->now[t] + p->cost[(size_t)t * n_steps + step].before);
    const uint64_t release = last + TARGET_SYNC_INTERNAL_CYCLES;
    for (uint32_t t = 0; t < n; t++) {
        const struct emit_cost *c = &p->cost[(size_t)t * n_steps + step];
        const uint32_t m = take_mark(p, t, step);
        p->now[t] = release;
        if (c->active) p->now[t] += CALL_CYCLES + x->tile_horizon[t] + CALL_CYCLES;
        exit = MAX(exit, p->now[t]);
        p->now[t] += c->after;
        if (m != TG_NONE) p->e->predicted_end[m] = (uint32_t)p->now[t];
    }
    p->exchange_cycles += exit - last;
}

static void replay_local(struct replay *p, uint32_t step) {
    const uint32_t n = p->e->n_tiles, n_steps = p->r->graph->n_steps;
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t m = take_mark(p, t, step);
        p->now[t] += p->cost[(size_t)t * n_steps + step].before;
        if (m != TG_NONE) p->e->predicted_end[m] = (uint32_t)p->now[t];
    }
}

/* Back to the head of the loop. In front of the last iteration the repeat's own mark ends: it stands
 * for those before, where the program has one. */
static void turn(struct replay *p, uint32_t begin, uint32_t end, bool last) {
    struct emit_result *e = p->e;
    const uint32_t n_steps = p->r->graph->n_steps;
    for (uint32_t t = 0; t < e->n_tiles; t++) {
        p->now[t] += p->cost[(size_t)t * n_steps + end].after;
        for (uint32_t m = e->first_mark[t]; last && m < p->mark[t]; m++)
            if (e->marks[m].step == begin) e->predicted_end[m] = (uint32_t)p->now[t];
    }
}

/* What the iteration took since `before`, the end of the one before, `times` times more. */
static void skip_iterations(struct replay *p, const uint64_t *before, uint64_t exchange_before,
                            uint32_t times) {
    for (uint32_t t = 0; t < p->e->n_tiles; t++) p->now[t] += times * (p->now[t] - before[t]);
    p->exchange_cycles += times * (p->exchange_cycles - exchange_before);
}

static void replay_steps(struct replay *p) {
    const struct tile_graph *g = p->r->graph;
    uint32_t begin = 0, begin_exchange = 0, left = 0, exchange = 0;
    uint64_t *before = g_new0(uint64_t, p->e->n_tiles + 1), exchange_before = 0;
    for (uint32_t step = 0; step < g->n_steps; step++) {
        if (g->steps[step].kind == TG_EXCHANGE) {
            replay_exchange(p, step, exchange++);
            continue;
        }
        replay_local(p, step);
        if (g->steps[step].kind == TG_REPEAT_BEGIN) {
            begin = step;
            begin_exchange = exchange;
            left = g->steps[step].count;
        } else if (g->steps[step].kind == TG_REPEAT_END) {
            const uint32_t done = g->steps[begin].count - --left;
            p->first_iteration = left == 0;
            if (left == 0) continue;
            if (done == 2) {
                skip_iterations(p, before, exchange_before, left - 1);
                left = 1;
            }
            memcpy(before, p->now, sizeof *before * p->e->n_tiles);
            exchange_before = p->exchange_cycles;
            turn(p, begin, step, left == 1);
            step = begin;
            exchange = begin_exchange;
        }
    }
    g_free(before);
}

void emit_predict(const struct emit_request *r, const struct emit_cost *cost,
                  const uint32_t *start, struct emit_result *e) {
    const uint32_t n_marks = e->first_mark[e->n_tiles];
    e->predicted_start = arena_new_array(e->arena, uint32_t, n_marks);
    e->predicted_end = arena_new_array(e->arena, uint32_t, n_marks);
    struct replay p = {.r = r, .cost = cost, .e = e, .now = g_new0(uint64_t, e->n_tiles),
                       .mark = g_new0(uint32_t, e->n_tiles), .first_iteration = true};
    for (uint32_t t = 0; t < e->n_tiles; t++) {
        p.now[t] = start[t];
        p.mark[t] = e->first_mark[t];
    }
    replay_steps(&p);
    uint64_t end = 0;
    for (uint32_t t = 0; t < e->n_tiles; t++)
        if (e->first_mark[t] != e->first_mark[t + 1]) end = MAX(end, p.now[t]);
    e->cycles_predicted = end > p.first_entry ? end - p.first_entry : 0;
    e->exchange_cycles = p.exchange_cycles;
    g_free(p.now);
    g_free(p.mark);
}
