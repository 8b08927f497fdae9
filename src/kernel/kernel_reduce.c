/* Sums of partials (device/reduce_f16.S): vectors of 8 halves dealt round robin; per vector P + 6
 * slots: one 128-bit load and one f16v8acc per partial, four accumulator reads, two stores. */
#include "kernel/kernel_family.h"

enum { REDUCE_SLOTS = 23, REDUCE_IDLE_SLOTS = 10, REDUCE_VECTOR_SLOTS = 6, REDUCE_REGISTERS = 5 };

static bool reduce_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    if (!kernel_check_param(spec, 0, 2, 4096, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 8, 1 << 18, 8, error)) return false;
    const uint64_t run = 2 * (uint64_t)spec->p[1];
    kernel_operand_add(ret, run, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, run, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    kernel_operand_add(ret, run * (spec->p[0] - 1), 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = (uint64_t)(spec->p[0] - 1) * spec->p[1] / 4;
    return true;
}

static uint64_t reduce_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t vectors = kernel_share(spec->p[1] / 8, w);
        slots[w] = vectors ? REDUCE_SLOTS + vectors * (spec->p[0] + REDUCE_VECTOR_SLOTS)
                           : REDUCE_IDLE_SLOTS;
    }
    return kernel_time_single(lane, REDUCE_REGISTERS, slots);
}

static uint32_t reduce_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] - 1;
    ret[1] = spec->p[1] / 8;
    return 2;
}

const struct kernel_family kernel_family_REDUCE_F16 = {
    .describe = reduce_describe, .cycles = reduce_cycles, .scalars = reduce_scalars};
