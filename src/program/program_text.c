/* The printer of the text form; program_parse.c reads it back. One line per value, then one line
 * per operation in order:
 *
 *   program NAME tiles 64
 *   value x.left f16 amp_left any shape 1 729 1152 parts 1 4 4 grain 1 1 16 pad 1 1 16
 *     partials 1 windows 1 of 32 replicas 90 owners 0 strides 0 360 90 0 0 1
 *     [split ROWS COLS] [exponent E] [sequence N step S] [inside NAME]
 *     [part FIRST PARTS] [wrap PARTS]
 *     [input|parameter|output NAME shape N D.. offset O steps B R C]
 *   copy y = x for OP why REASON [map INNER3 OUTER9 INNER9 OFFSET3 [low LOW TO3]]
 *     [view N EXTENT.. STEP.. OFFSET [cut DIGIT FROM END]] [more]
 *   product y = a, w for OP why REASON
 *   kernel gelu y = x for OP why REASON [real R]
 *   sum y = x[, more] for OP why REASON [epilogue SET]
 *   cast y = x for OP why REASON
 *   repeat count 27 for OP why REASON
 *     carried INITIAL ARGUMENT YIELD
 *     iterated SEQUENCE ARGUMENT
 *     operations of the body
 *   end
 *   result VALUE holds NAME shape N D.. offset O steps B R C
 */
#include "program/program.h"
#include "program/program_names.h"

#include <string.h>

static void print_u32s(GString *out, const char *word, const uint32_t *v, uint32_t n) {
    g_string_append_printf(out, " %s", word);
    for (uint32_t i = 0; i < n; i++) g_string_append_printf(out, " %u", v[i]);
}

static void print_tensor(const char *word, const struct program_tensor *t, GString *out) {
    g_string_append_printf(out, " %s %s", word, t->name);
    g_string_append_printf(out, " shape %u", t->n_dims);
    for (uint32_t i = 0; i < t->n_dims; i++) g_string_append_printf(out, " %u", t->shape[i]);
    g_string_append_printf(out,
                           " offset %" G_GUINT64_FORMAT " steps %" G_GUINT64_FORMAT
                           " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                           t->offset, t->step[0], t->step[1], t->step[2]);
    if (t->bound) g_string_append_printf(out, " bound %u", t->bound);
}

static void print_value(const struct program *p, const struct program_value *v, GString *out) {
    const struct program_layout *l = &v->layout;
    const uint32_t shape[3] = {v->batch, v->rows, v->cols};
    g_string_append_printf(out, "value %s %s %s %s", v->name, PROGRAM_FORMAT_TEXT[l->format],
                           PROGRAM_ORDER_TEXT[l->order], PROGRAM_MEMORY_TEXT[l->memory]);
    print_u32s(out, "shape", shape, 3);
    print_u32s(out, "parts", l->count, 3);
    print_u32s(out, "grain", l->grain, 3);
    print_u32s(out, "pad", l->pad, 3);
    g_string_append_printf(out, " partials %u windows %u of %u replicas %u owners %u",
                           l->count[PROGRAM_PARTIAL], l->count[PROGRAM_WINDOW], l->window_grain,
                           l->count[PROGRAM_REPLICA], l->base);
    print_u32s(out, "strides", l->stride, PROGRAM_N_AXES);
    if (l->window_rows) g_string_append_printf(out, " split %u %u", l->window_rows, l->window_cols);
    if (l->exponent) g_string_append_printf(out, " exponent %d", l->exponent);
    if (v->sequence)
        g_string_append_printf(out, " sequence %u step %" G_GUINT64_FORMAT, v->sequence,
                               v->step_sequence);
    if (v->inside != PROGRAM_NONE)
        g_string_append_printf(out, " inside %s", p->values[v->inside].name);
    if (v->parts) g_string_append_printf(out, " part %u %u", v->first_part, v->parts);
    if (l->wrap) g_string_append_printf(out, " wrap %u", l->wrap);
    if (v->role != PROGRAM_LOCAL) print_tensor(PROGRAM_ROLE_TEXT[v->role], &v->tensor, out);
    g_string_append_c(out, '\n');
}

static void print_map(const struct program_map *m, GString *out) {
    const struct program_map identity = program_map_identity();
    if (memcmp(m, &identity, sizeof identity) == 0) return;
    print_u32s(out, "map", m->inner, 3);
    for (uint32_t i = 0; i < 9; i++) g_string_append_printf(out, " %d", m->outer_to[i / 3][i % 3]);
    for (uint32_t i = 0; i < 9; i++) g_string_append_printf(out, " %d", m->inner_to[i / 3][i % 3]);
    for (uint32_t i = 0; i < 3; i++) g_string_append_printf(out, " %d", m->offset[i]);
    if (m->low == 0) return;
    print_u32s(out, "low", &m->low, 1);
    for (uint32_t i = 0; i < 3; i++) g_string_append_printf(out, " %d", m->low_to[i]);
}

static void print_view(const struct program_view *v, GString *out) {
    if (v->n == 0) return;
    g_string_append_printf(out, " view %u", v->n);
    for (uint32_t i = 0; i < v->n; i++) g_string_append_printf(out, " %u", v->extent[i]);
    for (uint32_t i = 0; i < v->n; i++) g_string_append_printf(out, " %u", v->step[i]);
    g_string_append_printf(out, " %u", v->offset);
    if (v->cut_end) g_string_append_printf(out, " cut %u %u %u", v->cut, v->cut_from, v->cut_end);
}

static void print_op(const struct program *p, const struct program_op *op, const char *indent,
                     GString *out) {
    g_string_append_printf(out, "%s%s", indent,
                           op->kind == PROGRAM_COPY ? "copy" : PROGRAM_COMPUTE_TEXT[op->compute]);
    if (op->kind == PROGRAM_COMPUTE && op->compute == PROGRAM_KERNEL)
        g_string_append_printf(out, " %s", PROGRAM_KERNEL_TEXT[op->kernel]);
    g_string_append_printf(out, " %s =", p->values[op->output].name);
    for (uint32_t i = 0; i < op->n_inputs; i++)
        g_string_append_printf(out, "%s %s", i ? "," : "", p->values[op->inputs[i]].name);
    g_string_append_printf(out, " for %s why %s", op->operation, op->reason);
    if (op->kind == PROGRAM_COPY) {
        print_map(&op->map, out);
        print_view(&op->view, out);
        if (op->more) g_string_append(out, " more");
    }
    if (op->epilogue) g_string_append_printf(out, " epilogue %u", op->epilogue);
    if (op->real != 0) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(out, " real %s",
                               g_ascii_formatd(text, sizeof text, "%.9g", (double)op->real));
    }
    g_string_append_c(out, '\n');
}

static void print_repeat(const struct program *p, const struct program_op *op, GString *out) {
    const struct program_repeat *r = &p->repeats[op->repeat];
    g_string_append_printf(out, "repeat count %u for %s why %s\n", r->count, op->operation,
                           op->reason);
    for (uint32_t i = 0; i < r->n_carried; i++)
        g_string_append_printf(out, "  carried %s %s %s\n", p->values[r->carried[i].initial].name,
                               p->values[r->carried[i].argument].name,
                               p->values[r->carried[i].yield].name);
    for (uint32_t i = 0; i < r->n_iterated; i++)
        g_string_append_printf(out, "  iterated %s %s\n", p->values[r->iterated[i].sequence].name,
                               p->values[r->iterated[i].argument].name);
    for (uint32_t i = 0; i < r->n_ops; i++) print_op(p, &p->ops[r->ops[i]], "  ", out);
    g_string_append(out, "end\n");
}

void program_print(const struct program *p, GString *out) {
    g_string_append_printf(out, "program %s tiles %u\n", p->name, p->n_tiles);
    for (uint32_t i = 0; i < p->n_values; i++) print_value(p, &p->values[i], out);
    for (uint32_t i = 0; i < p->n_main; i++) {
        const struct program_op *op = &p->ops[p->main[i]];
        if (op->kind == PROGRAM_REPEAT) print_repeat(p, op, out);
        else print_op(p, op, "", out);
    }
    for (uint32_t i = 0; i < p->n_results; i++) {
        g_string_append_printf(out, "result %s", p->values[p->results[i].value].name);
        print_tensor("holds", &p->results[i].tensor, out);
        g_string_append_c(out, '\n');
    }
}
