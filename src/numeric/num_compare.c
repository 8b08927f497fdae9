/* Comparison reports: one pass, plain sums in binary64. */
#include "numeric/num_compare.h"

#include <math.h>
#include <string.h>

void num_report_init(struct num_report *r, double atol, double rtol) {
    *r = (struct num_report){.atol = atol, .rtol = rtol, .first_failed = UINT64_MAX};
}

static void add_one(struct num_report *r, float computed, float reference) {
    const uint64_t i = r->n_values++;
    const double c = (double)computed, w = (double)reference;
    uint32_t bits_c, bits_w;
    memcpy(&bits_c, &computed, 4);
    memcpy(&bits_w, &reference, 4);
    r->n_unequal += bits_c != bits_w;
    bool ok = false;
    double error = INFINITY;
    if (!isfinite(c)) {
        r->n_not_finite++;
    } else if (isfinite(w)) {
        error = fabs(c - w);
        ok = error <= r->atol + r->rtol * fabs(w);
        r->sum_square_error += error * error;
        r->dot += c * w;
        r->norm_computed += c * c;
        r->norm_reference += w * w;
    }
    if (i == 0 || error > r->max_abs_error) {
        r->max_abs_error = error;
        r->worst_index = i;
    }
    if (ok) return;
    r->n_failed++;
    if (r->first_failed == UINT64_MAX) r->first_failed = i;
}

void num_report_add(struct num_report *r, const float *computed, const float *reference,
                    uint64_t n) {
    for (uint64_t i = 0; i < n; i++) add_one(r, computed[i], reference[i]);
}

bool num_report_pass(const struct num_report *r) {
    return r->n_values != 0 && r->n_failed == 0;
}

double num_report_cosine(const struct num_report *r) {
    if (r->n_not_finite != 0) return (double)NAN;
    if (r->norm_computed == 0 && r->norm_reference == 0) return 1;
    if (r->norm_computed == 0 || r->norm_reference == 0) return 0;
    return r->dot / sqrt(r->norm_computed * r->norm_reference);
}

double num_report_rms(const struct num_report *r) {
    if (r->n_values == 0 || r->n_not_finite != 0) return (double)NAN;
    return sqrt(r->sum_square_error / (double)r->n_values);
}
