/* Growing a tile graph: rows of structs while it is built, columns when it is finished; names and
 * specs are interned. One step is open at a time. */
#ifndef IPU_LOWER_BUILD_H
#define IPU_LOWER_BUILD_H

#include "lower/tile_graph.h"

struct tg_alloc_row {
    uint32_t bytes, tail_bytes, value, alias, alias_offset, blocks;
    uint16_t tile, align;
    uint8_t memory, flags;
};
struct tg_call_row {
    uint32_t tile, spec, n_operands;
    struct tg_ref operand[KERNEL_MAX_OPERANDS];
};
struct tg_builder {
    uint32_t n_tiles;
    GArray *allocs, *transfers, *recipients, *first_recipient, *words; /* transfers: tg_ref */
    GArray *calls, *first_call_operand, *operands, *call_specs, *call_of_tile;
    GArray *open_calls; /* tg_call_row of the open compute step */
    GArray *steps, *specs, *needs, *names, *bindings, *slices;
    GHashTable *name_index, *spec_index, *separations; /* separations: a << 32 | b, a < b */
    GArray *separation_list;
};

void tg_builder_init(struct tg_builder *b, uint32_t n_tiles);
void tg_builder_clear(struct tg_builder *b);
uint32_t tg_name(struct tg_builder *b, const char *name);
uint32_t tg_spec(struct tg_builder *b, const struct kernel_spec *spec, GError **error);
uint32_t tg_alloc_add(struct tg_builder *b, const struct tg_alloc_row *row);
/* The allocation at the end of the aliases, and the offset in it. */
struct tg_ref tg_root(const struct tg_builder *b, struct tg_ref ref);
void tg_separate(struct tg_builder *b, uint32_t alloc_a, uint32_t alloc_b);
void tg_transfer(struct tg_builder *b, struct tg_ref source, uint32_t words,
                 const struct tg_ref *recipients, uint32_t n);
/* Adds a call to the open compute step and puts the kernel's needs on its operands. */
bool tg_call(struct tg_builder *b, uint32_t tile, const struct kernel_spec *spec,
             const struct tg_ref *operands, GError **error);
/* Closes the open compute step if it has calls. */
void tg_close_compute(struct tg_builder *b, uint32_t operation, uint32_t reason);
/* Closes an exchange step with the transfers from `first` on, if there are any. */
void tg_close_exchange(struct tg_builder *b, uint32_t first, uint32_t operation, uint32_t reason);
void tg_repeat_step(struct tg_builder *b, enum tg_step_kind kind, uint32_t count,
                    uint32_t operation);
struct tile_graph *tg_builder_finish(struct tg_builder *b);

#endif
