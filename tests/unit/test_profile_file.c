/* Profiles survive their file, damage is refused, pages hold everything and escape names. */
#include "../reseal.h"
#include "profile/profile.h"
#include "target/target.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static struct profile *small_profile(void) {
    struct arena *a = arena_new();
    struct profile *p = arena_alloc(a, sizeof *p);
    p->arena = a;
    p->workload = "a <b> & \"c\"";
    p->plan = "  y grid 1x2x3\n";
    p->device = "device model";
    p->clock_hz = TARGET_CLOCK_HZ;
    p->cycles_measured = 1000;
    p->cycles_predicted = 990;
    p->exchange_cycles = 300;
    p->n_tiles = 3;
    static const char *names[] = {"y", "copy", "operator", "gemm</script>"};
    p->n_names = ARRAY_LEN(names);
    p->names = arena_copy(a, names, sizeof names);
    static const struct profile_step steps[] = {
        {.kind = PROFILE_EXCHANGE, .operation = 0, .reason = 1, .horizon = 200, .words = 64},
        {.kind = PROFILE_COMPUTE, .operation = 0, .reason = 2, .package_step = 1}};
    p->n_steps = 2;
    p->steps = arena_copy(a, steps, sizeof steps);
    static const uint32_t first[] = {0, 2, 4, 5};
    static const struct profile_interval intervals[] = {
        {0, TG_NONE, 1, 0, 400, 400, 64, 0},   {1, 3, 2, 400, 1000, 590, 0, 0},
        {0, TG_NONE, 1, 100, 400, 300, 0, 64}, {1, 3, 2, 400, 900, 500, 0, 0},
        {0, TG_NONE, 0, 0, 350, 0, 0, 0}};
    p->first = arena_copy(a, first, sizeof first);
    p->intervals = arena_copy(a, intervals, sizeof intervals);
    static const struct profile_phase phases[] = {{0, 0, 100, 400, 1, 200, 2}};
    p->n_phases = 1;
    p->phases = arena_copy(a, phases, sizeof phases);
    return p;
}

static uint8_t *file_bytes(size_t *ret_n) {
    GError *error = NULL;
    char *path;
    close(g_file_open_tmp("profile-XXXXXX", &path, &error));
    g_assert_no_error(error);
    struct profile *p = small_profile();
    g_assert_true(profile_write(p, path, &error));
    uint8_t *bytes;
    g_assert_true(file_read(path, 0, &bytes, ret_n, &error));
    g_assert_cmpuint(p->file_bytes, ==, *ret_n);
    profile_free(p);
    g_unlink(path);
    g_free(path);
    return bytes;
}

static void test_round_trip(void) {
    size_t n;
    uint8_t *bytes = file_bytes(&n);
    GError *error = NULL;
    struct profile *p = profile_read_bytes(bytes, n, "p.ipuprof", &error);
    g_assert_no_error(error);
    struct profile *q = small_profile();
    GString *a = g_string_new(NULL), *b = g_string_new(NULL);
    profile_json(p, a);
    profile_json(q, b);
    g_assert_cmpstr(a->str, ==, b->str);
    g_assert_cmpmem(p->intervals, 5 * sizeof *p->intervals, q->intervals, 5 * sizeof *q->intervals);
    struct profile_shares s;
    profile_shares(p, &s);
    /* 3,000 tile cycles: 600 + 500 compute, 300 + 300 exchange behind the last arrival. */
    g_assert_cmpfloat_with_epsilon(s.compute, 1100.0 / 3000, 1e-9);
    g_assert_cmpfloat_with_epsilon(s.exchange, 600.0 / 3000, 1e-9);
    g_assert_cmpfloat_with_epsilon(s.wait, 1300.0 / 3000, 1e-9);
    g_string_free(a, true);
    g_string_free(b, true);
    profile_free(p);
    profile_free(q);
    g_free(bytes);
}

static void test_damage(void) {
    size_t n;
    uint8_t *bytes = file_bytes(&n);
    for (size_t i = 0; i < n; i += i < 2048 ? 1 : 97) {
        GError *error = NULL;
        bytes[i] ^= 16;
        g_assert_null(profile_read_bytes(bytes, n, "p.ipuprof", &error));
        g_assert_nonnull(error);
        g_assert_true(g_str_has_prefix(error->message, "p.ipuprof: "));
        g_error_free(error);
        bytes[i] ^= 16;
    }
    g_free(bytes);
}

/* Damage with a valid seal: nothing is read out of range. */
static void test_resealed(void) {
    size_t n;
    uint8_t *bytes = file_bytes(&n), *copy = g_malloc(n);
    for (uint32_t k = 0; k < 1500; k++) {
        memcpy(copy, bytes, n);
        reseal_damaged(copy, n, k, 4);
        GError *error = NULL;
        struct profile *p = profile_read_bytes(copy, n, "resealed", &error);
        if (p != NULL) {
            GString *s = g_string_new(NULL);
            profile_print(p, s);
            g_string_free(s, true);
        }
        g_clear_error(&error);
        profile_free(p);
    }
    g_free(copy);
    g_free(bytes);
}

static void test_page(void) {
    GError *error = NULL;
    char *path, *page;
    close(g_file_open_tmp("page-XXXXXX", &path, &error));
    struct profile *p = small_profile();
    g_assert_true(profile_page_write(p, path, &error));
    g_assert_true(g_file_get_contents(path, &page, NULL, NULL));
    g_assert_nonnull(strstr(page, "<title>a &lt;b&gt; &amp; &quot;c&quot;</title>"));
    g_assert_nonnull(strstr(page, "gemm\\u003c/script\\u003e"));
    g_assert_null(strstr(page, "@META@"));
    g_assert_null(strstr(page, "@DATA@"));
    g_assert_null(strstr(page, "src=\"http"));
    profile_free(p);
    g_unlink(path);
    g_free(path);
    g_free(page);
}

static void expect_in(const GString *s, const char *part) {
    if (strstr(s->str, part) == NULL) g_error("'%s' is not in:\n%s", part, s->str);
}

static void test_query(void) {
    struct profile *p = small_profile();
    GString *s = g_string_new(NULL);
    struct profile_query q = {.kind = -1, .at = -1, .group = PROFILE_BY_KIND, .samples = 1};
    profile_query_json(p, &q, s);
    /* Exchange: [0, 400), [100, 400), [0, 350): a union of 400, a sum of 1,050. */
    expect_in(s, "{\"name\":\"exchange\",\"samples\":3,\"tiles\":3,\"steps\":1,"
                 "\"timelineCycles\":400,\"workCycles\":1050,\"medianCycles\":350,"
                 "\"p95Cycles\":350,\"maximumCycles\":400,\"firstOffset\":0,\"lastOffset\":400}");
    expect_in(s, "{\"name\":\"compute\",\"samples\":2,\"tiles\":2,\"steps\":1,"
                 "\"timelineCycles\":600,\"workCycles\":1100");
    expect_in(s, "\"samples\":[{\"tile\":0,\"offset\":400,\"cycles\":600,\"step\":1,");
    g_string_truncate(s, 0);
    q = (struct profile_query){.kind = PROFILE_COMPUTE, .at = 950, .group = PROFILE_BY_TILE};
    profile_query_json(p, &q, s);
    expect_in(s, "\"matchedSampleCount\":1,");
    expect_in(s, "\"name\":\"tile 0\"");
    g_string_truncate(s, 0);
    profile_barriers_json(p, s);
    g_assert_cmpstr(s->str, ==,
                    "[{\"phase\":0,\"step\":0,\"firstEntry\":0,\"lastEntry\":100,"
                    "\"lastExit\":400,\"lastArrivingTile\":1,\"arrivalSpreadCycles\":100,"
                    "\"afterLastArrivalCycles\":300,\"scheduledEventCycles\":200}]\n");
    g_string_free(s, true);
    profile_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/profile/round_trip", test_round_trip);
    g_test_add_func("/profile/damage", test_damage);
    g_test_add_func("/profile/resealed", test_resealed);
    g_test_add_func("/profile/page", test_page);
    g_test_add_func("/profile/query", test_query);
    return g_test_run();
}
