/* One run of the assembler, and its messages. */
#include "isa/isa_as.h"
#include "isa/isa_obj.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Messages. --- */

static void message_free(gpointer p) {
    struct isa_message *m = p;
    g_free(m->file);
    g_free(m->text);
    g_free(m->source);
    g_free(m);
}

void isa_messages_init(struct isa_messages *m) {
    *m = (struct isa_messages){.all = g_ptr_array_new_with_free_func(message_free)};
}

void isa_messages_clear(struct isa_messages *m) {
    g_ptr_array_free(m->all, true);
    *m = (struct isa_messages){0};
}

/* The same fault at the same place, as repetitions give it. */
static bool is_known(const struct isa_messages *m, const struct isa_message *message) {
    for (uint32_t i = 0; i < m->all->len; i++) {
        const struct isa_message *e = g_ptr_array_index(m->all, i);
        if (e->line == message->line && e->column == message->column && e->code == message->code &&
            message->line != 0 && strcmp(e->text, message->text) == 0 &&
            strcmp(e->file, message->file) == 0)
            return true;
    }
    return false;
}

/* UTF-8 without control characters, byte for byte, so that columns stay true. */
static char *printable(const char *text) {
    char *s = g_strdup(text);
    const char *bad;
    for (char *p = s; !g_utf8_validate(p, -1, &bad); p = (char *)(uintptr_t)bad)
        *(char *)(uintptr_t)bad = '?';
    for (char *p = s; *p != 0; p++)
        if (g_ascii_iscntrl(*p) && *p != '\t' && *p != '\n') *p = '?';
    return s;
}

void isa_messages_add(struct isa_messages *m, const struct isa_message *message) {
    if (is_known(m, message)) return;
    const bool error = message->severity == ISA_ERROR;
    m->n_errors += error;
    m->n_warnings += message->severity == ISA_WARNING;
    const uint32_t max = m->max_errors != 0 ? m->max_errors : 20;
    if (m->n_errors > max || m->all->len > 16 * max) return;
    struct isa_message *copy = g_new0(struct isa_message, 1);
    *copy = *message;
    copy->file = g_strdup(message->file);
    copy->text = printable(message->text);
    copy->source = message->source != NULL ? printable(message->source) : NULL;
    g_ptr_array_add(m->all, copy);
}

enum { SOURCE_BEFORE = 100, SOURCE_WIDTH = 200 };

/* Bytes of a character that take a place on the screen. */
static bool is_place(char ch) {
    return ((unsigned char)ch & 0xc0) != 0x80;
}

/* The source line with its tabs as they are, and carets under the place; of a long line the part
 * around it. */
static void print_source(const struct isa_message *m, GString *out) {
    const size_t n = strlen(m->source), at = MIN((size_t)m->column - 1, n);
    size_t from = n > SOURCE_WIDTH && at > SOURCE_BEFORE ? at - SOURCE_BEFORE : 0;
    while (from > 0 && !is_place(m->source[from])) from--;
    size_t to = MIN(n, from + SOURCE_WIDTH);
    while (to < n && !is_place(m->source[to])) to++;
    g_string_append_printf(out, "%5u | %s", m->line, from > 0 ? "..." : "");
    for (size_t i = from; i < to; i++) g_string_append_c(out, m->source[i]);
    g_string_append_printf(out, "%s\n      | %s", to < n ? "..." : "", from > 0 ? "   " : "");
    for (size_t i = from; i < at; i++)
        if (is_place(m->source[i])) g_string_append_c(out, m->source[i] == '\t' ? '\t' : ' ');
    g_string_append_c(out, '^');
    const size_t end = MIN(to, at + MAX(m->width, 1u));
    for (size_t i = at + 1; i < end; i++)
        if (is_place(m->source[i])) g_string_append_c(out, '~');
    g_string_append_c(out, '\n');
}

void isa_messages_print(const struct isa_messages *m, GString *out) {
    static const char *const severities[] = {"error", "warning", "note"};
    for (uint32_t i = 0; i < m->all->len; i++) {
        const struct isa_message *e = g_ptr_array_index(m->all, i);
        g_string_append(out, e->file);
        if (e->line != 0) g_string_append_printf(out, ":%u", e->line);
        if (e->column != 0) g_string_append_printf(out, ":%u", e->column);
        g_string_append_printf(out, ": %s: %s", severities[e->severity], e->text);
        if (e->code != 0) g_string_append_printf(out, " (E%u)", e->code);
        g_string_append_c(out, '\n');
        if (e->source != NULL && e->column != 0) print_source(e, out);
    }
    const uint32_t max = m->max_errors != 0 ? m->max_errors : 20;
    if (m->n_errors > max)
        g_string_append_printf(out, "%u further errors are not shown\n", m->n_errors - max);
}

/* `order` keeps notes behind the message they belong to. */
static void add_at(struct as *as, struct as_loc loc, enum isa_severity severity, uint32_t code,
                   const char *text, uint64_t order) {
    const bool known = loc.line != NULL;
    const struct isa_message m = {
        .severity = severity,
        .code = code,
        .file = known ? g_ptr_array_index(as->object->files, loc.line->file) : as->object->name,
        .line = known ? loc.line->number : 0,
        .column = known && loc.line->text != NULL ? loc.column + 1 : 0,
        .width = loc.width,
        .text = (char *)(uintptr_t)text,
        .source = known ? (char *)(uintptr_t)loc.line->text : NULL,
        .order = order};
    isa_messages_add(as->messages, &m);
}

enum { ERRORS_TO_STOP = 500, CHAIN_SHOWN = 4 };

/* Where the expansion or the file that holds the place was asked for; of long chains the innermost
 * frames and the outermost. */
static void report_chain(struct as *as, struct as_loc loc, uint64_t order) {
    const struct as_frame *f = loc.line != NULL ? loc.line->frame : NULL;
    for (uint32_t shown = 0; f != NULL; f = f->at.line->frame, shown++) {
        const bool outermost = f->at.line->frame == NULL;
        if (shown >= CHAIN_SHOWN && !outermost) continue;
        const uint32_t hidden = shown > CHAIN_SHOWN ? shown - CHAIN_SHOWN : 0;
        char *more = hidden != 0 ? g_strdup_printf(" (%u more between)", hidden) : g_strdup("");
        char *note = f->what != NULL ? g_strdup_printf("expanded from %s here%s", f->what, more)
                                     : g_strdup_printf("included from here%s", more);
        add_at(as, f->at, ISA_NOTE, 0, note, order);
        g_free(note);
        g_free(more);
    }
}

void as_report(struct as *as, struct as_loc loc, enum isa_severity severity, uint32_t code,
               const char *format, ...) {
    if (as->messages->n_errors >= ERRORS_TO_STOP) as->stop = true;
    va_list args;
    va_start(args, format);
    char *text = g_strdup_vprintf(format, args);
    va_end(args);
    const uint64_t place = loc.line != NULL ? (uint64_t)loc.line->order << 32 : 0;
    const uint64_t order = place | (uint64_t)as->messages->all->len;
    add_at(as, loc, severity, code, text, order);
    g_free(text);
    report_chain(as, loc, order);
}

/* --- Names. --- */

const char *as_suggest(struct as *as, const char *name, const char *const *names, size_t n) {
    if (as->messages->n_errors > 100) return "";
    char *text = isa_suggest(name, names, n);
    const char *copy = arena_strdup(as->arena, text);
    g_free(text);
    return copy;
}

uint32_t as_file(struct as *as, const char *name) {
    const gpointer known = g_hash_table_lookup(as->files, name);
    if (known != NULL) return GPOINTER_TO_UINT(known) - 1;
    g_ptr_array_add(as->object->files, g_strdup(name));
    g_hash_table_insert(as->files, arena_strdup(as->arena, name),
                        GUINT_TO_POINTER(as->object->files->len));
    return as->object->files->len - 1;
}

/* --- The user's SDK header. --- */

/* #define NAME number, also in parentheses; everything else is passed over. */
static void sdk_line(struct as *as, const char *line) {
    char name[128], value[64], *end;
    if (sscanf(line, " # define %127[A-Za-z0-9_] %63[()0-9a-fA-FxXuUlL ]", name, value) != 2)
        return;
    if (isa_flag_find(name, strlen(name)) < 0) return;
    const char *digits = value + strspn(value, "( ");
    const unsigned long v = strtoul(digits, &end, 0);
    if (end == digits || v > 255) return;
    g_hash_table_insert(as->sdk, arena_strdup(as->arena, name), GSIZE_TO_POINTER(v + 1));
}

static void read_sdk_header(struct as *as) {
    const char *text = as->options->sdk_header;
    if (text == NULL) return;
    as->sdk = g_hash_table_new(g_str_hash, g_str_equal);
    char **lines = g_strsplit(text, "\n", 0);
    for (char **l = lines; *l != NULL; l++) sdk_line(as, *l);
    g_strfreev(lines);
    const struct as_loc nowhere = {0};
    if (g_hash_table_size(as->sdk) == 0) as_error(as, nowhere, ISA_SDK_HEADER);
}

/* --- The run. --- */

static void as_begin(struct as *as, const char *filename) {
    as->arena = arena_new();
    as->object = isa_object_new(filename);
    as->object->hardware = as->options->target_hardware;
    as->symbols = g_hash_table_new(g_str_hash, g_str_equal);
    as->symbol_order = g_ptr_array_new();
    as->files = g_hash_table_new(g_str_hash, g_str_equal);
    as->macros = g_hash_table_new(g_str_hash, g_str_equal);
    as->sections = g_ptr_array_new();
    as->section_names = g_hash_table_new(g_str_hash, g_str_equal);
    as->section_stack = g_array_new(false, false, 2 * sizeof(struct as_section *));
    as->pending = g_ptr_array_new();
    as->local_back = g_hash_table_new(NULL, NULL);
    as->local_forward = g_hash_table_new(NULL, NULL);
    as->conds = g_array_new(false, false, sizeof(struct as_cond));
    as->mode = (uint8_t)as->options->mode;
    as->allow_operands = as->options->allow_invalid_operands;
    as->section = as_section_get(as, ".text", ISA_SECTION_ALLOC | ISA_SECTION_EXEC);
}

static void as_end(struct as *as) {
    for (uint32_t i = 0; i < as->sections->len; i++) {
        struct as_section *s = g_ptr_array_index(as->sections, i);
        g_array_free(s->items, true);
        g_array_free(s->fixups, true);
    }
    g_hash_table_destroy(as->symbols);
    g_ptr_array_free(as->symbol_order, true);
    g_hash_table_destroy(as->files);
    g_hash_table_destroy(as->macros);
    g_ptr_array_free(as->sections, true);
    g_hash_table_destroy(as->section_names);
    g_array_free(as->section_stack, true);
    g_ptr_array_free(as->pending, true);
    g_hash_table_destroy(as->local_back);
    g_hash_table_destroy(as->local_forward);
    g_array_free(as->conds, true);
    if (as->sdk != NULL) g_hash_table_destroy(as->sdk);
    arena_free(as->arena);
}

static int compare_messages(const void *a, const void *b) {
    const struct isa_message *x = *(struct isa_message *const *)a;
    const struct isa_message *y = *(struct isa_message *const *)b;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    return (x->severity > y->severity) - (x->severity < y->severity);
}

struct isa_object *isa_asm_source(const char *text, size_t length, const char *filename,
                                  const struct isa_asm_options *options,
                                  struct isa_messages *messages) {
    static const struct isa_asm_options plain = {0};
    const uint32_t errors_before = messages->n_errors;
    struct as as = {.options = options != NULL ? options : &plain, .messages = messages};
    as_begin(&as, filename);
    read_sdk_header(&as);
    as_push_text(&as, text, length, as_file(&as, filename), NULL);
    struct as_stmt stmt;
    while (as_next(&as, &stmt)) as_statement(&as, &stmt);
    if (as.in_bundle) as_error(&as, as.bundle_loc, ISA_BRACE, "'{' without '}'");
    as_second_pass(&as);
    if (as.options->listing != NULL) as_listing(&as, as.options->listing);
    g_ptr_array_sort(messages->all, compare_messages);
    struct isa_object *object = as.object;
    as_end(&as);
    if (messages->n_errors == errors_before) return object;
    isa_object_free(object);
    return NULL;
}
