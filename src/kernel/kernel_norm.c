/* Layer normalisation of whole rows (device/norm_f16.S). Few rows: six workers share every row, two
 * launches per row; otherwise a worker per row in one launch. */
#include "kernel/kernel_family.h"

enum {
    NORM_SETUP = 34,      /* once per worker, with the exit */
    NORM_ROW = 51,        /* per row beside 36 per panel */
    NORM_IDLE = 19,
    SPLIT_MOMENTS = 59,   /* beside 8 per panel */
    SPLIT_APPLY = 117,    /* beside 28 per panel */
};

static bool norm_is_split(const struct kernel_spec *spec) {
    return spec->p[0] < 4 && spec->p[1] / 16 >= TARGET_N_WORKERS;
}

static bool norm_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 16, 1 << 14, 16, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    if (spec->p[2] && spec->p[0] > 1000)
        return kernel_refuse(spec, 0, "shape", "at most 1000 in panels", error);
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = 3 * n;
    return true;
}

static uint64_t norm_cycles_split(uint32_t rows, uint32_t panels, uint32_t lane) {
    uint32_t moments[TARGET_N_WORKERS], apply[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t share = kernel_block(panels, w);
        moments[w] = SPLIT_MOMENTS + 8 * share;
        apply[w] = SPLIT_APPLY + 28 * share;
    }
    struct kernel_time t;
    kernel_time_begin(&t, lane);
    kernel_time_issue_n(&t, TARGET_SUP_STORE_ADDRESS_CYCLES + 4 * TARGET_SUP_STORE_CYCLES + 1);
    for (uint32_t i = 0; i < rows; i++) {
        kernel_time_issue_n(&t, 2 * TARGET_SUP_STORE_CYCLES);
        kernel_time_runall(&t, moments);
        kernel_time_issue_n(&t, 2);
        kernel_time_sync(&t);
        kernel_time_runall(&t, apply);
        kernel_time_sync(&t);
        kernel_time_issue(&t, i + 1 < rows ? TARGET_SUP_BRANCH_CYCLES : 1);
    }
    kernel_time_issue(&t, 1);
    return kernel_time_end(&t, lane);
}

static uint64_t norm_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t panels = spec->p[1] / 16;
    if (norm_is_split(spec)) return norm_cycles_split(spec->p[0], panels, lane);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = rows ? NORM_SETUP + rows * (NORM_ROW + 36 * panels) : NORM_IDLE;
    }
    return kernel_time_single(lane, 8, slots);
}

static uint32_t norm_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 16;
    ret[2] = spec->p[2] ? 32 : 2 * spec->p[1];
    ret[3] = spec->p[2] ? 32 * spec->p[0] : 32;
    return 4;
}

static const char *norm_symbol(const struct kernel_spec *spec) {
    return norm_is_split(spec) ? "norm_f16_split" : "norm_f16";
}

const struct kernel_family kernel_family_NORM_F16 = {.describe = norm_describe,
                                                     .cycles = norm_cycles,
                                                     .scalars = norm_scalars,
                                                     .symbol = norm_symbol};
