/* Contents of inputs and parameters that no file supplies: a pure function of seed, tensor name and
 * element number. */
#include "graph/graph.h"

#include <math.h>

static float one_hot(const struct graph_value *v, uint64_t index) {
    const uint32_t n = v->shape.n_dims;
    const uint64_t width = n > 0 ? v->shape.dim[n - 1] : 1;
    const uint64_t rows = n > 1 ? v->shape.dim[n - 2] : 1;
    const uint64_t w = index % width, r = index / width % rows, outer = index / width / rows;
    return w == ((uint64_t)v->fill.a * outer + r) % width ? 1.0f : 0.0f;
}

static float element(const struct graph_value *v, uint64_t seed, uint64_t stream, uint64_t index) {
    const struct graph_fill *f = &v->fill;
    switch (f->kind) {
    case GRAPH_FILL_ZERO:
        return 0.0f;
    case GRAPH_FILL_CONSTANT:
        return f->a;
    case GRAPH_FILL_NORMAL:
        return f->b + f->a * rand_normal(seed, stream, index);
    case GRAPH_FILL_UNIFORM:
        return f->a + (f->b - f->a) * rand_uniform(seed, stream, index);
    case GRAPH_FILL_ONE_HOT:
        return one_hot(v, index);
    case GRAPH_FILL_INDEX:
        return floorf(f->a * rand_uniform(seed, stream, index));
    default:
        BUG_ON(true); /* unknown fill */
    }
    return 0.0f;
}

float graph_fill_element(const struct graph_value *v, uint64_t seed, uint64_t index) {
    return element(v, seed, rand_stream(v->name), index);
}

void graph_fill_elements(const struct graph_value *v, uint64_t seed, uint64_t first, uint64_t n,
                         float *ret) {
    const uint64_t stream = rand_stream(v->name);
    for (uint64_t i = 0; i < n; i++) ret[i] = element(v, seed, stream, first + i);
}
