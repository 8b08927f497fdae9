/* From graph to program: find the products, list their candidates, take the cheapest path.
 *
 * The state at a boundary is the candidate that made the value; an edge is the in-phase that moves it
 * to the next product's grid, priced from the owners on both sides. Products along a chain are solved
 * by dynamic programming over all pairs of candidates; a product whose result several products read
 * is fixed by its own cost first. */
#include "plan/plan_internal.h"
#include "target/target.h"

#include <string.h>

void plan_options_defaults(struct plan_options *o) {
    /* Standard memory: what code, rows and state leave (planning 1); interleaved: all but one
     * effective element, for the separation of left operand and result. */
    *o = (struct plan_options){.n_tiles = TARGET_N_TILES, .standard_bytes = 96 * 1024,
                               .interleaved_bytes = TARGET_SRAM_LOAD_END - TARGET_REGION1_BASE -
                                                    TARGET_ELEMENT_PAIR_BYTES,
                               .free_input_bytes = 128 * 1024, .fp8_exponent = -4, .candidates = 192};
}

struct search {
    const struct graph *g;
    const struct plan_options *o;
    struct arena *arena;
    GError **error;
    uint32_t n;
    struct plan_gemm *gemms;
    uint32_t *product_of; /* graph value -> product that made it through elementwise operations */
    uint32_t *n_readers;  /* products that read each product */
    struct plan_set *sets;
    uint64_t **cost;  /* [product][candidate]: best path up to it */
    uint32_t **back;  /* candidate of the source */
    uint32_t **order; /* candidates by ascending cost */
};

static bool refuse(struct search *s, const struct graph_op *op, const char *why) {
    diag_set(s->error, PLAN_UNSUPPORTED, op->name, graph_op_text(op->kind), why);
    return false;
}

static const struct plan_constraint *constraint_of(const struct search *s, uint32_t op) {
    for (uint32_t i = 0; i < s->o->n_constraints; i++)
        if (s->o->constraints[i].op == op) return &s->o->constraints[i];
    return NULL;
}

static bool check_constraint(struct search *s, const struct graph_op *op,
                             const struct plan_constraint *c) {
    if (c->swapped == 1) return refuse(s, op, "the constraint asks for a swapped product");
    if (c->staging > 0) return refuse(s, op, "the constraint asks for a staged reduction");
    if (c->match_remote == 1) return refuse(s, op, "the constraint asks for match-remote staging");
    if (c->split_rows && c->split_rows * c->split_columns != c->inner)
        return refuse(s, op, "the constraint's result split is not its number of K partitions");
    return true;
}

static uint64_t leading(const struct graph_shape *s) {
    uint64_t n = 1;
    for (uint32_t i = 0; i + 2 < s->n_dims; i++) n *= s->dim[i];
    return n;
}

static bool find_gemm(struct search *s, uint32_t number, const struct graph_op *op) {
    const struct graph *g = s->g;
    const struct graph_value *left = &g->values[op->operands[0]], *right = &g->values[op->operands[1]];
    const struct graph_value *result = &g->values[op->results[0]];
    if (leading(&right->shape) != 1)
        return refuse(s, op, "a right operand with leading axes is not supported yet");
    if (right->kind != GRAPH_PARAMETER && right->kind != GRAPH_INPUT)
        return refuse(s, op, "a computed right operand is not supported yet");
    if (op->attrs.transpose_left) return refuse(s, op, "transpose_left is not supported yet");
    struct plan_gemm *m = &s->gemms[s->n];
    *m = (struct plan_gemm){.g = g, .op = (uint32_t)(op - g->ops), .left = op->operands[0],
                            .right = op->operands[1], .transpose_right = op->attrs.transpose_right,
                            .source = s->product_of[op->operands[0]],
                            .columns = result->shape.dim[result->shape.n_dims - 1],
                            .inner = left->shape.dim[left->shape.n_dims - 1]};
    const uint64_t rows = graph_shape_elements(&left->shape) / m->inner;
    if (rows > UINT32_MAX / 64) return refuse(s, op, "too many rows");
    m->rows = (uint32_t)rows;
    m->free_input = left->kind == GRAPH_INPUT && !s->o->inputs_once;
    m->constraint = (struct plan_constraint){.memory = PROGRAM_ANY};
    const struct plan_constraint *c = constraint_of(s, number);
    if (c) {
        if (!check_constraint(s, op, c)) return false;
        m->constraint = *c;
    }
    if (m->source != PROGRAM_NONE) s->n_readers[m->source]++;
    s->product_of[op->results[0]] = s->n++;
    return true;
}

static bool find_products(struct search *s) {
    const struct graph_block *b = &s->g->blocks[0];
    for (uint32_t i = 0; i < s->o->n_constraints; i++)
        if (s->o->constraints[i].op >= b->n_ops ||
            s->g->ops[b->ops[s->o->constraints[i].op]].kind != GRAPH_GEMM) {
            diag_set(s->error, PLAN_CONSTRAINT_OP, s->o->constraints[i].op);
            return false;
        }
    for (uint32_t i = 0; i < b->n_ops; i++) {
        const struct graph_op *op = &s->g->ops[b->ops[i]];
        if (op->kind == GRAPH_GEMM) {
            if (!find_gemm(s, i, op)) return false;
        } else if (op->kind == GRAPH_GELU) {
            if (op->attrs.form != GRAPH_GELU_TANH) return refuse(s, op, "form erf has no kernel yet");
            const uint32_t source = s->product_of[op->operands[0]];
            s->product_of[op->results[0]] = source;
            if (source != PROGRAM_NONE) s->gemms[source].n_pointwise++;
        } else {
            return refuse(s, op, "this operation cannot be planned yet");
        }
    }
    return true;
}

/* Best path to every candidate of product i. */
static void solve(struct search *s, uint32_t i) {
    const struct plan_gemm *m = &s->gemms[i];
    const struct plan_set *set = &s->sets[i];
    s->cost[i] = arena_new_array(s->arena, uint64_t, set->n);
    s->back[i] = arena_new_array(s->arena, uint32_t, set->n);
    for (uint32_t j = 0; j < set->n; j++) {
        const struct plan_candidate *c = &set->candidates[j];
        uint64_t best = c->in_cycles;
        if (m->source != PROGRAM_NONE) {
            const struct plan_set *from = &s->sets[m->source];
            best = UINT64_MAX;
            for (uint32_t k = 0; k < from->n; k++) {
                const uint32_t f = s->order[m->source][k];
                /* in_cycles is the edge with long messages: no edge is cheaper */
                if (s->cost[m->source][f] + c->in_cycles >= best) break;
                const uint64_t cost =
                    s->cost[m->source][f] +
                    plan_edge_cycles(&s->gemms[m->source], &from->candidates[f], m, c);
                if (cost >= best) continue;
                best = cost;
                s->back[i][j] = f;
            }
        }
        s->cost[i][j] = best + c->fixed_cycles;
    }
    if (s->n_readers[i] > 1) { /* several readers: fix it now */
        uint32_t best = 0;
        for (uint32_t j = 1; j < set->n; j++)
            if (s->cost[i][j] < s->cost[i][best]) best = j;
        struct plan_set *own = &s->sets[i];
        own->candidates = &own->candidates[best];
        own->n = 1;
        s->cost[i][0] = s->cost[i][best];
        s->back[i][0] = s->back[i][best];
    }
}

static int by_key(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Candidates of product i by ascending cost, then number. */
static void sort_costs(struct search *s, uint32_t i) {
    const uint32_t n = s->sets[i].n;
    uint64_t *keys = g_new(uint64_t, n);
    for (uint32_t j = 0; j < n; j++) keys[j] = s->cost[i][j] << 16 | j;
    qsort(keys, n, sizeof *keys, by_key);
    s->order[i] = arena_new_array(s->arena, uint32_t, n);
    for (uint32_t j = 0; j < n; j++) s->order[i][j] = keys[j] & 0xffff;
    g_free(keys);
}

static void trace(const struct search *s, struct plan_candidate *chosen) {
    uint32_t *pick = arena_new_array(s->arena, uint32_t, s->n + 1);
    memset(pick, 0xff, s->n * sizeof *pick);
    for (uint32_t i = s->n; i-- > 0;) {
        if (pick[i] == PROGRAM_NONE) { /* nobody reads it: its cheapest path */
            pick[i] = 0;
            for (uint32_t j = 1; j < s->sets[i].n; j++)
                if (s->cost[i][j] < s->cost[i][pick[i]]) pick[i] = j;
        }
        if (s->gemms[i].source != PROGRAM_NONE) pick[s->gemms[i].source] = s->back[i][pick[i]];
        chosen[i] = s->sets[i].candidates[pick[i]];
    }
}

static void report(const struct search *s, const struct plan_candidate *chosen,
                   struct plan_result *ret) {
    ret->n_products = s->n;
    ret->products = arena_new_array(ret->program->arena, struct plan_product, s->n + 1);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct plan_candidate *c = &chosen[i];
        uint64_t in = c->in_cycles;
        if (s->gemms[i].source != PROGRAM_NONE)
            in = plan_edge_cycles(&s->gemms[s->gemms[i].source], &chosen[s->gemms[i].source],
                                  &s->gemms[i], c);
        ret->products[i] = (struct plan_product){
            .operation = arena_strdup(ret->program->arena, s->g->ops[s->gemms[i].op].name),
            .op = s->gemms[i].op, .rows = c->r, .columns = c->c, .inner = c->k,
            .local_rows = c->local_rows, .local_inner = c->local_inner,
            .local_columns = c->local_columns, .interleaved = c->interleaved, .in_cycles = in,
            .product_cycles = c->product_cycles, .partial_cycles = c->partial_cycles,
            .reduce_cycles = c->reduce_cycles};
        ret->predicted_cycles += in + c->fixed_cycles;
    }
}

static enum plan_status run(struct search *s, struct plan_result *ret) {
    if (!find_products(s)) return PLAN_ERROR;
    for (uint32_t i = 0; i < s->n; i++) {
        plan_gemm_candidates(&s->gemms[i], s->o, s->arena, &s->sets[i]);
        ret->evaluations += s->sets[i].evaluations;
        if (s->sets[i].n == 0) {
            ret->infeasible = s->sets[i].best_misfit;
            if (ret->infeasible.needs_bytes == 0) {
                refuse(s, &s->g->ops[s->gemms[i].op], "no grid satisfies the constraint");
                return PLAN_ERROR;
            }
            return PLAN_INFEASIBLE;
        }
        solve(s, i);
        sort_costs(s, i);
    }
    struct plan_candidate *chosen = arena_new_array(s->arena, struct plan_candidate, s->n + 1);
    trace(s, chosen);
    const struct plan_path path = {s->g, s->o, s->n, s->gemms, chosen};
    ret->program = plan_build_program(&path, s->error);
    if (!ret->program) return PLAN_ERROR;
    report(s, chosen, ret);
    return PLAN_OK;
}

enum plan_status plan_graph(const struct graph *g, const struct plan_options *o,
                            struct plan_result *ret, GError **error) {
    *ret = (struct plan_result){0};
    struct search s = {.g = g, .o = o, .arena = arena_new(), .error = error};
    s.gemms = arena_new_array(s.arena, struct plan_gemm, g->n_ops + 1);
    s.sets = arena_new_array(s.arena, struct plan_set, g->n_ops + 1);
    s.cost = arena_new_array(s.arena, uint64_t *, g->n_ops + 1);
    s.back = arena_new_array(s.arena, uint32_t *, g->n_ops + 1);
    s.order = arena_new_array(s.arena, uint32_t *, g->n_ops + 1);
    s.n_readers = arena_new_array(s.arena, uint32_t, g->n_ops + 1);
    s.product_of = arena_new_array(s.arena, uint32_t, g->n_values + 1);
    memset(s.product_of, 0xff, g->n_values * sizeof *s.product_of);
    const enum plan_status status = run(&s, ret);
    arena_free(s.arena);
    return status;
}
