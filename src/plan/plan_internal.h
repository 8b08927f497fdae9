/* What the planner's files share: products found in the graph, their candidates with costs. */
#ifndef IPU_PLAN_INTERNAL_H
#define IPU_PLAN_INTERNAL_H

#include "kernel/kernel.h"
#include "plan/plan.h"

/* A product of the graph in matrix form: left [rows, inner] (leading axes flattened) times a parameter
 * [inner, columns]. */
struct plan_gemm {
    const struct graph *g;
    uint32_t op;              /* graph operation */
    uint32_t rows, inner, columns;
    uint32_t left, right;     /* graph values */
    uint32_t source;          /* product whose result reaches `left` through elementwise operations, or
                               * PROGRAM_NONE: a host input or parameter */
    bool free_input;          /* the host writes the left operand where it is read */
    bool transpose_right;
    uint32_t n_pointwise;     /* elementwise operations on the result */
    struct plan_constraint constraint; /* fields 0 or -1 where free */
};

enum plan_home { PLAN_HOME_INSIDE, PLAN_HOME_APART };

/* One way to run a product. */
struct plan_candidate {
    uint32_t r, c, k;
    uint32_t local_rows, local_inner, local_columns; /* largest tile, padded */
    uint32_t stride_r, stride_c, stride_k;
    uint8_t home;      /* enum plan_home */
    bool pair_columns, pair_rows; /* pairs of tiles share the left or the right operand */
    bool interleaved;
    uint64_t fixed_cycles; /* all but the left operand's movement */
    uint64_t in_cycles;    /* in-phase with the left operand in long messages */
    uint64_t product_cycles, partial_cycles, reduce_cycles, pointwise_cycles;
    uint32_t left_bytes, right_bytes, out_bytes, received_bytes, result_bytes;
    uint32_t resident_bytes; /* of the parameter between uses */
    uint32_t peak_bytes;     /* of this product alone */
    uint32_t interleaved_bytes; /* part of the peak that must be interleaved */
};

struct plan_set {
    uint32_t n;
    struct plan_candidate *candidates; /* ascending by cost */
    struct plan_infeasible best_misfit; /* needs_bytes 0 = none seen */
    uint64_t evaluations;
};

/* Expected cycles of a phase whose busiest tile moves `items`, in messages of `message_words`. */
uint64_t plan_phase_cycles(uint64_t items, uint64_t message_words);
/* All candidates that fit, at most `most`, cheapest first. */
void plan_gemm_candidates(const struct plan_gemm *m, const struct plan_options *o,
                          struct arena *arena, struct plan_set *ret);
/* Cycles of moving `from`'s result to where `to` reads it, together with to's coefficients. */
uint64_t plan_edge_cycles(const struct plan_gemm *mf, const struct plan_candidate *from,
                          const struct plan_gemm *mt, const struct plan_candidate *to);
/* Receive slots of the in-phase when the left operand takes `left` of them. */
uint64_t plan_in_items(const struct plan_candidate *c, uint64_t left);

struct plan_path {
    const struct graph *g;
    const struct plan_options *o;
    uint32_t n_gemms;
    struct plan_gemm *gemms;
    struct plan_candidate *chosen; /* [n_gemms] */
};
struct program *plan_build_program(const struct plan_path *path, GError **error);

#endif
