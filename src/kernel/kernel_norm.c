/* Layer normalisation of whole rows (device/norm_f16.S). Few rows: six workers share every row, two
 * launches per row; otherwise a worker per row in one launch. */
#include "kernel/kernel_family.h"

enum {
    NORM_SETUP = 34, /* once per worker, with the exit */
    NORM_ROW = 51,   /* per row beside 36 per panel */
    NORM_IDLE = 19,
    SPLIT_MOMENTS = 59, /* beside 8 per panel */
    SPLIT_APPLY = 117,  /* beside 28 per panel */
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
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = 3 * n;
    return true;
}

/* Rows split over the workers: per row a launch for the parts' moments and one that applies them. */
struct norm_split {
    uint32_t moments, moments_panel; /* slots of a worker: fixed and per panel */
    uint32_t apply;                  /* beside 28 per panel */
    uint32_t prelude, stores, behind; /* supervisor: cycles, stores per row, issues behind a launch */
};

static uint64_t norm_split_cycles(const struct norm_split *s, uint32_t rows, uint32_t panels,
                                  uint32_t lane) {
    uint32_t moments[TARGET_N_WORKERS], apply[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t share = kernel_block(panels, w);
        moments[w] = s->moments + s->moments_panel * share;
        apply[w] = s->apply + 28 * share;
    }
    struct kernel_time t;
    kernel_time_begin(&t, lane);
    kernel_time_issue_n(&t, s->prelude);
    for (uint32_t i = 0; i < rows; i++) {
        kernel_time_issue_n(&t, s->stores * TARGET_SUPER_STORE_CYCLES);
        kernel_time_runall(&t, moments);
        kernel_time_issue_n(&t, s->behind);
        kernel_time_sync(&t);
        kernel_time_runall(&t, apply);
        kernel_time_sync(&t);
        kernel_time_issue(&t, i + 1 < rows ? TARGET_SUPER_BRANCH_CYCLES : 1);
    }
    kernel_time_issue(&t, 1);
    return kernel_time_end(&t, lane);
}

static const struct norm_split norm_split = {
    SPLIT_MOMENTS, 8, SPLIT_APPLY,
    TARGET_SUPER_STORE_ADDRESS_CYCLES + 4 * TARGET_SUPER_STORE_CYCLES + 1, 2, 2};

static uint64_t norm_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t panels = spec->p[1] / 16;
    if (norm_is_split(spec)) return norm_split_cycles(&norm_split, spec->p[0], panels, lane);
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

/* --- Moments and their application (device/moments.S). Parameters: rows, columns, panels,
 * segments; rows, columns, panels, parts, rms. --- */

enum {
    MOMENTS_SETUP = 64,
    MOMENTS_ROW = 34, /* beside 8 per panel */
    MOMENTS_IDLE = 22,
    APPLY_SETUP = 62,
    APPLY_ROW = 35,     /* beside 28 per panel and 8 per part */
    APPLY_RMS_ROW = 22, /* beside 32 per panel and 5 per part */
};

static bool moments_check_shape(const struct kernel_spec *spec, GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8191, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 16, 16 * 4095, 16, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    if (spec->p[2] && spec->p[0] > 1000)
        return kernel_refuse(spec, 0, "shape", "at most 1000 in panels", error);
    return true;
}

/* Segments that fill the workers when there are few rows. */
static uint32_t apply_segments(const struct kernel_spec *spec) {
    const uint32_t rows = spec->p[0], panels = spec->p[1] / 16;
    uint32_t segments = rows >= 4 ? 1 : 6 / rows;
    while (6 % segments != 0 || segments > panels) segments--;
    return segments;
}

static uint32_t moments_word(const struct kernel_spec *spec, uint32_t segments) {
    return spec->p[1] / 16 | spec->p[2] << 12 | segments << 13 | 6 / segments << 16;
}

static bool moments_check_segments(const struct kernel_spec *spec, GError **error) {
    if (!moments_check_shape(spec, error)) return false;
    const uint32_t segments = spec->p[3];
    if (segments == 0 || 6 % segments != 0 || spec->p[1] / 16 % segments != 0)
        return kernel_refuse(spec, 3, "segments", "1, 2, 3 or 6 and divide the panels", error);
    return true;
}

static bool moments_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                             GError **error) {
    if (!moments_check_segments(spec, error)) return false;
    const uint32_t segments = spec->p[3];
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 8 * (uint64_t)spec->p[0] * segments, 4, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       KERNEL_F32);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    ret->useful_work = n / 2;
    return true;
}

/* Rows and panels of worker w. */
static void moments_share(const struct kernel_spec *spec, uint32_t segments, uint32_t w,
                          uint32_t *ret_rows, uint32_t *ret_panels) {
    const uint32_t panels = spec->p[1] / 16, step = 6 / segments;
    const uint32_t first = w / segments, segment = w % segments;
    *ret_rows = (spec->p[0] + step - 1 - first) / step;
    *ret_panels = (segment + 1) * panels / segments - segment * panels / segments;
}

static uint64_t moments_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        uint32_t rows, panels;
        moments_share(spec, spec->p[3], w, &rows, &panels);
        slots[w] = rows ? MOMENTS_SETUP + rows * (MOMENTS_ROW + 8 * panels) : MOMENTS_IDLE;
    }
    return kernel_time_single(lane, 4, slots);
}

static uint32_t moments_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = moments_word(spec, spec->p[3]);
    return 2;
}

/* --- The sum of two blocks with its moments. --- */

enum { ADD_MOMENTS_SETUP = 66, ADD_MOMENTS_ROW = 41 }; /* beside 16 per panel */

static bool add_moments_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                                 GError **error) {
    if (!moments_check_segments(spec, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 2 * n, 16, KERNEL_WRITE, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    kernel_operand_add(ret, 8 * (uint64_t)spec->p[0] * spec->p[3], 4, KERNEL_WRITE,
                       KERNEL_MEMORY_ANY, KERNEL_F32);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    ret->alias[0] = 1 << 2 | 1 << 3;
    ret->useful_work = n / 2 + n / 4;
    return true;
}

static uint64_t add_moments_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        uint32_t rows, panels;
        moments_share(spec, spec->p[3], w, &rows, &panels);
        slots[w] = rows ? ADD_MOMENTS_SETUP + rows * (ADD_MOMENTS_ROW + 16 * panels) : MOMENTS_IDLE;
    }
    return kernel_time_single(lane, 6, slots);
}

const struct kernel_family kernel_family_ADD_MOMENTS_F16 = {
    .describe = add_moments_describe, .cycles = add_moments_cycles, .scalars = moments_scalars};

static bool apply_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                           GError **error) {
    if (!moments_check_shape(spec, error)) return false;
    if (!kernel_check_param(spec, 3, 1, 1024, 1, error)) return false;
    if (!kernel_check_param(spec, 4, 0, 1, 1, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, spec->p[4] ? 8 : 4, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 8 * (uint64_t)spec->p[0] * spec->p[3], 4, KERNEL_READ,
                       KERNEL_MEMORY_ANY, KERNEL_F32);
    for (uint32_t i = spec->p[4]; i < 2; i++) /* gamma and, but for RMS, beta */
        kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                           KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = 2 * n;
    return true;
}

static uint64_t apply_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        uint32_t rows, panels;
        moments_share(spec, apply_segments(spec), w, &rows, &panels);
        const uint32_t row = spec->p[4] ? APPLY_RMS_ROW + 32 * panels + 5 * spec->p[3]
                                        : APPLY_ROW + 28 * panels + 8 * spec->p[3];
        slots[w] = rows ? APPLY_SETUP + rows * row : MOMENTS_IDLE;
    }
    return kernel_time_single(lane, 8 - spec->p[4], slots);
}

static uint32_t apply_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = moments_word(spec, apply_segments(spec));
    ret[2] = spec->p[3];
    return 3;
}

const struct kernel_family kernel_family_MOMENTS_F16 = {
    .describe = moments_describe, .cycles = moments_cycles, .scalars = moments_scalars};
static const char *apply_symbol(const struct kernel_spec *spec) {
    return spec->p[4] ? "apply_rms_f16" : "apply_moments_f16";
}

const struct kernel_family kernel_family_APPLY_MOMENTS_F16 = {.describe = apply_describe,
                                                              .cycles = apply_cycles,
                                                              .scalars = apply_scalars,
                                                              .symbol = apply_symbol};

/* --- RMS norm (device/rms_f16.S): rows, columns, panels. --- */

enum { RMS_SETUP = 34, RMS_ROW = 27, RMS_IDLE = 19 };

static bool rms_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    if (!moments_check_shape(spec, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = 2 * n;
    return true;
}

static uint64_t rms_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = rows ? RMS_SETUP + rows * (RMS_ROW + 34 * (spec->p[1] / 16)) : RMS_IDLE;
    }
    return kernel_time_single(lane, 7, slots);
}

const struct kernel_family kernel_family_RMS_F16 = {
    .describe = rms_describe, .cycles = rms_cycles, .scalars = norm_scalars};

/* --- The same with padded rows (device/norm_valid.S): rows, columns, valid, epsilon. --- */

enum {
    NORM_VALID_SETUP = 62,
    NORM_VALID_ROW = 53,
    NORM_VALID_IDLE = 49,
    RMS_VALID_SETUP = 28,
    RMS_VALID_ROW = 27,
    RMS_VALID_IDLE = 17,
};

static bool valid_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                           GError **error) {
    if (!kernel_check_param(spec, 0, 1, 1000, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 16, 1 << 14, 16, error)) return false;
    if (!kernel_check_param(spec, 2, spec->p[1] - 15, spec->p[1], 1, error)) return false;
    if (spec->p[3] == 0 || spec->p[3] >= 0x7f800)
        return kernel_refuse(spec, 3, "epsilon", "the upper 20 bits of a positive finite float", error);
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    const uint32_t vectors = spec->kernel == KERNEL_NORM_VALID_F16 ? 2 : 1;
    kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    for (uint32_t i = 0; i < vectors; i++)
        kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                           KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = (1 + vectors) * n;
    return true;
}

static uint64_t valid_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t panels = spec->p[1] / 16;
    const bool rms = spec->kernel == KERNEL_RMS_VALID_F16;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        if (rms) slots[w] = rows ? RMS_VALID_SETUP + rows * (RMS_VALID_ROW + 34 * panels) : RMS_VALID_IDLE;
        else slots[w] = rows ? NORM_VALID_SETUP + rows * (NORM_VALID_ROW + 36 * panels) : NORM_VALID_IDLE;
    }
    return kernel_time_single(lane, rms ? 7 : 8, slots);
}

static uint32_t valid_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 16;
    ret[2] = spec->p[2];
    ret[3] = spec->p[3];
    return 4;
}

const struct kernel_family kernel_family_NORM_VALID_F16 = {
    .describe = valid_describe, .cycles = valid_cycles, .scalars = valid_scalars};
const struct kernel_family kernel_family_RMS_VALID_F16 = {
    .describe = valid_describe, .cycles = valid_cycles, .scalars = valid_scalars};

/* --- The sum of two blocks and its normalisation (device/add_norm_f16.S): rows, columns, panels. --- */

enum {
    ADD_NORM_SETUP = 34,
    ADD_NORM_ROW = 60, /* beside 44 per panel */
    ADD_NORM_IDLE = 19,
    ADD_SPLIT_MOMENTS = 74, /* beside 16 per panel */
    ADD_SPLIT_APPLY = 123,  /* beside 28 per panel */
    ADD_SPLIT_PRELUDE = 26,
};

static bool add_norm_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                              GError **error) {
    if (!moments_check_shape(spec, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, 16, KERNEL_WRITE, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    for (uint32_t i = 0; i < 2; i++)
        kernel_operand_add(ret, 2 * n, 16, KERNEL_READ, KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    for (uint32_t i = 0; i < 2; i++)
        kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                           KERNEL_F16);
    ret->alias[1] = 1 << 2 | 1 << 3;
    ret->useful_work = 3 * n + n / 4;
    return true;
}

static const struct norm_split add_norm_split = {
    ADD_SPLIT_MOMENTS, 16, ADD_SPLIT_APPLY, ADD_SPLIT_PRELUDE, 4, 4};

static uint64_t add_norm_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t panels = spec->p[1] / 16;
    if (norm_is_split(spec)) return norm_split_cycles(&add_norm_split, spec->p[0], panels, lane);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[0], w);
        slots[w] = rows ? ADD_NORM_SETUP + rows * (ADD_NORM_ROW + 44 * panels) : ADD_NORM_IDLE;
    }
    return kernel_time_single(lane, 8, slots);
}

static uint32_t add_norm_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 16 | spec->p[2] << 12;
    return 2;
}

static const char *add_norm_symbol(const struct kernel_spec *spec) {
    return norm_is_split(spec) ? "add_norm_f16_split" : "add_norm_f16";
}

const struct kernel_family kernel_family_ADD_NORM_F16 = {.describe = add_norm_describe,
                                                         .cycles = add_norm_cycles,
                                                         .scalars = add_norm_scalars,
                                                         .symbol = add_norm_symbol};
