/* The package of a finished compile: segments with equal contents stored once, bindings with their
 * addresses, steps, marks, symbols, owners. Nothing here decides anything. */
#include "compile/compile_impl.h"

#include "lower/lower.h"

#include <string.h>

struct packing {
    const struct compile_state *c;
    struct package *p;
    struct arena *a;
    GByteArray *image;
    GHashTable *contents; /* GBytes (borrowed data copied) -> offset in the image */
    GArray *segments;     /* struct package_segment */
    GPtrArray *names;
    GHashTable *name_number;
};

/* --- Names --- */

static uint32_t name_of(struct packing *k, const char *text) {
    gpointer found;
    if (g_hash_table_lookup_extended(k->name_number, text, NULL, &found))
        return GPOINTER_TO_UINT(found);
    char *copy = arena_strdup(k->a, text);
    g_hash_table_insert(k->name_number, copy, GUINT_TO_POINTER(k->names->len));
    g_ptr_array_add(k->names, copy);
    return k->names->len - 1;
}

/* --- Segments --- */

static uint32_t content_offset(struct packing *k, const void *data, uint32_t bytes) {
    GBytes *key = g_bytes_new(data, bytes);
    gpointer found;
    if (g_hash_table_lookup_extended(k->contents, key, NULL, &found)) {
        g_bytes_unref(key);
        return GPOINTER_TO_UINT(found);
    }
    const uint32_t offset = k->image->len;
    g_byte_array_append(k->image, data, bytes);
    g_hash_table_insert(k->contents, key, GUINT_TO_POINTER(offset));
    return offset;
}

static void add_segment(struct packing *k, uint32_t kind, uint32_t address, const void *data,
                        uint32_t bytes) {
    if (bytes == 0) return;
    const struct package_segment s = {
        .address = address, .bytes = bytes, .kind = kind,
        .offset = kind == PACKAGE_SEGMENT_ZERO ? 0 : content_offset(k, data, bytes)};
    g_array_append_val(k->segments, s);
}

static int compare_segments(const void *a, const void *b) {
    const struct package_segment *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Zeroed allocations of a tile may share storage: their union. */
static void merge_zeros(GArray *segments) {
    uint32_t out = 0;
    for (uint32_t i = 0; i < segments->len; i++) {
        struct package_segment *s = &g_array_index(segments, struct package_segment, i);
        struct package_segment *last =
            out > 0 ? &g_array_index(segments, struct package_segment, out - 1) : NULL;
        if (last != NULL && last->kind == PACKAGE_SEGMENT_ZERO && s->kind == PACKAGE_SEGMENT_ZERO &&
            s->address <= last->address + last->bytes) {
            last->bytes = MAX(last->bytes, s->address + s->bytes - last->address);
            continue;
        }
        g_array_index(segments, struct package_segment, out++) = *s;
    }
    g_array_set_size(segments, out);
}

static uint32_t extent_of(const struct compile_state *c, uint32_t i) {
    return c->g->allocs.bytes[i] + (c->g->allocs.blocks[i] - 1) * c->stride[i];
}

static void add_tile(struct packing *k, uint32_t t, const uint32_t *allocs, uint32_t n_allocs) {
    const struct compile_state *c = k->c;
    const struct emit_result *e = c->programs;
    const struct tg_allocs *a = &c->g->allocs;
    add_segment(k, PACKAGE_SEGMENT_CODE, TARGET_ENTRY_ADDRESS, e->stub, sizeof e->stub);
    for (uint32_t i = 0; i < c->image->isa->segments->len; i++) {
        const struct isa_segment *s =
            &g_array_index(c->image->isa->segments, struct isa_segment, i);
        if (s->bytes != NULL) add_segment(k, PACKAGE_SEGMENT_CODE, s->address, s->bytes, s->size);
    }
    add_segment(k, PACKAGE_SEGMENT_PROGRAM, c->support.program_address,
                e->words + e->first_word[t], 4 * (e->first_word[t + 1] - e->first_word[t]));
    add_segment(k, PACKAGE_SEGMENT_ROWS, c->support.rows_address,
                e->row_words + e->first_row_word[t],
                4 * (e->first_row_word[t + 1] - e->first_row_word[t]));
    for (uint32_t i = 0; i < n_allocs; i++)
        if (a->flags[allocs[i]] & TG_ZEROED)
            add_segment(k, PACKAGE_SEGMENT_ZERO, c->address[allocs[i]], NULL,
                        extent_of(c, allocs[i]));
    g_array_sort(k->segments, compare_segments);
}

/* --- Allocations by tile --- */

struct by_tile {
    uint32_t *first; /* [n_tiles + 1] */
    uint32_t *alloc; /* in the graph's order */
};

static struct by_tile allocs_by_tile(const struct tile_graph *g) {
    struct by_tile b = {.first = g_new0(uint32_t, g->n_tiles + 2),
                        .alloc = g_new0(uint32_t, g->allocs.n + 1)};
    for (uint32_t i = 0; i < g->allocs.n; i++) b.first[g->allocs.tile[i] + 2]++;
    for (uint32_t t = 0; t < g->n_tiles; t++) b.first[t + 2] += b.first[t + 1];
    for (uint32_t i = 0; i < g->allocs.n; i++) b.alloc[b.first[g->allocs.tile[i] + 1]++] = i;
    return b;
}

static void pack_segments(struct packing *k, const struct by_tile *by) {
    const uint32_t n = k->c->g->n_tiles;
    struct package *p = k->p;
    p->first_segment = arena_new_array(k->a, uint32_t, n + 1);
    GArray *all = g_array_new(false, false, sizeof(struct package_segment));
    for (uint32_t t = 0; t < n; t++) {
        g_array_set_size(k->segments, 0);
        add_tile(k, t, by->alloc + by->first[t], by->first[t + 1] - by->first[t]);
        merge_zeros(k->segments);
        g_array_append_vals(all, k->segments->data, k->segments->len);
        p->first_segment[t + 1] = all->len;
    }
    p->segments = arena_copy(k->a, all->data, sizeof *p->segments * all->len);
    g_array_free(all, true);
    p->image = arena_copy(k->a, k->image->data, k->image->len);
    p->image_bytes = k->image->len;
}

static void pack_owners(struct packing *k, const struct by_tile *by) {
    const struct tile_graph *g = k->c->g;
    const struct tg_allocs *a = &g->allocs;
    struct package *p = k->p;
    p->first_owner = arena_new_array(k->a, uint32_t, g->n_tiles + 1);
    p->owners = arena_new_array(k->a, struct package_owner, a->n);
    for (uint32_t t = 0; t < g->n_tiles; t++) p->first_owner[t + 1] = by->first[t + 1];
    for (uint32_t k2 = 0; k2 < a->n; k2++) {
        const uint32_t i = by->alloc[k2];
        p->owners[k2] = (struct package_owner){
            .address = k->c->address[i], .bytes = extent_of(k->c, i), .tail_bytes = a->tail_bytes[i],
            .name = name_of(k, g->names[a->value[i]]), .first_step = a->first_step[i],
            .last_step = a->last_step[i]};
    }
}

/* --- Steps and marks --- */

static void pack_steps(struct packing *k) {
    const struct tile_graph *g = k->c->g;
    struct package *p = k->p;
    p->n_steps = g->n_steps;
    p->steps = arena_new_array(k->a, struct package_step, g->n_steps);
    uint32_t exchange = 0;
    for (uint32_t s = 0; s < g->n_steps; s++) {
        const struct tg_step *from = &g->steps[s];
        struct package_step *to = &p->steps[s];
        *to = (struct package_step){.kind = from->kind, .count = from->count,
                                    .operation = name_of(k, g->names[from->operation]),
                                    .reason = name_of(k, g->names[from->reason])};
        if (from->kind != TG_EXCHANGE) continue;
        const struct exch_result *x = k->c->rows[exchange++];
        to->horizon = x->horizon;
        to->transfers = from->end - from->first;
        to->messages = x->n_messages;
        to->endpoint_bound = x->bounds.endpoint;
        to->bound = x->bounds.any_width;
        to->row_bytes_max = x->row_bytes_max;
        to->row_bytes_tile = x->row_bytes_tile;
        for (uint32_t i = from->first; i < from->end; i++)
            to->words += (uint64_t)g->transfers.words[i] * (g->transfers.first_recipient[i + 1] -
                                                            g->transfers.first_recipient[i]);
    }
}

/* Words that every tile sends and receives in one phase. */
static void phase_words(const struct tile_graph *g, uint32_t step, uint32_t *send,
                        uint32_t *receive) {
    const struct tg_transfers *x = &g->transfers;
    memset(send, 0, sizeof *send * g->n_tiles);
    memset(receive, 0, sizeof *receive * g->n_tiles);
    for (uint32_t i = g->steps[step].first; i < g->steps[step].end; i++) {
        send[g->allocs.tile[x->source[i].alloc]] += x->words[i];
        for (uint32_t r = x->first_recipient[i]; r < x->first_recipient[i + 1]; r++)
            receive[g->allocs.tile[x->recipient[r].alloc]] += x->words[i];
    }
}

static void pack_compute_mark(struct packing *k, uint32_t t, struct package_mark *m) {
    const struct tile_graph *g = k->c->g;
    const uint32_t *of_tile = g->call_of_tile + g->steps[m->step].first_call;
    m->calls = of_tile[t + 1] - of_tile[t];
    m->kernel = name_of(k, kernel_symbol(&g->specs[g->calls.spec[of_tile[t]]]));
}

static void pack_marks(struct packing *k) {
    const struct tile_graph *g = k->c->g;
    const struct emit_result *e = k->c->programs;
    struct package *p = k->p;
    const uint32_t n = g->n_tiles;
    p->first_mark = arena_copy(k->a, e->first_mark, sizeof *p->first_mark * (n + 1));
    p->end_pc = arena_copy(k->a, e->end_pc, sizeof *p->end_pc * n);
    p->marks = arena_new_array(k->a, struct package_mark, e->first_mark[n]);
    for (uint32_t t = 0; t < n; t++)
        for (uint32_t i = e->first_mark[t]; i < e->first_mark[t + 1]; i++) {
            p->marks[i] = (struct package_mark){
                .step = e->marks[i].step, .pc = e->marks[i].pc, .kernel = TG_NONE,
                .predicted_start = e->predicted_start[i], .predicted_end = e->predicted_end[i]};
            if (g->steps[e->marks[i].step].kind == TG_COMPUTE)
                pack_compute_mark(k, t, &p->marks[i]);
            else if (g->steps[e->marks[i].step].kind == TG_REPEAT_BEGIN)
                p->marks[i].calls = g->steps[e->marks[i].step].count - 1;
        }
    uint32_t *send = g_new0(uint32_t, n), *receive = g_new0(uint32_t, n);
    uint32_t *at = g_memdup2(p->first_mark, sizeof *at * n);
    for (uint32_t x = 0; x < k->c->n_exchanges; x++) {
        const uint32_t step = k->c->exchange_step[x];
        phase_words(g, step, send, receive);
        for (uint32_t t = 0; t < n; t++) {
            while (p->marks[at[t]].step != step) at[t]++;
            p->marks[at[t]].calls = k->c->rows[x]->active[t] != 0;
            p->marks[at[t]].send_words = send[t];
            p->marks[at[t]].receive_words = receive[t];
        }
    }
    g_free(send);
    g_free(receive);
    g_free(at);
    if (k->c->o->sample)
        p->sample_address = arena_copy(k->a, k->c->sample_address, 4 * (size_t)n);
}

/* --- Bindings --- */

static void pack_slice(const struct packing *k, const struct tg_slice *from,
                       struct package_slice *to) {
    const struct tg_allocs *a = &k->c->g->allocs;
    *to = (struct package_slice){.tile = a->tile[from->alloc],
                                 .address = k->c->address[from->alloc] + from->mem_offset +
                                            from->block * k->c->stride[from->alloc],
                                 .tensor_offset = from->tensor_offset, .n_dims = from->n_dims,
                                 .step = from->step};
    memcpy(to->count, from->count, sizeof to->count);
    memcpy(to->tensor_step, from->tensor_step, sizeof to->tensor_step);
    memcpy(to->mem_step, from->mem_step, sizeof to->mem_step);
}

static void pack_bindings(struct packing *k) {
    const struct tile_graph *g = k->c->g;
    struct package *p = k->p;
    p->n_slices = g->n_slices;
    p->slices = arena_new_array(k->a, struct package_slice, g->n_slices);
    for (uint32_t i = 0; i < g->n_slices; i++) pack_slice(k, &g->slices[i], &p->slices[i]);
    p->n_bindings = g->n_bindings;
    p->bindings = arena_new_array(k->a, struct package_binding, g->n_bindings);
    for (uint32_t i = 0; i < g->n_bindings; i++) {
        const struct tg_binding *from = &g->bindings[i];
        struct package_binding *to = &p->bindings[i];
        *to = (struct package_binding){.name = arena_strdup(k->a, from->name), .kind = from->kind,
                                       .format = from->format, .scale = from->scale,
                                       .n_dims = from->n_dims, .bound = from->bound,
                                       .first_slice = from->first_slice,
                                       .end_slice = from->end_slice};
        memcpy(to->shape, from->shape, sizeof to->shape);
        to->data_bytes = package_binding_elements(to) * package_format_bytes(to->format);
    }
}

/* --- Symbols --- */

static void pack_symbols(struct packing *k) {
    const struct isa_image *image = k->c->image->isa;
    struct package *p = k->p;
    p->symbols = arena_new_array(k->a, struct package_symbol, image->symbols->len);
    for (uint32_t i = 0; i < image->symbols->len; i++) {
        const struct isa_image_symbol *s =
            &g_array_index(image->symbols, struct isa_image_symbol, i);
        if (s->absolute || !target_in_sram(s->address)) continue;
        p->symbols[p->n_symbols++] = (struct package_symbol){
            .name = arena_strdup(k->a, s->name), .address = s->address, .bytes = s->size};
    }
    p->lines = arena_new_array(k->a, struct package_line, image->lines->len);
    for (uint32_t i = 0; i < image->lines->len; i++) {
        const struct isa_line *l = &g_array_index(image->lines, struct isa_line, i);
        p->lines[p->n_lines++] = (struct package_line){
            .address = l->offset, .line = l->line,
            .file = name_of(k, g_ptr_array_index(image->files, l->file))};
    }
}

/* --- The description --- */

static uint32_t count_active(const struct package *p) {
    uint32_t n = 0;
    for (uint32_t t = 0; t < p->meta.n_tiles; t++) {
        bool active = false;
        for (uint32_t i = p->first_mark[t]; i < p->first_mark[t + 1]; i++)
            active = active || p->marks[i].calls != 0;
        n += active;
    }
    return n;
}

static uint32_t support_bytes(const struct package *p, uint32_t t) {
    uint32_t n = TARGET_DATA_BASE - TARGET_COMPLETION_WORD;
    for (uint32_t i = p->first_segment[t]; i < p->first_segment[t + 1]; i++)
        if (p->segments[i].kind != PACKAGE_SEGMENT_ZERO) n += p->segments[i].bytes;
    if (p->meta.samples) n += 4 * (p->first_mark[t + 1] - p->first_mark[t] + 1);
    return n;
}

static void pack_meta(struct packing *k) {
    const struct compile_state *c = k->c;
    struct package *p = k->p;
    struct package_meta *m = &p->meta;
    *m = (struct package_meta){
        .target = "ipu21",
        .compiler = "ipu-stack " IPU_STACK_VERSION,
        .workload = arena_strdup(k->a, c->o->workload != NULL ? c->o->workload : ""),
        .isa_version = arena_printf(k->a, "%d", ISA_TABLE_VERSION),
        .plan = arena_strdup(k->a, c->o->plan != NULL ? c->o->plan : ""),
        .n_tiles = c->g->n_tiles,
        .entry = TARGET_ENTRY_ADDRESS,
        .samples = c->o->sample,
        .cycles_predicted = c->programs->cycles_predicted,
        .exchange_cycles_predicted = c->programs->exchange_cycles,
        .row_bytes_max = c->programs->row_bytes_max,
        .program_bytes_max = c->programs->program_bytes_max,
    };
    m->n_active_tiles = count_active(p);
    uint32_t *peak = g_new0(uint32_t, m->n_tiles);
    tile_graph_peaks(c->g, peak, NULL, NULL);
    for (uint32_t t = 0; t < m->n_tiles; t++) {
        const uint32_t bytes = peak[t] + support_bytes(p, t);
        if (bytes <= m->peak_tile_bytes) continue;
        m->peak_tile_bytes = bytes;
        m->peak_tile = t;
    }
    g_free(peak);
}

struct package *compile_package(const struct compile_state *c, GError **error) {
    struct package *p = package_new();
    struct packing k = {
        .c = c, .p = p, .a = p->arena, .image = g_byte_array_new(),
        .contents = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                          (GDestroyNotify)g_bytes_unref, NULL),
        .segments = g_array_new(false, false, sizeof(struct package_segment)),
        .names = g_ptr_array_new(), .name_number = g_hash_table_new(g_str_hash, g_str_equal)};
    p->meta.n_tiles = c->g->n_tiles;
    p->meta.samples = c->o->sample;
    const struct by_tile by = allocs_by_tile(c->g);
    pack_segments(&k, &by);
    pack_owners(&k, &by);
    pack_steps(&k);
    pack_marks(&k);
    pack_bindings(&k);
    pack_symbols(&k);
    pack_meta(&k);
    p->n_names = k.names->len;
    p->names = arena_copy(k.a, k.names->pdata, sizeof *p->names * k.names->len);
    g_free(by.first);
    g_free(by.alloc);
    g_byte_array_free(k.image, true);
    g_hash_table_destroy(k.contents);
    g_array_free(k.segments, true);
    g_ptr_array_free(k.names, true);
    g_hash_table_destroy(k.name_number);
    if (package_check(p, "package", error)) return p;
    package_free(p);
    return NULL;
}
