/* Bad problems are refused with their diagnostic; problem files round-trip and damaged ones are
 * refused. */
#include "exchange/exch.h"

#include <glib/gstdio.h>
#include <string.h>

static struct exch_problem *good(void) {
    struct exch_problem *p = exch_problem_new(2, 3);
    static const uint16_t source[] = {0, 4}, tile[] = {2, 3, 8};
    static const uint32_t at[] = {0x90000, 0x90000, 0x90000}, from[] = {0x50000, 0x50000},
                          first[] = {0, 2, 3};
    memcpy(p->source_tile, source, sizeof source);
    memcpy(p->recipient_tile, tile, sizeof tile);
    memcpy(p->recipient_address, at, sizeof at);
    memcpy(p->source_address, from, sizeof from);
    memcpy(p->first_recipient, first, sizeof first);
    p->words[0] = 100;
    p->words[1] = 30;
    return p;
}

static void refused(struct exch_problem *p, int code, const char *tile) {
    GError *error = NULL;
    g_assert_false(exch_problem_check(p, &error));
    g_assert_error(error, diag_quark(), code);
    g_assert_nonnull(strstr(error->message, tile));
    g_error_free(error);
    exch_problem_free(p);
}

static void test_refused(void) {
    struct exch_problem *p = good();
    g_assert_true(exch_problem_check(p, NULL));
    p->recipient_tile[2] = 1472;
    refused(p, DIAG_EXCH_TILE, "1472");
    p = good();
    p->words[1] = 0;
    refused(p, DIAG_EXCH_EMPTY, "transfer 1");
    p = good();
    p->source_address[1] = 0x4bffc;
    refused(p, DIAG_EXCH_SOURCE_RANGE, "tile 4");
    p = good();
    p->source_address[0] = 0x50002;
    refused(p, DIAG_EXCH_SOURCE_ALIGN, "tile 0");
    p = good();
    p->recipient_address[1] = 0xe7ffc;
    refused(p, DIAG_EXCH_DEST_RANGE, "tile 3");
    p = good();
    p->recipient_address[1] = 0x90001;
    refused(p, DIAG_EXCH_DEST_ALIGN, "tile 3");
    p = good();
    p->recipient_tile[1] = 2;
    refused(p, DIAG_EXCH_DUPLICATE, "tile 2");
    p = good();
    p->recipient_tile[2] = 4;
    refused(p, DIAG_EXCH_SELF_ONLY, "tile 4");
    p = good();
    p->recipient_tile[0] = 0;
    p->recipient_address[0] = 0x51000;
    refused(p, DIAG_EXCH_SELF_ELEMENT, "tile 0");
    p = good();
    exch_problem_add_widths(p);
    p->width[1] = EXCH_WIDTH_PAIRED;
    refused(p, DIAG_EXCH_NOT_PAIRABLE, "transfer 1");
    p = good();
    p->words[1] = 4149;
    refused(p, DIAG_EXCH_TOO_LONG, "4149 items");
    p = good();
    p->recipient_tile[2] = 3;
    p->recipient_address[2] = 0x9018c;
    refused(p, DIAG_EXCH_OVERLAP, "transfer 1, tile 3");
    p = good();
    exch_problem_add_dependencies(p, 2);
    p->first_dependency[1] = 1;
    p->first_dependency[2] = 2;
    p->dependency[0] = 1;
    p->dependency[1] = 0;
    refused(p, DIAG_EXCH_CYCLE, "transfer 0");
    p = good();
    p->row_address = 0x7ff00;
    p->row_bytes = 0x100;
    refused(p, DIAG_EXCH_ROW_PLACE, "0x7ff00");
    p = good();
    p->row_address = 0x53f00;
    p->row_bytes = 0x80;
    refused(p, DIAG_EXCH_ROW_ELEMENT, "source");
}

/* Rows of different lengths: what holds rows on one tile may hold data on another. */
static void test_row_bytes_by_tile(void) {
    struct exch_problem *p = good();
    uint32_t *bytes = g_new0(uint32_t, TARGET_N_TILES);
    p->row_address = 0x70000;
    p->row_bytes = 0x7000;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) bytes[t] = 0x1000;
    bytes[3] = 0x7000;
    p->recipient_address[0] = 0x74000; /* tile 2 */
    g_assert_false(exch_problem_check(p, NULL));
    p->tile_row_bytes = bytes;
    g_assert_true(exch_problem_check(p, NULL));
    bytes[4] = 8; /* the row of tile 4 does not fit */
    GError *error = NULL;
    g_assert_null(exch_schedule(p, &(struct exch_options){0}, &error));
    g_assert_error(error, diag_quark(), DIAG_EXCH_ROW_TOO_LONG);
    g_assert_nonnull(strstr(error->message, "tile 4: its row"));
    g_assert_nonnull(strstr(error->message, "transfer 1"));
    g_clear_error(&error);
    bytes[4] = 0x1000;
    p->recipient_address[1] = 0x75000; /* tile 3 */
    refused(p, DIAG_EXCH_ROW_ELEMENT, "transfer 0, tile 3");
    g_free(bytes);
}

static void test_row_too_long(void) {
    struct exch_problem *p = good();
    p->row_address = 0x70000;
    p->row_bytes = 16;
    g_assert_true(exch_problem_check(p, NULL));
    GError *error = NULL;
    g_assert_null(exch_schedule(p, &(struct exch_options){0}, &error));
    g_assert_error(error, diag_quark(), DIAG_EXCH_ROW_TOO_LONG);
    g_error_free(error);
    exch_problem_free(p);
}

static void test_split_long(void) {
    struct exch_problem *p = good();
    p->words[1] = 10001;
    p->split_long = true;
    g_assert_true(exch_problem_check(p, NULL));
    struct exch_result *r = exch_schedule(p, &(struct exch_options){0}, NULL);
    g_assert_cmpuint(r->n_messages, ==, 4);
    g_assert_true(exch_rows_check(p, r, NULL));
    exch_result_free(r);
    exch_problem_free(p);
}

static void test_find_dependencies(void) {
    struct exch_problem *p = good(); /* transfer 1 sends what transfer 0 brings, then the reverse */
    p->source_tile[1] = 2;
    p->source_address[1] = 0x90010;
    exch_problem_find_dependencies(p);
    g_assert_cmpuint(p->first_dependency[2], ==, 1);
    g_assert_cmpuint(p->dependency[0], ==, 0);
    g_assert_cmpuint(p->first_dependency[1], ==, 0);
    struct exch_result *r = exch_schedule(p, &(struct exch_options){0}, NULL);
    g_assert_true(exch_rows_check(p, r, NULL));
    g_assert_cmpuint(r->messages[1].slot, >=, r->messages[0].slot + 50);
    exch_result_free(r);
    exch_problem_free(p);
}

static bool equal(const struct exch_problem *a, const struct exch_problem *b) {
    return exch_problem_key(a) == exch_problem_key(b) && exch_problem_crc(a) == exch_problem_crc(b);
}

static char *in_folder(const char *folder, const char *name) {
    return g_build_filename(folder, name, NULL);
}

static void test_files(void) {
    char *folder = g_dir_make_tmp("exch-XXXXXX", NULL);
    static const char *const names[] = {"a.json", "a.json.zst", "a.exch"};
    struct exch_problem *p[2] = {good(), exch_generate("syn-m0", 2, false, NULL)};
    exch_problem_add_widths(p[0]);
    p[0]->width[0] = EXCH_WIDTH_PAIRED;
    exch_problem_add_strides(p[0]);
    p[0]->source_stride[1] = -256;
    p[0]->n_iterations = 4;
    exch_problem_add_dependencies(p[0], 1);
    p[0]->first_dependency[2] = 1;
    uint32_t numbers[2] = {3, 7};
    const struct exch_problem_set set = {2, p, numbers};
    for (size_t i = 0; i < G_N_ELEMENTS(names); i++) {
        char *path = in_folder(folder, names[i]);
        g_assert_true(exch_file_write(path, &set, NULL));
        struct exch_problem_set *back = exch_file_read(path, NULL);
        g_assert_nonnull(back);
        g_assert_cmpuint(back->n_phases, ==, 2);
        g_assert_cmpuint(back->number[1], ==, 7);
        for (uint32_t k = 0; k < 2; k++) g_assert_true(equal(p[k], back->phases[k]));
        exch_problem_set_free(back);
        /* damage: no crash; a shortened file is refused */
        uint8_t *data;
        size_t size;
        g_assert_true(file_read(path, 0, &data, &size, NULL));
        for (uint32_t k = 0; k < 60; k++) {
            uint8_t *bad = g_memdup2(data, size);
            const size_t n = k < 20 ? size * k / 20 : size;
            if (k >= 20) bad[(size * (k - 20) / 40 + k) % size] ^= (uint8_t)(1 + k);
            g_assert_true(file_write_atomic(path, bad, n, NULL));
            GError *error = NULL;
            back = exch_file_read(path, &error);
            g_assert_true((back == NULL) == (error != NULL));
            if (k < 20) g_assert_null(back);
            for (uint32_t q = 0; back != NULL && q < back->n_phases; q++)
                (void)exch_problem_check(back->phases[q], NULL);
            exch_problem_set_free(back);
            g_clear_error(&error);
            g_free(bad);
        }
        g_free(data);
        g_unlink(path);
        g_free(path);
    }
    exch_problem_free(p[0]);
    exch_problem_free(p[1]);
    g_rmdir(folder);
    g_free(folder);
}

static void test_estimate(void) {
    struct exch_problem *p = exch_generate("syn-m3", 1, false, NULL);
    uint32_t *n = g_new0(uint32_t, TARGET_N_TILES), *bytes = g_new0(uint32_t, TARGET_N_TILES);
    const struct exch_load load = {.n_sends = n, .row_bytes = bytes};
    struct exch_estimate e;
    exch_estimate(p, &load, &e);
    g_assert_cmpuint(e.bound, ==, 6950);
    g_assert_cmpuint(e.horizon, >=, 6950);
    g_assert_cmpuint(e.horizon, <=, 7700);
    uint32_t sum = 0, most = 0;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        sum += n[t];
        most = MAX(most, bytes[t]);
    }
    g_assert_cmpuint(sum, ==, p->n_transfers);
    g_assert_cmpuint(most, ==, e.row_bytes_max);
    g_free(n);
    g_free(bytes);
    exch_problem_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange/input/refused", test_refused);
    g_test_add_func("/exchange/input/row-too-long", test_row_too_long);
    g_test_add_func("/exchange/input/row-bytes-by-tile", test_row_bytes_by_tile);
    g_test_add_func("/exchange/input/split-long", test_split_long);
    g_test_add_func("/exchange/input/dependencies", test_find_dependencies);
    g_test_add_func("/exchange/input/files", test_files);
    g_test_add_func("/exchange/input/estimate", test_estimate);
    return g_test_run();
}
