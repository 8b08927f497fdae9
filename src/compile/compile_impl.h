/* compile_impl: what passes between the stages of one compile. Private to the room. */
#ifndef IPU_COMPILE_IMPL_H
#define IPU_COMPILE_IMPL_H

#include "compile/compile.h"
#include "emit/emit.h"
#include "place/place.h"

struct compile_state {
    const struct tile_graph *g;
    const struct compile_options *o;
    struct emit_image *image;
    struct emit_support support;  /* rows_bytes: of the tile with most */
    uint32_t *rows_need;          /* [TARGET_N_TILES] bytes: estimated, then of the table */
    bool rows_tight;              /* the estimate was halved, or the rows are known */
    bool hopeless;                /* data alone do not fit */
    uint32_t *rows_reserved;      /* [TARGET_N_TILES] up to the end of the last memory element */
    uint32_t n_exchanges;
    uint32_t *exchange_step;      /* [n_exchanges] step of the graph */
    uint32_t *stride;             /* [allocs.n] bytes between blocks; 0 for a single one */
    uint32_t *address;            /* [allocs.n] */
    uint32_t *sample_address;     /* [n_tiles], with sampling */
    uint32_t n_placed, *placed;   /* the last round's map by request: kept where it still holds */
    struct exch_result **rows;    /* [n_exchanges] */
    struct exch_table *table;     /* of these */
    struct emit_result *programs;
};

/* Fills c->stride: the graph's, or the smallest where it leaves the choice. */
void compile_strides(struct compile_state *c);
/* Places everything for the current support ranges. False with *ret->limit and a report when it does
 * not fit, or with an error. */
bool compile_place(struct compile_state *c, struct compile_result *ret, bool *ret_fits,
                   GError **error);
/* The memory that placement may use. */
struct place_memory compile_memory(void);
/* Report of a placement that does not fit: the tightest tile, its users, the missing bytes, what would
 * help. alloc: [requests] the allocation behind a request, or TG_NONE. */
void compile_report_place(const struct compile_state *c, const struct place_problem *problem,
                          const struct place_result *r, const uint32_t *alloc,
                          struct compile_result *ret);

/* The problem of exchange number i; addresses may be NULL (all zero, for estimates). */
struct exch_problem *compile_phase_problem(const struct compile_state *c, uint32_t i);
/* Fills c->rows_need: bytes that the row table of each tile will have, about. */
void compile_rows_estimate(struct compile_state *c);
bool compile_schedule(struct compile_state *c, GError **error);
/* Fills c->rows_reserved and the largest of them from c->rows_need. */
void compile_reserve_rows(struct compile_state *c);
/* Fills c->table and c->rows_need: the way of sharing rows that costs fewest cycles and fits what is
 * reserved, else the shortest, or the one that the options ask for. */
void compile_share_rows(struct compile_state *c);

/* Writes the problems of all phases to o->exchange_export. */
bool compile_export_phases(const struct compile_state *c, GError **error);

struct package *compile_package(const struct compile_state *c, GError **error);

#endif
