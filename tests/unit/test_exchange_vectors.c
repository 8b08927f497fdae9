/* The published vectors: topology-free composed rows (exchange 11.2), random phases F1 and F3
 * (11.3), the base switch C23, check values of the synthetic kinds (16.4), messages that never fit
 * (12.3). */
#include "exchange/exch_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vector {
    const char *name, *transfers, *rows;
};
static const struct vector vectors[] = {
#include "../data/exchange_vectors.def"
};

/* A problem from "source address n form tile address ...; ..."; widths in *ret_paired. */
static struct exch_problem *parse(const char *text, uint8_t **ret_paired) {
    char **lines = g_strsplit(text, ";", -1);
    const uint32_t n = g_strv_length(lines);
    struct exch_problem *p = exch_problem_new(n, 4096);
    *ret_paired = g_new0(uint8_t, n + 1);
    p->unplaced = true;
    uint32_t r = 0;
    for (uint32_t x = 0; x < n; x++) {
        char *at = lines[x], form[2];
        unsigned tile, address, count;
        int used;
        g_assert_cmpint(sscanf(at, "%u %x %u %1s%n", &tile, &address, &count, form, &used), ==, 4);
        (*ret_paired)[x] = form[0] == 'p';
        p->source_tile[x] = (uint16_t)tile;
        p->source_address[x] = address;
        p->words[x] = form[0] == 'p' ? 2 * count : count;
        p->first_recipient[x] = r;
        for (at += used; sscanf(at, "%u %x%n", &tile, &address, &used) == 2; at += used, r++) {
            p->recipient_tile[r] = (uint16_t)tile;
            p->recipient_address[r] = address;
        }
    }
    p->first_recipient[n] = p->n_recipients = r;
    g_strfreev(lines);
    return p;
}

static void compare_rows(const struct vector *v, const uint32_t *words, const uint32_t *first) {
    char **rows = g_strsplit(v->rows, ";", -1);
    uint32_t n_active = 0;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) n_active += first[t + 1] > first[t];
    g_assert_cmpuint(n_active, ==, g_strv_length(rows));
    for (uint32_t i = 0; rows[i] != NULL; i++) {
        unsigned tile, horizon;
        int used;
        char *at = rows[i];
        g_assert_cmpint(sscanf(at, "%u %u%n", &tile, &horizon, &used), ==, 2);
        uint32_t k = first[tile];
        unsigned word;
        for (at += used; sscanf(at, "%x%n", &word, &used) == 1; at += used, k++) {
            if (words[k] != word)
                g_test_message("%s tile %u word %u", v->name, tile, k - first[tile]);
            g_assert_cmphex(words[k], ==, word);
        }
        g_assert_cmpuint(k, ==, first[tile + 1]);
    }
    g_strfreev(rows);
}

static void test_composed(void) {
    for (size_t i = 0; i < G_N_ELEMENTS(vectors); i++) {
        uint8_t *paired;
        struct exch_problem *p = parse(vectors[i].transfers, &paired);
        struct exch_msgs *m = exch_msgs_new(p, paired, NULL);
        GArray *words = g_array_new(FALSE, FALSE, 4);
        uint32_t first[TARGET_N_TILES + 1];
        exch_append_all(m, words, first, NULL);
        compare_rows(&vectors[i], (uint32_t *)words->data, first);
        g_array_free(words, TRUE);
        exch_msgs_free(m);
        exch_problem_free(p);
        g_free(paired);
    }
}

/* --- F1, F3 (11.3) --- */

struct lcg {
    uint32_t x;
};
static uint32_t draw(struct lcg *g, uint32_t m) {
    g->x = g->x * 1664525u + 1013904223u;
    return (g->x >> 8) % m;
}

enum { T = 40 };

static void addresses(struct lcg *g, struct exch_problem *p, uint32_t x, uint32_t size, uint32_t n,
                      uint32_t *next) {
    for (uint32_t r = p->first_recipient[x]; r < p->n_recipients; r++) {
        const uint32_t t = p->recipient_tile[r];
        if (draw(g, 2) != 0) next[t] += 64;
        next[t] = align_up_u32(next[t], 8);
        p->recipient_address[r] = next[t];
        next[t] += n * size;
    }
    p->source_address[x] = 0x50000 + 8 * draw(g, 1000);
    p->words[x] = n * size / 4;
}

static bool is_new(const struct exch_problem *p, uint32_t x, uint32_t t) {
    for (uint32_t r = p->first_recipient[x]; r < p->n_recipients; r++)
        if (p->recipient_tile[r] == t) return false;
    return true;
}

static struct exch_problem *random_phase(uint32_t seed, uint32_t n_draws, bool mixed,
                                         uint8_t *paired) {
    struct lcg g = {seed};
    struct exch_problem *p = exch_problem_new(n_draws, 8 * n_draws);
    uint32_t next[T], x = 0;
    for (uint32_t t = 0; t < T; t++) next[t] = 0x90000;
    p->n_recipients = 0;
    p->unplaced = true;
    for (uint32_t k = 0; k < n_draws; k++) {
        const uint32_t src = draw(&g, T);
        uint32_t n = 1 + draw(&g, 120);
        p->source_tile[x] = (uint16_t)src;
        p->first_recipient[x] = p->n_recipients;
        paired[x] = mixed && draw(&g, 3) == 0;
        if (paired[x]) n = 64 + draw(&g, 60);
        const uint32_t c = 1 + draw(&g, paired[x] ? 2 : 4);
        for (uint32_t i = 0; i < c; i++) {
            const uint32_t t = draw(&g, paired[x] ? T / 2 : T);
            const uint32_t tile = paired[x] ? 2 * t : t;
            if ((paired[x] ? t == src / 2 : t == src) || !is_new(p, x, tile)) continue;
            p->recipient_tile[p->n_recipients++] = (uint16_t)tile;
            if (paired[x]) p->recipient_tile[p->n_recipients++] = (uint16_t)(tile + 1);
        }
        if (p->n_recipients == p->first_recipient[x]) continue;
        for (uint32_t r = p->first_recipient[x]; r < p->n_recipients && paired[x]; r++) {
            const uint32_t two_r = 2u * exch_route()->row[p->recipient_tile[r] & ~1];
            if (n == 51 + two_r || n == 53 + two_r) n = 150;
        }
        addresses(&g, p, x, paired[x] ? 8 : 4, n, next);
        x++;
    }
    p->n_transfers = x;
    p->first_recipient[x] = p->n_recipients;
    return p;
}

static uint32_t crc32_words(const uint32_t *w, uint32_t n) {
    uint32_t crc = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t b = 0; b < 32; b++) {
            const uint32_t bit = (crc ^ (w[i] >> b)) & 1;
            crc = bit ? UINT32_C(0xedb88320) ^ crc >> 1 : crc >> 1;
        }
    return ~crc;
}

static void test_random_phases(void) {
    static const struct {
        uint32_t seed, n, kept, horizon, words, crc;
        bool mixed;
    } cases[] = {{1, 150, 148, 2443, 1281, 0xaaada4b4, false},
                 {11, 120, 119, 3383, 1338, 0x698cacba, true}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint8_t paired[256] = {0};
        struct exch_problem *p = random_phase(cases[i].seed, cases[i].n, cases[i].mixed, paired);
        g_assert_cmpuint(p->n_transfers, ==, cases[i].kept);
        struct exch_msgs *m = exch_msgs_new(p, paired, NULL);
        GArray *words = g_array_new(FALSE, FALSE, 4);
        uint32_t first[TARGET_N_TILES + 1];
        g_assert_cmpuint(exch_append_all(m, words, first, NULL), ==, cases[i].horizon);
        g_assert_cmpuint(words->len, ==, cases[i].words);
        g_assert_cmphex(crc32_words((uint32_t *)words->data, words->len), ==, cases[i].crc);
        g_array_free(words, TRUE);
        exch_msgs_free(m);
        exch_problem_free(p);
    }
}

static void test_base_switch(void) {
    struct exch_row_writer w = {g_array_new(FALSE, FALSE, 4),
                                g_array_new(FALSE, FALSE, sizeof(struct exch_site)), 0, false};
    const struct exch_send sends[] = {
        {.slot = 31, .items = 16, .address = 0x65000, .sctl = 1, .moving = true},
        {.slot = 47, .items = TARGET_EXCH_PUT_SLOTS},
        {.slot = 60, .items = 16, .address = 0x65000, .sctl = 1}};
    g_assert_true(exch_encode_row(&w, sends, 3, NULL, 0, 76));
    static const uint32_t expected[] = {0x40a0001e, 0x79eca001, 0x43f080a7, 0x79eca001, 0x43a00000};
    g_assert_cmpuint(w.words->len, ==, 5);
    g_assert_cmpmem(w.words->data, 20, expected, 20);
    g_array_free(w.words, TRUE);
    g_array_free(w.sites, TRUE);
}

static void test_kinds(void) {
    static const struct {
        const char *kind;
        uint32_t n, endpoints, crc;
    } cases[] = {
        {"syn-100k", 100096, 100096, 0x2b677b33},  {"syn-v34", 586368, 586368, 0x1fa86d83},
        {"syn-v34x", 586368, 586368, 0xfb5ff634},  {"syn-1m", 1172736, 1172736, 0x0a83f73c},
        {"syn-1mx", 1172736, 1172736, 0x5f9f2d5b}, {"syn-m3", 155880, 155880, 0x3d23fd98},
        {"syn-a", 60000, 60000, 0xddb668b9},       {"syn-a-gather", 60000, 60000, 0xb8b1b78f},
        {"syn-a2w", 60000, 60000, 0x552d4649},     {"syn-m0", 807, 1614, 0xae45d249},
        {"syn-h2", 5562, 118812, 0xfd7309dd},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        struct exch_problem *p = exch_generate(cases[i].kind, 1, false, NULL);
        g_assert_nonnull(p);
        g_assert_cmpuint(p->n_transfers, ==, cases[i].n);
        g_assert_cmpuint(p->n_recipients, ==, cases[i].endpoints);
        g_assert_cmphex(exch_problem_crc(p), ==, cases[i].crc);
        exch_problem_free(p);
    }
}

/* A 28-word self-multicast becomes two packets of 14. */
static void test_never_fits(void) {
    struct exch_problem *p = exch_problem_new(1, 2);
    p->source_address[0] = 0x65000;
    p->words[0] = 28;
    p->recipient_tile[1] = 2;
    p->recipient_address[0] = p->recipient_address[1] = 0x60000;
    p->first_recipient[1] = 2;
    g_assert_true(exch_problem_check(p, NULL));
    g_assert_true(exch_never_fits(p, 0, false, 28));
    struct exch_result *r = exch_schedule(p, &(struct exch_options){0}, NULL);
    g_assert_nonnull(r);
    g_assert_cmpuint(r->n_messages, ==, 2);
    g_assert_cmpuint(r->messages[0].words, ==, 14);
    g_assert_cmpuint(r->messages[1].first_word, ==, 14);
    g_assert_true(exch_rows_check(p, r, NULL));
    exch_result_free(r);
    exch_problem_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange/vectors/composed", test_composed);
    g_test_add_func("/exchange/vectors/random", test_random_phases);
    g_test_add_func("/exchange/vectors/base-switch", test_base_switch);
    g_test_add_func("/exchange/vectors/kinds", test_kinds);
    g_test_add_func("/exchange/vectors/never-fits", test_never_fits);
    return g_test_run();
}
