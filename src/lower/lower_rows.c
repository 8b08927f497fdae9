/* Kernels on whole rows: normalisations, softmax, rows of a table by index; and the turning of left
 * operands into coefficients. One call for each matrix of an AMP_BATCHED shard; AMP_LEFT has one. */
#include "lower/lower_internal.h"
#include "numeric/num_format.h"

#include <string.h>

static struct tg_ref matrix_at(const struct lower *l, uint32_t value, uint32_t number,
                               uint32_t batch) {
    const struct program_value *v = lower_value(l, value);
    struct program_shard s;
    program_shard_at(v, number, &s);
    const uint32_t at[3] = {batch, 0, 0};
    return (struct tg_ref){l->alloc_of[value][number], program_offset(&v->layout, &s, at)};
}

/* The replica on the tile of a vector that all rows share. */
static struct tg_ref shared_at(const struct lower *l, uint32_t value, const uint32_t part[3],
                               uint32_t tile) {
    uint32_t index[PROGRAM_N_AXES] = {part[0], part[1], part[2]};
    const uint32_t shard = lower_shard_on_tile(l, value, index, tile);
    BUG_ON(shard == PROGRAM_NONE);
    return (struct tg_ref){l->alloc_of[value][shard], 0};
}

static uint32_t float_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* Whole rows in AMP_LEFT; scale and bias are one row with a replica on every tile. The kernels for
 * whole panels know one epsilon. */
bool lower_norm(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s) {
    static const uint32_t WHOLE[3] = {0};
    const bool rms = op->kernel == PROGRAM_KERNEL_RMS_NORM;
    const uint32_t rows = s->extent[0] * s->extent[1], columns = s->extent[2];
    const uint32_t valid = s->end[2] - s->start[2];
    struct tg_ref operands[4] = {{l->alloc_of[op->output][number], 0},
                                 {l->alloc_of[op->inputs[0]][number], 0}};
    for (uint32_t i = 1; i < op->n_inputs; i++)
        operands[1 + i] = shared_at(l, op->inputs[i], WHOLE, s->tile);
    struct kernel_spec spec = {rms ? KERNEL_RMS_F16 : KERNEL_NORM_F16, {rows, columns, 1}};
    if (valid != columns || op->real != 1e-6f)
        spec = (struct kernel_spec){rms ? KERNEL_RMS_VALID_F16 : KERNEL_NORM_VALID_F16,
                                    {rows, columns, valid, (float_bits(op->real) + 0x800) >> 12}};
    return tg_call(&l->b, s->tile, &spec, operands, l->error);
}

bool lower_moments(struct lower *l, const struct program_op *op, uint32_t number,
                   const struct program_shard *s) {
    struct program_shard x;
    program_shard_at(lower_value(l, op->inputs[0]), number, &x);
    const struct kernel_spec spec = {KERNEL_MOMENTS_F16, {x.extent[1], x.extent[2], 1, 1}};
    const struct tg_ref operands[] = {{l->alloc_of[op->output][number], 0},
                                      {l->alloc_of[op->inputs[0]][number], 0}};
    return tg_call(&l->b, s->tile, &spec, operands, l->error);
}

/* Rows of a column part with the moments of all of them. */
bool lower_apply_moments(struct lower *l, const struct program_op *op, uint32_t number,
                         const struct program_shard *s) {
    const uint32_t rows[3] = {0, s->index[1], 0}, columns[3] = {0, 0, s->index[2]};
    const struct kernel_spec spec = {
        KERNEL_APPLY_MOMENTS_F16,
        {s->extent[1], s->extent[2], 1, lower_value(l, op->inputs[1])->batch, 0}};
    const struct tg_ref operands[] = {{l->alloc_of[op->output][number], 0},
                                      {l->alloc_of[op->inputs[0]][number], 0},
                                      shared_at(l, op->inputs[1], rows, s->tile),
                                      shared_at(l, op->inputs[2], columns, s->tile),
                                      shared_at(l, op->inputs[3], columns, s->tile)};
    return tg_call(&l->b, s->tile, &spec, operands, l->error);
}

/* --- Softmax: exponentials with their sums in F32, then the division by these. --- */

static bool softmax_matrix(struct lower *l, uint32_t tile, const struct kernel_spec *spec,
                           const struct tg_ref refs[3]) {
    const struct tg_ref quotient[] = {refs[0], refs[0], refs[1]};
    const struct kernel_spec divide = {KERNEL_NORMALISE_PANELS, {spec->p[0], spec->p[1], 0, 0, 0, 1}};
    return tg_call(&l->b, tile, spec, refs, l->error) &&
           tg_call(&l->b, tile, &divide, quotient, l->error);
}

bool lower_softmax(struct lower *l, const struct program_op *op, uint32_t number,
                   const struct program_shard *s) {
    const struct program_value *o = lower_value(l, op->output);
    const uint32_t rows = s->extent[1], valid = s->end[2] - s->start[2];
    const uint32_t behind = o->cols > o->rows ? o->cols - o->rows : 0;
    const bool causal = op->kernel == PROGRAM_KERNEL_SOFTMAX_CAUSAL;
    const struct kernel_spec spec = {KERNEL_SOFTMAX_F16,
                                     {rows, s->extent[2], valid, num_f16_from_f32(op->real),
                                      causal ? s->start[1] + behind + 1 : 0}};
    const struct tg_alloc_row row = {.tile = (uint16_t)s->tile,
                                     .bytes = 8 * rows,
                                     .align = 8,
                                     .alias = TG_NONE,
                                     .blocks = 1,
                                     .value = tg_name(&l->b, "sums")};
    const struct tg_ref sums = {tg_alloc_add(&l->b, &row), 0};
    for (uint32_t b = 0; b < s->extent[0]; b++) {
        const struct tg_ref refs[] = {matrix_at(l, op->output, number, b), sums,
                                      matrix_at(l, op->inputs[0], number, b)};
        if (!softmax_matrix(l, s->tile, &spec, refs)) return false;
    }
    return true;
}

/* --- Rows of a table: a call for each panel of its columns. --- */

bool lower_gather(struct lower *l, const struct program_op *op, uint32_t number,
                  const struct program_shard *s) {
    const uint32_t table_rows = lower_value(l, op->inputs[0])->rows, rows = s->extent[1];
    const uint32_t columns[3] = {0, 0, s->index[2]}, words[3] = {0, 0, s->index[1]};
    struct tg_ref out = {l->alloc_of[op->output][number], 0};
    struct tg_ref table = shared_at(l, op->inputs[0], columns, s->tile);
    const struct tg_ref index = shared_at(l, op->inputs[1], words, s->tile);
    const struct kernel_spec spec = {KERNEL_GATHER_ROWS, {rows, 32, table_rows}};
    for (uint32_t i = 0; i < s->extent[2] / 16; i++) {
        const struct tg_ref operands[] = {out, table, index};
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
        out.offset += 32 * rows;
        table.offset += 32 * table_rows;
    }
    return true;
}

bool lower_pack(struct lower *l, const struct program_op *op, uint32_t number,
                const struct program_shard *s) {
    const struct kernel_spec spec = {KERNEL_PACK_RIGHT, {s->extent[1], s->extent[2], 1}};
    for (uint32_t b = 0; b < s->extent[0]; b++) {
        const struct tg_ref operands[] = {matrix_at(l, op->output, number, b),
                                          matrix_at(l, op->inputs[0], number, b)};
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
    }
    return true;
}
