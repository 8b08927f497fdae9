/* F16 lanes through the F32 conversions of x86 (F16C). Other machines have the scalar code alone. */
#include "tile/tile_vec.h"

#include "numeric/num_format.h"
#include "tile/tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define VEC __attribute__((target("avx2,f16c,fma")))

enum tile_simd tile_simd_best(void) {
    static gint best; /* TILE_SIMD_AUTO: not known yet; the same value whoever writes it first */
    if (g_atomic_int_get(&best) == TILE_SIMD_AUTO) {
        __builtin_cpu_init();
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          num_machine_f16();
        const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
        g_atomic_int_set(&best, avx512 ? TILE_SIMD_AVX512 : avx2 ? TILE_SIMD_AVX2 : TILE_SIMD_SCALAR);
    }
    return (enum tile_simd)g_atomic_int_get(&best);
}

VEC static inline __m128 widen(uint64_t h) {
    return _mm_cvtph_ps(_mm_cvtsi64_si128((long long)h));
}

VEC static inline bool narrow(__m128 v, uint64_t *ret) {
    const __m128i h = _mm_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const uint64_t bits = (uint64_t)_mm_cvtsi128_si64(h);
    if (tile_f16_any_special(bits)) return false;
    *ret = bits;
    return true;
}

VEC bool tile_vec_f16_add(uint64_t x, uint64_t y, uint64_t *ret) {
    return narrow(_mm_add_ps(widen(x), widen(y)), ret);
}
VEC bool tile_vec_f16_sub(uint64_t x, uint64_t y, uint64_t *ret) {
    return narrow(_mm_sub_ps(widen(x), widen(y)), ret);
}
VEC bool tile_vec_f16_mul(uint64_t x, uint64_t y, uint64_t *ret) {
    return narrow(_mm_mul_ps(widen(x), widen(y)), ret);
}
VEC bool tile_vec_f16_absadd(uint64_t x, uint64_t y, uint64_t *ret) {
    const uint64_t magnitude = UINT64_C(0x7fff7fff7fff7fff);
    return narrow(_mm_add_ps(widen(x & magnitude), widen(y & magnitude)), ret);
}
VEC bool tile_vec_f16_from_f32(const uint32_t v[4], uint64_t *ret) {
    return narrow(_mm_loadu_ps((const float *)(const void *)v), ret);
}
/* Four units at a time: their words become rows of inputs, and are transposed. */
VEC static inline void weights4(const uint64_t *words, double (*ret)[16]) {
    __m256d r[4];
    for (uint32_t u = 0; u < 4; u++) r[u] = _mm256_cvtps_pd(widen(words[4 * u]));
    const __m256d a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    const __m256d c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    _mm256_store_pd(ret[0], _mm256_permute2f128_pd(a, c, 0x20));
    _mm256_store_pd(ret[1], _mm256_permute2f128_pd(b, d, 0x20));
    _mm256_store_pd(ret[2], _mm256_permute2f128_pd(a, c, 0x31));
    _mm256_store_pd(ret[3], _mm256_permute2f128_pd(b, d, 0x31));
}
VEC bool tile_vec_weights(const uint64_t words[64], double (*ret)[4][16]) {
    for (uint32_t k = 0; k < 64; k++)
        if (tile_f16_any_special(words[k])) return false;
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t u = 0; u < 16; u += 4)
            weights4(words + 4 * u + p, (double(*)[16])(void *)&ret[p][0][u]);
    return true;
}
/* Sixteen F143 codes, times `factor`. As halves they are 2^7 too small, exactly. */
VEC static inline void f143_widen(__m128i codes, double factor, double ret[16]) {
    const __m256i b = _mm256_slli_epi16(_mm256_cvtepu8_epi16(codes), 7);
    const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(b, _mm256_set1_epi16(0x4000)), 1);
    const __m256i h = _mm256_or_si256(_mm256_and_si256(b, _mm256_set1_epi16(0x3f80)), sign);
    const __m256 f[2] = {_mm256_cvtph_ps(_mm256_castsi256_si128(h)),
                         _mm256_cvtph_ps(_mm256_extracti128_si256(h, 1))};
    const __m256d by = _mm256_set1_pd(factor * 128);
    for (uint32_t k = 0; k < 4; k++) {
        const __m128 q = k % 2 ? _mm256_extractf128_ps(f[k / 2], 1) : _mm256_castps256_ps128(f[k / 2]);
        _mm256_store_pd(ret + 4 * k, _mm256_mul_pd(_mm256_cvtps_pd(q), by));
    }
}
/* The words of sixteen units, 32 bytes apart, to their codes [input][unit]: interleaving halves of the
 * list four times transposes it. */
VEC static inline void codes_transpose(const uint64_t *words, __m128i ret[8]) {
    __m128i a[8], b[8];
    for (uint32_t u = 0; u < 8; u++)
        a[u] = _mm_unpacklo_epi8(_mm_cvtsi64_si128((long long)words[4 * u]),
                                 _mm_cvtsi64_si128((long long)words[4 * (u + 8)]));
    for (uint32_t k = 0; k < 4; k++) {
        b[2 * k] = _mm_unpacklo_epi8(a[k], a[k + 4]);
        b[2 * k + 1] = _mm_unpackhi_epi8(a[k], a[k + 4]);
    }
    for (uint32_t k = 0; k < 4; k++) {
        a[2 * k] = _mm_unpacklo_epi8(b[k], b[k + 4]);
        a[2 * k + 1] = _mm_unpackhi_epi8(b[k], b[k + 4]);
    }
    for (uint32_t k = 0; k < 4; k++) {
        ret[2 * k] = _mm_unpacklo_epi8(a[k], a[k + 4]);
        ret[2 * k + 1] = _mm_unpackhi_epi8(a[k], a[k + 4]);
    }
}
VEC bool tile_vec_weights_f143(const uint64_t words[64], int32_t scale, double (*ret)[8][16]) {
    const double factor = ldexp(1, scale);
    for (uint32_t p = 0; p < 4; p++) {
        __m128i codes[8];
        codes_transpose(words + p, codes);
        for (uint32_t i = 0; i < 8; i++) {
            if (_mm_movemask_epi8(_mm_cmpeq_epi8(codes[i], _mm_set1_epi8((char)0x80)))) return false;
            f143_widen(codes[i], factor, ret[p][i]);
        }
    }
    return true;
}
VEC void tile_vec_f16_to_f32(uint64_t h, float ret[4]) {
    _mm_storeu_ps(ret, widen(h));
}

#else

enum tile_simd tile_simd_best(void) { return TILE_SIMD_SCALAR; }
bool tile_vec_f16_add(uint64_t x, uint64_t y, uint64_t *ret) { return (void)x, (void)y, (void)ret, false; }
bool tile_vec_f16_sub(uint64_t x, uint64_t y, uint64_t *ret) { return (void)x, (void)y, (void)ret, false; }
bool tile_vec_f16_mul(uint64_t x, uint64_t y, uint64_t *ret) { return (void)x, (void)y, (void)ret, false; }
bool tile_vec_f16_absadd(uint64_t x, uint64_t y, uint64_t *ret) { return (void)x, (void)y, (void)ret, false; }
bool tile_vec_f16_from_f32(const uint32_t v[4], uint64_t *ret) { return (void)v, (void)ret, false; }
void tile_vec_f16_to_f32(uint64_t h, float ret[4]) { (void)h, (void)ret; }
bool tile_vec_weights_f143(const uint64_t words[64], int32_t scale, double (*ret)[8][16]) { return (void)words, (void)scale, (void)ret, false; }
bool tile_vec_weights(const uint64_t words[64], double (*ret)[4][16]) { return (void)words, (void)ret, false; }

#endif
