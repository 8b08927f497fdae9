/* Twins of GELU (device/gelu.inc): x times a sigmoid in halves, and max(x, 0) - z q(z) in F32. */
#include "numeric/num_kernel.h"

#include <math.h>

/* 2 sqrt(2 / pi) and its product with 0.044715; the pair fitted to the erf form. */
enum { TANH_A = 0x3e62, TANH_AB = 0x2c91, ERF_A = 0x3e66, ERF_AB = 0x2c75 };

uint16_t num_kernel_gelu_half(bool erf, uint16_t x) {
    const double a = num_f16_to_f32(erf ? ERF_A : TANH_A);
    const double ab = num_f16_to_f32(erf ? ERF_AB : TANH_AB);
    const float xf = num_f16_to_f32(x);
    const uint16_t c = num_h(xf >= -8 ? xf > 8 ? 8 : xf : -8); /* NaN: the low bound */
    const uint16_t cube = num_h_mul(num_h_mul(c, c), c);
    const uint16_t v = num_h(num_f32_round(ab * num_f16_to_f32(cube) + a * num_f16_to_f32(c)));
    return num_h_mul(num_h(1 / (1 + exp(-(double)num_f16_to_f32(v)))), x);
}

/* ln(Phi(-z)) on [0, 5.75], from z^6 down. */
static const uint32_t ERF_POLYNOMIAL[] = {0x378eb77b, 0xb9e72cf4, 0x3ba6d68a, 0xbd127c56,
                                          0xbea38604, 0xbf4c2200, 0xbf317452};
enum { TANH_K3 = 0xbd922279u, TANH_K1 = 0xbfcc422au };

static float q_erf(float z) {
    float v = num_f32_from_bits(ERF_POLYNOMIAL[0]);
    for (size_t i = 1; i < ARRAY_LEN(ERF_POLYNOMIAL); i++) {
        v = num_f32_round((double)v * z);
        v = num_f32_round((double)v + num_f32_from_bits(ERF_POLYNOMIAL[i]));
    }
    return num_f32_round(exp(v));
}

static float q_tanh(float z) {
    float v = num_f32_round((double)z * z);
    v = num_f32_round((double)v * num_f32_from_bits(TANH_K3));
    v = num_f32_round((double)v + num_f32_from_bits(TANH_K1));
    v = num_f32_round((double)v * z);
    return num_f32_round(1 / (1 + exp(-(double)v)));
}

uint16_t num_kernel_gelu_f32(bool erf, uint16_t x) {
    const float xf = num_f16_to_f32(x), limit = erf ? 5.75f : 8;
    const float size = fabsf(xf);
    const float z = size > limit ? limit : size > 0 ? size : 0; /* NaN: 0, see below */
    const float g = num_f32_round((double)z * (erf ? q_erf(z) : q_tanh(z)));
    const uint16_t h = num_h(num_f32_round((double)(xf > 0 ? xf : 0) - g));
    return num_h_add(h, num_h_sub(x, x)); /* NaN stays */
}

void num_kernel_gelu_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *in = op[1];
    const bool erf = p[1] & 1, f32 = p[1] == 1 || p[1] == 2;
    for (uint32_t e = 0; e < p[0]; e++)
        out[e] = f32 ? num_kernel_gelu_f32(erf, in[e]) : num_kernel_gelu_half(erf, in[e]);
}

void num_kernel_bias_gelu_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *in = op[1], *bias = op[2];
    const size_t n = (size_t)p[0] * p[1];
    for (size_t e = 0; e < n; e++)
        out[e] = num_kernel_gelu_half(p[3], num_h_add(in[e], bias[e % p[1]]));
}

void num_kernel_gelu_f8(const uint32_t *p, void *const *op) {
    uint8_t *out = op[0];
    const uint16_t *in = op[1], *bias = p[2] ? op[2] : NULL;
    const enum num_f8_format format = p[4] ? NUM_F152 : NUM_F143;
    const uint32_t stride = (p[1] + 31) / 32 * 32;
    for (uint32_t r = 0; r < p[0]; r++)
        for (uint32_t c = 0; c < stride; c++) {
            uint16_t h = c < p[1] ? in[(size_t)r * p[1] + c] : 0;
            if (bias && c < p[1]) h = num_h_add(h, bias[c]);
            const float v = num_f16_to_f32(num_kernel_gelu_half(p[5], h));
            out[(size_t)r * stride + c] =
                c < p[1] ? num_f8_from_f32(v, format, (int32_t)p[3]) : 0;
        }
}
