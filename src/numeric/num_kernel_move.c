/* Twins of copies, fills, packers and checks. */
#include "numeric/num_kernel.h"

#include <string.h>

void num_kernel_copy(const uint32_t *p, void *const *op) {
    memmove(op[0], op[1], p[0]);
}

void num_kernel_fill(const uint32_t *p, void *const *op) {
    memset(op[0], 0, p[0]);
}

void num_kernel_max_partials(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *in = op[1];
    const size_t n = 2 * (size_t)p[1];
    for (size_t e = 0; e < n; e++) {
        uint16_t best = in[e];
        for (uint32_t i = 1; i < p[0]; i++) best = num_h_max(best, in[i * n + e]);
        out[e] = best;
    }
}

void num_kernel_copy_strided(const uint32_t *p, void *const *op) {
    for (uint32_t o = 0; o < p[4]; o++)
        for (uint32_t r = 0; r < p[0]; r++) {
            uint8_t *to = (uint8_t *)op[0] + (size_t)o * p[6] + (size_t)r * p[3];
            memcpy(to, (const uint8_t *)op[1] + (size_t)o * p[5] + (size_t)r * p[2], p[1]);
            memset(to + p[1], 0, p[7]);
        }
}

void num_kernel_pack_right(const uint32_t *p, void *const *op) {
    uint16_t *out = op[0];
    const uint16_t *in = op[1];
    const size_t rows = p[0], columns = p[1];
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            const size_t panel =
                p[3] ? r / 16 * (columns / 16) + c / 16 : c / 16 * (rows / 16) + r / 16;
            const size_t from = p[2] ? (c / 16 * rows + r) * 16 + c % 16 : r * columns + c;
            out[panel * 256 + c % 16 * 16 + r % 16] = in[from];
        }
}

void num_kernel_pack_f8(const uint32_t *p, void *const *op) {
    uint8_t *out = op[0];
    const uint16_t *in = op[1];
    const size_t rows = p[0], columns = p[1], width = (columns + 31) / 32 * 32;
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < width; c++) {
            const size_t from = p[2] ? (c / 16 * rows + r) * 16 + c % 16 : r * columns + c;
            uint8_t *to = &out[(c / 32 * rows + r) * 32 + c % 32];
            *to = c >= columns ? 0
                               : num_f8_from_f32(num_f16_to_f32(in[from]),
                                                 p[4] ? NUM_F152 : NUM_F143, (int32_t)p[3]);
        }
}

void num_kernel_gather_rows(const uint32_t *p, void *const *op) {
    const uint32_t *index = op[2];
    for (uint32_t r = 0; r < p[0]; r++)
        memcpy((uint8_t *)op[0] + (size_t)r * p[1],
               (const uint8_t *)op[1] + (size_t)index[r] * p[1], p[1]);
}

void num_kernel_finite_check(const uint32_t *p, void *const *op) {
    uint32_t *out = op[0];
    const uint16_t *in = op[1];
    for (uint32_t w = 0; w < 6; w++) {
        out[w] = 0;
        for (uint32_t k = w; k < p[0] / 2 && !out[w]; k += 6)
            if ((in[2 * k] & 0x7c00) == 0x7c00 || (in[2 * k + 1] & 0x7c00) == 0x7c00)
                out[w] = k + 1;
    }
}

void num_kernel_fill_f16(const uint32_t *p, void *const *op) {
    for (uint32_t e = 0; e < p[0] / 2; e++) ((uint16_t *)op[0])[e] = (uint16_t)p[1];
}

void num_kernel_copy_u16(const uint32_t *p, void *const *op) {
    for (uint32_t r = 0; r < p[0]; r++)
        memcpy((uint8_t *)op[0] + (size_t)r * p[2], (const uint8_t *)op[1] + (size_t)r * p[3],
               2 * (size_t)p[1]);
}
