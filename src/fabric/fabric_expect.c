/* Compares what a phase delivered with a list of transfers. Both are maps from destination bytes to
 * source bytes, so the comparison is exact without looking at any content: per receiver the
 * expected and the delivered ranges are sorted by address and swept once. Order of dependent bytes
 * (H3) is checked only on tiles that read and write the same words. Cost: n log n in receivers. */
#include "fabric/fabric_impl.h"

#include <stdlib.h>
#include <string.h>

void fabric_expect_clear(struct fabric_expect *e) {
    g_free(e->source);
    g_free(e->source_address);
    g_free(e->words);
    g_free(e->first);
    g_free(e->tile);
    g_free(e->address);
    *e = (struct fabric_expect){0};
}

/* One expected range of a receiver: a receiver index of the list and its transfer. */
struct want {
    uint32_t address, end, source_address, transfer, receiver;
    uint16_t source;
};

struct check {
    struct fabric *f;
    const struct fabric_expect *e;
    uint32_t *first;              /* [N_TILES + 1]: wants by receiving tile */
    struct want *wants;           /* of a tile ascending by address */
    uint32_t *read_first, *reads; /* transfers by source tile */
};

static int compare_wants(const void *a, const void *b) {
    const struct want *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return (x->receiver > y->receiver) - (x->receiver < y->receiver);
}

/* Counting sort of the receivers by tile, of the transfers by source. */
static void group(struct check *c) {
    const struct fabric_expect *e = c->e;
    c->first = g_new0(uint32_t, TARGET_N_TILES + 2);
    c->read_first = g_new0(uint32_t, TARGET_N_TILES + 2);
    c->wants = g_new(struct want, e->n_receivers);
    c->reads = g_new(uint32_t, e->n_transfers);
    for (uint32_t k = 0; k < e->n_receivers; k++) c->first[e->tile[k] + 2]++;
    for (uint32_t x = 0; x < e->n_transfers; x++) c->read_first[e->source[x] + 2]++;
    for (uint32_t t = 2; t < TARGET_N_TILES + 2; t++) {
        c->first[t] += c->first[t - 1];
        c->read_first[t] += c->read_first[t - 1];
    }
    for (uint32_t x = 0; x < e->n_transfers; x++) {
        c->reads[c->read_first[e->source[x] + 1]++] = x;
        for (uint32_t k = e->first[x]; k < e->first[x + 1]; k++)
            c->wants[c->first[e->tile[k] + 1]++] =
                (struct want){.address = e->address[k],
                              .end = e->address[k] + 4 * e->words[x],
                              .source_address = e->source_address[x],
                              .transfer = x,
                              .receiver = k,
                              .source = e->source[x]};
    }
}

/* --- One receiver. --- */

struct sweep {
    struct check *c;
    struct fabric *f;
    uint32_t thread, tile;
    const struct want *wants;
    uint32_t n_wants;
    const struct fabric_delivery *d;
    uint32_t n_d;
    bool wrong, missing; /* something differs; words are missing */
    uint32_t wrong_slot, wrong_address;
};

static void differ(struct sweep *s, enum fabric_fault_index what, uint32_t slot, uint32_t address,
                   uint32_t other) {
    fabric_flag(
        s->f, s->thread,
        &(struct flag){
            .what = what, .tile = s->tile, .slot = slot, .address = address, .other = other});
    if (!s->wrong || slot < s->wrong_slot) {
        s->wrong_slot = slot;
        s->wrong_address = address;
    }
    s->wrong = true;
}

static uint32_t stage_of(const struct fabric_delivery *d, uint32_t address) {
    return d->stage + (address - d->destination) / (d->paired ? 8 : 4);
}

/* Where the sender's word would have been selected, had the receiver gone on: M2 when it took
 * another part of the same message. */
static void missing_words(struct sweep *s, const struct want *w, uint32_t from) {
    const uint32_t source = w->source_address + (from - w->address);
    differ(s, FABRIC_H6, 0, from, w->source);
    s->missing = true;
    const uint16_t plan = s->f->plan_of[target_physical_of_logical()[w->source]];
    if (plan == NO_PLAN) return;
    const struct tile_plan *p = &s->f->plans[plan];
    for (uint32_t k = 0; k < p->n_pieces; k++) {
        const struct piece *pc = &s->f->pieces[p->first_piece + k];
        const uint32_t size = (pc->sctl & SCTL_PAIRED) != 0 ? 8 : 4;
        if (source < pc->address || source >= pc->address + pc->n * size) continue;
        const struct message *msg = &s->f->messages[pc->message];
        const bool first = w->receiver == s->c->e->first[w->transfer];
        if (first && !msg->by_self && !msg->by_other)
            fabric_flag(s->f, s->thread,
                        &(struct flag){.what = FABRIC_S4_EXPECTED,
                                       .tile = w->source,
                                       .slot = pc->slot,
                                       .address = source,
                                       .other = s->tile});
        for (uint32_t j = 0; j < s->n_d; j++) {
            const struct fabric_delivery *d = &s->d[j];
            if (d->message != pc->message) continue;
            const int64_t slot =
                (int64_t)d->stage - d->send + pc->slot + (source - pc->address) / size;
            differ(s, FABRIC_M2, slot < 0 ? 0 : (uint32_t)slot, from, w->source);
            return;
        }
    }
}

/* A word came that is not wanted there: wanted elsewhere on this tile (P5) or not at all (M3). */
static void foreign_words(struct sweep *s, const struct fabric_delivery *d, uint32_t from) {
    const uint32_t source = d->source + (from - d->destination);
    bool elsewhere = false;
    for (uint32_t k = 0; k < s->n_wants && !elsewhere; k++) {
        const struct want *w = &s->wants[k];
        elsewhere = w->source == d->source_tile && source >= w->source_address &&
                    source < w->source_address + (w->end - w->address);
    }
    differ(s, elsewhere ? FABRIC_P5 : FABRIC_M3, stage_of(d, from), from, d->source_tile);
}

/* The part [from, end) of a delivery inside one expected range. */
static void match_part(struct sweep *s, const struct want *w, const struct fabric_delivery *d,
                       uint32_t from) {
    const bool same = w->source == d->source_tile && d->source + (from - d->destination) ==
                                                         w->source_address + (from - w->address);
    if (!same) foreign_words(s, d, from);
}

static void sweep_tile(struct sweep *s, const uint32_t *order) {
    uint32_t k = 0, covered = s->n_wants > 0 ? s->wants[0].address : 0;
    for (uint32_t j = 0; j < s->n_d; j++) {
        const struct fabric_delivery *d = &s->d[order[j]];
        const uint32_t end = d->destination + d->items * (d->paired ? 8 : 4);
        uint32_t at = d->destination;
        while (at < end) {
            while (k < s->n_wants && s->wants[k].end <= at) {
                if (covered < s->wants[k].end) missing_words(s, &s->wants[k], covered);
                if (++k < s->n_wants) covered = s->wants[k].address;
            }
            if (k == s->n_wants || at < s->wants[k].address) {
                foreign_words(s, d, at);
                at = k == s->n_wants ? end : MIN(end, s->wants[k].address);
                continue;
            }
            const struct want *w = &s->wants[k];
            const uint32_t stop = MIN(end, w->end);
            if (at < covered) differ(s, FABRIC_C4, stage_of(d, at), at, d->source_tile);
            if (at > covered) missing_words(s, w, covered);
            match_part(s, w, d, at);
            covered = MAX(covered, stop);
            at = stop;
        }
    }
    for (; k < s->n_wants; k++) {
        if (covered < s->wants[k].end) missing_words(s, &s->wants[k], covered);
        if (k + 1 < s->n_wants) covered = s->wants[k + 1].address;
    }
}

struct keyed {
    uint32_t address, index;
};
static int compare_keyed(const void *a, const void *b) {
    const struct keyed *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Deliveries of a tile by destination address: indices in the worker's scratch. */
static const uint32_t *order_deliveries(struct worker *me, const struct fabric_delivery *d,
                                        uint32_t n) {
    fabric_grow_u32((void **)&me->scratch, &me->capacity_scratch, 2 * n + 2, sizeof *me->scratch);
    struct keyed *keys = (struct keyed *)me->scratch;
    bool sorted = true;
    for (uint32_t k = 0; k < n; k++) {
        keys[k] = (struct keyed){d[k].destination, k};
        sorted &= k == 0 || keys[k - 1].address <= keys[k].address;
    }
    if (!sorted) qsort(keys, n, sizeof *keys, compare_keyed);
    for (uint32_t k = 0; k < n; k++) me->scratch[k] = keys[k].index;
    return me->scratch;
}

/* --- Order of dependent bytes. --- */

/* Slots at which byte `address` of the tile is read for a delivery / written by a delivery. */
static int64_t read_slot(const struct fabric_delivery *d, uint32_t source) {
    return (int64_t)d->send + (source - d->source) / (d->paired ? 8 : 4);
}
static int64_t write_slot(const struct fabric_delivery *d, uint32_t address) {
    return (int64_t)stage_of(d, address) + TARGET_EXCH_WRITE_DELAY;
}

/* Both slots are linear over the common bytes [from, end): the two ends decide. */
static void check_order(struct sweep *s, const struct fabric_delivery *read, uint32_t reader,
                        const struct fabric_delivery *write, uint32_t writer) {
    const uint32_t read_end = read->source + read->items * (read->paired ? 8 : 4);
    const uint32_t write_end = write->destination + write->items * (write->paired ? 8 : 4);
    const uint32_t from = MAX(read->source, write->destination), end = MIN(read_end, write_end);
    if (from >= end) return;
    const uint32_t ends[] = {from, end - 4};
    for (uint32_t k = 0; k < 2; k++) {
        const bool fresh = read_slot(read, ends[k]) >= write_slot(write, ends[k]);
        if (fresh == (writer < reader)) continue;
        differ(s, FABRIC_H3, (uint32_t)read_slot(read, ends[k]), ends[k], write->source_tile);
        return;
    }
}

/* The transfer that wants the delivery's first byte, or UINT32_MAX. */
static uint32_t transfer_of(const struct want *w, uint32_t n, uint32_t address) {
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (w[mid].end <= address) lo = mid + 1;
        else hi = mid;
    }
    return lo < n && w[lo].address <= address ? w[lo].transfer : UINT32_MAX;
}

/* All deliveries that carry transfer x to receiver k against all writes of this tile. */
static void check_reader(struct sweep *s, uint32_t x, uint32_t k) {
    const struct check *c = s->c;
    uint32_t n;
    const uint32_t tile = c->e->tile[k];
    const struct fabric_delivery *d = fabric_deliveries(s->f, tile, &n);
    const uint32_t from = c->e->address[k], end = from + 4 * c->e->words[x];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t bytes = d[i].items * (d[i].paired ? 8 : 4);
        if (d[i].destination >= end || d[i].destination + bytes <= from) continue;
        if (d[i].source_tile != s->tile) continue;
        for (uint32_t j = 0; j < s->n_d; j++) {
            const uint32_t writer = transfer_of(s->wants, s->n_wants, s->d[j].destination);
            if (writer != UINT32_MAX) check_order(s, &d[i], x, &s->d[j], writer);
        }
    }
}

static void check_dependencies(struct sweep *s) {
    const struct check *c = s->c;
    for (uint32_t i = c->read_first[s->tile]; i < c->read_first[s->tile + 1]; i++) {
        const uint32_t x = c->reads[i];
        for (uint32_t k = c->e->first[x]; k < c->e->first[x + 1]; k++) check_reader(s, x, k);
    }
}

/* M1 inside an expected message: an idle interval on a tile that misses words. */
static void promote_idle(struct sweep *s, const struct fabric_result *before) {
    for (uint32_t k = 0; k < before->n_errors + before->n_warnings; k++) {
        const struct fabric_fault *x = &before->faults[k];
        if (x->what == FABRIC_M1 && x->tile == s->tile)
            differ(s, FABRIC_M1_MISSING, x->slot, 0, x->other);
    }
}

struct job {
    struct check *c;
    const struct fabric_result *before;
};

static void check_tile(uint32_t tile, uint32_t thread, void *context) {
    const struct job *job = context;
    struct check *c = job->c;
    struct fabric *f = c->f;
    struct sweep s = {.c = c,
                      .f = f,
                      .thread = thread,
                      .tile = tile,
                      .wants = c->wants + c->first[tile],
                      .n_wants = c->first[tile + 1] - c->first[tile]};
    s.d = fabric_deliveries(f, tile, &s.n_d);
    if (s.n_wants == 0 && s.n_d == 0) return;
    struct want *wants = c->wants + c->first[tile];
    qsort(wants, s.n_wants, sizeof *wants, compare_wants);
    sweep_tile(&s, order_deliveries(&f->workers[thread], s.d, s.n_d));
    if (s.wrong) {
        if (s.missing) promote_idle(&s, job->before);
        differ(&s, FABRIC_C4, s.wrong_slot, s.wrong_address, FABRIC_NO_TILE);
    }
}

static void check_tile_order(uint32_t tile, uint32_t thread, void *context) {
    const struct job *job = context;
    struct check *c = job->c;
    const uint16_t i = c->f->plan_of[target_physical_of_logical()[tile]];
    if (i == NO_PLAN || !c->f->plans[i].hazard) return;
    struct sweep s = {.c = c,
                      .f = c->f,
                      .thread = thread,
                      .tile = tile,
                      .wants = c->wants + c->first[tile],
                      .n_wants = c->first[tile + 1] - c->first[tile]};
    s.d = fabric_deliveries(c->f, tile, &s.n_d);
    check_dependencies(&s);
}

void fabric_expect_check(struct fabric *f, const struct fabric_expect *e,
                         struct fabric_result *result) {
    struct check c = {.f = f, .e = e};
    group(&c);
    struct job job = {&c, result};
    par_for(TARGET_N_TILES, check_tile, &job);
    par_for(TARGET_N_TILES, check_tile_order, &job);
    g_free(c.first);
    g_free(c.wants);
    g_free(c.read_first);
    g_free(c.reads);
    fabric_faults_collect(f, result);
}
