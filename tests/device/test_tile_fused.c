/* Fused loops of the matrix unit against plain scalar execution: the regular loop of four slots
 * that the products use, in F16 and in all pairs of F8 formats, and the other shapes that the
 * executor takes; with ordinary data, NaN, infinities, subnormals and results out of range
 * anywhere, cut by a cycle limit, ended by a fault in the middle, with a store that runs ahead of
 * the loads. All state must agree. IPU_SEED=N draws other trials, IPU_ROUNDS=N that many times as
 * many. */
#include "numeric/num_format.h"

#include "tile_build.h"

enum { LEFT = 0x90000, PARTIAL = 0xa8000, OUT = 0xc0000, BYTES = 0x1000 };
enum shape {
    REGULAR,
    REGULAR_ZERO,
    OTHER_RESULTS,
    STRIDED,
    STEPS,
    STORE_ONLY,
    DUAL_LOAD,
    N_SHAPES
};

static uint64_t seed = 7, rounds = 1;
static uint32_t draw_at;
static uint32_t draw(uint32_t below) {
    return (uint32_t)(rand_u64(seed, 1, draw_at++) % below);
}

struct trial {
    enum shape shape;
    bool f8;
    uint32_t formats, scale; /* $FP_NFMT, $FP_SCL */
    uint32_t phase, passes;  /* of the first bundle */
    uint32_t before;         /* bundles before the repeat */
    uint32_t special;        /* 0: ordinary data; else one of that many halves is any half */
    uint32_t large;          /* partials near the end of the range */
    uint32_t ahead;          /* bytes that the store is ahead of the left operand; 0: apart */
    uint32_t poison; /* byte of LEFT or PARTIAL with a NaN or infinity, bit 0 and 1: which, what */
    uint32_t hole;   /* byte of LEFT or PARTIAL that was never written */
    uint32_t near_end; /* the stream ends that many bytes before the end of SRAM */
    uint32_t acc;      /* 0 ordinary, 1 NaN, 2 denormal, 3 infinite, in one accumulator */
    uint64_t limit;    /* cycles of the first run; then it goes on */
    uint32_t fp_ctl;
    uint32_t data; /* where its data starts in the generator */
};

static uint32_t main_bundle(const struct trial *c, uint32_t k) {
    const int res = k % 2 ? 6 : 4;
    switch (c->shape) {
    case REGULAR:
        return W(LD2XST64PACE, 0, res, 4, 1, 0);
    case REGULAR_ZERO:
        return W(LDST64PACE, 0, res, 4, 1, 0);
    case OTHER_RESULTS:
        return W(LD2XST64PACE, 0, k % 4 ? 4 : 6, 4, 1, 0);
    case STRIDED:
        return W(LD2XST64PACE, 0, res, 4, 1, k % 4 == 1 ? 16 : 4);
    case STEPS:
        return k % 2 ? W(ST64STEP_S, 4, 8, 9, 1) : W(LD64STEP_S, 0, 6, 7, 2);
    case STORE_ONLY:
        return W(ST64PACE, res, 4, 1, 0);
    default:
        return W(LD2X64PACE, 0, 2, 4, 1, 0);
    }
}

static void bundle(struct build *pb, const struct trial *c, uint32_t k) {
    struct build *const save = pb;
#define b (*save)
    const int res = k % 2 ? 6 : 4,
              partial = c->shape == REGULAR_ZERO || c->shape == STORE_ONLY ? 14 : 2;
    const int phase = (int)(c->phase + k) % 4;
    B(main_bundle(c, k),
      c->f8 ? W(F8V8HIHOV4AMP, res, 0, partial, phase) : W(F16V4HIHOV4AMP, res, 0, partial, phase));
#undef b
}

static void program(struct build *pb, const struct trial *c) {
#define b (*pb)
    for (uint32_t k = 0; k < c->before; k++) bundle(&b, c, k + 4 - c->before % 4);
    B(W(RPT_Z, (int)c->passes, 3), FNOP);
    for (uint32_t k = 0; k < 4; k++) bundle(&b, c, k);
    for (uint32_t k = 0; k < c->before; k++) bundle(&b, c, k);
    I(EXITZ, 15);
#undef b
}

static uint16_t half(const struct trial *c, uint32_t i, double size) {
    if (c->special != 0 && rand_u64(seed, c->data, 2 * i) % c->special == 0)
        return (uint16_t)rand_u64(seed, c->data, 2 * i + 1);
    const uint16_t h = num_f16_from_f32((float)(size * rand_normal(seed, c->data, i)));
    return (h & 0xff) == 0x80 || h >> 8 == 0x80 ? 0x3838 : h; /* as two F8 codes: no NaN */
}

static void fill(struct build *pb, const struct trial *c) {
    const uint32_t at[] = {LEFT, PARTIAL, TARGET_SRAM_END - BYTES};
    for (uint32_t k = 0; k < ARRAY_LEN(at); k++)
        for (uint32_t i = 0; i < BYTES; i += 4) {
            const double size = c->large && at[k] == PARTIAL ? 30000 : 1;
            const uint32_t n = at[k] + i;
            put32(pb, n, half(c, n, size) | (uint32_t)half(c, n + 1, size) << 16);
        }
    if (c->poison != 0) {
        const uint32_t value = c->f8 && (c->poison & 1) ? 0x80 : c->poison & 2 ? 0x7e01 : 0xfc00;
        put32(pb, (c->poison & 1 ? LEFT : PARTIAL) + (c->poison & ~3u), value << 8 * (c->data % 3));
    }
    if (c->hole != 0)
        sram_mark_unwritten(pb->sram, 0, (c->hole & 1 ? LEFT : PARTIAL) + (c->hole & ~7u), 4);
    for (uint32_t k = 0; k < 64; k++)
        for (uint32_t j = 0; j < 4; j++)
            pb->tile.weights[k] |= (uint64_t)half(c, 4 * k + j, 1) << 16 * j;
    pb->tile.weights_defined = UINT64_MAX;
    pb->tile.weights_generation++;
}

static void pack(uint32_t *m, uint32_t a0, uint32_t a1, uint32_t a2) {
    m[0] = a0 | a2 << 21;
    m[1] = a1 | a2 >> 11 << 21;
}

static void registers(struct build *pb, const struct trial *c) {
    struct tile_worker *w = &pb->tile.w[0];
    const uint32_t left = c->near_end ? TARGET_SRAM_END - c->near_end : LEFT + 256;
    const uint32_t out = c->ahead ? LEFT + 256 + c->ahead : OUT + 256 + 8;
    pack(&w->m[4], left, PARTIAL + 256, out);
    w->m[1] = c->shape == STRIDED ? (2u | 0x3fdu << 10 | 3u << 20) : 0;
    w->m[6] = left, w->m[7] = 0, w->m[8] = out, w->m[9] = 0;
    for (uint32_t r = 0; r < 8; r++)
        w->a[r] = half(c, 900 + r, 1) | (uint32_t)half(c, 950 + r, 1) << 16;
    for (uint32_t k = 0; k < 16; k++) {
        w->acc.even[k] = (float)rand_normal(seed, c->data, 5000 + k);
        w->acc.odd[k] = (float)rand_normal(seed, c->data, 5100 + k);
    }
    static const uint32_t ACC[] = {0, NUM_F32_NAN, 0, 0x7f800000};
    if (c->acc != 0) w->acc.odd[c->data % 16] = num_f32_from_bits(ACC[c->acc]);
    w->acc_defined = w->defined = UINT32_MAX;
    w->prng[0] = 1, w->prng[1] = 2, w->prng_defined = 15;
}

struct outcome {
    struct build b;
    enum tile_stop_reason first, last;
};

static void run(const struct trial *c, struct tile_config config, struct outcome *o) {
    build_init(&o->b, config);
    program(&o->b, c);
    fill(&o->b, c);
    o->b.tile.s.fp_ictl = c->fp_ctl;
    o->b.tile.s.fp_infmt = c->formats;
    o->b.tile.s.fp_iscl = c->scale;
    tile_start_workers(&o->b.tile, CODE, DATA, 1, 0);
    registers(&o->b, c);
    o->last = o->first = tile_run(&o->b.tile, c->limit);
    if (o->first == TILE_STOP_LIMIT) o->last = tile_run(&o->b.tile, 1000000);
}

static void compare(const struct trial *c, const struct outcome *x, const struct outcome *y) {
    const struct tile *a = &x->b.tile, *b = &y->b.tile;
    const bool same = x->first == y->first && x->last == y->last &&
                      memcmp(&a->fault, &b->fault, sizeof a->fault) == 0 &&
                      a->stop.cycle == b->stop.cycle && memcmp(a->w, b->w, sizeof a->w) == 0 &&
                      memcmp(a->bytes, b->bytes, SRAM_BYTES) == 0 &&
                      memcmp(a->written, b->written, SRAM_WRITTEN_WORDS * 8) == 0 &&
                      a->counters.worker_slots == b->counters.worker_slots;
    if (same) return;
    g_test_message("shape %d f8 %d formats %u scale %u phase %u passes %u before %u special %u "
                   "large %u ahead %u hole %x "
                   "near_end %u acc %u limit %u data %u",
                   c->shape, c->f8, c->formats, c->scale, c->phase, c->passes, c->before,
                   c->special, c->large, c->ahead, c->hole, c->near_end, c->acc, (uint32_t)c->limit,
                   c->data);
    g_assert_cmpint(x->last, ==, y->last);
    g_assert_cmpmem(&a->fault, sizeof a->fault, &b->fault, sizeof b->fault);
    g_assert_cmpmem(a->w[0].a, sizeof a->w[0].a, b->w[0].a, sizeof b->w[0].a);
    g_assert_cmpmem(&a->w[0].acc, sizeof a->w[0].acc, &b->w[0].acc, sizeof b->w[0].acc);
    g_assert_not_reached();
}

/* The trial in every path against plain scalar execution; slots that were fused, the reason it
 * ended for. */
static uint64_t check(const struct trial *c, enum tile_stop_reason *ret_end) {
    static struct outcome base, other;
    run(c, (struct tile_config){.plain = true, .simd = TILE_SIMD_SCALAR}, &base);
    uint64_t fused = 0;
    for (uint32_t simd = TILE_SIMD_SCALAR; simd <= (uint32_t)tile_simd_best(); simd++)
        for (uint32_t plain = 0; plain < 2; plain++) {
            run(c, (struct tile_config){.plain = plain, .simd = (enum tile_simd)simd}, &other);
            compare(c, &base, &other);
            if (!plain) fused = other.b.tile.counters.fused_slots;
            build_free(&other.b);
        }
    *ret_end = base.last;
    build_free(&base.b);
    return fused;
}

static struct trial ordinary(enum shape shape, bool f8, uint32_t formats) {
    return (struct trial){.shape = shape,
                          .f8 = f8,
                          .formats = formats,
                          .scale = (formats == 3 ? 52 : 32) /* -12, -32 */,
                          .phase = draw(4),
                          .passes = 1 + draw(20),
                          .before = draw(9),
                          .limit = UINT32_MAX,
                          .data = 100 + draw(1 << 20)};
}

/* Nothing out of the ordinary: all slots are fused. */
static void test_ordinary(void) {
    enum tile_stop_reason end;
    for (uint32_t r = 0; r < 6 * rounds; r++)
        for (enum shape s = 0; s < N_SHAPES; s++)
            for (uint32_t type = 0; type < 5; type++) {
                const struct trial c = ordinary(s, type != 0, type & 3);
                const uint64_t fused = check(&c, &end);
                g_assert_cmpint(end, ==, TILE_STOP_DONE);
                g_assert_cmpuint(fused, ==, 4 * c.passes + 2 * c.before + 2);
            }
}

static void test_values(void) {
    enum tile_stop_reason end;
    static const uint32_t SPECIAL[] = {2, 30, 300, 2000};
    for (uint32_t r = 0; r < 300 * rounds; r++) {
        const uint32_t type = draw(5);
        struct trial c =
            ordinary(draw(4) ? REGULAR : (enum shape)draw(N_SHAPES), type != 0, type & 3);
        c.special = SPECIAL[draw(4)];
        c.large = draw(4) == 0;
        c.acc = draw(3) == 0 ? draw(4) : 0;
        c.scale = draw(64);
        c.fp_ctl = draw(8) == 0 ? 1u << 19 : draw(8) == 0 ? 1u << 20 : draw(8) == 0 ? draw(8) : 0;
        check(&c, &end);
    }
}

/* One NaN or infinity in one operand. */
static void test_poison(void) {
    enum tile_stop_reason end;
    for (uint32_t r = 0; r < 400 * rounds; r++) {
        const uint32_t type = draw(2) ? 4 : draw(5);
        struct trial c = ordinary(draw(2) ? REGULAR : REGULAR_ZERO, type != 0, type & 3);
        c.poison = 256 + 4 * draw(8 * (c.passes + c.before / 2)) + draw(4);
        check(&c, &end);
    }
}

static void test_limit(void) {
    enum tile_stop_reason end;
    for (uint32_t r = 0; r < 200 * rounds; r++) {
        const uint32_t type = draw(5);
        struct trial c = ordinary((enum shape)draw(N_SHAPES), type != 0, type & 3);
        c.limit = draw(6 * (4 * c.passes + 2 * c.before + 2));
        c.special = draw(3) ? 0 : 500;
        check(&c, &end);
    }
}

static void test_faults(void) {
    enum tile_stop_reason end;
    uint32_t faults = 0;
    for (uint32_t r = 0; r < 200 * rounds; r++) {
        const uint32_t type = draw(5);
        struct trial c = ordinary((enum shape)draw(N_SHAPES), type != 0, type & 3);
        if (draw(2)) c.near_end = 8 * (1 + draw(100));
        else c.hole = 256 + 8 * draw(120) + draw(2);
        check(&c, &end);
        faults += end == TILE_STOP_FAULT;
    }
    g_assert_cmpuint(faults, >, 60 * rounds);
}

/* The store is some words ahead of the left operand in the same element: in region 1 no fault when
 * they differ in parity, and what is stored is loaded some slots later. */
static void test_store_ahead(void) {
    enum tile_stop_reason end;
    uint32_t done = 0;
    for (uint32_t r = 0; r < 300 * rounds; r++) {
        const uint32_t type = draw(5);
        struct trial c = ordinary(draw(2) ? REGULAR : REGULAR_ZERO, type != 0, type & 3);
        c.ahead = 8 * (1 + draw(24)) - 64;
        if (c.ahead == 0) c.ahead = 8;
        check(&c, &end);
        done += end == TILE_STOP_DONE;
    }
    g_assert_cmpuint(done, >, 60 * rounds);
}

/* Loads of weights by the supervisor, at once or one by one: cut by a limit, with a word that was
 * never written, off the end of SRAM, misaligned, next to the code, with an index that does not
 * exist. */
static void loads_run(uint32_t variant, uint32_t address, uint64_t limit, bool plain,
                      struct build *ret) {
    build_init(ret, (struct tile_config){.plain = plain, .permissive = variant == 5});
    struct build b = *ret;
    b.tile.config = &b.config;
    I(SETZI_M, 0, (int)address);
    I(PUT, ISA_CSR_CCCSLOAD, 0);
    for (int k = 0; k < 24; k++) {
        if (variant == 1 && k == 9) I(LD64PUTCS, 5);
        I(LD128PUTCS, variant == 2 && k == 11 ? 63 : 2 * k);
        if (k % 8 == 7) I(LD64PUTCS, 2 * k), I(LD64PUTCS, 2 * k + 1);
    }
    I(SETZI_M, 0, 0);
    I(BR, 0);
    *ret = b;
    ret->tile.config = &ret->config;
    for (uint32_t i = 0; i < 0x400 && address + i + 4 <= TARGET_SRAM_END; i += 4)
        put32(ret, (address & ~3u) + i, 0x3c003800 + i);
    if (variant == 3) sram_mark_unwritten(ret->sram, 0, address + 200, 4);
    tile_start(&ret->tile, CODE, 0);
    if (tile_run(&ret->tile, limit) == TILE_STOP_LIMIT) tile_run(&ret->tile, 100000);
}

static void test_loads(void) {
    static const uint32_t AT[] = {0x90000, 0x90008, TARGET_SRAM_END - 256,
                                  0x60000, 0x90010, CODE + 0x400};
    uint32_t faults = 0;
    for (uint32_t r = 0; r < 120 * rounds; r++) {
        const uint32_t variant = draw(6), address = draw(2) ? AT[0] : AT[draw(ARRAY_LEN(AT))];
        const uint64_t limit = draw(2) ? UINT32_MAX : draw(80);
        struct build x, y;
        loads_run(variant, address, limit, true, &x);
        loads_run(variant, address, limit, false, &y);
        const struct tile *a = &x.tile, *b = &y.tile;
        g_assert_cmpint(a->stop.reason, ==, b->stop.reason);
        g_assert_cmpuint(a->stop.cycle, ==, b->stop.cycle);
        g_assert_cmpmem(&a->fault, sizeof a->fault, &b->fault, sizeof b->fault);
        g_assert_cmpmem(a->weights, sizeof a->weights, b->weights, sizeof b->weights);
        g_assert_cmpuint(a->weights_defined, ==, b->weights_defined);
        g_assert_cmpmem(&a->s, sizeof a->s, &b->s, sizeof b->s);
        g_assert_cmpmem(&a->counters, sizeof a->counters, &b->counters, sizeof b->counters);
        faults += a->stop.reason == TILE_STOP_FAULT;
        build_free(&x);
        build_free(&y);
    }
    g_assert_cmpuint(faults, >, 20 * rounds);
    g_assert_cmpuint(faults, <, 100 * rounds);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    if (g_getenv("IPU_SEED")) seed = g_ascii_strtoull(g_getenv("IPU_SEED"), NULL, 0);
    if (g_getenv("IPU_ROUNDS")) rounds = g_ascii_strtoull(g_getenv("IPU_ROUNDS"), NULL, 0);
    g_test_message("IPU_SEED=%" G_GUINT64_FORMAT, seed);
    g_test_add_func("/tile/fused/ordinary", test_ordinary);
    g_test_add_func("/tile/fused/values", test_values);
    g_test_add_func("/tile/fused/poison", test_poison);
    g_test_add_func("/tile/fused/limit", test_limit);
    g_test_add_func("/tile/fused/faults", test_faults);
    g_test_add_func("/tile/fused/store_ahead", test_store_ahead);
    g_test_add_func("/tile/fused/loads", test_loads);
    return g_test_run();
}
