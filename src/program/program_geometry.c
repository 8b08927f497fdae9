/* Layouts turned into numbers: balanced splits, boxes, windows, offsets, owners. Everything is
 * closed form; nothing is stored per shard. */
#include "program/program.h"

uint32_t program_format_bytes(uint32_t format) {
    static const uint8_t BYTES[] = {
        [PROGRAM_F16] = 2, [PROGRAM_F32] = 4, [PROGRAM_F8_F143] = 1, [PROGRAM_F8_F152] = 1,
        [PROGRAM_U32] = 4};
    return BYTES[format];
}

uint32_t program_part_start(uint32_t extent, uint32_t grain, uint32_t n, uint32_t i) {
    const uint32_t units = ceil_div_u32(extent, grain);
    const uint64_t first = (uint64_t)i * (units / n) + (i < units % n ? i : units % n);
    const uint64_t start = first * grain;
    return start < extent ? (uint32_t)start : extent;
}

uint32_t program_part_of(uint32_t extent, uint32_t grain, uint32_t n, uint32_t x) {
    const uint32_t units = ceil_div_u32(extent, grain), small = units / n, large = units % n;
    const uint32_t u = x / grain;
    return u < large * (small + 1) ? u / (small + 1) : large + (u - large * (small + 1)) / small;
}

uint32_t program_n_shards(const struct program_value *v) {
    uint32_t n = 1;
    for (uint32_t i = 0; i < PROGRAM_N_AXES; i++) n *= v->layout.count[i];
    return n;
}

uint32_t program_shard_number(const struct program_value *v, const uint32_t *index) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < PROGRAM_N_AXES; i++) n = n * v->layout.count[i] + index[i];
    return n;
}

/* Narrows axis a of the box to sub-box i of n. */
static void narrow(struct program_shard *s, uint32_t a, uint32_t grain, uint32_t n, uint32_t i) {
    const uint32_t start = s->start[a], width = s->end[a] - start;
    s->start[a] = start + program_part_start(width, grain, n, i);
    s->end[a] = start + program_part_start(width, grain, n, i + 1);
}

void program_find(const struct program_value *v, const uint32_t y[3],
                  uint32_t ret_index[PROGRAM_N_AXES]) {
    const struct program_layout *l = &v->layout;
    const uint32_t extents[3] = {v->batch, v->rows, v->cols};
    uint32_t at[3], width[3];
    for (uint32_t a = 0; a < PROGRAM_N_AXES; a++) ret_index[a] = 0;
    for (uint32_t a = 0; a < 3; a++) {
        const uint32_t i = program_part_of(extents[a], l->grain[a], l->count[a], y[a]);
        const uint32_t start = program_part_start(extents[a], l->grain[a], l->count[a], i);
        ret_index[a] = i;
        at[a] = y[a] - start;
        width[a] = program_part_start(extents[a], l->grain[a], l->count[a], i + 1) - start;
    }
    if (l->window_rows == 0) return;
    const uint32_t row = program_part_of(width[1], 1, l->window_rows, at[1]);
    const uint32_t col = program_part_of(width[2], l->pad[2], l->window_cols, at[2]);
    ret_index[PROGRAM_WINDOW] = col * l->window_rows + row;
}

void program_shard_at(const struct program_value *v, uint32_t number, struct program_shard *ret) {
    const struct program_layout *l = &v->layout;
    const uint32_t extents[3] = {v->batch, v->rows, v->cols};
    ret->tile = l->base;
    for (uint32_t i = PROGRAM_N_AXES; i-- > 0;) {
        ret->index[i] = number % l->count[i];
        number /= l->count[i];
        ret->tile += program_owner_step(l, i, ret->index[i]);
    }
    const uint32_t n = l->count[PROGRAM_WINDOW], w = ret->index[PROGRAM_WINDOW];
    for (uint32_t a = 0; a < 3; a++) {
        ret->start[a] = program_part_start(extents[a], l->grain[a], l->count[a], ret->index[a]);
        ret->end[a] = program_part_start(extents[a], l->grain[a], l->count[a], ret->index[a] + 1);
    }
    if (l->window_rows) {
        narrow(ret, 1, 1, l->window_rows, w % l->window_rows);
        narrow(ret, 2, l->pad[2], l->window_cols, w / l->window_rows);
    }
    ret->part_bytes = program_format_bytes(l->format);
    for (uint32_t a = 0; a < 3; a++) {
        ret->extent[a] = ceil_div_u32(ret->end[a] - ret->start[a], l->pad[a]) * l->pad[a];
        ret->part_bytes *= ret->extent[a];
    }
    ret->window = 0;
    ret->bytes = ret->part_bytes;
    if (l->window_rows) return;
    ret->window = program_part_start(ret->part_bytes, l->window_grain, n, w);
    ret->bytes = program_part_start(ret->part_bytes, l->window_grain, n, w + 1) - ret->window;
}

uint32_t program_digits(const struct program_layout *l, const struct program_shard *s,
                        struct program_digit ret[PROGRAM_MAX_DIGITS]) {
    const uint32_t e = program_format_bytes(l->format), m = 32 / e;
    const uint32_t nb = s->extent[0], nr = s->extent[1], nc = s->extent[2];
    enum { B = PROGRAM_BATCH, R = PROGRAM_ROWS, C = PROGRAM_COLS };
    const struct program_digit nests[PROGRAM_N_ORDERS][PROGRAM_MAX_DIGITS] = {
        [PROGRAM_ROW_MAJOR] = {{B, 1, nb, 0}, {R, 1, nr, 0}, {C, 1, nc, 0}},
        [PROGRAM_AMP_LEFT] = {{C, m, nc / m, 0}, {B, 1, nb, 0}, {R, 1, nr, 0}, {C, 1, m, 0}},
        [PROGRAM_AMP_BATCHED] = {{B, 1, nb, 0}, {C, m, nc / m, 0}, {R, 1, nr, 0}, {C, 1, m, 0}},
        [PROGRAM_COEFF] =
            {{B, 1, nb, 0}, {C, 16, nc / 16, 0}, {R, m, nr / m, 0}, {C, 1, 16, 0}, {R, 1, m, 0}},
        [PROGRAM_COEFF_T] =
            {{B, 1, nb, 0}, {R, 16, nr / 16, 0}, {C, m, nc / m, 0}, {R, 1, 16, 0}, {C, 1, m, 0}},
    };
    static const uint8_t DIGITS[PROGRAM_N_ORDERS] = {3, 4, 4, 5, 5};
    const uint32_t n = DIGITS[l->order];
    uint32_t stride = e;
    for (uint32_t i = n; i-- > 0;) {
        ret[i] = nests[l->order][i];
        ret[i].stride = stride;
        stride *= ret[i].extent;
    }
    return n;
}

uint32_t program_offset(const struct program_layout *l, const struct program_shard *s,
                        const uint32_t at[3]) {
    const uint32_t e = program_format_bytes(l->format), m = 32 / e;
    const uint32_t b = at[0], r = at[1], c = at[2];
    const uint32_t nr = s->extent[1], nc = s->extent[2];
    switch (l->order) {
    case PROGRAM_ROW_MAJOR:
        return e * ((b * nr + r) * nc + c);
    case PROGRAM_AMP_LEFT:
        return e * ((c / m * s->extent[0] + b) * nr * m + r * m + c % m);
    case PROGRAM_AMP_BATCHED:
        return e * (b * nr * nc + (c / m * nr + r) * m + c % m);
    case PROGRAM_COEFF:
        return e * (b * nr * nc + c / 16 * (nr * 16) + r / m * (16 * m) + c % 16 * m + r % m);
    case PROGRAM_COEFF_T:
        return e * (b * nr * nc + r / 16 * (nc * 16) + c / m * (16 * m) + r % 16 * m + c % m);
    default:
        BUG_ON(true); /* unknown order */
    }
    return 0;
}

uint64_t program_value_fullest(const struct program_value *v, uint32_t n_tiles,
                               uint32_t *ret_tile) {
    uint64_t *bytes = g_new0(uint64_t, n_tiles), most = 0;
    uint32_t tile = 0;
    const uint32_t n = program_n_shards(v);
    for (uint32_t i = 0; i < n; i++) {
        struct program_shard s;
        program_shard_at(v, i, &s);
        bytes[s.tile] += s.bytes;
        if (bytes[s.tile] <= most) continue;
        most = bytes[s.tile];
        tile = s.tile;
    }
    g_free(bytes);
    *ret_tile = tile;
    return most * (v->sequence ? v->sequence : 1);
}

uint64_t program_value_tile_bytes(const struct program_value *v, uint32_t n_tiles) {
    uint32_t tile;
    return program_value_fullest(v, n_tiles, &tile);
}
