/* Deterministic loops: OpenMP's dynamic schedule hands out items, each writes its own slot. */
#include "base/base.h"

#include <omp.h>

static uint32_t wanted_threads;

void par_set_threads(uint32_t n) {
    wanted_threads = n;
}

uint32_t par_threads(void) {
    if (wanted_threads != 0) return wanted_threads;
    const int n = omp_get_num_procs();
    return n > 0 ? (uint32_t)n : 1;
}

void par_for(uint32_t n, par_body *body, void *context) {
    const int threads = (int)par_threads();
    if (threads == 1 || n <= 1) {
        for (uint32_t i = 0; i < n; i++) body(i, 0, context);
        return;
    }
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
    for (uint32_t i = 0; i < n; i++) body(i, (uint32_t)omp_get_thread_num(), context);
}
