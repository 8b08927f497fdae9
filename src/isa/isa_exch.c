/* Reading exchange rows word by word, in the order of exchange 2.1's decode table: the first test
 * that holds settles the kind, so overlaps of masks do no harm. The payload word of sendpicp is
 * taken with its first word and never looked at as an instruction. */
#include "isa/isa_exch.h"

static uint32_t field(uint32_t w, uint32_t shift, uint32_t bits) {
    return w >> shift & ((UINT32_C(1) << bits) - 1);
}

static struct isa_exch decode_send(uint32_t w) {
    const struct isa_exch e = {.n_words = 1};
    struct isa_exch r = e;
    if ((w & 0xf8100000) == ISA_WORD_SENDPIC) {
        r.kind = ISA_EXCH_SENDPIC;
        r.n = field(w, 21, 6) + 1;
        r.sel = field(w, 18, 2);
        r.value = field(w, 0, 18);
    } else if ((w & 0xf8000000) == ISA_WORD_SEND) {
        r.kind = ISA_EXCH_SEND;
        r.n = field(w, 21, 6) + 1;
        r.address = field(w, 3, 18);
        r.sctl = field(w, 0, 3);
    } else if ((w & 0xf8100000) == ISA_WORD_SENDOFF) {
        r.kind = ISA_EXCH_SENDOFF;
        r.n = (field(w, 14, 6) << 6 | field(w, 21, 6)) + 1;
        r.address = field(w, 3, 11);
        r.sctl = field(w, 0, 3);
    } else if ((w & 0xfffffff0) == ISA_WORD_SYNC) {
        r.kind = ISA_EXCH_SYNC;
        r.value = field(w, 0, 4);
    }
    return r;
}

static struct isa_exch decode_sendpicp(uint32_t w, uint32_t payload) {
    return (struct isa_exch){.kind = ISA_EXCH_SENDPICP,
                             .n_words = 2,
                             .n = field(w, 21, 6) + 1,
                             .address = field(w, 3, 18),
                             .sctl = field(w, 0, 3),
                             .sel = field(w, 27, 1),
                             .value = field(payload, 0, 18),
                             .mux = field(payload, 18, 13),
                             .pair = payload >> 31};
}

struct isa_exch isa_exch_decode(const uint32_t *words, size_t n_words) {
    struct isa_exch r = {.kind = ISA_EXCH_OTHER, .n_words = 1};
    if (n_words == 0) return r;
    const uint32_t w = words[0];
    if (w == (ISA_WORD_BR | 10u << 20)) {
        r.kind = ISA_EXCH_RETURN;
    } else if ((w & 0xfff80000) == ISA_WORD_DELAY) {
        r.kind = ISA_EXCH_DELAY;
        r.n = field(w, 0, 19) + 1;
    } else if ((w & 0xff000000) == ISA_WORD_SETZI_M) {
        r.kind = ISA_EXCH_SETZI;
        r.m = field(w, 20, 4);
        r.value = field(w, 0, 20);
    } else if ((w & 0xff0ff000) == ISA_WORD_PUT) {
        r.kind = ISA_EXCH_PUT;
        r.m = field(w, 20, 4);
        r.sel = field(w, 0, 12);
    } else if ((w & 0xfc000000) == ISA_WORD_DELAYPIC) {
        r.kind = ISA_EXCH_DELAYPIC;
        r.n = field(w, 19, 7) + 1;
        r.sel = field(w, 18, 1);
        r.value = field(w, 0, 18);
    } else if ((w & 0xfc000000) == ISA_WORD_DELAYXPIC) {
        r.kind = ISA_EXCH_DELAYXPIC;
        r.n = field(w, 14, 12) + 1;
        r.sel = field(w, 13, 1);
        r.value = field(w, 0, 13);
    } else if ((w & 0xf0000000) == ISA_WORD_SENDPICP) {
        if (n_words >= 2) r = decode_sendpicp(w, words[1]);
    } else {
        r = decode_send(w);
    }
    return r;
}
