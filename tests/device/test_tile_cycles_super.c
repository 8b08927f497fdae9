/* The supervisor's loops of kernels 2.5 and 8.8, executed with idle workers: copies of words and of
 * half words, and the patch of a table; whole calls between two samplers, and cycles per pass. */
#include "tile_cycles.h"

enum { SOURCE = DATA, TARGET = DATA + 0x4000, OFFSETS = DATA + 0x8000 };

/* m2 to, m3 from, m4 words: load, store, three integer instructions, branch. The test of the count
 * in front of the loop is chosen; the whole calls come out for 1 to 4 cycles there. */
static void word_copy(struct build *pb) {
#define b (*pb)
    b.at = KERNEL;
    I(BRZ, 4, KERNEL + 28);
    const int loop = (int)b.at;
    I(LD32_M_Z, 0, 3, 15, 0);
    I(ST32_M, 0, 2, 15, 0);
    I(ADD_S, 2, 2, 4);
    I(ADD_S, 3, 3, 4);
    I(ADD_S, 4, 4, -1);
    I(BRNZ, 4, loop);
    I(BR, 10);
#undef b
}

/* m2 table, m3 values, m4 their offsets in the table, m5 words: two loads, store, four integer
 * instructions, branch. In front of the loop (chosen) 2 or 3 cycles give the whole calls. */
static void table_patch(struct build *pb) {
#define b (*pb)
    b.at = KERNEL;
    I(BRZ, 5, KERNEL + 36);
    const int loop = (int)b.at;
    I(LD32_M_Z, 0, 4, 15, 0);
    I(LD32_M_Z, 1, 3, 15, 0);
    I(ADD_R, 6, 2, 0);
    I(ST32_M, 1, 6, 15, 0);
    I(ADD_S, 3, 3, 4);
    I(ADD_S, 4, 4, 4);
    I(ADD_S, 5, 5, -1);
    I(BRNZ, 5, loop);
    I(BR, 10);
#undef b
}

/* m2 to, m3 from, m4 halves. The sheet gives about 30 instructions with masking and the cycles of
 * the four alignments of source and target half, not the code. These 28 give all four cases: an
 * index, both words by shifts, parities by shift and mask, a loaded mask for the half that comes;
 * of the target's word the lower half is kept by the mask, the upper one by two shifts. Of some
 * thousand orders and ways of masking that were tried a few dozen do. */
static void half_copy(struct build *pb) {
#define b (*pb)
    b.at = KERNEL;
    I(SETZI_M, 0, 0); /* index */
    const int loop = (int)b.at;
    I(SHL_Z, 1, 0, 1);
    I(ADD_R, 5, 3, 1); /* source: word in m6, parity in m7 */
    I(SHR_Z, 6, 5, 2);
    I(SHL_Z, 6, 6, 2);
    I(LD32_M_Z, 8, 6, 15, 0);
    I(SHR_Z, 7, 5, 1);
    I(AND_M_Z, 7, 7, 1);
    I(BRZ, 7, (int)b.at + 8);
    I(SHR_Z, 8, 8, 16);
    I(SETZI_M, 9, 0xffff);
    I(AND_M_R, 8, 8, 9);
    I(ADD_R, 5, 2, 1); /* target: word in m6, parity in m7 */
    I(SHR_Z, 6, 5, 2);
    I(SHL_Z, 6, 6, 2);
    I(LD32_M_Z, 1, 6, 15, 0);
    I(SHR_Z, 7, 5, 1);
    I(AND_M_Z, 7, 7, 1);
    I(BRZ, 7, (int)b.at + 16);
    I(AND_M_R, 1, 1, 9);
    I(SHL_Z, 8, 8, 16);
    I(BRI, (int)b.at + 12);
    I(SHR_Z, 1, 1, 16);
    I(SHL_Z, 1, 1, 16);
    I(OR_M_R, 1, 1, 8);
    I(ST32_M, 1, 6, 15, 0);
    I(ADD_S, 0, 0, 1);
    I(CMPULT_R, 5, 0, 4);
    I(BRNZ, 5, loop);
    I(BR, 10);
#undef b
}

static void loop_init(struct build *b, void (*code)(struct build *)) {
    build_init(b, (struct tile_config){.standalone = true});
    for (uint32_t k = 0; k < 1024; k++) {
        put32(b, SOURCE + 4 * k, 0x10001 * k + 0x80007000);
        put32(b, TARGET + 4 * k, 0x55aa33cc);
        put32(b, OFFSETS + 4 * k, 4 * (k * 5 % 1024));
    }
    code(b);
}

static uint32_t word_copy_cycles(uint32_t n) {
    struct build b;
    loop_init(&b, word_copy);
    const uint32_t cycles = call_measured(&b, 3, (const uint32_t[]){TARGET, SOURCE, n});
    for (uint32_t k = 0; k < 64; k++)
        g_assert_cmphex(get32(&b, TARGET + 4 * k), ==,
                        k < n ? get32(&b, SOURCE + 4 * k) : 0x55aa33cc);
    build_free(&b);
    return cycles;
}

static uint32_t table_patch_cycles(uint32_t n) {
    struct build b;
    loop_init(&b, table_patch);
    const uint32_t cycles = call_measured(&b, 4, (const uint32_t[]){TARGET, SOURCE, OFFSETS, n});
    for (uint32_t k = 0; k < 1024; k++)
        g_assert_cmphex(get32(&b, TARGET + k * 5 % 1024 * 4), ==,
                        k < n ? get32(&b, SOURCE + 4 * k) : 0x55aa33cc);
    build_free(&b);
    return cycles;
}

/* Residuals of kernels 8.8: modelled minus published. */
static void test_whole_calls(void) {
    const struct {
        const char *row;
        uint32_t (*run)(uint32_t);
        uint32_t n, published;
        int residual;
    } rows[] = {
        {"table patch, 24 words", table_patch_cycles, 24, 846, 0},
        {"table patch, 78 words", table_patch_cycles, 78, 2520, 0},
        {"table patch, 1,024 words", table_patch_cycles, 1024, 31848, -6},
        {"word copy, 10 words", word_copy_cycles, 10, 334, -4},
        {"word copy, 20 words", word_copy_cycles, 20, 564, -6},
    };
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
        const uint32_t got = rows[i].run(rows[i].n);
        g_test_message("%s: published %u, ours %u", rows[i].row, rows[i].published, got);
        g_assert_cmpint((int)got - (int)rows[i].published, ==, rows[i].residual);
    }
}

/* Cycles from the start to the end of a program without samplers; the caller frees *ret_b. */
static uint32_t plain_cycles(struct build *ret_b, void (*code)(struct build *),
                             const uint32_t arguments[4]) {
#define b (*ret_b)
    loop_init(&b, code);
    b.at = CODE;
    for (int k = 0; k < 4; k++) I(SETZI_M, 2 + k, (int)arguments[k]);
    I(SETZI_M, 10, 0);
    I(BRI, KERNEL);
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    return (uint32_t)b.tile.stop.cycle;
#undef b
}

/* What pass n + 1 adds. */
static uint32_t pass_cycles(void (*code)(struct build *), const uint32_t less[4],
                            const uint32_t more[4]) {
    struct build b[2];
    const uint32_t cycles = plain_cycles(&b[1], code, more) - plain_cycles(&b[0], code, less);
    build_free(&b[0]);
    build_free(&b[1]);
    return cycles;
}

/* The word copy runs 23 cycles a pass, the patch 31. */
static void test_passes(void) {
    for (uint32_t n = 1; n < 20; n++) {
        g_assert_cmpuint(pass_cycles(word_copy, (const uint32_t[]){TARGET, SOURCE, n, 0},
                                     (const uint32_t[]){TARGET, SOURCE, n + 1, 0}),
                         ==, 23);
        g_assert_cmpuint(pass_cycles(table_patch, (const uint32_t[]){TARGET, SOURCE, OFFSETS, n},
                                     (const uint32_t[]){TARGET, SOURCE, OFFSETS, n + 1}),
                         ==, 31);
    }
}

static uint32_t half_at(const struct build *b, uint32_t address) {
    return get32(b, address & ~3u) >> address % 4 * 8 & 0xffff;
}

/* The loop copies n halves and nothing else. */
static void test_half_copied(void) {
    for (uint32_t n = 1; n < 20; n++) {
        const uint32_t to = TARGET + 32 + n / 2 % 2 * 2, from = SOURCE + 64 + n % 2 * 2;
        struct build b;
        plain_cycles(&b, half_copy, (const uint32_t[]){to, from, n, 0});
        for (uint32_t a = TARGET; a < TARGET + 256; a += 2) {
            const uint32_t k = (a - to) / 2;
            g_assert_cmphex(half_at(&b, a), ==,
                            a >= to && k < n ? half_at(&b, from + 2 * k)
                            : a % 4          ? 0x55aa
                                             : 0x33cc);
        }
        build_free(&b);
    }
}

/* Published: 129 a half, without the alignment. Of the last half, which lies so in its words. */
static void test_half_cases(void) {
    static const uint32_t modelled[2][2] = {{139, 129},
                                            {136, 126}}; /* [source upper][target upper] */
    for (uint32_t n = 1; n < 8; n++)
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t from = SOURCE + 64 + i / 2 * 2 - 2 * n,
                           to = TARGET + 64 + i % 2 * 2 - 2 * n;
            g_assert_cmpuint(pass_cycles(half_copy, (const uint32_t[]){to, from, n, 0},
                                         (const uint32_t[]){to, from, n + 1, 0}),
                             ==, modelled[i / 2][i % 2]);
        }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/cycles/supervisor/whole-calls", test_whole_calls);
    g_test_add_func("/tile/cycles/supervisor/passes", test_passes);
    g_test_add_func("/tile/cycles/supervisor/half-copied", test_half_copied);
    g_test_add_func("/tile/cycles/supervisor/half-cases", test_half_cases);
    return g_test_run();
}
