/* The interpreter of graphs: operations in program order, values made on first use and freed after
 * their last. Iterated operands are never made whole when they come from the source. */
#include "reference/ref_int.h"
#include "numeric/num_format.h"

#include <math.h>
#include <string.h>

struct slot {
    float *data;         /* NULL: not made, or freed */
    const float *shared; /* view of another value (arguments) */
    uint32_t uses_left;
    bool keep;
};

struct reference {
    const struct graph *g;
    struct reference_options o;
    struct slot *slots; /* [n_values] */
    uint32_t iteration;
};

/* --- Rounding --- */

struct rounding {
    float *v;
    uint64_t n;
    struct reference_format format;
};
enum { ROUND_BLOCK = 1 << 16, ROUND_PIECE = 1 << 10 };

static void round_block(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct rounding *r = context;
    const uint64_t first = (uint64_t)i * ROUND_BLOCK, end = MIN(r->n, first + ROUND_BLOCK);
    const enum num_f8_format f = r->format.format == GRAPH_F8_F143 ? NUM_F143 : NUM_F152;
    uint16_t stored[ROUND_PIECE];
    for (uint64_t j = first; j < end; j += ROUND_PIECE) {
        const uint64_t n = MIN((uint64_t)ROUND_PIECE, end - j);
        if (r->format.format == GRAPH_F16) {
            num_f16_from_f32_n(n, r->v + j, stored);
            num_f16_to_f32_n(n, stored, r->v + j);
        } else {
            num_f8_from_f32_n(n, r->v + j, f, r->format.exponent, (uint8_t *)stored);
            num_f8_to_f32_n(n, (const uint8_t *)stored, f, r->format.exponent, r->v + j);
        }
    }
}

void reference_round(float *v, uint64_t n, struct reference_format format) {
    if (format.format == GRAPH_F32) return;
    struct rounding r = {v, n, format};
    if (n <= ROUND_BLOCK) {
        if (n != 0) round_block(0, 0, &r);
        return;
    }
    par_for((uint32_t)ceil_div_u64(n, ROUND_BLOCK), round_block, &r);
}

/* --- Sources --- */

void reference_fill_source(void *user, uint32_t value, uint64_t first, uint64_t n, float *ret) {
    const struct reference_fill *f = user;
    graph_fill_elements(&f->graph->values[value], f->seed, first, n, ret);
}

struct fetch {
    const struct reference *r;
    uint32_t value;
    uint64_t first, n;
    float *to;
};

static void fetch_block(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct fetch *f = context;
    const uint64_t at = (uint64_t)i * ROUND_BLOCK, n = MIN(ROUND_BLOCK, f->n - at);
    f->r->o.source(f->r->o.source_user, f->value, f->first + at, n, f->to + at);
}

static float *fetch(const struct reference *r, uint32_t value, uint64_t first, uint64_t n) {
    float *data = g_malloc(n * sizeof(float));
    struct fetch f = {r, value, first, n, data};
    par_for((uint32_t)ceil_div_u64(n, ROUND_BLOCK), fetch_block, &f);
    if (r->o.precision != NULL) {
        struct reference_format format = {GRAPH_F16, 0};
        if (r->o.precision->values != NULL) format = r->o.precision->values[value];
        reference_round(data, n, format);
    }
    return data;
}

/* --- Values --- */

static bool from_source(const struct graph_value *v) {
    return v->kind == GRAPH_INPUT || v->kind == GRAPH_PARAMETER;
}

static const float *value_data(struct reference *r, uint32_t value) {
    struct slot *s = &r->slots[value];
    if (s->shared != NULL) return s->shared;
    if (s->data == NULL) {
        BUG_ON(!from_source(&r->g->values[value]));
        s->data = fetch(r, value, 0, graph_shape_elements(&r->g->values[value].shape));
    }
    return s->data;
}

static void value_drop(struct reference *r, uint32_t value) {
    struct slot *s = &r->slots[value];
    g_free(s->data);
    s->data = NULL;
    s->shared = NULL;
}

static void value_used(struct reference *r, uint32_t value) {
    struct slot *s = &r->slots[value];
    if (--s->uses_left == 0 && !s->keep) value_drop(r, value);
}

static void count_uses(struct reference *r) {
    const struct graph *g = r->g;
    for (uint32_t i = 0; i < g->n_ops; i++)
        for (uint32_t j = 0; j < g->ops[i].n_operands; j++)
            r->slots[g->ops[i].operands[j]].uses_left++;
    for (uint32_t i = 0; i < g->n_outputs; i++) r->slots[g->outputs[i].value].keep = true;
    for (uint32_t i = 0; r->o.keep_all && i < g->n_values; i++)
        r->slots[i].keep = g->values[i].kind == GRAPH_RESULT;
    /* Values of bodies live until their repeat ends: they are made anew every iteration. */
    for (uint32_t b = 1; b < g->n_blocks; b++) {
        const struct graph_block *block = &g->blocks[b];
        for (uint32_t i = 0; i < block->n_arguments; i++) r->slots[block->arguments[i]].keep = true;
        for (uint32_t i = 0; i < block->n_ops; i++)
            for (uint32_t j = 0; j < g->ops[block->ops[i]].n_results; j++)
                r->slots[g->ops[block->ops[i]].results[j]].keep = true;
    }
}

/* --- Operations --- */

static bool embed_check(const struct reference *r, const struct ref_call *c, GError **error) {
    const uint64_t n = graph_shape_elements(c->operand[1].shape);
    for (uint64_t i = 0; i < n; i++) {
        const float v = c->operand[1].data[i];
        if (v >= 0 && v < (float)c->operand[0].shape->dim[0]) continue;
        diag_set(error, REFERENCE_INDEX, c->op->name, (double)v, i, c->operand[0].shape->dim[0]);
        return false;
    }
    (void)r;
    return true;
}

static void call_run(const struct ref_call *c) {
    switch (c->op->kind) {
    case GRAPH_GEMM: ref_gemm(c); break;
    case GRAPH_ADD:
    case GRAPH_MUL: ref_binary(c); break;
    case GRAPH_GELU: ref_gelu(c); break;
    case GRAPH_LAYER_NORM:
    case GRAPH_RMS_NORM: ref_norm(c); break;
    case GRAPH_SOFTMAX: ref_softmax(c); break;
    case GRAPH_ATTENTION: ref_attention(c); break;
    case GRAPH_SPLIT:
    case GRAPH_MERGE: ref_factor(c); break;
    case GRAPH_TRANSPOSE: ref_transpose(c); break;
    case GRAPH_SLICE: ref_slice(c); break;
    case GRAPH_CONCAT: ref_concat(c); break;
    case GRAPH_CAST: ref_cast(c); break;
    case GRAPH_EMBED: ref_embed(c); break;
    default: base_bug(__FILE__, __LINE__, "operation without a reference");
    }
}

static bool op_run(struct reference *r, uint32_t index, GError **error) {
    const struct graph_op *op = &r->g->ops[index];
    struct ref_call c = {.op = op, .n_operands = op->n_operands};
    BUG_ON(op->n_results != 1 || op->n_operands > ARRAY_LEN(c.operand));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        c.operand[i].data = value_data(r, op->operands[i]);
        c.operand[i].shape = &r->g->values[op->operands[i]].shape;
    }
    const uint32_t result = op->results[0];
    c.shape = &r->g->values[result].shape;
    if (r->o.precision != NULL) c.precision = &r->o.precision->ops[index];
    if (op->kind == GRAPH_EMBED && !embed_check(r, &c, error)) return false;
    const uint64_t n = graph_shape_elements(c.shape);
    c.result = g_malloc(n * sizeof(float));
    call_run(&c);
    if (c.precision != NULL) reference_round(c.result, n, c.precision->result);
    value_drop(r, result);
    r->slots[result].data = c.result;
    if (r->o.visit != NULL) r->o.visit(r->o.visit_user, result, r->iteration, c.result);
    return true;
}

static bool block_run(struct reference *r, const struct graph_block *block, bool free_used,
                      GError **error);

/* Sets the iterated arguments to slice i of their operands. */
static void bind_iterated(struct reference *r, const struct graph_op *op,
                          const struct graph_block *body, uint32_t iteration) {
    const uint32_t first = op->repeat.n_carried + op->repeat.n_invariant;
    for (uint32_t j = first; j < op->n_operands; j++) {
        const uint32_t argument = body->arguments[j], operand = op->operands[j];
        const uint64_t n = graph_shape_elements(&r->g->values[argument].shape);
        value_drop(r, argument);
        if (from_source(&r->g->values[operand]) && r->slots[operand].data == NULL)
            r->slots[argument].data = fetch(r, operand, iteration * n, n);
        else
            r->slots[argument].shared = value_data(r, operand) + iteration * n;
    }
}

static float *copy_of(const struct reference *r, uint32_t value, const float *data) {
    return g_memdup2(data, graph_shape_elements(&r->g->values[value].shape) * sizeof(float));
}

static bool repeat_run(struct reference *r, const struct graph_op *op, GError **error) {
    const struct graph_block *body = &r->g->blocks[op->repeat.body];
    const uint32_t n_carried = op->repeat.n_carried;
    for (uint32_t j = 0; j < n_carried; j++)
        r->slots[body->arguments[j]].data =
            copy_of(r, op->operands[j], value_data(r, op->operands[j]));
    for (uint32_t j = n_carried; j < n_carried + op->repeat.n_invariant; j++)
        r->slots[body->arguments[j]].shared = value_data(r, op->operands[j]);
    float **next = g_newa(float *, n_carried + 1);
    for (uint32_t i = 0; i < op->attrs.count; i++) {
        r->iteration = i;
        bind_iterated(r, op, body, i);
        if (!block_run(r, body, false, error)) return false;
        for (uint32_t j = 0; j < n_carried; j++)
            next[j] = copy_of(r, body->yields[j], value_data(r, body->yields[j]));
        for (uint32_t j = 0; j < n_carried; j++) {
            value_drop(r, body->arguments[j]);
            r->slots[body->arguments[j]].data = next[j];
        }
    }
    r->iteration = 0;
    for (uint32_t j = 0; j < n_carried; j++) {
        value_drop(r, op->results[j]);
        r->slots[op->results[j]].data = r->slots[body->arguments[j]].data;
        r->slots[body->arguments[j]].data = NULL;
    }
    for (uint32_t j = 0; j < body->n_arguments; j++) value_drop(r, body->arguments[j]);
    for (uint32_t i = 0; i < body->n_ops; i++)
        for (uint32_t j = 0; j < r->g->ops[body->ops[i]].n_results; j++)
            value_drop(r, r->g->ops[body->ops[i]].results[j]);
    return true;
}

static bool block_run(struct reference *r, const struct graph_block *block, bool free_used,
                      GError **error) {
    for (uint32_t i = 0; i < block->n_ops; i++) {
        const struct graph_op *op = &r->g->ops[block->ops[i]];
        const bool ok = op->kind == GRAPH_REPEAT ? repeat_run(r, op, error)
                                                 : op_run(r, block->ops[i], error);
        if (!ok) return false;
        for (uint32_t j = 0; free_used && j < op->n_operands; j++) value_used(r, op->operands[j]);
    }
    return true;
}

struct reference *reference_run(const struct graph *g, const struct reference_options *o,
                                GError **error) {
    struct reference *r = g_new0(struct reference, 1);
    r->g = g;
    r->o = *o;
    r->slots = g_new0(struct slot, g->n_values);
    count_uses(r);
    if (!block_run(r, &g->blocks[0], true, error)) {
        reference_free(r);
        return NULL;
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) value_data(r, g->outputs[i].value);
    return r;
}

const float *reference_value(const struct reference *r, uint32_t value) {
    const struct slot *s = &r->slots[value];
    return s->shared != NULL ? s->shared : s->data;
}

void reference_free(struct reference *r) {
    if (r == NULL) return;
    for (uint32_t i = 0; i < r->g->n_values; i++) g_free(r->slots[i].data);
    g_free(r->slots);
    g_free(r);
}
