/* Twins of element-wise kernels and sums of partials. */
#include "numeric/num_kernel.h"

#include <math.h>

void num_kernel_reduce_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *seed = op[1], *remotes = op[2];
    const size_t stride = p[3] ? p[3] / 2 : p[1];
    for (uint32_t e = 0; e < p[1]; e++) {
        float acc = num_f32_round(0 + (double)num_f16_to_f32(seed[e]));
        for (uint32_t i = 0; i + 1 < p[0]; i++)
            acc = num_f32_round((double)acc + num_f16_to_f32(remotes[i * stride + e]));
        out[e] = num_h(acc);
    }
}

/* x * (1 + tanh) with a clamped polynomial: twice GELU, as sums to F8 have it. */
uint16_t num_kernel_gelu_twice(bool erf, uint16_t x) {
    const double a = num_f16_to_f32(erf ? 0x3a66 : 0x3a62), ab = num_f16_to_f32(erf ? 0x2875 : 0x2891);
    const float xf = num_f16_to_f32(x);
    const uint16_t c = num_h(xf < -8 ? -8 : xf > 8 ? 8 : xf);
    const uint16_t cube = num_h_mul(num_h_mul(c, c), c);
    const double poly = ab * num_f16_to_f32(cube) + a * num_f16_to_f32(c);
    const uint16_t t = num_h(tanh(num_f16_to_f32(num_h(num_f32_round(poly)))));
    return num_h_mul(num_h_add(0x3c00, t), x);
}

/* --- Sums with an epilogue, in panels: bits as enum kernel_epilogue. --- */

enum { EPI_RESIDUAL = 1, EPI_BIAS = 2, EPI_GELU = 4, EPI_F8 = 8, EPI_ERF = 32, EPI_F152 = 64 };

static uint8_t cast_f8(uint16_t h, int32_t scale) {
    return num_f8_from_f32(num_f16_to_f32(h), NUM_F143, scale);
}

void num_kernel_reduce_panels(const uint32_t *p, void *const *op) {
    const uint32_t partials = p[0], rows = p[1], epilogue = p[3];
    const size_t n = (size_t)rows * p[2];
    uint32_t next = 2;
    const uint16_t *seed = op[1];
    const uint16_t *remotes = partials > 1 ? op[next++] : NULL;
    const uint16_t *residual = epilogue & EPI_RESIDUAL ? op[next++] : NULL;
    const uint16_t *bias = epilogue & EPI_BIAS ? op[next++] : NULL;
    for (size_t e = 0; e < n; e++) {
        const size_t panel = e / (16 * (size_t)rows), row = e / 16 % rows, column = e % 16;
        float acc = 0;
        if (residual) acc = num_f32_round((double)acc + num_f16_to_f32(residual[e]));
        if (bias) acc = num_f32_round((double)acc + num_f16_to_f32(bias[16 * panel + column]));
        acc = num_f32_round((double)acc + num_f16_to_f32(seed[e]));
        for (uint32_t i = 0; i + 1 < partials; i++)
            acc = num_f32_round((double)acc + num_f16_to_f32(remotes[i * n + e]));
        uint16_t h = num_h(acc);
        /* To F8 the half of GELU is taken in the conversion. */
        const bool twice = (epilogue & EPI_GELU) && (epilogue & EPI_F8);
        if (twice) h = num_kernel_gelu_twice(epilogue & EPI_ERF, h);
        else if (epilogue & EPI_GELU) h = num_kernel_gelu_half(epilogue & EPI_ERF, h);
        if (epilogue & EPI_F8)
            ((uint8_t *)op[0])[panel / 2 * 32 * rows + 32 * row + panel % 2 * 16 + column] =
                num_f8_from_f32(num_f16_to_f32(h), epilogue & EPI_F152 ? NUM_F152 : NUM_F143,
                                (int32_t)p[4] + twice);
        else ((uint16_t *)op[0])[e] = h;
    }
}

/* F32 panels of 8 columns to panels of 16 halves or 32 F8. */
void num_kernel_reduce_f32(const uint32_t *p, void *const *op) {
    const float *seed = op[1], *remotes = p[0] > 1 ? op[2] : NULL;
    const uint32_t rows = p[1], width = p[3] ? 32 : 16;
    const size_t n = (size_t)rows * p[2];
    for (size_t e = 0; e < n; e++) {
        float acc = num_f32_flush(seed[e]);
        for (uint32_t i = 0; i + 1 < p[0]; i++)
            acc = num_f32_round((double)acc + num_f32_flush(remotes[i * n + e]));
        const size_t column = e / 8 / rows * 8 + e % 8, row = e / 8 % rows;
        const size_t to = (column / width * rows + row) * width + column % width;
        if (p[3]) ((uint8_t *)op[0])[to] = cast_f8(num_h(acc + 0.0f), (int32_t)p[4]);
        else ((uint16_t *)op[0])[to] = num_h(acc + 0.0f);
    }
}

/* Which element of right belongs to element e: dense, one row for all rows, one half for each row. */
static size_t right_of(const uint32_t *p, size_t e) {
    return p[2] == 0 ? e : p[2] == 1 ? e % p[1] : e / p[1];
}

void num_kernel_add_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *left = op[1], *right = op[2];
    const size_t n = (size_t)p[0] * p[1];
    for (size_t e = 0; e < n; e++) out[e] = num_h_add(left[e], right[right_of(p, e)]);
}

void num_kernel_mul_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *left = op[1], *right = op[2];
    const size_t n = (size_t)p[0] * p[1];
    for (size_t e = 0; e < n; e++) out[e] = num_h_mul(left[e], right[right_of(p, e)]);
}

void num_kernel_cast_f8_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint8_t *in = op[1];
    const enum num_f8_format format = p[2] ? NUM_F152 : NUM_F143;
    for (uint32_t e = 0; e < p[0]; e++) out[e] = num_h(num_f8_to_f64(in[e], format, (int32_t)p[1]));
}

void num_kernel_cast_f8_f32(const uint32_t *p, void *const *op) {
    float *out = op[0];
    const uint8_t *in = op[1];
    const enum num_f8_format format = p[2] ? NUM_F152 : NUM_F143;
    for (uint32_t e = 0; e < p[0]; e++) out[e] = num_f8_to_f32(in[e], format, (int32_t)p[1]);
}

void num_kernel_cast_f32_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const float *in = op[1];
    for (uint32_t e = 0; e < p[0]; e++) out[e] = num_h(num_f32_flush(in[e]));
}

void num_kernel_cast_f16_f32(const uint32_t *p, void *const *op) {
    float *out = op[0];
    const uint16_t *in = op[1];
    for (uint32_t e = 0; e < p[0]; e++) out[e] = num_f16_to_f32(in[e]);
}

void num_kernel_cast_f16_f8(const uint32_t *p, void *const *op) {
    uint8_t *out = op[0];
    const uint16_t *in = op[1];
    const enum num_f8_format format = p[3] ? NUM_F152 : NUM_F143;
    for (uint32_t e = 0; e < p[0]; e++)
        out[e] = num_f8_from_f32(num_f16_to_f32(in[e]), format, (int32_t)p[1]);
}

/* A pair of panels at a time: its results do not reach halves that are still to be read, but its
 * own second panel's first results stand between its first panel's. */
void num_kernel_cast_shifted_panels(const uint32_t *p, void *const *op) {
    uint8_t *buffer = op[0];
    const size_t pair = 64 * (size_t)p[0];
    uint8_t *copy = g_malloc(pair);
    for (uint32_t k = 0; k < p[1] / 32; k++) {
        memcpy(copy, buffer + p[4] + k * pair, pair);
        const uint32_t call[4] = {p[0], 32, p[2], p[3]};
        num_kernel_cast_panels(call, (void *const[]){buffer + k * pair / 2, copy});
    }
    g_free(copy);
}

/* In increasing order no result reaches halves that are still to be read. */
void num_kernel_cast_shifted_f8(const uint32_t *p, void *const *op) {
    uint8_t *out = op[0];
    for (uint32_t e = 0; e < p[0]; e++) {
        uint16_t h;
        memcpy(&h, out + p[4] + 2 * (size_t)e, 2);
        out[e] = num_f8_from_f32(num_f16_to_f32(h), p[3] ? NUM_F152 : NUM_F143, (int32_t)p[1]);
    }
}

void num_kernel_cast_f32_f8(const uint32_t *p, void *const *op) {
    uint8_t *out = op[0];
    const float *in = op[1];
    for (uint32_t e = 0; e < p[0]; e++)
        out[e] = num_f8_from_f32(num_f16_to_f32(num_h(num_f32_flush(in[e]))),
                                 p[2] ? NUM_F152 : NUM_F143, (int32_t)p[1]);
}

void num_kernel_cast_f8_f8(const uint32_t *p, void *const *op) {
    uint8_t *out = op[0];
    const uint8_t *in = op[1];
    const enum num_f8_format from = p[2] & 2 ? NUM_F152 : NUM_F143;
    for (uint32_t e = 0; e < p[0]; e++)
        out[e] = num_f8_from_f32(num_f8_to_f32(in[e], from, 0), p[2] & 1 ? NUM_F152 : NUM_F143,
                                 (int32_t)p[1]);
}

void num_kernel_cast_panels(const uint32_t *p, void *const *op) {
    uint8_t *out = op[0];
    const uint16_t *in = op[1];
    const uint32_t rows = p[0];
    for (uint32_t panel = 0; panel < p[1] / 16; panel++)
        for (uint32_t row = 0; row < rows; row++)
            for (uint32_t c = 0; c < 16; c++)
                out[(size_t)(panel / 2) * 32 * rows + 32 * row + panel % 2 * 16 + c] =
                    num_f8_from_f32(num_f16_to_f32(in[((size_t)panel * rows + row) * 16 + c]),
                                    p[3] ? NUM_F152 : NUM_F143, (int32_t)p[2]);
}
