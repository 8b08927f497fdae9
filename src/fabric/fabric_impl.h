/* fabric_impl: the state of one phase, shared by the files of the room. Private.
 *
 * A run goes through these passes, each parallel over tiles, each writing its own tile's slots:
 *   decode   row words -> controls (per kind, ascending by slot), pieces, messages
 *   receive  controls of a tile x pieces of the senders that it selects -> deliveries
 *   memory   element windows, loopback, order of reads and writes; then the words move
 */
#ifndef IPU_FABRIC_IMPL_H
#define IPU_FABRIC_IMPL_H

#include "fabric/fabric.h"
#include "fabric/fabric_row.h"

/* Extra kind of timed change of a tile's incoming side: writes of INCOMING_BASE. */
enum { CONTROL_BASE = N_CONTROLS, N_TIMELINES };

/* A timed change of one register: holds from `slot` on. */
struct control {
    uint32_t slot, value;
};
/* Bit of a pointer's value: an ordinary mux write shares its slot (sendpicp). */
#define CONTROL_MERGED (UINT32_C(1) << 31)

/* A run of items in consecutive slots with one direction and consecutive addresses. */
struct piece {
    uint32_t slot, n;
    uint32_t address; /* effective bytes */
    uint32_t message;
    uint8_t sctl;
    bool bad;         /* address outside SRAM or unaligned: can't be read */
};

struct message {
    uint32_t slot, end;      /* [slot, end) of the sender */
    uint32_t elements;       /* mask of what it reads */
    uint32_t first_piece, n_pieces;
    uint32_t staging;        /* place in the staging buffer in units of 8 bytes, or NO_STAGING */
    uint16_t sender;         /* index of its tile_plan */
    uint8_t item_bytes;      /* 4 or 8 */
    uint8_t by_self, by_other; /* accepted by its own tile (pair), by another; written atomically */
};
#define NO_STAGING UINT32_MAX

struct timeline {
    uint32_t first, n;
};

struct tile_plan {
    uint16_t tile, phys, row;
    bool stopped;              /* its row could not be followed to the end */
    bool has_paired;           /* sends 64-bit items */
    bool hazard;               /* reads and writes the same words in this phase */
    bool conflict;             /* H1 flagged */
    uint32_t row_address, row_end; /* bytes, when placed */
    uint32_t n_words;          /* of the row */
    uint32_t slots;            /* its length in time */
    uint32_t bound_controls, bound_pieces; /* upper bounds from measuring */
    struct timeline line[N_TIMELINES]; /* in fabric.controls */
    uint32_t first_control;
    uint32_t first_piece, n_pieces, first_message, n_messages;
    struct fabric_csr exit;    /* registers on exit */
    uint32_t thread, first_delivery, n_deliveries;
    uint64_t words_sent, words_moved;
};

struct deliveries {
    struct fabric_delivery *v;
    uint32_t n, capacity;
};

/* What arrives at a tile's pointer stage, before the pointer splits it. */
struct arrival {
    uint32_t stage, send, n;
    uint32_t piece;
    uint16_t sender; /* tile_plan index */
    bool paired;
};

/* Scratch of one thread. */
struct worker {
    struct deliveries out;
    struct fabric_fault *faults;
    uint32_t n_faults, capacity_faults, n_errors;
    struct arrival *arrivals;
    uint32_t n_arrivals, capacity_arrivals;
    struct control *lines;   /* of the row being decoded */
    uint32_t capacity_lines;
    struct control *blocked; /* [slot, value): the pair mux replaces the tile's own mux */
    uint32_t n_blocked, capacity_blocked;
    uint64_t *bitmap;        /* SRAM_WRITTEN_WORDS, clear between uses */
    uint32_t *scratch;       /* of the comparison */
    uint32_t capacity_scratch;
};

enum { NO_PLAN = 0xffff };

/* A step of the ordered moves: a message is read, or a delivery is written. */
struct move_event {
    uint32_t slot;
    uint16_t plan;
    bool capture;          /* after the writes of the same slot */
    uint32_t index;        /* message, or delivery of the plan */
    uint32_t first, n;     /* items of it */
};

struct fabric {
    const struct fabric_phase *phase; /* = &own */
    struct fabric_phase own;
    uint32_t n_plans;
    struct tile_plan *plans;       /* one per participating tile */
    uint16_t plan_of[TARGET_N_TILES]; /* by physical tile; NO_PLAN = inactive */
    struct control *controls;
    struct piece *pieces;
    struct message *messages;
    size_t capacity_plans, capacity_controls, capacity_pieces, capacity_messages;
    struct worker *workers;
    uint32_t n_workers;
    struct fabric_fault *faults;   /* of all workers, ordered */
    size_t capacity_faults;
    uint8_t *staging;
    size_t capacity_staging;
    struct move_event *events;     /* of the ordered moves */
    size_t n_events, capacity_events;
};

/* Grows *array to at least `need` elements of `size`; contents beyond the old ones are
 * undefined. */
void fabric_grow(void **array, size_t *capacity, size_t need, size_t size);
/* The same for 32-bit counters, amortised. */
void fabric_grow_u32(void **array, uint32_t *capacity, uint32_t need, size_t size);

/* A fault before it has a thread: what, where, when. */
struct flag {
    enum fabric_fault_index what;
    uint32_t tile, slot, address;
    uint32_t other;
};
void fabric_flag(struct fabric *f, uint32_t thread, const struct flag *flag);

/* Words of a row: 0-based index, up to n. */
struct row_words {
    const uint8_t *at;
    uint32_t n;
};
struct row_words fabric_row_words(const struct fabric *f, const struct fabric_tile *t);

/* Errors found so far. */
uint32_t fabric_errors(const struct fabric *f);

void fabric_decode_measure(struct fabric *f, uint32_t i, uint32_t thread);
void fabric_decode_tile(struct fabric *f, uint32_t i, uint32_t thread);
void fabric_decode_lanes(struct fabric *f, uint32_t i, uint32_t thread); /* S1 */
void fabric_receive_tile(struct fabric *f, uint32_t i, uint32_t thread);
void fabric_memory_check(struct fabric *f, uint32_t i, uint32_t thread);
/* H5 of the messages that read nothing written in this phase. */
void fabric_memory_source(struct fabric *f, uint32_t i, uint32_t thread);
void fabric_memory_move(struct fabric *f);

static inline const struct control *fabric_line(const struct fabric *f, const struct tile_plan *p,
                                                uint32_t kind, uint32_t *ret_n) {
    *ret_n = p->line[kind].n;
    return f->controls + p->line[kind].first;
}
static inline struct fabric_delivery *fabric_plan_deliveries(const struct fabric *f,
                                                             const struct tile_plan *p) {
    return f->workers[p->thread].out.v + p->first_delivery;
}
/* Collects and orders the faults of all workers into *result. */
void fabric_faults_collect(struct fabric *f, struct fabric_result *result);

#endif
