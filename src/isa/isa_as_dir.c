/* Directives other than those of input. Each has a row in the table at the end: name, function,
 * argument. */
#include "isa/isa_as.h"

#include <ctype.h>
#include <string.h>

typedef void handler(struct as *as, struct as_cursor *c, int argument);

static struct as_loc whole(const struct as_cursor *c) {
    return (struct as_loc){c->stmt->line, (uint32_t)(c->stmt->begin - c->stmt->line->text),
                           (uint32_t)(c->stmt->end - c->stmt->begin)};
}

static void rest_of_line(struct as *as, struct as_cursor *c) {
    if (!as_at_end(c))
        as_error(as, as_here(c), ISA_EXPECTED, "the end of the statement", as_found(as, c));
}

/* --- Sections. --- */

static void enter(struct as *as, struct as_section *s) {
    as_bind_labels(as);
    as->previous = as->section;
    as->section = s;
}

static void dir_named_section(struct as *as, struct as_cursor *c, int argument) {
    static const struct {
        const char *name;
        uint32_t flags;
    } known[] = {{".text", ISA_SECTION_ALLOC | ISA_SECTION_EXEC},
                 {".data", ISA_SECTION_ALLOC | ISA_SECTION_WRITE},
                 {".rodata", ISA_SECTION_ALLOC},
                 {".bss", ISA_SECTION_ALLOC | ISA_SECTION_WRITE | ISA_SECTION_NOBITS}};
    enter(as, as_section_get(as, known[argument].name, known[argument].flags));
    rest_of_line(as, c);
}

/* "ax", @progbits */
static uint32_t section_flags(struct as *as, struct as_cursor *c) {
    uint32_t flags = 0;
    c->p++;
    for (; as_peek(c) != 0 && as_peek(c) != '"'; c->p++)
        flags |= as_peek(c) == 'a'   ? ISA_SECTION_ALLOC
                 : as_peek(c) == 'x' ? ISA_SECTION_EXEC
                 : as_peek(c) == 'w' ? ISA_SECTION_WRITE
                                     : 0u;
    if (as_peek(c) == '"') c->p++;
    if (as_accept(c, ',')) {
        as_skip(c);
        if (as_peek(c) == '@' || as_peek(c) == '%') c->p++;
        const char *type = as_ident(as, c);
        if (type != NULL && strcmp(type, "nobits") == 0) flags |= ISA_SECTION_NOBITS;
    }
    return flags;
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

static void dir_section(struct as *as, struct as_cursor *c, int push) {
    const char *name = section_name(as, c);
    if (name == NULL || *name == 0) {
        as_error(as, as_here(c), ISA_EXPECTED, "the name of the section", as_found(as, c));
        return;
    }
    uint32_t flags = default_flags(name);
    if (as_accept(c, ',')) {
        as_skip(c);
        if (as_peek(c) == '"') flags = section_flags(as, c);
    }
    if (push) g_ptr_array_add(as->section_stack, as->section);
    enter(as, as_section_get(as, name, flags));
    /* What follows (entry size, group, unique) concerns other linkers. */
}

static void dir_popsection(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    if (as->section_stack->len == 0) as_error(as, whole(c), ISA_COND_STRAY, ".popsection");
    else enter(as, g_ptr_array_steal_index(as->section_stack, as->section_stack->len - 1));
}

static void dir_previous(struct as *as, struct as_cursor *c, int argument) {
    (void)c;
    (void)argument;
    if (as->previous != NULL) enter(as, as->previous);
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
    rest_of_line(as, c);
}

static void dir_type(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    struct as_symbol *s = symbol_operand(as, c);
    as_accept(c, ',');
    as_skip(c);
    if (as_peek(c) == '@' || as_peek(c) == '%' || as_peek(c) == '#') c->p++;
    const char *type = as_ident(as, c);
    if (s == NULL) return;
    if (type != NULL && (strcmp(type, "function") == 0 || strcmp(type, "STT_FUNC") == 0))
        s->type = ISA_SYM_FUNCTION;
    else if (type != NULL && (strcmp(type, "object") == 0 || strcmp(type, "STT_OBJECT") == 0))
        s->type = ISA_SYM_OBJECT;
    else if (type == NULL || strcmp(type, "notype") != 0)
        as_error(as, as_here(c), ISA_EXPECTED, "@function, @object or @notype", as_found(as, c));
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
}

static void dir_set(struct as *as, struct as_cursor *c, int once) {
    struct as_symbol *s = symbol_operand(as, c);
    if (s == NULL) return;
    const struct as_loc loc = whole(c);
    if (!as_accept(c, ',')) {
        as_error(as, as_here(c), ISA_EXPECTED, "','", as_found(as, c));
        return;
    }
    struct as_expr *e = as_expr_parse(as, c);
    if (e == NULL) return;
    if (s->kind == AS_SYM_LABEL || (once && s->kind == AS_SYM_EQU)) {
        as_error(as, loc, ISA_DEFINED_TWICE, s->name, s->loc.line->number);
        return;
    }
    s->kind = AS_SYM_EQU;
    s->value = e;
    rest_of_line(as, c);
}

/* --- Data. --- */

static void dir_data(struct as *as, struct as_cursor *c, int size) {
    if (as_at_end(c)) return;
    do {
        const struct as_loc loc = as_here(c);
        struct as_expr *e = as_expr_parse(as, c);
        if (e == NULL) return;
        as_emit_value(as, e, (uint32_t)size, loc);
    } while (as_accept(c, ','));
    rest_of_line(as, c);
}

/* Floating-point literals without a suffix, integers as values. */
static bool real_value(struct as *as, struct as_cursor *c, double *ret) {
    as_skip(c);
    char buffer[64];
    const size_t left = (size_t)(c->stmt->end - c->p);
    const size_t n = left < sizeof(buffer) - 1 ? left : sizeof(buffer) - 1;
    memcpy(buffer, c->p, n);
    buffer[n] = 0;
    char *end;
    *ret = g_ascii_strtod(buffer, &end);
    if (end == buffer) {
        as_error(as, as_here(c), ISA_EXPECTED, "a number", as_found(as, c));
        return false;
    }
    c->p += end - buffer;
    if (as_peek(c) == 'h' || as_peek(c) == 'f') c->p++;
    return true;
}

enum { REAL_HALF = 2, REAL_SINGLE = 4, REAL_DOUBLE = 8 };
static void dir_real(struct as *as, struct as_cursor *c, int size) {
    do {
        const struct as_loc loc = as_here(c);
        double v;
        if (!real_value(as, c, &v)) return;
        const float f = (float)v;
        const uint16_t h = as_half_bits(v);
        if (size == REAL_HALF) as_emit_bytes(as, &h, 2, loc);
        else if (size == REAL_SINGLE) as_emit_bytes(as, &f, 4, loc);
        else as_emit_bytes(as, &v, 8, loc);
    } while (as_accept(c, ','));
    rest_of_line(as, c);
}

/* A literal like 1.5, -2e3 or 1.0h and nothing else up to the comma. */
static bool is_real(const struct as_cursor *c) {
    const char *p = c->p, *end = c->stmt->end;
    bool point = false, digit = false;
    if (p < end && (*p == '-' || *p == '+')) p++;
    for (; p < end && (isdigit((unsigned char)*p) || *p == '.'); p++) {
        point |= *p == '.';
        digit |= *p != '.';
    }
    if (digit && p < end && (*p == 'e' || *p == 'E')) {
        point = true;
        for (p++; p < end && (isdigit((unsigned char)*p) || *p == '-' || *p == '+');) p++;
    }
    if (digit && p < end && *p == 'h') {
        point = true;
        p++;
    }
    while (p < end && isspace((unsigned char)*p)) p++;
    return point && digit && (p == end || *p == ',');
}

/* .half: F16 for what is written as a real number, else 16 bits as they are. */
static void dir_half(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    do {
        as_skip(c);
        const struct as_loc loc = as_here(c);
        double v;
        if (is_real(c)) {
            if (!real_value(as, c, &v)) return;
            const uint16_t h = as_half_bits(v);
            as_emit_bytes(as, &h, 2, loc);
        } else {
            struct as_expr *e = as_expr_parse(as, c);
            if (e == NULL) return;
            as_emit_value(as, e, 2, loc);
        }
    } while (as_accept(c, ','));
    rest_of_line(as, c);
}

static char escaped(struct as_cursor *c) {
    static const char from[] = "ntrbf\\\"'", to[] = "\n\t\r\b\f\\\"'";
    const char ch = *c->p++;
    if (ch >= '0' && ch <= '7') {
        int v = ch - '0';
        for (int i = 0; i < 2 && as_peek(c) >= '0' && as_peek(c) <= '7'; i++)
            v = v * 8 + (*c->p++ - '0');
        return (char)v;
    }
    const char *at = strchr(from, ch);
    return at != NULL ? to[at - from] : ch;
}

/* A string in quotes, without the final 0. */
static GString *string_operand(struct as *as, struct as_cursor *c) {
    as_skip(c);
    if (as_peek(c) != '"') {
        as_error(as, as_here(c), ISA_EXPECTED, "a string in quotes", as_found(as, c));
        return NULL;
    }
    GString *s = g_string_new(NULL);
    for (c->p++; c->p < c->stmt->end && *c->p != '"';) {
        const char ch = *c->p++;
        g_string_append_c(s, ch == '\\' && c->p < c->stmt->end ? escaped(c) : ch);
    }
    if (as_peek(c) == '"') c->p++;
    return s;
}

static void dir_string(struct as *as, struct as_cursor *c, int zero) {
    do {
        const struct as_loc loc = as_here(c);
        GString *s = string_operand(as, c);
        if (s == NULL) return;
        as_emit_bytes(as, s->str, (uint32_t)s->len + (uint32_t)zero, loc);
        g_string_free(s, true);
    } while (as_accept(c, ','));
    rest_of_line(as, c);
}

static bool optional_number(struct as *as, struct as_cursor *c, int64_t *ret) {
    if (!as_accept(c, ',')) return true;
    as_skip(c);
    if (as_peek(c) == ',' || as_at_end(c)) return true;
    return as_absolute(as, c, ret);
}

static void dir_space(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    int64_t n, fill = 0;
    if (!as_absolute(as, c, &n) || !optional_number(as, c, &fill)) return;
    if (n < 0 || n > INT32_MAX) as_error(as, whole(c), ISA_TOO_MUCH, "bytes");
    else as_emit_space(as, (uint32_t)n, (uint8_t)fill, whole(c));
    rest_of_line(as, c);
}

/* .fill repeat, size, value */
static void dir_fill(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    int64_t n, size = 1, value = 0;
    if (!as_absolute(as, c, &n) || !optional_number(as, c, &size) ||
        !optional_number(as, c, &value))
        return;
    if (n < 0 || size < 1 || size > 8 || n * size > 16 * 1024 * 1024) {
        as_error(as, whole(c), ISA_TOO_MUCH, "bytes");
        return;
    }
    uint8_t *bytes = g_malloc0((gsize)(n * size) + 1);
    for (int64_t i = 0; i < n * size; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * (uint64_t)(i % size));
    as_emit_bytes(as, bytes, (uint32_t)(n * size), whole(c));
    g_free(bytes);
    rest_of_line(as, c);
}

/* .align and .balign in bytes, .p2align as a power of two. */
static void dir_align(struct as *as, struct as_cursor *c, int power) {
    int64_t n, fill = -1, skip = 0;
    if (!as_absolute(as, c, &n) || !optional_number(as, c, &fill) || !optional_number(as, c, &skip))
        return;
    if (power) n = n >= 0 && n < 31 ? INT64_C(1) << n : 0;
    as_emit_align(as, n >= 0 && n <= UINT32_MAX ? (uint32_t)n : 0, fill, whole(c));
    rest_of_line(as, c);
}

/* --- Modes and permissions. --- */

static void dir_mode(struct as *as, struct as_cursor *c, int mode) {
    as->mode = (uint8_t)mode;
    rest_of_line(as, c);
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
    rest_of_line(as, c);
}

static void dir_altmacro(struct as *as, struct as_cursor *c, int on) {
    as->altmacro = on != 0;
    rest_of_line(as, c);
}

/* .error "text", .warning "text" */
static void dir_message(struct as *as, struct as_cursor *c, int severity) {
    GString *s = as_at_end(c) ? g_string_new("asked for by the source") : string_operand(as, c);
    if (s == NULL) return;
    as_report(as, whole(c), (enum isa_severity)severity, DIAG_ISA_ASKED, DIAG_TEXT_ISA_ASKED,
              s->str);
    g_string_free(s, true);
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

static const struct {
    const char *name;
    handler *run;
    int argument;
} directives[] = {
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
    {".byte", dir_data, 1},
    {".short", dir_data, 2},
    {".hword", dir_data, 2},
    {".2byte", dir_data, 2},
    {".word", dir_data, 4},
    {".long", dir_data, 4},
    {".int", dir_data, 4},
    {".4byte", dir_data, 4},
    {".quad", dir_data, 8},
    {".8byte", dir_data, 8},
    {".half", dir_half, 0},
    {".float", dir_real, REAL_SINGLE},
    {".single", dir_real, REAL_SINGLE},
    {".double", dir_real, REAL_DOUBLE},
    {".ascii", dir_string, 0},
    {".asciz", dir_string, 1},
    {".string", dir_string, 1},
    {".space", dir_space, 0},
    {".skip", dir_space, 0},
    {".zero", dir_space, 0},
    {".fill", dir_fill, 0},
    {".align", dir_align, 0},
    {".balign", dir_align, 0},
    {".p2align", dir_align, 1},
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
    {".error", dir_message, ISA_ERROR},
    {".err", dir_message, ISA_ERROR},
    {".warning", dir_message, ISA_WARNING},
    {".end", dir_end, 0},
    /* Notes for debuggers and other linkers. */
    {".file", dir_nothing, 0},
    {".loc", dir_nothing, 0},
    {".ident", dir_nothing, 0},
    {".print", dir_nothing, 0},
    {".hidden", dir_nothing, 0},
    {".protected", dir_nothing, 0},
    {".internal", dir_nothing, 0},
    {".addrsig", dir_nothing, 0},
    {".addrsig_sym", dir_nothing, 0},
};

bool as_directive(struct as *as, const char *name, struct as_cursor *c) {
    if (strncmp(name, ".cfi_", 5) == 0) return true;
    for (size_t i = 0; i < ARRAY_LEN(directives); i++)
        if (strcmp(directives[i].name, name) == 0) {
            directives[i].run(as, c, directives[i].argument);
            return true;
        }
    return false;
}
