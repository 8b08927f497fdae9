/* Fused execution where code is not what it was decoded from, or ends where it may not: stores into a
 * repeat body, into straight code, across the border of two elements; repeats that end with region 0;
 * registers that only a repeat without passes would write; stores that are loaded again in the same block
 * of rows with integer instructions between; deltas that pass below zero. All against plain scalar execution. */
#include "tile_build.h"

enum { LEFT = 0x90000, PARTIAL = 0xa8000, OUT = 0xc0000, BORDER = 0x54000, BYTES = 0x1000 };

struct scene {
    void (*program)(struct build *b, const struct scene *c);
    uint32_t entry, variant, undefined; /* undefined: bits as in struct tile_worker */
    uint32_t ahead;                     /* words that the store is ahead of the left operand; 0: apart */
    int32_t slack;
};

static void fill(struct build *b) {
    static const uint32_t AT[] = {LEFT, PARTIAL, OUT};
    for (uint32_t k = 0; k < ARRAY_LEN(AT); k++)
        for (uint32_t i = 0; i < BYTES; i += 4) {
            const uint64_t v = rand_u64(5, AT[k], i); /* halves of 1.0 to 2.0, or their negatives */
            put32(b, AT[k] + i, 0x3c003c00 | ((uint32_t)v & 0x83ff83ff));
        }
    for (uint32_t k = 0; k < 64; k++)
        b->tile.weights[k] = UINT64_C(0x3400340034003400) | (rand_u64(5, 1, k) & UINT64_C(0x83ff83ff83ff83ff));
    b->tile.weights_defined = UINT64_MAX;
    b->tile.weights_generation++;
}

static void packed(uint32_t *m, uint32_t a0, uint32_t a1, uint32_t a2) {
    m[0] = a0 | a2 << 21;
    m[1] = a1 | a2 >> 11 << 21;
}

static void run(const struct scene *c, struct tile_config config, struct build *b) {
    build_init(b, config);
    b->at = c->entry;
    c->program(b, c);
    fill(b);
    tile_start_workers(&b->tile, c->entry, DATA, 1, 0);
    struct tile_worker *w = &b->tile.w[0];
    packed(&w->m[4], LEFT + 0x800, PARTIAL + 0x800, c->ahead ? LEFT + 0x800 + 8 * c->ahead : OUT + 0x808);
    w->m[1] = 2 | 0x3fe << 10;
    w->m[6] = w->m[7] = w->m[8] = 0;
    for (uint32_t r = 0; r < 8; r++) w->a[r] = 0x3c003c00 + r;
    for (uint32_t k = 0; k < 16; k++) w->acc.even[k] = w->acc.odd[k] = (float)k;
    w->acc_defined = UINT32_MAX;
    w->defined = UINT32_MAX & ~c->undefined;
    tile_run(&b->tile, 100000);
}

static struct tile_counters compared(const struct scene *c, enum tile_stop_reason end) {
    struct tile_counters ret = {0};
    static struct build x, y;
    run(c, (struct tile_config){.plain = true, .simd = TILE_SIMD_SCALAR}, &x);
    for (uint32_t simd = TILE_SIMD_SCALAR; simd <= (uint32_t)tile_simd_best(); simd++) {
        run(c, (struct tile_config){.simd = (enum tile_simd)simd}, &y);
        const struct tile *a = &x.tile, *b = &y.tile;
        g_assert_cmpint(a->stop.reason, ==, end);
        g_assert_cmpint(b->stop.reason, ==, end);
        g_assert_cmpuint(a->stop.cycle, ==, b->stop.cycle);
        g_assert_cmpmem(&a->fault, sizeof a->fault, &b->fault, sizeof b->fault);
        g_assert_cmpmem(a->w[0].m, sizeof a->w[0].m, b->w[0].m, sizeof b->w[0].m);
        g_assert_cmpmem(a->w, sizeof a->w, b->w, sizeof b->w);
        g_assert_true(memcmp(a->bytes, b->bytes, SRAM_BYTES) == 0);
        g_assert_true(memcmp(a->written, b->written, SRAM_WRITTEN_WORDS * 8) == 0);
        g_assert_cmpuint(a->counters.fetch_conflicts, ==, b->counters.fetch_conflicts);
        g_assert_cmpuint(a->counters.worker_slots, ==, b->counters.worker_slots);
        ret = b->counters;
        build_free(&y);
    }
    build_free(&x);
    return ret;
}

#define P(name) static void name(struct build *pb, const struct scene *c __attribute__((unused)))
#define b (*pb)

static void constant(struct build *pb, int reg, uint32_t v) {
    I(SETZI_M, reg, (int)(v & 0xfffff));
    I(OR_M_T, reg, reg, (int)(v & 0xfff00000));
}
static void align(struct build *pb) {
    if (b.at % 8) I(SETZI_M, 14, 0);
}

/* The last bundle of a body stores the word that its first one has from the second pass on. */
P(last_stores) {
    constant(&b, 8, W(ADD_S, 7, 7, 100) | 0x80000000u);
    constant(&b, 9, c->entry + 48);
    align(&b);
    g_assert_cmpuint(b.at, <=, c->entry + 48);
    while (b.at < c->entry + 40) I(SETZI_M, 14, 0);
    B(W(RPT_Z, 5, 1), FNOP);
    B(W(ADD_S, 7, 7, 1), FNOP);
    B(W(STM32, 8, 9, 15), FNOP);
    I(EXITZ, 15);
}
static void test_last_stores(void) {
    const struct scene c = {.program = last_stores, .entry = CODE};
    compared(&c, TILE_STOP_DONE);
}

/* A body across the border of elements: its first bundle, in the lower one, stores into the upper. */
P(body_border) {
    constant(&b, 8, W(ADD_S, 7, 7, 100) | 0x80000000u);
    constant(&b, 9, BORDER);
    while (b.at < BORDER - 16) I(SETZI_M, 14, 0);
    B(W(RPT_Z, 5, 1), FNOP);
    B(W(STM32, 8, 9, 15), FNOP);
    B(W(ADD_S, 7, 7, 1), FNOP);
    I(EXITZ, 15);
}
static void test_body_border(void) {
    const struct scene c = {.program = body_border, .entry = BORDER - 48};
    compared(&c, TILE_STOP_DONE);
}

/* The same in straight code. */
P(block_border) {
    constant(&b, 8, W(ADD_S, 7, 7, 100));
    constant(&b, 9, BORDER);
    while (b.at < BORDER - 4) I(SETZI_M, 14, 0);
    I(STM32, 8, 9, 15);
    I(ADD_S, 7, 7, 1);
    I(EXITZ, 15);
}
static void test_block_border(void) {
    const struct scene c = {.program = block_border, .entry = BORDER - 40};
    compared(&c, TILE_STOP_DONE);
}

/* Calls in the lower element store over an instruction behind them in the upper one. */
P(run_border) {
    constant(&b, 8, BORDER);
    while (b.at < BORDER - 64) I(SETZI_M, 14, 0);
    for (int k = 0; k < 8; k++)
        B(W(ST64STEP_S, k % 2 ? 6 : 4, 15, 8, 0), W(F16V4HIHOV4AMP, k % 2 ? 2 : 0, 14, 14, (k + 1) % 4));
    I(ADD_S, 7, 7, 1);
    I(ADD_S, 7, 7, 1);
    I(EXITZ, 15);
}
P(run_border_set) {
    /* a4:5 and a6:7, which the calls store, are instructions. */
    constant(&b, 9, W(ADD_S, 7, 7, 100));
    constant(&b, 10, OUT);
    for (int k = 0; k < 4; k++) I(STM32STEP, 9, 10, 15), I(ADD_S, 10, 10, 4);
    constant(&b, 10, OUT);
    I(LD64_Z, 4, 10, 15, 0);
    I(LD64_Z, 6, 10, 15, 1);
    run_border(&b, c);
}
static void test_run_border(void) {
    const struct scene c = {.program = run_border_set, .entry = BORDER - 64 - 80};
    compared(&c, TILE_STOP_DONE);
}

/* --- Traces. --- */

static void call(struct build *pb, uint32_t k, bool left) {
    const int phase = (int)(k % 4), result = phase % 2 ? 6 : 4;
    B(left ? W(LD2XST64PACE, 0, result, 4, 1, 0) : W(ST64PACE, result, 4, 1, 0),
      W(F16V4HIHOV4AMP, result, left ? 0 : 14, left ? 2 : 14, phase));
}

/* A repeat whose body ends with region 0 is a fault. */
P(region_end) {
    for (uint32_t k = 0; k < 12; k++) call(&b, k, true);
    B(W(RPT_Z, 3, 3), FNOP);
    for (uint32_t k = 0; k < 4; k++) call(&b, k, true);
}
static void test_region_end(void) {
    const struct scene c = {.program = region_end, .entry = TARGET_REGION1_BASE - 17 * 8};
    compared(&c, TILE_STOP_FAULT);
    const struct scene d = {.program = region_end, .entry = TARGET_REGION1_BASE - 18 * 8};
    compared(&d, TILE_STOP_FAULT); /* runs into words that were never written */
}

/* Only a body without passes writes the register that is read behind it. */
P(no_pass) {
    for (uint32_t k = 0; k < 8; k++) call(&b, k, true);
    B(W(RPT_R, 6, 4), FNOP);
    B(W(ADD_S, 7, 6, 8), FNOP);
    for (uint32_t k = 0; k < 4; k++) call(&b, k, true);
    B(W(ADD_R, 8, 8, 7), FNOP);
    for (uint32_t k = 0; k < 8; k++) call(&b, k, true);
    I(EXITZ, 15);
}
static void test_no_pass(void) {
    const struct scene c = {.program = no_pass, .entry = CODE, .undefined = 1u << 7};
    compared(&c, TILE_STOP_FAULT);
    const struct scene d = {.program = no_pass, .entry = CODE};
    const struct tile_counters n = compared(&d, TILE_STOP_DONE);
    if (tile_simd_best() != TILE_SIMD_SCALAR) g_assert_cmpuint(n.trace_slots, >=, 16);
}

/* The first result that a block of four rows stores is an operand that its last call loads, with integer
 * instructions between: `move` is what they move the left operand by. */
P(late_load) {
    const int move = 8 * ((int)c->ahead - 15 + 2 * c->slack);
    for (uint32_t k = 0; k < 32; k++) {
        const int phase = (int)(k % 4), result = phase % 2 ? 6 : 4;
        for (uint32_t j = 0; k == 15 && j < c->variant; j++) B(W(ADD_S, 7, 7, 1), FNOP);
        if (k == 15) B(W(ADD_S, 4, 4, move), FNOP);
        if (k == 16) B(W(ADD_S, 4, 4, -move), FNOP);
        B(W(LDST64PACE, 0, result, 4, 1, 0), W(F16V4HIHOV4AMP, result, 0, 14, phase));
    }
    I(EXITZ, 15);
}
static void test_late_load(void) {
    uint64_t traced = 0;
    for (uint32_t n = 0; n < 6; n++)
        for (uint32_t ahead = 17; ahead < 80; ahead += 2)
            for (int32_t slack = -2; slack <= 8; slack++) {
                const struct scene c = {.program = late_load, .entry = CODE, .variant = n, .ahead = ahead, .slack = slack};
                traced += compared(&c, TILE_STOP_DONE).trace_slots;
            }
    if (tile_simd_best() != TILE_SIMD_SCALAR) g_assert_cmpuint(traced, >, 10000);
}

/* Base plus delta, with a step that takes the delta below zero in the third pass. */
P(delta_below) {
    constant(&b, 8, OUT + 0x400);
    I(SETZI_M, 9, 8 * 4 * 2);
    align(&b);
    B(W(RPT_Z, (int)c->variant, 3), FNOP);
    for (int k = 0; k < 4; k++) B(W(ST64STEP_S, 4, 8, 9, -1), W(F16V4HIHOV4AMP, 6, 0, 14, k));
    I(EXITZ, 15);
}
static void test_delta_below(void) {
    for (uint32_t passes = 1; passes < 6; passes++) {
        const struct scene c = {.program = delta_below, .entry = CODE, .variant = passes};
        compared(&c, passes < 3 ? TILE_STOP_DONE : TILE_STOP_FAULT);
    }
}

#undef b

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/fused/code/last_stores", test_last_stores);
    g_test_add_func("/tile/fused/code/body_border", test_body_border);
    g_test_add_func("/tile/fused/code/block_border", test_block_border);
    g_test_add_func("/tile/fused/code/run_border", test_run_border);
    g_test_add_func("/tile/fused/code/region_end", test_region_end);
    g_test_add_func("/tile/fused/code/no_pass", test_no_pass);
    g_test_add_func("/tile/fused/code/late_load", test_late_load);
    g_test_add_func("/tile/fused/code/delta_below", test_delta_below);
    return g_test_run();
}
