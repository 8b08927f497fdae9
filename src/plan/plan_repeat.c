/* Repeats and outputs: where values leave the block that made them.
 *
 * A carried argument has the shape and layout of its yield, which is known when the body has been
 * built: graphs with repeats are built twice. Where the second pass makes another layout (it may
 * depend on the argument's), where the yield is not made in the body or is itself an argument, it is
 * copied at the end of the body; where the initial value lies otherwise it is copied before. */
#include "plan/plan_build.h"

#include <string.h>

static struct program_view all_of(const struct program_value *v) {
    struct program_view x = {0};
    build_digit(&x, v->batch * v->rows * v->cols, 1);
    return x;
}

/* A copy for certain. */
static uint32_t copied(struct build *b, const struct graph_op *op, uint32_t from,
                       const struct program_value *to) {
    const struct held whole = {from, program_map_identity(), false};
    const uint32_t copy = build_copy(b, op, "carried", &whole, to);
    b->p->ops[b->p->n_ops - 1].view = all_of(to);
    return copy;
}

static bool alike(const struct program_value *a, const struct program_value *b) {
    return a->batch == b->batch && a->rows == b->rows && a->cols == b->cols &&
           memcmp(&a->layout, &b->layout, sizeof a->layout) == 0;
}

static void begin_carried(struct build *b, const struct graph_op *op, uint32_t i,
                          struct program_carried *ret) {
    const struct graph_block *body = &b->g->blocks[op->repeat.body];
    const uint32_t initial = build_plain(b, op, op->operands[i]), argument = body->arguments[i];
    struct program_value v = build_local_like(&b->p->values[initial], b->g->values[argument].name);
    if (b->final) v = build_local_like(&b->carried[argument], v.name);
    ret->initial = initial;
    if (!alike(&v, &b->p->values[initial])) ret->initial = copied(b, op, initial, &v);
    ret->argument = build_value(b, &v);
    build_hold(b, argument, ret->argument);
}

/* Made by an operation of the open body. */
static bool made_here(const struct build *b, uint32_t value) {
    const struct program_repeat *r = &b->p->repeats[b->repeat];
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (b->p->ops[r->ops[i]].output == value) return true;
    return false;
}

static void end_carried(struct build *b, const struct graph_op *op, uint32_t i,
                        struct program_carried *carried) {
    const struct graph_block *body = &b->g->blocks[op->repeat.body];
    uint32_t yield = build_plain(b, op, body->yields[i]);
    const struct program_value argument = b->p->values[carried->argument];
    if (!made_here(b, yield) || (b->final && !alike(&argument, &b->p->values[yield]))) {
        const struct program_value to =
            build_local_like(&argument, arena_printf(b->p->arena, "%s.next", argument.name));
        yield = copied(b, op, yield, &to);
    }
    carried->yield = yield;
    b->carried[body->arguments[i]] = b->p->values[yield];
    build_hold(b, op->results[i], carried->argument);
}

static bool check_iterated(struct build *b, const struct graph_op *op) {
    for (uint32_t i = op->repeat.n_carried + op->repeat.n_invariant; i < op->n_operands; i++) {
        const struct graph_value *v = &b->g->values[plan_resolve(b->g, op->operands[i])];
        if (v->kind != GRAPH_INPUT && v->kind != GRAPH_PARAMETER)
            return plan_refuse(op, arena_printf(b->p->arena, "its iterated operand %s must be a host "
                               "tensor", v->name), b->error);
    }
    return true;
}

bool build_repeat(struct build *b, const struct graph_op *op, uint32_t *at) {
    const struct graph_repeat *r = &op->repeat;
    struct program_carried *carried =
        arena_new_array(b->p->arena, struct program_carried, r->n_carried);
    const struct program_repeat x = {.count = op->attrs.count};
    if (!check_iterated(b, op)) return false;
    for (uint32_t i = 0; i < r->n_carried; i++) begin_carried(b, op, i, &carried[i]);
    b->repeat = program_add_repeat(b->p, &x);
    b->count = op->attrs.count;
    const struct program_op repeat = {.kind = PROGRAM_REPEAT,
                                      .operation = op->name,
                                      .reason = "repeat",
                                      .output = PROGRAM_NONE,
                                      .repeat = b->repeat,
                                      .map = program_map_identity()};
    program_add_op(b->p, &repeat, PROGRAM_NONE);
    if (!build_ops(b, at, (uint32_t)(op - b->g->ops))) return false;
    for (uint32_t i = 0; i < r->n_carried; i++) end_carried(b, op, i, &carried[i]);
    struct program_repeat *made = &b->p->repeats[b->repeat];
    made->n_carried = r->n_carried;
    made->carried = carried;
    made->n_iterated = b->iterated->len;
    made->iterated =
        arena_copy(b->p->arena, b->iterated->data, b->iterated->len * sizeof *made->iterated);
    g_array_set_size(b->iterated, 0);
    b->repeat = PROGRAM_NONE;
    return true;
}

/* --- Outputs --- */

/* A value of the program for this output alone. */
static uint32_t output_value(struct build *b, uint32_t graph_value) {
    const struct graph_value *t = &b->g->values[graph_value];
    const struct graph_op *op = &b->g->ops[t->op];
    const uint32_t value = build_plain(b, op, graph_value);
    if (b->p->values[value].role == PROGRAM_LOCAL) return value;
    const struct program_value to = build_even(b, t->name, &t->shape);
    return copied(b, op, value, &to);
}

bool build_outputs(struct build *b) {
    for (uint32_t i = 0; i < b->g->n_outputs; i++) {
        const struct graph_value *t = &b->g->values[b->g->outputs[i].value];
        if (t->kind != GRAPH_RESULT) {
            diag_set(b->error, PLAN_OUTPUT, t->name);
            return graph_error_at(b->g, b->g->outputs[i].line, b->error);
        }
        const uint32_t value = output_value(b, b->g->outputs[i].value);
        struct program_value *v = &b->p->values[value];
        v->role = PROGRAM_OUTPUT;
        v->tensor = (struct program_tensor){.name = arena_strdup(b->p->arena, t->name),
                                            .n_dims = t->shape.n_dims};
        memcpy(v->tensor.shape, t->shape.dim, sizeof v->tensor.shape);
        v->tensor.step[0] = (uint64_t)v->rows * v->cols;
        v->tensor.step[1] = v->cols;
        v->tensor.step[2] = 1;
    }
    return true;
}
