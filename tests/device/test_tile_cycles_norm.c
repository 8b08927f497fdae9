/* Norms (kernels 3.7, 3.8, 6.5): three launches a row, the stage in the frame, every row shared by
 * the six workers. Published are the slots of the loops: of a layer norm 2 per 8 halves and 5 per
 * quad in the statistics, 12 per quad in the affine pass; with a residual 5, 7 and 14. The slots
 * outside the loops are not published (kernels 8.8): their sum over the three stages, and the
 * supervisor's instructions per row and per call, are implied by the measured rows. What the four
 * rows of a kernel then show: the loops' slopes, the deal of vectors and quads, and three launches
 * and joins a row, whose sum is no multiple of six (6,603 cycles a row of 1,152). */
#include "tile_cycles.h"

enum { STAGE_BYTES = 0x800, STAGE_WORD = 8, FRAME = 136 };

struct norm {
    uint32_t n;         /* arguments */
    uint32_t loops[3];  /* slots of the stages' loops: per 8 halves, per quad, per quad; 0: none */
    uint32_t w;         /* slots of the three stages outside their loops, with `exit` */
    uint32_t row, call; /* further instructions of the supervisor; call: 1 to 6 give the same */
};

/* --- Workers. --- */

static const uint32_t dispatch_slots[] = {4, 6, 7};

static uint32_t stage_slots(const struct norm *k, uint32_t stage) {
    return stage == 2 ? k->w - 2 * (k->w / 3) : k->w / 3;
}

/* Lone instructions of a stage in front of its `rpt`. */
static uint32_t lead_slots(const struct norm *k, uint32_t stage) {
    return stage_slots(k, stage) - dispatch_slots[stage] - 2;
}

static uint32_t stage_start(const struct norm *k, uint32_t stage) {
    return WORKER + STAGE_BYTES * (stage + 1) + 4 * (lead_slots(k, stage) % 2);
}

static void dispatch_code(struct build *pb, const struct norm *k) {
#define b (*pb)
    b.at = WORKER;
    I(GET, 0, ISA_CSR_WSR);
    I(AND_M_Z, 0, 0, 7);
    I(LD32_M_Z, 5, 13, 15, STAGE_WORD);
    I(BRZ, 5, (int)stage_start(k, 0));
    I(ADD_S, 5, 5, -1);
    I(BRZ, 5, (int)stage_start(k, 1));
    I(BRI, (int)stage_start(k, 2));
#undef b
}

/* Items w, w + 6, ... of m0 = w. */
static void stage_code(struct build *pb, const struct norm *k, uint32_t stage, uint32_t width) {
#define b (*pb)
    const uint32_t loop = k->loops[stage], items = loop == 0 ? 0 : width / (stage == 0 ? 8 : 4);
    b.at = stage_start(k, stage);
    deal(&b, 1, items);
    nops(&b, lead_slots(k, stage) - 5);
    g_assert_cmpuint(repeat(&b, 1, loop == 0 ? 1 : loop), ==, 1);
    for (uint32_t i = 0; i < (loop == 0 ? 1 : loop); i++) B(MNOP, FNOP);
    I(EXITZ, 15);
#undef b
}

/* --- Supervisor: m9 rows left. --- */

static void supervisor_code(struct build *pb, const struct norm *k, uint32_t rows) {
#define b (*pb)
    b.at = KERNEL;
    I(ADD_S, 11, 11, -FRAME);
    for (int i = 0; i < (int)k->n; i++) I(ST32_M, 2 + i, 11, 15, i);
    nops(&b, k->call);
    for (int i = 0; i < 3; i++) I(SETZI_M, 6 + i, i);
    I(SETZI_M, 9, (int)rows);
    I(SETZI_M, 0, WORKER);
    const int row = (int)b.at;
    nops(&b, k->row);
    for (int i = 0; i < 3; i++) {
        I(ST32_M, 6 + i, 11, 15, STAGE_WORD);
        I(RUNALL, 0, 11, 0);
        if (i == 2) I(ADD_S, 9, 9, -1);
        I(SYNC, 2);
    }
    I(BRNZ, 9, row);
    I(ADD_S, 11, 11, FRAME);
    I(BR, 10);
#undef b
}

static uint32_t norm_cycles(const struct norm *k, uint32_t rows, uint32_t width) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    dispatch_code(&b, k);
    for (uint32_t stage = 0; stage < 3; stage++) stage_code(&b, k, stage, width);
    supervisor_code(&b, k, rows);
    const uint32_t arguments[8] = {0x60000, 0x61000, 0x62000, 0x63000, 0x64000, 1, 2, 3};
    const uint32_t cycles = call_measured(&b, k->n, arguments);
    g_assert_cmpuint(b.tile.counters.launches, ==, 6 * (3 * rows + 2));
    build_free(&b);
    return cycles;
}

/* 1 x 144, 1 x 576, 1 x 1152, 3 x 1152. */
static void check_norm(const struct norm *k, const uint32_t published[4]) {
    static const uint32_t rows[] = {1, 1, 1, 3}, widths[] = {144, 576, 1152, 1152};
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t got = norm_cycles(k, rows[i], widths[i]);
        g_test_message("%ux%u: published %u, ours %u", rows[i], widths[i], published[i], got);
        g_assert_cmpuint(got, ==, published[i]);
    }
}

/* --- Rows 138 to 141, 148 to 151, 156 to 159. --- */

static void test_layernorm(void) {
    const struct norm k = {.n = 6, .loops = {2, 5, 12}, .w = 224, .row = 4, .call = 2};
    check_norm(&k, (const uint32_t[]){2196, 4140, 6732, 19938});
}

static void test_add_layernorm(void) {
    const struct norm k = {.n = 7, .loops = {5, 7, 14}, .w = 233, .row = 7, .call = 2};
    check_norm(&k, (const uint32_t[]){2454, 4992, 8376, 24864});
}

static void test_moments(void) {
    const struct norm k = {.n = 4, .loops = {2, 5, 0}, .w = 175, .row = 1, .call = 2};
    check_norm(&k, (const uint32_t[]){1464, 2112, 2976, 8676});
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/cycles/norm/layernorm", test_layernorm);
    g_test_add_func("/tile/cycles/norm/add-layernorm", test_add_layernorm);
    g_test_add_func("/tile/cycles/norm/moments", test_moments);
    return g_test_run();
}
