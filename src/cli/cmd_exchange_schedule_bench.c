/* ipu-stack exchange-schedule-bench: schedules the phases of a problem file and reports horizons,
 * bounds, row sizes and times. */
#include "cli/cli.h"
#include "cli/exch_verify.h"
#include "exchange/exch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct bench {
    /* options */
    int phase, threads, shift, seed, max_row_bytes, pareto;
    char *priority, *width, *effort;
    gboolean select_widths, replay, json, relaxed, diagram;
    char *rows;
    struct exch_options o;
    /* state */
    uint32_t n_printed;
    bool failed;
    struct fabric *fabric;
};

struct timed {
    struct exch_result *r;
    double seconds, check_seconds, verify_seconds;
    bool checked;
};

/* Processor time of the thread: other work on the machine does not count. */
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Moves every address in interleaved memory by `bytes`, as an arena offset does. */
static void shift_addresses(struct exch_problem *p, int bytes) {
    for (uint32_t x = 0; x < p->n_transfers; x++)
        if (target_interleaved(p->source_address[x])) p->source_address[x] += (uint32_t)bytes;
    for (uint32_t r = 0; r < p->n_recipients; r++)
        if (target_interleaved(p->recipient_address[r])) p->recipient_address[r] += (uint32_t)bytes;
}

static void print_json(struct bench *b, uint32_t number, const struct exch_problem *p,
                       const struct timed *t) {
    const struct exch_result *r = t->r;
    static const char *const widths[] = {"mixed", "ordinary", "paired"};
    printf("%s{\"phase\":%u,\"transfers\":%u,\"endpoints\":%u,\"horizon\":%u,\"endpoint_bound\":%u,"
           "\"bound\":%u,\"bound_reason\":\"%s\",\"ratio\":%.6f,\"seconds\":%.3f,"
           "\"row_bytes_max\":%u,\"row_bytes_total\":%" G_GUINT64_FORMAT
           ",\"width\":\"%s\",\"priority\":\"%s\",\"verified\":%s,\"check_seconds\":%.3f,\"verify_"
           "seconds\":%.3f,"
           "\"replayed\":%s,\"relaxed\":%s,\"fingerprint\":\"%016" G_GINT64_MODIFIER "x\"}",
           b->n_printed++ == 0 ? "" : ",", number, p->n_transfers, p->n_recipients, r->horizon,
           r->bounds.endpoint, r->bounds.any_width, r->bounds.reason,
           (double)r->horizon / r->bounds.any_width, t->seconds, r->row_bytes_max,
           r->row_bytes_total, widths[r->width], r->priority, t->checked ? "true" : "false",
           t->check_seconds, t->verify_seconds, r->replayed ? "true" : "false",
           r->relaxed ? "true" : "false", r->fingerprint);
}

static void print_text(uint32_t number, const struct exch_problem *p, const struct timed *t) {
    const struct exch_result *r = t->r;
    printf("phase %u: %u transfers, %u endpoints: horizon %u, bound %u (%s), ratio %.4f, words %u; "
           "rows %u bytes at most, %" G_GUINT64_FORMAT " in all; %s%s, %.3f s, %s in %.3f s\n",
           number, p->n_transfers, p->n_recipients, r->horizon, r->bounds.any_width,
           r->bounds.reason, (double)r->horizon / r->bounds.any_width, r->bounds.endpoint,
           r->row_bytes_max, r->row_bytes_total, r->priority, r->relaxed ? ", relaxed" : "",
           t->seconds, t->checked ? "verified" : "NOT VERIFIED", t->verify_seconds);
}

static void report(struct bench *b, uint32_t number, const struct exch_problem *p,
                   const struct timed *t) {
    if (b->json) print_json(b, number, p, t);
    else print_text(number, p, t);
    if (!b->diagram || b->json) return;
    char *text = exch_diagram(p, t->r);
    fputs(text, stdout);
    g_free(text);
}

/* Checks a result by decoding and by the fabric, reports it. */
static bool finish(struct bench *b, const struct exch_problem *p, uint32_t number, struct timed *t,
                   GError **error) {
    double t0 = now();
    if (!exch_rows_check(p, t->r, error)) return false;
    t->check_seconds = now() - t0;
    t0 = now();
    struct exch_verdict verdict;
    exch_verify(b->fabric, p, t->r, 0, &verdict);
    t->verify_seconds = now() - t0;
    t->checked = verdict.ok;
    if (!verdict.ok) {
        fprintf(stderr, "ipu-stack exchange-schedule-bench: phase %u: the fabric disagrees: %s\n",
                number, verdict.first != NULL ? verdict.first : "other horizons");
        b->failed = true;
    }
    g_free(verdict.first);
    if (t->r->horizon < t->r->bounds.any_width) {
        fprintf(stderr, "ipu-stack exchange-schedule-bench: phase %u: horizon below the bound\n",
                number);
        b->failed = true;
    }
    report(b, number, p, t);
    return b->rows == NULL || exch_rows_save(b->rows, t->r, error);
}

static bool run_replay(struct bench *b, struct exch_problem *p, uint32_t number, struct timed *t,
                       GError **error) {
    struct exch_recipe *recipe = exch_recipe_new(p, t->r);
    const double t0 = now();
    struct timed again = {.r = exch_replay(p, recipe)};
    again.seconds = now() - t0;
    exch_recipe_free(recipe);
    const bool ok = again.r == NULL || finish(b, p, number, &again, error);
    if (again.r == NULL) b->failed = true;
    exch_result_free(again.r);
    return ok;
}

static bool run_pareto(struct bench *b, struct exch_problem *p, uint32_t number, GError **error) {
    struct exch_result **r = g_new0(struct exch_result *, b->pareto);
    const double t0 = now();
    const uint32_t n = exch_pareto(p, &b->o, (uint32_t)b->pareto, r, error);
    bool ok = n > 0;
    for (uint32_t i = 0; i < n; i++) {
        struct timed t = {.r = r[i], .seconds = now() - t0};
        ok = ok && finish(b, p, number, &t, error);
        exch_result_free(r[i]);
    }
    g_free(r);
    return ok;
}

static bool run_phase(struct bench *b, struct exch_problem *p, uint32_t number, GError **error) {
    if (b->shift != 0) shift_addresses(p, b->shift);
    if (!exch_problem_check(p, error)) return false;
    if (b->pareto > 0) return run_pareto(b, p, number, error);
    const double t0 = now();
    struct timed t = {.r = exch_schedule(p, &b->o, error)};
    if (t.r == NULL) return false;
    t.seconds = now() - t0;
    const bool ok =
        b->replay ? run_replay(b, p, number, &t, error) : finish(b, p, number, &t, error);
    exch_result_free(t.r);
    return ok;
}

static const char *parse_words(struct bench *b) {
    b->o.seed = (uint32_t)b->seed;
    b->o.relaxed = b->relaxed;
    b->o.max_row_bytes = (uint32_t)b->max_row_bytes;
    b->o.effort = EXCH_EFFORT_NORMAL;
    if (b->effort != NULL) {
        static const char *const names[] = {"quick", "normal", "best"};
        uint32_t k = 0;
        while (k < 3 && strcmp(b->effort, names[k]) != 0) k++;
        if (k == 3) return "--effort is quick, normal or best";
        b->o.effort = (enum exch_effort)k;
    }
    if (b->priority != NULL) {
        b->o.priority = exch_priority_find(b->priority);
        if (b->o.priority == EXCH_N_PRIORITIES) return "unknown --priority";
    }
    if (b->width != NULL) {
        static const char *const names[] = {"any", "ordinary", "paired"};
        uint32_t k = 0;
        while (k < 3 && strcmp(b->width, names[k]) != 0) k++;
        if (k == 3) return "--width is any, ordinary or paired";
        b->o.width = (enum exch_width)k;
    }
    return NULL;
}

static int run(struct bench *b, const char *path) {
    GError *error = NULL;
    struct exch_problem_set *set = exch_file_read(path, &error);
    if (set == NULL) return cli_fail("exchange-schedule-bench", error);
    bool ok = true, any = false;
    if (b->rows != NULL && b->phase < 0 && set->n_phases > 1) {
        fprintf(stderr,
                "ipu-stack exchange-schedule-bench: --rows holds one phase: give --phase\n");
        exch_problem_set_free(set);
        return CLI_WRONG_INPUT;
    }
    b->fabric = fabric_new();
    if (b->json) printf("{\"phases\":[");
    for (uint32_t k = 0; k < set->n_phases && ok; k++) {
        if (b->phase >= 0 && set->number[k] != (uint32_t)b->phase) continue;
        any = true;
        ok = run_phase(b, set->phases[k], set->number[k], &error);
    }
    if (b->json) printf("]}\n");
    exch_problem_set_free(set);
    fabric_free(b->fabric);
    if (!ok) return cli_fail("exchange-schedule-bench", error);
    if (!any) {
        fprintf(stderr, "ipu-stack exchange-schedule-bench: %s: no phase %d\n", path, b->phase);
        return CLI_WRONG_INPUT;
    }
    return b->failed ? CLI_CHECK_FAILED : CLI_OK;
}

int cmd_exchange_schedule_bench(int argc, char **argv) {
    struct bench b = {.phase = -1, .threads = 1};
    const GOptionEntry entries[] = {
        {"phase", 'n', 0, G_OPTION_ARG_INT, &b.phase, "Only this phase", "N"},
        {"priority", 'p', 0, G_OPTION_ARG_STRING, &b.priority, "One order instead of the portfolio",
         "NAME"},
        {"width", 'w', 0, G_OPTION_ARG_STRING, &b.width, "any, ordinary or paired", "WIDTH"},
        {"effort", 'e', 0, G_OPTION_ARG_STRING, &b.effort, "quick, normal (default) or best", "E"},
        {"threads", 't', 0, G_OPTION_ARG_INT, &b.threads, "Threads (1)", "N"},
        {"shift", 0, 0, G_OPTION_ARG_INT, &b.shift, "Move interleaved addresses", "BYTES"},
        {"seed", 's', 0, G_OPTION_ARG_INT, &b.seed, "Seed of randomised orders", "N"},
        {"json", 'j', 0, G_OPTION_ARG_NONE, &b.json, "Report as JSON", NULL},
        {"select-widths", 0, 0, G_OPTION_ARG_NONE, &b.select_widths,
         "Compare ordinary and paired widths (the default)", NULL},
        {"replay", 'r', 0, G_OPTION_ARG_NONE, &b.replay,
         "Report the replay of the schedule's recipe", NULL},
        {"pareto", 0, 0, G_OPTION_ARG_INT, &b.pareto,
         "Report up to N schedules that trade row bytes for slots", "N"},
        {"diagram", 'd', 0, G_OPTION_ARG_NONE, &b.diagram, "Draw the phase", NULL},
        {"rows", 0, 0, G_OPTION_ARG_FILENAME, &b.rows,
         "Write the rows of the phase for exchange-replay", "FILE"},
        {"relaxed", 0, 0, G_OPTION_ARG_NONE, &b.relaxed,
         "Relax label and neutral rules (unverified on hardware)", NULL},
        {"max-row-bytes", 0, 0, G_OPTION_ARG_INT, &b.max_row_bytes, "Prefer rows of at most",
         "BYTES"},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "FILE", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    const char *wrong = argc != 2 ? "give one problem file" : parse_words(&b);
    if (wrong != NULL) {
        fprintf(stderr, "ipu-stack exchange-schedule-bench: %s\n", wrong);
        return CLI_WRONG_INPUT;
    }
    GError *error = NULL;
    if (!cli_threads_set(b.threads, &error)) return cli_fail("exchange-schedule-bench", error);
    return run(&b, argv[1]);
}
