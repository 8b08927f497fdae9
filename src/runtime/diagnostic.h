/* diagnostic: every intermediate value of a run against the reference, read where it lives when it
 * lives.
 *
 * In:   a package compiled with lower_options.results (its RESULT bindings say where the values of the
 *       graph lie and which step completes them), the graph, limits; the results of the reference
 *       through diagnostic_visit; then the run's tiles through diagnostic_seen (device_options.seen).
 * Out:  for every stored value and iteration a comparison; the first one that diverges, with element,
 *       tile, address and owner. Cycles and memory of the run are those of any other run.
 * Without a graph there is no reference: the values are kept (diagnostic_value) and not compared.
 * Which: a value is compared in every place that holds it (replicas as well). Values that are never
 *       stored (a product whose bias or GELU is applied in its reduction, views of another value) have
 *       no entry; diagnostic_missing lists them.
 * Passes: |error| <= atol + rtol |reference|, finite (architecture 5).
 * Order: entries stand in the order in which the program makes the values.
 * Threads: seen may be called for different tiles at once; results do not depend on threads.
 * One run: a diagnostic serves one reference and one run. Ownership: free with diagnostic_free; package, graph and device functions must outlive it.
 */
#ifndef IPU_DIAGNOSTIC_H
#define IPU_DIAGNOSTIC_H

#include "device/device.h"
#include "graph/graph.h"
#include "reference/reference.h"

struct diagnostic_options {
    const struct device_functions *functions;
    const struct package *package;
    const struct graph *graph; /* NULL: keep the values */
    double atol, rtol;
};
struct diagnostic;
struct diagnostic *diagnostic_new(const struct diagnostic_options *o);
void diagnostic_free(struct diagnostic *d); /* NULL is allowed */
const struct diagnostic_options *diagnostic_given(const struct diagnostic *d);

/* user of both: the diagnostic. The reference must have run before the device does. */
reference_visit diagnostic_visit;
device_seen diagnostic_seen;

/* One element in one place. */
struct diagnostic_place {
    uint64_t element; /* of the row-major tensor */
    uint32_t tile, address;
    uint32_t step;    /* that completed it */
    float computed, expected;
};
struct diagnostic_entry {
    const char *name;   /* of the graph value */
    uint32_t slot;      /* of the diagnostic's own tables */
    uint32_t op;        /* number of its operation in program order (plan_constraint's) */
    const char *kind;   /* of the operation: "gemm"; NULL without a graph */
    uint32_t iteration, iterations; /* of the repeat around it, else 0 of 1 */
    uint32_t step;      /* the first step that completes a part of it */
    uint64_t elements;  /* of the tensor */
    uint64_t n_values;  /* places compared, replicas counted */
    uint64_t n_failed, n_not_finite;
    double max_abs_error; /* infinity when a value is not finite */
    double cosine;
    struct diagnostic_place worst, first_failed; /* the latter with n_failed > 0 only */
};
bool diagnostic_entry_pass(const struct diagnostic_entry *e); /* compared something, none failed */

/* After the run. Sums over tiles in their order. */
uint32_t diagnostic_entries(struct diagnostic *d, const struct diagnostic_entry **ret);
/* Without a graph: what the run computed, elements that no tile stored are NaN; of replicas the one on
 * the lowest tile. */
const float *diagnostic_value(const struct diagnostic *d, const struct diagnostic_entry *e);
/* All entries pass and there is at least one. */
bool diagnostic_pass(struct diagnostic *d);
/* The entry that the program makes first among those that fail; NULL when all pass. */
const struct diagnostic_entry *diagnostic_first(struct diagnostic *d);
/* Results of operations without an entry, in program order; g_free'd array of graph values. */
uint32_t diagnostic_missing(const struct diagnostic *d, uint32_t **ret_values);

/* Lines for people: one per entry, then where the first divergence is. */
void diagnostic_print(struct diagnostic *d, GString *out);
/* Members of an open JSON object: ,"intermediates":[..],"not_stored":[..],"first_divergence":{..} or
 * null. */
void diagnostic_json(struct diagnostic *d, GString *out);

#endif
