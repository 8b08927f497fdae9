/* Streaming attention: every tile owns rows and takes the keys block by block: a block's keys and
 * values arrive, its scores, maxima, exponentials and weighted values are made, and these are
 * merged into a state of F32 (largest score so far, denominator, weighted sum). No more than a
 * block of keys, scores and values is on a tile at a time. The last merge divides. */
#include "plan/plan_attention.h"

enum { STATE_HEADER = 4 }; /* floats before the values of a row: kernels, MERGE_PANELS */

static uint32_t merge(const struct attention *a, uint32_t state, uint32_t weighted, uint32_t maxima,
                      bool last) {
    struct program_value v =
        attention_value(a, "state", a->rows, STATE_HEADER + align_up_u32(a->out + 1, 16),
                        build_layout(PROGRAM_F32, PROGRAM_ROW_MAJOR, PROGRAM_ANY), a->pv);
    if (last) {
        v = attention_value(a, "", a->rows, a->out,
                            build_layout(PROGRAM_F16, PROGRAM_AMP_BATCHED, PROGRAM_INTERLEAVED),
                            a->pv);
        v.name = a->op->name;
    }
    attention_by_rows(&v, a->pv);
    struct program_op op = {.compute = PROGRAM_KERNEL,
                            .kernel = PROGRAM_KERNEL_MERGE,
                            .n_inputs = 2,
                            .inputs = {weighted, maxima},
                            .real = a->scale};
    if (state != PROGRAM_NONE) {
        op.n_inputs = 3;
        op.inputs[0] = state;
        op.inputs[1] = weighted;
        op.inputs[2] = maxima;
    }
    return attention_compute(a, op, &v);
}

uint32_t attention_stream(const struct attention *a, uint32_t *ret_bias) {
    uint32_t queries = attention_queries(a), state = PROGRAM_NONE;
    const uint32_t bias = attention_bias(a);
    for (uint32_t first = 0; first < a->keys; first += a->block) {
        const struct attention_keys range = {first, MIN(a->block, a->keys - first)};
        const uint32_t k = attention_keys(a, range), v = attention_values(a, range);
        if (first == 0) queries = attention_keep_own(a, queries);
        const uint32_t scores = attention_scores(a, queries, k, range.n);
        const uint32_t maxima = attention_maxima(a, scores);
        const uint32_t p = attention_exponentials(a, scores, maxima);
        state = merge(a, state, attention_weighted(a, p, v), maxima, first + range.n == a->keys);
    }
    *ret_bias = bias;
    return state;
}
