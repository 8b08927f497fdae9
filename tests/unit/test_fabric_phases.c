/* tests/data/phases: rows of an independent composer. Every word is delivered, nothing else is
 * written, every tile ends at its event cycle, no fault; with real contents, against a fabric that
 * works slot by slot, and with one and several threads. */
#include "../fabric_help.h"

static const char *const names[] = {"uni-1", "multi-1", "dense-1", "pair-2", "pair-5", "pair-6",
    "pair-7", "pair-11", "mixed-1", "mixed-2", "mixed-3", "mixed-4", "mixed-5", "mlp-b1-0"};

static void check_result(const struct help_case *c, const struct fabric_result *r) {
    if (r->first != NULL) {
        char *text = fabric_fault_text(r->first);
        g_test_message("%s", text);
        g_free(text);
    }
    g_assert_cmpuint(r->n_errors, ==, 0);
    g_assert_true(r->ok);
    g_assert_cmpuint(r->n_warnings, ==, r->count[FABRIC_P_EARLY]); /* that composer's n = 52 */
    g_assert_cmpuint(r->horizon, ==, c->rows.horizon);
    for (uint32_t i = 0; i < c->n; i++) g_assert_cmpuint(c->tiles[i].slots, ==, c->rows.slots[i]);
}

/* The contents that the problem asks for, on top of its sources. */
static void check_contents(const struct help_case *c, const struct sram *s) {
    const struct fabric_expect *e = &c->expect;
    struct sram *want = help_sources(e);
    for (uint32_t x = 0; x < e->n_transfers; x++)
        for (uint32_t k = e->first[x]; k < e->first[x + 1]; k++)
            for (uint32_t w = 0; w < e->words[x]; w++) {
                const uint32_t v = help_word(e->source[x], e->source_address[x] + 4 * w);
                memcpy(sram_at(want, e->tile[k], e->address[k] + 4 * w), &v, 4);
                sram_mark_written(want, e->tile[k], e->address[k] + 4 * w, 4);
            }
    g_assert_cmpuint(help_differences(want, s, c), ==, 0);
    sram_free(want);
}

static void test_phase(gconstpointer name) {
    struct help_case c = help_load(name, true);
    struct fabric *f = fabric_new();
    struct fabric_result r;
    struct sram *s = help_sources(&c.expect), *slow = help_sources(&c.expect);
    fabric_phase_run(f, &(struct fabric_phase){.sram = s, .tiles = c.tiles, .n_tiles = c.n}, &r);
    uint64_t endpoints = 0;
    for (uint32_t x = 0; x < c.expect.n_transfers; x++)
        endpoints += (uint64_t)c.expect.words[x] * (c.expect.first[x + 1] - c.expect.first[x]);
    g_assert_cmpuint(r.words_moved, ==, endpoints);
    g_assert_cmpuint(r.n_deliveries, ==, c.expect.n_receivers);
    fabric_expect_check(f, &c.expect, &r);
    check_result(&c, &r);
    check_contents(&c, s);
    help_tiles(&c);
    g_assert_true(slow_run(c.tiles, c.n, slow));
    g_assert_cmpuint(help_differences(s, slow, &c), ==, 0);
    sram_free(s);
    sram_free(slow);
    fabric_free(f);
    help_free(&c);
}

/* Registers on exit as the delta probe of exchange 2.5 left them. */
static void test_registers(void) {
    uint32_t sender[] = {0x40a0001e, 0x79eca003, 0x43a00000};
    uint32_t receiver[] = {0x64000000, 0x6403c640, 0x61298000, 0x40a00014, 0x43a00000};
    struct fabric_tile t[] = {
        {.tile = 0, .words = sender, .n_words = 3, .csr = fabric_csr_initial()},
        {.tile = 2, .words = receiver, .n_words = 5, .csr = fabric_csr_initial()}};
    t[0].csr.incoming_delta = 0x51234;
    t[1].csr.outgoing_delta = 0x54320;
    struct fabric *f = fabric_new();
    struct fabric_result r;
    fabric_phase_run(f, &(struct fabric_phase){.tiles = t, .n_tiles = 2}, &r);
    g_assert_true(r.ok);
    g_assert_cmphex(t[0].csr.outgoing_delta, ==, 0x65040);
    g_assert_cmphex(t[0].csr.incoming_delta, ==, 0x51234);
    g_assert_cmphex(t[1].csr.incoming_delta, ==, 0x60040);
    g_assert_cmphex(t[1].csr.outgoing_delta, ==, 0x54320);
    g_assert_cmphex(t[1].csr.incoming_mux, ==, TARGET_EXCH_MUX_NEUTRAL);
    g_assert_cmpuint(t[1].csr.incoming_dcount, ==, 1);
    g_assert_cmpuint(t[1].slots, ==, 76);
    g_assert_cmpuint(t[1].end_pc, ==, 16);
    fabric_free(f);
}

/* Rows in SRAM give the same as rows by pointer, and a context is as good as new after any run. */
static void test_rows_in_sram(void) {
    struct help_case c = help_load("mixed-1", true), other = help_load("uni-1", true);
    struct fabric *f = fabric_new();
    struct fabric_result r;
    struct sram *s = help_sources(&c.expect);
    const uint32_t at = 0x70000;
    for (uint32_t i = 0; i < c.n; i++) {
        memcpy(sram_at(s, c.tiles[i].tile, at), c.tiles[i].words, c.tiles[i].n_words * 4);
        sram_mark_written(s, c.tiles[i].tile, at, c.tiles[i].n_words * 4);
        c.tiles[i].words = NULL;
        c.tiles[i].row_address = at;
    }
    fabric_phase_run(f, &(struct fabric_phase){.tiles = other.tiles, .n_tiles = other.n}, &r);
    g_assert_true(r.ok);
    fabric_phase_run(f, &(struct fabric_phase){.sram = s, .tiles = c.tiles, .n_tiles = c.n}, &r);
    fabric_expect_check(f, &c.expect, &r);
    check_result(&c, &r);
    for (uint32_t i = 0; i < c.n; i++)
        g_assert_cmphex(c.tiles[i].end_pc, ==,
                        at + 4 * (c.rows.first[i + 1] - c.rows.first[i] - 1));
    sram_free(s);
    fabric_free(f);
    help_free(&c);
    help_free(&other);
}

static char *summary(const struct fabric *f, const struct fabric_result *r) {
    GString *out = g_string_new(NULL);
    for (uint32_t k = 0; k < r->n_errors + r->n_warnings; k++) {
        char *text = fabric_fault_text(&r->faults[k]);
        g_string_append_printf(out, "%s\n", text);
        g_free(text);
    }
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        uint32_t n;
        const struct fabric_delivery *d = fabric_deliveries(f, t, &n);
        for (uint32_t k = 0; k < n; k++)
            g_string_append_printf(out, "%u %u %u %u %x %x %u\n", t, d[k].stage, d[k].send,
                                   d[k].items, d[k].source, d[k].destination, d[k].source_tile);
    }
    return g_string_free(out, FALSE);
}

/* One thread and four: the same deliveries and faults, on damaged rows too. */
static void test_threads(void) {
    struct help_case c = help_load("mixed-3", true);
    for (uint32_t i = 0; i < c.n; i += 7)
        if (c.tiles[i].n_words > 4) c.rows.words[c.rows.first[i] + 2] ^= 1u << 19;
    char *texts[2];
    for (uint32_t k = 0; k < 2; k++) {
        struct fabric *f = fabric_new();
        struct fabric_result r;
        par_set_threads(k == 0 ? 1 : 4);
        help_tiles(&c);
        fabric_phase_run(f, &(struct fabric_phase){.tiles = c.tiles, .n_tiles = c.n}, &r);
        fabric_expect_check(f, &c.expect, &r);
        g_assert_false(r.ok);
        texts[k] = summary(f, &r);
        fabric_free(f);
    }
    par_set_threads(0);
    g_assert_cmpstr(texts[0], ==, texts[1]);
    g_free(texts[0]);
    g_free(texts[1]);
    help_free(&c);
}

/* --- syn-m0 (exchange 16.3), whose rows are syn-m0-p. --- */

static uint32_t lcg;
static uint32_t draw(uint32_t m) {
    lcg = lcg * 1664525u + 1013904223u;
    return (lcg >> 8) % m;
}
static void shuffle(uint32_t *a, uint32_t n) {
    for (uint32_t i = n - 1; i >= 1; i--) {
        const uint32_t j = draw(i + 1), swap = a[i];
        a[i] = a[j];
        a[j] = swap;
    }
}

static struct fabric_expect make_syn_m0(void) {
    enum { N = 807, PAIRS = 736, LISTED = 486, TWICE = 321, WORDS = 3072, FIRST = 243 };
    uint32_t p[PAIRS], sl[N], rl[N], n = 0, source[TARGET_N_TILES], destination[TARGET_N_TILES];
    lcg = 1;
    for (uint32_t i = 0; i < PAIRS; i++) p[i] = i;
    shuffle(p, PAIRS);
    for (uint32_t i = 0; i < LISTED; i++)
        for (uint32_t k = 0; k < (i < TWICE ? 2u : 1u); k++, n++) sl[n] = rl[n] = i;
    g_assert_cmpuint(n, ==, N);
    shuffle(sl, N);
    for (uint32_t i = 0; i + 1 < N; i++)
        if (rl[i] == rl[i + 1] && sl[i] == sl[i + 1]) {
            const uint32_t swap = sl[i + 1];
            sl[i + 1] = sl[(i + 2) % N];
            sl[(i + 2) % N] = swap;
        }
    struct fabric_expect e = {.n_transfers = N, .n_receivers = 2 * N,
        .source = g_new(uint16_t, N), .source_address = g_new(uint32_t, N),
        .words = g_new(uint32_t, N), .first = g_new(uint32_t, N + 1),
        .tile = g_new(uint16_t, 2 * N), .address = g_new(uint32_t, 2 * N)};
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        source[t] = 0x50000;
        destination[t] = 0x90000;
    }
    for (uint32_t i = 0; i < N; i++) {
        const uint32_t s = 2 * p[sl[i] / 2] + sl[i] % 2;
        e.source[i] = (uint16_t)s;
        e.source_address[i] = source[s];
        source[s] += 4 * WORDS;
        e.words[i] = WORDS;
        e.first[i] = 2 * i;
        e.first[i + 1] = 2 * i + 2;
        for (uint32_t k = 0; k < 2; k++) {
            const uint32_t d = 2 * p[FIRST + rl[i]] + k;
            e.tile[2 * i + k] = (uint16_t)d;
            e.address[2 * i + k] = destination[d];
            destination[d] += 4 * WORDS;
        }
    }
    return e;
}

static void test_syn_m0(void) {
    struct help_case c = help_load("syn-m0-p", false);
    c.expect = make_syn_m0();
    struct fabric *f = fabric_new();
    struct fabric_result r;
    fabric_phase_run(f, &(struct fabric_phase){.tiles = c.tiles, .n_tiles = c.n}, &r);
    fabric_expect_check(f, &c.expect, &r);
    check_result(&c, &r);
    g_assert_cmpuint(r.words_sent, ==, 2479104);
    fabric_free(f);
    help_free(&c);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = g_strdup_printf("/fabric/phase/%s", names[i]);
        g_test_add_data_func(path, names[i], test_phase);
        g_free(path);
    }
    g_test_add_func("/fabric/phase/syn-m0-p", test_syn_m0);
    g_test_add_func("/fabric/registers", test_registers);
    g_test_add_func("/fabric/rows-in-sram", test_rows_in_sram);
    g_test_add_func("/fabric/threads", test_threads);
    return g_test_run();
}
