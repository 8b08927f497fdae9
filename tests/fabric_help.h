/* Helpers of the fabric's tests: the phases of tests/data/phases and contents that name their place. */
#ifndef TESTS_FABRIC_HELP_H
#define TESTS_FABRIC_HELP_H

#include "fabric_slow.h"

struct help_case {
    struct fabric_rows rows;
    struct fabric_expect expect;
    struct fabric_tile *tiles;
    uint32_t n;
};

static inline char *help_path(const char *name, const char *what) {
    char *file = g_strdup_printf("%s.%s.zst", name, what);
    char *path = g_build_filename(g_getenv("IPU_SOURCE"), "tests/data/phases", file, NULL);
    g_free(file);
    return path;
}

/* Fresh tiles of a case: registers as before the phase. */
static inline void help_tiles(struct help_case *c) {
    for (uint32_t i = 0; i < c->n; i++) {
        c->tiles[i] = (struct fabric_tile){.tile = c->rows.tile[i],
            .words = c->rows.words + c->rows.first[i],
            .n_words = c->rows.first[i + 1] - c->rows.first[i], .csr = fabric_csr_initial()};
        c->tiles[i].csr.incoming_base = c->rows.base[i];
    }
}

/* with_problem: NAME.json.zst exists. */
static inline struct help_case help_load(const char *name, bool with_problem) {
    struct help_case c = {0};
    GError *error = NULL;
    char *rows = help_path(name, "rows"), *problem = help_path(name, "json");
    fabric_rows_read(rows, &c.rows, &error);
    g_assert_no_error(error);
    if (with_problem) fabric_expect_read(problem, 0, &c.expect, &error);
    g_assert_no_error(error);
    g_free(rows);
    g_free(problem);
    c.n = c.rows.n_active;
    c.tiles = g_new0(struct fabric_tile, c.n);
    help_tiles(&c);
    return c;
}

static inline void help_free(struct help_case *c) {
    fabric_rows_clear(&c->rows);
    fabric_expect_clear(&c->expect);
    g_free(c->tiles);
}

/* A word that names its place. */
static inline uint32_t help_word(uint32_t tile, uint32_t address) {
    return (uint32_t)rand_u64(1, tile, address);
}

static inline uint32_t help_get(const struct sram *s, uint32_t tile, uint32_t address) {
    uint32_t v;
    memcpy(&v, sram_at(s, tile, address), 4);
    return v;
}

static inline void help_fill(struct sram *s, uint32_t tile, uint32_t address, uint32_t words) {
    for (uint32_t k = 0; k < words; k++) {
        const uint32_t v = help_word(tile, address + 4 * k);
        memcpy(sram_at(s, tile, address + 4 * k), &v, 4);
    }
    sram_mark_written(s, tile, address, 4 * words);
}

/* SRAM with all sources of the list filled. */
static inline struct sram *help_sources(const struct fabric_expect *e) {
    struct sram *s = sram_new(TARGET_N_TILES);
    for (uint32_t x = 0; x < e->n_transfers; x++)
        help_fill(s, e->source[x], e->source_address[x], e->words[x]);
    return s;
}

/* Number of words in which two memories (contents or written-bits) differ on the tiles of a case. */
static inline uint32_t help_differences(const struct sram *a, const struct sram *b,
                                        const struct help_case *c) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        const uint32_t t = c->tiles[i].tile;
        for (uint32_t w = 0; w < SRAM_WRITTEN_WORDS; w++) {
            const uint64_t wa = sram_written(a, t)[w], wb = sram_written(b, t)[w];
            n += (uint32_t)__builtin_popcountll(wa ^ wb);
            for (uint64_t both = wa & wb; both != 0; both &= both - 1) {
                const uint32_t address = TARGET_SRAM_BASE + 4 * (w * 64 + (uint32_t)__builtin_ctzll(both));
                n += help_get(a, t, address) != help_get(b, t, address);
            }
        }
    }
    return n;
}

/* What SRAM holds behind a phase that delivers what is expected, and nothing else. */
static inline struct sram *help_wanted(const struct fabric_expect *e) {
    struct sram *s = help_sources(e);
    for (uint32_t x = 0; x < e->n_transfers; x++)
        for (uint32_t k = e->first[x]; k < e->first[x + 1]; k++)
            for (uint32_t i = 0; i < e->words[x]; i++) {
                const uint32_t v = help_word(e->source[x], e->source_address[x] + 4 * i);
                memcpy(sram_at(s, e->tile[k], e->address[k] + 4 * i), &v, 4);
                sram_mark_written(s, e->tile[k], e->address[k] + 4 * i, 4);
            }
    return s;
}

#endif
