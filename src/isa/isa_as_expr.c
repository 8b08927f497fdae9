/* Numbers, symbols and expressions. Precedence as in GNU as: (* / % << >>), (| & ^ !), (+ -),
 * comparisons, &&, ||, each group from the left; comparisons give -1 for true as there.
 *
 * A value is a number, or a symbol plus a number. Differences of labels of one section are numbers
 * as soon as both have their places. A symbol set by .set or = stands for what it was set to last
 * before its use; used ahead of that, for its value at the end. */
#include "isa/isa_as.h"

#include "target/target.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MAX_EVAL_DEPTH = 256 };

/* --- Symbols. --- */

struct as_symbol *as_symbol_new(struct as *as, const char *name, struct as_loc loc) {
    struct as_symbol *s = arena_new_array(as->arena, struct as_symbol, 1);
    *s = (struct as_symbol){.name = name, .loc = loc};
    g_ptr_array_add(as->symbol_order, s);
    return s;
}

struct as_symbol *as_symbol_get(struct as *as, const char *name, struct as_loc loc) {
    struct as_symbol *s = g_hash_table_lookup(as->symbols, name);
    if (s == NULL) {
        s = as_symbol_new(as, name, loc);
        g_hash_table_insert(as->symbols, (char *)(uintptr_t)name, s);
    }
    return s;
}

void as_label_define(struct as *as, struct as_symbol *s, struct as_loc loc) {
    if (s->kind != AS_SYM_UNDEFINED) {
        as_error(as, loc, ISA_DEFINED_TWICE, s->name != NULL ? s->name : "?", s->loc.line->number);
        return;
    }
    s->kind = AS_SYM_LABEL;
    s->loc = loc;
    g_ptr_array_add(as->pending, s);
}

/* `1f`: the next, `1b`: the last. */
struct as_symbol *as_local_label(struct as *as, uint32_t number, bool forward, struct as_loc loc) {
    GHashTable *table = forward ? as->local_forward : as->local_back;
    struct as_symbol *s = g_hash_table_lookup(table, GUINT_TO_POINTER(number));
    if (s == NULL && forward) {
        s = as_symbol_new(as, NULL, loc);
        g_hash_table_insert(table, GUINT_TO_POINTER(number), s);
    }
    if (s == NULL) as_error(as, loc, ISA_LOCAL_LABEL, number);
    return s;
}

void as_local_define(struct as *as, uint32_t number, struct as_loc loc) {
    struct as_symbol *s = g_hash_table_lookup(as->local_forward, GUINT_TO_POINTER(number));
    if (s == NULL) s = as_symbol_new(as, NULL, loc);
    g_hash_table_remove(as->local_forward, GUINT_TO_POINTER(number));
    g_hash_table_insert(as->local_back, GUINT_TO_POINTER(number), s);
    as_label_define(as, s, loc);
}

static const struct {
    const char *name;
    int64_t value;
} constants[] = {
    {"TMEM_REGION0_BASE_ADDR", TARGET_SRAM_BASE},
    {"TMEM_REGION1_BASE_ADDR", TARGET_REGION1_BASE},
    {"TMEM_ELEMSIZE", TARGET_ELEMENT_BYTES},
    {"CTXT_WORKERS", TARGET_N_WORKERS},
    {"CTXT_TOTAL", TARGET_N_CONTEXTS},
    {"TEXCH_SYNCZONE_LOCAL", 2}, /* isa 1.6 */
    {"TFPU_ROUND_RN", 0},
    {"TFPU_ROUND_RU", 1},
    {"TFPU_ROUND_RD", 2},
    {"TFPU_ROUND_ZERO", 3},
    {"TFPU_ROUND_RA", 4},
#define ISA_CSR_FIELD(csr, field, shift, bits)                                                     \
    {#csr "__" #field "__SHIFT", shift}, {#csr "__" #field "__MASK", (1 << (bits)) - 1},
#include "isa/isa_csr_field.def"
#undef ISA_CSR_FIELD
};

/* CSR_S_<register>__..., CSR_W_..., CSR_C_...: indices and fields as SDK headers name them. */
static bool csr_constant(const char *name, int64_t *ret) {
    if (strncmp(name, "CSR_", 4) != 0 || strchr("SWC", name[4]) == NULL || name[4] == 0 ||
        name[5] != '_')
        return false;
    name += 6;
    const char *suffix = strstr(name, "__");
    if (suffix == NULL) return false;
    if (strcmp(suffix, "__INDEX") == 0) {
        bool upper;
        const int index = isa_csr_find(name, (size_t)(suffix - name), &upper, NULL);
        *ret = index + (upper ? 256 : 0);
        return index >= 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(constants); i++)
        if (strcmp(constants[i].name, name) == 0) {
            *ret = constants[i].value;
            return true;
        }
    return false;
}

bool as_builtin(struct as *as, const char *name, int64_t *ret) {
    const int flag = isa_flag_find(name, strlen(name));
    if (flag >= 0 && as->options->target_hardware) {
        const gpointer n = as->sdk != NULL ? g_hash_table_lookup(as->sdk, name) : NULL;
        *ret = (int64_t)GPOINTER_TO_SIZE(n) - 1;
        return n != NULL;
    }
    if (flag >= 0) {
        *ret = flag;
        return true;
    }
    if (csr_constant(name, ret)) return true;
    for (size_t i = 0; i < ARRAY_LEN(constants); i++)
        if (strcmp(constants[i].name, name) == 0) {
            *ret = constants[i].value;
            return true;
        }
    return false;
}

const char *as_suggest_symbol(struct as *as, const char *name) {
    GPtrArray *names = g_ptr_array_new();
    static const char *const flags[] = {
#define ISA_FLAG(flag, ...) #flag,
#include "isa/isa_flag.def"
#undef ISA_FLAG
    };
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        g_ptr_array_add(names, (char *)(uintptr_t)flags[i]);
    for (size_t i = 0; i < ARRAY_LEN(constants); i++) {
        const bool field =
            strchr(constants[i].name, '_') != NULL && strstr(constants[i].name, "__") != NULL;
        const char *const prefix = !field || strncmp(name, "CSR_", 4) != 0 ? "" : "CSR_W_";
        g_ptr_array_add(
            names, (char *)(uintptr_t)arena_printf(as->arena, "%s%s", prefix, constants[i].name));
    }
    for (uint32_t i = 0; i < as->symbol_order->len; i++) {
        const struct as_symbol *s = g_ptr_array_index(as->symbol_order, i);
        if (s->name != NULL && s->kind != AS_SYM_UNDEFINED)
            g_ptr_array_add(names, (char *)(uintptr_t)s->name);
    }
    const char *text = as_suggest(as, name, (const char *const *)names->pdata, names->len);
    g_ptr_array_free(names, true);
    return text;
}

/* --- Numbers. --- */

/* Nearest even, subnormals, infinity above the range. */
uint16_t as_half_bits(double v) {
    const uint16_t sign = signbit(v) ? 0x8000 : 0;
    const double m = fabs(v);
    if (isnan(v)) return 0x7e00;
    if (m >= 65520.0) return sign | 0x7c00;
    if (m == 0) return sign;
    int e;
    frexp(m, &e);
    const int scale = e - 11 < -24 ? -24 : e - 11; /* of the last bit */
    const double units = nearbyint(ldexp(m, -scale));
    if (scale == -24) return (uint16_t)(sign | (uint32_t)units); /* a carry reaches the exponent */
    return (uint16_t)(sign | (((uint32_t)(scale + 25) << 10) + ((uint32_t)units - 1024)));
}

static uint32_t float_bits(double v) {
    const float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

/* 1.5h gives the bits of an F16, 1.5 and 1.5f those of an F32. */
static bool float_number(struct as *as, struct as_cursor *c, int64_t *ret, char *ret_literal) {
    char buffer[64];
    const size_t left = (size_t)(c->stmt->end - c->p);
    const size_t n = left < sizeof(buffer) - 1 ? left : sizeof(buffer) - 1;
    memcpy(buffer, c->p, n);
    buffer[n] = 0;
    size_t digits = strspn(buffer, "0123456789.");
    if (digits != 0 && (buffer[digits] == 'e' || buffer[digits] == 'E')) {
        size_t k = digits + 1 + (buffer[digits + 1] == '-' || buffer[digits + 1] == '+');
        if (isdigit((unsigned char)buffer[k])) digits = k + strspn(buffer + k, "0123456789");
    }
    const bool marked = strcspn(buffer, ".eE") < digits;
    const bool half = buffer[digits] == 'h' || buffer[digits] == 'H';
    const bool single = buffer[digits] == 'f' || buffer[digits] == 'F';
    const char after = buffer[digits + (half || single)];
    if (strcspn(buffer, "0123456789") >= digits || !(marked || half) ||
        isalnum((unsigned char)after) || after == '_')
        return false;
    buffer[digits] = 0;
    const double v = g_ascii_strtod(buffer, NULL);
    const char *begin = c->p;
    c->p += digits + (half || single);
    *ret = half ? as_half_bits(v) : float_bits(v);
    *ret_literal = half ? 'h' : 'f';
    if (half ? *ret == 0x7c00 : *ret == 0x7f800000)
        as_error(as, as_span(c, begin), ISA_REAL_RANGE, v, half ? 16 : 32);
    return true;
}

static bool named_float(struct as_cursor *c, int64_t *ret, char *ret_literal) {
    static const struct {
        const char *text;
        uint32_t bits;
    } names[] = {{"infh", 0x7c00}, {"nanh", 0x7e00}, {"inff", 0x7f800000}, {"nanf", 0x7fc00000}};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const size_t n = strlen(names[i].text);
        if ((size_t)(c->stmt->end - c->p) < n || memcmp(c->p, names[i].text, n) != 0) continue;
        const char after = c->p + n < c->stmt->end ? c->p[n] : 0;
        if (isalnum((unsigned char)after) || after == '_' || after == ':') continue;
        c->p += n;
        *ret = names[i].bits;
        *ret_literal = names[i].text[3];
        return true;
    }
    return false;
}

/* 'c', or 'c without the closing quote as GNU as has it; escapes as in strings. */
static bool char_number(struct as_cursor *c, int64_t *ret) {
    if (as_peek(c) != '\'' || as_peek2(c) == 0) return false;
    c->p++;
    char ch = *c->p++;
    if (ch == '\\' && c->p < c->stmt->end) {
        static const char from[] = "ntrbfv0\\'\"", to[] = "\n\t\r\b\f\v\0\\'\"";
        const char *at = strchr(from, *c->p++);
        ch = at != NULL && *at != 0 ? to[at - from] : c->p[-1];
    }
    if (as_peek(c) == '\'') c->p++;
    *ret = (unsigned char)ch;
    return true;
}

/* Digits in a base; at least one, and none beyond 64 bits. */
static bool digits(struct as_cursor *c, unsigned base, int64_t *ret) {
    uint64_t v = 0;
    uint32_t n = 0;
    for (int d; (d = g_ascii_xdigit_value(as_peek(c))) >= 0 && (unsigned)d < base; c->p++, n++) {
        if (v > (UINT64_MAX - (unsigned)d) / base) return false;
        v = v * base + (unsigned)d;
    }
    *ret = (int64_t)v;
    return n > 0;
}

bool as_number(struct as *as, struct as_cursor *c, int64_t *ret, char *ret_literal) {
    as_skip(c);
    const char *begin = c->p;
    *ret_literal = 0;
    if (named_float(c, ret, ret_literal)) return true;
    if (!isdigit((unsigned char)as_peek(c)) && as_peek(c) != '.' && as_peek(c) != '\'')
        return false;
    if (float_number(as, c, ret, ret_literal)) return true;
    if (char_number(c, ret)) return true;
    if (!isdigit((unsigned char)as_peek(c))) return false;
    const char second = as_peek2(c);
    const bool zero = as_peek(c) == '0';
    bool ok;
    if (zero && (second == 'x' || second == 'X')) {
        c->p += 2;
        ok = digits(c, 16, ret);
    } else if (zero && (second == 'b' || second == 'B') && c->p + 2 < c->stmt->end &&
               (c->p[2] == '0' || c->p[2] == '1')) {
        c->p += 2;
        ok = digits(c, 2, ret);
    } else {
        ok = digits(c, zero ? 8 : 10, ret);
    }
    while (ok && strchr("uUlL", as_peek(c)) != NULL && as_peek(c) != 0) c->p++;
    if (ok && !isalnum((unsigned char)as_peek(c))) return true;
    while (isalnum((unsigned char)as_peek(c))) c->p++;
    as_error(as, as_span(c, begin), ISA_NUMBER, as_text(as, begin, c->p));
    *ret = 0;
    return true;
}

/* --- Parsing. --- */

static struct as_expr *node(struct as *as, enum as_expr_kind kind, struct as_loc loc) {
    struct as_expr *e = arena_new_array(as->arena, struct as_expr, 1);
    *e = (struct as_expr){.kind = kind, .loc = loc};
    return e;
}

struct as_expr *as_expr_number(struct as *as, int64_t v, struct as_loc loc) {
    struct as_expr *e = node(as, AS_NUMBER, loc);
    e->number = v;
    return e;
}

static struct as_expr *unary(struct as *as, uint8_t op, struct as_expr *a, struct as_loc loc) {
    struct as_expr *e = node(as, AS_UNARY, loc);
    e->op = op;
    e->a = a;
    return e;
}

struct as_expr *as_expr_negate(struct as *as, struct as_expr *e) {
    return unary(as, '-', e, e->loc);
}

static struct as_expr *symbol_expr(struct as *as, const char *name, struct as_loc loc) {
    struct as_symbol *s;
    if (strcmp(name, ".") == 0) {
        s = as_symbol_new(as, NULL, loc);
        as_label_define(as, s, loc);
    } else {
        s = as_symbol_get(as, name, loc);
    }
    s->referenced = true;
    struct as_value v;
    if (s->kind == AS_SYM_EQU && as_eval(as, s->value, false, &v) && v.symbol == NULL)
        return as_expr_number(as, v.value, loc);
    struct as_expr *e = node(as, AS_SYMBOL, loc);
    e->symbol = s;
    e->a = s->kind == AS_SYM_EQU ? s->value : NULL;
    return e;
}

/* `12b`, `3f`: a numeric label, not a number. */
static struct as_expr *local_label_expr(struct as *as, struct as_cursor *c) {
    const char *p = c->p;
    uint32_t n = 0;
    while (p < c->stmt->end && isdigit((unsigned char)*p) && n < 100000)
        n = n * 10 + (uint32_t)(*p++ - '0');
    if (p == c->p || p >= c->stmt->end || (*p != 'b' && *p != 'f')) return NULL;
    if (p + 1 < c->stmt->end && (isalnum((unsigned char)p[1]) || p[1] == '_')) return NULL;
    const char *begin = c->p;
    c->p = p + 1;
    const struct as_loc loc = as_span(c, begin);
    struct as_symbol *s = as_local_label(as, n, *p == 'f', loc);
    if (s == NULL) return as_expr_number(as, 0, loc);
    struct as_expr *e = node(as, AS_SYMBOL, loc);
    e->symbol = s;
    return e;
}

enum {
    OP_SHL = 'l',
    OP_SHR = 'r',
    OP_EQ = 'e',
    OP_NE = 'n',
    OP_LE = 'L',
    OP_GE = 'G',
    OP_AND = 'A',
    OP_OR = 'O'
};
static const struct {
    char text[3];
    uint8_t op, precedence;
} operators[] = {{"<<", OP_SHL, 6}, {">>", OP_SHR, 6}, {"==", OP_EQ, 3}, {"!=", OP_NE, 3},
                 {"<>", OP_NE, 3},  {"<=", OP_LE, 3},  {">=", OP_GE, 3}, {"&&", OP_AND, 2},
                 {"||", OP_OR, 1},  {"*", '*', 6},     {"/", '/', 6},    {"%", '%', 6},
                 {"|", '|', 5},     {"&", '&', 5},     {"^", '^', 5},    {"!", '!', 5},
                 {"+", '+', 4},     {"-", '-', 4},     {"<", '<', 3},    {">", '>', 3}};

/* Index of the operator at the cursor, or -1. */
static int operator_at(struct as_cursor *c) {
    as_skip(c);
    for (size_t i = 0; i < ARRAY_LEN(operators); i++) {
        const size_t n = strlen(operators[i].text);
        if ((size_t)(c->stmt->end - c->p) < n) continue;
        if (memcmp(c->p, operators[i].text, n) != 0) continue;
        /* `+=` and `++` mark registers and `>>` alone at the end a mini-delta. */
        if (*c->p == '+' && (as_peek2(c) == '=' || as_peek2(c) == '+')) return -1;
        return (int)i;
    }
    return -1;
}

static struct as_expr *parse_level(struct as *as, struct as_cursor *c, uint32_t min,
                                   uint32_t depth);

static struct as_expr *primary(struct as *as, struct as_cursor *c, uint32_t depth) {
    as_skip(c);
    const struct as_loc loc = as_here(c);
    const char ch = as_peek(c);
    if (depth > MAX_EVAL_DEPTH) {
        as_error(as, loc, ISA_TOO_DEEP, "expression");
        return NULL;
    }
    if (ch == '(') {
        c->p++;
        struct as_expr *e = parse_level(as, c, 1, depth + 1);
        if (e != NULL && !as_accept(c, ')')) {
            as_error(as, as_here(c), ISA_EXPECTED, "')'", as_found(as, c));
            return NULL;
        }
        return e;
    }
    if (ch == '-' || ch == '+' || ch == '~' || ch == '!') {
        c->p++;
        struct as_expr *a = primary(as, c, depth + 1);
        return a == NULL || ch == '+' ? a : unary(as, (uint8_t)ch, a, loc);
    }
    struct as_expr *local = local_label_expr(as, c);
    if (local != NULL) return local;
    int64_t v;
    char literal;
    const char *begin = c->p;
    if (as_number(as, c, &v, &literal)) {
        struct as_expr *e = as_expr_number(as, v, as_span(c, begin));
        e->literal = literal;
        return e;
    }
    const char *name = as_ident(as, c);
    if (name != NULL) return symbol_expr(as, name, loc);
    as_error(as, loc, ISA_EXPECTED, "a number, a symbol or '('", as_found(as, c));
    return NULL;
}

static bool number_operator(struct as *as, const struct as_expr *e, bool report, int64_t a,
                            int64_t b, int64_t *ret) {
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    switch (e->op) {
    case '+':
        *ret = (int64_t)(x + y);
        return true;
    case '-':
        *ret = (int64_t)(x - y);
        return true;
    case '*':
        *ret = (int64_t)(x * y);
        return true;
    case '/':
    case '%':
        if (b == 0 || (a == INT64_MIN && b == -1)) {
            if (report) as_error(as, e->loc, ISA_DIVISION);
            return false;
        }
        *ret = e->op == '/' ? a / b : a % b;
        return true;
    case OP_SHL:
        *ret = y < 64 ? (int64_t)(x << y) : 0;
        return true;
    case OP_SHR:
        *ret = y < 64 ? (int64_t)(x >> y) : 0;
        return true;
    case '|':
        *ret = a | b;
        return true;
    case '&':
        *ret = a & b;
        return true;
    case '^':
        *ret = a ^ b;
        return true;
    case '!':
        *ret = a | ~b;
        return true;
    case OP_EQ:
        *ret = -(a == b);
        return true;
    case OP_NE:
        *ret = -(a != b);
        return true;
    case '<':
        *ret = -(a < b);
        return true;
    case '>':
        *ret = -(a > b);
        return true;
    case OP_LE:
        *ret = -(a <= b);
        return true;
    case OP_GE:
        *ret = -(a >= b);
        return true;
    case OP_AND:
        *ret = a != 0 && b != 0;
        return true;
    case OP_OR:
        *ret = a != 0 || b != 0;
        return true;
    default:
        return false;
    }
}

/* Sums and products of real numbers work on their bits, as in the reference assembler: rarely
 * meant. */
static void check_real(struct as *as, uint8_t op, const struct as_expr *e) {
    if (e->kind == AS_NUMBER && e->literal != 0 && strchr("+-*/%", op) != NULL)
        as_warn(as, e->loc, ISA_REAL_BITS, (uint32_t)e->number);
}

/* An operation of two plain numbers is done at once, so that long sums are not deep. */
static struct as_expr *binary(struct as *as, uint8_t op, struct as_expr *a, struct as_expr *b) {
    struct as_expr *e = node(as, AS_BINARY, a->loc);
    e->op = op;
    e->a = a;
    e->b = b;
    const bool plain = a->kind == AS_NUMBER && b->kind == AS_NUMBER;
    check_real(as, op, a);
    check_real(as, op, b);
    if (plain && number_operator(as, e, false, a->number, b->number, &e->number))
        e->kind = AS_NUMBER;
    return e;
}

static struct as_expr *parse_level(struct as *as, struct as_cursor *c, uint32_t min,
                                   uint32_t depth) {
    struct as_expr *left = primary(as, c, depth);
    while (left != NULL) {
        const int op = operator_at(c);
        if (op < 0 || operators[op].precedence < min) return left;
        c->p += strlen(operators[op].text);
        struct as_expr *right = parse_level(as, c, operators[op].precedence + 1u, depth + 1);
        if (right == NULL) return NULL;
        left = binary(as, operators[op].op, left, right);
    }
    return left;
}

struct as_expr *as_expr_parse(struct as *as, struct as_cursor *c) {
    return parse_level(as, c, 1, 0);
}

/* --- Evaluation. --- */

static bool eval_symbol(struct as *as, const struct as_expr *e, bool report, struct as_value *ret) {
    struct as_symbol *s = e->symbol;
    if (e->a != NULL) return as_eval(as, e->a, report, ret);
    if (s->kind == AS_SYM_EQU) {
        if (s->in_eval) {
            if (report) as_error(as, e->loc, ISA_CIRCULAR, s->name);
            return false;
        }
        s->in_eval = true;
        const bool ok = as_eval(as, s->value, report, ret);
        s->in_eval = false;
        return ok;
    }
    int64_t v;
    if (s->kind == AS_SYM_UNDEFINED && s->name != NULL && as_builtin(as, s->name, &v)) {
        *ret = (struct as_value){v, NULL};
        return true;
    }
    *ret = (struct as_value){0, s};
    return true;
}

/* Why an operation is not possible: a name without a value, or an address. */
static bool refuse_operation(struct as *as, const struct as_expr *e, bool report,
                             const struct as_value *a, const struct as_value *b) {
    if (!report) return false;
    const struct as_value *const values[] = {a, b};
    for (uint32_t i = 0; i < ARRAY_LEN(values); i++) {
        const struct as_symbol *s = values[i] != NULL ? values[i]->symbol : NULL;
        if (s == NULL || s->kind != AS_SYM_UNDEFINED || s->name == NULL) continue;
        as_error(as, e->loc, ISA_NOT_ABSOLUTE, s->name, as_suggest_symbol(as, s->name));
        return false;
    }
    as_error(as, e->loc, ISA_ADDRESS_ARITHMETIC);
    return false;
}

/* The difference of two symbols is a number if both are labels of one section with their places. */
static bool eval_difference(struct as *as, const struct as_expr *e, bool report, struct as_value a,
                            struct as_value b, struct as_value *ret) {
    const struct as_symbol *x = a.symbol, *y = b.symbol;
    if (x == y) {
        *ret = (struct as_value){a.value - b.value, NULL};
        return true;
    }
    if (x->section != NULL && x->section == y->section) {
        *ret = (struct as_value){(int64_t)x->offset - y->offset + a.value - b.value, NULL};
        return true;
    }
    if (x->kind == AS_SYM_UNDEFINED || y->kind == AS_SYM_UNDEFINED)
        return refuse_operation(as, e, report, &a, &b);
    if (report) as_error(as, e->loc, ISA_DIFFERENCE);
    return false;
}

static bool eval_binary(struct as *as, const struct as_expr *e, bool report, struct as_value *ret) {
    struct as_value a, b;
    if (!as_eval(as, e->a, report, &a) || !as_eval(as, e->b, report, &b)) return false;
    const bool compare = e->op == '<' || e->op == '>' || e->op == OP_EQ || e->op == OP_NE ||
                         e->op == OP_LE || e->op == OP_GE;
    if (a.symbol != NULL && b.symbol != NULL && (e->op == '-' || compare)) {
        if (!eval_difference(as, e, report, a, b, &a)) return false;
        b = (struct as_value){0, NULL};
    }
    if (a.symbol == NULL && b.symbol == NULL) {
        *ret = (struct as_value){0, NULL};
        return number_operator(as, e, report, a.value, b.value, &ret->value);
    }
    const bool sum = e->op == '+' && (a.symbol == NULL || b.symbol == NULL);
    if (sum || (e->op == '-' && b.symbol == NULL)) {
        ret->symbol = a.symbol != NULL ? a.symbol : b.symbol;
        ret->value = e->op == '+' ? a.value + b.value : a.value - b.value;
        return true;
    }
    return refuse_operation(as, e, report, &a, &b);
}

static bool eval_unary(struct as *as, const struct as_expr *e, bool report, struct as_value *ret) {
    struct as_value a;
    if (!as_eval(as, e->a, report, &a)) return false;
    if (a.symbol != NULL) return refuse_operation(as, e, report, &a, NULL);
    /* The minus of a half or single literal is its sign bit. */
    const char literal = e->a->literal;
    if (e->op == '-' && literal != 0) a.value ^= literal == 'h' ? 0x8000 : INT64_C(0x80000000);
    else
        a.value = e->op == '-'   ? (int64_t)(0 - (uint64_t)a.value)
                  : e->op == '~' ? ~a.value
                                 : a.value == 0;
    *ret = a;
    return true;
}

bool as_eval(struct as *as, const struct as_expr *e, bool report, struct as_value *ret) {
    if (as->eval_depth > 4 * MAX_EVAL_DEPTH) {
        if (report) as_error(as, e->loc, ISA_TOO_DEEP, "expression");
        return false;
    }
    as->eval_depth++;
    bool ok = true;
    switch (e->kind) {
    case AS_NUMBER:
        *ret = (struct as_value){e->number, NULL};
        break;
    case AS_SYMBOL:
        ok = eval_symbol(as, e, report, ret);
        break;
    case AS_UNARY:
        ok = eval_unary(as, e, report, ret);
        break;
    case AS_BINARY:
        ok = eval_binary(as, e, report, ret);
        break;
    }
    as->eval_depth--;
    return ok;
}

bool as_absolute(struct as *as, struct as_cursor *c, int64_t *ret) {
    struct as_expr *e = as_expr_parse(as, c);
    if (e == NULL) return false;
    struct as_value v;
    /* Labels wait for their item, which may be padded; only a value that needs them binds them. */
    if (!as_eval(as, e, false, &v)) {
        as_bind_labels(as);
        if (!as_eval(as, e, true, &v)) return false;
    }
    if (v.symbol != NULL) {
        const char *name = v.symbol->name;
        as_error(as, e->loc, ISA_NOT_ABSOLUTE, name != NULL ? name : "a label",
                 name != NULL ? as_suggest_symbol(as, name) : "");
        return false;
    }
    *ret = v.value;
    return true;
}
