/* Grids and strategy of attention by closed forms: kernels on the largest tile, words that it
 * receives. Every pair of row and key parts is priced once; the three steps of a materialised
 * attention are independent of each other, so that each takes its own cheapest grid. A choice that
 * does not fit a tile costs more than any that does. */
#include "plan/plan_attention.h"
#include "numeric/num_format.h"

enum {
    MOST_ROWS = 2000, /* of a kernel call */
    MOST_KEYS = 4096,
    LONG_WORDS = 128, /* a message of whole panels: 16 rows */
    SHORT_WORDS = 10, /* a message of columns that begin inside a panel */
    /* Keys of a block: its weighted values round to half every 16 keys, which the F32 state does
     * not. With 256 projected attention of 729 tokens is off by 0.0020 at most, with 64 by 0.0017.
     */
    BLOCK_KEYS = 64,
};
#define IMPOSSIBLE UINT64_MAX
#define TOO_LARGE  (UINT64_C(1) << 48)

/* The largest tile of a grid. */
struct tile {
    uint32_t rows, keys, valid, owned, width, out;
    uint32_t matrices; /* calls of a step */
};

static struct tile tile_of(const struct attention *a, struct attention_grid g, uint32_t keys) {
    struct tile t = {.rows = ceil_div_u32(a->rows, g.r),
                     .keys = 32 * ceil_div_u32(ceil_div_u32(keys, 32), g.c),
                     .width = align_up_u32(attention_gathered(a), a->qk8 ? 32 : 16),
                     .out = align_up_u32(a->out + 1, 16),
                     .matrices = ceil_div_u32(a->batch, a->n)};
    t.valid = MIN(t.keys, keys);
    t.owned = ceil_div_u32(t.rows, MIN(g.c, a->rows / g.r));
    return t;
}

static bool possible(const struct attention *a, struct attention_grid g, uint32_t keys) {
    const struct tile t = tile_of(a, g, keys);
    return g.r <= a->rows && g.c <= ceil_div_u32(keys, 32) && t.rows <= MOST_ROWS &&
           t.keys <= MOST_KEYS && (uint64_t)a->n * g.r * g.c <= a->b->p->n_tiles;
}

static uint64_t call(uint32_t matrices, const struct kernel_spec *s) {
    return matrices * kernel_cycles(s);
}

static uint64_t gemm(const struct tile *t, bool f8, uint32_t inner, uint32_t columns) {
    const struct kernel_spec s = {f8 ? KERNEL_GEMM_F8 : KERNEL_GEMM_F16,
                                  {t->rows, align_up_u32(inner, f8 ? 32 : 16), columns, 0, 1}};
    return call(t->matrices, &s);
}

static uint64_t phase(const struct tile *t, uint64_t words, uint32_t message) {
    return plan_phase_cycles(t->matrices * words, message);
}

static bool computed(const struct attention *a, uint32_t k) {
    return !build_is_source(a->b, a->op->operands[k]);
}

/* Pairs of tiles hold neighbouring key parts of the same rows. */
static uint64_t qk_cycles(const struct attention *a, struct attention_grid g, uint32_t keys) {
    if (!possible(a, g, keys)) return IMPOSSIBLE;
    const struct tile t = tile_of(a, g, keys);
    const uint32_t bytes = a->qk8 ? 1 : 2;
    uint64_t words = 0;
    if (computed(a, 0)) words += (uint64_t)t.rows * t.width * bytes / (g.c % 2 ? 4 : 8);
    if (computed(a, 1)) words += (uint64_t)t.keys * t.width * bytes / 4;
    return phase(&t, words, a->whole ? LONG_WORDS : SHORT_WORDS) +
           gemm(&t, a->qk8, t.width, t.keys);
}

static uint64_t soft_cycles(const struct attention *a, struct attention_grid g, uint32_t keys) {
    if (!possible(a, g, keys)) return IMPOSSIBLE;
    if (g.c > 1 && (a->n * g.r + 1) * g.c > a->b->p->n_tiles)
        return IMPOSSIBLE; /* combine_maxima */
    const struct tile t = tile_of(a, g, keys);
    const struct kernel_spec maxima = {KERNEL_ROW_MAX, {t.rows, t.keys, t.valid}};
    const struct kernel_spec exponential = {
        KERNEL_EXP_PANELS, {t.rows, t.keys, t.valid, num_f16_from_f32(a->scale), a->pv8}};
    const uint64_t cycles = call(t.matrices, &maxima) + call(t.matrices, &exponential);
    if (g.c == 1) return cycles;
    const struct kernel_spec combine = {KERNEL_ROW_MAX,
                                        {t.owned, align_up_u32(2 * g.c, 16), 2 * g.c}};
    return cycles + phase(&t, (uint64_t)t.owned * g.c, 1) + call(t.matrices, &combine) +
           phase(&t, t.rows, t.owned);
}

static uint64_t weighted_cycles(const struct attention *a, struct attention_grid g, uint32_t keys) {
    if (!possible(a, g, keys)) return IMPOSSIBLE;
    const struct tile t = tile_of(a, g, keys);
    const uint64_t words = computed(a, 2) ? (uint64_t)t.keys * t.out * (a->pv8 ? 1 : 2) / 4 : 0;
    return phase(&t, words, LONG_WORDS) + gemm(&t, a->pv8, t.keys, t.out);
}

/* With the sum of partials and the division. */
static uint64_t pv_cycles(const struct attention *a, struct attention_grid g) {
    uint64_t cycles = weighted_cycles(a, g, a->keys);
    if (cycles == IMPOSSIBLE) return IMPOSSIBLE;
    const struct tile t = tile_of(a, g, a->keys);
    const struct kernel_spec divide = {KERNEL_NORMALISE_PANELS, {t.owned, t.out, a->out}};
    cycles += call(t.matrices, &divide);
    if (g.c == 1) return cycles;
    const struct kernel_spec reduce = {KERNEL_REDUCE_F16, {g.c, 16 * t.owned}};
    return cycles + phase(&t, (uint64_t)t.owned * t.out * (g.c - 1) / 2, t.owned * 8) +
           t.out / 16 * call(t.matrices, &reduce);
}

/* Bytes of one step's operands and result on the largest tile. */
static uint64_t step_bytes(const struct attention *a, struct attention_grid g, uint32_t keys) {
    const struct tile t = tile_of(a, g, keys);
    const uint64_t q = (uint64_t)t.rows * t.width * (a->qk8 ? 1 : 2);
    const uint64_t kv = (uint64_t)t.keys * (t.width + t.out) * 2;
    const uint64_t scores = (uint64_t)t.rows * t.keys * (a->pv8 ? 3 : 2);
    const uint64_t results = (uint64_t)t.rows * t.out * 2 * (g.c > 1 ? 2 : 1);
    return t.matrices * (q + kv + scores + results);
}

static uint64_t with_memory(const struct attention *a, uint64_t cycles, uint64_t bytes) {
    const uint64_t has = a->b->o->standard_bytes + a->b->o->interleaved_bytes;
    return cycles == IMPOSSIBLE || bytes <= has ? cycles : TOO_LARGE + bytes;
}

static uint64_t sum(uint64_t x, uint64_t y) {
    return x == IMPOSSIBLE || y == IMPOSSIBLE ? IMPOSSIBLE : x + y;
}

/* --- Strategies: the cheapest grids and their price --- */

typedef uint64_t (*grid_price)(const struct attention *, struct attention_grid);

/* most_c: key parts at most. */
static uint64_t cheapest(const struct attention *a, uint32_t most_c, grid_price price,
                         struct attention_grid *ret) {
    const uint32_t each = a->batch > a->n ? 1 : a->b->p->n_tiles / a->n;
    uint64_t best = IMPOSSIBLE;
    for (uint32_t r = 1; r <= MIN(each, a->rows); r++)
        for (uint32_t c = 1; c <= MIN(each / r, most_c); c++) {
            const struct attention_grid g = {r, c};
            const uint64_t cycles = price(a, g);
            if (cycles >= best) continue;
            best = cycles;
            *ret = g;
        }
    return best;
}

static uint64_t split_price(const struct attention *a, struct attention_grid g) {
    const uint64_t cycles =
        sum(sum(qk_cycles(a, g, a->keys), soft_cycles(a, g, a->keys)), pv_cycles(a, g));
    return with_memory(a, cycles, step_bytes(a, g, a->keys));
}

static uint64_t choose_split(struct attention *a) {
    struct attention_grid g = {1, 1};
    const uint64_t cycles = cheapest(a, UINT32_MAX, split_price, &g);
    a->qk = a->soft = a->pv = g;
    a->strategy = PLAN_ATTENTION_KEY_SPLIT;
    return cycles;
}

static uint64_t qk_price(const struct attention *a, struct attention_grid g) {
    return with_memory(a, qk_cycles(a, g, a->keys), step_bytes(a, g, a->keys));
}
static uint64_t soft_price(const struct attention *a, struct attention_grid g) {
    return with_memory(a, soft_cycles(a, g, a->keys), step_bytes(a, g, a->keys));
}
static uint64_t pv_price(const struct attention *a, struct attention_grid g) {
    return with_memory(a, pv_cycles(a, g), step_bytes(a, g, a->keys));
}
static uint64_t qk_soft_price(const struct attention *a, struct attention_grid g) {
    return sum(qk_price(a, g), soft_price(a, g));
}
static uint64_t soft_pv_price(const struct attention *a, struct attention_grid g) {
    return sum(soft_price(a, g), pv_price(a, g));
}

/* Scores or probabilities of a tile's rows arrive in runs of 32-byte rows. */
static uint64_t move_cycles(const struct attention *a, struct attention_grid from,
                            struct attention_grid to, uint32_t bytes) {
    if (from.r == to.r && from.c == to.c) return 0;
    const struct tile t = tile_of(a, to, a->keys), s = tile_of(a, from, a->keys);
    return phase(&t, (uint64_t)t.rows * t.keys * bytes / 4, 8 * MIN(t.rows, s.rows));
}

/* products: enum plan_attention_products other than AUTO. */
static uint64_t choose_materialised(struct attention *a, uint8_t products) {
    const bool own_qk = products == PLAN_PRODUCTS_INDEPENDENT || products == PLAN_PRODUCTS_QK_ONLY;
    const bool own_pv = products == PLAN_PRODUCTS_INDEPENDENT || products == PLAN_PRODUCTS_PV_ONLY;
    struct attention_grid soft = {1, 1};
    uint64_t cycles = cheapest(a, 1,
                               own_qk && own_pv ? soft_price
                               : own_qk         ? soft_pv_price
                               : own_pv         ? qk_soft_price
                                                : split_price,
                               &soft);
    a->qk = a->soft = a->pv = soft;
    if (own_qk) cycles = sum(cycles, cheapest(a, UINT32_MAX, qk_price, &a->qk));
    if (own_pv) cycles = sum(cycles, cheapest(a, UINT32_MAX, pv_price, &a->pv));
    a->strategy = PLAN_ATTENTION_MATERIALISED;
    if (cycles >= TOO_LARGE) return cycles;
    return cycles + move_cycles(a, a->qk, soft, 2) + move_cycles(a, soft, a->pv, a->pv8 ? 1 : 2);
}

static uint64_t stream_cycles(const struct attention *a, struct attention_grid g) {
    const struct tile t = tile_of(a, g, a->block);
    const uint32_t blocks = ceil_div_u32(a->keys, a->block);
    const struct kernel_spec merge = {KERNEL_MERGE_PANELS,
                                      {t.rows, t.out, 0, 0, 1, num_f16_from_f32(a->scale)}};
    const uint64_t each = sum(sum(qk_cycles(a, g, a->block), soft_cycles(a, g, a->block)),
                              weighted_cycles(a, g, a->block));
    if (each == IMPOSSIBLE) return IMPOSSIBLE;
    const uint64_t state = 4 * (uint64_t)t.matrices * t.rows * (t.out + 4);
    return with_memory(a, blocks * (each + call(t.matrices, &merge)),
                       step_bytes(a, g, a->block) + state);
}

/* Two blocks at least; with a single one there is nothing to merge. */
static uint64_t choose_stream(struct attention *a) {
    struct attention_grid g = {1, 1};
    a->block = BLOCK_KEYS;
    const uint64_t cycles = a->keys > a->block ? cheapest(a, 1, stream_cycles, &g) : IMPOSSIBLE;
    a->qk = a->soft = a->pv = g;
    a->strategy = PLAN_ATTENTION_STREAMING;
    return cycles;
}

static void take_cheaper(struct attention *best, uint64_t *best_cycles, const struct attention *a,
                         uint64_t cycles) {
    if (cycles >= *best_cycles) return;
    *best_cycles = cycles;
    *best = *a;
}

bool attention_choose(struct attention *a) {
    const struct plan_options *o = a->b->o;
    const uint8_t wanted = o->attention_strategy;
    struct attention best = *a;
    uint64_t cycles = IMPOSSIBLE;
    if (wanted == PLAN_ATTENTION_AUTO || wanted == PLAN_ATTENTION_KEY_SPLIT) {
        const uint64_t c = choose_split(a);
        take_cheaper(&best, &cycles, a, c);
    }
    if (wanted == PLAN_ATTENTION_AUTO || wanted == PLAN_ATTENTION_MATERIALISED)
        for (uint32_t p = PLAN_PRODUCTS_SHARED_ROWS; p < PLAN_N_PRODUCTS; p++) {
            if (o->attention_products != PLAN_PRODUCTS_AUTO && o->attention_products != p) continue;
            const uint64_t c = choose_materialised(a, (uint8_t)p);
            take_cheaper(&best, &cycles, a, c);
        }
    if (wanted == PLAN_ATTENTION_AUTO || wanted == PLAN_ATTENTION_STREAMING) {
        const uint64_t c = choose_stream(a);
        take_cheaper(&best, &cycles, a, c);
        /* too few keys for two blocks: one block is a grid without key parts */
        if (cycles == IMPOSSIBLE) {
            const uint64_t one = choose_materialised(a, PLAN_PRODUCTS_SHARED_ROWS);
            take_cheaper(&best, &cycles, a, one);
        }
    }
    *a = best;
    return cycles != IMPOSSIBLE;
}
