/* session_impl: state of a session. Private to the room. */
#ifndef IPU_RUNTIME_SESSION_IMPL_H
#define IPU_RUNTIME_SESSION_IMPL_H

#include "runtime/runtime.h"

/* Slices of one binding by tile. */
struct slice_index {
    uint32_t *first; /* [n_tiles + 1] */
    uint32_t *slice; /* package slice numbers */
};
struct session {
    const struct device_functions *f;
    struct device *d;
    const struct package *p;
    bool *set; /* [n_bindings] */
    struct slice_index *slices;
    bool ran;
};

void session_index_slices(struct session *s, uint32_t binding);
/* Row-major tensor to the tiles, and back. */
void session_scatter(struct session *s, uint32_t binding, const uint8_t *tensor);
void session_gather(struct session *s, uint32_t binding, uint8_t *tensor);

#endif
