/* Whole rows of a regular loop, written once over the types of tile_amp_avx2.c and
 * tile_amp_avx512.c (see tile_amp_body.h; further d16s_load, d16s_store, d16s_mul_at, d16s_fma_at,
 * f16s_halves, f16s_of_halves, d16s_round, f143_row_ints; ROWS, the rows of a block).
 *
 * A row is four slots, phases 0 to 3. Over a row the chain is replaced: what leaves are the sixteen
 * sums of the row before, what enters are the partials of the row after. So sums are rounded to
 * F16, and partials and left operands widened, sixteen at a time; and a row's products depend on
 * nothing that the row before computes, so that ROWS rows share each weight that is fetched. All
 * loads of a block come before its stores: tile_fused_run.regular says that no load fetches what an
 * earlier slot of the block stores. Where a value is infinite or NaN the row is left to the code
 * that goes slot by slot. */

#include "tile/tile_f143.h"

/* Rows, phases and inputs are few: their loops disappear, so that sums stay in registers. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#define UNROLL_OUTER /* not done with the loops inside, and warned about */
#else
#define UNROLL _Pragma("GCC unroll 8")
#define UNROLL_OUTER UNROLL
#endif

/* Where the words of a row come from and go to: a loop steps by single words, with left operands
 * alone or with partials; a trace says it row by row. */
enum row_shape { ROW_LEFT, ROW_BOTH, ROW_TRACE };

/* What rows keep at hand. The words loaded last and made last, four each: the next row's first left
 * word and partial are words 3, the results that it stores first are words 2 and 3. */
struct rows {
    uint8_t *load[2], *store;
    const struct tile_fused_row *row;
    __m256i x, partial, out;
    bool minus_zero; /* the sums that the next row starts from may hold -0 */
};

/* Words 3 of a, 0 to 2 of b; words 2, 3 of a, 0, 1 of b. */
VEC static inline __m256i words_after1(__m256i a, __m256i b) {
    return _mm256_alignr_epi8(b, _mm256_permute2x128_si256(a, b, 0x21), 8);
}
VEC static inline __m256i words_after2(__m256i a, __m256i b) {
    return _mm256_permute2x128_si256(a, b, 0x21);
}
VEC static inline bool halves_special(__m256i v) {
    const __m256i e = _mm256_set1_epi16(0x7c00);
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(_mm256_and_si256(v, e), e)) != 0;
}
/* Sixteen sums as four words that leave the chain in turn, and words that entered it as sums. */
VEC static inline __m256i words_of_sums(f16s v) {
    return _mm256_permutevar8x32_epi32(f16s_halves(v), _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
VEC static inline f16s sums_of_words(__m256i v) {
    return f16s_of_halves(
        _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7)));
}

/* Eight F143 codes to halves 2^7 too small; exact, subnormals too. */
VEC static inline __m256i halves_of_f143(__m128i v) {
    const __m256i b = _mm256_slli_epi16(_mm256_cvtepu8_epi16(v), 7);
    const __m256i magnitude = _mm256_and_si256(b, _mm256_set1_epi16(0x3f80));
    return _mm256_or_si256(magnitude,
                           _mm256_slli_epi16(_mm256_and_si256(b, _mm256_set1_epi16(0x4000)), 1));
}
VEC static inline void widen_f143(__m128i v, double *ret) {
    d16s_store(ret, d16s_of(f16s_scale(f16s_of_halves(halves_of_f143(v)), 128)));
}

/* The left operands of a row; F143: not NaN. */
VEC static inline __attribute__((always_inline)) void widen_row(const struct tile_fused_run *r,
                                                                enum tile_fused_type type,
                                                                __m256i x, double *ret) {
    if (type == TILE_FUSED_F16) {
        d16s_store(ret, d16s_of(f16s_of_halves(x)));
        return;
    }
    if (type == TILE_FUSED_F143) {
        widen_f143(_mm256_castsi256_si128(x), ret);
        widen_f143(_mm256_extracti128_si256(x, 1), ret + 16);
        return;
    }
    uint8_t codes[32];
    _mm256_storeu_si256((__m256i *)(void *)codes, x);
    for (uint32_t k = 0; k < 32; k++) ret[k] = r->f8_values[codes[k]];
}

/* Products of one call of n rows, added in the order of the type; x is [row][inputs of a row]. */
VEC static inline __attribute__((always_inline)) void products(const double *w, uint32_t inputs,
                                                               bool any_order, const double *x,
                                                               uint32_t n, d16s *ret) {
    d16s a[ROWS], b[ROWS], first[ROWS];
    const uint32_t chunk = any_order ? 2 : 4;
    UNROLL_OUTER
    for (uint32_t i = 0; i < inputs; i += chunk) {
        UNROLL
        for (uint32_t j = 0; j < chunk; j++) {
            const d16s v = d16s_load(w + 16 * (i + j));
            UNROLL
            for (uint32_t k = 0; k < n; k++) {
                const double *const p = x + 4 * inputs * k + i + j;
                const bool start = any_order ? i == 0 : (j & 1) == 0;
                d16s *const t = (any_order ? j == 0 : j < 2) ? &a[k] : &b[k];
                *t = start ? d16s_mul_at(v, p) : d16s_fma_at(v, p, *t);
            }
        }
        UNROLL
        for (uint32_t k = 0; !any_order && k < n; k++) {
            const d16s t = d16s_add(a[k], b[k]);
            if (i == 0) first[k] = t;
            ret[k] = i == 0 ? t : d16s_add(first[k], t);
        }
    }
    UNROLL
    for (uint32_t k = 0; any_order && k < n; k++) ret[k] = d16s_add(a[k], b[k]);
}

/* --- F143 in integers (tile_f143.h). --- */

/* The left operands of n rows as integers of one base; false when they are none. */
VEC static inline __attribute__((always_inline)) bool rows_ints(const __m256i *words, uint32_t n,
                                                                uint32_t base, uint32_t limit,
                                                                int16_t (*ret)[32]) {
    bool ok = true;
    UNROLL
    for (uint32_t k = 0; k < n; k++) ok &= f143_row_ints(words[k], base, limit, ret[k]);
    return ok;
}

VEC static inline uint32_t rows_base(const __m256i *words, uint32_t n) {
    uint32_t largest = 0;
    for (uint32_t k = 0; k < n; k++) {
        uint8_t codes[32];
        _mm256_storeu_si256((__m256i *)(void *)codes, words[k]);
        for (uint32_t i = 0; i < 32; i++)
            largest = (codes[i] & 0x7fu) > largest ? codes[i] & 0x7fu : largest;
    }
    return tile_f143_base(largest, TILE_F143_LEFT_SHIFT);
}

/* The same with the base that did last, or the one that suits. */
VEC static inline __attribute__((always_inline)) bool rows_f143(struct tile_fused_run *r,
                                                                const __m256i *words, uint32_t n,
                                                                int16_t (*ret)[32]) {
    const uint32_t limit = r->weights->f143_limit, base = *r->f143_base;
    if (limit == 0) return false;
    if (__builtin_expect(rows_ints(words, n, base, limit, ret), 1)) return true;
    *r->f143_base = (uint8_t)rows_base(words, n);
    return *r->f143_base != base && rows_ints(words, n, *r->f143_base, limit, ret);
}

static inline bool f143_any_rest(const struct tile_weights *w) {
    uint32_t n;
    memcpy(&n, w->f143_n_rest, 4);
    return n != 0;
}

/* The sum of products of one call in phase p behind `sum`: integers times factor, and what they leave
 * out. */
VEC static inline __attribute__((always_inline)) d16s f143_add(const struct tile_weights *w, bool rest,
                                                               uint32_t p, const int16_t *x,
                                                               double unit, const double *factor,
                                                               d16s sum) {
    i16s t = i16s_zero();
    UNROLL
    for (uint32_t j = 0; j < 4; j++) t = i16s_madd(w->f143[p][j][0], x + 2 * j, t);
    if (!rest || w->f143_n_rest[p] == 0) return d16s_fma_at(d16s_of_ints(t), factor, sum);
    d16s all = d16s_mul_at(d16s_of_ints(t), factor);
    for (uint32_t i = 0; i < w->f143_n_rest[p]; i++) {
        const uint32_t input = w->f143_rest_input[p][i];
        const double v = unit * x[input];
        all = d16s_fma_at(d16s_load(w->f143_rest[p][input]), &v, all);
    }
    return d16s_add(sum, all);
}

VEC static inline bool halves_minus_zero(__m256i v) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi16(v, _mm256_set1_epi16((short)0x8000))) != 0;
}

/* The words that the pair holds behind each call of a row. */
VEC static inline __m256i words_load(const struct tile_fused_run *r, const struct tile_row_words *w,
                                     __m256i before) {
    if (w->whole)
        return _mm256_loadu_si256((const __m256i *)(const void *)(r->pointer[w->first.stream] + w->first.at));
    if (w->mask == 0) return _mm256_permute4x64_epi64(before, 0xff);
    const struct tile_row_word *const at = r->row_words[w->words];
    uint64_t v[4], last = (uint64_t)_mm256_extract_epi64(before, 3);
    UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        if (w->mask >> k & 1) memcpy(&last, r->pointer[at[k].stream] + at[k].at, 8);
        v[k] = last;
    }
    return _mm256_set_epi64x((long long)v[3], (long long)v[2], (long long)v[1], (long long)v[0]);
}
VEC static inline void words_store(const struct tile_fused_run *r, const struct tile_row_words *w,
                                   __m256i v) {
    const struct tile_row_word *const at = r->row_words[w->words];
    uint64_t word[4];
    _mm256_storeu_si256((__m256i *)(void *)word, v);
    for (uint32_t k = 0; k < 4; k++) {
        if ((w->mask >> k & 1) == 0) continue;
        uint8_t *const p = r->pointer[at[k].stream] + at[k].at;
        memcpy(p, &word[k], 8);
        if (r->written != NULL) mark(r, p);
    }
}

VEC static inline __attribute__((always_inline)) void rows_store(struct tile_fused_run *r,
                                                                 struct rows *g, __m256i out,
                                                                 enum row_shape shape) {
    const __m256i v = words_after2(g->out, out);
    g->out = out;
    if (shape == ROW_TRACE && !g->row->store.whole) {
        words_store(r, &g->row->store, v);
        return;
    }
    const struct tile_row_word at = shape == ROW_TRACE ? g->row->store.first : (struct tile_row_word){0};
    uint8_t *const p = shape == ROW_TRACE ? r->pointer[at.stream] + at.at : g->store;
    _mm256_storeu_si256((__m256i *)(void *)p, v);
    for (uint32_t k = 0; r->written != NULL && k < 4; k++) mark(r, p + 8 * k);
    g->store += shape == ROW_TRACE ? 0 : 32;
}

VEC static inline bool codes_nan(__m256i v) {
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(v, _mm256_set1_epi8((char)0x80))) != 0;
}

/* The sums behind phase p, rounded to F32: *sum, and *ret behind the last. */
VEC static inline __attribute__((always_inline)) void row_sum(uint32_t p, d16s v, d16s *sum, f16s *ret) {
    if (p < 3) *sum = d16s_round(v);
    else *ret = f16s_of(v);
}

/* The sums of n rows from `sum` on. */
VEC static inline __attribute__((always_inline)) void rows_sum(struct tile_fused_run *r,
                                                               enum tile_fused_type type,
                                                               const __m256i *words, uint32_t n,
                                                               d16s *sum, f16s *ret) {
    const uint32_t inputs = type == TILE_FUSED_F16 ? 4 : 8;
    if (type == TILE_FUSED_F143) tile_weights_doubles(r->weights);
    double x[ROWS * 32] __attribute__((aligned(64)));
    d16s t[ROWS];
    UNROLL
    for (uint32_t k = 0; k < n; k++) widen_row(r, type, words[k], x + 4 * inputs * k);
    UNROLL
    for (uint32_t p = 0; p < 4; p++) {
        products(r->w + 16 * inputs * p, inputs, type == TILE_FUSED_F143, x + inputs * p, n, t);
        UNROLL
        for (uint32_t k = 0; k < n; k++) row_sum(p, d16s_add(sum[k], t[k]), &sum[k], &ret[k]);
    }
}
/* The same in integers; rest: weights left out of them. */
VEC static inline __attribute__((always_inline)) void rows_sum_ints(const struct tile_fused_run *r, bool rest,
                                                                    int16_t (*x)[32], uint32_t n,
                                                                    d16s *sum, f16s *ret) {
    const double unit = (double)(1 << *r->f143_base) / 1024;
    double factor[4];
    UNROLL
    for (uint32_t p = 0; p < 4; p++) factor[p] = unit * r->weights->f143_factor[p];
    UNROLL
    for (uint32_t p = 0; p < 4; p++) UNROLL
    for (uint32_t k = 0; k < n; k++)
        row_sum(p, f143_add(r->weights, rest, p, x[k] + 8 * p, unit, &factor[p], sum[k]), &sum[k], &ret[k]);
}

/* The words of row k behind the ones before: loaded, and used by its calls. */
struct row_words {
    __m256i last_x, last_p, x, p;
};
VEC static inline __attribute__((always_inline)) struct row_words
row_load(const struct tile_fused_run *r, const struct rows *g, uint32_t k, enum row_shape shape,
         __m256i before_x, __m256i before_p) {
    struct row_words w = {.last_p = before_p, .p = _mm256_setzero_si256()};
    if (shape == ROW_TRACE) {
        const struct tile_fused_row *const t = g->row + k;
        w.last_x = words_load(r, &t->x, before_x);
        w.x = t->x_zero ? _mm256_setzero_si256() : words_after1(before_x, w.last_x);
        w.last_p = words_load(r, &t->partial, before_p);
        if (!t->partial_zero) w.p = words_after1(before_p, w.last_p);
        return w;
    }
    w.last_x = _mm256_loadu_si256((const __m256i *)(const void *)(g->load[0] + 32 * k));
    w.x = words_after1(before_x, w.last_x);
    if (shape == ROW_LEFT) return w;
    w.last_p = _mm256_loadu_si256((const __m256i *)(const void *)(g->load[1] + 32 * k));
    w.p = words_after1(before_p, w.last_p);
    return w;
}

/* Behind a row that was done. */
VEC static inline __attribute__((always_inline)) void row_end(struct rows *g,
                                                              const struct row_words *w,
                                                              enum row_shape shape, bool f143) {
    g->x = w->last_x;
    g->partial = w->last_p;
    g->minus_zero = shape != ROW_LEFT && f143 && halves_minus_zero(w->p);
    if (shape == ROW_TRACE) g->row++;
    else g->load[0] += 32, g->load[1] += 32;
}

/* Up to n rows; the number that was done. */
VEC static inline __attribute__((always_inline)) uint32_t rows_block(struct tile_fused_run *r,
                                                                     enum tile_fused_type type,
                                                                     struct sums *c, struct rows *g,
                                                                     enum row_shape shape,
                                                                     uint32_t n) {
    struct row_words w[ROWS];
    __m256i word_x[ROWS];
    d16s sum[ROWS];
    f16s even[ROWS];
    int16_t ints[ROWS][32] __attribute__((aligned(64)));
    const bool f143 = type == TILE_FUSED_F143, both = shape != ROW_LEFT;
    bool plain = !halves_special(words_of_sums(c->even)), doubles = !f143 || g->minus_zero;
    UNROLL
    for (uint32_t k = 0; k < n; k++) {
        w[k] = row_load(r, g, k, shape, k ? w[k - 1].last_x : g->x, k ? w[k - 1].last_p : g->partial);
        word_x[k] = w[k].x;
        plain = plain && !(f143 && codes_nan(word_x[k])) && !(both && halves_special(w[k].p));
        doubles = doubles || (both && k + 1 < n && halves_minus_zero(w[k].p));
    }
    if (__builtin_expect(!plain, 0)) return 0;
    UNROLL
    for (uint32_t k = 0; k < n; k++)
        sum[k] = d16s_of(k == 0 ? c->odd : both ? sums_of_words(w[k - 1].p) : f16s_zero());
    if (doubles || __builtin_expect(!rows_f143(r, word_x, n, ints), 0))
        rows_sum(r, type, word_x, n, sum, even);
    else if (f143_any_rest(r->weights)) rows_sum_ints(r, true, ints, n, sum, even);
    else rows_sum_ints(r, false, ints, n, sum, even);
    UNROLL
    for (uint32_t k = 0; k < n; k++) {
        const __m256i out = words_of_sums(c->even);
        if (__builtin_expect(k != 0 && halves_special(out), 0)) return k;
        rows_store(r, g, out, shape);
        c->even = even[k];
        c->odd = both ? sums_of_words(w[k].p) : f16s_zero();
        row_end(g, &w[k], shape, f143);
    }
    return n;
}

/* Rows of the next block: as many as can be, but not one alone at the end. */
static inline uint32_t rows_next(uint32_t most, uint64_t left) {
    if (left > most) return left == most + 1 && most > 2 ? most - 1 : most;
    return (uint32_t)left;
}

/* Up to n rows; the number that was done. */
VEC static inline __attribute__((always_inline)) uint64_t rows_all(struct tile_fused_run *r,
                                                                   enum tile_fused_type type,
                                                                   struct sums *sums,
                                                                   struct rows *g, uint64_t n,
                                                                   enum row_shape shape) {
    struct sums c = *sums;
    g->x = _mm256_set1_epi64x((long long)r->pairs[r->row_x]);
    g->partial = _mm256_set1_epi64x((long long)r->pairs[r->row_partial]);
    g->minus_zero = halves_minus_zero(f16s_halves(c.odd));
    g->out = _mm256_set_epi64x((long long)r->pairs[r->row_result[1]],
                               (long long)r->pairs[r->row_result[0]], 0, 0);
    uint64_t left = n;
    uint32_t done = ROWS;
    for (; done == ROWS && left >= ROWS; left -= done)
        done = rows_block(r, type, &c, g, shape, ROWS);
    if (ROWS > 2 && done == ROWS && left == 2) { /* half the work of two alone */
        done = rows_block(r, type, &c, g, shape, ROWS > 2 ? 2 : 1);
        left -= done;
    }
    for (; done != 0 && left != 0 && ROWS > 1; left -= done)
        done = rows_block(r, type, &c, g, shape, 1);
    *sums = c;
    r->pairs[r->row_x] = (uint64_t)_mm256_extract_epi64(g->x, 3);
    if (shape != ROW_LEFT) r->pairs[r->row_partial] = (uint64_t)_mm256_extract_epi64(g->partial, 3);
    r->pairs[r->row_result[0]] = (uint64_t)_mm256_extract_epi64(g->out, 2);
    r->pairs[r->row_result[1]] = (uint64_t)_mm256_extract_epi64(g->out, 3);
    return n - left;
}

/* Rows of a loop from phase 0 on, at most n slots; the number of slots done. */
VEC static inline __attribute__((always_inline)) uint64_t rows_run(struct tile_fused_run *r,
                                                                   enum tile_fused_type type,
                                                                   struct sums *sums, uint64_t n,
                                                                   enum row_shape shape) {
    const struct tile_fused_slot *const s = r->slots;
    uint8_t **const load0 = &r->pointer[s->load[0].stream],
                    **const load1 = &r->pointer[s->load[1].stream];
    uint8_t **const store = &r->pointer[s->store.stream];
    struct rows g = {.load = {*load0, *load1}, .store = *store};
    const uint64_t done = rows_all(r, type, sums, &g, n / 4, shape);
    *load0 = g.load[0];
    if (shape == ROW_BOTH) *load1 = g.load[1];
    *store = g.store;
    return 4 * done;
}

/* Rows of a trace. */
VEC static inline __attribute__((always_inline)) uint32_t
trace_run(struct tile_fused_run *r, enum tile_fused_type type, uint32_t n) {
    struct sums c = {f16s_load(r->acc->even), f16s_load(r->acc->odd)};
    if (!f16s_plain(c.even) || !f16s_plain(c.odd)) return 0;
    struct rows g = {.row = r->rows};
    const uint32_t done = (uint32_t)rows_all(r, type, &c, &g, n, ROW_TRACE);
    f16s_store(r->acc->even, f16s_clean(c.even));
    f16s_store(r->acc->odd, c.odd);
    return done;
}
