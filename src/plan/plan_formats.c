/* In which formats the operations read each host tensor. A tensor is stored in one: where the
 * readers differ it is F16. A product that wants such a tensor as its F8 left operand casts it on
 * the device; one that wants it as its F8 parameter runs in F16. */
#include "plan/plan_internal.h"

#include <string.h>

struct formats {
    struct plan_order *p;
    const struct plan_options *o;
    uint32_t *wanted; /* by graph value: 0, or 1 + format and exponent */
};

static uint32_t key(uint32_t format, int32_t exponent) {
    return 1 + (format << 16 | (uint32_t)(exponent + 128));
}

/* The host tensor behind a value, or the value itself. */
static uint32_t root(const struct graph *g, uint32_t value) {
    value = plan_resolve(g, value);
    const struct graph_value *v = &g->values[value];
    if (v->kind != GRAPH_ARGUMENT) return value;
    const struct graph_repeat *r = &g->ops[v->op].repeat;
    if (v->index < r->n_carried + r->n_invariant) return value;
    return plan_resolve(g, g->ops[v->op].operands[v->index]);
}

static uint32_t wanted_by(const struct formats *f, const struct graph_op *op, uint32_t operand) {
    const struct plan_options *o = f->o;
    const uint32_t gemm = f->p->gemm_of[op - f->p->g->ops];
    switch (op->kind) {
    case GRAPH_GEMM:
        if (gemm == PROGRAM_NONE || f->p->gemms[gemm].format == PROGRAM_F16) break;
        return key(f->p->gemms[gemm].format, o->fp8_exponent);
    case GRAPH_ATTENTION:
        if (plan_attention_is_by_rows(f->p->g, op)) break;
        if (operand < 2 && o->attention_qk_fp8)
            return key(PROGRAM_F8_F143, o->attention_qk_exponent);
        if (operand == 2 && o->attention_pv_fp8)
            return key(PROGRAM_F8_F143, o->attention_pv_exponent);
        break;
    case GRAPH_EMBED:
        if (operand == 1) return key(PROGRAM_U32, 0);
        break;
    default:
        break;
    }
    return key(PROGRAM_F16, 0);
}

static void find_mixed(struct formats *f) {
    const struct graph *g = f->p->g;
    memset(f->wanted, 0, g->n_values * sizeof *f->wanted);
    for (uint32_t i = 0; i < g->n_ops; i++) {
        const struct graph_op *op = &g->ops[i];
        const uint32_t n = op->kind == GRAPH_REPEAT ? op->repeat.n_carried : op->n_operands;
        for (uint32_t k = 0; k < n; k++) {
            const uint32_t value = root(g, op->operands[k]), want = wanted_by(f, op, k);
            if (f->wanted[value] && f->wanted[value] != want) f->p->mixed[value] = true;
            f->wanted[value] = want;
        }
    }
}

bool plan_is_mixed(const struct plan_order *p, uint32_t value) {
    return p->mixed[root(p->g, value)];
}

bool plan_formats(struct plan_order *p, const struct plan_options *o, struct arena *arena,
                  GError **error) {
    const struct graph *g = p->g;
    struct formats f = {p, o, arena_new_array(arena, uint32_t, g->n_values + 1)};
    p->mixed = arena_new_array(arena, bool, g->n_values + 1);
    for (bool changed = true; changed;) {
        find_mixed(&f);
        changed = false;
        for (uint32_t i = 0; i < p->n_gemms; i++) {
            struct plan_gemm *m = &p->gemms[i];
            if (m->format == PROGRAM_F16 || !plan_is_mixed(p, m->right)) continue;
            m->format = PROGRAM_F16;
            changed = true;
        }
    }
    for (uint32_t i = 0; i < p->n_gemms; i++)
        if (p->gemms[i].format != PROGRAM_F16 && plan_is_mixed(p, p->gemms[i].left))
            p->gemms[i].free_input = false;
    for (uint32_t i = 0; i < g->n_ops; i++)
        if (g->ops[i].kind == GRAPH_EMBED && plan_is_mixed(p, g->ops[i].operands[1]))
            return plan_refuse(&g->ops[i], "its indices (second operand) are read by an operation "
                               "that is no embed, too", error);
    return true;
}
