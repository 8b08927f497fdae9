/* Random states and instructions for the oracle: edge values in every register, operands that mean
 * something, addresses that can be used. Draws are counted, so that a seed gives one sequence. */
#ifndef IPU_TESTS_ORACLE_MAKE_H
#define IPU_TESTS_ORACLE_MAKE_H

#include "oracle.h"

/* Data: two windows far apart, so that accesses of one instruction meet in no memory element. */
enum { LOW = 0x90000, HIGH = 0xb0000, WINDOW = 0x2000, SPAN = HIGH - LOW + WINDOW };

/* --- Random values. --- */

static uint64_t seed, draws;
static bool window;           /* the matrix unit's model B */
static const uint8_t *memory; /* from LOW on */
static uint64_t any(void) { return rand_u64(seed, 77, draws++); }
static uint32_t below(uint32_t n) { return (uint32_t)(any() % n); }
static bool chance(uint32_t n) { return below(n) == 0; }

static const uint32_t EDGE_WORDS[] = {0, 1, 2, 31, 32, 33, 63, 0xff, 0x7fff, 0x8000, 0xffff, 0x10000,
                                      0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x10001};
static const uint32_t EDGE_SINGLES[] = {
    0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x3f800000, 0xbf800000,
    0x3f800001, 0x3f000000, 0x3fc00000, 0x40200000, 0xc0200000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
    0x7fc00000, 0xffc00000, 0x7f800001, 0x477fe000, 0x477fefff, 0x477ff000, 0xc77ff001, 0x33000000, 0x33000001,
    0x33800000, 0x387fffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x4effffff, 0x3effffff, 0x4b000001};
static const uint16_t EDGE_HALVES[] = {0, 0x8000, 1, 0x8001, 0x3ff, 0x83ff, 0x400, 0x8400, 0x3c00, 0xbc00,
                                       0x3c01, 0x3800, 0x3e00, 0x4100, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00,
                                       0xfe00, 0x7c01, 0x7a00, 0x5b80, 0x5bc0, 0x5c00, 0x1400, 0x1200, 0x8c00};
#define PICK(table) ((table)[below(ARRAY_LEN(table))])

static uint32_t some_half(void) {
    switch (below(4)) {
    case 0: return PICK(EDGE_HALVES);
    case 1: return (uint32_t)any() & 0xffff;
    default: return half_nearest(ldexp((double)rand_normal(seed, 78, draws++), (int)below(9) - 4));
    }
}
static uint32_t some_single(void) {
    switch (below(5)) {
    case 0: return PICK(EDGE_SINGLES);
    case 1: return (uint32_t)any();
    default: return bits_of(ldexpf(rand_normal(seed, 79, draws++), (int)below(40) - 20));
    }
}
static uint32_t some_word(void) {
    switch (below(6)) {
    case 0: return PICK(EDGE_WORDS);
    case 1: return (uint32_t)any();
    case 2:
    case 3: return some_single();
    default: return some_half() | some_half() << 16;
    }
}

/* A worker's state. Every second one has the usual modes, in which vector code may run. */
static void state_make(struct oracle *s) {
    *s = (struct oracle){.memory = memory, .memory_base = LOW, .slots = 1, .window = window};
    for (uint32_t r = 0; r < 12; r++) s->m[r] = chance(2) ? PICK(EDGE_WORDS) : (uint32_t)any();
    for (uint32_t r = 0; r < 8; r++) s->a[r] = some_word();
    const bool tame = chance(2), raw = !tame && chance(3); /* raw: what f16v4istacc may leave */
    for (uint32_t k = 0; k < 32; k++) {
        const uint32_t v = tame ? bits_of(rand_normal(seed, 80, draws++)) : some_single();
        s->aacc[k] = raw ? v : bits_of(flushed(f32_of(v)));
    }
    for (uint32_t k = 0; k < 64; k++) s->cwei[k] = chance(3) ? some_word() | (uint64_t)some_word() << 32 : any();
    for (uint32_t k = 0; k < 64 && tame; k++)
        s->cwei[k] = (any() & 0x3fff3fff3fff3fff) | (any() & 0x8000800080008000);
    if (!chance(2)) s->ctl = below(5) << 16 | (uint32_t)chance(3) << 19 | (uint32_t)chance(2) << 20;
    if (chance(4)) s->ctl |= below(8); /* exceptions enabled */
    s->nfmt = below(4);
    s->scl = below(64);
    s->tas = some_word();
    s->sts = s->ctl & 7 ? 0 : below(8);
    s->prng[0] = any();
    s->prng[1] = any();
    s->m[12] = 0x5c000 + 8 * below(100);
    s->m[13] = 0x60000 + 4 * below(100);
    s->dbg_data = (uint32_t)any();
}

/* --- Random operands. --- */

static int64_t some_register(const struct isa_class_info *c, bool destination) {
    const uint32_t kept = c->file == 'M' ? 12 : 8, choices = (c->last + 1u) / c->n;
    if (!chance(8)) return below(kept / c->n) * c->n;
    if (c->file == 'A') return below(choices) * c->n; /* zeros and those that do not exist */
    const int64_t other = 12 + below(4);              /* $m12, $m13, $m14, $m15 */
    return c->last < 15 || (!destination && other == 14) ? c->last / c->n * c->n : other;
}
static int64_t some_immediate(const struct isa_operand *o) {
    int64_t min, max;
    isa_operand_range(o, &min, &max);
    const char file = isa_classes[o->class].file;
    const int64_t unit = file == 'W' ? 4 : file == 'T' ? 1 << 20 : 1, n = (max - min) / unit + 1;
    const uint64_t r = chance(4) ? (chance(2) ? 0 : (uint64_t)n - 1) : any() % (uint64_t)n;
    return min + (int64_t)r * unit;
}
/* Flags and selectors that mean something. */
static int64_t some_flags(const struct step *x) {
    static const uint8_t amp[] = {0, 1, 2, 3, 8, 9, 16}, f32[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18};
    if (ends(x, "slic")) return below(8) + (named(x, "f32sisoslic") ? 8 * below(2) : 0);
    if (ends(x, "amp")) return starts(x, "f32") ? PICK(f32) : PICK(amp);
    if (ends(x, "stacc")) return below(2);
    return named(x, "f32int") ? below(5) : below(256);
}
static int64_t some_csr(const struct step *x) {
    static const uint8_t lower[] = {0, 1, 2, 3, 4, 5, 6, 0x60, 0x61, 0x70, 0x71};
    if (named(x, "get")) return PICK(lower);
    if (named(x, "put")) return 0x70 + below(2);
    return named(x, "uput") ? 1 + below(10) : below(11);
}
static void operands_make(struct step *x) {
    for (uint32_t k = 0; k < x->f->n_operands; k++) {
        const struct isa_operand *o = &x->f->operand[k];
        const struct isa_class_info *c = &isa_classes[o->class];
        x->v[k] = c->reg                                        ? some_register(c, isa_roles[o->role].write)
                  : o->role == ISA_ROLE_CSR                     ? some_csr(x)
                  : c->file == 'E'                              ? some_flags(x)
                  : named(x, "f32v2gina") || named(x, "f16v2gina") ? below(4)
                                                                : some_immediate(o);
    }
    if (named(x, "f32sisoslic") && x->v[3] & ISA_SLIC_UPPER) x->v[2] = 14; /* its partial must be zero */
}
/* A value for $FP_CTL: modes that exist. */
static void value_make(struct oracle *s, const struct step *x) {
    if (!named(x, "uput") || x->v[0] != ISA_CSR_FP_CTL || x->v[1] >= 8) return;
    s->a[x->v[1]] = (s->a[x->v[1]] & ~0x70000u) | below(5) << 16;
}

/* --- Accesses: registers are given addresses that can be used. --- */

static uint32_t place(uint32_t area, uint32_t align) { return area + below((WINDOW - 0x800) / align) * align + 0x400; }

static bool distinct(const struct step *x) {
    uint32_t used = 0;
    for (uint32_t k = 0; k < x->f->n_operands; k++) {
        const struct isa_class_info *c = class_of(x, k);
        if (!c->reg || c->file != 'M') continue;
        const uint32_t bits = ((1u << c->n) - 1) << x->v[k];
        if (used & bits & 0xfff) return false;
        used |= bits;
    }
    return true;
}
/* base + delta + offset: what of them is a general register shares the address. */
static bool plain_addresses(struct oracle *s, struct step *x) {
    const uint32_t bytes = x->f->access[0].bytes, at = place(LOW, bytes < 4 ? 4 : bytes);
    const int64_t base = x->v[1], delta = x->v[2];
    const bool step = strstr(x->name, "step") != NULL;
    if (base >= 12 && delta >= 12) return false;
    const uint32_t part = below(32) * bytes * 4, with_delta = delta >= 12 ? s->m[delta] : base >= 12 ? at - s->m[base] : part;
    if (class_of(x, 3)->reg && x->v[3] < 12) s->m[x->v[3]] = step ? below(64) - 32 : below(16);
    if (class_of(x, 3)->reg && x->v[3] >= 12 && x->v[3] != 15) return false;
    if (!class_of(x, 3)->reg && !step) x->v[3] = below(24);
    if (delta < 12) s->m[delta] = with_delta;
    if (base < 12) s->m[base] = at - s->m[delta];
    const uint32_t sum = s->m[base] + s->m[delta];
    return s->m[base] < 1 << 21 && s->m[delta] < 1 << 21 && sum == at;
}
static bool table_addresses(struct oracle *s, struct step *x) {
    if (named(x, "stm32") || named(x, "stm32step")) {
        if (x->v[1] >= 12) return false;
        s->m[x->v[1]] = place(LOW, 4);
        if (x->v[2] < 12) s->m[x->v[2]] = below(32);
        return x->v[2] < 12 || x->v[2] == 15;
    }
    const bool pair = named(x, "ldb16b16");
    const int64_t base = x->v[pair ? 1 : 2], delta = x->v[pair ? 2 : 3], addr = x->v[1];
    if (base >= 12 || delta >= 12) return false;
    s->m[base] = place(LOW, 16);
    if (pair) {
        if (x->v[3] >= 12) return false;
        s->m[delta] = 16 * below(8) | (16 * below(8) + 8) << 16; /* the two halves of the memory pair */
        return true;
    }
    s->m[delta] = 16 * below(16);
    if (named(x, "ldd16v2a32")) s->m[delta] = (s->m[delta] << 16) | below(65536);
    if (named(x, "ld64a32")) s->m[delta] |= below(65536) << 16;
    s->m[addr] = place(HIGH, 8);
    return true;
}
static bool pace_addresses(struct oracle *s, struct step *x) {
    const uint32_t n = x->f->n_operands;
    if (named(x, "tapack")) return true;
    const uint32_t third = place(0xa0000, 16) + 8;
    uint64_t both = place(LOW, 8) | (uint64_t)place(HIGH, 8) << 32;
    both |= (uint64_t)(third & 0x7ff) << 21 | (uint64_t)(third >> 11) << 53;
    s->m[x->v[n - 3]] = (uint32_t)both;
    s->m[x->v[n - 3] + 1] = (uint32_t)(both >> 32);
    if (n < 5) return true;
    const uint32_t width = class_of(x, 0)->n; /* two destinations: they must differ */
    return !isa_roles[x->f->operand[1].role].write || x->v[1] + class_of(x, 1)->n <= x->v[0] || x->v[1] >= x->v[0] + width;
}
static bool addresses_make(struct oracle *s, struct step *x) {
    if (x->f->kind != ISA_KIND_MEM) return true;
    if (!distinct(x)) return false;
    if (strstr(x->name, "pack") != NULL || strstr(x->name, "pace") != NULL) return pace_addresses(s, x);
    const bool table = starts(x, "stm") || starts(x, "ldd") || named(x, "ld64a32") || named(x, "ldb16b16");
    return table ? table_addresses(s, x) : plain_addresses(s, x);
}

#endif
