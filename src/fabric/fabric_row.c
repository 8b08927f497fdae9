/* Decoding by the table of masks in exchange 2.1, in its order. Constant time per word. Written
 * from that table alone; it knows nothing of the encoder. */
#include "fabric/fabric_row.h"

#include "target/target.h"

enum {
    WORD_RETURN = 0x43a00000,
    CSR_INCOMING_BASE = 0xa4,
    CSR_OUTGOING_BASE = 0xa7,
};

static uint32_t bits(uint32_t word, uint32_t shift, uint32_t width) {
    return (word >> shift) & ((1u << width) - 1);
}

static struct row_insn decode_picp(uint32_t w, uint32_t next) {
    return (struct row_insn){.kind = ROW_SENDPICP,
                             .n = bits(w, 21, 6) + 1,
                             .control = bits(w, 27, 1) != 0 ? CONTROL_FMT : CONTROL_PTR,
                             .value = bits(next, 0, 18),
                             .xcontrol = bits(next, 31, 1) != 0 ? CONTROL_PAIR : CONTROL_MUX,
                             .xvalue = bits(next, 18, 13),
                             .address = bits(w, 3, 18),
                             .sctl = bits(w, 0, 3)};
}

/* Words that start 0x7 (send, sendoff, sendpic). */
static struct row_insn decode_send(uint32_t w) {
    if ((w & 0xf8100000) == 0x70100000) /* all 18 bits, also of a mux: the walk refuses too many */
        return (struct row_insn){.kind = ROW_SENDPIC,
                                 .n = bits(w, 21, 6) + 1,
                                 .control = bits(w, 18, 2),
                                 .value = bits(w, 0, 18)};
    if ((w & 0xf8000000) == 0x78000000)
        return (struct row_insn){.kind = ROW_SEND, .n = bits(w, 21, 6) + 1,
                                 .address = bits(w, 3, 18), .sctl = bits(w, 0, 3)};
    return (struct row_insn){.kind = ROW_SENDOFF,
                             .n = (bits(w, 21, 6) | bits(w, 14, 6) << 6) + 1,
                             .address = bits(w, 3, 11), .sctl = bits(w, 0, 3)};
}

/* The rarer words, and those that don't belong into rows. */
static struct row_insn decode_rest(uint32_t w) {
    if ((w & 0xff000000) == 0x19000000)
        return (struct row_insn){.kind = ROW_SETZI, .n = 1, .address = bits(w, 20, 4),
                                 .value = bits(w, 0, 20)};
    if ((w & 0xff0ff000) == 0x43008000) {
        const uint32_t csr = bits(w, 0, 12);
        if (csr == CSR_INCOMING_BASE || csr == CSR_OUTGOING_BASE)
            return (struct row_insn){.kind = ROW_PUT, .n = TARGET_EXCH_PUT_SLOTS,
                                     .address = bits(w, 20, 4), .value = csr};
        return (struct row_insn){.kind = ROW_FOREIGN};
    }
    if ((w & 0xfffffff0) == 0x41800000) return (struct row_insn){.kind = ROW_SYNC};
    switch (w >> 24) {
    case 0x01: case 0x18: case 0x22: case 0x41: case 0x43: case 0x4f:
        return (struct row_insn){.kind = ROW_FOREIGN};
    }
    if ((w & 0xfff80000) == 0x40c00000) return (struct row_insn){.kind = ROW_FOREIGN};
    return (struct row_insn){.kind = ROW_UNKNOWN};
}

struct row_insn row_decode(uint32_t w, uint32_t next) {
    switch (w >> 28) {
    case 0xf:
        return decode_picp(w, next);
    case 0x7:
        return decode_send(w);
    case 0x6: {
        const uint32_t sub = bits(w, 26, 2);
        if (sub == 0)
            return (struct row_insn){.kind = ROW_PIC, .n = bits(w, 19, 7) + 1,
                                     .control = bits(w, 18, 1) != 0 ? CONTROL_FMT : CONTROL_PTR,
                                     .value = bits(w, 0, 18)};
        if (sub == 1)
            return (struct row_insn){.kind = ROW_XPIC, .n = bits(w, 14, 12) + 1,
                                     .control = bits(w, 13, 1) != 0 ? CONTROL_PAIR : CONTROL_MUX,
                                     .value = bits(w, 0, 13)};
        break;
    }
    case 0x4:
        if (w == WORD_RETURN) return (struct row_insn){.kind = ROW_RETURN};
        if ((w & 0xfff80000) == 0x40a00000)
            return (struct row_insn){.kind = ROW_DELAY, .n = bits(w, 0, 19) + 1};
        break;
    }
    return decode_rest(w);
}

uint32_t row_address_bits(uint32_t word, uint32_t before, int payload) {
    const uint32_t pointer = 0x3ffff, source = 0x1ffff8;
    if (payload) return row_decode(before, word).control == CONTROL_PTR ? pointer : 0;
    const struct row_insn in = row_decode(word, 0);
    switch (in.kind) {
    case ROW_SEND:
        return source;
    case ROW_SENDPICP:
        return in.sctl != 0 ? source : 0;
    case ROW_PIC:
    case ROW_SENDPIC:
        return in.control == CONTROL_PTR ? pointer : 0;
    default:
        return 0;
    }
}
