/* Control and status registers, weights, CSR side of the supervisor (isa 2.3, 2.4). */
#include "tile/tile_exec.h"

static void csr_fault(struct tile_exec *e, enum tile_fault_number number, uint32_t index) {
    tile_raise(e, number, 0, index);
}

/* --- Lower space, supervisor. --- */

/* Debug registers keep the fields that the sheet names; 0 at reset (ASSUMED). Fields that would arm a
 * break are refused: where exactly it stops a context is not public, and a break that never comes would
 * be a lie. Clearing the exception of a context has nothing to clear while the supervisor runs: the
 * first exception of a tile stops all of it. */
static const struct {
    uint32_t index, mask, arms;
} DEBUG[TILE_N_DEBUG_CSRS] = {
    {ISA_CSR_DBG_CTL, 3, 0},
    {ISA_CSR_DBG_ECSR, 0x2f, 0x20},          /* BOS */
    {ISA_CSR_DBG_ECLR, 0, 0},                /* actions only: reads 0 */
    {ISA_CSR_DBG_IBRK0_CTL, 7, 3},           /* ENS, ENW */
    {ISA_CSR_DBG_IBRK0_PC, 0x7fffc, 0},
    {ISA_CSR_DBG_IBRK0_VERT, 0x7fffc, 0},
    {ISA_CSR_DBG_DBRK0_CTL, 0x3f807f, 0x3f8000}, /* CTXT */
    {ISA_CSR_DBG_DBRK0_BASE, 0x1fffff, 0},
    {ISA_CSR_DBG_DBRK0_SIDA, UINT32_MAX, 0}};

static int32_t debug_find(uint32_t index) {
    for (uint32_t k = 0; k < TILE_N_DEBUG_CSRS; k++)
        if (DEBUG[k].index == index) return (int32_t)k;
    return -1;
}
static uint32_t debug_get(struct tile_exec *e, uint32_t index) {
    const int32_t k = debug_find(index);
    if (k >= 0) return e->t->s.debug[k];
    csr_fault(e, TILE_FAULT_CSR_INVALID, index);
    return 0;
}
static void debug_put(struct tile_exec *e, uint32_t index, uint32_t v) {
    const int32_t k = debug_find(index);
    if (k < 0) csr_fault(e, TILE_FAULT_CSR_INVALID, index);
    else if (v & DEBUG[k].arms) csr_fault(e, TILE_FAULT_NOT_PUBLIC, index);
    else e->t->s.debug[k] = v & DEBUG[k].mask;
}

enum { ADDRESS_MASK = 0x1fffff };
static const uint32_t EXCHANGE_MASK[TILE_N_EXCHANGE_CSRS] = {
    0x7ff, 0x7ff, 0x1ffffc, 3, 0x1ffffc, 0x1fffff, 0x1ffff, 0x1ffffc, 0x1fffff, 0x1f, 0x7ffff, 0x1f};

static bool is_exchange(uint32_t index) {
    return index >= TILE_EXCHANGE_CSR_BASE && index < TILE_EXCHANGE_CSR_BASE + TILE_N_EXCHANGE_CSRS;
}
static bool is_worker_base(uint32_t index) {
    return index >= ISA_CSR_WORKER0_BASE && index <= ISA_CSR_WORKER5_BASE;
}

static uint32_t super_get(struct tile_exec *e, uint32_t index) {
    const struct tile_supervisor *s = &e->t->s;
    if (is_exchange(index)) return s->exchange[index - TILE_EXCHANGE_CSR_BASE];
    if (is_worker_base(index)) return e->t->worker_base[index - ISA_CSR_WORKER0_BASE];
    switch (index) {
    case ISA_CSR_PC: return e->pc;
    case ISA_CSR_DBG_DATA: return s->dbg_data;
    case ISA_CSR_DBG_BRK_ID: return s->dbg_brk_id;
    case ISA_CSR_SSR: return tile_context_status(e->t, 0);
    case ISA_CSR_CR: return 0;
    case ISA_CSR_TILE_ID: return target_ptile((struct ltile){(uint16_t)e->t->n}).n;
    case ISA_CSR_FP_ICTL: return s->fp_ictl;
    case ISA_CSR_FP_INFMT: return s->fp_infmt;
    case ISA_CSR_FP_ISCL: return s->fp_iscl;
    case ISA_CSR_CCCSLOAD: return s->cccsload;
    case ISA_CSR_SCOUNT_L: return (uint32_t)e->cycle;
    case ISA_CSR_SCOUNT_U: return (uint32_t)(e->cycle >> 32);
    case ISA_CSR_CTXT_STS: return tile_ctxt_sts(e->t);
    default: return debug_get(e, index);
    }
}

static bool any_active(const struct tile *t) { return t->n_active != 0; }

static void control_put(struct tile_exec *e, uint32_t v) {
    struct tile *t = e->t;
    if (v & 1) t->s.ssr &= ~1u;
    if (v & 2) t->s.ssr |= 1;
    if ((v & 4) == 0) return;
    if (any_active(t)) tile_raise(e, TILE_FAULT_WEIGHTS_BUSY, 0, 0);
    memset(t->weights, 0, sizeof t->weights);
    t->weights_defined = UINT64_MAX;
    tile_weights_changed(t);
}

static void worker_base_put(struct tile_exec *e, uint32_t n, uint32_t v) {
    if (e->t->w[n].active) tile_raise(e, TILE_FAULT_BASE_BUSY, 0, n);
    e->t->worker_base[n] = v & ADDRESS_MASK;
}

static void fp_ictl_put(struct tile_exec *e, uint32_t v) {
    if ((v >> 16 & 7) > NUM_AWAY) tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, v);
    e->t->s.fp_ictl = v & 0x1f0007;
}

static void super_put(struct tile_exec *e, uint32_t index, uint32_t v) {
    struct tile_supervisor *s = &e->t->s;
    if (is_exchange(index)) {
        const uint32_t k = index - TILE_EXCHANGE_CSR_BASE;
        s->exchange[k] = v & EXCHANGE_MASK[k];
        return;
    }
    if (is_worker_base(index)) {
        worker_base_put(e, index - ISA_CSR_WORKER0_BASE, v);
        return;
    }
    switch (index) {
    case ISA_CSR_DBG_DATA: s->dbg_data = v; break;
    case ISA_CSR_DBG_BRK_ID: s->dbg_brk_id = v & 1; break;
    case ISA_CSR_CR: control_put(e, v); break;
    case ISA_CSR_FP_ICTL: fp_ictl_put(e, v); break;
    case ISA_CSR_FP_INFMT: s->fp_infmt = v & 3; break;
    case ISA_CSR_FP_ISCL: s->fp_iscl = v & 0x3f; break;
    case ISA_CSR_CCCSLOAD: s->cccsload = v & ADDRESS_MASK; break;
    case ISA_CSR_PC:
    case ISA_CSR_SSR:
    case ISA_CSR_TILE_ID:
    case ISA_CSR_SCOUNT_L:
    case ISA_CSR_SCOUNT_U:
    case ISA_CSR_CTXT_STS: csr_fault(e, TILE_FAULT_CSR_READ_ONLY, index); break;
    case 0xff: tile_raise(e, TILE_FAULT_TRAP, 0, 0xff); break; /* strap */
    default: debug_put(e, index, v);
    }
}

/* --- Lower space, worker. --- */

static uint32_t worker_get(struct tile_exec *e, uint32_t index) {
    const struct tile_worker *w = e->w;
    switch (index) {
    case ISA_CSR_PC: return e->pc;
    case ISA_CSR_WSR: return w->wsr;
    case ISA_CSR_VERTEX_BASE: return w->m[13];
    case ISA_CSR_WORKER_BASE: return w->m[12];
    case ISA_CSR_REPEAT_COUNT: return w->repeat_count;
    case ISA_CSR_REPEAT_FIRST: return w->repeat_first;
    case ISA_CSR_REPEAT_END: return w->repeat_end;
    case ISA_CSR_COUNT_L: return (uint32_t)e->cycle;
    case ISA_CSR_COUNT_U: return (uint32_t)(e->cycle >> 32);
    case ISA_CSR_DBG_DATA: return w->dbg_data;
    case ISA_CSR_DBG_BRK_ID: return w->dbg_brk_id;
    default: csr_fault(e, TILE_FAULT_CSR_INVALID, index); return 0;
    }
}

static void worker_put(struct tile_exec *e, uint32_t index, uint32_t v) {
    switch (index) {
    case ISA_CSR_DBG_DATA: e->w->dbg_data = v; break;
    case ISA_CSR_DBG_BRK_ID: e->w->dbg_brk_id = v & 1; break;
    case ISA_CSR_PC:
    case ISA_CSR_WSR:
    case ISA_CSR_VERTEX_BASE:
    case ISA_CSR_WORKER_BASE:
    case ISA_CSR_REPEAT_COUNT:
    case ISA_CSR_REPEAT_FIRST:
    case ISA_CSR_REPEAT_END:
    case ISA_CSR_COUNT_L:
    case ISA_CSR_COUNT_U: csr_fault(e, TILE_FAULT_CSR_READ_ONLY, index); break;
    default: csr_fault(e, TILE_FAULT_CSR_INVALID, index);
    }
}

EXEC(GET) {
    const uint32_t index = (uint32_t)i->imm;
    e->m[i->d] = e->w == NULL ? super_get(e, index) : worker_get(e, index);
}
EXEC(PUT) {
    const uint32_t index = (uint32_t)i->imm, v = e->m[i->s0];
    if (e->w == NULL)
        super_put(e, index, v);
    else
        worker_put(e, index, v);
}

/* --- Upper space. --- */

EXEC(UGET) {
    const struct tile_worker *w = e->w;
    switch (i->imm) {
    case ISA_CSR_FP_STS: e->r[0] = w->fp_sts; break;
    case ISA_CSR_FP_CLR:
    case ISA_CSR_PRNG_SEED: e->r[0] = 0; break;
    case ISA_CSR_FP_CTL: e->r[0] = w->fp_ctl; break;
    case ISA_CSR_PRNG_0_0: e->r[0] = (uint32_t)w->prng[0]; break;
    case ISA_CSR_PRNG_0_1: e->r[0] = (uint32_t)(w->prng[0] >> 32); break;
    case ISA_CSR_PRNG_1_0: e->r[0] = (uint32_t)w->prng[1]; break;
    case ISA_CSR_PRNG_1_1: e->r[0] = (uint32_t)(w->prng[1] >> 32); break;
    case ISA_CSR_TAS:
        if (!w->tas_defined) tile_raise(e, TILE_FAULT_TAS_UNDEFINED, 0, 0);
        e->r[0] = w->tas;
        break;
    case ISA_CSR_FP_NFMT: e->r[0] = w->fp_nfmt; break;
    case ISA_CSR_FP_SCL: e->r[0] = w->fp_scl; break;
    default: csr_fault(e, TILE_FAULT_CSR_INVALID, 0x100 | (uint32_t)i->imm);
    }
}

static void clear_put(struct tile_worker *w, uint32_t v) {
    w->fp_sts &= ~(v & 7);
    if ((v & 8) == 0) return;
    memset(&w->acc, 0, sizeof w->acc);
    w->acc_defined = UINT32_MAX;
    w->acc_raw = false;
}

static void prng_put(struct tile_worker *w, uint32_t half, uint32_t v) {
    const uint32_t shift = 32 * (half & 1);
    w->prng[half / 2] = (w->prng[half / 2] & ~(UINT64_C(0xffffffff) << shift)) | (uint64_t)v << shift;
    w->prng_defined |= (uint8_t)(1 << half);
}

EXEC(UPUT) {
    struct tile_worker *w = e->w;
    const uint32_t v = e->a[i->s0];
    switch (i->imm) {
    case ISA_CSR_FP_STS: csr_fault(e, TILE_FAULT_CSR_READ_ONLY, 0x100); break;
    case ISA_CSR_FP_CLR: clear_put(w, v); break;
    case ISA_CSR_FP_CTL:
        if ((v >> 16 & 7) > NUM_AWAY) tile_raise(e, TILE_FAULT_INSTR_OPERAND, 0, v);
        w->fp_ctl = v & 0x1f0007;
        tile_fast_update(e);
        break;
    case ISA_CSR_PRNG_0_0:
    case ISA_CSR_PRNG_0_1:
    case ISA_CSR_PRNG_1_0:
    case ISA_CSR_PRNG_1_1: prng_put(w, (uint32_t)i->imm - ISA_CSR_PRNG_0_0, v); break;
    case ISA_CSR_PRNG_SEED:
        num_prng_seed(v, w->prng);
        w->prng_defined = 15;
        break;
    case ISA_CSR_TAS:
        w->tas = v;
        w->tas_defined = true;
        break;
    case ISA_CSR_FP_NFMT: w->fp_nfmt = v & 3; break;
    case ISA_CSR_FP_SCL: w->fp_scl = v & 0x3f; break;
    default: csr_fault(e, TILE_FAULT_CSR_INVALID, 0x100 | (uint32_t)i->imm);
    }
}
