/* Contradictory and damaged placement requests are named before anything is solved. */
#include "place/place.h"

static struct place_builder *b;

static uint32_t add(struct place_request r) {
    r.name = place_builder_name(b, "request");
    if (r.bytes == 0) r.bytes = 64;
    return place_builder_add(b, 0, &r);
}

static void expect(int code) {
    struct place_problem *p = place_builder_finish(b, NULL);
    GError *error = NULL;
    if (code == 0) {
        g_assert_true(place_problem_check(p, &error));
        g_assert_no_error(error);
    } else {
        g_assert_false(place_problem_check(p, &error));
        g_assert_error(error, diag_quark(), code);
        g_clear_error(&error);
        g_assert_null(place_solve(p, NULL, &error));
        g_assert_error(error, diag_quark(), code);
        g_test_message("%s", error->message);
        g_clear_error(&error);
    }
    place_problem_free(p);
    const struct place_memory m = place_memory_c600(true);
    b = place_builder_new(1, &m);
}

enum { FIXED = PLACE_FIXED, ALIAS = PLACE_ALIAS, LIVE = 9 };

static void test_fixed(void) {
    add((struct place_request){.flags = FIXED, .address = 0x90000, .last_step = LIVE});
    add((struct place_request){
        .flags = FIXED, .address = 0x9003c, .first_step = 5, .last_step = 12});
    expect(DIAG_PLACE_FIXED_OVERLAP);
    add((struct place_request){.flags = FIXED, .address = 0x90000, .last_step = LIVE});
    add((struct place_request){
        .flags = FIXED, .address = 0x9003c, .first_step = 10, .last_step = 12});
    expect(0);
    add((struct place_request){.flags = FIXED, .address = 0x90004, .align = 32});
    expect(DIAG_PLACE_ALIGN_FIXED);
    add((struct place_request){.flags = FIXED, .address = 0xe7fe0});
    expect(DIAG_PLACE_FIXED_OUTSIDE);
    add((struct place_request){.flags = FIXED, .address = 0x7ffe0, .memory_class = PLACE_STANDARD});
    expect(DIAG_PLACE_FIXED_OUTSIDE);
    add((struct place_request){
        .flags = FIXED, .address = 0x7ffe0, .memory_class = PLACE_INTERLEAVED});
    expect(DIAG_PLACE_FIXED_OUTSIDE);
    add((struct place_request){.flags = FIXED | PLACE_NO_HOST_WINDOW, .address = 0x4fff0});
    expect(DIAG_PLACE_FIXED_OUTSIDE);
    add((struct place_request){.flags = FIXED | PLACE_EXECUTABLE, .address = 0x7ffa0});
    expect(DIAG_PLACE_FIXED_OUTSIDE);
    add((struct place_request){.flags = FIXED | PLACE_EXECUTABLE, .address = 0x5ffa0});
    add((struct place_request){.flags = FIXED, .address = 0x60000});
    expect(DIAG_PLACE_FIXED_ELEMENT); /* the fetch guard reaches into the next element */
    add((struct place_request){.flags = FIXED | PLACE_EXECUTABLE, .address = 0x5ff80});
    add((struct place_request){.flags = FIXED, .address = 0x60000});
    expect(0);
    add((struct place_request){.flags = FIXED | PLACE_EXECUTABLE, .address = 0x5ffa0});
    add((struct place_request){.flags = FIXED | PLACE_NEAR_CODE, .address = 0x60000});
    expect(0);
}

static void test_alias(void) {
    const uint32_t h = add((struct place_request){.bytes = 100});
    add((struct place_request){.flags = ALIAS, .alias = h, .displacement = 40});
    expect(DIAG_PLACE_ALIAS_OUTSIDE);
    add((struct place_request){.bytes = 100});
    add((struct place_request){.flags = ALIAS, .alias = 0, .displacement = 36});
    expect(0);
    add((struct place_request){.flags = ALIAS, .alias = 7});
    expect(DIAG_PLACE_ALIAS_TARGET);
    add((struct place_request){.flags = ALIAS, .alias = 0});
    expect(DIAG_PLACE_ALIAS_TARGET);
    add((struct place_request){.flags = ALIAS, .alias = 1});
    add((struct place_request){.flags = ALIAS, .alias = 0});
    expect(DIAG_PLACE_ALIAS_TARGET);
    add((struct place_request){.bytes = 100, .align = 32});
    add((struct place_request){.flags = ALIAS, .alias = 0, .displacement = 8, .align = 16});
    expect(DIAG_PLACE_ALIGN_ALIAS);
    add((struct place_request){.bytes = 200, .memory_class = PLACE_STANDARD});
    add((struct place_request){.flags = ALIAS, .alias = 0, .memory_class = PLACE_INTERLEAVED});
    expect(DIAG_PLACE_CLASS_ALIAS);
    add((struct place_request){.bytes = 200});
    add((struct place_request){.flags = ALIAS | FIXED, .alias = 0, .address = 0x90000});
    expect(DIAG_PLACE_FIELD);
}

static void test_separation(void) {
    const uint32_t h = add((struct place_request){.bytes = 100});
    place_builder_separate(b, h, h);
    expect(DIAG_PLACE_SEPARATE_SELF);
    add((struct place_request){.bytes = 100});
    add((struct place_request){.flags = ALIAS, .alias = 0, .displacement = 8, .bytes = 8});
    place_builder_separate(b, 0, 1);
    expect(DIAG_PLACE_SEPARATE_SELF);
    add((struct place_request){.flags = FIXED, .address = 0x80000});
    add((struct place_request){
        .flags = FIXED, .address = 0x87000, .first_step = 3, .last_step = 3});
    place_builder_separate(b, 0, 1);
    expect(DIAG_PLACE_FIXED_ELEMENT);
    add((struct place_request){.flags = FIXED, .address = 0x80000});
    add((struct place_request){.flags = FIXED, .address = 0x88000});
    place_builder_separate(b, 0, 1);
    expect(0);
    const struct place_memory m = place_memory_c600(true);
    place_problem_free(place_builder_finish(b, NULL));
    b = place_builder_new(2, &m);
    const struct place_request q = {.bytes = 8, .name = place_builder_name(b, "x")};
    place_builder_separate(b, place_builder_add(b, 0, &q), place_builder_add(b, 1, &q));
    expect(DIAG_PLACE_SEPARATE_TILES);
}

static void test_fields(void) {
    add((struct place_request){.first_step = 3, .last_step = 2});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.align = 24});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.memory_class = 3});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.kind = PLACE_N_KINDS});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.flags = PLACE_ALL_FLAGS + 1});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.flags = PLACE_EXECUTABLE, .memory_class = PLACE_INTERLEAVED});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.bytes = UINT32_MAX});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.bytes = 64, .n_blocks = UINT32_MAX});
    expect(DIAG_PLACE_FIELD);
    add((struct place_request){.bytes = 64, .n_blocks = 2, .stride = 60});
    expect(DIAG_PLACE_STRIDE);
    add((struct place_request){.bytes = 64, .n_blocks = 2, .stride = 72, .align = 16});
    expect(DIAG_PLACE_STRIDE);
    struct place_request q = {.bytes = 64, .name = 3};
    place_builder_add(b, 0, &q);
    expect(DIAG_PLACE_FIELD);
    q = (struct place_request){.name = place_builder_name(b, "empty")};
    place_builder_add(b, 0, &q);
    expect(DIAG_PLACE_FIELD);
}

static void test_memory(void) {
    const struct place_memory good = place_memory_c600(true);
    struct place_memory bad[8];
    for (uint32_t i = 0; i < ARRAY_LEN(bad); i++) bad[i] = good;
    bad[0].end = bad[0].base;
    bad[1].interleaved_base = bad[1].end + 1;
    bad[2].element_bytes = 24;
    bad[3].n_ranges = 0;
    bad[4].n_ranges = PLACE_MAX_RANGES + 1;
    bad[5].range_base[1] = bad[5].range_end[0];
    bad[6].range_end[1] = bad[6].end + 4;
    bad[7].window_base = 0;
    for (uint32_t i = 0; i < ARRAY_LEN(bad); i++) {
        place_problem_free(place_builder_finish(b, NULL));
        b = place_builder_new(1, &bad[i]);
        add((struct place_request){0});
        expect(DIAG_PLACE_MEMORY);
    }
}

/* Nothing to place, tiles without requests, requests that are merely too large. */
static void test_edges(void) {
    expect(0);
    struct place_problem *p = place_builder_finish(b, NULL);
    struct place_result *r = place_solve(p, NULL, NULL);
    g_assert_cmpint(r->status, ==, PLACE_SOLVED);
    place_result_free(r);
    place_problem_free(p);
    const struct place_memory m = place_memory_c600(true);
    b = place_builder_new(3, &m);
    const struct place_request q = {.bytes = 700000, .name = place_builder_name(b, "large")};
    place_builder_add(b, 1, &q);
    p = place_builder_finish(b, NULL);
    r = place_solve(p, NULL, NULL);
    g_assert_cmpint(r->status, ==, PLACE_INFEASIBLE);
    g_assert_cmpint(r->tile_status[0], ==, PLACE_SOLVED);
    g_assert_cmpint(r->tile_status[1], ==, PLACE_INFEASIBLE);
    g_assert_cmpuint(r->proof[0].tile, ==, 1);
    g_assert_cmpuint(r->proof[0].need_bytes, ==, 700000);
    place_result_free(r);
    place_problem_free(p);
    b = place_builder_new(1, &m);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    const struct place_memory m = place_memory_c600(true);
    b = place_builder_new(1, &m);
    g_test_add_func("/place/input/fixed", test_fixed);
    g_test_add_func("/place/input/alias", test_alias);
    g_test_add_func("/place/input/separation", test_separation);
    g_test_add_func("/place/input/fields", test_fields);
    g_test_add_func("/place/input/memory", test_memory);
    g_test_add_func("/place/input/edges", test_edges);
    const int failed = g_test_run();
    place_problem_free(place_builder_finish(b, NULL));
    return failed;
}
