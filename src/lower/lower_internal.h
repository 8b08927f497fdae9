/* What the files of lowering share: the program, the tile graph under construction, the allocation
 * of every shard, the open phase. */
#ifndef IPU_LOWER_INTERNAL_H
#define IPU_LOWER_INTERNAL_H

#include "lower/lower.h"
#include "lower/lower_build.h"

struct lower {
    const struct program *p;
    struct lower_options options;
    struct tg_builder b;
    GError **error;
    struct arena *scratch;
    uint32_t **alloc_of;  /* [value][shard] */
    uint32_t *root_value; /* value whose storage this one shares, or itself */
    uint32_t *made_step;  /* by value: the last step that writes it */
    GArray *phase_values; /* uint32_t: what the open phase's copies write */
    /* The open phase. */
    uint32_t phase_first;             /* first transfer */
    bool *phase_written, *phase_read; /* by root value */
    bool phase_open;
    uint32_t phase_operation, phase_reason;
    GArray *local, *clear; /* struct lower_span: local copies and fills before the phase */
    GArray *after;         /* struct lower_move: copies of halves behind the phase */
    uint32_t *zeros;       /* by tile: 32 bytes of zeros that stay, or TG_NONE */
};
/* One call of COPY_U16. */
struct lower_move {
    uint32_t tile;
    struct kernel_spec spec;
    struct tg_ref to, from;
};
/* A stretch of a destination shard that is contiguous in its source. */
enum { LOWER_HOLE = 0xffffffffu, LOWER_FILLER = 0xfffffffeu };
struct lower_run {
    uint32_t shard;           /* of the source, replica 0; or one of the above */
    uint32_t from, to, bytes; /* offsets in source and destination shard */
};
struct lower_span {
    uint32_t tile, bytes;
    struct tg_ref to, from; /* clear: from unused */
};

static inline const struct program_value *lower_value(const struct lower *l, uint32_t v) {
    return &l->p->values[v];
}
static inline uint32_t lower_tile_of(const struct lower *l, uint32_t alloc) {
    return g_array_index(l->b.allocs, struct tg_alloc_row, alloc).tile;
}
/* Number of the shard of v with these part indices on tile t, or PROGRAM_NONE; searches replicas.
 */
uint32_t lower_shard_on_tile(const struct lower *l, uint32_t v, uint32_t index[PROGRAM_N_AXES],
                             uint32_t tile);
void lower_phase_open(struct lower *l, const struct program_op *op, uint32_t reads,
                      uint32_t writes);
bool lower_phase_close(struct lower *l);

/* Transfers of `bytes` to n recipients (whose offsets it advances), cut at the longest message. */
void lower_send(struct lower *l, struct tg_ref from, uint32_t bytes, struct tg_ref *to, uint32_t n);

bool lower_copy(struct lower *l, const struct program_op *op);
/* Calls for all of l->local, which it empties. */
bool lower_local_copies(struct lower *l);
/* Runs that are not whole words, to shard `d_shard` (replica 0) of op's output and its replicas. */
bool lower_pack_runs(struct lower *l, const struct program_op *op, uint32_t d_shard,
                     const struct lower_run *runs, uint32_t n);
/* Replica of the source's shard on the tile, or TG_NONE. */
uint32_t lower_source_near(const struct lower *l, uint32_t value, uint32_t shard, uint32_t tile);
/* Calls of one shard of the output, one per batch index. */
bool lower_row_max(struct lower *l, const struct program_op *op, uint32_t number,
                   const struct program_shard *s);
bool lower_exponential(struct lower *l, const struct program_op *op, uint32_t number,
                       const struct program_shard *s);
bool lower_normalise(struct lower *l, const struct program_op *op, uint32_t number,
                     const struct program_shard *s);
bool lower_merge(struct lower *l, const struct program_op *op, uint32_t number,
                 const struct program_shard *s);
bool lower_keep(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s);
bool lower_ones(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s);
bool lower_point(struct lower *l, const struct program_op *op, uint32_t number,
                 const struct program_shard *s);
bool lower_round(struct lower *l, const struct program_op *op, uint32_t number,
                 const struct program_shard *s);
bool lower_norm(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s);
bool lower_moments(struct lower *l, const struct program_op *op, uint32_t number,
                   const struct program_shard *s);
bool lower_apply_moments(struct lower *l, const struct program_op *op, uint32_t number,
                         const struct program_shard *s);
bool lower_softmax(struct lower *l, const struct program_op *op, uint32_t number,
                   const struct program_shard *s);
bool lower_gather(struct lower *l, const struct program_op *op, uint32_t number,
                  const struct program_shard *s);
bool lower_pack(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s);
/* Operations [0, return value) of a list are sums that lower_sums takes together. */
uint32_t lower_sums_joint(const struct lower *l, const uint32_t *ops, uint32_t n);
bool lower_sums(struct lower *l, const uint32_t *ops, uint32_t n);
/* Bindings of all inputs, parameters and outputs. */
bool lower_bind(struct lower *l);

#endif
