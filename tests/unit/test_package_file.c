/* Packages survive their file; damage of any kind is refused; the same package gives the same bytes. */
#include "../reseal.h"
#include "package/package.h"
#include "target/target.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

static const uint8_t weights[64] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Two tiles, one exchange and one compute step, an input, a parameter, an output. */
static struct package *small_package(void) {
    struct package *p = package_new();
    struct arena *a = p->arena;
    static const char *names[] = {"copy", "operator", "fill_u64", "x", "runtime.S"};
    p->n_names = ARRAY_LEN(names);
    p->names = arena_copy(a, names, sizeof names);
    p->meta = (struct package_meta){.target = "ipu21", .compiler = "test", .workload = "small",
                                    .isa_version = "1", .plan = "none\n", .n_tiles = 2,
                                    .n_active_tiles = 2, .entry = TARGET_ENTRY_ADDRESS,
                                    .cycles_predicted = 1234};
    p->image_bytes = 4096;
    p->image = arena_alloc(a, p->image_bytes);
    for (uint32_t i = 0; i < p->image_bytes; i++) p->image[i] = (uint8_t)rand_u64(7, 1, i);
    static const uint32_t two[] = {0, 2, 4};
    static const struct package_segment segments[] = {
        {TARGET_ENTRY_ADDRESS, 8, 0, PACKAGE_SEGMENT_CODE},
        {0x5c000, 2048, 8, PACKAGE_SEGMENT_PROGRAM},
        {TARGET_ENTRY_ADDRESS, 8, 0, PACKAGE_SEGMENT_CODE},
        {0x80000, 64, 0, PACKAGE_SEGMENT_ZERO}};
    p->first_segment = arena_copy(a, two, sizeof two);
    p->segments = arena_copy(a, segments, sizeof segments);
    static const struct package_slice slices[] = {
        {.tile = 0, .address = 0x80000, .n_dims = 2, .count = {4, 8}, .tensor_step = {8, 1},
         .mem_step = {32, 2}},
        {.tile = 1, .address = 0x80000, .n_dims = 1, .count = {32}, .tensor_step = {1},
         .mem_step = {2}}};
    p->n_slices = 2;
    p->slices = arena_copy(a, slices, sizeof slices);
    static const struct package_binding bindings[] = {
        {.name = "x", .kind = TG_BIND_INPUT, .format = TG_F16, .n_dims = 2, .shape = {4, 8},
         .first_slice = 0, .end_slice = 1, .data_bytes = 64},
        {.name = "w", .kind = TG_BIND_PARAMETER, .format = TG_F16, .n_dims = 1, .shape = {32},
         .first_slice = 1, .end_slice = 2, .data_bytes = 64, .data = weights},
        {.name = "y", .kind = TG_BIND_OUTPUT, .format = TG_F16, .n_dims = 2, .shape = {4, 8},
         .first_slice = 0, .end_slice = 1, .data_bytes = 64},
        {.name = "i", .kind = TG_BIND_INPUT, .format = TG_U32, .n_dims = 1, .shape = {2},
         .bound = 9, .data_bytes = 8}};
    p->n_bindings = ARRAY_LEN(bindings);
    p->bindings = arena_copy(a, bindings, sizeof bindings);
    static const struct package_step steps[] = {
        {.kind = TG_EXCHANGE, .operation = 0, .reason = 0, .horizon = 99, .messages = 1, .words = 16},
        {.kind = TG_COMPUTE, .operation = 0, .reason = 1}};
    p->n_steps = 2;
    p->steps = arena_copy(a, steps, sizeof steps);
    static const struct package_mark marks[] = {
        {.step = 0, .pc = 0x5c010, .kernel = TG_NONE, .calls = 1},
        {.step = 1, .pc = 0x5c030, .kernel = 2, .calls = 1},
        {.step = 0, .pc = 0x5c010, .kernel = TG_NONE, .calls = 1},
        {.step = 1, .pc = 0x5c030, .kernel = 2, .calls = 1}};
    static const uint32_t end_pc[] = {0x5c040, 0x5c044};
    p->first_mark = arena_copy(a, two, sizeof two);
    p->marks = arena_copy(a, marks, sizeof marks);
    p->end_pc = arena_copy(a, end_pc, sizeof end_pc);
    static const struct package_symbol symbols[] = {{"runtime_start", 0x4c018, 64}};
    p->n_symbols = 1;
    p->symbols = arena_copy(a, symbols, sizeof symbols);
    static const struct package_line lines[] = {{0x4c018, 12, 4}, {0x4c020, 13, 4}};
    p->n_lines = 2;
    p->lines = arena_copy(a, lines, sizeof lines);
    static const uint32_t one[] = {0, 1, 2};
    static const struct package_owner owners[] = {{0x80000, 64, 32, 3, 0, 1},
                                                  {0x80000, 64, 0, 3, 0, 1}};
    p->first_owner = arena_copy(a, one, sizeof one);
    p->owners = arena_copy(a, owners, sizeof owners);
    return p;
}

struct file {
    char *path;
    uint8_t *bytes;
    size_t n;
};

static struct file write_small(const struct package_write_options *o) {
    GError *error = NULL;
    struct file f;
    const int fd = g_file_open_tmp("package-XXXXXX", &f.path, &error);
    g_assert_no_error(error);
    close(fd);
    struct package *p = small_package();
    g_assert_true(package_write(p, f.path, o, &error));
    g_assert_no_error(error);
    package_free(p);
    g_assert_true(file_read(f.path, 0, &f.bytes, &f.n, &error));
    return f;
}

static void file_clear(struct file *f) {
    g_unlink(f->path);
    g_free(f->path);
    g_free(f->bytes);
}

/* Values that a package carries are below the bound of their tensor, which holds indices. */
static void test_bound(void) {
    static const struct {
        uint32_t format, bound;
        bool ok;
    } CASES[] = {{TG_U32, 9, true}, {TG_U32, 8, false}, {TG_U32, 0, true}, {TG_F16, 9, false}};
    static const uint32_t rows[] = {8, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < ARRAY_LEN(CASES); i++) {
        struct package *p = small_package();
        struct package_binding *w = package_binding_find(p, "w");
        w->format = CASES[i].format;
        w->bound = CASES[i].bound;
        w->shape[0] = w->format == TG_U32 ? 16 : 32;
        p->slices[1].count[0] = w->shape[0];
        p->slices[1].mem_step[0] = package_format_bytes(w->format);
        w->data = (const uint8_t *)rows;
        GError *error = NULL;
        g_assert_cmpint(package_check(p, "p", &error), ==, CASES[i].ok);
        if (!CASES[i].ok) g_assert_error(error, diag_quark(), DIAG_PACKAGE_CONTENT);
        g_clear_error(&error);
        package_free(p);
    }
}

static void test_round_trip(void) {
    struct file f = write_small(NULL);
    GError *error = NULL;
    struct package *p = package_read(f.path, &error);
    g_assert_no_error(error);
    struct package *q = small_package();
    g_assert_cmpuint(p->file_bytes, ==, f.n);
    g_assert_cmpstr(p->meta.workload, ==, "small");
    g_assert_cmpuint(p->meta.cycles_predicted, ==, 1234);
    g_assert_cmpuint(p->image_bytes, ==, q->image_bytes);
    g_assert_cmpmem(p->image, (int)p->image_bytes, q->image, (int)q->image_bytes);
    g_assert_cmpmem(p->segments, 4 * sizeof *p->segments, q->segments, 4 * sizeof *q->segments);
    g_assert_cmpmem(p->slices, 2 * sizeof *p->slices, q->slices, 2 * sizeof *q->slices);
    g_assert_cmpmem(p->marks, 4 * sizeof *p->marks, q->marks, 4 * sizeof *q->marks);
    g_assert_cmpmem(p->steps, 2 * sizeof *p->steps, q->steps, 2 * sizeof *q->steps);
    g_assert_cmpmem(package_binding_find(p, "w")->data, 64, weights, 64);
    g_assert_null(package_binding_find(p, "x")->data);
    g_assert_cmpuint(package_binding_find(p, "i")->bound, ==, 9);
    GString *a = g_string_new(NULL), *b = g_string_new(NULL);
    q->file_bytes = p->file_bytes;
    package_json(p, a);
    package_json(q, b);
    g_assert_cmpstr(a->str, ==, b->str);
    g_string_free(a, true);
    g_string_free(b, true);
    package_free(p);
    package_free(q);
    file_clear(&f);
}

static void test_same_bytes(void) {
    par_set_threads(1);
    struct file a = write_small(NULL);
    par_set_threads(4);
    struct file b = write_small(NULL);
    g_assert_cmpmem(a.bytes, (int)a.n, b.bytes, (int)b.n);
    file_clear(&a);
    file_clear(&b);
}

static void test_no_parameters(void) {
    struct file f = write_small(&(struct package_write_options){.no_parameters = true});
    GError *error = NULL;
    struct package *p = package_read(f.path, &error);
    g_assert_no_error(error);
    g_assert_null(package_binding_find(p, "w")->data);
    g_assert_cmpuint(package_binding_find(p, "w")->data_bytes, ==, 64);
    package_free(p);
    file_clear(&f);
}

static void expect_refused(const uint8_t *bytes, size_t n, const char *what, size_t at) {
    GError *error = NULL;
    struct package *p = package_read_bytes(bytes, n, "altered.ipuexe", &error);
    if (p != NULL) g_error("%s at %zu was accepted", what, at);
    g_assert_nonnull(error);
    g_assert_true(g_str_has_prefix(error->message, "altered.ipuexe: "));
    g_error_free(error);
}

static void test_truncated(void) {
    struct file f = write_small(NULL);
    for (size_t n = 0; n < f.n; n += n < 200 ? 1 : 997) expect_refused(f.bytes, n, "cut", n);
    expect_refused(f.bytes, f.n - 1, "cut", f.n - 1);
    uint8_t *longer = g_malloc0(f.n + 512);
    memcpy(longer, f.bytes, f.n);
    expect_refused(longer, f.n + 512, "growth", f.n);
    g_free(longer);
    file_clear(&f);
}

static void test_flipped(void) {
    struct file f = write_small(NULL);
    for (size_t i = 0; i < f.n; i += i < 4096 ? 1 : 61) {
        f.bytes[i] ^= (uint8_t)(1u << (i % 8));
        expect_refused(f.bytes, f.n, "a flipped bit", i);
        f.bytes[i] ^= (uint8_t)(1u << (i % 8));
    }
    file_clear(&f);
}

/* Flips with a new seal reach the inner checks: whatever they say, nothing may be read out of range
 * (the address sanitizer watches), and what is accepted satisfies package_check. */
static void test_resealed(void) {
    struct file f = write_small(NULL);
    uint32_t accepted = 0, refused = 0;
    uint8_t *copy = g_malloc(f.n);
    for (uint32_t k = 0; k < 1500; k++) {
        memcpy(copy, f.bytes, f.n);
        reseal_damaged(copy, f.n, k, 3);
        GError *error = NULL;
        struct package *p = package_read_bytes(copy, f.n, "resealed.ipuexe", &error);
        if (p != NULL) accepted++;
        else refused++;
        g_clear_error(&error);
        package_free(p);
    }
    g_test_message("%u accepted, %u refused", accepted, refused);
    g_assert_cmpuint(refused, >, 0);
    g_free(copy);
    file_clear(&f);
}

static void test_checks(void) {
    struct package *p = small_package();
    GError *error = NULL;
    g_assert_true(package_check(p, "p", &error));
    p->slices[0].count[0] = 5;
    g_assert_false(package_check(p, "p", &error));
    g_clear_error(&error);
    p->slices[0].count[0] = 4;
    p->segments[1].address = TARGET_SRAM_END - 8;
    g_assert_false(package_check(p, "p", &error));
    g_clear_error(&error);
    p->segments[1].address = 0x5c000;
    p->marks[1].step = 9;
    g_assert_false(package_check(p, "p", &error));
    g_clear_error(&error);
    package_free(p);
}

static void test_names(void) {
    struct package *p = small_package();
    GString *s = g_string_new(NULL);
    package_symbolize(p, 0, TARGET_ENTRY_ADDRESS + 4, s);
    g_string_append_c(s, '|');
    package_symbolize(p, 0, 0x5c034, s);
    g_string_append_c(s, '|');
    package_owner_print(p, 0, 0x80044, 1, s);
    g_string_append_c(s, '|');
    package_owner_print(p, 0, 0x90000, 1, s);
    g_assert_cmpstr(s->str, ==, "code 0x4c014|program+0x34 (step 1, copy)|x+0x44 (access tail, 4 bytes behind the end)|"
                                "nothing; 65472 bytes behind the end of x (0x80000, 64 bytes)");
    g_string_free(s, true);
    package_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/package/round_trip", test_round_trip);
    g_test_add_func("/package/bound", test_bound);
    g_test_add_func("/package/same_bytes", test_same_bytes);
    g_test_add_func("/package/no_parameters", test_no_parameters);
    g_test_add_func("/package/truncated", test_truncated);
    g_test_add_func("/package/flipped", test_flipped);
    g_test_add_func("/package/resealed", test_resealed);
    g_test_add_func("/package/checks", test_checks);
    g_test_add_func("/package/names", test_names);
    return g_test_run();
}
