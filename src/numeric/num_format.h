/* num_format: the number formats of the machine and their roundings, bit for bit.
 *
 * In/out: F16 as uint16_t, F8 as uint8_t in the formats F143 and F152 (isa 5.1), F32 as float,
 *       exact intermediate values as double.
 * Exactness: every function is defined on all inputs; conversions work in integer code, so that no
 *       compiler switch and no host mode changes a bit (except num_f32_round, which rounds by the
 *       host's conversion from double to float, nearest even).
 * Flags: ORed into *flags: NUM_INV, NUM_DIV0, NUM_OFLO as in $FP_STS.
 * Overflow: the device has no F16 infinity result: a finite value that is too large, or an infinite
 *       one, gives NaN with nan_on_overflow and the largest finite value without (isa B.5).
 * Threads: pure functions. Errors: none.
 * Facts: isa 2.4, 3.7 to 3.9, 3.14, 5, B.5, B.6.
 */
#ifndef IPU_NUMERIC_NUM_FORMAT_H
#define IPU_NUMERIC_NUM_FORMAT_H

#include "base/base.h"

#include <string.h>

enum { NUM_INV = 1, NUM_DIV0 = 2, NUM_OFLO = 4 };
enum { NUM_F16_NAN = 0x7e00, NUM_F16_MAX = 0x7bff, NUM_F8_NAN = 0x80, NUM_F8_MAX = 0x7f };
#define NUM_F32_NAN 0x7fc00000u

/* $FP_CTL.RND and the modes of f32int (isa 2.4, 3.7). */
enum num_round { NUM_NEAREST, NUM_UP, NUM_DOWN, NUM_ZERO, NUM_AWAY };
enum num_f8_format { NUM_F152 = 0, NUM_F143 = 1 }; /* as in $FP_NFMT */

struct num_control {
    enum num_round round;
    bool stochastic;      /* ESR: F16 and F8 results only */
    bool nan_on_overflow; /* NANOO */
};
/* Nearest even, saturating: what kernels use unless they say otherwise. */
extern const struct num_control NUM_DEFAULT;

static inline uint32_t num_f32_bits(float v) {
    uint32_t b;
    memcpy(&b, &v, 4);
    return b;
}
static inline float num_f32_from_bits(uint32_t b) {
    float v;
    memcpy(&v, &b, 4);
    return v;
}

/* Exact. NaN gives the canonical NaN. */
static inline float num_f16_to_f32(uint16_t h) {
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t exponent = (h >> 10) & 31, mantissa = h & 0x3ff;
    if (exponent == 31) return num_f32_from_bits(mantissa ? NUM_F32_NAN : sign | 0x7f800000);
    if (exponent != 0) return num_f32_from_bits(sign | (exponent + 112) << 23 | mantissa << 13);
    return num_f32_from_bits(sign | num_f32_bits((float)mantissa * 0x1p-24f));
}
static inline bool num_f16_is_nan(uint16_t h) { return (h & 0x7fff) > 0x7c00; }
/* The value rounded once. `random` (16 bits) is used when control.stochastic: one ulp is added to
 * the truncated magnitude when random < floor(discarded fraction * 65536). */
uint16_t num_f16_from_f64(double v, struct num_control control, uint32_t random, uint32_t *flags);
/* Nearest even, saturating, flags dropped. */
uint16_t num_f16_from_f32(float v);
/* Nearest even with the infinities of IEEE 754, for files and host data; NaN is canonical. */
uint16_t num_f16_from_f32_ieee(float v);

/* Exact value of a code; 0x80 gives NaN. Times 2^scale. */
double num_f8_to_f64(uint8_t q, enum num_f8_format format, int32_t scale);
/* Rounds v (scale already applied). NaN and infinity give 0x80; there is no minus zero. */
uint8_t num_f8_from_f64(double v, enum num_f8_format format, struct num_control control,
                        uint32_t random, uint32_t *flags);
/* round(v * 2^-scale), nearest even, saturating: the stored code of a tensor value whose metadata
 * scale is `scale` (isa 5.2). */
uint8_t num_f8_from_f32(float v, enum num_f8_format format, int32_t scale);
static inline float num_f8_to_f32(uint8_t q, enum num_f8_format format, int32_t scale) {
    return (float)num_f8_to_f64(q, format, scale);
}

/* F32 as the tile has it: nearest even, denormals flushed to zero with their sign, NaN canonical. */
float num_f32_round(double v);
/* Denormals to signed zero, NaN canonical; everything else unchanged. */
static inline float num_f32_flush(float v) {
    const uint32_t b = num_f32_bits(v);
    if ((b & 0x7f800000) == 0) return num_f32_from_bits(b & 0x80000000);
    if ((b & 0x7fffffff) > 0x7f800000) return num_f32_from_bits(NUM_F32_NAN);
    return v;
}
/* Integral value in the given mode; v finite. */
double num_integral(double v, enum num_round round);

/* xoroshiro128aox, one per worker (isa 3.14). */
void num_prng_seed(uint32_t seed, uint64_t ret_state[2]); /* as a write of $PRNG_SEED */
uint64_t num_prng_next(uint64_t state[2]);

/* Whether the machine converts between F16 and F32 itself (x86: AVX and F16C). */
bool num_machine_f16(void);
/* Whole arrays, nearest even, saturating. */
void num_f16_from_f32_n(size_t n, const float *v, uint16_t *ret_h);
void num_f16_to_f32_n(size_t n, const uint16_t *h, float *ret_v);
void num_f8_from_f32_n(size_t n, const float *v, enum num_f8_format format, int32_t scale,
                       uint8_t *ret_q);
void num_f8_to_f32_n(size_t n, const uint8_t *q, enum num_f8_format format, int32_t scale,
                     float *ret_v);

#endif
