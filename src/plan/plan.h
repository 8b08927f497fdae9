/* plan: graph to program. Chooses layouts, grids, precision, order of movement by cost.
 *
 * In:   a verified graph, options, capacities of a tile that are left for planned data.
 * Out:  a program with its predicted costs, or what does not fit as data (plan_infeasible).
 * Costs: closed forms of kernel_cycles and phase loads counted from ownership. The planner never
 *       asks the device model anything.
 * Determinism: same graph and options, same program, for any number of threads; budgets count
 *       evaluations.
 * Errors: GError 900..949: operations and combinations that cannot be planned yet, bad constraints.
 * Facts: compiler 2.3, 3.2, 4; planning 1 to 6.
 */
#ifndef IPU_PLAN_H
#define IPU_PLAN_H

#include "graph/graph.h"
#include "program/program.h"
#include "reference/reference.h"

/* --gemm-plan-constraint (compiler 2.3):
 * OP:ROWSxCOLUMNSxINNER[:RRxRC[:COLUMNBLOCK[:standard|interleaved[:normal|swapped
 *   [:complete|streamed|batch-N[:direct|match-remote[:passes-N]]]]]]]
 * OP is the number of the operation in the graph's program order (operations of all kinds count).
 * A field left out is free. */
struct plan_constraint {
    uint32_t op;
    uint32_t rows, columns, inner;
    uint32_t split_rows, split_columns; /* RR x RC; 0 = free */
    uint32_t column_block;              /* 0 = free */
    uint8_t memory;                     /* enum program_memory; ANY = free */
    int8_t swapped;                     /* -1 free, 0 normal, 1 swapped */
    int32_t staging;                    /* -1 free, 0 complete, 1 streamed, N >= 2 batch-N */
    int8_t match_remote;                /* -1 free */
    uint32_t passes;                    /* over the rows; 0 = free */
};
bool plan_constraint_parse(const char *text, struct plan_constraint *ret, GError **error);

/* Names on the command line: plan_attention.def. */
enum plan_attention_strategy {
#define PLAN_ATTENTION(name, text) PLAN_ATTENTION_##name,
#include "plan/plan_attention.def"
#undef PLAN_ATTENTION
    PLAN_N_ATTENTION
};
/* Which of the products of a materialised attention have a grid of their own beside the softmax's. */
enum plan_attention_products {
#define PLAN_PRODUCTS(name, text) PLAN_PRODUCTS_##name,
#include "plan/plan_attention.def"
#undef PLAN_PRODUCTS
    PLAN_N_PRODUCTS
};

struct plan_options {
    uint32_t n_tiles;
    bool inputs_once; /* host inputs stored once and distributed on the device; else the host
                       * may write them in any layout, replicas included */
    uint32_t standard_bytes, interleaved_bytes; /* capacity for planned data on a tile */
    uint32_t free_input_bytes; /* most that a freely placed host input may take on a tile */
    uint32_t n_constraints;
    const struct plan_constraint *constraints;
    bool fp8; /* operands of products with parameters in F8 F143 at fp8_exponent */
    int32_t fp8_exponent;
    bool attention_qk_fp8,
        attention_pv_fp8; /* both operands of that product of attention in F8 F143 */
    int32_t attention_qk_exponent, attention_pv_exponent;
    uint8_t attention_strategy; /* enum plan_attention_strategy */
    uint8_t attention_products; /* enum plan_attention_products */
    uint32_t candidates; /* grids kept per product for the search; 0 = default */
    uint32_t norm_parts; /* column parts of every layer normalisation; 0 = the cheapest */
    uint32_t passes;     /* over the rows of every product that can; 0 = as memory requires */
    uint32_t rank;       /* 0 = the best plan, 1 = with the next best last product ... */
};
void plan_options_defaults(struct plan_options *o);

/* What was chosen for one product, for reports. */
struct plan_product {
    const char *operation;
    uint32_t op;                                     /* number in program order */
    uint32_t rows, columns, inner;                   /* grid */
    uint32_t local_rows, local_inner, local_columns; /* largest tile */
    bool interleaved;
    uint64_t in_cycles, product_cycles, partial_cycles, reduce_cycles; /* predicted */
};

struct plan_user {
    const char *name;
    uint64_t bytes;
};
/* Of the products that fit nowhere, the one that lacks most, on the grid on which it lacks least;
 * else the value that lacks most. */
struct plan_infeasible {
    const char *operation;
    const char *memory; /* "standard", "interleaved" or "all" */
    uint32_t tile;
    uint64_t needs_bytes, has_bytes;
    uint32_t grid[3];        /* rows, columns, inner; 0 = not a product's */
    uint32_t fewer_iterations; /* of the repeat with most parameters, that would do; 0 = none would */
    uint32_t n_users;
    struct plan_user users[8]; /* largest first */
};

enum plan_status { PLAN_OK, PLAN_INFEASIBLE, PLAN_ERROR };
struct plan_result {
    struct program *program; /* PLAN_OK: owned by the caller (program_free) */
    uint64_t predicted_cycles;
    uint64_t evaluations;
    uint32_t n_products;
    struct plan_product *products; /* in the program's arena */
    struct reference_precision
        precision;                     /* what the reference is to round; in the program's arena */
    struct plan_infeasible infeasible; /* PLAN_INFEASIBLE; strings live as long as the graph */
};
/* PLAN_ERROR sets *error; otherwise *ret is filled. */
enum plan_status plan_graph(const struct graph *g, const struct plan_options *o,
                            struct plan_result *ret, GError **error);

#endif
