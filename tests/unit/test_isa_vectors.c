/* The instruction table against tests/data/encodings.csv (every form bit by bit, every sample word)
 * and against the words of exchange 2.1, 2.3 and 11. */
#include "isa/isa_exch.h"
#include "isa/isa_form.h"

#include <stdlib.h>
#include <string.h>

static char **csv_lines(const char *name) {
    char *path = g_build_filename(g_getenv("IPU_SOURCE"), "tests", "data", name, NULL);
    char *text = NULL;
    const gboolean ok = g_file_get_contents(path, &text, NULL, NULL);
    g_assert_true(ok);
    char **lines = g_strsplit(g_strstrip(text), "\n", 0);
    g_free(text);
    g_free(path);
    return lines;
}

static uint32_t hex(const char *s) {
    return (uint32_t)strtoul(s, NULL, 16);
}

/* `role:class@bits`, as the row of the table would be written. */
static char *operand_text(const struct isa_operand *o, bool limits) {
    const char *role = limits ? "limits" : isa_roles[o->role].csv;
    if (o->role == ISA_ROLE_N) role = "imm"; /* delay: the sheet names the field, not the count */
    char *bits = g_strdup(isa_fields[o->field].csv);
    char *text = g_strdup_printf("%s:%s@%s", role, isa_classes[o->class].csv, bits);
    g_free(bits);
    return text;
}

static char *operands_text(const struct isa_form *f, bool limits) {
    GString *out = g_string_new(NULL);
    for (uint32_t i = 0; i < f->n_operands; i++) {
        char *one = operand_text(&f->operand[i], limits && f->operand[i].role == ISA_ROLE_S1);
        g_string_append_printf(out, "%s%s", i == 0 ? "" : ", ", one);
        g_free(one);
    }
    return g_string_free(out, FALSE);
}

static const struct isa_form *form_of(const char *mnemonic, uint32_t word) {
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        if (isa_form(op)->word == word && strcmp(isa_form(op)->mnemonic, mnemonic) == 0)
            return isa_form(op);
    return NULL;
}

static const char *evidence_name(uint32_t e) {
    static const char *const names[] = {[ISA_EV_WORDS] = "words",
                                        [ISA_EV_WORDS_TD] = "words+td",
                                        [ISA_EV_TD] = "td",
                                        [ISA_EV_UNPROVEN] = "td, ipu21 unproven",
                                        [ISA_EV_THIRD_PARTY] = "third-party word",
                                        [ISA_EV_SDK] = "sdk"};
    return names[e];
}

static void test_rows(void) {
    char **lines = csv_lines("encodings.csv");
    uint32_t n_rows = 0, n_exchange = 0;
    for (char **line = lines + 1; *line != NULL; line++, n_rows++) {
        char **col = g_strsplit(*line, ";", 0);
        const struct isa_form *f = form_of(col[0], hex(col[2]));
        if (f == NULL) g_test_message("no row for %s", *line);
        g_assert_nonnull(f);
        char *text = operands_text(f, strstr(col[1], "limits") != NULL);
        g_assert_cmpstr(text, ==, col[1]);
        g_assert_true(g_str_has_prefix(col[3], evidence_name(f->evidence)));
        g_free(text);
        g_strfreev(col);
    }
    g_strfreev(lines);
    for (uint32_t op = 0; op < ISA_N_OPS; op++) n_exchange += isa_form(op)->evidence == ISA_EV_SDK;
    g_assert_cmpuint(n_rows, ==, 362);
    g_assert_cmpuint(n_rows + n_exchange, ==, ISA_N_OPS);
}

static void test_samples(void) {
    char **lines = csv_lines("encodings.csv");
    uint32_t n = 0;
    for (char **line = lines + 1; *line != NULL; line++) {
        char **col = g_strsplit(*line, ";", 0), **samples = g_strsplit(col[4], " ", 0);
        for (char **s = samples; *s != NULL && **s != 0; s++, n++) {
            struct isa_insn insn;
            uint32_t words[2];
            if (!isa_decode(hex(*s), 0, &insn)) g_test_message("%s %s", col[0], *s);
            g_assert_true(isa_decode(hex(*s), 0, &insn));
            g_assert_cmpstr(isa_form(insn.op)->mnemonic, ==, col[0]);
            g_assert_cmphex(isa_form(insn.op)->word, ==, hex(col[2]));
            g_assert_cmpuint(isa_encode(&insn, words), ==, 1);
            g_assert_cmphex(words[0], ==, hex(*s));
        }
        g_strfreev(samples);
        g_strfreev(col);
    }
    g_strfreev(lines);
    g_test_message("%u sample words", n);
    g_assert_cmpuint(n, ==, 726); /* isa 8 */
}

/* No word belongs to two forms: two masks that agree on their common bits would overlap. */
static void test_disjoint(void) {
    for (uint32_t a = 0; a < ISA_N_OPS; a++)
        for (uint32_t b = a + 1; b < ISA_N_OPS; b++) {
            const uint32_t both = isa_form(a)->mask & isa_form(b)->mask;
            g_assert_cmphex((isa_form(a)->word ^ isa_form(b)->word) & both, !=, 0);
        }
}

static void test_exchange_words(void) {
    g_assert_cmphex(isa_word_delay(31), ==, 0x40a0001e);
    g_assert_cmphex(isa_word_delay(1), ==, 0x40a00000);
    g_assert_cmphex(isa_word_send(16, 0x65000 / 4, 3), ==, 0x79eca003);
    g_assert_cmphex(isa_word_send(16, 0x65000 / 4, 1), ==, 0x79eca001);
    g_assert_cmphex(isa_word_delayxpic(1, ISA_XPIC_MUX, 0), ==, 0x64000000);
    g_assert_cmphex(isa_word_delayxpic(16, ISA_XPIC_MUX, 0x640), ==, 0x6403c640);
    g_assert_cmphex(isa_word_delayxpic(37, ISA_XPIC_MUX, 16), ==, 0x64090010);
    g_assert_cmphex(isa_word_delaypic(38, ISA_PIC_PTR, 0x60000 / 4), ==, 0x61298000);
    g_assert_cmphex(isa_word_delaypic(36, ISA_PIC_PTR, 0x61000 / 4), ==, 0x61198400);
    g_assert_cmphex(isa_word_br(10), ==, 0x43a00000);
    g_assert_cmphex(isa_word_sync(3), ==, 0x41800003);
    g_assert_cmphex(isa_word_sans(0), ==, 0x40c00000);
    g_assert_cmphex(isa_word_put(0xa4, 8), ==, 0x438080a4);
    g_assert_cmphex(isa_word_nop(), ==, 0x19e00000);
    g_assert_cmphex(isa_word_sendpic(1, ISA_CSEL_PTR, 5), ==, 0x70180005);
    g_assert_cmphex(isa_word_sendoff(4084, 0, 3), ==, 0x70000003 | (4083 & 63) << 21 | 63 << 14);
    uint32_t w[2];
    isa_word_sendpicp(&(struct isa_sendpicp){.n = 43,
                                             .item_address = 0x14021,
                                             .sctl = 1,
                                             .psel = ISA_PIC_PTR,
                                             .p18 = 0x15000,
                                             .mux = 0x640},
                      w);
    g_assert_cmphex(w[0], ==, 0xf54a0109);
    g_assert_cmphex(w[1], ==, 0x19015000);
    const struct isa_exch e = isa_exch_decode(w, 2);
    g_assert_cmpint(e.kind, ==, ISA_EXCH_SENDPICP);
    g_assert_true(e.n == 43 && e.address == 0x14021 && e.sctl == 1 && e.value == 0x15000 &&
                  e.mux == 0x640 && !e.pair && e.n_words == 2);
    g_assert_cmpint(isa_exch_decode(w, 1).kind, ==, ISA_EXCH_OTHER);
    struct isa_slot slot;
    g_assert_cmpint(isa_slot_decode(w, 2, 0x50000, &slot), ==, ISA_SLOT_OK);
    g_assert_true(slot.n_words == 2 && slot.main.op == ISA_OP_SENDPICP && slot.main.imm2 == 43 &&
                  slot.main.x14 == 0x640 && slot.main.p18 == 0x15000);
    g_assert_cmpint(isa_slot_decode(w, 2, 0x50004, &slot), ==, ISA_SLOT_MISALIGNED);
}

static void test_supervisor_words(void) {
    g_assert_cmphex(isa_word_setzi(11, 0x4c0c4), ==, 0x19b4c0c4);
    g_assert_cmphex(isa_word_ld32(8, 11, 15, 1), ==, 0x01b8f001);
    g_assert_cmphex(isa_word_call(10, 0), ==, 0x18a00000);
    g_assert_cmphex(isa_word_runall(0, 11, 0), ==, 0x1500b000);
    g_assert_cmphex(isa_word_run(1, 2, 0x1234 * 4), ==, 0x14112234);
    g_assert_cmphex(isa_word_get(3, 0x60), ==, 0x41030060);
    g_assert_cmphex(isa_word_put(255, 15), ==, 0x43f080ff);
    g_assert_cmphex(isa_word_add(1, 2, -1), ==, 0x2221ffff);
    g_assert_cmphex(isa_word_trap(1), ==, 0x41801001);
    g_assert_cmphex(isa_word_exitz(15), ==, 0x43f04000);
    g_assert_cmphex(isa_word_bri(0x13000), ==, 0x40804c00);
}

static void refused(uint32_t word) {
    struct isa_insn insn;
    if (isa_decode(word, 0, &insn))
        g_test_message("%08x decodes as %s", word, isa_form(insn.op)->id);
    g_assert_false(isa_decode(word, 0, &insn));
}

/* Bits outside the pattern, odd pairs, update of read-only registers. */
static void test_refused(void) {
    refused(0x00000000);
    refused(0x3f000000);
    refused(0x42007001);        /* abs */
    refused(0x44010001);        /* add with bits in [19:16] */
    refused(0x58001002);        /* f16v4add with an odd pair */
    refused(0x4df2c8c5 | 0x10); /* ld128 into $a13:16 */
    refused(0x1e00c200);        /* ld64step with $m12+= */
    refused(0x4d0000c1);        /* tapack into $m12:13 */
}

/* Every mnemonic is described, and the manual has a row per form. */
static void test_manual(void) {
    GString *out = g_string_new(NULL);
    isa_manual(out);
    for (uint32_t op = 0; op < ISA_N_OPS; op++) {
        g_assert_nonnull(isa_doc(isa_form(op)->mnemonic));
        char *word = g_strdup_printf("| `%08x` |", isa_form(op)->word);
        const char *row = strstr(out->str, word);
        g_assert_nonnull(row);
        char *line = g_strndup(row, strcspn(row, "\n"));
        for (uint32_t k = 0; k < isa_form(op)->n_operands; k++) /* where each operand lies */
            g_assert_nonnull(strstr(line, isa_fields[isa_form(op)->operand[k].field].csv));
        g_free(line);
        g_free(word);
    }
    g_assert_false(isa_manual_entry(out, "foo"));
    g_string_free(out, true);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/isa/vectors/rows", test_rows);
    g_test_add_func("/isa/vectors/samples", test_samples);
    g_test_add_func("/isa/vectors/disjoint", test_disjoint);
    g_test_add_func("/isa/vectors/exchange", test_exchange_words);
    g_test_add_func("/isa/vectors/supervisor", test_supervisor_words);
    g_test_add_func("/isa/vectors/refused", test_refused);
    g_test_add_func("/isa/vectors/manual", test_manual);
    return g_test_run();
}
