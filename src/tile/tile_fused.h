/* tile_fused: repeat bodies executed without fetching (tile_fused.c). Not for other rooms. */
#ifndef IPU_TILE_TILE_FUSED_H
#define IPU_TILE_TILE_FUSED_H

#include "tile/tile_exec.h"

/* At the first bundle of a repeat body with passes left: executes whole passes that end by `limit`.
 * False when nothing was done, so that the plain code must issue the next slot. Registers, memory,
 * cycles and faults are those of plain execution; after a fault e->fault, e->pc and e->cycle are set. */
bool tile_fused_run(struct tile_exec *e, uint64_t limit);

/* Outside a repeat: straight code from here up to a branch, repeat or exit. False as above. */
bool tile_fused_block(struct tile_exec *e, uint64_t limit);

/* What tile_fused_amp.c makes of bundles, or NULL when it can't run them; g_free frees it. */
struct tile_amp_loop;
struct tile_amp_loop *tile_amp_loop_make(const struct tile_slot *slots, uint32_t n);
/* The bundles are at e->pc. Executes as much as it can; the number of slots, 0 when the loop's conditions
 * do not hold. The plan
 * remembers what follows from the stride registers. */
uint64_t tile_amp_loop_run(struct tile_exec *e, struct tile_amp_loop *l, uint64_t passes);

/* A stretch of code from `pc` on, in region 0 at `memory`, as rows of the matrix unit (tile_trace.c); NULL
 * when it is none. */
struct tile_trace;
struct tile_trace *tile_trace_make(uint32_t pc, const uint8_t *memory);
void tile_trace_free(struct tile_trace *c);
/* True when the code at `memory` is still that of the trace. */
bool tile_trace_is(const struct tile_trace *c, const uint8_t *memory);
/* Its code is at e->pc, outside a repeat. Executes all of it or rows up to where the plain code must decide:
 * the number of slots, then e->pc, the repeat and all registers are those behind them. 0, with nothing
 * changed, when conditions do not hold or it takes more than `most` slots. */
uint32_t tile_trace_run(struct tile_exec *e, struct tile_trace *c, uint64_t most);

#endif
