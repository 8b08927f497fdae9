/* The growing tile graph. Calls are sorted by tile with a counting sort when their step closes; the
 * needs of a kernel (alignment, tail, class, separation) go to the root of each operand's storage
 * at the call, so that they are stated once. */
#include "lower/lower_build.h"
#include "lower/lower.h"

#include <string.h>

void tg_builder_init(struct tg_builder *b, uint32_t n_tiles) {
    *b = (struct tg_builder){.n_tiles = n_tiles};
    b->allocs = g_array_new(FALSE, FALSE, sizeof(struct tg_alloc_row));
    b->transfers = g_array_new(FALSE, FALSE, sizeof(struct tg_ref));
    b->recipients = g_array_new(FALSE, FALSE, sizeof(struct tg_ref));
    b->operands = g_array_new(FALSE, FALSE, sizeof(struct tg_ref));
    b->open_calls = g_array_new(FALSE, FALSE, sizeof(struct tg_call_row));
    b->steps = g_array_new(FALSE, FALSE, sizeof(struct tg_step));
    b->specs = g_array_new(FALSE, FALSE, sizeof(struct kernel_spec));
    b->needs = g_array_new(FALSE, FALSE, sizeof(struct kernel_needs));
    b->bindings = g_array_new(FALSE, FALSE, sizeof(struct tg_binding));
    b->slices = g_array_new(FALSE, FALSE, sizeof(struct tg_slice));
    b->names = g_array_new(FALSE, FALSE, sizeof(char *));
    b->separation_list = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    GArray **const numbers[] = {&b->first_recipient, &b->words, &b->first_call_operand,
                                &b->call_specs, &b->call_of_tile};
    for (uint32_t i = 0; i < ARRAY_LEN(numbers); i++)
        *numbers[i] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    b->name_index = g_hash_table_new(g_str_hash, g_str_equal);
    b->spec_index =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    b->separations = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
}

void tg_builder_clear(struct tg_builder *b) {
    for (uint32_t i = 0; i < b->names->len; i++) g_free(g_array_index(b->names, char *, i));
    GArray *const arrays[] = {b->allocs,          b->transfers,      b->recipients,
                              b->first_recipient, b->words,          b->first_call_operand,
                              b->operands,        b->call_specs,     b->call_of_tile,
                              b->open_calls,      b->steps,          b->specs,
                              b->needs,           b->names,          b->bindings,
                              b->slices,          b->separation_list};
    for (uint32_t i = 0; i < ARRAY_LEN(arrays); i++) g_array_free(arrays[i], TRUE);
    g_hash_table_destroy(b->name_index);
    g_hash_table_destroy(b->spec_index);
    g_hash_table_destroy(b->separations);
}

uint32_t tg_name(struct tg_builder *b, const char *name) {
    const void *found = g_hash_table_lookup(b->name_index, name);
    if (found) return GPOINTER_TO_UINT(found) - 1;
    char *copy = g_strdup(name);
    g_array_append_val(b->names, copy);
    g_hash_table_insert(b->name_index, copy, GUINT_TO_POINTER(b->names->len));
    return b->names->len - 1;
}

uint32_t tg_spec(struct tg_builder *b, const struct kernel_spec *spec, GError **error) {
    GBytes *key = g_bytes_new(spec, sizeof *spec);
    const void *found = g_hash_table_lookup(b->spec_index, key);
    if (found) {
        g_bytes_unref(key);
        return GPOINTER_TO_UINT(found) - 1;
    }
    struct kernel_needs needs;
    if (!kernel_describe(spec, &needs, error)) {
        g_bytes_unref(key);
        return TG_NONE;
    }
    g_array_append_val(b->specs, *spec);
    g_array_append_val(b->needs, needs);
    g_hash_table_insert(b->spec_index, key, GUINT_TO_POINTER(b->specs->len));
    return b->specs->len - 1;
}

uint32_t tg_alloc_add(struct tg_builder *b, const struct tg_alloc_row *row) {
    BUG_ON(row->bytes == 0 || row->tile >= b->n_tiles);
    g_array_append_val(b->allocs, *row);
    return b->allocs->len - 1;
}

static struct tg_alloc_row *alloc_at(const struct tg_builder *b, uint32_t i) {
    return &g_array_index(b->allocs, struct tg_alloc_row, i);
}

struct tg_ref tg_root(const struct tg_builder *b, struct tg_ref ref) {
    while (alloc_at(b, ref.alloc)->alias != TG_NONE) {
        ref.offset += alloc_at(b, ref.alloc)->alias_offset;
        ref.alloc = alloc_at(b, ref.alloc)->alias;
    }
    return ref;
}

void tg_separate(struct tg_builder *b, uint32_t alloc_a, uint32_t alloc_b) {
    const uint32_t x = tg_root(b, (struct tg_ref){alloc_a, 0}).alloc;
    const uint32_t y = tg_root(b, (struct tg_ref){alloc_b, 0}).alloc;
    if (x == y) return;
    uint64_t key = (uint64_t)MIN(x, y) << 32 | MAX(x, y);
    if (g_hash_table_contains(b->separations, &key)) return;
    g_hash_table_add(b->separations, g_memdup2(&key, sizeof key));
    g_array_append_val(b->separation_list, key);
}

void tg_transfer(struct tg_builder *b, struct tg_ref source, uint32_t words,
                 const struct tg_ref *recipients, uint32_t n) {
    g_array_append_val(b->transfers, source);
    g_array_append_val(b->words, words);
    g_array_append_val(b->first_recipient, b->recipients->len);
    g_array_append_vals(b->recipients, recipients, n);
}

/* Classes: any < standard, interleaved; both demands at once cannot be met. */
static bool need_class(struct tg_alloc_row *a, uint8_t memory, GError **error) {
    if (memory == KERNEL_MEMORY_ANY || a->memory == memory) return true;
    if (a->memory != TG_ANY) {
        diag_set(error, LOWER_CLASS, (uint32_t)a->tile);
        return false;
    }
    a->memory = memory;
    return true;
}

bool tg_call(struct tg_builder *b, uint32_t tile, const struct kernel_spec *spec,
             const struct tg_ref *operands, GError **error) {
    struct tg_call_row call = {.tile = tile, .spec = tg_spec(b, spec, error)};
    if (call.spec == TG_NONE) return false;
    const struct kernel_needs *needs = &g_array_index(b->needs, struct kernel_needs, call.spec);
    call.n_operands = needs->n_operands;
    for (uint32_t i = 0; i < needs->n_operands; i++) {
        const struct kernel_operand *o = &needs->operand[i];
        const struct tg_ref root = tg_root(b, operands[i]);
        struct tg_alloc_row *a = alloc_at(b, root.alloc), *own = alloc_at(b, operands[i].alloc);
        BUG_ON(own->tile != tile || operands[i].offset + o->bytes > own->bytes);
        BUG_ON(root.offset % o->align != 0);
        if (!need_class(a, o->memory, error)) return false;
        if (o->align > a->align) a->align = o->align;
        const uint32_t end = root.offset + o->bytes + o->tail_bytes;
        if (end > a->bytes + a->tail_bytes) a->tail_bytes = end - a->bytes;
        call.operand[i] = operands[i];
    }
    for (uint32_t i = 0; i < needs->n_operands; i++)
        for (uint32_t j = 0; j < needs->n_operands; j++)
            if (needs->separate[i] >> j & 1) tg_separate(b, operands[i].alloc, operands[j].alloc);
    g_array_append_val(b->open_calls, call);
    return true;
}

void tg_close_compute(struct tg_builder *b, uint32_t operation, uint32_t reason) {
    const uint32_t n = b->open_calls->len;
    if (n == 0) return;
    struct tg_step step = {.kind = TG_COMPUTE,
                           .operation = operation,
                           .reason = reason,
                           .first = b->call_specs->len,
                           .first_call = b->call_of_tile->len};
    step.end = step.first + n;
    uint32_t *first = g_new0(uint32_t, b->n_tiles + 1), *order = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        first[g_array_index(b->open_calls, struct tg_call_row, i).tile + 1]++;
    for (uint32_t t = 0; t < b->n_tiles; t++) first[t + 1] += first[t];
    for (uint32_t t = 0; t <= b->n_tiles; t++) {
        const uint32_t at = step.first + first[t];
        g_array_append_val(b->call_of_tile, at);
    }
    for (uint32_t i = 0; i < n; i++)
        order[first[g_array_index(b->open_calls, struct tg_call_row, i).tile]++] = i;
    for (uint32_t i = 0; i < n; i++) {
        const struct tg_call_row *c = &g_array_index(b->open_calls, struct tg_call_row, order[i]);
        g_array_append_val(b->call_specs, c->spec);
        g_array_append_val(b->first_call_operand, b->operands->len);
        g_array_append_vals(b->operands, c->operand, c->n_operands);
    }
    g_array_set_size(b->open_calls, 0);
    g_array_append_val(b->steps, step);
    g_free(first);
    g_free(order);
}

void tg_close_exchange(struct tg_builder *b, uint32_t first, uint32_t operation, uint32_t reason) {
    if (b->transfers->len == first) return;
    const struct tg_step step = {.kind = TG_EXCHANGE,
                                 .operation = operation,
                                 .reason = reason,
                                 .first = first,
                                 .end = b->transfers->len};
    g_array_append_val(b->steps, step);
}

void tg_repeat_step(struct tg_builder *b, enum tg_step_kind kind, uint32_t count,
                    uint32_t operation) {
    const struct tg_step step = {.kind = (uint8_t)kind,
                                 .operation = operation,
                                 .reason = tg_name(b, "repeat"),
                                 .count = count};
    g_array_append_val(b->steps, step);
}

static void *column(struct arena *arena, const GArray *from) {
    return arena_copy(arena, from->data,
                      (size_t)from->len * g_array_get_element_size((GArray *)from));
}

static void finish_allocs(const struct tg_builder *b, struct tile_graph *g) {
    struct tg_allocs *a = &g->allocs;
    const uint32_t n = a->n = b->allocs->len;
    struct arena *arena = g->arena;
    a->tile = arena_new_array(arena, uint16_t, n);
    a->bytes = arena_new_array(arena, uint32_t, n);
    a->tail_bytes = arena_new_array(arena, uint32_t, n);
    a->align = arena_new_array(arena, uint16_t, n);
    a->memory = arena_new_array(arena, uint8_t, n);
    a->flags = arena_new_array(arena, uint8_t, n);
    a->value = arena_new_array(arena, uint32_t, n);
    a->first_step = arena_new_array(arena, uint32_t, n);
    a->last_step = arena_new_array(arena, uint32_t, n);
    a->alias = arena_new_array(arena, uint32_t, n);
    a->alias_offset = arena_new_array(arena, uint32_t, n);
    a->blocks = arena_new_array(arena, uint32_t, n);
    a->stride = arena_new_array(arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct tg_alloc_row *r = alloc_at(b, i);
        a->tile[i] = r->tile;
        a->bytes[i] = r->bytes;
        a->tail_bytes[i] = r->tail_bytes;
        a->align[i] = r->align;
        a->memory[i] = r->memory;
        a->flags[i] = r->flags;
        a->value[i] = r->value;
        a->alias[i] = r->alias;
        a->alias_offset[i] = r->alias_offset;
        a->blocks[i] = r->blocks;
    }
}

static void finish_separations(const struct tg_builder *b, struct tile_graph *g) {
    struct tg_separations *s = &g->separations;
    s->n = b->separation_list->len;
    s->a = arena_new_array(g->arena, uint32_t, s->n);
    s->b = arena_new_array(g->arena, uint32_t, s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        const uint64_t key = g_array_index(b->separation_list, uint64_t, i);
        s->a[i] = (uint32_t)(key >> 32);
        s->b[i] = (uint32_t)key;
    }
}

struct tile_graph *tg_builder_finish(struct tg_builder *b) {
    struct arena *arena = arena_new();
    struct tile_graph *g = arena_alloc(arena, sizeof *g);
    g->arena = arena;
    g->n_tiles = b->n_tiles;
    g->n_names = b->names->len;
    g->names = arena_new_array(arena, const char *, g->n_names);
    for (uint32_t i = 0; i < g->n_names; i++)
        g->names[i] = arena_strdup(arena, g_array_index(b->names, char *, i));
    finish_allocs(b, g);
    finish_separations(b, g);
    g->n_steps = b->steps->len;
    g->steps = column(arena, b->steps);
    g->call_of_tile = column(arena, b->call_of_tile);
    g->transfers.n = b->transfers->len;
    g->transfers.n_recipients = b->recipients->len;
    g_array_append_val(b->first_recipient, b->recipients->len);
    g->transfers.source = column(arena, b->transfers);
    g->transfers.words = column(arena, b->words);
    g->transfers.first_recipient = column(arena, b->first_recipient);
    g->transfers.recipient = column(arena, b->recipients);
    g->calls.n = b->call_specs->len;
    g_array_append_val(b->first_call_operand, b->operands->len);
    g->calls.spec = column(arena, b->call_specs);
    g->calls.first_operand = column(arena, b->first_call_operand);
    g->calls.operand = column(arena, b->operands);
    g->n_specs = b->specs->len;
    g->specs = column(arena, b->specs);
    g->n_bindings = b->bindings->len;
    g->bindings = column(arena, b->bindings);
    for (uint32_t i = 0; i < g->n_bindings; i++)
        g->bindings[i].name = arena_strdup(arena, g->bindings[i].name);
    g->n_slices = b->slices->len;
    g->slices = column(arena, b->slices);
    tg_lifetimes(g);
    return g;
}

void tile_graph_free(struct tile_graph *g) {
    if (g) arena_free(g->arena);
}
