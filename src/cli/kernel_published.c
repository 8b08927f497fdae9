/* Least squares over few rows: normal equations of at most three unknowns, solved by elimination.
 */
#include "cli/kernel_published.h"

#include <math.h>
#include <stdio.h>

static const struct kernel_published published_rows[] = {
#define PUBLISHED(row, name, cycles, data, ...)                                                    \
    {row, cycles, KERNEL_DATA_##data, {KERNEL_##name, {__VA_ARGS__}}},
#define LEFT_OUT(first, last, reason)
#include "cli/kernel_published.def"
#undef PUBLISHED
#undef LEFT_OUT
};
static const struct kernel_left_out left_out[] = {
#define PUBLISHED(row, name, cycles, data, ...)
#define LEFT_OUT(first, last, reason) {first, last, reason},
#include "cli/kernel_published.def"
#undef PUBLISHED
#undef LEFT_OUT
};

const struct kernel_published *kernel_published_rows(size_t *ret_n) {
    *ret_n = ARRAY_LEN(published_rows);
    return published_rows;
}

const struct kernel_left_out *kernel_left_out_rows(size_t *ret_n) {
    *ret_n = ARRAY_LEN(left_out);
    return left_out;
}

/* --- Fits. --- */

enum fit_unit {
#define FIT_UNIT(name, text) FIT_##name,
#define FIT(...)
#include "cli/kernel_fit.def"
#undef FIT_UNIT
#undef FIT
};

static const char *const fit_texts[] = {
#define FIT_UNIT(name, text) text,
#define FIT(...)
#include "cli/kernel_fit.def"
#undef FIT_UNIT
#undef FIT
};

enum { FIT_MAX_ROWS = 8, FIT_UNKNOWNS = 3, FIT_NEAR_CYCLES = 30 };

static const struct fit {
    const char *label;
    enum fit_unit unit[FIT_UNKNOWNS - 1];
    struct kernel_spec ours;
    uint32_t twice;
    const char *reason;
    uint32_t rows[FIT_MAX_ROWS];
} fits[] = {
#define FIT_UNIT(name, text)
#define OURS(kernel, twice, ...) {KERNEL_##kernel, {__VA_ARGS__}}, twice
#define FIT(label, one, two, ours, reason, ...)                                                    \
    {label, {FIT_##one, FIT_##two}, ours, reason, {__VA_ARGS__}},
#include "cli/kernel_fit.def"
#undef FIT_UNIT
#undef FIT
#undef OURS
};

/* The published formulas' count of a unit in a call. */
static double fit_count(enum fit_unit unit, const struct kernel_spec *spec) {
    const uint32_t *p = spec->p;
    const uint32_t k = spec->kernel == KERNEL_GEMM_F8 ? 32 : 16, groups = p[1] / k * (p[2] / 16);
    switch (unit) {
    case FIT_GROUPS:
        return groups;
    case FIT_WAVES:
        return ceil_div_u32(p[1], 48);
    case FIT_WAVE_REMOTES:
        return (double)ceil_div_u32(p[1], 48) * (p[0] - 1);
    case FIT_BLOCKS:
        return ceil_div_u32(p[0], 96);
    case FIT_ROWS:
        return p[0];
    case FIT_ROW_QUADS:
        return (double)p[0] * ceil_div_u32(p[1], 24);
    case FIT_ROW_PANELS:
        return (double)p[0] * ceil_div_u32(p[1], 192);
    case FIT_ROWS_12:
        return ceil_div_u32(p[0], 12);
    case FIT_VECTORS:
        return ceil_div_u32(p[0], 48);
    case FIT_WORDS:
        return ceil_div_u32(p[0] / 8, 6);
    default:
        return 0;
    }
}

/* Gauss with the largest pivot; the matrix of a family's rows is regular. */
static void fit_solve(uint32_t n, double a[FIT_UNKNOWNS][FIT_UNKNOWNS + 1],
                      double ret[FIT_UNKNOWNS]) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t best = i;
        for (uint32_t r = i + 1; r < n; r++)
            if (fabs(a[r][i]) > fabs(a[best][i])) best = r;
        for (uint32_t c = 0; c <= n; c++) {
            const double t = a[i][c];
            a[i][c] = a[best][c];
            a[best][c] = t;
        }
        BUG_ON(fabs(a[i][i]) < 1e-9);
        for (uint32_t r = 0; r < n; r++) {
            const double f = a[r][i] / a[i][i];
            for (uint32_t c = i; r != i && c <= n; c++) a[r][c] -= f * a[i][c];
        }
    }
    for (uint32_t i = 0; i < n; i++) ret[i] = a[i][n] / a[i][i];
}

/* Constant and slopes of the published rows of f. */
static void fit_rows(const struct fit *f, double ret[FIT_UNKNOWNS]) {
    const uint32_t n = f->unit[1] == FIT_NONE ? 2 : 3;
    double a[FIT_UNKNOWNS][FIT_UNKNOWNS + 1] = {0};
    for (uint32_t k = 0; k < FIT_MAX_ROWS && f->rows[k]; k++) {
        size_t i = 0;
        while (i < ARRAY_LEN(published_rows) && published_rows[i].row != f->rows[k]) i++;
        BUG_ON(i == ARRAY_LEN(published_rows));
        const struct kernel_published *p = &published_rows[i];
        const double x[FIT_UNKNOWNS] = {1, fit_count(f->unit[0], &p->spec),
                                        fit_count(f->unit[1], &p->spec)};
        for (uint32_t r = 0; r < n; r++) {
            for (uint32_t c = 0; c < n; c++) a[r][c] += x[r] * x[c];
            a[r][n] += x[r] * p->cycles;
        }
    }
    ret[2] = 0;
    fit_solve(n, a, ret);
}

/* The sampled closed form with the parameter at one and two times its value. */
static double fit_ours(const struct fit *f) {
    struct kernel_spec spec = f->ours;
    const uint32_t n = kernel_n_registers(&spec);
    const uint64_t once = kernel_run_sampled_form(&spec, n);
    spec.p[f->twice] *= 2;
    return 2 * (double)once - (double)kernel_run_sampled_form(&spec, n);
}

void kernel_fit_print(void) {
    printf(
        "\n## Constant parts\n\nPublished cycles = constant + slope x unit, by least squares over "
        "the rows named; ours is what remains when the\nwork goes to nothing. The constant holds "
        "the two counter samples (132 cycles), the argument registers and what the workers\ndo "
        "outside of their loops. Differences of more than %d cycles have a reason.\n\n"
        "| family | rows | units | slopes | published constant | constant | difference | reason "
        "|\n|---|---|---|---|---:|---:|---:|---|\n",
        FIT_NEAR_CYCLES);
    for (size_t i = 0; i < ARRAY_LEN(fits); i++) {
        const struct fit *f = &fits[i];
        const bool two = f->unit[1] != FIT_NONE;
        double theirs[FIT_UNKNOWNS];
        fit_rows(f, theirs);
        printf("| %s | ", f->label);
        for (uint32_t k = 0; k < FIT_MAX_ROWS && f->rows[k]; k++)
            printf("%s%u", k ? ", " : "", f->rows[k]);
        printf(" | %s%s%s | %.1f", fit_texts[f->unit[0]], two ? ", " : "", fit_texts[f->unit[1]],
               theirs[1]);
        if (two) printf(", %.1f", theirs[2]);
        const double ours = fit_ours(f), difference = ours - theirs[0];
        printf(" | %.0f | %.0f | %+.0f | %s |\n", theirs[0], ours, difference,
               fabs(difference) <= FIT_NEAR_CYCLES ? "" : f->reason);
    }
    puts("\nFamilies with one published row, with random data (softmax) or with several loops in "
         "their "
         "rows (casts to panels,\nwhose loop depends on the elements) fix no constant.");
}
