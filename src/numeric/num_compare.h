/* num_compare: how far computed values are from a reference, streamed in blocks.
 *
 * In:   blocks of computed and reference values in element order, tolerances.
 * Out:  a report; fields of what was never compared are absent (n_values = 0), not zero.
 * An element passes when |error| <= atol + rtol * |reference|; a computed value that is NaN or
 * infinite never passes, nor does one whose reference is not finite. Sums are binary64, added in
 * element order, so that a report does not depend on block sizes or threads.
 */
#ifndef IPU_NUM_COMPARE_H
#define IPU_NUM_COMPARE_H

#include "base/base.h"

struct num_report {
    double atol, rtol;
    uint64_t n_values;
    uint64_t n_failed;
    uint64_t n_not_finite;   /* computed values that are NaN or infinite */
    uint64_t n_unequal;      /* values whose bits as floats differ (exact workloads; -0 != +0) */
    double max_abs_error;    /* over finite pairs; infinity when a value is not finite */
    uint64_t worst_index;    /* element of max_abs_error, or the first not finite one */
    double sum_square_error; /* rms = sqrt(sum / n) */
    double dot, norm_computed, norm_reference; /* cosine = dot / sqrt(norms) */
    uint64_t first_failed;   /* UINT64_MAX: none */
};

void num_report_init(struct num_report *r, double atol, double rtol);
/* The next n elements. */
void num_report_add(struct num_report *r, const float *computed, const float *reference, uint64_t n);
bool num_report_pass(const struct num_report *r); /* compared something, and nothing failed */
double num_report_cosine(const struct num_report *r); /* 1 when both are all zero */
double num_report_rms(const struct num_report *r);

#endif
