/* Tensors of the user: safetensors files to and from sessions, matched by name, shape and dtype. */
#include "cli/cli_net.h"

#include "model/model.h"
#include "runtime/diagnostic.h"
#include "numeric/num_format.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool check_shape(const struct model_tensor *t, const struct package_binding *b,
                        const char *path, GError **error) {
    bool same = t->n_dims == b->n_dims;
    for (uint32_t d = 0; same && d < b->n_dims; d++) same = t->shape[d] == b->shape[d];
    if (same) return true;
    uint64_t wanted[PACKAGE_MAX_DIMS];
    for (uint32_t d = 0; d < b->n_dims; d++) wanted[d] = b->shape[d];
    char *has = model_shape_text(t->shape, t->n_dims), *want = model_shape_text(wanted, b->n_dims);
    diag_set(error, CLI_TENSOR_SHAPE, path, b->name, has, want);
    g_free(has);
    g_free(want);
    return false;
}

/* Indices may come as any integers; F16 and F32 hold them too. */
static bool dtype_taken(enum model_dtype d, uint32_t format) {
    if (d == MODEL_F16 || d == MODEL_F32) return true;
    return format == TG_U32 && (d == MODEL_I32 || d == MODEL_U32 || d == MODEL_I64);
}

/* Element i of a tensor of a dtype that is taken. */
static float element(const struct model_tensor *t, uint64_t i) {
    const uint8_t *from = (const uint8_t *)t->data + i * model_dtype_bytes(t->dtype);
    union {
        uint16_t half;
        float single;
        int32_t i32;
        uint32_t u32;
        int64_t i64;
    } u;
    memcpy(&u, from, model_dtype_bytes(t->dtype));
    switch (t->dtype) {
    case MODEL_F16: return num_f16_to_f32(u.half);
    case MODEL_I32: return (float)u.i32;
    case MODEL_U32: return (float)u.u32;
    case MODEL_I64: return (float)u.i64;
    default: return u.single;
    }
}

float *cli_tensor_values(const struct tensor_file *f, const struct package_binding *b,
                         GError **error) {
    const char *path = tensor_file_path(f);
    const struct model_tensor *t = tensor_file_find(f, b->name);
    if (t == NULL) {
        diag_set(error, CLI_TENSOR_MISSING, path, b->name);
        return NULL;
    }
    if (!dtype_taken(t->dtype, b->format)) {
        diag_set(error, CLI_TENSOR_DTYPE, path, b->name, model_dtype_name(t->dtype),
                 b->format == TG_U32 ? "I32, U32, I64, F16 and F32" : "F16 and F32");
        return NULL;
    }
    if (!check_shape(t, b, path, error)) return NULL;
    const uint64_t n = package_binding_elements(b);
    float *v = g_new(float, n + 1);
    for (uint64_t i = 0; i < n; i++) v[i] = element(t, i);
    return v;
}

/* Largest magnitude of a format other than U32. */
static float format_most(const struct package_binding *b) {
    const uint8_t code = NUM_F8_MAX;
    float most = FLT_MAX;
    if (b->format == TG_F16) most = num_f16_to_f32(NUM_F16_MAX);
    else if (b->format != TG_F32) cli_decode(b, &code, 1, &most);
    return most;
}

uint64_t cli_range_check(const struct package_binding *b, const float *v, uint64_t n) {
    uint64_t i = 0;
    if (b->format == TG_U32) { /* whole numbers only */
        while (i < n && v[i] >= 0 && v[i] < 0x1p32f && v[i] == floorf(v[i])) i++;
    } else {
        const float most = format_most(b);
        while (i < n && v[i] >= -most && v[i] <= most) i++;
    }
    return i;
}

/* Names the first value that the storage format cannot hold. */
static bool check_range(const struct package_binding *b, const float *v, const char *path,
                        GError **error) {
    const uint64_t n = package_binding_elements(b), i = cli_range_check(b, v, n);
    if (i == n) return true;
    diag_set(error, CLI_TENSOR_RANGE, path, b->name, i, (double)v[i],
             package_format_name(b->format));
    return false;
}

static bool set_one(struct session *s, const struct tensor_file *f,
                    const struct package_binding *b, bool *ret_rounded, GError **error) {
    float *v = cli_tensor_values(f, b, error);
    if (v == NULL) return false;
    bool ok = check_range(b, v, tensor_file_path(f), error);
    if (ok) {
        uint8_t *data = g_malloc(b->data_bytes + 1);
        cli_encode(b, v, package_binding_elements(b), data);
        const enum model_dtype dtype = tensor_file_find(f, b->name)->dtype;
        *ret_rounded = *ret_rounded || (dtype == MODEL_F32 && b->format != TG_F32 && b->format != TG_U32);
        ok = session_set(s, b->name, data, b->data_bytes, error);
        g_free(data);
    }
    g_free(v);
    return ok;
}

static void notice_unused(const struct session *s, const struct tensor_file *f, uint32_t kinds) {
    for (uint32_t i = 0; i < tensor_file_count(f); i++) {
        const struct package_binding *b =
            package_binding_find(session_package(s), tensor_file_get(f, i)->name);
        if (b == NULL || !(kinds >> b->kind & 1))
            fprintf(stderr, "notice: %s: tensor '%s' is not used\n", tensor_file_path(f),
                    tensor_file_get(f, i)->name);
    }
}

bool cli_tensors_set(struct session *s, const char *path, uint32_t kinds, uint32_t required,
                     GError **error) {
    struct tensor_file *f;
    if (!tensor_file_open(path, &f, error)) return false;
    const struct package *p = session_package(s);
    bool ok = true, rounded = false;
    for (uint32_t i = 0; ok && i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        if (!(kinds >> b->kind & 1)) continue;
        if (!(required >> b->kind & 1) && tensor_file_find(f, b->name) == NULL) continue;
        ok = set_one(s, f, b, &rounded, error);
    }
    if (ok && rounded)
        fprintf(stderr, "notice: %s: F32 tensors are rounded to the storage format of the device\n",
                path);
    if (ok) notice_unused(s, f, kinds);
    tensor_file_free(f);
    return ok;
}

/* F8 outputs are written as F32: the formats of the device are not those of the file format. */
static bool get_one(struct session *s, const struct package_binding *b, struct model_tensor *ret,
                    GError **error) {
    const uint64_t n = package_binding_elements(b);
    const bool widen = b->format != TG_F16 && b->format != TG_F32;
    uint8_t *data = g_malloc(b->data_bytes + 1);
    *ret = (struct model_tensor){.name = b->name, .n_dims = b->n_dims, .data = data,
                                 .bytes = b->data_bytes,
                                 .dtype = b->format == TG_F16 ? MODEL_F16 : MODEL_F32};
    for (uint32_t d = 0; d < b->n_dims; d++) ret->shape[d] = b->shape[d];
    if (!session_get(s, b->name, data, b->data_bytes, error)) return false;
    if (!widen) return true;
    float *wide = g_new(float, n + 1);
    cli_decode(b, data, n, wide);
    g_free(data);
    ret->data = wide;
    ret->bytes = 4 * n;
    return true;
}

bool cli_tensors_write(struct session *s, const char *path, GError **error) {
    const struct package *p = session_package(s);
    struct model_tensor *t = g_new0(struct model_tensor, p->n_bindings + 1);
    uint32_t n = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        if (b->kind != TG_BIND_OUTPUT) continue;
        ok = get_one(s, b, &t[n++], error);
    }
    ok = ok && tensor_file_write(path, t, n, error);
    for (uint32_t i = 0; i < n; i++) g_free((void *)t[i].data);
    g_free(t);
    return ok;
}

bool cli_results_write(struct diagnostic *d, const struct package *p, const char *path,
                       GError **error) {
    const struct diagnostic_entry *e;
    const uint32_t n = diagnostic_entries(d, &e);
    struct model_tensor *tensors = g_new0(struct model_tensor, n + 1);
    struct arena *names = arena_new();
    for (uint32_t i = 0; i < n; i++) {
        const struct package_binding *b = package_result_find(p, e[i].name);
        tensors[i] = (struct model_tensor){
            .name = e[i].iterations > 1 ? arena_printf(names, "%s/%u", e[i].name, e[i].iteration)
                                        : e[i].name,
            .dtype = MODEL_F32, .n_dims = b->n_dims, .data = diagnostic_value(d, &e[i]),
            .bytes = e[i].elements * sizeof(float)};
        for (uint32_t k = 0; k < b->n_dims; k++) tensors[i].shape[k] = b->shape[k];
    }
    const bool ok = tensor_file_write(path, tensors, n, error);
    arena_free(names);
    g_free(tensors);
    return ok;
}
