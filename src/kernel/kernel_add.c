/* Addition and multiplication (device/add_f16.S): 3 slots per quad; with a broadcast row all
 * workers visit every row; with one half per row, 2 slots per quad and rows round robin. */
#include "kernel/kernel_family.h"

enum { DENSE, ROW, EACH }; /* the parameter broadcast */
enum { ADD_EACH = 21, ADD_EACH_ROW = 5, ADD_EACH_IDLE = 10 };
enum { ADD_SLOTS = 19, ADD_IDLE = 10, ADD_ROWS_SLOTS = 23, ADD_ROWS_ROW = 8, ADD_ROWS_IDLE = 11 };

static bool add_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    if (!kernel_check_param(spec, 0, 1, 1 << 16, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 4, 1 << 18, 4, error)) return false;
    if (!kernel_check_param(spec, 2, DENSE, EACH, 1, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    if (n > 1 << 19)
        return kernel_refuse(spec, 1, "size", "such that rows * width <= 524288", error);
    kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    const uint64_t right[] = {n, spec->p[1], spec->p[0]};
    kernel_operand_add(ret, 2 * right[spec->p[2]], spec->p[2] == EACH ? 2 : 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    ret->alias[0] = 1 << 1;
    if (!spec->p[2]) ret->alias[0] |= 1 << 2;
    ret->useful_work = n / 4;
    return true;
}

static uint64_t add_cycles_each(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = rows ? ADD_EACH + rows * (ADD_EACH_ROW + 2 * (spec->p[1] / 4)) : ADD_EACH_IDLE;
    }
    return kernel_time_single(lane, 5, slots);
}

static uint64_t add_cycles(const struct kernel_spec *spec, uint32_t lane) {
    if (spec->p[2] == EACH) return add_cycles_each(spec, lane);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t quads = kernel_share(spec->p[1] / 4 * (spec->p[2] ? 1 : spec->p[0]), w);
        if (spec->p[2])
            slots[w] = quads ? ADD_ROWS_SLOTS + spec->p[0] * (ADD_ROWS_ROW + 3 * (quads - 1))
                             : ADD_ROWS_IDLE;
        else slots[w] = quads ? ADD_SLOTS + 3 * quads : ADD_IDLE;
    }
    return kernel_time_single(lane, spec->p[2] ? 5 : 4, slots);
}

static uint32_t add_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[1] / 4 * (spec->p[2] ? 1 : spec->p[0]);
    ret[1] = spec->p[0];
    return spec->p[2] ? 2 : 1;
}

static const char *add_symbol(const struct kernel_spec *spec) {
    static const char *const names[2][3] = {{"add_f16", "add_f16_rows", "add_f16_each"},
                                            {"mul_f16", "mul_f16_rows", "mul_f16_each"}};
    return names[spec->kernel == KERNEL_MUL_F16][spec->p[2]];
}

const struct kernel_family kernel_family_ADD_F16 = {
    .describe = add_describe, .cycles = add_cycles, .scalars = add_scalars, .symbol = add_symbol};
const struct kernel_family kernel_family_MUL_F16 = {
    .describe = add_describe, .cycles = add_cycles, .scalars = add_scalars, .symbol = add_symbol};
