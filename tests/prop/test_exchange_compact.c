/* Small rows: random dense phases (many short messages from every tile to others). Every point of
 * the Pareto set is checked by decoding and executed by the fabric; the points trade bytes for
 * slots; trim never lengthens a schedule or its longest row, and leaves a legal one. */
#include "cli/exch_verify.c"

#include "exchange/exch_int.h"

#include <string.h>

enum { N = TARGET_N_TILES, ROUNDS = 12 };

/* ROUNDS random permutations: every tile sends and receives about so many messages. */
static struct exch_problem *make(bool mixed) {
    struct exch_problem *p = exch_problem_new(N * ROUNDS, N * ROUNDS);
    uint32_t n = 0, to[N], source[N], destination[N], *target = g_new(uint32_t, N * ROUNDS);
    for (uint32_t r = 0; r < ROUNDS; r++) {
        for (uint32_t t = 0; t < N; t++) to[t] = t;
        for (uint32_t t = N - 1; t > 0; t--) {
            const uint32_t j = (uint32_t)g_test_rand_int_range(0, (gint32)t + 1), v = to[t];
            to[t] = to[j];
            to[j] = v;
        }
        for (uint32_t t = 0; t < N; t++) target[t * ROUNDS + r] = to[t] != t ? to[t] : (t + 1) % N;
    }
    for (uint32_t t = 0; t < N; t++) {
        source[t] = 0x50000;
        destination[t] = 0x90000;
    }
    for (uint32_t t = 0; t < N; t++)
        for (uint32_t r = 0; r < ROUNDS; r++, n++) {
            const uint32_t d = target[n], words = mixed ? 3 + 5 * (r % 4) : 32;
            p->source_tile[n] = (uint16_t)t;
            p->recipient_tile[n] = (uint16_t)d;
            p->words[n] = words;
            p->first_recipient[n + 1] = n + 1;
            p->source_address[n] = source[t];
            p->recipient_address[n] = destination[d];
            source[t] += 4 * words;
            destination[d] += 4 * words;
        }
    g_free(target);
    g_assert_true(exch_problem_check(p, NULL));
    return p;
}

static void verify(const struct exch_problem *p, const struct exch_result *r) {
    GError *error = NULL;
    exch_rows_check(p, r, &error);
    g_assert_no_error(error);
    struct fabric *f = fabric_new();
    struct exch_verdict v;
    exch_verify(f, p, r, 0, &v);
    g_assert_true(v.ok);
    fabric_free(f);
}

static void test_pareto(gconstpointer mixed) {
    enum { MOST = 16 };
    struct exch_problem *p = make(mixed != NULL);
    const struct exch_options o = {.effort = EXCH_EFFORT_QUICK};
    struct exch_result *set[MOST], *again[MOST], *alone = exch_schedule(p, &o, NULL);
    const uint32_t n = exch_pareto(p, &o, MOST, set, NULL);
    g_assert_cmpuint(n, >=, 2);
    g_assert_cmpuint(exch_pareto(p, &o, MOST, again, NULL), ==, n);
    for (uint32_t k = 0; k < n; k++) {
        verify(p, set[k]);
        g_assert_cmphex(set[k]->fingerprint, ==, again[k]->fingerprint);
        if (k == 0) continue;
        g_assert_cmpuint(set[k]->row_bytes_max, >, set[k - 1]->row_bytes_max);
        g_assert_cmpuint(set[k]->horizon, <, set[k - 1]->horizon);
    }
    g_assert_cmpuint(set[n - 1]->horizon, <=, alone->horizon);
    g_assert_cmpuint(set[0]->row_bytes_max, <, alone->row_bytes_max);
    for (uint32_t k = 0; k < n; k++) {
        exch_result_free(set[k]);
        exch_result_free(again[k]);
    }
    exch_result_free(alone);
    exch_problem_free(p);
}

static void test_trim(gconstpointer what) {
    const bool relaxed = strstr(what, "relaxed") != NULL;
    struct exch_problem *p = make(strstr(what, "mixed") != NULL);
    uint8_t *paired = g_new0(uint8_t, p->n_transfers);
    struct exch_msgs *m = exch_msgs_new(p, paired, NULL);
    struct exch_sched *s = exch_sched_new(m->arena, m, relaxed);
    const struct exch_dense_options dense = {.look = 8,
                                             .cap = 5,
                                             .weight = 0.006f,
                                             .projected = true,
                                             .tail_weight = 0.03f,
                                             .tail = 1000};
    exch_sched_dense(m, &dense, false, s);
    const uint32_t horizon = s->horizon;
    struct exch_result *plain = exch_result_new(m, s, NULL);
    const uint32_t limit = plain->row_bytes_max / 4 - 2;
    uint32_t words = 0;
    for (uint32_t step = 0; step < 2; step++) { /* to a limit, then as far as it goes */
        const struct exch_trim_options o = {.limit = step == 0 ? limit : 0, .budget = 200000,
                                            .relaxed = relaxed};
        words = exch_sched_trim(m, &o, s);
        g_assert_cmpuint(s->horizon, <=, horizon);
        struct exch_result *r = exch_result_new(m, s, NULL);
        g_assert_cmpuint(r->row_bytes_max, ==, 4 * words);
        g_assert_cmpuint(r->horizon, ==, s->horizon);
        if (step == 0) g_assert_cmpuint(words, <=, limit);
        verify(p, r);
        exch_result_free(r);
    }
    g_test_message("longest row %u words, then %u", plain->row_bytes_max / 4, words);
    g_assert_cmpuint(words, <, limit);
    exch_result_free(plain);
    exch_msgs_free(m);
    g_free(paired);
    exch_problem_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/exchange/compact/pareto", NULL, test_pareto);
    g_test_add_data_func("/exchange/compact/pareto-mixed", "", test_pareto);
    g_test_add_data_func("/exchange/compact/trim", "", test_trim);
    g_test_add_data_func("/exchange/compact/trim-relaxed", "relaxed", test_trim);
    g_test_add_data_func("/exchange/compact/trim-mixed", "mixed relaxed", test_trim);
    return g_test_run();
}
