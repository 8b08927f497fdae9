#include "base/base.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_base_arena(void) {
    struct arena *a = arena_new();
    char *big = arena_alloc(a, 3 << 20);
    char *s = arena_printf(a, "%d tiles", 7);
    memset(big, 1, 3 << 20);
    g_assert_cmpstr(s, ==, "7 tiles");
    for (int i = 0; i < 100000; i++) {
        const uint64_t *p = arena_new_array(a, uint64_t, 3);
        g_assert_cmpuint((uintptr_t)p % 16, ==, 0);
        g_assert_cmpuint(p[0] | p[1] | p[2], ==, 0);
    }
    arena_free(a);
}

static void test_base_tileset(void) {
    struct tileset s = {0};
    tileset_add(&s, 0);
    tileset_add(&s, 63);
    tileset_add(&s, 1471);
    g_assert_cmpuint(tileset_count(&s), ==, 3);
    g_assert_cmpuint(tileset_next(&s, 1), ==, 63);
    g_assert_cmpuint(tileset_next(&s, 64), ==, 1471);
    tileset_remove(&s, 1471);
    g_assert_cmpuint(tileset_next(&s, 64), ==, TILESET_BITS);
}

static void square(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    ((uint64_t *)context)[i] = (uint64_t)i * i;
}

static void test_base_par(void) {
    static uint64_t one[5000], four[5000];
    par_set_threads(1);
    par_for(5000, square, one);
    par_set_threads(4);
    par_for(5000, square, four);
    par_set_threads(0);
    g_assert_cmpmem(one, sizeof one, four, sizeof four);
}

static void test_base_file(void) {
    char *dir = g_dir_make_tmp("ipu-base-XXXXXX", NULL);
    char *path = g_build_filename(dir, "f", NULL);
    GError *error = NULL;
    uint8_t *data;
    size_t size;
    g_assert_true(file_write_atomic(path, "abc", 3, &error));
    g_assert_true(file_read(path, 0, &data, &size, &error));
    g_assert_cmpmem(data, (int)size, "abc", 3);
    g_free(data);
    g_assert_false(file_read(path, 2, &data, &size, &error));
    g_assert_cmpint(error->code, ==, DIAG_FILE_TOO_BIG);
    g_clear_error(&error);
    g_assert_false(file_read(dir, 0, &data, &size, &error));
    g_assert_cmpint(error->code, ==, DIAG_FILE_NOT_REGULAR);
    g_clear_error(&error);
    g_assert_false(file_write_atomic("/nonexistent/f", "abc", 3, &error));
    g_assert_cmpint(error->code, ==, DIAG_FILE_WRITE);
    g_clear_error(&error);
    g_unlink(path);
    g_rmdir(dir);
    g_free(path);
    g_free(dir);
}

/* A rename over a device, a pipe or a link would replace it. */
static void test_base_file_special(void) {
    char *dir = g_dir_make_tmp("ipu-base-XXXXXX", NULL);
    char *pipe_path = g_build_filename(dir, "pipe", NULL), *link = g_build_filename(dir, "link", NULL);
    GError *error = NULL;
    struct stat st;
    g_assert_cmpint(mkfifo(pipe_path, 0600), ==, 0);
    g_assert_false(file_write_atomic(pipe_path, "abc", 3, &error));
    g_assert_error(error, diag_quark(), DIAG_FILE_NOT_REGULAR);
    g_clear_error(&error);
    g_assert_cmpint(lstat(pipe_path, &st), ==, 0);
    g_assert_true(S_ISFIFO(st.st_mode));
    g_assert_cmpint(symlink(pipe_path, link), ==, 0);
    g_assert_false(file_write_atomic(link, "abc", 3, &error));
    g_assert_error(error, diag_quark(), DIAG_FILE_LINK);
    g_clear_error(&error);
    g_assert_cmpint(lstat(link, &st), ==, 0);
    g_assert_true(S_ISLNK(st.st_mode));
    g_unlink(link);
    g_unlink(pipe_path);
    g_rmdir(dir);
    g_free(link);
    g_free(pipe_path);
    g_free(dir);
}

/* Values fixed once: any change of the generator changes every random model. */
static void test_base_rand(void) {
    uint32_t crc = ~0u;
    for (uint64_t i = 0; i < 1000; i++) {
        const uint64_t v = rand_u64(1, rand_stream("w0"), i);
        for (int b = 0; b < 64; b += 8) {
            crc ^= (uint8_t)(v >> b);
            for (int k = 0; k < 8; k++) crc = (crc >> 1) ^ (0xedb88320u & (0u - (crc & 1)));
        }
    }
    g_assert_cmphex(~crc, ==, 0x32993746); /* computed apart from docs/random.md */
    double sum = 0, square_sum = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        const double v = rand_normal(1, rand_stream("w0"), i);
        sum += v;
        square_sum += v * v;
    }
    g_assert_cmpfloat(ABS(sum / 1e5), <, 0.02);
    g_assert_cmpfloat(ABS(square_sum / 1e5 - 1), <, 0.03);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/arena", test_base_arena);
    g_test_add_func("/base/tileset", test_base_tileset);
    g_test_add_func("/base/par", test_base_par);
    g_test_add_func("/base/file", test_base_file);
    g_test_add_func("/base/file_special", test_base_file_special);
    g_test_add_func("/base/rand", test_base_rand);
    return g_test_run();
}
