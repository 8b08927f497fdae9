/* Decoded instructions as the assembler reads them. Aliases as reference disassemblers print them
 * (isa 8.2, encoding-aliases.csv); the z and s names of 16-bit immediates where the plain name
 * would choose the other form, so that assembling the text gives the word back. */
#include "isa/isa_form.h"
#include "isa/isa_obj.h"

#include <string.h>

static void print_register(GString *out, const struct isa_class_info *c, uint32_t n) {
    g_string_append_printf(out, "$%c%u", c->file == 'M' ? 'm' : 'a', n);
    if (c->n > 1) g_string_append_printf(out, ":%u", n + c->n - 1);
    g_string_append(out, c->mark);
}

static void print_number(GString *out, int64_t v, bool hex) {
    if (hex && v > 9) g_string_append_printf(out, "0x%" G_GINT64_MODIFIER "x", v);
    else g_string_append_printf(out, "%" G_GINT64_FORMAT, v);
}

static bool print_symbol(GString *out, const struct isa_insn *insn, int64_t v,
                         const struct isa_print *options) {
    if (options->symbol == NULL || isa_form(insn->op)->kind != ISA_KIND_CONTROL) return false;
    if (insn->op == ISA_OP_RUN || insn->op == ISA_OP_RUNALL) return false;
    const char *name = options->symbol((uint32_t)v, options->context);
    if (name != NULL) g_string_append(out, name);
    return name != NULL;
}

static void print_immediate(GString *out, const struct isa_insn *insn, uint32_t i,
                            const struct isa_print *options) {
    const struct isa_operand *o = &isa_form(insn->op)->operand[i];
    const struct isa_class_info *c = &isa_classes[o->class];
    const int64_t v = isa_operand_get(insn, i);
    if (options->relocated != NULL && isa_reloc_type(o) != ISA_R_NONE) {
        g_string_append(out, options->relocated);
        return;
    }
    if (c->file == 'W') {
        if (!print_symbol(out, insn, v, options)) print_number(out, v / 4, true);
        return;
    }
    const char *name = NULL;
    if (o->role == ISA_ROLE_CSR) {
        const bool upper = insn->op == ISA_OP_UGET || insn->op == ISA_OP_UPUT;
        name = isa_csr_name((uint32_t)v, upper, options->mode);
        if (name != NULL) g_string_append_c(out, '$');
    } else if (options->flag_names && isa_flag_provisional(insn->op)) {
        name = isa_flag_name(insn->op, (uint32_t)v);
    }
    if (name != NULL) g_string_append(out, name);
    else print_number(out, v, c->file == 'T' || (c->file == 'Z' && c->n > 16));
}

static void print_operands(GString *out, const struct isa_insn *insn,
                           const struct isa_print *options) {
    const struct isa_form *f = isa_form(insn->op);
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const struct isa_class_info *c = &isa_classes[f->operand[i].class];
        g_string_append(out, i == 0 ? " " : ", ");
        if (c->reg) print_register(out, c, (uint32_t)isa_operand_get(insn, i));
        else print_immediate(out, insn, i, options);
    }
}

/* --- Aliases. --- */

static void print_alias(GString *out, const struct isa_insn *insn, const char *name,
                        uint32_t n_operands) {
    const struct isa_form *f = isa_form(insn->op);
    g_string_append(out, name);
    for (uint32_t i = 0; i < n_operands; i++) {
        g_string_append(out, i == 0 ? " " : ", ");
        print_register(out, &isa_classes[f->operand[i].class], (uint32_t)isa_operand_get(insn, i));
    }
}

/* Or with itself, zero or nothing: zero and mov. */
static bool alias_or(GString *out, const struct isa_insn *insn) {
    const uint32_t z = insn->op == ISA_OP_OR64 ? 14 : 15;
    switch (insn->op) {
    case ISA_OP_OR_M_R:
    case ISA_OP_OR_A_R:
    case ISA_OP_OR64:
        if (insn->s1 != z) return false;
        if (insn->s0 == z) print_alias(out, insn, "zero", 1);
        else if (insn->op == ISA_OP_OR64) print_alias(out, insn, "mov", 2);
        else return false;
        return true;
    case ISA_OP_OR_M_Z:
    case ISA_OP_OR_M_T:
    case ISA_OP_OR_A_Z:
    case ISA_OP_OR_A_T:
        if (insn->imm != 0) return false;
        print_alias(out, insn, "mov", 2);
        return true;
    default:
        return false;
    }
}

static bool print_as_alias(GString *out, const struct isa_insn *insn) {
    switch (insn->op) {
    case ISA_OP_SETZI_M:
        if (insn->d != 14 || insn->imm != 0) return false;
        g_string_append(out, "nop");
        return true;
    case ISA_OP_SETZI_A:
        if (insn->d != 13 || insn->imm != 0) return false;
        g_string_append(out, "fnop");
        return true;
    case ISA_OP_PUT:
        if (insn->s0 != 15 || insn->imm != 255) return false;
        g_string_append(out, "strap");
        return true;
    case ISA_OP_ATOM:
        print_alias(out, insn, "mov", 2);
        return true;
    case ISA_OP_ROLL16_M:
    case ISA_OP_ROLL16_A:
        if (insn->s0 != insn->s1) return false;
        print_alias(out, insn, "swap16", 2);
        return true;
    default:
        return alias_or(out, insn);
    }
}

static const char *printed_mnemonic(const struct isa_insn *insn) {
    switch (insn->op) {
    case ISA_OP_MOVZ:
        return "movnz";
    case ISA_OP_UGET:
        return "get";
    case ISA_OP_UPUT:
        return "put";
    case ISA_OP_ADD_Z:
        return insn->imm < 0x8000 ? "addz" : "add";
    case ISA_OP_CMPEQ_Z:
        return insn->imm < 0x8000 ? "cmpeqz" : "cmpeq";
    case ISA_OP_MAX_Z:
        return insn->imm < 0x8000 ? "maxz" : "max";
    case ISA_OP_MIN_Z:
        return insn->imm < 0x8000 ? "minz" : "min";
    case ISA_OP_SUB_Z:
        return insn->imm < 0x8000 ? "subz" : "sub";
    default:
        return isa_form(insn->op)->mnemonic;
    }
}

void isa_insn_print(GString *out, const struct isa_insn *insn, const struct isa_print *options) {
    static const struct isa_print plain = {0};
    if (options == NULL) options = &plain;
    if (options->relocated == NULL && print_as_alias(out, insn)) return;
    g_string_append(out, printed_mnemonic(insn));
    print_operands(out, insn, options);
}

void isa_slot_print(GString *out, const struct isa_slot *slot, const struct isa_print *options) {
    if (!slot->bundle) {
        isa_insn_print(out, &slot->main, options);
        return;
    }
    struct isa_print worker = options != NULL ? *options : (struct isa_print){0};
    worker.mode = ISA_MODE_W;
    g_string_append(out, "{ ");
    isa_insn_print(out, &slot->main, &worker);
    g_string_append(out, " ; ");
    isa_insn_print(out, &slot->aux, &worker);
    g_string_append(out, " }");
}
