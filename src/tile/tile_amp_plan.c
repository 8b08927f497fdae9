/* Bundles of the matrix unit as plans (tile_amp_plan.h). */
#include "tile/tile_amp_plan.h"


static uint8_t pair_read(uint32_t reg) {
    return (uint8_t)(reg < 8 ? reg / 2 : TILE_PAIR_ZERO);
}
static uint8_t pair_write(uint32_t reg) {
    return (uint8_t)(reg < 8 ? reg / 2 : TILE_PAIR_SINK);
}

/* The pointer with this register, made if new; NULL when it clashes or there are too many. */
static struct tile_amp_pointer *pointer_get(struct tile_amp_plan *l, bool packed, uint32_t reg,
                                   uint32_t base) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        struct tile_amp_pointer *p = &l->pointer[i];
        if (p->reg != reg) continue;
        return p->packed == packed && p->base == base ? p : NULL;
    }
    const uint32_t streams = packed ? 3 : 1;
    if (l->n_pointers == TILE_AMP_POINTERS || l->n_streams + streams > TILE_FUSED_STREAMS) return NULL;
    struct tile_amp_pointer *p = &l->pointer[l->n_pointers++];
    *p = (struct tile_amp_pointer){packed, (uint8_t)reg, (uint8_t)base, (uint8_t)l->n_streams};
    l->n_streams += streams;
    return p;
}

static struct tile_amp_step code_step(uint32_t code, uint32_t reg) {
    if (code == 0) return (struct tile_amp_step){.kind = TILE_AMP_STEP_ATOM};
    return (struct tile_amp_step){
        .kind = TILE_AMP_STEP_FIELD, .reg = (uint8_t)reg, .field = (uint8_t)(10 * (code - 1))};
}

static bool plan_pace(struct tile_amp_plan *l, struct tile_amp_slot *s, const struct isa_insn *i) {
    const struct tile_amp_pointer *p = pointer_get(l, true, i->addr, 0);
    if (p == NULL) return false;
    const uint32_t code = (uint32_t)i->imm, st = i->off;
    const struct tile_amp_access a0 = {p->stream, pair_write(i->d), code_step(code & 3, st)};
    const struct tile_amp_access a1 = {(uint8_t)(p->stream + 1),
                                   pair_write(i->op == ISA_OP_LD2X64PACE ? i->d1
                                              : i->d < 8                 ? i->d + 2u
                                                                         : 8),
                                   code_step(code >> 2 & 3, st)};
    const uint32_t shift = i->op == ISA_OP_LD2XST64PACE ? 4 : i->op == ISA_OP_LDST64PACE ? 2 : 0;
    const struct tile_amp_access a2 = {(uint8_t)(p->stream + 2), pair_read(i->s0),
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
    if (tile_fused_loads_two(s->kind)) l->second |= 1u << a1.stream;
    return s->kind != TILE_FUSED_LL || a0.pair != a1.pair || a0.pair == TILE_PAIR_SINK;
}

static bool plan_step(struct tile_amp_plan *l, struct tile_amp_slot *s, const struct isa_insn *i,
                      bool store, bool from_register) {
    const struct tile_amp_pointer *p = pointer_get(l, false, i->delta, i->base);
    if (p == NULL) return false;
    struct tile_amp_access a = {.stream = p->stream};
    a.pair = store ? pair_read(i->s0) : pair_write(i->d);
    a.step = from_register ? (struct tile_amp_step){.kind = TILE_AMP_STEP_REG, .reg = i->off}
                           : (struct tile_amp_step){.kind = TILE_AMP_STEP_IMM, .imm = i->imm * 8};
    s->kind = store ? TILE_FUSED_S : TILE_FUSED_L;
    *(store ? &s->store : &s->load[0]) = a;
    return true;
}

static bool plan_main(struct tile_amp_plan *l, struct tile_amp_slot *s, const struct isa_insn *i) {
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

static bool plan_aux(struct tile_amp_plan *l, struct tile_amp_slot *s, const struct isa_insn *i,
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

static bool stride_add(struct tile_amp_plan *l, uint32_t reg) {
    for (uint32_t i = 0; i < l->n_strides; i++)
        if (l->stride[i] == reg) return true;
    if (l->n_strides == TILE_AMP_STRIDES) return false;
    l->stride[l->n_strides++] = (uint8_t)reg;
    return true;
}

static bool strides_collect(struct tile_amp_plan *l) {
    for (uint32_t k = 0; k < l->n; k++) {
        const struct tile_amp_slot *s = &l->slot[k];
        const struct tile_amp_step *steps[3] = {&s->load[0].step, &s->load[1].step, &s->store.step};
        for (uint32_t j = 0; j < 3; j++)
            if ((steps[j]->kind == TILE_AMP_STEP_FIELD || steps[j]->kind == TILE_AMP_STEP_REG) &&
                !stride_add(l, steps[j]->reg))
                return false;
    }
    return true;
}

/* True when a pointer register is also read as base or stride, or by another pointer. */
static bool registers_clash(const struct tile_amp_plan *l) {
    uint32_t moving = 0, fixed = 0;
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct tile_amp_pointer *p = &l->pointer[i];
        const uint32_t mine = (p->packed ? 3u : 1u) << p->reg;
        if (moving & mine) return true;
        moving |= mine;
        if (!p->packed) fixed |= 1u << p->base;
    }
    for (uint32_t i = 0; i < l->n_strides; i++) fixed |= 1u << l->stride[i];
    return (moving & fixed & 0x0fff) != 0;
}

bool tile_amp_plan_make(struct tile_amp_plan *l, const struct tile_slot *slots, uint32_t n) {
    *l = (struct tile_amp_plan){.n = n};
    bool ok = n <= TILE_FUSED_MAX;
    for (uint32_t k = 0; ok && k < n; k++)
        ok = plan_aux(l, &l->slot[k], &slots[k].ai, k) && plan_main(l, &l->slot[k], &slots[k].mi);
    return ok && strides_collect(l) && !registers_clash(l);
}
