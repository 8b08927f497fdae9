/* A second definition of the worker's instructions, for tests: written from the sheets isa 1 to 5 and
 * their appendix B, for clarity alone, and sharing nothing with src/tile or src/numeric. Operands are
 * taken in assembly order; what an instruction is, is read off its mnemonic.
 *
 * Numbers: F16 and F8 by search among the values of all codes, F32 through long double and
 * __float128, integers in 64 bits, permutations as strings of bytes. */
#ifndef IPU_TESTS_ORACLE_H
#define IPU_TESTS_ORACLE_H

#include "../half_oracle.h"
#include "isa/isa_form.h"

#include <string.h>

enum { O_INV = 1, O_DIV0 = 2, O_OFLO = 4 };

/* A worker and what it shares. Loads read `memory`; a store is only noted. */
struct oracle {
    uint32_t m[16], a[16];
    uint32_t aacc[32]; /* AACC[0..31], bits of F32 */
    uint32_t sts, ctl, nfmt, scl, tas;
    uint64_t prng[2], cwei[64]; /* $CWEI_m_n at 4m + n */
    uint32_t pc, npc, wsr, dbg_data, dbg_brk_id, count, first, end;
    uint32_t cycle;
    bool exited, boolean;
    bool window;   /* the matrix unit's model B (isa 4.7) */
    bool loose;    /* results may be one code away: functions in directed modes */
    uint32_t slots;
    const uint8_t *memory; /* from `memory_base` on */
    uint32_t memory_base;
    uint32_t store_at, store_bytes;
    uint8_t store[8];
};

/* One instruction of it. */
struct step {
    const struct isa_form *f;
    const char *name;
    int64_t v[ISA_MAX_OPERANDS]; /* register numbers, immediates */
};

static inline const struct isa_class_info *class_of(const struct step *x, uint32_t k) {
    return &isa_classes[x->f->operand[k].class];
}
static inline bool is_class(const struct step *x, uint32_t k, uint32_t class) {
    return k < x->f->n_operands && x->f->operand[k].class == class;
}
static inline bool named(const struct step *x, const char *name) { return strcmp(x->name, name) == 0; }
static inline bool starts(const struct step *x, const char *s) { return g_str_has_prefix(x->name, s); }
static inline bool ends(const struct step *x, const char *s) { return g_str_has_suffix(x->name, s); }

/* Value of a single register or an immediate. */
static inline uint32_t value(const struct oracle *s, const struct step *x, uint32_t k) {
    const struct isa_class_info *c = class_of(x, k);
    if (!c->reg) return (uint32_t)x->v[k];
    return c->file == 'M' ? s->m[x->v[k]] : s->a[x->v[k]];
}
/* Register n of the group that operand k names. */
static inline uint32_t group(const struct oracle *s, const struct step *x, uint32_t k, uint32_t n) {
    return s->a[x->v[k] + n];
}
/* What does not keep a value ($m12.., $a8..) stays as it is (isa 2.1). */
static inline void set_m(struct oracle *s, int64_t r, uint32_t v) {
    if (r < 12) s->m[r] = v;
}
static inline void set_a(struct oracle *s, int64_t r, uint32_t v) {
    if (r < 8) s->a[r] = v;
}
static inline void result(struct oracle *s, const struct step *x, uint32_t v) {
    (class_of(x, 0)->file == 'M' ? set_m : set_a)(s, x->v[0], v);
}

/* --- Formats. --- */

static inline float f32_of(uint32_t b) {
    float v;
    memcpy(&v, &b, 4);
    return v;
}
static inline uint32_t bits_of(float v) {
    uint32_t b;
    memcpy(&b, &v, 4);
    return b;
}
/* Denormals are zeros of their sign; there is one NaN (isa 3.7). */
static inline float flushed(float v) {
    if (v != v) return f32_of(0x7fc00000);
    return fpclassify(v) == FP_SUBNORMAL ? copysignf(0, v) : v;
}
static inline float single(uint32_t b) { return flushed(f32_of(b)); }
static inline uint32_t single_bits(long double v) { return bits_of(flushed((float)v)); }

/* Value of a code without sign, format 0 F152, 1 F143, 2 F16; one past the largest code gives what
 * would follow it. */
static inline double code_value(uint32_t format, uint32_t code) {
    if (format == 2) return code == 0x7c00 ? 65536 : half_value((uint16_t)code);
    const int man = format ? 3 : 2, bias = format ? 8 : 16;
    const int e = (int)code >> man, m = (int)code & ((1 << man) - 1);
    return e == 0 ? ldexp((double)m / (1 << man), 1 - bias) : ldexp(1 + (double)m / (1 << man), e - bias);
}

/* Code without sign of |v|, or `past`, the first one that does not exist. */
static inline uint32_t search_code(uint32_t format, double v, uint32_t past, uint32_t ctl, uint32_t random) {
    const double a = fabs(v);
    uint32_t lo = 0, hi = past;
    if (a >= code_value(format, past)) return past;
    while (hi - lo > 1) {
        const uint32_t middle = (lo + hi) / 2;
        *(code_value(format, middle) <= a ? &lo : &hi) = middle;
    }
    const double below = code_value(format, lo), fraction = (a - below) / (code_value(format, hi) - below);
    if (fraction == 0) return lo;
    if (ctl >> 19 & 1) return random < (uint32_t)floor(fraction * 65536) ? hi : lo;
    switch (ctl >> 16 & 7) {
    case 0: return fraction > 0.5 || (fraction == 0.5 && lo % 2 == 1) ? hi : lo;
    case 1: return v > 0 ? hi : lo;
    case 2: return v < 0 ? hi : lo;
    case 4: return fraction >= 0.5 ? hi : lo;
    default: return lo;
    }
}

/* isa B.5: rounding to F16 with RND, ESR and NANOO; sets OFLO. */
static inline uint32_t round_half(struct oracle *s, double v, uint32_t random) {
    if (v != v) return 0x7e00;
    const uint32_t sign = signbit(v) ? 0x8000 : 0;
    const uint32_t code = isinf(v) ? 0x7c00 : search_code(2, v, 0x7c00, s->ctl, random & 0xffff);
    if (code < 0x7c00) return sign | code;
    if (!isinf(v)) s->sts |= O_OFLO;
    return s->ctl >> 20 & 1 ? 0x7e00 : sign | 0x7bff;
}
/* isa B.6. */
static inline uint32_t round_f8(struct oracle *s, double v, uint32_t format, uint32_t random) {
    if (v != v || isinf(v)) return 0x80;
    const uint32_t code = search_code(format, v, 0x80, s->ctl, random & 0xffff);
    if (code == 0x80) s->sts |= O_OFLO;
    if (code == 0x80 && s->ctl >> 20 & 1) return 0x80;
    const uint32_t finite = code == 0x80 ? 0x7f : code;
    return finite == 0 ? 0 : finite | (v < 0 ? 0x80 : 0);
}
static inline double f8_value(uint32_t q, uint32_t format) {
    if (q == 0x80) return (double)NAN;
    const double v = code_value(format, q & 0x7f);
    return q & 0x80 ? -v : v;
}

/* --- The generator (isa 3.14), on halves of 32 bits written out. --- */

static inline uint64_t turned(uint64_t v, int n) {
    uint64_t r = 0;
    for (int k = 0; k < 64; k++) r |= (v >> k & 1) << (k + n) % 64;
    return r;
}
static inline uint64_t draw(struct oracle *s) {
    const uint64_t s0 = s->prng[0], s1 = s->prng[1], x = s0 ^ s1, c = s0 & s1;
    s->prng[0] = turned(s0, 55) ^ x ^ (x * 16384);
    s->prng[1] = turned(x, 36);
    return x ^ (turned(c, 1) | turned(c, 2));
}
/* Bits for the roundings of one instruction. */
static inline uint64_t draw_rounding(struct oracle *s) { return s->ctl >> 19 & 1 ? draw(s) : 0; }

/* --- F32 with one rounding of an exact sum. --- */

/* Nearest F32 to a + b + c, all exact in 113 bits; ties to even. */
static inline float exact_sum(__float128 a, __float128 b, __float128 c) {
    const __float128 t = a + b, s = t + c;
    if (s != s || s - s != 0) return flushed((float)s);
    const __float128 tb = t - a, lost_t = (a - (t - tb)) + (b - tb);
    const __float128 sb = s - t, lost = (t - (s - sb)) + (c - sb) + lost_t;
    const float f = (float)s;
    if (lost == 0 || isinf(f)) return flushed(f);
    /* A tie of what is left of the sum, or a value just beside one, is decided by what was lost. */
    const float up = nextafterf(f, INFINITY), down = nextafterf(f, -INFINITY);
    if (s == ((__float128)f + (__float128)up) / 2 && lost > 0) return flushed(up);
    if (s == ((__float128)f + (__float128)down) / 2 && lost < 0) return flushed(down);
    return flushed(f);
}
#define NEUTRAL ((__float128)-0.0) /* adds nothing, to minus zero either */
static inline float fused(float x, float y, float acc) {
    return exact_sum((__float128)x * (__float128)y, NEUTRAL, (__float128)acc);
}

#endif
