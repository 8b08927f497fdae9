/* Inside of the room: messages (transfers prepared for one choice of widths), time lines of the
 * tiles, and the steps from a problem to a result. See exch.h for the meaning of everything.
 *
 * Times of a message whose first item leaves in slot S, at recipient r of row R (labels):
 *   ordinary  source x = S + ttm + 1, payload p = x + 52 + 2R
 *   paired    source x = S + t2, format f = x + 51 + 2R, payload p = f + 2
 * so rec_x (x - S) is all a recipient needs beside its row and its flags.
 */
#ifndef IPU_EXCHANGE_EXCH_INT_H
#define IPU_EXCHANGE_EXCH_INT_H

#include "exchange/exch.h"

/* Supervisor registers and the control register in rows (exchange 2.5, 2.6). */
enum { EXCH_REG_ZERO = 15, EXCH_REG_RETURN = 10, EXCH_CSR_OUTGOING_BASE = 0xa7 };

/* For qsort of 64-bit keys. */
static inline int exch_key_compare(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* --- Routes: tables by logical tile, made once. --- */

struct exch_route {
    int8_t ttm[TARGET_N_TILES][TARGET_N_TILES]; /* [source][destination] */
    uint8_t dir[TARGET_N_TILES][TARGET_N_TILES];
    uint8_t row[TARGET_N_TILES];
    uint16_t phys[TARGET_N_TILES];
};
const struct exch_route *exch_route(void);
static inline uint32_t exch_lag(const struct exch_route *r, uint32_t tile) {
    return TARGET_EXCH_PTR_DELAY + 2u * r->row[tile];
}

/* --- Messages --- */

enum { REC_EARLY = 4, REC_FORMAT = 3 }; /* rec_flag: format value in the low bits */

struct exch_msgs {
    struct arena *arena;
    const struct exch_problem *p;
    uint32_t n, n_rec;
    uint32_t *transfer, *offset; /* offset: first word of the transfer */
    uint16_t *src;
    uint16_t *items;
    uint8_t *paired, *sctl;
    uint32_t *s_min;    /* smallest slot of the first item */
    uint32_t *src_elem; /* elements read, of those the tile also receives into */
    uint32_t *rec0;     /* [n + 1] */
    uint16_t *rec_tile;
    int16_t *rec_x;
    uint8_t *rec_flag;
    uint32_t *rec_elem; /* elements written, of those the tile also sends from */
    uint32_t *shared;   /* [TARGET_N_TILES] elements used both ways */
    uint32_t *first_of; /* [n_transfers + 1] messages of a transfer */
    uint8_t *moving;    /* message of a moving source that uses the base register */
    uint8_t *base;      /* [TARGET_N_TILES] enum exch_base */
    int32_t *stride;    /* [TARGET_N_TILES] */
};
static inline uint32_t exch_item_bytes(const struct exch_msgs *m, uint32_t i) {
    return m->paired[i] ? 8 : 4;
}
static inline uint32_t exch_src_address(const struct exch_msgs *m, uint32_t i) {
    return m->p->source_address[m->transfer[i]] + 4 * m->offset[i];
}
/* Index of recipient j (into rec_*) of message i among the problem's recipients. */
static inline uint32_t exch_rec_index(const struct exch_msgs *m, uint32_t i, uint32_t j) {
    return m->p->first_recipient[m->transfer[i]] + (j - m->rec0[i]);
}
static inline uint32_t exch_rec_address(const struct exch_msgs *m, uint32_t i, uint32_t j) {
    return m->p->recipient_address[exch_rec_index(m, i, j)] + 4 * m->offset[i];
}

/* Width of each transfer is given ([n_transfers] 0 or 1 = paired); `pieces` (may be NULL) says into
 * how many parts at least a transfer is cut. Messages that never fit are cut further (12.3). */
struct exch_msgs *exch_msgs_new(const struct exch_problem *p, const uint8_t *paired,
                                const uint16_t *pieces);
void exch_msgs_free(struct exch_msgs *m);
/* Never fits at any offset (exchange 12.3). */
bool exch_never_fits(const struct exch_problem *p, uint32_t transfer, bool paired, uint32_t items);
uint32_t exch_element_mask(uint32_t address, uint64_t bytes);

/* --- Time lines: which message may start in which slot (exch_line.c) --- */

struct exch_lines;
struct exch_lines *exch_lines_new(const struct exch_msgs *m, bool relaxed);
void exch_lines_free(struct exch_lines *l);
uint64_t exch_lines_work(
    const struct exch_lines *l); /* endpoints looked at so far, about 0.1 us each */
void exch_lines_reset(struct exch_lines *l, uint32_t tile); /* empty again */
/* First slot >= from in which message i fits. */
uint32_t exch_lines_find(struct exch_lines *l, uint32_t i, uint32_t from);
/* 0 if message i fits in slot s, else a later slot worth trying. */
uint32_t exch_lines_try(struct exch_lines *l, uint32_t i, uint32_t s);
void exch_lines_commit(struct exch_lines *l, uint32_t i, uint32_t s);
/* Its two halves, to fill the lines of one tile again after a reset. */
void exch_lines_commit_send(struct exch_lines *l, uint32_t i, uint32_t s);
void exch_lines_commit_receive(struct exch_lines *l, uint32_t i, uint32_t j, uint32_t s);
/* First slot of a base switch behind every send of the tile, or UINT32_MAX. Commits it. */
uint32_t exch_lines_put(struct exch_lines *l, uint32_t tile, uint32_t from);
/* End of the phase with message i in slot s: the largest of its horizons. */
uint32_t exch_message_end(const struct exch_msgs *m, uint32_t i, uint32_t s);

/* --- Schedules --- */

struct exch_sched {
    uint32_t *slot; /* [messages] */
    uint32_t *put;  /* [TARGET_N_TILES] slot of the base switch, UINT32_MAX none */
    uint32_t horizon;
    bool relaxed;         /* rows without the neutrals that idle buses make superfluous */
    uint64_t evaluations; /* work added by whoever made it, in endpoints looked at */
};
struct exch_sched *exch_sched_new(struct arena *a, const struct exch_msgs *m, bool relaxed);
/* Serial generation: messages in this order, each in the first slot that admits it. */
void exch_sched_serial(const struct exch_msgs *m, const uint32_t *order, bool relaxed,
                       struct exch_sched *ret);

/* Small rows: what is worth how many slots to the dense greedy. */
struct exch_dense_small {
    float contiguous; /* for a message that continues its receiver's buffer */
    float gapless;    /* to a sender, and to a receiver, for no gap */
    float ahead;      /* if the sender of a continuation will be free just in time, */
    float ahead_gap;  /* less this per slot that it will be early or late; */
    float guard;      /* then the continuation is worth so many times `contiguous` */
    float even;       /* further worth per word that a tile's row is longer than the mean */
};

/* Greedy of dense unicast (exch_dense.c). */
struct exch_dense_options {
    uint32_t look, cap;
    float weight; /* per word left to come at a receiver */
    bool projected;
    float tail_weight; /* further weight of the last `tail` words: a small spread of the ends */
    uint32_t tail;
    float lead; /* slots by which a sender looks earlier per word more than the mean left */
    int32_t keep_before; /* messages of the given schedule sent before this stay; 0 = none */
    bool in_step; /* start rule: the parity of every slot is that of its sender, if lengths are even */
    const struct exch_dense_small *small; /* NULL: only slots count */
};
bool exch_dense_applies(const struct exch_msgs *m);
void exch_sched_dense(const struct exch_msgs *m, const struct exch_dense_options *o, bool relaxed,
                      struct exch_sched *ret);
/* Greedy of multicast over all waiting messages (exch_greedy.c). */
struct exch_greedy_options {
    uint32_t cap;
    float weight, sender_weight, time_weight;
    uint32_t few;        /* candidates whose real slot is looked up, at most 64 */
    float late_weight;   /* per slot behind the estimate */
    bool holes;          /* look for a place from the start instead of behind the endpoints' ends */
    const uint8_t *tier; /* [messages] smaller first, or NULL */
};
void exch_sched_greedy(const struct exch_msgs *m, const struct exch_greedy_options *o, bool relaxed,
                       struct exch_sched *ret);
/* Rounds: messages of one round share no endpoint (exch_round.c). */
void exch_rounds(const struct exch_msgs *m, uint32_t *ret_round);

/* Improves *s (exch_repair.c); budget in placed messages. */
struct exch_repair_options {
    uint64_t budget;
    uint32_t goal;     /* stop when the horizon is this */
    uint32_t patience; /* unsuccessful rounds of 64 moves on the worst component */
    uint32_t seed;
    bool relaxed;
};
bool exch_repair_applies(const struct exch_msgs *m);
void exch_sched_repair(const struct exch_msgs *m, const struct exch_repair_options *o,
                       struct exch_sched *s);
/* Moves messages of a dense unicast schedule, which must be complete with its horizon, so that the
 * longest rows lose words; the horizon does not grow (exch_trim.c). */
struct exch_trim_options {
    uint32_t limit;  /* row words that are few enough; 0 = as few as possible */
    uint64_t budget; /* messages looked at; one moved counts as 40 */
    bool relaxed;
};
/* Returns the words of the longest row. */
uint32_t exch_sched_trim(const struct exch_msgs *m, const struct exch_trim_options *o,
                         struct exch_sched *s);
/* Words of the busiest endpoint for the widths of the messages. */
uint32_t exch_endpoint_bound(const struct exch_msgs *m);
/* Rows of a schedule. NULL with an error if a row exceeds its reservation. */
struct exch_result *exch_result_new(const struct exch_msgs *m, const struct exch_sched *s,
                                    GError **error);

/* Row words of single tiles of a schedule that changes. It starts with the order of the messages in
 * the schedule; after a change the n-th send or receive of a tile in time is set anew (unicast). */
struct exch_row_counter;
struct exch_row_counter *exch_row_counter_new(const struct exch_msgs *m, const struct exch_sched *s);
void exch_row_counter_free(struct exch_row_counter *c);
void exch_row_counter_send(struct exch_row_counter *c, uint32_t tile, uint32_t at, uint32_t i);
void exch_row_counter_receive(struct exch_row_counter *c, uint32_t tile, uint32_t at, uint32_t i);
uint32_t exch_row_count(struct exch_row_counter *c, uint32_t tile);

/* Appends the messages in order by the plain rules of exchange 12.3 (exch_append.c); words of all
 * rows, first word of each tile [TARGET_N_TILES + 1], slots. Returns the horizon. Messages that
 * never fit must not occur. */
uint32_t exch_append_all(const struct exch_msgs *m, GArray *ret_words, uint32_t *ret_first_word,
                         uint32_t *ret_slot);

/* --- Encoder (exch_encode.c): one tile's sends and controls to words --- */

enum exch_control_kind { CTL_MUX, CTL_PAIR, CTL_PTR, CTL_FMT }; /* the csel order of sendpic */
struct exch_control {
    uint32_t label;
    uint32_t value;               /* field value */
    uint32_t transfer, recipient; /* of a PTR, for its site */
    uint8_t kind;
};
struct exch_send {
    uint32_t slot, items;
    uint32_t address; /* byte address of the first item */
    uint32_t transfer;
    uint8_t sctl; /* 0 = a put of OUTGOING_BASE from m15 of 13 slots */
    bool moving;
};
struct exch_row_writer {
    GArray *words;      /* uint32_t, appended */
    GArray *sites;      /* struct exch_site, appended */
    uint32_t row_start; /* index of the row's first word in `words` */
    bool plain;         /* only the conventions of exchange 12.2: fail where they do */
};
/* Both lists ascending. False: alignment failure (the appended words are undefined). */
bool exch_encode_row(struct exch_row_writer *w, const struct exch_send *sends, uint32_t n_sends,
                     const struct exch_control *controls, uint32_t n_controls, uint32_t horizon);

#endif
