/* kernel_time: the clock of closed forms. A call is a short list of supervisor instructions and
 * worker launches; this replays the rules of issue (isa 1.1, kernels 8.8) over that list, so that a
 * closed form is a slot count per worker plus the list, and exact.
 *
 * Units: tile cycles from the start of the call. Private to the room.
 */
#ifndef IPU_KERNEL_TIME_H
#define IPU_KERNEL_TIME_H

#include "base/base.h"
#include "target/target.h"

struct kernel_time {
    uint64_t now;                     /* the next supervisor instruction issues here or later */
    uint64_t launch_issue;            /* of the latest runall */
    uint64_t start[TARGET_N_WORKERS]; /* first slot of the latest launch */
    uint64_t exit[TARGET_N_WORKERS];  /* its exit */
    bool launched;
};

/* The cycle of the `call` instruction, mod 6. Behind a sample of the cycle counter (worker 0
 * launched and joined, registers set by setzi) the lane is fixed; this is the lane of a call with
 * an even number of argument registers (kernels 0.2). */
enum { KERNEL_TIME_LANE = 4 };

/* Behind `call` and into the kernel: its first instruction is the next to issue. */
void kernel_time_begin(struct kernel_time *t, uint32_t lane);
/* An instruction that takes `cycles`; waits for a free lane. */
void kernel_time_issue(struct kernel_time *t, uint32_t cycles);
/* n instructions of one cycle each. */
void kernel_time_issue_n(struct kernel_time *t, uint32_t n);
/* runall, its workers taking slots[w] slots with the exit. */
void kernel_time_runall(struct kernel_time *t, const uint32_t slots[TARGET_N_WORKERS]);
void kernel_time_sync(struct kernel_time *t);
/* Returns to the caller; cycles from the call to the instruction behind it. */
uint64_t kernel_time_end(struct kernel_time *t, uint32_t lane);

/* The stub of kernels with one launch: lower the stack, n_args stores, setzi, runall, raise the
 * stack, sync, br (device/kernel.inc: KERNEL_ENTRY). */
uint64_t kernel_time_single(uint32_t lane, uint32_t n_args, const uint32_t slots[TARGET_N_WORKERS]);

/* Share of worker w in n items dealt round robin. */
static inline uint32_t kernel_share(uint32_t n, uint32_t w) {
    return (n + TARGET_N_WORKERS - 1 - w) / TARGET_N_WORKERS;
}

/* Size of worker w's contiguous block: from floor(w * n / 6). */
static inline uint32_t kernel_block(uint32_t n, uint32_t w) {
    return (w + 1) * n / TARGET_N_WORKERS - w * n / TARGET_N_WORKERS;
}

#endif
