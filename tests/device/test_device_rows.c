/* Shared exchange rows on the device model: equal rows, rows told apart by base registers, patched rows,
 * each inside and outside of a repeat; sends that move by several strides. Every way of sharing gives the
 * same outputs. */
#include "../device_session.h"

enum { N_PARTS = 24, PART_BYTES = 16, BYTES = N_PARTS * PART_BYTES, N_BUFFERS = 3 };

/* A transfer of one part of `from` to the same part of `to`. */
static void send_part(struct tile_graph *g, uint32_t from, uint32_t to, uint32_t part) {
    dg_transfer(g, from, PART_BYTES / 4, &to, 1);
    struct tg_transfers *x = &g->transfers;
    x->source[x->n - 1].offset = x->recipient[x->n_recipients - 1].offset = part * PART_BYTES;
}

/* Tile 0 sends buffer k to tile 1 part by part, every other part to tile 2 also in the last phase. Buffers
 * of different sizes between them keep the distances of sources and destinations apart; `other` (or none)
 * gives one part of phase 2, so that its row is told from the others by a patch. */
struct rows_graph {
    struct tile_graph *g;
    uint32_t in[N_BUFFERS], out[N_BUFFERS], other;
};
static struct rows_graph rows_graph(bool with_other, uint32_t n_repeats) {
    struct rows_graph r = {.g = dg_new(3)};
    static const char *const name[][2] = {{"x0", "y0"}, {"x1", "y1"}, {"x2", "y2"}};
    for (uint32_t k = 0; k < N_BUFFERS; k++) {
        r.in[k] = dg_alloc(r.g, 0, BYTES, TG_HOST_INPUT, name[k][0]);
        dg_bind(r.g, r.in[k], TG_BIND_INPUT, name[k][0]);
        r.out[k] = dg_alloc(r.g, 1, BYTES + 64 * k, TG_HOST_OUTPUT, name[k][1]);
        r.g->allocs.align[r.out[k]] = 64;
        dg_bind(r.g, r.out[k], TG_BIND_OUTPUT, name[k][1]);
    }
    r.other = dg_alloc(r.g, 0, BYTES, TG_HOST_INPUT, "z");
    dg_bind(r.g, r.other, TG_BIND_INPUT, "z");
    if (n_repeats > 0) dg_step(r.g, TG_REPEAT_BEGIN, "layers")->count = n_repeats;
    for (uint32_t k = 0; k < N_BUFFERS; k++) {
        dg_step(r.g, TG_EXCHANGE, "send");
        for (uint32_t i = 0; i < N_PARTS; i++)
            send_part(r.g, with_other && k == 2 && i == 7 ? r.other : r.in[k], r.out[k], i);
    }
    if (n_repeats > 0) dg_step(r.g, TG_REPEAT_END, "layers");
    return r;
}

static void expect_outputs(struct session *s, bool with_other) {
    GError *error = NULL;
    static const char *const name[] = {"y0", "y1", "y2"};
    for (uint32_t k = 0; k < N_BUFFERS; k++) {
        const uint32_t n = (BYTES + 64 * k) / 2, part = PART_BYTES / 2;
        uint16_t got[BYTES], want[BYTES / 2], z[BYTES / 2];
        fill_pattern(want, BYTES / 2, k);
        fill_pattern(z, BYTES / 2, 9);
        if (with_other && k == 2) memcpy(want + 7 * part, z + 7 * part, PART_BYTES);
        session_get(s, name[k], got, 2 * n, &error);
        g_assert_no_error(error);
        g_assert_cmpmem(got, BYTES, want, BYTES);
    }
}

/* Compiles with one way of sharing, runs twice, compares. */
static void run_rows(bool with_other, uint32_t n_repeats, uint32_t row_share, struct compile_result *ret) {
    struct rows_graph r = rows_graph(with_other, n_repeats);
    GError *error = NULL;
    tg_lifetimes(r.g);
    g_assert_true(compile_tile_graph(r.g, &(struct compile_options){.row_share = row_share}, ret, &error));
    g_assert_nonnull(ret->package);
    struct session *s = open_session(ret->package);
    set_pattern(s, "x0", BYTES / 2, 0);
    set_pattern(s, "x1", BYTES / 2, 1);
    set_pattern(s, "x2", BYTES / 2, 2);
    set_pattern(s, "z", BYTES / 2, 9);
    for (uint32_t again = 0; again < 2; again++) {
        run_ok(s);
        expect_outputs(s, with_other);
    }
    uint64_t measured;
    g_assert_true(session_cycles(s, &measured));
    const uint64_t predicted = ret->package->meta.cycles_predicted;
    g_assert_cmpuint(measured, <=, predicted + 6 * (1 + n_repeats));
    g_assert_cmpuint(predicted, <=, measured + 6 * (1 + n_repeats));
    session_close(s);
    tile_graph_free(r.g);
}

static void test_share(gconstpointer data) {
    const uint32_t n_repeats = GPOINTER_TO_UINT(data);
    uint32_t bytes[3];
    for (uint32_t share = 0; share < 3; share++) {
        struct compile_result r;
        run_rows(true, n_repeats, share + 1, &r);
        bytes[share] = r.package->meta.row_bytes_max;
        g_test_message("sharing %u: %u B, unshared %u; %u shared, %u by bases, %u patched", share, bytes[share],
                       r.rows.unshared, r.rows.n_shared, r.rows.n_based, r.rows.n_patched);
        g_assert_cmpuint(r.rows.n_based > 0, ==, share >= 1);
        g_assert_cmpuint(r.rows.n_patched > 0, ==, share >= 2);
        g_assert_cmpuint(bytes[share], <=, r.rows.unshared);
        compile_result_free(&r);
    }
    g_assert_cmpuint(bytes[1], <, bytes[0]);
    g_assert_cmpuint(bytes[2], <, bytes[1]);
}

/* By itself: equal rows fit, so no cycle is spent on bases and patches. */
static void test_automatic(void) {
    struct compile_result r;
    run_rows(false, 3, 0, &r);
    g_assert_cmpuint(r.rows.n_based + r.rows.n_patched, ==, 0);
    compile_result_free(&r);
}

/* Tile 0 sends blocks of two tensors with different strides in one phase: its words are patched at every
 * iteration, 64-bit ones and 32-bit ones. */
static void test_two_strides(void) {
    enum { BLOCKS = 4, N = 96 };
    struct tile_graph *g = dg_new(4);
    const uint32_t a = dg_alloc(g, 0, N, TG_HOST_INPUT, "a"), b = dg_alloc(g, 0, N, TG_HOST_INPUT, "b");
    const uint32_t fixed = dg_alloc(g, 0, N, TG_HOST_INPUT, "c");
    const uint32_t got[] = {dg_alloc(g, 1, N, 0, "a1"), dg_alloc(g, 2, N, 0, "b2"), dg_alloc(g, 3, N, 0, "b3"),
                            dg_alloc(g, 1, N, TG_HOST_OUTPUT, "c1")};
    const uint32_t out_a = dg_alloc(g, 1, N, TG_HOST_OUTPUT, "out a"), out_b = dg_alloc(g, 3, N, TG_HOST_OUTPUT, "out b");
    const uint32_t moving[] = {a, b, out_a, out_b}, stride[] = {N, 2 * N, N, N};
    for (uint32_t i = 0; i < ARRAY_LEN(moving); i++) {
        g->allocs.blocks[moving[i]] = BLOCKS;
        g->allocs.stride[moving[i]] = stride[i];
    }
    dg_step(g, TG_REPEAT_BEGIN, "layers")->count = BLOCKS;
    dg_step(g, TG_EXCHANGE, "send");
    dg_transfer(g, a, N / 4, &got[0], 1);
    dg_transfer(g, b, N / 4, &got[1], 2); /* a pair: may go in 64-bit items */
    dg_transfer(g, fixed, N / 4, &got[3], 1);
    dg_step(g, TG_COMPUTE, "keep");
    dg_call(g, 1, (struct kernel_spec){KERNEL_COPY_U64, {N}}, (uint32_t[]){out_a, got[0]}, 2);
    dg_call(g, 3, (struct kernel_spec){KERNEL_COPY_U64, {N}}, (uint32_t[]){out_b, got[2]}, 2);
    dg_step(g, TG_REPEAT_END, "layers");
    bind_blocks(g, a, TG_BIND_INPUT, "a");
    bind_blocks(g, b, TG_BIND_INPUT, "b");
    dg_bind(g, fixed, TG_BIND_INPUT, "c");
    bind_blocks(g, out_a, TG_BIND_OUTPUT, "a_out");
    bind_blocks(g, out_b, TG_BIND_OUTPUT, "b_out");
    dg_bind(g, got[3], TG_BIND_OUTPUT, "c_out");
    struct package *p = compile(g, (struct compile_options){0});
    struct session *s = open_session(p);
    set_pattern(s, "a", BLOCKS * N / 2, 1);
    set_pattern(s, "b", BLOCKS * N / 2, 2);
    set_pattern(s, "c", N / 2, 3);
    for (uint32_t again = 0; again < 2; again++) {
        run_ok(s);
        expect_pattern(s, "a_out", BLOCKS * N / 2, 1);
        expect_pattern(s, "b_out", BLOCKS * N / 2, 2);
        expect_pattern(s, "c_out", N / 2, 3);
    }
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

/* The body's first phase does not move, its last one does: the base that iteration 2 finds is the one
 * that iteration 1 left. */
static void test_base_left(void) {
    enum { BLOCKS = 4, N = 64 };
    struct tile_graph *g = dg_new(2);
    const uint32_t fixed = dg_alloc(g, 0, N, TG_HOST_INPUT, "c"), w = dg_alloc(g, 0, N, TG_HOST_INPUT, "w");
    const uint32_t mid = dg_alloc(g, 1, N, 0, "mid"), far = dg_alloc(g, 1, N, TG_HOST_OUTPUT, "far");
    const uint32_t out = dg_alloc(g, 1, N, TG_HOST_OUTPUT, "out");
    g->allocs.blocks[w] = g->allocs.blocks[out] = BLOCKS;
    g->allocs.stride[w] = g->allocs.stride[out] = N;
    dg_step(g, TG_REPEAT_BEGIN, "layers")->count = BLOCKS;
    dg_step(g, TG_EXCHANGE, "fixed");
    dg_transfer(g, fixed, N / 4, &mid, 1);
    dg_step(g, TG_COMPUTE, "keep");
    dg_call(g, 1, (struct kernel_spec){KERNEL_COPY_U64, {N}}, (uint32_t[]){out, mid}, 2);
    dg_step(g, TG_EXCHANGE, "moving");
    dg_transfer(g, w, N / 4, &far, 1);
    dg_step(g, TG_REPEAT_END, "layers");
    dg_bind(g, fixed, TG_BIND_INPUT, "c");
    bind_blocks(g, w, TG_BIND_INPUT, "w");
    bind_blocks(g, out, TG_BIND_OUTPUT, "out");
    dg_bind(g, far, TG_BIND_OUTPUT, "far");
    struct package *p = compile(g, (struct compile_options){0});
    struct session *s = open_session(p);
    set_pattern(s, "c", N / 2, 3);
    set_pattern(s, "w", BLOCKS * N / 2, 4);
    run_ok(s);
    GError *error = NULL;
    uint16_t got[BLOCKS * N / 2], want[N / 2], all[BLOCKS * N / 2];
    fill_pattern(want, N / 2, 3);
    fill_pattern(all, BLOCKS * N / 2, 4);
    session_get(s, "out", got, sizeof got, &error);
    g_assert_no_error(error);
    for (uint32_t i = 0; i < BLOCKS; i++) g_assert_cmpmem(got + i * N / 2, N, want, N);
    session_get(s, "far", got, N, &error);
    g_assert_no_error(error);
    g_assert_cmpmem(got, N, all + (BLOCKS - 1) * N / 2, N);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

/* Tile 1 takes parts of buffers, one buffer in each phase, and is filled up with buffers of 8 KiB. */
struct crowd {
    uint32_t n_phases, n_parts;
    bool backwards; /* a pointer for every part */
};
static bool fits_beside(const struct crowd *c, uint32_t n_filled, struct compile_rows *ret) {
    enum { FILL = 8192 };
    struct tile_graph *g = dg_new(2);
    uint32_t from[2], to[2];
    for (uint32_t k = 0; k < c->n_phases; k++) {
        from[k] = dg_alloc(g, 0, c->n_parts * PART_BYTES, TG_HOST_INPUT, "x");
        to[k] = dg_alloc(g, 1, c->n_parts * PART_BYTES, TG_HOST_OUTPUT, "y");
    }
    for (uint32_t i = 0; i < n_filled; i++) dg_alloc(g, 1, FILL, TG_HOST_INPUT | TG_HOST_OUTPUT, "filled");
    for (uint32_t k = 0; k < c->n_phases; k++) {
        dg_step(g, TG_EXCHANGE, "send");
        for (uint32_t i = 0; i < c->n_parts; i++)
            send_part(g, from[k], to[k], c->backwards ? c->n_parts - 1 - i : i);
    }
    tg_lifetimes(g);
    for (uint32_t i = 0; i < g->allocs.n; i++) {
        g->allocs.first_step[i] = 0;
        g->allocs.last_step[i] = g->n_steps - 1;
    }
    GError *error = NULL;
    struct compile_result r;
    g_assert_true(compile_tile_graph(g, &(struct compile_options){0}, &r, &error));
    const bool fits = r.package != NULL;
    *ret = r.rows;
    compile_result_free(&r);
    tile_graph_free(g);
    return fits;
}

/* Rows of the fullest tile 1 that still fits. */
static struct compile_rows fullest(const struct crowd *c, uint32_t n) {
    struct compile_rows rows, next;
    g_assert_true(fits_beside(c, n, &rows));
    while (fits_beside(c, n + 1, &next)) {
        rows = next;
        n++;
    }
    g_test_message("%u filled; reserved %u of estimated %u, stored %u of %u, %u by bases", n, rows.reserved,
                   rows.estimated, rows.stored, rows.unshared, rows.n_based);
    g_assert_cmpuint(rows.stored, <=, rows.reserved);
    return rows;
}

/* What does not fit beside the estimated rows is tried beside fewer: one memory element here. */
static void test_tight(void) {
    const struct crowd c = {.n_phases = 1, .n_parts = 1950, .backwards = true};
    struct compile_rows loose;
    g_assert_true(fits_beside(&c, 56, &loose));
    const struct compile_rows tight = fullest(&c, 56);
    g_assert_cmpuint(tight.reserved + TARGET_ELEMENT_BYTES, ==, loose.reserved);
    g_assert_cmpuint(tight.n_based, ==, 0);
}

/* And when the rows of two phases do not fit there either, the second takes the first one's with bases. */
static void test_tight_bases(void) {
    const struct crowd c = {.n_phases = 2, .n_parts = 1020, .backwards = true};
    struct compile_rows loose;
    g_assert_true(fits_beside(&c, 50, &loose));
    g_assert_cmpuint(loose.n_based, ==, 0);
    const struct compile_rows tight = fullest(&c, 50);
    g_assert_cmpuint(tight.reserved + TARGET_ELEMENT_BYTES, ==, loose.reserved);
    g_assert_cmpuint(tight.n_based, >, 0);
    g_assert_cmpuint(tight.unshared, >, tight.reserved);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/device/rows/share", GUINT_TO_POINTER(0), test_share);
    g_test_add_data_func("/device/rows/share-repeat", GUINT_TO_POINTER(3), test_share);
    g_test_add_func("/device/rows/automatic", test_automatic);
    g_test_add_func("/device/rows/tight", test_tight);
    g_test_add_func("/device/rows/tight-bases", test_tight_bases);
    g_test_add_func("/device/rows/two-strides", test_two_strides);
    g_test_add_func("/device/rows/base-left", test_base_left);
    return g_test_run();
}
