/* random_graph: random graphs of all operations for tests, and the shrinking of one that fails.
 *
 * A recipe is a list of records (an operation and a few numbers); building reads the numbers modulo
 * what is possible at that point: which value of the pool, which axis, which extent. A record that
 * cannot be applied makes nothing. So any subset of records with any numbers is a graph again, and
 * shrinking is: drop records, halve numbers, as long as it still fails.
 *
 * Magnitudes are kept small: every pool value has a rough bound, and what would exceed it is not
 * made, so that F16 never overflows. */
#ifndef IPU_TEST_RANDOM_GRAPH_H
#define IPU_TEST_RANDOM_GRAPH_H

#include "graph/graph.h"

#include <math.h>
#include <string.h>

enum { RG_MAX_OPS = 10, RG_NUMBERS = 8, RG_MAX_POOL = 40, RG_MAX_ELEMENTS = 3000 };

enum rg_kind {
    RG_GEMM,
    RG_ADD,
    RG_MUL,
    RG_GELU,
    RG_LAYER_NORM,
    RG_RMS_NORM,
    RG_SOFTMAX,
    RG_ATTENTION,
    RG_SPLIT,
    RG_MERGE,
    RG_TRANSPOSE,
    RG_SLICE,
    RG_CONCAT,
    RG_CAST,
    RG_EMBED,
    RG_REPEAT,
    RG_N_KINDS
};
struct rg_record {
    uint32_t kind, number[RG_NUMBERS];
};
struct rg_recipe {
    uint32_t tiles, options; /* options: bits for the planner */
    uint32_t first[7];       /* rank and extents of the first input */
    uint32_t n;
    struct rg_record record[RG_MAX_OPS];
};

struct rg_value {
    uint32_t value;
    float most; /* rough bound of its elements */
    uint32_t uses;
};
struct rg_build {
    struct graph *g;
    struct rg_value pool[RG_MAX_POOL];
    uint32_t n_pool, n_names;
    const struct rg_record *r;
    uint32_t at; /* next number of the record */
    GError *error;
};

static uint32_t rg_number(struct rg_build *b, uint32_t modulus) {
    return b->r->number[b->at++ % RG_NUMBERS] % modulus;
}

/* A fresh name; live until the graph's arena copies it. */
static const char *rg_name(struct rg_build *b, const char *prefix) {
    static char name[16];
    g_snprintf(name, sizeof name, "%s%u", prefix, b->n_names++);
    return name;
}

static void rg_add(struct rg_build *b, uint32_t value, float most) {
    if (b->n_pool < RG_MAX_POOL) b->pool[b->n_pool++] = (struct rg_value){value, most, 0};
}

/* A host tensor: input or parameter, uniform in [-most, most). */
static uint32_t rg_source(struct rg_build *b, struct graph_shape s, float most, uint32_t parameter) {
    const struct graph_fill fill = {GRAPH_FILL_UNIFORM, -most, most};
    return parameter ? graph_add_parameter(b->g, rg_name(b, "p"), s, fill)
                     : graph_add_input(b->g, rg_name(b, "x"), s, fill);
}

static const struct graph_shape *rg_shape(const struct rg_build *b, uint32_t value) {
    return &b->g->values[value].shape;
}

static struct rg_value *rg_pick(struct rg_build *b) {
    struct rg_value *v = &b->pool[b->n_pool - 1 - rg_number(b, b->n_pool)];
    return v;
}

static bool rg_op(struct rg_build *b, enum graph_op_kind kind, const uint32_t *operands, uint32_t n,
                  const struct graph_attrs *attrs, float most) {
    const char *name = rg_name(b, graph_op_text(kind));
    struct graph_shape s;
    const struct graph_request q = {kind, name, operands, n, attrs};
    if (!graph_infer_shape(b->g, &q, &s, NULL)) return false;
    if (graph_shape_elements(&s) > RG_MAX_ELEMENTS || most > 64) return false;
    const uint32_t v = graph_add_op(b->g, kind, name, operands, n, attrs, &b->error);
    g_assert_no_error(b->error);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < b->n_pool; k++) b->pool[k].uses += b->pool[k].value == operands[i];
    rg_add(b, v, most);
    return true;
}

/* --- Operations --- */

static void rg_gemm(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    const struct graph_shape s = *rg_shape(b, x->value);
    if (s.n_dims < 2) return;
    struct graph_attrs a = {.transpose_left = rg_number(b, 3) == 0,
                            .transpose_right = rg_number(b, 2) == 0};
    const uint32_t inner = s.dim[s.n_dims - (a.transpose_left ? 2 : 1)];
    const uint32_t columns = 1 + rg_number(b, 40), form = rg_number(b, 4);
    struct graph_shape w = {.n_dims = 2};
    if (form == 3) /* leading axes, each as that of the left operand or 1 */
        for (w.n_dims = 0; w.n_dims + 2 < s.n_dims; w.n_dims++)
            w.dim[w.n_dims] = rg_number(b, 2) ? s.dim[w.n_dims] : 1;
    else w.n_dims = 0;
    w.dim[w.n_dims++] = a.transpose_right ? columns : inner;
    w.dim[w.n_dims++] = a.transpose_right ? inner : columns;
    const float most = 2 / sqrtf((float)inner);
    uint32_t right = GRAPH_NONE;
    float bound = x->most * 1.5f; /* of random weights: a few standard deviations */
    for (uint32_t i = 0; form == 2 && i < b->n_pool; i++) { /* a computed one, if any fits */
        const struct graph_shape *t = rg_shape(b, b->pool[i].value);
        if (t->n_dims >= 2 && t->dim[t->n_dims - (a.transpose_right ? 1 : 2)] == inner &&
            b->pool[i].most * x->most * (float)inner < 64) {
            right = b->pool[i].value;
            bound = b->pool[i].most * x->most * (float)inner;
        }
    }
    if (right == GRAPH_NONE) {
        if (graph_shape_elements(&w) > RG_MAX_ELEMENTS) return;
        right = rg_source(b, w, most, form != 1);
    }
    rg_op(b, GRAPH_GEMM, (uint32_t[]){x->value, right}, 2, &a, bound);
}

/* A shape that broadcasts to s. */
static struct graph_shape rg_narrow(struct rg_build *b, const struct graph_shape *s) {
    const uint32_t mask = rg_number(b, 1 << 8);
    const uint32_t drop = rg_number(b, 2) ? rg_number(b, s->n_dims + 1) : 0;
    struct graph_shape t = {0};
    for (uint32_t i = drop; i < s->n_dims; i++) t.dim[t.n_dims++] = mask >> i & 1 ? 1 : s->dim[i];
    return t;
}

static void rg_binary(struct rg_build *b, enum graph_op_kind kind) {
    struct rg_value *x = rg_pick(b), *y = rg_pick(b);
    const uint32_t form = rg_number(b, 4);
    uint32_t other = y->value;
    float most = y->most;
    struct graph_shape s = *rg_shape(b, x->value);
    if (form < 3) {
        if (form == 2) { /* the other one is larger */
            struct graph_shape wide = {.n_dims = s.n_dims};
            for (uint32_t i = 0; i < s.n_dims; i++)
                wide.dim[i] = s.dim[i] == 1 ? 1 + rg_number(b, 9) : s.dim[i];
            if (wide.n_dims < 4) {
                memmove(wide.dim + 1, wide.dim, sizeof wide.dim - sizeof wide.dim[0]);
                wide.dim[0] = 1 + rg_number(b, 3);
                wide.n_dims++;
            }
            s = wide;
        } else {
            s = rg_narrow(b, &s);
        }
        if (graph_shape_elements(&s) > RG_MAX_ELEMENTS) return;
        most = kind == GRAPH_ADD ? 2 : 1.5f;
        other = rg_source(b, s, most, form);
    }
    const uint32_t swap = rg_number(b, 2);
    const uint32_t operands[2] = {swap ? other : x->value, swap ? x->value : other};
    rg_op(b, kind, operands, 2, NULL, kind == GRAPH_ADD ? x->most + most : x->most * most);
}

static void rg_gelu(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    const struct graph_attrs a = {.form = (uint8_t)rg_number(b, 2)};
    rg_op(b, GRAPH_GELU, &x->value, 1, &a, x->most);
}

static float rg_epsilon(struct rg_build *b) {
    static const float EPSILON[] = {1e-6f, 1e-6f, 1e-5f, 1e-3f};
    return EPSILON[rg_number(b, 4)];
}

/* A norm amplifies what is wrong in a row of small or nearly equal elements: such rows first get
 * something to tell them apart. */
static struct rg_value *rg_rough(struct rg_build *b, struct rg_value *x) {
    const struct graph_value *v = &b->g->values[x->value];
    const uint32_t kind = v->kind == GRAPH_RESULT ? b->g->ops[v->op].kind : GRAPH_ADD;
    if (kind == GRAPH_ADD || kind == GRAPH_LAYER_NORM || kind == GRAPH_RMS_NORM) return x;
    const uint32_t operands[2] = {x->value, rg_source(b, v->shape, 2, 1)};
    return rg_op(b, GRAPH_ADD, operands, 2, NULL, x->most + 2) ? &b->pool[b->n_pool - 1] : NULL;
}

static void rg_norm(struct rg_build *b, enum graph_op_kind kind) {
    struct rg_value *x = rg_pick(b);
    const struct graph_shape s = *rg_shape(b, x->value);
    if (s.n_dims < 1 || s.dim[s.n_dims - 1] < 5) return; /* too few columns: ill-conditioned */
    x = rg_rough(b, x);
    if (x == NULL) return;
    struct graph_shape w = {.n_dims = 1, .dim = {s.dim[s.n_dims - 1]}};
    const uint32_t operands[3] = {x->value, rg_source(b, w, 1.5f, 1),
                                  kind == GRAPH_LAYER_NORM ? rg_source(b, w, 1, 1) : 0};
    const struct graph_attrs a = {.epsilon = rg_epsilon(b)};
    rg_op(b, kind, operands, kind == GRAPH_LAYER_NORM ? 3 : 2, &a, 5);
}

static void rg_softmax(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    rg_op(b, GRAPH_SOFTMAX, &x->value, 1, NULL, 1);
}

static void rg_attention(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    const struct graph_shape s = *rg_shape(b, x->value);
    if (s.n_dims < 2 || x->most > 8) return;
    struct graph_attrs a = {.causal = rg_number(b, 3) == 0};
    const uint32_t form = rg_number(b, 3);
    struct graph_shape k = s, v;
    k.dim[s.n_dims - 2] = 1 + rg_number(b, 40);
    v = k;
    v.dim[s.n_dims - 1] = 1 + rg_number(b, 36);
    if (graph_shape_elements(&k) > RG_MAX_ELEMENTS || graph_shape_elements(&v) > RG_MAX_ELEMENTS)
        return;
    uint32_t operands[3] = {x->value, x->value, x->value}; /* form 2: of itself */
    if (form < 2) operands[1] = rg_source(b, k, 1.5f, form);
    if (form < 2) operands[2] = rg_source(b, v, 2, form);
    if (rg_number(b, 4) == 0) a.scale = 0.25f;
    rg_op(b, GRAPH_ATTENTION, operands, 3, &a, x->most > 2 ? x->most : 2);
}

static void rg_factor(struct rg_build *b, enum graph_op_kind kind) {
    struct rg_value *x = rg_pick(b);
    const struct graph_shape s = *rg_shape(b, x->value);
    if (s.n_dims < 2) return;
    struct graph_attrs a = {.axis = rg_number(b, s.n_dims), .into = rg_number(b, s.n_dims)};
    if (rg_number(b, 2)) a.axis = s.n_dims - 1, a.into = 0; /* heads */
    if (a.axis == a.into) a.into = (a.into + 1) % s.n_dims;
    const uint32_t extent = s.dim[kind == GRAPH_SPLIT ? a.axis : a.into];
    a.count = 2 + rg_number(b, 6);
    while (extent % a.count) a.count--;
    rg_op(b, kind, &x->value, 1, &a, x->most);
}

static void rg_transpose(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    const uint32_t n = rg_shape(b, x->value)->n_dims;
    struct graph_attrs a = {0};
    for (uint32_t i = 0; i < n; i++) a.perm[i] = i;
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t k = rg_number(b, i), t = a.perm[i - 1];
        a.perm[i - 1] = a.perm[k];
        a.perm[k] = t;
    }
    rg_op(b, GRAPH_TRANSPOSE, &x->value, 1, &a, x->most);
}

static void rg_slice(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    const struct graph_shape s = *rg_shape(b, x->value);
    if (s.n_dims == 0) return;
    struct graph_attrs a = {.axis = rg_number(b, s.n_dims)};
    a.width = 1 + rg_number(b, s.dim[a.axis]);
    a.start = rg_number(b, s.dim[a.axis] - a.width + 1);
    rg_op(b, GRAPH_SLICE, &x->value, 1, &a, x->most);
}

static void rg_concat(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    struct graph_shape s = *rg_shape(b, x->value);
    if (s.n_dims == 0) return;
    const struct graph_attrs a = {.axis = rg_number(b, s.n_dims)};
    uint32_t operands[4] = {x->value};
    const uint32_t n = 1 + rg_number(b, 3);
    for (uint32_t i = 1; i <= n; i++) {
        operands[i] = x->value;
        s.dim[a.axis] = 1 + rg_number(b, 12);
        if (rg_number(b, 3) && graph_shape_elements(&s) <= RG_MAX_ELEMENTS)
            operands[i] = rg_source(b, s, 2, i % 2);
    }
    rg_op(b, GRAPH_CONCAT, operands, 1 + n, &a, x->most > 2 ? x->most : 2);
}

static void rg_cast(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    const struct graph_attrs a = {.format = rg_number(b, 4),
                                  .exponent = x->most > 8 ? 0 : -(int32_t)rg_number(b, 4)};
    const bool f8 = a.format == GRAPH_F8_F143 || a.format == GRAPH_F8_F152;
    const struct graph_attrs plain = {.format = a.format};
    rg_op(b, GRAPH_CAST, &x->value, 1, f8 ? &a : &plain, x->most);
}

static void rg_embed(struct rg_build *b) {
    struct rg_value *x = rg_pick(b);
    const uint32_t table_rows = 1 + rg_number(b, 50);
    struct graph_shape t = {.n_dims = 2, .dim = {table_rows, 1 + rg_number(b, 40)}};
    struct graph_shape i = {.n_dims = 1 + rg_number(b, 2)};
    for (uint32_t k = 0; k < i.n_dims; k++) i.dim[k] = 1 + rg_number(b, 7);
    uint32_t table = x->value;
    float most = x->most;
    if (rg_shape(b, table)->n_dims != 2 || rg_number(b, 2)) {
        table = rg_source(b, t, 2, 1);
        most = 2;
    }
    const struct graph_fill fill = {GRAPH_FILL_INDEX, (float)rg_shape(b, table)->dim[0], 0};
    const uint32_t words = graph_add_input(b->g, rg_name(b, "i"), i, fill);
    rg_op(b, GRAPH_EMBED, (uint32_t[]){table, words}, 2, NULL, most);
}

/* Operations of a body that keep the shape: of the value, iterated tensors and an invariant. */
static uint32_t rg_body(struct rg_build *b, uint32_t x, const uint32_t *argument, uint32_t n) {
    const struct graph_shape *s = rg_shape(b, x);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t kind = rg_number(b, 5);
        const struct graph_attrs none = {0}, eps = {.epsilon = 1e-5f};
        uint32_t operands[3] = {x, argument[1], argument[1]}; /* iterated vector */
        enum graph_op_kind op = GRAPH_GELU;
        if (kind == 1) op = GRAPH_MUL;
        if (kind == 2) op = GRAPH_ADD, operands[1] = argument[0]; /* invariant */
        if (kind == 3 && s->n_dims > 0 && s->dim[s->n_dims - 1] > 4) {
            const uint32_t rough[2] = {x, argument[0]};
            op = GRAPH_LAYER_NORM;
            operands[0] = graph_add_op(b->g, GRAPH_ADD, rg_name(b, "b"), rough, 2, &none, &b->error);
        }
        if (kind == 4 && s->n_dims >= 2) op = GRAPH_GEMM, operands[1] = argument[2];
        const uint32_t count = op == GRAPH_GELU ? 1 : op == GRAPH_LAYER_NORM ? 3 : 2;
        x = graph_add_op(b->g, op, rg_name(b, "b"), operands, count,
                         op == GRAPH_LAYER_NORM ? &eps : &none, &b->error);
        g_assert_no_error(b->error);
    }
    return x;
}

static void rg_repeat(struct rg_build *b) {
    struct rg_value *x = rg_pick(b), *y = rg_pick(b);
    const struct graph_shape s = *rg_shape(b, x->value);
    if (s.n_dims == 0 || x->most > 8 || y->most > 8) return;
    const uint32_t count = 1 + rg_number(b, 3), w = s.dim[s.n_dims - 1];
    const bool two = graph_shape_equal(&s, rg_shape(b, y->value)) && rg_number(b, 2);
    if (count * w * w > RG_MAX_ELEMENTS) return;
    const struct graph_shape vectors = {.n_dims = 2, .dim = {count, w}};
    const struct graph_shape matrices = {.n_dims = 3, .dim = {count, w, w}};
    uint32_t operands[8], argument[8], result[2], n = 0;
    operands[n++] = x->value;
    if (two) operands[n++] = y->value;
    operands[n++] = rg_source(b, s, 2, 1);
    operands[n++] = rg_source(b, vectors, 1, 1);
    operands[n++] = rg_source(b, matrices, 1.5f / sqrtf((float)w), 1);
    char names[8][16];
    const char *argument_names[8];
    for (uint32_t i = 0; i < n; i++) {
        g_strlcpy(names[i], rg_name(b, "a"), sizeof names[i]);
        argument_names[i] = names[i];
    }
    const struct graph_repeat_request r = {
        .name = "repeat", .count = count, .n_carried = 1 + two, .n_invariant = 1, .n_iterated = 2,
        .operands = operands, .argument_names = argument_names};
    if (!graph_repeat_begin(b->g, &r, argument, &b->error)) g_assert_no_error(b->error);
    const uint32_t made = rg_body(b, argument[0], &argument[1 + two], 1 + rg_number(b, 3));
    const uint32_t exchange = rg_number(b, 2);
    const uint32_t yields[2] = {two && exchange ? argument[1] : made,
                                exchange ? made : argument[0]};
    char result_names[2][16];
    const char *names_of[2] = {result_names[0], result_names[1]};
    for (uint32_t i = 0; i < 2; i++) g_strlcpy(result_names[i], rg_name(b, "r"), sizeof result_names[i]);
    if (!graph_repeat_end(b->g, yields, names_of, result, &b->error)) g_assert_no_error(b->error);
    x->uses++;
    y->uses += two;
    const float most = 4 * (x->most > y->most ? x->most : y->most) + 18;
    for (uint32_t i = 0; i < 1u + two; i++) rg_add(b, result[i], most);
}

static void rg_apply(struct rg_build *b) {
    switch (b->r->kind) {
    case RG_GEMM: rg_gemm(b); break;
    case RG_ADD: rg_binary(b, GRAPH_ADD); break;
    case RG_MUL: rg_binary(b, GRAPH_MUL); break;
    case RG_GELU: rg_gelu(b); break;
    case RG_LAYER_NORM: rg_norm(b, GRAPH_LAYER_NORM); break;
    case RG_RMS_NORM: rg_norm(b, GRAPH_RMS_NORM); break;
    case RG_SOFTMAX: rg_softmax(b); break;
    case RG_ATTENTION: rg_attention(b); break;
    case RG_SPLIT: rg_factor(b, GRAPH_SPLIT); break;
    case RG_MERGE: rg_factor(b, GRAPH_MERGE); break;
    case RG_TRANSPOSE: rg_transpose(b); break;
    case RG_SLICE: rg_slice(b); break;
    case RG_CONCAT: rg_concat(b); break;
    case RG_CAST: rg_cast(b); break;
    case RG_EMBED: rg_embed(b); break;
    default: rg_repeat(b); break;
    }
}

/* The graph of a recipe; its outputs are the values that nothing reads. */
static struct graph *rg_graph(const struct rg_recipe *recipe) {
    struct rg_build b = {.g = graph_new("random")};
    struct graph_shape s = {.n_dims = recipe->first[0] % (GRAPH_MAX_DIMS + 1)};
    for (uint32_t i = 0; i < s.n_dims; i++)
        s.dim[i] = 1 + recipe->first[1 + i] % (s.n_dims > 4 ? 5 : 24);
    while (graph_shape_elements(&s) > RG_MAX_ELEMENTS)
        for (uint32_t i = 0; i < s.n_dims; i++) s.dim[i] = ceil_div_u32(s.dim[i], 2);
    rg_add(&b, graph_add_input(b.g, "x", s, (struct graph_fill){GRAPH_FILL_UNIFORM, -2, 2}), 2);
    for (uint32_t i = 0; i < recipe->n; i++) {
        b.r = &recipe->record[i];
        b.at = 0;
        rg_apply(&b);
    }
    if (b.g->n_ops == 0) rg_op(&b, GRAPH_GELU, &b.pool[0].value, 1, NULL, 2);
    for (uint32_t i = 1; i < b.n_pool; i++)
        if (b.pool[i].uses == 0)
            graph_add_output(b.g, (struct graph_output){.value = b.pool[i].value});
    return b.g;
}

static struct rg_recipe rg_recipe(uint64_t seed) {
    static const uint32_t TILES[] = {1, 2, 7, 16, 64};
    uint64_t at = 0;
    struct rg_recipe r = {.n = 1 + (uint32_t)(rand_u64(seed, 1, at++) % RG_MAX_OPS)};
    r.tiles = TILES[rand_u64(seed, 1, at++) % ARRAY_LEN(TILES)];
    if (rand_u64(seed, 1, at++) % 32 == 0) r.tiles = 1472;
    r.options = (uint32_t)rand_u64(seed, 1, at++);
    for (uint32_t i = 0; i < ARRAY_LEN(r.first); i++) r.first[i] = (uint32_t)(rand_u64(seed, 2, i) % (i ? 24 : GRAPH_MAX_DIMS + 1));
    for (uint32_t i = 0; i < r.n; i++) {
        const uint32_t kind = (uint32_t)(rand_u64(seed, 3 + i, RG_NUMBERS) % (RG_N_KINDS + 4));
        r.record[i].kind = kind < RG_N_KINDS ? kind : kind % 2 ? RG_GEMM : RG_ATTENTION;
        for (uint32_t k = 0; k < RG_NUMBERS; k++)
            r.record[i].number[k] = (uint32_t)(rand_u64(seed, 3 + i, k) % 240);
    }
    return r;
}

/* --- Shrinking --- */

typedef bool rg_fails(const struct rg_recipe *r, void *user);

static bool rg_try(struct rg_recipe *best, const struct rg_recipe *candidate, rg_fails *fails,
                   void *user) {
    if (memcmp(best, candidate, sizeof *best) == 0 || !fails(candidate, user)) return false;
    *best = *candidate;
    return true;
}

static bool rg_drop_records(struct rg_recipe *best, rg_fails *fails, void *user) {
    bool any = false;
    for (uint32_t i = best->n; i-- > 0;) {
        struct rg_recipe x = *best;
        memmove(&x.record[i], &x.record[i + 1], (x.n - i - 1) * sizeof x.record[0]);
        memset(&x.record[--x.n], 0, sizeof x.record[0]);
        any |= rg_try(best, &x, fails, user);
    }
    return any;
}

/* To zero, else by half, else by one. */
static bool rg_lower(struct rg_recipe *best, uint32_t *number, rg_fails *fails, void *user) {
    const size_t offset = (size_t)((char *)number - (char *)best);
    const uint32_t now = *number, lower[] = {0, now / 2, now - (now > 0)};
    for (uint32_t i = 0; i < ARRAY_LEN(lower); i++) {
        struct rg_recipe x = *best;
        *(uint32_t *)(void *)((char *)&x + offset) = lower[i];
        if (rg_try(best, &x, fails, user)) return true;
    }
    return false;
}

/* Numbers count modulo what is possible: first brought into a small range that fails alike. */
static bool rg_halve_numbers(struct rg_recipe *best, rg_fails *fails, void *user) {
    bool any = false;
    for (uint32_t i = 0; i < ARRAY_LEN(best->first); i++)
        any |= rg_lower(best, &best->first[i], fails, user);
    for (uint32_t i = 0; i < best->n; i++)
        for (uint32_t k = 0; k < RG_NUMBERS; k++)
            any |= rg_lower(best, &best->record[i].number[k], fails, user);
    struct rg_recipe x = *best;
    if (x.tiles > 1) x.tiles /= 2;
    any |= rg_try(best, &x, fails, user);
    return any;
}

/* The smallest recipe found that still fails; at most `rounds` rounds. */
static struct rg_recipe rg_shrink(struct rg_recipe r, rg_fails *fails, void *user, uint32_t rounds) {
    bool any = true;
    while (any && rounds-- > 0) {
        any = rg_drop_records(&r, fails, user);
        any |= rg_halve_numbers(&r, fails, user);
    }
    return r;
}

#endif
