/* Problem files: SQLite with application id "plce", user version 1.
 *
 * Table numbers(key, value): the memory and the counts. Table arrays(name, part, crc, data): every
 * column of the requests, the tile ranges, the pairs, the names (each ended by a zero byte) and, if
 * there is one, the map; cut in parts of 4 MiB, zstd-compressed, with the CRC-32 of the plain
 * bytes. Little-endian 32-bit numbers. Made in memory and put in place by one atomic replacement.
 * The reader checks sizes and checksums here and leaves every value to place_problem_check. */
#include "place/place.h"

#include <sqlite3.h>
#include <string.h>
#include <zstd.h>

enum { APPLICATION_ID = 0x706c6365, SCHEMA = 1, PART_BYTES = 4 << 20 };
#define MAX_ITEMS (UINT32_C(1) << 22)

/* Columns of a request: name, field. The last one packs class, kind and flags. */
#define REQUEST_COLUMNS(X)                                                                         \
    X(bytes)                                                                                       \
    X(tail_bytes) X(align) X(first_step) X(last_step) X(address) X(alias) X(displacement)          \
        X(n_blocks) X(stride) X(name)

static uint32_t crc32_of(const uint8_t *data, size_t n) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (uint32_t k = 0; k < 8; k++) crc = crc & 1 ? UINT32_C(0xedb88320) ^ crc >> 1 : crc >> 1;
    }
    return ~crc;
}

/* --- Writing --- */

static bool run(sqlite3 *db, const char *sql) {
    return sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
}

static bool write_array(sqlite3 *db, const char *name, const void *data, size_t bytes) {
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "INSERT INTO arrays VALUES(?,?,?,?)", -1, &st, NULL) != SQLITE_OK)
        return false;
    const size_t bound = ZSTD_compressBound(PART_BYTES);
    void *out = g_malloc(bound);
    bool ok = true;
    for (size_t at = 0, part = 0; ok && (at < bytes || part == 0); at += PART_BYTES, part++) {
        const uint8_t *from = (const uint8_t *)data + at;
        const size_t n = MIN(bytes - at, (size_t)PART_BYTES);
        const size_t size = ZSTD_compress(out, bound, from, n, 3);
        ok = !ZSTD_isError(size);
        sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 2, (sqlite3_int64)part);
        sqlite3_bind_int64(st, 3, crc32_of(from, n));
        sqlite3_bind_blob64(st, 4, out, size, SQLITE_TRANSIENT);
        ok = ok && sqlite3_step(st) == SQLITE_DONE && sqlite3_reset(st) == SQLITE_OK;
    }
    g_free(out);
    sqlite3_finalize(st);
    return ok;
}

static bool write_number(sqlite3 *db, const char *key, uint32_t value) {
    char *sql = sqlite3_mprintf("INSERT INTO numbers VALUES(%Q,%u)", key, value);
    const bool ok = run(db, sql);
    sqlite3_free(sql);
    return ok;
}

struct number {
    const char *key;
    uint32_t *value;
};
enum { N_NUMBERS = 13 + 2 * PLACE_MAX_RANGES };

/* Every number of a problem, for both directions. */
static void list_numbers(struct place_problem *p, struct number n[N_NUMBERS]) {
    struct place_memory *m = &p->memory;
    const struct number head[13] = {{"base", &m->base},
                                    {"end", &m->end},
                                    {"interleaved_base", &m->interleaved_base},
                                    {"element_bytes", &m->element_bytes},
                                    {"interleaved_element_bytes", &m->interleaved_element_bytes},
                                    {"window_base", &m->window_base},
                                    {"window_bytes", &m->window_bytes},
                                    {"fetch_guard_bytes", &m->fetch_guard_bytes},
                                    {"n_ranges", &m->n_ranges},
                                    {"n_tiles", &p->n_tiles},
                                    {"n_requests", &p->n_requests},
                                    {"n_names", &p->n_names},
                                    {"n_pairs", &p->n_pairs}};
    static const char *const keys[2 * PLACE_MAX_RANGES] = {
        "range0_base", "range0_end", "range1_base", "range1_end", "range2_base", "range2_end",
        "range3_base", "range3_end", "range4_base", "range4_end", "range5_base", "range5_end",
        "range6_base", "range6_end", "range7_base", "range7_end"};
    memcpy(n, head, sizeof head);
    for (uint32_t i = 0; i < PLACE_MAX_RANGES; i++) {
        n[13 + 2 * i] = (struct number){keys[2 * i], &m->range_base[i]};
        n[14 + 2 * i] = (struct number){keys[2 * i + 1], &m->range_end[i]};
    }
}

static bool write_requests(sqlite3 *db, const struct place_problem *p) {
    uint32_t *column = g_new(uint32_t, p->n_requests);
    const size_t bytes = p->n_requests * sizeof *column;
    bool ok = true;
#define WRITE(field)                                                                               \
    for (uint32_t i = 0; i < p->n_requests; i++) column[i] = p->request[i].field;                  \
    ok = ok && write_array(db, #field, column, bytes);
    REQUEST_COLUMNS(WRITE)
#undef WRITE
    for (uint32_t i = 0; i < p->n_requests; i++)
        column[i] = p->request[i].memory_class | (uint32_t)p->request[i].kind << 8 |
                    (uint32_t)p->request[i].flags << 16;
    ok = ok && write_array(db, "class_kind_flags", column, bytes);
    g_free(column);
    return ok;
}

static bool write_names(sqlite3 *db, const struct place_problem *p) {
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < p->n_names; i++)
        g_string_append_len(text, p->name[i], (gssize)strlen(p->name[i]) + 1);
    const bool ok = write_number(db, "name_bytes", (uint32_t)text->len) &&
                    write_array(db, "names", text->str, text->len);
    g_string_free(text, TRUE);
    return ok;
}

static bool write_all(sqlite3 *db, const struct place_problem *p, const uint32_t *address) {
    struct place_problem copy = *p;
    struct number n[N_NUMBERS];
    list_numbers(&copy, n);
    bool ok = write_number(db, "has_map", address != NULL);
    for (uint32_t i = 0; i < N_NUMBERS && ok; i++) ok = write_number(db, n[i].key, *n[i].value);
    ok = ok && write_names(db, p) && write_requests(db, p);
    ok = ok && write_array(db, "first", p->first, (p->n_tiles + 1) * sizeof *p->first);
    ok = ok && write_array(db, "pair_a", p->pair_a, p->n_pairs * sizeof *p->pair_a);
    ok = ok && write_array(db, "pair_b", p->pair_b, p->n_pairs * sizeof *p->pair_b);
    if (address != NULL)
        ok = ok && write_array(db, "map", address, p->n_requests * sizeof *address);
    return ok;
}

bool place_file_write(const char *path, const struct place_problem *p, const uint32_t *address,
                      GError **error) {
    sqlite3 *db = NULL;
    char *head =
        g_strdup_printf("PRAGMA application_id=%d; PRAGMA user_version=%d; BEGIN;"
                        "CREATE TABLE numbers(key TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
                        "CREATE TABLE arrays(name TEXT, part INTEGER, crc INTEGER, data BLOB,"
                        " PRIMARY KEY(name, part)) WITHOUT ROWID;",
                        APPLICATION_ID, SCHEMA);
    bool ok = sqlite3_open(":memory:", &db) == SQLITE_OK && run(db, head) &&
              write_all(db, p, address) && run(db, "COMMIT");
    g_free(head);
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

/* --- Reading: every function returns NULL or what is wrong --- */

static const char *read_number(sqlite3 *db, const char *key, uint32_t *ret) {
    sqlite3_stmt *st = NULL;
    const char *why = "a number is missing";
    if (sqlite3_prepare_v2(db, "SELECT value FROM numbers WHERE key=?", -1, &st, NULL) != SQLITE_OK)
        return "tables are missing";
    sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
    if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) == SQLITE_INTEGER) {
        const sqlite3_int64 v = sqlite3_column_int64(st, 0);
        why = v < 0 || v > UINT32_MAX ? "a number is out of range" : NULL;
        *ret = (uint32_t)v;
    }
    sqlite3_finalize(st);
    return why;
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

static const char *read_array(sqlite3 *db, const char *name, void *data, size_t bytes) {
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v2(db, "SELECT crc, data FROM arrays WHERE name=? AND part=?", -1, &st,
                           NULL) != SQLITE_OK)
        return "tables are missing";
    const char *why = NULL;
    for (size_t at = 0, part = 0; why == NULL && (at < bytes || part == 0);
         at += PART_BYTES, part++) {
        sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
        sqlite3_bind_int64(st, 2, (sqlite3_int64)part);
        why = sqlite3_step(st) == SQLITE_ROW
                  ? read_part(st, (uint8_t *)data + at, MIN(bytes - at, (size_t)PART_BYTES))
                  : "an array is missing";
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    return why;
}

static const char *check_header(sqlite3 *db) {
    static const char *const pragma[2] = {"PRAGMA application_id", "PRAGMA user_version"};
    int value[2] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        sqlite3_stmt *st = NULL;
        if (sqlite3_prepare_v2(db, pragma[i], -1, &st, NULL) == SQLITE_OK &&
            sqlite3_step(st) == SQLITE_ROW)
            value[i] = sqlite3_column_int(st, 0);
        sqlite3_finalize(st);
    }
    if (value[0] != APPLICATION_ID) return "another kind of file";
    return value[1] == SCHEMA ? NULL : "another schema version";
}

static const char *read_requests(sqlite3 *db, struct place_problem *p) {
    const uint32_t n = p->n_requests;
    uint32_t *column = g_new0(uint32_t, n);
    const char *why = NULL;
#define READ(field)                                                                                \
    if (why == NULL) why = read_array(db, #field, column, n * sizeof *column);                     \
    for (uint32_t i = 0; i < n && why == NULL; i++) p->request[i].field = column[i];
    REQUEST_COLUMNS(READ)
#undef READ
    if (why == NULL) why = read_array(db, "class_kind_flags", column, n * sizeof *column);
    for (uint32_t i = 0; i < n && why == NULL; i++) {
        p->request[i].memory_class = (uint8_t)column[i];
        p->request[i].kind = (uint8_t)(column[i] >> 8);
        p->request[i].flags = (uint16_t)(column[i] >> 16);
    }
    g_free(column);
    return why;
}

static const char *read_names(sqlite3 *db, struct place_problem *p) {
    uint32_t bytes = 0;
    const char *why = read_number(db, "name_bytes", &bytes);
    if (why != NULL) return why;
    if (bytes > 64 * MAX_ITEMS) return "too many names";
    char *text = arena_alloc(p->arena, (size_t)bytes + 1);
    why = read_array(db, "names", text, bytes);
    p->name = arena_new_array(p->arena, char *, p->n_names);
    size_t at = 0;
    for (uint32_t i = 0; i < p->n_names && why == NULL; i++) {
        if (at >= bytes) return "names are missing";
        p->name[i] = text + at;
        at += strlen(text + at) + 1;
        if (!g_utf8_validate(p->name[i], -1, NULL)) return "a name is not text";
    }
    return why;
}

static const char *read_all(sqlite3 *db, struct place_problem *p, uint32_t **ret_address) {
    struct number n[N_NUMBERS];
    list_numbers(p, n);
    uint32_t has_map = 0;
    const char *why = check_header(db);
    for (uint32_t i = 0; i < N_NUMBERS && why == NULL; i++)
        why = read_number(db, n[i].key, n[i].value);
    if (why == NULL) why = read_number(db, "has_map", &has_map);
    if (why != NULL) return why;
    if (p->n_tiles > TARGET_N_TILES || p->n_requests > MAX_ITEMS || p->n_names > MAX_ITEMS ||
        p->n_pairs > MAX_ITEMS)
        return "more items than any placement has";
    p->first = arena_new_array(p->arena, uint32_t, p->n_tiles + 1);
    p->request = arena_new_array(p->arena, struct place_request, p->n_requests);
    p->pair_a = arena_new_array(p->arena, uint32_t, p->n_pairs);
    p->pair_b = arena_new_array(p->arena, uint32_t, p->n_pairs);
    why = read_names(db, p);
    if (why == NULL) why = read_requests(db, p);
    if (why == NULL) why = read_array(db, "first", p->first, (p->n_tiles + 1) * sizeof *p->first);
    if (why == NULL) why = read_array(db, "pair_a", p->pair_a, p->n_pairs * sizeof *p->pair_a);
    if (why == NULL) why = read_array(db, "pair_b", p->pair_b, p->n_pairs * sizeof *p->pair_b);
    if (why != NULL || !has_map) return why;
    *ret_address = g_new(uint32_t, p->n_requests);
    return read_array(db, "map", *ret_address, p->n_requests * sizeof **ret_address);
}

struct place_problem *place_file_read(const char *path, uint32_t **ret_address, GError **error) {
    uint8_t *data;
    size_t size;
    if (!file_read(path, 0, &data, &size, error)) return NULL;
    sqlite3 *db = NULL;
    struct arena *arena = arena_new();
    struct place_problem *p = arena_new_array(arena, struct place_problem, 1);
    p->arena = arena;
    uint32_t *address = NULL;
    const char *why = "damaged database";
    if (sqlite3_open(":memory:", &db) == SQLITE_OK &&
        sqlite3_deserialize(db, "main", data, (sqlite3_int64)size, (sqlite3_int64)size,
                            SQLITE_DESERIALIZE_READONLY) == SQLITE_OK)
        why = read_all(db, p, &address);
    sqlite3_close(db);
    g_free(data);
    if (why != NULL) diag_set(error, PLACE_FILE, path, why);
    bool ok = why == NULL && place_problem_check(p, error);
    if (ok && ret_address != NULL) *ret_address = g_steal_pointer(&address);
    g_free(address);
    if (ok) return p;
    arena_free(arena);
    return NULL;
}
