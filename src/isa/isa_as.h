/* Inside the assembler: state of one run, shared by its files.
 *
 *   isa_as_input.c   lines and statements, included files, conditions
 *   isa_as_macro.c   macros, repetition
 *   isa_as_expr.c    numbers, symbols, expressions
 *   isa_as_parse.c   statements, labels, operands, bundles
 *   isa_as_alias.c   aliases and pseudo-instructions, written as real ones
 *   isa_as_match.c   choice of the form, words, relocations
 *   isa_as_dir.c     directives: sections, symbols, modes, included files
 *   isa_as_data.c    directives: data, space, alignment
 *   isa_as_emit.c    items of sections: padding, checks of bundles and repeat bodies, second pass
 *   isa_asm.c        the run, messages
 *
 * Two passes: the first reads statements in order and gives every instruction its place (sizes do
 * not depend on values); the second knows all labels, chooses forms, and writes words and
 * relocations. */
#ifndef IPU_ISA_AS_H
#define IPU_ISA_AS_H

#include "isa/isa_asm.h"
#include "isa/isa_form.h"

struct as;

/* --- Text. --- */

struct as_line {
    const char *text; /* without the newline, comments blanked */
    uint32_t file, number;
    const struct as_frame *frame; /* macro or repetition it came out of, or NULL */
    uint32_t order;               /* number of its last statement in the order of reading */
};
struct as_loc {
    const struct as_line *line;
    uint32_t column, width; /* column from 0 */
};
struct as_frame {
    const char *what; /* NULL: an included file */
    struct as_loc at;
    uint32_t depth;
};
/* A piece of a line up to a semicolon. */
struct as_stmt {
    const struct as_line *line;
    const char *begin, *end;
};
struct as_cursor {
    const struct as_stmt *stmt;
    const char *p;
};

static inline char as_peek(const struct as_cursor *c) {
    return c->p < c->stmt->end ? *c->p : 0;
}
static inline char as_peek2(const struct as_cursor *c) {
    return c->p + 1 < c->stmt->end ? c->p[1] : 0;
}
void as_skip(struct as_cursor *c);              /* blanks */
bool as_accept(struct as_cursor *c, char want); /* skips blanks before */
bool as_at_end(struct as_cursor *c);
struct as_loc as_here(const struct as_cursor *c); /* the token at the cursor, for messages */
/* Location of the text from `begin` to the cursor. */
struct as_loc as_span(const struct as_cursor *c, const char *begin);
/* Identifier at the cursor, in the arena; NULL (cursor unmoved) if there is none. */
const char *as_ident(struct as *as, struct as_cursor *c);
/* What stands at the cursor, for "found ...". */
const char *as_found(struct as *as, const struct as_cursor *c);
const char *as_text(struct as *as, const char *begin, const char *end);

/* An error if the statement goes on. */
void as_rest_of_line(struct as *as, struct as_cursor *c);
bool as_ident_start(char ch);
bool as_ident_char(char ch);
const char *as_ident_end(const struct as_cursor *c);
/* Behind the string or character in quotes at p, or p itself. */
const char *as_skip_quoted(const char *p, const char *end);
/* Without blanks at the ends, and without the quotes if it is one string. */
const char *as_trimmed(struct as *as, const char *b, const char *e);

struct as_input {
    struct as_input *parent;
    struct as_stmt *stmts;
    uint32_t n, next;
    uint32_t cond_depth;
    bool is_macro;
};
enum { AS_MAX_TEXT = 64 * 1024 * 1024 }; /* of all expansions and included files */
/* Pushes text as input, its lines numbered from 1; `frame` if it is included. */
void as_push_text(struct as *as, const char *text, size_t length, uint32_t file,
                  const struct as_frame *frame);
void as_push_input(struct as *as, GArray *stmts, bool is_macro);
void as_cut_statements(const struct as_line *line, GArray *out);
/* NULL after a message: too deep. */
const struct as_frame *as_frame_new(struct as *as, const char *what, struct as_loc at);
/* True after a message about a directive of the preprocessor at the cursor. */
bool as_cpp_line(struct as *as, struct as_cursor *c);
/* Next statement, from macros first; false at the end. */
bool as_next(struct as *as, struct as_stmt *ret);
bool as_skipping(const struct as *as); /* inside a condition that does not hold */
bool as_condition_directive(struct as *as, const char *name, struct as_cursor *c);
/* Directives of input: conditions, macros, repetition. False if `name` is none of them. */
bool as_input_directive(struct as *as, const char *name, struct as_cursor *c);
/* Expands the macro `name` if there is one. */
bool as_macro_call(struct as *as, const char *name, struct as_cursor *c);

/* --- Symbols and expressions. --- */

enum as_symbol_kind { AS_SYM_UNDEFINED, AS_SYM_LABEL, AS_SYM_EQU, AS_SYM_COMMON };
struct as_symbol {
    const char *name; /* NULL: anonymous (numeric labels, dot) */
    enum as_symbol_kind kind;
    struct as_section *section;   /* of a label; NULL while it waits for its item */
    uint32_t offset;              /* of .comm: its alignment */
    struct as_expr *value, *size; /* .set; .size */
    bool referenced, in_eval, redefinable;
    uint8_t binding, type;
    bool binding_set;
    struct as_loc loc; /* definition, or first use */
    uint32_t out;      /* index in the object + 1 */
};
enum as_expr_kind { AS_NUMBER, AS_SYMBOL, AS_UNARY, AS_BINARY };
struct as_expr {
    enum as_expr_kind kind;
    uint8_t op;
    char literal; /* 'h', 'f': the number is the pattern of a half or single literal */
    int64_t number;
    struct as_symbol *symbol;
    struct as_expr *a, *b; /* of a symbol set by .set: `a` is what it stood for here, if set */
    struct as_loc loc;
};
/* absolute: symbol NULL. Else address of `symbol` plus value. */
struct as_value {
    int64_t value;
    struct as_symbol *symbol;
};
struct as_symbol *as_symbol_get(struct as *as, const char *name, struct as_loc loc);
struct as_symbol *as_symbol_new(struct as *as, const char *name, struct as_loc loc);
void as_label_define(struct as *as, struct as_symbol *s, struct as_loc loc);
struct as_symbol *as_local_label(struct as *as, uint32_t number, bool forward, struct as_loc loc);
void as_local_define(struct as *as, uint32_t number, struct as_loc loc);
/* NULL after a message. */
struct as_expr *as_expr_parse(struct as *as, struct as_cursor *c);
struct as_expr *as_expr_number(struct as *as, int64_t v, struct as_loc loc);
struct as_expr *as_expr_negate(struct as *as, struct as_expr *e);
/* False when it is not (yet) known or not well formed; with `report` a message says why. */
bool as_eval(struct as *as, const struct as_expr *e, bool report, struct as_value *ret);
/* Parses and evaluates a value that must be absolute now. */
bool as_absolute(struct as *as, struct as_cursor *c, int64_t *ret);
/* Constants that need no definition: flags, CSR fields, machine constants. */
bool as_builtin(struct as *as, const char *name, int64_t *ret);
/* "; did you mean 'x'?" or "", from the symbols that have a value. */
const char *as_suggest_symbol(struct as *as, const char *name);
/* Number at the cursor: integers, 'c', 1.5h, infh; *ret_literal as in struct as_expr. */
bool as_number(struct as *as, struct as_cursor *c, int64_t *ret, char *ret_literal);
uint16_t as_half_bits(double v);

/* --- Instructions. --- */

enum as_operand_kind { AS_OP_REG, AS_OP_CSR, AS_OP_EXPR };
struct as_operand {
    enum as_operand_kind kind;
    char file; /* 'M' or 'A' */
    uint8_t first, count;
    const char *mark; /* "", "+=", "++", "@", ">>", ":B", ":BL", ":BU" */
    struct as_expr *expr;
    int csr; /* index */
    bool upper;
    uint8_t who; /* of the CSR */
    struct as_loc loc;
};
enum { AS_MAX_OPERANDS = 8 };
struct as_insn {
    const char *mnemonic; /* of the table */
    const char *written;  /* as in the source */
    char force;           /* 'Z' or 'S': kind of a 16-bit immediate; 0: by value */
    uint32_t n_operands;
    struct as_operand operand[AS_MAX_OPERANDS];
    struct as_loc loc;
    uint8_t mode;
    bool allow_mode, allow_operands;
    struct isa_insn insn; /* of the second pass */
    bool done;
};
/* Rewrites aliases in place. ldconst may give a second instruction in *ret_second (else NULL). */
bool as_alias(struct as *as, struct as_insn *insn, struct as_insn **ret_second);
/* Whether some form fits as far as registers tell; a message if not. */
bool as_match_shape(struct as *as, struct as_insn *insn);
/* Chooses the form; false after a message. A relocation type other than NONE comes with its symbol.
 */
struct as_reloc {
    uint8_t type;
    struct as_value value;
};
bool as_match(struct as *as, struct as_insn *insn, struct as_reloc *ret);
bool as_mnemonic_known(const char *name);
/* Whether two results of an instruction go to one register, which the assembler refuses. */
bool as_destinations_meet(const struct isa_insn *insn);

/* --- Sections. --- */

enum as_item_kind { AS_ITEM_INSN, AS_ITEM_BUNDLE, AS_ITEM_PAD, AS_ITEM_DATA };
struct as_item {
    enum as_item_kind kind;
    uint32_t offset, size;
    struct as_insn *insn[2];
    struct as_loc loc;
    bool allow_optimizations, allow_bundle, warn_bundle, allow_repeat;
};
struct as_fixup {
    uint32_t offset;
    uint8_t size; /* bytes */
    struct as_expr *expr;
};
struct as_section {
    struct isa_section *out;
    uint32_t index;
    GArray *items;  /* struct as_item */
    GArray *fixups; /* struct as_fixup: data */
};
struct as_section *as_section_get(struct as *as, const char *name, uint32_t flags);
void as_emit_insns(struct as *as, struct as_insn *a, struct as_insn *b, struct as_loc loc);
void as_emit_bytes(struct as *as, const void *bytes, uint32_t n, struct as_loc loc);
void as_emit_value(struct as *as, struct as_expr *e, uint32_t size, struct as_loc loc);
/* Nothing if the gap is larger than max_skip (0: no limit). Code is padded with nops if fill < 0.
 */
void as_emit_align(struct as *as, uint32_t align, int64_t fill, int64_t max_skip,
                   struct as_loc loc);
/* Fills up to the place `to`: a number, or a label of this section. */
void as_emit_org(struct as *as, struct as_expr *to, uint8_t fill, struct as_loc loc);
void as_emit_space(struct as *as, uint32_t n, uint8_t fill, struct as_loc loc);
void as_bind_labels(struct as *as);
void as_second_pass(struct as *as);
void as_listing(struct as *as, GString *out);

typedef void as_handler(struct as *as, struct as_cursor *c, int argument);
struct as_directive_row {
    const char *name; /* NULL: the end */
    as_handler *run;
    int argument;
};
extern const struct as_directive_row as_directives[], as_data_directives[];
bool as_directive(struct as *as, const char *name, struct as_cursor *c);
const char *as_suggest_directive(struct as *as, const char *name);
struct as_loc as_whole(const struct as_cursor *c); /* the statement */
/* Strings in quotes with their escapes; NULL after a message. */
GString *as_string(struct as *as, struct as_cursor *c);
/* `, number`, which may be missing; false after a message. */
bool as_optional_number(struct as *as, struct as_cursor *c, int64_t *ret);
void as_statement(struct as *as, const struct as_stmt *stmt);

/* --- The run. --- */

struct as_cond {
    bool holds, taken, outer, in_else;
    struct as_loc loc;
};
struct as {
    struct arena *arena;
    const struct isa_asm_options *options;
    struct isa_messages *messages;
    struct isa_object *object;
    GHashTable *symbols; /* name -> struct as_symbol */
    GPtrArray *symbol_order;
    GHashTable *files;   /* name -> index + 1 */
    GHashTable *macros;  /* name -> struct as_macro */
    GHashTable *sdk;     /* flag name -> number + 1, of the SDK header */
    GPtrArray *sections; /* struct as_section */
    struct as_section *section, *previous;
    GHashTable *section_names; /* name -> struct as_section */
    GArray *section_stack;
    GPtrArray *pending; /* labels waiting for their item */
    GHashTable *local_back, *local_forward;
    struct as_input *input;
    GArray *conds; /* struct as_cond */
    uint32_t n_expansions, n_statements, eval_depth;
    uint64_t n_bytes, n_text;
    uint8_t mode;
    bool altmacro, stop;
    bool allow_optimizations, warn_bundles, allow_operands, allow_mode, allow_repeat;
    /* The bundle being read. */
    bool in_bundle;
    struct as_loc bundle_loc;
    struct as_insn *bundle[3];
    uint32_t n_bundle;
};

void as_report(struct as *as, struct as_loc loc, enum isa_severity severity, uint32_t code,
               const char *format, ...) G_GNUC_PRINTF(5, 6);
#define as_error(as, loc, name, ...)                                                               \
    as_report((as), (loc), ISA_ERROR, DIAG_##name, DIAG_TEXT_##name, ##__VA_ARGS__)
#define as_warn(as, loc, name, ...)                                                                \
    as_report((as), (loc), ISA_WARNING, DIAG_##name, DIAG_TEXT_##name, ##__VA_ARGS__)
/* "; did you mean 'x'?" or "", from the given names. */
const char *as_suggest(struct as *as, const char *name, const char *const *names, size_t n);
uint32_t as_file(struct as *as, const char *name);

#endif
