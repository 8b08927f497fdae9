/* The reference's products at sizes that leave rests in every block and run several blocks at once:
 * against sums in binary64, and the same bits for any number of threads. */
#include "reference/ref_int.h"

#include <math.h>
#include <string.h>

static float *random_matrix(uint64_t n, uint64_t stream) {
    float *v = g_new(float, n);
    for (uint64_t i = 0; i < n; i++) v[i] = rand_normal(3, stream, i);
    return v;
}

struct shape {
    uint32_t m, n, k;
};

static void check(struct shape s, bool transpose_a, bool transpose_b) {
    float *a = random_matrix((uint64_t)s.m * s.k, 1), *b = random_matrix((uint64_t)s.k * s.n, 2);
    const size_t n_results = (size_t)s.m * s.n;
    float *one = g_new(float, n_results), *many = g_new(float, n_results);
    struct ref_product p = {.m = s.m, .n = s.n, .k = s.k, .a = a, .b = b, .c = one, .ldc = s.n,
                            .lda = transpose_a ? s.m : s.k, .ldb = transpose_b ? s.k : s.n,
                            .transpose_a = transpose_a, .transpose_b = transpose_b, .alpha = 0.5f};
    par_set_threads(1);
    ref_product_run(&p);
    par_set_threads(4);
    p.c = many;
    ref_product_run(&p);
    par_set_threads(0);
    g_assert_cmpmem(one, (int)(4 * n_results), many, (int)(4 * n_results));
    for (uint32_t i = 0; i < s.m; i += 1 + s.m / 40)
        for (uint32_t j = 0; j < s.n; j++) {
            double sum = 0;
            for (uint32_t k = 0; k < s.k; k++)
                sum += (double)a[transpose_a ? (size_t)k * s.m + i : (size_t)i * s.k + k] *
                       (double)b[transpose_b ? (size_t)j * s.k + k : (size_t)k * s.n + j];
            g_assert_cmpfloat(fabs(0.5 * sum - (double)one[(size_t)i * s.n + j]), <=,
                              1e-6 * s.k + 1e-6);
        }
    g_free(a);
    g_free(b);
    g_free(one);
    g_free(many);
}

static void test_sizes(void) {
    static const struct shape shapes[] = {{1, 1, 1},    {7, 33, 1},     {6, 32, 256},  {97, 513, 257},
                                          {100, 31, 600}, {193, 1030, 5}, {13, 17, 1025},
                                          {1100, 70, 300}, {300, 4200, 9}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(shapes); i++)
        for (uint32_t t = 0; t < 4; t++) check(shapes[i], t & 1, t >> 1);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reference/product/sizes", test_sizes);
    return g_test_run();
}
