/* ipu-stack target: the machine constants. */
#include "cli/cli.h"
#include "target/target.h"

#include <inttypes.h>
#include <stdio.h>

int cmd_target(int argc, char **argv) {
    const GOptionEntry entries[] = {{0}};
    bool done;
    if (!cli_options(&argc, &argv, entries, "", NULL, &done)) return CLI_WRONG_INPUT;
    if (done) return CLI_OK;
    static const char *const confidence[] = {"HW", "DOC", "INFERRED", "ASSUMED"};
    size_t n;
    const struct target_constant *c = target_constants(&n);
    for (size_t i = 0; i < n; i++)
        printf("%-24s %12" PRId64 " %#10" PRIx64 "  %-10s %-9s %s\n", c[i].name, c[i].value,
               (uint64_t)c[i].value, c[i].unit, confidence[c[i].confidence], c[i].source);
    return CLI_OK;
}
