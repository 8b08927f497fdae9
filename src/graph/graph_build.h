/* What the workload builders share: one graph under construction and the first error. Every step
 * after an error does nothing. */
#ifndef IPU_GRAPH_BUILD_H
#define IPU_GRAPH_BUILD_H

#include "graph/graph.h"

struct build {
    struct graph *g;
    const struct graph_workload_options *o;
    GError **error;
    bool failed;
};
struct graph_shape build_shape(uint32_t n, uint32_t d0, uint32_t d1, uint32_t d2);
struct graph_fill build_normal(double deviation);
/* Standard deviation sqrt(2 / (in + out)). */
struct graph_fill build_xavier(uint32_t in, uint32_t out);
uint32_t build_op(struct build *b, enum graph_op_kind kind, const char *name, uint32_t x,
                  uint32_t y, struct graph_attrs attrs);
uint32_t build_op3(struct build *b, enum graph_op_kind kind, const char *name,
                   const uint32_t operands[3], struct graph_attrs attrs);
void build_output(struct build *b, uint32_t value, double atol, double rtol);

void graph_build_vit(struct build *b);

#endif
