/* tile_amp_plan: what bundles { transfers of 64 bits ; AMP with four engines and two sets } do to
 * addresses, for the executors that run many of them at once (tile_fused_amp.c, tile_trace.c). Not
 * for other rooms.
 *
 * A plan depends on the instructions only. Addresses move by constants and by fields of stride
 * registers, so each stream of accesses covers a range that is known beforehand, and all checks of
 * plain execution are made on ranges: alignment, words never written, allocation, executable second
 * address, distinct elements of a bundle, data apart from the code. Where a range does not allow to
 * tell, the plain code is the judge. */
#ifndef IPU_TILE_AMP_PLAN_H
#define IPU_TILE_AMP_PLAN_H

#include "tile/tile_amp.h"

enum { TILE_AMP_POINTERS = 4, TILE_AMP_STRIDES = 4, TILE_ADDRESS_MASK = 0x1fffff };

/* A pointer of the program: a pair of packed addresses (three streams) or base + delta (one). */
struct tile_amp_pointer {
    bool packed;
    uint8_t reg, base; /* first of the pair; or delta and base */
    uint8_t stream;
};
/* Where the step of an access comes from. */
enum tile_amp_step_kind {
    TILE_AMP_STEP_ATOM,
    TILE_AMP_STEP_FIELD,
    TILE_AMP_STEP_IMM,
    TILE_AMP_STEP_REG
};
struct tile_amp_step {
    uint8_t kind, reg,
        field; /* FIELD: 10-bit field of the stride register; REG: register times 8 */
    int32_t imm;
};
struct tile_amp_access {
    uint8_t stream, pair;
    struct tile_amp_step step;
};
struct tile_amp_slot {
    uint8_t kind, x, partial, result, phase; /* enum tile_fused_kind; pairs */
    struct tile_amp_access load[2], store;
};
struct tile_amp_plan {
    uint32_t n, n_streams, n_pointers, n_strides;
    bool f8;
    uint64_t weights; /* bit per word of weights that is used, as in struct tile */
    struct tile_amp_pointer pointer[TILE_AMP_POINTERS];
    uint8_t stride[TILE_AMP_STRIDES]; /* registers that steps depend on */
    struct tile_amp_slot slot[TILE_FUSED_MAX];
    uint32_t second; /* bit per stream that holds second addresses */
};

/* False when the bundles are no such ones, or a pointer register is also read as something else. */
bool tile_amp_plan_make(struct tile_amp_plan *l, const struct tile_slot *slots, uint32_t n);

static inline bool tile_fused_loads(uint32_t kind) {
    return kind != TILE_FUSED_NONE && kind != TILE_FUSED_S;
}
static inline bool tile_fused_loads_two(uint32_t kind) {
    return kind == TILE_FUSED_LL || kind == TILE_FUSED_LLS;
}
static inline bool tile_fused_stores(uint32_t kind) {
    return kind == TILE_FUSED_S || kind == TILE_FUSED_LS || kind == TILE_FUSED_LLS;
}

/* Bytes that the address moves by, with the stride register's value. */
static inline int32_t tile_amp_step_bytes(const struct tile_amp_step *s, const uint32_t *m) {
    switch ((enum tile_amp_step_kind)s->kind) {
    case TILE_AMP_STEP_ATOM:
        return 8;
    case TILE_AMP_STEP_FIELD:
        return ((int32_t)(m[s->reg] << (22 - s->field)) >> 22) * 8;
    case TILE_AMP_STEP_IMM:
        return s->imm;
    case TILE_AMP_STEP_REG:
        return (int32_t)(m[s->reg] * 8);
    }
    return 0;
}

/* --- Packed addresses: two registers hold three addresses of 21 bits. --- */

static inline uint32_t tile_packed_get(const uint32_t *pair, uint32_t k) {
    if (k < 2) return pair[k] & TILE_ADDRESS_MASK;
    return (pair[0] >> 21 | pair[1] >> 21 << 11) & TILE_ADDRESS_MASK;
}
static inline void tile_packed_set(uint32_t *pair, const uint32_t address[3]) {
    const uint32_t third = address[2] & TILE_ADDRESS_MASK;
    pair[0] = (address[0] & TILE_ADDRESS_MASK) | third << 21;
    pair[1] = (address[1] & TILE_ADDRESS_MASK) | third >> 11 << 21;
}

/* --- Ranges. --- */

/* The bytes of a stream: where it starts, first byte, behind the last byte. */
struct tile_range {
    int64_t start, first, end;
};
/* Code that must stay apart from the data. */
struct tile_code_range {
    uint32_t first, end;
};
enum { TILE_ELEMENT_SHIFT = 14 };
_Static_assert(TARGET_ELEMENT_BYTES == 1 << TILE_ELEMENT_SHIFT &&
                   TARGET_SRAM_BASE % TARGET_ELEMENT_BYTES == 0 &&
                   TARGET_REGION1_BASE % TARGET_ELEMENT_PAIR_BYTES == 0 &&
                   TARGET_ELEMENT_PAIR_BYTES == 2 << TILE_ELEMENT_SHIFT,
               "elements are address bits");

/* True when every 64-bit access in the range is plain; *io_all_written becomes false when it stores
 * to a word that was never written. */
static inline bool tile_range_ok(const struct tile_exec *e, struct tile_code_range code, bool loads, bool stores,
                   const struct tile_range *v, bool *io_all_written) {
    const struct tile *t = e->t;
    if (v->start % 8 != 0 || v->first < TARGET_SRAM_BASE || v->end > TARGET_SRAM_END) return false;
    const uint32_t first = (uint32_t)v->first, bytes = (uint32_t)(v->end - v->first);
    /* Elements of region 0, where the code is, are numbered by address bits. */
    if (first >> TILE_ELEMENT_SHIFT <= (code.end - 1) >> TILE_ELEMENT_SHIFT &&
        (first + bytes - 1) >> TILE_ELEMENT_SHIFT >= code.first >> TILE_ELEMENT_SHIFT)
        return false;
    const bool written = tile_all_written(t, first, bytes);
    if (stores && !written) *io_all_written = false;
    return (!loads || written) && (!stores || t->writable == NULL || tile_bits_all(t->writable, first, bytes));
}

/* Bundles access a and b together; parities: bit 0 when atoms of even, bit 1 when of odd distance
 * between the offsets from the starts occur; steady: one of the two at all times. True when they
 * never meet in a port: the ranges touch no common element, or both stay in region 1 and the accesses
 * of a bundle always fall into different halves of an interleaved pair. */
static inline bool tile_ranges_apart(const struct tile_range *a, const struct tile_range *b, uint32_t parities,
                       bool steady) {
    const int pair =
        TILE_ELEMENT_SHIFT + 1; /* different pairs of elements: different elements for sure */
    if ((a->end - 1) >> pair < b->first >> pair || (b->end - 1) >> pair < a->first >> pair)
        return true;
    const uint32_t a0 = target_element((uint32_t)a->first),
                   a1 = target_element((uint32_t)a->end - 1);
    const uint32_t b0 = target_element((uint32_t)b->first),
                   b1 = target_element((uint32_t)b->end - 1);
    if (a1 < b0 || b1 < a0) return true;
    const bool odd = ((a->start ^ b->start) & 8) != 0;
    return a->first >= TARGET_REGION1_BASE && b->first >= TARGET_REGION1_BASE && steady &&
           parities == (odd ? 1 : 2);
}

/* --- Running (tile_amp_run.c). --- */

/* The state allows fused runs that use these words of weights: all defined, sums as the vector code
 * takes them. */
bool tile_fused_ready(const struct tile_exec *e, uint64_t weights);
/* Fills all of r but slots, pointers and `written` from the worker's state. f143_base is the
 * caller's memory of tile_f143.h. */
enum tile_fused_type tile_fused_prepare(struct tile_exec *e, bool f8, uint8_t *f143_base,
                                        struct tile_fused_run *r);

#endif
