/* The parser of the text form (grammar at the head of program_text.c). Line based: values are made
 * as they are read (`inside` is resolved at the end, it may point forward). The result is verified.
 */
#include "program/program.h"
#include "program/program_names.h"

#include <string.h>

struct parser {
    const char *file;
    uint32_t line;
    char **words; /* of the line */
    uint32_t n, at;
    struct program *p;
    GHashTable *names;
    GPtrArray *inside; /* value index, name alternating */
    GError **error;
};

static const char *word(struct parser *s) {
    return s->at < s->n ? s->words[s->at] : "end of line";
}

static bool fail(struct parser *s, const char *what) {
    diag_set(s->error, PROGRAM_SYNTAX, s->file, s->line, what, word(s));
    return false;
}

static bool accept(struct parser *s, const char *text) {
    if (s->at >= s->n || strcmp(s->words[s->at], text) != 0) return false;
    s->at++;
    return true;
}

static bool expect(struct parser *s, const char *text) {
    if (accept(s, text)) return true;
    diag_set(s->error, PROGRAM_SYNTAX, s->file, s->line, text, word(s));
    return false;
}

static bool read_u64(struct parser *s, uint64_t *ret) {
    if (s->at >= s->n || !g_ascii_string_to_unsigned(s->words[s->at], 10, 0, UINT64_MAX, ret, NULL))
        return fail(s, "a whole number");
    s->at++;
    return true;
}

static bool read_u32(struct parser *s, uint32_t *ret) {
    uint64_t v;
    if (!read_u64(s, &v) || v > UINT32_MAX)
        return s->error && *s->error ? false : fail(s, "32 bits");
    *ret = (uint32_t)v;
    return true;
}

static bool read_u32s(struct parser *s, const char *text, uint32_t *ret, uint32_t n) {
    if (!expect(s, text)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!read_u32(s, &ret[i])) return false;
    return true;
}

static bool read_i32(struct parser *s, int32_t *ret) {
    gint64 v;
    if (s->at >= s->n ||
        !g_ascii_string_to_signed(s->words[s->at], 10, INT32_MIN, INT32_MAX, &v, NULL))
        return fail(s, "a whole number");
    *ret = (int32_t)v;
    s->at++;
    return true;
}

static bool read_word(struct parser *s, const char *const *words, uint32_t n, uint8_t *ret) {
    for (uint32_t i = 0; i < n; i++)
        if (accept(s, words[i])) {
            *ret = (uint8_t)i;
            return true;
        }
    return fail(s, "a known word");
}

static bool read_value(struct parser *s, uint32_t *ret) {
    char *name = g_strdup(word(s));
    const size_t n = strlen(name);
    if (n && name[n - 1] == ',') name[n - 1] = 0;
    const void *found = g_hash_table_lookup(s->names, name);
    g_free(name);
    if (!found) return fail(s, "a value's name");
    *ret = GPOINTER_TO_UINT(found) - 1;
    s->at++;
    return true;
}

static bool read_tensor(struct parser *s, struct program_tensor *t) {
    if (s->at >= s->n) return fail(s, "a tensor's name");
    t->name = s->words[s->at++];
    if (!read_u32s(s, "shape", &t->n_dims, 1)) return false;
    if (t->n_dims > ARRAY_LEN(t->shape)) return fail(s, "at most 6 axes");
    for (uint32_t i = 0; i < t->n_dims; i++)
        if (!read_u32(s, &t->shape[i])) return false;
    return expect(s, "offset") && read_u64(s, &t->offset) && expect(s, "steps") &&
           read_u64(s, &t->step[0]) && read_u64(s, &t->step[1]) && read_u64(s, &t->step[2]) &&
           (!accept(s, "bound") || read_u32(s, &t->bound));
}

static bool read_options(struct parser *s, struct program_value *v) {
    while (s->at < s->n) {
        if (accept(s, "exponent")) {
            int32_t e;
            if (!read_i32(s, &e)) return false;
            if (e < -128 || e > 127) return fail(s, "an exponent");
            v->layout.exponent = (int8_t)e;
        } else if (accept(s, "split")) {
            if (!read_u32(s, &v->layout.window_rows) || !read_u32(s, &v->layout.window_cols))
                return false;
        } else if (accept(s, "sequence")) {
            if (!read_u32(s, &v->sequence) || !expect(s, "step") || !read_u64(s, &v->step_sequence))
                return false;
        } else if (accept(s, "part")) {
            if (!read_u32(s, &v->first_part) || !read_u32(s, &v->parts)) return false;
        } else if (accept(s, "wrap")) {
            if (!read_u32(s, &v->layout.wrap)) return false;
        } else if (accept(s, "inside")) {
            g_ptr_array_add(s->inside, GUINT_TO_POINTER(s->p->n_values));
            g_ptr_array_add(s->inside, g_strdup(word(s)));
            s->at++;
        } else {
            if (!read_word(s, PROGRAM_ROLE_TEXT, 4, &v->role) || !read_tensor(s, &v->tensor))
                return false;
        }
    }
    return true;
}

static bool parse_value(struct parser *s) {
    struct program_value v = {.inside = PROGRAM_NONE};
    struct program_layout *l = &v.layout;
    if (s->at >= s->n) return fail(s, "a name");
    v.name = s->words[s->at++];
    if (g_hash_table_contains(s->names, v.name)) return fail(s, "a new name");
    uint32_t shape[3];
    const bool ok = read_word(s, PROGRAM_FORMAT_TEXT, ARRAY_LEN(PROGRAM_FORMAT_TEXT), &l->format) &&
                    read_word(s, PROGRAM_ORDER_TEXT, PROGRAM_N_ORDERS, &l->order) &&
                    read_word(s, PROGRAM_MEMORY_TEXT, 3, &l->memory) &&
                    read_u32s(s, "shape", shape, 3) && read_u32s(s, "parts", l->count, 3) &&
                    read_u32s(s, "grain", l->grain, 3) && read_u32s(s, "pad", l->pad, 3) &&
                    read_u32s(s, "partials", &l->count[PROGRAM_PARTIAL], 1) &&
                    read_u32s(s, "windows", &l->count[PROGRAM_WINDOW], 1) &&
                    read_u32s(s, "of", &l->window_grain, 1) &&
                    read_u32s(s, "replicas", &l->count[PROGRAM_REPLICA], 1) &&
                    read_u32s(s, "owners", &l->base, 1) &&
                    read_u32s(s, "strides", l->stride, PROGRAM_N_AXES) && read_options(s, &v);
    if (!ok) return false;
    v.batch = shape[0];
    v.rows = shape[1];
    v.cols = shape[2];
    const uint32_t i = program_add_value(s->p, &v);
    g_hash_table_insert(s->names, (char *)s->p->values[i].name, GUINT_TO_POINTER(i + 1));
    return true;
}

static bool read_map(struct parser *s, struct program_map *m) {
    for (uint32_t i = 0; i < 3; i++)
        if (!read_u32(s, &m->inner[i])) return false;
    for (uint32_t i = 0; i < 21; i++) {
        int32_t *to = i < 9    ? &m->outer_to[i / 3][i % 3]
                      : i < 18 ? &m->inner_to[(i - 9) / 3][i % 3]
                               : &m->offset[i - 18];
        if (!read_i32(s, to)) return false;
    }
    if (!accept(s, "low")) return true;
    if (!read_u32(s, &m->low)) return false;
    for (uint32_t i = 0; i < 3; i++)
        if (!read_i32(s, &m->low_to[i])) return false;
    return true;
}

static bool read_view(struct parser *s, struct program_view *v) {
    if (!read_u32(s, &v->n)) return false;
    if (v->n == 0 || v->n > PROGRAM_VIEW_DIGITS) return fail(s, "1 to 8 digits");
    for (uint32_t i = 0; i < 2 * v->n; i++)
        if (!read_u32(s, i < v->n ? &v->extent[i] : &v->step[i - v->n])) return false;
    if (!read_u32(s, &v->offset)) return false;
    if (!accept(s, "cut")) return true;
    return read_u32(s, &v->cut) && read_u32(s, &v->cut_from) && read_u32(s, &v->cut_end);
}

static bool read_provenance(struct parser *s, struct program_op *op) {
    if (!expect(s, "for") || s->at >= s->n) return s->at < s->n ? false : fail(s, "an operation");
    op->operation = s->words[s->at++];
    if (!expect(s, "why") || s->at >= s->n) return s->at < s->n ? false : fail(s, "a reason");
    op->reason = s->words[s->at++];
    return true;
}

static bool read_op_options(struct parser *s, struct program_op *op) {
    while (s->at < s->n) {
        uint32_t v;
        if (accept(s, "epilogue")) {
            if (!read_u32(s, &v)) return false;
            op->epilogue = (uint8_t)v;
        } else if (accept(s, "real")) {
            op->real = (float)g_ascii_strtod(word(s), NULL);
            s->at++;
        } else if (accept(s, "map")) {
            if (!read_map(s, &op->map)) return false;
        } else if (accept(s, "view")) {
            if (!read_view(s, &op->view)) return false;
        } else if (accept(s, "more")) {
            op->more = true;
        } else {
            return fail(s, "an option of the operation");
        }
    }
    return true;
}

static bool parse_op(struct parser *s, uint32_t repeat) {
    struct program_op op = {.kind = PROGRAM_COMPUTE, .map = program_map_identity()};
    if (accept(s, "copy")) op.kind = PROGRAM_COPY;
    else if (!read_word(s, PROGRAM_COMPUTE_TEXT, 4, &op.compute)) return false;
    if (op.kind == PROGRAM_COMPUTE && op.compute == PROGRAM_KERNEL &&
        !read_word(s, PROGRAM_KERNEL_TEXT, PROGRAM_N_KERNELS, &op.kernel))
        return false;
    if (!read_value(s, &op.output) || !expect(s, "=")) return false;
    for (bool more = s->at < s->n && strcmp(s->words[s->at], "for") != 0; more;) {
        if (op.n_inputs == PROGRAM_MAX_INPUTS) return fail(s, "fewer inputs");
        more = g_str_has_suffix(word(s), ",");
        if (!read_value(s, &op.inputs[op.n_inputs++])) return false;
    }
    if (!read_provenance(s, &op) || !read_op_options(s, &op)) return false;
    program_add_op(s->p, &op, repeat);
    return true;
}

static bool parse_result(struct parser *s) {
    struct program_result r = {0};
    if (!read_value(s, &r.value) || !expect(s, "holds") || !read_tensor(s, &r.tensor)) return false;
    program_add_result(s->p, &r);
    return true;
}

static bool next_line(struct parser *s, const char *text) {
    g_strfreev(s->words);
    GString *clean = g_string_new(NULL);
    for (const char *c = text; *c && *c != '#'; c++)
        g_string_append_c(clean, *c == '\t' ? ' ' : *c);
    char **all = g_strsplit(clean->str, " ", -1);
    uint32_t n = 0;
    for (uint32_t i = 0; all[i]; i++) {
        if (*all[i]) all[n++] = all[i];
        else g_free(all[i]);
    }
    all[n] = NULL;
    s->words = all;
    s->n = n;
    s->at = 0;
    s->line++;
    g_string_free(clean, TRUE);
    return n > 0;
}

struct open_repeat {
    struct program_op op;
    struct program_repeat r;
    GArray *carried, *iterated;
    uint32_t index; /* PROGRAM_NONE until its first operation */
    bool open;
};

static bool parse_repeat_line(struct parser *s, struct open_repeat *o) {
    if (accept(s, "carried")) {
        struct program_carried c;
        if (!read_value(s, &c.initial) || !read_value(s, &c.argument) || !read_value(s, &c.yield))
            return false;
        g_array_append_val(o->carried, c);
        return true;
    }
    if (accept(s, "iterated")) {
        struct program_iterated i;
        if (!read_value(s, &i.sequence) || !read_value(s, &i.argument)) return false;
        g_array_append_val(o->iterated, i);
        return true;
    }
    if (o->index == PROGRAM_NONE) {
        o->r.n_carried = o->carried->len;
        o->r.carried = (struct program_carried *)o->carried->data;
        o->r.n_iterated = o->iterated->len;
        o->r.iterated = (struct program_iterated *)o->iterated->data;
        o->index = o->op.repeat = program_add_repeat(s->p, &o->r);
        program_add_op(s->p, &o->op, PROGRAM_NONE);
    }
    if (!accept(s, "end")) return parse_op(s, o->index);
    o->open = false;
    g_array_set_size(o->carried, 0);
    g_array_set_size(o->iterated, 0);
    return true;
}

static bool parse_line(struct parser *s, struct open_repeat *o) {
    if (o->open) return parse_repeat_line(s, o);
    if (accept(s, "value")) return parse_value(s);
    if (accept(s, "result")) return parse_result(s);
    if (!accept(s, "repeat")) return parse_op(s, PROGRAM_NONE);
    o->op = (struct program_op){
        .kind = PROGRAM_REPEAT, .output = PROGRAM_NONE, .map = program_map_identity()};
    o->r = (struct program_repeat){0};
    o->index = PROGRAM_NONE;
    o->open = true;
    if (!read_u32s(s, "count", &o->r.count, 1) || !read_provenance(s, &o->op)) return false;
    o->op.operation = arena_strdup(s->p->arena, o->op.operation); /* the line's words go */
    o->op.reason = arena_strdup(s->p->arena, o->op.reason);
    return true;
}

static bool resolve_inside(struct parser *s) {
    for (uint32_t i = 0; i < s->inside->len; i += 2) {
        const void *found = g_hash_table_lookup(s->names, s->inside->pdata[i + 1]);
        if (!found) {
            diag_set(s->error, PROGRAM_SYNTAX, s->file, s->line, "a value to be inside",
                     (const char *)s->inside->pdata[i + 1]);
            return false;
        }
        s->p->values[GPOINTER_TO_UINT(s->inside->pdata[i])].inside = GPOINTER_TO_UINT(found) - 1;
    }
    return true;
}

static bool parse_header(struct parser *s) {
    uint32_t tiles;
    if (!expect(s, "program") || s->at >= s->n) return s->at < s->n ? false : fail(s, "a name");
    const char *name = s->words[s->at++];
    if (!read_u32s(s, "tiles", &tiles, 1)) return false;
    s->p = program_new(name, tiles);
    return true;
}

struct program *program_parse(const char *text, const char *file_name, GError **error) {
    GError *local = NULL;
    struct parser s = {.file = file_name,
                       .error = &local,
                       .names = g_hash_table_new(g_str_hash, g_str_equal),
                       .inside = g_ptr_array_new()};
    struct open_repeat o = {.carried = g_array_new(FALSE, FALSE, sizeof(struct program_carried)),
                            .iterated = g_array_new(FALSE, FALSE, sizeof(struct program_iterated))};
    char **lines = g_strsplit(text, "\n", -1);
    bool ok = true;
    for (uint32_t i = 0; ok && lines[i]; i++) {
        if (!next_line(&s, lines[i])) continue;
        ok = s.p ? parse_line(&s, &o) : parse_header(&s);
    }
    if (ok && (!s.p || o.open)) {
        s.at = s.n;
        ok = fail(&s, s.p ? "`end` of the repeat" : "`program NAME tiles N`");
    }
    ok = ok && resolve_inside(&s) && program_verify(s.p, &local);
    for (uint32_t i = 1; i < s.inside->len; i += 2) g_free(s.inside->pdata[i]);
    g_ptr_array_free(s.inside, TRUE);
    g_hash_table_destroy(s.names);
    g_array_free(o.carried, TRUE);
    g_array_free(o.iterated, TRUE);
    g_strfreev(lines);
    g_strfreev(s.words);
    if (ok) return s.p;
    program_free(s.p);
    g_propagate_error(error, local);
    return NULL;
}
