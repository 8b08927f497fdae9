/* Operations element by element: add, mul (any NumPy broadcasting), cast. The larger operand keeps
 * its layout if that spreads it well; the other one comes to it. */
#include "plan/plan_build.h"

#include <string.h>

/* The layout in which the operand is held, if it has the result's shape and lies well. */
static bool held_layout(struct build *b, const struct graph_op *op, uint32_t operand,
                        struct program_value *ret) {
    const struct graph_shape *s = &b->g->values[op->results[0]].shape;
    const uint32_t value = plan_resolve(b->g, operand);
    if (build_is_source(b, value) || !graph_shape_equal(&b->g->values[value].shape, s)) return false;
    const struct program_value *v = &b->p->values[build_plain(b, op, value)];
    if (!build_is_even(b, v)) return false;
    *ret = build_local_like(v, op->name);
    return true;
}

bool build_point(struct build *b, const struct graph_op *op) {
    const struct graph_shape *s = &b->g->values[op->results[0]].shape;
    struct program_value y = build_even(b, op->name, s);
    if (!held_layout(b, op, op->operands[0], &y)) held_layout(b, op, op->operands[1], &y);
    struct program_op kernel = {.compute = PROGRAM_KERNEL,
                                .kernel = op->kind == GRAPH_ADD ? PROGRAM_KERNEL_ADD
                                                                : PROGRAM_KERNEL_MUL,
                                .operation = op->name,
                                .reason = "operator",
                                .n_inputs = 2};
    for (uint32_t i = 0; i < 2; i++) {
        struct program_value want = y;
        want.name = arena_printf(b->p->arena, "%s.%s", op->name, i ? "right" : "left");
        const struct program_view v =
            build_broadcast(&b->g->values[op->operands[i]].shape, s);
        kernel.inputs[i] = build_viewed(b, op, op->operands[i], &v, &want);
    }
    build_hold(b, op->results[0], build_compute(b, &kernel, &y));
    return true;
}

bool build_cast(struct build *b, const struct graph_op *op) {
    const uint32_t in = build_plain(b, op, op->operands[0]);
    if (op->attrs.format == GRAPH_F16 || op->attrs.format == GRAPH_F32) {
        build_hold(b, op->results[0], in); /* values are stored in F16 */
        return true;
    }
    if (op->attrs.exponent < -16 || op->attrs.exponent > 15)
        return plan_refuse(op, "the exponent of an F8 format must lie in -16..15", b->error);
    struct program_value y = build_local_like(&b->p->values[in], op->name);
    uint32_t from = in;
    if (!build_is_even(b, &y)) {
        struct program_view v = {0};
        y = build_even(b, op->name, &b->g->values[op->results[0]].shape);
        build_digit(&v, y.rows * y.cols, 1);
        from = build_view_copy(b, op, in, &v, &y);
    }
    const struct program_op kernel = {.compute = PROGRAM_KERNEL,
                                      .kernel = op->attrs.format == GRAPH_F8_F143
                                                    ? PROGRAM_KERNEL_ROUND_F143
                                                    : PROGRAM_KERNEL_ROUND_F152,
                                      .operation = op->name,
                                      .reason = "operator",
                                      .n_inputs = 1,
                                      .inputs = {from},
                                      .real = (float)op->attrs.exponent};
    build_hold(b, op->results[0], build_compute(b, &kernel, &y));
    return true;
}
