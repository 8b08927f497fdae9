/* MiniMalloc CSV: a header line that names the columns id, lower, upper, size in any order, then
 * one allocation per line, live in lower .. upper - 1. One tile whose memory is 0 .. capacity. */
#include "place/place.h"

#include <string.h>

enum column { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, N_COLUMNS };
static const char *const column_name[N_COLUMNS] = {"id", "lower", "upper", "size"};

struct csv {
    const char *path;
    uint32_t line, n_fields;
    int32_t field[N_COLUMNS]; /* position of each column */
    GError **error;
};

static bool csv_fail(const struct csv *c, const char *what) {
    diag_set(c->error, PLACE_CSV, c->path, c->line, what);
    return false;
}

static bool csv_header(struct csv *c, char *line) {
    for (uint32_t k = 0; k < N_COLUMNS; k++) c->field[k] = -1;
    char **field = g_strsplit(g_strstrip(line), ",", 0);
    for (c->n_fields = 0; field[c->n_fields] != NULL; c->n_fields++)
        for (uint32_t k = 0; k < N_COLUMNS; k++)
            if (strcmp(g_strstrip(field[c->n_fields]), column_name[k]) == 0)
                c->field[k] = (int32_t)c->n_fields;
    g_strfreev(field);
    for (uint32_t k = 0; k < N_COLUMNS; k++)
        if (c->field[k] < 0)
            return csv_fail(c, "the header must name the columns id, lower, upper and size");
    return true;
}

static bool csv_row(const struct csv *c, char *line, struct place_builder *b) {
    char **field = g_strsplit(g_strstrip(line), ",", 0);
    uint32_t value[N_COLUMNS] = {0};
    bool ok = g_strv_length(field) == c->n_fields || csv_fail(c, "has another number of fields");
    for (uint32_t k = COLUMN_LOWER; k < N_COLUMNS && ok; k++) {
        guint64 v;
        ok =
            g_ascii_string_to_unsigned(g_strstrip(field[c->field[k]]), 10, 0, G_MAXINT32, &v, NULL);
        if (!ok) csv_fail(c, "lower, upper and size must be whole numbers below 2^31");
        value[k] = (uint32_t)v;
    }
    if (ok && value[COLUMN_LOWER] >= value[COLUMN_UPPER])
        ok = csv_fail(c, "lower is not below upper");
    if (ok && value[COLUMN_SIZE] == 0) ok = csv_fail(c, "size is 0");
    if (ok)
        place_builder_add(b, 0,
                          &(struct place_request){.bytes = value[COLUMN_SIZE],
                                                  .first_step = value[COLUMN_LOWER],
                                                  .last_step = value[COLUMN_UPPER] - 1,
                                                  .name = place_builder_name(
                                                      b, g_strstrip(field[c->field[COLUMN_ID]]))});
    g_strfreev(field);
    return ok;
}

struct place_problem *place_csv_read(const char *path, uint32_t capacity_bytes, GError **error) {
    uint8_t *data;
    size_t size;
    if (!file_read(path, 64 << 20, &data, &size, error)) return NULL;
    char *text = g_strndup((const char *)data, size);
    g_free(data);
    char **line = g_strsplit(text, "\n", 0);
    g_free(text);
    const struct place_memory m = {.end = capacity_bytes,
                                   .interleaved_base = capacity_bytes,
                                   .n_ranges = 1,
                                   .range_end = {capacity_bytes}};
    struct place_builder *b = place_builder_new(1, &m);
    struct csv c = {.path = path, .line = 1, .error = error};
    bool ok = line[0] != NULL ? csv_header(&c, line[0]) : csv_fail(&c, "the file is empty");
    for (uint32_t k = 1; ok && line[k] != NULL; k++) {
        c.line = k + 1;
        if (*g_strstrip(line[k]) != 0) ok = csv_row(&c, line[k], b);
    }
    g_strfreev(line);
    struct place_problem *p = place_builder_finish(b, NULL);
    if (ok && place_problem_check(p, error)) return p;
    place_problem_free(p);
    return NULL;
}
