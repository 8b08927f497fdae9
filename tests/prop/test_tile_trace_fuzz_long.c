/* The same with another seed and many more programs. */
#define ROUNDS 5000
#define SEED 3
#include "test_tile_trace_fuzz.c"
