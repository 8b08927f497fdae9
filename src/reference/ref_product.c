/* Matrix products: C[m,n] = alpha op(A) op(B) as blocks of cblas_sgemm under par_for.
 *
 * OpenBLAS gets one thread per call; the blocks are cut by the shape alone, so every result is the
 * same for any number of our threads on one machine. A build of OpenBLAS without threads keeps its work
 * buffers in unguarded statics, where concurrent calls give wrong results: with such a build the
 * calls take turns. */
#include "reference/ref_int.h"

#include <cblas.h>

enum { BLOCK_ROWS = 256, BLOCK_COLUMNS = 2048 };

/* Locked around calls when the build cannot be called from several threads, else NULL. */
static GMutex *blas_turns(void) {
    static GMutex mutex;
    static gsize ready;
    if (g_once_init_enter(&ready)) {
        openblas_set_num_threads(1);
        g_once_init_leave(&ready, openblas_get_parallel() == OPENBLAS_SEQUENTIAL ? 2 : 1);
    }
    return ready == 2 ? &mutex : NULL;
}

struct blocks {
    const struct ref_product *p;
    uint32_t n_columns; /* blocks per row of blocks */
    GMutex *turns;
};

static void block_run(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct blocks *b = context;
    const struct ref_product *p = b->p;
    const uint32_t r = i / b->n_columns * BLOCK_ROWS, c = i % b->n_columns * BLOCK_COLUMNS;
    const uint32_t m = MIN(BLOCK_ROWS, p->m - r), n = MIN(BLOCK_COLUMNS, p->n - c);
    const float *left = p->a + (p->transpose_a ? r : (size_t)r * p->lda);
    const float *right = p->b + (p->transpose_b ? (size_t)c * p->ldb : c);
    if (b->turns != NULL) g_mutex_lock(b->turns);
    cblas_sgemm(CblasRowMajor, p->transpose_a ? CblasTrans : CblasNoTrans,
                p->transpose_b ? CblasTrans : CblasNoTrans, (int)m, (int)n, (int)p->k, p->alpha,
                left, (int)p->lda, right, (int)p->ldb, 0.0f, p->c + (size_t)r * p->ldc + c,
                (int)p->ldc);
    if (b->turns != NULL) g_mutex_unlock(b->turns);
}

void ref_product_run(const struct ref_product *p) {
    struct blocks b = {p, ceil_div_u32(p->n, BLOCK_COLUMNS), blas_turns()};
    par_for(ceil_div_u32(p->m, BLOCK_ROWS) * b.n_columns, block_run, &b);
}

void ref_product_alone(const struct ref_product *p) {
    struct blocks b = {p, ceil_div_u32(p->n, BLOCK_COLUMNS), blas_turns()};
    for (uint32_t i = 0; i < ceil_div_u32(p->m, BLOCK_ROWS) * b.n_columns; i++)
        block_run(i, 0, &b);
}
