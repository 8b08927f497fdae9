/* target: facts about the machine as data. Nothing else in the tree contains a literal tile count,
 * address or latency.
 *
 * Out:  the constants of target.def as TARGET_NAME, their units and sources; the numbering of
 *       tiles, pairs, directions and route latencies of the exchange (facts: exchange 1.1 to 1.7).
 * Number spaces: a logical tile (ltile) 0..1471 is what every form uses; a physical tile (ptile)
 *       is what the fabric's multiplexers name. Both are dense permutations of each other.
 * Threads: everything is immutable. Errors: none; numbers out of range are bugs.
 */
#ifndef IPU_TARGET_H
#define IPU_TARGET_H

#include "base/base.h"

enum target_constant_values {
#define TARGET(name, value, unit, confidence, source) TARGET_##name = value,
#include "target/target.def"
#undef TARGET
};

enum target_confidence { TARGET_HW, TARGET_DOC, TARGET_INFERRED, TARGET_ASSUMED };

struct target_constant {
    const char *name, *unit, *source;
    int64_t value;
    enum target_confidence confidence;
};
/* All rows of target.def, for `ipu-stack target` and the manual. */
const struct target_constant *target_constants(size_t *ret_n);

/* Typed tile numbers. Plain uint32_t is a logical tile where a header says so. */
struct ltile { uint16_t n; };
struct ptile { uint16_t n; };

struct ptile target_ptile(struct ltile l);
struct ltile target_ltile(struct ptile p);
/* The two tables in plain form, 1,472 entries each. */
const uint16_t *target_physical_of_logical(void);
const uint16_t *target_logical_of_physical(void);

/* Row 0..22, lane 0..1 of a physical tile. */
static inline uint32_t target_row(struct ptile p) { return (uint32_t)p.n >> 6; }
static inline uint32_t target_lane(struct ptile p) { return ((uint32_t)p.n >> 1) & 1; }
/* The other member of the pair (logical: l xor 1). */
static inline struct ptile target_partner(struct ptile p) {
    return (struct ptile){(uint16_t)(p.n ^ 2)};
}

/* 1 or 2: the direction in which an item of s travels to reach d. */
uint32_t target_direction(struct ptile s, struct ptile d);
/* Route latency in slots, -78..112: a word sent in slot S is at d's multiplexer in slot S + ttm. */
int32_t target_ttm(struct ptile s, struct ptile d);
/* Separable form (exchange 1.6): ttm(s,d) = target_ttm_f(k,s) + target_ttm_g(k,d) with k the class
 * (direction - 1) + 2 * (halves differ). */
uint32_t target_ttm_class(struct ptile s, struct ptile d);
int32_t target_ttm_f(uint32_t ttm_class, struct ptile s);
int32_t target_ttm_g(uint32_t ttm_class, struct ptile d);

/* Memory. Address is a byte address in SRAM. */
static inline bool target_in_sram(uint32_t address) {
    return address >= TARGET_SRAM_BASE && address < TARGET_SRAM_END;
}
static inline bool target_interleaved(uint32_t address) { return address >= TARGET_REGION1_BASE; }
enum { TARGET_N_ELEMENTS = 26 };
/* Effective element of an address, 0..25: 13 of 16 KiB below 0x80000, then 13 of 32 KiB. */
static inline uint32_t target_element(uint32_t address) {
    return address < TARGET_REGION1_BASE
               ? (address - TARGET_SRAM_BASE) / TARGET_ELEMENT_BYTES
               : 13 + (address - TARGET_REGION1_BASE) / TARGET_ELEMENT_PAIR_BYTES;
}
uint32_t target_element_base(uint32_t element); /* first address; element 26 gives SRAM_END */

#endif
