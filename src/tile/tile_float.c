/* F16 and F32 lane arithmetic, comparisons, minima, classes (isa 3.7, 3.8, 3.13).
 *
 * F16: every sum and product of two F16 numbers is exact in binary64, so a lane is one exact value
 * rounded once by num_f16_from_f64. F32: the host's own IEEE operations between flushes of denormals.
 * A result that is NaN although no source is one raises INV, a finite one too large OFLO.
 * Comparisons raise nothing (not public). */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#include <math.h>

void tile_fast_update(struct tile_exec *e) {
    if (e->w == NULL) return;
    const struct num_control c = tile_control(e->w);
    const enum tile_simd simd = e->t->config->simd;
    e->vec = e->t->config->amp_model == TILE_AMP_EXACT ? tile_amp_vec(simd) : NULL;
    e->fast = c.round == NUM_NEAREST && !c.stochastic && simd != TILE_SIMD_SCALAR &&
              tile_simd_best() != TILE_SIMD_SCALAR;
}

uint64_t tile_random(struct tile_exec *e) {
    if (e->w->prng_defined != 15) tile_raise(e, TILE_FAULT_PRNG_UNSEEDED, 0, 0);
    return num_prng_next(e->w->prng);
}

uint64_t tile_random_bits(struct tile_exec *e) {
    return tile_control(e->w).stochastic ? tile_random(e) : 0;
}

/* --- F16. --- */

enum source { PLAIN, LOWER, UPPER }; /* :BL, :BU */

static inline uint64_t pair_of(const uint32_t *a) {
    return a[0] | (uint64_t)a[1] << 32;
}

/* First source of n lanes as four lanes; lanes that do not exist are 0. */
static inline uint64_t first_source(const struct tile_exec *e, uint32_t s, uint32_t n,
                                    enum source kind) {
    if (kind == PLAIN) return n == 2 ? e->a[s] : pair_of(&e->a[s]);
    const uint64_t h = kind == LOWER ? e->a[s] & 0xffff : e->a[s] >> 16;
    return h * (n == 2 ? UINT64_C(0x10001) : UINT64_C(0x0001000100010001));
}
static inline uint64_t second_source(const struct tile_exec *e, uint32_t s, uint32_t n) {
    return n == 2 ? e->a[s] : pair_of(&e->a[s]);
}
static inline void put_lanes(struct tile_exec *e, uint64_t lanes) {
    e->r[0] = (uint32_t)lanes;
    e->r[1] = (uint32_t)(lanes >> 32);
}
static inline uint16_t lane(uint64_t lanes, uint32_t k) { return (uint16_t)(lanes >> 16 * k); }

enum f16_op { ADD, SUB, MUL, ABSADD };

static double f16_value(enum f16_op op, double x, double y) {
    switch (op) {
    case ADD: return x + y;
    case SUB: return x - y;
    case MUL: return x * y;
    case ABSADD: return fabs(x) + fabs(y);
    }
    return 0;
}

static void f16_slow(struct tile_exec *e, uint32_t n, uint64_t x, uint64_t y, enum f16_op op) {
    const struct num_control control = tile_control(e->w);
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    uint64_t result = 0;
    for (uint32_t k = 0; k < n; k++) {
        const double a = num_f16_to_f32(lane(x, k)), b = num_f16_to_f32(lane(y, k));
        const double v = f16_value(op, a, b);
        if (isnan(v) && !isnan(a) && !isnan(b)) flags |= NUM_INV;
        const uint16_t h = num_f16_from_f64(v, control, lane(random, k), &flags);
        result |= (uint64_t)h << 16 * k;
    }
    put_lanes(e, result);
    tile_fp_flags(e, flags);
}

static inline void f16_arith(struct tile_exec *e, uint32_t n, uint64_t x, uint64_t y,
                             enum f16_op op) {
    uint64_t result;
    const bool done = e->fast && (op == ADD   ? tile_vec_f16_add(x, y, &result)
                                  : op == SUB ? tile_vec_f16_sub(x, y, &result)
                                  : op == MUL ? tile_vec_f16_mul(x, y, &result)
                                              : tile_vec_f16_absadd(x, y, &result));
    if (done)
        put_lanes(e, result);
    else
        f16_slow(e, n, x, y, op);
}

#define F16_FORM(id, n, op, kind)                                                                 \
    EXEC(id) { f16_arith(e, n, first_source(e, i->s0, n, kind), second_source(e, i->s1, n), op); }
#define F16_ARITH(op)                                                                             \
    F16_FORM(F16V2##op, 2, op, PLAIN)                                                             \
    F16_FORM(F16V2##op##_BL, 2, op, LOWER)                                                        \
    F16_FORM(F16V2##op##_BU, 2, op, UPPER)                                                        \
    F16_FORM(F16V4##op, 4, op, PLAIN)                                                             \
    F16_FORM(F16V4##op##_BL, 4, op, LOWER)                                                        \
    F16_FORM(F16V4##op##_BU, 4, op, UPPER)

F16_ARITH(ADD)
F16_ARITH(SUB)
F16_ARITH(MUL)
F16_FORM(F16V2ABSADD, 2, ABSADD, PLAIN)
F16_FORM(F16V4ABSADD, 4, ABSADD, PLAIN)

/* Order of F16 numbers as integers; minus zero lies below plus zero. */
static int32_t f16_key(uint16_t h) {
    return h & 0x8000 ? -(int32_t)(h & 0x7fff) - 1 : h;
}
/* The number wins over NaN (isa 3.7). */
static uint16_t f16_max(uint16_t x, uint16_t y) {
    if (num_f16_is_nan(x)) return num_f16_is_nan(y) ? NUM_F16_NAN : y;
    if (num_f16_is_nan(y)) return x;
    return f16_key(x) > f16_key(y) ? x : y;
}
static uint16_t f16_min(uint16_t x, uint16_t y) {
    if (num_f16_is_nan(x)) return num_f16_is_nan(y) ? NUM_F16_NAN : y;
    if (num_f16_is_nan(y)) return x;
    return f16_key(x) < f16_key(y) ? x : y;
}
static uint16_t f16_absmax(uint16_t x, uint16_t y) { return f16_max(x & 0x7fff, y & 0x7fff); }

enum f16_compare { EQ, NE, LT, LE, GT, GE };
static bool f16_holds(uint16_t x, uint16_t y, enum f16_compare c) {
    const float a = num_f16_to_f32(x), b = num_f16_to_f32(y);
    switch (c) {
    case EQ: return a == b;
    case NE: return a != b;
    case LT: return a < b;
    case LE: return a <= b;
    case GT: return a > b;
    case GE: return a >= b;
    }
    return false;
}

#define F16_LANES(id, n, kind, value)                                                             \
    EXEC(id) {                                                                                    \
        const uint64_t xs = first_source(e, i->s0, n, kind), ys = second_source(e, i->s1, n);     \
        uint64_t result = 0;                                                                      \
        for (uint32_t k = 0; k < (n); k++) {                                                      \
            const uint16_t x = lane(xs, k), y = lane(ys, k);                                      \
            result |= (uint64_t)(uint16_t)(value) << 16 * k;                                      \
        }                                                                                         \
        put_lanes(e, result);                                                                     \
    }
#define F16_COMPARE(id, c)                                                                        \
    F16_LANES(F16V2CMP##id, 2, PLAIN, f16_holds(x, y, c) ? 0xffff : 0)                            \
    F16_LANES(F16V2CMP##id##_BL, 2, LOWER, f16_holds(x, y, c) ? 0xffff : 0)                       \
    F16_LANES(F16V2CMP##id##_BU, 2, UPPER, f16_holds(x, y, c) ? 0xffff : 0)                       \
    F16_LANES(F16V4CMP##id, 4, PLAIN, f16_holds(x, y, c) ? 0xffff : 0)                            \
    F16_LANES(F16V4CMP##id##_BL, 4, LOWER, f16_holds(x, y, c) ? 0xffff : 0)                       \
    F16_LANES(F16V4CMP##id##_BU, 4, UPPER, f16_holds(x, y, c) ? 0xffff : 0)

/* clang-format off */
F16_LANES(F16V2MAX, 2, PLAIN, f16_max(x, y))
F16_LANES(F16V4MAX, 4, PLAIN, f16_max(x, y))
F16_LANES(F16V2MIN, 2, PLAIN, f16_min(x, y))
F16_LANES(F16V4MIN, 4, PLAIN, f16_min(x, y))
F16_LANES(F16V2ABSMAX, 2, PLAIN, f16_absmax(x, y))
F16_LANES(F16V4ABSMAX, 4, PLAIN, f16_absmax(x, y))
F16_COMPARE(EQ, EQ)
F16_COMPARE(NE, NE)
F16_COMPARE(LT, LT)
F16_COMPARE(LE, LE)
F16_COMPARE(GT, GT)
F16_COMPARE(GE, GE)
/* clang-format on */

static void f16_clamp(struct tile_exec *e, uint32_t n, uint64_t x, uint32_t limits) {
    uint64_t result = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint16_t v = f16_max(lane(x, k), (uint16_t)limits);
        result |= (uint64_t)f16_min(v, (uint16_t)(limits >> 16)) << 16 * k;
    }
    put_lanes(e, result);
}
EXEC(F16V2CLAMP) { f16_clamp(e, 2, e->a[i->s0], e->a[i->s1]); }
EXEC(F16V4CLAMP) { f16_clamp(e, 4, pair_of(&e->a[i->s0]), e->a[i->s1]); }

EXEC(F16V2MAXC) {
    const uint32_t x = e->a[i->s0];
    e->r[0] = f16_max((uint16_t)x, (uint16_t)(x >> 16)) * 0x10001u;
}
EXEC(F16V4MAXC) {
    const uint32_t *x = &e->a[i->s0];
    e->r[0] = f16_max((uint16_t)x[0], (uint16_t)(x[0] >> 16)) |
              (uint32_t)f16_max((uint16_t)x[1], (uint16_t)(x[1] >> 16)) << 16;
}

static uint32_t f16_sum(struct tile_exec *e, uint32_t x) {
    const double a = f16v(x, 0), b = f16v(x, 1), v = a + b;
    if (isnan(v) && !isnan(a) && !isnan(b)) tile_fp_flags(e, NUM_INV);
    return num_f32_bits(num_f32_round(v));
}
EXEC(F16V2SUM) { e->r[0] = f16_sum(e, e->a[i->s0]); }
EXEC(F16V4SUM) {
    e->r[0] = f16_sum(e, e->a[i->s0]);
    e->r[1] = f16_sum(e, e->a[i->s0 + 1]);
}

/* Codes: isa 3.13; only 2 (NaN) and 5 (minus zero) are public. */
static uint32_t class_code(double v, bool quiet, bool negative) {
    if (isnan(v)) return quiet ? 2 : 1;
    if (isinf(v)) return negative ? 3 : 8;
    if (v == 0) return negative ? 5 : 6;
    return negative ? 4 : 7;
}
static uint32_t f16_class(uint16_t h) {
    return class_code(num_f16_to_f32(h), h & 0x200, h & 0x8000);
}
static uint32_t f32_class(uint32_t b) {
    return class_code((double)num_f32_from_bits(b), b & 0x400000, b >> 31);
}
EXEC(F16V2CLASS) {
    const uint32_t x = e->a[i->s0];
    e->r[0] = f16_class((uint16_t)x) | f16_class((uint16_t)(x >> 16)) << 8;
}
EXEC(F16V4CLASS) {
    const uint64_t x = pair_of(&e->a[i->s0]);
    e->r[0] = 0;
    for (uint32_t k = 0; k < 4; k++) e->r[0] |= f16_class(lane(x, k)) << 8 * k;
}
EXEC(F8V4CLASS) {
    const enum num_f8_format f = (enum num_f8_format)(e->w->fp_nfmt >> 1 & 1);
    e->r[0] = 0;
    for (uint32_t k = 0; k < 4; k++) {
        const uint8_t q = (uint8_t)(e->a[i->s0] >> 8 * k);
        e->r[0] |= class_code(num_f8_to_f64(q, f, 0), true, q & 0x80) << 8 * k;
    }
}
EXEC(F32CLASS) { e->r[0] = f32_class(e->a[i->s0]); }
EXEC(F32V2CLASS) { e->r[0] = f32_class(e->a[i->s0]) | f32_class(e->a[i->s0 + 1]) << 8; }

/* --- F32. --- */

static inline bool f32_special(float v) {
    return (num_f32_bits(v) & 0x7f800000) == 0x7f800000;
}

/* Flags of a result that is infinite or NaN. */
static __attribute__((noinline)) void f32_flags(struct tile_exec *e, float v, float x, float y) {
    if (isnan(v) && !isnan(x) && !isnan(y)) tile_fp_flags(e, NUM_INV);
    if (isinf(v) && !isinf(x) && !isinf(y)) tile_fp_flags(e, NUM_OFLO);
}
static inline uint32_t f32_result(struct tile_exec *e, float v, float x, float y) {
    if (__builtin_expect(f32_special(v), 0)) f32_flags(e, v, x, y);
    return num_f32_bits(num_f32_flush(v));
}
static float f32_max(float x, float y) {
    if (isnan(x)) return y;
    if (isnan(y)) return x;
    return x > y || (x == y && !signbit(x)) ? x : y;
}
static float f32_min(float x, float y) {
    if (isnan(x)) return y;
    if (isnan(y)) return x;
    return x < y || (x == y && signbit(x)) ? x : y;
}

/* F32_1: one lane; F32_2: a pair; F32_B: broadcast of the first source. */
#define F32_1(id, value)                                                                          \
    EXEC(id) {                                                                                    \
        const float x = f32v(e->a[i->s0]), y = f32v(e->a[i->s1]);                                 \
        e->r[0] = (value);                                                                        \
    }
#define F32_2(id, value)                                                                          \
    EXEC(id) {                                                                                    \
        for (uint32_t k = 0; k < 2; k++) {                                                        \
            const float x = f32v(e->a[i->s0 + k]), y = f32v(e->a[i->s1 + k]);                     \
            e->r[k] = (value);                                                                    \
        }                                                                                         \
    }
#define F32_B(id, value)                                                                          \
    EXEC(id) {                                                                                    \
        const float x = f32v(e->a[i->s0]);                                                        \
        for (uint32_t k = 0; k < 2; k++) {                                                        \
            const float y = f32v(e->a[i->s1 + k]);                                                \
            e->r[k] = (value);                                                                    \
        }                                                                                         \
    }
#define F32_12(op, value) F32_1(F32##op, value) F32_2(F32V2##op, value)
#define F32_12B(op, value) F32_12(op, value) F32_B(F32V2##op##_B, value)

/* clang-format off */
F32_12B(ADD, f32_result(e, x + y, x, y))
F32_12B(SUB, f32_result(e, x - y, x, y))
F32_12B(MUL, f32_result(e, x * y, x, y))
F32_12(ABSADD, f32_result(e, fabsf(x) + fabsf(y), x, y))
F32_12(MAX, num_f32_bits(f32_max(x, y)))
F32_12(MIN, num_f32_bits(f32_min(x, y)))
F32_12(ABSMAX, num_f32_bits(f32_max(fabsf(x), fabsf(y))))
F32_12B(CMPEQ, x == y ? UINT32_MAX : 0)
F32_12B(CMPNE, x != y ? UINT32_MAX : 0)
F32_12B(CMPLT, x < y ? UINT32_MAX : 0)
F32_12B(CMPLE, x <= y ? UINT32_MAX : 0)
F32_12B(CMPGT, x > y ? UINT32_MAX : 0)
F32_12B(CMPGE, x >= y ? UINT32_MAX : 0)
/* clang-format on */

static uint32_t f32_clamp(const struct tile_exec *e, uint32_t x, uint32_t limits) {
    const float v = f32_max(f32v(x), f32v(e->a[limits]));
    return num_f32_bits(f32_min(v, f32v(e->a[limits + 1])));
}
EXEC(F32CLAMP) { e->r[0] = f32_clamp(e, e->a[i->s0], i->s1); }
EXEC(F32V2CLAMP) {
    e->r[0] = f32_clamp(e, e->a[i->s0], i->s1);
    e->r[1] = f32_clamp(e, e->a[i->s0 + 1], i->s1);
}

EXEC(F32DIV) {
    const float x = f32v(e->a[i->s0]), y = f32v(e->a[i->s1]), v = x / y;
    if (y == 0 && x != 0 && !isnan(x) && !isinf(x)) {
        e->r[0] = num_f32_bits(v);
        tile_fp_flags(e, NUM_DIV0);
        return;
    }
    e->r[0] = f32_result(e, v, x, y);
}
