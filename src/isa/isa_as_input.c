/* Lines and statements. A text is copied with its comments blanked (columns stay true), cut into
 * lines and at semicolons into statements. Inputs stack: the file, macro expansions, repetitions.
 * Bodies of macros and repetitions are kept as statements and expanded by substitution of their
 * parameters, with a frame that tells messages where the expansion was asked for.
 *
 * Runaway input is stopped: expansion depth, number of expansions and of statements are bounded. */
#include "isa/isa_as.h"

#include <ctype.h>
#include <string.h>

enum {
    MAX_DEPTH = 64,
    MAX_STATEMENTS = 1000 * 1000,
    MAX_REPEATED = 250 * 1000,
    MAX_LINE = 16 * 1024,
    MAX_TEXT = 64 * 1024 * 1024,
    MAX_PARAMETERS = 64
};

struct as_input {
    struct as_input *parent;
    struct as_stmt *stmts;
    uint32_t n, next;
    uint32_t cond_depth;
    bool is_macro;
};

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
};

/* --- Cursor. --- */

void as_skip(struct as_cursor *c) {
    while (c->p < c->stmt->end && isspace((unsigned char)*c->p)) c->p++;
}

bool as_at_end(struct as_cursor *c) {
    as_skip(c);
    return c->p >= c->stmt->end;
}

bool as_accept(struct as_cursor *c, char want) {
    as_skip(c);
    if (as_peek(c) != want) return false;
    c->p++;
    return true;
}

static bool ident_start(char ch) {
    return isalpha((unsigned char)ch) || ch == '_' || ch == '.';
}
static bool ident_char(char ch) {
    return isalnum((unsigned char)ch) || ch == '_' || ch == '.' || ch == '$';
}

const char *as_text(struct as *as, const char *begin, const char *end) {
    char *s = arena_alloc(as->arena, (size_t)(end - begin) + 1);
    memcpy(s, begin, (size_t)(end - begin));
    return s;
}

static const char *ident_end(const struct as_cursor *c) {
    const char *p = c->p;
    if (p >= c->stmt->end || !ident_start(*p)) return p;
    while (p < c->stmt->end && ident_char(*p)) p++;
    return p;
}

const char *as_ident(struct as *as, struct as_cursor *c) {
    as_skip(c);
    const char *end = ident_end(c);
    if (end == c->p) return NULL;
    const char *s = as_text(as, c->p, end);
    c->p = end;
    return s;
}

struct as_loc as_span(const struct as_cursor *c, const char *begin) {
    const ptrdiff_t width = c->p > begin ? c->p - begin : 1;
    return (struct as_loc){c->stmt->line, (uint32_t)(begin - c->stmt->line->text), (uint32_t)width};
}

struct as_loc as_here(const struct as_cursor *c) {
    struct as_cursor t = *c;
    as_skip(&t);
    const char *begin = t.p;
    t.p = ident_end(&t);
    return as_span(&t, begin);
}

const char *as_found(struct as *as, const struct as_cursor *c) {
    struct as_cursor t = *c;
    if (as_at_end(&t)) return "the end of the statement";
    const char *begin = t.p;
    if (*t.p == '$' || *t.p == '%') t.p++;
    while (t.p < c->stmt->end && ident_char(*t.p)) t.p++;
    if (t.p == begin) t.p++;
    return arena_printf(as->arena, "'%s'", as_text(as, begin, t.p));
}

/* --- Cutting text. --- */

/* Comments become blanks, newlines stay. Strings are left alone. */
static bool comment_at(const char *s, size_t i, bool alone) {
    if (s[i] == '/') return s[i + 1] == '/';
    return s[i] == '#' && !alone && isspace((unsigned char)s[i - 1]);
}

static char *blank_comments(struct as *as, const char *text, size_t length) {
    char *s = arena_alloc(as->arena, length + 1);
    memcpy(s, text, length);
    bool alone = true; /* only blanks so far in this line: a # begins a marker, not a comment */
    for (size_t i = 0; i < length; i++) {
        if (s[i] == 0) s[i] = ' ';
        if (s[i] == '"') {
            for (i++; i < length && s[i] != '"' && s[i] != '\n'; i++)
                if (s[i] == '\\' && i + 1 < length && s[i + 1] != '\n') i++;
        } else if (comment_at(s, i, alone)) {
            while (i < length && s[i] != '\n') s[i++] = ' ';
        } else if (s[i] == '/' && s[i + 1] == '*') {
            const char *end = strstr(s + i + 2, "*/");
            const size_t stop = end != NULL ? (size_t)(end - s) + 2 : length;
            for (; i < stop; i++)
                if (s[i] != '\n') s[i] = ' ';
            i--;
        }
        alone = i >= length || s[i] == '\n' || (alone && isspace((unsigned char)s[i]));
    }
    return s;
}

static void cut_statements(const struct as_line *line, GArray *out) {
    const char *begin = line->text, *p = begin;
    for (;; p++) {
        if (*p == '"') {
            for (p++; *p != 0 && *p != '"'; p++)
                if (*p == '\\' && p[1] != 0) p++;
            if (*p == 0) p--;
            continue;
        }
        if (*p != ';' && *p != 0) continue;
        const char *b = begin, *e = p;
        while (b < e && isspace((unsigned char)*b)) b++;
        while (e > b && isspace((unsigned char)e[-1])) e--;
        const struct as_stmt stmt = {line, b, e};
        if (e > b) g_array_append_val(out, stmt);
        if (*p == 0) return;
        begin = p + 1;
    }
}

/* `# 12 "file"` of the preprocessor: true if the line is one, then *file and *number are set. */
static bool line_marker(struct as *as, const char *text, uint32_t *file, uint32_t *number) {
    while (*text == ' ' || *text == '\t') text++;
    if (*text != '#') return false;
    text++;
    if (strncmp(text, "line", 4) == 0) text += 4;
    while (*text == ' ' || *text == '\t') text++;
    if (!isdigit((unsigned char)*text)) return true;
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    *number = (uint32_t)n - 1;
    while (*end == ' ') end++;
    const char *close = *end == '"' ? strchr(end + 1, '"') : NULL;
    if (close != NULL) *file = as_file(as, as_text(as, end + 1, close));
    return true;
}

static void push_input(struct as *as, GArray *stmts, bool is_macro) {
    struct as_input *in = arena_new_array(as->arena, struct as_input, 1);
    *in = (struct as_input){
        .parent = as->input, .n = stmts->len, .cond_depth = as->conds->len, .is_macro = is_macro};
    in->stmts = arena_copy(as->arena, stmts->data, stmts->len * sizeof(struct as_stmt));
    as->input = in;
    g_array_free(stmts, true);
}

void as_push_text(struct as *as, const char *text, size_t length, uint32_t file) {
    char *s = blank_comments(as, text, length);
    GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
    uint32_t number = 0;
    for (char *p = s; *p != 0;) {
        char *end = strchrnul(p, '\n');
        const bool last = *end == 0;
        *end = 0;
        if (end > p && end[-1] == '\r') end[-1] = ' ';
        number++;
        if (!line_marker(as, p, &file, &number)) {
            struct as_line *line = arena_new_array(as->arena, struct as_line, 1);
            *line = (struct as_line){p, file, number, NULL, 0};
            cut_statements(line, stmts);
        }
        if (last) break;
        p = end + 1;
    }
    push_input(as, stmts, false);
}

static void pop_input(struct as *as) {
    const struct as_input *in = as->input;
    if (as->conds->len > in->cond_depth) {
        const struct as_cond *open = &g_array_index(as->conds, struct as_cond, in->cond_depth);
        as_error(as, open->loc, ISA_COND_OPEN);
        g_array_set_size(as->conds, in->cond_depth);
    }
    as->input = in->parent;
}

bool as_next(struct as *as, struct as_stmt *ret) {
    while (as->input != NULL && as->input->next == as->input->n) pop_input(as);
    if (as->input == NULL || as->stop) return false;
    *ret = as->input->stmts[as->input->next++];
    ((struct as_line *)(uintptr_t)ret->line)->order = as->n_statements;
    if (++as->n_statements > MAX_STATEMENTS) {
        const struct as_loc loc = {ret->line, 0, 1};
        as_error(as, loc, ISA_TOO_MUCH, "statements");
        as->stop = true;
        return false;
    }
    return true;
}

/* --- Conditions. --- */

bool as_skipping(const struct as *as) {
    if (as->conds->len == 0) return false;
    const struct as_cond *c = &g_array_index(as->conds, struct as_cond, as->conds->len - 1);
    return !c->holds || !c->outer;
}

static const char *trimmed(struct as *as, const char *b, const char *e) {
    while (b < e && isspace((unsigned char)*b)) b++;
    while (e > b && isspace((unsigned char)e[-1])) e--;
    if (e - b >= 2 && *b == '"' && e[-1] == '"') b++, e--;
    return as_text(as, b, e);
}

/* .ifc a, b */
static bool same_strings(struct as *as, struct as_cursor *c, bool *ret) {
    const char *comma = c->p;
    for (bool quoted = false; comma < c->stmt->end && (quoted || *comma != ','); comma++)
        if (*comma == '"') quoted = !quoted;
    if (comma == c->stmt->end) {
        as_error(as, as_here(c), ISA_EXPECTED, "two texts with a comma between them",
                 as_found(as, c));
        return false;
    }
    *ret = strcmp(trimmed(as, c->p, comma), trimmed(as, comma + 1, c->stmt->end)) == 0;
    return true;
}

static bool defined_symbol(struct as *as, struct as_cursor *c, bool *ret) {
    const struct as_loc loc = as_here(c);
    const char *name = as_ident(as, c);
    if (name == NULL) {
        as_error(as, loc, ISA_EXPECTED, "a symbol", as_found(as, c));
        return false;
    }
    const struct as_symbol *s = g_hash_table_lookup(as->symbols, name);
    *ret = s != NULL && s->kind != AS_SYM_UNDEFINED;
    return true;
}

static bool compare_zero(const char *op, int64_t v) {
    if (strcmp(op, "eq") == 0) return v == 0;
    if (strcmp(op, "gt") == 0) return v > 0;
    if (strcmp(op, "ge") == 0) return v >= 0;
    if (strcmp(op, "lt") == 0) return v < 0;
    if (strcmp(op, "le") == 0) return v <= 0;
    return v != 0; /* .if, .ifne */
}

/* Value of the condition behind .if<kind>; false holds after a message. */
static bool condition(struct as *as, const char *kind, struct as_cursor *c) {
    bool yes = false;
    as_skip(c);
    if (strcmp(kind, "c") == 0 || strcmp(kind, "eqs") == 0) return same_strings(as, c, &yes) && yes;
    if (strcmp(kind, "nc") == 0 || strcmp(kind, "nes") == 0)
        return same_strings(as, c, &yes) && !yes;
    if (strcmp(kind, "b") == 0) return as_at_end(c);
    if (strcmp(kind, "nb") == 0) return !as_at_end(c);
    if (strcmp(kind, "def") == 0) return defined_symbol(as, c, &yes) && yes;
    if (strcmp(kind, "ndef") == 0 || strcmp(kind, "notdef") == 0)
        return defined_symbol(as, c, &yes) && !yes;
    int64_t v;
    return as_absolute(as, c, &v) && compare_zero(kind, v);
}

static bool is_condition(const char *name) {
    static const char *const kinds[] = {"",     "c",      "nc", "eqs", "nes", "b",  "nb", "def",
                                        "ndef", "notdef", "eq", "ne",  "gt",  "ge", "lt", "le"};
    if (strncmp(name, ".if", 3) != 0) return false;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (strcmp(name + 3, kinds[i]) == 0) return true;
    return false;
}

static void cond_begin(struct as *as, const char *name, struct as_cursor *c) {
    const bool outer = !as_skipping(as);
    struct as_cond cond = {.outer = outer, .loc = as_span(c, c->stmt->begin)};
    cond.holds = cond.taken = outer && condition(as, name + 3, c);
    g_array_append_val(as->conds, cond);
}

static void cond_else(struct as *as, const char *name, struct as_cursor *c) {
    if (as->conds->len <= as->input->cond_depth) {
        as_error(as, as_span(c, c->stmt->begin), ISA_COND_STRAY, name);
        return;
    }
    struct as_cond *cond = &g_array_index(as->conds, struct as_cond, as->conds->len - 1);
    if (strcmp(name, ".endif") == 0) {
        g_array_set_size(as->conds, as->conds->len - 1);
    } else if (cond->taken) {
        cond->holds = false;
    } else {
        cond->holds = cond->outer && (strcmp(name, ".else") == 0 || condition(as, "", c));
        cond->taken = cond->holds;
    }
}

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
    while (p + len < end && ident_char(p[len])) len++;
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
        const bool bare = as->altmacro && ident_start(*p) && *p != '.' &&
                          (p == stmt->begin || !ident_char(p[-1]));
        if (slash && p[1] == '@') {
            g_string_append_printf(out, "%u", as->n_expansions);
            p += 2;
        } else if (slash && p[1] == '(' && p + 2 < stmt->end && p[2] == ')') {
            p += 3;
        } else if (slash || bare) {
            const struct macro_param *m = param_at(params, n, p + slash, stmt->end, &len);
            const bool whole = m != NULL && (slash || p + len == stmt->end || !ident_char(p[len]));
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
    if (out->len > MAX_LINE || as->n_text > MAX_TEXT) {
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
        cut_statements(line, stmts);
    }
}

static const struct as_frame *new_frame(struct as *as, const char *what, struct as_loc at) {
    struct as_frame *f = arena_new_array(as->arena, struct as_frame, 1);
    *f = (struct as_frame){what, at, at.line->frame != NULL ? at.line->frame->depth + 1 : 1};
    if (f->depth > MAX_DEPTH) {
        as_error(as, at, ISA_TOO_DEEP, what);
        return NULL;
    }
    return f;
}

/* --- Macros. --- */

static void skip_separator(struct as_cursor *c) {
    as_skip(c);
    if (as_peek(c) == ',') c->p++;
    as_skip(c);
}

/* A default or an argument up to a comma or, outside parentheses, a blank that no operator adjoins.
 */
static const char *argument(struct as *as, struct as_cursor *c) {
    static const char operators[] = "+-*/%<>&|^~!=?:@(";
    as_skip(c);
    if (as->altmacro && as_peek(c) == '<') {
        const char *begin = ++c->p;
        while (as_peek(c) != 0 && as_peek(c) != '>') c->p++;
        const char *text = as_text(as, begin, c->p);
        if (as_peek(c) == '>') c->p++;
        return text;
    }
    if (as->altmacro && as_peek(c) == '%') {
        c->p++;
        int64_t v = 0;
        return as_absolute(as, c, &v) ? arena_printf(as->arena, "%" G_GINT64_FORMAT, v) : "0";
    }
    const char *begin = c->p;
    bool quoted = false;
    for (int depth = 0; c->p < c->stmt->end; c->p++) {
        const char ch = *c->p;
        if (ch == '"') quoted = !quoted;
        if (quoted) continue;
        if (ch == '(' || ch == '[') depth++;
        if (ch == ')' || ch == ']') depth--;
        if (ch == ',' && depth <= 0) break;
        if (!isspace((unsigned char)ch) || depth > 0) continue;
        struct as_cursor t = *c;
        as_skip(&t);
        const char next = as_peek(&t), prev = c->p > begin ? c->p[-1] : 0;
        if (next == ',' || (strchr(operators, next) == NULL && strchr(operators, prev) == NULL))
            break;
        c->p = t.p - 1;
    }
    return trimmed(as, begin, c->p);
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
    if (!read_body(as, loc, &m->body, &m->n_body) || !ok) return;
    g_hash_table_insert(as->macros, (char *)(uintptr_t)m->name, m);
}

/* `name=value`? Then the cursor is behind the sign. */
static struct macro_param *named_argument(struct macro_param *params, uint32_t n,
                                          struct as_cursor *c) {
    const char *end = ident_end(c);
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
            to->value = trimmed(as, c->p, c->stmt->end);
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

bool as_macro_call(struct as *as, const char *name, struct as_cursor *c) {
    const struct as_macro *m = g_hash_table_lookup(as->macros, name);
    if (m == NULL) return false;
    const struct as_loc at = as_span(c, c->p - strlen(name));
    struct macro_param args[MAX_PARAMETERS];
    memcpy(args, m->params, m->n_params * sizeof(args[0]));
    uint32_t n_args = m->n_params;
    if (!bind_arguments(as, m, args, c)) return true;
    const struct as_frame *frame = new_frame(as, m->name, at);
    if (frame == NULL) return true;
    const uint32_t skip = altmacro_locals(as, m, args, &n_args);
    GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
    expand_into(as, &(struct expansion){m->body + skip, m->n_body - skip, args, n_args, frame},
                stmts);
    as->n_expansions++;
    push_input(as, stmts, true);
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
    struct expansion x = {0};
    struct as_stmt *body;
    if (!read_body(as, loc, &body, &x.n_body) || !ok || n <= 0) return;
    if (n > MAX_REPEATED || (uint64_t)n * x.n_body > MAX_REPEATED) {
        as_error(as, loc, ISA_TOO_MUCH, "repetitions");
        return;
    }
    x.body = body;
    x.frame = new_frame(as, ".rept", loc);
    if (x.frame == NULL) return;
    GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
    for (int64_t i = 0; i < n; i++, as->n_expansions++) expand_into(as, &x, stmts);
    push_input(as, stmts, false);
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
    } else {
        for (; !as_at_end(c); skip_separator(c))
            g_ptr_array_add(values, (char *)(uintptr_t)argument(as, c));
    }
    struct as_stmt *body;
    uint32_t n_body;
    const bool ok = read_body(as, loc, &body, &n_body) && param.name != NULL;
    const struct as_frame *frame = ok ? new_frame(as, name, loc) : NULL;
    if (ok && frame != NULL) {
        GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
        for (uint32_t i = 0; i < values->len; i++, as->n_expansions++) {
            param.value = g_ptr_array_index(values, i);
            expand_into(as, &(struct expansion){body, n_body, &param, 1, frame}, stmts);
        }
        push_input(as, stmts, false);
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
    if (is_condition(name)) {
        cond_begin(as, name, c);
    } else if (strcmp(name, ".else") == 0 || strcmp(name, ".elseif") == 0 ||
               strcmp(name, ".endif") == 0) {
        cond_else(as, name, c);
    } else if (as_skipping(as)) {
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
