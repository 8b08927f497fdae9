/* Loops of the matrix unit: every bundle is { transfers of 64 bits ; AMP with four engines and two
 * sets }. Addresses only move by constants, so each stream of accesses covers, over all passes, an
 * interval that is known before the first pass. All checks of plain execution are made on
 * intervals: alignment, range, words never written, allocation, executable second address, distinct
 * elements of a bundle, data apart from the code. Where an interval does not allow to tell, the
 * loop is not run here: the plain code is the judge. */
#include "tile/tile_amp.h"
#include "tile/tile_fused.h"

enum { MAX_POINTERS = 4, ADDRESS_MASK = 0x1fffff, ELEMENT_SHIFT = 14 };
_Static_assert(TARGET_ELEMENT_BYTES == 1 << ELEMENT_SHIFT &&
                   TARGET_SRAM_BASE % TARGET_ELEMENT_BYTES == 0 &&
                   TARGET_REGION1_BASE % TARGET_ELEMENT_PAIR_BYTES == 0 &&
                   TARGET_ELEMENT_PAIR_BYTES == 2 << ELEMENT_SHIFT,
               "elements are address bits");

/* A pointer of the program: a pair of packed addresses (three streams) or base + delta (one). */
struct pointer {
    bool packed;
    uint8_t reg, base; /* first of the pair; or delta and base */
    uint8_t stream;
};
/* Where the step of an access comes from. */
enum step_kind { STEP_ATOM, STEP_FIELD, STEP_IMM, STEP_REG };
struct step {
    uint8_t kind, reg,
        field; /* FIELD: 10-bit field of the stride register; REG: register times 8 */
    int32_t imm;
};
struct access_plan {
    uint8_t stream, pair;
    struct step step;
};
struct slot_plan {
    uint8_t kind, x, partial, result, phase;
    struct access_plan load[2], store;
};
/* A stream in one pass: offsets of its accesses from where the pass starts, and how far it moves.
 */
struct stream {
    int32_t at, total, low, high;
    bool used, loads, stores;
};
/* Two streams accessed in one bundle: parities (1 even, 2 odd) of the atoms between their offsets.
 */
struct meeting {
    uint8_t a, b, parities;
};
enum { MAX_STRIDES = 4, MAX_MEETINGS = 24, MAX_MOTIONS = 4 };

/* What follows from the values of the stride registers; a few are kept: workers differ. */
struct motion {
    bool possible;
    uint32_t regular;
    uint32_t stride_value[MAX_STRIDES];
    struct stream stream[TILE_FUSED_STREAMS];
    struct tile_fused_slot out[TILE_FUSED_MAX];
    uint32_t n_meetings;
    struct meeting meeting[MAX_MEETINGS];
};

struct tile_amp_loop {
    uint32_t n, n_streams, n_pointers, n_strides;
    bool f8;
    uint64_t weights; /* bit per word of weights that is used, as in struct tile */
    struct pointer pointer[MAX_POINTERS];
    uint8_t stride[MAX_STRIDES]; /* registers that steps depend on */
    struct slot_plan slot[TILE_FUSED_MAX];
    uint8_t f143_base; /* tile_f143.h: of the left operands that came last */
    uint32_t second;   /* bit per stream that holds second addresses */
    uint32_t n_motions, next_motion;
    struct motion motion[MAX_MOTIONS];
};

/* --- Making the plan. --- */

static bool has_loads(uint32_t kind) {
    return kind != TILE_FUSED_NONE && kind != TILE_FUSED_S;
}
static bool has_second(uint32_t kind) {
    return kind == TILE_FUSED_LL || kind == TILE_FUSED_LLS;
}
static bool has_store(uint32_t kind) {
    return kind == TILE_FUSED_S || kind == TILE_FUSED_LS || kind == TILE_FUSED_LLS;
}

static uint8_t pair_read(uint32_t reg) {
    return (uint8_t)(reg < 8 ? reg / 2 : TILE_PAIR_ZERO);
}
static uint8_t pair_write(uint32_t reg) {
    return (uint8_t)(reg < 8 ? reg / 2 : TILE_PAIR_SINK);
}

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
    return (struct step){
        .kind = STEP_FIELD, .reg = (uint8_t)reg, .field = (uint8_t)(10 * (code - 1))};
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
    case ISA_OP_LD2X64PACE:
        s->kind = TILE_FUSED_LL;
        break;
    case ISA_OP_LD2XST64PACE:
        s->kind = TILE_FUSED_LLS;
        break;
    case ISA_OP_LDST64PACE:
        s->kind = TILE_FUSED_LS;
        break;
    default:
        s->kind = TILE_FUSED_S;
        break;
    }
    if (has_second(s->kind)) l->second |= 1u << a1.stream;
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
    case ISA_OP_ST64PACE:
        return plan_pace(l, s, i);
    case ISA_OP_LD64STEP_S:
        return plan_step(l, s, i, false, false);
    case ISA_OP_LD64STEP_R:
        return plan_step(l, s, i, false, true);
    case ISA_OP_ST64STEP_S:
        return plan_step(l, s, i, true, false);
    case ISA_OP_ST64STEP_R:
        return plan_step(l, s, i, true, true);
    case ISA_OP_SETZI_M:
        s->kind = TILE_FUSED_NONE;
        return i->d == TILE_SINK;
    default:
        return false;
    }
}

static bool plan_aux(struct tile_amp_loop *l, struct slot_plan *s, const struct isa_insn *i,
                     uint32_t k) {
    const bool f8 = i->op == ISA_OP_F8V8HIHOV4AMP;
    if ((!f8 && i->op != ISA_OP_F16V4HIHOV4AMP) || (k > 0 && l->f8 != f8) || i->imm > 3)
        return false;
    l->f8 = f8;
    l->weights |= UINT64_C(0x1111111111111111) << i->imm;
    s->x = pair_read(i->s0);
    s->partial = pair_read(i->s1);
    s->result = pair_write(i->d);
    s->phase = (uint8_t)i->imm;
    return true;
}

static bool stride_add(struct tile_amp_loop *l, uint32_t reg) {
    for (uint32_t i = 0; i < l->n_strides; i++)
        if (l->stride[i] == reg) return true;
    if (l->n_strides == MAX_STRIDES) return false;
    l->stride[l->n_strides++] = (uint8_t)reg;
    return true;
}

static bool strides_collect(struct tile_amp_loop *l) {
    for (uint32_t k = 0; k < l->n; k++) {
        const struct slot_plan *s = &l->slot[k];
        const struct step *steps[3] = {&s->load[0].step, &s->load[1].step, &s->store.step};
        for (uint32_t j = 0; j < 3; j++)
            if ((steps[j]->kind == STEP_FIELD || steps[j]->kind == STEP_REG) &&
                !stride_add(l, steps[j]->reg))
                return false;
    }
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
    for (uint32_t i = 0; i < l->n_strides; i++) fixed |= 1u << l->stride[i];
    return (moving & fixed & 0x0fff) != 0;
}

struct tile_amp_loop *tile_amp_loop_make(const struct tile_slot *slots, uint32_t n) {
    if (n > TILE_FUSED_MAX) return NULL;
    struct tile_amp_loop *l = g_new0(struct tile_amp_loop, 1);
    l->n = n;
    bool ok = true;
    for (uint32_t k = 0; ok && k < n; k++)
        ok = plan_aux(l, &l->slot[k], &slots[k].ai, k) && plan_main(l, &l->slot[k], &slots[k].mi);
    if (ok && strides_collect(l) && !registers_clash(l)) return l;
    g_free(l);
    return NULL;
}

/* --- Steps and offsets, from the values of the stride registers. --- */

static int32_t step_bytes(const struct tile_exec *e, const struct step *s) {
    switch ((enum step_kind)s->kind) {
    case STEP_ATOM:
        return 8;
    case STEP_FIELD:
        return ((int32_t)(e->m[s->reg] << (22 - s->field)) >> 22) * 8;
    case STEP_IMM:
        return s->imm;
    case STEP_REG:
        return (int32_t)(e->m[s->reg] * 8);
    }
    return 0;
}

static void access_note(const struct tile_exec *e, struct motion *l, const struct access_plan *p,
                        bool store, struct tile_fused_access *ret) {
    struct stream *s = &l->stream[p->stream];
    if (!s->used || s->at < s->low) s->low = s->at;
    if (!s->used || s->at > s->high) s->high = s->at;
    s->used = true;
    *(store ? &s->stores : &s->loads) = true;
    *ret = (struct tile_fused_access){p->stream, p->pair, step_bytes(e, &p->step)};
}

/* False when there are too many meetings for the list. */
static bool meeting_note(struct motion *l, uint8_t a, uint8_t b) {
    const uint8_t parity = (uint8_t)(((l->stream[a].at + l->stream[b].at) & 8) ? 2 : 1);
    for (uint32_t i = 0; i < l->n_meetings; i++) {
        struct meeting *m = &l->meeting[i];
        if (m->a != a || m->b != b) continue;
        m->parities |= parity;
        return true;
    }
    if (l->n_meetings == MAX_MEETINGS) return false;
    l->meeting[l->n_meetings++] = (struct meeting){a, b, parity};
    return true;
}

static bool slot_note(const struct tile_exec *e, struct motion *l, const struct slot_plan *s,
                      struct tile_fused_slot *o) {
    *o = (struct tile_fused_slot){
        .kind = s->kind, .x = s->x, .partial = s->partial, .result = s->result, .phase = s->phase};
    const struct tile_fused_access *used[3];
    uint32_t n = 0;
    if (has_loads(s->kind))
        access_note(e, l, &s->load[0], false, &o->load[0]), used[n++] = &o->load[0];
    if (has_second(s->kind))
        access_note(e, l, &s->load[1], false, &o->load[1]), used[n++] = &o->load[1];
    if (has_store(s->kind)) access_note(e, l, &s->store, true, &o->store), used[n++] = &o->store;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (!meeting_note(l, used[i]->stream, used[j]->stream)) return false;
    for (uint32_t i = 0; i < n; i++) l->stream[used[i]->stream].at += used[i]->step;
    return true;
}

/* Sums of steps stay far from overflow: at most 32 bundles of steps below 2^22, or no plan. */
static bool steps_small(const struct motion *l, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        const struct tile_fused_slot *o = &l->out[k];
        const int32_t steps[3] = {o->load[0].step, o->load[1].step, o->store.step};
        for (uint32_t j = 0; j < 3; j++)
            if (steps[j] >= 1 << 22 || steps[j] <= -(1 << 22)) return false;
    }
    return true;
}

/* The bytes of a stream over all passes. */
struct interval {
    int64_t start, first, end;
};

/* One slot of a regular loop: like the first in all but phase and result; it steps by single words.
 */
static bool regular_slot(const struct tile_fused_slot *f, const struct tile_fused_slot *s,
                         uint32_t k) {
    const bool two = f->kind == TILE_FUSED_LLS;
    return s->kind == f->kind && s->x == f->x && s->partial == f->partial &&
           s->phase == (f->phase + k) % 4 && s->load[0].stream == f->load[0].stream &&
           s->load[0].pair == f->x && s->load[0].step == 8 && s->store.stream == f->store.stream &&
           s->store.step == 8 && s->store.pair == s->result && s->result != f->x &&
           (!two || (s->load[1].stream == f->load[1].stream && s->load[1].pair == f->partial &&
                     s->load[1].step == 8 && s->result != f->partial));
}

/* Four slots, phases in order: one or two loads, which fetch the next operands, and a store of the
 * result of two slots before. The slot of phase 0, else UINT32_MAX. */
static uint32_t regular_start(const struct tile_fused_slot *o, uint32_t n) {
    const struct tile_fused_slot *f = &o[0];
    const bool two = f->kind == TILE_FUSED_LLS;
    if (n != 4 || (f->kind != TILE_FUSED_LS && !two) || f->x == f->partial ||
        f->x >= TILE_PAIR_ZERO ||
        (two ? f->partial >= TILE_PAIR_ZERO : f->partial != TILE_PAIR_ZERO) ||
        o[0].result != o[2].result || o[1].result != o[3].result || o[0].result == o[1].result)
        return UINT32_MAX;
    for (uint32_t k = 0; k < n; k++)
        if (!regular_slot(f, &o[k], k)) return UINT32_MAX;
    return (4u - f->phase) % 4;
}

/* No slot of a block of rows loads what one before it in the block stores. */
static bool rows_apart(const struct motion *m, const struct interval *v) {
    const struct tile_fused_slot *f = &m->out[0];
    const int64_t store = v[f->store.stream].start, block = 32 * TILE_FUSED_ROWS;
    for (uint32_t i = 0; i < (has_second(f->kind) ? 2 : 1); i++) {
        const int64_t ahead = store - v[f->load[i].stream].start;
        if (ahead > 0 && ahead < block) return false;
    }
    return true;
}

static void motion_make(const struct tile_exec *e, const struct tile_amp_loop *l,
                        struct motion *m) {
    *m = (struct motion){.possible = true};
    for (uint32_t i = 0; i < l->n_strides; i++) m->stride_value[i] = e->m[l->stride[i]];
    for (uint32_t k = 0; m->possible && k < l->n; k++)
        m->possible = slot_note(e, m, &l->slot[k], &m->out[k]);
    m->possible = m->possible && steps_small(m, l->n);
    m->regular = m->possible ? regular_start(m->out, l->n) : UINT32_MAX;
    for (uint32_t i = 0; i < l->n_streams; i++) m->stream[i].total = m->stream[i].at;
}

static struct motion *motion_find(const struct tile_exec *e, struct tile_amp_loop *l) {
    for (uint32_t i = 0; i < l->n_motions; i++) {
        struct motion *m = &l->motion[i];
        bool same = true;
        for (uint32_t k = 0; k < l->n_strides; k++)
            same = same && m->stride_value[k] == e->m[l->stride[k]];
        if (same) return m;
    }
    struct motion *m = &l->motion[l->next_motion++ % MAX_MOTIONS];
    if (l->n_motions < MAX_MOTIONS) l->n_motions++;
    motion_make(e, l, m);
    return m;
}

/* --- Intervals. --- */

static void intervals_start(const struct tile_exec *e, const struct tile_amp_loop *l,
                            struct interval *v) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct pointer *p = &l->pointer[i];
        if (!p->packed) {
            v[p->stream].start = (int64_t)e->m[p->base] + e->m[p->reg];
            continue;
        }
        const uint32_t p0 = e->m[p->reg], p1 = e->m[p->reg + 1];
        v[p->stream].start = p0 & ADDRESS_MASK;
        v[p->stream + 1].start = p1 & ADDRESS_MASK;
        v[p->stream + 2].start = (p0 >> 21 | p1 >> 21 << 11) & ADDRESS_MASK;
    }
}

static void interval_set(const struct stream *s, uint64_t passes, struct interval *v) {
    const int64_t move = (int64_t)s->total * (int64_t)(passes - 1);
    v->first = v->start + s->low + (move < 0 ? move : 0);
    v->end = v->start + s->high + 8 + (move > 0 ? move : 0);
}

/* Ports lie apart when the intervals touch no common element, or when both stay in region 1 and the
 * accesses of a bundle always fall into different halves of an interleaved pair. */
static bool meeting_apart(const struct motion *l, const struct interval *v,
                          const struct meeting *m) {
    const struct interval *a = &v[m->a], *b = &v[m->b];
    const int pair =
        ELEMENT_SHIFT + 1; /* different pairs of elements: different elements for sure */
    if ((a->end - 1) >> pair < b->first >> pair || (b->end - 1) >> pair < a->first >> pair)
        return true;
    const uint32_t a0 = target_element((uint32_t)a->first),
                   a1 = target_element((uint32_t)a->end - 1);
    const uint32_t b0 = target_element((uint32_t)b->first),
                   b1 = target_element((uint32_t)b->end - 1);
    if (a1 < b0 || b1 < a0) return true;
    const bool odd = ((a->start ^ b->start) & 8) != 0;
    return a->first >= TARGET_REGION1_BASE && b->first >= TARGET_REGION1_BASE &&
           m->parities == (odd ? 1 : 2) &&
           (l->stream[m->a].total - l->stream[m->b].total) % 16 == 0;
}

static bool writable(const struct tile *t, uint32_t first, uint32_t bytes) {
    return t->writable == NULL || tile_bits_all(t->writable, first, bytes);
}

static bool interval_ok(const struct tile_exec *e, const struct tile_amp_loop *l,
                        const struct stream *s, const struct interval *v, bool *io_all_written) {
    const struct tile *t = e->t;
    if (v->start % 8 != 0 || v->first < TARGET_SRAM_BASE || v->end > TARGET_SRAM_END) return false;
    const uint32_t first = (uint32_t)v->first, bytes = (uint32_t)(v->end - v->first);
    /* Elements of region 0, where the code is, are numbered by address bits. */
    if (first >> ELEMENT_SHIFT <= (e->pc + 8 * l->n - 1) >> ELEMENT_SHIFT &&
        (first + bytes - 1) >> ELEMENT_SHIFT >= e->pc >> ELEMENT_SHIFT)
        return false;
    const bool written = tile_all_written(t, first, bytes);
    if (s->stores && !written) *io_all_written = false;
    return (!s->loads || written) && (!s->stores || writable(t, first, bytes));
}

static bool loop_ok(const struct tile_exec *e, const struct tile_amp_loop *l,
                    const struct motion *m, uint64_t passes, struct interval *v,
                    bool *ret_all_written) {
    *ret_all_written = true;
    for (uint32_t i = 0; i < l->n_streams; i++) {
        if (!m->stream[i].used) continue;
        interval_set(&m->stream[i], passes, &v[i]);
        if (!interval_ok(e, l, &m->stream[i], &v[i], ret_all_written)) return false;
        if ((l->second >> i & 1) && v[i].first < TARGET_REGION1_BASE) return false;
    }
    for (uint32_t i = 0; i < m->n_meetings; i++)
        if (!meeting_apart(m, v, &m->meeting[i])) return false;
    return true;
}

/* --- Running. --- */

/* No NaN, no denormals; the vector loops look themselves. */
static bool sums_plain(const struct tile_accumulators *acc) {
    uint32_t bad = 0;
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t e = num_f32_bits(acc->even[k]) << 1, o = num_f32_bits(acc->odd[k]) << 1;
        bad |=
            (e > 0xff000000u) | (e - 1 < 0x00ffffffu) | (o > 0xff000000u) | (o - 1 < 0x00ffffffu);
    }
    return bad == 0;
}

static bool state_ok(const struct tile_exec *e, const struct tile_amp_loop *l) {
    return (e->t->weights_defined & l->weights) == l->weights && e->w->acc_defined == UINT32_MAX &&
           (!e->timing || sums_plain(&e->w->acc));
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

static enum tile_fused_type prepare(struct tile_exec *e, struct tile_amp_loop *l,
                                    const struct interval *v, struct tile_fused_run *r) {
    struct tile *t = e->t;
    r->acc = &e->w->acc;
    r->n_slots = l->n;
    memcpy(r->pairs, e->a, 32);
    r->pairs[TILE_PAIR_ZERO] = 0;
    r->memory = t->bytes;
    for (uint32_t i = 0; i < l->n_streams; i++)
        r->pointer[i] = t->bytes + (v[i].start - TARGET_SRAM_BASE);
    if (!l->f8) {
        r->w = tile_weights_f16(t)->f16[0][0];
        return TILE_FUSED_F16;
    }
    const enum num_f8_format fw = (enum num_f8_format)(e->w->fp_nfmt & 1);
    r->weights = tile_weights_f8(t, fw, tile_f8_scale(e->w));
    r->w = r->weights->f8[0][0];
    r->f143_base = &l->f143_base;
    const enum num_f8_format fx = (enum num_f8_format)(e->w->fp_nfmt >> 1 & 1);
    r->f8_values = tile_f8_values(fx);
    return fw == NUM_F143 && fx == NUM_F143 ? TILE_FUSED_F143 : TILE_FUSED_F8;
}

/* Timing only: pointers move and words count as written, data stays where it is. */
static uint64_t pass_over(const struct tile_amp_loop *l, const struct motion *m,
                          struct tile_fused_run *r, uint64_t passes) {
    for (uint64_t p = 0; r->written != NULL && p < passes; p++) {
        uint8_t *at[TILE_FUSED_STREAMS];
        for (uint32_t i = 0; i < l->n_streams; i++)
            at[i] = r->pointer[i] + (int64_t)m->stream[i].total * (int64_t)p;
        for (uint32_t k = 0; k < l->n; k++) {
            const struct tile_fused_slot *s = &m->out[k];
            if (!has_store(s->kind)) continue;
            const uint32_t word = (uint32_t)(at[s->store.stream] - r->memory) / 4;
            r->written[word / 64] |= UINT64_C(3) << word % 64;
            at[s->store.stream] += s->store.step;
        }
    }
    for (uint32_t i = 0; i < l->n_streams; i++)
        r->pointer[i] += (int64_t)m->stream[i].total * (int64_t)passes;
    return passes * l->n;
}

uint64_t tile_amp_loop_run(struct tile_exec *e, struct tile_amp_loop *l, uint64_t passes) {
    struct interval v[TILE_FUSED_STREAMS];
    bool all_written = false;
    if (!state_ok(e, l)) return 0;
    struct motion *m = motion_find(e, l);
    if (!m->possible) return 0;
    intervals_start(e, l, v);
    /* The last passes may read ahead into words that were never written: those are for the plain
     * code. */
    uint32_t cut = 0;
    while (cut < 3 && passes > cut && !loop_ok(e, l, m, passes - cut, v, &all_written)) cut++;
    if (cut == 3 || passes <= cut) return 0;
    struct tile_fused_run r;
    r.slots = m->out;
    r.regular = m->regular != UINT32_MAX && rows_apart(m, v) ? m->regular : UINT32_MAX;
    const enum tile_fused_type type = prepare(e, l, v, &r);
    r.written = all_written ? NULL : e->t->written;
    const uint64_t done =
        e->timing ? pass_over(l, m, &r, passes - cut) : e->vec->loop[type](&r, passes - cut);
    memcpy(e->a, r.pairs, 32);
    pointers_back(e, l, &r);
    return done;
}
