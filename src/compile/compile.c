/* The straight line from tile graph to package, and the only loop in it: rows need addresses, addresses
 * need the size of the rows. The first reservation of every tile is the planner's estimate, rounded up to
 * the end of its last memory element (which nothing else could use); when the rows (or programs, by their patches)
 * turn out longer, everything is placed and scheduled again with what they need. */
#include "compile/compile_impl.h"

#include <string.h>

static bool support_missing(struct compile_result *ret, uint32_t missing) {
    ret->limit = COMPILE_LIMIT_SUPPORT;
    ret->has_bytes = TARGET_REGION1_BASE - TARGET_CODE_BASE;
    ret->need_bytes = ret->has_bytes + missing;
    ret->report = g_strdup_printf("code, programs and exchange rows must lie below 0x%x and need "
                                  "%u bytes more\n",
                                  TARGET_REGION1_BASE, missing);
    ret->report_json = g_strdup_printf("{\"status\":\"infeasible\",\"part\":\"support\","
                                       "\"missing_bytes\":%u}",
                                       missing);
    return true;
}

static uint32_t most_rows(const struct compile_state *c) {
    uint32_t most = 0;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) most = MAX(most, c->rows_need[t]);
    return most;
}

/* Lays out programs and rows; *ret_fits false with a report when they do not fit. */
static bool lay_out(struct compile_state *c, uint32_t program_bytes, struct compile_result *ret,
                    bool *ret_fits) {
    uint32_t missing;
    ret->rows.estimated = most_rows(c);
    *ret_fits = emit_support_layout(c->image, program_bytes, ret->rows.estimated, &c->support, &missing);
    if (!*ret_fits) return support_missing(ret, missing);
    compile_reserve_rows(c);
    return true;
}

static double seconds_since(gint64 start) {
    return (double)(g_get_monotonic_time() - start) / 1e6;
}

static struct emit_request request(const struct compile_state *c) {
    return (struct emit_request){.graph = c->g, .image = c->image, .stride = c->stride,
                                 .support = c->support,
                                 .options = {.sample = c->o->sample, .base_writes = c->o->base_writes}};
}

/* The request of placed and scheduled phases. */
static struct emit_request full_request(const struct compile_state *c) {
    struct emit_request r = request(c);
    r.address = c->address;
    r.rows = (const struct exch_result *const *)c->rows;
    r.table = c->table;
    r.sample_address = c->sample_address;
    return r;
}

/* The first tile whose rows need more than is reserved, or TARGET_N_TILES. */
static uint32_t tile_too_short(const struct compile_state *c) {
    uint32_t t = 0;
    while (t < TARGET_N_TILES && c->rows_need[t] <= c->rows_reserved[t]) t++;
    return t;
}

/* Schedules all phases and shares their rows; *ret_program: bytes of the largest program. When one row
 * alone does not fit, every tile needs an element more. */
static bool schedule(struct compile_state *c, struct compile_result *ret, uint32_t *ret_program,
                     GError **error) {
    GError *failed = NULL;
    const gint64 start = g_get_monotonic_time();
    const bool ok = compile_schedule(c, &failed);
    if (ok) compile_share_rows(c);
    ret->seconds_schedule += seconds_since(start);
    if (ok) {
        const struct emit_request r = full_request(c);
        return emit_program_bytes(&r, ret_program, error);
    }
    if (!g_error_matches(failed, diag_quark(), DIAG_EXCH_ROW_TOO_LONG)) {
        g_propagate_error(error, failed);
        return false;
    }
    g_error_free(failed);
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) c->rows_need[t] = c->rows_reserved[t] + TARGET_ELEMENT_BYTES;
    *ret_program = c->support.program_bytes;
    return true;
}

/* Lays out and places for what rows and programs are taken to need. */
static bool place_round(struct compile_state *c, uint32_t program_bytes, struct compile_result *ret,
                        bool *ret_fits, GError **error) {
    if (!lay_out(c, program_bytes, ret, ret_fits)) return false;
    if (!*ret_fits) return true;
    const gint64 start = g_get_monotonic_time();
    const bool ok = compile_place(c, ret, ret_fits, error);
    ret->seconds_place += seconds_since(start);
    return ok;
}

/* Something does not fit beside the estimated rows. The estimate knows nothing of shared rows and
 * idle buses; the encoder's rows take 0.84 of it. Half of it is tried before giving up, if that could be
 * enough; when the rows then need more, a further round places with what they need. */
static bool tighten(struct compile_state *c, struct compile_result *ret) {
    if (c->rows_tight || c->hopeless) return false;
    c->rows_tight = true;
    const uint32_t before = c->rows_reserved[ret->tile];
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) c->rows_need[t] = align_up_u32(c->rows_need[t] / 2, 8);
    if (ret->limit == COMPILE_LIMIT_PLACE) {
        compile_reserve_rows(c);
        const uint32_t won = before - c->rows_reserved[ret->tile];
        if (won == 0 || ret->need_bytes - ret->has_bytes > won) return false;
    }
    g_clear_pointer(&ret->report, g_free);
    g_clear_pointer(&ret->report_json, g_free);
    ret->limit = COMPILE_FITS;
    return true;
}

/* Places and schedules until rows and programs fit their reservations. */
static bool settle(struct compile_state *c, struct compile_result *ret, bool *ret_fits,
                   GError **error) {
    const struct emit_request sizes = request(c);
    uint32_t program, reserved;
    if (!emit_program_bytes(&sizes, &reserved, error)) return false;
    compile_rows_estimate(c);
    for (ret->rounds = 1; ret->rounds <= COMPILE_MAX_ROUNDS; ret->rounds++) {
        if (!place_round(c, reserved, ret, ret_fits, error)) return false;
        if (!*ret_fits && tighten(c, ret)) continue;
        if (!*ret_fits) return true;
        if (!schedule(c, ret, &program, error)) return false;
        if (tile_too_short(c) == TARGET_N_TILES && program <= reserved) return true;
        reserved = MAX(program, reserved);
    }
    *ret_fits = false;
    const uint32_t t = tile_too_short(c);
    const uint32_t rows = t == TARGET_N_TILES ? 0 : c->rows_need[t] - c->rows_reserved[t];
    return support_missing(ret, rows + reserved - c->support.program_bytes);
}

static void report_rows(const struct compile_state *c, struct compile_rows *ret) {
    ret->reserved = c->support.rows_bytes;
    ret->stored = c->table->bytes_max;
    ret->n_stored = c->table->n_rows;
    ret->n_shared = c->table->n_shared;
    ret->n_based = c->table->n_based;
    ret->n_patched = c->table->n_patched;
    for (uint32_t t = 0; t < c->g->n_tiles; t++) {
        uint32_t words = 0;
        for (uint32_t i = 0; i < c->n_exchanges; i++)
            words += align_up_u32(c->rows[i]->first_word[t + 1] - c->rows[i]->first_word[t], 2);
        ret->unshared = MAX(ret->unshared, 4 * words);
    }
}

static bool build(struct compile_state *c, struct compile_result *ret, GError **error) {
    const gint64 start = g_get_monotonic_time();
    const struct emit_request r = full_request(c);
    report_rows(c, &ret->rows);
    if (c->o->exchange_export != NULL && !compile_export_phases(c, error)) return false;
    c->programs = emit_programs(&r, error);
    if (c->programs == NULL) return false;
    ret->package = compile_package(c, error);
    ret->seconds_emit = seconds_since(start);
    return ret->package != NULL;
}

static void find_exchanges(struct compile_state *c) {
    c->exchange_step = g_new0(uint32_t, c->g->n_steps + 1);
    for (uint32_t s = 0; s < c->g->n_steps; s++)
        if (c->g->steps[s].kind == TG_EXCHANGE) c->exchange_step[c->n_exchanges++] = s;
    c->rows = g_new0(struct exch_result *, c->n_exchanges + 1);
    c->rows_need = g_new0(uint32_t, TARGET_N_TILES);
    c->rows_reserved = g_new0(uint32_t, TARGET_N_TILES);
}

static void state_clear(struct compile_state *c) {
    for (uint32_t i = 0; i < c->n_exchanges; i++) exch_result_free(c->rows[i]);
    exch_table_free(c->table);
    g_free(c->placed);
    g_free(c->rows);
    g_free(c->rows_need);
    g_free(c->rows_reserved);
    g_free(c->exchange_step);
    g_free(c->stride);
    g_free(c->address);
    g_free(c->sample_address);
    emit_result_free(c->programs);
    emit_image_free(c->image);
}

bool compile_tile_graph(const struct tile_graph *g, const struct compile_options *o,
                        struct compile_result *ret, GError **error) {
    struct compile_state c = {.g = g, .o = o};
    *ret = (struct compile_result){.limit = COMPILE_FITS};
    find_exchanges(&c);
    compile_strides(&c);
    c.image = emit_image_new(g, error);
    bool fits = true;
    bool ok = c.image != NULL && settle(&c, ret, &fits, error);
    if (ok && fits) ok = build(&c, ret, error);
    state_clear(&c);
    if (!ok) compile_result_free(ret);
    return ok;
}

void compile_result_free(struct compile_result *r) {
    package_free(r->package);
    g_free(r->report);
    g_free(r->report_json);
    *r = (struct compile_result){0};
}
