/* Matrix products. Two bodies:
 *
 *   stream   device/gemm.S: initialise, 18..768 rows. The AMP pipeline never drains between
 *            coefficient groups; a worker with n rows takes 4n + 3 slots per group.
 *   drained  device/gemm_drained.S: everything else; every launch fills and drains the pipeline.
 *
 * A batch is one call for matrices that follow each other in all operands; the pipeline of `stream`
 * does not drain between them either.
 *
 * The closed form walks over the groups as the supervisor does: per group the coefficient loads, a
 * launch of 4n + constant slots, and the instructions behind it. */
#include "kernel/kernel_family.h"

enum { GEMM_STREAM_MIN_ROWS = 18, GEMM_STREAM_MAX_ROWS = 768, GEMM_MAX_ROWS = 6138 };

/* Worker slots beside 4 per row. */
enum {
    STREAM_SETUP = 33,  /* first launch */
    STREAM_GROUP = 3,   /* add, rpt, exit */
    STREAM_COLUMN = 2,  /* first K group of a column group: next out column */
    STREAM_DRAIN = 5,   /* last launch */
    STREAM_MATRIX = 2,  /* last launch of a matrix, if another one follows */
    DRAINED_COLUMN = 2, /* first K group of a later column group */
    DRAINED_MATRIX = 1, /* of a later matrix */
};

/* Entries of a body: one matrix; matrices of one column group; of several. */
enum gemm_variant { GEMM_ONE, GEMM_NEXT, GEMM_BATCH };
enum { GEMM_BATCH_SHIFT = 12 };

struct gemm_shape {
    uint32_t rows, groups, columns; /* columns: groups of `width` */
    uint32_t width;                 /* columns of a coefficient group; its bytes are 32 each */
    uint32_t batch;
    enum gemm_variant variant;
    bool accumulate, interleaved, f8, f32, stream;
};

/* K values of a coefficient group: 512 bytes over 16 columns. */
static uint32_t gemm_k_width(const struct kernel_spec *spec) {
    if (spec->kernel == KERNEL_GEMM_F32) return 8;
    return spec->kernel == KERNEL_GEMM_F8 ? 32 : 16;
}

/* F32 results of F16 operands come from one of the two sets of units. */
static uint32_t gemm_width(const struct kernel_spec *spec) {
    return spec->kernel == KERNEL_GEMM_F16_F32 ? 8 : 16;
}

static uint32_t gemm_batch_param(const struct kernel_spec *spec) {
    return spec->kernel == KERNEL_GEMM_F8 ? 7 : 5;
}

static struct gemm_shape gemm_shape(const struct kernel_spec *spec) {
    struct gemm_shape s = {.rows = spec->p[0], .width = gemm_width(spec)};
    s.columns = spec->p[2] / s.width;
    s.f8 = spec->kernel == KERNEL_GEMM_F8;
    s.f32 = spec->kernel == KERNEL_GEMM_F32;
    s.groups = spec->p[1] / gemm_k_width(spec);
    s.accumulate = spec->p[3] != 0;
    s.interleaved = spec->p[4] != 0;
    s.batch = MAX(spec->p[gemm_batch_param(spec)], 1);
    s.variant = s.batch == 1 ? GEMM_ONE : s.columns == 1 ? GEMM_NEXT : GEMM_BATCH;
    s.stream =
        !s.f32 && !s.accumulate && s.rows >= GEMM_STREAM_MIN_ROWS && s.rows <= GEMM_STREAM_MAX_ROWS;
    return s;
}

static bool gemm_check_f8(const struct kernel_spec *spec, GError **error) {
    const int32_t scale = (int32_t)spec->p[5];
    if (scale < -32 || scale > 31)
        return kernel_refuse(spec, 5, "scale", "-32..31, the sum of both exponents", error);
    return kernel_check_param(spec, 6, 0, 3, 1, error);
}

static bool gemm_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                          GError **error) {
    const uint32_t k_width = gemm_k_width(spec), width = gemm_width(spec);
    if (!kernel_check_param(spec, 0, 1, GEMM_MAX_ROWS, 1, error)) return false;
    if (!kernel_check_param(spec, 1, k_width, k_width * 2048, k_width, error)) return false;
    if (!kernel_check_param(spec, 2, width, width * 2047, width, error)) return false;
    if (!kernel_check_param(spec, 3, 0, 1, 1, error)) return false;
    if (!kernel_check_param(spec, 4, 0, 1, 1, error)) return false;
    if (spec->kernel == KERNEL_GEMM_F8 && !gemm_check_f8(spec, error)) return false;
    if (!kernel_check_param(spec, gemm_batch_param(spec), 0, KERNEL_MAX_BATCH, 1, error))
        return false;
    const struct gemm_shape s = gemm_shape(spec);
    const uint64_t panel = 32 * (uint64_t)s.rows * s.batch;
    const enum kernel_format format = s.f8 ? KERNEL_F8 : s.f32 ? KERNEL_F32 : KERNEL_F16;
    const bool rereads = !s.f32 && (s.groups > 1 || s.accumulate);
    kernel_operand_add(ret, (s.f32 ? 2 : 1) * panel * s.columns, 32,
                       s.accumulate ? KERNEL_READ_WRITE : KERNEL_WRITE,
                       rereads ? KERNEL_MEMORY_INTERLEAVED : KERNEL_MEMORY_ANY,
                       s.f32 || width == 8 ? KERNEL_F32 : KERNEL_F16);
    kernel_operand_add(ret, panel * s.groups, 32, KERNEL_READ, KERNEL_MEMORY_ANY, format);
    kernel_operand_add(ret, 32 * width * (uint64_t)s.groups * s.columns * s.batch, 32, KERNEL_READ,
                       s.interleaved ? KERNEL_MEMORY_INTERLEAVED : KERNEL_MEMORY_ANY, format);
    if (!s.f32) ret->separate[0] = 1 << 1;
    ret->useful_work = (uint64_t)s.rows * s.groups * s.columns * s.batch * (s.f32 ? 8 : 4);
    return true;
}

static uint32_t gemm_f32_slots(uint32_t n, bool init) {
    if (n == 0) return 2;
    if (init) return 16 * n + 10;
    return n == 1 ? 36 : 20 * n + 18;
}

static uint32_t gemm_drained_slots(uint32_t n, bool init) {
    if (n >= 3) return 4 * n + (init ? 13 : 15);
    const uint32_t few[2][3] = {{2, 16, 23}, {2, 12, 19}};
    return few[init][n];
}

/* First launch: split, pointers, choice of the body for n rows. */
static uint32_t gemm_drained_setup(uint32_t n) {
    const uint32_t few[3] = {35, 33, 29};
    return n >= 3 ? 25 : few[n];
}

struct gemm_walk {
    struct gemm_shape s;
    struct kernel_time t;
    uint32_t base[TARGET_N_WORKERS], base_init[TARGET_N_WORKERS], setup[TARGET_N_WORKERS];
};

/* One group: wait, coefficients, launch; `extra` slots on top of the body's, and the set-up. */
static void gemm_group(struct gemm_walk *g, bool init, uint32_t extra, bool setup) {
    uint32_t slots[TARGET_N_WORKERS];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++)
        slots[w] = (init ? g->base_init[w] : g->base[w]) + extra + (setup ? g->setup[w] : 0);
    kernel_time_sync(&g->t);
    kernel_time_issue_n(&g->t, g->s.width * (g->s.interleaved ? 2 : 4));
    kernel_time_runall(&g->t, slots);
}

/* gemm.S: gemm_loop_k1, entered with column groups (or matrices of one) - 1 not yet known. */
static void gemm_prologue_k1(struct gemm_walk *g, bool several) {
    kernel_time_issue_n(&g->t, TARGET_SUPER_RESULT_CYCLES); /* until its branch */
    if (several)
        kernel_time_issue_n(&g->t, TARGET_SUPER_BRANCH_CYCLES + TARGET_SUPER_STORE_CYCLES + 1);
    else kernel_time_issue_n(&g->t, 1 + TARGET_SUPER_STORE_CYCLES + TARGET_SUPER_BRANCH_CYCLES);
}

/* The supervisor's instructions between call and the first sync. */
static void gemm_prologue(struct gemm_walk *g, uint32_t lane) {
    enum { STORE = TARGET_SUPER_STORE_CYCLES, BRANCH = TARGET_SUPER_BRANCH_CYCLES };
    const struct gemm_shape *s = &g->s;
    const bool k1 = s->groups == 1, batch = s->variant == GEMM_BATCH;
    kernel_time_begin(&g->t, lane);
    kernel_time_issue_n(&g->t, 1 + TARGET_SUPER_PUT_CYCLES);
    if (s->f8) kernel_time_issue_n(&g->t, 2 * TARGET_SUPER_PUT_CYCLES);
    if (batch) kernel_time_issue_n(&g->t, 3); /* the split of m7 */
    if (!s->stream)
        kernel_time_issue_n(&g->t, 2 + 5 * STORE + 4 + BRANCH + 1 + (batch ? 2 + STORE : 0));
    else if (!k1)
        kernel_time_issue_n(&g->t, 6 + 5 * STORE + BRANCH + 2 + (batch ? 3 + 2 * STORE : 0));
    else kernel_time_issue_n(&g->t, 3 + 4 * STORE + 1 + BRANCH);
    if (s->stream && k1 && batch)
        kernel_time_issue_n(&g->t, TARGET_SUPER_RESULT_CYCLES - 1 + 1 + STORE + 1);
    else if (s->stream && k1) gemm_prologue_k1(g, s->columns * s->batch > 1);
}

/* `inner` launches walk in one loop, then one more with another entry (gemm.S: gemm_group and
 * gemm_last); `outer` times. */
static void gemm_walk_stream(struct gemm_walk *g, uint32_t inner, uint32_t outer) {
    const bool k1 = g->s.groups == 1;
    const uint32_t matrix = g->s.variant == GEMM_ONE ? 0 : STREAM_MATRIX;
    const uint32_t step = k1 && g->s.variant == GEMM_NEXT ? matrix : 0; /* launches are matrices */
    for (uint32_t j = 0; j < outer; j++) {
        for (uint32_t k = 0; k < inner; k++) {
            const bool first = k1 || k == 0;
            gemm_group(g, first, (first ? STREAM_COLUMN : 0) + step, j == 0 && k == 0);
            kernel_time_issue(&g->t, 1);
            kernel_time_issue(&g->t, k + 1 < inner ? TARGET_SUPER_BRANCH_CYCLES : 1);
        }
        if (inner > 0) {
            kernel_time_issue(&g->t, j + 1 < outer ? TARGET_SUPER_BRANCH_CYCLES : 1);
            if (j + 1 == outer) kernel_time_issue(&g->t, 1);
        }
        gemm_group(g, k1, (k1 ? STREAM_COLUMN : 0) + (j + 1 == outer ? STREAM_DRAIN : matrix),
                   inner == 0);
        kernel_time_issue(&g->t, 1);
        kernel_time_issue(&g->t, 1);
        kernel_time_issue(&g->t, j + 1 < outer ? TARGET_SUPER_BRANCH_CYCLES : 1);
    }
}

/* Behind the last column group of matrix b: the next one's counts (both batch loops). */
static void gemm_batch_step(struct gemm_walk *g, uint32_t b) {
    const bool last = b + 1 == g->s.batch, ends = b + 2 == g->s.batch;
    kernel_time_issue(&g->t, 1);
    kernel_time_issue(&g->t, last ? TARGET_SUPER_BRANCH_CYCLES : 1);
    if (last) return;
    kernel_time_issue(&g->t, 1);
    if (!g->s.stream) {
        kernel_time_issue_n(&g->t, 2);
        kernel_time_issue(&g->t, TARGET_SUPER_BRANCH_CYCLES);
        return;
    }
    kernel_time_issue(&g->t, TARGET_SUPER_RESULT_CYCLES); /* matrices left, until its branch */
    kernel_time_issue(&g->t, ends ? 1 : TARGET_SUPER_BRANCH_CYCLES);
    if (!ends) return;
    kernel_time_issue(&g->t, 1);
    kernel_time_issue(&g->t, TARGET_SUPER_BRANCH_CYCLES);
}

/* gemm.S: gemm_batch_loop. Two or more K groups, column groups and matrices. */
static void gemm_walk_batch(struct gemm_walk *g) {
    const struct gemm_shape *s = &g->s;
    for (uint32_t b = 0; b < s->batch; b++)
        for (uint32_t j = 0; j < s->columns; j++) {
            const bool last = j + 1 == s->columns;
            for (uint32_t k = 0; k + 1 < s->groups; k++) {
                gemm_group(g, k == 0, k == 0 ? STREAM_COLUMN : 0, b + j + k == 0);
                kernel_time_issue(&g->t, 1);
                kernel_time_issue(&g->t, k + 2 < s->groups ? TARGET_SUPER_BRANCH_CYCLES : 1);
            }
            kernel_time_issue(&g->t, last ? 1 : TARGET_SUPER_BRANCH_CYCLES);
            if (last) kernel_time_issue(&g->t, 1);
            const uint32_t end = b + 1 == s->batch ? STREAM_DRAIN : STREAM_MATRIX;
            gemm_group(g, false, last ? end : 0, false);
            kernel_time_issue_n(&g->t, 3);
            if (last) gemm_batch_step(g, b);
            else kernel_time_issue(&g->t, TARGET_SUPER_BRANCH_CYCLES);
        }
}

/* Column groups of all matrices in turn. */
static void gemm_walk_drained(struct gemm_walk *g) {
    const struct gemm_shape *s = &g->s;
    const uint32_t n = s->columns * s->batch;
    for (uint32_t j = 0; j < n; j++) {
        const bool matrix = j % s->columns == 0;
        const uint32_t later = (matrix ? DRAINED_MATRIX : DRAINED_COLUMN) + s->f32;
        for (uint32_t k = 0; k < s->groups; k++) {
            gemm_group(g, k == 0 && !s->accumulate, j > 0 && k == 0 ? later : 0, j + k == 0);
            kernel_time_issue(&g->t, 1);
            kernel_time_issue(&g->t, k + 1 < s->groups ? TARGET_SUPER_BRANCH_CYCLES : 1);
        }
        kernel_time_issue_n(&g->t, 2);
        if (s->variant == GEMM_BATCH && (j + 1) % s->columns == 0)
            gemm_batch_step(g, j / s->columns);
        else kernel_time_issue(&g->t, j + 1 < n ? TARGET_SUPER_BRANCH_CYCLES : 1);
    }
}

static uint64_t gemm_cycles(const struct kernel_spec *spec, uint32_t lane) {
    struct gemm_walk g = {.s = gemm_shape(spec)};
    const struct gemm_shape *s = &g.s;
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint32_t n = kernel_block(s->rows, w);
        g.base[w] = s->stream ? 4 * n + STREAM_GROUP : gemm_drained_slots(n, false);
        g.base_init[w] = s->stream ? g.base[w] : gemm_drained_slots(n, true);
        g.setup[w] = s->stream ? STREAM_SETUP : gemm_drained_setup(n);
        if (!s->f32) continue;
        g.base[w] = gemm_f32_slots(n, false);
        g.base_init[w] = gemm_f32_slots(n, true);
        g.setup[w] = n ? 29 : 25;
    }
    gemm_prologue(&g, lane);
    const uint32_t launches = s->columns * s->batch;
    if (!s->stream) gemm_walk_drained(&g);
    else if (s->groups > 1 && s->variant == GEMM_BATCH) gemm_walk_batch(&g);
    else if (s->groups > 1) gemm_walk_stream(&g, s->groups - 1, launches);
    else if (s->variant == GEMM_BATCH) gemm_walk_stream(&g, s->columns - 1, s->batch);
    else gemm_walk_stream(&g, launches - 1, 1);
    kernel_time_issue(&g.t, 1);
    kernel_time_sync(&g.t);
    return kernel_time_end(&g.t, lane);
}

static uint32_t gemm_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    const struct gemm_shape s = gemm_shape(spec);
    ret[0] = s.rows;
    ret[1] = s.groups;
    ret[2] =
        s.variant == GEMM_BATCH ? s.columns | s.batch << GEMM_BATCH_SHIFT : s.columns * s.batch;
    ret[3] = spec->p[5] & 0x3f;
    ret[4] = 3 ^ spec->p[6];
    return s.f8 ? 5 : 3;
}

/* [variant][interleaved]. */
#define GEMM_NAMES(stem)                                                                           \
    {                                                                                              \
        {stem "_std", stem "_il"}, {stem "_next_std", stem "_next_il"}, {                          \
            stem "_batch_std", stem "_batch_il"                                                    \
        }                                                                                          \
    }
/* Bodies: drained init, drained acc, stream, stream with one K group. */
#define GEMM_BODIES(type)                                                                          \
    {                                                                                              \
        GEMM_NAMES("gemm_drained_" type "_init"), GEMM_NAMES("gemm_drained_" type "_acc"),         \
            GEMM_NAMES("gemm_" type), GEMM_NAMES("gemm_" type "_k1")                               \
    }
static const char *const gemm_names[3][4][3][2] = {GEMM_BODIES("f16"), GEMM_BODIES("f8"),
                                                   GEMM_BODIES("f16s")};
static const char *const gemm_f32_names[2][3][2] = {GEMM_NAMES("gemm_drained_f32_init"),
                                                    GEMM_NAMES("gemm_drained_f32_acc")};
#undef GEMM_BODIES
#undef GEMM_NAMES

static const char *gemm_symbol(const struct kernel_spec *spec) {
    const struct gemm_shape s = gemm_shape(spec);
    if (s.f32) return gemm_f32_names[s.accumulate][s.variant][s.interleaved];
    const uint32_t body = s.stream ? (s.groups == 1 ? 3 : 2) : s.accumulate;
    return gemm_names[s.width == 8 ? 2 : s.f8][body][s.variant][s.interleaved];
}

#define GEMM_FAMILY(name)                                                                          \
    const struct kernel_family kernel_family_##name = {.describe = gemm_describe,                  \
                                                       .cycles = gemm_cycles,                      \
                                                       .scalars = gemm_scalars,                    \
                                                       .symbol = gemm_symbol};
GEMM_FAMILY(GEMM_F16)
GEMM_FAMILY(GEMM_F8)
GEMM_FAMILY(GEMM_F16_F32)
GEMM_FAMILY(GEMM_F32)

/* --- Packed result: rows, inner, columns, group, interleaved_weights. --- */

enum { PACKED_SETUP = 62, PACKED_ROWS = 4, PACKED_PANEL = 16, PACKED_REACH_BYTES = 4088 };

/* Rows of worker w and where they start. */
static uint32_t packed_rows(uint32_t rows, uint32_t w, uint32_t *ret_start) {
    const uint32_t blocks = rows / PACKED_ROWS;
    *ret_start = w * blocks / TARGET_N_WORKERS * PACKED_ROWS;
    return kernel_block(blocks, w) * PACKED_ROWS;
}

/* Panel boundaries inside them. */
static uint32_t packed_boundaries(uint32_t rows, uint32_t w, uint32_t *ret_rows) {
    uint32_t start;
    *ret_rows = packed_rows(rows, w, &start);
    return (start % PACKED_PANEL + *ret_rows - 1) / PACKED_PANEL;
}

static bool packed_describe(const struct kernel_spec *spec, struct kernel_needs *ret,
                            GError **error) {
    const uint32_t *p = spec->p;
    if (!kernel_check_param(spec, 0, 2 * PACKED_PANEL, GEMM_STREAM_MAX_ROWS, PACKED_PANEL, error))
        return false;
    if (!kernel_check_param(spec, 1, 32, 16 * 2048, 16, error)) return false;
    if (!kernel_check_param(spec, 2, 16, 16 * 2047, 16, error)) return false;
    if (!kernel_check_param(spec, 3, p[2], 16 * 2047, 16, error)) return false;
    if (!kernel_check_param(spec, 4, 0, 1, 1, error)) return false;
    const uint64_t step = 32 * (uint64_t)p[3];
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        uint32_t n;
        const uint32_t b = packed_boundaries(p[0], w, &n);
        if (b * (step - 512) + 32 * (uint64_t)n > PACKED_REACH_BYTES || step > PACKED_REACH_BYTES)
            return kernel_refuse(spec, 3, "reach", "less: a worker's rows span at most 4088 bytes",
                                 error);
    }
    kernel_operand_add(ret, (p[0] / 16 - 1) * step + 32 * (uint64_t)p[2], 32, KERNEL_WRITE,
                       KERNEL_MEMORY_INTERLEAVED, KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)p[0] * p[1], 32, KERNEL_READ, KERNEL_MEMORY_ANY,
                       KERNEL_F16);
    kernel_operand_add(ret, 2 * (uint64_t)p[1] * p[2], 32, KERNEL_READ,
                       p[4] ? KERNEL_MEMORY_INTERLEAVED : KERNEL_MEMORY_ANY, KERNEL_F16);
    ret->separate[0] = 1 << 1;
    ret->useful_work = (uint64_t)p[0] * (p[1] / 16) * (p[2] / 16) * 4;
    return true;
}

static uint64_t packed_cycles(const struct kernel_spec *spec, uint32_t lane) {
    struct gemm_walk g = {.s = {.rows = spec->p[0],
                                .groups = spec->p[1] / 16,
                                .columns = spec->p[2] / 16,
                                .width = 16,
                                .batch = 1,
                                .interleaved = spec->p[4] != 0,
                                .stream = true}};
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        uint32_t n;
        const uint32_t b = packed_boundaries(spec->p[0], w, &n);
        g.base[w] = g.base_init[w] = 4 * n + STREAM_GROUP + 1 + (b ? 2 * b + 1 : 0);
        g.setup[w] = PACKED_SETUP;
    }
    gemm_prologue(&g, lane);
    kernel_time_issue(&g.t, TARGET_SUPER_STORE_CYCLES); /* the step */
    gemm_walk_stream(&g, g.s.groups - 1, g.s.columns);
    kernel_time_issue(&g.t, 1);
    kernel_time_sync(&g.t);
    return kernel_time_end(&g.t, lane);
}

static uint32_t packed_scalars(const struct kernel_spec *spec, uint32_t *ret) {
    ret[0] = spec->p[0];
    ret[1] = spec->p[1] / 16;
    ret[2] = spec->p[2] / 16;
    ret[3] = 32 * spec->p[3];
    return 4;
}

static const char *packed_symbol(const struct kernel_spec *spec) {
    return spec->p[4] ? "gemm_f16_packed_il" : "gemm_f16_packed_std";
}

const struct kernel_family kernel_family_GEMM_PACKED = {.describe = packed_describe,
                                                        .cycles = packed_cycles,
                                                        .scalars = packed_scalars,
                                                        .symbol = packed_symbol};
