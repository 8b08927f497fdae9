/* Twins of row maxima, exponentials and the normalisation of products. A16 panels: element (r, c)
 * of R rows at ((c / 16) * R + r) * 16 + c % 16; A32 panels likewise with 32. */
#include "numeric/num_kernel.h"

#include <math.h>

static size_t at16(uint32_t rows, uint32_t r, uint32_t c) {
    return ((size_t)(c / 16) * rows + r) * 16 + c % 16;
}
static size_t at32(uint32_t rows, uint32_t r, uint32_t c) {
    return ((size_t)(c / 32) * rows + r) * 32 + c % 32;
}

/* Where results go: A16 panels of halves, or A32 panels of F143 (f8 1) or F152 (2). */
struct panels {
    void *out;
    uint32_t rows;
    uint32_t f8;
    int32_t exponent;
};

static void panels_store(const struct panels *o, uint32_t r, uint32_t c, uint16_t h) {
    if (o->f8)
        ((uint8_t *)o->out)[at32(o->rows, r, c)] =
            num_f8_from_f32(num_f16_to_f32(h), o->f8 == 1 ? NUM_F143 : NUM_F152, o->exponent);
    else ((uint16_t *)o->out)[at16(o->rows, r, c)] = h;
}

/* Keys of row r: the valid ones, or with a causal call those up to r + offset. */
static uint32_t keys_of(uint32_t r, uint32_t valid, uint32_t causal, int32_t offset) {
    const int32_t seen = (int32_t)r + offset;
    if (!causal || seen >= (int32_t)valid) return valid;
    return seen > 0 ? (uint32_t)seen : 0;
}

void num_kernel_row_max(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *in = op[1];
    for (uint32_t r = 0; r < p[0]; r++) {
        uint16_t best = 0xfbff;
        const uint32_t keys = keys_of(r, p[2], p[3], (int32_t)p[4]);
        for (uint32_t c = 0; c < keys; c++) best = num_h_max(best, in[at16(p[0], r, c)]);
        out[2 * r] = out[2 * r + 1] = best;
    }
}

void num_kernel_exp_panels(const uint32_t *p, void *const *op) {
    const struct panels o = {op[0], p[0], p[4], (int32_t)p[5]};
    const uint16_t *in = op[1], *maxima = op[2];
    const double scale = num_f16_to_f32((uint16_t)p[3]);
    for (uint32_t r = 0; r < p[0]; r++) {
        const uint32_t keys = keys_of(r, p[2], p[6], (int32_t)p[7]);
        for (uint32_t c = 0; c < p[1]; c++) {
            uint16_t h = 0;
            if (c < keys) {
                const double v = scale * num_f16_to_f32(in[at16(p[0], r, c)]) -
                                 scale * num_f16_to_f32(maxima[2 * r]);
                h = num_h(num_f32_round(v));
                h = num_h(exp(num_f16_to_f32(h)));
            }
            panels_store(&o, r, c, h);
        }
    }
}

/* A number wins over NaN, plus zero over minus zero. */
static float f32_max(float a, float b) {
    if (isnan(a) || isnan(b)) return isnan(a) ? b : a;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

/* What the row is multiplied by: 1 / divisor, or a part's share of the whole row. */
static float normalise_factor(const uint32_t *p, uint32_t r, const uint16_t *in,
                              const float *statistics) {
    const size_t step = 2 * (size_t)p[0];
    if (!p[6]) {
        const float divisor = p[5] ? statistics[p[0] + r] : num_f16_to_f32(in[at16(p[0], r, p[2])]);
        return num_f32_round(1 / (double)divisor);
    }
    float max = statistics[r], sum = 0;
    for (uint32_t k = 1; k < p[6]; k++) max = f32_max(max, statistics[k * step + r]);
    for (uint32_t k = 0; k < p[6]; k++) {
        const float *s = statistics + k * step + r;
        const float weight = num_f32_round(exp(num_f32_round((double)s[0] - max)));
        sum = num_f32_round((double)sum + num_f32_round((double)weight * s[p[0]]));
    }
    const float own = num_f32_round(exp(num_f32_round((double)statistics[p[7] * step + r] - max)));
    return num_f32_round((double)own * num_f32_round(1 / (double)sum));
}

void num_kernel_normalise_panels(const uint32_t *p, void *const *op) {
    const struct panels o = {op[0], p[0], p[3], (int32_t)p[4]};
    const uint16_t *in = op[1];
    for (uint32_t r = 0; r < p[0]; r++) {
        const float factor = normalise_factor(p, r, in, p[5] ? op[2] : NULL);
        const uint16_t high = num_h(factor);
        const uint16_t low = num_h(num_f32_round((double)factor - num_f16_to_f32(high)));
        for (uint32_t c = 0; c < p[1]; c++) {
            const double x = num_f16_to_f32(in[at16(p[0], r, c)]);
            const double v = x * num_f16_to_f32(high) + x * num_f16_to_f32(low);
            panels_store(&o, r, c, num_h(num_f32_round(0 + v)));
        }
    }
}

/* Sum of lanes as the kernels collect the eight accumulators. */
static float collect(const float lane[8]) {
    float sum[2];
    for (uint32_t k = 0; k < 2; k++) {
        sum[k] = num_f32_round((double)lane[k] + lane[2 + k]);
        sum[k] = num_f32_round((double)sum[k] + lane[4 + k]);
        sum[k] = num_f32_round((double)sum[k] + lane[6 + k]);
    }
    return num_f32_round((double)sum[0] + sum[1]);
}

/* The worker that sums column c: parts of whole panels where six workers share a row. */
static uint32_t softmax_part(const uint32_t *p, uint32_t c) {
    const uint32_t full = p[2] / 16;
    if (p[4] || p[0] > 3 || full < 12) return 0;
    uint32_t w = 0;
    while (w < 5 && c / 16 >= (w + 1) * full / 6) w++;
    return w;
}

static void softmax_row(const uint32_t *p, uint32_t r, const uint16_t *in, uint16_t *out,
                        float *ret_max, float *ret_sum) {
    const uint16_t minus_scale = (uint16_t)(p[3] ^ 0x8000);
    const uint32_t keys = keys_of(r, p[2], p[4], (int32_t)p[4]);
    uint16_t best = 0xfbff;
    for (uint32_t c = 0; c < keys; c++) best = num_h_max(best, in[at16(p[0], r, c)]);
    float lanes[6][8] = {{0}};
    for (uint32_t c = 0; c < p[1]; c++) {
        float *lane = lanes[softmax_part(p, c)];
        uint16_t e = 0;
        if (c < keys) {
            e = num_h_mul(minus_scale, num_h_sub(best, in[at16(p[0], r, c)]));
            e = num_h(exp(num_f16_to_f32(e)));
            /* the ragged panel is summed quad by quad in the lanes 0..3 */
            const uint32_t k = c < keys / 16 * 16 ? c % 8 : c % 4;
            lane[k] = num_f32_round((double)lane[k] + num_f16_to_f32(e));
        }
        out[at16(p[0], r, c)] = e;
    }
    *ret_max = num_f32_round(
        0 - (double)num_f32_round((double)num_f16_to_f32(best) * num_f16_to_f32(minus_scale)));
    *ret_sum = collect(lanes[0]);
    for (uint32_t w = 1; w < 6; w++) *ret_sum = num_f32_round((double)*ret_sum + collect(lanes[w]));
}

void num_kernel_softmax_f16(const uint32_t *p, void *const *op) {
    float *statistics = op[1];
    for (uint32_t r = 0; r < p[0]; r++)
        softmax_row(p, r, op[2], op[0], &statistics[r], &statistics[p[0] + r]);
}

/* --- Merge of a block of keys into the state of streaming attention. --- */

struct merge_row {
    float max, a, b, sum; /* weights of the state and of the block, sum of the state's exponentials */
};

static struct merge_row merge_weigh(const uint32_t *p, uint32_t r, const float *state,
                                    const uint16_t *values, const void *statistics) {
    const bool maxima = p[4] != 0, last = p[3] != 0;
    const float *scaled = statistics;
    float max = maxima ? num_f32_round((double)num_f16_to_f32(((const uint16_t *)statistics)[2 * r]) *
                                       num_f16_to_f32((uint16_t)p[5]))
                       : scaled[r];
    float sum = maxima ? (last ? num_f16_to_f32(values[at16(p[0], r, p[6])]) : 0) : scaled[p[0] + r];
    struct merge_row w = {.max = max, .a = 0, .b = 1, .sum = sum};
    if (p[2]) return w;
    const float old_sum = maxima && last ? state[4 + p[6]] : state[1];
    w.max = f32_max(num_f32_flush(state[0]), max);
    w.a = num_f32_round(exp(num_f32_round((double)state[0] - w.max)));
    w.b = num_f32_round(exp(num_f32_round((double)max - w.max)));
    const float kept = num_f32_round((double)w.a * old_sum);
    w.sum = num_f32_round((double)kept + num_f32_round((double)w.b * sum));
    if (maxima && !last) w.sum = 0;
    return w;
}

void num_kernel_merge_panels(const uint32_t *p, void *const *op) {
    const bool first = p[2] != 0, last = p[3] != 0;
    uint16_t *out = op[0];
    float *states = op[last];
    const uint16_t *values = op[last + 1];
    for (uint32_t r = 0; r < p[0]; r++) {
        float *state = states + (size_t)r * (4 + p[1]);
        struct merge_row w = merge_weigh(p, r, state, values, op[last + 2]);
        if (last) {
            const float inverse = num_f32_round(1 / (double)w.sum);
            w.a = num_f32_round((double)w.a * inverse);
            w.b = num_f32_round((double)w.b * inverse);
        }
        for (uint32_t c = 0; c < p[1]; c++) {
            const float x = num_f16_to_f32(values[at16(p[0], r, c)]);
            float v = x;
            if (!first)
                v = num_f32_flush(fmaf(w.b, x, num_f32_round((double)w.a * state[4 + c])));
            if (last) out[at16(p[0], r, c)] = num_h(v);
            else state[4 + c] = v;
        }
        if (last) continue;
        state[0] = w.max;
        state[1] = w.sum;
        state[2] = state[3] = 0;
    }
}
