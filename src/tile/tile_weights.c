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

const struct tile_weights *tile_weights_f8(struct tile *t, enum num_f8_format format,
                                           int32_t scale) {
    struct tile_weights *u = unpacked(t);
    if (u->f8_generation == t->weights_generation && u->f8_format == format && u->f8_scale == scale)
        return u;
    u->f8_generation = t->weights_generation;
    u->f8_format = format;
    u->f8_scale = scale;
    u->f143_limit = 0;
    if (format == NUM_F143 && vector_code(t) && tile_vec_weights_f143(t->weights, scale, u))
        return u;
    double value[256];
    const double *const unscaled = tile_f8_values(format), factor = ldexp(1, scale);
    for (uint32_t q = 0; q < 256; q++) value[q] = unscaled[q] * factor;
    const uint8_t *const bytes = (const uint8_t *)t->weights;
    for (uint32_t p = 0; p < 4; p++)
        for (uint32_t i = 0; i < 8; i++)
            for (uint32_t unit = 0; unit < 16; unit++)
                u->f8[p][i][unit] = value[bytes[32 * unit + 8 * p + i]];
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

/* True when the load can't be anything but plain: what weights_load and tile_load check. */
static bool load_plain(const struct tile *t, uint32_t pc, uint32_t index, uint32_t n) {
    const uint32_t address = t->s.cccsload, bytes = 8 * n;
    const uint32_t first = n == 2 ? TARGET_REGION1_BASE : TARGET_SRAM_BASE,
                   word = (address - TARGET_SRAM_BASE) / 4;
    if (address < first || (address | index * 8) % bytes != 0 ||
        address + bytes > TARGET_SRAM_END || index + n > 64)
        return false;
    if (address < TARGET_REGION1_BASE && target_element(address) == target_element(pc))
        return false;
    const uint64_t all = n == 2 ? 15 : 3;
    return (~(t->written[word / 64] >> word % 64) & all) == 0 && tile_all_written(t, pc, 4);
}

uint32_t tile_weights_loads(struct tile *t, uint32_t pc, uint32_t most) {
    struct tile_cache *cache = tile_cache_get();
    uint32_t k = 0;
    for (; k < most && pc < TARGET_REGION1_BASE; k++, pc += 4) {
        uint32_t word;
        memcpy(&word, t->bytes + (pc - TARGET_SRAM_BASE), 4);
        const struct tile_slot *s = word >> 31 ? NULL : tile_cache_slot(cache, pc, word, 0);
        if (s == NULL || (s->main != tile_op_LD64PUTCS && s->main != tile_op_LD128PUTCS)) break;
        const uint32_t n = s->main == tile_op_LD128PUTCS ? 2 : 1, index = (uint32_t)s->mi.imm;
        if (!load_plain(t, pc, index, n)) break;
        const uint8_t *from = t->bytes + (t->s.cccsload - TARGET_SRAM_BASE);
        memcpy(&t->weights[index], from, 8);
        if (n == 2) memcpy(&t->weights[index + 1], from + 8, 8);
        t->weights_defined |= ((UINT64_C(1) << n) - 1) << index;
        t->s.cccsload = (t->s.cccsload + 8 * n) & ADDRESS_MASK;
    }
    if (k != 0) tile_weights_changed(t);
    return k;
}
