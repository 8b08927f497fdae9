/* Kernels that work element by element: operands lie alike, so a shard is one run of halves whatever
 * its order, in calls of at most the kernel's size. Rounding to F8 goes there and back by way of a
 * buffer. */
#include "lower/lower_internal.h"

enum { MOST_ELEMENTS = 1 << 18 };

static struct tg_ref operand_at(const struct lower *l, const struct program_op *op, uint32_t i,
                                uint32_t number, uint32_t element) {
    const uint32_t value = i == 0 ? op->output : op->inputs[i - 1];
    return (struct tg_ref){l->alloc_of[value][number], 2 * element};
}

static struct kernel_spec point_spec(const struct program_op *op, uint32_t n) {
    switch (op->kernel) {
    case PROGRAM_KERNEL_ADD:
        return (struct kernel_spec){KERNEL_ADD_F16, {1, n}};
    case PROGRAM_KERNEL_MUL:
        return (struct kernel_spec){KERNEL_MUL_F16, {1, n}};
    default:
        return (struct kernel_spec){KERNEL_GELU_F16, {n, op->kernel == PROGRAM_KERNEL_GELU_ERF}};
    }
}

bool lower_point(struct lower *l, const struct program_op *op, uint32_t number,
                 const struct program_shard *s) {
    const uint32_t all = s->bytes / 2;
    for (uint32_t at = 0; at < all; at += MOST_ELEMENTS) {
        const struct kernel_spec spec = point_spec(op, MIN(all - at, MOST_ELEMENTS));
        struct tg_ref operands[3];
        for (uint32_t i = 0; i <= op->n_inputs; i++) operands[i] = operand_at(l, op, i, number, at);
        if (!tg_call(&l->b, s->tile, &spec, operands, l->error)) return false;
    }
    return true;
}

bool lower_round(struct lower *l, const struct program_op *op, uint32_t number,
                 const struct program_shard *s) {
    const uint32_t all = s->bytes / 2, f152 = op->kernel == PROGRAM_KERNEL_ROUND_F152;
    const uint32_t exponent = (uint32_t)(int32_t)op->real;
    const struct tg_alloc_row row = {.tile = (uint16_t)s->tile,
                                     .bytes = MIN(all, MOST_ELEMENTS),
                                     .align = 32,
                                     .alias = TG_NONE,
                                     .blocks = 1,
                                     .value = tg_name(&l->b, "rounded")};
    const struct tg_ref narrow = {tg_alloc_add(&l->b, &row), 0};
    for (uint32_t at = 0; at < all; at += MOST_ELEMENTS) {
        const uint32_t n = MIN(all - at, MOST_ELEMENTS);
        const struct kernel_spec there = {KERNEL_CAST_F16_F8, {n, exponent, 1, f152}};
        const struct kernel_spec back = {KERNEL_CAST_F8_F16, {n, exponent, f152}};
        const struct tg_ref to[] = {narrow, operand_at(l, op, 1, number, at)};
        const struct tg_ref from[] = {operand_at(l, op, 0, number, at), narrow};
        if (!tg_call(&l->b, s->tile, &there, to, l->error) ||
            !tg_call(&l->b, s->tile, &back, from, l->error))
            return false;
    }
    return true;
}
