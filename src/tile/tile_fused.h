/* tile_fused: repeat bodies executed without fetching (tile_fused.c). Not for other rooms. */
#ifndef IPU_TILE_TILE_FUSED_H
#define IPU_TILE_TILE_FUSED_H

#include "tile/tile_exec.h"

/* At the first bundle of a repeat body with passes left: executes whole passes that end by `limit`.
 * False when nothing was done, so that the plain code must issue the next slot. Registers, memory,
 * cycles and faults are those of plain execution; after a fault e->fault, e->pc and e->cycle are set. */
bool tile_fused_run(struct tile_exec *e, uint64_t limit);

/* At a bundle of the matrix unit outside a repeat: the bundles like it that follow without a break, by
 * the same executor. False as above. */
bool tile_fused_segment(struct tile_exec *e, uint64_t limit);

/* Straight code from here on, outside a repeat. False as above. */
bool tile_fused_block(struct tile_exec *e, uint64_t limit);

/* What tile_fused_amp.c makes of a body, or NULL when it is no AMP loop. */
struct tile_amp_loop;
struct tile_amp_loop *tile_amp_loop_make(const struct tile_slot *slots, uint32_t n);
/* Executes as much as it can; the number of slots, 0 when the loop's conditions do not hold. The plan
 * remembers what follows from the stride registers. */
uint64_t tile_amp_loop_run(struct tile_exec *e, struct tile_amp_loop *l, uint64_t passes);

#endif
