/* ipu-stack run: a package on the device model, with tensors from files. */
#include "cli/cli.h"
#include "cli/cli_net.h"
#include "profile/profile.h"
#include "runtime/diagnostic.h"

#include <stdio.h>

struct run_options {
    char *input, *output, *parameters, *profile, *results;
    struct diagnostic *diagnostic; /* with results */
    gboolean json, permissive, races, plain;
    gint threads;
    gint64 max_cycles; /* 0 = none */
};

enum { INPUTS = 1 << TG_BIND_INPUT, PARAMETERS = 1 << TG_BIND_PARAMETER };

static bool give_tensors(struct session *s, const struct run_options *o, GError **error) {
    if (o->parameters != NULL &&
        !cli_tensors_set(s, o->parameters, PARAMETERS, PARAMETERS, error))
        return false;
    if (o->input != NULL && !cli_tensors_set(s, o->input, INPUTS | PARAMETERS, INPUTS, error))
        return false;
    return session_ready(s, error);
}

static bool take_results(struct session *s, const struct run_options *o, GError **error) {
    if (o->output != NULL && !cli_tensors_write(s, o->output, error)) return false;
    if (o->results != NULL &&
        !cli_results_write(o->diagnostic, session_package(s), o->results, error))
        return false;
    if (o->profile == NULL) return true;
    struct profile *p = profile_from_session(s, error);
    if (p == NULL) return false;
    const bool ok = profile_write(p, o->profile, error);
    profile_free(p);
    return ok;
}

static void print_run(const struct session *s, double seconds, bool json) {
    const struct package *p = session_package(s);
    struct device_counters c;
    uint64_t cycles = 0;
    session_functions(s)->counters(session_device(s), &c);
    session_cycles(s, &cycles);
    GString *name = g_string_new(NULL);
    json_string(p->meta.workload, name);
    if (json)
        printf("{\"workload\":%s,\"tiles\":%u,\"cycles_predicted\":%" G_GUINT64_FORMAT
               ",\"cycles_measured\":%" G_GUINT64_FORMAT ",\"exchange_cycles\":%" G_GUINT64_FORMAT
               ",\"faults\":%" G_GUINT64_FORMAT ",\"run_seconds\":%.3f}\n",
               name->str, p->meta.n_tiles, p->meta.cycles_predicted, cycles, c.exchange_cycles,
               c.faults, seconds);
    else
        printf("%s on %u tiles: %" G_GUINT64_FORMAT " cycles, %" G_GUINT64_FORMAT
               " predicted; exchange %" G_GUINT64_FORMAT " cycles; tensors went through the memory "
               "shortcut; %.2f s\n",
               p->meta.workload, p->meta.n_tiles, cycles, p->meta.cycles_predicted,
               c.exchange_cycles, seconds);
    g_string_free(name, true);
}

static int run_session(struct session *s, const struct run_options *o) {
    GError *error = NULL;
    if (!give_tensors(s, o, &error)) return cli_fail("run", error);
    cli_stage("running on the device model");
    const gint64 start = g_get_monotonic_time();
    if (!session_run(s, &error)) {
        GString *text = g_string_new(NULL);
        session_fault_print(s, text);
        fputs(text->str, stderr);
        if (o->json) {
            g_string_assign(text, "{\"fault\":");
            session_fault_json(s, text);
            printf("%s}\n", text->str);
        }
        g_string_free(text, true);
        g_error_free(error);
        return CLI_DEVICE_FAULT;
    }
    const double seconds = (double)(g_get_monotonic_time() - start) / 1e6;
    if (!take_results(s, o, &error)) return cli_fail("run", error);
    print_run(s, seconds, o->json);
    return CLI_OK;
}

/* Without a graph: the values are kept as they are completed. */
static bool prepare_diagnostic(const char *path, const struct package *p, struct run_options *o,
                               struct device_options *device, GError **error) {
    if (o->results == NULL) return true;
    const struct diagnostic_options d = {.functions = device_model(), .package = p};
    const struct diagnostic_entry *e;
    o->diagnostic = diagnostic_new(&d);
    device->seen = diagnostic_seen;
    device->seen_user = o->diagnostic;
    if (diagnostic_entries(o->diagnostic, &e) != 0) return true;
    diag_set(error, CLI_NO_RESULTS, path);
    return false;
}

static int run_package(const char *path, struct run_options *o) {
    GError *error = NULL;
    if (!cli_threads_set(o->threads, &error) ||
        !cli_number_check("--max-cycles", o->max_cycles, 0, INT64_MAX, &error))
        return cli_fail("run", error);
    struct package *p = package_read(path, &error);
    if (p == NULL) return cli_fail("run", error);
    struct device_options device = {.n_tiles = p->meta.n_tiles, .permissive = o->permissive,
                                    .races = o->races, .plain = o->plain, .marks = true,
                                    .max_cycles = (uint64_t)o->max_cycles};
    struct session *s = NULL;
    const int status = prepare_diagnostic(path, p, o, &device, &error) &&
                               session_open(device_model(), p, &device, &s, &error)
                           ? run_session(s, o)
                           : cli_fail("run", error);
    session_close(s);
    diagnostic_free(o->diagnostic);
    package_free(p);
    return status;
}

int cmd_run(int argc, char **argv) {
    struct run_options o = {0};
    const GOptionEntry entries[] = {
        {"input", 0, 0, G_OPTION_ARG_FILENAME, &o.input, "Input tensors (safetensors)", "FILE"},
        {"output", 0, 0, G_OPTION_ARG_FILENAME, &o.output, "Output tensors to write", "FILE"},
        {"diagnostic-output", 0, 0, G_OPTION_ARG_FILENAME, &o.results,
         "Every intermediate value (of packages compiled with --diagnostic-run)", "FILE"},
        {"parameters", 0, 0, G_OPTION_ARG_FILENAME, &o.parameters, "Values of all parameters",
         "FILE"},
        {"profile-output", 0, 0, G_OPTION_ARG_FILENAME, &o.profile, "Profile to write", "FILE"},
        {"permissive", 0, 0, G_OPTION_ARG_NONE, &o.permissive,
         "Count faults where execution can go on", NULL},
        {"races", 0, 0, G_OPTION_ARG_NONE, &o.races, "Word-exact race detector", NULL},
        {"plain", 0, 0, G_OPTION_ARG_NONE, &o.plain, "No fused loops in the tiles", NULL},
        {"max-cycles", 0, 0, G_OPTION_ARG_INT64, &o.max_cycles,
         "Stop there and say where every context is (0: never)", "N"},
        {"threads", 0, 0, G_OPTION_ARG_INT, &o.threads, "Threads (default: one per core)", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &o.json, "One JSON object", NULL},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "PACKAGE", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    int status;
    if (argc != 2) {
        GError *error = NULL;
        diag_set(&error, CLI_ARGUMENTS, "give one package");
        status = cli_fail("run", error);
    } else {
        status = run_package(argv[1], &o);
    }
    g_free(o.input);
    g_free(o.output);
    g_free(o.parameters);
    g_free(o.profile);
    g_free(o.results);
    return status;
}
