/* Images as ELF32 executables: one section and one program header per segment, symbols, line table.
 */
#include "isa/isa_elf.h"

#include <stdlib.h>
#include <string.h>

static uint32_t segment_number(const struct isa_image *image, uint32_t address) {
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        if (address - s->address <= s->size) return i + 1;
    }
    return SHN_ABSOLUTE;
}

static void put_symbol(GByteArray *out, GByteArray *strings, const struct isa_image *image,
                       const struct isa_image_symbol *s) {
    elf_put32(out, elf_put_string(strings, s->name));
    elf_put32(out, s->address);
    elf_put32(out, s->size);
    const uint8_t info[2] = {(uint8_t)(s->binding << 4 | s->type), 0};
    g_byte_array_append(out, info, 2);
    elf_put16(out, s->absolute ? SHN_ABSOLUTE : segment_number(image, s->address));
}

static uint32_t put_symbols(const struct isa_image *image, GByteArray *out, GByteArray *strings) {
    uint32_t n_locals = 1;
    elf_put_string(strings, "");
    for (uint32_t i = 0; i < ELF_SYMBOL / 4; i++) elf_put32(out, 0);
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < image->symbols->len; i++) {
            const struct isa_image_symbol *s =
                &g_array_index(image->symbols, struct isa_image_symbol, i);
            if ((s->binding == ISA_LOCAL) != (pass == 0)) continue;
            n_locals += pass == 0;
            put_symbol(out, strings, image, s);
        }
    return n_locals;
}

static void put_lines(const struct isa_image *image, GByteArray *out) {
    elf_put32(out, ELF_LINES_MAGIC);
    elf_put32(out, image->files->len);
    for (uint32_t i = 0; i < image->files->len; i++) {
        const char *f = g_ptr_array_index(image->files, i);
        g_byte_array_append(out, (const uint8_t *)f, (guint)strlen(f) + 1);
    }
    for (uint32_t i = 0; i < image->lines->len; i++) {
        const struct isa_line *l = &g_array_index(image->lines, struct isa_line, i);
        elf_put32(out, 0);
        elf_put32(out, l->offset);
        elf_put32(out, l->file);
        elf_put32(out, l->line);
    }
}

void isa_image_write(const struct isa_image *image, GByteArray *out) {
    struct elf_out e;
    elf_out_init(&e, ELF_EXEC, image->hardware);
    e.entry = image->entry;
    const uint32_t n = image->segments->len;
    for (uint32_t i = 0; i < n; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        elf_out_add(&e,
                    (struct elf_section){.name = s->name,
                                         .type = s->bytes == NULL ? SHT_NOBITS_ : SHT_PROGBITS_,
                                         .flags = ISA_SECTION_ALLOC |
                                                  (s->exec ? ISA_SECTION_EXEC : ISA_SECTION_WRITE),
                                         .address = s->address,
                                         .align = 1,
                                         .size = s->size,
                                         .bytes = s->bytes});
    }
    GByteArray *symbols = elf_out_buffer(&e), *strings = elf_out_buffer(&e),
               *lines = elf_out_buffer(&e);
    const uint32_t n_locals = put_symbols(image, symbols, strings);
    elf_out_add(&e, (struct elf_section){.name = ".symtab",
                                         .type = SHT_SYMTAB_,
                                         .link = n + 2,
                                         .info = n_locals,
                                         .align = 4,
                                         .entry = ELF_SYMBOL,
                                         .bytes = symbols->data,
                                         .size = symbols->len});
    elf_out_add(&e, (struct elf_section){.name = ".strtab",
                                         .type = SHT_STRTAB_,
                                         .align = 1,
                                         .bytes = strings->data,
                                         .size = strings->len});
    put_lines(image, lines);
    elf_out_add(&e, (struct elf_section){.name = ELF_LINES_NAME,
                                         .type = SHT_PROGBITS_,
                                         .align = 4,
                                         .bytes = lines->data,
                                         .size = lines->len});
    elf_out_finish(&e, out);
}

/* --- Reading. --- */

static bool read_segments(const struct elf_in *e, struct isa_image *image, GError **error) {
    uint64_t last_end = 0;
    for (uint32_t i = 0; i < e->n_sections; i++) {
        const struct elf_section *s = &e->sections[i];
        const bool contents = s->type == SHT_PROGBITS_ || s->type == SHT_NOBITS_;
        if (!contents || (s->flags & ISA_SECTION_ALLOC) == 0 || s->size == 0) continue;
        if (s->address < last_end || (uint64_t)s->address + s->size > UINT32_MAX)
            return elf_fail(e, error, "section %s overlaps another or is out of order", s->name);
        last_end = (uint64_t)s->address + s->size;
        const struct isa_segment seg = {.address = s->address,
                                        .size = s->size,
                                        .name = g_strdup(s->name),
                                        .exec = (s->flags & ISA_SECTION_EXEC) != 0,
                                        .bytes =
                                            s->bytes != NULL ? g_memdup2(s->bytes, s->size) : NULL};
        g_array_append_val(image->segments, seg);
    }
    return true;
}

static bool read_symbol_table(const struct elf_in *e, const struct elf_section *s,
                              struct isa_image *image, GError **error) {
    if (s->link >= e->n_sections || e->sections[s->link].type != SHT_STRTAB_)
        return elf_fail(e, error, "the symbol table has no strings");
    for (uint32_t k = 1; k < s->size / ELF_SYMBOL; k++) {
        const uint8_t *p = s->bytes + k * ELF_SYMBOL;
        const char *name = elf_string(&e->sections[s->link], elf_get32(p));
        const uint32_t shndx = elf_get16(p + 14);
        if (name == NULL || p[12] >> 4 > ISA_WEAK)
            return elf_fail(e, error, "symbol %u is damaged", k);
        if (shndx == 0 || *name == 0) continue;
        const struct isa_image_symbol sym = {.name = g_strdup(name),
                                             .address = elf_get32(p + 4),
                                             .size = elf_get32(p + 8),
                                             .binding = p[12] >> 4,
                                             .type =
                                                 (p[12] & 15) > ISA_SYM_SECTION ? 0 : p[12] & 15,
                                             .absolute = shndx == SHN_ABSOLUTE};
        g_array_append_val(image->symbols, sym);
    }
    return true;
}

static bool read_line_table(const struct elf_in *e, const struct elf_section *s,
                            struct isa_image *image, GError **error) {
    if (s->size < 8 || elf_get32(s->bytes) != ELF_LINES_MAGIC)
        return elf_fail(e, error, "the line table is damaged");
    const uint32_t n_files = elf_get32(s->bytes + 4);
    uint32_t at = 8;
    for (uint32_t i = 0; i < n_files; i++) {
        const char *name = elf_string(s, at);
        if (name == NULL) return elf_fail(e, error, "the line table is cut off");
        g_ptr_array_add(image->files, g_strdup(name));
        at += (uint32_t)strlen(name) + 1;
    }
    if ((s->size - at) % 16 != 0) return elf_fail(e, error, "the line table is cut off");
    for (uint32_t last = 0; at < s->size; at += 16) {
        const struct isa_line l = {elf_get32(s->bytes + at + 4), elf_get32(s->bytes + at + 8),
                                   elf_get32(s->bytes + at + 12)};
        if (l.file >= n_files || l.offset < last)
            return elf_fail(e, error, "the line table is damaged");
        last = l.offset;
        g_array_append_val(image->lines, l);
    }
    return true;
}

static int compare_symbols(const void *a, const void *b) {
    const struct isa_image_symbol *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return strcmp(x->name, y->name);
}

static bool read_image(const struct elf_in *e, struct isa_image *image, GError **error) {
    if (e->type != ELF_EXEC) return elf_fail(e, error, "not linked");
    image->entry = e->entry;
    image->hardware = e->flags >> ELF_VERSION_SHIFT == 0 || (e->flags & ELF_FLAG_HARDWARE) != 0;
    if (!read_segments(e, image, error)) return false;
    for (uint32_t i = 0; i < e->n_sections; i++) {
        const struct elf_section *s = &e->sections[i];
        if (s->type == SHT_SYMTAB_ && !read_symbol_table(e, s, image, error)) return false;
        if (s->type == SHT_PROGBITS_ && strcmp(s->name, ELF_LINES_NAME) == 0 &&
            !read_line_table(e, s, image, error))
            return false;
    }
    g_array_sort(image->symbols, compare_symbols);
    return true;
}

struct isa_image *isa_image_read(const void *data, size_t size, const char *name, GError **error) {
    struct elf_in e;
    if (!elf_in_open(&e, data, size, name, error)) return NULL;
    struct isa_image *image = isa_image_new();
    const bool ok = read_image(&e, image, error);
    elf_in_close(&e);
    if (ok) return image;
    isa_image_free(image);
    return NULL;
}
