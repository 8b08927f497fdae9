/* gemm with broadcast leading axes, and attention: operands rounded to their formats, then products. */
#include "reference/ref_int.h"

#include <math.h>
#include <string.h>

/* A copy of the operand rounded to its format, or the operand itself when nothing changes. */
static const float *rounded(const struct ref_operand *o, const struct reference_format *format,
                            float **ret_copy) {
    *ret_copy = NULL;
    /* Stored values are F16 already; a second rounding to F16 would change nothing. */
    if (format == NULL || format->format == GRAPH_F16 || format->format == GRAPH_F32) return o->data;
    const uint64_t n = graph_shape_elements(o->shape);
    *ret_copy = g_malloc(n * sizeof(float));
    memcpy(*ret_copy, o->data, n * sizeof(float));
    reference_round(*ret_copy, n, *format);
    return *ret_copy;
}

/* Matrix number of a batched operand for output batch index `i` (broadcast leading axes). */
static uint64_t batch_of(const struct graph_shape *s, const struct graph_shape *out, uint64_t i) {
    uint64_t index = 0, stride = 1;
    for (uint32_t back = 3; back <= out->n_dims; back++) {
        const uint32_t extent = out->dim[out->n_dims - back];
        const uint64_t at = i % extent;
        i /= extent;
        if (back > s->n_dims) continue;
        const uint32_t own = s->dim[s->n_dims - back];
        if (own != 1) index += at * stride;
        stride *= own;
    }
    return index;
}

void ref_gemm(const struct ref_call *c) {
    const struct graph_shape *ls = c->operand[0].shape, *rs = c->operand[1].shape;
    const bool ta = c->op->attrs.transpose_left, tb = c->op->attrs.transpose_right;
    const uint32_t lr = ls->dim[ls->n_dims - 2], lc = ls->dim[ls->n_dims - 1];
    const uint32_t rr = rs->dim[rs->n_dims - 2], rc = rs->dim[rs->n_dims - 1];
    const uint32_t m = ta ? lc : lr, k = ta ? lr : lc, n = tb ? rr : rc;
    float *left_copy, *right_copy;
    const float *left = rounded(&c->operand[0], c->precision ? &c->precision->operand[0] : NULL,
                                &left_copy);
    const float *right = rounded(&c->operand[1], c->precision ? &c->precision->operand[1] : NULL,
                                 &right_copy);
    struct ref_product p = {.m = m, .n = n, .k = k, .lda = lc, .ldb = rc, .ldc = n,
                            .transpose_a = ta, .transpose_b = tb, .alpha = 1};
    uint64_t batches = ref_extent(c->shape, 0, c->shape->n_dims - 2);
    if (ref_extent(rs, 0, rs->n_dims - 2) == 1 && !ta) {
        /* One right matrix: all batches are rows of one product. */
        p.m = (uint32_t)(m * batches);
        batches = 1;
    }
    for (uint64_t i = 0; i < batches; i++) {
        p.a = left + (batches == 1 ? 0 : batch_of(ls, c->shape, i) * lr * lc);
        p.b = right + (batches == 1 ? 0 : batch_of(rs, c->shape, i) * rr * rc);
        p.c = c->result + i * m * n;
        ref_product_run(&p);
    }
    g_free(left_copy);
    g_free(right_copy);
}

struct attention {
    const struct ref_call *call;
    const float *q, *k, *v;
    uint32_t s, t, d, e; /* queries, keys, widths of q/k and of v */
    float scale;
    bool causal;
};

/* exp(scale * (score - max)) in place, rounded to the probability format; returns the sum. */
static float row_exponentials(const struct attention *a, float *row, uint32_t query) {
    const uint32_t n = a->causal ? MIN(a->t, query + 1 + (a->t > a->s ? a->t - a->s : 0)) : a->t;
    float largest = row[0];
    for (uint32_t i = 1; i < n; i++) largest = MAX(largest, row[i]);
    for (uint32_t i = 0; i < n; i++) row[i] = expf(a->scale * (row[i] - largest));
    memset(row + n, 0, (a->t - n) * sizeof *row);
    if (a->call->precision != NULL) {
        const struct reference_format f = a->call->precision->probability;
        reference_round(row, n, f);
    }
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) sum += (double)row[i];
    return (float)sum;
}

static void attention_head(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct attention *a = context;
    const float *q = a->q + (size_t)i * a->s * a->d, *k = a->k + (size_t)i * a->t * a->d;
    const float *v = a->v + (size_t)i * a->t * a->e;
    float *out = a->call->result + (size_t)i * a->s * a->e;
    float *scores = g_malloc((size_t)a->s * a->t * sizeof(float));
    float *sums = g_malloc((size_t)a->s * sizeof(float));
    ref_product_alone(&(struct ref_product){.m = a->s, .n = a->t, .k = a->d, .a = q, .b = k,
                                            .c = scores, .lda = a->d, .ldb = a->d, .ldc = a->t,
                                            .transpose_b = true, .alpha = 1});
    for (uint32_t r = 0; r < a->s; r++) sums[r] = row_exponentials(a, scores + (size_t)r * a->t, r);
    ref_product_alone(&(struct ref_product){.m = a->s, .n = a->e, .k = a->t, .a = scores, .b = v,
                                            .c = out, .lda = a->t, .ldb = a->e, .ldc = a->e,
                                            .alpha = 1});
    for (uint32_t r = 0; r < a->s; r++)
        for (uint32_t j = 0; j < a->e; j++) out[(size_t)r * a->e + j] /= sums[r];
    g_free(scores);
    g_free(sums);
}

void ref_attention(const struct ref_call *c) {
    const struct graph_shape *qs = c->operand[0].shape, *ks = c->operand[1].shape;
    const struct graph_shape *vs = c->operand[2].shape;
    float *copy[3];
    const float *data[3];
    for (uint32_t i = 0; i < 3; i++)
        data[i] = rounded(&c->operand[i], c->precision ? &c->precision->operand[i] : NULL, &copy[i]);
    struct attention a = {.call = c, .q = data[0], .k = data[1], .v = data[2]};
    a.s = qs->dim[qs->n_dims - 2];
    a.d = qs->dim[qs->n_dims - 1];
    a.t = ks->dim[ks->n_dims - 2];
    a.e = vs->dim[vs->n_dims - 1];
    a.causal = c->op->attrs.causal != 0;
    a.scale = c->op->attrs.scale != 0 ? c->op->attrs.scale : 1.0f / sqrtf((float)a.d);
    par_for((uint32_t)ref_extent(qs, 0, qs->n_dims - 2), attention_head, &a);
    for (uint32_t i = 0; i < 3; i++) g_free(copy[i]);
}
