/* Inside the room isa: parts of objects shared by assembler, reader and linker. */
#ifndef IPU_ISA_OBJ_H
#define IPU_ISA_OBJ_H

#include "isa/isa_asm.h"

void isa_messages_add(struct isa_messages *m, const struct isa_message *message);
/* Kind of relocation (enum isa_reloc_type) that fills in an operand, or ISA_R_NONE. */
uint8_t isa_reloc_type(const struct isa_operand *o);
struct isa_object *isa_object_new(const char *name);
void isa_section_free(struct isa_section *s);
struct isa_image *isa_image_new(void);

#endif
