/* From operands to the form. Candidates are the forms of the mnemonic; registers, their groups and
 * marks must agree exactly; among forms that differ only in the kind of an immediate the first
 * whose range holds the value is taken, signed before zero-extended before `<< 20`. An omitted
 * delta of a load or store with an offset is $mzero (isa 3.1). */
#include "isa/isa_as.h"
#include "isa/isa_obj.h"

#include <string.h>

static GHashTable *by_mnemonic;       /* name -> first op + 1 */
static uint16_t next_form[ISA_N_OPS]; /* the next op of the same mnemonic, or ISA_N_OPS */

__attribute__((constructor)) static void mnemonic_index(void) {
    by_mnemonic = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t op = ISA_N_OPS; op-- > 0;) {
        char *name = (char *)(uintptr_t)isa_form(op)->mnemonic;
        const gpointer later = g_hash_table_lookup(by_mnemonic, name);
        next_form[op] = (uint16_t)(later != NULL ? GPOINTER_TO_UINT(later) - 1 : ISA_N_OPS);
        g_hash_table_insert(by_mnemonic, name, GUINT_TO_POINTER(op + 1));
    }
}

bool as_mnemonic_known(const char *name) {
    if (g_hash_table_contains(by_mnemonic, name)) return true;
#define ISA_ALIAS(alias, rule, text)                                                               \
    if (strcmp(name, alias) == 0) return true;
#include "isa/isa_alias.def"
#undef ISA_ALIAS
    return false;
}

static uint32_t first_form(const char *mnemonic) {
    return GPOINTER_TO_UINT(g_hash_table_lookup(by_mnemonic, mnemonic)) - 1;
}
#define EACH_FORM(op, mnemonic)                                                                    \
    uint32_t op = first_form(mnemonic);                                                            \
    op < ISA_N_OPS;                                                                                \
    op = next_form[op]

static const struct isa_class_info *class_of(const struct isa_form *f, uint32_t i) {
    return &isa_classes[f->operand[i].class];
}

/* --- Shape. --- */

static bool operand_fits(const struct isa_form *f, uint32_t i, const struct as_operand *o) {
    const struct isa_class_info *c = class_of(f, i);
    if (c->reg)
        return o->kind == AS_OP_REG && o->file == c->file && o->count == c->n &&
               strcmp(o->mark, c->mark) == 0;
    if (o->kind == AS_OP_CSR) return f->operand[i].role == ISA_ROLE_CSR;
    return o->kind == AS_OP_EXPR;
}

static bool force_fits(const struct isa_form *f, char force) {
    if (force == 0) return true;
    for (uint32_t i = 0; i < f->n_operands; i++)
        if (!class_of(f, i)->reg) return class_of(f, i)->file == force;
    return false;
}

/* Operands in the order of the form, with $mzero put in for an omitted delta. */
static bool arrange(const struct isa_form *f, const struct as_insn *x,
                    const struct as_operand *ret[AS_MAX_OPERANDS]) {
    static const struct as_operand zero = {
        .kind = AS_OP_REG, .file = 'M', .first = 15, .count = 1, .mark = ""};
    uint32_t from = 0;
    const bool short_form = x->n_operands + 1 == f->n_operands;
    if (x->n_operands != f->n_operands && !short_form) return false;
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const bool insert = short_form && i == from && f->operand[i].role == ISA_ROLE_DELTA &&
                            f->operand[i].class == ISA_CLASS_M;
        if (from == x->n_operands && !insert) return false;
        ret[i] = insert ? &zero : &x->operand[from++];
    }
    return from == x->n_operands;
}

static bool shape_fits(const struct isa_form *f, const struct as_insn *x) {
    const struct as_operand *o[AS_MAX_OPERANDS];
    if (!arrange(f, x, o) || !force_fits(f, x->force)) return false;
    for (uint32_t i = 0; i < f->n_operands; i++)
        if (!operand_fits(f, i, o[i])) return false;
    return true;
}

/* --- Messages about shapes. --- */

static void class_text(GString *out, const struct isa_class_info *c) {
    const char file = c->file == 'M' ? 'm' : 'a';
    if (!c->reg) {
        const char *kind = c->file == 'S' ? "signed " : c->file == 'E' ? "flag " : "";
        g_string_append_printf(out, "%simm", kind);
        if (c->file == 'T') g_string_append(out, "12<<20");
        else if (c->n != 0) g_string_append_printf(out, "%u", c->n);
        return;
    }
    g_string_append_printf(out, "$%c", file);
    if (c->n > 1) g_string_append_printf(out, "N:N+%u", c->n - 1);
    g_string_append(out, c->mark);
}

static const char *forms_text(struct as *as, const struct as_insn *x) {
    GString *out = g_string_new(NULL);
    for (EACH_FORM(op, x->mnemonic)) {
        const struct isa_form *f = isa_form(op);
        if (!force_fits(f, x->force)) continue;
        if (out->len != 0) g_string_append(out, " | ");
        for (uint32_t i = 0; i < f->n_operands; i++) {
            if (i != 0) g_string_append(out, ", ");
            class_text(out, class_of(f, i));
        }
    }
    const char *text = arena_strdup(as->arena, out->str);
    g_string_free(out, true);
    return text;
}

static const char *operand_text(struct as *as, const struct as_operand *o) {
    if (o->kind == AS_OP_CSR) return "a register of the machine";
    if (o->kind == AS_OP_EXPR) return "a number or symbol";
    const char file = o->file == 'M' ? 'm' : 'a';
    return o->count == 1 ? arena_printf(as->arena, "$%c%u%s", file, o->first, o->mark)
                         : arena_printf(as->arena, "$%c%u:%u%s", file, o->first,
                                        o->first + o->count - 1, o->mark);
}

/* Number of leading operands that fit. */
static uint32_t fitting(const struct isa_form *f, const struct as_insn *x) {
    const struct as_operand *o[AS_MAX_OPERANDS];
    if (!arrange(f, x, o)) return 0;
    uint32_t i = 0;
    while (i < f->n_operands && operand_fits(f, i, o[i])) i++;
    return i;
}

/* Names the first operand that no form takes, as far as the best forms get; else lists the forms.
 */
static void report_shape(struct as *as, const struct as_insn *x) {
    uint32_t best = 0;
    bool count_fits = false;
    for (EACH_FORM(op, x->mnemonic)) {
        const struct as_operand *o[AS_MAX_OPERANDS];
        count_fits |= arrange(isa_form(op), x, o);
        const uint32_t fit = fitting(isa_form(op), x);
        if (fit > best) best = fit;
    }
    if (!count_fits || best >= x->n_operands) {
        if (count_fits) as_error(as, x->loc, ISA_NO_FORM, x->written, forms_text(as, x));
        else as_error(as, x->loc, ISA_OPERAND_COUNT, x->written, x->n_operands, forms_text(as, x));
        return;
    }
    GString *want = g_string_new(NULL);
    for (EACH_FORM(op, x->mnemonic)) {
        const struct isa_form *f = isa_form(op);
        if (best >= f->n_operands || fitting(f, x) != best) continue;
        GString *one = g_string_new(NULL);
        class_text(one, class_of(f, best));
        if (strstr(want->str, one->str) == NULL)
            g_string_append_printf(want, "%s%s", want->len != 0 ? " or " : "", one->str);
        g_string_free(one, true);
    }
    as_error(as, x->operand[best].loc, ISA_OPERAND, best + 1, x->written, want->str,
             operand_text(as, &x->operand[best]));
    g_string_free(want, true);
}

/* --- Rules on registers. --- */

static bool check_registers(struct as *as, const struct as_insn *x, const struct isa_form *f) {
    const struct as_operand *o[AS_MAX_OPERANDS];
    arrange(f, x, o);
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const struct isa_class_info *c = class_of(f, i);
        if (!c->reg) continue;
        if (o[i]->first > c->last) {
            as_error(as, o[i]->loc, ISA_REG_UPDATE, operand_text(as, o[i]), c->last + c->n - 1u);
            return false;
        }
        const uint32_t last = o[i]->first + c->n - 1u;
        const bool zero_quad = c->n == 4 && o[i]->first == 12;
        if (c->file == 'A' && last >= 8 && o[i]->first <= 13 && !zero_quad && !x->allow_operands) {
            as_error(as, o[i]->loc, ISA_REG_NONE, operand_text(as, o[i]));
            return false;
        }
    }
    return true;
}

static bool check_mode(struct as *as, const struct as_insn *x, const struct isa_form *f) {
    if (x->mode == 0 || x->allow_mode) return true;
    const char *in_force = x->mode == ISA_MODE_W ? ".worker" : ".supervisor";
    if ((f->who & x->mode) == 0) {
        as_error(as, x->loc, ISA_MODE, x->written,
                 f->who == ISA_MODE_W ? "a worker" : "the supervisor", in_force);
        return false;
    }
    for (uint32_t i = 0; i < x->n_operands; i++)
        if (x->operand[i].kind == AS_OP_CSR && (x->operand[i].who & x->mode) == 0) {
            as_error(as, x->operand[i].loc, ISA_MODE, "this register",
                     x->mode == ISA_MODE_W ? "the supervisor" : "a worker", in_force);
            return false;
        }
    return true;
}

/* Upper registers belong to uget and uput. */
static bool check_csr(struct as *as, const struct as_insn *x, const struct isa_form *f) {
    const bool upper = f->pipe == ISA_AUX;
    for (uint32_t i = 0; i < x->n_operands; i++)
        if (x->operand[i].kind == AS_OP_CSR && x->operand[i].upper != upper) {
            as_error(as, x->operand[i].loc, ISA_CSR_SPACE, x->operand[i].upper ? "$a" : "$m");
            return false;
        }
    return true;
}

bool as_match_shape(struct as *as, struct as_insn *insn) {
    for (EACH_FORM(op, insn->mnemonic)) {
        const struct isa_form *f = isa_form(op);
        if (!shape_fits(f, insn)) continue;
        insn->insn.op = (uint16_t)op; /* until the second pass: some form of this shape */
        return check_registers(as, insn, f) && check_mode(as, insn, f) && check_csr(as, insn, f);
    }
    report_shape(as, insn);
    return false;
}

/* --- Values. --- */

/* Constants of branches are words, of others plain; 32-bit patterns may be written with a sign. */
static int64_t scaled(const struct isa_operand *o, int64_t v) {
    const char file = isa_classes[o->class].file;
    if (file == 'W' && v >= 0 && v < INT64_C(1) << 32) return v * 4;
    if (file == 'S' && v > INT32_MAX && v <= (int64_t)UINT32_MAX) return v - (INT64_C(1) << 32);
    if (file == 'T' && v < 0 && v >= INT32_MIN) return v + (INT64_C(1) << 32);
    return v;
}

/* Indices of the upper space are written with or without their 0x100. */
static int64_t csr_index(const struct isa_form *f, uint32_t i, int64_t v) {
    const bool upper = f->operand[i].role == ISA_ROLE_CSR && f->pipe == ISA_AUX;
    return upper && v >= 256 && v < 512 ? v - 256 : v;
}

struct chosen {
    struct isa_insn insn;
    struct as_reloc reloc;
    uint32_t bad; /* operand out of range */
    bool unresolved;
};

/* Fills `ret` with the operands' values; false if one does not fit. */
static bool form_values(struct as *as, const struct as_insn *x, enum isa_op op,
                        struct chosen *ret) {
    const struct isa_form *f = isa_form(op);
    const struct as_operand *o[AS_MAX_OPERANDS];
    arrange(f, x, o);
    *ret = (struct chosen){.insn = {.op = (uint16_t)op, .n_words = f->n_words}};
    for (uint32_t i = 0; i < f->n_operands; i++) {
        if (class_of(f, i)->reg) {
            isa_operand_set(&ret->insn, i, o[i]->first);
            continue;
        }
        struct as_value v;
        ret->bad = i;
        if (!as_eval(as, o[i]->expr, false, &v)) {
            ret->unresolved = true;
            return false;
        }
        if (v.symbol != NULL) {
            const uint8_t type = isa_reloc_type(&f->operand[i]);
            if (type == ISA_R_NONE) {
                ret->unresolved = true;
                return false;
            }
            ret->reloc = (struct as_reloc){type, v};
            isa_operand_set(&ret->insn, i, 0);
            continue;
        }
        uint32_t field;
        const int64_t value = scaled(&f->operand[i], csr_index(f, i, v.value));
        if (!isa_operand_field(&f->operand[i], value, &field)) return false;
        isa_operand_set(&ret->insn, i, value);
    }
    return true;
}

static void report_value(struct as *as, const struct as_insn *x, enum isa_op op, uint32_t bad) {
    const struct isa_form *f = isa_form(op);
    const struct as_operand *o[AS_MAX_OPERANDS];
    arrange(f, x, o);
    struct as_value v;
    if (!as_eval(as, o[bad]->expr, true, &v)) return;
    const uint32_t position = (uint32_t)(o[bad] - x->operand) + 1;
    if (v.symbol != NULL) {
        const char *name = v.symbol->name != NULL ? v.symbol->name : "a label";
        if (v.symbol->kind == AS_SYM_UNDEFINED && as->options->target_hardware &&
            isa_flag_find(name, strlen(name)) >= 0)
            as_error(as, x->loc, ISA_HARDWARE_FLAG, x->written, name);
        else {
            const char *meant = v.symbol->name != NULL ? as_suggest_symbol(as, name) : "";
            as_error(as, o[bad]->loc, ISA_NOT_CONSTANT, position, x->written, name, meant);
        }
        return;
    }
    GString *ranges = g_string_new(NULL);
    for (EACH_FORM(k, x->mnemonic)) {
        const struct isa_form *g = isa_form(k);
        if (!shape_fits(g, x)) continue;
        int64_t min, max;
        isa_operand_range(&g->operand[bad], &min, &max);
        const char file = class_of(g, bad)->file;
        g_string_append_printf(ranges, "%s%" G_GINT64_FORMAT "..%" G_GINT64_FORMAT "%s",
                               ranges->len != 0 ? " and " : "", file == 'W' ? min / 4 : min,
                               file == 'W' ? max / 4 : max,
                               file == 'T'   ? " in steps of 1048576"
                               : file == 'W' ? " words"
                                             : "");
    }
    as_error(as, o[bad]->loc, ISA_RANGE, position, x->written, v.value, ranges->str);
    g_string_free(ranges, true);
}

static uint32_t preference(const struct isa_form *f) {
    static const char order[] = "SZT";
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const char *at = class_of(f, i)->reg ? NULL : strchr(order, class_of(f, i)->file);
        if (at != NULL) return (uint32_t)(at - order);
    }
    return 0;
}

/* The flag of an instruction as it is written. */
static const char *flag_text(const struct as_insn *x) {
    const struct as_operand *last = &x->operand[x->n_operands - 1];
    const bool named = last->kind == AS_OP_EXPR && last->expr->kind == AS_SYMBOL &&
                       last->expr->symbol->name != NULL;
    return named ? last->expr->symbol->name : "its flag";
}

/* Instructions whose numbers are not public are refused in hardware mode. */
static bool check_hardware(struct as *as, const struct as_insn *x, const struct isa_insn *insn) {
    if (!as->options->target_hardware) return true;
    const bool gina = insn->op == ISA_OP_F16V2GINA || insn->op == ISA_OP_F32V2GINA;
    if (gina && insn->imm > 1) {
        as_error(as, x->loc, ISA_HARDWARE_GINA, x->written, insn->imm);
        return false;
    }
    if (!isa_flag_provisional(insn->op) || as->sdk != NULL) return true;
    if (insn->op == ISA_OP_F16V4STACC && insn->imm == 0) return true; /* seen as a plain 0 */
    as_error(as, x->loc, ISA_HARDWARE_FLAG, x->written, flag_text(x));
    return false;
}

/* isa 3.5, 3.6: the update of a step and the loaded value, or two loaded values, in one register.
 */
enum meeting { MEET_NOT, MEET_STEP, MEET_PACE };
static enum meeting destinations(const struct isa_insn *insn) {
    const struct isa_form *f = isa_form(insn->op);
    const struct isa_class_info *d = class_of(f, 0);
    const bool load = isa_roles[f->operand[0].role].write && f->kind == ISA_KIND_MEM;
    for (uint32_t i = 1; load && i < f->n_operands; i++) {
        const struct isa_class_info *c = class_of(f, i);
        if (d->file == 'M' && c->reg && c->both && isa_operand_get(insn, i) == insn->d)
            return MEET_STEP;
        if (f->operand[i].role == ISA_ROLE_D1 && insn->d1 >= insn->d && insn->d1 < insn->d + d->n)
            return MEET_PACE;
    }
    return MEET_NOT;
}

bool as_destinations_meet(const struct isa_insn *insn) {
    return destinations(insn) != MEET_NOT;
}

static bool check_destinations(struct as *as, const struct as_insn *x,
                               const struct isa_insn *insn) {
    const enum meeting m = destinations(insn);
    if (m == MEET_STEP) as_error(as, x->loc, ISA_STEP_DESTINATION, x->written, insn->d);
    if (m == MEET_PACE) as_error(as, x->loc, ISA_PACE_DESTINATION, x->written);
    return m == MEET_NOT;
}

bool as_match(struct as *as, struct as_insn *insn, struct as_reloc *ret) {
    struct chosen best = {0}, c;
    bool found = false, tried = false;
    uint32_t best_rank = UINT32_MAX;
    for (EACH_FORM(op, insn->mnemonic)) {
        const struct isa_form *f = isa_form(op);
        if (!shape_fits(f, insn)) continue;
        const bool ok = form_values(as, insn, op, &c);
        if (ok ? !found || preference(f) < best_rank : !tried && !found) {
            best = c;
            best_rank = ok ? preference(f) : UINT32_MAX;
        }
        found |= ok;
        tried = true;
    }
    if (!found) {
        if (as->options->target_hardware && as->sdk == NULL && isa_flag_provisional(best.insn.op))
            as_error(as, insn->loc, ISA_HARDWARE_FLAG, insn->written, flag_text(insn));
        else report_value(as, insn, best.insn.op, best.bad);
        return false;
    }
    insn->insn = best.insn;
    *ret = best.reloc;
    return check_hardware(as, insn, &insn->insn) && check_destinations(as, insn, &insn->insn);
}
