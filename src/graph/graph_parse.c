/* The parser of the text form (grammar at the head of graph_text.c). One pass over tokens that
 * builds the graph through the builder functions, so that every rule of the builder holds; an error
 * names file and line. Comments run from # to the end of the line. */
#include "graph/graph.h"
#include "graph/graph_names.h"

#include <math.h>
#include <string.h>

enum { TOKEN_MAX = 128, LIST_MAX = 64 };

struct parser {
    const char *file, *p;
    uint32_t line, statement; /* of the token; of the statement's first word */
    char token[TOKEN_MAX]; /* "" at the end */
    uint32_t n_list; /* numbers of the statement's list */
    struct graph *g;
    GHashTable *names; /* name -> value + 1 */
    GError **error;
};

static bool fail(struct parser *s, const char *what) {
    if (s->error && *s->error) { /* a builder's message: put the place in front */
        g_prefix_error(s->error, "%s:%u: ", s->file, s->statement);
        return false;
    }
    diag_set(s->error, GRAPH_SYNTAX, s->file, s->line, what,
             s->token[0] ? s->token : "end of file");
    return false;
}

/* What is wrong was read before the token at hand. */
static bool fail_name(struct parser *s, const char *what, const char *name) {
    diag_set(s->error, GRAPH_SYNTAX, s->file, s->statement, what, name);
    return false;
}

static bool word_char(char c) {
    return g_ascii_isalnum(c) || c == '_' || c == '.' || c == '-' || c == '+' || c == '/' ||
           c == '%';
}

static void next(struct parser *s) {
    for (;; s->p++) {
        if (*s->p == '#')
            while (*s->p && *s->p != '\n') s->p++;
        if (*s->p == '\n') s->line++;
        if (!g_ascii_isspace(*s->p)) break;
    }
    uint32_t n = 0;
    if (*s->p && !word_char(*s->p)) {
        s->token[n++] = *s->p++;
    } else {
        while (word_char(*s->p) && n + 1 < TOKEN_MAX) s->token[n++] = *s->p++;
    }
    s->token[n] = 0;
}

static bool is(const struct parser *s, const char *text) {
    return strcmp(s->token, text) == 0;
}

static bool accept(struct parser *s, const char *text) {
    if (!is(s, text)) return false;
    next(s);
    return true;
}

static bool expect(struct parser *s, const char *text, const char *what) {
    return accept(s, text) || fail(s, what);
}

static bool read_u32(struct parser *s, uint32_t *ret) {
    guint64 v;
    if (!g_ascii_string_to_unsigned(s->token, 10, 0, UINT32_MAX, &v, NULL))
        return fail(s, "expected a whole number");
    *ret = (uint32_t)v;
    next(s);
    return true;
}

static bool read_real(struct parser *s, double *ret) {
    char *end;
    *ret = g_ascii_strtod(s->token, &end);
    if (end == s->token || *end || !isfinite(*ret)) return fail(s, "expected a number");
    next(s);
    return true;
}

static bool read_limit(struct parser *s, double *ret) {
    if (s->token[0] == '-') return fail(s, "expected a number of at least 0");
    return read_real(s, ret);
}

static bool read_integer(struct parser *s, int32_t *ret) {
    gint64 v;
    if (!g_ascii_string_to_signed(s->token, 10, G_MININT32, G_MAXINT32, &v, NULL))
        return fail(s, "expected a whole number");
    *ret = (int32_t)v;
    next(s);
    return true;
}

static bool read_word(struct parser *s, const char *const *words, uint32_t n, uint32_t *ret) {
    for (uint32_t i = 0; i < n; i++)
        if (is(s, words[i])) {
            *ret = i;
            next(s);
            return true;
        }
    return fail(s, "unknown word");
}

static bool read_shape(struct parser *s, struct graph_shape *ret) {
    struct graph_shape shape = {0};
    if (!expect(s, "[", "expected [ before a shape")) return false;
    while (!accept(s, "]")) {
        if (shape.n_dims == GRAPH_MAX_DIMS) return fail(s, "too many axes");
        if (shape.n_dims && !expect(s, ",", "expected , between axes")) return false;
        if (!read_u32(s, &shape.dim[shape.n_dims])) return false;
        if (shape.dim[shape.n_dims++] == 0) return fail(s, "an axis of extent 0");
    }
    *ret = shape;
    return true;
}

static bool read_new_name(struct parser *s, char *ret) {
    if (s->token[0] != '%' || !s->token[1]) return fail(s, "expected %name");
    strcpy(ret, s->token + 1);
    next(s);
    return true;
}

static bool read_value(struct parser *s, uint32_t *ret) {
    if (s->token[0] != '%') return fail(s, "expected %name");
    const void *found = g_hash_table_lookup(s->names, s->token + 1);
    if (!found) return fail(s, "no such value here");
    *ret = GPOINTER_TO_UINT(found) - 1;
    next(s);
    return true;
}

static bool define(struct parser *s, uint32_t value) {
    const char *name = s->g->values[value].name;
    if (g_hash_table_contains(s->names, name)) return fail_name(s, "the name is used twice", name);
    g_hash_table_insert(s->names, (char *)name, GUINT_TO_POINTER(value + 1));
    s->g->values[value].line = s->statement;
    return true;
}

static bool parse_source(struct parser *s, const char *name, bool input) {
    struct graph_shape shape;
    struct graph_fill fill = {0};
    if (!read_shape(s, &shape)) return false;
    if (accept(s, "fill")) {
        uint32_t kind;
        double a, b;
        if (!read_word(s, GRAPH_FILL_TEXT, ARRAY_LEN(GRAPH_FILL_TEXT), &kind) ||
            !read_real(s, &a) || !read_real(s, &b))
            return false;
        fill = (struct graph_fill){(uint8_t)kind, (float)a, (float)b};
    }
    return define(s, input ? graph_add_input(s->g, name, shape, fill)
                           : graph_add_parameter(s->g, name, shape, fill));
}

#define READ_FLAG(field)    a->field = 1, ok = true
#define READ_COUNT(field)   ok = read_u32(s, &a->field)
#define READ_INTEGER(field) ok = read_integer(s, &a->field)
#define READ_REAL(field)    ok = read_real(s, &real), a->field = (float)real
#define READ_FORM(field)    ok = read_word(s, GRAPH_FORM_TEXT, 2, &word), a->field = (uint8_t)word
#define READ_FORMAT(field)  ok = read_word(s, GRAPH_FORMAT_TEXT, 4, &word), a->field = word
#define READ_LIST(field)                                                                           \
    ok = true;                                                                                     \
    for (s->n_list = 0; ok && s->n_list < GRAPH_MAX_DIMS && g_ascii_isdigit(s->token[0]);)         \
    ok = read_u32(s, &a->field[s->n_list++])

/* One attribute whose word is the token; false with *ret_known = false when it is none. */
static bool parse_attr(struct parser *s, uint32_t attrs, struct graph_attrs *a, bool *ret_known) {
    bool ok = false;
    double real = 0;
    uint32_t word = 0;
    *ret_known = true;
#define GRAPH_ATTR(name, bit, text, kind, field)                                                   \
    if ((attrs >> (bit)&1) && accept(s, text)) {                                                   \
        READ_##kind(field);                                                                        \
        return ok;                                                                                 \
    }
#include "graph/attr.def"
#undef GRAPH_ATTR
    *ret_known = false;
    return false;
}

static bool parse_plain(struct parser *s, uint32_t kind, const char *name) {
    uint32_t operands[LIST_MAX], n = 0;
    do {
        if (n == LIST_MAX) return fail(s, "too many operands");
        if (!read_value(s, &operands[n++])) return false;
    } while (accept(s, ","));
    struct graph_attrs attrs = {0};
    s->n_list = 0;
    for (bool known = true; known;)
        if (!parse_attr(s, graph_op_attrs(kind), &attrs, &known) && known) return false;
    if ((graph_op_attrs(kind) & GRAPH_ATTR_PERM) != 0 &&
        s->n_list != s->g->values[operands[0]].shape.n_dims)
        return fail_name(s, "`perm` needs one number for each axis of the operand", name);
    const uint32_t v = graph_add_op(s->g, kind, name, operands, n, &attrs, s->error);
    if (v == GRAPH_NONE) return fail(s, "");
    if (accept(s, ":")) {
        struct graph_shape shape;
        if (!read_shape(s, &shape)) return false;
        if (!graph_shape_equal(&shape, &s->g->values[v].shape))
            return fail_name(s, "the written shape is not the one that the operands give", name);
    }
    return define(s, v);
}

static bool parse_statement(struct parser *s);

struct repeat_text {
    char results[LIST_MAX][TOKEN_MAX], arguments[LIST_MAX][TOKEN_MAX];
    uint32_t n_results, operands[LIST_MAX], values[LIST_MAX];
    uint32_t line;
};

static bool parse_group(struct parser *s, struct repeat_text *t, uint32_t *n, uint32_t *ret_count) {
    const uint32_t first = *n;
    do {
        if (*n == LIST_MAX) return fail(s, "too many operands");
        if (!read_new_name(s, t->arguments[*n]) || !expect(s, "=", "expected =") ||
            !read_value(s, &t->operands[*n]))
            return false;
        ++*n;
    } while (accept(s, ","));
    *ret_count = *n - first;
    return true;
}

static bool parse_body(struct parser *s, struct repeat_text *t, uint32_t n_arguments) {
    for (uint32_t i = 0; i < n_arguments; i++)
        if (!define(s, t->values[i])) return false;
    while (!is(s, "yield"))
        if (!s->token[0] || !parse_statement(s)) return s->token[0] ? false : fail(s, "no yield");
    s->statement = t->line;
    next(s);
    uint32_t yields[LIST_MAX];
    for (uint32_t i = 0; i < t->n_results; i++) {
        if (i && !expect(s, ",", "expected ,")) return false;
        if (!read_value(s, &yields[i])) return false;
    }
    if (!expect(s, "}", "expected } behind the yields")) return false;
    const struct graph_block *b = &s->g->blocks[s->g->open_block];
    for (uint32_t i = 0; i < b->n_arguments; i++)
        g_hash_table_remove(s->names, s->g->values[b->arguments[i]].name);
    for (uint32_t i = 0; i < b->n_ops; i++)
        g_hash_table_remove(s->names, s->g->values[s->g->ops[b->ops[i]].results[0]].name);
    const char *names[LIST_MAX];
    for (uint32_t i = 0; i < t->n_results; i++) names[i] = t->results[i];
    uint32_t results[LIST_MAX];
    if (!graph_repeat_end(s->g, yields, names, results, s->error)) return fail(s, "");
    for (uint32_t i = 0; i < t->n_results; i++)
        if (!define(s, results[i])) return false;
    return true;
}

static bool parse_repeat(struct parser *s, struct repeat_text *t) {
    char name[TOKEN_MAX];
    struct graph_repeat_request r = {.name = name, .operands = t->operands};
    strcpy(name, s->token);
    next(s);
    if (!expect(s, "count", "expected count") || !read_u32(s, &r.count)) return false;
    uint32_t n = 0;
    if (accept(s, "carried") && !parse_group(s, t, &n, &r.n_carried)) return false;
    if (accept(s, "invariant") && !parse_group(s, t, &n, &r.n_invariant)) return false;
    if (accept(s, "iterated") && !parse_group(s, t, &n, &r.n_iterated)) return false;
    if (t->n_results != r.n_carried) return fail(s, "one result per carried operand is needed");
    if (!expect(s, "{", "expected { before the body")) return false;
    const char *names[LIST_MAX];
    for (uint32_t i = 0; i < n; i++) names[i] = t->arguments[i];
    r.argument_names = names;
    if (!graph_repeat_begin(s->g, &r, t->values, s->error)) return fail(s, "");
    return parse_body(s, t, n);
}

static bool parse_definition(struct parser *s) {
    struct repeat_text *t = g_new0(struct repeat_text, 1);
    t->line = s->statement;
    bool ok = true;
    do {
        if (t->n_results == LIST_MAX) ok = fail(s, "too many results");
        ok = ok && read_new_name(s, t->results[t->n_results++]);
    } while (ok && accept(s, ","));
    ok = ok && expect(s, "=", "expected =");
    if (ok && (is(s, "input") || is(s, "parameter"))) {
        const bool input = is(s, "input");
        next(s);
        ok = parse_source(s, t->results[0], input);
    } else if (ok && accept(s, "repeat")) {
        ok = parse_repeat(s, t);
    } else if (ok) {
        uint32_t kind = 0;
        while (kind < GRAPH_N_OPS && !is(s, graph_op_text(kind))) kind++;
        if (kind == GRAPH_N_OPS || kind == GRAPH_REPEAT) {
            ok = fail(s, "unknown operation");
        } else {
            next(s);
            ok = parse_plain(s, kind, t->results[0]);
        }
    }
    g_free(t);
    return ok;
}

static bool parse_output(struct parser *s) {
    struct graph_output o = {.line = s->statement};
    if (!read_value(s, &o.value)) return false;
    for (;;) {
        if (accept(s, "exact")) {
            o.exact = true;
        } else if (accept(s, "atol")) {
            if (!read_limit(s, &o.atol)) return false;
        } else if (accept(s, "rtol")) {
            if (!read_limit(s, &o.rtol)) return false;
        } else if (accept(s, "rms")) {
            if (!read_limit(s, &o.rms)) return false;
        } else {
            break;
        }
    }
    graph_add_output(s->g, o);
    return true;
}

static bool parse_statement(struct parser *s) {
    s->statement = s->line;
    if (s->token[0] == '%') return parse_definition(s);
    if (accept(s, "output")) return parse_output(s);
    return fail(s, "expected a definition or an output");
}

struct graph *graph_parse(const char *text, const char *file_name, GError **error) {
    GError *local = NULL;
    struct parser s = {.file = file_name, .p = text, .line = 1, .error = &local};
    next(&s);
    bool ok = expect(&s, "graph", "expected `graph NAME`") &&
              (s.token[0] || fail(&s, "expected the graph's name"));
    if (ok) {
        s.g = graph_new(s.token);
        s.g->file = arena_strdup(s.g->arena, file_name);
        s.g->line = s.line;
        s.names = g_hash_table_new(g_str_hash, g_str_equal);
        next(&s);
        while (ok && s.token[0]) ok = parse_statement(&s);
        ok = ok && graph_verify(s.g, &local);
        g_hash_table_destroy(s.names);
    }
    if (ok) return s.g;
    graph_free(s.g);
    g_propagate_error(error, local);
    return NULL;
}
