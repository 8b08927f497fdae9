/* Every phase of a compile can be written as a problem, and solved and verified by itself: with the same
 * transfers in every form of file. */
#include "../cli_spawn.h"

#include "exchange/exch.h"

static uint32_t count(const char *text, const char *part) {
    uint32_t n = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) n++;
    return n;
}

static void test_export(void) {
    char *folder = g_dir_make_tmp("export-XXXXXX", NULL);
    static const char *const names[] = {"p.exch", "p.json.zst"};
    uint32_t crc[2] = {0};
    for (uint32_t k = 0; k < 2; k++) {
        char *path = g_build_filename(folder, names[k], NULL), *package = g_build_filename(folder, "p", NULL);
        char *line = g_strdup_printf("compile --workload=siglip-vit-benchmark --vit-small --tiles=64 "
                                     "--no-parameters -o %s --export-exchange-schedule=%s", package, path);
        cli_expect(line, 0, "");
        GError *error = NULL;
        struct exch_problem_set *set = exch_file_read(path, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(set->n_phases, >, 10);
        for (uint32_t i = 0; i < set->n_phases; i++) {
            g_assert_true(exch_problem_check(set->phases[i], &error));
            g_assert_no_error(error);
            crc[k] = crc[k] * 31 + exch_problem_crc(set->phases[i]);
        }
        char *bench = g_strdup_printf("exchange-schedule-bench %s --json", path);
        struct cli_said s = cli_run(bench);
        g_assert_cmpint(s.status, ==, 0);
        g_assert_cmpuint(count(s.out, "\"verified\":true"), ==, set->n_phases);
        cli_said_clear(&s);
        exch_problem_set_free(set);
        g_unlink(path);
        g_unlink(package);
        g_free(path);
        g_free(package);
        g_free(line);
        g_free(bench);
    }
    g_assert_cmphex(crc[0], ==, crc[1]);
    cli_expect("compile --workload=siglip-vit-benchmark --vit-small --tiles=64 --no-parameters -o /dev/null "
               "--export-exchange-schedule=/no/such/folder/p.exch", 2, "/no/such/folder/p.exch");
    g_rmdir(folder);
    g_free(folder);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange/export", test_export);
    return g_test_run();
}
