/* Straight code: the slots from an address up to the next branch, repeat, exit or run of the matrix
 * unit, executed without fetching each of them.
 *
 * A block is found by its address and compared word by word with memory; what plain execution checks
 * per fetch is checked once. It ends behind a slot that touched the memory element of the code, whose
 * next word may be another one now. Per thread, like the table of slots. */
#include "tile/tile_fused.h"

enum { BLOCKS = 2048, MAX_SLOTS = 64, MIN_SLOTS = 3 };

struct block {
    uint32_t pc, n_bytes, n;
    uint32_t first[2];   /* first words: what the entry was made for, a block or not */
    uint32_t reads;      /* registers read before the block writes them */
    uint32_t max_slots;
    bool possible;
    uint8_t *words;          /* n_bytes */
    struct tile_slot *slots; /* n */
};

static struct block *table(void) {
    static _Thread_local struct block *blocks;
    if (blocks == NULL) blocks = g_new0(struct block, BLOCKS);
    return blocks;
}

static bool ends_block(const struct tile_slot *s) {
    return s->error != TILE_FAULT_NONE || !s->worker || s->control || s->amp;
}

static void block_make(struct block *b, uint32_t pc, const uint8_t *memory) {
    struct tile_slot slots[MAX_SLOTS];
    struct tile_cache *cache = tile_cache_get();
    g_free(b->words);
    g_free(b->slots);
    *b = (struct block){.pc = pc};
    memcpy(b->first, memory, 8);
    uint32_t writes = 0;
    while (b->n < MAX_SLOTS && pc + b->n_bytes + 8 <= TARGET_REGION1_BASE) {
        uint32_t word[2];
        memcpy(word, memory + b->n_bytes, 8);
        const bool bundle = word[0] >> 31;
        if (bundle && (pc + b->n_bytes) % 8 != 0) break;
        const struct tile_slot *s = tile_cache_decode(cache, word[0], bundle ? word[1] : 0);
        if (ends_block(s)) break;
        b->reads |= s->reads & ~writes;
        writes |= s->writes;
        b->max_slots += s->slots + 8u; /* exp_slots is at most 8 */
        b->n_bytes += s->bytes;
        slots[b->n++] = *s;
    }
    b->possible = b->n >= MIN_SLOTS;
    if (!b->possible) return;
    b->words = g_memdup2(memory, b->n_bytes);
    b->slots = g_memdup2(slots, b->n * sizeof *slots);
}

static const struct block *block_find(const struct tile_exec *e) {
    const uint32_t pc = e->w->pc;
    const uint8_t *memory = e->t->bytes + (pc - TARGET_SRAM_BASE);
    struct block *b = &table()[pc / 4 % BLOCKS];
    if (b->pc != pc || memcmp(b->first, memory, 8) != 0 ||
        (b->possible && memcmp(b->words, memory, b->n_bytes) != 0))
        block_make(b, pc, memory);
    return b->possible ? b : NULL;
}

static void run(struct tile_exec *e, const struct block *b) {
    struct tile_worker *w = e->w;
    const uint64_t conflicts = e->t->counters.fetch_conflicts;
    uint64_t slots = 0;
    e->pc = w->pc;
    for (uint32_t k = 0; k < b->n; k++) {
        const struct tile_slot *s = &b->slots[k];
        e->cycle = w->next_cycle + slots * TARGET_LANE_CYCLES;
        tile_slot_issue(e, s);
        if (__builtin_expect(e->fault != TILE_FAULT_NONE, 0)) break;
        w->defined |= s->writes;
        slots += s->slots + e->extra;
        e->pc += s->bytes;
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
    const struct block *b = block_find(e);
    if (b == NULL || (b->reads & ~w->defined) ||
        w->next_cycle + (uint64_t)b->max_slots * TARGET_LANE_CYCLES > limit ||
        sram_first_unwritten(e->t->sram, e->t->n, w->pc, b->n_bytes) != UINT32_MAX)
        return false;
    run(e, b);
    return true;
}
