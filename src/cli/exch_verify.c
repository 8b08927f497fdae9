/* Runs the rows of a phase on the fabric, deliveries only (no SRAM contents). */
#include "cli/exch_verify.h"

#include <string.h>

static struct fabric_tile *make_tiles(const struct exch_result *r, uint32_t iteration,
                                      uint32_t *ret_n) {
    struct fabric_tile *tiles = g_new0(struct fabric_tile, r->n_tiles);
    uint32_t n = 0;
    for (uint32_t t = 0; t < r->n_tiles; t++) {
        if (!r->active[t]) continue;
        struct fabric_tile *f = &tiles[n++];
        f->tile = (uint16_t)t;
        f->words = r->words + r->first_word[t];
        f->n_words = r->first_word[t + 1] - r->first_word[t];
        f->csr = fabric_csr_initial();
        f->csr.incoming_base = r->incoming_base[t];
        if (r->outgoing_base[t] == EXCH_BASE_MOVING)
            f->csr.outgoing_base = (uint32_t)r->moving_stride[t] * iteration;
    }
    *ret_n = n;
    return tiles;
}

/* The problem as the fabric wants it; the recipient arrays are the problem's own. */
static struct fabric_expect make_expect(const struct exch_problem *p, uint32_t iteration) {
    struct fabric_expect e = {.n_transfers = p->n_transfers,
                              .n_receivers = p->n_recipients,
                              .source = p->source_tile,
                              .words = p->words,
                              .first = p->first_recipient,
                              .tile = p->recipient_tile,
                              .address = p->recipient_address};
    e.source_address = g_new(uint32_t, p->n_transfers + 1);
    for (uint32_t x = 0; x < p->n_transfers; x++)
        e.source_address[x] =
            p->source_address[x] +
            (p->source_stride != NULL ? (uint32_t)p->source_stride[x] * iteration : 0);
    return e;
}

void exch_verify(struct fabric *f, const struct exch_problem *p, const struct exch_result *r,
                 uint32_t iteration, struct exch_verdict *ret) {
    uint32_t n;
    struct fabric_tile *tiles = make_tiles(r, iteration, &n);
    const struct fabric_phase phase = {.tiles = tiles,
                                       .n_tiles = n,
                                       .flags = (r->relaxed ? FABRIC_RELAXED : 0u) |
                                                (p->unplaced ? FABRIC_ANY_ADDRESS : 0u)};
    struct fabric_result result;
    fabric_phase_run(f, &phase, &result);
    struct fabric_expect expect = make_expect(p, iteration);
    fabric_expect_check(f, &expect, &result);
    *ret = (struct exch_verdict){.ok = result.ok && result.horizon == r->horizon,
                                 .horizon = result.horizon,
                                 .n_errors = result.n_errors,
                                 .n_warnings = result.n_warnings};
    if (result.first != NULL) ret->first = fabric_fault_text(result.first);
    for (uint32_t i = 0, t = 0; t < r->n_tiles; t++)
        if (r->active[t]) ret->ok = tiles[i++].slots == r->tile_horizon[t] && ret->ok;
    g_free(expect.source_address);
    g_free(tiles);
}

bool exch_rows_save(const char *path, const struct exch_result *r, GError **error) {
    uint32_t n;
    struct fabric_tile *tiles = make_tiles(r, 0, &n);
    struct fabric_rows rows = {.n_tiles = r->n_tiles,
                               .horizon = r->horizon,
                               .n_active = n,
                               .tile = g_new(uint16_t, n + 1),
                               .base = g_new(uint32_t, n + 1),
                               .slots = g_new(uint32_t, n + 1),
                               .first = g_new0(uint32_t, n + 1)};
    for (uint32_t i = 0; i < n; i++) rows.first[i + 1] = rows.first[i] + tiles[i].n_words;
    rows.words = g_new(uint32_t, rows.first[n] + 1);
    for (uint32_t i = 0; i < n; i++) {
        rows.tile[i] = tiles[i].tile;
        rows.base[i] = tiles[i].csr.incoming_base;
        rows.slots[i] = r->tile_horizon[tiles[i].tile];
        memcpy(rows.words + rows.first[i], tiles[i].words, 4 * (size_t)tiles[i].n_words);
    }
    const bool ok = fabric_rows_write(path, &rows, error);
    fabric_rows_clear(&rows);
    g_free(tiles);
    return ok;
}
