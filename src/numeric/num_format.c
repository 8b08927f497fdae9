/* Conversions of F16 and F8 through one rounding of an integer significand.
 *
 * A double is taken apart into sign, 53-bit significand and exponent; the target format says where
 * its unit in the last place lies for that magnitude (subnormals included); round_shift cuts the
 * significand there. F32 values reach here as doubles, exactly. Cost: a few nanoseconds a value;
 * the tile model has vector twins for its loops.
 */
#include "numeric/num_format.h"

#include <math.h>
#include <string.h>

const struct num_control NUM_DEFAULT = {NUM_NEAREST, false, false};

struct parts {
    bool negative;
    uint64_t significand; /* value = significand * 2^exponent; 0 for zero */
    int32_t exponent;
};

static struct parts take_apart(double v) {
    uint64_t b;
    memcpy(&b, &v, 8);
    const uint64_t mantissa = b & ((UINT64_C(1) << 52) - 1);
    const int32_t field = (int32_t)(b >> 52) & 0x7ff;
    const bool normal = field != 0;
    return (struct parts){b >> 63, mantissa | (uint64_t)normal << 52, (normal ? field : 1) - 1075};
}

/* What follows one kept unit decides whether it grows: rest * 2^-shift is the discarded fraction. */
static bool rounds_up(uint64_t rest, uint32_t shift, bool odd, bool negative,
                      struct num_control control, uint32_t random) {
    if (rest == 0) return false;
    if (control.stochastic)
        return (random & 0xffff) < (shift >= 16 ? rest >> (shift - 16) : rest << (16 - shift));
    const uint64_t half = UINT64_C(1) << (shift - 1);
    switch (control.round) {
    case NUM_NEAREST: return rest > half || (rest == half && odd);
    case NUM_UP: return !negative;
    case NUM_DOWN: return negative;
    case NUM_ZERO: return false;
    case NUM_AWAY: return rest >= half;
    }
    return false;
}

/* v * 2^-n, n > 0; what is lost sets the last bit. */
static uint64_t shift_sticky(uint64_t v, uint32_t n) {
    if (n > 63) return v != 0;
    return v >> n | ((v & ((UINT64_C(1) << n) - 1)) != 0);
}

/* significand * 2^-shift as an integer. */
static uint64_t round_shift(const struct parts *p, int32_t shift, struct num_control control,
                            uint32_t random) {
    if (shift <= 0) return p->significand << -shift;
    /* Beyond 62 the value is below 2^-9 units, which only stochastic rounding can tell from tiny. */
    const uint32_t s = shift > 62 ? 62 : (uint32_t)shift;
    const uint64_t significand =
        shift > 62 ? shift_sticky(p->significand, (uint32_t)shift - 62) : p->significand;
    const uint64_t kept = significand >> s;
    const uint64_t rest = significand & ((UINT64_C(1) << s) - 1);
    return kept + rounds_up(rest, s, kept & 1, p->negative, control, random);
}

struct format {
    uint32_t mantissa_bits;
    int32_t min_exponent; /* of the smallest normal number */
    uint64_t max_code;    /* largest finite code without sign */
};

/* Code without sign of a finite value, or UINT64_MAX when it is too large. A code grows by one per
 * unit, across binades too, so a carry of the rounding needs no special care. */
static uint64_t encode(const struct parts *p, const struct format *f, struct num_control control,
                       uint32_t random) {
    if (p->significand == 0) return 0;
    const int32_t top = 63 - __builtin_clzll(p->significand) + p->exponent; /* floor(log2) */
    const int32_t e = top > f->min_exponent ? top : f->min_exponent;
    const int32_t unit = e - (int32_t)f->mantissa_bits;
    if (top > f->min_exponent + 64) return UINT64_MAX;
    const uint64_t kept = round_shift(p, unit - p->exponent, control, random);
    const uint64_t code = kept + ((uint64_t)(e - f->min_exponent) << f->mantissa_bits);
    return code > f->max_code ? UINT64_MAX : code;
}

static const struct format F16 = {10, -14, NUM_F16_MAX};
/* Exponent field 0 holds subnormals, so the smallest normal number has field 1. */
static const struct format F8[2] = {{2, -15, NUM_F8_MAX}, {3, -7, NUM_F8_MAX}};

uint16_t num_f16_from_f64(double v, struct num_control control, uint32_t random,
                          uint32_t *flags) {
    if (isnan(v)) return NUM_F16_NAN;
    const struct parts p = take_apart(v);
    uint64_t code = isinf(v) ? UINT64_MAX : encode(&p, &F16, control, random);
    if (code == UINT64_MAX) {
        if (!isinf(v)) *flags |= NUM_OFLO;
        if (control.nan_on_overflow) return NUM_F16_NAN;
        code = NUM_F16_MAX;
    }
    return (uint16_t)(code | (p.negative ? 0x8000 : 0));
}

uint16_t num_f16_from_f32(float v) {
    uint32_t flags = 0;
    return num_f16_from_f64(v, NUM_DEFAULT, 0, &flags);
}

uint16_t num_f16_from_f32_ieee(float v) {
    uint32_t flags = 0;
    if (isinf(v)) return v < 0 ? 0xfc00 : 0x7c00;
    const uint16_t h = num_f16_from_f64(v, NUM_DEFAULT, 0, &flags);
    return flags & NUM_OFLO ? (h & 0x8000) | 0x7c00 : h;
}

double num_f8_to_f64(uint8_t q, enum num_f8_format format, int32_t scale) {
    if (q == NUM_F8_NAN) return (double)num_f32_from_bits(NUM_F32_NAN);
    const struct format *f = &F8[format];
    const uint32_t mantissa = q & ((1u << f->mantissa_bits) - 1);
    const int32_t field = (q & 0x7f) >> f->mantissa_bits;
    const uint32_t significand = mantissa | (field ? 1u << f->mantissa_bits : 0);
    const int32_t e = f->min_exponent + (field ? field - 1 : 0) - (int32_t)f->mantissa_bits;
    const double v = ldexp(significand, e + scale);
    return q & 0x80 ? -v : v;
}

uint8_t num_f8_from_f64(double v, enum num_f8_format format, struct num_control control,
                        uint32_t random, uint32_t *flags) {
    if (isnan(v) || isinf(v)) return NUM_F8_NAN;
    const struct parts p = take_apart(v);
    uint64_t code = encode(&p, &F8[format], control, random);
    if (code == UINT64_MAX) {
        *flags |= NUM_OFLO;
        if (control.nan_on_overflow) return NUM_F8_NAN;
        code = NUM_F8_MAX;
    }
    return code == 0 ? 0 : (uint8_t)(code | (p.negative ? 0x80 : 0));
}

uint8_t num_f8_from_f32(float v, enum num_f8_format format, int32_t scale) {
    uint32_t flags = 0;
    return num_f8_from_f64(ldexp(v, -scale), format, NUM_DEFAULT, 0, &flags);
}

/* Code of a finite value in F32 arithmetic, all of it exact but the one rounding. */
static inline uint8_t f8_code(float v, float factor, float units_of, const struct format *f) {
    uint32_t bits, code;
    const float x = fabsf(v * factor);
    const uint32_t m = f->mantissa_bits;
    memcpy(&bits, &x, 4);
    if (bits < (uint32_t)(127 + f->min_exponent) << 23) { /* subnormal: whole units, to even */
        const float units = x * units_of + 0x1p23f;
        memcpy(&bits, &units, 4);
        code = bits & 0xff;
    } else {
        bits += (1u << (22 - m)) - 1 + (bits >> (23 - m) & 1);
        code = (bits >> (23 - m)) - ((uint32_t)(126 + f->min_exponent) << m);
        code = MIN(code, NUM_F8_MAX); /* infinities of v * factor too */
    }
    return (uint8_t)(code == 0 ? 0 : code | (signbit(v) ? 0x80 : 0));
}

void num_f8_from_f32_n(size_t n, const float *v, enum num_f8_format format, int32_t scale,
                       uint8_t *ret_q) {
    const struct format *f = &F8[format];
    const float factor = ldexpf(1, -scale);
    const float units_of = ldexpf(1, (int)f->mantissa_bits - f->min_exponent);
    for (size_t i = 0; i < n; i++)
        ret_q[i] = isfinite(v[i]) ? f8_code(v[i], factor, units_of, f) : NUM_F8_NAN;
}

void num_f8_to_f32_n(size_t n, const uint8_t *q, enum num_f8_format format, int32_t scale,
                     float *ret_v) {
    float table[256];
    if (n < ARRAY_LEN(table)) {
        for (size_t i = 0; i < n; i++) ret_v[i] = num_f8_to_f32(q[i], format, scale);
        return;
    }
    for (uint32_t i = 0; i < ARRAY_LEN(table); i++)
        table[i] = num_f8_to_f32((uint8_t)i, format, scale);
    for (size_t i = 0; i < n; i++) ret_v[i] = table[q[i]];
}

float num_f32_round(double v) {
    return num_f32_flush((float)v);
}

double num_integral(double v, enum num_round round) {
    switch (round) {
    case NUM_NEAREST: {
        const double down = floor(v), rest = v - down;
        const double up = down + 1;
        if (rest != 0.5) return copysign(rest < 0.5 ? down : up, v);
        return copysign(fmod(down, 2) == 0 ? down : up, v);
    }
    case NUM_UP: return copysign(ceil(v), v);
    case NUM_DOWN: return floor(v);
    case NUM_ZERO: return trunc(v);
    case NUM_AWAY: return copysign(floor(fabs(v) + 0.5), v);
    }
    return v;
}

void num_prng_seed(uint32_t seed, uint64_t ret_state[2]) {
    const uint32_t v = seed, n = ~seed;
    ret_state[0] = (uint64_t)n << 32 | v;
    ret_state[1] = (uint64_t)(n << 13 | v >> 19) << 32 | (v << 13 | n >> 19);
}

static uint64_t rotl(uint64_t v, uint32_t n) {
    return v << n | v >> (64 - n);
}

uint64_t num_prng_next(uint64_t state[2]) {
    const uint64_t x = state[0] ^ state[1], c = state[0] & state[1];
    state[0] = rotl(state[0], 55) ^ x ^ x << 14;
    state[1] = rotl(x, 36);
    return x ^ (rotl(c, 1) | rotl(c, 2));
}

/* --- Arrays: eight at a time through the machine's own conversions where it has them. --- */

static void from_f32_plain(size_t n, const float *v, uint16_t *ret_h) {
    for (size_t i = 0; i < n; i++) ret_h[i] = num_f16_from_f32(v[i]);
}
static void to_f32_plain(size_t n, const uint16_t *h, float *ret_v) {
    for (size_t i = 0; i < n; i++) ret_v[i] = num_f16_to_f32(h[i]);
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

bool num_machine_f16(void) {
    static gint known; /* 1 no, 2 yes: the same value whoever writes it first */
    if (g_atomic_int_get(&known) == 0) {
        uint32_t a, b, c, d;
        __builtin_cpu_init();
        const bool f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
        g_atomic_int_set(&known, f16c && __builtin_cpu_supports("avx") ? 2 : 1);
    }
    return g_atomic_int_get(&known) == 2;
}

/* Infinite and NaN lanes are for the plain code: saturation and the canonical NaN. */
static bool any_special(__m128i h) {
    const __m128i exponent = _mm_set1_epi16(0x7c00);
    return _mm_movemask_epi8(_mm_cmpeq_epi16(_mm_and_si128(h, exponent), exponent)) != 0;
}

__attribute__((target("avx,f16c"))) static void from_f32_f16c(size_t n, const float *v,
                                                              uint16_t *ret_h) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i h = _mm256_cvtps_ph(_mm256_loadu_ps(v + i), _MM_FROUND_TO_NEAREST_INT);
        if (any_special(h))
            from_f32_plain(8, v + i, ret_h + i);
        else
            _mm_storeu_si128((__m128i *)(void *)(ret_h + i), h);
    }
    from_f32_plain(n - i, v + i, ret_h + i);
}

__attribute__((target("avx,f16c"))) static void to_f32_f16c(size_t n, const uint16_t *h,
                                                            float *ret_v) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(h + i));
        if (any_special(v))
            to_f32_plain(8, h + i, ret_v + i);
        else
            _mm256_storeu_ps(ret_v + i, _mm256_cvtph_ps(v));
    }
    to_f32_plain(n - i, h + i, ret_v + i);
}

void num_f16_from_f32_n(size_t n, const float *v, uint16_t *ret_h) {
    (num_machine_f16() ? from_f32_f16c : from_f32_plain)(n, v, ret_h);
}
void num_f16_to_f32_n(size_t n, const uint16_t *h, float *ret_v) {
    (num_machine_f16() ? to_f32_f16c : to_f32_plain)(n, h, ret_v);
}

#else

bool num_machine_f16(void) { return false; }
void num_f16_from_f32_n(size_t n, const float *v, uint16_t *ret_h) { from_f32_plain(n, v, ret_h); }
void num_f16_to_f32_n(size_t n, const uint16_t *h, float *ret_v) { to_f32_plain(n, h, ret_v); }

#endif
