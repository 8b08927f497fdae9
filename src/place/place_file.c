/* Problem files: sealed containers with application id "plce", schema 2.
 *
 * Table numbers(key, value): the memory and the counts. Arrays: every column of the requests, the
 * tile ranges, the pairs, the names (each ended by a zero byte), the traffic (struct
 * place_traffic_item) and the map, if there are any. Little-endian. The reader leaves every value of
 * the problem to place_problem_check and checks the traffic here. */
#include "base/container.h"
#include "place/place.h"

#include <string.h>

_Static_assert(sizeof(struct place_traffic_item) == 20, "no padding in stored structs");

enum { APPLICATION_ID = 0x706c6365, SCHEMA = 2 };
#define MAX_ITEMS (UINT32_C(1) << 22)

/* Columns of a request: name, field. The last one packs class, kind and flags. */
#define REQUEST_COLUMNS(X)                                                                         \
    X(bytes)                                                                                       \
    X(tail_bytes) X(align) X(first_step) X(last_step) X(address) X(alias) X(displacement)          \
        X(n_blocks) X(stride) X(name)

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

/* --- Writing --- */

static void write_number(struct container *c, const char *key, uint32_t value) {
    container_exec(c, "INSERT INTO numbers VALUES(?,?)", "si", key, (int64_t)value);
}

static void write_requests(struct container *c, const struct place_problem *p) {
    uint32_t *column = g_new(uint32_t, p->n_requests);
    const size_t bytes = p->n_requests * sizeof *column;
#define WRITE(field)                                                                               \
    for (uint32_t i = 0; i < p->n_requests; i++) column[i] = p->request[i].field;                  \
    container_array_put(c, #field, column, bytes);
    REQUEST_COLUMNS(WRITE)
#undef WRITE
    for (uint32_t i = 0; i < p->n_requests; i++)
        column[i] = p->request[i].memory_class | (uint32_t)p->request[i].kind << 8 |
                    (uint32_t)p->request[i].flags << 16;
    container_array_put(c, "class_kind_flags", column, bytes);
    g_free(column);
}

static void write_names(struct container *c, const struct place_problem *p) {
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < p->n_names; i++)
        g_string_append_len(text, p->name[i], (gssize)strlen(p->name[i]) + 1);
    container_array_put(c, "names", text->str, text->len);
    g_string_free(text, TRUE);
}

bool place_file_write(const char *path, const struct place_problem *p, const uint32_t *address,
                      const struct place_traffic *traffic, GError **error) {
    struct container *c = container_new(
        path, APPLICATION_ID, SCHEMA,
        "CREATE TABLE numbers(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;");
    struct place_problem copy = *p;
    struct number n[N_NUMBERS];
    list_numbers(&copy, n);
    for (uint32_t i = 0; i < N_NUMBERS; i++) write_number(c, n[i].key, *n[i].value);
    write_names(c, p);
    write_requests(c, p);
    container_array_put(c, "first", p->first, (p->n_tiles + 1) * sizeof *p->first);
    container_array_put(c, "pair_a", p->pair_a, p->n_pairs * sizeof *p->pair_a);
    container_array_put(c, "pair_b", p->pair_b, p->n_pairs * sizeof *p->pair_b);
    if (address != NULL)
        container_array_put(c, "map", address, p->n_requests * sizeof *address);
    if (traffic != NULL) {
        container_array_put(c, "traffic_first", traffic->first,
                            (traffic->n_tiles + 1) * sizeof *traffic->first);
        container_array_put(c, "traffic", traffic->item, traffic->n_items * sizeof *traffic->item);
    }
    const bool ok = container_write(c, NULL, error);
    container_free(c);
    return ok;
}

/* --- Reading --- */

static bool bad(struct container *c, const char *why, GError **error) {
    diag_set(error, PLACE_FILE, c->path, why);
    return false;
}

static bool read_numbers(struct container *c, struct place_problem *p, GError **error) {
    struct number n[N_NUMBERS];
    list_numbers(p, n);
    sqlite3_stmt *st = container_query(c, "SELECT value FROM numbers WHERE key=?", error);
    bool ok = st != NULL;
    for (uint32_t i = 0; i < N_NUMBERS && ok; i++) {
        sqlite3_bind_text(st, 1, n[i].key, -1, SQLITE_STATIC);
        ok = sqlite3_step(st) == SQLITE_ROW || bad(c, "a number is missing", error);
        const int64_t v = ok ? sqlite3_column_int64(st, 0) : 0;
        ok = ok && ((v >= 0 && v <= UINT32_MAX) || bad(c, "a number is out of range", error));
        *n[i].value = (uint32_t)v;
        sqlite3_reset(st);
    }
    sqlite3_finalize(st);
    if (!ok) return false;
    return (p->n_tiles <= TARGET_N_TILES && p->n_requests <= MAX_ITEMS && p->n_names <= MAX_ITEMS &&
            p->n_pairs <= MAX_ITEMS) ||
           bad(c, "more items than any placement has", error);
}

/* A new array of n numbers in the problem's arena. */
static bool read_column(struct container *c, struct place_problem *p, const char *name, uint32_t n,
                        uint32_t **ret, GError **error) {
    return container_array_get(c, name, sizeof **ret, n, p->arena, ret, NULL, error);
}

static bool read_requests(struct container *c, struct place_problem *p, GError **error) {
    const uint32_t n = p->n_requests;
    uint32_t *column = g_new0(uint32_t, n);
    p->request = arena_new_array(p->arena, struct place_request, n);
    bool ok = true;
#define READ(field)                                                                                \
    ok = ok && container_array_read(c, #field, column, n * sizeof *column, error);                 \
    for (uint32_t i = 0; i < n && ok; i++) p->request[i].field = column[i];
    REQUEST_COLUMNS(READ)
#undef READ
    ok = ok && container_array_read(c, "class_kind_flags", column, n * sizeof *column, error);
    for (uint32_t i = 0; i < n && ok; i++) {
        p->request[i].memory_class = (uint8_t)column[i];
        p->request[i].kind = (uint8_t)(column[i] >> 8);
        p->request[i].flags = (uint16_t)(column[i] >> 16);
    }
    g_free(column);
    return ok;
}

static bool read_names(struct container *c, struct place_problem *p, GError **error) {
    char *text;
    uint64_t bytes;
    if (!container_array_get(c, "names", 1, UINT64_MAX, p->arena, &text, &bytes, error))
        return false;
    if (bytes != 0 && text[bytes - 1] != 0) return bad(c, "a name has no end", error);
    p->name = arena_new_array(p->arena, char *, p->n_names);
    size_t at = 0;
    for (uint32_t i = 0; i < p->n_names; i++) {
        if (at >= bytes) return bad(c, "names are missing", error);
        p->name[i] = text + at;
        at += strlen(text + at) + 1;
        if (!g_utf8_validate(p->name[i], -1, NULL)) return bad(c, "a name is not text", error);
    }
    return true;
}

static bool read_problem(struct container *c, struct place_problem *p, GError **error) {
    if (!read_numbers(c, p, error) || !read_names(c, p, error) || !read_requests(c, p, error) ||
        !read_column(c, p, "first", p->n_tiles + 1, &p->first, error) ||
        !read_column(c, p, "pair_a", p->n_pairs, &p->pair_a, error) ||
        !read_column(c, p, "pair_b", p->n_pairs, &p->pair_b, error))
        return false;
    return place_problem_check(p, error);
}

/* Every item lies inside a request of its own tile. */
static bool traffic_ok(const struct place_problem *p, const struct place_traffic *f) {
    if (f->first[0] != 0 || f->first[f->n_tiles] != f->n_items) return false;
    for (uint32_t t = 0; t < f->n_tiles; t++) {
        if (f->first[t] > f->first[t + 1] || f->first[t + 1] > f->n_items) return false;
        for (uint32_t i = f->first[t]; i < f->first[t + 1]; i++) {
            const struct place_traffic_item *x = &f->item[i];
            if (x->request < p->first[t] || x->request >= p->first[t + 1] || x->receive > 1 ||
                (uint64_t)x->offset + x->bytes > p->request[x->request].bytes)
                return false;
        }
    }
    return true;
}

static bool read_traffic(struct container *c, struct place_problem *p, struct place_traffic **ret,
                         GError **error) {
    struct place_traffic *f = arena_new_array(p->arena, struct place_traffic, 1);
    struct place_traffic_item *item;
    uint32_t *first;
    uint64_t n;
    f->n_tiles = p->n_tiles;
    if (!read_column(c, p, "traffic_first", p->n_tiles + 1, &first, error) ||
        !container_array_get(c, "traffic", sizeof *item, UINT64_MAX, p->arena, &item, &n, error))
        return false;
    if (n > UINT32_MAX) return bad(c, "more traffic than any placement has", error);
    f->n_items = (uint32_t)n;
    f->first = first;
    f->item = item;
    *ret = f;
    return traffic_ok(p, f) || bad(c, "its traffic is wrong", error);
}

struct place_problem *place_file_read(const char *path, uint32_t **ret_address,
                                      struct place_traffic **ret_traffic, GError **error) {
    struct container *c;
    if (!container_read(path, "placement problem", APPLICATION_ID, SCHEMA, &c, error)) return NULL;
    struct arena *arena = arena_new();
    struct place_problem *p = arena_new_array(arena, struct place_problem, 1);
    p->arena = arena;
    uint32_t *address = NULL;
    struct place_traffic *traffic = NULL;
    bool ok = read_problem(c, p, error);
    if (ok && container_array_has(c, "map")) ok = read_column(c, p, "map", p->n_requests, &address, error);
    if (ok && container_array_has(c, "traffic")) ok = read_traffic(c, p, &traffic, error);
    container_free(c);
    if (!ok) {
        arena_free(arena);
        return NULL;
    }
    if (ret_address != NULL)
        *ret_address = address != NULL ? g_memdup2(address, p->n_requests * sizeof *address) : NULL;
    if (ret_traffic != NULL) *ret_traffic = traffic;
    return p;
}
