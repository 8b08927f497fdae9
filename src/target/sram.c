/* SRAM contents: an anonymous mapping without reservation; bit ranges handled word by word. */
#include "target/sram.h"

#include <stdlib.h>
#include <sys/mman.h>

static void *map_zeroed(size_t bytes) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    if (p == MAP_FAILED) base_oom(bytes);
    return p;
}

struct sram *sram_new(uint32_t n_tiles) {
    struct sram *s = g_new0(struct sram, 1);
    s->n_tiles = n_tiles;
    s->bytes = map_zeroed((size_t)n_tiles * SRAM_STRIDE);
    s->written = map_zeroed((size_t)n_tiles * SRAM_WRITTEN_WORDS * 8);
    return s;
}

void sram_free(struct sram *s) {
    if (s == NULL) return;
    munmap(s->bytes, (size_t)s->n_tiles * SRAM_STRIDE);
    munmap(s->written, (size_t)s->n_tiles * SRAM_WRITTEN_WORDS * 8);
    g_free(s);
}

/* Bits of u64 number i that lie in the bit range [first, end). */
static uint64_t range_mask(uint32_t i, uint32_t first, uint32_t end) {
    const uint32_t lo = first > i * 64 ? first - i * 64 : 0;
    const uint32_t hi = end < i * 64 + 64 ? end - i * 64 : 64;
    const uint64_t below_hi = hi == 64 ? ~UINT64_C(0) : (UINT64_C(1) << hi) - 1;
    return below_hi & (~UINT64_C(0) << lo);
}

struct bit_range {
    uint32_t first, end; /* word indices of the touched words */
};

static struct bit_range touched(uint32_t address, uint32_t bytes) {
    BUG_ON(!sram_range_ok(address, bytes));
    const uint32_t offset = address - TARGET_SRAM_BASE;
    return (struct bit_range){offset / 4, (offset + bytes + 3) / 4};
}

void sram_mark_written(struct sram *s, uint32_t tile, uint32_t address, uint32_t bytes) {
    if (bytes == 0) return;
    const struct bit_range r = touched(address, bytes);
    uint64_t *w = sram_written(s, tile);
    for (uint32_t i = r.first / 64; i <= (r.end - 1) / 64; i++) w[i] |= range_mask(i, r.first, r.end);
}

void sram_mark_unwritten(struct sram *s, uint32_t tile, uint32_t address, uint32_t bytes) {
    if (bytes == 0) return;
    const struct bit_range r = touched(address, bytes);
    uint64_t *w = sram_written(s, tile);
    for (uint32_t i = r.first / 64; i <= (r.end - 1) / 64; i++)
        w[i] &= ~range_mask(i, r.first, r.end);
}

uint32_t sram_first_unwritten(const struct sram *s, uint32_t tile, uint32_t address,
                              uint32_t bytes) {
    if (bytes == 0) return UINT32_MAX;
    const struct bit_range r = touched(address, bytes);
    const uint64_t *w = sram_written(s, tile);
    for (uint32_t i = r.first / 64; i <= (r.end - 1) / 64; i++) {
        const uint64_t missing = range_mask(i, r.first, r.end) & ~w[i];
        if (missing != 0)
            return TARGET_SRAM_BASE + 4 * (i * 64 + (uint32_t)__builtin_ctzll(missing));
    }
    return UINT32_MAX;
}
