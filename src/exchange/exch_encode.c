/* Encoder: the sends and controls of one tile to row words, by the conventions of exchange 12.2.
 *
 * One walk over slots. A control at label e takes effect in slot e - 1. Outside messages the walk
 * emits timed controls and delays; inside a message it emits items in chunks so that each control's
 * instruction starts in slot e - 1. Two controls at one label take the two-word sendpicp, which
 * must start at an even word; a chunk or delay before it is split in two where the parity is wrong.
 * The scheduler leaves room for that split, so failures only come from callers that do not.
 */
#include "exchange/exch_int.h"
#include "isa/isa_exch.h"

struct walk {
    struct exch_row_writer *w;
    const struct exch_control *c;
    uint32_t n_controls, k; /* next control */
    uint32_t slot, horizon;
    /* message being sent */
    const struct exch_send *send;
    bool started;
};

static uint32_t word_index(const struct walk *k) {
    return k->w->words->len - k->w->row_start;
}

static void put_word(struct walk *k, uint32_t word) {
    g_array_append_val(k->w->words, word);
}

static void put_site(struct walk *k, struct exch_site site) {
    site.word = k->w->words->len;
    g_array_append_val(k->w->sites, site);
}

static void pointer_site(struct walk *k, const struct exch_control *c) {
    if (c->kind != CTL_PTR) return;
    put_site(k, (struct exch_site){.transfer = c->transfer,
                                   .recipient = c->recipient,
                                   .address = c->value * 4,
                                   .kind = EXCH_SITE_POINTER,
                                   .item_bytes = 4});
}

static void delay(struct walk *k, uint32_t n) {
    while (n > 0) {
        const uint32_t part = n < ISA_DELAY_MAX ? n : ISA_DELAY_MAX;
        put_word(k, isa_word_delay(part));
        k->slot += part;
        n -= part;
    }
}

static bool is_xpic(const struct exch_control *c) {
    return c->kind == CTL_MUX || c->kind == CTL_PAIR;
}

/* Controls at the label of control k: 1 or 2 (0 at the end). */
static uint32_t group_size(const struct walk *k, uint32_t i) {
    if (i >= k->n_controls) return 0;
    return i + 1 < k->n_controls && k->c[i + 1].label == k->c[i].label ? 2 : 1;
}

static void single_outside(struct walk *k) {
    const struct exch_control *c = &k->c[k->k++];
    const uint32_t max = is_xpic(c) ? ISA_DELAYXPIC_MAX : ISA_DELAYPIC_MAX;
    const uint32_t d = c->label - k->slot;
    if (d > max) delay(k, d - max);
    const uint32_t n = c->label - k->slot;
    pointer_site(k, c);
    if (is_xpic(c))
        put_word(
            k, isa_word_delayxpic(n, c->kind == CTL_PAIR ? ISA_XPIC_PAIR : ISA_XPIC_MUX, c->value));
    else
        put_word(k, isa_word_delaypic(n, c->kind == CTL_FMT ? ISA_PIC_FMT : ISA_PIC_PTR, c->value));
    k->slot = c->label;
}

/* Words of a sendpicp for the pair at control k; n slots; address in items, sctl 0 = nothing sent.
 */
static void pair_words(struct walk *k, uint32_t n, uint32_t address_items, uint32_t sctl) {
    const struct exch_control *a = &k->c[k->k], *b = a + 1;
    const struct exch_control *x = is_xpic(a) ? a : b, *p = is_xpic(a) ? b : a;
    k->k += 2;
    if (sctl != 0)
        put_site(k, (struct exch_site){.transfer = k->send->transfer,
                                       .recipient = UINT32_MAX,
                                       .address = address_items * (sctl & 4 ? 8 : 4),
                                       .kind = EXCH_SITE_SEND,
                                       .item_bytes = sctl & 4 ? 8 : 4,
                                       .moving = k->send->moving});
    uint32_t words[2];
    isa_word_sendpicp(&(struct isa_sendpicp){.n = n,
                                             .item_address = address_items,
                                             .sctl = sctl,
                                             .psel = p->kind == CTL_FMT ? ISA_PIC_FMT : ISA_PIC_PTR,
                                             .p18 = p->value,
                                             .mux = x->value,
                                             .pair = x->kind == CTL_PAIR},
                      words);
    put_word(k, words[0]);
    pointer_site(k, p);
    put_word(k, words[1]);
    k->slot += n;
}

static bool pair_outside(struct walk *k, uint32_t boundary) {
    const uint32_t e = k->c[k->k].label, d = e - 1 - k->slot;
    const bool odd = word_index(k) & 1;
    if (d == 0) {
        if (odd) return false;
    } else if (odd) {
        delay(k, d);
    } else {
        if (d == 1) return false;
        delay(k, d - 1);
        delay(k, 1);
    }
    uint32_t to = boundary;
    if (k->k + 2 < k->n_controls && k->c[k->k + 2].label - 1 < to) to = k->c[k->k + 2].label - 1;
    uint32_t n = MIN(to - k->slot, (uint32_t)ISA_SEND_MAX);
    /* One slot left before a further pair could not be bridged: leave two. */
    if (!k->w->plain && to - k->slot == n + 1 && group_size(k, k->k + 2) == 2) n--;
    pair_words(k, n, 0, 0);
    return true;
}

/* Controls with label <= limit, outside messages; `boundary` is the slot of the next send or the
 * end. */
static bool outside(struct walk *k, uint32_t limit, uint32_t boundary) {
    while (k->k < k->n_controls && k->c[k->k].label <= limit) {
        if (group_size(k, k->k) == 1) single_outside(k);
        else if (!pair_outside(k, boundary)) return false;
    }
    if (k->slot < boundary) delay(k, boundary - k->slot);
    return true;
}

static uint32_t items_sent(const struct walk *k) {
    return k->slot - k->send->slot;
}
static uint32_t address_items(const struct walk *k) {
    const uint32_t shift = k->send->sctl & 4 ? 3 : 2;
    return (k->send->address >> shift) + items_sent(k);
}

static void items_chunk(struct walk *k, uint32_t n) {
    const struct exch_send *s = k->send;
    if (!k->started) {
        put_site(k, (struct exch_site){.transfer = s->transfer,
                                       .recipient = UINT32_MAX,
                                       .address = s->address,
                                       .kind = EXCH_SITE_SEND,
                                       .item_bytes = s->sctl & 4 ? 8 : 4,
                                       .moving = s->moving});
        put_word(k, isa_word_send(n, address_items(k), s->sctl));
        k->started = true;
    } else {
        put_word(k, isa_word_sendoff(n, 0, s->sctl));
    }
    k->slot += n;
}

static uint32_t chunk_max(const struct walk *k) {
    return k->started ? ISA_SENDOFF_MAX : ISA_SEND_MAX;
}

/* Sends up to slot `to`. If `even`, the next word must have an even index: the last chunk of at
 * least two items is cut in 1 + rest when it would not. */
static bool items_to(struct walk *k, uint32_t to, bool even) {
    if (k->slot == to) return !even || (word_index(k) & 1) == 0;
    uint32_t n_chunks = 0, last_big = UINT32_MAX;
    bool started = k->started;
    for (uint32_t s = k->slot; s < to; n_chunks++, started = true) {
        const uint32_t max = started ? ISA_SENDOFF_MAX : ISA_SEND_MAX;
        const uint32_t n = to - s < max ? to - s : max;
        if (n >= 2) last_big = n_chunks;
        s += n;
    }
    const bool split = even && ((word_index(k) + n_chunks) & 1) != 0;
    if (split && last_big == UINT32_MAX) return false;
    for (uint32_t i = 0; i < n_chunks; i++) {
        const uint32_t max = chunk_max(k);
        const uint32_t n = to - k->slot < max ? to - k->slot : max;
        if (split && i == last_big) {
            items_chunk(k, 1);
            items_chunk(k, n - 1);
        } else {
            items_chunk(k, n);
        }
    }
    return true;
}

/* The instruction of the controls at k: a sendpic or a transmitting sendpicp. */
static bool control_inside(struct walk *k, uint32_t end) {
    const uint32_t group = group_size(k, k->k);
    const struct exch_control *c = &k->c[k->k];
    uint32_t n = end - k->slot;
    if (n > ISA_SEND_MAX) n = ISA_SEND_MAX;
    const uint32_t next = k->k + group;
    const uint32_t next_size = group_size(k, next);
    if (next_size > 0 && k->c[next].label <= end) {
        const uint32_t gap = k->c[next].label - 1 - k->slot;
        if (gap <= n) {
            n = gap;
            if (next_size == 2 && ((word_index(k) + group) & 1) != 0) {
                if (n == 1) return false;
                n--;
            }
        } else if (!k->w->plain && gap == n + 1 && next_size == 2 &&
                   ((word_index(k) + group) & 1) == 0) {
            n--; /* the 64 cuts one slot short of a pair: leave two for its parity */
        }
    }
    if (group == 2) {
        pair_words(k, n, address_items(k), k->send->sctl);
        k->started = true;
        return true;
    }
    if (!k->started) return false; /* a single control can't ride on the first item */
    k->k++;
    pointer_site(k, c);
    put_word(k, isa_word_sendpic(n, c->kind, c->value));
    k->slot += n;
    return true;
}

static bool message(struct walk *k, const struct exch_send *s) {
    k->send = s;
    k->started = false;
    const uint32_t end = s->slot + s->items;
    while (k->k < k->n_controls && k->c[k->k].label <= end) {
        if (!items_to(k, k->c[k->k].label - 1, group_size(k, k->k) == 2)) return false;
        if (!control_inside(k, end)) return false;
    }
    return items_to(k, end, false);
}

bool exch_encode_row(struct exch_row_writer *w, const struct exch_send *sends, uint32_t n_sends,
                     const struct exch_control *controls, uint32_t n_controls, uint32_t horizon) {
    struct walk k = {.w = w, .c = controls, .n_controls = n_controls, .horizon = horizon};
    for (uint32_t i = 0; i < n_sends; i++) {
        if (!outside(&k, sends[i].slot, sends[i].slot)) return false;
        if (sends[i].sctl == 0) {
            put_word(&k, isa_word_put(EXCH_CSR_OUTGOING_BASE, EXCH_REG_ZERO));
            k.slot += TARGET_EXCH_PUT_SLOTS;
        } else if (!message(&k, &sends[i])) {
            return false;
        }
    }
    if (!outside(&k, UINT32_MAX, horizon)) return false;
    put_word(&k, isa_word_br(EXCH_REG_RETURN));
    return true;
}
