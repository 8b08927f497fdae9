/* Random programs of the matrix unit, fused against plain scalar execution, with everything near them
 * that could be taken for granted: several launches with code, weights, formats and registers changed
 * between, or by the programs; several workers with other row counts; streams that overlap, carry, wrap or touch the code;
 * any accumulators; F8 data of any range; undefined weights and accumulators; words that may not be
 * written; permissive and timing-only mode, other roundings and sums; cycle limits. After every launch all
 * state must agree. IPU_SEED=N repeats a run; IPU_ROUNDS=N makes it longer. */
#include "numeric/num_format.h"

#include "../device/tile_build.h"

#ifndef ROUNDS
#define ROUNDS 250
#define SEED 1
#endif
static uint64_t seed = SEED, rounds = ROUNDS;
static uint32_t draw_at, round_at;
static uint32_t draw(uint32_t below) { return (uint32_t)(rand_u64(seed, 1000 + round_at, draw_at++) % below); }
static bool one_in(uint32_t n) { return draw(n) == 0; }

enum { LEFT = 0x90000, PARTIAL = 0xa8000, OUT = 0xc0000, LOW = 0x68000, AREA = 0x4000, MAX_ITEMS = 160, MAX_LAUNCHES = 3 };

struct item {
    uint32_t word[2]; /* word[1] is 0: alone */
};
struct launch {
    uint32_t n_workers, formats, scale, fp_ctl;
    uint32_t count[6], strides[6], move[6];
    uint32_t left[6], partial[6], out[6];
    bool fresh;        /* pointers are set anew */
    int32_t patch;     /* item that is overwritten, or -1 */
    uint32_t patch_by; /* by which other */
    uint32_t stored_at, stored; /* items: where m3 points, whose first word m11 holds */
    bool weights;      /* loaded anew */
    uint32_t undefined_registers, undefined_acc, acc_special;
    uint64_t undefined_weights, limit;
};
struct trial {
    uint32_t n_items, n_calls, n_launches, entry, data, spread, special, hole;
    bool f8, forbid, tail;
    struct item item[MAX_ITEMS];
    struct launch launch[MAX_LAUNCHES];
    struct tile_config config;
};

static void item(struct trial *c, uint32_t main, uint32_t aux) {
    if (c->n_items < MAX_ITEMS) c->item[c->n_items++] = (struct item){{main | 0x80000000u, aux | 0x80000000u}};
}

/* --- Programs. --- */

struct mode {
    bool left, partial, load_partial, clean;
};

static uint32_t wild_transfer(int result) {
    const int pick = (int)draw(64);
    switch (draw(9)) {
    case 0: return W(LD2X64PACE, 0, 2, 4, 1, pick & 15);
    case 1: return MNOP;
    case 2: return W(LDST64PACE, 2 * (int)draw(4), result, 4, 1, pick & 15);
    case 3: return W(ST64PACE, 10 - result, 4, 1, pick & 3);
    case 4: return W(LD64STEP_S, 2 * (int)draw(4), 15, 8, (int)draw(9) - 4);
    case 5: return W(ST64STEP_R, 2 * (int)draw(4), 6, 10, 2);
    case 6: return W(LDST64PACE, 14, 14, 4, 1, pick & 15);
    case 7: return W(LD2XST64PACE, 4, 2, 4, 1, pick);
    default: return W(LD2XST64PACE, 0, result, 10, 1, pick);
    }
}

static void call(struct trial *c, struct mode m) {
    const int phase = (int)(c->n_calls++ % 4), result = phase % 2 ? 6 : 4;
    const int jump = !m.clean && one_in(6) ? 1 + (int)draw(3) : 0, pick = jump << 2 * (int)draw(3);
    uint32_t main = m.load_partial ? W(LD2XST64PACE, 0, result, 4, 1, pick) : W(LDST64PACE, 0, result, 4, 1, pick & 15);
    if (!m.left) main = W(ST64PACE, result, 4, 1, jump);
    if (!m.clean && one_in(20)) main = wild_transfer(result);
    const int left = m.left ? 0 : 14, partial = m.partial ? 2 : 14;
    const int p = !m.clean && one_in(40) ? (int)draw(4) : phase;
    item(c, main, c->f8 ? W(F8V8HIHOV4AMP, result, left, partial, p) : W(F16V4HIHOV4AMP, result, left, partial, p));
}

static void integer(struct trial *c) {
    const int small = 8 * ((int)draw(9) - 4);
    if (one_in(12)) item(c, W(STM32, 11, 3, 15), FNOP); /* changes the code */
    switch (draw(10)) {
    case 0: item(c, W(ADD_R, 4 + (int)draw(2), 4 + (int)draw(2), 2), FNOP); break;
    case 1: case 2: { const int r = 4 + (int)draw(2); item(c, W(ADD_S, r, r, one_in(8) ? small + 4 : 2 * small), FNOP); break; }
    case 3: item(c, W(ADD_R, 6, 6, 2), FNOP); break;
    case 4: item(c, W(ADD_S, 8, 8, small), FNOP); break;
    case 5: item(c, W(ADD_S, 7, 7, 2 * small), FNOP); break;
    case 6: item(c, W(TAPACK, 4, 8, 7, 6), FNOP); break;
    case 7: item(c, W(ADD_R, 6 + (int)draw(4), 6 + (int)draw(4), 15 - (int)draw(2) * 6), FNOP); break;
    case 8: item(c, W(ADD_Z, (int)draw(16), (int)draw(16), (int)draw(64) * 8), FNOP); break;
    default: item(c, W(XOR, 9, 9, 2), FNOP); break;
    }
}

static void calls(struct trial *c, uint32_t n, struct mode *m) {
    for (uint32_t k = 0; k < n; k++) {
        if (c->n_calls % 4 == 3 && one_in(5)) m->load_partial = !m->load_partial;
        if (c->n_calls % 4 == 0 && one_in(4)) m->partial = m->load_partial;
        if (c->n_calls % 4 == 0 && one_in(8)) m->left = !m->left;
        call(c, *m);
        while (one_in(m->clean ? 20 : 9)) integer(c);
    }
}

static void repeated(struct trial *c, struct mode m) {
    const uint32_t n = one_in(6) ? 1 + draw(9) : 4 * (1 + draw(2)), at = c->n_items;
    m.clean = m.clean || one_in(2);
    item(c, MNOP, FNOP);
    const uint32_t calls_before = c->n_calls;
    if (one_in(5)) integer(c);
    for (uint32_t k = 0; k < n; k++) call(c, m);
    if (one_in(5)) integer(c);
    const int length = (int)(c->n_items - at) - 2;
    const int count = one_in(3) ? 0 : (int)draw(7);
    if (at < MAX_ITEMS && length >= 0)
        c->item[at].word[0] = 0x80000000u | (one_in(3) ? W(RPT_Z, count, length) : W(RPT_R, one_in(5) ? 9 : 0, length));
    if (one_in(8)) c->n_calls = calls_before; /* phases as if the body had not been */
}

static void program(struct trial *c) {
    struct mode m = {!one_in(6), draw(2), draw(2), !one_in(3)};
    c->n_calls = one_in(12) ? draw(4) : 0;
    for (uint32_t parts = 1 + draw(3); parts != 0; parts--) {
        calls(c, draw(12), &m);
        repeated(c, m);
        calls(c, 4 + draw(10), &m);
    }
    item(c, MNOP, FNOP);
}

/* --- Launches. --- */

static uint32_t anywhere(uint32_t w) {
    static const uint32_t AT[] = {0, 0x3ff8, 0x4c000, CODE, 0x7fff8, 0xe7ff8, 0xe7800, 0xe8000, 0x1ffff8, 0x1ff000, 0x98000, 0xa0000};
    return AT[draw(ARRAY_LEN(AT))] + 8 * draw(64) + w * 64;
}

static void pointers(struct launch *l, uint32_t w) {
    const uint32_t shift = AREA / 2 + 0x400 * w, odd = 8 * (2 * draw(40) + 1), even = 16 * draw(40);
    uint32_t *const p[3] = {&l->left[w], &l->partial[w], &l->out[w]};
    l->left[w] = LEFT + shift, l->partial[w] = PARTIAL + shift + 8 * draw(2), l->out[w] = OUT + shift + 8 * draw(2);
    switch (draw(20)) {
    case 0: case 1: l->out[w] = l->left[w] + (draw(2) ? odd : -odd); break;
    case 2: l->out[w] = l->partial[w] + (draw(2) ? odd : -odd); break;
    case 3: l->partial[w] = l->left[w] + (draw(2) ? odd : -odd); break;
    case 4: l->out[w] = l->left[w] + (draw(2) ? even : -even); break;
    case 5: *p[draw(3)] = anywhere(w); break;
    case 6: *p[draw(3)] += one_in(3) ? 4 : 1 + draw(7); break;
    case 7: *p[one_in(2) ? 0 : 2] = LOW + shift; break;
    default: break;
    }
}

static struct launch launch_make(const struct trial *c, uint32_t k) {
    struct launch l = {.n_workers = one_in(3) ? 1 + draw(6) : 1, .formats = draw(2) ? 3 : draw(4), .limit = UINT32_MAX};
    l.scale = one_in(4) ? draw(64) : l.formats == 3 ? 52 : 40;
    l.fp_ctl = !one_in(12) ? 0 : one_in(3) ? 1u << 19 : one_in(2) ? 1u << 20 : draw(8) << 16;
    const uint32_t strides = ((draw(32) - 16) & 1023) | ((draw(32) - 16) & 1023) << 10 | ((draw(32) - 16) & 1023) << 20;
    for (uint32_t w = 0; w < 6; w++) {
        l.count[w] = one_in(120) ? 65535 : one_in(3) ? 0x10000 + draw(12) : draw(14);
        l.strides[w] = one_in(4) ? (uint32_t)rand_u64(seed, 7, draw_at++) : strides;
        l.move[w] = one_in(8) ? draw(1 << 22) & ~7u : 16u * (draw(20) - 10);
        pointers(&l, w);
    }
    l.fresh = k == 0 || draw(2);
    l.patch = k != 0 && one_in(2) ? (int32_t)draw(c->n_items) : -1;
    l.patch_by = draw(c->n_items);
    l.stored_at = draw(c->n_items), l.stored = draw(c->n_items);
    l.weights = k == 0 || one_in(2);
    l.undefined_registers = one_in(10) ? 1u << draw(24) : 0;
    l.undefined_acc = one_in(12) ? 1u << draw(32) : 0;
    l.acc_special = one_in(4) ? 1 + draw(7) : 0;
    l.undefined_weights = one_in(12) ? UINT64_C(1) << draw(64) : 0;
    if (one_in(6)) l.limit = draw(3000);
    return l;
}

static struct trial trial_make(void) {
    static const uint32_t SPECIAL[] = {2, 30, 300, 2000};
    struct trial c = {.f8 = draw(3) != 0, .entry = one_in(4) ? 0x54000 - 8 * draw(60) : CODE, .data = draw(1 << 20)};
    if (one_in(12)) c.entry = 0; /* ends with region 0 */
    c.spread = draw(4);
    c.special = one_in(3) ? SPECIAL[draw(4)] : 0;
    c.hole = one_in(8) ? 8 * draw(200) : 0;
    c.forbid = one_in(8), c.tail = one_in(8);
    program(&c);
    c.n_launches = 1 + draw(MAX_LAUNCHES);
    for (uint32_t k = 0; k < c.n_launches; k++) c.launch[k] = launch_make(&c, k);
    if (c.entry == 0) c.entry = TARGET_REGION1_BASE - 8 * c.n_items - 8 * draw(2);
    switch (draw(16)) {
    case 0: c.config.timing_only = true; break;
    case 1: case 2: c.config.permissive = true; break;
    case 3: c.config.amp_model = TILE_AMP_WINDOW; break;
    case 4: c.config.uget_in_repeat = true; break;
    }
    return c;
}

/* --- Data. --- */

static uint16_t half(const struct trial *c, uint32_t i) {
    const uint64_t v = rand_u64(seed, c->data, 2 * i);
    if (c->special != 0 && v % c->special == 0) return (uint16_t)(v >> 32);
    uint16_t h = num_f16_from_f32((float)rand_normal(seed, c->data, i));
    if (c->spread == 1) h = (uint16_t)(v >> 40);                                   /* any */
    if (c->spread == 2) h = (uint16_t)(v >> 40 & (v % 5 ? 0xcfcf : 0xffff));       /* small, some large */
    if (c->spread == 3) h = (uint16_t)((v >> 40 & 0x8f8f) | 0x7070) & 0xfb7f;      /* large */
    if (!c->f8 && (h & 0x7c00) == 0x7c00) h ^= 0x4000;
    if ((h & 0xff) == 0x80) h ^= 0xc0;
    return h >> 8 == 0x80 ? h ^ 0x8000 : h;
}

static void weights_fill(struct build *b, const struct trial *c, const struct launch *l, uint32_t k) {
    for (uint32_t i = 0; i < 64; i++) {
        b->tile.weights[i] = 0;
        for (uint32_t j = 0; j < 4; j++) b->tile.weights[i] |= (uint64_t)half(c, 4 * i + j + 1000000 * (k + 1)) << 16 * j;
    }
    b->tile.weights_defined = ~l->undefined_weights;
    b->tile.weights_generation++;
}

static void memory_fill(struct build *b, const struct trial *c) {
    static const uint32_t AT[] = {LEFT, PARTIAL, OUT, LOW, TARGET_SRAM_END - AREA / 2};
    for (uint32_t k = 0; k < ARRAY_LEN(AT); k++)
        for (uint32_t i = 0; i < AREA && AT[k] + i < TARGET_SRAM_END; i += 4)
            put32(b, AT[k] + i, half(c, AT[k] + i) | (uint32_t)half(c, AT[k] + i + 1) << 16);
    if (c->hole != 0) sram_mark_unwritten(b->sram, 0, LEFT + AREA / 2 + c->hole, 4);
    if (c->tail) tile_tail_add(&b->tile, LEFT + AREA / 2 + c->hole, 64);
    sram_mark_unwritten(b->sram, 0, OUT + AREA / 2 + 256, 512);
}

static float acc_value(const struct trial *c, const struct launch *l, uint32_t i) {
    static const uint32_t BITS[] = {0, NUM_F32_NAN, 0x7f800000, 0xff7fffff, 0x80000000, 0x00800000, 0x477ff000, 0xb3800001};
    if (l->acc_special != 0 && rand_u64(seed, c->data, 900000 + i) % 8 == 0) return num_f32_from_bits(BITS[l->acc_special]);
    return (float)rand_normal(seed, c->data, 800000 + i);
}

static void registers(struct build *b, const struct trial *c, const struct launch *l, uint32_t n) {
    struct tile_worker *w = &b->tile.w[n];
    w->m[0] = l->count[n], w->m[1] = l->strides[n], w->m[2] = l->move[n], w->m[9] = l->count[5 - n];
    w->m[3] = c->entry + 8 * l->stored_at, w->m[11] = c->item[l->stored].word[0];
    if (l->fresh) {
        w->m[4] = l->left[n] | l->out[n] << 21;
        w->m[5] = (l->partial[n] & 0x1fffff) | l->out[n] >> 11 << 21;
        w->m[6] = l->out[n], w->m[7] = l->partial[n], w->m[8] = l->left[n];
        w->m[10] = w->m[4] & 0xff;
        for (uint32_t r = 0; r < 8; r++) w->a[r] = half(c, 700 + r) | (uint32_t)half(c, 750 + r) << 16;
        for (uint32_t k = 0; k < 16; k++) w->acc.even[k] = acc_value(c, l, k), w->acc.odd[k] = acc_value(c, l, 20 + k);
        w->prng[0] = 1, w->prng[1] = 2, w->prng_defined = 15;
    }
    w->acc_defined = ~l->undefined_acc;
    w->defined = ~l->undefined_registers;
}

/* --- Running. --- */

static void run_init(const struct trial *c, struct tile_config config, struct build *b) {
    static uint64_t allowed[SRAM_WRITTEN_WORDS];
    build_init(b, config);
    b->at = c->entry;
    for (uint32_t k = 0; k < c->n_items; k++) {
        build_word(b, c->item[k].word[0]);
        build_word(b, c->item[k].word[1]);
    }
    if (b->at < TARGET_REGION1_BASE) build_word(b, word_of(ISA_OP_EXITZ, 15));
    memory_fill(b, c);
    if (!c->forbid) return;
    memset(allowed, 0xff, sizeof allowed);
    const uint32_t word = (OUT + AREA / 2 + 4 * (c->data % 200) - TARGET_SRAM_BASE) / 4;
    allowed[word / 64] &= ~(UINT64_C(1) << word % 64);
    b->tile.writable = allowed;
}

static enum tile_stop_reason run_launch(const struct trial *c, uint32_t k, struct build *b) {
    const struct launch *l = &c->launch[k];
    if (l->weights) weights_fill(b, c, l, k);
    if (l->patch >= 0)
        for (uint32_t j = 0; j < 2; j++)
            put32(b, c->entry + 8 * (uint32_t)l->patch + 4 * j, c->item[l->patch_by].word[j]);
    b->tile.s.fp_ictl = l->fp_ctl, b->tile.s.fp_infmt = l->formats, b->tile.s.fp_iscl = l->scale;
    tile_start_workers(&b->tile, c->entry, DATA, l->n_workers, 100000 * k);
    for (uint32_t w = 0; w < l->n_workers; w++) registers(b, c, l, w);
    enum tile_stop_reason end = tile_run(&b->tile, l->limit);
    if (end == TILE_STOP_LIMIT) end = tile_run(&b->tile, 100000 * k + 3000 + l->limit % 2000);
    if (end == TILE_STOP_LIMIT) end = tile_run(&b->tile, 100000000);
    return end;
}

/* All of a worker but what goes to registers that keep nothing. */
static struct tile_worker visible(const struct tile_worker *w, bool data) {
    struct tile_worker ret = *w;
    memset(&ret.m[16], 0, sizeof ret.m - 64);
    memset(&ret.a[16], 0, sizeof ret.a - 64);
    if (data) return ret;
    memset(ret.a, 0, sizeof ret.a);
    memset(&ret.acc, 0, sizeof ret.acc);
    return ret;
}

static bool same(const struct trial *c, const struct tile *a, const struct tile *b) {
    bool w = true;
    for (uint32_t n = 0; n < TILE_N_WORKERS; n++) {
        const struct tile_worker x = visible(&a->w[n], !c->config.timing_only);
        const struct tile_worker y = visible(&b->w[n], !c->config.timing_only);
        w = w && memcmp(&x, &y, sizeof x) == 0;
    }
    return w && memcmp(&a->fault, &b->fault, sizeof a->fault) == 0 && memcmp(&a->stop, &b->stop, sizeof a->stop) == 0 &&
           a->counters.worker_slots == b->counters.worker_slots && a->counters.fetch_conflicts == b->counters.fetch_conflicts &&
           memcmp(a->counters.faults, b->counters.faults, sizeof a->counters.faults) == 0 &&
           (c->config.timing_only || memcmp(a->bytes, b->bytes, SRAM_BYTES) == 0) &&
           memcmp(a->written, b->written, SRAM_WRITTEN_WORDS * 8) == 0;
}

static uint64_t n_runs, n_traced, n_looped;

static void check(const struct trial *c, enum tile_simd simd) {
    static struct build x, y;
    struct tile_config plain = c->config, fused = c->config;
    plain.plain = true, plain.simd = c->config.timing_only ? simd : TILE_SIMD_SCALAR;
    fused.simd = simd;
    run_init(c, plain, &x);
    run_init(c, fused, &y);
    for (uint32_t k = 0; k < c->n_launches; k++) {
        const enum tile_stop_reason end = run_launch(c, k, &x), other = run_launch(c, k, &y);
        if (end != other || !same(c, &x.tile, &y.tile)) {
            g_test_message("IPU_SEED=%" G_GUINT64_FORMAT " round %u launch %u path %d f8 %d timing %d permissive %d ends %d %d", seed,
                           round_at, k, simd, c->f8, c->config.timing_only, c->config.permissive, end, other);
            g_assert_cmpint(end, ==, other);
            g_assert_cmpmem(&x.tile.fault, sizeof x.tile.fault, &y.tile.fault, sizeof y.tile.fault);
            g_assert_cmpmem(x.tile.w[0].m, 64, y.tile.w[0].m, 64);
            g_assert_cmpmem(x.tile.w[0].a, 64, y.tile.w[0].a, 64);
            g_assert_cmpmem(&x.tile.w[0].acc, sizeof x.tile.w[0].acc, &y.tile.w[0].acc, sizeof y.tile.w[0].acc);
            g_assert_not_reached();
        }
        if (end != TILE_STOP_DONE) break;
    }
    const struct tile_counters *n = &y.tile.counters;
    n_runs++, n_traced += n->trace_slots != 0, n_looped += n->loop_slots != 0;
    build_free(&x);
    build_free(&y);
}

static void test_programs(void) {
    for (uint32_t r = 0; r < rounds; r++) {
        round_at = r, draw_at = 0;
        const struct trial c = trial_make();
        for (uint32_t simd = TILE_SIMD_SCALAR; simd <= (uint32_t)tile_simd_best(); simd++) check(&c, (enum tile_simd)simd);
    }
    g_test_message("%u %% of runs with traces, %u %% with loops", (uint32_t)(100 * n_traced / n_runs), (uint32_t)(100 * n_looped / n_runs));
    if (tile_simd_best() != TILE_SIMD_SCALAR && rounds > 100) g_assert_cmpuint(n_traced, >, n_runs / 12);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    if (g_getenv("IPU_SEED")) seed = g_ascii_strtoull(g_getenv("IPU_SEED"), NULL, 0);
    if (g_getenv("IPU_ROUNDS")) rounds = g_ascii_strtoull(g_getenv("IPU_ROUNDS"), NULL, 0);
    g_test_message("IPU_SEED=%" G_GUINT64_FORMAT, seed);
    g_test_add_func("/tile/trace_fuzz/programs", test_programs);
    return g_test_run();
}
