/* tile_amp: what the matrix unit's scalar code, vector code and fused loops share. Not for other
 * rooms.
 *
 * The vector code works on the two-set forms with four engines, which the kernels use. It computes
 * operation by operation what tile_amp.c defines; where a value is infinite or NaN it declines, or
 * makes NaN canonical, so that both give the same bits. */
#ifndef IPU_TILE_TILE_AMP_H
#define IPU_TILE_TILE_AMP_H

#include "tile/tile_exec.h"

/* Exact values, [phase][input][unit]; valid while the generation and the format are those of the
 * tile. A phase of F16 has 4 inputs, one of F8 has 8. */
struct tile_weights {
    double f16[4][4][16] __attribute__((aligned(64)));
    double f8[4][8][16];
    /* F143 as integers (tile_f143.h), when f143_limit is not 0. */
    int16_t f143[4][4][16][2]
        __attribute__((aligned(64))); /* [phase][input / 2][unit][input % 2] */
    double f143_factor[4];            /* of the integers of a phase, 2^scale included */
    double f143_rest[4][8][16]
        __attribute__((aligned(64))); /* of listed inputs: what the integers leave out */
    uint8_t f143_n_rest[4], f143_rest_input[4][8];
    uint32_t f143_limit;                    /* eight left operands' magnitudes may sum up to */
    const uint64_t *words;                  /* of the tile, 64, when f8 is not made yet, else NULL */
    uint32_t f16_generation, f8_generation; /* 0 = never */
    uint32_t f8_format;
    int32_t f8_scale;
};
const struct tile_weights *tile_weights_f16(struct tile *t);
/* Times 2^scale: a power of two on the weights is the same, bit for bit, as on the sum of products.
 */
const struct tile_weights *tile_weights_f8(struct tile *t, enum num_f8_format format,
                                           int32_t scale);
/* The same, but f8 may be left out when there are integers: tile_weights_doubles makes it before its
 * first use. */
struct tile_weights *tile_weights_f8_any(struct tile *t, enum num_f8_format format, int32_t scale);
void tile_weights_doubles(struct tile_weights *w);
/* $FP_SCL as a number. */
static inline int32_t tile_f8_scale(const struct tile_worker *w) {
    return (int32_t)(w->fp_scl << 26) >> 26;
}
/* Values of the 256 codes, scale 0. */
const double *tile_f8_values(enum num_f8_format format);

/* One call: x and partial as read from registers; *ret_out as written. w is [input][unit] of the
 * phase. */
struct tile_amp_call {
    struct tile_accumulators *acc;
    const double *w;
    uint64_t x, partial;
    const double *f8_values; /* NULL: F16 */
    bool swap;               /* phase 0 */
};
/* False, with nothing changed, when a result or partial is infinite or NaN. */
typedef bool tile_amp_vec_fn(const struct tile_amp_call *c, uint64_t *ret_out);

/* --- Fused loops of bundles { loads and stores of 64 bits ; AMP }. --- */

enum {
    TILE_FUSED_MAX = 32,
    TILE_FUSED_STREAMS = 12,
    TILE_FUSED_ROWS = 4 /* at most, in a block */
};
enum { TILE_PAIR_ZERO = 4, TILE_PAIR_SINK = 5, TILE_N_PAIRS = 6 };

struct tile_fused_access {
    uint8_t stream; /* whose pointer moves by `step` after the access */
    uint8_t pair;   /* register pair: destination, or source of the store */
    int32_t step;   /* bytes; filled when the loop starts */
};
enum tile_fused_kind {
    TILE_FUSED_NONE,
    TILE_FUSED_L,
    TILE_FUSED_S,
    TILE_FUSED_LS,
    TILE_FUSED_LL,
    TILE_FUSED_LLS
};
struct tile_fused_slot {
    uint8_t kind;
    uint8_t x, partial, result; /* pairs */
    uint8_t phase;
    struct tile_fused_access load[2], store;
};
/* F143: both operands are. */
enum tile_fused_type { TILE_FUSED_F16, TILE_FUSED_F8, TILE_FUSED_F143, TILE_FUSED_TYPES };
/* A row of a trace (tile_trace.c): four calls, phases 0 to 3. The word that a register pair holds
 * behind each call; what a call uses is the word behind the one before. */
struct tile_row_word {
    int32_t at; /* bytes from the stream's pointer */
    uint8_t stream;
};
struct tile_row_words {
    struct tile_row_word first;
    uint8_t mask;   /* bit per call that accesses a word */
    bool whole;     /* all four, one behind the other from `first` on */
    uint16_t words; /* else: which of the run's row_words */
};
struct tile_fused_row {
    struct tile_row_words x, partial, store; /* store: the result of two calls before */
    bool x_zero, partial_zero;               /* the calls use zeros instead */
};
struct tile_fused_run {
    struct tile_accumulators *acc;
    struct tile_fused_slot *slots;
    uint32_t n_slots;
    uint32_t regular;             /* the slot of phase 0 when rows may be run whole, else UINT32_MAX
                                     (tile_fused_amp.c) */
    uint64_t pairs[TILE_N_PAIRS]; /* register pairs, then zero, then what nobody reads */
    uint8_t *pointer[TILE_FUSED_STREAMS]; /* in the tile's memory */
    const double *w;                      /* [phase][input][unit] */
    const double *f8_values;
    struct tile_weights *weights; /* F143: those of w, which may be left to be made */
    uint8_t *f143_base;                 /* F143: base of the left operands that did last */
    uint8_t row_x, row_partial, row_result[2]; /* pairs of whole rows; results by parity of the phase */
    const struct tile_fused_row *rows;         /* of a trace */
    const struct tile_row_word (*row_words)[4];
    uint8_t *memory;                           /* start of the tile's memory */
    uint64_t *written;                  /* NULL: what is stored to counts as written already */
};
/* Runs up to `passes` whole passes; returns the number of slots executed. It stops early, before
 * the slot, where the plain code must decide. 0 when an accumulator holds NaN or a denormal at
 * entry. */
typedef uint64_t tile_fused_fn(struct tile_fused_run *r, uint64_t passes);
/* Runs up to n rows of r->rows, beginning at phase 0; the number that was done, as above. r->slots is
 * not used. */
typedef uint32_t tile_rows_fn(struct tile_fused_run *r, uint32_t n);

struct tile_amp_vec {
    tile_amp_vec_fn *call;
    tile_fused_fn *loop[TILE_FUSED_TYPES];
    tile_rows_fn *rows[TILE_FUSED_TYPES];
    bool (*weights_f143)(const uint64_t words[64], int32_t scale, struct tile_weights *w); /* tile_vec.h */
};
/* NULL for TILE_SIMD_SCALAR. */
const struct tile_amp_vec *tile_amp_vec(enum tile_simd simd);
extern const struct tile_amp_vec TILE_AMP_AVX2, TILE_AMP_AVX512;
/* To round the bits of a double to F32: the last bit kept, half of what goes less one, the bits kept. */
extern const int64_t TILE_ROUND_F32[3];

#endif
