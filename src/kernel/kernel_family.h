/* kernel_family: what a row of kernel.def has behind it. Private to the room. */
#ifndef IPU_KERNEL_FAMILY_H
#define IPU_KERNEL_FAMILY_H

#include "kernel/kernel.h"
#include "kernel/kernel_time.h"

struct kernel_family {
    /* Checks the shape; fills everything but cycles. */
    bool (*describe)(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error);
    uint64_t (*cycles)(const struct kernel_spec *spec, uint32_t lane);
    /* Scalar arguments behind the operands' addresses; NULL = none. */
    uint32_t (*scalars)(const struct kernel_spec *spec, uint32_t *ret);
    /* All arguments, where they are not the addresses and then the scalars. */
    uint32_t (*registers)(const struct kernel_spec *spec, const uint32_t *addresses, uint32_t *ret);
    /* Entry of the variant; NULL = the symbol of kernel.def. */
    const char *(*symbol)(const struct kernel_spec *spec);
};

#define KERNEL(name, ...) extern const struct kernel_family kernel_family_##name;
#include "kernel/kernel.def"
#undef KERNEL

/* Raises KERNEL_SHAPE for parameter i of the spec's kernel. Always false. */
bool kernel_refuse(const struct kernel_spec *spec, uint32_t i, const char *rule, const char *must,
                   GError **error);
/* True if lo <= p[i] <= hi and p[i] is a multiple of m; otherwise refuses. */
bool kernel_check_param(const struct kernel_spec *spec, uint32_t i, uint32_t lo, uint32_t hi,
                        uint32_t m, GError **error);
/* Appends an operand. */
void kernel_operand_add(struct kernel_needs *needs, uint64_t bytes, uint32_t align,
                        enum kernel_access access, enum kernel_memory memory,
                        enum kernel_format format);

#endif
