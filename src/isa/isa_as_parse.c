/* Statements: labels, assignments, directives, macro calls, instructions, braces of bundles. A
 * bundle may be written in one statement or several, `{ main ; aux }` or a line each. */
#include "isa/isa_as.h"

#include <ctype.h>
#include <string.h>

/* --- Registers. --- */

static const struct {
    const char *name;
    char file;
    uint8_t first, count;
} named_registers[] = {
    {"mzero", 'M', 15, 1},
    {"azero", 'A', 15, 1},
    {"azeros", 'A', 14, 2},
    {"bp", 'M', 8, 1},
    {"fp", 'M', 9, 1},
    {"lr", 'M', 10, 1},
    {"sp", 'M', 11, 1},
    {"mworker_base", 'M', 12, 1},
    {"mvertex_base", 'M', 13, 1},
};

static bool decimal(struct as_cursor *c, uint32_t *ret) {
    if (!isdigit((unsigned char)as_peek(c))) return false;
    uint32_t v = 0;
    for (; isdigit((unsigned char)as_peek(c)) && v < 100000; c->p++)
        v = v * 10 + (uint32_t)(*c->p - '0');
    *ret = v;
    return true;
}

static bool name_end(const struct as_cursor *c) {
    return !isalnum((unsigned char)as_peek(c)) && as_peek(c) != '_';
}

/* m3, a0:1; the cursor is behind the $. */
static bool numbered_register(struct as *as, struct as_cursor *c, struct as_operand *op) {
    const char *begin = c->p;
    const char file = as_peek(c);
    uint32_t first, last;
    if (file != 'm' && file != 'a') return false;
    c->p++;
    if (!decimal(c, &first) || !name_end(c)) {
        c->p = begin;
        return false;
    }
    last = first;
    if (as_peek(c) == ':' && isdigit((unsigned char)as_peek2(c))) {
        c->p++;
        decimal(c, &last);
    }
    op->file = file == 'm' ? 'M' : 'A';
    op->first = (uint8_t)first;
    op->count = (uint8_t)(last - first + 1);
    op->loc = as_span(c, begin - 1);
    const uint32_t n = last - first + 1;
    if (last < first || last > 15 || (n != 1 && n != 2 && n != 4) || first % n != 0) {
        as_error(as, op->loc, ISA_REG_GROUP, as_text(as, begin, c->p));
        return false;
    }
    return true;
}

/* Blanks may stand before it. */
static const char *register_mark(struct as_cursor *c) {
    static const char *const marks[] = {":BL", ":BU", ":B", "+=", "++", ">>", "@"};
    const char *p = c->p;
    while (p < c->stmt->end && isspace((unsigned char)*p)) p++;
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        const size_t n = strlen(marks[i]);
        if ((size_t)(c->stmt->end - p) < n || memcmp(p, marks[i], n) != 0) continue;
        c->p = p + n;
        return marks[i];
    }
    return "";
}

static bool csr_operand(struct as *as, const char *name, struct as_operand *op) {
    enum isa_mode who;
    op->csr = isa_csr_find(name, strlen(name), &op->upper, &who);
    if (op->csr < 0) return false;
    op->kind = AS_OP_CSR;
    op->who = (uint8_t)who;
    /* Names with one number in several modes keep the widest. */
    op->expr = as_expr_number(as, op->csr, op->loc);
    return true;
}

static bool register_operand(struct as *as, struct as_cursor *c, struct as_operand *op) {
    const char *begin = c->p++;
    op->kind = AS_OP_REG;
    const uint32_t errors = as->messages->n_errors;
    if (numbered_register(as, c, op)) {
        op->mark = register_mark(c);
        op->loc = as_span(c, begin);
        return true;
    }
    if (as->messages->n_errors != errors) return false;
    const char *name = as_ident(as, c);
    op->loc = as_span(c, begin);
    for (size_t i = 0; name != NULL && i < ARRAY_LEN(named_registers); i++) {
        if (strcmp(named_registers[i].name, name) != 0) continue;
        op->file = named_registers[i].file;
        op->first = named_registers[i].first;
        op->count = named_registers[i].count;
        op->mark = register_mark(c);
        return true;
    }
    if (name != NULL && csr_operand(as, name, op)) return true;
    static const char *const names[] = {
        "$mzero", "$azero", "$azeros", "$bp", "$fp", "$lr", "$sp", "$mworker_base", "$mvertex_base",
#define ISA_CSR(name, ...) "$" #name,
#include "isa/isa_csr.def"
#undef ISA_CSR
    };
    const char *written = as_text(as, begin, c->p);
    as_error(as, op->loc, ISA_REG_NAME, written, as_suggest(as, written, names, ARRAY_LEN(names)));
    return false;
}

static bool parse_operand(struct as *as, struct as_cursor *c, struct as_operand *op) {
    as_skip(c);
    *op = (struct as_operand){.mark = "", .loc = as_here(c)};
    if (as_peek(c) == '$') return register_operand(as, c, op);
    const char *begin = c->p;
    op->kind = AS_OP_EXPR;
    op->expr = as_expr_parse(as, c);
    op->loc = as_span(c, begin);
    return op->expr != NULL;
}

/* --- Instructions. --- */

static void bundle_close(struct as *as, struct as_loc loc) {
    as->in_bundle = false;
    if (as->n_bundle == 2) as_emit_insns(as, as->bundle[0], as->bundle[1], as->bundle_loc);
    else as_error(as, loc, ISA_BUNDLE_COUNT, as->n_bundle);
}

static void instruction_done(struct as *as, struct as_insn *insn) {
    struct as_insn *second;
    if (!as_alias(as, insn, &second) || !as_match_shape(as, insn)) {
        /* Keeps its place, so that later sizes and messages stay right. */
        insn->done = true;
    }
    if (as->in_bundle) {
        if (second != NULL) as_error(as, insn->loc, ISA_BUNDLE_LDCONST);
        if (as->n_bundle < 2) as->bundle[as->n_bundle] = insn;
        as->n_bundle++;
        return;
    }
    as_emit_insns(as, insn, NULL, insn->loc);
    if (second != NULL && as_match_shape(as, second)) as_emit_insns(as, second, NULL, insn->loc);
}

/* Parses operands up to the end of the statement or a brace; false after a message. */
static bool parse_operands(struct as *as, struct as_cursor *c, struct as_insn *insn) {
    if (as_at_end(c) || as_peek(c) == '}') return true;
    for (;;) {
        if (insn->n_operands == AS_MAX_OPERANDS) {
            as_error(as, as_here(c), ISA_OPERANDS_MANY, insn->written, AS_MAX_OPERANDS);
            return false;
        }
        if (!parse_operand(as, c, &insn->operand[insn->n_operands])) return false;
        insn->n_operands++;
        if (as_at_end(c) || as_peek(c) == '}') return true;
        if (!as_accept(c, ',')) {
            as_error(as, as_here(c), ISA_EXPECTED, "',' or the end of the statement",
                     as_found(as, c));
            return false;
        }
    }
}

/* True if the cursor may go on behind the instruction (a closing brace). */
static bool parse_instruction(struct as *as, struct as_cursor *c, const char *name,
                              struct as_loc loc) {
    struct as_insn *insn = arena_new_array(as->arena, struct as_insn, 1);
    *insn = (struct as_insn){.mnemonic = name,
                             .written = name,
                             .loc = loc,
                             .mode = as->mode,
                             .allow_mode = as->allow_mode,
                             .allow_operands = as->allow_operands};
    if (!as_mnemonic_known(name)) {
        size_t n;
        const char *const *names = isa_mnemonics(&n);
        as_error(as, loc, ISA_UNKNOWN_INSTRUCTION, name, as_suggest(as, name, names, n));
        insn->done = true;
    } else if (!parse_operands(as, c, insn)) {
        insn->done = true;
    }
    if (insn->done) {
        /* Skip to a closing brace, if one ends the statement. */
        c->p = c->stmt->end;
        if (c->stmt->end[-1] == '}') c->p--;
        if (as->in_bundle && as->n_bundle < 2) as->bundle[as->n_bundle] = insn;
        if (as->in_bundle) as->n_bundle++;
        else as_emit_insns(as, insn, NULL, loc);
        return true;
    }
    instruction_done(as, insn);
    return true;
}

/* --- Labels and assignments. --- */

static bool parse_label(struct as *as, struct as_cursor *c) {
    struct as_cursor t = *c;
    const char *begin = t.p;
    uint32_t number;
    if (isdigit((unsigned char)as_peek(&t)) && decimal(&t, &number) && as_peek(&t) == ':') {
        as_local_define(as, number, as_span(&t, begin));
        c->p = t.p + 1;
        return true;
    }
    t = *c;
    const char *name = as_ident(as, &t);
    if (name == NULL) return false;
    as_skip(&t);
    if (as_peek(&t) != ':') return false;
    const struct as_loc loc = {c->stmt->line, (uint32_t)(begin - c->stmt->line->text),
                               (uint32_t)strlen(name)};
    as_label_define(as, as_symbol_get(as, name, loc), loc);
    c->p = t.p + 1;
    return true;
}

/* name = expression */
static bool parse_assignment(struct as *as, struct as_cursor *c) {
    struct as_cursor t = *c;
    const struct as_loc loc = as_here(&t);
    const char *name = as_ident(as, &t);
    as_skip(&t);
    if (name == NULL || as_peek(&t) != '=' || as_peek2(&t) == '=') return false;
    t.p++;
    struct as_expr *e = as_expr_parse(as, &t);
    if (e != NULL) as_rest_of_line(as, &t);
    if (e != NULL && strcmp(name, ".") == 0) {
        as_emit_org(as, e, 0, loc);
    } else if (e != NULL) {
        struct as_symbol *s = as_symbol_get(as, name, loc);
        if (s->kind == AS_SYM_LABEL || s->kind == AS_SYM_COMMON) {
            as_error(as, loc, ISA_DEFINED_TWICE, name, s->loc.line->number);
        } else {
            s->kind = AS_SYM_EQU;
            s->value = e;
        }
    }
    c->p = c->stmt->end;
    return true;
}

/* --- Statements. --- */

static void parse_brace(struct as *as, struct as_cursor *c) {
    const struct as_loc loc = as_here(c);
    const bool open = *c->p++ == '{';
    if (open == as->in_bundle) {
        as_error(as, loc, ISA_BRACE, open ? "'{' inside a bundle" : "'}' without '{'");
        return;
    }
    if (!open) {
        bundle_close(as, loc);
        return;
    }
    as->in_bundle = true;
    as->bundle_loc = loc;
    as->n_bundle = 0;
}

/* Directives and instructions; false when the statement is used up. */
static bool parse_word(struct as *as, struct as_cursor *c) {
    const struct as_loc loc = as_here(c);
    const char *name = as_ident(as, c);
    if (name == NULL) {
        as_error(as, loc, ISA_EXPECTED, "a label, a directive or an instruction", as_found(as, c));
        return false;
    }
    if (as_macro_call(as, name, c)) return false;
    /* Macros of the SDK headers that only leave notes for its linker. */
    if (strncmp(name, "DEF_STACK_", 10) == 0 || strncmp(name, "DEF_FUNC_", 9) == 0) return false;
    if (name[0] == '.') {
        if (!as_input_directive(as, name, c) && !as_directive(as, name, c))
            as_error(as, loc, ISA_UNKNOWN_DIRECTIVE, name, as_suggest_directive(as, name));
        return false;
    }
    return parse_instruction(as, c, name, loc);
}

void as_statement(struct as *as, const struct as_stmt *stmt) {
    struct as_cursor c = {stmt, stmt->begin};
    if (as_skipping(as)) {
        const char *name = as_peek(&c) == '.' ? as_ident(as, &c) : NULL;
        if (name != NULL) as_input_directive(as, name, &c);
        return;
    }
    if (as_cpp_line(as, &c)) return;
    while (!as_at_end(&c) && !as->stop) {
        if (as_peek(&c) == '{' || as_peek(&c) == '}') parse_brace(as, &c);
        else if (parse_label(as, &c)) continue;
        else if (parse_assignment(as, &c) || !parse_word(as, &c)) return;
    }
}
