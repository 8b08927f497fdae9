/* Breakpoints, watches, places and values of the debugger. */
#include "cli/tile_points.h"

#include <stdlib.h>
#include <string.h>

/* --- Sources. --- */

static struct tile_seen source_value(const struct cli_tile *c, const struct tile_source *s,
                                     uint32_t context) {
    const struct tile *t = &c->tile;
    struct tile_seen v = {0};
    if (s->memory) {
        memcpy(&v.value, sram_at(c->sram, 0, s->address), 4);
        v.known = sram_first_unwritten(c->sram, 0, s->address, 4) == UINT32_MAX;
    } else if (context == 0) {
        v = (struct tile_seen){t->s.defined >> s->number & 1, t->s.m[s->number]};
    } else {
        const struct tile_worker *w = &t->w[context - 1];
        v.known = w->defined >> (s->m ? s->number : 16 + s->number) & 1;
        v.value = (s->m ? w->m : w->a)[s->number];
    }
    if (!v.known) v.value = 0;
    return v;
}

/* A register name, else the address of a word. */
static bool source_parse(const struct cli_tile *c, const char *text, bool supervisor, struct tile_source *ret) {
    struct tile_source s = {0};
    GError *error = NULL;
    if (!cli_tile_register(text, strlen(text), supervisor, &s.m, &s.number)) {
        s.memory = true;
        if (!cli_tile_want_address(c, "address", text, &s.address)) return false;
        if (s.address % 4 != 0)
            diag_set(&error, CLI_TILE_ALIGN, "address", text, s.address, 4u);
        else if (!sram_range_ok(s.address, 4))
            diag_set(&error, CLI_TILE_OUTSIDE, "address", text, s.address, (gint64)s.address + 4,
                     (uint32_t)TARGET_SRAM_BASE, (uint32_t)TARGET_SRAM_END);
        if (error != NULL) return cli_tile_refuse(c, error);
    }
    *ret = s;
    return true;
}

/* --- Places. --- */

/* No name means any file. */
static bool file_matches(const char *file, const char *name, size_t n) {
    const char *last = strrchr(file, '/');
    return n == 0 || (strlen(file) == n && strncmp(file, name, n) == 0) ||
           (last != NULL && strlen(last + 1) == n && strncmp(last + 1, name, n) == 0);
}

static const char *file_of(const struct cli_tile *c, const struct isa_line *l) {
    return l->file < c->image->files->len ? c->image->files->pdata[l->file] : "";
}

/* The lowest line from `line` on that has code, and its first address. */
static bool line_find(const struct cli_tile *c, const char *name, size_t n, uint32_t line, uint32_t *ret) {
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < c->image->lines->len; i++) {
        const struct isa_line *l = &g_array_index(c->image->lines, struct isa_line, i);
        if (l->line < line || l->line >= best || l->offset >= TARGET_REGION1_BASE) continue;
        if (isa_image_at(c->image, l->offset) == NULL || !file_matches(file_of(c, l), name, n)) continue;
        best = l->line;
        *ret = l->offset;
    }
    return best != UINT32_MAX;
}

static char *known_files(const struct cli_tile *c) {
    GString *known = g_string_new(NULL);
    const char *last = NULL;
    for (uint32_t i = 0; i < c->image->lines->len; i++) {
        const char *file = file_of(c, &g_array_index(c->image->lines, struct isa_line, i));
        if (file != last && strstr(known->str, file) == NULL)
            g_string_append_printf(known, "%s%s", known->len ? ", " : "", file);
        last = file;
    }
    return g_string_free(known, false);
}

/* FILE:LINE or :LINE. */
static bool line_address(const struct cli_tile *c, const char *text, const char *colon, uint32_t *ret) {
    char *end;
    const uint32_t line = (uint32_t)strtoul(colon + 1, &end, 10);
    GError *error = NULL;
    if (!g_ascii_isdigit(colon[1]) || *end != 0) {
        diag_set(&error, CLI_TILE_NUMBER, text, "FILE:LINE");
        return cli_tile_refuse(c, error);
    }
    if (line_find(c, text, (size_t)(colon - text), line, ret)) return true;
    char *known = known_files(c);
    diag_set(&error, CLI_TILE_LINE, text, line, known[0] ? known : "no file");
    g_free(known);
    return cli_tile_refuse(c, error);
}

bool tile_point_address(const struct cli_tile *c, const char *text, uint32_t *ret) {
    const char *colon = strrchr(text, ':');
    uint32_t a;
    if (!(colon != NULL ? line_address(c, text, colon, &a) : cli_tile_want_address(c, "place", text, &a)))
        return false;
    GError *error = NULL;
    if (a % 4 != 0)
        diag_set(&error, CLI_TILE_ALIGN, "place", text, a, 4u);
    else if (!sram_range_ok(a, 4))
        diag_set(&error, CLI_TILE_OUTSIDE, "place", text, a, (gint64)a + 4, (uint32_t)TARGET_SRAM_BASE,
                 (uint32_t)TARGET_SRAM_END);
    if (error != NULL) return cli_tile_refuse(c, error);
    *ret = a;
    return true;
}

/* --- Parsing. --- */

static const char *const COMPARE[] = {"==", "!=", "<", "<=", ">", ">="};

/* `WHAT OP VALUE` in three words. */
static bool condition_parse(const struct cli_tile *c, const char *text, struct tile_point *p) {
    char **word = g_regex_split_simple("\\s+", text, 0, 0);
    GError *error = NULL;
    bool ok = g_strv_length(word) == 3;
    uint32_t op = 0;
    while (ok && op < ARRAY_LEN(COMPARE) && strcmp(word[1], COMPARE[op]) != 0) op++;
    ok = ok && op < ARRAY_LEN(COMPARE);
    p->conditional = true;
    p->compare = (enum tile_compare)op;
    if (!ok) {
        diag_set(&error, CLI_TILE_CONDITION, text);
        cli_tile_refuse(c, error);
    }
    ok = ok && source_parse(c, word[0], false, &p->source) && cli_tile_value(c, "value", word[2], &p->value);
    g_strfreev(word);
    return ok;
}

bool tile_point_break_parse(const struct cli_tile *c, const char *text, struct tile_point *ret) {
    struct tile_point p = {.kind = TILE_POINT_BREAK};
    const size_t n = strcspn(text, " \t");
    char *place = g_strndup(text, n), *rest = g_strstrip(g_strdup(text + n));
    GError *error = NULL;
    bool ok = tile_point_address(c, place, &p.pc);
    if (ok && rest[0] != 0) {
        if (g_str_has_prefix(rest, "if ")) {
            ok = condition_parse(c, g_strchug(rest + 3), &p);
        } else {
            diag_set(&error, CLI_TILE_CONDITION, rest);
            ok = cli_tile_refuse(c, error);
        }
    }
    g_free(place);
    g_free(rest);
    if (ok) *ret = p;
    return ok;
}

bool tile_point_watch_parse(const struct cli_tile *c, const char *text, uint32_t context,
                            struct tile_point *ret) {
    struct tile_point p = {.kind = TILE_POINT_WATCH, .context = context};
    const char *colon = strchr(text, ':');
    if (colon != NULL) {
        const bool s = colon == text + 1 && text[0] == 's' && c->supervisor;
        if (!s && (colon != text + 1 || text[0] < '0' || text[0] >= '0' + TILE_N_WORKERS)) {
            GError *error = NULL;
            diag_set(&error, CLI_TILE_NUMBER, text, "s:REG or WORKER:REG, workers 0..5");
            return cli_tile_refuse(c, error);
        }
        p.context = s ? 0 : (uint32_t)(text[0] - '0') + 1;
        text = colon + 1;
    }
    if (!source_parse(c, text, p.context == 0, &p.source)) return false;
    p.seen = source_value(c, &p.source, p.context);
    *ret = p;
    return true;
}

static void set_word(struct cli_tile *c, uint32_t address, uint32_t value) {
    memcpy(sram_at(c->sram, 0, address), &value, 4);
    sram_mark_written(c->sram, 0, address, 4);
}

bool tile_point_set(struct cli_tile *c, const char *text, uint32_t context) {
    const size_t n = strcspn(text, " \t=");
    char *what = g_strndup(text, n);
    const char *value = text + n + strspn(text + n, " \t=");
    struct tile_source s;
    uint32_t v;
    GError *error = NULL;
    bool ok = n != 0 && value[0] != 0;
    if (!ok) {
        diag_set(&error, CLI_TILE_NUMBER, text, "REG|ADDR VALUE");
        cli_tile_refuse(c, error);
    }
    ok = ok && source_parse(c, what, context == 0, &s) && cli_tile_value(c, "value", value, &v);
    g_free(what);
    if (!ok) return false;
    struct tile *t = &c->tile;
    if (s.memory) {
        set_word(c, s.address, v);
    } else if (context == 0) {
        t->s.m[s.number] = v;
        t->s.defined |= 1u << s.number;
    } else {
        (s.m ? t->w[context - 1].m : t->w[context - 1].a)[s.number] = v;
        t->w[context - 1].defined |= 1u << (s.m ? s.number : 16 + s.number);
    }
    return true;
}

/* --- Running. --- */

static bool holds(enum tile_compare compare, uint32_t a, uint32_t b) {
    switch (compare) {
    case TILE_EQ: return a == b;
    case TILE_NE: return a != b;
    case TILE_LT: return a < b;
    case TILE_LE: return a <= b;
    case TILE_GT: return a > b;
    default: return a >= b;
    }
}

bool tile_point_break(const struct tile_point *p, const struct cli_tile *c, uint32_t context, uint32_t pc) {
    if (p->pc != pc || context >= TILE_N_CONTEXTS) return false;
    if (!p->conditional) return true;
    const struct tile_seen v = source_value(c, &p->source, context);
    return v.known && holds(p->compare, v.value, p->value);
}

bool tile_point_changed(struct tile_point *p, const struct cli_tile *c, struct tile_seen *ret_old) {
    const struct tile_seen now = source_value(c, &p->source, p->context);
    if (now.value == p->seen.value && now.known == p->seen.known) return false;
    *ret_old = p->seen;
    p->seen = now;
    return true;
}

/* --- Texts. --- */

void tile_point_value(struct tile_seen v, GString *out) {
    if (v.known)
        g_string_append_printf(out, "%08x", v.value);
    else
        g_string_append(out, "--------");
}

static void print_source(const struct tile_source *s, GString *out) {
    if (s->memory)
        g_string_append_printf(out, "0x%x", s->address);
    else
        g_string_append_printf(out, "%c%u", s->m ? 'm' : 'a', s->number);
}

void tile_point_name(const struct tile_point *p, GString *out) {
    if (!p->source.memory) g_string_append_printf(out, "%s ", cli_tile_context_name(p->context));
    print_source(&p->source, out);
}

void tile_point_print(const struct tile_point *p, const struct cli_tile *c, GString *out) {
    if (p->kind == TILE_POINT_WATCH) {
        g_string_append_printf(out, "watch %u: ", p->number);
        tile_point_name(p, out);
        g_string_append(out, " = ");
        tile_point_value(p->seen, out);
        g_string_append_c(out, '\n');
        return;
    }
    g_string_append_printf(out, "breakpoint %u at 0x%x, ", p->number, p->pc);
    cli_tile_where(c, p->pc, out);
    if (p->conditional) {
        g_string_append(out, " if ");
        print_source(&p->source, out);
        g_string_append_printf(out, " %s 0x%x", COMPARE[p->compare], p->value);
    }
    g_string_append_c(out, '\n');
}
