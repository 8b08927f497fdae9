/* The fitted launch and supervisor rules (kernels 2.5, 8.1, 8.8): samplers around one compute step
 * give the published cycles. Kernels are skeletons: the supervisor entry with n arguments, and workers
 * padded to the published slots. */
#include "tile_build.h"

enum { SAMPLE = CODE + 0x800, SAMPLE_WORKER = CODE + 0x880, BARRIER = CODE + 0x900,
       KERNEL = CODE + 0xa00, WORKER = CODE + 0xb00, TIMES = 0x5b000 };

static void worker_code(struct build *pb, uint32_t slots_outside) {
#define b (*pb)
    b.at = WORKER;
    for (uint32_t k = 0; k + 1 < slots_outside; k++) I(SETZI_M, 14, 0);
    I(EXITZ, 15);
#undef b
}

/* Entry of a kernel: frame, n arguments, launch, join, return (kernels 2.1). */
static void kernel_code(struct build *pb, uint32_t n) {
#define b (*pb)
    b.at = KERNEL;
    I(ADD_S, 11, 11, -32);
    for (uint32_t k = 0; k < n; k++) I(ST32_M, 2 + (int)k, 11, 15, (int)k);
    I(SETZI_M, 0, WORKER);
    I(RUNALL, 0, 11, 0);
    I(SYNC, 2);
    I(ADD_S, 11, 11, 32);
    I(BR, 10);
#undef b
}

static void sampler_code(struct build *pb) {
#define b (*pb)
    b.at = SAMPLE; /* address in m8, returns through m9 */
    I(SETZI_M, 7, STACKS);
    I(ST32_M, 8, 7, 15, 0);
    I(SETZI_M, 8, SAMPLE_WORKER);
    I(RUNALL, 8, 7, 0);
    I(SYNC, 2);
    I(BR, 9);
    b.at = SAMPLE_WORKER;
    I(GET, 0, ISA_CSR_WSR);
    I(AND_M_Z, 0, 0, 7);
    I(BRNZ, 0, SAMPLE_WORKER + 24);
    I(LD32_M_Z, 0, 13, 15, 0);
    I(GET, 1, ISA_CSR_COUNT_L);
    I(ST32_M, 1, 0, 15, 0);
    I(EXITZ, 15);
    b.at = BARRIER; /* returns through m7 */
    I(SETZI_M, 8, SAMPLE_WORKER + 24);
    I(RUNALL, 8, 15, 0);
    I(SYNC, 2);
    I(BR, 7);
    b.at = CODE;
#undef b
}

static void sample(struct build *pb, uint32_t address) {
#define b (*pb)
    I(SETZI_M, 8, (int)address);
    I(CALL, 9, SAMPLE);
#undef b
}

static uint32_t measured(struct build *b) {
    g_assert_cmpint(run_super(b), ==, TILE_STOP_DONE);
    return get32(b, TIMES + 4) - get32(b, TIMES);
}

/* One compute step between two samples. */
static uint32_t call_cycles(uint32_t n, uint32_t slots) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    worker_code(&b, slots);
    kernel_code(&b, n);
    sampler_code(&b);
    I(SETZI_M, 11, STACKS + 0x800);
    sample(&b, TIMES);
    for (uint32_t k = 0; k < n; k++) I(SETZI_M, 2 + (int)k, (int)(0x60000 + 64 * k));
    I(CALL, 10, KERNEL);
    sample(&b, TIMES + 4);
    I(BRI, 0);
    const uint32_t cycles = measured(&b);
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

/* The rows of kernels 8.1 and 8.8 whose slots and fixed part are published: n arguments, W slots
 * outside the loop, slots of the longest worker in the loop. */
static void test_published_rows(void) {
    const struct { const char *row; uint32_t n, w, loop, cycles; } rows[] = {
        /* reduction, old loop 9 + 6(P-1), per 8 elements, vectors dealt round robin to six workers */
        {"reduction old n=1408 P=2", 5, 22, 30 * 15, 2982},
        {"reduction old n=2208 P=4", 5, 22, 46 * 27, 7734},
        {"reduction old n=1472 P=4", 5, 22, 31 * 27, 5304},
        {"reduction old n=576 P=15", 5, 22, 12 * 93, 6978},
        {"reduction old n=672 P=15", 5, 22, 14 * 93, 8094},
        {"reduction old n=2304 P=24", 5, 22, 48 * 147, 42618},
        {"reduction n=8 P=2", 5, 22, 1 * 13, 360},
        {"reduction n=56 P=2", 5, 22, 2 * 13, 438},
        {"reduction n=1472 P=2", 5, 22, 31 * 13, 2700},
        {"reduction n=2208 P=4", 5, 22, 46 * 17, 4974},
        {"reduction n=1472 P=4", 5, 22, 31 * 17, 3444},
        {"reduction n=576 P=15", 5, 22, 12 * 39, 3090},
        {"reduction n=2208 P=28", 5, 22, 46 * 65, 18222},
        {"GELU two-wide 2208", 3, 26, 23 * 93, 13134},
        {"copy constant", 4, 17, 0, 246},
        {"strided copy constant", 6, 24, 0, 294},
        {"GELU constant", 3, 31, 0, 330},
        {"merge constant", 6, 12, 0, 222},
        {"add constant", 6, 59, 0, 504},
        {"fill constant", 3, 12, 0, 216},
    };
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct build b;
        build_init(&b, (struct tile_config){.standalone = true});
        b.at = WORKER; /* the loop as repeats of one bundle, which replace slots of the fixed part */
        uint32_t outside = rows[i].w - 1, loop = rows[i].loop;
        while (loop > 0) {
            const uint32_t pass = loop < 4000 ? loop : 4000;
            B(W(RPT_Z, (int)pass, 0), FNOP);
            B(MNOP, FNOP);
            outside--;
            loop -= pass;
        }
        for (uint32_t k = 0; k < outside; k++) I(SETZI_M, 14, 0);
        I(EXITZ, 15);
        kernel_code(&b, rows[i].n);
        sampler_code(&b);
        I(SETZI_M, 11, STACKS + 0x800);
        sample(&b, TIMES);
        for (uint32_t k = 0; k < rows[i].n; k++) I(SETZI_M, 2 + (int)k, (int)(0x60000 + 64 * k));
        I(CALL, 10, KERNEL);
        sample(&b, TIMES + 4);
        I(BRI, 0);
        const uint32_t got = measured(&b);
        if (got != rows[i].cycles) g_test_message("%s: %u, published %u", rows[i].row, got, rows[i].cycles);
        g_assert_cmpuint(got, ==, rows[i].cycles);
        build_free(&b);
    }
}

/* The supervisor's loops: cycles per word with idle workers (kernels 2.5). */
static uint32_t loop_cycles(void (*body)(struct build *), uint32_t n) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    for (uint32_t k = 0; k < 64; k++) put32(&b, DATA + 4 * k, 0);
    I(SETZI_M, 2, DATA);
    I(SETZI_M, 3, DATA + 0x1000);
    I(SETZI_M, 4, DATA + 0x2000);
    I(SETZI_M, 5, (int)n - 1);
    body(&b);
    I(BRI, 0);
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    const uint32_t cycles = (uint32_t)b.tile.stop.cycle;
    build_free(&b);
    return cycles;
}

/* load, store, three integer instructions, branch */
static void word_copy(struct build *pb) {
#define b (*pb)
    const int loop = (int)b.at;
    I(LD32_M_Z, 0, 2, 15, 0);
    I(ST32_M, 0, 3, 15, 0);
    I(ADD_S, 2, 2, 4);
    I(ADD_S, 3, 3, 4);
    I(ADD_S, 5, 5, -1);
    I(BRNZ, 5, loop);
#undef b
}
/* two loads, store, four integer instructions, branch */
static void table_patch(struct build *pb) {
#define b (*pb)
    const int loop = (int)b.at;
    I(LD32_M_Z, 0, 2, 15, 0);
    I(LD32_M_Z, 1, 2, 15, 1);
    I(ADD_R, 6, 4, 0);
    I(ST32_M, 1, 6, 15, 0);
    I(ADD_S, 2, 2, 0);
    I(ADD_S, 3, 3, 4);
    I(ADD_S, 5, 5, -1);
    I(BRNZ, 5, loop);
#undef b
}

static void test_supervisor_loops(void) {
    g_assert_cmpuint(loop_cycles(word_copy, 21) - loop_cycles(word_copy, 11), ==, 230);
    g_assert_cmpuint(loop_cycles(table_patch, 21) - loop_cycles(table_patch, 11), ==, 310);
}

/* put 8 and 13, delay n, coefficient loads 1, store 2, taken branch 5, result 7, store address 8. */
static void test_supervisor_costs(void) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    for (uint32_t k = 0; k < 64; k++) put32(&b, DATA1 + 4 * k, 0);
    I(SETZI_M, 0, (int)DATA1);         /* 0, usable at 7 */
    I(PUT, ISA_CSR_CCCSLOAD, 0);       /* 7 */
    for (int k = 0; k < 4; k++) I(LD64PUTCS, k); /* 15..18 */
    I(LD128PUTCS, 4);                  /* 19: m0 + 32 is 16-byte aligned */
    I(PUT, ISA_CSR_OUTGOING_BASE, 15); /* 20 */
    I(DELAY, 100);                     /* 33 */
    I(ST32_M, 15, 0, 15, 0);           /* 133 */
    I(SETZI_M, 1, DATA);               /* 135 */
    I(ST32_M, 15, 1, 15, 0);           /* 143: address of a store */
    I(SETZI_M, 1, 5);                  /* 145 */
    I(ST32_M, 1, 0, 15, 0);            /* 152: only data */
    I(BRZ, 1, CODE);                   /* 154, not taken */
    I(BRNZ, 1, (int)b.at + 8);         /* 155 */
    I(TRAP, 0);
    I(BRI, 0);                         /* 160 */
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
    I(SETZI_M, 0, WORKER);    /* 0 */
    I(SETZI_M, 1, 0);         /* 1 */
    I(RUNALL, 0, 15, 0);      /* 7: slots from lane 2 at 14, 15, 16, 17, 18 (0), 19 (1) */
    I(ADD_S, 2, 15, 1);       /* 8 */
    I(ADD_S, 3, 15, 1);       /* 9 */
    I(SYNC, 2);               /* 10: before the first slots, so nothing is left to issue */
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
    I(RUNALL, 0, 15, 0);           /* 7 */
    I(ADD_R, 2, 1, 1);             /* 8 */
    I(ADD_R, 2, 2, 2);             /* ready 15, in lane 3 at 15? no: workers 2 and 3 own 14, 15; 0 starts at 18 */
    I(GET, 3, ISA_CSR_SCOUNT_L);
    I(STM32, 3, 4, 15);
    I(SYNC, 2);
    I(BRI, 0);
    b.tile.s.m[4] = DATA;
    b.tile.s.defined |= 1 << 4;
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    /* add m2 needs cycle 15: lane 3 busy from 15, 4 from 16, 5 from 17, 0 from 18, 1 from 19, 2 busy:
     * worker 2 exits in its fifth slot, 14 + 24 = 38, its lane is free from 52 on: 56 = 2 mod 6. */
    g_assert_cmpuint(get32(&b, DATA), ==, 62);
    build_free(&b);
}

/* One call a slot, six workers: the published products per tile cycle (isa 4.6). */
static void test_amp_rate(void) {
    const struct { enum isa_op op; uint32_t products; } forms[] = {
        {ISA_OP_F8V8HIHOV4AMP, 128}, {ISA_OP_F16V4HIHOV4AMP, 64}, {ISA_OP_F16V4SISOAMP, 32},
        {ISA_OP_F16V4HIHOAMP, 32}, {ISA_OP_F32SISOV2AMP, 16}, {ISA_OP_F32SISOAMP, 8}};
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
        g_assert_cmpuint(calls * forms[k].products / (cycles[1] - cycles[0]), ==, forms[k].products);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/cycles/fixed-parts", test_fixed_parts);
    g_test_add_func("/tile/cycles/samples", test_samples_alone);
    g_test_add_func("/tile/cycles/published-rows", test_published_rows);
    g_test_add_func("/tile/cycles/supervisor-loops", test_supervisor_loops);
    g_test_add_func("/tile/cycles/supervisor-costs", test_supervisor_costs);
    g_test_add_func("/tile/cycles/free-lanes", test_free_lanes);
    g_test_add_func("/tile/cycles/amp-rate", test_amp_rate);
    return g_test_run();
}
