/* Damage behind a valid seal: what the inner checks of container readers are for. */
#ifndef TESTS_RESEAL_H
#define TESTS_RESEAL_H

#include "base/container.h"

#include <string.h>

/* Changes up to `most` bytes of a container outside its header and seal, drawn from `seed`, and seals it
 * again. */
static inline void reseal_damaged(uint8_t *bytes, size_t n, uint64_t seed, uint32_t most) {
    const uint8_t *mark = memmem(bytes, n, "ipu-stackseal", 13);
    g_assert_nonnull(mark);
    const size_t seal = (size_t)(mark - bytes) - 1 + 16;
    for (uint32_t j = 0; j <= seed % most; j++) {
        const size_t at = rand_u64(11, seed, j) % n;
        if (at >= 100 && (at < seal - 16 || at >= seal + 8)) bytes[at] = (uint8_t)rand_u64(12, seed, j);
    }
    memset(bytes + seal, 0, 8);
    const uint64_t sum = GUINT64_TO_LE(container_checksum(bytes, n));
    memcpy(bytes + seal, &sum, 8);
}

#endif
