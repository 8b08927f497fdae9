/* --gemm-plan-constraint. Fields are read left to right; what is left out is free. */
#include "plan/plan_internal.h"

#include <string.h>

static bool number(const char **p, uint32_t *ret) {
    char *end;
    const guint64 v = g_ascii_strtoull(*p, &end, 10);
    if (end == *p || v > UINT32_MAX) return false;
    *ret = (uint32_t)v;
    *p = end;
    return true;
}

static bool product(const char *text, uint32_t *values, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        if (i && *text++ != 'x') return false;
        if (!number(&text, &values[i]) || values[i] == 0) return false;
    }
    return *text == 0;
}

static bool field(const char *text, uint32_t i, struct plan_constraint *c) {
    uint32_t v[3];
    switch (i) {
    case 0:
        return number(&text, &c->op) && *text == 0;
    case 1:
        if (!product(text, v, 3)) return false;
        c->rows = v[0];
        c->columns = v[1];
        c->inner = v[2];
        return true;
    case 2:
        if (!product(text, v, 2)) return false;
        c->split_rows = v[0];
        c->split_columns = v[1];
        return true;
    case 3:
        return number(&text, &c->column_block) && *text == 0 && c->column_block % 16 == 0;
    case 4:
        c->memory = strcmp(text, "standard") == 0      ? PROGRAM_STANDARD
                    : strcmp(text, "interleaved") == 0 ? PROGRAM_INTERLEAVED
                                                       : PROGRAM_ANY;
        return c->memory != PROGRAM_ANY;
    case 5:
        c->swapped = strcmp(text, "swapped") == 0;
        return c->swapped || strcmp(text, "normal") == 0;
    case 6:
        if (g_str_has_prefix(text, "batch-")) {
            text += 6;
            uint32_t n;
            if (!number(&text, &n) || *text || n < 2 || n > INT32_MAX) return false;
            c->staging = (int32_t)n;
            return true;
        }
        c->staging = strcmp(text, "streamed") == 0;
        return c->staging || strcmp(text, "complete") == 0;
    case 7:
        c->match_remote = strcmp(text, "match-remote") == 0;
        return c->match_remote || strcmp(text, "direct") == 0;
    case 8:
        if (!g_str_has_prefix(text, "passes-")) return false;
        text += 7;
        return number(&text, &c->passes) && *text == 0 && c->passes >= 1 &&
               c->passes <= PLAN_MOST_PASSES;
    default:
        return false;
    }
}

bool plan_constraint_parse(const char *text, struct plan_constraint *ret, GError **error) {
    struct plan_constraint c = {
        .memory = PROGRAM_ANY, .swapped = -1, .staging = -1, .match_remote = -1};
    char **fields = g_strsplit(text, ":", -1);
    const uint32_t n = g_strv_length(fields);
    bool ok = n >= 2;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = (i >= 2 && fields[i][0] == 0) || field(fields[i], i, &c); /* empty: free */
    g_strfreev(fields);
    if (!ok) {
        diag_set(error, PLAN_CONSTRAINT, text);
        return false;
    }
    *ret = c;
    return true;
}
