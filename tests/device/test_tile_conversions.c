/* Conversions between F16, F8 and F32 over all their inputs, in every rounding mode, stochastic too,
 * with saturation and NaN on overflow, by the scalar and the vector code, against the search among the
 * values of all codes in tests/oracle. F32 to F16 takes every F16 value, every tie and both neighbours
 * of each, as F32. */
#include "../oracle/oracle_float.h"
#include "tile_build.h"

static struct build b;
enum { IN = 0x80000, OUT = 0xa0000, CHUNK = 4096, LEFT = 2 }; /* 64-bit words in a run; the last ones stay */

/* RND, ESR, NANOO. */
static const uint32_t MODES[] = {0 << 16, 1 << 16, 2 << 16, 3 << 16, 4 << 16, 1 << 19, 1 << 20, 1 << 19 | 1 << 20};

struct job {
    enum isa_op op;
    uint32_t in, out; /* registers in and out */
    uint32_t ctl, nfmt, scl;
};

/* A loop: loads `in` registers, converts, stores `out` of them. In a pair, what is not used is
 * loaded and stored too. */
static void program_make(const struct job *j) {
    b.at = CODE;
    I(SETZI_M, 0, IN);
    I(SETZI_M, 1, OUT);
    if (b.at % 8 == 0) I(SETZI_M, 14, 0);
    I(RPT_Z, CHUNK / (j->in > 2 ? 2 : 1) - 1, j->in > 2 ? 3 : 2);
    B(W(LD64STEP_S, 0, 15, 0, 1), FNOP);
    if (j->in > 2) B(W(LD64STEP_S, 2, 15, 0, 1), FNOP);
    B(MNOP, word_of(j->op, 4, 0));
    B(W(ST64STEP_S, 4, 15, 1, 1), FNOP);
    I(EXITZ, 15);
}

/* Runs over `words` 64-bit words at IN; what is at OUT must be what the oracle makes of them. */
static void run_chunk(const struct job *j, uint64_t seed) {
    struct tile_worker *w = &b.tile.w[0];
    struct oracle s = {.ctl = j->ctl, .nfmt = j->nfmt, .scl = j->scl, .prng = {seed, ~seed}};
    struct step x = {.f = isa_form(j->op), .name = isa_form(j->op)->mnemonic, .v = {4, 0}};
    tile_reset(&b.tile);
    b.tile.s.fp_ictl = j->ctl;
    b.tile.s.fp_infmt = j->nfmt;
    b.tile.s.fp_iscl = j->scl;
    w->defined = UINT32_MAX;
    memcpy(w->prng, s.prng, 16);
    w->prng_defined = 15;
    w->a[4] = w->a[5] = 0;
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    const uint32_t step = j->in > 2 ? 2 : 1;
    for (uint32_t k = 0, n = 0; n + step <= CHUNK - step; n += step, k++) {
        memcpy(s.a, sram_at(b.sram, 0, IN + 8 * n), 8 * step);
        g_assert_true(oracle_float(&s, &x));
        if (get32(&b, OUT + 8 * k) != s.a[4] || get32(&b, OUT + 8 * k + 4) != s.a[5])
            g_test_message("%s of %08x %08x, control %08x, scale %u", x.f->id, s.a[0], s.a[1], j->ctl, j->scl);
        g_assert_cmphex(get32(&b, OUT + 8 * k), ==, s.a[4]);
        g_assert_cmphex(get32(&b, OUT + 8 * k + 4), ==, s.a[5]);
    }
    g_assert_cmphex(w->fp_sts, ==, s.sts);
}

static void for_all_paths(void (*f)(enum tile_simd)) {
    for (uint32_t simd = TILE_SIMD_AUTO; simd <= TILE_SIMD_SCALAR; simd++) { /* one vector code for all */
        build_init(&b, (struct tile_config){.simd = (enum tile_simd)simd});
        for (uint32_t k = 0; k < 8 * CHUNK; k += 4) put32(&b, IN + k, 0), put32(&b, OUT + k, 0);
        f((enum tile_simd)simd);
        build_free(&b);
    }
}
/* Writes the inputs from `first` on: as many as fit. */
static void put_halves(uint32_t first) {
    for (uint32_t k = 0; k < 2 * CHUNK; k++) {
        const uint32_t h = first + 2 * k;
        put32(&b, IN + 4 * k, (h & 0xffff) | ((h + 1) & 0xffff) << 16);
    }
}

static void f16_paths(enum tile_simd simd) {
    static const int scales[] = {0, 1, -1, 7, -8, -20, 31, -32};
    for (uint32_t first = 0; first < 65536; first += 4 * CHUNK - 4 * LEFT) {
        put_halves(first);
        struct job wide[] = {{ISA_OP_F16V2TOF32, 2, 2, 0, 0, 0}, {ISA_OP_F16TOF32, 2, 2, 0, 0, 0}};
        for (uint32_t k = 0; k < 2; k++) program_make(&wide[k]), run_chunk(&wide[k], 1);
        for (uint32_t m = 0; m < ARRAY_LEN(MODES); m++)
            for (uint32_t fmt = 0; fmt < 2; fmt++)
                for (uint32_t k = 0; k < ARRAY_LEN(scales); k++) {
                    if (k > 1 && (m + k + fmt + simd) % 3 != 0) continue; /* the rest is spread over the modes */
                    struct job j = {ISA_OP_F16V8TOF8, 4, 2, MODES[m], fmt ? 3 : 0, (uint32_t)scales[k] & 63};
                    program_make(&j), run_chunk(&j, 77 + m);
                    j.op = ISA_OP_F16V2TOF8, j.in = 2;
                    if (k == 0) program_make(&j), run_chunk(&j, 78 + m);
                }
    }
}
static void f8_paths(enum tile_simd simd) {
    for (uint32_t k = 0; k < 2 * CHUNK; k++) {
        const uint32_t q = 4 * k;
        put32(&b, IN + 4 * k, (q & 0xff) | ((q + 1) & 0xff) << 8 | ((q + 2) & 0xff) << 16 | ((q + 3) & 0xff) << 24);
    }
    for (uint32_t m = 0; m < ARRAY_LEN(MODES); m++)
        for (uint32_t scl = 0; scl < 64; scl++) {
            struct job j = {ISA_OP_F8V4TOF16, 2, 2, MODES[m], (scl + m + simd) % 2 ? 3 : 0, scl};
            if (scl % 8 != m && m > 1) continue;
            program_make(&j), run_chunk(&j, 99 + scl);
            j.op = ISA_OP_F8V2TOF16;
            program_make(&j), run_chunk(&j, 99 + scl);
        }
}
/* Every half as F32, the tie above it, and the neighbours of both. */
static uint32_t near_half(uint32_t n) {
    const float at = (float)half_value((uint16_t)(n / 6)), next = (float)half_value((uint16_t)(n / 6 + 1));
    const uint32_t v = bits_of(n / 3 % 2 ? (at + next) / 2 : at);
    return v + (n % 3 == 1 ? 1u : n % 3 == 2 ? UINT32_MAX : 0);
}
static void f32_paths(enum tile_simd simd) {
    static const struct { enum isa_op op; uint32_t in; } ops[] = {{ISA_OP_F32V4TOF16, 4}, {ISA_OP_F32V2TOF16, 2}, {ISA_OP_F32TOF16, 2}};
    enum { ALL = 6 * 65536, VALUES = 2 * CHUNK - 2 * LEFT };
    (void)simd;
    for (uint32_t first = 0; first < ALL; first += VALUES) {
        for (uint32_t k = 0; k < VALUES; k++) put32(&b, IN + 4 * k, near_half((first + k) % ALL));
        for (uint32_t m = 0; m < ARRAY_LEN(MODES); m++)
            for (uint32_t o = 0; o < ARRAY_LEN(ops); o++) {
                struct job j = {ops[o].op, ops[o].in, 2, MODES[m], 0, 0};
                if (o != 0 && (first / VALUES + m) % 4 != o) continue;
                program_make(&j), run_chunk(&j, first + m);
            }
    }
}

static void test_f16(void) { for_all_paths(f16_paths); }
static void test_f8(void) { for_all_paths(f8_paths); }
static void test_f32(void) { for_all_paths(f32_paths); }

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/conversions/f16", test_f16);
    g_test_add_func("/tile/conversions/f8", test_f8);
    g_test_add_func("/tile/conversions/f32", test_f32);
    return g_test_run();
}
