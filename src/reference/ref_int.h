/* Inside the reference room: an operation with its operands as FP32 arrays. */
#ifndef IPU_REF_INT_H
#define IPU_REF_INT_H

#include "reference/reference.h"

struct ref_operand {
    const float *data;
    const struct graph_shape *shape;
};
struct ref_call {
    const struct graph_op *op;
    uint32_t n_operands;
    struct ref_operand operand[8];
    const struct graph_shape *shape; /* of the result */
    float *result;
    const struct reference_op *precision; /* NULL = FP32 */
};

void ref_gemm(const struct ref_call *c);
void ref_attention(const struct ref_call *c);
void ref_binary(const struct ref_call *c); /* ADD, MUL */
void ref_gelu(const struct ref_call *c);
void ref_norm(const struct ref_call *c); /* LAYER_NORM, RMS_NORM */
void ref_softmax(const struct ref_call *c);
void ref_factor(const struct ref_call *c); /* SPLIT, MERGE */
void ref_transpose(const struct ref_call *c);
void ref_slice(const struct ref_call *c);
void ref_concat(const struct ref_call *c);
void ref_cast(const struct ref_call *c);
void ref_embed(const struct ref_call *c);

/* C[m,n] = op(A) op(B), row-major with leading dimensions, blocked under par_for. */
struct ref_product {
    uint32_t m, n, k;
    const float *a, *b;
    float *c;
    uint32_t lda, ldb, ldc;
    bool transpose_a, transpose_b;
    float alpha;
};
void ref_product_run(const struct ref_product *p);
/* The same on the calling thread, for callers that are inside a par_for. */
void ref_product_alone(const struct ref_product *p);

/* Product of the extents of axes [from, to). */
static inline uint64_t ref_extent(const struct graph_shape *s, uint32_t from, uint32_t to) {
    uint64_t n = 1;
    for (uint32_t i = from; i < to; i++) n *= s->dim[i];
    return n;
}

/* Rows 0..n-1 in blocks under par_for. */
typedef void ref_rows_body(const struct ref_call *c, uint64_t first, uint64_t end);
void ref_rows(const struct ref_call *c, uint64_t n, ref_rows_body *body);

#endif
