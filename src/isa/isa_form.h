/* Inside the room isa: descriptions of operand classes, fields and roles, from isa_operand.def. */
#ifndef IPU_ISA_FORM_H
#define IPU_ISA_FORM_H

#include "isa/isa.h"

enum { ISA_IS_IMM = 0, ISA_IS_REG = 1 };
enum { ISA_IS_PLAIN = 0, ISA_IS_BOTH = 1 };
enum { ISA_IS_READ = 0, ISA_IS_WRITE = 1 };

struct isa_class_info {
    bool reg;
    char file;    /* registers: M, A; immediates: Z, S, T, W, N, E */
    uint8_t n;    /* registers in the group, or bits of the immediate */
    bool both;    /* read and written back */
    uint8_t last; /* highest register number */
    const char *csv, *mark;
};
extern const struct isa_class_info isa_classes[];

struct isa_field_info {
    const char *csv;
    uint8_t word, n;
    uint8_t lo[3], bits[3]; /* most significant piece first */
};
extern const struct isa_field_info isa_fields[];

struct isa_role_info {
    const char *csv;
    bool write;
    uint8_t offset, size; /* member of struct isa_insn */
};
extern const struct isa_role_info isa_roles[];

/* Bits of the field of operand i. */
uint32_t isa_field_bits(const struct isa_field_info *field);
/* Whether `value`, in the units of struct isa_insn, fits operand i of a form; the field's content.
 */
bool isa_operand_field(const struct isa_operand *operand, int64_t value, uint32_t *ret_field);
/* Range of an immediate in the units of struct isa_insn, for messages. */
void isa_operand_range(const struct isa_operand *operand, int64_t *ret_min, int64_t *ret_max);

/* "; did you mean 'x'?" for the names within two edits of `name`, or ""; to be g_free'd. */
char *isa_suggest(const char *name, const char *const *names, size_t n);

#endif
