/* Traces of the matrix unit (tile_trace.c) against plain scalar execution: programs like launches of
 * the products with repeats, steps that jump, pointers moved by additions and packed anew, rows
 * without operands, one after the other on the same registers; ordinary data, NaN and infinities, words
 * that were never written, the end of SRAM, stores just ahead of loads, cut by a limit. All state must
 * agree. IPU_SEED=N draws other programs, IPU_ROUNDS=N that many times as many. */
#include "numeric/num_format.h"

#include "tile_build.h"

enum { LEFT = 0x90000, PARTIAL = 0xa8000, LOW = 0x68000, OUT = 0xc0000, BYTES = 0x2000, MIDDLE = 0x1000, MAX_ITEMS = 80 };

static uint64_t seed = 11, rounds = 1;
static uint32_t draw_at;
static uint32_t draw(uint32_t below) { return (uint32_t)(rand_u64(seed, 1, draw_at++) % below); }

enum item_kind { CALL, REPEAT, ADD_POINTER, ADD_REG, TAPACK };
struct item {
    enum item_kind kind;
    uint32_t word[2];
};
struct trial {
    uint32_t n_items, n_calls;
    struct item item[MAX_ITEMS];
    bool f8, wild;      /* wild: transfers that no product has */
    uint32_t formats, scale, fp_ctl;
    uint32_t count[2];  /* passes of the repeats in the two launches */
    int32_t move;       /* bytes that additions move pointers by */
    uint32_t strides;   /* three fields of 10 bits */
    uint32_t ahead;     /* bytes that partials are ahead of results; 0: apart */
    uint32_t special;   /* one of that many halves is any half; 0: none */
    uint32_t hole;      /* offset of an unwritten word, or 0 */
    uint32_t near_end;  /* bytes from the left operand to the end of SRAM, or 0 */
    bool low;           /* partials where second addresses can't be */
    uint32_t undefined; /* register that was never written: bit as in struct tile_worker, or 0 */
    uint64_t limit;
    uint32_t data;
};

static void item(struct trial *c, enum item_kind kind, uint32_t main, uint32_t aux) {
    if (c->n_items < MAX_ITEMS) c->item[c->n_items++] = (struct item){kind, {main, aux}};
}

/* Operands of the next rows: none, left alone, both. */
struct mode {
    bool left, partial, load_partial;
};

static void call(struct trial *c, struct mode m) {
    const int phase = (int)(c->n_calls++ % 4), result = phase % 2 ? 6 : 4;
    const int jump = draw(9) == 0 ? 1 + (int)draw(3) : 0;
    const int pick = jump << 2 * (int)draw(3);
    uint32_t main = m.load_partial ? W(LD2XST64PACE, 0, result, 4, 1, pick) : W(LDST64PACE, 0, result, 4, 1, pick & 15);
    if (!m.left) main = W(ST64PACE, result, 4, 1, jump);
    if (c->wild && draw(6) == 0)
        switch (draw(4)) {
        case 0: main = W(LD2X64PACE, 0, 2, 4, 1, pick & 15); break;
        case 1: main = MNOP; break;
        case 2: main = W(LDST64PACE, 2, result, 4, 1, 0); break;
        default: main = W(ST64PACE, 10 - result, 4, 1, 0); break;
        }
    const int left = m.left ? 0 : 14, partial = m.partial ? 2 : 14;
    item(c, CALL, main, c->f8 ? W(F8V8HIHOV4AMP, result, left, partial, phase)
                              : W(F16V4HIHOV4AMP, result, left, partial, phase));
}

static void calls(struct trial *c, uint32_t n, struct mode *m) {
    for (uint32_t k = 0; k < n; k++) {
        if (c->n_calls % 4 == 3 && draw(5) == 0) m->load_partial = !m->load_partial;
        if (c->n_calls % 4 == 0 && draw(4) == 0) m->partial = m->load_partial;
        if (c->n_calls % 4 == 0 && draw(8) == 0) m->left = !m->left;
        call(c, *m);
        if (draw(16) == 0) item(c, ADD_POINTER, W(ADD_R, 4 + (int)draw(2), 4 + (int)draw(2), 2), FNOP);
        if (draw(24) == 0) item(c, ADD_REG, W(ADD_R, 6, 6, 2), FNOP);
        if (draw(24) == 0) item(c, ADD_REG, W(ADD_S, 8, 8, 8 * ((int)draw(5) - 2)), FNOP);
        if (draw(30) == 0) item(c, TAPACK, W(TAPACK, 4, 8, 7, 6), FNOP);
    }
}

/* Straight calls, a repeat of four or eight, straight calls, perhaps once more. */
static struct trial trial_make(void) {
    struct trial c = {.f8 = draw(3) != 0, .wild = draw(5) == 0, .limit = UINT32_MAX};
    struct mode m = {.left = true, .partial = draw(2), .load_partial = true};
    c.formats = draw(3) ? 3 : draw(4);
    c.scale = c.formats == 3 ? 52 : 32; /* -12, -32 */
    c.n_calls = draw(12) == 0 ? draw(4) : 0;
    c.data = 100 + draw(1 << 20);
    for (uint32_t parts = 1 + draw(2); parts != 0; parts--) {
        calls(&c, draw(10), &m);
        const uint32_t n = 4 + 4 * (draw(4) == 0), at = c.n_calls % 4;
        const struct mode body = {.left = true, .partial = m.load_partial, .load_partial = m.load_partial};
        item(&c, REPEAT, parts % 2 ? W(RPT_R, 0, (int)n - 1) : W(RPT_Z, (int)draw(6), (int)n - 1), FNOP);
        for (uint32_t k = 0; k < n; k++) call(&c, body);
        g_assert_cmpuint(c.n_calls % 4, ==, at);
        calls(&c, 6 + draw(8), &m);
    }
    c.count[0] = draw(14), c.count[1] = draw(3) ? c.count[0] : draw(14);
    c.move = 8 * ((int32_t)draw(40) - 20);
    c.strides = (draw(32) - 16) & 1023;
    c.strides |= ((draw(32) - 16) & 1023) << 10 | ((draw(32) - 16) & 1023) << 20;
    c.ahead = draw(3) == 0 ? 0 : 8 * (1 + 2 * draw(12));
    return c;
}

static uint16_t half(const struct trial *c, uint32_t i) {
    if (c->special != 0 && rand_u64(seed, c->data, 2 * i) % c->special == 0)
        return (uint16_t)rand_u64(seed, c->data, 2 * i + 1);
    const uint16_t h = num_f16_from_f32((float)rand_normal(seed, c->data, i));
    return (h & 0xff) == 0x80 || h >> 8 == 0x80 ? 0x3838 : h; /* as two F8 codes: no NaN */
}

static void fill(struct build *b, const struct trial *c) {
    const uint32_t at[] = {LEFT, PARTIAL, OUT, LOW, TARGET_SRAM_END - BYTES};
    for (uint32_t k = 0; k < ARRAY_LEN(at); k++)
        for (uint32_t i = 0; i < BYTES; i += 4)
            put32(b, at[k] + i, half(c, at[k] + i) | (uint32_t)half(c, at[k] + i + 1) << 16);
    if (c->hole != 0)
        sram_mark_unwritten(b->sram, 0, (c->hole & 4 ? LEFT : PARTIAL) + MIDDLE + (c->hole & ~7u), 4);
    for (uint32_t k = 0; k < 64; k++)
        for (uint32_t j = 0; j < 4; j++) b->tile.weights[k] |= (uint64_t)half(c, 4 * k + j) << 16 * j;
    b->tile.weights_defined = UINT64_MAX;
    b->tile.weights_generation++;
}

static void registers(struct build *b, const struct trial *c, uint32_t launch) {
    struct tile_worker *w = &b->tile.w[0];
    const uint32_t left = c->near_end ? TARGET_SRAM_END - c->near_end : LEFT + MIDDLE;
    const uint32_t partial = (c->low ? LOW : PARTIAL) + MIDDLE, out = c->ahead ? partial - c->ahead : OUT + MIDDLE + 8;
    w->m[0] = c->count[launch];
    w->m[1] = c->strides;
    w->m[2] = (uint32_t)c->move;
    if (launch == 0) {
        w->m[4] = left | out << 21;
        w->m[5] = partial | out >> 11 << 21;
        w->m[6] = out, w->m[7] = partial, w->m[8] = left;
        for (uint32_t r = 0; r < 8; r++) w->a[r] = half(c, 900 + r) | (uint32_t)half(c, 950 + r) << 16;
        for (uint32_t k = 0; k < 16; k++) {
            w->acc.even[k] = (float)rand_normal(seed, c->data, 5000 + k);
            w->acc.odd[k] = (float)rand_normal(seed, c->data, 5100 + k);
        }
        w->prng[0] = 1, w->prng[1] = 2, w->prng_defined = 15;
    }
    w->acc_defined = UINT32_MAX;
    w->defined = UINT32_MAX & ~c->undefined;
}

struct outcome {
    struct build b;
    enum tile_stop_reason end;
};

/* Two launches of the program, the second on what the first leaves. */
static void run(const struct trial *c, struct tile_config config, struct outcome *o) {
    build_init(&o->b, config);
    struct build *b = &o->b;
    for (uint32_t k = 0; k < c->n_items; k++) {
        build_word(b, c->item[k].word[0] | 0x80000000u);
        build_word(b, c->item[k].word[1] | 0x80000000u);
    }
    build_word(b, word_of(ISA_OP_EXITZ, 15));
    fill(b, c);
    b->tile.s.fp_ictl = c->fp_ctl;
    b->tile.s.fp_infmt = c->formats;
    b->tile.s.fp_iscl = c->scale;
    o->end = TILE_STOP_DONE;
    for (uint32_t launch = 0; launch < 2 && o->end == TILE_STOP_DONE; launch++) {
        tile_start_workers(&b->tile, CODE, DATA, 1, 0);
        registers(b, c, launch);
        o->end = tile_run(&b->tile, c->limit);
        if (o->end == TILE_STOP_LIMIT) o->end = tile_run(&b->tile, 1000000);
    }
}

static void compare(const struct outcome *x, const struct outcome *y) {
    const struct tile *a = &x->b.tile, *b = &y->b.tile;
    g_assert_cmpint(x->end, ==, y->end);
    g_assert_cmpmem(&a->fault, sizeof a->fault, &b->fault, sizeof b->fault);
    g_assert_cmpuint(a->stop.cycle, ==, b->stop.cycle);
    g_assert_cmpmem(a->w[0].m, sizeof a->w[0].m, b->w[0].m, sizeof b->w[0].m);
    g_assert_cmpmem(a->w[0].a, sizeof a->w[0].a, b->w[0].a, sizeof b->w[0].a);
    g_assert_cmpmem(&a->w[0].acc, sizeof a->w[0].acc, &b->w[0].acc, sizeof b->w[0].acc);
    g_assert_cmpmem(a->w, sizeof a->w, b->w, sizeof b->w);
    g_assert_cmpuint(a->counters.worker_slots, ==, b->counters.worker_slots);
    g_assert_true(memcmp(a->bytes, b->bytes, SRAM_BYTES) == 0);
    g_assert_true(memcmp(a->written, b->written, SRAM_WRITTEN_WORDS * 8) == 0);
}

/* All paths against the plain one; the share of slots that ran in traces. */
static double check(const struct trial *c, enum tile_stop_reason *ret_end) {
    static struct outcome base, other;
    double share = 0;
    run(c, (struct tile_config){.plain = true, .simd = TILE_SIMD_SCALAR}, &base);
    for (uint32_t simd = TILE_SIMD_SCALAR; simd <= (uint32_t)tile_simd_best(); simd++) {
        run(c, (struct tile_config){.simd = (enum tile_simd)simd}, &other);
        const uint32_t at = draw_at;
        compare(&base, &other);
        g_assert_cmpuint(draw_at, ==, at);
        const struct tile_counters *n = &other.b.tile.counters;
        g_assert_cmpuint(n->trace_slots, <=, n->loop_slots);
        share = (double)n->trace_slots / (double)MAX(1, n->worker_slots);
        build_free(&other.b);
    }
    *ret_end = base.end;
    build_free(&base.b);
    return share;
}

/* With vector code, most programs like those of the products run in traces. */
static void test_ordinary(void) {
    enum tile_stop_reason end;
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t r = 0; r < 600 * rounds; r++) {
        struct trial c = trial_make();
        const double share = check(&c, &end);
        if (c.wild || end != TILE_STOP_DONE) continue;
        sum += share;
        n++;
    }
    g_assert_cmpuint(n, >, 60);
    if (tile_simd_best() != TILE_SIMD_SCALAR) g_assert_cmpfloat(sum / n, >, 0.25);
}

static void test_values(void) {
    static const uint32_t SPECIAL[] = {2, 30, 300, 2000};
    enum tile_stop_reason end;
    for (uint32_t r = 0; r < 400 * rounds; r++) {
        struct trial c = trial_make();
        c.special = SPECIAL[draw(4)];
        c.scale = draw(64);
        c.fp_ctl = draw(8) == 0 ? 1u << 19 : draw(8) == 0 ? 1u << 20 : 0;
        check(&c, &end);
    }
}

static void test_memory(void) {
    enum tile_stop_reason end;
    uint32_t faults = 0;
    for (uint32_t r = 0; r < 300 * rounds; r++) {
        struct trial c = trial_make();
        const uint32_t what = draw(6);
        if (what == 0) c.low = true;
        else if (what == 1) c.undefined = 1u << draw(24);
        else if (what < 4) c.near_end = 8 * (1 + draw(100));
        else c.hole = 8 * draw(80) + 4 * draw(2);
        check(&c, &end);
        faults += end == TILE_STOP_FAULT;
    }
    g_assert_cmpuint(faults, >, 60 * rounds);
}

static void test_limit(void) {
    enum tile_stop_reason end;
    for (uint32_t r = 0; r < 200 * rounds; r++) {
        struct trial c = trial_make();
        c.limit = draw(6 * 2 * c.n_items + 200);
        check(&c, &end);
    }
}

/* One call stores what a later one loads, with integer instructions between the two: they take slots, but
 * a block of rows is counted in calls. */
static void test_store_ahead(void) {
    static const uint32_t AT[] = {0, 3, 4, 9}, N_INTS[] = {0, 1, 2, 5};
    enum tile_stop_reason end;
    double sum = 0;
    for (uint32_t distance = 1; distance < 24; distance += 2)
        for (uint32_t t = 0; t < ARRAY_LEN(AT) * ARRAY_LEN(N_INTS); t++) {
            const uint32_t at = AT[t / ARRAY_LEN(N_INTS)], n_ints = N_INTS[t % ARRAY_LEN(N_INTS)];
            struct trial c = {.limit = UINT32_MAX, .data = 100 + distance, .ahead = -8 * (at + distance)};
            item(&c, TAPACK, W(TAPACK, 4, 8, 7, 6), FNOP); /* both launches alike */
            for (uint32_t k = 0; k < 20; k++) { /* few, so that the word is in the registers at the end */
                const int result = k % 2 ? 6 : 4;
                const uint32_t load = W(LD2X64PACE, 0, 2, 4, 1, 0), both = W(LD2XST64PACE, 0, result, 4, 1, 0);
                item(&c, CALL, k == at ? both : load, W(F16V4HIHOV4AMP, result, 0, 2, (int)k % 4));
                for (uint32_t i = 0; k == 7 && i < n_ints; i++) item(&c, ADD_REG, W(ADD_S, 9, 9, 8), FNOP);
            }
            sum += check(&c, &end);
            g_assert_cmpint(end, ==, TILE_STOP_DONE);
        }
    if (tile_simd_best() != TILE_SIMD_SCALAR) g_assert_cmpfloat(sum, >, 0); /* some do run in traces */
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    if (g_getenv("IPU_SEED")) seed = g_ascii_strtoull(g_getenv("IPU_SEED"), NULL, 0);
    if (g_getenv("IPU_ROUNDS")) rounds = g_ascii_strtoull(g_getenv("IPU_ROUNDS"), NULL, 0);
    g_test_message("IPU_SEED=%" G_GUINT64_FORMAT, seed);
    g_test_add_func("/tile/trace/ordinary", test_ordinary);
    g_test_add_func("/tile/trace/values", test_values);
    g_test_add_func("/tile/trace/memory", test_memory);
    g_test_add_func("/tile/trace/limit", test_limit);
    g_test_add_func("/tile/trace/store_ahead", test_store_ahead);
    return g_test_run();
}
