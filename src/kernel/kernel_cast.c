/* Casts of halves to F8 (device/cast_f16_f8.S, cast_panels.S). */
#include "kernel/kernel_family.h"

enum { CAST_SLOTS = 18, CAST_IDLE = 11, CAST_PANELS_SETUP = 25, CAST_PANELS_IDLE = 13 };

static bool cast_check_scale(const struct kernel_spec *spec, uint32_t i, GError **error) {
    const int32_t scale = (int32_t)spec->p[i];
    if (scale >= -31 && scale <= 31) return true;
    return kernel_refuse(spec, i, "scale", "-31..31", error);
}

static bool cast_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 8, 1 << 18, 8, error)) return false;
    if (!cast_check_scale(spec, 1, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    const bool standard = spec->p[2] != 0;
    kernel_operand_add(ret, spec->p[0], 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F8);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[0], standard ? 8 : 16, KERNEL_READ,
                       standard ? KERNEL_MEMORY_ANY : KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    ret->useful_work = spec->p[0] / 2;
    return true;
}

static uint64_t cast_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t standard = spec->p[2];
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t vectors = kernel_share(spec->p[0] / 8, w);
        slots[w] = vectors ? CAST_SLOTS + (2 + standard) * vectors : CAST_IDLE;
    }
    return kernel_time_single(lane, 4, slots);
}

static uint32_t cast_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] / 8;
    ret[1] = -spec->p[1] & 63;
    return 2;
}

static const char *cast_symbol(const struct kernel_spec *spec) {
    return spec->p[2] ? "cast_f16_f8_std" : "cast_f16_f8_il";
}

static bool panels_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 32, 1 << 16, 32, error)) return false;
    if (!cast_check_scale(spec, 2, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F8);
    kernel_operand_add(ret, 2 * n, 32, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    ret->useful_work = n / 2;
    return true;
}

static uint64_t panels_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_block(spec->p[0], w);
        slots[w] = rows ? CAST_PANELS_SETUP + spec->p[1] / 16 * (4 * rows + 6) : CAST_PANELS_IDLE;
    }
    return kernel_time_single(lane, 5, slots);
}

static uint32_t panels_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 16;
    ret[2] = -spec->p[2] & 63;
    return 3;
}

const struct kernel_family kernel_family_CAST_F16_F8 = {.describe = cast_describe,
                                                        .cycles = cast_cycles,
                                                        .scalars = cast_scalars,
                                                        .symbol = cast_symbol};
const struct kernel_family kernel_family_CAST_PANELS = {
    .describe = panels_describe, .cycles = panels_cycles, .scalars = panels_scalars};
