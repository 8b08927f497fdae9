/* The fitted launch and supervisor rules one by one (isa 1.1, kernels 2.5, 8.8): the part of a call
 * outside its loop, samplers alone, costs of supervisor instructions, lanes, and the AMP's rates.
 * Rows of published kernels: the other test_tile_cycles_*. */
#include "tile_cycles.h"

/* One compute step whose workers have `outside` slots. */
static uint32_t call_cycles(uint32_t n, uint32_t outside) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    b.at = WORKER;
    nops(&b, outside - 1);
    I(EXITZ, 15);
    kernel_entry(&b, n, 0, WORKER);
    const uint32_t arguments[8] = {0x60000, 0x60040, 0x60080, 0x600c0, 1, 2, 3, 4};
    const uint32_t cycles = call_measured(&b, n, arguments);
    build_free(&b);
    return cycles;
}

/* fixed part = 6 W + 132 + 6 ceil(n / 2) (kernels 2.5). */
static void test_fixed_parts(void) {
    for (uint32_t n = 1; n <= 8; n++)
        for (uint32_t w = 1; w < 30; w++)
            g_assert_cmpuint(call_cycles(n, w), ==, 6 * w + 132 + 6 * ((n + 1) / 2));
}

static void test_samples_alone(void) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    sampler_code(&b);
    sample(&b, TIMES);
    sample(&b, TIMES + 4);
    I(BRI, 0);
    g_assert_cmpuint(measured(&b), ==, 90);
    build_free(&b);
    build_init(&b, (struct tile_config){.standalone = true});
    sampler_code(&b);
    sample(&b, TIMES);
    I(CALL, 7, BARRIER);
    sample(&b, TIMES + 4);
    I(BRI, 0);
    g_assert_cmpuint(measured(&b), ==, 132);
    build_free(&b);
}

/* put 8 and 13, delay n, coefficient loads 1, store 2, taken branch 5, result 7, store address 8.
 */
static void test_supervisor_costs(void) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    for (uint32_t k = 0; k < 64; k++) put32(&b, DATA1 + 4 * k, 0);
    I(SETZI_M, 0, (int)DATA1);                   /* 0, usable at 7 */
    I(PUT, ISA_CSR_CCCSLOAD, 0);                 /* 7 */
    for (int k = 0; k < 4; k++) I(LD64PUTCS, k); /* 15..18 */
    I(LD128PUTCS, 4);                            /* 19: m0 + 32 is 16-byte aligned */
    I(PUT, ISA_CSR_OUTGOING_BASE, 15);           /* 20 */
    I(DELAY, 100);                               /* 33 */
    I(ST32_M, 15, 0, 15, 0);                     /* 133 */
    I(SETZI_M, 1, DATA);                         /* 135 */
    I(ST32_M, 15, 1, 15, 0);                     /* 143: address of a store */
    I(SETZI_M, 1, 5);                            /* 145 */
    I(ST32_M, 1, 0, 15, 0);                      /* 152: only data */
    I(BRZ, 1, CODE);                             /* 154, not taken */
    I(BRNZ, 1, (int)b.at + 8);                   /* 155 */
    I(TRAP, 0);
    I(BRI, 0); /* 160 */
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    g_assert_cmpuint(b.tile.stop.cycle, ==, 165);
    build_free(&b);
}

/* While workers run, the supervisor issues before their first slots, then in the lane of the first
 * one that exits, 14 cycles after that. */
static void test_free_lanes(void) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    b.at = WORKER;
    I(GET, 0, ISA_CSR_WSR);
    I(AND_M_Z, 0, 0, 7);
    I(CMPEQ_Z, 1, 0, 2);
    I(BRNZ, 1, (int)b.at + 4 * 9); /* worker 2 leaves early */
    for (int k = 0; k < 8; k++) I(SETZI_M, 14, 0);
    I(EXITZ, 15);
    b.at = CODE;
    I(SETZI_M, 0, WORKER); /* 0 */
    I(SETZI_M, 1, 0);      /* 1 */
    I(RUNALL, 0, 15, 0);   /* 7: slots from lane 2 at 14, 15, 16, 17, 18 (0), 19 (1) */
    I(ADD_S, 2, 15, 1);    /* 8 */
    I(ADD_S, 3, 15, 1);    /* 9 */
    I(SYNC, 2);            /* 10: before the first slots, so nothing is left to issue */
    I(BRI, 0);
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    /* Longest: worker 1, first slot 19, 13th slot at 19 + 72 = 91, join 105; bri 5. */
    g_assert_cmpuint(b.tile.stop.cycle, ==, 110);
    build_free(&b);
    build_init(&b, (struct tile_config){.standalone = true});
    b.at = WORKER;
    I(GET, 0, ISA_CSR_WSR);
    I(AND_M_Z, 0, 0, 7);
    I(CMPEQ_Z, 1, 0, 2);
    I(BRNZ, 1, (int)b.at + 4 * 9);
    for (int k = 0; k < 8; k++) I(SETZI_M, 14, 0);
    I(EXITZ, 15);
    b.at = CODE;
    I(SETZI_M, 0, WORKER);
    I(SETZI_M, 1, 0);
    I(RUNALL, 0, 15, 0); /* 7 */
    I(ADD_R, 2, 1, 1);   /* 8 */
    I(ADD_R, 2, 2,
      2); /* ready 15, in lane 3 at 15? no: workers 2 and 3 own 14, 15; 0 starts at 18 */
    I(GET, 3, ISA_CSR_SCOUNT_L);
    I(STM32, 3, 4, 15);
    I(SYNC, 2);
    I(BRI, 0);
    b.tile.s.m[4] = DATA;
    b.tile.s.defined |= 1 << 4;
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    /* add m2 needs cycle 15: lane 3 busy from 15, 4 from 16, 5 from 17, 0 from 18, 1 from 19, 2
     * busy: worker 2 exits in its fifth slot, 14 + 24 = 38, its lane is free from 52 on: 56 = 2
     * mod 6. */
    g_assert_cmpuint(get32(&b, DATA), ==, 62);
    build_free(&b);
}

/* One call a slot, six workers: the published products per tile cycle (isa 4.6). */
static void test_amp_rate(void) {
    const struct {
        enum isa_op op;
        uint32_t products;
    } forms[] = {{ISA_OP_F8V8HIHOV4AMP, 128}, {ISA_OP_F16V4HIHOV4AMP, 64},
                 {ISA_OP_F16V4SISOAMP, 32},   {ISA_OP_F16V4HIHOAMP, 32},
                 {ISA_OP_F32SISOV2AMP, 16},   {ISA_OP_F32SISOAMP, 8}};
    for (uint32_t k = 0; k < ARRAY_LEN(forms); k++) {
        uint64_t cycles[2];
        for (uint32_t more = 0; more < 2; more++) {
            struct build b;
            build_init(&b, (struct tile_config){0});
            b.tile.weights_defined = UINT64_MAX;
            I(SETZI_A, 0, 8);
            I(UPUT, ISA_CSR_FP_CLR, 0);
            B(W(RPT_Z, more ? 2000 : 1000, 3), FNOP);
            for (int p = 0; p < 4; p++) B(MNOP, word_of(forms[k].op, 2, 14, 14, p));
            I(EXITZ, 15);
            tile_start_workers(&b.tile, CODE, DATA, 6, 0);
            g_assert_cmpint(tile_run(&b.tile, 1000000), ==, TILE_STOP_DONE);
            cycles[more] = b.tile.stop.cycle;
            build_free(&b);
        }
        const uint64_t calls = 6 * 4 * 1000;
        g_assert_cmpuint(calls * forms[k].products / (cycles[1] - cycles[0]), ==,
                         forms[k].products);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/cycles/fixed-parts", test_fixed_parts);
    g_test_add_func("/tile/cycles/samples", test_samples_alone);
    g_test_add_func("/tile/cycles/supervisor-costs", test_supervisor_costs);
    g_test_add_func("/tile/cycles/free-lanes", test_free_lanes);
    g_test_add_func("/tile/cycles/amp-rate", test_amp_rate);
    return g_test_run();
}
