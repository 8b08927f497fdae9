/* ipu-stack e2e-test: a network through every stage, run on the device model, compared with the
 * references, reported. The package goes through its file: what runs is what was read back. */
#include "cli/cli.h"
#include "cli/cli_net.h"
#include "model/model.h"
#include "numeric/num_compare.h"
#include "profile/profile.h"
#include "reference/reference.h"
#include "runtime/diagnostic.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct e2e {
    struct cli_net net;
    char *package, *profile, *page, *input, *atol, *rtol;
    gboolean no_profile, fp32, json, permissive, races, plain;
    /* Results. */
    struct cli_built built;
    uint64_t input_bytes, input_bytes_once; /* payload written by the host: with replicas, without */
    uint64_t cycles_once; /* predicted, inputs stored once; 0 = not asked or does not fit */
    struct session *session;
    struct tensor_file *tensors; /* of --input */
    struct diagnostic *diagnostic; /* --diagnostic-run */
    struct reference *reference;   /* at device precision, when it ran before the device */
    double run_seconds;
    uint64_t cycles_measured;
    struct device_counters counters;
    struct num_report device, full; /* against device precision, against FP32 */
    bool have_full, exact, pass;
    double bound; /* of a single product with the user's tensors; 0 = none */
};

static int fail(GError *error) {
    return cli_fail("e2e-test", error);
}

/* --- Contents: random, or the user's --- */

struct source {
    const struct e2e *e;
    float **values; /* [graph values] of the user's tensors, else NULL */
};

static void source_values(void *user, uint32_t value, uint64_t first, uint64_t n, float *ret) {
    const struct source *s = user;
    if (s->values[value] != NULL) {
        memcpy(ret, s->values[value] + first, n * sizeof *ret);
        return;
    }
    struct reference_fill fill = {.graph = s->e->net.graph, .seed = (uint64_t)s->e->net.seed};
    reference_fill_source(&fill, value, first, n, ret);
}

static struct source source_new(struct e2e *e, GError **error) {
    struct source s = {.e = e, .values = g_new0(float *, e->net.graph->n_values + 1)};
    if (e->tensors == NULL) return s;
    const struct package *p = e->built.package;
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        if (b->kind == TG_BIND_OUTPUT || b->kind == TG_BIND_RESULT) continue;
        if (b->kind == TG_BIND_PARAMETER && tensor_file_find(e->tensors, b->name) == NULL) continue;
        float *v = cli_tensor_values(e->tensors, b, error);
        if (v == NULL) return s;
        s.values[graph_find_value(e->net.graph, b->name)] = v;
    }
    return s;
}

static void source_clear(struct source *s) {
    for (uint32_t i = 0; i < s->e->net.graph->n_values; i++) g_free(s->values[i]);
    g_free(s->values);
}

static bool set_inputs(struct e2e *e, GError **error) {
    enum { INPUTS = 1 << TG_BIND_INPUT, PARAMETERS = 1 << TG_BIND_PARAMETER };
    if (e->input != NULL)
        return cli_tensors_set(e->session, e->input, INPUTS | PARAMETERS, INPUTS, error);
    const struct package *p = session_package(e->session);
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        if (b->kind != TG_BIND_INPUT) continue;
        uint8_t *data = cli_net_fill(&e->net, graph_find_value(e->net.graph, b->name), b, error);
        ok = data != NULL && session_set(e->session, b->name, data, b->data_bytes, error);
        g_free(data);
    }
    return ok;
}

/* --- Comparison --- */

struct compare {
    struct num_report *report;
    const struct package_binding *b;
    const float *reference;
};

enum { COMPARE_BLOCK = 1 << 16 };

static void compare_block(const void *data, uint64_t first, uint64_t n, void *user) {
    const struct compare *c = user;
    float *v = g_new(float, n);
    cli_decode(c->b, data, n, v);
    num_report_add(c->report, v, c->reference + first, n);
    g_free(v);
}

static bool compare_outputs(struct e2e *e, const struct reference *r, struct num_report *report,
                            GError **error) {
    const struct graph *g = e->net.graph;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const char *name = g->values[g->outputs[i].value].name;
        const struct package_binding *b = package_binding_find(session_package(e->session), name);
        if (b == NULL) {
            diag_set(error, CLI_OUTPUT_LIMIT, name);
            return false;
        }
        struct compare c = {.report = report, .b = b,
                            .reference = reference_value(r, g->outputs[i].value)};
        BUG_ON(c.reference == NULL);
        if (!session_stream(e->session, name, COMPARE_BLOCK, compare_block, &c, error)) return false;
    }
    return true;
}

static bool limit_option(const char *option, const char *text, double *ret, GError **error) {
    if (text == NULL) return true;
    char *end;
    const double v = g_ascii_strtod(text, &end);
    if (end == text || *end != 0 || !(v >= 0 && v <= DBL_MAX)) {
        diag_set(error, CLI_NOT_LIMIT, option, text);
        return false;
    }
    *ret = v;
    return true;
}

static double largest(const float *v, uint64_t n) {
    double m = 0;
    for (uint64_t i = 0; i < n; i++) m = MAX(m, fabs((double)v[i]));
    return m;
}

/* One product of the user's tensors: 2^-10 sqrt(K) max|a| max|b|. */
static double product_bound(const struct e2e *e, const struct source *s) {
    const struct graph *g = e->net.graph;
    if (e->tensors == NULL || g->n_ops != 1 || g->ops[0].kind != GRAPH_GEMM) return 0;
    double bound = ldexp(1, -10);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t value = g->ops[0].operands[i];
        const struct graph_shape *shape = &g->values[value].shape;
        if (s->values[value] == NULL) return 0;
        bound *= largest(s->values[value], graph_shape_elements(shape));
    }
    const struct graph_value *left = &g->values[g->ops[0].operands[0]];
    const uint32_t axis = left->shape.n_dims - (g->ops[0].attrs.transpose_left ? 2 : 1);
    return bound * sqrt((double)left->shape.dim[axis]);
}

static struct reference *run_reference(struct e2e *e, struct source *s, bool device_precision,
                                       GError **error) {
    struct reference_options o = {.precision = device_precision ? &e->built.precision : NULL,
                                  .source = source_values, .source_user = s};
    if (device_precision && e->diagnostic != NULL) {
        o.visit = diagnostic_visit;
        o.visit_user = e->diagnostic;
    }
    return reference_run(e->net.graph, &o, error);
}

/* What an element must satisfy: the workload's limits, those of a single product of the user's
 * tensors, or the options'. */
static bool take_limits(struct e2e *e, const struct source *s, GError **error) {
    const struct graph_output *out = &e->net.graph->outputs[0];
    double atol = out->atol, rtol = out->rtol;
    e->bound = product_bound(e, s);
    if (e->bound > 0) {
        atol = e->bound;
        rtol = 0;
    }
    if (!limit_option("--diagnostic-atol", e->atol, &atol, error) ||
        !limit_option("--diagnostic-rtol", e->rtol, &rtol, error))
        return false;
    num_report_init(&e->device, atol, rtol);
    num_report_init(&e->full, atol, rtol);
    return true;
}

static bool source_and_limits(struct e2e *e, struct source *ret, GError **error) {
    GError *failed = NULL;
    *ret = source_new(e, &failed);
    if (failed != NULL) g_propagate_error(error, failed);
    return failed == NULL && take_limits(e, ret, error);
}

/* The results that the tiles are compared with while they run. */
static bool prepare_diagnostic(struct e2e *e, GError **error) {
    cli_stage("running the reference");
    struct source s;
    bool ok = source_and_limits(e, &s, error);
    if (ok) {
        const struct diagnostic_options o = {.functions = device_model(),
                                             .package = e->built.package, .graph = e->net.graph,
                                             .atol = e->device.atol, .rtol = e->device.rtol};
        e->diagnostic = diagnostic_new(&o);
        e->reference = run_reference(e, &s, true, error);
        ok = e->reference != NULL;
    }
    source_clear(&s);
    return ok;
}

static bool check(struct e2e *e, GError **error) {
    const struct graph_output *out = &e->net.graph->outputs[0];
    struct source s;
    bool ok = source_and_limits(e, &s, error);
    if (ok && e->reference == NULL) e->reference = run_reference(e, &s, true, error);
    ok = ok && e->reference != NULL && compare_outputs(e, e->reference, &e->device, error);
    if (ok && e->fp32) {
        struct reference *r = run_reference(e, &s, false, error);
        ok = r != NULL && compare_outputs(e, r, &e->full, error);
        reference_free(r);
        e->have_full = ok;
    }
    source_clear(&s);
    e->exact = out->exact && e->tensors == NULL;
    e->pass = num_report_pass(&e->device) && (!e->exact || e->device.n_unequal == 0) &&
              (out->rms <= 0 || num_report_rms(&e->device) <= out->rms) &&
              (e->diagnostic == NULL || diagnostic_pass(e->diagnostic));
    return ok;
}

/* --- Report --- */

static void json_double(const char *key, bool have, double v, GString *out) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (!have || !isfinite(v)) g_string_append_printf(out, ",\"%s\":null", key);
    else g_string_append_printf(out, ",\"%s\":%s", key, g_ascii_formatd(text, sizeof text, "%.9g", v));
}

/* --- Host inputs --- */

static void count_inputs(struct e2e *e) {
    const struct package *p = e->built.package;
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        if (b->kind != TG_BIND_INPUT) continue;
        e->input_bytes_once += b->data_bytes;
        for (uint32_t k = b->first_slice; k < b->end_slice; k++) {
            uint64_t n = package_format_bytes(b->format);
            for (uint32_t d = 0; d < p->slices[k].n_dims; d++) n *= p->slices[k].count[d];
            e->input_bytes += n;
        }
    }
}

/* Networks without a repeat, isolated benchmarks, may have their inputs written in any layout,
 * replicas included: the second figure is what they cost when every element is written once. */
static bool compile_once(struct e2e *e, GError **error) {
    if (e->net.inputs_once || e->net.graph->n_blocks > 1 || e->input_bytes <= e->input_bytes_once)
        return true;
    cli_stage("compiling with inputs stored once");
    struct cli_net n = e->net;
    n.inputs_once = true;
    struct cli_built b;
    if (!cli_net_compile(&n, &b, error)) return false;
    if (b.package != NULL) e->cycles_once = b.package->meta.cycles_predicted;
    cli_built_clear(&b);
    return true;
}

static uint64_t phase_transfers(const struct package *p, uint32_t *ret_largest) {
    uint64_t n = 0;
    *ret_largest = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kind != TG_EXCHANGE) continue;
        n += p->steps[i].messages;
        *ret_largest = MAX(*ret_largest, p->steps[i].messages);
    }
    return n;
}

static void json_phases(const struct package *p, GString *s) {
    const char *separator = "";
    g_string_append(s, ",\"phases\":[");
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (p->steps[i].kind != TG_EXCHANGE) continue;
        g_string_append_printf(s, "%s{\"step\":%u,\"operation\":", separator, i);
        json_string(p->names[p->steps[i].operation], s);
        g_string_append(s, ",\"reason\":");
        json_string(p->names[p->steps[i].reason], s);
        package_phase_json(&p->steps[i], s);
        g_string_append_c(s, '}');
        separator = ",";
    }
    g_string_append_c(s, ']');
}

/* Exchange rows on the tile with most, and how they are shared. */
static void json_rows(const struct compile_rows *r, GString *s) {
    g_string_append_printf(s, ",\"rows\":{\"bytes\":%u,\"bytes_unshared\":%u,\"bytes_estimated\":%u,"
                              "\"bytes_reserved\":%u,\"stored\":%u,\"shared\":%u,\"by_bases\":%u,"
                              "\"patched\":%u}",
                           r->stored, r->unshared, r->estimated, r->reserved, r->n_stored, r->n_shared,
                           r->n_based, r->n_patched);
}

static void print_json(const struct e2e *e) {
    const struct package *p = session_package(e->session);
    GString *s = g_string_new(NULL);
    g_string_append(s, "{\"workload\":");
    json_string(p->meta.workload, s);
    g_string_append_printf(
        s, ",\"tiles\":%u,\"active_tiles\":%u,\"cycles_predicted\":%" G_GUINT64_FORMAT,
        p->meta.n_tiles, p->meta.n_active_tiles, p->meta.cycles_predicted);
    const char *measured = p->meta.samples ? "cycles_sampled" : "cycles_measured";
    const char *other = p->meta.samples ? "cycles_measured" : "cycles_sampled";
    g_string_append_printf(s, ",\"%s\":%" G_GUINT64_FORMAT ",\"%s\":null", measured,
                           e->cycles_measured, other);
    g_string_append_printf(s, ",\"exchange_cycles\":%" G_GUINT64_FORMAT,
                           e->counters.exchange_cycles);
    json_double("max_abs_error", true, e->device.max_abs_error, s);
    json_double("cosine", true, num_report_cosine(&e->device), s);
    json_double("rms_error", true, num_report_rms(&e->device), s);
    json_double("max_abs_error_fp32", e->have_full, e->full.max_abs_error, s);
    json_double("cosine_fp32", e->have_full, num_report_cosine(&e->full), s);
    g_string_append_printf(s, ",\"worst_index\":%" G_GUINT64_FORMAT ",\"values_checked\":%"
                              G_GUINT64_FORMAT ",\"values_failed\":%" G_GUINT64_FORMAT
                              ",\"values_unequal\":%" G_GUINT64_FORMAT ",\"pass\":%s",
                           e->device.worst_index, e->device.n_values, e->device.n_failed,
                           e->device.n_unequal, e->pass ? "true" : "false");
    json_double("atol", true, e->device.atol, s);
    json_double("rtol", true, e->device.rtol, s);
    json_double("compile_seconds", true, e->built.seconds, s);
    json_double("run_seconds", true, e->run_seconds, s);
    g_string_append_printf(s, ",\"peak_tile_bytes\":%u,\"row_bytes_max\":%u,\"package_bytes\":%"
                              G_GUINT64_FORMAT ",\"worker_slots\":%" G_GUINT64_FORMAT ",\"fused_slots\":%" G_GUINT64_FORMAT
                              ",\"loop_slots\":%" G_GUINT64_FORMAT
                              ",\"device_faults\":%" G_GUINT64_FORMAT,
                           p->meta.peak_tile_bytes, p->meta.row_bytes_max, p->file_bytes,
                           e->counters.worker_slots, e->counters.fused_slots, e->counters.loop_slots,
                           e->counters.faults);
    json_rows(&e->built.rows, s);
    g_string_append_printf(s, ",\"input_bytes\":%" G_GUINT64_FORMAT
                              ",\"input_bytes_once\":%" G_GUINT64_FORMAT,
                           e->input_bytes, e->input_bytes_once);
    json_double("cycles_predicted_inputs_once", e->cycles_once != 0, (double)e->cycles_once, s);
    json_phases(p, s);
    if (e->diagnostic != NULL) diagnostic_json(e->diagnostic, s);
    g_string_append_c(s, '}');
    puts(s->str);
    g_string_free(s, true);
}

static void print_phases(const struct package *p) {
    uint32_t largest;
    const uint64_t messages = phase_transfers(p, &largest);
    printf("phases     %" G_GUINT64_FORMAT " messages, at most %u in a phase\n", messages, largest);
    printf("           step transfers messages      words endpoint    bound  horizon row bytes on tile "
           " operation\n");
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct package_step *s = &p->steps[i];
        if (s->kind != TG_EXCHANGE) continue;
        printf("           %4u %9u %8u %10" G_GUINT64_FORMAT " %8u %8u %8u %9u %7u  %s, %s\n", i,
               s->transfers, s->messages, s->words, s->endpoint_bound, s->bound, s->horizon,
               s->row_bytes_max, s->row_bytes_tile, p->names[s->operation], p->names[s->reason]);
    }
}

static void print_shapes(const struct package *p) {
    static const char *const kind[] = {"input", "output", "parameter"};
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        printf("  %-20s %s %s [", b->name, kind[b->kind], package_format_name(b->format));
        for (uint32_t d = 0; d < b->n_dims; d++) printf("%s%u", d != 0 ? ", " : "", b->shape[d]);
        printf("]\n");
    }
}

static void print_check(const struct e2e *e) {
    const struct num_report *r = &e->device;
    printf("check      %s: %" G_GUINT64_FORMAT " values, %" G_GUINT64_FORMAT " failed",
           e->pass ? "pass" : "FAIL", r->n_values, r->n_failed);
    if (e->exact) printf(", %" G_GUINT64_FORMAT " unequal (all must be equal)", r->n_unequal);
    printf("\n           largest error %.6g at element %" G_GUINT64_FORMAT ", cosine %.9f, against "
           "the reference at device precision\n",
           r->max_abs_error, r->worst_index, num_report_cosine(r));
    printf("           limit %.6g + %.6g |reference|%s\n", r->atol, r->rtol,
           e->bound > 0 ? " (2^-10 sqrt(K) max|a| max|b|)" : "");
    if (e->have_full)
        printf("           largest error %.6g, cosine %.9f, against FP32\n", e->full.max_abs_error,
               num_report_cosine(&e->full));
}

static void print_report(const struct e2e *e, const struct profile *profile) {
    const struct package *p = session_package(e->session);
    printf("workload   %s on %u tiles, %u active\n", p->meta.workload, p->meta.n_tiles,
           p->meta.n_active_tiles);
    print_shapes(p);
    printf("plan       %s\n%s", e->built.rank == 0 ? "best" : "a later one; better ones do not fit",
           e->built.plan);
    const double off = e->cycles_measured == 0 ? 0
                                               : 100 * ((double)p->meta.cycles_predicted /
                                                            (double)e->cycles_measured - 1);
    printf("cycles     %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT " predicted (%+.2f %%)\n",
           e->cycles_measured, p->meta.samples ? "with sampling" : "measured",
           p->meta.cycles_predicted, off);
    if (p->meta.samples && e->net.graph->n_blocks > 1)
        printf("sampling   steps in a repeat are sampled in their last iteration only\n");
    printf("inputs     %" G_GUINT64_FORMAT " B written by the host, %" G_GUINT64_FORMAT
           " B without replicas",
           e->input_bytes, e->input_bytes_once);
    if (e->cycles_once != 0)
        printf("; stored once: %" G_GUINT64_FORMAT " cycles predicted", e->cycles_once);
    printf("\n");
    printf("exchange   %" G_GUINT64_FORMAT " cycles in %" G_GUINT64_FORMAT " phases\n",
           e->counters.exchange_cycles, e->counters.phases);
    print_phases(p);
    if (profile != NULL) {
        struct profile_shares s;
        profile_shares(profile, &s);
        printf("tile time  compute %.1f %%, exchange %.1f %%, waiting %.1f %%\n", 100 * s.compute,
               100 * s.exchange, 100 * s.wait);
    }
    print_check(e);
    if (e->diagnostic != NULL) {
        GString *text = g_string_new(NULL);
        diagnostic_print(e->diagnostic, text);
        fputs(text->str, stdout);
        g_string_free(text, true);
    }
    printf("memory     %u B on the tightest tile (%u), rows up to %u B, package %" G_GUINT64_FORMAT
           " B\n",
           p->meta.peak_tile_bytes, p->meta.peak_tile, p->meta.row_bytes_max, p->file_bytes);
    printf("time       compiled in %.2f s, ran in %.2f s (%.1f million worker slots per second, "
           "%.1f %% fused, %.1f %% in loops)\n",
           e->built.seconds, e->run_seconds,
           (double)e->counters.worker_slots / 1e6 / MAX(1e-6, e->run_seconds),
           100.0 * (double)e->counters.fused_slots / (double)MAX(1, e->counters.worker_slots),
           100.0 * (double)e->counters.loop_slots / (double)MAX(1, e->counters.worker_slots));
    printf("shortcut   tensors were written to and read from tile memory directly, not through the "
           "host exchange\n");
    if (e->counters.faults != 0)
        printf("faults     %" G_GUINT64_FORMAT " counted, not stopped at\n", e->counters.faults);
}

/* --- Stages --- */

static int infeasible(const struct e2e *e) {
    if (e->json) printf("%s\n", e->built.report_json);
    fputs(e->built.report, stderr);
    return CLI_INFEASIBLE;
}

/* Writes the package and takes back what is in the file. */
static bool through_file(struct e2e *e, GError **error) {
    char *path = e->package;
    char *temporary = NULL;
    if (path == NULL) {
        const int fd = g_file_open_tmp("ipu-stack-XXXXXX.ipuexe", &temporary, error);
        if (fd < 0) return false;
        close(fd);
        path = temporary;
    }
    bool ok = package_write(e->built.package, path, NULL, error);
    package_free(e->built.package);
    e->built.package = ok ? package_read(path, error) : NULL;
    if (temporary != NULL) unlink(temporary);
    g_free(temporary);
    return e->built.package != NULL;
}

static bool run_model(struct e2e *e, GError **error) {
    cli_stage("running on the device model");
    const gint64 start = g_get_monotonic_time();
    const bool ok = session_run(e->session, error);
    e->run_seconds = (double)(g_get_monotonic_time() - start) / 1e6;
    session_functions(e->session)->counters(session_device(e->session), &e->counters);
    return ok && session_cycles(e->session, &e->cycles_measured);
}

static int device_fault(const struct e2e *e, GError *error) {
    GString *text = g_string_new(NULL);
    session_fault_print(e->session, text);
    fputs(text->str, stderr);
    if (e->json) {
        g_string_assign(text, "{\"fault\":");
        session_fault_json(e->session, text);
        printf("%s}\n", text->str);
    }
    g_string_free(text, true);
    g_error_free(error);
    return CLI_DEVICE_FAULT;
}

static int finish(struct e2e *e) {
    GError *error = NULL;
    struct profile *profile = NULL;
    cli_stage("comparing with the reference");
    bool ok = check(e, &error);
    ok = ok && compile_once(e, &error);
    if (ok && !e->no_profile) ok = (profile = profile_from_session(e->session, &error)) != NULL;
    if (ok && e->profile != NULL) ok = profile_write(profile, e->profile, &error);
    if (ok && e->page != NULL) ok = profile_page_write(profile, e->page, &error);
    if (ok && e->json) print_json(e);
    else if (ok) print_report(e, profile);
    if (ok && !e->json && e->page != NULL) printf("page       %s\n", e->page);
    profile_free(profile);
    if (!ok) return fail(error);
    return e->pass ? CLI_OK : CLI_CHECK_FAILED;
}

static int run_e2e(struct e2e *e) {
    GError *error = NULL;
    if (!cli_net_build(&e->net, &error)) return fail(error);
    if (e->input != NULL && !tensor_file_open(e->input, &e->tensors, &error)) return fail(error);
    if (!cli_net_compile(&e->net, &e->built, &error)) return fail(error);
    if (e->built.package == NULL) return infeasible(e);
    count_inputs(e);
    if (!cli_net_parameters(&e->net, e->built.package, &error) || !through_file(e, &error))
        return fail(error);
    struct device_options o = {.n_tiles = e->built.package->meta.n_tiles, .marks = true,
                               .permissive = e->permissive, .races = e->races, .plain = e->plain};
    if (e->net.diagnostic && !prepare_diagnostic(e, &error)) return fail(error);
    if (e->net.diagnostic) {
        o.seen = diagnostic_seen;
        o.seen_user = e->diagnostic;
    }
    if (!session_open(device_model(), e->built.package, &o, &e->session, &error) ||
        !set_inputs(e, &error))
        return fail(error);
    if (!run_model(e, &error)) return device_fault(e, error);
    return finish(e);
}

int cmd_e2e_test(int argc, char **argv) {
    struct e2e e = {0};
    cli_net_defaults(&e.net);
    const GOptionEntry own[] = {
        {"package", 0, 0, G_OPTION_ARG_FILENAME, &e.package, "Keep the package here", "FILE"},
        {"profile-output", 0, 0, G_OPTION_ARG_FILENAME, &e.profile, "Profile to write", "FILE"},
        {"page", 0, 0, G_OPTION_ARG_FILENAME, &e.page, "Profile page to write", "FILE"},
        {"no-profile", 0, 0, G_OPTION_ARG_NONE, &e.no_profile, "Make no profile", NULL},
        {"input", 0, 0, G_OPTION_ARG_FILENAME, &e.input,
         "Inputs and parameters from a safetensors file", "FILE"},
        {"diagnostic-atol", 0, 0, G_OPTION_ARG_STRING, &e.atol, "Absolute limit", "X"},
        {"diagnostic-rtol", 0, 0, G_OPTION_ARG_STRING, &e.rtol, "Relative limit", "X"},
        {"diagnostic-run", 0, 0, G_OPTION_ARG_NONE, &e.net.diagnostic,
         "Compare every intermediate value where it is stored when it is complete", NULL},
        {"reference-fp32", 0, 0, G_OPTION_ARG_NONE, &e.fp32, "Compare with FP32 as well", NULL},
        {"permissive", 0, 0, G_OPTION_ARG_NONE, &e.permissive,
         "Count device faults where execution can go on", NULL},
        {"races", 0, 0, G_OPTION_ARG_NONE, &e.races, "Word-exact race detector", NULL},
        {"plain", 0, 0, G_OPTION_ARG_NONE, &e.plain, "No fused loops in the tiles", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &e.json, "One JSON object", NULL},
        {0}};
    GOptionEntry *entries = cli_net_entries(&e.net, own);
    bool done;
    int status = CLI_WRONG_INPUT;
    GError *error = NULL;
    if (cli_options(&argc, &argv, entries, "", NULL, &done)) {
        if (done) {
            status = CLI_OK;
        } else if (argc != 1 || (e.no_profile && (e.profile != NULL || e.page != NULL))) {
            diag_set(&error, CLI_ARGUMENTS,
                     argc != 1 ? "no arguments are taken besides options"
                               : "--no-profile excludes --profile-output and --page");
            status = fail(error);
        } else {
            status = run_e2e(&e);
        }
    }
    session_close(e.session);
    diagnostic_free(e.diagnostic);
    reference_free(e.reference);
    cli_built_clear(&e.built);
    tensor_file_free(e.tensors);
    cli_net_clear(&e.net);
    g_free(entries);
    g_free(e.package);
    g_free(e.profile);
    g_free(e.page);
    g_free(e.input);
    g_free(e.atol);
    g_free(e.rtol);
    return status;
}
