/* Small programs with expected registers, memory and cycles. */
#include "tile_build.h"

static void test_worker_sum(void) {
    struct build b;
    build_init(&b, (struct tile_config){0});
    for (uint32_t k = 0; k < 10; k++) put32(&b, DATA + 4 * k, k + 1);
    I(SETZI_M, 0, 0);
    I(SETZI_M, 1, 9);
    I(OR_M_R, 2, 13, 15);
    const uint32_t loop = b.at;
    I(LD32STEP_M_S, 3, 15, 2, 1);
    I(ADD_R, 0, 0, 3);
    I(BRNZDEC, 1, loop);
    I(ST32_M, 0, 2, 15, 0);
    I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    g_assert_cmpuint(get32(&b, DATA + 40), ==, 55);
    g_assert_cmpuint(b.tile.w[0].slots, ==, 3 + 30 + 2);
    g_assert_cmpuint(b.tile.stop.cycle, ==, 6 * 34 + 14);
    build_free(&b);
}

/* A bundle reads before it writes: the store takes the old register, the load comes back later. */
static void test_bundle_order(void) {
    struct build b;
    build_init(&b, (struct tile_config){0});
    put32(&b, DATA, 0x3f800000);
    put32(&b, DATA + 4, 0x40000000);
    I(LD32_A_Z, 0, 13, 15, 0);
    I(LD32_A_Z, 1, 13, 15, 1);
    B(W(ST32_A_Z, 0, 13, 15, 2), W(F32ADD, 0, 0, 1)); /* stores 1.0, a0 = 3.0 */
    B(W(LD32_A_Z, 1, 13, 15, 0), W(F32ADD, 0, 0, 1)); /* a0 = 5.0 with the old a1, a1 = 1.0 */
    I(ST32_A_Z, 0, 13, 15, 3);
    I(ST32_A_Z, 1, 13, 15, 4);
    I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    g_assert_cmphex(get32(&b, DATA + 8), ==, 0x3f800000);
    g_assert_cmphex(get32(&b, DATA + 12), ==, 0x40a00000);
    g_assert_cmphex(get32(&b, DATA + 16), ==, 0x3f800000);
    build_free(&b);
}

static void test_repeat(void) {
    struct build b;
    build_init(&b, (struct tile_config){0});
    I(SETZI_M, 0, 0);
    I(SETZI_M, 1, 0);
    I(SETZI_M, 2, 5);
    if (b.at % 8 == 0) I(SETZI_M, 14, 0);
    I(RPT_R, 2, 1);
    B(W(ADD_S, 0, 0, 3), FNOP);
    B(W(ADD_S, 1, 1, -1), FNOP);
    B(W(RPT_Z, 0, 0), FNOP); /* count 0: skipped */
    B(W(ADD_S, 0, 0, 1000), FNOP);
    B(W(RPT_Z, 2, 0), W(SETZI_A, 0, 7));
    B(W(ADD_S, 0, 0, 100), FNOP);
    I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    g_assert_cmpint((int32_t)b.tile.w[0].m[0], ==, 215);
    g_assert_cmpint((int32_t)b.tile.w[0].m[1], ==, -5);
    build_free(&b);
}

/* Supervisor: launch, join and a loop, to the cycle (isa 1.1). */
static void test_supervisor(void) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    const uint32_t worker = CODE + 0x100;
    I(SETZI_M, 0, (int)worker); /* cycle 0 */
    I(SETZI_M, 11, DATA);       /* 1 */
    I(RUNALL, 0, 11, 0);        /* m0 ready at 7, m11 at 8: issues at 8; first slots from 15 on */
    I(SYNC, 2);
    I(SETZI_M, 1, 3);
    const uint32_t loop = b.at;
    I(BRNZDEC, 1, (int)loop);
    I(BRI, 0);
    b.at = worker;
    I(GET, 0, ISA_CSR_COUNT_L);
    I(GET, 1, ISA_CSR_WSR);
    I(AND_M_Z, 1, 1, 7);
    I(STM32, 0, 13, 1);
    I(EXITZ, 15);
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    /* First slots: lane w at or after 15: lanes 3, 4, 5 at 15, 16, 17; 0, 1, 2 at 18, 19, 20. */
    const uint32_t want[6] = {18, 19, 20, 15, 16, 17};
    for (uint32_t w = 0; w < 6; w++) g_assert_cmpuint(get32(&b, DATA + 4 * w), ==, want[w]);
    /* Last exit 20 + 24 = 44, join 58: setzi; brnzdec at 65, taken: 70, again m1: 72, 79, 86; the last
     * one, not taken, costs 1; bri 5. */
    g_assert_cmpuint(b.tile.stop.cycle, ==, 58 + 7 + 3 * 7 + 1 + 5);
    build_free(&b);
}

static void test_sync_and_row(void) {
    struct build b;
    build_init(&b, (struct tile_config){0});
    I(SETZI_M, 8, 0x1234);
    I(PUT, ISA_CSR_INCOMING_BASE, 8);
    I(SYNC, 3);
    const uint32_t row = b.at + 8;
    I(CALL, 10, (int)row);
    I(BRI, 0);
    I(DELAY, 20);
    I(BR, 10);
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_SYNC);
    g_assert_cmpuint(b.tile.stop.zone, ==, 3);
    g_assert_cmpuint(b.tile.stop.cycle, ==, 7 + 13);
    g_assert_cmphex(b.tile.s.exchange[4], ==, 0x1234);
    tile_release_sync(&b.tile, 100);
    g_assert_cmpint(tile_run(&b.tile, 100000), ==, TILE_STOP_ROW);
    g_assert_cmpuint(b.tile.stop.pc, ==, row);
    g_assert_cmpuint(b.tile.stop.cycle, ==, 105);
    g_assert_cmpint(tile_run(&b.tile, 100000), ==, TILE_STOP_ROW); /* nothing happens until then */
    uint32_t x[TILE_N_EXCHANGE_CSRS] = {[0] = 7};
    tile_resume_after_row(&b.tile, row + 4, 125, x);
    g_assert_cmpint(tile_run(&b.tile, 100000), ==, TILE_STOP_DONE);
    g_assert_cmpuint(b.tile.stop.cycle, ==, 125 + 5 + 5);
    g_assert_cmpuint(b.tile.s.exchange[0], ==, 7);
    build_free(&b);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/basic/sum", test_worker_sum);
    g_test_add_func("/tile/basic/bundle", test_bundle_order);
    g_test_add_func("/tile/basic/repeat", test_repeat);
    g_test_add_func("/tile/basic/supervisor", test_supervisor);
    g_test_add_func("/tile/basic/sync-row", test_sync_and_row);
    return g_test_run();
}
