/* The manual of the instruction set, as text: one table per kind of instruction, a row per form,
 * then other names, the registers of the machine and the symbolic flags. Everything comes from the
 * tables. */
#include "isa/isa_form.h"

#include <string.h>

static const struct {
    const char *mnemonic, *text;
} docs[] = {
#define ISA_DOC(mnemonic, text) {mnemonic, text},
#include "isa/isa_doc.def"
#undef ISA_DOC
};

static const struct {
    const char *name, *text;
} aliases[] = {
#define ISA_ALIAS(name, rule, text) {name, text},
#include "isa/isa_alias.def"
#undef ISA_ALIAS
};

const char *isa_doc(const char *mnemonic) {
    for (size_t i = 0; i < ARRAY_LEN(docs); i++)
        if (strcmp(docs[i].mnemonic, mnemonic) == 0) return docs[i].text;
    return NULL;
}

static const char *evidence_text(uint8_t e) {
    switch ((enum isa_evidence)e) {
    case ISA_EV_WORDS:
        return "words";
    case ISA_EV_WORDS_TD:
        return "words, immediate by description";
    case ISA_EV_TD:
        return "description";
    case ISA_EV_UNPROVEN:
        return "description, existence open";
    case ISA_EV_THIRD_PARTY:
        return "third-party words";
    case ISA_EV_SDK:
        return "SDK words";
    }
    return "?";
}

/* `$m add`: what the role is called and what may stand there. */
static void print_operand(GString *out, const struct isa_operand *o) {
    const struct isa_class_info *c = &isa_classes[o->class];
    const char *role = isa_roles[o->role].csv;
    if (c->reg) {
        g_string_append_printf(out, "$%c_%s", c->file == 'M' ? 'm' : 'a', role);
        if (c->n > 1) g_string_append_printf(out, ":+%u", c->n - 1u);
        g_string_append(out, c->mark);
    } else if (c->file == 'E') {
        g_string_append(out, role);
    } else {
        g_string_append_printf(out, "%s:%s", role, c->csv);
    }
}

static void print_accesses(GString *out, const struct isa_form *f) {
    for (uint32_t i = 0; i < ISA_MAX_ACCESSES && f->access[i].bytes != 0; i++)
        g_string_append_printf(out, "%s%s %u", i != 0 ? ", " : "",
                               f->access[i].store ? "store" : "load", f->access[i].bytes * 8u);
}

/* `d 7:4, imm 11:8+19:16+3:0`: where the operands lie; 2. is the second word of sendpicp. */
static void print_places(GString *out, const struct isa_form *f) {
    for (uint32_t i = 0; i < f->n_operands; i++) {
        const struct isa_field_info *field = &isa_fields[f->operand[i].field];
        g_string_append_printf(out, "%s%s %s%s", i != 0 ? ", " : "",
                               isa_roles[f->operand[i].role].csv, field->word != 0 ? "2. " : "",
                               field->csv);
    }
}

/* What may stand beside it, and whether in a repeat body. */
static void print_pairing(GString *out, enum isa_op op) {
    static const char *const pipes[] = {"main", "aux", "main, alone"};
    const struct isa_form *f = isa_form(op);
    g_string_append(out, pipes[f->pipe]);
    if (f->pipe != ISA_SOLO && !isa_in_repeat(op)) g_string_append(out, ", not in rpt");
}

static const char *const modes[] = {"", "worker", "supervisor", "both"};

static void print_syntax(GString *out, const struct isa_form *f) {
    g_string_append(out, f->mnemonic);
    for (uint32_t i = 0; i < f->n_operands; i++) {
        g_string_append(out, i == 0 ? " " : ", ");
        print_operand(out, &f->operand[i]);
    }
}

static void print_form(GString *out, enum isa_op op) {
    const struct isa_form *f = isa_form(op);
    g_string_append(out, "| `");
    print_syntax(out, f);
    g_string_append_printf(out, "` | `%08x` | `%08x` | ", f->word, f->mask);
    print_places(out, f);
    g_string_append(out, " | ");
    print_pairing(out, op);
    g_string_append_printf(out, " | %s | %u | ", modes[f->who], f->slots);
    print_accesses(out, f);
    g_string_append_printf(out, " | %s%s | %s |\n", evidence_text(f->evidence),
                           isa_flag_provisional(op) ? "; flag numbers provisional" : "",
                           isa_doc(f->mnemonic));
}

static void print_head(GString *out) {
    g_string_append(
        out, "| form | word | fixed bits | operand bits | pipe | who | slots | memory | evidence | "
             "meaning |\n|---|---|---|---|---|---|---|---|---|---|\n");
}

static void print_kind(GString *out, enum isa_kind kind, const char *title) {
    g_string_append_printf(out, "\n## %s\n\n", title);
    print_head(out);
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        if (isa_form(op)->kind == kind) print_form(out, op);
}

/* `RND[18:16]`: the fields that are known; registers of one number differ by name. */
static void print_fields(GString *out, const char *csr) {
    static const struct {
        const char *csr, *field;
        uint32_t shift, bits;
    } fields[] = {
#define ISA_CSR_FIELD(csr, field, shift, bits) {#csr, #field, shift, bits},
#include "isa/isa_csr_field.def"
#undef ISA_CSR_FIELD
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (strcmp(fields[i].csr, csr) != 0) continue;
        g_string_append_printf(out, " %s[%u", fields[i].field,
                               fields[i].shift + fields[i].bits - 1);
        if (fields[i].bits > 1) g_string_append_printf(out, ":%u", fields[i].shift);
        g_string_append_c(out, ']');
    }
}

static const struct {
    const char *name, *space, *who;
    uint32_t index;
} csrs[] = {
#define ISA_CSR(name, space, who, index) {#name, #space, #who, index},
#include "isa/isa_csr.def"
#undef ISA_CSR
};

static const char *csr_space(size_t i) {
    return csrs[i].space[0] == 'U' ? "upper" : "lower";
}

static const char *csr_who(size_t i) {
    return csrs[i].who[0] == 'W' ? "worker" : csrs[i].who[0] == 'S' ? "supervisor" : "both";
}

static void print_csrs(GString *out) {
    g_string_append(
        out, "\n## Registers of the machine\n\n`get` and `put` reach the lower space, "
             "`uget` and `uput` (also written `get` and `put` with an $a register) the "
             "upper one. Debug registers keep their fields; writes that would arm a break are "
             "refused (fault 16): where it stops a context is not public.\n\n"
             "| name | space | who | index | fields |\n|---|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(csrs); i++) {
        g_string_append_printf(out, "| `$%s` | %s | %s | 0x%02x |", csrs[i].name, csr_space(i),
                               csr_who(i), csrs[i].index);
        print_fields(out, csrs[i].name);
        g_string_append(out, " |\n");
    }
}

static const struct {
    const char *name;
    uint32_t value;
} flags[] = {
#define ISA_FLAG(name, family, value) {#name, value},
#include "isa/isa_flag.def"
#undef ISA_FLAG
};

static void print_flags(GString *out) {
    g_string_append(out,
                    "\n## Symbolic flags\n\nTheir hardware numbers are not public. The numbers "
                    "here are this project's own and provisional; `asm --target-hardware "
                    "--sdk-header FILE` takes the user's.\n\n| name | number |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        g_string_append_printf(out, "| `%s` | 0x%02x |\n", flags[i].name, flags[i].value);
}

static void print_aliases(GString *out) {
    g_string_append(out, "\n## Other names\n\n| name | stands for |\n|---|---|\n");
    for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
        g_string_append_printf(out, "| `%s` | %s |\n", aliases[i].name, aliases[i].text);
}

void isa_manual(GString *out) {
    uint32_t count[ISA_EV_SDK + 1] = {0};
    for (uint32_t op = 0; op < ISA_N_OPS; op++) count[isa_form(op)->evidence]++;
    g_string_append_printf(
        out,
        "# Instruction set of the IPU21 tile\n\nGenerated from the tables of `src/isa`; version "
        "%u. "
        "%u forms. A word belongs to a form if its fixed bits equal those of `word`; bit 31 is set "
        "in both words of a bundle. Register operands are written with file and role; `:+1` and "
        "`:+3` mark pairs and quads, immediates show their kind and width (z unsigned, s signed, n "
        "events, w words: a number counts words, so `bri 0x13006` jumps to 0x4c018, while a label "
        "stands "
        "for its address). \"see NAME\" is a section of `docs/machine.md`. Pipe: a bundle is a "
        "main and an aux instruction with different "
        "destinations; alone means never in one; not in rpt, never in the body of a repeat. Slots "
        "are the worst case.\n\nEvidence: ",
        (unsigned)ISA_TABLE_VERSION, (unsigned)ISA_N_OPS);
    for (uint32_t e = 0; e < ARRAY_LEN(count); e++)
        g_string_append_printf(out, "%s%u %s", e != 0 ? "; " : "", count[e],
                               evidence_text((uint8_t)e));
    g_string_append(out, ".\n");
    print_kind(out, ISA_KIND_INT, "Integers and bits on $m");
    print_kind(out, ISA_KIND_MEM, "Loads and stores");
    print_kind(out, ISA_KIND_CONTROL, "Control");
    print_kind(out, ISA_KIND_SYSTEM, "Machine registers, synchronisation, coefficients");
    print_kind(out, ISA_KIND_BITS, "Bits and permutations on $a");
    print_kind(out, ISA_KIND_FLOAT, "Floating point, accumulators, matrix units, random numbers");
    print_kind(out, ISA_KIND_EXCH, "Exchange");
    print_aliases(out);
    print_csrs(out);
    print_flags(out);
}

/* --- Single entries, for a terminal. --- */

static void describe_form(GString *out, enum isa_op op) {
    const struct isa_form *f = isa_form(op);
    print_syntax(out, f);
    g_string_append_printf(out, "\n    %s\n    ", isa_doc(f->mnemonic));
    print_pairing(out, op);
    g_string_append_printf(out, "; %s; %u slot%s",
                           f->who == 3 ? "worker and supervisor" : modes[f->who], f->slots,
                           f->slots == 1 ? "" : "s");
    if (f->access[0].bytes != 0) g_string_append(out, "; ");
    print_accesses(out, f);
    g_string_append_printf(out, "\n    word %08x, fixed bits %08x", f->word, f->mask);
    if (f->n_operands != 0) g_string_append(out, "; ");
    print_places(out, f);
    g_string_append_printf(out, "\n    evidence: %s%s\n", evidence_text(f->evidence),
                           isa_flag_provisional(op) ? "; flag numbers provisional" : "");
}

bool isa_manual_entry(GString *out, const char *pattern) {
    const gsize before = out->len;
    GPatternSpec *spec = g_pattern_spec_new(pattern[0] == '$' ? pattern + 1 : pattern);
    for (uint32_t op = 0; op < ISA_N_OPS && pattern[0] != '$'; op++)
        if (g_pattern_spec_match_string(spec, isa_form(op)->mnemonic)) describe_form(out, op);
    for (size_t i = 0; i < ARRAY_LEN(aliases) && pattern[0] != '$'; i++)
        if (g_pattern_spec_match_string(spec, aliases[i].name))
            g_string_append_printf(out, "%s\n    %s\n", aliases[i].name, aliases[i].text);
    for (size_t i = 0; i < ARRAY_LEN(csrs); i++) {
        if (!g_pattern_spec_match_string(spec, csrs[i].name)) continue;
        g_string_append_printf(out, "$%s: %s space, %s, index 0x%02x\n   ", csrs[i].name,
                               csr_space(i), csr_who(i), csrs[i].index);
        print_fields(out, csrs[i].name);
        g_string_append(out, "\n");
    }
    for (size_t i = 0; i < ARRAY_LEN(flags) && pattern[0] != '$'; i++)
        if (g_pattern_spec_match_string(spec, flags[i].name))
            g_string_append_printf(out, "%s = 0x%02x, provisional\n", flags[i].name,
                                   flags[i].value);
    g_pattern_spec_free(spec);
    return out->len != before;
}

char *isa_manual_suggest(const char *name) {
    size_t n;
    const char *const *mnemonics = isa_mnemonics(&n);
    const char **names = g_new(const char *, n + ARRAY_LEN(csrs) + ARRAY_LEN(flags));
    memcpy(names, mnemonics, n * sizeof(*names));
    for (size_t i = 0; i < ARRAY_LEN(csrs); i++) names[n++] = csrs[i].name;
    for (size_t i = 0; i < ARRAY_LEN(flags); i++) names[n++] = flags[i].name;
    char *text = isa_suggest(name[0] == '$' ? name + 1 : name, names, n);
    g_free(names);
    return text;
}
