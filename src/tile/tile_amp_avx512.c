/* The matrix unit on AVX-512: a set is one register of floats, one of doubles. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

#define VEC __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx2,fma,f16c")))

typedef struct {
    __m256 set[2];
} f16s;
typedef struct {
    __m512d set[2];
} d16s;

VEC static inline f16s f16s_load(const float *p) {
    return (f16s){{_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}};
}
VEC static inline void f16s_store(float *p, f16s v) {
    _mm256_storeu_ps(p, v.set[0]);
    _mm256_storeu_ps(p + 8, v.set[1]);
}
VEC static inline d16s d16s_of(f16s v) {
    return (d16s){{_mm512_cvtps_pd(v.set[0]), _mm512_cvtps_pd(v.set[1])}};
}
VEC static inline f16s f16s_of(d16s v) {
    return (f16s){{_mm512_cvtpd_ps(v.set[0]), _mm512_cvtpd_ps(v.set[1])}};
}
VEC static inline d16s d16s_mul(const double *w, const double *x) {
    const __m512d b = _mm512_set1_pd(*x);
    return (d16s){{_mm512_mul_pd(_mm512_load_pd(w), b), _mm512_mul_pd(_mm512_load_pd(w + 8), b)}};
}
VEC static inline d16s d16s_fma(const double *w, const double *x, d16s add) {
    const __m512d b = _mm512_set1_pd(*x);
    return (d16s){{_mm512_fmadd_pd(_mm512_load_pd(w), b, add.set[0]),
                   _mm512_fmadd_pd(_mm512_load_pd(w + 8), b, add.set[1])}};
}
VEC static inline d16s d16s_load(const double *w) {
    return (d16s){{_mm512_load_pd(w), _mm512_load_pd(w + 8)}};
}
VEC static inline void d16s_store(double *p, d16s v) {
    _mm512_store_pd(p, v.set[0]);
    _mm512_store_pd(p + 8, v.set[1]);
}
VEC static inline d16s d16s_mul_at(d16s w, const double *x) {
    const __m512d b = _mm512_set1_pd(*x);
    return (d16s){{_mm512_mul_pd(w.set[0], b), _mm512_mul_pd(w.set[1], b)}};
}
VEC static inline d16s d16s_fma_at(d16s w, const double *x, d16s add) {
    const __m512d b = _mm512_set1_pd(*x);
    return (d16s){
        {_mm512_fmadd_pd(w.set[0], b, add.set[0]), _mm512_fmadd_pd(w.set[1], b, add.set[1])}};
}
VEC static inline d16s d16s_add(d16s a, d16s b) {
    return (d16s){{_mm512_add_pd(a.set[0], b.set[0]), _mm512_add_pd(a.set[1], b.set[1])}};
}
VEC static inline bool f16s_any_nan(f16s v) {
    return (_mm256_cmp_ps_mask(v.set[0], v.set[0], _CMP_UNORD_Q) |
            _mm256_cmp_ps_mask(v.set[1], v.set[1], _CMP_UNORD_Q)) != 0;
}
VEC static inline __m256 clean8(__m256 v) {
    const __mmask8 nan = _mm256_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    const __mmask8 tiny = _mm256_fpclass_ps_mask(v, 0x20); /* denormal */
    v = _mm256_mask_and_ps(v, tiny, v, _mm256_set1_ps(-0.0f));
    return _mm256_mask_mov_ps(v, nan, _mm256_castsi256_ps(_mm256_set1_epi32((int)NUM_F32_NAN)));
}
VEC static inline f16s f16s_clean(f16s v) {
    return (f16s){{clean8(v.set[0]), clean8(v.set[1])}};
}
/* Neither NaN nor denormals. */
VEC static inline bool f16s_plain(f16s v) {
    enum { SPECIAL = 0x81 | 0x20 };
    return (_mm256_fpclass_ps_mask(v.set[0], SPECIAL) |
            _mm256_fpclass_ps_mask(v.set[1], SPECIAL)) == 0;
}
/* Units 0, 1 of both sets: what leaves the chain. */
VEC static inline __m128 f16s_first(f16s v) {
    return _mm_movelh_ps(_mm256_castps256_ps128(v.set[0]), _mm256_castps256_ps128(v.set[1]));
}
/* Both chains down by one engine; the partials enter at the end. */
VEC static inline __m256 chain8(__m256 v, __m128d in) {
    const __m256i pick = _mm256_setr_epi32(2, 3, 4, 5, 6, 7, 0, 0);
    const __m256d shifted = _mm256_castps_pd(_mm256_permutevar8x32_ps(v, pick));
    return _mm256_castpd_ps(_mm256_blend_pd(shifted, _mm256_broadcastsd_pd(in), 8));
}
VEC static inline f16s f16s_chain(f16s v, __m128 in) {
    const __m128d pairs = _mm_castps_pd(in);
    return (f16s){{chain8(v.set[0], pairs), chain8(v.set[1], _mm_unpackhi_pd(pairs, pairs))}};
}

typedef __m512i i16s;
VEC static inline i16s i16s_zero(void) {
    return _mm512_setzero_si512();
}
VEC static inline i16s i16s_madd(const int16_t *w, const int16_t *x, i16s add) {
    int32_t pair;
    memcpy(&pair, x, 4);
    return _mm512_add_epi32(add, _mm512_madd_epi16(_mm512_load_si512(w), _mm512_set1_epi32(pair)));
}
VEC static inline d16s d16s_of_ints(i16s v) {
    return (d16s){{_mm512_cvtepi32_pd(_mm512_castsi512_si256(v)),
                   _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(v, 1))}};
}
VEC static inline f16s f16s_zero(void) {
    return (f16s){{_mm256_setzero_ps(), _mm256_setzero_ps()}};
}
VEC static inline f16s f16s_scale(f16s v, float by) {
    return (f16s){
        {_mm256_mul_ps(v.set[0], _mm256_set1_ps(by)), _mm256_mul_ps(v.set[1], _mm256_set1_ps(by))}};
}
VEC static inline __m256i f16s_halves(f16s v) {
    return _mm256_set_m128i(_mm256_cvtps_ph(v.set[1], NEAREST), _mm256_cvtps_ph(v.set[0], NEAREST));
}
VEC static inline f16s f16s_of_halves(__m256i v) {
    return (f16s){{_mm256_cvtph_ps(_mm256_castsi256_si128(v)),
                   _mm256_cvtph_ps(_mm256_extracti128_si256(v, 1))}};
}

#ifndef ROWS
#define ROWS 2
#endif
#include "tile/tile_amp_body.h"

const struct tile_amp_vec TILE_AMP_AVX512 = {amp_call, {loop_f16, loop_f8, loop_f143}};
#endif
