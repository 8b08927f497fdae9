/* Floating point on registers: lanes, functions, conversions, random numbers (isa 3.7 to 3.9, 3.13,
 * 3.14, 5.3). */
#ifndef IPU_TESTS_ORACLE_FLOAT_H
#define IPU_TESTS_ORACLE_FLOAT_H

#include "oracle.h"

/* The lanes of an operand as numbers; broadcast as its class says. */
struct lanes {
    uint32_t n;
    bool half;
    uint32_t bits[8];
    double v[8];
};
static inline struct lanes lanes_of(const struct oracle *s, const struct step *x, uint32_t k, uint32_t n, bool half) {
    struct lanes l = {.n = n, .half = half};
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = is_class(x, k, ISA_CLASS_A_B) || is_class(x, k, ISA_CLASS_A_BL) ? 0
                          : is_class(x, k, ISA_CLASS_A_BU)                                  ? 1
                                                                                            : i;
        l.bits[i] = half ? group(s, x, k, at / 2) >> 16 * (at % 2) & 0xffff : group(s, x, k, at);
        l.v[i] = half ? half_value((uint16_t)l.bits[i]) : (double)single(l.bits[i]);
    }
    return l;
}
static inline void set_halves(struct oracle *s, int64_t r, const uint32_t *h, uint32_t n) {
    for (uint32_t i = 0; i < n; i += 2) set_a(s, r + i / 2, h[i] | (i + 1 < n ? h[i + 1] << 16 : 0));
}
static inline uint32_t lane_count(const struct step *x) {
    const char *v = strchr(x->name, 'v');
    return v != NULL && v[1] >= '2' && v[1] <= '8' ? (uint32_t)(v[1] - '0') : 1;
}
static inline const char *operation(const struct step *x) {
    const char *p = x->name + 3;
    return *p == 'v' ? p + 2 : p;
}

/* --- Arithmetic and comparisons. --- */

static inline bool arithmetic(const char *op, long double x, long double y, long double *r) {
    if (strcmp(op, "add") == 0) *r = x + y;
    else if (strcmp(op, "sub") == 0) *r = x - y;
    else if (strcmp(op, "mul") == 0) *r = x * y;
    else if (strcmp(op, "div") == 0) *r = x / y;
    else if (strcmp(op, "absadd") == 0) *r = fabsl(x) + fabsl(y);
    else return false;
    return true;
}
static inline bool comparison(const char *op, double x, double y, bool *r) {
    if (!g_str_has_prefix(op, "cmp")) return false;
    const bool nan = x != x || y != y;
    const char *c = op + 3;
    *r = strcmp(c, "ne") == 0 ? nan || x != y
       : nan                  ? false
       : strcmp(c, "eq") == 0 ? x == y
       : strcmp(c, "lt") == 0 ? x < y
       : strcmp(c, "le") == 0 ? x <= y
       : strcmp(c, "gt") == 0 ? x > y
                              : x >= y;
    return true;
}
/* The number wins; +0 is larger than -0. */
static inline double larger(double x, double y) {
    if (x != x || y != y) return x != x ? y : x;
    if (x == 0 && y == 0) return signbit(x) ? y : x;
    return x > y ? x : y;
}
static inline double smaller(double x, double y) {
    if (x != x || y != y) return x != x ? y : x;
    return -larger(-x, -y);
}
/* Codes of values that are exact in the format. */
static inline uint32_t exact_code(bool half, double v) {
    if (!half) return single_bits((long double)v);
    return isinf(v) ? 0x7c00 | (v < 0 ? 0x8000 : 0) : half_nearest(v);
}
static inline bool selection(const char *op, double x, double y, double *r) {
    if (strcmp(op, "max") == 0) *r = larger(x, y);
    else if (strcmp(op, "min") == 0) *r = smaller(x, y);
    else if (strcmp(op, "absmax") == 0) *r = larger(fabs(x), fabs(y));
    else return false;
    return true;
}
static inline void store_lanes(struct oracle *s, const struct step *x, const struct lanes *l, const uint32_t *r) {
    if (l->half) set_halves(s, x->v[0], r, l->n);
    else
        for (uint32_t i = 0; i < l->n; i++) set_a(s, x->v[0] + i, r[i]);
}
static inline uint32_t arithmetic_flags(double x, double y, long double v, bool division) {
    if (isnan(v)) return x != x || y != y ? 0 : O_INV;
    return division && y == 0 && x != 0 && !isinf(x) ? O_DIV0 : 0;
}
static inline bool lane_by_lane(struct oracle *s, const struct step *x, bool half) {
    const char *op = operation(x);
    if (x->f->n_operands != 3 || strcmp(op, "mix") == 0 || strcmp(op, "axpy") == 0) return false;
    const uint32_t n = lane_count(x);
    const struct lanes a = lanes_of(s, x, 1, n, half), c = lanes_of(s, x, 2, n, half);
    uint32_t r[8];
    uint64_t random = 0;
    for (uint32_t i = 0; i < n; i++) {
        long double v;
        double picked;
        bool holds;
        if (arithmetic(op, (long double)a.v[i], (long double)c.v[i], &v)) {
            if (i == 0 && half) random = draw_rounding(s);
            const uint32_t flags = arithmetic_flags(a.v[i], c.v[i], v, strcmp(op, "div") == 0);
            s->sts |= flags;
            r[i] = half ? round_half(s, (double)v, (uint32_t)(random >> 16 * i)) : single_bits(v);
            const bool grew = !half && (r[i] & 0x7fffffff) == 0x7f800000;
            if (grew && flags == 0 && !isinf(a.v[i]) && !isinf(c.v[i])) s->sts |= O_OFLO;
        } else if (comparison(op, a.v[i], c.v[i], &holds)) {
            r[i] = holds ? (half ? 0xffff : UINT32_MAX) : 0;
        } else if (selection(op, a.v[i], c.v[i], &picked)) {
            r[i] = exact_code(half, picked);
        } else {
            return false;
        }
    }
    store_lanes(s, x, &a, r);
    return true;
}

/* Limits { low, high } in one register of halves or a pair of F32. */
static inline bool clamp(struct oracle *s, const struct step *x, bool half) {
    if (strcmp(operation(x), "clamp") != 0) return false;
    const uint32_t n = lane_count(x);
    const struct lanes a = lanes_of(s, x, 1, n, half), limits = lanes_of(s, x, 2, 2, half);
    uint32_t r[8];
    for (uint32_t i = 0; i < n; i++)
        r[i] = exact_code(half, smaller(larger(a.v[i], limits.v[0]), limits.v[1]));
    store_lanes(s, x, &a, r);
    return true;
}

/* --- Across lanes, classes. --- */

static inline uint32_t class_number(double v, bool negative, bool signalling) {
    if (v != v) return signalling ? 1 : 2;
    if (v == 0) return negative ? 5 : 6;
    return isinf(v) ? (negative ? 3 : 8) : negative ? 4 : 7;
}
static inline bool classes(struct oracle *s, const struct step *x) {
    if (!ends(x, "class")) return false;
    uint32_t r = 0;
    for (uint32_t i = 0; i < lane_count(x); i++) {
        const uint32_t w = x->name[1] == '8' ? group(s, x, 1, 0) >> 8 * i & 0xff
                         : x->name[1] == '1' ? group(s, x, 1, i / 2) >> 16 * (i % 2) & 0xffff
                                             : group(s, x, 1, i);
        const uint32_t number =
            x->name[1] == '8'   ? class_number(f8_value(w, s->nfmt >> 1 & 1), w >> 7, false)
            : x->name[1] == '1' ? class_number(half_value((uint16_t)w), w >> 15, (w & 0x200) == 0)
                                : class_number((double)f32_of(w), w >> 31, (w & 0x400000) == 0);
        r |= number << 8 * i;
    }
    set_a(s, x->v[0], r);
    return true;
}
static inline bool across(struct oracle *s, const struct step *x) {
    const struct lanes a = lanes_of(s, x, 1, lane_count(x) == 4 ? 4 : 2, true);
    if (named(x, "f16v2maxc")) set_a(s, x->v[0], exact_code(true, larger(a.v[0], a.v[1])) * 0x10001);
    else if (named(x, "f16v4maxc"))
        set_a(s, x->v[0], exact_code(true, larger(a.v[0], a.v[1])) |
                              exact_code(true, larger(a.v[2], a.v[3])) << 16);
    else if (named(x, "f16v2sum") || named(x, "f16v4sum"))
        for (uint32_t i = 0; i < a.n / 2; i++) {
            const double u = a.v[2 * i], v = a.v[2 * i + 1];
            s->sts |= arithmetic_flags(u, v, (long double)u + v, false);
            set_a(s, x->v[0] + i, single_bits((long double)u + (long double)v));
        }
    else return false;
    return true;
}

/* --- Functions: rounded to binary64, then once to the result (isa C.5). --- */

static inline bool function(const char *op, long double x, long double *r) {
    if (strcmp(op, "exp") == 0) *r = expl(x);
    else if (strcmp(op, "exp2") == 0) *r = exp2l(x);
    else if (strcmp(op, "ln") == 0) *r = logl(x);
    else if (strcmp(op, "log2") == 0) *r = log2l(x);
    else if (strcmp(op, "tanh") == 0) *r = tanhl(x);
    else if (strcmp(op, "sigm") == 0) *r = 1 / (1 + expl(-x));
    else if (strcmp(op, "sqrt") == 0) *r = sqrtl(x);
    else if (strcmp(op, "oox") == 0) *r = 1 / x;
    else if (strcmp(op, "oorx") == 0) *r = 1 / sqrtl(x);
    else return false;
    return true;
}
static const struct { const char *name; uint32_t slots; } SLOW[] = {
    {"f32tanh", 5}, {"f16v2tanh", 1}, {"f32sigm", 5}, {"f16v2sigm", 2}, {"f32exp", 3}, {"f32exp2", 3},
    {"f16v2exp", 2}, {"f16v2exp2", 2}, {"f32ln", 6}, {"f32log2", 6}, {"f16v2ln", 2}, {"f16v2log2", 2},
    {"f32div", 3}, {"f32oox", 3}, {"f32oorx", 4}, {"f32sqrt", 5}};
static inline uint32_t slots_of(const struct oracle *s, const struct step *x) {
    if (starts(x, "f16v2exp") && (group(s, x, 1, 0) & 0x7fff7fff) == 0) return 1;
    for (uint32_t k = 0; k < ARRAY_LEN(SLOW); k++)
        if (named(x, SLOW[k].name)) return SLOW[k].slots;
    return 1;
}
static inline bool functions(struct oracle *s, const struct step *x, bool half) {
    long double v;
    if (x->f->n_operands != 2 || !function(operation(x), 1, &v)) return false;
    const uint32_t n = lane_count(x);
    const struct lanes a = lanes_of(s, x, 1, n, half);
    const uint64_t random = half ? draw_rounding(s) : 0;
    uint32_t r[2];
    for (uint32_t i = 0; i < n; i++) {
        function(operation(x), (long double)a.v[i], &v);
        if (isnan(v) && a.v[i] == a.v[i]) s->sts |= O_INV;
        if (isinf(v) && !isinf(a.v[i])) s->sts |= a.v[i] == 0 ? O_DIV0 : O_OFLO;
        r[i] = half ? round_half(s, (double)v, (uint32_t)(random >> 16 * i)) : single_bits((long double)(double)v);
        const bool grew = !half && (r[i] & 0x7fffffff) == 0x7f800000 && !isinf(v);
        if (grew || (isinf((double)v) && !isinf(v))) s->sts |= O_OFLO;
    }
    store_lanes(s, x, &a, r);
    s->loose = (s->ctl >> 16 & 15) != 0;
    return true;
}

/* --- Conversions. --- */

static inline long double integral(long double v, uint32_t mode) {
    switch (mode) {
    case 0: return rintl(v);
    case 1: return ceill(v);
    case 2: return floorl(v);
    case 3: return truncl(v);
    default: return roundl(v);
    }
}
static inline void to_integer(struct oracle *s, const struct step *x, long double min, long double max) {
    const long double in = (long double)single(group(s, x, 1, 0));
    const long double v = isnan(in) ? 0 : integral(in, s->ctl >> 16 & 7);
    const long double clipped = v < min ? min : v > max ? max : v;
    if (isnan(in) || clipped != v) s->sts |= O_INV;
    set_a(s, x->v[0], (uint32_t)(int64_t)clipped);
}
static inline bool integers(struct oracle *s, const struct step *x) {
    const uint32_t w = x->f->n_operands > 1 && class_of(x, 1)->reg ? group(s, x, 1, 0) : 0;
    if (named(x, "f32int")) set_a(s, x->v[0], single_bits(integral((long double)single(w), (uint32_t)x->v[2])));
    else if (named(x, "f32toi32")) to_integer(s, x, -2147483648.0L, 2147483647.0L);
    else if (named(x, "f32toui32")) to_integer(s, x, 0, 4294967295.0L);
    else if (named(x, "f32fromi32")) set_a(s, x->v[0], single_bits(w < 0x80000000u ? (long double)w : (long double)w - 4294967296.0L));
    else if (named(x, "f32fromui32")) set_a(s, x->v[0], single_bits((long double)w));
    else return false;
    return true;
}
/* The F8 scale: six bits, signed. */
static inline int scale_of(const struct oracle *s) {
    const int v = (int)(s->scl & 63);
    return v > 31 ? v - 64 : v;
}
static inline bool f8_conversions(struct oracle *s, const struct step *x) {
    const uint32_t n = lane_count(x), format = s->nfmt >> 1 & 1;
    uint32_t r[8] = {0};
    if (ends(x, "tof8")) {
        const struct lanes a = lanes_of(s, x, 1, n, true);
        const uint64_t random = draw_rounding(s);
        for (uint32_t i = 0; i < n; i++)
            r[i / 4] |= round_f8(s, a.v[i] * ldexp(1, scale_of(s)), format, (uint32_t)(random >> 8 * i & 0xff) << 8)
                        << 8 * (i % 4);
        set_a(s, x->v[0], r[0]);
        if (n == 8) set_a(s, x->v[0] + 1, r[1]);
        return true;
    }
    if (!starts(x, "f8v") || !ends(x, "tof16")) return false;
    const uint64_t random = draw_rounding(s);
    for (uint32_t i = 0; i < n; i++)
        r[i] = round_half(s, f8_value(group(s, x, 1, 0) >> 8 * i & 0xff, format) * ldexp(1, scale_of(s)),
                          (uint32_t)(random >> 16 * i));
    set_halves(s, x->v[0], r, n);
    return true;
}
static inline bool conversions(struct oracle *s, const struct step *x) {
    if (f8_conversions(s, x)) return true;
    const uint32_t n = lane_count(x);
    if (named(x, "f16tof32") || named(x, "f16v2tof32")) {
        const struct lanes a = lanes_of(s, x, 1, n, true);
        for (uint32_t i = 0; i < n; i++) set_a(s, x->v[0] + i, single_bits((long double)a.v[i]));
        return true;
    }
    if (!starts(x, "f32") || !ends(x, "tof16")) return false;
    const struct lanes a = lanes_of(s, x, 1, n, false);
    const uint64_t random = draw_rounding(s);
    uint32_t r[4];
    for (uint32_t i = 0; i < n; i++) r[i] = round_half(s, a.v[i], (uint32_t)(random >> 16 * i));
    if (n == 1) r[1] = r[0];
    set_halves(s, x->v[0], r, n == 1 ? 2 : n);
    return true;
}

/* --- Random numbers. --- */

static inline double gauss(struct oracle *s) {
    double sum = -6;
    for (uint32_t k = 0; k < 3; k++) {
        const uint64_t v = draw(s);
        for (uint32_t q = 0; q < 4; q++) sum += ((double)(v >> 16 * q & 0xffff) + 0.5) / 65536;
    }
    return sum;
}
static inline bool masks(struct oracle *s, const struct step *x) {
    if (!ends(x, "rmask")) return false;
    const uint32_t n = lane_count(x), p = group(s, x, 2, 0), bits = 64 / n;
    const struct lanes a = lanes_of(s, x, 1, n, n == 4);
    const uint64_t random = draw(s);
    uint32_t r[4];
    for (uint32_t i = 0; i < n; i++) {
        const bool keep = p >> 16 & 1 || (random >> bits * i & 0xffff) < (p & 0xffff);
        r[i] = keep ? a.bits[i] : 0;
    }
    store_lanes(s, x, &a, r);
    return true;
}
static inline bool from_unsigned(struct oracle *s, const struct step *x) {
    if (!ends(x, "sufromui")) return false;
    const bool half = starts(x, "f16");
    const uint32_t n = lane_count(x);
    const struct lanes a = lanes_of(s, x, 1, n, half);
    const uint64_t random = half ? draw_rounding(s) : 0;
    uint32_t r[4];
    for (uint32_t i = 0; i < n; i++) {
        const long double v = ((long double)a.bits[i] + 0.5L) / (half ? 65536.0L : 4294967296.0L) - 0.5L;
        r[i] = half ? round_half(s, (double)v, (uint32_t)(random >> 16 * i)) : single_bits(v);
    }
    store_lanes(s, x, &a, r);
    return true;
}
static inline bool randoms(struct oracle *s, const struct step *x) {
    if (named(x, "urand32")) {
        set_a(s, x->v[0], (uint32_t)draw(s));
    } else if (named(x, "urand64")) {
        const uint64_t v = draw(s);
        set_a(s, x->v[0], (uint32_t)v);
        set_a(s, x->v[0] + 1, (uint32_t)(v >> 32));
    } else if (named(x, "f32v2grand")) {
        for (uint32_t i = 0; i < 2; i++) set_a(s, x->v[0] + i, single_bits((long double)gauss(s)));
    } else if (named(x, "f16v2grand")) {
        const uint32_t lo = half_nearest(gauss(s)), hi = half_nearest(gauss(s));
        set_a(s, x->v[0], lo | hi << 16);
    } else {
        return masks(s, x) || from_unsigned(s, x);
    }
    return true;
}

static inline bool oracle_float(struct oracle *s, const struct step *x) {
    if (x->f->kind != ISA_KIND_FLOAT) return false;
    const bool half = starts(x, "f16");
    if (starts(x, "f8v")) return classes(s, x) || conversions(s, x);
    return clamp(s, x, half) || randoms(s, x) || lane_by_lane(s, x, half) || classes(s, x) ||
           functions(s, x, half) || integers(s, x) || conversions(s, x) ||
           (half && x->f->n_operands == 2 && across(s, x));
}

#endif
