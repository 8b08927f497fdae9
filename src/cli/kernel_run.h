/* kernel_run: one kernel call on a tile of its own, for kernel-check and kernel-cycles.
 *
 * The call stands in a supervisor program between two samples of the cycle counter (worker 0 stores
 * $COUNT_L), as published figures were measured. Outputs are compared with the C twin; every byte
 * outside of them must stay as it was.
 * Memory: kernel_run_free. Units: cycles of the tile. Errors: GError; what the program does wrong
 * is in `fault`.
 */
#ifndef IPU_CLI_KERNEL_RUN_H
#define IPU_CLI_KERNEL_RUN_H

#include "isa/isa_asm.h"
#include "kernel/kernel.h"
#include "target/sram.h"
#include "tile/tile.h"

enum kernel_data {
    KERNEL_DATA_RANDOM,    /* normal, standard deviation 1 */
    KERNEL_DATA_UNIFORM,   /* all values equal */
    KERNEL_DATA_EXTREME,   /* finite values up to options.extreme, one in two of that size */
    KERNEL_DATA_SUBNORMAL, /* subnormal values */
    KERNEL_DATA_ZERO,      /* zeros of both signs */
    KERNEL_DATA_NAN,       /* normal, one value in eight NaN */
    KERNEL_DATA_INFINITE,  /* normal, one value in eight an infinity of either sign */
    KERNEL_DATA_EVERY,     /* halves: every bit pattern in turn */
    KERNEL_N_DATA
};
const char *kernel_data_name(enum kernel_data data);

struct kernel_run_options {
    enum kernel_data data;
    uint64_t seed;
    float extreme;        /* 0 = 65504 */
    bool in_place;        /* outputs stand on the inputs they may alias */
    bool high;            /* operands that may stand anywhere go to the interleaved region */
    uint32_t offset;      /* operands start this many alignments behind a boundary of 64 bytes */
    uint32_t exp_slots;   /* 0 = default */
    bool exact_lane;      /* also observe the call itself (slower) */
    uint32_t n_addresses; /* operands stand here instead, in order */
    uint32_t address[KERNEL_MAX_OPERANDS];
    bool force; /* the binding is not asked about them */
    bool races; /* with the race detector */
};

struct kernel_run {
    struct kernel_spec spec;
    struct kernel_needs needs;
    struct kernel_run_options options;
    uint32_t address[KERNEL_MAX_OPERANDS];
    uint32_t registers[KERNEL_MAX_REGISTERS], n_registers;
    struct sram *sram;
    struct tile_config config;
    struct tile tile;
    struct isa_image *image;
    uint8_t *before;                        /* SRAM before the run */
    uint8_t *expected[KERNEL_MAX_OPERANDS]; /* operands after the twin, NULL without a twin */
    uint64_t sampled_cycles;                /* counter read to counter read */
    uint64_t call_cycles; /* from the call to the instruction behind it (exact_lane) */
    uint32_t call_lane;
    uint64_t closed_form_cycles; /* of the call, in its lane (exact_lane) or the usual one */
    bool faulted;
    char *fault;
};

/* Places, links, fills and runs. NULL if the call is refused or cannot be placed. */
struct kernel_run *kernel_run_new(const struct kernel_spec *spec,
                                  const struct kernel_run_options *options, GError **error);
void kernel_run_free(struct kernel_run *run);
/* Bytes of output operand i that differ from the twin; *ret_first is the first one. */
uint32_t kernel_run_wrong(const struct kernel_run *run, uint32_t operand, uint32_t *ret_first);
/* Bytes outside of the outputs (and the stack) that the run changed. */
uint32_t kernel_run_stray(const struct kernel_run *run, uint32_t *ret_address);
/* The closed form of the sampled figure: the call, its argument registers, the samples. */
uint64_t kernel_run_sampled_form(const struct kernel_spec *spec, uint32_t n_registers);
/* Markdown tables of docs/kernels.md: accuracy over all F16 inputs. */
void kernel_accuracy_print(void);
/* Bytes of code that a program with this call needs, without the tile runtime. */
uint32_t kernel_run_code_bytes(const struct kernel_spec *spec);

#endif
