/* The table of kernels and the binding: everything that is the same for all families. A shape is
 * checked by its family; addresses are checked here against what the family declares. */
#include "kernel/kernel.h"

#include "kernel/kernel_family.h"

#include <string.h>

struct kernel_row {
    const char *name, *symbol, *source;
    uint32_t code_bytes;
    const char *param[KERNEL_MAX_PARAMS];
    const struct kernel_family *family;
};

static const struct kernel_row kernel_rows[N_KERNELS] = {
#define KERNEL(name, symbol, source, code_bytes, ...)                                              \
    {#name, symbol, source, code_bytes, {__VA_ARGS__}, &kernel_family_##name},
#include "kernel/kernel.def"
#undef KERNEL
};

const char *kernel_name(uint32_t kernel) {
    BUG_ON(kernel >= N_KERNELS);
    return kernel_rows[kernel].name;
}

const char *kernel_param_name(uint32_t kernel, uint32_t i) {
    BUG_ON(kernel >= N_KERNELS || i >= KERNEL_MAX_PARAMS);
    return kernel_rows[kernel].param[i];
}

const char *kernel_source(uint32_t kernel) {
    BUG_ON(kernel >= N_KERNELS);
    return kernel_rows[kernel].source;
}

uint32_t kernel_code_bytes(uint32_t kernel) {
    BUG_ON(kernel >= N_KERNELS);
    return kernel_rows[kernel].code_bytes;
}

bool kernel_find(const char *name, uint32_t *ret_kernel) {
    for (uint32_t i = 0; i < N_KERNELS; i++) {
        if (strcmp(kernel_rows[i].name, name) != 0) continue;
        *ret_kernel = i;
        return true;
    }
    return false;
}

bool kernel_refuse(const struct kernel_spec *spec, uint32_t i, const char *rule, const char *must,
                   GError **error) {
    const struct kernel_row *row = &kernel_rows[spec->kernel];
    diag_set(error, KERNEL_SHAPE, row->name, rule, row->param[i] ? row->param[i] : "parameter",
             spec->p[i], must);
    return false;
}

bool kernel_check_param(const struct kernel_spec *spec, uint32_t i, uint32_t lo, uint32_t hi,
                        uint32_t m, GError **error) {
    if (spec->p[i] >= lo && spec->p[i] <= hi && spec->p[i] % m == 0) return true;
    char must[80];
    if (m > 1) g_snprintf(must, sizeof must, "a multiple of %u in %u..%u", m, lo, hi);
    else g_snprintf(must, sizeof must, "in %u..%u", lo, hi);
    return kernel_refuse(spec, i, "shape", must, error);
}

void kernel_operand_add(struct kernel_needs *needs, uint64_t bytes, uint32_t align,
                        enum kernel_access access, enum kernel_memory memory,
                        enum kernel_format format) {
    BUG_ON(needs->n_operands >= KERNEL_MAX_OPERANDS);
    needs->operand[needs->n_operands++] = (struct kernel_operand){
        .bytes = (uint32_t)bytes,
        .align = (uint16_t)align,
        .access = (uint8_t)access,
        .memory = (uint8_t)memory,
        .format = (uint8_t)format,
    };
}

/* A parameter that the family does not have must be 0, so that it is never silently ignored. */
static bool kernel_check_unused(const struct kernel_spec *spec, GError **error) {
    for (uint32_t i = 0; i < KERNEL_MAX_PARAMS; i++)
        if (!kernel_rows[spec->kernel].param[i] && spec->p[i] != 0)
            return kernel_refuse(spec, i, "unused parameter", "0", error);
    return true;
}

static bool kernel_check_size(const struct kernel_spec *spec, const struct kernel_needs *needs,
                              GError **error) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < needs->n_operands; i++)
        sum += (uint64_t)needs->operand[i].bytes + needs->operand[i].tail_bytes;
    /* Aliased operands may count twice; no tile holds more than this. */
    if (sum <= 2 * (uint64_t)(TARGET_SRAM_END - TARGET_SRAM_BASE)) return true;
    return kernel_refuse(spec, 0, "size", "such that the operands fit on a tile", error);
}

bool kernel_describe(const struct kernel_spec *spec, struct kernel_needs *ret, GError **error) {
    BUG_ON(spec->kernel >= N_KERNELS);
    const struct kernel_family *family = kernel_rows[spec->kernel].family;
    struct kernel_needs needs = {0};
    if (!kernel_check_unused(spec, error)) return false;
    if (!family->describe(spec, &needs, error)) return false;
    if (!kernel_check_size(spec, &needs, error)) return false;
    needs.cycles = family->cycles(spec, KERNEL_TIME_LANE);
    *ret = needs;
    return true;
}

uint64_t kernel_cycles(const struct kernel_spec *spec) {
    return kernel_cycles_lane(spec, KERNEL_TIME_LANE);
}

uint64_t kernel_cycles_lane(const struct kernel_spec *spec, uint32_t lane) {
    BUG_ON(spec->kernel >= N_KERNELS || lane >= TARGET_LANE_CYCLES);
    return kernel_rows[spec->kernel].family->cycles(spec, lane);
}

const char *kernel_symbol(const struct kernel_spec *spec) {
    BUG_ON(spec->kernel >= N_KERNELS);
    const struct kernel_row *row = &kernel_rows[spec->kernel];
    return row->family->symbol ? row->family->symbol(spec) : row->symbol;
}

static bool bind_check_operand(const char *name, const struct kernel_operand *o, uint32_t i,
                               uint32_t address, GError **error) {
    if (address % o->align != 0) {
        diag_set(error, KERNEL_ALIGN, name, i, address, o->align);
        return false;
    }
    const uint64_t end = (uint64_t)address + o->bytes + o->tail_bytes;
    const char *where = NULL;
    if (o->memory == KERNEL_MEMORY_INTERLEAVED && address < TARGET_REGION1_BASE)
        where = "the interleaved region";
    if (o->memory == KERNEL_MEMORY_STANDARD && end > TARGET_REGION1_BASE) where = "region 0";
    if (address < TARGET_SRAM_BASE || end > TARGET_SRAM_END) where = "SRAM";
    if (!where) return true;
    diag_set(error, KERNEL_MEMORY, name, i, address, (uint32_t)end, where);
    return false;
}

static bool bind_check_pair(const char *name, const struct kernel_needs *needs, uint32_t i,
                            uint32_t j, const uint32_t *addresses, GError **error) {
    const struct kernel_operand *a = &needs->operand[i], *b = &needs->operand[j];
    if (a->bytes == 0 || b->bytes == 0) return true;
    const uint32_t a0 = addresses[i], b0 = addresses[j];
    const uint32_t a1 = a0 + a->bytes, b1 = b0 + b->bytes;
    if ((needs->separate[i] >> j & 1) || (needs->separate[j] >> i & 1)) {
        const uint32_t ea0 = target_element(a0), ea1 = target_element(a1 + a->tail_bytes - 1);
        const uint32_t eb0 = target_element(b0), eb1 = target_element(b1 + b->tail_bytes - 1);
        if (ea0 <= eb1 && eb0 <= ea1) {
            diag_set(error, KERNEL_SEPARATE, name, i, j, target_element_base(MAX(ea0, eb0)));
            return false;
        }
    }
    const bool write = ((a->access | b->access) & KERNEL_WRITE) != 0;
    const bool alias = (needs->alias[i] >> j & 1) || (needs->alias[j] >> i & 1);
    if (!write || (alias && a0 == b0) || a1 <= b0 || b1 <= a0) return true;
    diag_set(error, KERNEL_OVERLAP, name, i, j, MAX(a0, b0));
    return false;
}

bool kernel_bind(const struct kernel_spec *spec, const uint32_t *addresses,
                 uint32_t ret_registers[KERNEL_MAX_REGISTERS], uint32_t *ret_n, GError **error) {
    struct kernel_needs needs;
    if (!kernel_describe(spec, &needs, error)) return false;
    const struct kernel_row *row = &kernel_rows[spec->kernel];
    for (uint32_t i = 0; i < needs.n_operands; i++)
        if (!bind_check_operand(row->name, &needs.operand[i], i, addresses[i], error)) return false;
    for (uint32_t i = 0; i < needs.n_operands; i++)
        for (uint32_t j = i + 1; j < needs.n_operands; j++)
            if (!bind_check_pair(row->name, &needs, i, j, addresses, error)) return false;

    uint32_t registers[KERNEL_MAX_OPERANDS + KERNEL_MAX_REGISTERS], n = needs.n_operands;
    memcpy(registers, addresses, n * sizeof *registers);
    if (row->family->registers) n = row->family->registers(spec, addresses, registers);
    else if (row->family->scalars) n += row->family->scalars(spec, registers + n);
    BUG_ON(n > KERNEL_MAX_REGISTERS);
    for (uint32_t i = 0; i < n; i++) {
        if (registers[i] < 1u << 20) continue;
        diag_set(error, KERNEL_RANGE, row->name, i + 2, registers[i]);
        return false;
    }
    memcpy(ret_registers, registers, n * sizeof *registers);
    *ret_n = n;
    return true;
}

uint32_t kernel_n_registers(const struct kernel_spec *spec) {
    struct kernel_needs needs;
    const uint32_t addresses[KERNEL_MAX_OPERANDS] = {0};
    uint32_t values[KERNEL_MAX_REGISTERS];
    const bool ok = kernel_describe(spec, &needs, NULL);
    BUG_ON(!ok);
    const struct kernel_family *family = kernel_rows[spec->kernel].family;
    if (family->registers) return family->registers(spec, addresses, values);
    return needs.n_operands + (family->scalars ? family->scalars(spec, values) : 0);
}
