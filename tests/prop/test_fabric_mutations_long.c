/* The same with many more mutations. */
#define MUTATIONS 100
#include "test_fabric_mutations.c"
