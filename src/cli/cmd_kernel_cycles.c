/* ipu-stack kernel-cycles: one call on the tile model, or all published rows. */
#include "cli/cli.h"
#include "cli/kernel_published.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool shape_parse(const char *name, const char *shape, struct kernel_spec *ret,
                        GError **error) {
    struct kernel_spec spec = {0};
    if (!kernel_find(name, &spec.kernel)) {
        diag_set(error, KERNEL_UNKNOWN, name);
        return false;
    }
    g_auto(GStrv) parts = g_strsplit(shape ? shape : "", ",", KERNEL_MAX_PARAMS + 1);
    const uint32_t n = g_strv_length(parts);
    for (uint32_t i = 0; i < n; i++) {
        char *end;
        const gint64 v = g_ascii_strtoll(parts[i], &end, 0);
        const bool fits = v >= INT32_MIN && v <= UINT32_MAX;
        if (i >= KERNEL_MAX_PARAMS || end == parts[i] || *end || !fits) {
            diag_set(error, KERNEL_CHECK, name, "--shape takes up to 8 numbers with commas");
            return false;
        }
        spec.p[i] = (uint32_t)v;
    }
    *ret = spec;
    return true;
}

static void print_parameters(const struct kernel_spec *spec) {
    for (uint32_t i = 0; i < KERNEL_MAX_PARAMS; i++) {
        const char *name = kernel_param_name(spec->kernel, i);
        if (name) printf(" %s=%" PRId32, name, (int32_t)spec->p[i]);
    }
}

static void print_run(const struct kernel_run *run, bool json) {
    const double useful =
        run->needs.useful_work ? (double)run->needs.useful_work / (double)run->sampled_cycles : 0;
    if (json) {
        printf("{\"kernel\":\"%s\",\"shape\":{", kernel_name(run->spec.kernel));
        const char *comma = "";
        for (uint32_t i = 0; i < KERNEL_MAX_PARAMS; i++) {
            const char *name = kernel_param_name(run->spec.kernel, i);
            if (!name) continue;
            printf("%s\"%s\":%" PRId32, comma, name, (int32_t)run->spec.p[i]);
            comma = ",";
        }
        printf("},\"measured_cycles\":%" PRIu64 ",\"call_cycles\":%" PRIu64
               ",\"closed_form_cycles\":%" PRIu64 ",\"useful\":%.4f}\n",
               run->sampled_cycles, run->call_cycles, run->closed_form_cycles, useful);
        return;
    }
    printf("%s", kernel_name(run->spec.kernel));
    print_parameters(&run->spec);
    printf("\n  measured, counter to counter  %8" PRIu64 " cycles\n", run->sampled_cycles);
    printf("  the call alone (lane %u)       %8" PRIu64 "\n", run->call_lane, run->call_cycles);
    printf("  closed form                   %8" PRIu64 "\n", run->closed_form_cycles);
    if (run->needs.useful_work) printf("  useful work                   %8.1f %%\n", 100 * useful);
}

static int cycles_one(const char *name, const char *shape, const struct kernel_run_options *options,
                      bool json) {
    struct kernel_spec spec;
    GError *error = NULL;
    if (!shape_parse(name, shape, &spec, &error)) return cli_fail("kernel-cycles", error);
    struct kernel_needs needs;
    if (options->n_addresses && kernel_describe(&spec, &needs, NULL) &&
        needs.n_operands != options->n_addresses) {
        diag_set(&error, KERNEL_CHECK, name, "--address must name every operand");
        return cli_fail("kernel-cycles", error);
    }
    struct kernel_run *run = kernel_run_new(&spec, options, &error);
    if (!run) return cli_fail("kernel-cycles", error);
    int status = CLI_OK;
    if (run->faulted) {
        fprintf(stderr, "ipu-stack kernel-cycles: %s\n", run->fault);
        status = CLI_DEVICE_FAULT;
    } else {
        print_run(run, json);
        uint32_t first = 0;
        for (uint32_t i = 0; i < run->needs.n_operands; i++) {
            const uint32_t wrong = kernel_run_wrong(run, i, &first);
            if (!wrong) continue;
            fprintf(stderr,
                    "ipu-stack kernel-cycles: operand %u: %u of %u bytes differ from the twin, "
                    "first at %u\n",
                    i, wrong, run->needs.operand[i].bytes, first);
            status = CLI_CHECK_FAILED;
        }
        const uint32_t stray = kernel_run_stray(run, &first);
        if (stray) {
            fprintf(stderr,
                    "ipu-stack kernel-cycles: %u bytes outside of the result changed, first at "
                    "0x%x\n",
                    stray, first);
            status = CLI_CHECK_FAILED;
        }
    }
    kernel_run_free(run);
    return status;
}

/* --- All published rows. --- */

static void print_shape(const struct kernel_spec *spec, bool json) {
    for (uint32_t i = 0; i < KERNEL_MAX_PARAMS && kernel_param_name(spec->kernel, i); i++)
        if (json)
            printf("%s\"%s\":%" PRId32, i ? "," : "", kernel_param_name(spec->kernel, i),
                   (int32_t)spec->p[i]);
        else printf("%s%" PRId32, i ? "/" : "", (int32_t)spec->p[i]);
}

static bool print_published(const struct kernel_published *p, bool json, const char *comma) {
    const struct kernel_run_options options = {.data = p->data, .seed = 1};
    GError *error = NULL;
    struct kernel_run *run = kernel_run_new(&p->spec, &options, &error);
    if (!run || run->faulted) {
        fprintf(stderr, "ipu-stack kernel-cycles: row %u: %s\n", p->row,
                run ? run->fault : error->message);
        g_clear_error(&error);
        kernel_run_free(run);
        return false;
    }
    const uint64_t form = kernel_run_sampled_form(&p->spec, run->n_registers);
    const double useful = (double)run->needs.useful_work / (double)run->sampled_cycles;
    if (json) {
        printf("%s{\"row\":%u,\"kernel\":\"%s\",\"shape\":{", comma, p->row,
               kernel_name(p->spec.kernel));
        print_shape(&p->spec, true);
        printf("},\"data\":\"%s\",\"published_cycles\":%u,\"measured_cycles\":%" PRIu64
               ",\"closed_form_cycles\":%" PRIu64 ",\"useful\":%.4f}",
               kernel_data_name(p->data), p->cycles, run->sampled_cycles, form, useful);
    } else {
        printf("| %u | %s | ", p->row, kernel_name(p->spec.kernel));
        print_shape(&p->spec, false);
        printf(" | %s | %u | %" PRIu64 " | %+.1f %% | %" PRIu64 " |\n", kernel_data_name(p->data),
               p->cycles, run->sampled_cycles, 100 * ((double)run->sampled_cycles / p->cycles - 1),
               form);
    }
    kernel_run_free(run);
    return true;
}

static void print_left_out(void) {
    size_t n;
    const struct kernel_left_out *l = kernel_left_out_rows(&n);
    puts("\nRows left out\n\n| rows | reason |\n|---|---|");
    for (size_t i = 0; i < n; i++)
        if (l[i].first == l[i].last) printf("| %u | %s |\n", l[i].first, l[i].reason);
        else printf("| %u-%u | %s |\n", l[i].first, l[i].last, l[i].reason);
}

static int cycles_all(bool json) {
    size_t n;
    const struct kernel_published *rows = kernel_published_rows(&n);
    bool ok = true;
    if (json) putchar('[');
    else
        puts("| row | kernel | shape | data | published | measured | difference | closed form |\n"
             "|---:|---|---|---|---:|---:|---:|---:|");
    for (size_t i = 0; i < n; i++) ok &= print_published(&rows[i], json, i ? ",\n" : "");
    if (json) puts("]");
    else print_left_out();
    return ok ? CLI_OK : CLI_DEVICE_FAULT;
}

static void docs_contracts(void) {
    static const struct {
        const char *name, *excluded, *text;
    } rows[] = {
#define CONTRACT(name, extreme, excluded, text) {#name, excluded, text},
#include "kernel/kernel_contract.def"
#undef CONTRACT
    };
    puts("\n## Infinities and NaN\n\nThe tile traps a finite result too large for a half "
         "($FP_ICTL.OFLO), unless the kernel says that it saturates.\n`kernel-check` runs every "
         "kernel on random, uniform, extreme finite and subnormal data, on zeros of both signs, "
         "and with\nNaN and infinities among its operands; what a contract leaves out is "
         "named.\n\n| kernel | left out | NaN and infinities |\n|---|---|---|");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        printf("| %s | %s | %s |\n", rows[i].name,
               *rows[i].excluded == 'i' ? "infinities" : rows[i].excluded, rows[i].text);
}

static void print_layouts(void) {
    static const struct {
        const char *from, *to, *how;
        uint32_t kernel;
    } rows[] = {
#define LAYOUT(from, to, kernel, how) {from, to, how, KERNEL_##kernel},
#include "cli/kernel_layout.def"
#undef LAYOUT
    };
    puts("\n## Layout changes\n\nR rows, C columns, K contraction; rows: row-major halves; A16, A32, "
         "A8: AMP-left panels; 16 x 16: coefficient panels,\nK first.\n\n"
         "| from | to | kernel | how |\n|---|---|---|---|");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        printf("| %s | %s | %s | %s |\n", rows[i].from, rows[i].to, kernel_name(rows[i].kernel),
               rows[i].how);
}

/* docs/kernels.md: made from kernel.def and kernel_published.def by the build. */
static int cycles_docs(void) {
    puts("# Kernels\n\nMade by `ipu-stack kernel-cycles --docs`; do not edit. What each computes, "
         "its layouts, "
         "slots and numerics\nstand at the head of its source in `device/`; rules of a call are "
         "those of "
         "`kernel_describe`. `ipu-stack kernel-check`\nholds every kernel to its C twin.\n\n"
         "| kernel | source | code bytes | parameters |\n|---|---|---:|---|");
    for (uint32_t k = 0; k < N_KERNELS; k++) {
        printf("| %s | %s | %u |", kernel_name(k), kernel_source(k), kernel_code_bytes(k));
        for (uint32_t i = 0; i < KERNEL_MAX_PARAMS && kernel_param_name(k, i); i++)
            printf("%s %s", i ? "," : "", kernel_param_name(k, i));
        puts(" |");
    }
    print_layouts();
    puts(
        "\n## Published figures\n\nCycles from counter read to counter read of worker 0 around one "
        "call, "
        "argument loads included, as the published\nones were taken; the row is that of kernels 6. "
        "Closed forms count two slots per exponential, so they are\nupper bounds for uniform "
        "scores.\n");
    const int status = cycles_all(false);
    kernel_fit_print();
    docs_contracts();
    kernel_accuracy_print();
    return status;
}

static void list_kernels(void) {
    for (uint32_t k = 0; k < N_KERNELS; k++) {
        printf("%-20s %-20s", kernel_name(k), kernel_source(k));
        for (uint32_t i = 0; i < KERNEL_MAX_PARAMS; i++)
            if (kernel_param_name(k, i)) printf("%s%s", i ? "," : "", kernel_param_name(k, i));
        putchar('\n');
    }
}

/* Addresses A,B,... of the operands in order; false after printing what is wrong. */
static bool parse_addresses(const char *text, struct kernel_run_options *o) {
    g_auto(GStrv) parts = g_strsplit(text, ",", KERNEL_MAX_OPERANDS + 1);
    o->n_addresses = g_strv_length(parts);
    for (uint32_t i = 0; i < o->n_addresses; i++) {
        char *end;
        const guint64 v = g_ascii_strtoull(parts[i], &end, 0);
        const uint32_t address = (uint32_t)MIN(v, UINT32_MAX);
        if (i >= KERNEL_MAX_OPERANDS || end == parts[i] || *end || !target_in_sram(address)) {
            fprintf(stderr,
                    "ipu-stack kernel-cycles: --address takes up to %d addresses in SRAM with "
                    "commas\n",
                    KERNEL_MAX_OPERANDS);
            return false;
        }
        o->address[i] = address;
    }
    return true;
}

int cmd_kernel_cycles(int argc, char **argv) {
    gboolean json = false, all = false, docs = false, force = false, in_place = false, high = false,
             random = false;
    gchar *shape = NULL, *address = NULL;
    const GOptionEntry entries[] = {
        {"shape", 0, 0, G_OPTION_ARG_STRING, &shape, "Parameters in the order of the list",
         "A,B,..."},
        {"json", 0, 0, G_OPTION_ARG_NONE, &json, "One JSON object", NULL},
        {"all", 0, 0, G_OPTION_ARG_NONE, &all, "All published rows beside the measured figures",
         NULL},
        {"docs", 0, 0, G_OPTION_ARG_NONE, &docs, "The text of docs/kernels.md", NULL},
        {"in-place", 0, 0, G_OPTION_ARG_NONE, &in_place, "Outputs on the inputs they may alias",
         NULL},
        {"interleaved", 0, 0, G_OPTION_ARG_NONE, &high, "Operands in the interleaved region", NULL},
        {"address", 0, 0, G_OPTION_ARG_STRING, &address, "Where the operands stand, outputs first",
         "A,B,..."},
        {"force", 0, 0, G_OPTION_ARG_NONE, &force, "Run even what the binding would refuse", NULL},
        {"random", 0, 0, G_OPTION_ARG_NONE, &random, "Random data instead of uniform", NULL},
        {0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "[KERNEL]",
                     "Without KERNEL: lists the kernels and their parameters.", &done))
        return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    if (docs) return cycles_docs();
    if (all) return cycles_all(json);
    if (argc < 2) {
        list_kernels();
        return CLI_OK;
    }
    struct kernel_run_options options = {
        .data = random ? KERNEL_DATA_RANDOM : KERNEL_DATA_UNIFORM,
        .seed = 1,
        .in_place = in_place,
        .high = high,
        .exact_lane = true,
        .force = force,
    };
    if (address && !parse_addresses(address, &options)) return CLI_WRONG_INPUT;
    const int status = cycles_one(argv[1], shape, &options, json);
    g_free(shape);
    g_free(address);
    return status;
}
