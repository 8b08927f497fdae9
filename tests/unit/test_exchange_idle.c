/* Neutrals in front of idle buses: relaxed rows leave them out when nothing passes there, but not when
 * anything does: another message of the sender in either direction, or the partner with both lanes.
 * Rows by the composer's rules have them always. */
#include "exchange/exch.h"
#include "fabric/fabric.h"
#include "isa/isa_exch.h"

#include <string.h>

enum { RECEIVER = 40, FIRST = 8, SECOND = 20 };

/* Tile RECEIVER takes 20 words from FIRST, then 20 from SECOND, which is busy until slot 1,200 with a message
 * to another tile. `extra`: what FIRST or its partner does meanwhile. */
enum extra { NOTHING, FIRST_SENDS, PARTNER_SENDS, PARTNER_PAIRED };
static struct exch_problem *problem(enum extra extra) {
    struct exch_problem *p = exch_problem_new(extra == NOTHING ? 3 : 4, 3 + (extra == PARTNER_PAIRED ? 2 : extra != NOTHING));
    static const uint16_t to[] = {RECEIVER, 60, RECEIVER, 100, 101};
    const uint16_t from[] = {FIRST, SECOND, SECOND, extra == FIRST_SENDS ? FIRST : FIRST + 1};
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        p->source_tile[x] = from[x];
        p->source_address[x] = 0x50000 + 0x2000 * x;
        p->words[x] = x == 0 || x == 2 ? 20 : x == 1 ? 1200 : 400;
        p->first_recipient[x + 1] = x == 3 ? p->n_recipients : x + 1;
    }
    for (uint32_t r = 0; r < p->n_recipients; r++) {
        p->recipient_tile[r] = to[r];
        p->recipient_address[r] = 0x90000 + 0x1000 * r;
    }
    exch_problem_add_dependencies(p, extra == NOTHING ? 1 : 2);
    for (uint32_t x = 2; x < p->n_transfers; x++) p->first_dependency[x + 1] = x - 1;
    p->dependency[0] = 1; /* transfer 2 behind 1 */
    if (extra != NOTHING) p->dependency[1] = 0; /* transfer 3 behind 0 */
    exch_problem_add_widths(p);
    for (uint32_t x = 0; x < p->n_transfers; x++) p->width[x] = EXCH_WIDTH_ORDINARY;
    if (extra == PARTNER_PAIRED) p->width[3] = EXCH_WIDTH_PAIRED;
    return p;
}

static uint32_t neutrals(const struct exch_result *r, uint32_t tile) {
    uint32_t n = 0;
    for (uint32_t at = r->first_word[tile]; at < r->first_word[tile + 1];) {
        const struct isa_exch x = isa_exch_decode(r->words + at, r->first_word[tile + 1] - at);
        const bool mux = (x.kind == ISA_EXCH_DELAYXPIC && x.sel == ISA_XPIC_MUX) ||
                         (x.kind == ISA_EXCH_SENDPIC && x.sel == ISA_CSEL_MUX);
        n += (mux && x.value == TARGET_EXCH_MUX_NEUTRAL) ||
             (x.kind == ISA_EXCH_SENDPICP && x.mux == TARGET_EXCH_MUX_NEUTRAL);
        at += x.n_words;
    }
    return n;
}

static void check_rows(enum extra extra, bool relaxed, uint32_t want) {
    struct exch_problem *p = problem(extra);
    GError *error = NULL;
    g_assert_true(exch_problem_check(p, &error));
    struct exch_result *r = exch_schedule(p, &(struct exch_options){.relaxed = relaxed}, &error);
    g_assert_no_error(error);
    g_assert_true(exch_rows_check(p, r, &error));
    g_assert_no_error(error);
    g_assert_cmpuint(neutrals(r, RECEIVER), ==, want);
    struct fabric_tile tiles[8];
    uint32_t n = 0;
    for (uint32_t t = 0; t < r->n_tiles; t++)
        if (r->active[t])
            tiles[n++] = (struct fabric_tile){.tile = (uint16_t)t, .words = r->words + r->first_word[t],
                .n_words = r->first_word[t + 1] - r->first_word[t], .csr = fabric_csr_initial()};
    struct fabric *f = fabric_new();
    struct fabric_result result;
    const struct fabric_expect e = {.n_transfers = p->n_transfers, .n_receivers = p->n_recipients,
        .source = p->source_tile, .source_address = p->source_address, .words = p->words,
        .first = p->first_recipient, .tile = p->recipient_tile, .address = p->recipient_address};
    fabric_phase_run(f, &(struct fabric_phase){.tiles = tiles, .n_tiles = n}, &result);
    fabric_expect_check(f, &e, &result);
    g_assert_true(result.ok);
    g_assert_cmpuint(result.count[FABRIC_M1], ==, 2 - want); /* an idle bus is seen, and no fault */
    fabric_free(f);
    exch_result_free(r);
    exch_problem_free(p);
}

static void check(enum extra extra, uint32_t want_relaxed) {
    check_rows(extra, false, 2);
    check_rows(extra, true, want_relaxed);
}

static void test_idle(void) {
    check(NOTHING, 1); /* only the one at the end */
    check(PARTNER_SENDS, 1); /* on its own lane: not this bus */
}
static void test_busy(void) {
    check(FIRST_SENDS, 2);
    check(PARTNER_PAIRED, 2);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange/idle/idle", test_idle);
    g_test_add_func("/exchange/idle/busy", test_busy);
    return g_test_run();
}
