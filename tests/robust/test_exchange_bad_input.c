/* Bad problems and rows through the commands: every kind of bad input is refused with one line that names
 * transfer, tile and reason, status 2, and nothing on standard output; damaged files never crash. */
#include "../cli_spawn.h"

#include "base/base.h"
#include "exchange/exch.h"
#include "fabric/fabric.h"

struct place {
    char *folder, *file[2]; /* problem as JSON and as SQLite */
};

static struct place place_new(void) {
    struct place p = {.folder = g_dir_make_tmp("exchange-XXXXXX", NULL)};
    p.file[0] = g_build_filename(p.folder, "p.json", NULL);
    p.file[1] = g_build_filename(p.folder, "p.exch", NULL);
    return p;
}
static void place_free(struct place *p) {
    for (uint32_t k = 0; k < 2; k++) {
        g_unlink(p->file[k]);
        g_free(p->file[k]);
    }
    g_rmdir(p->folder);
    g_free(p->folder);
}

/* Refused: status 2, one line on stderr with every part, nothing on stdout. */
static void refused(const char *line, const char *const *parts) {
    struct cli_said s = cli_run(line);
    bool right = s.status == 2 && s.out[0] == 0 && strchr(s.err, '\n') == s.err + strlen(s.err) - 1;
    for (uint32_t k = 0; right && parts[k] != NULL; k++) right = strstr(s.err, parts[k]) != NULL;
    if (!right) g_error("%s\nstatus %d, stdout '%.80s', stderr:\n%s", line, s.status, s.out, s.err);
    cli_said_clear(&s);
}

/* --- Bad problems --- */

struct bad {
    const char *what;
    const char *transfers; /* between the brackets; a further key of the phase may follow */
    const char *parts[4];  /* transfer, tile, reason */
};
#define FROM(tile, at) "{\"source\":" #tile ",\"source_addresses\":[" #at "],"
#define TO(list, n) "\"destinations\":[" list "],\"words\":" #n "}"
/* 0x50000 = 327680, 0x80000 = 524288, 0x90000 = 589824, SRAM is 0x4c000 = 311296 .. 0xe8000 = 950272. */
static const struct bad bads[] = {
    {"overlap", FROM(0, 327680) TO("[2,589824]", 40) "," FROM(4, 327680) TO("[2,589980]", 8) "]",
     {"transfer 1", "tile 2", "overlaps a destination of transfer 0"}},
    {"overlap-in-one", FROM(0, 327680) TO("[2,589824],[3,589824]", 40) "," FROM(0, 328000) TO("[3,589824]", 1) "]",
     {"transfer 1", "tile 3", "overlaps a destination of transfer 0"}},
    {"source-below", FROM(5, 311292) TO("[2,589824]", 8) "]", {"transfer 0", "tile 5", "outside SRAM"}},
    {"source-above", FROM(5, 950268) TO("[2,589824]", 2) "]", {"transfer 0", "tile 5", "outside SRAM"}},
    {"destination-below", FROM(0, 327680) TO("[2,589824],[7,311292]", 8) "]", {"transfer 0", "tile 7", "outside SRAM"}},
    {"destination-above", FROM(0, 327680) TO("[7,950244]", 8) "]", {"transfer 0", "tile 7", "outside SRAM"}},
    {"source-odd", FROM(9, 327682) TO("[2,589824]", 8) "]", {"transfer 0", "tile 9", "not a multiple of 4"}},
    {"stride-odd", "{\"source\":9,\"source_addresses\":[327680,327746]," TO("[2,589824]", 8) "]",
     {"transfer 0", "tile 9", "stride is not a multiple of 4"}},
    {"destination-odd", FROM(0, 327680) TO("[3,589825]", 8) "]", {"transfer 0", "tile 3", "not a multiple of 4"}},
    {"duplicate", FROM(0, 327680) TO("[2,589824],[3,589824],[2,600000]", 8) "]", {"transfer 0", "tile 2", "recipient twice"}},
    {"long", FROM(0, 327680) TO("[2,589824]", 8) "," FROM(11, 327680) TO("[3,589824]", 4149) "]",
     {"transfer 1", "tile 11", "4149 items", "at most 4148"}},
    {"cycle", FROM(0, 327680) TO("[2,589824]", 8) "," FROM(4, 327680) "\"after\":[2]," TO("[3,589824]", 8) "," FROM(6, 327680)
     "\"after\":[1]," TO("[5,589824]", 8) "]", {"transfer 1", "tile 4", "form a cycle"}},
    {"cycle-self", FROM(8, 327680) "\"after\":[0]," TO("[2,589824]", 8) "]", {"transfer 0", "tile 8", "form a cycle"}},
    {"after-nothing", FROM(8, 327680) "\"after\":[7]," TO("[2,589824]", 8) "]", {"transfer 0", "tile 8", "name no transfer"}},
    {"row-too-long", FROM(0, 327680) TO("[2,589824]", 8) "],\"row_address\":458752,\"row_bytes\":8",
     {"transfer 0", "tile 0", "row has", "8 are reserved"}},
    {"row-element", FROM(0, 327680) TO("[2,458800]", 8) "],\"row_address\":458752,\"row_bytes\":64",
     {"transfer 0", "tile 2", "holds exchange rows"}},
    {"no-tile", FROM(0, 327680) TO("[2,589824],[1472,589824]", 8) "]", {"transfer 0", "tile 1472", "does not exist"}},
    {"no-words", FROM(3, 327680) TO("[2,589824]", 0) "]", {"transfer 0", "tile 3", "0 words"}},
    {"nobody", FROM(3, 327680) TO("", 8) "]", {"transfer 0", "tile 3", "0 recipients"}},
    {"self-only", FROM(3, 327680) TO("[3,589824]", 8) "]", {"transfer 0", "tile 3", "own only recipient"}},
    {"self-element", FROM(3, 327680) TO("[3,327776],[4,589824]", 8) "]", {"transfer 0", "tile 3", "share a memory element"}},
    {"width", FROM(3, 327680) "\"width\":\"OnlyPaired64\"," TO("[8,589824]", 8) "]", {"transfer 0", "tile 3", "paired width needs"}},
};

/* As JSON, and where the reader accepts it as data, as SQLite too. */
static void test_bad(gconstpointer data) {
    const struct bad *b = data;
    struct place p = place_new();
    char *text = g_strdup_printf("{\"schema_version\":4,\"tile_count\":1472,\"phases\":[{\"phase\":0,"
                                 "\"transfers\":[%s}]}", b->transfers);
    g_assert_true(g_file_set_contents(p.file[0], text, -1, NULL));
    struct exch_problem_set *set = exch_file_read(p.file[0], NULL);
    g_assert_nonnull(set); /* well formed: what is wrong is the problem */
    g_assert_true(exch_file_write(p.file[1], set, NULL));
    exch_problem_set_free(set);
    const char *parts[5] = {b->parts[0], b->parts[1], b->parts[2], b->parts[3], NULL};
    for (uint32_t k = 0; k < 2; k++) {
        char *line = g_strdup_printf("exchange-schedule-bench %s", p.file[k]);
        refused(line, parts);
        g_free(line);
    }
    g_free(text);
    place_free(&p);
}

/* --- Damaged problem files --- */

/* Cut and flipped: refused with the file's name, or read as another problem; never a crash. */
static void test_damaged(gconstpointer data) {
    const uint32_t kind = GPOINTER_TO_UINT(data);
    struct place p = place_new();
    struct exch_problem *one = exch_generate("random", 4, false, NULL);
    const struct exch_problem_set set = {1, &one, (uint32_t[]){0}};
    g_assert_true(exch_file_write(p.file[kind], &set, NULL));
    char *bytes, *line = g_strdup_printf("exchange-schedule-bench %s", p.file[kind]);
    gsize size;
    g_assert_true(g_file_get_contents(p.file[kind], &bytes, &size, NULL));
    for (uint32_t k = 0; k < 8; k++) {
        g_assert_true(g_file_set_contents(p.file[kind], bytes, (gssize)(size * k / 8), NULL));
        const char *const parts[] = {kind == 0 ? "p.json" : "p.exch", NULL};
        refused(line, parts);
    }
    for (uint32_t k = 0; k < 12; k++) {
        const gsize at = (gsize)(rand_u64(7, kind, k) % size);
        bytes[at] = (char)(bytes[at] ^ 1 << k % 8);
        g_assert_true(g_file_set_contents(p.file[kind], bytes, (gssize)size, NULL));
        bytes[at] = (char)(bytes[at] ^ 1 << k % 8);
        struct cli_said s = cli_run(line);
        if (s.status < 0 || s.status > 2 || (s.status == 2) != (s.err[0] != 0))
            g_error("byte %zu: status %d, stderr:\n%s", (size_t)at, s.status, s.err);
        cli_said_clear(&s);
    }
    g_free(bytes);
    g_free(line);
    exch_problem_free(one);
    place_free(&p);
}

/* --- Damaged rows --- */

/* One row of a good file changed: the replay fails and names condition (or the tile's other end), tile and slot, as text and as
 * JSON; a file that is cut is refused. */
static void test_rows(void) {
    struct place p = place_new();
    GError *error = NULL;
    char *problem = g_build_filename(g_getenv("IPU_SOURCE"), "tests/data/phases/pair-5.json.zst", NULL);
    char *good = g_build_filename(g_getenv("IPU_SOURCE"), "tests/data/phases/pair-5.rows.zst", NULL);
    struct fabric_rows rows;
    g_assert_true(fabric_rows_read(good, &rows, &error));
    char *line = g_strdup_printf("exchange-replay %s %s", problem, p.file[0]);
    char *json = g_strdup_printf("%s --json", line);
    g_assert_true(fabric_rows_write(p.file[0], &rows, NULL));
    cli_expect(line, 0, "");
    for (uint32_t k = 0; k < 10; k++) {
        const uint32_t i = (uint32_t)(rand_u64(3, 1, k) % rows.n_active);
        const uint32_t first = rows.first[i], n = rows.first[i + 1] - first;
        uint32_t *word = &rows.words[first + (uint32_t)(rand_u64(3, 2, k) % n)], old = *word;
        *word = k == 0 ? 0 : *word ^ 1u << 19; /* an unknown opcode; another length or address */
        g_assert_true(fabric_rows_write(p.file[0], &rows, NULL));
        struct cli_said s = cli_run(line), j = cli_run(json);
        g_assert_cmpint(s.status, ==, 1);
        g_assert_cmpint(j.status, ==, 1);
        g_assert_nonnull(strstr(s.out, "FAILED"));
        const bool fault = strstr(s.out, "fault ") != NULL && strstr(s.out, ") tile ") != NULL;
        g_assert_true(fault || strstr(s.out, "  first: tile ") != NULL); /* only its end is elsewhere */
        g_assert_cmpint(fault, ==, strstr(j.out, "\"first_error\": {\"number\"") != NULL);
        g_assert_nonnull(strstr(j.out, "\"verified\": false"));
        cli_said_clear(&s);
        cli_said_clear(&j);
        *word = old;
    }
    char *bytes;
    gsize size;
    g_assert_true(fabric_rows_write(p.file[0], &rows, NULL));
    g_assert_true(g_file_get_contents(p.file[0], &bytes, &size, NULL));
    for (uint32_t k = 0; k < 6; k++) {
        g_assert_true(g_file_set_contents(p.file[0], bytes, (gssize)(size * k / 6), NULL));
        refused(line, (const char *const[]){"p.json", NULL});
    }
    g_free(bytes);
    g_free(line);
    g_free(json);
    g_free(problem);
    g_free(good);
    fabric_rows_clear(&rows);
    place_free(&p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    for (size_t k = 0; k < ARRAY_LEN(bads); k++) {
        char *path = g_strdup_printf("/exchange/bad/%s", bads[k].what);
        g_test_add_data_func(path, &bads[k], test_bad);
        g_free(path);
    }
    g_test_add_data_func("/exchange/damaged/json", GUINT_TO_POINTER(0), test_damaged);
    g_test_add_data_func("/exchange/damaged/sqlite", GUINT_TO_POINTER(1), test_damaged);
    g_test_add_func("/exchange/damaged/rows", test_rows);
    return g_test_run();
}
