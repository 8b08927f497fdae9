/* profile: .ipuprof files, what was when on which tile; queries and pages.
 *
 * In:   a session after a run with marks.
 * Out:  a sealed SQLite file (base/container.h): steps with provenance, per tile intervals, phases;
 *       text, JSON and HTML made from it.
 * Units: tile cycles from the device clock's start; cropped = from the latest tile's entry into the
 *       first step (runtime 6.2).
 * Shapes: intervals in CSR form by tile, ascending by start.
 * Ownership: struct profile owns its arena. Errors: GError 1200..1249. Facts: runtime 6.
 */
#ifndef IPU_PROFILE_H
#define IPU_PROFILE_H

#include "runtime/runtime.h"

enum { PROFILE_SCHEMA = 3, PROFILE_APPLICATION_ID = 0x69707570 /* "ipup" */ };

/* REPEAT: the iterations of a repeat before its last, which have no samples of their own: a program
 * that samples keeps those of the last iteration. */
enum profile_kind { PROFILE_EXCHANGE, PROFILE_COMPUTE, PROFILE_REPEAT, PROFILE_N_KINDS };
const char *profile_kind_name(uint32_t kind);
/* PROFILE_N_KINDS when there is none such. */
enum profile_kind profile_kind_find(const char *name);
enum profile_source { PROFILE_FROM_MODEL, PROFILE_FROM_SAMPLES };

struct profile_step {
    uint32_t kind; /* enum profile_kind */
    uint32_t operation, reason; /* names */
    uint32_t horizon;
    uint32_t package_step;
    uint32_t transfers, messages, endpoint_bound, bound; /* EXCHANGE: as in struct package_step */
    uint32_t row_bytes_max, row_bytes_tile;
    uint64_t words;
};
struct profile_interval {
    uint32_t step;
    uint32_t kernel; /* name or TG_NONE */
    uint32_t calls;  /* EXCHANGE: 1 active, 0 takes no part; REPEAT: iterations */
    uint32_t start, end; /* cycles, cropped */
    uint32_t predicted;  /* cycles; 0 = not known */
    uint32_t send_words, receive_words;
};
/* One phase as it happened. */
struct profile_phase {
    uint32_t step;
    uint32_t first_entry, last_entry, last_exit; /* cropped cycles */
    uint32_t last_tile, horizon, active;
};

struct profile {
    struct arena *arena;
    const char *workload, *plan, *device;
    uint32_t source; /* enum profile_source */
    uint64_t clock_hz;
    uint64_t cycles_measured, cycles_predicted, exchange_cycles;
    uint32_t peak_tile_bytes, row_bytes_max;
    uint32_t n_tiles, n_names, n_steps, n_phases;
    const char **names;
    struct profile_step *steps;
    uint32_t *first; /* [n_tiles + 1] */
    struct profile_interval *intervals;
    struct profile_phase *phases;
    uint64_t file_bytes;
};

struct profile *profile_from_session(const struct session *s, GError **error);
void profile_free(struct profile *p);
bool profile_write(struct profile *p, const char *path, GError **error);
struct profile *profile_read(const char *path, GError **error);
struct profile *profile_read_bytes(const uint8_t *bytes, size_t n, const char *path,
                                   GError **error);

/* Sums over tiles: exchange, compute and waiting share of the span. */
struct profile_shares {
    double exchange, compute, wait, unsampled; /* of span x tiles; they add up to 1 */
};
void profile_shares(const struct profile *p, struct profile_shares *ret);
void profile_print(const struct profile *p, GString *out);
void profile_json(const struct profile *p, GString *out);
/* One line or object per phase: arrivals and what came behind them (runtime 6.5). */
void profile_barriers_print(const struct profile *p, GString *out);
void profile_barriers_json(const struct profile *p, GString *out);

/* --- Queries (runtime 6.3): sums over the intervals that pass every filter --- */

enum profile_group { PROFILE_BY_KIND, PROFILE_BY_KERNEL, PROFILE_BY_OPERATION, PROFILE_BY_STEP,
                     PROFILE_BY_TILE, PROFILE_N_GROUPS };
enum profile_sort { PROFILE_SORT_TIMELINE, PROFILE_SORT_WORK, PROFILE_SORT_LONGEST,
                    PROFILE_SORT_SAMPLES, PROFILE_SORT_NAME, PROFILE_N_SORTS };
/* Names on the command line: "kind", ...; "phase-cycles", ... Return the number of names when there
 * is none such. */
enum profile_group profile_group_find(const char *name);
enum profile_sort profile_sort_find(const char *name);

struct profile_query {
    int32_t kind;          /* enum profile_kind, or -1 */
    const char *kernel;    /* exact, or NULL */
    const char *operation; /* part of the name, or NULL */
    const uint32_t *tiles, *steps; /* NULL: all */
    uint32_t n_tiles, n_steps;
    int64_t at; /* active at this cycle (start <= at < end), or -1 */
    enum profile_group group;
    enum profile_sort sort;
    uint32_t limit;   /* groups, 0 = all */
    uint32_t samples; /* longest intervals to list */
};
/* Refuses a kernel or a part of an operation's name that the profile does not have, with those that
 * it has. */
bool profile_query_check(const struct profile *p, const struct profile_query *q, GError **error);
void profile_query_print(const struct profile *p, const struct profile_query *q, GString *out);
void profile_query_json(const struct profile *p, const struct profile_query *q, GString *out);

/* A self-contained page. */
bool profile_page_write(const struct profile *p, const char *path, GError **error);

#endif
