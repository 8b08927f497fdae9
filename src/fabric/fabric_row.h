/* fabric_row: one word of an exchange row, read by the masks of exchange 2.1. Private to the
 * room. */
#ifndef IPU_FABRIC_ROW_H
#define IPU_FABRIC_ROW_H

#include <stdint.h>

enum row_kind {
    ROW_RETURN,
    ROW_DELAY,
    ROW_SETZI,
    ROW_PUT,
    ROW_PIC,
    ROW_XPIC,
    ROW_SENDPICP, /* two words */
    ROW_SENDPIC,
    ROW_SEND,
    ROW_SENDOFF,
    ROW_SYNC,
    ROW_FOREIGN, /* an instruction, but none of rows */
    ROW_UNKNOWN,
};

/* The four incoming controls, numbered as sendpic's selector. */
enum row_control { CONTROL_MUX, CONTROL_PAIR, CONTROL_PTR, CONTROL_FMT, N_CONTROLS };

enum {
    SCTL_DIRECTIONS = 3,
    SCTL_PAIRED = 4,
};

struct row_insn {
    uint32_t kind;    /* enum row_kind */
    uint32_t n;       /* slots */
    uint32_t control; /* PIC, XPIC, SENDPIC, SENDPICP (its PIC): enum row_control */
    uint32_t value;   /* of that control; SETZI: the immediate; PUT: the CSR */
    uint32_t xcontrol, xvalue; /* SENDPICP: its XPIC */
    uint32_t address; /* in items; SENDOFF: the displacement; SETZI, PUT: the register */
    uint32_t sctl;
};

/* `next` is the word behind, used by sendpicp only. */
struct row_insn row_decode(uint32_t word, uint32_t next);

/* Bits of `word` that hold an address which a patch may change (exchange 7.2): the address of send
 * and of a transmitting sendpicp, the value of a pointer write. `payload`: the word is a sendpicp's
 * second one, which belongs to the first word `before`. */
uint32_t row_address_bits(uint32_t word, uint32_t before, int payload);

#endif
