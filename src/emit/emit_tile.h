/* emit_tile: the writer of one tile's program. Private to the room. */
#ifndef IPU_EMIT_TILE_H
#define IPU_EMIT_TILE_H

#include "emit/emit_code.h"

enum { EMIT_MAX_STRIDES = 64 };

/* Registers of generated code. */
enum {
    M_OFFSET = 0, /* scratch: offset of the current iteration */
    M_ARGUMENT = 2,
    M_BARRIER = 7,
    M_SCRATCH = 8,
    M_SAMPLE = 9,
    M_LINK = 10,
    M_STACK = 11,
    M_ZERO = 15,
};

/* Values of the two base registers where they are known; start-up leaves 0. */
enum { EMIT_BASE_UNKNOWN = UINT32_MAX, EMIT_BASE_MOVED = UINT32_MAX - 1 };
struct emit_bases {
    uint32_t incoming, outgoing; /* bytes, or one of the above */
};

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
    uint32_t head_cycles; /* of the loop: its sample */
    int32_t stride[EMIT_MAX_STRIDES];
    struct emit_bases bases;
};
void emit_tile_write(struct emit_tile *w);

/* Bytes that a reference moves by at every iteration of the repeat around it. */
int32_t emit_ref_stride(const struct emit_tile *w, struct tg_ref ref);
/* Word of the repeat's frame that holds stride x iteration; emit_frame_add makes it. */
uint32_t emit_frame_word(const struct emit_tile *w, int32_t stride);
void emit_frame_add(struct emit_tile *w, int32_t stride);
void emit_sample(struct emit_tile *w);

/* emit_phase.c: exchange number `exchange` of the graph, which is step `step`. */
void emit_phase_write(struct emit_tile *w, uint32_t step, uint32_t exchange);
/* The strides that its code needs in the repeat's frame. */
void emit_phase_strides(struct emit_tile *w, uint32_t step, uint32_t exchange);
/* The repeat that begins at `step`: forgets the bases that its body leaves otherwise. */
void emit_phase_repeat(struct emit_tile *w, uint32_t step, uint32_t exchange);

#endif
