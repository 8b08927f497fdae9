/* The workload catalogue: builders of the smoke tests and benchmarks. Contents: activations are
 * standard normal, weights normal with deviation sqrt(2 / (in + out)), so that results stay near 1.
 */
#include "graph/graph_build.h"
#include "target/target.h"

#include <math.h>
#include <string.h>

struct graph_shape build_shape(uint32_t n, uint32_t d0, uint32_t d1, uint32_t d2) {
    return (struct graph_shape){.n_dims = n, .dim = {d0, d1, d2}};
}

struct graph_fill build_normal(double deviation) {
    return (struct graph_fill){GRAPH_FILL_NORMAL, (float)deviation, 0};
}

struct graph_fill build_xavier(uint32_t in, uint32_t out) {
    return build_normal(sqrt(2.0 / ((double)in + out)));
}

uint32_t build_op(struct build *b, enum graph_op_kind kind, const char *name, uint32_t x,
                  uint32_t y, struct graph_attrs attrs) {
    if (b->failed) return GRAPH_NONE;
    const uint32_t operands[] = {x, y};
    const uint32_t v =
        graph_add_op(b->g, kind, name, operands, y == GRAPH_NONE ? 1 : 2, &attrs, b->error);
    b->failed = v == GRAPH_NONE;
    return v;
}

uint32_t build_op3(struct build *b, enum graph_op_kind kind, const char *name,
                   const uint32_t operands[3], struct graph_attrs attrs) {
    if (b->failed) return GRAPH_NONE;
    const uint32_t v = graph_add_op(b->g, kind, name, operands, 3, &attrs, b->error);
    b->failed = v == GRAPH_NONE;
    return v;
}

void build_output(struct build *b, uint32_t value, double atol, double rtol) {
    if (b->failed) return;
    graph_add_output(b->g, (struct graph_output){.value = value,
                                                 .atol = b->o->atol >= 0 ? b->o->atol : atol,
                                                 .rtol = b->o->rtol >= 0 ? b->o->rtol : rtol});
}

static void mlp_smoke(struct build *b) {
    struct graph *g = b->g;
    const uint32_t x = graph_add_input(g, "x", build_shape(2, b->o->tiles, 64, 0), build_normal(1));
    const uint32_t w0 =
        graph_add_parameter(g, "w0", build_shape(2, 64, 64, 0), build_xavier(64, 64));
    const uint32_t w1 =
        graph_add_parameter(g, "w1", build_shape(2, 64, 64, 0), build_xavier(64, 64));
    const struct graph_attrs none = {0};
    const uint32_t h = build_op(b, GRAPH_GEMM, "h", x, w0, none);
    const uint32_t a = build_op(b, GRAPH_GELU, "a", h, GRAPH_NONE, none);
    const uint32_t z = build_op(b, GRAPH_GEMM, "z", a, w1, none);
    build_output(b, build_op(b, GRAPH_GELU, "y", z, GRAPH_NONE, none), 0.02, 0);
}

static void smoke(struct build *b, uint32_t batch, float shift) {
    struct graph *g = b->g;
    const struct graph_fill hot = {GRAPH_FILL_ONE_HOT, shift, 0};
    const uint32_t x = graph_add_input(g, "x", build_shape(3, batch, b->o->tiles, 64), hot);
    const uint32_t w =
        graph_add_parameter(g, "w", build_shape(3, 1, 64, 64 * b->o->tiles), build_normal(1));
    const uint32_t y = build_op(b, GRAPH_GEMM, "y", x, w, (struct graph_attrs){0});
    if (!b->failed) graph_add_output(g, (struct graph_output){.value = y, .exact = true});
}

static void gemm_smoke(struct build *b) {
    smoke(b, 1, 0);
}

static void batched_gemm_smoke(struct build *b) {
    smoke(b, 3, 7);
}

static void attention_smoke(struct build *b) {
    struct graph *g = b->g;
    const uint32_t qkv[] = {graph_add_input(g, "q", build_shape(3, 4, 17, 72), build_normal(1)),
                            graph_add_input(g, "k", build_shape(3, 4, 19, 72), build_normal(1)),
                            graph_add_input(g, "v", build_shape(3, 4, 19, 72), build_normal(1))};
    const uint32_t y = build_op3(b, GRAPH_ATTENTION, "y", qkv, (struct graph_attrs){0});
    build_output(b, y, 0.012, 0);
    if (!b->failed) g->outputs[0].rms = 0.003;
}

static void gemm_benchmark(struct build *b) {
    const struct graph_workload_options *o = b->o;
    const uint32_t x = graph_add_input(
        b->g, "x", build_shape(2, o->benchmark_rows, o->benchmark_inner, 0), build_normal(1));
    const uint32_t w =
        graph_add_parameter(b->g, "w", build_shape(2, o->benchmark_inner, o->benchmark_columns, 0),
                            build_xavier(o->benchmark_inner, o->benchmark_columns));
    build_output(b, build_op(b, GRAPH_GEMM, "y", x, w, (struct graph_attrs){0}), 0.01, 0.002);
}

static void siglip_mlp(struct build *b) {
    const struct graph_workload_options *o = b->o;
    const uint32_t hidden = o->mlp_hidden_dim    ? o->mlp_hidden_dim
                            : o->mlp_dim == 1152 ? 4304
                                                 : 4 * o->mlp_dim;
    uint32_t x = graph_add_input(b->g, "x", build_shape(3, o->mlp_batch, o->mlp_tokens, o->mlp_dim),
                                 build_normal(1));
    const struct graph_attrs none = {0};
    for (uint32_t i = 0; i < o->mlp_blocks; i++) {
        char up[32], down[32], h[32], a[32], y[32];
        g_snprintf(up, sizeof up, "up%u", i);
        g_snprintf(down, sizeof down, "down%u", i);
        g_snprintf(h, sizeof h, "h%u", i);
        g_snprintf(a, sizeof a, "a%u", i);
        g_snprintf(y, sizeof y, "y%u", i);
        const uint32_t w0 = graph_add_parameter(b->g, up, build_shape(2, o->mlp_dim, hidden, 0),
                                                build_xavier(o->mlp_dim, hidden));
        const uint32_t w1 = graph_add_parameter(b->g, down, build_shape(2, hidden, o->mlp_dim, 0),
                                                build_xavier(hidden, o->mlp_dim));
        const uint32_t v0 = build_op(b, GRAPH_GEMM, h, x, w0, none);
        const uint32_t v1 = build_op(b, GRAPH_GELU, a, v0, GRAPH_NONE, none);
        x = build_op(b, GRAPH_GEMM, y, v1, w1, none);
    }
    build_output(b, x, 0.03, 0.05);
}

static uint32_t attention_block(struct build *b, uint32_t x, uint32_t block) {
    static const char *const NAMES[] = {"q", "k", "v"};
    const struct graph_workload_options *o = b->o;
    const uint32_t heads = o->attention_heads, width = 72 * heads, batch = o->attention_batch;
    const struct graph_attrs none = {0};
    struct graph_attrs split = {.axis = 2, .into = 0, .count = heads};
    const struct graph_fill weight =
        o->attention_constant ? (struct graph_fill){GRAPH_FILL_CONSTANT, 1.0f / (float)width, 0}
                              : build_xavier(width, width);
    const uint32_t n_products = o->fuse_qkv ? 1 : 3;
    uint32_t product[3] = {0}, parts[3];
    char name[32];
    for (uint32_t i = 0; i < n_products; i++) {
        g_snprintf(name, sizeof name, "%s%u.weight", o->fuse_qkv ? "qkv" : NAMES[i], block);
        const uint32_t w = graph_add_parameter(
            b->g, name, build_shape(2, width, width * (o->fuse_qkv ? 3 : 1), 0), weight);
        g_snprintf(name, sizeof name, "%s%u", o->fuse_qkv ? "qkv" : NAMES[i], block);
        product[i] = build_op(b, GRAPH_GEMM, name, x, w, none);
    }
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t from = product[i];
        if (o->fuse_qkv) {
            const struct graph_attrs slice = {.axis = 2, .start = i * width, .width = width};
            g_snprintf(name, sizeof name, "%s%u", NAMES[i], block);
            from = build_op(b, GRAPH_SLICE, name, product[0], GRAPH_NONE, slice);
        }
        g_snprintf(name, sizeof name, "%s%u.heads", NAMES[i], block);
        parts[i] = build_op(b, GRAPH_SPLIT, name, from, GRAPH_NONE, split);
    }
    (void)batch;
    g_snprintf(name, sizeof name, "attention%u", block);
    const uint32_t y = build_op3(b, GRAPH_ATTENTION, name, parts, none);
    if (block + 1 == o->attention_blocks) return y;
    g_snprintf(name, sizeof name, "merge%u", block);
    return build_op(b, GRAPH_MERGE, name, y, GRAPH_NONE, split);
}

static void siglip_attention(struct build *b) {
    const struct graph_workload_options *o = b->o;
    const struct graph_fill fill =
        o->attention_constant ? (struct graph_fill){GRAPH_FILL_CONSTANT, 1, 0} : build_normal(1);
    uint32_t x = graph_add_input(
        b->g, "x", build_shape(3, o->attention_batch, o->mlp_tokens, 72 * o->attention_heads),
        fill);
    for (uint32_t i = 0; i < o->attention_blocks && !b->failed; i++) x = attention_block(b, x, i);
    build_output(b, x, 0.02, 0);
}

static const struct {
    const char *name;
    void (*build)(struct build *);
    const char *text;
} WORKLOADS[] = {
#define GRAPH_WORKLOAD(name, build, text) {name, build, text},
#include "graph/workload.def"
#undef GRAPH_WORKLOAD
};

bool graph_workload_describe(uint32_t i, const char **ret_name, const char **ret_text) {
    if (i >= ARRAY_LEN(WORKLOADS)) return false;
    *ret_name = WORKLOADS[i].name;
    *ret_text = WORKLOADS[i].text;
    return true;
}

void graph_workload_defaults(struct graph_workload_options *o) {
    *o = (struct graph_workload_options){.tiles = TARGET_N_TILES,
                                         .mlp_batch = 4,
                                         .mlp_tokens = 729,
                                         .mlp_dim = 1152,
                                         .mlp_blocks = 1,
                                         .attention_batch = 1,
                                         .attention_heads = 16,
                                         .attention_blocks = 1,
                                         .benchmark_rows = 131072,
                                         .benchmark_inner = 64,
                                         .benchmark_columns = 64,
                                         .vit_batch = 1,
                                         .vit_layers = 1,
                                         .vit_image_size = 378,
                                         .atol = -1,
                                         .rtol = -1};
}

static void fill_defaults(struct graph_workload_options *o) {
    struct graph_workload_options d;
    graph_workload_defaults(&d);
#define DEFAULT(field)                                                                             \
    if (!o->field) o->field = d.field
    DEFAULT(tiles);
    DEFAULT(mlp_batch);
    DEFAULT(mlp_tokens);
    DEFAULT(mlp_dim);
    DEFAULT(mlp_blocks);
    DEFAULT(attention_batch);
    DEFAULT(attention_heads);
    DEFAULT(attention_blocks);
    DEFAULT(benchmark_rows);
    DEFAULT(benchmark_inner);
    DEFAULT(benchmark_columns);
    DEFAULT(vit_batch);
    DEFAULT(vit_layers);
    DEFAULT(vit_image_size);
#undef DEFAULT
}

static void unknown_workload(const char *name, GError **error) {
    GString *known = g_string_new(NULL);
    for (uint32_t i = 0; i < ARRAY_LEN(WORKLOADS); i++)
        g_string_append_printf(known, "%s%s", i ? ", " : "", WORKLOADS[i].name);
    diag_set(error, GRAPH_WORKLOAD, name, known->str);
    g_string_free(known, TRUE);
}

struct graph *graph_workload_build(const char *name, const struct graph_workload_options *options,
                                   GError **error) {
    struct graph_workload_options o = *options;
    fill_defaults(&o);
    for (uint32_t i = 0; i < ARRAY_LEN(WORKLOADS); i++) {
        if (strcmp(WORKLOADS[i].name, name) != 0) continue;
        struct build b = {graph_new(name), &o, error, false};
        WORKLOADS[i].build(&b);
        if (!b.failed && graph_verify(b.g, error)) return b.g;
        graph_free(b.g);
        return NULL;
    }
    unknown_workload(name, error);
    return NULL;
}
