/* cli_tile: what tile-run, tile-debug and tile-dump share: sources and objects to one tile, texts and
 * JSON of addresses, faults, contexts and registers. */
#ifndef IPU_CLI_TILE_H
#define IPU_CLI_TILE_H

#include "isa/isa_asm.h"
#include "tile/tile.h"

#include <json-glib/json-glib.h>

enum { CLI_TILE_NOT_GIVEN = G_MININT };

/* What an option put into memory: who last owned an address. */
struct cli_tile_range {
    uint32_t address, bytes;
    const char *option, *text; /* "--data", "0x60000=x.bin" */
};

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
    GArray *given; /* struct cli_tile_range */
    GString *said; /* where refusals go instead of standard error, or NULL */
    struct tile_config config;
    struct tile tile;
    uint32_t entry_pc, vertex_base;
};
/* What options are before they are read. */
#define CLI_TILE_DEFAULTS(name)                                                                    \
    {.verb = name, .workers = CLI_TILE_NOT_GIVEN, .exp_slots = CLI_TILE_NOT_GIVEN,                 \
     .max_cycles = 100000000}

/* Options of tile-run and tile-debug, to stand in a GOptionEntry table. */
#define CLI_TILE_OPTIONS(o)                                                                        \
    {"entry", 'e', 0, G_OPTION_ARG_STRING, &(o)->entry,                                            \
     "Where to start (the entry of the image, else its first global code symbol)", "SYM|ADDR"},    \
    {"supervisor", 's', 0, G_OPTION_ARG_NONE, &(o)->supervisor,                                    \
     "The entry is supervisor code; it is called and ends when it returns", NULL},                 \
    {"workers", 'w', 0, G_OPTION_ARG_INT, &(o)->workers, "Workers to start, 1..6 (6)", "N"},       \
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
     "Slots of f16v2exp on arguments that are not zero, 1..8 (2)", "N"},                           \
    {"amp-model", 0, 0, G_OPTION_ARG_STRING, &(o)->amp, "Sums of the matrix unit", "exact|window"},\
    {"simd", 0, 0, G_OPTION_ARG_STRING, &(o)->simd, "Vector code", "auto|scalar|avx2|avx512"}

/* Assembles and links the files, loads them, applies the options, starts. False after a message. */
bool cli_tile_open(struct cli_tile *c, char **paths);
/* Registers and contexts as after cli_tile_open; memory stays as it is. */
bool cli_tile_restart(struct cli_tile *c);
void cli_tile_close(struct cli_tile *c);
/* Says what is wrong (`said`, else standard error) and frees it; false. */
bool cli_tile_refuse(const struct cli_tile *c, GError *error);

/* A number, a symbol, or either plus or minus a number; the second form prints why not. */
bool cli_tile_address(const struct cli_tile *c, const char *text, uint32_t *ret);
bool cli_tile_want_address(const struct cli_tile *c, const char *option, const char *text, uint32_t *ret);
/* Number, symbol, 1.5f, 1.5h. False after a message. */
bool cli_tile_value(const struct cli_tile *c, const char *option, const char *text, uint32_t *ret);
/* "m3", "$a0": of a worker or of the supervisor. */
bool cli_tile_register(const char *text, size_t length, bool supervisor, bool *ret_m, uint32_t *ret_n);
/* "; did you mean 'x'?" among the symbols of the program; g_free'd. */
char *cli_tile_suggest(const struct cli_tile *c, const char *name);

/* --- Texts (cli_tile_print.c). --- */

/* "symbol+0x10 (file:12)", or the bare address. */
void cli_tile_where(const struct cli_tile *c, uint32_t address, GString *out);
/* What lies at a data address: an option's bytes, a symbol, or what ends last before it. */
void cli_tile_owner(const struct cli_tile *c, uint32_t address, GString *out);
/* The slot at an address as text, with the register names of the context. */
enum { CLI_TILE_ANY = TILE_N_CONTEXTS }; /* it is not known which */
void cli_tile_slot(const struct cli_tile *c, uint32_t address, uint32_t context, GString *out);
/* Addresses of the slots around pc, up to `before` and `after` of them; the number. */
enum { CLI_TILE_WINDOW = 32 };
uint32_t cli_tile_window_at(const struct cli_tile *c, uint32_t pc, uint32_t before, uint32_t after,
                            uint32_t ret[CLI_TILE_WINDOW]);
/* Whose register names a slot of the window has: where supervisor and workers share a program, another
 * function than that of pc may be either's. */
uint32_t cli_tile_window_context(const struct cli_tile *c, uint32_t pc, uint32_t at, uint32_t context);
/* The same as text, pc marked. */
void cli_tile_window(const struct cli_tile *c, uint32_t pc, uint32_t before, uint32_t after,
                     uint32_t context, GString *out);
void cli_tile_registers(const struct cli_tile *c, uint32_t context, GString *out);
/* Where every context is, one line each; those of workers that never started as well. */
void cli_tile_contexts(const struct cli_tile *c, GString *out);
const char *cli_tile_context_state(const struct cli_tile *c, uint32_t context);
/* "supervisor", "worker 3". */
const char *cli_tile_context_name(uint32_t context);
/* The address of a context: of its next instruction, of the sync that it waits in, or of the exit of a
 * worker that ended. */
uint32_t cli_tile_context_pc(const struct cli_tile *c, uint32_t context);
uint64_t cli_tile_context_cycle(const struct cli_tile *c, uint32_t context);
/* Fault, place, exception, owner of the address, operation, window, registers. */
void cli_tile_fault(const struct cli_tile *c, GString *out);

/* Without a length: the symbol at the address, or a word. */
#define CLI_TILE_DUMP_SPEC "ADDR[:LEN][:words|f16|f32|f8|bytes]"
struct cli_tile_dump {
    const char *spec;
    uint32_t address, bytes;
    uint32_t format; /* private to cli_tile_print.c */
};
/* False after a message; `option` names where the spec came from. */
bool cli_tile_dump_parse(const struct cli_tile *c, const char *option, const char *spec,
                         struct cli_tile_dump *ret);
/* Unwritten words are dashes. */
void cli_tile_dump_print(const struct cli_tile *c, const struct cli_tile_dump *d, GString *out);
const char *cli_tile_stop_name(enum tile_stop_reason r);

/* --- Members of JSON reports (cli_tile_json.c); docs/tile.md describes them. --- */

void cli_tile_json_int(JsonBuilder *b, const char *name, uint64_t v);
void cli_tile_json_text(JsonBuilder *b, const char *name, const char *v); /* NULL: null */
/* "pc", "symbol", "offset", "file", "line" */
void cli_tile_json_place(JsonBuilder *b, const struct cli_tile *c, uint32_t pc);
void cli_tile_json_fault(JsonBuilder *b, const struct cli_tile *c);    /* "fault" */
void cli_tile_json_contexts(JsonBuilder *b, const struct cli_tile *c); /* "contexts" */
void cli_tile_json_registers(JsonBuilder *b, const struct cli_tile *c, uint32_t context); /* "registers" */
void cli_tile_json_dump(JsonBuilder *b, const struct cli_tile *c, const struct cli_tile_dump *d);
/* The object to standard output; frees the builder. */
void cli_tile_json_print(JsonBuilder *b);

#endif
