/* The vector code of the matrix unit, written once over the types that tile_amp_avx2.c and
 * tile_amp_avx512.c define before they include it:
 *   f16s, d16s  sixteen floats, sixteen doubles
 *   VEC         function attribute that selects the instruction set
 *   f16s_load, f16s_store, d16s_of, f16s_of, d16s_mul (by one value), d16s_fma, d16s_add,
 *   f16s_any_nan, f16s_plain, f16s_clean (denormals to zero, NaN canonical), f16s_chain (shift, see
 * there). */

/* E + t: t = (p0 + p1) + (p2 + p3), for F8 the sum of two such; the weights carry the scale. */
VEC static inline __attribute__((always_inline)) f16s add_f16(f16s even, const double *w,
                                                              const double *x) {
    const d16s t01 = d16s_fma(w + 16, x + 1, d16s_mul(w, x));
    const d16s t23 = d16s_fma(w + 48, x + 3, d16s_mul(w + 32, x + 2));
    return f16s_of(d16s_add(d16s_of(even), d16s_add(t01, t23)));
}
VEC static inline __attribute__((always_inline)) f16s add_f8(f16s even, const double *w, uint64_t x,
                                                             const double *values) {
    const double *v[8];
    for (uint32_t i = 0; i < 8; i++) v[i] = values + (x >> 8 * i & 0xff);
    const d16s t01 = d16s_fma(w + 16, v[1], d16s_mul(w, v[0]));
    const d16s t23 = d16s_fma(w + 48, v[3], d16s_mul(w + 32, v[2]));
    const d16s t45 = d16s_fma(w + 80, v[5], d16s_mul(w + 64, v[4]));
    const d16s t67 = d16s_fma(w + 112, v[7], d16s_mul(w + 96, v[6]));
    const d16s t = d16s_add(d16s_add(t01, t23), d16s_add(t45, t67));
    return f16s_of(d16s_add(d16s_of(even), t));
}
/* Both operands F143: products are multiples of 2^-20 below 2^16, times one power of two, so every
 * sum of eight is exact in binary64 and may be taken in any order. */
VEC static inline __attribute__((always_inline)) f16s add_f143(f16s even, const double *w,
                                                               uint64_t x, const double *values) {
    d16s a = d16s_mul(w, values + (x & 0xff)), b = d16s_mul(w + 16, values + (x >> 8 & 0xff));
    for (uint32_t i = 2; i < 8; i += 2) {
        a = d16s_fma(w + 16 * i, values + (x >> 8 * i & 0xff), a);
        b = d16s_fma(w + 16 * i + 16, values + (x >> (8 * i + 8) & 0xff), b);
    }
    return f16s_of(d16s_add(d16s_of(even), d16s_add(a, b)));
}
VEC static inline void widen_x(uint64_t x, double ret[4]) {
    const __m128 f = _mm_cvtph_ps(_mm_cvtsi64_si128((long long)x));
    _mm256_store_pd(ret, _mm256_cvtps_pd(f));
}
VEC static inline __m128 widen(uint64_t h) {
    return _mm_cvtph_ps(_mm_cvtsi64_si128((long long)h));
}
VEC static inline uint64_t narrow(__m128 v) {
    return (uint64_t)_mm_cvtsi128_si64(_mm_cvtps_ph(v, NEAREST));
}

VEC static bool amp_call(const struct tile_amp_call *c, uint64_t *ret_out) {
    f16s even = f16s_load(c->swap ? c->acc->odd : c->acc->even);
    f16s odd = f16s_load(c->swap ? c->acc->even : c->acc->odd);
    const uint64_t out = narrow(f16s_first(odd));
    if (tile_f16_any_special(out) || tile_f16_any_special(c->partial)) return false;
    odd = f16s_chain(odd, widen(c->partial));
    if (c->f8_values != NULL) {
        even = add_f8(even, c->w, c->x, c->f8_values);
    } else {
        double x[4] __attribute__((aligned(32)));
        widen_x(c->x, x);
        even = add_f16(even, c->w, x);
    }
    f16s_store(c->acc->even, f16s_clean(even));
    f16s_store(c->acc->odd, odd);
    *ret_out = out;
    return true;
}

VEC static inline void mark(const struct tile_fused_run *r, const uint8_t *p) {
    const uint32_t word = (uint32_t)(p - r->memory) / 4;
    r->written[word / 64] |= UINT64_C(3) << word % 64;
}

VEC static inline uint64_t load64(const struct tile_fused_run *r,
                                  const struct tile_fused_access *a) {
    uint64_t v;
    memcpy(&v, r->pointer[a->stream], 8);
    return v;
}
VEC static inline void load_step(struct tile_fused_run *r, const struct tile_fused_access *a,
                                 uint64_t v) {
    r->pairs[a->pair] = v;
    r->pointer[a->stream] += a->step;
}
VEC static inline void store_step(struct tile_fused_run *r, const struct tile_fused_access *a) {
    uint8_t *const p = r->pointer[a->stream];
    memcpy(p, &r->pairs[a->pair], 8);
    if (r->written != NULL) mark(r, p);
    r->pointer[a->stream] = p + a->step;
}

/* Loads and the store of one bundle. All sources are read before a register is written; the
 * addresses are distinct elements, so their order does not matter. */
VEC static inline void transfer(struct tile_fused_run *r, const struct tile_fused_slot *s) {
    switch ((enum tile_fused_kind)s->kind) {
    case TILE_FUSED_NONE:
        break;
    case TILE_FUSED_L:
        load_step(r, &s->load[0], load64(r, &s->load[0]));
        break;
    case TILE_FUSED_S:
        store_step(r, &s->store);
        break;
    case TILE_FUSED_LS:
        store_step(r, &s->store);
        load_step(r, &s->load[0], load64(r, &s->load[0]));
        break;
    case TILE_FUSED_LL:
        load_step(r, &s->load[0], load64(r, &s->load[0]));
        load_step(r, &s->load[1], load64(r, &s->load[1]));
        break;
    case TILE_FUSED_LLS:
        store_step(r, &s->store);
        load_step(r, &s->load[0], load64(r, &s->load[0]));
        load_step(r, &s->load[1], load64(r, &s->load[1]));
        break;
    }
}

VEC static inline __attribute__((always_inline)) f16s add(const struct tile_fused_run *r,
                                                          enum tile_fused_type type, f16s even,
                                                          uint32_t phase, uint64_t x) {
    if (type == TILE_FUSED_F16) {
        double v[4] __attribute__((aligned(32)));
        widen_x(x, v);
        return add_f16(even, r->w + 64 * phase, v);
    }
    if (type == TILE_FUSED_F143) tile_weights_doubles(r->weights);
    const double *const w = r->w + 128 * phase;
    if (type == TILE_FUSED_F143) return add_f143(even, w, x, r->f8_values);
    return add_f8(even, w, x, r->f8_values);
}

struct sums {
    f16s even, odd;
};
/* The call of one slot; false, with nothing of importance changed, where the plain code must
 * decide. NaN in the sums is made canonical when the sums become visible: at phase 0 and at the
 * end. */
VEC static inline __attribute__((always_inline)) bool slot_call(const struct tile_fused_run *r,
                                                                enum tile_fused_type type,
                                                                struct sums *c, uint32_t phase,
                                                                uint64_t x, uint64_t partial,
                                                                uint64_t *ret_out) {
    if (phase == 0 && __builtin_expect(f16s_any_nan(c->even), 0)) c->even = f16s_clean(c->even);
    const f16s leaving = phase == 0 ? c->even : c->odd;
    const uint64_t out = narrow(f16s_first(leaving));
    if (__builtin_expect(tile_f16_any_special(out) || tile_f16_any_special(partial), 0))
        return false;
    if (phase == 0) c->even = c->odd;
    c->odd = f16s_chain(leaving, widen(partial));
    c->even = add(r, type, c->even, phase, x);
    *ret_out = out;
    return true;
}

#include "tile/tile_amp_rows.h"

VEC static inline __attribute__((always_inline)) uint64_t loop(struct tile_fused_run *r,
                                                               uint64_t passes,
                                                               enum tile_fused_type type) {
    struct sums c = {f16s_load(r->acc->even), f16s_load(r->acc->odd)};
    if (!f16s_plain(c.even) || !f16s_plain(c.odd)) return 0;
    const uint64_t n = passes * r->n_slots;
    uint32_t k = 0;
    uint64_t done = 0, out;
    while (done < n) {
        if (k == r->regular && n - done >= 4) {
            done += r->slots[0].kind == TILE_FUSED_LLS
                        ? rows_run(r, type, &c, n - done, ROW_BOTH)
                        : rows_run(r, type, &c, n - done, ROW_LEFT);
            if (done == n) break;
        }
        const struct tile_fused_slot *s = &r->slots[k];
        if (!slot_call(r, type, &c, s->phase, r->pairs[s->x], r->pairs[s->partial], &out)) break;
        transfer(r, s);
        r->pairs[s->result] = out;
        k = k + 1 == r->n_slots ? 0 : k + 1;
        done++;
    }
    f16s_store(r->acc->even, f16s_clean(c.even));
    f16s_store(r->acc->odd, c.odd);
    return done;
}
VEC static uint64_t loop_f16(struct tile_fused_run *r, uint64_t passes) {
    return loop(r, passes, TILE_FUSED_F16);
}
VEC static uint64_t loop_f8(struct tile_fused_run *r, uint64_t passes) {
    return loop(r, passes, TILE_FUSED_F8);
}
VEC static uint64_t loop_f143(struct tile_fused_run *r, uint64_t passes) {
    return loop(r, passes, TILE_FUSED_F143);
}
VEC static uint32_t rows_of_f16(struct tile_fused_run *r, uint32_t n) {
    return trace_run(r, TILE_FUSED_F16, n);
}
VEC static uint32_t rows_of_f8(struct tile_fused_run *r, uint32_t n) {
    return trace_run(r, TILE_FUSED_F8, n);
}
VEC static uint32_t rows_of_f143(struct tile_fused_run *r, uint32_t n) {
    return trace_run(r, TILE_FUSED_F143, n);
}
