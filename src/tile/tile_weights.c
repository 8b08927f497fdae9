/* Weights: the common state of the matrix unit. The supervisor loads it; what the unit multiplies
 * by are the same numbers as doubles, made when they are first used. */
#include "tile/tile_amp.h"
#include "tile/tile_vec.h"

#include <math.h>

const double *tile_f8_values(enum num_f8_format format) {
    static double values[2][256];
    static gsize done;
    if (g_once_init_enter(&done)) {
        for (uint32_t q = 0; q < 512; q++)
            values[q / 256][q % 256] = num_f8_to_f64((uint8_t)q, (enum num_f8_format)(q / 256), 0);
        g_once_init_leave(&done, 1);
    }
    return values[format];
}

void tile_weights_changed(struct tile *t) {
    t->weights_generation++;
    if (t->weights_generation == 0) t->weights_generation = 1;
}

void tile_weights_free(struct tile *t) {
    free(t->unpacked);
    t->unpacked = NULL;
}

static struct tile_weights *unpacked(struct tile *t) {
    if (t->unpacked == NULL) {
        t->unpacked = aligned_alloc(64, (sizeof(struct tile_weights) + 63) & ~(size_t)63);
        if (t->unpacked == NULL) base_oom(sizeof(struct tile_weights));
        t->unpacked->f16_generation = t->unpacked->f8_generation = 0;
        t->unpacked->words = NULL;
    }
    return t->unpacked;
}

static bool vector_code(const struct tile *t) {
    return t->config->simd != TILE_SIMD_SCALAR && tile_simd_best() != TILE_SIMD_SCALAR;
}

const struct tile_weights *tile_weights_f16(struct tile *t) {
    struct tile_weights *u = unpacked(t);
    if (u->f16_generation == t->weights_generation) return u;
    u->f16_generation = t->weights_generation;
    if (vector_code(t) && tile_vec_weights(t->weights, u->f16)) return u;
    for (uint32_t unit = 0; unit < 16; unit++)
        for (uint32_t p = 0; p < 4; p++)
            for (uint32_t i = 0; i < 4; i++)
                u->f16[p][i][unit] = num_f16_to_f32((uint16_t)(t->weights[4 * unit + p] >> 16 * i));
    return u;
}

static void weights_convert(const uint64_t words[64], struct tile_weights *u) {
    double value[256];
    const double *const unscaled = tile_f8_values((enum num_f8_format)u->f8_format),
                        factor = ldexp(1, u->f8_scale);
    for (uint32_t q = 0; q < 256; q++) value[q] = unscaled[q] * factor;
    const uint8_t *const bytes = (const uint8_t *)words;
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t i = 0; i < 8; i++)
            for (uint32_t unit = 0; unit < 16; unit++)
                u->f8[p][i][unit] = value[bytes[32 * unit + 8 * p + i]];
}

struct tile_weights *tile_weights_f8_any(struct tile *t, enum num_f8_format format, int32_t scale) {
    struct tile_weights *u = unpacked(t);
    if (u->words != NULL) u->words = t->weights;
    if (u->f8_generation == t->weights_generation && u->f8_format == format && u->f8_scale == scale)
        return u;
    u->f8_generation = t->weights_generation;
    u->f8_format = format;
    u->f8_scale = scale;
    u->f143_limit = 0;
    u->words = NULL;
    const struct tile_amp_vec *vec = vector_code(t) ? tile_amp_vec(t->config->simd) : NULL;
    if (format == NUM_F143 && vec != NULL && vec->weights_f143(t->weights, scale, u))
        u->words = t->weights;
    else weights_convert(t->weights, u);
    return u;
}
void tile_weights_doubles(struct tile_weights *w) {
    if (w->words != NULL) tile_vec_weights_f143_doubles(w->words, w);
    w->words = NULL;
}
const struct tile_weights *tile_weights_f8(struct tile *t, enum num_f8_format format, int32_t scale) {
    struct tile_weights *u = tile_weights_f8_any(t, format, scale);
    tile_weights_doubles(u);
    return u;
}

enum { ADDRESS_MASK = 0x1fffff };

/* --- Loading: $CCCSLOAD is the address (kernels 8.9 item 16). --- */

static void weights_load(struct tile_exec *e, uint32_t index, uint32_t n) {
    struct tile *t = e->t;
    const uint32_t address = t->s.cccsload, bytes = 8 * n;
    if (t->n_active != 0) tile_raise(e, TILE_FAULT_WEIGHTS_BUSY, 0, index);
    if (index + n > 64 || index % n != 0) {
        tile_raise(e, TILE_FAULT_CCCS_INDEX, 0, index);
        return;
    }
    if (address % bytes != 0) {
        tile_raise(e, TILE_FAULT_CCCS_MISALIGNED, address, index);
        return;
    }
    memcpy(&t->weights[index], tile_load(e, address, bytes), bytes);
    t->weights_defined |= ((UINT64_C(1) << n) - 1) << index;
    t->s.cccsload = (address + bytes) & ADDRESS_MASK;
    tile_weights_changed(t);
}
EXEC(LD64PUTCS) {
    weights_load(e, (uint32_t)i->imm, 1);
}
EXEC(LD128PUTCS) {
    weights_load(e, (uint32_t)i->imm, 2);
}

/* Loads that follow each other in the code, found by their words. */
enum { RUNS = 64, RUN_MAX = 64 };
struct load_run {
    uint32_t n, bytes; /* instructions; of memory that all of them load */
    uint32_t words[RUN_MAX];
    uint8_t index[RUN_MAX], wide[RUN_MAX]; /* wide: 128 bits */
    uint64_t defines;                      /* as weights_defined */
    bool any_wide;
};

/* The loads at most `most` from memory on; unwritten code is not looked at. */
static void run_make(const uint8_t *code, uint32_t most, struct load_run *r) {
    struct tile_cache *cache = tile_cache_get();
    *r = (struct load_run){0};
    for (; r->n < RUN_MAX && r->n < most; r->n++) {
        uint32_t word;
        memcpy(&word, code + 4 * r->n, 4);
        const struct tile_slot *s = word >> 31 ? NULL : tile_cache_decode(cache, word, 0);
        if (s == NULL || (s->main != tile_op_LD64PUTCS && s->main != tile_op_LD128PUTCS)) break;
        const bool wide = s->main == tile_op_LD128PUTCS;
        const uint32_t index = (uint32_t)s->mi.imm;
        if (index + 1 + wide > 64 || (wide && (index % 2 != 0 || r->bytes % 16 != 0))) break;
        r->words[r->n] = word;
        r->index[r->n] = (uint8_t)index;
        r->wide[r->n] = wide;
        r->any_wide |= wide;
        r->defines |= (wide ? UINT64_C(3) : UINT64_C(1)) << index;
        r->bytes += wide ? 16 : 8;
    }
}

/* The run at pc, made again when the code differs. */
static const struct load_run *run_get(const struct tile *t, uint32_t pc, uint32_t most) {
    static _Thread_local struct load_run *runs;
    if (runs == NULL) runs = g_new0(struct load_run, RUNS);
    struct load_run *r = &runs[pc / 128 % RUNS];
    const uint8_t *code = t->bytes + (pc - TARGET_SRAM_BASE);
    if (r->n == 0 || memcmp(r->words, code, 4 * (size_t)r->n) != 0) run_make(code, most, r);
    return r;
}

/* True when no load of the run can be anything but plain: what weights_load and tile_load check. */
static bool run_plain(const struct tile *t, uint32_t pc, const struct load_run *r) {
    const uint32_t address = t->s.cccsload;
    const uint32_t first = r->any_wide ? TARGET_REGION1_BASE : TARGET_SRAM_BASE;
    if (address < first || address % (r->any_wide ? 16 : 8) != 0 || address + r->bytes > TARGET_SRAM_END)
        return false;
    if (address < TARGET_REGION1_BASE &&
        target_element(address) <= target_element(pc + 4 * r->n - 1) &&
        target_element(address + r->bytes - 1) >= target_element(pc))
        return false;
    return tile_all_written(t, address, r->bytes) && tile_all_written(t, pc, 4 * r->n);
}

uint32_t tile_weights_loads(struct tile *t, uint32_t pc, uint32_t most) {
    const uint32_t left = pc < TARGET_REGION1_BASE ? (TARGET_REGION1_BASE - pc) / 4 : 0;
    const struct load_run *r = run_get(t, pc, left < RUN_MAX ? left : RUN_MAX);
    if (r->n == 0 || r->n > most || r->n > left || !run_plain(t, pc, r)) return 0;
    const uint8_t *from = t->bytes + (t->s.cccsload - TARGET_SRAM_BASE);
    for (uint32_t k = 0; k < r->n; k++) {
        uint64_t *const to = &t->weights[r->index[k]];
        memcpy(to, from, 8);
        if (r->wide[k]) memcpy(to + 1, from + 8, 8);
        from += r->wide[k] ? 16 : 8;
    }
    t->weights_defined |= r->defines;
    t->s.cccsload = (t->s.cccsload + r->bytes) & ADDRESS_MASK;
    tile_weights_changed(t);
    return r->n;
}
