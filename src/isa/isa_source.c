/* Objects as source that assembles to the same contents, relocations and symbols: sections in
 * order, a label at every symbol and at every place that a relocation goes to, instructions with
 * the names of what they refer to, everything else as data. A first walk over the code of a section
 * finds where its instructions begin; a place inside one is named by .set. Words that the assembler
 * would refuse or pad are printed as data. Cost: linear, plus the sorting of places.
 *
 * Not to be written so, and refused by name: kinds of relocations that no operand makes, names that
 * are no identifiers, and two symbols of one name. */
#include "isa/isa_as.h"
#include "isa/isa_obj.h"

#include <stdarg.h>
#include <string.h>

/* A label to print: a symbol, or a place that relocations reach. */
struct spot {
    uint32_t section, offset;
    const char *name; /* NULL: .Ls<section>_<offset> */
};
struct source {
    GString *out;
    const struct isa_object *object;
    GError **error;
    GArray *spots;    /* struct spot, in order */
    uint8_t **begins; /* per section: bytes where a line can begin; NULL = every one */
};
/* One section on its way out. */
struct walk {
    const struct isa_section *section;
    uint32_t index;
    uint32_t next_reloc, next_spot;
};

static bool refuse(const struct source *s, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool refuse(const struct source *s, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *what = g_strdup_vprintf(format, args);
    va_end(args);
    diag_set(s->error, ISA_NO_SOURCE, s->object->name, what);
    g_free(what);
    return false;
}

static const struct isa_symbol *symbol_at(const struct source *s, uint32_t i) {
    return &g_array_index(s->object->symbols, struct isa_symbol, i);
}
static const struct isa_section *section_at(const struct source *s, uint32_t i) {
    return g_ptr_array_index(s->object->sections, i);
}
static const struct isa_reloc *reloc_at(const struct isa_section *section, uint32_t i) {
    return i < section->relocs->len ? &g_array_index(section->relocs, struct isa_reloc, i) : NULL;
}

/* --- What stands at a place of code. --- */

/* An instruction or bundle that assembles to these words, with the relocations of its members; else
 * data of one word. */
struct unit {
    struct isa_slot slot;
    const struct isa_reloc *reloc[2];
    bool is_data;
    uint32_t size, n_relocs;
};

static bool same_words(const struct isa_insn *insn, const uint32_t *words, uint32_t bit) {
    uint32_t again[2];
    const uint32_t n = isa_encode(insn, again);
    for (uint32_t i = 0; i < n; i++)
        if ((again[i] | bit) != words[i]) return false;
    return isa_insn_check(insn, NULL) && !as_destinations_meet(insn);
}

/* The kind of relocation that an instruction's operand takes, or ISA_R_NONE. */
static uint8_t insn_reloc(const struct isa_insn *insn) {
    const struct isa_form *f = isa_form(insn->op);
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const uint8_t type = isa_reloc_type(&f->operand[i]);
        if (type != ISA_R_NONE) return type;
    }
    return ISA_R_NONE;
}

static bool is_rpt(const struct isa_slot *slot) {
    return !slot->bundle && (slot->main.op == ISA_OP_RPT_Z || slot->main.op == ISA_OP_RPT_R);
}

static bool is_instruction(const struct unit *u, const struct walk *w, const uint32_t *words,
                           uint32_t offset) {
    const uint32_t bit = u->slot.bundle ? UINT32_C(1) << 31 : 0;
    if (!same_words(&u->slot.main, words, bit)) return false;
    if (u->slot.bundle && !same_words(&u->slot.aux, words + 1, bit)) return false;
    const bool pairs = u->slot.n_words == 2 || is_rpt(&u->slot);
    if (pairs && w->section->align < 8) return false; /* the assembler would raise it */
    return !(is_rpt(&u->slot) && offset % 8 == 0);    /* or put a nop in front */
}

/* Collects the relocations inside the unit; false if one does not belong to an operand of it. */
static bool take_relocs(struct unit *u, const struct walk *w, uint32_t offset) {
    for (const struct isa_reloc *r;
         (r = reloc_at(w->section, w->next_reloc + u->n_relocs)) != NULL &&
         r->offset < offset + u->size;
         u->n_relocs++) {
        const uint32_t member = (r->offset - offset) / 4;
        const struct isa_insn *insn = member == 0 ? &u->slot.main : &u->slot.aux;
        const bool has_member = member == 0 || u->slot.bundle;
        if (r->offset % 4 != 0 || !has_member || u->reloc[member] != NULL ||
            insn_reloc(insn) != r->type)
            return false;
        u->reloc[member] = r;
    }
    return true;
}

static struct unit unit_at(const struct walk *w, uint32_t offset) {
    const uint8_t *bytes = w->section->bytes->data + offset;
    const uint32_t left = w->section->size - offset, n = left < 8 ? left / 4 : 2;
    uint32_t words[2] = {0};
    for (uint32_t i = 0; i < 4 * n; i++) words[i / 4] |= (uint32_t)bytes[i] << 8 * (i % 4);
    struct unit u = {0};
    const bool known =
        offset % 4 == 0 && n != 0 && isa_slot_decode(words, n, offset, &u.slot) == ISA_SLOT_OK;
    if (known) {
        u.size = 4u * u.slot.n_words;
        if (is_instruction(&u, w, words, offset) && take_relocs(&u, w, offset)) return u;
    }
    return (struct unit){.is_data = true, .size = MIN(left, 4 - offset % 4)};
}

/* --- Places. --- */

static bool can_begin(const struct source *s, uint32_t section, uint32_t offset) {
    return s->begins[section] == NULL || s->begins[section][offset] != 0;
}

static void find_begins(struct source *s, uint32_t index) {
    const struct isa_section *section = section_at(s, index);
    if ((section->flags & ISA_SECTION_EXEC) == 0 || (section->flags & ISA_SECTION_NOBITS) != 0)
        return;
    s->begins[index] = g_malloc0(section->size + 1);
    struct walk w = {.section = section, .index = index};
    for (uint32_t at = 0; at < section->size;) {
        const struct unit u = unit_at(&w, at);
        memset(s->begins[index] + at, 1, u.is_data ? u.size : 1);
        at += u.size;
        for (const struct isa_reloc *r;
             (r = reloc_at(section, w.next_reloc)) != NULL && r->offset < at;)
            w.next_reloc++;
    }
    s->begins[index][section->size] = 1;
}

/* Whether a relocation names a place of a section, not a symbol; then which. */
static bool reloc_spot(const struct source *s, const struct isa_reloc *r, struct spot *ret) {
    const struct isa_symbol *sym = symbol_at(s, r->symbol);
    if (sym->type != ISA_SYM_SECTION || sym->section < 0) return false;
    const int64_t offset = (int64_t)sym->value + r->addend;
    *ret = (struct spot){.section = (uint32_t)sym->section};
    const bool inside = offset >= 0 && offset <= section_at(s, ret->section)->size;
    if (inside && can_begin(s, ret->section, (uint32_t)offset)) ret->offset = (uint32_t)offset;
    return true;
}

static int compare_spots(const void *a, const void *b) {
    const struct spot *x = a, *y = b;
    if (x->section != y->section) return x->section < y->section ? -1 : 1;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    return 0;
}

static void find_spots(struct source *s) {
    for (uint32_t i = 0; i < s->object->sections->len; i++) {
        const struct isa_section *section = section_at(s, i);
        struct spot spot;
        for (uint32_t k = 0; k < section->relocs->len; k++)
            if (reloc_spot(s, reloc_at(section, k), &spot)) g_array_append_val(s->spots, spot);
    }
    for (uint32_t i = 0; i < s->object->symbols->len; i++) {
        const struct isa_symbol *sym = symbol_at(s, i);
        if (sym->section < 0 || sym->type == ISA_SYM_SECTION || *sym->name == 0) continue;
        struct spot spot = {(uint32_t)sym->section, sym->value, sym->name};
        if (!can_begin(s, spot.section, spot.offset)) spot = (struct spot){.section = spot.section};
        g_array_append_val(s->spots, spot);
    }
    g_array_sort(s->spots, compare_spots);
}

/* --- Symbols. --- */

static bool is_identifier(const char *name) {
    if (!as_ident_start(*name) || strcmp(name, ".") == 0) return false;
    for (; *name != 0; name++)
        if (!as_ident_char(*name)) return false;
    return true;
}

static bool check_names(const struct source *s) {
    GHashTable *seen = g_hash_table_new(g_str_hash, g_str_equal);
    bool ok = true;
    for (uint32_t i = 0; ok && i < s->object->symbols->len; i++) {
        const struct isa_symbol *sym = symbol_at(s, i);
        if (sym->type == ISA_SYM_SECTION) continue;
        if (!is_identifier(sym->name)) ok = refuse(s, "symbol '%s' is no identifier", sym->name);
        else if (!g_hash_table_add(seen, sym->name))
            ok = refuse(s, "two symbols are called '%s'", sym->name);
    }
    g_hash_table_destroy(seen);
    return ok;
}

static void put_symbols(const struct source *s) {
    static const char *const bindings[] = {".local", ".globl", ".weak"};
    for (uint32_t i = 0; i < s->object->symbols->len; i++) {
        const struct isa_symbol *sym = symbol_at(s, i);
        if (sym->type == ISA_SYM_SECTION) continue;
        g_string_append_printf(s->out, "%s %s\n", bindings[sym->binding], sym->name);
        if (sym->type == ISA_SYM_FUNCTION || sym->type == ISA_SYM_OBJECT)
            g_string_append_printf(s->out, ".type %s, @%s\n", sym->name,
                                   sym->type == ISA_SYM_FUNCTION ? "function" : "object");
        if (sym->section == ISA_IN_COMMON)
            g_string_append_printf(s->out, ".comm %s, %u, %u\n", sym->name, sym->size, sym->value);
        else if (sym->size != 0)
            g_string_append_printf(s->out, ".size %s, %u\n", sym->name, sym->size);
        if (sym->section == ISA_IN_ABSOLUTE)
            g_string_append_printf(s->out, ".set %s, 0x%x\n", sym->name, sym->value);
        else if (sym->section >= 0 && !can_begin(s, (uint32_t)sym->section, sym->value))
            g_string_append_printf(s->out, ".set %s, .Ls%d_0 + %u\n", sym->name, sym->section,
                                   sym->value);
    }
}

/* --- Contents. --- */

static char *reloc_text(const struct source *s, const struct isa_reloc *r) {
    struct spot spot;
    const struct isa_symbol *sym = symbol_at(s, r->symbol);
    if (!reloc_spot(s, r, &spot))
        return r->addend != 0 ? g_strdup_printf("%s%+d", sym->name, r->addend)
                              : g_strdup(sym->name);
    const int64_t rest = (int64_t)sym->value + r->addend - spot.offset;
    return rest != 0
               ? g_strdup_printf(".Ls%u_%x%+" G_GINT64_FORMAT, spot.section, spot.offset, rest)
               : g_strdup_printf(".Ls%u_%x", spot.section, spot.offset);
}

/* The labels of the place `offset`; false if one lies before it, inside what has been printed. */
static bool put_labels(const struct source *s, struct walk *w, uint32_t offset) {
    for (; w->next_spot < s->spots->len; w->next_spot++) {
        const struct spot *p = &g_array_index(s->spots, struct spot, w->next_spot);
        if (p->section != w->index || p->offset > offset) break;
        if (p->offset < offset) return refuse(s, "a name inside a value, at 0x%x", p->offset);
        const struct spot *last = w->next_spot > 0 ? p - 1 : NULL;
        const bool again =
            p->name == NULL && last != NULL && compare_spots(p, last) == 0 && last->name == NULL;
        if (p->name != NULL) g_string_append_printf(s->out, "%s:\n", p->name);
        else if (!again) g_string_append_printf(s->out, ".Ls%u_%x:\n", p->section, p->offset);
    }
    return true;
}

static bool put_data_reloc(const struct source *s, const struct isa_reloc *r, uint32_t limit,
                           uint32_t *ret_size) {
    static const struct {
        const char *directive;
        uint8_t type, size;
    } kinds[] = {{".byte", ISA_R_8, 1},
                 {".short", ISA_R_16, 2},
                 {".word", ISA_R_32, 4},
                 {".quad", ISA_R_64, 8}};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (kinds[i].type != r->type || kinds[i].size > limit) continue;
        char *text = reloc_text(s, r);
        g_string_append_printf(s->out, "\t%s %s\n", kinds[i].directive, text);
        g_free(text);
        *ret_size = kinds[i].size;
        return true;
    }
    return refuse(s, "no operand makes relocation %u at offset 0x%x", r->type, r->offset);
}

/* The first place behind `at` where something else than plain bytes stands. */
static uint32_t plain_end(const struct source *s, const struct walk *w, uint32_t at, uint32_t end) {
    const struct isa_reloc *r = reloc_at(w->section, w->next_reloc);
    if (r != NULL && r->offset < end) end = r->offset;
    if (w->next_spot >= s->spots->len) return end;
    const struct spot *p = &g_array_index(s->spots, struct spot, w->next_spot);
    return p->section == w->index && p->offset < end && p->offset > at ? p->offset : end;
}

static void put_plain(const struct source *s, const uint8_t *bytes, uint32_t n) {
    uint32_t zeros = 0;
    while (zeros < n && bytes[zeros] == 0) zeros++;
    if (zeros == n && n > 16) {
        g_string_append_printf(s->out, "\t.space %u\n", n);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(s->out, "%s0x%02x%s", i % 16 == 0 ? "\t.byte " : ", ", bytes[i],
                               i % 16 == 15 || i + 1 == n ? "\n" : "");
}

static bool put_data(const struct source *s, struct walk *w, uint32_t at, uint32_t end,
                     uint32_t *ret_at) {
    while (at < end) {
        if (!put_labels(s, w, at)) return false;
        const struct isa_reloc *r = reloc_at(w->section, w->next_reloc);
        uint32_t size = 0;
        if (r != NULL && r->offset == at) {
            if (!put_data_reloc(s, r, w->section->size - at, &size)) return false;
            w->next_reloc++;
            at += size;
        } else if (r != NULL && r->offset < at) {
            return refuse(s, "relocations overlap at offset 0x%x", r->offset);
        } else {
            const uint32_t stop = plain_end(s, w, at, end);
            put_plain(s, w->section->bytes->data + at, stop - at);
            at = stop;
        }
    }
    *ret_at = at;
    return true;
}

static void put_insn(const struct source *s, const struct isa_insn *insn,
                     const struct isa_reloc *r) {
    char *text = r != NULL ? reloc_text(s, r) : NULL;
    isa_insn_print(s->out, insn, &(struct isa_print){.relocated = text});
    g_free(text);
}

static void put_unit(const struct source *s, const struct unit *u) {
    g_string_append(s->out, u->slot.bundle ? "\t{ " : "\t");
    put_insn(s, &u->slot.main, u->reloc[0]);
    if (u->slot.bundle) {
        g_string_append(s->out, " ; ");
        put_insn(s, &u->slot.aux, u->reloc[1]);
        g_string_append(s->out, " }");
    }
    g_string_append_c(s->out, '\n');
}

static bool put_code(const struct source *s, struct walk *w) {
    for (uint32_t at = 0; at < w->section->size;) {
        const struct unit u = unit_at(w, at);
        if (u.is_data) {
            if (!put_data(s, w, at, at + u.size, &at)) return false;
            continue;
        }
        if (!put_labels(s, w, at)) return false;
        put_unit(s, &u);
        w->next_reloc += u.n_relocs;
        at += u.size;
    }
    return true;
}

static bool put_section(const struct source *s, struct walk *w) {
    const struct isa_section *section = w->section;
    const bool nobits = (section->flags & ISA_SECTION_NOBITS) != 0;
    const bool code = (section->flags & ISA_SECTION_EXEC) != 0 && !nobits;
    if (strpbrk(section->name, "\"\n") != NULL)
        return refuse(s, "section '%s' has a quote in its name", section->name);
    g_string_append_printf(s->out, ".section \"%s\", \"%s%s%s\", @%sbits\n", section->name,
                           section->flags & ISA_SECTION_ALLOC ? "a" : "",
                           section->flags & ISA_SECTION_WRITE ? "w" : "",
                           section->flags & ISA_SECTION_EXEC ? "x" : "", nobits ? "no" : "prog");
    if (section->align > 1) g_string_append_printf(s->out, ".align %u\n", section->align);
    uint32_t at = 0;
    if (code && !put_code(s, w)) return false;
    for (; nobits && at < section->size;) {
        if (!put_labels(s, w, at)) return false;
        const uint32_t stop = plain_end(s, w, at, section->size);
        g_string_append_printf(s->out, "\t.space %u\n", stop - at);
        at = stop;
    }
    if (!code && !nobits && !put_data(s, w, 0, section->size, &at)) return false;
    return put_labels(s, w, section->size);
}

bool isa_object_source(GString *out, const struct isa_object *o, GError **error) {
    const uint32_t n = o->sections->len;
    struct source s = {.out = out,
                       .object = o,
                       .error = error,
                       .spots = g_array_new(false, false, sizeof(struct spot)),
                       .begins = g_new0(uint8_t *, n + 1)};
    bool ok = check_names(&s);
    for (uint32_t i = 0; ok && i < n; i++) find_begins(&s, i);
    if (ok) {
        find_spots(&s);
        g_string_append(out, ".allow_invalid_repeat\n.allow_invalid_operands\n");
        put_symbols(&s);
    }
    struct walk w = {0};
    for (uint32_t i = 0; ok && i < n; i++) {
        w = (struct walk){.section = section_at(&s, i), .index = i, .next_spot = w.next_spot};
        ok = put_section(&s, &w);
    }
    for (uint32_t i = 0; i < n; i++) g_free(s.begins[i]);
    g_free(s.begins);
    g_array_free(s.spots, true);
    return ok;
}
