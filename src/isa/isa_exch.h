/* isa_exch: words of exchange rows and of supervisor programs, made and read.
 *
 * In:   fields. `n` is always the number of events the instruction advances; addresses of sends
 *       are in items (words, or double words with ISA_SCTL_64), pointers in words; targets of
 *       branches and calls in bytes.
 * Out:  instruction words. Base words come from isa.def.
 * Errors: a field out of range is a bug of the caller (BUG_ON).
 * Facts: exchange.md 2.1 to 2.3, isa.md 7.2.
 */
#ifndef IPU_ISA_EXCH_H
#define IPU_ISA_EXCH_H

#include "isa/isa.h"

enum { ISA_DELAY_MAX = 1 << 19, ISA_DELAYPIC_MAX = 128, ISA_DELAYXPIC_MAX = 4096, ISA_SEND_MAX = 64,
       ISA_SENDOFF_MAX = 4096 };
/* Send control: directions 1 and 2, and 64-bit items. 0: advances, nothing on a bus. */
enum { ISA_SCTL_DIR1 = 1, ISA_SCTL_DIR2 = 2, ISA_SCTL_BOTH = 3, ISA_SCTL_64 = 4 };
/* Selectors: of delaypic and sendpicp, of delayxpic, of sendpic. */
enum { ISA_PIC_PTR = 0, ISA_PIC_FMT = 1 };
enum { ISA_XPIC_MUX = 0, ISA_XPIC_PAIR = 1 };
enum { ISA_CSEL_MUX = 0, ISA_CSEL_PAIR = 1, ISA_CSEL_PTR = 2, ISA_CSEL_FMT = 3 };

static inline uint32_t isa_exch_bits(uint32_t value, uint32_t bits, uint32_t shift) {
    BUG_ON(value >> bits != 0);
    return value << shift;
}
static inline uint32_t isa_exch_count(uint32_t n, uint32_t bits, uint32_t shift) {
    BUG_ON(n == 0);
    return isa_exch_bits(n - 1, bits, shift);
}

/* --- Rows. --- */

static inline uint32_t isa_word_delay(uint32_t n) {
    return ISA_WORD_DELAY | isa_exch_count(n, 19, 0);
}
/* sel PTR: value = word address (18 bits); FMT: 0, 1, 2. */
static inline uint32_t isa_word_delaypic(uint32_t n, uint32_t sel, uint32_t value) {
    return ISA_WORD_DELAYPIC | isa_exch_count(n, 7, 19) | isa_exch_bits(sel, 1, 18) |
           isa_exch_bits(value, 18, 0);
}
static inline uint32_t isa_word_delayxpic(uint32_t n, uint32_t sel, uint32_t mux) {
    return ISA_WORD_DELAYXPIC | isa_exch_count(n, 12, 14) | isa_exch_bits(sel, 1, 13) |
           isa_exch_bits(mux, 13, 0);
}
static inline uint32_t isa_word_send(uint32_t n, uint32_t item_address, uint32_t sctl) {
    return ISA_WORD_SEND | isa_exch_count(n, 6, 21) | isa_exch_bits(item_address, 18, 3) |
           isa_exch_bits(sctl, 3, 0);
}
static inline uint32_t isa_word_sendoff(uint32_t n, uint32_t delta, uint32_t sctl) {
    BUG_ON(n == 0 || n > ISA_SENDOFF_MAX);
    return ISA_WORD_SENDOFF | ((n - 1) & 63) << 21 | ((n - 1) >> 6) << 14 |
           isa_exch_bits(delta, 11, 3) | isa_exch_bits(sctl, 3, 0);
}
/* csel MUX, PAIR: 13-bit value; PTR, FMT: 18 bits. */
static inline uint32_t isa_word_sendpic(uint32_t n, uint32_t csel, uint32_t value) {
    BUG_ON(csel <= ISA_CSEL_PAIR && value >> 13 != 0);
    return ISA_WORD_SENDPIC | isa_exch_count(n, 6, 21) | isa_exch_bits(csel, 2, 18) |
           isa_exch_bits(value, 18, 0);
}
/* Two words, to stand at a multiple of 8: the send with a PIC (psel PTR or FMT, p18) and an XPIC
 * control (pair: into the pair multiplexer). sctl 0: sends nothing, item_address 0. */
struct isa_sendpicp {
    uint32_t n, item_address, sctl, psel, p18, mux;
    bool pair;
};
static inline void isa_word_sendpicp(const struct isa_sendpicp *f, uint32_t ret_words[2]) {
    ret_words[0] = ISA_WORD_SENDPICP | isa_exch_bits(f->psel, 1, 27) | isa_exch_count(f->n, 6, 21) |
                   isa_exch_bits(f->item_address, 18, 3) | isa_exch_bits(f->sctl, 3, 0);
    ret_words[1] = (f->pair ? UINT32_C(1) << 31 : 0) | isa_exch_bits(f->mux, 13, 18) |
                   isa_exch_bits(f->p18, 18, 0);
}

/* --- Supervisor. Registers are numbers of $m; `address` in bytes. --- */

static inline uint32_t isa_word_sync(uint32_t zone) {
    return ISA_WORD_SYNC | isa_exch_bits(zone, 4, 0);
}
static inline uint32_t isa_word_sans(uint32_t imm) {
    return ISA_WORD_SANS | isa_exch_bits(imm, 19, 0);
}
static inline uint32_t isa_word_br(uint32_t m) { return ISA_WORD_BR | isa_exch_bits(m, 4, 20); }
static inline uint32_t isa_exch_target(uint32_t address, uint32_t bits) {
    BUG_ON(address % 4 != 0);
    return isa_exch_bits(address / 4, bits, 0);
}
static inline uint32_t isa_word_bri(uint32_t address) {
    return ISA_WORD_BRI | isa_exch_target(address, 19);
}
static inline uint32_t isa_word_brz(uint32_t m, uint32_t address) {
    return ISA_WORD_BRZ | isa_exch_bits(m, 4, 20) | isa_exch_target(address, 19);
}
static inline uint32_t isa_word_brnz(uint32_t m, uint32_t address) {
    return ISA_WORD_BRNZ | isa_exch_bits(m, 4, 20) | isa_exch_target(address, 19);
}
static inline uint32_t isa_word_brnzdec(uint32_t m, uint32_t address) {
    return ISA_WORD_BRNZDEC | isa_exch_bits(m, 4, 20) | isa_exch_target(address, 19);
}
static inline uint32_t isa_word_call(uint32_t link, uint32_t address) {
    return ISA_WORD_CALL | isa_exch_bits(link, 4, 20) | isa_exch_target(address, 19);
}
static inline uint32_t isa_word_setzi(uint32_t m, uint32_t value) {
    return ISA_WORD_SETZI_M | isa_exch_bits(m, 4, 20) | isa_exch_bits(value, 20, 0);
}
static inline uint32_t isa_word_put(uint32_t csr, uint32_t m) {
    return ISA_WORD_PUT | isa_exch_bits(m, 4, 20) | isa_exch_bits(csr, 8, 0);
}
static inline uint32_t isa_word_get(uint32_t m, uint32_t csr) {
    return ISA_WORD_GET | isa_exch_bits(m, 4, 16) | isa_exch_bits(csr, 8, 0);
}
static inline uint32_t isa_word_add(uint32_t d, uint32_t s, int32_t imm) {
    BUG_ON(imm < -32768 || imm > 32767);
    return ISA_WORD_ADD_S | isa_exch_bits(s, 4, 20) | isa_exch_bits(d, 4, 16) |
           ((uint32_t)imm & 0xffff);
}
static inline uint32_t isa_word_add_reg(uint32_t d, uint32_t s0, uint32_t s1) {
    return ISA_WORD_ADD_R | isa_exch_bits(d, 4, 4) | isa_exch_bits(s0, 4, 20) |
           isa_exch_bits(s1, 4, 12);
}
/* d = s | value << 20 (value: 12 bits): the top of a constant behind setzi. */
static inline uint32_t isa_word_or_top(uint32_t d, uint32_t s, uint32_t value) {
    return ISA_WORD_OR_M_T | isa_exch_bits(s, 4, 20) | isa_exch_bits(d, 4, 16) |
           isa_exch_bits(value, 12, 0);
}
/* d = mem32[base + delta + 4 * offset_words]. */
static inline uint32_t isa_word_ld32(uint32_t d, uint32_t base, uint32_t delta,
                                     uint32_t offset_words) {
    return ISA_WORD_LD32_M_Z | isa_exch_bits(base, 4, 20) | isa_exch_bits(d, 4, 16) |
           isa_exch_bits(delta, 4, 12) | isa_exch_bits(offset_words, 12, 0);
}
static inline uint32_t isa_word_st32(uint32_t s, uint32_t base, uint32_t delta,
                                     uint32_t offset_words) {
    return ISA_WORD_ST32_M | isa_exch_bits(base, 4, 20) | isa_exch_bits(s, 4, 16) |
           isa_exch_bits(delta, 4, 12) | isa_exch_bits(offset_words, 12, 0);
}
/* offset_bytes: a multiple of 4, below 256 KiB. */
static inline uint32_t isa_word_run_fields(uint32_t entry, uint32_t vbase, uint32_t offset_bytes) {
    const uint32_t words = isa_exch_target(offset_bytes, 16);
    return isa_exch_bits(entry, 4, 20) | isa_exch_bits(vbase, 4, 12) | (words >> 12) << 16 |
           (words & 0xfff);
}
static inline uint32_t isa_word_run(uint32_t entry, uint32_t vbase, uint32_t offset_bytes) {
    return ISA_WORD_RUN | isa_word_run_fields(entry, vbase, offset_bytes);
}
static inline uint32_t isa_word_runall(uint32_t entry, uint32_t vbase, uint32_t offset_bytes) {
    return ISA_WORD_RUNALL | isa_word_run_fields(entry, vbase, offset_bytes);
}
static inline uint32_t isa_word_nop(void) { return isa_word_setzi(14, 0); }
static inline uint32_t isa_word_trap(uint32_t n) {
    return ISA_WORD_TRAP | isa_exch_bits(n, 4, 0);
}
static inline uint32_t isa_word_exitz(uint32_t m) {
    return ISA_WORD_EXITZ | isa_exch_bits(m, 4, 20);
}

/* --- Reading rows (exchange 2.1, in the order of its decode table). --- */

enum isa_exch_kind {
    ISA_EXCH_OTHER, /* not an instruction of rows */
    ISA_EXCH_RETURN, ISA_EXCH_DELAY, ISA_EXCH_SETZI, ISA_EXCH_PUT, ISA_EXCH_DELAYPIC,
    ISA_EXCH_DELAYXPIC, ISA_EXCH_SENDPICP, ISA_EXCH_SENDPIC, ISA_EXCH_SEND, ISA_EXCH_SENDOFF,
    ISA_EXCH_SYNC,
};
struct isa_exch {
    enum isa_exch_kind kind;
    uint32_t n_words; /* 1; 2 for sendpicp */
    uint32_t n;       /* events; 0 for return, setzi, put, sync */
    uint32_t address; /* item address (send, sendpicp) or delta (sendoff) */
    uint32_t sctl;
    uint32_t sel;     /* delaypic PIC_, delayxpic XPIC_, sendpic CSEL_, sendpicp PIC_; put: csr */
    uint32_t value;   /* pointer, format or mux; sendpicp: p18; setzi: constant; sync: zone */
    uint32_t mux;     /* sendpicp: 13 bits */
    bool pair;        /* sendpicp: mux goes to the pair multiplexer */
    uint32_t m;       /* setzi, put */
};
/* `n_words` words are readable; a sendpicp whose payload is missing is OTHER. */
struct isa_exch isa_exch_decode(const uint32_t *words, size_t n_words);

#endif
