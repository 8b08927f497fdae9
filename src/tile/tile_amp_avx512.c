/* The matrix unit on AVX-512: a set is one register of floats, one of doubles. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

enum { NEAREST = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC };

#define VEC __attribute__((target("avx512f,avx512dq,avx512vl,avx512bw,avx512vnni,avx2,fma,f16c")))

#include "tile/tile_f143.h"

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
/* To the nearest F32, ties to even; for values in the range of normal F32 and zero. Constants come from
 * memory: broadcasting them from other registers is what compilers prefer and processors do not. */
VEC static inline __m512d round8(__m512d v) {
    const __m512i bits = _mm512_castpd_si512(v);
    const __m512i up = _mm512_and_si512(_mm512_srli_epi64(bits, 29), _mm512_set1_epi64(TILE_ROUND_F32[0]));
    const __m512i sum = _mm512_add_epi64(_mm512_add_epi64(bits, _mm512_set1_epi64(TILE_ROUND_F32[1])), up);
    return _mm512_castsi512_pd(_mm512_and_si512(sum, _mm512_set1_epi64(TILE_ROUND_F32[2])));
}
VEC static inline d16s d16s_round(d16s v) {
    return (d16s){{round8(v.set[0]), round8(v.set[1])}};
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
    return _mm512_dpwssd_epi32(add, _mm512_load_si512(w), _mm512_set1_epi32(pair));
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

/* The integers of the codes without sign, by base; INT16_MIN: none (tile_f143.h). */
enum { NO_INT = INT16_MIN };
#define DIGITS(c) ((c) >= 8 ? ((c) % 8) + 8 : (c))
#define SHIFT(c, b) (((c) >= 16 ? (c) / 8 - 1 : 0) - (b))
#define INTEGER(c, b) (int16_t)((c) == 0 ? 0 : SHIFT(c, b) < 0 || SHIFT(c, b) > TILE_F143_LEFT_SHIFT ? NO_INT \
                                : DIGITS(c) << (SHIFT(c, b) & 15))
#define EIGHT(c, b) INTEGER(c, b), INTEGER((c) + 1, b), INTEGER((c) + 2, b), INTEGER((c) + 3, b), \
                    INTEGER((c) + 4, b), INTEGER((c) + 5, b), INTEGER((c) + 6, b), INTEGER((c) + 7, b)
#define ROW_OF_CODES(c, b) EIGHT(c, b), EIGHT((c) + 8, b), EIGHT((c) + 16, b), EIGHT((c) + 24, b)
#define INTEGERS(b) {ROW_OF_CODES(0, b), ROW_OF_CODES(32, b), ROW_OF_CODES(64, b), ROW_OF_CODES(96, b)}
static const int16_t F143_INTEGER[TILE_F143_BASES][128] __attribute__((aligned(64))) = {
    INTEGERS(0), INTEGERS(1), INTEGERS(2), INTEGERS(3), INTEGERS(4)};

/* The left operands of a row as integers of a base (tile_f143.h); false when they are none, or when
 * the magnitudes of those of one call sum up to more than limit. */
VEC static inline bool f143_row_ints(__m256i words, uint32_t base, uint32_t limit, int16_t ret[32]) {
    const int16_t *const t = F143_INTEGER[base];
    const __m512i code = _mm512_cvtepu8_epi16(words);
    const __m512i small = _mm512_permutex2var_epi16(_mm512_load_si512(t), code, _mm512_load_si512(t + 32));
    const __m512i large =
        _mm512_permutex2var_epi16(_mm512_load_si512(t + 64), code, _mm512_load_si512(t + 96));
    const __m512i v =
        _mm512_mask_blend_epi16(_mm512_test_epi16_mask(code, _mm512_set1_epi16(0x40)), small, large);
    const __mmask32 bad = _mm512_cmpeq_epi16_mask(v, _mm512_set1_epi16(NO_INT));
    const __m512i twos = _mm512_madd_epi16(v, _mm512_set1_epi16(1));
    const __m512i fours = _mm512_add_epi32(twos, _mm512_shuffle_epi32(twos, _MM_PERM_CDAB));
    const __m512i sums = _mm512_add_epi32(fours, _mm512_shuffle_epi32(fours, _MM_PERM_BADC));
    const __mmask16 over = _mm512_cmpgt_epi32_mask(sums, _mm512_set1_epi32((int)limit));
    const __mmask32 negative = _mm512_test_epi16_mask(code, _mm512_set1_epi16(0x80));
    _mm512_store_si512(ret, _mm512_mask_sub_epi16(v, negative, _mm512_setzero_si512(), v));
    return bad == 0 && over == 0;
}

#define ROWS 4
#include "tile/tile_amp_body.h"

/* --- F143 weights as integers (tile_f143.h). --- */

/* The largest code of each phase, signs clear, from those of all units. */
VEC static inline void phases_largest(__m256i most, uint32_t ret[4]) {
    uint64_t v[4];
    most = _mm256_max_epu8(most, _mm256_srli_epi64(most, 32));
    most = _mm256_max_epu8(most, _mm256_srli_epi64(most, 16));
    most = _mm256_max_epu8(most, _mm256_srli_epi64(most, 8));
    _mm256_storeu_si256((__m256i *)(void *)v, most);
    for (uint32_t p = 0; p < 4; p++) ret[p] = v[p] & 0x7f;
}
/* A unit's 32 codes, eight a phase, as integers of their phase's base; *ret_bad: bit 8 * phase + input
 * where the code is none (then 0). */
VEC static inline __m512i unit_ints(__m256i codes, __m512i bases, uint32_t *ret_bad) {
    const __m512i code = _mm512_cvtepu8_epi16(codes), one = _mm512_set1_epi16(1);
    const __m512i field = _mm512_and_si512(_mm512_srli_epi16(code, 3), _mm512_set1_epi16(15));
    const __m512i leading = _mm512_slli_epi16(_mm512_min_epu16(field, one), 3);
    const __m512i digits = _mm512_or_si512(_mm512_and_si512(code, _mm512_set1_epi16(7)), leading);
    const __m512i shift = _mm512_sub_epi16(_mm512_sub_epi16(_mm512_max_epu16(field, one), one), bases);
    const __m512i v = _mm512_sllv_epi16(digits, shift); /* 0 for shifts below 0 */
    *ret_bad = _mm512_movepi16_mask(shift) & _mm512_test_epi16_mask(digits, digits);
    return _mm512_mask_sub_epi16(v, _mm512_test_epi16_mask(code, _mm512_set1_epi16(0x80)),
                                 _mm512_setzero_si512(), v);
}
/* Sixteen rows of sixteen 32-bit words to columns. */
VEC static inline void transpose16(__m512i *v) {
    __m512i t[16];
    UNROLL
    for (uint32_t k = 0; k < 16; k += 2) {
        t[k] = _mm512_unpacklo_epi32(v[k], v[k + 1]);
        t[k + 1] = _mm512_unpackhi_epi32(v[k], v[k + 1]);
    }
    UNROLL
    for (uint32_t k = 0; k < 16; k += 4) {
        v[k] = _mm512_unpacklo_epi64(t[k], t[k + 2]);
        v[k + 1] = _mm512_unpackhi_epi64(t[k], t[k + 2]);
        v[k + 2] = _mm512_unpacklo_epi64(t[k + 1], t[k + 3]);
        v[k + 3] = _mm512_unpackhi_epi64(t[k + 1], t[k + 3]);
    }
    UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        const __m512i a = _mm512_shuffle_i32x4(v[k], v[k + 4], 0x88);
        const __m512i b = _mm512_shuffle_i32x4(v[k], v[k + 4], 0xdd);
        const __m512i c = _mm512_shuffle_i32x4(v[k + 8], v[k + 12], 0x88);
        const __m512i d = _mm512_shuffle_i32x4(v[k + 8], v[k + 12], 0xdd);
        t[k] = _mm512_shuffle_i32x4(a, c, 0x88);
        t[k + 4] = _mm512_shuffle_i32x4(b, d, 0x88);
        t[k + 8] = _mm512_shuffle_i32x4(a, c, 0xdd);
        t[k + 12] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    UNROLL
    for (uint32_t k = 0; k < 16; k++) v[k] = t[k];
}
/* Inputs of which units have bad codes: those weights alone. */
VEC static void rest_list(const uint64_t words[64], const uint32_t bad[16], double scale, struct tile_weights *w) {
    uint32_t any = 0;
    for (uint32_t u = 0; u < 16; u++) any |= bad[u];
    for (; any != 0; any &= any - 1) {
        const uint32_t k = (uint32_t)__builtin_ctz(any), p = k / 8, i = k % 8;
        for (uint32_t u = 0; u < 16; u++) {
            const uint8_t code = (uint8_t)(words[4 * u + p] >> 8 * i);
            w->f143_rest[p][i][u] = (bad[u] >> k & 1) ? scale * tile_f8_values(NUM_F143)[code] : 0;
        }
        w->f143_rest_input[p][w->f143_n_rest[p]++] = (uint8_t)i;
    }
}
VEC static bool weights_f143(const uint64_t words[64], int32_t scale, struct tile_weights *w) {
    const __m256i *const unit = (const __m256i *)(const void *)words;
    const __m256i sign = _mm256_set1_epi8((char)0x80);
    __m256i most = _mm256_setzero_si256();
    __mmask32 nan = 0;
    for (uint32_t u = 0; u < 16; u++) {
        const __m256i codes = _mm256_loadu_si256(&unit[u]);
        nan |= _mm256_cmpeq_epi8_mask(codes, sign);
        most = _mm256_max_epu8(most, _mm256_andnot_si256(sign, codes));
    }
    if (nan != 0) return false;
    const double factor = ldexp(1, scale);
    uint32_t largest[4], bad[16], limit = 1;
    int16_t bases[32] __attribute__((aligned(64)));
    phases_largest(most, largest);
    for (uint32_t p = 0; p < 4; p++) {
        const uint32_t base = tile_f143_base(largest[p], TILE_F143_WEIGHT_SHIFT), field = largest[p] >> 3;
        for (uint32_t i = 0; i < 8; i++) bases[8 * p + i] = (int16_t)base;
        w->f143_factor[p] = factor * (double)(1 << base) / 1024;
        w->f143_n_rest[p] = 0;
        const uint32_t value = (field ? largest[p] % 8 + 8 : largest[p]) << (field ? field - 1 - base : 0);
        if (value > limit) limit = value;
    }
    __m512i v[16];
    UNROLL
    for (uint32_t u = 0; u < 16; u++)
        v[u] = unit_ints(_mm256_loadu_si256(&unit[u]), _mm512_load_si512(bases), &bad[u]);
    rest_list(words, bad, factor, w);
    transpose16(v);
    for (uint32_t k = 0; k < 16; k++) _mm512_store_si512(w->f143[k / 4][k % 4], v[k]);
    w->f143_limit = INT32_MAX / limit;
    return true;
}

const struct tile_amp_vec TILE_AMP_AVX512 = {
    amp_call, {loop_f16, loop_f8, loop_f143}, {rows_of_f16, rows_of_f8, rows_of_f143}, weights_f143};
#endif
