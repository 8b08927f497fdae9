/* Readers of the two file forms: rows (little-endian words) and problems (JSON, schema version 4).
 * Both may be compressed with zstd. Readers trust nothing: sizes are bounded before anything is
 * allocated, and every number is checked for its range. */
#include "fabric/fabric.h"

#include <json-glib/json-glib.h>
#include <string.h>
#include <zstd.h>

enum {
    ROWS_MAGIC = 0x31524f57,
    MAX_FILE_BYTES = 1 << 30,
    SCHEMA_VERSION = 4,
};

/* --- Bytes. --- */

static bool unpack(const char *path, uint8_t **data, size_t *size, GError **error) {
    const uint32_t magic = ZSTD_MAGICNUMBER;
    if (*size < 4 || memcmp(*data, &magic, 4) != 0) return true;
    GByteArray *out = g_byte_array_new();
    ZSTD_DCtx *z = ZSTD_createDCtx();
    ZSTD_inBuffer in = {*data, *size, 0};
    const size_t chunk = ZSTD_DStreamOutSize();
    uint8_t *buffer = g_malloc(chunk);
    const char *problem = NULL;
    size_t left = 1;
    while (problem == NULL && (in.pos < in.size || left == SIZE_MAX)) {
        ZSTD_outBuffer to = {buffer, chunk, 0};
        left = ZSTD_decompressStream(z, &to, &in);
        if (ZSTD_isError(left)) {
            problem = ZSTD_getErrorName(left);
            break;
        }
        g_byte_array_append(out, buffer, (guint)to.pos);
        if (out->len > MAX_FILE_BYTES) problem = "larger than 1 GiB unpacked";
        if (left != 0 && in.pos == in.size && to.pos < to.size) problem = "cut short";
        if (left != 0 && in.pos == in.size && to.pos == to.size)
            left = SIZE_MAX; /* more to drain */
    }
    g_free(buffer);
    ZSTD_freeDCtx(z);
    g_free(*data);
    *size = out->len;
    *data = g_byte_array_free(out, FALSE);
    if (problem == NULL) return true;
    g_free(*data);
    *data = NULL;
    diag_set(error, FABRIC_ZSTD, path, problem);
    return false;
}

static bool read_bytes(const char *path, uint8_t **ret_data, size_t *ret_size, GError **error) {
    return file_read(path, MAX_FILE_BYTES, ret_data, ret_size, error) &&
           unpack(path, ret_data, ret_size, error);
}

/* --- Rows. --- */

void fabric_rows_clear(struct fabric_rows *r) {
    g_free(r->tile);
    g_free(r->base);
    g_free(r->slots);
    g_free(r->first);
    g_free(r->words);
    *r = (struct fabric_rows){0};
}

/* Reads the tiles of `w`; returns what is wrong, or NULL. */
static const char *parse_rows(const uint32_t *w, size_t n, struct fabric_rows *r) {
    if (n < 3 || w[0] != ROWS_MAGIC) return "no magic number";
    r->n_tiles = w[1];
    r->horizon = w[2];
    if (r->n_tiles > TARGET_N_TILES) return "more tiles than the machine has";
    r->tile = g_new(uint16_t, r->n_tiles + 1);
    r->base = g_new(uint32_t, r->n_tiles + 1);
    r->slots = g_new(uint32_t, r->n_tiles + 1);
    r->first = g_new0(uint32_t, r->n_tiles + 1);
    r->words = g_new(uint32_t, n);
    size_t at = 3;
    for (uint32_t t = 0; t < r->n_tiles; t++) {
        if (n - at < 4) return "cut short";
        const uint32_t active = w[at], words = w[at + 3];
        if (active > 1) return "damaged tile header";
        r->tile[r->n_active] = (uint16_t)t;
        r->base[r->n_active] = w[at + 1];
        r->slots[r->n_active] = w[at + 2];
        at += 4;
        if (n - at < words) return "cut short";
        memcpy(r->words + r->first[r->n_active], w + at, words * sizeof *w);
        at += words;
        if (active == 0) continue;
        r->first[r->n_active + 1] = r->first[r->n_active] + words;
        r->n_active++;
    }
    return at == n ? NULL : "bytes behind the last tile";
}

bool fabric_rows_read(const char *path, struct fabric_rows *ret_rows, GError **error) {
    uint8_t *data;
    size_t size;
    if (!read_bytes(path, &data, &size, error)) return false;
    struct fabric_rows r = {0};
    const char *problem = size % 4 == 0
                              ? parse_rows((const uint32_t *)(const void *)data, size / 4, &r)
                              : "no whole number of words";
    g_free(data);
    if (problem != NULL) {
        fabric_rows_clear(&r);
        diag_set(error, FABRIC_ROWS_BAD, path, problem);
        return false;
    }
    *ret_rows = r;
    return true;
}

bool fabric_rows_write(const char *path, const struct fabric_rows *r, GError **error) {
    GArray *w = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    const uint32_t head[] = {ROWS_MAGIC, r->n_tiles, r->horizon};
    g_array_append_vals(w, head, ARRAY_LEN(head));
    for (uint32_t t = 0, i = 0; t < r->n_tiles; t++) {
        const bool active = i < r->n_active && r->tile[i] == t;
        const uint32_t n = active ? r->first[i + 1] - r->first[i] : 0;
        const uint32_t tile[] = {active, active ? r->base[i] : 0, active ? r->slots[i] : 0, n};
        g_array_append_vals(w, tile, ARRAY_LEN(tile));
        if (active) g_array_append_vals(w, r->words + r->first[i], n);
        i += active;
    }
    const size_t size = (size_t)w->len * sizeof(uint32_t);
    if (!g_str_has_suffix(path, ".zst")) {
        const bool ok = file_write_atomic(path, w->data, size, error);
        g_array_free(w, TRUE);
        return ok;
    }
    const size_t room = ZSTD_compressBound(size);
    uint8_t *packed = g_malloc(room);
    const size_t n = ZSTD_compress(packed, room, w->data, size, ZSTD_CLEVEL_DEFAULT);
    BUG_ON(ZSTD_isError(n));
    const bool ok = file_write_atomic(path, packed, n, error);
    g_free(packed);
    g_array_free(w, TRUE);
    return ok;
}

/* --- Problems. --- */

/* Integer member in [min, max]; false when absent or something else. */
static bool get_int(JsonObject *o, const char *name, int64_t max, uint32_t *ret) {
    JsonNode *node = json_object_get_member(o, name);
    if (node == NULL || !JSON_NODE_HOLDS_VALUE(node) ||
        json_node_get_value_type(node) != G_TYPE_INT64)
        return false;
    const int64_t v = json_node_get_int(node);
    if (v < 0 || v > max) return false;
    *ret = (uint32_t)v;
    return true;
}

static JsonArray *get_array(JsonObject *o, const char *name) {
    JsonNode *node = json_object_get_member(o, name);
    return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

/* Element k as an integer in [0, max]. */
static bool array_int(JsonArray *a, guint k, int64_t max, uint32_t *ret) {
    if (k >= json_array_get_length(a)) return false;
    JsonNode *node = json_array_get_element(a, k);
    if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_INT64)
        return false;
    const int64_t v = json_node_get_int(node);
    if (v < 0 || v > max) return false;
    *ret = (uint32_t)v;
    return true;
}

static const char *parse_receiver(JsonArray *list, guint k, struct fabric_expect *e,
                                  uint32_t words) {
    JsonNode *node = json_array_get_element(list, k);
    if (!JSON_NODE_HOLDS_ARRAY(node)) return "a destination is not a list";
    JsonArray *pair = json_node_get_array(node);
    uint32_t tile, address;
    if (!array_int(pair, 0, TARGET_N_TILES - 1, &tile)) return "no such destination tile";
    if (!array_int(pair, 1, TARGET_SRAM_END, &address)) return "destination address outside SRAM";
    if (address % 4 != 0 || !sram_range_ok(address, 4 * (uint64_t)words))
        return "destination outside SRAM or not on a word";
    e->tile[e->n_receivers] = (uint16_t)tile;
    e->address[e->n_receivers++] = address;
    return NULL;
}

/* Appends one transfer (arrays hold enough); returns what is wrong, or NULL. */
static const char *parse_transfer(JsonNode *node, struct fabric_expect *e) {
    if (!JSON_NODE_HOLDS_OBJECT(node)) return "is not an object";
    JsonObject *o = json_node_get_object(node);
    uint32_t source, words, address;
    if (!get_int(o, "source", TARGET_N_TILES - 1, &source)) return "no such source tile";
    if (!get_int(o, "words", (TARGET_SRAM_END - TARGET_SRAM_BASE) / 4, &words) || words == 0)
        return "number of words missing or out of range";
    JsonArray *sources = get_array(o, "source_addresses");
    if (sources == NULL || !array_int(sources, 0, TARGET_SRAM_END, &address))
        return "no source address";
    if (address % 4 != 0 || !sram_range_ok(address, 4 * (uint64_t)words))
        return "source outside SRAM or not on a word";
    JsonArray *list = get_array(o, "destinations");
    if (list == NULL || json_array_get_length(list) == 0) return "no destinations";
    const uint32_t x = e->n_transfers++;
    e->source[x] = (uint16_t)source;
    e->source_address[x] = address;
    e->words[x] = words;
    for (guint k = 0; k < json_array_get_length(list); k++) {
        const char *problem = parse_receiver(list, k, e, words);
        if (problem != NULL) return problem;
    }
    e->first[x + 1] = e->n_receivers;
    return NULL;
}

/* Upper bound of the receivers of a list of transfers. */
static size_t count_receivers(JsonArray *transfers) {
    size_t n = 0;
    for (guint k = 0; k < json_array_get_length(transfers); k++) {
        JsonNode *node = json_array_get_element(transfers, k);
        if (!JSON_NODE_HOLDS_OBJECT(node)) continue;
        JsonArray *list = get_array(json_node_get_object(node), "destinations");
        if (list != NULL) n += json_array_get_length(list);
    }
    return n;
}

static bool parse_phase(const char *path, uint32_t phase, JsonArray *transfers,
                        struct fabric_expect *ret, GError **error) {
    const guint n = json_array_get_length(transfers);
    const size_t receivers = count_receivers(transfers);
    struct fabric_expect e = {.source = g_new(uint16_t, n + 1),
                              .source_address = g_new(uint32_t, n + 1),
                              .words = g_new(uint32_t, n + 1),
                              .first = g_new0(uint32_t, n + 1),
                              .tile = g_new(uint16_t, receivers + 1),
                              .address = g_new(uint32_t, receivers + 1)};
    for (guint k = 0; k < n; k++) {
        const char *problem = parse_transfer(json_array_get_element(transfers, k), &e);
        if (problem == NULL) continue;
        fabric_expect_clear(&e);
        diag_set(error, FABRIC_TRANSFER_BAD, path, phase, k, problem);
        return false;
    }
    *ret = e;
    return true;
}

/* Finds the phase with the given number among the root's phases. */
static bool parse_problem(const char *path, JsonNode *root, uint32_t phase,
                          struct fabric_expect *ret, GError **error) {
    uint32_t version;
    if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
        diag_set(error, FABRIC_PROBLEM_BAD, path, "no object");
        return false;
    }
    JsonObject *o = json_node_get_object(root);
    JsonArray *phases = get_array(o, "phases");
    if (!get_int(o, "schema_version", INT32_MAX, &version) || version != SCHEMA_VERSION ||
        phases == NULL) {
        diag_set(error, FABRIC_PROBLEM_BAD, path, "schema version or phases missing");
        return false;
    }
    GString *numbers = g_string_new(NULL);
    bool found = false, ok = false;
    for (guint k = 0; k < json_array_get_length(phases) && !found; k++) {
        JsonNode *node = json_array_get_element(phases, k);
        uint32_t number;
        if (!JSON_NODE_HOLDS_OBJECT(node)) continue;
        JsonObject *p = json_node_get_object(node);
        JsonArray *transfers = get_array(p, "transfers");
        if (!get_int(p, "phase", INT32_MAX, &number) || transfers == NULL) continue;
        g_string_append_printf(numbers, "%s%u", numbers->len > 0 ? ", " : "", number);
        found = number == phase;
        if (found) ok = parse_phase(path, phase, transfers, ret, error);
    }
    if (!found)
        diag_set(error, FABRIC_PHASE_MISSING, path, phase,
                 numbers->len > 0 ? numbers->str : "none");
    g_string_free(numbers, TRUE);
    return ok;
}

bool fabric_expect_read(const char *path, uint32_t phase, struct fabric_expect *ret_expect,
                        GError **error) {
    uint8_t *data;
    size_t size;
    if (!read_bytes(path, &data, &size, error)) return false;
    JsonParser *parser = json_parser_new_immutable();
    GError *problem = NULL;
    bool ok = json_parser_load_from_data(parser, (const char *)data, (gssize)size, &problem);
    g_free(data);
    if (!ok) {
        diag_set(error, FABRIC_PROBLEM_BAD, path, problem->message);
        g_error_free(problem);
    } else {
        ok = parse_problem(path, json_parser_get_root(parser), phase, ret_expect, error);
    }
    g_object_unref(parser);
    return ok;
}
