/* ipu-stack placement-solve: solves a placement problem file or a MiniMalloc CSV and reports. */
#include "cli/cli.h"
#include "place/place.h"

#include <stdio.h>
#include <string.h>

struct solve_options {
    gint64 steps;
    int capacity, threads, tiles, example;
    gboolean json, constructive, check;
    char *page, *output;
};

static bool is_database(const char *path) {
    char head[16] = {0};
    FILE *f = fopen(path, "rb");
    if (f == NULL) return false;
    const size_t n = fread(head, 1, sizeof head, f);
    fclose(f);
    return n == sizeof head && memcmp(head, "SQLite format 3", 16) == 0;
}

static struct place_problem *read_problem(const struct solve_options *o, const char *path,
                                          uint32_t **ret_map, struct place_traffic **ret_traffic,
                                          GError **error) {
    *ret_map = NULL;
    *ret_traffic = NULL;
    if (path == NULL) return place_example_encoder((uint32_t)o->example, 1);
    if (is_database(path)) return place_file_read(path, ret_map, ret_traffic, error);
    return place_csv_read(path, (uint32_t)o->capacity, error);
}

static bool write_results(const struct solve_options *o, const struct place_problem *p,
                          const struct place_traffic *traffic, const struct place_result *r,
                          GError **error) {
    const uint32_t *map = r->status == PLACE_SOLVED ? r->address : NULL;
    if (o->output != NULL && !place_file_write(o->output, p, map, traffic, error)) return false;
    return o->page == NULL || place_page_write(p, r, o->page, error);
}

static int solve(const struct solve_options *o, const struct place_problem *p,
                 const struct place_traffic *traffic) {
    GError *error = NULL;
    const struct place_options options = {.max_steps = (uint64_t)o->steps,
                                          .constructive_only = o->constructive,
                                          .traffic = traffic};
    struct place_result *r = place_solve(p, &options, &error);
    if (r == NULL || !write_results(o, p, traffic, r, &error)) {
        place_result_free(r);
        return cli_fail("placement-solve", error);
    }
    GString *text = g_string_new(NULL);
    if (o->json) place_report_json(p, r, (uint32_t)o->tiles, text);
    else place_report_print(p, r, (uint32_t)o->tiles, text);
    fputs(text->str, stdout);
    g_string_free(text, TRUE);
    const int status[] = {CLI_OK, CLI_CHECK_FAILED, CLI_INFEASIBLE};
    const int exit_status = status[r->status];
    place_result_free(r);
    return exit_status;
}

/* The map of the file against its problem. */
static int check_map(const char *path, const struct place_problem *p, const uint32_t *map) {
    char *message = NULL;
    if (map == NULL) {
        fprintf(stderr, "ipu-stack placement-solve: %s holds no map to check\n", path);
        return CLI_WRONG_INPUT;
    }
    const bool ok = place_map_check(p, map, &message);
    puts(ok ? "the map keeps every constraint" : message);
    g_free(message);
    return ok ? CLI_OK : CLI_CHECK_FAILED;
}

static bool usage_ok(const struct solve_options *o, int argc, const char *path) {
    const char *why = NULL;
    if (argc > 2 || (path == NULL) == (o->example == 0)) why = "needs one FILE or --example N";
    else if (o->example < 0 || o->example > TARGET_N_TILES) why = "--example: 1 to 1,472 tiles";
    else if (o->capacity < 0 || o->threads < 0 || o->tiles < 0 || o->steps < 0)
        why = "numbers must not be negative";
    else if (o->check && path == NULL) why = "--check needs a FILE";
    else if (path != NULL && o->capacity == 0 && !is_database(path))
        why = "FILE is no problem file; a CSV needs --capacity N";
    if (why != NULL)
        fprintf(stderr, "ipu-stack placement-solve: %s; see ipu-stack placement-solve --help\n",
                why);
    return why == NULL;
}

int cmd_placement_solve(int argc, char **argv) {
    struct solve_options o = {.tiles = 1, .steps = 20 * 1000 * 1000};
    const GOptionEntry entries[] = {
        {"capacity", 'c', 0, G_OPTION_ARG_INT, &o.capacity, "Bytes of memory, for a CSV", "N"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &o.json, "Report as JSON", NULL},
        {"tiles", 'n', 0, G_OPTION_ARG_INT, &o.tiles, "List the N tightest tiles (1)", "N"},
        {"steps", 's', 0, G_OPTION_ARG_INT64, &o.steps, "Search budget per tile (20,000,000)", "N"},
        {"threads", 't', 0, G_OPTION_ARG_INT, &o.threads, "Threads (all cores)", "N"},
        {"example", 'e', 0, G_OPTION_ARG_INT, &o.example,
         "Instead of FILE: a made-up 27-layer encoder on N tiles", "N"},
        {"constructive", 0, 0, G_OPTION_ARG_NONE, &o.constructive, "No exact search", NULL},
        {"check", 0, 0, G_OPTION_ARG_NONE, &o.check, "Check the map in FILE, do not solve", NULL},
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &o.output, "Write problem and map", "FILE"},
        {"page", 'p', 0, G_OPTION_ARG_FILENAME, &o.page, "Write a page of the map", "FILE.html"},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "FILE|CSV",
                     "FILE is a placement problem (--placement-dump writes them); a CSV has the "
                     "columns id, lower, upper, size (MiniMalloc).\n"
                     "Exit status: 0 solved, 1 undecided, 3 infeasible, with the proof.",
                     &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    const char *path = argc == 2 ? argv[1] : NULL;
    if (!usage_ok(&o, argc, path)) return CLI_WRONG_INPUT;
    GError *error = NULL;
    if (!cli_threads_set(o.threads, &error)) return cli_fail("placement-solve", error);
    uint32_t *map;
    struct place_traffic *traffic;
    struct place_problem *p = read_problem(&o, path, &map, &traffic, &error);
    if (p == NULL) return cli_fail("placement-solve", error);
    const int status = o.check ? check_map(path, p, map) : solve(&o, p, traffic);
    g_free(map);
    place_problem_free(p);
    return status;
}
