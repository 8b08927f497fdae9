/* Which values of the program hold tensors of the graph: what a diagnostic run compares. Noted when an
 * operation has been built, with the value that holds its result first; values that only view
 * another, that a product's epilogue never stores, or that a repeat carries have none of their own. */
#include "plan/plan_build.h"

#include <string.h>

static bool noted(const struct program *p, uint32_t value) {
    for (uint32_t i = 0; i < p->n_results; i++)
        if (p->results[i].value == value) return true;
    return false;
}

static struct program_result result_of(const struct graph_value *t, uint32_t value) {
    struct program_result r = {.value = value,
                               .tensor = {.name = t->name, .n_dims = t->shape.n_dims}};
    memcpy(r.tensor.shape, t->shape.dim, sizeof r.tensor.shape);
    return r;
}

/* Columns m->first .. of the product's own result, one matrix an image, rows and columns exchanged. */
static void note_swapped(struct build *b, const struct plan_gemm *m, uint32_t value) {
    const struct graph_value *t = &b->g->values[b->g->ops[m->op].results[0]];
    struct program_result r = result_of(t, value);
    r.tensor.offset = m->first;
    r.tensor.step[0] = (uint64_t)m->columns * m->width;
    r.tensor.step[1] = 1;
    r.tensor.step[2] = m->width;
    program_add_result(b->p, &r);
}

/* The value in matrix form, or its first columns (a product whose other columns are held apart). */
static void note_matrices(struct build *b, uint32_t graph_value, const struct held *h) {
    const struct program_map identity = program_map_identity();
    const struct program_value *v = &b->p->values[h->value];
    const struct graph_value *t = &b->g->values[graph_value];
    if (memcmp(&h->map, &identity, sizeof identity) != 0) return;
    uint32_t rows, columns;
    plan_matrix(&t->shape, &rows, &columns);
    const bool first_columns = v->batch == 1 && v->rows == rows && v->cols <= columns;
    if (!first_columns && graph_shape_elements(&t->shape) != (uint64_t)v->batch * v->rows * v->cols)
        return;
    struct program_result r = result_of(t, h->value);
    r.tensor.step[0] = (uint64_t)v->rows * v->cols;
    r.tensor.step[1] = first_columns ? columns : v->cols;
    r.tensor.step[2] = 1;
    program_add_result(b->p, &r);
}

static void note_value(struct build *b, uint32_t graph_value) {
    const struct held *h = &b->held[graph_value];
    const struct graph_value *t = &b->g->values[graph_value];
    if (h->value == PROGRAM_NONE || t->kind != GRAPH_RESULT || b->g->ops[t->op].kind == GRAPH_REPEAT)
        return;
    const struct program_value *v = &b->p->values[h->value];
    if (v->role != PROGRAM_LOCAL || v->layout.count[PROGRAM_PARTIAL] > 1 || noted(b->p, h->value))
        return;
    if (!h->swapped) {
        note_matrices(b, graph_value, h);
        return;
    }
    for (uint32_t i = 0; i < b->order->n_gemms; i++) {
        const struct plan_gemm *m = &b->order->gemms[i];
        if (m->swapped && m->result == graph_value) note_swapped(b, m, h->value);
    }
}

void build_note_results(struct build *b) {
    for (uint32_t i = 0; i < b->g->n_values; i++) note_value(b, i);
}
