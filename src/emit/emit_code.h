/* emit_code: a writer of supervisor words that also keeps the issue clock of isa 1.1, so that the
 * price of what is emitted is counted while it is emitted. Private to the room.
 *
 * The clock counts from 0 at emit_code_mark; it assumes free lanes (no worker active), which holds
 * between calls because kernels and helpers return with all workers inactive.
 */
#ifndef IPU_EMIT_CODE_H
#define IPU_EMIT_CODE_H

#include "emit/emit.h"

struct emit_code {
    GArray *words;    /* uint32_t */
    uint32_t base;    /* address of words[0] */
    uint64_t now;     /* the next instruction issues here or later */
    uint64_t ready[16]; /* cycle from which a register may be used */
};

void emit_code_init(struct emit_code *c, uint32_t base);
void emit_code_clear(struct emit_code *c);
static inline uint32_t emit_code_pc(const struct emit_code *c) {
    return c->base + 4 * c->words->len;
}
/* Restarts the clock at 0. */
void emit_code_mark(struct emit_code *c);

void emit_setzi(struct emit_code *c, uint32_t m, uint32_t value);
void emit_add(struct emit_code *c, uint32_t d, uint32_t s, int32_t imm);
/* d = s | value << 20, value of 12 bits. */
void emit_or_top(struct emit_code *c, uint32_t d, uint32_t s, uint32_t value);
void emit_add_reg(struct emit_code *c, uint32_t d, uint32_t s0, uint32_t s1);
void emit_ld32(struct emit_code *c, uint32_t d, uint32_t base, uint32_t offset_words);
void emit_st32(struct emit_code *c, uint32_t s, uint32_t base, uint32_t offset_words);
void emit_put(struct emit_code *c, uint32_t csr, uint32_t m);
void emit_bri(struct emit_code *c, uint32_t address);
void emit_brnz(struct emit_code *c, uint32_t m, uint32_t address);
/* A call whose callee takes `cycles` from the call to the instruction behind it. */
void emit_call(struct emit_code *c, uint32_t link, uint32_t address, uint64_t cycles);
/* One word that issues in one cycle: sync, sans. */
void emit_word(struct emit_code *c, uint32_t word);

/* Cycles of the helpers of device/runtime.S, from the call to the instruction behind it. */
uint64_t emit_barrier_cycles(void);
uint64_t emit_sample_cycles(void);

/* Costs of one step on one tile. */
struct emit_cost {
    uint32_t before; /* EXCHANGE: first instruction to the issue of the sync; else all of it */
    uint32_t after;  /* EXCHANGE: return of the row to the end of the step; REPEAT_END: the head of the
                      * next iteration's loop */
    bool active;     /* EXCHANGE: calls a row */
};
/* Fills the prediction of e from cost[tile * n_steps + step]; start[t] = cycles from the return of
 * runtime_start to the first step. */
void emit_predict(const struct emit_request *r, const struct emit_cost *cost,
                  const uint32_t *start, struct emit_result *e);

#endif
