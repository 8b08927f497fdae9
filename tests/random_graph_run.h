/* random_graph_run: one random graph through every stage and on the strict device model.
 *
 * Checks: the graph's text form reads back to itself, the graph and its program verify, the
 * program's text form reads back, it plans, lowers, fits, runs without a fault, its cycles are as
 * predicted, and every output is right: against FP32, where
 *   |device - FP32| <= 2^-7 (largest |FP32|) + 4 (largest |device precision - FP32|);
 * the second term is the noise that rounding every stored value to F16 makes in this very graph (a
 * norm of nearly equal values amplifies it). With F8 operands the noise is larger than the bound
 * should be, so these are held to the reference at device precision instead:
 *   |device - device precision| <= 2^-6 (largest |FP32|) + (largest |device precision - FP32|).
 * A value that depends on a cast to F8 may be one step of that format off where an operand lies near
 * a rounding border: 1/8 or 1/4 of the largest value more. Wrong elements differ by about that. */
#ifndef IPU_TEST_RANDOM_GRAPH_RUN_H
#define IPU_TEST_RANDOM_GRAPH_RUN_H

#include "random_graph.h"

#include "compile/compile.h"
#include "exchange/exch.h"
#include "lower/lower.h"
#include "numeric/num_format.h"
#include "plan/plan.h"
#include "runtime/runtime.h"

#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

struct rgr_stats {
    uint32_t n_runs, n_ops[GRAPH_N_OPS];
    double worst;       /* error over its bound */
    double worst_cycles; /* |predicted - measured| / measured */
};

static GString *rgr_why; /* of the last failure */

static bool rgr_fail(const char *format, ...) G_GNUC_PRINTF(1, 2);
static bool rgr_fail(const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_string_vprintf(rgr_why, format, args);
    va_end(args);
    return false;
}

static bool rgr_error(const char *what, GError *error) {
    rgr_fail("%s: %s", what, error ? error->message : "no error given");
    g_clear_error(&error);
    return false;
}

static bool rgr_graph_text(const struct graph *g) {
    GError *error = NULL;
    if (!graph_verify(g, &error)) return rgr_error("graph", error);
    GString *a = g_string_new(NULL), *b = g_string_new(NULL);
    graph_print(g, a);
    struct graph *h = graph_parse(a->str, "text", &error);
    if (h) graph_print(h, b);
    const bool same = strcmp(a->str, b->str) == 0;
    if (h) graph_free(h);
    g_string_free(a, TRUE);
    g_string_free(b, TRUE);
    if (error) return rgr_error("graph text", error);
    return same || rgr_fail("the graph's text form differs when read back");
}

static bool rgr_program_text(const struct program *p) {
    GError *error = NULL;
    if (!program_verify(p, &error)) return rgr_error("program", error);
    GString *a = g_string_new(NULL), *b = g_string_new(NULL);
    program_print(p, a);
    struct program *q = program_parse(a->str, "text", &error);
    if (q) program_print(q, b);
    const bool same = strcmp(a->str, b->str) == 0;
    if (q) program_free(q);
    g_string_free(a, TRUE);
    g_string_free(b, TRUE);
    if (error) return rgr_error("program text", error);
    return same || rgr_fail("the program's text form differs when read back");
}

static struct plan_options rgr_options(const struct rg_recipe *r) {
    struct plan_options o;
    plan_options_defaults(&o);
    o.n_tiles = r->tiles;
    o.inputs_once = r->options & 1;
    o.candidates = 1 + (r->options >> 1) % 8;
    o.fp8 = (r->options >> 8) % 5 == 0;
    o.fp8_exponent = -5;
    return o;
}

static bool rgr_too_large; /* the last failure: the graph does not fit these tiles */

static bool rgr_compile(const struct program *p, struct package **ret) {
    GError *error = NULL;
    struct tile_graph *tg = NULL;
    if (!lower_program(p, NULL, &tg, &error)) return rgr_error("lower", error);
    char *message = NULL;
    if (!tg_verify(tg, &message)) return rgr_fail("tile graph: %s", message);
    const struct compile_options c = {.effort = EXCH_EFFORT_QUICK};
    struct compile_result x = {0};
    const bool ok = compile_tile_graph(tg, &c, &x, &error);
    tile_graph_free(tg);
    if (!ok) return rgr_error("compile", error);
    *ret = g_steal_pointer(&x.package);
    rgr_too_large = *ret == NULL;
    if (*ret == NULL) rgr_fail("does not fit: %s", x.report);
    compile_result_free(&x);
    return *ret != NULL;
}

static void rgr_encode(const struct package_binding *b, const float *v, uint64_t n, uint8_t *to) {
    for (uint64_t i = 0; i < n; i++) {
        const uint16_t half = num_f16_from_f32(v[i]);
        const uint32_t word = (uint32_t)v[i];
        if (b->format == TG_F16) memcpy(to + 2 * i, &half, 2);
        else if (b->format == TG_U32) memcpy(to + 4 * i, &word, 4);
        else to[i] = num_f8_from_f32(v[i], NUM_F143, b->scale);
    }
}

static bool rgr_set_all(const struct graph *g, struct session *s) {
    const struct package *p = session_package(s);
    GError *error = NULL;
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        if (b->kind != TG_BIND_INPUT && b->kind != TG_BIND_PARAMETER) continue;
        const struct graph_value *v = &g->values[graph_find_value(g, b->name)];
        const uint64_t n = package_binding_elements(b);
        float *data = g_new(float, n);
        uint8_t *bytes = g_malloc(b->data_bytes);
        for (uint64_t k = 0; k < n; k++) data[k] = graph_fill_element(v, 1, k);
        rgr_encode(b, data, n, bytes);
        const bool ok = session_set(s, b->name, bytes, b->data_bytes, &error);
        g_free(data);
        g_free(bytes);
        if (!ok) return rgr_error("set", error);
    }
    return true;
}

struct rgr_output {
    const float *got, *device, *full;
    uint64_t n;
    bool f8;
    double step; /* of the casts that it depends on */
};

/* Largest step, relative to a value, of the F8 formats that a value is cast to on its way. */
static double rgr_step(const struct graph *g, uint32_t value) {
    const struct graph_value *v = &g->values[value];
    if (v->kind != GRAPH_RESULT) return 0;
    const struct graph_op *op = &g->ops[v->op];
    double step = 0;
    if (op->kind == GRAPH_CAST && op->attrs.format == GRAPH_F8_F143) step = 0.125;
    if (op->kind == GRAPH_CAST && op->attrs.format == GRAPH_F8_F152) step = 0.25;
    for (uint32_t i = 0; i < op->n_operands; i++) step = MAX(step, rgr_step(g, op->operands[i]));
    return step;
}

static bool rgr_compare(const char *name, const struct rgr_output *x, struct rgr_stats *stats) {
    double largest = 0, noise = 0;
    for (uint64_t k = 0; k < x->n; k++) {
        largest = MAX(largest, fabs((double)x->full[k]));
        noise = MAX(noise, fabs((double)x->full[k] - (double)x->device[k]));
    }
    const double bound = x->step * largest +
                         (x->f8 ? ldexp(largest, -6) + noise : ldexp(largest, -7) + 4 * noise);
    for (uint64_t k = 0; k < x->n; k++) {
        const float want = x->f8 ? x->device[k] : x->full[k];
        const double error = fabs((double)x->got[k] - (double)want);
        if (!(error <= bound + 1e-6))
            return rgr_fail("%s[%" G_GUINT64_FORMAT "] is %g, not %g; the bound is %g", name, k,
                            (double)x->got[k], (double)want, bound);
        if (bound > 0) stats->worst = MAX(stats->worst, error / bound);
    }
    return true;
}

static struct reference *rgr_reference(const struct graph *g, const struct plan_result *plan) {
    struct reference_fill fill = {g, 1};
    const struct reference_options o = {.precision = plan ? &plan->precision : NULL,
                                        .source = reference_fill_source,
                                        .source_user = &fill};
    GError *error = NULL;
    struct reference *r = reference_run(g, &o, &error);
    if (r == NULL) rgr_error("reference", error);
    return r;
}

static bool rgr_outputs(const struct graph *g, const struct plan_result *plan, bool f8,
                        struct session *s, struct rgr_stats *stats) {
    struct reference *device = rgr_reference(g, plan), *full = rgr_reference(g, NULL);
    bool ok = device && full;
    for (uint32_t i = 0; ok && i < g->n_outputs; i++) {
        const uint32_t value = g->outputs[i].value;
        const uint64_t n = graph_shape_elements(&g->values[value].shape);
        GError *error = NULL;
        uint16_t *halves = g_new(uint16_t, n);
        float *got = g_new(float, n);
        if (!session_get(s, g->values[value].name, halves, 2 * n, &error))
            ok = rgr_error("get", error);
        num_f16_to_f32_n(n, halves, got);
        const struct rgr_output x = {got, reference_value(device, value),
                                     reference_value(full, value), n, f8,
                                     rgr_step(g, value)};
        ok = ok && rgr_compare(g->values[value].name, &x, stats);
        g_free(halves);
        g_free(got);
    }
    reference_free(device);
    reference_free(full);
    return ok;
}

/* In small programs the data have their part: exponentials of zero take half the time, and a row's
 * largest score is one, so a call on few keys may be 100 cycles faster than its closed form. */
static bool rgr_cycles(const struct package *p, const struct session *s, struct rgr_stats *stats) {
    enum { SLACK_CYCLES = 400 };
    uint64_t measured = 0;
    if (!session_cycles(s, &measured)) return rgr_fail("no cycles were measured");
    const double off = fabs((double)p->meta.cycles_predicted - (double)measured);
    if (measured > 10000) stats->worst_cycles = MAX(stats->worst_cycles, off / (double)measured);
    return off <= 0.03 * (double)measured + SLACK_CYCLES ||
           rgr_fail("%" G_GUINT64_FORMAT " cycles predicted, %" G_GUINT64_FORMAT " measured",
                    p->meta.cycles_predicted, measured);
}

static bool rgr_run_package(const struct graph *g, const struct plan_result *plan, bool f8,
                            const struct package *p, struct rgr_stats *stats) {
    const struct device_options o = {.n_tiles = p->meta.n_tiles, .marks = true};
    struct session *s = NULL;
    GError *error = NULL;
    if (!session_open(device_model(), p, &o, &s, &error)) return rgr_error("open", error);
    bool ok = rgr_set_all(g, s);
    if (ok && !session_run(s, &error)) ok = rgr_error("run", error);
    ok = ok && rgr_outputs(g, plan, f8, s, stats) && rgr_cycles(p, s, stats);
    session_close(s);
    return ok;
}

static bool rgr_run_on(const struct graph *g, const struct plan_options *o,
                       struct rgr_stats *stats) {
    GError *error = NULL;
    struct plan_result plan = {0};
    if (!rgr_graph_text(g)) return false;
    const enum plan_status status = plan_graph(g, o, &plan, &error);
    if (status == PLAN_ERROR) return rgr_error("plan", error);
    rgr_too_large = status == PLAN_INFEASIBLE;
    if (rgr_too_large) return rgr_fail("plan: %s does not fit", plan.infeasible.operation);
    struct package *p = NULL;
    const bool ok = rgr_program_text(plan.program) && rgr_compile(plan.program, &p) &&
                    rgr_run_package(g, &plan, o->fp8, p, stats);
    if (p) package_free(p);
    program_free(plan.program);
    return ok;
}

/* Small heads are padded: some graphs do not fit a tile or two. Every one fits 64. */
static bool rgr_run_graph(const struct graph *g, const struct plan_options *o,
                          struct rgr_stats *stats) {
    rgr_too_large = false;
    if (rgr_run_on(g, o, stats)) return true;
    if (!rgr_too_large || o->n_tiles >= 64) return false;
    struct plan_options more = *o;
    more.n_tiles = 64;
    return rgr_run_on(g, &more, stats);
}

/* Our own bugs abort; a random test reports them like any failure. One thread only. */
static sigjmp_buf rgr_back;
static void rgr_abort(int signal_number) {
    siglongjmp(rgr_back, signal_number);
}

/* True if it passes; the reason of a failure is in rgr_why. */
static bool rgr_run(const struct rg_recipe *recipe, struct rgr_stats *stats) {
    if (rgr_why == NULL) rgr_why = g_string_new(NULL);
    struct graph *volatile g = NULL;
    volatile bool ok = false;
    signal(SIGABRT, rgr_abort);
    signal(SIGSEGV, rgr_abort);
    signal(SIGTRAP, rgr_abort);
    if (sigsetjmp(rgr_back, 1) == 0) {
        g = rg_graph(recipe);
        const struct plan_options o = rgr_options(recipe);
        ok = rgr_run_graph(g, &o, stats);
        stats->n_runs++;
        for (uint32_t i = 0; i < g->n_ops; i++) stats->n_ops[g->ops[i].kind]++;
    } else {
        rgr_fail("stopped by a check of the program (see above)");
    }
    signal(SIGABRT, SIG_DFL);
    signal(SIGSEGV, SIG_DFL);
    signal(SIGTRAP, SIG_DFL);
    if (g) graph_free(g);
    return ok;
}

static bool rgr_fails(const struct rg_recipe *r, void *user) {
    return !rgr_run(r, user);
}

static void rgr_report(uint64_t seed, const struct rg_recipe *r) {
    enum { ROUNDS = 12 };
    struct rgr_stats unused = {0};
    const struct rg_recipe small = rg_shrink(*r, rgr_fails, &unused, ROUNDS);
    rgr_run(&small, &unused);
    struct graph *g = rg_graph(&small);
    GString *text = g_string_new(NULL);
    graph_print(g, text);
    const struct plan_options o = rgr_options(&small);
    g_printerr("SEED=%" G_GUINT64_FORMAT " fails: %s\nsmallest graph that fails (tiles %u, "
               "inputs_once %u, candidates %u, fp8 %u):\n%s",
               seed, rgr_why->str, o.n_tiles, o.inputs_once, o.candidates, o.fp8, text->str);
    g_string_free(text, TRUE);
    graph_free(g);
}

/* Seeds first .. first + n - 1; SEED=x runs one alone. Every kind of operation must come up. */
static void rgr_test(uint64_t first, uint32_t n) {
    const char *one = g_getenv("SEED");
    if (one) {
        first = g_ascii_strtoull(one, NULL, 10);
        n = 1;
    }
    par_set_threads(1);
    struct rgr_stats stats = {0};
    uint32_t failed = 0;
    for (uint64_t seed = first; seed < first + n && failed < 3; seed++) {
        const struct rg_recipe r = rg_recipe(seed);
        if (rgr_run(&r, &stats)) continue;
        failed++;
        rgr_report(seed, &r);
    }
    g_test_message("%u graphs, largest error %.2f of its bound, largest miss of %.2f %% above 10000 "
                   "cycles", stats.n_runs, stats.worst, 100 * stats.worst_cycles);
    for (uint32_t i = 0; i < GRAPH_N_OPS; i++)
        g_test_message("%s: %u", graph_op_text(i), stats.n_ops[i]);
    g_assert_cmpuint(failed, ==, 0);
    for (uint32_t i = 0; n >= 400 && i < GRAPH_N_OPS; i++) g_assert_cmpuint(stats.n_ops[i], >=, 5);
}

#endif
