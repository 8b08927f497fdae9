#include "numeric/num_compare.h"

#include <math.h>

static void test_numeric_compare_tolerance(void) {
    struct num_report r;
    const float c[4] = {1.0f, 2.02f, -3.0f, 0.0f}, w[4] = {1.0f, 2.0f, -3.0f, 0.04f};
    num_report_init(&r, 0.03, 0);
    g_assert_false(num_report_pass(&r)); /* nothing compared is no pass */
    num_report_add(&r, c, w, 2);
    num_report_add(&r, c + 2, w + 2, 2);
    g_assert_cmpuint(r.n_values, ==, 4);
    g_assert_cmpuint(r.n_failed, ==, 1);
    g_assert_cmpuint(r.first_failed, ==, 3);
    g_assert_cmpuint(r.worst_index, ==, 3);
    g_assert_cmpuint(r.n_unequal, ==, 2);
    g_assert_cmpfloat_with_epsilon(r.max_abs_error, 0.04, 1e-6);
    g_assert_false(num_report_pass(&r));
    g_assert_cmpfloat(num_report_cosine(&r), >, 0.999);
}

/* A NaN or infinity must fail and must not hide behind a maximum of 0. */
static void test_numeric_compare_not_finite(void) {
    struct num_report r;
    const float c[3] = {0.0f, NAN, INFINITY}, w[3] = {0.0f, 0.0f, INFINITY};
    num_report_init(&r, 1, 1);
    num_report_add(&r, c, w, 3);
    g_assert_cmpuint(r.n_not_finite, ==, 2);
    g_assert_cmpuint(r.n_failed, ==, 2);
    g_assert_cmpuint(r.worst_index, ==, 1);
    g_assert_true(isinf(r.max_abs_error));
    g_assert_true(isnan(num_report_cosine(&r)));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/numeric/compare/tolerance", test_numeric_compare_tolerance);
    g_test_add_func("/numeric/compare/not-finite", test_numeric_compare_not_finite);
    return g_test_run();
}
