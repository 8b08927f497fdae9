/* Arena: a list of blocks, bump allocation in the newest. Large requests get a block of their own.
 * Nothing is freed singly. */
#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_BYTES = 1 << 20, ARENA_ALIGN = 16 };

struct block {
    struct block *next;
    size_t size, used;
    _Alignas(ARENA_ALIGN) unsigned char data[];
};

struct arena {
    struct block *top;
    size_t total;
};

_Noreturn void base_oom(size_t size_bytes) {
    fprintf(stderr, "ipu-stack: out of memory (%zu bytes wanted)\n", size_bytes);
    abort();
}

_Noreturn void base_bug(const char *file, int line, const char *what) {
    fprintf(stderr, "ipu-stack: internal error at %s:%d: %s\n", file, line, what);
    abort();
}

struct arena *arena_new(void) {
    struct arena *a = calloc(1, sizeof *a);
    if (a == NULL) base_oom(sizeof *a);
    return a;
}

void arena_reset(struct arena *a) {
    while (a->top != NULL) {
        struct block *b = a->top;
        a->top = b->next;
        free(b);
    }
    a->total = 0;
}

void arena_free(struct arena *a) {
    if (a == NULL) return;
    arena_reset(a);
    free(a);
}

static struct block *block_new(struct arena *a, size_t need) {
    const size_t size = need > BLOCK_BYTES / 4 ? need : BLOCK_BYTES;
    struct block *b = malloc(sizeof *b + size);
    if (b == NULL) base_oom(size);
    b->size = size;
    b->used = 0;
    a->total += size;
    /* A block made for one large request goes below the top, which keeps its free room. */
    if (size != BLOCK_BYTES && a->top != NULL) {
        b->next = a->top->next;
        a->top->next = b;
    } else {
        b->next = a->top;
        a->top = b;
    }
    return b;
}

void *arena_alloc(struct arena *a, size_t size_bytes) {
    if (size_bytes > SIZE_MAX / 2) base_oom(size_bytes);
    const size_t need = (size_bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    struct block *b = a->top;
    if (b == NULL || b->size - b->used < need) b = block_new(a, need);
    void *p = b->data + b->used;
    b->used += need;
    memset(p, 0, need);
    return p;
}

void *arena_copy(struct arena *a, const void *data, size_t size_bytes) {
    void *p = arena_alloc(a, size_bytes);
    if (size_bytes != 0) memcpy(p, data, size_bytes);
    return p;
}

char *arena_strdup(struct arena *a, const char *s) {
    return arena_copy(a, s, strlen(s) + 1);
}

char *arena_printf(struct arena *a, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text = g_strdup_vprintf(format, args);
    va_end(args);
    char *copy = arena_strdup(a, text);
    g_free(text);
    return copy;
}

size_t arena_bytes(const struct arena *a) {
    return a->total;
}
