/* Objects as ELF32 files. Symbols of the object keep their order, locals before globals as ELF
 * demands; relocations carry their addend. The reader trusts nothing: every number that leads
 * somewhere is checked, and relocations without addends (REL) are refused. Sections of other kinds
 * are passed over. */
#include "isa/isa_elf.h"

#include <string.h>

/* --- Writing. --- */

/* Order of the symbols in the file: null, locals, then the others; *ret_locals counts null and
 * locals. */
static uint32_t *symbol_numbers(const struct isa_object *o, uint32_t *ret_locals) {
    uint32_t *number = g_new(uint32_t, o->symbols->len + 1), next = 1;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < o->symbols->len; i++) {
            const bool local = g_array_index(o->symbols, struct isa_symbol, i).binding == ISA_LOCAL;
            if (local == (pass == 0)) number[i] = next++;
        }
        if (pass == 0) *ret_locals = next;
    }
    return number;
}

static void put_symbol(GByteArray *out, GByteArray *strings, const struct isa_symbol *s) {
    const uint32_t section = s->section == ISA_IN_NONE       ? 0
                             : s->section == ISA_IN_ABSOLUTE ? SHN_ABSOLUTE
                             : s->section == ISA_IN_COMMON   ? SHN_COMMON_
                                                             : (uint32_t)s->section + 1;
    elf_put_symbol(out, strings,
                   &(struct elf_symbol){.name = s->type == ISA_SYM_SECTION ? "" : s->name,
                                        .value = s->value,
                                        .size = s->size,
                                        .binding = s->binding,
                                        .type = s->type,
                                        .section = section});
}

static void put_symbols(const struct isa_object *o, GByteArray *out, GByteArray *strings) {
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < o->symbols->len; i++) {
            const struct isa_symbol *s = &g_array_index(o->symbols, struct isa_symbol, i);
            if ((s->binding == ISA_LOCAL) == (pass == 0)) put_symbol(out, strings, s);
        }
}

static void put_relocs(const struct isa_section *s, GByteArray *out, const uint32_t *number) {
    for (uint32_t i = 0; i < s->relocs->len; i++) {
        const struct isa_reloc *r = &g_array_index(s->relocs, struct isa_reloc, i);
        elf_put32(out, r->offset);
        elf_put32(out, number[r->symbol] << 8 | r->type);
        elf_put32(out, (uint32_t)r->addend);
    }
}

void isa_object_write(const struct isa_object *o, GByteArray *out) {
    struct elf_out e;
    elf_out_init(&e, ELF_REL, o->hardware);
    uint32_t n_locals;
    uint32_t *number = symbol_numbers(o, &n_locals);
    const uint32_t n = o->sections->len;
    for (uint32_t i = 0; i < n; i++) {
        const struct isa_section *s = g_ptr_array_index(o->sections, i);
        elf_out_add(&e, (struct elf_section){.name = s->name,
                                             .type = s->flags & ISA_SECTION_NOBITS ? SHT_NOBITS_
                                                                                   : SHT_PROGBITS_,
                                             .flags = s->flags,
                                             .align = s->align,
                                             .size = s->size,
                                             .bytes = s->bytes->data});
    }
    GByteArray *symbols = elf_out_buffer(&e), *strings = elf_out_buffer(&e);
    put_symbols(o, symbols, strings);
    const uint32_t symtab = elf_out_symbols(&e, symbols, strings, n_locals);
    for (uint32_t i = 0; i < n; i++) {
        const struct isa_section *s = g_ptr_array_index(o->sections, i);
        if (s->relocs->len == 0) continue;
        GByteArray *relocs = elf_out_buffer(&e), *name = elf_out_buffer(&e);
        put_relocs(s, relocs, number);
        g_byte_array_append(name, (const uint8_t *)".rela", 5);
        g_byte_array_append(name, (const uint8_t *)s->name, (guint)strlen(s->name) + 1);
        elf_out_add(&e, (struct elf_section){.name = (const char *)name->data,
                                             .type = SHT_RELA_,
                                             .link = symtab,
                                             .info = i + 1,
                                             .align = 4,
                                             .entry = ELF_RELA,
                                             .bytes = relocs->data,
                                             .size = relocs->len});
    }
    GByteArray *lines = elf_out_buffer(&e);
    elf_put_files(lines, o->files);
    for (uint32_t i = 0; i < n; i++) {
        const struct isa_section *s = g_ptr_array_index(o->sections, i);
        elf_put_lines(lines, s->lines, i + 1);
    }
    elf_out_lines(&e, lines);
    elf_out_finish(&e, out);
    g_free(number);
}

/* --- Reading. --- */

struct object_in {
    struct elf_in elf;
    struct isa_object *object;
    int32_t *section_of; /* number in the file -> index in the object, or ISA_IN_NONE */
    uint32_t n_symbols;
};

static bool is_contents(const struct elf_section *s) {
    return (s->type == SHT_PROGBITS_ || s->type == SHT_NOBITS_) && !elf_is_lines(s);
}

static void read_sections(struct object_in *in) {
    in->section_of = g_new(int32_t, in->elf.n_sections);
    for (uint32_t i = 0; i < in->elf.n_sections; i++) {
        const struct elf_section *s = &in->elf.sections[i];
        in->section_of[i] = ISA_IN_NONE;
        if (!is_contents(s)) continue;
        in->section_of[i] = (int32_t)in->object->sections->len;
        struct isa_section *o = g_new0(struct isa_section, 1);
        o->name = g_strdup(s->name);
        o->flags = s->flags;
        o->align = s->align;
        o->size = s->size;
        o->bytes = g_byte_array_new();
        if (s->bytes != NULL) g_byte_array_append(o->bytes, s->bytes, s->size);
        o->relocs = g_array_new(false, false, sizeof(struct isa_reloc));
        o->lines = g_array_new(false, false, sizeof(struct isa_line));
        g_ptr_array_add(in->object->sections, o);
    }
}

static bool add_symbol(void *user, uint32_t number, const struct elf_symbol *f, GError **error) {
    struct object_in *in = user;
    struct isa_symbol s = {.section = ISA_IN_NONE,
                           .value = f->value,
                           .size = f->size,
                           .binding = f->binding,
                           .type = f->type};
    const char *name = f->name;
    if (f->section == SHN_ABSOLUTE) {
        s.section = ISA_IN_ABSOLUTE;
    } else if (f->section == SHN_COMMON_) {
        s.section = ISA_IN_COMMON;
        if (s.value == 0 || (s.value & (s.value - 1)) != 0 || s.value > 65536 ||
            s.binding == ISA_LOCAL)
            return elf_fail(&in->elf, error, "common symbol %u is local or has alignment %u",
                            number, s.value);
    } else if (f->section != 0) {
        if (f->section >= in->elf.n_sections)
            return elf_fail(&in->elf, error, "symbol %u lies in section %u of %u", number,
                            f->section, in->elf.n_sections);
        s.section = in->section_of[f->section];
        if (s.section >= 0) {
            const struct isa_section *home = g_ptr_array_index(in->object->sections, s.section);
            if (s.value > home->size)
                return elf_fail(&in->elf, error, "symbol %u lies behind its section", number);
            if (s.type == ISA_SYM_SECTION && *name == 0) name = home->name;
        }
    }
    s.name = g_strdup(name);
    g_array_append_val(in->object->symbols, s);
    return true;
}

static bool read_symbols(struct object_in *in, GError **error) {
    for (uint32_t i = 0; i < in->elf.n_sections; i++) {
        const struct elf_section *s = &in->elf.sections[i];
        if (s->type != SHT_SYMTAB_) continue;
        if (in->n_symbols != 0) return elf_fail(&in->elf, error, "two symbol tables");
        in->n_symbols = s->size / ELF_SYMBOL;
        if (!elf_read_symbols(&in->elf, s, add_symbol, in, error)) return false;
    }
    return true;
}

static uint32_t reloc_bytes(uint32_t type) {
    switch (type) {
    case ISA_R_8:
        return 1;
    case ISA_R_16:
        return 2;
    case ISA_R_64:
        return 8;
    case ISA_R_NONE:
        return 0;
    default:
        return 4;
    }
}

static bool known_reloc(uint32_t type) {
    return type <= ISA_R_RUN || (type >= ISA_R_16_S3 && type <= ISA_R_21);
}

static int compare_relocs(const void *a, const void *b) {
    const struct isa_reloc *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool read_relocs_of(struct object_in *in, const struct elf_section *s, GError **error) {
    if (s->info >= in->elf.n_sections || in->section_of[s->info] < 0) return true;
    struct isa_section *home = g_ptr_array_index(in->object->sections, in->section_of[s->info]);
    for (uint32_t k = 0; k < s->size / ELF_RELA; k++) {
        const uint8_t *p = s->bytes + k * ELF_RELA;
        const uint32_t info = elf_get32(p + 4);
        struct isa_reloc r = {
            .offset = elf_get32(p), .type = (uint8_t)info, .addend = (int32_t)elf_get32(p + 8)};
        if (r.type == ISA_R_NONE) continue;
        if (!known_reloc(r.type))
            return elf_fail(&in->elf, error, "relocation %u of section %s has kind %u", k,
                            home->name, r.type);
        if ((home->flags & ISA_SECTION_NOBITS) != 0 || r.offset > home->size ||
            reloc_bytes(r.type) > home->size - r.offset)
            return elf_fail(&in->elf, error, "relocation %u lies outside section %s", k,
                            home->name);
        if (info >> 8 == 0 || info >> 8 >= in->n_symbols)
            return elf_fail(&in->elf, error, "relocation %u of section %s names symbol %u of %u", k,
                            home->name, info >> 8, in->n_symbols);
        r.symbol = (info >> 8) - 1;
        g_array_append_val(home->relocs, r);
    }
    g_array_sort(home->relocs, compare_relocs);
    return true;
}

static GArray *lines_of(void *user, uint32_t section) {
    const struct object_in *in = user;
    if (section >= in->elf.n_sections || in->section_of[section] < 0) return NULL;
    const struct isa_section *home =
        g_ptr_array_index(in->object->sections, in->section_of[section]);
    return home->lines;
}

static bool read_object(struct object_in *in, GError **error) {
    if (in->elf.type != ELF_REL) return elf_fail(&in->elf, error, "not relocatable");
    in->object->hardware =
        in->elf.flags >> ELF_VERSION_SHIFT == 0 || (in->elf.flags & ELF_FLAG_HARDWARE) != 0;
    read_sections(in);
    if (!read_symbols(in, error)) return false;
    for (uint32_t i = 0; i < in->elf.n_sections; i++) {
        const struct elf_section *s = &in->elf.sections[i];
        if (s->type == SHT_REL_)
            return elf_fail(&in->elf, error, "section %s has relocations without addends", s->name);
        if (s->type == SHT_RELA_ && !read_relocs_of(in, s, error)) return false;
        if (elf_is_lines(s) && !elf_read_lines(&in->elf, s, in->object->files, lines_of, in, error))
            return false;
    }
    return true;
}

struct isa_object *isa_object_read(const void *data, size_t size, const char *name,
                                   GError **error) {
    struct object_in in = {0};
    if (!elf_in_open(&in.elf, data, size, name, error)) return NULL;
    in.object = isa_object_new(name);
    const bool ok = read_object(&in, error);
    elf_in_close(&in.elf);
    g_free(in.section_of);
    if (ok) return in.object;
    isa_object_free(in.object);
    return NULL;
}
