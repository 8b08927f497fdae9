/* Layouts: elements of a row-major tensor to and from their places on the tiles, slice by slice. Tiles
 * run in parallel; a slice is a nest of loops whose innermost is chosen so that runs that are
 * contiguous on both sides are copied at once. */
#include "runtime/session_impl.h"

#include "target/target.h"

#include <string.h>

void session_index_slices(struct session *s, uint32_t binding) {
    const struct package *p = s->p;
    const struct package_binding *b = &p->bindings[binding];
    const uint32_t n = p->meta.n_tiles;
    struct slice_index *x = &s->slices[binding];
    x->first = g_new0(uint32_t, n + 2);
    x->slice = g_new0(uint32_t, b->end_slice - b->first_slice + 1);
    for (uint32_t i = b->first_slice; i < b->end_slice; i++) x->first[p->slices[i].tile + 2]++;
    for (uint32_t t = 0; t < n; t++) x->first[t + 2] += x->first[t + 1];
    for (uint32_t i = b->first_slice; i < b->end_slice; i++)
        x->slice[x->first[p->slices[i].tile + 1]++] = i;
}

struct move {
    struct session *s;
    uint32_t binding, bytes; /* of an element */
    uint8_t *tensor;
    bool gather;
};

/* A slice with its loops sorted: the innermost last. */
struct nest {
    uint32_t n;
    uint32_t count[PACKAGE_SLICE_DIMS];
    uint64_t tensor_step[PACKAGE_SLICE_DIMS];
    uint32_t mem_step[PACKAGE_SLICE_DIMS];
};

static void nest_add(struct nest *n, const struct package_slice *s, uint32_t d) {
    n->count[n->n] = s->count[d];
    n->tensor_step[n->n] = s->tensor_step[d];
    n->mem_step[n->n] = s->mem_step[d];
    n->n++;
}

static struct nest nest_of(const struct package_slice *s, uint32_t bytes) {
    uint32_t inner = 0;
    for (uint32_t d = 0; d < s->n_dims; d++) {
        const bool run = s->tensor_step[d] == 1 && s->mem_step[d] == bytes;
        const bool best_run = s->tensor_step[inner] == 1 && s->mem_step[inner] == bytes;
        if (run > best_run || (run == best_run && s->count[d] > s->count[inner])) inner = d;
    }
    struct nest n = {0};
    for (uint32_t d = 0; d < s->n_dims; d++)
        if (d != inner) nest_add(&n, s, d);
    if (s->n_dims != 0) nest_add(&n, s, inner);
    return n;
}

static inline void copy_element(uint8_t *to, const uint8_t *from, uint32_t bytes) {
    switch (bytes) {
    case 1: *to = *from; break;
    case 2: memcpy(to, from, 2); break;
    default: memcpy(to, from, 4); break;
    }
}

/* The innermost loop: `n` elements. */
static void move_run(const struct move *m, uint32_t tile, uint8_t *memory, uint32_t address,
                     uint64_t element, const struct nest *nest) {
    const uint32_t last = nest->n - 1, bytes = m->bytes;
    const uint32_t count = nest->n != 0 ? nest->count[last] : 1;
    const uint64_t tensor_step = nest->n != 0 ? nest->tensor_step[last] : 1;
    const uint32_t mem_step = nest->n != 0 ? nest->mem_step[last] : bytes;
    uint8_t *at = memory + (address - TARGET_SRAM_BASE), *from = m->tensor + element * bytes;
    const bool contiguous = tensor_step == 1 && mem_step == bytes;
    if (contiguous) {
        if (m->gather) memcpy(from, at, (size_t)count * bytes);
        else memcpy(at, from, (size_t)count * bytes);
    } else {
        for (uint32_t i = 0; i < count; i++) {
            uint8_t *a = at + (size_t)i * mem_step, *b = from + i * tensor_step * bytes;
            if (m->gather) copy_element(b, a, bytes);
            else copy_element(a, b, bytes);
        }
    }
    if (m->gather) return;
    const struct session *s = m->s;
    if (mem_step == bytes) {
        s->f->memory_touched(s->d, tile, address, count * bytes);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        s->f->memory_touched(s->d, tile, address + i * mem_step, bytes);
}

static void move_slice(const struct move *m, const struct package_slice *s, uint8_t *memory) {
    const struct nest nest = nest_of(s, m->bytes);
    uint32_t index[PACKAGE_SLICE_DIMS] = {0};
    for (;;) {
        uint64_t element = s->tensor_offset;
        uint32_t address = s->address;
        for (uint32_t d = 0; d + 1 < nest.n; d++) {
            element += index[d] * nest.tensor_step[d];
            address += index[d] * nest.mem_step[d];
        }
        move_run(m, s->tile, memory, address, element, &nest);
        uint32_t d = nest.n > 0 ? nest.n - 1 : 0;
        while (d-- > 0) {
            if (++index[d] < nest.count[d]) break;
            index[d] = 0;
        }
        if (d == UINT32_MAX) return;
    }
}

static void move_tile(uint32_t t, uint32_t thread, void *context) {
    (void)thread;
    const struct move *m = context;
    const struct slice_index *x = &m->s->slices[m->binding];
    if (x->first[t] == x->first[t + 1]) return;
    uint8_t *memory = m->s->f->memory(m->s->d, t);
    for (uint32_t i = x->first[t]; i < x->first[t + 1]; i++)
        move_slice(m, &m->s->p->slices[x->slice[i]], memory);
}

void session_scatter(struct session *s, uint32_t binding, const uint8_t *tensor) {
    struct move m = {.s = s, .binding = binding, .tensor = (uint8_t *)tensor,
                     .bytes = package_format_bytes(s->p->bindings[binding].format)};
    par_for(s->p->meta.n_tiles, move_tile, &m);
}

void session_gather(struct session *s, uint32_t binding, uint8_t *tensor) {
    struct move m = {.s = s, .binding = binding, .tensor = tensor, .gather = true,
                     .bytes = package_format_bytes(s->p->bindings[binding].format)};
    par_for(s->p->meta.n_tiles, move_tile, &m);
}
