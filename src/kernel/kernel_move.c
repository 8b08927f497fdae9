/* Copies and fills of 64-bit words, dealt round robin to the workers (device/copy_u64.S,
 * device/fill_u64.S). Closed forms: slots outside the loop plus 2 (copy) or 1 (fill) per word. */
#include "kernel/kernel_family.h"

enum { COPY_SLOTS = 13, FILL_SLOTS = 11, COPY_REGISTERS = 3, FILL_REGISTERS = 2 };

static uint32_t move_words(const struct kernel_spec *spec) { return spec->p[0] / 8; }

/* The workers divide words + 5 - w by six. */
static uint32_t move_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = move_words(spec) + TARGET_N_WORKERS - 1;
    return 1;
}

static bool copy_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 8, TARGET_SRAM_END - TARGET_SRAM_BASE, 8, error)) return false;
    kernel_operand_add(ret, spec->p[0], 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_RAW);
    kernel_operand_add(ret, spec->p[0], 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_RAW);
    return true;
}

static uint64_t copy_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++)
        slots[w] = COPY_SLOTS + 2 * kernel_share(move_words(spec), w);
    return kernel_time_single(lane, COPY_REGISTERS, slots);
}

static bool fill_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 8, TARGET_SRAM_END - TARGET_SRAM_BASE, 8, error)) return false;
    kernel_operand_add(ret, spec->p[0], 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_RAW);
    return true;
}

static uint64_t fill_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++)
        slots[w] = FILL_SLOTS + kernel_share(move_words(spec), w);
    return kernel_time_single(lane, FILL_REGISTERS, slots);
}

const struct kernel_family kernel_family_COPY_U64 = {
    .describe = copy_describe, .cycles = copy_cycles, .scalars = move_scalars};
const struct kernel_family kernel_family_FILL_U64 = {
    .describe = fill_describe, .cycles = fill_cycles, .scalars = move_scalars};
