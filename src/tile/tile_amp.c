/* The matrix unit: AMP and SLIC (isa 4, B.4).
 *
 * One call of AMP: at phase 0 the sums E and the chain C change places; every used unit adds a dot
 * product to E; two values a set leave the chain and two partials enter it. SLIC shifts the sums
 * through the even accumulators instead.
 *
 * Arithmetic, model A (isa 4.7): products are exact in binary64; t = (p0 + p1) + (p2 + p3), F8 the
 * sum of two such, times 2^scale; acc = F32(acc + t) with the addition in binary64. The order is
 * part of the promise: vector code (tile_amp_body.h) follows it operation by operation, but for sums
 * of F143 products, which are exact in any order. Model B aligns magnitudes to the largest exponent
 * in a window of 31 fraction bits and truncates. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#include <math.h>

const struct tile_amp_vec *tile_amp_vec(enum tile_simd simd) {
#if defined(__x86_64__)
    if (simd == TILE_SIMD_AUTO) simd = tile_simd_best();
    if (simd == TILE_SIMD_AVX2) return &TILE_AMP_AVX2;
    if (simd == TILE_SIMD_AVX512) return &TILE_AMP_AVX512;
#endif
    return NULL;
}

/* --- Sums. --- */

/* Model B: significands 1.f on a common scale, that of the largest exponent, with 31 fraction bits;
 * what lies below is cut off each magnitude. */
static float window_sum(float acc, const double *p, uint32_t n) {
    int emax = INT32_MIN, e;
    double whole = (double)acc;
    for (uint32_t i = 0; i < n; i++) whole += p[i];
    if (!isfinite(whole)) return num_f32_round(whole);
    for (uint32_t i = 0; i <= n; i++) {
        const double v = i < n ? p[i] : (double)acc;
        if (v == 0) continue;
        frexp(v, &e); /* of 0.1f: one more than that of 1.f */
        if (e - 1 > emax) emax = e - 1;
    }
    if (emax == INT32_MIN) return num_f32_round(whole);
    int64_t sum = 0;
    for (uint32_t i = 0; i <= n; i++) sum += (int64_t)ldexp(i < n ? p[i] : (double)acc, 31 - emax);
    return num_f32_round(ldexp((double)sum, emax - 31));
}

static float add_products(const struct tile *t, float raw, const double *p, uint32_t n) {
    const float acc = num_f32_flush(raw); /* f16v4istacc moves any bits in */
    if (t->config->amp_model == TILE_AMP_WINDOW) return window_sum(acc, p, n);
    double sum = (p[0] + p[1]) + (p[2] + p[3]);
    if (n == 8) sum += (p[4] + p[5]) + (p[6] + p[7]);
    return num_f32_round((double)acc + sum);
}

/* What a call multiplies: x against the words [phase] of the units. */
struct operand {
    uint32_t n; /* inputs: 4 (F16) or 8 (F8) */
    double x[8];
    const double (*w)[16]; /* [input][unit]; F8: times 2^FP_SCL */
};

static struct operand operand_f16(struct tile_exec *e, uint32_t s, uint32_t phase) {
    struct operand o = {.n = 4, .w = tile_weights_f16(e->t)->f16[phase]};
    for (uint32_t i = 0; i < 4; i++) o.x[i] = f16v(e->a[s + i / 2], i % 2);
    return o;
}

static struct operand operand_f8(struct tile_exec *e, uint32_t s, uint32_t phase) {
    const enum num_f8_format fx = (enum num_f8_format)(e->w->fp_nfmt >> 1 & 1);
    const enum num_f8_format fw = (enum num_f8_format)(e->w->fp_nfmt & 1);
    struct operand o = {.n = 8, .w = tile_weights_f8(e->t, fw, tile_f8_scale(e->w))->f8[phase]};
    for (uint32_t i = 0; i < 8; i++)
        o.x[i] = tile_f8_values(fx)[e->a[s + i / 4] >> 8 * (i % 4) & 0xff];
    return o;
}

static float unit_sum(const struct tile_exec *e, float acc, const struct operand *o,
                      uint32_t unit) {
    double p[8] = {0};
    for (uint32_t i = 0; i < o->n; i++) p[i] = o->x[i] * o->w[i][unit];
    return add_products(e->t, acc, p, o->n);
}

/* --- State. --- */

struct shape {
    uint32_t sets, engines, phase;
};

/* Reads the flags; a wrong number is the fault of the operand and the call does nothing. */
static bool amp_shape(struct tile_exec *e, const struct isa_insn *i, bool f32, struct shape *ret) {
    const uint32_t code = (uint32_t)i->imm >> ISA_AMP_ENGINES_SHIFT;
    const uint32_t phase = (uint32_t)i->imm & ISA_AMP_PHASE_MASK;
    const uint32_t engines = 4 >> code;
    const uint32_t phases = f32 ? (engines == 1 ? 3 : 2 * engines) : engines;
    if (code > ISA_AMP_E1 || phase >= phases) {
        tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, (uint32_t)i->imm);
        return false;
    }
    ret->engines = engines;
    ret->phase = phase;
    return true;
}

/* One bit for each unit that is used. */
static uint32_t units_mask(const struct shape *s) {
    const uint32_t one = (1u << 2 * s->engines) - 1;
    return s->sets == 2 ? one | one << 8 : one;
}

/* `acc`: accumulators, as acc_defined has them. */
static void check_defined(struct tile_exec *e, uint32_t acc, uint32_t units, uint32_t word) {
    if ((e->w->acc_defined & acc) != acc) tile_raise(e, TILE_FAULT_ACCUMULATORS_UNDEFINED, 0, 0);
    for (uint32_t u = units; u != 0; u &= u - 1) {
        const uint32_t index = 4 * (uint32_t)__builtin_ctz(u) + word;
        if (e->t->weights_defined >> index & 1) continue;
        tile_raise(e, TILE_FAULT_WEIGHTS_UNDEFINED, 0, index);
        return;
    }
}

static void swap_sums(struct tile_accumulators *acc, uint32_t units) {
    for (; units != 0; units &= units - 1) {
        const uint32_t u = (uint32_t)__builtin_ctz(units);
        const float v = acc->even[u];
        acc->even[u] = acc->odd[u];
        acc->odd[u] = v;
    }
}

static void chain(struct tile_accumulators *acc, uint32_t set, uint32_t engines, const float in[2],
                  float ret_out[2]) {
    float *const row = acc->odd + 8 * set;
    memcpy(ret_out, row, 8);
    memmove(row, row + 2, (2 * engines - 2) * sizeof *row);
    memcpy(row + 2 * engines - 2, in, 8);
}

/* Sums and exchange of the F16 and F8 forms; in and out hold two values a set. */
static void amp_call(struct tile_exec *e, const struct shape *s, const struct operand *o,
                     const float in[4], float ret_out[4]) {
    struct tile_accumulators *acc = &e->w->acc;
    const uint32_t units = units_mask(s);
    check_defined(e, units | units << 16, units, s->phase);
    if (s->phase == 0) swap_sums(acc, units);
    for (uint32_t left = units; left != 0; left &= left - 1) {
        const uint32_t u = (uint32_t)__builtin_ctz(left);
        acc->even[u] = unit_sum(e, acc->even[u], o, u);
    }
    for (uint32_t set = 0; set < s->sets; set++)
        chain(acc, set, s->engines, in + 2 * set, ret_out + 2 * set);
}

/* --- Operands and results. --- */

static void halves_in(const struct tile_exec *e, uint32_t s, uint32_t n, float ret[4]) {
    for (uint32_t k = 0; k < n; k++) ret[k] = (float)f16v(e->a[s + k / 2], k % 2);
}
static void singles_in(const struct tile_exec *e, uint32_t s, float ret[2]) {
    ret[0] = f32v(e->a[s]);
    ret[1] = f32v(e->a[s + 1]);
}
static void halves_out(struct tile_exec *e, const float *v, uint32_t n) {
    const uint64_t random = tile_random_bits(e);
    uint32_t flags = 0;
    e->r[0] = e->r[1] = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (isnan(v[k])) flags |= NUM_INV;
        const uint16_t h = num_f16_from_f64(num_f32_flush(v[k]), tile_control(e->w),
                                            (uint32_t)(random >> 16 * k) & 0xffff, &flags);
        e->r[k / 2] |= (uint32_t)h << 16 * (k % 2);
    }
    tile_fp_flags(e, flags);
}
static void singles_out(struct tile_exec *e, const float v[2]) {
    memcpy(e->r, v, 8);
}

/* The two-set forms with four engines in vector code; false: the scalar code decides. */
static bool amp_vector(struct tile_exec *e, const struct isa_insn *i, bool f8) {
    const uint32_t phase = (uint32_t)i->imm;
    const uint64_t words = UINT64_C(0x1111111111111111) << (phase & 3);
    if (!e->fast || e->vec == NULL || phase > 3 || e->w->acc_raw || e->w->acc_defined != UINT32_MAX ||
        (e->t->weights_defined & words) != words)
        return false;
    struct tile_amp_call c = {.acc = &e->w->acc,
                              .x = e->a[i->s0] | (uint64_t)e->a[i->s0 + 1] << 32,
                              .partial = e->a[i->s1] | (uint64_t)e->a[i->s1 + 1] << 32,
                              .swap = phase == 0};
    if (f8) {
        const enum num_f8_format fw = (enum num_f8_format)(e->w->fp_nfmt & 1);
        c.w = tile_weights_f8(e->t, fw, tile_f8_scale(e->w))->f8[phase][0];
        c.f8_values = tile_f8_values((enum num_f8_format)(e->w->fp_nfmt >> 1 & 1));
    } else {
        c.w = tile_weights_f16(e->t)->f16[phase][0];
    }
    uint64_t out;
    if (!e->vec->call(&c, &out)) return false;
    e->r[0] = (uint32_t)out;
    e->r[1] = (uint32_t)(out >> 32);
    return true;
}

/* What partials and results are, by form. */
enum values { HALVES, SINGLES };
struct form {
    uint32_t sets;
    bool f8;
    enum values in, out;
};

static struct operand operand(struct tile_exec *e, const struct form *f, uint32_t s,
                              uint32_t word) {
    return f->f8 ? operand_f8(e, s, word) : operand_f16(e, s, word);
}
static void values_in(const struct tile_exec *e, const struct form *f, uint32_t s, float ret[4]) {
    if (f->in == HALVES) halves_in(e, s, 2 * f->sets, ret);
    else singles_in(e, s, ret);
}
static void values_out(struct tile_exec *e, const struct form *f, const float *v) {
    if (f->out == HALVES) halves_out(e, v, 2 * f->sets);
    else singles_out(e, v);
}

static void amp(struct tile_exec *e, const struct isa_insn *i, const struct form *f) {
    struct shape s = {.sets = f->sets};
    float in[4] = {0}, out[4];
    if (!amp_shape(e, i, false, &s)) return;
    const struct operand o = operand(e, f, i->s0, s.phase);
    values_in(e, f, i->s1, in);
    amp_call(e, &s, &o, in, out);
    values_out(e, f, out);
}
EXEC(F16V4HIHOV4AMP) {
    if (!amp_vector(e, i, false)) amp(e, i, &(struct form){2, false, HALVES, HALVES});
}
EXEC(F8V8HIHOV4AMP) {
    if (!amp_vector(e, i, true)) amp(e, i, &(struct form){2, true, HALVES, HALVES});
}
EXEC(F16V4HIHOAMP) {
    amp(e, i, &(struct form){1, false, HALVES, HALVES});
}
EXEC(F16V4SISOAMP) {
    amp(e, i, &(struct form){1, false, SINGLES, SINGLES});
}
EXEC(F16V4SIHOAMP) {
    amp(e, i, &(struct form){1, false, SINGLES, HALVES});
}

/* --- F32 (isa 4.5). --- */

static float weight_f32(const struct tile *t, uint32_t unit, uint32_t word, uint32_t half) {
    return f32v((uint32_t)(t->weights[4 * unit + word] >> 32 * half));
}

/* The odd phases of the one-set form return nothing; $TAS is scratch of these forms. */
static void amp_f32(struct tile_exec *e, const struct isa_insn *i, uint32_t sets) {
    struct shape s = {.sets = sets};
    float in[2], out[2] = {0, 0};
    if (!amp_shape(e, i, true, &s)) return;
    struct tile_accumulators *acc = &e->w->acc;
    const uint32_t units = units_mask(&s);
    const float x = f32v(e->a[i->s0]);
    check_defined(e, units | units << 16, units, s.phase / 2);
    if (s.phase == 0) swap_sums(acc, units);
    for (uint32_t left = units; left != 0; left &= left - 1) {
        const uint32_t u = (uint32_t)__builtin_ctz(left);
        acc->even[u] = tile_mac(acc->even[u], x, weight_f32(e->t, u, s.phase / 2, s.phase % 2));
    }
    singles_in(e, i->s1, in);
    if (sets == 2 || s.phase % 2 == 0) chain(acc, s.phase % 2, s.engines, in, out);
    e->w->tas = NUM_F32_NAN;
    e->w->tas_defined = false;
    singles_out(e, out);
}
EXEC(F32SISOAMP) {
    amp_f32(e, i, 1);
}
EXEC(F32SISOV2AMP) {
    amp_f32(e, i, 2);
}

/* --- SLIC (isa 4.8). --- */

static void slic_call(struct tile_exec *e, const struct isa_insn *i, uint32_t sets,
                      const struct operand *o, const float in[4], float ret_out[4]) {
    const uint32_t units = i->imm & ISA_SLIC_3TAP ? 6 : 8;
    const uint32_t mask = ((1u << units) - 1) * (sets == 2 ? 0x101u : 1u);
    check_defined(e, mask, mask, (uint32_t)i->imm & ISA_SLIC_W_MASK);
    for (uint32_t set = 0; set < sets; set++) {
        float *const even = e->w->acc.even + 8 * set;
        memcpy(ret_out + 2 * set, even, 8);
        for (uint32_t u = 0; u < units; u++) {
            const float from = u < units - 2 ? even[u + 2] : in[2 * set + u - (units - 2)];
            even[u] = unit_sum(e, from, o, 8 * set + u);
        }
    }
}

static bool slic_flags(struct tile_exec *e, const struct isa_insn *i, bool f32) {
    const uint32_t allowed = ISA_SLIC_W_MASK | ISA_SLIC_3TAP | (f32 ? ISA_SLIC_UPPER : 0);
    if (((uint32_t)i->imm & ~allowed) == 0) return true;
    tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, (uint32_t)i->imm);
    return false;
}

static void slic(struct tile_exec *e, const struct isa_insn *i, const struct form *f) {
    float in[4] = {0}, out[4];
    if (!slic_flags(e, i, false)) return;
    const struct operand o = operand(e, f, i->s0, (uint32_t)i->imm & ISA_SLIC_W_MASK);
    values_in(e, f, i->s1, in);
    slic_call(e, i, f->sets, &o, in, out);
    values_out(e, f, out);
}
EXEC(F16V4HIHOV4SLIC) {
    slic(e, i, &(struct form){2, false, HALVES, HALVES});
}
EXEC(F8V8HIHOV4SLIC) {
    slic(e, i, &(struct form){2, true, HALVES, HALVES});
}
EXEC(F16V4HIHOSLIC) {
    slic(e, i, &(struct form){1, false, HALVES, HALVES});
}
EXEC(F16V4SISOSLIC) {
    slic(e, i, &(struct form){1, false, SINGLES, SINGLES});
}
EXEC(F16V4SIHOSLIC) {
    slic(e, i, &(struct form){1, false, SINGLES, HALVES});
}

/* L shifts and takes the partial, U adds the upper words to the same sums and returns nothing; the
 * partial given to U must be zero. */
EXEC(F32SISOSLIC) {
    float in[2], out[2] = {0, 0};
    if (!slic_flags(e, i, true)) return;
    const bool upper = i->imm & ISA_SLIC_UPPER;
    const uint32_t units = i->imm & ISA_SLIC_3TAP ? 6 : 8,
                   word = (uint32_t)i->imm & ISA_SLIC_W_MASK;
    const float x = f32v(e->a[i->s0]);
    float *const even = e->w->acc.even;
    check_defined(e, (1u << units) - 1, (1u << units) - 1, word);
    singles_in(e, i->s1, in);
    if (upper && (in[0] != 0 || in[1] != 0))
        tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, (uint32_t)i->imm);
    if (!upper) memcpy(out, even, 8);
    for (uint32_t u = 0; u < units; u++) {
        const float shifted = u < units - 2 ? even[u + 2] : in[u - (units - 2)];
        even[u] = tile_mac(upper ? even[u] : shifted, x, weight_f32(e->t, u, word, upper));
    }
    e->w->tas = NUM_F32_NAN;
    e->w->tas_defined = false;
    singles_out(e, out);
}

/* Refused. Two sets give and take four F32 values a position, operand and destination hold two, and
 * the one public rule for F32 SLIC (isa 4.8) lets values in and out in L calls only: nothing says how
 * those of the second set travel. Giving it the U calls, as f32sisov2amp gives it the odd phases, does
 * not settle it: a SLIC exchange is also the shift of the sums, so either set 1 shifts half a position
 * late, and its first tap never meets the lower inputs, or it shifts in L and its results wait
 * somewhere for the U call; where, and when its partials are added, is not public. */
EXEC(F32SISOV2SLIC) {
    (void)i;
    tile_raise(e, TILE_FAULT_NOT_PUBLIC, 0, 0);
}
