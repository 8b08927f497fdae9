/* Dense rows: schedules of room exchange for the problems of tests/data/phases, executed by the fabric
 * and slot by slot with the same contents. They hold what the rows of the other composer do not:
 * receives without a gap, muxes that change from source to source, a format that stays on, messages
 * that go on in the middle of controls. */
#include "../fabric_help.h"

#include "exchange/exch.h"

static struct fabric_tile *tiles_of(const struct exch_result *r, uint32_t *ret_n) {
    struct fabric_tile *tiles = g_new0(struct fabric_tile, r->n_tiles);
    uint32_t n = 0;
    for (uint32_t t = 0; t < r->n_tiles; t++) {
        if (!r->active[t]) continue;
        tiles[n] = (struct fabric_tile){.tile = (uint16_t)t, .words = r->words + r->first_word[t],
            .n_words = r->first_word[t + 1] - r->first_word[t], .csr = fabric_csr_initial()};
        tiles[n++].csr.incoming_base = r->incoming_base[t];
    }
    *ret_n = n;
    return tiles;
}

static void run_schedule(const struct exch_problem *p, const struct fabric_expect *e,
                         enum exch_width width) {
    GError *error = NULL;
    const struct exch_options o = {.effort = EXCH_EFFORT_QUICK, .width = width, .seed = 1};
    struct exch_result *r = exch_schedule(p, &o, &error);
    g_assert_no_error(error);
    uint32_t n;
    struct fabric_tile *tiles = tiles_of(r, &n);
    struct fabric *f = fabric_new();
    struct fabric_result result;
    struct sram *fast = help_sources(e), *slow = help_sources(e);
    g_assert_true(slow_run(tiles, n, slow));
    fabric_phase_run(f, &(struct fabric_phase){.sram = fast, .tiles = tiles, .n_tiles = n}, &result);
    fabric_expect_check(f, e, &result);
    if (result.first != NULL) {
        char *text = fabric_fault_text(result.first);
        g_test_message("%s", text);
        g_free(text);
    }
    g_assert_true(result.ok);
    g_assert_cmpuint(result.horizon, ==, r->horizon);
    const struct help_case c = {.tiles = tiles, .n = n};
    g_assert_cmpuint(help_differences(fast, slow, &c), ==, 0);
    sram_free(fast);
    sram_free(slow);
    fabric_free(f);
    g_free(tiles);
    exch_result_free(r);
}

static void test_schedules(gconstpointer name) {
    GError *error = NULL;
    char *path = help_path(name, "json");
    struct fabric_expect e;
    struct exch_problem_set *set = exch_file_read(path, &error);
    g_assert_no_error(error);
    g_assert_true(fabric_expect_read(path, 0, &e, &error));
    run_schedule(set->phases[0], &e, EXCH_WIDTH_ORDINARY);
    run_schedule(set->phases[0], &e, EXCH_WIDTH_PAIRED);
    fabric_expect_clear(&e);
    exch_problem_set_free(set);
    g_free(path);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    static const char *const names[] = {"uni-1", "multi-1", "dense-1", "pair-2", "pair-5", "pair-6",
        "pair-7", "pair-11", "mixed-1", "mixed-2", "mixed-3", "mixed-4", "mixed-5", "mlp-b1-0"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = g_strdup_printf("/fabric/schedules/%s", names[i]);
        g_test_add_data_func(path, names[i], test_schedules);
        g_free(path);
    }
    return g_test_run();
}
