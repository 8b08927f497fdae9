/* F16 and F8 over all codes, both rounding modes, against independent definitions and the nearest code
 * found by search. F32 to F16 over all inputs is in the long test. */
#include "numeric/num_format.h"

#include "../half_oracle.h"

#include <math.h>

static void test_f16_all_codes(void) {
    for (uint32_t h = 0; h < 65536; h++) {
        const uint16_t bits = (uint16_t)h;
        const double want = half_value(bits);
        const float got = num_f16_to_f32(bits);
        if (num_f16_is_nan(bits)) {
            g_assert_cmphex(num_f32_bits(got), ==, NUM_F32_NAN);
            g_assert_cmphex(num_f16_from_f32(got), ==, NUM_F16_NAN);
            continue;
        }
        g_assert_cmphex(num_f32_bits(got), ==, num_f32_bits((float)want));
        const bool infinite = (bits & 0x7fff) == 0x7c00;
        g_assert_cmphex(num_f16_from_f32(got), ==, infinite ? bits - 1 : bits);
        g_assert_cmphex(num_f16_from_f32_ieee(got), ==, bits);
    }
}

/* The array forms, which may use the machine's conversions, against the single ones. */
static void test_f16_arrays(void) {
    enum { N = 1 << 16 };
    uint16_t *h = g_new(uint16_t, N), *back = g_new(uint16_t, N);
    float *v = g_new(float, N);
    for (uint32_t i = 0; i < N; i++) h[i] = (uint16_t)i;
    num_f16_to_f32_n(N, h, v);
    for (uint32_t i = 0; i < N; i++)
        g_assert_cmphex(num_f32_bits(v[i]), ==, num_f32_bits(num_f16_to_f32(h[i])));
    for (uint32_t round = 0; round < 64; round++) {
        const uint32_t n = N - round; /* odd lengths too */
        for (uint32_t i = 0; i < n; i++)
            v[i] = num_f32_from_bits((uint32_t)rand_u64(3, round, i) & (round % 2 ? 0xcfffffff : 0xffffffff));
        num_f16_from_f32_n(n, v, back);
        for (uint32_t i = 0; i < n; i++) g_assert_cmphex(back[i], ==, num_f16_from_f32(v[i]));
    }
    g_free(h);
    g_free(back);
    g_free(v);
}

/* Around every F16 value and every midpoint between two of them: the value, and one ulp each way. */
static void test_f16_rounding_edges(void) {
    for (uint32_t h = 0; h < 0x7c00; h++) {
        const double lo = num_f16_to_f32((uint16_t)h);
        const double hi = h == 0x7bff ? 65536 : num_f16_to_f32((uint16_t)(h + 1));
        const float points[2] = {(float)lo, (float)((lo + hi) / 2)};
        for (uint32_t i = 0; i < 2; i++)
            for (int32_t step = -1; step <= 1; step++)
                for (uint32_t sign = 0; sign < 2; sign++) {
                    const uint32_t b = num_f32_bits(points[i]) + (uint32_t)step;
                    const float v = num_f32_from_bits(b ^ sign << 31);
                    g_assert_cmphex(num_f16_from_f32_ieee(v), ==, half_nearest((double)v));
                }
    }
}

static void test_f16_modes(void) {
    for (uint32_t round = NUM_UP; round <= NUM_AWAY; round++) {
        const struct num_control control = {.round = (enum num_round)round};
        for (uint32_t i = 0; i < 200000; i++) {
            const float v = (float)ldexp(rand_normal(1, round, i), (int)(i % 40) - 25);
            uint32_t flags = 0;
            const uint16_t got = num_f16_from_f64(v, control, 0, &flags);
            if (flags) continue;
            const double g = num_f16_to_f32(got);
            const double below = num_f16_to_f32((uint16_t)(got - 1)), above =
                num_f16_to_f32((uint16_t)(got + 1)); /* towards and away from zero */
            if (round == NUM_UP) g_assert_true(g >= v && (v > 0 ? got == 0 || below < v : above < v));
            if (round == NUM_DOWN) g_assert_true(g <= v && (v < 0 ? (got & 0x7fff) == 0 || below > v : above > v));
            if (round == NUM_ZERO) g_assert_true(fabs(g) <= fabs((double)v) && fabs(above) > fabs((double)v));
            if (round == NUM_AWAY) g_assert_true(fabs(g - v) <= fabs(above - v) && ((got & 0x7fff) == 0 || fabs(g - v) <= fabs(below - v)));
        }
    }
}

static void test_f16_overflow(void) {
    const struct num_control nan = {.nan_on_overflow = true};
    uint32_t flags = 0;
    g_assert_cmphex(num_f16_from_f64(65519.99, NUM_DEFAULT, 0, &flags), ==, 0x7bff);
    g_assert_cmphex(flags, ==, 0);
    g_assert_cmphex(num_f16_from_f64(-65520, NUM_DEFAULT, 0, &flags), ==, 0xfbff);
    g_assert_cmphex(flags, ==, NUM_OFLO);
    g_assert_cmphex(num_f16_from_f64(65520, nan, 0, &flags), ==, NUM_F16_NAN);
    g_assert_cmphex(num_f16_from_f64(INFINITY, NUM_DEFAULT, 0, &flags), ==, 0x7bff);
    g_assert_cmphex(num_f16_from_f64(1e300, NUM_DEFAULT, 0, &flags), ==, 0x7bff);
    g_assert_cmphex(num_f16_from_f64(-1e-300, NUM_DEFAULT, 0, &flags), ==, 0x8000);
}

/* All 65,536 random values: the number of roundings up is the discarded fraction times 65,536. */
static void test_f16_stochastic(void) {
    const struct num_control sr = {.stochastic = true};
    const double values[] = {1 + 0x1p-13, 1 + 3 * 0x1p-12, 3.14159, -2.71828, 0x1.8p-25, 1e-6, 0.1};
    for (uint32_t i = 0; i < ARRAY_LEN(values); i++) {
        const double v = values[i];
        uint32_t flags = 0, ups = 0;
        const uint16_t low = num_f16_from_f64(v, (struct num_control){.round = NUM_ZERO}, 0, &flags);
        const double lo = num_f16_to_f32(low), hi = num_f16_to_f32((uint16_t)(low + 1));
        for (uint32_t u = 0; u < 65536; u++) {
            const uint16_t h = num_f16_from_f64(v, sr, u, &flags);
            g_assert_true(h == low || h == low + 1);
            ups += h != low;
        }
        g_assert_cmpuint(ups, ==, (uint32_t)floor((v - lo) / (hi - lo) * 65536));
    }
}

static double f8_by_definition(uint32_t q, bool f143) {
    const int m = f143 ? 3 : 2, bias = f143 ? 8 : 16;
    const int e = (int)(q & 0x7f) >> m, man = (int)q & ((1 << m) - 1);
    const double v = e ? ldexp(1 + (double)man / (1 << m), e - bias)
                       : ldexp((double)man / (1 << m), 1 - bias);
    return q & 0x80 ? -v : v;
}

/* Nearest code of a value by search over all codes; ties to the even code; saturating. */
static uint8_t f8_by_search(double v, bool f143) {
    uint32_t best = 0;
    for (uint32_t q = 0; q < 128; q++) {
        const double d = fabs(f8_by_definition(q, f143) - fabs(v));
        const double b = fabs(f8_by_definition(best, f143) - fabs(v));
        if (d < b || (d == b && q % 2 == 0)) best = q;
    }
    return (uint8_t)(best && v < 0 ? best | 0x80 : best);
}

static void test_f8_all_codes(void) {
    for (uint32_t format = 0; format < 2; format++)
        for (int32_t scale = -32; scale < 32; scale++)
            for (uint32_t q = 0; q < 256; q++) {
                const double v = num_f8_to_f64((uint8_t)q, (enum num_f8_format)format, scale);
                if (q == NUM_F8_NAN) {
                    g_assert_true(isnan(v));
                    continue;
                }
                g_assert_cmpfloat(v, ==, ldexp(f8_by_definition(q, format == NUM_F143), scale));
                g_assert_cmphex(num_f8_from_f32((float)v, (enum num_f8_format)format, scale), ==, q);
            }
    g_assert_cmpfloat(num_f8_to_f64(0x7f, NUM_F143, 0), ==, 240);
    g_assert_cmpfloat(num_f8_to_f64(0x7f, NUM_F152, 0), ==, 57344);
}

/* All F16 inputs, both formats, nearest: the nearest code by search, and saturation. */
static void test_f8_from_all_f16(void) {
    for (uint32_t format = 0; format < 2; format++)
        for (uint32_t h = 0; h < 65536; h++) {
            const double v = num_f16_to_f32((uint16_t)h);
            uint32_t flags = 0;
            const uint8_t q = num_f8_from_f64(v, (enum num_f8_format)format, NUM_DEFAULT, 0, &flags);
            if (isnan(v) || isinf(v)) {
                g_assert_cmphex(q, ==, NUM_F8_NAN);
                continue;
            }
            g_assert_cmphex(q, ==, f8_by_search(v, format == NUM_F143));
        }
}

static void test_f8_vectors(void) { /* isa 5.5 */
    const struct { uint16_t h; uint8_t q; } rows[] = {
        {0x4700, 0x56}, {0x4740, 0x56}, {0x4780, 0x57}, {0x4800, 0x58}, {0x4840, 0x58},
        {0x4880, 0x59}, {0x4900, 0x5a}, {0x5b80, 0x7f}, {0x5c00, 0x80}, {0x1400, 0x01},
        {0x7e00, 0x80}, {0x8000, 0x00}};
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint32_t flags = 0;
        const struct num_control nan = {.nan_on_overflow = true};
        g_assert_cmphex(num_f8_from_f64(num_f16_to_f32(rows[i].h), NUM_F143, nan, 0, &flags), ==,
                        rows[i].q);
    }
}

static void test_f8_stochastic(void) {
    const struct num_control sr = {.stochastic = true};
    uint32_t flags = 0, ups = 0;
    for (uint32_t u = 0; u < 65536; u++)
        ups += num_f8_from_f64(8.25, NUM_F143, sr, u, &flags) == 0x59;
    g_assert_cmpuint(ups, ==, 16384);
}

static void test_f32_flush(void) {
    g_assert_cmphex(num_f32_bits(num_f32_round(-0x1p-127)), ==, 0x80000000);
    g_assert_cmphex(num_f32_bits(num_f32_round(0x1p-126)), ==, 0x00800000);
    g_assert_cmphex(num_f32_bits(num_f32_flush(num_f32_from_bits(0xff800001))), ==, NUM_F32_NAN);
    g_assert_cmpfloat(num_f32_round(1 + 0x1p-24), ==, 1);
}

static void test_integral(void) {
    const double v[] = {-2.5, -1.5, -0.5, -0.2, 0.2, 0.5, 1.5, 2.5, 3.0, 8388608.5};
    const double nearest[] = {-2, -2, -0., -0., 0, 0, 2, 2, 3, 8388608};
    const double away[] = {-3, -2, -1, -0., 0, 1, 2, 3, 3, 8388609};
    for (uint32_t i = 0; i < ARRAY_LEN(v); i++) {
        g_assert_cmpfloat(num_integral(v[i], NUM_NEAREST), ==, nearest[i]);
        g_assert_cmpfloat(num_integral(v[i], NUM_AWAY), ==, away[i]);
        g_assert_cmpfloat(num_integral(v[i], NUM_UP), ==, ceil(v[i]));
        g_assert_cmpfloat(num_integral(v[i], NUM_DOWN), ==, floor(v[i]));
        g_assert_cmpfloat(num_integral(v[i], NUM_ZERO), ==, trunc(v[i]));
    }
}

static void test_prng(void) {
    uint64_t s[2];
    num_prng_seed(1, s);
    g_assert_cmphex(s[0], ==, UINT64_C(0xfffffffe00000001));
    g_assert_cmphex(s[1], ==, UINT64_C(0xffffc00000003fff));
    /* One step by hand from small states: x = 3, c = 0; then the result of s0 & s1 = 4. */
    uint64_t a[2] = {1, 2};
    g_assert_cmphex(num_prng_next(a), ==, 3);
    g_assert_cmphex(a[0], ==, (UINT64_C(1) << 55) ^ 3 ^ (3 << 14));
    g_assert_cmphex(a[1], ==, UINT64_C(3) << 36);
    uint64_t b[2] = {4, 4};
    g_assert_cmphex(num_prng_next(b), ==, 8 | 16);
}

/* The array forms of F8 against the single ones: all codes, what lies midway between two and beside it,
 * and any bits, at scales to both ends. */
static void check_f8_array(uint32_t n, const float *v, enum num_f8_format f, int32_t scale) {
    uint8_t *q = g_new(uint8_t, n);
    num_f8_from_f32_n(n, v, f, scale, q);
    for (uint32_t i = 0; i < n; i++)
        if (q[i] != num_f8_from_f32(v[i], f, scale))
            g_error("format %d, scale %d: %a gives 0x%x, not 0x%x", (int)f, scale, (double)v[i], q[i],
                    num_f8_from_f32(v[i], f, scale));
    g_free(q);
}

static void test_f8_arrays(void) {
    enum { N = 1 << 15 };
    float *v = g_new(float, N);
    for (uint32_t f = 0; f < 2; f++)
        for (int32_t scale = -32; scale <= 31; scale++) {
            uint8_t codes[256];
            for (uint32_t i = 0; i < 256; i++) codes[i] = (uint8_t)i;
            num_f8_to_f32_n(256, codes, f, scale, v);
            for (uint32_t i = 0; i < 256; i++)
                g_assert_cmphex(num_f32_bits(v[i]), ==, num_f32_bits(num_f8_to_f32(codes[i], f, scale)));
            uint32_t n = 0;
            for (uint32_t i = 0; i < 127; i++) {
                const float low = num_f8_to_f32((uint8_t)i, f, scale);
                const float middle = (low + num_f8_to_f32((uint8_t)(i + 1), f, scale)) / 2;
                const float near[] = {low, middle, nextafterf(middle, 0), nextafterf(middle, INFINITY),
                                      nextafterf(low, 0)};
                for (uint32_t k = 0; k < G_N_ELEMENTS(near); k++) {
                    v[n++] = near[k];
                    v[n++] = -near[k];
                }
            }
            for (; n < N; n++) v[n] = num_f32_from_bits((uint32_t)rand_u64(5, (uint64_t)scale, n));
            check_f8_array(N, v, f, scale);
            for (n = 0; n < N; n++) /* magnitudes around the format's range */
                v[n] = ldexpf(rand_normal(6, (uint64_t)scale, n), scale + (int32_t)(n % 24) - 14);
            check_f8_array(N, v, f, scale);
        }
    g_free(v);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/numeric/f16/codes", test_f16_all_codes);
    g_test_add_func("/numeric/f16/arrays", test_f16_arrays);
    g_test_add_func("/numeric/f16/edges", test_f16_rounding_edges);
    g_test_add_func("/numeric/f16/modes", test_f16_modes);
    g_test_add_func("/numeric/f16/overflow", test_f16_overflow);
    g_test_add_func("/numeric/f16/stochastic", test_f16_stochastic);
    g_test_add_func("/numeric/f8/codes", test_f8_all_codes);
    g_test_add_func("/numeric/f8/from-f16", test_f8_from_all_f16);
    g_test_add_func("/numeric/f8/vectors", test_f8_vectors);
    g_test_add_func("/numeric/f8/stochastic", test_f8_stochastic);
    g_test_add_func("/numeric/f32/flush", test_f32_flush);
    g_test_add_func("/numeric/integral", test_integral);
    g_test_add_func("/numeric/prng", test_prng);
    g_test_add_func("/numeric/f8_arrays", test_f8_arrays);
    return g_test_run();
}
