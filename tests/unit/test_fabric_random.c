/* The random phases F1 and F3 of exchange 11.3, composed by the text of 12.2 and 12.3: horizon, words
 * and checksum as published, and executed by the fabric with every delivery right. */
#include "../fabric_compose.h"
#include "../fabric_help.h"

enum { N_TILES = 40 };

static uint32_t lcg;
static uint32_t draw(uint32_t m) {
    lcg = lcg * 1664525u + 1013904223u;
    return (lcg >> 8) % m;
}

struct published {
    const char *name;
    uint32_t seed, n, mixed, kept, horizon, words, crc; /* crc 0: a further phase */
    bool loopback; /* half of the messages also go to their sender */
};

/* Adds the sender, or its pair, to the receivers, unless such a message never fits (12.3). */
static void add_loopback(struct comp_message *m) {
    const uint32_t own = m->source & ~1u, row = target_row(comp_phys(own));
    if (m->n >= 27 && m->n <= 29) return;
    if (m->paired && (m->n == 51 + 2 * row || m->n == 53 + 2 * row)) return;
    if (!m->paired) {
        m->to[m->n_to++] = m->source;
        return;
    }
    m->to[m->n_to++] = own;
    m->to[m->n_to++] = own + 1;
}

/* Draws one transfer; false when it is skipped. */
static bool draw_message(const struct published *f, uint32_t *next, struct comp_message *m) {
    const bool mixed = f->mixed != 0;
    *m = (struct comp_message){.source = draw(N_TILES), .n = 1 + draw(120)};
    if (mixed && draw(3) == 0) {
        m->paired = true;
        m->n = 64 + draw(60);
        for (uint32_t c = 1 + draw(2); c > 0; c--) {
            const uint32_t p = draw(N_TILES / 2);
            bool known = p == m->source / 2;
            for (uint32_t k = 0; k < m->n_to; k++) known |= m->to[k] == 2 * p;
            if (known) continue;
            m->to[m->n_to++] = 2 * p;
            m->to[m->n_to++] = 2 * p + 1;
        }
        for (uint32_t k = 0; k < m->n_to; k += 2) {
            const uint32_t row = target_row(comp_phys(m->to[k]));
            if (m->n == 51 + 2 * row || m->n == 53 + 2 * row) {
                m->n = 150;
                break;
            }
        }
    } else {
        for (uint32_t c = 1 + draw(4); c > 0; c--) {
            const uint32_t t = draw(N_TILES);
            bool known = t == m->source;
            for (uint32_t k = 0; k < m->n_to; k++) known |= m->to[k] == t;
            if (!known) m->to[m->n_to++] = t;
        }
    }
    if (m->n_to == 0) return false;
    if (f->loopback && draw(2) != 0) add_loopback(m);
    for (uint32_t k = 0; k < m->n_to; k++) {
        uint32_t *at = &next[m->to[k]];
        if (draw(2) != 0) *at += 64;
        *at = align_up_u32(*at, 8);
        m->at[k] = *at;
        *at += m->n * (m->paired ? 8 : 4);
    }
    m->address = 0x50000 + 8 * draw(1000);
    return true;
}

static uint32_t crc_rows(const struct comp_tile *tiles) {
    uint32_t crc = ~0u;
    for (uint32_t t = 0; t < N_TILES; t++)
        for (uint32_t w = 0; tiles[t].listed && w < tiles[t].n_words; w++)
            for (uint32_t b = 0; b < 32; b++) {
                const uint32_t bit = (tiles[t].words[w] >> b ^ crc) & 1;
                crc = crc >> 1 ^ (bit != 0 ? 0xedb88320u : 0);
            }
    return ~crc;
}

static void test_random(gconstpointer data) {
    const struct published *f = data;
    struct comp_tile tiles[N_TILES];
    uint32_t next[N_TILES], words = 0;
    memset(tiles, 0, sizeof tiles);
    for (uint32_t t = 0; t < N_TILES; t++) next[t] = 0x90000;
    struct fabric_expect e = {.source = g_new(uint16_t, f->n), .source_address = g_new(uint32_t, f->n),
        .words = g_new(uint32_t, f->n), .first = g_new0(uint32_t, f->n + 1),
        .tile = g_new(uint16_t, 6 * f->n), .address = g_new(uint32_t, 6 * f->n)};
    lcg = f->seed;
    for (uint32_t k = 0; k < f->n; k++) {
        struct comp_message m;
        if (!draw_message(f, next, &m)) continue;
        comp_append(tiles, &m, 0, true);
        comp_expect_add(&e, &m);
    }
    struct fabric_tile rows[N_TILES];
    struct fabric_result r;
    const uint32_t n = comp_tiles(tiles, N_TILES, rows);
    struct fabric *fabric = fabric_new();
    fabric_phase_run(fabric, &(struct fabric_phase){.tiles = rows, .n_tiles = n}, &r);
    fabric_expect_check(fabric, &e, &r);
    for (uint32_t t = 0; t < N_TILES; t++) words += tiles[t].listed ? tiles[t].n_words : 0;
    g_assert_true(r.ok); /* sources below 0x58000, destinations from 0x90000: no element is shared */
    g_assert_cmpuint(r.n_warnings, ==, 0);
    g_assert_cmpuint(r.n_deliveries, ==, e.n_receivers);
    if (f->crc != 0) {
        g_assert_cmpuint(e.n_transfers, ==, f->kept);
        g_assert_cmpuint(r.horizon, ==, f->horizon);
        g_assert_cmpuint(words, ==, f->words);
        g_assert_cmphex(crc_rows(tiles), ==, f->crc);
    }
    struct sram *fast = help_sources(&e), *slow = help_sources(&e);
    fabric_phase_run(fabric, &(struct fabric_phase){.sram = fast, .tiles = rows, .n_tiles = n}, &r);
    g_assert_true(r.ok);
    g_assert_true(slow_run(rows, n, slow));
    const struct help_case c = {.tiles = rows, .n = n};
    g_assert_cmpuint(help_differences(fast, slow, &c), ==, 0);
    sram_free(fast);
    sram_free(slow);
    fabric_expect_clear(&e);
    fabric_free(fabric);
    for (uint32_t t = 0; t < N_TILES; t++) comp_release(&tiles[t]);
}

static const struct published phases[] = {
    {"F1", 1, 150, 0, 148, 2443, 1281, 0xaaada4b4, false},
    {"F3", 11, 120, 1, 119, 3383, 1338, 0x698cacba, false},
    {.name = "seed-21", .seed = 21, .n = 120, .mixed = 1}, {.name = "seed-22", .seed = 22, .n = 120},
    {.name = "loop-23", .seed = 23, .n = 120, .mixed = 1, .loopback = true},
    {.name = "loop-24", .seed = 24, .n = 120, .mixed = 1, .loopback = true},
    {.name = "loop-25", .seed = 25, .n = 150, .loopback = true},
};

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < ARRAY_LEN(phases); i++) {
        char *path = g_strdup_printf("/fabric/random/%s", phases[i].name);
        g_test_add_data_func(path, &phases[i], test_random);
        g_free(path);
    }
    return g_test_run();
}
