/* The same with many more mutations. */
#define MUTATIONS 300
#include "test_fabric_mutations.c"
