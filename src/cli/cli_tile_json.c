/* What tile-run reports as JSON: places, faults, contexts, registers. docs/tile.md has the schema. */
#include "cli/cli_tile.h"

#include <stdio.h>

void cli_tile_json_int(JsonBuilder *b, const char *name, uint64_t v) {
    json_builder_set_member_name(b, name);
    json_builder_add_int_value(b, (gint64)v);
}

void cli_tile_json_text(JsonBuilder *b, const char *name, const char *v) {
    json_builder_set_member_name(b, name);
    if (v != NULL)
        json_builder_add_string_value(b, v);
    else
        json_builder_add_null_value(b);
}

static void json_null(JsonBuilder *b, const char *name) {
    json_builder_set_member_name(b, name);
    json_builder_add_null_value(b);
}

void cli_tile_json_place(JsonBuilder *b, const struct cli_tile *c, uint32_t pc) {
    const struct isa_image_symbol *s = isa_image_at(c->image, pc);
    const char *file = NULL;
    const uint32_t line = isa_image_line(c->image, pc, &file);
    cli_tile_json_int(b, "pc", pc);
    cli_tile_json_text(b, "symbol", s != NULL ? s->name : NULL);
    cli_tile_json_int(b, "offset", s != NULL ? pc - s->address : 0);
    cli_tile_json_text(b, "file", file);
    if (file != NULL)
        cli_tile_json_int(b, "line", line);
    else
        json_null(b, "line");
}

static void json_file(JsonBuilder *b, const char *name, const uint32_t *r, uint32_t n, uint32_t defined) {
    json_builder_set_member_name(b, name);
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < n; i++)
        if (defined >> i & 1)
            json_builder_add_int_value(b, r[i]);
        else
            json_builder_add_null_value(b);
    json_builder_end_array(b);
}

void cli_tile_json_registers(JsonBuilder *b, const struct cli_tile *c, uint32_t context) {
    const struct tile *t = &c->tile;
    json_builder_set_member_name(b, "registers");
    json_builder_begin_object(b);
    if (context == 0) {
        json_file(b, "m", t->s.m, 16, t->s.defined | 0xf000);
    } else {
        const struct tile_worker *w = &t->w[context - 1];
        json_file(b, "m", w->m, 16, (w->defined & 0xffff) | 0xf000);
        json_file(b, "a", w->a, 8, w->defined >> 16);
        cli_tile_json_int(b, "fp_ctl", w->fp_ctl);
        cli_tile_json_int(b, "fp_sts", w->fp_sts);
        if (w->tas_defined)
            cli_tile_json_int(b, "tas", w->tas);
        else
            json_null(b, "tas");
        cli_tile_json_int(b, "repeat", w->repeat_count);
    }
    json_builder_end_object(b);
}

static void json_window(JsonBuilder *b, const struct cli_tile *c, uint32_t pc, uint32_t context) {
    uint32_t at[CLI_TILE_WINDOW];
    const uint32_t n = cli_tile_window_at(c, pc, 4, 3, at);
    json_builder_set_member_name(b, "window");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < n; i++) {
        GString *text = g_string_new(NULL);
        cli_tile_slot(c, at[i], cli_tile_window_context(c, pc, at[i], context), text);
        json_builder_begin_object(b);
        cli_tile_json_int(b, "address", at[i]);
        cli_tile_json_text(b, "text", text->str);
        json_builder_end_object(b);
        g_string_free(text, true);
    }
    json_builder_end_array(b);
}

/* "address", "owner": null where the fault has none. */
static void json_address(JsonBuilder *b, const struct cli_tile *c, const struct tile_fault *f) {
    if (!tile_fault_has_address(f)) {
        json_null(b, "address");
        json_null(b, "owner");
        return;
    }
    GString *text = g_string_new(NULL);
    cli_tile_owner(c, f->address, text);
    cli_tile_json_int(b, "address", f->address);
    cli_tile_json_text(b, "owner", text->str);
    g_string_free(text, true);
}

void cli_tile_json_fault(JsonBuilder *b, const struct cli_tile *c) {
    const struct tile_fault *f = &c->tile.fault;
    json_builder_set_member_name(b, "fault");
    if (f->number == TILE_FAULT_NONE) {
        json_builder_add_null_value(b);
        return;
    }
    GString *where = g_string_new(NULL), *operation = g_string_new(NULL), *text = g_string_new(NULL);
    cli_tile_where(c, f->pc, where);
    cli_tile_where(c, c->entry_pc, operation);
    tile_fault_print(&c->tile, f, text);
    json_builder_begin_object(b);
    cli_tile_json_int(b, "number", f->number);
    cli_tile_json_text(b, "name", tile_fault_info(f->number)->name);
    cli_tile_json_text(b, "text", text->str);
    uint32_t cause;
    cli_tile_json_text(b, "exception", tile_fault_exception(f, &cause));
    if (cause != 0)
        cli_tile_json_int(b, "cause", cause);
    else
        json_null(b, "cause");
    cli_tile_json_text(b, "cause_text", cause != 0 ? tile_cause_text(cause) : NULL);
    cli_tile_json_int(b, "tile", c->tile.n);
    cli_tile_json_int(b, "context", f->context);
    cli_tile_json_text(b, "context_name", cli_tile_context_name(f->context));
    cli_tile_json_place(b, c, f->pc);
    cli_tile_json_text(b, "where", where->str);
    cli_tile_json_int(b, "cycle", f->cycle);
    json_address(b, c, f);
    cli_tile_json_int(b, "value", f->value);
    cli_tile_json_text(b, "operation", operation->str);
    json_window(b, c, f->pc, f->context);
    cli_tile_json_registers(b, c, f->context);
    json_builder_end_object(b);
    g_string_free(where, true);
    g_string_free(operation, true);
    g_string_free(text, true);
}

void cli_tile_json_contexts(JsonBuilder *b, const struct cli_tile *c) {
    json_builder_set_member_name(b, "contexts");
    json_builder_begin_array(b);
    for (uint32_t k = c->supervisor ? 0 : 1; k < TILE_N_CONTEXTS; k++) {
        const bool ran = k == 0 || c->tile.w[k - 1].active || c->tile.w[k - 1].slots != 0;
        json_builder_begin_object(b);
        cli_tile_json_int(b, "context", k);
        cli_tile_json_text(b, "name", cli_tile_context_name(k));
        cli_tile_json_text(b, "state", cli_tile_context_state(c, k));
        if (ran) {
            cli_tile_json_int(b, "cycle", cli_tile_context_cycle(c, k));
            cli_tile_json_place(b, c, cli_tile_context_pc(c, k));
        }
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

void cli_tile_json_print(JsonBuilder *b) {
    JsonNode *root = json_builder_get_root(b);
    char *text = json_to_string(root, true);
    printf("%s\n", text);
    g_free(text);
    json_node_unref(root);
    g_object_unref(b);
}
