/* Topology by the closed forms of exchange 1.1 to 1.6; the two numbering tables are made once. */
#include "target/target.h"

#include <pthread.h>
#include <stdlib.h>

static uint16_t physical[TARGET_N_TILES], logical[TARGET_N_TILES];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void) {
    for (uint32_t l = 0; l < TARGET_N_TILES; l++) {
        const uint32_t pair = l / 2, lane = l % 2;
        const uint32_t block = pair / TARGET_N_TOPO_ROWS, k = pair % TARGET_N_TOPO_ROWS;
        const uint32_t row = block % 2 != 0 ? TARGET_N_TOPO_ROWS - 1 - k : k;
        const uint32_t column = 4 * (block / 2) + block % 2;
        const uint32_t p = 64 * row + column + 2 * lane;
        physical[l] = (uint16_t)p;
        logical[p] = (uint16_t)l;
    }
}

const uint16_t *target_physical_of_logical(void) {
    pthread_once(&tables_once, make_tables);
    return physical;
}

const uint16_t *target_logical_of_physical(void) {
    pthread_once(&tables_once, make_tables);
    return logical;
}

struct ptile target_ptile(struct ltile l) {
    BUG_ON(l.n >= TARGET_N_TILES);
    return (struct ptile){target_physical_of_logical()[l.n]};
}

struct ltile target_ltile(struct ptile p) {
    BUG_ON(p.n >= TARGET_N_TILES);
    return (struct ltile){target_logical_of_physical()[p.n]};
}

/* Geometry quantities of exchange 1.3. */
static int32_t raw_of(uint32_t x) { return (int32_t)(x >> 2) & 15; }
static int32_t half_of(uint32_t x) { return raw_of(x) >> 3; }
static int32_t low_of(uint32_t x) { return raw_of(x) & 7; }
static int32_t col_of(uint32_t x) { return half_of(x) != 0 ? 15 - raw_of(x) : raw_of(x); }
static int32_t side_of(uint32_t x) { return half_of(x) ^ (int32_t)(x & 1); }
static int32_t off_of(uint32_t x) {
    const int32_t lane = (int32_t)(x >> 1) & 1;
    return side_of(x) != 0 ? 5 - lane : 1 + lane;
}

static int32_t displacement(struct ptile s, struct ptile d) {
    return 6 * (col_of(d.n) - col_of(s.n) - side_of(s.n)) + off_of(d.n);
}

uint32_t target_direction(struct ptile s, struct ptile d) {
    return displacement(s, d) >= 1 ? 1 : 2;
}

uint32_t target_ttm_class(struct ptile s, struct ptile d) {
    return target_direction(s, d) - 1 + (half_of(s.n) != half_of(d.n) ? 2 : 0);
}

int32_t target_ttm_f(uint32_t ttm_class, struct ptile s) {
    const int32_t rows = 2 * (int32_t)target_row(s);
    const int32_t base = ttm_class < 2 ? raw_of(s.n) + 4 * col_of(s.n) + rows
                                       : (half_of(s.n) != 0 ? 27 : 11) - low_of(s.n) +
                                             4 * col_of(s.n) + rows;
    const int32_t shift = 6 * (col_of(s.n) + side_of(s.n));
    return (ttm_class & 1) == 0 ? base - shift : base + shift;
}

int32_t target_ttm_g(uint32_t ttm_class, struct ptile d) {
    const int32_t rows = 2 * (int32_t)target_row(d);
    const int32_t base = ttm_class < 2 ? -30 - raw_of(d.n) - 4 * col_of(d.n) - rows
                                       : -34 - low_of(d.n) - 4 * col_of(d.n) - rows;
    const int32_t shift = 6 * col_of(d.n) + off_of(d.n);
    return (ttm_class & 1) == 0 ? base + shift : base - shift;
}

int32_t target_ttm(struct ptile s, struct ptile d) {
    int32_t k;
    if (half_of(s.n) == half_of(d.n))
        k = raw_of(s.n) - raw_of(d.n) - 30;
    else
        k = (half_of(s.n) == 0 ? -23 : -7) - low_of(s.n) - low_of(d.n);
    return k + 4 * (col_of(s.n) - col_of(d.n)) +
           2 * ((int32_t)target_row(s) - (int32_t)target_row(d)) + abs(displacement(s, d));
}

uint32_t target_element_base(uint32_t element) {
    BUG_ON(element > TARGET_N_ELEMENTS);
    return element <= 13 ? TARGET_SRAM_BASE + element * TARGET_ELEMENT_BYTES
                         : TARGET_REGION1_BASE + (element - 13) * TARGET_ELEMENT_PAIR_BYTES;
}

static const struct target_constant constants[] = {
#define TARGET(name, value, unit, confidence, source) \
    {#name, unit, source, value, TARGET_##confidence},
#include "target/target.def"
#undef TARGET
};

const struct target_constant *target_constants(size_t *ret_n) {
    *ret_n = ARRAY_LEN(constants);
    return constants;
}
