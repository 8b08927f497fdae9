/* The placement problem of an exchange phase: every source and every destination buffer is a
 * request of its tile, all live together, with the phase as traffic; and the phase at the addresses
 * of a map. */
#ifndef PLACE_EXCHANGE_H
#define PLACE_EXCHANGE_H

#include "exchange/exch.h"
#include "place/place.h"

struct phase_placement {
    struct place_problem *problem;
    struct place_traffic traffic;
    uint32_t *first;                 /* of traffic */
    struct place_traffic_item *item; /* of traffic */
    uint32_t *source_request;        /* [n_transfers] request number */
    uint32_t *recipient_request;     /* [n_recipients] */
};

/* Memory: base .. end of interleaved memory only. */
static inline struct phase_placement phase_placement_new(const struct exch_problem *x,
                                                         uint32_t base, uint32_t end) {
    struct place_memory m = place_memory_c600(false);
    m.n_ranges = 1;
    m.range_base[0] = base;
    m.range_end[0] = end;
    struct place_builder *b = place_builder_new(TARGET_N_TILES, &m);
    const uint32_t name_s = place_builder_name(b, "sent"),
                   name_r = place_builder_name(b, "received");
    uint32_t n = 0, *tile = g_new(uint32_t, x->n_transfers + x->n_recipients);
    for (uint32_t i = 0; i < x->n_transfers; i++) {
        const uint32_t bytes = align_up_u32(4 * x->words[i], 8);
        struct place_request q = {.bytes = bytes, .align = 8, .name = name_s};
        tile[n++] = x->source_tile[i];
        place_builder_add(b, x->source_tile[i], &q);
        q.name = name_r;
        for (uint32_t k = x->first_recipient[i]; k < x->first_recipient[i + 1]; k++) {
            tile[n++] = x->recipient_tile[k];
            place_builder_add(b, x->recipient_tile[k], &q);
        }
    }
    struct phase_placement p = {0};
    uint32_t *number;
    p.problem = place_builder_finish(b, &number);
    p.item = g_new0(struct place_traffic_item, n);
    p.source_request = g_new(uint32_t, x->n_transfers);
    p.recipient_request = g_new(uint32_t, x->n_recipients);
    /* One item per request: the requests' tile ranges are those of the items. */
    for (uint32_t i = 0, h = 0; i < x->n_transfers; i++) {
        const uint32_t bytes = 4 * x->words[i];
        p.source_request[i] = number[h++];
        p.item[p.source_request[i]] =
            (struct place_traffic_item){.request = p.source_request[i], .bytes = bytes};
        for (uint32_t k = x->first_recipient[i]; k < x->first_recipient[i + 1]; k++) {
            const uint32_t r = p.recipient_request[k] = number[h++];
            p.item[r] = (struct place_traffic_item){.request = r, .bytes = bytes, .receive = 1};
        }
    }
    p.first = g_memdup2(p.problem->first, (TARGET_N_TILES + 1) * sizeof(uint32_t));
    p.traffic = (struct place_traffic){TARGET_N_TILES, n, p.first, p.item};
    g_free(number);
    g_free(tile);
    return p;
}

static inline void phase_placement_apply(const struct phase_placement *p, const uint32_t *address,
                                         struct exch_problem *x) {
    for (uint32_t i = 0; i < x->n_transfers; i++)
        x->source_address[i] = address[p->source_request[i]];
    for (uint32_t k = 0; k < x->n_recipients; k++)
        x->recipient_address[k] = address[p->recipient_request[k]];
}

static inline void phase_placement_free(struct phase_placement *p) {
    place_problem_free(p->problem);
    g_free(p->first);
    g_free(p->item);
    g_free(p->source_request);
    g_free(p->recipient_request);
}

#endif
