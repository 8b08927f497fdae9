/* All forms of loads and stores against bytes: addressing, widths, extension, broadcast, updates of
 * pointers; branches and exits by condition; instructions with several accesses. */
#include "numeric/num_format.h"
#include "tile_build.h"

static struct build b;
enum { BASE = 0x90000 };

static uint8_t byte_at(uint32_t address) { return (uint8_t)(address * 37 + (address >> 8) * 11 + 0x5a); }
static uint32_t little(uint32_t address, uint32_t n) {
    uint32_t v = 0;
    for (uint32_t k = 0; k < n; k++) v |= (uint32_t)byte_at(address + k) << 8 * k;
    return v;
}

static struct tile_worker *execute(uint32_t word, const uint32_t m[8], const uint32_t a[8]) {
    const uint32_t code[2] = {word, W(EXITZ, 15)};
    memcpy(sram_at(b.sram, 0, CODE), code, 8);
    sram_mark_written(b.sram, 0, CODE, 8);
    for (uint32_t k = 0; k < 0x4000; k++) *sram_at(b.sram, 0, BASE + k) = byte_at(BASE + k);
    sram_mark_written(b.sram, 0, BASE, 0x4000);
    tile_reset(&b.tile);
    struct tile_worker *w = &b.tile.w[0];
    memcpy(w->m, m, 32);
    memcpy(w->a, a, 32);
    w->defined = UINT32_MAX;
    tile_start_workers(&b.tile, CODE, DATA, 1, 0);
    tile_run(&b.tile, 1000);
    if (b.tile.fault.number) g_test_message("word %08x faults with %u", word, b.tile.fault.number);
    g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_DONE);
    return w;
}

struct load {
    enum isa_op z, r, step_s, step_r;
    uint32_t bytes; /* of the access */
    bool arf, sign;
};
static const struct load LOADS[] = {
    {ISA_OP_LDZ8_Z, ISA_OP_LDZ8_R, ISA_OP_LDZ8STEP_S, ISA_OP_LDZ8STEP_R, 1, false, false},
    {ISA_OP_LDS8_Z, ISA_OP_LDS8_R, ISA_OP_LDS8STEP_S, ISA_OP_LDS8STEP_R, 1, false, true},
    {ISA_OP_LDZ16_Z, ISA_OP_LDZ16_R, ISA_OP_LDZ16STEP_S, ISA_OP_LDZ16STEP_R, 2, false, false},
    {ISA_OP_LDS16_Z, ISA_OP_LDS16_R, ISA_OP_LDS16STEP_S, ISA_OP_LDS16STEP_R, 2, false, true},
    {ISA_OP_LD32_M_Z, ISA_OP_LD32_M_R, ISA_OP_LD32STEP_M_S, ISA_OP_LD32STEP_M_R, 4, false, false},
    {ISA_OP_LDB8_Z, ISA_OP_LDB8_R, ISA_OP_LDB8STEP_S, ISA_OP_LDB8STEP_R, 1, true, false},
    {ISA_OP_LDB16_Z, ISA_OP_LDB16_R, ISA_OP_LDB16STEP_S, ISA_OP_LDB16STEP_R, 2, true, false},
    {ISA_OP_LD32_A_Z, ISA_OP_LD32_A_R, ISA_OP_LD32STEP_A_S, ISA_OP_LD32STEP_A_R, 4, true, false},
    {ISA_OP_LD64_Z, ISA_OP_LD64_R, ISA_OP_LD64STEP_S, ISA_OP_LD64STEP_R, 8, true, false},
    {ISA_OP_LD128_Z, ISA_OP_LD128_R, ISA_OP_LD128STEP_S, ISA_OP_LD128STEP_R, 16, true, false},
};

static void check_loaded(const struct load *l, const struct tile_worker *w, uint32_t address) {
    const uint32_t n = l->bytes < 4 ? l->bytes : 4;
    for (uint32_t k = 0; k < (l->bytes + 3) / 4; k++) {
        uint32_t want = little(address + 4 * k, n);
        if (l->arf && l->bytes == 1) want *= 0x01010101;
        if (l->arf && l->bytes == 2) want *= 0x00010001;
        if (l->sign && want >> (8 * n - 1)) want |= ~0u << (8 * n - 1);
        g_assert_cmphex(l->arf ? w->a[4 + k] : w->m[4], ==, want);
    }
}

static void test_loads(void) {
    for (uint32_t i = 0; i < ARRAY_LEN(LOADS); i++) {
        const struct load *l = &LOADS[i];
        const uint32_t size = l->bytes;
        const uint32_t m[8] = {BASE, 16 * size, 5, BASE + 32}, a[8] = {0};
        const struct tile_worker *w = execute(word_of(l->z, 4, 0, 1, 7), m, a);
        check_loaded(l, w, BASE + 16 * size + 7 * size);
        w = execute(word_of(l->r, 4, 0, 1, 2), m, a);
        check_loaded(l, w, BASE + 16 * size + 5 * size);
        w = execute(word_of(l->step_s, 4, 0, 1, -3), m, a);
        check_loaded(l, w, BASE + 16 * size);
        g_assert_cmphex(w->m[1], ==, 13 * size);
        w = execute(word_of(l->step_r, 4, 15, 3, 2), m, a);
        check_loaded(l, w, BASE + 32);
        g_assert_cmphex(w->m[3], ==, BASE + 32 + 5 * size);
        g_assert_cmphex(w->m[0], ==, BASE);
    }
}

static void check_stored(uint32_t address, uint32_t words) {
    for (uint32_t k = 0; k < words; k++) g_assert_cmphex(get32(&b, address + 4 * k), ==, 0x11110000 + k);
}

static void test_stores(void) {
    const struct { enum isa_op z, r, step_s, step_r; uint32_t bytes; bool arf; } stores[] = {
        {ISA_OP_ST32_M, ISA_N_OPS, ISA_OP_ST32STEP_M, ISA_N_OPS, 4, false},
        {ISA_OP_ST32_A_Z, ISA_OP_ST32_A_R, ISA_OP_ST32STEP_A_S, ISA_OP_ST32STEP_A_R, 4, true},
        {ISA_OP_ST64_Z, ISA_OP_ST64_R, ISA_OP_ST64STEP_S, ISA_OP_ST64STEP_R, 8, true},
    };
    for (uint32_t i = 0; i < ARRAY_LEN(stores); i++) {
        const uint32_t size = stores[i].bytes;
        const uint32_t m[8] = {BASE, 16 * size, 5, BASE + 32, 0x11110000}, a[8] = {[4] = 0x11110000, [5] = 0x11110001};
        execute(word_of(stores[i].z, 4, 0, 1, 7), m, a);
        check_stored(BASE + 23 * size, size / 4);
        const struct tile_worker *w = execute(word_of(stores[i].step_s, 4, 0, 1, -3), m, a);
        check_stored(BASE + 16 * size, size / 4);
        g_assert_cmphex(w->m[1], ==, 13 * size);
        if (stores[i].r == ISA_N_OPS) continue;
        execute(word_of(stores[i].r, 4, 0, 1, 2), m, a);
        check_stored(BASE + 21 * size, size / 4);
        w = execute(word_of(stores[i].step_r, 4, 15, 3, 2), m, a);
        check_stored(BASE + 32, size / 4);
        g_assert_cmphex(w->m[3], ==, BASE + 32 + 5 * size);
    }
    const uint32_t m[8] = {BASE, 3, 0x11110000}, a[8] = {0};
    execute(W(STM32, 2, 0, 1), m, a);
    check_stored(BASE + 12, 1);
    g_assert_cmphex(execute(W(STM32STEP, 2, 0, 1), m, a)->m[0], ==, BASE + 12);
    check_stored(BASE, 1);
}

/* The second access of the dual loads: 64, 32, or 16 bits broadcast; code 0 advances by its own size. */
static void test_dual_loads(void) {
    const struct { enum isa_op op; uint32_t bytes; } ops[] = {
        {ISA_OP_LD2X64PACE, 8}, {ISA_OP_LD64A32PACE, 4}, {ISA_OP_LD64B16PACE, 2}};
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t code = 0; code < 16; code++) {
            const uint32_t a0 = BASE + 0x40, a1 = BASE + 0x108; /* different halves of the pair */
            const uint32_t m[8] = {a0 | 5u << 21, a1 | 9u << 21, 3 | 0x3feu << 10 | 7 << 20}, a[8] = {0};
            const struct tile_worker *w = execute(word_of(ops[i].op, 0, 4, 0, 2, (int)code), m, a);
            g_assert_cmphex(w->a[0], ==, little(a0, 4));
            g_assert_cmphex(w->a[1], ==, little(a0 + 4, 4));
            const uint32_t second = little(a1, ops[i].bytes < 4 ? 2 : 4);
            g_assert_cmphex(w->a[4], ==, ops[i].bytes == 2 ? second * 0x10001 : second);
            if (ops[i].bytes == 8) g_assert_cmphex(w->a[5], ==, little(a1 + 4, 4));
            const int32_t atoms[4] = {1, 3, -2, 7};
            const int32_t first_step = 8 * atoms[code & 3];
            const int32_t second_step = code >> 2 ? 8 * atoms[code >> 2] : (int32_t)ops[i].bytes;
            g_assert_cmphex(w->m[0], ==, (a0 + (uint32_t)first_step) | 5u << 21);
            g_assert_cmphex(w->m[1], ==, (a1 + (uint32_t)second_step) | 9u << 21);
        }
}

static void test_tables(void) {
    put32(&b, DATA, 6 | 10u << 16);
    const uint32_t m[8] = {DATA, BASE, 0x18, 4 | 0x30u << 16, 0x253}, a[8] = {0};
    const struct tile_worker *w = execute(W(LDD16A64, 4, 0, 1, 2), m, a);
    g_assert_cmphex(w->a[4], ==, little(BASE + 0x18, 4));
    g_assert_cmphex(w->a[5], ==, little(BASE + 0x1c, 4));
    g_assert_cmphex(w->m[2], ==, 6);
    w = execute(W(LDD16B16, 4, 0, 1, 2), m, a);
    g_assert_cmphex(w->a[4], ==, little(BASE + 0x18, 2) * 0x10001);
    /* ldb16b16: which half takes which increment is ASSUMED (isa C.19) */
    const uint32_t apart[8] = {0, BASE, 0, 4 | 0x38u << 16, 0x253};
    w = execute(W(LDB16B16, 4, 1, 3, 4), apart, a);
    g_assert_cmphex(w->a[4], ==, little(BASE + 4, 2) * 0x10001);
    g_assert_cmphex(w->a[5], ==, little(BASE + 0x38, 2) * 0x10001);
    g_assert_cmphex(w->m[3], ==, 6 | 0x3eu << 16);
    g_assert_cmphex(w->m[4], ==, 0x25);
}

/* --- Branches and exits by condition. --- */

static void test_conditions(void) {
    const uint32_t values[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
    const struct { enum isa_op branch, leave; } ops[] = {{ISA_OP_BRZ, ISA_OP_EXITZ},
                                                         {ISA_OP_BRNZ, ISA_OP_EXITNZ},
                                                         {ISA_OP_BRNEG, ISA_OP_EXITNEG},
                                                         {ISA_OP_BRPOS, ISA_OP_EXITPOS}};
    for (uint32_t k = 0; k < 4; k++)
        for (uint32_t i = 0; i < ARRAY_LEN(values); i++) {
            const int32_t v = (int32_t)values[i];
            const bool holds = k == 0 ? v == 0 : k == 1 ? v != 0 : k == 2 ? v < 0 : v >= 0;
            const uint32_t m[8] = {values[i]}, a[8] = {0};
            /* taken: over the exit at CODE + 4 to another one */
            put32(&b, CODE + 8, W(EXITZ, 15));
            const struct tile_worker *w = execute(word_of(ops[k].branch, 0, CODE + 8), m, a);
            g_assert_cmphex(w->pc, ==, holds ? CODE + 12 : CODE + 8);
            tile_reset(&b.tile);
            b.tile.s.ssr = 1; /* LC; a false boolean clears it (isa C.21) */
            put32(&b, CODE, word_of(ops[k].leave, 0));
            memcpy(b.tile.w[0].m, m, 32);
            b.tile.w[0].defined = UINT32_MAX;
            tile_start_workers(&b.tile, CODE, DATA, 1, 0);
            g_assert_cmpint(tile_run(&b.tile, 1000), ==, TILE_STOP_DONE);
            g_assert_cmpuint(b.tile.s.ssr & 1, ==, holds);
        }
}

/* --- What is left: classes, conversions of pairs, reads of accumulators. --- */

static void test_classes(void) {
    const struct { uint16_t h; uint32_t code; } codes[] = {
        {0x7e00, 2}, {0x7d00, 1}, {0x8000, 5}, {0, 6}, {0xfc00, 3}, {0x7c00, 8}, {0x8001, 4}, {0x3c00, 7}};
    const uint32_t m[8] = {0};
    for (uint32_t i = 0; i < ARRAY_LEN(codes); i++) {
        const uint32_t c = codes[i].code, a[8] = {codes[i].h | 0x8000u << 16, codes[i].h * 0x10001u};
        g_assert_cmphex(execute(W(F16V2CLASS, 4, 0), m, a)->a[4], ==, c | 5 << 8);
        g_assert_cmphex(execute(W(F16V4CLASS, 4, 0), m, a)->a[4], ==, c | 5 << 8 | c << 16 | c << 24);
    }
    const uint32_t a[8] = {0x7fc00000, 0x80000000, 0x80007f00};
    g_assert_cmphex(execute(W(F32CLASS, 4, 0), m, a)->a[4], ==, 2);
    g_assert_cmphex(execute(W(F32V2CLASS, 4, 0), m, a)->a[4], ==, 2 | 5 << 8);
    g_assert_cmphex(execute(W(F8V4CLASS, 4, 2), m, a)->a[4], ==, 6 | 7 << 8 | 6 << 16 | 2u << 24);
}

static void test_small_forms(void) {
    const uint32_t m[8] = {0}, a[8] = {0x3c00 | 0xc000u << 16, 0x4200 | 0x4400u << 16, num_f32_bits(-3), num_f32_bits(2)};
    g_assert_cmphex(execute(W(F16TOF32, 4, 0), m, a)->a[4], ==, num_f32_bits(1));
    const uint32_t limits[8] = {num_f32_bits(9), num_f32_bits(-9), num_f32_bits(-3), num_f32_bits(2)};
    g_assert_cmphex(execute(W(F32CLAMP, 4, 0, 2), m, limits)->a[4], ==, num_f32_bits(2));
    const struct tile_worker *w = execute(W(F32V2CLAMP, 4, 0, 2), m, limits);
    g_assert_cmphex(w->a[4], ==, num_f32_bits(2));
    g_assert_cmphex(w->a[5], ==, num_f32_bits(-3));
    /* F8 of two: format F152 at reset (NFMT 0) */
    w = execute(W(F16V2TOF8, 4, 0), m, a);
    uint32_t flags = 0;
    const uint32_t lo = num_f8_from_f64(1, NUM_F152, NUM_DEFAULT, 0, &flags);
    const uint32_t hi = num_f8_from_f64(-2, NUM_F152, NUM_DEFAULT, 0, &flags);
    g_assert_cmphex(w->a[4], ==, lo | hi << 8);
    const uint32_t q[8] = {lo | hi << 8};
    g_assert_cmphex(execute(W(F8V2TOF16, 4, 0), m, q)->a[4], ==, 0x3c00 | 0xc000u << 16);
    const uint32_t u[8] = {0xffff0000, 0x00008000, 0, 0xffffffff};
    w = execute(W(F16V4SUFROMUI, 4, 0), m, u);
    g_assert_cmphex(w->a[4], ==, 0xb800 | 0x3800u << 16);
    w = execute(W(F32V2SUFROMUI, 4, 2), m, u);
    g_assert_cmphex(w->a[4], ==, num_f32_bits(-0.5f));
    g_assert_cmphex(w->a[5], ==, num_f32_bits(0.5f));
}

static void run_code(const uint32_t *code, uint32_t n, const uint32_t a[8]) {
    memcpy(sram_at(b.sram, 0, CODE), code, 4 * n);
    sram_mark_written(b.sram, 0, CODE, 4 * n);
    tile_reset(&b.tile);
    b.tile.w[0].defined = UINT32_MAX;
    memcpy(b.tile.w[0].a, a, 32);
    tile_start_workers(&b.tile, CODE, DATA, 1, 0);
    g_assert_cmpint(tile_run(&b.tile, 10000), ==, TILE_STOP_DONE);
}

static void test_accumulator_reads(void) {
    const uint32_t a[8] = {0x3c00 | 0xc000u << 16, 0x4200 | 0x4400u << 16, 0, 0, 0, 0, 0, 8};
    const struct { enum isa_op op; uint32_t lanes; uint32_t want[2]; } ops[] = {
        {ISA_OP_F16V4ACC, 4, {0x3c00 | 0xc000u << 16, 0x4200 | 0x4400u << 16}},
        {ISA_OP_F16V4ABSACC, 4, {0x3c00 | 0x4000u << 16, 0x4200 | 0x4400u << 16}}};
    for (uint32_t k = 0; k < 2; k++) {
        const uint32_t code[] = {W(UPUT, ISA_CSR_FP_CLR, 7), word_of(ops[k].op, 0), W(F16V4GACC, 4), W(F16V2GINA, 6, 15, 0), W(EXITZ, 15)};
        run_code(code, 5, a);
        g_assert_cmphex(b.tile.w[0].a[4], ==, ops[k].want[0]);
        g_assert_cmphex(b.tile.w[0].a[5], ==, ops[k].want[1]);
        g_assert_cmphex(b.tile.w[0].a[6], ==, ops[k].want[0]); /* gacc did not shift */
    }
    const uint32_t f[8] = {num_f32_bits(1), num_f32_bits(-2), num_f32_bits(3), num_f32_bits(-4), 0, 0, 0, 8};
    const struct { enum isa_op op; float want[4]; } sums[] = {
        {ISA_OP_F32V4ACC, {1, -2, 3, -4}}, {ISA_OP_F32V4ABSACC, {1, 2, 3, 4}}, {ISA_OP_F32V4SQACC, {1, 4, 9, 16}}};
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t code[] = {W(UPUT, ISA_CSR_FP_CLR, 7), word_of(sums[k].op, 0), W(F32V2GINA, 4, 14, 0), W(F32V2GINA, 6, 14, 0), W(EXITZ, 15)};
        run_code(code, 5, f);
        for (uint32_t j = 0; j < 4; j++)
            g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[4 + j]), ==, sums[k].want[j]);
    }
}

/* The Gaussian numbers: mean and variance; the F32 mask: share of lanes kept. */
static void test_distributions(void) {
    enum { N = 4000 };
    const uint32_t code[] = {W(F32V2GRAND, 0), W(F16V2GRAND, 2), W(SETZI_A, 6, 0x4000), W(F32V2RMASK, 4, 0, 6), W(EXITZ, 15)};
    memcpy(sram_at(b.sram, 0, CODE), code, sizeof code);
    sram_mark_written(b.sram, 0, CODE, sizeof code);
    tile_reset(&b.tile);
    struct tile_worker *w = &b.tile.w[0];
    w->defined = UINT32_MAX;
    num_prng_seed(99, w->prng);
    w->prng_defined = 15;
    double sum = 0, squares = 0, kept = 0;
    for (uint32_t k = 0; k < N; k++) {
        tile_start_workers(&b.tile, CODE, DATA, 1, b.tile.lanes_cycle);
        g_assert_cmpint(tile_run(&b.tile, UINT64_MAX), ==, TILE_STOP_DONE);
        const double v[4] = {num_f32_from_bits(w->a[0]), num_f32_from_bits(w->a[1]),
                             num_f16_to_f32((uint16_t)w->a[2]), num_f16_to_f32((uint16_t)(w->a[2] >> 16))};
        for (uint32_t j = 0; j < 4; j++) sum += v[j], squares += v[j] * v[j];
        kept += (w->a[4] != 0) + (w->a[5] != 0);
    }
    g_assert_cmpfloat(sum / (4 * N), <, 0.03);
    g_assert_cmpfloat(sum / (4 * N), >, -0.03);
    g_assert_cmpfloat(squares / (4 * N), <, 1.05);
    g_assert_cmpfloat(squares / (4 * N), >, 0.95);
    g_assert_cmpfloat(kept / (2 * N), <, 0.27);
    g_assert_cmpfloat(kept / (2 * N), >, 0.23);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    build_init(&b, (struct tile_config){0});
    g_test_add_func("/tile/accesses/loads", test_loads);
    g_test_add_func("/tile/accesses/stores", test_stores);
    g_test_add_func("/tile/accesses/dual", test_dual_loads);
    g_test_add_func("/tile/accesses/tables", test_tables);
    g_test_add_func("/tile/accesses/conditions", test_conditions);
    g_test_add_func("/tile/accesses/classes", test_classes);
    g_test_add_func("/tile/accesses/small-forms", test_small_forms);
    g_test_add_func("/tile/accesses/accumulators", test_accumulator_reads);
    g_test_add_func("/tile/accesses/distributions", test_distributions);
    const int status = g_test_run();
    build_free(&b);
    return status;
}
