/* What went wrong in the simulated machine, as one record. */
#include "device/device_impl.h"

#include <stdarg.h>
#include <string.h>

const char *device_fault_kind_name(enum device_fault_kind kind) {
    static const char *const name[] = {"none", "tile", "fabric", "deadlock", "sync", "limit"};
    return kind < ARRAY_LEN(name) ? name[kind] : "?";
}

static void take_registers(struct device *d, const uint32_t *m) {
    memcpy(d->fault.registers, m, sizeof d->fault.registers);
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
                                     .address = f->address != 0 ? f->address : UINT32_MAX};
    take_registers(d, f->context == 0 ? t->s.m : t->w[f->context - 1].m);
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
    take_registers(d, t->s.m);
    char *text = fabric_fault_text(f);
    set_text(d, text);
    g_free(text);
}

void device_fault_set(struct device *d, enum device_fault_kind kind, uint32_t tile,
                      const char *format, ...) {
    const struct tile *t = &d->tiles[tile];
    d->fault = (struct device_fault){.kind = kind, .tile = tile, .pc = t->stop.pc,
                                     .cycle = t->stop.cycle, .address = UINT32_MAX,
                                     .name = device_fault_kind_name(kind)};
    take_registers(d, t->s.m);
    va_list args;
    va_start(args, format);
    char *text = g_strdup_vprintf(format, args);
    va_end(args);
    set_text(d, text);
    g_free(text);
}
