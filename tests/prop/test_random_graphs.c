/* Random graphs of all operations, through every stage to the strict device model. */
#include "../random_graph_run.h"

static void test_random(void) {
    rgr_test(1, 500);
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

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/graph/shrink", test_shrink);
    g_test_add_func("/graph/random", test_random);
    return g_test_run();
}
