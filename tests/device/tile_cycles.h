/* Skeleton kernels for tests of cycles: samplers around one call, as the published figures were
 * taken (kernels 0.2, 8.1): worker 0 of two sampler calls reads the counter, and between them run
 * one `setzi` per argument, the call, and the kernel. Code is real instructions, written word by
 * word.
 *
 * Layout: the caller at CODE, the sampler, the kernel's supervisor entry at KERNEL, its workers at
 * WORKER, the two times at TIMES. m2.. are the arguments, m10 returns, m11 is the stack
 * (kernels 2.1). */
#ifndef IPU_TESTS_TILE_CYCLES_H
#define IPU_TESTS_TILE_CYCLES_H

#include "tile_build.h"

enum {
    SAMPLE = CODE + 0x400,
    SAMPLE_WORKER = CODE + 0x480,
    BARRIER = CODE + 0x500,
    KERNEL = CODE + 0x600,
    WORKER = CODE + 0x1000,
    TIMES = 0x5b000
};

static inline void sampler_code(struct build *pb) {
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

static inline void sample(struct build *pb, uint32_t address) {
#define b (*pb)
    I(SETZI_M, 8, (int)address);
    I(CALL, 9, SAMPLE);
#undef b
}

static inline void nops(struct build *pb, uint32_t n) {
#define b (*pb)
    for (uint32_t k = 0; k < n; k++) I(SETZI_M, 14, 0);
#undef b
}

/* Entry of a kernel: frame, n arguments, `more` other instructions, launch, join, return
 * (kernels 2.1). */
static inline void kernel_entry(struct build *pb, uint32_t n, uint32_t more, uint32_t worker) {
#define b (*pb)
    b.at = KERNEL;
    I(ADD_S, 11, 11, -32);
    for (uint32_t k = 0; k < n; k++) I(ST32_M, 2 + (int)k, 11, 15, (int)k);
    nops(&b, more);
    I(SETZI_M, 0, (int)worker);
    I(RUNALL, 0, 11, 0);
    I(SYNC, 2);
    I(ADD_S, 11, 11, 32);
    I(BR, 10);
#undef b
}

static inline uint32_t measured(struct build *b) {
    g_assert_cmpint(run_super(b), ==, TILE_STOP_DONE);
    return get32(b, TIMES + 4) - get32(b, TIMES);
}

/* Cycles between the two samples around a call of the kernel at KERNEL with the n arguments. */
static inline uint32_t call_measured(struct build *pb, uint32_t n, const uint32_t *arguments) {
#define b (*pb)
    sampler_code(&b);
    I(SETZI_M, 11, STACKS + 0x800);
    sample(&b, TIMES);
    for (uint32_t k = 0; k < n; k++) I(SETZI_M, 2 + (int)k, (int)arguments[k]);
    I(CALL, 10, KERNEL);
    sample(&b, TIMES + 4);
    I(BRI, 0);
    return measured(&b);
#undef b
}

/* m[r] = (count + 5 - w) / 6, the items of worker w = m0 when `count` are dealt w, w + 6, ..., or in
 * ranges of which the first count mod 6 are one longer (kernels 2.3); five slots, uses m4. */
static inline void deal(struct build *pb, int r, uint32_t count) {
#define b (*pb)
    I(SETZI_M, r, (int)count + 5);
    I(SUB_R, r, r, 0);
    I(SETZI_M, 4, 43691);
    I(MUL_R, r, r, 4);
    I(SHR_Z, r, r, 18);
#undef b
}

/* `rpt` of m[count] over the next `bundles` bundles: one slot, and one before it if it needs to be
 * aligned; the number of these slots. */
static inline uint32_t repeat(struct build *pb, int count, uint32_t bundles) {
#define b (*pb)
    const uint32_t padding = b.at % 8 != 0;
    nops(&b, padding);
    B(W(RPT_R, count, (int)bundles - 1), FNOP);
    return padding + 1;
#undef b
}

#endif
