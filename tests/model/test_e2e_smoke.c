/* Small networks through the whole command: right values, predicted cycles within 1 %, the same package
 * bytes for any number of threads, profiles and pages. */
#include "model/model.h"
#include "numeric/num_format.h"

#include "../cli_spawn.h"

#include <math.h>

static char *check(const char *line) {
    struct cli_said s = cli_run(line);
    if (s.status != 0) g_error("%s: status %d\n%s%s", line, s.status, s.out, s.err);
    g_assert_nonnull(strstr(s.out, "\"pass\":true"));
    const double predicted = cli_number(s.out, "cycles_predicted");
    const double measured = cli_number(s.out, "cycles_measured");
    g_test_message("%s: %.0f measured, %.0f predicted", line, measured, predicted);
    g_assert_cmpfloat(fabs(predicted - measured), <=, 0.01 * measured);
    static const char *const keys[] = {
        "tiles", "active_tiles", "exchange_cycles", "max_abs_error", "cosine", "values_checked",
        "compile_seconds", "run_seconds", "peak_tile_bytes", "row_bytes_max", "package_bytes"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(keys); i++) cli_number(s.out, keys[i]);
    g_free(s.err);
    return s.out;
}

static void test_mlp_smoke(void) {
    static const uint32_t tiles[] = {1, 7, 64, 1472};
    for (uint32_t i = 0; i < G_N_ELEMENTS(tiles); i++) {
        char *line = g_strdup_printf("e2e-test --workload mlp-smoke --tiles %u --json", tiles[i]);
        char *out = check(line);
        g_assert_cmpfloat(cli_number(out, "values_checked"), ==, 64.0 * tiles[i]);
        g_assert_cmpfloat(cli_number(out, "max_abs_error"), <=, 0.02);
        g_free(out);
        g_free(line);
    }
}

static void test_gemm_smoke(void) {
    char *out = check("e2e-test --workload gemm-smoke --tiles 64 --json");
    g_assert_cmpfloat(cli_number(out, "values_checked"), ==, 262144);
    g_assert_cmpfloat(cli_number(out, "values_unequal"), ==, 0);
    g_free(out);
    out = check("e2e-test --workload batched-gemm-smoke --tiles 64 --json");
    g_assert_cmpfloat(cli_number(out, "values_checked"), ==, 786432);
    g_assert_cmpfloat(cli_number(out, "values_unequal"), ==, 0);
    g_free(out);
}

/* Partial sums, a repartition between products, sampling code, FP32 reference. */
static void test_mlp_grids(void) {
    char *out = check("e2e-test --workload siglip-mlp-benchmark --mlp-batch 1 --tiles 64 "
                      "--mlp-tokens 81 --mlp-dim 144 --mlp-hidden-dim 528 --reference-fp32 --json "
                      "--gemm-plan-constraint 0:3x4x3 --gemm-plan-constraint 2:2x5x6");
    g_assert_cmpfloat(cli_number(out, "values_checked"), ==, 81 * 144);
    g_assert_cmpfloat(cli_number(out, "cosine_fp32"), >, 0.9999);
    g_free(out);
    struct cli_said s = cli_run("e2e-test --workload mlp-smoke --tiles 7 --sample-cycles --json");
    g_assert_cmpint(s.status, ==, 0);
    g_assert_nonnull(strstr(s.out, "\"cycles_measured\":null"));
    g_assert_cmpfloat(cli_number(s.out, "cycles_sampled"), >, 0);
    cli_said_clear(&s);
}

/* The rows that are reserved before there are addresses are those that are scheduled, within 20 %. */
static void test_rows_estimate(void) {
    static const char *const NETWORKS[] = {
        "siglip-vit-benchmark --vit-small --tiles 64 --vit-batch 2",
        "siglip-vit-benchmark --vit-small --tiles 64 --vit-layers 2 --fp8-scale -4 "
        "--diagnostic-atol 0.2 --diagnostic-rtol 0.05",
        "siglip-mlp-benchmark --mlp-batch 1 --tiles 64 --mlp-tokens 81 --mlp-dim 144 "
        "--mlp-hidden-dim 528"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(NETWORKS); i++) {
        char *line = g_strdup_printf("e2e-test --workload %s --no-profile --json", NETWORKS[i]);
        char *out = check(line);
        const double real = cli_number(out, "bytes_unshared");
        g_assert_cmpfloat(fabs(cli_number(out, "bytes_estimated") - real), <=, 0.2 * real);
        g_free(out);
        g_free(line);
    }
}

/* The second figure: inputs written once by the host and distributed on the device. */
static void test_inputs_once(void) {
    const char *mlp = "e2e-test --workload siglip-mlp-benchmark --mlp-batch 1 --tiles 64 "
                      "--mlp-tokens 81 --mlp-dim 144 --mlp-hidden-dim 528 --json";
    char *free_inputs = check(mlp), *line = g_strconcat(mlp, " --inputs-once", NULL);
    char *once = check(line);
    g_assert_cmpfloat(cli_number(free_inputs, "input_bytes"), >, 2 * 81 * 144);
    g_assert_cmpfloat(cli_number(free_inputs, "input_bytes_once"), ==, 2 * 81 * 144);
    g_assert_cmpfloat(cli_number(once, "input_bytes"), ==, 2 * 81 * 144);
    g_assert_cmpfloat(cli_number(free_inputs, "cycles_predicted_inputs_once"), ==,
                      cli_number(once, "cycles_predicted"));
    g_assert_nonnull(strstr(once, "\"cycles_predicted_inputs_once\":null"));
    g_free(free_inputs);
    g_free(once);
    g_free(line);
}

/* Without a policy of the user, idle threads do not spin. */
static void test_idle_threads(void) {
    char **environment = g_environ_unsetenv(g_get_environ(), "OMP_WAIT_POLICY");
    environment = g_environ_setenv(environment, "OMP_DISPLAY_ENV", "verbose", TRUE);
    char *argv[] = {(char *)g_getenv("IPU_STACK"), (char *)"e2e-test", (char *)"--workload",
                    (char *)"mlp-smoke", (char *)"--tiles", (char *)"7", NULL}, *err;
    int wait;
    GError *error = NULL;
    g_assert_true(g_spawn_sync(NULL, argv, environment, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL,
                               &err, &wait, &error));
    g_assert_no_error(error);
    g_assert_cmpint(wait, ==, 0);
    char *spins = g_strrstr(err, "GOMP_SPINCOUNT"); /* of the second start */
    if (spins == NULL) g_test_skip("this OpenMP library does not show how long it spins");
    else g_assert_true(g_str_has_prefix(spins, "GOMP_SPINCOUNT = '0'"));
    g_free(err);
    g_strfreev(environment);
}

static void write_package(const char *path, const char *options) {
    char *line = g_strdup_printf("compile --workload mlp-smoke --tiles 64 -o %s %s", path, options);
    struct cli_said s = cli_run(line);
    if (s.status != 0) g_error("%s: %s", line, s.err);
    cli_said_clear(&s);
    g_free(line);
}

static void test_same_package(void) {
    char *dir = cli_temp_dir();
    static const char *const options[] = {"--threads 1", "--threads 2", "--threads 4", "--threads 2"};
    char *first = NULL;
    gsize first_size = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(options); i++) {
        char *path = g_build_filename(dir, "p.ipuexe", NULL), *bytes;
        gsize size;
        write_package(path, options[i]);
        g_assert_true(g_file_get_contents(path, &bytes, &size, NULL));
        if (i == 0) {
            first = bytes;
            first_size = size;
        } else {
            g_assert_cmpmem(bytes, (int)size, first, (int)first_size);
            g_free(bytes);
        }
        g_free(path);
    }
    g_free(first);
    cli_temp_remove(dir);
}

static char *run_format(const char *format, const char *dir) {
    char **pieces = g_strsplit(format, "%s", -1);
    char *line = g_strjoinv(dir, pieces);
    struct cli_said s = cli_run(line);
    if (s.status != 0) g_error("%s: status %d\n%s", line, s.status, s.err);
    g_strfreev(pieces);
    g_free(line);
    g_free(s.err);
    return s.out;
}

static char *read_text(const char *dir, const char *name) {
    char *path = g_build_filename(dir, name, NULL), *text;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_free(path);
    return text;
}

/* Every intermediate value of the package and its cycles are those of tiles without fused loops. */
static void expect_plain_equal(const char *dir) {
    char *fused = run_format("run %s/a.ipuexe --input %s/x.safetensors --json", dir);
    char *plain = run_format("run %s/a.ipuexe --input %s/x.safetensors --plain --json "
                             "--diagnostic-output %s/plain.safetensors", dir);
    g_assert_cmpfloat(cli_number(fused, "cycles_measured"), ==, cli_number(plain, "cycles_measured"));
    char *text[2];
    gsize size[2];
    for (uint32_t i = 0; i < 2; i++) {
        char *path = g_build_filename(dir, i ? "plain.safetensors" : "all.safetensors", NULL);
        g_assert_true(g_file_get_contents(path, &text[i], &size[i], NULL));
        g_free(path);
    }
    g_assert_cmpmem(text[0], (int)size[0], text[1], (int)size[1]);
    for (uint32_t i = 0; i < 2; i++) g_free(text[i]);
    g_free(fused);
    g_free(plain);
}

/* A package alone: its intermediate values as tensors, the last of which is the output. */
static void test_run_results(void) {
    char *dir = cli_temp_dir();
    const char *net = "compile --workload siglip-vit-benchmark --vit-small --tiles 64 --vit-layers 2 ";
    char *line = g_strconcat(net, "--diagnostic-run -o %s/a.ipuexe", NULL);
    g_free(run_format(line, dir));
    g_free(line);
    GError *error = NULL;
    char *path = g_build_filename(dir, "x.safetensors", NULL);
    float *x = g_new0(float, 4 * 588);
    for (uint32_t i = 0; i < 4 * 588; i++) x[i] = sinf((float)i);
    const struct model_tensor input = {"image", MODEL_F32, 3, {1, 4, 588}, x, 4 * 588 * sizeof *x};
    g_assert_true(tensor_file_write(path, &input, 1, &error));
    g_free(run_format("run %s/a.ipuexe --input %s/x.safetensors --output %s/y.safetensors "
                      "--diagnostic-output %s/all.safetensors", dir));
    expect_plain_equal(dir);
    struct tensor_file *all, *out;
    char *all_path = g_build_filename(dir, "all.safetensors", NULL);
    char *out_path = g_build_filename(dir, "y.safetensors", NULL);
    g_assert_true(tensor_file_open(all_path, &all, &error));
    g_assert_true(tensor_file_open(out_path, &out, &error));
    g_assert_nonnull(tensor_file_find(all, "block.gelu/0"));
    g_assert_nonnull(tensor_file_find(all, "block.gelu/1"));
    g_assert_null(tensor_file_find(all, "block.gelu/2"));
    const struct model_tensor *y = tensor_file_get(out, 0);
    const struct model_tensor *last = tensor_file_find(all, y->name);
    g_assert_cmpint(y->dtype, ==, MODEL_F16);
    g_assert_cmpuint(last->bytes, ==, 2 * y->bytes);
    for (uint32_t i = 0; i < y->bytes / 2; i++)
        g_assert_cmpfloat(((const float *)last->data)[i], ==,
                          num_f16_to_f32(((const uint16_t *)y->data)[i]));
    for (uint32_t i = 0; i < tensor_file_count(all); i++) { /* every element was stored */
        const struct model_tensor *t = tensor_file_get(all, i);
        for (uint64_t k = 0; k < t->bytes / 4; k++)
            g_assert_false(isnan(((const float *)t->data)[k]));
    }
    tensor_file_free(all);
    tensor_file_free(out);
    line = g_strconcat(net, "-o %s/b.ipuexe", NULL);
    g_free(run_format(line, dir));
    char *refused = g_strdup_printf("run %s/b.ipuexe --input %s/x.safetensors --diagnostic-output "
                                    "%s/none.safetensors", dir, dir, dir);
    cli_expect(refused, 2, "does not say where its intermediate values lie");
    g_free(refused);
    g_free(line);
    g_free(all_path);
    g_free(out_path);
    g_free(path);
    g_free(x);
    cli_temp_remove(dir);
}

static void test_profile_files(void) {
    char *dir = cli_temp_dir();
    char *out = run_format("e2e-test --workload mlp-smoke --tiles 64 --json --package %s/a.ipuexe "
                           "--profile-output %s/a.ipuprof --page %s/a.html", dir);
    const double cycles = cli_number(out, "cycles_measured");
    g_free(out);
    out = run_format("profile-inspect --json %s/a.ipuprof", dir);
    g_assert_cmpfloat(cli_number(out, "cycles_measured"), ==, cycles);
    g_assert_cmpfloat(cli_number(out, "tiles"), ==, 64);
    const double shares = cli_number(out, "compute_share") + cli_number(out, "exchange_share") +
                          cli_number(out, "wait_share");
    g_assert_cmpfloat(fabs(shares - 1), <, 1e-4);
    g_free(out);
    out = run_format("package-inspect --json %s/a.ipuexe", dir);
    g_assert_cmpfloat(cli_number(out, "tiles"), ==, 64);
    g_free(out);
    g_free(run_format("profile-render %s/a.ipuprof -o %s/b.html", dir));
    char *one = read_text(dir, "a.html"), *two = read_text(dir, "b.html");
    g_assert_cmpstr(one, ==, two);
    g_assert_null(strstr(one, "http://"));
    g_assert_null(strstr(one, "https://"));
    g_free(one);
    g_free(two);
    cli_temp_remove(dir);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/e2e/mlp_smoke", test_mlp_smoke);
    g_test_add_func("/e2e/gemm_smoke", test_gemm_smoke);
    g_test_add_func("/e2e/mlp_grids", test_mlp_grids);
    g_test_add_func("/e2e/rows_estimate", test_rows_estimate);
    g_test_add_func("/e2e/inputs_once", test_inputs_once);
    g_test_add_func("/e2e/idle_threads", test_idle_threads);
    g_test_add_func("/e2e/same_package", test_same_package);
    g_test_add_func("/e2e/run_results", test_run_results);
    g_test_add_func("/e2e/profile_files", test_profile_files);
    return g_test_run();
}
