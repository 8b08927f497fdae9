/* Random phases of every sort: scheduled, checked by decoding, executed by the fabric (all words
 * delivered, nothing else, no fault, equal horizons), replayed from their recipe, mutated. Seed
 * printed and accepted by --seed. */
#include "cli/exch_verify.c"

#include "fabric/fabric.h"
#include "exchange/exch_int.h"

#include <string.h>

struct gen {
    GRand *rand;
    uint32_t tiles, next[TARGET_N_TILES], source[TARGET_N_TILES];
};
static uint32_t draw(struct gen *g, uint32_t n) {
    return (uint32_t)g_rand_int_range(g->rand, 0, (gint32)n);
}

enum sort { UNICAST, MULTICAST, PAIRED, MIXED, LOOPBACK, MOVING, HOSTILE, DEPENDENT, N_SORTS };

static uint32_t take(uint32_t *next, uint32_t bytes) {
    const uint32_t at = *next;
    *next += align_up_u32(bytes, 8);
    return at;
}

/* Distinct recipients other than the sender; whole pairs if asked. */
static void recipients(struct gen *g, GArray *out, uint32_t src, uint32_t n, bool pairs,
                       bool self) {
    bool used[TARGET_N_TILES] = {false};
    used[src] = true;
    if (pairs) used[src ^ 1] = true;
    g_array_set_size(out, 0);
    if (self) g_array_append_val(out, src);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t t = draw(g, g->tiles);
        if (pairs) t &= ~1u;
        if (used[t] || (pairs && used[t + 1])) continue;
        used[t] = true;
        g_array_append_val(out, t);
        if (!pairs) continue;
        used[++t] = true;
        g_array_append_val(out, t);
    }
}

static struct exch_problem *make(struct gen *g, enum sort sort, uint32_t n) {
    struct exch_problem *p = exch_problem_new(n, n * 18);
    GArray *to = g_array_new(FALSE, FALSE, 4);
    p->n_recipients = 0;
    uint32_t x = 0;
    const bool hostile = sort == HOSTILE;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        g->source[t] = hostile ? 0x80000 : 0x50000;
        g->next[t] = 0x90000;
    }
    if (sort == MOVING) {
        exch_problem_add_strides(p);
        p->n_iterations = 3;
    }
    for (uint32_t k = 0; k < n; k++) {
        const bool pairs = sort == PAIRED || ((sort == MIXED || hostile) && draw(g, 3) == 0);
        const uint32_t src = draw(g, g->tiles),
                       words = 2 * (1 + draw(g, draw(g, 4) == 0 ? 400 : 40));
        recipients(g, to, src, sort == UNICAST ? 1 : 1 + draw(g, 6), pairs,
                   (sort == LOOPBACK || sort == MIXED) && draw(g, 3) == 0);
        if (to->len == 0 || (to->len == 1 && g_array_index(to, uint32_t, 0) == src)) continue;
        p->source_tile[x] = (uint16_t)src;
        p->words[x] = pairs ? words : words - draw(g, 2);
        p->first_recipient[x] = p->n_recipients;
        p->source_address[x] = take(&g->source[src], 4 * words);
        if (sort == MOVING && draw(g, 2) != 0) p->source_stride[x] = draw(g, 4) == 0 ? 1024 : 512;
        for (uint32_t r = 0; r < to->len; r++) {
            const uint32_t t = g_array_index(to, uint32_t, r);
            p->recipient_tile[p->n_recipients] = (uint16_t)t;
            p->recipient_address[p->n_recipients++] =
                take(hostile ? &g->source[t] : &g->next[t], 4 * words);
        }
        x++;
    }
    p->n_transfers = x;
    p->first_recipient[x] = p->n_recipients;
    if (sort == DEPENDENT && x > 1) {
        exch_problem_add_dependencies(p, x);
        for (uint32_t i = 0, d = 0; i < x; i++) {
            p->first_dependency[i] = d;
            if (i > 0 && draw(g, 3) == 0) p->dependency[d++] = draw(g, i);
            p->first_dependency[i + 1] = d;
        }
    }
    g_array_free(to, TRUE);
    return p;
}

static void verify(struct fabric *f, const struct exch_problem *p, const struct exch_result *r) {
    GError *error = NULL;
    const bool ok = exch_rows_check(p, r, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    g_assert_cmpuint(r->horizon, >=, r->bounds.any_width);
    for (uint32_t it = 0; it < MAX(p->n_iterations, 1u); it += 2) {
        bool patched = false; /* patched sends hold the addresses of iteration 0 */
        for (uint32_t t = 0; t < r->n_tiles; t++)
            patched |= r->outgoing_base[t] == EXCH_BASE_PATCHED;
        if (patched && it > 0) break;
        struct exch_verdict v;
        exch_verify(f, p, r, it, &v);
        if (!v.ok) g_test_message("fabric: %s", v.first != NULL ? v.first : "other horizons");
        g_assert_true(v.ok);
        g_free(v.first);
    }
}

static void dependencies_kept(const struct exch_problem *p, const struct exch_result *r) {
    if (p->first_dependency == NULL) return;
    uint32_t *start = g_new(uint32_t, p->n_transfers), *end = g_new0(uint32_t, p->n_transfers);
    memset(start, 0xff, p->n_transfers * sizeof *start);
    for (uint32_t i = 0; i < r->n_messages; i++) {
        const struct exch_message *m = &r->messages[i];
        start[m->transfer] = MIN(start[m->transfer], m->slot);
        end[m->transfer] = MAX(end[m->transfer], m->slot + m->words / (m->paired ? 2 : 1));
    }
    for (uint32_t x = 0; x < p->n_transfers; x++)
        for (uint32_t d = p->first_dependency[x]; d < p->first_dependency[x + 1]; d++)
            g_assert_cmpuint(start[x], >=, end[p->dependency[d]]);
    g_free(start);
    g_free(end);
}

static void run_sort(gconstpointer data) {
    const enum sort sort = (enum sort)GPOINTER_TO_INT(data);
    struct gen g = {.rand = g_rand_new_with_seed((guint32)g_test_rand_int())};
    struct fabric *f = fabric_new();
    for (uint32_t round = 0; round < 60; round++) {
        g.tiles = 2 * (2 + draw(&g, round % 4 == 0 ? 700 : 24));
        struct exch_problem *p = make(&g, sort, 1 + draw(&g, 120));
        GError *error = NULL;
        const bool ok = exch_problem_check(p, &error);
        g_assert_no_error(error);
        g_assert_true(ok);
        const struct exch_options o = {.effort = EXCH_EFFORT_QUICK,
                                       .budget = 200000,
                                       .seed = round,
                                       .relaxed = round % 10 == 9};
        struct exch_result *r = exch_schedule(p, &o, NULL);
        g_assert_nonnull(r);
        verify(f, p, r);
        dependencies_kept(p, r);
        struct exch_recipe *recipe = exch_recipe_new(p, r);
        struct exch_result *again = exch_replay(p, recipe);
        if (again != NULL) {
            g_assert_true(again->replayed);
            g_assert_cmpuint(again->horizon, ==, r->horizon);
            g_assert_cmphex(again->fingerprint, ==, r->fingerprint);
        }
        exch_result_free(again);
        exch_recipe_free(recipe);
        exch_result_free(r);
        exch_problem_free(p);
    }
    fabric_free(f);
    g_rand_free(g.rand);
}

/* A changed word is noticed by the check of rows. */
static void test_mutations(void) {
    struct gen g = {.rand = g_rand_new_with_seed((guint32)g_test_rand_int())};
    uint32_t caught = 0, tried = 0;
    for (uint32_t round = 0; round < 20; round++) {
        g.tiles = 24;
        struct exch_problem *p = make(&g, MIXED, 40);
        struct exch_result *r = exch_schedule(p, &(struct exch_options){.budget = 50000}, NULL);
        for (uint32_t k = 0; k < 50; k++, tried++) {
            const uint32_t at = draw(&g, r->first_word[r->n_tiles]), bit = draw(&g, 32);
            r->words[at] ^= UINT32_C(1) << bit;
            caught += !exch_rows_check(p, r, NULL);
            r->words[at] ^= UINT32_C(1) << bit;
        }
        g_assert_true(exch_rows_check(p, r, NULL));
        exch_result_free(r);
        exch_problem_free(p);
    }
    g_test_message("%u of %u changed words caught", caught, tried);
    /* A few bits do nothing: a further direction, a multiplexer on an idle bus in a gap, a format
     * between two. */
    g_assert_cmpuint(caught * 100, >=, tried * 97);
    g_rand_free(g.rand);
}

/* Phases that differ from the first one in addresses alone, replayed. */
enum { N_TABLE = 6 };
struct table_case {
    struct exch_problem *p[N_TABLE];
    struct exch_result *r[N_TABLE];
};

/* Phase k: 0 and 1 equal; 2 sends and 3 receives elsewhere by one distance, downwards and upwards; 4 both
 * and a few sources apart; 5 everything apart. */
static void move_addresses(struct exch_problem *p, uint32_t k) {
    static const int32_t send[] = {0, 0, -128, 0, 64, 0}, receive[] = {0, 0, 0, 192, 64, 0};
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        p->source_address[x] += (uint32_t)send[k];
        if ((k == 4 && x % 17 == 0) || k == 5) p->source_address[x] += 8 * (1 + x % 5);
    }
    for (uint32_t x = 0; x < p->n_recipients; x++) {
        p->recipient_address[x] += (uint32_t)receive[k];
        if (k == 5) p->recipient_address[x] += 8 * (x % 3);
    }
}

static void table_cases(struct table_case *c) {
    struct gen g = {.rand = g_rand_new_with_seed((guint32)g_test_rand_int()), .tiles = 40};
    struct exch_problem *p = c->p[0] = make(&g, UNICAST, 80);
    c->r[0] = exch_schedule(p, &(struct exch_options){.budget = 50000}, NULL);
    struct exch_recipe *recipe = exch_recipe_new(p, c->r[0]);
    for (uint32_t k = 1; k < N_TABLE; k++) {
        struct exch_problem *q = c->p[k] = exch_problem_new(p->n_transfers, p->n_recipients);
        memcpy(q->source_tile, p->source_tile, 2 * (size_t)p->n_transfers);
        memcpy(q->source_address, p->source_address, 4 * (size_t)p->n_transfers);
        memcpy(q->words, p->words, 4 * (size_t)p->n_transfers);
        memcpy(q->first_recipient, p->first_recipient, 4 * ((size_t)p->n_transfers + 1));
        memcpy(q->recipient_tile, p->recipient_tile, 2 * (size_t)p->n_recipients);
        memcpy(q->recipient_address, p->recipient_address, 4 * (size_t)p->n_recipients);
        move_addresses(q, k);
        g_assert_cmphex(exch_problem_key(q), ==, exch_problem_key(p));
        c->r[k] = exch_replay(q, recipe);
        if (c->r[k] == NULL) c->r[k] = exch_schedule(q, &(struct exch_options){.budget = 50000}, NULL);
        g_assert_true(exch_rows_check(q, c->r[k], NULL));
    }
    exch_recipe_free(recipe);
    g_rand_free(g.rand);
}

static uint32_t stored_bytes(const struct exch_table *t) {
    uint32_t most = 0;
    for (uint32_t tile = 0; tile < t->n_tiles; tile++)
        most = MAX(most, 4 * (t->first_word[tile + 1] - t->first_word[tile]));
    return most;
}

/* Patches change nothing but addresses (C5), by the fabric's own reading of the words. */
static void check_patches(const struct exch_table *t, size_t cell, uint32_t tile, uint32_t n) {
    const uint32_t *stored = t->words + t->first_word[tile] + t->row[cell];
    const uint32_t first = t->first_patch[cell], n_patches = t->first_patch[cell + 1] - first;
    uint32_t *wanted = g_memdup2(stored, 4 * (size_t)n);
    uint32_t offsets[EXCH_TABLE_MAX_PATCHES], values[EXCH_TABLE_MAX_PATCHES];
    g_assert_cmpuint(n_patches, <=, EXCH_TABLE_MAX_PATCHES);
    for (uint32_t k = 0; k < n_patches; k++) {
        offsets[k] = t->patches[first + k].word - t->row[cell];
        wanted[offsets[k]] = values[k] = t->patches[first + k].value;
    }
    struct fabric_fault fault;
    g_assert_true(fabric_patches_check(&(struct fabric_patches){.stored = stored, .wanted = wanted,
                                           .offsets = offsets, .values = values, .n_words = n,
                                           .n_patches = n_patches, .tile = tile}, &fault));
    g_free(wanted);
}

/* Every phase finds its own row on every tile: with its bases and patches. */
static void check_table(const struct table_case *c, const struct exch_table *t) {
    uint32_t row[4096];
    for (uint32_t k = 0; k < N_TABLE; k++)
        for (uint32_t tile = 0; tile < TARGET_N_TILES; tile++) {
            const uint32_t a = c->r[k]->first_word[tile], n = c->r[k]->first_word[tile + 1] - a;
            const size_t cell = (size_t)k * t->n_tiles + tile;
            if (n == 0) {
                g_assert_cmphex(t->row[cell], ==, UINT32_MAX);
                continue;
            }
            g_assert_cmpuint(t->row[cell] % 2, ==, 0);
            g_assert_cmpuint((t->incoming_base[cell] | t->outgoing_base[cell]) % 8, ==, 0);
            check_patches(t, cell, tile, n);
            exch_table_row(t, c->r[k], k, tile, row);
            g_assert_cmpmem(row, 4 * n, c->r[k]->words + a, 4 * n);
        }
    g_assert_cmpuint(t->bytes_max, ==, stored_bytes(t));
}

/* Rows of several phases stored once: more sharing takes fewer bytes, and always gives the same rows. */
static void test_table(void) {
    struct table_case c;
    table_cases(&c);
    uint32_t bytes = UINT32_MAX, patched[3], based[3];
    for (enum exch_share share = EXCH_SHARE_EQUAL; share <= EXCH_SHARE_PATCHES; share++) {
        struct exch_table *t = exch_table_new((const struct exch_result *const *)c.r, N_TABLE, share);
        check_table(&c, t);
        g_assert_cmpuint(t->n_shared, >, 0);
        g_assert_cmpuint(t->bytes_max, <=, bytes);
        bytes = t->bytes_max;
        patched[share] = t->n_patched;
        based[share] = t->n_based;
        exch_table_free(t);
    }
    g_assert_cmpuint(based[EXCH_SHARE_EQUAL] + patched[EXCH_SHARE_EQUAL], ==, 0);
    g_assert_cmpuint(based[EXCH_SHARE_BASES], >, 0);
    g_assert_cmpuint(patched[EXCH_SHARE_BASES], ==, 0);
    g_assert_cmpuint(patched[EXCH_SHARE_PATCHES], >, 0);
    for (uint32_t k = 0; k < N_TABLE; k++) {
        exch_result_free(c.r[k]);
        exch_problem_free(c.p[k]);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    static const char *const names[N_SORTS] = {"unicast",  "multicast", "paired",  "mixed",
                                               "loopback", "moving",    "hostile", "dependent"};
    for (int s = 0; s < N_SORTS; s++) {
        char *path = g_strdup_printf("/exchange/random/%s", names[s]);
        g_test_add_data_func(path, GINT_TO_POINTER(s), run_sort);
        g_free(path);
    }
    g_test_add_func("/exchange/random/mutations", test_mutations);
    g_test_add_func("/exchange/random/table", test_table);
    return g_test_run();
}
