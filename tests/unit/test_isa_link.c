/* The linker: names across objects, sections that are kept, places, relocations, line table. */
#include "isa/isa_asm.h"

#include <string.h>

static struct isa_object *assemble(const char *text, const char *name) {
    struct isa_messages m;
    isa_messages_init(&m);
    struct isa_object *o = isa_asm_source(text, strlen(text), name, NULL, &m);
    if (o == NULL) {
        GString *s = g_string_new(NULL);
        isa_messages_print(&m, s);
        g_test_message("%s", s->str);
    }
    g_assert_nonnull(o);
    isa_messages_clear(&m);
    return o;
}

static uint32_t word_at(const struct isa_image *image, uint32_t address) {
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        if (address - s->address >= s->size || s->bytes == NULL) continue;
        uint32_t w;
        memcpy(&w, s->bytes + (address - s->address), 4);
        return GUINT32_FROM_LE(w);
    }
    g_assert_not_reached();
}

/* Links; expects the error `code` (0: none). */
static struct isa_image *link_all(struct isa_object **objects, uint32_t n,
                                  const struct isa_layout *layout, uint32_t code) {
    struct isa_messages m;
    isa_messages_init(&m);
    struct isa_image *image = isa_link(objects, n, layout, &m);
    const uint32_t got =
        m.all->len != 0 ? ((struct isa_message *)g_ptr_array_index(m.all, 0))->code : 0;
    if (got != code) {
        GString *s = g_string_new(NULL);
        isa_messages_print(&m, s);
        g_test_message("%s", s->str);
        g_string_free(s, true);
    }
    g_assert_cmpuint(got, ==, code);
    g_assert_true((image == NULL) == (code != 0));
    isa_messages_clear(&m);
    return image;
}

static void test_names(void) {
    struct isa_object *o[2] = {
        assemble(".globl f\nf: call $m10, g\n bri local\nlocal: nop\n", "a.s"),
        assemble(".globl g\n.weak h\ng: bri f\n setzi $m0, h\n.word x+4\n", "b.s")};
    const struct isa_define x = {"x", 0x1000};
    const struct isa_layout layout = {
        .text_base = 0x50000, .defines = &x, .n_defines = 1, .entry = "g"};
    struct isa_image *image = link_all(o, 2, &layout, 0);
    g_assert_cmphex(word_at(image, 0x50000), ==, 0x18a00000 | 0x5000c / 4);
    g_assert_cmphex(word_at(image, 0x50004), ==, 0x40800000 | 0x50008 / 4);
    g_assert_cmphex(word_at(image, 0x5000c), ==, 0x40800000 | 0x50000 / 4);
    g_assert_cmphex(word_at(image, 0x50010), ==, 0x19000000);
    g_assert_cmphex(word_at(image, 0x50014), ==, 0x1004);
    g_assert_cmphex(image->entry, ==, 0x5000c);
    g_assert_cmphex(isa_image_find(image, "g")->address, ==, 0x5000c);
    g_assert_null(isa_image_find(image, "x"));
    g_assert_cmpstr(isa_image_at(image, 0x50008)->name, ==, "local");
    g_assert_cmpstr(isa_image_at(image, 0x50010)->name, ==, "g");
    g_assert_null(isa_image_at(image, 0x60000));
    const char *file;
    g_assert_cmpuint(isa_image_line(image, 0x50010, &file), ==, 4);
    g_assert_cmpstr(file, ==, "b.s");
    g_assert_cmpuint(isa_image_line(image, 0x40000, &file), ==, 0);
    g_assert_null(file);
    isa_image_free(image);
    link_all(o, 1, &layout, DIAG_ISA_UNDEFINED);
    struct isa_object *twice[3] = {o[0], o[1], assemble(".globl f\nf: nop\n", "c.s")};
    link_all(twice, 3, &layout, DIAG_ISA_DUPLICATE);
    isa_object_free(twice[2]);
    /* A strong name beats a weak one whatever the order. */
    struct isa_object *strong = assemble(".globl h\nh: nop\n", "d.s");
    struct isa_object *weak = assemble(".weak h\nh: bri 0\n nop\n", "e.s");
    struct isa_object *first[4] = {o[0], o[1], weak, strong};
    image = link_all(first, 4, &layout, 0);
    g_assert_cmphex(word_at(image, isa_image_find(image, "h")->address), ==, 0x40800000);
    g_assert_cmphex(word_at(image, 0x50010), ==, 0x19000000 | 0x50020);
    isa_image_free(image);
    for (uint32_t i = 0; i < 4; i++) isa_object_free(first[i]);
}

static void test_roots(void) {
    struct isa_object *o =
        assemble(".section .text.a,\"ax\"\n.globl a\na: call $m10, b\n"
                 ".section .text.b,\"ax\"\n.globl b\nb: setzi $m0, table\n"
                 ".section .text.c,\"ax\"\n.globl c\nc: bri c\n.data\ntable: .word b\n"
                 ".section .text.d,\"ax\"\n.globl d\nd: bri missing\n",
                 "a.s");
    const char *const roots[] = {"a"};
    struct isa_image *image =
        link_all(&o, 1, &(struct isa_layout){.roots = roots, .n_roots = 1}, 0);
    g_assert_cmpuint(image->segments->len, ==, 3);
    g_assert_null(isa_image_find(image, "c"));
    g_assert_nonnull(isa_image_find(image, "table"));
    isa_image_free(image);
    link_all(&o, 1, NULL, DIAG_ISA_UNDEFINED);
    const char *const unknown[] = {"zz"};
    link_all(&o, 1, &(struct isa_layout){.roots = unknown, .n_roots = 1}, DIAG_ISA_UNDEFINED);
    isa_object_free(o);
}

static void test_places(void) {
    struct isa_object *o =
        assemble("nop\n.section .text.far,\"ax\"\nnop\n.data\n.word 1\n.section .data.hot,\"aw\"\n"
                 ".align 16\n.word 2\n.bss\n.space 8\n",
                 "a.s");
    const struct isa_place places[] = {{".text.far", 0x60000}, {".data", 0x90004}};
    struct isa_layout layout = {
        .text_base = 0x50000, .data_base = 0xa0000, .places = places, .n_places = 2};
    struct isa_image *image = link_all(&o, 1, &layout, 0);
    g_assert_cmphex(word_at(image, 0x50000), ==, 0x19e00000);
    g_assert_cmphex(word_at(image, 0x60000), ==, 0x19e00000);
    g_assert_cmphex(word_at(image, 0x90004), ==, 1);
    g_assert_cmphex(word_at(image, 0x90010), ==, 2);
    g_assert_cmphex(g_array_index(image->segments, struct isa_segment, 4).address, ==, 0xa0000);
    g_assert_null(g_array_index(image->segments, struct isa_segment, 4).bytes);
    isa_image_free(image);
    layout.text_base = 0x80000;
    link_all(&o, 1, &layout, DIAG_ISA_PLACE);
    layout.text_base = 0x40000;
    link_all(&o, 1, &layout, DIAG_ISA_PLACE);
    layout.text_base = 0x50000;
    layout.data_base = 0xe7ffc;
    link_all(&o, 1, &layout, DIAG_ISA_PLACE);
    layout.data_base = 0x60000;
    link_all(&o, 1, &layout, DIAG_ISA_PLACE);
    isa_object_free(o);
}

static void test_relocations(void) {
    struct isa_object *o =
        assemble("run $m0, $m1, t\nbrnz $m1, t\n.word t-4\n.short s\n.byte b, 0\nt: nop\n"
                 ".set s, 0x1234\n.set b, 7\n",
                 "a.s");
    struct isa_image *image = link_all(&o, 1, &(struct isa_layout){.text_base = 0x5d000}, 0);
    const uint32_t t = 0x5d000 + 16, words = (t - 0x4c000) / 4;
    g_assert_cmphex(word_at(image, 0x5d000), ==,
                    0x14001000 | (words >> 12) << 16 | (words & 0xfff));
    g_assert_cmphex(word_at(image, 0x5d004), ==, 0x11100000 | t / 4);
    g_assert_cmphex(word_at(image, 0x5d008), ==, t - 4);
    g_assert_cmphex(word_at(image, 0x5d00c), ==, 0x00071234);
    isa_image_free(image);
    isa_object_free(o);
    o = assemble(".short t, 0\nt: nop\n", "b.s");
    link_all(&o, 1, NULL, DIAG_ISA_RELOC_RANGE);
    isa_object_free(o);
    o = assemble("bri x\n", "c.s");
    const struct isa_define odd = {"x", 2};
    link_all(&o, 1, &(struct isa_layout){.defines = &odd, .n_defines = 1}, DIAG_ISA_RELOC_RANGE);
    isa_object_free(o);
}

/* Common names share the room of the largest; a definition beats them, they beat a weak one. */
static void test_common(void) {
    struct isa_object *o[4] = {
        assemble(".comm x, 8, 8\n.comm y, 4\n.word x, y, z\n.comm z, 4\n", "a.s"),
        assemble(".comm x, 40, 16\n.word x + 4\n.local l\n.comm l, 4, 4\n.word l\n", "b.s"),
        assemble(".globl y\ny: nop\n", "c.s"), assemble(".weak z\nz: nop\n.word x\n", "d.s")};
    struct isa_image *image = link_all(o, 4, &(struct isa_layout){.text_base = 0x50000}, 0);
    const uint32_t x = isa_image_find(image, "x")->address;
    g_assert_cmpuint(x % 16, ==, 0);
    g_assert_cmphex(word_at(image, 0x50000), ==, x);
    g_assert_cmphex(word_at(image, 0x50004), ==, isa_image_find(image, "y")->address);
    g_assert_cmphex(word_at(image, word_at(image, 0x50004)), ==, 0x19e00000);
    g_assert_cmphex(word_at(image, 0x5000c), ==, x + 4);
    g_assert_cmphex(word_at(image, 0x50010), ==, isa_image_find(image, "l")->address);
    const uint32_t z = word_at(image, 0x50008);
    uint32_t size_x = 0, n_z = 0;
    for (uint32_t i = 0; i < image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(image->segments, struct isa_segment, i);
        if (s->address == x) size_x = s->size;
        n_z += s->address == z && s->bytes == NULL;
    }
    g_assert_cmpuint(size_x, ==, 40);
    g_assert_cmpuint(n_z, ==, 1);
    isa_image_free(image);
    for (uint32_t i = 0; i < 4; i++) isa_object_free(o[i]);
}

static void test_mixed(void) {
    struct isa_messages m;
    isa_messages_init(&m);
    struct isa_object *o[2] = {
        assemble("nop\n", "a.s"),
        isa_asm_source("nop\n", 4, "b.s", &(struct isa_asm_options){.target_hardware = true}, &m)};
    link_all(o, 2, NULL, DIAG_ISA_MIXED);
    isa_object_free(o[0]);
    isa_object_free(o[1]);
    isa_messages_clear(&m);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/isa/link/names", test_names);
    g_test_add_func("/isa/link/roots", test_roots);
    g_test_add_func("/isa/link/places", test_places);
    g_test_add_func("/isa/link/relocations", test_relocations);
    g_test_add_func("/isa/link/common", test_common);
    g_test_add_func("/isa/link/mixed", test_mixed);
    return g_test_run();
}
