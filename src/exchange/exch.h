/* exchange: transfers of one phase in, timed and encoded rows out.
 *
 * In:   a problem: transfers of one phase with every address resolved, in parallel arrays with the
 *       recipients in CSR form. Tiles are logical numbers 0..1471. Addresses are byte addresses,
 *       sizes are 32-bit words. exch_problem_check says whether a problem is well formed and names
 *       transfer, tile and reason when it is not; everything below needs a checked problem.
 * Out:  a result: for every message its first send slot and width, for every tile its row words
 * (they end with `br m10`), the sites of addresses in them, and lower bounds of the horizon.
 *       Transfers become messages one to one, except those split because they can never fit whole
 *       (exchange 12.3), are longer than 4,148 items (only if the problem allows it) or are split
 * to shorten the phase; the words and recipients of a transfer's messages add up to the transfer.
 * Units: slots count cycles from the first cycle after the phase's sync; a label is slot + 1; an
 * item is 4 bytes (ordinary) or 8 (paired). `horizon` is the slot in which the last row returns.
 * Invariants: rows keep every rule of exchange 3.3 to 3.5, 4, 5 and 6.2 (strict). exch_rows_check
 *       decodes the rows again and holds them to it; exch_schedule does not call it (it takes about a
 *       third of the scheduling), the bench and the tests do, and the fabric checks every phase it runs.
 * Ownership: problems and results own one arena each and are freed with their _free.
 * Threads: distinct objects on distinct threads; nothing is shared. Same input, same result;
 * budgets count evaluations. Errors: GError with the diagnostics 550..649 of diag.def. Facts:
 * exchange 1 to 7, 9, 12, 16, 17.
 */
#ifndef IPU_EXCHANGE_EXCH_H
#define IPU_EXCHANGE_EXCH_H

#include "base/base.h"
#include "target/target.h"

/* --- Problems --- */

enum exch_width { EXCH_WIDTH_ANY = 0, EXCH_WIDTH_ORDINARY = 1, EXCH_WIDTH_PAIRED = 2 };

struct exch_problem {
    struct arena *arena;
    char *name; /* for reports; may be NULL */
    uint32_t n_transfers, n_recipients;
    uint16_t *source_tile;       /* [n_transfers] */
    uint32_t *source_address;    /* [n_transfers], of the first iteration */
    uint32_t *words;             /* [n_transfers], at least 1 */
    uint32_t *first_recipient;   /* [n_transfers + 1] */
    uint16_t *recipient_tile;    /* [n_recipients], no tile twice in a transfer */
    uint32_t *recipient_address; /* [n_recipients] */

    /* Optional, NULL when absent. */
    uint8_t *width;         /* [n_transfers] enum exch_width; absent = any */
    int32_t *source_stride; /* [n_transfers] bytes added to the source per iteration; 0 = fixed */
    uint32_t n_iterations;  /* of the repeat around the phase; 0 counts as 1 */
    uint32_t *first_dependency; /* [n_transfers + 1]: a transfer starts when these are complete */
    uint32_t *dependency;       /* transfer numbers; no cycles */

    bool split_long; /* allow more than 4,148 items per transfer by splitting */
    bool unplaced;   /* addresses outside SRAM are allowed (synthetic vectors only) */
    /* Where rows will be stored on every tile; 0,0 = not known. No source or destination may touch
     * its elements, and no row may be longer. */
    uint32_t row_address, row_bytes;
    const uint32_t *tile_row_bytes; /* [TARGET_N_TILES] where they differ, at most row_bytes; the caller's;
                                       files hold row_bytes alone */
};
/* Bytes reserved for rows on a tile; 0 = not known. */
static inline uint32_t exch_problem_row_bytes(const struct exch_problem *p, uint32_t tile) {
    return p->tile_row_bytes != NULL ? p->tile_row_bytes[tile] : p->row_bytes;
}

/* Arrays sized and zeroed; the caller fills them (first_recipient[n] must be n_recipients). */
struct exch_problem *exch_problem_new(uint32_t n_transfers, uint32_t n_recipients);
void exch_problem_free(struct exch_problem *p);
/* Adds the optional arrays, zeroed. */
void exch_problem_add_widths(struct exch_problem *p);
void exch_problem_add_strides(struct exch_problem *p);
void exch_problem_add_dependencies(struct exch_problem *p, uint32_t n_dependencies);
/* Sizes, addresses, alignment, overlapping destinations, duplicate recipients, 4,148 items, cyclic
 * dependencies, self-only messages, elements of the rows. */
bool exch_problem_check(const struct exch_problem *p, GError **error);
/* Finds the orders that the data demand (exchange 6.2-4: a word read after it arrives, or received
 * after it is read, in transfer order) and adds them as dependencies. */
void exch_problem_find_dependencies(struct exch_problem *p);
/* True if transfer x may be sent paired (exchange 9, "pairable"). */
bool exch_pairable(const struct exch_problem *p, uint32_t x);

/* --- Scheduling --- */

enum exch_priority {
    EXCH_PRIORITY_AUTO = 0, /* a portfolio sized by effort */
#define EXCH_PRIORITY(name, text) EXCH_PRIORITY_##name,
#include "exchange/exch_priority.def"
#undef EXCH_PRIORITY
    EXCH_N_PRIORITIES
};
const char *exch_priority_name(enum exch_priority priority);
/* EXCH_N_PRIORITIES when the name is not known. */
enum exch_priority exch_priority_find(const char *name);

enum exch_effort {
    EXCH_EFFORT_QUICK = 0,  /* one good order per width policy and a short repair */
    EXCH_EFFORT_NORMAL = 1, /* small portfolio */
    EXCH_EFFORT_BEST = 2,   /* whole portfolio and repair: for the finalist */
};

struct exch_options {
    enum exch_effort effort;
    enum exch_priority priority; /* other than AUTO: this order alone */
    enum exch_width width;  /* ANY: compare widths; else all ordinary / every pairable paired */
    uint32_t seed;          /* of the randomised parts; any value */
    uint64_t budget;        /* evaluations of repair; 0 = by effort */
    uint32_t max_row_bytes; /* 0 = none: prefer results whose largest row is at most this */
    /* Unverified on hardware: a control at label S is allowed (exchange 3.6), and between messages a
     * multiplexer stays on a bus that carries nothing until the next one (2.7, 3.1: no error). */
    bool relaxed;
};

/* Where a row word holds an address. */
enum exch_site_kind {
    EXCH_SITE_SEND,   /* send and sendpicp word 0: bits 20..3, address in items */
    EXCH_SITE_POINTER /* delaypic, sendpic, sendpicp word 1: bits 17..0, address in words */
};
struct exch_site {
    uint32_t word; /* index into result words */
    uint32_t transfer;
    uint32_t recipient; /* POINTER: index into the problem's recipients; SEND: UINT32_MAX */
    uint32_t address;   /* byte address held: of the transfer plus an offset */
    uint8_t kind, item_bytes;
    bool moving; /* SEND of a moving source, relative to a base register that moves */
};

struct exch_message {
    uint32_t transfer;
    uint32_t first_word, words; /* part of the transfer, in 32-bit words */
    uint32_t slot;              /* of the first item */
    bool paired;
};

/* How OUTGOING_BASE must be set for a tile at the phase's entry. */
enum exch_base {
    EXCH_BASE_ZERO,   /* zero */
    EXCH_BASE_MOVING, /* stride * iteration for the whole row or until its own `put` to zero */
    EXCH_BASE_PATCHED /* zero; sends of moving sources are patched per iteration (sites) */
};

struct exch_bounds {
    uint32_t endpoint;  /* words alone, for the widths of the result */
    uint32_t any_width; /* proven for every admissible schedule, any width: `bound` */
    uint32_t ordinary;  /* the same if everything is ordinary */
    uint16_t tile;      /* the tile that gives any_width */
    const char *reason; /* static text: which bound it is */
};

struct exch_result {
    struct arena *arena;
    uint32_t n_tiles; /* TARGET_N_TILES */
    uint32_t horizon; /* the phase's, max over tiles */
    struct exch_bounds bounds;
    uint32_t n_messages;
    struct exch_message *messages; /* by transfer, then first_word */

    uint8_t *active;        /* [n_tiles] has a row of its own; else the shared `br m10` */
    uint32_t *tile_horizon; /* [n_tiles] */
    uint32_t *first_word;   /* [n_tiles + 1] into words; an inactive tile has none */
    uint32_t *words;
    uint32_t *incoming_base; /* [n_tiles], always 0 here: PTR fields are absolute */
    uint32_t *base_switch;   /* [n_tiles] slot of its `put` to zero, UINT32_MAX none */
    uint8_t *outgoing_base;  /* [n_tiles] enum exch_base */
    int32_t *moving_stride;  /* [n_tiles] bytes per iteration for EXCH_BASE_MOVING */
    uint32_t *first_site;    /* [n_tiles + 1] into sites, ascending by word */
    struct exch_site *sites;

    uint32_t row_bytes_max, row_bytes_tile;
    uint64_t row_bytes_total;
    uint64_t evaluations;
    const char *priority;  /* which order gave it (static text) */
    enum exch_width width; /* ANY: mixed */
    bool relaxed, replayed;
    uint64_t fingerprint; /* of all row words */
};

/* NULL with an error if a row cannot be made (a row longer than its reservation). */
struct exch_result *exch_schedule(const struct exch_problem *p, const struct exch_options *o,
                                  GError **error);
void exch_result_free(struct exch_result *r);
/* The Pareto set of (row_bytes_max, horizon) over the portfolio, ascending bytes; at most max. */
uint32_t exch_pareto(const struct exch_problem *p, const struct exch_options *o, uint32_t max,
                     struct exch_result **ret_results, GError **error);

/* --- Estimates for planning: no schedule, one pass over the transfers --- */

struct exch_estimate {
    uint32_t horizon;       /* expected; the calibrated cost */
    uint32_t bound;         /* as exch_bounds.any_width, cheaper and not larger */
    uint32_t row_bytes_max; /* expected largest row */
    uint64_t row_bytes_total;
};
/* Per tile, each [TARGET_N_TILES], summed over the transfers, paired where pairable. */
struct exch_load {
    uint32_t *send_items, *receive_items, *lane_items; /* lane: borrowed by the pair partner */
    uint32_t *n_sends, *n_receives;
    uint32_t *row_bytes;
};
/* `ret_load` may be NULL; its non-NULL arrays are filled. Addresses may be zero (not placed yet):
 * then pointers count as not contiguous and elements as not shared. */
void exch_estimate(const struct exch_problem *p, const struct exch_load *ret_load,
                   struct exch_estimate *ret);
void exch_bounds(const struct exch_problem *p, struct exch_bounds *ret);

/* --- Recipes: the same phase at other addresses --- */

struct exch_recipe; /* order, slots and widths of a result, with the key of its problem */
struct exch_recipe *exch_recipe_new(const struct exch_problem *p, const struct exch_result *r);
void exch_recipe_free(struct exch_recipe *recipe);
/* Equal for problems that differ only in addresses. */
uint64_t exch_problem_key(const struct exch_problem *p);
/* Replays and revalidates. NULL without an error if the addresses do not admit it (shared elements,
 * other contiguity, alignment): then schedule. */
struct exch_result *exch_replay(const struct exch_problem *p, const struct exch_recipe *recipe);

/* --- Rows: storage, sharing between phases --- */

/* Rows of all phases on all tiles. Rows of a tile that are equal but for addresses (exchange 7.2) are
 * stored once where that saves words. What a phase needs before it can use a shared row:
 *   EXCH_SHARE_EQUAL    nothing: the rows are the same words
 *   EXCH_SHARE_BASES    its base registers: all sends of the phase are apart by one distance from those of
 *                       the stored row, and all pointers by another one (multiples of 8 bytes)
 *   EXCH_SHARE_PATCHES  also patches: words that differ beyond that are written before the phase by every
 *                       phase that uses the row, at most EXCH_TABLE_MAX_PATCHES per phase and
 *                       EXCH_TABLE_TILE_PATCHES per tile; each is counted as EXCH_TABLE_PATCH_WORDS
 * A base that moves within a repeat (EXCH_BASE_MOVING) can't take a distance; rows that a repeat patches
 * (EXCH_BASE_PATCHED) are not shared. Every row starts at an even word of its tile's table, so the table
 * must be 8-byte aligned. Cells are numbered phase * n_tiles + tile. */
enum exch_share { EXCH_SHARE_EQUAL, EXCH_SHARE_BASES, EXCH_SHARE_PATCHES };
enum { EXCH_TABLE_MAX_PATCHES = 24, EXCH_TABLE_TILE_PATCHES = 96, EXCH_TABLE_PATCH_WORDS = 3 };
struct exch_patch {
    uint32_t word;  /* index in the tile's table */
    uint32_t value; /* the whole word */
};
struct exch_table {
    struct arena *arena;
    uint32_t n_tiles, n_phases;
    uint32_t *first_word; /* [n_tiles + 1] */
    uint32_t *words;      /* a shared row holds the addresses of the phase with the smallest ones */
    uint32_t *row;        /* [cells] first word in the tile's table; UINT32_MAX inactive */
    uint32_t *incoming_base, *outgoing_base; /* [cells] bytes; outgoing: 0 if the base moves */
    uint32_t *first_patch; /* [cells + 1] */
    struct exch_patch *patches;
    uint32_t bytes_max, bytes_tile; /* of the longest table; its tile */
    uint32_t patch_bytes_max;       /* of code that patches, on the tile with most */
    uint32_t n_rows, n_shared;      /* rows stored; uses of a row beyond its first */
    uint32_t n_based, n_patched;    /* uses with a base other than 0; with patches */
};
struct exch_table *exch_table_new(const struct exch_result *const *phases, uint32_t n_phases,
                                  enum exch_share share);
void exch_table_free(struct exch_table *t);
/* Words of a phase's row on a tile as the fabric will see them: patches applied, addresses with the bases
 * added, so equal to the phase's own row. For tests and checks; `ret` has room for the row. */
void exch_table_row(const struct exch_table *t, const struct exch_result *r, uint32_t phase,
                    uint32_t tile, uint32_t *ret);

/* Decodes the rows of a result on its own and compares what they do with the problem: every message
 * at its slots, label rules, element windows, guards. */
bool exch_rows_check(const struct exch_problem *p, const struct exch_result *r, GError **error);

/* --- Problem files --- */

struct exch_problem_set {
    uint32_t n_phases;
    struct exch_problem **phases;
    uint32_t *number; /* phase numbers */
};
/* JSON (schema 4 of exchange phases, plain or zstd) or SQLite, told apart by content. */
struct exch_problem_set *exch_file_read(const char *path, GError **error);
/* By the ending of the path: .json, .json.zst, anything else SQLite. */
bool exch_file_write(const char *path, const struct exch_problem_set *set, GError **error);
void exch_problem_set_free(struct exch_problem_set *set);

/* Synthetic problems of exchange 16. NULL with an error for unknown kinds. */
struct exch_problem *exch_generate(const char *kind, uint32_t seed, bool hostile, GError **error);
/* CRC-32 of exchange 16.4. */
uint32_t exch_problem_crc(const struct exch_problem *p);

/* Text diagram of slots for a small phase: one line per active tile and time line. */
char *exch_diagram(const struct exch_problem *p, const struct exch_result *r);

#endif
