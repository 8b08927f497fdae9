/* cli_net: what e2e-test and compile share: options that name a network, and the way from there to a
 * package. */
#ifndef IPU_CLI_NET_H
#define IPU_CLI_NET_H

#include "compile/compile.h"
#include "exchange/exch.h"
#include "graph/graph.h"
#include "plan/plan.h"
#include "runtime/runtime.h"

enum { CLI_NET_NOT_GIVEN = G_MININT }; /* a number of a workload */
struct cli_net {
    /* Options. */
    char *workload, *graph_path, **constraints, *fp8_scale, *attention_qk_scale, *attention_pv_scale,
        *placement_dump, *exchange_export, *exchange_effort, *attention_strategy, *attention_products;
    gint row_passes, tiles, threads, optimization_steps, finalists;
    gint64 seed;
    gint mlp_batch, mlp_tokens, mlp_dim, mlp_hidden_dim, mlp_blocks;
    gint attention_batch, attention_heads, attention_blocks;
    gint benchmark_rows, benchmark_inner, benchmark_columns;
    gint vit_batch, vit_layers, vit_image_size;
    gboolean vit_small, fuse_qkv, sample, no_parameters, diagnostic,
        inputs_once;
    /* Made of them. */
    struct graph *graph;
    const char *name; /* of the workload or graph file */
};

/* The options, to be put in front of a verb's own; g_free'd. The values live in *n. */
GOptionEntry *cli_net_entries(struct cli_net *n, const GOptionEntry *own);
void cli_net_defaults(struct cli_net *n);
/* Checks the numbers, sets the threads, builds or reads the graph. */
bool cli_net_build(struct cli_net *n, GError **error);
void cli_net_clear(struct cli_net *n);

struct cli_built {
    struct package *package; /* NULL: does not fit */
    char *report, *report_json; /* then why */
    char *plan;              /* chosen grids, one line each */
    double seconds;          /* from graph to package */
    struct compile_rows rows;
    uint32_t rank;           /* 0: the planner's best plan was accepted */
    struct program *program; /* the accepted plan's; holds the arrays of `precision` */
    struct reference_precision precision; /* what the reference is to round */
};
/* Plans, lowers, compiles; takes the next plan when one turns out not to fit. */
bool cli_net_compile(const struct cli_net *n, struct cli_built *ret, GError **error);
void cli_built_clear(struct cli_built *b);
/* Random values of every parameter, into the package. */
bool cli_net_parameters(const struct cli_net *n, struct package *p, GError **error);
/* Values of a graph value in the binding's format; g_free'd. NULL when its fill gives one that the
 * format cannot hold, or an index that is no row of its table. */
uint8_t *cli_net_fill(const struct cli_net *n, uint32_t value, const struct package_binding *b,
                      GError **error);

/* FP32 values of stored ones and back; n elements. */
void cli_decode(const struct package_binding *b, const uint8_t *stored, uint64_t n, float *ret);
void cli_encode(const struct package_binding *b, const float *values, uint64_t n, uint8_t *ret);
/* The first of n values that the format cannot hold; n when there is none. */
uint64_t cli_range_check(const struct package_binding *b, const float *v, uint64_t n);

/* Says on a terminal what goes on; silent in a pipe. */
void cli_stage(const char *text);

/* --- Tensors of the user --- */

/* Sets every binding of these kinds (bits of tg_binding_kind) that the file holds, and every one of
 * `required` must be there. Prints notices to stderr. */
bool cli_tensors_set(struct session *s, const char *path, uint32_t kinds, uint32_t required,
                     GError **error);
/* All outputs as a safetensors file. */
bool cli_tensors_write(struct session *s, const char *path, GError **error);
/* Every intermediate value that a diagnostic without a graph kept, as F32: NAME, in a repeat
 * NAME/ITERATION. */
struct diagnostic;
bool cli_results_write(struct diagnostic *d, const struct package *p, const char *path,
                       GError **error);
/* A tensor of a file as FP32, checked against the shape of the binding; g_free'd. */
struct tensor_file;
float *cli_tensor_values(const struct tensor_file *f, const struct package_binding *b,
                         GError **error);

#endif
