/* ELF32 little-endian containers, written and read. Writing lays out: header, program headers of
 * executables (one per section with an address), contents, section headers. Reading checks every
 * offset, size and link before anything is used. */
#include "isa/isa_elf.h"

#include <stdarg.h>
#include <string.h>

void elf_put32(GByteArray *b, uint32_t v) {
    const uint8_t bytes[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16),
                              (uint8_t)(v >> 24)};
    g_byte_array_append(b, bytes, 4);
}

void elf_put16(GByteArray *b, uint32_t v) {
    const uint8_t bytes[2] = {(uint8_t)v, (uint8_t)(v >> 8)};
    g_byte_array_append(b, bytes, 2);
}

uint32_t elf_put_string(GByteArray *b, const char *s) {
    if (b->len == 0) g_byte_array_append(b, (const uint8_t *)"", 1);
    if (*s == 0) return 0;
    const uint32_t at = b->len;
    g_byte_array_append(b, (const uint8_t *)s, (guint)strlen(s) + 1);
    return at;
}

/* --- Writing. --- */

static void free_buffer(gpointer p) {
    g_byte_array_free(p, true);
}

void elf_out_init(struct elf_out *e, uint32_t type, bool hardware) {
    *e = (struct elf_out){.sections = g_array_new(false, false, sizeof(struct elf_section)),
                          .owned = g_ptr_array_new_with_free_func(free_buffer),
                          .type = type,
                          .flags = (hardware ? ELF_FLAG_HARDWARE : 0) | (uint32_t)ISA_TABLE_VERSION
                                                                            << ELF_VERSION_SHIFT};
}

GByteArray *elf_out_buffer(struct elf_out *e) {
    GByteArray *b = g_byte_array_new();
    g_ptr_array_add(e->owned, b);
    return b;
}

uint32_t elf_out_add(struct elf_out *e, struct elf_section section) {
    g_array_append_val(e->sections, section);
    return e->sections->len;
}

static bool has_segment(const struct elf_out *e, const struct elf_section *s) {
    return e->type == ELF_EXEC && (s->flags & ISA_SECTION_ALLOC) != 0;
}

static void put_header(const struct elf_out *e, GByteArray *out, uint32_t n_segments,
                       uint32_t headers_at) {
    static const uint8_t ident[16] = {0x7f, 'E', 'L', 'F', 1, 1, 1};
    g_byte_array_append(out, ident, sizeof(ident));
    elf_put16(out, e->type);
    elf_put16(out, ELF_MACHINE);
    elf_put32(out, 1);
    elf_put32(out, e->entry);
    elf_put32(out, n_segments != 0 ? ELF_HEADER : 0);
    elf_put32(out, headers_at);
    elf_put32(out, e->flags);
    elf_put16(out, ELF_HEADER);
    elf_put16(out, ELF_SEGMENT);
    elf_put16(out, n_segments);
    elf_put16(out, ELF_SECTION);
    elf_put16(out, e->sections->len + 1);
    elf_put16(out, e->sections->len); /* the names are the last section */
}

static void put_segment(const struct elf_section *s, GByteArray *out, uint32_t offset) {
    elf_put32(out, 1);
    elf_put32(out, offset);
    elf_put32(out, s->address);
    elf_put32(out, s->address);
    elf_put32(out, s->type == SHT_NOBITS_ ? 0 : s->size);
    elf_put32(out, s->size);
    elf_put32(out, 4u | (s->flags & ISA_SECTION_WRITE ? 2u : 0) |
                       (s->flags & ISA_SECTION_EXEC ? 1u : 0));
    elf_put32(out, s->align);
}

static void put_section(const struct elf_section *s, GByteArray *out, uint32_t name,
                        uint32_t offset) {
    elf_put32(out, name);
    elf_put32(out, s->type);
    elf_put32(out, s->flags & (ISA_SECTION_WRITE | ISA_SECTION_ALLOC | ISA_SECTION_EXEC));
    elf_put32(out, s->address);
    elf_put32(out, offset);
    elf_put32(out, s->size);
    elf_put32(out, s->link);
    elf_put32(out, s->info);
    elf_put32(out, s->align);
    elf_put32(out, s->entry);
}

void elf_out_finish(struct elf_out *e, GByteArray *out) {
    GByteArray *names = elf_out_buffer(e);
    elf_put_string(names, "");
    GArray *name_at = g_array_new(false, false, sizeof(uint32_t));
    elf_out_add(e, (struct elf_section){.name = ".shstrtab", .type = SHT_STRTAB_, .align = 1});
    uint32_t n_segments = 0, n = e->sections->len;
    for (uint32_t i = 0; i < n; i++) {
        const struct elf_section *s = &g_array_index(e->sections, struct elf_section, i);
        const uint32_t at = elf_put_string(names, s->name);
        g_array_append_val(name_at, at);
        n_segments += has_segment(e, s);
    }
    struct elf_section *last = &g_array_index(e->sections, struct elf_section, n - 1);
    last->bytes = names->data;
    last->size = names->len;
    GArray *offsets = g_array_new(false, false, sizeof(uint32_t));
    uint32_t at = ELF_HEADER + n_segments * ELF_SEGMENT;
    for (uint32_t i = 0; i < n; i++) {
        const struct elf_section *s = &g_array_index(e->sections, struct elf_section, i);
        at = align_up_u32(at, 8);
        g_array_append_val(offsets, at);
        if (s->type != SHT_NOBITS_) at += s->size;
    }
    put_header(e, out, n_segments, align_up_u32(at, 4));
    for (uint32_t i = 0; i < n; i++) {
        const struct elf_section *s = &g_array_index(e->sections, struct elf_section, i);
        if (has_segment(e, s)) put_segment(s, out, g_array_index(offsets, uint32_t, i));
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct elf_section *s = &g_array_index(e->sections, struct elf_section, i);
        while (out->len < g_array_index(offsets, uint32_t, i))
            g_byte_array_append(out, (const uint8_t *)"", 1);
        if (s->type != SHT_NOBITS_ && s->size != 0) g_byte_array_append(out, s->bytes, s->size);
    }
    while (out->len % 4 != 0) g_byte_array_append(out, (const uint8_t *)"", 1);
    for (uint32_t i = 0; i < ELF_SECTION / 4; i++) elf_put32(out, 0);
    for (uint32_t i = 0; i < n; i++)
        put_section(&g_array_index(e->sections, struct elf_section, i), out,
                    g_array_index(name_at, uint32_t, i), g_array_index(offsets, uint32_t, i));
    g_array_free(offsets, true);
    g_array_free(name_at, true);
    g_array_free(e->sections, true);
    g_ptr_array_free(e->owned, true);
}

/* --- Reading. --- */

uint32_t elf_get32(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}
uint32_t elf_get16(const uint8_t *p) {
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

bool elf_fail(const struct elf_in *e, GError **error, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *what = g_strdup_vprintf(format, args);
    va_end(args);
    diag_set(error, ISA_OBJECT, e->name, what);
    g_free(what);
    return false;
}

const char *elf_string(const struct elf_section *strings, uint32_t offset) {
    if (offset >= strings->size) return NULL;
    if (memchr(strings->bytes + offset, 0, strings->size - offset) == NULL) return NULL;
    return (const char *)strings->bytes + offset;
}

static bool read_section(struct elf_in *e, uint32_t i, const uint8_t *p, GError **error) {
    const uint32_t offset = elf_get32(p + 16);
    struct elf_section s = {.type = elf_get32(p + 4),
                            .flags = elf_get32(p + 8) &
                                     (ISA_SECTION_WRITE | ISA_SECTION_ALLOC | ISA_SECTION_EXEC),
                            .address = elf_get32(p + 12),
                            .size = elf_get32(p + 20),
                            .link = elf_get32(p + 24),
                            .info = elf_get32(p + 28),
                            .align = elf_get32(p + 32),
                            .entry = elf_get32(p + 36)};
    if (s.type == SHT_NULL_) s.size = 0;
    if (s.type == SHT_NOBITS_) s.flags |= ISA_SECTION_NOBITS;
    if (s.type != SHT_NOBITS_ && (offset > e->size || s.size > e->size - offset))
        return elf_fail(e, error, "section %u lies outside the file", i);
    if (s.size > 64u * 1024 * 1024) return elf_fail(e, error, "section %u is too large", i);
    if ((s.align & (s.align - 1)) != 0 || s.align > 65536)
        return elf_fail(e, error, "section %u has alignment %u", i, s.align);
    if (s.align == 0) s.align = 1;
    s.bytes = s.type == SHT_NOBITS_ ? NULL : e->data + (s.type == SHT_NULL_ ? 0 : offset);
    e->sections[i] = s;
    return true;
}

static bool read_names(struct elf_in *e, uint32_t headers, uint32_t names, GError **error) {
    if (names >= e->n_sections || e->sections[names].type != SHT_STRTAB_)
        return elf_fail(e, error, "no table of section names");
    for (uint32_t i = 0; i < e->n_sections; i++) {
        const uint32_t at = elf_get32(e->data + headers + i * ELF_SECTION);
        e->sections[i].name = i == 0 ? "" : elf_string(&e->sections[names], at);
        if (e->sections[i].name == NULL) return elf_fail(e, error, "section %u has no name", i);
    }
    return true;
}

static bool read_headers(struct elf_in *e, GError **error) {
    const uint8_t *h = e->data;
    const uint32_t headers = elf_get32(h + 32);
    e->type = elf_get16(h + 16);
    e->entry = elf_get32(h + 24);
    e->flags = elf_get32(h + 36);
    e->n_sections = elf_get16(h + 48);
    if (elf_get16(h + 46) != ELF_SECTION || e->n_sections == 0)
        return elf_fail(e, error, "no section headers");
    if (headers > e->size || e->n_sections > (e->size - headers) / ELF_SECTION)
        return elf_fail(e, error, "the section headers lie outside the file");
    const uint32_t version = e->flags >> ELF_VERSION_SHIFT;
    if (version != 0 && version != ISA_TABLE_VERSION)
        return elf_fail(e, error, "made with instruction table %u, this is %u: assemble it again",
                        version, (unsigned)ISA_TABLE_VERSION);
    e->sections = g_new0(struct elf_section, e->n_sections);
    for (uint32_t i = 0; i < e->n_sections; i++)
        if (!read_section(e, i, h + headers + i * ELF_SECTION, error)) return false;
    return read_names(e, headers, elf_get16(h + 50), error);
}

bool elf_in_open(struct elf_in *e, const void *data, size_t size, const char *name,
                 GError **error) {
    *e = (struct elf_in){.data = data, .size = size, .name = name};
    if (size < ELF_HEADER || memcmp(data, "\177ELF\1\1\1", 7) != 0)
        return elf_fail(e, error, "no 32-bit little-endian ELF file%s",
                        g_str_has_suffix(name, ".S") || g_str_has_suffix(name, ".s")
                            ? "; sources become objects by ipu-stack asm"
                            : "");
    if (elf_get16(e->data + 18) != ELF_MACHINE)
        return elf_fail(e, error, "machine 0x%x, expected 0x%x", elf_get16(e->data + 18),
                        (unsigned)ELF_MACHINE);
    if (read_headers(e, error)) return true;
    elf_in_close(e);
    return false;
}

void elf_in_close(struct elf_in *e) {
    g_free(e->sections);
    e->sections = NULL;
}
