/* Round trips over all forms with random operands: encode and decode, print and assemble; random
 * words decode and re-encode to themselves or are refused. The seed is GLib's (--seed). */
#include "isa/isa_asm.h"
#include "isa/isa_exch.h"
#include "isa/isa_form.h"

#include <string.h>

static int64_t random_value(const struct isa_operand *o) {
    const struct isa_class_info *c = &isa_classes[o->class];
    int64_t min, max;
    isa_operand_range(o, &min, &max);
    const int64_t step = c->reg ? c->n : c->file == 'W' ? 4 : c->file == 'T' ? 1 << 20 : 1;
    const int64_t n = (max - min) / step + 1;
    const uint64_t r = (uint64_t)g_test_rand_int() << 32 | (uint32_t)g_test_rand_int();
    const uint32_t corner = (uint32_t)g_test_rand_int_range(0, 8);
    if (corner == 0) return min;
    if (corner == 1) return min + (n - 1) * step;
    return min + (int64_t)(r % (uint64_t)n) * step;
}

static struct isa_insn random_insn(enum isa_op op) {
    const struct isa_form *f = isa_form(op);
    struct isa_insn x = {.op = (uint16_t)op, .n_words = f->n_words};
    for (uint32_t i = 0; i < f->n_operands; i++)
        isa_operand_set(&x, i, random_value(&f->operand[i]));
    return x;
}

static void assert_same(const struct isa_insn *a, const struct isa_insn *b) {
    g_assert_cmpint(a->op, ==, b->op);
    for (uint32_t i = 0; i < isa_form(a->op)->n_operands; i++)
        g_assert_cmpint(isa_operand_get(a, i), ==, isa_operand_get(b, i));
    g_assert_cmpint(a->n_words, ==, b->n_words);
}

static void test_encode_decode(void) {
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        for (uint32_t k = 0; k < 200; k++) {
            const struct isa_insn x = random_insn(op);
            struct isa_insn y;
            uint32_t words[2];
            g_assert_true(isa_insn_check(&x, NULL));
            g_assert_cmpuint(isa_encode(&x, words), ==, x.n_words);
            g_assert_true(isa_decode(words[0], words[1], &y));
            assert_same(&x, &y);
        }
}

static void test_random_words(void) {
    uint32_t n_decoded = 0;
    for (uint32_t k = 0; k < 2000000; k++) {
        const uint32_t w = (uint32_t)g_test_rand_int(), next = (uint32_t)g_test_rand_int();
        struct isa_insn x;
        uint32_t words[2];
        if (!isa_decode(w, next, &x)) continue;
        n_decoded++;
        const uint32_t n = isa_encode(&x, words);
        g_assert_cmphex(words[0], ==, w);
        if (n == 2) g_assert_cmphex(words[1], ==, next);
    }
    g_assert_cmpuint(n_decoded, >, 1000);
    g_test_message("%u of 2000000 words are instructions", n_decoded);
}

/* The text section of an assembled source, with the messages printed on failure. */
static GByteArray *assemble(const char *text) {
    struct isa_messages m;
    isa_messages_init(&m);
    const struct isa_asm_options options = {.allow_invalid_operands = true};
    struct isa_object *o = isa_asm_source(text, strlen(text), "t.s", &options, &m);
    GString *report = g_string_new(NULL);
    isa_messages_print(&m, report);
    if (o == NULL) g_test_message("%s", report->str);
    g_assert_nonnull(o);
    const struct isa_section *s = g_ptr_array_index(o->sections, 0);
    GByteArray *bytes = g_byte_array_new();
    g_byte_array_append(bytes, s->bytes->data, s->bytes->len);
    g_string_free(report, true);
    isa_messages_clear(&m);
    isa_object_free(o);
    return bytes;
}

static uint32_t word_at(const GByteArray *b, uint32_t i) {
    uint32_t w;
    memcpy(&w, b->data + 4 * i, 4);
    return GUINT32_FROM_LE(w);
}

/* The `<< 20` form with 0 prints as mov or as the plain form, which has another word. */
static bool has_other_word(const struct isa_insn *x) {
    const struct isa_form *f = isa_form(x->op);
    return f->operand[f->n_operands - 1].class == ISA_CLASS_T12 && x->imm == 0;
}

/* $m and $a register operands that the assembler refuses although they can be encoded. */
static bool is_refused(const struct isa_insn *x) {
    const struct isa_form *f = isa_form(x->op);
    if (f->kind != ISA_KIND_MEM) return false;
    for (uint32_t i = 1; i < f->n_operands; i++) {
        const struct isa_class_info *c = &isa_classes[f->operand[i].class];
        if (isa_classes[f->operand[0].class].file == 'M' && c->reg && c->both &&
            isa_operand_get(x, i) == x->d)
            return true;
        const uint8_t n = isa_classes[f->operand[0].class].n;
        if (f->operand[i].role == ISA_ROLE_D1 && x->d1 >= x->d && x->d1 < x->d + n) return true;
    }
    return false;
}

static void test_print_assemble(void) {
    for (uint32_t mode = 0; mode <= 2; mode++) {
        GString *text = g_string_new(NULL);
        GArray *words = g_array_new(false, false, sizeof(uint32_t));
        const struct isa_print print = {.mode = (enum isa_mode)mode, .flag_names = mode == 1};
        for (uint32_t op = 0; op < ISA_N_OPS; op++)
            for (uint32_t k = 0; k < 10; k++) {
                const struct isa_insn x = random_insn(op);
                const bool rpt = op == ISA_OP_RPT_R || op == ISA_OP_RPT_Z;
                if (has_other_word(&x) || is_refused(&x) || x.n_words == 2 || rpt) continue;
                uint32_t w[2];
                isa_encode(&x, w);
                g_array_append_val(words, w[0]);
                isa_insn_print(text, &x, &print);
                g_string_append_c(text, '\n');
            }
        GByteArray *bytes = assemble(text->str);
        g_assert_cmpuint(bytes->len, ==, 4 * words->len);
        for (uint32_t i = 0; i < words->len; i++)
            g_assert_cmphex(word_at(bytes, i), ==, g_array_index(words, uint32_t, i));
        g_byte_array_free(bytes, true);
        g_array_free(words, true);
        g_string_free(text, true);
    }
}

static void test_bundles(void) {
    GString *text = g_string_new(NULL);
    GArray *words = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t k = 0; k < 60000; k++) {
        struct isa_slot slot = {.main = random_insn((uint32_t)g_test_rand_int() % ISA_N_OPS),
                                .aux = random_insn((uint32_t)g_test_rand_int() % ISA_N_OPS),
                                .bundle = true,
                                .n_words = 2};
        if (isa_bundle_check(&slot.main, &slot.aux) != ISA_BUNDLE_OK) continue;
        const bool rpt = slot.main.op == ISA_OP_RPT_R || slot.main.op == ISA_OP_RPT_Z;
        if (rpt || has_other_word(&slot.main) || has_other_word(&slot.aux) ||
            is_refused(&slot.main))
            continue;
        uint32_t m[2], a[2];
        isa_encode(&slot.main, m);
        isa_encode(&slot.aux, a);
        const uint32_t pair[2] = {m[0] | UINT32_C(1) << 31, a[0] | UINT32_C(1) << 31};
        struct isa_slot back;
        g_assert_cmpint(isa_slot_decode(pair, 2, 8, &back), ==, ISA_SLOT_OK);
        assert_same(&slot.main, &back.main);
        assert_same(&slot.aux, &back.aux);
        g_assert_cmpint(isa_slot_decode(pair, 2, 4, &back), ==, ISA_SLOT_MISALIGNED);
        g_array_append_vals(words, pair, 2);
        isa_slot_print(text, &slot, NULL);
        g_string_append_c(text, '\n');
    }
    g_assert_cmpuint(words->len, >, 2000);
    GByteArray *bytes = assemble(text->str);
    g_assert_cmpuint(bytes->len, ==, 4 * words->len);
    for (uint32_t i = 0; i < words->len; i++)
        g_assert_cmphex(word_at(bytes, i), ==, g_array_index(words, uint32_t, i));
    g_byte_array_free(bytes, true);
    g_array_free(words, true);
    g_string_free(text, true);
}

static void test_sendpicp(void) {
    for (uint32_t k = 0; k < 200; k++) {
        const struct isa_insn x = random_insn(ISA_OP_SENDPICP);
        GString *text = g_string_new(NULL);
        isa_insn_print(text, &x, NULL);
        GByteArray *bytes = assemble(text->str);
        uint32_t w[2];
        isa_encode(&x, w);
        g_assert_cmpuint(bytes->len, ==, 8);
        g_assert_cmphex(word_at(bytes, 0), ==, w[0]);
        g_assert_cmphex(word_at(bytes, 1), ==, w[1]);
        g_byte_array_free(bytes, true);
        g_string_free(text, true);
    }
}

/* The reader of rows and the decoder agree on every field of the exchange instructions. */
static void test_rows(void) {
    static const struct {
        enum isa_op op;
        enum isa_exch_kind kind;
    } kinds[] = {{ISA_OP_DELAY, ISA_EXCH_DELAY},         {ISA_OP_DELAYPIC, ISA_EXCH_DELAYPIC},
                 {ISA_OP_DELAYXPIC, ISA_EXCH_DELAYXPIC}, {ISA_OP_SEND, ISA_EXCH_SEND},
                 {ISA_OP_SENDOFF, ISA_EXCH_SENDOFF},     {ISA_OP_SENDPIC, ISA_EXCH_SENDPIC},
                 {ISA_OP_SENDPICP, ISA_EXCH_SENDPICP}};
    for (uint32_t k = 0; k < 7000; k++) {
        const struct isa_insn x = random_insn(kinds[k % 7].op);
        uint32_t w[2];
        isa_encode(&x, w);
        const struct isa_exch e = isa_exch_decode(w, 2);
        g_assert_cmpint(e.kind, ==, kinds[k % 7].kind);
        g_assert_cmpuint(e.n_words, ==, x.n_words);
        const bool sends = x.op == ISA_OP_SEND || x.op == ISA_OP_SENDOFF;
        const bool both = x.op == ISA_OP_SENDPICP;
        g_assert_cmpuint(e.n, ==, x.imm2);
        g_assert_cmpuint(e.sctl, ==, x.sctl);
        g_assert_cmpuint(e.sel, ==, x.sel);
        g_assert_cmpint(sends || both ? (int32_t)e.address : (int32_t)e.value, ==, x.imm);
        if (both) g_assert_true(e.value == x.p18 && (e.pair << 13 | e.mux) == x.x14);
    }
}

static void test_objects(void) {
    static const char text[] =
        ".globl f\n.weak w\n.text\nf: call $m10, g\nsetzi $m0, data+4\n.section .text.b,\"ax\"\n"
        "g: bri f\nbri w\n{ nop ; fnop }\n.data\ndata: .word f, g+8, data, 5\n.short 7\n.bss\n"
        "buffer: .space 64\n.set k, 12\n";
    struct isa_messages m;
    isa_messages_init(&m);
    struct isa_object *o = isa_asm_source(text, strlen(text), "t.s", NULL, &m);
    g_assert_nonnull(o);
    GByteArray *first = g_byte_array_new(), *second = g_byte_array_new();
    isa_object_write(o, first);
    GError *error = NULL;
    struct isa_object *back = isa_object_read(first->data, first->len, "t.o", &error);
    g_assert_no_error(error);
    struct isa_image *a = isa_link(&o, 1, NULL, &m), *b = isa_link(&back, 1, NULL, &m);
    g_assert_nonnull(a);
    g_assert_nonnull(b);
    g_byte_array_set_size(first, 0);
    isa_image_write(a, first);
    isa_image_write(b, second);
    g_assert_cmpmem(first->data, first->len, second->data, second->len);
    struct isa_image *c = isa_image_read(first->data, first->len, "t.x", &error);
    g_assert_no_error(error);
    g_byte_array_set_size(second, 0);
    isa_image_write(c, second);
    g_assert_cmpmem(first->data, first->len, second->data, second->len);
    isa_image_free(a);
    isa_image_free(b);
    isa_image_free(c);
    isa_object_free(o);
    isa_object_free(back);
    g_byte_array_free(first, true);
    g_byte_array_free(second, true);
    isa_messages_clear(&m);
}

/* --target-hardware without an SDK header refuses exactly what isa 8.8 names: symbolic flags of AMP,
 * SLIC, istacc, stacc (but the plain 0 of stacc) and the immediates of gina for set 1. */
static bool is_public(const struct isa_insn *x) {
    const char *name = isa_form(x->op)->mnemonic;
    if (g_str_has_suffix(name, "gina")) return x->imm < 2;
    if (strcmp(name, "f16v4stacc") == 0) return x->imm == 0;
    const bool amp = g_str_has_suffix(name, "amp") && !g_str_has_suffix(name, "clamp");
    return !amp && !g_str_has_suffix(name, "slic") && strcmp(name, "f16v4istacc") != 0;
}
static void test_hardware(void) {
    const struct isa_asm_options options = {.allow_invalid_operands = true, .target_hardware = true};
    uint32_t n_refused = 0;
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        for (uint32_t k = 0; k < 6; k++) {
            struct isa_insn x = random_insn(op);
            if (g_str_has_suffix(isa_form(op)->mnemonic, "gina")) x.imm = (int32_t)k;
            if (op == ISA_OP_F16V4STACC) x.imm = (int32_t)k / 3;
            if (is_refused(&x)) continue; /* for another reason */
            const bool worker = isa_form(op)->who & ISA_MODE_W;
            GString *text = g_string_new(worker ? ".worker\n.allow_invalid_repeat\n" : ".supervisor\n");
            isa_insn_print(text, &x, &(struct isa_print){.mode = worker ? ISA_MODE_W : ISA_MODE_S});
            g_string_append_c(text, '\n');
            struct isa_messages m;
            isa_messages_init(&m);
            struct isa_object *o = isa_asm_source(text->str, text->len, "t.s", &options, &m);
            if ((o != NULL) != is_public(&x)) g_test_message("%s", text->str);
            g_assert_true((o != NULL) == is_public(&x));
            n_refused += o == NULL;
            isa_messages_clear(&m);
            if (o != NULL) isa_object_free(o);
            g_string_free(text, true);
        }
    g_assert_cmpuint(n_refused, >, 90);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/isa/roundtrip/encode", test_encode_decode);
    g_test_add_func("/isa/roundtrip/words", test_random_words);
    g_test_add_func("/isa/roundtrip/text", test_print_assemble);
    g_test_add_func("/isa/roundtrip/bundles", test_bundles);
    g_test_add_func("/isa/roundtrip/sendpicp", test_sendpicp);
    g_test_add_func("/isa/roundtrip/rows", test_rows);
    g_test_add_func("/isa/roundtrip/objects", test_objects);
    g_test_add_func("/isa/roundtrip/hardware", test_hardware);
    return g_test_run();
}
