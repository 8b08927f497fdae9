/* reference: runs a whole graph on the host, in FP32 or at device precision.
 *
 * In:   a verified graph; a source that gives the elements of inputs and parameters; a precision
 *       table or none (FP32: nothing is rounded).
 * Out:  every value as row-major FP32, kept until its last use, or longer when asked for.
 * Device precision: every input, parameter and result is rounded once to its storage format, operands
 *       of products to their operand format and scale; sums are FP32; it takes the table and nothing
 *       else from the plan and does not imitate partials or kernels (it never calls them).
 * Products run on OpenBLAS in blocks under par_for: the same bits for any number of threads, but the
 *       order of additions is OpenBLAS's, so the last bits may differ between machines.
 * Ownership: the reference owns its values; free with reference_free. The graph must outlive it.
 * Errors: GError 750..799. Facts: compiler 2.1, 6.
 */
#ifndef IPU_REFERENCE_H
#define IPU_REFERENCE_H

#include "graph/graph.h"

/* A storage or operand format with its power-of-two scale exponent (F8 only). */
struct reference_format {
    uint8_t format; /* enum graph_format */
    int8_t exponent;
};
enum { REFERENCE_OPERANDS = 3 };
/* One operation of the graph, by its index in graph.ops. Zero = F16 everywhere. */
struct reference_op {
    struct reference_format result;
    struct reference_format operand[REFERENCE_OPERANDS]; /* GEMM: left, right; ATTENTION: q, k, v */
    struct reference_format probability;                 /* ATTENTION: left operand of P x V */
};
struct reference_precision {
    uint32_t n_ops; /* graph.n_ops */
    const struct reference_op *ops;
    /* Storage of inputs and parameters; NULL = F16. [graph.n_values] */
    const struct reference_format *values;
};

/* Elements [first, first + n) of an input or parameter, FP32, row-major. Called from several threads. */
typedef void reference_source(void *user, uint32_t value, uint64_t first, uint64_t n, float *ret);
/* The source that uses the graph's own fills; user is a struct reference_fill. */
struct reference_fill {
    const struct graph *graph;
    uint64_t seed;
};
reference_source reference_fill_source;

/* Sees every result when it is computed, with the iteration of its repeat (0 outside). */
typedef void reference_visit(void *user, uint32_t value, uint32_t iteration, const float *data);

struct reference_options {
    const struct reference_precision *precision; /* NULL = FP32 */
    reference_source *source;
    void *source_user;
    reference_visit *visit; /* may be NULL */
    void *visit_user;
    bool keep_all; /* keep every value of block 0, not just the outputs */
};

struct reference;
struct reference *reference_run(const struct graph *g, const struct reference_options *o,
                                GError **error);
/* NULL when the value was not kept. */
const float *reference_value(const struct reference *r, uint32_t value);
void reference_free(struct reference *r);

/* v rounded to the format, in place; n values, par_for inside. */
void reference_round(float *v, uint64_t n, struct reference_format format);

#endif
