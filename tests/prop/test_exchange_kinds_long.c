/* Every synthetic kind (seeds 1 to 3) and every captured phase at normal effort: executed by the fabric,
 * never below the bound, within the ratio that is asked of its kind, row bytes within limits, and the same
 * rows when scheduled again. The Pareto set of syn-v34 has a point of small rows near the bound. */
#include "cli/exch_verify.c"

#include <math.h>

struct limit {
    const char *kind;
    bool hostile;
    double ratio;
    uint32_t row_bytes; /* 0 = no limit */
};
static const struct limit limits[] = {
    {"syn-v34", false, 1.025, 7168},  {"syn-v34x", false, 1.025, 7168}, {"syn-1m", false, 1.020, 13824},
    {"syn-1mx", false, 1.020, 13824}, {"syn-m3", false, 1.065, 0},      {"syn-a", false, 1.18, 0},
    {"syn-a-gather", false, 1.04, 0}, {"syn-100k", false, 1.10, 0},     {"syn-m0", false, 1.010, 0},
    {"syn-h2", false, 1.15, 0},       {"syn-h2", true, 1.30, 0},
};

static void run(const struct exch_problem *p, double ratio, uint32_t row_bytes, bool twice) {
    const struct exch_options o = {.effort = EXCH_EFFORT_NORMAL};
    GError *error = NULL;
    struct exch_result *r = exch_schedule(p, &o, &error);
    g_assert_no_error(error);
    g_test_message("%s: %u, bound %u, ratio %.4f", p->name != NULL ? p->name : "captured", r->horizon,
                   r->bounds.any_width, (double)r->horizon / r->bounds.any_width);
    g_assert_true(exch_rows_check(p, r, NULL));
    struct fabric *f = fabric_new();
    struct exch_verdict v;
    exch_verify(f, p, r, 0, &v);
    g_assert_true(v.ok);
    fabric_free(f);
    g_assert_cmpuint(r->horizon, >=, r->bounds.any_width);
    g_assert_cmpfloat((double)r->horizon, <=, ratio * r->bounds.any_width);
    if (row_bytes != 0) g_assert_cmpuint(r->row_bytes_max, <=, row_bytes);
    if (twice) {
        struct exch_result *again = exch_schedule(p, &o, NULL);
        g_assert_cmphex(again->fingerprint, ==, r->fingerprint);
        exch_result_free(again);
    }
    exch_result_free(r);
}

static void test_kind(gconstpointer data) {
    const struct limit *l = data;
    for (uint32_t seed = 1; seed <= 3; seed++) {
        struct exch_problem *p = exch_generate(l->kind, seed, l->hostile, NULL);
        g_assert_true(exch_problem_check(p, NULL));
        run(p, l->ratio, l->row_bytes, seed == 1 && p->n_transfers < 200000);
        exch_problem_free(p);
    }
}

static void test_compact(void) {
    enum { MOST = 8, ROW_BYTES = 5000 };
    for (uint32_t seed = 1; seed <= 3; seed++) {
        struct exch_problem *p = exch_generate("syn-v34", seed, false, NULL);
        const struct exch_options o = {.effort = EXCH_EFFORT_NORMAL};
        struct exch_result *set[MOST];
        const uint32_t n = exch_pareto(p, &o, MOST, set, NULL);
        double best = INFINITY;
        for (uint32_t k = 0; k < n; k++) {
            const struct exch_result *r = set[k];
            g_test_message("seed %u: %u bytes, %u", seed, r->row_bytes_max, r->horizon);
            if (r->row_bytes_max > ROW_BYTES) continue;
            struct fabric *f = fabric_new();
            struct exch_verdict v;
            exch_verify(f, p, r, 0, &v);
            g_assert_true(v.ok);
            fabric_free(f);
            best = MIN(best, (double)r->horizon / r->bounds.any_width);
        }
        g_assert_cmpfloat(best, <=, 1.10);
        for (uint32_t k = 0; k < n; k++) exch_result_free(set[k]);
        exch_problem_free(p);
    }
}

struct captured {
    const char *file;
    uint32_t phase;
    double ratio;
};
static const struct captured captured[] = {
    {"mlp-b1", 0, 1.005},      {"mlp-b1", 1, 1.12},      {"mlp-b1", 2, 1.40},
    {"mlp-b1", 3, 1.15},       {"mlp-256", 0, 1.005},    {"mlp-256", 1, 2.3},
    {"mlp-256", 2, 2.1},       {"mlp-256", 3, 1.15},     {"attention-b1", 0, 1.00},
    {"attention-b1", 1, 1.15}, {"attention-b1", 6, 1.4}, {"attention-b1", 7, 1.05},
    {"attention-b1", 8, 1.05}, {"attention-b1", 9, 1.005}, {"attention-b1", 10, 1.02},
};

static void test_captured(void) {
    for (size_t i = 0; i < G_N_ELEMENTS(captured); i++) {
        char *path = g_strdup_printf("%s/tests/data/phases/%s.json.zst", g_getenv("IPU_SOURCE"),
                                     captured[i].file);
        GError *error = NULL;
        struct exch_problem_set *set = exch_file_read(path, &error);
        g_assert_no_error(error);
        for (uint32_t k = 0; k < set->n_phases; k++)
            if (set->number[k] == captured[i].phase)
                run(set->phases[k], captured[i].ratio, 0, set->phases[k]->n_transfers < 5000);
        exch_problem_set_free(set);
        g_free(path);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(limits); i++) {
        char *path = g_strdup_printf("/exchange/kinds/%s%s", limits[i].kind,
                                     limits[i].hostile ? "-hostile" : "");
        g_test_add_data_func(path, &limits[i], test_kind);
        g_free(path);
    }
    g_test_add_func("/exchange/kinds/captured", test_captured);
    g_test_add_func("/exchange/kinds/compact", test_compact);
    return g_test_run();
}
