/* A call outside a kernel's contract is refused by the rule's name. */
#include "isa/isa_asm.h"
#include "kernel/kernel.h"
#include "target/target.h"

#include <string.h>

static void refused(const struct kernel_spec *spec, const uint32_t *addresses, int code,
                    const char *words) {
    uint32_t registers[KERNEL_MAX_REGISTERS], n;
    g_autoptr(GError) error = NULL;
    g_assert_false(kernel_bind(spec, addresses, registers, &n, &error));
    g_assert_cmpint(error->code, ==, code);
    if (!strstr(error->message, words)) g_error("%s lacks %s", error->message, words);
}

static void test_shapes(void) {
    const uint32_t a[] = {0x80000, 0x90000, 0xa0000, 0xb0000, 0xc0000};
    const struct {
        struct kernel_spec spec;
        const char *words;
    } cases[] = {
        {{KERNEL_GEMM_F16, {0, 16, 16}}, "rows is 0"},
        {{KERNEL_GEMM_F16, {10, 24, 16}}, "inner is 24"},
        {{KERNEL_GEMM_F16, {10, 16, 8}}, "columns is 8"},
        {{KERNEL_GEMM_F8, {10, 32, 16, 0, 0, 32}}, "rule scale"},
        {{KERNEL_GEMM_F16, {10, 16, 16, 0, 0, 256}}, "batch is 256"},
        {{KERNEL_GEMM_PACKED, {40, 32, 16, 16}}, "rows is 40"},
        {{KERNEL_GEMM_PACKED, {48, 32, 32, 16}}, "group is 16"},
        {{KERNEL_GEMM_PACKED, {256, 32, 32, 128}}, "rule reach"},
        {{KERNEL_GEMM_F16_F32, {10, 16, 12}}, "columns is 12"},
        {{KERNEL_REDUCE_F32, {2, 4, 16, 1}}, "columns is 16"},
        {{KERNEL_REDUCE_F32, {2, 4, 16, 0, 1}}, "rule scale"},
        {{KERNEL_PACK_F8, {4, 2064}}, "rule row step"},
        {{KERNEL_PACK_F8, {4, 32, 0, 40}}, "rule scale"},
        {{KERNEL_COPY_U32, {4, 6}}, "bytes is 6"},
        {{KERNEL_COPY_STRIDED, {4, 16, 16, 32, 1, 0, 0, 128}}, "pad is 128"},
        {{KERNEL_REDUCE_F16, {1, 8}}, "partials is 1"},
        {{KERNEL_REDUCE_F16, {2, 12}}, "elements is 12"},
        {{KERNEL_REDUCE_F16, {2, 16, 0, 16}}, "rule stride"},
        {{KERNEL_REDUCE_F16, {2, 16, 0, 0, 1}}, "unused parameter"},
        {{KERNEL_REDUCE_PANELS, {2, 4, 16, 9}}, "rule epilogue"},
        {{KERNEL_REDUCE_PANELS, {2, 4, 16, 8}}, "columns is 16"},
        {{KERNEL_CAST_F16_F8, {8, 40}}, "rule scale"},
        {{KERNEL_GELU_F16, {7}}, "elements is 7"},
        {{KERNEL_COPY_U64, {12}}, "bytes is 12"},
        {{KERNEL_MOMENTS_F16, {1, 48, 0, 2}}, "rule segments"},
        {{KERNEL_EXP_PANELS, {4, 32, 33, 0x3c00, 1}}, "valid is 33"},
        {{KERNEL_GEMM_F16, {6000, 4096, 16}}, "rule size"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        refused(&cases[i].spec, a, DIAG_KERNEL_SHAPE, cases[i].words);
}

static void test_addresses(void) {
    const struct kernel_spec gemm = {KERNEL_GEMM_F16, {40, 32, 16, 0, 1}};
    refused(&gemm, (const uint32_t[]){0x80010, 0x60000, 0x90000}, DIAG_KERNEL_ALIGN, "operand 0");
    refused(&gemm, (const uint32_t[]){0x60000, 0x64000, 0x90000}, DIAG_KERNEL_MEMORY,
            "interleaved");
    refused(&gemm, (const uint32_t[]){0x80000, 0x81000, 0x90000}, DIAG_KERNEL_SEPARATE,
            "operands 0 and 1");
    refused(&gemm, (const uint32_t[]){0x80000, 0x60000, 0x80100}, DIAG_KERNEL_OVERLAP,
            "operands 0 and 2");
    refused(&gemm, (const uint32_t[]){0xe7ff0 & ~31u, 0x60000, 0x90000}, DIAG_KERNEL_MEMORY,
            "SRAM");
    const struct kernel_spec pack = {KERNEL_PACK_F8, {8, 32, 1}};
    refused(&pack, (const uint32_t[]){0x88000, 0x60000}, DIAG_KERNEL_MEMORY, "interleaved");
    refused(&pack, (const uint32_t[]){0x84000, 0x80000}, DIAG_KERNEL_SEPARATE, "operands 0 and 1");
    const struct kernel_spec pace = {KERNEL_COPY_U64, {64, 1}};
    refused(&pace, (const uint32_t[]){0x60000, 0x60040}, DIAG_KERNEL_SEPARATE, "operands 0 and 1");
    const struct kernel_spec gelu = {KERNEL_GELU_F16, {64}};
    refused(&gelu, (const uint32_t[]){0x60000, 0x60040}, DIAG_KERNEL_OVERLAP, "overlap");
}

static void test_accepts(void) {
    const struct kernel_spec gelu = {KERNEL_GELU_F16, {64}};
    uint32_t registers[KERNEL_MAX_REGISTERS], n;
    g_autoptr(GError) error = NULL;
    const uint32_t same[] = {0x60000, 0x60000};
    g_assert_true(kernel_bind(&gelu, same, registers, &n, &error));
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpuint(registers[2], ==, 32);
    uint32_t kernel;
    g_assert_true(kernel_find("GEMM_F16", &kernel));
    g_assert_cmpuint(kernel, ==, KERNEL_GEMM_F16);
    g_assert_false(kernel_find("GEMM", &kernel));
}

/* Any lane of the call gives the same cycles within one rotation. */
static void test_lanes(void) {
    const struct kernel_spec spec = {KERNEL_GEMM_F16, {81, 80, 80, 0, 1}};
    for (uint32_t lane = 0; lane < TARGET_LANE_CYCLES; lane++)
        g_assert_cmpint(ABS((int)kernel_cycles_lane(&spec, lane) - (int)kernel_cycles(&spec)), <=,
                        6);
}

/* The chosen cast is valid and never dearer than the one without conditions. */
static void test_cast_choice(void) {
    static const uint32_t ROWS[] = {1, 3, 19, 92}, COLUMNS[] = {32, 96, 736};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++)
        for (size_t k = 0; k < ARRAY_LEN(COLUMNS); k++) {
            const struct kernel_spec best = kernel_cast_to_panels(ROWS[i], COLUMNS[k], -4);
            const struct kernel_spec plain = {KERNEL_CAST_PANELS, {ROWS[i], COLUMNS[k], -4u}};
            struct kernel_needs a, b;
            g_assert_true(kernel_describe(&best, &a, NULL));
            g_assert_true(kernel_describe(&plain, &b, NULL));
            g_assert_cmpuint(a.cycles, <=, b.cycles);
            for (uint32_t o = 0; o < 2; o++)
                g_assert_cmpuint(a.operand[o].bytes, ==, b.operand[o].bytes);
        }
}

/* Objects, and so packages, must not depend on where the tree lies. */
static void test_no_paths(void) {
    const char *source = g_getenv("IPU_SOURCE");
    size_t n;
    const struct kernel_object *objects = kernel_objects(&n);
    g_assert_cmpuint(n, >, 0);
    for (size_t i = 0; i < n; i++)
        g_assert_null(memmem(objects[i].bytes, objects[i].size, source, strlen(source)));
}

/* Bytes of code that a program with these calls needs, kernels alone. */
static uint32_t code_bytes(const struct kernel_spec *specs, size_t n) {
    struct isa_messages messages = {0};
    isa_messages_init(&messages);
    GPtrArray *objects = g_ptr_array_new_with_free_func((GDestroyNotify)isa_object_free);
    size_t n_objects;
    const struct kernel_object *kernels = kernel_objects(&n_objects);
    for (size_t i = 0; i < n_objects; i++)
        g_ptr_array_add(objects,
                        isa_object_read(kernels[i].bytes, kernels[i].size, kernels[i].name, NULL));
    const char *roots[64];
    g_assert_cmpuint(n, <=, G_N_ELEMENTS(roots));
    for (size_t i = 0; i < n; i++) {
        g_assert_true(kernel_describe(&specs[i], &(struct kernel_needs){0}, NULL));
        roots[i] = kernel_symbol(&specs[i]);
    }
    const struct isa_layout layout = {.roots = roots, .n_roots = (uint32_t)n};
    struct isa_image *image =
        isa_link((struct isa_object *const *)objects->pdata, objects->len, &layout, &messages);
    g_assert_nonnull(image);
    uint32_t bytes = 0;
    for (guint i = 0; i < image->segments->len; i++)
        bytes += g_array_index(image->segments, struct isa_segment, i).size;
    isa_image_free(image);
    g_ptr_array_unref(objects);
    isa_messages_clear(&messages);
    return bytes;
}

/* What 27 layers of an encoder and its head may call, F16 and F8 products, streamed and
 * materialised attention, together: at most 24 KiB. */
static void test_code_fits(void) {
    const struct kernel_spec specs[] = {
        {KERNEL_GEMM_F8, {244, 128, 64, 0, 1}},
        {KERNEL_GEMM_F16, {81, 80, 80, 0, 1}},
        {KERNEL_REDUCE_F16, {6, 2624}},
        {KERNEL_REDUCE_PANELS, {6, 82, 32, KERNEL_EPILOGUE_BIAS}},
        {KERNEL_REDUCE_PANELS, {6, 82, 32, KERNEL_EPILOGUE_RESIDUAL | KERNEL_EPILOGUE_BIAS}},
        {KERNEL_REDUCE_PANELS,
         {6, 82, 32, KERNEL_EPILOGUE_BIAS | KERNEL_EPILOGUE_GELU | KERNEL_EPILOGUE_F8}},
        {KERNEL_GELU_F16, {1408}},
        {KERNEL_ADD_F16, {1, 1152}},
        {KERNEL_ADD_NORM_F16, {8, 1152, 1}},
        {KERNEL_NORM_F16, {8, 1152, 1}},
        {KERNEL_CAST_PANELS, {81, 96}},
        {KERNEL_PACK_F8, {81, 96}},
        {KERNEL_PACK_RIGHT, {768, 16}},
        {KERNEL_ROW_MAX, {8, 736, 729}},
        {KERNEL_MAX_PARTIALS, {4, 8}},
        {KERNEL_EXP_PANELS, {8, 736, 729, 0x2f8a, 1, -7}},
        {KERNEL_NORMALISE_PANELS, {8, 80, 72}},
        {KERNEL_SOFTMAX_F16, {8, 768, 729, 0x2f8a}},
        {KERNEL_MERGE_PANELS, {8, 80, 1}},
        {KERNEL_MERGE_PANELS, {8, 80}},
        {KERNEL_MERGE_PANELS, {8, 80, 0, 1}},
        {KERNEL_COPY_U64, {512}},
        {KERNEL_COPY_STRIDED, {4, 32, 64, 32, 1}},
        {KERNEL_FILL_U64, {512}},
        {KERNEL_FINITE_CHECK, {1024}},
    };
    const uint32_t bytes = code_bytes(specs, ARRAY_LEN(specs));
    g_test_message("%u bytes", bytes);
    g_assert_cmpuint(bytes, <=, 24 * 1024);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/kernel/bind/shapes", test_shapes);
    g_test_add_func("/kernel/bind/addresses", test_addresses);
    g_test_add_func("/kernel/bind/accepts", test_accepts);
    g_test_add_func("/kernel/cycles/lanes", test_lanes);
    g_test_add_func("/kernel/cast-choice", test_cast_choice);
    g_test_add_func("/kernel/no-paths", test_no_paths);
    g_test_add_func("/kernel/code-fits", test_code_fits);
    return g_test_run();
}
