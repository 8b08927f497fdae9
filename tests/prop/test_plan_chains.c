/* Random chains of products and GELUs, of odd shapes, on few and many tiles, with free and forced
 * grids: planned, lowered, verified, executed on host buffers by the semantics of the tile graph,
 * compared with a direct evaluation. A failing case prints its seed; SEED=n runs one. */
#include "../tile_graph_run.h"
#include "plan/plan.h"

#include <stdlib.h>

static uint64_t state;
static uint32_t roll(uint32_t n) {
    const uint64_t v = rand_u64(state, 0, state);
    state++;
    return (uint32_t)(v % n);
}

struct tensor {
    float *data;
    uint64_t n;
};

static struct tensor filled(const struct graph_value *v) {
    struct tensor t = {NULL, graph_shape_elements(&v->shape)};
    t.data = g_new(float, t.n);
    for (uint64_t i = 0; i < t.n; i++)
        t.data[i] = num_f16_to_f32(num_f16_from_f32(graph_fill_element(v, 1, i)));
    return t;
}

static struct tensor direct_gemm(const struct graph *g, const struct graph_op *op, struct tensor a,
                                 struct tensor b) {
    const struct graph_shape *sa = &g->values[op->operands[0]].shape;
    const struct graph_shape *so = &g->values[op->results[0]].shape;
    const uint32_t inner = sa->dim[sa->n_dims - 1], columns = so->dim[so->n_dims - 1];
    const uint64_t rows = a.n / inner;
    struct tensor t = {g_new(float, rows *columns), rows * columns};
    for (uint64_t r = 0; r < rows; r++)
        for (uint32_t c = 0; c < columns; c++) {
            double sum = 0;
            for (uint32_t k = 0; k < inner; k++)
                sum += (double)a.data[r * inner + k] *
                       (double)b.data[op->attrs.transpose_right ? c * inner + k : k * columns + c];
            t.data[r * columns + c] = (float)sum;
        }
    return t;
}

/* Values of all tensors, in FP32 with F16 inputs. */
static struct tensor *direct(const struct graph *g) {
    struct tensor *t = g_new0(struct tensor, g->n_values);
    for (uint32_t i = 0; i < g->n_values; i++)
        if (g->values[i].kind == GRAPH_INPUT || g->values[i].kind == GRAPH_PARAMETER)
            t[i] = filled(&g->values[i]);
    for (uint32_t i = 0; i < g->blocks[0].n_ops; i++) {
        const struct graph_op *op = &g->ops[g->blocks[0].ops[i]];
        const struct tensor a = t[op->operands[0]];
        if (op->kind == GRAPH_GEMM) {
            t[op->results[0]] = direct_gemm(g, op, a, t[op->operands[1]]);
            continue;
        }
        struct tensor y = {g_new(float, a.n), a.n};
        for (uint64_t k = 0; k < a.n; k++) y.data[k] = tgr_gelu(a.data[k]);
        t[op->results[0]] = y;
    }
    return t;
}

/* The program is valid and its text form is read back to the same text. */
static void check_program(const struct program *p) {
    GError *error = NULL;
    program_verify(p, &error);
    g_assert_no_error(error);
    GString *a = g_string_new(NULL), *b = g_string_new(NULL);
    program_print(p, a);
    struct program *q = program_parse(a->str, "text", &error);
    g_assert_no_error(error);
    program_print(q, b);
    g_assert_cmpstr(a->str, ==, b->str);
    program_free(q);
    g_string_free(a, TRUE);
    g_string_free(b, TRUE);
}

static void check_graph(const struct graph *g, const struct plan_options *o) {
    GError *error = NULL;
    struct plan_result plan;
    const enum plan_status status = plan_graph(g, o, &plan, &error);
    g_assert_no_error(error);
    g_assert_cmpint(status, ==, PLAN_OK);
    check_program(plan.program);
    struct tile_graph *tg = NULL;
    lower_program(plan.program, NULL, &tg, &error);
    g_assert_no_error(error);
    char *message = NULL;
    if (!tg_verify(tg, &message)) g_error("%s", message);
    if (g_getenv("SHOW")) {
        GString *text = g_string_new(NULL);
        graph_print(g, text);
        tg_print(tg, text);
        g_printerr("%s", text->str);
        g_string_free(text, TRUE);
    }
    struct tgr *r = tgr_new(tg);
    struct tensor *t = direct(g);
    tgr_clear(r);
    for (uint32_t i = 0; i < tg->n_bindings; i++) {
        const struct tg_binding *b = &tg->bindings[i];
        if (b->kind != TG_BIND_OUTPUT) tgr_write(r, b, t[graph_find_value(g, b->name)].data);
    }
    tgr_run(r);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const struct graph_value *v = &g->values[g->outputs[i].value];
        const struct tensor want = t[g->outputs[i].value];
        float *got = g_new(float, want.n);
        for (uint64_t k = 0; k < want.n; k++) got[k] = NAN;
        tgr_read(r, tgr_binding(tg, v->name, TG_BIND_OUTPUT), got);
        for (uint64_t k = 0; k < want.n; k++) {
            const float limit = g->outputs[i].exact ? 0 : 0.02f + 0.01f * fabsf(want.data[k]);
            if (!(fabsf(got[k] - want.data[k]) <= limit))
                g_error("%s[%" G_GUINT64_FORMAT "] is %g, not %g", v->name, k, (double)got[k],
                        (double)want.data[k]);
        }
        g_free(got);
    }
    for (uint32_t i = 0; i < g->n_values; i++) g_free(t[i].data);
    g_free(t);
    tgr_free(r);
    tile_graph_free(tg);
    program_free(plan.program);
}

static uint32_t extent(void) {
    static const uint32_t USUAL[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 64};
    return roll(3) == 0 ? USUAL[roll(ARRAY_LEN(USUAL))] : 1 + roll(90);
}

static struct graph *random_graph(void) {
    struct graph *g = graph_new("random");
    const uint32_t n = 1 + roll(3), batch = 1 + roll(3);
    uint32_t width = extent();
    struct graph_shape shape = {.n_dims = 3, .dim = {batch, extent(), width}};
    uint32_t x = graph_add_input(g, "x", shape, (struct graph_fill){GRAPH_FILL_NORMAL, 1, 0});
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        const uint32_t columns = extent();
        const bool turned = roll(4) == 0;
        g_snprintf(name, sizeof name, "w%u", i);
        const struct graph_shape ws = {.n_dims = 2,
                                       .dim = {turned ? columns : width, turned ? width : columns}};
        const uint32_t w = graph_add_parameter(
            g, name, ws, (struct graph_fill){GRAPH_FILL_NORMAL, 1 / sqrtf((float)width), 0});
        const struct graph_attrs attrs = {.transpose_right = turned};
        g_snprintf(name, sizeof name, "h%u", i);
        x = graph_add_op(g, GRAPH_GEMM, name, (uint32_t[]){x, w}, 2, &attrs, NULL);
        g_snprintf(name, sizeof name, "g%u", i);
        if (roll(2)) x = graph_add_op(g, GRAPH_GELU, name, &x, 1, NULL, NULL);
        width = columns;
    }
    graph_add_output(g, (struct graph_output){.value = x});
    return g;
}

/* A random legal grid for every product of the graph. */
static uint32_t random_constraints(const struct graph *g, uint32_t tiles,
                                   struct plan_constraint *ret) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->blocks[0].n_ops; i++) {
        const struct graph_op *op = &g->ops[g->blocks[0].ops[i]];
        if (op->kind != GRAPH_GEMM) continue;
        const struct graph_shape *a = &g->values[op->operands[0]].shape;
        const struct graph_shape *y = &g->values[op->results[0]].shape;
        const uint32_t groups = ceil_div_u32(y->dim[y->n_dims - 1], 16);
        const uint32_t rows = a->dim[0] * a->dim[1], inner = ceil_div_u32(a->dim[2], 16);
        struct plan_constraint c = {
            .op = i, .memory = (uint8_t)roll(3), .swapped = -1, .staging = -1, .match_remote = -1};
        c.rows = 1 + roll(MIN(rows, tiles));
        c.columns = 1 + roll(MIN(groups, tiles / c.rows));
        c.inner = 1 + roll(MIN(inner, tiles / c.rows / c.columns));
        c.passes = roll(2) ? 0 : 1 + roll(MIN(8, rows / c.rows));
        ret[n++] = c;
    }
    return n;
}

static void random_case(uint64_t seed) {
    static const uint32_t TILES[] = {1, 2, 3, 7, 16, 64};
    state = seed << 16;
    struct graph *g = random_graph();
    struct plan_options o;
    struct plan_constraint constraints[4];
    plan_options_defaults(&o);
    o.n_tiles = TILES[roll(ARRAY_LEN(TILES))];
    o.inputs_once = roll(2);
    o.candidates = 24;
    if (roll(2)) {
        o.n_constraints = random_constraints(g, o.n_tiles, constraints);
        o.constraints = constraints;
    }
    check_graph(g, &o);
    graph_free(g);
}

static void test_random(void) {
    const char *one = g_getenv("SEED");
    const uint64_t first = one ? g_ascii_strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one ? 1 : 150); seed++) {
        g_test_message("SEED=%" G_GUINT64_FORMAT, seed);
        random_case(seed);
    }
}

static void test_workloads(void) {
    static const struct {
        const char *name;
        uint32_t tiles;
    } CASES[] = {{"mlp-smoke", 1},           {"mlp-smoke", 7},         {"mlp-smoke", 64},
                 {"mlp-smoke", 1472},        {"gemm-smoke", 64},       {"gemm-smoke", 7},
                 {"batched-gemm-smoke", 64}, {"batched-gemm-smoke", 1}};
    for (uint32_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct graph_workload_options w;
        graph_workload_defaults(&w);
        w.tiles = CASES[i].tiles;
        struct graph *g = graph_workload_build(CASES[i].name, &w, NULL);
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = CASES[i].tiles;
        check_graph(g, &o);
        graph_free(g);
    }
}

static void test_constraints(void) {
    struct plan_constraint c;
    g_assert_true(
        plan_constraint_parse("0:4x92x4:4x1:48:interleaved:normal:complete:direct", &c, NULL));
    g_assert_cmpuint(c.rows * c.columns * c.inner, ==, 4 * 92 * 4);
    g_assert_cmpuint(c.column_block, ==, 48);
    g_assert_cmpint(c.memory, ==, PROGRAM_INTERLEAVED);
    g_assert_true(plan_constraint_parse("2:4x24x15", &c, NULL));
    g_assert_cmpint(c.swapped, ==, -1);
    static const char *const BAD[] = {"",
                                      "0",
                                      "0:4x4",
                                      "0:4x4x0",
                                      "x:1x1x1",
                                      "0:1x1x1:2",
                                      "0:1x1x1:1x1:7",
                                      "0:1x1x1:1x1:16:fast",
                                      "0:1x1x1:1x1:16:standard:normal:batch-1"};
    for (uint32_t i = 0; i < ARRAY_LEN(BAD); i++) {
        GError *error = NULL;
        g_assert_false(plan_constraint_parse(BAD[i], &c, &error));
        g_assert_error(error, diag_quark(), DIAG_PLAN_CONSTRAINT);
        g_clear_error(&error);
    }
}

/* What does not fit is data: which product, what it needs, who uses it. */
static void test_infeasible(void) {
    struct graph *g =
        graph_parse("graph big\n%x = input [64, 200000]\n%w = parameter [200000, 64]\n"
                    "%y = gemm %x, %w\noutput %y\n",
                    "f", NULL);
    struct plan_options o;
    struct plan_result r;
    plan_options_defaults(&o);
    o.n_tiles = 2;
    g_assert_cmpint(plan_graph(g, &o, &r, NULL), ==, PLAN_INFEASIBLE);
    g_assert_cmpstr(r.infeasible.operation, ==, "y");
    g_assert_cmpuint(r.infeasible.needs_bytes, >, r.infeasible.has_bytes);
    g_assert_cmpuint(r.infeasible.n_users, >, 0);
    g_assert_cmpuint(r.infeasible.users[0].bytes, >=, r.infeasible.users[1].bytes);
    graph_free(g);
}

static void expect_misfit(const char *text, const char *operation, const char *user) {
    struct graph *g = graph_parse(text, "f", NULL);
    struct plan_options o;
    struct plan_result r;
    plan_options_defaults(&o);
    o.n_tiles = 2;
    g_assert_cmpint(plan_graph(g, &o, &r, NULL), ==, PLAN_INFEASIBLE);
    g_assert_cmpstr(r.infeasible.operation, ==, operation);
    g_assert_cmpstr(r.infeasible.users[0].name, ==, user);
    graph_free(g);
}

/* Not the first that does not fit is named but the one that lacks most, by its tensors. */
static void test_tightest(void) {
    expect_misfit("graph two\n%x = input [64, 3000]\n%w = parameter [3000, 200]\n"
                  "%v = parameter [200, 60000]\n%y = gemm %x, %w\n%z = gemm %y, %v\noutput %z\n",
                  "z", "v (coefficients of z)");
    expect_misfit("graph two\n%x = input [64, 60000]\n%w = parameter [60000, 200]\n"
                  "%v = parameter [200, 3000]\n%y = gemm %x, %w\n%z = gemm %y, %v\noutput %z\n",
                  "y", "w (coefficients of y)");
    expect_misfit("graph sizes\n%x = input [1000, 800]\n%w = input [2000, 1600]\n"
                  "%y = gelu %x\n%z = gelu %w\noutput %y\noutput %z\n", "w", "w");
}

static void expect_refusal(const char *text, const char *part) {
    GError *error = NULL;
    struct program *p = program_parse(text, "f", &error);
    g_assert_null(p);
    g_assert_nonnull(error);
    if (!strstr(error->message, part)) g_error("%s does not contain %s", error->message, part);
    g_clear_error(&error);
}

#define VALUE(name, owners, strides)                                                               \
    "value " name " f16 amp_left any shape 1 4 32 parts 1 2 1 grain 1 1 16 pad 1 1 16 partials 1 " \
    "windows 1 of 32 replicas 1 owners " owners " strides " strides
static void test_program_errors(void) {
    expect_refusal("", "program NAME");
    expect_refusal("program a tiles 2\nvalue x f99", "f:2");
    expect_refusal("program a tiles 1\n" VALUE("x", "0", "0 1 0 0 0 0") "\n", "beyond the tiles");
    expect_refusal("program a tiles 2\n" VALUE("x", "0", "0 1 0 0 0 0") "\n" VALUE(
                       "y", "0", "0 1 0 0 0 0") "\ncopy y = x for a why copy\n",
                   "not defined before");
    expect_refusal(
        "program a tiles 2\n" VALUE(
            "x", "0", "0 1 0 0 0 0") " input x shape 2 4 32 offset 0 "
                                     "steps 0 32 1\n" VALUE(
                                         "y", "1",
                                         "0 0 0 0 0 0") "\nkernel gelu y = x for a why operator\n",
        "differ in layout");
    expect_refusal("program a tiles 2\nrepeat count 2 for a why repeat\n", "end");
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/random_chains", test_random);
    g_test_add_func("/plan/workloads", test_workloads);
    g_test_add_func("/plan/constraints", test_constraints);
    g_test_add_func("/plan/infeasible", test_infeasible);
    g_test_add_func("/plan/tightest", test_tightest);
    g_test_add_func("/program/errors", test_program_errors);
    return g_test_run();
}
