/* emit_tile: the writer of one tile's program. Private to the room. */
#ifndef IPU_EMIT_TILE_H
#define IPU_EMIT_TILE_H

#include "emit/emit_code.h"

enum { EMIT_MAX_STRIDES = 64 };

/* What is the same for every call of a spec. */
struct emit_kernel {
    uint32_t entry, n_registers;
    uint64_t cycles;
};

struct emit_tile {
    /* in */
    const struct emit_request *r;
    const struct emit_kernel *kernels; /* [n_specs] */
    const uint32_t *row_address;       /* [exchange steps] of this tile; NULL: sizes only */
    struct emit_cost *cost;            /* [n_steps] of this tile, or NULL */
    uint32_t tile;
    /* out */
    struct emit_code code;             /* initialised by the caller */
    GArray *marks;                     /* struct emit_mark, the caller's */
    uint32_t end_pc, prologue_cycles;
    GError *error;
    /* private */
    uint32_t sampled;
    bool inside; /* a repeat */
    uint32_t n_strides, loop_pc;
    int32_t stride[EMIT_MAX_STRIDES];
    bool moved_base; /* OUTGOING_BASE may not be 0 */
};
void emit_tile_write(struct emit_tile *w);

#endif
