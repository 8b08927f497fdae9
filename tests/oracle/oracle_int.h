/* Integers, bits, permutations, moves (isa 3.2 to 3.4). */
#ifndef IPU_TESTS_ORACLE_INT_H
#define IPU_TESTS_ORACLE_INT_H

#include "oracle.h"

static inline int64_t wide(uint32_t v) { return v < 0x80000000u ? (int64_t)v : (int64_t)v - (INT64_C(1) << 32); }
static inline uint32_t bit_by_bit(uint32_t x, uint32_t y, uint32_t truth) {
    uint32_t r = 0;
    for (uint32_t k = 0; k < 32; k++) r |= (truth >> ((x >> k & 1) * 2 + (y >> k & 1)) & 1) << k;
    return r;
}
static inline uint32_t shifted_right(int64_t v, uint32_t n) {
    for (uint32_t k = 0; k < n && k < 40; k++) v = v >= 0 ? v / 2 : -((-v + 1) / 2);
    return (uint32_t)(uint64_t)v;
}

/* Two sources; `d` is what the destination held. */
static inline bool two_sources(const char *n, uint32_t x, uint32_t y, uint32_t d, uint32_t *r) {
#define IS(text) (strcmp(n, text) == 0)
    if (IS("add")) *r = (uint32_t)(uint64_t)(wide(x) + wide(y));
    else if (IS("sub")) *r = (uint32_t)(uint64_t)(wide(x) - wide(y));
    else if (IS("mul")) *r = (uint32_t)(uint64_t)(wide(x) * wide(y));
    else if (IS("min")) *r = wide(x) <= wide(y) ? x : y;
    else if (IS("max")) *r = wide(x) >= wide(y) ? x : y;
    else if (IS("cmpeq")) *r = wide(x) - wide(y) == 0;
    else if (IS("cmpne")) *r = wide(x) - wide(y) != 0;
    else if (IS("cmpslt")) *r = wide(x) - wide(y) < 0;
    else if (IS("cmpult")) *r = (int64_t)x - (int64_t)y < 0;
    else if (IS("and") || IS("and64")) *r = bit_by_bit(x, y, 8);
    else if (IS("andc") || IS("andc64")) *r = bit_by_bit(x, y, 4);
    else if (IS("or") || IS("or64")) *r = bit_by_bit(x, y, 14);
    else if (IS("xor")) *r = bit_by_bit(x, y, 6);
    else if (IS("xnor")) *r = bit_by_bit(x, y, 9);
    else if (IS("shl")) *r = y > 31 ? 0 : (uint32_t)((uint64_t)x * (UINT64_C(1) << y));
    else if (IS("shr")) *r = shifted_right(x, y);
    else if (IS("shrs")) *r = shifted_right(wide(x), y);
    else if (IS("movz")) *r = x != 0 ? y : d;
    else return false;
    return true;
#undef IS
}
static inline bool one_source(const struct step *s, uint32_t x, uint32_t *r) {
    uint32_t n = 0;
    if (named(s, "clz")) {
        while (n < 32 && x < (UINT64_C(1) << (31 - n))) n++;
    } else if (named(s, "cms")) {
        while (n < 31 && (x >> (30 - n) & 1) == x >> 31) n++;
    } else if (named(s, "popc")) {
        for (uint32_t left = x; left != 0; left /= 2) n += left % 2;
    } else if (named(s, "bitrev8")) {
        for (uint32_t k = 0; k < 32; k++) n |= (x >> k & 1) << (k / 8 * 8 + 7 - k % 8);
    } else if (named(s, "abs")) {
        n = (uint32_t)(wide(x) < 0 ? -wide(x) : wide(x));
        if (wide(x) == INT32_MIN) n = INT32_MAX;
    } else if (named(s, "not") || named(s, "not64")) {
        n = UINT32_MAX - x;
    } else if (named(s, "setzi") || named(s, "atom")) {
        n = x;
    } else {
        return false;
    }
    *r = n;
    return true;
}

/* Permutations: bytes of the result, lowest first, in a0..a7 and b0..b7. */
static const struct { const char *name, *pattern; } PERMUTATIONS[] = {
    {"sort4x16lo", "a0a1b0b1"}, {"sort4x16hi", "a2a3b2b3"}, {"roll16", "a2a3b0b1"},
    {"sort4x32lo", "a0a1a2a3b0b1b2b3"}, {"sort4x32hi", "a4a5a6a7b4b5b6b7"}, {"roll32", "a4a5a6a7b0b1b2b3"},
    {"shuf8x8lo", "a0b0a1b1"}, {"shuf8x8hi", "a2b2a3b3"}, {"sort8x8lo", "a0a2b0b2"},
    {"sort8x8hi", "a1a3b1b3"}, {"roll8r", "a1a2a3b0"}, {"roll8l", "a3b0b1b2"},
    {"sort8", "a0a2a1a3"}, {"swap8", "a1a0a3a2"}};

static inline bool permutation(struct oracle *s, const struct step *x) {
    const char *pattern = NULL;
    for (uint32_t k = 0; k < ARRAY_LEN(PERMUTATIONS); k++)
        if (named(x, PERMUTATIONS[k].name)) pattern = PERMUTATIONS[k].pattern;
    if (pattern == NULL) return false;
    uint8_t source[2][8] = {{0}}, out[8] = {0};
    const uint32_t n = class_of(x, 0)->n, n_sources = x->f->n_operands - 1u;
    for (uint32_t k = 0; k < n_sources; k++)
        for (uint32_t j = 0; j < n; j++) {
            uint32_t v = class_of(x, k + 1)->file == 'M' ? s->m[x->v[k + 1]] : group(s, x, k + 1, j);
            if (is_class(x, k + 1, ISA_CLASS_A_BL)) v = (v & 0xffff) * 0x10001;
            if (is_class(x, k + 1, ISA_CLASS_A_BU)) v = (v >> 16) * 0x10001;
            memcpy(source[k] + 4 * j, &v, 4);
        }
    for (uint32_t k = 0; k < 4 * n; k++) out[k] = source[pattern[2 * k] == 'b'][pattern[2 * k + 1] - '0'];
    uint32_t r[2];
    memcpy(r, out, 8);
    result(s, x, r[0]);
    if (n == 2) set_a(s, x->v[0] + 1, r[1]);
    return true;
}

static inline bool oracle_int(struct oracle *s, const struct step *x) {
    const uint8_t kind = x->f->kind;
    if (kind != ISA_KIND_INT && kind != ISA_KIND_BITS) return false;
    if (permutation(s, x)) return true;
    const struct oracle old = *s;
    const uint32_t n = class_of(x, 0)->n, last = x->f->n_operands - 1u;
    for (uint32_t j = 0; j < n; j++) {
        const bool pair = n == 2;
        const uint32_t a = pair ? group(&old, x, 1, j) : value(&old, x, 1);
        const uint32_t c = pair ? group(&old, x, last, j) : value(&old, x, last);
        uint32_t r = 0;
        const bool known = last == 1 ? one_source(x, a, &r)
                                     : two_sources(x->name, a, c, old.m[x->v[0]], &r);
        if (!known) return false;
        if (pair) set_a(s, x->v[0] + j, r);
        else result(s, x, r);
    }
    return true;
}

#endif
