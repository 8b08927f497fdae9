/* Straight code: the slots from an address up to the next branch, repeat or exit, which is the last
 * of them, executed without fetching each of them. Runs of the matrix unit inside go to traces, which
 * end the block since they go on through repeats, or to the executor of loops, as one pass.
 *
 * A block is found by its address and first words and compared word by word with memory; what plain
 * execution checks per fetch is checked once. It ends behind a slot that touched its own memory element,
 * whose next word may be another one now; in a block that lies in two elements words are compared before
 * every slot. Per thread, like the table of slots. */
#include "tile/tile_fused.h"

enum {
    BLOCKS = 4096,
    MAX_SLOTS = 64,
    MIN_RUN = 3,
    LONGEST_EXTRA = 8 /* exp_slots is at most that */
};

struct block {
    uint32_t pc, n_bytes, n;
    uint32_t first[2]; /* first words: what the entry was made for, a block or not */
    uint32_t reads;    /* registers read before the block writes them */
    uint32_t max_slots;
    uint8_t *words;              /* n_bytes */
    struct tile_slot *slots;     /* n, 0 when no slot can stand in a block */
    struct tile_amp_loop **runs; /* n: the run of the matrix unit that starts at a slot, or NULL */
    struct tile_trace **traces;  /* n: the same for traces */
};

static struct block *table(void) {
    static _Thread_local struct block *blocks;
    if (blocks == NULL) blocks = g_new0(struct block, BLOCKS);
    return blocks;
}

static void block_clear(struct block *b) {
    for (uint32_t k = 0; k < b->n; k++) {
        g_free(b->runs[k]);
        tile_trace_free(b->traces[k]);
    }
    g_free(b->words);
    g_free(b->slots);
    g_free(b->runs);
    g_free(b->traces);
    *b = (struct block){0};
}

/* Adds the slot at the end of the block; false when it can't stand in one. */
static bool slot_add(struct block *b, const uint8_t *memory, struct tile_slot *ret) {
    uint32_t word[2];
    memcpy(word, memory + b->n_bytes, 8);
    const bool bundle = word[0] >> 31;
    if (bundle && (b->pc + b->n_bytes) % 8 != 0) return false;
    *ret = *tile_cache_decode(tile_cache_get(), word[0], bundle ? word[1] : 0);
    if (ret->error != TILE_FAULT_NONE || !ret->worker) return false;
    b->max_slots += ret->slots + LONGEST_EXTRA;
    b->n_bytes += ret->bytes;
    b->n++;
    return true;
}

/* The longest run from slot k on that the executor takes, and its length. */
static struct tile_amp_loop *run_make(const struct block *b, uint32_t k, uint32_t *ret_n) {
    uint32_t n = 0;
    while (k + n < b->n && b->slots[k + n].amp) n++;
    for (; n >= MIN_RUN; n--) {
        struct tile_amp_loop *l = tile_amp_loop_make(&b->slots[k], n);
        *ret_n = n;
        if (l != NULL) return l;
    }
    return NULL;
}

static void block_make(struct block *b, uint32_t pc, const uint8_t *memory) {
    struct tile_slot slots[MAX_SLOTS];
    block_clear(b);
    b->pc = pc;
    memcpy(b->first, memory, 8);
    bool more = true;
    while (more && b->n < MAX_SLOTS && pc + b->n_bytes + 8 <= TARGET_REGION1_BASE)
        more = slot_add(b, memory, &slots[b->n]) && !slots[b->n - 1].control;
    b->words = g_memdup2(memory, b->n_bytes);
    b->slots = g_memdup2(slots, b->n * sizeof *slots);
    b->runs = g_new0(struct tile_amp_loop *, b->n);
    b->traces = g_new0(struct tile_trace *, b->n);
    uint32_t writes = 0, at = 0;
    for (uint32_t k = 0, next = 0; k < b->n; at += slots[k++].bytes) {
        b->reads |= slots[k].reads & ~writes;
        writes |= slots[k].writes;
        if (k != next) continue;
        uint32_t n = 1;
        b->runs[k] = run_make(b, k, &n);
        if (b->runs[k] != NULL && slots[k].ai.imm == 0) b->traces[k] = tile_trace_make(pc + at, memory + at);
        next = k + (b->runs[k] != NULL ? n : 1);
    }
}

static struct block *block_find(const struct tile_exec *e) {
    const uint32_t pc = e->w->pc;
    const uint8_t *memory = e->t->bytes + (pc - TARGET_SRAM_BASE);
    uint32_t word[2];
    memcpy(word, memory, 8);
    const uint64_t h =
        (word[0] ^ (uint64_t)word[1] << 24 ^ (uint64_t)pc << 40) * UINT64_C(0x9e3779b97f4a7c15);
    struct block *b = &table()[h >> 52];
    if (b->pc != pc || memcmp(b->first, memory, 8) != 0 ||
        (b->n != 0 && memcmp(b->words, memory, b->n_bytes) != 0))
        block_make(b, pc, memory);
    return b->n != 0 ? b : NULL;
}
_Static_assert(BLOCKS == 1 << 12, "the hash takes the top 12 bits");

/* The run of the matrix unit at slot k: slots that it executed. */
static uint32_t run_amp(struct tile_exec *e, const struct block *b, uint32_t k) {
    if (b->runs[k] == NULL || !e->fast || e->vec == NULL) return 0;
    const uint32_t n = (uint32_t)tile_amp_loop_run(e, b->runs[k], 1);
    for (uint32_t i = k; i < k + n; i++) e->w->defined |= b->slots[i].writes;
    return n;
}

/* The trace at slot k: slots that it executed, by `limit`. */
static uint32_t run_trace(struct tile_exec *e, struct block *b, uint32_t k, uint64_t limit) {
    if (b->traces[k] == NULL || !e->fast || e->vec == NULL) return 0;
    const uint8_t *memory = e->t->bytes + (e->pc - TARGET_SRAM_BASE);
    if (!tile_trace_is(b->traces[k], memory)) {
        tile_trace_free(b->traces[k]);
        b->traces[k] = tile_trace_make(e->pc, memory);
        if (b->traces[k] == NULL) return 0;
    }
    return tile_trace_run(e, b->traces[k], limit / TARGET_LANE_CYCLES);
}

/* A launch mostly ends behind its trace: the `exitz` there, when nothing speaks against it; slots. */
static uint32_t run_exit(struct tile_exec *e, uint64_t now, uint64_t limit) {
    uint32_t word;
    memcpy(&word, e->t->bytes + (e->pc - TARGET_SRAM_BASE), 4);
    if (e->w->repeat_count != 0 || word >> 31 || now >= limit || e->pc >= TARGET_REGION1_BASE ||
        !tile_all_written(e->t, e->pc, 4))
        return 0;
    const struct tile_slot *s = tile_cache_slot(tile_cache_get(), e->pc, word, 0);
    if (s->main != tile_op_EXITZ || !s->worker || (s->reads & ~e->w->defined)) return 0;
    e->npc = e->pc + s->bytes;
    e->cycle = now;
    tile_slot_issue(e, s);
    e->pc = e->npc;
    return s->slots;
}

static void run(struct tile_exec *e, struct block *b, uint64_t limit) {
    struct tile_worker *w = e->w;
    const uint64_t conflicts = e->t->counters.fetch_conflicts;
    const bool apart = target_element(b->pc) == target_element(b->pc + b->n_bytes - 1);
    const uint8_t *const code = apart ? NULL : e->t->bytes + (b->pc - TARGET_SRAM_BASE);
    uint64_t slots = 0;
    e->pc = w->pc;
    for (uint32_t k = 0; k < b->n && (code == NULL || memcmp(b->words, code, b->n_bytes) == 0);) {
        const struct tile_slot *s = &b->slots[k];
        const uint64_t now = w->next_cycle + slots * TARGET_LANE_CYCLES;
        const uint32_t traced = run_trace(e, b, k, limit - now);
        slots += traced;
        e->t->counters.loop_slots += traced;
        e->t->counters.trace_slots += traced;
        if (traced != 0) {
            slots += run_exit(e, now + traced * TARGET_LANE_CYCLES, limit);
            break;
        }
        const uint32_t fused = run_amp(e, b, k);
        slots += fused;
        e->t->counters.loop_slots += fused;
        k += fused;
        e->pc += 8 * fused;
        if (fused != 0) continue;
        e->npc = e->pc + s->bytes;
        e->cycle = now;
        tile_slot_issue(e, s);
        if (__builtin_expect(e->fault != TILE_FAULT_NONE, 0)) break;
        w->defined |= s->writes;
        slots += s->slots + e->extra;
        e->pc = e->npc;
        k++;
        if (__builtin_expect(e->t->counters.fetch_conflicts != conflicts, 0)) break;
    }
    w->pc = e->pc;
    w->next_cycle += slots * TARGET_LANE_CYCLES;
    w->slots += slots;
    e->t->counters.worker_slots += slots;
    e->t->counters.fused_slots += slots;
}

bool tile_fused_block(struct tile_exec *e, uint64_t limit) {
    struct tile_worker *w = e->w;
    if (w->pc % 4 != 0 || w->pc < TARGET_SRAM_BASE || w->pc + 8 > TARGET_REGION1_BASE) return false;
    struct block *b = block_find(e);
    if (b == NULL || (b->reads & ~w->defined) ||
        w->next_cycle + (uint64_t)b->max_slots * TARGET_LANE_CYCLES > limit ||
        !tile_all_written(e->t, w->pc, b->n_bytes))
        return false;
    run(e, b, limit);
    return true;
}
