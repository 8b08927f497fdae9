/* Trim: takes words from the longest rows of a unicast schedule without making it longer.
 *
 * A row has a word per send and per source control, and beyond these one per gap between sends, one
 * per gap between receives (a neutral) and one per receive that does not continue its buffer (a
 * pointer). Those change when a message moves. So, for a tile whose row is above the limit, each of
 * its messages is taken out in turn; bit planes say in which slots its sender and its receiver are
 * both idle long enough; the ends of each such stretch are looked at, since there the message
 * touches a neighbour; and it goes to the best of them if the time lines admit it and the rows of
 * both tiles, encoded again, are better: the sum of squares of the words above the limit falls. The
 * limit is a little below the longest row and falls with it until nothing helps. Cost: some
 * microseconds for a message looked at, about 0.1 ms for one moved. Messages are moved one at a
 * time; two that would have to change places stay. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    N = TARGET_N_TILES,
    PAD = 4,      /* words of a plane before slot 0 and behind the end: latencies are below 256 */
    N_PLACES = 8, /* best places kept per message */
    BELOW = 4,    /* words of the limit below the longest row */
};

/* A message on a line: its slots or source labels [time, end) and the addresses of its destination.
 */
struct stretch {
    uint32_t time, end, message, address, behind;
};
/* Messages of one line of a tile in order of time, and the bits of what they take. */
struct line {
    struct stretch *list;
    uint32_t n;
    uint64_t *busy; /* bit of time t at PAD * 64 + t */
};

struct place {
    uint32_t slot;
    int32_t above, words; /* what its tiles are above the limit then; words that it costs */
};

struct trim {
    const struct exch_msgs *m;
    const struct exch_trim_options *o;
    struct exch_sched *s;
    struct exch_lines *l;
    struct exch_row_counter *counter;
    struct line line[2][N]; /* sends by slot, receives by source label */
    struct stretch *list[2];
    uint64_t *busy;
    uint32_t n_words; /* of a plane */
    uint64_t *scratch[2];
    int32_t words[N], limit; /* words of the rows */
    uint32_t horizon;
    uint64_t used;
};

enum side { SEND, RECEIVE };

static inline uint32_t tile_of(const struct trim *k, enum side e, uint32_t i) {
    return e == SEND ? k->m->src[i] : k->m->rec_tile[k->m->rec0[i]];
}
static inline uint32_t shift_of(const struct trim *k, enum side e, uint32_t i) {
    return e == SEND ? 0 : (uint32_t)k->m->rec_x[k->m->rec0[i]];
}
static inline uint32_t time_of(const struct trim *k, enum side e, uint32_t i) {
    return k->s->slot[i] + shift_of(k, e, i);
}

/* --- Lines --- */

static void mark(struct trim *k, enum side e, uint32_t i, bool busy) {
    uint64_t *w = k->line[e][tile_of(k, e, i)].busy;
    const uint32_t a = 64 * PAD + time_of(k, e, i), b = a + k->m->items[i] - 1;
    for (uint32_t at = a >> 6; at <= b >> 6; at++) {
        uint64_t mask = UINT64_MAX;
        if (at == a >> 6) mask &= UINT64_MAX << (a & 63);
        if (at == b >> 6) mask &= UINT64_MAX >> (63 - (b & 63));
        w[at] = busy ? w[at] | mask : w[at] & ~mask;
    }
}

/* First position of the line whose time is at least t. */
static uint32_t position(const struct line *l, uint32_t t) {
    uint32_t a = 0, b = l->n;
    while (a < b) {
        const uint32_t c = (a + b) / 2;
        if (l->list[c].time < t) a = c + 1;
        else b = c;
    }
    return a;
}

static struct stretch stretch_of(const struct trim *k, enum side e, uint32_t i, uint32_t slot) {
    const uint32_t t = slot + shift_of(k, e, i), n = k->m->items[i];
    const uint32_t address = exch_rec_address(k->m, i, k->m->rec0[i]);
    return (struct stretch){t, t + n, i, address, address + 4 * n};
}

static void take_out(struct trim *k, uint32_t i) {
    for (enum side e = SEND; e <= RECEIVE; e++) {
        struct line *l = &k->line[e][tile_of(k, e, i)];
        const uint32_t at = position(l, time_of(k, e, i));
        mark(k, e, i, false);
        memmove(l->list + at, l->list + at + 1, (l->n - at - 1) * sizeof *l->list);
        l->n--;
    }
}

static void put_in(struct trim *k, uint32_t i, uint32_t slot) {
    k->s->slot[i] = slot;
    for (enum side e = SEND; e <= RECEIVE; e++) {
        struct line *l = &k->line[e][tile_of(k, e, i)];
        const uint32_t at = position(l, time_of(k, e, i));
        mark(k, e, i, true);
        memmove(l->list + at + 1, l->list + at, (l->n - at) * sizeof *l->list);
        l->list[at] = stretch_of(k, e, i, slot);
        l->n++;
    }
}

static void refill(struct trim *k, uint32_t tile) {
    exch_lines_reset(k->l, tile);
    const struct line *send = &k->line[SEND][tile], *rec = &k->line[RECEIVE][tile];
    for (uint32_t n = 0; n < send->n; n++)
        exch_lines_commit_send(k->l, send->list[n].message, send->list[n].time);
    for (uint32_t n = 0; n < rec->n; n++) {
        const uint32_t i = rec->list[n].message;
        exch_lines_commit_receive(k->l, i, k->m->rec0[i], k->s->slot[i]);
    }
}

/* Tells the counter the order of a tile's line. */
static void tell(struct trim *k, enum side e, uint32_t tile) {
    const struct line *l = &k->line[e][tile];
    for (uint32_t n = 0; n < l->n; n++)
        if (e == SEND) exch_row_counter_send(k->counter, tile, n, l->list[n].message);
        else exch_row_counter_receive(k->counter, tile, n, l->list[n].message);
}

/* --- What a place costs --- */

/* Word for the pointer of a message behind another (NULL: none). */
static int32_t pointer(const struct stretch *prev, const struct stretch *i) {
    return i != NULL && (prev == NULL || prev->behind != i->address);
}

/* Word for what lies between a message (NULL: the start) and a time on a line: a delay, or a
 * neutral (relaxed: unless nothing passes on the message's bus until then). */
static int32_t gap(const struct trim *k, enum side e, const struct stretch *prev, uint32_t to) {
    if (prev == NULL) return e == SEND && to > 0;
    if (to <= prev->end || e == SEND || !k->s->relaxed) return to > prev->end;
    const struct line *l = &k->line[SEND][k->m->src[prev->message]];
    const uint32_t slot = prev->end - shift_of(k, e, prev->message), at = position(l, slot);
    return at < l->n && l->list[at].time < slot + (to - prev->end);
}

/* Words that a line gains when message i, which is not in it, is put in at this slot. */
static int32_t line_cost(const struct trim *k, enum side e, uint32_t i, uint32_t slot) {
    const struct line *l = &k->line[e][tile_of(k, e, i)];
    const struct stretch v = stretch_of(k, e, i, slot);
    const uint32_t at = position(l, v.time);
    const struct stretch *prev = at > 0 ? &l->list[at - 1] : NULL;
    const struct stretch *next = at < l->n ? &l->list[at] : NULL;
    int32_t words = gap(k, e, prev, v.time);
    if (next != NULL) words += gap(k, e, &v, next->time) - gap(k, e, prev, next->time);
    if (e == RECEIVE) words += pointer(prev, &v) + pointer(&v, next) - pointer(prev, next);
    return words;
}

/* Weight of a row above the limit: the longest count most. */
static int32_t above(const struct trim *k, int32_t words) {
    const int32_t x = MAX(words - k->limit, 0);
    return x * x;
}

/* --- Places --- */

/* to[t] |= from[t + by] */
static void or_shifted(uint64_t *to, const uint64_t *from, uint32_t by, uint32_t n) {
    const uint32_t q = by >> 6, r = by & 63;
    if (r == 0) {
        for (uint32_t w = 0; w < n; w++) to[w] |= from[w + q];
    } else {
        for (uint32_t w = 0; w < n; w++) to[w] |= from[w + q] >> r | from[w + q + 1] << (64 - r);
    }
}

/* Bits of the slots first..last from which neither line is busy for the length of message i; bit 0
 * is slot 0, and all k->n_words of them are valid. */
static const uint64_t *free_slots(struct trim *k, uint32_t i, uint32_t first, uint32_t last) {
    uint64_t *a = k->scratch[0], *b = k->scratch[1];
    const uint32_t n = k->n_words;
    memcpy(a, k->line[SEND][k->m->src[i]].busy + PAD, n * sizeof *a);
    or_shifted(a, k->line[RECEIVE][tile_of(k, RECEIVE, i)].busy,
               64u * PAD + shift_of(k, RECEIVE, i), n);
    uint32_t done = 1; /* a[t] = busy in [t, t + done) */
    while (done < k->m->items[i]) {
        const uint32_t by = MIN(done, k->m->items[i] - done);
        memcpy(b, a, n * sizeof *a);
        or_shifted(b, a, by, n - PAD); /* behind the end nothing is free */
        uint64_t *t = a;
        a = b;
        b = t;
        done += by;
    }
    for (uint32_t w = 0; w < n; w++) b[w] = w < first >> 6 || w > last >> 6 ? 0 : ~a[w];
    b[first >> 6] &= UINT64_MAX << (first & 63);
    b[last >> 6] &= UINT64_MAX >> (63 - (last & 63));
    return b;
}

/* Lower is better: what is above the limit first, then words. */
static bool precedes(const struct place *a, const struct place *b) {
    return a->above != b->above ? a->above < b->above : a->words < b->words;
}

static void keep_place(struct place *place, uint32_t *n, struct place p) {
    uint32_t at = *n;
    if (at == N_PLACES) {
        if (!precedes(&p, &place[N_PLACES - 1])) return;
        at--;
    } else {
        ++*n;
    }
    for (; at > 0 && precedes(&p, &place[at - 1]); at--) place[at] = place[at - 1];
    place[at] = p;
}

/* Keeps the place if it is better than `before`. */
static void look_at(struct trim *k, uint32_t i, struct place p, int32_t before, struct place *place,
                    uint32_t *n) {
    for (enum side e = SEND; e <= RECEIVE; e++) {
        const int32_t words = line_cost(k, e, i, p.slot);
        p.above += above(k, k->words[tile_of(k, e, i)] + words);
        p.words += words;
    }
    if (p.above < before) keep_place(place, n, p);
}

/* Best places of message i, which is in no line and not counted: ends of stretches of free slots.
 */
static uint32_t find_places(struct trim *k, uint32_t i, int32_t before, struct place *place) {
    const uint32_t rest = exch_message_end(k->m, i, 4096) - 4096; /* from its slot to its end */
    const uint32_t first = k->m->s_min[i], last = k->horizon - rest;
    const uint64_t *f = free_slots(k, i, first, last);
    uint32_t n = 0;
    for (uint32_t w = first >> 6; w <= last >> 6; w++) {
        if (f[w] == 0) continue;
        const uint64_t left = f[w] << 1 | (w > 0 ? f[w - 1] >> 63 : 0);
        const uint64_t right = f[w] >> 1 | f[w + 1] << 63;
        for (uint64_t edge = f[w] & ~(left & right); edge != 0; edge &= edge - 1)
            look_at(k, i, (struct place){64 * w + (uint32_t)__builtin_ctzll(edge), 0, 0}, before,
                    place, &n);
    }
    k->used++;
    return n;
}

/* --- Moves --- */

/* The receiver of the last send before a slot on the line of message i's sender: its multiplexer
 * may still be on that bus. The receiver of i if there is none. */
static uint32_t parked(const struct trim *k, uint32_t i, uint32_t slot) {
    const struct line *l = &k->line[SEND][k->m->src[i]];
    const uint32_t at = position(l, slot);
    return tile_of(k, RECEIVE, at > 0 ? l->list[at - 1].message : i);
}

/* Tiles whose rows change when message i moves, and their words above the limit before. */
struct touched {
    uint32_t n, tile[4];
    int32_t above;
};
static void touch(const struct trim *k, struct touched *v, uint32_t tile) {
    for (uint32_t t = 0; t < v->n; t++)
        if (v->tile[t] == tile) return;
    v->tile[v->n++] = tile;
    v->above += above(k, k->words[tile]);
}

static void put_back(struct trim *k, uint32_t i, uint32_t slot) {
    put_in(k, i, slot);
    tell(k, SEND, tile_of(k, SEND, i));
    tell(k, RECEIVE, tile_of(k, RECEIVE, i));
}

/* Takes the place if the rules admit it and the rows, encoded, are better. Message i is in no line,
 * but its slot is the old one and the words count it. */
static bool settle(struct trim *k, uint32_t i, uint32_t slot) {
    if (exch_lines_try(k->l, i, slot) != slot) return false;
    const uint32_t old = k->s->slot[i];
    struct touched v = {0};
    touch(k, &v, tile_of(k, SEND, i));
    touch(k, &v, tile_of(k, RECEIVE, i));
    touch(k, &v, parked(k, i, old));
    touch(k, &v, parked(k, i, slot));
    put_back(k, i, slot);
    int32_t words[4], sum = 0;
    for (uint32_t t = 0; t < v.n; t++) {
        words[t] = (int32_t)exch_row_count(k->counter, v.tile[t]);
        sum += above(k, words[t]);
    }
    k->used += 10 * v.n;
    if (sum < v.above) {
        for (uint32_t t = 0; t < v.n; t++) k->words[v.tile[t]] = words[t];
        return true;
    }
    take_out(k, i);
    k->s->slot[i] = old;
    return false;
}

/* Moves message i to a better place if there is one. */
static bool move(struct trim *k, uint32_t i) {
    const uint32_t old = k->s->slot[i], s = tile_of(k, SEND, i), d = tile_of(k, RECEIVE, i);
    const int32_t words_s = k->words[s], words_d = k->words[d];
    take_out(k, i);
    k->words[s] -= line_cost(k, SEND, i, old);
    k->words[d] -= line_cost(k, RECEIVE, i, old);
    struct place place[N_PLACES];
    const uint32_t n = find_places(k, i, above(k, words_s) + above(k, words_d), place);
    k->words[s] = words_s;
    k->words[d] = words_d;
    if (n == 0) {
        put_in(k, i, old);
        return false;
    }
    refill(k, s);
    refill(k, d);
    bool moved = false;
    for (uint32_t p = 0; p < n && !moved; p++) moved = settle(k, i, place[p].slot);
    if (!moved) put_back(k, i, old);
    refill(k, s);
    refill(k, d);
    k->used += 20;
    return moved;
}

/* Moves messages of a tile until its row is within the limit or none helps. */
static bool trim_tile(struct trim *k, uint32_t tile) {
    bool any = false;
    for (enum side e = SEND; e <= RECEIVE; e++) {
        const struct line *l = &k->line[e][tile];
        const uint32_t n = l->n;
        struct stretch *list = g_memdup2(l->list, n * sizeof *list);
        for (uint32_t a = n; a > 0 && k->words[tile] > k->limit && k->used < k->o->budget; a--)
            any |= move(k, list[a - 1].message);
        g_free(list);
    }
    return any;
}

/* --- Driver --- */

static void fill_lines(struct trim *k, enum side e) {
    const struct exch_msgs *m = k->m;
    k->list[e] = g_new(struct stretch, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++) k->line[e][tile_of(k, e, i)].n++;
    struct stretch *at = k->list[e];
    for (uint32_t t = 0; t < N; t++) {
        struct line *l = &k->line[e][t];
        l->list = at;
        at += l->n;
        l->n = 0;
        l->busy = k->busy + (size_t)(e * N + t) * (k->n_words + 2 * PAD);
    }
}

static void fill(struct trim *k) {
    const struct exch_msgs *m = k->m;
    k->n_words = (k->horizon >> 6) + 1 + 2 * PAD;
    k->busy = g_new0(uint64_t, (size_t)2 * N * (k->n_words + 2 * PAD));
    for (enum side e = SEND; e <= RECEIVE; e++) {
        fill_lines(k, e);
        k->scratch[e] = g_new(uint64_t, k->n_words + 2 * PAD);
    }
    uint64_t *key = g_new(uint64_t, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++) key[i] = (uint64_t)k->s->slot[i] << 32 | i;
    qsort(key, m->n, sizeof *key, exch_key_compare);
    for (uint32_t n = 0; n < m->n; n++) put_in(k, (uint32_t)key[n], (uint32_t)(key[n] >> 32));
    g_free(key);
    for (uint32_t t = 0; t < N; t++) {
        refill(k, t);
        k->words[t] = (int32_t)exch_row_count(k->counter, t);
    }
}

static int32_t longest(const struct trim *k) {
    int32_t most = 0;
    for (uint32_t t = 0; t < N; t++) most = MAX(most, k->words[t]);
    return most;
}

/* One look at every tile above the limit; false when none gets better. */
static bool trim_all(struct trim *k) {
    bool any = false;
    for (uint32_t t = 0; t < N; t++)
        if (k->words[t] > k->limit) any |= trim_tile(k, t);
    return any;
}

uint32_t exch_sched_trim(const struct exch_msgs *m, const struct exch_trim_options *o,
                         struct exch_sched *s) {
    struct trim *k = g_new0(struct trim, 1);
    k->m = m;
    k->o = o;
    k->s = s;
    k->horizon = s->horizon;
    k->l = exch_lines_new(m, o->relaxed);
    k->counter = exch_row_counter_new(m, s);
    fill(k);
    int32_t most = longest(k);
    bool any = true;
    while (any && most > (int32_t)o->limit && k->used < o->budget) {
        k->limit = MAX((int32_t)o->limit, most - BELOW);
        any = trim_all(k);
        most = longest(k);
    }
    s->horizon = 0;
    for (uint32_t i = 0; i < m->n; i++)
        s->horizon = MAX(s->horizon, exch_message_end(m, i, s->slot[i]));
    s->evaluations += 10 * k->used;
    exch_row_counter_free(k->counter);
    exch_lines_free(k->l);
    for (enum side e = SEND; e <= RECEIVE; e++) {
        g_free(k->list[e]);
        g_free(k->scratch[e]);
    }
    g_free(k->busy);
    g_free(k);
    return (uint32_t)most;
}
