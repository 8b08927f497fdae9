/* Operations that only move elements. */
#include "reference/ref_int.h"

#include <string.h>

/* SPLIT factors axis A = (n, d) and merges n behind axis `into`; MERGE is its inverse. Both walk the
 * split form: for every element of the unsplit tensor the index in the split one. */
static void factor_copy(const struct graph_attrs *a, const struct graph_shape *whole,
                        const float *from, float *to, bool inverse) {
    const uint32_t n = a->count, d = whole->dim[a->axis] / n;
    const uint64_t total = graph_shape_elements(whole);
    uint32_t at[GRAPH_MAX_DIMS] = {0};
    for (uint64_t i = 0; i < total; i++) {
        uint64_t index = 0;
        for (uint32_t x = 0; x < whole->n_dims; x++) {
            uint64_t extent = x == a->axis ? d : whole->dim[x];
            uint64_t pos = x == a->axis ? at[x] % d : at[x];
            if (x == a->into) {
                pos = pos * n + at[a->axis] / d;
                extent *= n;
            }
            index = index * extent + pos;
        }
        if (inverse)
            to[i] = from[index];
        else
            to[index] = from[i];
        for (uint32_t x = whole->n_dims; x-- > 0;) {
            if (++at[x] < whole->dim[x]) break;
            at[x] = 0;
        }
    }
}

void ref_factor(const struct ref_call *c) {
    const bool merge = c->op->kind == GRAPH_MERGE;
    factor_copy(&c->op->attrs, merge ? c->shape : c->operand[0].shape, c->operand[0].data, c->result,
                merge);
}

void ref_transpose(const struct ref_call *c) {
    const struct graph_shape *in = c->operand[0].shape, *out = c->shape;
    uint64_t stride[GRAPH_MAX_DIMS];
    for (uint32_t x = 0; x < out->n_dims; x++)
        stride[x] = ref_extent(in, c->op->attrs.perm[x] + 1, in->n_dims);
    uint32_t at[GRAPH_MAX_DIMS] = {0};
    const uint64_t total = graph_shape_elements(out);
    for (uint64_t i = 0; i < total; i++) {
        uint64_t index = 0;
        for (uint32_t x = 0; x < out->n_dims; x++) index += at[x] * stride[x];
        c->result[i] = c->operand[0].data[index];
        for (uint32_t x = out->n_dims; x-- > 0;) {
            if (++at[x] < out->dim[x]) break;
            at[x] = 0;
        }
    }
}

void ref_slice(const struct ref_call *c) {
    const struct graph_shape *in = c->operand[0].shape;
    const uint32_t axis = c->op->attrs.axis;
    const uint64_t outer = ref_extent(in, 0, axis), inner = ref_extent(in, axis + 1, in->n_dims);
    const uint64_t run = c->op->attrs.width * inner;
    for (uint64_t i = 0; i < outer; i++)
        memcpy(c->result + i * run,
               c->operand[0].data + (i * in->dim[axis] + c->op->attrs.start) * inner,
               run * sizeof(float));
}

void ref_concat(const struct ref_call *c) {
    const uint32_t axis = c->op->attrs.axis;
    const uint64_t outer = ref_extent(c->shape, 0, axis);
    const uint64_t inner = ref_extent(c->shape, axis + 1, c->shape->n_dims);
    uint64_t start = 0;
    for (uint32_t o = 0; o < c->n_operands; o++) {
        const uint64_t run = c->operand[o].shape->dim[axis] * inner;
        for (uint64_t i = 0; i < outer; i++)
            memcpy(c->result + i * c->shape->dim[axis] * inner + start, c->operand[o].data + i * run,
                   run * sizeof(float));
        start += run;
    }
}

void ref_embed(const struct ref_call *c) {
    const struct graph_shape *table = c->operand[0].shape;
    const uint32_t w = table->dim[1];
    const uint64_t n = graph_shape_elements(c->operand[1].shape);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t row = (uint64_t)c->operand[1].data[i];
        BUG_ON(row >= table->dim[0]); /* reference_run refuses such indices before */
        memcpy(c->result + i * w, c->operand[0].data + row * w, w * sizeof(float));
    }
}
