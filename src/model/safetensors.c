/* Safetensors: the header is parsed with json-glib, checked entry by entry, then the tensors are
 * sorted by offset so that overlaps and gaps show. Data is mapped, never copied. */
#include "model/model.h"

#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_HEADER_BYTES = 100 << 20 };

struct tensor_file {
    char *path;
    GMappedFile *map;
    struct arena *arena;
    struct model_tensor *tensors;
    uint32_t n;
    GHashTable *by_name; /* name -> index + 1 */
};

static const struct {
    const char *text;
    uint32_t bytes;
} dtypes[] = {
#define DTYPE(name, text, bytes) {text, bytes},
    MODEL_DTYPES(DTYPE)
#undef DTYPE
};

const char *model_dtype_name(enum model_dtype dtype) {
    return dtypes[dtype].text;
}

uint32_t model_dtype_bytes(enum model_dtype dtype) {
    return dtypes[dtype].bytes;
}

static bool dtype_find(const char *text, enum model_dtype *ret) {
    for (size_t i = 0; i < ARRAY_LEN(dtypes); i++)
        if (strcmp(dtypes[i].text, text) == 0) {
            *ret = (enum model_dtype)i;
            return true;
        }
    return false;
}

char *model_shape_text(const uint64_t *shape, uint32_t n_dims) {
    GString *s = g_string_new("[");
    for (uint32_t i = 0; i < n_dims; i++)
        g_string_append_printf(s, "%s%" G_GUINT64_FORMAT, i != 0 ? ", " : "", shape[i]);
    g_string_append_c(s, ']');
    return g_string_free(s, false);
}

/* A JSON array of non-negative integers into out[0..max); returns the count or -1. */
static int read_integers(JsonObject *entry, const char *member, uint64_t *out, int max) {
    JsonNode *node = json_object_get_member(entry, member);
    if (node == NULL || !JSON_NODE_HOLDS_ARRAY(node)) return -1;
    JsonArray *array = json_node_get_array(node);
    const guint n = json_array_get_length(array);
    if ((int)n > max || n > 1000) return -1;
    for (guint i = 0; i < n; i++) {
        JsonNode *item = json_array_get_element(array, i);
        if (!JSON_NODE_HOLDS_VALUE(item) || json_node_get_value_type(item) != G_TYPE_INT64) return -1;
        const gint64 v = json_node_get_int(item);
        if (v < 0) return -1;
        out[i] = (uint64_t)v;
    }
    return (int)n;
}

/* One header entry; the reason of a refusal is returned, NULL when it is good. */
static const char *read_entry(JsonObject *entry, const uint8_t *data, uint64_t data_bytes,
                              struct model_tensor *t) {
    JsonNode *dtype = json_object_get_member(entry, "dtype");
    if (dtype == NULL || !JSON_NODE_HOLDS_VALUE(dtype) ||
        json_node_get_value_type(dtype) != G_TYPE_STRING)
        return "has no dtype";
    if (!dtype_find(json_node_get_string(dtype), &t->dtype)) return "has an unknown dtype";
    const int n_dims = read_integers(entry, "shape", t->shape, MODEL_MAX_DIMS);
    if (n_dims < 0) return "has no valid shape (at most 8 axes of non-negative integers)";
    t->n_dims = (uint32_t)n_dims;
    uint64_t range[2];
    if (read_integers(entry, "data_offsets", range, 2) != 2) return "has no valid data_offsets";
    if (range[0] > range[1] || range[1] > data_bytes) return "has data outside the file";
    uint64_t bytes = model_dtype_bytes(t->dtype);
    for (int i = 0; i < n_dims; i++)
        if (__builtin_mul_overflow(bytes, t->shape[i], &bytes)) return "has a shape that overflows";
    if (bytes != range[1] - range[0]) return "has data of another size than its shape";
    t->data = data + range[0];
    t->bytes = bytes;
    return NULL;
}

static int by_offset(const void *a, const void *b) {
    const struct model_tensor *x = a, *y = b;
    if (x->data != y->data) return (const char *)x->data < (const char *)y->data ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Every byte belongs to exactly one tensor. */
static bool check_order(struct tensor_file *f, const uint8_t *data, uint64_t data_bytes,
                        GError **error) {
    const uint8_t *end = data;
    for (uint32_t i = 0; i < f->n; i++) {
        const struct model_tensor *t = &f->tensors[i];
        if ((const uint8_t *)t->data != end) {
            diag_set(error, MODEL_TENSOR, f->path, t->name,
                     (const uint8_t *)t->data < end ? "overlaps the tensor before it"
                                                    : "leaves a gap before its data");
            return false;
        }
        end += t->bytes;
        g_hash_table_insert(f->by_name, (char *)t->name, GUINT_TO_POINTER(i + 1));
    }
    const uint64_t rest = data_bytes - (uint64_t)(end - data);
    if (rest != 0) diag_set(error, MODEL_TRAILING, f->path, rest);
    return rest == 0;
}

/* Notes the first member that an object has twice (the parser keeps the last one silently). */
struct members {
    GHashTable *seen; /* "object/name" */
    char *twice;
};

static void note_member(JsonParser *parser, JsonObject *object, const char *name, void *user) {
    (void)parser;
    struct members *m = user;
    if (!g_hash_table_add(m->seen, g_strdup_printf("%p/%s", (void *)object, name)) &&
        m->twice == NULL)
        m->twice = g_strdup(name);
}

static bool read_entries(struct tensor_file *f, JsonObject *root, const uint8_t *data,
                         uint64_t data_bytes, GError **error) {
    f->tensors = arena_new_array(f->arena, struct model_tensor, json_object_get_size(root) + 1);
    JsonObjectIter iter;
    const char *name;
    JsonNode *node;
    json_object_iter_init(&iter, root);
    while (json_object_iter_next(&iter, &name, &node)) {
        if (strcmp(name, "__metadata__") == 0) continue;
        struct model_tensor *t = &f->tensors[f->n];
        t->name = arena_strdup(f->arena, name);
        const char *reason = JSON_NODE_HOLDS_OBJECT(node)
                                 ? read_entry(json_node_get_object(node), data, data_bytes, t)
                                 : "is no object";
        if (reason != NULL) {
            diag_set(error, MODEL_TENSOR, f->path, name, reason);
            return false;
        }
        f->n++;
    }
    qsort(f->tensors, f->n, sizeof *f->tensors, by_offset);
    return check_order(f, data, data_bytes, error);
}

static bool read_header(struct tensor_file *f, GError **error) {
    const uint8_t *bytes = (const uint8_t *)g_mapped_file_get_contents(f->map);
    const uint64_t size = g_mapped_file_get_length(f->map);
    if (size < 8) {
        diag_set(error, MODEL_FORMAT, f->path, "shorter than the 8 bytes of its header size");
        return false;
    }
    uint64_t header;
    memcpy(&header, bytes, 8);
    header = GUINT64_FROM_LE(header);
    if (header > MAX_HEADER_BYTES || header > size - 8) {
        diag_set(error, MODEL_FORMAT, f->path, "the header is cut off or too large");
        return false;
    }
    const char *text = (const char *)bytes + 8;
    if (memchr(text, 0, header) != NULL || !g_utf8_validate(text, (gssize)header, NULL)) {
        diag_set(error, MODEL_FORMAT, f->path, "the header is not UTF-8 text");
        return false;
    }
    JsonParser *parser = json_parser_new();
    struct members members = {.seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    g_signal_connect(parser, "object-member", G_CALLBACK(note_member), &members);
    bool ok = false;
    GError *parse_error = NULL;
    JsonNode *root;
    if (!json_parser_load_from_data(parser, text, (gssize)header, &parse_error)) {
        diag_set(error, MODEL_FORMAT, f->path, parse_error->message);
        g_error_free(parse_error);
    } else if (members.twice != NULL) {
        diag_set(error, MODEL_TWICE, f->path, members.twice);
    } else if ((root = json_parser_get_root(parser)) == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
        diag_set(error, MODEL_FORMAT, f->path, "the header is no JSON object");
    } else {
        ok = read_entries(f, json_node_get_object(root), bytes + 8 + header, size - 8 - header, error);
    }
    g_object_unref(parser);
    g_hash_table_unref(members.seen);
    g_free(members.twice);
    return ok;
}

bool tensor_file_open(const char *path, struct tensor_file **ret, GError **error) {
    GError *map_error = NULL;
    if (g_file_test(path, G_FILE_TEST_EXISTS) && !g_file_test(path, G_FILE_TEST_IS_REGULAR)) {
        diag_set(error, FILE_NOT_REGULAR, path);
        return false;
    }
    GMappedFile *map = g_mapped_file_new(path, false, &map_error);
    if (map == NULL) {
        diag_set(error, FILE_OPEN, path,
                 map_error->domain == G_FILE_ERROR && map_error->code == G_FILE_ERROR_NOENT
                     ? "no such file"
                     : map_error->message);
        g_error_free(map_error);
        return false;
    }
    struct tensor_file *f = g_new0(struct tensor_file, 1);
    f->path = g_strdup(path);
    f->map = map;
    f->arena = arena_new();
    f->by_name = g_hash_table_new(g_str_hash, g_str_equal);
    if (!read_header(f, error)) {
        tensor_file_free(f);
        return false;
    }
    *ret = f;
    return true;
}

void tensor_file_free(struct tensor_file *f) {
    if (f == NULL) return;
    g_hash_table_unref(f->by_name);
    arena_free(f->arena);
    g_mapped_file_unref(f->map);
    g_free(f->path);
    g_free(f);
}

uint32_t tensor_file_count(const struct tensor_file *f) {
    return f->n;
}

const struct model_tensor *tensor_file_get(const struct tensor_file *f, uint32_t i) {
    BUG_ON(i >= f->n);
    return &f->tensors[i];
}

const struct model_tensor *tensor_file_find(const struct tensor_file *f, const char *name) {
    const guint i = GPOINTER_TO_UINT(g_hash_table_lookup(f->by_name, name));
    return i == 0 ? NULL : &f->tensors[i - 1];
}

const char *tensor_file_path(const struct tensor_file *f) {
    return f->path;
}

static char *header_text(const struct model_tensor *tensors, uint32_t n, gsize *ret_length) {
    JsonBuilder *b = json_builder_new();
    json_builder_begin_object(b);
    uint64_t offset = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct model_tensor *t = &tensors[i];
        json_builder_set_member_name(b, t->name);
        json_builder_begin_object(b);
        json_builder_set_member_name(b, "dtype");
        json_builder_add_string_value(b, model_dtype_name(t->dtype));
        json_builder_set_member_name(b, "shape");
        json_builder_begin_array(b);
        for (uint32_t d = 0; d < t->n_dims; d++)
            json_builder_add_int_value(b, (gint64)t->shape[d]);
        json_builder_end_array(b);
        json_builder_set_member_name(b, "data_offsets");
        json_builder_begin_array(b);
        json_builder_add_int_value(b, (gint64)offset);
        offset += t->bytes;
        json_builder_add_int_value(b, (gint64)offset);
        json_builder_end_array(b);
        json_builder_end_object(b);
    }
    json_builder_end_object(b);
    JsonNode *root = json_builder_get_root(b);
    JsonGenerator *generator = json_generator_new();
    json_generator_set_root(generator, root);
    char *text = json_generator_to_data(generator, ret_length);
    g_object_unref(generator);
    json_node_unref(root);
    g_object_unref(b);
    return text;
}

bool tensor_file_write(const char *path, const struct model_tensor *tensors, uint32_t n,
                       GError **error) {
    gsize length;
    char *text = header_text(tensors, n, &length);
    GByteArray *all = g_byte_array_new();
    const uint64_t padded = align_up_u64(length, 8); /* data aligned, header filled with blanks */
    const uint64_t header = GUINT64_TO_LE(padded);
    g_byte_array_append(all, (const guint8 *)&header, 8);
    g_byte_array_append(all, (const guint8 *)text, (guint)length);
    for (uint64_t i = length; i < padded; i++) g_byte_array_append(all, (const guint8 *)" ", 1);
    bool ok = true;
    uint64_t total = all->len;
    for (uint32_t i = 0; i < n; i++) total += tensors[i].bytes;
    if (total > G_MAXUINT) {
        diag_set(error, MODEL_TOO_LARGE, path, total);
        ok = false;
    }
    for (uint32_t i = 0; ok && i < n; i++)
        g_byte_array_append(all, tensors[i].data, (guint)tensors[i].bytes);
    ok = ok && file_write_atomic(path, all->data, all->len, error);
    g_byte_array_unref(all);
    g_free(text);
    return ok;
}
