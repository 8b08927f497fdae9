/* GELU (device/gelu_f16.S): quads dealt round robin, 9 slots per quad in a hardware repeat; a last
 * pair is done two-wide by the worker whose turn it is. */
#include "kernel/kernel_family.h"

enum {
    GELU_SLOTS = 33,      /* set-up, first quad, last quad's second half, exit */
    GELU_IDLE_SLOTS = 17, /* a worker without work */
    GELU_QUAD_SLOTS = 9,
    GELU_TAIL_SLOTS = 11,
    GELU_REGISTERS = 3,
};

static bool gelu_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 2, 1 << 18, 2, error)) return false;
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[0], 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[0], 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = 3 * (uint64_t)spec->p[0]; /* 12 instructions per 4 values */
    return true;
}

static uint64_t gelu_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t quads = spec->p[0] / 4;
    const bool pair = spec->p[0] % 4 != 0; /* whose turn: two slots to ask, three without a quad */
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t share = kernel_share(quads, w);
        slots[w] = GELU_IDLE_SLOTS + (pair ? 3 : 0);
        if (share) slots[w] = GELU_SLOTS + GELU_QUAD_SLOTS * (share - 1) + (pair ? 2 : 0);
        if (pair && quads % TARGET_N_WORKERS == w) slots[w] += GELU_TAIL_SLOTS;
    }
    return kernel_time_single(lane, GELU_REGISTERS, slots);
}

static uint32_t gelu_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] / 2;
    return 1;
}

const struct kernel_family kernel_family_GELU_F16 = {
    .describe = gelu_describe, .cycles = gelu_cycles, .scalars = gelu_scalars};
