/* Packers: layout changes that are more than runs of words (device/pack_right.S, pack_f8.S). */
#include "kernel/kernel_family.h"

/* --- Transposed blocks (device/pack_right.S): rows, columns, panels, transpose. --- */

enum { PACK_SETUP = 23, PACK_PANEL = 154, PACK_STEP = 6, PACK_IDLE = 14 };

static bool pack_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 16, 8176, 16, error)) return false;
    if (!kernel_check_param(spec, 1, 16, 2032, 16, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
    const uint64_t bytes = 2 * (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, bytes, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, bytes, 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    return true;
}

/* Blocks of the inner axis: rows for coefficients, columns for the transpose. */
static uint32_t pack_inner(const struct kernel_spec *spec) {
    return spec->p[spec->p[3] ? 1 : 0] / 16;
}

/* Steps to a later outer block are walked one by one. */
static uint64_t pack_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t blocks = pack_inner(spec), panels = spec->p[0] / 16 * (spec->p[1] / 16);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t share = kernel_share(panels, w);
        const uint32_t steps = share ? (w + 6 * (share - 1)) / blocks : 0;
        slots[w] = share ? PACK_SETUP + share * PACK_PANEL + steps * PACK_STEP : PACK_IDLE;
    }
    return kernel_time_single(lane, 7, slots);
}

static uint32_t pack_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const uint32_t row = spec->p[2] ? 32 : 2 * spec->p[1], rows = 16 * row;
    const uint32_t columns = spec->p[2] ? 32 * spec->p[0] : 32;
    ret[0] = spec->p[0] / 16 * (spec->p[1] / 16);
    ret[1] = pack_inner(spec);
    ret[2] = row;
    ret[3] = spec->p[3] ? rows : columns;
    ret[4] = spec->p[3] ? columns : rows;
    return 5;
}

const struct kernel_family kernel_family_PACK_RIGHT = {
    .describe = pack_describe, .cycles = pack_cycles, .scalars = pack_scalars};

/* --- F8 panels (device/pack_f8.S): rows, columns, panels, scale, f152. --- */

/* Slots: set-up, of a column group beside 2 per row, idle worker, odd number of column groups; the
 * same when the workers share the column groups, and of finding who pads. */
enum { PACK_F8_SETUP = 37, PACK_F8_GROUP = 9, PACK_F8_IDLE = 19, PACK_F8_ODD = 2 };
enum { PACK_F8_SHARE_SETUP = 41, PACK_F8_SHARE_IDLE = 17, PACK_F8_SHARE_ODD = 9 };
enum { PACK_F8_ROW_STEP = 4104 }; /* bytes: 511 words behind the 16 of a vector */

static bool pack_f8_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                             GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 16, 1 << 16, 16, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    if (!spec->p[2] && 2 * spec->p[1] > PACK_F8_ROW_STEP)
        return kernel_refuse(spec, 1, "row step", "at most 2048 of rows", error);
    const int32_t scale = (int32_t)spec->p[3];
    if (scale < -31 || scale > 31) return kernel_refuse(spec, 3, "scale", "-31..31", error);
    if (!kernel_check_param(spec, 4, 0, 1, 1, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, (uint64_t)spec->p[0] * align_up_u32(spec->p[1], 32), 8, KERNEL_WRITE,
                       KERNEL_MEMORY_ANY, KERNEL_F8);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    ret->separate[0] = 1 << 1;
    ret->useful_work = n / 2;
    return true;
}

static uint32_t pack_f8_rows_slots(const struct kernel_spec *spec, uint32_t w) {
    const uint32_t groups = spec->p[1] / 16, rows = kernel_block(spec->p[0], w);
    if (rows == 0) return PACK_F8_IDLE;
    return PACK_F8_SETUP + groups * (2 * rows + PACK_F8_GROUP) +
           (groups & 1) * (2 * rows + PACK_F8_ODD);
}

static uint32_t pack_f8_groups_slots(const struct kernel_spec *spec, uint32_t w) {
    const uint32_t groups = spec->p[1] / 16, share = kernel_share(groups, w), rows = spec->p[0];
    if (share == 0) return PACK_F8_SHARE_IDLE;
    const bool odd = groups & 1, pads = odd && groups % TARGET_N_WORKERS == w;
    return PACK_F8_SHARE_SETUP + share * (2 * rows + PACK_F8_GROUP) +
           (odd ? PACK_F8_SHARE_ODD : 0) + (pads ? 2 * rows + 1 : 0);
}

/* Slots of the workers with the better split; true: they share the column groups. */
static bool pack_f8_split(const struct kernel_spec *spec, uint32_t ret_slots[TARGET_N_WORKERS]) {
    const uint32_t groups = spec->p[1] / 16;
    uint32_t rows_slots = 0, groups_slots = 0;
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        rows_slots = MAX(rows_slots, pack_f8_rows_slots(spec, w));
        groups_slots = MAX(groups_slots, pack_f8_groups_slots(spec, w));
    }
    const bool may = !(groups & 1) || groups > TARGET_N_WORKERS; /* who pads has a group */
    const bool share = may && groups_slots < rows_slots;
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++)
        ret_slots[w] = share ? pack_f8_groups_slots(spec, w) : pack_f8_rows_slots(spec, w);
    return share;
}

static uint64_t pack_f8_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    pack_f8_split(spec, slots);
    return kernel_time_single(lane, 8, slots);
}

static const char *pack_f8_symbol(const struct kernel_spec *spec) {
    uint32_t slots[TARGET_N_WORKERS];
    return pack_f8_split(spec, slots) ? "pack_f8_groups" : "pack_f8";
}

static uint32_t pack_f8_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 16;
    ret[2] = spec->p[2] ? 32 : 2 * spec->p[1];
    ret[3] = spec->p[2] ? 32 * spec->p[0] : 32;
    ret[4] = -spec->p[3] & 63;
    ret[5] = spec->p[4] ? 0 : 3;
    return 6;
}

const struct kernel_family kernel_family_PACK_F8 = {.describe = pack_f8_describe,
                                                    .cycles = pack_f8_cycles,
                                                    .scalars = pack_f8_scalars,
                                                    .symbol = pack_f8_symbol};

/* A single row is the same sequence in both panels. */
struct kernel_spec kernel_cast_to_panels(uint32_t rows, uint32_t columns, int32_t exponent) {
    const uint32_t e = (uint32_t)exponent;
    const struct kernel_spec specs[] = {{KERNEL_CAST_PANELS, {rows, columns, e}},
                                        {KERNEL_PACK_F8, {rows, columns, 1, e}},
                                        {KERNEL_CAST_F16_F8, {columns, e}}};
    uint32_t best = 0;
    for (uint32_t i = 1; i < (rows == 1 ? 3 : 2); i++)
        if (kernel_cycles(&specs[i]) < kernel_cycles(&specs[best])) best = i;
    return specs[best];
}
