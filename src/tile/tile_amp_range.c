/* Checks of plain execution on ranges of addresses, and what a fused run starts from
 * (tile_amp_plan.h). */
#include "tile/tile_amp_plan.h"

enum { ELEMENT_SHIFT = 14 };
_Static_assert(TARGET_ELEMENT_BYTES == 1 << ELEMENT_SHIFT &&
                   TARGET_SRAM_BASE % TARGET_ELEMENT_BYTES == 0 &&
                   TARGET_REGION1_BASE % TARGET_ELEMENT_PAIR_BYTES == 0 &&
                   TARGET_ELEMENT_PAIR_BYTES == 2 << ELEMENT_SHIFT,
               "elements are address bits");

/* True when the package allows stores to every word of the range. */
static bool writable(const struct tile *t, uint32_t first, uint32_t bytes) {
    return t->writable == NULL || tile_bits_all(t->writable, first, bytes);
}

bool tile_range_ok(const struct tile_exec *e, struct tile_code_range code, bool loads, bool stores,
                   const struct tile_range *v, bool *io_all_written) {
    const struct tile *t = e->t;
    if (v->start % 8 != 0 || v->first < TARGET_SRAM_BASE || v->end > TARGET_SRAM_END) return false;
    const uint32_t first = (uint32_t)v->first, bytes = (uint32_t)(v->end - v->first);
    /* Elements of region 0, where the code is, are numbered by address bits. */
    if (first >> ELEMENT_SHIFT <= (code.end - 1) >> ELEMENT_SHIFT &&
        (first + bytes - 1) >> ELEMENT_SHIFT >= code.first >> ELEMENT_SHIFT)
        return false;
    const bool written = tile_all_written(t, first, bytes);
    if (stores && !written) *io_all_written = false;
    return (!loads || written) && (!stores || writable(t, first, bytes));
}

/* Ports lie apart when the ranges touch no common element, or when both stay in region 1 and the
 * accesses of a bundle always fall into different halves of an interleaved pair. */
bool tile_ranges_apart(const struct tile_range *a, const struct tile_range *b, uint32_t parities,
                       bool steady) {
    const int pair =
        ELEMENT_SHIFT + 1; /* different pairs of elements: different elements for sure */
    if ((a->end - 1) >> pair < b->first >> pair || (b->end - 1) >> pair < a->first >> pair)
        return true;
    const uint32_t a0 = target_element((uint32_t)a->first),
                   a1 = target_element((uint32_t)a->end - 1);
    const uint32_t b0 = target_element((uint32_t)b->first),
                   b1 = target_element((uint32_t)b->end - 1);
    if (a1 < b0 || b1 < a0) return true;
    const bool odd = ((a->start ^ b->start) & 8) != 0;
    return a->first >= TARGET_REGION1_BASE && b->first >= TARGET_REGION1_BASE && steady &&
           parities == (odd ? 1 : 2);
}

/* No NaN, no denormals; the vector loops look themselves. */
static bool sums_plain(const struct tile_accumulators *acc) {
    uint32_t bad = 0;
    for (uint32_t k = 0; k < 16; k++) {
        const uint32_t e = num_f32_bits(acc->even[k]) << 1, o = num_f32_bits(acc->odd[k]) << 1;
        bad |=
            (e > 0xff000000u) | (e - 1 < 0x00ffffffu) | (o > 0xff000000u) | (o - 1 < 0x00ffffffu);
    }
    return bad == 0;
}

bool tile_fused_ready(const struct tile_exec *e, uint64_t weights) {
    return (e->t->weights_defined & weights) == weights && e->w->acc_defined == UINT32_MAX &&
           (!e->timing || sums_plain(&e->w->acc));
}

enum tile_fused_type tile_fused_prepare(struct tile_exec *e, bool f8, uint8_t *f143_base,
                                        struct tile_fused_run *r) {
    struct tile *t = e->t;
    r->acc = &e->w->acc;
    memcpy(r->pairs, e->a, 32);
    r->pairs[TILE_PAIR_ZERO] = 0;
    r->memory = t->bytes;
    if (!f8) {
        r->w = tile_weights_f16(t)->f16[0][0];
        return TILE_FUSED_F16;
    }
    const enum num_f8_format fw = (enum num_f8_format)(e->w->fp_nfmt & 1);
    r->weights = tile_weights_f8_any(t, fw, tile_f8_scale(e->w));
    r->w = r->weights->f8[0][0];
    r->f143_base = f143_base;
    const enum num_f8_format fx = (enum num_f8_format)(e->w->fp_nfmt >> 1 & 1);
    r->f8_values = tile_f8_values(fx);
    if (fw == NUM_F143 && fx == NUM_F143) return TILE_FUSED_F143;
    tile_weights_doubles(r->weights);
    return TILE_FUSED_F8;
}
