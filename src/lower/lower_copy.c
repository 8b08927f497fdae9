/* Movement. One path for all copies: walk every destination shard in storage order; at each point
 * map the coordinate to its source, find the longest stretch that is contiguous in both storages,
 * and merge it with the one before. Each merged run is one transfer to all replicas of the shard,
 * or a local copy where source and only recipient share a tile. Bytes of the destination that no
 * source holds are cleared before the phase.
 *
 * Cost: one step per 32-byte row of every distinct destination shard, whatever the number of
 * replicas; one per element of a view. Runs that are not whole words arrive with the words around
 * them and are moved by halves behind the phase (lower_pack.c); single bytes are refused. */
#include "lower/lower_internal.h"
#include "target/target.h"

enum { HOLE = LOWER_HOLE, FILLER = LOWER_FILLER };

struct walk {
    const struct program_value *d, *s;
    const struct program_map *map;
    const struct program_view *view; /* NULL: by the map */
    struct program_shard ds, ss;     /* ss: cached source part */
    bool ss_valid, identity, filled; /* filled: the last column comes from the filler */
    struct program_digit dd[PROGRAM_MAX_DIGITS], sd[PROGRAM_MAX_DIGITS];
    uint32_t n_dd, n_sd, element;
    GArray *runs;
};

static void extents_of(const struct program_value *v, uint32_t ret[3]) {
    ret[0] = v->batch;
    ret[1] = v->rows;
    ret[2] = v->cols;
}

static bool map_is_identity(const struct program_map *m, const struct program_value *d) {
    uint32_t extent[3];
    extents_of(d, extent);
    for (uint32_t a = 0; a < 3; a++) {
        if (m->inner[a] < extent[a] || m->offset[a] != 0 || m->low) return false;
        for (uint32_t b = 0; b < 3; b++)
            if (m->inner_to[a][b] != (a == b)) return false;
    }
    return true;
}

/* Absolute destination coordinate of a byte of the part's storage; *ret_left = elements left in the
 * contiguous digit. */
static void decode(const struct walk *w, uint32_t byte, uint32_t x[3], uint32_t *ret_left) {
    for (uint32_t a = 0; a < 3; a++) x[a] = w->ds.start[a];
    uint32_t i = 0;
    for (uint32_t k = 0; k < w->n_dd; k++) {
        i = byte / w->dd[k].stride;
        byte %= w->dd[k].stride;
        x[w->dd[k].axis] += i * w->dd[k].step;
    }
    *ret_left = w->dd[w->n_dd - 1].extent - i;
}

static bool apply_map(const struct walk *w, const uint32_t x[3], int64_t y[3]) {
    const struct program_map *m = w->map;
    uint32_t inner[3];
    for (uint32_t d = 0; d < 3; d++) inner[d] = x[d] % m->inner[d];
    const uint32_t low = m->low ? inner[0] % m->low : 0;
    if (m->low) inner[0] /= m->low;
    for (uint32_t a = 0; a < 3; a++) y[a] = m->offset[a] + (int64_t)low * m->low_to[a];
    for (uint32_t d = 0; d < 3; d++)
        for (uint32_t a = 0; a < 3; a++)
            y[a] += (int64_t)(x[d] / m->inner[d]) * m->outer_to[d][a] +
                    (int64_t)inner[d] * m->inner_to[d][a];
    uint32_t extent[3];
    extents_of(w->s, extent);
    for (uint32_t a = 0; a < 3; a++)
        if (y[a] < 0 || y[a] >= extent[a]) return false;
    return true;
}

/* The source axis along which a step of destination axis d moves by one, or 3. */
static uint32_t moved_axis(const struct program_map *m, uint32_t d) {
    uint32_t axis = 3;
    for (uint32_t a = 0; a < 3; a++) {
        if (m->inner_to[d][a] == 0) continue;
        if (m->inner_to[d][a] != 1 || axis != 3) return 3;
        axis = a;
    }
    return axis;
}

/* Loads the source part that holds y into the cache. */
static void find_part(struct walk *w, const uint32_t y[3]) {
    if (w->ss_valid) {
        bool inside = true;
        for (uint32_t a = 0; a < 3; a++)
            inside = inside && y[a] >= w->ss.start[a] && y[a] - w->ss.start[a] < w->ss.extent[a] &&
                     (y[a] < w->ss.end[a] || w->identity);
        if (inside) return;
    }
    uint32_t extent[3], index[PROGRAM_N_AXES], z[3];
    extents_of(w->s, extent);
    for (uint32_t a = 0; a < 3; a++) z[a] = MIN(y[a], extent[a] - 1);
    program_find(w->s, z, index);
    program_shard_at(w->s, program_shard_number(w->s, index), &w->ss);
    w->n_sd = program_digits(&w->s->layout, &w->ss, w->sd);
    w->ss_valid = true;
}

static void add_run(struct walk *w, struct lower_run r) {
    if (w->runs->len) {
        struct lower_run *last = &g_array_index(w->runs, struct lower_run, w->runs->len - 1);
        if (last->shard == r.shard && last->to + last->bytes == r.to &&
            (r.shard == HOLE || last->from + last->bytes == r.from)) {
            last->bytes += r.bytes;
            return;
        }
    }
    g_array_append_val(w->runs, r);
}

/* The source shard and offset of the element at `at` in the cached part; *n elements in a row are
 * cut to its window. */
static void place_run(const struct walk *w, const uint32_t at[3], uint32_t *n, struct lower_run *r) {
    const uint32_t offset = program_offset(&w->s->layout, &w->ss, at);
    const struct program_layout *sl = &w->s->layout;
    uint32_t index[PROGRAM_N_AXES] = {w->ss.index[0], w->ss.index[1], w->ss.index[2]};
    if (sl->window_rows) { /* the cached shard is the window */
        index[PROGRAM_WINDOW] = w->ss.index[PROGRAM_WINDOW];
        r->shard = program_shard_number(w->s, index);
        r->from = offset;
        return;
    }
    const uint32_t windows = sl->count[PROGRAM_WINDOW];
    const uint32_t i = program_part_of(w->ss.part_bytes, sl->window_grain, windows, offset);
    index[PROGRAM_WINDOW] = i;
    const uint32_t start = program_part_start(w->ss.part_bytes, sl->window_grain, windows, i);
    const uint32_t end = program_part_start(w->ss.part_bytes, sl->window_grain, windows, i + 1);
    *n = MIN(*n, (end - offset) / w->element);
    r->shard = program_shard_number(w->s, index);
    r->from = offset - start;
}

/* Source of the elements at destination coordinate x: the run's length in elements is cut to what
 * is contiguous in the source. False: a hole. */
static bool locate(struct walk *w, const uint32_t x[3], uint32_t *n, struct lower_run *r) {
    const uint32_t d_axis = w->dd[w->n_dd - 1].axis, inner = w->map->inner[d_axis], rest = *n;
    uint32_t extent[3], y[3];
    extents_of(w->d, extent);
    int64_t wide[3];
    bool padding = false;
    for (uint32_t a = 0; a < 3; a++) padding = padding || x[a] >= w->ds.end[a];
    if (padding && !w->identity) return false;
    if (!padding) *n = MIN(*n, w->ds.end[d_axis] - x[d_axis]);
    if (!padding && !apply_map(w, x, wide)) return false;
    for (uint32_t a = 0; a < 3; a++) y[a] = padding ? x[a] : (uint32_t)wide[a];
    find_part(w, y);
    uint32_t at[3];
    for (uint32_t a = 0; a < 3; a++) {
        at[a] = y[a] - w->ss.start[a];
        if (y[a] < w->ss.start[a] || at[a] >= w->ss.extent[a]) return false;
    }
    *n = MIN(*n, inner - x[d_axis] % inner);
    const uint32_t s_axis = moved_axis(w->map, d_axis);
    const struct program_digit *last = &w->sd[w->n_sd - 1];
    const uint32_t run_axis = padding ? d_axis : s_axis;
    if (run_axis != last->axis) *n = 1;
    else
        *n = MIN(*n, MIN(last->extent - at[run_axis] % last->extent,
                         w->ss.extent[run_axis] - at[run_axis]));
    if (!padding && run_axis < 3) {
        *n = MIN(*n, w->ss.end[run_axis] - y[run_axis]);
        uint32_t se[3];
        extents_of(w->s, se);
        /* Both end here: what follows is zero padding in both. */
        if (run_axis == last->axis && x[d_axis] + *n == extent[d_axis] &&
            y[run_axis] + *n == se[run_axis])
            *n = MIN(rest, MIN(last->extent - at[run_axis] % last->extent,
                               w->ss.extent[run_axis] - at[run_axis]));
    }
    place_run(w, at, n, r);
    return true;
}

static void walk_shard(struct walk *w) {
    const uint32_t end = w->ds.window + w->ds.bytes;
    for (uint32_t byte = w->ds.window; byte < end;) {
        uint32_t x[3], n;
        decode(w, byte, x, &n);
        n = MIN(n, (end - byte) / w->element);
        struct lower_run r = {.to = byte - w->ds.window};
        if (w->filled && x[2] == w->d->cols - 1) r.shard = FILLER;
        else if (!locate(w, x, &n, &r)) r.shard = HOLE, r.from = 0;
        r.bytes = n * w->element;
        add_run(w, r);
        byte += r.bytes;
    }
}

/* Number of the source element behind destination coordinate x; false: the cut leaves it out. */
static bool view_number(const struct walk *w, const uint32_t x[3], uint32_t *ret) {
    const struct program_view *v = w->view;
    uint32_t number = (x[0] * w->d->rows + x[1]) * w->d->cols + x[2], from = v->offset;
    for (uint32_t i = v->n; i-- > 0;) {
        uint32_t digit = number % v->extent[i];
        number /= v->extent[i];
        if (v->cut_end && i == v->cut) {
            if (digit < v->cut_from || digit >= v->cut_end) return false;
            digit -= v->cut_from;
        }
        from += digit * v->step[i];
    }
    *ret = from;
    return true;
}

/* The run of one element. */
static bool view_locate(struct walk *w, const uint32_t x[3], struct lower_run *r) {
    uint32_t number, n = 1;
    for (uint32_t a = 0; a < 3; a++)
        if (x[a] >= w->ds.end[a]) return false;
    if (!view_number(w, x, &number)) return false;
    const uint32_t y[3] = {number / w->s->cols / w->s->rows, number / w->s->cols % w->s->rows,
                           number % w->s->cols};
    find_part(w, y);
    const uint32_t at[3] = {y[0] - w->ss.start[0], y[1] - w->ss.start[1], y[2] - w->ss.start[2]};
    place_run(w, at, &n, r);
    return true;
}

static void walk_view(struct walk *w) {
    const uint32_t end = w->ds.window + w->ds.bytes, axis = w->dd[w->n_dd - 1].axis;
    for (uint32_t byte = w->ds.window; byte < end;) {
        uint32_t x[3], n;
        decode(w, byte, x, &n);
        for (; n > 0 && byte < end; n--, byte += w->element, x[axis]++) {
            struct lower_run r = {.to = byte - w->ds.window, .bytes = w->element};
            if (!view_locate(w, x, &r)) r.shard = HOLE, r.from = 0;
            add_run(w, r);
        }
    }
}

struct delivery {
    struct lower *l;
    const struct program_op *op;
    uint32_t d, s;    /* values */
    uint32_t d_shard; /* replica 0 */
    struct tg_ref *remote;
};

static uint32_t tile_of(const struct lower *l, uint32_t alloc) {
    return lower_tile_of(l, alloc);
}

static bool same_place(const struct lower *l, struct tg_ref a, struct tg_ref b) {
    const struct tg_ref x = tg_root(&l->b, a), y = tg_root(&l->b, b);
    return x.alloc == y.alloc && x.offset == y.offset;
}

void lower_send(struct lower *l, struct tg_ref from, uint32_t bytes, struct tg_ref *to,
                uint32_t n) {
    enum { MOST = TARGET_EXCH_MAX_ITEMS & ~7u }; /* whole 32-byte rows */
    uint32_t words = bytes / 4;
    const uint32_t pieces = ceil_div_u32(words, MOST);
    const uint32_t piece = align_up_u32(ceil_div_u32(words, pieces), 8);
    while (words > 0) {
        const uint32_t k = MIN(words, piece);
        tg_transfer(&l->b, from, k, to, n);
        from.offset += 4 * k;
        for (uint32_t i = 0; i < n; i++) to[i].offset += 4 * k;
        words -= k;
    }
}

static bool local_copy(struct delivery *v, struct tg_ref from, struct tg_ref to, uint32_t bytes) {
    if (same_place(v->l, from, to)) return true;
    BUG_ON(from.offset % 8 || to.offset % 8 || bytes % 8); /* see needs_halves */
    const struct lower_span span = {tile_of(v->l, to.alloc), bytes, to, from};
    g_array_append_val(v->l->local, span);
    return true;
}

uint32_t lower_source_near(const struct lower *l, uint32_t value, uint32_t shard, uint32_t tile) {
    const uint32_t n = l->p->values[value].layout.count[PROGRAM_REPLICA];
    for (uint32_t i = 0; i < n; i++)
        if (tile_of(l, l->alloc_of[value][shard + i]) == tile) return i;
    return TG_NONE;
}

static bool deliver(struct delivery *v, const struct lower_run *r) {
    struct lower *l = v->l;
    const uint32_t n_d = l->p->values[v->d].layout.count[PROGRAM_REPLICA];
    const uint32_t n_s = l->p->values[v->s].layout.count[PROGRAM_REPLICA];
    const uint32_t chosen = v->d_shard / n_d % n_s;
    const struct tg_ref from = {l->alloc_of[v->s][r->shard + chosen], r->from};
    const uint32_t from_tile = tile_of(l, from.alloc);
    uint32_t n = 0, loopback = TG_NONE;
    for (uint32_t i = 0; i < n_d; i++) {
        const struct tg_ref to = {l->alloc_of[v->d][v->d_shard + i], r->to};
        const uint32_t tile = tile_of(l, to.alloc);
        const uint32_t k = lower_source_near(l, v->s, r->shard, tile);
        if (k == TG_NONE) {
            v->remote[n++] = to;
            continue;
        }
        const struct tg_ref near = {l->alloc_of[v->s][r->shard + k], r->from};
        if (same_place(l, near, to)) continue;
        if (tile == from_tile && n_d > 1) loopback = i;
        else if (!local_copy(v, near, to, r->bytes)) return false;
    }
    if (loopback != TG_NONE) {
        const struct tg_ref to = {l->alloc_of[v->d][v->d_shard + loopback], r->to};
        if (n == 0) return local_copy(v, from, to, r->bytes);
        v->remote[n++] = to;
        if (l->options.separate_loopback) tg_separate(&l->b, from.alloc, to.alloc);
    }
    if (n == 0) return true;
    lower_send(l, from, r->bytes, v->remote, n);
    return true;
}

/* A run of the filler: from the tile of the first replica to all. */
static bool deliver_filler(struct delivery *v, const struct lower_run *r, uint32_t filler) {
    struct lower *l = v->l;
    const uint32_t n = l->p->values[v->d].layout.count[PROGRAM_REPLICA];
    const uint32_t *to = &l->alloc_of[v->d][v->d_shard];
    uint32_t index[PROGRAM_N_AXES] = {0};
    const uint32_t shard = lower_shard_on_tile(l, filler, index, tile_of(l, to[0]));
    const struct program_value *f = lower_value(l, filler);
    BUG_ON(shard == PROGRAM_NONE || r->bytes > f->cols * program_format_bytes(f->layout.format));
    const struct tg_ref from = {l->alloc_of[filler][shard], 0};
    if (n == 1) return local_copy(v, from, (struct tg_ref){to[0], r->to}, r->bytes);
    for (uint32_t i = 0; i < n; i++) v->remote[i] = (struct tg_ref){to[i], r->to};
    if (l->options.separate_loopback) tg_separate(&l->b, from.alloc, to[0]);
    lower_send(l, from, r->bytes, v->remote, n);
    return true;
}

/* Holes are cleared before anything arrives, so a gap between two may be cleared with them where
 * that is cheaper than a second call. */
static void clear_holes(struct delivery *v, const GArray *runs) {
    enum { GAP_BYTES = 2048 }; /* what a fill writes in the time of a launch */
    struct lower *l = v->l;
    const uint32_t n = l->p->values[v->d].layout.count[PROGRAM_REPLICA];
    uint32_t start = 0, end = 0;
    for (uint32_t k = 0; k <= runs->len; k++) {
        const struct lower_run *r = k < runs->len ? &g_array_index(runs, struct lower_run, k) : NULL;
        if (r && r->shard != HOLE) continue;
        if (r && end > 0 && r->to < end + GAP_BYTES) {
            end = align_up_u32(r->to + r->bytes, 8);
            continue;
        }
        for (uint32_t i = 0; end > 0 && i < n; i++) {
            const uint32_t alloc = l->alloc_of[v->d][v->d_shard + i];
            const struct lower_span span = {tile_of(l, alloc), end - start, {alloc, start}, {0, 0}};
            g_array_append_val(l->clear, span);
        }
        if (!r) break;
        start = r->to & ~7u;
        end = align_up_u32(r->to + r->bytes, 8);
    }
}

static bool is_odd(const struct lower_run *r) {
    return r->from % 4 || r->to % 4 || r->bytes % 4;
}

/* No whole words, or no whole pairs of them on the tile of their source. */
static bool needs_halves(const struct delivery *v, const struct lower_run *r) {
    if (r->shard == HOLE || r->shard == FILLER) return false;
    if (is_odd(r)) return true;
    if (r->from % 8 == 0 && r->to % 8 == 0 && r->bytes % 8 == 0) return false;
    const uint32_t n = v->l->p->values[v->d].layout.count[PROGRAM_REPLICA];
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t to = v->l->alloc_of[v->d][v->d_shard + i];
        if (lower_source_near(v->l, v->s, r->shard, tile_of(v->l, to)) != TG_NONE) return true;
    }
    return false;
}

/* All runs of the shard that w stands on. */
static bool deliver_all(struct delivery *v, const struct walk *w) {
    enum { LONG_BYTES = 32 }; /* goes by itself even when others are packed */
    struct lower_run *runs = (struct lower_run *)w->runs->data;
    const uint32_t n = w->runs->len;
    uint32_t n_packed = 0;
    bool odd = false, ok = true;
    for (uint32_t k = 0; k < n; k++)
        odd = odd || needs_halves(v, &runs[k]);
    for (uint32_t k = 0; ok && k < n; k++) {
        const struct lower_run *r = &runs[k];
        if (r->shard == HOLE) continue;
        if (r->shard == FILLER) ok = deliver_filler(v, r, v->op->inputs[1]);
        else if (odd && (r->bytes < LONG_BYTES || needs_halves(v, r))) runs[n_packed++] = *r;
        else ok = deliver(v, r);
    }
    return ok && (n_packed == 0 || lower_pack_runs(v->l, v->op, v->d_shard, runs, n_packed));
}

bool lower_copy(struct lower *l, const struct program_op *op) {
    const struct program_value *d = lower_value(l, op->output), *s = lower_value(l, op->inputs[0]);
    if (d->layout.format != s->layout.format) {
        diag_set(l->error, LOWER_COPY_FORMAT, op->operation);
        return false;
    }
    lower_phase_open(l, op, op->inputs[0], op->output);
    g_array_append_val(l->phase_values, op->output);
    struct walk w = {.d = d,
                     .s = s,
                     .map = &op->map,
                     .view = op->view.n ? &op->view : NULL,
                     .identity = map_is_identity(&op->map, d),
                     .filled = op->n_inputs == 2,
                     .element = program_format_bytes(d->layout.format),
                     .runs = g_array_new(FALSE, FALSE, sizeof(struct lower_run))};
    w.identity = w.identity && d->batch == s->batch && d->rows == s->rows && d->cols == s->cols;
    const uint32_t n_replicas = d->layout.count[PROGRAM_REPLICA], n = program_n_shards(d);
    struct delivery v = {.l = l,
                         .op = op,
                         .d = op->output,
                         .s = op->inputs[0],
                         .remote = g_new(struct tg_ref, n_replicas)};
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i += n_replicas) {
        program_shard_at(d, i, &w.ds);
        w.n_dd = program_digits(&d->layout, &w.ds, w.dd);
        g_array_set_size(w.runs, 0);
        if (w.view) walk_view(&w);
        else walk_shard(&w);
        v.d_shard = i;
        if (!op->more) clear_holes(&v, w.runs);
        ok = deliver_all(&v, &w);
    }
    g_array_free(w.runs, TRUE);
    g_free(v.remote);
    return ok;
}
