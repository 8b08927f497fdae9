/* Damaged sources, objects and images: the assembler, the readers, the linker and the disassembler
 * refuse them or go on, and never crash. The seed is GLib's (--seed). */
#include "isa/isa_asm.h"

#include <string.h>

/* clang-format off */
static const char source[] =
    ".globl entry\n.type entry, @function\n.section .text.k, \"ax\", @progbits\n.worker\n"
    ".macro LOADX dst, n=1\n ld64step \\dst, $mzero, $m2+=, \\n\n.endm\n"
    ".macro REC a\n .if \\a\n REC (\\a)-1\n .endif\n.endm\n"
    "entry:\n get $m1, $WSR\n and $m1, $m1, 7\n ld32 $m2, $mvertex_base, $m15, 1\n"
    " ld32 $m3, $mvertex_base, 2\n uput $FP_CLR, $a6\n LOADX $a0:1\n REC 5\n"
    " tapack $m10:11, $m2, $m3, $m9\n rpt $m4, (2f - 1f)/8 - 1\n1:\n"
    " { ldst64pace $a0:1,$a6:7,$m10:11+=,$mzero,0 ; f16v4hihov4amp $a6:7,$a0:1,$azeros,"
    "TAMP_F16V4_E4_P1 }\n{\n nop\n fnop }\n2:\n ldconst $m5, 0x12345678\n"
    " or $a0, $azero, 0x3f800000\n f16v4add $a0:1, $a2:BL, $a4:5\n brnzdec $m4, 1b\n"
    ".rept 3\n nop\n.endr\n.irp r, 1, 2, 3\n setzi $m\\r, \\r + (2 << 3)\n.endr\n"
    ".altmacro\n.macro L x\n LOCAL z\nz: bri z\n.endm\n L <a>\n.noaltmacro\n"
    ".supervisor\n runall $m0, $m1, 0\n sync 2\n .align 8\n sendpicp 43, 0x14021, 1, 0, 0x640, 5\n"
    ".worker\n exitz $mzero\n.size entry, .-entry\n.data\n.half 1.0, 0x3c00, -2.5h\n"
    ".word entry, 2b-1b, k, shared\n.comm shared, 8, 8\n.set k, 3*(4+j)\n.equ j, 'a'\n.asciz \"hello\\n\"\n.fill 3, 2, 7\n";

static const char *const tokens[] = {
    "$m0", "$a0:1", "$a0:3", "{", "}", ";", "\n", ",", "(", ")", ".macro x a\n", ".endm\n",
    ".rept 9\n", ".endr\n", ".if 1\n", ".else\n", ".endif\n", "1:", "1b", "1f", "\\a", "\\@",
    "\"", "/*", "*/", "//", "0x", "99999999999999999999", "-", "<<", ".", ".text\n", ".align 8\n",
    ".space 100\n", ".set a, a\n", "rpt 3, 4\n", "x 1, 2\n", "+=", ":BL", "$WSR", "1.5h", "'",
    "%", "!", "=", ".irp q, 1, 2\n", ".exitm\n", ".section .z\n", ".bss\n", ".popsection\n",
    ".purgem x\n", ".end\n", "# 7 \"f\"\n", "# 7 \"f\" 1\n", "# 9 \"t.s\" 2\n", ".org . + 8\n",
    ".include \"t\"\n", ".incbin \"t\", 1\n", ".lcomm y, 8, 4\n", ".comm y, 8, 4\n", "\"\\x41", "#define a\n", "\xc3"};
/* clang-format on */

static uint32_t below(uint32_t n) {
    return (uint32_t)g_test_rand_int() % n;
}

static void damage_text(GString *s) {
    for (uint32_t k = below(6) + 1; k > 0 && s->len > 0; k--) {
        const uint32_t at = below((uint32_t)s->len);
        switch (below(5)) {
        case 0:
            s->str[at] = (char)below(256);
            break;
        case 1:
            g_string_erase(s, at, (gssize)below((uint32_t)s->len - at + 1) % 40);
            break;
        case 2:
            g_string_insert(s, at, tokens[below(ARRAY_LEN(tokens))]);
            break;
        case 3:
            g_string_truncate(s, at);
            break;
        default: {
            const uint32_t from = below((uint32_t)s->len);
            char *piece = g_strndup(s->str + from, below(60));
            g_string_insert(s, at, piece);
            g_free(piece);
        }
        }
    }
}

static void test_sources(void) {
    for (uint32_t k = 0; k < 4000; k++) {
        GString *s = g_string_new(source);
        damage_text(s);
        struct isa_messages m;
        isa_messages_init(&m);
        GString *listing = g_string_new(NULL), *report = g_string_new(NULL);
        const struct isa_asm_options options = {.listing = k % 4 == 0 ? listing : NULL,
                                                .target_hardware = k % 8 == 0};
        struct isa_object *o = isa_asm_source(s->str, s->len, "t.s", &options, &m);
        g_assert_true((o == NULL) == (m.n_errors > 0));
        struct isa_image *image = o != NULL ? isa_link(&o, 1, NULL, &m) : NULL;
        isa_messages_print(&m, report);
        isa_image_free(image);
        isa_object_free(o);
        isa_messages_clear(&m);
        g_string_free(report, true);
        g_string_free(listing, true);
        g_string_free(s, true);
    }
}

static void test_noise(void) {
    for (uint32_t k = 0; k < 500; k++) {
        GString *s = g_string_new(NULL);
        for (uint32_t i = below(200); i > 0; i--)
            g_string_append(s, tokens[below(ARRAY_LEN(tokens))]);
        struct isa_messages m;
        isa_messages_init(&m);
        isa_object_free(isa_asm_source(s->str, s->len, "t.s", NULL, &m));
        isa_messages_clear(&m);
        g_string_free(s, true);
    }
}

/* Object and image of the undamaged source. */
static void make_files(GByteArray *object, GByteArray *image) {
    struct isa_messages m;
    isa_messages_init(&m);
    struct isa_object *o = isa_asm_source(source, strlen(source), "t.s", NULL, &m);
    GString *report = g_string_new(NULL);
    isa_messages_print(&m, report);
    if (o == NULL) g_test_message("%s", report->str);
    g_assert_nonnull(o);
    isa_object_write(o, object);
    struct isa_image *x = isa_link(&o, 1, NULL, &m);
    g_assert_nonnull(x);
    isa_image_write(x, image);
    isa_image_free(x);
    isa_object_free(o);
    isa_messages_clear(&m);
    g_string_free(report, true);
}

static uint8_t *damaged(const GByteArray *b, size_t *ret_size) {
    uint8_t *copy = g_memdup2(b->data, b->len);
    for (uint32_t i = below(4) + 1; i > 0; i--) {
        const uint32_t at = below(2) != 0 ? below(b->len) : b->len - 1 - below(MIN(b->len, 600u));
        copy[at] = below(3) == 0 ? 0xff : (uint8_t)below(256);
    }
    *ret_size = below(4) == 0 ? below(b->len) : b->len;
    return copy;
}

static void test_files(void) {
    GByteArray *object = g_byte_array_new(), *image = g_byte_array_new();
    make_files(object, image);
    uint32_t n_read = 0;
    for (uint32_t k = 0; k < 20000; k++) {
        size_t size;
        uint8_t *bytes = damaged(k % 2 == 0 ? object : image, &size);
        /* In a block of exactly this size, so that a checker sees every read beyond it. */
        uint8_t *exact = g_memdup2(bytes, size);
        struct isa_messages m;
        isa_messages_init(&m);
        GString *out = g_string_new(NULL);
        GError *error = NULL;
        struct isa_object *o = k % 2 == 0 ? isa_object_read(exact, size, "t", &error) : NULL;
        struct isa_image *x = k % 2 == 0 ? NULL : isa_image_read(exact, size, "t", &error);
        g_assert_true((o == NULL && x == NULL) == (error != NULL));
        n_read += error == NULL;
        if (o != NULL) {
            isa_object_dump(out, o, 15, NULL);
            GError *no_source = NULL;
            g_assert_true(isa_object_source(out, o, &no_source) == (no_source == NULL));
            g_clear_error(&no_source);
            isa_image_free(isa_link(&o, 1, &(struct isa_layout){.anywhere = true}, &m));
        }
        if (x != NULL) isa_image_dump(out, x, 15, NULL);
        g_clear_error(&error);
        isa_object_free(o);
        isa_image_free(x);
        isa_messages_clear(&m);
        g_string_free(out, true);
        g_free(exact);
        g_free(bytes);
    }
    g_test_message("%u of 20000 damaged files could still be read", n_read);
    g_byte_array_free(object, true);
    g_byte_array_free(image, true);
}

static void test_words(void) {
    for (uint32_t k = 0; k < 2000; k++) {
        uint32_t words[64];
        for (uint32_t i = 0; i < ARRAY_LEN(words); i++) words[i] = (uint32_t)g_test_rand_int();
        GString *out = g_string_new(NULL);
        isa_dump_bytes(out, (const uint8_t *)words, below(256), 0x4c000, NULL);
        g_string_free(out, true);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/isa/fuzz/sources", test_sources);
    g_test_add_func("/isa/fuzz/noise", test_noise);
    g_test_add_func("/isa/fuzz/files", test_files);
    g_test_add_func("/isa/fuzz/words", test_words);
    return g_test_run();
}
