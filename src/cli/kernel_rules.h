/* kernel_rules: breaks every rule of a call's contract in turn, for kernel-check --rules.
 *
 * In:   a valid call; force: also run the broken calls on the tile model, with the race detector.
 * Out:  counts, added to *result. What does not behave goes to stderr with verbose.
 */
#ifndef IPU_CLI_KERNEL_RULES_H
#define IPU_CLI_KERNEL_RULES_H

#include "kernel/kernel.h"

struct kernel_rules_result {
    uint32_t refused;   /* broken calls given to the binding ... */
    uint32_t unrefused; /* ... and those it did not refuse under the rule's name */
    uint32_t forced;    /* broken calls run on the model ... */
    uint32_t faulted, wrong; /* ... with a fault, with other results than the twin */
    uint32_t harmless;       /* ... overlapping or sharing an element, with the twin's results all the same */
    uint32_t unnoticed;      /* ... with none of these, or not run */
    uint32_t shared, shared_faulted; /* of the forced ones those that share an element */
};

void kernel_rules_check(const struct kernel_spec *spec, bool force, bool verbose,
                        struct kernel_rules_result *result);

#endif
