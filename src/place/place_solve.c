/* The driver: checks the problem, finds tiles with the same requests, solves each distinct tile
 * once (in parallel, one slot each), copies the answers, lets the independent checker see the whole
 * map.
 *
 * First every distinct tile gets a repair of the previous map, if there is one, a few constructive
 * rounds and the proofs that need no search. If none is infeasible, the open ones get all
 * constructive orders and the exact search, in batches until one fails. If all are solved and there
 * is traffic, every map is improved for it. Budgets are steps (positions tried), never time. */
#include "place/place_int.h"

#include <string.h>

enum { DEFAULT_STEPS = 200 * 1000, FIRST_ROUNDS = 8, GREEDY_ROUNDS = 400, BATCH = 16 };

struct answer {
    enum place_status status;
    bool constructive;
    uint32_t *address; /* per request of the tile; NULL unless solved */
    struct place_proof proof;
    uint64_t n_steps;
    bool repaired;
};

struct solve {
    const struct place_problem *p;
    const struct place_options *options;
    uint32_t *pair_first; /* [n_tiles + 1] */
    uint32_t n_distinct;
    uint32_t *distinct, *class; /* distinct tiles; [n_tiles] number of the tile's class */
    struct answer *answer;      /* [n_distinct] */
};

struct hard_batch {
    const struct solve *s;
    uint32_t n, item[BATCH]; /* numbers of distinct tiles */
};

/* --- Identical tiles. --- */

/* What the solver sees of a request, with numbers relative to the tile. */
static struct place_request canonical(const struct solve *s, uint32_t base, uint32_t r) {
    struct place_request q = s->p->request[r];
    q.name = 0;
    q.kind = 0;
    q.alias = q.flags & PLACE_ALIAS ? q.alias - base : 0;
    q.displacement = q.flags & PLACE_ALIAS ? q.displacement : 0;
    q.address = q.flags & PLACE_FIXED ? q.address : 0;
    if (!(q.flags & PLACE_FIXED) && s->options->previous != NULL)
        q.address = s->options->previous[r] + 1;
    return q;
}

static uint64_t mix(uint64_t h, const void *data, size_t bytes) {
    const uint32_t *w = data;
    for (size_t i = 0; i < bytes / 4; i++) {
        h = (h ^ w[i]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static uint64_t tile_hash(const struct solve *s, uint32_t t) {
    const uint32_t base = s->p->first[t];
    uint64_t h = s->p->first[t + 1] - base;
    for (uint32_t r = base; r < s->p->first[t + 1]; r++) {
        const struct place_request q = canonical(s, base, r);
        h = mix(h, &q, sizeof q);
    }
    for (uint32_t i = s->pair_first[t]; i < s->pair_first[t + 1]; i++) {
        const uint32_t pair[2] = {s->p->pair_a[i] - base, s->p->pair_b[i] - base};
        h = mix(h, pair, sizeof pair);
    }
    const struct place_traffic *x = s->options->traffic;
    for (uint32_t i = x ? x->first[t] : 0; x != NULL && i < x->first[t + 1]; i++) {
        struct place_traffic_item item = x->item[i];
        item.request -= base;
        h = mix(h, &item, sizeof item);
    }
    return h;
}

static bool tile_traffic_equal(const struct place_traffic *x, uint32_t base_t, uint32_t base_u,
                               uint32_t t, uint32_t u) {
    const uint32_t n = x->first[t + 1] - x->first[t];
    if (n != x->first[u + 1] - x->first[u]) return false;
    for (uint32_t i = 0; i < n; i++) {
        struct place_traffic_item a = x->item[x->first[t] + i], b = x->item[x->first[u] + i];
        a.request -= base_t;
        b.request -= base_u;
        if (memcmp(&a, &b, sizeof a) != 0) return false;
    }
    return true;
}

static bool tile_equal(const struct solve *s, uint32_t t, uint32_t u) {
    const struct place_problem *p = s->p;
    const uint32_t bt = p->first[t], bu = p->first[u], n = p->first[t + 1] - bt;
    const uint32_t pt = s->pair_first[t], pu = s->pair_first[u], m = s->pair_first[t + 1] - pt;
    if (n != p->first[u + 1] - bu || m != s->pair_first[u + 1] - pu) return false;
    for (uint32_t r = 0; r < n; r++) {
        const struct place_request a = canonical(s, bt, bt + r), b = canonical(s, bu, bu + r);
        if (memcmp(&a, &b, sizeof a) != 0) return false;
    }
    for (uint32_t i = 0; i < m; i++)
        if (p->pair_a[pt + i] - bt != p->pair_a[pu + i] - bu ||
            p->pair_b[pt + i] - bt != p->pair_b[pu + i] - bu)
            return false;
    const struct place_traffic *x = s->options->traffic;
    return x == NULL || tile_traffic_equal(x, bt, bu, t, u);
}

static void find_classes(struct solve *s) {
    const uint32_t n = s->p->n_tiles;
    uint32_t buckets = 64;
    while (buckets < 2 * n) buckets *= 2;
    uint32_t *bucket = g_new(uint32_t, buckets); /* distinct number + 1 */
    memset(bucket, 0, buckets * sizeof *bucket);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t b = (uint32_t)tile_hash(s, t) & (buckets - 1);
        while (bucket[b] != 0 && !tile_equal(s, s->distinct[bucket[b] - 1], t))
            b = (b + 1) & (buckets - 1);
        if (bucket[b] == 0) {
            s->distinct[s->n_distinct++] = t;
            bucket[b] = s->n_distinct;
        }
        s->class[t] = bucket[b] - 1;
    }
    g_free(bucket);
}

/* --- One tile. --- */

static void take_map(const struct fit *f, struct answer *a) {
    const struct tile *t = f->tile;
    a->status = PLACE_SOLVED;
    a->address = g_new(uint32_t, t->n_requests);
    for (uint32_t r = 0; r < t->n_requests; r++)
        a->address[r] = f->address[t->item_of[r]] + t->offset_of[r];
}

/* A tile in solver form with its fit; freed as a whole. */
struct work {
    struct arena *arena;
    const struct tile *t;
    struct fit *f;
};

static struct work work_begin(const struct solve *s, uint32_t tile) {
    struct work w = {.arena = arena_new()};
    w.t = tile_build(s->p, tile, w.arena);
    w.f = fit_new(w.t, w.arena);
    return w;
}

static void work_end(struct work *w, struct answer *a, bool solved) {
    a->n_steps += w->f->n_steps;
    if (a->proof.kind != PLACE_PROOF_NONE) {
        a->status = PLACE_INFEASIBLE;
        a->proof.user = g_memdup2(a->proof.user, a->proof.n_users * sizeof *a->proof.user);
    }
    if (solved) take_map(w->f, a);
    arena_free(w->arena);
}

static uint64_t tile_budget(const struct solve *s) {
    return s->options->max_steps ? s->options->max_steps : DEFAULT_STEPS;
}

/* Repair, a few constructive rounds, proofs. */
static void solve_first(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct solve *s = context;
    const uint32_t tile = s->distinct[i];
    struct answer *a = &s->answer[i];
    struct work w = work_begin(s, tile);
    bool solved =
        s->options->previous != NULL && repair_solve(w.f, s->options->previous + s->p->first[tile]);
    a->repaired = solved;
    if (!solved && !s->options->search_only) {
        solved = greedy_solve(w.f, MIN(tile_budget(s), FIRST_ROUNDS * (uint64_t)w.t->n));
        if (!solved) a->proof = bound_prove(w.t);
    }
    a->constructive = solved;
    a->status = PLACE_UNDECIDED;
    work_end(&w, a, solved);
}

/* All constructive rounds, then the exact search. */
static void solve_hard(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct hard_batch *batch = context;
    const struct solve *s = batch->s;
    struct answer *a = &s->answer[batch->item[i]];
    struct work w = work_begin(s, s->distinct[batch->item[i]]);
    const uint64_t budget = tile_budget(s);
    bool solved = !s->options->search_only &&
                  greedy_solve(w.f, MIN(budget, GREEDY_ROUNDS * (uint64_t)w.t->n));
    a->constructive = solved;
    if (!solved && !s->options->constructive_only) {
        const enum search_status found =
            search_solve(w.t, budget - MIN(budget, w.f->n_steps), w.f->address, &a->n_steps);
        solved = found == SEARCH_FOUND;
        if (found == SEARCH_INFEASIBLE) a->proof.kind = PLACE_PROOF_SEARCH;
    }
    work_end(&w, a, solved);
}

/* A solved tile's map again, with the traffic in mind. */
static void solve_traffic(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct solve *s = context;
    const uint32_t tile = s->distinct[i];
    struct answer *a = &s->answer[i];
    if (a->repaired) return;
    struct work w = work_begin(s, tile);
    for (uint32_t k = 0; k < w.t->n; k++) w.f->address[k] = a->address[w.t->item[k].root];
    traffic_improve(w.f, s->options->traffic, tile, s->p->first[tile]);
    g_free(a->address);
    work_end(&w, a, true);
}

/* The tiles that the first stage left open, a batch at a time; a tile that fails ends it: whether
 * the others could be solved no longer matters. */
static bool solve_open(const struct solve *s) {
    struct hard_batch batch = {.s = s};
    for (uint32_t i = 0; i < s->n_distinct; i++)
        if (s->answer[i].status == PLACE_INFEASIBLE) return false;
    bool ok = true;
    for (uint32_t i = 0; i < s->n_distinct && ok; i++) {
        if (s->answer[i].status == PLACE_UNDECIDED) batch.item[batch.n++] = i;
        if (batch.n == 0 || (batch.n < BATCH && i + 1 < s->n_distinct)) continue;
        par_for(batch.n, solve_hard, &batch);
        for (uint32_t k = 0; k < batch.n; k++)
            ok = ok && s->answer[batch.item[k]].status == PLACE_SOLVED;
        batch.n = 0;
    }
    return ok;
}

/* --- All tiles. --- */

static uint32_t *pairs_by_tile(const struct place_problem *p) {
    uint32_t *first = g_new(uint32_t, p->n_tiles + 1);
    uint32_t k = 0;
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        first[t] = k;
        while (k < p->n_pairs && p->pair_a[k] < p->first[t + 1]) k++;
    }
    first[p->n_tiles] = k;
    return first;
}

static struct place_proof proof_for(const struct solve *s, const struct answer *a, uint32_t tile) {
    struct place_proof proof = a->proof;
    proof.tile = tile;
    proof.user = g_memdup2(proof.user, proof.n_users * sizeof *proof.user);
    for (uint32_t k = 0; k < proof.n_users; k++) proof.user[k] += s->p->first[tile];
    return proof;
}

static void collect(const struct solve *s, struct place_result *r) {
    const struct place_problem *p = s->p;
    for (uint32_t i = 0; i < s->n_distinct; i++) {
        r->n_steps += s->answer[i].n_steps;
        r->n_constructive += s->answer[i].constructive;
    }
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        const struct answer *a = &s->answer[s->class[t]];
        const uint32_t base = p->first[t], n = p->first[t + 1] - base;
        r->tile_status[t] = (uint8_t)a->status;
        if (a->status > r->status) r->status = a->status;
        if (a->status == PLACE_INFEASIBLE) r->proof[r->n_proofs++] = proof_for(s, a, t);
        for (uint32_t i = 0; i < n; i++)
            r->address[base + i] =
                a->status == PLACE_SOLVED ? a->address[i] : (uint32_t)PLACE_NO_ADDRESS;
    }
    const uint32_t *previous = s->options->previous;
    for (uint32_t i = 0; i < p->n_requests && previous != NULL; i++)
        r->n_moved += previous[i] != PLACE_NO_ADDRESS && r->address[i] != PLACE_NO_ADDRESS &&
                      previous[i] != r->address[i];
}

static void check_answer(const struct place_problem *p, const struct place_result *r) {
    char *message = NULL;
    if (place_map_check(p, r->address, &message)) return;
    g_printerr("place: the solver's map violates the problem: %s\n", message);
    const bool map_keeps_the_constraints = false;
    BUG_ON(!map_keeps_the_constraints);
}

struct place_result *place_solve(const struct place_problem *p, const struct place_options *options,
                                 GError **error) {
    static const struct place_options none = {0};
    const gint64 start = g_get_monotonic_time();
    if (!place_problem_check(p, error)) return NULL;
    struct solve s = {.p = p, .options = options ? options : &none};
    s.pair_first = pairs_by_tile(p);
    s.distinct = g_new(uint32_t, p->n_tiles);
    s.class = g_new(uint32_t, p->n_tiles);
    find_classes(&s);
    s.answer = g_new0(struct answer, s.n_distinct);
    par_for(s.n_distinct, solve_first, &s);
    if (solve_open(&s) && s.options->traffic != NULL) par_for(s.n_distinct, solve_traffic, &s);

    struct place_result *r = g_new0(struct place_result, 1);
    r->n_tiles = p->n_tiles;
    r->n_requests = p->n_requests;
    r->n_distinct = s.n_distinct;
    r->address = g_new(uint32_t, p->n_requests);
    r->tile_status = g_new0(uint8_t, p->n_tiles);
    r->proof = g_new0(struct place_proof, p->n_tiles);
    collect(&s, r);
    for (uint32_t i = 0; i < s.n_distinct; i++) {
        g_free(s.answer[i].address);
        g_free(s.answer[i].proof.user);
    }
    g_free(s.answer);
    g_free(s.class);
    g_free(s.distinct);
    g_free(s.pair_first);
    check_answer(p, r);
    r->seconds = (double)(g_get_monotonic_time() - start) / 1e6;
    return r;
}

void place_result_free(struct place_result *r) {
    if (r == NULL) return;
    for (uint32_t i = 0; i < r->n_proofs; i++) g_free(r->proof[i].user);
    g_free(r->proof);
    g_free(r->address);
    g_free(r->tile_status);
    g_free(r);
}
