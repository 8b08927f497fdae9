/* Random problems with every kind of constraint: the solver against an exhaustive search written
 * from the meaning of the constraints alone (small sizes), and the independent checker against the
 * exhaustive search's own predicate. The first argument, if a number, is the only seed to run. */
#include "../place_random.h"

#include <string.h>

/* --- The exhaustive solver: every address of every storage, pruned only by pairs already placed.
 * --- */

struct naive {
    const struct place_problem *p;
    uint32_t n, *address, *root;
    uint32_t n_roots, roots[64];
    uint64_t n_nodes;
};

static uint64_t payload_end(const struct naive *v, uint32_t r) {
    return v->address[r] + place_request_extent(&v->p->request[r]);
}
static uint64_t tail_end(const struct naive *v, uint32_t r) {
    return payload_end(v, r) + v->p->request[r].tail_bytes;
}

static bool bytes_meet(uint64_t a, uint64_t ae, uint64_t b, uint64_t be) {
    return a < be && b < ae;
}

/* Element boundaries are walked byte by byte: nothing clever. */
static bool elements_common(const struct place_memory *m, uint64_t a, uint64_t ae, uint64_t b,
                            uint64_t be) {
    for (uint64_t lo = m->base; lo < m->end + 64;) {
        uint64_t hi = lo;
        do hi++;
        while (hi != m->interleaved_base && hi < m->end + 64 &&
               (hi < m->interleaved_base
                    ? m->element_bytes == 0 || (hi - m->base) % m->element_bytes != 0
                    : m->interleaved_element_bytes == 0 ||
                          (hi - m->interleaved_base) % m->interleaved_element_bytes != 0));
        if (bytes_meet(a, ae, lo, hi) && bytes_meet(b, be, lo, hi)) return true;
        lo = hi;
    }
    return false;
}

static bool single_ok(const struct naive *v, uint32_t r) {
    const struct place_memory *m = &v->p->memory;
    const struct place_request *q = &v->p->request[r];
    const uint64_t a = v->address[r], end = tail_end(v, r);
    bool ok = false;
    for (uint32_t i = 0; i < m->n_ranges; i++)
        ok |= a >= m->range_base[i] && end <= m->range_end[i];
    if (v->p->request[v->root[r]].flags & PLACE_FIXED) ok = true;
    if (q->align > 1 && a % q->align != 0) ok = false;
    if (q->memory_class == PLACE_STANDARD && end > m->interleaved_base) ok = false;
    if (q->memory_class == PLACE_INTERLEAVED && a < m->interleaved_base) ok = false;
    if (q->flags & PLACE_NO_HOST_WINDOW && m->window_bytes != 0 &&
        bytes_meet(a, end, m->window_base, m->window_base + m->window_bytes))
        ok = false;
    if (q->flags & PLACE_EXECUTABLE && end + m->fetch_guard_bytes > m->interleaved_base) ok = false;
    return ok;
}

static bool storage_executable(const struct naive *v, uint32_t root) {
    for (uint32_t r = 0; r < v->n; r++)
        if (v->root[r] == root && v->p->request[r].flags & PLACE_EXECUTABLE) return true;
    return false;
}

static bool storages_live_together(const struct naive *v, uint32_t x, uint32_t y) {
    uint32_t fx = UINT32_MAX, lx = 0, fy = UINT32_MAX, ly = 0;
    for (uint32_t r = 0; r < v->n; r++) {
        const struct place_request *q = &v->p->request[r];
        if (v->root[r] == x) fx = MIN(fx, q->first_step), lx = MAX(lx, q->last_step);
        if (v->root[r] == y) fy = MIN(fy, q->first_step), ly = MAX(ly, q->last_step);
    }
    return fx <= ly && fy <= lx;
}

static bool two_ok(const struct naive *v, uint32_t r, uint32_t s) {
    const uint32_t x = v->root[r], y = v->root[s];
    if (x == y || !storages_live_together(v, x, y)) return true;
    const bool shared_r = v->p->request[r].flags & PLACE_TAIL_SHARED;
    const bool shared_s = v->p->request[s].flags & PLACE_TAIL_SHARED;
    if (bytes_meet(v->address[r], shared_r ? payload_end(v, r) : tail_end(v, r), v->address[s],
                   shared_s ? payload_end(v, s) : tail_end(v, s)))
        return false;
    const bool ex = storage_executable(v, x), ey = storage_executable(v, y);
    if (ex == ey || v->p->request[ex ? y : x].flags & PLACE_NEAR_CODE) return true;
    const uint32_t guard = v->p->memory.fetch_guard_bytes;
    return !elements_common(&v->p->memory, v->address[r], tail_end(v, r) + (ex ? guard : 0),
                            v->address[s], tail_end(v, s) + (ey ? guard : 0));
}

static bool pairs_ok(const struct naive *v) {
    for (uint32_t i = 0; i < v->p->n_pairs; i++) {
        const uint32_t a = v->p->pair_a[i], b = v->p->pair_b[i];
        if (v->address[a] == PLACE_NO_ADDRESS || v->address[b] == PLACE_NO_ADDRESS) continue;
        if (elements_common(&v->p->memory, v->address[a], tail_end(v, a), v->address[b],
                            tail_end(v, b)))
            return false;
    }
    return true;
}

static bool placed_ok(const struct naive *v, uint32_t root) {
    for (uint32_t r = 0; r < v->n; r++) {
        if (v->root[r] != root) continue;
        if (!single_ok(v, r)) return false;
        for (uint32_t s = 0; s < v->n; s++)
            if (v->address[s] != PLACE_NO_ADDRESS && !two_ok(v, r, s)) return false;
    }
    return pairs_ok(v);
}

static void set_root(struct naive *v, uint32_t root, uint32_t address) {
    for (uint32_t r = 0; r < v->n; r++) {
        if (v->root[r] != root) continue;
        uint32_t offset = 0;
        for (uint32_t k = r; k != root; k = v->p->request[k].alias)
            offset += v->p->request[k].displacement;
        v->address[r] = address == PLACE_NO_ADDRESS ? address : address + offset;
    }
}

static bool naive_search(struct naive *v, uint32_t depth) {
    if (depth == v->n_roots) return true;
    const uint32_t root = v->roots[depth];
    const struct place_request *q = &v->p->request[root];
    const bool fixed = q->flags & PLACE_FIXED;
    const uint32_t lo = fixed ? q->address : v->p->memory.base;
    const uint32_t hi = fixed ? q->address : v->p->memory.end;
    for (uint32_t a = lo; a <= hi; a++) {
        v->n_nodes++;
        set_root(v, root, a);
        if (placed_ok(v, root) && naive_search(v, depth + 1)) return true;
    }
    set_root(v, root, PLACE_NO_ADDRESS);
    return false;
}

static void naive_init(struct naive *v, const struct place_problem *p) {
    *v = (struct naive){.p = p, .n = p->n_requests};
    v->address = g_new(uint32_t, v->n);
    v->root = g_new(uint32_t, v->n);
    for (uint32_t r = 0; r < v->n; r++) {
        v->address[r] = PLACE_NO_ADDRESS;
        uint32_t root = r;
        while (p->request[root].flags & PLACE_ALIAS) root = p->request[root].alias;
        v->root[r] = root;
        if (root == r) v->roots[v->n_roots++] = r;
    }
}

static void naive_free(struct naive *v) {
    g_free(v->address);
    g_free(v->root);
}

/* --- Tests. --- */

static uint64_t only_seed;

static void check_against_exhaustive(uint64_t seed, uint32_t *count) {
    struct place_problem *p = random_problem(seed, 2 + (uint32_t)(seed % 5), 1);
    struct place_result *r = place_solve(p, NULL, NULL);
    if (r == NULL) {
        count[3]++;
        place_problem_free(p);
        return;
    }
    struct naive v;
    naive_init(&v, p);
    const bool feasible = naive_search(&v, 0);
    if (feasible != (r->status == PLACE_SOLVED) || r->status == PLACE_UNDECIDED)
        g_error("seed %" G_GUINT64_FORMAT ": exhaustive says %d, solver %d (proof %d)", seed,
                feasible, r->status, r->n_proofs ? r->proof[0].kind : -1);
    if (feasible && !place_map_check(p, v.address, NULL))
        g_error("seed %" G_GUINT64_FORMAT ": the checker refuses an exhaustive map", seed);
    if (r->status == PLACE_INFEASIBLE) g_assert_cmpuint(r->proof[0].kind, !=, PLACE_PROOF_NONE);
    count[r->status]++;
    naive_free(&v);
    place_result_free(r);
    place_problem_free(p);
}

static void test_exhaustive(void) {
    uint32_t count[4] = {0};
    if (only_seed != 0) {
        check_against_exhaustive(only_seed, count);
        return;
    }
    uint64_t seed = 1;
    for (; count[PLACE_SOLVED] + count[PLACE_INFEASIBLE] < 2000; seed++)
        check_against_exhaustive(seed, count);
    g_test_message("2000 problems: %u solved, %u infeasible; %u contradictory ones besides",
                   count[PLACE_SOLVED], count[PLACE_INFEASIBLE], count[3]);
    g_assert_cmpuint(count[PLACE_SOLVED], >, 300);
    g_assert_cmpuint(count[PLACE_INFEASIBLE], >, 200);
}

/* Any single address moved by a little: the checker and the literal predicate agree. */
static void test_checker(void) {
    uint32_t n_bad = 0, n_good = 0;
    for (uint64_t seed = 1; seed < 200; seed++) {
        struct place_problem *p = random_problem(seed, 2 + (uint32_t)(seed % 6), 1);
        struct naive v;
        naive_init(&v, p);
        struct random_source random = {seed, 5000};
        if (place_problem_check(p, NULL) && naive_search(&v, 0)) {
            for (uint32_t k = 0; k < 20; k++) {
                const uint32_t root = v.roots[random_below(&random, v.n_roots)];
                const uint32_t old = v.address[root];
                set_root(&v, root, p->memory.base + random_below(&random, 48));
                bool ok = true;
                for (uint32_t i = 0; i < v.n_roots; i++) ok = ok && placed_ok(&v, v.roots[i]);
                for (uint32_t r = 0; r < v.n; r++)
                    if (p->request[r].flags & PLACE_FIXED)
                        ok = ok && v.address[r] == p->request[r].address;
                g_assert_cmpint(ok, ==, place_map_check(p, v.address, NULL));
                n_good += ok;
                n_bad += !ok;
                set_root(&v, root, old);
            }
        }
        naive_free(&v);
        place_problem_free(p);
    }
    g_test_message("%u good and %u bad maps", n_good, n_bad);
    g_assert_cmpuint(n_good, >, 100);
    g_assert_cmpuint(n_bad, >, 200);
}

/* Larger problems: place_solve holds every map to the checker itself; here again, by value. */
static void test_large(void) {
    uint32_t count[3] = {0};
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct place_problem *p = random_problem(seed, 10 + (uint32_t)(seed % 90), 2048);
        const struct place_options options = {.max_steps = 20000};
        struct place_result *r = place_solve(p, &options, NULL);
        if (r != NULL) {
            g_assert_true(place_map_check(p, r->address, NULL));
            count[r->status]++;
        }
        place_result_free(r);
        place_problem_free(p);
    }
    g_test_message("%u solved, %u undecided, %u infeasible", count[0], count[1], count[2]);
    g_assert_cmpuint(count[PLACE_SOLVED], >, 40);
}

/* A model-like tile: one storage grows by a little; nothing moves that need not. */
static void test_repair(void) {
    uint32_t n_moved = 0, n_kept = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct place_problem *p = random_problem(seed, 40, 2048);
        struct place_result *r = place_solve(p, &(struct place_options){.max_steps = 20000}, NULL);
        if (r == NULL || r->status != PLACE_SOLVED) {
            place_result_free(r);
            place_problem_free(p);
            continue;
        }
        const struct place_options keep = {.max_steps = 20000, .previous = r->address};
        struct place_result *same = place_solve(p, &keep, NULL);
        g_assert_cmpint(same->status, ==, PLACE_SOLVED);
        g_assert_cmpuint(same->n_moved, ==, 0);
        uint32_t root = (uint32_t)(seed % p->n_requests);
        while (p->request[root].flags & PLACE_ALIAS) root = p->request[root].alias;
        p->request[root].bytes += 64;
        p->request[root].stride = 0;
        struct place_result *grown = place_solve(p, &keep, NULL);
        struct place_result *afresh =
            place_solve(p, &(struct place_options){.max_steps = 20000}, NULL);
        if (afresh != NULL && afresh->status == PLACE_SOLVED) {
            g_assert_cmpint(grown->status, ==, PLACE_SOLVED);
            g_assert_true(place_map_check(p, grown->address, NULL));
            n_moved += grown->n_moved;
            n_kept += p->n_requests - grown->n_moved;
        }
        place_result_free(afresh);
        place_result_free(grown);
        place_result_free(same);
        place_result_free(r);
        place_problem_free(p);
    }
    g_test_message("%u addresses moved, %u kept", n_moved, n_kept);
    g_assert_cmpuint(n_kept, >, 20 * n_moved);
}

/* One thread and four give the same bytes; identical tiles are solved once. */
static void test_threads(void) {
    const struct place_memory m = place_memory_c600(true);
    struct place_builder *b = place_builder_new(64, &m);
    const uint32_t name = place_builder_name(b, "x");
    for (uint32_t t = 0; t < 64; t++) {
        struct random_source r = {t % 20, 0};
        for (uint32_t i = 0; i < 60; i++) {
            struct place_request q = random_request(&r, 1024, 30);
            q.name = name;
            place_builder_add(b, t, &q);
        }
    }
    struct place_problem *p = place_builder_finish(b, NULL);
    struct place_result *r[2];
    for (uint32_t i = 0; i < 2; i++) {
        par_set_threads(i == 0 ? 1 : 4);
        r[i] = place_solve(p, &(struct place_options){.max_steps = 20000}, NULL);
        g_assert_nonnull(r[i]);
        g_assert_cmpuint(r[i]->n_distinct, ==, 20);
    }
    par_set_threads(0);
    g_assert_cmpmem(r[0]->address, p->n_requests * 4, r[1]->address, p->n_requests * 4);
    g_assert_cmpmem(r[0]->tile_status, 64, r[1]->tile_status, 64);
    g_assert_cmpuint(r[0]->n_steps, ==, r[1]->n_steps);
    place_result_free(r[0]);
    place_result_free(r[1]);
    place_problem_free(p);
}

/* The exact search alone, without orders and bounds, against the whole solver. */
static void test_search_alone(void) {
    uint32_t n = 0;
    for (uint64_t seed = 1; n < 600; seed++) {
        struct place_problem *p = random_problem(seed, 3 + (uint32_t)(seed % 6), 1);
        struct place_result *r = place_solve(p, NULL, NULL);
        struct place_result *s = place_solve(p, &(struct place_options){.search_only = true}, NULL);
        if (r != NULL) {
            g_assert_cmpint(r->status, ==, s->status);
            n++;
        }
        place_result_free(r);
        place_result_free(s);
        place_problem_free(p);
    }
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    if (argc > 1) only_seed = g_ascii_strtoull(argv[1], NULL, 10);
    g_test_add_func("/place/exhaustive", test_exhaustive);
    g_test_add_func("/place/checker", test_checker);
    g_test_add_func("/place/large", test_large);
    g_test_add_func("/place/repair", test_repair);
    g_test_add_func("/place/threads", test_threads);
    g_test_add_func("/place/search_alone", test_search_alone);
    return g_test_run();
}
