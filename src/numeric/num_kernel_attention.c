/* Twins of row maxima, exponentials and the normalisation of products. A16 panels: element (r, c) of
 * R rows at ((c / 16) * R + r) * 16 + c % 16; A32 panels likewise with 32. */
#include "numeric/num_kernel.h"

#include <math.h>

static size_t at16(uint32_t rows, uint32_t r, uint32_t c) {
    return ((size_t)(c / 16) * rows + r) * 16 + c % 16;
}
static size_t at32(uint32_t rows, uint32_t r, uint32_t c) {
    return ((size_t)(c / 32) * rows + r) * 32 + c % 32;
}

/* Where results go: A16 panels of halves, or A32 panels of F143. */
struct panels {
    void *out;
    uint32_t rows;
    bool f8;
    int32_t exponent;
};

static void panels_store(const struct panels *o, uint32_t r, uint32_t c, uint16_t h) {
    if (o->f8)
        ((uint8_t *)o->out)[at32(o->rows, r, c)] =
            num_f8_from_f32(num_f16_to_f32(h), NUM_F143, o->exponent);
    else ((uint16_t *)o->out)[at16(o->rows, r, c)] = h;
}

void num_kernel_row_max(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *in = op[1];
    for (uint32_t r = 0; r < p[0]; r++) {
        uint16_t best = 0xfbff;
        for (uint32_t c = 0; c < p[2]; c++)
            if (num_f16_to_f32(in[at16(p[0], r, c)]) > num_f16_to_f32(best))
                best = in[at16(p[0], r, c)];
        out[2 * r] = out[2 * r + 1] = best;
    }
}

void num_kernel_exp_panels(const uint32_t *p, void *const *op) {
    const struct panels o = {op[0], p[0], p[4] != 0, (int32_t)p[5]};
    const uint16_t *in = op[1], *maxima = op[2];
    const double scale = num_f16_to_f32((uint16_t)p[3]);
    for (uint32_t r = 0; r < p[0]; r++)
        for (uint32_t c = 0; c < p[1]; c++) {
            const uint32_t masked_from = p[2] / 32 * 32;
            uint16_t h = 0;
            if (c < p[2]) {
                const double v = scale * num_f16_to_f32(in[at16(p[0], r, c)]) -
                                 scale * num_f16_to_f32(maxima[2 * r]);
                h = num_h(num_f32_round(v));
                if (c >= masked_from && num_f16_to_f32(h) > 0) h = 0;
                h = num_h(exp(num_f16_to_f32(h)));
            }
            panels_store(&o, r, c, h);
        }
}

void num_kernel_normalise_panels(const uint32_t *p, void *const *op) {
    const struct panels o = {op[0], p[0], p[3] != 0, (int32_t)p[4]};
    const uint16_t *in = op[1];
    for (uint32_t r = 0; r < p[0]; r++) {
        const float inverse =
            num_f32_round(1 / (double)num_f16_to_f32(in[at16(p[0], r, p[2])]));
        const uint16_t high = num_h(inverse);
        const uint16_t low = num_h(num_f32_round((double)inverse - num_f16_to_f32(high)));
        for (uint32_t c = 0; c < p[1]; c++) {
            const double x = num_f16_to_f32(in[at16(p[0], r, c)]);
            panels_store(&o, r, c,
                         num_h(num_f32_round(x * num_f16_to_f32(high) + x * num_f16_to_f32(low))));
        }
    }
}
