/* F16 lanes through the F32 conversions of x86 (F16C). Other machines have the scalar code alone. */
#include "tile/tile_vec.h"

#include "tile/tile_amp.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <math.h>

#define VEC __attribute__((target("avx2,f16c,fma")))
#include "tile/tile_f143.h"

enum tile_simd tile_simd_best(void) {
    static gint best; /* TILE_SIMD_AUTO: not known yet; the same value whoever writes it first */
    if (g_atomic_int_get(&best) == TILE_SIMD_AUTO) {
        __builtin_cpu_init();
        const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                          num_machine_f16();
        const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512dq") &&
                            __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni");
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
VEC bool tile_vec_f16_acc(float acc[8], const uint32_t h[4]) {
    const __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)h));
    const __m256 sum = _mm256_add_ps(_mm256_loadu_ps(acc), x);
    const __m256i magnitude = _mm256_slli_epi32(_mm256_castps_si256(sum), 1);
    const __m256i exponent = _mm256_srli_epi32(magnitude, 24);
    const __m256i whole = _mm256_cmpeq_epi32(exponent, _mm256_set1_epi32(255));
    const __m256i small = _mm256_andnot_si256(_mm256_cmpeq_epi32(magnitude, _mm256_setzero_si256()),
                                              _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256()));
    const __m256i special = _mm256_or_si256(whole, small);
    if (!_mm256_testz_si256(special, special)) return false;
    _mm256_storeu_ps(acc, sum);
    return true;
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
const int64_t TILE_ROUND_F32[3] = {1, 0x0fffffff, ~INT64_C(0x1fffffff)};

#define S(e, b) ((e) > 0 ? (e)-1 - (b) : -(b))
#define OK(e, b) (S(e, b) >= 0 && S(e, b) <= TILE_F143_LEFT_SHIFT)
#define POWER(e, b) (OK(e, b) ? 1u << (S(e, b) & 15) : 0)
#define LOW(e, b) (uint8_t)(POWER(e, b) & 0xff)
#define HIGH(e, b) (uint8_t)(POWER(e, b) >> 8)
#define BAD(e, b) (OK(e, b) ? 0 : 0xff)
#define SIXTEEN(f, b) {f(0, b), f(1, b), f(2, b), f(3, b), f(4, b), f(5, b), f(6, b), f(7, b), f(8, b), \
                       f(9, b), f(10, b), f(11, b), f(12, b), f(13, b), f(14, b), f(15, b)}
#define BASE(b) {SIXTEEN(LOW, b), SIXTEEN(HIGH, b), SIXTEEN(BAD, b)}
const struct tile_f143_base TILE_F143_BASE[TILE_F143_BASES] = {BASE(0), BASE(1), BASE(2), BASE(3), BASE(4)};

VEC static inline uint32_t largest_code(const __m128i codes[8]) {
    __m128i most = _mm_setzero_si128();
    for (uint32_t i = 0; i < 8; i++)
        most = _mm_max_epu8(most, _mm_and_si128(codes[i], _mm_set1_epi8(0x7f)));
    for (uint32_t k = 8; k != 0; k /= 2) {
        uint8_t b[16];
        _mm_storeu_si128((__m128i *)(void *)b, most);
        for (uint32_t j = 0; j < k; j++) b[j] = b[j] > b[j + k] ? b[j] : b[j + k];
        most = _mm_loadu_si128((const __m128i *)(const void *)b);
    }
    return (uint32_t)_mm_cvtsi128_si32(most) & 0x7f;
}
/* Inputs of a phase with weights that are left out of the integers: those weights alone. */
VEC static inline void rest_note(struct tile_weights *w, uint32_t p, uint32_t i, __m256i left_out, __m128i codes,
                                 double scale) {
    int16_t out[16];
    uint8_t code[16];
    _mm_storeu_si128((__m128i *)(void *)code, codes);
    _mm256_storeu_si256((__m256i *)(void *)out, left_out);
    for (uint32_t u = 0; u < 16; u++)
        w->f143_rest[p][i][u] = out[u] & 0xff ? scale * tile_f8_values(NUM_F143)[code[u]] : 0;
    w->f143_rest_input[p][w->f143_n_rest[p]++] = (uint8_t)i;
}
/* The integers of one phase from its codes [input][unit]; returns the largest magnitude. */
VEC static inline uint32_t phase_ints(const __m128i codes[8], uint32_t p, double scale, struct tile_weights *w) {
    const uint32_t largest = largest_code(codes), base = tile_f143_base(largest, TILE_F143_WEIGHT_SHIFT);
    w->f143_n_rest[p] = 0;
    w->f143_factor[p] = scale * (double)(1 << base) / 1024;
    for (uint32_t j = 0; j < 4; j++) {
        __m256i v[2];
        for (uint32_t h = 0; h < 2; h++) {
            __m256i bad = _mm256_setzero_si256();
            v[h] = tile_f143_ints(_mm256_cvtepu8_epi16(codes[2 * j + h]), &TILE_F143_BASE[base], &bad);
            if (!_mm256_testz_si256(bad, bad)) rest_note(w, p, 2 * j + h, bad, codes[2 * j + h], scale);
        }
        const __m256i lo = _mm256_unpacklo_epi16(v[0], v[1]), hi = _mm256_unpackhi_epi16(v[0], v[1]);
        _mm256_store_si256((__m256i *)(void *)w->f143[p][j][0], _mm256_permute2x128_si256(lo, hi, 0x20));
        _mm256_store_si256((__m256i *)(void *)w->f143[p][j][8], _mm256_permute2x128_si256(lo, hi, 0x31));
    }
    const uint32_t field = largest >> 3;
    return (field ? largest % 8 + 8 : largest) << (field ? field - 1 - base : 0);
}
VEC bool tile_vec_weights_f143(const uint64_t words[64], int32_t scale, struct tile_weights *w) {
    const double factor = ldexp(1, scale);
    uint32_t most = 1;
    for (uint32_t p = 0; p < 4; p++) {
        __m128i codes[8];
        codes_transpose(words + p, codes);
        for (uint32_t i = 0; i < 8; i++)
            if (_mm_movemask_epi8(_mm_cmpeq_epi8(codes[i], _mm_set1_epi8((char)0x80)))) return false;
        const uint32_t largest = phase_ints(codes, p, factor, w);
        if (largest > most) most = largest;
    }
    w->f143_limit = INT32_MAX / most;
    return true;
}
VEC void tile_vec_weights_f143_doubles(const uint64_t words[64], struct tile_weights *w) {
    const double factor = ldexp(1, w->f8_scale);
    for (uint32_t p = 0; p < 4; p++) {
        __m128i codes[8];
        codes_transpose(words + p, codes);
        for (uint32_t i = 0; i < 8; i++) f143_widen(codes[i], factor, w->f8[p][i]);
    }
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
bool tile_vec_f16_acc(float acc[8], const uint32_t h[4]) { return (void)acc, (void)h, false; }
bool tile_vec_weights_f143(const uint64_t words[64], int32_t scale, struct tile_weights *w) { return (void)words, (void)scale, (void)w, false; }
void tile_vec_weights_f143_doubles(const uint64_t words[64], struct tile_weights *w) { (void)words, (void)w; }
bool tile_vec_weights(const uint64_t words[64], double (*ret)[4][16]) { return (void)words, (void)ret, false; }

#endif
