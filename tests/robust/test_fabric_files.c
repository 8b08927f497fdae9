/* Damaged files of rows and problems, and rows of random words: refused or executed with faults, never
 * a crash, and what is accepted is consistent. Plain and compressed files read alike. */
#include "../fabric_help.h"

#include <glib/gstdio.h>

struct file {
    char *folder, *path;
};

static struct file temporary(void) {
    struct file f = {.folder = g_dir_make_tmp("fabric-XXXXXX", NULL)};
    f.path = g_build_filename(f.folder, "file", NULL);
    return f;
}
static void discard(struct file *f) {
    g_unlink(f->path);
    g_rmdir(f->folder);
    g_free(f->path);
    g_free(f->folder);
}
static void put(const struct file *f, const void *data, size_t size) {
    g_assert_true(g_file_set_contents(f->path, data, (gssize)size, NULL));
}

static bool read_rows(const struct file *f) {
    struct fabric_rows r;
    GError *error = NULL;
    if (!fabric_rows_read(f->path, &r, &error)) {
        g_assert_nonnull(error);
        g_error_free(error);
        return false;
    }
    for (uint32_t i = 0; i < r.n_active; i++) {
        g_assert_cmpuint(r.tile[i], <, r.n_tiles);
        g_assert_cmpuint(r.first[i], <=, r.first[i + 1]);
    }
    fabric_rows_clear(&r);
    return true;
}

static void test_rows(void) {
    struct help_case c = help_load("pair-5", true);
    struct file f = temporary();
    char *bytes;
    gsize size;
    g_assert_true(fabric_rows_write(f.path, &c.rows, NULL));
    g_assert_true(g_file_get_contents(f.path, &bytes, &size, NULL));
    GArray *w = g_array_new(FALSE, FALSE, 4);
    g_array_append_vals(w, bytes, (guint)size / 4);
    g_free(bytes);
    struct fabric_rows again;
    g_assert_true(fabric_rows_read(f.path, &again, NULL));
    g_assert_cmpuint(again.n_active, ==, c.rows.n_active);
    g_assert_cmpmem(again.words, again.first[again.n_active] * 4, c.rows.words,
                    c.rows.first[c.rows.n_active] * 4);
    fabric_rows_clear(&again);
    for (uint32_t k = 0; k < 200; k++) { /* cut anywhere: refused */
        put(&f, w->data, (size_t)g_test_rand_int_range(0, (int)w->len * 4));
        g_assert_false(read_rows(&f));
    }
    for (uint32_t k = 0; k < 200; k++) {
        uint32_t *at = &g_array_index(w, uint32_t, (uint32_t)g_test_rand_int_range(0, (int)w->len));
        const uint32_t old = *at;
        *at ^= 1u << g_test_rand_int_range(0, 32);
        put(&f, w->data, w->len * 4);
        read_rows(&f);
        *at = old;
    }
    g_array_free(w, TRUE);
    discard(&f);
    help_free(&c);
}

static void test_compressed(void) {
    char *path = help_path("pair-5", "rows"), *data;
    gsize size;
    struct file f = temporary();
    g_assert_true(g_file_get_contents(path, &data, &size, NULL));
    for (uint32_t k = 0; k < 200; k++) {
        put(&f, data, (size_t)g_test_rand_int_range(0, (int)size));
        g_assert_false(read_rows(&f));
    }
    for (uint32_t k = 0; k < 200; k++) {
        char *at = &data[g_test_rand_int_range(0, (int)size)];
        const char old = *at;
        *at = (char)(*at ^ 1 << g_test_rand_int_range(0, 8));
        put(&f, data, size);
        read_rows(&f);
        *at = old;
    }
    g_free(data);
    g_free(path);
    discard(&f);
}

static void test_problems(void) {
    static const char *const bad[] = {
        "", "[]", "{}", "{\"schema_version\": 3, \"phases\": []}", "{\"schema_version\": 4}",
        "{\"schema_version\": 4, \"phases\": [{\"phase\": 0}]}",
        "{\"schema_version\": 4, \"phases\": [{\"phase\": 0, \"transfers\": [1]}]}"};
    static const char *const transfers[] = {
        "\"source\": 1472, \"source_addresses\": [327680], \"destinations\": [[1, 327680]], \"words\": 4",
        "\"source\": -1, \"source_addresses\": [327680], \"destinations\": [[1, 327680]], \"words\": 4",
        "\"source\": 1, \"source_addresses\": [], \"destinations\": [[1, 327680]], \"words\": 4",
        "\"source\": 1, \"source_addresses\": [327681], \"destinations\": [[1, 327680]], \"words\": 4",
        "\"source\": 1, \"source_addresses\": [950268], \"destinations\": [[1, 327680]], \"words\": 4",
        "\"source\": 1, \"source_addresses\": [327680], \"destinations\": [], \"words\": 4",
        "\"source\": 1, \"source_addresses\": [327680], \"destinations\": [[1]], \"words\": 4",
        "\"source\": 1, \"source_addresses\": [327680], \"destinations\": [[1, 327682]], \"words\": 4",
        "\"source\": 1, \"source_addresses\": [327680], \"destinations\": [[1, 327680]], \"words\": 0",
        "\"source\": 1, \"source_addresses\": [327680], \"destinations\": [[1, 327680]], \"words\": 1e9"};
    struct file f = temporary();
    struct fabric_expect e;
    for (size_t k = 0; k < ARRAY_LEN(bad) + ARRAY_LEN(transfers); k++) {
        char *text = k < ARRAY_LEN(bad) ? g_strdup(bad[k])
            : g_strdup_printf("{\"schema_version\": 4, \"phases\": [{\"phase\": 0, \"transfers\": [{%s}]}]}",
                              transfers[k - ARRAY_LEN(bad)]);
        GError *error = NULL;
        put(&f, text, strlen(text));
        if (fabric_expect_read(f.path, 0, &e, &error)) g_test_message("accepted: %s", text);
        g_assert_nonnull(error);
        g_error_free(error);
        g_free(text);
    }
    discard(&f);
}

/* Words from everywhere, weighted towards instructions of rows. */
static uint32_t random_word(void) {
    static const uint32_t kinds[] = {0x40a00000, 0x60000000, 0x64000000, 0x78000000, 0x70000000,
                                     0x70100000, 0xf0000000, 0x43f080a4, 0x43f080a7, 0x19300000};
    const uint32_t noise = (uint32_t)g_test_rand_int();
    switch (g_test_rand_int_range(0, 30)) {
    case 0:
        return noise;
    case 1:
        return 0x43a00000;
    default:
        return kinds[g_test_rand_int_range(0, ARRAY_LEN(kinds))] | (noise & 0x03ffffff & (noise >> 3));
    }
}

static void test_random_words(void) {
    enum { TILES = 12, WORDS = 40 };
    struct fabric *f = fabric_new();
    struct sram *s = sram_new(TILES);
    for (uint32_t trial = 0; trial < 2000; trial++) {
        uint32_t words[TILES][WORDS];
        struct fabric_tile t[TILES];
        struct fabric_result r;
        for (uint32_t i = 0; i < TILES; i++) {
            for (uint32_t k = 0; k < WORDS; k++) words[i][k] = random_word();
            t[i] = (struct fabric_tile){.tile = (uint16_t)i, .words = words[i], .n_words = WORDS,
                                        .csr = fabric_csr_initial()};
            if (trial % 3 == 0) t[i].csr.incoming_mux = (uint32_t)g_test_rand_int_range(0, 2000);
            if (trial % 5 == 0) t[i].csr.outgoing_base = (uint32_t)g_test_rand_int();
        }
        fabric_phase_run(f, &(struct fabric_phase){.sram = trial % 2 != 0 ? s : NULL, .tiles = t,
                                 .n_tiles = TILES, .flags = FABRIC_PERMISSIVE}, &r);
        g_assert_cmpuint(r.n_errors + r.n_warnings, >, 0);
        for (uint32_t k = 1; k < r.n_errors + r.n_warnings; k++)
            g_assert_cmpuint(r.faults[k - 1].slot, <=, r.faults[k].slot);
    }
    sram_free(s);
    fabric_free(f);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/fabric/files/rows", test_rows);
    g_test_add_func("/fabric/files/compressed", test_compressed);
    g_test_add_func("/fabric/files/problems", test_problems);
    g_test_add_func("/fabric/random-words", test_random_words);
    return g_test_run();
}
