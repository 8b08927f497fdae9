/* The matrix unit on AVX2: four units are one register of floats, one of doubles. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

#define VEC __attribute__((target("avx2,fma,f16c")))

#include "tile/tile_f143.h"

typedef struct {
    __m128 q[4]; /* units 0..3, 4..7 of set 0, then of set 1 */
} f16s;
typedef struct {
    __m256d q[4];
} d16s;

VEC static inline f16s f16s_load(const float *p) {
    return (f16s){
        {_mm_loadu_ps(p), _mm_loadu_ps(p + 4), _mm_loadu_ps(p + 8), _mm_loadu_ps(p + 12)}};
}
VEC static inline void f16s_store(float *p, f16s v) {
    for (uint32_t k = 0; k < 4; k++) _mm_storeu_ps(p + 4 * k, v.q[k]);
}
VEC static inline d16s d16s_of(f16s v) {
    return (d16s){{_mm256_cvtps_pd(v.q[0]), _mm256_cvtps_pd(v.q[1]), _mm256_cvtps_pd(v.q[2]),
                   _mm256_cvtps_pd(v.q[3])}};
}
VEC static inline f16s f16s_of(d16s v) {
    return (f16s){{_mm256_cvtpd_ps(v.q[0]), _mm256_cvtpd_ps(v.q[1]), _mm256_cvtpd_ps(v.q[2]),
                   _mm256_cvtpd_ps(v.q[3])}};
}
/* To the nearest F32, ties to even; for values in the range of normal F32 and zero. */
VEC static inline d16s d16s_round(d16s v) {
    for (uint32_t k = 0; k < 4; k++) {
        const __m256i bits = _mm256_castpd_si256(v.q[k]), odd = _mm256_set1_epi64x(1);
        const __m256i up = _mm256_and_si256(_mm256_srli_epi64(bits, 29), odd);
        const __m256i sum = _mm256_add_epi64(_mm256_add_epi64(bits, _mm256_set1_epi64x(0x0fffffff)), up);
        v.q[k] = _mm256_castsi256_pd(_mm256_and_si256(sum, _mm256_set1_epi64x(~0x1fffffffll)));
    }
    return v;
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
    for (uint32_t k = 0; k < 4; k++)
        r.q[k] = _mm256_fmadd_pd(_mm256_load_pd(w + 4 * k), b, add.q[k]);
    return r;
}
VEC static inline d16s d16s_load(const double *w) {
    return (d16s){
        {_mm256_load_pd(w), _mm256_load_pd(w + 4), _mm256_load_pd(w + 8), _mm256_load_pd(w + 12)}};
}
VEC static inline void d16s_store(double *p, d16s v) {
    for (uint32_t k = 0; k < 4; k++) _mm256_store_pd(p + 4 * k, v.q[k]);
}
VEC static inline d16s d16s_mul_at(d16s w, const double *x) {
    const __m256d b = _mm256_broadcast_sd(x);
    for (uint32_t k = 0; k < 4; k++) w.q[k] = _mm256_mul_pd(w.q[k], b);
    return w;
}
VEC static inline d16s d16s_fma_at(d16s w, const double *x, d16s add) {
    const __m256d b = _mm256_broadcast_sd(x);
    for (uint32_t k = 0; k < 4; k++) w.q[k] = _mm256_fmadd_pd(w.q[k], b, add.q[k]);
    return w;
}
VEC static inline d16s d16s_add(d16s a, d16s b) {
    d16s r;
    for (uint32_t k = 0; k < 4; k++) r.q[k] = _mm256_add_pd(a.q[k], b.q[k]);
    return r;
}
VEC static inline bool f16s_any_nan(f16s v) {
    const __m128 n01 = _mm_cmpunord_ps(v.q[0], v.q[1]), n23 = _mm_cmpunord_ps(v.q[2], v.q[3]);
    return _mm_movemask_ps(_mm_or_ps(n01, n23)) != 0;
}
VEC static inline __m128 clean4(__m128 v) {
    const __m128 nan = _mm_cmpunord_ps(v, v), sign = _mm_and_ps(v, _mm_set1_ps(-0.0f));
    const __m128i exponent = _mm_and_si128(_mm_castps_si128(v), _mm_set1_epi32(0x7f800000));
    const __m128 small = _mm_castsi128_ps(_mm_cmpeq_epi32(exponent, _mm_setzero_si128()));
    v = _mm_blendv_ps(v, sign, small);
    return _mm_blendv_ps(v, _mm_castsi128_ps(_mm_set1_epi32((int)NUM_F32_NAN)), nan);
}
VEC static inline f16s f16s_clean(f16s v) {
    return (f16s){{clean4(v.q[0]), clean4(v.q[1]), clean4(v.q[2]), clean4(v.q[3])}};
}
/* Neither NaN nor denormals. */
VEC static inline bool f16s_plain(f16s v) {
    __m128i same = _mm_set1_epi32(-1);
    for (uint32_t k = 0; k < 4; k++)
        same = _mm_and_si128(
            same, _mm_cmpeq_epi32(_mm_castps_si128(clean4(v.q[k])), _mm_castps_si128(v.q[k])));
    return _mm_movemask_epi8(same) == 0xffff && !f16s_any_nan(v);
}
VEC static inline __m128 f16s_first(f16s v) {
    return _mm_movelh_ps(v.q[0], v.q[2]);
}
/* Both chains down by one engine; the partials enter at the end. */
VEC static inline f16s f16s_chain(f16s v, __m128 in) {
    const __m128d a0 = _mm_castps_pd(v.q[0]), a1 = _mm_castps_pd(v.q[1]);
    const __m128d b0 = _mm_castps_pd(v.q[2]), b1 = _mm_castps_pd(v.q[3]), i = _mm_castps_pd(in);
    return (f16s){
        {_mm_castpd_ps(_mm_shuffle_pd(a0, a1, 1)), _mm_castpd_ps(_mm_shuffle_pd(a1, i, 1)),
         _mm_castpd_ps(_mm_shuffle_pd(b0, b1, 1)), _mm_castpd_ps(_mm_shuffle_pd(b1, i, 3))}};
}

typedef struct {
    __m256i h[2];
} i16s;
VEC static inline i16s i16s_zero(void) {
    return (i16s){{_mm256_setzero_si256(), _mm256_setzero_si256()}};
}
VEC static inline i16s i16s_madd(const int16_t *w, const int16_t *x, i16s add) {
    int32_t pair;
    memcpy(&pair, x, 4);
    for (uint32_t k = 0; k < 2; k++) {
        const __m256i v = _mm256_load_si256((const __m256i *)(const void *)(w + 16 * k));
        add.h[k] = _mm256_add_epi32(add.h[k], _mm256_madd_epi16(v, _mm256_set1_epi32(pair)));
    }
    return add;
}
VEC static inline d16s d16s_of_ints(i16s v) {
    d16s r;
    for (uint32_t k = 0; k < 4; k++)
        r.q[k] = _mm256_cvtepi32_pd(k % 2 ? _mm256_extracti128_si256(v.h[k / 2], 1)
                                          : _mm256_castsi256_si128(v.h[k / 2]));
    return r;
}
VEC static inline f16s f16s_zero(void) {
    const __m128 z = _mm_setzero_ps();
    return (f16s){{z, z, z, z}};
}
VEC static inline f16s f16s_scale(f16s v, float by) {
    for (uint32_t k = 0; k < 4; k++) v.q[k] = _mm_mul_ps(v.q[k], _mm_set1_ps(by));
    return v;
}
VEC static inline __m256i f16s_halves(f16s v) {
    const __m128i lo =
        _mm_unpacklo_epi64(_mm_cvtps_ph(v.q[0], NEAREST), _mm_cvtps_ph(v.q[1], NEAREST));
    const __m128i hi =
        _mm_unpacklo_epi64(_mm_cvtps_ph(v.q[2], NEAREST), _mm_cvtps_ph(v.q[3], NEAREST));
    return _mm256_set_m128i(hi, lo);
}
VEC static inline f16s f16s_of_halves(__m256i v) {
    const __m128i lo = _mm256_castsi256_si128(v), hi = _mm256_extracti128_si256(v, 1);
    return (f16s){{_mm_cvtph_ps(lo), _mm_cvtph_ps(_mm_srli_si128(lo, 8)), _mm_cvtph_ps(hi),
                   _mm_cvtph_ps(_mm_srli_si128(hi, 8))}};
}

/* The left operands of a row as integers of a base (tile_f143.h); false when they are none, or when
 * the magnitudes of those of one call sum up to more than limit. */
VEC static inline bool f143_row_ints(__m256i words, uint32_t base, uint32_t limit, int16_t ret[32]) {
    const struct tile_f143_base *const b = &TILE_F143_BASE[base];
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i bad = _mm256_setzero_si256();
    const __m256i lo = tile_f143_ints(_mm256_cvtepu8_epi16(_mm256_castsi256_si128(words)), b, &bad);
    const __m256i hi = tile_f143_ints(_mm256_cvtepu8_epi16(_mm256_extracti128_si256(words, 1)), b, &bad);
    _mm256_store_si256((__m256i *)(void *)ret, lo);
    _mm256_store_si256((__m256i *)(void *)(ret + 16), hi);
    const __m256i pairs = _mm256_hadd_epi32(_mm256_madd_epi16(_mm256_abs_epi16(lo), ones),
                                            _mm256_madd_epi16(_mm256_abs_epi16(hi), ones));
    const __m256i sums = _mm256_hadd_epi32(pairs, pairs);
    const __m256i over = _mm256_cmpgt_epi32(sums, _mm256_set1_epi32((int)limit));
    return _mm256_testz_si256(bad, bad) && _mm256_testz_si256(over, over);
}

#define ROWS 1
#include "tile/tile_amp_body.h"

const struct tile_amp_vec TILE_AMP_AVX2 = {
    amp_call, {loop_f16, loop_f8, loop_f143}, {rows_of_f16, rows_of_f8, rows_of_f143},
    tile_vec_weights_f143};
#endif
