/* Exchange-aware placement: among feasible maps prefer those in which what a tile sends and what it
 * receives in the same phase share no effective element.
 *
 * Score: sum over phases and elements of sent bytes x received bytes x weight. Improving a tile:
 * the map found without traffic is the first candidate. Constructive passes place the items again,
 * each at the start with the least added score among the ends of its free spans and the element
 * boundaries in them, busiest items first; then single items are lifted out and put back at their
 * best start until nothing improves. A pass that runs out of room is dropped, so the answer stays
 * feasible. Cost of a pass: items x free spans x traffic of the item. */
#include "place/place_int.h"

#include <stdlib.h>
#include <string.h>

struct move { /* part of an item that moves in a phase; merged where parts touch */
    uint32_t item, phase, offset, bytes;
    uint32_t weight;
    bool receive;
};

struct traffic {
    struct fit *f;
    uint32_t n_elements, n_phases;
    uint32_t *first; /* [n + 1] moves of each item */
    struct move *move;
    double *bytes;     /* [n_phases][2][n_elements] of the placed items, weighted */
    double *item_load; /* [n] bytes moved, weighted */
    double score;
};

static uint32_t element_index(const struct place_memory *m, uint32_t a) {
    if (a >= m->interleaved_base) {
        const uint32_t low = m->interleaved_base == m->base ? 0
                             : m->element_bytes
                                 ? ceil_div_u32(m->interleaved_base - m->base, m->element_bytes)
                                 : 1;
        return low + (m->interleaved_element_bytes
                          ? (a - m->interleaved_base) / m->interleaved_element_bytes
                          : 0);
    }
    return m->element_bytes ? (a - m->base) / m->element_bytes : 0;
}

double place_traffic_score(const struct place_problem *p, const struct place_traffic *traffic,
                           const uint32_t *address) {
    const uint32_t n_elements = element_index(&p->memory, p->memory.end - 1) + 1;
    double total = 0;
    for (uint32_t t = 0; t < traffic->n_tiles; t++) {
        const uint32_t begin = traffic->first[t], end = traffic->first[t + 1];
        uint32_t n_phases = 0;
        for (uint32_t i = begin; i < end; i++) n_phases = MAX(n_phases, traffic->item[i].phase + 1);
        double *sum = g_new0(double, 2 * (size_t)n_phases * n_elements);
        double *weight = g_new0(double, n_phases);
        for (uint32_t i = begin; i < end; i++) {
            const struct place_traffic_item *x = &traffic->item[i];
            if (x->bytes == 0 || address[x->request] == PLACE_NO_ADDRESS) continue;
            uint32_t a = address[x->request] + x->offset;
            const uint32_t stop = a + x->bytes;
            weight[x->phase] = MAX(weight[x->phase], x->weight ? x->weight : 1);
            while (a < stop) {
                const uint32_t to = MIN(stop, element_end(&p->memory, a));
                sum[(2 * (size_t)x->phase + (x->receive != 0)) * n_elements +
                    element_index(&p->memory, a)] += to - a;
                a = to;
            }
        }
        for (uint32_t k = 0; k < n_phases; k++)
            for (uint32_t e = 0; e < n_elements; e++)
                total += weight[k] * sum[2 * (size_t)k * n_elements + e] *
                         sum[(2 * (size_t)k + 1) * n_elements + e];
        g_free(sum);
        g_free(weight);
    }
    return total;
}

/* --- The moves of a tile --- */

static int compare_moves(const void *va, const void *vb) {
    const struct move *a = va, *b = vb;
    if (a->item != b->item) return a->item < b->item ? -1 : 1;
    if (a->phase != b->phase) return a->phase < b->phase ? -1 : 1;
    if (a->receive != b->receive) return a->receive < b->receive ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

/* Sorts, merges neighbours and builds the ranges of the items. Phases keep their numbers here. */
static uint32_t merge_moves(struct move *m, uint32_t n) {
    if (n == 0) return 0;
    qsort(m, n, sizeof *m, compare_moves);
    uint32_t k = 0;
    for (uint32_t i = 1; i < n; i++) {
        const bool joins = m[i].item == m[k].item && m[i].phase == m[k].phase &&
                           m[i].receive == m[k].receive && m[i].offset == m[k].offset + m[k].bytes;
        if (joins) m[k].bytes += m[i].bytes;
        else m[++k] = m[i];
    }
    return k + 1;
}

static int compare_u32(const void *a, const void *b) {
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Phase numbers to 0 .. n - 1 in the same order. */
static uint32_t number_phases(struct arena *arena, struct move *m, uint32_t n) {
    uint32_t *phase = arena_new_array(arena, uint32_t, n), k = 0;
    for (uint32_t i = 0; i < n; i++) phase[i] = m[i].phase;
    if (n != 0) qsort(phase, n, sizeof *phase, compare_u32);
    for (uint32_t i = 0; i < n; i++)
        if (i == 0 || phase[i] != phase[k - 1]) phase[k++] = phase[i];
    for (uint32_t i = 0; i < n; i++)
        m[i].phase =
            (uint32_t)((uint32_t *)bsearch(&m[i].phase, phase, k, sizeof *phase, compare_u32) -
                       phase);
    return k;
}

static struct traffic *traffic_new(struct fit *f, const struct place_traffic *all, uint32_t tile,
                                   uint32_t base) {
    const struct tile *t = f->tile;
    struct arena *a = t->arena;
    struct traffic *x = arena_new_array(a, struct traffic, 1);
    const uint32_t begin = all->first[tile], end = all->first[tile + 1];
    uint32_t n = 0;
    x->f = f;
    x->move = arena_new_array(a, struct move, end - begin);
    for (uint32_t i = begin; i < end; i++) {
        const struct place_traffic_item *y = &all->item[i];
        const uint32_t r = y->request - base;
        BUG_ON(r >= t->n_requests);
        if (y->bytes == 0) continue;
        x->move[n++] = (struct move){.item = t->item_of[r],
                                     .phase = y->phase,
                                     .offset = t->offset_of[r] + y->offset,
                                     .bytes = y->bytes,
                                     .weight = y->weight ? y->weight : 1,
                                     .receive = y->receive != 0};
    }
    n = merge_moves(x->move, n);
    x->n_phases = number_phases(a, x->move, n);
    x->n_elements = element_index(t->memory, t->memory->end - 1) + 1;
    x->first = arena_new_array(a, uint32_t, t->n + 1);
    x->item_load = arena_new_array(a, double, t->n);
    for (uint32_t i = 0; i < n; i++) {
        x->first[x->move[i].item + 1]++;
        x->item_load[x->move[i].item] += (double)x->move[i].bytes * x->move[i].weight;
    }
    for (uint32_t i = 0; i < t->n; i++) x->first[i + 1] += x->first[i];
    x->bytes = arena_new_array(a, double, 2 * (size_t)x->n_phases * x->n_elements);
    return x;
}

/* --- Score of one item at a start --- */

static double *load_at(struct traffic *x, uint32_t phase, bool receive, uint32_t element) {
    return &x->bytes[(2 * (size_t)phase + receive) * x->n_elements + element];
}

/* What the item would add to the score. */
static double added_score(struct traffic *x, uint32_t i, uint32_t start) {
    const struct place_memory *m = x->f->tile->memory;
    double sum = 0;
    for (uint32_t k = x->first[i]; k < x->first[i + 1]; k++) {
        const struct move *v = &x->move[k];
        const uint32_t stop = start + v->offset + v->bytes;
        for (uint32_t a = start + v->offset; a < stop;) {
            const uint32_t to = MIN(stop, element_end(m, a));
            sum += (to - a) * *load_at(x, v->phase, !v->receive, element_index(m, a)) * v->weight;
            a = to;
        }
    }
    return sum;
}

static void add_load(struct traffic *x, uint32_t i, uint32_t start, double sign) {
    const struct place_memory *m = x->f->tile->memory;
    for (uint32_t k = x->first[i]; k < x->first[i + 1]; k++) {
        const struct move *v = &x->move[k];
        const uint32_t stop = start + v->offset + v->bytes;
        for (uint32_t a = start + v->offset; a < stop;) {
            const uint32_t to = MIN(stop, element_end(m, a));
            *load_at(x, v->phase, v->receive, element_index(m, a)) += sign * (to - a);
            a = to;
        }
    }
}

static void put(struct traffic *x, uint32_t i, uint32_t start) {
    x->score += added_score(x, i, start);
    add_load(x, i, start, 1);
    fit_place(x->f, i, start);
}

static void take(struct traffic *x, uint32_t i) {
    const uint32_t start = x->f->address[i];
    add_load(x, i, start, -1);
    x->score -= added_score(x, i, start);
    fit_remove(x->f, i);
}

/* --- Choosing --- */

struct choice {
    double score;
    uint32_t start;
};

static void consider(struct traffic *x, uint32_t i, uint32_t start, struct choice *best) {
    const double score = added_score(x, i, start);
    if (best->start != PLACE_NO_ADDRESS && score >= best->score) return;
    *best = (struct choice){score, start};
}

/* The start with the least added score; among equals the first tried: low ends of the spans upward,
 * then high ends, then boundaries. */
static struct choice best_start(struct traffic *x, uint32_t i, uint32_t n_free, bool from_above) {
    const struct tile *t = x->f->tile;
    const struct item *it = &t->item[i];
    struct choice best = {0, PLACE_NO_ADDRESS};
    for (uint32_t pass = 0; pass < 3; pass++) {
        for (uint32_t j = 0; j < n_free; j++) {
            const struct span s = x->f->free[from_above ? n_free - 1 - j : j];
            if (pass < 2) {
                consider(x, i, (pass == 0) == from_above ? s.hi : s.lo, &best);
                if (best.score <= 0) return best;
                continue;
            }
            const uint32_t from = element_end(t->memory, s.lo);
            for (uint32_t b = from; b <= (uint64_t)s.hi + it->full && b < t->memory->end;
                 b = element_end(t->memory, b)) {
                const uint32_t up = b + ((it->residue - b) & (it->align - 1));
                if (up >= s.lo && up <= s.hi) consider(x, i, up, &best);
                if (b < it->full) continue;
                const uint32_t down = b - it->full, back = (down - it->residue) & (it->align - 1);
                if (down >= s.lo + back && down - back <= s.hi) consider(x, i, down - back, &best);
            }
        }
        if (best.score <= 0 && best.start != PLACE_NO_ADDRESS) return best;
    }
    return best;
}

enum traffic_order { TRAFFIC_SENT_FIRST, TRAFFIC_LIFETIME, TRAFFIC_LOAD, N_TRAFFIC_ORDERS };

struct traffic_key {
    double major, minor;
    uint32_t item;
};

static int compare_keys(const void *va, const void *vb) {
    const struct traffic_key *a = va, *b = vb;
    if (a->major != b->major) return a->major > b->major ? -1 : 1;
    if (a->minor != b->minor) return a->minor > b->minor ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static struct traffic_key traffic_key(const struct traffic *x, uint32_t i,
                                      enum traffic_order order) {
    const struct item *it = &x->f->tile->item[i];
    const double life = it->last - it->first + 1;
    struct traffic_key k = {.item = i, .major = life, .minor = it->size};
    double sent = 0, received = 0;
    for (uint32_t m = x->first[i]; m < x->first[i + 1]; m++)
        *(x->move[m].receive ? &received : &sent) += x->move[m].bytes;
    if (order == TRAFFIC_LOAD) k.major = x->item_load[i];
    if (order == TRAFFIC_SENT_FIRST) k.major = sent > received ? 2 : received > 0 ? 1 : 0;
    return k;
}

static void start_over(struct traffic *x) {
    const struct tile *t = x->f->tile;
    memset(x->bytes, 0, 2 * (size_t)x->n_phases * x->n_elements * sizeof *x->bytes);
    x->score = 0;
    fit_clear(x->f);
    for (uint32_t i = 0; i < t->n; i++) {
        if (!t->item[i].fixed) continue;
        x->score += added_score(x, i, x->f->address[i]);
        add_load(x, i, x->f->address[i], 1);
    }
}

/* One constructive pass; false if it runs out of room. */
static bool construct(struct traffic *x, enum traffic_order order, bool from_above) {
    const struct tile *t = x->f->tile;
    struct traffic_key *key = arena_new_array(t->arena, struct traffic_key, t->n);
    for (uint32_t i = 0; i < t->n; i++) key[i] = traffic_key(x, i, order);
    if (t->n != 0) qsort(key, t->n, sizeof *key, compare_keys);
    start_over(x);
    for (uint32_t k = 0; k < t->n; k++) {
        const uint32_t i = key[k].item;
        if (t->item[i].fixed) continue;
        const uint32_t n_free = fit_spans(x->f, i);
        if (n_free == 0) return false;
        put(x, i, best_start(x, i, n_free, from_above).start);
    }
    return true;
}

enum { POLISH_ROUNDS = 6 };

/* Lifts out every item that has traffic and puts it back where it adds least. */
static void polish(struct traffic *x) {
    const struct tile *t = x->f->tile;
    for (uint32_t round = 0; round < POLISH_ROUNDS && x->score > 0; round++) {
        const double before = x->score;
        for (uint32_t i = 0; i < t->n && x->score > 0; i++) {
            if (t->item[i].fixed || x->first[i] == x->first[i + 1]) continue;
            const uint32_t old = x->f->address[i];
            take(x, i);
            const double stays = added_score(x, i, old);
            const struct choice c = best_start(x, i, fit_spans(x->f, i), false);
            put(x, i, c.score < stays ? c.start : old);
        }
        if (!(x->score < before)) break;
    }
}

static void restore(struct traffic *x, const uint32_t *address) {
    const struct tile *t = x->f->tile;
    start_over(x);
    for (uint32_t i = 0; i < t->n; i++)
        if (!t->item[i].fixed) put(x, i, address[i]);
}

void traffic_improve(struct fit *f, const struct place_traffic *all, uint32_t tile, uint32_t base) {
    if (all->first[tile] == all->first[tile + 1]) return;
    const struct tile *t = f->tile;
    struct traffic *x = traffic_new(f, all, tile, base);
    const size_t bytes = t->n * sizeof *f->address;
    uint32_t *best = arena_copy(t->arena, f->address, bytes);
    restore(x, best);
    polish(x);
    double best_score = x->score;
    memcpy(best, f->address, bytes);
    for (uint32_t pass = 0; pass < 2 * N_TRAFFIC_ORDERS && best_score > 0; pass++) {
        if (!construct(x, pass / 2, pass & 1)) continue;
        polish(x);
        if (!(x->score < best_score)) continue;
        best_score = x->score;
        memcpy(best, f->address, bytes);
    }
    memcpy(f->address, best, bytes);
}
