/* The matrix unit on AVX-512: sixteen units are one register of floats, two of doubles. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define VEC __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,f16c")))

typedef __m512 f16s;
typedef struct {
    __m512d lo, hi;
} d16s;

VEC static inline f16s f16s_load(const float *p) { return _mm512_loadu_ps(p); }
VEC static inline void f16s_store(float *p, f16s v) { _mm512_storeu_ps(p, v); }
VEC static inline d16s d16s_of(f16s v) {
    return (d16s){_mm512_cvtps_pd(_mm512_castps512_ps256(v)),
                  _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1))};
}
VEC static inline f16s f16s_of(d16s v) {
    return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(v.lo)),
                              _mm512_cvtpd_ps(v.hi), 1);
}
VEC static inline d16s d16s_mul(const double *w, const double *x) {
    const __m512d b = _mm512_set1_pd(*x);
    return (d16s){_mm512_mul_pd(_mm512_load_pd(w), b), _mm512_mul_pd(_mm512_load_pd(w + 8), b)};
}
VEC static inline d16s d16s_fma(const double *w, const double *x, d16s add) {
    const __m512d b = _mm512_set1_pd(*x);
    return (d16s){_mm512_fmadd_pd(_mm512_load_pd(w), b, add.lo),
                  _mm512_fmadd_pd(_mm512_load_pd(w + 8), b, add.hi)};
}
VEC static inline d16s d16s_add(d16s a, d16s b) {
    return (d16s){_mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi)};
}
VEC static inline d16s d16s_scale(d16s a, double scale) {
    const __m512d b = _mm512_set1_pd(scale);
    return (d16s){_mm512_mul_pd(a.lo, b), _mm512_mul_pd(a.hi, b)};
}
VEC static inline bool f16s_any_nan(f16s v) {
    return _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q) != 0;
}
VEC static inline f16s f16s_clean(f16s v) {
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __mmask16 tiny = _mm512_fpclass_ps_mask(v, 0x20); /* denormal */
    const __m512i sign = _mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(INT32_MIN));
    v = _mm512_mask_mov_ps(v, tiny, _mm512_castsi512_ps(sign));
    return _mm512_mask_mov_ps(v, nan, _mm512_castsi512_ps(_mm512_set1_epi32((int)NUM_F32_NAN)));
}
/* Units 0, 1 of both sets: what leaves the chain. */
VEC static inline __m128 f16s_first(f16s v) {
    const __m512i pick = _mm512_setr_epi32(0, 1, 8, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return _mm512_castps512_ps128(_mm512_permutexvar_ps(pick, v));
}
/* Both chains down by one engine; the partials enter at the end. */
VEC static inline f16s f16s_chain(f16s v, __m128 in) {
    const __m512i pick =
        _mm512_setr_epi32(2, 3, 4, 5, 6, 7, 16, 17, 10, 11, 12, 13, 14, 15, 18, 19);
    return _mm512_permutex2var_ps(v, pick, _mm512_castps128_ps512(in));
}

#include "tile/tile_amp_body.h"

const struct tile_amp_vec TILE_AMP_AVX512 = {amp_call, loop_f16, loop_f8};
#endif
