/* Problem files: JSON (plain or zstd) or a sealed container by content; written by the ending of the
 * path.
 *
 * Container: application id "exch", schema 2, one table phases(id, number, row_address, row_bytes,
 * n_iterations, flags, n_transfers, n_recipients, n_dependencies, name) and per phase the arrays
 * ID/source_tile, ID/source_address ... of struct exch_problem, little-endian. A reader checks
 * sizes and every index before a problem leaves this file.
 */
#include "exchange/exch_file.h"

#include "base/container.h"

#include <string.h>
#include <zstd.h>

enum { APPLICATION_ID = 0x65786368, SCHEMA = 2 };
#define MAX_PLAIN_BYTES (UINT64_C(4) << 30)
#define MAX_TRANSFERS   (UINT32_C(1) << 26)

struct exch_problem_set *exch_set_take(GPtrArray *phases, GArray *numbers) {
    struct exch_problem_set *set = g_new0(struct exch_problem_set, 1);
    set->n_phases = phases->len;
    set->phases = (struct exch_problem **)g_ptr_array_free(phases, FALSE);
    set->number = (uint32_t *)g_array_free(numbers, FALSE);
    return set;
}

void exch_problem_set_free(struct exch_problem_set *set) {
    if (set == NULL) return;
    for (uint32_t i = 0; i < set->n_phases; i++) exch_problem_free(set->phases[i]);
    g_free(set->phases);
    g_free(set->number);
    g_free(set);
}

/* --- The arrays of a problem, in one table for reading and writing --- */

struct array {
    const char *name;
    void **data;
    size_t item, n; /* bytes of an item, items */
    bool present;
};
enum { N_ARRAYS = 10 };

static void list_arrays(struct exch_problem *p, struct array a[N_ARRAYS]) {
    const size_t n = p->n_transfers, r = p->n_recipients;
    const size_t d = p->first_dependency != NULL ? p->first_dependency[n] : 0;
    const struct array all[N_ARRAYS] = {
        {"source_tile", (void **)&p->source_tile, 2, n, true},
        {"source_address", (void **)&p->source_address, 4, n, true},
        {"words", (void **)&p->words, 4, n, true},
        {"first_recipient", (void **)&p->first_recipient, 4, n + 1, true},
        {"recipient_tile", (void **)&p->recipient_tile, 2, r, true},
        {"recipient_address", (void **)&p->recipient_address, 4, r, true},
        {"width", (void **)&p->width, 1, n, p->width != NULL},
        {"source_stride", (void **)&p->source_stride, 4, n, p->source_stride != NULL},
        {"first_dependency", (void **)&p->first_dependency, 4, n + 1, p->first_dependency != NULL},
        {"dependency", (void **)&p->dependency, 4, d, p->first_dependency != NULL},
    };
    memcpy(a, all, sizeof all);
}

/* --- Container --- */

static char *array_name(uint32_t phase, const char *array) {
    return g_strdup_printf("%u/%s", phase, array);
}

static void write_phase(struct container *c, struct exch_problem *p, uint32_t id, uint32_t number) {
    const int64_t flags = p->split_long | (int64_t)p->unplaced << 1;
    const int64_t d = p->first_dependency != NULL ? p->first_dependency[p->n_transfers] : 0;
    container_exec(c, "INSERT INTO phases VALUES(?,?,?,?,?,?,?,?,?,?)", "iiiiiiiiis", (int64_t)id,
                   (int64_t)number, (int64_t)p->row_address, (int64_t)p->row_bytes,
                   (int64_t)p->n_iterations, flags, (int64_t)p->n_transfers,
                   (int64_t)p->n_recipients, d, p->name != NULL ? p->name : "");
    struct array a[N_ARRAYS];
    list_arrays(p, a);
    for (uint32_t i = 0; i < N_ARRAYS; i++) {
        if (!a[i].present) continue;
        char *name = array_name(id, a[i].name);
        container_array_put(c, name, *a[i].data, a[i].item * a[i].n);
        g_free(name);
    }
}

static const char schema_sql[] =
    "CREATE TABLE phases(id INTEGER PRIMARY KEY, number INTEGER NOT NULL,"
    " row_address INTEGER NOT NULL, row_bytes INTEGER NOT NULL, n_iterations INTEGER NOT NULL,"
    " flags INTEGER NOT NULL, n_transfers INTEGER NOT NULL, n_recipients INTEGER NOT NULL,"
    " n_dependencies INTEGER NOT NULL, name TEXT NOT NULL);";

static bool write_container(const char *path, const struct exch_problem_set *set, GError **error) {
    struct container *c = container_new(path, APPLICATION_ID, SCHEMA, schema_sql);
    for (uint32_t k = 0; k < set->n_phases; k++)
        write_phase(c, set->phases[k], k, set->number[k]);
    const bool ok = container_write(c, NULL, error);
    container_free(c);
    return ok;
}

static bool bad(struct container *c, const char *why, GError **error) {
    diag_set(error, EXCH_FILE, c->path, why);
    return false;
}

static bool has_array(struct container *c, uint32_t phase, const char *array) {
    char *name = array_name(phase, array);
    const bool found = container_array_has(c, name);
    g_free(name);
    return found;
}

/* Ranges first[0] = 0 .. first[n] = total, ascending. */
static bool ranges_ok(const uint32_t *first, uint32_t n, uint32_t total) {
    if (first[0] != 0 || first[n] != total) return false;
    for (uint32_t i = 0; i < n; i++)
        if (first[i] > first[i + 1]) return false;
    return true;
}

static bool read_arrays(struct container *c, uint32_t id, struct exch_problem *p, GError **error) {
    struct array a[N_ARRAYS];
    list_arrays(p, a);
    bool ok = true;
    for (uint32_t i = 0; i < N_ARRAYS && ok; i++) {
        if (!a[i].present) continue;
        char *name = array_name(id, a[i].name);
        ok = container_array_read(c, name, *a[i].data, a[i].item * a[i].n, error);
        g_free(name);
    }
    return ok;
}

/* Every index that the rest of the room relies on. */
static bool indices_ok(const struct exch_problem *p, uint32_t n_dependencies) {
    if (!ranges_ok(p->first_recipient, p->n_transfers, p->n_recipients)) return false;
    if (p->first_dependency != NULL &&
        !ranges_ok(p->first_dependency, p->n_transfers, n_dependencies))
        return false;
    for (uint32_t x = 0; x < p->n_transfers && p->width != NULL; x++)
        if (p->width[x] > EXCH_WIDTH_PAIRED) return false;
    return true;
}

/* The phase of the statement's row; *ret is set as soon as there is something to free. */
static bool read_phase(struct container *c, sqlite3_stmt *st, struct exch_problem **ret,
                       GError **error) {
    uint32_t v[9];
    for (int i = 0; i < 9; i++) {
        const int64_t value = sqlite3_column_int64(st, i);
        if (value < 0 || value > UINT32_MAX) return bad(c, "a number is out of range", error);
        v[i] = (uint32_t)value;
    }
    if (v[6] > MAX_TRANSFERS || v[7] > MAX_TRANSFERS || v[8] > MAX_TRANSFERS)
        return bad(c, "more transfers than any phase has", error);
    struct exch_problem *p = *ret = exch_problem_new(v[6], v[7]);
    p->row_address = v[2];
    p->row_bytes = v[3];
    p->n_iterations = v[4];
    p->split_long = v[5] & 1;
    p->unplaced = (v[5] & 2) != 0;
    const char *name = (const char *)sqlite3_column_text(st, 9);
    if (name != NULL && name[0] != 0) p->name = arena_strdup(p->arena, name);
    if (has_array(c, v[0], "width")) exch_problem_add_widths(p);
    if (has_array(c, v[0], "source_stride")) exch_problem_add_strides(p);
    if (v[8] != 0) {
        exch_problem_add_dependencies(p, v[8]);
        p->first_dependency[p->n_transfers] = v[8];
    }
    if (!read_arrays(c, v[0], p, error)) return false;
    return indices_ok(p, v[8]) || bad(c, "ranges or widths are wrong", error);
}

static bool read_phases(struct container *c, GPtrArray *phases, GArray *numbers, GError **error) {
    sqlite3_stmt *st = container_query(
        c, "SELECT id, number, row_address, row_bytes, n_iterations, flags, n_transfers,"
           " n_recipients, n_dependencies, name FROM phases ORDER BY id", error);
    if (st == NULL) return false;
    GError *broken = NULL;
    while (broken == NULL && container_step(c, st, &broken)) {
        struct exch_problem *p = NULL;
        const uint32_t number = (uint32_t)sqlite3_column_int64(st, 1);
        read_phase(c, st, &p, &broken);
        if (p == NULL) continue;
        g_ptr_array_add(phases, p);
        g_array_append_val(numbers, number);
    }
    sqlite3_finalize(st);
    if (broken != NULL) {
        g_propagate_error(error, broken);
        return false;
    }
    return phases->len != 0 || bad(c, "no phases", error);
}

static struct exch_problem_set *read_container(const char *path, const uint8_t *data, size_t size,
                                               GError **error) {
    struct container *c;
    if (!container_read_bytes(data, size, path, "exchange problem", APPLICATION_ID, SCHEMA, &c,
                              error))
        return NULL;
    GPtrArray *phases = g_ptr_array_new();
    GArray *numbers = g_array_new(FALSE, FALSE, 4);
    const bool ok = read_phases(c, phases, numbers, error);
    container_free(c);
    struct exch_problem_set *set = exch_set_take(phases, numbers);
    if (ok) return set;
    exch_problem_set_free(set);
    return NULL;
}

/* --- Both --- */

/* Decompresses a whole frame of known or unknown size, at most MAX_PLAIN_BYTES. */
static uint8_t *unzstd(const uint8_t *data, size_t size, size_t *ret_size) {
    ZSTD_DStream *z = ZSTD_createDStream();
    GByteArray *out = g_byte_array_new();
    ZSTD_inBuffer in = {data, size, 0};
    uint8_t *chunk = g_malloc(1 << 20);
    size_t rc = 1;
    while (in.pos < size && !ZSTD_isError(rc) && out->len < MAX_PLAIN_BYTES - (1 << 21)) {
        ZSTD_outBuffer o = {chunk, 1 << 20, 0};
        rc = ZSTD_decompressStream(z, &o, &in);
        g_byte_array_append(out, chunk, (guint)o.pos);
        if (!ZSTD_isError(rc) && in.pos == size && o.pos == o.size && rc != 0) {
            o.pos = 0; /* flush what the decoder still holds */
            rc = ZSTD_decompressStream(z, &o, &in);
            g_byte_array_append(out, chunk, (guint)o.pos);
        }
    }
    g_free(chunk);
    ZSTD_freeDStream(z);
    *ret_size = out->len;
    uint8_t *bytes = g_byte_array_free(out, FALSE);
    if (rc == 0) return bytes;
    g_free(bytes);
    return NULL;
}

struct exch_problem_set *exch_file_read(const char *path, GError **error) {
    uint8_t *data;
    size_t size;
    if (!file_read(path, 0, &data, &size, error)) return NULL;
    if (size >= 4 && memcmp(data, "\x28\xb5\x2f\xfd", 4) == 0) {
        size_t plain_size;
        uint8_t *plain = unzstd(data, size, &plain_size);
        g_free(data);
        if (plain == NULL) {
            diag_set(error, EXCH_FILE, path, "damaged zstd frame");
            return NULL;
        }
        data = plain;
        size = plain_size;
    }
    struct exch_problem_set *set;
    if (size >= 16 && memcmp(data, "SQLite format 3", 16) == 0)
        set = read_container(path, data, size, error);
    else set = exch_json_parse(path, data, size, error);
    g_free(data);
    return set;
}

bool exch_file_write(const char *path, const struct exch_problem_set *set, GError **error) {
    const bool zstd = g_str_has_suffix(path, ".json.zst");
    if (!zstd && !g_str_has_suffix(path, ".json")) return write_container(path, set, error);
    GString *text = exch_json_print(set);
    bool ok;
    if (zstd) {
        const size_t bound = ZSTD_compressBound(text->len);
        void *out = g_malloc(bound);
        const size_t n = ZSTD_compress(out, bound, text->str, text->len, 6);
        BUG_ON(ZSTD_isError(n));
        ok = file_write_atomic(path, out, n, error);
        g_free(out);
    } else {
        ok = file_write_atomic(path, text->str, text->len, error);
    }
    g_string_free(text, TRUE);
    return ok;
}
