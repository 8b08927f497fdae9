/* Lines and statements. A text is copied with its comments blanked (columns stay true), cut into
 * lines and at semicolons into statements. Inputs stack: the file, included files, macro
 * expansions, repetitions (isa_as_macro.c). Lines of included files carry a frame that tells
 * messages where the file was asked for, be it by .include or by the markers of the preprocessor.
 *
 * Runaway input is stopped: depth, number of expansions and of statements are bounded. */
#include "isa/isa_as.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 128, MAX_STATEMENTS = 1000 * 1000, MAX_FOUND = 60 };

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

void as_rest_of_line(struct as *as, struct as_cursor *c) {
    if (!as_at_end(c))
        as_error(as, as_here(c), ISA_EXPECTED, "the end of the statement", as_found(as, c));
}

bool as_ident_start(char ch) {
    return isalpha((unsigned char)ch) || ch == '_' || ch == '.';
}
bool as_ident_char(char ch) {
    return isalnum((unsigned char)ch) || ch == '_' || ch == '.' || ch == '$';
}

const char *as_skip_quoted(const char *p, const char *end) {
    const char quote = *p;
    if (p >= end || (quote != '"' && quote != '\'')) return p;
    p++;
    if (quote == '\'') {
        if (p + 1 < end && *p == '\\') p++;
        if (p < end && *p != '\n') p++;
        return p < end && *p == quote ? p + 1 : p;
    }
    for (; p < end && *p != '"' && *p != '\n'; p++)
        if (*p == '\\' && p + 1 < end && p[1] != '\n') p++;
    return p < end && *p == '"' ? p + 1 : p;
}

const char *as_text(struct as *as, const char *begin, const char *end) {
    char *s = arena_alloc(as->arena, (size_t)(end - begin) + 1);
    memcpy(s, begin, (size_t)(end - begin));
    return s;
}

const char *as_ident_end(const struct as_cursor *c) {
    const char *p = c->p;
    if (p >= c->stmt->end || !as_ident_start(*p)) return p;
    while (p < c->stmt->end && as_ident_char(*p)) p++;
    return p;
}

const char *as_ident(struct as *as, struct as_cursor *c) {
    as_skip(c);
    const char *end = as_ident_end(c);
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
    t.p = as_ident_end(&t);
    return as_span(&t, begin);
}

const char *as_found(struct as *as, const struct as_cursor *c) {
    struct as_cursor t = *c;
    if (as_at_end(&t)) return "the end of the statement";
    const char *begin = t.p;
    if (*t.p == '$' || *t.p == '%') t.p++;
    while (t.p < c->stmt->end && as_ident_char(*t.p)) t.p++;
    if (t.p == begin) t.p = MIN(g_utf8_next_char(t.p), c->stmt->end);
    if (t.p > begin + MAX_FOUND) return arena_printf(as->arena, "'%.*s...'", MAX_FOUND, begin);
    return arena_printf(as->arena, "'%s'", as_text(as, begin, t.p));
}

/* --- Cutting text. --- */

/* Comments become blanks, newlines stay. Strings are left alone. */
static bool comment_at(const char *s, size_t i, bool alone) {
    if (s[i] == '/') return s[i + 1] == '/';
    return s[i] == '#' && !alone && strchr(" \t\v\f;{}", s[i - 1]) != NULL;
}

static void comment_open(struct as *as, uint32_t file, const char *text, size_t at) {
    size_t from = at;
    while (from > 0 && text[from - 1] != '\n') from--;
    struct as_line *line = arena_new_array(as->arena, struct as_line, 1);
    *line = (struct as_line){.text = as_text(as, text + from, strchrnul(text + from, '\n')),
                             .file = file,
                             .number = 1,
                             .order = as->n_statements};
    for (size_t i = 0; i < from; i++) line->number += text[i] == '\n';
    as_error(as, ((struct as_loc){line, (uint32_t)(at - from), 2}), ISA_COMMENT_OPEN);
}

static char *blank_comments(struct as *as, const char *text, size_t length, uint32_t file) {
    char *s = arena_alloc(as->arena, length + 1);
    memcpy(s, text, length);
    bool alone = true; /* only blanks so far in this line: a # begins a marker, not a comment */
    for (size_t i = 0; i < length; i++) {
        if (s[i] == 0) s[i] = ' ';
        const size_t quoted = (size_t)(as_skip_quoted(s + i, s + length) - (s + i));
        if (quoted > 1) {
            i += quoted - 1;
        } else if (comment_at(s, i, alone)) {
            while (i < length && s[i] != '\n') s[i++] = ' ';
        } else if (s[i] == '/' && s[i + 1] == '*') {
            const char *end = strstr(s + i + 2, "*/");
            const size_t stop = end != NULL ? (size_t)(end - s) + 2 : length;
            if (end == NULL) comment_open(as, file, s, i);
            for (; i < stop; i++)
                if (s[i] != '\n') s[i] = ' ';
            i--;
        }
        alone = i >= length || s[i] == '\n' || (alone && isspace((unsigned char)s[i]));
    }
    return s;
}

void as_cut_statements(const struct as_line *line, GArray *out) {
    const char *begin = line->text, *const end = begin + strlen(begin);
    for (const char *p = begin;;) {
        if (p < end && (*p == '"' || *p == '\'')) {
            p = as_skip_quoted(p, end);
            continue;
        }
        if (p < end && *p != ';') {
            p++;
            continue;
        }
        const char *b = begin, *e = p;
        while (b < e && isspace((unsigned char)*b)) b++;
        while (e > b && isspace((unsigned char)e[-1])) e--;
        const struct as_stmt stmt = {line, b, e};
        if (e > b) g_array_append_val(out, stmt);
        if (p == end) return;
        begin = ++p;
    }
}

/* Where the lines of a text count from; markers of the preprocessor change it. */
struct position {
    uint32_t file, number;
    const struct as_frame *frame; /* of the included file the lines belong to */
};

static const struct as_frame *include_frame(struct as *as, const struct position *at) {
    struct as_line *line = arena_new_array(as->arena, struct as_line, 1);
    *line = (struct as_line){.file = at->file, .number = at->number, .frame = at->frame};
    struct as_frame *f = arena_new_array(as->arena, struct as_frame, 1);
    *f = (struct as_frame){NULL, {line, 0, 0}, at->frame != NULL ? at->frame->depth + 1 : 1};
    return f;
}

/* Word of a directive of the preprocessor at a `#`; its length, or 0. */
static size_t directive_word(const char *p) {
    static const char *const words[] = {"define", "undef", "include", "if",    "ifdef",  "ifndef",
                                        "else",   "elif",  "endif",   "error", "warning"};
    size_t n = 1;
    while (isalpha((unsigned char)p[n])) n++;
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strlen(words[i]) == n - 1 && memcmp(p + 1, words[i], n - 1) == 0) return n;
    return 0;
}

bool as_cpp_line(struct as *as, struct as_cursor *c) {
    const char *begin = c->p;
    const size_t n = as_peek(c) == '#' ? directive_word(begin) : 0;
    if (n == 0) return false;
    c->p += n;
    const char *word = as_text(as, begin + 1, c->p);
    as_error(as, as_span(c, begin), ISA_CPP_LINE, word);
    return true;
}

/* `# 12 "file" 1` of the preprocessor, where 1 enters a file and 2 returns from one. */
static void line_marker(struct as *as, const char *text, struct position *at) {
    if (strncmp(text, "line", 4) == 0) text += 4;
    while (*text == ' ' || *text == '\t') text++;
    if (!isdigit((unsigned char)*text)) return;
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    while (*end == ' ') end++;
    const char *close = *end == '"' ? strchr(end + 1, '"') : NULL;
    if (close != NULL) {
        const char flag = close[1] == ' ' ? close[2] : 0;
        if (flag == '1') at->frame = include_frame(as, at);
        if (flag == '2' && at->frame != NULL) at->frame = at->frame->at.line->frame;
        at->file = as_file(as, as_text(as, end + 1, close));
    }
    at->number = (uint32_t)n - 1;
}

/* Statements of a line. Markers and comments that begin with # have none; a directive of the
 * preprocessor, which has not run then, is one as a whole. */
static void cut_line(struct as *as, char *text, struct position *at, GArray *stmts) {
    const char *p = text + strspn(text, " \t");
    const bool directive = *p == '#' && directive_word(p) != 0;
    if (*p == '#' && !directive) {
        line_marker(as, p + 1 + strspn(p + 1, " \t"), at);
        return;
    }
    struct as_line *line = arena_new_array(as->arena, struct as_line, 1);
    *line = (struct as_line){text, at->file, at->number, at->frame, 0};
    const struct as_stmt whole = {line, p, p + strlen(p)};
    if (directive) g_array_append_val(stmts, whole);
    else as_cut_statements(line, stmts);
}

void as_push_input(struct as *as, GArray *stmts, bool is_macro) {
    struct as_input *in = arena_new_array(as->arena, struct as_input, 1);
    *in = (struct as_input){
        .parent = as->input, .n = stmts->len, .cond_depth = as->conds->len, .is_macro = is_macro};
    in->stmts = arena_copy(as->arena, stmts->data, stmts->len * sizeof(struct as_stmt));
    as->input = in;
    g_array_free(stmts, true);
}

void as_push_text(struct as *as, const char *text, size_t length, uint32_t file,
                  const struct as_frame *frame) {
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, length -= 3;
    char *s = blank_comments(as, text, length, file);
    GArray *stmts = g_array_new(false, false, sizeof(struct as_stmt));
    struct position at = {file, 0, frame};
    for (char *p = s; *p != 0;) {
        char *end = strchrnul(p, '\n');
        const bool last = *end == 0;
        *end = 0;
        if (end > p && end[-1] == '\r') end[-1] = ' ';
        at.number++;
        cut_line(as, p, &at, stmts);
        if (last) break;
        p = end + 1;
    }
    as_push_input(as, stmts, false);
}

const struct as_frame *as_frame_new(struct as *as, const char *what, struct as_loc at) {
    struct as_frame *f = arena_new_array(as->arena, struct as_frame, 1);
    *f = (struct as_frame){what, at, at.line->frame != NULL ? at.line->frame->depth + 1 : 1};
    if (f->depth > MAX_DEPTH) {
        as_error(as, at, ISA_TOO_DEEP, what != NULL ? what : ".include");
        return NULL;
    }
    return f;
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

const char *as_trimmed(struct as *as, const char *b, const char *e) {
    while (b < e && isspace((unsigned char)*b)) b++;
    while (e > b && isspace((unsigned char)e[-1])) e--;
    if (e - b >= 2 && *b == '"' && as_skip_quoted(b, e) == e && e[-1] == '"') b++, e--;
    return as_text(as, b, e);
}

/* .ifc a, b */
static bool same_strings(struct as *as, struct as_cursor *c, bool *ret) {
    const char *comma = c->p;
    while (comma < c->stmt->end && *comma != ',') {
        const char *behind = as_skip_quoted(comma, c->stmt->end);
        comma = behind > comma ? behind : comma + 1;
    }
    if (comma == c->stmt->end) {
        as_error(as, as_here(c), ISA_EXPECTED, "two texts with a comma between them",
                 as_found(as, c));
        return false;
    }
    *ret = strcmp(as_trimmed(as, c->p, comma), as_trimmed(as, comma + 1, c->stmt->end)) == 0;
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
    as_rest_of_line(as, c);
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
    if (!as_absolute(as, c, &v)) return false;
    as_rest_of_line(as, c);
    return compare_zero(kind, v);
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
    const bool is_elseif = strcmp(name, ".elseif") == 0;
    if (!is_elseif && cond->outer) as_rest_of_line(as, c);
    if (strcmp(name, ".endif") == 0) {
        g_array_set_size(as->conds, as->conds->len - 1);
        return;
    }
    if (cond->in_else) as_error(as, as_span(c, c->stmt->begin), ISA_COND_ELSE, name);
    cond->in_else |= !is_elseif;
    if (cond->taken) {
        cond->holds = false;
    } else {
        cond->holds = cond->outer && (!is_elseif || condition(as, "", c));
        cond->taken = cond->holds;
    }
}

bool as_condition_directive(struct as *as, const char *name, struct as_cursor *c) {
    if (is_condition(name)) {
        cond_begin(as, name, c);
        return true;
    }
    const bool other =
        strcmp(name, ".else") == 0 || strcmp(name, ".elseif") == 0 || strcmp(name, ".endif") == 0;
    if (other) cond_else(as, name, c);
    return other;
}
