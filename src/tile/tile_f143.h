/* tile_f143: sums of products of F143 numbers in integers. Not for other rooms.
 *
 * An F143 number is a multiple of 2^-10 below 2^8: 18 bits and a sign. Left operands mostly fit in
 * 15 bits and weights in 14, counted from a power of two that suits them, and then vpmaddwd adds
 * eight products exactly where doubles need eight multiplications of half as many lanes. All of it
 * is exact, so the sums are those of the model (isa 4.7) whatever the order: left    2^-10 << b
 * times 16-bit integers; a row for which no b in 0..3 is exact goes through doubles; weights the
 * same with one b per phase; those that are too small for it are left out of the integers and added
 * as doubles (`rest`), inputs that have such weights being listed; range   the magnitudes of eight
 * left operands and the largest weight say that 32 bits hold the sum. A sum of products that is
 * zero counts as +0, while the model has -0 when all products are; the two differ only when added
 * to -0, so rows with a partial of -0 go through doubles.
 *
 * The includer defines VEC, the function attribute that selects the instruction set. */
#ifndef IPU_TILE_TILE_F143_H
#define IPU_TILE_TILE_F143_H

#include <immintrin.h>
#include <stdbool.h>
#include <stdint.h>

enum { TILE_F143_LEFT_SHIFT = 11, TILE_F143_WEIGHT_SHIFT = 10, TILE_F143_BASES = 5 };

/* By exponent field: 2^s, s = max(field, 1) - 1 - b, in two bytes; 0 and marked bad when s is not
 * in 0..TILE_F143_LEFT_SHIFT. */
struct tile_f143_base {
    uint8_t low[16], high[16], bad[16];
};
extern const struct tile_f143_base TILE_F143_BASE[TILE_F143_BASES];

/* Sixteen codes in 16 bits each to integers; *io_bad gets bits set where a code is no integer (then
 * 0). */
VEC static inline __m256i tile_f143_ints(__m256i codes, const struct tile_f143_base *b,
                                         __m256i *io_bad) {
    const __m256i low =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)b->low));
    const __m256i high =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)b->high));
    const __m256i bad =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)b->bad));
    const __m256i field = _mm256_and_si256(_mm256_srli_epi16(codes, 3), _mm256_set1_epi16(15));
    const __m256i index = _mm256_or_si256(field, _mm256_set1_epi16((short)0x8000));
    const __m256i above = _mm256_or_si256(_mm256_slli_epi16(field, 8), _mm256_set1_epi16(0x80));
    const __m256i power =
        _mm256_or_si256(_mm256_shuffle_epi8(low, index), _mm256_shuffle_epi8(high, above));
    const __m256i subnormal = _mm256_cmpeq_epi16(field, _mm256_setzero_si256());
    const __m256i leading = _mm256_andnot_si256(subnormal, _mm256_set1_epi16(8));
    const __m256i digits = _mm256_or_si256(_mm256_and_si256(codes, _mm256_set1_epi16(7)), leading);
    const __m256i zero = _mm256_cmpeq_epi16(digits, _mm256_setzero_si256());
    *io_bad = _mm256_or_si256(*io_bad, _mm256_andnot_si256(zero, _mm256_shuffle_epi8(bad, index)));
    return _mm256_sign_epi16(_mm256_mullo_epi16(digits, power),
                             _mm256_or_si256(_mm256_slli_epi16(codes, 8), _mm256_set1_epi16(1)));
}

/* The smallest base that holds the largest of the codes (sign bits clear), given the largest shift.
 */
static inline uint32_t tile_f143_base(uint32_t largest, uint32_t shift) {
    const uint32_t field = largest >> 3;
    return field > shift + 1 ? field - 1 - shift : 0;
}

#endif
