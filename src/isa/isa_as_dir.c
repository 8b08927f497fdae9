/* Directives of sections, symbols, modes and files. Each has a row in the table at the end: name,
 * function, argument; those of data have theirs in isa_as_data.c. */
#include "isa/isa_as.h"

#include <ctype.h>
#include <string.h>

struct as_loc as_whole(const struct as_cursor *c) {
    return (struct as_loc){c->stmt->line, (uint32_t)(c->stmt->begin - c->stmt->line->text),
                           (uint32_t)(c->stmt->end - c->stmt->begin)};
}

/* --- Sections. --- */

static void enter(struct as *as, struct as_section *s) {
    as_bind_labels(as);
    as->previous = as->section;
    as->section = s;
}

/* A word that has been read, or what stands at the cursor. */
static const char *found_word(struct as *as, const char *word, const struct as_cursor *c) {
    return word != NULL ? arena_printf(as->arena, "'%s'", word) : as_found(as, c);
}

/* What .popsection goes back to. */
struct saved_section {
    struct as_section *section, *previous;
};

static void dir_named_section(struct as *as, struct as_cursor *c, int argument) {
    static const struct {
        const char *name;
        uint32_t flags;
    } known[] = {{".text", ISA_SECTION_ALLOC | ISA_SECTION_EXEC},
                 {".data", ISA_SECTION_ALLOC | ISA_SECTION_WRITE},
                 {".rodata", ISA_SECTION_ALLOC},
                 {".bss", ISA_SECTION_ALLOC | ISA_SECTION_WRITE | ISA_SECTION_NOBITS}};
    enter(as, as_section_get(as, known[argument].name, known[argument].flags));
    as_rest_of_line(as, c);
}

static uint32_t default_flags(const char *name) {
    if (g_str_has_prefix(name, ".text")) return ISA_SECTION_ALLOC | ISA_SECTION_EXEC;
    if (g_str_has_prefix(name, ".data") || g_str_has_prefix(name, ".interleaved"))
        return ISA_SECTION_ALLOC | ISA_SECTION_WRITE;
    if (g_str_has_prefix(name, ".bss"))
        return ISA_SECTION_ALLOC | ISA_SECTION_WRITE | ISA_SECTION_NOBITS;
    if (g_str_has_prefix(name, ".rodata")) return ISA_SECTION_ALLOC;
    if (g_str_has_prefix(name, ".debug") || g_str_has_prefix(name, ".comment") ||
        g_str_has_prefix(name, ".stack"))
        return 0;
    return ISA_SECTION_ALLOC;
}

/* Letters between quotes; those without meaning here belong to other linkers. */
static uint32_t section_letters(struct as *as, struct as_cursor *c) {
    uint32_t flags = 0;
    for (c->p++; as_peek(c) != 0 && as_peek(c) != '"'; c->p++) {
        const char ch = as_peek(c);
        if (strchr("axwMSGToRe?", ch) == NULL)
            as_error(as, as_here(c), ISA_EXPECTED, "one of the section flags a, w, x, M, S, G, o",
                     as_found(as, c));
        flags |= ch == 'a'   ? ISA_SECTION_ALLOC
                 : ch == 'x' ? ISA_SECTION_EXEC
                 : ch == 'w' ? ISA_SECTION_WRITE
                             : 0u;
    }
    if (as_peek(c) == '"') c->p++;
    return flags;
}

/* "ax", @progbits */
static uint32_t section_flags(struct as *as, struct as_cursor *c, const char *name) {
    uint32_t flags = section_letters(as, c);
    if (!as_accept(c, ',')) return flags | (default_flags(name) & ISA_SECTION_NOBITS);
    as_skip(c);
    if (as_peek(c) == '@' || as_peek(c) == '%') c->p++;
    const struct as_loc loc = as_here(c);
    const char *type = as_ident(as, c);
    if (type != NULL && strcmp(type, "nobits") == 0) flags |= ISA_SECTION_NOBITS;
    else if (type == NULL || (strcmp(type, "progbits") != 0 && strcmp(type, "note") != 0))
        as_error(as, loc, ISA_EXPECTED, "@progbits, @nobits or @note", found_word(as, type, c));
    /* What follows (entry size, group, unique) concerns other linkers. */
    return flags;
}

static const char *section_name(struct as *as, struct as_cursor *c) {
    as_skip(c);
    const char *begin = c->p;
    if (as_peek(c) == '"') {
        begin = ++c->p;
        while (as_peek(c) != 0 && as_peek(c) != '"') c->p++;
        const char *name = as_text(as, begin, c->p);
        if (as_peek(c) == '"') c->p++;
        return name;
    }
    while (c->p < c->stmt->end && (isalnum((unsigned char)*c->p) || strchr("_.$-", *c->p) != NULL))
        c->p++;
    return c->p == begin ? NULL : as_text(as, begin, c->p);
}

static const char *flags_text(struct as *as, uint32_t flags) {
    return arena_printf(as->arena, "\"%s%s%s\"%s", flags & ISA_SECTION_ALLOC ? "a" : "",
                        flags & ISA_SECTION_WRITE ? "w" : "", flags & ISA_SECTION_EXEC ? "x" : "",
                        flags & ISA_SECTION_NOBITS ? " nobits" : "");
}

static void dir_section(struct as *as, struct as_cursor *c, int push) {
    const char *name = section_name(as, c);
    if (name == NULL || *name == 0) {
        as_error(as, as_here(c), ISA_EXPECTED, "the name of the section", as_found(as, c));
        return;
    }
    const bool given = as_accept(c, ',') && as_accept(c, '"');
    if (given) c->p--;
    const uint32_t flags = given ? section_flags(as, c, name) : default_flags(name);
    if (!given) as_rest_of_line(as, c);
    struct as_section *s = as_section_get(as, name, flags);
    if (given && s->out->flags != flags)
        as_error(as, as_whole(c), ISA_SECTION_FLAGS, name, flags_text(as, s->out->flags),
                 flags_text(as, flags));
    if (push) {
        const struct saved_section saved = {as->section, as->previous};
        g_array_append_val(as->section_stack, saved);
    }
    enter(as, s);
}

static void dir_popsection(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    if (as->section_stack->len == 0) {
        as_error(as, as_whole(c), ISA_COND_STRAY, ".popsection");
        return;
    }
    const guint last = as->section_stack->len - 1;
    const struct saved_section saved = g_array_index(as->section_stack, struct saved_section, last);
    g_array_set_size(as->section_stack, last);
    enter(as, saved.section);
    as->previous = saved.previous;
    as_rest_of_line(as, c);
}

static void dir_previous(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    if (as->previous == NULL) as_error(as, as_whole(c), ISA_COND_STRAY, ".previous");
    else enter(as, as->previous);
    as_rest_of_line(as, c);
}

/* --- Symbols. --- */

static struct as_symbol *symbol_operand(struct as *as, struct as_cursor *c) {
    const struct as_loc loc = as_here(c);
    const char *name = as_ident(as, c);
    if (name == NULL) {
        as_error(as, loc, ISA_EXPECTED, "a symbol", as_found(as, c));
        return NULL;
    }
    return as_symbol_get(as, name, loc);
}

static void dir_binding(struct as *as, struct as_cursor *c, int binding) {
    do {
        struct as_symbol *s = symbol_operand(as, c);
        if (s == NULL) return;
        s->binding = (uint8_t)binding;
        s->binding_set = true;
    } while (as_accept(c, ','));
    as_rest_of_line(as, c);
}

static void dir_type(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    struct as_symbol *s = symbol_operand(as, c);
    as_accept(c, ',');
    as_skip(c);
    const char ch = as_peek(c);
    if (ch == '@' || ch == '%' || ch == '#' || ch == '"') c->p++;
    const char *type = as_ident(as, c);
    if (s == NULL) return;
    if (ch == '"') as_accept(c, '"');
    if (type != NULL && (strcmp(type, "function") == 0 || strcmp(type, "STT_FUNC") == 0))
        s->type = ISA_SYM_FUNCTION;
    else if (type != NULL && (strcmp(type, "object") == 0 || strcmp(type, "STT_OBJECT") == 0))
        s->type = ISA_SYM_OBJECT;
    else if (type == NULL || strcmp(type, "notype") != 0)
        as_error(as, as_here(c), ISA_EXPECTED, "@function, @object or @notype",
                 found_word(as, type, c));
    else s->type = ISA_SYM_NONE;
    as_rest_of_line(as, c);
}

static void dir_size(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    struct as_symbol *s = symbol_operand(as, c);
    if (s == NULL) return;
    if (!as_accept(c, ',')) {
        as_error(as, as_here(c), ISA_EXPECTED, "','", as_found(as, c));
        return;
    }
    s->size = as_expr_parse(as, c);
    if (s->size != NULL) as_rest_of_line(as, c);
}

static void dir_set(struct as *as, struct as_cursor *c, int once) {
    struct as_symbol *s = symbol_operand(as, c);
    if (s == NULL) return;
    const struct as_loc loc = as_whole(c);
    if (!as_accept(c, ',')) {
        as_error(as, as_here(c), ISA_EXPECTED, "','", as_found(as, c));
        return;
    }
    struct as_expr *e = as_expr_parse(as, c);
    if (e == NULL) return;
    if (s->kind == AS_SYM_LABEL || s->kind == AS_SYM_COMMON || (once && s->kind == AS_SYM_EQU)) {
        as_error(as, loc, ISA_DEFINED_TWICE, s->name, s->loc.line->number);
        return;
    }
    s->kind = AS_SYM_EQU;
    s->value = e;
    as_rest_of_line(as, c);
}

/* --- Modes and permissions. --- */

static void dir_mode(struct as *as, struct as_cursor *c, int mode) {
    as->mode = (uint8_t)mode;
    as_rest_of_line(as, c);
}

enum permission {
    ALLOW_OPTIMIZATIONS,
    WARN_BUNDLES,
    ERROR_BUNDLES,
    ALLOW_OPERANDS,
    ERROR_OPERANDS,
    ALLOW_MODE,
    ERROR_MODE,
    ALLOW_REPEAT,
    ERROR_REPEAT
};
static void dir_allow(struct as *as, struct as_cursor *c, int what) {
    switch ((enum permission)what) {
    case ALLOW_OPTIMIZATIONS:
        as->allow_optimizations = true;
        break;
    case WARN_BUNDLES:
        as->warn_bundles = true;
        break;
    case ERROR_BUNDLES:
        as->warn_bundles = false;
        break;
    case ALLOW_OPERANDS:
        as->allow_operands = true;
        break;
    case ERROR_OPERANDS:
        as->allow_operands = as->options->allow_invalid_operands;
        break;
    case ALLOW_MODE:
        as->allow_mode = true;
        break;
    case ERROR_MODE:
        as->allow_mode = false;
        break;
    case ALLOW_REPEAT:
        as->allow_repeat = true;
        break;
    case ERROR_REPEAT:
        as->allow_repeat = false;
        break;
    }
    as_rest_of_line(as, c);
}

static void dir_altmacro(struct as *as, struct as_cursor *c, int on) {
    as->altmacro = on != 0;
    as_rest_of_line(as, c);
}

/* .error "text", .warning "text" */
static void dir_message(struct as *as, struct as_cursor *c, int severity) {
    GString *s = as_at_end(c) ? g_string_new("asked for by the source") : as_string(as, c);
    if (s == NULL) return;
    as_report(as, as_whole(c), (enum isa_severity)severity, DIAG_ISA_ASKED, DIAG_TEXT_ISA_ASKED,
              s->str);
    g_string_free(s, true);
}

/* .print "text" */
static void dir_print(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    GString *s = as_string(as, c);
    if (s == NULL) return;
    as_report(as, as_whole(c), ISA_NOTE, 0, "%s", s->str);
    g_string_free(s, true);
}

/* --- Other files. --- */

/* The file beside the source that names it, then in the -I folders, then as it is. */
static bool read_named(struct as *as, const char *name, struct as_loc loc, uint8_t **ret_data,
                       size_t *ret_size, const char **ret_path) {
    char *folder = g_path_get_dirname(g_ptr_array_index(as->object->files, loc.line->file));
    const char *const *more = as->options->include_dirs;
    GError *error = NULL;
    bool ok = false;
    for (uint32_t i = 0; !ok; i++) {
        const char *from = i == 0 ? folder : more != NULL && more[i - 1] != NULL ? more[i - 1] : "";
        char *path = g_path_is_absolute(name) || *from == 0 || strcmp(from, ".") == 0
                         ? g_strdup(name)
                         : g_build_filename(from, name, NULL);
        g_clear_error(&error);
        ok = file_read(path, AS_MAX_TEXT, ret_data, ret_size, &error);
        *ret_path = arena_strdup(as->arena, path);
        g_free(path);
        if (*from == 0) break;
    }
    if (!ok) as_error(as, loc, ISA_INCLUDE, error->message);
    g_clear_error(&error);
    g_free(folder);
    as->n_text += ok ? *ret_size : 0;
    if (!ok || as->n_text <= AS_MAX_TEXT) return ok;
    as_error(as, loc, ISA_TOO_MUCH, "characters in included files");
    g_free(*ret_data);
    return false;
}

/* .include "file" */
static void dir_include(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    GString *name = as_string(as, c);
    if (name == NULL) return;
    as_rest_of_line(as, c);
    const struct as_frame *frame = as_frame_new(as, NULL, as_whole(c));
    uint8_t *data;
    size_t size;
    const char *path;
    if (frame != NULL && read_named(as, name->str, as_whole(c), &data, &size, &path)) {
        as_push_text(as, (const char *)data, size, as_file(as, path), frame);
        g_free(data);
    }
    g_string_free(name, true);
}

/* .incbin "file", skip, count */
static void dir_incbin(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    GString *name = as_string(as, c);
    if (name == NULL) return;
    int64_t skip = 0, count = INT64_MAX;
    uint8_t *data;
    size_t size;
    const char *path;
    const bool ok = as_optional_number(as, c, &skip) && as_optional_number(as, c, &count);
    if (ok && read_named(as, name->str, as_whole(c), &data, &size, &path)) {
        if (skip < 0 || count < 0) as_error(as, as_whole(c), ISA_NEGATIVE, MIN(skip, count));
        else if ((uint64_t)skip > size ||
                 (count != INT64_MAX && (uint64_t)count > size - (uint64_t)skip))
            as_error(as, as_whole(c), ISA_INCBIN, name->str, (guint64)size);
        else
            as_emit_bytes(as, data + skip, (uint32_t)MIN((uint64_t)count, size - (uint64_t)skip),
                          as_whole(c));
        g_free(data);
        as_rest_of_line(as, c);
    }
    g_string_free(name, true);
}

static void dir_end(struct as *as, struct as_cursor *c, int argument) {
    (void)c;
    (void)argument;
    as->stop = true;
}

static void dir_nothing(struct as *as, struct as_cursor *c, int argument) {
    (void)as;
    (void)c;
    (void)argument;
}

const struct as_directive_row as_directives[] = {
    {".text", dir_named_section, 0},
    {".data", dir_named_section, 1},
    {".rodata", dir_named_section, 2},
    {".bss", dir_named_section, 3},
    {".section", dir_section, 0},
    {".pushsection", dir_section, 1},
    {".popsection", dir_popsection, 0},
    {".previous", dir_previous, 0},
    {".globl", dir_binding, ISA_GLOBAL},
    {".global", dir_binding, ISA_GLOBAL},
    {".weak", dir_binding, ISA_WEAK},
    {".local", dir_binding, ISA_LOCAL},
    {".type", dir_type, 0},
    {".size", dir_size, 0},
    {".set", dir_set, 0},
    {".equ", dir_set, 0},
    {".equiv", dir_set, 1},
    {".supervisor", dir_mode, ISA_MODE_S},
    {".worker", dir_mode, ISA_MODE_W},
    {".allow_optimizations", dir_allow, ALLOW_OPTIMIZATIONS},
    {".warn_on_invalid_bundles", dir_allow, WARN_BUNDLES},
    {".error_on_invalid_bundles", dir_allow, ERROR_BUNDLES},
    {".allow_invalid_operands", dir_allow, ALLOW_OPERANDS},
    {".error_on_invalid_operands", dir_allow, ERROR_OPERANDS},
    {".allow_invalid_execution_mode", dir_allow, ALLOW_MODE},
    {".error_on_invalid_execution_mode", dir_allow, ERROR_MODE},
    {".allow_invalid_repeat", dir_allow, ALLOW_REPEAT},
    {".error_on_invalid_repeat", dir_allow, ERROR_REPEAT},
    {".altmacro", dir_altmacro, 1},
    {".noaltmacro", dir_altmacro, 0},
    {".print", dir_print, 0},
    {".error", dir_message, ISA_ERROR},
    {".err", dir_message, ISA_ERROR},
    {".warning", dir_message, ISA_WARNING},
    {".end", dir_end, 0},
    {".include", dir_include, 0},
    {".incbin", dir_incbin, 0},
    /* Notes for debuggers and other linkers. */
    {".file", dir_nothing, 0},
    {".loc", dir_nothing, 0},
    {".ident", dir_nothing, 0},
    {".hidden", dir_nothing, 0},
    {".protected", dir_nothing, 0},
    {".internal", dir_nothing, 0},
    {".addrsig", dir_nothing, 0},
    {".addrsig_sym", dir_nothing, 0},
    {NULL, NULL, 0},
};

static const struct as_directive_row *find_row(const struct as_directive_row *rows,
                                               const char *name) {
    for (; rows->name != NULL; rows++)
        if (strcmp(rows->name, name) == 0) return rows;
    return NULL;
}

bool as_directive(struct as *as, const char *name, struct as_cursor *c) {
    if (strncmp(name, ".cfi_", 5) == 0) return true;
    const struct as_directive_row *row = find_row(as_directives, name);
    const bool places = row == NULL || row->run == dir_section || row->run == dir_named_section ||
                        row->run == dir_popsection || row->run == dir_previous ||
                        row->run == dir_incbin;
    if (row == NULL) row = find_row(as_data_directives, name);
    if (row == NULL) return false;
    if (as->in_bundle && places)
        as_error(as, as_whole(c), ISA_BRACE, arena_printf(as->arena, "%s inside a bundle", name));
    else row->run(as, c, row->argument);
    return true;
}

const char *as_suggest_directive(struct as *as, const char *name) {
    static const char *const others[] = {
        ".if",    ".ifeq",  ".ifne", ".ifgt", ".ifge",  ".iflt",   ".ifle",   ".ifc",   ".ifnc",
        ".ifeqs", ".ifnes", ".ifb",  ".ifnb", ".ifdef", ".ifndef", ".elseif", ".else",  ".endif",
        ".macro", ".endm",  ".rept", ".endr", ".irp",   ".irpc",   ".exitm",  ".purgem"};
    GPtrArray *names = g_ptr_array_new();
    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        g_ptr_array_add(names, (char *)(uintptr_t)others[i]);
    const struct as_directive_row *const tables[] = {as_directives, as_data_directives};
    for (size_t k = 0; k < ARRAY_LEN(tables); k++)
        for (const struct as_directive_row *r = tables[k]; r->name != NULL; r++)
            g_ptr_array_add(names, (char *)(uintptr_t)r->name);
    const char *text = as_suggest(as, name, (const char *const *)names->pdata, names->len);
    g_ptr_array_free(names, true);
    return text;
}
