/* Sums of partials (device/reduce_f16.S): vectors of 8 halves dealt round robin; per vector P + 4
 * slots: one 128-bit load and one f16v8acc per partial, four accumulator reads, two stores. */
#include "kernel/kernel_family.h"

enum { REDUCE_SLOTS = 24, REDUCE_IDLE_SLOTS = 10, REDUCE_VECTOR_SLOTS = 4, REDUCE_REGISTERS = 5 };

/* An input: 128-bit loads from the interleaved region, or 64-bit loads from anywhere. */
static void reduce_input_add(struct kernel_needs *ret, uint64_t bytes, bool standard,
                             enum kernel_format format) {
    kernel_operand_add(ret, bytes, standard ? 8 : 16, KERNEL_READ,
                       standard ? KERNEL_MEMORY_ANY : KERNEL_MEMORY_INTERLEAVED, format);
}

static bool reduce_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    if (!kernel_check_param(spec, 0, 2, 4096, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 8, 1 << 18, 8, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    const uint64_t run = 2 * (uint64_t)spec->p[1], stride = spec->p[3] ? spec->p[3] : run;
    if (!kernel_check_param(spec, 3, 0, TARGET_SRAM_END - TARGET_SRAM_BASE, 16, error))
        return false;
    if (stride < run) return kernel_refuse(spec, 3, "stride", "0, or no less than a run", error);
    kernel_operand_add(ret, run, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16);
    reduce_input_add(ret, run, spec->p[2] != 0, KERNEL_F16);
    reduce_input_add(ret, stride * (spec->p[0] - 2) + run, spec->p[2] != 0, KERNEL_F16);
    ret->alias[0] = 1 << 1;
    ret->useful_work = (uint64_t)(spec->p[0] - 1) * spec->p[1] / 4;
    return true;
}

static uint64_t reduce_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t standard = spec->p[2], loads = spec->p[0] * (1 + standard);
    const uint32_t strided = spec->p[3] != 0;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t vectors = kernel_share(spec->p[1] / 8, w);
        slots[w] = vectors ? REDUCE_SLOTS + 2 * (standard + strided) +
                                 vectors * (loads + REDUCE_VECTOR_SLOTS)
                           : REDUCE_IDLE_SLOTS;
    }
    return kernel_time_single(lane, REDUCE_REGISTERS + strided, slots);
}

static uint32_t reduce_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] - 1;
    ret[1] = spec->p[1] / 8;
    ret[2] = spec->p[3] / 16;
    return spec->p[3] ? 3 : 2;
}

static const char *reduce_symbol(const struct kernel_spec *spec) {
    if (spec->p[3]) return spec->p[2] ? "reduce_f16_strided_std" : "reduce_f16_strided";
    return spec->p[2] ? "reduce_f16_std" : "reduce_f16";
}

const struct kernel_family kernel_family_REDUCE_F16 = {.describe = reduce_describe,
                                                       .cycles = reduce_cycles,
                                                       .scalars = reduce_scalars,
                                                       .symbol = reduce_symbol};

/* --- reduce_panels (device/reduce_panels.S): the same per panel of 16 columns, with an epilogue.
 * --- */

static bool panels_has(const struct kernel_spec *spec, uint32_t bit) {
    return (spec->p[3] & bit) != 0;
}

enum {
    R = KERNEL_EPILOGUE_RESIDUAL,
    B = KERNEL_EPILOGUE_BIAS,
    G = KERNEL_EPILOGUE_GELU,
    E = KERNEL_EPILOGUE_GELU | KERNEL_EPILOGUE_ERF,
    Q = KERNEL_EPILOGUE_F8,
    H = KERNEL_EPILOGUE_F8 | KERNEL_EPILOGUE_F152,
};

/* Entries by epilogue, without and with KERNEL_EPILOGUE_STANDARD; others are not offered. */
static const struct panels_entry {
    uint32_t epilogue;
    const char *names[2];
} panels_entries[] = {
#define PANELS(epilogue, suffix)                                                                   \
    {epilogue, {"reduce_panels_" suffix, "reduce_panels_" suffix "_std"}}
    PANELS(R, "r"),           PANELS(B, "b"),           PANELS(R | B, "rb"),
    PANELS(G, "g"),           PANELS(B | G, "bg"),      PANELS(E, "e"),
    PANELS(B | E, "be"),      PANELS(Q, "q"),           PANELS(B | Q, "bq"),
    PANELS(G | Q, "gq"),      PANELS(B | G | Q, "bgq"), PANELS(E | Q, "eq"),
    PANELS(B | E | Q, "beq"), PANELS(H, "h"),           PANELS(B | H, "bh"),
    PANELS(G | H, "gh"),      PANELS(B | G | H, "bgh"), PANELS(E | H, "eh"),
    PANELS(B | E | H, "beh"),
#undef PANELS
};

static const char *panels_name(uint32_t epilogue) {
    const uint32_t standard = epilogue & KERNEL_EPILOGUE_STANDARD;
    for (size_t i = 0; i < ARRAY_LEN(panels_entries); i++)
        if (panels_entries[i].epilogue == epilogue - standard)
            return panels_entries[i].names[standard != 0];
    return NULL;
}

static bool panels_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    const uint32_t partials = spec->p[0], rows = spec->p[1], columns = spec->p[2];
    if (!panels_name(spec->p[3]))
        return kernel_refuse(spec, 3, "epilogue",
                             "residual (1), bias (2), 3, GELU (4), 6, F8 (8), 10, 12 or 14; more: 16 for "
                             "region 0, 32 for erf with GELU, 64 for F152 with F8",
                             error);
    const bool f8 = panels_has(spec, KERNEL_EPILOGUE_F8);
    if (!kernel_check_param(spec, 0, 1, 4096, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 2, 16, 1 << 16, f8 ? 32 : 16, error)) return false;
    const int32_t scale = (int32_t)spec->p[4];
    if (scale < (f8 ? -31 : 0) || scale > (f8 ? 31 : 0))
        return kernel_refuse(spec, 4, "scale", f8 ? "-31..31" : "0 without F8", error);
    const uint64_t run = 2 * (uint64_t)rows * columns;
    kernel_operand_add(ret, f8 ? run / 2 : run, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       f8 ? KERNEL_F8 : KERNEL_F16);
    const bool standard = panels_has(spec, KERNEL_EPILOGUE_STANDARD);
    reduce_input_add(ret, run, standard, KERNEL_F16);
    if (!f8) ret->alias[0] |= 1 << 1;
    if (partials > 1) reduce_input_add(ret, run * (partials - 1), standard, KERNEL_F16);
    if (panels_has(spec, KERNEL_EPILOGUE_RESIDUAL)) {
        ret->alias[0] |= (uint8_t)(1 << ret->n_operands);
        reduce_input_add(ret, run, standard, KERNEL_F16);
    }
    if (panels_has(spec, KERNEL_EPILOGUE_BIAS))
        reduce_input_add(ret, 2 * (uint64_t)columns, standard, KERNEL_F16);
    const uint64_t n = (uint64_t)rows * columns;
    ret->useful_work = (partials - 1) * n / 4;
    if (panels_has(spec, KERNEL_EPILOGUE_GELU)) ret->useful_work += 3 * n;
    return true;
}

/* Slots outside of the vectors: set-up, panel; of a vector beside its loads. */
enum { PANELS_SETUP = 31, PANELS_PANEL = 8, PANELS_IDLE = 11 };
enum { PANELS_PLAIN = 5, PANELS_GELU = 21, PANELS_GELU_F8 = 18 };

static uint64_t panels_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t r = panels_has(spec, KERNEL_EPILOGUE_RESIDUAL);
    const uint32_t b = panels_has(spec, KERNEL_EPILOGUE_BIAS);
    const uint32_t g = panels_has(spec, KERNEL_EPILOGUE_GELU);
    const uint32_t q = panels_has(spec, KERNEL_EPILOGUE_F8);
    const uint32_t s = panels_has(spec, KERNEL_EPILOGUE_STANDARD);
    const uint32_t loads = spec->p[0] + r + b;
    const uint32_t end = g ? (q ? PANELS_GELU_F8 : PANELS_GELU) : PANELS_PLAIN;
    const uint32_t vector = loads * (1 + s) + end;
    const uint32_t panel = PANELS_PANEL + r + b + MAX(g, 3 * q);
    const uint32_t setup = PANELS_SETUP + 2 * r + 4 * b + 5 * g + 14 * q + 2 * s;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t vectors = kernel_share(2 * spec->p[1], w);
        slots[w] = vectors ? setup + spec->p[2] / 16 * (panel + vectors * vector) : PANELS_IDLE;
    }
    return kernel_time_single(lane, 6 + r + b + q, slots);
}

static uint32_t panels_registers(const struct kernel_spec *spec, const uint32_t *addresses,
                                 uint32_t *ret) {
    uint32_t n = 0, a = 2;
    ret[n++] = addresses[0];
    ret[n++] = addresses[1];
    ret[n++] = spec->p[0] > 1 ? addresses[a++] : addresses[1];
    ret[n++] = spec->p[0] - 1;
    ret[n++] = spec->p[1];
    ret[n++] = spec->p[2] / 16;
    if (panels_has(spec, KERNEL_EPILOGUE_RESIDUAL)) ret[n++] = addresses[a++];
    if (panels_has(spec, KERNEL_EPILOGUE_BIAS)) ret[n++] = addresses[a++];
    /* With GELU the conversion halves, too. */
    const uint32_t half = panels_has(spec, KERNEL_EPILOGUE_GELU) ? 1 : 0;
    if (panels_has(spec, KERNEL_EPILOGUE_F8)) ret[n++] = (-spec->p[4] - half) & 63;
    return n;
}

static const char *panels_symbol(const struct kernel_spec *spec) {
    return panels_name(spec->p[3]);
}

const struct kernel_family kernel_family_REDUCE_PANELS = {.describe = panels_describe,
                                                          .cycles = panels_cycles,
                                                          .registers = panels_registers,
                                                          .symbol = panels_symbol};

/* --- Sums of F32 panels (device/reduce_f32.S): partials, rows, columns, f8, scale, standard. ---
 */

/* Slots: set-up, idle worker; of a row of 8 floats beside its loads; of a panel of 8 columns
 * (inside, at the end of an out panel, the last one). */
enum { SINGLE_SETUP = 26, SINGLE_IDLE = 10, SINGLE_F8 = 5, SINGLE_MORE = 6 };
enum { SINGLE_ROW = 3, SINGLE_PANEL = 10, SINGLE_GROUP = 3, SINGLE_LAST = 2 };

static bool single_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
    const bool f8 = spec->p[3] != 0, standard = spec->p[5] != 0;
    if (!kernel_check_param(spec, 0, 1, 4096, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 2, 16, 1 << 16, f8 ? 32 : 16, error)) return false;
    const int32_t scale = (int32_t)spec->p[4];
    if (scale < (f8 ? -31 : 0) || scale > (f8 ? 31 : 0))
        return kernel_refuse(spec, 4, "scale", f8 ? "-31..31" : "0 without F8", error);
    if (!kernel_check_param(spec, 5, 0, 1, 1, error)) return false;
    const uint64_t n = (uint64_t)spec->p[1] * spec->p[2];
    kernel_operand_add(ret, f8 ? n : 2 * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY,
                       f8 ? KERNEL_F8 : KERNEL_F16);
    reduce_input_add(ret, 4 * n, standard, KERNEL_F32);
    if (spec->p[0] > 1) reduce_input_add(ret, 4 * n * (spec->p[0] - 1), standard, KERNEL_F32);
    ret->useful_work = (spec->p[0] - 1) * n / 2 + n / 2;
    return true;
}

static uint64_t single_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t more = spec->p[0] > 1, f8 = spec->p[3], s = spec->p[5];
    const uint32_t panels = spec->p[2] / 8, groups = panels / (f8 ? 4 : 2);
    const uint32_t row = 2 * (spec->p[0] * (1 + s) + more) + SINGLE_ROW - (f8 && more);
    /* The loop starts at a multiple of 8 bytes: a nop when the set-up is even. */
    const uint32_t setup = (SINGLE_SETUP + f8 * SINGLE_F8 + more * (SINGLE_MORE + s)) | 1;
    const uint32_t panel = SINGLE_PANEL + f8 - (f8 && !more);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t rows = kernel_share(spec->p[1], w);
        slots[w] =
            rows ? setup + panels * (panel + rows * row) + SINGLE_GROUP * (groups - 1) - SINGLE_LAST
                 : SINGLE_IDLE;
    }
    return kernel_time_single(lane, 6 + f8, slots);
}

static uint32_t single_registers(const struct kernel_spec *spec, const uint32_t *addresses,
                                 uint32_t *ret) {
    ret[0] = addresses[0];
    ret[1] = addresses[1];
    ret[2] = addresses[spec->p[0] > 1 ? 2 : 1];
    ret[3] = spec->p[0] - 1;
    ret[4] = spec->p[1];
    ret[5] = spec->p[2] / 8;
    ret[6] = -spec->p[4] & 63;
    return 6 + spec->p[3];
}

static const char *single_symbol(const struct kernel_spec *spec) {
    static const char *const names[2][2][2] = {
        {{"reduce_f32_h_one", "reduce_f32_h_one_std"}, {"reduce_f32_h", "reduce_f32_h_std"}},
        {{"reduce_f32_q_one", "reduce_f32_q_one_std"}, {"reduce_f32_q", "reduce_f32_q_std"}},
    };
    return names[spec->p[3]][spec->p[0] > 1][spec->p[5]];
}

const struct kernel_family kernel_family_REDUCE_F32 = {.describe = single_describe,
                                                       .cycles = single_cycles,
                                                       .registers = single_registers,
                                                       .symbol = single_symbol};

/* --- Maximum of runs of words (device/max_partials.S): partials, words. --- */

enum { MAXP_SETUP = 19, MAXP_WORD = 5, MAXP_IDLE = 10 };

static bool maxp_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    if (!kernel_check_param(spec, 0, 1, 4096, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 1, 1 << 16, 1, error)) return false;
    const uint64_t run = 4 * (uint64_t)spec->p[1];
    kernel_operand_add(ret, run, 4, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F16_PAIR);
    kernel_operand_add(ret, run * spec->p[0], 4, KERNEL_READ, KERNEL_MEMORY_ANY, KERNEL_F16_PAIR);
    return true;
}

static uint64_t maxp_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t words = kernel_share(spec->p[1], w);
        slots[w] = words ? MAXP_SETUP + words * (MAXP_WORD + spec->p[0]) : MAXP_IDLE;
    }
    return kernel_time_single(lane, 4, slots);
}

static uint32_t maxp_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1];
    return 2;
}

const struct kernel_family kernel_family_MAX_PARTIALS = {
    .describe = maxp_describe, .cycles = maxp_cycles, .scalars = maxp_scalars};
