/* Route latencies and directions by logical tile, from target's closed forms, made once: 4.3 MiB.
 */
#include "exchange/exch_int.h"

#include <pthread.h>

static struct exch_route table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make(void) {
    for (uint32_t l = 0; l < TARGET_N_TILES; l++) {
        const struct ptile p = target_ptile((struct ltile){(uint16_t)l});
        table.phys[l] = p.n;
        table.row[l] = (uint8_t)target_row(p);
    }
    for (uint32_t s = 0; s < TARGET_N_TILES; s++)
        for (uint32_t d = 0; d < TARGET_N_TILES; d++) {
            const struct ptile ps = {table.phys[s]}, pd = {table.phys[d]};
            table.ttm[s][d] = (int8_t)target_ttm(ps, pd);
            table.dir[s][d] = (uint8_t)target_direction(ps, pd);
        }
}

const struct exch_route *exch_route(void) {
    pthread_once(&once, make);
    return &table;
}
