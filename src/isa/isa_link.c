/* The linker. Global names are gathered (strong before common before weak, two strong ones are an
 * error, common ones of one name share the room of the largest); with
 * roots the sections that no relocation reaches from them are left out; kept sections are placed in
 * the order of the objects, each in the first group that fits: a place of the layout, text, data;
 * then relocations are applied (isa 8.9). Cost: linear in symbols, relocations and bytes, plus
 * sorting. */
#include "isa/isa_form.h"
#include "isa/isa_obj.h"

#include "target/target.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct input {
    struct isa_section *section;
    uint32_t object;
    uint64_t place; /* address, before it is known to be one */
    bool kept, placed;
};
struct global {
    uint32_t object,
        symbol; /* object UINT32_MAX: a define of the layout, with `symbol` its number */
};
struct link {
    struct isa_object *const *objects;
    uint32_t n_objects;
    const struct isa_layout *layout;
    struct isa_messages *messages;
    struct input *inputs;
    uint32_t n_inputs;
    uint32_t *first_input; /* of each object */
    GHashTable *globals;   /* name -> struct global */
    GPtrArray *commons; /* struct isa_section *, one per common name, as inputs behind all others */
    GHashTable *common_of; /* name -> its index in commons + 1 */
    struct isa_image *image;
};

/* Where something is wrong; object UINT32_MAX: in the link as a whole. */
struct where {
    uint32_t object;
    const struct isa_section *section; /* NULL: the object */
    uint32_t offset;
};

/* Source line of a place in an object with a line table; *ret_file is NULL without. */
static uint32_t source_line(const struct link *l, const struct where *w, const char **ret_file) {
    *ret_file = NULL;
    if (w->section == NULL) return 0;
    const struct isa_line *line = NULL;
    for (uint32_t i = 0; i < w->section->lines->len; i++) {
        const struct isa_line *k = &g_array_index(w->section->lines, struct isa_line, i);
        if (k->offset > w->offset) break;
        line = k;
    }
    if (line == NULL) return 0;
    *ret_file = g_ptr_array_index(l->objects[w->object]->files, line->file);
    return line->line;
}

/* "a.o:.text+0x4", and with `source` " (a.s:3)" if that is known; g_free'd. */
static char *where_text(const struct link *l, const struct where *w, bool source) {
    if (w->object == UINT32_MAX) return g_strdup("the layout");
    const char *name = l->objects[w->object]->name, *file;
    if (w->section == NULL) return g_strdup(name);
    const uint32_t line = source ? source_line(l, w, &file) : 0;
    char *at = g_strdup_printf("%s:%s+0x%x", name, w->section->name, w->offset);
    if (line == 0) return at;
    char *text = g_strdup_printf("%s (%s:%u)", at, file, line);
    g_free(at);
    return text;
}

static void fail(struct link *l, const struct where *w, uint32_t code, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
static void fail(struct link *l, const struct where *w, uint32_t code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = g_strdup_vprintf(format, args);
    va_end(args);
    const char *file = NULL;
    const uint32_t line = w->object != UINT32_MAX ? source_line(l, w, &file) : 0;
    if (file == NULL) file = w->object != UINT32_MAX ? l->objects[w->object]->name : "link";
    const struct isa_message m = {.severity = ISA_ERROR,
                                  .code = code,
                                  .text = text,
                                  .file = (char *)(uintptr_t)file,
                                  .line = line};
    isa_messages_add(l->messages, &m);
    g_free(text);
}
#define link_fail(l, where, name, ...)                                                             \
    fail((l), (where), DIAG_##name, DIAG_TEXT_##name, ##__VA_ARGS__)
static const struct where whole_link = {.object = UINT32_MAX};

/* --- Names. --- */

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static struct isa_symbol *symbol_of(const struct link *l, uint32_t object, uint32_t symbol) {
    return &g_array_index(l->objects[object]->symbols, struct isa_symbol, symbol);
}

/* Where a symbol is defined. */
static struct where symbol_where(const struct link *l, const struct global *g) {
    if (g->object == UINT32_MAX) return whole_link;
    const struct isa_symbol *s = symbol_of(l, g->object, g->symbol);
    if (s->section < 0) return (struct where){.object = g->object};
    return (struct where){g->object, g_ptr_array_index(l->objects[g->object]->sections, s->section),
                          s->value};
}

static void add_global(struct link *l, uint32_t object, uint32_t symbol) {
    const struct isa_symbol *s = symbol_of(l, object, symbol);
    struct global *g = g_hash_table_lookup(l->globals, s->name);
    if (g != NULL) {
        const bool old_weak =
            g->object != UINT32_MAX && symbol_of(l, g->object, g->symbol)->binding == ISA_WEAK;
        if (s->binding == ISA_WEAK) return;
        if (!old_weak) {
            const struct where here = symbol_where(l, &(struct global){object, symbol});
            const struct where first = symbol_where(l, g);
            char *here_text = where_text(l, &here, false),
                 *first_text = where_text(l, &first, true);
            link_fail(l, &here, ISA_DUPLICATE, s->name, here_text, first_text);
            g_free(here_text);
            g_free(first_text);
            return;
        }
    }
    struct global *n = g_new(struct global, 1);
    *n = (struct global){object, symbol};
    g_hash_table_insert(l->globals, s->name, n);
}

/* Room for a common name that is not defined otherwise. */
static void add_common(struct link *l, uint32_t object, uint32_t symbol) {
    const struct isa_symbol *s = symbol_of(l, object, symbol);
    uint32_t at = GPOINTER_TO_UINT(g_hash_table_lookup(l->common_of, s->name));
    const struct global *g = g_hash_table_lookup(l->globals, s->name);
    const bool weak = g != NULL && g->object != UINT32_MAX &&
                      symbol_of(l, g->object, g->symbol)->binding == ISA_WEAK;
    if (at == 0 && g != NULL && !weak) return;
    if (at == 0) {
        struct isa_section *section = g_new(struct isa_section, 1);
        *section = (struct isa_section){
            .name = g_strdup(".bss"),
            .flags = ISA_SECTION_ALLOC | ISA_SECTION_WRITE | ISA_SECTION_NOBITS,
            .relocs = g_array_new(false, false, sizeof(struct isa_reloc)),
            .lines = g_array_new(false, false, sizeof(struct isa_line))};
        g_ptr_array_add(l->commons, section);
        at = l->commons->len;
        g_hash_table_insert(l->common_of, s->name, GUINT_TO_POINTER(at));
        struct global *n = g_new(struct global, 1);
        *n = (struct global){object, symbol};
        g_hash_table_insert(l->globals, s->name, n);
    }
    struct isa_section *section = g_ptr_array_index(l->commons, at - 1);
    section->size = MAX(section->size, s->size);
    section->align = MAX(section->align, s->value);
}

static void gather(struct link *l) {
    for (uint32_t i = 0; i < l->layout->n_defines; i++) {
        struct global *g = g_new(struct global, 1);
        *g = (struct global){UINT32_MAX, i};
        g_hash_table_insert(l->globals, (char *)(uintptr_t)l->layout->defines[i].name, g);
    }
    for (uint32_t o = 0; o < l->n_objects; o++)
        for (uint32_t i = 0; i < l->objects[o]->symbols->len; i++) {
            const struct isa_symbol *s = symbol_of(l, o, i);
            if (s->binding != ISA_LOCAL && s->section != ISA_IN_NONE && s->section != ISA_IN_COMMON)
                add_global(l, o, i);
        }
    for (uint32_t o = 0; o < l->n_objects; o++)
        for (uint32_t i = 0; i < l->objects[o]->symbols->len; i++)
            if (symbol_of(l, o, i)->section == ISA_IN_COMMON) add_common(l, o, i);
}

/* Where a symbol of an object is defined; false if nowhere (weak references then count as 0). */
static bool resolve(const struct link *l, uint32_t object, uint32_t symbol, struct global *ret) {
    const struct isa_symbol *s = symbol_of(l, object, symbol);
    if (s->section != ISA_IN_NONE && s->binding == ISA_LOCAL) {
        *ret = (struct global){object, symbol};
        return true;
    }
    const struct global *g = g_hash_table_lookup(l->globals, s->name);
    if (g != NULL) *ret = *g;
    return g != NULL;
}

/* --- Sections that are needed. --- */

static void list_inputs(struct link *l) {
    uint32_t n = l->commons->len;
    for (uint32_t o = 0; o < l->n_objects; o++) n += l->objects[o]->sections->len;
    l->inputs = g_new0(struct input, n + 1);
    l->first_input = g_new(uint32_t, l->n_objects + 1);
    for (uint32_t o = 0; o < l->n_objects; o++) {
        l->first_input[o] = l->n_inputs;
        for (uint32_t i = 0; i < l->objects[o]->sections->len; i++)
            l->inputs[l->n_inputs++] = (struct input){
                .section = g_ptr_array_index(l->objects[o]->sections, i), .object = o};
    }
    l->first_input[l->n_objects] = l->n_inputs;
    for (uint32_t i = 0; i < l->commons->len; i++)
        l->inputs[l->n_inputs++] = (struct input){.section = g_ptr_array_index(l->commons, i)};
}

/* The input that holds a defined symbol, or NULL (absolute). */
static struct input *input_of(const struct link *l, const struct global *g) {
    if (g->object == UINT32_MAX) return NULL;
    const struct isa_symbol *s = symbol_of(l, g->object, g->symbol);
    if (s->section == ISA_IN_COMMON) {
        const uint32_t at = GPOINTER_TO_UINT(g_hash_table_lookup(l->common_of, s->name));
        return &l->inputs[l->first_input[l->n_objects] + at - 1];
    }
    return s->section < 0 ? NULL : &l->inputs[l->first_input[g->object] + (uint32_t)s->section];
}

static void want(const struct global *g, struct link *l, GPtrArray *work) {
    struct input *in = input_of(l, g);
    if (in == NULL || in->kept) return;
    in->kept = true;
    g_ptr_array_add(work, in);
}

/* What may have been meant by an undefined name, and where it is needed. */
static void fail_undefined(struct link *l, const struct where *w, const char *name,
                           const char *needed) {
    guint n;
    char **names = (char **)g_hash_table_get_keys_as_array(l->globals, &n);
    qsort(names, n, sizeof(names[0]), compare_names);
    char *meant = isa_suggest(name, (const char *const *)names, n);
    char *text = g_strdup_printf(" (%s)%s", needed, meant);
    link_fail(l, w, ISA_UNDEFINED, name, text);
    g_free(text);
    g_free(meant);
    g_free(names);
}

static void want_name(struct link *l, const char *name, const char *why, GPtrArray *work) {
    const struct global *g = g_hash_table_lookup(l->globals, name);
    if (g == NULL) fail_undefined(l, &whole_link, name, why);
    else want(g, l, work);
}

static void keep_reachable(struct link *l) {
    GPtrArray *work = g_ptr_array_new();
    for (uint32_t i = 0; i < l->layout->n_roots; i++)
        want_name(l, l->layout->roots[i], "a root", work);
    if (l->layout->entry != NULL) want_name(l, l->layout->entry, "the entry", work);
    while (work->len > 0) {
        const struct input *in = g_ptr_array_steal_index(work, work->len - 1);
        for (uint32_t i = 0; i < in->section->relocs->len; i++) {
            const struct isa_reloc *r = &g_array_index(in->section->relocs, struct isa_reloc, i);
            struct global g;
            if (resolve(l, in->object, r->symbol, &g)) want(&g, l, work);
        }
    }
    g_ptr_array_free(work, true);
}

static void choose_inputs(struct link *l) {
    if (l->layout->n_roots != 0) {
        keep_reachable(l);
    } else {
        for (uint32_t i = 0; i < l->n_inputs; i++) l->inputs[i].kept = true;
        if (l->layout->entry != NULL && g_hash_table_lookup(l->globals, l->layout->entry) == NULL)
            fail_undefined(l, &whole_link, l->layout->entry, "the entry");
    }
    for (uint32_t i = 0; i < l->n_inputs; i++)
        if ((l->inputs[i].section->flags & ISA_SECTION_ALLOC) == 0) l->inputs[i].kept = false;
}

/* --- Places. --- */

static bool name_in_place(const char *section, const char *place) {
    const size_t n = strlen(place);
    return strncmp(section, place, n) == 0 && (section[n] == 0 || section[n] == '.');
}

static uint64_t put_at(struct input *in, uint64_t at) {
    at = align_up_u64(at, in->section->align);
    in->place = at;
    in->placed = true;
    return at + in->section->size;
}

static void check_range(struct link *l, const struct input *in) {
    const struct isa_section *s = in->section;
    const uint64_t end = in->place + s->size;
    const bool map = !l->layout->anywhere;
    const char *what = NULL;
    if (end > UINT32_MAX || (map && end > TARGET_SRAM_END))
        what = "goes beyond the end of tile memory";
    else if (map && in->place < TARGET_SRAM_BASE) what = "lies below tile memory";
    else if (map && (s->flags & ISA_SECTION_EXEC) != 0 && end > TARGET_REGION1_BASE)
        what = "is executable and reaches the interleaved region, where nothing is fetched";
    if (what == NULL || s->size == 0) return;
    const struct where w = {in->object, NULL, 0};
    link_fail(l, &w, ISA_PLACE, s->name, (guint64)in->place, (guint64)end, what);
}

static int compare_inputs(const void *a, const void *b) {
    const struct input *x = *(const struct input *const *)a, *y = *(const struct input *const *)b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    return (x > y) - (x < y);
}

static void check_overlap(struct link *l) {
    GPtrArray *sorted = g_ptr_array_new();
    for (uint32_t i = 0; i < l->n_inputs; i++)
        if (l->inputs[i].kept && l->inputs[i].section->size != 0)
            g_ptr_array_add(sorted, &l->inputs[i]);
    g_ptr_array_sort(sorted, compare_inputs);
    const struct input *last = NULL; /* reaches furthest */
    for (uint32_t i = 0; i < sorted->len; i++) {
        const struct input *in = g_ptr_array_index(sorted, i);
        const uint64_t end = in->place + in->section->size;
        if (last != NULL && in->place < last->place + last->section->size) {
            char *what = g_strdup_printf("overlaps %s of %s at 0x%" G_GINT64_MODIFIER
                                         "x..0x%" G_GINT64_MODIFIER "x",
                                         last->section->name, l->objects[last->object]->name,
                                         last->place, last->place + last->section->size);
            const struct where w = {in->object, NULL, 0};
            link_fail(l, &w, ISA_PLACE, in->section->name, (guint64)in->place, (guint64)end, what);
            g_free(what);
        }
        if (last == NULL || end > last->place + last->section->size) last = in;
    }
    g_ptr_array_free(sorted, true);
}

static void place_all(struct link *l) {
    const struct isa_layout *y = l->layout;
    for (uint32_t p = 0; p < y->n_places; p++) {
        uint64_t at = y->places[p].base;
        for (uint32_t i = 0; i < l->n_inputs; i++) {
            struct input *in = &l->inputs[i];
            if (in->kept && !in->placed && name_in_place(in->section->name, y->places[p].name))
                at = put_at(in, at);
        }
    }
    uint64_t interleaved = TARGET_REGION1_BASE;
    for (uint32_t i = 0; i < l->n_inputs; i++) {
        struct input *in = &l->inputs[i];
        if (in->kept && !in->placed && name_in_place(in->section->name, ".interleaved"))
            interleaved = put_at(in, interleaved);
    }
    uint64_t text = y->text_base != 0 || y->base_zero ? y->text_base : TARGET_CODE_BASE;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint64_t at = pass == 0 ? text : y->data_base != 0 ? y->data_base : align_up_u64(text, 8);
        for (uint32_t i = 0; i < l->n_inputs; i++) {
            struct input *in = &l->inputs[i];
            const bool exec = (in->section->flags & ISA_SECTION_EXEC) != 0;
            if (in->kept && !in->placed && exec == (pass == 0)) at = put_at(in, at);
        }
        if (pass == 0) text = at;
    }
    for (uint32_t i = 0; i < l->n_inputs; i++)
        if (l->inputs[i].kept) check_range(l, &l->inputs[i]);
    check_overlap(l);
}

/* --- Relocations. --- */

static bool address_of(const struct link *l, const struct global *g, uint32_t *ret) {
    if (g->object == UINT32_MAX) {
        *ret = l->layout->defines[g->symbol].value;
        return true;
    }
    const struct isa_symbol *s = symbol_of(l, g->object, g->symbol);
    const struct input *in = input_of(l, g);
    if (in != NULL && !in->kept) return false;
    const uint32_t offset = s->section == ISA_IN_COMMON ? 0 : s->value;
    *ret = offset + (in != NULL ? (uint32_t)in->place : 0);
    return true;
}

/* Field of a word: value of `bits` at [hi...]; run splits 16 bits into [19:16] and [11:0]. */
static bool patch_word(uint8_t *p, uint64_t value, uint32_t bits, bool run) {
    if (value >> bits != 0) return false;
    const uint32_t mask = run ? 0xf0fff : (uint32_t)((UINT64_C(1) << bits) - 1);
    const uint32_t v = (uint32_t)value;
    const uint32_t field = run ? (v >> 12) << 16 | (v & 0xfff) : v;
    uint32_t w = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    w = (w & ~mask) | field;
    for (uint32_t i = 0; i < 4; i++) p[i] = (uint8_t)(w >> 8 * i);
    return true;
}

static bool patch_bytes(uint8_t *p, int64_t value, uint32_t n) {
    const int64_t limit = n < 8 ? INT64_C(1) << 8 * n : 0;
    if (limit != 0 && (value < -limit / 2 || value >= limit)) return false;
    for (uint32_t i = 0; i < n; i++) p[i] = (uint8_t)((uint64_t)value >> 8 * i);
    return true;
}

static bool patch(uint8_t *p, uint8_t type, int64_t value) {
    const int64_t relative = value - TARGET_SRAM_BASE;
    switch ((enum isa_reloc_type)type) {
    case ISA_R_NONE:
        return true;
    case ISA_R_8:
        return patch_bytes(p, value, 1);
    case ISA_R_16:
        return patch_bytes(p, value, 2);
    case ISA_R_32:
        return patch_bytes(p, value, 4);
    case ISA_R_64:
        return patch_bytes(p, value, 8);
    case ISA_R_20:
        return patch_word(p, (uint64_t)value, 20, false);
    case ISA_R_21:
        return patch_word(p, (uint64_t)value, 21, false);
    case ISA_R_18_S2:
        return value % 4 == 0 && patch_word(p, (uint64_t)value >> 2, 18, false);
    case ISA_R_19_S2:
        return value % 4 == 0 && patch_word(p, (uint64_t)value >> 2, 19, false);
    case ISA_R_RELATIVE_16_S2:
        return relative % 4 == 0 && patch_word(p, (uint64_t)relative >> 2, 16, false);
    case ISA_R_RUN:
        return relative % 4 == 0 && patch_word(p, (uint64_t)relative >> 2, 16, true);
    case ISA_R_16_S3:
        return value % 8 == 0 && patch_word(p, (uint64_t)value >> 3, 16, false);
    case ISA_R_16_S4:
        return value % 16 == 0 && patch_word(p, (uint64_t)value >> 4, 16, false);
    case ISA_R_16_S5:
        return value % 32 == 0 && patch_word(p, (uint64_t)value >> 5, 16, false);
    }
    return false;
}

/* Why a value cannot be put in: the kinds that store it shifted need a multiple. */
static const char *misfit(uint8_t type, int64_t value) {
    const int64_t step = type == ISA_R_16_S3   ? 8
                         : type == ISA_R_16_S4 ? 16
                         : type == ISA_R_16_S5 ? 32
                         : type == ISA_R_RUN || type == ISA_R_RELATIVE_16_S2 ||
                                 type == ISA_R_18_S2 || type == ISA_R_19_S2
                             ? 4
                             : 1;
    static const char *const texts[] = {[4] = "is no multiple of 4",
                                        [8] = "is no multiple of 8",
                                        [16] = "is no multiple of 16",
                                        [32] = "is no multiple of 32"};
    return value % step != 0 ? texts[step] : "does not fit";
}

static void relocate(struct link *l, const struct input *in, uint8_t *bytes) {
    for (uint32_t i = 0; i < in->section->relocs->len; i++) {
        const struct isa_reloc *r = &g_array_index(in->section->relocs, struct isa_reloc, i);
        const struct isa_symbol *s = symbol_of(l, in->object, r->symbol);
        struct global g;
        uint32_t address = 0;
        const bool found = resolve(l, in->object, r->symbol, &g) && address_of(l, &g, &address);
        const struct where w = {in->object, in->section, r->offset};
        char *at = where_text(l, &w, false);
        if (!found && s->binding != ISA_WEAK) {
            char *needed = g_strdup_printf("needed at %s", at);
            fail_undefined(l, &w, s->name, needed);
            g_free(needed);
            g_free(at);
            continue;
        }
        const int64_t value = (int64_t)address + r->addend;
        if (!patch(bytes + r->offset, r->type, value))
            link_fail(l, &w, ISA_RELOC_RANGE, (unsigned)r->type, s->name, at, value < 0 ? "-" : "",
                      (guint64)(value < 0 ? -value : value), misfit(r->type, value));
        g_free(at);
    }
}

/* --- The image. --- */

static void add_segment(struct link *l, const struct input *in) {
    const struct isa_section *s = in->section;
    struct isa_segment seg = {.address = (uint32_t)in->place,
                              .size = s->size,
                              .name = g_strdup(s->name),
                              .exec = (s->flags & ISA_SECTION_EXEC) != 0};
    if ((s->flags & ISA_SECTION_NOBITS) == 0) {
        seg.bytes = g_memdup2(s->bytes->data, s->size);
        relocate(l, in, seg.bytes);
    }
    g_array_append_val(l->image->segments, seg);
}

static void add_lines(struct link *l, const struct input *in, const uint32_t *file_of) {
    for (uint32_t i = 0; i < in->section->lines->len; i++) {
        struct isa_line line = g_array_index(in->section->lines, struct isa_line, i);
        line.offset += (uint32_t)in->place;
        line.file = file_of[line.file];
        g_array_append_val(l->image->lines, line);
    }
}

/* Files of all objects in one list; the mapping of one object's numbers. */
static uint32_t *merge_files(struct link *l, const struct isa_object *o, GHashTable *known) {
    uint32_t *map = g_new(uint32_t, o->files->len + 1);
    for (uint32_t i = 0; i < o->files->len; i++) {
        const char *name = g_ptr_array_index(o->files, i);
        gpointer at = g_hash_table_lookup(known, name);
        if (at == NULL) {
            g_ptr_array_add(l->image->files, g_strdup(name));
            at = GUINT_TO_POINTER(l->image->files->len);
            g_hash_table_insert(known, (char *)(uintptr_t)name, at);
        }
        map[i] = GPOINTER_TO_UINT(at) - 1;
    }
    return map;
}

static void add_symbols(struct link *l, uint32_t object) {
    for (uint32_t i = 0; i < l->objects[object]->symbols->len; i++) {
        const struct isa_symbol *s = symbol_of(l, object, i);
        if (s->section == ISA_IN_NONE || s->type == ISA_SYM_SECTION || *s->name == 0) continue;
        const struct global g = {object, i};
        const struct global *chosen =
            s->section == ISA_IN_COMMON ? g_hash_table_lookup(l->globals, s->name) : &g;
        if (chosen->object != object || chosen->symbol != i) continue; /* one name, one place */
        uint32_t address;
        if (!address_of(l, &g, &address)) continue;
        const struct isa_image_symbol out = {.name = g_strdup(s->name),
                                             .address = address,
                                             .size = s->size,
                                             .binding = s->binding,
                                             .type = s->type,
                                             .absolute = s->section == ISA_IN_ABSOLUTE};
        g_array_append_val(l->image->symbols, out);
    }
}

static int compare_segments(const void *a, const void *b) {
    const struct isa_segment *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}
static int compare_symbols(const void *a, const void *b) {
    const struct isa_image_symbol *x = a, *y = b;
    if (x->address != y->address) return x->address < y->address ? -1 : 1;
    return strcmp(x->name, y->name);
}
static int compare_lines(const void *a, const void *b) {
    const struct isa_line *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static void build_image(struct link *l) {
    GHashTable *known = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t o = 0; o < l->n_objects; o++) {
        uint32_t *file_of = merge_files(l, l->objects[o], known);
        for (uint32_t i = l->first_input[o]; i < l->first_input[o + 1]; i++) {
            const struct input *in = &l->inputs[i];
            if (!in->kept) continue;
            if (in->section->size != 0) add_segment(l, in);
            add_lines(l, in, file_of);
        }
        add_symbols(l, o);
        g_free(file_of);
    }
    g_hash_table_destroy(known);
    for (uint32_t i = l->first_input[l->n_objects]; i < l->n_inputs; i++)
        if (l->inputs[i].kept && l->inputs[i].section->size != 0) add_segment(l, &l->inputs[i]);
    struct isa_image *image = l->image;
    g_array_sort(image->segments, compare_segments);
    g_array_sort(image->symbols, compare_symbols);
    g_array_sort(image->lines, compare_lines);
    const struct global *entry =
        l->layout->entry != NULL ? g_hash_table_lookup(l->globals, l->layout->entry) : NULL;
    if (entry != NULL) address_of(l, entry, &image->entry);
}

static void check_mixed(struct link *l) {
    for (uint32_t o = 0; o < l->n_objects; o++) {
        if (l->objects[o]->hardware != l->objects[0]->hardware)
            link_fail(l, &whole_link, ISA_MIXED,
                      l->objects[o]->hardware ? l->objects[o]->name : l->objects[0]->name);
        l->image->hardware |= l->objects[o]->hardware;
    }
}

struct isa_image *isa_link(struct isa_object *const *objects, uint32_t n_objects,
                           const struct isa_layout *layout, struct isa_messages *messages) {
    static const struct isa_layout plain = {0};
    const uint32_t errors_before = messages->n_errors;
    struct link l = {.objects = objects,
                     .n_objects = n_objects,
                     .messages = messages,
                     .layout = layout != NULL ? layout : &plain,
                     .image = isa_image_new(),
                     .globals = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free),
                     .commons = g_ptr_array_new_with_free_func((GDestroyNotify)isa_section_free),
                     .common_of = g_hash_table_new(g_str_hash, g_str_equal)};
    check_mixed(&l);
    gather(&l);
    list_inputs(&l);
    choose_inputs(&l);
    place_all(&l);
    build_image(&l);
    g_hash_table_destroy(l.globals);
    g_hash_table_destroy(l.common_of);
    g_ptr_array_free(l.commons, true);
    g_free(l.inputs);
    g_free(l.first_input);
    if (messages->n_errors == errors_before) return l.image;
    isa_image_free(l.image);
    return NULL;
}
