/* The code around one exchange phase on one tile:
 *
 *   taking part:  [base registers]  [patches of a shared row]  [patches of moving sends]
 *                 call m7, runtime_barrier; setzi m8, 1; put INCOMING_DCOUNT, m8; sync 3; call m10, row
 *   otherwise:    sans 0; sync 1
 *
 * Base registers are written where their value changes; what it is when a repeat's body begins again is
 * taken from the body's last phase. A patch is a constant (setzi, or) and a store; several in a row use
 * different registers, so that none waits for its result. A moving send of a row whose base register
 * can't move holds iteration x stride in its word: the first iteration's word plus the frame's offset. */
#include "emit/emit_tile.h"

#include "isa/isa_exch.h"

enum { ZONE_ANS = 1, ZONE_INTERNAL = 3, N_PATCH_REGISTERS = 5, STORE_REACH_WORDS = 1 << 12 };

/* --- Base registers --- */

static size_t cell_of(const struct emit_tile *w, uint32_t exchange) {
    return (size_t)exchange * w->r->table->n_tiles + w->tile;
}

static struct emit_bases bases_on_entry(const struct emit_tile *w, uint32_t exchange) {
    const size_t cell = cell_of(w, exchange);
    const bool moves = w->r->rows[exchange]->outgoing_base[w->tile] == EXCH_BASE_MOVING;
    return (struct emit_bases){.incoming = w->r->table->incoming_base[cell],
                               .outgoing = moves ? EMIT_BASE_MOVED : w->r->table->outgoing_base[cell]};
}

/* A row that moves its base may switch it to zero behind its moving sends. */
static struct emit_bases bases_on_exit(const struct emit_tile *w, uint32_t exchange) {
    struct emit_bases b = bases_on_entry(w, exchange);
    if (b.outgoing == EMIT_BASE_MOVED && w->r->rows[exchange]->base_switch[w->tile] != UINT32_MAX)
        b.outgoing = 0;
    return b;
}

static void write_constant(struct emit_tile *w, uint32_t csr, uint32_t value) {
    struct emit_code *c = &w->code;
    if (value == 0 && !w->r->options.base_writes) {
        emit_put(c, csr, M_ZERO);
        return;
    }
    emit_setzi(c, M_SCRATCH, value);
    emit_put(c, csr, M_SCRATCH);
}

static void write_bases(struct emit_tile *w, uint32_t exchange) {
    struct emit_code *c = &w->code;
    const struct exch_result *x = w->r->rows[exchange];
    const struct emit_bases b = bases_on_entry(w, exchange);
    const bool always = w->r->options.base_writes;
    if (always || w->bases.incoming != b.incoming) write_constant(w, ISA_CSR_INCOMING_BASE, b.incoming);
    if (b.outgoing == EMIT_BASE_MOVED) {
        emit_ld32(c, M_SCRATCH, M_STACK, emit_frame_word(w, x->moving_stride[w->tile]));
        emit_put(c, ISA_CSR_OUTGOING_BASE, M_SCRATCH);
    } else if (always && b.outgoing == 0) {
        emit_put(c, ISA_CSR_OUTGOING_BASE, M_ZERO);
    } else if (w->bases.outgoing != b.outgoing) {
        write_constant(w, ISA_CSR_OUTGOING_BASE, b.outgoing);
    }
    w->bases = bases_on_exit(w, exchange);
}

/* As many words as write_bases can write, before rows are known. */
static void write_bases_bound(struct emit_tile *w) {
    emit_setzi(&w->code, M_SCRATCH, 0);
    emit_put(&w->code, ISA_CSR_INCOMING_BASE, M_SCRATCH);
    emit_ld32(&w->code, M_SCRATCH, M_STACK, 0);
    emit_put(&w->code, ISA_CSR_OUTGOING_BASE, M_SCRATCH);
}

void emit_phase_repeat(struct emit_tile *w, uint32_t step, uint32_t exchange) {
    const struct tile_graph *g = w->r->graph;
    struct emit_bases end = w->bases;
    if (w->r->rows == NULL) return;
    for (uint32_t s = step + 1; g->steps[s].kind != TG_REPEAT_END; s++) {
        if (g->steps[s].kind != TG_EXCHANGE) continue;
        if (w->r->rows[exchange]->active[w->tile]) end = bases_on_exit(w, exchange);
        exchange++;
    }
    if (end.incoming != w->bases.incoming) w->bases.incoming = EMIT_BASE_UNKNOWN;
    if (end.outgoing != w->bases.outgoing) w->bases.outgoing = EMIT_BASE_UNKNOWN;
}

/* --- Patches --- */

/* Words to be written into the row table, put together a few at a time. */
struct patching {
    struct emit_tile *w;
    uint32_t base;                      /* word of the table that M_SCRATCH points to; UINT32_MAX none */
    uint32_t n, word[N_PATCH_REGISTERS]; /* index in the table, held in register M_ARGUMENT + i */
};

static void flush_patches(struct patching *p) {
    struct emit_code *c = &p->w->code;
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->base == UINT32_MAX || p->word[i] < p->base || p->word[i] - p->base >= STORE_REACH_WORDS) {
            p->base = p->word[i];
            emit_setzi(c, M_SCRATCH, p->w->r->support.rows_address + 4 * p->base);
        }
        emit_st32(c, M_ARGUMENT + i, M_SCRATCH, p->word[i] - p->base);
    }
    p->n = 0;
}

/* The register that will hold the word's value. */
static uint32_t add_patch(struct patching *p, uint32_t word, uint32_t value) {
    if (p->n == N_PATCH_REGISTERS) flush_patches(p);
    const uint32_t m = M_ARGUMENT + p->n;
    p->word[p->n++] = word;
    emit_setzi(&p->w->code, m, value & 0xfffff);
    emit_or_top(&p->w->code, m, m, value >> 20);
    return m;
}

static void write_patches(struct emit_tile *w, uint32_t exchange) {
    const struct exch_table *t = w->r->table;
    const size_t cell = cell_of(w, exchange);
    struct patching p = {.w = w, .base = UINT32_MAX};
    for (uint32_t k = t->first_patch[cell]; k < t->first_patch[cell + 1]; k++)
        add_patch(&p, t->patches[k].word, t->patches[k].value);
    flush_patches(&p);
}

/* Bytes per iteration of a transfer's source, by its number within the step. */
static int32_t transfer_stride(const struct emit_tile *w, uint32_t step, uint32_t transfer) {
    const struct tile_graph *g = w->r->graph;
    return emit_ref_stride(w, g->transfers.source[g->steps[step].first + transfer]);
}

static void write_moving(struct emit_tile *w, uint32_t step, uint32_t exchange) {
    const struct exch_result *x = w->r->rows[exchange];
    if (!w->inside || x->outgoing_base[w->tile] != EXCH_BASE_PATCHED) return;
    struct emit_code *c = &w->code;
    const uint32_t row = w->r->table->row[cell_of(w, exchange)];
    struct patching p = {.w = w, .base = UINT32_MAX};
    for (uint32_t k = x->first_site[w->tile]; k < x->first_site[w->tile + 1]; k++) {
        const struct exch_site *s = &x->sites[k];
        const int32_t stride = s->kind == EXCH_SITE_SEND ? transfer_stride(w, step, s->transfer) : 0;
        if (stride == 0) continue;
        const uint32_t m = add_patch(&p, row + (s->word - x->first_word[w->tile]), x->words[s->word]);
        emit_ld32(c, M_OFFSET, M_STACK, emit_frame_word(w, stride));
        /* The address field counts items and starts at bit 3: 8 bytes of offset are 8 for 64-bit items
         * and twice that for words. */
        emit_add_reg(c, m, m, M_OFFSET);
        if (s->item_bytes == 4) emit_add_reg(c, m, m, M_OFFSET);
    }
    flush_patches(&p);
}

/* --- The phase --- */

void emit_phase_strides(struct emit_tile *w, uint32_t step, uint32_t exchange) {
    const struct tile_graph *g = w->r->graph;
    const struct exch_result *x = w->r->rows == NULL ? NULL : w->r->rows[exchange];
    if (x != NULL && x->outgoing_base[w->tile] == EXCH_BASE_ZERO) return;
    for (uint32_t k = g->steps[step].first; k < g->steps[step].end; k++)
        if (g->allocs.tile[g->transfers.source[k].alloc] == w->tile)
            emit_frame_add(w, emit_ref_stride(w, g->transfers.source[k]));
}

void emit_phase_write(struct emit_tile *w, uint32_t step, uint32_t exchange) {
    struct emit_code *c = &w->code;
    struct emit_cost cost = {.active = w->r->rows == NULL ||
                                       w->r->rows[exchange]->active[w->tile] != 0};
    emit_code_mark(c);
    if (cost.active) {
        if (w->r->rows == NULL) {
            write_bases_bound(w);
        } else {
            write_bases(w, exchange);
            write_patches(w, exchange);
            write_moving(w, step, exchange);
        }
        emit_call(c, M_BARRIER, w->r->image->barrier, emit_barrier_cycles());
        emit_setzi(c, M_SCRATCH, 1);
        emit_put(c, ISA_CSR_INCOMING_DCOUNT, M_SCRATCH);
        cost.before = (uint32_t)c->now;
        emit_word(c, isa_word_sync(ZONE_INTERNAL));
        emit_call(c, M_LINK, w->row_address == NULL ? 0 : w->row_address[exchange], 0);
    } else {
        emit_word(c, isa_word_sans(0));
        cost.before = (uint32_t)c->now;
        emit_word(c, isa_word_sync(ZONE_ANS));
    }
    emit_code_mark(c);
    emit_sample(w);
    cost.after = (uint32_t)c->now;
    if (w->cost != NULL) w->cost[step] = cost;
}
