/* Objects printed as source and assembled again are the same objects: contents, relocations,
 * symbols; over sources that use every kind of reference, the kernels of the tree and random words.
 */
#include "isa/isa_asm.h"

#include <string.h>

static struct isa_object *assemble(const char *text, size_t length, const char *name) {
    struct isa_messages m;
    isa_messages_init(&m);
    struct isa_object *o = isa_asm_source(text, length, name, NULL, &m);
    GString *s = g_string_new(NULL);
    isa_messages_print(&m, s);
    if (o == NULL) g_test_message("%s\n%s", s->str, length < 20000 ? text : "");
    g_string_free(s, true);
    isa_messages_clear(&m);
    g_assert_nonnull(o);
    return o;
}

/* Symbols but those of sections, a line each, and what relocations name. */
static char *names_text(const struct isa_object *o) {
    GString *s = g_string_new(NULL);
    for (uint32_t i = 0; i < o->symbols->len; i++) {
        const struct isa_symbol *k = &g_array_index(o->symbols, struct isa_symbol, i);
        if (k->type == ISA_SYM_SECTION) continue;
        g_string_append_printf(s, "%s %d %x %x %u %u\n", k->name, k->section, k->value, k->size,
                               k->binding, k->type);
    }
    return g_string_free(s, FALSE);
}

static char *section_text(const struct isa_object *o, uint32_t i) {
    const struct isa_section *k = g_ptr_array_index(o->sections, i);
    GString *s = g_string_new(NULL);
    g_string_append_printf(s, "%s %x %u %u\n", k->name, k->flags, k->align, k->size);
    for (uint32_t n = 0; n < k->bytes->len; n++)
        g_string_append_printf(s, "%02x%s", k->bytes->data[n], n % 32 == 31 ? "\n" : "");
    g_string_append_c(s, '\n');
    for (uint32_t n = 0; n < k->relocs->len; n++) {
        const struct isa_reloc *r = &g_array_index(k->relocs, struct isa_reloc, n);
        const struct isa_symbol *y = &g_array_index(o->symbols, struct isa_symbol, r->symbol);
        g_string_append_printf(s, "%x %u %s%+d\n", r->offset, r->type, y->name, r->addend);
    }
    return g_string_free(s, FALSE);
}

static void check_same(const struct isa_object *a, const struct isa_object *b) {
    char *x = names_text(a), *y = names_text(b);
    g_assert_cmpstr(x, ==, y);
    g_free(x);
    g_free(y);
    g_assert_cmpuint(a->sections->len, ==, b->sections->len);
    for (uint32_t i = 0; i < a->sections->len; i++) {
        x = section_text(a, i);
        y = section_text(b, i);
        g_assert_cmpstr(x, ==, y);
        g_free(x);
        g_free(y);
    }
}

static void check_round(const char *text, size_t length, const char *name) {
    struct isa_object *o = assemble(text, length, name);
    GString *s = g_string_new(NULL);
    GError *error = NULL;
    isa_object_source(s, o, &error);
    g_assert_no_error(error);
    struct isa_object *again = assemble(s->str, s->len, name);
    check_same(o, again);
    isa_object_free(o);
    isa_object_free(again);
    g_string_free(s, true);
}

/* clang-format off */
static const char *const sources[] = {
    "",
    "nop\n",
    /* Every kind of reference, to names, numeric labels, ends and places beyond. */
    ".globl f\n.type f, @function\nf: call $m10, g\n bri f\n brnz $m0, 1f\n setzi $m1, 1f + 4\n"
    " run $m0, $m1, f\n runall $m0, $m1, table\n1: brnzdec $m2, 1b\n setzi $m14, f\n"
    " call $m10, g + 8\n setzi $a0, .Lend\n bri . + 8\n.Lend:\n.size f, .Lend - f\n.weak w\n"
    " bri w\n.data\ntable: .word f, g, 1b, table + 2, .Lend\n.short table\n.byte table\n"
    ".quad f - 4\n.globl table\n.type table, @object\n.size table, 20\n.set five, 5\n"
    ".globl six\nsix = 6\n",
    /* Bundles with a reference in the main member; padding; data among code; bodies of rpt. */
    "a: nop\n{ bri a ; fnop }\n{ setzi $m1, b ; setzi $a0, c }\n.word a, 0x19e00000\n"
    "rpt 3, 0\n{ nop ; f16v2add $a0, $a1, $a2 }\n.byte 1, 2\n.short b\nb: .align 8\nc: nop\n.align 8\n"
    "sendpicp 43, 0x14021, 1, 0, 0x640, 0x15000\n.byte 7\nd:\n",
    /* Aliases and forced kinds of immediates keep their words. */
    "mov $m0, $m0\naddz $m0, $m0, 42\nadd $m0, $m0, 0x9000\nsub $m0, $m1, 4\nzero $a0:1\nstrap\n"
    "swap16 $m1, $m2\nmovnz $m1, $m2, $m3\nuput $TAS, $a0\nget $m0, $WSR\nldconst $m5, 0x12345678\n",
    /* Words the assembler would not make: rpt at 0 modulo 8, a body that is none, a step into its own
     * register, a member pair that writes one register. */
    ".word 0x40000500\nnop\n.word 0x40000500\n.word 0x1c112101\n.word 0x99e00000, 0x9ad00000\n"
    "x = . - 2\n.globl x\n",
    /* Sections. */
    ".section .text.k, \"ax\"\n.align 16\nk: bri k\n.bss\n.space 3\nz: .space 40\n.rodata\n.word z\n"
    ".section odd-name, \"\"\n.word 1\n.space 100\n.section .interleaved.x, \"aw\"\n.float 1.0\n"
    ".comm shared, 12, 8\n.word shared + 4\n.lcomm own, 3\n.word own\n",
};
/* clang-format on */

static void test_sources(void) {
    for (size_t i = 0; i < ARRAY_LEN(sources); i++)
        check_round(sources[i], strlen(sources[i]), "t.s");
}

static uint32_t check_folder(const char *folder) {
    char *path = g_build_filename(g_getenv("IPU_SOURCE"), folder, NULL);
    char *flag = g_strdup_printf("-I%s", path);
    const char *const flags[] = {flag, NULL};
    GDir *dir = g_dir_open(path, 0, NULL);
    g_assert_nonnull(dir);
    uint32_t n = 0;
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;) {
        if (!g_str_has_suffix(name, ".S")) continue;
        char *file = g_build_filename(path, name, NULL), *text;
        size_t size;
        GError *error = NULL;
        isa_preprocess(file, flags, &text, &size, &error);
        g_assert_no_error(error);
        check_round(text, size, name);
        n++;
        g_free(text);
        g_free(file);
    }
    g_dir_close(dir);
    g_free(path);
    g_free(flag);
    return n;
}

static void test_kernels(void) {
    g_assert_cmpuint(check_folder("device"), >=, 30);
    g_assert_cmpuint(check_folder("examples/kernels"), >=, 3);
}

static void test_words(void) {
    for (uint32_t k = 0; k < 300; k++) {
        GString *s = g_string_new(k % 2 == 0 ? ".align 8\nf:\n" : "f:\n");
        for (uint32_t i = 0; i < 64; i++) {
            uint32_t w = (uint32_t)g_test_rand_int();
            if (g_test_rand_int_range(0, 3) == 0) w = (w & 0x80ffffff) | 0x40000000;
            g_string_append_printf(s, ".word 0x%08x\n", w);
        }
        check_round(s->str, s->len, "t.s");
        g_string_free(s, true);
    }
}

static void test_refused(void) {
    struct isa_object *o = assemble("f: bri f\n", 9, "t.s");
    struct isa_section *text = g_ptr_array_index(o->sections, 0);
    g_array_index(text->relocs, struct isa_reloc, 0).type = ISA_R_16_S3;
    GString *s = g_string_new(NULL);
    GError *error = NULL;
    g_assert_false(isa_object_source(s, o, &error));
    g_assert_error(error, diag_quark(), DIAG_ISA_NO_SOURCE);
    g_clear_error(&error);
    g_array_index(text->relocs, struct isa_reloc, 0).type = ISA_R_19_S2;
    struct isa_symbol *f = &g_array_index(o->symbols, struct isa_symbol, 1);
    g_free(f->name);
    f->name = g_strdup("a b");
    g_assert_false(isa_object_source(s, o, &error));
    g_assert_error(error, diag_quark(), DIAG_ISA_NO_SOURCE);
    g_clear_error(&error);
    g_string_free(s, true);
    isa_object_free(o);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/isa/source/sources", test_sources);
    g_test_add_func("/isa/source/kernels", test_kernels);
    g_test_add_func("/isa/source/words", test_words);
    g_test_add_func("/isa/source/refused", test_refused);
    return g_test_run();
}
