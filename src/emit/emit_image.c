/* Linking device/ for one graph, and where the common parts go.
 *
 *   CODE_BASE ..          runtime and kernels, below the host window
 *   HOST_WINDOW ..        the host's
 *   COMPLETION_WORD ..    runtime state: completion and profile words, stacks
 *   the next element ..   kernels that found no room, generated programs, rows, each with the fetch
 *                         guard behind it
 */
#include "emit/emit.h"

#include <string.h>

/* Executables behind the runtime state start in an element of their own. */
static uint32_t range_base(void) {
    return align_up_u32(TARGET_DATA_BASE, TARGET_ELEMENT_BYTES);
}

static uint32_t behind(uint32_t end) {
    return align_up_u32(end + TARGET_FETCH_AHEAD_BYTES, 8);
}

static bool add_root(GPtrArray *roots, const char *name) {
    for (uint32_t i = 0; i < roots->len; i++)
        if (strcmp(roots->pdata[i], name) == 0) return false;
    g_ptr_array_add(roots, (gpointer)name);
    return true;
}

static GPtrArray *find_roots(const struct tile_graph *g) {
    static const char *const runtime[] = {"runtime_start", "runtime_complete", "runtime_barrier",
                                          "runtime_sample"};
    GPtrArray *roots = g_ptr_array_new();
    for (uint32_t i = 0; i < ARRAY_LEN(runtime); i++) add_root(roots, runtime[i]);
    for (uint32_t i = 0; i < g->n_specs; i++) add_root(roots, kernel_symbol(&g->specs[i]));
    return roots;
}

static GPtrArray *read_objects(GError **error) {
    size_t n;
    const struct kernel_object *objects = kernel_objects(&n);
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)isa_object_free);
    for (size_t i = 0; i < n; i++) {
        struct isa_object *o =
            isa_object_read(objects[i].bytes, objects[i].size, objects[i].name, error);
        if (o == NULL) {
            g_ptr_array_free(all, true);
            return NULL;
        }
        g_ptr_array_add(all, o);
    }
    return all;
}

static struct isa_image *link_image(GPtrArray *objects, GPtrArray *roots, bool split, GError **error) {
    const struct isa_place places[] = {{".text.runtime_start", TARGET_CODE_BASE},
                                       {".text", range_base()}};
    const struct isa_layout layout = {
        .places = places,
        .n_places = split ? ARRAY_LEN(places) : 0,
        .roots = (const char *const *)roots->pdata,
        .n_roots = roots->len,
    };
    struct isa_messages messages;
    isa_messages_init(&messages);
    struct isa_image *image =
        isa_link((struct isa_object *const *)objects->pdata, objects->len, &layout, &messages);
    if (image == NULL) {
        GString *text = g_string_new(NULL);
        isa_messages_print(&messages, text);
        diag_set(error, EMIT_LINK, g_strchomp(text->str));
        g_string_free(text, true);
    }
    isa_messages_clear(&messages);
    return image;
}

/* End of what lies below the host window, and of what lies behind the runtime state. */
static void image_ends(const struct isa_image *image, uint32_t *ret_low, uint32_t *ret_high) {
    *ret_low = TARGET_CODE_BASE;
    *ret_high = range_base();
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        uint32_t *end = s->address < range_base() ? ret_low : ret_high;
        *end = MAX(*end, s->address + s->size);
    }
}

static uint32_t entry_of(const struct isa_image *image, const char *name) {
    const struct isa_image_symbol *s = isa_image_find(image, name);
    BUG_ON(s == NULL);
    return s->address;
}

struct emit_image *emit_image_new(const struct tile_graph *g, GError **error) {
    GPtrArray *objects = read_objects(error);
    if (objects == NULL) return NULL;
    GPtrArray *roots = find_roots(g);
    struct isa_image *isa = link_image(objects, roots, false, error);
    uint32_t low = 0, high = 0;
    if (isa != NULL) image_ends(isa, &low, &high);
    if (isa != NULL && low + TARGET_FETCH_AHEAD_BYTES > TARGET_HOST_WINDOW_BASE) {
        isa_image_free(isa);
        isa = link_image(objects, roots, true, error);
        if (isa != NULL) image_ends(isa, &low, &high);
    }
    g_ptr_array_free(roots, true);
    g_ptr_array_free(objects, true);
    if (isa == NULL) return NULL;
    struct emit_image *image = g_new0(struct emit_image, 1);
    image->isa = isa;
    image->start = entry_of(isa, "runtime_start");
    image->complete = entry_of(isa, "runtime_complete");
    image->barrier = entry_of(isa, "runtime_barrier");
    image->sample = entry_of(isa, "runtime_sample");
    image->end_address = high == range_base() ? high : behind(high);
    return image;
}

void emit_image_free(struct emit_image *image) {
    if (image == NULL) return;
    isa_image_free(image->isa);
    g_free(image);
}

bool emit_support_layout(const struct emit_image *image, uint32_t program_bytes,
                         uint32_t rows_bytes, struct emit_support *ret, uint32_t *ret_missing) {
    struct emit_support s = {.program_address = image->end_address, .program_bytes = program_bytes,
                             .rows_bytes = rows_bytes};
    s.rows_address = behind(s.program_address + program_bytes);
    const uint32_t end = s.rows_address + rows_bytes + TARGET_FETCH_AHEAD_BYTES;
    *ret = s;
    if (end <= TARGET_REGION1_BASE) return true;
    *ret_missing = end - TARGET_REGION1_BASE;
    return false;
}
