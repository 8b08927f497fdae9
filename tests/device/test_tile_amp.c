/* The matrix unit against a plain matrix product: all forms, engine counts and phases; small integers,
 * so that every order of additions gives the same exact sum. Then the order itself on random bits,
 * against the definition of the arithmetic model, for the scalar and the vector code. Then SLIC. */
#include "numeric/num_format.h"
#include "tile_build.h"

#include <math.h>

enum { N_ITEMS = 7, X_AT = DATA, P_AT = DATA + 0x4000, D_AT = DATA + 0x8000 };
enum type { F16, F8, F32 };

struct form {
    const char *name;
    enum isa_op op;
    enum type type;
    uint32_t sets;
    bool half_in, half_out;
};
static const struct form FORMS[] = {
    {"f16v4hihov4amp", ISA_OP_F16V4HIHOV4AMP, F16, 2, true, true},
    {"f8v8hihov4amp", ISA_OP_F8V8HIHOV4AMP, F8, 2, true, true},
    {"f16v4hihoamp", ISA_OP_F16V4HIHOAMP, F16, 1, true, true},
    {"f16v4sisoamp", ISA_OP_F16V4SISOAMP, F16, 1, false, false},
    {"f16v4sihoamp", ISA_OP_F16V4SIHOAMP, F16, 1, false, true},
    {"f32sisoamp", ISA_OP_F32SISOAMP, F32, 1, false, false},
    {"f32sisov2amp", ISA_OP_F32SISOV2AMP, F32, 2, false, false},
};

struct problem {
    const struct form *f;
    uint32_t n_items; /* of N_ITEMS */
    int warm;         /* phase of all warm-up calls, or -1: each its own (isa 4.3) */
    uint32_t engines, phases, per_phase, inputs;
    double x[N_ITEMS][32], w[16][32], p[N_ITEMS][16];
    uint32_t x_bits[N_ITEMS][32], w_bits[16][32], p_bits[N_ITEMS][16];
};

static uint32_t encode(enum type t, double v) {
    if (t == F16) return num_f16_from_f32((float)v);
    if (t == F8) return num_f8_from_f32((float)v, NUM_F143, 0);
    return num_f32_bits((float)v);
}
static double decode(enum type t, uint32_t b) {
    if (t == F16) return num_f16_to_f32((uint16_t)b);
    if (t == F8) return num_f8_to_f64((uint8_t)b, NUM_F143, 0);
    return num_f32_from_bits(b);
}

/* integers: -4..4; else random normal numbers of mixed size. */
static double value(bool integers, uint32_t stream, uint32_t i) {
    if (integers) return (double)(rand_u64(7, stream, i) % 9) - 4;
    return ldexp(rand_normal(7, stream, i), (int)(rand_u64(8, stream, i) % 9) - 4);
}

static void problem_make(struct problem *q, const struct form *f, uint32_t engines, bool integers) {
    *q = (struct problem){.f = f, .engines = engines, .n_items = N_ITEMS, .warm = -1};
    q->phases = f->type == F32 ? 2 * engines : engines;
    q->per_phase = f->type == F32 ? 1 : f->type == F16 ? 4 : 8;
    q->inputs = q->phases * q->per_phase;
    uint32_t n = 0;
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        for (uint32_t k = 0; k < q->inputs; k++) {
            q->x_bits[i][k] = encode(f->type, value(integers, 1, n++));
            q->x[i][k] = decode(f->type, q->x_bits[i][k]);
        }
        for (uint32_t u = 0; u < 16; u++) {
            const enum type t = f->half_in ? F16 : F32;
            q->p_bits[i][u] = encode(t, value(integers, 2, n++));
            q->p[i][u] = decode(t, q->p_bits[i][u]);
        }
    }
    for (uint32_t u = 0; u < 16; u++)
        for (uint32_t k = 0; k < q->inputs; k++) {
            q->w_bits[u][k] = encode(f->type, value(integers, 3, n++));
            q->w[u][k] = decode(f->type, q->w_bits[u][k]);
        }
}

static void load_weights(struct tile *t, const struct problem *q) {
    const uint32_t bits = q->f->type == F16 ? 16 : q->f->type == F8 ? 8 : 32, per_word = 64 / bits;
    for (uint32_t u = 0; u < 16; u++)
        for (uint32_t k = 0; k < q->inputs; k++)
            t->weights[4 * u + k / per_word] |= (uint64_t)q->w_bits[u][k] << bits * (k % per_word);
    t->weights_defined = UINT64_MAX;
    t->weights_generation++;
}

/* The pair of units that leaves and enters in a call, or -1; of set `*set` in the F32 forms. */
static int pair_of_call(const struct problem *q, uint32_t phase) {
    if (q->f->type != F32) return (int)phase;
    return q->f->sets == 1 && phase % 2 ? -1 : (int)phase / 2;
}
static uint32_t set_of_call(const struct problem *q, uint32_t phase) {
    return q->f->type == F32 && q->f->sets == 2 ? phase % 2 : 0;
}

/* Words of the partial operand of a call that brings in item i's partials. */
static void partial_words(const struct problem *q, uint32_t item, uint32_t phase, uint32_t ret[2]) {
    const int pair = pair_of_call(q, phase);
    ret[0] = ret[1] = 0;
    if (pair < 0 || item >= q->n_items) return;
    const uint32_t u = 2 * (uint32_t)pair;
    const uint32_t *p = q->p_bits[item];
    if (q->f->half_in) {
        ret[0] = p[u] | p[u + 1] << 16;
        if (q->f->sets == 2) ret[1] = p[8 + u] | p[8 + u + 1] << 16;
        return;
    }
    const uint32_t set = set_of_call(q, phase);
    ret[0] = p[8 * set + u];
    ret[1] = p[8 * set + u + 1];
}

static void x_words(const struct problem *q, uint32_t item, uint32_t phase, uint32_t ret[2]) {
    const uint32_t bits = q->f->type == F16 ? 16 : q->f->type == F8 ? 8 : 32;
    uint64_t v = 0;
    for (uint32_t k = 0; k < q->per_phase && item < q->n_items; k++)
        v |= (uint64_t)q->x_bits[item][phase * q->per_phase + k] << bits * k;
    ret[0] = (uint32_t)v;
    ret[1] = (uint32_t)(v >> 32);
}

/* Calls: one warm-up item, the items, one drain item. */
static void program_make(struct build *pb, const struct problem *q) {
#define b (*pb)
    const uint32_t flags = q->engines == 4 ? 0 : q->engines == 2 ? 8 : 16;
    uint32_t call = 0;
    I(SETZI_A, 0, 8);
    I(UPUT, ISA_CSR_FP_CLR, 0);
    for (uint32_t item = 0; item < q->n_items + 2; item++)
        for (uint32_t phase = 0; phase < q->phases; phase++, call++) {
            uint32_t x[2], p[2];
            const uint32_t written = item == 0 && q->warm >= 0 ? (uint32_t)q->warm : phase;
            x_words(q, item == 0 ? N_ITEMS : item - 1, phase, x);
            partial_words(q, item, phase, p);
            put32(&b, X_AT + 8 * call, x[0]);
            put32(&b, X_AT + 8 * call + 4, x[1]);
            put32(&b, P_AT + 8 * call, p[0]);
            put32(&b, P_AT + 8 * call + 4, p[1]);
            I(SETZI_M, 0, (int)(X_AT + 8 * call));
            I(SETZI_M, 1, (int)(P_AT + 8 * call));
            I(SETZI_M, 2, (int)(D_AT + 8 * call));
            I(LD64_Z, 0, 0, 15, 0);
            I(LD64_Z, 2, 1, 15, 0);
            I(OR64, 4, 14, 14);
            build_word(&b, word_of(q->f->op, 4, 0, 2, (int)(flags | written)));
            I(ST64_Z, 4, 2, 15, 0);
        }
    I(EXITZ, 15);
#undef b
}

/* A one-register result leaves the second register as zero. */
static void result_words(const struct build *b, const struct problem *q, uint32_t item,
                         uint32_t phase, uint32_t ret[2]) {
    const uint32_t call = (item + 2) * q->phases + phase;
    ret[0] = get32(b, D_AT + 8 * call);
    ret[1] = get32(b, D_AT + 8 * call + 4);
}

static uint32_t result_bits(const struct build *b, const struct problem *q, uint32_t item,
                            uint32_t unit) {
    const uint32_t set = unit / 8, pair = unit % 8 / 2, odd = unit % 2;
    uint32_t r[2];
    if (q->f->type == F32) {
        result_words(b, q, item, 2 * pair + (q->f->sets == 2 ? set : 0), r);
        return r[odd];
    }
    result_words(b, q, item, pair, r);
    return q->f->half_out ? r[set] >> 16 * odd & 0xffff : r[odd];
}

/* The sum of one output by the definition of model A (isa 4.7). */
static float expected(const struct problem *q, uint32_t item, uint32_t unit) {
    float acc = (float)q->p[item][unit];
    for (uint32_t phase = 0; phase < q->phases; phase++) {
        double t[8];
        for (uint32_t k = 0; k < q->per_phase; k++)
            t[k] = q->x[item][phase * q->per_phase + k] * q->w[unit][phase * q->per_phase + k];
        if (q->f->type == F32)
            acc = fmaf((float)q->x[item][phase], (float)q->w[unit][phase], acc);
        else if (q->per_phase == 4)
            acc = (float)((double)acc + ((t[0] + t[1]) + (t[2] + t[3])));
        else
            acc = (float)((double)acc + (((t[0] + t[1]) + (t[2] + t[3])) + ((t[4] + t[5]) + (t[6] + t[7]))));
    }
    return acc;
}

static double plain(const struct problem *q, uint32_t item, uint32_t unit) {
    double sum = q->p[item][unit];
    for (uint32_t k = 0; k < q->inputs; k++) sum += q->x[item][k] * q->w[unit][k];
    return sum;
}

struct variant {
    uint32_t engines, n_items;
    bool integers;
    int warm;
};
static void check_form(const struct form *f, const struct variant *v, enum tile_simd simd) {
    const uint32_t engines = v->engines;
    const bool integers = v->integers;
    struct problem q;
    struct build b;
    problem_make(&q, f, engines, integers);
    q.n_items = v->n_items;
    q.warm = v->warm;
    build_init(&b, (struct tile_config){.simd = simd});
    load_weights(&b.tile, &q);
    b.tile.s.fp_infmt = 3;
    program_make(&b, &q);
    const enum tile_stop_reason r = run_worker(&b);
    g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_NONE);
    g_assert_cmpint(r, ==, TILE_STOP_DONE);
    for (uint32_t item = 0; item < q.n_items; item++)
        for (uint32_t u = 0; u < 8 * f->sets; u++) {
            if (u % 8 >= 2 * engines) continue;
            const uint32_t got = result_bits(&b, &q, item, u);
            const float want = expected(&q, item, u);
            if (integers) g_assert_cmpfloat(want, ==, plain(&q, item, u));
            g_assert_cmphex(got, ==, f->half_out ? num_f16_from_f32(want) : num_f32_bits(want));
        }
    build_free(&b);
}

static void test_forms(void) {
    for (uint32_t k = 0; k < ARRAY_LEN(FORMS); k++)
        for (uint32_t engines = 1; engines <= 4; engines *= 2) {
            for (uint32_t n = 0; n < 2 * N_ITEMS; n++)
                for (uint32_t simd = TILE_SIMD_AUTO; simd <= (uint32_t)tile_simd_best(); simd++) {
                    /* F32 with one engine: P0 and P1 as the larger ones; only P2 is public, isa 4.5 */
                    const struct variant v = {engines, n / 2 + 1, n % 2, -1};
                    check_form(&FORMS[k], &v, (enum tile_simd)simd);
                    if (engines == 1 || FORMS[k].type == F32) continue;
                    check_form(&FORMS[k], &(struct variant){engines, n / 2 + 1, n % 2, 1}, (enum tile_simd)simd);
                }
        }
}

/* The scale multiplies the sum of products, not the partial; formats of the operands may differ. */
static void test_f8_scale(void) {
    for (uint32_t nfmt = 0; nfmt < 4; nfmt++)
        for (uint32_t simd = 0; simd <= (uint32_t)tile_simd_best(); simd++) {
            struct build b;
            build_init(&b, (struct tile_config){.simd = (enum tile_simd)simd});
            for (uint32_t k = 0; k < 64; k++) b.tile.weights[k] = UINT64_C(0x41); /* one weight a word */
            b.tile.weights_defined = UINT64_MAX;
            b.tile.weights_generation++;
            b.tile.s.fp_infmt = nfmt;
            b.tile.s.fp_iscl = (uint32_t)-3 & 63;
            put32(&b, DATA, 0x4d);           /* x: one input */
            put32(&b, DATA + 4, 0);
            put32(&b, DATA + 8, 0x3c003c00); /* partials 1.0 */
            put32(&b, DATA + 12, 0x3c003c00);
            I(SETZI_A, 0, 8);
            I(UPUT, ISA_CSR_FP_CLR, 0);
            I(LD64_Z, 0, 13, 15, 0);
            I(LD64_Z, 2, 13, 15, 1);
            for (int p = 0; p < 4; p++) I(F8V8HIHOV4AMP, 4, 14, 2, p);
            for (int p = 0; p < 4; p++) I(F8V8HIHOV4AMP, 4, 0, 14, p);
            I(F8V8HIHOV4AMP, 4, 14, 14, 0);
            I(EXITZ, 15);
            g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
            const double x = num_f8_to_f64(0x4d, (enum num_f8_format)(nfmt >> 1), 0);
            const double w = num_f8_to_f64(0x41, (enum num_f8_format)(nfmt & 1), 0);
            const uint16_t want = num_f16_from_f32((float)(1 + 4 * x * w / 8));
            g_assert_cmphex(b.tile.w[0].a[4], ==, want * 0x10001u);
            g_assert_cmphex(b.tile.w[0].a[5], ==, want * 0x10001u);
            build_free(&b);
        }
}

/* A sum that overflows F16 saturates or gives NaN and sets OFLO; it raises nothing in the sum. */
static void test_overflow(void) {
    for (uint32_t nanoo = 0; nanoo < 2; nanoo++)
        for (uint32_t simd = 0; simd <= (uint32_t)tile_simd_best(); simd++) {
            struct build b;
            build_init(&b, (struct tile_config){.simd = (enum tile_simd)simd});
            for (uint32_t k = 0; k < 64; k++) b.tile.weights[k] = UINT64_C(0x7bff);
            b.tile.weights_defined = UINT64_MAX;
            b.tile.weights_generation++;
            b.tile.s.fp_ictl = nanoo << 20;
            put32(&b, DATA, 0xc000); /* -2 */
            put32(&b, DATA + 4, 0);
            I(SETZI_A, 0, 8);
            I(UPUT, ISA_CSR_FP_CLR, 0);
            I(LD64_Z, 0, 13, 15, 0);
            for (int p = 0; p < 4; p++) I(F16V4HIHOV4AMP, 4, 0, 14, p);
            I(UGET, 6, ISA_CSR_FP_STS);
            I(F16V4HIHOV4AMP, 4, 14, 14, 0);
            I(UGET, 7, ISA_CSR_FP_STS);
            I(EXITZ, 15);
            g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
            g_assert_cmphex(b.tile.w[0].a[4], ==, nanoo ? 0x7e007e00 : 0xfbfffbff);
            g_assert_cmpuint(b.tile.w[0].a[6], ==, 0);
            g_assert_cmpuint(b.tile.w[0].a[7], ==, NUM_OFLO);
            build_free(&b);
        }
}

/* SLIC: a convolution with 4 or 3 taps over positions, 2 output channels a set (isa 4.8). The F32 form
 * takes two inputs a position, in an L and a U call. */
struct slic {
    enum isa_op op;
    enum type type;
    uint32_t sets, inputs;
    bool half_out;
};
static const struct slic SLICS[] = {
    {ISA_OP_F16V4HIHOV4SLIC, F16, 2, 4, true}, {ISA_OP_F16V4HIHOSLIC, F16, 1, 4, true},
    {ISA_OP_F16V4SISOSLIC, F16, 1, 4, false},  {ISA_OP_F16V4SIHOSLIC, F16, 1, 4, true},
    {ISA_OP_F8V8HIHOV4SLIC, F8, 2, 8, true},   {ISA_OP_F32SISOSLIC, F32, 1, 2, false},
};
enum { POSITIONS = 12, SLIC_OUT = DATA + 0x400 };

static void slic_position(struct build *pb, const struct slic *s, uint32_t j, uint32_t flags) {
#define b (*pb)
    I(LD64STEP_S, 0, 15, 0, 1);
    if (s->type == F32) {
        build_word(&b, word_of(s->op, 4, 0, 14, (int)flags));
        build_word(&b, word_of(s->op, 6, 1, 14, (int)(flags | ISA_SLIC_UPPER)));
    } else {
        build_word(&b, word_of(s->op, 4, 0, 14, (int)flags));
    }
    I(SETZI_M, 2, (int)(SLIC_OUT + 8 * j));
    I(ST64_Z, 4, 2, 15, 0);
#undef b
}

static void check_slic(const struct slic *s, uint32_t taps, uint32_t w_index) {
    struct build b;
    double x[POSITIONS][8], w[4][4][8]; /* [channel][tap][input] */
    const uint32_t bits = 64 / s->inputs;
    build_init(&b, (struct tile_config){0});
    b.tile.s.fp_infmt = 3;
    for (uint32_t c = 0; c < 4; c++)
        for (uint32_t t = 0; t < taps; t++)
            for (uint32_t k = 0; k < s->inputs; k++) {
                w[c][t][k] = value(true, 12, 32 * c + 8 * t + k);
                const uint32_t unit = 2 * (taps - 1) - 2 * t + c % 2 + 8 * (c / 2);
                b.tile.weights[4 * unit + w_index] |= (uint64_t)encode(s->type, w[c][t][k]) << bits * k;
            }
    b.tile.weights_defined = UINT64_MAX;
    b.tile.weights_generation++;
    I(SETZI_A, 0, 8);
    I(UPUT, ISA_CSR_FP_CLR, 0);
    I(OR64, 4, 14, 14);
    I(OR_M_R, 0, 13, 15);
    for (uint32_t j = 0; j < POSITIONS; j++) {
        uint64_t word = 0;
        for (uint32_t k = 0; k < s->inputs; k++) {
            x[j][k] = value(true, 11, 8 * j + k);
            word |= (uint64_t)encode(s->type, x[j][k]) << bits * k;
        }
        put32(&b, DATA + 8 * j, (uint32_t)word);
        put32(&b, DATA + 8 * j + 4, (uint32_t)(word >> 32));
        slic_position(&b, s, j, w_index | (taps == 3 ? ISA_SLIC_3TAP : 0));
    }
    I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    for (uint32_t j = 0; j + taps < POSITIONS; j++)
        for (uint32_t c = 0; c < 2 * s->sets; c++) {
            double want = 0;
            for (uint32_t t = 0; t < taps; t++)
                for (uint32_t k = 0; k < s->inputs; k++) want += x[j + t][k] * w[c][t][k];
            const uint32_t at = SLIC_OUT + 8 * (j + taps) + 4 * (s->half_out ? c / 2 : c);
            const uint32_t got = s->half_out ? get32(&b, at) >> 16 * (c % 2) & 0xffff : get32(&b, at);
            g_assert_cmphex(got, ==, encode(s->half_out ? F16 : F32, want));
        }
    build_free(&b);
}

static void test_slic(void) {
    for (uint32_t k = 0; k < ARRAY_LEN(SLICS); k++)
        for (uint32_t taps = 3; taps <= 4; taps++)
            for (uint32_t w = 0; w < 4; w++) check_slic(&SLICS[k], taps, w);
}

/* --- Misuse. --- */

/* Flags by the sheet: E4 P0..P3, E2 P0..P1, E1 P0 (isa 4.2), F32 P0..P7, P0..P3, P0..P2; SLIC: W 0..3, 3 or 4
 * taps, F32 also L or U (isa 4.8). */
static bool flag_exists(const char *name, uint32_t v) {
    const bool f32 = g_str_has_prefix(name, "f32");
    if (g_str_has_suffix(name, "slic")) return v < (f32 ? 16u : 8u);
    static const uint32_t phases[2][3] = {{4, 2, 1}, {8, 4, 3}};
    return v / 8 < 3 && v % 8 < phases[f32][v / 8];
}
static bool matrix_op(enum isa_op op) {
    const char *name = isa_form(op)->mnemonic;
    if (op == ISA_OP_F32SISOV2SLIC) return false; /* refused as a whole */
    return (g_str_has_suffix(name, "amp") && !g_str_has_suffix(name, "clamp")) || g_str_has_suffix(name, "slic");
}
/* One call in worker 0; accumulators and weights defined as the masks say. */
static enum tile_fault_number call(enum isa_op op, uint32_t flags, uint32_t acc, uint64_t weights, int partial) {
    struct build b;
    build_init(&b, (struct tile_config){0});
    build_word(&b, word_of(op, 4, 0, partial, (int)flags));
    I(EXITZ, 15);
    struct tile_worker *w = &b.tile.w[0];
    w->defined = UINT32_MAX;
    for (uint32_t r = 0; r < 8; r++) w->a[r] = 0x3c003c00;
    memset(&w->acc, 0, sizeof w->acc);
    w->acc_defined = acc;
    b.tile.weights_defined = weights;
    run_worker(&b);
    const enum tile_fault_number n = b.tile.fault.number;
    build_free(&b);
    return n;
}

static void test_misuse(void) {
    for (uint32_t op = 0; op < ISA_N_OPS; op++) {
        if (!matrix_op((enum isa_op)op)) continue;
        const char *name = isa_form((enum isa_op)op)->mnemonic;
        const bool slic = g_str_has_suffix(name, "slic"), two = strstr(name, "ov") != NULL;
        const uint32_t all = two ? UINT32_MAX : 0x00ff00ff;
        for (uint32_t v = 0; v < 64; v++)
            g_assert_cmpint(call((enum isa_op)op, v, UINT32_MAX, UINT64_MAX, 14), ==,
                            flag_exists(name, v) ? TILE_FAULT_NONE : TILE_FAULT_INSTR_OPERAND);
        /* What a call uses must have been set, and nothing else. */
        g_assert_cmpint(call((enum isa_op)op, 0, 0, UINT64_MAX, 14), ==, TILE_FAULT_ACCUMULATORS_UNDEFINED);
        g_assert_cmpint(call((enum isa_op)op, 0, UINT32_MAX, 0, 14), ==, TILE_FAULT_WEIGHTS_UNDEFINED);
        const uint32_t used = slic ? all & 0xffff : all;
        const uint64_t words = two ? UINT64_C(0x1111111111111111) : UINT64_C(0x11111111);
        g_assert_cmpint(call((enum isa_op)op, 0, used, words, 14), ==, TILE_FAULT_NONE);
        for (uint32_t k = 0; k < 32; k++)
            if (used >> k & 1)
                g_assert_cmpint(call((enum isa_op)op, 0, used & ~(1u << k), words, 14), ==, TILE_FAULT_ACCUMULATORS_UNDEFINED);
        for (uint32_t k = 0; k < 64; k += 4)
            if (words >> k & 1)
                g_assert_cmpint(call((enum isa_op)op, 0, used, words & ~(UINT64_C(1) << k), 14), ==, TILE_FAULT_WEIGHTS_UNDEFINED);
    }
    /* The partial of a U call must be zero (isa 4.8). */
    g_assert_cmpint(call(ISA_OP_F32SISOSLIC, ISA_SLIC_UPPER, UINT32_MAX, UINT64_MAX, 2), ==, TILE_FAULT_INSTR_OPERAND);
    g_assert_cmpint(call(ISA_OP_F32SISOSLIC, 0, UINT32_MAX, UINT64_MAX, 2), ==, TILE_FAULT_NONE);
}

/* Model B: what lies below 31 fraction bits of the largest term is lost, in magnitude. */
static void test_window_model(void) {
    for (uint32_t model = 0; model < 2; model++) {
        struct build b;
        build_init(&b, (struct tile_config){.amp_model = (enum tile_amp_model)model});
        for (uint32_t k = 0; k < 64; k++) /* weights 32768, 2^-24, -32768, 0 */
            b.tile.weights[k] = UINT64_C(0x0000f80000017800);
        b.tile.weights_defined = UINT64_MAX;
        b.tile.weights_generation++;
        put32(&b, DATA, 0x3c003c00);
        put32(&b, DATA + 4, 0x3c003c00);
        I(SETZI_A, 0, 8);
        I(UPUT, ISA_CSR_FP_CLR, 0);
        I(LD64_Z, 0, 13, 15, 0);
        for (int p = 0; p < 4; p++) I(F16V4SISOAMP, 4, 0, 14, p);
        I(F16V4SISOAMP, 4, 14, 14, 0);
        I(EXITZ, 15);
        g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
        g_assert_cmpfloat(num_f32_from_bits(b.tile.w[0].a[4]), ==, model ? 0 : 4 * 0x1p-24);
        build_free(&b);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/amp/forms", test_forms);
    g_test_add_func("/tile/amp/f8-scale", test_f8_scale);
    g_test_add_func("/tile/amp/overflow", test_overflow);
    g_test_add_func("/tile/amp/slic", test_slic);
    g_test_add_func("/tile/amp/misuse", test_misuse);
    g_test_add_func("/tile/amp/window", test_window_model);
    return g_test_run();
}
