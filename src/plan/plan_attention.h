/* What the files of attention share: its shape, its grids, its operands on them.
 *
 * Every grid lays the same n parts of the batch over tiles, then r parts of the rows, then c parts
 * of the keys (innermost). Scores and probabilities are [batch][rows][keys]; maxima one word a row
 * and key part; results [batch][rows][out + 1], whose last column is the denominator. */
#ifndef IPU_PLAN_ATTENTION_H
#define IPU_PLAN_ATTENTION_H

#include "plan/plan_build.h"

struct attention_grid {
    uint32_t r, c;
};

struct attention {
    struct build *b;
    const struct graph_op *op;
    uint32_t batch, rows, keys, width, out; /* width of queries and keys, out of values */
    uint32_t n;                             /* parts of the batch */
    float scale;
    bool qk8, pv8;  /* that product's operands in F8 */
    bool whole;     /* queries and keys are gathered in whole panels of their products */
    uint8_t strategy; /* enum plan_attention_strategy, never AUTO */
    struct attention_grid qk, soft, pv;
    uint32_t block; /* keys of a block: streaming */
    struct held operand[2]; /* queries and keys by matrices; PROGRAM_NONE: the host stores them */
};

/* A range of keys, [first, first + n). */
struct attention_keys {
    uint32_t first, n;
};

struct program_value attention_value(const struct attention *a, const char *name, uint32_t rows,
                                     uint32_t cols, struct program_layout l,
                                     struct attention_grid g);
void attention_by_rows(struct program_value *v, struct attention_grid g);
/* Each of the c tiles of a row part owns a window of its rows, as far as there are rows. */
void attention_own_rows(const struct attention *a, struct program_value *v,
                        struct attention_grid g);
/* Keys are padded to 32 on every tile: whole K groups in either format. */
struct program_layout attention_key_layout(uint8_t format, uint8_t order, uint8_t memory,
                                           uint32_t axis);
uint8_t attention_format(bool f8);
void attention_exponent(const struct attention *a, struct program_value *v, bool qk);
uint32_t attention_compute(const struct attention *a, struct program_op op,
                           const struct program_value *v);

/* How queries and keys are held, by matrices of the batch; before all others. */
void attention_settle(struct attention *a);
/* Whether queries and keys can be gathered in whole panels; their width then. */
bool attention_whole_panels(const struct attention *a);
uint32_t attention_gathered(const struct attention *a);
/* Operands where their grid reads them; values have a column of ones behind them. */
uint32_t attention_queries(const struct attention *a);
/* The neighbours' columns of the gathered panels become zero (behind all gathers, so that those
 * share a phase). */
uint32_t attention_keep_own(const struct attention *a, uint32_t queries);
uint32_t attention_keys(const struct attention *a, struct attention_keys range);
uint32_t attention_values(const struct attention *a, struct attention_keys range);
/* Bias of the values, one row per matrix of the batch; PROGRAM_NONE if there is none. */
uint32_t attention_bias(const struct attention *a);

/* Fills grids and strategy: the cheapest, or that of the options. False: none is within the
 * kernels' limits. */
bool attention_choose(struct attention *a);

/* Scores of a range of keys; maxima of their rows over all tiles; exponentials against them. */
uint32_t attention_scores(const struct attention *a, uint32_t queries, uint32_t keys, uint32_t n);
uint32_t attention_maxima(const struct attention *a, uint32_t scores);
uint32_t attention_exponentials(const struct attention *a, uint32_t scores, uint32_t maxima);
/* Product of probabilities and values, partials over the c key parts. */
uint32_t attention_weighted(const struct attention *a, uint32_t probabilities, uint32_t values);
/* Blocks of keys one after the other; the divided result and the bias gathered beside it. */
uint32_t attention_stream(const struct attention *a, uint32_t *ret_bias);

#endif
