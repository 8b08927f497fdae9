/* The rules of issue, replayed: a lane belongs to its worker from its first slot until 14 cycles
 * after its exit; the supervisor issues in the first free cycle. Cost: a few steps per supervisor
 * instruction. Register latencies are the caller's: it waits by issuing. */
#include "kernel/kernel_time.h"

static bool time_is_free(const struct kernel_time *t, uint64_t cycle) {
    if (!t->launched) return true;
    const uint32_t w = (uint32_t)(cycle % TARGET_LANE_CYCLES);
    return cycle < t->start[w] || cycle >= t->exit[w] + TARGET_EXIT_TO_LANE_CYCLES;
}

void kernel_time_begin(struct kernel_time *t, uint32_t lane) {
    *t = (struct kernel_time){.now = lane + TARGET_SUPER_BRANCH_CYCLES};
}

void kernel_time_issue(struct kernel_time *t, uint32_t cycles) {
    while (!time_is_free(t, t->now)) t->now++;
    t->now += cycles;
}

void kernel_time_issue_n(struct kernel_time *t, uint32_t n) {
    if (!t->launched) {
        t->now += n;
        return;
    }
    for (uint32_t i = 0; i < n; i++) kernel_time_issue(t, 1);
}

void kernel_time_runall(struct kernel_time *t, const uint32_t slots[TARGET_N_WORKERS]) {
    kernel_time_issue(t, 0);
    const uint64_t earliest = t->now + TARGET_RUN_TO_SLOT_CYCLES;
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++) {
        const uint64_t skew =
            (w + TARGET_LANE_CYCLES - earliest % TARGET_LANE_CYCLES) % TARGET_LANE_CYCLES;
        t->start[w] = earliest + skew;
        t->exit[w] = t->start[w] + (uint64_t)TARGET_LANE_CYCLES * (slots[w] - 1);
    }
    t->launch_issue = t->now;
    t->launched = true;
    t->now++;
}

void kernel_time_sync(struct kernel_time *t) {
    kernel_time_issue(t, 1);
    for (uint32_t w = 0; t->launched && w < TARGET_N_WORKERS; w++)
        t->now = MAX(t->now, t->exit[w] + TARGET_EXIT_TO_LANE_CYCLES);
    t->launched = false;
}

uint64_t kernel_time_end(struct kernel_time *t, uint32_t lane) {
    kernel_time_issue(t, TARGET_SUPER_BRANCH_CYCLES);
    return t->now - lane;
}

uint64_t kernel_time_single(uint32_t lane, uint32_t n_args,
                            const uint32_t slots[TARGET_N_WORKERS]) {
    struct kernel_time t;
    kernel_time_begin(&t, lane);
    kernel_time_issue_n(&t, TARGET_SUPER_STORE_ADDRESS_CYCLES); /* add $m11 until its use */
    for (uint32_t i = 0; i < n_args; i++) kernel_time_issue(&t, TARGET_SUPER_STORE_CYCLES);
    kernel_time_runall(&t, slots);
    kernel_time_issue(&t, 1);
    kernel_time_sync(&t);
    return kernel_time_end(&t, lane);
}
