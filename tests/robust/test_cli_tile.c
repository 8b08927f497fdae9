/* tile-run and tile-debug as their users see them: sums of cycles, members of the JSON, results under the
 * debugger equal to those of a run, one report with all fields for every fault that a source can make. */
#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *folder;

static char *shell(const char *command, int want) {
    char *line = g_strdup_printf("cd '%s/examples/kernels' && PATH=\"$(dirname '%s'):$PATH\" && %s",
                                 g_getenv("IPU_SOURCE"), g_getenv("IPU_STACK"), command);
    const char *const argv[] = {"sh", "-c", line, NULL};
    char *out, *err;
    int status;
    GError *error = NULL;
    g_spawn_sync(NULL, (char **)(void *)argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &out, &err, &status, &error);
    g_assert_no_error(error);
    if (status != want << 8) g_error("%s: status %d, wanted %d\n%s%s", command, status >> 8, want, out, err);
    g_free(err);
    g_free(line);
    return out;
}

static JsonParser *shell_json(const char *command, int want, JsonObject **ret) {
    char *out = shell(command, want);
    JsonParser *p = json_parser_new();
    GError *error = NULL;
    json_parser_load_from_data(p, out, -1, &error);
    g_assert_no_error(error);
    *ret = json_node_get_object(json_parser_get_root(p));
    g_free(out);
    return p;
}

static int64_t sum(JsonObject *o, const char *array, const char *member) {
    JsonArray *a = json_object_get_array_member(o, array);
    int64_t total = 0;
    for (guint i = 0; i < json_array_get_length(a); i++)
        total += json_object_get_int_member(json_array_get_object_element(a, i), member);
    return total;
}

/* Per context, label and instruction: the same total; a supervisor's is the whole run. */
static void test_sums(void) {
    static const struct { const char *arguments; bool supervisor; int status; } runs[] = {
        {"vector_add.S", false, 0},
        {"vector_add.S --workers 1", false, 0},
        {"vector_add.S --max-cycles 100", false, 4},
        {"-s dot_product.S -e dot_product", true, 0},
        {"-s amp_product.S -e amp_product", true, 0},
        {"-s amp_product.S -e amp_product --max-cycles 200", true, 4},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        char *command = g_strdup_printf("ipu-stack tile-run %s --cycles --json", runs[i].arguments);
        JsonObject *o;
        JsonParser *p = shell_json(command, runs[i].status, &o);
        int64_t total = sum(o, "workers", "cycles");
        g_assert_cmpint(sum(o, "workers", "slots"), ==, json_object_get_int_member(o, "worker_slots"));
        g_assert_cmpint(total, ==, 6 * json_object_get_int_member(o, "worker_slots"));
        if (runs[i].supervisor) {
            const int64_t own = json_object_get_int_member(json_object_get_object_member(o, "supervisor"), "cycles");
            g_assert_cmpint(own, ==, json_object_get_int_member(o, "cycles"));
            total += own;
        }
        g_assert_cmpint(sum(o, "labels", "cycles"), ==, total);
        g_assert_cmpint(sum(o, "instructions", "cycles"), ==, total);
        g_assert_cmpint(sum(o, "instructions", "issued"), ==, sum(o, "labels", "issued"));
        g_object_unref(p);
        g_free(command);
    }
}

/* Stepping, breakpoints and watches change nothing: memory and cycles of a fused run. */
static void test_debugger_is_neutral(void) {
    static const struct { const char *arguments, *dump; } runs[] = {
        {"vector_add.S", "c:768:f16"},
        {"-s dot_product.S -e dot_product", "dot_result:4:f32"},
        {"-s amp_product.S -e amp_product", "amp_c:768:f16"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(runs); i++) {
        char *run = g_strdup_printf("ipu-stack tile-run %s --dump %s", runs[i].arguments, runs[i].dump);
        char *debug = g_strdup_printf("printf 'watch 1:m0\\nstep 100\\ndelete\\ncontinue\\nmemory %s\\n' | "
                                      "ipu-stack tile-debug %s", runs[i].dump, runs[i].arguments);
        char *a = shell(run, 0), *b = shell(debug, 0);
        g_assert_nonnull(strstr(a, "\n0x"));
        g_assert_cmpstr(strstr(a, "\n0x"), ==, strstr(b, "\n0x"));
        const char *after = strstr(a, "done after "), *at = strstr(b, "done at cycle ");
        g_assert_cmpint(atoi(after + strlen("done after ")), ==, atoi(at + strlen("done at cycle ")));
        g_free(a);
        g_free(b);
        g_free(run);
        g_free(debug);
    }
}

/* --- Faults. --- */

struct program {
    const char *fault, *options, *body; /* of main; `s` in options: supervisor code */
};
static const struct program PROGRAMS[] = {
    {"PC_RANGE", "", "setzi $m0, 0x80000\n br $m0"},
    {"PC_MISALIGNED", "", "setzi $m0, main + 2\n br $m0"},
    {"BUNDLE_MISALIGNED", "", "nop\n .long 0x99e00000, 0x99d00000"},
    {"INSTR_UNDEFINED", "", ".long 0x0fffffff"},
    {"FETCH_UNWRITTEN", "", "setzi $m0, 0x50000\n br $m0"},
    {"CSR_INVALID", "", "get $m0, 0x99"},
    {"MODE_SUPERVISOR", "", ".long 0x41800002"},
    {"MODE_WORKER", "-s", ".long 0x43f04000"},
    {"ROW_WITHOUT_FABRIC", "-s", "send 1, 0, 1"},
    {"TRAP", "", "trap 1"},
    {"TRAP", "-s", "trap 0"},
    {"END_WORKERS", "-s", "setzi $m0, main\n runall $m0, $m15, 0\n br $m10"},
    {"ADDRESS_RANGE", "", "ld32 $m1, $m15, $m15, 1"},
    {"ADDRESS_MISALIGNED", "", "setzi $m0, 0x60002\n ld32 $m1, $m0, $m15, 0"},
    {"ADDRESS_REGION", "--word 0x60000=1,2,3,4", "ld128 $a0:3, $m13, $m15, 0"},
    {"READ_UNWRITTEN", "", "ld32 $m1, $m13, $m15, 1"},
    {"READ_UNDEFINED", "", "add $m1, $m2, 1"},
    {"ACCUMULATORS_UNDEFINED", "", "f16v8acc $a12:15"},
    {"PRNG_UNSEEDED", "", "urand32 $a0"},
    {"TAS_UNDEFINED", "", "f32v2axpy $a0:1, $azeros, $azeros"},
    {"RUN_ENTRY", "-s", "setzi $m0, 0x90000\n runall $m0, $m15, 0"},
    {"RUN_BASE", "-s", "setzi $m0, main\n setzi $m1, 2\n runall $m0, $m1, 0"},
    {"SYNC_ZONE", "-s", "sync 9"},
    {"DEADLOCK", "-s", "sync 3"},
    {"RACE_WRITE_WRITE", "--races", "setzi $m0, 1\n st32 $m0, $m13, $m15, 0\n exitz $m15"},
};

/* tile, context, pc, symbol, source line, window, registers, cycle, operation: each in the object. */
static void check_report(const struct program *k, JsonObject *o) {
    g_assert_cmpstr(json_object_get_string_member(o, "stop"), ==, "fault");
    JsonObject *f = json_object_get_object_member(o, "fault");
    g_assert_cmpstr(json_object_get_string_member(f, "name"), ==, k->fault);
    g_assert_cmpint(json_object_get_int_member(f, "number"), >, 0);
    static const char *const members[] = {"text", "exception", "cause", "cause_text", "tile", "context", "context_name",
                                          "pc", "symbol", "offset", "file", "line", "where", "cycle", "address",
                                          "owner", "value", "operation", "window", "registers"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(members); i++)
        if (!json_object_has_member(f, members[i])) g_error("%s: no member %s", k->fault, members[i]);
    const bool supervisor = g_str_has_prefix(k->options, "-s");
    g_assert_cmpint(json_object_get_int_member(f, "context") == 0, ==, supervisor);
    g_assert_true(g_str_has_prefix(json_object_get_string_member(f, "operation"), "main"));
    const int64_t pc = json_object_get_int_member(f, "pc");
    if (strcmp(k->fault, "PC_RANGE") == 0 || strcmp(k->fault, "END_WORKERS") == 0 ||
        strcmp(k->fault, "FETCH_UNWRITTEN") == 0)
        return; /* no place of the program */
    g_assert_cmpstr(json_object_get_string_member(f, "symbol"), ==, "main");
    g_assert_nonnull(strstr(json_object_get_string_member(f, "file"), "fault.S"));
    g_assert_cmpint(json_object_get_int_member(f, "line"), >=, 3);
    JsonArray *window = json_object_get_array_member(f, "window");
    bool here = false;
    for (guint i = 0; i < json_array_get_length(window); i++)
        here |= json_object_get_int_member(json_array_get_object_element(window, i), "address") == pc;
    g_assert_true(here || pc % 4 != 0);
}

static void check_text(const struct program *k, const char *text) {
    static const char *const parts[] = {"tile 0, ", ", pc 0x", ", cycle ", "\nat ", "\nexception ", "\noperation main",
                                        "\nm0  ", "\ncontexts\n"};
    g_assert_nonnull(strstr(text, k->fault));
    for (uint32_t i = 0; i < G_N_ELEMENTS(parts); i++)
        if (strstr(text, parts[i]) == NULL) g_error("%s: '%s' is not in\n%s", k->fault, parts[i], text);
}

static void test_reports(void) {
    char *path = g_build_filename(folder, "fault.S", NULL);
    for (uint32_t i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        const struct program *k = &PROGRAMS[i];
        char *source = g_strdup_printf(".globl main\nmain:\n %s\n", k->body);
        g_assert_true(g_file_set_contents(path, source, -1, NULL));
        char *run = g_strdup_printf("ipu-stack tile-run %s -e main %s", path, k->options);
        char *json = g_strdup_printf("%s --json", run);
        char *debug = g_strdup_printf("echo continue | ipu-stack tile-debug %s -e main %s", path, k->options);
        JsonObject *o;
        JsonParser *p = shell_json(json, 4, &o);
        check_report(k, o);
        char *text = shell(run, 4), *said = shell(debug, 4);
        check_text(k, text);
        check_text(k, said);
        g_object_unref(p);
        g_free(text);
        g_free(said);
        g_free(source);
        g_free(run);
        g_free(json);
        g_free(debug);
    }
    remove(path);
    g_free(path);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("ipu-stack-XXXXXX", NULL);
    g_test_add_func("/cli/tile/sums", test_sums);
    g_test_add_func("/cli/tile/debugger", test_debugger_is_neutral);
    g_test_add_func("/cli/tile/reports", test_reports);
    const int status = g_test_run();
    rmdir(folder);
    g_free(folder);
    return status;
}
