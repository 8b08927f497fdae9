/* kernel: the kernels of device/ as data. What a call needs, costs and looks like; never runs one.
 *
 * In:   a call specification: kernel and its shape parameters (named per family in kernel.def).
 * Out:  the needs of each operand (bytes, alignment, access tail, memory class, separation), the
 *       closed form of its cycles, the register arguments once addresses are known, the assembled
 *       objects of device/ for the linker.
 * Units: bytes, cycles (tile clock, from the supervisor's call instruction to the instruction behind
 *       it, arguments not included).
 * Calling convention (kernels 2.1): m2 = first output, m3.. = inputs in order, then scalars,
 *       m10 = return address, m11 = supervisor stack, m15 = 0; everything else is clobbered.
 * Errors: a call outside a kernel's contract is refused with the rule's name (diag.def 350..399).
 * Threads: everything is immutable.
 */
#ifndef IPU_KERNEL_H
#define IPU_KERNEL_H

#include "base/base.h"

enum {
    KERNEL_MAX_PARAMS = 8,
    KERNEL_MAX_OPERANDS = 6,
    KERNEL_MAX_REGISTERS = 8, /* m2..m9 */
    KERNEL_MAX_BATCH = 255,   /* matrices of one product call */
};

enum kernel_id {
#define KERNEL(name, ...) KERNEL_##name,
#include "kernel/kernel.def"
#undef KERNEL
    N_KERNELS
};

/* One call without addresses. p[] as named by the family's row in kernel.def; unused ones are 0. */
struct kernel_spec {
    uint32_t kernel; /* enum kernel_id */
    uint32_t p[KERNEL_MAX_PARAMS];
};

/* Bits of the parameter `epilogue` of REDUCE_PANELS. */
enum kernel_epilogue {
    KERNEL_EPILOGUE_RESIDUAL = 1, /* + an F16 operand in the same order */
    KERNEL_EPILOGUE_BIAS = 2,     /* + one half per column */
    KERNEL_EPILOGUE_GELU = 4,     /* tanh form */
    KERNEL_EPILOGUE_F8 = 8,       /* out is F143 in A32 panels, times 2^-scale */
    KERNEL_EPILOGUE_STANDARD = 16, /* inputs may stand in region 0 (slower) */
    KERNEL_EPILOGUE_ERF = 32,      /* with GELU: its erf form */
    KERNEL_EPILOGUE_F152 = 64,     /* with F8: F152 instead of F143 */
};

enum kernel_access { KERNEL_READ = 1, KERNEL_WRITE = 2, KERNEL_READ_WRITE = 3 };
enum kernel_memory { KERNEL_MEMORY_ANY, KERNEL_MEMORY_STANDARD, KERNEL_MEMORY_INTERLEAVED };

enum kernel_format { KERNEL_F16, KERNEL_F32, KERNEL_F8, KERNEL_U32, KERNEL_RAW,
                     KERNEL_F16_PAIR /* a half in both halves of a word */ };

struct kernel_operand {
    uint32_t bytes;      /* touched by the call, from the operand's address */
    uint32_t tail_bytes; /* readable behind them: must be SRAM, contents do not matter */
    uint16_t align;
    uint8_t access; /* enum kernel_access */
    uint8_t memory; /* enum kernel_memory */
    uint8_t format; /* enum kernel_format: what its bytes hold */
};

struct kernel_needs {
    uint32_t n_operands;
    struct kernel_operand operand[KERNEL_MAX_OPERANDS]; /* outputs first, then inputs */
    /* Bit j of separate[i]: operands i and j must not share an effective memory element. */
    uint8_t separate[KERNEL_MAX_OPERANDS];
    /* Bit j of alias[i]: operand i may be the very storage of operand j (in place). */
    uint8_t alias[KERNEL_MAX_OPERANDS];
    uint64_t cycles;      /* closed form */
    uint64_t useful_work; /* cycles at peak rate for the useful part, runtime 6.7 */
};

const char *kernel_name(uint32_t kernel);                    /* "GEMM_F16" */
const char *kernel_param_name(uint32_t kernel, uint32_t i);  /* "rows"; NULL when unused */
const char *kernel_source(uint32_t kernel);                  /* "gemm.S", in device/ */
uint32_t kernel_code_bytes(uint32_t kernel);                 /* of its largest variant */
bool kernel_find(const char *name, uint32_t *ret_kernel);

/* Checks the shape and fills *ret. */
bool kernel_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error);
/* The cycles alone, for planners; spec must be valid. */
uint64_t kernel_cycles(const struct kernel_spec *spec);
/* The same when the call instruction issues in a cycle of this lane (0..5); kernel_cycles takes the
 * lane of a call behind a sample of the cycle counter. They differ by at most 5. */
uint64_t kernel_cycles_lane(const struct kernel_spec *spec, uint32_t lane);
/* Entry symbol of the variant that this call uses. */
const char *kernel_symbol(const struct kernel_spec *spec);
/* The cheapest kernel that takes A16 panels to A32 panels of F143 times 2^-exponent. */
struct kernel_spec kernel_cast_to_panels(uint32_t rows, uint32_t columns, int32_t exponent);
/* How many registers m2, m3, ... a call takes: operands, then scalars. spec must be valid. */
uint32_t kernel_n_registers(const struct kernel_spec *spec);
/* Register values m2, m3, ... for operands at these byte addresses; checks alignment, memory class,
 * separation and overlap. */
bool kernel_bind(const struct kernel_spec *spec, const uint32_t *addresses,
                 uint32_t ret_registers[KERNEL_MAX_REGISTERS], uint32_t *ret_n, GError **error);

/* The relocatable objects made from device/ at build time (kernels and tile runtime), as bytes in
 * the format of isa's object reader. `symbols` are the entry points an object defines. */
struct kernel_object {
    const char *name;
    const uint8_t *bytes;
    size_t size;
};
const struct kernel_object *kernel_objects(size_t *ret_n);

#endif
