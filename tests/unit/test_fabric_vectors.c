/* The vectors of exchange 11 (tests/data/exchange/vectors.txt): rows executed, deliveries and the
 * reported conditions compared word for word. */
#include "fabric/fabric.h"

#include <string.h>

struct vector {
    char *name;
    GArray *tiles;      /* struct fabric_tile; words owned by `rows` */
    GPtrArray *rows;    /* uint32_t arrays */
    GArray *slots;      /* int64_t, -1 = not checked */
    GPtrArray *wanted;  /* lines of delivery, expect and flag, split */
    bool any_address;
};

static uint32_t hex(const char *s) { return (uint32_t)g_ascii_strtoull(s, NULL, 16); }
static uint32_t dec(const char *s) { return (uint32_t)g_ascii_strtoull(s, NULL, 10); }

static void add_row(struct vector *v, char **f) {
    struct fabric_tile t = {.tile = (uint16_t)dec(f[1]), .csr = fabric_csr_initial()};
    const int64_t slots = strcmp(f[2], "-") == 0 ? -1 : (int64_t)dec(f[2]);
    uint32_t k = 3;
    for (; strcmp(f[k], ":") != 0; k++) {
        if (strcmp(f[k], "sync") == 0) t.sync_in_row = true;
        if (g_str_has_prefix(f[k], "at=")) t.row_address = hex(f[k] + 3);
        if (g_str_has_prefix(f[k], "base=")) t.csr.incoming_base = hex(f[k] + 5);
        if (g_str_has_prefix(f[k], "out=")) t.csr.outgoing_base = hex(f[k] + 4);
    }
    const uint32_t n = g_strv_length(f) - k - 1;
    uint32_t *words = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++) words[i] = hex(f[k + 1 + i]);
    t.words = words;
    t.n_words = n;
    g_ptr_array_add(v->rows, words);
    g_array_append_val(v->tiles, t);
    g_array_append_val(v->slots, slots);
}

static void free_vector(gpointer data) {
    struct vector *v = data;
    g_free(v->name);
    g_array_free(v->tiles, TRUE);
    g_array_free(v->slots, TRUE);
    g_ptr_array_free(v->rows, TRUE);
    g_ptr_array_free(v->wanted, TRUE);
    g_free(v);
}

static GPtrArray *read_vectors(void) {
    char *path = g_build_filename(g_getenv("IPU_SOURCE"), "tests/data/exchange/vectors.txt", NULL);
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    GPtrArray *all = g_ptr_array_new_with_free_func(free_vector);
    char **lines = g_strsplit(text, "\n", -1);
    struct vector *v = NULL;
    for (uint32_t i = 0; lines[i] != NULL; i++) {
        if (lines[i][0] == '#' || lines[i][0] == 0) continue;
        char **f = g_strsplit(lines[i], " ", -1);
        if (strcmp(f[0], "case") == 0) {
            v = g_new0(struct vector, 1);
            v->name = g_strdup(f[1]);
            v->any_address = f[2] != NULL;
            v->tiles = g_array_new(FALSE, TRUE, sizeof(struct fabric_tile));
            v->slots = g_array_new(FALSE, FALSE, sizeof(int64_t));
            v->rows = g_ptr_array_new_with_free_func(g_free);
            v->wanted = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
            g_ptr_array_add(all, v);
            g_strfreev(f);
        } else if (strcmp(f[0], "row") == 0) {
            add_row(v, f);
            g_strfreev(f);
        } else {
            g_ptr_array_add(v->wanted, f);
        }
    }
    g_strfreev(lines);
    g_free(text);
    g_free(path);
    return all;
}

/* The lines of one word of v->wanted as a list of transfers. */
static struct fabric_expect expect_of(const struct vector *v) {
    struct fabric_expect e = {.source = g_new(uint16_t, v->wanted->len + 1),
        .source_address = g_new(uint32_t, v->wanted->len + 1),
        .words = g_new(uint32_t, v->wanted->len + 1), .first = g_new0(uint32_t, v->wanted->len + 1),
        .tile = g_new(uint16_t, v->wanted->len + 1), .address = g_new(uint32_t, v->wanted->len + 1)};
    for (uint32_t i = 0; i < v->wanted->len; i++) {
        char **f = v->wanted->pdata[i];
        if (strcmp(f[0], "expect") != 0) continue;
        const uint32_t x = e.n_transfers++;
        e.source[x] = (uint16_t)dec(f[1]);
        e.source_address[x] = hex(f[2]);
        e.words[x] = dec(f[5]);
        e.tile[x] = (uint16_t)dec(f[3]);
        e.address[x] = hex(f[4]);
        e.n_receivers = e.first[x + 1] = x + 1;
    }
    return e;
}

/* Deliveries of all tiles against the delivery lines: each is there, and none besides. */
static void check_deliveries(const struct vector *v, const struct fabric *f) {
    uint32_t wanted = 0, found = 0;
    for (uint32_t t = 0; t < v->tiles->len; t++) {
        uint32_t n;
        fabric_deliveries(f, g_array_index(v->tiles, struct fabric_tile, t).tile, &n);
        found += n;
    }
    for (uint32_t i = 0; i < v->wanted->len; i++) {
        char **w = v->wanted->pdata[i];
        if (strcmp(w[0], "delivery") != 0) continue;
        wanted++;
        uint32_t n, hits = 0;
        const struct fabric_delivery *d = fabric_deliveries(f, dec(w[3]), &n);
        for (uint32_t k = 0; k < n; k++)
            hits += d[k].source_tile == dec(w[1]) && d[k].source == hex(w[2]) &&
                    d[k].destination == hex(w[4]) &&
                    d[k].items * (d[k].paired ? 2u : 1u) == dec(w[5]) && d[k].stage == dec(w[6]);
        if (hits != 1) g_test_message("%s: %u hits for delivery %s to %s", v->name, hits, w[1], w[3]);
        g_assert_cmpuint(hits, ==, 1);
    }
    if (wanted > 0) g_assert_cmpuint(found, ==, wanted);
}

static bool is_flag(char **w, const struct fabric_fault *x) {
    return strcmp(w[1], fabric_conditions[x->what].id) == 0 && dec(w[2]) == x->tile &&
           (strcmp(w[3], "-") == 0 || dec(w[3]) == x->slot) && x->error == (w[4] == NULL);
}

static void check_flags(const struct vector *v, const struct fabric_result *r) {
    uint32_t wanted_errors = 0;
    for (uint32_t i = 0; i < v->wanted->len; i++) {
        char **w = v->wanted->pdata[i];
        if (strcmp(w[0], "flag") != 0) continue;
        wanted_errors += w[4] == NULL;
        uint32_t hits = 0;
        for (uint32_t k = 0; k < r->n_errors + r->n_warnings; k++) hits += is_flag(w, &r->faults[k]);
        if (hits == 0) g_test_message("%s: %s of tile %s is not reported", v->name, w[1], w[2]);
        g_assert_cmpuint(hits, >, 0);
    }
    if (wanted_errors == 0 && r->first != NULL) {
        char *text = fabric_fault_text(r->first);
        g_test_message("%s: %s", v->name, text);
        g_free(text);
    }
    g_assert_cmpint(r->ok, ==, wanted_errors == 0);
}

static void test_vector(gconstpointer data) {
    const struct vector *v = data;
    struct fabric *f = fabric_new();
    struct fabric_result r;
    const struct fabric_phase phase = {.tiles = (struct fabric_tile *)(void *)v->tiles->data,
        .n_tiles = v->tiles->len, .flags = v->any_address ? FABRIC_ANY_ADDRESS : 0};
    fabric_phase_run(f, &phase, &r);
    check_deliveries(v, f);
    struct fabric_expect e = expect_of(v);
    if (e.n_transfers > 0) fabric_expect_check(f, &e, &r);
    check_flags(v, &r);
    fabric_expect_clear(&e);
    fabric_free(f);
}

static void test_slots(gconstpointer data) {
    const struct vector *v = data;
    struct fabric *f = fabric_new();
    for (uint32_t i = 0; i < v->tiles->len; i++) { /* each row alone: its length needs no other */
        struct fabric_tile t = g_array_index(v->tiles, struct fabric_tile, i);
        const int64_t slots = g_array_index(v->slots, int64_t, i);
        struct fabric_result r;
        t.csr = fabric_csr_initial();
        fabric_phase_run(f, &(struct fabric_phase){.tiles = &t, .n_tiles = 1}, &r);
        if (slots >= 0) g_assert_cmpint(t.slots, ==, slots);
        g_assert_cmpuint(r.horizon, ==, t.slots);
    }
    fabric_free(f);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    GPtrArray *all = read_vectors();
    for (uint32_t i = 0; i < all->len; i++) {
        struct vector *v = all->pdata[i];
        char *name = g_strdup_printf("/fabric/vectors/%s", v->name);
        char *slots = g_strdup_printf("/fabric/slots/%s", v->name);
        g_test_add_data_func(slots, v, test_slots);
        g_test_add_data_func(name, v, test_vector);
        g_free(name);
        g_free(slots);
    }
    const int failed = g_test_run();
    g_ptr_array_free(all, TRUE);
    return failed;
}
