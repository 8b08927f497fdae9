/* The text form: what is printed is read back to the same text, for every workload; errors name
 * file, line and rule. */
#include "graph/graph.h"

#include <string.h>

static void round_trip(struct graph *g) {
    GError *error = NULL;
    GString *a = g_string_new(NULL), *b = g_string_new(NULL);
    graph_print(g, a);
    struct graph *h = graph_parse(a->str, "text", &error);
    g_assert_no_error(error);
    graph_print(h, b);
    g_assert_cmpstr(a->str, ==, b->str);
    graph_free(h);
    g_string_free(a, TRUE);
    g_string_free(b, TRUE);
}

static void test_workloads(void) {
    const char *name, *text;
    for (uint32_t i = 0; graph_workload_describe(i, &name, &text); i++)
        for (uint32_t variant = 0; variant < 4; variant++) {
            struct graph_workload_options o;
            graph_workload_defaults(&o);
            o.tiles = 64;
            o.fuse_qkv = variant & 1;
            o.vit_small = variant & 2;
            o.vit_layers = 1 + variant;
            o.attention_blocks = 1 + (variant & 1);
            GError *error = NULL;
            struct graph *g = graph_workload_build(name, &o, &error);
            g_assert_no_error(error);
            round_trip(g);
            graph_free(g);
        }
}

static uint32_t count_ops(const struct graph *g, uint32_t kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->n_ops; i++) n += g->ops[i].kind == kind;
    return n;
}

static void test_vit_counts(void) {
    struct graph_workload_options o;
    graph_workload_defaults(&o);
    for (uint32_t fused = 0; fused < 2; fused++) {
        o.fuse_qkv = fused;
        struct graph *g = graph_workload_build("siglip-vit-benchmark", &o, NULL);
        g_assert_cmpuint(count_ops(g, GRAPH_GEMM), ==, fused ? 10 : 13);
        g_assert_cmpuint(count_ops(g, GRAPH_LAYER_NORM), ==, 4);
        g_assert_cmpuint(count_ops(g, GRAPH_ATTENTION), ==, 2);
        for (uint32_t i = 0; i < g->n_ops; i++)
            if (g->ops[i].kind == GRAPH_REPEAT)
                g_assert_cmpuint(g->ops[i].repeat.n_iterated, ==, fused ? 12 : 16);
        const struct graph_value *y = &g->values[g->outputs[0].value];
        g_assert_cmpuint(graph_shape_elements(&y->shape), ==, 1152);
        graph_free(g);
    }
}

static void expect_error(const char *text, int code, const char *part) {
    GError *error = NULL;
    g_assert_null(graph_parse(text, "f", &error));
    g_assert_error(error, diag_quark(), code);
    if (!strstr(error->message, part)) g_error("%s does not contain %s", error->message, part);
    g_clear_error(&error);
}

static void test_errors(void) {
    expect_error("graph a\n%x = input [2, 3]\n%w = parameter [4, 5]\n%y = gemm %x, %w\noutput %y",
                 DIAG_GRAPH_SHAPE, "operation y (gemm): the inner extents");
    expect_error("graph a\n%x = input [2, 3]\n%y = gelu %z\n", DIAG_GRAPH_SYNTAX, "f:3");
    expect_error("graph a\n%x = input [2, 3]\n", DIAG_GRAPH_NO_OUTPUT,
                 "f:1: graph a");
    expect_error("graph a\n%x = input [0]\n", DIAG_GRAPH_SYNTAX, "extent 0");
    expect_error("graph a\n%x = input [2]\n%x = input [2]\n", DIAG_GRAPH_SYNTAX, "twice");
    expect_error("graph a\n%x = input [2]\n%y = frobnicate %x\n", DIAG_GRAPH_SYNTAX, "unknown");
    expect_error("graph a\n%x = input [2]\n%y = slice %x axis 0 start 1 width 2\n",
                 DIAG_GRAPH_SHAPE, "window");
    expect_error("graph a\n%x = input [2]\n%y = gelu %x : [3]\noutput %y\n", DIAG_GRAPH_SYNTAX,
                 "f:3: the written shape is not the one that the operands give, found y");
    expect_error("graph a\n%x = input [2, 3]\n%w = parameter [4, 5]\n%y = gemm %x, %w\noutput %y",
                 DIAG_GRAPH_SHAPE, "f:4: ");
    expect_error("graph a\n%x = input [2]\n%y = gelu %x\noutput %y\noutput %y\n",
                 DIAG_GRAPH_OUTPUT_TWICE, "f:5: y is an output twice");
    expect_error("graph a\n%x = input [4294967295, 4294967295, 4294967295, 4294967295]\n"
                 "%y = gelu %x\noutput %y\n", DIAG_GRAPH_TOO_LARGE, "f:2: value x");
    expect_error("# a\ngraph a\n\n", DIAG_GRAPH_NO_OUTPUT, "f:2: graph a");
    expect_error("graph a\n%x = input [65536, 65536, 65536]\n%y = gelu %x\noutput %y\n",
                 DIAG_GRAPH_TOO_LARGE, "value x");
    expect_error("graph a\n%x = input [2] fill normal nan 0\n", DIAG_GRAPH_SYNTAX, "a number");
    expect_error("graph a\n%x = input [2] fill normal 1e999 0\n", DIAG_GRAPH_SYNTAX, "a number");
    expect_error("graph a\n%x = input [2]\n%y = gelu %x\noutput %y atol -1\n", DIAG_GRAPH_SYNTAX,
                 "at least 0");
    expect_error("graph a\n%x = input [2]\n%y = gelu %x\noutput %y rtol nan\n", DIAG_GRAPH_SYNTAX,
                 "a number");
    static const char *const PERMS[] = {"1", "1 0 2", ""};
    for (uint32_t i = 0; i < G_N_ELEMENTS(PERMS); i++) {
        char *text = g_strdup_printf("graph a\n%%x = input [2, 3]\n%%y = transpose %%x perm %s\n"
                                     "output %%y\n", PERMS[i]);
        expect_error(text, DIAG_GRAPH_SYNTAX, "f:3: `perm` needs one number for each axis");
        g_free(text);
    }
    expect_error("", DIAG_GRAPH_SYNTAX, "graph NAME");
    GError *error = NULL;
    struct graph_workload_options o;
    graph_workload_defaults(&o);
    g_assert_null(graph_workload_build("nonsense", &o, &error));
    g_assert_error(error, diag_quark(), DIAG_GRAPH_WORKLOAD);
    g_clear_error(&error);
}

static void test_fill(void) {
    struct graph_workload_options o;
    graph_workload_defaults(&o);
    o.tiles = 5;
    struct graph *g = graph_workload_build("batched-gemm-smoke", &o, NULL);
    const struct graph_value *x = &g->values[graph_find_value(g, "x")];
    for (uint32_t b = 0; b < 3; b++)
        for (uint32_t t = 0; t < 5; t++)
            for (uint32_t i = 0; i < 64; i++) {
                const float want = i == (7 * b + t) % 64 ? 1 : 0;
                const float got = graph_fill_element(x, 1, ((uint64_t)b * 5 + t) * 64 + i);
                g_assert_true(got == want);
            }
    graph_free(g);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/graph/workloads", test_workloads);
    g_test_add_func("/graph/vit_counts", test_vit_counts);
    g_test_add_func("/graph/errors", test_errors);
    g_test_add_func("/graph/fill", test_fill);
    return g_test_run();
}
