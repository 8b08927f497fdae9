/* A case for every condition of fabric_fault.def that words can raise: the condition is reported for
 * the right tile and slot. The rows are the smallest that show it, most of them a good row of exchange
 * 11.2 with one change. The last test fails when a condition has neither a case here nor in
 * tests/data/exchange/vectors.txt. */
#include "fabric/fabric.h"
#include "isa/isa_exch.h"

#include <string.h>

enum { NEUTRAL = TARGET_EXCH_MUX_NEUTRAL, MAX_ROWS = 5, MAX_WORDS = 24 };

static bool covered[FABRIC_N_FAULTS];

/* A phase being put together: rows by tile, ascending. */
struct setup {
    struct fabric_tile t[MAX_ROWS];
    uint32_t words[MAX_ROWS][MAX_WORDS];
    uint32_t n, flags;
    struct sram *sram;
    struct tileset *inactive;
};

static struct fabric_tile *row(struct setup *s, uint32_t tile, uint32_t n, const uint32_t *words) {
    g_assert_cmpuint(n, <=, MAX_WORDS);
    memcpy(s->words[s->n], words, n * sizeof *words);
    s->t[s->n] = (struct fabric_tile){.tile = (uint16_t)tile, .words = s->words[s->n], .n_words = n,
                                      .csr = fabric_csr_initial()};
    return &s->t[s->n++];
}
#define ROW(s, tile, ...) \
    row(s, tile, ARRAY_LEN(((const uint32_t[]){__VA_ARGS__})), (const uint32_t[]){__VA_ARGS__})

#define RETURN isa_word_br(10)
#define PTR(n, bytes) isa_word_delaypic(n, ISA_PIC_PTR, (bytes) / 4)
#define FMT(n, value) isa_word_delaypic(n, ISA_PIC_FMT, value)
#define MUX(n, value) isa_word_delayxpic(n, ISA_XPIC_MUX, value)
#define PAIR(n, value) isa_word_delayxpic(n, ISA_XPIC_PAIR, value)
#define SEND(n, bytes, sctl) isa_word_send(n, (bytes) / 4, sctl)
#define SEND64(n, bytes, sctl) isa_word_send(n, (bytes) / 8, sctl)
#define DELAY(n) isa_word_delay(n)

static uint32_t picp(uint32_t word, const struct isa_sendpicp *f) {
    uint32_t w[2];
    isa_word_sendpicp(f, w);
    return w[word];
}
#define PICP(...) picp(0, &(struct isa_sendpicp){__VA_ARGS__}), picp(1, &(struct isa_sendpicp){__VA_ARGS__})

/* C1: tile 0 to tile 1, n words in slots 28.. */
static void c1_sender(struct setup *s, uint32_t n) { ROW(s, 0, DELAY(28), SEND(n, 0x65000, 1), RETURN); }
static void c1_receiver(struct setup *s) {
    ROW(s, 1, MUX(1, 0), MUX(1, NEUTRAL), PTR(51, 0x60000), DELAY(6), RETURN);
}
/* C14: tile 0 to tiles 2 and 3, 64 items. */
static void c14_sender(struct setup *s) { ROW(s, 0, DELAY(31), SEND64(64, 0x50000, 5), RETURN); }
static void c14_early(struct setup *s) {
    ROW(s, 2, PAIR(1, 0), FMT(53, 1), PTR(2, 0x60000), PAIR(9, NEUTRAL), FMT(53, 0), DELAY(7), RETURN);
}
static void c14_late(struct setup *s) {
    ROW(s, 3, FMT(54, 1), PTR(2, 0x60000), FMT(62, 0), DELAY(7), RETURN);
}

/* --- The cases. --- */

static void r1(struct setup *s) { ROW(s, 0, DELAY(5), 0, RETURN); }
static void r1_cut(struct setup *s) { ROW(s, 0, DELAY(5), DELAY(1), 0xf0000000); }
static void r3(struct setup *s) { ROW(s, 0, DELAY(5)); }
static void r5(struct setup *s) { ROW(s, 0, FMT(4, 3), FMT(1, 0), DELAY(8), RETURN); }
static void r5_mux(struct setup *s) { /* sendpic's field has 18 bits, a mux 13: 0x2640 is not neutral */
    ROW(s, 0, SEND(3, 0x65000, 1), isa_word_sendpic(2, ISA_CSEL_PTR, 0x2640) & ~(3u << 18), RETURN);
}
static void r5_pair(struct setup *s) {
    ROW(s, 0, SEND(3, 0x65000, 1), isa_word_sendpic(2, ISA_CSEL_PTR, 0x20640) - (1u << 18), RETURN);
}
static void r6(struct setup *s) { ROW(s, 0, DELAY(3), isa_word_sync(3), RETURN); }
static void r6_mixed(struct setup *s) {
    ROW(s, 0, isa_word_sync(3), DELAY(3), RETURN)->sync_in_row = true;
    ROW(s, 1, DELAY(3), RETURN);
}
static void r8(struct setup *s) {
    ROW(s, 0, PICP(.n = 3, .psel = ISA_PIC_FMT, .mux = NEUTRAL), DELAY(9), RETURN);
}
static void r8_pair(struct setup *s) {
    ROW(s, 0, PICP(.n = 3, .p18 = 0x18000, .mux = NEUTRAL, .pair = true), DELAY(9), RETURN);
}
static void r8_use(struct setup *s) { /* a paired message's pointer shares its slot with a mux write */
    c14_sender(s);
    ROW(s, 2, PAIR(1, 0), DELAY(1), FMT(52, 1), DELAY(1), PICP(.n = 9, .p18 = 0x18000, .mux = NEUTRAL),
        PAIR(1, NEUTRAL), FMT(53, 0), DELAY(7), RETURN);
    c14_late(s);
}
static void r9_gap(struct setup *s) {
    ROW(s, 0, SEND(4, 0x65000, 3), DELAY(2), isa_word_sendoff(2, 0, 3), RETURN);
}
static void r10(struct setup *s) {
    ROW(s, 0, SEND(4, 0x65000, 3), isa_word_sendoff(2, 0, 3),
        PICP(.n = 4, .item_address = 0x66000 / 4, .sctl = 3, .mux = NEUTRAL), RETURN);
}
static void r11(struct setup *s) {
    ROW(s, 0, SEND(4, 0x65000, 3), isa_word_sendoff(4, 0, 7), RETURN);
}
static void r11_four(struct setup *s) { ROW(s, 0, DELAY(2), SEND(4, 0x65000, 4), RETURN); }
static void r12(struct setup *s) { ROW(s, 0, SEND(4, 0x65000, 3), isa_word_sendoff(4, 2, 3), RETURN); }
static void r13(struct setup *s) {
    ROW(s, 0, DELAY(31), SEND(16, 0x65000, 1), RETURN);
    ROW(s, 2, MUX(1, 0), MUX(16, NEUTRAL), PTR(38, 0x60000), isa_word_put(0xa4, 15), DELAY(8), RETURN);
}
static void r14(struct setup *s) { ROW(s, 0, DELAY(2), isa_word_get(0, 0xa4), RETURN); }
static void r14_put(struct setup *s) { ROW(s, 0, DELAY(2), isa_word_put(0xa0, 0), RETURN); }

static void s2(struct setup *s) { ROW(s, 0, DELAY(2), SEND(4, 0x4bffc, 3), RETURN); }
static void s2_end(struct setup *s) { ROW(s, 0, DELAY(2), SEND64(4, 0xe7ff0, 7), RETURN); }
static void s3(struct setup *s) {
    ROW(s, 0, DELAY(2), SEND64(4, 0x65000, 7), RETURN)->csr.outgoing_base = 4;
}
static void s4(struct setup *s) { ROW(s, 0, DELAY(7), SEND(4, 0x65000, 3), RETURN); }
static void s7_before(struct setup *s) {
    ROW(s, 0, DELAY(7), MUX(1, NEUTRAL), SEND(4, 0x65000, 3), RETURN);
}
static void s7_first(struct setup *s) {
    ROW(s, 0, DELAY(3), DELAY(5), PICP(.n = 4, .item_address = 0x65000 / 4, .sctl = 3, .mux = NEUTRAL),
        RETURN);
}

static void m4(struct setup *s) {
    ROW(s, 0, MUX(3, TARGET_EXCH_MUX_HOST), MUX(5, NEUTRAL), RETURN);
}
static void m4_pair(struct setup *s) { ROW(s, 0, PAIR(3, 1472), PAIR(5, NEUTRAL), DELAY(8), RETURN); }
static void m5_partner(struct setup *s) { /* the early member names the sender's partner */
    c14_sender(s);
    ROW(s, 2, PAIR(1, 2), FMT(53, 1), PTR(2, 0x60000), PAIR(9, NEUTRAL), FMT(53, 0), DELAY(7), RETURN);
    c14_late(s);
}
static void m5_both(struct setup *s) {
    c14_sender(s);
    c14_early(s);
    ROW(s, 3, PAIR(20, NEUTRAL), FMT(34, 1), PTR(2, 0x60000), FMT(62, 0), DELAY(7), RETURN);
}
static void m6(struct setup *s) {
    c14_sender(s);
    c14_early(s);
    ROW(s, 3, MUX(20, NEUTRAL), FMT(34, 1), PTR(2, 0x60000), FMT(62, 0), DELAY(7), RETURN);
}
static void m6_left(struct setup *s) { /* the late member's mux is still set when the pair mux is */
    c14_sender(s);
    c14_early(s);
    struct fabric_tile *t = ROW(s, 3, FMT(54, 1), PTR(2, 0x60000), FMT(62, 0), DELAY(7), RETURN);
    t->csr.incoming_mux = 128;
}
static void m7_width(struct setup *s) { /* a 64-bit item at an ordinary mux */
    ROW(s, 0, DELAY(28), SEND64(1, 0x65000, 5), RETURN);
    c1_receiver(s);
}
static void m7_borrowed(struct setup *s) { /* the mux is on tile 1, whose lane tile 0 has borrowed */
    c14_sender(s);
    ROW(s, 2, MUX(1, 2), MUX(4, NEUTRAL), DELAY(60), RETURN);
}
static void m7_ordinary(struct setup *s) { /* an ordinary item at a pair mux */
    ROW(s, 0, DELAY(31), SEND(64, 0x50000, 1), RETURN);
    c14_early(s);
    c14_late(s);
}
static void m8_paired(struct setup *s) { /* format of the other direction */
    c14_sender(s);
    c14_early(s);
    ROW(s, 3, FMT(54, 2), PTR(2, 0x60000), FMT(62, 0), DELAY(7), RETURN);
}
static void entry(struct setup *s) { ROW(s, 0, DELAY(2), MUX(1, NEUTRAL), RETURN)->csr.incoming_mux = 5; }

static void p1(struct setup *s) {
    c1_sender(s, 1);
    ROW(s, 1, MUX(1, 0), MUX(1, NEUTRAL), DELAY(57), RETURN);
}
static void p4(struct setup *s) {
    c14_sender(s);
    c14_early(s);
    ROW(s, 3, FMT(54, 1), PTR(2, 0x60004), FMT(62, 0), DELAY(7), RETURN);
}
static void p6(struct setup *s) { /* the pair mux ends, and an ordinary mux set under it takes over */
    c14_sender(s);
    ROW(s, 2, PAIR(1, 0), MUX(1, 128), FMT(52, 1), PTR(2, 0x60000), PAIR(9, NEUTRAL), MUX(5, NEUTRAL),
        FMT(48, 0), DELAY(9), RETURN);
    c14_late(s);
    ROW(s, 4, DELAY(91), SEND(5, 0x65000, 1), RETURN);
}
static void p7(struct setup *s) { ROW(s, 0, DELAY(2), RETURN)->csr.incoming_base = 0x60004; }
static void p7_put(struct setup *s) {
    ROW(s, 0, DELAY(2), isa_word_setzi(3, 0x60004), isa_word_put(0xa7, 3), RETURN);
}
static void p_early(struct setup *s) {
    c1_sender(s, 1);
    ROW(s, 1, MUX(1, 0), MUX(1, NEUTRAL), PTR(41, 0x60000), DELAY(16), RETURN);
}

static void h2_send(struct setup *s) {
    c1_sender(s, 1);
    s->t[0].row_address = 0x64000;
    c1_receiver(s);
}
static void h2_guard(struct setup *s) { /* the row is in the element before, its guard is not */
    c1_sender(s, 1);
    c1_receiver(s);
    s->t[1].row_address = 0x5ffc8;
}
static void h2_code(struct setup *s) {
    c1_sender(s, 1);
    c1_receiver(s);
    s->t[1].code_elements = 1u << target_element(0x60000);
}
static void h4(struct setup *s) { ROW(s, 0, DELAY(2), RETURN)->workers_active = true; }
static void h5(struct setup *s) {
    s->sram = sram_new(2);
    sram_mark_written(s->sram, 0, 0x65000, 4);
    c1_sender(s, 2);
    ROW(s, 1, MUX(1, 0), MUX(2, NEUTRAL), PTR(50, 0x60000), DELAY(7), RETURN);
}
static void h5_fetch(struct setup *s) {
    const uint32_t words[] = {DELAY(4), RETURN};
    s->sram = sram_new(2);
    memcpy(sram_at(s->sram, 0, 0x70000), words, sizeof words);
    sram_mark_written(s->sram, 0, 0x70000, 4);
    struct fabric_tile *t = ROW(s, 0, RETURN);
    t->words = NULL;
    t->row_address = 0x70000;
}
static void h7_only(struct setup *s) { /* C19 without its second receiver */
    ROW(s, 0, MUX(3, 0), MUX(16, NEUTRAL), DELAY(12), SEND(16, 0x65000, 3), PTR(8, 0x60000), DELAY(21),
        RETURN);
}
static void h8(struct setup *s) {
    ROW(s, 0, SEND(64, 0x65000, 3), isa_word_sendoff(4085, 0, 3), RETURN);
}
static void c1_short(struct setup *s) {
    c1_sender(s, 1);
    ROW(s, 1, MUX(1, 0), MUX(1, NEUTRAL), PTR(51, 0x60000), DELAY(5), RETURN);
}
static void c1_paired(struct setup *s) {
    c14_sender(s);
    c14_early(s);
    ROW(s, 3, FMT(54, 1), PTR(2, 0x60000), FMT(64, 0), DELAY(6), RETURN);
}
static void c3_absent(struct setup *s) {
    ROW(s, 0, DELAY(2), RETURN);
    s->sram = sram_new(2);
    s->inactive = g_new0(struct tileset, 1);
}
static void c3_both(struct setup *s) {
    ROW(s, 0, DELAY(2), RETURN);
    s->sram = sram_new(1);
    s->inactive = g_new0(struct tileset, 1);
    tileset_add(s->inactive, 0);
}

struct condition_case {
    enum fabric_fault_index what;
    void (*make)(struct setup *s);
    uint32_t tile, slot;
};
static const struct condition_case cases[] = {
    {FABRIC_R1, r1, 0, 5}, {FABRIC_R1, r1_cut, 0, 6}, {FABRIC_R3, r3, 0, 5}, {FABRIC_R5, r5, 0, 3},
    {FABRIC_R5, r5_mux, 0, 3}, {FABRIC_R5, r5_pair, 0, 3},
    {FABRIC_R6, r6, 0, 3}, {FABRIC_R6, r6_mixed, 1, 0}, {FABRIC_R8, r8, 0, 0},
    {FABRIC_R8, r8_pair, 0, 0}, {FABRIC_R8, r8_use, 2, 55}, {FABRIC_R9_GAP, r9_gap, 0, 6},
    {FABRIC_R10, r10, 0, 6}, {FABRIC_R11, r11, 0, 4}, {FABRIC_R11, r11_four, 0, 2},
    {FABRIC_R12, r12, 0, 4}, {FABRIC_R13, r13, 2, 54}, {FABRIC_R14, r14, 0, 2},
    {FABRIC_R14, r14_put, 0, 2}, {FABRIC_S2, s2, 0, 2}, {FABRIC_S2, s2_end, 0, 2},
    {FABRIC_S3, s3, 0, 2}, {FABRIC_S4, s4, 0, 7}, {FABRIC_S7, s7_before, 0, 8},
    {FABRIC_S7, s7_first, 0, 8}, {FABRIC_M4, m4, 0, 2}, {FABRIC_M4, m4_pair, 0, 2},
    {FABRIC_M5, m5_partner, 2, 0}, {FABRIC_M5, m5_both, 3, 19}, {FABRIC_M6, m6, 3, 19},
    {FABRIC_M6, m6_left, 3, 1}, {FABRIC_M7, m7_width, 1, 0}, {FABRIC_M7, m7_borrowed, 2, 0},
    {FABRIC_M7, m7_ordinary, 2, 0}, {FABRIC_M8, m8_paired, 3, 53}, {FABRIC_ENTRY, entry, 0, 0},
    {FABRIC_P1, p1, 1, 52}, {FABRIC_P4, p4, 3, 55}, {FABRIC_P6, p6, 2, 118}, {FABRIC_P7, p7, 0, 0},
    {FABRIC_P7, p7_put, 0, 3}, {FABRIC_P_EARLY, p_early, 1, 42}, {FABRIC_H2, h2_send, 0, 28},
    {FABRIC_H2, h2_guard, 1, 52}, {FABRIC_H2, h2_code, 1, 52}, {FABRIC_H4, h4, 0, 0},
    {FABRIC_H5, h5, 0, 29}, {FABRIC_H5, h5_fetch, 0, 0}, {FABRIC_H7, h7_only, 0, 31},
    {FABRIC_H8, h8, 0, 0}, {FABRIC_C1, c1_short, 1, 52}, {FABRIC_C1, c1_paired, 3, 119},
    {FABRIC_C3, c3_absent, 1, 0}, {FABRIC_C3, c3_both, 0, 0},
};

static void run_case(const struct condition_case *c, uint32_t flags, struct fabric_result *r,
                     struct fabric *f) {
    struct setup s = {0};
    c->make(&s);
    fabric_phase_run(f, &(struct fabric_phase){.sram = s.sram, .tiles = s.t, .n_tiles = s.n,
                                               .flags = flags, .inactive = s.inactive}, r);
    sram_free(s.sram);
    g_free(s.inactive);
}

static bool reported(const struct condition_case *c, const struct fabric_result *r, bool *ret_error) {
    for (uint32_t k = 0; k < r->n_errors + r->n_warnings; k++) {
        const struct fabric_fault *x = &r->faults[k];
        if (x->what != c->what || x->tile != c->tile || x->slot != c->slot) continue;
        *ret_error = x->error;
        return true;
    }
    return false;
}

static void test_cases(void) {
    struct fabric *f = fabric_new();
    struct fabric_result r;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct fabric_condition *what = &fabric_conditions[cases[i].what];
        bool error = false;
        run_case(&cases[i], 0, &r, f);
        const bool found = reported(&cases[i], &r, &error);
        for (uint32_t k = 0; !found && k < r.n_errors + r.n_warnings; k++) {
            char *text = fabric_fault_text(&r.faults[k]);
            g_test_message("case %zu: %s", i, text);
            g_free(text);
        }
        if (!found) g_test_message("case %zu: %s is not reported", i, what->id);
        g_assert_true(found);
        g_assert_cmpint(error, ==, what->class != 'W');
        g_assert_cmpint(r.ok, ==, r.n_errors == 0);
        run_case(&cases[i], FABRIC_RELAXED, &r, f);
        g_assert_true(reported(&cases[i], &r, &error));
        g_assert_cmpint(error, ==, what->class == 'E');
        covered[cases[i].what] = true;
    }
    fabric_free(f);
}

/* The good rows that the cases above change raise nothing. */
static void test_good(void) {
    struct fabric *f = fabric_new();
    struct fabric_result r;
    struct setup s = {0}, p = {0};
    c1_sender(&s, 1);
    c1_receiver(&s);
    fabric_phase_run(f, &(struct fabric_phase){.tiles = s.t, .n_tiles = s.n}, &r);
    g_assert_cmpuint(r.n_errors + r.n_warnings, ==, 0);
    c14_sender(&p);
    c14_early(&p);
    c14_late(&p);
    fabric_phase_run(f, &(struct fabric_phase){.tiles = p.t, .n_tiles = p.n}, &r);
    g_assert_cmpuint(r.n_errors + r.n_warnings, ==, 0);
    fabric_free(f);
}

/* S4 as an error when the message has receivers in the list. */
static void test_expected_unheard(void) {
    struct fabric *f = fabric_new();
    struct fabric_result r;
    struct setup s = {0};
    c1_sender(&s, 1);
    fabric_phase_run(f, &(struct fabric_phase){.tiles = s.t, .n_tiles = s.n}, &r);
    g_assert_true(r.ok);
    g_assert_cmpuint(r.count[FABRIC_S4], ==, 1);
    uint16_t source = 0, tile = 1;
    uint32_t from = 0x65000, to = 0x60000, words = 1, first[] = {0, 1};
    const struct fabric_expect e = {.n_transfers = 1, .n_receivers = 1, .source = &source,
        .source_address = &from, .words = &words, .first = first, .tile = &tile, .address = &to};
    fabric_expect_check(f, &e, &r);
    g_assert_cmpuint(r.count[FABRIC_S4_EXPECTED], ==, 1);
    g_assert_cmpuint(r.count[FABRIC_H6], ==, 1);
    g_assert_cmpuint(r.count[FABRIC_C4], ==, 1);
    g_assert_false(r.ok);
    covered[FABRIC_S4_EXPECTED] = true;
    fabric_free(f);
}

/* C5: patches may change addresses, must change all that differ, and nothing else. */
static void test_patches(void) {
    const uint32_t stored[] = {SEND(4, 0, 3), PICP(.n = 4, .item_address = 4, .sctl = 3, .mux = 7),
                               PTR(3, 0), RETURN};
    uint32_t wanted[5];
    memcpy(wanted, stored, sizeof stored);
    wanted[0] = SEND(4, 0x65000, 3);
    wanted[2] |= 0x18000;
    wanted[3] = PTR(3, 0x61000);
    const uint32_t offsets[] = {0, 2, 3}, values[] = {wanted[0], wanted[2], wanted[3]};
    struct fabric_patches p = {.stored = stored, .wanted = wanted, .offsets = offsets, .values = values,
                               .n_words = 5, .n_patches = 3, .tile = 9, .row_address = 0x70000};
    struct fabric_fault fault;
    g_assert_true(fabric_patches_check(&p, &fault));
    p.n_patches = 2; /* one word stays unpatched */
    g_assert_false(fabric_patches_check(&p, &fault));
    g_assert_cmpuint(fault.what, ==, FABRIC_C5);
    g_assert_cmphex(fault.address, ==, 0x7000c);
    p.n_patches = 3;
    wanted[2] ^= 1u << 18; /* the payload's mux is no address */
    const uint32_t changed[] = {wanted[0], wanted[2], wanted[3]};
    p.values = changed;
    g_assert_false(fabric_patches_check(&p, &fault));
    g_assert_cmphex(fault.address, ==, 0x70008);
    g_assert_cmpuint(fault.tile, ==, 9);
    covered[FABRIC_C5] = true;
}

static void mark_vectors(void) {
    char *path = g_build_filename(g_getenv("IPU_SOURCE"), "tests/data/exchange/vectors.txt", NULL);
    char *text;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    for (uint32_t k = 0; k < FABRIC_N_FAULTS; k++) {
        char *line = g_strdup_printf("\nflag %s ", fabric_conditions[k].id);
        covered[k] |= strstr(text, line) != NULL;
        g_free(line);
    }
    g_free(text);
    g_free(path);
}

static void test_complete(void) {
    test_cases();
    test_expected_unheard();
    test_patches();
    mark_vectors();
    covered[FABRIC_H3] = true; /* test_fabric_order */
    for (uint32_t k = 0; k < FABRIC_N_FAULTS; k++) {
        if (fabric_conditions[k].class == 'N') continue;
        if (!covered[k]) g_test_message("%s has no case", fabric_conditions[k].id);
        g_assert_true(covered[k]);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fabric/conditions/cases", test_cases);
    g_test_add_func("/fabric/conditions/good", test_good);
    g_test_add_func("/fabric/conditions/expected-unheard", test_expected_unheard);
    g_test_add_func("/fabric/conditions/patches", test_patches);
    g_test_add_func("/fabric/conditions/complete", test_complete);
    return g_test_run();
}
