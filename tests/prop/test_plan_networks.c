/* Networks with norms, biases, residuals, repeats, in F16 and F8: planned, lowered, verified,
 * executed on host buffers by the semantics of the tile graph, compared with the reference at the
 * precision that the plan states. Shapes are random; SEED=n runs one. */
#include "../tile_graph_run.h"
#include "plan/plan.h"

static uint64_t state;
static uint32_t roll(uint32_t n) {
    const uint64_t r = rand_u64(state, 1, state);
    state++;
    return (uint32_t)(r % n);
}

static float *tensor_of(const struct graph *g, uint32_t value) {
    const struct graph_value *v = &g->values[value];
    const uint64_t n = graph_shape_elements(&v->shape);
    float *data = g_new(float, n);
    for (uint64_t i = 0; i < n; i++) data[i] = graph_fill_element(v, 1, i);
    return data;
}

static void round_trip(const struct program *p) {
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

struct limits {
    float atol, rtol;
};

static void compare(const struct graph *g, const struct tgr *r, const struct plan_result *plan,
                    struct limits limits) {
    const struct reference_fill fill = {g, 1};
    const struct reference_options o = {.precision = &plan->precision,
                                        .source = reference_fill_source,
                                        .source_user = (void *)&fill};
    GError *error = NULL;
    struct reference *ref = reference_run(g, &o, &error);
    g_assert_no_error(error);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const struct graph_value *v = &g->values[g->outputs[i].value];
        const uint64_t n = graph_shape_elements(&v->shape);
        const float *want = reference_value(ref, g->outputs[i].value);
        float *got = g_new(float, n);
        for (uint64_t k = 0; k < n; k++) got[k] = NAN;
        tgr_read(r, tgr_binding(r->g, v->name, TG_BIND_OUTPUT), got);
        for (uint64_t k = 0; k < n; k++)
            if (!(fabsf(got[k] - want[k]) <= limits.atol + limits.rtol * fabsf(want[k])))
                g_error("%s[%" G_GUINT64_FORMAT "] is %g, not %g", v->name, k, (double)got[k],
                        (double)want[k]);
        g_free(got);
    }
    reference_free(ref);
}

static void check(const struct graph *g, const struct plan_options *o, struct limits limits) {
    GError *error = NULL;
    struct plan_result plan;
    const enum plan_status status = plan_graph(g, o, &plan, &error);
    g_assert_no_error(error);
    g_assert_cmpint(status, ==, PLAN_OK);
    if (g_getenv("SHOW")) {
        GString *text = g_string_new(NULL);
        graph_print(g, text);
        program_print(plan.program, text);
        struct tile_graph *shown = NULL;
        if (lower_program(plan.program, NULL, &shown, NULL)) tg_print(shown, text);
        g_printerr("%s", text->str);
        g_string_free(text, TRUE);
    }
    round_trip(plan.program);
    struct tile_graph *tg = NULL;
    lower_program(plan.program, NULL, &tg, &error);
    g_assert_no_error(error);
    char *message = NULL;
    if (!tg_verify(tg, &message)) g_error("%s", message);
    struct tgr *r = tgr_new(tg);
    tgr_clear(r);
    for (uint32_t i = 0; i < tg->n_bindings; i++) {
        const struct tg_binding *b = &tg->bindings[i];
        if (b->kind == TG_BIND_OUTPUT) continue;
        float *data = tensor_of(g, graph_find_value(g, b->name));
        tgr_write(r, b, data);
        g_free(data);
    }
    tgr_run(r);
    compare(g, r, &plan, limits);
    tgr_free(r);
    tile_graph_free(tg);
    program_free(plan.program);
}

static struct graph *parse(const char *text) {
    GError *error = NULL;
    struct graph *g = graph_parse(text, "text", &error);
    g_assert_no_error(error);
    return g;
}

/* norm, up + bias + GELU, down + bias + residual; `layers` times in a repeat. */
static struct graph *encoder_mlp(uint32_t batch, uint32_t tokens, uint32_t width, uint32_t hidden,
                                 uint32_t layers) {
    char *text = g_strdup_printf(
        "graph mlp\n"
        "%%x = input [%u, %u, %u] fill normal 1 0\n"
        "%%pw = parameter [%u, %u] fill normal 0.2 0\n%%pb = parameter [%u] fill normal 0.1 0\n"
        "%%pos = parameter [%u, %u] fill normal 1 0\n"
        "%%ns = parameter [%u, %u] fill normal 0.1 1\n%%nb = parameter [%u, %u] fill normal 0.1 0\n"
        "%%w0 = parameter [%u, %u, %u] fill normal 0.1 0\n%%b0 = parameter [%u, %u] fill normal "
        "0.2 0\n"
        "%%w1 = parameter [%u, %u, %u] fill normal 0.1 0\n%%b1 = parameter [%u, %u] fill normal "
        "0.2 0\n"
        "%%e0 = gemm %%x, %%pw\n%%e1 = add %%e0, %%pb\n%%e = add %%e1, %%pos\n"
        "%%y = repeat layers count %u carried %%c = %%e iterated %%s = %%ns, %%t = %%nb, %%u = "
        "%%w0, "
        "%%v = %%b0, %%d = %%w1, %%f = %%b1 {\n"
        "  %%n = layer_norm %%c, %%s, %%t epsilon 1e-6\n"
        "  %%h0 = gemm %%n, %%u\n  %%h1 = add %%h0, %%v\n  %%h = gelu %%h1\n"
        "  %%z0 = gemm %%h, %%d\n  %%z1 = add %%z0, %%f\n  %%z = add %%c, %%z1\n"
        "  yield %%z\n}\noutput %%y\n",
        batch, tokens, width, width, width, width, tokens, width, layers, width, layers, width,
        layers, width, hidden, layers, hidden, layers, hidden, width, layers, width, layers);
    struct graph *g = parse(text);
    g_free(text);
    return g;
}

static void test_encoder_mlp(void) {
    static const uint32_t TILES[] = {1, 3, 7, 16, 64};
    const char *one = g_getenv("SEED");
    const uint64_t first = one ? g_ascii_strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one ? 1 : 40); seed++) {
        g_test_message("SEED=%" G_GUINT64_FORMAT, seed);
        state = seed << 16;
        struct graph *g =
            encoder_mlp(1 + roll(2), 1 + roll(20), 16 * (1 + roll(5)), 1 + roll(120), 1 + roll(3));
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = TILES[roll(ARRAY_LEN(TILES))];
        o.inputs_once = roll(2);
        o.candidates = 1 + roll(24);
        o.passes = roll(3) ? 0 : 2 + roll(3);
        o.norm_parts = roll(6);
        o.fp8 = roll(2);
        o.fp8_exponent = -5;
        /* F8: a value near a rounding border moves by one step, and norms amplify it */
        check(g, &o, o.fp8 ? (struct limits){0.4f, 0.1f} : (struct limits){0.04f, 0.02f});
        graph_free(g);
    }
}

static void test_attention_smoke(void) {
    static const uint32_t TILES[] = {1, 3, 7, 64, 1472};
    for (uint32_t i = 0; i < ARRAY_LEN(TILES); i++) {
        struct graph_workload_options w;
        graph_workload_defaults(&w);
        struct graph *g = graph_workload_build("attention-smoke", &w, NULL);
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = TILES[i];
        check(g, &o, (struct limits){0.004f, 0});
        graph_free(g);
    }
}

static void test_random_attention(void) {
    static const uint32_t TILES[] = {1, 2, 5, 16, 64};
    const char *one = g_getenv("SEED");
    const uint64_t first = one ? g_ascii_strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one ? 1 : 40); seed++) {
        g_test_message("SEED=%" G_GUINT64_FORMAT, seed);
        state = seed << 16;
        const uint32_t batch = 1 + roll(5), rows = 1 + roll(40), keys = 1 + roll(100);
        const uint32_t width = 2 * (1 + roll(40)), out = 2 * (1 + roll(40));
        char *text = g_strdup_printf("graph a\n%%q = input [%u, %u, %u] fill normal 1 0\n"
                                     "%%k = input [%u, %u, %u] fill normal 1 0\n"
                                     "%%v = input [%u, %u, %u] fill normal 1 0\n"
                                     "%%y = attention %%q, %%k, %%v\noutput %%y\n",
                                     batch, rows, width, batch, keys, width, batch, keys,
                                     out % 16 ? out : out + 2);
        struct graph *g = parse(text);
        g_free(text);
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = TILES[roll(ARRAY_LEN(TILES))];
        o.attention_qk_fp8 = roll(2);
        o.attention_pv_fp8 = roll(2);
        o.attention_strategy = (uint8_t)roll(PLAN_N_ATTENTION);
        o.attention_products = (uint8_t)roll(PLAN_N_PRODUCTS);
        const bool f8 = o.attention_qk_fp8 || o.attention_pv_fp8;
        check(g, &o, f8 ? (struct limits){0.15f, 0.05f} : (struct limits){0.01f, 0.01f});
        graph_free(g);
    }
}

/* Projections, heads that begin anywhere in a panel, attention by every strategy, projection. */
static void test_projected_attention(void) {
    static const uint32_t TILES[] = {1, 5, 16, 64, 300};
    static const uint32_t WIDTHS[] = {4, 8, 12, 20, 24, 36, 40, 44, 72};
    const char *one = g_getenv("SEED");
    const uint64_t first = one ? g_ascii_strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one ? 1 : 40); seed++) {
        g_test_message("SEED=%" G_GUINT64_FORMAT, seed);
        state = seed << 16;
        const uint32_t batch = 1 + roll(2), rows = 2 + 2 * roll(40), inner = 16 * (1 + roll(4));
        const uint32_t d = WIDTHS[roll(ARRAY_LEN(WIDTHS))], heads = 4 * (1 + roll(3)), n = heads * d;
        GString *t = g_string_new("graph a\n");
        g_string_append_printf(t, "%%x = input [%u, %u, %u] fill normal 1 0\n", batch, rows, inner);
        for (uint32_t i = 0; i < 3; i++) {
            const char name = "qkv"[i];
            g_string_append_printf(t,
                                   "%%w%c = parameter [%u, %u] fill normal 0.2 0\n"
                                   "%%p%c = gemm %%x, %%w%c\n"
                                   "%%%c = split %%p%c axis 2 into 0 count %u\n",
                                   name, inner, n, name, name, name, name, heads);
        }
        g_string_append_printf(t,
                               "%%a = attention %%q, %%k, %%v\n"
                               "%%m = merge %%a axis 2 into 0 count %u\n"
                               "%%wo = parameter [%u, %u] fill normal 0.1 0\n"
                               "%%y = gemm %%m, %%wo\noutput %%y\n",
                               heads, n, inner);
        struct graph *g = parse(t->str);
        g_string_free(t, TRUE);
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = TILES[roll(ARRAY_LEN(TILES))];
        o.attention_strategy = (uint8_t)roll(PLAN_N_ATTENTION);
        o.attention_products = (uint8_t)roll(PLAN_N_PRODUCTS);
        o.attention_qk_fp8 = roll(4) == 0;
        o.attention_pv_fp8 = roll(4) == 0;
        o.passes = roll(3) ? 0 : 2 + roll(3);
        const bool f8 = o.attention_qk_fp8 || o.attention_pv_fp8;
        check(g, &o, f8 ? (struct limits){0.25f, 0.05f} : (struct limits){0.02f, 0.02f});
        graph_free(g);
    }
}

static void test_small_vit(void) {
    for (uint32_t variant = 0; variant < 8; variant++) {
        struct graph_workload_options w;
        graph_workload_defaults(&w);
        w.vit_small = true;
        w.fuse_qkv = variant & 1;
        w.vit_batch = 1 + (variant >> 1 & 1);
        w.vit_layers = 1 + (variant & 1);
        struct graph *g = graph_workload_build("siglip-vit-benchmark", &w, NULL);
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = 64;
        o.inputs_once = true;
        o.fp8 = variant & 4;
        o.attention_qk_fp8 = variant == 6;
        o.attention_pv_fp8 = variant >= 6;
        if (g_getenv("OUT"))
            graph_add_output(g, g->outputs[0]),
                g->outputs[0].value = graph_find_value(g, g_getenv("OUT"));
        check(g, &o, o.fp8 ? (struct limits){0.3f, 0.1f} : (struct limits){0.03f, 0.02f});
        graph_free(g);
    }
}

/* A small result limits the K partitions to few tiles of many. */
static void test_small_result(void) {
    GError *error = NULL;
    struct graph *g = graph_parse("graph b\n%a = input [64, 13] fill normal 1 0\n"
                                  "%b = input [64, 17] fill normal 0.3 0\n"
                                  "%c = gemm %a, %b transpose_left\noutput %c\n", "text", &error);
    g_assert_no_error(error);
    struct plan_options o;
    plan_options_defaults(&o);
    o.n_tiles = 1472;
    check(g, &o, (struct limits){0.03f, 0.02f});
    graph_free(g);
}

/* Batched products with every transposition, of host tensors and computed ones. */
static void test_batched(void) {
    static const uint32_t TILES[] = {1, 3, 7, 16, 64};
    const char *one = g_getenv("SEED");
    const uint64_t first = one ? g_ascii_strtoull(one, NULL, 10) : 1;
    for (uint64_t seed = first; seed < first + (one ? 1 : 60); seed++) {
        g_test_message("SEED=%" G_GUINT64_FORMAT, seed);
        state = seed << 16;
        const uint32_t batch = 1 + roll(5), m = 1 + roll(40), k = 2 * (1 + roll(30)),
                       n = 1 + roll(70);
        const uint32_t ta = roll(2), tb = roll(2), computed = roll(2);
        GString *text = g_string_new("graph b\n");
        g_string_append_printf(text, "%%a = input [%u, %u, %u] fill normal 1 0\n", batch,
                               ta && !computed ? k : m, ta && !computed ? m : k);
        if (computed) /* both operands computed: a w, then times b^T computed */
            g_string_append_printf(text,
                                   "%%u = parameter [%u, %u] fill normal 0.2 0\n"
                                   "%%c = input [%u, %u, %u] fill normal 1 0\n"
                                   "%%p = gemm %%a, %%u\n%%q = gemm %%c, %%u\n"
                                   "%%y = gemm %%p, %%q transpose_right\noutput %%y\n",
                                   k, k, batch, n, k);
        else
            g_string_append_printf(text,
                                   "%%c = %s [%u, %u, %u] fill normal 0.3 0\n"
                                   "%%y = gemm %%a, %%c%s%s\n%%z = gelu %%y\noutput %%z\n",
                                   roll(2) ? "input" : "parameter", batch, tb ? n : k, tb ? k : n,
                                   ta ? " transpose_left" : "", tb ? " transpose_right" : "");
        struct graph *g = parse(text->str);
        g_string_free(text, TRUE);
        struct plan_options o;
        plan_options_defaults(&o);
        o.n_tiles = TILES[roll(ARRAY_LEN(TILES))];
        check(g, &o, (struct limits){0.04f, 0.01f});
        graph_free(g);
    }
}

static void test_file(void) {
    char *text = NULL;
    g_assert_true(g_file_get_contents(g_getenv("GRAPH"), &text, NULL, NULL));
    struct graph *g = parse(text);
    struct plan_options o;
    plan_options_defaults(&o);
    o.n_tiles = 64;
    check(g, &o, (struct limits){0.03f, 0.02f});
    graph_free(g);
    g_free(text);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plan/encoder_mlp", test_encoder_mlp);
    g_test_add_func("/plan/attention_smoke", test_attention_smoke);
    g_test_add_func("/plan/random_attention", test_random_attention);
    g_test_add_func("/plan/projected_attention", test_projected_attention);
    g_test_add_func("/plan/small_vit", test_small_vit);
    g_test_add_func("/plan/batched", test_batched);
    g_test_add_func("/plan/small_result", test_small_result);
    if (g_getenv("GRAPH")) g_test_add_func("/plan/file", test_file);
    return g_test_run();
}
