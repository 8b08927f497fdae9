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

static uint32_t put_symbols(const struct isa_image *image, GByteArray *out, GByteArray *strings) {
    uint32_t n_locals = 1;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < image->symbols->len; i++) {
            const struct isa_image_symbol *s =
                &g_array_index(image->symbols, struct isa_image_symbol, i);
            if ((s->binding == ISA_LOCAL) != (pass == 0)) continue;
            n_locals += pass == 0;
            elf_put_symbol(
                out, strings,
                &(struct elf_symbol){.name = s->name,
                                     .value = s->address,
                                     .size = s->size,
                                     .binding = s->binding,
                                     .type = s->type,
                                     .section = s->absolute ? SHN_ABSOLUTE
                                                            : segment_number(image, s->address)});
        }
    return n_locals;
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
    elf_out_symbols(&e, symbols, strings, n_locals);
    elf_put_files(lines, image->files);
    elf_put_lines(lines, image->lines, 0);
    elf_out_lines(&e, lines);
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

static bool add_symbol(void *user, uint32_t number, const struct elf_symbol *s, GError **error) {
    (void)number, (void)error;
    struct isa_image *image = user;
    if (s->section == 0 || *s->name == 0) return true;
    const struct isa_image_symbol sym = {.name = g_strdup(s->name),
                                         .address = s->value,
                                         .size = s->size,
                                         .binding = s->binding,
                                         .type = s->type,
                                         .absolute = s->section == SHN_ABSOLUTE};
    g_array_append_val(image->symbols, sym);
    return true;
}

static GArray *lines_of(void *user, uint32_t section) {
    (void)section;
    return ((struct isa_image *)user)->lines;
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
        if (s->type == SHT_SYMTAB_ && !elf_read_symbols(e, s, add_symbol, image, error))
            return false;
        if (elf_is_lines(s) && !elf_read_lines(e, s, image->files, lines_of, image, error))
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
