/* Integer instructions on $m, bit operations and permutations on $a, branches (isa 1.3, 3.2 to 3.4).
 * Definitions in one expression each: x, y are the sources (y may be the immediate), the result goes
 * to $m at once or, for $a, to the result of the slot. */
#include "tile/tile_exec.h"

static uint32_t lo16(uint32_t v) { return v & 0xffff; }
static uint32_t hi16(uint32_t v) { return v >> 16; }
static uint32_t join16(uint32_t lo, uint32_t hi) { return lo16(lo) | hi << 16; }
static uint32_t byte(uint32_t v, uint32_t n) { return v >> 8 * n & 0xff; }
static uint32_t bytes(uint32_t b0, uint32_t b1, uint32_t b2, uint32_t b3) {
    return b0 | b1 << 8 | b2 << 16 | b3 << 24;
}
/* Amounts of 32 and more shift everything out: isa C.11. */
static uint32_t shl(uint32_t v, uint32_t n) { return n < 32 ? v << n : 0; }
static uint32_t shr(uint32_t v, uint32_t n) { return n < 32 ? v >> n : 0; }
static uint32_t shrs(uint32_t v, uint32_t n) {
    return (uint32_t)((int32_t)v >> (n < 32 ? n : 31));
}
static int32_t sgn(uint32_t v) { return (int32_t)v; }
static uint32_t smin(uint32_t x, uint32_t y) { return sgn(x) < sgn(y) ? x : y; }
static uint32_t smax(uint32_t x, uint32_t y) { return sgn(x) > sgn(y) ? x : y; }
static uint32_t absolute(uint32_t v) {
    return v == 0x80000000 ? 0x7fffffff : sgn(v) < 0 ? -v : v;
}
static uint32_t clz(uint32_t v) { return v ? (uint32_t)__builtin_clz(v) : 32; }
static uint32_t cms(uint32_t v) { return clz((v ^ v << 1) | 1); }
static uint32_t bitrev8(uint32_t v) {
    v = (v & 0x55555555) << 1 | (v >> 1 & 0x55555555);
    v = (v & 0x33333333) << 2 | (v >> 2 & 0x33333333);
    return (v & 0x0f0f0f0f) << 4 | (v >> 4 & 0x0f0f0f0f);
}
static uint32_t sort4x16lo(uint32_t x, uint32_t y) { return join16(x, y); }
static uint32_t sort4x16hi(uint32_t x, uint32_t y) { return join16(hi16(x), hi16(y)); }
static uint32_t roll16(uint32_t x, uint32_t y) { return join16(hi16(x), y); }
static uint32_t roll8r(uint32_t x, uint32_t y) { return x >> 8 | y << 24; }
static uint32_t roll8l(uint32_t x, uint32_t y) { return x >> 24 | y << 8; }
static uint32_t shuf8x8lo(uint32_t x, uint32_t y) {
    return bytes(byte(x, 0), byte(y, 0), byte(x, 1), byte(y, 1));
}
static uint32_t shuf8x8hi(uint32_t x, uint32_t y) {
    return bytes(byte(x, 2), byte(y, 2), byte(x, 3), byte(y, 3));
}
static uint32_t sort8x8lo(uint32_t x, uint32_t y) {
    return bytes(byte(x, 0), byte(x, 2), byte(y, 0), byte(y, 2));
}
static uint32_t sort8x8hi(uint32_t x, uint32_t y) {
    return bytes(byte(x, 1), byte(x, 3), byte(y, 1), byte(y, 3));
}
static uint32_t sort8(uint32_t v) {
    return bytes(byte(v, 0), byte(v, 2), byte(v, 1), byte(v, 3));
}
static uint32_t swap8(uint32_t v) {
    return bytes(byte(v, 1), byte(v, 0), byte(v, 3), byte(v, 2));
}

/* INT_R registers, INT_I immediate, INT_1 one source; BITS on single $a registers, PAIR on pairs. */
#define INT_R(id, value)                                                                          \
    EXEC(id) {                                                                                    \
        const uint32_t x = e->m[i->s0], y = e->m[i->s1];                                          \
        e->m[i->d] = (value);                                                                     \
    }
#define INT_I(id, value)                                                                          \
    EXEC(id) {                                                                                    \
        const uint32_t x = e->m[i->s0], y = (uint32_t)i->imm;                                     \
        e->m[i->d] = (value);                                                                     \
    }
#define INT_1(id, value)                                                                          \
    EXEC(id) {                                                                                    \
        const uint32_t x = e->m[i->s0];                                                           \
        e->m[i->d] = (value);                                                                     \
    }
#define BITS_R(id, value)                                                                         \
    EXEC(id) {                                                                                    \
        const uint32_t x = e->a[i->s0], y = e->a[i->s1];                                          \
        e->r[0] = (value);                                                                        \
    }
#define BITS_I(id, value)                                                                         \
    EXEC(id) {                                                                                    \
        const uint32_t x = e->a[i->s0], y = (uint32_t)i->imm;                                     \
        e->r[0] = (value);                                                                        \
    }
#define BITS_1(id, value)                                                                         \
    EXEC(id) {                                                                                    \
        const uint32_t x = e->a[i->s0];                                                           \
        e->r[0] = (value);                                                                        \
    }
#define PAIR(id, value0, value1)                                                                  \
    EXEC(id) {                                                                                    \
        const uint32_t *x = &e->a[i->s0], *y = &e->a[i->s1];                                      \
        e->r[0] = (value0);                                                                       \
        e->r[1] = (value1);                                                                       \
    }

/* clang-format off */
INT_1(ABS, absolute(x))
INT_I(ADD_Z, x + y)
INT_I(ADD_S, x + y)
INT_R(ADD_R, x + y)
INT_I(AND_M_Z, x & y)
INT_R(AND_M_R, x & y)
INT_I(ANDC_M_Z, x & ~y)
INT_R(ANDC_M_R, x & ~y)
INT_1(BITREV8, bitrev8(x))
INT_1(CLZ, clz(x))
INT_I(CMPEQ_Z, x == y)
INT_I(CMPEQ_S, x == y)
INT_R(CMPEQ_R, x == y)
INT_R(CMPNE, x != y)
INT_I(CMPSLT_S, sgn(x) < sgn(y))
INT_R(CMPSLT_R, sgn(x) < sgn(y))
INT_I(CMPULT_Z, x < y)
INT_R(CMPULT_R, x < y)
INT_1(CMS, cms(x))
INT_I(MAX_Z, smax(x, y))
INT_I(MAX_S, smax(x, y))
INT_R(MAX_R, smax(x, y))
INT_I(MIN_Z, smin(x, y))
INT_I(MIN_S, smin(x, y))
INT_R(MIN_R, smin(x, y))
INT_I(MUL_S, x * y)
INT_R(MUL_R, x * y)
INT_I(OR_M_Z, x | y)
INT_I(OR_M_T, x | y)
INT_R(OR_M_R, x | y)
INT_1(POPC, (uint32_t)__builtin_popcount(x))
INT_R(ROLL16_M, roll16(x, y))
INT_R(ROLL8L_M, roll8l(x, y))
INT_R(ROLL8R_M, roll8r(x, y))
EXEC(SETZI_M) { e->m[i->d] = (uint32_t)i->imm; }
INT_I(SHL_Z, shl(x, y))
INT_R(SHL_R, shl(x, y))
INT_I(SHR_Z, shr(x, y))
INT_R(SHR_R, shr(x, y))
INT_I(SHRS_Z, shrs(x, y))
INT_R(SHRS_R, shrs(x, y))
INT_R(SHUF8X8HI_M, shuf8x8hi(x, y))
INT_R(SHUF8X8LO_M, shuf8x8lo(x, y))
INT_R(SORT4X16HI_M, sort4x16hi(x, y))
INT_R(SORT4X16LO_M, sort4x16lo(x, y))
INT_1(SORT8_M, sort8(x))
INT_R(SORT8X8HI_M, sort8x8hi(x, y))
INT_R(SORT8X8LO_M, sort8x8lo(x, y))
INT_I(SUB_Z, y - x)
INT_I(SUB_S, y - x)
INT_R(SUB_R, x - y)
INT_1(SWAP8_M, swap8(x))
INT_R(XNOR, ~(x ^ y))
INT_R(XOR, x ^ y)

BITS_I(AND_A_Z, x & y)
BITS_I(AND_A_T, x & y)
BITS_R(AND_A_R, x & y)
PAIR(AND64, x[0] & y[0], x[1] & y[1])
BITS_I(ANDC_A_Z, x & ~y)
BITS_I(ANDC_A_T, x & ~y)
BITS_R(ANDC_A_R, x & ~y)
PAIR(ANDC64, x[0] & ~y[0], x[1] & ~y[1])
BITS_1(NOT, ~x)
EXEC(NOT64) { e->r[0] = ~e->a[i->s0]; e->r[1] = ~e->a[i->s0 + 1]; }
BITS_I(OR_A_Z, x | y)
BITS_I(OR_A_T, x | y)
BITS_R(OR_A_R, x | y)
PAIR(OR64, x[0] | y[0], x[1] | y[1])
BITS_R(ROLL16_A, roll16(x, y))
PAIR(ROLL32, x[1], y[0])
BITS_R(ROLL8L_A, roll8l(x, y))
BITS_R(ROLL8R_A, roll8r(x, y))
EXEC(SETZI_A) { e->r[0] = (uint32_t)i->imm; }
BITS_R(SHUF8X8HI_A, shuf8x8hi(x, y))
BITS_R(SHUF8X8LO_A, shuf8x8lo(x, y))
BITS_R(SORT4X16HI_A, sort4x16hi(x, y))
BITS_R(SORT4X16HI_A_BL, join16(x, hi16(y)))
BITS_R(SORT4X16LO_A, sort4x16lo(x, y))
BITS_R(SORT4X16LO_A_BU, join16(hi16(x), y))
PAIR(SORT4X32HI, x[1], y[1])
PAIR(SORT4X32LO, x[0], y[0])
BITS_1(SORT8_A, sort8(x))
BITS_R(SORT8X8HI_A, sort8x8hi(x, y))
BITS_R(SORT8X8LO_A, sort8x8lo(x, y))
BITS_1(SWAP8_A, swap8(x))
/* clang-format on */

/* Named movz, moves when the condition is not zero (isa 3.2). */
EXEC(MOVZ) {
    if (e->m[i->s0] != 0) e->m[i->d] = e->m[i->s1];
}
EXEC(ATOM) { e->m[i->d] = e->a[i->s0]; }

static void branch(struct tile_exec *e, const struct isa_insn *i, bool taken) {
    if (taken) e->npc = (uint32_t)i->imm;
    e->taken = taken;
}
EXEC(BR) {
    e->npc = e->m[i->s0];
    e->taken = true;
}
EXEC(BRI) { branch(e, i, true); }
EXEC(BRNEG) { branch(e, i, sgn(e->m[i->s0]) < 0); }
EXEC(BRPOS) { branch(e, i, sgn(e->m[i->s0]) >= 0); }
EXEC(BRZ) { branch(e, i, e->m[i->s0] == 0); }
EXEC(BRNZ) { branch(e, i, e->m[i->s0] != 0); }
EXEC(BRNZDEC) {
    const bool taken = e->m[i->s0] != 0;
    if (taken && i->s0 < 12) e->m[i->s0]--;
    branch(e, i, taken);
}
/* The top bit of the 20-bit word address is ignored (isa 1.3). */
EXEC(CALL) {
    e->m[i->d] = e->npc;
    e->npc = (uint32_t)i->imm & 0x1fffff;
    e->taken = true;
}
