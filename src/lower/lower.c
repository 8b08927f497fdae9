/* Program to tile graph. Straight line: allocate every shard, walk the operations (copies collect
 * in the open phase, computes close it and emit one call per shard), bind the host's tensors.
 *
 * Storage sharing: a value that lies `inside` another is an alias of its buffer; an elementwise
 * result takes over the storage of an input that is not used again; a carried value's yield is
 * copied to its argument at the end of an iteration. */
#include "lower/lower_internal.h"

#include <string.h>

void lower_defaults(struct lower_options *o) {
    *o = (struct lower_options){.separate_loopback = true};
}

/* --- Storage --- */

/* Position of the last operation that reads each value; bodies count operation by operation, and
 * what a body yields or reads from outside is read at the repeat's end. */
static uint32_t *last_uses(const struct lower *l) {
    const struct program *p = l->p;
    uint32_t *last = arena_new_array(l->scratch, uint32_t, p->n_values);
    uint32_t *made_in = arena_new_array(l->scratch, uint32_t, p->n_values); /* repeat + 1 */
    for (uint32_t i = 0; i < p->n_repeats; i++)
        for (uint32_t j = 0; j < p->repeats[i].n_ops; j++)
            made_in[p->ops[p->repeats[i].ops[j]].output] = i + 1;
    uint32_t position = 0;
    for (uint32_t i = 0; i < p->n_main; i++) {
        const struct program_op *op = &p->ops[p->main[i]];
        if (op->kind != PROGRAM_REPEAT) {
            position++;
            for (uint32_t k = 0; k < op->n_inputs; k++) last[op->inputs[k]] = position;
            continue;
        }
        const struct program_repeat *r = &p->repeats[op->repeat];
        const uint32_t end = position + r->n_ops + 1;
        for (uint32_t j = 0; j < r->n_ops; j++) {
            const struct program_op *o = &p->ops[r->ops[j]];
            position++;
            for (uint32_t k = 0; k < o->n_inputs; k++)
                last[o->inputs[k]] = made_in[o->inputs[k]] == op->repeat + 1 ? position : end;
        }
        for (uint32_t k = 0; k < r->n_carried; k++) {
            last[r->carried[k].initial] = end;
            last[r->carried[k].yield] = end;
        }
        position = end;
    }
    return last;
}

static bool may_take_over(const struct lower *l, const struct program_op *op, uint32_t position,
                          const uint32_t *last) {
    if (op->kind != PROGRAM_COMPUTE || op->n_inputs == 0 || lower_value(l, op->output)->parts)
        return false;
    const struct program_value *in = lower_value(l, op->inputs[0]);
    static const bool IN_PLACE[PROGRAM_N_KERNELS] = {
        [PROGRAM_KERNEL_GELU] = true,       [PROGRAM_KERNEL_GELU_ERF] = true,
        [PROGRAM_KERNEL_ADD] = true,        [PROGRAM_KERNEL_MUL] = true,
        [PROGRAM_KERNEL_LAYER_NORM] = true, [PROGRAM_KERNEL_RMS_NORM] = true,
        [PROGRAM_KERNEL_SOFTMAX] = true,    [PROGRAM_KERNEL_SOFTMAX_CAUSAL] = true,
        [PROGRAM_KERNEL_NORMALISE] = true,  [PROGRAM_KERNEL_ROUND_F143] = true,
        [PROGRAM_KERNEL_ROUND_F152] = true, [PROGRAM_KERNEL_KEEP] = true,
        [PROGRAM_KERNEL_APPLY_MOMENTS] = true};
    const bool kernel =
        op->compute == PROGRAM_KERNEL &&
        (IN_PLACE[op->kernel] ||
         (op->kernel == PROGRAM_KERNEL_MERGE && op->n_inputs == 3 &&
          lower_value(l, op->output)->layout.format == PROGRAM_F32) ||
         (op->kernel == PROGRAM_KERNEL_EXPONENTIAL &&
          lower_value(l, op->output)->layout.format == PROGRAM_F16));
    const bool epilogue = op->compute == PROGRAM_SUM && in->layout.count[PROGRAM_PARTIAL] == 1;
    if (!kernel && !epilogue) return false;
    return in->role == PROGRAM_LOCAL && last[op->inputs[0]] == position &&
           in->layout.memory == lower_value(l, op->output)->layout.memory;
}

static uint8_t flags_of(const struct program_value *v) {
    switch (v->role) {
    case PROGRAM_INPUT:
        return TG_HOST_INPUT | TG_NO_HOST_WINDOW;
    case PROGRAM_PARAMETER:
        return TG_PARAMETER | TG_NO_HOST_WINDOW;
    case PROGRAM_OUTPUT:
        return TG_HOST_OUTPUT | TG_NO_HOST_WINDOW;
    default:
        return 0;
    }
}

static void allocate_value(struct lower *l, uint32_t v, uint32_t take_over) {
    const struct program_value *x = lower_value(l, v);
    const uint32_t n = program_n_shards(x), name = tg_name(&l->b, x->name);
    l->alloc_of[v] = arena_new_array(l->scratch, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        struct program_shard s;
        program_shard_at(x, i, &s);
        struct tg_alloc_row row = {.tile = (uint16_t)s.tile,
                                   .bytes = s.bytes,
                                   .align = 32,
                                   .memory = x->layout.memory,
                                   .flags = flags_of(x),
                                   .value = name,
                                   .alias = TG_NONE,
                                   .blocks = x->sequence ? x->sequence : 1};
        if (take_over != PROGRAM_NONE) {
            row.alias = l->alloc_of[take_over][i];
        } else if (x->inside != PROGRAM_NONE) {
            uint32_t index[PROGRAM_N_AXES];
            memcpy(index, s.index, sizeof index);
            index[PROGRAM_REPLICA] = 0;
            if (x->parts) index[PROGRAM_ROWS] += x->first_part;
            else index[PROGRAM_WINDOW] = 0;
            const uint32_t k = lower_shard_on_tile(l, x->inside, index, s.tile);
            BUG_ON(k == PROGRAM_NONE);
            row.alias = l->alloc_of[x->inside][k];
            row.alias_offset = x->parts ? 0 : s.window;
        }
        l->alloc_of[v][i] = tg_alloc_add(&l->b, &row);
    }
    l->root_value[v] = take_over != PROGRAM_NONE   ? l->root_value[take_over]
                       : x->inside != PROGRAM_NONE ? l->root_value[x->inside]
                                                   : v;
}

/* Iterated arguments: the sequence whose current block they are. */
static const uint32_t *block_arguments(const struct lower *l) {
    const struct program *p = l->p;
    uint32_t *block_of = arena_new_array(l->scratch, uint32_t, p->n_values);
    memset(block_of, 0xff, p->n_values * sizeof *block_of);
    for (uint32_t i = 0; i < p->n_repeats; i++)
        for (uint32_t k = 0; k < p->repeats[i].n_iterated; k++)
            block_of[p->repeats[i].iterated[k].argument] = p->repeats[i].iterated[k].sequence;
    return block_of;
}

/* Values in whose storage others lie come first. */
static void allocate_all(struct lower *l) {
    const struct program *p = l->p;
    const uint32_t *block_of = block_arguments(l);
    uint32_t *take_over = arena_new_array(l->scratch, uint32_t, p->n_values);
    memset(take_over, 0xff, p->n_values * sizeof *take_over);
    const uint32_t *last = last_uses(l);
    uint32_t position = 0;
    for (uint32_t i = 0; i < p->n_main; i++) {
        const struct program_op *op = &p->ops[p->main[i]];
        if (op->kind != PROGRAM_REPEAT) {
            if (may_take_over(l, op, ++position, last)) take_over[op->output] = op->inputs[0];
            continue;
        }
        const struct program_repeat *r = &p->repeats[op->repeat];
        for (uint32_t j = 0; j < r->n_ops; j++)
            if (may_take_over(l, &p->ops[r->ops[j]], ++position, last))
                take_over[p->ops[r->ops[j]].output] = p->ops[r->ops[j]].inputs[0];
        position++;
    }
    for (uint32_t v = 0; v < p->n_values; v++)
        if (take_over[v] == PROGRAM_NONE && p->values[v].inside == PROGRAM_NONE &&
            block_of[v] == PROGRAM_NONE)
            allocate_value(l, v, PROGRAM_NONE);
    for (uint32_t v = 0; v < p->n_values; v++)
        if (block_of[v] != PROGRAM_NONE) {
            l->alloc_of[v] = l->alloc_of[block_of[v]];
            l->root_value[v] = l->root_value[block_of[v]];
        }
    for (uint32_t v = 0; v < p->n_values; v++)
        if (take_over[v] == PROGRAM_NONE && p->values[v].inside != PROGRAM_NONE)
            allocate_value(l, v, PROGRAM_NONE);
    for (uint32_t v = 0; v < p->n_values; v++)
        if (take_over[v] != PROGRAM_NONE) allocate_value(l, v, take_over[v]);
}

uint32_t lower_shard_on_tile(const struct lower *l, uint32_t v, uint32_t index[PROGRAM_N_AXES],
                             uint32_t tile) {
    const struct program_value *x = lower_value(l, v);
    const struct program_layout *y = &x->layout;
    uint32_t first = y->base;
    for (uint32_t a = 0; a < PROGRAM_REPLICA; a++) first += program_owner_step(y, a, index[a]);
    for (uint32_t i = 0; i < y->count[PROGRAM_REPLICA]; i++) {
        if (first + i * y->stride[PROGRAM_REPLICA] != tile) continue;
        index[PROGRAM_REPLICA] = i;
        return program_shard_number(x, index);
    }
    return PROGRAM_NONE;
}

/* --- Phases --- */

void lower_phase_open(struct lower *l, const struct program_op *op, uint32_t reads,
                      uint32_t writes) {
    const uint32_t r = l->root_value[reads], w = l->root_value[writes];
    const bool conflict = l->phase_written[r] || (l->phase_read[w] && r != w);
    if (l->phase_open && conflict) lower_phase_close(l);
    if (!l->phase_open) {
        l->phase_first = l->b.transfers->len;
        l->phase_operation = tg_name(&l->b, op->operation);
        l->phase_reason = tg_name(&l->b, op->reason);
        l->phase_open = true;
    }
    l->phase_read[r] = true;
    if (r != w) l->phase_written[w] = true;
}

static bool emit_clears(struct lower *l) {
    for (uint32_t i = 0; i < l->clear->len; i++) {
        const struct lower_span *s = &g_array_index(l->clear, struct lower_span, i);
        const struct kernel_spec spec = {KERNEL_FILL_U64, {s->bytes}};
        if (!tg_call(&l->b, s->tile, &spec, &s->to, l->error)) return false;
    }
    g_array_set_size(l->clear, 0);
    tg_close_compute(&l->b, l->phase_operation, tg_name(&l->b, "clear"));
    return true;
}

static bool emit_moves(struct lower *l) {
    for (uint32_t i = 0; i < l->after->len; i++) {
        const struct lower_move *m = &g_array_index(l->after, struct lower_move, i);
        const struct tg_ref operands[] = {m->to, m->from};
        if (!tg_call(&l->b, m->tile, &m->spec, operands, l->error)) return false;
    }
    g_array_set_size(l->after, 0);
    tg_close_compute(&l->b, l->phase_operation, tg_name(&l->b, "unpack"));
    return true;
}

bool lower_phase_close(struct lower *l) {
    if (!l->phase_open) return true;
    if (!emit_clears(l) || !lower_local_copies(l)) return false;
    tg_close_exchange(&l->b, l->phase_first, l->phase_operation, l->phase_reason);
    if (!emit_moves(l)) return false;
    l->phase_open = false;
    for (uint32_t i = 0; i < l->phase_values->len; i++)
        l->made_step[g_array_index(l->phase_values, uint32_t, i)] = l->b.steps->len - 1;
    g_array_set_size(l->phase_values, 0);
    memset(l->phase_written, 0, l->p->n_values * sizeof(bool));
    memset(l->phase_read, 0, l->p->n_values * sizeof(bool));
    return true;
}

/* --- Computes --- */

static void close_op(struct lower *l, const struct program_op *op) {
    tg_close_compute(&l->b, tg_name(&l->b, op->operation), tg_name(&l->b, op->reason));
}

struct product {
    struct lower *l;
    const struct program_op *op;
    const struct program_value *o, *a, *w;
};

static struct kernel_spec product_spec(const struct product *u, const struct program_shard *sa,
                                       uint32_t rows, uint32_t columns) {
    struct kernel_spec spec = {
        KERNEL_GEMM_F16,
        {rows, sa->extent[2], columns, 0, u->w->layout.memory == PROGRAM_INTERLEAVED}};
    if (u->a->layout.format == PROGRAM_F8_F143) {
        spec.kernel = KERNEL_GEMM_F8;
        spec.p[5] = (uint32_t)(u->a->layout.exponent + u->w->layout.exponent);
    }
    return spec;
}

/* Whether the matrices of a call follow each other in an operand: their distance is their size. */
static bool product_is_packed(const struct program_value *v, const struct program_shard *s,
                              uint64_t bytes) {
    const uint32_t second[3] = {1, 0, 0};
    return program_offset(&v->layout, s, second) == bytes;
}

/* Makes spec a batch of all matrices of the shard, if they are packed in every operand. */
static bool product_join(const struct product *u, struct kernel_spec *spec,
                         const struct program_shard *s, const struct program_shard *sa,
                         const struct program_shard *sw) {
    const uint64_t rows = spec->p[0], inner = spec->p[1], columns = spec->p[2];
    const uint64_t width = spec->kernel == KERNEL_GEMM_F8 ? 1 : 2;
    struct kernel_spec batch = *spec;
    batch.p[spec->kernel == KERNEL_GEMM_F8 ? 7 : 5] = s->extent[0];
    struct kernel_needs needs;
    if (!product_is_packed(u->o, s, 2 * rows * columns) ||
        !product_is_packed(u->a, sa, width * rows * inner) ||
        !product_is_packed(u->w, sw, width * inner * columns) ||
        !kernel_describe(&batch, &needs, NULL))
        return false;
    *spec = batch;
    return true;
}

/* One call for all matrices, if they follow each other in every operand; also if the left operand
 * is shared by them: the column groups of consecutive matrices follow each other in coefficients
 * and result. Else one call per batch index. */
static bool product_shard(const struct product *u, uint32_t number) {
    struct lower *l = u->l;
    const struct program_op *op = u->op;
    struct program_shard s, sa, sw;
    program_shard_at(u->o, number, &s);
    const uint32_t k = s.index[PROGRAM_PARTIAL], c = s.index[PROGRAM_COLS];
    const bool shared = u->w->batch == 1, turned = u->w->layout.order == PROGRAM_COEFF_T;
    const bool shared_left = u->a->batch == 1 && u->o->batch > 1;
    uint32_t ia[PROGRAM_N_AXES] = {shared_left ? 0 : s.index[0], s.index[1], k};
    uint32_t iw[PROGRAM_N_AXES] = {shared ? 0 : s.index[0], turned ? c : k, turned ? k : c};
    const uint32_t na = lower_shard_on_tile(l, op->inputs[0], ia, s.tile);
    const uint32_t nw = lower_shard_on_tile(l, op->inputs[1], iw, s.tile);
    BUG_ON(na == PROGRAM_NONE || nw == PROGRAM_NONE);
    program_shard_at(u->a, na, &sa);
    program_shard_at(u->w, nw, &sw);
    uint32_t calls = shared_left ? 1 : s.extent[0];
    const uint32_t joined = shared_left ? s.extent[0] : 1;
    struct kernel_spec spec = product_spec(u, &sa, s.extent[1], s.extent[2] * joined);
    if (calls > 1 && !shared && product_join(u, &spec, &s, &sa, &sw)) calls = 1;
    for (uint32_t b = 0; b < calls; b++) {
        const uint32_t at[3] = {b, 0, 0}, at_w[3] = {shared ? 0 : b, 0, 0};
        const struct tg_ref operands[] = {
            {l->alloc_of[op->output][number], program_offset(&u->o->layout, &s, at)},
            {l->alloc_of[op->inputs[0]][na], program_offset(&u->a->layout, &sa, at)},
            {l->alloc_of[op->inputs[1]][nw], program_offset(&u->w->layout, &sw, at_w)}};
        if (!tg_call(&l->b, s.tile, &spec, operands, l->error)) return false;
    }
    return true;
}

static bool lower_product(struct lower *l, const struct program_op *op) {
    const struct product u = {l, op, lower_value(l, op->output), lower_value(l, op->inputs[0]),
                              lower_value(l, op->inputs[1])};
    if (u.a->layout.format != u.w->layout.format ||
        (u.a->layout.format != PROGRAM_F16 && u.a->layout.format != PROGRAM_F8_F143)) {
        diag_set(l->error, LOWER_UNSUPPORTED, op->operation, "a product of these element formats");
        return false;
    }
    if (!lower_phase_close(l)) return false;
    const uint32_t n = program_n_shards(u.o);
    for (uint32_t i = 0; i < n; i++)
        if (!product_shard(&u, i)) return false;
    close_op(l, op);
    return true;
}

static bool lower_kernel(struct lower *l, const struct program_op *op) {
    static bool (*const SHARDS[PROGRAM_N_KERNELS])(struct lower *, const struct program_op *,
                                                   uint32_t, const struct program_shard *) = {
        [PROGRAM_KERNEL_GELU] = lower_point,
        [PROGRAM_KERNEL_GELU_ERF] = lower_point,
        [PROGRAM_KERNEL_ADD] = lower_point,
        [PROGRAM_KERNEL_MUL] = lower_point,
        [PROGRAM_KERNEL_ROUND_F143] = lower_round,
        [PROGRAM_KERNEL_ROUND_F152] = lower_round,
        [PROGRAM_KERNEL_LAYER_NORM] = lower_norm,
        [PROGRAM_KERNEL_RMS_NORM] = lower_norm,
        [PROGRAM_KERNEL_SOFTMAX] = lower_softmax,
        [PROGRAM_KERNEL_SOFTMAX_CAUSAL] = lower_softmax,
        [PROGRAM_KERNEL_GATHER] = lower_gather,
        [PROGRAM_KERNEL_PACK] = lower_pack,
        [PROGRAM_KERNEL_ROW_MAX] = lower_row_max,
        [PROGRAM_KERNEL_EXPONENTIAL] = lower_exponential,
        [PROGRAM_KERNEL_NORMALISE] = lower_normalise,
        [PROGRAM_KERNEL_ONES] = lower_ones,
        [PROGRAM_KERNEL_KEEP] = lower_keep,
        [PROGRAM_KERNEL_MERGE] = lower_merge,
        [PROGRAM_KERNEL_MOMENTS] = lower_moments,
        [PROGRAM_KERNEL_APPLY_MOMENTS] = lower_apply_moments,
    };
    if (op->kernel == PROGRAM_KERNEL_JOIN) return true;
    if (!SHARDS[op->kernel]) {
        diag_set(l->error, LOWER_UNSUPPORTED, op->operation, "this kernel");
        return false;
    }
    if (!lower_phase_close(l)) return false;
    const struct program_value *o = lower_value(l, op->output);
    const uint32_t n = program_n_shards(o);
    for (uint32_t i = 0; i < n; i++) {
        struct program_shard s;
        program_shard_at(o, i, &s);
        if (!SHARDS[op->kernel](l, op, i, &s)) return false;
    }
    close_op(l, op);
    return true;
}

/* Equal boxes on equal tiles; one call per matrix. */
static bool cast_shard(struct lower *l, const struct program_op *op, uint32_t number) {
    const struct program_value *o = lower_value(l, op->output), *x = lower_value(l, op->inputs[0]);
    const bool batched = o->layout.order == PROGRAM_AMP_BATCHED;
    struct program_shard so, sx;
    program_shard_at(o, number, &so);
    program_shard_at(x, number, &sx);
    const struct kernel_spec spec = kernel_cast_to_panels(
        (batched ? 1 : so.extent[0]) * so.extent[1], so.extent[2], o->layout.exponent);
    for (uint32_t b = 0; b < (batched ? so.extent[0] : 1); b++) {
        const uint32_t at[3] = {b, 0, 0};
        const struct tg_ref operands[] = {
            {l->alloc_of[op->output][number], program_offset(&o->layout, &so, at)},
            {l->alloc_of[op->inputs[0]][number], program_offset(&x->layout, &sx, at)}};
        if (!tg_call(&l->b, so.tile, &spec, operands, l->error)) return false;
    }
    return true;
}

static bool lower_cast(struct lower *l, const struct program_op *op) {
    const struct program_value *o = lower_value(l, op->output), *x = lower_value(l, op->inputs[0]);
    const bool panels =
        o->layout.order == PROGRAM_AMP_LEFT || o->layout.order == PROGRAM_AMP_BATCHED;
    if (x->layout.format != PROGRAM_F16 || o->layout.format != PROGRAM_F8_F143 ||
        x->layout.order != o->layout.order || !panels) {
        diag_set(l->error, LOWER_UNSUPPORTED, op->operation, "a cast other than F16 to F8 panels");
        return false;
    }
    if (!lower_phase_close(l)) return false;
    const uint32_t n = program_n_shards(o);
    for (uint32_t i = 0; i < n; i++)
        if (!cast_shard(l, op, i)) return false;
    close_op(l, op);
    return true;
}

static bool lower_compute(struct lower *l, const struct program_op *op) {
    switch (op->compute) {
    case PROGRAM_PRODUCT:
        return lower_product(l, op);
    case PROGRAM_KERNEL:
        return lower_kernel(l, op);
    default:
        return lower_cast(l, op);
    }
}

static bool lower_ops(struct lower *l, const uint32_t *ops, uint32_t n);

/* Same layout, so every shard stays on its tile. */
static bool copy_carried(struct lower *l, const struct program_op *op, uint32_t from, uint32_t to) {
    if (l->root_value[from] == l->root_value[to]) return true;
    struct program_op copy = {.kind = PROGRAM_COPY,
                              .operation = op->operation,
                              .reason = "carried",
                              .output = to,
                              .n_inputs = 1,
                              .inputs = {from}};
    copy.map = program_map_identity();
    return lower_copy(l, &copy) && lower_phase_close(l);
}

static bool lower_repeat(struct lower *l, const struct program_op *op) {
    const struct program_repeat *r = &l->p->repeats[op->repeat];
    if (!lower_phase_close(l)) return false;
    for (uint32_t i = 0; i < r->n_carried; i++)
        if (!copy_carried(l, op, r->carried[i].initial, r->carried[i].argument)) return false;
    const uint32_t name = tg_name(&l->b, op->operation);
    tg_repeat_step(&l->b, TG_REPEAT_BEGIN, r->count, name);
    if (!lower_ops(l, r->ops, r->n_ops) || !lower_phase_close(l)) return false;
    for (uint32_t i = 0; i < r->n_carried; i++)
        if (!copy_carried(l, op, r->carried[i].yield, r->carried[i].argument)) return false;
    tg_repeat_step(&l->b, TG_REPEAT_END, 0, name);
    return true;
}

static bool lower_op(struct lower *l, const struct program_op *op) {
    if (op->kind == PROGRAM_REPEAT) return lower_repeat(l, op);
    if (op->kind == PROGRAM_COPY) return lower_copy(l, op);
    if (!lower_compute(l, op)) return false;
    l->made_step[op->output] = l->b.steps->len - 1;
    return true;
}

static bool lower_ops(struct lower *l, const uint32_t *ops, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        const uint32_t sums = lower_sums_joint(l, ops + i, n - i);
        if (sums ? !lower_sums(l, ops + i, sums) : !lower_op(l, &l->p->ops[ops[i]])) return false;
        i += MAX(sums, 1);
    }
    return true;
}

bool lower_program(const struct program *p, const struct lower_options *options,
                   struct tile_graph **ret, GError **error) {
    struct lower l = {.p = p, .error = error, .scratch = arena_new()};
    lower_defaults(&l.options);
    if (options) l.options = *options;
    tg_builder_init(&l.b, p->n_tiles);
    l.alloc_of = arena_new_array(l.scratch, uint32_t *, p->n_values + 1);
    l.root_value = arena_new_array(l.scratch, uint32_t, p->n_values + 1);
    l.made_step = arena_new_array(l.scratch, uint32_t, p->n_values + 1);
    l.phase_values = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    l.zeros = arena_new_array(l.scratch, uint32_t, p->n_tiles);
    memset(l.zeros, 0xff, p->n_tiles * sizeof *l.zeros);
    l.phase_written = arena_new_array(l.scratch, bool, p->n_values + 1);
    l.phase_read = arena_new_array(l.scratch, bool, p->n_values + 1);
    l.local = g_array_new(FALSE, FALSE, sizeof(struct lower_span));
    l.clear = g_array_new(FALSE, FALSE, sizeof(struct lower_span));
    l.after = g_array_new(FALSE, FALSE, sizeof(struct lower_move));
    allocate_all(&l);
    const bool ok = lower_ops(&l, p->main, p->n_main) && lower_phase_close(&l) && lower_bind(&l);
    if (ok) *ret = tg_builder_finish(&l.b);
    g_array_free(l.phase_values, TRUE);
    g_array_free(l.local, TRUE);
    g_array_free(l.clear, TRUE);
    g_array_free(l.after, TRUE);
    tg_builder_clear(&l.b);
    arena_free(l.scratch);
    return ok;
}
