/* sram: the contents of all tiles' SRAM, shared by the models of tile and fabric.
 *
 * One reserved mapping with a fixed stride per tile, touched on demand, and one written-bit per
 * 32-bit word beside it (a word is readable in strict mode once all of it or any part of it has been
 * written). Addresses are byte addresses TARGET_SRAM_BASE..TARGET_SRAM_END-1; callers check ranges
 * (a range outside is their fault to report, and a bug here). Tiles are logical numbers.
 * Threads: distinct tiles may be used by distinct threads.
 */
#ifndef IPU_TARGET_SRAM_H
#define IPU_TARGET_SRAM_H

#include "target/target.h"

#include <string.h>

enum {
    SRAM_BYTES = TARGET_SRAM_END - TARGET_SRAM_BASE,
    SRAM_STRIDE = (SRAM_BYTES + 0xffff) & ~0xffff, /* bytes between tiles: whole 64 KiB */
    SRAM_WRITTEN_WORDS = SRAM_BYTES / 4 / 64,      /* u64 of written-bits per tile */
};

struct sram {
    uint8_t *bytes;    /* [n_tiles][SRAM_STRIDE] */
    uint64_t *written; /* [n_tiles][SRAM_WRITTEN_WORDS], bit = word index */
    uint32_t n_tiles;
};

struct sram *sram_new(uint32_t n_tiles); /* all unwritten, contents zero */
void sram_free(struct sram *s);

static inline uint8_t *sram_at(const struct sram *s, uint32_t tile, uint32_t address) {
    return s->bytes + (size_t)tile * SRAM_STRIDE + (address - TARGET_SRAM_BASE);
}
static inline uint64_t *sram_written(const struct sram *s, uint32_t tile) {
    return s->written + (size_t)tile * SRAM_WRITTEN_WORDS;
}
static inline bool sram_range_ok(uint32_t address, uint64_t bytes) {
    return address >= TARGET_SRAM_BASE && (uint64_t)address + bytes <= TARGET_SRAM_END;
}
/* Marks every word touched by [address, address + bytes). */
void sram_mark_written(struct sram *s, uint32_t tile, uint32_t address, uint32_t bytes);
/* Forgets them: the range counts as never written. */
void sram_mark_unwritten(struct sram *s, uint32_t tile, uint32_t address, uint32_t bytes);
/* First address in the range whose word was never written, or UINT32_MAX. */
uint32_t sram_first_unwritten(const struct sram *s, uint32_t tile, uint32_t address,
                              uint32_t bytes);

#endif
