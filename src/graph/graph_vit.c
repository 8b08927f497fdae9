/* The SigLIP So400m/14 image encoder with its pooling head (compiler 2.4): patch embedding and
 * positions, `layers` encoder blocks in a repeat, final norm, attention pooling by a learned probe,
 * MLP. Parameters of the blocks are sequences: one leading axis of `layers`. */
#include "graph/graph_build.h"

#include <math.h>

struct vit {
    struct build *b;
    uint32_t batch, layers, tokens, patch, width, heads, hidden;
    bool fused;
};

static const struct graph_attrs NONE;
static const struct graph_attrs NORM = {.epsilon = 1e-6f};

/* The parameters of a block in the order of their use; shapes without the leading axis. */
enum { MAX_SEQUENCES = 16 };
struct sequence {
    const char *name;
    uint32_t n_dims, d0, d1;
    struct graph_fill fill;
};

static uint32_t list_sequences(const struct vit *v, struct sequence *s) {
    const struct graph_fill one = {GRAPH_FILL_CONSTANT, 1, 0}, bias = build_normal(1e-6);
    const uint32_t w = v->width, h = v->hidden;
    const struct graph_fill square = build_xavier(w, w);
    uint32_t n = 0;
    s[n++] = (struct sequence){"norm1.scale", 1, w, 0, one};
    s[n++] = (struct sequence){"norm1.bias", 1, w, 0, bias};
    if (v->fused) {
        s[n++] = (struct sequence){"qkv.weight", 2, w, 3 * w, square};
        s[n++] = (struct sequence){"qkv.bias", 1, 3 * w, 0, bias};
    } else {
        s[n++] = (struct sequence){"q.weight", 2, w, w, square};
        s[n++] = (struct sequence){"q.bias", 1, w, 0, bias};
        s[n++] = (struct sequence){"k.weight", 2, w, w, square};
        s[n++] = (struct sequence){"k.bias", 1, w, 0, bias};
        s[n++] = (struct sequence){"v.weight", 2, w, w, square};
        s[n++] = (struct sequence){"v.bias", 1, w, 0, bias};
    }
    s[n++] = (struct sequence){"out.weight", 2, w, w, square};
    s[n++] = (struct sequence){"out.bias", 1, w, 0, bias};
    s[n++] = (struct sequence){"norm2.scale", 1, w, 0, one};
    s[n++] = (struct sequence){"norm2.bias", 1, w, 0, bias};
    s[n++] = (struct sequence){"up.weight", 2, w, h, build_xavier(w, h)};
    s[n++] = (struct sequence){"up.bias", 1, h, 0, bias};
    s[n++] = (struct sequence){"down.weight", 2, h, w, build_xavier(h, w)};
    s[n++] = (struct sequence){"down.bias", 1, w, 0, bias};
    return n;
}

static const char *join(struct vit *v, const char *prefix, const char *name) {
    return arena_printf(v->b->g->arena, "%s.%s", prefix, name);
}

/* x times weight plus bias. */
static uint32_t dense(struct vit *v, const char *prefix, const char *name, uint32_t x,
                      const uint32_t parameters[2]) {
    const uint32_t y = build_op(v->b, GRAPH_GEMM,
                                join(v, prefix, arena_printf(v->b->g->arena, "%s.product", name)),
                                x, parameters[0], NONE);
    return build_op(v->b, GRAPH_ADD, join(v, prefix, name), y, parameters[1], NONE);
}

/* Queries from `query`, keys and values from `x`; p: weight and bias of q, k, v (or of all, or of q
 * and both others when fused) in order. Returns the merged result. */
static uint32_t attention(struct vit *v, const char *prefix, uint32_t query, uint32_t x,
                          const uint32_t *p) {
    static const char *const NAMES[] = {"q", "k", "v"};
    const struct graph_attrs split = {.axis = 2, .into = 0, .count = v->heads};
    const bool self = query == x;
    uint32_t source[3], first[3] = {0, 0, 0};
    if (v->fused) {
        const uint32_t all = self ? dense(v, prefix, "qkv", x, p) : GRAPH_NONE;
        const uint32_t kv = self ? GRAPH_NONE : dense(v, prefix, "kv", x, p + 2);
        source[0] = self ? all : dense(v, prefix, "q", query, p);
        source[1] = source[2] = self ? all : kv;
        first[1] = self ? v->width : 0;
        first[2] = self ? 2 * v->width : v->width;
    } else {
        for (uint32_t i = 0; i < 3; i++)
            source[i] = dense(v, prefix, NAMES[i], i ? x : query, p + 2 * i);
    }
    uint32_t heads[3];
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t from = source[i];
        if (v->fused && (self || i > 0)) {
            const struct graph_attrs window = {.axis = 2, .start = first[i], .width = v->width};
            from = build_op(v->b, GRAPH_SLICE, join(v, prefix, NAMES[i]), from, GRAPH_NONE, window);
        }
        heads[i] = build_op(v->b, GRAPH_SPLIT,
                            join(v, prefix, arena_printf(v->b->g->arena, "%s.heads", NAMES[i])),
                            from, GRAPH_NONE, split);
    }
    const uint32_t y = build_op3(v->b, GRAPH_ATTENTION, join(v, prefix, "attention"), heads, NONE);
    return build_op(v->b, GRAPH_MERGE, join(v, prefix, "merged"), y, GRAPH_NONE, split);
}

/* x + down(gelu(up(norm(x)))); p: norm scale and bias, up, down. */
static uint32_t mlp(struct vit *v, const char *prefix, uint32_t x, const uint32_t *p) {
    const uint32_t operands[] = {x, p[0], p[1]};
    const uint32_t n = build_op3(v->b, GRAPH_LAYER_NORM, join(v, prefix, "norm2"), operands, NORM);
    const uint32_t h = dense(v, prefix, "up", n, p + 2);
    const uint32_t a = build_op(v->b, GRAPH_GELU, join(v, prefix, "gelu"), h, GRAPH_NONE, NONE);
    const uint32_t y = dense(v, prefix, "down", a, p + 4);
    return build_op(v->b, GRAPH_ADD, join(v, prefix, "residual2"), x, y, NONE);
}

static uint32_t encoder_block(struct vit *v, uint32_t x, const uint32_t *p) {
    const uint32_t operands[] = {x, p[0], p[1]};
    const uint32_t n = build_op3(v->b, GRAPH_LAYER_NORM, "block.norm1", operands, NORM);
    const uint32_t *out = p + 2 + (v->fused ? 2 : 6);
    const uint32_t a = attention(v, "block", n, n, p + 2);
    const uint32_t y = dense(v, "block", "out", a, out);
    const uint32_t r = build_op(v->b, GRAPH_ADD, "block.residual1", x, y, NONE);
    return mlp(v, "block", r, out + 2);
}

static uint32_t encoder(struct vit *v, uint32_t x) {
    struct sequence s[MAX_SEQUENCES];
    const uint32_t n = list_sequences(v, s);
    uint32_t operands[1 + MAX_SEQUENCES] = {x}, arguments[1 + MAX_SEQUENCES];
    const char *names[1 + MAX_SEQUENCES] = {"block.x"};
    for (uint32_t i = 0; i < n; i++) {
        const struct graph_shape shape = build_shape(s[i].n_dims + 1, v->layers, s[i].d0, s[i].d1);
        operands[1 + i] =
            graph_add_parameter(v->b->g, join(v, "encoder", s[i].name), shape, s[i].fill);
        names[1 + i] = join(v, "block", s[i].name);
    }
    const struct graph_repeat_request r = {.name = "encoder",
                                           .count = v->layers,
                                           .n_carried = 1,
                                           .n_iterated = n,
                                           .operands = operands,
                                           .argument_names = names};
    if (v->b->failed || !graph_repeat_begin(v->b->g, &r, arguments, v->b->error)) {
        v->b->failed = true;
        return GRAPH_NONE;
    }
    const uint32_t y = encoder_block(v, arguments[0], arguments + 1);
    const char *result = "encoder.result";
    uint32_t z = GRAPH_NONE;
    if (v->b->failed || !graph_repeat_end(v->b->g, &y, &result, &z, v->b->error))
        v->b->failed = true;
    return z;
}

static uint32_t vector(struct vit *v, const char *name, uint32_t width, struct graph_fill fill) {
    return graph_add_parameter(v->b->g, name, build_shape(1, width, 0, 0), fill);
}

static uint32_t matrix(struct vit *v, const char *name, uint32_t in, uint32_t out,
                       struct graph_fill fill) {
    return graph_add_parameter(v->b->g, name, build_shape(2, in, out, 0), fill);
}

static uint32_t embedding(struct vit *v) {
    const struct graph_shape shape = build_shape(3, v->batch, v->tokens, v->patch);
    const uint32_t x = graph_add_input(v->b->g, "image", shape, build_normal(0.5));
    const uint32_t p[] = {
        matrix(v, "patch.weight", v->patch, v->width, build_xavier(v->patch, v->width)),
        vector(v, "patch.bias", v->width, build_normal(1e-6))};
    const uint32_t position =
        matrix(v, "position", v->tokens, v->width, build_normal(1 / sqrt((double)v->width)));
    const uint32_t y = dense(v, "stem", "patch", x, p);
    return build_op(v->b, GRAPH_ADD, "stem.position", y, position, NONE);
}

static uint32_t pooling(struct vit *v, uint32_t x) {
    const struct graph_fill one = {GRAPH_FILL_CONSTANT, 1, 0}, bias = build_normal(1e-6);
    const uint32_t w = v->width, h = v->hidden;
    const struct graph_fill square = build_xavier(w, w);
    const uint32_t probe = graph_add_parameter(v->b->g, "probe", build_shape(3, v->batch, 1, w),
                                               build_normal(sqrt(1.0 / w)));
    uint32_t p[6] = {matrix(v, "pool.q.weight", w, w, square), vector(v, "pool.q.bias", w, bias)};
    if (v->fused) {
        p[2] = matrix(v, "pool.kv.weight", w, 2 * w, square);
        p[3] = vector(v, "pool.kv.bias", 2 * w, bias);
    } else {
        p[2] = matrix(v, "pool.k.weight", w, w, square);
        p[3] = vector(v, "pool.k.bias", w, bias);
        p[4] = matrix(v, "pool.v.weight", w, w, square);
        p[5] = vector(v, "pool.v.bias", w, bias);
    }
    const uint32_t out[] = {matrix(v, "pool.out.weight", w, w, square),
                            vector(v, "pool.out.bias", w, bias)};
    const uint32_t m[] = {vector(v, "pool.norm2.scale", w, one),
                          vector(v, "pool.norm2.bias", w, bias),
                          matrix(v, "pool.up.weight", w, h, build_xavier(w, h)),
                          vector(v, "pool.up.bias", h, bias),
                          matrix(v, "pool.down.weight", h, w, build_xavier(h, w)),
                          vector(v, "pool.down.bias", w, bias)};
    const uint32_t a = attention(v, "head", probe, x, p);
    return mlp(v, "head", dense(v, "head", "out", a, out), m);
}

void graph_build_vit(struct build *b) {
    const struct graph_workload_options *o = b->o;
    const uint32_t size = o->vit_small ? 28 : o->vit_image_size;
    if (size % 14 != 0) {
        diag_set(b->error, GRAPH_IMAGE_SIZE, size);
        b->failed = true;
        return;
    }
    struct vit v = {.b = b,
                    .batch = o->vit_batch,
                    .layers = o->vit_layers,
                    .tokens = size / 14 * (size / 14),
                    .patch = 14 * 14 * 3,
                    .width = o->vit_small ? 144 : 1152,
                    .heads = o->vit_small ? 2 : 16,
                    .hidden = o->vit_small ? 288 : 4304,
                    .fused = o->fuse_qkv};
    const uint32_t x = encoder(&v, embedding(&v));
    const struct graph_fill one = {GRAPH_FILL_CONSTANT, 1, 0};
    const uint32_t operands[] = {x, vector(&v, "norm.scale", v.width, one),
                                 vector(&v, "norm.bias", v.width, build_normal(1e-6))};
    const uint32_t n = build_op3(b, GRAPH_LAYER_NORM, "norm", operands, NORM);
    build_output(b, pooling(&v, n), 0.03, 0.03);
}
