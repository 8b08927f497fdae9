/* Attention and small encoders through the whole command: every strategy, F8 for either product,
 * layers in a repeat; right values, predicted cycles within 1 %. */
#include "../cli_spawn.h"

#include <math.h>

static void check(const char *options, double most_error) {
    char *line = g_strdup_printf("e2e-test --json --no-profile %s", options);
    struct cli_said s = cli_run(line);
    if (s.status != 0) g_error("%s: status %d\n%s%s", line, s.status, s.out, s.err);
    g_assert_nonnull(strstr(s.out, "\"pass\":true"));
    const double predicted = cli_number(s.out, "cycles_predicted");
    const double measured = cli_number(s.out, "cycles_measured");
    g_test_message("%s: %.0f measured, %.0f predicted", line, measured, predicted);
    g_assert_cmpfloat(fabs(predicted - measured), <=, 0.01 * measured);
    g_assert_cmpfloat(cli_number(s.out, "max_abs_error"), <=, most_error);
    cli_said_clear(&s);
    g_free(line);
}

static void test_smoke(void) {
    static const uint32_t TILES[] = {1, 7, 64, 1472};
    for (uint32_t i = 0; i < G_N_ELEMENTS(TILES); i++) {
        char *options = g_strdup_printf("--workload attention-smoke --tiles %u", TILES[i]);
        check(options, 0.012);
        g_free(options);
    }
}

/* 81 tokens in 4 heads of 72: keys in three groups of 32. */
static void test_strategies(void) {
    static const char *const STRATEGIES[] = {
        "key-split", "streaming", "materialised", "materialised --attention-products shared-rows",
        "materialised --attention-products qk-only", "materialised --attention-products pv-only",
        "materialised --attention-products independent"};
    static const struct {
        const char *options;
        double most_error;
    } FORMATS[] = {{"", 0.004},
                   {"--attention-qk-fp8-scale=-4 --diagnostic-atol 0.06", 0.05},
                   {"--attention-pv-fp8-scale=-4 --diagnostic-atol 0.06", 0.05},
                   {"--fp8-scale=-4 --diagnostic-atol 0.06", 0.05}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(STRATEGIES); i++)
        for (uint32_t k = 0; k < G_N_ELEMENTS(FORMATS); k++) {
            if (i > 2 && k > 0) continue;
            char *options = g_strdup_printf(
                "--workload siglip-attention-benchmark --mlp-tokens 81 --attention-heads 4 "
                "--tiles 64 --attention-strategy %s %s",
                STRATEGIES[i], FORMATS[k].options);
            check(options, FORMATS[k].most_error);
            g_free(options);
        }
}

static void test_layers(void) {
    check("--workload siglip-vit-benchmark --vit-small --tiles 64 --vit-layers 3 --fuse-qkv", 0.01);
    check("--workload siglip-vit-benchmark --vit-small --tiles 64 --vit-layers 2 --vit-batch 2", 0.01);
}

static void test_row_passes(void) {
    check("--workload siglip-vit-benchmark --vit-small --tiles 64 --vit-layers 2 --row-passes 3 "
          "--fuse-qkv --fp8-scale=-4 --diagnostic-atol 0.2 --diagnostic-rtol 0.05", 0.25);
    check("--workload siglip-attention-benchmark --mlp-tokens 81 --attention-heads 4 --tiles 64 "
          "--row-passes 2", 0.004);
}

static void test_unknown(void) {
    struct cli_said s =
        cli_run("e2e-test --workload attention-smoke --attention-strategy blocked");
    g_assert_cmpint(s.status, ==, 2);
    g_assert_nonnull(strstr(s.err, "known are auto, key-split, materialised, streaming"));
    cli_said_clear(&s);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/attention/smoke", test_smoke);
    g_test_add_func("/attention/strategies", test_strategies);
    g_test_add_func("/attention/layers", test_layers);
    g_test_add_func("/attention/row_passes", test_row_passes);
    g_test_add_func("/attention/unknown", test_unknown);
    return g_test_run();
}
