/* Matrix products: C[m,n] = alpha op(A) op(B), blocked so that both cores work and every result is the
 * same on any machine with any number of threads.
 *
 * Right blocks of K_BLOCK x COLUMNS are packed into panels of PANEL columns, left blocks of ROWS x
 * K_BLOCK into strips of STRIP rows; the inner loop keeps STRIP x PANEL sums in registers. Vectors
 * run along columns, so each element is summed by itself: in ascending k inside a block of K, with a
 * multiplication and an addition that round separately, then block by block. Cost: 2 m n k
 * operations, near the width of the machine's vectors; packing is a part of about 1 / ROWS. */
#include "reference/ref_int.h"

#include <string.h>

enum { K_BLOCK = 256, STRIP = 6, PANEL = 32, ROWS = 96, COLUMNS = 512, LANES = 16 };
_Static_assert(ROWS % STRIP == 0 && COLUMNS % PANEL == 0 && PANEL == 2 * LANES, "whole tiles");

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4)));

/* sums[STRIP][PANEL] = strip (k major) times panel (k major). */
__attribute__((target_clones("arch=x86-64-v4", "avx2", "default"))) static void
multiply_tile(uint32_t k, const float *strip, const float *panel, float *sums) {
    lanes s[STRIP][2] = {0};
    for (uint32_t i = 0; i < k; i++, strip += STRIP, panel += PANEL) {
        lanes right[2];
        memcpy(right, panel, sizeof right);
        for (uint32_t r = 0; r < STRIP; r++) {
            s[r][0] += strip[r] * right[0];
            s[r][1] += strip[r] * right[1];
        }
    }
    memcpy(sums, s, sizeof s);
}

struct blocks {
    const struct ref_product *p;
    uint32_t n_columns; /* blocks of columns */
};

struct scratch {
    float right[K_BLOCK * COLUMNS], left[K_BLOCK * ROWS];
};

/* Columns [c, c + n) and inner elements [k0, k0 + k): panel after panel, zeros beyond n. */
static void pack_right(const struct ref_product *p, uint32_t c, uint32_t n, uint32_t k0, uint32_t k,
                       float *to) {
    for (uint32_t j = 0; j < n; j += PANEL) {
        const uint32_t width = MIN(PANEL, n - j);
        for (uint32_t i = 0; i < k; i++, to += PANEL) {
            const float *from = p->transpose_b ? p->b + (size_t)(c + j) * p->ldb + k0 + i
                                               : p->b + (size_t)(k0 + i) * p->ldb + c + j;
            const size_t step = p->transpose_b ? p->ldb : 1;
            for (uint32_t x = 0; x < width; x++) to[x] = from[x * step];
            for (uint32_t x = width; x < PANEL; x++) to[x] = 0;
        }
    }
}

static void pack_left(const struct ref_product *p, uint32_t r, uint32_t m, uint32_t k0, uint32_t k,
                      float *to) {
    for (uint32_t j = 0; j < m; j += STRIP) {
        const uint32_t height = MIN(STRIP, m - j);
        for (uint32_t i = 0; i < k; i++, to += STRIP) {
            const float *from = p->transpose_a ? p->a + (size_t)(k0 + i) * p->lda + r + j
                                               : p->a + (size_t)(r + j) * p->lda + k0 + i;
            const size_t step = p->transpose_a ? 1 : p->lda;
            for (uint32_t x = 0; x < height; x++) to[x] = from[x * step];
            for (uint32_t x = height; x < STRIP; x++) to[x] = 0;
        }
    }
}

/* Adds one tile's sums to C, or sets it for the first block of K. */
static void store_tile(const struct ref_product *p, const float *sums, uint32_t r, uint32_t c,
                       bool first) {
    const uint32_t m = MIN(STRIP, p->m - r), n = MIN(PANEL, p->n - c);
    for (uint32_t i = 0; i < m; i++) {
        float *to = p->c + (size_t)(r + i) * p->ldc + c;
        const float *from = sums + i * PANEL;
        if (first)
            for (uint32_t j = 0; j < n; j++) to[j] = from[j];
        else
            for (uint32_t j = 0; j < n; j++) to[j] += from[j];
    }
}

static void scale_block(const struct ref_product *p, uint32_t r, uint32_t m, uint32_t c, uint32_t n) {
    for (uint32_t i = r; p->alpha != 1 && i < r + m; i++)
        for (uint32_t j = c; j < c + n; j++) p->c[(size_t)i * p->ldc + j] *= p->alpha;
}

static void block_run(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct blocks *b = context;
    const struct ref_product *p = b->p;
    const uint32_t r = i / b->n_columns * ROWS, c = i % b->n_columns * COLUMNS;
    const uint32_t m = MIN(ROWS, p->m - r), n = MIN(COLUMNS, p->n - c);
    struct scratch *s = g_new(struct scratch, 1);
    float sums[STRIP * PANEL];
    for (uint32_t k0 = 0; k0 < p->k; k0 += K_BLOCK) {
        const uint32_t k = MIN(K_BLOCK, p->k - k0);
        pack_right(p, c, n, k0, k, s->right);
        pack_left(p, r, m, k0, k, s->left);
        for (uint32_t y = 0; y < n; y += PANEL)
            for (uint32_t x = 0; x < m; x += STRIP) {
                multiply_tile(k, s->left + (size_t)x * k, s->right + (size_t)y * k, sums);
                store_tile(p, sums, r + x, c + y, k0 == 0);
            }
    }
    if (p->k == 0)
        for (uint32_t x = 0; x < m; x++) memset(p->c + (size_t)(r + x) * p->ldc + c, 0, n * sizeof(float));
    scale_block(p, r, m, c, n);
    g_free(s);
}

void ref_product_run(const struct ref_product *p) {
    struct blocks b = {p, ceil_div_u32(p->n, COLUMNS)};
    par_for(ceil_div_u32(p->m, ROWS) * b.n_columns, block_run, &b);
}

void ref_product_alone(const struct ref_product *p) {
    const struct blocks b = {p, ceil_div_u32(p->n, COLUMNS)};
    for (uint32_t i = 0; i < ceil_div_u32(p->m, ROWS) * b.n_columns; i++)
        block_run(i, 0, (void *)&b);
}
