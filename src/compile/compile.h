/* compile: one candidate from tile graph to package.
 *
 * In:   a verified tile graph and options.
 * Out:  a package, or what does not fit, where and by how many bytes.
 * Order: link the image, size programs, estimate rows, place, schedule every phase with the addresses,
 *       share rows, size rows and programs; when they need more than was reserved, place again with what
 *       they need (and with half of the estimate when data do not fit beside it); emit; check; package. At most COMPILE_MAX_ROUNDS rounds.
 * Host window: lent to values that live neither at the first step nor behind the last (runtime 2.11);
 *       what the host writes or reads never lies in it.
 * Ownership: a result owns its package and report; compile_result_free frees them.
 * Threads: phases are scheduled and programs emitted with par_for; same bytes for any number.
 * Errors: GError 1050..1099 for what is refused; infeasible is data.
 */
#ifndef IPU_COMPILE_H
#define IPU_COMPILE_H

#include "lower/tile_graph.h"
#include "package/package.h"

enum { COMPILE_MAX_ROUNDS = 6 };

struct compile_options {
    bool sample;          /* cycle sampling in the programs */
    bool base_writes;     /* as emit_options.base_writes */
    uint32_t effort;      /* enum exch_effort */
    uint32_t row_share;   /* enum exch_share + 1, or 0: the cheapest that fits */
    const char *workload; /* for the package; may be NULL */
    const char *plan;     /* text of the chosen plan; may be NULL */
    const char *placement_dump; /* folder for every placement problem with its map, or NULL */
    const char *exchange_export; /* file for the problems of all phases (see exch_file_write), or NULL */
};

enum compile_limit { COMPILE_FITS, COMPILE_LIMIT_PLACE, COMPILE_LIMIT_SUPPORT };

/* Exchange rows, in bytes of the tile with most. */
struct compile_rows {
    uint32_t estimated, reserved; /* of the last round */
    uint32_t unshared;            /* had no row been shared */
    uint32_t stored;
    uint32_t n_stored, n_shared;  /* rows on all tiles; further uses of a row */
    uint32_t n_based, n_patched;  /* uses told apart by base registers; by patches */
};

struct compile_result {
    struct package *package; /* NULL when something does not fit */
    enum compile_limit limit;
    uint32_t tile;           /* the tightest */
    uint64_t need_bytes, has_bytes;
    char *report;            /* text: tightest tiles, largest users, missing bytes */
    char *report_json;
    uint32_t rounds;
    struct compile_rows rows;
    double seconds_place, seconds_schedule, seconds_emit; /* for people; not in the package */
};
/* False only with an error. */
bool compile_tile_graph(const struct tile_graph *g, const struct compile_options *o,
                        struct compile_result *ret, GError **error);
void compile_result_free(struct compile_result *r);

#endif
