/* Symbols and source lines of objects and images: the same tables, of different things. */
#include "isa/isa_elf.h"

#include <string.h>

/* --- Writing. --- */

/* The symbol of nothing, if it is not there yet. */
static void start_symbols(GByteArray *symbols, GByteArray *strings) {
    if (symbols->len != 0) return;
    elf_put_string(strings, "");
    for (uint32_t i = 0; i < ELF_SYMBOL / 4; i++) elf_put32(symbols, 0);
}

void elf_put_symbol(GByteArray *symbols, GByteArray *strings, const struct elf_symbol *s) {
    start_symbols(symbols, strings);
    elf_put32(symbols, elf_put_string(strings, s->name));
    elf_put32(symbols, s->value);
    elf_put32(symbols, s->size);
    const uint8_t info[2] = {(uint8_t)(s->binding << 4 | s->type), 0};
    g_byte_array_append(symbols, info, 2);
    elf_put16(symbols, s->section);
}

uint32_t elf_out_symbols(struct elf_out *e, GByteArray *symbols, GByteArray *strings,
                         uint32_t n_locals) {
    start_symbols(symbols, strings);
    const uint32_t number = e->sections->len + 1;
    elf_out_add(e, (struct elf_section){.name = ".symtab",
                                        .type = SHT_SYMTAB_,
                                        .link = number + 1,
                                        .info = n_locals,
                                        .align = 4,
                                        .entry = ELF_SYMBOL,
                                        .bytes = symbols->data,
                                        .size = symbols->len});
    elf_out_add(e, (struct elf_section){.name = ".strtab",
                                        .type = SHT_STRTAB_,
                                        .align = 1,
                                        .bytes = strings->data,
                                        .size = strings->len});
    return number;
}

void elf_put_files(GByteArray *lines, const GPtrArray *files) {
    elf_put32(lines, ELF_LINES_MAGIC);
    elf_put32(lines, files->len);
    for (uint32_t i = 0; i < files->len; i++) {
        const char *f = g_ptr_array_index(files, i);
        g_byte_array_append(lines, (const uint8_t *)f, (guint)strlen(f) + 1);
    }
}

void elf_put_lines(GByteArray *lines, const GArray *of_section, uint32_t section) {
    for (uint32_t i = 0; i < of_section->len; i++) {
        const struct isa_line *l = &g_array_index(of_section, struct isa_line, i);
        elf_put32(lines, section);
        elf_put32(lines, l->offset);
        elf_put32(lines, l->file);
        elf_put32(lines, l->line);
    }
}

void elf_out_lines(struct elf_out *e, const GByteArray *lines) {
    elf_out_add(e, (struct elf_section){.name = ELF_LINES_NAME,
                                        .type = SHT_PROGBITS_,
                                        .align = 4,
                                        .bytes = lines->data,
                                        .size = lines->len});
}

/* --- Reading. --- */

static bool read_symbol(const struct elf_in *e, const struct elf_section *strings, const uint8_t *p,
                        uint32_t k, struct elf_symbol *ret, GError **error) {
    *ret = (struct elf_symbol){.name = elf_string(strings, elf_get32(p)),
                               .value = elf_get32(p + 4),
                               .size = elf_get32(p + 8),
                               .binding = p[12] >> 4,
                               .type = p[12] & 15,
                               .section = elf_get16(p + 14)};
    if (ret->name == NULL) return elf_fail(e, error, "symbol %u has no name", k);
    if (ret->binding > ISA_WEAK)
        return elf_fail(e, error, "symbol %u has binding %u", k, ret->binding);
    return true;
}

bool elf_read_symbols(const struct elf_in *e, const struct elf_section *table, elf_symbol_fn *f,
                      void *user, GError **error) {
    if (table->link >= e->n_sections || e->sections[table->link].type != SHT_STRTAB_)
        return elf_fail(e, error, "the symbol table has no strings");
    for (uint32_t k = 1; k < table->size / ELF_SYMBOL; k++) {
        struct elf_symbol s;
        if (!read_symbol(e, &e->sections[table->link], table->bytes + k * ELF_SYMBOL, k, &s, error))
            return false;
        if (s.type > ISA_SYM_SECTION) s.type = ISA_SYM_NONE;
        if (!f(user, k, &s, error)) return false;
    }
    return true;
}

bool elf_is_lines(const struct elf_section *s) {
    return s->type == SHT_PROGBITS_ && strcmp(s->name, ELF_LINES_NAME) == 0;
}

bool elf_read_lines(const struct elf_in *e, const struct elf_section *s, GPtrArray *files,
                    elf_line_fn *f, void *user, GError **error) {
    if (s->size < 8 || elf_get32(s->bytes) != ELF_LINES_MAGIC)
        return elf_fail(e, error, "the line table is damaged");
    const uint32_t n_files = elf_get32(s->bytes + 4);
    uint32_t at = 8;
    for (uint32_t i = 0; i < n_files; i++) {
        const char *name = elf_string(s, at);
        if (name == NULL) return elf_fail(e, error, "the line table is cut off");
        g_ptr_array_add(files, g_strdup(name));
        at += (uint32_t)strlen(name) + 1;
    }
    if ((s->size - at) % 16 != 0) return elf_fail(e, error, "the line table is cut off");
    for (; at < s->size; at += 16) {
        const struct isa_line l = {elf_get32(s->bytes + at + 4), elf_get32(s->bytes + at + 8),
                                   elf_get32(s->bytes + at + 12)};
        GArray *lines = f(user, elf_get32(s->bytes + at));
        if (lines == NULL || l.file >= n_files)
            return elf_fail(e, error, "the line table is damaged");
        if (lines->len != 0 &&
            g_array_index(lines, struct isa_line, lines->len - 1).offset > l.offset)
            return elf_fail(e, error, "the line table is not in order");
        g_array_append_val(lines, l);
    }
    return true;
}
