/* Wrong input is one line on stderr and status 2, what does not fit a report and status 3; nothing is
 * written, and a full disk leaves the old file as it was. */
#include "compile/compile.h"
#include "lower/lower.h"
#include "model/model.h"

#include "../cli_spawn.h"
#include "../device_graph.h"

static char *dir;

static char *in_dir(const char *name) {
    return g_build_filename(dir, name, NULL);
}

static void put(const char *name, const char *text) {
    char *path = in_dir(name);
    g_assert_true(g_file_set_contents(path, text, -1, NULL));
    g_free(path);
}

/* %s in the line stands for the folder. */
static void expect(const char *format, int status, const char *part) {
    char **pieces = g_strsplit(format, "%s", -1);
    char *line = g_strjoinv(dir, pieces);
    cli_expect(line, status, part);
    g_strfreev(pieces);
    g_free(line);
}

struct line_case {
    const char *line;
    int status;
    const char *part;
};
static void expect_all(const struct line_case *cases, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) expect(cases[i].line, cases[i].status, cases[i].part);
}
#define EXPECT(...)                                                                                \
    do {                                                                                           \
        static const struct line_case cases[] = {__VA_ARGS__};                                     \
        expect_all(cases, G_N_ELEMENTS(cases));                                                    \
    } while (0)

static void test_options(void) {
    EXPECT(
        {"e2e-test --workload no-such-network", 2, "no-such-network"},
        {"e2e-test --no-such-option", 2, "Unknown option"},
        {"e2e-test", 2, "give one network"},
        {"e2e-test --workload mlp-smoke --graph x", 2, "give one network"},
        {"e2e-test --workload mlp-smoke --tiles 0", 2, "--tiles 0"},
        {"e2e-test --workload mlp-smoke --tiles 1473", 2, "1 to 1472"},
        {"e2e-test --workload mlp-smoke --tiles abc", 2, "abc"},
        {"e2e-test --workload siglip-mlp-benchmark --mlp-batch -1", 2, "--mlp-batch -1"},
        {"e2e-test --workload mlp-smoke --diagnostic-atol nan", 2, "--diagnostic-atol"},
        {"e2e-test --workload mlp-smoke --fp8-scale x", 2, "--fp8-scale"},
        {"e2e-test --workload mlp-smoke --tiles 4 --gemm-plan-constraint what", 2, "what"},
        {"e2e-test --workload mlp-smoke --no-profile --profile-output x", 2, "--no-profile"},
        {"compile --workload mlp-smoke", 2, "-o FILE"},
        {"run", 2, "give one package"},
        {"e2e-test --workload mlp-smoke --mlp-batch 2",
         2, "--mlp-batch is for siglip-mlp-benchmark; it has no meaning for mlp-smoke"},
        {"e2e-test --workload siglip-vit-benchmark --mlp-tokens 3",
         2, "--mlp-tokens is for siglip-mlp-benchmark, siglip-attention-benchmark"},
        {"e2e-test --workload gemm-benchmark --fuse-qkv", 2, "--fuse-qkv is for"},
        {"e2e-test --workload siglip-vit-benchmark --vit-small --vit-image-size 28",
         2, "--vit-small excludes --vit-image-size"},
        {"e2e-test --workload siglip-mlp-benchmark --mlp-blocks 0", 2, "--mlp-blocks 0"},
        {"e2e-test --workload mlp-smoke --exchange-effort fast", 2, "quick, normal, best"},
        {"e2e-test --workload mlp-smoke --attention-qk-fp8-scale -4",
         2, "--attention-qk-fp8-scale is for networks with attention"},
        {"e2e-test --workload attention-smoke --fp8-scale -4",
         2, "--fp8-scale is for networks with products"},
        {"e2e-test --workload mlp-smoke --tiles 4 --gemm-plan-constraint 0:1x1x1 "
         "--gemm-plan-constraint 2:1x1x1 --gemm-plan-constraint 0:1x2x1",
         2, "two plan constraints for operation 0"},
        {"frobnicate", 2, "unknown verb 'frobnicate'"});
}

/* Whatever does not fit gets a report with quantities, not a refusal. */
static void test_too_large(void) {
    put("batched", "graph b\n%a = input [17, 16, 100] fill normal 1 0\n"
                   "%b = input [17, 100, 127] fill normal 1 0\n"
                   "%c = gemm %a, %b : [17, 16, 127]\noutput %c atol 0.5 rtol 0.01\n");
    put("gelu", "graph g\n%a = input [32768, 16384] fill normal 1 0\n"
                "%c = gelu %a : [32768, 16384]\noutput %c atol 0.5 rtol 0.01\n");
    EXPECT(
        {"e2e-test --graph %s/batched --tiles 1",
         3, "does not fit: 'c' needs 617984 bytes of interleaved memory on tile 0, which has 392112: "
         "225872 bytes too many\n"},
        {"e2e-test --graph %s/gelu", 3, "does not fit: 'a' needs 729472 bytes"},
        {"e2e-test --workload siglip-mlp-benchmark --mlp-batch 64",
         3, "what would help: a smaller batch or fewer rows, operands of products in F8"},
        {"e2e-test --workload siglip-vit-benchmark --fuse-qkv --vit-layers 27",
         3, " B  block.up.weight\n"});
    struct cli_said s = cli_run("e2e-test --workload siglip-vit-benchmark --vit-small --tiles 8 "
                                "--vit-layers 10 --json");
    g_assert_cmpint(s.status, ==, 3);
    g_assert_nonnull(strstr(s.err, "what would help:\n  parameters take "));
    g_assert_nonnull(strstr(s.err, "each of the 10 iterations of the repeat keeps "));
    g_assert_nonnull(strstr(s.err, "more tiles (--tiles; 8 of 1472 are used)"));
    g_assert_nonnull(strstr(s.out, "\"users\":[{\"bytes\":"));
    g_assert_cmpfloat(cli_number(s.out, "missing_bytes"), >, 0);
    g_assert_cmpfloat(cli_number(s.out, "needs_bytes") - cli_number(s.out, "has_bytes"), ==,
                      cli_number(s.out, "missing_bytes"));
    cli_said_clear(&s);
}

static void test_files(void) {
    EXPECT(
        {"e2e-test --graph %s/none.graph", 2, "none.graph"},
        {"run %s/none.ipuexe", 2, "none.ipuexe"},
        {"package-inspect %s/none.ipuexe", 2, "none.ipuexe"},
        {"profile-inspect %s/none.ipuprof", 2, "none.ipuprof"},
        {"profile-render %s/none.ipuprof", 2, "none.ipuprof"},
        {"e2e-test --workload mlp-smoke --tiles 1 --input %s/none.safetensors",
         2, "none.safetensors"},
        {"run %s", 2, "not a regular file"});
    put("text", "this is no package\n");
    expect("run %s/text", 2, "is not a package file");
    expect("profile-inspect %s/text", 2, "is not a profile file");
    put("broken.graph", "graph g\n%x = input [2, 3] fill normal 1 0\n%y = gemm %x, %z : [2, 2]\n");
    expect("e2e-test --graph %s/broken.graph", 2, "broken.graph");
    expect("compile --workload mlp-smoke --tiles 1 -o %s/no/such/folder/p", 2, "no/such/folder");
}

static void write_tensors(const char *name, const struct model_tensor *t, uint32_t n) {
    char *path = in_dir(name);
    GError *error = NULL;
    tensor_file_write(path, t, n, &error);
    g_assert_no_error(error);
    g_free(path);
}

static void test_tensors(void) {
    put("ab.graph", "graph product\n%a = input [3, 4] fill normal 1 0\n"
                    "%b = parameter [4, 5] fill normal 1 0\n%c = gemm %a, %b : [3, 5]\n"
                    "output %c atol 0 rtol 0.01\n");
    expect("compile --graph %s/ab.graph --tiles 4 -o %s/ab.ipuexe", 0, "");
    expect("compile --graph %s/ab.graph --tiles 4 -o %s/bare.ipuexe --no-parameters", 0, "");
    static const float v[64] = {1, 2, 3, 4};
    static const uint16_t h[64];
    static float inf[12] = {1, 2, 3};
    const struct model_tensor good[] = {
        {.name = "a", .dtype = MODEL_F32, .n_dims = 2, .shape = {3, 4}, .data = v, .bytes = 48},
        {.name = "b", .dtype = MODEL_F16, .n_dims = 2, .shape = {4, 5}, .data = h, .bytes = 40}};
    struct model_tensor bad = good[0];
    write_tensors("good.st", good, 2);
    write_tensors("only_b.st", good + 1, 1);
    bad.shape[0] = 4;
    bad.shape[1] = 3;
    write_tensors("shape.st", &bad, 1);
    bad = good[0];
    bad.dtype = MODEL_I32;
    write_tensors("dtype.st", &bad, 1);
    bad = good[0];
    inf[11] = 1e30f;
    bad.data = inf;
    write_tensors("range.st", &bad, 1);
    EXPECT(
        {"run %s/ab.ipuexe", 2, "input 'a' has no values"},
        {"run %s/ab.ipuexe --threads 1000000", 2, "--threads 1000000: must be 0 to 1024"},
        {"run %s/ab.ipuexe --threads -1", 2, "--threads -1: must be 0 to 1024"},
        {"run %s/bare.ipuexe --input %s/range.st", 2, ""},
        {"run %s/ab.ipuexe --input %s/only_b.st", 2, "tensor 'a' is missing"},
        {"run %s/ab.ipuexe --input %s/shape.st", 2, "has shape [4, 3], the network wants [3, 4]"},
        {"run %s/ab.ipuexe --input %s/dtype.st", 2, "dtype I32"},
        {"run %s/ab.ipuexe --input %s/range.st", 2, "element 11 is 1e+30"},
        {"run %s/bare.ipuexe --input %s/good.st --parameters %s/shape.st", 2, "'b' is missing"},
        {"run %s/bare.ipuexe --input %s/good.st --parameters %s/good.st --output %s/out.st",
         0, "rounded"},
        {"run %s/ab.ipuexe --input %s/good.st --output %s/out2.st", 0, "rounded"},
        {"e2e-test --graph %s/ab.graph --tiles 4 --input %s/good.st", 0, "rounded"});
}

/* A network is named after its file, whatever the file's name. */
static void test_odd_name(void) {
    char *odd = in_dir("o\"d\303\251.graph"), *quoted = g_shell_quote(odd);
    put("o\"d\303\251.graph", "graph g\n%x = input [2] fill normal 1 0\n%y = gelu %x : [2]\n"
                       "output %y atol 0.01 rtol 0.01\n");
    char *compile = g_strdup_printf("compile --graph %s --tiles 1 -o %s/odd.ipuexe", quoted, dir);
    char *run = g_strdup_printf("run %s/odd.ipuexe --input %s/x.st --json", dir, dir);
    static const uint16_t h[2];
    const struct model_tensor x = {
        .name = "x", .dtype = MODEL_F16, .n_dims = 1, .shape = {2}, .data = h, .bytes = 4};
    write_tensors("x.st", &x, 1);
    cli_expect(compile, 0, "");
    struct cli_said s = cli_run(run);
    g_assert_cmpint(s.status, ==, 0);
    g_assert_nonnull(strstr(s.out, "o\\u0022d\303\251.graph\","));
    cli_said_clear(&s);
    g_free(compile);
    g_free(run);
    g_free(quoted);
    g_free(odd);
}

/* Indices are whole numbers of 32 bits. */
static void test_indices(void) {
    put("rows.graph", "graph rows\n%t = parameter [5, 7] fill normal 1 0\n"
                      "%i = input [2] fill index 5 0\n%c = embed %t, %i\noutput %c\n");
    expect("compile --graph %s/rows.graph --tiles 2 -o %s/rows.ipuexe", 0, "");
    static const float BAD[] = {-1, 1.5f, 0x1p32f, 1e30f};
    static const char *const SHOWN[] = {"is -1,", "is 1.5,", "is 4.29497e+09,", "is 1e+30,"};
    float v[2] = {4, 0};
    const struct model_tensor t = {
        .name = "i", .dtype = MODEL_F32, .n_dims = 1, .shape = {2}, .data = v, .bytes = 8};
    write_tensors("rows.st", &t, 1);
    expect("run %s/rows.ipuexe --input %s/rows.st", 0, "");
    int64_t wide[2] = {4, 0};
    struct model_tensor integers = t;
    integers.dtype = MODEL_I64;
    integers.data = wide;
    integers.bytes = 16;
    write_tensors("rows.st", &integers, 1);
    expect("run %s/rows.ipuexe --input %s/rows.st", 0, "");
    wide[1] = 5;
    write_tensors("rows.st", &integers, 1);
    expect("run %s/rows.ipuexe --input %s/rows.st", 2,
           "tensor 'i': index 5 at element 1 is not a row of its table of 5 rows (E1007)");
    expect("e2e-test --graph %s/rows.graph --tiles 2 --input %s/rows.st", 2, "(E1007)");
    wide[1] = -2;
    write_tensors("rows.st", &integers, 1);
    expect("run %s/rows.ipuexe --input %s/rows.st", 2, "is -2,");
    integers.dtype = MODEL_F64;
    write_tensors("rows.st", &integers, 1);
    expect("run %s/rows.ipuexe --input %s/rows.st", 2, "I32, U32, I64, F16 and F32 are taken");
    for (uint32_t i = 0; i < G_N_ELEMENTS(BAD); i++) {
        v[1] = BAD[i];
        write_tensors("rows.st", &t, 1);
        expect("run %s/rows.ipuexe --input %s/rows.st", 2, SHOWN[i]);
    }
}

/* What a fill gives must fit the storage format; the line of its tensor is named. */
static void test_fills(void) {
    static const struct {
        const char *x, *i, *options, *message;
    } CASES[] = {
        {"fill normal 1e38 0", "fill index 5 0", "", "bad.graph:2: the fill of x: element 0 is "},
        {"fill constant 65505 0", "fill index 5 0", "", " is 65505, which f16 cannot hold (E1265)"},
        {"fill constant 1e300 0", "fill index 5 0", "", " is inf, which f16 cannot hold (E1265)"},
        {"fill constant 1 0", "fill index 9 0", "", "bad.graph:3: tensor 'i': index "},
        {"fill constant 1 0", "fill constant 0.5 0", "", "is 0.5, which u32 cannot hold (E1265)"},
        {"fill constant 65504 0", "fill index 5 0", "", NULL},
    };
    for (uint32_t k = 0; k < 2 * G_N_ELEMENTS(CASES); k++) {
        char *text = g_strdup_printf("graph g\n%%x = %s [5, 7] %s\n%%i = %s [9] %s\n"
                                     "%%y = embed %%x, %%i\noutput %%y\n",
                                     k & 1 ? "parameter" : "input", CASES[k / 2].x,
                                     k & 1 ? "parameter" : "input", CASES[k / 2].i);
        put("bad.graph", text);
        const char *message = CASES[k / 2].message;
        expect("e2e-test --graph %s/bad.graph --tiles 2", message != NULL ? 2 : 0,
               message != NULL ? message : "");
        g_free(text);
    }
}

/* A count of more than 20 bits takes two instructions. */
static void test_long_repeat(void) {
    put("long.graph", "graph l\n%x = input [2] fill normal 1 0\n"
                      "%y = repeat r count 4294967295 carried %c = %x {\n  %d = gelu %c\n"
                      "  yield %d\n}\noutput %y\n");
    expect("compile --graph %s/long.graph --tiles 1 -o %s/long.ipuexe", 0, "");
}

static void test_full_output(void) {
    char *all = g_strdup_printf("/bin/sh -c '\"%s\" target >/dev/full'", g_getenv("IPU_STACK"));
    char *err;
    GError *error = NULL;
    int wait;
    g_assert_true(g_spawn_command_line_sync(all, NULL, &err, &wait, &error));
    g_assert_true(WIFEXITED(wait) && WEXITSTATUS(wait) == 2);
    g_assert_nonnull(strstr(err, "standard output cannot be written: No space left"));
    g_free(err);
    g_free(all);
}

static void test_infeasible(void) {
    struct cli_said s = cli_run("e2e-test --workload gemm-benchmark --tiles 2 --benchmark-rows 4096 "
                                "--benchmark-inner 4096 --benchmark-columns 4096 --json");
    g_assert_cmpint(s.status, ==, 3);
    g_assert_nonnull(strstr(s.err, "does not fit"));
    g_assert_nonnull(strstr(s.err, "tile "));
    g_assert_nonnull(strstr(s.err, " B  "));
    g_assert_cmpfloat(cli_number(s.out, "missing_bytes"), >, 0);
    cli_said_clear(&s);
}

/* A cut or altered file is refused by name; nothing else is printed. */
static void damage(const char *name, const char *verb, const char *kind) {
    char *path = in_dir(name), *bytes, *bad_path = in_dir("damaged");
    gsize n;
    g_assert_true(g_file_get_contents(path, &bytes, &n, NULL));
    char *line = g_strdup_printf("%s %s", verb, bad_path);
    const gsize cuts[] = {0, 50, 4096, n / 2, n - 1};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cuts); i++) {
        g_assert_true(g_file_set_contents(bad_path, bytes, (gssize)cuts[i], NULL));
        cli_expect(line, 2, "damaged");
    }
    const gsize flips[] = {20, 1000, n / 3, n / 2, n - 7};
    for (uint32_t i = 0; i < G_N_ELEMENTS(flips); i++) {
        bytes[flips[i]] ^= 4;
        g_assert_true(g_file_set_contents(bad_path, bytes, (gssize)n, NULL));
        cli_expect(line, 2, kind);
        bytes[flips[i]] ^= 4;
    }
    g_free(line);
    g_free(bytes);
    g_free(path);
    g_free(bad_path);
}

static void test_damage(void) {
    expect("e2e-test --workload mlp-smoke --tiles 7 --package %s/p.ipuexe --profile-output "
           "%s/p.ipuprof", 0, "");
    damage("p.ipuexe", "package-inspect", "the package is truncated or was altered");
    damage("p.ipuexe", "run", "the package is truncated or was altered");
    damage("p.ipuprof", "profile-inspect", "the profile is truncated or was altered");
    EXPECT(
        {"package-inspect %s/p.ipuexe --tile -1", 2, "--tile -1: must be 0 to 6"},
        {"profile-query %s/p.ipuprof --limit -1", 2, "--limit -1: must be 0 to"},
        {"profile-query %s/p.ipuprof --samples -1", 2, "--samples -1: must be 0 to"},
        {"profile-query %s/p.ipuprof --at-offset -5", 2, "--at-offset -5: must be 0 to"},
        {"profile-query %s/p.ipuprof --at-offset 999999999", 2, "--at-offset 999999999: must be"},
        {"profile-query %s/p.ipuprof --tile 7", 2, "--tile 7: must be 0 to 6"},
        {"profile-query %s/p.ipuprof --kernel gelu_f61",
         2, "no kernel 'gelu_f61'; did you mean 'gelu_f16'?; it has gelu_f16, "},
        {"profile-query %s/p.ipuprof --kernel gelu_f16 --operation-contains nothing",
         2, "no operation with 'nothing'; it has "},
        {"profile-query %s/p.ipuprof --kernel gelu_f16 --kind exchange", 0, ""},
        {"package-inspect %s/p.ipuprof", 2, "is not a package file"},
        {"profile-inspect %s/p.ipuexe", 2, "is not a profile file"});
}

/* A package whose program reads what nobody wrote: a device fault, status 4, nothing written. */
static void test_device_fault(void) {
    struct tile_graph *g = dg_new(2);
    const uint32_t ghost = dg_alloc(g, 1, 64, 0, "ghost");
    const uint32_t out = dg_alloc(g, 1, 64, TG_HOST_OUTPUT, "out");
    dg_step(g, TG_COMPUTE, "haunt");
    dg_call(g, 1, (struct kernel_spec){KERNEL_COPY_U64, {64}}, (uint32_t[]){out, ghost}, 2);
    dg_bind(g, out, TG_BIND_OUTPUT, "y");
    tg_lifetimes(g);
    GError *error = NULL;
    struct compile_result r;
    compile_tile_graph(g, &(struct compile_options){0}, &r, &error);
    g_assert_no_error(error);
    char *path = in_dir("ghost.ipuexe"), *output = in_dir("ghost.st");
    g_assert_true(package_write(r.package, path, NULL, &error));
    char *line = g_strdup_printf("run %s --output %s", path, output);
    struct cli_said s = cli_run(line);
    g_assert_cmpint(s.status, ==, 4);
    g_assert_cmpstr(s.out, ==, "");
    static const char *const parts[] = {"READ_UNWRITTEN", "tile       1, worker", "cycle ", "copy_u64",
                                        "ghost+0x", "operation  haunt"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(parts); i++) g_assert_nonnull(strstr(s.err, parts[i]));
    g_assert_false(g_file_test(output, G_FILE_TEST_EXISTS));
    cli_said_clear(&s);
    g_free(line);
    g_free(path);
    g_free(output);
    compile_result_free(&r);
    tile_graph_free(g);
}

static void test_full_disk(void) {
    expect("compile --workload mlp-smoke --tiles 7 -o %s/old.ipuexe", 0, "");
    char *path = in_dir("old.ipuexe"), *before, *after;
    gsize n_before, n_after;
    g_assert_true(g_file_get_contents(path, &before, &n_before, NULL));
    char *line = g_strdup_printf("compile --workload mlp-smoke --tiles 64 --seed 2 -o %s", path);
    struct cli_said s = cli_run_limited(line, 50000);
    g_assert_cmpint(s.status, ==, 2);
    g_assert_nonnull(strstr(s.err, "nothing was changed"));
    cli_said_clear(&s);
    g_assert_true(g_file_get_contents(path, &after, &n_after, NULL));
    g_assert_cmpmem(before, (int)n_before, after, (int)n_after);
    GDir *d = g_dir_open(dir, 0, NULL);
    for (const char *name; (name = g_dir_read_name(d)) != NULL;)
        g_assert_false(g_str_has_prefix(name, "old.ipuexe."));
    g_dir_close(d);
    g_free(before);
    g_free(after);
    g_free(line);
    g_free(path);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    dir = cli_temp_dir();
    g_test_add_func("/cli/options", test_options);
    g_test_add_func("/cli/too-large", test_too_large);
    g_test_add_func("/cli/files", test_files);
    g_test_add_func("/cli/tensors", test_tensors);
    g_test_add_func("/cli/odd_name", test_odd_name);
    g_test_add_func("/cli/indices", test_indices);
    g_test_add_func("/cli/fills", test_fills);
    g_test_add_func("/cli/long_repeat", test_long_repeat);
    g_test_add_func("/cli/full_output", test_full_output);
    g_test_add_func("/cli/infeasible", test_infeasible);
    g_test_add_func("/cli/damage", test_damage);
    g_test_add_func("/cli/device_fault", test_device_fault);
    g_test_add_func("/cli/full_disk", test_full_disk);
    const int status = g_test_run();
    cli_temp_remove(dir);
    return status;
}
