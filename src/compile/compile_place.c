/* The placement problem of a tile graph: code, programs, rows and sample buffers as well as every
 * allocation, with lifetimes, tails, separations and what the phases move. */
#include "compile/compile_impl.h"

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
              c->support.rows_bytes);
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

/* Targets of aliases first. */
static void add_allocs(struct placing *p) {
    const struct tg_allocs *a = &p->c->g->allocs;
    memset(p->handle, 0xff, sizeof *p->handle * a->n);
    for (uint32_t i = 0; i < a->n; i++)
        if (a->alias[i] == TG_NONE) add_alloc(p, i);
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < a->n; i++) {
            if (p->handle[i] != UINT32_MAX) continue;
            if (p->handle[a->alias[i]] != UINT32_MAX) add_alloc(p, i);
            else more = true;
        }
    }
    const struct tg_separations *s = &p->c->g->separations;
    for (uint32_t i = 0; i < s->n; i++)
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

/* The proof of the tile that lacks most. */
static const struct place_proof *worst_proof(const struct place_result *r) {
    const struct place_proof *worst = NULL;
    for (uint32_t i = 0; i < r->n_proofs; i++) {
        const struct place_proof *p = &r->proof[i];
        if (worst == NULL || p->need_bytes - p->has_bytes > worst->need_bytes - worst->has_bytes)
            worst = p;
    }
    return worst;
}

static void print_users(const struct place_problem *problem, const struct place_proof *proof,
                        GString *text) {
    enum { MOST_USERS = 8 };
    for (uint32_t i = 0; i < proof->n_users && i < MOST_USERS; i++) {
        const struct place_request *q = &problem->request[proof->user[i]];
        g_string_append_printf(text, "  %9" G_GUINT64_FORMAT " B  %s\n",
                               place_request_extent(q) + q->tail_bytes, problem->name[q->name]);
    }
    if (proof->n_users > MOST_USERS)
        g_string_append_printf(text, "  and %u more\n", proof->n_users - MOST_USERS);
}

static void take_report(const struct place_problem *problem, const struct place_result *r,
                        struct compile_result *ret) {
    static const char *const part[] = {[PLACE_PART_ALL] = "SRAM",
                                       [PLACE_PART_STANDARD] = "standard memory",
                                       [PLACE_PART_INTERLEAVED] = "interleaved memory",
                                       [PLACE_PART_NO_WINDOW] = "SRAM without the host window"};
    const struct place_proof *proof = worst_proof(r);
    GString *text = g_string_new(NULL);
    ret->limit = COMPILE_LIMIT_PLACE;
    if (proof == NULL) {
        while (ret->tile < r->n_tiles && r->tile_status[ret->tile] == PLACE_SOLVED) ret->tile++;
        g_string_append_printf(text, "does not fit: no placement was found for tile %u within the "
                                     "search budget, and no proof that there is none\n",
                               ret->tile);
    } else {
        ret->tile = proof->tile;
        ret->need_bytes = proof->need_bytes;
        ret->has_bytes = proof->has_bytes;
        g_string_append_printf(text,
                               "does not fit: tile %u needs %" G_GUINT64_FORMAT " bytes of %s and "
                               "has %" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                               " bytes are missing at step %u; its largest users:\n",
                               proof->tile, proof->need_bytes, part[proof->part],
                               proof->has_bytes, proof->need_bytes - proof->has_bytes,
                               proof->step);
        print_users(problem, proof, text);
    }
    ret->report = g_string_free(text, false);
    ret->report_json = g_strdup_printf(
        "{\"status\":\"infeasible\",\"part\":\"%s\",\"tile\":%u,\"needs_bytes\":%" G_GUINT64_FORMAT
        ",\"has_bytes\":%" G_GUINT64_FORMAT ",\"missing_bytes\":%" G_GUINT64_FORMAT "}",
        proof != NULL ? part[proof->part] : "undecided", ret->tile, ret->need_bytes,
        ret->has_bytes, ret->need_bytes - ret->has_bytes);
}

static struct place_problem *build_problem(struct placing *p) {
    const struct compile_state *c = p->c;
    const struct place_memory memory = place_memory_c600(false);
    p->b = place_builder_new(c->g->n_tiles, &memory);
    p->handle = g_new0(uint32_t, c->g->allocs.n + 1);
    p->sample_handle = g_new0(uint32_t, c->g->n_tiles);
    for (uint32_t t = 0; t < c->g->n_tiles; t++) add_support(p, t);
    add_allocs(p);
    struct place_problem *problem = place_builder_finish(p->b, &p->number);
    collect_traffic(p);
    return problem;
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

bool compile_place(struct compile_state *c, struct compile_result *ret, bool *ret_fits,
                   GError **error) {
    struct placing p = {.c = c};
    struct place_problem *problem = build_problem(&p);
    const struct place_traffic traffic = {.n_tiles = c->g->n_tiles, .n_items = p.items->len,
                                          .first = p.first_item,
                                          .item = (const void *)p.items->data};
    const bool again = c->placed != NULL && c->n_placed == problem->n_requests;
    const struct place_options options = {.traffic = &traffic,
                                          .previous = again ? c->placed : NULL};
    struct place_result *r = place_solve(problem, &options, error);
    if (r != NULL) {
        *ret_fits = r->status == PLACE_SOLVED;
        g_free(c->placed);
        c->n_placed = r->n_requests;
        c->placed = g_memdup2(r->address, r->n_requests * sizeof *r->address);
        if (*ret_fits) take_addresses(&p, r, c);
        else take_report(problem, r, ret);
    }
    bool ok = r != NULL;
    if (ok && c->o->placement_dump != NULL)
        ok = dump_problem(c->o->placement_dump, problem, &traffic, r, error);
    place_result_free(r);
    place_problem_free(problem);
    g_free(p.handle);
    g_free(p.sample_handle);
    g_free(p.number);
    g_free(p.first_item);
    g_array_free(p.items, true);
    return ok;
}
