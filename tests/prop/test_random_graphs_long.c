/* More of the random graphs: other seeds. */
#include "../random_graph_run.h"

static void test_random(void) {
    rgr_test(100001, 20000);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/graph/random_long", test_random);
    return g_test_run();
}
