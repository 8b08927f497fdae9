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

/* exp(0): a cleared row of scores against a cleared maximum. */
bool lower_ones(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s) {
    enum { ROW_BYTES = 64, MAXIMUM_BYTES = 8 };
    const struct tg_alloc_row row = {.tile = (uint16_t)s->tile,
                                     .bytes = ROW_BYTES + MAXIMUM_BYTES,
                                     .align = 32,
                                     .alias = TG_NONE,
                                     .blocks = 1,
                                     .value = tg_name(&l->b, "zeros")};
    const uint32_t zeros = tg_alloc_add(&l->b, &row);
    const struct kernel_spec fill = {KERNEL_FILL_U64, {ROW_BYTES + MAXIMUM_BYTES}};
    const struct kernel_spec exponential = {KERNEL_EXP_PANELS, {1, 32, 32, num_f16_from_f32(1)}};
    const struct tg_ref cleared = {zeros, 0};
    const struct tg_ref operands[] = {
        {l->alloc_of[op->output][number], 0}, cleared, {zeros, ROW_BYTES}};
    return tg_call(&l->b, s->tile, &fill, &cleared, l->error) &&
           tg_call(&l->b, s->tile, &exponential, operands, l->error);
}
