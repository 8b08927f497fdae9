/* Slices of results sorted by tile and step. A tile that begins a step has completed all steps from
 * the one that it began before up to here (the ones between have nothing to do on it); in a repeat
 * that turned, those to its end and then those from its begin. Every completed slice is compared at
 * once, before the tile goes on. Each tile adds to sums of its own; they are joined in tile order.
 *
 * Cost: one pass over every stored element an iteration; the reference's values are kept in FP32. */
#include "runtime/diagnostic.h"

#include "numeric/num_format.h"
#include "target/target.h"

#include <math.h>
#include <string.h>

/* What one tile saw of one entry. */
struct sums {
    uint64_t n_values, n_failed, n_not_finite;
    double max_abs_error, dot, norm_computed, norm_expected;
    struct diagnostic_place worst, first_failed;
};

struct tile_state {
    uint32_t last_step; /* in progress; TG_NONE before the first */
    uint32_t iteration;
    struct sums *sums;  /* [n_entries], made on first use */
};

struct diagnostic {
    struct diagnostic_options o;
    uint32_t n_entries;
    struct diagnostic_entry *entries;
    float **expected;       /* [n_entries] */
    uint32_t *entry_of;     /* by binding: its first entry (iterations follow), or TG_NONE */
    uint32_t *iterations;   /* by binding */
    uint32_t *binding_of;   /* by graph value, or TG_NONE */
    uint32_t *first, *slice, *slice_binding; /* CSR by tile, ascending by step */
    struct tile_state *tiles;
    bool joined;
    /* Without a graph. */
    GMutex lock;
    float **kept;           /* [n_entries] */
    uint16_t **kept_tile;   /* the tile that each element came from */
};

/* --- What there is to compare --- */

/* Iterations of the repeat around a step; 1 outside. */
static uint32_t iterations_at(const struct package *p, uint32_t step) {
    for (uint32_t s = step + 1; s-- > 0;) {
        if (p->steps[s].kind == TG_REPEAT_BEGIN) return p->steps[s].count;
        if (p->steps[s].kind == TG_REPEAT_END && s < step) return 1;
    }
    return 1;
}

static uint32_t first_step(const struct package *p, const struct package_binding *b) {
    uint32_t step = UINT32_MAX;
    for (uint32_t i = b->first_slice; i < b->end_slice; i++) step = MIN(step, p->slices[i].step);
    return step;
}

/* Numbers of the operations in program order: a repeat stands before its body. */
static void number_block(const struct graph *g, uint32_t block, uint32_t *number, uint32_t *next) {
    for (uint32_t i = 0; i < g->blocks[block].n_ops; i++) {
        const uint32_t op = g->blocks[block].ops[i];
        number[op] = (*next)++;
        if (g->ops[op].kind == GRAPH_REPEAT) number_block(g, g->ops[op].repeat.body, number, next);
    }
}

static void add_entries(struct diagnostic *d, uint32_t binding, const uint32_t *number,
                        GArray *entries) {
    const struct package *p = d->o.package;
    const struct graph *g = d->o.graph;
    const struct package_binding *b = &p->bindings[binding];
    d->entry_of[binding] = TG_NONE;
    const uint32_t value = g != NULL ? graph_find_value(g, b->name) : GRAPH_NONE;
    if (b->kind != TG_BIND_RESULT || b->first_slice == b->end_slice) return;
    if (g != NULL && value == GRAPH_NONE) return;
    struct diagnostic_entry e = {.name = b->name, .op = GRAPH_NONE, .step = first_step(p, b),
                                 .elements = package_binding_elements(b)};
    if (g != NULL) {
        e.op = number[g->values[value].op];
        e.kind = graph_op_text(g->ops[g->values[value].op].kind);
        d->binding_of[value] = binding;
    }
    d->entry_of[binding] = entries->len;
    d->iterations[binding] = e.iterations = iterations_at(p, e.step);
    for (; e.iteration < e.iterations; e.iteration++) {
        e.slot = entries->len;
        g_array_append_val(entries, e);
    }
}

static int by_step(gconstpointer a, gconstpointer b, gpointer user) {
    const struct package *p = user;
    const uint32_t x = p->slices[*(const uint32_t *)a].step, y = p->slices[*(const uint32_t *)b].step;
    return x < y ? -1 : x > y ? 1 : 0;
}

static void index_slices(struct diagnostic *d) {
    const struct package *p = d->o.package;
    const uint32_t n_tiles = p->meta.n_tiles;
    d->first = g_new0(uint32_t, n_tiles + 2);
    d->slice = g_new0(uint32_t, p->n_slices + 1);
    d->slice_binding = g_new0(uint32_t, p->n_slices + 1);
    for (uint32_t b = 0; b < p->n_bindings; b++) {
        if (d->entry_of[b] == TG_NONE) continue;
        for (uint32_t i = p->bindings[b].first_slice; i < p->bindings[b].end_slice; i++) {
            d->slice_binding[i] = b;
            d->first[p->slices[i].tile + 2]++;
        }
    }
    for (uint32_t t = 0; t < n_tiles; t++) d->first[t + 2] += d->first[t + 1];
    for (uint32_t b = 0; b < p->n_bindings; b++) {
        if (d->entry_of[b] == TG_NONE) continue;
        for (uint32_t i = p->bindings[b].first_slice; i < p->bindings[b].end_slice; i++)
            d->slice[d->first[p->slices[i].tile + 1]++] = i;
    }
    for (uint32_t t = 0; t < n_tiles; t++) /* stable: equal steps keep their order */
        g_qsort_with_data(d->slice + d->first[t], (gint)(d->first[t + 1] - d->first[t]),
                          sizeof *d->slice, by_step, (gpointer)p);
}

static void prepare_kept(struct diagnostic *d) {
    d->kept = g_new0(float *, d->n_entries + 1);
    d->kept_tile = g_new0(uint16_t *, d->n_entries + 1);
    for (uint32_t i = 0; i < d->n_entries; i++) {
        const uint64_t n = d->entries[i].elements;
        d->kept[i] = g_new(float, n);
        d->kept_tile[i] = g_new(uint16_t, n);
        for (uint64_t k = 0; k < n; k++) d->kept[i][k] = NAN;
        memset(d->kept_tile[i], 0xff, n * sizeof(uint16_t));
    }
}

struct diagnostic *diagnostic_new(const struct diagnostic_options *o) {
    struct diagnostic *d = g_new0(struct diagnostic, 1);
    const struct package *p = o->package;
    d->o = *o;
    d->entry_of = g_new0(uint32_t, p->n_bindings + 1);
    d->iterations = g_new0(uint32_t, p->n_bindings + 1);
    g_mutex_init(&d->lock);
    uint32_t *number = NULL, next = 0;
    if (o->graph != NULL) {
        d->binding_of = g_new0(uint32_t, o->graph->n_values + 1);
        memset(d->binding_of, 0xff, sizeof *d->binding_of * o->graph->n_values);
        number = g_new0(uint32_t, o->graph->n_ops + 1);
        number_block(o->graph, 0, number, &next);
    }
    GArray *entries = g_array_new(false, false, sizeof(struct diagnostic_entry));
    for (uint32_t b = 0; b < p->n_bindings; b++) add_entries(d, b, number, entries);
    g_free(number);
    d->n_entries = entries->len;
    d->entries = (struct diagnostic_entry *)(void *)g_array_free(entries, false);
    d->expected = g_new0(float *, d->n_entries + 1);
    if (o->graph == NULL) prepare_kept(d);
    d->tiles = g_new0(struct tile_state, p->meta.n_tiles);
    for (uint32_t t = 0; t < p->meta.n_tiles; t++) d->tiles[t].last_step = TG_NONE;
    index_slices(d);
    return d;
}

const struct diagnostic_options *diagnostic_given(const struct diagnostic *d) { return &d->o; }

void diagnostic_free(struct diagnostic *d) {
    if (d == NULL) return;
    for (uint32_t i = 0; i < d->n_entries; i++) g_free(d->expected[i]);
    for (uint32_t i = 0; d->kept != NULL && i < d->n_entries; i++) {
        g_free(d->kept[i]);
        g_free(d->kept_tile[i]);
    }
    g_free(d->kept);
    g_free(d->kept_tile);
    g_mutex_clear(&d->lock);
    for (uint32_t t = 0; t < d->o.package->meta.n_tiles; t++) g_free(d->tiles[t].sums);
    g_free(d->tiles);
    g_free(d->expected);
    g_free(d->entries);
    g_free(d->entry_of);
    g_free(d->iterations);
    g_free(d->binding_of);
    g_free(d->first);
    g_free(d->slice);
    g_free(d->slice_binding);
    g_free(d);
}

void diagnostic_visit(void *user, uint32_t value, uint32_t iteration, const float *data) {
    struct diagnostic *d = user;
    const uint32_t binding = d->binding_of[value];
    if (binding == TG_NONE || iteration >= d->iterations[binding]) return;
    const uint32_t entry = d->entry_of[binding] + iteration;
    g_free(d->expected[entry]);
    d->expected[entry] = g_memdup2(data, d->entries[entry].elements * sizeof(float));
}

/* --- Comparing --- */

static float decode(const struct package_binding *b, const uint8_t *at) {
    uint16_t half;
    float value;
    switch (b->format) {
    case TG_F32: memcpy(&value, at, 4); return value;
    case TG_F16: memcpy(&half, at, 2); return num_f16_to_f32(half);
    default:
        return num_f8_to_f32(*at, b->format == TG_F8_F143 ? NUM_F143 : NUM_F152, b->scale);
    }
}

static void compare(const struct diagnostic *d, const struct diagnostic_place *x, struct sums *s) {
    const double c = (double)x->computed, w = (double)x->expected;
    double error = INFINITY;
    bool ok = false;
    if (!isfinite(c)) {
        s->n_not_finite++;
    } else if (isfinite(w)) {
        error = fabs(c - w);
        ok = error <= d->o.atol + d->o.rtol * fabs(w);
        s->dot += c * w;
        s->norm_computed += c * c;
        s->norm_expected += w * w;
    }
    if (s->n_values++ == 0 || error > s->max_abs_error) {
        s->max_abs_error = error;
        s->worst = *x;
    }
    if (ok) return;
    if (s->n_failed++ == 0 || x->step < s->first_failed.step ||
        (x->step == s->first_failed.step && x->element < s->first_failed.element))
        s->first_failed = *x;
}

static void keep(struct diagnostic *d, uint32_t entry, const struct diagnostic_place *x) {
    if (x->tile > d->kept_tile[entry][x->element]) return;
    d->kept_tile[entry][x->element] = (uint16_t)x->tile;
    d->kept[entry][x->element] = x->computed;
}

static void compare_slice(struct diagnostic *d, const struct package_slice *s, uint32_t binding,
                          const uint8_t *memory, struct tile_state *t) {
    const struct package_binding *b = &d->o.package->bindings[binding];
    const uint32_t turn = d->iterations[binding] > 1 ? t->iteration : 0;
    BUG_ON(turn >= d->iterations[binding]);
    const uint32_t entry = d->entry_of[binding] + turn;
    BUG_ON(d->kept == NULL && d->expected[entry] == NULL);
    uint32_t index[PACKAGE_SLICE_DIMS] = {0};
    for (;;) {
        struct diagnostic_place x = {.element = s->tensor_offset, .tile = s->tile,
                                     .address = s->address, .step = s->step};
        for (uint32_t i = 0; i < s->n_dims; i++) {
            x.element += index[i] * s->tensor_step[i];
            x.address += index[i] * s->mem_step[i];
        }
        x.computed = decode(b, memory + (x.address - TARGET_SRAM_BASE));
        if (d->kept != NULL) {
            keep(d, entry, &x);
        } else {
            x.expected = d->expected[entry][x.element];
            compare(d, &x, &t->sums[entry]);
        }
        uint32_t i = s->n_dims;
        while (i-- > 0) {
            if (++index[i] < s->count[i]) break;
            index[i] = 0;
        }
        if (i == UINT32_MAX) return;
    }
}

/* Everything of a tile that steps [from, to] complete. */
static void complete(struct diagnostic *d, struct device *device, uint32_t tile, uint32_t from,
                     uint32_t to) {
    const struct package *p = d->o.package;
    struct tile_state *t = &d->tiles[tile];
    uint32_t low = d->first[tile], high = d->first[tile + 1];
    while (low < high) { /* the first slice with step >= from */
        const uint32_t middle = low + (high - low) / 2;
        if (p->slices[d->slice[middle]].step < from) low = middle + 1;
        else high = middle;
    }
    if (low == d->first[tile + 1] || p->slices[d->slice[low]].step > to) return;
    const uint8_t *memory = d->o.functions->memory(device, tile);
    if (d->kept != NULL) g_mutex_lock(&d->lock);
    else if (t->sums == NULL) t->sums = g_new0(struct sums, d->n_entries);
    for (; low < d->first[tile + 1] && p->slices[d->slice[low]].step <= to; low++)
        compare_slice(d, &p->slices[d->slice[low]], d->slice_binding[d->slice[low]], memory, t);
    if (d->kept != NULL) g_mutex_unlock(&d->lock);
}

/* As complete, where the steps may leave a repeat. */
static void advance(struct diagnostic *d, struct device *device, uint32_t tile, uint32_t from,
                    uint32_t end) {
    for (uint32_t s = from; s < end; s++) {
        if (d->o.package->steps[s].kind != TG_REPEAT_END) continue;
        complete(d, device, tile, from, s);
        d->tiles[tile].iteration = 0;
        from = s + 1;
    }
    if (from < end) complete(d, device, tile, from, end - 1);
}

void diagnostic_seen(void *user, struct device *device, uint32_t tile, uint32_t mark) {
    struct diagnostic *d = user;
    const struct package *p = d->o.package;
    struct tile_state *t = &d->tiles[tile];
    const uint32_t at = p->first_mark[tile] + mark;
    const uint32_t step = at < p->first_mark[tile + 1] ? p->marks[at].step : p->n_steps;
    if (t->last_step == TG_NONE || step > t->last_step) {
        advance(d, device, tile, t->last_step == TG_NONE ? 0 : t->last_step, step);
    } else { /* the repeat turned */
        uint32_t begin = step, end = t->last_step;
        while (p->steps[end].kind != TG_REPEAT_END) end++;
        while (p->steps[begin].kind != TG_REPEAT_BEGIN) begin--;
        complete(d, device, tile, t->last_step, end);
        t->iteration++;
        if (step > begin) complete(d, device, tile, begin, step - 1);
    }
    t->last_step = step < p->n_steps ? step : TG_NONE;
}

/* --- Results --- */

static bool place_before(const struct diagnostic_place *a, const struct diagnostic_place *b) {
    if (a->step != b->step) return a->step < b->step;
    return a->element < b->element;
}

static void join_tile(struct diagnostic *d, const struct sums *sums, double (*norms)[3]) {
    for (uint32_t i = 0; i < d->n_entries; i++) {
        const struct sums *s = &sums[i];
        struct diagnostic_entry *e = &d->entries[i];
        if (s->n_values == 0) continue;
        if (e->n_values == 0 || s->max_abs_error > e->max_abs_error) {
            e->max_abs_error = s->max_abs_error;
            e->worst = s->worst;
        }
        if (s->n_failed != 0 &&
            (e->n_failed == 0 || place_before(&s->first_failed, &e->first_failed)))
            e->first_failed = s->first_failed;
        e->n_values += s->n_values;
        e->n_failed += s->n_failed;
        e->n_not_finite += s->n_not_finite;
        norms[i][0] += s->dot;
        norms[i][1] += s->norm_computed;
        norms[i][2] += s->norm_expected;
    }
}

static double cosine_of(const struct diagnostic_entry *e, const double norms[3]) {
    if (e->n_not_finite != 0 || e->n_values == 0) return (double)NAN;
    if (norms[1] == 0 && norms[2] == 0) return 1;
    if (norms[1] == 0 || norms[2] == 0) return 0;
    return norms[0] / sqrt(norms[1] * norms[2]);
}

/* The turn of the program in which a step runs, as a number that grows with time. */
static uint64_t moment(const struct package *p, uint32_t step, uint32_t iteration) {
    uint32_t begin = step;
    for (uint32_t s = step + 1; s-- > 0;) {
        if (p->steps[s].kind == TG_REPEAT_END && s < step) break;
        if (p->steps[s].kind == TG_REPEAT_BEGIN) {
            begin = s;
            break;
        }
    }
    return ((uint64_t)begin << 40) + ((uint64_t)iteration << 20) + step;
}

static int by_moment(gconstpointer a, gconstpointer b, gpointer user) {
    const struct diagnostic_entry *x = a, *y = b;
    const uint64_t p = moment(user, x->step, x->iteration), q = moment(user, y->step, y->iteration);
    return p < q ? -1 : p > q ? 1 : x->op < y->op ? -1 : x->op > y->op;
}

static void join(struct diagnostic *d) {
    if (d->joined) return;
    d->joined = true;
    double(*norms)[3] = g_malloc0((d->n_entries + 1) * sizeof *norms);
    for (uint32_t t = 0; t < d->o.package->meta.n_tiles; t++)
        if (d->tiles[t].sums != NULL) join_tile(d, d->tiles[t].sums, norms);
    for (uint32_t i = 0; i < d->n_entries; i++)
        d->entries[i].cosine = cosine_of(&d->entries[i], norms[i]);
    g_free(norms);
    g_qsort_with_data(d->entries, (gint)d->n_entries, sizeof *d->entries, by_moment,
                      (gpointer)d->o.package);
}

uint32_t diagnostic_entries(struct diagnostic *d, const struct diagnostic_entry **ret) {
    join(d);
    *ret = d->entries;
    return d->n_entries;
}

const float *diagnostic_value(const struct diagnostic *d, const struct diagnostic_entry *e) {
    BUG_ON(d->kept == NULL);
    return d->kept[e->slot];
}

bool diagnostic_entry_pass(const struct diagnostic_entry *e) {
    return e->n_values != 0 && e->n_failed == 0;
}

bool diagnostic_pass(struct diagnostic *d) {
    join(d);
    for (uint32_t i = 0; i < d->n_entries; i++)
        if (!diagnostic_entry_pass(&d->entries[i])) return false;
    return d->n_entries != 0;
}

const struct diagnostic_entry *diagnostic_first(struct diagnostic *d) {
    const struct diagnostic_entry *first = NULL;
    uint64_t when = UINT64_MAX;
    join(d);
    for (uint32_t i = 0; i < d->n_entries; i++) {
        const struct diagnostic_entry *e = &d->entries[i];
        if (diagnostic_entry_pass(e)) continue;
        const uint32_t step = e->n_failed != 0 ? e->first_failed.step : e->step;
        const uint64_t m = moment(d->o.package, step, e->iteration);
        if (m >= when) continue;
        when = m;
        first = e;
    }
    return first;
}

static void list_missing(const struct diagnostic *d, uint32_t block, GArray *out) {
    const struct graph *g = d->o.graph;
    for (uint32_t i = 0; i < g->blocks[block].n_ops; i++) {
        const struct graph_op *op = &g->ops[g->blocks[block].ops[i]];
        if (op->kind == GRAPH_REPEAT) list_missing(d, op->repeat.body, out);
        for (uint32_t k = 0; k < op->n_results; k++)
            if (d->binding_of[op->results[k]] == TG_NONE) g_array_append_val(out, op->results[k]);
    }
}

uint32_t diagnostic_missing(const struct diagnostic *d, uint32_t **ret_values) {
    GArray *out = g_array_new(false, false, sizeof(uint32_t));
    list_missing(d, 0, out);
    const uint32_t n = out->len;
    *ret_values = (uint32_t *)(void *)g_array_free(out, false);
    return n;
}
