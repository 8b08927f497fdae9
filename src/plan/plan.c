/* From graph to program: find the products, list their candidates, take the cheapest path.
 *
 * The state at a boundary is the candidate that made the value; an edge is the in-phase that moves
 * it to the next product's grid, priced from the owners on both sides. Products along a chain are
 * solved by dynamic programming over all pairs of candidates; a product whose result several
 * products read is fixed by its own cost first. */
#include "plan/plan_internal.h"
#include "target/target.h"

#include <string.h>

void plan_options_defaults(struct plan_options *o) {
    /* Standard memory: what code, rows and state leave (planning 1); interleaved: all but one
     * effective element, for the separation of left operand and result. */
    *o = (struct plan_options){.n_tiles = TARGET_N_TILES,
                               .standard_bytes = 96 * 1024,
                               .interleaved_bytes = TARGET_SRAM_LOAD_END - TARGET_REGION1_BASE -
                                                    TARGET_ELEMENT_PAIR_BYTES,
                               .free_input_bytes = 128 * 1024,
                               .fp8_exponent = -4,
                               .attention_qk_exponent = -4,
                               .attention_pv_exponent = -4,
                               .candidates = 192};
}

struct search {
    const struct plan_options *o;
    struct arena *arena;
    GError **error;
    struct plan_order p;
    uint32_t *n_readers; /* products that read each product */
    struct plan_set *sets;
    uint64_t **cost;  /* [product][candidate]: best path up to it */
    uint32_t **back;  /* candidate of the source */
    uint32_t **order; /* candidates by ascending cost */
};

/* Best path to every candidate of product i. */
static void solve(struct search *s, uint32_t i) {
    const struct plan_gemm *m = &s->p.gemms[i];
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
                    plan_edge_cycles(&s->p.gemms[m->source], &from->candidates[f], m, c);
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

/* Rank r takes the r-th best candidate of the last product, with the best ones before it. */
static void trace(const struct search *s, struct plan_candidate *chosen) {
    const uint32_t n = s->p.n_gemms;
    uint32_t *pick = arena_new_array(s->arena, uint32_t, n + 1);
    memset(pick, 0xff, n * sizeof *pick);
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t rank = i == n - 1 ? MIN(s->o->rank, s->sets[i].n - 1) : 0;
        if (pick[i] == PROGRAM_NONE) pick[i] = s->order[i][rank]; /* no product reads it */
        if (s->p.gemms[i].source != PROGRAM_NONE) pick[s->p.gemms[i].source] = s->back[i][pick[i]];
        chosen[i] = s->sets[i].candidates[pick[i]];
    }
}

static uint64_t in_cycles(const struct search *s, const struct plan_candidate *chosen, uint32_t i) {
    const uint32_t source = s->p.gemms[i].source;
    if (source == PROGRAM_NONE) return chosen[i].in_cycles;
    return plan_edge_cycles(&s->p.gemms[source], &chosen[source], &s->p.gemms[i], &chosen[i]);
}

static void report(const struct search *s, const struct plan_candidate *chosen,
                   struct plan_result *ret) {
    ret->n_products = s->p.n_gemms;
    ret->products = arena_new_array(ret->program->arena, struct plan_product, ret->n_products + 1);
    for (uint32_t i = 0; i < ret->n_products; i++) {
        const struct plan_candidate *c = &chosen[i];
        const struct plan_gemm *m = &s->p.gemms[i];
        uint32_t position = 0;
        while (s->p.ops[position] != m->op) position++;
        ret->products[i] = (struct plan_product){
            .operation = arena_strdup(ret->program->arena, m->g->ops[m->op].name),
            .op = position,
            .rows = c->r,
            .columns = c->c,
            .inner = c->k,
            .local_rows = c->local_rows,
            .local_inner = c->local_inner,
            .local_columns = c->local_columns,
            .interleaved = c->interleaved,
            .in_cycles = in_cycles(s, chosen, i),
            .product_cycles = c->product_cycles,
            .partial_cycles = c->partial_cycles,
            .reduce_cycles = c->reduce_cycles};
        ret->predicted_cycles += ret->products[i].in_cycles + c->fixed_cycles;
    }
}

/* Operand formats of products; host tensors that are stored in F8 alone. */
static void set_precision(const struct search *s, const struct graph *g, struct plan_result *ret) {
    struct arena *arena = ret->program->arena;
    struct reference_op *ops = arena_new_array(arena, struct reference_op, g->n_ops + 1);
    struct reference_format *values =
        arena_new_array(arena, struct reference_format, g->n_values + 1);
    const struct reference_format f8 = {GRAPH_F8_F143, (int8_t)s->o->fp8_exponent};
    for (uint32_t i = 0; i < s->p.n_gemms; i++) {
        const struct plan_gemm *m = &s->p.gemms[i];
        if (m->format == PROGRAM_F16) continue;
        ops[m->op].operand[0] = ops[m->op].operand[1] = f8;
    }
    const struct reference_format qk = {GRAPH_F8_F143, (int8_t)s->o->attention_qk_exponent};
    const struct reference_format pv = {GRAPH_F8_F143, (int8_t)s->o->attention_pv_exponent};
    for (uint32_t i = 0; i < g->n_ops; i++) {
        if (g->ops[i].kind != GRAPH_ATTENTION) continue;
        if (s->o->attention_qk_fp8) ops[i].operand[0] = ops[i].operand[1] = qk;
        if (s->o->attention_pv_fp8) ops[i].operand[2] = ops[i].probability = pv;
    }
    for (uint32_t i = 0; i < ret->program->n_values; i++) {
        const struct program_value *v = &ret->program->values[i];
        if (v->role != PROGRAM_INPUT && v->role != PROGRAM_PARAMETER) continue;
        if (v->layout.format == PROGRAM_F16) continue;
        const uint32_t t = graph_find_value(g, v->tensor.name);
        values[t] = (struct reference_format){GRAPH_F8_F143, v->layout.exponent};
        if (v->layout.format == PROGRAM_U32) values[t] = (struct reference_format){GRAPH_F32, 0};
    }
    ret->precision = (struct reference_precision){g->n_ops, ops, values};
}

/* Bytes of product i's parameter, without the block that it works on if it is `except`. */
static uint64_t home_bytes(const struct search *s, const struct graph *g, uint32_t i,
                           uint32_t except) {
    const struct plan_gemm *m = &s->p.gemms[i];
    uint32_t position = 0;
    while (s->p.ops[position] != m->op) position++;
    const uint32_t repeat = s->p.repeat_of[position];
    const uint64_t one =
        (uint64_t)m->inner * (m->swapped ? m->rows : m->columns) * program_format_bytes(m->format);
    return one * (repeat == GRAPH_NONE ? i != except : g->ops[repeat].attrs.count - (i == except));
}

/* Bytes of parameters on a tile, on average: they stay while each product runs. */
static uint64_t homes_bytes(const struct search *s, const struct graph *g, uint32_t except) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < s->p.n_gemms; i++) bytes += home_bytes(s, g, i, except);
    return bytes / s->o->n_tiles;
}

static void insert_user(struct plan_infeasible *x, struct plan_user user) {
    uint32_t i = x->n_users < ARRAY_LEN(x->users) ? x->n_users++ : x->n_users - 1;
    if (i + 1 == ARRAY_LEN(x->users) && x->users[i].bytes >= user.bytes) return;
    for (; i > 0 && x->users[i - 1].bytes < user.bytes; i--) x->users[i] = x->users[i - 1];
    x->users[i] = user;
}

/* What product `misfit` lacks is taken by the others' parameters: they belong into its report. */
static void add_homes(const struct search *s, const struct graph *g, uint32_t misfit,
                      struct plan_infeasible *x) {
    const uint64_t all = (uint64_t)s->o->standard_bytes + s->o->interleaved_bytes;
    if (x->needs_bytes == 0 || x->has_bytes >= all || strcmp(x->memory, "all") != 0) return;
    const uint64_t homes = homes_bytes(s, g, misfit);
    x->needs_bytes += homes;
    x->has_bytes = all;
    for (uint32_t i = 0; i < s->p.n_gemms; i++) {
        const uint64_t bytes = home_bytes(s, g, i, misfit) / s->o->n_tiles;
        const uint32_t parameter = plan_resolve(g, s->p.gemms[i].right);
        if (bytes != 0) insert_user(x, (struct plan_user){g->values[parameter].name, bytes});
    }
}

/* The largest operands and results of a product by the tensors' names. */
static void name_users(const struct plan_gemm *m, struct plan_infeasible *x) {
    const struct graph *g = m->g;
    const char *computed = g->values[m->left].name;
    const char *parameter = g->values[plan_resolve(g, m->right)].name;
    for (uint32_t i = 0; i < x->n_users; i++) {
        const char *role = x->users[i].name;
        const bool left = strcmp(role, "left operand") == 0;
        const char *name = left || g_str_has_suffix(role, "coefficients")
                               ? (left != m->swapped ? computed : parameter)
                               : g->values[m->result].name;
        char *text = g_strdup_printf("%s (%s of %s)", name, role, x->operation);
        x->users[i].name = g_intern_string(text);
        g_free(text);
    }
}

/* Iterations that a repeat would have to lose for its parameters to make room. */
static uint32_t fewer_iterations(const struct search *s, const struct graph *g, uint64_t missing) {
    uint64_t most = 0;
    uint32_t fewer = 0;
    for (uint32_t op = 0; op < g->n_ops; op++) {
        if (g->ops[op].kind != GRAPH_REPEAT) continue;
        uint64_t bytes = 0;
        for (uint32_t i = 0; i < s->p.n_gemms; i++) {
            uint32_t position = 0;
            while (s->p.ops[position] != s->p.gemms[i].op) position++;
            if (s->p.repeat_of[position] == op)
                bytes += home_bytes(s, g, i, PROGRAM_NONE) / g->ops[op].attrs.count;
        }
        bytes /= s->o->n_tiles;
        if (bytes * g->ops[op].attrs.count <= most) continue;
        most = bytes * g->ops[op].attrs.count;
        const uint64_t n = ceil_div_u64(missing, bytes);
        fewer = n < g->ops[op].attrs.count ? (uint32_t)n : 0;
    }
    return fewer;
}

/* Candidates of all products; reports the product that lacks most where some have none. */
static enum plan_status find_candidates(struct search *s, const struct graph *g,
                                        struct plan_result *ret) {
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->p.n_gemms; i++) {
        plan_gemm_candidates(&s->p.gemms[i], s->o, homes_bytes(s, g, i), s->arena, &s->sets[i]);
        ret->evaluations += s->sets[i].evaluations;
        if (s->sets[i].n != 0) continue;
        struct plan_infeasible x = s->sets[i].best_misfit;
        if (x.needs_bytes == 0) {
            plan_refuse(&g->ops[s->p.gemms[i].op], "no grid satisfies the constraint", s->error);
            return PLAN_ERROR;
        }
        name_users(&s->p.gemms[i], &x);
        add_homes(s, g, i, &x);
        const uint64_t missing = x.needs_bytes - x.has_bytes;
        if (missing <= most) continue;
        most = missing;
        if (strcmp(x.memory, "all") == 0) x.fewer_iterations = fewer_iterations(s, g, missing);
        ret->infeasible = x;
    }
    return most != 0 ? PLAN_INFEASIBLE : PLAN_OK;
}

static enum plan_status run(struct search *s, const struct graph *g, struct plan_result *ret) {
    if (!plan_find(&s->p, g, s->o, s->arena, s->error)) return PLAN_ERROR;
    for (uint32_t i = 0; i < s->p.n_gemms; i++)
        if (s->p.gemms[i].source != PROGRAM_NONE) s->n_readers[s->p.gemms[i].source]++;
    const enum plan_status status = find_candidates(s, g, ret);
    if (status != PLAN_OK) return status;
    for (uint32_t i = 0; i < s->p.n_gemms; i++) {
        solve(s, i);
        sort_costs(s, i);
    }
    struct plan_candidate *chosen =
        arena_new_array(s->arena, struct plan_candidate, s->p.n_gemms + 1);
    trace(s, chosen);
    ret->program = plan_build_program(&s->p, s->o, chosen, &ret->infeasible, s->error);
    if (!ret->program) return ret->infeasible.needs_bytes ? PLAN_INFEASIBLE : PLAN_ERROR;
    report(s, chosen, ret);
    set_precision(s, g, ret);
    return PLAN_OK;
}

enum plan_status plan_graph(const struct graph *g, const struct plan_options *o,
                            struct plan_result *ret, GError **error) {
    *ret = (struct plan_result){0};
    struct search s = {.o = o, .arena = arena_new(), .error = error};
    s.sets = arena_new_array(s.arena, struct plan_set, 2 * g->n_ops + 1);
    s.cost = arena_new_array(s.arena, uint64_t *, 2 * g->n_ops + 1);
    s.back = arena_new_array(s.arena, uint32_t *, 2 * g->n_ops + 1);
    s.order = arena_new_array(s.arena, uint32_t *, 2 * g->n_ops + 1);
    s.n_readers = arena_new_array(s.arena, uint32_t, 2 * g->n_ops + 1);
    const enum plan_status status = run(&s, g, ret);
    arena_free(s.arena);
    return status;
}
