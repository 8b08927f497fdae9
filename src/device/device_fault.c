/* What went wrong in the simulated machine, as one record. */
#include "device/device_impl.h"

#include <stdarg.h>
#include <string.h>

const char *device_fault_kind_name(enum device_fault_kind kind) {
    static const char *const name[] = {"none", "tile", "fabric", "deadlock", "sync", "limit"};
    return kind < ARRAY_LEN(name) ? name[kind] : "?";
}

static void take_registers(struct device_fault *f, const struct tile *t) {
    if (f->context == 0) {
        memcpy(f->registers, t->s.m, sizeof f->registers);
        f->defined = t->s.defined | 0xf000;
        return;
    }
    const struct tile_worker *w = &t->w[f->context - 1];
    memcpy(f->registers, w->m, sizeof f->registers);
    memcpy(f->a, w->a, sizeof f->a);
    f->defined = w->defined | 0xf000;
}

/* Half of the words before pc. */
static void take_window(struct device_fault *f, const struct tile *t) {
    const uint32_t half = DEVICE_FAULT_WINDOW / 2 * 4, pc = f->pc & ~7u;
    if (!sram_range_ok(pc, 8)) return;
    f->window_address = pc < TARGET_SRAM_BASE + half ? TARGET_SRAM_BASE : pc - half;
    f->n_window = MIN(DEVICE_FAULT_WINDOW, (TARGET_SRAM_END - f->window_address) / 4);
    memcpy(f->window, sram_at(t->sram, t->n, f->window_address), 4 * f->n_window);
}

static void take_contexts(struct device_fault *f, const struct tile *t) {
    static const char *const states[] = {"off", "runs", "sync 2", "sync", "row", "trap", "done"};
    const bool waits = t->s.state == TILE_SUPERVISOR_LOCAL || t->s.state == TILE_SUPERVISOR_SYNC;
    f->contexts[0] = (struct device_context){states[t->s.state], waits ? t->s.pc - 4 : t->s.pc, t->s.ready_cycle};
    for (uint32_t i = 0; i < TILE_N_WORKERS; i++) {
        const struct tile_worker *w = &t->w[i];
        f->contexts[i + 1] = (struct device_context){
            .state = w->active ? "runs" : w->slots != 0 ? "exited" : "idle",
            .pc = w->active || w->pc < 4 ? w->pc : w->pc - 4, /* exits are lone instructions */
            .cycle = w->active ? w->next_cycle : w->exit_cycle};
    }
    if (f->kind == DEVICE_FAULT_TILE) f->contexts[f->context].state = "fault";
}

static void count_tiles(struct device *d) {
    struct device_fault *f = &d->fault;
    for (uint32_t i = 0; i < d->options.n_tiles; i++) {
        const enum tile_stop_reason r = d->tiles[i].stop.reason;
        if (r == TILE_STOP_DONE) f->n_done++;
        else if (r == TILE_STOP_SYNC) f->n_waiting++;
        else f->n_running++;
    }
}

static void take_state(struct device *d) {
    const struct tile *t = &d->tiles[d->fault.tile];
    take_registers(&d->fault, t);
    take_window(&d->fault, t);
    take_contexts(&d->fault, t);
    count_tiles(d);
}

static void set_text(struct device *d, const char *text) {
    g_strlcpy(d->fault.text, text, sizeof d->fault.text);
    g_strchomp(d->fault.text);
}

void device_fault_of_tile(struct device *d, uint32_t tile) {
    const struct tile *t = &d->tiles[tile];
    const struct tile_fault *f = &t->fault;
    const struct tile_fault_info *info = tile_fault_info(f->number);
    d->fault = (struct device_fault){.kind = DEVICE_FAULT_TILE, .tile = tile,
                                     .context = f->context, .pc = f->pc, .number = f->number,
                                     .cycle = f->cycle, .name = info != NULL ? info->name : "?",
                                     .address = tile_fault_has_address(f) ? f->address : UINT32_MAX};
    d->fault.exception = tile_fault_exception(f, &d->fault.cause);
    d->fault.cause_text = tile_cause_text(d->fault.cause);
    take_state(d);
    GString *text = g_string_new(NULL);
    tile_fault_print(t, f, text);
    set_text(d, text->str);
    g_string_free(text, true);
}

void device_fault_of_fabric(struct device *d, const struct fabric_fault *f, uint64_t slot0) {
    const struct tile *t = &d->tiles[f->tile];
    d->fault = (struct device_fault){.kind = DEVICE_FAULT_FABRIC, .tile = f->tile,
                                     .pc = t->stop.pc, .number = fabric_conditions[f->what].number,
                                     .cycle = slot0 + f->slot,
                                     .name = fabric_conditions[f->what].id,
                                     .address = f->address != 0 ? f->address : UINT32_MAX};
    take_state(d);
    char *text = fabric_fault_text(f);
    set_text(d, text);
    g_free(text);
}

static const struct {
    enum device_fault_kind kind;
    uint32_t number;
    const char *name;
} CONDITIONS[] = {
#define DEVICE_FAULT(kind, number, name) {kind, number, name},
#include "device/device_fault.def"
#undef DEVICE_FAULT
};

/* At the limit the tile is where its earliest running context is. */
static void limit_place(struct device *d, const struct tile *t) {
    d->fault.pc = t->s.pc;
    const struct tile_worker *first = NULL;
    for (uint32_t i = 0; i < TILE_N_WORKERS; i++) {
        const struct tile_worker *w = &t->w[i];
        if (!w->active || (first != NULL && w->next_cycle >= first->next_cycle)) continue;
        first = w;
        d->fault.context = i + 1;
        d->fault.pc = w->pc;
    }
}

void device_fault_set(struct device *d, enum device_fault_kind kind, uint32_t tile,
                      const char *format, ...) {
    const struct tile *t = &d->tiles[tile];
    d->fault = (struct device_fault){.kind = kind, .tile = tile, .pc = t->stop.pc,
                                     .cycle = t->stop.cycle, .address = UINT32_MAX};
    if (kind == DEVICE_FAULT_TILE) { /* a trap: the only stop of a supervisor that is no record */
        d->fault.number = TILE_FAULT_TRAP;
        d->fault.name = tile_fault_info(TILE_FAULT_TRAP)->name;
        d->fault.exception = t->stop.zone & 1 ? "PBRK1" : "PBRK0";
        d->fault.cause = 2 + (t->stop.zone & 1);
        d->fault.cause_text = tile_cause_text(d->fault.cause);
    }
    for (uint32_t i = 0; i < ARRAY_LEN(CONDITIONS); i++)
        if (CONDITIONS[i].kind == kind) {
            d->fault.number = CONDITIONS[i].number;
            d->fault.name = CONDITIONS[i].name;
        }
    if (kind == DEVICE_FAULT_LIMIT) limit_place(d, t);
    take_state(d);
    va_list args;
    va_start(args, format);
    char *text = g_strdup_vprintf(format, args);
    va_end(args);
    set_text(d, text);
    g_free(text);
}
