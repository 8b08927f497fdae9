/* Random programs: valid ones run plain and fused, scalar and vector, worker by worker and slot by slot,
 * strict and permissive, and must agree in memory, registers, cycles and faults. Then random words as
 * code: any end is fine, as long as it is one. IPU_SEED=N repeats a run; IPU_ROUNDS=N makes it longer. */
#include "numeric/num_format.h"

#include "../device/tile_build.h"

static uint64_t seed = 1, rounds = 40;
static uint32_t draw_at;
static uint32_t draw(uint32_t below) { return (uint32_t)(rand_u64(seed, 1, draw_at++) % below); }

/* Data: 4 KiB in region 1 per worker and pointer, so that random steps of up to 16 atoms stay inside.
 * Registers: m0..m3 pointers into four areas that do not share elements, m4:5 packed addresses of three
 * of them, m6 stride word, m7 small integers, m8.. scratch; a0..a7 data. */
enum { AREA = 0x8000, FIRST_AREA = 0x80000, N_AREAS = 8, MIDDLE = 0x4000 };

static enum isa_op pick_aux(void) {
    for (;;) {
        const enum isa_op op = (enum isa_op)draw(ISA_N_OPS);
        const struct isa_form *f = isa_form(op);
        if (f->pipe != ISA_AUX || f->kind == ISA_KIND_SYSTEM || op == ISA_OP_F32SISOV2SLIC) continue;
        return op;
    }
}

static uint32_t operand_value(const struct isa_operand *o, enum isa_op op) {
    switch (o->class) {
    case ISA_CLASS_A: case ISA_CLASS_A_B: case ISA_CLASS_A_BL: case ISA_CLASS_A_BU: return draw(8);
    case ISA_CLASS_A2: return draw(5) < 4 ? 2 * draw(4) : 14;
    case ISA_CLASS_A4: return 4 * draw(2);
    case ISA_CLASS_M: return 7 + draw(5);
    case ISA_CLASS_E:
        if (op == ISA_OP_F32INT) return draw(5);
        if (op == ISA_OP_F32V2AOP) return 0;
        if (op == ISA_OP_F16V4ISTACC || op == ISA_OP_F16V4STACC) return draw(2);
        if (strstr(isa_form(op)->mnemonic, "slic")) return draw(8);
        return draw(4); /* AMP: four engines, phases 0..3 */
    case ISA_CLASS_T12: return draw(4096) << 20;
    case ISA_CLASS_Z12: return op == ISA_OP_F32V2GINA || op == ISA_OP_F16V2GINA ? draw(4) : draw(4096);
    case ISA_CLASS_Z20: return draw(1 << 20);
    case ISA_CLASS_Z16: case ISA_CLASS_S16: return draw(64);
    default: return draw(4);
    }
}

static uint32_t random_word(enum isa_op op) {
    struct isa_insn i = {.op = (uint16_t)op};
    uint32_t words[2];
    for (uint32_t k = 0; k < isa_form(op)->n_operands; k++)
        isa_operand_set(&i, k, operand_value(&isa_form(op)->operand[k], op));
    isa_encode(&i, words);
    return words[0];
}

/* A main instruction: transfers through the pointers, or integers in scratch registers. */
static uint32_t main_word(bool amp) {
    const int step = (int)draw(9) - 4, p = (int)draw(4);
    static const enum isa_op INTS[] = {ISA_OP_ADD_R, ISA_OP_SUB_R, ISA_OP_XOR, ISA_OP_MUL_R, ISA_OP_SHR_Z,
                                       ISA_OP_ROLL16_M, ISA_OP_MIN_R, ISA_OP_ADD_S, ISA_OP_OR_M_Z};
    static const uint8_t TRANSFERS[] = {0, 1, 6, 7, 8, 9, 10, 11, 13};
    switch (amp ? TRANSFERS[draw(ARRAY_LEN(TRANSFERS))] : draw(14)) {
    case 0: return W(LD64STEP_S, 2 * (int)draw(4), 15, p, step);
    case 1: return W(ST64STEP_S, 2 * (int)draw(4), 15, p, step);
    case 2: return W(LD32STEP_A_S, (int)draw(8), 15, p, 2 * step);
    case 3: return W(LD64_Z, 2 * (int)draw(4), p, 15, (int)draw(16));
    case 4: return W(ST32_A_Z, (int)draw(8), p, 15, (int)draw(16));
    case 5: return W(LDB16_Z, (int)draw(8), p, 15, (int)draw(16));
    case 6: case 7: return W(LDST64PACE, 2 * (int)draw(4), 2 * (int)draw(4), 4, 6, (int)draw(16));
    case 8: case 9: return W(LD2XST64PACE, 4 * (int)draw(2), 2 * (int)draw(4), 4, 6, (int)draw(64));
    case 10: return W(ST64PACE, 2 * (int)draw(4), 4, 6, (int)draw(4));
    case 11: return W(LD2X64PACE, 0, 2, 4, 6, (int)draw(16));
    case 12: return random_word(INTS[draw(ARRAY_LEN(INTS))]);
    default: return MNOP;
    }
}

static bool makes_bundle(uint32_t m, uint32_t a) {
    struct isa_insn im, ia;
    return isa_decode(m, 0, &im) && isa_decode(a, 0, &ia) && isa_bundle_check(&im, &ia) == ISA_BUNDLE_OK;
}

/* AMP loops get only AMP and 64-bit transfers, so that they meet the fused executor's plan. */
static void random_bundle(struct build *pb, int amp) {
#define b (*pb)
    uint32_t m, a;
    do {
        m = main_word(amp != 0);
        a = amp == 2   ? W(F8V8HIHOV4AMP, 2 * (int)draw(4), 2 * (int)draw(4), 2 * (int)draw(4), (int)draw(4))
            : amp == 1 ? W(F16V4HIHOV4AMP, 2 * (int)draw(4), 2 * (int)draw(4), draw(3) ? 14 : 2 * (int)draw(4), (int)draw(4))
                       : random_word(pick_aux());
    } while (!makes_bundle(m, a));
    B(m, a);
#undef b
}

static void set_constant(struct build *pb, int reg, uint32_t v) {
#define b (*pb)
    I(SETZI_M, reg, (int)(v & 0xfffff));
    if (v >> 20) I(OR_M_T, reg, reg, (int)(v & 0xfff00000));
#undef b
}

/* Each worker has its own 4 KiB in every area. */
static void prologue(struct build *pb) {
#define b (*pb)
    I(GET, 0, ISA_CSR_WSR);
    I(AND_M_Z, 0, 0, 7);
    I(SHL_Z, 0, 0, 12);
    for (int p = 3; p >= 0; p--) {
        set_constant(&b, 8, FIRST_AREA + AREA * (uint32_t)p + 0x800);
        I(ADD_R, p, 0, 8);
    }
    set_constant(&b, 8, FIRST_AREA + AREA * 4 + 0x800);
    I(SUB_R, 7, 0, 15);
    I(ADD_R, 9, 0, 8); /* 0 holds area 0 already: distance from there */
    set_constant(&b, 9, FIRST_AREA + 0x800);
    I(SUB_R, 9, 0, 9); /* worker * 4096 */
    I(ADD_R, 10, 8, 9);
    set_constant(&b, 8, FIRST_AREA + AREA * 5 + 0x800);
    I(ADD_R, 11, 8, 9);
    set_constant(&b, 8, FIRST_AREA + AREA * 6 + 0x800 + 8 * draw(2));
    I(ADD_R, 8, 8, 9);
    I(TAPACK, 4, 10, 11, 8);
    const uint32_t stride = draw(8) | (draw(3) ? draw(8) : 0x3fd) << 10 | draw(4) << 20;
    set_constant(&b, 6, stride);
    I(SETZI_M, 7, 5);
    I(SETZI_A, 0, 8);
    I(UPUT, ISA_CSR_FP_CLR, 0);
    I(SETZI_A, 1, 77);
    I(UPUT, ISA_CSR_PRNG_SEED, 1);
    for (int r = 0; r < 8; r += 2) I(LD64_Z, r, 1, 15, r);
#undef b
}

static void random_program(struct build *pb) {
#define b (*pb)
    b.at = CODE;
    prologue(&b);
    for (uint32_t block = 0; block < 6; block++) {
        const uint32_t n = 1 + draw(6), count = draw(12);
        const int amp = draw(2) ? 1 + (int)draw(2) : 0;
        if (b.at % 8) I(SETZI_M, 14, 0);
        for (uint32_t k = draw(3); k > 0; k--) random_bundle(&b, amp);
        B(W(RPT_Z, (int)count, (int)n - 1), FNOP);
        for (uint32_t k = 0; k < n; k++) random_bundle(&b, amp);
    }
    I(EXITZ, 15);
#undef b
}

static uint16_t plain_half(uint32_t i) {
    const double v = rand_normal(seed, 9, i);
    const uint16_t h = num_f16_from_f32((float)v); /* as two F8 codes: no NaN */
    return draw(20000) == 0 ? (uint16_t)draw(65536) : (h & 0xff) == 0x80 ? h ^ 1 : h;
}

static void fill_memory(struct build *pb, bool holes) {
    for (uint32_t at = 0; at < AREA * N_AREAS; at += 4) {
        const uint32_t v = plain_half(at) | (uint32_t)plain_half(at + 1) << 16;
        put32(pb, FIRST_AREA + at, v);
    }
    if (holes)
        for (uint32_t k = 0; k < 40; k++)
            sram_mark_unwritten(pb->sram, 0, FIRST_AREA + 4 * draw(AREA * N_AREAS / 4), 4);
    for (uint32_t k = 0; k < 64; k++) {
        pb->tile.weights[k] = 0;
        for (uint32_t j = 0; j < 4; j++) pb->tile.weights[k] |= (uint64_t)plain_half(8 * k + j) << 16 * j;
    }
    pb->tile.weights_defined = UINT64_MAX;
    pb->tile.weights_generation++;
}

struct outcome {
    enum tile_stop_reason reason;
    struct tile_fault fault;
    struct tile_worker w[TILE_N_WORKERS];
    uint64_t cycle, fused, slots;
    char *memory, *written;
};

/* The same program and data (same draws) under a configuration. */
static struct outcome run(struct tile_config config, uint32_t from, bool holes, uint32_t ctl) {
    struct build b;
    draw_at = from;
    build_init(&b, config);
    random_program(&b);
    fill_memory(&b, holes);
    b.tile.s.fp_ictl = ctl;
    b.tile.s.fp_infmt = 3;
    b.tile.s.fp_iscl = (uint32_t)-6 & 63;
    tile_start_workers(&b.tile, CODE, DATA, 6, 0);
    struct outcome o = {.reason = tile_run(&b.tile, 1000000)};
    o.fault = b.tile.fault;
    memcpy(o.w, b.tile.w, sizeof o.w);
    o.cycle = b.tile.stop.cycle;
    o.fused = b.tile.counters.fused_slots;
    o.slots = b.tile.counters.worker_slots;
    o.memory = g_compute_checksum_for_data(G_CHECKSUM_SHA256, b.tile.bytes, SRAM_BYTES);
    o.written = g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)b.tile.written, SRAM_WRITTEN_WORDS * 8);
    build_free(&b);
    return o;
}

static void outcome_free(struct outcome *o) {
    g_free(o->memory);
    g_free(o->written);
}

/* After a fault only the record is compared when the order of the workers differs. */
static void compare(const struct outcome *x, const struct outcome *y, bool same_order) {
    g_assert_cmpint(x->reason, ==, y->reason);
    if (x->reason == TILE_STOP_FAULT && !same_order) return;
    g_assert_cmpmem(&x->fault, sizeof x->fault, &y->fault, sizeof y->fault);
    g_assert_cmpuint(x->cycle, ==, y->cycle);
    if (x->reason == TILE_STOP_FAULT) return;
    g_assert_cmpstr(x->memory, ==, y->memory);
    g_assert_cmpstr(x->written, ==, y->written);
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++)
        g_assert_cmpmem(&x->w[w], sizeof x->w[w], &y->w[w], sizeof y->w[w]);
    g_assert_cmpuint(x->slots, ==, y->slots);
}

static void test_programs(void) {
    uint32_t done = 0, fused_runs = 0, faulted = 0;
    uint64_t fused = 0, slots = 0;
    for (uint32_t r = 0; r < rounds; r++) {
        const uint32_t from = r * 1000003, ctl = draw(8) == 0 ? 1u << 19 : draw(8) == 0 ? 1u << 20 : draw(16) == 0 ? 4 : 0;
        const bool holes = r % 4 == 3;
        struct outcome base = run((struct tile_config){0}, from, holes, ctl);
        const struct tile_config others[] = {
            {.plain = true}, {.plain = true, .simd = TILE_SIMD_SCALAR}, {.simd = TILE_SIMD_SCALAR},
            {.simd = tile_simd_best() >= TILE_SIMD_AVX2 ? TILE_SIMD_AVX2 : TILE_SIMD_AUTO},
            {.interleave = true}, {.permissive = true}};
        for (uint32_t k = 0; k < ARRAY_LEN(others); k++) {
            if (others[k].permissive && base.reason == TILE_STOP_FAULT) continue;
            struct outcome o = run(others[k], from, holes, ctl);
            if (o.reason != base.reason || (o.reason == TILE_STOP_DONE && g_strcmp0(o.memory, base.memory)))
                g_test_message("seed %" G_GUINT64_FORMAT ", round %u, configuration %u", seed, r, k);
            compare(&base, &o, !others[k].interleave);
            outcome_free(&o);
        }
        if (base.reason == TILE_STOP_DONE) { /* exponentials of zeros are shorter with data */
            struct outcome o = run((struct tile_config){.timing_only = true}, from, holes, ctl);
            struct outcome plain = run((struct tile_config){.timing_only = true, .plain = true}, from, holes, ctl);
            g_assert_cmpint(o.reason, ==, TILE_STOP_DONE);
            g_assert_cmpuint(o.cycle, >=, base.cycle);
            g_assert_cmpuint(o.cycle, ==, plain.cycle);
            g_assert_cmpstr(o.written, ==, base.written);
            outcome_free(&o);
            outcome_free(&plain);
        }
        done += base.reason == TILE_STOP_DONE;
        faulted += base.reason == TILE_STOP_FAULT;
        fused_runs += base.fused != 0;
        fused += base.fused;
        slots += base.slots;
        outcome_free(&base);
    }
    g_test_message("%u done, %u faulted, %u with fused loops, %.0f %% of slots fused", done, faulted,
                   fused_runs, 100.0 * (double)fused / (double)(slots ? slots : 1));
    g_assert_cmpuint(done, >, 0);
    g_assert_cmpuint(fused_runs, >, 0);
}

/* Random words, random bytes of valid instructions: the model ends with a stop, never crashes. */
static void test_bytes(void) {
    struct build b;
    for (uint32_t r = 0; r < 40 * rounds; r++) {
        build_init(&b, (struct tile_config){.permissive = r % 2, .standalone = r % 3 == 0});
        b.at = CODE;
        for (uint32_t k = 0; k < 64; k++) {
            uint32_t w = (uint32_t)rand_u64(seed, 3, 64 * r + k);
            if (draw(3) == 0) w = isa_form((enum isa_op)draw(ISA_N_OPS))->word | (w & ~isa_form((enum isa_op)draw(ISA_N_OPS))->mask);
            if (draw(4) == 0) w |= 0x80000000u;
            build_word(&b, w);
        }
        for (uint32_t w = 0; w < 6; w++) b.tile.w[w].defined = UINT32_MAX;
        b.tile.s.defined = UINT32_MAX;
        const enum tile_stop_reason reason = r % 5 == 0 ? run_super(&b) : (tile_start_workers(&b.tile, CODE, DATA, 6, 0), tile_run(&b.tile, 20000));
        g_assert_cmpint(reason, !=, TILE_STOP_NONE);
        build_free(&b);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    if (g_getenv("IPU_SEED")) seed = g_ascii_strtoull(g_getenv("IPU_SEED"), NULL, 0);
    if (g_getenv("IPU_ROUNDS")) rounds = g_ascii_strtoull(g_getenv("IPU_ROUNDS"), NULL, 0);
    g_test_message("IPU_SEED=%" G_GUINT64_FORMAT, seed);
    g_test_add_func("/tile/fuzz/programs", test_programs);
    g_test_add_func("/tile/fuzz/bytes", test_bytes);
    return g_test_run();
}
