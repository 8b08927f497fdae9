/* ipu-stack exchange-replay: executes a file of exchange rows on the fabric and compares what it
 * delivers with the problem that the rows are to solve. */
#include "cli/cli.h"
#include "fabric/fabric.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MAX_DIAGRAM_TILES = 40, DIAGRAM_COLUMNS = 120 };

struct replay {
    const char *problem, *rows_path;
    uint32_t phase;
    bool check; /* there is a problem to compare with */
    struct fabric_expect expect;
    struct fabric_rows rows;
    struct fabric_tile *tiles;
    struct fabric_result result;
    uint32_t n_horizons_wrong; /* tiles that end at another slot than the file says */
    uint32_t first_wrong;
    double seconds;
};

static void make_tiles(struct replay *r) {
    r->tiles = g_new0(struct fabric_tile, r->rows.n_active + 1);
    for (uint32_t i = 0; i < r->rows.n_active; i++) {
        struct fabric_tile *t = &r->tiles[i];
        t->tile = r->rows.tile[i];
        t->words = r->rows.words + r->rows.first[i];
        t->n_words = r->rows.first[i + 1] - r->rows.first[i];
        t->csr = fabric_csr_initial();
        t->csr.incoming_base = r->rows.base[i];
    }
}

static void compare_horizons(struct replay *r) {
    for (uint32_t i = 0; i < r->rows.n_active; i++) {
        if (r->tiles[i].slots == r->rows.slots[i]) continue;
        if (r->n_horizons_wrong++ == 0) r->first_wrong = i;
    }
}

static bool passed(const struct replay *r) {
    return r->result.ok && r->n_horizons_wrong == 0 && r->result.horizon == r->rows.horizon;
}

static void print_text(const struct replay *r, int64_t max_faults) {
    const struct fabric_result *q = &r->result;
    printf("%s: %u active tiles, %u messages, %" PRIu64 " words sent, %" PRIu64
           " delivered in %u runs\n",
           r->rows_path, r->rows.n_active, q->n_messages, q->words_sent, q->words_moved,
           q->n_deliveries);
    printf("horizon %u (file: %u), %u tiles end at another slot than in the file\n", q->horizon,
           r->rows.horizon, r->n_horizons_wrong);
    if (r->n_horizons_wrong > 0)
        printf("  first: tile %u ends at %u, file: %u\n", r->rows.tile[r->first_wrong],
               r->tiles[r->first_wrong].slots, r->rows.slots[r->first_wrong]);
    int64_t shown = 0;
    for (uint32_t k = 0; k < q->n_errors + q->n_warnings && shown < max_faults; k++) {
        if (!q->faults[k].error) continue;
        char *text = fabric_fault_text(&q->faults[k]);
        printf("%s\n", text);
        g_free(text);
        shown++;
    }
    for (uint32_t k = 0; k < FABRIC_N_FAULTS; k++)
        if (q->count[k] > 0)
            printf("%8u x %u (%s) %s\n", q->count[k], fabric_conditions[k].number,
                   fabric_conditions[k].id, fabric_conditions[k].text);
    const char *what = r->check ? "every word delivered, nothing else written"
                                : "executed without fault, no problem to compare with";
    if (passed(r)) printf("passed: %s\n", what);
    else printf("FAILED: for the reasons above\n");
}

static void print_json(const struct replay *r) {
    const struct fabric_result *q = &r->result;
    printf("{\"phase\": %u, \"transfers\": %u, \"endpoints\": %u, \"active_tiles\": %u, "
           "\"messages\": %u, \"words_sent\": %" PRIu64 ", \"words_delivered\": %" PRIu64
           ", \"horizon\": %u, \"horizon_in_file\": %u, \"tiles_with_other_horizon\": %u, ",
           r->phase, r->expect.n_transfers, r->expect.n_receivers, r->rows.n_active, q->n_messages,
           q->words_sent, q->words_moved, q->horizon, r->rows.horizon, r->n_horizons_wrong);
    printf("\"errors\": %u, \"warnings\": %u, \"conditions\": [", q->n_errors, q->n_warnings);
    const char *separator = "";
    for (uint32_t k = 0; k < FABRIC_N_FAULTS; k++) {
        if (q->count[k] == 0) continue;
        printf("%s{\"number\": %u, \"id\": \"%s\", \"count\": %u}", separator,
               fabric_conditions[k].number, fabric_conditions[k].id, q->count[k]);
        separator = ", ";
    }
    printf("], \"first_error\": ");
    if (q->first == NULL) printf("null");
    else
        printf("{\"number\": %u, \"id\": \"%s\", \"tile\": %u, \"slot\": %u, \"address\": %u, "
               "\"other_tile\": %d}",
               fabric_conditions[q->first->what].number, fabric_conditions[q->first->what].id,
               q->first->tile, q->first->slot, q->first->address,
               q->first->other == FABRIC_NO_TILE ? -1 : (int)q->first->other);
    printf(", \"compared\": %s, \"verified\": %s, \"seconds\": %.6f}\n",
           r->check ? "true" : "false", r->check && passed(r) ? "true" : "false", r->seconds);
}

static bool load(struct replay *r, GError **error) {
    if (!fabric_rows_read(r->rows_path, &r->rows, error)) return false;
    r->check = strcmp(r->problem, "-") != 0;
    return !r->check || fabric_expect_read(r->problem, r->phase, &r->expect, error);
}

int cmd_exchange_replay(int argc, char **argv) {
    gint phase = 0, threads = 0, max_faults = 20;
    gboolean json = false, relaxed = false, diagram = false;
    const GOptionEntry entries[] = {
        {"phase", 0, 0, G_OPTION_ARG_INT, &phase, "Phase of the problem (0)", "N"},
        {"relaxed", 0, 0, G_OPTION_ARG_NONE, &relaxed, "Controls at a message's start are warnings",
         NULL},
        {"faults", 0, 0, G_OPTION_ARG_INT, &max_faults, "Faults to show (20)", "N"},
        {"diagram", 0, 0, G_OPTION_ARG_NONE, &diagram, "Show a small phase slot by slot", NULL},
        {"threads", 0, 0, G_OPTION_ARG_INT, &threads, "Threads (0: all cores)", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "One JSON object on standard output", NULL},
        {0}};
    bool done;
    if (!cli_options(
            &argc, &argv, entries, "PROBLEM ROWS",
            "PROBLEM is a JSON file of exchange phases, or - to execute only; ROWS a file of "
            "rows.\nBoth may be compressed with zstd.",
            &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    if (argc != 3 || phase < 0) {
        fprintf(stderr, "ipu-stack exchange-replay: needs PROBLEM and ROWS; see --help\n");
        return CLI_WRONG_INPUT;
    }
    struct replay r = {.problem = argv[1], .rows_path = argv[2], .phase = (uint32_t)phase};
    GError *error = NULL;
    if (!cli_threads_set(threads, &error)) return cli_fail("exchange-replay", error);
    if (!load(&r, &error)) {
        fabric_rows_clear(&r.rows);
        return cli_fail("exchange-replay", error);
    }
    if (diagram && r.rows.n_active > MAX_DIAGRAM_TILES) {
        diag_set(&error, FABRIC_DIAGRAM_TILES, r.rows_path, r.rows.n_active, MAX_DIAGRAM_TILES);
        fabric_rows_clear(&r.rows);
        fabric_expect_clear(&r.expect);
        return cli_fail("exchange-replay", error);
    }
    make_tiles(&r);
    struct fabric *f = fabric_new();
    const struct fabric_phase in = {
        .tiles = r.tiles, .n_tiles = r.rows.n_active, .flags = relaxed ? FABRIC_RELAXED : 0};
    const gint64 start = g_get_monotonic_time();
    fabric_phase_run(f, &in, &r.result);
    if (r.check) fabric_expect_check(f, &r.expect, &r.result);
    r.seconds = (double)(g_get_monotonic_time() - start) * 1e-6;
    compare_horizons(&r);
    if (diagram) {
        char *text = fabric_diagram(f, DIAGRAM_COLUMNS);
        fputs(text, json ? stderr : stdout);
        g_free(text);
    }
    if (json) print_json(&r);
    else print_text(&r, max_faults);
    const bool ok = passed(&r);
    fabric_free(f);
    fabric_expect_clear(&r.expect);
    fabric_rows_clear(&r.rows);
    g_free(r.tiles);
    return ok ? CLI_OK : CLI_CHECK_FAILED;
}
