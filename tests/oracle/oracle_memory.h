/* Loads and stores, packed addresses, control registers, branches, repeats, exits of a worker (isa 1.3
 * to 1.5, 2.4, 3.5, 3.6, B.1, B.2). */
#ifndef IPU_TESTS_ORACLE_MEMORY_H
#define IPU_TESTS_ORACLE_MEMORY_H

#include "oracle.h"

static inline uint32_t fetch_bytes(const struct oracle *s, uint32_t at, uint32_t n) {
    uint32_t v = 0;
    for (uint32_t k = n; k-- > 0;) v = v * 256 + s->memory[at - s->memory_base + k];
    return v;
}
/* `bits` of an access into register r on: 128, 64, 32 plain; 16 and 8 extended or repeated. */
static inline void load(struct oracle *s, bool m, int64_t r, uint32_t at, uint32_t bits, char how) {
    const uint32_t n = bits / 8;
    if (n >= 4) {
        for (uint32_t k = 0; k < n / 4; k++) (m ? set_m : set_a)(s, r + k, fetch_bytes(s, at + 4 * k, 4));
        return;
    }
    uint32_t v = fetch_bytes(s, at, n);
    if (how == 's' && v >= 1u << (bits - 1)) v -= 1u << bits;
    if (how == 'b') v *= n == 1 ? 0x01010101 : 0x00010001;
    (m ? set_m : set_a)(s, r, v);
}
static inline void store(struct oracle *s, uint32_t at, const uint32_t *v, uint32_t n) {
    s->store_at = at;
    s->store_bytes = n;
    memcpy(s->store, v, n);
}

/* The plain forms: ld32, lds16step, st64...; false for others. */
static inline bool plain_access(struct oracle *s, const struct step *x) {
    const char *n = x->name;
    const bool st = n[0] == 's';
    const char how = !st && (n[2] == 'z' || n[2] == 's' || n[2] == 'b') ? n[2] : ' ';
    const char *digits = n + (how == ' ' ? 2 : 3);
    char *rest;
    const uint32_t bits = (uint32_t)strtoul(digits, &rest, 10);
    const bool step = strcmp(rest, "step") == 0;
    if (bits == 0 || (*rest != 0 && !step)) return false;
    const uint32_t bytes = bits / 8, offset = value(s, x, 3) * bytes;
    const uint32_t at = s->m[x->v[1]] + s->m[x->v[2]] + (step ? 0 : offset);
    const bool m = class_of(x, 0)->file == 'M';
    if (st) {
        uint32_t v[2] = {value(s, x, 0), 0};
        if (bits == 64) v[0] = group(s, x, 0, 0), v[1] = group(s, x, 0, 1);
        store(s, at, v, bytes);
    }
    if (step) set_m(s, x->v[2], s->m[x->v[2]] + offset);
    if (!st) load(s, m, x->v[0], at, bits, how);
    return true;
}

/* --- Packed addresses. --- */

static inline void unpack(const struct oracle *s, int64_t r, uint32_t a[3]) {
    const uint64_t both = s->m[r] | (uint64_t)s->m[r + 1] << 32;
    a[0] = (uint32_t)(both % (1 << 21));
    a[1] = (uint32_t)((both >> 32) % (1 << 21));
    a[2] = (uint32_t)((both >> 21) % (1 << 11) + ((both >> 53) % (1 << 10)) * 2048);
}
static inline uint32_t moved(uint32_t at, uint32_t code, uint32_t stride, uint32_t atom) {
    int64_t steps = code == 0 ? 0 : (stride >> 10 * (code - 1)) % 1024;
    if (steps >= 512) steps -= 1024;
    return (uint32_t)((at + (code == 0 ? (int64_t)atom : 8 * steps) + (1 << 21)) % (1 << 21));
}
static inline void put_field(struct oracle *s, int64_t r, uint32_t k, uint32_t at) {
    if (k < 2) set_m(s, r + k, s->m[r + k] / (1 << 21) * (1 << 21) + at);
    if (k < 2) return;
    set_m(s, r, s->m[r] % (1 << 21) + at % 2048 * (1 << 21));
    set_m(s, r + 1, s->m[r + 1] % (1 << 21) + at / 2048 * (1 << 21));
}
static inline bool pace(struct oracle *s, const struct step *x) {
    static const struct { const char *name; uint32_t bits[2]; char second; bool stores; } ops[] = {
        {"ld2x64pace", {64, 64}, ' ', false},    {"ld64a32pace", {64, 32}, ' ', false},
        {"ld64b16pace", {64, 16}, 'b', false},   {"ldst64pace", {64, 0}, ' ', true},
        {"ld2xst64pace", {64, 64}, ' ', true},   {"st64pace", {0, 0}, ' ', true}};
    if (named(x, "tapack")) {
        const uint64_t a0 = s->m[x->v[1]] % (1 << 21), a1 = s->m[x->v[2]] % (1 << 21), a2 = s->m[x->v[3]] % (1 << 21);
        const uint64_t both = a0 + (a1 << 32) + (a2 % 2048 << 21) + (a2 / 2048 << 53);
        set_m(s, x->v[0], (uint32_t)both);
        set_m(s, x->v[0] + 1, (uint32_t)(both >> 32));
        return true;
    }
    for (uint32_t o = 0; o < ARRAY_LEN(ops); o++) {
        if (!named(x, ops[o].name)) continue;
        const uint32_t n = x->f->n_operands;
        const int64_t r = x->v[n - 3];
        const uint32_t stride = s->m[x->v[n - 2]], codes = (uint32_t)x->v[n - 1];
        const struct oracle old = *s;
        uint32_t a[3], shift = 0;
        unpack(s, r, a);
        for (uint32_t k = 0; k < 2; k++) {
            if (ops[o].bits[k] == 0) continue;
            const int64_t d = k == 0 ? x->v[0] : named(x, "ld2xst64pace") ? x->v[0] + 2 : x->v[1];
            load(s, false, d, a[k], ops[o].bits[k], ops[o].second);
            put_field(s, r, k, moved(a[k], codes >> shift & 3, stride, ops[o].bits[k] / 8));
            shift += 2;
        }
        if (!ops[o].stores) return true;
        const uint32_t source = ops[o].bits[0] == 0 ? 0 : 1;
        const uint32_t v[2] = {group(&old, x, source, 0), group(&old, x, source, 1)};
        store(s, a[2], v, 8);
        put_field(s, r, 2, moved(a[2], codes >> shift & 3, stride, 8));
        return true;
    }
    return false;
}

/* --- Loads through tables; stores with two operands. --- */

static inline bool table_access(struct oracle *s, const struct step *x) {
    static const struct { const char *name; uint32_t table, data; char how; } ops[] = {
        {"ldd16a32", 16, 32, ' '}, {"ldd16a64", 16, 64, ' '}, {"ldd16b16", 16, 16, 'b'}, {"ldd16v2a32", 32, 32, ' '}};
    const int64_t *v = x->v;
    if (named(x, "stm32") || named(x, "stm32step")) {
        const bool step = named(x, "stm32step");
        store(s, s->m[v[1]] + (step ? 0 : 4 * s->m[v[2]]), &s->m[v[0]], 4);
        if (step) set_m(s, v[1], s->m[v[1]] + 4 * s->m[v[2]]);
        return true;
    }
    const struct oracle old = *s;
    if (named(x, "ld64a32")) {
        load(s, false, v[0] + 2, old.m[v[1]], 64, ' ');
        load(s, false, v[0] + 1, old.m[v[2]] + old.m[v[3]] % 65536, 32, ' ');
        set_m(s, v[1], old.m[v[1]] + 8);
        return true;
    }
    if (named(x, "ldb16b16")) { /* lower half += 2, upper half += 2 * mini: isa C.19 */
        const uint32_t lo = old.m[v[2]] % 65536, hi = old.m[v[2]] / 65536;
        load(s, false, v[0], old.m[v[1]] + lo, 16, 'b');
        load(s, false, v[0] + 1, old.m[v[1]] + hi, 16, 'b');
        set_m(s, v[2], (lo + 2) % 65536 + (hi + 2 * (old.m[v[3]] % 16)) % 65536 * 65536);
        set_m(s, v[3], old.m[v[3]] / 16);
        return true;
    }
    for (uint32_t o = 0; o < ARRAY_LEN(ops); o++) {
        if (!named(x, ops[o].name)) continue;
        const uint32_t delta = ops[o].table == 32 ? old.m[v[3]] / 65536 : old.m[v[3]];
        load(s, false, v[0], old.m[v[2]] + delta, ops[o].data, ops[o].how);
        set_m(s, v[3], fetch_bytes(&old, old.m[v[1]], ops[o].table / 8));
        set_m(s, v[1], old.m[v[1]] + ops[o].table / 8);
        return true;
    }
    return false;
}

static inline bool oracle_memory(struct oracle *s, const struct step *x) {
    if (named(x, "tapack")) return pace(s, x);
    if (x->f->kind != ISA_KIND_MEM) return false;
    return pace(s, x) || table_access(s, x) || plain_access(s, x);
}

/* --- Control registers (isa 2.4); the fields that exist. --- */

static inline bool upper_csr(struct oracle *s, const struct step *x) {
    if (named(x, "uget")) {
        const uint32_t values[11] = {s->sts, 0, s->ctl, (uint32_t)s->prng[0], (uint32_t)(s->prng[0] >> 32),
                                     (uint32_t)s->prng[1], (uint32_t)(s->prng[1] >> 32), 0, s->tas, s->nfmt, s->scl};
        set_a(s, x->v[0], values[x->v[1]]);
        return true;
    }
    if (!named(x, "uput")) return false;
    const uint32_t v = value(s, x, 1), n = UINT32_MAX - v;
    uint32_t half[4] = {(uint32_t)s->prng[0], (uint32_t)(s->prng[0] >> 32), (uint32_t)s->prng[1], (uint32_t)(s->prng[1] >> 32)};
    switch (x->v[0]) {
    case 1:
        s->sts &= ~v | 0xfffffff8;
        if (v >> 3 & 1) memset(s->aacc, 0, sizeof s->aacc);
        break;
    case 2: s->ctl = v & 0x001f0007; break;
    case 3: case 4: case 5: case 6: half[x->v[0] - 3] = v; break;
    case 7:
        half[0] = v;
        half[1] = n;
        half[2] = (v << 13) | (n >> 19);
        half[3] = (n << 13) | (v >> 19);
        break;
    case 8: s->tas = v; break;
    case 9: s->nfmt = v & 3; break;
    case 10: s->scl = v & 63; break;
    default: return false;
    }
    s->prng[0] = half[0] | (uint64_t)half[1] << 32;
    s->prng[1] = half[2] | (uint64_t)half[3] << 32;
    return true;
}
static inline bool lower_csr(struct oracle *s, const struct step *x) {
    if (named(x, "put")) {
        if (x->v[0] == 0x70) s->dbg_data = value(s, x, 1);
        if (x->v[0] == 0x71) s->dbg_brk_id = value(s, x, 1) & 1;
        return x->v[0] == 0x70 || x->v[0] == 0x71;
    }
    if (!named(x, "get")) return false;
    switch (x->v[1]) {
    case 0x00: set_m(s, x->v[0], s->pc); break;
    case 0x01: set_m(s, x->v[0], s->wsr); break;
    case 0x02: set_m(s, x->v[0], s->m[13]); break;
    case 0x03: set_m(s, x->v[0], s->m[12]); break;
    case 0x04: set_m(s, x->v[0], s->count); break;
    case 0x05: set_m(s, x->v[0], s->first); break;
    case 0x06: set_m(s, x->v[0], s->end); break;
    case 0x60: set_m(s, x->v[0], s->cycle); break;
    case 0x61: set_m(s, x->v[0], 0); break;
    case 0x70: set_m(s, x->v[0], s->dbg_data); break;
    case 0x71: set_m(s, x->v[0], s->dbg_brk_id); break;
    default: return false;
    }
    return true;
}

/* --- Branches, repeats, exits; npc is the next address already. --- */

static inline bool condition(const char *name, uint32_t v) {
    if (g_str_has_suffix(name, "nz")) return v != 0;
    if (g_str_has_suffix(name, "z")) return v == 0;
    if (g_str_has_suffix(name, "neg")) return v >= 0x80000000u;
    return v < 0x80000000u; /* pos: zero counts */
}
static inline bool oracle_control(struct oracle *s, const struct step *x) {
    if (named(x, "br")) {
        s->npc = value(s, x, 0);
    } else if (named(x, "bri")) {
        s->npc = (uint32_t)x->v[0];
    } else if (named(x, "call")) {
        const uint32_t back = s->npc;
        s->npc = (uint32_t)x->v[1] % (1 << 21);
        set_m(s, x->v[0], back);
    } else if (named(x, "brnzdec")) {
        const uint32_t v = value(s, x, 0);
        if (v != 0) s->npc = (uint32_t)x->v[1];
        if (v != 0) set_m(s, x->v[0], v - 1);
    } else if (starts(x, "br")) {
        if (condition(x->name, value(s, x, 0))) s->npc = (uint32_t)x->v[1];
    } else if (starts(x, "exit")) {
        s->exited = true;
        s->boolean = condition(x->name, value(s, x, 0));
    } else if (named(x, "rpt")) {
        s->count = value(s, x, 0) % 65536;
        s->first = s->npc;
        s->end = s->npc + 8 * ((uint32_t)x->v[1] + 1);
        if (s->count == 0) s->npc = s->end;
    } else {
        return upper_csr(s, x) || lower_csr(s, x);
    }
    return true;
}

#endif
