/* tile_graph: the form between lower and place/exchange/emit. Per-tile work without addresses.
 *
 * Holds:  allocations (a contiguous range of SRAM on one tile with a lifetime), steps in program
 *         order, of which each is one exchange phase (transfers) or one round of kernel calls on
 *         every tile, or the begin or end of a repeat; bindings of graph tensors to allocations.
 * Not:    addresses, instructions.
 * Layout: parallel arrays; groups in CSR form (first[i]..first[i+1]); 32-bit indices. Everything
 *         lives in one arena. Tiles are logical numbers. Sizes and offsets are bytes, transfers are
 *         counted in 32-bit words.
 * Invariants (tg_verify): references inside their allocation; a call's operands on the call's tile
 *         and as kernel_describe wants them; transfers word aligned, destinations of one phase
 *         disjoint; steps of a repeat nest at one level; lifetimes cover all uses.
 */
#ifndef IPU_TILE_GRAPH_H
#define IPU_TILE_GRAPH_H

#include "base/base.h"
#include "kernel/kernel.h"

#define TG_NONE UINT32_MAX

/* A place inside an allocation. Inside a repeat body, allocations with blocks > 1 advance by their
 * stride at every iteration. */
struct tg_ref {
    uint32_t alloc;
    uint32_t offset;
};

enum tg_memory { TG_ANY, TG_STANDARD, TG_INTERLEAVED };

enum tg_alloc_flags {
    TG_PARAMETER = 1,      /* written by the host before the run, kept for every run */
    TG_HOST_INPUT = 2,     /* written by the host before each run */
    TG_HOST_OUTPUT = 4,    /* read by the host after the run */
    TG_NO_HOST_WINDOW = 8, /* may not lie in the host window */
    TG_ZEROED = 16,        /* the host writes zeros to all of it at load time */
};

struct tg_allocs {
    uint32_t n;
    uint16_t *tile;
    uint32_t *bytes;      /* payload of one block */
    uint32_t *tail_bytes; /* access tail behind the payload */
    uint16_t *align;
    uint8_t *memory;                  /* enum tg_memory */
    uint8_t *flags;                   /* enum tg_alloc_flags */
    uint32_t *value;                  /* index into values: provenance */
    uint32_t *first_step, *last_step; /* inclusive; set by tg_lifetimes */
    uint32_t *alias;        /* TG_NONE, or the allocation whose storage this one shares ... */
    uint32_t *alias_offset; /* ... at this byte offset */
    uint32_t *blocks;       /* 1, or the number of repeat iterations with a block each */
    uint32_t *stride;       /* bytes between blocks (blocks > 1); 0 = placement's choice */
};

/* Pairs of allocations of one tile that must not share an effective memory element. */
struct tg_separations {
    uint32_t n;
    uint32_t *a, *b;
};

enum tg_step_kind { TG_EXCHANGE, TG_COMPUTE, TG_REPEAT_BEGIN, TG_REPEAT_END };

struct tg_step {
    uint8_t kind;        /* enum tg_step_kind */
    uint32_t operation;  /* index into names: provenance */
    uint32_t reason;     /* index into names: "operator", "copy", "reduction", "clear", ... */
    uint32_t first, end; /* EXCHANGE: transfers; COMPUTE: calls (also see first_call) */
    uint32_t first_call; /* COMPUTE: index into call_of_tile: n_tiles + 1 entries, CSR by tile */
    uint32_t count;      /* REPEAT_BEGIN: iterations */
};

/* Transfers of all exchange steps. Recipient r of transfer x: recipient[first_recipient[x] ..]. */
struct tg_transfers {
    uint32_t n, n_recipients;
    struct tg_ref *source;
    uint32_t *words;
    uint32_t *first_recipient; /* n + 1 */
    struct tg_ref *recipient;
};

/* Kernel calls of all compute steps, ordered by step, tile, then program order on the tile. */
struct tg_calls {
    uint32_t n;
    uint32_t *spec;          /* index into specs */
    uint32_t *first_operand; /* n + 1 */
    struct tg_ref *operand;  /* in kernel order: outputs, then inputs */
};

/* How a box of a tensor lies in an allocation: a nest of strided loops over elements.
 * element(i0..ik) of the tensor at tensor_offset + sum i_j * tensor_step[j] (elements) lies at
 * byte mem_offset + sum i_j * mem_step[j]. Bytes of an input or parameter that no slice names are
 * padding and must be zero: the host writes zeros to them with the slices; an allocation that is
 * all padding has no slice. TG_ZEROED marks every allocation with such bytes. One element may have
 * several places. A tensor has one binding for each format in which it is stored.
 * A RESULT is an intermediate value of the graph, for diagnostics: its elements are complete behind
 * step `step` (in a repeat: of every iteration) and stay until the tile's next step begins. */
enum { TG_SLICE_DIMS = 5 };
struct tg_slice {
    uint32_t alloc;
    uint32_t step;       /* RESULT: the step that completes it; else 0 */
    uint32_t block;      /* of an allocation with blocks > 1; else 0 */
    uint32_t mem_offset; /* in the block */
    uint64_t tensor_offset;
    uint32_t n_dims;
    uint32_t count[TG_SLICE_DIMS];
    uint64_t tensor_step[TG_SLICE_DIMS];
    uint32_t mem_step[TG_SLICE_DIMS];
};

enum tg_binding_kind { TG_BIND_INPUT, TG_BIND_OUTPUT, TG_BIND_PARAMETER, TG_BIND_RESULT };
enum tg_format { TG_F16, TG_F32, TG_F8_F143, TG_F8_F152, TG_U32 /* whole numbers: indices */ };

struct tg_binding {
    const char *name;
    uint8_t kind;   /* enum tg_binding_kind */
    uint8_t format; /* enum tg_format, as stored on the tiles */
    int8_t scale;   /* power-of-two exponent of an F8 format */
    uint32_t n_dims;
    uint32_t shape[6];
    uint32_t bound; /* of indices: every element must be less; 0 = no bound */
    uint32_t first_slice, end_slice;
};

struct tile_graph {
    struct arena *arena;
    uint32_t n_tiles;
    uint32_t n_names;
    const char **names; /* operations, values, reasons */
    struct tg_allocs allocs;
    struct tg_separations separations;
    uint32_t n_steps;
    struct tg_step *steps;
    uint32_t *call_of_tile; /* per compute step n_tiles + 1 entries: calls of tile t of the step */
    struct tg_transfers transfers;
    struct tg_calls calls;
    uint32_t n_specs;
    struct kernel_spec *specs;
    uint32_t n_bindings;
    struct tg_binding *bindings;
    uint32_t n_slices;
    struct tg_slice *slices;
};

/* Fills first_step and last_step of every allocation: the steps that touch it; extended to the
 * whole repeat for uses inside one, unless all uses lie inside (then each iteration writes it
 * anew); inputs and parameters from step 0, parameters and outputs to the last step. The target of
 * an alias lives as long as all its aliases. An allocation that nothing touches keeps step 0. */
void tg_lifetimes(struct tile_graph *g);
/* Our bug if it fails: message names step, call or transfer, tile. */
bool tg_verify(const struct tile_graph *g, char **ret_message);
void tg_print(const struct tile_graph *g, GString *out);

#endif
