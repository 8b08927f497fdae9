/* The table of forms, built from isa.def at compile time except for the masks, which isa_table()
 * computes once from the operand fields. Decoding: bits [30:24], [11:8] and [3:0] of a word (all
 * that tells forms apart besides broadcasts and a few selectors) index a list of candidates in
 * rising order of the table; the first whose mask fits is the form. Lists have 1 to 4 members.
 *
 * Encoding and reading of operands go through the field descriptions, piece by piece. */
#include "isa/isa_form.h"

#include <string.h>

/* clang-format off */
#define MEM_NONE {{0, false}}
#define MEM_L8 {{1, false}}
#define MEM_L16 {{2, false}}
#define MEM_L32 {{4, false}}
#define MEM_L64 {{8, false}}
#define MEM_L128 {{16, false}}
#define MEM_S32 {{4, true}}
#define MEM_S64 {{8, true}}
#define MEM_L16_L16 {{2, false}, {2, false}}
#define MEM_L16_L32 {{2, false}, {4, false}}
#define MEM_L16_L64 {{2, false}, {8, false}}
#define MEM_L32_L32 {{4, false}, {4, false}}
#define MEM_L64_L16 {{8, false}, {2, false}}
#define MEM_L64_L32 {{8, false}, {4, false}}
#define MEM_L64_L64 {{8, false}, {8, false}}
#define MEM_L64_S64 {{8, false}, {8, true}}
#define MEM_L64_L64_S64 {{8, false}, {8, false}, {8, true}}

#define O(role, class, field) {ISA_ROLE_##role, ISA_CLASS_##class, ISA_FIELD_##field}
#define N_OPERANDS(...) \
    (sizeof((struct isa_operand[]){__VA_ARGS__}) / sizeof(struct isa_operand))

static struct isa_form forms[ISA_N_OPS] = {
#define ISA(id_, mnemonic_, word_, pipe_, who_, kind_, slots_, memory_, evidence_, ...)            \
    [ISA_OP_##id_] = {.mnemonic = mnemonic_,                                                       \
                      .id = #id_,                                                                  \
                      .word = word_,                                                               \
                      .pipe = ISA_##pipe_,                                                         \
                      .who = ISA_MODE_##who_,                                                      \
                      .kind = ISA_KIND_##kind_,                                                    \
                      .slots = slots_,                                                             \
                      .evidence = ISA_EV_##evidence_,                                              \
                      .n_operands = N_OPERANDS(__VA_ARGS__),                                       \
                      .access = MEM_##memory_,                                                     \
                      .operand = {__VA_ARGS__}},
#include "isa/isa.def"
#undef ISA
};

const struct isa_class_info isa_classes[] = {
#define ISA_CLASS(id_, kind_, file_, n_, access_, last_, csv_, mark_)                              \
    [ISA_CLASS_##id_] = {.reg = ISA_IS_##kind_, .file = #file_[0], .n = n_,                        \
                         .both = ISA_IS_##access_, .last = last_, .csv = csv_, .mark = mark_},
#include "isa/isa_operand.def"
#undef ISA_CLASS
};

const struct isa_field_info isa_fields[] = {
#define ISA_FIELD(id_, csv_, word_, n_, lo0, b0, lo1, b1, lo2, b2)                                 \
    [ISA_FIELD_##id_] = {.csv = csv_, .word = word_, .n = n_, .lo = {lo0, lo1, lo2},               \
                         .bits = {b0, b1, b2}},
#include "isa/isa_operand.def"
#undef ISA_FIELD
};

const struct isa_role_info isa_roles[] = {
#define ISA_ROLE(id_, member_, access_, csv_)                                                      \
    [ISA_ROLE_##id_] = {.csv = csv_, .write = ISA_IS_##access_,                                    \
                        .offset = offsetof(struct isa_insn, member_),                              \
                        .size = sizeof(((struct isa_insn *)0)->member_)},
#include "isa/isa_operand.def"
#undef ISA_ROLE
};

/* clang-format on */

/* --- Candidates by opcode and selector bits. --- */

enum { N_OPCODES = 128, KEYS_PER_OPCODE = 256, N_KEYS = N_OPCODES * KEYS_PER_OPCODE };
static uint16_t key_first[N_KEYS + 1];
static uint16_t *key_forms;

static uint32_t key_of(uint32_t w) {
    return (w >> 24 & 0x7f) << 8 | (w >> 8 & 0xf) << 4 | (w & 0xf);
}
static uint32_t word_of_key(uint32_t key) {
    return (key >> 8) << 24 | (key >> 4 & 0xf) << 8 | (key & 0xf);
}

static void form_complete(struct isa_form *f) {
    f->mask = UINT32_MAX;
    f->n_words = 1;
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const struct isa_field_info *field = &isa_fields[f->operand[i].field];
        if (field->word == 1) {
            f->n_words = 2;
            continue;
        }
        for (uint32_t k = 0; k < field->n; k++)
            f->mask &= ~(((UINT32_C(1) << field->bits[k]) - 1) << field->lo[k]);
    }
    BUG_ON((f->word & ~f->mask) != 0);
}

static bool form_may_match(uint32_t op, uint32_t key, uint32_t key_mask) {
    return ((word_of_key(key) ^ forms[op].word) & forms[op].mask & key_mask) == 0;
}

/* Appends the candidates of one opcode's keys. */
static void opcode_fill(uint32_t opcode, GArray *all) {
    const uint32_t opcode_mask = word_of_key((N_OPCODES - 1) << 8);
    uint16_t mine[ISA_N_OPS];
    uint32_t n_mine = 0;
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        if (form_may_match(op, opcode << 8, opcode_mask)) mine[n_mine++] = (uint16_t)op;
    for (uint32_t key = opcode << 8; key < (opcode + 1) << 8; key++) {
        key_first[key] = (uint16_t)all->len;
        for (uint32_t i = 0; i < n_mine; i++)
            if (form_may_match(mine[i], key, word_of_key(N_KEYS - 1)))
                g_array_append_val(all, mine[i]);
    }
}

/* Runs before main, so that every reader finds the tables complete and unchanging. */
__attribute__((constructor)) static void table_build(void) {
    for (uint32_t op = 0; op < ISA_N_OPS; op++) form_complete(&forms[op]);
    GArray *all = g_array_new(false, false, sizeof(uint16_t));
    for (uint32_t opcode = 0; opcode < N_OPCODES; opcode++) opcode_fill(opcode, all);
    BUG_ON(all->len > UINT16_MAX);
    key_first[N_KEYS] = (uint16_t)all->len;
    key_forms = (uint16_t *)(void *)g_array_free(all, false);
}

const struct isa_form *isa_form(enum isa_op op) {
    BUG_ON((uint32_t)op >= ISA_N_OPS);
    return &forms[op];
}

/* --- Fields. --- */

static uint32_t field_get(const struct isa_field_info *f, const uint32_t words[2]) {
    uint32_t v = 0;
    for (uint32_t i = 0; i < f->n; i++)
        v = v << f->bits[i] | (words[f->word] >> f->lo[i] & ((UINT32_C(1) << f->bits[i]) - 1));
    return v;
}

static void field_put(const struct isa_field_info *f, uint32_t v, uint32_t words[2]) {
    for (uint32_t i = f->n; i-- > 0; v >>= f->bits[i])
        words[f->word] |= (v & ((UINT32_C(1) << f->bits[i]) - 1)) << f->lo[i];
}

uint32_t isa_field_bits(const struct isa_field_info *f) {
    return (uint32_t)f->bits[0] + f->bits[1] + f->bits[2];
}

static bool register_fits(const struct isa_class_info *c, int64_t v) {
    return v >= 0 && v <= c->last && v % c->n == 0;
}

void isa_operand_range(const struct isa_operand *operand, int64_t *ret_min, int64_t *ret_max) {
    const struct isa_class_info *c = &isa_classes[operand->class];
    const int64_t size = INT64_C(1) << isa_field_bits(&isa_fields[operand->field]);
    *ret_min = c->file == 'S' ? -size / 2 : c->file == 'N' ? 1 : 0;
    *ret_max = c->file == 'S' ? size / 2 - 1 : c->file == 'N' ? size : size - 1;
    if (c->file == 'W') *ret_max *= 4;
    if (c->file == 'T') *ret_max *= 1 << 20;
    if (c->reg) *ret_max = c->last;
}

bool isa_operand_field(const struct isa_operand *operand, int64_t value, uint32_t *ret_field) {
    const struct isa_class_info *c = &isa_classes[operand->class];
    int64_t min, max;
    isa_operand_range(operand, &min, &max);
    if (value < min || value > max) return false;
    if (c->reg && !register_fits(c, value)) return false;
    if (c->file == 'W' && value % 4 != 0) return false;
    if (c->file == 'T' && value % (1 << 20) != 0) return false;
    const uint32_t v = (uint32_t)value;
    *ret_field = c->file == 'W' ? v / 4 : c->file == 'T' ? v >> 20 : c->file == 'N' ? v - 1 : v;
    return true;
}

/* The inverse; false for registers that may not be encoded. */
static bool field_value(const struct isa_operand *operand, uint32_t field, int64_t *ret_value) {
    const struct isa_class_info *c = &isa_classes[operand->class];
    int64_t v = field;
    if (c->reg && !register_fits(c, v)) return false;
    if (c->file == 'S' && field >> (c->n - 1) != 0) v -= INT64_C(1) << c->n;
    if (c->file == 'W') v *= 4;
    if (c->file == 'T') v *= 1 << 20;
    if (c->file == 'N') v += 1;
    *ret_value = v;
    return true;
}

int64_t isa_operand_get(const struct isa_insn *insn, uint32_t i) {
    const struct isa_role_info *r = &isa_roles[forms[insn->op].operand[i].role];
    const uint8_t *at = (const uint8_t *)insn + r->offset;
    if (r->size == 1) return *at;
    if (r->size == 2) return *(const uint16_t *)(const void *)at;
    if (r->offset != offsetof(struct isa_insn, imm)) return *(const uint32_t *)(const void *)at;
    const bool high = isa_classes[forms[insn->op].operand[i].class].file == 'T';
    return high ? (int64_t)(uint32_t)insn->imm : insn->imm;
}

void isa_operand_set(struct isa_insn *insn, uint32_t i, int64_t value) {
    const struct isa_role_info *r = &isa_roles[forms[insn->op].operand[i].role];
    uint8_t *at = (uint8_t *)insn + r->offset;
    if (r->size == 1) *at = (uint8_t)value;
    else if (r->size == 2) *(uint16_t *)(void *)at = (uint16_t)value;
    else *(uint32_t *)(void *)at = (uint32_t)value;
}

/* --- Words. --- */

static bool form_decode(enum isa_op op, const uint32_t words[2], struct isa_insn *ret) {
    const struct isa_form *f = &forms[op];
    struct isa_insn insn = {.op = (uint16_t)op, .n_words = f->n_words};
    for (uint32_t i = 0; i < f->n_operands; i++) {
        int64_t value;
        const uint32_t field = field_get(&isa_fields[f->operand[i].field], words);
        if (!field_value(&f->operand[i], field, &value)) return false;
        isa_operand_set(&insn, i, value);
    }
    *ret = insn;
    return true;
}

bool isa_decode(uint32_t word, uint32_t next, struct isa_insn *ret) {
    const uint32_t key = key_of(word), words[2] = {word, next};
    for (uint32_t i = key_first[key]; i < key_first[key + 1]; i++) {
        const enum isa_op op = key_forms[i];
        if ((word & forms[op].mask) == forms[op].word) return form_decode(op, words, ret);
    }
    return false;
}

uint32_t isa_encode(const struct isa_insn *insn, uint32_t ret_words[2]) {
    const struct isa_form *f = &forms[insn->op];
    uint32_t words[2] = {f->word, 0};
    for (uint32_t i = 0; i < f->n_operands; i++) {
        uint32_t field;
        const bool fits = isa_operand_field(&f->operand[i], isa_operand_get(insn, i), &field);
        BUG_ON(!fits);
        field_put(&isa_fields[f->operand[i].field], field, words);
    }
    ret_words[0] = words[0];
    ret_words[1] = words[1];
    return f->n_words;
}

bool isa_insn_check(const struct isa_insn *insn, uint32_t *ret_operand) {
    const struct isa_form *f = &forms[insn->op];
    for (uint32_t i = 0; i < f->n_operands; i++) {
        uint32_t field;
        if (isa_operand_field(&f->operand[i], isa_operand_get(insn, i), &field)) continue;
        if (ret_operand != NULL) *ret_operand = i;
        return false;
    }
    return true;
}
