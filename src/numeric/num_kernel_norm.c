/* Twins of the row statistics and normalisations: the order of F32 additions is the kernels'. */
#include "numeric/num_kernel.h"

#include <math.h>
#include <string.h>

static float f32_add(float a, float b) {
    return num_f32_round((double)a + b);
}
static float f32_sub(float a, float b) {
    return num_f32_round((double)a - b);
}
static float f32_mul(float a, float b) {
    return num_f32_round((double)a * b);
}

/* One row: `panels` groups of 16 halves, `step` halves apart. */
struct norm_row {
    const uint16_t *in;
    uint32_t panels;
    size_t step;
};

static float norm_collect(const float lane[8]) {
    float even = f32_add(f32_add(f32_add(lane[0], lane[2]), lane[4]), lane[6]);
    float odd = f32_add(f32_add(f32_add(lane[1], lane[3]), lane[5]), lane[7]);
    return f32_add(even, odd);
}

/* The last `pads` columns are zeros that do not count. */
static void norm_moments_valid(const struct norm_row *r, float inverse_n, uint32_t pads,
                               float *ret_mean, float *ret_variance) {
    float lane[8] = {0};
    for (uint32_t e = 0; e < 16 * r->panels; e++)
        lane[e % 8] = f32_add(lane[e % 8], num_f16_to_f32(r->in[e / 16 * r->step + e % 16]));
    const float mean = f32_mul(norm_collect(lane), inverse_n);
    const uint16_t centre = num_h(mean);
    float square[8] = {0};
    for (uint32_t e = 0; e < 16 * r->panels; e++) {
        const bool valid = e < 16 * r->panels - pads;
        const float d =
            valid ? num_f16_to_f32(num_h_sub(centre, r->in[e / 16 * r->step + e % 16])) : 0;
        square[e % 8] = num_f32_flush(fmaf(d, d, square[e % 8]));
    }
    const float shift = f32_sub(mean, num_f16_to_f32(centre));
    const float variance = f32_sub(f32_mul(norm_collect(square), inverse_n), f32_mul(shift, shift));
    *ret_mean = mean;
    *ret_variance = variance > 0 ? variance : 0;
}

static void norm_moments(const struct norm_row *r, float inverse_n, float *ret_mean,
                         float *ret_variance) {
    norm_moments_valid(r, inverse_n, 0, ret_mean, ret_variance);
}

static const float EPSILON = 1e-6f;

/* variance: with epsilon added. */
static void norm_apply(const struct norm_row *r, float mean, float variance, const uint16_t *gamma,
                       const uint16_t *beta, uint16_t *out) {
    const float inverse = num_f32_round(1 / sqrt((double)variance));
    const float offset = f32_sub(0, f32_mul(mean, inverse));
    for (uint32_t e = 0; e < 16 * r->panels; e++) {
        const size_t at = e / 16 * r->step + e % 16;
        const float v = num_f32_flush(fmaf(inverse, num_f16_to_f32(r->in[at]), offset));
        out[at] = num_h_add(num_h_mul(num_h(v), gamma[e]), beta[e]);
    }
}

/* Six parts of whole panels, combined by their sizes. */
static void norm_moments_split(const struct norm_row *r, float *ret_mean, float *ret_variance) {
    float mean[6], squares[6], size[6];
    for (uint32_t w = 0; w < 6; w++) {
        const uint32_t first = w * r->panels / 6, n = (w + 1) * r->panels / 6 - first;
        const struct norm_row part = {r->in + first * r->step, n, r->step};
        size[w] = (float)(16 * n);
        norm_moments(&part, num_f32_round(1 / (double)size[w]), &mean[w], &squares[w]);
        squares[w] = f32_mul(squares[w], size[w]);
    }
    const float inverse_n = num_f32_round(1 / (double)(float)(16 * r->panels));
    float m = 0, q = 0;
    for (uint32_t w = 0; w < 6; w++) m = f32_add(m, f32_mul(mean[w], size[w]));
    m = f32_mul(m, inverse_n);
    for (uint32_t w = 0; w < 6; w++) {
        const float d = f32_sub(mean[w], m);
        q = f32_add(q, f32_add(f32_mul(f32_mul(d, d), size[w]), squares[w]));
    }
    *ret_mean = m;
    *ret_variance = f32_mul(q, inverse_n);
}

void num_kernel_norm_f16(const uint32_t *p, void *const *op) {
    const uint32_t rows = p[0], panels = p[1] / 16;
    for (uint32_t i = 0; i < rows; i++) {
        const size_t at = (size_t)i * (p[2] ? 16 : p[1]);
        const struct norm_row r = {(const uint16_t *)op[1] + at, panels,
                                   p[2] ? 16 * (size_t)rows : 16};
        float mean, variance;
        if (rows < 4 && panels >= 6) norm_moments_split(&r, &mean, &variance);
        else norm_moments(&r, num_f32_round(1 / (double)(float)(16 * panels)), &mean, &variance);
        norm_apply(&r, mean, f32_add(variance, EPSILON), op[2], op[3], (uint16_t *)op[0] + at);
    }
}

void num_kernel_add_norm_f16(const uint32_t *p, void *const *op) {
    uint16_t *sum = op[1];
    const uint16_t *left = op[2], *right = op[3];
    const size_t n = (size_t)p[0] * p[1];
    for (size_t e = 0; e < n; e++) sum[e] = num_h_add(left[e], right[e]);
    num_kernel_norm_f16(p, (void *const[]){op[0], sum, op[4], op[5]});
}

void num_kernel_moments_f16(const uint32_t *p, void *const *op) {
    const uint32_t rows = p[0], panels = p[1] / 16, segments = p[3], part = panels / segments;
    float *out = op[0];
    const size_t step = p[2] ? 16 * (size_t)rows : 16;
    for (uint32_t s = 0; s < segments; s++)
        for (uint32_t i = 0; i < rows; i++) {
            const uint16_t *in = (const uint16_t *)op[1] + (size_t)i * (p[2] ? 16 : p[1]);
            const struct norm_row r = {in + s * part * step, part, step};
            float *m = &out[2 * ((size_t)s * rows + i)];
            norm_moments(&r, num_f32_round(1 / (double)(float)(16 * part)), &m[0], &m[1]);
        }
}

void num_kernel_add_moments_f16(const uint32_t *p, void *const *op) {
    uint16_t *sum = op[0];
    const uint16_t *left = op[2], *right = op[3];
    const size_t n = (size_t)p[0] * p[1];
    for (size_t e = 0; e < n; e++) sum[e] = num_h_add(left[e], right[e]);
    num_kernel_moments_f16(p, (void *const[]){op[1], sum});
}

/* x times a factor of its row, then gamma. */
static void rms_apply(const struct norm_row *r, float factor, const uint16_t *gamma, uint16_t *out) {
    for (uint32_t e = 0; e < 16 * r->panels; e++) {
        const size_t at = e / 16 * r->step + e % 16;
        out[at] = num_h_mul(num_h(f32_mul(factor, num_f16_to_f32(r->in[at]))), gamma[e]);
    }
}

static void apply_rms(const uint32_t *p, void *const *op) {
    const uint32_t rows = p[0], parts = p[3];
    const float *moments = op[2], inverse_parts = num_f32_round(1 / (double)(float)parts);
    for (uint32_t i = 0; i < rows; i++) {
        float square = 0;
        for (uint32_t k = 0; k < parts; k++) {
            const float *m = &moments[2 * (k * rows + i)];
            square = f32_add(square, f32_add(m[1], f32_mul(m[0], m[0])));
        }
        square = f32_mul(square, inverse_parts);
        const size_t at = (size_t)i * (p[2] ? 16 : p[1]);
        const struct norm_row r = {(const uint16_t *)op[1] + at, p[1] / 16,
                                   p[2] ? 16 * (size_t)rows : 16};
        rms_apply(&r, num_f32_round(1 / sqrt((double)f32_add(square, EPSILON))), op[3],
                  (uint16_t *)op[0] + at);
    }
}

void num_kernel_apply_moments_f16(const uint32_t *p, void *const *op) {
    if (p[4]) {
        apply_rms(p, op);
        return;
    }
    const uint32_t rows = p[0], parts = p[3];
    const float *moments = op[2], inverse_parts = num_f32_round(1 / (double)(float)parts);
    for (uint32_t i = 0; i < rows; i++) {
        float mean = 0, variance = 0;
        for (uint32_t k = 0; k < parts; k++) mean = f32_add(mean, moments[2 * (k * rows + i)]);
        mean = f32_mul(mean, inverse_parts);
        for (uint32_t k = 0; k < parts; k++) {
            const float d = f32_sub(moments[2 * (k * rows + i)], mean);
            variance = f32_add(variance, f32_add(moments[2 * (k * rows + i) + 1], f32_mul(d, d)));
        }
        variance = f32_mul(variance, inverse_parts);
        const size_t at = (size_t)i * (p[2] ? 16 : p[1]);
        const struct norm_row r = {(const uint16_t *)op[1] + at, p[1] / 16,
                                   p[2] ? 16 * (size_t)rows : 16};
        norm_apply(&r, mean, f32_add(variance, EPSILON), op[3], op[4], (uint16_t *)op[0] + at);
    }
}

struct rms {
    uint32_t rows, n, valid;
    size_t row, step; /* halves from row to row, from panel to panel */
    float epsilon;
};

static void rms_rows(const struct rms *x, void *const *op) {
    const uint32_t n = x->n;
    const size_t step = x->step;
    for (uint32_t i = 0; i < x->rows; i++) {
        const uint16_t *in = (const uint16_t *)op[1] + i * x->row;
        uint16_t *out = (uint16_t *)op[0] + i * x->row;
        float lane[8] = {0};
        for (uint32_t e = 0; e < n; e++) {
            const float v = num_f16_to_f32(in[e / 16 * step + e % 16]);
            lane[e % 8] = num_f32_flush(fmaf(v, v, lane[e % 8]));
        }
        const float mean = f32_mul(norm_collect(lane), num_f32_round(1 / (double)(float)x->valid));
        const float inverse = num_f32_round(1 / sqrt((double)f32_add(mean, x->epsilon)));
        const struct norm_row r = {in, n / 16, step};
        rms_apply(&r, inverse, op[2], out);
    }
}

void num_kernel_rms_f16(const uint32_t *p, void *const *op) {
    const struct rms x = {p[0], p[1], p[1], p[2] ? 16 : p[1], p[2] ? 16 * (size_t)p[0] : 16, EPSILON};
    rms_rows(&x, op);
}

static float float_of(uint32_t upper) {
    const uint32_t bits = upper << 12;
    float v;
    memcpy(&v, &bits, 4);
    return v;
}

void num_kernel_rms_valid_f16(const uint32_t *p, void *const *op) {
    const struct rms x = {p[0], p[1], p[2], 16, 16 * (size_t)p[0], float_of(p[3])};
    rms_rows(&x, op);
}

void num_kernel_norm_valid_f16(const uint32_t *p, void *const *op) {
    const uint32_t rows = p[0], panels = p[1] / 16;
    for (uint32_t i = 0; i < rows; i++) {
        const struct norm_row r = {(const uint16_t *)op[1] + 16 * i, panels, 16 * (size_t)rows};
        float mean, variance;
        norm_moments_valid(&r, num_f32_round(1 / (double)(float)p[2]), p[1] - p[2], &mean, &variance);
        norm_apply(&r, mean, f32_add(variance, float_of(p[3])), op[2], op[3],
                   (uint16_t *)op[0] + 16 * i);
    }
}
