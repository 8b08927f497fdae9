/* The placement problem of a tile graph: code, programs, rows and sample buffers as well as every
 * allocation, with lifetimes, tails, separations and what the phases move. */
#include "compile/compile_impl.h"

#include "lower/lower.h"

#include <string.h>

void compile_strides(struct compile_state *c) {
    const struct tg_allocs *a = &c->g->allocs;
    c->stride = g_new0(uint32_t, a->n + 1);
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->blocks[i] <= 1) continue;
        const struct place_request r = {.bytes = a->bytes[i], .tail_bytes = a->tail_bytes[i],
                                        .align = a->align[i], .n_blocks = a->blocks[i],
                                        .stride = a->stride[i]};
        c->stride[i] = place_request_stride(&r);
    }
}

struct placing {
    const struct compile_state *c;
    struct place_builder *b;
    uint32_t *handle;        /* [allocs.n] */
    uint32_t *sample_handle; /* [n_tiles] */
    uint32_t *number;        /* [handles] request number */
    uint32_t only_tile;      /* the one tile of the problem, or TG_NONE: all */
    GArray *items;           /* struct place_traffic_item, by tile */
    uint32_t *first_item;    /* [n_tiles + 1] */
};

static void add_fixed(struct placing *p, uint32_t tile, const char *name, uint8_t kind,
                      uint32_t address, uint32_t bytes) {
    if (bytes == 0) return;
    place_builder_add(p->b, tile,
                      &(struct place_request){.bytes = bytes, .address = address,
                                              .last_step = PLACE_STEP_END, .kind = kind,
                                              .name = place_builder_name(p->b, name),
                                              .flags = PLACE_FIXED | PLACE_EXECUTABLE});
}

/* The host has the window before the first step and behind the last; between, transients that do not
 * live at either may lie in it (runtime 2.11). */
static void add_window(struct placing *p, uint32_t tile, uint32_t step) {
    place_builder_add(p->b, tile,
                      &(struct place_request){.bytes = TARGET_HOST_WINDOW_BYTES,
                                              .address = TARGET_HOST_WINDOW_BASE,
                                              .first_step = step, .last_step = step,
                                              .kind = PLACE_WINDOW, .flags = PLACE_FIXED,
                                              .name = place_builder_name(p->b, "host window")});
}

static void add_support(struct placing *p, uint32_t tile) {
    const struct compile_state *c = p->c;
    const GArray *segments = c->image->isa->segments;
    for (uint32_t i = 0; i < segments->len; i++) {
        const struct isa_segment *s = &g_array_index(segments, struct isa_segment, i);
        add_fixed(p, tile, "kernels and runtime", PLACE_CODE, s->address, s->size);
    }
    add_fixed(p, tile, "program", PLACE_CODE, c->support.program_address,
              c->support.program_bytes);
    add_fixed(p, tile, "exchange rows", PLACE_ROWS, c->support.rows_address,
              c->rows_reserved[tile]);
    add_window(p, tile, 0);
    add_window(p, tile, PLACE_STEP_END);
    if (!c->o->sample) return;
    const struct place_request sample = {.bytes = 4 * emit_sample_words(c->g, tile), .align = 4,
                                         .last_step = PLACE_STEP_END, .kind = PLACE_PROFILE,
                                         .name = place_builder_name(p->b, "cycle samples"),
                                         .flags = PLACE_NO_HOST_WINDOW};
    p->sample_handle[tile] = place_builder_add(p->b, tile, &sample);
}

static void add_alloc(struct placing *p, uint32_t i) {
    const struct tile_graph *g = p->c->g;
    const struct tg_allocs *a = &g->allocs;
    static const uint8_t class[] = {
        [TG_ANY] = PLACE_ANY, [TG_STANDARD] = PLACE_STANDARD, [TG_INTERLEAVED] = PLACE_INTERLEAVED};
    struct place_request r = {.bytes = a->bytes[i], .tail_bytes = a->tail_bytes[i],
                              .align = a->align[i], .first_step = a->first_step[i],
                              .last_step = a->last_step[i], .memory_class = class[a->memory[i]],
                              .kind = a->flags[i] & TG_PARAMETER ? PLACE_PARAMETER : PLACE_TENSOR,
                              .name = place_builder_name(p->b, g->names[a->value[i]]),
                              .flags = PLACE_TAIL_SHARED};
    if (a->flags[i] & TG_HOST_OUTPUT) r.last_step = PLACE_STEP_END;
    if (a->flags[i] & TG_NO_HOST_WINDOW) r.flags |= PLACE_NO_HOST_WINDOW;
    if (a->blocks[i] > 1) {
        r.n_blocks = a->blocks[i];
        r.stride = p->c->stride[i];
    }
    if (a->alias[i] != TG_NONE) {
        r.flags |= PLACE_ALIAS;
        r.alias = p->handle[a->alias[i]];
        r.displacement = a->alias_offset[i];
    }
    p->handle[i] = place_builder_add(p->b, a->tile[i], &r);
}

static bool takes_part(const struct placing *p, uint32_t tile) {
    return p->only_tile == TG_NONE || p->only_tile == tile;
}

/* Targets of aliases first. */
static void add_allocs(struct placing *p) {
    const struct tg_allocs *a = &p->c->g->allocs;
    memset(p->handle, 0xff, sizeof *p->handle * a->n);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->alias[i] == TG_NONE && takes_part(p, a->tile[i])) add_alloc(p, i);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < a->n; i++) {
            if (p->handle[i] != UINT32_MAX || !takes_part(p, a->tile[i])) continue;
            if (p->handle[a->alias[i]] != UINT32_MAX) add_alloc(p, i);
            else more = true;
        }
    }
    const struct tg_separations *s = &p->c->g->separations;
    for (uint32_t i = 0; i < s->n; i++)
        if (takes_part(p, a->tile[s->a[i]]))
            place_builder_separate(p->b, p->handle[s->a[i]], p->handle[s->b[i]]);
}

/* --- What the phases send and receive: the solver prefers maps in which they do not meet. --- */

static void count_item(struct placing *p, struct tg_ref ref) {
    p->first_item[p->c->g->allocs.tile[ref.alloc] + 1]++;
}

static void put_item(struct placing *p, uint32_t *at, struct tg_ref ref, uint32_t phase,
                     uint32_t bytes, uint8_t receive) {
    struct place_traffic_item *item = &g_array_index(p->items, struct place_traffic_item,
                                                     at[p->c->g->allocs.tile[ref.alloc]]++);
    *item = (struct place_traffic_item){.phase = phase, .request = p->number[p->handle[ref.alloc]],
                                        .offset = ref.offset, .bytes = bytes, .receive = receive};
}

static void collect_traffic(struct placing *p) {
    const struct tile_graph *g = p->c->g;
    const struct tg_transfers *x = &g->transfers;
    p->first_item = g_new0(uint32_t, g->n_tiles + 1);
    for (uint32_t k = 0; k < x->n; k++) count_item(p, x->source[k]);
    for (uint32_t r = 0; r < x->n_recipients; r++) count_item(p, x->recipient[r]);
    for (uint32_t t = 0; t < g->n_tiles; t++) p->first_item[t + 1] += p->first_item[t];
    p->items = g_array_sized_new(false, true, sizeof(struct place_traffic_item),
                                 p->first_item[g->n_tiles]);
    g_array_set_size(p->items, p->first_item[g->n_tiles]);
    uint32_t *at = g_memdup2(p->first_item, sizeof *at * g->n_tiles);
    for (uint32_t i = 0; i < p->c->n_exchanges; i++) {
        const struct tg_step *s = &g->steps[p->c->exchange_step[i]];
        for (uint32_t k = s->first; k < s->end; k++) {
            put_item(p, at, x->source[k], i, 4 * x->words[k], 0);
            for (uint32_t r = x->first_recipient[k]; r < x->first_recipient[k + 1]; r++)
                put_item(p, at, x->recipient[r], i, 4 * x->words[k], 1);
        }
    }
    g_free(at);
}

/* --- Results --- */

static void take_addresses(const struct placing *p, const struct place_result *r,
                           struct compile_state *c) {
    g_free(c->address);
    c->address = g_new0(uint32_t, c->g->allocs.n + 1);
    for (uint32_t i = 0; i < c->g->allocs.n; i++)
        c->address[i] = r->address[p->number[p->handle[i]]];
    if (!c->o->sample) return;
    g_free(c->sample_address);
    c->sample_address = g_new0(uint32_t, c->g->n_tiles);
    for (uint32_t t = 0; t < c->g->n_tiles; t++)
        c->sample_address[t] = r->address[p->number[p->sample_handle[t]]];
}

struct place_memory compile_memory(void) { return place_memory_c600(true); }

static struct place_problem *build_problem(struct placing *p) {
    const struct compile_state *c = p->c;
    const struct place_memory memory = compile_memory();
    p->b = place_builder_new(c->g->n_tiles, &memory);
    p->handle = g_new0(uint32_t, c->g->allocs.n + 1);
    p->sample_handle = g_new0(uint32_t, c->g->n_tiles);
    for (uint32_t t = 0; t < c->g->n_tiles; t++)
        if (takes_part(p, t)) add_support(p, t);
    add_allocs(p);
    return place_builder_finish(p->b, &p->number);
}

/* The problem and, if there is one, its map, under the first free name of the folder. */
static bool dump_problem(const char *folder, const struct place_problem *problem,
                         const struct place_traffic *traffic, const struct place_result *r,
                         GError **error) {
    char *path = NULL;
    for (uint32_t k = 0; path == NULL || g_file_test(path, G_FILE_TEST_EXISTS); k++) {
        g_free(path);
        path = g_strdup_printf("%s/placement-%03u.plc", folder, k);
    }
    const uint32_t *map = r->status == PLACE_SOLVED ? r->address : NULL;
    const bool ok = place_file_write(path, problem, map, traffic, error);
    g_free(path);
    return ok;
}

static void placing_clear(struct placing *p) {
    g_free(p->handle);
    g_free(p->sample_handle);
    g_free(p->number);
    g_free(p->first_item);
    if (p->items != NULL) g_array_free(p->items, true);
}

static void report(const struct placing *p, const struct place_problem *problem,
                   const struct place_result *r, struct compile_result *ret) {
    uint32_t *alloc = g_new(uint32_t, problem->n_requests + 1);
    memset(alloc, 0xff, problem->n_requests * sizeof *alloc);
    for (uint32_t i = 0; i < p->c->g->allocs.n; i++)
        if (p->handle[i] != UINT32_MAX) alloc[p->number[p->handle[i]]] = i;
    compile_report_place(p->c, problem, r, alloc, ret);
    g_free(alloc);
}

/* The tile whose live data alone exceed the memory by most, or TG_NONE. */
static uint32_t hopeless_tile(const struct compile_state *c) {
    const struct place_memory memory = compile_memory();
    uint32_t has = 0, worst = TG_NONE, *peak = g_new0(uint32_t, c->g->n_tiles);
    for (uint32_t i = 0; i < memory.n_ranges; i++) has += memory.range_end[i] - memory.range_base[i];
    tile_graph_peaks(c->g, peak, NULL, NULL);
    for (uint32_t t = 0; t < c->g->n_tiles; t++)
        if (peak[t] > has && (worst == TG_NONE || peak[t] > peak[worst])) worst = t;
    g_free(peak);
    return worst;
}

/* That tile's report, without a look at the others. False when there is no such tile or the solver
 * has no proof. */
static bool report_hopeless(const struct compile_state *c, struct compile_result *ret,
                            GError **error) {
    struct placing p = {.c = c, .only_tile = hopeless_tile(c)};
    if (p.only_tile == TG_NONE) return false;
    struct place_problem *problem = build_problem(&p);
    const struct place_options options = {.constructive_only = true};
    struct place_result *r = place_solve(problem, &options, error);
    const bool found = r != NULL && r->n_proofs != 0;
    if (found) report(&p, problem, r, ret);
    place_result_free(r);
    place_problem_free(problem);
    placing_clear(&p);
    return found;
}

bool compile_place(struct compile_state *c, struct compile_result *ret, bool *ret_fits,
                   GError **error) {
    GError *failed = NULL;
    if (c->placed == NULL && c->o->placement_dump == NULL && report_hopeless(c, ret, &failed)) {
        *ret_fits = false;
        c->hopeless = true;
        return true;
    }
    if (failed != NULL) {
        g_propagate_error(error, failed);
        return false;
    }
    struct placing p = {.c = c, .only_tile = TG_NONE};
    struct place_problem *problem = build_problem(&p);
    collect_traffic(&p);
    const struct place_traffic traffic = {.n_tiles = c->g->n_tiles, .n_items = p.items->len,
                                          .first = p.first_item,
                                          .item = (const void *)p.items->data};
    const bool again = c->placed != NULL && c->n_placed == problem->n_requests;
    const struct place_options options = {.traffic = &traffic,
                                          .previous = again ? c->placed : NULL};
    struct place_result *r = place_solve(problem, &options, error);
    if (r != NULL) {
        *ret_fits = r->status == PLACE_SOLVED;
        g_clear_pointer(&c->placed, g_free);
        c->n_placed = r->n_requests;
        if (*ret_fits) c->placed = g_memdup2(r->address, r->n_requests * sizeof *r->address);
        if (*ret_fits) take_addresses(&p, r, c);
        else report(&p, problem, r, ret);
    }
    bool ok = r != NULL;
    if (ok && c->o->placement_dump != NULL)
        ok = dump_problem(c->o->placement_dump, problem, &traffic, r, error);
    place_result_free(r);
    place_problem_free(problem);
    placing_clear(&p);
    return ok;
}
