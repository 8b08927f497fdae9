/* isa: the instruction set of the tile processor as data. Encode, decode, check, print.
 * (The assembler, objects and the linker: isa/isa_asm.h. Words of exchange rows: isa/isa_exch.h.)
 *
 * In:   words of tile memory; instructions in decoded form.
 * Out:  struct isa_insn, the decoded form that interpreters run from; words; text.
 * Units: register numbers are the number of the lowest register of a group; immediates are in the
 *       unit of the instruction, sign extended, except: branch and run immediates are bytes
 *       (field * 4), the `<< 20` forms hold the full 32-bit value, `n` counts events (field + 1).
 * Invariants: forms do not overlap; a word decodes to exactly one form or is refused (bits outside
 *       the pattern, misaligned register groups, read-only registers with an update mark);
 *       isa_encode(isa_decode(w)) == w. Checked by test_isa_vectors and test_isa_roundtrip.
 * Memory: nothing is allocated except where a GString is given. Threads: everything is immutable.
 * Errors: bool or enum; callers turn them into diagnostics or faults.
 * Facts: isa.md 1.2, 2, 3, 7, 8, encodings.csv, exchange.md 2.1.
 */
#ifndef IPU_ISA_H
#define IPU_ISA_H

#include "base/base.h"

/* Goes up whenever a row of isa.def or a provisional number changes; packages carry it. */
enum { ISA_TABLE_VERSION = 1 };

enum isa_op {
#define ISA(id, ...) ISA_OP_##id,
#include "isa/isa.def"
#undef ISA
    ISA_N_OPS
};

/* Base words of all forms. */
enum isa_word {
#define ISA(id, mnemonic, word, ...) ISA_WORD_##id = word,
#include "isa/isa.def"
#undef ISA
};

enum isa_pipe { ISA_MAIN, ISA_AUX, ISA_SOLO };
enum isa_mode { ISA_MODE_W = 1, ISA_MODE_S = 2, ISA_MODE_B = 3 }; /* bits: worker, supervisor */
enum isa_kind { ISA_KIND_INT, ISA_KIND_BITS, ISA_KIND_FLOAT, ISA_KIND_MEM, ISA_KIND_CONTROL,
                ISA_KIND_SYSTEM, ISA_KIND_EXCH };
enum isa_evidence { ISA_EV_WORDS, ISA_EV_WORDS_TD, ISA_EV_TD, ISA_EV_UNPROVEN, ISA_EV_THIRD_PARTY,
                    ISA_EV_SDK };

/* One memory access: width in bytes, 0 = none. */
struct isa_access {
    uint8_t bytes;
    bool store;
};
enum { ISA_MAX_ACCESSES = 3, ISA_MAX_OPERANDS = 6 };

enum isa_role {
#define ISA_ROLE(id, member, access, csv) ISA_ROLE_##id,
#include "isa/isa_operand.def"
#undef ISA_ROLE
};
enum isa_class {
#define ISA_CLASS(id, ...) ISA_CLASS_##id,
#include "isa/isa_operand.def"
#undef ISA_CLASS
};
enum isa_field {
#define ISA_FIELD(id, ...) ISA_FIELD_##id,
#include "isa/isa_operand.def"
#undef ISA_FIELD
};

struct isa_operand {
    uint8_t role, class, field; /* enum isa_role, isa_class, isa_field */
};

struct isa_form {
    const char *mnemonic;
    const char *id;      /* as in isa.def */
    uint32_t word, mask; /* a word belongs to the form if (word & mask) == form.word */
    uint8_t pipe, who, kind, slots, evidence, n_operands, n_words;
    struct isa_access access[ISA_MAX_ACCESSES];
    struct isa_operand operand[ISA_MAX_OPERANDS]; /* in assembly order */
};
const struct isa_form *isa_form(enum isa_op op);

/* A decoded instruction. Members that the form has no operand for are 0.
 *
 *   memory forms   base, delta, off (offset or stride register), addr (pointer register or pair
 *                  with packed addresses), imm (offset, step or stride selector)
 *   stores         the stored register is s0        loads   d (and d1)
 *   rpt            imm = bundles - 1, imm2 = count of the immediate form; register form: s0
 *   branches       imm = byte address; call: d = link register
 *   run, runall    s0 = entry, s1 = vertex base, imm = offset in bytes
 *   get, put...    imm = index of the register as encoded (0..255)
 *   movz           d is read and written            brnzdec: s0 is read and written
 *   exchange       imm2 = n, imm = address, pointer, mux or delta as in the field, sel, sctl; the
 *                  second word of sendpicp in x14 and p18
 */
struct isa_insn {
    uint16_t op; /* enum isa_op */
    uint8_t d, d1, s0, s1, s2;
    uint8_t base, delta, off, addr;
    uint8_t sel, sctl;
    uint8_t n_words; /* 1; 2 for sendpicp */
    uint16_t x14;
    int32_t imm;
    uint32_t imm2;
    uint32_t p18;
};

/* Decodes one instruction whose bit 31 has been cleared by the caller if it stood in a bundle.
 * `next` is the word behind it (used by sendpicp only). False: no such instruction. */
bool isa_decode(uint32_t word, uint32_t next, struct isa_insn *ret);
/* The words of a decoded instruction (bit 31 clear except sendpicp); number of words. The members
 * must be in range for the form; isa_insn_check tells. */
uint32_t isa_encode(const struct isa_insn *insn, uint32_t ret_words[2]);
/* False if a member does not fit the form's operand (*ret_operand says which, may be NULL). */
bool isa_insn_check(const struct isa_insn *insn, uint32_t *ret_operand);
/* Operands by position, in assembly order, in the units of struct isa_insn. */
int64_t isa_operand_get(const struct isa_insn *insn, uint32_t i);
void isa_operand_set(struct isa_insn *insn, uint32_t i, int64_t value);

/* What stands at an address: a lone instruction or a bundle. */
enum isa_slot_error {
    ISA_SLOT_OK,
    ISA_SLOT_UNKNOWN,    /* no such instruction */
    ISA_SLOT_TRUNCATED,  /* the second word is missing */
    ISA_SLOT_MISALIGNED, /* a bundle or sendpicp at an address that is not a multiple of 8 */
    ISA_SLOT_PAIR,       /* bit 31 of the two words or their pipelines do not make a bundle */
    ISA_SLOT_BUNDLE,     /* isa_bundle_check refuses it */
};
struct isa_slot {
    struct isa_insn main, aux; /* a lone aux instruction is in `main` too */
    bool bundle;
    uint8_t n_words;
};
enum isa_slot_error isa_slot_decode(const uint32_t *words, size_t n_words, uint32_t address,
                                    struct isa_slot *ret);
const char *isa_slot_error_text(enum isa_slot_error e);

enum isa_bundle_error {
    ISA_BUNDLE_OK,
    ISA_BUNDLE_SOLO,    /* one of them never stands in a bundle */
    ISA_BUNDLE_PIPES,   /* not main first and aux second */
    ISA_BUNDLE_DEST,    /* both write the same register, zero registers included */
    ISA_BUNDLE_MODE,    /* an instruction of the supervisor */
};
enum isa_bundle_error isa_bundle_check(const struct isa_insn *main, const struct isa_insn *aux);

/* Registers read and written, bit n = register n; zero and read-only registers included, as the
 * bundle rule needs them. ld64a32 counts its whole quad as written. Broadcasts read one. */
struct isa_regs {
    uint16_t m_read, m_write, a_read, a_write;
};
struct isa_regs isa_insn_regs(const struct isa_insn *insn);
/* Whether it may stand in the body of rpt: kinds CONTROL, SYSTEM and EXCH may not (isa 1.4). */
bool isa_in_repeat(enum isa_op op);

/* --- Registers of the machine: isa_csr.def. --- */

enum isa_csr {
#define ISA_CSR(name, space, who, index) ISA_CSR_##name = index,
#include "isa/isa_csr.def"
#undef ISA_CSR
};
/* Index (upper space: without 0x100), or -1. `name` without the $; *ret_upper tells the space. */
int isa_csr_find(const char *name, size_t len, bool *ret_upper, enum isa_mode *ret_who);
/* Name without the $, or NULL when the mode does not settle it. */
const char *isa_csr_name(uint32_t index, bool upper, enum isa_mode mode);

/* --- Symbolic flags of AMP, SLIC, istacc, stacc: isa_flag.def. Numbers are provisional. --- */

enum isa_flag {
#define ISA_FLAG(name, family, value) ISA_FLAG_##name = value,
#include "isa/isa_flag.def"
#undef ISA_FLAG
};
/* Fields of the provisional numbers. AMP: engines 4, 2, 1 and phase. SLIC: taps, weight, U call. */
enum { ISA_AMP_E4 = 0, ISA_AMP_E2 = 1, ISA_AMP_E1 = 2, ISA_AMP_ENGINES_SHIFT = 3,
       ISA_AMP_PHASE_MASK = 7 };
enum { ISA_SLIC_W_MASK = 3, ISA_SLIC_3TAP = 4, ISA_SLIC_UPPER = 8 };
/* The number of a flag name, or -1. */
int isa_flag_find(const char *name, size_t len);
/* The name of a number for this form, or NULL. */
const char *isa_flag_name(enum isa_op op, uint32_t value);
/* True for the forms whose flag numbers are not public. */
bool isa_flag_provisional(enum isa_op op);

/* --- Printing. --- */

struct isa_print {
    enum isa_mode mode;  /* names of CSRs depend on it; 0 = not known */
    bool flag_names;     /* AMP flags by their names (the numbers must be the provisional ones) */
    /* Name for an address of code, or NULL to print the immediate as the assembler reads it. */
    const char *(*symbol)(uint32_t address, void *context);
    void *context;
    const char *relocated; /* text of the operand that a relocation fills in, or NULL */
};
/* One instruction without braces. `options` may be NULL. */
void isa_insn_print(GString *out, const struct isa_insn *insn, const struct isa_print *options);
/* `main` or `{ main ; aux }`. */
void isa_slot_print(GString *out, const struct isa_slot *slot, const struct isa_print *options);

/* All mnemonics and aliases, sorted, for suggestions and the manual. */
const char *const *isa_mnemonics(size_t *ret_n);
/* What a mnemonic of the table does, in a line; NULL if there is none such. */
const char *isa_doc(const char *mnemonic);
/* The manual in Markdown. */
void isa_manual(GString *out);
/* The forms, machine registers and flags whose names match, with `*` and `?`; `$` in front: registers only.
 * False if there are none. */
bool isa_manual_entry(GString *out, const char *pattern);
/* "; did you mean 'x'?" among them, or ""; g_free'd. */
char *isa_manual_suggest(const char *name);

#endif
