/* acceptance: runs e2e-test on one line of options and holds its report to what the line must show:
 * values, limits (the workload's own, beside them a largest error), active tiles, predicted cycles
 * within 1 %, intermediates, phases. */
#ifndef IPU_TESTS_ACCEPTANCE_H
#define IPU_TESTS_ACCEPTANCE_H

#include "cli_spawn.h"

#include <math.h>

struct acceptance {
    const char *options;
    double values;         /* checked */
    double max_error;      /* 1.5 x the published figure, or the workload's limit */
    double least_active;   /* tiles */
    gboolean intermediates; /* --diagnostic-run: all pass */
    double max_messages, max_row_bytes; /* of any phase; 0 = no limit */
};

/* The largest number behind any "key": in a report. */
static inline double acceptance_largest(const char *json, const char *key) {
    char *quoted = g_strdup_printf("\"%s\":", key);
    double most = 0;
    for (const char *at = json; (at = strstr(at, quoted)) != NULL;) {
        at += strlen(quoted);
        most = MAX(most, g_ascii_strtod(at, NULL));
    }
    g_free(quoted);
    return most;
}

static inline void acceptance_check(const struct acceptance *a) {
    char *line = g_strdup_printf("e2e-test --no-profile --json %s%s", a->options,
                                 a->intermediates ? " --diagnostic-run" : "");
    struct cli_said s = cli_run(line);
    if (s.status != 0) g_error("%s: status %d\n%s%s", line, s.status, s.out, s.err);
    g_assert_nonnull(strstr(s.out, "\"pass\":true"));
    const double predicted = cli_number(s.out, "cycles_predicted");
    const double measured = cli_number(s.out, "cycles_measured");
    const double error = cli_number(s.out, "max_abs_error");
    g_test_message("%s: %.0f cycles (%+.2f %% predicted), error %.6g, %.0f of %.0f tiles", a->options,
                   measured, 100 * (predicted / measured - 1), error,
                   cli_number(s.out, "active_tiles"), cli_number(s.out, "tiles"));
    g_assert_cmpfloat(fabs(predicted - measured), <=, 0.01 * measured);
    g_assert_cmpfloat(cli_number(s.out, "values_checked"), ==, a->values);
    g_assert_cmpfloat(cli_number(s.out, "values_failed"), ==, 0);
    g_assert_cmpfloat(error, <=, a->max_error);
    g_assert_cmpfloat(cli_number(s.out, "active_tiles"), >=, a->least_active);
    g_assert_cmpfloat(cli_number(s.out, "device_faults"), ==, 0);
    if (a->intermediates) {
        g_assert_nonnull(strstr(s.out, "\"intermediates_pass\":true"));
        g_assert_nonnull(strstr(s.out, "\"first_divergence\":null"));
    }
    if (a->max_messages > 0)
        g_assert_cmpfloat(acceptance_largest(s.out, "messages"), <=, a->max_messages);
    if (a->max_row_bytes > 0)
        g_assert_cmpfloat(cli_number(s.out, "row_bytes_max"), <=, a->max_row_bytes);
    cli_said_clear(&s);
    g_free(line);
}

#endif
