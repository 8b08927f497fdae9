/* Loads and stores with their checks: alignment, range, region, executable second address, distinct
 * elements, words never written, allocations, races (isa 3.5, 3.6, 6). The usual case is a handful of
 * compares; every fault is taken out of line. Loads write their destination at once, stores read
 * registers that the auxiliary half of the bundle has not changed yet. */
#include "tile/tile_exec.h"

enum { ADDRESS_BITS = 21, ADDRESS_MASK = (1 << ADDRESS_BITS) - 1 };

static const uint8_t ZEROS[16] __attribute__((aligned(16)));

/* base + delta + offset as the bus sees it; a carry out of 21 bits stays visible (isa C.22). */
static uint32_t ea(uint32_t base, uint32_t delta, uint64_t offset) {
    const uint64_t sum = (uint64_t)base + delta + offset;
    return sum >> ADDRESS_BITS ? UINT32_MAX & ~15u : (uint32_t)sum;
}

static inline bool out_of_sram(uint32_t address, uint32_t bytes) {
    return address - TARGET_SRAM_BASE > SRAM_BYTES - bytes;
}

static inline uint32_t word_mask(uint32_t bytes) {
    return bytes <= 4 ? 1 : bytes == 8 ? 3 : 15;
}

/* The access can't be made. */
static __attribute__((noinline)) void access_fault(struct tile_exec *e, uint32_t address,
                                                   uint32_t bytes) {
    if (address >> ADDRESS_BITS)
        tile_raise(e, TILE_FAULT_ADDRESS_CARRY, address, bytes);
    else if (address % bytes != 0)
        tile_raise(e, TILE_FAULT_ADDRESS_MISALIGNED, address, bytes);
    else
        tile_raise(e, TILE_FAULT_ADDRESS_RANGE, address, bytes);
}

static void count_fetch_conflict(struct tile_exec *e, uint32_t address) {
    if (tile_port(address) == tile_port(e->pc)) e->t->counters.fetch_conflicts++;
}

/* What is rare: region 0, races, words never written. */
static __attribute__((noinline)) void load_check(struct tile_exec *e, uint32_t address,
                                                 uint32_t bytes) {
    const uint32_t word = (address - TARGET_SRAM_BASE) / 4;
    if (bytes == 16 && address < TARGET_REGION1_BASE)
        tile_raise(e, TILE_FAULT_ADDRESS_REGION, address, bytes);
    if (~(e->t->written[word / 64] >> word % 64) & word_mask(bytes)) {
        const uint32_t at = tile_word_unwritten(e->t, address, bytes);
        if (at != UINT32_MAX) tile_raise(e, TILE_FAULT_READ_UNWRITTEN, at, bytes);
    }
    if (e->t->race != NULL) tile_race_access(e, address, bytes, false);
    if (address < TARGET_REGION1_BASE) count_fetch_conflict(e, address);
}

static inline const uint8_t *load(struct tile_exec *e, uint32_t address, uint32_t bytes) {
    if (__builtin_expect(address % bytes != 0 || out_of_sram(address, bytes), 0)) {
        access_fault(e, address, bytes);
        return ZEROS;
    }
    const uint32_t offset = address - TARGET_SRAM_BASE, word = offset / 4;
    const bool unwritten = (~(e->t->written[word / 64] >> word % 64) & word_mask(bytes)) != 0;
    const bool near_code = address < TARGET_REGION1_BASE && address >> 14 == e->pc >> 14;
    const bool wrong_region = bytes == 16 && address < TARGET_REGION1_BASE;
    if (__builtin_expect(unwritten || near_code || wrong_region || e->t->race != NULL, 0))
        load_check(e, address, bytes);
    return e->t->bytes + offset;
}

const uint8_t *tile_load(struct tile_exec *e, uint32_t address, uint32_t bytes) {
    return load(e, address, bytes);
}

static __attribute__((noinline)) void store_check(struct tile_exec *e, uint32_t address,
                                                  uint32_t bytes) {
    const uint32_t word = (address - TARGET_SRAM_BASE) / 4;
    if (e->t->writable != NULL) {
        const uint32_t no = ~(uint32_t)(e->t->writable[word / 64] >> word % 64) & word_mask(bytes);
        if (no != 0)
            tile_raise(e, TILE_FAULT_WRITE_UNALLOCATED, address + 4 * (uint32_t)__builtin_ctz(no), bytes);
    }
    if (e->t->race != NULL) tile_race_access(e, address, bytes, true);
    if (address < TARGET_REGION1_BASE) count_fetch_conflict(e, address);
}

/* A store of an instruction that has faulted already is not made. */
static inline void store(struct tile_exec *e, uint32_t address, uint32_t bytes, const void *data) {
    if (__builtin_expect(address % bytes != 0 || out_of_sram(address, bytes), 0)) {
        access_fault(e, address, bytes);
        return;
    }
    const uint32_t offset = address - TARGET_SRAM_BASE, word = offset / 4;
    const bool near_code = address < TARGET_REGION1_BASE && address >> 14 == e->pc >> 14;
    const uint64_t mask = (uint64_t)word_mask(bytes) << word % 64;
    const bool foreign = e->t->writable != NULL && (e->t->writable[word / 64] & mask) != mask;
    if (__builtin_expect(near_code || foreign || e->t->race != NULL, 0)) store_check(e, address, bytes);
    if (__builtin_expect(e->fault != TILE_FAULT_NONE, 0)) return;
    e->t->written[word / 64] |= mask;
    memcpy(e->t->bytes + offset, data, bytes);
}

void tile_store(struct tile_exec *e, uint32_t address, uint32_t bytes, const void *data) {
    store(e, address, bytes, data);
}

/* --- One access. --- */

enum kind { Z8, S8, B8, Z16, S16, B16, W32, W64, W128 };

static inline uint32_t kind_bytes(enum kind k) {
    return k <= B8 ? 1 : k <= B16 ? 2 : k == W32 ? 4 : k == W64 ? 8 : 16;
}

static inline void load_to(struct tile_exec *e, uint32_t *d, uint32_t address, enum kind k) {
    const uint8_t *p = load(e, address, kind_bytes(k));
    uint16_t half;
    switch (k) {
    case Z8: *d = p[0]; break;
    case S8: *d = (uint32_t)(int8_t)p[0]; break;
    case B8: *d = p[0] * 0x01010101u; break;
    case Z16: memcpy(&half, p, 2); *d = half; break;
    case S16: memcpy(&half, p, 2); *d = (uint32_t)(int16_t)half; break;
    case B16: memcpy(&half, p, 2); *d = half * 0x00010001u; break;
    case W32: memcpy(d, p, 4); break;
    case W64: memcpy(d, p, 8); break;
    case W128: memcpy(d, p, 16); break;
    }
}

/* LOAD(name, file, kind): offset and stride from a register (_R) or an immediate (_Z, _S). The four
 * forms of a load share base and delta. */
#define LOAD_AT(id, file, kind, offset)                                                           \
    EXEC(id) {                                                                                    \
        const uint64_t off = (uint64_t)(offset) * kind_bytes(kind);                               \
        load_to(e, &e->file[i->d], ea(e->m[i->base], e->m[i->delta], off), kind);                 \
    }
#define LOAD_STEP(id, file, kind, stride)                                                         \
    EXEC(id) {                                                                                    \
        const uint32_t address = ea(e->m[i->base], e->m[i->delta], 0);                            \
        e->m[i->delta] += (uint32_t)(stride) * kind_bytes(kind);                                  \
        load_to(e, &e->file[i->d], address, kind);                                                \
    }
#define LOAD(name, suffix, file, kind)                                                            \
    LOAD_AT(name##suffix##_Z, file, kind, (uint32_t)i->imm)                                       \
    LOAD_AT(name##suffix##_R, file, kind, e->m[i->off])                                           \
    LOAD_STEP(name##STEP##suffix##_S, file, kind, i->imm)                                         \
    LOAD_STEP(name##STEP##suffix##_R, file, kind, e->m[i->off])

/* clang-format off */
LOAD(LDZ8, , m, Z8)
LOAD(LDS8, , m, S8)
LOAD(LDZ16, , m, Z16)
LOAD(LDS16, , m, S16)
LOAD(LD32, _M, m, W32)
LOAD(LDB8, , a, B8)
LOAD(LDB16, , a, B16)
LOAD(LD32, _A, a, W32)
LOAD(LD64, , a, W64)
LOAD(LD128, , a, W128)
/* clang-format on */

#define STORE_AT(id, file, bytes, offset)                                                         \
    EXEC(id) {                                                                                    \
        const uint64_t off = (uint64_t)(offset) * (bytes);                                        \
        store(e, ea(e->m[i->base], e->m[i->delta], off), bytes, &e->file[i->s0]);            \
    }
#define STORE_STEP(id, file, bytes, stride)                                                       \
    EXEC(id) {                                                                                    \
        store(e, ea(e->m[i->base], e->m[i->delta], 0), bytes, &e->file[i->s0]);              \
        e->m[i->delta] += (uint32_t)(stride) * (bytes);                                           \
    }

/* clang-format off */
STORE_AT(ST32_M, m, 4, (uint32_t)i->imm)
STORE_AT(ST32_A_Z, a, 4, (uint32_t)i->imm)
STORE_AT(ST32_A_R, a, 4, e->m[i->off])
STORE_AT(ST64_Z, a, 8, (uint32_t)i->imm)
STORE_AT(ST64_R, a, 8, e->m[i->off])
STORE_STEP(ST32STEP_M, m, 4, i->imm)
STORE_STEP(ST32STEP_A_S, a, 4, i->imm)
STORE_STEP(ST32STEP_A_R, a, 4, e->m[i->off])
STORE_STEP(ST64STEP_S, a, 8, i->imm)
STORE_STEP(ST64STEP_R, a, 8, e->m[i->off])
/* clang-format on */

EXEC(STM32) {
    store(e, ea(e->m[i->base], 0, (uint64_t)e->m[i->off] * 4), 4, &e->m[i->s0]);
}
EXEC(STM32STEP) {
    store(e, ea(e->m[i->base], 0, 0), 4, &e->m[i->s0]);
    if (i->base < 12) e->m[i->base] += e->m[i->off] * 4;
}

/* --- Several accesses. --- */

/* `last` is the number of the last address. */
static __attribute__((noinline)) void ports_fault(struct tile_exec *e, const uint32_t *address,
                                                  uint32_t n, uint32_t last) {
    for (uint32_t i = 0; i < n; i++)
        if (out_of_sram(address[i], 1)) return; /* faults on its own */
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (tile_port(address[i]) == tile_port(address[j])) {
                e->ea = i + 1 == n ? last : i;
                tile_raise(e, TILE_FAULT_ELEMENT_CONFLICT, address[i], address[j]);
            }
    e->ea = 0;
}

/* Different ports for sure: both in region 1 and in different halves, or far apart. */
static inline bool ports_differ(uint32_t a, uint32_t b) {
    if (a >= TARGET_REGION1_BASE && b >= TARGET_REGION1_BASE) return ((a ^ b) & ~0x7ff7u) != 0;
    return (a ^ b) >> 15 != 0;
}

static inline void check_ports2(struct tile_exec *e, uint32_t a, uint32_t b) {
    const uint32_t both[2] = {a, b};
    if (__builtin_expect(!ports_differ(a, b), 0)) ports_fault(e, both, 2, 1);
}
static inline void check_ports3(struct tile_exec *e, const uint32_t a[3]) {
    if (__builtin_expect(!ports_differ(a[0], a[1]) || !ports_differ(a[0], a[2]) ||
                             !ports_differ(a[1], a[2]), 0))
        ports_fault(e, a, 3, 2);
}

/* The packed pair (isa 3.6) and what an instruction does with it. */
struct pace {
    uint32_t a[3];
};

static inline struct pace unpack(const struct tile_exec *e, const struct isa_insn *i) {
    const uint32_t p0 = e->m[i->addr], p1 = e->m[i->addr + 1];
    return (struct pace){{p0 & ADDRESS_MASK, p1 & ADDRESS_MASK,
                          (p0 >> ADDRESS_BITS | p1 >> ADDRESS_BITS << 11) & ADDRESS_MASK}};
}

/* Atoms that a two-bit code advances an address by. */
static inline uint32_t increment(uint32_t code, uint32_t stride) {
    if (code == 0) return 1;
    return (uint32_t)((int32_t)(stride << (32 - 10 * code)) >> 22);
}

static inline uint32_t advance(uint32_t address, uint32_t code, uint32_t stride, uint32_t atom) {
    return (address + (code == 0 ? atom : 8 * increment(code, stride))) & ADDRESS_MASK;
}

static inline void repack01(struct tile_exec *e, const struct isa_insn *i, uint32_t a0,
                            uint32_t a1) {
    uint32_t *p = &e->m[i->addr];
    p[0] = (p[0] & ~(uint32_t)ADDRESS_MASK) | a0;
    p[1] = (p[1] & ~(uint32_t)ADDRESS_MASK) | a1;
}

static inline void repack2(struct tile_exec *e, const struct isa_insn *i, uint32_t a2) {
    uint32_t *p = &e->m[i->addr];
    p[0] = (p[0] & ADDRESS_MASK) | a2 << ADDRESS_BITS;
    p[1] = (p[1] & ADDRESS_MASK) | (a2 >> 11) << ADDRESS_BITS;
}

static inline void check_dual(struct tile_exec *e, const struct pace *p) {
    check_ports2(e, p->a[0], p->a[1]);
    if (p->a[1] < TARGET_REGION1_BASE && p->a[1] >= TARGET_SRAM_BASE)
        tile_raise(e, TILE_FAULT_ADDRESS_EXECUTABLE, p->a[1], 0);
}

/* Two loads; the second one of `kind` into $a[d1]. */
static inline void dual_load(struct tile_exec *e, const struct isa_insn *i, enum kind kind) {
    const struct pace p = unpack(e, i);
    const uint32_t stride = e->m[i->off], code = (uint32_t)i->imm;
    check_dual(e, &p);
    load_to(e, &e->a[i->d], p.a[0], W64);
    e->ea = 1;
    load_to(e, &e->a[i->d1], p.a[1], kind);
    e->ea = 0;
    repack01(e, i, advance(p.a[0], code & 3, stride, 8),
             advance(p.a[1], code >> 2 & 3, stride, kind_bytes(kind)));
}
EXEC(LD2X64PACE) { dual_load(e, i, W64); }
EXEC(LD64A32PACE) { dual_load(e, i, W32); }
EXEC(LD64B16PACE) { dual_load(e, i, B16); }

EXEC(LDST64PACE) {
    const struct pace p = unpack(e, i);
    const uint32_t stride = e->m[i->off], code = (uint32_t)i->imm;
    const uint32_t stored[2] = {e->a[i->s0], e->a[i->s0 + 1]};
    if (__builtin_expect(!ports_differ(p.a[0], p.a[2]), 0)) ports_fault(e, (uint32_t[]){p.a[0], p.a[2]}, 2, 2);
    load_to(e, &e->a[i->d], p.a[0], W64);
    e->ea = 2;
    store(e, p.a[2], 8, stored);
    e->ea = 0;
    repack01(e, i, advance(p.a[0], code & 3, stride, 8), p.a[1]);
    repack2(e, i, advance(p.a[2], code >> 2 & 3, stride, 8));
}

EXEC(LD2XST64PACE) {
    const struct pace p = unpack(e, i);
    const uint32_t stride = e->m[i->off], code = (uint32_t)i->imm;
    const uint32_t stored[2] = {e->a[i->s0], e->a[i->s0 + 1]};
    uint32_t *d = i->d < 8 ? &e->a[i->d] : &e->a[TILE_SINK];
    check_ports3(e, p.a);
    if (p.a[1] < TARGET_REGION1_BASE && p.a[1] >= TARGET_SRAM_BASE)
        tile_raise(e, TILE_FAULT_ADDRESS_EXECUTABLE, p.a[1], 0);
    load_to(e, d, p.a[0], W64);
    e->ea = 1;
    load_to(e, d + 2, p.a[1], W64);
    e->ea = 2;
    store(e, p.a[2], 8, stored);
    e->ea = 0;
    repack01(e, i, advance(p.a[0], code & 3, stride, 8), advance(p.a[1], code >> 2 & 3, stride, 8));
    repack2(e, i, advance(p.a[2], code >> 4 & 3, stride, 8));
}

EXEC(ST64PACE) {
    const struct pace p = unpack(e, i);
    e->ea = 2;
    store(e, p.a[2], 8, &e->a[i->s0]);
    e->ea = 0;
    repack2(e, i, advance(p.a[2], (uint32_t)i->imm & 3, e->m[i->off], 8));
}

EXEC(TAPACK) {
    const uint32_t a0 = e->m[i->s0], a1 = e->m[i->s1], a2 = e->m[i->s2] & ADDRESS_MASK;
    e->m[i->d] = (a0 & ADDRESS_MASK) | a2 << ADDRESS_BITS;
    e->m[i->d + 1] = (a1 & ADDRESS_MASK) | (a2 >> 11) << ADDRESS_BITS;
}

/* --- Loads through tables of 16-bit offsets (isa 3.5). --- */

/* The data access uses the delta from before the table access. */
static inline void delta_load(struct tile_exec *e, const struct isa_insn *i, enum kind kind) {
    const uint32_t table = e->m[i->addr], data = ea(e->m[i->base], e->m[i->delta], 0);
    uint32_t next;
    check_ports2(e, table, data);
    load_to(e, &next, table, Z16);
    load_to(e, &e->a[i->d], data, kind);
    e->m[i->addr] = table + 2;
    e->m[i->delta] = next;
}
EXEC(LDD16A32) { delta_load(e, i, W32); }
EXEC(LDD16A64) { delta_load(e, i, W64); }
EXEC(LDD16B16) { delta_load(e, i, B16); }

EXEC(LDD16V2A32) {
    const uint32_t table = e->m[i->addr], data = ea(e->m[i->base], e->m[i->delta] >> 16, 0);
    uint32_t next;
    check_ports2(e, table, data);
    load_to(e, &next, table, W32);
    load_to(e, &e->a[i->d], data, W32);
    e->m[i->addr] = table + 4;
    e->m[i->delta] = next;
}

EXEC(LD64A32) {
    const uint32_t pair = e->m[i->addr];
    const uint32_t data = ea(e->m[i->base], e->m[i->delta] & 0xffff, 0);
    uint32_t *d = &e->a[i->d];
    check_ports2(e, pair, data);
    load_to(e, d + 2, pair, W64);
    load_to(e, d + 1, data, W32);
    e->m[i->addr] = pair + 8;
}

/* Which half of the deltas takes which increment is not public: isa C.19. */
EXEC(LDB16B16) {
    const uint32_t delta = e->m[i->delta], mini = e->m[i->off];
    const uint32_t lo = ea(e->m[i->base], delta & 0xffff, 0);
    const uint32_t hi = ea(e->m[i->base], delta >> 16, 0);
    check_ports2(e, lo, hi);
    load_to(e, &e->a[i->d], lo, B16);
    load_to(e, &e->a[i->d + 1], hi, B16);
    e->m[i->delta] = ((delta + 2) & 0xffff) | ((delta >> 16) + 2 * (mini & 15)) << 16;
    e->m[i->off] = mini >> 4;
}
