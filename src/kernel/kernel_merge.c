/* Merge of a block of keys into the state of streaming attention (device/merge_panels.S): rows dealt
 * round robin; 12, 24 or 29 slots per panel for the first, a further and the last block.
 * Parameters: rows, columns, first, last, maxima, scale (half bits), sum_column. */
#include "kernel/kernel_family.h"

enum { ROWS, COLUMNS, FIRST, LAST, MAXIMA, SCALE, SUM_COLUMN };

static bool merge_check_maxima(const struct kernel_spec *spec, GError **error) {
    const uint32_t *p = spec->p;
    if (!kernel_check_param(spec, MAXIMA, 0, 1, 1, error)) return false;
    if (p[MAXIMA] && (p[SCALE] == 0 || p[SCALE] >= 0x7c00))
        return kernel_refuse(spec, SCALE, "scale", "the bits of a positive finite half", error);
    if (!p[MAXIMA] && p[SCALE] != 0)
        return kernel_refuse(spec, SCALE, "scale", "0 with scaled statistics", error);
    const uint32_t limit = p[MAXIMA] && p[LAST] ? p[COLUMNS] - 1 : 0;
    return kernel_check_param(spec, SUM_COLUMN, 0, limit, 1, error);
}

static bool merge_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                           GError **error) {
    const uint32_t *p = spec->p;
    if (!kernel_check_param(spec, ROWS, 1, 2000, 1, error)) return false;
    if (!kernel_check_param(spec, COLUMNS, 16, 2048, 16, error)) return false;
    if (!kernel_check_param(spec, FIRST, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, LAST, 0, 1, 1, error)) return false;
    if (p[FIRST] && p[LAST])
        return kernel_refuse(spec, LAST, "blocks", "0 with first; one block needs NORMALISE_PANELS",
                             error);
    if (!merge_check_maxima(spec, error)) return false;
    const uint64_t n = (uint64_t)p[ROWS] * p[COLUMNS];
    const uint64_t state = 4 * (n + 4 * (uint64_t)p[ROWS]);
    if (p[LAST]) kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, state, 8,
                       p[LAST]    ? KERNEL_READ
                       : p[FIRST] ? KERNEL_WRITE
                                  : KERNEL_READ_WRITE,
                       KERNEL_MEMORY_ANY, KERNEL_F32);
    kernel_operand_add(ret, 2 * n, p[FIRST] ? 8 : 4, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, (p[MAXIMA] ? 4 : 8) * (uint64_t)p[ROWS], 4, KERNEL_READ,
                       KERNEL_MEMORY_ANY, p[MAXIMA] ? KERNEL_F16_PAIR : KERNEL_F32);
    ret->useful_work = p[FIRST] ? n / 2 : 3 * n / 2;
    return true;
}

/* Slots of set-up and of a row beside the panels, by block kind and source of the maxima. */
static const struct merge_slots {
    uint32_t setup, row, panel, idle;
} merge_slots[3][2] = {
    {{29, 12, 12, 10}, {29, 13, 12, 10}},
    {{27, 27, 24, 10}, {27, 26, 24, 10}},
    {{35, 28, 29, 10}, {45, 31, 29, 10}},
};

static uint64_t merge_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t *p = spec->p;
    const struct merge_slots *s = &merge_slots[p[LAST] ? 2 : p[FIRST] ? 0 : 1][p[MAXIMA]];
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(p[ROWS], w);
        slots[w] = rows ? s->setup + rows * (s->row + s->panel * (p[COLUMNS] / 16)) : s->idle;
    }
    return kernel_time_single(lane, 5 + p[LAST] + p[MAXIMA] * (1 + p[LAST]), slots);
}

static uint32_t merge_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const uint32_t *p = spec->p;
    ret[0] = p[ROWS];
    ret[1] = p[COLUMNS] / 16;
    ret[2] = p[SCALE];
    ret[3] = p[SUM_COLUMN];
    return 2 + p[MAXIMA] * (1 + p[LAST]);
}

static const char *merge_symbol(const struct kernel_spec *spec) {
    static const char *const names[3][2] = {
        {"merge_panels_first", "merge_panels_max_first"},
        {"merge_panels_next", "merge_panels_max_next"},
        {"merge_panels_last", "merge_panels_max_last"},
    };
    return names[spec->p[LAST] ? 2 : spec->p[FIRST] ? 0 : 1][spec->p[MAXIMA]];
}

const struct kernel_family kernel_family_MERGE_PANELS = {.describe = merge_describe,
                                                         .cycles = merge_cycles,
                                                         .scalars = merge_scalars,
                                                         .symbol = merge_symbol};
