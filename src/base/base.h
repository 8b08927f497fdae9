/* base: what every room needs and GLib does not give.
 *
 * In:   nothing of the other rooms.
 * Out:  arenas, tile sets, deterministic parallel loops, diagnostics, safe reading and writing of
 *       files, a counter-based random generator.
 * Units: sizes in bytes. Threads: every function is safe on distinct objects; par_for runs its
 *       body on several threads. Errors: GError in the domain diag_quark(), whose code is the
 *       number of a row of diag.def; out of memory aborts in one place (base_oom).
 */
#ifndef IPU_BASE_H
#define IPU_BASE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline uint32_t ceil_div_u32(uint32_t a, uint32_t b) {
    return a / b + (a % b != 0);
}
static inline uint64_t ceil_div_u64(uint64_t a, uint64_t b) {
    return a / b + (a % b != 0);
}
/* `align` is a power of two. */
static inline uint32_t align_up_u32(uint32_t v, uint32_t align) {
    return (v + align - 1) & ~(align - 1);
}
static inline uint64_t align_up_u64(uint64_t v, uint64_t align) {
    return (v + align - 1) & ~(align - 1);
}

/* --- Diagnostics: wrong input. One row of diag.def each, number and text stable. --- */

enum diag_code {
#define DIAG(number, name, text) DIAG_##name = number,
#include "base/diag.def"
#undef DIAG
};

#define DIAG(number, name, text) \
    static const char DIAG_TEXT_##name[] __attribute__((unused)) = text;
#include "base/diag.def"
#undef DIAG

GQuark diag_quark(void);

/* Raises the diagnostic NAME of diag.def; the arguments are those of its text. */
#define diag_set(error, name, ...) \
    g_set_error((error), diag_quark(), DIAG_##name, DIAG_TEXT_##name, ##__VA_ARGS__)

/* --- Arena: memory freed all at once. Not thread-safe; one per compile, one per worker. --- */

struct arena;
struct arena *arena_new(void);
void arena_free(struct arena *a);          /* NULL is allowed */
void arena_reset(struct arena *a);         /* frees all blocks but keeps the arena */
/* Zeroed, aligned to 16. Never NULL (base_oom). */
void *arena_alloc(struct arena *a, size_t size_bytes);
void *arena_copy(struct arena *a, const void *data, size_t size_bytes);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *format, ...) G_GNUC_PRINTF(2, 3);
size_t arena_bytes(const struct arena *a); /* bytes held, for reports */
#define arena_new_array(a, type, n) ((type *)arena_alloc((a), sizeof(type) * (size_t)(n)))

_Noreturn void base_oom(size_t size_bytes);
/* Our bug: prints where and why, dumps nothing, aborts. Stays on in every build. */
_Noreturn void base_bug(const char *file, int line, const char *what);
#define BUG_ON(cond)                                                                              \
    do {                                                                                          \
        if (__builtin_expect(!!(cond), 0)) base_bug(__FILE__, __LINE__, #cond);                   \
    } while (0)

/* --- Tile sets: one bit per logical tile, 1,472 = 23 x 64. --- */

enum { TILESET_WORDS = 23, TILESET_BITS = TILESET_WORDS * 64 };
struct tileset {
    uint64_t w[TILESET_WORDS];
};
static inline void tileset_add(struct tileset *s, uint32_t t) {
    s->w[t >> 6] |= UINT64_C(1) << (t & 63);
}
static inline void tileset_remove(struct tileset *s, uint32_t t) {
    s->w[t >> 6] &= ~(UINT64_C(1) << (t & 63));
}
static inline bool tileset_has(const struct tileset *s, uint32_t t) {
    return (s->w[t >> 6] >> (t & 63)) & 1;
}
uint32_t tileset_count(const struct tileset *s);
bool tileset_equal(const struct tileset *a, const struct tileset *b);
/* The next member at or after `from`, or TILESET_BITS. */
uint32_t tileset_next(const struct tileset *s, uint32_t from);

/* --- Deterministic parallel loops (OpenMP underneath, here only). --- */

/* Number of threads of later par_for calls: --threads N; 0 = number of cores. */
void par_set_threads(uint32_t n);
uint32_t par_threads(void);
/* Calls body(i, thread, context) for i in 0..n-1, items handed out dynamically in order; `thread`
 * is 0..par_threads()-1. Results must go to slots by i; reductions run afterwards in item order. */
typedef void par_body(uint32_t i, uint32_t thread, void *context);
void par_for(uint32_t n, par_body *body, void *context);

/* --- Files. --- */

/* Reads a whole regular file; the result is g_free'd. Fails above max_bytes (0 = 4 GiB). */
bool file_read(const char *path, size_t max_bytes, uint8_t **ret_data, size_t *ret_size,
               GError **error);
/* Writes to a temporary name in the same folder, syncs, renames: old file or new, never half. Links,
 * devices and pipes are refused, a rename would replace them. */
bool file_write_atomic(const char *path, const void *data, size_t size, GError **error);

/* --- JSON. --- */

/* Appends `s` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD, and the result
 * may stand inside a script element of a page. */
void json_string(const char *s, GString *out);

/* --- Random numbers that can be made slice by slice. --- */

/* Counter based: a 64-bit value for (seed, stream, index); splitmix64 finaliser over the three,
 * documented in docs/random.md and checked by tests. */
uint64_t rand_u64(uint64_t seed, uint64_t stream, uint64_t index);
/* Stream number of a tensor name (FNV-1a, 64 bits). */
uint64_t rand_stream(const char *name);
/* Uniform in [0, 1) with 24 bits; standard normal by Box-Muller over the two halves of rand_u64. */
float rand_uniform(uint64_t seed, uint64_t stream, uint64_t index);
float rand_normal(uint64_t seed, uint64_t stream, uint64_t index);

#endif
