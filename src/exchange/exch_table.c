/* Tables of rows: per tile, phases whose rows are equal up to addresses share one stored row.
 *
 * Tile by tile, phases in order: a row joins the group of an earlier one with the same normalised words
 * (found by hash, confirmed word by word) if the group then takes fewer words than the two apart. Two
 * distances, of sends and of pointers, are taken out by base registers: the most frequent ones. What
 * still differs is patched: a word that differs in one member is a patch of every member, because
 * whichever phase runs restores its own values. When all rows have joined, distances are counted from
 * the smallest member, so that every base is at least 0. Cost: words of rows x rows of a group. */
#include "exchange/exch_int.h"

#include <string.h>

struct row {
    const uint32_t *words;
    const struct exch_site *sites; /* of the phase's whole result: word counts from its first */
    uint32_t n, n_sites, first_word;
    uint64_t hash;
    bool fixed, moves; /* not to be shared; its outgoing base is taken */
    /* Of the group: */
    uint32_t head;                    /* phase with the first such row, itself if alone */
    int64_t send_shift, ptr_shift;    /* bytes from the head's addresses */
    uint32_t n_members, n_marked;     /* of a head: rows in the group; words that are patched */
    int64_t least[2], most[2];        /* of a head: distances of its members, sends and pointers */
};
enum { SEND, POINTER };

struct table_work {
    const struct exch_result *const *phases;
    uint32_t n_phases;
    enum exch_share share;
    struct row *rows;
    uint32_t *normal;  /* scratch: normalised words of the rows, one behind the other */
    uint8_t *mark;     /* the same for heads: words that are patched */
    uint32_t *first;   /* [n_phases] of both */
    uint32_t *differ;  /* words in which a row differs from a head */
    uint32_t n_patches; /* of the tile */
    GArray *words, *patches; /* of the table: uint32_t; struct exch_patch, by tile */
    uint32_t *n_cell;  /* [cells] patches */
    uint32_t tile_start;
    struct exch_table *t;
};

static uint32_t without_address(uint32_t word, uint8_t kind) {
    return kind == EXCH_SITE_SEND ? word & ~(UINT32_C(0x3ffff) << 3) : word & ~UINT32_C(0x3ffff);
}

/* The word of a site with its address moved by `bytes`. */
static uint32_t moved_word(uint32_t word, const struct exch_site *s, int64_t bytes) {
    const int64_t address = (int64_t)s->address + bytes;
    BUG_ON(address < 0);
    const uint32_t items = (uint32_t)address / s->item_bytes;
    return without_address(word, s->kind) | (s->kind == EXCH_SITE_SEND ? items << 3 : items);
}

/* --- Rows of a tile --- */

static void normalise(struct table_work *k, uint32_t i) {
    struct row *row = &k->rows[i];
    uint32_t *out = k->normal + k->first[i];
    memcpy(out, row->words, row->n * sizeof *out);
    for (uint32_t s = 0; s < row->n_sites; s++) {
        const uint32_t at = row->sites[s].word - row->first_word;
        out[at] = without_address(out[at], row->sites[s].kind);
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
                                  .sites = r->sites + r->first_site[tile],
                                  .n = n,
                                  .n_sites = r->first_site[tile + 1] - r->first_site[tile],
                                  .first_word = r->first_word[tile],
                                  .fixed = r->outgoing_base[tile] == EXCH_BASE_PATCHED,
                                  .moves = r->outgoing_base[tile] == EXCH_BASE_MOVING,
                                  .head = i,
                                  .n_members = 1};
        k->first[i] = at;
        memset(k->mark + at, 0, n);
        at += n;
        if (n > 0) normalise(k, i);
    }
    k->n_patches = 0;
}

/* --- Joining --- */

/* The distance of most sites of a kind (by majority vote), a multiple of 8. */
static int64_t distance(const struct row *a, const struct row *b, uint8_t kind) {
    int64_t value = 0;
    uint32_t votes = 0;
    for (uint32_t s = 0; s < a->n_sites; s++) {
        if (a->sites[s].kind != kind) continue;
        const int64_t d = (int64_t)b->sites[s].address - (int64_t)a->sites[s].address;
        if (votes == 0) value = d;
        votes = d == value || votes == 0 ? votes + 1 : votes - 1;
    }
    return value % 8 == 0 ? value : 0;
}

/* A row that may join a group, and how. */
struct join {
    uint32_t head, marked; /* words of the group that are patched then */
    int64_t shift[2], least[2], most[2];
    int64_t saved;         /* words */
    uint32_t patches;      /* of the group then, all members */
};

/* Words of row b that differ from head a at the distances of *j: how many that the head has not marked;
 * noted in k->differ when `note`. */
static uint32_t differing(struct table_work *k, uint32_t head, const struct row *b, const struct join *j,
                          bool note) {
    const struct row *a = &k->rows[head];
    uint8_t *mark = k->mark + k->first[head];
    uint32_t n = 0;
    for (uint32_t s = 0; s < a->n_sites; s++) {
        const int64_t shift = j->shift[a->sites[s].kind == EXCH_SITE_SEND ? SEND : POINTER];
        const uint32_t at = a->sites[s].word - a->first_word;
        if ((int64_t)b->sites[s].address == (int64_t)a->sites[s].address + shift || mark[at]) continue;
        n++;
        if (note) mark[at] = 1;
    }
    return n;
}

static void take_distances(const struct table_work *k, const struct row *a, const struct row *b, struct join *j) {
    const bool bases = k->share >= EXCH_SHARE_BASES;
    j->shift[SEND] = bases && !a->moves && !b->moves ? distance(a, b, EXCH_SITE_SEND) : 0;
    j->shift[POINTER] = bases ? distance(a, b, EXCH_SITE_POINTER) : 0;
    for (uint32_t d = SEND; d <= POINTER; d++) {
        j->least[d] = MIN(a->least[d], j->shift[d]);
        j->most[d] = MAX(a->most[d], j->shift[d]);
    }
}

static bool may_join(struct table_work *k, uint32_t head, uint32_t i, struct join *j) {
    const struct row *a = &k->rows[head], *b = &k->rows[i];
    if (a->head != head || a->fixed || b->fixed || a->n != b->n || a->hash != b->hash) return false;
    if (a->n_sites != b->n_sites) return false;
    if (memcmp(k->normal + k->first[head], k->normal + k->first[i], 4 * (size_t)a->n) != 0) return false;
    j->head = head;
    take_distances(k, a, b, j);
    j->marked = a->n_marked + differing(k, head, b, j, false);
    j->patches = j->marked * (a->n_members + 1);
    const uint32_t before = a->n_marked * a->n_members;
    j->saved = (int64_t)b->n - EXCH_TABLE_PATCH_WORDS * (int64_t)(j->patches - before);
    if (j->marked == 0) return true;
    /* Patched words keep a field of at least 0: no address is below SRAM. */
    const bool reach = j->most[SEND] - j->least[SEND] <= TARGET_SRAM_BASE &&
                       j->most[POINTER] - j->least[POINTER] <= TARGET_SRAM_BASE;
    return k->share == EXCH_SHARE_PATCHES && reach && j->saved > 0 && j->marked <= EXCH_TABLE_MAX_PATCHES &&
           k->n_patches - before + j->patches <= EXCH_TABLE_TILE_PATCHES;
}

static void join_groups(struct table_work *k) {
    for (uint32_t i = 0; i < k->n_phases; i++) {
        struct row *b = &k->rows[i];
        struct join best = {.saved = 0};
        for (uint32_t head = 0; head < i && b->n > 0; head++) {
            struct join j;
            if (may_join(k, head, i, &j) && j.saved > best.saved) best = j;
        }
        if (best.saved <= 0) continue;
        struct row *a = &k->rows[best.head];
        differing(k, best.head, b, &best, true);
        k->n_patches += best.patches - a->n_marked * a->n_members;
        a->n_members++;
        a->n_marked = best.marked;
        memcpy(a->least, best.least, sizeof a->least);
        memcpy(a->most, best.most, sizeof a->most);
        b->head = best.head;
        b->send_shift = best.shift[SEND];
        b->ptr_shift = best.shift[POINTER];
    }
}

/* --- The table --- */

/* Appends the words of row i with its addresses moved by these bytes. */
static void append_row(struct table_work *k, const struct row *row, int64_t send, int64_t pointer) {
    const uint32_t start = k->words->len;
    g_array_append_vals(k->words, row->words, row->n);
    for (uint32_t s = 0; s < row->n_sites && (send != 0 || pointer != 0); s++) {
        uint32_t *w = &g_array_index(k->words, uint32_t, start + (row->sites[s].word - row->first_word));
        *w = moved_word(*w, &row->sites[s], row->sites[s].kind == EXCH_SITE_SEND ? send : pointer);
    }
}

static void append_patches(struct table_work *k, const struct row *row, size_t cell) {
    const uint8_t *mark = k->mark + k->first[row->head];
    for (uint32_t s = 0; s < row->n_sites; s++) {
        const struct exch_site *site = &row->sites[s];
        const uint32_t at = site->word - row->first_word;
        if (!mark[at]) continue;
        const uint32_t base = site->kind == EXCH_SITE_SEND ? k->t->outgoing_base[cell] : k->t->incoming_base[cell];
        const struct exch_patch patch = {k->t->row[cell] + at, moved_word(row->words[at], site, -(int64_t)base)};
        g_array_append_val(k->patches, patch);
        k->n_cell[cell]++;
    }
}

static void store_phase(struct table_work *k, uint32_t tile, uint32_t i) {
    const struct row *row = &k->rows[i], *head = &k->rows[row->head];
    struct exch_table *t = k->t;
    const size_t cell = (size_t)i * t->n_tiles + tile;
    t->row[cell] = UINT32_MAX;
    if (row->n == 0) return;
    t->outgoing_base[cell] = (uint32_t)(row->send_shift - head->least[SEND]);
    t->incoming_base[cell] = (uint32_t)(row->ptr_shift - head->least[POINTER]);
    if (row->head != i) {
        t->row[cell] = t->row[(size_t)row->head * t->n_tiles + tile];
        t->n_shared++;
    } else {
        const uint32_t filler = UINT32_C(0x43a00000); /* never reached: behind a return */
        if ((k->words->len - k->tile_start) % 2 != 0) g_array_append_val(k->words, filler);
        t->row[cell] = k->words->len - k->tile_start;
        append_row(k, row, head->least[SEND], head->least[POINTER]);
        t->n_rows++;
    }
    t->n_based += t->outgoing_base[cell] != 0 || t->incoming_base[cell] != 0;
    if (head->n_marked == 0) return;
    append_patches(k, row, cell);
    t->n_patched++;
}

static void store_tile(struct table_work *k, uint32_t tile) {
    struct exch_table *t = k->t;
    k->tile_start = t->first_word[tile] = k->words->len;
    load_rows(k, tile);
    join_groups(k);
    for (uint32_t i = 0; i < k->n_phases; i++) store_phase(k, tile, i);
    const uint32_t bytes = 4 * (k->words->len - k->tile_start);
    if (bytes > t->bytes_max) {
        t->bytes_max = bytes;
        t->bytes_tile = tile;
    }
    t->patch_bytes_max = MAX(t->patch_bytes_max, 4 * EXCH_TABLE_PATCH_WORDS * k->n_patches);
}

/* Patches were made tile by tile: to their cells, which go phase by phase. */
static void place_patches(struct table_work *k) {
    struct exch_table *t = k->t;
    const size_t cells = (size_t)t->n_phases * t->n_tiles;
    for (size_t c = 0; c < cells; c++) t->first_patch[c + 1] = t->first_patch[c] + k->n_cell[c];
    t->patches = arena_new_array(t->arena, struct exch_patch, k->patches->len + 1);
    uint32_t at = 0;
    for (uint32_t tile = 0; tile < t->n_tiles; tile++)
        for (uint32_t i = 0; i < t->n_phases; i++) {
            const size_t c = (size_t)i * t->n_tiles + tile;
            if (k->n_cell[c] == 0) continue;
            memcpy(t->patches + t->first_patch[c], &g_array_index(k->patches, struct exch_patch, at),
                   k->n_cell[c] * sizeof *t->patches);
            at += k->n_cell[c];
        }
}

static uint32_t sum_of_longest(const struct exch_result *const *phases, uint32_t n) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t most = 0;
        for (uint32_t t = 0; t < phases[i]->n_tiles; t++)
            most = MAX(most, phases[i]->first_word[t + 1] - phases[i]->first_word[t]);
        sum += most;
    }
    return sum;
}

static struct exch_table *table_alloc(uint32_t n_phases) {
    struct arena *a = arena_new();
    const size_t cells = (size_t)n_phases * TARGET_N_TILES;
    struct exch_table *t = arena_new_array(a, struct exch_table, 1);
    *t = (struct exch_table){.arena = a,
                             .n_tiles = TARGET_N_TILES,
                             .n_phases = n_phases,
                             .first_word = arena_new_array(a, uint32_t, TARGET_N_TILES + 1),
                             .row = arena_new_array(a, uint32_t, cells + 1),
                             .incoming_base = arena_new_array(a, uint32_t, cells + 1),
                             .outgoing_base = arena_new_array(a, uint32_t, cells + 1),
                             .first_patch = arena_new_array(a, uint32_t, cells + 1)};
    return t;
}

struct exch_table *exch_table_new(const struct exch_result *const *phases, uint32_t n_phases,
                                  enum exch_share share) {
    struct exch_table *t = table_alloc(n_phases);
    const uint32_t sum = sum_of_longest(phases, n_phases);
    struct table_work k = {.phases = phases,
                           .n_phases = n_phases,
                           .share = share,
                           .t = t,
                           .rows = g_new0(struct row, n_phases + 1),
                           .normal = g_new(uint32_t, sum + 1),
                           .mark = g_new(uint8_t, sum + 1),
                           .first = g_new(uint32_t, n_phases + 1),
                           .n_cell = g_new0(uint32_t, (size_t)n_phases * TARGET_N_TILES + 1),
                           .words = g_array_new(FALSE, FALSE, 4),
                           .patches = g_array_new(FALSE, FALSE, sizeof(struct exch_patch))};
    for (uint32_t tile = 0; tile < TARGET_N_TILES; tile++) store_tile(&k, tile);
    t->first_word[TARGET_N_TILES] = k.words->len;
    t->words = arena_copy(t->arena, k.words->data, 4 * (size_t)k.words->len);
    place_patches(&k);
    g_free(k.rows);
    g_free(k.normal);
    g_free(k.mark);
    g_free(k.first);
    g_free(k.n_cell);
    g_array_free(k.words, TRUE);
    g_array_free(k.patches, TRUE);
    return t;
}

void exch_table_row(const struct exch_table *t, const struct exch_result *r, uint32_t phase,
                    uint32_t tile, uint32_t *ret) {
    const size_t cell = (size_t)phase * t->n_tiles + tile;
    const uint32_t n = r->first_word[tile + 1] - r->first_word[tile];
    memcpy(ret, t->words + t->first_word[tile] + t->row[cell], 4 * (size_t)n);
    for (uint32_t k = t->first_patch[cell]; k < t->first_patch[cell + 1]; k++)
        ret[t->patches[k].word - t->row[cell]] = t->patches[k].value;
    for (uint32_t s = r->first_site[tile]; s < r->first_site[tile + 1]; s++) {
        const struct exch_site *site = &r->sites[s];
        uint32_t *w = &ret[site->word - r->first_word[tile]];
        const bool send = site->kind == EXCH_SITE_SEND;
        const uint32_t base = send ? t->outgoing_base[cell] : t->incoming_base[cell];
        *w += send ? base / site->item_bytes << 3 : base / site->item_bytes;
    }
}

void exch_table_free(struct exch_table *t) {
    if (t != NULL) arena_free(t->arena);
}
