/* Accuracy of GELU and of softmax exponentials over all F16 inputs, by the twins
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

/* exp(scale * (s - max)) for max = 0 and every half s <= 0. */
static void print_exponential(void) {
    puts("\n## Exponentials of softmax over all halves\n\nexp(scale * (s - max)) with max = 0 and "
         "every half "
         "s <= 0, against binary64 of the same scale. EXP_PANELS forms the\nargument in F32 and "
         "rounds it "
         "once; SOFTMAX_F16 rounds the difference and its product with the scale.\n\n"
         "| scale | inputs | EXP_PANELS: max error | SOFTMAX_F16: max error "
         "|\n|---:|---:|---:|---:|");
    const uint16_t scales[] = {0x2f8a, 0x3000, 0x3c00};
    for (size_t i = 0; i < ARRAY_LEN(scales); i++) {
        const double scale = num_f16_to_f32(scales[i]);
        struct accuracy one = {0}, two = {0};
        for (uint32_t h = 0x8000; h < 0xfc00; h++) {
            const double s = num_f16_to_f32((uint16_t)h), exact = exp(scale * s);
            const uint16_t a = num_h(num_f32_round(scale * s));
            const uint16_t b = num_h_mul(scales[i] ^ 0x8000, num_h(-s));
            accuracy_add(&one, num_h(exp(num_f16_to_f32(a))), exact);
            accuracy_add(&two, num_h(exp(num_f16_to_f32(b))), exact);
        }
        printf("| %.6f | %u | %.6f | %.6f |\n", scale, one.inputs, one.absolute, two.absolute);
    }
}

void kernel_accuracy_print(void) {
    print_gelu();
    print_exponential();
}
