/* Profiles as sealed SQLite files (base/container.h):
 *
 *   meta(key, value)                 workload, plan, device, source, clock, cycles, tiles
 *   name(id, text)                   operations, reasons, kernels
 *   step(id, kind, operation, reason, horizon, package_step, transfers, messages, endpoint_bound,
 *        bound, row_bytes_max, row_bytes_tile, words)          kind: 0 exchange, 1 compute,
 *                                    2 iterations of a repeat that were not sampled
 *   arrays  first, intervals, phases (the structs of profile.h, little-endian) */
#include "base/container.h"
#include "profile/profile.h"
#include "target/target.h"

#include <string.h>

_Static_assert(sizeof(struct profile_interval) == 32, "no padding in stored structs");
_Static_assert(sizeof(struct profile_phase) == 28, "no padding in stored structs");

enum { MAX_ROWS = 1 << 22 };

static const char schema[] =
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE name(id INTEGER PRIMARY KEY, text TEXT NOT NULL);"
    "CREATE TABLE step(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, operation INTEGER NOT NULL,"
    " reason INTEGER NOT NULL, horizon INTEGER NOT NULL, package_step INTEGER NOT NULL,"
    " transfers INTEGER NOT NULL, messages INTEGER NOT NULL, endpoint_bound INTEGER NOT NULL,"
    " bound INTEGER NOT NULL, row_bytes_max INTEGER NOT NULL, row_bytes_tile INTEGER NOT NULL,"
    " words INTEGER NOT NULL);";

enum field_type { FIELD_TEXT, FIELD_U32, FIELD_U64 };
static const struct field {
    const char *key;
    enum field_type type;
    size_t offset;
} fields[] = {
#define FIELD(name, type) {#name, type, offsetof(struct profile, name)}
    FIELD(workload, FIELD_TEXT),
    FIELD(plan, FIELD_TEXT),
    FIELD(device, FIELD_TEXT),
    FIELD(source, FIELD_U32),
    FIELD(clock_hz, FIELD_U64),
    FIELD(cycles_measured, FIELD_U64),
    FIELD(cycles_predicted, FIELD_U64),
    FIELD(exchange_cycles, FIELD_U64),
    FIELD(peak_tile_bytes, FIELD_U32),
    FIELD(row_bytes_max, FIELD_U32),
    FIELD(n_tiles, FIELD_U32),
    FIELD(n_names, FIELD_U32),
    FIELD(n_steps, FIELD_U32),
    FIELD(n_phases, FIELD_U32),
#undef FIELD
};

bool profile_write(struct profile *p, const char *path, GError **error) {
    struct container *c = container_new(path, PROFILE_APPLICATION_ID, PROFILE_SCHEMA, schema);
    for (uint32_t i = 0; i < ARRAY_LEN(fields); i++) {
        const char *at = (const char *)p + fields[i].offset;
        if (fields[i].type == FIELD_TEXT) {
            const char *text;
            memcpy(&text, at, sizeof text);
            container_exec(c, "INSERT INTO meta VALUES(?,?)", "ss", fields[i].key, text);
            continue;
        }
        uint64_t v = 0;
        memcpy(&v, at, fields[i].type == FIELD_U64 ? 8 : 4);
        container_exec(c, "INSERT INTO meta VALUES(?,?)", "si", fields[i].key, (int64_t)v);
    }
    for (uint32_t i = 0; i < p->n_names; i++)
        container_exec(c, "INSERT INTO name VALUES(?,?)", "is", (int64_t)i, p->names[i]);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct profile_step *s = &p->steps[i];
        container_exec(c, "INSERT INTO step VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", "iiiiiiiiiiiii",
                       (int64_t)i, (int64_t)s->kind, (int64_t)s->operation, (int64_t)s->reason,
                       (int64_t)s->horizon, (int64_t)s->package_step, (int64_t)s->transfers,
                       (int64_t)s->messages, (int64_t)s->endpoint_bound, (int64_t)s->bound,
                       (int64_t)s->row_bytes_max, (int64_t)s->row_bytes_tile, (int64_t)s->words);
    }
    container_array_put(c, "first", p->first, 4 * ((uint64_t)p->n_tiles + 1));
    container_array_put(c, "intervals", p->intervals,
                        sizeof *p->intervals * (uint64_t)p->first[p->n_tiles]);
    container_array_put(c, "phases", p->phases, sizeof *p->phases * (uint64_t)p->n_phases);
    const bool ok = container_write(c, &p->file_bytes, error);
    container_free(c);
    return ok;
}

static bool bad(struct container *c, const char *what, GError **error) {
    if (error == NULL || *error == NULL) diag_set(error, PROFILE_CONTENT, c->path, what);
    return false;
}

static bool read_field(struct container *c, sqlite3_stmt *s, const struct field *f,
                       struct profile *p, GError **error) {
    char *at = (char *)p + f->offset;
    sqlite3_bind_text(s, 1, f->key, -1, SQLITE_STATIC);
    if (!container_step(c, s, error)) return bad(c, f->key, error);
    if (f->type == FIELD_TEXT) {
        const char *text = (const char *)sqlite3_column_text(s, 0);
        text = arena_strdup(p->arena, text != NULL ? text : "");
        memcpy(at, &text, sizeof text);
    } else {
        const uint64_t v = (uint64_t)sqlite3_column_int64(s, 0);
        if (f->type == FIELD_U32 && v > UINT32_MAX) return bad(c, f->key, error);
        memcpy(at, &v, f->type == FIELD_U64 ? 8 : 4);
    }
    sqlite3_reset(s);
    return true;
}

static bool read_meta(struct container *c, struct profile *p, GError **error) {
    sqlite3_stmt *s = container_query(c, "SELECT value FROM meta WHERE key=?", error);
    if (s == NULL) return false;
    bool ok = true;
    for (uint32_t i = 0; ok && i < ARRAY_LEN(fields); i++)
        ok = read_field(c, s, &fields[i], p, error);
    sqlite3_finalize(s);
    if (!ok) return false;
    if (p->n_tiles == 0 || p->n_tiles > TARGET_N_TILES || p->n_names > MAX_ROWS ||
        p->n_steps > MAX_ROWS || p->source > PROFILE_FROM_SAMPLES || p->clock_hz == 0)
        return bad(c, "its description", error);
    return true;
}

static bool read_names(struct container *c, struct profile *p, GError **error) {
    p->names = arena_new_array(p->arena, const char *, p->n_names);
    sqlite3_stmt *s = container_query(c, "SELECT id, text FROM name ORDER BY id", error);
    if (s == NULL) return false;
    uint32_t n = 0;
    while (n < p->n_names && container_step(c, s, error) && sqlite3_column_int64(s, 0) == n) {
        const char *text = (const char *)sqlite3_column_text(s, 1);
        p->names[n++] = arena_strdup(p->arena, text != NULL ? text : "");
    }
    sqlite3_finalize(s);
    return n == p->n_names || bad(c, "its names", error);
}

static bool read_steps(struct container *c, struct profile *p, GError **error) {
    p->steps = arena_new_array(p->arena, struct profile_step, p->n_steps);
    sqlite3_stmt *s = container_query(
        c,
        "SELECT id, kind, operation, reason, horizon, package_step, transfers, messages,"
        " endpoint_bound, bound, row_bytes_max, row_bytes_tile, words FROM step ORDER BY id",
        error);
    if (s == NULL) return false;
    uint32_t n = 0;
    while (n < p->n_steps && container_step(c, s, error) && sqlite3_column_int64(s, 0) == n) {
        enum { WORDS = 11 };
        int64_t v[WORDS + 1];
        bool ok = true;
        for (int i = 0; i <= WORDS; i++) {
            v[i] = sqlite3_column_int64(s, i + 1);
            ok = ok && v[i] >= 0 && (i == WORDS || v[i] <= UINT32_MAX);
        }
        if (!ok || v[0] >= PROFILE_N_KINDS || v[1] >= p->n_names || v[2] >= p->n_names) break;
        p->steps[n++] = (struct profile_step){
            .kind = (uint32_t)v[0], .operation = (uint32_t)v[1], .reason = (uint32_t)v[2],
            .horizon = (uint32_t)v[3], .package_step = (uint32_t)v[4],
            .transfers = (uint32_t)v[5], .messages = (uint32_t)v[6],
            .endpoint_bound = (uint32_t)v[7], .bound = (uint32_t)v[8],
            .row_bytes_max = (uint32_t)v[9], .row_bytes_tile = (uint32_t)v[10],
            .words = (uint64_t)v[WORDS]};
    }
    sqlite3_finalize(s);
    return n == p->n_steps || bad(c, "its steps", error);
}

static bool check_intervals(const struct profile *p) {
    if (p->first[0] != 0) return false;
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        if (p->first[t] > p->first[t + 1]) return false;
        uint32_t last = 0;
        for (uint32_t i = p->first[t]; i < p->first[t + 1]; i++) {
            const struct profile_interval *v = &p->intervals[i];
            if (v->step >= p->n_steps || v->start < last || v->end < v->start ||
                (v->kernel != TG_NONE && v->kernel >= p->n_names))
                return false;
            last = v->start;
        }
    }
    for (uint32_t i = 0; i < p->n_phases; i++)
        if (p->phases[i].step >= p->n_steps || p->phases[i].last_tile >= p->n_tiles) return false;
    return true;
}

static bool read_arrays(struct container *c, struct profile *p, GError **error) {
    if (!container_array_get(c, "first", 4, p->n_tiles + 1, p->arena, &p->first, NULL, error))
        return false;
    /* The ends are checked before anything is indexed with them. */
    for (uint32_t t = 0; t < p->n_tiles; t++)
        if (p->first[t] > p->first[t + 1]) return bad(c, "its intervals", error);
    if (!container_array_get(c, "intervals", sizeof *p->intervals, p->first[p->n_tiles], p->arena,
                             &p->intervals, NULL, error) ||
        !container_array_get(c, "phases", sizeof *p->phases, p->n_phases, p->arena, &p->phases,
                             NULL, error))
        return false;
    return check_intervals(p) || bad(c, "its intervals", error);
}

static struct profile *read_container(struct container *c, GError **error) {
    struct arena *a = arena_new();
    struct profile *p = arena_alloc(a, sizeof *p);
    p->arena = a;
    p->file_bytes = c->n_bytes;
    const bool ok = read_meta(c, p, error) && read_names(c, p, error) && read_steps(c, p, error) &&
                    read_arrays(c, p, error);
    container_free(c);
    if (ok) return p;
    profile_free(p);
    return NULL;
}

struct profile *profile_read(const char *path, GError **error) {
    struct container *c;
    if (!container_read(path, "profile", PROFILE_APPLICATION_ID, PROFILE_SCHEMA, &c, error))
        return NULL;
    return read_container(c, error);
}

struct profile *profile_read_bytes(const uint8_t *bytes, size_t n, const char *path,
                                   GError **error) {
    struct container *c;
    if (!container_read_bytes(bytes, n, path, "profile", PROFILE_APPLICATION_ID, PROFILE_SCHEMA, &c,
                              error))
        return NULL;
    return read_container(c, error);
}
