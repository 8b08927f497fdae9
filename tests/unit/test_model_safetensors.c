/* Reading, writing and refusing safetensors files. */
#include "model/model.h"

#include <glib/gstdio.h>
#include <string.h>

static char *folder;

static char *path_of(const char *name) {
    return g_build_filename(folder, name, NULL);
}

static void test_model_round_trip(void) {
    char *path = path_of("a.safetensors");
    const float x[6] = {1, 2, 3, 4, 5, 6};
    const uint16_t y[1] = {0x3c00};
    const struct model_tensor tensors[] = {
        {"x", MODEL_F32, 2, {2, 3}, x, sizeof x},
        {"odd \"name\"", MODEL_F16, 0, {0}, y, sizeof y},
    };
    GError *error = NULL;
    g_assert_true(tensor_file_write(path, tensors, 2, &error));
    struct tensor_file *f;
    g_assert_true(tensor_file_open(path, &f, &error));
    g_assert_cmpuint(tensor_file_count(f), ==, 2);
    const struct model_tensor *t = tensor_file_find(f, "x");
    g_assert_nonnull(t);
    g_assert_cmpuint(t->n_dims, ==, 2);
    g_assert_cmpmem(t->data, (int)t->bytes, x, sizeof x);
    t = tensor_file_find(f, "odd \"name\"");
    g_assert_nonnull(t);
    g_assert_cmpuint(t->n_dims, ==, 0);
    g_assert_null(tensor_file_find(f, "y"));
    tensor_file_free(f);
    g_free(path);
}

static void refuse(const char *header, uint64_t header_size, size_t data_bytes, int code,
                   const char *part) {
    char *path = path_of("bad.safetensors");
    GByteArray *all = g_byte_array_new();
    const uint64_t size = header_size != 0 ? header_size : strlen(header);
    g_byte_array_append(all, (const guint8 *)&size, 8);
    g_byte_array_append(all, (const guint8 *)header, (guint)strlen(header));
    static const uint8_t zeros[64];
    g_byte_array_append(all, zeros, (guint)data_bytes);
    GError *error = NULL;
    g_assert_true(file_write_atomic(path, all->data, all->len, &error));
    struct tensor_file *f = NULL;
    g_assert_false(tensor_file_open(path, &f, &error));
    g_assert_null(f);
    g_assert_cmpint(error->code, ==, code);
    g_assert_nonnull(strstr(error->message, part));
    g_clear_error(&error);
    g_byte_array_unref(all);
    g_free(path);
}

static void test_model_refuses(void) {
    const int form = DIAG_MODEL_FORMAT, tensor = DIAG_MODEL_TENSOR;
    refuse("{}", 1000, 0, form, "cut off");
    refuse("{", 0, 0, form, "");
    refuse("[]", 0, 0, form, "no JSON object");
    refuse("\xff\xfe", 0, 0, form, "UTF-8");
    refuse("{\"a\":3}", 0, 0, tensor, "'a' is no object");
    refuse("{\"a\":{\"dtype\":\"F17\",\"shape\":[1],\"data_offsets\":[0,2]}}", 0, 8, tensor, "dtype");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[-1],\"data_offsets\":[0,2]}}", 0, 8, tensor, "shape");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[1.5],\"data_offsets\":[0,2]}}", 0, 8, tensor, "shape");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[0,16]}}", 0, 8, tensor, "outside");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[8],\"data_offsets\":[0,8]}}", 0, 8, tensor, "size");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,8]}}", 0, 8,
           tensor, "overflows");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[2,6]}}", 0, 8, tensor, "overlaps");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[2,6]}}", 0, 6, tensor, "gap");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[6,10]}}", 0, 10, tensor,
           "'b' leaves a gap");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 0, 5,
           DIAG_MODEL_TRAILING, "1 bytes behind");
    refuse("{}", 0, 3, DIAG_MODEL_TRAILING, "3 bytes behind");
    refuse("{\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]},"
           "\"a\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", 0, 4,
           DIAG_MODEL_TWICE, "'a' twice");
    refuse("{\"a\":{\"dtype\":\"F16\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 0, 4,
           DIAG_MODEL_TWICE, "'dtype' twice");
    struct tensor_file *f;
    GError *error = NULL;
    g_assert_false(tensor_file_open("/nonexistent.safetensors", &f, &error));
    g_assert_cmpint(error->code, ==, DIAG_FILE_OPEN);
    g_clear_error(&error);
    g_assert_false(tensor_file_open(folder, &f, &error));
    g_assert_cmpint(error->code, ==, DIAG_FILE_NOT_REGULAR);
    g_clear_error(&error);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("ipu-model-XXXXXX", NULL);
    g_test_add_func("/model/round-trip", test_model_round_trip);
    g_test_add_func("/model/refuses", test_model_refuses);
    const int status = g_test_run();
    char *command = g_strdup_printf("rm -rf '%s'", folder);
    if (g_spawn_command_line_sync(command, NULL, NULL, NULL, NULL)) g_free(command);
    g_free(folder);
    return status;
}
