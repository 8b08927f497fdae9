/* The shape rule of every operation. One function per family; each failure names operation,
 * kind and rule. */
#include "graph/graph.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *text;
    uint32_t min, max, attrs;
} OPS[GRAPH_N_OPS] = {
#define GRAPH_OP(name, text, min, max, attrs) [GRAPH_##name] = {text, min, max, attrs},
#include "graph/op.def"
#undef GRAPH_OP
};

const char *graph_op_text(uint32_t kind) {
    return kind < GRAPH_N_OPS ? OPS[kind].text : "?";
}

uint32_t graph_op_attrs(uint32_t kind) {
    return OPS[kind].attrs;
}

struct rule {
    const struct graph *g;
    const struct graph_request *r;
    uint32_t n_in;
    const struct graph_shape *in[8];
    struct graph_shape *out;
    GError **error;
};

/* "; operands %a [3, 4], %b [4]" behind the rule. */
static bool refuse(struct rule *u, const char *text) {
    GString *s = g_string_new(text);
    for (uint32_t i = 0; i < u->n_in; i++) {
        g_string_append_printf(s, "%s %%%s [", i ? "," : u->n_in > 1 ? "; operands" : "; operand",
                               u->g->values[u->r->operands[i]].name);
        for (uint32_t k = 0; k < u->in[i]->n_dims; k++)
            g_string_append_printf(s, "%s%u", k ? ", " : "", u->in[i]->dim[k]);
        g_string_append_c(s, ']');
    }
    diag_set(u->error, GRAPH_SHAPE, u->r->name, graph_op_text(u->r->kind), s->str);
    g_string_free(s, TRUE);
    return false;
}

/* NumPy broadcasting of the leading `n_a` and `n_b` axes into out[0 .. max). */
static bool broadcast(const struct graph_shape *a, uint32_t n_a, const struct graph_shape *b,
                      uint32_t n_b, struct graph_shape *out) {
    const uint32_t n = n_a > n_b ? n_a : n_b;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t x = i + n_a >= n ? a->dim[i + n_a - n] : 1;
        const uint32_t y = i + n_b >= n ? b->dim[i + n_b - n] : 1;
        if (x != y && x != 1 && y != 1) return false;
        out->dim[i] = x == 1 ? y : x;
    }
    out->n_dims = n;
    return true;
}

static bool rule_gemm(struct rule *u) {
    const struct graph_shape *a = u->in[0], *b = u->in[1];
    const bool ta = u->r->attrs->transpose_left, tb = u->r->attrs->transpose_right;
    if (a->n_dims < 2 || b->n_dims < 2) return refuse(u, "both operands need two axes or more");
    const uint32_t *da = a->dim + a->n_dims - 2, *db = b->dim + b->n_dims - 2;
    if (da[!ta] != db[tb]) return refuse(u, "the inner extents of left and right operand differ");
    if (!broadcast(a, a->n_dims - 2, b, b->n_dims - 2, u->out))
        return refuse(u, "the leading axes do not broadcast");
    u->out->dim[u->out->n_dims++] = da[ta];
    u->out->dim[u->out->n_dims++] = db[!tb];
    return true;
}

static bool rule_pointwise(struct rule *u) {
    if (!broadcast(u->in[0], u->in[0]->n_dims, u->in[1], u->in[1]->n_dims, u->out))
        return refuse(u, "the operands do not broadcast");
    return true;
}

static bool rule_norm(struct rule *u) {
    const struct graph_shape *x = u->in[0];
    if (x->n_dims < 1) return refuse(u, "the operand needs an axis");
    for (uint32_t i = 1; i < u->r->n_operands; i++)
        if (u->in[i]->n_dims != 1 || u->in[i]->dim[0] != x->dim[x->n_dims - 1])
            return refuse(u, "scale and bias must be vectors of the last axis' extent");
    if (!(u->r->attrs->epsilon > 0) || !isfinite(u->r->attrs->epsilon))
        return refuse(u, "epsilon must be positive and finite");
    *u->out = *x;
    return true;
}

static bool rule_attention(struct rule *u) {
    const struct graph_shape *q = u->in[0], *k = u->in[1], *v = u->in[2];
    const uint32_t n = q->n_dims;
    if (n < 2 || k->n_dims != n || v->n_dims != n)
        return refuse(u, "queries, keys and values need the same number of axes, two or more");
    if (memcmp(q->dim, k->dim, (n - 2) * 4) != 0 || memcmp(q->dim, v->dim, (n - 2) * 4) != 0)
        return refuse(u, "the leading axes of queries, keys and values differ");
    if (q->dim[n - 1] != k->dim[n - 1]) return refuse(u, "queries and keys differ in width");
    if (k->dim[n - 2] != v->dim[n - 2]) return refuse(u, "keys and values differ in number");
    if (!isfinite(u->r->attrs->scale) || u->r->attrs->scale < 0)
        return refuse(u, "the scale must be positive and finite");
    *u->out = *q;
    u->out->dim[n - 1] = v->dim[n - 1];
    return true;
}

static bool rule_split(struct rule *u) {
    const struct graph_attrs *a = u->r->attrs;
    *u->out = *u->in[0];
    if (a->axis >= u->out->n_dims || a->into >= u->out->n_dims || a->axis == a->into)
        return refuse(u, "`axis` and `into` must be two different axes of the operand");
    const uint32_t from = u->r->kind == GRAPH_SPLIT ? a->axis : a->into;
    const uint32_t to = u->r->kind == GRAPH_SPLIT ? a->into : a->axis;
    if (a->count == 0 || u->out->dim[from] % a->count != 0)
        return refuse(u, "`count` must divide the extent of the axis that is factored");
    u->out->dim[from] /= a->count;
    u->out->dim[to] *= a->count;
    return true;
}

static bool rule_transpose(struct rule *u) {
    const struct graph_shape *x = u->in[0];
    uint32_t seen = 0;
    u->out->n_dims = x->n_dims;
    for (uint32_t i = 0; i < x->n_dims; i++) {
        const uint32_t p = u->r->attrs->perm[i];
        if (p >= x->n_dims || seen >> p & 1) return refuse(u, "`perm` is not a permutation");
        seen |= 1u << p;
        u->out->dim[i] = x->dim[p];
    }
    return true;
}

static bool rule_slice(struct rule *u) {
    const struct graph_attrs *a = u->r->attrs;
    *u->out = *u->in[0];
    if (a->axis >= u->out->n_dims) return refuse(u, "`axis` is not an axis of the operand");
    if (a->width == 0 || (uint64_t)a->start + a->width > u->out->dim[a->axis])
        return refuse(u, "the window is empty or leaves the axis");
    u->out->dim[a->axis] = a->width;
    return true;
}

static bool rule_concat(struct rule *u) {
    const uint32_t axis = u->r->attrs->axis;
    *u->out = *u->in[0];
    if (axis >= u->out->n_dims) return refuse(u, "`axis` is not an axis of the operands");
    for (uint32_t i = 1; i < u->r->n_operands; i++) {
        if (u->in[i]->n_dims != u->out->n_dims) return refuse(u, "the operands differ in rank");
        for (uint32_t d = 0; d < u->out->n_dims; d++)
            if (d != axis && u->in[i]->dim[d] != u->out->dim[d])
                return refuse(u, "the operands differ in an axis that is not joined");
        u->out->dim[axis] += u->in[i]->dim[axis];
    }
    return true;
}

static bool rule_embed(struct rule *u) {
    const struct graph_shape *x = u->in[0], *indices = u->in[1];
    if (x->n_dims != 2) return refuse(u, "the table needs two axes");
    if (indices->n_dims + 1 > GRAPH_MAX_DIMS) return refuse(u, "too many axes");
    *u->out = *indices;
    u->out->dim[u->out->n_dims++] = x->dim[1];
    return true;
}

static bool apply(struct rule *u) {
    switch (u->r->kind) {
    case GRAPH_GEMM:
        return rule_gemm(u);
    case GRAPH_ADD:
    case GRAPH_MUL:
        return rule_pointwise(u);
    case GRAPH_LAYER_NORM:
    case GRAPH_RMS_NORM:
        return rule_norm(u);
    case GRAPH_ATTENTION:
        return rule_attention(u);
    case GRAPH_SPLIT:
    case GRAPH_MERGE:
        return rule_split(u);
    case GRAPH_TRANSPOSE:
        return rule_transpose(u);
    case GRAPH_SLICE:
        return rule_slice(u);
    case GRAPH_CONCAT:
        return rule_concat(u);
    case GRAPH_EMBED:
        return rule_embed(u);
    case GRAPH_CAST:
        if (u->r->attrs->exponent != 0 && u->r->attrs->format < GRAPH_F8_F143)
            return refuse(u, "`exponent` belongs to the formats f8_143 and f8_152");
        *u->out = *u->in[0];
        return true;
    case GRAPH_GELU:
        *u->out = *u->in[0];
        return true;
    case GRAPH_SOFTMAX:
        if (u->in[0]->n_dims < 1) return refuse(u, "the operand needs an axis");
        *u->out = *u->in[0];
        return true;
    default:
        return refuse(u, "has no shape rule");
    }
}

bool graph_infer_shape(const struct graph *g, const struct graph_request *r,
                       struct graph_shape *ret, GError **error) {
    struct graph_shape out = {0};
    struct rule u = {.g = g, .r = r, .out = &out, .error = error};
    if (r->kind >= GRAPH_N_OPS || r->kind == GRAPH_REPEAT)
        return refuse(&u, "is not a plain operation");
    if (r->n_operands < OPS[r->kind].min || r->n_operands > OPS[r->kind].max)
        return refuse(&u, "has a wrong number of operands");
    for (uint32_t i = 0; i < r->n_operands; i++) {
        if (r->operands[i] >= g->n_values) {
            diag_set(error, GRAPH_UNDEFINED, r->name, i);
            return false;
        }
        u.in[i] = &g->values[r->operands[i]].shape;
        u.n_in = i + 1;
    }
    if (!apply(&u)) return false;
    if (out.n_dims > GRAPH_MAX_DIMS) return refuse(&u, "the result has too many axes");
    *ret = out;
    return true;
}
