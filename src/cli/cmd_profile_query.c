/* ipu-stack profile-query and profile-barriers: sums over a profile. */
#include "cli/cli.h"
#include "profile/profile.h"

#include <stdio.h>
#include <string.h>

struct query_options {
    char *group, *sort, *kind, *kernel, *operation, **tiles, **phases;
    gint64 at;
    gint limit, samples;
    gboolean json;
};
enum { NO_CYCLE = G_MININT };

/* Whole numbers below `end`. */
static bool parse_list(const char *option, char **texts, uint32_t end, GArray *out,
                       GError **error) {
    for (; texts != NULL && *texts != NULL; texts++) {
        char *rest;
        const guint64 v = g_ascii_strtoull(*texts, &rest, 10);
        if (!g_ascii_isdigit(**texts) || *rest != 0) {
            diag_set(error, CLI_NOT_NUMBER, option, *texts);
            return false;
        }
        if (v >= end) {
            diag_set(error, CLI_NUMBER, option, (gint64)MIN(v, G_MAXINT64), (gint64)0,
                     (gint64)end - 1);
            return false;
        }
        const uint32_t n = (uint32_t)v;
        g_array_append_val(out, n);
    }
    return true;
}

static bool make_query(const struct query_options *o, const struct profile *p, GArray *tiles,
                       GArray *steps, struct profile_query *q, GError **error) {
    *q = (struct profile_query){.kind = -1, .kernel = o->kernel, .operation = o->operation,
                                .at = o->at == NO_CYCLE ? -1 : o->at, .group = PROFILE_BY_KERNEL,
                                .limit = (uint32_t)MAX(0, o->limit),
                                .samples = (uint32_t)MAX(0, o->samples)};
    if (o->group != NULL) q->group = profile_group_find(o->group);
    if (o->sort != NULL) q->sort = profile_sort_find(o->sort);
    if (o->kind != NULL) q->kind = (int32_t)profile_kind_find(o->kind);
    if (q->group == PROFILE_N_GROUPS || q->sort == PROFILE_N_SORTS || q->kind == PROFILE_N_KINDS) {
        diag_set(error, CLI_ARGUMENTS,
                 q->group == PROFILE_N_GROUPS  ? "--group-by takes kind, kernel, operation, step, tile"
                 : q->sort == PROFILE_N_SORTS ? "--sort-by takes phase-cycles, work-cycles, "
                                                "maximum-cycles, samples, name"
                                              : "--kind takes exchange, compute, repeat");
        return false;
    }
    if (!parse_list("--tile", o->tiles, p->n_tiles, tiles, error) ||
        !parse_list("--phase", o->phases, p->n_steps, steps, error))
        return false;
    if (tiles->len != 0) q->tiles = (const uint32_t *)tiles->data;
    if (steps->len != 0) q->steps = (const uint32_t *)steps->data;
    q->n_tiles = tiles->len;
    q->n_steps = steps->len;
    return (o->at == NO_CYCLE || cli_number_check("--at-offset", o->at, 0,
                                                  (gint64)MAX(p->cycles_measured, 1) - 1, error)) &&
           profile_query_check(p, q, error);
}

static int query(const char *path, const struct query_options *o) {
    GError *error = NULL;
    struct profile *p = profile_read(path, &error);
    if (p == NULL) return cli_fail("profile-query", error);
    GArray *tiles = g_array_new(false, false, sizeof(uint32_t));
    GArray *steps = g_array_new(false, false, sizeof(uint32_t));
    struct profile_query q;
    const bool ok = make_query(o, p, tiles, steps, &q, &error);
    if (ok) {
        GString *text = g_string_new(NULL);
        if (o->json) profile_query_json(p, &q, text);
        else profile_query_print(p, &q, text);
        fputs(text->str, stdout);
        g_string_free(text, true);
    }
    g_array_free(tiles, true);
    g_array_free(steps, true);
    profile_free(p);
    return ok ? CLI_OK : cli_fail("profile-query", error);
}

int cmd_profile_query(int argc, char **argv) {
    struct query_options o = {.at = NO_CYCLE, .limit = 20};
    const GOptionEntry entries[] = {
        {"group-by", 0, 0, G_OPTION_ARG_STRING, &o.group, "kind, kernel (default), operation, step, tile",
         "KEY"},
        {"sort-by", 0, 0, G_OPTION_ARG_STRING, &o.sort,
         "phase-cycles (default), work-cycles, maximum-cycles, samples, name", "KEY"},
        {"kind", 0, 0, G_OPTION_ARG_STRING, &o.kind, "Only exchange, compute or repeat (iterations not sampled)", "KIND"},
        {"kernel", 0, 0, G_OPTION_ARG_STRING, &o.kernel, "Only this kernel", "NAME"},
        {"operation-contains", 0, 0, G_OPTION_ARG_STRING, &o.operation,
         "Only operations with this in their name", "TEXT"},
        {"tile", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.tiles, "Only this tile, may be repeated", "N"},
        {"phase", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o.phases, "Only this step, may be repeated",
         "N"},
        {"at-offset", 0, 0, G_OPTION_ARG_INT64, &o.at, "Only what runs at this cycle", "CYCLE"},
        {"limit", 0, 0, G_OPTION_ARG_INT, &o.limit, "Groups shown (default 20, 0 = all)", "N"},
        {"samples", 0, 0, G_OPTION_ARG_INT, &o.samples, "Longest intervals to list", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o.json, "One JSON object", NULL},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "PROFILE", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    int status = CLI_WRONG_INPUT;
    GError *error = NULL;
    if (argc != 2) diag_set(&error, CLI_ARGUMENTS, "give one profile");
    if (error == NULL && cli_number_check("--limit", o.limit, 0, G_MAXINT, &error) &&
        cli_number_check("--samples", o.samples, 0, G_MAXINT, &error))
        status = query(argv[1], &o);
    else status = cli_fail("profile-query", error);
    g_free(o.group);
    g_free(o.sort);
    g_free(o.kind);
    g_free(o.kernel);
    g_free(o.operation);
    g_strfreev(o.tiles);
    g_strfreev(o.phases);
    return status;
}

int cmd_profile_barriers(int argc, char **argv) {
    gboolean json = false;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "A JSON list", NULL}, {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "PROFILE", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    GError *error = NULL;
    struct profile *p = NULL;
    if (argc != 2) diag_set(&error, CLI_ARGUMENTS, "give one profile");
    else p = profile_read(argv[1], &error);
    if (p == NULL) return cli_fail("profile-barriers", error);
    GString *text = g_string_new(NULL);
    if (json) profile_barriers_json(p, text);
    else profile_barriers_print(p, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
    profile_free(p);
    return CLI_OK;
}
