/* Faults: recording, the table of texts, the status words of the debug interface. */
#include "tile/tile_exec.h"

static const struct tile_fault_info INFO[TILE_FAULT_LIMIT] = {
#define TILE_FAULT(number, name, etype, cause, text) [number] = {#name, text, etype, cause},
#include "tile/tile_fault.def"
#undef TILE_FAULT
};

const struct tile_fault_info *tile_fault_info(enum tile_fault_number number) {
    if ((uint32_t)number >= TILE_FAULT_LIMIT || INFO[number].name == NULL) return NULL;
    return &INFO[number];
}

/* --- The names of the hardware (isa 1.10). --- */

#define CAUSE(number, text)
#define ETYPE(value, name) [value] = #name,
static const char *const ETYPES[16] = {
#include "tile/tile_exception.def"
};
#undef CAUSE
#undef ETYPE
#define ETYPE(value, name)
#define CAUSE(number, text) [number] = text,
static const char *const CAUSES[] = {
#include "tile/tile_exception.def"
};
#undef CAUSE
#undef ETYPE

const char *tile_cause_text(uint32_t cause) {
    return cause < ARRAY_LEN(CAUSES) && CAUSES[cause] != NULL ? CAUSES[cause] : "";
}

static uint32_t etype_of_fault(const struct tile_fault *f) {
    if (f->number == TILE_FAULT_TRAP) return f->value & 1 ? 3 : 2;
    return f->number < TILE_FAULT_LIMIT ? INFO[f->number].etype : 0;
}

/* Causes of accesses are numbered by address, those of traps by the operand; tile memory that cannot be
 * executed has its own. */
static uint32_t cause_of_fault(const struct tile_fault *f) {
    switch (f->number) {
    case TILE_FAULT_TRAP: return etype_of_fault(f);
    case TILE_FAULT_PC_RANGE: return sram_range_ok(f->pc, 4) ? 76 : INFO[f->number].cause;
    case TILE_FAULT_RUN_ENTRY: return sram_range_ok(f->address, 4) ? 73 : INFO[f->number].cause;
    case TILE_FAULT_ADDRESS_RANGE:
    case TILE_FAULT_ADDRESS_MISALIGNED:
    case TILE_FAULT_ADDRESS_CARRY:
    case TILE_FAULT_ELEMENT_CONFLICT: return INFO[f->number].cause + f->ea;
    default: return f->number < TILE_FAULT_LIMIT ? INFO[f->number].cause : 0;
    }
}

const char *tile_fault_exception(const struct tile_fault *f, uint32_t *ret_cause) {
    const uint32_t etype = etype_of_fault(f);
    *ret_cause = etype != 0 ? cause_of_fault(f) : 0;
    return etype != 0 ? ETYPES[etype] : NULL;
}

bool tile_fault_has_address(const struct tile_fault *f) {
    switch (f->number) {
    case TILE_FAULT_FETCH_UNWRITTEN:
    case TILE_FAULT_REPEAT_BODY:
    case TILE_FAULT_REPEAT_END:
    case TILE_FAULT_RUN_ENTRY:
    case TILE_FAULT_RUN_ENTRY_MISALIGNED:
    case TILE_FAULT_RUN_BASE:
    case TILE_FAULT_RACE_WRITE_WRITE:
    case TILE_FAULT_RACE_READ_WRITE: return true;
    default: return f->number >= TILE_FAULT_ADDRESS_RANGE && f->number <= TILE_FAULT_CCCS_MISALIGNED;
    }
}

/* In permissive mode execution goes on where a sensible continuation exists: an access outside
 * SRAM reads 0 and writes nothing, everything else has its plain meaning. */
static bool can_go_on(enum tile_fault_number n) {
    switch (n) {
    case TILE_FAULT_FETCH_UNWRITTEN:
    case TILE_FAULT_END_WORKERS:
    case TILE_FAULT_WEIGHTS_BUSY:
    case TILE_FAULT_SYNC_WORKERS: return true;
    default: return (n >= TILE_FAULT_ADDRESS_RANGE && n <= TILE_FAULT_CCCS_MISALIGNED) ||
                    (n >= TILE_FAULT_READ_UNDEFINED && n <= TILE_FAULT_TAS_UNDEFINED) ||
                    n >= TILE_FAULT_FP_INVALID;
    }
}

bool tile_raise(struct tile_exec *e, enum tile_fault_number number, uint32_t address,
                uint32_t value) {
    if (e->t->config->permissive && can_go_on(number)) {
        e->t->counters.faults[number]++;
        return false;
    }
    if (e->fault != TILE_FAULT_NONE) return true; /* the first one counts */
    e->fault = number;
    e->fault_address = address;
    e->fault_value = value;
    e->fault_ea = e->ea;
    return true;
}

void tile_fp_flags(struct tile_exec *e, uint32_t flags) {
    if (flags == 0) return;
    e->w->fp_sts |= flags;
    const uint32_t enabled = flags & e->w->fp_ctl;
    if (enabled & NUM_INV) tile_raise(e, TILE_FAULT_FP_INVALID, 0, flags);
    if (enabled & NUM_DIV0) tile_raise(e, TILE_FAULT_FP_DIV0, 0, flags);
    if (enabled & NUM_OFLO) tile_raise(e, TILE_FAULT_FP_OVERFLOW, 0, flags);
}

static uint32_t word_at(const struct tile *t, uint32_t pc) {
    uint32_t w = 0;
    if (pc % 4 == 0 && sram_range_ok(pc, 4)) memcpy(&w, t->bytes + (pc - TARGET_SRAM_BASE), 4);
    return w;
}

void tile_stop_fault(struct tile_exec *e) {
    struct tile *t = e->t;
    const uint32_t word0 = word_at(t, e->pc);
    t->fault = (struct tile_fault){.number = e->fault,
                                   .context = e->context,
                                   .pc = e->pc,
                                   .ea = e->fault_ea,
                                   .cycle = e->cycle,
                                   .address = e->fault_address,
                                   .value = e->fault_value,
                                   .words = {word0, word0 >> 31 ? word_at(t, e->pc + 4) : 0}};
    t->stop = (struct tile_stop){.reason = TILE_STOP_FAULT, .pc = e->pc, .cycle = e->cycle};
}

static void print_detail(const struct tile_fault *f, GString *out) {
    switch (f->number) {
    case TILE_FAULT_READ_UNDEFINED:
        g_string_append_printf(out, " ($%c%u)", f->value < 16 ? 'm' : 'a', f->value % 16);
        break;
    case TILE_FAULT_CSR_INVALID:
    case TILE_FAULT_CSR_READ_ONLY:
        g_string_append_printf(out, " (register 0x%x)", f->value);
        break;
    case TILE_FAULT_RACE_WRITE_WRITE:
    case TILE_FAULT_RACE_READ_WRITE:
        g_string_append_printf(out, " (address 0x%x, with ", f->address);
        if (f->value == 0)
            g_string_append(out, "the supervisor)");
        else
            g_string_append_printf(out, "worker %u)", f->value - 1);
        break;
    case TILE_FAULT_ELEMENT_CONFLICT:
        g_string_append_printf(out, " (addresses 0x%x and 0x%x)", f->value, f->address);
        break;
    case TILE_FAULT_ADDRESS_RANGE:
    case TILE_FAULT_ADDRESS_MISALIGNED:
    case TILE_FAULT_ADDRESS_REGION:
    case TILE_FAULT_WRITE_UNALLOCATED:
        g_string_append_printf(out, " (address 0x%x, %u bytes)", f->address, f->value);
        break;
    case TILE_FAULT_DEADLOCK:
    case TILE_FAULT_SANS_ACTIVE:
    case TILE_FAULT_SYNC_WORKERS:
        g_string_append_printf(out, " (zone %u)", f->value);
        break;
    case TILE_FAULT_SYNC_ZONE:
    case TILE_FAULT_TRAP:
    case TILE_FAULT_CCCS_INDEX: g_string_append_printf(out, " (%u)", f->value); break;
    default:
        if (tile_fault_has_address(f)) g_string_append_printf(out, " (address 0x%x)", f->address);
    }
}

void tile_fault_print(const struct tile *t, const struct tile_fault *f, GString *out) {
    const struct tile_fault_info *info = tile_fault_info(f->number);
    g_string_append_printf(out, "tile %u, ", t->n);
    if (f->context == 0)
        g_string_append(out, "supervisor");
    else
        g_string_append_printf(out, "worker %u", f->context - 1);
    g_string_append_printf(out, ", pc 0x%x, cycle %" G_GUINT64_FORMAT ": fault %u %s: %s", f->pc,
                           f->cycle, (uint32_t)f->number, info ? info->name : "?",
                           info ? info->text : "?");
    print_detail(f, out);
}

static uint32_t etype_of(const struct tile *t, uint32_t context) {
    if (context == 0 && t->s.state == TILE_SUPERVISOR_TRAP) return t->stop.zone & 1 ? 3 : 2;
    if (t->stop.reason != TILE_STOP_FAULT || t->fault.context != context) return 0;
    return etype_of_fault(&t->fault);
}

uint32_t tile_context_status(const struct tile *t, uint32_t context) {
    const uint32_t low = context == 0 ? t->s.ssr : t->w[context - 1].wsr, etype = etype_of(t, context);
    const bool repeats = context != 0 && etype != 0 && t->w[context - 1].repeat_count != 0;
    return (low & ~0xf0u) | etype << 4 | (repeats ? 0x200u : 0); /* ERPT: isa 1.4 */
}

/* 0 inactive or waiting, 1 active, 2 stopped by a debug exception, 3 by another one. */
static uint32_t context_state(const struct tile *t, uint32_t context) {
    const uint32_t etype = etype_of(t, context);
    if (etype >= 1 && etype <= 4) return 2;
    if (t->stop.reason == TILE_STOP_FAULT && t->fault.context == context) return 3;
    /* A launch of all makes the workers that are still active fault too (isa 1.5). */
    const bool launched = t->stop.reason == TILE_STOP_FAULT && t->fault.number == TILE_FAULT_RUN_ACTIVE && t->s.ssr & 8;
    if (context != 0) return t->w[context - 1].active ? (launched ? 3 : 1) : 0;
    if (t->s.state == TILE_SUPERVISOR_DONE) return 3; /* invalid PC: isa 7.3 */
    return t->s.state == TILE_SUPERVISOR_RUNS || t->s.state == TILE_SUPERVISOR_ROW;
}

uint32_t tile_ctxt_sts(const struct tile *t) {
    uint32_t v = 0;
    for (uint32_t c = 0; c < TILE_N_CONTEXTS; c++) v |= context_state(t, c) << 2 * c;
    return v;
}
