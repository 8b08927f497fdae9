/* num_kernel: plain C twins of the kernels in device/, bit for bit where the kernel's head comment
 * defines its numerics. They work on the physical arrays of one tile, in the kernel's layouts.
 *
 * In:   p = the parameters of the call as named in kernel.def; op = its operands, outputs first, as
 *       host memory (little-endian, as in SRAM).
 * Out:  the outputs. Operands that alias on the tile may be the same memory.
 * Errors: none; shapes must be valid (kernel_describe).
 * Threads: pure.
 */
#ifndef IPU_NUMERIC_NUM_KERNEL_H
#define IPU_NUMERIC_NUM_KERNEL_H

#include "numeric/num_format.h"

typedef void num_kernel_twin(const uint32_t *p, void *const *op);

num_kernel_twin num_kernel_gemm_f16, num_kernel_gemm_f8, num_kernel_gemm_f32;
num_kernel_twin num_kernel_gemm_f16_f32, num_kernel_gemm_packed;
num_kernel_twin num_kernel_reduce_f16, num_kernel_reduce_f32;
num_kernel_twin num_kernel_gelu_f16, num_kernel_bias_gelu_f16, num_kernel_gelu_f8;
num_kernel_twin num_kernel_softmax_f16;
num_kernel_twin num_kernel_reduce_panels;
num_kernel_twin num_kernel_add_f16, num_kernel_mul_f16;
num_kernel_twin num_kernel_cast_f8_f16, num_kernel_cast_f8_f32,
    num_kernel_cast_f32_f16, num_kernel_cast_f16_f32;
num_kernel_twin num_kernel_cast_f16_f8, num_kernel_cast_panels, num_kernel_cast_shifted_f8;
num_kernel_twin num_kernel_cast_shifted_panels;
num_kernel_twin num_kernel_cast_f32_f8, num_kernel_cast_f8_f8;
num_kernel_twin num_kernel_norm_f16, num_kernel_moments_f16, num_kernel_apply_moments_f16;
num_kernel_twin num_kernel_add_moments_f16, num_kernel_add_norm_f16;
num_kernel_twin num_kernel_row_max, num_kernel_exp_panels, num_kernel_normalise_panels;
num_kernel_twin num_kernel_merge_panels;
num_kernel_twin num_kernel_copy, num_kernel_fill, num_kernel_copy_strided, num_kernel_pack_right;
num_kernel_twin num_kernel_pack_f8;
num_kernel_twin num_kernel_max_partials, num_kernel_gather_rows, num_kernel_finite_check;
num_kernel_twin num_kernel_norm_valid_f16, num_kernel_rms_valid_f16;
num_kernel_twin num_kernel_rms_f16, num_kernel_fill_f16, num_kernel_copy_u16;

/* GELU of one element: either form in halves (GELU_F16, BIAS_GELU_F16, GELU_F8, REDUCE_PANELS with F16
 * out); in F32 (GELU_F16); twice GELU in halves (REDUCE_PANELS with F8 out). */
uint16_t num_kernel_gelu_half(bool erf, uint16_t x);
uint16_t num_kernel_gelu_f32(bool erf, uint16_t x);
uint16_t num_kernel_gelu_twice(bool erf, uint16_t x);

/* --- Half arithmetic as the auxiliary pipe does it: one rounding, nearest even, saturating. --- */

static inline uint16_t num_h(double v) {
    uint32_t flags = 0;
    return num_f16_from_f64(v, NUM_DEFAULT, 0, &flags);
}
static inline uint16_t num_h_add(uint16_t a, uint16_t b) {
    return num_h((double)num_f16_to_f32(a) + num_f16_to_f32(b));
}
static inline uint16_t num_h_sub(uint16_t a, uint16_t b) {
    return num_h((double)num_f16_to_f32(a) - num_f16_to_f32(b));
}
static inline uint16_t num_h_mul(uint16_t a, uint16_t b) {
    return num_h((double)num_f16_to_f32(a) * num_f16_to_f32(b));
}

/* The larger one; a number wins over NaN, plus zero over minus zero (isa 3.7). */
static inline uint16_t num_h_max(uint16_t a, uint16_t b) {
    if (num_f16_is_nan(a)) return num_f16_is_nan(b) ? NUM_F16_NAN : b;
    if (num_f16_is_nan(b)) return a;
    const int32_t x = a & 0x8000 ? -(a & 0x7fff) - 1 : a, y = b & 0x8000 ? -(b & 0x7fff) - 1 : b;
    return x > y ? a : b;
}

#endif
