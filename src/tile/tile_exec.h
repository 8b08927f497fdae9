/* tile_exec: what the files of the room share. Not for other rooms.
 *
 * One slot: the auxiliary half runs first and leaves its result in e->r, the main half runs and
 * writes its registers, then e->r is committed. So both read old values (isa 1.2): an auxiliary
 * instruction never reads what a main instruction of its bundle writes, and stores see the old $a.
 */
#ifndef IPU_TILE_EXEC_H
#define IPU_TILE_EXEC_H

#include "isa/isa.h"
#include "numeric/num_format.h"
#include "tile/tile.h"

struct tile_exec {
    struct tile *t;
    struct tile_worker *w; /* NULL: the supervisor */
    uint32_t *m, *a;
    uint32_t r[4] __attribute__((aligned(16))); /* result of the auxiliary half */
    uint32_t context;      /* 0 supervisor, 1..6 */
    uint32_t pc, npc;
    uint64_t cycle;
    uint32_t extra;        /* slots beyond those of the form */
    const struct tile_amp_vec *vec; /* vector code of the matrix unit, or NULL */
    bool taken;            /* a branch was taken */
    bool timing;           /* timing-only mode */
    bool fuse;             /* fused execution is allowed */
    bool fast;             /* F16 results round to nearest even and vector code may be used */
    uint32_t ea;           /* number of the address that the next access goes to */
    enum tile_fault_number fault;
    uint32_t fault_address, fault_value, fault_ea;
};

typedef void tile_fn(struct tile_exec *e, const struct isa_insn *i);
/* The semantics of the form ID of isa.def. */
#define EXEC(id) void tile_op_##id(struct tile_exec *e, const struct isa_insn *i)
#define ISA(id, ...) EXEC(id);
#include "isa/isa.def"
#undef ISA

/* --- Decoded slots (tile_code.c). --- */

struct tile_slot {
    tile_fn *main, *aux;        /* aux NULL: a lone instruction, in `main` of either pipeline */
    struct isa_insn mi, ai;     /* destinations that do not exist are TILE_SINK */
    uint32_t words[2];          /* key: words[1] is 0 for a lone instruction */
    uint32_t reads, writes;     /* bit r: m[r]; bit 16 + r: a[r], general registers only */
    uint8_t bytes;              /* 4 or 8 */
    uint8_t slots;
    uint8_t n_result, result;   /* registers of e->r to commit, first destination */
    bool control;               /* branch, call, repeat, exit, launch */
    bool worker;                /* a worker may execute it: no error, right mode */
    uint8_t error;              /* enum tile_fault_number: can't execute at all */
    uint8_t who;                /* enum isa_mode */
    bool in_repeat;             /* may stand in a repeat body (uget, uput: see config) */
    bool is_uget;
    bool row;                   /* an exchange instruction */
    uint8_t super_cost;         /* cycles to the supervisor's next instruction; 0: a delay */
    bool data;                  /* the auxiliary half only computes data: skipped in timing-only mode */
    bool exp;                   /* its slots depend on data */
    bool amp;                   /* a bundle of the matrix unit, two sets and four engines */
    uint16_t store_regs;        /* $m that are address of a store: supervisor latency */
};

/* The decoded slots of the calling thread; `recent` is by address, the same for all tiles. */
enum { TILE_RECENT = 2048 };
struct tile_pool;
struct tile_cache {
    const struct tile_slot *recent[TILE_RECENT]; /* never NULL */
    struct tile_pool *pool;
};
struct tile_cache *tile_cache_get(void);
/* Any words. The result lives until the pool is full and forgotten: use it before the next call. */
const struct tile_slot *tile_cache_decode(struct tile_cache *c, uint32_t word0, uint32_t word1);
/* The slot at `pc`; word1 is 0 for a lone instruction. */
static inline const struct tile_slot *tile_cache_slot(struct tile_cache *c, uint32_t pc,
                                                      uint32_t word0, uint32_t word1) {
    const struct tile_slot **recent = &c->recent[pc / 4 % TILE_RECENT];
    if ((*recent)->words[0] != word0 || (*recent)->words[1] != word1)
        *recent = tile_cache_decode(c, word0, word1);
    return *recent;
}

/* --- Faults (tile_fault.c). --- */

/* Records the fault; false when execution goes on (permissive mode). */
bool tile_raise(struct tile_exec *e, enum tile_fault_number number, uint32_t address,
                uint32_t value);
/* Floating-point flags of the instruction: sticky, and a fault where enabled. */
void tile_fp_flags(struct tile_exec *e, uint32_t flags);

/* --- Memory (tile_mem.c). --- */

/* A naturally aligned access of 1..16 bytes. The load returns NULL-free memory in every case. */
const uint8_t *tile_load(struct tile_exec *e, uint32_t address, uint32_t bytes);
void tile_store(struct tile_exec *e, uint32_t address, uint32_t bytes, const void *data);
/* Port of an address for the conflict rule: isa 6.1. */
static inline uint32_t tile_port(uint32_t address) {
    if (address < TARGET_REGION1_BASE) return (address - TARGET_SRAM_BASE) / TARGET_ELEMENT_BYTES;
    return 13 + 2 * ((address - TARGET_REGION1_BASE) / TARGET_ELEMENT_PAIR_BYTES) +
           (address >> 3 & 1);
}
/* True when the bits of every word of the range are set; the range lies in SRAM and is not empty. */
static inline bool tile_bits_all(const uint64_t *w, uint32_t address, uint32_t bytes) {
    const uint32_t first = (address - TARGET_SRAM_BASE) / 4;
    const uint32_t last = (address - TARGET_SRAM_BASE + bytes - 1) / 4;
    uint64_t mask = ~UINT64_C(0) << first % 64;
    for (uint32_t k = first / 64; k < last / 64; k++, mask = ~UINT64_C(0))
        if (~w[k] & mask) return false;
    return (~w[last / 64] & mask & ~UINT64_C(0) >> (63 - last % 64)) == 0;
}
static inline bool tile_all_written(const struct tile *t, uint32_t address, uint32_t bytes) {
    return tile_bits_all(t->written, address, bytes);
}
bool tile_in_tail(const struct tile *t, uint32_t address);
/* The first word of the access that was never written and lies in no tail; UINT32_MAX: none. */
uint32_t tile_word_unwritten(const struct tile *t, uint32_t address, uint32_t bytes);

/* --- Races (tile_race.c); called only when config->races. --- */

void tile_race_start(struct tile *t);
void tile_race_access(struct tile_exec *e, uint32_t address, uint32_t bytes, bool store);
void tile_race_sync(struct tile *t); /* all workers have exited: accesses are ordered */
/* A launch: what the supervisor did before it comes before what the worker does. */
void tile_race_launch(struct tile *t, uint32_t worker);

/* --- Floating point (tile_float.c). --- */

static inline struct num_control tile_control(const struct tile_worker *w) {
    return (struct num_control){.round = (enum num_round)(w->fp_ctl >> 16 & 7),
                                .stochastic = w->fp_ctl >> 19 & 1,
                                .nan_on_overflow = w->fp_ctl >> 20 & 1};
}
/* 64 bits of the worker's generator. */
uint64_t tile_random(struct tile_exec *e);
/* The same for one instruction whose F16 or F8 results round stochastically, else 0: 16 bits a lane. */
uint64_t tile_random_bits(struct tile_exec *e);
/* acc + sum(x_i * y_i) of F16 or F32 factors with one rounding of the exact value (isa C.4). */
float tile_mac2(float acc, double p0, double p1);
float tile_mac(float acc, float x, float y);
void tile_fast_update(struct tile_exec *e); /* after FP_CTL changed */
static inline double f16v(uint32_t reg, uint32_t half) {
    return num_f16_to_f32((uint16_t)(reg >> 16 * half));
}
static inline float f32v(uint32_t bits) { return num_f32_flush(num_f32_from_bits(bits)); }

/* --- Weights (tile_weights.c). --- */

void tile_weights_changed(struct tile *t);
void tile_weights_free(struct tile *t);
/* The loads of weights that follow each other at `pc`, all of them or none, if they need no second look and
 * are at most `most`.
 * No worker is active and no races are looked for. Registers and memory change, the program counter and the
 * clock do not. The number of instructions. */
uint32_t tile_weights_loads(struct tile *t, uint32_t pc, uint32_t most);

/* --- Workers (tile_worker.c). --- */

/* Both halves of a slot and the result of the auxiliary one. In timing-only mode data is not computed:
 * registers keep what they hold, and slow exponentials take their longer time. */
static inline void tile_slot_issue(struct tile_exec *e, const struct tile_slot *s) {
    e->extra = 0;
    if (__builtin_expect(e->timing && s->data, 0)) {
        if (s->aux != NULL) s->main(e, &s->mi);
        if (s->exp) e->extra = (e->t->config->exp_slots ? e->t->config->exp_slots : 2u) - 1;
        return;
    }
    if (s->aux != NULL) s->aux(e, &s->ai);
    s->main(e, &s->mi);
    if (s->n_result == 0 || e->fault != TILE_FAULT_NONE) return;
    uint32_t *a = &e->a[s->result];
    a[0] = e->r[0];
    if (s->n_result >= 2) a[1] = e->r[1];
}

/* Runs slots of one worker while it is active and next_cycle < limit. */
void tile_worker_run(struct tile *t, uint32_t worker, uint64_t limit);
void tile_worker_launch(struct tile *t, uint32_t worker, uint32_t pc, uint32_t vertex_base,
                        uint64_t earliest);
/* Fills t->fault and t->stop from e. */
void tile_stop_fault(struct tile_exec *e);

/* --- Supervisor (tile_super.c). --- */

/* Cycle in which its next instruction would issue as far as known; UINT64_MAX: none. */
uint64_t tile_super_next(struct tile *t, const struct tile_slot **ret_slot);
void tile_super_step(struct tile *t, const struct tile_slot *slot, uint64_t cycle);
/* Steps on while no worker is active and nothing stops it. */
void tile_super_alone(struct tile *t, uint64_t max_cycle);

#endif
