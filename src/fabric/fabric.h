/* fabric: what exchange rows do. Executes the encoded rows of one phase on all participating tiles,
 * moves the words and flags every condition of exchange 10.6. Knows rows only as words; shares
 * nothing with the room that composes them.
 *
 * In:   struct fabric_phase: SRAM of all tiles and one struct fabric_tile per tile with a row, in
 *       ascending order of logical tile; every other tile is inactive (answered by its sans).
 * Out:  per tile the slots until `br m10`, the pc of that branch and the registers on exit; for the
 *       phase its horizon, the words moved, the faults in order of (slot, tile, number), and the
 *       list of deliveries, which fabric_expect_check compares with a list of transfers.
 * Units: slots of the tile's own clock, 0 = first cycle after its sync; byte addresses; tiles are
 *       logical numbers, mux values physical ones (as in the registers).
 * Time: an item read in slot t is written in slot z + 7, z its pointer stage; a read in slot t sees
 *       writes of slots <= t. Work grows with words of rows and messages, not with slots.
 * Strict: any fault of class E leaves the data in SRAM unmoved (H5 of a word that this same phase
 *       should have delivered: SRAM is then unspecified). FABRIC_PERMISSIVE moves what can be
 *       moved.
 * Memory: the context owns everything that a result points to, until its next run; arrays are kept
 *       and grow to the largest phase seen. Threads: one context runs one phase at a time and uses
 *       par_for inside; any number of threads gives the same bytes and the same faults.
 * Errors: wrong files by GError; wrong rows are faults; tile numbers out of range or not ascending
 *       are bugs. Facts: exchange 1 to 6, 10, 11, 15, 17.8.
 */
#ifndef IPU_FABRIC_H
#define IPU_FABRIC_H

#include "target/sram.h"
#include "target/target.h"

/* Dense numbers of the rows of fabric_fault.def, for counts. */
enum fabric_fault_index {
#define FABRIC_FAULT(number, id, class, text) FABRIC_##id,
#include "fabric/fabric_fault.def"
#undef FABRIC_FAULT
    FABRIC_N_FAULTS
};

struct fabric_condition {
    uint16_t number;
    char class; /* E, W, S or N as in fabric_fault.def */
    const char *id, *text;
};
extern const struct fabric_condition fabric_conditions[FABRIC_N_FAULTS];

enum { FABRIC_NO_TILE = 0xffff };

struct fabric_fault {
    uint16_t what;    /* enum fabric_fault_index */
    uint16_t tile;
    uint16_t other;   /* the competing or sending tile, or FABRIC_NO_TILE */
    bool error;       /* false: a warning */
    uint32_t slot;
    uint32_t address; /* byte address, 0 when there is none */
};

/* The exchange registers of a tile. incoming_dcount is left as it is. */
struct fabric_csr {
    uint32_t incoming_mux, incoming_muxpair, incoming_delta, incoming_format, incoming_base,
        incoming_dcount, outgoing_base, outgoing_delta;
};
/* As start-up leaves them: muxes neutral, the rest 0, dcount 1. */
struct fabric_csr fabric_csr_initial(void);

struct fabric_tile {
    /* in */
    uint16_t tile;          /* logical */
    bool workers_active;    /* a worker still runs: H4 */
    bool sync_in_row;       /* the row's first word is its `sync 3`; slot 0 is the word behind it */
    uint32_t row_address;   /* bytes, of the row's first word; 0 = not placed (only with words) */
    const uint32_t *words;  /* the row, or NULL: read from SRAM at row_address */
    uint32_t n_words;       /* of `words`; the row must end within them */
    uint32_t code_elements; /* bit e: element e holds code executed during the phase (H2) */
    uint32_t *m;            /* 16 registers for put and setzi, m[15] reads 0; NULL: all 0 */
    struct fabric_csr csr;  /* in: on entry; out: on exit */
    /* out */
    uint32_t slots;         /* slot of `br m10`: the tile's last event cycle */
    uint32_t end_pc;        /* byte address of that branch (offset from row_address when 0) */
};

enum fabric_flags {
    FABRIC_RELAXED = 1,     /* conditions of class S are warnings */
    FABRIC_PERMISSIVE = 2,  /* count faults and move what can be moved */
    FABRIC_ANY_ADDRESS = 4, /* no range and element checks; only without SRAM */
};

struct fabric_phase {
    struct sram *sram;              /* NULL: nothing is moved, deliveries are only recorded */
    struct fabric_tile *tiles;
    uint32_t n_tiles, flags;
    const struct tileset *inactive; /* tiles that run sans and sync 1; NULL: all without a row */
};

/* One contiguous run of words from one message to one receiver. */
struct fabric_delivery {
    uint32_t stage;       /* slot of the receiver in which the first item is at the pointer stage */
    uint32_t send;        /* slot of the sender in which it leaves */
    uint32_t items;       /* of 4 bytes, or 8 when paired */
    uint32_t source, destination; /* byte addresses */
    uint32_t message;     /* a number of its own in the phase */
    uint16_t source_tile;
    bool paired;
};

struct fabric_result {
    bool ok;                 /* no fault of class E */
    uint32_t horizon;        /* largest `slots` */
    uint32_t n_messages, n_deliveries;
    uint64_t words_sent;     /* each message once */
    uint64_t words_moved;    /* each receiver once */
    uint32_t n_errors, n_warnings;
    uint32_t count[FABRIC_N_FAULTS];
    const struct fabric_fault *faults; /* n_errors + n_warnings, by slot, tile, number */
    const struct fabric_fault *first;  /* first error, or NULL */
};

/* Mask of the memory elements that [address, end) touches, clipped to SRAM (code_elements). */
uint32_t fabric_elements(uint64_t address, uint64_t end);

struct fabric;
struct fabric *fabric_new(void);
void fabric_free(struct fabric *f);

void fabric_phase_run(struct fabric *f, const struct fabric_phase *phase,
                      struct fabric_result *ret_result);

/* Deliveries of the last run to a tile, ascending by stage. */
const struct fabric_delivery *fabric_deliveries(const struct fabric *f, uint32_t tile,
                                                uint32_t *ret_n);

/* "fault 207 (S7) tile 3 slot 12 address 0x50000, other tile 4: text"; g_free'd by the caller. */
char *fabric_fault_text(const struct fabric_fault *fault);

/* The last run as a diagram of slots, at most n_columns wide (at least 10); g_free'd by the caller.
 * For phases of a few tiles. */
char *fabric_diagram(const struct fabric *f, uint32_t n_columns);

/* --- What a phase should do. --- */

/* Transfers in parallel arrays; receivers of transfer x are first[x] .. first[x+1]-1. List order is
 * the logical order of reads and writes of the same bytes (H3). */
struct fabric_expect {
    uint32_t n_transfers, n_receivers;
    uint16_t *source;         /* logical tile */
    uint32_t *source_address; /* bytes */
    uint32_t *words;
    uint32_t *first;          /* n_transfers + 1 */
    uint16_t *tile;           /* receivers */
    uint32_t *address;
};
void fabric_expect_clear(struct fabric_expect *e); /* frees the arrays */

/* Compares the last run with the list: every word of every transfer delivered once, from and to the
 * given addresses, nothing else written, dependent bytes in order. Adds C4, H3, H6, M1_MISSING, M2,
 * M3, P5 and S4_EXPECTED to the faults and updates *result of that run. */
void fabric_expect_check(struct fabric *f, const struct fabric_expect *e,
                         struct fabric_result *result);

/* C5: whether writing values[i] over word offsets[i] of `stored` gives exactly `wanted` with only
 * address fields (send, sendpicp, pointer) changed. On a violation *ret_fault names the first
 * offending word by its address. */
struct fabric_patches {
    const uint32_t *stored, *wanted, *offsets, *values;
    uint32_t n_words, n_patches;
    uint32_t tile, row_address; /* for the record */
};
bool fabric_patches_check(const struct fabric_patches *p, struct fabric_fault *ret_fault);

/* --- Files (zstd or plain): rows and problems of exchange phases. --- */

struct fabric_rows {
    uint32_t n_tiles, horizon;   /* as stored */
    uint32_t n_active;           /* an inactive tile may hold a word (its return): it is dropped */
    uint16_t *tile;              /* of the active tiles, ascending */
    uint32_t *base, *slots;      /* INCOMING_BASE (0 = none), last event cycle */
    uint32_t *first;             /* n_active + 1: row i is words[first[i] .. first[i+1]-1] */
    uint32_t *words;
};
bool fabric_rows_read(const char *path, struct fabric_rows *ret_rows, GError **error);
/* Compressed when the path ends in .zst. */
bool fabric_rows_write(const char *path, const struct fabric_rows *rows, GError **error);
void fabric_rows_clear(struct fabric_rows *r);
/* Phase `phase` (its number in the file) of a problem in JSON, schema version 4. */
bool fabric_expect_read(const char *path, uint32_t phase, struct fabric_expect *ret_expect,
                        GError **error);

#endif
