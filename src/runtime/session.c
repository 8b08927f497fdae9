/* Sessions: what a caller does with a package, on top of the device table. */
#include "runtime/session_impl.h"

#include "target/target.h"

#include <string.h>

bool session_open(const struct device_functions *functions, const struct package *p,
                  const struct device_options *o, struct session **ret, GError **error) {
    struct device *d;
    if (!functions->open(o, &d, error)) return false;
    if (!functions->load(d, p, error)) {
        functions->close(d);
        return false;
    }
    struct session *s = g_new0(struct session, 1);
    s->f = functions;
    s->d = d;
    s->p = p;
    s->set = g_new0(bool, p->n_bindings + 1);
    s->slices = g_new0(struct slice_index, p->n_bindings + 1);
    for (uint32_t i = 0; i < p->n_bindings; i++) session_index_slices(s, i);
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        if (p->bindings[i].data == NULL) continue;
        session_scatter(s, i, p->bindings[i].data);
        s->set[i] = true;
    }
    *ret = s;
    return true;
}

void session_close(struct session *s) {
    if (s == NULL) return;
    s->f->close(s->d);
    for (uint32_t i = 0; i < s->p->n_bindings; i++) {
        g_free(s->slices[i].first);
        g_free(s->slices[i].slice);
    }
    g_free(s->slices);
    g_free(s->set);
    g_free(s);
}

/* The number of a binding of one of the kinds in `kinds` (bits). */
static bool find_binding(const struct session *s, const char *name, uint32_t kinds, uint64_t bytes,
                         uint32_t *ret, GError **error) {
    const struct package_binding *b = package_binding_find(s->p, name);
    if (b == NULL || !(kinds >> b->kind & 1)) {
        diag_set(error, RUNTIME_NO_TENSOR, name,
                 kinds >> TG_BIND_OUTPUT & 1 ? "output" : "input or parameter");
        return false;
    }
    if (b->data_bytes != bytes) {
        diag_set(error, RUNTIME_SIZE, name, bytes, b->data_bytes);
        return false;
    }
    *ret = (uint32_t)(b - s->p->bindings);
    return true;
}

bool session_set(struct session *s, const char *name, const void *data, uint64_t bytes,
                 GError **error) {
    uint32_t i;
    if (!find_binding(s, name, 1 << TG_BIND_INPUT | 1 << TG_BIND_PARAMETER, bytes, &i, error))
        return false;
    if (!package_indices_check(&s->p->bindings[i], data, error)) return false;
    session_scatter(s, i, data);
    s->set[i] = true;
    return true;
}

bool session_ready(const struct session *s, GError **error) {
    for (uint32_t i = 0; i < s->p->n_bindings; i++) {
        const struct package_binding *b = &s->p->bindings[i];
        if (b->kind == TG_BIND_OUTPUT || b->kind == TG_BIND_RESULT || s->set[i]) continue;
        diag_set(error, RUNTIME_NOT_SET, b->kind == TG_BIND_INPUT ? "input" : "parameter", b->name);
        return false;
    }
    return true;
}

bool session_run(struct session *s, GError **error) {
    if (!session_ready(s, error)) return false;
    s->ran = s->f->run(s->d);
    if (s->ran) return true;
    const struct device_fault *f = s->f->fault(s->d);
    diag_set(error, DEVICE_FAULT, f->text);
    return false;
}

bool session_get(struct session *s, const char *name, void *ret_data, uint64_t bytes,
                 GError **error) {
    uint32_t i;
    if (!find_binding(s, name, 1 << TG_BIND_OUTPUT, bytes, &i, error)) return false;
    if (!s->ran) {
        diag_set(error, RUNTIME_NOT_RUN, name);
        return false;
    }
    session_gather(s, i, ret_data);
    return true;
}

bool session_stream(struct session *s, const char *name, uint64_t block_elements,
                    session_sink *sink, void *user, GError **error) {
    const struct package_binding *b = package_binding_find(s->p, name);
    const uint64_t bytes = b != NULL ? b->data_bytes : 0;
    uint8_t *data = g_malloc(bytes + 1);
    const bool ok = session_get(s, name, data, bytes, error);
    if (ok) {
        const uint64_t n = package_binding_elements(b), size = package_format_bytes(b->format);
        for (uint64_t at = 0; at < n; at += block_elements)
            sink(data + at * size, at, MIN(block_elements, n - at), user);
    }
    g_free(data);
    return ok;
}

const struct device_functions *session_functions(const struct session *s) { return s->f; }
struct device *session_device(const struct session *s) { return s->d; }
const struct package *session_package(const struct session *s) { return s->p; }

bool session_cycles(const struct session *s, uint64_t *ret_cycles) {
    uint64_t entry = 0, end = 0;
    bool any = false;
    for (uint32_t t = 0; t < s->p->meta.n_tiles; t++) {
        uint32_t n;
        const struct device_mark *m = s->f->marks(s->d, t, &n);
        if (n < 2) continue;
        any = true;
        entry = MAX(entry, m[0].cycle);
        end = MAX(end, m[n - 1].cycle);
    }
    if (!any || !s->ran) return false;
    *ret_cycles = end > entry ? end - entry : 0;
    return true;
}
