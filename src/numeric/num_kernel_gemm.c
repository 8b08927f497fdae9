/* Twin of the products: per K group the F32 accumulator starts at the stored half (or zero), takes
 * four sums of four (F8: eight) exact products, and is rounded to half (isa 4.7, model A). */
#include "numeric/num_kernel.h"

#include <math.h>

struct gemm {
    uint16_t *out;
    const uint8_t *left, *right; /* 32-byte rows; 512-byte panels */
    uint32_t rows, groups, columns;
    bool accumulate, f8;
    double scale; /* 2^(sum of exponents) */
    enum num_f8_format left_format, right_format;
};

/* The four values that one call multiplies: sums in binary64, as the unit is modelled. */
static double gemm_dot(const struct gemm *g, const uint8_t *x, const uint8_t *w) {
    double p[8];
    if (!g->f8) {
        const uint16_t *xh = (const uint16_t *)(const void *)x;
        const uint16_t *wh = (const uint16_t *)(const void *)w;
        for (uint32_t i = 0; i < 4; i++)
            p[i] = (double)num_f16_to_f32(xh[i]) * num_f16_to_f32(wh[i]);
        return (p[0] + p[1]) + (p[2] + p[3]);
    }
    for (uint32_t i = 0; i < 8; i++)
        p[i] = num_f8_to_f64(x[i], g->left_format, 0) * num_f8_to_f64(w[i], g->right_format, 0);
    return (((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]))) * g->scale;
}

static uint16_t gemm_element(const struct gemm *g, uint32_t row, uint32_t column, uint16_t old) {
    uint16_t h = old;
    for (uint32_t k = 0; k < g->groups; k++) {
        const uint8_t *x = g->left + ((size_t)k * g->rows + row) * 32;
        const uint8_t *w =
            g->right + ((size_t)(column / 16) * g->groups + k) * 512 + column % 16 * 32;
        float acc = k == 0 && !g->accumulate ? 0.0f : num_f16_to_f32(h);
        for (uint32_t phase = 0; phase < 4; phase++)
            acc = num_f32_round((double)acc + gemm_dot(g, x + 8 * phase, w + 8 * phase));
        h = num_h(acc);
    }
    return h;
}

static void gemm_run_one(const struct gemm *g) {
    for (uint32_t j = 0; j < g->columns; j++)
        for (uint32_t r = 0; r < g->rows; r++)
            for (uint32_t c = 0; c < 16; c++) {
                uint16_t *o = &g->out[((size_t)j * g->rows + r) * 16 + c];
                *o = gemm_element(g, r, 16 * j + c, g->accumulate ? *o : 0);
            }
}

/* A batch: matrices one behind the other in every operand. */
static void gemm_run(struct gemm g, uint32_t batch) {
    for (uint32_t b = 0; b < MAX(batch, 1); b++) {
        gemm_run_one(&g);
        g.out += (size_t)g.rows * g.columns * 16;
        g.left += (size_t)g.rows * g.groups * 32;
        g.right += (size_t)g.columns * g.groups * 512;
    }
}

void num_kernel_gemm_f16(const uint32_t *p, void *const *op) {
    const struct gemm g = {.out = op[0],
                           .left = op[1],
                           .right = op[2],
                           .rows = p[0],
                           .groups = p[1] / 16,
                           .columns = p[2] / 16,
                           .accumulate = p[3] != 0};
    gemm_run(g, p[5]);
}

void num_kernel_gemm_f8(const uint32_t *p, void *const *op) {
    const struct gemm g = {.out = op[0],
                           .left = op[1],
                           .right = op[2],
                           .rows = p[0],
                           .groups = p[1] / 32,
                           .columns = p[2] / 16,
                           .accumulate = p[3] != 0,
                           .f8 = true,
                           .scale = ldexp(1, (int32_t)p[5]),
                           .left_format = p[6] & 2 ? NUM_F152 : NUM_F143,
                           .right_format = p[6] & 1 ? NUM_F152 : NUM_F143};
    gemm_run(g, p[7]);
}

/* 16 rows x 16 columns of the result stand together. */
void num_kernel_gemm_packed(const uint32_t *p, void *const *op) {
    const struct gemm g = {
        .left = op[1], .right = op[2], .rows = p[0], .groups = p[1] / 16, .columns = p[2] / 16};
    for (uint32_t r = 0; r < p[0]; r++)
        for (uint32_t c = 0; c < p[2]; c++)
            ((uint16_t *)op[0])[r / 16 * 16 * p[3] + c / 16 * 256 + r % 16 * 16 + c % 16] =
                gemm_element(&g, r, c, 0);
}

/* F32 results in panels of 8 columns, coefficients in panels of 16 x 8; never rounded to half. */
void num_kernel_gemm_f16_f32(const uint32_t *p, void *const *op) {
    const struct gemm g = {
        .left = op[1], .right = op[2], .rows = p[0], .groups = p[1] / 16, .columns = p[2] / 8};
    float *out = op[0];
    const uint32_t n = g.rows * p[2];
    for (uint32_t e = 0; e < n * MAX(p[5], 1); e++) {
        const uint32_t b = e / n, j = e % n / 8 / g.rows, r = e / 8 % g.rows, c = e % 8;
        float acc = p[3] ? num_f32_flush(out[e]) : 0;
        for (uint32_t k = 0; k < g.groups; k++) {
            const uint8_t *x = g.left + (((size_t)b * g.groups + k) * g.rows + r) * 32;
            const uint8_t *w =
                g.right + (((size_t)b * g.columns + j) * g.groups + k) * 256 + c * 32;
            for (uint32_t phase = 0; phase < 4; phase++)
                acc = num_f32_round((double)acc + gemm_dot(&g, x + 8 * phase, w + 8 * phase));
        }
        out[e] = acc;
    }
}

/* A8 rows of 8 floats, panels of 8 x 16 floats, out [columns / 16][rows][16]; one rounding per
 * product. */
void num_kernel_gemm_f32(const uint32_t *p, void *const *op) {
    const uint32_t rows = p[0], groups = p[1] / 8, columns = p[2];
    float *out = op[0];
    const float *left = op[1], *right = op[2];
    for (uint32_t b = 0; b < MAX(p[5], 1); b++) {
        for (uint32_t e = 0; e < rows * columns; e++) {
            const uint32_t j = e / 16 / rows, r = e / 16 % rows, c = e % 16;
            float acc = p[3] ? num_f32_flush(out[e]) : 0;
            for (uint32_t k = 0; k < p[1]; k++) {
                const double x = num_f32_flush(left[((size_t)(k / 8) * rows + r) * 8 + k % 8]);
                const double w =
                    num_f32_flush(right[((size_t)j * groups + k / 8) * 128 + c * 8 + k % 8]);
                acc = num_f32_round((double)acc + x * w);
            }
            out[e] = acc;
        }
        out += (size_t)rows * columns;
        left += (size_t)rows * p[1];
        right += (size_t)columns * p[1];
    }
}
