/* Verification of exchange rows by the fabric: executes the rows of a result and compares the
 * deliveries with the problem. The two rooms share no code, so their agreement is evidence. */
#ifndef IPU_CLI_EXCH_VERIFY_H
#define IPU_CLI_EXCH_VERIFY_H

#include "exchange/exch.h"
#include "fabric/fabric.h"

struct exch_verdict {
    bool ok;          /* no fault, every word delivered, nothing else, same horizon */
    uint32_t horizon; /* of the fabric */
    uint32_t n_errors, n_warnings;
    char *first; /* text of the first error, g_free'd; NULL if none */
};
/* iteration: of the repeat around the phase (moving sources). */
void exch_verify(struct fabric *f, const struct exch_problem *p, const struct exch_result *r,
                 uint32_t iteration, struct exch_verdict *ret);
/* Writes the rows of a result as a file that `exchange-replay` reads. */
bool exch_rows_save(const char *path, const struct exch_result *r, GError **error);

#endif
