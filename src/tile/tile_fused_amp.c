/* Loops of the matrix unit: the same bundles over and over (tile_amp_plan.h). What each stream covers
 * over all passes is known before the first one. */
#include "tile/tile_amp_plan.h"
#include "tile/tile_fused.h"

/* A stream in one pass: offsets of its accesses from where the pass starts, and how far it moves.
 */
struct stream {
    int32_t at, total, low, high;
    bool used, loads, stores;
};
/* Two streams accessed in one bundle: parities (1 even, 2 odd) of the atoms between their offsets.
 */
struct meeting {
    uint8_t a, b, parities;
};
enum { MAX_MEETINGS = 24, MAX_MOTIONS = 4 };

/* What follows from the values of the stride registers; a few are kept: workers differ. */
struct motion {
    bool possible;
    uint32_t regular;
    uint32_t stride_value[TILE_AMP_STRIDES];
    struct stream stream[TILE_FUSED_STREAMS];
    struct tile_fused_slot out[TILE_FUSED_MAX];
    uint32_t n_meetings;
    struct meeting meeting[MAX_MEETINGS];
};

struct tile_amp_loop {
    struct tile_amp_plan plan;
    uint8_t f143_base; /* tile_f143.h: of the left operands that came last */
    uint32_t n_motions, next_motion;
    struct motion motion[MAX_MOTIONS];
};

struct tile_amp_loop *tile_amp_loop_make(const struct tile_slot *slots, uint32_t n) {
    struct tile_amp_loop *l = g_new0(struct tile_amp_loop, 1);
    if (tile_amp_plan_make(&l->plan, slots, n)) return l;
    g_free(l);
    return NULL;
}

/* --- Steps and offsets, from the values of the stride registers. --- */

static void access_note(const struct tile_exec *e, struct motion *l, const struct tile_amp_access *p,
                        bool store, struct tile_fused_access *ret) {
    struct stream *s = &l->stream[p->stream];
    if (!s->used || s->at < s->low) s->low = s->at;
    if (!s->used || s->at > s->high) s->high = s->at;
    s->used = true;
    *(store ? &s->stores : &s->loads) = true;
    *ret = (struct tile_fused_access){p->stream, p->pair, tile_amp_step_bytes(&p->step, e->m)};
}

/* False when there are too many meetings for the list. */
static bool meeting_note(struct motion *l, uint8_t a, uint8_t b) {
    const uint8_t parity = (uint8_t)(((l->stream[a].at + l->stream[b].at) & 8) ? 2 : 1);
    for (uint32_t i = 0; i < l->n_meetings; i++) {
        struct meeting *m = &l->meeting[i];
        if (m->a != a || m->b != b) continue;
        m->parities |= parity;
        return true;
    }
    if (l->n_meetings == MAX_MEETINGS) return false;
    l->meeting[l->n_meetings++] = (struct meeting){a, b, parity};
    return true;
}

static bool slot_note(const struct tile_exec *e, struct motion *l, const struct tile_amp_slot *s,
                      struct tile_fused_slot *o) {
    *o = (struct tile_fused_slot){
        .kind = s->kind, .x = s->x, .partial = s->partial, .result = s->result, .phase = s->phase};
    const struct tile_fused_access *used[3];
    uint32_t n = 0;
    if (tile_fused_loads(s->kind))
        access_note(e, l, &s->load[0], false, &o->load[0]), used[n++] = &o->load[0];
    if (tile_fused_loads_two(s->kind))
        access_note(e, l, &s->load[1], false, &o->load[1]), used[n++] = &o->load[1];
    if (tile_fused_stores(s->kind)) access_note(e, l, &s->store, true, &o->store), used[n++] = &o->store;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (!meeting_note(l, used[i]->stream, used[j]->stream)) return false;
    /* Sums of steps stay far from overflow: at most 32 bundles of steps below 2^22. */
    for (uint32_t i = 0; i < n; i++) {
        if (used[i]->step >= 1 << 22 || used[i]->step <= -(1 << 22)) return false;
        l->stream[used[i]->stream].at += used[i]->step;
    }
    return true;
}

/* One slot of a regular loop: like the first in all but phase and result; it steps by single words.
 */
static bool regular_slot(const struct tile_fused_slot *f, const struct tile_fused_slot *s,
                         uint32_t k) {
    const bool two = f->kind == TILE_FUSED_LLS;
    return s->kind == f->kind && s->x == f->x && s->partial == f->partial &&
           s->phase == (f->phase + k) % 4 && s->load[0].stream == f->load[0].stream &&
           s->load[0].pair == f->x && s->load[0].step == 8 && s->store.stream == f->store.stream &&
           s->store.step == 8 && s->store.pair == s->result && s->result != f->x &&
           (!two || (s->load[1].stream == f->load[1].stream && s->load[1].pair == f->partial &&
                     s->load[1].step == 8 && s->result != f->partial));
}

/* Four slots, phases in order: one or two loads, which fetch the next operands, and a store of the
 * result of two slots before. The slot of phase 0, else UINT32_MAX. */
static uint32_t regular_start(const struct tile_fused_slot *o, uint32_t n) {
    const struct tile_fused_slot *f = &o[0];
    const bool two = f->kind == TILE_FUSED_LLS;
    if (n != 4 || (f->kind != TILE_FUSED_LS && !two) || f->x == f->partial ||
        f->x >= TILE_PAIR_ZERO ||
        (two ? f->partial >= TILE_PAIR_ZERO : f->partial != TILE_PAIR_ZERO) ||
        o[0].result != o[2].result || o[1].result != o[3].result || o[0].result == o[1].result)
        return UINT32_MAX;
    for (uint32_t k = 0; k < n; k++)
        if (!regular_slot(f, &o[k], k)) return UINT32_MAX;
    return (4u - f->phase) % 4;
}

/* No slot of a block of rows loads what one before it in the block stores. */
static bool rows_apart(const struct motion *m, const struct tile_range *v) {
    const struct tile_fused_slot *f = &m->out[0];
    const int64_t store = v[f->store.stream].start, block = 32 * TILE_FUSED_ROWS;
    for (uint32_t i = 0; i < (tile_fused_loads_two(f->kind) ? 2 : 1); i++) {
        const int64_t ahead = store - v[f->load[i].stream].start;
        if (ahead > 0 && ahead < block) return false;
    }
    return true;
}

static void motion_make(const struct tile_exec *e, const struct tile_amp_plan *l,
                        struct motion *m) {
    *m = (struct motion){.possible = true};
    for (uint32_t i = 0; i < l->n_strides; i++) m->stride_value[i] = e->m[l->stride[i]];
    for (uint32_t k = 0; m->possible && k < l->n; k++)
        m->possible = slot_note(e, m, &l->slot[k], &m->out[k]);
    m->regular = m->possible ? regular_start(m->out, l->n) : UINT32_MAX;
    for (uint32_t i = 0; i < l->n_streams; i++) m->stream[i].total = m->stream[i].at;
}

static struct motion *motion_find(const struct tile_exec *e, struct tile_amp_loop *l) {
    for (uint32_t i = 0; i < l->n_motions; i++) {
        struct motion *m = &l->motion[i];
        bool same = true;
        for (uint32_t k = 0; k < l->plan.n_strides; k++)
            same = same && m->stride_value[k] == e->m[l->plan.stride[k]];
        if (same) return m;
    }
    struct motion *m = &l->motion[l->next_motion++ % MAX_MOTIONS];
    if (l->n_motions < MAX_MOTIONS) l->n_motions++;
    motion_make(e, &l->plan, m);
    return m;
}

/* --- Ranges. --- */

static void ranges_start(const struct tile_exec *e, const struct tile_amp_plan *l,
                         struct tile_range *v) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct tile_amp_pointer *p = &l->pointer[i];
        if (!p->packed) v[p->stream].start = (int64_t)e->m[p->base] + e->m[p->reg];
        for (uint32_t k = 0; p->packed && k < 3; k++)
            v[p->stream + k].start = tile_packed_get(&e->m[p->reg], k);
    }
}

static void range_set(const struct stream *s, uint64_t passes, struct tile_range *v) {
    const int64_t move = (int64_t)s->total * (int64_t)(passes - 1);
    v->first = v->start + s->low + (move < 0 ? move : 0);
    v->end = v->start + s->high + 8 + (move > 0 ? move : 0);
}

/* No base meets a delta below zero, which would carry out of the address. */
static bool deltas_ok(const struct tile_exec *e, const struct tile_amp_plan *l, const struct motion *m,
                      const struct tile_range *v) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct tile_amp_pointer *p = &l->pointer[i];
        if (!p->packed && m->stream[p->stream].used && v[p->stream].first < (int64_t)e->m[p->base]) return false;
    }
    return true;
}

static bool loop_ok(const struct tile_exec *e, const struct tile_amp_plan *l,
                    const struct motion *m, uint64_t passes, struct tile_range *v,
                    bool *ret_all_written) {
    const struct tile_code_range code = {e->pc, e->pc + 8 * l->n};
    *ret_all_written = true;
    for (uint32_t i = 0; i < l->n_streams; i++) {
        if (!m->stream[i].used) continue;
        const struct stream *s = &m->stream[i];
        range_set(s, passes, &v[i]);
        if (!tile_range_ok(e, code, s->loads, s->stores, &v[i], ret_all_written)) return false;
        if ((l->second >> i & 1) && v[i].first < TARGET_REGION1_BASE) return false;
    }
    for (uint32_t i = 0; i < m->n_meetings; i++) {
        const struct meeting *t = &m->meeting[i];
        const bool steady = (m->stream[t->a].total - m->stream[t->b].total) % 16 == 0;
        if (!tile_ranges_apart(&v[t->a], &v[t->b], t->parities, steady)) return false;
    }
    return deltas_ok(e, l, m, v);
}

/* --- Running. --- */

static void pointers_back(struct tile_exec *e, const struct tile_amp_plan *l,
                          const struct tile_fused_run *r) {
    for (uint32_t i = 0; i < l->n_pointers; i++) {
        const struct tile_amp_pointer *p = &l->pointer[i];
        uint32_t a[3];
        for (uint32_t k = 0; k < (p->packed ? 3 : 1); k++)
            a[k] = (uint32_t)(r->pointer[p->stream + k] - r->memory) + TARGET_SRAM_BASE;
        if (p->packed) tile_packed_set(&e->m[p->reg], a);
        else e->m[p->reg] = a[0] - e->m[p->base];
    }
}

/* Timing only: pointers move and words count as written, data stays where it is. */
static uint64_t pass_over(const struct tile_amp_plan *l, const struct motion *m,
                          struct tile_fused_run *r, uint64_t passes) {
    for (uint64_t p = 0; r->written != NULL && p < passes; p++) {
        uint8_t *at[TILE_FUSED_STREAMS];
        for (uint32_t i = 0; i < l->n_streams; i++)
            at[i] = r->pointer[i] + (int64_t)m->stream[i].total * (int64_t)p;
        for (uint32_t k = 0; k < l->n; k++) {
            const struct tile_fused_slot *s = &m->out[k];
            if (!tile_fused_stores(s->kind)) continue;
            const uint32_t word = (uint32_t)(at[s->store.stream] - r->memory) / 4;
            r->written[word / 64] |= UINT64_C(3) << word % 64;
            at[s->store.stream] += s->store.step;
        }
    }
    for (uint32_t i = 0; i < l->n_streams; i++)
        r->pointer[i] += (int64_t)m->stream[i].total * (int64_t)passes;
    return passes * l->n;
}

/* The pairs of a regular loop. */
static void row_pairs(const struct tile_fused_slot *o, struct tile_fused_run *r) {
    r->row_x = o->x;
    r->row_partial = o->kind == TILE_FUSED_LLS ? o->partial : TILE_PAIR_ZERO;
    r->row_result[o->phase & 1] = o[0].result;
    r->row_result[~o->phase & 1] = o[1].result;
}

uint64_t tile_amp_loop_run(struct tile_exec *e, struct tile_amp_loop *l, uint64_t passes) {
    struct tile_range v[TILE_FUSED_STREAMS];
    bool all_written = false;
    if (!tile_fused_ready(e, l->plan.weights)) return 0;
    struct motion *m = motion_find(e, l);
    if (!m->possible) return 0;
    ranges_start(e, &l->plan, v);
    /* The last passes may read ahead into words that were never written: those are for the plain
     * code. */
    uint32_t cut = 0;
    while (cut < 3 && passes > cut && !loop_ok(e, &l->plan, m, passes - cut, v, &all_written)) cut++;
    if (cut == 3 || passes <= cut) return 0;
    struct tile_fused_run r;
    r.slots = m->out;
    r.n_slots = l->plan.n;
    r.regular = m->regular != UINT32_MAX && rows_apart(m, v) ? m->regular : UINT32_MAX;
    row_pairs(m->out, &r);
    const enum tile_fused_type type = tile_fused_prepare(e, l->plan.f8, &l->f143_base, &r);
    for (uint32_t i = 0; i < l->plan.n_streams; i++)
        r.pointer[i] = r.memory + (v[i].start - TARGET_SRAM_BASE);
    r.written = all_written ? NULL : e->t->written;
    const uint64_t done = e->timing ? pass_over(&l->plan, m, &r, passes - cut)
                                    : e->vec->loop[type](&r, passes - cut);
    memcpy(e->a, r.pairs, 32);
    pointers_back(e, &l->plan, &r);
    return done;
}
