/* kernel_published: the published rows of kernels 6 that name a shape, as kernel_published.def holds
 * them, and what this library's kernels take in the part of a call that does not grow with it.
 *
 * Units: cycles from counter read to counter read of worker 0 around one call.
 */
#ifndef IPU_CLI_KERNEL_PUBLISHED_H
#define IPU_CLI_KERNEL_PUBLISHED_H

#include "cli/kernel_run.h"

struct kernel_published {
    uint32_t row, cycles;
    enum kernel_data data;
    struct kernel_spec spec;
};
const struct kernel_published *kernel_published_rows(size_t *ret_n);

/* Rows first..last stand for nothing that can be compared. */
struct kernel_left_out {
    uint32_t first, last;
    const char *reason;
};
const struct kernel_left_out *kernel_left_out_rows(size_t *ret_n);

/* Markdown table of the fits in kernel_fit.def. */
void kernel_fit_print(void);

#endif
