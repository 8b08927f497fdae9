/* What does not fit: the tile that lacks most, who uses it, by how many bytes, and which choices of the
 * user would change that, with their bytes. */
#include "compile/compile_impl.h"

struct reporting {
    const struct compile_state *c;
    const struct place_problem *problem;
    const struct place_result *r;
    const uint32_t *alloc;
    const struct place_proof *proof;
    GPtrArray *help;
};

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

static uint64_t request_bytes(const struct place_request *q) {
    return place_request_extent(q) + q->tail_bytes;
}

/* --- What would help --- */

/* Bytes of the proof's users by what they are. */
struct shares {
    uint64_t parameters, sequences, inputs, rest;
    uint32_t blocks; /* of the sequences */
};

static struct shares share(const struct reporting *x) {
    const struct tg_allocs *a = &x->c->g->allocs;
    struct shares s = {0};
    for (uint32_t i = 0; i < x->proof->n_users; i++) {
        const uint32_t request = x->proof->user[i], alloc = x->alloc[request];
        const uint64_t bytes = request_bytes(&x->problem->request[request]);
        if (alloc == TG_NONE) {
            s.rest += bytes;
            continue;
        }
        if (a->flags[alloc] & TG_PARAMETER) s.parameters += bytes;
        else if (a->flags[alloc] & TG_HOST_INPUT) s.inputs += bytes;
        else s.rest += bytes;
        if (a->blocks[alloc] <= 1) continue;
        s.sequences += bytes;
        s.blocks = MAX(s.blocks, a->blocks[alloc]);
    }
    return s;
}

static bool any_f16_parameter(const struct tile_graph *g) {
    for (uint32_t i = 0; i < g->n_bindings; i++)
        if (g->bindings[i].kind == TG_BIND_PARAMETER && g->bindings[i].format == TG_F16 &&
            g->bindings[i].n_dims > 1)
            return true;
    return false;
}

static void add_help(struct reporting *x, char *text) {
    g_ptr_array_add(x->help, text);
}

static void help_parameters(struct reporting *x, const struct shares *s, uint64_t missing) {
    if (s->parameters == 0) return;
    if (any_f16_parameter(x->c->g))
        add_help(x, g_strdup_printf("parameters take %" G_GUINT64_FORMAT " B of this tile: in F8 "
                                    "(--fp8-scale) those of products take half",
                                    s->parameters));
    else
        add_help(x, g_strdup_printf("parameters take %" G_GUINT64_FORMAT " B of this tile",
                                    s->parameters));
    if (s->blocks <= 1) return;
    const uint64_t each = s->sequences / s->blocks, too_many = ceil_div_u64(missing, MAX(1, each));
    if (too_many < s->blocks)
        add_help(x, g_strdup_printf("each of the %u iterations of the repeat keeps %" G_GUINT64_FORMAT
                                    " B of parameters here: %" G_GUINT64_FORMAT
                                    " fewer would fit on this tile",
                                    s->blocks, each, too_many));
}

static void help_lines(struct reporting *x) {
    const struct shares s = share(x);
    const uint64_t missing = x->proof->need_bytes - x->proof->has_bytes;
    help_parameters(x, &s, missing);
    if (s.inputs != 0)
        add_help(x, g_strdup_printf("host inputs take %" G_GUINT64_FORMAT " B of this tile: "
                                    "--inputs-once stores every element once",
                                    s.inputs));
    if (s.rest != 0)
        add_help(x, g_strdup_printf("values, code and rows take %" G_GUINT64_FORMAT " B at this step: "
                                    "a smaller batch or fewer rows need less",
                                    s.rest));
    if (x->c->g->n_tiles < TARGET_N_TILES)
        add_help(x, g_strdup_printf("more tiles (--tiles; %u of %u are used)", x->c->g->n_tiles,
                                    TARGET_N_TILES));
}

/* --- Text and JSON --- */

static void print_users(const struct reporting *x, GString *text) {
    enum { MOST_USERS = 8 };
    for (uint32_t i = 0; i < x->proof->n_users && i < MOST_USERS; i++) {
        const struct place_request *q = &x->problem->request[x->proof->user[i]];
        g_string_append_printf(text, "  %9" G_GUINT64_FORMAT " B  %s\n", request_bytes(q),
                               x->problem->name[q->name]);
    }
    if (x->proof->n_users > MOST_USERS)
        g_string_append_printf(text, "  and %u more\n", x->proof->n_users - MOST_USERS);
}

static const char *part_name(const struct place_proof *proof) {
    static const char *const part[] = {[PLACE_PART_ALL] = "SRAM",
                                       [PLACE_PART_STANDARD] = "standard memory",
                                       [PLACE_PART_INTERLEAVED] = "interleaved memory",
                                       [PLACE_PART_NO_WINDOW] = "SRAM without the host window"};
    return proof != NULL ? part[proof->part] : "undecided";
}

static char *text_of(const struct reporting *x) {
    const struct place_proof *proof = x->proof;
    GString *text = g_string_new(NULL);
    g_string_append_printf(text,
                           "does not fit: tile %u needs %" G_GUINT64_FORMAT " bytes of %s and "
                           "has %" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                           " bytes are missing at step %u; its largest users:\n",
                           proof->tile, proof->need_bytes, part_name(proof), proof->has_bytes,
                           proof->need_bytes - proof->has_bytes, proof->step);
    print_users(x, text);
    g_string_append(text, "what would help:\n");
    for (uint32_t i = 0; i < x->help->len; i++)
        g_string_append_printf(text, "  %s\n", (const char *)x->help->pdata[i]);
    return g_string_free(text, false);
}

static char *json_of(const struct reporting *x, const struct compile_result *ret) {
    GString *s = g_string_new(NULL);
    g_string_append_printf(s,
                           "{\"status\":\"infeasible\",\"part\":\"%s\",\"tile\":%u"
                           ",\"needs_bytes\":%" G_GUINT64_FORMAT ",\"has_bytes\":%" G_GUINT64_FORMAT
                           ",\"missing_bytes\":%" G_GUINT64_FORMAT ",\"users\":[",
                           part_name(x->proof), ret->tile, ret->need_bytes, ret->has_bytes,
                           ret->need_bytes - ret->has_bytes);
    for (uint32_t i = 0; x->proof != NULL && i < x->proof->n_users; i++) {
        const struct place_request *q = &x->problem->request[x->proof->user[i]];
        g_string_append_printf(s, "%s{\"bytes\":%" G_GUINT64_FORMAT ",\"name\":", i != 0 ? "," : "",
                               request_bytes(q));
        json_string(x->problem->name[q->name], s);
        g_string_append_c(s, '}');
    }
    g_string_append(s, "],\"help\":[");
    for (uint32_t i = 0; i < x->help->len; i++) {
        if (i != 0) g_string_append_c(s, ',');
        json_string(x->help->pdata[i], s);
    }
    g_string_append(s, "]}");
    return g_string_free(s, false);
}

void compile_report_place(const struct compile_state *c, const struct place_problem *problem,
                          const struct place_result *r, const uint32_t *alloc,
                          struct compile_result *ret) {
    struct reporting x = {.c = c, .problem = problem, .r = r, .alloc = alloc,
                          .proof = worst_proof(r), .help = g_ptr_array_new_with_free_func(g_free)};
    ret->limit = COMPILE_LIMIT_PLACE;
    if (x.proof == NULL) {
        while (ret->tile < r->n_tiles && r->tile_status[ret->tile] == PLACE_SOLVED) ret->tile++;
        ret->report = g_strdup_printf("does not fit: no placement was found for tile %u within the "
                                      "search budget, and no proof that there is none\n",
                                      ret->tile);
    } else {
        ret->tile = x.proof->tile;
        ret->need_bytes = x.proof->need_bytes;
        ret->has_bytes = x.proof->has_bytes;
        help_lines(&x);
        ret->report = text_of(&x);
    }
    ret->report_json = json_of(&x, ret);
    g_ptr_array_free(x.help, true);
}
