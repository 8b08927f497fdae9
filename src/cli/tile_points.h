/* tile_points: where a debugger stops: breakpoints with conditions, watches of words and registers; and
 * the places and values that its commands name. Parsers return false after saying why
 * (cli_tile_refuse). */
#ifndef IPU_CLI_TILE_POINTS_H
#define IPU_CLI_TILE_POINTS_H

#include "cli/cli_tile.h"

/* A register of a context or a word of memory. */
struct tile_source {
    bool memory;
    bool m;           /* register: $m, else $a */
    uint32_t number;  /* of the register */
    uint32_t address; /* of the word */
};

struct tile_seen {
    bool known; /* a register that was never written is not */
    uint32_t value;
};

enum tile_point_kind { TILE_POINT_BREAK, TILE_POINT_WATCH };
enum tile_compare { TILE_EQ, TILE_NE, TILE_LT, TILE_LE, TILE_GT, TILE_GE };
struct tile_point {
    enum tile_point_kind kind;
    uint32_t number;  /* the caller's */
    uint32_t pc;      /* BREAK */
    bool conditional; /* BREAK: `source` of the slot's context compared with `value`, unsigned */
    enum tile_compare compare;
    uint32_t context; /* WATCH of a register */
    struct tile_source source;
    uint32_t value;   /* BREAK */
    struct tile_seen seen; /* WATCH */
};

/* ADDR, SYM, SYM+N or FILE:LINE (FILE may be its last part) of an instruction. */
bool tile_point_address(const struct cli_tile *c, const char *text, uint32_t *ret);
/* PLACE [if WHAT OP VALUE] */
bool tile_point_break_parse(const struct cli_tile *c, const char *text, struct tile_point *ret);
/* ADDR, REG of `context`, or CONTEXT:REG */
bool tile_point_watch_parse(const struct cli_tile *c, const char *text, uint32_t context,
                            struct tile_point *ret);
/* REG|ADDR VALUE: changes a register of `context` or a word. */
bool tile_point_set(struct cli_tile *c, const char *text, uint32_t context);

/* Whether a slot of `context` at `pc` stops there. */
bool tile_point_break(const struct tile_point *p, const struct cli_tile *c, uint32_t context, uint32_t pc);
/* Whether the watched value is another than last time, which it returns. */
bool tile_point_changed(struct tile_point *p, const struct cli_tile *c, struct tile_seen *ret_old);
void tile_point_value(struct tile_seen v, GString *out);
/* "0x60000", "worker 2 m3" */
void tile_point_name(const struct tile_point *p, GString *out);
/* A line. */
void tile_point_print(const struct tile_point *p, const struct cli_tile *c, GString *out);

#endif
