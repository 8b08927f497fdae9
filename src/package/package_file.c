/* Packages as sealed SQLite files. Tables for what people query, arrays for what is large:
 *
 *   meta(key, value)                    description, counts, predicted cycles
 *   name(id, text)                      operations, reasons, kernels, files, tensors
 *   step(id, kind, operation, reason, count, horizon, transfers, messages, endpoint_bound, bound,
 *        row_bytes_max, row_bytes_tile, words)
 *                                       kind: 0 exchange, 1 compute, 2 repeat begin, 3 repeat end
 *   binding(id, name, kind, format, scale, shape, bound, first_slice, end_slice, has_data)
 *                                       kind: 0 input, 1 output, 2 parameter, 3 result; shape: "2,3"
 *   symbol(id, address, bytes, name), line(id, address, line, file)
 *   arrays  image; first_segment, segments; slices; first_mark, marks; end_pc; sample_address;
 *           first_owner, owners (the structs of package.h, little-endian); parameter/NAME
 */
#include "base/container.h"
#include "package/package.h"
#include "target/target.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(G_BYTE_ORDER == G_LITTLE_ENDIAN, "structs are stored as they are");
_Static_assert(sizeof(struct package_slice) == 104, "no padding in stored structs");
_Static_assert(sizeof(struct package_mark) == 32, "no padding in stored structs");
_Static_assert(sizeof(struct package_owner) == 24, "no padding in stored structs");
_Static_assert(sizeof(struct package_segment) == 16, "no padding in stored structs");

enum { MAX_ROWS = 1 << 22 };

static const char schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE step(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, operation INTEGER NOT NULL,"
    " reason INTEGER NOT NULL, count INTEGER NOT NULL, horizon INTEGER NOT NULL,"
    " transfers INTEGER NOT NULL, messages INTEGER NOT NULL, endpoint_bound INTEGER NOT NULL,"
    " bound INTEGER NOT NULL, row_bytes_max INTEGER NOT NULL, row_bytes_tile INTEGER NOT NULL,"
    " words INTEGER NOT NULL);"
    "CREATE TABLE binding(id INTEGER PRIMARY KEY, name TEXT NOT NULL, kind INTEGER NOT NULL,"
    " format INTEGER NOT NULL, scale INTEGER NOT NULL, shape TEXT NOT NULL,"
    " bound INTEGER NOT NULL, first_slice INTEGER NOT NULL, end_slice INTEGER NOT NULL, has_data INTEGER NOT NULL);"
    "CREATE TABLE symbol(id INTEGER PRIMARY KEY, address INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " name TEXT NOT NULL);"
    "CREATE TABLE line(id INTEGER PRIMARY KEY, address INTEGER NOT NULL, line INTEGER NOT NULL,"
    " file INTEGER NOT NULL);";

/* --- The description: one row per field, written and read by one list. --- */

enum meta_type { META_TEXT, META_U32, META_U64, META_BOOL };
static const struct meta_field {
    const char *key;
    enum meta_type type;
    size_t offset;
} meta_fields[] = {
#define FIELD(name, type) {#name, type, offsetof(struct package_meta, name)}
    FIELD(target, META_TEXT),
    FIELD(compiler, META_TEXT),
    FIELD(workload, META_TEXT),
    FIELD(isa_version, META_TEXT),
    FIELD(plan, META_TEXT),
    FIELD(n_tiles, META_U32),
    FIELD(n_active_tiles, META_U32),
    FIELD(entry, META_U32),
    FIELD(samples, META_BOOL),
    FIELD(cycles_predicted, META_U64),
    FIELD(exchange_cycles_predicted, META_U64),
    FIELD(peak_tile_bytes, META_U32),
    FIELD(peak_tile, META_U32),
    FIELD(row_bytes_max, META_U32),
    FIELD(program_bytes_max, META_U32),
#undef FIELD
};

static void write_meta(struct container *c, const struct package_meta *m) {
    for (uint32_t i = 0; i < ARRAY_LEN(meta_fields); i++) {
        const struct meta_field *f = &meta_fields[i];
        const char *at = (const char *)m + f->offset;
        if (f->type == META_TEXT) {
            const char *text;
            memcpy(&text, at, sizeof text);
            container_exec(c, "INSERT INTO meta VALUES(?,?)", "ss", f->key, text);
            continue;
        }
        uint64_t v = 0;
        memcpy(&v, at, f->type == META_U64 ? 8 : f->type == META_U32 ? 4 : sizeof(bool));
        container_exec(c, "INSERT INTO meta VALUES(?,?)", "si", f->key, (int64_t)v);
    }
}

static bool bad(struct container *c, const char *what, GError **error) {
    diag_set(error, PACKAGE_CONTENT, c->path, what);
    return false;
}

static bool read_meta(struct container *c, struct package *p, GError **error) {
    sqlite3_stmt *s = container_query(c, "SELECT value FROM meta WHERE key=?", error);
    if (s == NULL) return false;
    bool ok = true;
    for (uint32_t i = 0; ok && i < ARRAY_LEN(meta_fields); i++) {
        const struct meta_field *f = &meta_fields[i];
        char *at = (char *)&p->meta + f->offset;
        sqlite3_bind_text(s, 1, f->key, -1, SQLITE_STATIC);
        ok = container_step(c, s, error);
        if (!ok) {
            if (error == NULL || *error == NULL) bad(c, f->key, error);
        } else if (f->type == META_TEXT) {
            const char *text = (const char *)sqlite3_column_text(s, 0);
            text = arena_strdup(p->arena, text != NULL ? text : "");
            memcpy(at, &text, sizeof text);
        } else {
            const uint64_t v = (uint64_t)sqlite3_column_int64(s, 0);
            if (f->type == META_BOOL) *at = v != 0;
            else memcpy(at, &v, f->type == META_U64 ? 8 : 4);
            if (f->type != META_U64 && v > UINT32_MAX) ok = bad(c, f->key, error);
        }
        sqlite3_reset(s);
    }
    sqlite3_finalize(s);
    return ok;
}

/* --- Writing --- */

static char *shape_text(const struct package_binding *b) {
    GString *s = g_string_new(NULL);
    for (uint32_t d = 0; d < b->n_dims; d++)
        g_string_append_printf(s, "%s%u", d != 0 ? "," : "", b->shape[d]);
    return g_string_free(s, false);
}

static void write_tables(struct container *c, const struct package *p, bool no_parameters) {
    write_meta(c, &p->meta);
    for (uint32_t i = 0; i < p->n_names; i++)
        container_exec(c, "INSERT INTO name VALUES(?,?)", "is", (int64_t)i, p->names[i]);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct package_step *s = &p->steps[i];
        container_exec(c, "INSERT INTO step VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", "iiiiiiiiiiiii",
                       (int64_t)i, (int64_t)s->kind, (int64_t)s->operation, (int64_t)s->reason,
                       (int64_t)s->count, (int64_t)s->horizon, (int64_t)s->transfers,
                       (int64_t)s->messages, (int64_t)s->endpoint_bound, (int64_t)s->bound,
                       (int64_t)s->row_bytes_max, (int64_t)s->row_bytes_tile, (int64_t)s->words);
    }
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        char *shape = shape_text(b);
        container_exec(c, "INSERT INTO binding VALUES(?,?,?,?,?,?,?,?,?,?)", "isiiisiiii", (int64_t)i,
                       b->name, (int64_t)b->kind, (int64_t)b->format, (int64_t)b->scale, shape,
                       (int64_t)b->bound, (int64_t)b->first_slice, (int64_t)b->end_slice,
                       (int64_t)(b->data != NULL && !no_parameters));
        g_free(shape);
    }
    for (uint32_t i = 0; i < p->n_symbols; i++)
        container_exec(c, "INSERT INTO symbol VALUES(?,?,?,?)", "iiis", (int64_t)i,
                       (int64_t)p->symbols[i].address, (int64_t)p->symbols[i].bytes,
                       p->symbols[i].name);
    for (uint32_t i = 0; i < p->n_lines; i++)
        container_exec(c, "INSERT INTO line VALUES(?,?,?,?)", "iiii", (int64_t)i,
                       (int64_t)p->lines[i].address, (int64_t)p->lines[i].line,
                       (int64_t)p->lines[i].file);
}

static void write_arrays(struct container *c, const struct package *p, bool no_parameters) {
    const uint32_t n = p->meta.n_tiles;
#define PUT(name, count) container_array_put(c, #name, p->name, (uint64_t)(count) * sizeof *p->name)
    PUT(image, p->image_bytes);
    PUT(first_segment, n + 1);
    PUT(segments, p->first_segment[n]);
    PUT(slices, p->n_slices);
    PUT(first_mark, n + 1);
    PUT(marks, p->first_mark[n]);
    PUT(end_pc, n);
    PUT(first_owner, n + 1);
    PUT(owners, p->first_owner[n]);
    if (p->meta.samples) PUT(sample_address, n);
#undef PUT
    for (uint32_t i = 0; i < p->n_bindings && !no_parameters; i++) {
        const struct package_binding *b = &p->bindings[i];
        if (b->data == NULL) continue;
        char *name = g_strdup_printf("parameter/%s", b->name);
        container_array_put(c, name, b->data, b->data_bytes);
        g_free(name);
    }
}

bool package_write(struct package *p, const char *path, const struct package_write_options *o,
                   GError **error) {
    GError *inconsistent = NULL;
    if (!package_check(p, path, &inconsistent)) {
        g_printerr("%s\n", inconsistent->message);
        BUG_ON(true);
    }
    const bool no_parameters = o != NULL && o->no_parameters;
    struct container *c = container_new(path, PACKAGE_APPLICATION_ID, PACKAGE_SCHEMA, schema);
    write_tables(c, p, no_parameters);
    write_arrays(c, p, no_parameters);
    const bool ok = container_write(c, &p->file_bytes, error);
    container_free(c);
    return ok;
}

/* --- Reading --- */

/* Counts the rows of a table whose ids must be 0, 1, 2, ... */
static bool count_rows(struct container *c, const char *table, uint32_t *ret, GError **error) {
    char *sql = g_strdup_printf("SELECT count(*), coalesce(min(id),0), coalesce(max(id),-1) FROM %s",
                                table);
    sqlite3_stmt *s = container_query(c, sql, error);
    g_free(sql);
    if (s == NULL) return false;
    bool ok = container_step(c, s, error);
    if (ok) {
        const int64_t n = sqlite3_column_int64(s, 0);
        ok = n <= MAX_ROWS && sqlite3_column_int64(s, 1) == 0 &&
             sqlite3_column_int64(s, 2) == n - 1;
        *ret = (uint32_t)n;
        if (!ok) bad(c, table, error);
    }
    sqlite3_finalize(s);
    return ok;
}

static uint32_t column_u32(sqlite3_stmt *s, int i, bool *ok) {
    const int64_t v = sqlite3_column_int64(s, i);
    if (v < 0 || v > UINT32_MAX) *ok = false;
    return (uint32_t)v;
}

static const char *column_text(sqlite3_stmt *s, int i, struct arena *a) {
    const char *text = (const char *)sqlite3_column_text(s, i);
    return arena_strdup(a, text != NULL ? text : "");
}

static bool parse_shape(const char *text, struct package_binding *b) {
    b->n_dims = 0;
    while (*text != 0) {
        char *end;
        if (b->n_dims == PACKAGE_MAX_DIMS || !g_ascii_isdigit(*text)) return false;
        const guint64 v = g_ascii_strtoull(text, &end, 10);
        if (v > UINT32_MAX || (*end != 0 && *end != ',')) return false;
        b->shape[b->n_dims++] = (uint32_t)v;
        text = *end == ',' ? end + 1 : end;
    }
    return true;
}

typedef bool read_row(struct package *p, uint32_t i, sqlite3_stmt *s);

static bool read_name(struct package *p, uint32_t i, sqlite3_stmt *s) {
    p->names[i] = column_text(s, 0, p->arena);
    return true;
}

static bool read_step(struct package *p, uint32_t i, sqlite3_stmt *s) {
    bool ok = true;
    p->steps[i] = (struct package_step){
        .kind = column_u32(s, 0, &ok),     .operation = column_u32(s, 1, &ok),
        .reason = column_u32(s, 2, &ok),   .count = column_u32(s, 3, &ok),
        .horizon = column_u32(s, 4, &ok),  .transfers = column_u32(s, 5, &ok),
        .messages = column_u32(s, 6, &ok), .endpoint_bound = column_u32(s, 7, &ok),
        .bound = column_u32(s, 8, &ok),    .row_bytes_max = column_u32(s, 9, &ok),
        .row_bytes_tile = column_u32(s, 10, &ok),
        .words = (uint64_t)sqlite3_column_int64(s, 11)};
    return ok;
}

/* data_bytes follows from the shape; whether data are there is kept in `data` until read_data. */
static bool read_binding(struct package *p, uint32_t i, sqlite3_stmt *s) {
    struct package_binding *b = &p->bindings[i];
    bool ok = true;
    b->name = column_text(s, 0, p->arena);
    b->kind = column_u32(s, 1, &ok);
    b->format = column_u32(s, 2, &ok);
    const int64_t scale = sqlite3_column_int64(s, 3);
    ok = ok && scale >= -32 && scale <= 31;
    b->scale = (int32_t)scale;
    ok = parse_shape(column_text(s, 4, p->arena), b) && ok;
    b->bound = column_u32(s, 5, &ok);
    b->first_slice = column_u32(s, 6, &ok);
    b->end_slice = column_u32(s, 7, &ok);
    uint64_t n = package_format_bytes(b->format);
    for (uint32_t d = 0; ok && d < b->n_dims; d++) {
        ok = b->shape[d] != 0 && n <= (UINT64_C(1) << 38) / b->shape[d];
        if (ok) n *= b->shape[d];
    }
    b->data_bytes = n;
    b->data = sqlite3_column_int64(s, 8) != 0 ? (const uint8_t *)"" : NULL;
    return ok;
}

static bool read_symbol(struct package *p, uint32_t i, sqlite3_stmt *s) {
    bool ok = true;
    p->symbols[i] = (struct package_symbol){.address = column_u32(s, 0, &ok),
                                            .bytes = column_u32(s, 1, &ok),
                                            .name = column_text(s, 2, p->arena)};
    return ok;
}

static bool read_line(struct package *p, uint32_t i, sqlite3_stmt *s) {
    bool ok = true;
    p->lines[i] = (struct package_line){.address = column_u32(s, 0, &ok),
                                        .line = column_u32(s, 1, &ok),
                                        .file = column_u32(s, 2, &ok)};
    return ok;
}

static bool read_table(struct container *c, struct package *p, const char *sql, uint32_t n,
                       read_row *row, GError **error) {
    sqlite3_stmt *s = container_query(c, sql, error);
    if (s == NULL) return false;
    GError *broken = NULL;
    bool ok = true;
    uint32_t i = 0;
    while (ok && i < n && container_step(c, s, &broken)) ok = row(p, i++, s);
    sqlite3_finalize(s);
    if (broken != NULL) {
        g_propagate_error(error, broken);
        return false;
    }
    return ok && i == n ? true : bad(c, sql, error);
}

static bool read_tables(struct container *c, struct package *p, GError **error) {
#define COUNTED(table, count, array, type, sql, row)                                              \
    if (!count_rows(c, table, &p->count, error)) return false;                                    \
    p->array = arena_new_array(p->arena, type, p->count);                                         \
    if (!read_table(c, p, sql, p->count, row, error)) return false;
    COUNTED("name", n_names, names, const char *, "SELECT text FROM name ORDER BY id", read_name)
    COUNTED("step", n_steps, steps, struct package_step,
            "SELECT kind, operation, reason, count, horizon, transfers, messages, endpoint_bound,"
            " bound, row_bytes_max, row_bytes_tile, words FROM step ORDER BY id",
            read_step)
    COUNTED("binding", n_bindings, bindings, struct package_binding,
            "SELECT name, kind, format, scale, shape, bound, first_slice, end_slice, has_data"
            " FROM binding ORDER BY id",
            read_binding)
    COUNTED("symbol", n_symbols, symbols, struct package_symbol,
            "SELECT address, bytes, name FROM symbol ORDER BY id", read_symbol)
    COUNTED("line", n_lines, lines, struct package_line,
            "SELECT address, line, file FROM line ORDER BY id", read_line)
#undef COUNTED
    return true;
}

/* A CSR pair: first has n + 1 entries, the last of which is the number of elements. */
static bool read_csr(struct container *c, struct package *p, const char *first_name,
                     uint32_t **ret_first, const char *name, uint32_t element_bytes,
                     void *ret_data, GError **error) {
    const uint32_t n = p->meta.n_tiles;
    uint64_t count;
    if (!container_array_get(c, first_name, 4, n + 1, p->arena, ret_first, NULL, error) ||
        !container_array_get(c, name, element_bytes, (*ret_first)[n], p->arena, ret_data, &count,
                             error))
        return false;
    return true;
}

static bool read_parameters(struct container *c, struct package *p, GError **error) {
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        struct package_binding *b = &p->bindings[i];
        if (b->data == NULL) continue;
        if (b->kind != TG_BIND_PARAMETER) return bad(c, "values of a tensor of the host", error);
        char *name = g_strdup_printf("parameter/%s", b->name);
        void *data;
        const bool ok = container_array_get(c, name, 1, b->data_bytes, p->arena, &data, NULL,
                                            error);
        g_free(name);
        if (!ok) return false;
        b->data = data;
    }
    return true;
}

static bool read_arrays(struct container *c, struct package *p, GError **error) {
    const uint32_t n = p->meta.n_tiles;
    uint64_t n_slices;
    if (!container_array_get(c, "image", 1, UINT64_MAX, p->arena, &p->image, &p->image_bytes,
                             error) ||
        !read_csr(c, p, "first_segment", &p->first_segment, "segments", sizeof *p->segments,
                  &p->segments, error) ||
        !container_array_get(c, "slices", sizeof *p->slices, UINT64_MAX, p->arena, &p->slices,
                             &n_slices, error) ||
        !read_csr(c, p, "first_mark", &p->first_mark, "marks", sizeof *p->marks, &p->marks,
                  error) ||
        !container_array_get(c, "end_pc", 4, n, p->arena, &p->end_pc, NULL, error) ||
        !read_csr(c, p, "first_owner", &p->first_owner, "owners", sizeof *p->owners, &p->owners,
                  error))
        return false;
    if (n_slices > UINT32_MAX) return bad(c, "the number of slices", error);
    p->n_slices = (uint32_t)n_slices;
    if (p->meta.samples &&
        !container_array_get(c, "sample_address", 4, n, p->arena, &p->sample_address, NULL, error))
        return false;
    return read_parameters(c, p, error);
}

static struct package *read_container(struct container *c, GError **error) {
    struct package *p = package_new();
    bool ok = read_meta(c, p, error);
    if (ok && (p->meta.n_tiles == 0 || p->meta.n_tiles > TARGET_N_TILES))
        ok = bad(c, "the number of tiles", error);
    ok = ok && read_tables(c, p, error) && read_arrays(c, p, error) &&
         package_check(p, c->path, error);
    p->file_bytes = c->n_bytes;
    container_free(c);
    if (ok) return p;
    package_free(p);
    return NULL;
}

struct package *package_read(const char *path, GError **error) {
    struct container *c;
    if (!container_read(path, "package", PACKAGE_APPLICATION_ID, PACKAGE_SCHEMA, &c, error))
        return NULL;
    return read_container(c, error);
}

struct package *package_read_bytes(const uint8_t *bytes, size_t n, const char *path,
                                   GError **error) {
    struct container *c;
    if (!container_read_bytes(bytes, n, path, "package", PACKAGE_APPLICATION_ID, PACKAGE_SCHEMA, &c,
                              error))
        return NULL;
    return read_container(c, error);
}
