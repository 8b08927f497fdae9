/* Reports: what a placement problem and its answer look like to a person or a script. Live bytes
 * come from the requests (a storage counts its own bytes, tails that may be shared not), free bytes
 * from the map. Cost: a few sorts per tile. */
#include "place/place_report.h"

#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>

const char *place_status_name(enum place_status status) {
    static const char *const name[] = {"solved", "undecided", "infeasible"};
    return name[status];
}

const char *place_kind_name(uint32_t kind) {
    static const char *const name[PLACE_N_KINDS] = {"tensor",  "parameter",  "code",
                                                    "rows",    "state",      "window",
                                                    "profile", "descriptor", "scratch"};
    return name[kind];
}

static const char *part_name(uint32_t part) {
    static const char *const name[] = {"all memory", "standard memory", "interleaved memory",
                                       "memory outside the host window"};
    return name[part];
}

static const char *proof_name(uint32_t kind) {
    static const char *const name[] = {"none",       "live-peak",  "class-peak",
                                       "contiguity", "separation", "search"};
    return name[kind];
}

/* --- Numbers of one tile --- */

static uint64_t usable_bytes(const struct place_memory *m) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < m->n_ranges; i++) sum += m->range_end[i] - m->range_base[i];
    return sum;
}

/* Live bytes of every section, outside fixed requests that lie beyond the usable ranges. */
static void live_bytes(const struct tile *t, uint64_t *ret_live) {
    memset(ret_live, 0, t->n_sections * sizeof *ret_live);
    for (uint32_t i = 0; i < t->n; i++)
        for (uint32_t u = t->item[i].first; u <= t->item[i].last; u++)
            ret_live[u] += t->item[i].size;
}

struct busy {
    uint32_t lo, hi;
};

static int compare_busy(const void *va, const void *vb) {
    const struct busy *a = va, *b = vb;
    return a->lo < b->lo ? -1 : a->lo > b->lo;
}

/* Usable bytes that no storage covers (at one section, or ever if section is UINT32_MAX), and the
 * largest span of them. */
static uint64_t free_bytes(const struct place_problem *p, const struct tile *t,
                           const uint32_t *start, uint32_t section, uint64_t *ret_largest) {
    struct busy *busy = g_new(struct busy, t->n + 1);
    uint32_t n = 0;
    for (uint32_t i = 0; i < t->n; i++)
        if (section == UINT32_MAX || (t->item[i].first <= section && section <= t->item[i].last))
            busy[n++] = (struct busy){start[i], start[i] + t->item[i].size};
    if (n != 0) qsort(busy, n, sizeof *busy, compare_busy);
    uint64_t sum = 0;
    *ret_largest = 0;
    for (uint32_t k = 0; k < p->memory.n_ranges; k++) {
        uint32_t at = p->memory.range_base[k];
        const uint32_t end = p->memory.range_end[k];
        for (uint32_t i = 0; i <= n && at < end; i++) {
            const uint32_t lo = i < n ? MIN(busy[i].lo, end) : end;
            if (lo > at) {
                sum += lo - at;
                *ret_largest = MAX(*ret_largest, lo - at);
            }
            if (i < n) at = MAX(at, busy[i].hi);
        }
    }
    g_free(busy);
    return sum;
}

struct ranked {
    uint64_t bytes;
    uint32_t index;
};

static int compare_ranked(const void *va, const void *vb) {
    const struct ranked *a = va, *b = vb;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void place_tile_summarise(const struct place_problem *p, const struct place_result *r,
                          uint32_t tile, struct place_tile_summary *ret) {
    struct arena *arena = arena_new();
    const struct tile *t = tile_build(p, tile, arena);
    uint64_t *live = arena_new_array(arena, uint64_t, t->n_sections + 1);
    live_bytes(t, live);
    uint32_t peak = 0;
    for (uint32_t u = 0; u < t->n_sections; u++)
        if (live[u] > live[peak]) peak = u;
    *ret = (struct place_tile_summary){
        .tile = tile, .n_sections = t->n_sections, .usable_bytes = usable_bytes(&p->memory)};
    ret->step = g_memdup2(t->step, t->n_sections * sizeof *t->step);
    ret->live_bytes = g_memdup2(live, t->n_sections * sizeof *live);
    if (t->n_sections != 0) {
        ret->peak_bytes = live[peak];
        ret->peak_step = t->step[peak];
    }
    struct ranked *user = arena_new_array(arena, struct ranked, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        if (t->item[i].first <= peak && peak <= t->item[i].last)
            user[ret->n_users++] = (struct ranked){t->item[i].size, t->item[i].root};
    if (ret->n_users != 0) qsort(user, ret->n_users, sizeof *user, compare_ranked);
    ret->user = g_new(uint32_t, ret->n_users);
    ret->user_bytes = g_new(uint32_t, ret->n_users);
    for (uint32_t k = 0; k < ret->n_users; k++) {
        ret->user[k] = p->first[tile] + user[k].index;
        ret->user_bytes[k] = (uint32_t)user[k].bytes;
    }
    if (r->tile_status[tile] == PLACE_SOLVED) {
        uint32_t *start = arena_new_array(arena, uint32_t, t->n);
        for (uint32_t i = 0; i < t->n; i++) start[i] = r->address[p->first[tile] + t->item[i].root];
        ret->has_map = true;
        ret->never_used_bytes = free_bytes(p, t, start, UINT32_MAX, &ret->never_used_span);
        ret->peak_free_bytes = free_bytes(p, t, start, peak, &ret->peak_free_span);
    }
    arena_free(arena);
}

void place_tile_summary_clear(struct place_tile_summary *s) {
    g_free(s->step);
    g_free(s->live_bytes);
    g_free(s->user);
    g_free(s->user_bytes);
}

uint32_t *place_tiles_tightest(const struct place_problem *p, const struct place_result *r) {
    struct ranked *rank = g_new(struct ranked, p->n_tiles);
    uint32_t *tile = g_new(uint32_t, p->n_tiles);
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        struct place_tile_summary s;
        place_tile_summarise(p, r, t, &s);
        /* Unsolved tiles first, then by the live peak. */
        rank[t] = (struct ranked){s.peak_bytes + ((uint64_t)r->tile_status[t] << 40), t};
        place_tile_summary_clear(&s);
    }
    if (p->n_tiles != 0) qsort(rank, p->n_tiles, sizeof *rank, compare_ranked);
    for (uint32_t i = 0; i < p->n_tiles; i++) tile[i] = rank[i].index;
    g_free(rank);
    return tile;
}

/* --- Text --- */

enum { MAX_USERS = 10, MAX_TIMES = 16 };

static const char *request_name(const struct place_problem *p, uint32_t r) {
    return p->name[p->request[r].name];
}

static void print_step(GString *out, uint32_t step) {
    if (step == PLACE_STEP_END) g_string_append(out, "end");
    else g_string_append_printf(out, "%u", step);
}

static void print_user(const struct place_problem *p, uint32_t r, uint64_t bytes, GString *out) {
    const struct place_request *q = &p->request[r];
    g_string_append_printf(out, "    %10" G_GUINT64_FORMAT "  %-10s steps ", bytes,
                           place_kind_name(q->kind));
    print_step(out, q->first_step);
    g_string_append(out, "..");
    print_step(out, q->last_step);
    g_string_append_printf(out, "  %s", request_name(p, r));
    if (q->n_blocks > 1)
        g_string_append_printf(out, " (%u blocks of %u, stride %u)", q->n_blocks, q->bytes,
                               place_request_stride(q));
    g_string_append_c(out, '\n');
}

void place_proof_print(const struct place_problem *p, const struct place_proof *proof,
                       GString *out) {
    g_string_append_printf(out, "tile %u does not fit (%s): ", proof->tile,
                           proof_name(proof->kind));
    if (proof->kind == PLACE_PROOF_SEARCH) {
        if (proof->n_users == 0)
            g_string_append(out, "every canonical position of its requests was tried\n");
        else
            g_string_append_printf(out, "'%s' has no position that keeps its own constraints\n",
                                   request_name(p, proof->user[0]));
        return;
    }
    g_string_append(out, "at step ");
    print_step(out, proof->step);
    g_string_append_printf(
        out, " %u requests need %" G_GUINT64_FORMAT " bytes of %s, which has %" G_GUINT64_FORMAT,
        proof->n_users, proof->need_bytes, part_name(proof->part), proof->has_bytes);
    if (proof->need_bytes > proof->has_bytes)
        g_string_append_printf(out, "; they must shrink by %" G_GUINT64_FORMAT,
                               proof->need_bytes - proof->has_bytes);
    g_string_append_c(out, '\n');
    for (uint32_t k = 0; k < MIN(proof->n_users, MAX_USERS); k++) {
        const struct place_request *q = &p->request[proof->user[k]];
        print_user(p, proof->user[k], place_request_extent(q) + q->tail_bytes, out);
    }
    if (proof->n_users > MAX_USERS)
        g_string_append_printf(out, "    and %u more\n", proof->n_users - MAX_USERS);
}

/* The sections with the most live bytes around each of MAX_TIMES equal parts of the time. */
static void print_times(const struct place_tile_summary *s, GString *out) {
    g_string_append(out, "  live bytes over time:");
    const uint32_t n = MIN(s->n_sections, MAX_TIMES);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t best = k * s->n_sections / n;
        for (uint32_t u = best; u < (k + 1) * s->n_sections / n; u++)
            if (s->live_bytes[u] > s->live_bytes[best]) best = u;
        g_string_append_printf(out, " %u:%" G_GUINT64_FORMAT, s->step[best], s->live_bytes[best]);
    }
    g_string_append_c(out, '\n');
}

static void print_tile(const struct place_problem *p, const struct place_result *r, uint32_t tile,
                       GString *out) {
    struct place_tile_summary s;
    place_tile_summarise(p, r, tile, &s);
    g_string_append_printf(
        out, "tile %u: %s, live peak %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " bytes at step ",
        tile, place_status_name(r->tile_status[tile]), s.peak_bytes, s.usable_bytes);
    print_step(out, s.peak_step);
    if (s.has_map)
        g_string_append_printf(
            out,
            "; free there %" G_GUINT64_FORMAT ", largest span %" G_GUINT64_FORMAT
            "; never used %" G_GUINT64_FORMAT ", largest span %" G_GUINT64_FORMAT,
            s.peak_free_bytes, s.peak_free_span, s.never_used_bytes, s.never_used_span);
    g_string_append_c(out, '\n');
    print_times(&s, out);
    g_string_append(out, "  largest at the peak:\n");
    for (uint32_t k = 0; k < MIN(s.n_users, MAX_USERS); k++)
        print_user(p, s.user[k], s.user_bytes[k], out);
    if (s.n_users > MAX_USERS)
        g_string_append_printf(out, "    and %u more\n", s.n_users - MAX_USERS);
    place_tile_summary_clear(&s);
}

void place_report_print(const struct place_problem *p, const struct place_result *r,
                        uint32_t n_tiles, GString *out) {
    uint32_t count[3] = {0};
    for (uint32_t t = 0; t < p->n_tiles; t++) count[r->tile_status[t]]++;
    g_string_append_printf(out,
                           "%s: %u requests on %u tiles (%u distinct, %u by a constructive "
                           "order), %" G_GUINT64_FORMAT " steps\n",
                           place_status_name(r->status), p->n_requests, p->n_tiles, r->n_distinct,
                           r->n_constructive, r->n_steps);
    if (r->status != PLACE_SOLVED)
        g_string_append_printf(out, "tiles solved %u, undecided %u, infeasible %u\n", count[0],
                               count[1], count[2]);
    for (uint32_t k = 0; k < MIN(r->n_proofs, MAX(n_tiles, 1)); k++)
        place_proof_print(p, &r->proof[k], out);
    if (r->n_proofs > MAX(n_tiles, 1))
        g_string_append_printf(out, "and %u more tiles that do not fit\n",
                               r->n_proofs - MAX(n_tiles, 1));
    if (count[PLACE_UNDECIDED] != 0)
        g_string_append_printf(out,
                               "undecided: %u tiles: no constructive order fits, no bound refutes, "
                               "%s\n",
                               count[PLACE_UNDECIDED],
                               r->n_proofs != 0
                                   ? "not searched further, since others do not fit"
                                   : "the exact search spent its steps; more may decide");
    if (n_tiles == 0) return;
    uint32_t *tile = place_tiles_tightest(p, r);
    for (uint32_t i = 0; i < MIN(n_tiles, p->n_tiles); i++) print_tile(p, r, tile[i], out);
    g_free(tile);
}

/* --- JSON --- */

static void json_number(JsonBuilder *b, const char *key, uint64_t value) {
    json_builder_set_member_name(b, key);
    json_builder_add_int_value(b, (gint64)value);
}
static void json_text(JsonBuilder *b, const char *key, const char *value) {
    json_builder_set_member_name(b, key);
    json_builder_add_string_value(b, value);
}

static void json_user(JsonBuilder *b, const struct place_problem *p, uint32_t r, uint64_t bytes) {
    json_builder_begin_object(b);
    json_text(b, "name", request_name(p, r));
    json_text(b, "kind", place_kind_name(p->request[r].kind));
    json_number(b, "bytes", bytes);
    json_number(b, "first_step", p->request[r].first_step);
    json_number(b, "last_step", p->request[r].last_step);
    json_builder_end_object(b);
}

static void json_proof(JsonBuilder *b, const struct place_problem *p,
                       const struct place_proof *proof) {
    json_builder_begin_object(b);
    json_number(b, "tile", proof->tile);
    json_text(b, "kind", proof_name(proof->kind));
    json_text(b, "part", part_name(proof->part));
    json_number(b, "step", proof->step);
    json_number(b, "need_bytes", proof->need_bytes);
    json_number(b, "has_bytes", proof->has_bytes);
    json_number(b, "excess_bytes", proof->need_bytes - MIN(proof->need_bytes, proof->has_bytes));
    json_number(b, "n_users", proof->n_users);
    json_builder_set_member_name(b, "users");
    json_builder_begin_array(b);
    for (uint32_t k = 0; k < MIN(proof->n_users, MAX_USERS); k++) {
        const struct place_request *q = &p->request[proof->user[k]];
        json_user(b, p, proof->user[k], place_request_extent(q) + q->tail_bytes);
    }
    json_builder_end_array(b);
    json_builder_end_object(b);
}

static void json_tile(JsonBuilder *b, const struct place_problem *p, const struct place_result *r,
                      uint32_t tile) {
    struct place_tile_summary s;
    place_tile_summarise(p, r, tile, &s);
    json_builder_begin_object(b);
    json_number(b, "tile", tile);
    json_text(b, "status", place_status_name(r->tile_status[tile]));
    json_number(b, "usable_bytes", s.usable_bytes);
    json_number(b, "peak_bytes", s.peak_bytes);
    json_number(b, "peak_step", s.peak_step);
    if (s.has_map) {
        json_number(b, "peak_free_bytes", s.peak_free_bytes);
        json_number(b, "peak_free_span", s.peak_free_span);
        json_number(b, "never_used_bytes", s.never_used_bytes);
        json_number(b, "never_used_span", s.never_used_span);
    }
    json_builder_set_member_name(b, "users");
    json_builder_begin_array(b);
    for (uint32_t k = 0; k < MIN(s.n_users, MAX_USERS); k++)
        json_user(b, p, s.user[k], s.user_bytes[k]);
    json_builder_end_array(b);
    json_builder_end_object(b);
    place_tile_summary_clear(&s);
}

void place_report_json(const struct place_problem *p, const struct place_result *r,
                       uint32_t n_tiles, GString *out) {
    JsonBuilder *b = json_builder_new();
    json_builder_begin_object(b);
    json_text(b, "status", place_status_name(r->status));
    json_builder_set_member_name(b, "seconds");
    json_builder_add_double_value(b, r->seconds);
    json_number(b, "steps", r->n_steps);
    json_number(b, "requests", p->n_requests);
    json_number(b, "tiles", p->n_tiles);
    json_number(b, "distinct_tiles", r->n_distinct);
    json_number(b, "constructive_tiles", r->n_constructive);
    json_number(b, "infeasible_tiles", r->n_proofs);
    json_builder_set_member_name(b, "proof");
    if (r->n_proofs == 0) json_builder_add_null_value(b);
    else json_proof(b, p, &r->proof[0]);
    json_builder_set_member_name(b, "proofs");
    json_builder_begin_array(b);
    for (uint32_t k = 0; k < MIN(r->n_proofs, n_tiles); k++) json_proof(b, p, &r->proof[k]);
    json_builder_end_array(b);
    json_builder_set_member_name(b, "tightest");
    json_builder_begin_array(b);
    uint32_t *tile = n_tiles != 0 ? place_tiles_tightest(p, r) : NULL;
    for (uint32_t i = 0; i < MIN(n_tiles, p->n_tiles); i++) json_tile(b, p, r, tile[i]);
    g_free(tile);
    json_builder_end_array(b);
    json_builder_end_object(b);
    JsonNode *root = json_builder_get_root(b);
    char *text = json_to_string(root, false);
    g_string_append(out, text);
    g_string_append_c(out, '\n');
    g_free(text);
    json_node_unref(root);
    g_object_unref(b);
}
