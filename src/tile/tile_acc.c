/* Instructions on the accumulators besides the matrix unit (isa 3.10 to 3.12, B.3).
 *
 * AACC[2k] of set 0 is acc.even[k], AACC[2k + 1] acc.odd[k]; the shifts by four accumulators of gina
 * are shifts by two places here. Sums of products have one rounding of the exact value (isa C.4). */
#include "tile/tile_exec.h"
#include "tile/tile_vec.h"

#include <math.h>

/* The first n even accumulators of set 0, which are about to be added to. */
static float *accumulators(struct tile_exec *e, uint32_t n) {
    if (~e->w->acc_defined & ((1u << n) - 1))
        tile_raise(e, TILE_FAULT_ACCUMULATORS_UNDEFINED, 0, 0);
    return e->w->acc.even;
}

/* a + b as double with what was lost. */
static double two_sum(double a, double b, double *ret_lost) {
    const double s = a + b, bb = s - a;
    *ret_lost = (a - (s - bb)) + (b - bb);
    return s;
}

/* A neighbour of s with an odd last bit, on the side of `lost`, unless nothing was lost: rounding
 * that to F32 is the same as rounding the exact sum. */
static double round_to_odd(double s, double lost) {
    uint64_t b;
    memcpy(&b, &s, 8);
    if (lost == 0 || (b & 1) || isinf(s) || isnan(lost)) return s;
    b = (lost > 0) == (s > 0) ? b + 1 : b - 1;
    memcpy(&s, &b, 8);
    return s;
}

float tile_mac2(float acc, double p0, double p1) {
    double lost0, lost1;
    acc = num_f32_flush(acc);
    const double t = two_sum(p0, p1, &lost0);
    const double s = two_sum(t, (double)acc, &lost1);
    if (!isfinite(s)) return num_f32_round((double)acc + (p0 + p1));
    if (lost0 != 0 && lost1 != 0) /* both parts matter: 113 bits hold their sum */
        return num_f32_flush((float)((__float128)p0 + (__float128)p1 + (__float128)acc));
    return num_f32_round(round_to_odd(s, lost0 + lost1));
}

float tile_mac(float acc, float x, float y) {
    return num_f32_flush(fmaf(x, y, num_f32_flush(acc)));
}

/* --- acc, absacc, sqacc. --- */

enum change { VALUE, ABSOLUTE, SQUARE };

static inline float changed(float acc, float x, enum change c) {
    switch (c) {
    case VALUE: return num_f32_flush(num_f32_flush(acc) + x);
    case ABSOLUTE: return num_f32_flush(num_f32_flush(acc) + fabsf(x));
    case SQUARE: return tile_mac(acc, x, x);
    }
    return acc;
}

static inline void f16_acc(struct tile_exec *e, uint32_t s, uint32_t n, enum change c) {
    float *const even = accumulators(e, n);
    for (uint32_t k = 0; k < n; k++)
        even[k] = changed(even[k], (float)f16v(e->a[s + k / 2], k % 2), c);
}
static inline void f32_acc(struct tile_exec *e, uint32_t s, enum change c) {
    float *const even = accumulators(e, 4);
    for (uint32_t k = 0; k < 4; k++) even[k] = changed(even[k], f32v(e->a[s + k]), c);
}
EXEC(F16V4ACC) { f16_acc(e, i->s0, 4, VALUE); }
EXEC(F16V4ABSACC) { f16_acc(e, i->s0, 4, ABSOLUTE); }
EXEC(F16V8ACC) {
    const bool quick = e->fast && (e->w->acc_defined & 0xff) == 0xff;
    if (!quick || !tile_vec_f16_acc(e->w->acc.even, &e->a[i->s0])) f16_acc(e, i->s0, 8, VALUE);
}
EXEC(F16V8ABSACC) { f16_acc(e, i->s0, 8, ABSOLUTE); }
EXEC(F16V8SQACC) { f16_acc(e, i->s0, 8, SQUARE); }
EXEC(F32V4ACC) { f32_acc(e, i->s0, VALUE); }
EXEC(F32V4ABSACC) { f32_acc(e, i->s0, ABSOLUTE); }
EXEC(F32V4SQACC) { f32_acc(e, i->s0, SQUARE); }

/* --- Products. --- */

static float cmac(float acc, uint32_t x, uint32_t y) {
    return tile_mac2(acc, f16v(x, 0) * f16v(y, 0), f16v(x, 1) * f16v(y, 1));
}
EXEC(F16V2CMAC) {
    float *const even = accumulators(e, 1);
    even[0] = cmac(even[0], e->a[i->s0], e->a[i->s1]);
}
EXEC(F16V4CMAC) {
    float *const even = accumulators(e, 2);
    even[0] = cmac(even[0], e->a[i->s0], e->a[i->s1]);
    even[1] = cmac(even[1], e->a[i->s0 + 1], e->a[i->s1 + 1]);
}
EXEC(F32MAC) {
    float *const even = accumulators(e, 1);
    even[0] = tile_mac(even[0], f32v(e->a[i->s0]), f32v(e->a[i->s1]));
}
EXEC(F32V2MAC) {
    float *const even = accumulators(e, 2);
    for (uint32_t k = 0; k < 2; k++)
        even[k] = tile_mac(even[k], f32v(e->a[i->s0 + k]), f32v(e->a[i->s1 + k]));
}
/* The immediate has no public meaning and is ignored. */
EXEC(F32V2AOP) {
    float *const even = accumulators(e, 4);
    for (uint32_t k = 0; k < 4; k++)
        even[k] = tile_mac(even[k], f32v(e->a[i->s0 + k % 2]), f32v(e->a[i->s1 + k / 2]));
}

/* axpy, mix: the result is that of the previous call. */
static void check_tas(struct tile_exec *e) {
    if (!e->w->tas_defined) tile_raise(e, TILE_FAULT_TAS_UNDEFINED, 0, 0);
}
EXEC(F32V2AXPY) {
    float *const even = e->w->acc.even;
    check_tas(e);
    const float tas = f32v(e->w->tas);
    e->w->acc_defined |= 0x3;
    for (uint32_t k = 0; k < 2; k++) {
        e->r[k] = num_f32_bits(even[k]);
        even[k] = tile_mac(f32v(e->a[i->s1 + k]), tas, f32v(e->a[i->s0 + k]));
    }
}

/* n accumulator values as F16 lanes, rounded once; stale NaN raises INV (kernels 8.9 item 14). */
static void round_out(struct tile_exec *e, const float *v, uint32_t n) {
    uint32_t bits[4] = {0};
    uint64_t quick;
    memcpy(bits, v, n * sizeof *v);
    if (e->fast && tile_vec_f16_from_f32(bits, &quick)) {
        e->r[0] = (uint32_t)quick;
        e->r[1] = (uint32_t)(quick >> 32);
        return;
    }
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    uint64_t result = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (isnan(v[k])) flags |= NUM_INV;
        const uint16_t h = num_f16_from_f64(num_f32_flush(v[k]), tile_control(e->w),
                                            (uint32_t)(random >> 16 * k) & 0xffff, &flags);
        result |= (uint64_t)h << 16 * k;
    }
    e->r[0] = (uint32_t)result;
    e->r[1] = (uint32_t)(result >> 32);
    tile_fp_flags(e, flags);
}

/* The sum starts from +0, so that two zero products give +0 (ASSUMED: isa B.3 leaves the sign open). */
EXEC(F16V4MIX) {
    float *const even = e->w->acc.even;
    check_tas(e);
    round_out(e, even, 4);
    e->w->acc_defined |= 0xf;
    const double alpha = f16v(e->w->tas, 0), beta = f16v(e->w->tas, 1);
    for (uint32_t k = 0; k < 4; k++)
        even[k] = tile_mac2(0, alpha * f16v(e->a[i->s0 + k / 2], k % 2),
                            beta * f16v(e->a[i->s1 + k / 2], k % 2));
}

/* --- gina, gacc. --- */

static void define_shift(struct tile_worker *w, bool odd, uint32_t set) {
    const uint32_t at = (odd ? 16 : 0) + 8 * set;
    const uint32_t row = w->acc_defined >> at & 0xff;
    w->acc_defined = (w->acc_defined & ~(0xffu << at)) | (row >> 2 | 0xc0) << at;
}
static float *gina_row(struct tile_exec *e, uint32_t imm) {
    if (imm > 3) tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, imm);
    struct tile_accumulators *acc = &e->w->acc;
    define_shift(e->w, imm & 1, imm >> 1 & 1);
    return (imm & 1 ? acc->odd : acc->even) + (imm & 2 ? 8 : 0);
}
static void gina_shift(float *row, float in0, float in1) {
    memmove(row, row + 2, 6 * sizeof *row);
    row[6] = in0;
    row[7] = in1;
}
EXEC(F32V2GINA) {
    float *const row = gina_row(e, (uint32_t)i->imm);
    memcpy(e->r, row, 8);
    gina_shift(row, f32v(e->a[i->s0]), f32v(e->a[i->s0 + 1]));
}
EXEC(F16V2GINA) {
    float *const row = gina_row(e, (uint32_t)i->imm);
    round_out(e, row, 2);
    gina_shift(row, (float)f16v(e->a[i->s0], 0), (float)f16v(e->a[i->s0], 1));
}
/* Whether it shifts is not public: it does not (isa C.12). */
EXEC(F16V4GACC) {
    (void)i;
    round_out(e, accumulators(e, 4), 4);
}

/* --- istacc, stacc: raw 32-bit moves (isa 3.12). --- */

static void stacc_out(struct tile_exec *e) {
    float *const odd = e->w->acc.odd;
    memcpy(e->r, odd, 8);
    define_shift(e->w, true, 0);
    gina_shift(odd, 0, 0);
}
EXEC(F16V4ISTACC) {
    if (i->imm > 1) tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, (uint32_t)i->imm);
    stacc_out(e);
    e->w->acc_defined |= i->imm & 1 ? 0xaa : 0x55;
    e->w->acc_raw = true;
    for (uint32_t j = 0; j < 4; j++) {
        const uint32_t lo = e->a[i->s0 + j / 2] >> 16 * (j % 2) & 0xffff;
        const uint32_t hi = e->a[i->s1 + j / 2] >> 16 * (j % 2) & 0xffff;
        e->w->acc.even[2 * j + (i->imm & 1)] = num_f32_from_bits(lo | hi << 16);
    }
}
EXEC(F16V4STACC) {
    struct tile_accumulators *acc = &e->w->acc;
    if (i->imm > 1) tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, (uint32_t)i->imm);
    if (i->imm == 0) {
        const uint32_t d = e->w->acc_defined;
        e->w->acc_defined = (d & 0xff00ff00) | (d & 0xff) << 16 | (d >> 16 & 0xff);
        for (uint32_t m = 0; m < 8; m++) {
            const float v = acc->even[m];
            acc->even[m] = acc->odd[m];
            acc->odd[m] = v;
        }
    }
    stacc_out(e);
}
