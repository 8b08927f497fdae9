/* Inside the room isa: the parts of ELF32 that objects and images use. */
#ifndef IPU_ISA_ELF_H
#define IPU_ISA_ELF_H

#include "isa/isa_obj.h"

enum {
    ELF_MACHINE = 0xf8,
    ELF_REL = 1,
    ELF_EXEC = 2,
    ELF_HEADER = 52,
    ELF_SECTION = 40,
    ELF_SEGMENT = 32,
    ELF_SYMBOL = 16,
    ELF_RELA = 12
};
enum {
    SHT_NULL_ = 0,
    SHT_PROGBITS_ = 1,
    SHT_SYMTAB_ = 2,
    SHT_STRTAB_ = 3,
    SHT_RELA_ = 4,
    SHT_NOBITS_ = 8,
    SHT_REL_ = 9
};
enum { SHN_ABSOLUTE = 0xfff1, SHN_COMMON_ = 0xfff2, SHN_RESERVED = 0xff00 };
/* Flags of the header: bit 0 hardware numbers; from bit 8 the version of the instruction table. */
enum { ELF_FLAG_HARDWARE = 1, ELF_VERSION_SHIFT = 8 };

/* --- Writing. --- */

struct elf_section {
    const char *name;
    uint32_t type, flags, address, link, info, align, entry;
    const uint8_t *bytes;
    uint32_t size;
};
struct elf_out {
    GArray *sections; /* struct elf_section, without the null one: number 1 is the first */
    GPtrArray *owned; /* GByteArray of contents made on the way */
    uint32_t type, flags, entry;
};
void elf_out_init(struct elf_out *e, uint32_t type, bool hardware);
/* Adds a section; its number. */
uint32_t elf_out_add(struct elf_out *e, struct elf_section section);
GByteArray *elf_out_buffer(struct elf_out *e);
void elf_out_finish(struct elf_out *e, GByteArray *out);
void elf_put32(GByteArray *b, uint32_t v);
void elf_put16(GByteArray *b, uint32_t v);
/* The string's offset; the buffer starts with a 0. */
uint32_t elf_put_string(GByteArray *b, const char *s);

/* --- Reading. --- */

struct elf_in {
    const uint8_t *data;
    size_t size;
    const char *name;
    uint32_t type, flags, entry, n_sections;
    struct elf_section *sections; /* n_sections, names and contents point into data */
};
/* Checks the header and every section header; false with an error. */
bool elf_in_open(struct elf_in *e, const void *data, size_t size, const char *name, GError **error);
void elf_in_close(struct elf_in *e);
uint32_t elf_get32(const uint8_t *p);
uint32_t elf_get16(const uint8_t *p);
/* A string of a string table, or NULL if it does not end inside. */
const char *elf_string(const struct elf_section *strings, uint32_t offset);
bool elf_fail(const struct elf_in *e, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* --- Symbols and source lines (isa_elf_table.c). --- */

struct elf_symbol {
    const char *name;
    uint32_t value, size;
    uint8_t binding, type;
    uint32_t section; /* as in the file: 0, a number, SHN_ABSOLUTE */
};
/* Adds one, and first of all the symbol of nothing. */
void elf_put_symbol(GByteArray *symbols, GByteArray *strings, const struct elf_symbol *s);
/* The sections of symbols, which it returns the number of, and strings; n_locals counts that of
 * nothing. */
uint32_t elf_out_symbols(struct elf_out *e, GByteArray *symbols, GByteArray *strings,
                         uint32_t n_locals);
/* Calls f for each symbol but that of nothing; names point into the file. */
typedef bool elf_symbol_fn(void *user, uint32_t number, const struct elf_symbol *s, GError **error);
bool elf_read_symbols(const struct elf_in *e, const struct elf_section *table, elf_symbol_fn *f,
                      void *user, GError **error);

/* The section of source lines: files and {section or 0, offset or address, file, line} records. */
enum { ELF_LINES_MAGIC = 0x4c555049 }; /* "IPUL" */
#define ELF_LINES_NAME ".ipu.lines"
void elf_put_files(GByteArray *lines, const GPtrArray *files);
void elf_put_lines(GByteArray *lines, const GArray *of_section, uint32_t section);
void elf_out_lines(struct elf_out *e, const GByteArray *lines);
bool elf_is_lines(const struct elf_section *s);
/* Adds to files, and to the lists (struct isa_line, in order of offsets) that f gives for the
 * section numbers of records; NULL for a number that can't have lines. */
typedef GArray *elf_line_fn(void *user, uint32_t section);
bool elf_read_lines(const struct elf_in *e, const struct elf_section *s, GPtrArray *files,
                    elf_line_fn *f, void *user, GError **error);

#endif
