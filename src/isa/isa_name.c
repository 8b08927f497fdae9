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

/* --- Suggestions. --- */

/* Edit distance with neighbours swapped counting one; stops mattering above `limit`. */
static uint32_t distance(const char *a, const char *b, uint32_t limit) {
    const size_t n = strlen(a), m = strlen(b);
    if (n > 40 || m > 40 || (n > m ? n - m : m - n) > limit) return limit + 1;
    uint32_t rows[3][42];
    for (uint32_t j = 0; j <= m; j++) rows[0][j] = j;
    for (uint32_t i = 1; i <= n; i++) {
        uint32_t *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (uint32_t j = 1; j <= m; j++) {
            uint32_t d = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < d) d = last[j] + 1;
            if (now[j - 1] + 1 < d) d = now[j - 1] + 1;
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < d) d = before[j - 2] + 1;
            now[j] = d;
        }
    }
    return rows[n % 3][m];
}

char *isa_suggest(const char *name, const char *const *names, size_t n) {
    enum { MAX_SHOWN = 3 };
    const uint32_t limit = strlen(name) <= 3 ? 1 : 2;
    for (uint32_t d = 0; d <= limit; d++) {
        const char *found[MAX_SHOWN];
        uint32_t n_found = 0;
        for (size_t i = 0; i < n && n_found < MAX_SHOWN; i++)
            if (distance(name, names[i], limit) == d) found[n_found++] = names[i];
        if (n_found == 0) continue;
        GString *s = g_string_new("; did you mean ");
        for (uint32_t i = 0; i < n_found; i++)
            g_string_append_printf(s, "%s'%s'",
                                   i == 0             ? ""
                                   : i + 1 == n_found ? " or "
                                                      : ", ",
                                   found[i]);
        g_string_append_c(s, '?');
        return g_string_free(s, FALSE);
    }
    return g_strdup("");
}
