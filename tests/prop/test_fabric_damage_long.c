/* The same with many more phases. */
#define PHASES 100
#define DAMAGED 100
#include "test_fabric_damage.c"
