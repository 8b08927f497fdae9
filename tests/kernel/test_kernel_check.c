/* Every kernel agrees with its twin over the sweep, in place, in both regions, off alignment;
 * closed forms hold; code sizes are those of kernel.def; the manual names every kernel. */
#include "kernel/kernel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static char *run(const char *arguments, int *ret_status) {
    g_autofree char *command = g_strdup_printf("%s %s", g_getenv("IPU_STACK"), arguments);
    char *out = NULL;
    g_autoptr(GError) error = NULL;
    g_assert_true(g_spawn_command_line_sync(command, &out, NULL, ret_status, &error));
    return out;
}

static void test_sweep(gconstpointer data) {
    int status;
    g_autofree char *arguments =
        g_strdup_printf("kernel-check --json %s", kernel_name(GPOINTER_TO_UINT(data)));
    g_autofree char *out = run(arguments, &status);
    if (status != 0) g_test_message("%s", out);
    g_assert_cmpint(status, ==, 0);
    g_assert_nonnull(strstr(out, "\"pass\":true"));
}

/* Every rule of every kernel: refused by name; forced, the call does not pass. */
static void test_rules(void) {
    int status;
    g_autofree char *out = run("kernel-check --rules --json", &status);
    if (status != 0) g_test_message("%s", out);
    g_assert_cmpint(status, ==, 0);
    g_auto(GStrv) lines = g_strsplit(out, "\n", -1);
    uint32_t passed = 0;
    for (uint32_t i = 0; lines[i]; i++) passed += strstr(lines[i], "\"pass\":true") != NULL;
    g_assert_cmpuint(passed, ==, N_KERNELS);
}

static void test_docs(void) {
    int status;
    g_autofree char *out = run("kernel-cycles --docs", &status);
    g_assert_cmpint(status, ==, 0);
    for (uint32_t k = 0; k < N_KERNELS; k++) {
        g_autofree char *row = g_strdup_printf("| %s |", kernel_name(k));
        g_assert_nonnull(strstr(out, row));
    }
}

/* Constant parts within 30 cycles of the published ones, or a reason beside them. */
static void test_constants(void) {
    int status;
    g_autofree char *out = run("kernel-cycles --docs", &status);
    g_assert_cmpint(status, ==, 0);
    const char *table = strstr(out, "## Constant parts");
    g_assert_nonnull(table);
    g_auto(GStrv) lines = g_strsplit(table, "\n", -1);
    uint32_t families = 0;
    for (uint32_t i = 1; lines[i] && !g_str_has_prefix(lines[i], "## "); i++) {
        g_auto(GStrv) cells = g_strsplit(lines[i], "|", -1);
        if (g_strv_length(cells) != 10 || !g_ascii_isdigit(g_strstrip(cells[5])[0])) continue;
        families++;
        if (ABS(atoi(cells[7])) > 30) g_assert_cmpstr(g_strstrip(cells[8]), !=, "");
    }
    g_assert_cmpuint(families, >=, 10);
}

/* At most the published figure in every comparable row. */
static void test_published(void) {
    int status;
    g_autofree char *out = run("kernel-cycles --all --json", &status);
    g_assert_cmpint(status, ==, 0);
    g_auto(GStrv) lines = g_strsplit(out, "\n", -1);
    uint32_t rows = 0;
    for (uint32_t i = 0; lines[i]; i++) {
        const char *p = strstr(lines[i], "\"published_cycles\":");
        const char *m = strstr(lines[i], "\"measured_cycles\":");
        if (!p || !m) continue;
        rows++;
        g_assert_cmpuint(g_ascii_strtoull(m + 18, NULL, 10), <=,
                         g_ascii_strtoull(p + 19, NULL, 10));
    }
    g_assert_cmpuint(rows, >=, 100);
}

/* What the binding refuses faults when it is forced onto the model. */
static void test_forced(void) {
    const struct {
        const char *call, *fault;
    } cases[] = {
        /* out and left in one memory element */
        {"kernel-cycles GEMM_F16 --shape 24,32,16,0,1 --address 0x80000,0x82000,0x90000",
         "CONFLICT"},
        /* out of an accumulating product in region 0 */
        {"kernel-cycles GEMM_F16 --shape 24,32,16,0,1 --address 0x60000,0x80000,0x90000", "fault"},
        {"kernel-cycles GELU_F16 --shape 64 --address 0x60004,0x64000", "fault"},
        {"kernel-cycles PACK_F8 --shape 8,32,1 --address 0x82000,0x80000", "CONFLICT"},
        {"kernel-cycles COPY_U64 --shape 640,1 --address 0x60000,0x60400", "CONFLICT"},
        {"kernel-cycles REDUCE_F32 --shape 2,8,16 --address 0x90000,0x60000,0x80000", "fault"},
        {"kernel-cycles REDUCE_F16 --shape 2,64 --address 0x80000,0x60000,0x90000", "fault"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (int force = 0; force < 2; force++) {
            g_autofree char *command = g_strdup_printf("%s %s%s", g_getenv("IPU_STACK"),
                                                       cases[i].call, force ? " --force" : "");
            g_autofree char *out = NULL, *text = NULL;
            int status;
            g_assert_true(g_spawn_command_line_sync(command, &out, &text, &status, NULL));
            g_assert_cmpint(WEXITSTATUS(status), ==, force ? 4 : 2);
            g_assert_nonnull(strstr(text, force ? cases[i].fault : "rule "));
        }
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (uint32_t k = 0; k < N_KERNELS; k++) {
        g_autofree char *path = g_strdup_printf("/kernel/check/%s", kernel_name(k));
        g_test_add_data_func(path, GUINT_TO_POINTER(k), test_sweep);
    }
    g_test_add_func("/kernel/rules", test_rules);
    g_test_add_func("/kernel/docs", test_docs);
    g_test_add_func("/kernel/constants", test_constants);
    g_test_add_func("/kernel/forced", test_forced);
    g_test_add_func("/kernel/published", test_published);
    return g_test_run();
}
