/* The assembler: what sources give which words, and which errors stand where. */
#include "isa/isa_as.h"
#include "isa/isa_asm.h"

#include <math.h>

#include <stdlib.h>
#include <string.h>

struct run {
    struct isa_messages messages;
    struct isa_object *object;
};

static struct run run_with(const char *text, const struct isa_asm_options *options) {
    struct run r;
    isa_messages_init(&r.messages);
    r.object = isa_asm_source(text, strlen(text), "t.s", options, &r.messages);
    return r;
}

static void run_end(struct run *r) {
    isa_object_free(r->object);
    isa_messages_clear(&r->messages);
}

static void show(const struct run *r) {
    GString *s = g_string_new(NULL);
    isa_messages_print(&r->messages, s);
    g_test_message("%s", s->str);
    g_string_free(s, true);
}

/* Words of the first section, linked at 0, as hexadecimal text. */
static char *words_of(const char *text, const struct isa_asm_options *options) {
    struct run r = run_with(text, options);
    if (r.object == NULL) {
        g_test_message("%s", text);
        show(&r);
    }
    g_assert_nonnull(r.object);
    const struct isa_place place = {".text", 0};
    const struct isa_layout layout = {
        .places = &place, .n_places = 1, .text_base = 0x1000, .anywhere = true};
    struct isa_image *image = isa_link(&r.object, 1, &layout, &r.messages);
    if (image == NULL) show(&r);
    g_assert_nonnull(image);
    GString *out = g_string_new(NULL);
    if (image->segments->len != 0) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, 0);
        for (uint32_t i = 0; i + 4 <= s->size; i += 4) {
            uint32_t w;
            memcpy(&w, s->bytes + i, 4);
            g_string_append_printf(out, "%s%08x", i != 0 ? " " : "", GUINT32_FROM_LE(w));
        }
    }
    isa_image_free(image);
    run_end(&r);
    return g_string_free(out, FALSE);
}

static const struct {
    const char *source, *words;
} good[] = {
    /* clang-format off */
    /* Names of registers, omitted delta, forms by value. */
    {"add $sp, $lr, -8", "22abfff8"},
    {"add $m0, $m1, 0x9000", "20109000"},
    {"addz $m0, $m1, 42", "2010002a"},
    {"add $m0, $m1, 0xffffffff", "2210ffff"},
    {"sub $m0, $m1, 4", "2210fffc"},
    {"sub $m0, 4, $m1", "39100004"},
    {"sub $m2, $m1, $m0", "44001622"},
    {"cmpeqs $m1, $m2, -1; cmpeqz $m1, $m2, 1", "2821ffff 26210001"},
    {"ld32 $m0, $m1, 4", "0110f004"},
    {"ld32 $a0, $mvertex_base, $mzero, 4", "08d0f004"},
    {"st32 $a1, $m2, $m3, 0x123", "5e223113"},
    {"ld64step $azeros, $mzero, $m2+=, -1", "1efe22ff"},
    {"ld64step $azeros, $mzero, $m2+=, $m5", "47f522e1"},
    {"ldd16a64 $a0:1, $m1++, $m2, $m3@", "45231b00"},
    {"ldb16b16 $a0:1, $m1, $m2++, $m3>>", "45123900"},
    {"ld2xst64pace $a0:3, $a4:5, $m6:7+=, $mzero, 0b110110", "56f06b46"},
    {"or $a0, $azero, 0x3f800000", "52f0d3f8"},
    {"or $m0, $m1, 0xfff; or $m0, $m1, 0xfff00000", "42109fff 4210cfff"},
    {"andc $a1, $a2, -1048576", "5221ffff"},
    {"f16v4add $a0:1, $a2:BL, $a4:5; f16v4add $a0:1, $a2:BU, $a4:5", "58284002 582c4002"},
    {"f32v2mul $a0:1, $a2:B, $a4:5", "58284303"},
    {"f32clamp $a0, $a1, $a2:3", "5810240c"},
    {"get $m1, $WSR; uput $FP_CLR, $a6; put $FP_CLR, $a6; get $a1, $TAS",
     "41010001 51608001 51608001 51010808"},
    {"put $CCCSLOAD, $m3; put 255, $m15; strap", "43308050 43f080ff 43f080ff"},
    {"uput 257, $a0; uget $a0, 1", "51008001 51000801"},
    /* Aliases. */
    {"nop; fnop; mov $m1, $m2; mov $a1, $a2", "19e00000 1ad00000 42219000 52219000"},
    {"mov $a0:1, $a2:3; mov $m1, $a2; zero $m1; zero $a0:1", "5820ee01 5d010020 44f0f311 58e0ee01"},
    {"movnz $m1, $m2, $m3; movz $m1, $m2, $m3; swap16 $m1, $m2", "47231a00 47231a00 44202312"},
    {"ldconst $m1, 0x12345; ldconst $m1, 0x12345678; ldconst $a1, -1",
     "19112345 19145678 4211c123 1a1fffff 5211dfff"},
    {"f16v4sisov2amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P3", "5b402703"},
    /* Numbers and expressions. */
    {"setzi $m0, 0x10 + 0b11 * 2 - 'a' / 0141", "19000015"},
    {"setzi $m0, 1 << 4 | 3", "19000013"},
    {"setzi $m0, (1 + 2) * 3 == 9 && 1", "19000001"},
    {"setzi $a0, 1.0h; setzi $a0, -2.5h; setzi $a0, infh; setzi $a0, 65504.0h",
     "1a003c00 1a00c100 1a007c00 1a007bff"},
    {".set k, 5\n.equ j, k * 2\nsetzi $m0, j\nk = 7\nsetzi $m0, k", "1900000a 19000007"},
    {"setzi $m0, later\n.set later, 9", "19000009"},
    {"setzi $m0, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT", "19000008"},
    {"setzi $m0, CSR_S_CCCSLOAD__INDEX; setzi $m0, TMEM_REGION0_BASE_ADDR", "19000050 1904c000"},
    /* Labels: addresses for labels, words for constants. */
    {"a: nop\nbri a\nbri 3\nb: brnz $m0, b", "19e00000 40800000 40800003 11000003"},
    {"1: nop\n1: bri 1b\nbri 1f\n1: nop", "19e00000 40800001 40800003 19e00000"},
    {"nop\nsetzi $m0, .", "19e00000 19000004"},
    {"call $m10, f\nf: nop", "18a00001 19e00000"},
    {".word f, f+4, .-f\nf: nop", "0000000c 00000010 fffffffc 19e00000"},
    /* Bundles, padding, repeat. */
    {"{ nop ; fnop }", "99e00000 9ad00000"},
    {"{nop\nfnop}\n{\nnop\nfnop\n}", "99e00000 9ad00000 99e00000 9ad00000"},
    {"nop\nx: { nop ; fnop }\nbri x", "19e00000 19e00000 99e00000 9ad00000 40800002"},
    {"rpt $m0, (2f - 1f) / 8 - 1\n1: { nop ; fnop }\n{ nop ; fnop }\n2: nop",
     "19e00000 4300a001 99e00000 9ad00000 99e00000 9ad00000 19e00000"},
    {"nop\nrpt 5, 0\n{ nop ; fnop }", "19e00000 40000500 99e00000 9ad00000"},
    {"{ rpt $m1, 0 ; fnop }\n{ nop ; fnop }", "c310a000 9ad00000 99e00000 9ad00000"},
    {".allow_optimizations\n{ fnop ; nop }", "99e00000 9ad00000"},
    {"{ ld128step $a0:3, $mzero, $m0+=, 1 ; f16v8acc $a0:3 }", "9ef00a01 d9008100"},
    /* Exchange instructions. */
    {"delay 1; delay 524288", "40a00000 40a7ffff"},
    {"delayxpic 16, 0, 0x640; delaypic 38, 0, 0x18000", "6403c640 61298000"},
    {"send 16, 0x19400, 3; sendoff 4084, 0, 3", "79eca003 766fc003"},
    {"sendpicp 43, 0x14021, 1, 0, 0x640, 0x15000", "f54a0109 19015000"},
    {"sync 3; sans 0; run $m0, $m1, 1; runall $m0, $m11, 0", "41800003 40c00000 14001001 1500b000"},
    /* Data. */
    {".byte 1, 2, -1, 'a'; .short 0x1234; .half 1.0; .half 0x3c00, 2", "61ff0201 3c001234 00023c00"},
    {".half 0.0, -1.0, 1e1, 2.5h, -0.0, 1 + 1", "bc000000 41004900 00028000"},
    {".float 1.0, -2.5; .long 7; .int -1", "3f800000 c0200000 00000007 ffffffff"},
    {".ascii \"ab\"; .asciz \"c\"; .align 8, 0; .quad 1", "00636261 00000000 00000001 00000000"},
    {".fill 2, 2, 0x1234; .space 4, 0xff", "12341234 ffffffff"},
    {"nop; .p2align 3; nop", "19e00000 19e00000 19e00000"},
    /* Conditions, macros, repetition. */
    {".if 0\nfoo\n.elseif 1\nnop\n.else\nbar\n.endif", "19e00000"},
    {".ifc a, b\nx\n.else\nnop\n.endif\n.ifdef q\nx\n.endif\n.ifb \nnop\n.endif",
     "19e00000 19e00000"},
    {".macro m a, b=3\nsetzi $m\\a, \\b\n.endm\nm 1\nm 2, 5\nm b=7, a=4", "19100003 19200005 19400007"},
    {".macro m a:req, rest:vararg\n.word \\rest\n.endm\nm 1, 2, 3", "00000002 00000003"},
    {".macro m\nl\\@: bri l\\@\n.endm\nm\nm", "40800000 40800001"},
    {".macro m n\n.if \\n\nsetzi $m0, \\n\nm (\\n - 1)\n.endif\n.endm\nm 2", "19000002 19000001"},
    {".macro m a\n.ifc \\a, x\n.exitm\n.endif\nnop\n.endm\nm x\nm y", "19e00000"},
    {".rept 2\nnop\n.endr\n.irp r, 1, 2\nsetzi $m\\r, 0\n.endr\n.irpc c, 34\nsetzi $m\\c, 0\n.endr",
     "19e00000 19e00000 19100000 19200000 19300000 19400000"},
    {".macro m a\n.rept 2\n.irp r, 1, 2\nadd $m\\r, $m\\a, 0\n.endr\n.endr\n.endm\nm 5",
     "22510000 22520000 22510000 22520000"},
    {".altmacro\n.macro m a\nLOCAL z\nz: bri z\n.word a\n.endm\nm %(1+2)\nm <4>",
     "40800000 00000003 40800002 00000004"},
    {".macro m x\nadd $m0, $m0, \\x\n.endm\nm 1 + 2\nm (3 + 4)", "22000003 22000007"},
    /* Comments, line markers, harmless things. */
    {"nop // x\n/* nop\nnop */ nop # y\n# 7 \"f.S\"\nnop", "19e00000 19e00000 19e00000"},
    {"DEF_STACK_USAGE 0 foo\n.type foo, @function\nfoo: nop\n.size foo, .-foo\n.cfi_startproc",
     "19e00000"},
    {".worker\n.allow_invalid_operands\nmov $a9, $a10\n.error_on_invalid_operands", "52a99000"},
    {"nop\n.end\nrubbish", "19e00000"},
    /* Quotes hold separators; texts at the edges: BOM, CRLF, no newline at the end. */
    {".byte '\"'; .byte ';', '/', '#' // x", "232f3b22"},
    {".byte ' ', ',', '\\n', '\\''", "270a2c20"},
    {"\xef\xbb\xbfnop\r\n{ nop\r\nfnop }\r\n\r\nnop", "19e00000 19e00000 99e00000 9ad00000 19e00000"},
    {".ascii \"\\x41\\102\" \"C\" \"D\"; .string \"ab\" \"c\"", "44434241 00636261"},
    {".word -0.0; .word -1.5; .half -0.0h, -0.0", "80000000 bfc00000 80008000"},
    {".half inf, -inf, infh, -infh", "fc007c00 fc007c00"},
    {".float inf, 0x1p-1", "7f800000 3f000000"},
    /* Blanks between arguments; strings of :vararg stay whole; calls inside bundles. */
    {".macro m a b\n.word \\a, \\b\n.endm\nm 1 (2)\nm (1 + 2) 4\nm 1 + 2, 3\nm ',', 1",
     "00000001 00000002 00000003 00000004 00000003 00000003 0000002c 00000001"},
    {".macro m v:vararg\n.ascii \\v\n.endm\nm \"ab\", \"cd\"", "64636261"},
    {".macro M r\nf16v2add \\r, \\r, \\r\n.endm\n{ nop ; M $a0 }\n.macro B\nnop\nfnop\n.endm\n{ B }",
     "99e00000 d8000001 99e00000 9ad00000"},
    {".altmacro\n.macro m a\n.ascii \"a\"\n.endm\nm <x!>y>\nm <<b>>", "3c793e78"},
    /* A label in front of a condition still names the bundle, not the nop before it. */
    {"nop\nL: .if 1\n{ nop ; fnop }\n.endif\nbri L", "19e00000 19e00000 99e00000 9ad00000 40800002"},
    {"nop\n.if 1\nx: .rept 1\n{ nop ; fnop }\n.endr\n.endif\nbri x",
     "19e00000 19e00000 99e00000 9ad00000 40800002"},
    /* .set stands for what it was set to last. */
    {".set p, a\na: .word p\n.set p, b\nb: .word p\n.set p, p + 4\n.word p",
     "00000000 00000004 00000008"},
    {".macro step\n.set n, n + 1\n.word n\n.endm\n.set n, 0\nstep\nstep", "00000001 00000002"},
    {"nop\n. = 8\nnop\na: .org a + 8\nnop; .org 0x1c, 0xff; nop",
     "19e00000 00000000 19e00000 00000000 00000000 19e00000 ffffffff 19e00000"},
    {".p2align 4,,4\nnop\n.p2align 4,,4\nnop", "19e00000 19e00000"},
    {"ld32step $m0, $m1, $m2 +=, 1", "1c102101"},
    {"a: .type a, \"function\"\n.type a STT_FUNC\nDEF_FUNC_CALL_PTRS a, b\nnop", "19e00000"},
    {".section .text.k, \"ax\", @progbits\n.previous\nnop\n.pushsection .data\n.pushsection .rodata\n"
     ".popsection\n.word 1\n.popsection\nnop", "19e00000 19e00000"},
    {"rpt $m0, 1\n{ nop ; fnop }\n.ascii \"\"\n{ nop ; fnop }",
     "19e00000 4300a001 99e00000 9ad00000 99e00000 9ad00000"},
    {"# if it is a comment\nnop;#comment\nnop; # nop", "19e00000 19e00000"},
    /* clang-format on */
};

static void test_good(void) {
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        char *words = words_of(good[i].source, NULL);
        if (strcmp(words, good[i].words) != 0) g_test_message("%s", good[i].source);
        g_assert_cmpstr(words, ==, good[i].words);
        g_free(words);
    }
}

static const struct {
    const char *source;
    uint32_t code, line, column;
} bad[] = {
    /* clang-format off */
    {"f16v2ad $a0, $a1, $a2", DIAG_ISA_UNKNOWN_INSTRUCTION, 1, 1},
    {".sectoin x", DIAG_ISA_UNKNOWN_DIRECTIVE, 1, 1},
    {"nop\nadd $m0, $a1, 3", DIAG_ISA_OPERAND, 2, 10},
    {"add $m0, $m1", DIAG_ISA_OPERAND_COUNT, 1, 1},
    {"mov $a0, $m0", DIAG_ISA_NO_FORM, 1, 1},
    {"ld32 $m0, $m1, $m15, 4096", DIAG_ISA_RANGE, 1, 22},
    {"add $m0, $m1, 65536", DIAG_ISA_RANGE, 1, 15},
    {"ld32 $m0, $m1, $m15, f", DIAG_ISA_NOT_CONSTANT, 1, 22},
    {"ld64 $a1:2, $m0, $m1, 0", DIAG_ISA_REG_GROUP, 1, 6},
    {"mov $a9, $a1", DIAG_ISA_REG_NONE, 1, 5},
    {"get $m0, $WRS", DIAG_ISA_REG_NAME, 1, 10},
    {"ld32step $m0, $m1, $m12+=, 1", DIAG_ISA_REG_UPDATE, 1, 20},
    {".worker\nsync 2", DIAG_ISA_MODE, 2, 1},
    {".supervisor\nrpt 1, 0\n{nop;fnop}", DIAG_ISA_MODE, 2, 1},
    {".worker\nget $m0, $SSR", DIAG_ISA_MODE, 2, 10},
    {"get $m0, $TAS", DIAG_ISA_CSR_SPACE, 1, 10},
    {"{ fnop ; nop }", DIAG_ISA_BUNDLE, 1, 1},
    {"{ nop ; nop }", DIAG_ISA_BUNDLE, 1, 1},
    {"{ exitz $m0 ; fnop }", DIAG_ISA_BUNDLE, 1, 1},
    {"{ sync 2 ; fnop }", DIAG_ISA_BUNDLE, 1, 1},
    {"{ ld64 $azeros, $m0, $m1, 0 ; mov $a0:1, $azeros ; nop }", DIAG_ISA_BUNDLE_COUNT, 1, 56},
    {"{ ld64 $azeros, $m0, $m1, 0 ; zero $azeros }", DIAG_ISA_BUNDLE, 1, 1},
    {"{ ld32 $azero, $m0, $m1, 0 ; zero $azeros }", DIAG_ISA_BUNDLE, 1, 1},
    {"{ ldconst $m0, 0x12345678 ; fnop }", DIAG_ISA_BUNDLE_LDCONST, 1, 3},
    {"{ nop ; fnop", DIAG_ISA_BRACE, 1, 1},
    {"nop }", DIAG_ISA_BRACE, 1, 5},
    {"rpt 1, 0\nnop", DIAG_ISA_REPEAT_LONE, 2, 1},
    {"rpt 1, 0\n{ bri 0 ; fnop }", DIAG_ISA_REPEAT_KIND, 2, 3},
    {"rpt 1, 0\n{ get $m0, $WSR ; fnop }", DIAG_ISA_REPEAT_KIND, 2, 3},
    {"rpt 1, 0\n{ nop ; uput $TAS, $a0 }", DIAG_ISA_REPEAT_KIND, 2, 9},
    {"rpt 1, 1\n{ nop ; fnop }", DIAG_ISA_REPEAT_SHORT, 1, 1},
    {"setzi $m0, 09", DIAG_ISA_NUMBER, 1, 12},
    {"a: nop\na: nop", DIAG_ISA_DEFINED_TWICE, 2, 1},
    {"bri 1b", DIAG_ISA_LOCAL_LABEL, 1, 5},
    {"bri 1f", DIAG_ISA_LOCAL_LABEL_AHEAD, 1, 5},
    {".set a, b\n.set b, a\nsetzi $m0, a", DIAG_ISA_CIRCULAR, 0, 0},
    {"setzi $m0, a - b\na: nop\n.data\nb: .word 1", DIAG_ISA_DIFFERENCE, 1, 12},
    {".word 1 / 0", DIAG_ISA_DIVISION, 1, 7},
    {"a: .word a * 2", DIAG_ISA_ADDRESS_ARITHMETIC, 1, 10},
    {".if a\n.endif", DIAG_ISA_NOT_ABSOLUTE, 1, 5},
    {".byte 256", DIAG_ISA_DATA_RANGE, 1, 7},
    {".byte 1\nnop", DIAG_ISA_MISALIGNED, 2, 1},
    {"nop\nsendpicp 1, 0, 0, 0, 0, 0", DIAG_ISA_WIDE_MISALIGNED, 2, 1},
    {".data\nnop", DIAG_ISA_NOT_CODE, 2, 1},
    {".bss\n.word 1", DIAG_ISA_NOBITS, 2, 7},
    {".align 3", DIAG_ISA_ALIGN, 1, 1},
    {".if 1\nnop", DIAG_ISA_COND_OPEN, 1, 1},
    {".endif", DIAG_ISA_COND_STRAY, 1, 1},
    {".macro m\nnop", DIAG_ISA_BODY_OPEN, 1, 1},
    {".macro m a\n.endm\nm 1, 2", DIAG_ISA_MACRO_ARGUMENTS, 3, 6},
    {".macro m a:req\n.endm\nm", DIAG_ISA_MACRO_MISSING, 3, 1},
    {".macro m\nm\n.endm\nm", DIAG_ISA_TOO_DEEP, 2, 1},
    {".rept 10000000\nnop\n.endr", DIAG_ISA_TOO_MUCH, 1, 1},
    {".error \"no\"", DIAG_ISA_ASKED, 1, 1},
    {"ld32step $m0, $m1, $m0+=, 1", DIAG_ISA_STEP_DESTINATION, 1, 1},
    {"ld2x64pace $a0:1, $a0:1, $m0:1+=, $m2, 0", DIAG_ISA_PACE_DESTINATION, 1, 1},
    {".ascii \"abc\nnop", DIAG_ISA_EXPECTED, 1, 8},
    {".ascii \"a\\q\"", DIAG_ISA_ESCAPE, 1, 10},
    {".if 1\n.else\n.else\n.endif", DIAG_ISA_COND_ELSE, 3, 1},
    {".if 1\n.else\n.elseif 1\n.endif", DIAG_ISA_COND_ELSE, 3, 1},
    {".if 1 2\nnop\n.endif", DIAG_ISA_EXPECTED, 1, 7},
    {"x = 5 6", DIAG_ISA_EXPECTED, 1, 7},
    {".rept -1\nnop\n.endr", DIAG_ISA_NEGATIVE, 1, 1},
    {".previous", DIAG_ISA_COND_STRAY, 1, 1},
    {".space -1", DIAG_ISA_NEGATIVE, 1, 1},
    {".comm x, -1", DIAG_ISA_NEGATIVE, 1, 1},
    {".comm x, 4, 3", DIAG_ISA_ALIGN, 1, 1},
    {"x: nop\n.comm x, 4", DIAG_ISA_DEFINED_TWICE, 2, 7},
    {".comm x, 4\nx: nop", DIAG_ISA_DEFINED_TWICE, 2, 1},
    {".comm x, 4\nx = 4", DIAG_ISA_DEFINED_TWICE, 2, 1},
    {"a: .type a, @foo", DIAG_ISA_EXPECTED, 0, 0},
    {".macro m\n.endm\n.macro m\n.endm", DIAG_ISA_DEFINED_TWICE, 3, 1},
    {".macro m a a\n.endm", DIAG_ISA_EXPECTED, 1, 12},
    {".macro m v:vararg, b\n.endm", DIAG_ISA_EXPECTED, 1, 20},
    {".section a,\"aq\"", DIAG_ISA_EXPECTED, 1, 14},
    {".section a,\"a\",@bits", DIAG_ISA_EXPECTED, 1, 17},
    {".section a,\"ax\"\n.section a,\"aw\"", DIAG_ISA_SECTION_FLAGS, 2, 1},
    {"nop\n.org 0", DIAG_ISA_ORG, 2, 1},
    {".org x", DIAG_ISA_ORG, 1, 1},
    {"#define x 1; y", DIAG_ISA_CPP_LINE, 1, 1},
    {"nop#", DIAG_ISA_EXPECTED, 1, 4},
    {".macro m a\n\\a\n.endm\nm \"#x\"", DIAG_ISA_EXPECTED, 2, 1},
    {"nop\n nop /* open\nnop\n", DIAG_ISA_COMMENT_OPEN, 2, 6},
    {"nop\n#include \"x.h\"\n", DIAG_ISA_CPP_LINE, 2, 1},
    {".half 70000.0", DIAG_ISA_REAL_RANGE, 1, 7},
    {".float 1e39", DIAG_ISA_REAL_RANGE, 1, 8},
    {"setzi $a0, 1e5h", DIAG_ISA_REAL_RANGE, 1, 12},
    {"{ nop ; .byte 1\nfnop }", DIAG_ISA_BRACE, 1, 9},
    {".include \"/no/such/file\"", DIAG_ISA_INCLUDE, 1, 1},
    {".macro m\n.include \"/no/such/file\"\n.endm\nm", DIAG_ISA_INCLUDE, 2, 1},
    {".size a, . - a b\na: nop", DIAG_ISA_EXPECTED, 1, 16},
    /* clang-format on */
};

static void test_bad(void) {
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct run r = run_with(bad[i].source, NULL);
        if (r.object != NULL || r.messages.all->len == 0) g_test_message("%s", bad[i].source);
        g_assert_null(r.object);
        const struct isa_message *m = g_ptr_array_index(r.messages.all, 0);
        if (m->code != bad[i].code || m->line != (bad[i].line ? bad[i].line : m->line) ||
            m->column != (bad[i].column ? bad[i].column : m->column)) {
            g_test_message("%s", bad[i].source);
            show(&r);
        }
        g_assert_cmpuint(m->code, ==, bad[i].code);
        if (bad[i].line != 0) {
            g_assert_cmpuint(m->line, ==, bad[i].line);
            g_assert_cmpuint(m->column, ==, bad[i].column);
        }
        run_end(&r);
    }
}

static void test_options(void) {
    struct run r = run_with("nop\n{nop;fnop}", &(struct isa_asm_options){.pad_is_error = true});
    g_assert_null(r.object);
    g_assert_cmpuint(((struct isa_message *)g_ptr_array_index(r.messages.all, 0))->code, ==,
                     DIAG_ISA_PAD);
    run_end(&r);
    r = run_with("sync 2", &(struct isa_asm_options){.mode = ISA_MODE_W});
    g_assert_null(r.object);
    run_end(&r);
    r = run_with(".warn_on_invalid_bundles\n{ ld32 $azero, $m0, $m1, 0 ; zero $azeros }", NULL);
    g_assert_nonnull(r.object);
    g_assert_cmpuint(r.messages.n_warnings, ==, 1);
    run_end(&r);
    r = run_with("a\nb\nc\nd", NULL);
    g_assert_cmpuint(r.messages.n_errors, ==, 4);
    run_end(&r);
}

/* Without a header exactly the instructions without public numbers are refused. */
static void test_hardware(void) {
    const struct isa_asm_options bare = {.target_hardware = true};
    const struct isa_asm_options with = {
        .target_hardware = true,
        .sdk_header = "/* x */\n#define TAMP_F16V4_E4_P1 (0x21)\n  #  define TISTACC_P0 5\n"
                      "#define OTHER 3\n"};
    static const char *const refused[] = {
        "f16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P1",
        "f16v4hihov4amp $a0:1, $a2:3, $a4:5, 1",
        "f16v4hihoslic $a0, $a2:3, $a4, TSLIC_F16V4_1x4_W0",
        "f32sisov2amp $a0:1, $a2, $a4:5, TAMP_F32_E4_P0",
        "f16v4istacc $a0:1, $a2:3, $a4:5, TISTACC_P0",
        "f16v4stacc $a0:1, TSTACC_P1",
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct run r = run_with(refused[i], &bare);
        if (r.object != NULL) g_test_message("%s", refused[i]);
        g_assert_null(r.object);
        const struct isa_message *m = g_ptr_array_index(r.messages.all, 0);
        if (m->code != DIAG_ISA_HARDWARE_FLAG) show(&r);
        g_assert_cmpuint(m->code, ==, DIAG_ISA_HARDWARE_FLAG);
        g_assert_nonnull(strstr(m->text, "f16v4hi") != NULL     ? m->text
                         : strstr(m->text, "f32sisov2") != NULL ? m->text
                                                                : strstr(m->text, "stacc"));
        run_end(&r);
    }
    struct run gina = run_with("f32v2gina $a0:1, $azeros, 2", &bare);
    g_assert_null(gina.object);
    run_end(&gina);
    char *words = words_of("f16v4stacc $a0:1, 0; f32v2gina $a0:1, $azeros, 1; f32int $a0, $a1, 3;"
                           "f32v2aop $a0:1, $a2:3, 0",
                           &bare);
    g_assert_cmpstr(words, ==, "51000900 59e04001 51100003 5a002c00");
    g_free(words);
    words = words_of("f16v4hihov4amp $a0:1, $a2:3, $a4:5, TAMP_F16V4_E4_P1;"
                     "f16v4istacc $a0:1, $a2:3, $a4:5, TISTACC_P0",
                     &with);
    g_assert_cmpstr(words, ==, "5b402761 5b402805");
    g_free(words);
    struct run r = run_with("f16v4stacc $a0:1, TSTACC_P1", &with);
    g_assert_null(r.object);
    run_end(&r);
    r = run_with("nop", &(struct isa_asm_options){.target_hardware = true, .sdk_header = "x"});
    g_assert_null(r.object);
    run_end(&r);
}

/* Every alias of encoding-aliases.csv gives its word with all registers 0 (zero pairs where named).
 */
static void test_aliases(void) {
    char *path =
        g_build_filename(g_getenv("IPU_SOURCE"), "tests", "data", "encoding-aliases.csv", NULL);
    char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    char **lines = g_strsplit(g_strstrip(text), "\n", 0);
    uint32_t n = 0;
    for (char **l = lines + 1; *l != NULL; l++, n++) {
        char **col = g_strsplit(*l, ";", 0);
        GString *s = g_string_new(col[0]);
        const bool as_other = g_str_has_prefix(col[1], "as ");
        const bool amp = g_str_has_prefix(col[0], "f16v4siso");
        char **ops = g_strsplit(as_other ? "" : col[1], ", ", 0);
        for (uint32_t i = 0; ops[i] != NULL && *ops[i] != 0; i++) {
            const char *c = strchr(ops[i], ':') + 1;
            g_string_append_printf(s, "%s%s", i != 0 ? ", " : " ",
                                   g_str_has_prefix(c, "a2") ? "$a0:1"
                                   : *c == 'a'               ? "$a0"
                                   : *c == 'm'               ? "$m0"
                                                             : "0");
        }
        if (amp) g_string_append(s, " $a0:1, $a0:1, $a0:1, 0");
        if (as_other && !amp)
            g_string_append(s, g_str_has_prefix(col[0], "sub") ? " $m0, 0, $m0" : " $m0, $m0, 0");
        char *words = words_of(s->str, NULL), *want = g_strdup(col[g_strv_length(col) - 2] + 2);
        if (strcmp(words, want) != 0) g_test_message("%s", s->str);
        g_assert_cmpstr(words, ==, want);
        g_free(words);
        g_free(want);
        g_strfreev(ops);
        g_strfreev(col);
        g_string_free(s, true);
    }
    g_assert_cmpuint(n, ==, 27);
    g_strfreev(lines);
    g_free(text);
    g_free(path);
}

static double half_value(uint32_t code) {
    const uint32_t e = code >> 10 & 31, m = code & 1023;
    const double v = e == 0 ? ldexp(m, -24) : ldexp(1024 + m, (int)e - 25);
    return code >> 15 ? -v : v;
}

/* F16 literals: every value gives its code; values between two go to the nearer, ties to even. */
static void test_half(void) {
    for (uint32_t code = 0; code < 0x10000; code++) {
        if ((code >> 10 & 31) == 31) continue;
        g_assert_cmphex(as_half_bits(half_value(code)), ==, code);
        if ((code & 0x7fff) == 0x7bff) continue;
        const double a = half_value(code), b = half_value(code + 1), mid = (a + b) / 2;
        g_assert_cmphex(as_half_bits(mid), ==, code & 1 ? code + 1 : code);
        g_assert_cmphex(as_half_bits(a + (b - a) / 4), ==, code);
        g_assert_cmphex(as_half_bits(a + (b - a) * 3 / 4), ==, code + 1);
    }
    g_assert_cmphex(as_half_bits(65519.9), ==, 0x7bff);
    g_assert_cmphex(as_half_bits(65520), ==, 0x7c00);
    g_assert_cmphex(as_half_bits(-INFINITY), ==, 0xfc00);
    g_assert_cmphex(as_half_bits(NAN) & 0x7fff, ==, 0x7e00);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/isa/asm/good", test_good);
    g_test_add_func("/isa/asm/bad", test_bad);
    g_test_add_func("/isa/asm/options", test_options);
    g_test_add_func("/isa/asm/hardware", test_hardware);
    g_test_add_func("/isa/asm/aliases", test_aliases);
    g_test_add_func("/isa/asm/half", test_half);
    return g_test_run();
}
