/* device_session: hand-written tile graphs compiled and run on the device model, with contents that tell
 * their place. */
#ifndef IPU_TESTS_DEVICE_SESSION_H
#define IPU_TESTS_DEVICE_SESSION_H

#include "compile/compile.h"
#include "lower/lower.h"
#include "runtime/runtime.h"

#include "device_graph.h"

#include <string.h>

static inline struct package *compile(struct tile_graph *g, struct compile_options o) {
    GError *error = NULL;
    char *message = NULL;
    tg_lifetimes(g);
    if (!tg_verify(g, &message)) g_error("%s", message);
    struct compile_result r;
    compile_tile_graph(g, &o, &r, &error);
    g_assert_no_error(error);
    if (r.package == NULL) g_error("%s", r.report);
    struct package *p = g_steal_pointer(&r.package);
    compile_result_free(&r);
    return p;
}

static inline struct session *open_session(const struct package *p) {
    GError *error = NULL;
    struct session *s;
    const struct device_options o = {.n_tiles = p->meta.n_tiles, .marks = true};
    session_open(device_model(), p, &o, &s, &error);
    g_assert_no_error(error);
    return s;
}

static inline void fill_pattern(uint16_t *v, uint32_t n, uint32_t seed) {
    for (uint32_t i = 0; i < n; i++) v[i] = (uint16_t)rand_u64(seed, 1, i);
}

static inline void set_pattern(struct session *s, const char *name, uint32_t n, uint32_t seed) {
    GError *error = NULL;
    uint16_t *v = g_new(uint16_t, n);
    fill_pattern(v, n, seed);
    session_set(s, name, v, 2 * n, &error);
    g_assert_no_error(error);
    g_free(v);
}

static inline void run_ok(struct session *s) {
    GError *error = NULL;
    if (!session_run(s, &error)) {
        GString *text = g_string_new(NULL);
        session_fault_print(s, text);
        g_error("%s\n%s", error->message, text->str);
    }
}

static inline void expect_pattern(struct session *s, const char *name, uint32_t n, uint32_t seed) {
    GError *error = NULL;
    uint16_t *v = g_new(uint16_t, n), *w = g_new(uint16_t, n);
    fill_pattern(w, n, seed);
    session_get(s, name, v, 2 * n, &error);
    g_assert_no_error(error);
    g_assert_cmpmem(v, 2 * (int)n, w, 2 * (int)n);
    g_free(v);
    g_free(w);
}

/* A tensor of all blocks of an allocation, one slice each. */
static inline void bind_blocks(struct tile_graph *g, uint32_t alloc, uint8_t kind, const char *name) {
    const uint32_t n = g->allocs.bytes[alloc] / 2, blocks = g->allocs.blocks[alloc];
    dg_bind(g, alloc, kind, name);
    struct tg_binding *b = &g->bindings[g->n_bindings - 1];
    b->shape[0] = n * blocks;
    b->end_slice = b->first_slice + blocks;
    for (uint32_t i = 1; i < blocks; i++) {
        struct tg_slice *s = &g->slices[b->first_slice + i];
        *s = g->slices[b->first_slice];
        s->tensor_offset = (uint64_t)i * n;
        s->block = i;
    }
    g->n_slices = b->end_slice;
}

#endif
