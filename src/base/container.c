/* Sealed SQLite files. The database is built in memory, serialised, and its checksum is put at the
 * place of the seal found by its mark. Reading checks the seal over the whole file and hands the very
 * same bytes to SQLite, so nothing can change between check and use. The checksum finds damage; it is
 * no protection against someone who recomputes it, hence every value read is checked as well.
 * Cost: one pass over the file for the checksum, one for zstd. */
#include "base/container.h"

#include <stdarg.h>
#include <string.h>
#include <zstd.h>

enum { MARK_BYTES = 16, SEAL_BYTES = 24, PAGE_BYTES = 16384, ZSTD_LEVEL = 3 };

static const uint8_t seal_mark[MARK_BYTES] = {0xf5, 'i', 'p', 'u', '-', 's', 't', 'a',
                                              'c', 'k', 's', 'e', 'a', 'l', 0x0d, 0x0a};

static const char base_schema[] =
    "CREATE TABLE seal(value BLOB NOT NULL);"
    "CREATE TABLE chunk(array TEXT NOT NULL, number INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " checksum INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY(array, number)) WITHOUT ROWID;";

/* --- Checksum: four lanes of 64 bits, each step a bijection of its lane. --- */

static inline uint64_t lane_step(uint64_t lane, uint64_t word) {
    lane = (lane ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return lane ^ (lane >> 29);
}

uint64_t container_checksum(const uint8_t *bytes, size_t n) {
    uint64_t lane[4] = {1, 2, 3, 4};
    size_t at = 0;
    for (; at + 32 <= n; at += 32) {
        uint64_t w[4];
        memcpy(w, bytes + at, sizeof w);
        for (uint32_t i = 0; i < 4; i++) lane[i] = lane_step(lane[i], GUINT64_FROM_LE(w[i]));
    }
    uint8_t rest[32] = {0};
    if (at < n) memcpy(rest, bytes + at, n - at);
    uint64_t sum = n;
    for (uint32_t i = 0; i < 4; i++) {
        uint64_t w;
        memcpy(&w, rest + 8 * i, sizeof w);
        sum = lane_step(sum, lane_step(lane[i], GUINT64_FROM_LE(w)));
    }
    return sum;
}

/* --- Writing --- */

static void must(struct container *c, int rc, const char *what) {
    if (rc == SQLITE_NOMEM) base_oom(0);
    if (rc == SQLITE_OK || rc == SQLITE_DONE || rc == SQLITE_ROW) return;
    g_printerr("container: %s: %s\n", what, sqlite3_errmsg(c->db));
    BUG_ON(true);
}

static void must_sql(struct container *c, const char *sql) {
    must(c, sqlite3_exec(c->db, sql, NULL, NULL, NULL), sql);
}

struct container *container_new(const char *path, uint32_t application_id, uint32_t version,
                                const char *schema) {
    struct container *c = g_new0(struct container, 1);
    c->path = g_strdup(path);
    must(c, sqlite3_open(":memory:", &c->db), "open");
    char *sql = g_strdup_printf("PRAGMA page_size=%d; PRAGMA application_id=%u;"
                                "PRAGMA user_version=%u; BEGIN; %s %s",
                                PAGE_BYTES, application_id, version, base_schema, schema);
    must_sql(c, sql);
    g_free(sql);
    uint8_t seal[SEAL_BYTES] = {0};
    memcpy(seal, seal_mark, MARK_BYTES);
    sqlite3_stmt *s;
    must(c, sqlite3_prepare_v2(c->db, "INSERT INTO seal VALUES(?)", -1, &s, NULL), "seal");
    sqlite3_bind_blob(s, 1, seal, SEAL_BYTES, SQLITE_TRANSIENT);
    must(c, sqlite3_step(s), "seal");
    sqlite3_finalize(s);
    return c;
}

void container_exec(struct container *c, const char *sql, const char *format, ...) {
    sqlite3_stmt *s;
    must(c, sqlite3_prepare_v2(c->db, sql, -1, &s, NULL), sql);
    va_list args;
    va_start(args, format);
    for (int i = 0; format[i] != 0; i++) {
        if (format[i] == 'i') {
            sqlite3_bind_int64(s, i + 1, va_arg(args, int64_t));
        } else {
            const char *text = va_arg(args, const char *);
            if (text == NULL) sqlite3_bind_null(s, i + 1);
            else sqlite3_bind_text(s, i + 1, text, -1, SQLITE_TRANSIENT);
        }
    }
    va_end(args);
    must(c, sqlite3_step(s), sql);
    sqlite3_finalize(s);
}

struct squeeze {
    const uint8_t *data;
    uint64_t bytes;
    uint8_t **out;
    size_t *out_bytes;
};

static size_t chunk_bytes(uint64_t bytes, uint32_t i) {
    const uint64_t first = (uint64_t)i * CONTAINER_CHUNK_BYTES;
    return (size_t)MIN(bytes - first, (uint64_t)CONTAINER_CHUNK_BYTES);
}

static void squeeze_chunk(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct squeeze *q = context;
    const size_t n = chunk_bytes(q->bytes, i);
    const size_t bound = ZSTD_compressBound(n);
    q->out[i] = g_malloc(bound);
    q->out_bytes[i] = ZSTD_compress(q->out[i], bound, q->data + (size_t)i * CONTAINER_CHUNK_BYTES, n,
                                    ZSTD_LEVEL);
    BUG_ON(ZSTD_isError(q->out_bytes[i]));
}

void container_array_put(struct container *c, const char *name, const void *data, uint64_t bytes) {
    /* An empty array is one empty chunk: it can be told from a missing one. */
    const uint32_t n = (uint32_t)MAX(1, ceil_div_u64(bytes, CONTAINER_CHUNK_BYTES));
    struct squeeze q = {.data = data, .bytes = bytes, .out = g_new0(uint8_t *, n),
                        .out_bytes = g_new0(size_t, n)};
    par_for(n, squeeze_chunk, &q);
    sqlite3_stmt *s;
    must(c, sqlite3_prepare_v2(c->db, "INSERT INTO chunk VALUES(?,?,?,?,?)", -1, &s, NULL), name);
    for (uint32_t i = 0; i < n; i++) {
        sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(s, 2, i);
        sqlite3_bind_int64(s, 3, (int64_t)chunk_bytes(bytes, i));
        sqlite3_bind_int64(s, 4, (int64_t)container_checksum(q.out[i], q.out_bytes[i]));
        sqlite3_bind_blob64(s, 5, q.out[i], q.out_bytes[i], SQLITE_STATIC);
        must(c, sqlite3_step(s), name);
        sqlite3_reset(s);
        g_free(q.out[i]);
    }
    sqlite3_finalize(s);
    g_free(q.out);
    g_free(q.out_bytes);
}

/* Offset of the seal in a file, or n when there is not exactly one mark. */
static size_t find_seal(const uint8_t *bytes, size_t n) {
    const uint8_t *first = memmem(bytes, n, seal_mark, MARK_BYTES);
    if (first == NULL) return n;
    const size_t at = (size_t)(first - bytes);
    if (at + SEAL_BYTES > n) return n;
    if (memmem(first + 1, n - at - 1, seal_mark, MARK_BYTES) != NULL) return n;
    return at;
}

bool container_write(struct container *c, uint64_t *ret_bytes, GError **error) {
    must_sql(c, "COMMIT");
    sqlite3_int64 n;
    uint8_t *bytes = sqlite3_serialize(c->db, "main", &n, 0);
    if (bytes == NULL) base_oom(0);
    const size_t at = find_seal(bytes, (size_t)n);
    BUG_ON(at == (size_t)n);
    const uint64_t sum = GUINT64_TO_LE(container_checksum(bytes, (size_t)n));
    memcpy(bytes + at + MARK_BYTES, &sum, sizeof sum);
    const bool ok = file_write_atomic(c->path, bytes, (size_t)n, error);
    sqlite3_free(bytes);
    if (ok && ret_bytes != NULL) *ret_bytes = (uint64_t)n;
    return ok;
}

/* --- Reading --- */

static bool check_seal(struct container *c, const char *what, GError **error) {
    if (c->n_bytes < 100 || memcmp(c->bytes, "SQLite format 3", 16) != 0) {
        diag_set(error, CONTAINER_FOREIGN, c->path, what);
        return false;
    }
    const size_t at = find_seal(c->bytes, c->n_bytes);
    if (at == c->n_bytes) {
        diag_set(error, CONTAINER_UNSEALED, c->path, what);
        return false;
    }
    uint64_t sum;
    memcpy(&sum, c->bytes + at + MARK_BYTES, sizeof sum);
    memset(c->bytes + at + MARK_BYTES, 0, sizeof sum);
    if (container_checksum(c->bytes, c->n_bytes) != GUINT64_FROM_LE(sum)) {
        diag_set(error, CONTAINER_DAMAGED, c->path, what);
        return false;
    }
    return true;
}

static bool pragma_value(struct container *c, const char *sql, int64_t *ret, GError **error) {
    sqlite3_stmt *s = container_query(c, sql, error);
    if (s == NULL) return false;
    const bool ok = container_step(c, s, error);
    if (ok) *ret = sqlite3_column_int64(s, 0);
    sqlite3_finalize(s);
    return ok;
}

static bool check_kind(struct container *c, const char *what, uint32_t application_id,
                       uint32_t version, GError **error) {
    int64_t id, v, odd;
    if (!pragma_value(c, "PRAGMA application_id", &id, error)) return false;
    if (id != (int64_t)application_id) {
        diag_set(error, CONTAINER_FOREIGN, c->path, what);
        return false;
    }
    if (!pragma_value(c, "PRAGMA user_version", &v, error)) return false;
    if (v != (int64_t)version) {
        diag_set(error, CONTAINER_VERSION, c->path, what, (int)v, (int)version);
        return false;
    }
    if (!pragma_value(c, "SELECT count(*) FROM sqlite_schema WHERE type NOT IN ('table','index')",
                      &odd, error))
        return false;
    if (odd != 0) {
        diag_set(error, CONTAINER_CONTENT, c->path, "it holds views or triggers");
        return false;
    }
    return true;
}

static bool container_adopt(uint8_t *bytes, size_t n, const char *path, const char *what,
                            uint32_t application_id, uint32_t version, struct container **ret,
                            GError **error) {
    struct container *c = g_new0(struct container, 1);
    c->path = g_strdup(path);
    c->bytes = bytes;
    c->n_bytes = n;
    bool ok = check_seal(c, what, error);
    if (ok) {
        must(c, sqlite3_open(":memory:", &c->db), "open");
        const int rc = sqlite3_deserialize(c->db, "main", c->bytes, (sqlite3_int64)n,
                                           (sqlite3_int64)n, SQLITE_DESERIALIZE_READONLY);
        if (rc != SQLITE_OK) diag_set(error, CONTAINER_CONTENT, path, sqlite3_errmsg(c->db));
        ok = rc == SQLITE_OK;
    }
    if (ok) {
        sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(c->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_exec(c->db, "PRAGMA cell_size_check=ON", NULL, NULL, NULL);
        ok = check_kind(c, what, application_id, version, error);
    }
    if (!ok) {
        container_free(c);
        return false;
    }
    *ret = c;
    return true;
}

bool container_read(const char *path, const char *what, uint32_t application_id,
                    uint32_t version, struct container **ret, GError **error) {
    uint8_t *bytes;
    size_t n;
    if (!file_read(path, 0, &bytes, &n, error)) return false;
    return container_adopt(bytes, n, path, what, application_id, version, ret, error);
}

bool container_read_bytes(const uint8_t *bytes, size_t n, const char *path, const char *what,
                          uint32_t application_id, uint32_t version, struct container **ret,
                          GError **error) {
    uint8_t *copy = g_malloc(n + 1);
    if (n != 0) memcpy(copy, bytes, n);
    return container_adopt(copy, n, path, what, application_id, version, ret, error);
}

void container_free(struct container *c) {
    if (c == NULL) return;
    if (c->db != NULL) sqlite3_close(c->db);
    g_free(c->bytes);
    g_free(c->path);
    g_free(c);
}

sqlite3_stmt *container_query(struct container *c, const char *sql, GError **error) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(c->db, sql, -1, &s, NULL) == SQLITE_OK) return s;
    diag_set(error, CONTAINER_CONTENT, c->path, sqlite3_errmsg(c->db));
    return NULL;
}

bool container_step(struct container *c, sqlite3_stmt *s, GError **error) {
    const int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) return true;
    if (rc != SQLITE_DONE) diag_set(error, CONTAINER_CONTENT, c->path, sqlite3_errmsg(c->db));
    return false;
}

/* Sizes of the chunks of an array: numbered from 0, all but the last full. */
static bool array_size(struct container *c, const char *name, uint64_t *ret, GError **error) {
    sqlite3_stmt *s = container_query(
        c, "SELECT number, bytes FROM chunk WHERE array=? ORDER BY number", error);
    if (s == NULL) return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    GError *broken = NULL;
    uint64_t total = 0;
    int64_t n = 0, last = CONTAINER_CHUNK_BYTES;
    bool ok = true;
    while (ok && container_step(c, s, &broken)) {
        const int64_t bytes = sqlite3_column_int64(s, 1);
        ok = sqlite3_column_int64(s, 0) == n++ && bytes >= 0 && bytes <= CONTAINER_CHUNK_BYTES &&
             last == CONTAINER_CHUNK_BYTES;
        last = bytes;
        total += (uint64_t)bytes;
    }
    sqlite3_finalize(s);
    if (broken != NULL) {
        g_propagate_error(error, broken);
        return false;
    }
    if (!ok || n == 0) {
        diag_set(error, CONTAINER_ARRAY, c->path, name, n == 0 ? "is missing" : "has odd chunks");
        return false;
    }
    *ret = total;
    return true;
}

static bool array_fill(struct container *c, const char *name, uint8_t *data, uint64_t bytes,
                       GError **error) {
    sqlite3_stmt *s = container_query(
        c, "SELECT bytes, checksum, data FROM chunk WHERE array=? ORDER BY number", error);
    if (s == NULL) return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    GError *broken = NULL;
    uint64_t at = 0;
    bool ok = true;
    while (ok && container_step(c, s, &broken)) {
        const size_t n = (size_t)sqlite3_column_int64(s, 0);
        const uint8_t *packed = sqlite3_column_blob(s, 2);
        const size_t packed_bytes = (size_t)sqlite3_column_bytes(s, 2);
        ok = packed != NULL && n <= bytes - at &&
             container_checksum(packed, packed_bytes) == (uint64_t)sqlite3_column_int64(s, 1) &&
             ZSTD_decompress(data + at, n, packed, packed_bytes) == n;
        at += n;
    }
    sqlite3_finalize(s);
    if (broken != NULL) {
        g_propagate_error(error, broken);
        return false;
    }
    if (!ok || at != bytes) {
        diag_set(error, CONTAINER_ARRAY, c->path, name, "does not decompress or has a wrong checksum");
        return false;
    }
    return true;
}

bool container_array_read(struct container *c, const char *name, void *data, uint64_t bytes,
                          GError **error) {
    uint64_t stored;
    if (!array_size(c, name, &stored, error)) return false;
    if (stored == bytes) return array_fill(c, name, data, bytes, error);
    diag_set(error, CONTAINER_ARRAY, c->path, name, "has a wrong size");
    return false;
}

bool container_array_has(struct container *c, const char *name) {
    sqlite3_stmt *s = container_query(c, "SELECT 1 FROM chunk WHERE array=? LIMIT 1", NULL);
    if (s == NULL) return false;
    sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
    const bool found = sqlite3_step(s) == SQLITE_ROW;
    sqlite3_finalize(s);
    return found;
}

bool container_array_get(struct container *c, const char *name, uint32_t element_bytes,
                         uint64_t n_expected, struct arena *a, void *ret_data, uint64_t *ret_n,
                         GError **error) {
    uint64_t bytes;
    if (!array_size(c, name, &bytes, error)) return false;
    if (bytes % element_bytes != 0 ||
        (n_expected != UINT64_MAX && bytes / element_bytes != n_expected)) {
        diag_set(error, CONTAINER_ARRAY, c->path, name, "has a wrong size");
        return false;
    }
    uint8_t *data = arena_alloc(a, bytes);
    if (!array_fill(c, name, data, bytes, error)) return false;
    memcpy(ret_data, &data, sizeof data);
    if (ret_n != NULL) *ret_n = bytes / element_bytes;
    return true;
}
