/* place: SRAM allocation over time for all tiles, through one interface.
 *
 * In:   a place_problem: per tile a list of requests (tensors, parameter sequences, code, rows,
 *       runtime state, host window, profile buffers, ...) with size, access tail, alignment,
 *       lifetime, memory class, flags, aliases and separation pairs; and the memory they share.
 * Out:  a place_result: an address for every request, or per tile a proof that there is none, or
 *       "undecided" with what was tried. Reports, a page, problem files.
 * Shapes: request[first[t] .. first[t+1]-1] are the requests of tile t, in the order in which they
 *       were added; n_tiles + 1 entries in first. Pairs and traffic are sorted by tile as well.
 * Units: byte addresses in the tile's address space, bytes, steps. Lifetimes are inclusive steps of
 *       the structured program; PLACE_STEP_END stands for host output. place_steps_extend gives
 *       the lifetime of a value that is live across a repeat.
 * Invariants: place_problem_check names every contradiction in the requests before solving;
 *       place_map_check is the independent checker: it knows the requests and the addresses, and
 *       shares no code with the solver. place_solve runs it on its own answer (BUG on failure).
 * Meaning of the constraints (facts: compiler 4.2 to 4.5, runtime 3.2, kernels 1.9, exchange 6.2):
 *   extent     [address, address + bytes), or for a sequence of n blocks the n blocks at uniform
 *              stride; it is behind the extent that the access tail lies.
 *   storage    Requests that alias each other form one storage, rooted at a request that is no
 *              alias. A storage is live from the first step to the last of all its members.
 *   overlap    Two storages that are live at a common step share no byte of extent + tail. A tail
 *              marked PLACE_TAIL_SHARED may lie on other live storage (its values do not matter).
 *   blocks     Inside a sequence the tail of block i may always overlap block i + 1; with
 *              PLACE_BLOCK_TAILS the stride leaves room for it.
 *   memory     Extent and tail lie in usable ranges, in the class's part of the memory. Fixed
 *              requests may lie anywhere in SRAM.
 *   code       An executable lies below the interleaved region with fetch_guard_bytes behind it.
 *              Elements that it or its guard touches hold no other storage live at the same time,
 *              except executables and requests marked PLACE_NEAR_CODE.
 *   pairs      The two requests (extent + tail) touch no common effective element, ever.
 * Ownership: a problem and a result own their arrays; _free frees all.
 * Threads: place_solve uses par_for; the same bytes for any number of threads. Budgets are steps.
 * Errors: contradictory or damaged input is a GError (650..699); infeasible is data.
 */
#ifndef IPU_PLACE_H
#define IPU_PLACE_H

#include "target/target.h"

enum {
    PLACE_NO_ADDRESS = UINT32_MAX, /* not placed; also: no request */
};
#define PLACE_STEP_END UINT32_MAX

enum place_class {
    PLACE_ANY,
    PLACE_STANDARD,    /* wholly below the interleaved region */
    PLACE_INTERLEAVED, /* wholly inside it */
};

/* What a request is: for reports and pages only; the solver does not look at it. */
enum place_kind {
    PLACE_TENSOR,
    PLACE_PARAMETER,
    PLACE_CODE,
    PLACE_ROWS,
    PLACE_STATE,
    PLACE_WINDOW,
    PLACE_PROFILE,
    PLACE_DESCRIPTOR,
    PLACE_SCRATCH,
    PLACE_N_KINDS,
};

enum place_flag {
    PLACE_FIXED = 1 << 0, /* .address is given */
    PLACE_ALIAS = 1 << 1, /* .alias and .displacement are given; has no storage itself */
    PLACE_EXECUTABLE = 1 << 2,
    PLACE_NEAR_CODE = 1 << 3,      /* may share an element with executables */
    PLACE_NO_HOST_WINDOW = 1 << 4, /* may not touch the host window */
    PLACE_TAIL_SHARED = 1 << 5,    /* the tail may lie on other live storage */
    PLACE_BLOCK_TAILS = 1 << 6,    /* sequence: the stride includes the tail */
    PLACE_ALL_FLAGS = (1 << 7) - 1,
};

/* Zero means "none" in every field except bytes and the lifetime. */
struct place_request {
    uint32_t bytes;                 /* payload, > 0; of one block if it is a sequence */
    uint32_t tail_bytes;            /* readable bytes behind the (last) payload */
    uint32_t align;                 /* power of two; 0 = 1 */
    uint32_t first_step, last_step; /* inclusive, first <= last */
    uint32_t address;               /* PLACE_FIXED */
    uint32_t alias;                 /* PLACE_ALIAS: request number of the target (same tile) */
    uint32_t displacement;          /* PLACE_ALIAS: bytes from the target's address */
    uint32_t n_blocks;              /* sequence of equal blocks; 0 = 1 */
    uint32_t stride;                /* bytes between blocks; 0 = the smallest aligned one */
    uint32_t name;                  /* number of a name of the problem */
    uint8_t memory_class;           /* enum place_class */
    uint8_t kind;                   /* enum place_kind */
    uint16_t flags;                 /* enum place_flag */
};

/* The memory of every tile. place_memory_c600 gives the machine's; others are for test problems.
 * Effective elements: element_bytes each from base to interleaved_base, then
 * interleaved_element_bytes each; 0 = the whole part is one element. */
enum { PLACE_MAX_RANGES = 8 };
struct place_memory {
    uint32_t base, end;        /* SRAM: fixed requests lie inside */
    uint32_t interleaved_base; /* = end if there is no interleaved part */
    uint32_t element_bytes, interleaved_element_bytes;
    uint32_t window_base, window_bytes; /* host window; 0 bytes = none */
    uint32_t fetch_guard_bytes;
    uint32_t n_ranges; /* usable ranges, ascending, disjoint, not touching */
    uint32_t range_base[PLACE_MAX_RANGES], range_end[PLACE_MAX_RANGES];
};
/* CODE_BASE .. SRAM_LOAD_END without the runtime state (COMPLETION_WORD .. DATA_BASE). The host
 * window is usable (by transients: those that do not live at a step in which the window is
 * requested, and are not marked PLACE_NO_HOST_WINDOW) or wholly reserved. */
struct place_memory place_memory_c600(bool window_usable);

struct place_problem {
    struct place_memory memory;
    uint32_t n_tiles, n_requests, n_names;
    uint32_t *first; /* [n_tiles + 1] */
    struct place_request *request;
    uint32_t n_pairs; /* separation pairs, sorted by (a, b), a < b, request numbers */
    uint32_t *pair_a, *pair_b;
    char **name;
    struct arena *arena; /* owns all arrays */
};

/* --- Building a problem. Requests may be added in any order of tiles. --- */

struct place_builder;
struct place_builder *place_builder_new(uint32_t n_tiles, const struct place_memory *memory);
/* Interned: equal strings give equal numbers. */
uint32_t place_builder_name(struct place_builder *b, const char *name);
/* Returns the handle 0, 1, 2, ...; request->alias is a handle here. */
uint32_t place_builder_add(struct place_builder *b, uint32_t tile,
                           const struct place_request *request);
/* The two requests, given by handle, must touch no common effective element. */
void place_builder_separate(struct place_builder *b, uint32_t handle_a, uint32_t handle_b);
/* Frees the builder. ret_number (may be NULL): [n handles] the request number of each handle;
 * g_free'd by the caller. */
struct place_problem *place_builder_finish(struct place_builder *b, uint32_t **ret_number);
void place_problem_free(struct place_problem *p);

/* Extent of a request in bytes, without tail: (n - 1) x stride + bytes; and its stride. */
uint64_t place_request_extent(const struct place_request *r);
uint32_t place_request_stride(const struct place_request *r);
/* The tile of a request number. */
uint32_t place_request_tile(const struct place_problem *p, uint32_t request);

/* The steps of a structured program: repeats do not nest, ascending, inclusive ranges. A lifetime
 * that reaches into a repeat from outside, or belongs to a value that is carried from one iteration
 * to the next or the same in all of them, covers the whole repeat. */
struct place_steps {
    uint32_t n_repeats;
    const uint32_t *repeat_first, *repeat_last;
};
void place_steps_extend(const struct place_steps *s, bool carried, uint32_t *first_step,
                        uint32_t *last_step);

/* Names the first contradiction: fixed addresses that overlap, alignment that cannot hold, an alias
 * outside its target, separation of a buffer from itself, and every damaged field. */
bool place_problem_check(const struct place_problem *p, GError **error);

/* --- Solving. --- */

enum place_status { PLACE_SOLVED, PLACE_UNDECIDED, PLACE_INFEASIBLE };
enum place_proof_kind {
    PLACE_PROOF_NONE,
    PLACE_PROOF_LIVE_PEAK,  /* live bytes at .step exceed the usable bytes */
    PLACE_PROOF_CLASS_PEAK, /* same, of the requests confined to one part of the memory */
    PLACE_PROOF_CONTIGUITY, /* no span can hold one request, or the large ones exceed the spans */
    PLACE_PROOF_SEPARATION, /* separated or executable requests need more elements than there are */
    PLACE_PROOF_SEARCH,     /* every canonical position was tried */
};

struct place_proof {
    uint8_t kind; /* enum place_proof_kind */
    uint8_t part; /* enum place_part: the part of the memory that is too small */
    uint32_t tile;
    uint32_t step;                  /* where the need arises */
    uint64_t need_bytes, has_bytes; /* need > has, except for PLACE_PROOF_SEARCH */
    uint32_t n_users;               /* requests that make up the need, largest first */
    uint32_t *user;                 /* request numbers */
};
enum place_part {
    PLACE_PART_ALL,
    PLACE_PART_STANDARD,
    PLACE_PART_INTERLEAVED,
    PLACE_PART_NO_WINDOW, /* all without the host window */
};

struct place_options {
    uint64_t max_steps;     /* budget per distinct tile, positions tried; 0 = 200,000 */
    bool constructive_only; /* no exact search: solved, infeasible by bounds, or undecided */
    bool search_only;       /* exact search alone, without orders and bounds (tests of it) */
    /* [n_requests] or NULL: addresses of an earlier map (PLACE_NO_ADDRESS = new request), kept
     * where they still hold; what changed is repaired locally, a tile beyond repair is solved
     * afresh. */
    const uint32_t *previous;
    /* NULL or what the phases move: prefer maps with fewer conflicts (tiles solved afresh). */
    const struct place_traffic *traffic;
};

struct place_result {
    enum place_status status; /* the worst of the tiles */
    uint32_t n_tiles, n_requests;
    uint32_t *address;    /* [n_requests]; PLACE_NO_ADDRESS on tiles that are not solved */
    uint8_t *tile_status; /* [n_tiles] enum place_status */
    uint32_t n_proofs;
    struct place_proof *proof; /* one per infeasible tile, ascending */
    uint32_t n_distinct;       /* tiles really solved; the others had the same requests */
    uint32_t n_constructive;   /* distinct tiles solved by a constructive order */
    uint32_t n_moved;          /* with .previous: requests that could not keep their address */
    uint64_t n_steps;          /* positions tried, all distinct tiles */
    double seconds;
};
/* Checks the problem first. NULL only with an error (contradictory problem). Once a tile is
 * infeasible or cannot be decided, hard tiles that are still open stay PLACE_UNDECIDED: the whole
 * does not fit anyway. */
struct place_result *place_solve(const struct place_problem *p, const struct place_options *options,
                                 GError **error);
void place_result_free(struct place_result *r);

/* The independent checker: true if every constraint holds on every tile that has addresses. The
 * first violation is described in *ret_message (g_free'd by the caller; may be NULL). */
bool place_map_check(const struct place_problem *p, const uint32_t *address, char **ret_message);

/* --- Exchange-aware placement. --- */

/* What a tile sends from or receives into its requests, per exchange phase; sorted by tile:
 * item[first[t] .. first[t+1]-1]. */
struct place_traffic {
    uint32_t n_tiles, n_items;
    const uint32_t *first; /* [n_tiles + 1] */
    const struct place_traffic_item {
        uint32_t phase;
        uint32_t request;       /* request number, on this tile */
        uint32_t offset, bytes; /* part of the request that is read or written */
        uint16_t weight;        /* how often the phase runs, or what a loss costs; 0 = 1 */
        uint8_t receive;        /* 0 sent, 1 received */
        uint8_t reserved;
    } * item;
};
/* Sum over tiles, phases and shared elements of sent bytes x received bytes x weight. */
double place_traffic_score(const struct place_problem *p, const struct place_traffic *traffic,
                           const uint32_t *address);

/* --- Reports, pages, files. --- */

/* Text: status, tightest tiles, largest users at the peak, live bytes over time, free spans, what
 * would have to shrink. `n_tiles` tightest tiles are listed. */
void place_report_print(const struct place_problem *p, const struct place_result *r,
                        uint32_t n_tiles, GString *out);
void place_report_json(const struct place_problem *p, const struct place_result *r,
                       uint32_t n_tiles, GString *out);
/* A self-contained HTML page: addresses over time per tile, the tightest tile first. */
bool place_page_write(const struct place_problem *p, const struct place_result *r, const char *path,
                      GError **error);

/* Problem files: sealed SQLite, optionally with a map and with the traffic (NULL = none). */
bool place_file_write(const char *path, const struct place_problem *p, const uint32_t *address,
                      const struct place_traffic *traffic, GError **error);
/* ret_address (may be NULL): the stored map or NULL, g_free'd. ret_traffic (may be NULL): the stored
 * traffic or NULL, owned by the problem. Problem and traffic are checked. */
struct place_problem *place_file_read(const char *path, uint32_t **ret_address,
                                      struct place_traffic **ret_traffic, GError **error);
/* MiniMalloc CSV (id,lower,upper,size): one tile, memory 0 .. capacity. */
struct place_problem *place_csv_read(const char *path, uint32_t capacity_bytes, GError **error);

/* A problem of the size of a 27-layer encoder (161,375 parameter allocations and three times as
 * many requests on 1,472 tiles), every tile different; made from published figures, not by a
 * compiler. */
struct place_problem *place_example_encoder(uint32_t n_tiles, uint64_t seed);

#endif
