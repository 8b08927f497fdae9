/* Tile sets: 23 words of 64 bits; every operation is a loop over them. */
#include "base/base.h"

#include <string.h>

uint32_t tileset_count(const struct tileset *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < TILESET_WORDS; i++) n += (uint32_t)__builtin_popcountll(s->w[i]);
    return n;
}

bool tileset_equal(const struct tileset *a, const struct tileset *b) {
    return memcmp(a->w, b->w, sizeof a->w) == 0;
}

uint32_t tileset_next(const struct tileset *s, uint32_t from) {
    if (from >= TILESET_BITS) return TILESET_BITS;
    uint32_t i = from >> 6;
    uint64_t w = s->w[i] & (~UINT64_C(0) << (from & 63));
    while (w == 0) {
        if (++i == TILESET_WORDS) return TILESET_BITS;
        w = s->w[i];
    }
    return i * 64 + (uint32_t)__builtin_ctzll(w);
}
