/* Words and their price. The rules are those of isa 1.1: one cycle per instruction, results usable 7
 * cycles later (8 as the base of a store), stores 2, branches 5, put 8, exchange registers 13. */
#include "emit/emit_code.h"

#include "isa/isa_exch.h"

enum { EXCHANGE_CSR_FIRST = 0xa0, EXCHANGE_CSR_LAST = 0xab };

void emit_code_init(struct emit_code *c, uint32_t base) {
    *c = (struct emit_code){.words = g_array_new(false, false, sizeof(uint32_t)), .base = base};
}

void emit_code_clear(struct emit_code *c) {
    g_array_free(c->words, true);
    c->words = NULL;
}

void emit_code_mark(struct emit_code *c) {
    c->now = 0;
    for (uint32_t i = 0; i < ARRAY_LEN(c->ready); i++) c->ready[i] = 0;
}

static void wait_for(struct emit_code *c, uint32_t m) {
    c->now = MAX(c->now, c->ready[m]);
}

static void issue(struct emit_code *c, uint32_t word, uint32_t cycles) {
    g_array_append_val(c->words, word);
    c->now += cycles;
}

static void produce(struct emit_code *c, uint32_t m, uint32_t word) {
    const uint64_t at = c->now;
    issue(c, word, 1);
    if (m < 15) c->ready[m] = at + TARGET_SUPER_RESULT_CYCLES;
}

void emit_setzi(struct emit_code *c, uint32_t m, uint32_t value) {
    produce(c, m, isa_word_setzi(m, value));
}

void emit_add(struct emit_code *c, uint32_t d, uint32_t s, int32_t imm) {
    wait_for(c, s);
    produce(c, d, isa_word_add(d, s, imm));
}

void emit_add_reg(struct emit_code *c, uint32_t d, uint32_t s0, uint32_t s1) {
    wait_for(c, s0);
    wait_for(c, s1);
    produce(c, d, isa_word_add_reg(d, s0, s1));
}

void emit_or_top(struct emit_code *c, uint32_t d, uint32_t s, uint32_t value) {
    wait_for(c, s);
    produce(c, d, isa_word_or_top(d, s, value));
}

void emit_ld32(struct emit_code *c, uint32_t d, uint32_t base, uint32_t offset_words) {
    wait_for(c, base);
    produce(c, d, isa_word_ld32(d, base, 15, offset_words));
}

void emit_st32(struct emit_code *c, uint32_t s, uint32_t base, uint32_t offset_words) {
    wait_for(c, s);
    if (c->ready[base] != 0)
        c->now = MAX(c->now, c->ready[base] + TARGET_SUPER_STORE_ADDRESS_CYCLES -
                                 TARGET_SUPER_RESULT_CYCLES);
    issue(c, isa_word_st32(s, base, 15, offset_words), TARGET_SUPER_STORE_CYCLES);
}

void emit_put(struct emit_code *c, uint32_t csr, uint32_t m) {
    wait_for(c, m);
    const bool exchange = csr >= EXCHANGE_CSR_FIRST && csr <= EXCHANGE_CSR_LAST;
    issue(c, isa_word_put(csr, m), exchange ? TARGET_EXCH_PUT_SLOTS : TARGET_SUPER_PUT_CYCLES);
}

void emit_bri(struct emit_code *c, uint32_t address) {
    issue(c, isa_word_bri(address), TARGET_SUPER_BRANCH_CYCLES);
}

void emit_brnz(struct emit_code *c, uint32_t m, uint32_t address) {
    wait_for(c, m);
    issue(c, isa_word_brnz(m, address), TARGET_SUPER_BRANCH_CYCLES);
}

void emit_call(struct emit_code *c, uint32_t link, uint32_t address, uint64_t cycles) {
    issue(c, isa_word_call(link, address), 0);
    c->now += cycles;
}

void emit_word(struct emit_code *c, uint32_t word) {
    issue(c, word, 1);
}

/* call, setzi, runall; all workers exit in their first slot, the last of them in the sixth lane
 * behind the launch; sync, br. */
uint64_t emit_barrier_cycles(void) {
    return TARGET_SUPER_BRANCH_CYCLES + TARGET_SUPER_RESULT_CYCLES + TARGET_RUN_TO_SLOT_CYCLES + (TARGET_LANE_CYCLES - 1) + TARGET_EXIT_TO_LANE_CYCLES +
           TARGET_SUPER_BRANCH_CYCLES;
}

/* call, setzi, st32 (base 8 later), setzi, runall 7 later; worker 0 exits in its seventh slot, the
 * others in the fourth; where lane 0 lies behind the launch is not known here: 2 cycles on average. */
uint64_t emit_sample_cycles(void) {
    return TARGET_SUPER_BRANCH_CYCLES + TARGET_SUPER_STORE_ADDRESS_CYCLES + TARGET_SUPER_STORE_CYCLES + TARGET_SUPER_RESULT_CYCLES + TARGET_RUN_TO_SLOT_CYCLES + 2 +
           6 * TARGET_LANE_CYCLES + TARGET_EXIT_TO_LANE_CYCLES + TARGET_SUPER_BRANCH_CYCLES;
}
