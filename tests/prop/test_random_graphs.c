/* Random graphs of all operations, through every stage to the strict device model. */
#include "../random_graph_run.h"

static void test_random(void) {
    rgr_test(1, 2500);
}

/* The shrinker: a graph that "fails" where a transposition moves an axis of three or more ends as
 * that transposition alone, of as few elements as fail. */
static bool has_transpose(const struct rg_recipe *r, void *user) {
    (void)user;
    struct graph *g = rg_graph(r);
    bool found = false;
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const struct graph_op *op = &g->ops[i];
        const struct graph_shape *s = &g->values[op->results[0]].shape;
        for (uint32_t k = 0; op->kind == GRAPH_TRANSPOSE && k < s->n_dims; k++)
            found = found || (op->attrs.perm[k] != k && s->dim[k] >= 3);
    }
    graph_free(g);
    return found;
}

static void test_shrink(void) {
    uint32_t n = 0;
    for (uint64_t seed = 1; n < 5; seed++) {
        const struct rg_recipe r = rg_recipe(seed);
        if (r.n < 3 || !has_transpose(&r, NULL)) continue;
        n++;
        const struct rg_recipe small = rg_shrink(r, has_transpose, NULL, 30);
        g_assert_true(has_transpose(&small, NULL));
        g_assert_cmpuint(small.n, ==, 1);
        g_assert_cmpuint(small.tiles, ==, 1);
        struct graph *g = rg_graph(&small);
        g_assert_cmpuint(g->n_ops, ==, 1);
        g_assert_cmpuint(graph_shape_elements(&g->values[g->ops[0].results[0]].shape), <=, 6);
        graph_free(g);
    }
}

/* Graphs that random ones have found wrong. */
static void test_found(void) {
    static const struct {
        uint32_t tiles;
        const char *text;
    } CASES[] = {
        /* a tile whose only moving source is in the body's last phase */
        {16, "graph moving\n%x = input [6, 1] fill uniform -2 2\n"
             "%w = parameter [4, 1, 1] fill uniform 0.5 1.5\n"
             "%r = repeat repeat count 4 carried %a = %x iterated %v = %w {\n"
             "  %b = gemm %a, %v\n  %c = gemm %b, %v\n  yield %c\n}\noutput %r\n"},
        /* two moving operands of a call in one place */
        {1, "graph twice\n%x = input [70, 5] fill uniform -2 2\n"
            "%p = parameter [70, 5] fill uniform -2 2\n%q = parameter [2, 5] fill uniform -1 1\n"
            "%r = repeat repeat count 2 carried %a = %x invariant %b = %p iterated %c = %q {\n"
            "  %d = mul %a, %c\n  %e = add %d, %b\n  %f = layer_norm %e, %c, %c epsilon 1e-5\n"
            "  yield %f\n}\noutput %r\n"},
        /* queries held with their leading axes in the rows */
        {1, "graph rows\n%x = input [2, 1] fill uniform -2 2\n"
            "%p = parameter [2, 2, 2] fill uniform -2 2\n"
            "%k = input [2, 2, 2] fill uniform -1.5 1.5\n%v = input [2, 2, 1] fill uniform -2 2\n"
            "%c = concat %x, %x axis 1\n%q = add %c, %p\n%y = attention %q, %k, %v\noutput %y\n"},
        /* heads read as rows */
        {1, "graph heads\n%x = input [1, 1, 10] fill uniform -2 2\n"
            "%w = parameter [1, 5] fill uniform -0.9 0.9\n%g = gelu %x\n"
            "%s = split %g axis 2 into 0 count 2\n%y = gemm %s, %w transpose_right\noutput %y\n"},
        /* a bias that repeats neither rows nor blocks of rows */
        {7, "graph between\n%x = input [2, 3, 4] fill uniform -2 2\n"
            "%w = parameter [4, 4] fill uniform -0.9 0.9\n%p = parameter [2, 1, 4] fill uniform -1 1\n"
            "%g = gemm %x, %w\n%y = add %g, %p\noutput %y\n"},
    };
    par_set_threads(1);
    if (rgr_why == NULL) rgr_why = g_string_new(NULL);
    struct rgr_stats stats = {0};
    for (uint32_t i = 0; i < ARRAY_LEN(CASES); i++) {
        GError *error = NULL;
        struct graph *g = graph_parse(CASES[i].text, "case", &error);
        g_assert_no_error(error);
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = CASES[i].tiles;
        if (!rgr_run_graph(g, &o, &stats)) g_error("%s: %s", g->name, rgr_why->str);
        graph_free(g);
    }
}

/* More tiles are never slower than fewer. */
static uint64_t cycles_on(const struct graph *g, uint32_t tiles) {
    GError *error = NULL;
    struct plan_options o;
    struct plan_result plan = {0};
    struct package *p = NULL;
    plan_options_defaults(&o);
    o.n_tiles = tiles;
    g_assert_cmpint(plan_graph(g, &o, &plan, &error), ==, PLAN_OK);
    if (!rgr_compile(plan.program, &p)) g_error("%s", rgr_why->str);
    const uint64_t cycles = p->meta.cycles_predicted;
    package_free(p);
    program_free(plan.program);
    return cycles;
}

static void test_tiles(void) {
    static const uint32_t TILES[] = {1, 7, 64, 256, 1472};
    static const char *const GRAPHS[] = {
        "graph dot\n%a = input [1, 4096]\n%b = input [4096, 1]\n%y = gemm %a, %b\noutput %y\n",
        "graph row\n%a = input [1, 1024]\n%b = parameter [1024, 48]\n%y = gemm %a, %b\noutput %y\n",
        ("graph left\n%a = input [64, 13]\n%b = input [64, 17]\n"
         "%y = gemm %a, %b transpose_left\noutput %y\n"),
        "graph small\n%a = input [7, 64]\n%b = parameter [64, 64]\n%y = gemm %a, %b\noutput %y\n",
    };
    if (rgr_why == NULL) rgr_why = g_string_new(NULL);
    for (uint32_t i = 0; i < ARRAY_LEN(GRAPHS); i++) {
        GError *error = NULL;
        struct graph *g = graph_parse(GRAPHS[i], "case", &error);
        g_assert_no_error(error);
        uint64_t best = UINT64_MAX;
        for (uint32_t k = 0; k < ARRAY_LEN(TILES); k++) {
            const uint64_t cycles = cycles_on(g, TILES[k]);
            g_test_message("%s on %u tiles: %" G_GUINT64_FORMAT " cycles", g->name, TILES[k], cycles);
            /* phases differ by a few cycles with the places of their tiles */
            if (best != UINT64_MAX) g_assert_cmpuint(cycles, <=, best + best / 50);
            best = MIN(best, cycles);
        }
        graph_free(g);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/graph/shrink", test_shrink);
    g_test_add_func("/graph/found", test_found);
    g_test_add_func("/graph/tiles", test_tiles);
    g_test_add_func("/graph/random", test_random);
    return g_test_run();
}
