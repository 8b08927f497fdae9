/* Exchange-aware placement confirmed by the exact scheduler: the buffers of a broadcast phase
 * confined to six interleaved elements, where a plain map makes sends wait for receives. */
#include "../place_exchange.h"

static uint32_t horizon_of(const struct exch_problem *x) {
    GError *error = NULL;
    const struct exch_options o = {.effort = EXCH_EFFORT_QUICK};
    struct exch_result *r = exch_schedule(x, &o, &error);
    g_assert_no_error(error);
    g_assert_true(exch_rows_check(x, r, &error));
    const uint32_t horizon = r->horizon;
    exch_result_free(r);
    return horizon;
}

static void test_confined(const void *data) {
    const uint32_t seed = GPOINTER_TO_UINT(data);
    struct exch_problem *free_map = exch_generate("syn-h2", seed, false, NULL);
    struct exch_problem *confined = exch_generate("syn-h2", seed, true, NULL);
    struct phase_placement p = phase_placement_new(confined, 0x80000, 0xb0000);
    struct place_result *plain = place_solve(p.problem, NULL, NULL);
    const struct place_options options = {.traffic = &p.traffic};
    struct place_result *aware = place_solve(p.problem, &options, NULL);
    g_assert_cmpint(plain->status, ==, PLACE_SOLVED);
    g_assert_cmpint(aware->status, ==, PLACE_SOLVED);
    g_assert_true(place_map_check(p.problem, aware->address, NULL));
    const double plain_score = place_traffic_score(p.problem, &p.traffic, plain->address);
    const double aware_score = place_traffic_score(p.problem, &p.traffic, aware->address);
    g_assert_cmpfloat(aware_score, <, plain_score / 1000);
    const uint32_t want = horizon_of(free_map), hostile = horizon_of(confined);
    phase_placement_apply(&p, aware->address, confined);
    const uint32_t got = horizon_of(confined);
    g_test_message("seed %u: free %u, aware %u, arena order %u", seed, want, got, hostile);
    g_assert_cmpuint(100 * (uint64_t)got, <=, 105 * (uint64_t)want);
    g_assert_cmpuint(got, <, hostile);
    place_result_free(plain);
    place_result_free(aware);
    phase_placement_free(&p);
    exch_problem_free(free_map);
    exch_problem_free(confined);
}

/* Two buffers of one tile, sent and received in the same phase and nothing else: apart in the end,
 * also if one of them is an alias in the middle of a storage. */
static void test_small(void) {
    const struct place_memory m = place_memory_c600(false);
    struct place_builder *b = place_builder_new(1, &m);
    const uint32_t name = place_builder_name(b, "x");
    const struct place_request q = {
        .bytes = 5000, .align = 8, .name = name, .memory_class = PLACE_INTERLEAVED};
    const uint32_t root = place_builder_add(b, 0, &q);
    const struct place_request view = {
        .bytes = 100, .flags = PLACE_ALIAS, .alias = root, .displacement = 4000, .name = name};
    place_builder_add(b, 0, &view);
    place_builder_add(b, 0, &q);
    struct place_problem *p = place_builder_finish(b, NULL);
    const uint32_t first[] = {0, 2};
    const struct place_traffic_item item[] = {
        {.phase = 9, .request = 1, .bytes = 100},
        {.phase = 9, .request = 2, .bytes = 5000, .receive = 1}};
    const struct place_traffic traffic = {1, 2, first, item};
    struct place_result *plain = place_solve(p, NULL, NULL);
    g_assert_cmpfloat(place_traffic_score(p, &traffic, plain->address), ==, 100.0 * 5000);
    const struct place_options options = {.traffic = &traffic};
    struct place_result *aware = place_solve(p, &options, NULL);
    g_assert_cmpfloat(place_traffic_score(p, &traffic, aware->address), ==, 0);
    place_result_free(plain);
    place_result_free(aware);
    place_problem_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/place/traffic_small", test_small);
    for (uint32_t seed = 1; seed <= 3; seed++) {
        char *name = g_strdup_printf("/place/traffic_confined_%u", seed);
        g_test_add_data_func(name, GUINT_TO_POINTER(seed), test_confined);
        g_free(name);
    }
    return g_test_run();
}
