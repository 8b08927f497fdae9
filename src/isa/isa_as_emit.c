/* Items of sections. The first pass gives every instruction its place and puts in the nops that
 * bundles (at multiples of 8) and lone rpts (at 4 modulo 8, so that the body follows) need; labels
 * in front of a padded item name the item. The second pass chooses forms, checks bundles and repeat
 * bodies, and writes words, data and relocations. Facts: isa 1.2, 1.4. */
#include "isa/isa_as.h"

#include "target/target.h"

#include <stdlib.h>
#include <string.h>

/* ELF32 numbers sections in 16 bits, and each may have one of relocations beside it. */
enum { MAX_SECTION_BYTES = 16 * 1024 * 1024, MAX_ALIGN = 65536, MAX_SECTIONS = 30000 };

struct as_section *as_section_get(struct as *as, const char *name, uint32_t flags) {
    struct as_section *s = g_hash_table_lookup(as->section_names, name);
    if (s != NULL) return s;
    if (as->sections->len == MAX_SECTIONS) {
        as_error(as, (struct as_loc){0}, ISA_TOO_MUCH, "sections");
        as->stop = true;
    }
    if (as->sections->len >= MAX_SECTIONS) return as->section;
    s = arena_new_array(as->arena, struct as_section, 1);
    s->out = g_new0(struct isa_section, 1);
    s->out->name = g_strdup(name);
    s->out->flags = flags;
    s->out->align = flags & ISA_SECTION_EXEC ? 4 : 1;
    s->out->bytes = g_byte_array_new();
    s->out->relocs = g_array_new(false, false, sizeof(struct isa_reloc));
    s->out->lines = g_array_new(false, false, sizeof(struct isa_line));
    s->items = g_array_new(false, false, sizeof(struct as_item));
    s->fixups = g_array_new(false, false, sizeof(struct as_fixup));
    s->index = as->sections->len;
    g_hash_table_insert(as->section_names, s->out->name, s);
    g_ptr_array_add(as->sections, s);
    g_ptr_array_add(as->object->sections, s->out);
    return s;
}

void as_bind_labels(struct as *as) {
    for (uint32_t i = 0; i < as->pending->len; i++) {
        struct as_symbol *s = g_ptr_array_index(as->pending, i);
        s->section = as->section;
        s->offset = as->section->out->size;
    }
    g_ptr_array_set_size(as->pending, 0);
}

/* Room for n bytes at the end of the section; false when it has become absurdly large. */
static bool grow(struct as *as, uint64_t n, uint8_t fill, struct as_loc loc) {
    struct isa_section *s = as->section->out;
    as->n_bytes += n;
    if (as->n_bytes > MAX_SECTION_BYTES) {
        as_error(as, loc, ISA_TOO_MUCH, "bytes");
        as->stop = true;
        return false;
    }
    if ((s->flags & ISA_SECTION_NOBITS) == 0 && n != 0) {
        g_byte_array_set_size(s->bytes, s->size + (guint)n);
        memset(s->bytes->data + s->size, fill, n);
    }
    s->size += (uint32_t)n;
    return true;
}

static void add_item(struct as *as, struct as_item item) {
    item.offset = as->section->out->size;
    item.allow_optimizations = as->allow_optimizations;
    item.warn_bundle = as->warn_bundles;
    item.allow_repeat = as->allow_repeat;
    if (grow(as, item.size, 0, item.loc)) g_array_append_val(as->section->items, item);
}

static void put_word(struct isa_section *s, uint32_t offset, uint32_t word) {
    for (uint32_t i = 0; i < 4; i++) s->bytes->data[offset + i] = (uint8_t)(word >> 8 * i);
}

static void pad(struct as *as, struct as_loc loc, const char *why) {
    if (as->options->pad_is_error) as_error(as, loc, ISA_PAD, why);
    add_item(as, (struct as_item){.kind = AS_ITEM_PAD, .size = 4, .loc = loc});
    struct isa_section *s = as->section->out;
    if (!as->stop) put_word(s, s->size - 4, ISA_WORD_SETZI_M | 14u << 20);
}

static void raise_align(struct as *as, uint32_t align) {
    if (as->section->out->align < align) as->section->out->align = align;
}

static bool code_section(struct as *as, struct as_loc loc) {
    const uint32_t flags = as->section->out->flags;
    if ((flags & ISA_SECTION_EXEC) != 0 && (flags & ISA_SECTION_NOBITS) == 0) return true;
    as_error(as, loc, ISA_NOT_CODE, as->section->out->name);
    return false;
}

void as_emit_insns(struct as *as, struct as_insn *a, struct as_insn *b, struct as_loc loc) {
    if (!code_section(as, loc)) {
        as_bind_labels(as);
        return;
    }
    const bool wide = b == NULL && !a->done && isa_form(a->insn.op)->n_words == 2;
    const bool rpt = b == NULL && strcmp(a->mnemonic, "rpt") == 0;
    if (as->section->out->size % 4 != 0) {
        as_error(as, loc, ISA_MISALIGNED, as->section->out->size);
        while (as->section->out->size % 4 != 0 && grow(as, 1, 0, loc)) {}
    }
    const bool at4 = as->section->out->size % 8 == 4;
    if (b != NULL || rpt || wide) raise_align(as, 8);
    if (b != NULL && at4) pad(as, loc, "a bundle");
    if (rpt && !at4) pad(as, loc, "the body of rpt");
    if (wide && at4) as_error(as, loc, ISA_WIDE_MISALIGNED, a->written);
    as_bind_labels(as);
    add_item(as, (struct as_item){.kind = b != NULL ? AS_ITEM_BUNDLE : AS_ITEM_INSN,
                                  .size = b != NULL || wide ? 8 : 4,
                                  .insn = {a, b},
                                  .loc = loc});
}

static void data_item(struct as *as, uint32_t offset, struct as_loc loc) {
    if (as->section->out->size == offset) return;
    const struct as_item item = {.kind = AS_ITEM_DATA,
                                 .offset = offset,
                                 .loc = loc,
                                 .size = as->section->out->size - offset};
    g_array_append_val(as->section->items, item);
}

static bool contents(struct as *as, struct as_loc loc) {
    as_bind_labels(as);
    if ((as->section->out->flags & ISA_SECTION_NOBITS) == 0) return true;
    as_error(as, loc, ISA_NOBITS, as->section->out->name);
    return false;
}

void as_emit_bytes(struct as *as, const void *bytes, uint32_t n, struct as_loc loc) {
    if (!contents(as, loc) || n == 0) return;
    const uint32_t offset = as->section->out->size;
    if (!grow(as, n, 0, loc)) return;
    memcpy(as->section->out->bytes->data + offset, bytes, n);
    data_item(as, offset, loc);
}

void as_emit_value(struct as *as, struct as_expr *e, uint32_t size, struct as_loc loc) {
    if (!contents(as, loc)) return;
    const struct as_fixup f = {as->section->out->size, (uint8_t)size, e};
    if (!grow(as, size, 0, loc)) return;
    g_array_append_val(as->section->fixups, f);
    data_item(as, f.offset, loc);
}

void as_emit_space(struct as *as, uint32_t n, uint8_t fill, struct as_loc loc) {
    as_bind_labels(as);
    const uint32_t offset = as->section->out->size;
    if (grow(as, n, fill, loc)) data_item(as, offset, loc);
}

/* Code is padded with nops, data with `fill`. Labels in front name the place before the padding. */
void as_emit_align(struct as *as, uint32_t align, int64_t fill, int64_t max_skip,
                   struct as_loc loc) {
    as_bind_labels(as);
    if (align == 0 || (align & (align - 1)) != 0 || align > MAX_ALIGN) {
        as_error(as, loc, ISA_ALIGN, align);
        return;
    }
    raise_align(as, align);
    const uint64_t at = as->section->out->size;
    if (max_skip > 0 && align_up_u64(at, align) - at > (uint64_t)max_skip) return;
    const bool code = (as->section->out->flags & ISA_SECTION_EXEC) != 0 && fill < 0;
    uint32_t gap = (uint32_t)(align_up_u64(as->section->out->size, align) - as->section->out->size);
    for (; code && gap >= 4 && gap % 4 == 0 && !as->stop; gap -= 4) {
        add_item(as, (struct as_item){.kind = AS_ITEM_PAD, .size = 4, .loc = loc});
        if (!as->stop)
            put_word(as->section->out, as->section->out->size - 4, ISA_WORD_SETZI_M | 14u << 20);
    }
    if (gap != 0 && !as->stop) as_emit_space(as, gap, fill < 0 ? 0 : (uint8_t)fill, loc);
}

void as_emit_org(struct as *as, struct as_expr *to, uint8_t fill, struct as_loc loc) {
    as_bind_labels(as);
    struct as_value v;
    if (!as_eval(as, to, true, &v)) return;
    const uint32_t at = as->section->out->size;
    if (v.symbol != NULL && v.symbol->section == as->section)
        v = (struct as_value){v.value + v.symbol->offset, NULL};
    if (v.symbol != NULL || v.value < at || v.value > INT32_MAX) as_error(as, loc, ISA_ORG, at);
    else as_emit_space(as, (uint32_t)(v.value - at), fill, loc);
}

/* --- Second pass. --- */

/* Index of a symbol in the object; anonymous and .L labels become their section's symbol. */
static uint32_t object_symbol(const struct as_symbol *s, int64_t *addend) {
    const bool hidden = s->name == NULL || strncmp(s->name, ".L", 2) == 0;
    if (!hidden || s->section == NULL) return s->out - 1;
    *addend += s->offset;
    return s->section->index; /* section symbols come first, in order */
}

static void add_reloc(struct as *as, struct as_section *s, uint32_t offset, uint8_t type,
                      struct as_value v, struct as_loc loc) {
    int64_t addend = v.value;
    const uint32_t symbol = object_symbol(v.symbol, &addend);
    if (addend < INT32_MIN || addend > INT32_MAX) {
        as_error(as, loc, ISA_ADDRESS_ARITHMETIC);
        return;
    }
    const struct isa_reloc r = {offset, symbol, (int32_t)addend, type};
    g_array_append_val(s->out->relocs, r);
}

/* The literal of a branch or call counts words. One that no word of tile memory has, but a byte,
 * was meant as an address. */
static void check_word_target(struct as *as, const struct as_insn *x) {
    const struct isa_form *f = isa_form(x->insn.op);
    if (f->kind != ISA_KIND_CONTROL || f->n_operands == 0) return;
    const enum isa_class class = f->operand[f->n_operands - 1].class;
    const int64_t v = x->insn.imm / 4;
    if ((class != ISA_CLASS_W19 && class != ISA_CLASS_W20) || v < TARGET_SRAM_BASE ||
        v >= TARGET_SRAM_END)
        return;
    as_warn(as, x->operand[x->n_operands - 1].loc, ISA_WORD_TARGET, x->written, v, 4 * v, v);
}

/* Chooses the form and writes its words; `bit` is the bundle bit. */
static bool encode_insn(struct as *as, struct as_section *s, struct as_insn *x, uint32_t offset,
                        uint32_t bit) {
    struct as_reloc reloc = {0};
    if (x->done || !as_match(as, x, &reloc)) {
        x->done = true;
        return false;
    }
    uint32_t words[2];
    const uint32_t n = isa_encode(&x->insn, words);
    for (uint32_t i = 0; i < n; i++) put_word(s->out, offset + 4 * i, words[i] | bit);
    if (reloc.type != ISA_R_NONE) add_reloc(as, s, offset, reloc.type, reloc.value, x->loc);
    else check_word_target(as, x);
    if (x->insn.op == ISA_OP_F16V4SIHOAMP || x->insn.op == ISA_OP_F16V4SIHOSLIC)
        as_warn(as, x->loc, ISA_UNPROVEN, x->written);
    return true;
}

static void swap_members(struct as_item *item) {
    struct as_insn *t = item->insn[0];
    item->insn[0] = item->insn[1];
    item->insn[1] = t;
}

static bool is_aux(const struct as_insn *x) {
    return isa_form(x->insn.op)->pipe == ISA_AUX;
}

static void check_bundle(struct as *as, const struct as_item *item) {
    const struct as_insn *m = item->insn[0], *a = item->insn[1];
    const char *rule = NULL;
    switch (isa_bundle_check(&m->insn, &a->insn)) {
    case ISA_BUNDLE_OK:
        return;
    case ISA_BUNDLE_SOLO:
        rule = "one of them is never part of a bundle";
        break;
    case ISA_BUNDLE_MODE:
        rule = "only workers use bundles, and one is the supervisor's";
        break;
    case ISA_BUNDLE_PIPES:
        rule = is_aux(m) && !is_aux(a) ? "the main instruction comes first, the aux one second"
               : is_aux(m)             ? "both use the aux pipeline"
                                       : "both use the main pipeline";
        break;
    case ISA_BUNDLE_DEST:
        rule = "both write the same register (zero registers and parts of groups count)";
        break;
    }
    as_report(as, item->loc, item->warn_bundle ? ISA_WARNING : ISA_ERROR, DIAG_ISA_BUNDLE,
              DIAG_TEXT_ISA_BUNDLE, m->written, a->written, rule);
}

static void encode_item(struct as *as, struct as_section *s, struct as_item *item) {
    if (item->kind == AS_ITEM_INSN) encode_insn(as, s, item->insn[0], item->offset, 0);
    if (item->kind != AS_ITEM_BUNDLE) return;
    const uint32_t bit = UINT32_C(1) << 31;
    const bool known = !item->insn[0]->done && !item->insn[1]->done;
    if (known && item->allow_optimizations && is_aux(item->insn[0]) && !is_aux(item->insn[1]))
        swap_members(item);
    const bool first = encode_insn(as, s, item->insn[0], item->offset, bit);
    if (encode_insn(as, s, item->insn[1], item->offset + 4, bit) && first) check_bundle(as, item);
}

/* The rpt of an item, or NULL. */
static const struct as_insn *item_repeat(const struct as_item *item) {
    if (item->kind != AS_ITEM_INSN && item->kind != AS_ITEM_BUNDLE) return NULL;
    const struct as_insn *x = item->insn[0];
    const bool rpt = x->insn.op == ISA_OP_RPT_Z || x->insn.op == ISA_OP_RPT_R;
    return rpt && !x->done ? x : NULL;
}

/* False after a message: `item` is member k of the body. */
static bool check_body_item(struct as *as, const struct as_item *item, const struct as_insn *rpt) {
    if (item->kind != AS_ITEM_BUNDLE) {
        as_error(as, item->loc, ISA_REPEAT_LONE, rpt->loc.line->number);
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct as_insn *x = item->insn[i];
        if (x->done || isa_in_repeat(x->insn.op)) continue;
        as_error(as, x->loc, ISA_REPEAT_KIND, x->written, rpt->loc.line->number);
        return false;
    }
    return true;
}

static void check_repeat(struct as *as, const struct as_section *s, uint32_t at) {
    const struct as_item *item = &g_array_index(s->items, struct as_item, at);
    const struct as_insn *rpt = item_repeat(item);
    if (rpt == NULL || item->allow_repeat) return;
    const uint32_t n = (uint32_t)rpt->insn.imm + 1;
    for (uint32_t k = 0; k < n; k++) {
        if (at + 1 + k >= s->items->len) {
            as_error(as, rpt->loc, ISA_REPEAT_SHORT, n, k);
            return;
        }
        if (!check_body_item(as, &g_array_index(s->items, struct as_item, at + 1 + k), rpt)) return;
    }
}

static void write_data(struct as *as, struct as_section *s, const struct as_fixup *f) {
    static const uint8_t types[] = {[1] = ISA_R_8, [2] = ISA_R_16, [4] = ISA_R_32, [8] = ISA_R_64};
    struct as_value v;
    if (!as_eval(as, f->expr, true, &v)) return;
    if (v.symbol != NULL) {
        add_reloc(as, s, f->offset, types[f->size], v, f->expr->loc);
        return;
    }
    const int64_t limit = f->size < 8 ? INT64_C(1) << 8 * f->size : 0;
    if (limit != 0 && (v.value < -limit / 2 || v.value >= limit)) {
        as_error(as, f->expr->loc, ISA_DATA_RANGE, v.value, 8u * f->size);
        return;
    }
    for (uint32_t i = 0; i < f->size; i++)
        s->out->bytes->data[f->offset + i] = (uint8_t)((uint64_t)v.value >> 8 * i);
}

static void add_line(struct as_section *s, const struct as_item *item) {
    if (item->loc.line == NULL) return;
    const struct isa_line line = {item->offset, item->loc.line->file, item->loc.line->number};
    const guint n = s->out->lines->len;
    const struct isa_line *last =
        n == 0 ? NULL : &g_array_index(s->out->lines, struct isa_line, n - 1);
    if (last == NULL || last->file != line.file || last->line != line.line)
        g_array_append_val(s->out->lines, line);
}

static int compare_relocs(const void *a, const void *b) {
    const struct isa_reloc *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static uint8_t symbol_binding(const struct as_symbol *s) {
    if (s->binding_set) return s->binding;
    return s->kind == AS_SYM_UNDEFINED || s->kind == AS_SYM_COMMON ? ISA_GLOBAL : ISA_LOCAL;
}

/* Numbers the object's symbols: one per section first, then the named ones in order of appearance.
 */
static void number_symbols(struct as *as) {
    for (uint32_t i = 0; i < as->sections->len; i++) {
        const struct as_section *s = g_ptr_array_index(as->sections, i);
        const struct isa_symbol sym = {.name = g_strdup(s->out->name),
                                       .section = (int32_t)i,
                                       .binding = ISA_LOCAL,
                                       .type = ISA_SYM_SECTION};
        g_array_append_val(as->object->symbols, sym);
    }
    for (uint32_t i = 0; i < as->symbol_order->len; i++) {
        struct as_symbol *s = g_ptr_array_index(as->symbol_order, i);
        struct as_value v = {0};
        struct isa_symbol sym = {
            .section = ISA_IN_NONE, .binding = symbol_binding(s), .type = s->type};
        int64_t builtin;
        const bool hidden = s->name == NULL || strncmp(s->name, ".L", 2) == 0;
        if (s->kind == AS_SYM_LABEL) {
            if (hidden && s->section != NULL) continue;
            if (s->section == NULL) continue;
            sym.section = (int32_t)s->section->index;
            sym.value = s->offset;
        } else if (s->kind == AS_SYM_EQU) {
            if (hidden) continue; /* uses stand for its value */
            if (!as_eval(as, s->value, false, &v)) continue;
            if (v.symbol != NULL && v.symbol->section == NULL) continue;
            sym.section = v.symbol != NULL ? (int32_t)v.symbol->section->index : ISA_IN_ABSOLUTE;
            sym.value = (uint32_t)v.value + (v.symbol != NULL ? v.symbol->offset : 0);
        } else if (s->kind == AS_SYM_COMMON) {
            sym.section = ISA_IN_COMMON;
            sym.value = s->offset;
        } else if (s->name == NULL) {
            as_error(as, s->loc, ISA_LOCAL_LABEL_AHEAD);
            continue;
        } else if (!s->referenced || as_builtin(as, s->name, &builtin)) {
            if (!s->binding_set || as_builtin(as, s->name, &builtin)) continue;
        }
        if (s->size != NULL && as_eval(as, s->size, true, &v) && v.symbol == NULL)
            sym.size = (uint32_t)v.value;
        sym.name = g_strdup(s->name);
        g_array_append_val(as->object->symbols, sym);
        s->out = as->object->symbols->len;
    }
}

void as_second_pass(struct as *as) {
    as_bind_labels(as);
    number_symbols(as);
    for (uint32_t i = 0; i < as->sections->len; i++) {
        struct as_section *s = g_ptr_array_index(as->sections, i);
        for (uint32_t k = 0; k < s->items->len; k++) {
            struct as_item *item = &g_array_index(s->items, struct as_item, k);
            encode_item(as, s, item);
            add_line(s, item);
        }
        for (uint32_t k = 0; k < s->items->len; k++) check_repeat(as, s, k);
        for (uint32_t k = 0; k < s->fixups->len; k++)
            write_data(as, s, &g_array_index(s->fixups, struct as_fixup, k));
        g_array_sort(s->out->relocs, compare_relocs);
    }
}

/* --- Listing. --- */

static void list_item(struct as *as, const struct as_section *s, const struct as_item *item,
                      GString *out) {
    const uint8_t *bytes = s->out->bytes->data;
    const uint32_t shown = item->size < 8 ? item->size : 8;
    GString *hex = g_string_new(NULL);
    for (uint32_t i = 0; i + 4 <= shown && bytes != NULL; i += 4) {
        uint32_t w;
        memcpy(&w, bytes + item->offset + i, 4);
        g_string_append_printf(hex, "%s%08x", i != 0 ? " " : "", GUINT32_FROM_LE(w));
    }
    for (uint32_t i = shown & ~3u; i < shown && bytes != NULL; i++)
        g_string_append_printf(hex, "%02x", bytes[item->offset + i]);
    const char *file = g_ptr_array_index(as->object->files, item->loc.line->file);
    g_string_append_printf(out, "%6x  %-17s  %s:%u: %s\n", item->offset, hex->str, file,
                           item->loc.line->number,
                           item->kind == AS_ITEM_PAD ? "[nop put in]" : item->loc.line->text);
    g_string_free(hex, true);
}

void as_listing(struct as *as, GString *out) {
    for (uint32_t i = 0; i < as->sections->len; i++) {
        const struct as_section *s = g_ptr_array_index(as->sections, i);
        if (s->items->len == 0) continue;
        g_string_append_printf(out, "section %s\n", s->out->name);
        for (uint32_t k = 0; k < s->items->len; k++)
            list_item(as, s, &g_array_index(s->items, struct as_item, k), out);
    }
}
