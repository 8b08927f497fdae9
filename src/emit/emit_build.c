/* Programs and row tables of all tiles, each written on its own and then put end to end. */
#include "emit/emit_tile.h"

#include "isa/isa_exch.h"

#include <string.h>

static struct emit_kernel *kernels_new(const struct emit_request *r) {
    const struct tile_graph *g = r->graph;
    struct emit_kernel *k = g_new0(struct emit_kernel, g->n_specs + 1);
    for (uint32_t i = 0; i < g->n_specs; i++) {
        const struct isa_image_symbol *s =
            isa_image_find(r->image->isa, kernel_symbol(&g->specs[i]));
        BUG_ON(s == NULL);
        k[i] = (struct emit_kernel){.entry = s->address,
                                    .n_registers = kernel_n_registers(&g->specs[i]),
                                    .cycles = kernel_cycles(&g->specs[i])};
    }
    return k;
}

static uint32_t count_exchanges(const struct tile_graph *g) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < g->n_steps; s++) n += g->steps[s].kind == TG_EXCHANGE;
    return n;
}

uint32_t emit_sample_words(const struct tile_graph *g, uint32_t tile) {
    uint32_t n = 1;
    for (uint32_t s = 0; s < g->n_steps; s++) {
        const struct tg_step *step = &g->steps[s];
        if (step->kind == TG_EXCHANGE || step->kind == TG_REPEAT_BEGIN) n++;
        if (step->kind != TG_COMPUTE) continue;
        const uint32_t *of_tile = g->call_of_tile + step->first_call;
        n += of_tile[tile] != of_tile[tile + 1];
    }
    return n;
}

struct build {
    const struct emit_request *r;
    const struct emit_kernel *kernels;
    uint32_t n_exchanges;
    bool sizes_only;
    struct emit_cost *cost;
    struct emit_tile *tiles;
};

static void build_tile(uint32_t t, uint32_t thread, void *context) {
    (void)thread;
    struct build *b = context;
    const struct emit_request *r = b->r;
    struct emit_tile *w = &b->tiles[t];
    uint32_t *row_address = g_new0(uint32_t, b->n_exchanges + 1);
    for (uint32_t i = 0; i < b->n_exchanges && !b->sizes_only; i++)
        row_address[i] = r->support.rows_address + 4 * r->table->row[(size_t)i * r->table->n_tiles + t];
    *w = (struct emit_tile){.r = r, .kernels = b->kernels, .tile = t,
                            .row_address = b->sizes_only ? NULL : row_address};
    if (b->cost != NULL) w->cost = b->cost + (size_t)t * r->graph->n_steps;
    w->marks = g_array_new(false, false, sizeof(struct emit_mark));
    emit_code_init(&w->code, r->support.program_address);
    emit_tile_write(w);
    w->row_address = NULL;
    g_free(row_address);
}

static void build_run(struct build *b, const struct emit_request *r) {
    *b = (struct build){.r = r, .kernels = kernels_new(r), .n_exchanges = count_exchanges(r->graph),
                        .sizes_only = r->address == NULL,
                        .tiles = g_new0(struct emit_tile, r->graph->n_tiles)};
    if (!b->sizes_only)
        b->cost = g_new0(struct emit_cost, (size_t)r->graph->n_tiles * r->graph->n_steps + 1);
    par_for(r->graph->n_tiles, build_tile, b);
}

/* Frees everything; the first error in order of tiles is passed on. True without one. */
static bool build_end(struct build *b, GError **error) {
    GError *first = NULL;
    for (uint32_t t = 0; t < b->r->graph->n_tiles; t++) {
        struct emit_tile *w = &b->tiles[t];
        if (w->error != NULL && first == NULL) first = w->error;
        else g_clear_error(&w->error);
        g_array_free(w->marks, true);
        emit_code_clear(&w->code);
    }
    g_free(b->tiles);
    g_free(b->cost);
    g_free((void *)b->kernels);
    if (first != NULL) g_propagate_error(error, first);
    return first == NULL;
}

static uint32_t largest_program(const struct build *b) {
    uint32_t most = 0;
    for (uint32_t t = 0; t < b->r->graph->n_tiles; t++)
        most = MAX(most, 4 * b->tiles[t].code.words->len);
    return most;
}

bool emit_program_bytes(const struct emit_request *r, uint32_t *ret_bytes, GError **error) {
    struct build b;
    build_run(&b, r);
    const uint32_t most = largest_program(&b);
    if (!build_end(&b, error)) return false;
    *ret_bytes = most;
    return true;
}

static void join_programs(const struct build *b, struct emit_result *e) {
    const uint32_t n = e->n_tiles;
    e->first_word = arena_new_array(e->arena, uint32_t, n + 1);
    e->first_mark = arena_new_array(e->arena, uint32_t, n + 1);
    e->end_pc = arena_new_array(e->arena, uint32_t, n);
    for (uint32_t t = 0; t < n; t++) {
        e->first_word[t + 1] = e->first_word[t] + b->tiles[t].code.words->len;
        e->first_mark[t + 1] = e->first_mark[t] + b->tiles[t].marks->len;
        e->end_pc[t] = b->tiles[t].end_pc;
    }
    e->words = arena_new_array(e->arena, uint32_t, e->first_word[n]);
    e->marks = arena_new_array(e->arena, struct emit_mark, e->first_mark[n]);
    for (uint32_t t = 0; t < n; t++) {
        const struct emit_tile *w = &b->tiles[t];
        if (w->code.words->len != 0)
            memcpy(e->words + e->first_word[t], w->code.words->data, 4 * w->code.words->len);
        if (w->marks->len != 0)
            memcpy(e->marks + e->first_mark[t], w->marks->data, sizeof *e->marks * w->marks->len);
    }
}

static void join_rows(const struct build *b, struct emit_result *e) {
    const struct exch_table *t = b->r->table;
    const uint32_t n = t->first_word[e->n_tiles];
    e->first_row_word = arena_copy(e->arena, t->first_word, sizeof *t->first_word * (e->n_tiles + 1));
    e->row_words = arena_copy(e->arena, t->words, sizeof *t->words * n);
}

struct emit_result *emit_programs(const struct emit_request *r, GError **error) {
    BUG_ON(r->address == NULL);
    struct build b;
    build_run(&b, r);
    for (uint32_t t = 0; t < r->graph->n_tiles; t++)
        if (b.tiles[t].error != NULL) {
            build_end(&b, error);
            return NULL;
        }
    struct arena *a = arena_new();
    struct emit_result *e = arena_alloc(a, sizeof *e);
    e->arena = a;
    e->n_tiles = r->graph->n_tiles;
    e->stub[0] = isa_word_bri(r->support.program_address);
    e->stub[1] = isa_word_nop();
    join_programs(&b, e);
    join_rows(&b, e);
    e->program_bytes_max = largest_program(&b);
    e->row_bytes_max = r->table->bytes_max;
    BUG_ON(e->program_bytes_max > r->support.program_bytes);
    BUG_ON(e->row_bytes_max > r->support.rows_bytes);
    uint32_t *start = g_new0(uint32_t, e->n_tiles);
    for (uint32_t t = 0; t < e->n_tiles; t++) start[t] = b.tiles[t].prologue_cycles;
    emit_predict(r, b.cost, start, e);
    g_free(start);
    build_end(&b, NULL);
    return e;
}

void emit_result_free(struct emit_result *e) {
    if (e != NULL) arena_free(e->arena);
}
