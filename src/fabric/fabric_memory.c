/* Memory of one phase: element windows (H1, H2), loopback (H7), never written words (H5), and the
 * moves themselves.
 *
 * Most tiles read and write different words in a phase; then every source still holds what it held
 * before, and all deliveries are block copies in any order of tiles. A tile that reads a word which
 * the phase also writes is a hazard tile: its overlapping messages are read into a staging buffer
 * at their first slot and the deliveries to it are written at the slot of their last word, all
 * hazard tiles together in order of slots. That order is a correct one for data that passes through
 * several tiles, because every item is written at a larger slot number than it was read (exchange
 * 1.5: at least 25). Reading and writing whole messages is exact while no window of 6.2-1 is
 * violated; on tiles where one is (only when faults are counted instead of refused) it is done word
 * by word. Cost: deliveries, plus their words / 64 for tiles that both send and receive. */
#include "fabric/fabric_impl.h"

#include <stdlib.h>
#include <string.h>

uint32_t fabric_elements(uint64_t address, uint64_t end) {
    const uint64_t from = MAX(address, TARGET_SRAM_BASE), to = MIN(end, TARGET_SRAM_END);
    if (from >= to) return 0;
    const uint32_t a = target_element((uint32_t)from), b = target_element((uint32_t)(to - 1));
    return ((2u << b) - 1) & ~((1u << a) - 1);
}

static uint32_t delivery_bytes(const struct fabric_delivery *d) {
    return d->items * (d->paired ? 8 : 4);
}
static uint32_t delivery_elements(const struct fabric_delivery *d) {
    return fabric_elements(d->destination, (uint64_t)d->destination + delivery_bytes(d));
}

/* --- Checks. --- */

struct mem {
    struct fabric *f;
    struct tile_plan *p;
    struct worker *me;
    uint32_t thread;
};

static void flag(const struct mem *m, enum fabric_fault_index what, uint32_t slot,
                 const struct fabric_delivery *d) {
    fabric_flag(m->f, m->thread,
                &(struct flag){.what = what,
                               .tile = m->p->tile,
                               .slot = slot,
                               .address = d->destination,
                               .other = d->source_tile});
}

/* H1: deliveries of one message form a write window [p, p + n + 5), compared in raw numbers with
 * the read windows [S, S + n) of the tile's messages (exchange 6.2-1). */
static void check_windows(struct mem *m) {
    const struct message *msg = m->f->messages + m->p->first_message;
    const struct fabric_delivery *d = fabric_plan_deliveries(m->f, m->p);
    const uint32_t n = m->p->n_deliveries;
    uint32_t first = 0;
    for (uint32_t i = 0, j; i < n; i = j) {
        uint32_t elements = 0, end = 0;
        for (j = i; j < n && d[j].message == d[i].message; j++) {
            elements |= delivery_elements(&d[j]);
            end = MAX(end, d[j].stage + d[j].items);
        }
        const uint32_t from = d[i].stage + 1, to = end + 1 + TARGET_EXCH_TAIL_GUARD;
        while (first < m->p->n_messages && msg[first].end <= from) first++;
        for (uint32_t k = first; k < m->p->n_messages && msg[k].slot < to; k++)
            if ((msg[k].elements & elements) != 0) {
                flag(m, FABRIC_H1, MAX(msg[k].slot, d[i].stage), &d[i]);
                m->p->conflict = true;
            }
    }
}

/* H2: the row's elements (and those of running code) belong to the fetch alone. */
static void check_fetch(struct mem *m, uint32_t code) {
    const struct tile_plan *p = m->p;
    uint32_t held = code;
    if (p->row_address != 0) held |= fabric_elements(p->row_address, p->row_end);
    if (held == 0) return;
    for (uint32_t k = 0; k < p->n_messages; k++) {
        const struct message *msg = &m->f->messages[p->first_message + k];
        if ((msg->elements & held) == 0) continue;
        fabric_flag(m->f, m->thread,
                    &(struct flag){.what = FABRIC_H2,
                                   .tile = p->tile,
                                   .slot = msg->slot,
                                   .other = FABRIC_NO_TILE,
                                   .address = m->f->pieces[msg->first_piece].address});
    }
    const struct fabric_delivery *d = fabric_plan_deliveries(m->f, p);
    for (uint32_t k = 0; k < p->n_deliveries; k++)
        if ((delivery_elements(&d[k]) & held) != 0) flag(m, FABRIC_H2, d[k].stage, &d[k]);
}

struct byte_range {
    uint32_t from, end;
};

static struct byte_range clip(uint32_t address, uint32_t bytes) {
    const uint64_t end = MIN((uint64_t)address + bytes, TARGET_SRAM_END);
    const uint32_t from = MAX(address, TARGET_SRAM_BASE);
    return (struct byte_range){from, end > from ? (uint32_t)end : from};
}
static struct byte_range piece_range(const struct piece *pc) {
    if ((pc->sctl & SCTL_DIRECTIONS) == 0) return (struct byte_range){0, 0};
    return clip(pc->address, pc->n * ((pc->sctl & SCTL_PAIRED) != 0 ? 8 : 4));
}
static struct byte_range delivery_range(const struct fabric_delivery *d) {
    return clip(d->destination, delivery_bytes(d));
}

/* Applies `op` to the bitmap words of a range: 0 sets, 1 clears, 2 tests; true when a bit was
 * set. */
enum bit_op { BIT_SET, BIT_CLEAR, BIT_TEST };
static bool range_bits(uint64_t *bitmap, struct byte_range r, enum bit_op op) {
    if (r.from >= r.end) return false;
    const uint32_t a = (r.from - TARGET_SRAM_BASE) / 4, b = (r.end - TARGET_SRAM_BASE + 3) / 4;
    for (uint32_t i = a / 64; i <= (b - 1) / 64; i++) {
        uint64_t mask = ~UINT64_C(0);
        if (i == a / 64) mask &= ~UINT64_C(0) << (a & 63);
        if (i == (b - 1) / 64) mask &= ~UINT64_C(0) >> (63 - ((b - 1) & 63));
        if (op == BIT_SET) bitmap[i] |= mask;
        else if (op == BIT_CLEAR) bitmap[i] &= ~mask;
        else if ((bitmap[i] & mask) != 0) return true;
    }
    return false;
}

/* Whether the spans of all reads and all writes meet at all. */
static bool spans_meet(const struct mem *m) {
    struct byte_range reads = {UINT32_MAX, 0}, writes = {UINT32_MAX, 0};
    for (uint32_t k = 0; k < m->p->n_pieces; k++) {
        const struct byte_range r = piece_range(&m->f->pieces[m->p->first_piece + k]);
        if (r.from == r.end) continue;
        reads = (struct byte_range){MIN(reads.from, r.from), MAX(reads.end, r.end)};
    }
    const struct fabric_delivery *d = fabric_plan_deliveries(m->f, m->p);
    for (uint32_t k = 0; k < m->p->n_deliveries; k++) {
        const struct byte_range r = delivery_range(&d[k]);
        writes = (struct byte_range){MIN(writes.from, r.from), MAX(writes.end, r.end)};
    }
    return MAX(reads.from, writes.from) < MIN(reads.end, writes.end);
}

/* Marks the messages that read a word which a delivery of this phase writes. */
static void find_hazards(struct mem *m) {
    struct tile_plan *p = m->p;
    if (p->n_pieces == 0 || p->n_deliveries == 0 || !spans_meet(m)) return;
    if (m->me->bitmap == NULL) m->me->bitmap = g_new0(uint64_t, SRAM_WRITTEN_WORDS);
    const struct fabric_delivery *d = fabric_plan_deliveries(m->f, p);
    for (uint32_t k = 0; k < p->n_deliveries; k++)
        range_bits(m->me->bitmap, delivery_range(&d[k]), BIT_SET);
    for (uint32_t k = 0; k < p->n_pieces; k++) {
        const struct piece *pc = &m->f->pieces[p->first_piece + k];
        if (!range_bits(m->me->bitmap, piece_range(pc), BIT_TEST)) continue;
        m->f->messages[pc->message].staging = 0;
        p->hazard = true;
    }
    for (uint32_t k = 0; k < p->n_deliveries; k++)
        range_bits(m->me->bitmap, delivery_range(&d[k]), BIT_CLEAR);
}

/* H7 and S4 of the messages of one tile, after all tiles have received. */
static void check_listeners(struct mem *m) {
    const struct message *msg = m->f->messages + m->p->first_message;
    for (uint32_t k = 0; k < m->p->n_messages; k++) {
        if (msg[k].by_other) continue;
        fabric_flag(m->f, m->thread,
                    &(struct flag){.what = msg[k].by_self ? FABRIC_H7 : FABRIC_S4,
                                   .tile = m->p->tile,
                                   .slot = msg[k].slot,
                                   .other = FABRIC_NO_TILE,
                                   .address = m->f->pieces[msg[k].first_piece].address});
    }
}

void fabric_memory_check(struct fabric *f, uint32_t i, uint32_t thread) {
    struct mem m = {.f = f, .p = &f->plans[i], .me = &f->workers[thread], .thread = thread};
    check_listeners(&m);
    if ((f->phase->flags & FABRIC_ANY_ADDRESS) != 0) return;
    check_windows(&m);
    check_fetch(&m, f->phase->tiles[i].code_elements);
    find_hazards(&m);
}

/* H5 of one piece; `first` and n are items of it. */
static void check_written(struct fabric *f, uint32_t thread, const struct piece *pc,
                          uint32_t sender) {
    if (pc->bad || (pc->sctl & SCTL_DIRECTIONS) == 0) return;
    const uint32_t size = (pc->sctl & SCTL_PAIRED) != 0 ? 8 : 4;
    const uint32_t missing =
        sram_first_unwritten(f->phase->sram, sender, pc->address, pc->n * size);
    if (missing == UINT32_MAX) return;
    fabric_flag(f, thread,
                &(struct flag){.what = FABRIC_H5,
                               .tile = sender,
                               .slot = pc->slot + (missing - pc->address) / size,
                               .address = missing,
                               .other = FABRIC_NO_TILE});
}

void fabric_memory_source(struct fabric *f, uint32_t i, uint32_t thread) {
    const struct tile_plan *p = &f->plans[i];
    for (uint32_t k = 0; k < p->n_pieces; k++) {
        const struct piece *pc = &f->pieces[p->first_piece + k];
        if (f->messages[pc->message].staging == NO_STAGING) check_written(f, thread, pc, p->tile);
    }
}

/* --- Moves. --- */

static void copy_items(struct fabric *f, const struct tile_plan *to,
                       const struct fabric_delivery *d, uint32_t first, uint32_t n) {
    const uint32_t size = d->paired ? 8 : 4;
    const uint32_t bytes = n * size, source = d->source + first * size;
    const uint32_t destination = d->destination + first * size;
    struct sram *s = f->phase->sram;
    const bool ok = sram_range_ok(source, bytes) && sram_range_ok(destination, bytes) &&
                    (source | destination) % 4 == 0;
    if (!ok) return; /* flagged before: S2, S3, P3 */
    const struct message *msg = &f->messages[d->message];
    const uint8_t *from =
        msg->staging == NO_STAGING
            ? sram_at(s, d->source_tile, source)
            : f->staging + (size_t)msg->staging * 8 + (size_t)(d->send + first - msg->slot) * size;
    memcpy(sram_at(s, to->tile, destination), from, bytes);
    sram_mark_written(s, to->tile, destination, bytes);
}

static void move_tile(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    struct fabric *f = context;
    const struct tile_plan *p = &f->plans[i];
    if (p->hazard) return;
    const struct fabric_delivery *d = fabric_plan_deliveries(f, p);
    for (uint32_t k = 0; k < p->n_deliveries; k++) copy_items(f, p, &d[k], 0, d[k].items);
}

/* Reads items [first, first + n) of a message into its staging place. */
static void capture_items(struct fabric *f, const struct message *msg, uint32_t first, uint32_t n) {
    const uint32_t sender = f->plans[msg->sender].tile, size = msg->item_bytes;
    for (uint32_t k = 0; k < msg->n_pieces; k++) {
        const struct piece *pc = &f->pieces[msg->first_piece + k];
        const uint32_t from = MAX(pc->slot, msg->slot + first);
        const uint32_t end = MIN(pc->slot + pc->n, msg->slot + first + n);
        if (from >= end || pc->bad) continue;
        struct piece part = *pc;
        part.slot = from;
        part.n = end - from;
        part.address = pc->address + (from - pc->slot) * size;
        check_written(f, 0, &part, sender);
        if ((pc->sctl & SCTL_DIRECTIONS) == 0) continue;
        memcpy(f->staging + (size_t)msg->staging * 8 + (size_t)(from - msg->slot) * size,
               sram_at(f->phase->sram, sender, part.address), (size_t)part.n * size);
    }
}

static void add_event(struct fabric *f, const struct move_event *e) {
    fabric_grow((void **)&f->events, &f->capacity_events, f->n_events + 1, sizeof *f->events);
    f->events[f->n_events++] = *e;
}

/* As one event at slot `whole`, or item by item from slot `single` on. */
static void add_events(struct fabric *f, struct move_event e, uint32_t single, bool by_item) {
    if (!by_item) {
        add_event(f, &e);
        return;
    }
    const uint32_t n = e.n;
    e.n = 1;
    for (e.first = 0; e.first < n; e.first++) {
        e.slot = single + e.first;
        add_event(f, &e);
    }
}

static int compare_events(const void *a, const void *b) {
    const struct move_event *x = a, *y = b;
    if (x->slot != y->slot) return x->slot < y->slot ? -1 : 1;
    if (x->capture != y->capture) return x->capture ? 1 : -1;
    if (x->plan != y->plan) return x->plan < y->plan ? -1 : 1;
    if (x->index != y->index) return x->index < y->index ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static void hazard_events(struct fabric *f, uint16_t i, uint64_t *staging) {
    const struct tile_plan *p = &f->plans[i];
    for (uint32_t k = p->first_message; k < p->first_message + p->n_messages; k++) {
        struct message *msg = &f->messages[k];
        if (msg->staging == NO_STAGING) continue;
        const uint32_t n = msg->end - msg->slot;
        msg->staging = (uint32_t)*staging;
        *staging += ((uint64_t)n * msg->item_bytes + 7) / 8;
        add_events(
            f,
            (struct move_event){.slot = msg->slot, .plan = i, .capture = true, .index = k, .n = n},
            msg->slot, p->conflict);
    }
    const struct fabric_delivery *d = fabric_plan_deliveries(f, p);
    for (uint32_t k = 0; k < p->n_deliveries; k++)
        add_events(
            f,
            (struct move_event){.slot = d[k].stage + d[k].items - 1 + TARGET_EXCH_WRITE_DELAY,
                                .plan = i,
                                .index = k,
                                .n = d[k].items},
            d[k].stage + TARGET_EXCH_WRITE_DELAY, p->conflict);
}

static void move_hazards(struct fabric *f) {
    uint64_t staging = 0;
    f->n_events = 0;
    for (uint32_t i = 0; i < f->n_plans; i++)
        if (f->plans[i].hazard) hazard_events(f, (uint16_t)i, &staging);
    if (f->n_events == 0) return;
    BUG_ON(staging >= NO_STAGING);
    fabric_grow((void **)&f->staging, &f->capacity_staging, (size_t)staging * 8, 1);
    qsort(f->events, f->n_events, sizeof *f->events, compare_events);
    for (size_t k = 0; k < f->n_events; k++) {
        const struct move_event *e = &f->events[k];
        const struct tile_plan *p = &f->plans[e->plan];
        if (e->capture) capture_items(f, &f->messages[e->index], e->first, e->n);
        else copy_items(f, p, &fabric_plan_deliveries(f, p)[e->index], e->first, e->n);
    }
}

void fabric_memory_move(struct fabric *f) {
    move_hazards(f);
    par_for(f->n_plans, move_tile, f);
}
