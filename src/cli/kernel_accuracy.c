/* Accuracy of the tanh form of GELU and of softmax exponentials over all F16 inputs, by the twins
 * (which kernel-check holds to the kernels bit for bit), against binary64 rounded once to half. */
#include "cli/kernel_run.h"
#include "numeric/num_kernel.h"

#include <math.h>
#include <stdio.h>

static double gelu_tanh(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / G_PI) * (x + 0.044715 * x * x * x)));
}
static double gelu_erf(double x) {
    return 0.5 * x * (1 + erf(x / sqrt(2)));
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

static void print_gelu(void) {
    const double limits[] = {0, 0.125, 1, 2, 4, 8, 65504};
    puts("\n## GELU over all finite halves\n\nAgainst binary64 rounded once; steps of the half "
         "format. GELU_F16 with erf = 0 against both forms, with erf = 1 against the erf form.\n\n"
         "| from \\|x\\| | to | inputs | tanh form: max error | steps | erf form: max error | "
         "steps | erf = 1, erf form: max error | steps |\n"
         "|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    for (size_t i = 0; i + 1 < ARRAY_LEN(limits); i++) {
        struct accuracy t = {0}, e = {0}, fitted = {0};
        for (uint32_t h = 0; h < 65536; h++) {
            const double x = num_f16_to_f32((uint16_t)h);
            if (!isfinite(x) || fabs(x) < limits[i] || fabs(x) > limits[i + 1]) continue;
            const uint16_t got = num_kernel_gelu((uint16_t)h);
            accuracy_add(&t, got, gelu_tanh(x));
            accuracy_add(&e, got, gelu_erf(x));
            accuracy_add(&fitted, num_kernel_gelu_erf((uint16_t)h), gelu_erf(x));
        }
        printf("| %g | %g | %u | %.6f | %u | %.6f | %u | %.6f | %u |\n", limits[i], limits[i + 1], t.inputs,
               t.absolute, t.steps, e.absolute, e.steps, fitted.absolute, fitted.steps);
    }
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
