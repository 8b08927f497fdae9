/* Copies and fills of 64-bit words, dealt round robin to the workers (device/copy_u64.S,
 * device/fill_u64.S). Closed forms: slots outside the loop plus 2 (copy) or 1 (fill) per word. */
#include "kernel/kernel_family.h"

#include <string.h>

enum {
    COPY_SLOTS = 13,
    PACE_SLOTS = 20,
    PACE_IDLE = 13,
    FILL_SLOTS = 11,
    COPY_REGISTERS = 3,
    FILL_REGISTERS = 2
};

static uint32_t move_words(const struct kernel_spec *spec) {
    return spec->p[0] / 8;
}

/* The workers divide words + 5 - w by six. */
static uint32_t move_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = move_words(spec) + TARGET_N_WORKERS - 1;
    return 1;
}

static bool copy_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 8, TARGET_SRAM_END - TARGET_SRAM_BASE, 8, error)) return false;
    if (!kernel_check_param(spec, 1, 0, 1, 1, error)) return false;
    kernel_operand_add(ret, spec->p[0], 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_RAW);
    kernel_operand_add(ret, spec->p[0], 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_RAW);
    if (spec->p[1]) ret->separate[0] = 1 << 1;
    return true;
}

static uint64_t copy_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t words = kernel_share(move_words(spec), w);
        if (spec->p[1]) slots[w] = words ? PACE_SLOTS + words : PACE_IDLE;
        else slots[w] = COPY_SLOTS + 2 * words;
    }
    return kernel_time_single(lane, COPY_REGISTERS, slots);
}

static const char *copy_symbol(const struct kernel_spec *spec) {
    return spec->p[1] ? "copy_u64_pace" : "copy_u64";
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

const struct kernel_family kernel_family_COPY_U64 = {.describe = copy_describe,
                                                     .cycles = copy_cycles,
                                                     .scalars = move_scalars,
                                                     .symbol = copy_symbol};
const struct kernel_family kernel_family_FILL_U64 = {
    .describe = fill_describe, .cycles = fill_cycles, .scalars = move_scalars};

/* --- Strided copies (device/copy_strided.S): rows, bytes, in_row, out_row, outer, in_outer,
 * out_outer, pad. --- */

enum { STRIDED_SETUP = 35, STRIDED_PAD = 6, STRIDED_OUTER = 6, STRIDED_ROW = 4, STRIDED_IDLE = 13 };

/* Bytes of a word. */
static uint32_t strided_word(const struct kernel_spec *spec) {
    return spec->kernel == KERNEL_COPY_U32 ? 4 : 8;
}

static uint64_t strided_extent(const struct kernel_spec *spec, uint32_t row, uint32_t outer) {
    return (uint64_t)(spec->p[4] - 1) * outer + (uint64_t)(spec->p[0] - 1) * row + spec->p[1];
}

static bool strided_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                             GError **error) {
    const uint32_t whole = TARGET_SRAM_END - TARGET_SRAM_BASE, word = strided_word(spec);
    if (!kernel_check_param(spec, 0, 1, 8191, 1, error)) return false;
    if (!kernel_check_param(spec, 1, word, 127 * word, word, error)) return false;
    if (!kernel_check_param(spec, 2, 0, whole, word, error)) return false;
    if (!kernel_check_param(spec, 3, 0, whole, word, error)) return false;
    if (!kernel_check_param(spec, 4, 1, 0xffff, 1, error)) return false;
    if (!kernel_check_param(spec, 5, 0, whole, word, error)) return false;
    if (!kernel_check_param(spec, 6, 0, whole, word, error)) return false;
    if (!kernel_check_param(spec, 7, 0, 15 * word, word, error)) return false;
    const uint64_t out = strided_extent(spec, spec->p[3], spec->p[6]) + spec->p[7];
    const uint64_t in = strided_extent(spec, spec->p[2], spec->p[5]);
    if (out > whole || in > whole)
        return kernel_refuse(spec, 0, "size", "such that both fit", error);
    kernel_operand_add(ret, out, word, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_RAW);
    kernel_operand_add(ret, in, word, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_RAW);
    return true;
}

static uint64_t strided_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t word = strided_word(spec), pad = spec->p[7] / word;
    const uint32_t row = STRIDED_ROW + 2 * (spec->p[1] / word) + (pad ? 1 + pad : 0);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = rows ? STRIDED_SETUP + (pad ? STRIDED_PAD : 0) +
                              spec->p[4] * (STRIDED_OUTER + rows * row)
                        : STRIDED_IDLE;
    }
    return kernel_time_single(lane, 8, slots);
}

static uint32_t strided_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const uint32_t word = strided_word(spec);
    ret[0] = spec->p[0] | spec->p[1] / word << 13;
    ret[1] = spec->p[2];
    ret[2] = spec->p[3];
    ret[3] = spec->p[4] | spec->p[7] / word << 16;
    ret[4] = spec->p[5];
    ret[5] = spec->p[6];
    return 6;
}

static const char *strided_symbol(const struct kernel_spec *spec) {
    if (spec->kernel == KERNEL_COPY_U32)
        return spec->p[7] ? "copy_strided_u32_pad" : "copy_strided_u32";
    return spec->p[7] ? "copy_strided_pad" : "copy_strided";
}

const struct kernel_family kernel_family_COPY_U32 = {.describe = strided_describe,
                                                     .cycles = strided_cycles,
                                                     .scalars = strided_scalars,
                                                     .symbol = strided_symbol};
const struct kernel_family kernel_family_COPY_STRIDED = {.describe = strided_describe,
                                                         .cycles = strided_cycles,
                                                         .scalars = strided_scalars,
                                                         .symbol = strided_symbol};

/* --- Gather (device/gather_rows.S): rows, bytes, table_rows. Finite check (device/finite_check.S):
 * elements. --- */

enum { GATHER_SETUP = 21, GATHER_ROW = 6, GATHER_IDLE = 10, FINITE_SETUP = 21, FINITE_PAIR = 9 };

static bool gather_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    if (!kernel_check_param(spec, 0, 1, 1 << 16, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 8, 1 << 17, 8, error)) return false;
    if (!kernel_check_param(spec, 2, 1, 1 << 16, 1, error)) return false;
    kernel_operand_add(ret, (uint64_t)spec->p[0] * spec->p[1], 8, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       KERNEL_RAW);
    kernel_operand_add(ret, (uint64_t)spec->p[2] * spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_RAW);
    kernel_operand_add(ret, 4 * (uint64_t)spec->p[0], 4, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_U32);
    return true;
}

static uint64_t gather_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = rows ? GATHER_SETUP + rows * (GATHER_ROW + spec->p[1] / 4) : GATHER_IDLE;
    }
    return kernel_time_single(lane, 5, slots);
}

static uint32_t gather_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 8;
    return 2;
}

static bool finite_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    if (!kernel_check_param(spec, 0, 2, 1 << 18, 2, error)) return false;
    kernel_operand_add(ret, 4 * TARGET_N_WORKERS, 4, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_U32);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[0], 4, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    return true;
}

/* When all values are finite. */
static uint64_t finite_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t pairs = kernel_share(spec->p[0] / 2, w);
        slots[w] = FINITE_SETUP + FINITE_PAIR * pairs - (pairs ? 0 : 2);
    }
    return kernel_time_single(lane, 3, slots);
}

static uint32_t finite_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] / 2;
    return 1;
}

const struct kernel_family kernel_family_GATHER_ROWS = {
    .describe = gather_describe, .cycles = gather_cycles, .scalars = gather_scalars};
const struct kernel_family kernel_family_FINITE_CHECK = {
    .describe = finite_describe, .cycles = finite_cycles, .scalars = finite_scalars};

/* --- Fill with a half (device/fill_f16.S): bytes, value. Copies of halves (device/copy_u16.S):
 * rows, halves, out_row, in_row. --- */

enum { VALUE_SLOTS = 13, U16_SETUP = 26, U16_ROW = 4, U16_HALF = 12, U16_IDLE = 10 };
enum { U16_SERIAL_SETUP = 19, U16_SERIAL_IDLE = 5 };

static bool value_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                           GError **error) {
    if (!kernel_check_param(spec, 0, 8, TARGET_SRAM_END - TARGET_SRAM_BASE, 8, error)) return false;
    if (!kernel_check_param(spec, 1, 0, 0xffff, 1, error)) return false;
    kernel_operand_add(ret, spec->p[0], 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    return true;
}

static uint64_t value_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++)
        slots[w] = VALUE_SLOTS + kernel_share(move_words(spec), w);
    return kernel_time_single(lane, 3, slots);
}

static uint32_t value_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = move_words(spec) + TARGET_N_WORKERS - 1;
    ret[1] = spec->p[1];
    return 2;
}

/* Rows of different workers never share a word of out, wherever it stands. */
static bool u16_is_parallel(const struct kernel_spec *spec) {
    return spec->p[2] % 4 == 0 && 2 * spec->p[1] + 2 <= spec->p[2];
}

static bool u16_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    const uint32_t whole = TARGET_SRAM_END - TARGET_SRAM_BASE;
    if (!kernel_check_param(spec, 0, 1, 1 << 16, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 1, 1 << 16, 1, error)) return false;
    if (!kernel_check_param(spec, 2, 0, whole, 2, error)) return false;
    if (!kernel_check_param(spec, 3, 0, whole, 2, error)) return false;
    const uint64_t out = (uint64_t)(spec->p[0] - 1) * spec->p[2] + 2 * (uint64_t)spec->p[1];
    const uint64_t in = (uint64_t)(spec->p[0] - 1) * spec->p[3] + 2 * (uint64_t)spec->p[1];
    if (out > whole || in > whole)
        return kernel_refuse(spec, 0, "size", "such that both fit", error);
    kernel_operand_add(ret, out, 2, KERNEL_READ_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, in, 2, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    return true;
}

static uint64_t u16_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t row = U16_ROW + U16_HALF * spec->p[1];
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        if (u16_is_parallel(spec)) slots[w] = rows ? U16_SETUP + rows * row : U16_IDLE;
        else slots[w] = w == 0 ? U16_SERIAL_SETUP + spec->p[0] * row : U16_SERIAL_IDLE;
    }
    return kernel_time_single(lane, 6, slots);
}

static uint32_t u16_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    memcpy(ret, spec->p, 4 * sizeof *ret);
    return 4;
}

static const char *u16_symbol(const struct kernel_spec *spec) {
    return u16_is_parallel(spec) ? "copy_u16" : "copy_u16_serial";
}

const struct kernel_family kernel_family_FILL_F16 = {
    .describe = value_describe, .cycles = value_cycles, .scalars = value_scalars};
const struct kernel_family kernel_family_COPY_U16 = {
    .describe = u16_describe, .cycles = u16_cycles, .scalars = u16_scalars, .symbol = u16_symbol};
