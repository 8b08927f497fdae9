/* Names: registers of the machine, symbolic flags, mnemonics with their aliases. */
#include "isa/isa_form.h"

#include <stdlib.h>
#include <string.h>

enum { SPACE_LOWER = 0, SPACE_UPPER = 1 };
static const struct {
    const char *name;
    uint8_t upper, who, index;
} csrs[] = {
#define ISA_CSR(name, space, who, index) {#name, SPACE_##space, ISA_MODE_##who, index},
#include "isa/isa_csr.def"
#undef ISA_CSR
};

static bool name_is(const char *name, const char *text, size_t len) {
    return strlen(name) == len && memcmp(name, text, len) == 0;
}

int isa_csr_find(const char *name, size_t len, bool *ret_upper, enum isa_mode *ret_who) {
    for (size_t i = 0; i < ARRAY_LEN(csrs); i++) {
        if (!name_is(csrs[i].name, name, len)) continue;
        if (ret_upper != NULL) *ret_upper = csrs[i].upper != 0;
        if (ret_who != NULL) *ret_who = (enum isa_mode)csrs[i].who;
        return csrs[i].index;
    }
    return -1;
}

const char *isa_csr_name(uint32_t index, bool upper, enum isa_mode mode) {
    const char *found = NULL;
    for (size_t i = 0; i < ARRAY_LEN(csrs); i++) {
        if (csrs[i].index != index || (csrs[i].upper != 0) != upper) continue;
        if (mode != 0 && (csrs[i].who & mode) == 0) continue;
        if (found != NULL) return NULL;
        found = csrs[i].name;
    }
    return found;
}

enum flag_family {
    FAMILY_NONE,
    FAMILY_AMP_F16V4,
    FAMILY_AMP_F8V8,
    FAMILY_AMP_F32,
    FAMILY_SLIC_F16V4,
    FAMILY_SLIC_F8V8,
    FAMILY_SLIC_F32,
    FAMILY_ISTACC,
    FAMILY_STACC
};
static const struct {
    const char *name;
    uint8_t family, value;
} flags[] = {
#define ISA_FLAG(name, family, value) {#name, FAMILY_##family, value},
#include "isa/isa_flag.def"
#undef ISA_FLAG
};

static enum flag_family flag_family(enum isa_op op) {
    switch (op) {
    case ISA_OP_F16V4HIHOAMP:
    case ISA_OP_F16V4HIHOV4AMP:
    case ISA_OP_F16V4SIHOAMP:
    case ISA_OP_F16V4SISOAMP:
        return FAMILY_AMP_F16V4;
    case ISA_OP_F8V8HIHOV4AMP:
        return FAMILY_AMP_F8V8;
    case ISA_OP_F32SISOAMP:
    case ISA_OP_F32SISOV2AMP:
        return FAMILY_AMP_F32;
    case ISA_OP_F16V4HIHOSLIC:
    case ISA_OP_F16V4HIHOV4SLIC:
    case ISA_OP_F16V4SIHOSLIC:
    case ISA_OP_F16V4SISOSLIC:
        return FAMILY_SLIC_F16V4;
    case ISA_OP_F8V8HIHOV4SLIC:
        return FAMILY_SLIC_F8V8;
    case ISA_OP_F32SISOSLIC:
    case ISA_OP_F32SISOV2SLIC:
        return FAMILY_SLIC_F32;
    case ISA_OP_F16V4ISTACC:
        return FAMILY_ISTACC;
    case ISA_OP_F16V4STACC:
        return FAMILY_STACC;
    default:
        return FAMILY_NONE;
    }
}

int isa_flag_find(const char *name, size_t len) {
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (name_is(flags[i].name, name, len)) return flags[i].value;
    return -1;
}

const char *isa_flag_name(enum isa_op op, uint32_t value) {
    const enum flag_family family = flag_family(op);
    for (size_t i = 0; i < ARRAY_LEN(flags); i++)
        if (flags[i].family == family && flags[i].value == value) return flags[i].name;
    return NULL;
}

bool isa_flag_provisional(enum isa_op op) {
    return flag_family(op) != FAMILY_NONE;
}

/* --- Mnemonics. --- */

static const char *mnemonics[ISA_N_OPS + 64];
static size_t n_mnemonics;

static int compare_names(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

__attribute__((constructor)) static void mnemonics_build(void) {
    static const char *const all[] = {
#define ISA(id, mnemonic, ...) mnemonic,
#include "isa/isa.def"
#undef ISA
#define ISA_ALIAS(name, ...) name,
#include "isa/isa_alias.def"
#undef ISA_ALIAS
    };
    const char *sorted[ARRAY_LEN(all)];
    memcpy(sorted, all, sizeof(all));
    qsort(sorted, ARRAY_LEN(sorted), sizeof(sorted[0]), compare_names);
    for (size_t i = 0; i < ARRAY_LEN(sorted); i++)
        if (i == 0 || strcmp(sorted[i], sorted[i - 1]) != 0) mnemonics[n_mnemonics++] = sorted[i];
}

const char *const *isa_mnemonics(size_t *ret_n) {
    *ret_n = n_mnemonics;
    return mnemonics;
}
