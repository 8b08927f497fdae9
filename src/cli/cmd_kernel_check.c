/* ipu-stack kernel-check: every kernel over a sweep of shapes, data and placements against its
 * twin. */
#include "cli/cli.h"
#include "cli/kernel_rules.h"
#include "cli/kernel_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct kernel_spec sweep[] = {
#define SWEEP(name, ...) {KERNEL_##name, {__VA_ARGS__}},
#define EVERY(name, ...)
#include "cli/kernel_sweep.def"
#undef SWEEP
#undef EVERY
};

static const struct kernel_spec every[] = {
#define SWEEP(name, ...)
#define EVERY(name, ...) {KERNEL_##name, {__VA_ARGS__}},
#include "cli/kernel_sweep.def"
#undef SWEEP
#undef EVERY
};

static const struct check_contract {
    float extreme;
    const char *excluded;
} contracts[N_KERNELS] = {
#define CONTRACT(name, extreme, excluded, text) [KERNEL_##name] = {extreme, excluded},
#include "kernel/kernel_contract.def"
#undef CONTRACT
};

/* Letters of excluded data, in the order of enum kernel_data. */
static const char data_letter[KERNEL_DATA_EVERY] = {'r', 'u', 'e', 's', 'z', 'q', 'i'};

struct check {
    uint32_t kernel, runs, wrong, stray, faults, refused;
    uint32_t classes[KERNEL_N_DATA]; /* runs by data */
    uint32_t shapes, in_place, offsets;
    bool reads; /* has an input */
    double form_error; /* largest |closed form - model| / model */
    uint32_t code_bytes;
    bool verbose;
};

static void check_report(struct check *c, const struct kernel_run *run, const char *what) {
    if (!c->verbose) return;
    fprintf(stderr, "%s", kernel_name(c->kernel));
    for (uint32_t i = 0; i < KERNEL_MAX_PARAMS && kernel_param_name(c->kernel, i); i++)
        fprintf(stderr, "%c%" PRId32, i ? ',' : ' ', (int32_t)run->spec.p[i]);
    fprintf(stderr, " (%s%s%s, offset %u): %s\n", kernel_data_name(run->options.data),
            run->options.in_place ? ", in place" : "", run->options.high ? ", interleaved" : "",
            run->options.offset, what);
}

static void check_one(struct check *c, const struct kernel_spec *spec,
                      const struct kernel_run_options *options) {
    GError *error = NULL;
    struct kernel_run *run = kernel_run_new(spec, options, &error);
    c->runs++;
    c->classes[options->data]++;
    c->in_place += options->in_place;
    c->offsets += options->offset != 0;
    if (!run) {
        c->refused++;
        fprintf(stderr, "ipu-stack kernel-check: %s\n", error->message);
        g_error_free(error);
        return;
    }
    if (run->faulted) {
        c->faults++;
        check_report(c, run, run->fault);
    } else {
        uint32_t first;
        for (uint32_t i = 0; i < run->needs.n_operands; i++) {
            if (!kernel_run_wrong(run, i, &first)) continue;
            c->wrong++;
            check_report(c, run, "differs from the twin");
        }
        if (kernel_run_stray(run, &first)) {
            c->stray++;
            check_report(c, run, "changed bytes outside of the result");
        }
        const double model = (double)run->call_cycles;
        /* Closed forms count two slots per exponential; uniform data takes one. */
        if (options->data == KERNEL_DATA_RANDOM)
            c->form_error =
                MAX(c->form_error, fabs((double)run->closed_form_cycles - model) / model);
    }
    kernel_run_free(run);
}

static void check_shape(struct check *c, const struct kernel_spec *spec) {
    struct kernel_needs needs;
    const bool valid = kernel_describe(spec, &needs, NULL);
    bool alias = false, reads = false;
    for (uint32_t i = 0; valid && i < needs.n_operands; i++) {
        alias |= needs.alias[i] != 0;
        reads |= (needs.operand[i].access & KERNEL_READ) != 0;
    }
    c->shapes++;
    c->reads |= reads;
    for (uint32_t d = 0; d < (reads ? KERNEL_DATA_EVERY : 1); d++) {
        if (strchr(contracts[c->kernel].excluded, data_letter[d])) continue;
        struct kernel_run_options options = {.data = (enum kernel_data)d,
                                             .seed = 7 + d,
                                             .extreme = contracts[c->kernel].extreme,
                                             .exact_lane = true};
        check_one(c, spec, &options);
        if (d > 0) continue;
        options.high = true;
        options.offset = 1;
        check_one(c, spec, &options);
        options.high = false;
        options.offset = 3;
        options.in_place = alias;
        check_one(c, spec, &options);
    }
    c->code_bytes = MAX(c->code_bytes, kernel_run_code_bytes(spec));
}

/* Every class that the contract does not leave out has run; without inputs there is one. */
static bool check_complete(const struct check *c) {
    for (uint32_t d = 0; d < KERNEL_DATA_EVERY; d++) {
        const bool left_out = d > 0 && (!c->reads || strchr(contracts[c->kernel].excluded, data_letter[d]));
        if ((c->classes[d] > 0) == left_out) return false;
    }
    return c->shapes > 0;
}

static void check_print_classes(const struct check *c) {
    printf("\"shapes\":%u,\"in_place\":%u,\"offset\":%u,\"data\":{", c->shapes, c->in_place,
           c->offsets);
    for (uint32_t d = 0; d < KERNEL_N_DATA; d++)
        printf("%s\"%s\":%u", d ? "," : "", kernel_data_name((enum kernel_data)d), c->classes[d]);
    printf("},\"excluded\":[");
    const char *comma = "";
    for (uint32_t d = 1; d < KERNEL_DATA_EVERY; d++) {
        if (c->classes[d]) continue;
        printf("%s\"%s\"", comma, kernel_data_name((enum kernel_data)d));
        comma = ",";
    }
    printf("],");
}

static bool check_kernel(uint32_t kernel, bool verbose, bool json, const char *comma) {
    struct check c = {.kernel = kernel, .verbose = verbose};
    BUG_ON(!contracts[kernel].excluded); /* every kernel has a row of kernel_contract.def */
    for (size_t i = 0; i < ARRAY_LEN(sweep); i++)
        if (sweep[i].kernel == kernel) check_shape(&c, &sweep[i]);
    for (size_t i = 0; i < ARRAY_LEN(every); i++) {
        const struct kernel_run_options options = {.data = KERNEL_DATA_EVERY, .seed = 7};
        if (every[i].kernel == kernel) check_one(&c, &every[i], &options);
    }
    const bool pass = check_complete(&c) && c.wrong + c.stray + c.faults + c.refused == 0 &&
                      c.form_error <= 0.005 && c.code_bytes == kernel_code_bytes(kernel);
    if (json) {
        printf("%s{\"kernel\":\"%s\",", comma, kernel_name(kernel));
        check_print_classes(&c);
        printf("\"runs\":%u,\"wrong\":%u,\"stray\":%u,\"faults\":%u,"
               "\"refused\":%u,\"closed_form_error\":%.5f,\"code_bytes\":%u,"
               "\"code_bytes_declared\":%u,\"pass\":%s}",
               c.runs, c.wrong, c.stray, c.faults, c.refused,
               c.form_error, c.code_bytes, kernel_code_bytes(kernel), pass ? "true" : "false");
    } else
        printf("%-18s %4u runs, %u wrong, %u stray, %u faults, closed form within %.3f %%, "
               "code %u bytes (declared %u): %s\n",
               kernel_name(kernel), c.runs, c.wrong, c.stray, c.faults, 100 * c.form_error,
               c.code_bytes, kernel_code_bytes(kernel), pass ? "pass" : "FAIL");
    return pass;
}

static uint64_t check_work(const struct kernel_spec *spec) {
    struct kernel_needs needs;
    return kernel_describe(spec, &needs, NULL) ? needs.cycles : 0;
}

/* Every rule of every shape of the sweep at the binding; those of the first, the last and the longest
 * shape on the model, too. */
static bool check_rules(uint32_t kernel, bool verbose, bool json, const char *comma) {
    struct kernel_rules_result r = {0};
    size_t first = ARRAY_LEN(sweep), last = 0, longest = 0;
    for (size_t i = 0; i < ARRAY_LEN(sweep); i++)
        if (sweep[i].kernel == kernel) {
            if (first == ARRAY_LEN(sweep)) first = longest = i;
            if (check_work(&sweep[i]) > check_work(&sweep[longest])) longest = i;
            last = i;
        }
    for (size_t i = first; i <= last; i++)
        if (sweep[i].kernel == kernel)
            kernel_rules_check(&sweep[i], i == first || i == last || i == longest, verbose, &r);
    const bool pass = r.forced > 0 && r.unrefused + r.unnoticed == 0 &&
                      (r.shared == 0 || r.shared_faulted > 0);
    printf(json ? "%s{\"kernel\":\"%s\",\"broken_calls\":%u,\"not_refused\":%u,\"forced\":%u,"
                  "\"faulted\":%u,\"other_results\":%u,\"harmless\":%u,\"unnoticed\":%u,\"pass\":%s}"
                : "%s%-18s %4u broken calls, %u not refused; %u forced: %u faulted, %u with other "
                  "results, %u harmless, %u unnoticed: %s\n",
           json ? comma : "", kernel_name(kernel), r.refused, r.unrefused, r.forced, r.faulted,
           r.wrong, r.harmless, r.unnoticed, json ? (pass ? "true" : "false") : (pass ? "pass" : "FAIL"));
    return pass;
}

int cmd_kernel_check(int argc, char **argv) {
    gboolean json = false, verbose = false, rules = false;
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "A JSON array", NULL},
        {"rules", 0, 0, G_OPTION_ARG_NONE, &rules,
         "Break every rule of every contract instead: the binding refuses, the model faults", NULL},
        {"verbose", 'v', 0, G_OPTION_ARG_NONE, &verbose, "Say what failed", NULL},
        {0}};
    bool done;
    if (!cli_options(
            &argc, &argv, entries, "[KERNEL]",
            "Runs each kernel on the tile model over a sweep of shapes, data and placements: "
            "results equal to the C twin, no byte outside of them changed, no fault, closed "
            "forms within 0.5 %.",
            &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    uint32_t only = N_KERNELS;
    if (argc > 1 && !kernel_find(argv[1], &only)) {
        GError *error = NULL;
        diag_set(&error, KERNEL_UNKNOWN, argv[1]);
        return cli_fail("kernel-check", error);
    }
    bool pass = true;
    const char *comma = "";
    if (json) putchar('[');
    for (uint32_t k = 0; k < N_KERNELS; k++) {
        if (only != N_KERNELS && k != only) continue;
        pass &= rules ? check_rules(k, verbose, json, comma)
                      : check_kernel(k, verbose, json, comma);
        comma = ",\n";
    }
    if (json) puts("]");
    return pass ? CLI_OK : CLI_CHECK_FAILED;
}
