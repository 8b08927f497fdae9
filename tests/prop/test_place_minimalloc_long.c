/* Every public MiniMalloc problem at its capacity, by the exact search and the checker. */
#include "place/place.h"

static void test_solved(const void *data) {
    char *path = g_strdup_printf("%s/tests/data/minimalloc/%s.1048576.csv", g_getenv("IPU_SOURCE"),
                                 (const char *)data);
    GError *error = NULL;
    struct place_problem *p = place_csv_read(path, 1048576, &error);
    g_assert_no_error(error);
    const struct place_options options = {.max_steps = 20 * 1000 * 1000};
    struct place_result *r = place_solve(p, &options, &error);
    g_assert_no_error(error);
    g_assert_cmpint(r->status, ==, PLACE_SOLVED);
    g_assert_true(place_map_check(p, r->address, NULL));
    g_test_message("%s: %" G_GUINT64_FORMAT " steps, %.2f s", (const char *)data, r->n_steps,
                   r->seconds);
    place_result_free(r);
    place_problem_free(p);
    g_free(path);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    static const char *const names[] = {"A", "C", "E", "G", "I", "K"};
    for (uint32_t i = 0; i < ARRAY_LEN(names); i++) {
        char *name = g_strdup_printf("/place/minimalloc/%s", names[i]);
        g_test_add_data_func(name, names[i], test_solved);
        g_free(name);
    }
    return g_test_run();
}
