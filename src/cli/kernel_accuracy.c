/* Accuracy of GELU and of softmax over all F16 inputs, by the twins
 * (which kernel-check holds to the kernels bit for bit), against binary64 rounded once to half. */
#include "cli/kernel_run.h"
#include "numeric/num_kernel.h"

#include <math.h>
#include <stdio.h>

/* Without cancellation at negative x. */
static double gelu_tanh(double x) {
    const double v = 2 * sqrt(2 / G_PI) * (x + 0.044715 * x * x * x);
    return v < 0 ? x * exp(v) / (1 + exp(v)) : x / (1 + exp(-v));
}
static double gelu_erf(double x) {
    return 0.5 * x * erfc(-x / sqrt(2));
}

/* Distance in steps of the half format, signs folded. */
static uint32_t steps_between(uint16_t a, uint16_t b) {
    const int32_t x = a & 0x8000 ? -(a & 0x7fff) : a, y = b & 0x8000 ? -(b & 0x7fff) : b;
    return (uint32_t)ABS(x - y);
}

struct accuracy {
    double absolute;
    uint32_t steps, inputs;
};

static void accuracy_add(struct accuracy *a, uint16_t got, double exact) {
    a->inputs++;
    a->absolute = MAX(a->absolute, fabs(num_f16_to_f32(got) - exact));
    a->steps = MAX(a->steps, steps_between(got, num_h(exact)));
}

/* The forms of GELU that kernels compute. */
static const struct gelu_form {
    const char *name;
    bool erf, f32, twice;
} gelu_forms[] = {
    {"tanh form in halves (GELU_F16 0, BIAS_GELU_F16, GELU_F8, REDUCE_PANELS)", false, false, false},
    {"erf form in halves (GELU_F16 3, the others with erf)", true, false, false},
    {"tanh form in F32 (GELU_F16 2)", false, true, false},
    {"erf form in F32 (GELU_F16 1)", true, true, false},
    {"tanh form in REDUCE_PANELS before its conversion to F8", false, false, true},
    {"erf form in REDUCE_PANELS before its conversion to F8", true, false, true},
};

static uint16_t gelu_of(const struct gelu_form *f, uint16_t x) {
    /* Halved exactly, but for the smallest. */
    if (f->twice) return num_h(num_f16_to_f32(num_kernel_gelu_twice(f->erf, x)) / 2);
    return f->f32 ? num_kernel_gelu_f32(f->erf, x) : num_kernel_gelu_half(f->erf, x);
}

static void print_gelu_form(const struct gelu_form *f) {
    const double limits[] = {0, 0.125, 1, 2, 4, 8, 65504};
    printf("\n### %s\n\n| from \\|x\\| | to | inputs | x > 0: max error | steps | x < 0: max error "
           "| steps |\n|---:|---:|---:|---:|---:|---:|---:|\n",
           f->name);
    for (size_t i = 0; i + 1 < ARRAY_LEN(limits); i++) {
        struct accuracy side[2] = {0};
        for (uint32_t h = 0; h < 65536; h++) {
            const double x = num_f16_to_f32((uint16_t)h);
            if (!isfinite(x) || fabs(x) < limits[i] || fabs(x) > limits[i + 1]) continue;
            accuracy_add(&side[x < 0], gelu_of(f, (uint16_t)h), f->erf ? gelu_erf(x) : gelu_tanh(x));
        }
        printf("| %g | %g | %u | %.6f | %u | %.6f | %u |\n", limits[i], limits[i + 1],
               side[0].inputs + side[1].inputs, side[0].absolute, side[0].steps, side[1].absolute,
               side[1].steps);
    }
}

static void print_gelu(void) {
    puts("\n## GELU over all finite halves\n\nAgainst the form in binary64: the largest difference, and "
         "the distance from it rounded once, in steps of the half\nformat. Rounding alone gives 0.00098 "
         "at x in 2..4.");
    for (size_t i = 0; i < ARRAY_LEN(gelu_forms); i++) print_gelu_form(&gelu_forms[i]);
}

/* --- Softmax: rows of 32 keys, the first the maximum, the others every half up to it in turn. --- */

enum { ROW_KEYS = 32 };

struct softmax_accuracy {
    struct accuracy panels, whole, probability; /* exponentials of EXP_PANELS, SOFTMAX_F16 */
};

static void softmax_row_add(struct softmax_accuracy *a, const uint16_t *keys, uint16_t scale) {
    uint16_t maximum[2] = {keys[0], keys[0]}, one[ROW_KEYS], whole[ROW_KEYS], shares[ROW_KEYS];
    float statistics[2];
    const uint32_t exp_call[8] = {1, ROW_KEYS, ROW_KEYS, scale};
    num_kernel_exp_panels(exp_call, (void *const[]){one, (void *)keys, maximum});
    num_kernel_softmax_f16(exp_call, (void *const[]){whole, statistics, (void *)keys});
    const uint32_t divide[8] = {1, ROW_KEYS, 0, 0, 0, 1};
    num_kernel_normalise_panels(divide, (void *const[]){shares, whole, statistics});
    const double factor = num_f16_to_f32(scale), max = num_f16_to_f32(keys[0]);
    double exact[ROW_KEYS], sum = 0;
    for (uint32_t k = 0; k < ROW_KEYS; k++) {
        exact[k] = exp(factor * (num_f16_to_f32(keys[k]) - max));
        sum += exact[k];
    }
    for (uint32_t k = 0; k < ROW_KEYS; k++) {
        accuracy_add(&a->panels, one[k], exact[k]);
        accuracy_add(&a->whole, whole[k], exact[k]);
        accuracy_add(&a->probability, shares[k], exact[k] / sum);
    }
}

static void print_softmax_row(uint16_t scale, uint16_t max) {
    struct softmax_accuracy a = {0};
    uint16_t keys[ROW_KEYS];
    uint32_t n = 0, inputs = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        const float s = num_f16_to_f32((uint16_t)h);
        /* A row of SOFTMAX_F16 spreads by less than 65504. */
        if (!(s <= num_f16_to_f32(max)) || num_f16_to_f32(max) - s > 65504) continue;
        if (n == 0) keys[n++] = max;
        keys[n++] = (uint16_t)h;
        inputs++;
        if (n < ROW_KEYS) continue;
        softmax_row_add(&a, keys, scale);
        n = 0;
    }
    for (; n > 0 && n < ROW_KEYS; n++) keys[n] = max;
    if (n) softmax_row_add(&a, keys, scale);
    printf("| %.6f | %g | %u | %.6f | %u | %.6f | %u | %.6f |\n", num_f16_to_f32(scale),
           num_f16_to_f32(max), inputs, a.panels.absolute, a.panels.steps, a.whole.absolute,
           a.whole.steps, a.probability.absolute);
}

static void print_softmax(void) {
    puts("\n## Softmax over all halves\n\nexp(scale * (s - max)) for every half s up to max, against "
         "binary64 of the same scale, and probabilities of\nrows of 32 such keys. EXP_PANELS forms "
         "the argument in F32 and rounds it once; SOFTMAX_F16 rounds the difference and\nits product "
         "with the scale. Steps of the half format grow with the size of the argument; rounding "
         "alone gives\n0.000244.\n\n"
         "| scale | max | inputs | EXP_PANELS: max error | steps | SOFTMAX_F16: max error | steps | "
         "probabilities: max error |\n|---:|---:|---:|---:|---:|---:|---:|---:|");
    const uint16_t scales[] = {0x2f8a, 0x3000, 0x3c00}; /* 1 / sqrt(72), 1 / 8, 1 */
    const uint16_t maxima[] = {0, 0x44cd, 0x50a3};      /* 0, 4.8, 37.1 */
    for (size_t i = 0; i < ARRAY_LEN(scales); i++)
        for (size_t k = 0; k < ARRAY_LEN(maxima); k++) print_softmax_row(scales[i], maxima[k]);
}

void kernel_accuracy_print(void) {
    print_gelu();
    print_softmax();
}
