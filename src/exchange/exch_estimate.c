/* Estimates without a schedule, for planning: one pass over the transfers.
 *
 * Row bytes are the words of exchange 7.4 counted (control_words): a send one, two above 64 items, and
 * a delay; a receive a multiplexer control, a neutral, and a pointer unless it continues at the address
 * where the previous transfer to the tile ended; 8 bytes per tile. The horizon is the bound times what the scheduler loses on phases of that kind (measured on
 * the kinds of exchange 16 and the captured phases): little where a tile has many messages, more
 * where it has a few long ones that must be matched. */
#include "exchange/exch_int.h"

#include <string.h>

enum { CHUNK = 64 }; /* items of a send that one word holds */

struct tally {
    uint32_t *send, *receive, *lane, *n_send, *n_receive, *bytes;
    uint32_t *pointers, *long_items; /* receives that need one; items of sends of more than a chunk */
};

static void add_sender(const struct exch_problem *p, const struct tally *k, uint32_t x,
                       bool paired) {
    const uint32_t t = p->source_tile[x], items = paired ? p->words[x] / 2 : p->words[x];
    k->send[t] += items;
    if (paired) k->lane[t ^ 1] += items;
    k->n_send[t]++;
    k->bytes[t] += items > CHUNK ? 8 : 4;
    if (items > CHUNK && p->first_recipient[x + 1] - p->first_recipient[x] > 2)
        k->long_items[t] += items;
}

static void add_receivers(const struct exch_problem *p, const struct tally *k, uint32_t x,
                          bool paired, uint32_t *next) {
    const uint32_t items = paired ? p->words[x] / 2 : p->words[x];
    for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++) {
        const uint32_t t = p->recipient_tile[r], at = p->recipient_address[r];
        k->receive[t] += items;
        k->n_receive[t]++;
        k->pointers[t] += at == 0 || at != next[t];
        next[t] = at + 4 * p->words[x];
    }
}

/* Loss over the bound in 1/1024, by messages of the busiest tile. */
static uint32_t loss(uint32_t n_messages) {
    static const struct {
        uint32_t n, loss;
    } table[] = {{2, 10}, {8, 90}, {32, 70}, {128, 50}, {UINT32_MAX, 25}};
    uint32_t i = 0;
    while (n_messages > table[i].n) i++;
    return table[i].loss;
}

/* Row words of a tile beyond its sends. A receive has a multiplexer control, a pointer control unless
 * the buffer goes on, and a neutral if the bus then idles; a send in front of which the tile idles has a
 * delay: there are no more of these than idle slots. A control inside a long send cuts it: a chunk that
 * ends at the control and, where the next is further away, a word or two up to it. That is counted for
 * multicast, whose arrivals have nothing to do with the tile's own sends; where unicasts are dense they
 * end together. */
static uint32_t control_words(const struct tally *k, uint32_t t, uint32_t horizon) {
    const uint32_t idle_in = horizon - MIN(k->receive[t], horizon);
    const uint32_t idle_out = horizon - MIN(k->send[t], horizon);
    const uint32_t controls =
        k->n_receive[t] + k->pointers[t] + MIN(k->n_receive[t], idle_in);
    if (controls == 0) return MIN(k->n_send[t], idle_out);
    const uint32_t inside = (uint32_t)((uint64_t)controls * k->long_items[t] / horizon);
    const uint32_t apart = horizon / controls;
    return controls + MIN(k->n_send[t], idle_out) +
           (apart > 2 * CHUNK ? 2 : apart > CHUNK ? 1 : 0) * inside;
}

void exch_estimate(const struct exch_problem *p, const struct exch_load *load,
                   struct exch_estimate *ret) {
    enum { N = TARGET_N_TILES };
    uint32_t *own = g_new0(uint32_t, 9 * N), *next = own + 6 * N;
    struct tally k = {own,         own + N,     own + 2 * N, own + 3 * N,
                      own + 4 * N, own + 5 * N, own + 7 * N, own + 8 * N};
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        const bool paired =
            exch_pairable(p, x) && (p->width == NULL || p->width[x] != EXCH_WIDTH_ORDINARY);
        add_sender(p, &k, x, paired);
        add_receivers(p, &k, x, paired, next);
    }
    *ret = (struct exch_estimate){0};
    uint32_t most = 0, busiest = 0;
    for (uint32_t t = 0; t < N; t++) {
        const uint32_t work = MAX(k.send[t] + k.lane[t], k.receive[t]);
        if (work > most) {
            most = work;
            busiest = MAX(k.n_send[t], k.n_receive[t]);
        }
    }
    struct exch_bounds bounds;
    exch_bounds(p, &bounds);
    ret->bound = bounds.any_width;
    const uint64_t base = MAX(bounds.any_width, most);
    const uint32_t lost = (uint32_t)(base * loss(busiest) / 1024);
    ret->horizon = (uint32_t)base + lost;
    for (uint32_t t = 0; t < N; t++) {
        if (k.n_send[t] + k.n_receive[t] == 0) continue;
        k.bytes[t] = align_up_u32(k.bytes[t] + 4 * control_words(&k, t, ret->horizon) + 8, 8);
        ret->row_bytes_max = MAX(ret->row_bytes_max, k.bytes[t]);
        ret->row_bytes_total += k.bytes[t];
    }
    if (load != NULL) {
        uint32_t *const to[] = {load->send_items, load->receive_items, load->lane_items,
                                load->n_sends,    load->n_receives,    load->row_bytes};
        for (uint32_t i = 0; i < ARRAY_LEN(to); i++)
            if (to[i] != NULL) memcpy(to[i], own + i * N, N * sizeof *own);
    }
    g_free(own);
}
