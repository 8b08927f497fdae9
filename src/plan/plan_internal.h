/* What the planner's files share: the products of a graph with what is fused behind them, their
 * candidates with costs, the path that was chosen. */
#ifndef IPU_PLAN_INTERNAL_H
#define IPU_PLAN_INTERNAL_H

#include "kernel/kernel.h"
#include "plan/plan.h"

/* A product of the graph in matrix form: left [rows, inner] (leading axes flattened) times a
 * parameter [inner, columns]; then, with the reduction of its partials, bias, GELU or residual. */
struct plan_gemm {
    const struct graph *g;
    uint32_t op; /* graph operation */
    uint32_t rows, inner, columns;
    uint32_t left, right; /* graph values */
    uint32_t result;      /* graph value behind the fused operations */
    uint32_t source;      /* product whose result reaches `left` without another layout, or
                           * PROGRAM_NONE */
    bool free_input;      /* the host writes the graph's left operand where it is read */
    bool transpose_right;
    bool swapped;          /* rows are the parameter's columns, columns the left operand's rows: the
                            * result is held transposed, as attention wants its values */
    uint32_t first, width; /* columns [first, ..) of a parameter `width` wide */
    uint32_t batch;        /* swapped: column matrices (images), columns each; else 1 */
    bool repeated;         /* in the body of a repeat: its coefficients are a sequence */
    uint8_t format;        /* enum program_format of the operands */
    uint8_t epilogue;      /* enum program_epilogue */
    uint32_t bias, residual;           /* graph values */
    uint32_t n_pointwise;              /* elementwise operations on the result that are not fused */
    struct plan_constraint constraint; /* fields 0 or -1 where free */
};

enum plan_home { PLAN_HOME_INSIDE, PLAN_HOME_APART };

enum { PLAN_MOST_PASSES = 8 };
/* One way to run a product. */
struct plan_candidate {
    uint32_t r, c, k;
    uint32_t passes; /* over the rows: coefficients stay, left operand and partials are a pass's */
    uint32_t owners; /* of a result block: k, or its 32-byte rows if there are fewer */
    uint32_t local_rows, local_inner, local_columns; /* largest tile, padded */
    uint32_t stride_r, stride_c, stride_k, base;
    uint8_t home;                 /* enum plan_home */
    bool pair_columns, pair_rows; /* pairs of tiles share the left or the right operand */
    bool interleaved;
    uint64_t fixed_cycles;   /* all but the left operand's movement */
    uint64_t in_cycles;      /* in-phase with the left operand in long messages, casts included */
    uint64_t convert_cycles; /* of it: bringing a computed left operand into F8 */
    uint64_t product_cycles, partial_cycles, reduce_cycles, pointwise_cycles;
    uint32_t left_bytes, right_bytes, out_bytes, received_bytes; /* of a pass */
    uint32_t result_bytes;                                       /* of all */
    uint32_t resident_bytes;    /* of the parameter between uses */
    uint32_t peak_bytes;        /* of this product alone */
    uint32_t interleaved_bytes; /* part of the peak that must be interleaved */
};

struct plan_set {
    uint32_t n;
    struct plan_candidate *candidates;  /* ascending by cost */
    struct plan_infeasible best_misfit; /* needs_bytes 0 = none seen */
    uint64_t evaluations;
};

/* Columns of one K group. */
static inline uint32_t plan_group(const struct plan_gemm *m) {
    return program_micro(m->format);
}

/* Expected cycles of a phase whose busiest tile moves `items`, in messages of `message_words`. */
uint64_t plan_phase_cycles(uint64_t items, uint64_t message_words);
/* All candidates that fit beside `homes_bytes` of other parameters on a tile, at most o->candidates,
 * cheapest first. */
void plan_gemm_candidates(const struct plan_gemm *m, const struct plan_options *o,
                          uint64_t homes_bytes, struct arena *arena, struct plan_set *ret);
/* Cycles of moving `from`'s result to where `to` reads it, together with to's coefficients. */
uint64_t plan_edge_cycles(const struct plan_gemm *mf, const struct plan_candidate *from,
                          const struct plan_gemm *mt, const struct plan_candidate *to);
/* All in-phases when the left operand of a pass takes `left` receive slots, in messages of so many
 * words. */
uint64_t plan_in_cycles(const struct plan_candidate *c, uint64_t left, uint64_t message_words);

/* Bias of attention's values, added to its result (the probabilities of a row sum to one). */
struct plan_value_bias {
    uint32_t value; /* graph value, GRAPH_NONE = none */
    uint32_t first; /* element of it where the values' columns begin */
};

/* The operations of a graph in program order, bodies of repeats in place. */
struct plan_order {
    const struct graph *g;
    uint32_t n_ops, *ops; /* graph operations; a repeat stands before its body */
    uint32_t *repeat_of;  /* by position: the repeat whose body it is in, or GRAPH_NONE */
    bool *fused;          /* by graph operation: part of a product's epilogue */
    uint32_t n_gemms;
    struct plan_gemm *gemms; /* in program order */
    uint32_t *gemm_of; /* by graph operation: index into gemms, or PROGRAM_NONE; products of one
                        * operation follow each other */
    struct plan_value_bias *value_bias; /* by graph operation (attention) */
    bool *mixed; /* by graph value: a host tensor that operations read in several formats */
};
bool plan_find(struct plan_order *p, const struct graph *g, const struct plan_options *o,
               struct arena *arena, GError **error);
/* Fills mixed; products whose parameter is mixed become F16 (plan_formats.c). */
bool plan_formats(struct plan_order *p, const struct plan_options *o, struct arena *arena,
                  GError **error);
bool plan_is_mixed(const struct plan_order *p, uint32_t value);
bool plan_refuse(const struct graph_op *op, const char *why, GError **error);
/* The value behind the invariant arguments of repeats. */
uint32_t plan_resolve(const struct graph *g, uint32_t value);
/* Last axis = columns, all others flattened into rows. */
void plan_matrix(const struct graph_shape *s, uint32_t *ret_rows, uint32_t *ret_columns);

/* True if `from` broadcasts to `to` by repeating its rows as a block: [1, .., 1, suffix of to]. */
bool plan_is_suffix(const struct graph_shape *from, const struct graph_shape *to);

/* Attention that the plan with split keys does not serve, whatever its operands. */
bool plan_attention_is_by_rows(const struct graph *g, const struct graph_op *op);

struct program *plan_build_program(const struct plan_order *p, const struct plan_options *o,
                                   const struct plan_candidate *chosen,
                                   struct plan_infeasible *ret_misfit, GError **error);

#endif
