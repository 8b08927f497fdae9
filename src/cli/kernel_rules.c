/* Every rule of every kernel: a call that breaks one is refused by the binding under the rule's name,
 * and the same call forced onto the tile model does not pass: it faults or, where no access breaks a rule
 * of the machine (operands overlap and one worker meets both), gives other results than the twin. Overlap
 * and a shared element may also do no harm to a shape, the latter when no two accesses of an instruction meet
 * (there is one that does for each kernel). */
#include "cli/kernel_run.h"

#include "cli/kernel_rules.h"

#include <stdio.h>
#include <string.h>

enum { BEYOND_ANY_PARAMETER = 0x7fffffff };

struct rules {
    const struct kernel_spec *spec;
    struct kernel_needs needs;
    uint32_t legal[KERNEL_MAX_OPERANDS];
    bool force; /* run them, too */
    bool verbose;
    struct kernel_rules_result *result;
};

static void rules_tell(const struct rules *r, const char *rule, const char *what) {
    if (!r->verbose) return;
    fprintf(stderr, "%s", kernel_name(r->spec->kernel));
    for (uint32_t i = 0; i < KERNEL_MAX_PARAMS && kernel_param_name(r->spec->kernel, i); i++)
        fprintf(stderr, "%c%d", i ? ',' : ' ', (int32_t)r->spec->p[i]);
    fprintf(stderr, ": rule %s: %s\n", rule, what);
}

/* --- Shapes. --- */

static void rules_shape(struct rules *r) {
    for (uint32_t i = 0; i < KERNEL_MAX_PARAMS; i++) {
        struct kernel_spec spec = *r->spec;
        spec.p[i] = BEYOND_ANY_PARAMETER;
        struct kernel_needs needs;
        g_autoptr(GError) error = NULL;
        const char *name = kernel_param_name(spec.kernel, i);
        r->result->refused++;
        if (!kernel_describe(&spec, &needs, &error) && error->code == DIAG_KERNEL_SHAPE &&
            strstr(error->message, "rule ") && (!name || strstr(error->message, name)))
            continue;
        r->result->unrefused++;
        rules_tell(r, "shape", error ? error->message : "accepted");
    }
}

/* --- Addresses. --- */

static void rules_forced(struct rules *r, const uint32_t *address, int code, const char *rule) {
    struct kernel_run_options options = {
        .seed = 3, .high = true, .n_addresses = r->needs.n_operands, .force = true, .races = true};
    memcpy(options.address, address, sizeof options.address);
    g_autoptr(GError) error = NULL;
    struct kernel_run *run = kernel_run_new(r->spec, &options, &error);
    if (!run) {
        r->result->unnoticed++;
        rules_tell(r, rule, error->message);
        return;
    }
    r->result->forced++;
    uint32_t wrong = 0, first;
    for (uint32_t i = 0; i < run->needs.n_operands; i++) wrong += kernel_run_wrong(run, i, &first);
    wrong += kernel_run_stray(run, &first);
    const bool separate = code == DIAG_KERNEL_SEPARATE;
    r->result->shared += separate;
    r->result->shared_faulted += separate && run->faulted;
    if (run->faulted) r->result->faulted++;
    else if (wrong) r->result->wrong++;
    else if (separate || code == DIAG_KERNEL_OVERLAP) r->result->harmless++;
    else {
        r->result->unnoticed++;
        rules_tell(r, rule, "the forced call passes");
    }
    kernel_run_free(run);
}

static void rules_address(struct rules *r, const uint32_t *address, int code, const char *rule) {
    uint32_t registers[KERNEL_MAX_REGISTERS], n;
    g_autoptr(GError) error = NULL;
    r->result->refused++;
    if (kernel_bind(r->spec, address, registers, &n, &error) || error->code != code) {
        r->result->unrefused++;
        rules_tell(r, rule, error ? error->message : "accepted");
        return;
    }
    if (r->force) rules_forced(r, address, code, rule);
}

static void rules_align(struct rules *r) {
    for (uint32_t i = 0; i < r->needs.n_operands; i++) {
        const struct kernel_operand *o = &r->needs.operand[i];
        if (o->align < 2 || o->bytes == 0) continue;
        uint32_t address[KERNEL_MAX_OPERANDS];
        memcpy(address, r->legal, sizeof address);
        address[i] += o->align > 4 ? 4 : o->align / 2;
        rules_address(r, address, DIAG_KERNEL_ALIGN, "align");
    }
}

/* Beyond the end of SRAM but for the first bytes; in region 0. */
static void rules_memory(struct rules *r) {
    for (uint32_t i = 0; i < r->needs.n_operands; i++) {
        const struct kernel_operand *o = &r->needs.operand[i];
        const uint32_t size = o->bytes + o->tail_bytes;
        if (o->bytes == 0) continue;
        uint32_t address[KERNEL_MAX_OPERANDS];
        memcpy(address, r->legal, sizeof address);
        address[i] = TARGET_SRAM_END - (o->bytes > o->align ? o->align : 0);
        rules_address(r, address, DIAG_KERNEL_MEMORY, "memory");
        if (o->memory != KERNEL_MEMORY_INTERLEAVED || size >= TARGET_ELEMENT_BYTES) continue;
        address[i] = TARGET_REGION1_BASE - TARGET_ELEMENT_BYTES;
        rules_address(r, address, DIAG_KERNEL_MEMORY, "memory");
    }
}

static bool rules_separate_bit(const struct kernel_needs *n, uint32_t i, uint32_t j) {
    return (n->separate[i] >> j & 1) || (n->separate[j] >> i & 1);
}

static void rules_pair(struct rules *r, uint32_t i, uint32_t j) {
    const struct kernel_operand *a = &r->needs.operand[i], *b = &r->needs.operand[j];
    const uint32_t align = MAX(a->align, b->align);
    uint32_t address[KERNEL_MAX_OPERANDS];
    memcpy(address, r->legal, sizeof address);
    if (rules_separate_bit(&r->needs, i, j)) {
        /* In either half of the interleaved words of 16 bytes. */
        const uint32_t behind = align_up_u32(r->legal[i] + a->bytes + a->tail_bytes, MAX(align, 16));
        for (uint32_t half = 0; half < (align < 16 ? 2 : 1); half++) {
            address[j] = behind + 8 * half;
            if (target_element(address[j]) == target_element(r->legal[i]))
                rules_address(r, address, DIAG_KERNEL_SEPARATE, "separate");
        }
        return;
    }
    if (!((a->access | b->access) & KERNEL_WRITE)) return;
    const bool alias = (r->needs.alias[i] >> j & 1) || (r->needs.alias[j] >> i & 1);
    const uint32_t shift = a->bytes > align ? align : 0;
    if (shift == 0 && alias) return;
    address[j] = r->legal[i] + shift;
    rules_address(r, address, DIAG_KERNEL_OVERLAP, "overlap");
}

void kernel_rules_check(const struct kernel_spec *spec, bool force, bool verbose,
                        struct kernel_rules_result *result) {
    struct rules r = {.spec = spec, .force = force, .verbose = verbose, .result = result};
    rules_shape(&r);
    const struct kernel_run_options options = {.seed = 3, .high = true};
    struct kernel_run *run = kernel_run_new(spec, &options, NULL);
    BUG_ON(!run);
    r.needs = run->needs;
    memcpy(r.legal, run->address, sizeof r.legal);
    kernel_run_free(run);
    rules_align(&r);
    rules_memory(&r);
    for (uint32_t i = 0; i < r.needs.n_operands; i++)
        for (uint32_t j = i + 1; j < r.needs.n_operands; j++) rules_pair(&r, i, j);
}
