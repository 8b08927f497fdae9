/* The fault of a run as text and as JSON: what the device recorded, named with the package. */
#include "runtime/session_impl.h"

#include "isa/isa.h"
#include "target/target.h"

#include <string.h>

/* The step a fault belongs to: that of the program position; a fault in a kernel, a helper or a row
 * belongs to the last mark that the tile passed. */
static uint32_t fault_step(const struct session *s, const struct device_fault *f) {
    const uint32_t step = package_step_of_pc(s->p, f->tile, f->pc);
    uint32_t n;
    const struct device_mark *m = s->f->marks(s->d, f->tile, &n);
    const uint32_t first = s->p->first_mark[f->tile];
    if (n == 0) return step;
    const uint32_t last = first + m[n - 1].mark;
    return last < s->p->first_mark[f->tile + 1] ? s->p->marks[last].step : step;
}

/* The slot at word k of the window; its words. */
static uint32_t slot_text(const struct device_fault *f, uint32_t k, GString *out) {
    const uint32_t at = f->window_address + 4 * k;
    const uint32_t words = f->window[k] >> 31 && at % 8 == 0 && k + 1 < f->n_window ? 2 : 1;
    const struct isa_print options = {.mode = f->context == 0 ? ISA_MODE_S : ISA_MODE_W, .flag_names = true};
    struct isa_slot s;
    if (isa_slot_decode(f->window + k, words, at, &s) == ISA_SLOT_OK)
        isa_slot_print(out, &s, &options);
    else
        g_string_append_printf(out, ".word 0x%08x", f->window[k]);
    return words;
}

static const char *context_name(uint32_t context) {
    static const char *const names[] = {"supervisor", "worker 0", "worker 1", "worker 2",
                                        "worker 3", "worker 4", "worker 5"};
    return names[context];
}

/* --- Text. --- */

static void print_registers(const struct device_fault *f, GString *out) {
    const uint32_t n = f->context == 0 ? 16 : 24;
    for (uint32_t i = 0; i < n; i++) {
        g_string_append_printf(out, "%s%c%-2u ", i % 8 ? "  " : "\n  ", i < 16 ? 'm' : 'a', i % 16);
        if (f->defined >> i & 1)
            g_string_append_printf(out, "%08x", i < 16 ? f->registers[i] : f->a[i - 16]);
        else
            g_string_append(out, "--------");
    }
}

static void print_window(const struct device_fault *f, GString *out) {
    for (uint32_t k = 0; k < f->n_window;) {
        const uint32_t at = f->window_address + 4 * k;
        g_string_append_printf(out, "\n  %s 0x%05x  ", at == f->pc ? "=>" : "  ", at);
        k += slot_text(f, k, out);
    }
}

static void print_contexts(const struct session *s, const struct device_fault *f, GString *out) {
    for (uint32_t i = 0; i < TARGET_N_CONTEXTS; i++) {
        const struct device_context *c = &f->contexts[i];
        g_string_append_printf(out, "\n  %-10s %s", context_name(i), c->state);
        if (strcmp(c->state, "idle") == 0) continue;
        g_string_append_printf(out, ", cycle %" G_GUINT64_FORMAT ", pc 0x%x ", c->cycle, c->pc);
        if (c->pc != 0) package_symbolize(s->p, f->tile, c->pc, out);
    }
}

void session_fault_print(const struct session *s, GString *out) {
    const struct device_fault *f = s->f->fault(s->d);
    const struct package *p = s->p;
    if (f->kind == DEVICE_FAULT_NONE) {
        g_string_append(out, "no fault\n");
        return;
    }
    const uint32_t step = fault_step(s, f);
    g_string_append_printf(out, "device fault: %s\n", f->text);
    g_string_append_printf(out, "  kind       %s, %s (%u)\n", device_fault_kind_name(f->kind),
                           f->name, f->number);
    if (f->exception != NULL)
        g_string_append_printf(out, "  exception  %s, cause %u (%s)\n", f->exception, f->cause, f->cause_text);
    g_string_append_printf(out, "  tile       %u, %s", f->tile, context_name(f->context));
    g_string_append_printf(out, "\n  cycle      %" G_GUINT64_FORMAT "\n  pc         0x%x ",
                           f->cycle, f->pc);
    package_symbolize(p, f->tile, f->pc, out);
    if (f->address != UINT32_MAX) {
        g_string_append_printf(out, "\n  address    0x%x: ", f->address);
        package_owner_print(p, f->tile, f->address, step, out);
    }
    if (step != TG_NONE)
        g_string_append_printf(out, "\n  operation  %s (%s), step %u",
                               p->names[p->steps[step].operation],
                               p->names[p->steps[step].reason], step);
    else
        g_string_append(out, "\n  operation  none: the start or end of the tile runtime");
    g_string_append(out, "\ncode");
    print_window(f, out);
    g_string_append(out, "\nregisters");
    print_registers(f, out);
    g_string_append(out, "\ncontexts");
    print_contexts(s, f, out);
    g_string_append_printf(out, "\ntiles        %u run, %u wait in a barrier, %u are done\n", f->n_running,
                           f->n_waiting, f->n_done);
}

/* --- JSON. --- */

static void json_member(const char *name, const char *text, GString *out) {
    g_string_append_printf(out, ",\"%s\":", name);
    if (text != NULL)
        json_string(text, out);
    else
        g_string_append(out, "null");
}

static void json_place(const struct session *s, uint32_t tile, uint32_t pc, GString *out) {
    const struct package *p = s->p;
    const struct package_symbol *symbol = NULL;
    const struct package_line *line = NULL;
    GString *where = g_string_new(NULL);
    package_symbolize(p, tile, pc, where);
    const bool code = strncmp(where->str, "program", 7) != 0 && strncmp(where->str, "exchange", 8) != 0 &&
                      strncmp(where->str, "0x", 2) != 0;
    for (uint32_t i = 0; code && i < p->n_symbols && p->symbols[i].address <= pc; i++) symbol = &p->symbols[i];
    for (uint32_t i = 0; code && i < p->n_lines && p->lines[i].address <= pc; i++) line = &p->lines[i];
    g_string_append_printf(out, "\"pc\":%u", pc);
    json_member("where", where->str, out);
    json_member("symbol", symbol != NULL ? symbol->name : NULL, out);
    json_member("file", line != NULL ? p->names[line->file] : NULL, out);
    if (line != NULL)
        g_string_append_printf(out, ",\"line\":%u", line->line);
    else
        g_string_append(out, ",\"line\":null");
    g_string_free(where, true);
}

static void json_registers(const struct device_fault *f, GString *out) {
    g_string_append(out, ",\"registers\":{\"m\":[");
    for (uint32_t i = 0; i < 24; i++) {
        if (i == 16) g_string_append(out, "],\"a\":[");
        if (i == 16 && f->context == 0) break;
        if (i % 16 != 0) g_string_append_c(out, ',');
        if (f->defined >> i & 1)
            g_string_append_printf(out, "%u", i < 16 ? f->registers[i] : f->a[i - 16]);
        else
            g_string_append(out, "null");
    }
    g_string_append(out, "]}");
}

static void json_window(const struct device_fault *f, GString *out) {
    GString *text = g_string_new(NULL);
    g_string_append(out, ",\"window\":[");
    for (uint32_t k = 0; k < f->n_window;) {
        g_string_truncate(text, 0);
        g_string_append_printf(out, "%s{\"address\":%u,\"text\":", k ? "," : "", f->window_address + 4 * k);
        k += slot_text(f, k, text);
        json_string(text->str, out);
        g_string_append_c(out, '}');
    }
    g_string_append_c(out, ']');
    g_string_free(text, true);
}

static void json_contexts(const struct session *s, const struct device_fault *f, GString *out) {
    g_string_append(out, ",\"contexts\":[");
    for (uint32_t i = 0; i < TARGET_N_CONTEXTS; i++) {
        const struct device_context *c = &f->contexts[i];
        g_string_append_printf(out, "%s{\"context\":%u,\"name\":\"%s\",\"state\":\"%s\",\"cycle\":%" G_GUINT64_FORMAT
                               ",", i ? "," : "", i, context_name(i), c->state, c->cycle);
        json_place(s, f->tile, c->pc, out);
        g_string_append_c(out, '}');
    }
    g_string_append(out, "]");
}

static void json_address(const struct session *s, const struct device_fault *f, uint32_t step, GString *out) {
    if (f->address == UINT32_MAX) {
        g_string_append(out, ",\"address\":null,\"owner\":null");
        return;
    }
    GString *owner = g_string_new(NULL);
    package_owner_print(s->p, f->tile, f->address, step, owner);
    g_string_append_printf(out, ",\"address\":%u", f->address);
    json_member("owner", owner->str, out);
    g_string_free(owner, true);
}

void session_fault_json(const struct session *s, GString *out) {
    const struct device_fault *f = s->f->fault(s->d);
    const struct package *p = s->p;
    if (f->kind == DEVICE_FAULT_NONE) {
        g_string_append(out, "null");
        return;
    }
    const uint32_t step = fault_step(s, f);
    g_string_append_printf(out, "{\"number\":%u", f->number);
    json_member("name", f->name, out);
    json_member("kind", device_fault_kind_name(f->kind), out);
    json_member("text", f->text, out);
    json_member("exception", f->exception, out);
    if (f->exception != NULL)
        g_string_append_printf(out, ",\"cause\":%u", f->cause);
    else
        g_string_append(out, ",\"cause\":null");
    json_member("cause_text", f->exception != NULL ? f->cause_text : NULL, out);
    g_string_append_printf(out, ",\"tile\":%u,\"context\":%u", f->tile, f->context);
    json_member("context_name", context_name(f->context), out);
    g_string_append_c(out, ',');
    json_place(s, f->tile, f->pc, out);
    g_string_append_printf(out, ",\"cycle\":%" G_GUINT64_FORMAT, f->cycle);
    json_address(s, f, step, out);
    json_member("operation", step != TG_NONE ? p->names[p->steps[step].operation] : NULL, out);
    json_member("reason", step != TG_NONE ? p->names[p->steps[step].reason] : NULL, out);
    if (step != TG_NONE)
        g_string_append_printf(out, ",\"step\":%u", step);
    else
        g_string_append(out, ",\"step\":null");
    json_window(f, out);
    json_registers(f, out);
    json_contexts(s, f, out);
    g_string_append_printf(out, ",\"tiles\":{\"running\":%u,\"waiting\":%u,\"done\":%u}}", f->n_running,
                           f->n_waiting, f->n_done);
}
