/* What a fused run starts from (tile_amp_plan.h). */
#include "tile/tile_amp_plan.h"

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
