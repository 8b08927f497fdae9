/* tile_amp: the weights of a tile as the matrix unit's loops want them. Not for other rooms. */
#ifndef IPU_TILE_TILE_AMP_H
#define IPU_TILE_TILE_AMP_H

#include "tile/tile_exec.h"

/* Exact values, [phase][input][unit]; valid while the generation and the format are those of the
 * tile. A phase of F16 has 4 inputs, one of F8 has 8. */
struct tile_weights {
    double f16[4][4][16] __attribute__((aligned(64)));
    double f8[4][8][16];
    uint32_t f16_generation, f8_generation; /* 0 = never */
    uint32_t f8_format;
};
const struct tile_weights *tile_weights_f16(struct tile *t);
const struct tile_weights *tile_weights_f8(struct tile *t, enum num_f8_format format);

#endif
