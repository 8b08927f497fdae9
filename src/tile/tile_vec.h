/* tile_vec: vector twins of F16 lane arithmetic. Not for other rooms.
 *
 * Each function works on four F16 lanes in a 64-bit value, rounds to nearest even and returns false,
 * leaving *ret alone, when a result lane is infinite or NaN: then the scalar code, which knows the
 * flags and the saturation, decides. So both give the same bits wherever the vector code answers.
 * Sums and products of two F16 numbers round correctly to F16 through F32 (24 >= 2 * 11 + 2).
 * Only called when tile_simd_best() is not TILE_SIMD_SCALAR. */
#ifndef IPU_TILE_TILE_VEC_H
#define IPU_TILE_TILE_VEC_H

#include <stdbool.h>
#include <stdint.h>

bool tile_vec_f16_add(uint64_t x, uint64_t y, uint64_t *ret);
bool tile_vec_f16_sub(uint64_t x, uint64_t y, uint64_t *ret);
bool tile_vec_f16_mul(uint64_t x, uint64_t y, uint64_t *ret);
bool tile_vec_f16_absadd(uint64_t x, uint64_t y, uint64_t *ret);
/* Four F32 values (bits) to F16. */
bool tile_vec_f16_from_f32(const uint32_t v[4], uint64_t *ret);
/* acc + the eight halves at h, an F32 addition each; false, with nothing changed, when a sum is NaN,
 * infinite or denormal. */
bool tile_vec_f16_acc(float acc[8], const uint32_t h[4]);
/* Four F16 to F32, exact; NaN keep their payload, so callers look for them first. */
void tile_vec_f16_to_f32(uint64_t h, float ret[4]);

/* 64 words of four F16 weights, word 4 * unit + phase, to doubles [phase][input][unit]; false when one is
 * infinite or NaN. */
bool tile_vec_weights(const uint64_t words[64], double (*ret)[4][16]);

/* The same for F143 weights, word = eight codes, times 2^scale: f143 of *w; false when one is NaN. Then f8
 * of *w, whose scale is set. */
struct tile_weights;
bool tile_vec_weights_f143(const uint64_t words[64], int32_t scale, struct tile_weights *w);
void tile_vec_weights_f143_doubles(const uint64_t words[64], struct tile_weights *w);

/* True when one of four F16 lanes is infinite or NaN. */
static inline bool tile_f16_any_special(uint64_t h) {
    const uint64_t exponent = UINT64_C(0x7c007c007c007c00), one = UINT64_C(0x0400040004000400);
    return (((h & exponent) + one) & UINT64_C(0x8000800080008000)) != 0;
}

#endif
