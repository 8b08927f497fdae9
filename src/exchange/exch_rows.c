/* Rows of a schedule: gathers per tile the sends and the controls that its receives need, in order
 * of time, drops what neighbours make superfluous (neutral at a cut-over or in front of an idle bus,
 * contiguous pointers, persistent format) and encodes. Two counting sorts, then work per tile. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

struct receive {
    uint32_t label; /* payload */
    uint32_t message, rec;
};

/* Sends and receives by tile. */
struct gather {
    uint32_t *first_send, *first_rec; /* [tiles + 1] */
    uint32_t *send;                   /* message numbers, by slot */
    struct receive *rec;              /* by payload label */
};

static uint32_t payload_label(const struct exch_msgs *m, uint32_t i, uint32_t j, uint32_t s) {
    const uint32_t lag = exch_lag(exch_route(), m->rec_tile[j]);
    return s + (uint32_t)m->rec_x[j] + lag + (m->paired[i] ? 1 : 0);
}

static int compare_receive(const void *a, const void *b) {
    const struct receive *x = a, *y = b;
    return x->label < y->label ? -1 : x->label > y->label;
}
static void sum_up(uint32_t *first) {
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) first[t + 1] += first[t];
}

static void sort_sends(uint32_t *send, uint32_t n, const uint32_t *slot) {
    bool sorted = true;
    for (uint32_t k = 1; k < n && sorted; k++) sorted = slot[send[k - 1]] <= slot[send[k]];
    if (sorted) return;
    uint64_t *key = g_new(uint64_t, n);
    for (uint32_t k = 0; k < n; k++) key[k] = (uint64_t)slot[send[k]] << 32 | send[k];
    qsort(key, n, sizeof *key, exch_key_compare);
    for (uint32_t k = 0; k < n; k++) send[k] = (uint32_t)key[k];
    g_free(key);
}

static void gather_new(struct gather *g, const struct exch_msgs *m, const struct exch_sched *s) {
    g->first_send = g_new0(uint32_t, TARGET_N_TILES + 1);
    g->first_rec = g_new0(uint32_t, TARGET_N_TILES + 1);
    g->send = g_new(uint32_t, m->n + 1);
    g->rec = g_new(struct receive, m->n_rec + 1);
    for (uint32_t i = 0; i < m->n; i++) g->first_send[m->src[i] + 1]++;
    for (uint32_t j = 0; j < m->n_rec; j++) g->first_rec[m->rec_tile[j] + 1]++;
    sum_up(g->first_send);
    sum_up(g->first_rec);
    uint32_t *at_send = g_memdup2(g->first_send, (TARGET_N_TILES + 1) * sizeof(uint32_t));
    uint32_t *at_rec = g_memdup2(g->first_rec, (TARGET_N_TILES + 1) * sizeof(uint32_t));
    for (uint32_t i = 0; i < m->n; i++) {
        g->send[at_send[m->src[i]]++] = i;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            g->rec[at_rec[m->rec_tile[j]]++] =
                (struct receive){payload_label(m, i, j, s->slot[i]), i, j};
    }
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        sort_sends(g->send + g->first_send[t], g->first_send[t + 1] - g->first_send[t], s->slot);
        qsort(g->rec + g->first_rec[t], g->first_rec[t + 1] - g->first_rec[t], sizeof *g->rec,
              compare_receive);
    }
    g_free(at_send);
    g_free(at_rec);
}

static void gather_free(struct gather *g) {
    g_free(g->first_send);
    g_free(g->first_rec);
    g_free(g->send);
    g_free(g->rec);
}

/* Scratch of one tile. */
struct tile_work {
    struct exch_control *x, *p, *all; /* XPIC and PIC controls, merged */
    uint32_t n_x, n_p, n_all;
    struct exch_send *sends;
    uint32_t n_sends, horizon;
};

static void add_x(struct tile_work *w, uint32_t label, uint32_t kind, uint32_t value) {
    w->x[w->n_x++] = (struct exch_control){.label = label, .kind = (uint8_t)kind, .value = value};
}
static void add_p(struct tile_work *w, struct exch_control c) {
    w->p[w->n_p++] = c;
}

struct previous {
    bool any, paired;
    uint32_t end;     /* label where its source (ordinary) or format (paired) ends */
    uint32_t address; /* byte address behind its destination */
    uint32_t format;
};

static void add_ordinary(struct tile_work *w, const struct exch_msgs *m, const struct receive *r,
                         struct previous *prev) {
    const struct exch_route *route = exch_route();
    const uint32_t n = m->items[r->message], tile = m->rec_tile[r->rec];
    const uint32_t x = r->label - exch_lag(route, tile);
    const uint32_t address = exch_rec_address(m, r->message, r->rec);
    if (prev->any && !prev->paired && prev->end == x) w->n_x--; /* the neutral is replaced */
    add_x(w, x, CTL_MUX, route->phys[m->src[r->message]]);
    if (!prev->any || prev->paired || prev->address != address)
        add_p(w, (struct exch_control){.label = r->label,
                                       .kind = CTL_PTR,
                                       .value = address / 4,
                                       .transfer = m->transfer[r->message],
                                       .recipient = exch_rec_index(m, r->message, r->rec)});
    add_x(w, x + n, CTL_MUX, TARGET_EXCH_MUX_NEUTRAL);
    *prev = (struct previous){true, false, x + n, address + 4 * n, 0};
    w->horizon = MAX(w->horizon, r->label + n + TARGET_EXCH_TAIL_GUARD);
}

static void add_paired(struct tile_work *w, const struct exch_msgs *m, const struct receive *r,
                       struct previous *prev) {
    const struct exch_route *route = exch_route();
    const uint32_t n = m->items[r->message], tile = m->rec_tile[r->rec];
    const uint32_t flag = m->rec_flag[r->rec], format = flag & REC_FORMAT;
    const uint32_t f = r->label - 2, x = f - (exch_lag(route, tile) - 1);
    const uint32_t address = exch_rec_address(m, r->message, r->rec);
    const bool keep = prev->any && prev->paired && prev->format == format && prev->end == f;
    if (keep) w->n_p--;
    if (flag & REC_EARLY) {
        if (keep) w->n_x--;
        const uint32_t lane = route->phys[tile] & 2;
        add_x(w, x, CTL_PAIR, route->phys[m->src[r->message]] ^ lane);
        add_x(w, x + n, CTL_PAIR, TARGET_EXCH_MUX_NEUTRAL);
    }
    if (!keep) add_p(w, (struct exch_control){.label = f, .kind = CTL_FMT, .value = format});
    add_p(w, (struct exch_control){.label = r->label,
                                   .kind = CTL_PTR,
                                   .value = address / 4,
                                   .transfer = m->transfer[r->message],
                                   .recipient = exch_rec_index(m, r->message, r->rec)});
    add_p(w, (struct exch_control){.label = f + n, .kind = CTL_FMT, .value = 0});
    *prev = (struct previous){true, true, f + n, address + 8 * n, format};
    w->horizon = MAX(w->horizon, f + n + TARGET_EXCH_PAIR_TAIL_GUARD);
}

static void insertion_sort(struct exch_control *c, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        const struct exch_control v = c[i];
        uint32_t k = i;
        for (; k > 0 && c[k - 1].label > v.label; k--) c[k] = c[k - 1];
        c[k] = v;
    }
}

static void merge_controls(struct tile_work *w) {
    insertion_sort(w->x, w->n_x);
    insertion_sort(w->p, w->n_p);
    uint32_t a = 0, b = 0;
    w->n_all = 0;
    while (a < w->n_x || b < w->n_p) {
        const bool take_x = b == w->n_p || (a < w->n_x && w->x[a].label <= w->p[b].label);
        w->all[w->n_all++] = take_x ? w->x[a++] : w->p[b++];
    }
}

static void add_sends(struct tile_work *w, const struct exch_msgs *m, const struct exch_sched *s,
                      const uint32_t *send, uint32_t n, uint32_t put) {
    w->n_sends = 0;
    const struct exch_send base = {.slot = put, .items = TARGET_EXCH_PUT_SLOTS, .sctl = 0};
    bool put_done = put == UINT32_MAX;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t i = send[k];
        if (!put_done && s->slot[i] > put) {
            w->sends[w->n_sends++] = base;
            put_done = true;
        }
        w->sends[w->n_sends++] = (struct exch_send){.slot = s->slot[i],
                                                    .items = m->items[i],
                                                    .address = exch_src_address(m, i),
                                                    .transfer = m->transfer[i],
                                                    .sctl = m->sctl[i],
                                                    .moving = m->moving[i] != 0};
        w->horizon = MAX(w->horizon, s->slot[i] + m->items[i]);
    }
    BUG_ON(!put_done);
}

struct make {
    const struct exch_msgs *m;
    const struct exch_sched *s;
    struct exch_result *r;
    struct gather g;
    struct tile_work w;
    struct exch_row_writer out;
};

/* --- Neutrals in front of idle buses --- */

/* Whether `tile` sends in slots [from, to); paired: only what also takes its partner's lane counts. */
static bool sends_between(const struct make *k, uint32_t tile, int64_t from, int64_t to, bool paired) {
    uint32_t lo = k->g.first_send[tile], hi = k->g.first_send[tile + 1];
    const uint32_t end = hi;
    while (lo < hi) { /* first send that ends behind `from` */
        const uint32_t mid = (lo + hi) / 2, i = k->g.send[mid];
        if ((int64_t)k->s->slot[i] + k->m->items[i] > from) hi = mid;
        else lo = mid + 1;
    }
    for (; lo < end && k->s->slot[k->g.send[lo]] < to; lo++)
        if (!paired || k->m->paired[k->g.send[lo]]) return true;
    return false;
}

/* Nothing passes on the bus of `source` at tile t's multiplexer between two labels. */
static bool bus_idle(const struct make *k, uint32_t source, uint32_t t, uint32_t from, uint32_t to) {
    const int64_t shift = exch_route()->ttm[source][t] + 1;
    return !sends_between(k, source, from - shift, to - shift, false) &&
           !sends_between(k, source ^ 1, from - shift, to - shift, true);
}

/* Relaxed rows only: the composer writes this neutral always (exchange 3.3-5).
 * Between two ordinary messages the multiplexer may stay on the first one's bus when nothing passes
 * there: an idle bus is no error (exchange 2.7, 3.1; a vendor's own rows do it behind messages). That
 * saves the neutral, a word, and often a cut of the send that carries it. */
static void drop_neutrals(struct make *k, uint32_t t) {
    struct tile_work *w = &k->w;
    const uint32_t lag = exch_lag(exch_route(), t);
    uint32_t at = 0, kept = 0; /* controls looked at; kept of them */
    for (uint32_t a = k->g.first_rec[t]; a + 1 < k->g.first_rec[t + 1]; a++) {
        const struct receive *r = &k->g.rec[a], *next = r + 1;
        const uint32_t end = r->label - lag + k->m->items[r->message], x = next->label - lag;
        if (k->m->paired[r->message] || k->m->paired[next->message] || end >= x) continue;
        if (!bus_idle(k, k->m->src[r->message], t, end, x)) continue;
        for (; w->all[at].label < end || w->all[at].kind != CTL_MUX; at++) w->all[kept++] = w->all[at];
        BUG_ON(w->all[at].label != end || w->all[at].value != TARGET_EXCH_MUX_NEUTRAL);
        at++;
    }
    while (at < w->n_all) w->all[kept++] = w->all[at++];
    w->n_all = kept;
}

/* The row of one tile, appended to k->out; false if it has none. */
static bool encode_tile(struct make *k, uint32_t t) {
    struct tile_work *w = &k->w;
    w->n_x = w->n_p = w->horizon = 0;
    struct previous prev = {0};
    for (uint32_t a = k->g.first_rec[t]; a < k->g.first_rec[t + 1]; a++) {
        const struct receive *r = &k->g.rec[a];
        if (k->m->paired[r->message]) add_paired(w, k->m, r, &prev);
        else add_ordinary(w, k->m, r, &prev);
    }
    merge_controls(w);
    add_sends(w, k->m, k->s, k->g.send + k->g.first_send[t],
              k->g.first_send[t + 1] - k->g.first_send[t], k->s->put[t]);
    if (k->s->relaxed) drop_neutrals(k, t);
    if (w->n_all == 0 && w->n_sends == 0) return false;
    k->out.row_start = k->out.words->len;
    const bool ok = exch_encode_row(&k->out, w->sends, w->n_sends, w->all, w->n_all, w->horizon);
    BUG_ON(!ok); /* the time lines leave room for every alignment */
    return true;
}

static bool make_tile(struct make *k, uint32_t t, GError **error) {
    k->r->first_word[t] = k->out.words->len;
    k->r->first_site[t] = k->out.sites->len;
    const bool any = encode_tile(k, t);
    k->r->tile_horizon[t] = k->w.horizon;
    if (!any) return true;
    k->r->active[t] = 1;
    const uint32_t bytes = 4 * (k->out.words->len - k->out.row_start);
    k->r->row_bytes_total += bytes;
    if (bytes > k->r->row_bytes_max) {
        k->r->row_bytes_max = bytes;
        k->r->row_bytes_tile = t;
    }
    const uint32_t reserved = exch_problem_row_bytes(k->m->p, t);
    if (reserved == 0 || bytes <= reserved) return true;
    uint32_t first = 0; /* transfer of the first address beyond the reservation */
    for (uint32_t i = k->r->first_site[t]; i < k->out.sites->len; i++) {
        const struct exch_site *site = &g_array_index(k->out.sites, struct exch_site, i);
        first = site->transfer;
        if (4 * (site->word - k->out.row_start) >= reserved) break;
    }
    diag_set(error, EXCH_ROW_TOO_LONG, t, bytes, reserved, first);
    return false;
}

static void work_new(struct tile_work *w, const struct gather *g) {
    uint32_t most_rec = 0, most_send = 0;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        most_rec = MAX(most_rec, g->first_rec[t + 1] - g->first_rec[t]);
        most_send = MAX(most_send, g->first_send[t + 1] - g->first_send[t]);
    }
    w->x = g_new(struct exch_control, 2 * most_rec + 1);
    w->p = g_new(struct exch_control, 3 * most_rec + 1);
    w->all = g_new(struct exch_control, 5 * most_rec + 1);
    w->sends = g_new(struct exch_send, most_send + 2);
}

static void work_free(struct tile_work *w) {
    g_free(w->x);
    g_free(w->p);
    g_free(w->all);
    g_free(w->sends);
}

static struct exch_result *result_alloc(const struct exch_msgs *m, const struct exch_sched *s) {
    struct arena *a = arena_new();
    struct exch_result *r = arena_new_array(a, struct exch_result, 1);
    r->arena = a;
    r->n_tiles = TARGET_N_TILES;
    r->active = arena_new_array(a, uint8_t, TARGET_N_TILES);
    r->tile_horizon = arena_new_array(a, uint32_t, TARGET_N_TILES);
    r->first_word = arena_new_array(a, uint32_t, TARGET_N_TILES + 1);
    r->incoming_base = arena_new_array(a, uint32_t, TARGET_N_TILES);
    r->base_switch = arena_copy(a, s->put, TARGET_N_TILES * sizeof *s->put);
    r->outgoing_base = arena_copy(a, m->base, TARGET_N_TILES);
    r->moving_stride = arena_copy(a, m->stride, TARGET_N_TILES * sizeof *m->stride);
    r->first_site = arena_new_array(a, uint32_t, TARGET_N_TILES + 1);
    r->n_messages = m->n;
    r->messages = arena_new_array(a, struct exch_message, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++)
        r->messages[i] = (struct exch_message){.transfer = m->transfer[i],
                                               .first_word = m->offset[i],
                                               .words = m->items[i] * exch_item_bytes(m, i) / 4,
                                               .slot = s->slot[i],
                                               .paired = m->paired[i] != 0};
    return r;
}

static uint64_t fingerprint(const struct exch_result *r) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (uint32_t t = 0; t < r->n_tiles; t++)
        for (uint32_t k = r->first_word[t]; k < r->first_word[t + 1]; k++)
            h = (h ^ r->words[k] ^ (uint64_t)t << 32) * UINT64_C(0x100000001b3);
    return h;
}

struct exch_result *exch_result_new(const struct exch_msgs *m, const struct exch_sched *s,
                                    GError **error) {
    struct make k = {.m = m, .s = s, .r = result_alloc(m, s)};
    k.r->relaxed = s->relaxed;
    gather_new(&k.g, m, s);
    work_new(&k.w, &k.g);
    k.out.words = g_array_sized_new(FALSE, FALSE, 4, 3 * m->n + 2 * m->n_rec + 64);
    k.out.sites = g_array_sized_new(FALSE, FALSE, sizeof(struct exch_site), m->n + m->n_rec + 64);
    bool ok = true;
    for (uint32_t t = 0; t < TARGET_N_TILES && ok; t++) {
        ok = make_tile(&k, t, error);
        k.r->horizon = MAX(k.r->horizon, k.r->tile_horizon[t]);
    }
    k.r->first_word[TARGET_N_TILES] = k.out.words->len;
    k.r->first_site[TARGET_N_TILES] = k.out.sites->len;
    gather_free(&k.g);
    work_free(&k.w);
    if (ok) {
        k.r->words = arena_copy(k.r->arena, k.out.words->data, 4 * (size_t)k.out.words->len);
        k.r->sites = arena_copy(k.r->arena, k.out.sites->data,
                                sizeof(struct exch_site) * (size_t)k.out.sites->len);
        k.r->fingerprint = fingerprint(k.r);
    }
    g_array_free(k.out.words, TRUE);
    g_array_free(k.out.sites, TRUE);
    if (ok) return k.r;
    exch_result_free(k.r);
    return NULL;
}

void exch_result_free(struct exch_result *r) {
    if (r != NULL) arena_free(r->arena);
}

/* --- Words of one row --- */

struct exch_row_counter {
    struct make k;
};

struct exch_row_counter *exch_row_counter_new(const struct exch_msgs *m,
                                              const struct exch_sched *s) {
    struct exch_row_counter *c = g_new0(struct exch_row_counter, 1);
    c->k = (struct make){.m = m, .s = s};
    gather_new(&c->k.g, m, s);
    work_new(&c->k.w, &c->k.g);
    c->k.out.words = g_array_new(FALSE, FALSE, 4);
    c->k.out.sites = g_array_new(FALSE, FALSE, sizeof(struct exch_site));
    return c;
}

void exch_row_counter_free(struct exch_row_counter *c) {
    gather_free(&c->k.g);
    work_free(&c->k.w);
    g_array_free(c->k.out.words, TRUE);
    g_array_free(c->k.out.sites, TRUE);
    g_free(c);
}

void exch_row_counter_send(struct exch_row_counter *c, uint32_t tile, uint32_t at, uint32_t i) {
    c->k.g.send[c->k.g.first_send[tile] + at] = i;
}
void exch_row_counter_receive(struct exch_row_counter *c, uint32_t tile, uint32_t at, uint32_t i) {
    const uint32_t j = c->k.m->rec0[i];
    c->k.g.rec[c->k.g.first_rec[tile] + at] =
        (struct receive){payload_label(c->k.m, i, j, c->k.s->slot[i]), i, j};
}

uint32_t exch_row_count(struct exch_row_counter *c, uint32_t tile) {
    g_array_set_size(c->k.out.words, 0);
    g_array_set_size(c->k.out.sites, 0);
    encode_tile(&c->k, tile);
    return c->k.out.words->len;
}
