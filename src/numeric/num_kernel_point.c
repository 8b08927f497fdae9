/* Twins of element-wise kernels, sums of partials, copies and fills. */
#include "numeric/num_kernel.h"

#include <math.h>
#include <string.h>

void num_kernel_reduce_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *seed = op[1], *remotes = op[2];
    for (uint32_t e = 0; e < p[1]; e++) {
        float acc = num_f16_to_f32(seed[e]);
        for (uint32_t i = 0; i + 1 < p[0]; i++)
            acc = num_f32_round((double)acc + num_f16_to_f32(remotes[(size_t)i * p[1] + e]));
        out[e] = num_h(acc);
    }
}

enum { GELU_A = 0x3a62, GELU_AB = 0x2891, HALF_HALF = 0x3800, HALF_ONE = 0x3c00 };

uint16_t num_kernel_gelu(uint16_t x) {
    const float xf = num_f16_to_f32(x);
    const uint16_t c = num_h(xf < -8 ? -8 : xf > 8 ? 8 : xf);
    const uint16_t cube = num_h_mul(num_h_mul(c, c), c);
    const double poly = (double)num_f16_to_f32(GELU_AB) * num_f16_to_f32(cube) +
                        (double)num_f16_to_f32(GELU_A) * num_f16_to_f32(c);
    const uint16_t t = num_h(tanh(num_f16_to_f32(num_h(num_f32_round(poly)))));
    return num_h_mul(num_h_mul(HALF_HALF, num_h_add(HALF_ONE, t)), x);
}

void num_kernel_gelu_f16(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *in = op[1];
    for (uint32_t e = 0; e < p[0]; e++) out[e] = num_kernel_gelu(in[e]);
}

void num_kernel_copy(const uint32_t *p, void *const *op) { memmove(op[0], op[1], p[0]); }

void num_kernel_fill(const uint32_t *p, void *const *op) { memset(op[0], 0, p[0]); }
