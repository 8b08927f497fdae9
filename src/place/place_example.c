/* Example problems, made from published figures (facts: compiler 4.4, 4.5; runtime 3.1 to 3.3;
 * planning 1): for trying the solver and the page, and for measuring. They imitate; no compiler
 * made them. */
#include "place/place.h"

#include <string.h>

struct example {
    struct place_builder *b;
    uint64_t seed, n_drawn;
    uint32_t tile;
};

static uint32_t draw(struct example *x, uint32_t from, uint32_t to) {
    return from + (uint32_t)(rand_u64(x->seed, x->tile, x->n_drawn++) % (to - from + 1));
}

static uint32_t add(struct example *x, const char *name, enum place_kind kind,
                    struct place_request q) {
    q.name = place_builder_name(x->b, name);
    q.kind = (uint8_t)kind;
    return place_builder_add(x->b, x->tile, &q);
}

/* Steps: 0 host input, 1..9 stem, 10..69 the repeat over the layers, 70..99 head, then host output.
 */
enum { STEP_BODY = 10, STEP_BODY_END = 69, STEP_HEAD_END = 99 };

/* Code in the first element, its rest with host programs and rows in three more; state; window. */
static void add_support(struct example *x) {
    const uint32_t code = 22 << 10;
    const uint32_t first = TARGET_HOST_WINDOW_BASE - TARGET_CODE_BASE - TARGET_FETCH_AHEAD_BYTES;
    const uint32_t executables = 0x5c000;
    const struct {
        const char *name;
        enum place_kind kind;
        uint32_t address, bytes;
    } rows[] = {
        {"runtime and kernels", PLACE_CODE, TARGET_CODE_BASE, first},
        {"kernels", PLACE_CODE, executables, code - first},
        {"host programs", PLACE_CODE, executables + code - first, 9318},
        {"exchange rows", PLACE_ROWS, executables + code - first + 9320, 30504},
    };
    for (uint32_t i = 0; i < ARRAY_LEN(rows); i++)
        add(x, rows[i].name, rows[i].kind,
            (struct place_request){.bytes = rows[i].bytes,
                                   .address = rows[i].address,
                                   .last_step = PLACE_STEP_END,
                                   .flags = PLACE_FIXED | PLACE_EXECUTABLE});
    add(x, "runtime state", PLACE_STATE,
        (struct place_request){.bytes = TARGET_DATA_BASE - TARGET_COMPLETION_WORD,
                               .address = TARGET_COMPLETION_WORD,
                               .last_step = PLACE_STEP_END,
                               .flags = PLACE_FIXED | PLACE_NEAR_CODE});
    for (uint32_t output = 0; output < 2; output++)
        add(x, output ? "host output window" : "host input window", PLACE_WINDOW,
            (struct place_request){.bytes = TARGET_HOST_WINDOW_BYTES,
                                   .address = TARGET_HOST_WINDOW_BASE,
                                   .first_step = output ? PLACE_STEP_END : 0,
                                   .last_step = output ? PLACE_STEP_END : 0,
                                   .flags = PLACE_FIXED});
    add(x, "host descriptors", PLACE_DESCRIPTOR,
        (struct place_request){.bytes = 4 * draw(x, 559, 629),
                               .align = 4,
                               .last_step = PLACE_STEP_END,
                               .flags = PLACE_NEAR_CODE});
    add(x, "cycle samples", PLACE_PROFILE,
        (struct place_request){.bytes = 4 * draw(x, 95, 224),
                               .align = 4,
                               .last_step = PLACE_STEP_END,
                               .flags = PLACE_NO_HOST_WINDOW});
}

/* 161,375 parameter allocations: homes of a few 32-byte rows each, 27 blocks at uniform stride. */
static void add_parameters(struct example *x) {
    static const char *const names[] = {"qkv weights", "out weights", "up weights", "down weights"};
    static const uint32_t rows[] = {85, 29, 106, 106}; /* of 32 bytes, a layer, a tile */
    static const uint32_t pieces[] = {27, 13, 34, 34};
    const uint32_t extra = x->tile < 927 ? 2 : 1;
    for (uint32_t k = 0; k < 4; k++) {
        for (uint32_t i = 0; i < pieces[k]; i++) {
            const uint32_t n = rows[k] * (i + 1) / pieces[k] - rows[k] * i / pieces[k];
            add(x, names[k], PLACE_PARAMETER,
                (struct place_request){.bytes = 32 * n,
                                       .tail_bytes = 24,
                                       .align = 32,
                                       .n_blocks = 27,
                                       .last_step = PLACE_STEP_END,
                                       .flags = PLACE_NO_HOST_WINDOW | PLACE_TAIL_SHARED});
        }
    }
    for (uint32_t i = 0; i < extra; i++)
        add(x, i == 0 ? "stem and head weights" : "vectors", PLACE_PARAMETER,
            (struct place_request){.bytes = i == 0 ? 32 * draw(x, 380, 392) : 6912,
                                   .align = 32,
                                   .last_step = PLACE_STEP_END,
                                   .flags = PLACE_NO_HOST_WINDOW});
}

/* A product: left operand, coefficients and an output that must be apart from the left operand,
 * then the partials of the others. */
static void add_product(struct example *x, uint32_t step, uint32_t left, uint32_t right,
                        uint32_t out) {
    const uint32_t a = add(x, "left operand", PLACE_TENSOR,
                           (struct place_request){.bytes = 32 * draw(x, left - left / 8, left),
                                                  .tail_bytes = 24,
                                                  .align = 32,
                                                  .first_step = step,
                                                  .last_step = step + 2,
                                                  .flags = PLACE_TAIL_SHARED});
    add(x, "coefficients", PLACE_TENSOR,
        (struct place_request){.bytes = 512 * draw(x, right - right / 8, right),
                               .align = 32,
                               .first_step = step + 1,
                               .last_step = step + 2,
                               .memory_class = PLACE_INTERLEAVED});
    const uint32_t c = add(x, "output", PLACE_TENSOR,
                           (struct place_request){.bytes = 32 * draw(x, out - out / 8, out),
                                                  .tail_bytes = 56,
                                                  .align = 32,
                                                  .memory_class = PLACE_INTERLEAVED,
                                                  .first_step = step + 2,
                                                  .last_step = step + 4,
                                                  .flags = PLACE_TAIL_SHARED});
    add(x, "received partials", PLACE_TENSOR,
        (struct place_request){.bytes = 32 * draw(x, out - out / 8, out),
                               .align = 8,
                               .first_step = step + 3,
                               .last_step = step + 4});
    place_builder_separate(x->b, a, c);
}

static void add_transients(struct example *x) {
    const uint32_t residual = draw(x, 1100, 1160);
    add(x, "residual", PLACE_TENSOR,
        (struct place_request){
            .bytes = residual, .align = 8, .first_step = 1, .last_step = STEP_BODY_END});
    add_product(x, 2, 1200, 60, 1200);
    static const uint32_t product[6][3] = {{1300, 54, 700}, {840, 84, 840},  {560, 70, 980},
                                           {580, 42, 1100}, {1300, 66, 800}, {1200, 60, 1500}};
    for (uint32_t k = 0; k < 6; k++)
        add_product(x, STEP_BODY + 10 * k + 1, product[k][0], product[k][1], product[k][2]);
    add_product(x, STEP_BODY_END + 6, 1000, 50, 900);
    /* Statistics, small vectors, staging: many and short-lived. */
    const uint32_t n_small = draw(x, 280, 290);
    for (uint32_t i = 0; i < n_small; i++) {
        const uint32_t step = draw(x, 1, STEP_HEAD_END - 4);
        add(x, "staging", PLACE_SCRATCH,
            (struct place_request){.bytes = 8 * draw(x, 1, 160),
                                   .align = 8,
                                   .first_step = step,
                                   .last_step = step + draw(x, 0, 3)});
    }
}

struct place_problem *place_example_encoder(uint32_t n_tiles, uint64_t seed) {
    const struct place_memory m = place_memory_c600(true);
    struct example x = {.b = place_builder_new(n_tiles, &m), .seed = seed};
    for (x.tile = 0; x.tile < n_tiles; x.tile++) {
        x.n_drawn = 0;
        add_support(&x);
        add_parameters(&x);
        add_transients(&x);
    }
    return place_builder_finish(x.b, NULL);
}
