/* The matrix unit on AVX2: sixteen units are two registers of floats (a set each), four of doubles. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define VEC __attribute__((target("avx2,fma,f16c")))

typedef struct {
    __m256 set[2];
} f16s;
typedef struct {
    __m256d q[4];
} d16s;

VEC static inline f16s f16s_load(const float *p) {
    return (f16s){{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
}
VEC static inline void f16s_store(float *p, f16s v) {
    _mm256_storeu_ps(p, v.set[0]);
    _mm256_storeu_ps(p + 8, v.set[1]);
}
VEC static inline d16s d16s_of(f16s v) {
    return (d16s){{_mm256_cvtps_pd(_mm256_castps256_ps128(v.set[0])),
                   _mm256_cvtps_pd(_mm256_extractf128_ps(v.set[0], 1)),
                   _mm256_cvtps_pd(_mm256_castps256_ps128(v.set[1])),
                   _mm256_cvtps_pd(_mm256_extractf128_ps(v.set[1], 1))}};
}
VEC static inline f16s f16s_of(d16s v) {
    return (f16s){{_mm256_set_m128(_mm256_cvtpd_ps(v.q[1]), _mm256_cvtpd_ps(v.q[0])),
                   _mm256_set_m128(_mm256_cvtpd_ps(v.q[3]), _mm256_cvtpd_ps(v.q[2]))}};
}
VEC static inline d16s d16s_mul(const double *w, const double *x) {
    const __m256d b = _mm256_broadcast_sd(x);
    d16s r;
    for (uint32_t k = 0; k < 4; k++) r.q[k] = _mm256_mul_pd(_mm256_load_pd(w + 4 * k), b);
    return r;
}
VEC static inline d16s d16s_fma(const double *w, const double *x, d16s add) {
    const __m256d b = _mm256_broadcast_sd(x);
    d16s r;
    for (uint32_t k = 0; k < 4; k++) r.q[k] = _mm256_fmadd_pd(_mm256_load_pd(w + 4 * k), b, add.q[k]);
    return r;
}
VEC static inline d16s d16s_add(d16s a, d16s b) {
    d16s r;
    for (uint32_t k = 0; k < 4; k++) r.q[k] = _mm256_add_pd(a.q[k], b.q[k]);
    return r;
}
VEC static inline d16s d16s_scale(d16s a, double scale) {
    const __m256d b = _mm256_set1_pd(scale);
    d16s r;
    for (uint32_t k = 0; k < 4; k++) r.q[k] = _mm256_mul_pd(a.q[k], b);
    return r;
}
VEC static inline bool f16s_any_nan(f16s v) {
    const __m256 n0 = _mm256_cmp_ps(v.set[0], v.set[0], _CMP_UNORD_Q);
    const __m256 n1 = _mm256_cmp_ps(v.set[1], v.set[1], _CMP_UNORD_Q);
    return _mm256_movemask_ps(_mm256_or_ps(n0, n1)) != 0;
}
VEC static inline __m256 clean8(__m256 v) {
    const __m256 nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
    const __m256i exponent = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7f800000));
    const __m256 small = _mm256_castsi256_ps(_mm256_cmpeq_epi32(exponent, _mm256_setzero_si256()));
    const __m256 sign = _mm256_and_ps(v, _mm256_set1_ps(-0.0f));
    v = _mm256_blendv_ps(v, sign, small);
    return _mm256_blendv_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32((int)NUM_F32_NAN)), nan);
}
VEC static inline f16s f16s_clean(f16s v) {
    return (f16s){{clean8(v.set[0]), clean8(v.set[1])}};
}
VEC static inline __m128 f16s_first(f16s v) {
    return _mm_movelh_ps(_mm256_castps256_ps128(v.set[0]), _mm256_castps256_ps128(v.set[1]));
}
VEC static inline __m256 chain8(__m256 v, __m128d in) {
    const __m256i pick = _mm256_setr_epi32(2, 3, 4, 5, 6, 7, 0, 0);
    const __m256d shifted = _mm256_castps_pd(_mm256_permutevar8x32_ps(v, pick));
    return _mm256_castpd_ps(_mm256_blend_pd(shifted, _mm256_broadcastsd_pd(in), 8));
}
VEC static inline f16s f16s_chain(f16s v, __m128 in) {
    const __m128d pairs = _mm_castps_pd(in);
    return (f16s){{chain8(v.set[0], pairs), chain8(v.set[1], _mm_unpackhi_pd(pairs, pairs))}};
}

#include "tile/tile_amp_body.h"

const struct tile_amp_vec TILE_AMP_AVX2 = {amp_call, loop_f16, loop_f8};
#endif
