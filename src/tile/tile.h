/* tile: one tile's processors. Supervisor and six workers execute the words in SRAM, with the cycle
 * rules of isa 1.1 and the strictness of isa 6.3; the fabric and the other tiles are the device's.
 *
 * In:   SRAM contents (struct sram), a tile number, an entry address, a start cycle.
 * Out:  changed SRAM, registers, the cycle of every stop; faults as records; counters.
 * Use:  tile_init, tile_reset, tile_start, then tile_run until it returns TILE_STOP_DONE. Between two
 *       calls the device acts on the stop: it releases a barrier (tile_release_sync), runs a phase on
 *       the fabric (tile_resume_after_row), serves a trap (tile_resume_after_trap).
 * Units: cycles are tile cycles, absolute, 64 bits; lane = cycle mod 6 belongs to worker `lane`
 *       (0..5). Contexts: 0 = supervisor, 1..6 = workers 0..5. Addresses are SRAM byte addresses.
 * Order: without `interleave`, a worker runs ahead of the others until it exits or the supervisor can
 *       issue; programs without races cannot tell. With it every slot runs in cycle order.
 * Invariants: the same SRAM, entry and configuration give the same bytes and cycles, in plain and in
 *       fused execution.
 * Memory: struct tile is the caller's (plain state); tile_free gives back what it points to. The
 *       configuration and the SRAM are shared by all tiles and outlive them.
 * Threads: distinct tiles may run on distinct threads.
 * Errors: none are raised; what a simulated program does wrong is a record (struct tile_fault).
 * Facts: isa 1 to 7 and appendix B, kernels 8.8 and 8.9, exchange 2.4 to 2.7.
 */
#ifndef IPU_TILE_TILE_H
#define IPU_TILE_TILE_H

#include "target/sram.h"
#include "target/target.h"

enum { TILE_N_WORKERS = TARGET_N_WORKERS, TILE_N_CONTEXTS = TARGET_N_CONTEXTS };
enum { TILE_N_EXCHANGE_CSRS = 12, TILE_EXCHANGE_CSR_BASE = 0xa0, TILE_N_DEBUG_CSRS = 9 };
/* Register files have room behind the sixteen registers: writes to registers that do not keep them
 * ($m12 to $m15, $a8 to $a15) are sent there when an instruction is decoded. */
enum { TILE_REGISTERS = 20, TILE_SINK = 16 };

enum tile_fault_number {
    TILE_FAULT_NONE = 0,
#define TILE_FAULT(number, name, etype, cause, text) TILE_FAULT_##name = number,
#include "tile/tile_fault.def"
#undef TILE_FAULT
    TILE_FAULT_LIMIT = 80
};

struct tile_fault {
    enum tile_fault_number number;
    uint32_t context;      /* 0 supervisor, 1..6 workers */
    uint32_t pc;           /* of the faulting instruction or bundle */
    uint32_t ea;           /* which of the instruction's addresses: 0, 1, 2 (pace instructions) */
    uint64_t cycle;        /* in which it issued */
    uint32_t address;      /* of the access, 0 where none */
    uint32_t value;        /* register, CSR or zone number, other context of a race, entry... */
    uint32_t words[2];     /* the instruction; words[1] is 0 for a lone one */
};

enum tile_stop_reason {
    TILE_STOP_NONE,
    TILE_STOP_SYNC,  /* waits in `sync zone`, zone != 2 */
    TILE_STOP_ROW,   /* the supervisor is about to execute an exchange instruction */
    TILE_STOP_DONE,  /* the supervisor branched to address 0 (isa 7.3) */
    TILE_STOP_TRAP,  /* the supervisor executed `trap n`; pc is that of the trap */
    TILE_STOP_FAULT, /* the record is in `fault` */
    TILE_STOP_LIMIT, /* max_cycle reached; tile_run may be called again */
    TILE_STOP_BREAK, /* the observer asked to stop; tile_run may be called again */
};

struct tile_stop {
    enum tile_stop_reason reason;
    uint32_t pc;    /* SYNC: of the instruction after it; ROW, TRAP, FAULT: of the instruction */
    uint64_t cycle; /* SYNC, TRAP: in which it issued; ROW: in which it would issue */
    uint32_t zone;  /* SYNC: zone; TRAP: number */
    uint32_t sans;  /* SYNC of zone 1: the immediate of the `sans` before it */
};

enum tile_amp_model { TILE_AMP_EXACT, TILE_AMP_WINDOW }; /* isa 4.7: model A, model B */
enum tile_simd { TILE_SIMD_AUTO, TILE_SIMD_SCALAR, TILE_SIMD_AVX2, TILE_SIMD_AVX512 };

struct tile_config {
    bool permissive;   /* count faults instead of stopping where execution can go on */
    bool races;        /* word-exact race detector; implies interleave */
    bool interleave;   /* all slots in cycle order; implies plain execution */
    bool plain;        /* no fused repeat bodies */
    bool standalone;   /* no device: `delay` waits; other exchange instructions, traps and barriers
                        * with other tiles fault */
    bool timing_only;  /* floating-point data does not matter: arithmetic on it is skipped */
    bool uget_in_repeat; /* allow uget and uput inside repeat bodies (kernels 8.9 item 9) */
    uint8_t exp_slots; /* slots of f16v2exp and f16v2exp2 on non-zero arguments; 0 = 2 (isa 1.9) */
    enum tile_amp_model amp_model;
    enum tile_simd simd;
};

/* Matrix unit state of one worker. AACC[16s + 2m] is even[8s + m], AACC[16s + 2m + 1] is
 * odd[8s + m] (isa 2.2). Float bits are never denormal and NaN only as NUM_F32_NAN, but for raw bits
 * that f16v4istacc moved in: arithmetic takes those flushed. */
struct tile_accumulators {
    float even[16] __attribute__((aligned(64)));
    float odd[16];
};

struct tile_worker {
    uint32_t m[TILE_REGISTERS]; /* m12, m13 hold the read aliases, m15 is 0 */
    uint32_t a[TILE_REGISTERS] __attribute__((aligned(16))); /* a8..a15 are 0 */
    struct tile_accumulators acc;
    uint32_t pc;
    bool active;
    bool tas_defined;
    bool acc_raw;             /* f16v4istacc has moved raw bits in since accumulators were cleared */
    uint8_t prng_defined;     /* bit k: of the four halves of the state */
    uint32_t acc_defined;     /* bit k: acc.even[k]; bit 16 + k: acc.odd[k] */
    uint32_t defined;         /* bit r: m[r]; bit 16 + r: a[r] has been written since reset */
    uint64_t next_cycle;      /* active: of its next slot */
    uint64_t start_cycle;     /* of the first slot of the latest launch */
    uint64_t exit_cycle;      /* inactive: in which its exit issued */
    uint32_t repeat_count, repeat_first, repeat_end; /* count = passes left */
    uint32_t fp_sts, fp_ctl, fp_nfmt, fp_scl, tas;
    uint64_t prng[2];
    uint32_t wsr, dbg_data, dbg_brk_id;
    uint64_t slots;           /* issued since reset, extra slots counted */
};

enum tile_supervisor_state {
    TILE_SUPERVISOR_OFF,   /* never started, or workers alone */
    TILE_SUPERVISOR_RUNS,
    TILE_SUPERVISOR_LOCAL, /* in sync 2 */
    TILE_SUPERVISOR_SYNC,  /* in another sync: tile_release_sync */
    TILE_SUPERVISOR_ROW,   /* before a row: tile_resume_after_row */
    TILE_SUPERVISOR_TRAP,  /* at a trap: tile_resume_after_trap */
    TILE_SUPERVISOR_DONE,
};

struct tile_supervisor {
    uint32_t m[TILE_REGISTERS];
    uint32_t pc;
    enum tile_supervisor_state state;
    uint32_t defined;            /* bit r: m[r] has been written since reset */
    uint64_t ready_cycle;        /* earliest cycle of the next instruction */
    uint64_t reg_ready[TILE_REGISTERS]; /* cycle from which a register may be used */
    uint32_t ssr, fp_ictl, fp_infmt, fp_iscl, cccsload, dbg_data, dbg_brk_id;
    uint32_t exchange[TILE_N_EXCHANGE_CSRS]; /* 0xa0..0xab */
    uint32_t debug[TILE_N_DEBUG_CSRS];       /* $DBG_CTL to $DBG_DBRK0_SIDA (tile_csr.c) */
    bool sans_pending;
    uint32_t sans;
    uint64_t instructions;
};

struct tile_counters {
    uint64_t worker_slots;      /* all slots, extra slots of slow instructions counted */
    uint64_t fused_slots;       /* of these, run without fetching each: loops and straight code */
    uint64_t loop_slots;        /* of these, in repeat bodies and sequences of the matrix unit */
    uint64_t trace_slots;       /* of these, in traces (tile_trace.c) */
    uint64_t fetch_conflicts;   /* data accesses to the element being fetched (kernels 8.9 item 3) */
    uint64_t launches;
    uint64_t faults[TILE_FAULT_LIMIT]; /* by number; permissive mode only */
};

struct tile;
/* Sees every slot before it executes; returning true stops tile_run with TILE_STOP_BREAK before
 * the slot. An observer implies plain, interleaved execution. */
typedef bool tile_observer(void *user, const struct tile *t, uint32_t context, uint32_t pc,
                           uint64_t cycle);

/* Supervisor instructions whose issue is noted without changing anything: bit i of bits stands for
 * the word at base + 4i, i < n_words; out (struct tile_watch) gets an entry per issue, in order;
 * seen (optional) is called before the instruction has any effect and may read the tile. */
struct tile;
struct tile_watch {
    uint32_t pc;
    uint64_t cycle;
};
struct tile_watch_range {
    const uint64_t *bits; /* NULL: none */
    uint32_t base, n_words;
    GArray *out;
    void (*seen)(void *user, const struct tile *t, uint32_t pc);
    void *user;
};

struct tile_races;
struct tile_weights; /* the weights as the matrix unit's loops want them */

struct tile {
    const struct tile_config *config;
    struct sram *sram;
    uint32_t n; /* logical tile number, index into sram; $TILE_ID is its physical number */
    struct tile_supervisor s;
    struct tile_worker w[TILE_N_WORKERS];
    uint32_t worker_base[TILE_N_WORKERS];
    uint64_t weights[64];          /* $CWEI_m_n at 4m + n */
    uint64_t weights_defined;      /* bit 4m + n */
    uint32_t weights_generation;   /* changes with every write */
    struct tile_stop stop;
    struct tile_fault fault;
    struct tile_counters counters;
    tile_observer *observer;
    void *observer_user;
    /* Optional, the caller's: bit per word of SRAM that a program may write (placement). */
    const uint64_t *writable;
    struct tile_watch_range watch; /* optional, the caller's */
    /* Internal. */
    uint8_t *bytes;                /* SRAM of this tile, at TARGET_SRAM_BASE */
    uint64_t *written;
    struct tile_races *race;
    struct tile_weights *unpacked;
    GArray *tails;                 /* declared access tails: uint32_t pairs address, end */
    uint32_t n_active;             /* workers */
    uint64_t lanes_cycle;          /* all lanes are free from here on, when no worker is active */
    uint64_t shown;                /* observer: 1 + cycle of the slot that was shown last */
};

void tile_init(struct tile *t, const struct tile_config *config, struct sram *sram, uint32_t n);
void tile_free(struct tile *t);
/* Power-on state: registers undefined, contexts inactive, counters zero. SRAM is not touched. */
void tile_reset(struct tile *t);
/* Starts the supervisor: its first instruction issues at `cycle`. */
void tile_start(struct tile *t, uint32_t pc, uint64_t cycle);
/* Starts n_workers workers without a supervisor, as `runall` at cycle - 7 would; tile_run then
 * returns TILE_STOP_DONE when all have exited. For kernels alone. */
void tile_start_workers(struct tile *t, uint32_t pc, uint32_t vertex_base, uint32_t n_workers,
                        uint64_t cycle);
/* Runs until a stop; no instruction issues at or after max_cycle. The stop is also in t->stop. */
enum tile_stop_reason tile_run(struct tile *t, uint64_t max_cycle);

/* After TILE_STOP_SYNC: the next supervisor instruction issues at `cycle` (or in the first free
 * lane after it); cycle > stop.cycle. SRAM may have been changed by others meanwhile. */
void tile_release_sync(struct tile *t, uint64_t cycle);
/* After TILE_STOP_ROW: the fabric executed the row up to `pc` (its return instruction); the
 * instruction there issues at `cycle`. `exchange` holds CSRs 0xa0..0xab; registers set inside the
 * row by setzi are written by the caller to t->s.m. */
void tile_resume_after_row(struct tile *t, uint32_t pc, uint64_t cycle,
                           const uint32_t exchange[TILE_N_EXCHANGE_CSRS]);
/* After TILE_STOP_TRAP: goes on behind the trap. */
void tile_resume_after_trap(struct tile *t, uint64_t cycle);
/* Declares [address, address + bytes) an access tail: reads there are exempt from the fault of
 * unwritten words and from race detection (isa 6.3). tile_reset keeps the tails. */
void tile_tail_add(struct tile *t, uint32_t address, uint32_t bytes);
void tile_tail_clear(struct tile *t);

/* True when the word is one of those that stop the supervisor with TILE_STOP_ROW. */
bool tile_word_is_row(uint32_t word);

struct tile_fault_info {
    const char *name, *text;
    uint32_t etype, cause;
};
/* NULL for a number that does not exist. */
const struct tile_fault_info *tile_fault_info(enum tile_fault_number number);
/* The exception type ("CONFLICT") and the cause number of the record as the hardware has them; NULL
 * and 0 where the hardware is silent. */
const char *tile_fault_exception(const struct tile_fault *f, uint32_t *ret_cause);
/* Whether `address` means something. */
bool tile_fault_has_address(const struct tile_fault *f);
/* What isa 1.10 calls a cause; "" for 0. */
const char *tile_cause_text(uint32_t cause);
/* One line: tile, context, pc, cycle, name, text, address or register. */
void tile_fault_print(const struct tile *t, const struct tile_fault *f, GString *out);
/* Status word $SSR or $WSR, and $CTXT_STS, as the debug interface shows them (runtime 4.9). */
uint32_t tile_context_status(const struct tile *t, uint32_t context);
uint32_t tile_ctxt_sts(const struct tile *t);

/* The vector path that TILE_SIMD_AUTO takes on this machine. */
enum tile_simd tile_simd_best(void);

#endif
