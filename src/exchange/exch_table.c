/* Tables of rows: per tile, groups of phases whose rows are equal up to addresses share one stored
 * row.
 *
 * Groups are found by a hash of the normalised row and confirmed word by word. A group shares if
 * its row, with 8 bytes of patch per differing word and phase, takes fewer bytes than separate rows
 * and no phase needs more than EXCH_TABLE_MAX_PATCHES words; otherwise equal rows inside it still
 * share. */
#include "exchange/exch_int.h"

#include <string.h>

struct row {
    const uint32_t *words;
    uint32_t n, phase, group;
    uint64_t hash;
    bool fixed; /* not to be shared */
};

struct table_work {
    const struct exch_result *const *phases;
    uint32_t n_phases;
    struct row *rows;
    uint32_t *normal; /* scratch: normalised words of the rows, one behind the other */
    uint32_t *first;  /* [n_phases] of `normal` */
    GArray *words;    /* of the table */
    uint32_t tile_start;
    struct exch_table *t;
};

static uint32_t without_address(uint32_t word, uint8_t kind) {
    return kind == EXCH_SITE_SEND ? word & ~(UINT32_C(0x3ffff) << 3) : word & ~UINT32_C(0x3ffff);
}

static void normalise(struct table_work *k, uint32_t tile, uint32_t i) {
    const struct exch_result *r = k->phases[i];
    struct row *row = &k->rows[i];
    uint32_t *out = k->normal + k->first[i];
    memcpy(out, row->words, row->n * sizeof *out);
    for (uint32_t s = r->first_site[tile]; s < r->first_site[tile + 1]; s++) {
        const uint32_t at = r->sites[s].word - r->first_word[tile];
        out[at] = without_address(out[at], r->sites[s].kind);
    }
    row->hash = row->n;
    for (uint32_t w = 0; w < row->n; w++)
        row->hash = (row->hash ^ out[w]) * UINT64_C(0x9e3779b97f4a7c15) + (row->hash >> 29);
}

static void load_rows(struct table_work *k, uint32_t tile) {
    uint32_t at = 0;
    for (uint32_t i = 0; i < k->n_phases; i++) {
        const struct exch_result *r = k->phases[i];
        const uint32_t n = r->first_word[tile + 1] - r->first_word[tile];
        k->rows[i] = (struct row){.words = r->words + r->first_word[tile],
                                  .n = n,
                                  .phase = i,
                                  .group = i,
                                  .fixed = r->outgoing_base[tile] == EXCH_BASE_PATCHED};
        k->first[i] = at;
        at += n;
        if (n > 0) normalise(k, tile, i);
    }
}

/* group = first phase with the same normalised row. */
static void find_groups(struct table_work *k) {
    for (uint32_t i = 0; i < k->n_phases; i++) {
        struct row *b = &k->rows[i];
        b->group = i;
        for (uint32_t j = 0; j < i && !b->fixed && b->n > 0; j++) {
            const struct row *a = &k->rows[j];
            if (a->group != j || a->fixed || a->n != b->n || a->hash != b->hash) continue;
            if (memcmp(k->normal + k->first[j], k->normal + k->first[i], 4 * (size_t)a->n) != 0)
                continue;
            b->group = j;
            break;
        }
    }
}

/* Marks the words in which members of group g differ; returns how many. */
static uint32_t differing(const struct table_work *k, uint32_t g, uint8_t *mark) {
    const struct row *a = &k->rows[g];
    memset(mark, 0, a->n);
    uint32_t n = 0;
    for (uint32_t i = g + 1; i < k->n_phases; i++)
        for (uint32_t w = 0; w < a->n && k->rows[i].group == g; w++)
            if (k->rows[i].words[w] != a->words[w] && !mark[w]) {
                mark[w] = 1;
                n++;
            }
    return n;
}

static uint32_t members(const struct table_work *k, uint32_t g) {
    uint32_t n = 0;
    for (uint32_t i = g; i < k->n_phases; i++) n += k->rows[i].group == g;
    return n;
}

/* Groups that do not pay fall apart into groups of equal rows. */
static void split_unprofitable(struct table_work *k, uint8_t *mark) {
    for (uint32_t g = 0; g < k->n_phases; g++) {
        if (k->rows[g].group != g || k->rows[g].n == 0) continue;
        const uint32_t m = members(k, g);
        if (m < 2) continue;
        const uint64_t d = differing(k, g, mark), n = k->rows[g].n;
        if (d == 0 || (d <= EXCH_TABLE_MAX_PATCHES && n + 2 * d * m < n * m)) continue;
        for (uint32_t i = g + 1; i < k->n_phases; i++) {
            struct row *b = &k->rows[i];
            if (b->group != g) continue;
            uint32_t j = g;
            while (j < i &&
                   (k->rows[j].group != j || k->rows[j].n != b->n || k->rows[j].hash != b->hash ||
                    memcmp(k->rows[j].words, b->words, 4 * (size_t)b->n) != 0))
                j++;
            b->group = j;
        }
    }
}

static void store(struct table_work *k, uint32_t tile) {
    uint32_t *at = g_new(uint32_t, k->n_phases + 1);
    for (uint32_t i = 0; i < k->n_phases; i++) {
        const struct row *row = &k->rows[i];
        const size_t cell = (size_t)i * k->t->n_tiles + tile;
        k->t->row[cell] = UINT32_MAX;
        if (row->n == 0) continue;
        if (row->group != i) {
            k->t->row[cell] = at[row->group];
            k->t->n_shared++;
            continue;
        }
        if ((k->words->len - k->tile_start) % 2 != 0) {
            const uint32_t filler = UINT32_C(0x43a00000); /* never reached: behind a return */
            g_array_append_val(k->words, filler);
        }
        k->t->row[cell] = at[i] = k->words->len - k->tile_start;
        g_array_append_vals(k->words, row->words, row->n);
        k->t->n_rows++;
    }
    g_free(at);
}

/* Patches are kept by (phase, tile) but made tile by tile: counted first, placed by a second pass.
 */
static uint32_t patches_of(const struct table_work *k, uint32_t i, uint8_t *mark) {
    const struct row *row = &k->rows[i];
    if (row->n == 0 || members(k, row->group) < 2) return 0;
    return differing(k, row->group, mark);
}

static void tile_groups(struct table_work *k, uint32_t tile, uint8_t *mark) {
    load_rows(k, tile);
    find_groups(k);
    split_unprofitable(k, mark);
}

static uint32_t longest_row(const struct exch_result *const *phases, uint32_t n,
                            uint32_t *ret_sum) {
    uint32_t most = 0;
    *ret_sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t here = 0;
        for (uint32_t t = 0; t < phases[i]->n_tiles; t++)
            here = MAX(here, phases[i]->first_word[t + 1] - phases[i]->first_word[t]);
        most = MAX(most, here);
        *ret_sum += here;
    }
    return most;
}

static void write_patches(struct table_work *k, uint32_t tile, uint8_t *mark) {
    for (uint32_t i = 0; i < k->n_phases; i++) {
        const size_t cell = (size_t)i * k->t->n_tiles + tile;
        uint32_t at = k->t->first_patch[cell];
        if (patches_of(k, i, mark) == 0) continue;
        const struct row *row = &k->rows[i];
        for (uint32_t w = 0; w < row->n; w++)
            if (mark[w])
                k->t->patches[at++] = (struct exch_patch){k->t->row[cell] + w, row->words[w]};
    }
}

struct exch_table *exch_table_new(const struct exch_result *const *phases, uint32_t n_phases) {
    struct arena *a = arena_new();
    struct exch_table *t = arena_new_array(a, struct exch_table, 1);
    const size_t cells = (size_t)n_phases * TARGET_N_TILES;
    *t = (struct exch_table){.arena = a,
                             .n_tiles = TARGET_N_TILES,
                             .n_phases = n_phases,
                             .first_word = arena_new_array(a, uint32_t, TARGET_N_TILES + 1),
                             .row = arena_new_array(a, uint32_t, cells + 1),
                             .first_patch = arena_new_array(a, uint32_t, cells + 1)};
    uint32_t sum;
    const uint32_t longest = longest_row(phases, n_phases, &sum);
    struct table_work k = {.phases = phases,
                           .n_phases = n_phases,
                           .t = t,
                           .rows = g_new0(struct row, n_phases + 1),
                           .normal = g_new(uint32_t, sum + 1),
                           .first = g_new(uint32_t, n_phases + 1),
                           .words = g_array_new(FALSE, FALSE, 4)};
    uint8_t *mark = g_malloc0(longest + 1);
    uint32_t *tile_patches = g_new0(uint32_t, TARGET_N_TILES);
    for (uint32_t tile = 0; tile < TARGET_N_TILES; tile++) {
        k.tile_start = t->first_word[tile] = k.words->len;
        tile_groups(&k, tile, mark);
        store(&k, tile);
        for (uint32_t i = 0; i < n_phases; i++) {
            const uint32_t n = patches_of(&k, i, mark);
            t->first_patch[(size_t)i * TARGET_N_TILES + tile + 1] = n;
            tile_patches[tile] += n;
        }
        t->bytes_max =
            MAX(t->bytes_max, 4 * (k.words->len - k.tile_start) + 8 * tile_patches[tile]);
    }
    t->first_word[TARGET_N_TILES] = k.words->len;
    t->words = arena_copy(a, k.words->data, 4 * (size_t)k.words->len);
    for (size_t c = 0; c < cells; c++) t->first_patch[c + 1] += t->first_patch[c];
    t->patches = arena_new_array(a, struct exch_patch, t->first_patch[cells] + 1);
    for (uint32_t tile = 0; tile < TARGET_N_TILES && t->first_patch[cells] > 0; tile++)
        if (tile_patches[tile] > 0) {
            tile_groups(&k, tile, mark);
            write_patches(&k, tile, mark);
        }
    g_free(tile_patches);
    g_free(mark);
    g_free(k.rows);
    g_free(k.normal);
    g_free(k.first);
    g_array_free(k.words, TRUE);
    return t;
}

void exch_table_free(struct exch_table *t) {
    if (t != NULL) arena_free(t->arena);
}
