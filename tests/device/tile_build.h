/* Programs for tests of the tile, word by word: no assembler, so that a wrong one can't hide a wrong
 * tile. A program is written to SRAM from `at` on; operands are given in assembly order. */
#ifndef IPU_TESTS_TILE_BUILD_H
#define IPU_TESTS_TILE_BUILD_H

#include "isa/isa.h"
#include "tile/tile.h"

#include <stdarg.h>

enum { CODE = 0x4c800, DATA = 0x60000, DATA1 = 0x90000, STACKS = 0x5c000 };

struct build {
    struct sram *sram;
    struct tile tile;
    struct tile_config config;
    uint32_t at;
};

static inline void build_init(struct build *b, struct tile_config config) {
    b->config = config;
    b->sram = sram_new(1);
    tile_init(&b->tile, &b->config, b->sram, 0);
    b->at = CODE;
}
static inline void build_free(struct build *b) {
    tile_free(&b->tile);
    sram_free(b->sram);
}

static inline void build_word(struct build *b, uint32_t w) {
    memcpy(sram_at(b->sram, 0, b->at), &w, 4);
    sram_mark_written(b->sram, 0, b->at, 4);
    b->at += 4;
}

static inline uint32_t insn_word(enum isa_op op, va_list args) {
    struct isa_insn i = {.op = (uint16_t)op, .n_words = isa_form(op)->n_words};
    for (uint32_t k = 0; k < isa_form(op)->n_operands; k++) isa_operand_set(&i, k, va_arg(args, int));
    uint32_t words[2];
    isa_encode(&i, words);
    return words[0];
}
static inline uint32_t word_of(enum isa_op op, ...) {
    va_list args;
    va_start(args, op);
    const uint32_t w = insn_word(op, args);
    va_end(args);
    return w;
}
/* One lone instruction. */
#define I(op, ...) build_word(&b, word_of(ISA_OP_##op, ##__VA_ARGS__))
/* A bundle of two words of word_of. */
#define B(m, a) (build_word(&b, (m) | 0x80000000u), build_word(&b, (a) | 0x80000000u))
#define W(op, ...) word_of(ISA_OP_##op, ##__VA_ARGS__)
#define FNOP W(SETZI_A, 13, 0)
#define MNOP W(SETZI_M, 14, 0)

static inline void put32(struct build *b, uint32_t address, uint32_t v) {
    memcpy(sram_at(b->sram, 0, address), &v, 4);
    sram_mark_written(b->sram, 0, address, 4);
}
static inline uint32_t get32(const struct build *b, uint32_t address) {
    uint32_t v;
    memcpy(&v, sram_at(b->sram, 0, address), 4);
    return v;
}

/* Runs the code from CODE on in worker 0 alone until it exits. */
static inline enum tile_stop_reason run_worker(struct build *b) {
    tile_start_workers(&b->tile, CODE, DATA, 1, 0);
    return tile_run(&b->tile, 100000000);
}
static inline enum tile_stop_reason run_super(struct build *b) {
    tile_start(&b->tile, CODE, 0);
    return tile_run(&b->tile, 100000000);
}

#endif
