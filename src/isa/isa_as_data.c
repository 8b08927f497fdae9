/* Directives of data, space and alignment. Values that need labels become fixups of the second
 * pass; strings and real numbers are bytes at once. Rows in the table at the end. */
#include "isa/isa_as.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

static void dir_data(struct as *as, struct as_cursor *c, int size) {
    if (as_at_end(c)) return;
    do {
        const struct as_loc loc = as_here(c);
        struct as_expr *e = as_expr_parse(as, c);
        if (e == NULL) return;
        as_emit_value(as, e, (uint32_t)size, loc);
    } while (as_accept(c, ','));
    as_rest_of_line(as, c);
}

/* Floating-point literals with or without a suffix, inf, nan; integers as values. */
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
static bool emit_real(struct as *as, struct as_cursor *c, int size, struct as_loc loc) {
    double v;
    if (!real_value(as, c, &v)) return false;
    const float f = (float)v;
    const uint16_t h = as_half_bits(v);
    const bool beyond =
        (size == REAL_HALF && (h & 0x7fff) == 0x7c00) || (size == REAL_SINGLE && isinf(f));
    if (beyond && isfinite(v)) as_error(as, loc, ISA_REAL_RANGE, v, 8 * size);
    if (size == REAL_HALF) as_emit_bytes(as, &h, 2, loc);
    else if (size == REAL_SINGLE) as_emit_bytes(as, &f, 4, loc);
    else as_emit_bytes(as, &v, 8, loc);
    return true;
}

static void dir_real(struct as *as, struct as_cursor *c, int size) {
    do {
        if (!emit_real(as, c, size, as_here(c))) return;
    } while (as_accept(c, ','));
    as_rest_of_line(as, c);
}

/* A literal like 1.5, -2e3, 1.0h or -inf and nothing else up to the comma. */
static bool is_real(const struct as_cursor *c) {
    const char *p = c->p, *const end = c->stmt->end;
    bool point = false, digit = false;
    if (p < end && (*p == '-' || *p == '+')) p++;
    if (end - p >= 3 && (memcmp(p, "inf", 3) == 0 || memcmp(p, "nan", 3) == 0)) {
        point = digit = true;
        p += 3;
    }
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
        if (is_real(c)) {
            if (!emit_real(as, c, REAL_HALF, loc)) return;
        } else {
            struct as_expr *e = as_expr_parse(as, c);
            if (e == NULL) return;
            as_emit_value(as, e, 2, loc);
        }
    } while (as_accept(c, ','));
    as_rest_of_line(as, c);
}

/* What stands behind a backslash. */
static char escaped(struct as *as, struct as_cursor *c) {
    static const char from[] = "ntrbfv\\\"'", to[] = "\n\t\r\b\f\v\\\"'";
    const struct as_loc loc = as_span(c, c->p - 1);
    const char ch = *c->p++;
    int v = 0;
    if (ch >= '0' && ch <= '7') {
        c->p--;
        for (int i = 0; i < 3 && as_peek(c) >= '0' && as_peek(c) <= '7'; i++)
            v = v * 8 + (*c->p++ - '0');
        return (char)v;
    }
    if ((ch == 'x' || ch == 'X') && isxdigit((unsigned char)as_peek(c))) {
        for (; isxdigit((unsigned char)as_peek(c)); c->p++)
            v = (v * 16 + g_ascii_xdigit_value(*c->p)) & 255;
        return (char)v;
    }
    const char *at = strchr(from, ch);
    if (at == NULL) as_error(as, loc, ISA_ESCAPE, ch);
    return at != NULL ? to[at - from] : ch;
}

GString *as_string(struct as *as, struct as_cursor *c) {
    as_skip(c);
    const struct as_loc loc = as_here(c);
    if (as_peek(c) != '"') {
        as_error(as, loc, ISA_EXPECTED, "a string in quotes", as_found(as, c));
        return NULL;
    }
    GString *s = g_string_new(NULL);
    while (as_peek(c) == '"') { /* strings side by side are one */
        for (c->p++; c->p < c->stmt->end && *c->p != '"';) {
            const char ch = *c->p++;
            g_string_append_c(s, ch == '\\' && c->p < c->stmt->end ? escaped(as, c) : ch);
        }
        if (as_peek(c) != '"') {
            as_error(as, loc, ISA_EXPECTED, "the closing quote of the string", as_found(as, c));
            g_string_free(s, true);
            return NULL;
        }
        c->p++;
        as_skip(c);
    }
    return s;
}

static void dir_string(struct as *as, struct as_cursor *c, int zero) {
    do {
        const struct as_loc loc = as_here(c);
        GString *s = as_string(as, c);
        if (s == NULL) return;
        as_emit_bytes(as, s->str, (uint32_t)s->len + (uint32_t)zero, loc);
        g_string_free(s, true);
    } while (as_accept(c, ','));
    as_rest_of_line(as, c);
}

bool as_optional_number(struct as *as, struct as_cursor *c, int64_t *ret) {
    if (!as_accept(c, ',')) return true;
    as_skip(c);
    if (as_peek(c) == ',' || as_at_end(c)) return true;
    return as_absolute(as, c, ret);
}

static bool size_fits(struct as *as, int64_t n, struct as_loc loc) {
    if (n < 0) as_error(as, loc, ISA_NEGATIVE, n);
    else if (n > INT32_MAX) as_error(as, loc, ISA_TOO_MUCH, "bytes");
    return n >= 0 && n <= INT32_MAX;
}

static void dir_space(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    int64_t n, fill = 0;
    if (!as_absolute(as, c, &n) || !as_optional_number(as, c, &fill)) return;
    if (size_fits(as, n, as_whole(c))) as_emit_space(as, (uint32_t)n, (uint8_t)fill, as_whole(c));
    as_rest_of_line(as, c);
}

/* .fill repeat, size, value */
static void dir_fill(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    int64_t n, size = 1, value = 0;
    if (!as_absolute(as, c, &n) || !as_optional_number(as, c, &size) ||
        !as_optional_number(as, c, &value))
        return;
    if (!size_fits(as, n, as_whole(c))) return;
    if (size < 1 || size > 8 || n * size > 16 * 1024 * 1024) {
        as_error(as, as_whole(c), ISA_TOO_MUCH, "bytes");
        return;
    }
    uint8_t *bytes = g_malloc0((gsize)(n * size) + 1);
    for (int64_t i = 0; i < n * size; i++)
        bytes[i] = (uint8_t)((uint64_t)value >> 8 * (uint64_t)(i % size));
    as_emit_bytes(as, bytes, (uint32_t)(n * size), as_whole(c));
    g_free(bytes);
    as_rest_of_line(as, c);
}

/* .align and .balign in bytes, .p2align as a power of two. */
static void dir_align(struct as *as, struct as_cursor *c, int power) {
    int64_t n, fill = -1, skip = 0;
    if (!as_absolute(as, c, &n) || !as_optional_number(as, c, &fill) ||
        !as_optional_number(as, c, &skip))
        return;
    if (power) n = n >= 0 && n < 31 ? INT64_C(1) << n : 0;
    as_emit_align(as, n >= 0 && n <= UINT32_MAX ? (uint32_t)n : 0, fill, skip, as_whole(c));
    as_rest_of_line(as, c);
}

/* .org place, fill: forward to a place in this section. */
static void dir_org(struct as *as, struct as_cursor *c, int argument) {
    (void)argument;
    struct as_expr *e = as_expr_parse(as, c);
    int64_t fill = 0;
    if (e == NULL || !as_optional_number(as, c, &fill)) return;
    as_emit_org(as, e, (uint8_t)fill, as_whole(c));
    as_rest_of_line(as, c);
}

/* Room for a symbol of this object in .bss. */
static void place_in_bss(struct as *as, struct as_symbol *s, uint32_t size, uint32_t align,
                         struct as_loc loc) {
    struct as_section *const here = as->section;
    as_bind_labels(as);
    as->section =
        as_section_get(as, ".bss", ISA_SECTION_ALLOC | ISA_SECTION_WRITE | ISA_SECTION_NOBITS);
    as_emit_align(as, align, -1, 0, loc);
    as_label_define(as, s, loc);
    as_emit_space(as, size, 0, loc);
    as->section = here;
}

/* .lcomm name, size, alignment; .comm the same for a name that objects share, unless it is .local.
 */
static void dir_comm(struct as *as, struct as_cursor *c, int shared) {
    const struct as_loc loc = as_here(c);
    const char *name = as_ident(as, c);
    int64_t size, align = 4;
    if (name == NULL || !as_accept(c, ',')) {
        as_error(as, as_here(c), ISA_EXPECTED, "a symbol, a comma and a size", as_found(as, c));
        return;
    }
    if (!as_absolute(as, c, &size) || !as_optional_number(as, c, &align)) return;
    as_rest_of_line(as, c);
    if (!size_fits(as, size, as_whole(c))) return;
    if (align < 1 || align > 65536 || (align & (align - 1)) != 0) {
        as_error(as, as_whole(c), ISA_ALIGN, (uint32_t)CLAMP(align, 0, UINT32_MAX));
        return;
    }
    struct as_symbol *s = as_symbol_get(as, name, loc);
    s->type = ISA_SYM_OBJECT;
    s->size = as_expr_number(as, size, loc);
    if (!shared || (s->binding_set && s->binding == ISA_LOCAL)) {
        place_in_bss(as, s, (uint32_t)size, (uint32_t)align, loc);
    } else if (s->kind != AS_SYM_UNDEFINED) {
        as_error(as, loc, ISA_DEFINED_TWICE, name, s->loc.line->number);
    } else {
        s->kind = AS_SYM_COMMON;
        s->loc = loc;
        s->offset = (uint32_t)align;
    }
}

const struct as_directive_row as_data_directives[] = {
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
    {".org", dir_org, 0},
    {".comm", dir_comm, 1},
    {".lcomm", dir_comm, 0},
    {NULL, NULL, 0},
};
