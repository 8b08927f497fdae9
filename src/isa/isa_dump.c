/* Objects, images and words as text: sections, symbols, disassembly with labels, source lines and
 * relocations, data in hexadecimal. Words that are no instruction are printed as .word. */
#include "isa/isa_asm.h"
#include "isa/isa_exch.h"

#include "target/target.h"

#include <string.h>

/* What stands beside the words of one section. */
struct view {
    const char *const *labels; /* name per word or NULL; may itself be NULL */
    const struct isa_reloc *relocs;
    uint32_t n_relocs;
    const struct isa_object *object; /* names of the relocations' symbols and files */
    const struct isa_line *lines;
    uint32_t n_lines;
    const GPtrArray *files;
    uint32_t next_reloc, next_line; /* not yet printed; both lists are in order */
};

static void print_relocs(GString *out, struct view *v, uint32_t from, uint32_t to) {
    for (; v->next_reloc < v->n_relocs && v->relocs[v->next_reloc].offset < to; v->next_reloc++) {
        const struct isa_reloc *r = &v->relocs[v->next_reloc];
        if (r->offset < from) continue;
        const struct isa_symbol *s =
            &g_array_index(v->object->symbols, struct isa_symbol, r->symbol);
        g_string_append_printf(out, "  // reloc %u %s", r->type, s->name);
        if (r->addend != 0) g_string_append_printf(out, "%+d", r->addend);
    }
}

static void print_line(GString *out, struct view *v, uint32_t address) {
    for (; v->next_line < v->n_lines && v->lines[v->next_line].offset <= address; v->next_line++) {
        const struct isa_line *l = &v->lines[v->next_line];
        if (l->offset != address) continue;
        g_string_append_printf(out, "  // %s:%u",
                               (const char *)g_ptr_array_index(v->files, l->file), l->line);
    }
}

static void print_sending(GString *out, const struct isa_exch *e) {
    const uint32_t item = e->sctl & ISA_SCTL_64 ? 8 : 4;
    g_string_append_printf(out, "%u items from 0x%x,", e->n, e->address * item);
    g_string_append(out, e->sctl & ISA_SCTL_DIR1 ? " direction 1" : "");
    g_string_append(out, e->sctl & ISA_SCTL_DIR2 ? " direction 2" : "");
}

/* What the fields of an instruction of exchange rows mean. */
static void print_exchange(GString *out, const struct isa_exch *e) {
    static const char *const pics[] = {"pointer", "format"};
    static const char *const controls[] = {"mux", "pair mux", "pointer", "format"};
    const uint32_t scale =
        (e->kind == ISA_EXCH_SENDPIC ? e->sel == ISA_CSEL_PTR : e->sel == ISA_PIC_PTR) ? 4 : 1;
    switch (e->kind) {
    case ISA_EXCH_DELAYPIC:
        g_string_append_printf(out, "  // %s 0x%x", pics[e->sel], e->value * scale);
        break;
    case ISA_EXCH_DELAYXPIC:
        g_string_append_printf(out, "  // %s 0x%x", controls[e->sel], e->value);
        break;
    case ISA_EXCH_SENDPIC:
        g_string_append_printf(out, "  // %s 0x%x", controls[e->sel], e->value * scale);
        break;
    case ISA_EXCH_SEND:
        g_string_append(out, "  // ");
        print_sending(out, e);
        break;
    case ISA_EXCH_SENDPICP:
        g_string_append_printf(out, "  // %s 0x%x, %smux 0x%x", pics[e->sel], e->value * scale,
                               e->pair ? "pair " : "", e->mux);
        if (e->sctl == 0) break;
        g_string_append(out, ", ");
        print_sending(out, e);
        break;
    default:
        break;
    }
}

/* One instruction, bundle or word; the number of words taken. */
static uint32_t print_one(GString *out, const uint32_t *words, size_t n, uint32_t address,
                          const struct isa_print *options) {
    struct isa_slot slot;
    const enum isa_slot_error e = isa_slot_decode(words, n, address, &slot);
    const bool known = e == ISA_SLOT_OK || e == ISA_SLOT_BUNDLE;
    const uint32_t used = known ? slot.n_words : 1;
    if (used == 2) g_string_append_printf(out, "%6x: %08x %08x  ", address, words[0], words[1]);
    else g_string_append_printf(out, "%6x: %08x           ", address, words[0]);
    if (known) isa_slot_print(out, &slot, options);
    else g_string_append_printf(out, ".word 0x%08x", words[0]);
    if (e != ISA_SLOT_OK) g_string_append_printf(out, "  // %s", isa_slot_error_text(e));
    if (known && isa_form(slot.main.op)->kind == ISA_KIND_EXCH) {
        const struct isa_exch x = isa_exch_decode(words, n);
        print_exchange(out, &x);
    }
    return used;
}

static uint32_t *words_of(const uint8_t *bytes, size_t size) {
    uint32_t *words = g_new(uint32_t, size / 4 + 1);
    for (size_t i = 0; i < size / 4; i++)
        words[i] = (uint32_t)bytes[4 * i] | (uint32_t)bytes[4 * i + 1] << 8 |
                   (uint32_t)bytes[4 * i + 2] << 16 | (uint32_t)bytes[4 * i + 3] << 24;
    return words;
}

static void dump_code(GString *out, const uint8_t *bytes, size_t size, uint32_t address,
                      const struct isa_print *options, struct view *v) {
    uint32_t *const words = words_of(bytes, size);
    const size_t n = size / 4;
    for (size_t i = 0; i < n;) {
        const uint32_t at = address + (uint32_t)i * 4;
        if (v != NULL && v->labels != NULL && v->labels[i] != NULL)
            g_string_append_printf(out, "%s:\n", v->labels[i]);
        const uint32_t used = print_one(out, words + i, n - i, at, options);
        if (v != NULL) {
            print_relocs(out, v, (uint32_t)i * 4, ((uint32_t)i + used) * 4);
            print_line(out, v, at);
        }
        g_string_append_c(out, '\n');
        i += used;
    }
    for (size_t i = 4 * n; i < size; i++)
        g_string_append_printf(out, "%6x: %02x                 .byte 0x%02x\n",
                               address + (uint32_t)i, bytes[i], bytes[i]);
    g_free(words);
}

void isa_dump_bytes(GString *out, const uint8_t *bytes, size_t size, uint32_t address,
                    const struct isa_print *options) {
    dump_code(out, bytes, size, address, options, NULL);
}

static void dump_data(GString *out, const uint8_t *bytes, uint32_t size, uint32_t address) {
    for (uint32_t i = 0; i < size; i += 16) {
        g_string_append_printf(out, "%6x:", address + i);
        for (uint32_t k = i; k < i + 16 && k < size; k++)
            g_string_append_printf(out, "%s%02x", k % 4 == 0 ? " " : "", bytes[k]);
        g_string_append_c(out, '\n');
    }
}

static const char *binding_name(uint8_t binding) {
    static const char *const names[] = {"local", "global", "weak"};
    return binding < ARRAY_LEN(names) ? names[binding] : "?";
}

/* --- Objects. --- */

static void dump_object_sections(GString *out, const struct isa_object *o) {
    g_string_append_printf(out, "object %s, %s numbers\n", o->name,
                           o->hardware ? "hardware" : "model");
    g_string_append(out, "section              flags      size  align  relocations\n");
    for (uint32_t i = 0; i < o->sections->len; i++) {
        const struct isa_section *s = g_ptr_array_index(o->sections, i);
        g_string_append_printf(
            out, "%-20s %c%c%c%c  %8x  %5u  %u\n", s->name,
            s->flags & ISA_SECTION_ALLOC ? 'a' : '-', s->flags & ISA_SECTION_WRITE ? 'w' : '-',
            s->flags & ISA_SECTION_EXEC ? 'x' : '-', s->flags & ISA_SECTION_NOBITS ? 'n' : '-',
            s->size, s->align, s->relocs->len);
    }
}

static void dump_object_symbols(GString *out, const struct isa_object *o) {
    g_string_append(
        out, "symbol                           section              value     size  binding\n");
    for (uint32_t i = 0; i < o->symbols->len; i++) {
        const struct isa_symbol *s = &g_array_index(o->symbols, struct isa_symbol, i);
        if (s->type == ISA_SYM_SECTION) continue;
        const struct isa_section *home =
            s->section >= 0 ? g_ptr_array_index(o->sections, s->section) : NULL;
        g_string_append_printf(out, "%-32s %-16s %9x %8x  %s\n", s->name,
                               home != NULL                    ? home->name
                               : s->section == ISA_IN_ABSOLUTE ? "absolute"
                               : s->section == ISA_IN_COMMON   ? "common"
                                                               : "undefined",
                               s->value, s->size, binding_name(s->binding));
    }
}

static void dump_object_code(GString *out, const struct isa_object *o, uint32_t index,
                             const struct isa_print *options) {
    const struct isa_section *s = g_ptr_array_index(o->sections, index);
    const uint32_t n = s->size / 4;
    const char **labels = g_new0(const char *, n + 1);
    for (uint32_t i = 0; i < o->symbols->len; i++) {
        const struct isa_symbol *sym = &g_array_index(o->symbols, struct isa_symbol, i);
        if (sym->section == (int32_t)index && sym->value % 4 == 0 && sym->type != ISA_SYM_SECTION)
            labels[sym->value / 4] = sym->name;
    }
    struct view v = {.labels = labels,
                     .object = o,
                     .files = o->files,
                     .relocs = (const struct isa_reloc *)(const void *)s->relocs->data,
                     .n_relocs = s->relocs->len,
                     .lines = (const struct isa_line *)(const void *)s->lines->data,
                     .n_lines = s->lines->len};
    dump_code(out, s->bytes->data, s->size, 0, options, &v);
    g_free(labels);
}

void isa_object_dump(GString *out, const struct isa_object *o, uint32_t what,
                     const struct isa_print *options) {
    if (what & ISA_DUMP_SECTIONS) dump_object_sections(out, o);
    if (what & ISA_DUMP_SYMBOLS) dump_object_symbols(out, o);
    for (uint32_t i = 0; i < o->sections->len; i++) {
        const struct isa_section *s = g_ptr_array_index(o->sections, i);
        const bool exec = (s->flags & ISA_SECTION_EXEC) != 0;
        if (s->size == 0 || (s->flags & ISA_SECTION_NOBITS) != 0) continue;
        if ((what & (exec ? ISA_DUMP_CODE : ISA_DUMP_DATA)) == 0) continue;
        g_string_append_printf(out, "contents of %s\n", s->name);
        if (exec) dump_object_code(out, o, i, options);
        else dump_data(out, s->bytes->data, s->size, 0);
    }
}

/* --- Images. --- */

struct symbolizer {
    const struct isa_image *image;
    GString *text;
};

static const char *symbol_text(uint32_t address, void *context) {
    struct symbolizer *z = context;
    const struct isa_image_symbol *s = isa_image_at(z->image, address);
    if (s == NULL) return NULL;
    g_string_assign(z->text, s->name);
    if (address != s->address) g_string_append_printf(z->text, "+%u", address - s->address);
    return z->text->str;
}

static void dump_image_sections(GString *out, const struct isa_image *image) {
    if (image->entry != 0) g_string_append_printf(out, "image, entry 0x%x, ", image->entry);
    else g_string_append(out, "image, no entry, ");
    g_string_append_printf(out, "%s numbers\n", image->hardware ? "hardware" : "model");
    g_string_append(out, "segment              flags   address      end     size\n");
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        g_string_append_printf(out, "%-20s a%c%c   %8x %8x %8x\n", s->name, s->exec ? 'x' : 'w',
                               s->bytes == NULL ? 'n' : '-', s->address, s->address + s->size,
                               s->size);
    }
}

static void dump_image_symbols(GString *out, const struct isa_image *image) {
    g_string_append(out, "symbol                            address     size  binding\n");
    for (uint32_t i = 0; i < image->symbols->len; i++) {
        const struct isa_image_symbol *s =
            &g_array_index(image->symbols, struct isa_image_symbol, i);
        g_string_append_printf(out, "%-32s %8x %8x  %s\n", s->name, s->address, s->size,
                               binding_name(s->binding));
    }
}

static void dump_image_code(GString *out, const struct isa_image *image,
                            const struct isa_segment *s, const struct isa_print *options) {
    const char **labels = g_new0(const char *, s->size / 4 + 1);
    for (uint32_t i = 0; i < image->symbols->len; i++) {
        const struct isa_image_symbol *sym =
            &g_array_index(image->symbols, struct isa_image_symbol, i);
        const uint32_t offset = sym->address - s->address;
        if (offset < s->size && offset % 4 == 0 && !sym->absolute) labels[offset / 4] = sym->name;
    }
    struct view v = {.labels = labels,
                     .files = image->files,
                     .lines = (const struct isa_line *)(const void *)image->lines->data,
                     .n_lines = image->lines->len};
    dump_code(out, s->bytes, s->size, s->address, options, &v);
    g_free(labels);
}

void isa_image_dump(GString *out, const struct isa_image *image, uint32_t what,
                    const struct isa_print *options) {
    struct symbolizer z = {image, g_string_new(NULL)};
    struct isa_print print = options != NULL ? *options : (struct isa_print){0};
    print.symbol = symbol_text;
    print.context = &z;
    if (what & ISA_DUMP_SECTIONS) dump_image_sections(out, image);
    if (what & ISA_DUMP_SYMBOLS) dump_image_symbols(out, image);
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        if (s->bytes == NULL || (what & (s->exec ? ISA_DUMP_CODE : ISA_DUMP_DATA)) == 0) continue;
        g_string_append_printf(out, "contents of %s\n", s->name);
        if (s->exec) dump_image_code(out, image, s, &print);
        else dump_data(out, s->bytes, s->size, s->address);
    }
    g_string_free(z.text, true);
}
