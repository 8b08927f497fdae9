/* References against definitions written out element by element, on small graphs in text form. */
#include "reference/reference.h"

#include <math.h>

static struct reference *run(const char *text, const struct reference_precision *precision,
                             struct graph **ret_graph) {
    GError *error = NULL;
    struct graph *g = graph_parse(text, "test", &error);
    g_assert_no_error(error);
    static struct reference_fill fill;
    fill = (struct reference_fill){g, 7};
    const struct reference_options o = {
        .precision = precision, .source = reference_fill_source, .source_user = &fill,
        .keep_all = true};
    struct reference *r = reference_run(g, &o, &error);
    g_assert_no_error(error);
    *ret_graph = g;
    return r;
}

static float fill(const struct graph *g, const char *name, uint64_t i) {
    return graph_fill_element(&g->values[graph_find_value(g, name)], 7, i);
}

static const float *value(const struct reference *r, const struct graph *g, const char *name) {
    const float *v = reference_value(r, graph_find_value(g, name));
    g_assert_nonnull(v);
    return v;
}

static void near(float got, double want, double bound) {
    g_assert_cmpfloat(fabs((double)got - want), <=, bound);
}

static void test_reference_gemm(void) {
    struct graph *g;
    struct reference *r = run("graph t\n"
                              "%a = input [2, 3, 5] fill normal 1 0\n"
                              "%b = parameter [5, 4] fill normal 1 0\n"
                              "%c = parameter [4, 5] fill normal 1 0\n"
                              "%d = input [2, 5, 3] fill normal 1 0\n"
                              "%e = parameter [2, 5, 4] fill normal 1 0\n"
                              "%x = gemm %a, %b : [2, 3, 4]\n"
                              "%y = gemm %a, %c transpose_right : [2, 3, 4]\n"
                              "%z = gemm %d, %e transpose_left : [2, 3, 4]\n"
                              "output %x atol 0 rtol 0\noutput %y atol 0 rtol 0\n"
                              "output %z atol 0 rtol 0\n", NULL, &g);
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t m = 0; m < 3; m++)
            for (uint32_t n = 0; n < 4; n++) {
                double x = 0, y = 0, z = 0;
                for (uint32_t k = 0; k < 5; k++) {
                    const double a = (double)fill(g, "a", (b * 3 + m) * 5 + k);
                    x += a * (double)fill(g, "b", k * 4 + n);
                    y += a * (double)fill(g, "c", n * 5 + k);
                    z += (double)fill(g, "d", (b * 5 + k) * 3 + m) *
                         (double)fill(g, "e", (b * 5 + k) * 4 + n);
                }
                const uint32_t i = (b * 3 + m) * 4 + n;
                near(value(r, g, "x")[i], x, 1e-5);
                near(value(r, g, "y")[i], y, 1e-5);
                near(value(r, g, "z")[i], z, 1e-5);
            }
    reference_free(r);
    graph_free(g);
}

/* Device precision rounds operands, parameters and results; each is checked apart. */
static void test_reference_precision(void) {
    struct graph *g;
    struct reference_op ops[2] = {{.result = {GRAPH_F16, 0},
        .operand = {{GRAPH_F8_F143, -4}, {GRAPH_F8_F143, -4}}}, {{GRAPH_F16, 0}, {{0}}, {0}}};
    const struct reference_precision precision = {2, ops, NULL};
    struct reference *r = run("graph t\n"
                              "%a = input [1, 1] fill normal 1 0\n"
                              "%b = parameter [1, 1] fill normal 1 0\n"
                              "%x = gemm %a, %b : [1, 1]\n"
                              "%y = gelu %x : [1, 1]\n"
                              "output %y atol 0 rtol 0\n", &precision, &g);
    float a = fill(g, "a", 0), b = fill(g, "b", 0);
    const struct reference_format f16 = {GRAPH_F16, 0}, f8 = {GRAPH_F8_F143, -4};
    reference_round(&a, 1, f16);
    reference_round(&a, 1, f8);
    reference_round(&b, 1, f16);
    reference_round(&b, 1, f8);
    float x = a * b;
    reference_round(&x, 1, f16);
    g_assert_cmpfloat(value(r, g, "x")[0], ==, x);
    const double v = (double)x;
    float y = (float)(0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))));
    reference_round(&y, 1, f16);
    near(value(r, g, "y")[0], (double)y, 1e-6);
    reference_free(r);
    graph_free(g);
}

static void test_reference_rows(void) {
    struct graph *g;
    struct reference *r = run("graph t\n"
                              "%x = input [3, 6] fill normal 1 0\n"
                              "%s = parameter [6] fill normal 1 1\n"
                              "%b = parameter [6] fill normal 1 0\n"
                              "%n = layer_norm %x, %s, %b epsilon 0.000001 : [3, 6]\n"
                              "%m = rms_norm %x, %s epsilon 0.000001 : [3, 6]\n"
                              "%p = softmax %x : [3, 6]\n"
                              "%a = add %x, %b : [3, 6]\n"
                              "output %n atol 0 rtol 0\noutput %m atol 0 rtol 0\n"
                              "output %p atol 0 rtol 0\noutput %a atol 0 rtol 0\n", NULL, &g);
    for (uint32_t i = 0; i < 3; i++) {
        double x[6], mean = 0, var = 0, square = 0, sum = 0;
        for (uint32_t j = 0; j < 6; j++) {
            x[j] = (double)fill(g, "x", i * 6 + j);
            mean += x[j] / 6;
            square += x[j] * x[j] / 6;
            sum += exp(x[j]);
        }
        for (uint32_t j = 0; j < 6; j++) var += (x[j] - mean) * (x[j] - mean) / 6;
        for (uint32_t j = 0; j < 6; j++) {
            const double s = (double)fill(g, "s", j), b = (double)fill(g, "b", j);
            near(value(r, g, "n")[i * 6 + j], (x[j] - mean) / sqrt(var + 1e-6) * s + b, 1e-5);
            near(value(r, g, "m")[i * 6 + j], x[j] / sqrt(square + 1e-6) * s, 1e-5);
            near(value(r, g, "p")[i * 6 + j], exp(x[j]) / sum, 1e-6);
            near(value(r, g, "a")[i * 6 + j], x[j] + b, 1e-6);
        }
    }
    reference_free(r);
    graph_free(g);
}

static void test_reference_views(void) {
    struct graph *g;
    struct reference *r = run("graph t\n"
                              "%x = input [2, 3, 4] fill normal 1 0\n"
                              "%h = split %x axis 2 count 2 : [4, 3, 2]\n"
                              "%b = merge %h axis 2 count 2 : [2, 3, 4]\n"
                              "%t = transpose %x perm 2 0 1 : [4, 2, 3]\n"
                              "%s = slice %x axis 1 start 1 width 2 : [2, 2, 4]\n"
                              "%c = concat %s, %x axis 1 : [2, 5, 4]\n"
                              "output %b atol 0 rtol 0\noutput %t atol 0 rtol 0\n"
                              "output %c atol 0 rtol 0\n", NULL, &g);
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t s = 0; s < 3; s++)
            for (uint32_t w = 0; w < 4; w++) {
                const float x = fill(g, "x", (b * 3 + s) * 4 + w);
                g_assert_cmpfloat(value(r, g, "h")[((b * 2 + w / 2) * 3 + s) * 2 + w % 2], ==, x);
                g_assert_cmpfloat(value(r, g, "b")[(b * 3 + s) * 4 + w], ==, x);
                g_assert_cmpfloat(value(r, g, "t")[(w * 2 + b) * 3 + s], ==, x);
                if (s >= 1)
                    g_assert_cmpfloat(value(r, g, "s")[(b * 2 + s - 1) * 4 + w], ==, x);
                g_assert_cmpfloat(value(r, g, "c")[(b * 5 + s + 2) * 4 + w], ==, x);
            }
    reference_free(r);
    graph_free(g);
}

static void test_reference_attention(bool causal) {
    struct graph *g;
    char *text = g_strdup_printf("graph t\n"
                                 "%%q = input [2, 5, 4] fill normal 1 0\n"
                                 "%%k = input [2, 5, 4] fill normal 1 0\n"
                                 "%%v = input [2, 5, 3] fill normal 1 0\n"
                                 "%%o = attention %%q, %%k, %%v%s : [2, 5, 3]\n"
                                 "output %%o atol 0 rtol 0\n", causal ? " causal" : "");
    struct reference *r = run(text, NULL, &g);
    for (uint32_t h = 0; h < 2; h++)
        for (uint32_t i = 0; i < 5; i++) {
            double e[5], sum = 0;
            const uint32_t n = causal ? i + 1 : 5;
            for (uint32_t j = 0; j < n; j++) {
                double dot = 0;
                for (uint32_t d = 0; d < 4; d++)
                    dot += (double)fill(g, "q", (h * 5 + i) * 4 + d) *
                           (double)fill(g, "k", (h * 5 + j) * 4 + d);
                sum += e[j] = exp(dot / 2);
            }
            for (uint32_t c = 0; c < 3; c++) {
                double want = 0;
                for (uint32_t j = 0; j < n; j++)
                    want += e[j] / sum * (double)fill(g, "v", (h * 5 + j) * 3 + c);
                near(value(r, g, "o")[(h * 5 + i) * 3 + c], want, 1e-5);
            }
        }
    reference_free(r);
    graph_free(g);
    g_free(text);
}

static void test_reference_attention_full(void) { test_reference_attention(false); }
static void test_reference_attention_causal(void) { test_reference_attention(true); }

static void test_reference_repeat(void) {
    struct graph *g;
    struct reference *r = run("graph t\n"
                              "%x = input [2, 2] fill normal 1 0\n"
                              "%i = input [2, 2] fill normal 1 0\n"
                              "%w = parameter [3, 2, 2] fill normal 1 0\n"
                              "%y = repeat loop count 3 carried %c = %x invariant %k = %i iterated %s = %w {\n"
                              "%t = gemm %c, %s : [2, 2]\n"
                              "%u = add %t, %k : [2, 2]\n"
                              "yield %u\n}\n"
                              "output %y atol 0 rtol 0\n", NULL, &g);
    double y[4];
    for (uint32_t j = 0; j < 4; j++) y[j] = (double)fill(g, "x", j);
    for (uint32_t n = 0; n < 3; n++) {
        double t[4];
        for (uint32_t j = 0; j < 4; j++)
            t[j] = y[j / 2 * 2] * (double)fill(g, "w", n * 4 + j % 2) +
                   y[j / 2 * 2 + 1] * (double)fill(g, "w", n * 4 + 2 + j % 2) +
                   (double)fill(g, "i", j);
        for (uint32_t j = 0; j < 4; j++) y[j] = t[j];
    }
    for (uint32_t j = 0; j < 4; j++) near(value(r, g, "y")[j], y[j], 1e-4);
    reference_free(r);
    graph_free(g);
}

/* The iterations of a repeat need no memory each: 2^20 of them on the usual stack of 8 MiB. */
static void test_reference_long_repeat(void) {
    struct graph *g;
    struct reference *r = run("graph t\n%x = input [1] fill constant 1 0\n"
                              "%k = input [1] fill constant 1 0\n"
                              "%y = repeat loop count 1048576 carried %c = %x invariant %s = %k {\n"
                              "%t = add %c, %s\nyield %t\n}\noutput %y\n", NULL, &g);
    near(value(r, g, "y")[0], 1048577, 0);
    reference_free(r);
    graph_free(g);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/reference/gemm", test_reference_gemm);
    g_test_add_func("/reference/precision", test_reference_precision);
    g_test_add_func("/reference/rows", test_reference_rows);
    g_test_add_func("/reference/views", test_reference_views);
    g_test_add_func("/reference/attention", test_reference_attention_full);
    g_test_add_func("/reference/causal", test_reference_attention_causal);
    g_test_add_func("/reference/repeat", test_reference_repeat);
    g_test_add_func("/reference/long_repeat", test_reference_long_repeat);
    return g_test_run();
}
