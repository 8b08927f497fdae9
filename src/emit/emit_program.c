/* Supervisor programs. One pass per tile over the steps of the graph; the same pass with addresses of
 * zero gives the sizes. A program:
 *
 *   setzi m2, physical tile * 8; call m10, runtime_start
 *   per exchange step:               the phase (emit_phase.c)
 *   per kernel call:                 setzi m2.. ; call m10, kernel
 *   per repeat:                      a stack frame of the count and one byte offset per distinct
 *                                    stride; the body once; brnz
 *   bri runtime_complete
 *
 * With sampling, `setzi m8, word; call m9, runtime_sample` in front of the first step, behind every
 * step and at the head of a repeat's loop: there it ends the interval of the iterations before, of
 * which no other sample is left. Cost: linear in calls and phases; tiles run with par_for.
 */
#include "emit/emit_tile.h"

#include "isa/isa_exch.h"

#include <string.h>

/* --- Addresses --- */

static uint32_t ref_address(const struct emit_tile *w, struct tg_ref ref) {
    return w->r->address == NULL ? 0 : w->r->address[ref.alloc] + ref.offset;
}

/* Bytes that a reference moves by at every iteration of the repeat around it. */
int32_t emit_ref_stride(const struct emit_tile *w, struct tg_ref ref) {
    return w->inside ? (int32_t)w->r->stride[ref.alloc] : 0;
}

/* Word of the repeat's frame that holds stride x iteration. */
uint32_t emit_frame_word(const struct emit_tile *w, int32_t stride) {
    for (uint32_t i = 0; i < w->n_strides; i++)
        if (w->stride[i] == stride) return 1 + i;
    BUG_ON(true);
}

void emit_frame_add(struct emit_tile *w, int32_t stride) {
    if (stride == 0) return;
    for (uint32_t i = 0; i < w->n_strides; i++)
        if (w->stride[i] == stride) return;
    BUG_ON(stride < 0);
    if (w->n_strides == EMIT_MAX_STRIDES) {
        if (w->error == NULL) diag_set(&w->error, EMIT_STRIDES, w->tile, EMIT_MAX_STRIDES);
        return;
    }
    w->stride[w->n_strides++] = stride;
}

static uint32_t frame_bytes(const struct emit_tile *w) {
    return align_up_u32(4 * (1 + w->n_strides), 8);
}

/* --- Sampling --- */

void emit_sample(struct emit_tile *w) {
    if (!w->r->options.sample) return;
    const uint32_t base = w->r->sample_address == NULL ? 0 : w->r->sample_address[w->tile];
    emit_setzi(&w->code, M_SCRATCH, base + 4 * w->sampled++);
    emit_call(&w->code, M_SAMPLE, w->r->image->sample, emit_sample_cycles());
}

static void begin_mark(struct emit_tile *w, uint32_t step) {
    const struct emit_mark mark = {.step = step, .pc = emit_code_pc(&w->code)};
    g_array_append_val(w->marks, mark);
}

/* --- Compute --- */

static bool call_registers(struct emit_tile *w, uint32_t call,
                           uint32_t ret[KERNEL_MAX_REGISTERS], uint32_t *ret_n) {
    const struct tile_graph *g = w->r->graph;
    const struct kernel_spec *spec = &g->specs[g->calls.spec[call]];
    memset(ret, 0, KERNEL_MAX_REGISTERS * sizeof *ret);
    if (w->r->address == NULL) {
        *ret_n = w->kernels[g->calls.spec[call]].n_registers;
        return true;
    }
    uint32_t address[KERNEL_MAX_OPERANDS];
    const uint32_t first = g->calls.first_operand[call];
    const uint32_t n = g->calls.first_operand[call + 1] - first;
    for (uint32_t i = 0; i < n; i++) address[i] = ref_address(w, g->calls.operand[first + i]);
    return kernel_bind(spec, address, ret, ret_n, &w->error);
}

/* The register that holds operand i: kernels may pass scalars between operands. Scalars are below
 * SRAM, so the address tells; of operands that are one place each has a register of its own (`taken`:
 * those found before). Without addresses (sizes only) any register serves. */
static uint32_t operand_register(const struct emit_tile *w, const uint32_t *value,
                                 struct tg_ref operand, uint32_t *taken) {
    const uint32_t address = w->r->address == NULL ? 0 : ref_address(w, operand);
    for (uint32_t k = 0; k < KERNEL_MAX_REGISTERS; k++) {
        if (*taken >> k & 1 || (w->r->address != NULL && value[k] != address)) continue;
        *taken |= 1u << k;
        return k;
    }
    BUG_ON(true); /* an operand in no register */
    return 0;
}

static void emit_kernel(struct emit_tile *w, uint32_t call) {
    const struct tile_graph *g = w->r->graph;
    struct emit_code *c = &w->code;
    const uint32_t spec = g->calls.spec[call];
    const uint32_t first = g->calls.first_operand[call];
    const uint32_t n_operands = g->calls.first_operand[call + 1] - first;
    uint32_t value[KERNEL_MAX_REGISTERS], n = 0;
    if (!call_registers(w, call, value, &n)) return;
    for (uint32_t i = 0; i < n; i++) emit_setzi(c, M_ARGUMENT + i, value[i]);
    uint32_t taken = 0;
    for (uint32_t i = 0; i < n_operands; i++) {
        const int32_t stride = emit_ref_stride(w, g->calls.operand[first + i]);
        if (stride == 0) continue;
        const uint32_t at =
            M_ARGUMENT + operand_register(w, value, g->calls.operand[first + i], &taken);
        emit_ld32(c, M_OFFSET, M_STACK, emit_frame_word(w, stride));
        emit_add_reg(c, at, at, M_OFFSET);
    }
    emit_call(c, M_LINK, w->kernels[spec].entry, w->kernels[spec].cycles);
}

static void emit_compute(struct emit_tile *w, uint32_t step) {
    const struct tile_graph *g = w->r->graph;
    const uint32_t *of_tile = g->call_of_tile + g->steps[step].first_call;
    if (of_tile[w->tile] == of_tile[w->tile + 1]) return;
    begin_mark(w, step);
    emit_code_mark(&w->code);
    for (uint32_t call = of_tile[w->tile]; call < of_tile[w->tile + 1]; call++)
        emit_kernel(w, call);
    emit_sample(w);
    if (w->cost != NULL) w->cost[step].before = (uint32_t)w->code.now;
}

/* --- Repeat --- */

static void collect_strides(struct emit_tile *w, uint32_t step, uint32_t exchange) {
    const struct tile_graph *g = w->r->graph;
    w->n_strides = 0;
    for (uint32_t s = step + 1; g->steps[s].kind != TG_REPEAT_END; s++) {
        if (g->steps[s].kind == TG_EXCHANGE) {
            emit_phase_strides(w, s, exchange++);
            continue;
        }
        const uint32_t *of_tile = g->call_of_tile + g->steps[s].first_call;
        const uint32_t first = g->calls.first_operand[of_tile[w->tile]];
        const uint32_t end = g->calls.first_operand[of_tile[w->tile + 1]];
        for (uint32_t i = first; i < end; i++) emit_frame_add(w, emit_ref_stride(w, g->calls.operand[i]));
    }
}

static void emit_repeat_begin(struct emit_tile *w, uint32_t step, uint32_t exchange) {
    struct emit_code *c = &w->code;
    w->inside = true;
    if (w->r->options.sample) begin_mark(w, step);
    collect_strides(w, step, exchange);
    emit_phase_repeat(w, step, exchange);
    emit_code_mark(c);
    emit_add(c, M_STACK, M_STACK, -(int32_t)frame_bytes(w));
    const uint32_t count = w->r->graph->steps[step].count;
    emit_setzi(c, M_SCRATCH, count & 0xfffff);
    if (count >> 20 != 0) emit_or_top(c, M_SCRATCH, M_SCRATCH, count >> 20);
    emit_st32(c, M_SCRATCH, M_STACK, 0);
    for (uint32_t i = 0; i < w->n_strides; i++) emit_st32(c, M_ZERO, M_STACK, 1 + i);
    w->loop_pc = emit_code_pc(c);
    const uint64_t head = c->now;
    emit_sample(w);
    w->head_cycles = (uint32_t)(c->now - head);
    if (w->cost != NULL) w->cost[step].before = (uint32_t)c->now;
}

static void emit_repeat_end(struct emit_tile *w, uint32_t step) {
    struct emit_code *c = &w->code;
    emit_code_mark(c);
    for (uint32_t i = 0; i < w->n_strides; i++) {
        emit_ld32(c, M_SCRATCH, M_STACK, 1 + i);
        emit_setzi(c, M_OFFSET, (uint32_t)w->stride[i]);
        emit_add_reg(c, M_SCRATCH, M_SCRATCH, M_OFFSET);
        emit_st32(c, M_SCRATCH, M_STACK, 1 + i);
    }
    emit_ld32(c, M_SCRATCH, M_STACK, 0);
    emit_add(c, M_SCRATCH, M_SCRATCH, -1);
    emit_st32(c, M_SCRATCH, M_STACK, 0);
    emit_brnz(c, M_SCRATCH, w->loop_pc);
    if (w->cost != NULL)
        w->cost[step] = (struct emit_cost){.before = (uint32_t)c->now, .after = w->head_cycles};
    emit_add(c, M_STACK, M_STACK, (int32_t)frame_bytes(w));
    w->inside = false;
}

/* --- One tile --- */

static void emit_steps(struct emit_tile *w) {
    const struct tile_graph *g = w->r->graph;
    uint32_t exchange = 0;
    for (uint32_t step = 0; step < g->n_steps && w->error == NULL; step++) {
        switch (g->steps[step].kind) {
        case TG_EXCHANGE:
            begin_mark(w, step);
            emit_phase_write(w, step, exchange++);
            break;
        case TG_COMPUTE: emit_compute(w, step); break;
        case TG_REPEAT_BEGIN: emit_repeat_begin(w, step, exchange); break;
        case TG_REPEAT_END: emit_repeat_end(w, step); break;
        default: BUG_ON(true);
        }
    }
}

void emit_tile_write(struct emit_tile *w) {
    struct emit_code *c = &w->code;
    const struct ptile p = target_ptile((struct ltile){(uint16_t)w->tile});
    emit_setzi(c, M_ARGUMENT, (uint32_t)p.n * 8);
    emit_call(c, M_LINK, w->r->image->start, 0);
    emit_code_mark(c);
    emit_sample(w);
    w->prologue_cycles = (uint32_t)c->now;
    emit_steps(w);
    w->end_pc = emit_code_pc(c);
    emit_bri(c, w->r->image->complete);
}
