/* Workers: launching, one slot after another, repeats, exits (isa 1.1 to 1.5, B.1).
 *
 * A worker is an in-order machine with one slot every six cycles in its fixed lane; slow instructions
 * take more slots and hold it meanwhile (kernels 8.9 items 7, 8). */
#include "tile/tile_fused.h"

void tile_worker_launch(struct tile *t, uint32_t worker, uint32_t pc, uint32_t vertex_base,
                        uint64_t earliest) {
    struct tile_worker *w = &t->w[worker];
    const uint64_t lane = (worker + TARGET_LANE_CYCLES - earliest % TARGET_LANE_CYCLES);
    w->start_cycle = w->next_cycle = earliest + lane % TARGET_LANE_CYCLES;
    t->n_active += !w->active;
    w->active = true;
    w->pc = pc;
    w->m[12] = t->worker_base[worker];
    w->m[13] = vertex_base;
    w->fp_sts = 0;
    w->fp_ctl = t->s.fp_ictl;
    w->fp_nfmt = t->s.fp_infmt;
    w->fp_scl = t->s.fp_iscl;
    t->counters.launches++;
}

static void worker_exit(struct tile_exec *e, bool result) {
    if (!result) e->t->s.ssr &= ~1u; /* isa C.21: the booleans are combined by AND into LC */
    e->w->active = false;
    e->t->n_active--;
    e->w->exit_cycle = e->cycle;
    const uint64_t back = e->cycle + TARGET_EXIT_TO_LANE_CYCLES;
    if (back > e->t->lanes_cycle) e->t->lanes_cycle = back;
}
EXEC(EXITZ) { worker_exit(e, e->m[i->s0] == 0); }
EXEC(EXITNZ) { worker_exit(e, e->m[i->s0] != 0); }
EXEC(EXITNEG) { worker_exit(e, (int32_t)e->m[i->s0] < 0); }
EXEC(EXITPOS) { worker_exit(e, (int32_t)e->m[i->s0] >= 0); }

static void repeat(struct tile_exec *e, uint32_t count, uint32_t bundles) {
    const uint32_t first = e->npc, end = first + 8 * bundles;
    if (first % 8 != 0) tile_raise(e, TILE_FAULT_REPEAT_BODY, first, 0);
    if (end >= TARGET_REGION1_BASE) tile_raise(e, TILE_FAULT_REPEAT_END, end, bundles);
    e->w->repeat_first = first;
    e->w->repeat_end = end;
    e->w->repeat_count = count;
    if (count == 0) e->npc = end;
}
EXEC(RPT_Z) { repeat(e, i->imm2, (uint32_t)i->imm + 1); }
EXEC(RPT_R) { repeat(e, e->m[i->s0] & 0xffff, (uint32_t)i->imm + 1); }

/* The slot at e->pc, or NULL with a fault. */
static inline const struct tile_slot *fetch(struct tile_exec *e, struct tile_cache *cache) {
    const struct tile *t = e->t;
    const uint32_t pc = e->pc, offset = pc - TARGET_SRAM_BASE;
    if (pc % 4 != 0) {
        tile_raise(e, TILE_FAULT_PC_MISALIGNED, 0, 0);
        return NULL;
    }
    if (offset >= TARGET_REGION1_BASE - TARGET_SRAM_BASE) {
        tile_raise(e, TILE_FAULT_PC_RANGE, 0, 0);
        return NULL;
    }
    uint32_t word[2];
    memcpy(word, t->bytes + offset, 8);
    const bool bundle = word[0] >> 31;
    if (bundle && pc % 8 != 0) {
        tile_raise(e, TILE_FAULT_BUNDLE_MISALIGNED, 0, 0);
        return NULL;
    }
    const struct tile_slot *s = tile_cache_slot(cache, pc, word[0], bundle ? word[1] : 0);
    const uint32_t written = (uint32_t)(t->written[offset / 256] >> offset / 4 % 64);
    if (~written & (bundle ? 3u : 1u)) tile_raise(e, TILE_FAULT_FETCH_UNWRITTEN, pc, 0);
    return s;
}

static __attribute__((noinline)) void slot_fault(struct tile_exec *e, const struct tile_slot *s) {
    const struct tile_worker *w = e->w;
    if (s->error != TILE_FAULT_NONE)
        tile_raise(e, (enum tile_fault_number)s->error, 0, 0);
    else if ((s->who & ISA_MODE_W) == 0)
        tile_raise(e, TILE_FAULT_MODE_SUPERVISOR, 0, 0);
    else if (w->repeat_count != 0 && !s->in_repeat &&
             !(s->is_uget && e->t->config->uget_in_repeat))
        tile_raise(e, TILE_FAULT_REPEAT_INSTR, 0, 0);
    else if (s->reads & ~w->defined)
        tile_raise(e, TILE_FAULT_READ_UNDEFINED, 0,
                   (uint32_t)__builtin_ctz(s->reads & ~w->defined));
}

static inline void check_slot(struct tile_exec *e, const struct tile_slot *s) {
    const bool repeat_ok = e->w->repeat_count == 0 || s->in_repeat;
    if (__builtin_expect(!s->worker || !repeat_ok || (s->reads & ~e->w->defined), 0)) slot_fault(e, s);
}

static inline void advance(struct tile_exec *e, const struct tile_slot *s) {
    struct tile_worker *w = e->w;
    const uint32_t slots = s->slots + e->extra;
    w->next_cycle += (uint64_t)TARGET_LANE_CYCLES * slots;
    w->slots += slots;
    e->t->counters.worker_slots += slots;
    uint32_t npc = e->npc;
    if (w->repeat_count != 0 && npc == w->repeat_end && e->pc >= w->repeat_first) {
        w->repeat_count--;
        if (w->repeat_count != 0) npc = w->repeat_first;
    }
    w->pc = npc;
}

static inline void slot_run(struct tile_exec *e, struct tile_cache *cache) {
    struct tile_worker *w = e->w;
    e->pc = w->pc;
    e->cycle = w->next_cycle;
    const struct tile_slot *s = fetch(e, cache);
    if (s != NULL) check_slot(e, s);
    if (e->fault != TILE_FAULT_NONE) return;
    e->npc = e->pc + s->bytes;
    tile_slot_issue(e, s);
    if (e->fault != TILE_FAULT_NONE) return;
    w->defined |= s->writes;
    advance(e, s);
}

/* True when the observer wants to stop before this slot. */
static bool observed(struct tile *t, uint32_t worker) {
    const struct tile_worker *w = &t->w[worker];
    if (t->observer == NULL || t->shown == w->next_cycle + 1) return false;
    t->shown = w->next_cycle + 1;
    if (!t->observer(t->observer_user, t, worker + 1, w->pc, w->next_cycle)) return false;
    t->stop = (struct tile_stop){TILE_STOP_BREAK, w->pc, w->next_cycle, 0, 0};
    return true;
}

/* Fused code that starts here: passes of a repeat, or straight code. */
static bool fused_run(struct tile_exec *e, uint64_t limit) {
    const struct tile_worker *w = e->w;
    if (w->repeat_count == 0) return tile_fused_block(e, limit);
    return w->pc == w->repeat_first && tile_fused_run(e, limit);
}

void tile_worker_run(struct tile *t, uint32_t worker, uint64_t limit) {
    struct tile_worker *w = &t->w[worker];
    struct tile_exec e = {.t = t, .w = w, .m = w->m, .a = w->a, .context = worker + 1};
    struct tile_cache *cache = tile_cache_get();
    tile_fast_update(&e);
    e.timing = t->config->timing_only;
    e.fuse = !t->config->plain && !t->config->interleave && !t->config->races && t->observer == NULL;
    while (w->active && w->next_cycle < limit && e.fault == TILE_FAULT_NONE) {
        if (observed(t, worker)) return;
        if (!(e.fuse && fused_run(&e, limit))) slot_run(&e, cache);
    }
    if (e.fault != TILE_FAULT_NONE) tile_stop_fault(&e);
}
