/* What there is to plan: the operations in program order, the products among them, and what can run
 * with the reduction of a product's partials (bias, GELU, residual, in the combinations that the
 * kernel offers), provided that nothing else reads the value in between. */
#include "plan/plan_internal.h"

#include <string.h>

bool plan_refuse(const struct graph_op *op, const char *why, GError **error) {
    diag_set(error, PLAN_UNSUPPORTED, op->name, graph_op_text(op->kind), why);
    return false;
}

uint32_t plan_resolve(const struct graph *g, uint32_t value) {
    const struct graph_value *v = &g->values[value];
    if (v->kind != GRAPH_ARGUMENT) return value;
    const struct graph_op *op = &g->ops[v->op];
    const uint32_t first = op->repeat.n_carried, end = first + op->repeat.n_invariant;
    return v->index >= first && v->index < end ? plan_resolve(g, op->operands[v->index]) : value;
}

void plan_matrix(const struct graph_shape *s, uint32_t *ret_rows, uint32_t *ret_columns) {
    *ret_columns = s->n_dims ? s->dim[s->n_dims - 1] : 1;
    *ret_rows = (uint32_t)(graph_shape_elements(s) / *ret_columns);
}

bool plan_is_suffix(const struct graph_shape *from, const struct graph_shape *to) {
    bool ones = false;
    for (uint32_t i = 1; i <= from->n_dims; i++) {
        const uint32_t x = from->dim[from->n_dims - i];
        if (i > to->n_dims || (ones && x != 1)) return false;
        ones = ones || x != to->dim[to->n_dims - i];
        if (ones && x != 1) return false;
    }
    return true;
}

struct find {
    struct plan_order *p;
    const struct graph *g;
    const struct plan_options *o;
    struct arena *arena;
    GError **error;
    uint32_t *n_uses;         /* by graph value */
    uint32_t *position;       /* by graph value: of its definition in p->ops; 0 = before all */
    uint32_t *product_of;     /* by graph value */
    struct values_of *values; /* by graph operation (gemm): the part of its result that is only an
                               * attention's values */
};
struct values_of {
    bool found;
    uint32_t first, result; /* first column; graph value that holds them */
};

static void list_block(struct find *f, uint32_t block, uint32_t repeat) {
    const struct graph_block *b = &f->g->blocks[block];
    struct plan_order *p = f->p;
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const struct graph_op *op = &f->g->ops[b->ops[i]];
        p->ops[p->n_ops] = b->ops[i];
        p->repeat_of[p->n_ops++] = repeat;
        for (uint32_t k = 0; k < op->n_operands; k++) f->n_uses[op->operands[k]]++;
        for (uint32_t k = 0; k < op->n_results; k++) f->position[op->results[k]] = p->n_ops;
        if (op->kind == GRAPH_REPEAT) list_block(f, op->repeat.body, b->ops[i]);
    }
    for (uint32_t i = 0; i < b->n_yields; i++) f->n_uses[b->yields[i]]++;
}

static bool is_parameter(const struct graph *g, uint32_t value) {
    const struct graph_value *v = &g->values[plan_resolve(g, value)];
    if (v->kind == GRAPH_ARGUMENT) {
        const struct graph_repeat *r = &g->ops[v->op].repeat;
        return v->index >= r->n_carried + r->n_invariant;
    }
    return v->kind == GRAPH_PARAMETER || v->kind == GRAPH_INPUT;
}

/* The one operation behind position `at` in the same block that reads `value`, or NULL. */
static const struct graph_op *only_reader(const struct find *f, uint32_t at, uint32_t value) {
    if (f->n_uses[value] != 1) return NULL;
    for (uint32_t i = at + 1; i < f->p->n_ops; i++) {
        if (f->p->repeat_of[i] != f->p->repeat_of[at]) continue;
        const struct graph_op *op = &f->g->ops[f->p->ops[i]];
        for (uint32_t k = 0; k < op->n_operands; k++)
            if (op->operands[k] == value) return op;
    }
    return NULL;
}

/* Takes `op` into the epilogue of m if the kernel offers it there. */
static bool fuse(const struct find *f, struct plan_gemm *m, uint32_t at,
                 const struct graph_op *op) {
    const struct graph_shape *s = &f->g->values[m->result].shape;
    /* Alone, GELU is cheaper as a call of its own: it need not stop at panel borders. */
    if (op->kind == GRAPH_GELU && op->attrs.form == GRAPH_GELU_TANH &&
        m->epilogue == PROGRAM_EPILOGUE_BIAS) {
        m->epilogue |= PROGRAM_EPILOGUE_GELU;
        return true;
    }
    if (op->kind != GRAPH_ADD || !graph_shape_equal(&f->g->values[op->results[0]].shape, s))
        return false;
    const uint32_t other = op->operands[op->operands[0] == m->result];
    const struct graph_shape *t = &f->g->values[other].shape;
    if (t->n_dims == 1 && t->dim[0] == s->dim[s->n_dims - 1] && s->n_dims > 1 &&
        is_parameter(f->g, other) && !m->epilogue) {
        m->epilogue |= PROGRAM_EPILOGUE_BIAS;
        m->bias = other;
        return true;
    }
    uint32_t rows, columns, all, width;
    plan_matrix(t, &rows, &columns);
    plan_matrix(s, &all, &width);
    if (columns != width || all % rows || t->n_dims < 2 || !plan_is_suffix(t, s) || f->position[other] > at + 1 ||
        (m->epilogue & (PROGRAM_EPILOGUE_GELU | PROGRAM_EPILOGUE_RESIDUAL)))
        return false;
    m->epilogue |= PROGRAM_EPILOGUE_RESIDUAL;
    m->residual = other;
    return true;
}

static void fuse_all(const struct find *f, struct plan_gemm *m, uint32_t at) {
    for (;;) {
        const struct graph_op *op = only_reader(f, at, m->result);
        if (!op || !fuse(f, m, at, op)) return;
        f->p->fused[op - f->g->ops] = true;
        m->result = op->results[0];
    }
}

static bool check_constraint(const struct find *f, const struct graph_op *op,
                             const struct plan_constraint *c) {
    if (c->swapped == 1)
        return plan_refuse(op, "the constraint asks for a swapped product", f->error);
    if (c->staging > 0)
        return plan_refuse(op, "the constraint asks for a staged reduction", f->error);
    if (c->match_remote == 1)
        return plan_refuse(op, "the constraint asks for match-remote staging", f->error);
    if (c->split_rows && c->split_rows * c->split_columns != c->inner)
        return plan_refuse(op, "the constraint's result split is not its number of K partitions",
                           f->error);
    return true;
}

static uint64_t leading(const struct graph_shape *s) {
    uint64_t n = 1;
    for (uint32_t i = 0; i + 2 < s->n_dims; i++) n *= s->dim[i];
    return n;
}

static const struct graph_op *maker(const struct find *f, uint32_t value) {
    const struct graph_value *v = &f->g->values[value];
    return v->kind == GRAPH_RESULT ? &f->g->ops[v->op] : NULL;
}

/* All other readers of `base` are windows of its last axis that end at or before `first`. */
static bool others_before(const struct find *f, uint32_t base, uint32_t first) {
    const uint32_t last = f->g->values[base].shape.n_dims - 1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->p->n_ops; i++) {
        const struct graph_op *op = &f->g->ops[f->p->ops[i]];
        for (uint32_t k = 0; k < op->n_operands; k++) {
            if (op->operands[k] != base) continue;
            if (op->kind != GRAPH_SLICE || op->attrs.axis != last) return false;
            n += op->attrs.start == first || op->attrs.start + op->attrs.width <= first;
        }
    }
    return n == f->n_uses[base];
}

/* Follows the values of an attention back to the product that makes them: heads, then at will a
 * window and a bias. Nothing found: the values need a computed transposition, which build_attention
 * refuses. */
static void find_values(struct find *f, const struct graph_op *attention) {
    struct plan_value_bias *bias = &f->p->value_bias[attention - f->g->ops];
    const struct graph_op *split = maker(f, attention->operands[2]);
    *bias = (struct plan_value_bias){GRAPH_NONE, 0};
    if (!split || split->kind != GRAPH_SPLIT || f->n_uses[attention->operands[2]] != 1) return;
    struct values_of found = {true, 0, split->operands[0]};
    if (f->n_uses[found.result] != 1) return;
    const struct graph_op *op = maker(f, found.result);
    if (op && op->kind == GRAPH_SLICE) {
        const struct graph_shape *s = &f->g->values[op->operands[0]].shape;
        const uint32_t base = op->operands[0];
        found.first = op->attrs.start;
        if (op->attrs.axis + 1 != s->n_dims ||
            found.first + op->attrs.width != s->dim[s->n_dims - 1] ||
            !others_before(f, base, found.first))
            return;
        op = maker(f, base);
    }
    const struct graph_op *add = NULL;
    if (op && op->kind == GRAPH_ADD) {
        add = op;
        op = maker(f, add->operands[0]);
        const struct graph_shape *b = &f->g->values[add->operands[1]].shape;
        if (b->n_dims != 1 || !is_parameter(f->g, add->operands[1]) ||
            f->n_uses[add->operands[0]] != 1)
            return;
    }
    if (!op || op->kind != GRAPH_GEMM || op->attrs.transpose_right) return;
    if (add) *bias = (struct plan_value_bias){add->operands[1], found.first};
    if (add && found.first == 0) f->p->fused[add - f->g->ops] = true;
    f->values[op - f->g->ops] = found;
}

/* The columns from values->first on as a product of their own, transposed. */
static void add_swapped(struct find *f, const struct plan_gemm *m, const struct values_of *values) {
    const struct graph_shape *s = &f->g->values[m->left].shape;
    struct plan_gemm *x = &f->p->gemms[f->p->n_gemms++];
    *x = *m;
    x->swapped = true;
    x->first = values->first;
    x->rows = m->width - values->first;
    x->batch = s->n_dims > 2 ? s->dim[0] : 1;
    x->columns = m->rows / x->batch;
    x->result = values->result;
    x->source = PROGRAM_NONE;
    x->epilogue = 0;
    x->n_pointwise = 0;
    x->constraint = (struct plan_constraint){.memory = PROGRAM_ANY};
}

static bool find_gemm(struct find *f, uint32_t at) {
    const struct graph *g = f->g;
    const struct graph_op *op = &g->ops[f->p->ops[at]];
    const struct graph_value *left = &g->values[op->operands[0]],
                             *right = &g->values[op->operands[1]];
    if (leading(&right->shape) != 1 || !is_parameter(g, op->operands[1]) ||
        op->attrs.transpose_left) {
        for (uint32_t i = 0; i < f->o->n_constraints; i++)
            if (f->o->constraints[i].op == at)
                return plan_refuse(op, "constraints are for products with one parameter", f->error);
        return true; /* build_batched */
    }
    struct plan_gemm *m = &f->p->gemms[f->p->n_gemms];
    *m = (struct plan_gemm){.g = g,
                            .op = f->p->ops[at],
                            .left = op->operands[0],
                            .right = op->operands[1],
                            .transpose_right = op->attrs.transpose_right,
                            .result = op->results[0],
                            .source = f->product_of[op->operands[0]],
                            .repeated = f->p->repeat_of[at] != GRAPH_NONE,
                            .format = f->o->fp8 ? PROGRAM_F8_F143 : PROGRAM_F16,
                            .constraint = {.memory = PROGRAM_ANY}};
    plan_matrix(&left->shape, &m->rows, &m->inner);
    plan_matrix(&g->values[op->results[0]].shape, &m->rows, &m->columns);
    if (graph_shape_elements(&left->shape) > UINT32_MAX / 4)
        return plan_refuse(op, "the left operand has too many elements", f->error);
    m->free_input = g->values[plan_resolve(g, m->left)].kind == GRAPH_INPUT && !f->o->inputs_once;
    for (uint32_t i = 0; i < f->o->n_constraints; i++)
        if (f->o->constraints[i].op == at) m->constraint = f->o->constraints[i];
    if (!check_constraint(f, op, &m->constraint)) return false;
    m->width = m->columns;
    m->batch = 1;
    const struct values_of *values = &f->values[f->p->ops[at]];
    f->p->gemm_of[f->p->ops[at]] = f->p->n_gemms;
    if (values->found && values->first == 0) {
        const struct plan_gemm whole = *m;
        add_swapped(f, &whole, values);
        return true;
    }
    fuse_all(f, m, at);
    f->product_of[m->result] = f->p->n_gemms++;
    if (values->found) {
        m->columns = values->first;
        add_swapped(f, m, values);
    }
    return true;
}

static bool check_constraints(const struct find *f) {
    for (uint32_t i = 0; i < f->o->n_constraints; i++) {
        const uint32_t at = f->o->constraints[i].op;
        for (uint32_t k = 0; k < i; k++) {
            if (f->o->constraints[k].op != at) continue;
            diag_set(f->error, PLAN_CONSTRAINT_TWICE, at);
            return false;
        }
        if (at < f->p->n_ops && f->g->ops[f->p->ops[at]].kind == GRAPH_GEMM) continue;
        diag_set(f->error, PLAN_CONSTRAINT_OP, at);
        return false;
    }
    return true;
}

static bool find_all(struct find *f) {
    for (uint32_t i = 0; i < f->p->n_ops; i++)
        if (f->g->ops[f->p->ops[i]].kind == GRAPH_ATTENTION &&
            !plan_attention_is_by_rows(f->g, &f->g->ops[f->p->ops[i]]))
            find_values(f, &f->g->ops[f->p->ops[i]]);
    for (uint32_t i = 0; i < f->p->n_ops; i++) {
        const struct graph_op *op = &f->g->ops[f->p->ops[i]];
        if (f->p->fused[f->p->ops[i]]) continue;
        if (op->kind == GRAPH_GEMM && !find_gemm(f, i)) return false;
        if (op->kind == GRAPH_GELU) {
            const uint32_t source = f->product_of[op->operands[0]];
            f->product_of[op->results[0]] = source;
            if (source != PROGRAM_NONE) f->p->gemms[source].n_pointwise++;
        }
    }
    return true;
}

bool plan_find(struct plan_order *p, const struct graph *g, const struct plan_options *o,
               struct arena *arena, GError **error) {
    *p = (struct plan_order){.g = g};
    struct find f = {.p = p, .g = g, .o = o, .arena = arena, .error = error};
    p->ops = arena_new_array(arena, uint32_t, g->n_ops + 1);
    p->repeat_of = arena_new_array(arena, uint32_t, g->n_ops + 1);
    p->fused = arena_new_array(arena, bool, g->n_ops + 1);
    p->gemms = arena_new_array(arena, struct plan_gemm, 2 * g->n_ops + 1);
    p->gemm_of = arena_new_array(arena, uint32_t, g->n_ops + 1);
    memset(p->gemm_of, 0xff, g->n_ops * sizeof *p->gemm_of);
    p->value_bias = arena_new_array(arena, struct plan_value_bias, g->n_ops + 1);
    f.values = arena_new_array(arena, struct values_of, g->n_ops + 1);
    f.n_uses = arena_new_array(arena, uint32_t, g->n_values + 1);
    f.position = arena_new_array(arena, uint32_t, g->n_values + 1);
    f.product_of = arena_new_array(arena, uint32_t, g->n_values + 1);
    memset(f.product_of, 0xff, g->n_values * sizeof *f.product_of);
    list_block(&f, 0, GRAPH_NONE);
    for (uint32_t i = 0; i < g->n_outputs; i++) f.n_uses[g->outputs[i].value]++;
    return check_constraints(&f) && find_all(&f) && plan_formats(p, o, arena, error);
}
