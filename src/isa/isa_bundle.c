/* Which registers an instruction reads and writes, derived from its operands, and what follows from
 * it: which pairs may stand in a bundle (isa 1.2), and what stands at an address. */
#include "isa/isa_form.h"

struct isa_regs isa_insn_regs(const struct isa_insn *insn) {
    const struct isa_form *f = isa_form(insn->op);
    struct isa_regs r = {0};
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const struct isa_class_info *c = &isa_classes[f->operand[i].class];
        if (!c->reg) continue;
        const uint16_t bits = (uint16_t)(((1u << c->n) - 1) << (uint32_t)isa_operand_get(insn, i));
        const bool write = isa_roles[f->operand[i].role].write;
        uint16_t *const read_set = c->file == 'M' ? &r.m_read : &r.a_read;
        uint16_t *const write_set = c->file == 'M' ? &r.m_write : &r.a_write;
        if (write || c->both) *write_set |= bits;
        if (!write || c->both) *read_set |= bits;
    }
    return r;
}

bool isa_in_repeat(enum isa_op op) {
    const uint8_t kind = isa_form(op)->kind;
    return kind != ISA_KIND_CONTROL && kind != ISA_KIND_SYSTEM && kind != ISA_KIND_EXCH;
}

enum isa_bundle_error isa_bundle_check(const struct isa_insn *main, const struct isa_insn *aux) {
    const struct isa_form *m = isa_form(main->op), *a = isa_form(aux->op);
    if (m->pipe == ISA_SOLO || a->pipe == ISA_SOLO)
        return (m->who & ISA_MODE_W) == 0 || (a->who & ISA_MODE_W) == 0 ? ISA_BUNDLE_MODE
                                                                        : ISA_BUNDLE_SOLO;
    if (m->pipe != ISA_MAIN || a->pipe != ISA_AUX) return ISA_BUNDLE_PIPES;
    const struct isa_regs rm = isa_insn_regs(main), ra = isa_insn_regs(aux);
    if ((rm.a_write & ra.a_write) != 0 || (rm.m_write & ra.m_write) != 0) return ISA_BUNDLE_DEST;
    return ISA_BUNDLE_OK;
}

static enum isa_slot_error decode_bundle(const uint32_t *words, size_t n_words, uint32_t address,
                                         struct isa_slot *slot) {
    const uint32_t bit = UINT32_C(1) << 31;
    if (n_words < 2) return ISA_SLOT_TRUNCATED;
    if (address % 8 != 0) return ISA_SLOT_MISALIGNED;
    if ((words[1] & bit) == 0) return ISA_SLOT_PAIR;
    if (!isa_decode(words[0] & ~bit, 0, &slot->main) || !isa_decode(words[1] & ~bit, 0, &slot->aux))
        return ISA_SLOT_UNKNOWN;
    slot->bundle = true;
    slot->n_words = 2;
    switch (isa_bundle_check(&slot->main, &slot->aux)) {
    case ISA_BUNDLE_OK:
        return ISA_SLOT_OK;
    case ISA_BUNDLE_PIPES:
        return ISA_SLOT_PAIR;
    default:
        return ISA_SLOT_BUNDLE;
    }
}

enum isa_slot_error isa_slot_decode(const uint32_t *words, size_t n_words, uint32_t address,
                                    struct isa_slot *ret) {
    if (n_words == 0) return ISA_SLOT_TRUNCATED;
    struct isa_slot slot = {.n_words = 1};
    enum isa_slot_error e = ISA_SLOT_OK;
    const bool sendpicp = words[0] >> 28 == 0xf;
    if (words[0] >> 31 != 0 && !sendpicp) {
        e = decode_bundle(words, n_words, address, &slot);
    } else if (sendpicp && n_words < 2) {
        e = ISA_SLOT_TRUNCATED;
    } else if (sendpicp && address % 8 != 0) {
        e = ISA_SLOT_MISALIGNED;
    } else if (isa_decode(words[0], sendpicp ? words[1] : 0, &slot.main)) {
        slot.n_words = slot.main.n_words;
    } else {
        e = ISA_SLOT_UNKNOWN;
    }
    if (e == ISA_SLOT_OK || e == ISA_SLOT_BUNDLE) *ret = slot;
    return e;
}

const char *isa_slot_error_text(enum isa_slot_error e) {
    switch (e) {
    case ISA_SLOT_OK:
        return "fine";
    case ISA_SLOT_UNKNOWN:
        return "no such instruction";
    case ISA_SLOT_TRUNCATED:
        return "the second word is missing";
    case ISA_SLOT_MISALIGNED:
        return "needs an address that is a multiple of 8";
    case ISA_SLOT_PAIR:
        return "the two words do not make a bundle of a main and an aux instruction";
    case ISA_SLOT_BUNDLE:
        return "both instructions write the same register, or one is never in a bundle";
    }
    return "?";
}
