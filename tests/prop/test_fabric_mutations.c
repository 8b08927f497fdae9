/* Damaged rows. Good rows are changed in one place: a bit, a count, an address, a word dropped, doubled
 * or exchanged with its neighbour. What then really happens is found out slot by slot with contents
 * (fabric_help.h). Two properties:
 *   - a phase that the fabric accepts has put exactly the wanted words into exactly the wanted places, and
 *     breaks no condition that a slot shows by itself;
 *   - with faults counted instead of refused, the fabric moves the same words as slot by slot. */
#include "../fabric_help.h"

#ifndef MUTATIONS
#define MUTATIONS 8 /* of each phase */
#endif

enum mutation { FLIP_BIT, LONGER, SHORTER, MOVE_ADDRESS, DROP, DOUBLE, EXCHANGE, N_MUTATIONS };

/* Changes row i at instruction `at` (of `n`), in a copy with one spare word; returns the new length. */
static uint32_t mutate(uint32_t *w, uint32_t n, uint32_t at, enum mutation kind) {
    const struct isa_exch x = isa_exch_decode(w + at, n - at);
    const uint32_t count_unit = x.kind == ISA_EXCH_DELAY ? 1
                                : x.kind == ISA_EXCH_DELAYPIC ? 1u << 19
                                : x.kind == ISA_EXCH_DELAYXPIC ? 1u << 14 : 1u << 21;
    switch (kind) {
    case FLIP_BIT:
        w[at + (uint32_t)g_test_rand_int_range(0, (int)x.n_words)] ^= 1u << g_test_rand_int_range(0, 32);
        return n;
    case LONGER:
        w[at] += count_unit;
        return n;
    case SHORTER:
        w[at] -= count_unit;
        return n;
    case MOVE_ADDRESS:
        if (x.kind == ISA_EXCH_SENDPICP) w[at + 1] += 4;
        else w[at] += x.kind == ISA_EXCH_SEND ? 8u : 2u;
        return n;
    case DROP:
        memmove(w + at, w + at + x.n_words, (n - at - x.n_words) * 4);
        return n - x.n_words;
    case DOUBLE:
        memmove(w + at + 1, w + at, (n - at) * 4);
        return n + 1;
    default:
        if (at + 1 < n) {
            const uint32_t swap = w[at];
            w[at] = w[at + 1];
            w[at + 1] = swap;
        }
        return n;
    }
}

struct trial {
    struct help_case c;
    struct fabric *f;
    struct sram *want;
    uint32_t n_harmless, n_caught, n_compared;
};

/* Whether the counted run must agree with the slow one: nothing had to be left out. */
static bool comparable(const struct fabric_result *r) {
    static const enum fabric_fault_index lossy[] = {FABRIC_R1, FABRIC_R3, FABRIC_R14, FABRIC_R11,
        FABRIC_S2, FABRIC_S3, FABRIC_P3, FABRIC_P6};
    for (size_t i = 0; i < ARRAY_LEN(lossy); i++)
        if (r->count[lossy[i]] > 0) return false;
    return true;
}

static void report(const struct help_case *c, uint32_t i, const struct fabric_result *r) {
    GString *text = g_string_new(NULL);
    for (uint32_t k = 0; k < c->tiles[i].n_words; k++)
        g_string_append_printf(text, " %08x", c->tiles[i].words[k]);
    g_test_message("row %u of tile %u:%s", i, c->tiles[i].tile, text->str);
    for (uint32_t k = 0; k < MIN(r->n_errors + r->n_warnings, 20u); k++) {
        char *fault = fabric_fault_text(&r->faults[k]);
        g_test_message("%s", fault);
        g_free(fault);
    }
    g_string_free(text, TRUE);
}

static void try_row(struct trial *q, uint32_t i, const uint32_t *words, uint32_t n) {
    struct help_case *c = &q->c;
    struct fabric_result r;
    help_tiles(c);
    c->tiles[i].words = words;
    c->tiles[i].n_words = n;
    struct sram *slow = help_sources(&c->expect), *fast = help_sources(&c->expect);
    GString *wrong = g_string_new(NULL);
    const bool inside = slow_judge(c->tiles, c->n, slow, wrong);
    const bool right = inside && wrong->len == 0 && help_differences(slow, q->want, c) == 0;
    fabric_phase_run(q->f, &(struct fabric_phase){.tiles = c->tiles, .n_tiles = c->n}, &r);
    fabric_expect_check(q->f, &c->expect, &r);
    if (r.ok && !right) {
        g_test_message("slow fabric: %s", wrong->str);
        report(c, i, &r);
    }
    g_string_free(wrong, TRUE);
    g_assert_true(right || !r.ok);
    q->n_harmless += r.ok;
    q->n_caught += !r.ok;
    help_tiles(c);
    c->tiles[i].words = words;
    c->tiles[i].n_words = n;
    fabric_phase_run(q->f, &(struct fabric_phase){.sram = fast, .tiles = c->tiles, .n_tiles = c->n,
                                                  .flags = FABRIC_PERMISSIVE}, &r);
    if (inside && comparable(&r)) {
        const uint32_t differ = help_differences(slow, fast, c);
        if (differ > 0) report(c, i, &r);
        g_assert_cmpuint(differ, ==, 0);
        q->n_compared++;
    }
    sram_free(slow);
    sram_free(fast);
}

static void try_mutation(struct trial *q) {
    const struct help_case *c = &q->c;
    const uint32_t i = (uint32_t)g_test_rand_int_range(0, (int)c->n);
    const uint32_t n = c->rows.first[i + 1] - c->rows.first[i];
    uint32_t *words = g_new0(uint32_t, n + 2), starts[64], n_starts = 0;
    memcpy(words, c->rows.words + c->rows.first[i], n * 4);
    for (uint32_t at = 0; at < n && n_starts < ARRAY_LEN(starts);) {
        starts[n_starts++] = at;
        at += isa_exch_decode(words + at, n - at).n_words;
    }
    const uint32_t at = starts[g_test_rand_int_range(0, (int)n_starts)];
    const enum mutation kind = (enum mutation)g_test_rand_int_range(0, N_MUTATIONS);
    const uint32_t length = mutate(words, n, at, kind);
    try_row(q, i, words, length);
    g_free(words);
}

/* A mux written by sendpic has 13 bits in a field of 18: bit 13 set is no value of a mux (R5). The
 * fabric once read the 13 bits alone and accepted the row. */
static void test_wide_mux(void) {
    struct trial q = {.c = help_load("dense-1", true), .f = fabric_new()};
    q.want = help_wanted(&q.c.expect);
    uint32_t i = 0;
    while (q.c.rows.tile[i] != 545) i++;
    const uint32_t n = q.c.rows.first[i + 1] - q.c.rows.first[i];
    uint32_t *words = g_memdup2(q.c.rows.words + q.c.rows.first[i], n * 4);
    g_assert_cmphex(words[47], ==, 0x73500522);
    words[47] ^= 1u << 13;
    struct fabric_result r;
    help_tiles(&q.c);
    q.c.tiles[i].words = words;
    fabric_phase_run(q.f, &(struct fabric_phase){.tiles = q.c.tiles, .n_tiles = q.c.n}, &r);
    g_assert_cmpuint(r.count[FABRIC_R5], ==, 1);
    try_row(&q, i, words, n);
    g_assert_cmpuint(q.n_caught, ==, 1);
    g_free(words);
    sram_free(q.want);
    fabric_free(q.f);
    help_free(&q.c);
}

static void test_mutations(gconstpointer name) {
    struct trial q = {.c = help_load(name, true), .f = fabric_new()};
    q.want = help_wanted(&q.c.expect);
    for (int k = 0; k < MUTATIONS; k++) try_mutation(&q);
    g_test_message("%s: %u harmless, %u caught; %u runs compared with slot by slot", (const char *)name,
                   q.n_harmless, q.n_caught, q.n_compared);
    g_assert_cmpuint(q.n_caught, >, 0);
    sram_free(q.want);
    fabric_free(q.f);
    help_free(&q.c);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fabric/mutations/wide-mux", test_wide_mux);
    static const char *const names[] = {"uni-1", "multi-1", "dense-1", "pair-2", "pair-5", "pair-6",
        "pair-7", "pair-11", "mixed-1", "mixed-2", "mixed-3", "mixed-4", "mixed-5"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char *path = g_strdup_printf("/fabric/mutations/%s", names[i]);
        g_test_add_data_func(path, names[i], test_mutations);
        g_free(path);
    }
    return g_test_run();
}
