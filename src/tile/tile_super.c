/* The supervisor: when it issues and what its own instructions do (isa 1.1, 1.5, 1.6, 7; the costs
 * are rule set C of kernels 8.8).
 *
 * It issues one instruction a cycle in lanes that no worker owns: a lane is free before the first
 * slot of a launch and from 14 cycles after the exit on. Results are used 7 cycles after their
 * instruction issued, 8 as address of a store. */
#include "tile/tile_exec.h"

static const uint64_t NO_CYCLE = UINT64_MAX;

static bool any_active(const struct tile *t) { return t->n_active != 0; }

/* First cycle of the worker's lane at or after `from` in which the supervisor may issue. */
static uint64_t lane_cycle(const struct tile_worker *w, uint32_t lane, uint64_t from) {
    if (!w->active && w->slots != 0 && w->exit_cycle + TARGET_EXIT_TO_LANE_CYCLES > from)
        from = w->exit_cycle + TARGET_EXIT_TO_LANE_CYCLES;
    const uint64_t wait = (lane + TARGET_LANE_CYCLES - from % TARGET_LANE_CYCLES);
    const uint64_t c = from + wait % TARGET_LANE_CYCLES;
    return w->active && c >= w->start_cycle ? NO_CYCLE : c;
}

static uint64_t free_cycle(const struct tile *t, uint64_t from) {
    uint64_t best = NO_CYCLE;
    for (uint32_t lane = 0; lane < TILE_N_WORKERS; lane++) {
        const uint64_t c = lane_cycle(&t->w[lane], lane, from);
        if (c < best) best = c;
    }
    return best;
}

static void stop_at_fetch(struct tile *t, enum tile_fault_number number) {
    struct tile_exec e = {.t = t, .pc = t->s.pc, .cycle = t->s.ready_cycle, .fault = number};
    tile_stop_fault(&e);
}

/* The branch to 0 ends the program, when the workers have ended before it (runtime 4.10). */
static void end(struct tile *t) {
    const bool active = any_active(t) || t->lanes_cycle >= t->s.ready_cycle + TARGET_EXIT_TO_LANE_CYCLES;
    struct tile_exec e = {.t = t, .pc = t->s.pc, .cycle = t->s.ready_cycle};
    if (active && tile_raise(&e, TILE_FAULT_END_WORKERS, 0, 0)) {
        tile_stop_fault(&e);
        return;
    }
    t->s.state = TILE_SUPERVISOR_DONE;
    t->stop = (struct tile_stop){.reason = TILE_STOP_DONE, .cycle = t->s.ready_cycle};
}

/* Workers have slots before the supervisor's next instruction. */
static bool workers_first(const struct tile *t) {
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++)
        if (t->w[w].active && t->w[w].next_cycle < t->s.ready_cycle) return true;
    return false;
}

static const struct tile_slot *fetch(struct tile *t) {
    const uint32_t pc = t->s.pc, offset = pc - TARGET_SRAM_BASE;
    if (pc % 4 != 0 || offset >= TARGET_REGION1_BASE - TARGET_SRAM_BASE) {
        stop_at_fetch(t, pc % 4 ? TILE_FAULT_PC_MISALIGNED : TILE_FAULT_PC_RANGE);
        return NULL;
    }
    uint32_t word[2];
    memcpy(word, t->bytes + offset, 8);
    return tile_cache_slot(tile_cache_get(), pc, word[0], word[0] >> 31 ? word[1] : 0);
}

uint64_t tile_super_next(struct tile *t, const struct tile_slot **ret_slot) {
    if (t->s.state != TILE_SUPERVISOR_RUNS) return NO_CYCLE;
    if (t->s.pc == 0) {
        if (workers_first(t)) return t->s.ready_cycle;
        end(t);
        return NO_CYCLE;
    }
    const struct tile_slot *slot = fetch(t);
    if (slot == NULL) return NO_CYCLE;
    const uint32_t address = TARGET_SUPER_STORE_ADDRESS_CYCLES - TARGET_SUPER_RESULT_CYCLES;
    uint64_t ready = t->s.ready_cycle;
    for (uint32_t left = slot->reads & 0xffff; left != 0; left &= left - 1) {
        const uint32_t r = (uint32_t)__builtin_ctz(left);
        const uint64_t usable = t->s.reg_ready[r] + (slot->store_regs >> r & 1) * address;
        if (t->s.reg_ready[r] != 0 && usable > ready) ready = usable;
    }
    *ret_slot = slot;
    return any_active(t) || ready < t->lanes_cycle ? free_cycle(t, ready) : ready;
}

static void check_slot(struct tile_exec *e, const struct tile_slot *s) {
    const uint32_t undefined = s->reads & 0xffff & ~e->t->s.defined;
    const uint32_t offset = e->pc - TARGET_SRAM_BASE;
    if ((e->t->written[offset / 256] >> offset / 4 % 64 & 1) == 0)
        tile_raise(e, TILE_FAULT_FETCH_UNWRITTEN, e->pc, 0);
    if (s->words[0] >> 31 && !s->row)
        tile_raise(e, TILE_FAULT_MODE_WORKER, 0, 0);
    else if (s->error != TILE_FAULT_NONE)
        tile_raise(e, (enum tile_fault_number)s->error, 0, 0);
    else if ((s->who & ISA_MODE_S) == 0)
        tile_raise(e, TILE_FAULT_MODE_WORKER, 0, 0);
    else if (undefined)
        tile_raise(e, TILE_FAULT_READ_UNDEFINED, 0, (uint32_t)__builtin_ctz(undefined));
}

/* Cycles until the next instruction may issue. */
static uint32_t cost(const struct tile_exec *e, const struct tile_slot *s) {
    if (e->taken) return TARGET_SUPER_BRANCH_CYCLES;
    return s->super_cost != 0 ? s->super_cost : s->mi.imm2;
}

static void finish(struct tile_exec *e, const struct tile_slot *s) {
    struct tile_supervisor *sv = &e->t->s;
    sv->pc = e->npc;
    sv->ready_cycle = e->cycle + cost(e, s);
    sv->defined |= s->writes & 0xffff;
    sv->instructions++;
    for (uint32_t left = s->writes & 0xffff; left != 0; left &= left - 1)
        sv->reg_ready[__builtin_ctz(left)] = e->cycle + TARGET_SUPER_RESULT_CYCLES;
}

static void stop_at_row(struct tile_exec *e) {
    if (any_active(e->t) && tile_raise(e, TILE_FAULT_SYNC_WORKERS, 0, 0)) {
        tile_stop_fault(e);
        return;
    }
    e->t->s.state = TILE_SUPERVISOR_ROW;
    e->t->stop = (struct tile_stop){TILE_STOP_ROW, e->pc, e->cycle, 0, 0};
}

static bool observed(struct tile *t, uint64_t cycle) {
    if (t->observer == NULL || t->shown == cycle + 1) return false;
    t->shown = cycle + 1;
    if (!t->observer(t->observer_user, t, 0, t->s.pc, cycle)) return false;
    t->stop = (struct tile_stop){TILE_STOP_BREAK, t->s.pc, cycle, 0, 0};
    return true;
}

static void watch(const struct tile *t, uint32_t pc, uint64_t cycle) {
    const struct tile_watch_range *r = &t->watch;
    const uint32_t k = (pc - r->base) / 4;
    if (pc < r->base || k >= r->n_words || (r->bits[k / 64] >> k % 64 & 1) == 0) return;
    const struct tile_watch entry = {pc, cycle};
    g_array_append_val(r->out, entry);
    if (r->seen != NULL) r->seen(r->user, t, pc);
}

void tile_super_step(struct tile *t, const struct tile_slot *slot, uint64_t cycle) {
    static uint32_t no_a[TILE_REGISTERS]; /* its instructions have no $a */
    struct tile_exec e = {.t = t, .m = t->s.m, .a = no_a, .pc = t->s.pc, .cycle = cycle};
    if (observed(t, cycle)) return;
    if (t->watch.bits != NULL) watch(t, e.pc, cycle);
    check_slot(&e, slot);
    if (e.fault == TILE_FAULT_NONE && slot->row && !t->config->standalone) {
        stop_at_row(&e);
        return;
    }
    if (e.fault == TILE_FAULT_NONE) {
        e.npc = e.pc + slot->bytes;
        slot->main(&e, &slot->mi);
    }
    if (e.fault != TILE_FAULT_NONE)
        tile_stop_fault(&e);
    else
        finish(&e, slot);
}

/* Loads of weights are what supervisors execute most: those at the program counter at once. */
static void loads_run(struct tile *t, uint64_t max_cycle) {
    struct tile_supervisor *s = &t->s;
    const bool plain = t->config->plain || t->observer != NULL || t->race != NULL;
    if (plain || t->n_active != 0 || s->ready_cycle < t->lanes_cycle || s->ready_cycle >= max_cycle) return;
    const uint64_t left = max_cycle - s->ready_cycle;
    const uint32_t n = tile_weights_loads(t, s->pc, left < 64 ? (uint32_t)left : 64);
    for (uint32_t k = 0; t->watch.bits != NULL && k < n; k++)
        watch(t, s->pc + 4 * k, s->ready_cycle + k);
    s->pc += 4 * n;
    s->ready_cycle += n;
    s->instructions += n;
}

void tile_super_alone(struct tile *t, uint64_t max_cycle) {
    const struct tile_slot *slot = NULL;
    while (t->n_active == 0 && t->stop.reason == TILE_STOP_NONE && t->s.state == TILE_SUPERVISOR_RUNS) {
        const uint64_t next = tile_super_next(t, &slot);
        if (next >= max_cycle) return; /* UINT64_MAX: its fetch stopped it */
        const bool load = slot->main == tile_op_LD64PUTCS || slot->main == tile_op_LD128PUTCS;
        tile_super_step(t, slot, next);
        if (load && t->stop.reason == TILE_STOP_NONE) loads_run(t, max_cycle);
    }
}

/* --- Launches. --- */

static bool launch_ok(struct tile_exec *e, uint32_t entry, uint32_t base) {
    if (entry % 4 != 0) tile_raise(e, TILE_FAULT_RUN_ENTRY_MISALIGNED, entry, 0);
    if (entry < TARGET_SRAM_BASE || entry >= TARGET_REGION1_BASE)
        tile_raise(e, TILE_FAULT_RUN_ENTRY, entry, 0);
    if (base % 4 != 0) tile_raise(e, TILE_FAULT_RUN_BASE, base, 0);
    return e->fault == TILE_FAULT_NONE;
}

static void launch(struct tile_exec *e, uint32_t worker, uint32_t entry, uint32_t base) {
    if (e->t->race != NULL) tile_race_launch(e->t, worker);
    tile_worker_launch(e->t, worker, entry, base, e->cycle + TARGET_RUN_TO_SLOT_CYCLES);
}

/* The lowest free context (isa C.14); its base is relative (isa 1.5). */
EXEC(RUN) {
    const uint32_t entry = e->m[i->s0];
    const uint32_t base = e->m[i->s1] + (uint32_t)i->imm + TARGET_SRAM_BASE;
    if (!launch_ok(e, entry, base)) return;
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++) {
        if (e->t->w[w].active) continue;
        launch(e, w, entry, base);
        return;
    }
    tile_raise(e, TILE_FAULT_RUN_ACTIVE, 0, 0);
}

EXEC(RUNALL) {
    const uint32_t entry = e->m[i->s0], base = e->m[i->s1];
    if (any_active(e->t)) {
        e->t->s.ssr |= 8; /* RAERR */
        tile_raise(e, TILE_FAULT_RUN_ACTIVE, 0, 0);
    }
    if (!launch_ok(e, entry, base)) return;
    if (e->t->race != NULL) tile_race_sync(e->t);
    for (uint32_t w = 0; w < TILE_N_WORKERS; w++)
        tile_worker_launch(e->t, w, entry, base + w * (uint32_t)i->imm,
                           e->cycle + TARGET_RUN_TO_SLOT_CYCLES);
}

/* --- Barriers. --- */

static bool zone_exists(uint32_t zone) { return zone <= 7 || (zone >= 12 && zone <= 15); }

static void check_zone(struct tile_exec *e, uint32_t zone) {
    if (!zone_exists(zone))
        tile_raise(e, TILE_FAULT_SYNC_ZONE, 0, zone);
    else if (zone == 1 && !e->t->s.sans_pending)
        tile_raise(e, TILE_FAULT_SANS_ACTIVE, 0, zone);
    else if (zone != 2 && any_active(e->t))
        tile_raise(e, TILE_FAULT_SYNC_WORKERS, 0, zone);
    else if (zone != 2 && e->t->config->standalone)
        tile_raise(e, TILE_FAULT_DEADLOCK, 0, zone);
}

EXEC(SYNC) {
    struct tile_supervisor *s = &e->t->s;
    const uint32_t zone = (uint32_t)i->imm;
    check_zone(e, zone);
    if (e->fault != TILE_FAULT_NONE) return;
    if (zone == 2) {
        s->state = TILE_SUPERVISOR_LOCAL;
        return;
    }
    s->state = TILE_SUPERVISOR_SYNC;
    e->t->stop = (struct tile_stop){TILE_STOP_SYNC, e->npc, e->cycle, zone,
                                    zone == 1 ? s->sans : 0};
    if (zone == 1) s->sans_pending = false;
}

EXEC(SANS) {
    if (e->t->s.sans_pending) tile_raise(e, TILE_FAULT_SANS_ACTIVE, 0, 0);
    e->t->s.sans_pending = true;
    e->t->s.sans = (uint32_t)i->imm;
}

EXEC(TRAP) {
    if (e->w != NULL || e->t->config->standalone) {
        tile_raise(e, TILE_FAULT_TRAP, 0, (uint32_t)i->imm);
        return;
    }
    e->npc = e->pc; /* tile_resume_after_trap goes behind it */
    e->t->s.state = TILE_SUPERVISOR_TRAP;
    e->t->stop = (struct tile_stop){TILE_STOP_TRAP, e->pc, e->cycle, (uint32_t)i->imm, 0};
}

/* --- Exchange instructions: only a fabric can execute them; `delay` is also an ordinary wait. --- */

EXEC(DELAY) {
    (void)e;
    (void)i; /* its cost is the operand */
}
static void without_fabric(struct tile_exec *e) { tile_raise(e, TILE_FAULT_ROW_WITHOUT_FABRIC, 0, 0); }
EXEC(DELAYPIC) { (void)i; without_fabric(e); }
EXEC(DELAYXPIC) { (void)i; without_fabric(e); }
EXEC(SEND) { (void)i; without_fabric(e); }
EXEC(SENDOFF) { (void)i; without_fabric(e); }
EXEC(SENDPIC) { (void)i; without_fabric(e); }
EXEC(SENDPICP) { (void)i; without_fabric(e); }
