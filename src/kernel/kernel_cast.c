/* Casts of halves to F8 (device/cast_f16_f8.S, cast_panels.S). */
#include "kernel/kernel_family.h"

enum { CAST_SLOTS = 19, CAST_IDLE = 12, CAST_PANELS_SETUP = 26, CAST_PANELS_IDLE = 14 };

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
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
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
    return kernel_time_single(lane, 5, slots);
}

static uint32_t cast_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] / 8;
    ret[1] = -spec->p[1] & 63;
    ret[2] = spec->p[3] ? 0 : 3;
    return 3;
}

static const char *cast_symbol(const struct kernel_spec *spec) {
    return spec->p[2] ? "cast_f16_f8_std" : "cast_f16_f8_il";
}

/* --- In place: elements, scale, standard, f152, shift. --- */

static bool shifted_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                             GError **error) {
    if (!kernel_check_param(spec, 0, 8, 1 << 18, 8, error)) return false;
    if (!cast_check_scale(spec, 1, error)) return false;
    if (!kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
    const bool standard = spec->p[2] != 0;
    const uint32_t align = standard ? 8 : 16;
    if (!kernel_check_param(spec, 4, align, 1 << 18, align, error)) return false;
    kernel_operand_add(ret, 2 * (uint64_t)spec->p[0] + spec->p[4], align, KERNEL_READ_WRITE,
                       standard ? KERNEL_MEMORY_ANY : KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    ret->useful_work = spec->p[0] / 2;
    return true;
}

/* The supervisor's n steps towards the next chunk beside a launch: step i needs the result of step
 * needs[i] (itself: of none), ready 7 cycles after that issued. */
static void shifted_next(struct kernel_time *t, const uint8_t *needs, uint32_t n) {
    uint64_t ready[8];
    BUG_ON(n > ARRAY_LEN(ready));
    for (uint32_t i = 0; i < n; i++) {
        if (needs[i] != i) t->now = MAX(t->now, ready[needs[i]]);
        kernel_time_issue(t, 1);
        ready[i] = t->now - 1 + TARGET_SUPER_RESULT_CYCLES;
    }
}

/* One chunk: three stores, the last behind the argument that was loaded first (`in`), the launch, the
 * steps towards the next chunk, the sync. */
static void shifted_launch(struct kernel_time *t, uint64_t in, const uint32_t *slots,
                           const uint8_t *needs, uint32_t n) {
    kernel_time_issue(t, TARGET_SUPER_STORE_CYCLES);
    kernel_time_issue(t, TARGET_SUPER_STORE_CYCLES);
    t->now = MAX(t->now, in);
    kernel_time_issue(t, TARGET_SUPER_STORE_CYCLES);
    kernel_time_runall(t, slots);
    shifted_next(t, needs, n);
    kernel_time_sync(t);
}

static uint64_t shifted_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t left = spec->p[0] / 8, chunk = spec->p[4] / 8;
    struct kernel_time t;
    kernel_time_begin(&t, lane);
    kernel_time_issue_n(&t, TARGET_SUPER_STORE_ADDRESS_CYCLES + 2 * TARGET_SUPER_STORE_CYCLES + 1);
    const uint64_t in = t.now - 1 + TARGET_SUPER_RESULT_CYCLES;
    for (; left > 0; left -= MIN(chunk, left), chunk *= 2) {
        uint32_t slots[TARGET_N_WORKERS];
        for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
            const uint32_t vectors = kernel_share(MIN(chunk, left), w);
            slots[w] = vectors ? CAST_SLOTS + (2 + spec->p[2]) * vectors : CAST_IDLE;
        }
        static const uint8_t NEEDS[] = {0, 1, 2, 3, 0, 1, 3};
        shifted_launch(&t, in, slots, NEEDS, ARRAY_LEN(NEEDS));
        kernel_time_issue(&t, left > chunk ? TARGET_SUPER_BRANCH_CYCLES : 1);
    }
    kernel_time_issue(&t, 1);
    return kernel_time_end(&t, lane);
}

static uint32_t shifted_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] / 8;
    ret[1] = -spec->p[1] & 63;
    ret[2] = spec->p[3] ? 0 : 3;
    ret[3] = spec->p[4] / 8;
    return 4;
}

static const char *shifted_symbol(const struct kernel_spec *spec) {
    return spec->p[2] ? "cast_shifted_f8_std" : "cast_shifted_f8_il";
}

const struct kernel_family kernel_family_CAST_SHIFTED_F8 = {.describe = shifted_describe,
                                                            .cycles = shifted_cycles,
                                                            .scalars = shifted_scalars,
                                                            .symbol = shifted_symbol};

static bool panels_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 32, 1 << 16, 32, error)) return false;
    if (!cast_check_scale(spec, 2, error)) return false;
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
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
    return kernel_time_single(lane, 6, slots);
}

static uint32_t panels_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 16;
    ret[2] = -spec->p[2] & 63;
    ret[3] = spec->p[3] ? 0 : 3;
    return 4;
}

/* --- Panels in place: rows, columns, scale, f152, shift. --- */

static bool shifted_panels_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                                    GError **error) {
    if (!kernel_check_param(spec, 0, 1, 8192, 1, error)) return false;
    if (!kernel_check_param(spec, 1, 32, 1 << 16, 32, error)) return false;
    if (!cast_check_scale(spec, 2, error)) return false;
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
    const uint32_t pair = 32 * spec->p[0];
    if (!kernel_check_param(spec, 4, pair, 1 << 19, pair, error)) return false;
    const uint64_t n = (uint64_t)spec->p[0] * spec->p[1];
    kernel_operand_add(ret, 2 * n + spec->p[4], 32, KERNEL_READ_WRITE, KERNEL_MEMORY_INTERLEAVED,
                       KERNEL_F16);
    ret->useful_work = n / 2;
    return true;
}

static uint64_t shifted_panels_cycles(const struct kernel_spec *spec, uint32_t lane) {
    uint32_t left = spec->p[1] / 32, chunk = spec->p[4] / (32 * spec->p[0]);
    struct kernel_time t;
    kernel_time_begin(&t, lane);
    kernel_time_issue_n(&t, TARGET_SUPER_STORE_ADDRESS_CYCLES + 3 * TARGET_SUPER_STORE_CYCLES + 8);
    const uint64_t in = t.now - 1 + TARGET_SUPER_RESULT_CYCLES;
    for (; left > 0; left -= MIN(chunk, left), chunk *= 2) {
        uint32_t slots[TARGET_N_WORKERS];
        for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
            const uint32_t rows = kernel_block(spec->p[0], w);
            slots[w] = rows ? CAST_PANELS_SETUP + 2 * MIN(chunk, left) * (4 * rows + 6)
                            : CAST_PANELS_IDLE;
        }
        static const uint8_t NEEDS[] = {0, 1, 2, 0, 0, 2, 4, 5};
        shifted_launch(&t, in, slots, NEEDS, ARRAY_LEN(NEEDS));
        kernel_time_issue(&t, left > chunk ? TARGET_SUPER_BRANCH_CYCLES : 1);
    }
    kernel_time_issue(&t, 1);
    return kernel_time_end(&t, lane);
}

static uint32_t shifted_panels_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 32;
    ret[2] = -spec->p[2] & 63;
    ret[3] = spec->p[3] ? 0 : 3;
    ret[4] = spec->p[4] / (32 * spec->p[0]);
    return 5;
}

const struct kernel_family kernel_family_CAST_SHIFTED_PANELS = {
    .describe = shifted_panels_describe,
    .cycles = shifted_panels_cycles,
    .scalars = shifted_panels_scalars};

const struct kernel_family kernel_family_CAST_F16_F8 = {.describe = cast_describe,
                                                        .cycles = cast_cycles,
                                                        .scalars = cast_scalars,
                                                        .symbol = cast_symbol};
const struct kernel_family kernel_family_CAST_PANELS = {
    .describe = panels_describe, .cycles = panels_cycles, .scalars = panels_scalars};

/* --- Other widths (device/cast_wide.S): 4 slots per vector of 8 (F8) or 4. --- */

enum { WIDE_SETUP = 16, WIDE_IDLE = 10 };

/* Which way: bytes of an element of out and in, how many in a vector, slots of a vector, whether the
 * parameters scale and f152 exist. */
struct wide {
    uint32_t out, in, vector, slots, setup;
    bool f8;
};

static struct wide wide_of(const struct kernel_spec *spec) {
    switch (spec->kernel) {
    case KERNEL_CAST_F8_F16: return (struct wide){2, 1, 8, 4, 2, true};
    case KERNEL_CAST_F8_F32: return (struct wide){4, 1, 8, 12, 5, true};
    case KERNEL_CAST_F32_F16: return (struct wide){2, 4, 4, 4, 0, false};
    default: return (struct wide){4, 2, 4, 4, 0, false};
    }
}

static enum kernel_format wide_format(uint32_t bytes) {
    return bytes == 1 ? KERNEL_F8 : bytes == 2 ? KERNEL_F16 : KERNEL_F32;
}

static bool wide_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    const struct wide w = wide_of(spec);
    const uint64_t n = spec->p[0];
    if (!kernel_check_param(spec, 0, w.vector, 1 << 18, w.vector, error)) return false;
    if (w.f8 && !cast_check_scale(spec, 1, error)) return false;
    if (w.f8 && !kernel_check_param(spec, 2, 0, 1, 1, error)) return false;
    kernel_operand_add(ret, w.out * n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, wide_format(w.out));
    kernel_operand_add(ret, w.in * n, 8, KERNEL_READ, KERNEL_MEMORY_ANY, wide_format(w.in));
    ret->useful_work = n / 2;
    return true;
}

static uint64_t wide_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const struct wide k = wide_of(spec);
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t vectors = kernel_share(spec->p[0] / k.vector, w);
        slots[w] = (vectors ? WIDE_SETUP + k.slots * vectors : WIDE_IDLE) + k.setup;
    }
    return kernel_time_single(lane, k.f8 ? 5 : 3, slots);
}

static uint32_t wide_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const struct wide w = wide_of(spec);
    ret[0] = spec->p[0] / w.vector;
    if (!w.f8) return 1;
    ret[1] = spec->p[1] & 63;
    if (spec->kernel == KERNEL_CAST_F8_F32) ret[1] = (127 + spec->p[1]) << 3; /* 2^scale >> 20 */
    ret[2] = spec->p[2] ? 0 : 3;
    return 3;
}

const struct kernel_family kernel_family_CAST_F8_F32 = {
    .describe = wide_describe, .cycles = wide_cycles, .scalars = wide_scalars};
const struct kernel_family kernel_family_CAST_F8_F16 = {
    .describe = wide_describe, .cycles = wide_cycles, .scalars = wide_scalars};
const struct kernel_family kernel_family_CAST_F32_F16 = {
    .describe = wide_describe, .cycles = wide_cycles, .scalars = wide_scalars};
const struct kernel_family kernel_family_CAST_F16_F32 = {
    .describe = wide_describe, .cycles = wide_cycles, .scalars = wide_scalars};

/* --- F32 and F8 to F8: elements, scale, f152. --- */

enum { TO_F8_SETUP = 18, TO_F8_IDLE = 12, F32_F8_VECTOR = 7, F8_F8_VECTOR = 9 };

static bool to_f8_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                           GError **error) {
    const bool wide = spec->kernel == KERNEL_CAST_F32_F8;
    if (!kernel_check_param(spec, 0, 8, 1 << 18, 8, error)) return false;
    if (!cast_check_scale(spec, 1, error)) return false;
    if (!kernel_check_param(spec, 2, 0, wide ? 1 : 3, 1, error)) return false;
    const uint64_t n = spec->p[0];
    kernel_operand_add(ret, n, 8, KERNEL_WRITE, KERNEL_MEMORY_ANY, KERNEL_F8);
    kernel_operand_add(ret, wide ? 4 * n : n, 8, KERNEL_READ, KERNEL_MEMORY_ANY,
                       wide ? KERNEL_F32 : KERNEL_F8);
    ret->useful_work = n / 2;
    return true;
}

static uint64_t to_f8_cycles(const struct kernel_spec *spec, uint32_t lane) {
    const uint32_t narrow = spec->kernel == KERNEL_CAST_F8_F8;
    const uint32_t vector = narrow ? F8_F8_VECTOR : F32_F8_VECTOR;
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t vectors = kernel_share(spec->p[0] / 8, w);
        slots[w] = (vectors ? TO_F8_SETUP + vector * vectors : TO_F8_IDLE) + narrow;
    }
    return kernel_time_single(lane, 5 + narrow, slots);
}

static uint32_t to_f8_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0] / 8;
    ret[1] = -spec->p[1] & 63;
    ret[2] = spec->p[2] & 1 ? 0 : 3;
    if (spec->kernel == KERNEL_CAST_F32_F8) return 3;
    ret[3] = ret[2];
    ret[2] = spec->p[2] & 2 ? 0 : 3;
    return 4;
}

const struct kernel_family kernel_family_CAST_F32_F8 = {
    .describe = to_f8_describe, .cycles = to_f8_cycles, .scalars = to_f8_scalars};
const struct kernel_family kernel_family_CAST_F8_F8 = {
    .describe = to_f8_describe, .cycles = to_f8_cycles, .scalars = to_f8_scalars};
