/* cli_tile: what tile-run, tile-debug and tile-dump share: sources and objects to one tile, texts of
 * addresses, faults and registers. */
#ifndef IPU_CLI_TILE_H
#define IPU_CLI_TILE_H

#include "isa/isa_asm.h"
#include "tile/tile.h"

struct cli_tile {
    const char *verb;
    /* Options. */
    char *entry, *vertex, *amp, *simd;
    char **data, **words, **set, **tails, **defines, **includes;
    gint workers, exp_slots;
    gint64 max_cycles;
    gboolean supervisor, permissive, races, plain, interleave, timing;
    /* State. */
    struct isa_image *image;
    struct sram *sram;
    struct tile_config config;
    struct tile tile;
    uint32_t entry_pc, vertex_base;
};

/* Options of all three verbs, to stand in a GOptionEntry table. */
#define CLI_TILE_OPTIONS(o)                                                                        \
    {"entry", 'e', 0, G_OPTION_ARG_STRING, &(o)->entry,                                            \
     "Where to start (the entry of the image, else the first function)", "SYM|ADDR"},              \
    {"supervisor", 's', 0, G_OPTION_ARG_NONE, &(o)->supervisor,                                    \
     "The entry is supervisor code; it is called and ends when it returns", NULL},                 \
    {"workers", 'w', 0, G_OPTION_ARG_INT, &(o)->workers, "Workers to start (6)", "N"},             \
    {"vertex", 0, 0, G_OPTION_ARG_STRING, &(o)->vertex,                                            \
     "Vertex base of the workers (symbol `vertex`, else 0x60000)", "SYM|ADDR"},                    \
    {"data", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(o)->data, "Bytes of a file to memory", "ADDR=FILE"},\
    {"word", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(o)->words,                                         \
     "Words to memory: numbers, symbols, 1.5f (F32), 1.5h (F16, twice)", "ADDR=V,V..."},           \
    {"set", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(o)->set, "A register before the start", "REG=V"},   \
    {"tail", 0, 0, G_OPTION_ARG_STRING_ARRAY, &(o)->tails, "A declared access tail", "ADDR:LEN"},  \
    {"define", 'D', 0, G_OPTION_ARG_STRING_ARRAY, &(o)->defines, "For the preprocessor",           \
     "NAME[=VALUE]"},                                                                              \
    {"include", 'I', 0, G_OPTION_ARG_FILENAME_ARRAY, &(o)->includes, "For the preprocessor", "DIR"},\
    {"max-cycles", 0, 0, G_OPTION_ARG_INT64, &(o)->max_cycles, "Stop there (100,000,000)", "N"},   \
    {"permissive", 0, 0, G_OPTION_ARG_NONE, &(o)->permissive, "Count faults where possible", NULL},\
    {"races", 0, 0, G_OPTION_ARG_NONE, &(o)->races, "Find races word by word", NULL},              \
    {"plain", 0, 0, G_OPTION_ARG_NONE, &(o)->plain, "No fused loops", NULL},                       \
    {"timing-only", 0, 0, G_OPTION_ARG_NONE, &(o)->timing,                                         \
     "Cycles without floating-point results", NULL},                                               \
    {"interleave", 0, 0, G_OPTION_ARG_NONE, &(o)->interleave, "All slots in cycle order", NULL},   \
    {"exp-slots", 0, 0, G_OPTION_ARG_INT, &(o)->exp_slots,                                         \
     "Slots of f16v2exp on arguments that are not zero (2)", "N"},                                 \
    {"amp-model", 0, 0, G_OPTION_ARG_STRING, &(o)->amp, "Sums of the matrix unit", "exact|window"},\
    {"simd", 0, 0, G_OPTION_ARG_STRING, &(o)->simd, "Vector code", "auto|scalar|avx2|avx512"}

/* Assembles and links the files, loads them, applies the options, starts. False after a message. */
bool cli_tile_open(struct cli_tile *c, char **paths);
/* Registers and contexts as after cli_tile_open; memory stays as it is. */
bool cli_tile_restart(struct cli_tile *c);
void cli_tile_close(struct cli_tile *c);

/* A number, a symbol or symbol+number. */
bool cli_tile_address(const struct cli_tile *c, const char *text, uint32_t *ret);
/* "symbol+0x10 (file:12)", or the bare address. */
void cli_tile_where(const struct cli_tile *c, uint32_t address, GString *out);
/* The slot at an address as text. */
void cli_tile_slot(const struct cli_tile *c, uint32_t address, GString *out);
/* Slots around pc, marked; `before` and `after` of them. */
void cli_tile_window(const struct cli_tile *c, uint32_t pc, uint32_t before, uint32_t after,
                     GString *out);
void cli_tile_registers(const struct cli_tile *c, uint32_t context, GString *out);
/* Where every context is, one line each. */
void cli_tile_contexts(const struct cli_tile *c, GString *out);
/* Fault, place, window, registers. */
void cli_tile_fault(const struct cli_tile *c, GString *out);
/* `ADDR:LEN[:f16|f32|f8|bytes]` of memory as text, unwritten words as dashes. */
bool cli_tile_dump(const struct cli_tile *c, const char *spec, GString *out);
const char *cli_tile_stop_name(enum tile_stop_reason r);

#endif
