/* graph: what a network means. Structured SSA without layouts, precision or addresses.
 *
 * In:   the builder functions, a workload name (workload.def), or the text form.
 * Out:  values (shaped tensors) and operations in program order; text; random contents of every
 *       input and parameter; acceptance limits of every output.
 * Shapes: row-major, last axis fastest, at most GRAPH_MAX_DIMS axes, every extent at least 1; a
 *       scalar has no axes. 64-bit element counts.
 * Invariants (graph_verify): an operation's operands are defined before it in its own block or are
 *       arguments of that block; shapes follow op.def; names are unique in the graph; blocks nest
 * at one level; each yield has the shape of its carried argument. Ownership: everything lives in
 * the graph's arena; graph_free frees all. Threads: building on one thread; reading on any. Errors:
 * GError 400..449 naming operation, operand and rule. Facts: compiler 2.1 to 2.4.
 */
#ifndef IPU_GRAPH_H
#define IPU_GRAPH_H

#include "base/base.h"

enum { GRAPH_MAX_DIMS = 6, GRAPH_NONE = 0xffffffff };
enum { GRAPH_MAX_ELEMENTS = 1 << 30 }; /* of one value; far above the SRAM of one device */

struct graph_shape {
    uint32_t n_dims;
    uint32_t dim[GRAPH_MAX_DIMS];
};
uint64_t graph_shape_elements(const struct graph_shape *s);
bool graph_shape_equal(const struct graph_shape *a, const struct graph_shape *b);

/* --- Contents of inputs and parameters when no file supplies them --- */

enum graph_fill_kind {
    GRAPH_FILL_ZERO,
    GRAPH_FILL_CONSTANT, /* a */
    GRAPH_FILL_NORMAL,   /* standard deviation a around mean b */
    GRAPH_FILL_UNIFORM,  /* [a, b) */
    GRAPH_FILL_ONE_HOT,  /* [.., r, w]: 1 where w == (a * outer + r) mod extent(w), else 0 */
    GRAPH_FILL_INDEX,    /* whole numbers [0, a), for embed */
};
struct graph_fill {
    uint8_t kind; /* enum graph_fill_kind */
    float a, b;
};

/* --- Values --- */

enum graph_value_kind {
    GRAPH_INPUT,     /* written by the host before each run */
    GRAPH_PARAMETER, /* written once */
    GRAPH_RESULT,    /* of an operation */
    GRAPH_ARGUMENT,  /* of a repeat body */
};
struct graph_value {
    const char *name; /* also the tensor's name in files and the key of its random stream */
    uint8_t kind;     /* enum graph_value_kind */
    struct graph_shape shape;
    struct graph_fill fill; /* INPUT and PARAMETER */
    uint32_t op;            /* RESULT: the defining operation; ARGUMENT: the repeat */
    uint32_t index;         /* number among results or arguments */
    uint32_t line;          /* of its definition in the text; 0: not from a text */
};

/* --- Operations --- */

enum graph_op_kind {
#define GRAPH_OP(name, text, min, max, attrs) GRAPH_##name,
#include "graph/op.def"
#undef GRAPH_OP
    GRAPH_N_OPS
};
enum graph_attr_bit {
#define GRAPH_ATTR(name, bit, text, kind, field) GRAPH_ATTR_##name = 1 << (bit),
#include "graph/attr.def"
#undef GRAPH_ATTR
};
enum graph_gelu_form { GRAPH_GELU_TANH, GRAPH_GELU_ERF };
enum graph_format { GRAPH_F16, GRAPH_F32, GRAPH_F8_F143, GRAPH_F8_F152 };

struct graph_attrs {
    uint8_t transpose_left, transpose_right, form, causal;
    float epsilon, scale;
    uint32_t axis, into, count, start, width;
    uint32_t perm[GRAPH_MAX_DIMS];
    uint32_t format; /* enum graph_format */
    int32_t exponent;
};

/* Operands of a repeat, in order: carried, invariant, iterated. The body's arguments have the same
 * order. Carried arguments start as their operands, then take the body's yields; invariant ones are
 * the operands; iterated argument j of iteration i is slice i of its operand along axis 0, whose
 * extent is at least `count` (shape of the argument: the operand's without axis 0). Results are the
 * last yields, one per carried operand. */
struct graph_repeat {
    uint32_t n_carried, n_invariant, n_iterated;
    uint32_t body; /* block */
};
struct graph_op {
    uint8_t kind;     /* enum graph_op_kind */
    const char *name; /* provenance; the first result's name unless set */
    uint32_t n_operands, *operands;
    uint32_t n_results, *results;
    struct graph_attrs attrs;
    struct graph_repeat repeat; /* REPEAT only */
};

/* Block 0 is the program. Other blocks are bodies of repeats. */
struct graph_block {
    uint32_t n_arguments, *arguments; /* values */
    uint32_t n_ops, *ops;             /* in program order */
    uint32_t n_yields, *yields;       /* values; block 0 has none */
};

/* An element passes when |error| <= atol + rtol * |reference|; exact: bit-equal. rms: 0 = no limit
 * on the root mean square error. */
struct graph_output {
    uint32_t value;
    double atol, rtol, rms;
    bool exact;
    uint32_t line; /* of the text; 0: not from a text */
};

struct graph {
    struct arena *arena;
    const char *name;
    const char *file; /* the text that it was read from, and the line of `graph`; or NULL, 0 */
    uint32_t line;
    uint32_t n_values;
    struct graph_value *values;
    uint32_t n_ops;
    struct graph_op *ops;
    uint32_t n_blocks;
    struct graph_block *blocks;
    uint32_t n_outputs;
    struct graph_output *outputs;
    /* Builder's. */
    uint32_t cap_values, cap_ops, cap_blocks, cap_outputs;
    uint32_t open_block, open_op; /* block that takes operations; its repeat */
};

/* --- Building: every function checks its operands and fails with the rule's name --- */

struct graph *graph_new(const char *name);
void graph_free(struct graph *g);
uint32_t graph_add_input(struct graph *g, const char *name, struct graph_shape shape,
                         struct graph_fill fill);
uint32_t graph_add_parameter(struct graph *g, const char *name, struct graph_shape shape,
                             struct graph_fill fill);
/* Appends to the open block. GRAPH_NONE with an error if the shape rule refuses the operands.
 * REPEAT is built by graph_repeat_begin/_end. attrs may be NULL. */
uint32_t graph_add_op(struct graph *g, enum graph_op_kind kind, const char *result_name,
                      const uint32_t *operands, uint32_t n_operands,
                      const struct graph_attrs *attrs, GError **error);
/* Opens a repeat; *ret_arguments has one value per operand, named by `argument_names`. */
struct graph_repeat_request {
    const char *name;
    uint32_t count;
    uint32_t n_carried, n_invariant, n_iterated;
    const uint32_t *operands;
    const char *const *argument_names;
};
bool graph_repeat_begin(struct graph *g, const struct graph_repeat_request *r,
                        uint32_t *ret_arguments, GError **error);
/* Closes it; ret_results has one value per carried operand, named by result_names. */
bool graph_repeat_end(struct graph *g, const uint32_t *yields, const char *const *result_names,
                      uint32_t *ret_results, GError **error);
void graph_add_output(struct graph *g, struct graph_output output);

/* GRAPH_NONE when there is none. */
uint32_t graph_find_value(const struct graph *g, const char *name);
const char *graph_op_text(uint32_t kind); /* "gemm" */
/* Every op.def row as a set of GRAPH_ATTR bits. */
uint32_t graph_op_attrs(uint32_t kind);
/* The shape rule of an operation other than REPEAT; the operation's name is for the message. */
struct graph_request {
    enum graph_op_kind kind;
    const char *name;
    const uint32_t *operands;
    uint32_t n_operands;
    const struct graph_attrs *attrs; /* not NULL */
};
bool graph_infer_shape(const struct graph *g, const struct graph_request *r,
                       struct graph_shape *ret, GError **error);

/* --- Text form: what graph_print writes, graph_parse reads; print(parse(text)) is canonical --- */

void graph_print(const struct graph *g, GString *out);
struct graph *graph_parse(const char *text, const char *file_name, GError **error);
bool graph_verify(const struct graph *g, GError **error);
/* Puts "file:line: " in front of a message; nothing where the line is 0. Returns false. */
bool graph_error_at(const struct graph *g, uint32_t line, GError **error);

/* --- Contents --- */

/* Element `index` of a value filled by its graph_fill; a pure function of its arguments, so that
 * any slice can be made alone. FP32 before any rounding to a storage format. */
float graph_fill_element(const struct graph_value *v, uint64_t seed, uint64_t index);
/* Elements first .. first + n - 1. */
void graph_fill_elements(const struct graph_value *v, uint64_t seed, uint64_t first, uint64_t n,
                         float *ret);

/* --- Workloads (compiler 2.2, 2.3) --- */

struct graph_workload_options {
    uint32_t tiles; /* 0 = all tiles of the target; sizes of the smoke tests */
    uint32_t mlp_batch, mlp_tokens, mlp_dim, mlp_hidden_dim, mlp_blocks; /* 0 = default */
    uint32_t attention_batch, attention_heads, attention_blocks;
    uint32_t benchmark_rows, benchmark_inner, benchmark_columns;
    uint32_t vit_batch, vit_layers, vit_image_size;
    bool vit_small, fuse_qkv, attention_constant;
    double atol, rtol; /* < 0: the workload's own */
};
void graph_workload_defaults(struct graph_workload_options *o);
/* NULL with an error for unknown names (the message lists the known ones). */
struct graph *graph_workload_build(const char *name, const struct graph_workload_options *o,
                                   GError **error);
/* NULL-terminated: name, one-line text of workload i; false past the last. */
bool graph_workload_describe(uint32_t i, const char **ret_name, const char **ret_text);

#endif
