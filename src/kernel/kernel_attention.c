/* Row maxima, exponentials and normalisation over panels (device/row_max.S, exp_panels.S,
 * normalise_panels.S): rows dealt round robin, a constant per row and slots per panel. */
#include "kernel/kernel_family.h"

/* --- Causal calls: row r has the first min(valid, r + offset) keys, none where that is negative. --- */

enum { CAUSAL_BIAS = 8192 };

static bool causal_check(const struct kernel_spec *spec, uint32_t causal, GError **error) {
    if (!kernel_check_param(spec, causal, 0, 1, 1, error)) return false;
    const int32_t offset = (int32_t)spec->p[causal + 1], limit = spec->p[causal] ? 4096 : 0;
    if (offset >= -limit && offset <= limit) return true;
    return kernel_refuse(spec, causal + 1, "offset", limit ? "-4096..4096" : "0 without causal",
                         error);
}

/* Keys of row r. */
static uint32_t causal_keys(const struct kernel_spec *spec, uint32_t causal, uint32_t r) {
    const int32_t valid = (int32_t)spec->p[2];
    if (!spec->p[causal]) return (uint32_t)valid;
    return (uint32_t)CLAMP((int32_t)r + (int32_t)spec->p[causal + 1], 0, valid);
}

/* --- Row maximum: rows, keys, valid, causal, offset. --- */

enum { MAX_SETUP = 27, MAX_ROW = 8, MAX_PANELS = 2, MAX_RAGGED = 8, MAX_IDLE = 10 };
enum { MAX_CAUSAL_ROW = 12 };

static bool max_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 16, 1 << 16, 16, error)) return false;
    if (!kernel_check_param(spec, 2, 1, spec->p[1], 1, error)) return false;
    if (!causal_check(spec, 3, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 4 * (uint64_t)spec->p[0], 4, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       KERNEL_F16_PAIR);
    kernel_operand_add(ret, 2 * n, 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    ret->useful_work = (uint64_t)spec->p[0] * spec->p[2] / 4;
    return true;
}

static uint32_t max_row_slots(uint32_t keys) {
    const uint32_t full = keys / 16, ragged = keys % 16;
    uint32_t row = MAX_ROW;
    if (full) row += MAX_PANELS + 4 * full;
    if (ragged) row += MAX_RAGGED + 2 * (ragged / 4);
    return row;
}

static uint64_t max_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t causal = spec->p[3];
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        slots[w] = w < spec->p[0] ? MAX_SETUP - 2 * causal : MAX_IDLE;
        for (uint32_t r = w; r < spec->p[0]; r += TARGET_N_WORKERS)
            slots[w] += max_row_slots(causal_keys(spec, 3, r)) + causal * MAX_CAUSAL_ROW;
    }
    return kernel_time_single(lane, 5, slots);
}

static uint32_t max_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[3] ? spec->p[2] : spec->p[2] / 16;
    ret[2] = spec->p[3] ? spec->p[4] + CAUSAL_BIAS : spec->p[2] % 16;
    return 3;
}

static const char *max_symbol(const struct kernel_spec *spec) {
    return spec->p[3] ? "row_max_causal" : "row_max";
}

/* f8 of EXP_PANELS and NORMALISE_PANELS: 0 F16, 1 F143, 2 F152; its exponent is 0 with F16. */
static bool f8_check(const struct kernel_spec *spec, uint32_t f8, uint32_t exponent,
                     GError **error) {
    if (!kernel_check_param(spec, f8, 0, 2, 1, error)) return false;
    const int32_t e = (int32_t)spec->p[exponent], limit = spec->p[f8] ? 31 : 0;
    if (e >= -limit && e <= limit) return true;
    return kernel_refuse(spec, exponent, "scale", limit ? "-31..31" : "0 without F8", error);
}

/* --- Exponentials: rows, keys, valid, scale (half bits), f8, exponent, causal, offset. --- */

enum { EXP_SETUP = 27, EXP_MASKS = 27, EXP_ROW = 11, EXP_PAIRS = 5, EXP_ZEROS = 2, EXP_IDLE = 12 };
enum { EXP_CAUSAL_SETUP = 19, EXP_CAUSAL_ROW = 20 };

static bool exp_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    if (!kernel_check_param(spec, 0, 1, 2000, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 32, 4096, 32, error)) return false;
    if (!kernel_check_param(spec, 2, 1, spec->p[1], 1, error)) return false;
    if (spec->p[3] == 0 || spec->p[3] >= 0x7c00)
        return kernel_refuse(spec, 3, "scale", "the bits of a positive finite half", error);
    if (!f8_check(spec, 4, 5, error)) return false;
    if (!causal_check(spec, 6, error)) return false;
    const bool f8 = spec->p[4] != 0;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, f8 ? n : 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       f8 ? KERNEL_F8 : KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 4 * (uint64_t)spec->p[0], 4, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16_PAIR);
    if (!f8) ret->alias[0] = 1 << 1;
    ret->useful_work = 4 * (uint64_t)spec->p[0] * spec->p[2];
    return true;
}

/* With two slots per exponential (isa 1.9: the default for arguments that are not both zero). */
static uint32_t exp_row_slots(const struct kernel_spec *spec, uint32_t keys) {
    const uint32_t f8 = spec->p[4] != 0, pairs = keys / 32, ragged = keys % 32;
    const uint32_t zeros = spec->p[1] / 32 - pairs - (ragged != 0);
    uint32_t row = EXP_ROW;
    if (pairs) row += EXP_PAIRS + 4 * (10 + f8) * pairs;
    if (ragged) row += 4 * 18 + 3 - (16 - (ragged + 1) / 2); /* a slot less for masked lanes */
    if (zeros) row += EXP_ZEROS + (f8 ? 4 : 8) * zeros;
    return row;
}

static uint64_t exp_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t f8 = spec->p[4] != 0, causal = spec->p[6];
    const uint32_t masks = causal ? EXP_CAUSAL_SETUP : spec->p[2] % 32 ? EXP_MASKS : 0;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        slots[w] = w < spec->p[0] ? EXP_SETUP + 2 * f8 + masks : EXP_IDLE + f8;
        for (uint32_t r = w; r < spec->p[0]; r += TARGET_N_WORKERS)
            slots[w] += exp_row_slots(spec, causal_keys(spec, 6, r)) + causal * EXP_CAUSAL_ROW;
    }
    return kernel_time_single(lane, 8, slots);
}

static uint32_t exp_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const uint32_t pairs = spec->p[2] / 32, ragged = spec->p[2] % 32;
    ret[0] = spec->p[0];
    ret[1] = pairs;
    ret[2] = ragged | (spec->p[1] / 32 - pairs - (ragged != 0)) << 8;
    if (spec->p[6]) {
        ret[1] = (spec->p[2] - 1) | (spec->p[1] / 32 - 1) << 12;
        ret[2] = spec->p[7] + CAUSAL_BIAS;
    }
    ret[3] = spec->p[3];
    ret[4] = -spec->p[5] & 63;
    return 5;
}

static const char *exp_symbol(const struct kernel_spec *spec) {
    static const char *const names[2][3] = {
        {"exp_panels_f16", "exp_panels_f8", "exp_panels_f152"},
        {"exp_panels_f16_causal", "exp_panels_f8_causal", "exp_panels_f152_causal"},
    };
    return names[spec->p[6]][spec->p[4]];
}

/* --- Normalisation: rows, columns, divisor_column, f8, exponent, sums, parts, part. --- */

enum { NORMALISE_SETUP = 23, NORMALISE_ROW = 17, NORMALISE_IDLE = 10 };
enum { PARTS_SETUP = 27, PARTS_ROW = 25, PARTS_PART = 10 };

/* Statistics of one part (parts 0) or of all parts of the keys. */
static bool normalise_check_parts(const struct kernel_spec *spec, GError **error) {
    const uint32_t *p = spec->p;
    if (p[6] == 1 || (p[6] && !p[5]))
        return kernel_refuse(spec, 6, "parts", "0, or at least 2 with sums", error);
    if (!kernel_check_param(spec, 6, 0, 1024, 1, error)) return false;
    return kernel_check_param(spec, 7, 0, p[6] ? p[6] - 1 : 0, 1, error);
}

static bool normalise_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                               GError **error) {
    const uint32_t *p = spec->p;
    if (!kernel_check_param(spec, 0, 1, 2000, 1, error)) return false;
    if (!f8_check(spec, 3, 4, error)) return false;
    const bool f8 = p[3] != 0;
    if (!kernel_check_param(spec, 1, f8 ? 32 : 16, 4096, f8 ? 32 : 16, error)) return false;
    if (!kernel_check_param(spec, 5, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, 2, 0, p[5] ? 0 : p[1] - 1, 1, error)) return false;
    if (!normalise_check_parts(spec, error)) return false;
    const uint64_t n = (uint64_t)p[0] * p[1];
    kernel_operand_add(ret, f8 ? n : 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       f8 ? KERNEL_F8 : KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    if (p[5])
        kernel_operand_add(ret, 8 * (uint64_t)p[0] * MAX(p[6], 1), 4, KERNEL_READ, KERNEL_MEMORY_ANY,
                           KERNEL_F32);
    if (!f8) ret->alias[0] = 1 << 1;
    ret->useful_work = n / 4;
    return true;
}

static uint64_t normalise_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t f8 = spec->p[3] != 0, sums = spec->p[5];
    const uint32_t parts = spec->p[6], head = parts ? PARTS_ROW + PARTS_PART * parts : NORMALISE_ROW - sums;
    const uint32_t row = head + spec->p[1] / 16 * 8;
    const uint32_t setup = (parts ? PARTS_SETUP : NORMALISE_SETUP + 2 * sums) + 2 * f8;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = rows ? setup + rows * row : NORMALISE_IDLE + 2 * f8;
    }
    return kernel_time_single(lane, 5 + f8 + (parts ? 2 : 0), slots);
}

static uint32_t normalise_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const uint32_t f8 = spec->p[3] != 0, column = spec->p[2];
    uint32_t n = 0;
    ret[n++] = spec->p[0];
    ret[n++] = spec->p[1] / (f8 ? 32 : 16);
    if (!spec->p[5]) ret[n++] = column / 16 * 32 * spec->p[0] + column % 16 * 2;
    if (f8) ret[n++] = -spec->p[4] & 63;
    if (!spec->p[6]) return n;
    ret[n++] = spec->p[6] - 1;
    ret[n++] = spec->p[7] * 8 * spec->p[0];
    return n;
}

static const char *normalise_symbol(const struct kernel_spec *spec) {
    static const char *const names[3][3] = {
        {"normalise_panels_f16", "normalise_panels_f8", "normalise_panels_f152"},
        {"normalise_panels_sums_f16", "normalise_panels_sums_f8", "normalise_panels_sums_f152"},
        {"normalise_panels_parts_f16", "normalise_panels_parts_f8", "normalise_panels_parts_f152"},
    };
    return names[spec->p[6] ? 2 : spec->p[5]][spec->p[3]];
}

const struct kernel_family kernel_family_ROW_MAX = {.describe = max_describe,
                                                      .cycles = max_cycles,
                                                      .scalars = max_scalars,
                                                      .symbol = max_symbol};
const struct kernel_family kernel_family_EXP_PANELS = {
    .describe = exp_describe, .cycles = exp_cycles, .scalars = exp_scalars, .symbol = exp_symbol};
const struct kernel_family kernel_family_NORMALISE_PANELS = {.describe = normalise_describe,
                                                             .cycles = normalise_cycles,
                                                             .scalars = normalise_scalars,
                                                             .symbol = normalise_symbol};

/* --- Softmax of whole rows (device/softmax_f16.S): rows, keys, valid, scale (half bits),
 * causal. --- */

enum {
    SOFTMAX_SETUP = 31,
    SOFTMAX_ROW = 31,
    SOFTMAX_RAGGED = 27,
    CAUSAL_SETUP = 23,
    CAUSAL_ROW = 20, /* to count the keys of a row */
};

static bool softmax_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                             GError **error) {
    if (!kernel_check_param(spec, 0, 1, 2000, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 16, 4080, 16, error)) return false;
    if (!kernel_check_param(spec, 2, 1, spec->p[1], 1, error)) return false;
    if (spec->p[3] == 0 || spec->p[3] >= 0x7c00)
        return kernel_refuse(spec, 3, "scale", "the bits of a positive finite half", error);
    const int32_t causal = (int32_t)spec->p[4];
    if (causal < -4096 || causal > 4096)
        return kernel_refuse(spec, 4, "offset", "-4096..4096", error);
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 8 * (uint64_t)spec->p[0], 4, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       KERNEL_F32);
    kernel_operand_add(ret, 2 * n, 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    ret->alias[0] = 1 << 2;
    ret->useful_work = (uint64_t)spec->p[0] * (4 * spec->p[2] + 5);
    return true;
}

/* Six workers share a row when there are few and long ones (num_kernel_softmax_f16 knows it too).
 */
static bool softmax_is_split(const struct kernel_spec *spec) {
    return !spec->p[4] && spec->p[0] <= 3 && spec->p[2] / 16 >= 12;
}

enum { SPLIT_MAX = 42, SPLIT_EXP = 55, SPLIT_SUM = 23, SPLIT_SUM_IDLE = 4 };

static uint64_t softmax_split_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t full = spec->p[2] / 16, ragged = spec->p[2] % 16;
    const uint32_t zeros = spec->p[1] / 16 - full - (ragged != 0);
    uint32_t max[TARGET_N_WORKERS], exponentials[TARGET_N_WORKERS], sum[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t panels = kernel_block(full, w);
        const bool last = w == TARGET_N_WORKERS - 1;
        max[w] = SPLIT_MAX + 4 * panels + (last && ragged ? 9 + 2 * (ragged / 4) : 0);
        exponentials[w] = SPLIT_EXP + 26 * panels + (last ? 4 * zeros : 0);
        if (last && ragged) exponentials[w] += 18 + 9 * (ragged / 4) + 3 - ragged / 4;
        sum[w] = w == 0 ? SPLIT_SUM : SPLIT_SUM_IDLE;
    }
    struct kernel_time t;
    kernel_time_begin(&t, lane);
    kernel_time_issue_n(&t, TARGET_SUPER_STORE_ADDRESS_CYCLES + 4 * TARGET_SUPER_STORE_CYCLES + 2);
    for (uint32_t i = 0; i < spec->p[0]; i++) {
        kernel_time_issue_n(&t, 3 * TARGET_SUPER_STORE_CYCLES);
        kernel_time_runall(&t, max);
        kernel_time_issue_n(&t, 3);
        kernel_time_sync(&t);
        kernel_time_runall(&t, exponentials);
        kernel_time_sync(&t);
        kernel_time_runall(&t, sum);
        kernel_time_sync(&t);
        kernel_time_issue(&t, i + 1 < spec->p[0] ? TARGET_SUPER_BRANCH_CYCLES : 1);
    }
    kernel_time_issue(&t, 1);
    return kernel_time_end(&t, lane);
}

/* Slots of a row with this many keys, with two slots per exponential. */
static uint32_t softmax_row_slots(const struct kernel_spec *spec, uint32_t keys) {
    const uint32_t full = keys / 16, ragged = keys % 16;
    const uint32_t zeros = spec->p[1] / 16 - full - (ragged != 0);
    uint32_t row = SOFTMAX_ROW + 4 * zeros;
    if (full) row += 4 + (4 + 18 + 8) * full;
    if (ragged) row += SOFTMAX_RAGGED + (2 + 9) * (ragged / 4) + 3 - ragged / 4;
    return row;
}

/* Keys of row r of a causal call. */
static uint32_t softmax_keys(const struct kernel_spec *spec, uint32_t r) {
    return (uint32_t)CLAMP((int32_t)r + (int32_t)spec->p[4], 0, (int32_t)spec->p[2]);
}

static uint32_t causal_slots(const struct kernel_spec *spec, uint32_t w) {
    uint32_t slots = CAUSAL_SETUP;
    for (uint32_t r = w; r < spec->p[0]; r += TARGET_N_WORKERS)
        slots += CAUSAL_ROW + softmax_row_slots(spec, softmax_keys(spec, r));
    return slots;
}

static uint64_t softmax_cycles(const struct kernel_spec *spec, uint32_t lane) {
    if (softmax_is_split(spec)) return softmax_split_cycles(spec, lane);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = SOFTMAX_SETUP + rows * softmax_row_slots(spec, spec->p[2]);
        if (spec->p[4]) slots[w] = causal_slots(spec, w);
        if (!rows) slots[w] = MAX_IDLE;
    }
    return kernel_time_single(lane, 7, slots);
}

static uint32_t softmax_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const uint32_t full = spec->p[2] / 16, ragged = spec->p[2] % 16;
    ret[0] = spec->p[0];
    ret[1] = full;
    ret[2] = ragged | (spec->p[1] / 16 - full - (ragged != 0)) << 8;
    ret[3] = spec->p[3] ^ 0x8000;
    if (spec->p[4]) {
        ret[1] = spec->p[2] << 8 | spec->p[1] / 16;
        ret[2] = spec->p[4] + CAUSAL_BIAS;
    }
    return 4;
}

static const char *softmax_symbol(const struct kernel_spec *spec) {
    if (spec->p[4]) return "softmax_f16_causal";
    return softmax_is_split(spec) ? "softmax_f16_split" : "softmax_f16";
}

const struct kernel_family kernel_family_SOFTMAX_F16 = {.describe = softmax_describe,
                                                        .cycles = softmax_cycles,
                                                        .scalars = softmax_scalars,
                                                        .symbol = softmax_symbol};
