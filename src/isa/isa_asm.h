/* isa_asm: assembler, objects, linker.
 *
 * In:   assembly text (Colossus syntax, isa 3.1, after the C preprocessor); objects; a layout.
 * Out:  struct isa_object (ELF32 in files), struct isa_image: segments at addresses, symbols, line
 * table. Units: bytes and byte addresses. Invariants: sections with bundles are aligned to 8;
 * relocation offsets lie inside their section; image segments are sorted by address and disjoint,
 * lines and symbols sorted by address. Memory: results are freed with their _free function; nothing
 * refers to the inputs afterwards. Threads: distinct calls share nothing. Errors: faults of sources
 * and objects go to struct isa_messages, many per run, with file, line, column; the functions then
 * return NULL. Numbers: diag.def 200..299. Facts: isa 1.2 (bundles, padding), 1.4 (repeat
 * bodies), 3.1, 8.9 (objects, relocations).
 */
#ifndef IPU_ISA_ASM_H
#define IPU_ISA_ASM_H

#include "isa/isa.h"

/* --- Messages. --- */

enum isa_severity { ISA_ERROR, ISA_WARNING, ISA_NOTE };
struct isa_message {
    enum isa_severity severity;
    uint32_t code; /* number of diag.def, 0 for notes */
    char *file;
    uint32_t line, column; /* from 1; 0 = unknown */
    uint32_t width;        /* characters underlined */
    char *text;
    char *source;   /* the line of source, may be NULL */
    uint64_t order; /* messages of one run are sorted by it: place in the source */
};
struct isa_messages {
    GPtrArray *all; /* struct isa_message * */
    uint32_t n_errors, n_warnings;
    uint32_t max_errors; /* 0 = 20; further errors are counted only */
};
void isa_messages_init(struct isa_messages *m);
void isa_messages_clear(struct isa_messages *m);
/* file:line:column: error: text (E210), the source line and a caret, per message. */
void isa_messages_print(const struct isa_messages *m, GString *out);

/* --- Objects. --- */

enum { ISA_SECTION_WRITE = 1, ISA_SECTION_ALLOC = 2, ISA_SECTION_EXEC = 4, ISA_SECTION_NOBITS = 8 };
/* Section numbers of symbols that lie in no section. Common ones have their alignment as value: the
 * linker gives the largest of a name a place, unless the name is defined. */
enum { ISA_IN_NONE = -1, ISA_IN_ABSOLUTE = -2, ISA_IN_COMMON = -3 };
enum isa_binding { ISA_LOCAL, ISA_GLOBAL, ISA_WEAK };
enum isa_symbol_type { ISA_SYM_NONE, ISA_SYM_OBJECT, ISA_SYM_FUNCTION, ISA_SYM_SECTION };

/* Relocation numbers of the reference toolchain (isa 8.9). S2: value >> 2. Image-relative kinds
 * subtract the base of tile memory. */
enum isa_reloc_type {
    ISA_R_NONE = 0,
    ISA_R_8 = 1,
    ISA_R_16 = 2,
    ISA_R_20 = 3,
    ISA_R_32 = 4,
    ISA_R_64 = 5,
    ISA_R_RELATIVE_16_S2 = 6,
    ISA_R_18_S2 = 7,
    ISA_R_19_S2 = 8,
    ISA_R_RUN = 9,
    ISA_R_16_S3 = 14,
    ISA_R_16_S4 = 15,
    ISA_R_16_S5 = 16,
    ISA_R_21 = 17,
};
struct isa_reloc {
    uint32_t offset;
    uint32_t symbol; /* index in the object's symbols */
    int32_t addend;
    uint8_t type;
};
struct isa_line {
    uint32_t offset; /* in the section; image: address */
    uint32_t file;   /* index in files */
    uint32_t line;
};
struct isa_section {
    char *name;
    uint32_t flags, align;
    uint32_t size; /* = bytes->len unless NOBITS */
    GByteArray *bytes;
    GArray *relocs; /* struct isa_reloc, by offset */
    GArray *lines;  /* struct isa_line, by offset: from here on, this line */
};
struct isa_symbol {
    char *name;
    int32_t section; /* index, ISA_IN_NONE (undefined), ISA_IN_ABSOLUTE or ISA_IN_COMMON */
    uint32_t value;  /* offset in the section, or the absolute value */
    uint32_t size;
    uint8_t binding, type;
};
struct isa_object {
    char *name;          /* file it came from, for messages */
    GPtrArray *sections; /* struct isa_section * */
    GArray *symbols;     /* struct isa_symbol */
    GPtrArray *files;    /* char *: source files of the line tables */
    bool
        hardware; /* flags of AMP... carry the numbers of an SDK header, not the provisional ones */
};
void isa_object_free(struct isa_object *o);
/* ELF32 relocatable. Reading trusts nothing; the text of the error names what is wrong and where.
 */
void isa_object_write(const struct isa_object *o, GByteArray *out);
struct isa_object *isa_object_read(const void *data, size_t size, const char *name, GError **error);

/* --- Assembler. --- */

struct isa_asm_options {
    enum isa_mode mode;          /* of the start of the file; 0: .worker and .supervisor decide */
    bool pad_is_error;           /* an inserted nop is an error (cycle-critical sources) */
    bool allow_invalid_operands; /* $a8..$a13 */
    bool target_hardware; /* flags need sdk_header; instructions without public numbers are refused
                           */
    const char *sdk_header; /* text of a header whose #define lines give the numbers, or NULL */
    const char *const *include_dirs; /* of .include and .incbin, NULL-terminated; may be NULL */
    GString *listing; /* filled if not NULL: offsets, words, source; inserted nops are marked */
};
/* `options` may be NULL. NULL result: *messages says why. Warnings may be there with a result. */
struct isa_object *isa_asm_source(const char *text, size_t length, const char *filename,
                                  const struct isa_asm_options *options,
                                  struct isa_messages *messages);

/* Runs the C preprocessor (the program named by the environment's CPP, else cc -E) over a file with
 * the arguments `flags` (NULL-terminated, may be NULL: -I, -D). The result is g_free'd. */
bool isa_preprocess(const char *path, const char *const *flags, char **ret_text, size_t *ret_size,
                    GError **error);

/* --- Linker. --- */

struct isa_define {
    const char *name;
    uint32_t value;
};
/* Sections whose name is `name` or starts with `name` and a dot go to `base` on; first match wins.
 */
struct isa_place {
    const char *name;
    uint32_t base;
};
/* Sections .interleaved and .interleaved.* that no place takes go to the interleaved region. */
struct isa_layout {
    uint32_t text_base; /* executable sections; 0 = TARGET_CODE_BASE */
    bool base_zero;     /* a text_base of 0 is the address 0 */
    uint32_t data_base; /* others; 0 = behind the text, on the next 8 bytes */
    const struct isa_place *places;
    uint32_t n_places;
    const struct isa_define *defines; /* absolute symbols */
    uint32_t n_defines;
    const char *entry; /* symbol or NULL */
    bool anywhere;     /* addresses are not held against the memory map */
    /* With roots only sections reachable from them (and from entry) are kept. */
    const char *const *roots;
    uint32_t n_roots;
};
struct isa_segment {
    uint32_t address, size;
    uint8_t *bytes; /* NULL for segments without contents (zero or unwritten) */
    bool exec;
    char *name; /* section name */
};
struct isa_image_symbol {
    char *name;
    uint32_t address, size;
    uint8_t binding, type;
    bool absolute;
};
struct isa_image {
    GArray *segments; /* struct isa_segment */
    GArray *symbols;  /* struct isa_image_symbol, by address */
    GArray *lines;    /* struct isa_line, offset = address */
    GPtrArray *files;
    uint32_t entry; /* 0 without one */
    bool hardware;
};
struct isa_image *isa_link(struct isa_object *const *objects, uint32_t n_objects,
                           const struct isa_layout *layout, struct isa_messages *messages);
void isa_image_free(struct isa_image *image);
/* The symbol by name; the nearest symbol at or below an address inside a segment; NULL if none. */
const struct isa_image_symbol *isa_image_find(const struct isa_image *image, const char *name);
const struct isa_image_symbol *isa_image_at(const struct isa_image *image, uint32_t address);
/* Source line of an address; *ret_file is NULL when unknown. */
uint32_t isa_image_line(const struct isa_image *image, uint32_t address, const char **ret_file);
/* Contents from the first to the last address, gaps as zeros. */
void isa_image_flat(const struct isa_image *image, GByteArray *out);
/* ELF32 executable with symbols and line table; the reader trusts nothing. */
void isa_image_write(const struct isa_image *image, GByteArray *out);
struct isa_image *isa_image_read(const void *data, size_t size, const char *name, GError **error);

/* --- Listings of what is there. --- */

enum { ISA_DUMP_SECTIONS = 1, ISA_DUMP_SYMBOLS = 2, ISA_DUMP_CODE = 4, ISA_DUMP_DATA = 8 };
/* Disassembly of bytes from `address` on, a line each: address, words, text; what is left behind the
 * last word as .byte. */
void isa_dump_bytes(GString *out, const uint8_t *bytes, size_t size, uint32_t address,
                    const struct isa_print *options);
void isa_object_dump(GString *out, const struct isa_object *o, uint32_t what,
                     const struct isa_print *options);
/* Source that assembles to the same contents, relocations and symbols; false (and part of the text)
 * for objects of other tools that hold what the assembler cannot say. */
bool isa_object_source(GString *out, const struct isa_object *o, GError **error);
void isa_image_dump(GString *out, const struct isa_image *image, uint32_t what,
                    const struct isa_print *options);

#endif
