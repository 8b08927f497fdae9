/* Aliases and pseudo-instructions of isa 3.1 and encoding-aliases.csv, written as instructions of
 * the table. Which rule a name has is in isa_alias.def. */
#include "isa/isa_as.h"

#include <string.h>

static struct as_operand reg(char file, uint32_t first, uint32_t count, struct as_loc loc) {
    return (struct as_operand){.kind = AS_OP_REG,
                               .file = file,
                               .first = (uint8_t)first,
                               .count = (uint8_t)count,
                               .mark = "",
                               .loc = loc};
}

static struct as_operand number(struct as *as, int64_t v, struct as_loc loc) {
    return (struct as_operand){
        .kind = AS_OP_EXPR, .mark = "", .loc = loc, .expr = as_expr_number(as, v, loc)};
}

static bool is_reg(const struct as_insn *x, uint32_t i, char file, uint32_t count) {
    const struct as_operand *o = &x->operand[i];
    return i < x->n_operands && o->kind == AS_OP_REG && o->file == file && o->count == count &&
           o->mark[0] == 0;
}

static bool no_form(struct as *as, const struct as_insn *x, const char *forms) {
    as_error(as, x->loc, ISA_NO_FORM, x->written, forms);
    return false;
}

typedef bool rule(struct as *as, struct as_insn *x, struct as_insn **second);

static bool constant(struct as *as, struct as_insn *x, const char *mnemonic, struct as_operand a,
                     struct as_operand b) {
    if (x->n_operands != 0) return no_form(as, x, "no operands");
    x->mnemonic = mnemonic;
    x->operand[0] = a;
    x->operand[1] = b;
    x->n_operands = 2;
    return true;
}

static bool rule_nop(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)second;
    return constant(as, x, "setzi", reg('M', 14, 1, x->loc), number(as, 0, x->loc));
}
static bool rule_fnop(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)second;
    x->allow_operands = true;
    return constant(as, x, "setzi", reg('A', 13, 1, x->loc), number(as, 0, x->loc));
}
static bool rule_strap(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)second;
    return constant(as, x, "put", number(as, 255, x->loc), reg('M', 15, 1, x->loc));
}

static bool rule_zero(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)second;
    const bool pair = is_reg(x, 0, 'A', 2);
    if (x->n_operands != 1 || (!pair && !is_reg(x, 0, 'A', 1) && !is_reg(x, 0, 'M', 1)))
        return no_form(as, x, "$m | $a | $a:a+1");
    x->mnemonic = pair ? "or64" : "or";
    x->operand[1] = x->operand[2] =
        pair ? reg('A', 14, 2, x->loc) : reg(x->operand[0].file, 15, 1, x->loc);
    x->n_operands = 3;
    return true;
}

static bool rule_mov(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)second;
    const bool mm = is_reg(x, 0, 'M', 1) && is_reg(x, 1, 'M', 1);
    const bool ma = is_reg(x, 0, 'M', 1) && is_reg(x, 1, 'A', 1);
    const bool aa = is_reg(x, 0, 'A', 1) && is_reg(x, 1, 'A', 1);
    const bool pp = is_reg(x, 0, 'A', 2) && is_reg(x, 1, 'A', 2);
    if (x->n_operands != 2 || !(mm || ma || aa || pp))
        return no_form(as, x, "$m, $m | $m, $a | $a, $a | $a:a+1, $a:a+1 (nothing moves $m to $a)");
    if (ma) {
        x->mnemonic = "atom";
        return true;
    }
    x->mnemonic = pp ? "or64" : "or";
    x->operand[2] = pp ? reg('A', 14, 2, x->loc) : number(as, 0, x->loc);
    x->n_operands = 3;
    return true;
}

static bool rule_swap16(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)second;
    if (x->n_operands != 2) return no_form(as, x, "$m, $m | $a, $a");
    x->mnemonic = "roll16";
    x->operand[2] = x->operand[1];
    x->n_operands = 3;
    return true;
}

static bool rule_rename(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)as;
    (void)second;
    static const struct {
        const char *from, *to;
    } names[] = {{"movnz", "movz"},
                 {"f16v4sisov2amp", "f16v4sisoamp"},
                 {"f16v4sisov2slic", "f16v4sisoslic"}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(x->written, names[i].from) == 0) x->mnemonic = names[i].to;
    return true;
}

/* addz, subs...: the last letter forces the kind of the 16-bit immediate. */
static bool rule_forced(struct as *as, struct as_insn *x, struct as_insn **second) {
    (void)second;
    const size_t n = strlen(x->written);
    x->mnemonic = as_text(as, x->written, x->written + n - 1);
    x->force = x->written[n - 1] == 'z' ? 'Z' : 'S';
    return true;
}

/* setzi with the low 20 bits, then or with the top 12 if there are any. */
static bool rule_ldconst(struct as *as, struct as_insn *x, struct as_insn **second) {
    if (x->n_operands != 2 || x->operand[0].kind != AS_OP_REG || x->operand[0].count != 1 ||
        x->operand[1].kind != AS_OP_EXPR)
        return no_form(as, x, "$m, imm32 | $a, imm32");
    x->mnemonic = "setzi";
    struct as_value v;
    if (!as_eval(as, x->operand[1].expr, false, &v) || v.symbol != NULL) return true;
    if (v.value < INT32_MIN || v.value > (int64_t)UINT32_MAX) {
        as_error(as, x->operand[1].loc, ISA_RANGE, 2u, x->written, v.value, "32 bits");
        return false;
    }
    const uint32_t value = (uint32_t)v.value, top = value & 0xfff00000;
    if (top == 0) return true;
    x->operand[1] = number(as, value & 0xfffff, x->operand[1].loc);
    struct as_insn *o = arena_new_array(as->arena, struct as_insn, 1);
    *o = *x;
    o->mnemonic = "or";
    o->operand[1] = x->operand[0];
    o->operand[2] = number(as, top, x->operand[1].loc);
    o->n_operands = 3;
    *second = o;
    return true;
}

/* put csr, $a and get $a, csr are uput and uget; sub $d, $s, imm is add of the negative. */
static void rewrite_plain(struct as *as, struct as_insn *x) {
    const bool get = strcmp(x->mnemonic, "get") == 0, put = strcmp(x->mnemonic, "put") == 0;
    if (get && is_reg(x, 0, 'A', 1)) x->mnemonic = "uget";
    if (put && is_reg(x, 1, 'A', 1)) x->mnemonic = "uput";
    if (strcmp(x->mnemonic, "sub") == 0 && x->force == 0 && x->n_operands == 3 &&
        is_reg(x, 1, 'M', 1) && x->operand[2].kind == AS_OP_EXPR) {
        x->mnemonic = "add";
        x->force = 'S';
        x->operand[2].expr = as_expr_negate(as, x->operand[2].expr);
    }
}

bool as_alias(struct as *as, struct as_insn *insn, struct as_insn **ret_second) {
    static const struct {
        const char *name;
        rule *apply;
    } aliases[] = {
#define ISA_ALIAS(name, rule, text) {name, rule_##rule},
#include "isa/isa_alias.def"
#undef ISA_ALIAS
    };
    *ret_second = NULL;
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        if (strcmp(aliases[i].name, insn->written) == 0 && !aliases[i].apply(as, insn, ret_second))
            return false;
    rewrite_plain(as, insn);
    return true;
}
