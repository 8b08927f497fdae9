/* Words of the text form that printer and parser share. */
#ifndef IPU_PROGRAM_NAMES_H
#define IPU_PROGRAM_NAMES_H

#include "program/program.h"

static const char *const PROGRAM_FORMAT_TEXT[] = {"f16", "f32", "f8_143", "f8_152", "u32"};
static const char *const PROGRAM_ORDER_TEXT[] = {"row_major", "amp_left", "amp_batched", "coeff",
                                                 "coeff_t"};
static const char *const PROGRAM_MEMORY_TEXT[] = {"any", "standard", "interleaved"};
static const char *const PROGRAM_ROLE_TEXT[] = {"local", "input", "parameter", "output"};
static const char *const PROGRAM_COMPUTE_TEXT[] = {"product", "kernel", "sum", "cast"};
static const char *const PROGRAM_KERNEL_TEXT[] = {
#define PROGRAM_KERNEL(name, text, min, max) text,
#include "program/program_kernel.def"
#undef PROGRAM_KERNEL
};

#endif
