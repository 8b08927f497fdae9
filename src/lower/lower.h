/* lower: program to tile graph. Turns layouts into shards, copies into one-source/many-recipient
 * transfers and local copies, products, sums and kernels into kernel calls, tensors into bindings.
 *
 * In:   a verified program.
 * Out:  a tile graph that tg_verify accepts, with lifetimes filled. Deterministic.
 * Copies: every destination shard is walked in storage order; runs that are contiguous in source
 *       and destination storage become one transfer with all replicas as recipients; a run whose
 *       only recipient owns its source becomes a 64-bit copy; runs above the longest message are
 *       cut. Runs of halves that are not whole words arrive with the words around them and are moved
 *       to their places by calls behind the phase. Consecutive copies without a dependency share one phase.
 * Padding: columns beyond a product's width are zero because the coefficients' padding is zero (the
 *       host writes it); storage that no transfer writes and a kernel reads is filled with zeros.
 * Ownership: the tile graph owns its arena; free with tile_graph_free. Errors: GError 850..899 by
 *       name for what has no lowering yet. Threads: one program per call; no global state.
 */
#ifndef IPU_LOWER_H
#define IPU_LOWER_H

#include "lower/tile_graph.h"
#include "program/program.h"

struct lower_options {
    bool separate_loopback; /* ask for distinct elements of a loopback's two ends; default true */
    bool results;           /* bind the program's results as well, for diagnostics; default false.
                             * Nothing else of the tile graph changes */
};
void lower_defaults(struct lower_options *o);
/* options may be NULL. */
bool lower_program(const struct program *p, const struct lower_options *options,
                   struct tile_graph **ret, GError **error);
void tile_graph_free(struct tile_graph *g);

/* Peak bytes of live allocations per tile, by class and in all, from lifetimes alone: a lower bound
 * of what placement needs. Arrays of n_tiles; any may be NULL. */
void tile_graph_peaks(const struct tile_graph *g, uint32_t *ret_total, uint32_t *ret_standard,
                      uint32_t *ret_interleaved);
/* Payload bytes that the host writes before a run (inputs, replicas included). */
uint64_t tile_graph_input_bytes(const struct tile_graph *g);

#endif
