/* The kernels of attention: row maxima, exponentials against them, division by a column. Values are
 * AMP_BATCHED, one matrix per batch index, or AMP_LEFT with one; a call takes one matrix. */
#include "lower/lower_internal.h"
#include "numeric/num_format.h"

static struct tg_ref at_batch(const struct lower *l, uint32_t value, uint32_t shard, uint32_t b) {
    const struct program_value *v = lower_value(l, value);
    struct program_shard s;
    program_shard_at(v, shard, &s);
    const uint32_t at[3] = {b, 0, 0};
    return (struct tg_ref){l->alloc_of[value][shard], program_offset(&v->layout, &s, at)};
}

bool lower_row_max(struct lower *l, const struct program_op *op, uint32_t number,
                   const struct program_shard *s) {
    struct program_shard x;
    program_shard_at(lower_value(l, op->inputs[0]), number, &x);
    const struct kernel_spec spec = {KERNEL_ROW_MAX,
                                     {x.end[1] - x.start[1], x.extent[2], x.end[2] - x.start[2]}};
    for (uint32_t b = 0; b < s->extent[0]; b++) {
        const struct tg_ref operands[] = {at_batch(l, op->output, number, b),
                                          at_batch(l, op->inputs[0], number, b)};
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
    }
    return true;
}

bool lower_exponential(struct lower *l, const struct program_op *op, uint32_t number,
                       const struct program_shard *s) {
    const struct program_value *o = lower_value(l, op->output);
    uint32_t index[PROGRAM_N_AXES] = {s->index[0], s->index[1]};
    const uint32_t maxima = lower_shard_on_tile(l, op->inputs[1], index, s->tile);
    BUG_ON(maxima == PROGRAM_NONE);
    const bool f8 = o->layout.format == PROGRAM_F8_F143;
    const struct kernel_spec spec = {KERNEL_EXP_PANELS,
                                     {s->end[1] - s->start[1], s->extent[2],
                                      s->end[2] - s->start[2], num_f16_from_f32(op->real), f8,
                                      f8 ? (uint32_t)(int32_t)o->layout.exponent : 0}};
    for (uint32_t b = 0; b < s->extent[0]; b++) {
        const struct tg_ref operands[] = {at_batch(l, op->output, number, b),
                                          at_batch(l, op->inputs[0], number, b),
                                          at_batch(l, op->inputs[1], maxima, b)};
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
    }
    return true;
}

bool lower_normalise(struct lower *l, const struct program_op *op, uint32_t number,
                     const struct program_shard *s) {
    const struct program_value *o = lower_value(l, op->output);
    const struct kernel_spec spec = {KERNEL_NORMALISE_PANELS,
                                     {s->end[1] - s->start[1], s->extent[2], o->cols}};
    for (uint32_t b = 0; b < s->extent[0]; b++) {
        const struct tg_ref operands[] = {at_batch(l, op->output, number, b),
                                          at_batch(l, op->inputs[0], number, b)};
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
    }
    return true;
}

bool lower_merge(struct lower *l, const struct program_op *op, uint32_t number,
                 const struct program_shard *s) {
    const struct program_value *o = lower_value(l, op->output);
    const bool first = op->n_inputs == 2, last = o->layout.format == PROGRAM_F16;
    const uint32_t weighted = op->inputs[op->n_inputs - 2], maxima = op->inputs[op->n_inputs - 1];
    const uint32_t columns = lower_value(l, weighted)->cols;
    const struct kernel_spec spec = {KERNEL_MERGE_PANELS,
                                     {s->end[1] - s->start[1], align_up_u32(columns, 16), first,
                                      last, 1, num_f16_from_f32(op->real), last ? columns - 1 : 0}};
    if (!first && !last) BUG_ON(l->root_value[op->output] != l->root_value[op->inputs[0]]);
    for (uint32_t b = 0; b < s->extent[0]; b++) {
        struct tg_ref operands[4];
        uint32_t n = 0;
        operands[n++] = at_batch(l, op->output, number, b);
        if (last) operands[n++] = at_batch(l, op->inputs[0], number, b);
        operands[n++] = at_batch(l, weighted, number, b);
        operands[n++] = at_batch(l, maxima, number, b);
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
    }
    return true;
}

/* Zeros on a tile from load time on. */
static uint32_t zeros_on(struct lower *l, uint32_t tile) {
    enum { ZERO_BYTES = 32 }; /* a row of a panel */
    if (l->zeros[tile] != TG_NONE) return l->zeros[tile];
    const struct tg_alloc_row row = {.tile = (uint16_t)tile,
                                     .bytes = ZERO_BYTES,
                                     .align = 32,
                                     .flags = TG_PARAMETER | TG_ZEROED | TG_NO_HOST_WINDOW,
                                     .alias = TG_NONE,
                                     .blocks = 1,
                                     .value = tg_name(&l->b, "zeros")};
    return l->zeros[tile] = tg_alloc_add(&l->b, &row);
}

/* Clears columns [from, to) of one panel of matrix b. */
static bool clear_columns(struct lower *l, const struct program_op *op, uint32_t number,
                          const struct program_shard *s, uint32_t b, uint32_t from, uint32_t to) {
    if (from >= to) return true;
    const uint32_t at[3] = {b, 0, from};
    const struct kernel_spec spec = {KERNEL_COPY_STRIDED, {s->extent[1], 2 * (to - from), 0, 32, 1}};
    const struct tg_ref operands[] = {
        {l->alloc_of[op->output][number],
         program_offset(&lower_value(l, op->output)->layout, s, at)},
        {zeros_on(l, s->tile), 0}};
    return tg_call(&l->b, s->tile, &spec, operands, l->error);
}

/* In place: the input's storage is taken over. The kept columns begin in the first panel. */
bool lower_keep(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s) {
    BUG_ON(l->root_value[op->output] != l->root_value[op->inputs[0]]);
    const uint32_t width = (uint32_t)op->real;
    for (uint32_t b = 0; b < s->extent[0]; b++) {
        const uint32_t first = (s->start[0] + b) * width % 16, end = first + width;
        if (!clear_columns(l, op, number, s, b, 0, first)) return false;
        for (uint32_t c = end; c < s->extent[2]; c = align_up_u32(c + 1, 16))
            if (!clear_columns(l, op, number, s, b, c, align_up_u32(c + 1, 16))) return false;
    }
    return true;
}

/* One half pattern fills the row: an F16 one, or two F8 ones. */
bool lower_ones(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s) {
    const struct program_layout *y = &lower_value(l, op->output)->layout;
    const uint32_t one = y->format == PROGRAM_F16
                             ? num_f16_from_f32(1)
                             : num_f8_from_f32(1, NUM_F143, y->exponent) * 0x101u;
    const struct kernel_spec spec = {KERNEL_FILL_F16, {s->bytes, one}};
    const struct tg_ref to = {l->alloc_of[op->output][number], 0};
    return tg_call(&l->b, s->tile, &spec, &to, l->error);
}
