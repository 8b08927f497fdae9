/* Every instruction that computes, against an independent definition, over edge values: integers in
 * 64-bit arithmetic, permutations as strings of bytes, F16 by its definition, F32 through
 * long double, and through formulas where a function is meant. Loads, stores and accumulators after that. */
#include "numeric/num_format.h"
#include "../oracle/oracle.h"
#include "tile_build.h"

#include <math.h>

static struct build b;

static const uint32_t INTS[] = {0, 1, 2, 3, 5, 31, 32, 33, 63, 64, 0xff, 0x8000, 0xffff, 0x10000,
                                0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0xfffffffe,
                                0x12345678, 0xdeadbeef, 0x00ff00ff};
static const uint16_t HALVES[] = {0, 0x8000, 1, 0x8001, 0x3ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x3c01,
                                  0x3800, 0x4248, 0xc500, 0x5640, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
                                  0x7e00, 0x7a00, 0x0200, 0x2e66};
static const uint32_t SINGLES[] = {0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000,
                                   0x3f800000, 0xbf800000, 0x3f800001, 0x40490fdb, 0xc2f6e979,
                                   0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000,
                                   0x33800000, 0x477fe000, 0x4b000001, 0x3effffff, 0x1e3ce508};

/* Executes one instruction (a lone word) in worker 0 with a0..a7 and m0..m7 given. */
static struct tile_worker *execute(uint32_t word, const uint32_t m[8], const uint32_t a[8]) {
    const uint32_t code[2] = {word, W(EXITZ, 15)};
    memcpy(sram_at(b.sram, 0, CODE), code, 8);
    sram_mark_written(b.sram, 0, CODE, 8);
    struct tile_worker *w = &b.tile.w[0];
    const uint32_t ctl = b.tile.s.fp_ictl;
    tile_reset(&b.tile);
    b.tile.s.fp_ictl = ctl;
    memcpy(w->m, m, 32);
    memcpy(w->a, a, 32);
    w->defined = UINT32_MAX;
    tile_start_workers(&b.tile, CODE, DATA, 1, 0);
    tile_run(&b.tile, 1000);
    if (b.tile.fault.number) g_test_message("word %08x faults with %u", word, b.tile.fault.number);
    g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_DONE);
    return w;
}

/* --- Integers on $m: d = m2 from m0, m1. --- */

static int64_t sx(uint32_t v) { return (int64_t)(int32_t)v; }
static uint32_t i_add(uint32_t x, uint32_t y) { return (uint32_t)((uint64_t)x + y); }
static uint32_t i_sub(uint32_t x, uint32_t y) { return (uint32_t)((uint64_t)x - y); }
static uint32_t i_rsub(uint32_t x, uint32_t y) { return (uint32_t)((uint64_t)y - x); }
static uint32_t i_mul(uint32_t x, uint32_t y) { return (uint32_t)(uint64_t)(sx(x) * sx(y)); }
static uint32_t i_min(uint32_t x, uint32_t y) { return (uint32_t)(sx(x) <= sx(y) ? sx(x) : sx(y)); }
static uint32_t i_max(uint32_t x, uint32_t y) { return (uint32_t)(sx(x) >= sx(y) ? sx(x) : sx(y)); }
static uint32_t i_eq(uint32_t x, uint32_t y) { return (x ^ y) == 0; }
static uint32_t i_ne(uint32_t x, uint32_t y) { return (x ^ y) != 0; }
static uint32_t i_slt(uint32_t x, uint32_t y) { return sx(x) - sx(y) < 0; }
static uint32_t i_ult(uint32_t x, uint32_t y) { return (int64_t)x - (int64_t)y < 0; }
static uint32_t i_and(uint32_t x, uint32_t y) { return ~(~x | ~y); }
static uint32_t i_andc(uint32_t x, uint32_t y) { return x ^ (x & y); }
static uint32_t i_or(uint32_t x, uint32_t y) { return ~(~x & ~y); }
static uint32_t i_xor(uint32_t x, uint32_t y) { return (x | y) - (x & y); }
static uint32_t i_xnor(uint32_t x, uint32_t y) { return UINT32_MAX - i_xor(x, y); }
static uint32_t i_shl(uint32_t x, uint32_t y) { return y > 31 ? 0 : (uint32_t)((uint64_t)x * (UINT64_C(1) << y)); }
static uint32_t i_shr(uint32_t x, uint32_t y) { return y > 31 ? 0 : (uint32_t)((uint64_t)x / (UINT64_C(1) << y)); }
static uint32_t i_shrs(uint32_t x, uint32_t y) {
    return (uint32_t)(int64_t)floorl((long double)sx(x) / ldexpl(1, y > 40 ? 40 : (int)y));
}
static uint32_t i_movz(uint32_t x, uint32_t y) { return x ? y : 0xaaaaaaaa; }

struct int_case {
    enum isa_op r, z, s; /* register, zero-extended and signed immediate forms; 0xffff none */
    uint32_t (*f)(uint32_t, uint32_t);
    uint32_t z_bits, s_bits;
};
#define NONE ISA_N_OPS /* no such form */

static void check_m(uint32_t word, uint32_t x, uint32_t y, uint32_t want) {
    const uint32_t m[8] = {x, y, 0xaaaaaaaa}, a[8] = {0};
    const uint32_t got = execute(word, m, a)->m[2];
    if (got != want) g_test_message("word %08x x %08x y %08x", word, x, y);
    g_assert_cmphex(got, ==, want);
}

static void test_integers(void) {
    const struct int_case cases[] = {
        {ISA_OP_ADD_R, ISA_OP_ADD_Z, ISA_OP_ADD_S, i_add, 16, 16},
        {ISA_OP_SUB_R, NONE, NONE, i_sub, 0, 0},
        {ISA_OP_MUL_R, NONE, ISA_OP_MUL_S, i_mul, 0, 16},
        {ISA_OP_MIN_R, ISA_OP_MIN_Z, ISA_OP_MIN_S, i_min, 16, 16},
        {ISA_OP_MAX_R, ISA_OP_MAX_Z, ISA_OP_MAX_S, i_max, 16, 16},
        {ISA_OP_CMPEQ_R, ISA_OP_CMPEQ_Z, ISA_OP_CMPEQ_S, i_eq, 16, 16},
        {ISA_OP_CMPNE, NONE, NONE, i_ne, 0, 0},
        {ISA_OP_CMPSLT_R, NONE, ISA_OP_CMPSLT_S, i_slt, 0, 16},
        {ISA_OP_CMPULT_R, ISA_OP_CMPULT_Z, NONE, i_ult, 16, 0},
        {ISA_OP_AND_M_R, ISA_OP_AND_M_Z, NONE, i_and, 12, 0},
        {ISA_OP_ANDC_M_R, ISA_OP_ANDC_M_Z, NONE, i_andc, 12, 0},
        {ISA_OP_OR_M_R, ISA_OP_OR_M_Z, NONE, i_or, 12, 0},
        {ISA_OP_XOR, NONE, NONE, i_xor, 0, 0},
        {ISA_OP_XNOR, NONE, NONE, i_xnor, 0, 0},
        {ISA_OP_SHL_R, ISA_OP_SHL_Z, NONE, i_shl, 12, 0},
        {ISA_OP_SHR_R, ISA_OP_SHR_Z, NONE, i_shr, 12, 0},
        {ISA_OP_SHRS_R, ISA_OP_SHRS_Z, NONE, i_shrs, 12, 0},
        {ISA_OP_MOVZ, NONE, NONE, i_movz, 0, 0},
    };
    for (uint32_t c = 0; c < ARRAY_LEN(cases); c++)
        for (uint32_t i = 0; i < ARRAY_LEN(INTS); i++)
            for (uint32_t j = 0; j < ARRAY_LEN(INTS); j++) {
                const uint32_t x = INTS[i], y = INTS[j];
                const struct int_case *k = &cases[c];
                check_m(word_of(k->r, 2, 0, 1), x, y, k->f(x, y));
                if (k->z != NONE && y >> k->z_bits == 0)
                    check_m(word_of(k->z, 2, 0, (int)y), x, 0, k->f(x, y));
                if (k->s != NONE && sx(y) >= -32768 && sx(y) <= 32767)
                    check_m(word_of(k->s, 2, 0, (int)y), x, 0, k->f(x, y));
            }
    for (uint32_t i = 0; i < ARRAY_LEN(INTS); i++) {
        const uint32_t x = INTS[i];
        check_m(W(SUB_Z, 2, 1000, 0), x, 0, i_rsub(x, 1000));
        check_m(W(SUB_S, 2, -1000, 0), x, 0, i_rsub(x, (uint32_t)-1000));
        check_m(W(OR_M_T, 2, 0, (int)0xabc00000), x, 0, x | 0xabc00000);
        check_m(W(SETZI_M, 2, 0xabcde), x, 0, 0xabcde);
    }
}

static void test_unary_integers(void) {
    for (uint32_t i = 0; i < ARRAY_LEN(INTS); i++) {
        const uint32_t x = INTS[i];
        uint32_t zeros = 0, ones = 0, same = 0, reversed = 0;
        while (zeros < 32 && (x >> (31 - zeros) & 1) == 0) zeros++;
        for (uint32_t k = 0; k < 32; k++) ones += x >> k & 1;
        while (same < 31 && (x >> (30 - same) & 1) == x >> 31) same++;
        for (uint32_t k = 0; k < 32; k++) reversed |= (x >> k & 1) << (k / 8 * 8 + 7 - k % 8);
        check_m(W(CLZ, 2, 0), x, 0, zeros);
        check_m(W(POPC, 2, 0), x, 0, ones);
        check_m(W(CMS, 2, 0), x, 0, same);
        check_m(W(BITREV8, 2, 0), x, 0, reversed);
        check_m(W(ABS, 2, 0), x, 0, x == 0x80000000 ? 0x7fffffff : (uint32_t)llabs(sx(x)));
        const uint32_t m[8] = {0}, a[8] = {0, 0, 0, x};
        g_assert_cmphex(execute(W(ATOM, 2, 3), m, a)->m[2], ==, x);
    }
}

/* --- Permutations: the result as bytes of a0..a7 and b0..b7, lowest first. --- */

static void check_permutation(enum isa_op op, bool arf, uint32_t n, const char *pattern) {
    uint8_t source[2][8];
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t k = 0; k < 8; k++) source[s][k] = (uint8_t)(16 * (s + 1) + k);
    uint32_t regs[8] = {0};
    memcpy(&regs[0], source[0], 4 * n);
    memcpy(&regs[2], source[1], 4 * n);
    const uint32_t zero[8] = {0};
    const struct tile_worker *w = arf ? execute(word_of(op, 4, 0, 2), zero, regs)
                                      : execute(word_of(op, 4, 0, 2), regs, zero);
    uint8_t got[8];
    memcpy(got, arf ? &w->a[4] : &w->m[4], 8);
    for (uint32_t k = 0; k < 4 * n; k++) {
        const uint8_t want = source[pattern[2 * k] == 'b'][pattern[2 * k + 1] - '0'];
        g_assert_cmphex(got[k], ==, want);
    }
}

static void test_permutations(void) {
    const struct { enum isa_op m, a; uint32_t n; const char *pattern; } cases[] = {
        {ISA_OP_SORT4X16LO_M, ISA_OP_SORT4X16LO_A, 1, "a0a1b0b1"},
        {ISA_OP_SORT4X16HI_M, ISA_OP_SORT4X16HI_A, 1, "a2a3b2b3"},
        {NONE, ISA_OP_SORT4X16LO_A_BU, 1, "a2a3b0b1"},
        {NONE, ISA_OP_SORT4X16HI_A_BL, 1, "a0a1b2b3"},
        {ISA_OP_ROLL16_M, ISA_OP_ROLL16_A, 1, "a2a3b0b1"},
        {NONE, ISA_OP_SORT4X32LO, 2, "a0a1a2a3b0b1b2b3"},
        {NONE, ISA_OP_SORT4X32HI, 2, "a4a5a6a7b4b5b6b7"},
        {NONE, ISA_OP_ROLL32, 2, "a4a5a6a7b0b1b2b3"},
        {ISA_OP_SHUF8X8LO_M, ISA_OP_SHUF8X8LO_A, 1, "a0b0a1b1"},
        {ISA_OP_SHUF8X8HI_M, ISA_OP_SHUF8X8HI_A, 1, "a2b2a3b3"},
        {ISA_OP_SORT8X8LO_M, ISA_OP_SORT8X8LO_A, 1, "a0a2b0b2"},
        {ISA_OP_SORT8X8HI_M, ISA_OP_SORT8X8HI_A, 1, "a1a3b1b3"},
        {ISA_OP_ROLL8R_M, ISA_OP_ROLL8R_A, 1, "a1a2a3b0"},
        {ISA_OP_ROLL8L_M, ISA_OP_ROLL8L_A, 1, "a3b0b1b2"},
        {ISA_OP_SORT8_M, ISA_OP_SORT8_A, 1, "a0a2a1a3"},
        {ISA_OP_SWAP8_M, ISA_OP_SWAP8_A, 1, "a1a0a3a2"},
    };
    for (uint32_t c = 0; c < ARRAY_LEN(cases); c++) {
        if (cases[c].m != NONE) check_permutation(cases[c].m, false, cases[c].n, cases[c].pattern);
        check_permutation(cases[c].a, true, cases[c].n, cases[c].pattern);
    }
}

/* --- Bits on $a. --- */

static void test_bits(void) {
    const uint32_t m[8] = {0};
    for (uint32_t i = 0; i < ARRAY_LEN(INTS); i++)
        for (uint32_t j = 0; j < ARRAY_LEN(INTS); j++) {
            const uint32_t x = INTS[i], y = INTS[j], a[8] = {x, ~x, y, y ^ 0x5555};
            const struct { enum isa_op one, two; uint32_t (*f)(uint32_t, uint32_t); } cases[] = {
                {ISA_OP_AND_A_R, ISA_OP_AND64, i_and}, {ISA_OP_ANDC_A_R, ISA_OP_ANDC64, i_andc},
                {ISA_OP_OR_A_R, ISA_OP_OR64, i_or}};
            for (uint32_t c = 0; c < ARRAY_LEN(cases); c++) {
                g_assert_cmphex(execute(word_of(cases[c].one, 4, 0, 2), m, a)->a[4], ==, cases[c].f(x, y));
                const struct tile_worker *w = execute(word_of(cases[c].two, 4, 0, 2), m, a);
                g_assert_cmphex(w->a[4], ==, cases[c].f(x, y));
                g_assert_cmphex(w->a[5], ==, cases[c].f(~x, y ^ 0x5555));
            }
        }
    const uint32_t a[8] = {0x12345678, 0x9abcdef0};
    g_assert_cmphex(execute(W(NOT, 4, 0), m, a)->a[4], ==, 0xedcba987);
    g_assert_cmphex(execute(W(NOT64, 4, 0), m, a)->a[5], ==, 0x6543210f);
    g_assert_cmphex(execute(W(SETZI_A, 4, 0xabcde), m, a)->a[4], ==, 0xabcde);
    g_assert_cmphex(execute(W(AND_A_Z, 4, 0, 0xfff), m, a)->a[4], ==, 0x678);
    g_assert_cmphex(execute(W(AND_A_T, 4, 0, (int)0xfff00000), m, a)->a[4], ==, 0x12300000);
    g_assert_cmphex(execute(W(ANDC_A_Z, 4, 0, 0xfff), m, a)->a[4], ==, 0x12345000);
    g_assert_cmphex(execute(W(ANDC_A_T, 4, 0, (int)0xfff00000), m, a)->a[4], ==, 0x00045678);
    g_assert_cmphex(execute(W(OR_A_Z, 4, 0, 0xfff), m, a)->a[4], ==, 0x12345fff);
    g_assert_cmphex(execute(W(OR_A_T, 4, 0, (int)0xfff00000), m, a)->a[4], ==, 0xfff45678);
}

/* --- F16 by its definition: sums and products are exact in double. --- */

static double half(uint16_t h) { return half_value(h); }
/* As the tile shows it: saturating, canonical NaN. */
static uint16_t tile_half(double v) {
    const uint16_t h = half_nearest(v);
    return (h & 0x7fff) == 0x7c00 ? h - 1 : h;
}
static uint16_t h_add(uint16_t x, uint16_t y) { return tile_half(half(x) + half(y)); }
static uint16_t h_sub(uint16_t x, uint16_t y) { return tile_half(half(x) - half(y)); }
static uint16_t h_mul(uint16_t x, uint16_t y) { return tile_half(half(x) * half(y)); }
static uint16_t h_absadd(uint16_t x, uint16_t y) { return h_add(x & 0x7fff, y & 0x7fff); }
static bool h_nan(uint16_t x) { return half(x) != half(x); }
static uint16_t h_pick(uint16_t x, uint16_t y, bool max) {
    if (h_nan(x) || h_nan(y)) return h_nan(x) && h_nan(y) ? NUM_F16_NAN : h_nan(x) ? y : x;
    if (half(x) == half(y)) return max ? (x & y) | (x == y ? x : 0) : x | y; /* zeros of both signs */
    return (half(x) > half(y)) == max ? x : y;
}
static uint16_t h_max(uint16_t x, uint16_t y) { return h_pick(x, y, true); }
static uint16_t h_min(uint16_t x, uint16_t y) { return h_pick(x, y, false); }
static uint16_t h_absmax(uint16_t x, uint16_t y) { return h_max(x & 0x7fff, y & 0x7fff); }
static uint16_t h_eq(uint16_t x, uint16_t y) { return half(x) == half(y) ? 0xffff : 0; }
static uint16_t h_ne(uint16_t x, uint16_t y) { return half(x) == half(y) ? 0 : 0xffff; }
static uint16_t h_lt(uint16_t x, uint16_t y) { return half(x) < half(y) ? 0xffff : 0; }
static uint16_t h_le(uint16_t x, uint16_t y) { return half(x) <= half(y) ? 0xffff : 0; }
static uint16_t h_gt(uint16_t x, uint16_t y) { return half(x) > half(y) ? 0xffff : 0; }
static uint16_t h_ge(uint16_t x, uint16_t y) { return half(x) >= half(y) ? 0xffff : 0; }

static void check_half(enum isa_op op, uint32_t lanes, int broadcast, uint16_t (*f)(uint16_t, uint16_t),
                       const uint16_t x[4], const uint16_t y[4]) {
    const uint32_t m[8] = {0};
    uint32_t a[8] = {0};
    memcpy(&a[0], x, 8);
    memcpy(&a[2], y, 8);
    const struct tile_worker *w = execute(word_of(op, 4, 0, 2), m, a);
    uint16_t got[4];
    memcpy(got, &w->a[4], 8);
    for (uint32_t k = 0; k < lanes; k++) {
        const uint16_t want = f(broadcast < 0 ? x[k] : x[broadcast], y[k]);
        if (got[k] != want)
            g_test_message("%s x %04x y %04x", isa_form(op)->id, broadcast < 0 ? x[k] : x[broadcast], y[k]);
        g_assert_cmphex(got[k], ==, want);
    }
}

#define HALF6(name, f)                                                                            \
    {ISA_OP_F16V2##name, 2, -1, f}, {ISA_OP_F16V4##name, 4, -1, f},                               \
    {ISA_OP_F16V2##name##_BL, 2, 0, f}, {ISA_OP_F16V4##name##_BL, 4, 0, f},                       \
    {ISA_OP_F16V2##name##_BU, 2, 1, f}, {ISA_OP_F16V4##name##_BU, 4, 1, f}
#define HALF2(name, f) {ISA_OP_F16V2##name, 2, -1, f}, {ISA_OP_F16V4##name, 4, -1, f}

static void test_f16(void) {
    const struct { enum isa_op op; uint32_t lanes; int broadcast; uint16_t (*f)(uint16_t, uint16_t); } cases[] = {
        HALF6(ADD, h_add), HALF6(SUB, h_sub), HALF6(MUL, h_mul), HALF6(CMPEQ, h_eq), HALF6(CMPNE, h_ne),
        HALF6(CMPLT, h_lt), HALF6(CMPLE, h_le), HALF6(CMPGT, h_gt), HALF6(CMPGE, h_ge),
        HALF2(ABSADD, h_absadd), HALF2(MAX, h_max), HALF2(MIN, h_min), HALF2(ABSMAX, h_absmax)};
    const uint32_t n = ARRAY_LEN(HALVES);
    for (uint32_t c = 0; c < ARRAY_LEN(cases); c++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                const uint16_t x[4] = {HALVES[i], HALVES[(i + 3) % n], HALVES[(i + 7) % n], HALVES[(i + 11) % n]};
                const uint16_t y[4] = {HALVES[j], HALVES[(j + 5) % n], HALVES[(j + 2) % n], HALVES[(j + 9) % n]};
                check_half(cases[c].op, cases[c].lanes, cases[c].broadcast, cases[c].f, x, y);
            }
}

static void test_f16_special_forms(void) {
    const uint32_t m[8] = {0};
    for (uint32_t i = 0; i < ARRAY_LEN(HALVES); i++)
        for (uint32_t j = 0; j < ARRAY_LEN(HALVES); j++) {
            const uint16_t x = HALVES[i], y = HALVES[j];
            const uint32_t a[8] = {x | (uint32_t)y << 16, y | (uint32_t)x << 16, 0xbc00 | 0x3800u << 16};
            g_assert_cmphex(execute(W(F16V2MAXC, 4, 0), m, a)->a[4], ==, h_max(x, y) * 0x10001u);
            g_assert_cmphex(execute(W(F16V4MAXC, 4, 0), m, a)->a[4], ==,
                            h_max(x, y) | (uint32_t)h_max(y, x) << 16);
            const uint32_t clamped = h_min(h_max(x, 0xbc00), 0x3800) |
                                     (uint32_t)h_min(h_max(y, 0xbc00), 0x3800) << 16;
            g_assert_cmphex(execute(W(F16V2CLAMP, 4, 0, 2), m, a)->a[4], ==, clamped);
            g_assert_cmphex(execute(W(F16V4CLAMP, 4, 0, 2), m, a)->a[4], ==, clamped);
            float sum = (float)half(x) + (float)half(y);
            if (sum != sum) sum = num_f32_from_bits(NUM_F32_NAN);
            g_assert_cmphex(execute(W(F16V2SUM, 4, 0), m, a)->a[4], ==, num_f32_bits(sum));
            g_assert_cmphex(execute(W(F16V4SUM, 4, 0), m, a)->a[5], ==, num_f32_bits(sum));
            const struct tile_worker *w = execute(W(F16V2TOF32, 4, 0), m, a);
            if (!h_nan(x)) g_assert_cmphex(w->a[4], ==, num_f32_bits((float)half(x)));
            if (!h_nan(y)) g_assert_cmphex(w->a[5], ==, num_f32_bits((float)half(y)));
        }
}

/* --- F32 through long double, denormals to zero. --- */

static long double wide_single(uint32_t v) {
    float f;
    memcpy(&f, &v, 4);
    return fpclassify(f) == FP_SUBNORMAL ? copysignf(0, f) : f;
}
static uint32_t tile_single(long double v) {
    float f = (float)v;
    if (fpclassify(f) == FP_SUBNORMAL) f = copysignf(0, f);
    if (isnan(f)) return NUM_F32_NAN;
    uint32_t r;
    memcpy(&r, &f, 4);
    return r;
}
static uint32_t s_add(uint32_t x, uint32_t y) { return tile_single(wide_single(x) + wide_single(y)); }
static uint32_t s_sub(uint32_t x, uint32_t y) { return tile_single(wide_single(x) - wide_single(y)); }
static uint32_t s_mul(uint32_t x, uint32_t y) { return tile_single(wide_single(x) * wide_single(y)); }
static uint32_t s_div(uint32_t x, uint32_t y) { return tile_single(wide_single(x) / wide_single(y)); }
static uint32_t s_absadd(uint32_t x, uint32_t y) { return tile_single(fabsl(wide_single(x)) + fabsl(wide_single(y))); }
static uint32_t s_pick(uint32_t x, uint32_t y, bool max) {
    const long double a = wide_single(x), c = wide_single(y);
    if (isnan(a) || isnan(c)) return tile_single(isnan(a) ? c : a);
    if (a == c) return tile_single((signbit(a) != 0) == max ? c : a);
    return tile_single((a > c) == max ? a : c);
}
static uint32_t s_max(uint32_t x, uint32_t y) { return s_pick(x, y, true); }
static uint32_t s_min(uint32_t x, uint32_t y) { return s_pick(x, y, false); }
static uint32_t s_absmax(uint32_t x, uint32_t y) { return s_max(x & 0x7fffffff, y & 0x7fffffff); }
#define S_COMPARE(name, op) \
    static uint32_t name(uint32_t x, uint32_t y) { return wide_single(x) op wide_single(y) ? UINT32_MAX : 0; }
S_COMPARE(s_eq, ==)
S_COMPARE(s_ne, !=)
S_COMPARE(s_lt, <)
S_COMPARE(s_le, <=)
S_COMPARE(s_gt, >)
S_COMPARE(s_ge, >=)

#define S3(name, f) {ISA_OP_F32##name, ISA_OP_F32V2##name, ISA_OP_F32V2##name##_B, f}
#define S2(name, f) {ISA_OP_F32##name, ISA_OP_F32V2##name, NONE, f}
static void test_f32(void) {
    const struct { enum isa_op one, two, bc; uint32_t (*f)(uint32_t, uint32_t); } cases[] = {
        S3(ADD, s_add), S3(SUB, s_sub), S3(MUL, s_mul), S3(CMPEQ, s_eq), S3(CMPNE, s_ne), S3(CMPLT, s_lt),
        S3(CMPLE, s_le), S3(CMPGT, s_gt), S3(CMPGE, s_ge), S2(ABSADD, s_absadd), S2(MAX, s_max),
        S2(MIN, s_min), S2(ABSMAX, s_absmax), {ISA_OP_F32DIV, NONE, NONE, s_div}};
    const uint32_t m[8] = {0}, n = ARRAY_LEN(SINGLES);
    for (uint32_t c = 0; c < ARRAY_LEN(cases); c++)
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < n; j++) {
                const uint32_t x = SINGLES[i], y = SINGLES[j], x1 = SINGLES[(i + 3) % n], y1 = SINGLES[(j + 5) % n];
                const uint32_t a[8] = {x, x1, y, y1};
                uint32_t (*const f)(uint32_t, uint32_t) = cases[c].f;
                g_assert_cmphex(execute(word_of(cases[c].one, 4, 0, 2), m, a)->a[4], ==, f(x, y));
                if (cases[c].two != NONE) {
                    const struct tile_worker *w = execute(word_of(cases[c].two, 4, 0, 2), m, a);
                    g_assert_cmphex(w->a[4], ==, f(x, y));
                    g_assert_cmphex(w->a[5], ==, f(x1, y1));
                }
                if (cases[c].bc != NONE) {
                    const struct tile_worker *w = execute(word_of(cases[c].bc, 4, 0, 2), m, a);
                    g_assert_cmphex(w->a[4], ==, f(x, y));
                    g_assert_cmphex(w->a[5], ==, f(x, y1));
                }
            }
}

/* --- Functions: against long double, at most one unit in the last place away. --- */

static long double l_sigm(long double x) { return 1 / (1 + expl(-x)); }
static long double l_oox(long double x) { return 1 / x; }
static long double l_oorx(long double x) { return 1 / sqrtl(x); }

static uint32_t slots_of(void) { return (uint32_t)b.tile.w[0].slots - 1; }

static void test_functions(void) {
    const struct { enum isa_op s, h; long double (*f)(long double); uint32_t s_slots, h_slots; } cases[] = {
        {ISA_OP_F32EXP, ISA_OP_F16V2EXP, expl, 3, 2},   {ISA_OP_F32EXP2, ISA_OP_F16V2EXP2, exp2l, 3, 2},
        {ISA_OP_F32LN, ISA_OP_F16V2LN, logl, 6, 2},     {ISA_OP_F32LOG2, ISA_OP_F16V2LOG2, log2l, 6, 2},
        {ISA_OP_F32TANH, ISA_OP_F16V2TANH, tanhl, 5, 1}, {ISA_OP_F32SIGM, ISA_OP_F16V2SIGM, l_sigm, 5, 2},
        {ISA_OP_F32SQRT, NONE, sqrtl, 5, 0}, {ISA_OP_F32OOX, NONE, l_oox, 3, 0}, {ISA_OP_F32OORX, NONE, l_oorx, 4, 0}};
    const uint32_t m[8] = {0};
    for (uint32_t c = 0; c < ARRAY_LEN(cases); c++) {
        for (uint32_t i = 0; i < ARRAY_LEN(SINGLES); i++) {
            const uint32_t a[8] = {SINGLES[i]};
            const uint32_t got = execute(word_of(cases[c].s, 4, 0), m, a)->a[4];
            const uint32_t want = tile_single(cases[c].f(wide_single(SINGLES[i])));
            g_assert_cmpuint(slots_of(), ==, cases[c].s_slots);
            g_assert_true(got == want || llabs((int64_t)got - (int64_t)want) <= 1);
        }
        if (cases[c].h == NONE) continue;
        for (uint32_t h = 0; h < 65536; h++) {
            const uint32_t a[8] = {h | 0x3c00u << 16};
            const uint32_t got = execute(word_of(cases[c].h, 4, 0), m, a)->a[4] & 0xffff;
            const long double v = cases[c].f((long double)half((uint16_t)h));
            const uint32_t want = isnan(v) ? NUM_F16_NAN : tile_half((double)v);
            if (got != want) g_test_message("%s %04x", isa_form(cases[c].h)->id, h);
            g_assert_cmphex(got, ==, want); /* no F16 lies so near a tie that binary64 errs */
            g_assert_cmpuint(slots_of(), ==, cases[c].h_slots);
        }
    }
    const uint32_t zeros[8] = {0x80000000};
    execute(W(F16V2EXP, 4, 0), m, zeros);
    g_assert_cmpuint(slots_of(), ==, 1); /* two zeros, of either sign */
    g_assert_cmpuint(b.tile.w[0].a[4], ==, 0x3c003c00);
}

/* --- Conversions. --- */

static void test_conversions(void) {
    const uint32_t m[8] = {0};
    for (uint32_t i = 0; i < ARRAY_LEN(SINGLES); i++) {
        const uint32_t x = SINGLES[i], y = SINGLES[(i + 5) % ARRAY_LEN(SINGLES)], a[8] = {x, y, x, y};
        const uint32_t hx = tile_half((double)wide_single(x));
        const uint32_t hy = tile_half((double)wide_single(y));
        g_assert_cmphex(execute(W(F32TOF16, 4, 0), m, a)->a[4], ==, hx * 0x10001u);
        g_assert_cmphex(execute(W(F32V2TOF16, 4, 0), m, a)->a[4], ==, hx | hy << 16);
        g_assert_cmphex(execute(W(F32V4TOF16, 4, 0), m, a)->a[5], ==, hx | hy << 16);
        for (uint32_t mode = 0; mode < 5; mode++) {
            static long double (*const F[5])(long double) = {nearbyintl, ceill, floorl, truncl, roundl};
            g_assert_cmphex(execute(W(F32INT, 4, 0, (int)mode), m, a)->a[4], ==, tile_single(F[mode](wide_single(x))));
            b.tile.s.fp_ictl = mode << 16;
            const long double v = F[mode](wide_single(x));
            const int64_t s = isnan(v) ? 0 : v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int64_t)v;
            const int64_t u = isnan(v) ? 0 : v < 0 ? 0 : v > UINT32_MAX ? UINT32_MAX : (int64_t)v;
            g_assert_cmphex(execute(W(F32TOI32, 4, 0), m, a)->a[4], ==, (uint32_t)s);
            g_assert_cmphex(execute(W(F32TOUI32, 4, 0), m, a)->a[4], ==, (uint32_t)u);
            b.tile.s.fp_ictl = 0;
        }
    }
    for (uint32_t i = 0; i < ARRAY_LEN(INTS); i++) {
        const uint32_t a[8] = {INTS[i]};
        g_assert_cmphex(execute(W(F32FROMI32, 4, 0), m, a)->a[4], ==, tile_single(sx(INTS[i])));
        g_assert_cmphex(execute(W(F32FROMUI32, 4, 0), m, a)->a[4], ==, tile_single(INTS[i]));
        const uint32_t u = INTS[i] & 0xffff;
        const uint32_t s = execute(W(F16V2SUFROMUI, 4, 0), m, a)->a[4] & 0xffff;
        g_assert_cmphex(s, ==, tile_half((u + 0.5) / 65536 - 0.5));
        g_assert_cmphex(execute(W(F32SUFROMUI, 4, 0), m, a)->a[4], ==,
                        tile_single(((long double)INTS[i] + 0.5L) / 4294967296.0L - 0.5L));
    }
}

static void test_f8(void) {
    for (uint32_t fmt = 0; fmt < 2; fmt++)
        for (int32_t scale = -12; scale <= 12; scale += 3) {
            b.tile.s.fp_ictl = 0;
            for (uint32_t q = 0; q < 256; q++) {
                const uint32_t code[3] = {W(F8V4TOF16, 4, 0), W(F16V8TOF8, 6, 0), W(EXITZ, 15)};
                memcpy(sram_at(b.sram, 0, CODE), code, 12);
                sram_mark_written(b.sram, 0, CODE, 12);
                tile_reset(&b.tile);
                b.tile.s.fp_infmt = fmt ? 3 : 0;
                b.tile.s.fp_iscl = (uint32_t)scale & 63;
                struct tile_worker *w = &b.tile.w[0];
                w->defined = UINT32_MAX;
                w->a[0] = q * 0x01010101u;
                const uint16_t h = HALVES[q % ARRAY_LEN(HALVES)];
                w->a[1] = w->a[2] = w->a[3] = h * 0x10001u;
                tile_start_workers(&b.tile, CODE, DATA, 1, 0);
                g_assert_cmpint(tile_run(&b.tile, 1000), ==, TILE_STOP_DONE);
                const double v = f8_value(q, fmt) * ldexp(1, scale);
                const uint32_t want = isnan(v) ? NUM_F16_NAN : tile_half(v);
                g_assert_cmphex(w->a[4], ==, want * 0x10001u);
                struct oracle o = {0};
                const uint32_t back = round_f8(&o, half(h) * ldexp(1, scale), fmt, 0);
                g_assert_cmphex(w->a[7], ==, back * 0x01010101u);
            }
        }
}

/* --- Accumulators. --- */

static void run_code(const uint32_t *code, uint32_t n, const uint32_t a[8]) {
    memcpy(sram_at(b.sram, 0, CODE), code, 4 * n);
    sram_mark_written(b.sram, 0, CODE, 4 * n);
    tile_reset(&b.tile);
    struct tile_worker *w = &b.tile.w[0];
    w->defined = UINT32_MAX;
    memcpy(w->a, a, 32);
    tile_start_workers(&b.tile, CODE, DATA, 1, 0);
    tile_run(&b.tile, 10000);
    if (b.tile.fault.number) g_test_message("fault %u", b.tile.fault.number);
    g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_DONE);
}

/* Column sums by f16v8acc and four ginas, which leave zeros (isa 3.11). */
static void test_accumulate(void) {
    const uint16_t q[8] = {0x3c00, 0x4000, 0x4200, 0xc400, 0x4500, 0x4600, 0x4700, 0x4800};
    uint32_t a[8];
    memcpy(a, q, 16);
    a[7] = 8;
    const enum isa_op ops[3] = {ISA_OP_F16V8ACC, ISA_OP_F16V8ABSACC, ISA_OP_F16V8SQACC};
    for (uint32_t k = 0; k < 3; k++)
        for (int pair = 0; pair < 5; pair++) {
            uint32_t code[16], n = 0;
            code[n++] = W(UPUT, ISA_CSR_FP_CLR, 7);
            code[n++] = word_of(ops[k], 0);
            code[n++] = word_of(ops[k], 0);
            for (int g = 0; g <= pair; g++) code[n++] = W(F32V2GINA, 4, 14, 0);
            code[n++] = W(EXITZ, 15);
            run_code(code, n, a);
            for (int j = 0; j < 2; j++) {
                const float x = pair < 4 ? (float)half(q[2 * pair + j]) : 0;
                const float want = 2 * (k == 0 ? x : k == 1 ? fabsf(x) : x * x);
                g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[4 + j]), ==, want);
            }
        }
}

/* mac, cmac, aop, axpy, mix. */
static void test_products(void) {
    uint32_t a[8] = {num_f32_bits(1.5f), num_f32_bits(-2), num_f32_bits(3), num_f32_bits(5), 0, 0, 0, 8};
    const uint32_t mac[] = {W(UPUT, ISA_CSR_FP_CLR, 7), W(F32V2MAC, 0, 2), W(F32MAC, 0, 2), W(F32V2GINA, 4, 14, 0), W(EXITZ, 15)};
    run_code(mac, 5, a);
    g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[4]), ==, 9);
    g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[5]), ==, -10);
    const uint32_t aop[] = {W(UPUT, ISA_CSR_FP_CLR, 7), W(F32V2AOP, 0, 2, 0), W(F32V2GINA, 4, 14, 0), W(F32V2GINA, 6, 14, 0), W(EXITZ, 15)};
    run_code(aop, 5, a);
    const float want[4] = {4.5f, -6, 7.5f, -10};
    for (uint32_t k = 0; k < 4; k++) g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[4 + k]), ==, want[k]);
    /* axpy: k * S0 + S1, returned by the next call */
    const uint32_t axpy[] = {W(UPUT, ISA_CSR_TAS, 2), W(F32V2AXPY, 4, 0, 2), W(F32V2AXPY, 4, 14, 14), W(EXITZ, 15)};
    run_code(axpy, 4, a);
    g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[4]), ==, 3 * 1.5f + 3);
    g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[5]), ==, 3 * -2.0f + 5);
    /* mix: low half of TAS times S0 plus high half times S1 */
    uint32_t h[8] = {0x40003c00, 0x44004200, 0x3c00bc00, 0x45003800, 0, 0, 0x3c004000, 8};
    const uint32_t mix[] = {W(UPUT, ISA_CSR_TAS, 6), W(F16V4MIX, 4, 0, 2), W(F16V4MIX, 4, 14, 14), W(EXITZ, 15)};
    run_code(mix, 4, h);
    for (uint32_t k = 0; k < 4; k++) {
        const double x = (double)half((uint16_t)(h[k / 2] >> 16 * (k % 2)));
        const double y = (double)half((uint16_t)(h[2 + k / 2] >> 16 * (k % 2)));
        g_assert_cmphex(b.tile.w[0].a[4 + k / 2] >> 16 * (k % 2) & 0xffff, ==,
                        tile_half(2 * x + y));
    }
    const uint32_t cmac[] = {W(UPUT, ISA_CSR_FP_CLR, 7), W(F16V4CMAC, 0, 2), W(F16V2CMAC, 0, 2), W(F32V2GINA, 4, 14, 0), W(EXITZ, 15)};
    run_code(cmac, 5, h);
    g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[4]), ==, 2 * (1 * -1 + 2 * 1));
    g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[5]), ==, 3 * 0.5 + 4 * 5);
}

/* One rounding of the exact sum: 2^24 + 1 is a tie, which 2^-48 decides; binary64 would lose it. */
static void test_cmac_exact(void) {
    const uint32_t one = 0x3c00, tiny = 0x0001, large = 0x6c00; /* 4096 */
    for (uint32_t negative = 0; negative < 2; negative++) {
        const uint32_t a[8] = {large, 0, one | (tiny | negative << 15) << 16, 0, one | tiny << 16, 0, 0, 8};
        const uint32_t code[] = {W(UPUT, ISA_CSR_FP_CLR, 7), W(F16V2CMAC, 0, 0), W(F16V2CMAC, 2, 4), W(EXITZ, 15)};
        run_code(code, 4, a);
        g_assert_cmpfloat(b.tile.w[0].acc.even[0], ==, negative ? 16777216 : 16777218);
    }
}

/* The transpose loop through the accumulators (isa 3.12). */
static void test_transpose(void) {
    uint32_t a[8], code[32], n = 0;
    for (uint32_t r = 0; r < 4; r++)
        for (uint32_t k = 0; k < 2; k++) a[2 * r + k] = (0x10 * r + 2 * k) | (0x10 * r + 2 * k + 1) << 16;
    const uint32_t copy[8] = {a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]};
    code[n++] = W(F16V4ISTACC, 14, 0, 2, 0);
    code[n++] = W(F16V4ISTACC, 14, 4, 6, 1);
    code[n++] = W(F16V4STACC, 0, 0);
    code[n++] = W(F16V4STACC, 2, 1);
    code[n++] = W(F16V4ISTACC, 4, 14, 14, 0);
    code[n++] = W(F16V4ISTACC, 6, 14, 14, 1);
    code[n++] = W(EXITZ, 15);
    run_code(code, n, copy);
    for (uint32_t col = 0; col < 4; col++)
        for (uint32_t r = 0; r < 4; r++) {
            const uint32_t got = b.tile.w[0].a[2 * col + r / 2] >> 16 * (r % 2) & 0xffff;
            g_assert_cmphex(got, ==, 0x10 * r + col);
        }
}

/* --- Random numbers: the generator, stochastic rounding in the mean. --- */

static void test_random(void) {
    const uint32_t a[8] = {12345};
    const uint32_t code[] = {W(UPUT, ISA_CSR_PRNG_SEED, 0), W(URAND64, 2), W(URAND32, 4), W(UGET, 5, ISA_CSR_PRNG_0_0), W(EXITZ, 15)};
    run_code(code, 5, a);
    const uint64_t v = 12345, n = UINT32_MAX - v;
    struct oracle s = {.prng = {n << 32 | v, (n << 13 & UINT32_MAX) << 32 | v << 13 | n >> 19}};
    const uint64_t first = draw(&s), second = draw(&s);
    g_assert_cmphex(b.tile.w[0].a[2], ==, (uint32_t)first);
    g_assert_cmphex(b.tile.w[0].a[3], ==, (uint32_t)(first >> 32));
    g_assert_cmphex(b.tile.w[0].a[4], ==, (uint32_t)second);
    g_assert_cmphex(b.tile.w[0].a[5], ==, (uint32_t)s.prng[0]);
    const uint32_t mask[] = {W(UPUT, ISA_CSR_PRNG_SEED, 0), W(SETZI_A, 6, 0x10000), W(F16V4RMASK, 2, 0, 6), W(F16V4RMASK, 4, 0, 15), W(EXITZ, 15)};
    run_code(mask, 5, a);
    g_assert_cmphex(b.tile.w[0].a[2], ==, 12345);
    g_assert_cmphex(b.tile.w[0].a[4], ==, 0);
}

static void test_stochastic_rounding(void) {
    uint32_t ups = 0;
    enum { RUNS = 20000 };
    tile_reset(&b.tile);
    struct tile_worker *w = &b.tile.w[0];
    const uint32_t code[] = {W(F32TOF16, 1, 0), W(EXITZ, 15)};
    memcpy(sram_at(b.sram, 0, CODE), code, 8);
    sram_mark_written(b.sram, 0, CODE, 8);
    b.tile.s.fp_ictl = 1 << 19;
    num_prng_seed(12345, w->prng);
    for (uint32_t k = 0; k < 16; k++) num_prng_next(w->prng);
    w->prng_defined = 15;
    w->defined = UINT32_MAX;
    for (uint32_t k = 0; k < RUNS; k++) {
        w->a[0] = num_f32_bits(1 + 0x1p-12f); /* a quarter of an ulp */
        tile_start_workers(&b.tile, CODE, DATA, 1, b.tile.lanes_cycle);
        tile_run(&b.tile, UINT64_MAX);
        ups += (w->a[1] & 0xffff) == 0x3c01;
    }
    g_assert_cmpuint(ups, >, RUNS * 24 / 100);
    g_assert_cmpuint(ups, <, RUNS * 26 / 100);
    b.tile.s.fp_ictl = 0;
}

/* --- Loads and stores. --- */

static void test_memory(void) {
    const uint8_t data[32] = {0x81, 0x02, 0x83, 0x04, 0x85, 0x06, 0x87, 0x08, 9, 10, 11, 12, 13, 14, 15, 16,
                              17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
    memcpy(sram_at(b.sram, 0, DATA1), data, 32);
    sram_mark_written(b.sram, 0, DATA1, 32);
    uint32_t m[8] = {DATA1, 0, 1}, a[8] = {0};
    g_assert_cmphex(execute(W(LDZ8_Z, 4, 0, 1, 2), m, a)->m[4], ==, 0x83);
    g_assert_cmphex(execute(W(LDS8_R, 4, 0, 1, 1), m, a)->m[4], ==, 0xffffff81);
    g_assert_cmphex(execute(W(LDZ16_Z, 4, 0, 1, 1), m, a)->m[4], ==, 0x0483);
    g_assert_cmphex(execute(W(LDS16_R, 4, 0, 1, 2), m, a)->m[4], ==, 0x0483);
    g_assert_cmphex(execute(W(LD32_M_R, 4, 0, 1, 2), m, a)->m[4], ==, 0x08870685);
    g_assert_cmphex(execute(W(LDB8_Z, 4, 0, 1, 1), m, a)->a[4], ==, 0x02020202);
    g_assert_cmphex(execute(W(LDB16_Z, 4, 0, 1, 1), m, a)->a[4], ==, 0x04830483);
    const struct tile_worker *w = execute(W(LD64_R, 4, 0, 1, 2), m, a);
    g_assert_cmphex(w->a[5], ==, 0x100f0e0d);
    w = execute(W(LD128_Z, 4, 0, 1, 1), m, a);
    g_assert_cmphex(w->a[4], ==, 0x14131211);
    g_assert_cmphex(w->a[7], ==, 0x201f1e1d);
    w = execute(W(LD64STEP_S, 4, 0, 1, -3), m, a);
    g_assert_cmphex(w->m[1], ==, (uint32_t)-24);
    w = execute(W(LDZ8STEP_R, 4, 0, 1, 2), m, a);
    g_assert_cmphex(w->m[1], ==, 1);
    w = execute(W(LD64STEP_R, 14, 15, 0, 2), m, a); /* dummy load that only advances */
    g_assert_cmphex(w->m[0], ==, DATA1 + 8);
    w = execute(W(STM32STEP, 2, 0, 2), m, a);
    g_assert_cmphex(w->m[0], ==, DATA1 + 4);
    g_assert_cmphex(get32(&b, DATA1), ==, 1);
}

/* Packed addresses: random triples through tapack and every stride code. */
static void test_pace(void) {
    for (uint32_t r = 0; r < 2000; r++) {
        uint32_t v[3], stride[3], code[3];
        for (uint32_t k = 0; k < 3; k++) {
            v[k] = 0x80000 + (uint32_t)(rand_u64(5, r, k) % 0x60000) / 8 * 8;
            stride[k] = (uint32_t)(rand_u64(6, r, k) % 1024);
            code[k] = (uint32_t)(rand_u64(7, r, k) % 4);
        }
        if ((v[0] ^ v[1]) >> 15 == 0 || (v[0] ^ v[2]) >> 15 == 0 || (v[1] ^ v[2]) >> 15 == 0) continue;
        for (uint32_t k = 0; k < 3; k++) put32(&b, v[k], 0x100 * r + k), put32(&b, v[k] + 4, k);
        const uint32_t m[8] = {v[0], v[1], v[2], stride[0] | stride[1] << 10 | stride[2] << 20}, a[8] = {[6] = 0x66, [7] = 0x77};
        uint32_t packed[8];
        memcpy(packed, execute(W(TAPACK, 4, 0, 1, 2), m, a)->m, 32);
        const uint32_t imm = code[0] | code[1] << 2 | code[2] << 4;
        const struct tile_worker *w = execute(W(LD2XST64PACE, 0, 6, 4, 3, (int)imm), packed, a);
        g_assert_cmphex(w->a[0], ==, 0x100 * r);
        g_assert_cmphex(w->a[2], ==, 0x100 * r + 1);
        g_assert_cmphex(get32(&b, v[2]), ==, 0x66);
        g_assert_cmphex(get32(&b, v[2] + 4), ==, 0x77);
        const uint32_t p0 = w->m[4], p1 = w->m[5];
        const uint32_t back[3] = {p0 & 0x1fffff, p1 & 0x1fffff, p0 >> 21 | p1 >> 21 << 11};
        for (uint32_t k = 0; k < 3; k++) {
            const int64_t step = code[k] == 0 ? 1 : (int64_t)(stride[code[k] - 1] ^ 512) - 512;
            g_assert_cmphex(back[k], ==, (uint32_t)((int64_t)v[k] + 8 * step) & 0x1fffff);
        }
    }
}

static void test_delta_loads(void) {
    enum { TABLE = 0x98000 };
    for (uint32_t k = 0; k < 8; k++) put32(&b, TABLE + 4 * k, (8 * k + 2) | (8 * k + 8) << 16);
    for (uint32_t k = 0; k < 32; k++) put32(&b, DATA1 + 4 * k, 0x01000000 * k + 4 * k);
    const uint32_t m[8] = {TABLE, DATA1, 8, 16 << 16, 0x21}, a[8] = {0};
    const struct tile_worker *w = execute(W(LDD16A32, 4, 0, 1, 2), m, a);
    g_assert_cmphex(w->a[4], ==, 0x02000008);
    g_assert_cmphex(w->m[2], ==, 2);
    g_assert_cmphex(w->m[0], ==, TABLE + 2);
    w = execute(W(LDD16V2A32, 4, 0, 1, 3), m, a);
    g_assert_cmphex(w->a[4], ==, 0x04000010);
    g_assert_cmphex(w->m[3], ==, 2 | 8 << 16);
    w = execute(W(LD64A32, 4, 0, 1, 2), m, a);
    g_assert_cmphex(w->a[5], ==, 0x02000008);
    g_assert_cmphex(w->a[6], ==, 2 | 8 << 16);
    g_assert_cmphex(w->m[0], ==, TABLE + 8);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    build_init(&b, (struct tile_config){0});
    g_test_add_func("/tile/semantics/integers", test_integers);
    g_test_add_func("/tile/semantics/unary", test_unary_integers);
    g_test_add_func("/tile/semantics/permutations", test_permutations);
    g_test_add_func("/tile/semantics/bits", test_bits);
    g_test_add_func("/tile/semantics/f16", test_f16);
    g_test_add_func("/tile/semantics/f16-forms", test_f16_special_forms);
    g_test_add_func("/tile/semantics/f32", test_f32);
    g_test_add_func("/tile/semantics/functions", test_functions);
    g_test_add_func("/tile/semantics/conversions", test_conversions);
    g_test_add_func("/tile/semantics/f8", test_f8);
    g_test_add_func("/tile/semantics/accumulate", test_accumulate);
    g_test_add_func("/tile/semantics/products", test_products);
    g_test_add_func("/tile/semantics/cmac-exact", test_cmac_exact);
    g_test_add_func("/tile/semantics/transpose", test_transpose);
    g_test_add_func("/tile/semantics/random", test_random);
    g_test_add_func("/tile/semantics/stochastic", test_stochastic_rounding);
    g_test_add_func("/tile/semantics/memory", test_memory);
    g_test_add_func("/tile/semantics/pace", test_pace);
    g_test_add_func("/tile/semantics/delta", test_delta_loads);
    const int status = g_test_run();
    build_free(&b);
    return status;
}
