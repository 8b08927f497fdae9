/* Damaged phases of every kind: ordinary, multicast, loopback, paired, with a format that stays on, with
 * borrowed lanes, mixed; half of them with base registers. What really happens is found out slot by slot
 * with contents and with conditions that a slot shows by itself (fabric_slow.h). Properties:
 *   - an undamaged phase is accepted;
 *   - an accepted one has put exactly the wanted words into exactly the wanted places, and slot by slot
 *     no condition is broken;
 *   - with faults counted instead of refused, the fabric moves the same words as slot by slot. */
#include "../fabric_damage.h"

#ifndef PHASES
#define PHASES 12 /* of each family */
#define DAMAGED 40 /* of each phase */
#endif

struct trial {
    struct damage_phase *p;
    struct fabric *f;
    struct sram *want;
    const char *damage[2];
    uint32_t n_harmless, n_caught, n_compared;
};

static void report_rows(const char *name, const struct damage_rows *r) {
    for (uint32_t i = 0; i < r->n; i++) {
        GString *text = g_string_new(NULL);
        for (uint32_t k = 0; k < r->tile[i].n_words; k++) g_string_append_printf(text, " %08x", r->words[i][k]);
        g_test_message("%s: tile %u (physical %u) bases 0x%x 0x%x:%s", name, r->tile[i].tile,
                       comp_phys(r->tile[i].tile).n, r->tile[i].csr.incoming_base,
                       r->tile[i].csr.outgoing_base, text->str);
        g_string_free(text, TRUE);
    }
}

static void report(struct trial *q, const struct damage_rows *bad, const struct fabric_result *r,
                   const char *wrong) {
    g_test_message("damage: %s, %s; slot by slot: %s", q->damage[0], q->damage[1], wrong);
    report_rows("good", &q->p->good);
    report_rows("bad", bad);
    for (uint32_t k = 0; k < MIN(r->n_errors + r->n_warnings, 20u); k++) {
        char *fault = fabric_fault_text(&r->faults[k]);
        g_test_message("%s", fault);
        g_free(fault);
    }
}

/* Whether the counted run must agree with the slow one: nothing had to be left out, and nothing depends
 * on what muxes that are set before slot 0 would select (exchange 10.1 demands neutral ones). */
static bool comparable(const struct fabric_result *r) {
    static const enum fabric_fault_index lossy[] = {FABRIC_R1, FABRIC_R3, FABRIC_R14, FABRIC_R11,
        FABRIC_S2, FABRIC_S3, FABRIC_P3, FABRIC_P6, FABRIC_ENTRY};
    for (size_t i = 0; i < ARRAY_LEN(lossy); i++)
        if (r->count[lossy[i]] > 0) return false;
    return true;
}

static void try_rows(struct trial *q, struct damage_rows *bad) {
    struct damage_phase *p = q->p;
    struct fabric_tile tiles[DAMAGE_TILES];
    uint32_t m[DAMAGE_TILES][16];
    const uint32_t n = damage_tiles(bad, tiles, m);
    const struct help_case all = {.tiles = p->good.tile, .n = p->good.n};
    struct sram *slow = help_sources(&p->expect), *fast = help_sources(&p->expect);
    GString *wrong = g_string_new(NULL);
    const bool inside = slow_judge(tiles, n, slow, wrong);
    const bool right = inside && wrong->len == 0 && help_differences(slow, q->want, &all) == 0;
    struct fabric_result r;
    const bool accepted = damage_accepted(q->f, bad, &p->expect, fast, &r);
    const bool undamaged = bad == &p->good;
    if (accepted != right && (accepted || undamaged)) report(q, bad, &r, wrong->str);
    if (undamaged) g_assert_true(accepted);
    g_assert_true(right || !accepted);
    q->n_harmless += accepted;
    q->n_caught += !accepted;
    if (!accepted && inside) {
        sram_free(fast);
        fast = help_sources(&p->expect);
        damage_tiles(bad, tiles, m);
        fabric_phase_run(q->f, &(struct fabric_phase){.sram = fast, .tiles = tiles, .n_tiles = n,
                                                      .flags = FABRIC_PERMISSIVE}, &r);
    }
    if (inside && comparable(&r)) {
        const uint32_t differ = help_differences(slow, fast, &all);
        if (differ > 0) report(q, bad, &r, wrong->str);
        g_assert_cmpuint(differ, ==, 0);
        q->n_compared++;
    }
    g_string_free(wrong, TRUE);
    sram_free(slow);
    sram_free(fast);
}

static void try_damage(struct trial *q) {
    struct damage_rows bad = damage_copy(&q->p->good);
    q->damage[0] = damage_names[damage_do(&bad)];
    q->damage[1] = bad.n > 0 && damage_draw(4) == 0 ? damage_names[damage_do(&bad)] : "nothing else";
    try_rows(q, &bad);
    damage_release(&bad);
}

static void test_family(gconstpointer name) {
    enum damage_family family = 0;
    while (strcmp(damage_families[family], name) != 0) family++;
    struct trial q = {.f = fabric_new(), .damage = {"nothing", "nothing"}};
    for (uint32_t k = 0; k < PHASES; k++) {
        q.p = damage_new(family, q.f);
        q.want = help_wanted(&q.p->expect);
        try_rows(&q, &q.p->good);
        for (uint32_t j = 0; j < DAMAGED; j++) try_damage(&q);
        sram_free(q.want);
        damage_free(q.p);
    }
    g_test_message("%s: %u harmless, %u caught; %u runs compared with slot by slot", (const char *)name,
                   q.n_harmless, q.n_caught, q.n_compared);
    g_assert_cmpuint(q.n_caught, >, q.n_harmless);
    fabric_free(q.f);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    par_set_threads(1); /* phases of ten tiles: many threads only wait for each other */
    for (size_t i = 0; i < N_FAMILIES; i++) {
        char *path = g_strdup_printf("/fabric/damage/%s", damage_families[i]);
        g_test_add_data_func(path, damage_families[i], test_family);
        g_free(path);
    }
    return g_test_run();
}
