/* Loops of the matrix unit: every bundle is { transfers of 64 bits ; AMP with four engines and two
 * sets }. Addresses only move by constants, so each stream of accesses covers, over all passes, an
 * interval that is known before the first pass. All checks of plain execution are made on intervals:
 * alignment, range, words never written, allocation, executable second address, distinct elements of
 * a bundle, data apart from the code. Where an interval does not allow to tell, the loop is not run
 * here: the plain code is the judge. */
#include "tile/tile_amp.h"
#include "tile/tile_fused.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_SLOTS = 64, MAX_POINTERS = 4, ADDRESS_MASK = 0x1fffff };

/* A pointer of the program: a pair of packed addresses (three streams) or base + delta (one). */
struct pointer {
    bool packed;
    uint8_t reg, base; /* first of the pair; or delta and base */
    uint8_t stream;
};
/* Where the step of an access comes from. */
enum step_kind { STEP_ATOM, STEP_FIELD, STEP_IMM, STEP_REG };
struct step {
    uint8_t kind, reg, field; /* FIELD: 10-bit field of the stride register; REG: register times 8 */
    int32_t imm;
};
struct access_plan {
    uint8_t stream, pair;
    struct step step;
};
struct slot_plan {
    uint8_t kind, x, partial, result, phase;
    struct access_plan load[2], store;
    bool second; /* load[1] is the second address: not executable */
};
struct tile_amp_loop {
    uint32_t n, n_streams, n_pointers;
    bool f8;
    uint32_t phases; /* bit per phase that occurs */
    struct pointer pointer[MAX_POINTERS];
    struct slot_plan slot[MAX_SLOTS];
};

/* --- Making the plan. --- */

static uint8_t pair_read(uint32_t reg) { return (uint8_t)(reg < 8 ? reg / 2 : TILE_PAIR_ZERO); }
static uint8_t pair_write(uint32_t reg) { return (uint8_t)(reg < 8 ? reg / 2 : TILE_PAIR_SINK); }

/* The pointer with this register, made if new; NULL when it clashes or there are too many. */
static struct pointer *pointer_get(struct tile_amp_loop *l, bool packed, uint32_t reg,
                                   uint32_t base) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        struct pointer *p = &l->pointer[i];
        if (p->reg != reg) continue;
        return p->packed == packed && p->base == base ? p : NULL;
    }
    const uint32_t streams = packed ? 3 : 1;
    if (l->n_pointers == MAX_POINTERS || l->n_streams + streams > TILE_FUSED_STREAMS) return NULL;
    struct pointer *p = &l->pointer[l->n_pointers++];
    *p = (struct pointer){packed, (uint8_t)reg, (uint8_t)base, (uint8_t)l->n_streams};
    l->n_streams += streams;
    return p;
}

static struct step code_step(uint32_t code, uint32_t reg) {
    if (code == 0) return (struct step){.kind = STEP_ATOM};
    return (struct step){.kind = STEP_FIELD, .reg = (uint8_t)reg, .field = (uint8_t)(10 * (code - 1))};
}

static bool plan_pace(struct tile_amp_loop *l, struct slot_plan *s, const struct isa_insn *i) {
    const struct pointer *p = pointer_get(l, true, i->addr, 0);
    if (p == NULL) return false;
    const uint32_t code = (uint32_t)i->imm, st = i->off;
    const struct access_plan a0 = {p->stream, pair_write(i->d), code_step(code & 3, st)};
    const struct access_plan a1 = {(uint8_t)(p->stream + 1),
                                   pair_write(i->op == ISA_OP_LD2X64PACE ? i->d1
                                              : i->d < 8                 ? i->d + 2u
                                                                         : 8),
                                   code_step(code >> 2 & 3, st)};
    const uint32_t shift = i->op == ISA_OP_LD2XST64PACE ? 4 : i->op == ISA_OP_LDST64PACE ? 2 : 0;
    const struct access_plan a2 = {(uint8_t)(p->stream + 2), pair_read(i->s0),
                                   code_step(code >> shift & 3, st)};
    s->load[0] = a0;
    s->load[1] = a1;
    s->store = a2;
    switch (i->op) {
    case ISA_OP_LD2X64PACE: s->kind = TILE_FUSED_LL; break;
    case ISA_OP_LD2XST64PACE: s->kind = TILE_FUSED_LLS; break;
    case ISA_OP_LDST64PACE: s->kind = TILE_FUSED_LS; break;
    default: s->kind = TILE_FUSED_S; break;
    }
    s->second = s->kind == TILE_FUSED_LL || s->kind == TILE_FUSED_LLS;
    return s->kind != TILE_FUSED_LL || a0.pair != a1.pair || a0.pair == TILE_PAIR_SINK;
}

static bool plan_step(struct tile_amp_loop *l, struct slot_plan *s, const struct isa_insn *i,
                      bool store, bool from_register) {
    const struct pointer *p = pointer_get(l, false, i->delta, i->base);
    if (p == NULL) return false;
    struct access_plan a = {.stream = p->stream};
    a.pair = store ? pair_read(i->s0) : pair_write(i->d);
    a.step = from_register ? (struct step){.kind = STEP_REG, .reg = i->off}
                           : (struct step){.kind = STEP_IMM, .imm = i->imm * 8};
    s->kind = store ? TILE_FUSED_S : TILE_FUSED_L;
    *(store ? &s->store : &s->load[0]) = a;
    return true;
}

static bool plan_main(struct tile_amp_loop *l, struct slot_plan *s, const struct isa_insn *i) {
    switch (i->op) {
    case ISA_OP_LD2X64PACE:
    case ISA_OP_LD2XST64PACE:
    case ISA_OP_LDST64PACE:
    case ISA_OP_ST64PACE: return plan_pace(l, s, i);
    case ISA_OP_LD64STEP_S: return plan_step(l, s, i, false, false);
    case ISA_OP_LD64STEP_R: return plan_step(l, s, i, false, true);
    case ISA_OP_ST64STEP_S: return plan_step(l, s, i, true, false);
    case ISA_OP_ST64STEP_R: return plan_step(l, s, i, true, true);
    case ISA_OP_SETZI_M: s->kind = TILE_FUSED_NONE; return i->d == TILE_SINK;
    default: return false;
    }
}

static bool plan_aux(struct tile_amp_loop *l, struct slot_plan *s, const struct isa_insn *i,
                     uint32_t k) {
    const bool f8 = i->op == ISA_OP_F8V8HIHOV4AMP;
    if ((!f8 && i->op != ISA_OP_F16V4HIHOV4AMP) || (k > 0 && l->f8 != f8) || i->imm > 3) return false;
    l->f8 = f8;
    l->phases |= 1u << i->imm;
    s->x = pair_read(i->s0);
    s->partial = pair_read(i->s1);
    s->result = pair_write(i->d);
    s->phase = (uint8_t)i->imm;
    return true;
}

/* True when a pointer register is also read as base or stride, or by another pointer. */
static bool registers_clash(const struct tile_amp_loop *l) {
    uint32_t moving = 0, fixed = 0;
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct pointer *p = &l->pointer[i];
        const uint32_t mine = (p->packed ? 3u : 1u) << p->reg;
        if (moving & mine) return true;
        moving |= mine;
        if (!p->packed) fixed |= 1u << p->base;
    }
    for (uint32_t k = 0; k < l->n; k++) {
        const struct slot_plan *s = &l->slot[k];
        const struct step *steps[3] = {&s->load[0].step, &s->load[1].step, &s->store.step};
        for (uint32_t j = 0; j < 3; j++)
            if (steps[j]->kind == STEP_FIELD || steps[j]->kind == STEP_REG)
                fixed |= 1u << steps[j]->reg;
    }
    return (moving & fixed & 0x0fff) != 0;
}

struct tile_amp_loop *tile_amp_loop_make(const struct tile_slot *slots, uint32_t n) {
    if (n > TILE_FUSED_MAX) return NULL;
    struct tile_amp_loop *l = g_new0(struct tile_amp_loop, 1);
    l->n = n;
    bool ok = true;
    for (uint32_t k = 0; ok && k < n; k++)
        ok = plan_aux(l, &l->slot[k], &slots[k].ai, k) && plan_main(l, &l->slot[k], &slots[k].mi);
    if (ok && !registers_clash(l)) return l;
    g_free(l);
    return NULL;
}

/* --- Intervals. --- */

/* A stream over all passes: its accesses of one pass lie at start + offset, each pass moves it by
 * `total`. first..end covers every byte. */
struct stream {
    int64_t start, at, total, low, high; /* low, high: offsets of one pass */
    bool used, loads, stores;
    int64_t first, end;
};

static bool has_loads(uint32_t kind) { return kind != TILE_FUSED_NONE && kind != TILE_FUSED_S; }
static bool has_second(uint32_t kind) { return kind == TILE_FUSED_LL || kind == TILE_FUSED_LLS; }
static bool has_store(uint32_t kind) {
    return kind == TILE_FUSED_S || kind == TILE_FUSED_LS || kind == TILE_FUSED_LLS;
}

static int32_t step_bytes(const struct tile_exec *e, const struct step *s) {
    switch ((enum step_kind)s->kind) {
    case STEP_ATOM: return 8;
    case STEP_FIELD: return (int32_t)(e->m[s->reg] << (22 - s->field)) >> 22 << 3;
    case STEP_IMM: return s->imm;
    case STEP_REG: return (int32_t)(e->m[s->reg] * 8);
    }
    return 0;
}

static void stream_start(const struct tile_exec *e, const struct tile_amp_loop *l,
                         struct stream *s) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct pointer *p = &l->pointer[i];
        if (!p->packed) {
            s[p->stream].start = (int64_t)e->m[p->base] + e->m[p->reg];
            continue;
        }
        const uint32_t p0 = e->m[p->reg], p1 = e->m[p->reg + 1];
        s[p->stream].start = p0 & ADDRESS_MASK;
        s[p->stream + 1].start = p1 & ADDRESS_MASK;
        s[p->stream + 2].start = (p0 >> 21 | p1 >> 21 << 11) & ADDRESS_MASK;
    }
}

static void stream_access(const struct tile_exec *e, struct stream *streams,
                          const struct access_plan *p, bool store,
                          struct tile_fused_access *ret) {
    struct stream *s = &streams[p->stream];
    if (!s->used || s->at < s->low) s->low = s->at;
    if (!s->used || s->at > s->high) s->high = s->at;
    s->used = true;
    *(store ? &s->stores : &s->loads) = true;
    *ret = (struct tile_fused_access){p->stream, p->pair, step_bytes(e, &p->step)};
    s->at += ret->step;
}

/* One pass over the plan: steps as numbers, offsets of the streams. */
static void streams_walk(const struct tile_exec *e, const struct tile_amp_loop *l,
                         struct stream *streams, struct tile_fused_slot *out) {
    for (uint32_t k = 0; k < l->n; k++) {
        const struct slot_plan *s = &l->slot[k];
        out[k] = (struct tile_fused_slot){.kind = s->kind, .x = s->x, .partial = s->partial,
                                          .result = s->result, .phase = s->phase};
        if (has_loads(s->kind)) stream_access(e, streams, &s->load[0], false, &out[k].load[0]);
        if (has_second(s->kind)) stream_access(e, streams, &s->load[1], false, &out[k].load[1]);
        if (has_store(s->kind)) stream_access(e, streams, &s->store, true, &out[k].store);
    }
}

static void stream_interval(struct stream *s, uint64_t passes) {
    const int64_t move = s->total * (int64_t)(passes - 1);
    s->first = s->start + s->low + (move < 0 ? move : 0);
    s->end = s->start + s->high + 8 + (move > 0 ? move : 0);
}

/* Ports lie apart when the intervals touch no common element. Region 0 elements are 16 KiB, a pair
 * of region 1 is 32 KiB. */
static bool elements_apart(const struct stream *a, const struct stream *b) {
    const uint32_t a0 = target_element((uint32_t)a->first), a1 = target_element((uint32_t)a->end - 1);
    const uint32_t b0 = target_element((uint32_t)b->first), b1 = target_element((uint32_t)b->end - 1);
    return a1 < b0 || b1 < a0;
}

/* Two accesses of one bundle, at these offsets: also apart when both stay in region 1 and always lie
 * in different halves of an interleaved pair. */
static bool accesses_apart(const struct stream *a, int64_t oa, const struct stream *b, int64_t ob) {
    if (elements_apart(a, b)) return true;
    return a->first >= TARGET_REGION1_BASE && b->first >= TARGET_REGION1_BASE &&
           (((a->start + oa) ^ (b->start + ob)) & 8) != 0 && (a->total - b->total) % 16 == 0;
}

static bool slots_apart(const struct tile_amp_loop *l, const struct stream *streams,
                        const struct tile_fused_slot *out) {
    int64_t at[TILE_FUSED_STREAMS] = {0};
    for (uint32_t k = 0; k < l->n; k++) {
        const struct tile_fused_access *used[3];
        uint32_t n = 0;
        if (has_loads(out[k].kind)) used[n++] = &out[k].load[0];
        if (has_second(out[k].kind)) used[n++] = &out[k].load[1];
        if (has_store(out[k].kind)) used[n++] = &out[k].store;
        for (uint32_t i = 0; i < n; i++)
            for (uint32_t j = 0; j < i; j++) {
                const uint32_t si = used[i]->stream, sj = used[j]->stream;
                if (!accesses_apart(&streams[si], at[si], &streams[sj], at[sj])) return false;
            }
        for (uint32_t i = 0; i < n; i++) at[used[i]->stream] += used[i]->step;
    }
    return true;
}

static bool stream_ok(const struct tile_exec *e, const struct stream *s, bool *io_all_written) {
    const struct tile *t = e->t;
    if (s->start % 8 != 0 || s->first < TARGET_SRAM_BASE || s->end > TARGET_SRAM_END) return false;
    const uint32_t first = (uint32_t)s->first, bytes = (uint32_t)(s->end - s->first);
    const uint32_t code0 = target_element(e->w->repeat_first), code1 = target_element(e->w->repeat_end - 1);
    if (target_element(first) <= code1 && target_element(first + bytes - 1) >= code0) return false;
    const bool written = sram_first_unwritten(t->sram, t->n, first, bytes) == UINT32_MAX;
    if (s->loads && !written) return false;
    if (s->stores && t->writable != NULL)
        for (uint32_t w = (first - TARGET_SRAM_BASE) / 4; w < (first - TARGET_SRAM_BASE + bytes) / 4; w++)
            if ((t->writable[w / 64] >> w % 64 & 1) == 0) return false;
    if (s->stores && !written) *io_all_written = false;
    return true;
}

static bool second_ok(const struct tile_amp_loop *l, const struct stream *streams) {
    for (uint32_t k = 0; k < l->n; k++)
        if (l->slot[k].second && streams[l->slot[k].load[1].stream].first < TARGET_REGION1_BASE)
            return false;
    return true;
}

static bool loop_ok(const struct tile_exec *e, const struct tile_amp_loop *l,
                    struct stream *streams, const struct tile_fused_slot *out, uint64_t passes,
                    bool *ret_all_written) {
    *ret_all_written = true;
    for (uint32_t i = 0; i < l->n_streams; i++) {
        if (!streams[i].used) continue;
        stream_interval(&streams[i], passes);
        if (!stream_ok(e, &streams[i], ret_all_written)) return false;
    }
    return second_ok(l, streams) && slots_apart(l, streams, out);
}

/* --- Running. --- */

static bool sums_plain(const struct tile_accumulators *acc) {
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t both[2] = {num_f32_bits(acc->even[k]), num_f32_bits(acc->odd[k])};
        for (uint32_t j = 0; j < 2; j++)
            if (both[j] != num_f32_bits(num_f32_flush(num_f32_from_bits(both[j]))) ||
                both[j] == NUM_F32_NAN)
                return false;
    }
    return true;
}

static bool state_ok(const struct tile_exec *e, const struct tile_amp_loop *l) {
    for (uint32_t p = 0; p < 4; p++) {
        const uint64_t words = UINT64_C(0x1111111111111111) << p;
        if ((l->phases >> p & 1) && (e->t->weights_defined & words) != words) return false;
    }
    return e->w->acc_defined == UINT32_MAX && sums_plain(&e->w->acc);
}

static void pointers_back(struct tile_exec *e, const struct tile_amp_loop *l,
                          const struct tile_fused_run *r) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct pointer *p = &l->pointer[i];
        uint32_t a[3];
        for (uint32_t k = 0; k < (p->packed ? 3 : 1); k++)
            a[k] = (uint32_t)(r->pointer[p->stream + k] - r->memory) + TARGET_SRAM_BASE;
        if (!p->packed) {
            e->m[p->reg] = a[0] - e->m[p->base];
            continue;
        }
        for (uint32_t k = 0; k < 3; k++) a[k] &= ADDRESS_MASK;
        e->m[p->reg] = a[0] | a[2] << 21;
        e->m[p->reg + 1] = a[1] | (a[2] >> 11) << 21;
    }
}

static void prepare(struct tile_exec *e, const struct tile_amp_loop *l, const struct stream *streams,
                    struct tile_fused_run *r) {
    struct tile *t = e->t;
    r->acc = &e->w->acc;
    r->n_slots = l->n;
    for (uint32_t k = 0; k < 4; k++) r->pairs[k] = e->a[2 * k] | (uint64_t)e->a[2 * k + 1] << 32;
    r->memory = t->bytes;
    for (uint32_t i = 0; i < l->n_streams; i++)
        r->pointer[i] = t->bytes + (streams[i].start - TARGET_SRAM_BASE);
    r->inputs = l->f8 ? 8 : 4;
    if (!l->f8) {
        r->w = tile_weights_f16(t)->f16[0][0];
        return;
    }
    r->w = tile_weights_f8(t, (enum num_f8_format)(e->w->fp_nfmt & 1))->f8[0][0];
    r->f8_values = tile_f8_values((enum num_f8_format)(e->w->fp_nfmt >> 1 & 1));
    r->scale = ldexp(1, (int32_t)(e->w->fp_scl << 26) >> 26);
}

uint64_t tile_amp_loop_run(struct tile_exec *e, const struct tile_amp_loop *l, uint64_t passes) {
    struct stream streams[TILE_FUSED_STREAMS] = {0};
    struct tile_fused_slot slots[TILE_FUSED_MAX];
    bool all_written = false;
    if (!state_ok(e, l)) return 0;
    stream_start(e, l, streams);
    streams_walk(e, l, streams, slots);
    for (uint32_t i = 0; i < l->n_streams; i++) streams[i].total = streams[i].at;
    /* The last passes may read ahead into words that were never written: those are for the plain code. */
    uint32_t cut = 0;
    while (cut < 3 && passes > cut && !loop_ok(e, l, streams, slots, passes - cut, &all_written)) cut++;
    if (cut == 3 || passes <= cut) return 0;
    struct tile_fused_run r = {.slots = slots};
    prepare(e, l, streams, &r);
    if (!all_written) r.written = e->t->written;
    const uint64_t done = (l->f8 ? e->vec->loop_f8 : e->vec->loop_f16)(&r, passes - cut);
    for (uint32_t k = 0; k < 4; k++) {
        e->a[2 * k] = (uint32_t)r.pairs[k];
        e->a[2 * k + 1] = (uint32_t)(r.pairs[k] >> 32);
    }
    pointers_back(e, l, &r);
    return done;
}
