/* The printer of the text form. One line per value or operation; graph_parse.c reads it back.
 *
 *   graph NAME
 *   %x = input [2, 3] fill normal 1 0
 *   %w = parameter [3, 4] fill normal 0.5 0
 *   %y = gemm %x, %w transpose_right : [2, 4]
 *   %z = repeat NAME count 3 carried %c = %y invariant %i = %x iterated %s = %p {
 *     %t = add %c, %s : [2, 4]
 *     yield %t
 *   }
 *   output %z atol 0.02 rtol 0 [rms R] [exact]
 *
 * docs/graph.md lists fills, operations and attributes.
 */
#include "graph/graph.h"
#include "graph/graph_names.h"

static void print_shape(const struct graph_shape *s, GString *out) {
    g_string_append_c(out, '[');
    for (uint32_t i = 0; i < s->n_dims; i++)
        g_string_append_printf(out, "%s%" G_GUINT32_FORMAT, i ? ", " : "", s->dim[i]);
    g_string_append_c(out, ']');
}

static void print_real(GString *out, double v) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(out, g_ascii_formatd(text, sizeof text, "%.9g", v));
}

static void print_source(const struct graph_value *v, GString *out) {
    g_string_append_printf(out, "%%%s = %s ", v->name,
                           v->kind == GRAPH_INPUT ? "input" : "parameter");
    print_shape(&v->shape, out);
    g_string_append_printf(out, " fill %s ", GRAPH_FILL_TEXT[v->fill.kind]);
    print_real(out, (double)v->fill.a);
    g_string_append_c(out, ' ');
    print_real(out, (double)v->fill.b);
    g_string_append_c(out, '\n');
}

static void print_list(const struct graph_attrs *a, const struct graph_op *op,
                       const struct graph *g, GString *out) {
    const uint32_t n = g->values[op->results[0]].shape.n_dims;
    g_string_append(out, " perm");
    for (uint32_t i = 0; i < n; i++) g_string_append_printf(out, " %u", a->perm[i]);
}

#define PRINT_FLAG(text, field)                                                                    \
    if (a->field) g_string_append(out, " " text)
#define PRINT_COUNT(text, field)                                                                   \
    if (a->field) g_string_append_printf(out, " %s %u", text, (unsigned)a->field)
#define PRINT_INTEGER(text, field)                                                                 \
    if (a->field) g_string_append_printf(out, " %s %d", text, (int)a->field)
#define PRINT_REAL(text, field)                                                                    \
    if (a->field != 0) g_string_append(out, " " text " "), print_real(out, (double)a->field)
#define PRINT_FORM(text, field)                                                                    \
    if (a->field) g_string_append_printf(out, " %s %s", text, GRAPH_FORM_TEXT[a->field])
#define PRINT_FORMAT(text, field)                                                                  \
    if (a->field) g_string_append_printf(out, " %s %s", text, GRAPH_FORMAT_TEXT[a->field])
#define PRINT_LIST(text, field) print_list(a, op, g, out)

static void print_attrs(const struct graph *g, const struct graph_op *op, GString *out) {
    const struct graph_attrs *a = &op->attrs;
    const uint32_t attrs = graph_op_attrs(op->kind);
#define GRAPH_ATTR(name, bit, text, kind, field)                                                   \
    if (attrs >> (bit)&1) {                                                                        \
        PRINT_##kind(text, field);                                                                 \
    }
#include "graph/attr.def"
#undef GRAPH_ATTR
}

static void print_block(const struct graph *g, uint32_t block, const char *indent, GString *out);

static void print_repeat(const struct graph *g, const struct graph_op *op, GString *out) {
    static const char *const GROUPS[] = {"carried", "invariant", "iterated"};
    const struct graph_repeat *r = &op->repeat;
    const uint32_t counts[] = {r->n_carried, r->n_invariant, r->n_iterated};
    const struct graph_block *b = &g->blocks[r->body];
    for (uint32_t k = 0, i = 0; k < 3; k++) {
        if (counts[k]) g_string_append_printf(out, " %s", GROUPS[k]);
        for (uint32_t j = 0; j < counts[k]; j++, i++)
            g_string_append_printf(out, "%s %%%s = %%%s", j ? "," : "",
                                   g->values[b->arguments[i]].name,
                                   g->values[op->operands[i]].name);
    }
    g_string_append(out, " {\n");
    print_block(g, r->body, "  ", out);
    g_string_append(out, "  yield");
    for (uint32_t i = 0; i < b->n_yields; i++)
        g_string_append_printf(out, "%s %%%s", i ? "," : "", g->values[b->yields[i]].name);
    g_string_append(out, "\n}\n");
}

static void print_op(const struct graph *g, const struct graph_op *op, GString *out) {
    for (uint32_t i = 0; i < op->n_results; i++)
        g_string_append_printf(out, "%s%%%s", i ? ", " : "", g->values[op->results[i]].name);
    g_string_append_printf(out, " = %s", graph_op_text(op->kind));
    if (op->kind == GRAPH_REPEAT) {
        g_string_append_printf(out, " %s count %u", op->name, op->attrs.count);
        print_repeat(g, op, out);
        return;
    }
    for (uint32_t i = 0; i < op->n_operands; i++)
        g_string_append_printf(out, "%s %%%s", i ? "," : "", g->values[op->operands[i]].name);
    print_attrs(g, op, out);
    g_string_append(out, " : ");
    print_shape(&g->values[op->results[0]].shape, out);
    g_string_append_c(out, '\n');
}

static void print_block(const struct graph *g, uint32_t block, const char *indent, GString *out) {
    for (uint32_t i = 0; i < g->blocks[block].n_ops; i++) {
        g_string_append(out, indent);
        print_op(g, &g->ops[g->blocks[block].ops[i]], out);
    }
}

void graph_print(const struct graph *g, GString *out) {
    g_string_append_printf(out, "graph %s\n", g->name);
    for (uint32_t i = 0; i < g->n_values; i++)
        if (g->values[i].kind == GRAPH_INPUT || g->values[i].kind == GRAPH_PARAMETER)
            print_source(&g->values[i], out);
    print_block(g, 0, "", out);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const struct graph_output *o = &g->outputs[i];
        g_string_append_printf(out, "output %%%s atol ", g->values[o->value].name);
        print_real(out, o->atol);
        g_string_append(out, " rtol ");
        print_real(out, o->rtol);
        if (o->rms != 0) g_string_append(out, " rms "), print_real(out, o->rms);
        g_string_append(out, o->exact ? " exact\n" : "\n");
    }
}
