/* GELU (device/gelu_f16.S): in halves, quads dealt round robin, 9 slots per quad in a hardware repeat, a
 * last pair two-wide by the worker whose turn it is; in F32, pairs dealt round robin. */
#include "kernel/kernel_family.h"

enum {
    GELU_SLOTS = 33,      /* set-up, first quad, last quad's second half, exit */
    GELU_IDLE_SLOTS = 17, /* a worker without work */
    GELU_QUAD_SLOTS = 9,
    GELU_TAIL_SLOTS = 10,
    GELU_REGISTERS = 3,
    GELU_F32_SETUP = 16,
};

enum { TANH, ERF_F32, TANH_F32, ERF, GELU_N_FORMS }; /* the parameter form */

/* Slots of a pair in F32 (f32exp 3, f32sigm 5); 0 for a form in halves. */
static const uint8_t gelu_pair_slots[GELU_N_FORMS] = {[ERF_F32] = 30, [TANH_F32] = 26};

static bool gelu_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 2, 1 << 18, 2, error)) return false;
    if (!kernel_check_param(spec, 1, 0, GELU_N_FORMS - 1, 1, error)) return false;
    const uint32_t align = gelu_pair_slots[spec->p[1]] ? 4 : 8;
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[0], align, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[0], align, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = 3 * (uint64_t)spec->p[0]; /* 12 instructions per 4 values */
    return true;
}

static uint64_t gelu_cycles_f32(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++)
        slots[w] = GELU_F32_SETUP + gelu_pair_slots[spec->p[1]] * kernel_share(spec->p[0] / 2, w);
    return kernel_time_single(lane, GELU_REGISTERS, slots);
}

static uint64_t gelu_cycles(const struct kernel_spec *spec, uint32_t lane) {
    if (gelu_pair_slots[spec->p[1]]) return gelu_cycles_f32(spec, lane);
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

static const char *gelu_symbol(const struct kernel_spec *spec) {
    static const char *const names[GELU_N_FORMS] = {[TANH] = "gelu_f16",
                                                    [ERF_F32] = "gelu_erf_f32",
                                                    [TANH_F32] = "gelu_tanh_f32",
                                                    [ERF] = "gelu_erf_f16"};
    return names[spec->p[1]];
}

const struct kernel_family kernel_family_GELU_F16 = {.describe = gelu_describe,
                                                     .cycles = gelu_cycles,
                                                     .scalars = gelu_scalars,
                                                     .symbol = gelu_symbol};

/* --- Bias + GELU (device/bias_gelu_f16.S). Parameters: rows, width, narrow, erf. --- */

enum { BIAS_SETUP = 20, BIAS_ROW = 11, PAIRS_ROW = 8, PAIR = 13, WORDS = 17, BIAS_IDLE = 10 };

static bool bias_is_wide(const struct kernel_spec *spec) {
    return !spec->p[2] && spec->p[1] % 4 == 0;
}

static bool bias_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 2, 1 << 16, 2, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    const uint32_t align = bias_is_wide(spec) ? 8 : 4;
    kernel_operand_add(ret, 2 * n, align, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * n, align, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], align, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    ret->useful_work = 3 * n + n / 4;
    return true;
}

static uint64_t bias_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const bool quads = spec->p[1] % 4 == 0;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t share = kernel_share(spec->p[1] / (quads ? 4 : 2), w);
        const uint32_t row =
            bias_is_wide(spec) ? BIAS_ROW + 10 * share : PAIRS_ROW + (quads ? WORDS : PAIR) * share;
        slots[w] = share ? BIAS_SETUP + spec->p[0] * row : BIAS_IDLE;
    }
    return kernel_time_single(lane, 5, slots);
}

static uint32_t bias_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[1] / (spec->p[1] % 4 == 0 ? 4 : 2);
    ret[1] = spec->p[0];
    return 2;
}

static const char *bias_symbol(const struct kernel_spec *spec) {
    static const char *const names[3][2] = {{"bias_gelu_f16", "bias_gelu_f16_erf"},
                                            {"bias_gelu_f16_words", "bias_gelu_f16_words_erf"},
                                            {"bias_gelu_f16_pairs", "bias_gelu_f16_pairs_erf"}};
    const uint32_t loop = bias_is_wide(spec) ? 0 : spec->p[1] % 4 == 0 ? 1 : 2;
    return names[loop][spec->p[3]];
}

const struct kernel_family kernel_family_BIAS_GELU_F16 = {.describe = bias_describe,
                                                          .cycles = bias_cycles,
                                                          .scalars = bias_scalars,
                                                          .symbol = bias_symbol};

/* --- GELU to F8 (device/gelu_f8.S). Parameters: rows, width, bias, exponent, f152,
 * erf. --- */

enum { F8_SETUP = 20, F8_ROW = 13, F8_VECTOR = 25, F8_BIAS = 2 };

static bool f8_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 8, 1 << 16, 8, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    const int32_t e = (int32_t)spec->p[3];
    if (e < -31 || e > 31) return kernel_refuse(spec, 3, "scale", "-31..31", error);
    if (!kernel_check_param(spec, 4, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, 5, 0, 1, 1, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, (uint64_t)spec->p[0] * align_up_u32(spec->p[1], 32), 8, KERNEL_WRITE,
                       KERNEL_MEMORY_ANY, KERNEL_F8);
    kernel_operand_add(ret, 2 * n, 8, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16);
    if (spec->p[2])
        kernel_operand_add(ret, 2 * (uint64_t)spec->p[1], 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                           KERNEL_F16);
    ret->useful_work = 3 * n;
    return true;
}

static uint64_t f8_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t vectors = spec->p[1] / 8, padded = align_up_u32(spec->p[1], 32) / 8;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t share = kernel_share(vectors, w);
        uint32_t row = F8_ROW - (share == 0);
        row += share * (F8_VECTOR + F8_BIAS * spec->p[2]);
        if (w + 6 * share < padded) row++;
        slots[w] = F8_SETUP + spec->p[0] * row;
    }
    return kernel_time_single(lane, 6 + spec->p[2], slots);
}

static uint32_t f8_registers(const struct kernel_spec *spec, const uint32_t *addresses,
                             uint32_t *ret) {
    uint32_t n = 0;
    ret[n++] = addresses[0];
    ret[n++] = addresses[1];
    ret[n++] = spec->p[1] / 8;
    ret[n++] = spec->p[0];
    ret[n++] = align_up_u32(spec->p[1], 32);
    ret[n++] = -spec->p[3] & 63;
    if (spec->p[2]) ret[n++] = addresses[2];
    return n;
}

static const char *f8_symbol(const struct kernel_spec *spec) {
    static const char *const names[2][2][2] = {
        {{"gelu_f8", "gelu_f152"}, {"bias_gelu_f8", "bias_gelu_f152"}},
        {{"gelu_erf_f8", "gelu_erf_f152"}, {"bias_gelu_erf_f8", "bias_gelu_erf_f152"}},
    };
    return names[spec->p[5]][spec->p[2]][spec->p[4]];
}

const struct kernel_family kernel_family_GELU_F8 = {
    .describe = f8_describe, .cycles = f8_cycles, .registers = f8_registers, .symbol = f8_symbol};
