/* Matrix products (device/gemm.S). Two bodies:
 *
 *   stream   rows >= 18, initialise: the AMP pipeline never drains between coefficient groups; a
 *            worker with n rows takes 4n + 3 slots per group.
 *   drained  everything else: every launch fills and drains the pipeline.
 *
 * The closed form replays the supervisor's loop over the groups with those slot counts. */
#include "kernel/kernel_family.h"

enum { GEMM_STREAM_MIN_ROWS = 18, GEMM_STREAM_MAX_ROWS = 768, GEMM_MAX_ROWS = 6138 };

/* The slots of one launch beside 4 per row, by its place in the walk over the groups. */
enum {
    GEMM_SETUP_SLOTS = 34,  /* first launch: split, pointers */
    GEMM_GROUP_SLOTS = 3,   /* add, rpt, exit */
    GEMM_COLUMN_SLOTS = 2,  /* first K group of a later column group */
    GEMM_DRAIN_SLOTS = 6,   /* last launch */
    GEMM_FILL_SLOTS = 14,   /* drained body */
};

struct gemm_shape {
    uint32_t rows, groups, columns, accumulate, interleaved;
};

static struct gemm_shape gemm_shape(const struct kernel_spec *spec, uint32_t k_width) {
    return (struct gemm_shape){spec->p[0], spec->p[1] / k_width, spec->p[2] / 16, spec->p[3],
                               spec->p[4]};
}

static bool gemm_is_stream(const struct gemm_shape *s) {
    return !s->accumulate && s->rows >= GEMM_STREAM_MIN_ROWS && s->rows <= GEMM_STREAM_MAX_ROWS;
}

static bool gemm_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    const uint32_t k_width = 16;
    if (!kernel_check_param(spec, 0, 1, GEMM_MAX_ROWS, 1, error)) return false;
    if (!kernel_check_param(spec, 1, k_width, k_width * 2048, k_width, error)) return false;
    if (!kernel_check_param(spec, 2, 16, 16 * 2048, 16, error)) return false;
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, 4, 0, 1, 1, error)) return false;
    const struct gemm_shape s = gemm_shape(spec, k_width);
    const uint64_t panel = 32 * (uint64_t)s.rows;
    const bool rereads = s.groups > 1 || s.accumulate;
    kernel_operand_add(ret, panel * s.columns, 32,
                       s.accumulate ? KERNEL_READ_WRITE : KERNEL_WRITE,
                       rereads ? KERNEL_MEMORY_INTERLEAVED : KERNEL_MEMORY_ANY);
    kernel_operand_add(ret, panel * s.groups, 32, KERNEL_READ, KERNEL_MEMORY_ANY);
    kernel_operand_add(ret, 512 * (uint64_t)s.groups * s.columns, 32, KERNEL_READ,
                       s.interleaved ? KERNEL_MEMORY_INTERLEAVED : KERNEL_MEMORY_ANY);
    ret->separate[0] = 1 << 1;
    ret->useful_work = (uint64_t)s.rows * s.groups * s.columns * 4;
    return true;
}

/* Rows of worker w: contiguous blocks, the first rows mod 6 workers one more. */
static uint32_t gemm_rows(uint32_t rows, uint32_t w) {
    return rows / TARGET_N_WORKERS + (w < rows % TARGET_N_WORKERS);
}

static void gemm_launch(struct kernel_time *t, const struct gemm_shape *s, uint32_t extra) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t n = gemm_rows(s->rows, w);
        slots[w] = n || gemm_is_stream(s) ? 4 * n + extra : 2;
    }
    kernel_time_sync(t);
    kernel_time_issue_n(t, s->interleaved ? 32 : 64);
    kernel_time_runall(t, slots);
    kernel_time_issue_n(t, 2);
}

static uint64_t gemm_cycles_of(const struct gemm_shape *s) {
    struct kernel_time t;
    kernel_time_begin(&t, KERNEL_TIME_LANE);
    kernel_time_issue_n(&t, 40);
    const bool stream = gemm_is_stream(s);
    for (uint32_t j = 0; j < s->columns; j++)
        for (uint32_t k = 0; k < s->groups; k++) {
            uint32_t extra = stream ? GEMM_GROUP_SLOTS : GEMM_FILL_SLOTS;
            if (j == 0 && k == 0) extra += GEMM_SETUP_SLOTS;
            else if (k == 0) extra += GEMM_COLUMN_SLOTS;
            if (stream && j == s->columns - 1 && k == s->groups - 1) extra += GEMM_DRAIN_SLOTS;
            gemm_launch(&t, s, extra);
        }
    kernel_time_sync(&t);
    return kernel_time_end(&t, KERNEL_TIME_LANE);
}

static uint64_t gemm_cycles(const struct kernel_spec *spec) {
    const struct gemm_shape s = gemm_shape(spec, 16);
    return gemm_cycles_of(&s);
}

static uint32_t gemm_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const struct gemm_shape s = gemm_shape(spec, 16);
    ret[0] = s.rows;
    ret[1] = s.groups;
    ret[2] = s.columns;
    return 3;
}

static const char *gemm_symbol(const struct kernel_spec *spec) {
    const struct gemm_shape s = gemm_shape(spec, 16);
    static const char *const names[2][2][2] = {
        {{"gemm_f16_drained_std", "gemm_f16_drained"},
         {"gemm_f16_drained_acc_std", "gemm_f16_drained_acc"}},
        {{"gemm_f16_std", "gemm_f16"}, {NULL, NULL}},
    };
    return names[gemm_is_stream(&s)][s.accumulate][s.interleaved];
}

const struct kernel_family kernel_family_GEMM_F16 = {
    .describe = gemm_describe,
    .cycles = gemm_cycles,
    .scalars = gemm_scalars,
    .symbol = gemm_symbol,
};
