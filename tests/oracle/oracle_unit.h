/* Accumulators and the matrix unit (isa 3.10 to 3.12, 4, B.3, B.4), by numbers of AACC as the sheet
 * has them. */
#ifndef IPU_TESTS_ORACLE_UNIT_H
#define IPU_TESTS_ORACLE_UNIT_H

#include "oracle_float.h"

static inline float acc(const struct oracle *s, uint32_t k) { return flushed(f32_of(s->aacc[k])); }
static inline void set_acc(struct oracle *s, uint32_t k, float v) { s->aacc[k] = bits_of(flushed(v)); }
/* Accumulator values as halves in the destination, in this order. */
static inline void halves_from(struct oracle *s, int64_t d, const float *v, uint32_t n) {
    const uint64_t random = draw_rounding(s);
    uint32_t r[4];
    for (uint32_t i = 0; i < n; i++) {
        if (v[i] != v[i]) s->sts |= O_INV; /* kernels 8.9 item 14 */
        r[i] = round_half(s, (double)v[i], (uint32_t)(random >> 16 * i));
    }
    set_halves(s, d, r, n);
}

/* --- acc, absacc, sqacc; mac, cmac, aop; axpy, mix. --- */

static inline bool accumulate(struct oracle *s, const struct step *x) {
    if (x->f->n_operands != 1 || !ends(x, "acc") || named(x, "f16v4gacc")) return false;
    const struct lanes a = lanes_of(s, x, 0, lane_count(x), starts(x, "f16"));
    for (uint32_t i = 0; i < a.n; i++) {
        const float v = (float)a.v[i];
        set_acc(s, 2 * i, ends(x, "sqacc")    ? fused(v, v, acc(s, 2 * i))
                          : ends(x, "absacc") ? exact_sum((__float128)fabsf(v), NEUTRAL, (__float128)acc(s, 2 * i))
                                              : exact_sum((__float128)v, NEUTRAL, (__float128)acc(s, 2 * i)));
    }
    return true;
}
static inline bool products(struct oracle *s, const struct step *x) {
    const bool half = starts(x, "f16");
    if (named(x, "f32v2aop")) {
        const struct lanes p = lanes_of(s, x, 0, 2, false), q = lanes_of(s, x, 1, 2, false);
        const uint32_t order[4][2] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}}; /* AACC[0], [2], [4], [6] */
        for (uint32_t i = 0; i < 4; i++)
            set_acc(s, 2 * i, fused((float)p.v[order[i][0]], (float)q.v[order[i][1]], acc(s, 2 * i)));
        return true;
    }
    if (x->f->n_operands != 2 || !ends(x, "mac")) return false;
    const struct lanes p = lanes_of(s, x, 0, lane_count(x), half), q = lanes_of(s, x, 1, lane_count(x), half);
    if (!half) {
        for (uint32_t i = 0; i < p.n; i++) set_acc(s, 2 * i, fused((float)p.v[i], (float)q.v[i], acc(s, 2 * i)));
        return true;
    }
    for (uint32_t i = 0; i < p.n; i += 2)
        set_acc(s, i, exact_sum((__float128)(p.v[i] * q.v[i]), (__float128)(p.v[i + 1] * q.v[i + 1]), (__float128)acc(s, i)));
    return true;
}
static inline bool pipelined(struct oracle *s, const struct step *x) {
    if (named(x, "f32v2axpy")) {
        const struct lanes p = lanes_of(s, x, 1, 2, false), q = lanes_of(s, x, 2, 2, false);
        for (uint32_t i = 0; i < 2; i++) {
            set_a(s, x->v[0] + i, s->aacc[2 * i]);
            set_acc(s, 2 * i, fused(single(s->tas), (float)p.v[i], (float)q.v[i]));
        }
        return true;
    }
    if (!named(x, "f16v4mix")) return false;
    const struct lanes p = lanes_of(s, x, 1, 4, true), q = lanes_of(s, x, 2, 4, true);
    const double lo = half_value((uint16_t)s->tas), hi = half_value((uint16_t)(s->tas >> 16));
    const float out[4] = {acc(s, 0), acc(s, 2), acc(s, 4), acc(s, 6)};
    halves_from(s, x->v[0], out, 4);
    for (uint32_t i = 0; i < 4; i++) {
        set_acc(s, 2 * i, exact_sum((__float128)(lo * p.v[i]), (__float128)(hi * q.v[i]), 0));
    }
    return true;
}

/* --- gina, gacc, istacc, stacc. --- */

static inline bool reads(struct oracle *s, const struct step *x) {
    if (named(x, "f16v4gacc")) {
        const float out[4] = {acc(s, 0), acc(s, 2), acc(s, 4), acc(s, 6)};
        halves_from(s, x->v[0], out, 4);
        return true;
    }
    if (!ends(x, "gina")) return false;
    const uint32_t imm = (uint32_t)x->v[2], base = imm / 2 * 16 + imm % 2;
    const struct lanes in = lanes_of(s, x, 1, 2, starts(x, "f16"));
    const float out[2] = {acc(s, base), acc(s, base + 2)};
    if (in.half) {
        halves_from(s, x->v[0], out, 2);
    } else {
        set_a(s, x->v[0], s->aacc[base]);
        set_a(s, x->v[0] + 1, s->aacc[base + 2]);
    }
    for (uint32_t k = 4; k < 16; k += 2) s->aacc[base + k - 4] = s->aacc[base + k];
    for (uint32_t i = 0; i < 2; i++) set_acc(s, base + 12 + 2 * i, (float)in.v[i]);
    return true;
}
static inline uint32_t chain_place(uint32_t set, uint32_t engine, uint32_t j) { return 16 * set + 4 * engine + 2 * j + 1; }
static inline uint32_t sum_place(uint32_t set, uint32_t unit) { return 16 * set + 2 * unit; }
static inline void exchange_rows(struct oracle *s, uint32_t set, uint32_t engines) {
    for (uint32_t e = 0; e < engines; e++)
        for (uint32_t j = 0; j < 2; j++) {
            const uint32_t p = sum_place(set, 2 * e + j), q = chain_place(set, e, j), v = s->aacc[p];
            s->aacc[p] = s->aacc[q];
            s->aacc[q] = v;
        }
}
/* Two values leave engine 0, two enter at the last one. */
static inline void shift_chain(struct oracle *s, uint32_t set, uint32_t engines, const uint32_t in[2], uint32_t out[2]) {
    for (uint32_t j = 0; j < 2; j++) {
        out[j] = s->aacc[chain_place(set, 0, j)];
        for (uint32_t e = 0; e + 1 < engines; e++)
            s->aacc[chain_place(set, e, j)] = s->aacc[chain_place(set, e + 1, j)];
        s->aacc[chain_place(set, engines - 1, j)] = in[j];
    }
}
static inline bool sorts(struct oracle *s, const struct step *x) {
    const bool in = named(x, "f16v4istacc");
    if (!in && !named(x, "f16v4stacc")) return false;
    const uint32_t p = (uint32_t)x->v[in ? 3 : 1], none[2] = {0};
    uint32_t out[2];
    struct lanes row[2];
    for (uint32_t k = 0; in && k < 2; k++) row[k] = lanes_of(s, x, 1 + k, 4, true);
    if (!in && p == 0) exchange_rows(s, 0, 4);
    shift_chain(s, 0, 4, none, out);
    for (uint32_t j = 0; in && j < 4; j++)
        s->aacc[sum_place(0, 2 * j + p)] = row[0].bits[j] | row[1].bits[j] << 16;
    set_a(s, x->v[0], out[0]);
    set_a(s, x->v[0] + 1, out[1]);
    return true;
}

/* --- AMP and SLIC. --- */

struct unit_form {
    uint32_t sets, inputs; /* 4 F16, 8 F8, 1 F32 */
    bool halves_in, halves_out, slic;
};
static inline bool unit_form(const struct step *x, struct unit_form *f) {
    *f = (struct unit_form){.slic = ends(x, "slic")};
    if (!f->slic && (!ends(x, "amp") || ends(x, "clamp"))) return false;
    f->inputs = starts(x, "f16v4") ? 4 : starts(x, "f8v8") ? 8 : 1;
    f->sets = strstr(x->name, "ov4") != NULL || strstr(x->name, "ov2") != NULL ? 2 : 1;
    f->halves_in = strstr(x->name, "hiho") != NULL;
    f->halves_out = strstr(x->name, "iho") != NULL;
    return true;
}
static inline double input(const struct oracle *s, const struct step *x, const struct unit_form *f, uint32_t k) {
    if (f->inputs == 4) return half_value((uint16_t)(group(s, x, 1, k / 2) >> 16 * (k % 2)));
    if (f->inputs == 8) return f8_value(group(s, x, 1, k / 4) >> 8 * (k % 4) & 0xff, s->nfmt >> 1 & 1);
    return (double)single(group(s, x, 1, 0));
}
static inline double weight(const struct oracle *s, const struct unit_form *f, uint32_t unit, uint32_t word, uint32_t k) {
    const uint64_t w = s->cwei[4 * unit + word];
    if (f->inputs == 4) return half_value((uint16_t)(w >> 16 * k));
    if (f->inputs == 8) return f8_value(w >> 8 * k & 0xff, s->nfmt & 1);
    return (double)single((uint32_t)(w >> 32 * k));
}
/* Model B: every magnitude cut to 31 bits behind the leading one of the largest. */
static inline float window_sum(float start, const double *p, uint32_t n) {
    double whole = (double)start;
    int largest = INT32_MIN;
    int64_t units = 0;
    for (uint32_t i = 0; i < n; i++) whole += p[i];
    if (!isfinite(whole)) return flushed((float)whole);
    if (start != 0) largest = ilogb((double)start);
    for (uint32_t i = 0; i < n; i++)
        if (p[i] != 0 && ilogb(p[i]) > largest) largest = ilogb(p[i]);
    if (largest == INT32_MIN) return flushed((float)whole);
    const double unit = ldexp(1, largest - 31);
    units += (int64_t)trunc((double)start / unit);
    for (uint32_t i = 0; i < n; i++) units += (int64_t)trunc(p[i] / unit);
    return flushed((float)((double)units * unit));
}
/* Model A (isa 4.7) unless s->window; `k` is the half of the word that F32 takes. */
static inline float added(const struct oracle *s, const struct step *x, const struct unit_form *f, float start,
                          uint32_t unit, uint32_t word, uint32_t k) {
    double p[8] = {0};
    if (f->inputs == 1) return fused((float)input(s, x, f, 0), (float)weight(s, f, unit, word, k), start);
    for (uint32_t i = 0; i < f->inputs; i++) p[i] = input(s, x, f, i) * weight(s, f, unit, word, i);
    for (uint32_t i = 0; s->window && f->inputs == 8 && i < 8; i++) p[i] *= ldexp(1, scale_of(s));
    if (s->window) return window_sum(start, p, f->inputs);
    double t = (p[0] + p[1]) + (p[2] + p[3]);
    if (f->inputs == 8) t = (t + ((p[4] + p[5]) + (p[6] + p[7]))) * ldexp(1, scale_of(s));
    return flushed((float)((double)start + t));
}
/* The partials of operand 2, two a set. */
static inline void partials(const struct oracle *s, const struct step *x, const struct unit_form *f, uint32_t in[2][2]) {
    const uint32_t n = f->halves_in ? 2 * f->sets : 2;
    const struct lanes l = lanes_of(s, x, 2, n, f->halves_in);
    for (uint32_t i = 0; i < n; i++) in[i / 2][i % 2] = single_bits((long double)l.v[i]);
}
static inline void results(struct oracle *s, const struct step *x, const struct unit_form *f, uint32_t out[2][2]) {
    const float v[4] = {single(out[0][0]), single(out[0][1]), single(out[1][0]), single(out[1][1])};
    if (f->halves_out) {
        halves_from(s, x->v[0], v, 2 * f->sets);
        return;
    }
    set_a(s, x->v[0], out[0][0]);
    set_a(s, x->v[0] + 1, out[0][1]);
}
static inline void amp(struct oracle *s, const struct step *x, const struct unit_form *f) {
    const uint32_t flags = (uint32_t)x->v[3], p = flags & 7, n = 4u >> (flags >> 3 & 3);
    const bool single_input = f->inputs == 1;
    const struct oracle old = *s;
    uint32_t in[2][2] = {{0}}, out[2][2] = {{0}};
    partials(s, x, f, in);
    for (uint32_t set = 0; set < f->sets; set++) {
        if (p == 0) exchange_rows(s, set, n);
        for (uint32_t m = 0; m < 2 * n; m++)
            set_acc(s, sum_place(set, m), added(&old, x, f, acc(s, sum_place(set, m)), 8 * set + m,
                                                single_input ? p / 2 : p, p % 2));
    }
    if (single_input) {
        s->tas = 0x7fc00000; /* clobbered: this model's value */
        if (f->sets == 2 || p % 2 == 0) shift_chain(s, f->sets == 2 ? p % 2 : 0, n, in[0], out[0]);
    } else {
        for (uint32_t set = 0; set < f->sets; set++) shift_chain(s, set, n, in[set], out[set]);
    }
    results(s, x, f, out);
}
static inline void slic(struct oracle *s, const struct step *x, const struct unit_form *f) {
    const uint32_t flags = (uint32_t)x->v[3], w = flags & 3, taps = flags & 4 ? 3 : 4;
    const bool upper = flags & 8;
    const struct oracle old = *s;
    uint32_t in[2][2] = {{0}}, out[2][2] = {{0}};
    partials(s, x, f, in);
    for (uint32_t set = 0; set < f->sets; set++)
        for (uint32_t m = 0; m < 2 * taps; m++) {
            const uint32_t at = sum_place(set, m);
            const float from = upper ? acc(&old, at) : m + 2 < 2 * taps ? acc(&old, at + 4) : f32_of(in[set][m % 2]);
            if (m < 2 && !upper) out[set][m] = old.aacc[at];
            set_acc(s, at, added(&old, x, f, from, 8 * set + m, w, upper));
        }
    if (f->inputs == 1) s->tas = 0x7fc00000;
    results(s, x, f, out);
}

static inline bool oracle_unit(struct oracle *s, const struct step *x) {
    struct unit_form f;
    if (x->f->kind != ISA_KIND_FLOAT) return false;
    if (unit_form(x, &f)) {
        (f.slic ? slic : amp)(s, x, &f);
        return true;
    }
    return accumulate(s, x) || products(s, x) || pipelined(s, x) || reads(s, x) || sorts(s, x);
}

#endif
