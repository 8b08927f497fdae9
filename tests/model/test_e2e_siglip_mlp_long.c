/* The MLP of the SigLIP encoder on all tiles, and the exact product of 138,674,176 values. */
#include "../cli_spawn.h"

#include <math.h>

static char *check(const char *line) {
    struct cli_said s = cli_run(line);
    if (s.status != 0) g_error("%s: status %d\n%s%s", line, s.status, s.out, s.err);
    const double predicted = cli_number(s.out, "cycles_predicted");
    const double measured = cli_number(s.out, "cycles_measured");
    g_test_message("%s: %.0f measured, %.0f predicted", line, measured, predicted);
    g_assert_cmpfloat(fabs(predicted - measured), <=, 0.01 * measured);
    g_free(s.err);
    return s.out;
}

static void test_mlp(void) {
    char *out = check("e2e-test --workload siglip-mlp-benchmark --mlp-batch 1 --json");
    g_assert_cmpfloat(cli_number(out, "values_checked"), ==, 839808);
    g_assert_cmpfloat(cli_number(out, "max_abs_error"), <=, 0.0157);
    g_free(out);
}

static void test_gemm(void) {
    char *out = check("e2e-test --workload gemm-smoke --json");
    g_assert_cmpfloat(cli_number(out, "values_checked"), ==, 138674176);
    g_assert_cmpfloat(cli_number(out, "values_unequal"), ==, 0);
    g_free(out);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/e2e/siglip_mlp", test_mlp);
    g_test_add_func("/e2e/gemm_smoke", test_gemm);
    return g_test_run();
}
