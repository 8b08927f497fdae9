/* Random phases of every sort: scheduled, checked by decoding, executed by the fabric (all words
 * delivered, nothing else, no fault, equal horizons), replayed from their recipe, mutated. Seed
 * printed and accepted by --seed. */
#include "cli/exch_verify.c"

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

/* Rows of several phases: shared rows with their patches give the rows of the phase. */
static void test_table(void) {
    struct gen g = {.rand = g_rand_new_with_seed((guint32)g_test_rand_int()), .tiles = 40};
    struct exch_problem *p[4];
    struct exch_result *r[4];
    p[0] = make(&g, UNICAST, 80);
    r[0] = exch_schedule(p[0], &(struct exch_options){.budget = 50000}, NULL);
    struct exch_recipe *recipe = exch_recipe_new(p[0], r[0]);
    for (uint32_t k = 1; k < 4; k++) {
        p[k] = exch_problem_new(p[0]->n_transfers, p[0]->n_recipients);
        memcpy(p[k]->source_tile, p[0]->source_tile, 2 * (size_t)p[0]->n_transfers);
        memcpy(p[k]->words, p[0]->words, 4 * (size_t)p[0]->n_transfers);
        memcpy(p[k]->first_recipient, p[0]->first_recipient, 4 * ((size_t)p[0]->n_transfers + 1));
        memcpy(p[k]->recipient_tile, p[0]->recipient_tile, 2 * (size_t)p[0]->n_recipients);
        for (uint32_t x = 0; x < p[0]->n_transfers; x++)
            p[k]->source_address[x] = p[0]->source_address[x] + 64 * k;
        for (uint32_t x = 0; x < p[0]->n_recipients; x++)
            p[k]->recipient_address[x] = p[0]->recipient_address[x] + 128 * (k / 2);
        g_assert_cmphex(exch_problem_key(p[k]), ==, exch_problem_key(p[0]));
        r[k] = exch_replay(p[k], recipe);
        g_assert_nonnull(r[k]);
        g_assert_true(exch_rows_check(p[k], r[k], NULL));
    }
    struct exch_table *t = exch_table_new((const struct exch_result *const *)r, 4);
    uint32_t row[4096];
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t tile = 0; tile < TARGET_N_TILES; tile++) {
            const uint32_t a = r[k]->first_word[tile], n = r[k]->first_word[tile + 1] - a;
            const size_t c = (size_t)k * t->n_tiles + tile;
            if (n == 0) {
                g_assert_cmphex(t->row[c], ==, UINT32_MAX);
                continue;
            }
            g_assert_cmpuint(t->row[c] % 2, ==, 0);
            memcpy(row, t->words + t->first_word[tile] + t->row[c], 4 * (size_t)n);
            for (uint32_t q = t->first_patch[c]; q < t->first_patch[c + 1]; q++)
                row[t->patches[q].word - t->row[c]] = t->patches[q].value;
            g_assert_cmpmem(row, 4 * n, r[k]->words + a, 4 * n);
        }
    g_assert_cmpuint(t->n_shared, >, 0);
    exch_table_free(t);
    exch_recipe_free(recipe);
    for (uint32_t k = 0; k < 4; k++) {
        exch_result_free(r[k]);
        exch_problem_free(p[k]);
    }
    g_rand_free(g.rand);
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
