/* emit: from a placed tile graph with its rows to the words in every tile's SRAM.
 *
 * In:   a tile graph, an address for every allocation, one exch_result per exchange step and the table of
 *       their rows, the linked image of runtime and kernels, the addresses of the common support ranges.
 * Out:  per tile a supervisor program and a row table; the map from program addresses back to
 *       steps; the predicted cycles of every step on every tile.
 * Shapes: programs and rows in CSR form by tile (first[t] .. first[t+1], words). Exchange step i of the
 *       graph, counted in program order, uses rows[i].
 * Units: byte addresses, 32-bit words, tile cycles. Tiles are logical numbers.
 * Layout: code from CODE_BASE, the host window, runtime state, then one executable range that holds
 *       the rest of the code, the generated programs and the rows, at the same addresses on all
 *       tiles; elements of code hold no data (runtime 3.2). Sizes do not depend on addresses: every
 *       SRAM address fits one setzi.
 * Invariants: every row is called with the same distance from the sync to slot 0 on all tiles of a
 *       phase; a tile without transfers in a phase executes `sans 0; sync 1` (runtime 4.3).
 * Ownership: every result owns its memory; _free frees it. Threads: distinct objects on distinct
 *       threads; emit_programs uses par_for, same bytes for any number of threads.
 * Errors: GError, diag.def 950..999. Facts: runtime 1.10, 3, 4; isa 1.1, 7; exchange 2.4, 2.6.
 */
#ifndef IPU_EMIT_H
#define IPU_EMIT_H

#include "exchange/exch.h"
#include "isa/isa_asm.h"
#include "lower/tile_graph.h"
#include "target/target.h"

/* --- The linked image: tile runtime and the kernels that a graph uses --- */

struct emit_image {
    struct isa_image *isa;  /* segments, symbols, lines */
    uint32_t start, complete, barrier, sample; /* entry points of the tile runtime */
    uint32_t end_address;   /* first free byte of the executable range behind the runtime state */
};
/* Links device/: the runtime and the kernels that the graph calls. What does not fit below the host
 * window goes to the executable range behind the runtime state. */
struct emit_image *emit_image_new(const struct tile_graph *g, GError **error);
void emit_image_free(struct emit_image *image);

/* --- Common support ranges --- */

struct emit_support {
    uint32_t program_address, program_bytes; /* reserved, without the fetch guard behind them */
    uint32_t rows_address, rows_bytes;
};
/* Lays programs and rows of these sizes behind the image. False when they do not fit below the
 * interleaved region; *ret_missing is then the number of bytes too many. */
bool emit_support_layout(const struct emit_image *image, uint32_t program_bytes,
                         uint32_t rows_bytes, struct emit_support *ret, uint32_t *ret_missing);

/* --- Programs --- */

struct emit_options {
    bool sample; /* cycle sampling between steps (runtime 4.8); in a repeat, of the last iteration,
                  * those before it as one interval */
    /* Write both base registers at every phase, as runtime 4.3 lists it, and not only where they
     * change: for the calibration of TARGET_SYNC_INTERNAL_CYCLES. */
    bool base_writes;
};

struct emit_request {
    const struct tile_graph *graph;
    const struct emit_image *image;
    struct emit_support support;
    struct emit_options options;
    const uint32_t *stride;                 /* [allocs.n] bytes between blocks; 0 for a single one */
    const uint32_t *address;                /* [allocs.n]; NULL only for emit_program_bytes */
    const struct exch_result *const *rows;  /* [exchange steps of the graph]; NULL as address */
    const struct exch_table *table;         /* of these rows; NULL as address */
    const uint32_t *sample_address;         /* [n_tiles] of the sample buffer; NULL without sampling */
};

/* Bytes of the largest program; without addresses and rows whatever they will be, but for patches of
 * shared rows and of sends that move with more than one stride. */
bool emit_program_bytes(const struct emit_request *r, uint32_t *ret_bytes, GError **error);
/* Words of a tile's sample buffer: its marks + 1. */
uint32_t emit_sample_words(const struct tile_graph *g, uint32_t tile);

/* One interval of a tile's program that belongs to a step. Tiles without calls in a compute step have
 * no mark for it. Ascending by step and by pc. */
struct emit_mark {
    uint32_t step; /* index into graph steps */
    uint32_t pc;   /* first instruction of the step; the step ends where the next mark begins */
};

struct emit_result {
    struct arena *arena;
    uint32_t n_tiles;
    uint32_t stub[2];          /* the words at ENTRY_ADDRESS */
    uint32_t *first_word;      /* [n_tiles + 1] programs */
    uint32_t *words;
    uint32_t *first_row_word;  /* [n_tiles + 1] row tables */
    uint32_t *row_words;
    uint32_t *first_mark;      /* [n_tiles + 1] */
    struct emit_mark *marks;
    uint32_t *end_pc;          /* [n_tiles] first instruction behind the last step */
    uint32_t program_bytes_max, row_bytes_max;
    /* Prediction (architecture 5); the clock is 0 when runtime_start returns. In a repeat, start and
     * end are those of the first iteration. */
    uint64_t cycles_predicted; /* latest entry into the first step to last end of the last step */
    uint64_t exchange_cycles;  /* sum over the phases of last arrival to last exit */
    uint32_t *predicted_start, *predicted_end; /* [marks] */
};
struct emit_result *emit_programs(const struct emit_request *r, GError **error);
void emit_result_free(struct emit_result *r);
/* Lists one tile's program, one instruction per line with address and step. */
void emit_program_print(const struct emit_request *r, const struct emit_result *e, uint32_t tile,
                        GString *out);

#endif
