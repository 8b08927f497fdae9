/* Repeat bodies without fetching, decoding and checking every slot.
 *
 * A body is found by its words in a table of the thread. What plain execution checks on every fetch is
 * checked once before the passes: the words are written, no bundle is illegal in a body, registers that
 * are read are defined. A pass may change its body by a store: the words are compared before every call,
 * and a call ends behind a bundle that touched its own memory element, or whose body lies in two
 * elements and is not what it was. Two executors: any body, bundle by bundle through the same semantic functions; and loops of the
 * matrix unit, whose addresses are checked by interval (tile_fused_amp.c). */
#include "tile/tile_fused.h"

enum { BUCKETS = 1024, RECENT = 512, MAX_BUNDLES = 256 };

struct body {
    struct body *next;
    uint32_t n;
    uint32_t *words;         /* 2n */
    struct tile_slot *slots; /* n */
    bool legal, uget;
    uint32_t reads;          /* registers read before the body writes them */
    uint32_t max_slots;      /* of a pass, slow instructions at their longest */
    struct tile_amp_loop *amp;
};

static struct body **table(void) {
    static _Thread_local struct body **buckets;
    if (buckets == NULL) buckets = g_new0(struct body *, BUCKETS);
    return buckets;
}

static uint32_t hash_words(const uint32_t *w, uint32_t n) {
    uint64_t h = n;
    for (uint32_t i = 0; i < n; i++) h = (h ^ w[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 48) % BUCKETS;
}

enum { LONGEST_EXTRA = 8 }; /* exp_slots is at most that */

static struct body *body_make(const uint32_t *words, uint32_t n) {
    struct body *b = g_new0(struct body, 1);
    struct tile_cache *cache = tile_cache_get();
    b->n = n;
    b->words = g_memdup2(words, 8 * n);
    b->slots = g_new(struct tile_slot, n);
    b->legal = true;
    uint32_t writes = 0;
    for (uint32_t k = 0; k < n; k++) {
        const bool bundle = words[2 * k] >> 31;
        b->slots[k] = *tile_cache_decode(cache, words[2 * k], bundle ? words[2 * k + 1] : 0);
        const struct tile_slot *s = &b->slots[k];
        b->legal = b->legal && bundle && s->error == TILE_FAULT_NONE && (s->who & ISA_MODE_W) &&
                   (s->in_repeat || s->is_uget);
        b->uget = b->uget || s->is_uget;
        b->reads |= s->reads & ~writes;
        writes |= s->writes;
        b->max_slots += s->slots + LONGEST_EXTRA;
    }
    if (b->legal && n <= 64) b->amp = tile_amp_loop_make(b->slots, n);
    return b;
}

static const struct body *body_get(const uint32_t *words, uint32_t n) {
    struct body **bucket = &table()[hash_words(words, 2 * n)];
    for (struct body *b = *bucket; b != NULL; b = b->next)
        if (b->n == n && memcmp(b->words, words, 8 * n) == 0) return b;
    struct body *b = body_make(words, n);
    b->next = *bucket;
    *bucket = b;
    return b;
}

/* The same, by address first. */
static const struct body **recent_table(void) {
    static _Thread_local const struct body **recent;
    if (recent == NULL) recent = g_new0(const struct body *, RECENT);
    return recent;
}
static const struct body *body_find(uint32_t pc, const uint32_t *words, uint32_t n) {
    const struct body **recent = &recent_table()[pc / 8 % RECENT];
    if (*recent != NULL && (*recent)->n == n && memcmp((*recent)->words, words, 8 * n) == 0) return *recent;
    return *recent = body_get(words, n);
}

/* Moves the worker on by so many slots of the body. */
static void account(struct tile_exec *e, uint64_t slots) {
    struct tile_worker *w = e->w;
    w->next_cycle += slots * TARGET_LANE_CYCLES;
    w->slots += slots;
    e->t->counters.worker_slots += slots;
    e->t->counters.fused_slots += slots;
    e->t->counters.loop_slots += slots;
}

/* The body is still that at `code`; NULL: it lies in one element, whose touches are counted. */
static bool body_same(const struct tile_exec *e, const struct body *b, const uint8_t *code, uint64_t conflicts) {
    return e->t->counters.fetch_conflicts == conflicts && (code == NULL || memcmp(b->words, code, 8 * b->n) == 0);
}

/* One pass; false when it ended before its end: at a fault, or behind a bundle that may have changed
 * the next one. */
static bool run_pass(struct tile_exec *e, const struct body *b, const uint8_t *code) {
    struct tile_worker *w = e->w;
    const uint64_t conflicts = e->t->counters.fetch_conflicts;
    uint64_t slots = 0;
    bool whole = true;
    e->pc = w->repeat_first;
    for (uint32_t k = 0; whole && k < b->n; k++, e->pc += 8) {
        tile_slot_issue(e, &b->slots[k]);
        if (__builtin_expect(e->fault != TILE_FAULT_NONE, 0)) {
            e->cycle = w->next_cycle + slots * TARGET_LANE_CYCLES;
            w->pc = e->pc;
            account(e, slots);
            return false;
        }
        slots += b->slots[k].slots + e->extra;
        whole = body_same(e, b, code, conflicts) || k + 1 == b->n;
        w->defined |= b->slots[k].writes;
    }
    account(e, slots);
    w->pc = e->pc;
    return whole;
}

/* Passes through the semantic functions. */
static void run_any(struct tile_exec *e, const struct body *b, uint64_t limit) {
    struct tile_worker *w = e->w;
    const uint64_t longest = (uint64_t)b->max_slots * TARGET_LANE_CYCLES;
    const uint64_t conflicts = e->t->counters.fetch_conflicts;
    const bool apart = target_element(w->repeat_first) == target_element(w->repeat_end - 1);
    const uint8_t *const code = apart ? NULL : e->t->bytes + (w->repeat_first - TARGET_SRAM_BASE);
    while (w->repeat_count != 0 && w->next_cycle + longest <= limit && body_same(e, b, code, conflicts)) {
        if (!run_pass(e, b, code)) return;
        w->repeat_count--;
        w->pc = w->repeat_count != 0 ? w->repeat_first : w->repeat_end;
    }
}

/* Puts the state behind `slots` slots of one cycle each into the worker. */
static void account_amp(struct tile_exec *e, const struct body *b, uint64_t slots) {
    struct tile_worker *w = e->w;
    const uint64_t passes = slots / b->n, left = slots % b->n;
    account(e, slots);
    w->repeat_count -= (uint32_t)passes;
    for (uint32_t k = 0; k < (passes ? b->n : left); k++) w->defined |= b->slots[k].writes;
    w->pc = w->repeat_count == 0 ? w->repeat_end : w->repeat_first + 8 * (uint32_t)left;
}

bool tile_fused_run(struct tile_exec *e, uint64_t limit) {
    struct tile_worker *w = e->w;
    const uint32_t first = w->repeat_first, end = w->repeat_end, n = (end - first) / 8;
    if (first < TARGET_SRAM_BASE || end > TARGET_REGION1_BASE || end <= first || n > MAX_BUNDLES)
        return false;
    const uint32_t *words = (const uint32_t *)(const void *)(e->t->bytes + (first - TARGET_SRAM_BASE));
    const struct body *b = body_find(first, words, n);
    if (!b->legal || (b->uget && !e->t->config->uget_in_repeat) || (b->reads & ~w->defined) ||
        !tile_all_written(e->t, first, 8 * n))
        return false;
    const uint64_t before = w->next_cycle;
    e->pc = first;
    if (b->amp != NULL && e->fast && e->vec != NULL && limit > w->next_cycle) {
        const uint64_t fit = (limit - w->next_cycle) / (TARGET_LANE_CYCLES * n);
        const uint64_t passes = fit < w->repeat_count ? fit : w->repeat_count;
        const uint64_t slots = passes ? tile_amp_loop_run(e, b->amp, passes) : 0;
        if (slots != 0) account_amp(e, b, slots);
        if (slots != 0) return true;
    }
    run_any(e, b, limit);
    return w->next_cycle != before || e->fault != TILE_FAULT_NONE;
}
