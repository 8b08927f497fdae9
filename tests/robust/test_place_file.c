/* Placement problem files: what is written is read back; damaged files are refused or read as
 * what they were, never trusted. */
#include "../place_random.h"
#include "../reseal.h"

#include <glib/gstdio.h>
#include <string.h>

static char *folder;

static void check_equal(const struct place_problem *a, const struct place_problem *b) {
    g_assert_cmpmem(&a->memory, sizeof a->memory, &b->memory, sizeof b->memory);
    g_assert_cmpuint(a->n_tiles, ==, b->n_tiles);
    g_assert_cmpmem(a->first, 4 * (a->n_tiles + 1), b->first, 4 * (b->n_tiles + 1));
    g_assert_cmpuint(a->n_requests, ==, b->n_requests);
    g_assert_true(memcmp(a->request, b->request, a->n_requests * sizeof *a->request) == 0);
    g_assert_cmpmem(a->pair_a, 4 * a->n_pairs, b->pair_a, 4 * b->n_pairs);
    g_assert_cmpmem(a->pair_b, 4 * a->n_pairs, b->pair_b, 4 * b->n_pairs);
    g_assert_cmpuint(a->n_names, ==, b->n_names);
    for (uint32_t i = 0; i < a->n_names; i++) g_assert_cmpstr(a->name[i], ==, b->name[i]);
}

static void test_round_trip(void) {
    char *path = g_build_filename(folder, "trip.plc", NULL);
    uint32_t n = 0;
    for (uint64_t seed = 1; n < 40; seed++) {
        struct place_problem *p = random_problem(seed, 1 + (uint32_t)(seed % 50), 1024);
        struct place_result *r = place_solve(p, &(struct place_options){.max_steps = 2000}, NULL);
        if (r != NULL) {
            GError *error = NULL;
            const bool map = r->status == PLACE_SOLVED && seed % 2;
            g_assert_true(place_file_write(path, p, map ? r->address : NULL, NULL, &error));
            uint32_t *address = NULL;
            struct place_problem *q = place_file_read(path, &address, NULL, &error);
            g_assert_no_error(error);
            check_equal(p, q);
            g_assert_cmpint(address != NULL, ==, map);
            if (map) g_assert_cmpmem(address, 4 * p->n_requests, r->address, 4 * p->n_requests);
            g_free(address);
            place_problem_free(q);
            n++;
        }
        place_result_free(r);
        place_problem_free(p);
    }
    g_free(path);
}

/* Traffic comes back as it was; an item outside its request is refused. */
static void test_traffic(void) {
    char *path = g_build_filename(folder, "traffic.plc", NULL);
    struct place_problem *p = random_problem(5, 20, 1024);
    uint32_t *first = g_new0(uint32_t, p->n_tiles + 1);
    struct place_traffic_item items[2] = {{.phase = 1, .request = 0, .bytes = 4, .weight = 3},
                                          {.phase = 2, .request = 1, .offset = 0, .bytes = 8, .receive = 1}};
    for (uint32_t t = 0; t < p->n_tiles; t++) first[t + 1] = 2;
    const struct place_traffic traffic = {p->n_tiles, 2, first, items};
    GError *error = NULL;
    g_assert_true(place_file_write(path, p, NULL, &traffic, &error));
    struct place_traffic *back = NULL;
    struct place_problem *q = place_file_read(path, NULL, &back, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(back->n_items, ==, 2);
    g_assert_cmpmem(back->item, sizeof items, items, sizeof items);
    g_assert_cmpmem(back->first, 4 * (p->n_tiles + 1), first, 4 * (p->n_tiles + 1));
    place_problem_free(q);
    items[1].offset = p->request[1].bytes;
    g_assert_true(place_file_write(path, p, NULL, &traffic, &error));
    g_assert_null(place_file_read(path, NULL, &back, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_remove(path);
    g_free(first);
    place_problem_free(p);
    g_free(path);
}

static void write_bytes(const char *path, const char *data, gsize size) {
    g_assert_true(g_file_set_contents(path, data, (gssize)size, NULL));
}

/* A reader may accept a file only if it is a sound problem (unused bytes of the database differ).
 */
static bool try_read(const char *path) {
    GError *error = NULL;
    uint32_t *address = NULL;
    struct place_problem *p = place_file_read(path, &address, NULL, &error);
    if (p == NULL) {
        g_assert_nonnull(error);
        g_clear_error(&error);
        return false;
    }
    g_assert_no_error(error);
    g_assert_true(place_problem_check(p, NULL));
    g_free(address);
    place_problem_free(p);
    return true;
}

static void test_damage(void) {
    char *good = g_build_filename(folder, "good.plc", NULL);
    char *bad = g_build_filename(folder, "bad.plc", NULL);
    struct place_problem *p = NULL;
    struct place_result *r = NULL;
    for (uint64_t seed = 3; r == NULL || r->status != PLACE_SOLVED; seed++) {
        place_result_free(r);
        place_problem_free(p);
        p = random_problem(seed, 30, 1024);
        r = place_solve(p, NULL, NULL);
    }
    g_assert_true(place_file_write(good, p, r->address, NULL, NULL));
    char *data;
    gsize size;
    g_assert_true(g_file_get_contents(good, &data, &size, NULL));
    for (gsize cut = 0; cut < size; cut += 1999) {
        write_bytes(bad, data, cut);
        g_assert_false(try_read(bad));
    }
    uint32_t n_refused = 0;
    uint8_t *copy = g_malloc(size);
    for (uint32_t k = 0; k < 400; k++) {
        memcpy(copy, data, size);
        const gsize at = rand_u64(1, 9, k) % size;
        copy[at] ^= (uint8_t)(1 << (k % 8));
        write_bytes(bad, (char *)copy, size);
        g_assert_false(try_read(bad)); /* the seal */
        memcpy(copy, data, size);
        reseal_damaged(copy, size, k, 64);
        write_bytes(bad, (char *)copy, size);
        n_refused += !try_read(bad); /* the checks behind it */
    }
    g_free(copy);
    g_test_message("%u of 400 damaged files with a new seal refused", n_refused);
    g_assert_cmpuint(n_refused, >, 100);
    write_bytes(bad, "SQLite format 3", 16);
    g_assert_false(try_read(bad));
    g_free(data);
    place_result_free(r);
    place_problem_free(p);
    g_remove(good);
    g_remove(bad);
    g_free(good);
    g_free(bad);
}

/* A file that cannot be written leaves no trace and says so. */
static void test_write_fails(void) {
    struct place_problem *p = random_problem(1, 5, 1024);
    char *path = g_build_filename(folder, "no", "such", "folder.plc", NULL);
    GError *error = NULL;
    g_assert_false(place_file_write(path, p, NULL, NULL, &error));
    g_assert_nonnull(error);
    g_clear_error(&error);
    g_free(path);
    place_problem_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    folder = g_dir_make_tmp("place-XXXXXX", NULL);
    g_test_add_func("/place/file/round_trip", test_round_trip);
    g_test_add_func("/place/file/traffic", test_traffic);
    g_test_add_func("/place/file/damage", test_damage);
    g_test_add_func("/place/file/write_fails", test_write_fails);
    const int failed = g_test_run();
    char *trip = g_build_filename(folder, "trip.plc", NULL);
    g_remove(trip);
    g_free(trip);
    g_rmdir(folder);
    g_free(folder);
    return failed;
}
