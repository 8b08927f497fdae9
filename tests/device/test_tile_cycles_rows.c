/* The exact fits of kernels 8.1 against the rows of kernels 6 whose difference is 0, and the
 * sixteen launch rows of 8.8: a skeleton of each kernel, executed between two samplers.
 *
 * A skeleton has the published arguments, slots outside the loops with `exit` (W) and slots of the
 * loops; its workers deal the work as kernels 2.3 says: items (vectors, blocks, quads, words, row
 * pairs) or rows w, w + 6, ..., or all rows with the items of each dealt. What the kernel computes
 * is left out: slots are padding, except in fills and copies. Constants that 8.1 does not print are
 * marked "implied": they are what 3.x or the rows themselves give. */
#include "tile_cycles.h"

enum body { PAD, FILL, COPY };
enum { SHARE = 0x3000, COPIES = DATA1 + 0x1a000 };

struct row {
    const char *name; /* number of the row in kernels 6, or section */
    uint32_t n, w;
    uint32_t rows, row_slots; /* rows 0: one loop over the items, no rows */
    bool deal_rows;           /* else all workers visit all rows and items are dealt */
    uint32_t items, item_slots;
    uint32_t tail, tail_slots; /* passes of the owner of the next item; 2 slots more before them */
    enum body body;
    uint32_t entry; /* instructions of the supervisor beside the arguments */
    uint32_t published;
    int residual; /* ours minus published */
};

/* --- Workers. --- */

static void body_code(struct build *pb, const struct row *r) {
#define b (*pb)
    for (uint32_t k = 0; k < r->item_slots; k++) {
        if (r->body == FILL) B(W(ST64STEP_S, 14, 7, 5, 1), FNOP);
        else if (r->body == COPY && k == 0) B(W(LD64STEP_S, 0, 7, 5, 1), FNOP);
        else if (r->body == COPY) B(W(ST64STEP_S, 0, 8, 6, 1), FNOP);
        else B(MNOP, FNOP);
    }
#undef b
}

/* m0 worker, m1 items of a row, m2 rows left, m3 passes of the tail, m5 to m8 addresses. */
static void prologue_code(struct build *pb, const struct row *r) {
#define b (*pb)
    I(GET, 0, ISA_CSR_WSR);
    I(AND_M_Z, 0, 0, 7);
    if (r->deal_rows) I(SETZI_M, 1, (int)r->items);
    else deal(&b, 1, r->items);
    if (r->deal_rows) deal(&b, 2, r->rows);
    else if (r->rows != 0) I(SETZI_M, 2, (int)r->rows);
    if (r->tail != 0) {
        I(CMPEQ_S, 3, 0, (int)(r->items % 6));
        I(MUL_S, 3, 3, (int)r->tail);
    }
    if (r->body != PAD) {
        I(MUL_S, 5, 0, SHARE);
        I(SETZI_M, 7, DATA1);
    }
    if (r->body == COPY) {
        I(ADD_S, 6, 5, 0);
        I(SETZI_M, 8, COPIES);
    }
#undef b
}

/* Lone instructions in front of the items' `rpt`, of the first row if there are rows. */
static uint32_t lead_slots(const struct row *r) {
    if (r->rows == 0) return r->w - 2 - (r->tail != 0);
    return r->w - 1 + r->row_slots - 2 - (r->tail != 0 ? 3 : 0);
}

/* The items of a row, then the tail. */
static void items_code(struct build *pb, const struct row *r) {
#define b (*pb)
    g_assert_cmpuint(repeat(&b, 1, r->item_slots), ==, 1);
    body_code(&b, r);
    if (r->tail == 0) return;
    I(BRZ, 3, (int)(b.at + 16 + 8 * r->tail_slots));
    g_assert_cmpuint(repeat(&b, 3, r->tail_slots), ==, 2);
    for (uint32_t k = 0; k < r->tail_slots; k++) B(MNOP, FNOP);
#undef b
}

static uint32_t worker_start(const struct row *r) { /* its `rpt` is 8-aligned */
    return WORKER + 4 * (lead_slots(r) % 2);
}

static void worker_code(struct build *pb, const struct row *r) {
#define b (*pb)
    const uint32_t lead = lead_slots(r), start = worker_start(r);
    const uint32_t row_start = start + 4 * (r->w - 1);
    const uint32_t end = start + 4 * lead + 8 + 8 * r->item_slots +
                         (r->tail != 0 ? 16 + 8 * r->tail_slots : 0) + (r->rows != 0 ? 4 : 0);
    b.at = start;
    prologue_code(&b, r);
    if (r->rows != 0) {
        if (r->deal_rows) I(BRZ, 2, (int)end);
        I(ADD_S, 2, 2, -1);
        nops(&b, (row_start - b.at) / 4);
    }
    nops(&b, (start + 4 * lead - b.at) / 4);
    items_code(&b, r);
    if (r->rows != 0) I(BRNZDEC, 2, (int)row_start);
    g_assert_cmphex(b.at, ==, end);
    I(EXITZ, 15);
#undef b
}

/* Words that a fill has cleared or a copy has set. */
static uint32_t words_done(const struct build *b, const struct row *r) {
    uint32_t n = 0;
    const uint32_t at = r->body == FILL ? DATA1 : COPIES;
    for (uint32_t k = 0; k < 6 * SHARE / 8; k++)
        n += get32(b, at + 8 * k) == (r->body == FILL ? 0 : 1);
    return n;
}

static uint32_t row_cycles(const struct row *r) {
    struct build b;
    build_init(&b, (struct tile_config){.standalone = true});
    if (r->body != PAD)
        for (uint32_t k = 0; k < 6 * SHARE / 4; k++) put32(&b, DATA1 + 4 * k, 1);
    if (r->body == COPY)
        for (uint32_t k = 0; k < 6 * SHARE / 4; k++) put32(&b, COPIES + 4 * k, 2);
    worker_code(&b, r);
    kernel_entry(&b, r->n, r->entry, worker_start(r));
    const uint32_t arguments[8] = {0x60000, 0x61000, 0x62000, 0x63000, 1, 2, 3, 4};
    const uint32_t cycles = call_measured(&b, r->n, arguments);
    if (r->body != PAD)
        g_assert_cmpuint(words_done(&b, r), ==, r->items * (r->deal_rows ? r->rows : 1));
    build_free(&b);
    return cycles;
}

static void check_rows(const struct row *rows, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t got = row_cycles(&rows[i]);
        g_test_message("%s: published %u, ours %u", rows[i].name, rows[i].published, got);
        g_assert_cmpint((int)got - (int)rows[i].published, ==, rows[i].residual);
    }
}

/* --- Rows. --- */
/* clang-format off */

/* n halves as vectors of eight, P contributions. */
#define REDUCE(number, halves, p, cycles, ...)                                                     \
    {.name = number, .n = 5, .w = 22, .items = (halves) / 8, .item_slots = 11 + 2 * ((p) - 1),     \
     .published = cycles, __VA_ARGS__}
#define REDUCE_OLD(number, halves, p, cycles)                                                      \
    {.name = number, .n = 5, .w = 22, .items = (halves) / 8, .item_slots = 9 + 6 * ((p) - 1),      \
     .published = cycles}

static void test_reduction(void) {
    static const struct row rows[] = {
        REDUCE("42 reduction n=8 P=2", 8, 2, 360),
        REDUCE("43 reduction n=56 P=2", 56, 2, 438),
        REDUCE("44 reduction n=1472 P=2", 1472, 2, 2700),
        REDUCE("45 reduction n=2208 P=4", 2208, 4, 4974),
        REDUCE("46 reduction n=1472 P=4", 1472, 4, 3444),
        REDUCE("47 reduction n=576 P=15", 576, 15, 3090),
        REDUCE("48 reduction n=2208 P=28", 2208, 28, 18222),
        /* Sampled inside a model: 6 more than alone (kernels 6.10). Row 51 is padded to row 50. */
        REDUCE("49 reduction n=2624 P=6", 2624, 6, 7218, .residual = -6),
        REDUCE("50 reduction n=2560 P=6", 2560, 6, 7092, .residual = -6),
        REDUCE("52 reduction n=1312 P=6", 1312, 6, 3816, .residual = -6),
        REDUCE("53 reduction n=1280 P=6", 1280, 6, 3690, .residual = -6),
        REDUCE("54 reduction n=1264 P=6", 1264, 6, 3690, .residual = -6),
        REDUCE_OLD("55 reduction, old loop, n=1408 P=2", 1408, 2, 2982),
        REDUCE_OLD("56 reduction, old loop, n=2208 P=4", 2208, 4, 7734),
        REDUCE_OLD("57 reduction, old loop, n=1472 P=4", 1472, 4, 5304),
        REDUCE_OLD("58 reduction, old loop, n=576 P=15", 576, 15, 6978),
        REDUCE_OLD("59 reduction, old loop, n=672 P=15", 672, 15, 8094),
        REDUCE_OLD("60 reduction, old loop, n=2304 P=24", 2304, 24, 42618),
        /* With bias and GELU (3.2, formula of row 63): two panels of 82 rows, 328 quads each of
         * 20 + P slots, 37 slots a panel; 288 is W = 22 with seven arguments (implied). */
        {.name = "63 reduction + bias + GELU 82x32 P=6", .n = 7, .w = 22, .rows = 2,
         .row_slots = 37, .items = 328, .item_slots = 26, .published = 17892},
    };
    check_rows(rows, ARRAY_LEN(rows));
}

/* Blocks of 16 elements; with a rest 80 slots a block and 20 a pair. The entry is two instructions
 * longer (chosen): with one worker alone the longest, its lane shows; rows 73 and 79 need it. */
#define GELU(number, elements, cycles, ...)                                                        \
    {.name = number, .n = 3, .w = 31, .entry = 2, .items = (elements) / 16,                        \
     .item_slots = (elements) % 16 ? 80 : 77, .tail = (elements) % 16 / 2,                         \
     .tail_slots = (elements) % 16 ? 20 : 0, .published = cycles, __VA_ARGS__}
#define GELU_OLD(number, elements, fixed, block, cycles)                                           \
    {.name = number, .n = 3, .w = fixed, .items = (elements) / 16, .item_slots = block,            \
     .published = cycles}

static void test_gelu(void) {
    static const struct row rows[] = {
        GELU("68 GELU 2", 2, 462),
        GELU("69 GELU 6", 6, 702),
        GELU("70 GELU 14", 14, 1182),
        GELU("71 GELU 16", 16, 792),
        GELU("72 GELU 18", 18, 810),
        GELU("73 GELU 30", 30, 1182),
        GELU("74 GELU 94", 94, 1182),
        GELU("75 GELU 96", 96, 792),
        GELU("76 GELU 98", 98, 942),
        GELU("77 GELU 1408", 1408, 7260),
        GELU("78 GELU 2208", 2208, 10956),
        GELU("79 GELU 2152 in a model", 2152, 11388, .residual = -6),
        GELU_OLD("98 GELU of August 2208", 2208, 26, 93, 13134),
        /* Versions of 3.4 between the two. */
        GELU_OLD("98 GELU without clamp 2208", 2208, 26, 61, 8718),
        GELU_OLD("99 GELU without clamp 1408", 1408, 26, 61, 5790),
        GELU_OLD("83 GELU without clamp 16", 16, 26, 61, 666),
        GELU_OLD("98 GELU, 32-bit bounds 2208", 2208, 31, 85, 12060),
        GELU_OLD("99 GELU, 32-bit bounds 1408", 1408, 31, 85, 7980),
        GELU_OLD("96 GELU, 32-bit bounds 96", 96, 31, 85, 840),
    };
    check_rows(rows, ARRAY_LEN(rows));
}

#define BIAS_GELU(number, r, width, cycles, ...)                                                   \
    {.name = number, .n = 5, .w = 12, .rows = r, .row_slots = 38, .items = (width) / 4,            \
     .item_slots = 15, .published = cycles, __VA_ARGS__}
/* The narrow loop (3.5): blocks of 16 in 89 slots, pairs in 23; 46 slots a row with a tail (implied
 * by rows 103, 104, 108). */
#define BIAS_GELU_NARROW(number, r, width, cycles, difference)                                     \
    {.name = number, .n = 5, .w = 12, .rows = r, .row_slots = 46, .items = (width) / 16,           \
     .item_slots = 89, .tail = (width) % 16 / 2, .tail_slots = 23, .published = cycles,            \
     .residual = difference}

/* F8 (3.6): panels of 32 in 184 slots, 33 a row; 330 is W = 30 with six arguments (implied). */
#define BIAS_GELU_F8(number, width, cycles)                                                        \
    {.name = number, .n = 6, .w = 30, .rows = 1, .row_slots = 33, .items = ((width) + 31) / 32,    \
     .item_slots = 184, .published = cycles}

static void test_bias_gelu(void) {
    static const struct row rows[] = {
        BIAS_GELU("102 bias + GELU 1x16", 1, 16, 540),
        BIAS_GELU_NARROW("103 bias + GELU 1x94", 1, 94, 1458, 6),
        BIAS_GELU_NARROW("104 bias + GELU 1x98", 1, 98, 1170, 0),
        BIAS_GELU("105 bias + GELU 1x1408", 1, 1408, 5760),
        BIAS_GELU("106 bias + GELU 1x2152", 1, 2152, 8550),
        BIAS_GELU("107 bias + GELU 1x2208", 1, 2208, 8730),
        BIAS_GELU_NARROW("108 bias + GELU 3x94", 3, 94, 3942, 6),
        BIAS_GELU("109 bias + GELU 3x2152", 3, 2152, 25206),
        BIAS_GELU("110 bias + GELU 3x2208", 3, 2208, 25746),
        BIAS_GELU("112 bias + GELU 1x2152 in a model", 1, 2152, 8556, .residual = -6),
        BIAS_GELU_F8("124 bias + GELU F8 1x1152", 1152, 7152),
        BIAS_GELU_F8("125 bias + GELU F8 1x2152", 2152, 13776),
    };
    check_rows(rows, ARRAY_LEN(rows));
}

#define ADD(number, elements, outside, quad, cycles)                                               \
    {.name = number, .n = 6, .w = outside, .items = (elements) / 4, .item_slots = quad,            \
     .published = cycles}

static void test_add(void) {
    static const struct row rows[] = {
        ADD("127 add, previous loop, 576", 576, 57, 4, 1068),
        ADD("128 add, previous loop, 1152", 1152, 57, 4, 1644),
        ADD("129 add, previous loop, 1728", 1728, 57, 4, 2220),
        ADD("130 add, previous loop, 2152", 2152, 57, 4, 2652),
        ADD("131 add 1152", 1152, 59, 3, 1368),
        ADD("132 add 2152", 2152, 59, 3, 2124),
    };
    check_rows(rows, ARRAY_LEN(rows));
}

/* Rows of 36 pairs; 24 (initial) or 31 (update) slots a row, 13 for the panels of 72 values, 5 for
 * the final normalisation (3.10). */
#define MERGE(number, r, row_overhead, pair, cycles)                                               \
    {.name = number, .n = 5, .w = 12, .rows = r, .row_slots = row_overhead, .deal_rows = true,     \
     .items = 36, .item_slots = pair, .published = cycles}

static void test_merge(void) {
    static const struct row rows[] = {
        MERGE("3.10 merge, initialise, 7 rows", 7, 24 + 13, 4, 2394),
        MERGE("3.10 merge, update, 8 rows", 8, 31 + 13, 6, 3342),
        MERGE("3.10 merge, update + final, 8 rows", 8, 31 + 13 + 5, 6, 3402),
        /* The measured version: three slots a row more (implied). */
        MERGE("200 merge, initialise, 7 rows", 7, 24 + 16, 4, 2430),
        MERGE("200 merge, initialise, 8 rows", 8, 24 + 16, 4, 2430),
        MERGE("201 merge, update, 7 rows", 7, 31 + 16, 6, 3378),
        MERGE("201 merge, update, 8 rows", 8, 31 + 16, 6, 3378),
        MERGE("202 merge, update + final, 7 rows", 7, 31 + 16 + 5, 6, 3438),
        MERGE("202 merge, update + final, 8 rows", 8, 31 + 16 + 5, 6, 3438),
    };
    check_rows(rows, ARRAY_LEN(rows));
}

/* 64-bit words in shares of contiguous ranges; rows 3.13 are the sheet's formulas. */
#define FILL_ROW(number, words, cycles)                                                            \
    {.name = number, .n = 3, .w = 12, .items = words, .item_slots = 1, .body = FILL,               \
     .published = cycles}
#define COPY_ROW(number, words, cycles)                                                            \
    {.name = number, .n = 4, .w = 17, .items = words, .item_slots = 2, .body = COPY,               \
     .published = cycles}
#define STRIDED_ROW(number, r, words, cycles)                                                      \
    {.name = number, .n = 6, .w = 24, .rows = r, .row_slots = 6, .deal_rows = true,                \
     .items = words, .item_slots = 2, .body = COPY, .published = cycles}

static void test_moves(void) {
    static const struct row rows[] = {
        FILL_ROW("3.13 fill, no words", 0, 216),
        FILL_ROW("233 fill 38 KiB", 4864, 5082),
        FILL_ROW("234 fill 69 KiB", 8832, 9048),
        COPY_ROW("3.13 copy, no words", 0, 246),
        COPY_ROW("3.13 copy 7 words", 7, 246 + 12 * 2),
        COPY_ROW("3.13 copy 8 KiB", 1024, 246 + 12 * 171),
        {.name = "3.13 strided copy, constant", .n = 6, .w = 24, .item_slots = 2, .body = COPY,
         .published = 294},
        STRIDED_ROW("3.13 strided copy 6 rows of 4 words", 6, 4, 294 + 6 * 1 * (2 * 4 + 6)),
        STRIDED_ROW("3.13 strided copy 13 rows of 20 words", 13, 20, 294 + 6 * 3 * (2 * 20 + 6)),
    };
    check_rows(rows, ARRAY_LEN(rows));
}

/* Row pairs of 16 columns; 300 is W = 25 with five arguments (implied). */
static void test_pack(void) {
    static const struct row rows[] = {
        {.name = "225 block-major pack 128x16", .n = 5, .w = 25, .items = 64, .item_slots = 60,
         .published = 4260},
        /* The last, odd row and the zero rows are cheaper than 60 slots a pair (8.4). */
        {.name = "224 block-major pack 768x16", .n = 5, .w = 25, .items = 384, .item_slots = 60,
         .published = 23190, .residual = 150},
    };
    check_rows(rows, ARRAY_LEN(rows));
}

/* The affine pass of a norm alone, quads in 12 slots; 76 a row and W = 96 with eight arguments
 * (implied). */
#define APPLY(number, r, width, cycles)                                                            \
    {.name = number, .n = 8, .w = 96, .rows = r, .row_slots = 76, .items = (width) / 4,            \
     .item_slots = 12, .published = cycles}

static void test_apply(void) {
    static const struct row rows[] = {
        APPLY("163 apply 1x144", 1, 144, 1620),
        APPLY("164 apply 1x576", 1, 576, 2916),
        APPLY("165 apply 1x1152", 1, 1152, 4644),
        APPLY("166 apply 3x1152", 3, 1152, 12468),
    };
    check_rows(rows, ARRAY_LEN(rows));
}
/* clang-format on */

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/cycles/rows/reduction", test_reduction);
    g_test_add_func("/tile/cycles/rows/gelu", test_gelu);
    g_test_add_func("/tile/cycles/rows/bias-gelu", test_bias_gelu);
    g_test_add_func("/tile/cycles/rows/add", test_add);
    g_test_add_func("/tile/cycles/rows/merge", test_merge);
    g_test_add_func("/tile/cycles/rows/moves", test_moves);
    g_test_add_func("/tile/cycles/rows/pack", test_pack);
    g_test_add_func("/tile/cycles/rows/apply", test_apply);
    return g_test_run();
}
