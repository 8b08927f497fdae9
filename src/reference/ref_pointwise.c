/* Elementwise and row operations in FP32, statistics in binary64. */
#include "reference/ref_int.h"

#include <math.h>
#include <string.h>

struct rows {
    const struct ref_call *call;
    ref_rows_body *body;
    uint64_t n, block;
};

static void rows_block(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct rows *r = context;
    const uint64_t first = (uint64_t)i * r->block;
    r->body(r->call, first, MIN(r->n, first + r->block));
}

void ref_rows(const struct ref_call *c, uint64_t n, ref_rows_body *body) {
    struct rows r = {c, body, n, 0};
    r.block = MAX(1, ceil_div_u64(n, 64));
    par_for((uint32_t)ceil_div_u64(n, r.block), rows_block, &r);
}

/* Index into a broadcast operand of flat element `i` of the result. */
static uint64_t broadcast_index(const struct graph_shape *s, const struct graph_shape *out,
                                uint64_t i) {
    uint64_t index = 0, stride = 1;
    for (uint32_t back = 1; back <= s->n_dims; back++) {
        const uint32_t extent = out->dim[out->n_dims - back], own = s->dim[s->n_dims - back];
        if (own != 1) index += i % extent * stride;
        i /= extent;
        stride *= own;
    }
    return index;
}

/* Runs along the last axis: an operand has it whole, or one element of it. */
static void binary_rows(const struct ref_call *c, uint64_t first, uint64_t end) {
    const bool add = c->op->kind == GRAPH_ADD;
    const uint64_t width = c->shape->n_dims != 0 ? c->shape->dim[c->shape->n_dims - 1] : 1;
    for (uint64_t i = first; i < end;) {
        const uint64_t n = MIN(width - i % width, end - i);
        const float *from[2];
        uint64_t step[2];
        for (uint32_t k = 0; k < 2; k++) {
            const struct graph_shape *s = c->operand[k].shape;
            from[k] = c->operand[k].data + broadcast_index(s, c->shape, i);
            step[k] = s->n_dims != 0 && s->dim[s->n_dims - 1] != 1;
        }
        for (uint64_t j = 0; j < n; j++) {
            const float a = from[0][j * step[0]], b = from[1][j * step[1]];
            c->result[i + j] = add ? a + b : a * b;
        }
        i += n;
    }
}

void ref_binary(const struct ref_call *c) {
    ref_rows(c, graph_shape_elements(c->shape), binary_rows);
}

static void gelu_rows(const struct ref_call *c, uint64_t first, uint64_t end) {
    const float *x = c->operand[0].data;
    if (c->op->attrs.form == GRAPH_GELU_ERF) {
        for (uint64_t i = first; i < end; i++)
            c->result[i] = (float)(0.5 * (double)x[i] * (1 + erf((double)x[i] * M_SQRT1_2)));
        return;
    }
    for (uint64_t i = first; i < end; i++) {
        const float v = x[i];
        c->result[i] = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}

void ref_gelu(const struct ref_call *c) {
    ref_rows(c, graph_shape_elements(c->shape), gelu_rows);
}

static void norm_rows(const struct ref_call *c, uint64_t first, uint64_t end) {
    const uint32_t w = c->shape->dim[c->shape->n_dims - 1];
    const bool layer = c->op->kind == GRAPH_LAYER_NORM;
    const float *scale = c->operand[1].data, *bias = layer ? c->operand[2].data : NULL;
    for (uint64_t r = first; r < end; r++) {
        const float *x = c->operand[0].data + r * w;
        double mean = 0, square = 0;
        if (layer) {
            for (uint32_t i = 0; i < w; i++) mean += (double)x[i];
            mean /= w;
        }
        for (uint32_t i = 0; i < w; i++) square += ((double)x[i] - mean) * ((double)x[i] - mean);
        const double factor = 1 / sqrt(square / w + (double)c->op->attrs.epsilon);
        for (uint32_t i = 0; i < w; i++) {
            const double v = ((double)x[i] - mean) * factor * (double)scale[i];
            c->result[r * w + i] = (float)(v + (layer ? (double)bias[i] : 0));
        }
    }
}

void ref_norm(const struct ref_call *c) {
    ref_rows(c, ref_extent(c->shape, 0, c->shape->n_dims - 1), norm_rows);
}

static void softmax_rows(const struct ref_call *c, uint64_t first, uint64_t end) {
    const uint32_t w = c->shape->dim[c->shape->n_dims - 1];
    for (uint64_t r = first; r < end; r++) {
        const float *x = c->operand[0].data + r * w;
        float *y = c->result + r * w, largest = x[0];
        double sum = 0;
        for (uint32_t i = 1; i < w; i++) largest = MAX(largest, x[i]);
        for (uint32_t i = 0; i < w; i++) sum += (double)(y[i] = expf(x[i] - largest));
        for (uint32_t i = 0; i < w; i++) y[i] = (float)((double)y[i] / sum);
    }
}

void ref_softmax(const struct ref_call *c) {
    ref_rows(c, ref_extent(c->shape, 0, c->shape->n_dims - 1), softmax_rows);
}

void ref_cast(const struct ref_call *c) {
    const uint64_t n = graph_shape_elements(c->shape);
    memcpy(c->result, c->operand[0].data, n * sizeof(float));
    reference_round(c->result, n, (struct reference_format){(uint8_t)c->op->attrs.format,
                                                            (int8_t)c->op->attrs.exponent});
}
