/* Words of the text form that printer and parser share. */
#ifndef IPU_GRAPH_NAMES_H
#define IPU_GRAPH_NAMES_H

#include "graph/graph.h"

static const char *const GRAPH_FILL_TEXT[] = {
    [GRAPH_FILL_ZERO] = "zero",       [GRAPH_FILL_CONSTANT] = "constant",
    [GRAPH_FILL_NORMAL] = "normal",   [GRAPH_FILL_UNIFORM] = "uniform",
    [GRAPH_FILL_ONE_HOT] = "one_hot", [GRAPH_FILL_INDEX] = "index",
};
static const char *const GRAPH_FORM_TEXT[] = {[GRAPH_GELU_TANH] = "tanh", [GRAPH_GELU_ERF] = "erf"};
static const char *const GRAPH_FORMAT_TEXT[] = {
    [GRAPH_F16] = "f16",
    [GRAPH_F32] = "f32",
    [GRAPH_F8_F143] = "f8_143",
    [GRAPH_F8_F152] = "f8_152",
};

#endif
