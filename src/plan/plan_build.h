/* The program under construction: where every graph value is held, and placing one in the layout
 * that an operation wants. */
#ifndef IPU_PLAN_BUILD_H
#define IPU_PLAN_BUILD_H

#include "plan/plan_internal.h"

/* A graph value in matrix form is element map(b, r, c) of a program value. */
struct held {
    uint32_t value; /* PROGRAM_NONE: not made yet (a source) */
    struct program_map map;
    bool swapped; /* rows are the program value's columns: attention's values */
};

/* A program value whose element numbers are the tensor's, made while `repeat` was open. */
struct plain {
    uint32_t value, repeat; /* PROGRAM_NONE: none; made outside of repeats or a source */
};

struct build {
    const struct plan_order *order;
    const struct plan_options *o;
    const struct plan_candidate *chosen;
    const struct graph *g;
    struct program *p;
    struct held *held;  /* by graph value */
    struct plain *plain; /* by graph value */
    uint32_t *cast;     /* by graph value: its F8 form, or PROGRAM_NONE */
    bool *built;        /* by graph operation: made together with an earlier one */
    uint32_t next_base; /* first tile of the next product that needs few tiles */
    uint32_t ones;      /* 32 ones on every tile, or PROGRAM_NONE */
    uint32_t repeat;    /* of the program, whose body is open; PROGRAM_NONE outside */
    uint32_t count;     /* of that repeat */
    GArray *iterated;   /* program_iterated of that repeat */
    GHashTable *names;
    /* Shapes and layouts of carried arguments, by graph value: those of the yields, known after a
     * first pass. */
    struct program_value *carried;
    bool final; /* second pass */
    struct plan_infeasible misfit; /* what did not fit when a pass failed without an error */
    GError **error;
};

struct program_layout build_layout(uint8_t format, uint8_t order, uint8_t memory);
static inline void build_axis(struct program_layout *l, uint32_t a, uint32_t count,
                              uint32_t stride) {
    l->count[a] = count;
    l->stride[a] = count > 1 ? stride : 0;
}
/* The name itself, or name.2, name.3, ... */
const char *build_name(struct build *b, const char *name);
/* A local value with the shape, layout and owners of *v. */
struct program_value build_local_like(const struct program_value *v, const char *name);
uint32_t build_value(struct build *b, const struct program_value *v);
/* All operations of one block from position *at on. */
bool build_ops(struct build *b, uint32_t *at, uint32_t repeat);
bool build_repeat(struct build *b, const struct graph_op *op, uint32_t *at);
/* Gives the outputs' values their role. */
bool build_outputs(struct build *b);
bool build_is_source(const struct build *b, uint32_t graph_value);
void build_hold(struct build *b, uint32_t graph_value, uint32_t value);

/* A host tensor stored in the layout of *like (its name, role and tensor are set here; tensor.step
 * may be given). In a repeat's body an iterated argument becomes a sequence. Not recorded as held.
 */
uint32_t build_source(struct build *b, uint32_t graph_value, const struct program_value *like);
uint32_t build_copy(struct build *b, const struct graph_op *op, const char *reason,
                    const struct held *from, const struct program_value *to);
/* The value in the layout of *want: itself, a copy, or a source: `direct` ones are stored in that
 * layout, others once, spread over the tiles. */
uint32_t build_place(struct build *b, const struct graph_op *op, uint32_t graph_value,
                     const struct program_value *want, bool direct);
/* A value under a name of its own. */
uint32_t build_value(struct build *b, const struct program_value *v);
uint32_t build_compute(struct build *b, const struct program_op *op, const struct program_value *v);

/* A host tensor stored once, evenly spread over the tiles; shape and format of *like. */
uint32_t build_spread(struct build *b, uint32_t graph_value, const struct program_value *like);
uint32_t build_f8(struct build *b, const struct plan_gemm *m, const struct plan_candidate *c);
/* The products of the operation at a position of the order, and of those behind it that read the same
 * left operand: all in-phases first, then all products, then all sums, which thus share phases. */
bool build_gemms(struct build *b, uint32_t position);
/* A product outside the search. */
bool build_batched(struct build *b, const struct graph_op *op);

/* A view of a tensor as matrices of rows x cols: `lead` has the digits in front of the two. */
struct build_operand {
    uint32_t graph_value; /* GRAPH_NONE: `value` */
    uint32_t value;       /* of the program */
    struct program_view lead;
    uint32_t rows, cols, step_row, step_col;
    uint32_t matrices[3]; /* the tensor itself: number, rows, columns */
};
struct build_product {
    const struct graph_op *op;
    const char *name;
    uint32_t batch, rows, inner, columns;
    bool shared; /* one right operand for the whole batch */
    struct build_operand left, right; /* [rows, inner], [inner, columns] */
};
/* [batch, rows, columns] in AMP_BATCHED; PROGRAM_NONE with b->misfit if no grid fits. */
uint32_t build_product(struct build *b, const struct build_product *x);
/* A view of the value as matrices (their number, rows, columns in `shape`) with the elements in
 * blocks in which 16 rows are contiguous. PROGRAM_NONE if they are too small for that to pay. */
uint32_t build_turned(struct build *b, const struct graph_op *op, uint32_t from,
                      const struct program_view *view, const uint32_t shape[3]);
/* Attention by whole rows of scores (plan_attention_rows.c). */
bool build_attention_rows(struct build *b, const struct graph_op *op);
bool build_attention(struct build *b, const struct graph_op *op);
/* Layer normalisation of rows of whole panels. */
bool build_norm(struct build *b, const struct graph_op *op);

/* --- Values by element numbers (plan_view.c) --- */

void build_steps(const struct graph_shape *s, uint32_t ret_step[GRAPH_MAX_DIMS]);
void build_digit(struct program_view *v, uint32_t extent, uint32_t step);
/* NumPy broadcasting of one shape to another. */
struct program_view build_broadcast(const struct graph_shape *from, const struct graph_shape *to);
/* `from` itself if nothing changes. */
uint32_t build_view_copy(struct build *b, const struct graph_op *op, uint32_t from,
                         const struct program_view *view, const struct program_value *to);
/* Further elements of a value that build_view_copy made. */
void build_view_more(struct build *b, const struct graph_op *op, uint32_t from,
                     const struct program_view *view, uint32_t to);
/* F16 in AMP_LEFT, all axes but the last flattened into rows, spread over the tiles. */
struct program_value build_even(const struct build *b, const char *name,
                                const struct graph_shape *s);
struct program_value build_even_matrices(const struct build *b, const char *name,
                                         const uint32_t shape[3]);
/* F16 panels on at least half of the tiles that have work. */
bool build_is_even(const struct build *b, const struct program_value *v);
/* The graph value as it is held, or stored, or copied: F16, its elements numbered as the tensor's. */
uint32_t build_plain(struct build *b, const struct graph_op *op, uint32_t graph_value);
/* As the value is held, or a plain copy if its map counts other axes than *want. */
struct held build_held(struct build *b, const struct graph_op *op, uint32_t graph_value,
                       const struct program_value *want);
/* Makes a value that is held whole countable in the matrices of *want. */
void build_as_matrices(struct build *b, const struct graph_op *op, struct held *from,
                       const struct program_value *want);
/* A view of the graph value in the layout of *want: stored so by the host where that is allowed. */
uint32_t build_viewed(struct build *b, const struct graph_op *op, uint32_t graph_value,
                      const struct program_view *view, const struct program_value *want);

/* --- Operations (plan_point.c, plan_rows.c, plan_move.c) --- */

bool build_point(struct build *b, const struct graph_op *op);      /* add, mul */
bool build_cast(struct build *b, const struct graph_op *op);
bool build_rows_norm(struct build *b, const struct graph_op *op);  /* any width and epsilon */
bool build_softmax(struct build *b, const struct graph_op *op);
void build_row_windows(struct program_value *v, uint32_t most);
bool build_move(struct build *b, const struct graph_op *op); /* split, merge, slice */
bool build_transpose(struct build *b, const struct graph_op *op);
bool build_concat(struct build *b, const struct graph_op *op);
bool build_embed(struct build *b, const struct graph_op *op);
/* After every operation: the values that came to hold a result. */
void build_note_results(struct build *b);

#endif
