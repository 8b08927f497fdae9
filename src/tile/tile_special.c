/* Transcendental functions and conversions (isa 3.7 to 3.9, 5.3).
 *
 * A function value is computed in binary64 and rounded once (isa C.5). The two-lane F16 forms with
 * the usual rounding look results up: a table of all 65,536 arguments per function, filled at first
 * use by the same code. An entry that would raise a flag, or is NaN, is marked and computed anew. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#include <math.h>

enum function { EXP, EXP2, LN, LOG2, TANH, SIGM, N_FUNCTIONS };

static double function_value(enum function f, double x) {
    switch (f) {
    case EXP: return exp(x);
    case EXP2: return exp2(x);
    case LN: return log(x);
    case LOG2: return log2(x);
    case TANH: return tanh(x);
    case SIGM: return 1 / (1 + exp(-x));
    case N_FUNCTIONS: break;
    }
    return 0;
}

/* Flags of a value that came out infinite or NaN. */
static uint32_t value_flags(double x, double v) {
    if (isnan(v)) return isnan(x) ? 0 : NUM_INV;
    if (!isinf(v) || isinf(x)) return 0;
    return x == 0 ? NUM_DIV0 : NUM_OFLO;
}

enum { SLOW = 0xffff }; /* a NaN that no rounding gives */

static uint16_t table_entry(enum function f, uint16_t h) {
    const double x = num_f16_to_f32(h), v = function_value(f, x);
    uint32_t flags = value_flags(x, v);
    const uint16_t r = num_f16_from_f64(v, NUM_DEFAULT, 0, &flags);
    return flags || num_f16_is_nan(r) || isinf(v) ? SLOW : r;
}

static const uint16_t *table(enum function f) {
    static uint16_t *tables[N_FUNCTIONS];
    static gsize done[N_FUNCTIONS];
    if (g_once_init_enter(&done[f])) {
        tables[f] = g_new(uint16_t, 65536);
        for (uint32_t h = 0; h < 65536; h++) tables[f][h] = table_entry(f, (uint16_t)h);
        g_once_init_leave(&done[f], 1);
    }
    return tables[f];
}

static void f16_slow(struct tile_exec *e, uint32_t s, enum function f) {
    const struct num_control control = tile_control(e->w);
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    e->r[0] = 0;
    for (uint32_t k = 0; k < 2; k++) {
        const double x = f16v(s, k), v = function_value(f, x);
        flags |= value_flags(x, v);
        const uint16_t r = num_f16_from_f64(v, control, (uint32_t)(random >> 16 * k) & 0xffff, &flags);
        e->r[0] |= (uint32_t)r << 16 * k;
    }
    tile_fp_flags(e, flags);
}

static void f16_function(struct tile_exec *e, uint32_t s, enum function f) {
    if (e->fast) {
        const uint16_t *const t = table(f);
        const uint16_t lo = t[s & 0xffff], hi = t[s >> 16];
        e->r[0] = lo | (uint32_t)hi << 16;
        if (lo != SLOW && hi != SLOW) return;
    }
    f16_slow(e, s, f);
}

/* One slot for two zeros, else exp_slots (isa 1.9). */
static void exp_slots(struct tile_exec *e, uint32_t s) {
    const uint32_t slots = e->t->config->exp_slots;
    if ((s & 0x7fff7fff) != 0) e->extra = (slots ? slots : 2) - 1;
}
EXEC(F16V2EXP) {
    exp_slots(e, e->a[i->s0]);
    f16_function(e, e->a[i->s0], EXP);
}
EXEC(F16V2EXP2) {
    exp_slots(e, e->a[i->s0]);
    f16_function(e, e->a[i->s0], EXP2);
}
EXEC(F16V2LN) { f16_function(e, e->a[i->s0], LN); }
EXEC(F16V2LOG2) { f16_function(e, e->a[i->s0], LOG2); }
EXEC(F16V2TANH) { f16_function(e, e->a[i->s0], TANH); }
EXEC(F16V2SIGM) { f16_function(e, e->a[i->s0], SIGM); }

static void f32_value(struct tile_exec *e, double x, double v) {
    const float r = num_f32_round(v);
    uint32_t flags = value_flags(x, v);
    if (isinf(r) && !isinf(v)) flags |= NUM_OFLO;
    e->r[0] = num_f32_bits(r);
    tile_fp_flags(e, flags);
}
#define F32_FUNCTION(id, value)                                                                   \
    EXEC(id) {                                                                                    \
        const double x = (double)f32v(e->a[i->s0]);                                               \
        f32_value(e, x, value);                                                                   \
    }
/* clang-format off */
F32_FUNCTION(F32EXP, function_value(EXP, x))
F32_FUNCTION(F32EXP2, function_value(EXP2, x))
F32_FUNCTION(F32LN, function_value(LN, x))
F32_FUNCTION(F32LOG2, function_value(LOG2, x))
F32_FUNCTION(F32TANH, function_value(TANH, x))
F32_FUNCTION(F32SIGM, function_value(SIGM, x))
F32_FUNCTION(F32SQRT, sqrt(x))
F32_FUNCTION(F32OOX, 1 / x)
F32_FUNCTION(F32OORX, 1 / sqrt(x))
/* clang-format on */

/* --- F32 and integers. --- */

EXEC(F32INT) {
    const float x = f32v(e->a[i->s0]);
    if (i->imm > NUM_AWAY) tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, (uint32_t)i->imm);
    const bool finite = !isnan(x) && !isinf(x);
    e->r[0] = num_f32_bits(finite ? (float)num_integral(x, (enum num_round)i->imm) : x);
}

/* Out of range saturates with INV, NaN gives 0 (isa C.17; the value for NaN is this model's). */
static uint32_t to_integer(struct tile_exec *e, uint32_t bits, double min, double max) {
    const double x = (double)f32v(bits);
    if (isnan(x)) {
        tile_fp_flags(e, NUM_INV);
        return 0;
    }
    const double v = isinf(x) ? x : num_integral(x, tile_control(e->w).round);
    if (v < min || v > max) tile_fp_flags(e, NUM_INV);
    const double clipped = v < min ? min : v > max ? max : v;
    return (uint32_t)(int64_t)clipped;
}
EXEC(F32TOI32) { e->r[0] = to_integer(e, e->a[i->s0], INT32_MIN, INT32_MAX); }
EXEC(F32TOUI32) { e->r[0] = to_integer(e, e->a[i->s0], 0, UINT32_MAX); }
EXEC(F32FROMI32) { e->r[0] = num_f32_bits((float)(int32_t)e->a[i->s0]); }
EXEC(F32FROMUI32) { e->r[0] = num_f32_bits((float)e->a[i->s0]); }

/* --- F16 and F32. --- */

EXEC(F16TOF32) { e->r[0] = num_f32_bits((float)f16v(e->a[i->s0], 0)); }
EXEC(F16V2TOF32) {
    e->r[0] = num_f32_bits((float)f16v(e->a[i->s0], 0));
    e->r[1] = num_f32_bits((float)f16v(e->a[i->s0], 1));
}

static uint64_t narrow(struct tile_exec *e, uint32_t s, uint32_t n) {
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    uint64_t result = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint16_t h = num_f16_from_f64(f32v(e->a[s + k]), tile_control(e->w),
                                            (uint32_t)(random >> 16 * k) & 0xffff, &flags);
        result |= (uint64_t)h << 16 * k;
    }
    tile_fp_flags(e, flags);
    return result;
}
EXEC(F32TOF16) { e->r[0] = (uint32_t)narrow(e, i->s0, 1) * 0x10001u; }
EXEC(F32V2TOF16) { e->r[0] = (uint32_t)narrow(e, i->s0, 2); }
EXEC(F32V4TOF16) {
    uint64_t v;
    if (!e->fast || !tile_vec_f16_from_f32(&e->a[i->s0], &v)) v = narrow(e, i->s0, 4);
    e->r[0] = (uint32_t)v;
    e->r[1] = (uint32_t)(v >> 32);
}

/* --- F8: format NFMT[1], scale FP_SCL (isa 5.2). --- */

static enum num_f8_format f8_format(const struct tile_exec *e) {
    return (enum num_f8_format)(e->w->fp_nfmt >> 1 & 1);
}
static int32_t f8_scale(const struct tile_exec *e) { return tile_f8_scale(e->w); }

/* n F16 numbers from registers s on; 8 random bits a lane. */
static uint64_t to_f8(struct tile_exec *e, uint32_t s, uint32_t n) {
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    uint64_t result = 0;
    const double factor = ldexp(1, f8_scale(e));
    for (uint32_t k = 0; k < n; k++) {
        const double v = f16v(e->a[s + k / 2], k % 2) * factor;
        const uint8_t q = num_f8_from_f64(v, f8_format(e), tile_control(e->w),
                                          (uint32_t)(random >> 8 * k & 0xff) << 8, &flags);
        result |= (uint64_t)q << 8 * k;
    }
    tile_fp_flags(e, flags);
    return result;
}
/* All halves to F8, rounded to nearest; SLOW where flags are raised or the mode matters. */
static uint16_t f8_entry(uint16_t h, enum num_f8_format format, int32_t scale) {
    const double v = ldexp(num_f16_to_f32(h), scale);
    const struct num_control saturate = {.round = NUM_NEAREST},
                             nan = {.round = NUM_NEAREST, .nan_on_overflow = true};
    uint32_t flags = 0;
    const uint8_t q = num_f8_from_f64(v, format, saturate, 0, &flags);
    return num_f8_from_f64(v, format, nan, 0, &flags) != q || flags != 0 ? SLOW : q;
}
static const uint16_t *f8_table(enum num_f8_format format, int32_t scale) {
    static uint16_t *tables[2][64];
    static gsize done[2][64];
    const uint32_t at = (uint32_t)scale & 63;
    if (g_once_init_enter(&done[format][at])) {
        tables[format][at] = g_new(uint16_t, 65536);
        for (uint32_t h = 0; h < 65536; h++)
            tables[format][at][h] = f8_entry((uint16_t)h, format, scale);
        g_once_init_leave(&done[format][at], 1);
    }
    return tables[format][at];
}
/* Eight halves; false when one is slow. */
static bool to_f8_quick(const struct tile_exec *e, uint32_t s, uint64_t *ret) {
    const uint16_t *const t = f8_table(f8_format(e), f8_scale(e));
    uint64_t result = 0;
    uint32_t all = 0;
    for (uint32_t k = 0; k < 8; k++) {
        const uint32_t q = t[e->a[s + k / 2] >> 16 * (k % 2) & 0xffff];
        all |= q;
        result |= (uint64_t)(q & 0xff) << 8 * k;
    }
    *ret = result;
    return all < 0x100;
}

EXEC(F16V2TOF8) { e->r[0] = (uint32_t)to_f8(e, i->s0, 2); }
EXEC(F16V8TOF8) {
    uint64_t v;
    if (!e->fast || !to_f8_quick(e, i->s0, &v)) v = to_f8(e, i->s0, 8);
    e->r[0] = (uint32_t)v;
    e->r[1] = (uint32_t)(v >> 32);
}

static void from_f8(struct tile_exec *e, uint32_t s, uint32_t n) {
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    e->r[0] = e->r[1] = 0;
    for (uint32_t k = 0; k < n; k++) {
        const double v = num_f8_to_f64((uint8_t)(s >> 8 * k), f8_format(e), f8_scale(e));
        const uint16_t h = num_f16_from_f64(v, tile_control(e->w),
                                            (uint32_t)(random >> 16 * k) & 0xffff, &flags);
        e->r[k / 2] |= (uint32_t)h << 16 * (k % 2);
    }
    tile_fp_flags(e, flags);
}
EXEC(F8V2TOF16) { from_f8(e, e->a[i->s0], 2); }
EXEC(F8V4TOF16) { from_f8(e, e->a[i->s0], 4); }

/* --- Random numbers (isa 3.14). --- */

EXEC(URAND32) {
    (void)i;
    e->r[0] = (uint32_t)tile_random(e);
}
EXEC(URAND64) {
    (void)i;
    const uint64_t v = tile_random(e);
    e->r[0] = (uint32_t)v;
    e->r[1] = (uint32_t)(v >> 32);
}

/* Sum of 12 uniform 16-bit numbers, centred: the algorithm of the chip is not public. */
static double gaussian(struct tile_exec *e) {
    double sum = 0;
    for (uint32_t k = 0; k < 3; k++) {
        const uint64_t v = tile_random(e);
        for (uint32_t q = 0; q < 4; q++) sum += (double)(v >> 16 * q & 0xffff) + 0.5;
    }
    return sum / 65536 - 6;
}
EXEC(F16V2GRAND) {
    (void)i;
    uint32_t flags = 0;
    const uint32_t lo = num_f16_from_f64(gaussian(e), NUM_DEFAULT, 0, &flags);
    const uint32_t hi = num_f16_from_f64(gaussian(e), NUM_DEFAULT, 0, &flags);
    e->r[0] = lo | hi << 16;
}
EXEC(F32V2GRAND) {
    (void)i;
    e->r[0] = num_f32_bits(num_f32_round(gaussian(e)));
    e->r[1] = num_f32_bits(num_f32_round(gaussian(e)));
}

/* Whether a lane with this random number is kept. */
static bool mask_keeps(uint32_t s, uint32_t random) {
    return s & 0x10000 ? true : (random & 0xffff) < (s & 0xffff);
}
EXEC(F16V4RMASK) {
    const uint64_t v = tile_random(e);
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t lo = mask_keeps(e->a[i->s1], (uint32_t)(v >> 32 * k)) ? 0xffff : 0;
        const uint32_t hi = mask_keeps(e->a[i->s1], (uint32_t)(v >> (32 * k + 16))) ? 0xffff0000 : 0;
        e->r[k] = e->a[i->s0 + k] & (lo | hi);
    }
}
EXEC(F32V2RMASK) {
    const uint64_t v = tile_random(e);
    for (uint32_t k = 0; k < 2; k++)
        e->r[k] = mask_keeps(e->a[i->s1], (uint32_t)(v >> 32 * k)) ? e->a[i->s0 + k] : 0;
}

/* (u + 1/2) / 2^bits - 1/2, rounded. */
static void f16_sufromui(struct tile_exec *e, uint32_t s, uint32_t n) {
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    e->r[0] = e->r[1] = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t u = e->a[s + k / 2] >> 16 * (k % 2) & 0xffff;
        const uint16_t h = num_f16_from_f64((u + 0.5) / 65536 - 0.5, tile_control(e->w),
                                            (uint32_t)(random >> 16 * k) & 0xffff, &flags);
        e->r[k / 2] |= (uint32_t)h << 16 * (k % 2);
    }
}
EXEC(F16V2SUFROMUI) { f16_sufromui(e, i->s0, 2); }
EXEC(F16V4SUFROMUI) { f16_sufromui(e, i->s0, 4); }
static uint32_t f32_sufromui(uint32_t u) {
    return num_f32_bits(num_f32_round((u + 0.5) / 4294967296.0 - 0.5));
}
EXEC(F32SUFROMUI) { e->r[0] = f32_sufromui(e->a[i->s0]); }
EXEC(F32V2SUFROMUI) {
    e->r[0] = f32_sufromui(e->a[i->s0]);
    e->r[1] = f32_sufromui(e->a[i->s0 + 1]);
}
