/* Reads and writes of the same words inside one phase, and the probes O6 and O7 of exchange 11.1.
 * Contents are compared with the slot-by-slot fabric and with the transfers carried out one after the
 * other. */
#include "../fabric_compose.h"
#include "../fabric_help.h"

enum { N_TILES = 8, MAX_MESSAGES = 24 };

/* A phase of composed messages; the list of transfers is in order of adding. */
struct phase {
    struct comp_tile tiles[N_TILES];
    struct comp_message messages[MAX_MESSAGES];
    uint32_t sent[MAX_MESSAGES];
    uint32_t n;
};

static uint32_t add(struct phase *p, const struct comp_message *m, uint32_t from) {
    g_assert_cmpuint(p->n, <, MAX_MESSAGES);
    p->messages[p->n] = *m;
    p->sent[p->n] = comp_append(p->tiles, m, from, true);
    return p->sent[p->n++];
}

static void release(struct phase *p) {
    for (uint32_t t = 0; t < N_TILES; t++) comp_release(&p->tiles[t]);
    g_free(p);
}

/* Transfers in the given order of messages (NULL: as added). */
static struct fabric_expect list_of(const struct phase *p, const uint32_t *order) {
    struct fabric_expect e = {.source = g_new(uint16_t, p->n), .source_address = g_new(uint32_t, p->n),
        .words = g_new(uint32_t, p->n), .first = g_new0(uint32_t, p->n + 1),
        .tile = g_new(uint16_t, N_TILES * p->n), .address = g_new(uint32_t, N_TILES * p->n)};
    for (uint32_t x = 0; x < p->n; x++) {
        const struct comp_message *m = &p->messages[order != NULL ? order[x] : x];
        e.source[x] = (uint16_t)m->source;
        e.source_address[x] = m->address;
        e.words[x] = m->n * (m->paired ? 2 : 1);
        for (uint32_t k = 0; k < m->n_to; k++) {
            e.tile[e.n_receivers] = (uint16_t)m->to[k];
            e.address[e.n_receivers++] = m->at[k];
        }
        e.first[++e.n_transfers] = e.n_receivers;
    }
    return e;
}

static struct sram *filled(void) {
    struct sram *s = sram_new(N_TILES);
    for (uint32_t t = 0; t < N_TILES; t++) help_fill(s, t, 0x60000, 0x1000);
    return s;
}

/* The transfers one after the other. */
static void apply(const struct fabric_expect *e, struct sram *s) {
    for (uint32_t x = 0; x < e->n_transfers; x++) {
        const uint32_t bytes = 4 * e->words[x];
        uint8_t *copy = g_memdup2(sram_at(s, e->source[x], e->source_address[x]), bytes);
        for (uint32_t k = e->first[x]; k < e->first[x + 1]; k++) {
            memcpy(sram_at(s, e->tile[k], e->address[k]), copy, bytes);
            sram_mark_written(s, e->tile[k], e->address[k], bytes);
        }
        g_free(copy);
    }
}

struct outcome {
    struct fabric_result result; /* with the list compared */
    bool as_listed;              /* contents equal those of the transfers in list order */
    bool as_slow;                /* and those of the slot-by-slot fabric */
};

static struct outcome run(struct phase *p, const uint32_t *order, uint32_t flags) {
    struct fabric_tile rows[N_TILES];
    const uint32_t n = comp_tiles(p->tiles, N_TILES, rows);
    const struct help_case c = {.tiles = rows, .n = n};
    struct fabric_expect e = list_of(p, order);
    struct sram *fast = filled(), *slow = filled(), *listed = filled();
    struct fabric *f = fabric_new();
    struct outcome o;
    g_assert_true(slow_run(rows, n, slow));
    apply(&e, listed);
    fabric_phase_run(f, &(struct fabric_phase){.sram = fast, .tiles = rows, .n_tiles = n,
                                               .flags = flags}, &o.result);
    fabric_expect_check(f, &e, &o.result);
    o.as_slow = help_differences(fast, slow, &c) == 0;
    o.as_listed = help_differences(fast, listed, &c) == 0;
    fabric_free(f);
    sram_free(fast);
    sram_free(slow);
    sram_free(listed);
    fabric_expect_clear(&e);
    return o;
}

/* Message of n words (items when paired) from `source` to one tile, or to the pair at tile `to`. */
static struct comp_message message(uint32_t source, uint32_t from, uint32_t to, uint32_t at, uint32_t n) {
    return (struct comp_message){.source = source, .address = from, .n = n, .n_to = 1, .to = {to},
                                 .at = {at}};
}
static struct comp_message pair_message(uint32_t source, uint32_t from, uint32_t to, uint32_t at,
                                        uint32_t n) {
    return (struct comp_message){.source = source, .address = from, .n = n, .paired = true, .n_to = 2,
                                 .to = {to, to + 1}, .at = {at, at}};
}

static void expect_order(struct phase *p, bool right) {
    static const uint32_t swapped[] = {1, 0, 2, 3};
    struct outcome o = run(p, NULL, 0);
    g_assert_true(o.as_slow);
    g_assert_cmpint(o.result.ok, ==, right);
    g_assert_cmpint(o.as_listed, ==, right);
    g_assert_cmpint(o.result.count[FABRIC_H3] > 0, ==, !right);
    o = run(p, swapped, 0);
    g_assert_cmpint(o.result.ok, ==, !right);
    g_assert_cmpint(o.as_listed, ==, !right);
}

/* Tile 2 passes on what it receives: read exactly in the slot in which the last word is written. */
static void test_fresh(void) {
    struct phase *p = g_new0(struct phase, 1);
    const uint32_t sent = add(p, &(struct comp_message){.source = 0, .address = 0x60000, .n = 16,
                                  .n_to = 1, .to = {2}, .at = {0x61000}}, 0);
    const uint32_t stage = (uint32_t)((int32_t)sent + target_ttm(comp_phys(0), comp_phys(2))) + 54;
    const struct comp_message on = message(2, 0x61000, 4, 0x62000, 16);
    struct comp_primitive q;
    comp_ordinary(&on, &q);
    g_assert_cmpuint(add(p, &on, stage + 15 + 7 - q.start), ==, stage + 22);
    expect_order(p, true);
    release(p);
}

/* Tile 2 sends its old words before the new ones arrive. */
static void test_stale(void) {
    struct phase *p = g_new0(struct phase, 1);
    const struct comp_message in = message(0, 0x60000, 2, 0x61000, 8), out = message(2, 0x61000, 4, 0x62000, 8);
    add(p, &in, 40);
    add(p, &out, 0);
    expect_order(p, false);
    release(p);
}

/* Two tiles exchange the same buffer: both read before they write. */
static void test_swap(void) {
    struct phase *p = g_new0(struct phase, 1);
    const struct comp_message a = message(0, 0x61000, 2, 0x61000, 12), b = message(2, 0x61000, 0, 0x61000, 12);
    add(p, &a, 0);
    add(p, &b, 0);
    const struct outcome o = run(p, NULL, FABRIC_PERMISSIVE);
    g_assert_true(o.as_slow);
    g_assert_cmpuint(o.result.count[FABRIC_H1], ==, 0);
    g_assert_cmpuint(o.result.count[FABRIC_H3], ==, 1); /* whichever comes first in a list, one is stale */
    release(p);
}

/* Widths change on the way: 64-bit in, 32-bit on, 64-bit on. */
static void test_chain(void) {
    struct phase *p = g_new0(struct phase, 1);
    const struct comp_message a = pair_message(0, 0x60000, 2, 0x61000, 20),
                              b = message(3, 0x61000, 6, 0x62000, 40),
                              c = pair_message(6, 0x62000, 4, 0x63000, 20),
                              d = message(5, 0x63004, 1, 0x60800, 11);
    const uint32_t starts[] = {add(p, &a, 0), add(p, &b, 200), add(p, &c, 500), add(p, &d, 800)};
    for (uint32_t k = 1; k < 4; k++) g_assert_cmpuint(starts[k], >, starts[k - 1]);
    const struct outcome o = run(p, NULL, 0);
    g_assert_true(o.result.ok);
    g_assert_true(o.as_slow);
    g_assert_true(o.as_listed);
    release(p);
}

/* Strict: a phase with a fault moves nothing. Counted: what is read while it is being written is
 * exact to the word. */
static void test_conflict(void) {
    struct phase *p = g_new0(struct phase, 1);
    const struct comp_message in = pair_message(0, 0x60000, 2, 0x61000, 60),
                              out = message(2, 0x61000, 4, 0x62000, 120);
    add(p, &in, 0);
    add(p, &out, 10); /* its first words are read before they are written, the others behind */
    struct outcome o = run(p, NULL, FABRIC_PERMISSIVE);
    g_assert_cmpuint(o.result.count[FABRIC_H1], ==, 1);
    g_assert_true(o.as_slow);
    g_assert_false(o.as_listed);
    o = run(p, NULL, 0);
    g_assert_false(o.result.ok);
    g_assert_false(o.as_slow);
    release(p);
}

/* Random messages over a few hundred words that all tiles read and write. */
static void random_message(struct comp_message *m) {
    const uint32_t paired = (uint32_t)g_test_rand_int_range(0, 3) == 0;
    const uint32_t n = (uint32_t)g_test_rand_int_range(3, 25), at = 0x60000 + 8 * (uint32_t)g_test_rand_int_range(0, 60);
    const uint32_t to = 0x60000 + 8 * (uint32_t)g_test_rand_int_range(0, 60);
    const uint32_t source = (uint32_t)g_test_rand_int_range(0, N_TILES);
    uint32_t other = (uint32_t)g_test_rand_int_range(0, N_TILES);
    while (other / 2 == source / 2) other = (other + 1) % N_TILES;
    *m = paired ? pair_message(source, at, other & ~1u, to, n) : message(source, at, other, to, n);
}

static void test_random(void) {
    uint32_t clean = 0, stale = 0, conflicts = 0;
    for (uint32_t trial = 0; trial < 60; trial++) {
        struct phase *p = g_new0(struct phase, 1);
        for (uint32_t k = (uint32_t)g_test_rand_int_range(2, 12); k > 0; k--) {
            struct comp_message m;
            random_message(&m);
            add(p, &m, (uint32_t)g_test_rand_int_range(0, 400));
        }
        const struct outcome o = run(p, NULL, FABRIC_PERMISSIVE);
        g_assert_true(o.as_slow);
        if (o.result.ok) g_assert_true(o.as_listed);
        clean += o.result.ok;
        stale += o.result.count[FABRIC_H3] > 0;
        conflicts += o.result.count[FABRIC_H1] > 0;
        release(p);
    }
    g_test_message("%u without fault, %u with H3, %u with H1", clean, stale, conflicts);
}

/* --- O6 and O7. --- */

static void check_stages(struct phase *p, const uint32_t stages[4], uint32_t items) {
    struct fabric_tile rows[12];
    struct fabric *f = fabric_new();
    struct fabric_result r;
    const uint32_t n = comp_tiles(p->tiles, N_TILES, rows);
    fabric_phase_run(f, &(struct fabric_phase){.tiles = rows, .n_tiles = n}, &r);
    g_assert_true(r.ok);
    g_assert_cmpuint(r.n_warnings, ==, 0);
    uint32_t n_d;
    const struct fabric_delivery *d = fabric_deliveries(f, 2, &n_d);
    g_assert_cmpuint(n_d, ==, 4);
    for (uint32_t k = 0; k < 4; k++) {
        g_assert_cmpuint(d[k].stage, ==, stages[k]);
        g_assert_cmpuint(d[k].items, ==, items);
    }
    fabric_free(f);
}

/* O6: gap-free receives of a vendor program on tile 2; the stages are its pointer labels less one.
 * Its sources were tiles 0, 4, 6 and 8; tile 8 does not exist here, tile 0 sends twice. */
static void test_o6(void) {
    static const uint32_t sources[] = {0, 4, 6, 0}, ordinary[] = {55, 107, 159, 211},
                          paired[] = {55, 231, 407, 583};
    struct phase *p = g_new0(struct phase, 1), *q = g_new0(struct phase, 1);
    for (uint32_t k = 0; k < 4; k++) {
        struct comp_message m = pair_message(sources[k], 0x50000, 2, 0x60000 + 0x1000 * k, 52);
        m.paired = false;
        add(p, &m, 1); /* that program starts one slot later than it must */
        const struct comp_message w = pair_message(sources[k], 0x50000, 2, 0x60000 + 0x1000 * k, 176);
        add(q, &w, 0);
    }
    check_stages(p, ordinary, 52);
    check_stages(q, paired, 176);
    release(p);
    release(q);
}

/* O7: tile 1 receives while its lane is borrowed. */
static void test_o7(void) {
    struct phase *p = g_new0(struct phase, 1);
    struct comp_message a = pair_message(0, 0x50000, 2, 0x60000, 2048), b = message(4, 0x50000, 1, 0x60000, 2048);
    g_assert_cmpuint(add(p, &a, 0), ==, 31);
    add(p, &b, 112);
    struct fabric_tile rows[N_TILES];
    struct fabric *f = fabric_new();
    struct fabric_result r;
    const uint32_t n = comp_tiles(p->tiles, N_TILES, rows);
    struct fabric_expect e = list_of(p, NULL);
    fabric_phase_run(f, &(struct fabric_phase){.tiles = rows, .n_tiles = n}, &r);
    fabric_expect_check(f, &e, &r);
    g_assert_true(r.ok);
    uint32_t n_d;
    const struct fabric_delivery *d = fabric_deliveries(f, 1, &n_d);
    g_assert_cmpuint(n_d, ==, 1);
    g_assert_cmpuint(d->stage + 1, ==, 165);
    g_assert_cmpuint(d->items, ==, 2048);
    fabric_expect_clear(&e);
    fabric_free(f);
    release(p);
}

/* C25: two tiles send each other the longest message; each carries the other's controls. */
static void test_c25(void) {
    struct phase *p = g_new0(struct phase, 1);
    const struct comp_message a = message(0, 0x50000, 2, 0x90000, 4148), b = message(2, 0x50000, 0, 0x90000, 4148);
    g_assert_cmpuint(add(p, &a, 0), ==, 31);
    g_assert_cmpuint(add(p, &b, 0), ==, 27);
    struct fabric_tile rows[N_TILES];
    struct fabric *f = fabric_new();
    struct fabric_result r;
    struct fabric_expect e = list_of(p, NULL);
    fabric_phase_run(f, &(struct fabric_phase){.tiles = rows,
                                               .n_tiles = comp_tiles(p->tiles, N_TILES, rows)}, &r);
    fabric_expect_check(f, &e, &r);
    g_assert_true(r.ok);
    g_assert_cmpuint(rows[0].slots, ==, 4206); /* pointer label 53 + 4148 + 5 */
    g_assert_cmpuint(rows[1].slots, ==, 4208);
    uint32_t kinds[ISA_EXCH_SYNC + 1] = {0};
    for (uint32_t at = 0; at < rows[0].n_words;) {
        const struct isa_exch x = isa_exch_decode(rows[0].words + at, rows[0].n_words - at);
        kinds[x.kind]++;
        at += x.n_words;
    }
    g_assert_cmpuint(kinds[ISA_EXCH_SENDPIC], ==, 2);
    g_assert_cmpuint(kinds[ISA_EXCH_SENDOFF], ==, 1); /* at most 4,096 items between the two */
    fabric_expect_clear(&e);
    fabric_free(f);
    release(p);
}

/* O8: the address field of send counts words. */
static void test_o8(void) {
    const uint32_t words[2][2] = {{0x782a03cb, 0x43a00000}, {0x782a03db, 0x43a00000}};
    struct fabric *f = fabric_new();
    for (uint32_t k = 0; k < 2; k++) {
        struct fabric_tile t = {.words = words[k], .n_words = 2, .csr = fabric_csr_initial()};
        struct fabric_result r;
        fabric_phase_run(f, &(struct fabric_phase){.tiles = &t, .n_tiles = 1}, &r);
        g_assert_true(r.ok);
        g_assert_cmpuint(r.count[FABRIC_S4], ==, 1);
        g_assert_cmpuint(r.faults[0].address, ==, 4 * (82041 + 2 * k));
        g_assert_cmpuint(t.csr.outgoing_delta, ==, 4 * (82043 + 2 * k));
        g_assert_cmpuint(r.words_sent, ==, 2);
    }
    fabric_free(f);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fabric/order/fresh", test_fresh);
    g_test_add_func("/fabric/order/stale", test_stale);
    g_test_add_func("/fabric/order/swap", test_swap);
    g_test_add_func("/fabric/order/chain", test_chain);
    g_test_add_func("/fabric/order/conflict", test_conflict);
    g_test_add_func("/fabric/order/random", test_random);
    g_test_add_func("/fabric/probes/o6", test_o6);
    g_test_add_func("/fabric/probes/o7", test_o7);
    g_test_add_func("/fabric/probes/o8", test_o8);
    g_test_add_func("/fabric/probes/c25", test_c25);
    return g_test_run();
}
