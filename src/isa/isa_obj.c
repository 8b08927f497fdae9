/* Objects and images in memory: freeing, finding. */
#include "isa/isa_obj.h"

#include "isa/isa_form.h"

#include <stdlib.h>
#include <string.h>

struct isa_object *isa_object_new(const char *name) {
    struct isa_object *o = g_new0(struct isa_object, 1);
    o->name = g_strdup(name);
    o->sections = g_ptr_array_new();
    o->symbols = g_array_new(false, false, sizeof(struct isa_symbol));
    o->files = g_ptr_array_new_with_free_func(g_free);
    return o;
}

void isa_section_free(struct isa_section *s) {
    if (s == NULL) return;
    g_free(s->name);
    if (s->bytes != NULL) g_byte_array_free(s->bytes, true);
    if (s->relocs != NULL) g_array_free(s->relocs, true);
    if (s->lines != NULL) g_array_free(s->lines, true);
    g_free(s);
}

void isa_object_free(struct isa_object *o) {
    if (o == NULL) return;
    for (uint32_t i = 0; i < o->sections->len; i++)
        isa_section_free(g_ptr_array_index(o->sections, i));
    for (uint32_t i = 0; i < o->symbols->len; i++)
        g_free(g_array_index(o->symbols, struct isa_symbol, i).name);
    g_ptr_array_free(o->sections, true);
    g_array_free(o->symbols, true);
    g_ptr_array_free(o->files, true);
    g_free(o->name);
    g_free(o);
}

struct isa_image *isa_image_new(void) {
    struct isa_image *image = g_new0(struct isa_image, 1);
    image->segments = g_array_new(false, false, sizeof(struct isa_segment));
    image->symbols = g_array_new(false, false, sizeof(struct isa_image_symbol));
    image->lines = g_array_new(false, false, sizeof(struct isa_line));
    image->files = g_ptr_array_new_with_free_func(g_free);
    return image;
}

void isa_image_free(struct isa_image *image) {
    if (image == NULL) return;
    for (uint32_t i = 0; i < image->segments->len; i++) {
        struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        g_free(s->bytes);
        g_free(s->name);
    }
    for (uint32_t i = 0; i < image->symbols->len; i++)
        g_free(g_array_index(image->symbols, struct isa_image_symbol, i).name);
    g_array_free(image->segments, true);
    g_array_free(image->symbols, true);
    g_array_free(image->lines, true);
    g_ptr_array_free(image->files, true);
    g_free(image);
}

const struct isa_image_symbol *isa_image_find(const struct isa_image *image, const char *name) {
    const struct isa_image_symbol *local = NULL;
    for (uint32_t i = 0; i < image->symbols->len; i++) {
        const struct isa_image_symbol *s =
            &g_array_index(image->symbols, struct isa_image_symbol, i);
        if (strcmp(s->name, name) != 0) continue;
        if (s->binding != ISA_LOCAL) return s;
        local = s;
    }
    return local;
}

static const struct isa_segment *segment_of(const struct isa_image *image, uint32_t address) {
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        if (address - s->address < s->size) return s;
    }
    return NULL;
}

/* A function or global beats a plain label at the same address. */
static uint32_t symbol_rank(const struct isa_image_symbol *s) {
    return 2u * (s->type == ISA_SYM_FUNCTION) + (s->binding != ISA_LOCAL);
}

const struct isa_image_symbol *isa_image_at(const struct isa_image *image, uint32_t address) {
    const struct isa_segment *segment = segment_of(image, address);
    if (segment == NULL) return NULL;
    uint32_t lo = 0, hi = image->symbols->len;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (g_array_index(image->symbols, struct isa_image_symbol, mid).address <= address)
            lo = mid + 1;
        else hi = mid;
    }
    const struct isa_image_symbol *best = NULL;
    while (lo-- > 0) {
        const struct isa_image_symbol *s =
            &g_array_index(image->symbols, struct isa_image_symbol, lo);
        if (s->address < segment->address) break;
        if (best != NULL && s->address < best->address) break;
        if (s->absolute) continue;
        if (best == NULL || symbol_rank(s) > symbol_rank(best)) best = s;
    }
    return best;
}

uint32_t isa_image_line(const struct isa_image *image, uint32_t address, const char **ret_file) {
    *ret_file = NULL;
    const struct isa_segment *segment = segment_of(image, address);
    if (segment == NULL) return 0;
    uint32_t lo = 0, hi = image->lines->len;
    while (lo < hi) {
        const uint32_t mid = (lo + hi) / 2;
        if (g_array_index(image->lines, struct isa_line, mid).offset <= address) lo = mid + 1;
        else hi = mid;
    }
    if (lo == 0) return 0;
    const struct isa_line *line = &g_array_index(image->lines, struct isa_line, lo - 1);
    if (line->offset < segment->address) return 0;
    *ret_file = g_ptr_array_index(image->files, line->file);
    return line->line;
}

void isa_image_flat(const struct isa_image *image, GByteArray *out) {
    uint32_t first = 0;
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        if (i == 0) first = s->address;
        const uint32_t end = s->address - first + s->size, from = out->len;
        if (s->bytes == NULL) continue;
        g_byte_array_set_size(out, end);
        memset(out->data + from, 0, end - from);
        memcpy(out->data + (s->address - first), s->bytes, s->size);
    }
}

uint8_t isa_reloc_type(const struct isa_operand *o) {
    switch (o->class) {
    case ISA_CLASS_W19:
    case ISA_CLASS_W20:
        return ISA_R_19_S2;
    case ISA_CLASS_W16:
        return ISA_R_RUN;
    case ISA_CLASS_Z20:
        return ISA_R_20;
    default:
        return ISA_R_NONE;
    }
}
