/* Problem files: JSON (plain or zstd) or SQLite by content; written by the ending of the path.
 *
 * SQLite: application id "exch", user version 1, one table phases(number, name, row_address,
 * row_bytes, n_iterations, flags, n_transfers, n_recipients, n_dependencies) and one table
 * arrays(phase, name, part, crc, data): each array cut in parts of 4 MiB, zstd-compressed, with the
 * CRC-32 of the plain bytes. Written into memory first and put in place by one atomic file
 * replacement. A reader checks sizes, checksums and every index before a problem leaves this file.
 */
#include "exchange/exch_file.h"

#include <sqlite3.h>
#include <string.h>
#include <zstd.h>

enum { APPLICATION_ID = 0x65786368, SCHEMA = 1, PART_BYTES = 4 << 20 };
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

static uint32_t crc32_of(const uint8_t *data, size_t n) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (uint32_t k = 0; k < 8; k++) crc = crc & 1 ? UINT32_C(0xedb88320) ^ crc >> 1 : crc >> 1;
    }
    return ~crc;
}

/* --- SQLite --- */

static bool run(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool write_array(sqlite3 *db, uint32_t phase, const struct array *a) {
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "INSERT INTO arrays VALUES(?,?,?,?,?)", -1, &st, NULL) != SQLITE_OK)
        return false;
    const uint8_t *data = *a->data;
    const size_t bytes = a->item * a->n, bound = ZSTD_compressBound(PART_BYTES);
    void *out = g_malloc(bound);
    bool ok = true;
    for (size_t at = 0, part = 0; ok && (at < bytes || part == 0); at += PART_BYTES, part++) {
        const size_t n = MIN(bytes - at, (size_t)PART_BYTES);
        const size_t size = ZSTD_compress(out, bound, data + at, n, 3);
        ok = !ZSTD_isError(size);
        sqlite3_bind_int64(st, 1, phase);
        sqlite3_bind_text(st, 2, a->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 3, (sqlite3_int64)part);
        sqlite3_bind_int64(st, 4, crc32_of(data + at, n));
        sqlite3_bind_blob64(st, 5, out, size, SQLITE_TRANSIENT);
        ok = ok && sqlite3_step(st) == SQLITE_DONE && sqlite3_reset(st) == SQLITE_OK;
    }
    g_free(out);
    sqlite3_finalize(st);
    return ok;
}

static bool write_phase(sqlite3 *db, struct exch_problem *p, uint32_t index, uint32_t number) {
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "INSERT INTO phases VALUES(?,?,?,?,?,?,?,?,?,?)", -1, &st, NULL) !=
        SQLITE_OK)
        return false;
    const uint32_t values[] = {index,
                               number,
                               p->row_address,
                               p->row_bytes,
                               p->n_iterations,
                               p->split_long | (uint32_t)p->unplaced << 1,
                               p->n_transfers,
                               p->n_recipients,
                               p->first_dependency ? p->first_dependency[p->n_transfers] : 0};
    for (int i = 0; i < (int)ARRAY_LEN(values); i++) sqlite3_bind_int64(st, i + 1, values[i]);
    sqlite3_bind_text(st, 10, p->name != NULL ? p->name : "", -1, SQLITE_STATIC);
    bool ok = sqlite3_step(st) == SQLITE_DONE;
    sqlite3_finalize(st);
    struct array a[N_ARRAYS];
    list_arrays(p, a);
    for (uint32_t i = 0; i < N_ARRAYS && ok; i++)
        if (a[i].present) ok = write_array(db, index, &a[i]);
    return ok;
}

static const char schema_sql[] =
    "CREATE TABLE phases(id INTEGER PRIMARY KEY, number INTEGER, row_address INTEGER,"
    " row_bytes INTEGER, n_iterations INTEGER, flags INTEGER, n_transfers INTEGER,"
    " n_recipients INTEGER, n_dependencies INTEGER, name TEXT);"
    "CREATE TABLE arrays(phase INTEGER, name TEXT, part INTEGER, crc INTEGER, data BLOB,"
    " PRIMARY KEY(phase, name, part)) WITHOUT ROWID;";

static bool write_sqlite(const char *path, const struct exch_problem_set *set, GError **error) {
    sqlite3 *db = NULL;
    char *pragma = g_strdup_printf("PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN;",
                                   APPLICATION_ID, SCHEMA);
    bool ok = sqlite3_open(":memory:", &db) == SQLITE_OK && run(db, pragma) && run(db, schema_sql);
    g_free(pragma);
    for (uint32_t k = 0; k < set->n_phases && ok; k++)
        ok = write_phase(db, set->phases[k], k, set->number[k]);
    ok = ok && run(db, "COMMIT");
    sqlite3_int64 size = 0;
    unsigned char *image = ok ? sqlite3_serialize(db, "main", &size, 0) : NULL;
    if (image == NULL) {
        diag_set(error, FILE_WRITE, path, db != NULL ? sqlite3_errmsg(db) : "out of memory");
        ok = false;
    } else {
        ok = file_write_atomic(path, image, (size_t)size, error);
    }
    sqlite3_free(image);
    sqlite3_close(db);
    return ok;
}

static const char *read_part(sqlite3_stmt *st, uint8_t *to, size_t n) {
    const void *blob = sqlite3_column_blob(st, 1);
    const size_t size = (size_t)sqlite3_column_bytes(st, 1);
    if (blob == NULL) return "an array is missing";
    const size_t got = ZSTD_decompress(to, n, blob, size);
    if (ZSTD_isError(got) || got != n) return "an array is damaged";
    if (crc32_of(to, n) != (uint32_t)sqlite3_column_int64(st, 0)) return "a checksum is wrong";
    return NULL;
}

static const char *read_array(sqlite3 *db, uint32_t phase, const struct array *a) {
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "SELECT crc, data FROM arrays WHERE phase=? AND name=? AND part=?",
                           -1, &st, NULL) != SQLITE_OK)
        return "tables are missing";
    const size_t bytes = a->item * a->n;
    const char *why = NULL;
    for (size_t at = 0, part = 0; why == NULL && (at < bytes || part == 0);
         at += PART_BYTES, part++) {
        sqlite3_bind_int64(st, 1, phase);
        sqlite3_bind_text(st, 2, a->name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 3, (sqlite3_int64)part);
        why = sqlite3_step(st) == SQLITE_ROW
                  ? read_part(st, (uint8_t *)*a->data + at, MIN(bytes - at, (size_t)PART_BYTES))
                  : "an array is missing";
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    return why;
}

static bool has_array(sqlite3 *db, uint32_t phase, const char *name) {
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "SELECT 1 FROM arrays WHERE phase=? AND name=?", -1, &st, NULL) !=
        SQLITE_OK)
        return false;
    sqlite3_bind_int64(st, 1, phase);
    sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
    const bool found = sqlite3_step(st) == SQLITE_ROW;
    sqlite3_finalize(st);
    return found;
}

/* Ranges first[0] = 0 .. first[n] = total, ascending. */
static bool ranges_ok(const uint32_t *first, uint32_t n, uint32_t total) {
    if (first[0] != 0 || first[n] != total) return false;
    for (uint32_t i = 0; i < n; i++)
        if (first[i] > first[i + 1]) return false;
    return true;
}

static const char *read_phase(sqlite3 *db, sqlite3_stmt *st, struct exch_problem **ret) {
    int64_t v[9];
    for (int i = 0; i < 9; i++) {
        v[i] = sqlite3_column_int64(st, i);
        if (v[i] < 0 || v[i] > UINT32_MAX) return "a number is out of range";
    }
    if (v[6] > MAX_TRANSFERS || v[7] > MAX_TRANSFERS || v[8] > MAX_TRANSFERS)
        return "more transfers than any phase has";
    struct exch_problem *p = *ret = exch_problem_new((uint32_t)v[6], (uint32_t)v[7]);
    const uint32_t id = (uint32_t)v[0];
    p->row_address = (uint32_t)v[2];
    p->row_bytes = (uint32_t)v[3];
    p->n_iterations = (uint32_t)v[4];
    p->split_long = v[5] & 1;
    p->unplaced = (v[5] & 2) != 0;
    const unsigned char *name = sqlite3_column_text(st, 9);
    if (name != NULL && name[0] != 0) p->name = arena_strdup(p->arena, (const char *)name);
    if (has_array(db, id, "width")) exch_problem_add_widths(p);
    if (has_array(db, id, "source_stride")) exch_problem_add_strides(p);
    if (has_array(db, id, "first_dependency")) {
        exch_problem_add_dependencies(p, (uint32_t)v[8]);
        p->first_dependency[p->n_transfers] = (uint32_t)v[8];
    }
    struct array a[N_ARRAYS];
    list_arrays(p, a);
    for (uint32_t i = 0; i < N_ARRAYS; i++) {
        const char *why = a[i].present ? read_array(db, id, &a[i]) : NULL;
        if (why != NULL) return why;
    }
    if (!ranges_ok(p->first_recipient, p->n_transfers, p->n_recipients)) return "ranges are wrong";
    if (p->first_dependency != NULL &&
        !ranges_ok(p->first_dependency, p->n_transfers, (uint32_t)v[8]))
        return "ranges are wrong";
    for (uint32_t x = 0; x < p->n_transfers && p->width != NULL; x++)
        if (p->width[x] > EXCH_WIDTH_PAIRED) return "a width is wrong";
    return NULL;
}

static const char *check_header(sqlite3 *db) {
    int id = 0, version = 0;
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "PRAGMA application_id", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        id = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    if (sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &st, NULL) == SQLITE_OK &&
        sqlite3_step(st) == SQLITE_ROW)
        version = sqlite3_column_int(st, 0);
    sqlite3_finalize(st);
    if (id != APPLICATION_ID) return "another kind of database";
    return version == SCHEMA ? NULL : "another schema version";
}

static const char *read_phases(sqlite3 *db, GPtrArray *phases, GArray *numbers) {
    const char *why = check_header(db);
    if (why != NULL) return why;
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "SELECT * FROM phases ORDER BY id", -1, &st, NULL) != SQLITE_OK ||
        sqlite3_column_count(st) != 10) {
        sqlite3_finalize(st);
        return "tables are missing";
    }
    int rc;
    while (why == NULL && (rc = sqlite3_step(st)) == SQLITE_ROW) {
        struct exch_problem *p = NULL;
        why = read_phase(db, st, &p);
        const uint32_t number = (uint32_t)sqlite3_column_int64(st, 1);
        if (p != NULL) {
            g_ptr_array_add(phases, p);
            g_array_append_val(numbers, number);
        }
    }
    if (why == NULL && rc != SQLITE_DONE) why = "damaged database";
    sqlite3_finalize(st);
    if (why == NULL && phases->len == 0) why = "no phases";
    return why;
}

/* The size that the header of a database tells: page size at 16, pages at 28, big endian. */
static bool whole_database(const uint8_t *data, size_t size) {
    if (size < 100) return false;
    const size_t page = (size_t)data[16] << 8 | data[17];
    const size_t pages =
        (size_t)data[28] << 24 | (size_t)data[29] << 16 | (size_t)data[30] << 8 | data[31];
    return (page == 1 ? 65536 : page) * pages == size;
}

static struct exch_problem_set *read_sqlite(const char *path, uint8_t *data, size_t size,
                                            GError **error) {
    sqlite3 *db = NULL;
    GPtrArray *phases = g_ptr_array_new();
    GArray *numbers = g_array_new(FALSE, FALSE, 4);
    const char *why = NULL;
    if (!whole_database(data, size) || sqlite3_open(":memory:", &db) != SQLITE_OK ||
        sqlite3_deserialize(db, "main", data, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
        why = "damaged database";
    else why = read_phases(db, phases, numbers);
    sqlite3_close(db);
    struct exch_problem_set *set = exch_set_take(phases, numbers);
    if (why == NULL) return set;
    diag_set(error, EXCH_FILE, path, why);
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
        set = read_sqlite(path, data, size, error);
    else set = exch_json_parse(path, data, size, error);
    g_free(data);
    return set;
}

bool exch_file_write(const char *path, const struct exch_problem_set *set, GError **error) {
    const bool zstd = g_str_has_suffix(path, ".json.zst");
    if (!zstd && !g_str_has_suffix(path, ".json")) return write_sqlite(path, set, error);
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
