/* Macros and repetition. Bodies are kept as statements and expanded by substitution of their
 * parameters, with a frame that tells messages where the expansion was asked for. Arguments are cut
 * as GNU as does: at commas and at blanks that no operator adjoins, quotes taken off. Cost: linear
 * in the text produced, which is bounded, as are depth and number of repetitions. */
#include "isa/isa_as.h"

#include <ctype.h>
#include <string.h>

enum { MAX_REPEATED = 250 * 1000, MAX_LINE = 16 * 1024, MAX_PARAMETERS = 64 };

struct macro_param {
    const char *name, *value; /* default, or the argument */
    bool required, vararg;
};
struct as_macro {
    const char *name;
    struct macro_param *params;
    uint32_t n_params;
    struct as_stmt *body;
    uint32_t n_body;
    struct as_loc loc;
};

/* --- Bodies. --- */

static bool starts_body(const char *d) {
    return strcmp(d, ".macro") == 0 || strcmp(d, ".rept") == 0 || strcmp(d, ".irp") == 0 ||
           strcmp(d, ".irpc") == 0 || strcmp(d, ".rep") == 0;
}
static bool ends_body(const char *d) {
    return strcmp(d, ".endm") == 0 || strcmp(d, ".endr") == 0 || strcmp(d, ".endmacro") == 0;
}

/* Directive a statement begins with (labels before it are not looked behind), or "". */
static const char *leading_directive(struct as *as, const struct as_stmt *stmt) {
    struct as_cursor c = {stmt, stmt->begin};
    const char *name = as_peek(&c) == '.' ? as_ident(as, &c) : NULL;
    return name != NULL ? name : "";
}

/* Reads statements up to the matching end; false after a message at the end of the input. */
static bool read_body(struct as *as, struct as_loc loc, struct as_stmt **ret, uint32_t *ret_n) {
    struct as_input *in = as->input;
    const uint32_t first = in->next;
    for (uint32_t depth = 1; in->next < in->n; in->next++) {
        const char *d = leading_directive(as, &in->stmts[in->next]);
        if (starts_body(d)) depth++;
        if (ends_body(d) && --depth == 0) {
            *ret = &in->stmts[first];
            *ret_n = in->next++ - first;
            return true;
        }
    }
    as_error(as, loc, ISA_BODY_OPEN);
    return false;
}

/* --- Substitution. --- */

static const struct macro_param *find_param(const struct macro_param *params, uint32_t n,
                                            const char *name, size_t len) {
    for (uint32_t i = 0; i < n; i++)
        if (strlen(params[i].name) == len && memcmp(params[i].name, name, len) == 0)
            return &params[i];
    return NULL;
}

/* A \name: longest parameter name that the text starts with, cut at dots and dollars if need be. */
static const struct macro_param *param_at(const struct macro_param *params, uint32_t n,
                                          const char *p, const char *end, size_t *ret_len) {
    size_t len = 0;
    while (p + len < end && as_ident_char(p[len])) len++;
    for (; len > 0; len--) {
        const struct macro_param *m = find_param(params, n, p, len);
        if (m != NULL) {
            *ret_len = len;
            return m;
        }
    }
    return NULL;
}

static const char *substitute(struct as *as, const struct as_stmt *stmt,
                              const struct macro_param *params, uint32_t n) {
    GString *out = g_string_new(NULL);
    for (const char *p = stmt->begin; p < stmt->end;) {
        size_t len = 0;
        const bool slash = *p == '\\' && p + 1 < stmt->end;
        const bool bare = as->altmacro && as_ident_start(*p) && *p != '.' &&
                          (p == stmt->begin || !as_ident_char(p[-1]));
        if (slash && p[1] == '@') {
            g_string_append_printf(out, "%u", as->n_expansions);
            p += 2;
        } else if (slash && p[1] == '(' && p + 2 < stmt->end && p[2] == ')') {
            p += 3;
        } else if (slash || bare) {
            const struct macro_param *m = param_at(params, n, p + slash, stmt->end, &len);
            const bool whole =
                m != NULL && (slash || p + len == stmt->end || !as_ident_char(p[len]));
            if (whole) {
                if (m->value != NULL) g_string_append(out, m->value);
                p += len + slash;
            } else {
                g_string_append_c(out, *p++);
            }
        } else {
            g_string_append_c(out, *p++);
        }
    }
    as->n_text += out->len;
    if (out->len > MAX_LINE || as->n_text > AS_MAX_TEXT) {
        const struct as_loc loc = {stmt->line, 0, 1};
        as_error(as, loc, ISA_TOO_MUCH, "characters in macros");
        as->stop = true;
        g_string_truncate(out, 0);
    }
    const char *text = arena_strdup(as->arena, out->str);
    g_string_free(out, true);
    return text;
}

struct expansion {
    const struct as_stmt *body;
    uint32_t n_body;
    const struct macro_param *params;
    uint32_t n_params;
    const struct as_frame *frame;
};

static void expand_into(struct as *as, const struct expansion *x, GArray *stmts) {
    for (uint32_t i = 0; i < x->n_body; i++) {
        struct as_line *line = arena_new_array(as->arena, struct as_line, 1);
        *line = (struct as_line){substitute(as, &x->body[i], x->params, x->n_params),
                                 x->body[i].line->file, x->body[i].line->number, x->frame, 0};
        as_cut_statements(line, stmts);
    }
}

/* --- Macros. --- */

static void skip_separator(struct as_cursor *c) {
    as_skip(c);
    if (as_peek(c) == ',') c->p++;
    as_skip(c);
}

/* <text> of .altmacro: brackets nest, ! takes the next character as it is. */
static const char *angle_argument(struct as *as, struct as_cursor *c) {
    GString *out = g_string_new(NULL);
    const struct as_loc loc = as_here(c);
    uint32_t depth = 1;
    for (c->p++; c->p < c->stmt->end; c->p++) {
        const bool escaped = *c->p == '!' && c->p + 1 < c->stmt->end;
        if (escaped) c->p++;
        else if (*c->p == '<') depth++;
        else if (*c->p == '>' && --depth == 0) break;
        g_string_append_c(out, *c->p);
    }
    if (depth != 0) as_error(as, loc, ISA_EXPECTED, "'>'", "the end of the statement");
    else c->p++;
    const char *text = arena_strdup(as->arena, out->str);
    g_string_free(out, true);
    return text;
}

/* Whether a blank before the cursor ends the argument: no operator stands on either side. */
static bool blank_ends(const char *begin, const char *blank, char next) {
    static const char operators[] = "+-*/%<>&|^~!=?:@";
    const char prev = blank > begin ? blank[-1] : 0;
    if (next == ',') return true;
    return strchr(operators, next) == NULL && (prev == 0 || strchr(operators, prev) == NULL);
}

/* A default or an argument up to a comma or, outside parentheses, a blank that no operator adjoins.
 */
static const char *argument(struct as *as, struct as_cursor *c) {
    as_skip(c);
    if (as->altmacro && as_peek(c) == '<') return angle_argument(as, c);
    if (as->altmacro && as_peek(c) == '%') {
        c->p++;
        int64_t v = 0;
        return as_absolute(as, c, &v) ? arena_printf(as->arena, "%" G_GINT64_FORMAT, v) : "0";
    }
    const char *begin = c->p;
    for (int depth = 0; c->p < c->stmt->end;) {
        const char ch = *c->p, *behind = as_skip_quoted(c->p, c->stmt->end);
        if (behind > c->p) {
            c->p = behind;
            continue;
        }
        if (ch == '(' || ch == '[') depth++;
        if (ch == ')' || ch == ']') depth--;
        if (ch == ',' && depth <= 0) break;
        struct as_cursor t = *c;
        as_skip(&t);
        if (t.p > c->p && depth <= 0 && blank_ends(begin, c->p, as_peek(&t))) break;
        c->p = t.p > c->p ? t.p : c->p + 1;
    }
    return as_trimmed(as, begin, c->p);
}

static bool parse_params(struct as *as, struct as_cursor *c, struct as_macro *m) {
    struct macro_param params[MAX_PARAMETERS];
    uint32_t n = 0;
    while (!as_at_end(c)) {
        const struct as_loc loc = as_here(c);
        if (as_peek(c) == '\\') c->p++;
        const char *name = as_ident(as, c);
        if (name == NULL || n == MAX_PARAMETERS) {
            as_error(as, loc, ISA_EXPECTED, "a parameter (at most 64)", as_found(as, c));
            return false;
        }
        if (find_param(params, n, name, strlen(name)) != NULL || (n > 0 && params[n - 1].vararg)) {
            as_error(as, loc, ISA_EXPECTED, "a parameter of another name, and none behind :vararg",
                     arena_printf(as->arena, "'%s'", name));
            return false;
        }
        params[n] = (struct macro_param){.name = name};
        if (as_peek(c) == ':') {
            c->p++;
            const char *q = as_ident(as, c);
            params[n].required = q != NULL && strcmp(q, "req") == 0;
            params[n].vararg = q != NULL && strcmp(q, "vararg") == 0;
            if (!params[n].required && !params[n].vararg) {
                as_error(as, loc, ISA_EXPECTED, ":req or :vararg", "something else");
                return false;
            }
        }
        if (as_accept(c, '=')) params[n].value = argument(as, c);
        n++;
        skip_separator(c);
    }
    m->params = arena_copy(as->arena, params, n * sizeof(params[0]));
    m->n_params = n;
    return true;
}

static void define_macro(struct as *as, struct as_cursor *c) {
    const struct as_loc loc = as_span(c, c->stmt->begin);
    struct as_macro *m = arena_new_array(as->arena, struct as_macro, 1);
    m->name = as_ident(as, c);
    skip_separator(c);
    bool ok = m->name != NULL;
    if (!ok) as_error(as, as_here(c), ISA_EXPECTED, "the name of the macro", as_found(as, c));
    ok = ok && parse_params(as, c, m);
    m->loc = loc;
    if (!read_body(as, loc, &m->body, &m->n_body) || !ok) return;
    const struct as_macro *old = g_hash_table_lookup(as->macros, m->name);
    if (old != NULL) as_error(as, loc, ISA_DEFINED_TWICE, m->name, old->loc.line->number);
    g_hash_table_insert(as->macros, (char *)(uintptr_t)m->name, m);
}

/* `name=value`? Then the cursor is behind the sign. */
static struct macro_param *named_argument(struct macro_param *params, uint32_t n,
                                          struct as_cursor *c) {
    const char *end = as_ident_end(c);
    if (end >= c->stmt->end || *end != '=' || (end + 1 < c->stmt->end && end[1] == '='))
        return NULL;
    struct macro_param *m =
        (struct macro_param *)(uintptr_t)find_param(params, n, c->p, (size_t)(end - c->p));
    if (m != NULL) c->p = end + 1;
    return m;
}

static bool bind_arguments(struct as *as, const struct as_macro *m, struct macro_param *args,
                           struct as_cursor *c) {
    bool given[MAX_PARAMETERS] = {false};
    for (uint32_t i = 0; !as_at_end(c);) {
        struct macro_param *named = named_argument(args, m->n_params, c);
        if (named == NULL && i >= m->n_params) {
            as_error(as, as_here(c), ISA_MACRO_ARGUMENTS, m->name, m->n_params);
            return false;
        }
        struct macro_param *to = named != NULL ? named : &args[i++];
        if (to->vararg) {
            to->value = as_text(as, c->p, c->stmt->end);
            c->p = c->stmt->end;
        } else {
            const char *text = argument(as, c);
            if (*text != 0) to->value = text;
        }
        given[to - args] = true;
        skip_separator(c);
    }
    for (uint32_t i = 0; i < m->n_params; i++)
        if (args[i].required && !given[i]) {
            as_error(as, as_span(c, c->stmt->begin), ISA_MACRO_MISSING, m->name, args[i].name);
            return false;
        }
    return true;
}

/* LOCAL a, b of .altmacro: parameters with fresh names. */
static uint32_t altmacro_locals(struct as *as, const struct as_macro *m, struct macro_param *args,
                                uint32_t *n_args) {
    uint32_t i = 0;
    for (; as->altmacro && i < m->n_body; i++) {
        struct as_cursor c = {&m->body[i], m->body[i].begin};
        const char *word = as_ident(as, &c);
        if (word == NULL || g_ascii_strcasecmp(word, "local") != 0) break;
        for (const char *name; (name = as_ident(as, &c)) != NULL; skip_separator(&c))
            if (*n_args < MAX_PARAMETERS)
                args[(*n_args)++] = (struct macro_param){
                    .name = name,
                    .value = arena_printf(as->arena, ".LL%u_%s", as->n_expansions, name)};
    }
    return i;
}

/* The arguments of a call in a bundle end at its closing brace, which follows the expansion. */
static const char *arguments_end(const struct as *as, const struct as_cursor *c) {
    const char *end = c->stmt->end;
    const bool brace = as->in_bundle && end > c->p && end[-1] == '}';
    return brace ? end - 1 : end;
}

bool as_macro_call(struct as *as, const char *name, struct as_cursor *c) {
    const struct as_macro *m = g_hash_table_lookup(as->macros, name);
    if (m == NULL) return false;
    const struct as_loc at = as_span(c, c->p - strlen(name));
    struct macro_param args[MAX_PARAMETERS];
    memcpy(args, m->params, m->n_params * sizeof(args[0]));
    uint32_t n_args = m->n_params;
    const struct as_stmt call = {c->stmt->line, c->stmt->begin, arguments_end(as, c)};
    if (call.end < c->stmt->end) {
        const struct as_stmt rest = {call.line, call.end, c->stmt->end};
        as_push_input(as, g_array_append_vals(g_array_new(false, false, sizeof(rest)), &rest, 1),
                      false);
    }
    if (!bind_arguments(as, m, args, &(struct as_cursor){&call, c->p})) return true;
    const struct as_frame *frame = as_frame_new(as, m->name, at);
    if (frame == NULL) return true;
    const uint32_t skip = altmacro_locals(as, m, args, &n_args);
    GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
    expand_into(as, &(struct expansion){m->body + skip, m->n_body - skip, args, n_args, frame},
                stmts);
    as->n_expansions++;
    as_push_input(as, stmts, true);
    return true;
}

/* .exitm: leaves the innermost macro, and the repetitions inside it. */
static void exit_macro(struct as *as, struct as_cursor *c) {
    struct as_input *in = as->input;
    while (in != NULL && !in->is_macro) in = in->parent;
    if (in == NULL) {
        as_error(as, as_span(c, c->stmt->begin), ISA_COND_STRAY, ".exitm");
        return;
    }
    g_array_set_size(as->conds, in->cond_depth);
    as->input = in->parent;
}

/* --- Repetition. --- */

static void repeat(struct as *as, struct as_cursor *c) {
    const struct as_loc loc = as_span(c, c->stmt->begin);
    int64_t n = 0;
    bool ok = as_absolute(as, c, &n);
    if (ok) as_rest_of_line(as, c);
    if (ok && n < 0) as_error(as, loc, ISA_NEGATIVE, n);
    struct expansion x = {0};
    struct as_stmt *body;
    if (!read_body(as, loc, &body, &x.n_body) || !ok || n <= 0) return;
    if (n > MAX_REPEATED || (uint64_t)n * x.n_body > MAX_REPEATED) {
        as_error(as, loc, ISA_TOO_MUCH, "repetitions");
        return;
    }
    x.body = body;
    x.frame = as_frame_new(as, ".rept", loc);
    if (x.frame == NULL) return;
    GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
    for (int64_t i = 0; i < n; i++, as->n_expansions++) expand_into(as, &x, stmts);
    as_push_input(as, stmts, false);
}

static void repeat_over(struct as *as, const char *name, struct as_cursor *c) {
    const struct as_loc loc = as_span(c, c->stmt->begin);
    if (as_peek(c) == '\\') c->p++;
    struct macro_param param = {.name = as_ident(as, c)};
    skip_separator(c);
    GPtrArray *values = g_ptr_array_new();
    if (strcmp(name, ".irpc") == 0) {
        for (const char *p = argument(as, c); *p != 0; p++)
            g_ptr_array_add(values, (char *)(uintptr_t)as_text(as, p, p + 1));
        as_rest_of_line(as, c);
    } else {
        for (; !as_at_end(c); skip_separator(c))
            g_ptr_array_add(values, (char *)(uintptr_t)argument(as, c));
    }
    struct as_stmt *body;
    uint32_t n_body;
    const bool ok = read_body(as, loc, &body, &n_body) && param.name != NULL;
    const struct as_frame *frame = ok ? as_frame_new(as, name, loc) : NULL;
    if (ok && frame != NULL) {
        GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
        for (uint32_t i = 0; i < values->len; i++, as->n_expansions++) {
            param.value = g_ptr_array_index(values, i);
            expand_into(as, &(struct expansion){body, n_body, &param, 1, frame}, stmts);
        }
        as_push_input(as, stmts, false);
    }
    if (param.name == NULL) as_error(as, loc, ISA_EXPECTED, "a parameter", as_found(as, c));
    g_ptr_array_free(values, true);
}

/* --- */

static void purge_macro(struct as *as, struct as_cursor *c) {
    const char *name = as_ident(as, c);
    if (name == NULL || !g_hash_table_remove(as->macros, name))
        as_error(as, as_span(c, c->stmt->begin), ISA_EXPECTED, "the name of a macro",
                 name != NULL ? name : "none");
}

bool as_input_directive(struct as *as, const char *name, struct as_cursor *c) {
    if (as_condition_directive(as, name, c)) return true;
    if (as_skipping(as)) {
        return false;
    } else if (strcmp(name, ".macro") == 0) {
        define_macro(as, c);
    } else if (strcmp(name, ".rept") == 0 || strcmp(name, ".rep") == 0) {
        repeat(as, c);
    } else if (strcmp(name, ".irp") == 0 || strcmp(name, ".irpc") == 0) {
        repeat_over(as, name, c);
    } else if (strcmp(name, ".exitm") == 0) {
        exit_macro(as, c);
    } else if (strcmp(name, ".purgem") == 0) {
        purge_macro(as, c);
    } else if (ends_body(name)) {
        as_error(as, as_span(c, c->stmt->begin), ISA_COND_STRAY, name);
    } else {
        return false;
    }
    return true;
}
