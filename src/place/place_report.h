/* place, inside: numbers of one tile, for reports and pages. */
#ifndef IPU_PLACE_REPORT_H
#define IPU_PLACE_REPORT_H

#include "place/place_int.h"

struct place_tile_summary {
    uint32_t tile, peak_step, n_sections;
    uint64_t usable_bytes, peak_bytes;
    uint32_t *step;                       /* [n_sections] first step of each section */
    uint64_t *live_bytes;                 /* [n_sections] */
    uint32_t n_users, *user, *user_bytes; /* storages live at the peak, largest first */
    bool has_map;
    uint64_t peak_free_bytes, peak_free_span;   /* at the peak */
    uint64_t never_used_bytes, never_used_span; /* over all time */
};
void place_tile_summarise(const struct place_problem *p, const struct place_result *r,
                          uint32_t tile, struct place_tile_summary *ret);
void place_tile_summary_clear(struct place_tile_summary *s);
/* All tiles, those that are not solved first, then by live peak; g_free'd. */
uint32_t *place_tiles_tightest(const struct place_problem *p, const struct place_result *r);

const char *place_status_name(enum place_status status);
const char *place_kind_name(uint32_t kind);
/* One line what does not fit, then its users. */
void place_proof_print(const struct place_problem *p, const struct place_proof *proof,
                       GString *out);

#endif
