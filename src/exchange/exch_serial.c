/* Serial generation: takes messages in a given order and puts each into the first slot that admits
 * it, holes included. The order is first made admissible: moving sources before fixed ones,
 * predecessors before their dependants. */
#include "exchange/exch_int.h"

#include <string.h>

struct exch_sched *exch_sched_new(struct arena *a, const struct exch_msgs *m, bool relaxed) {
    struct exch_sched *s = arena_new_array(a, struct exch_sched, 1);
    s->slot = arena_new_array(a, uint32_t, m->n + 1);
    s->put = arena_new_array(a, uint32_t, TARGET_N_TILES);
    s->relaxed = relaxed;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) s->put[t] = UINT32_MAX;
    return s;
}

struct admit {
    const struct exch_msgs *m;
    uint8_t *done; /* by transfer: 0 no, 1 open, 2 placed */
    uint32_t *out, n;
};

static void admit_transfer(struct admit *k, uint32_t x) {
    for (uint32_t i = k->m->first_of[x]; i < k->m->first_of[x + 1]; i++) k->out[k->n++] = i;
    k->done[x] = 2;
}

/* Predecessors of x first; an explicit stack, chains may be long. */
static void admit(struct admit *k, uint32_t root, GArray *stack) {
    const struct exch_problem *p = k->m->p;
    g_array_set_size(stack, 0);
    g_array_append_val(stack, root);
    while (stack->len > 0) {
        const uint32_t x = g_array_index(stack, uint32_t, stack->len - 1);
        if (k->done[x] == 2) {
            g_array_set_size(stack, stack->len - 1);
            continue;
        }
        const bool open = k->done[x] == 1;
        k->done[x] = 1;
        if (!open)
            for (uint32_t d = p->first_dependency[x]; d < p->first_dependency[x + 1]; d++)
                if (k->done[p->dependency[d]] == 0) g_array_append_val(stack, p->dependency[d]);
        if (g_array_index(stack, uint32_t, stack->len - 1) != x) continue;
        g_array_set_size(stack, stack->len - 1);
        admit_transfer(k, x);
    }
}

/* `order` made admissible, into `out`. */
static void make_admissible(const struct exch_msgs *m, const uint32_t *order, uint32_t *out) {
    if (m->p->first_dependency == NULL) {
        uint32_t n = 0;
        for (uint32_t k = 0; k < m->n; k++)
            if (m->moving[order[k]]) out[n++] = order[k];
        for (uint32_t k = 0; k < m->n; k++)
            if (!m->moving[order[k]]) out[n++] = order[k];
        return;
    }
    struct admit k = {m, g_new0(uint8_t, m->p->n_transfers + 1), out, 0};
    GArray *stack = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t i = 0; i < m->n; i++)
            if ((m->moving[order[i]] != 0) == (pass == 0)) admit(&k, m->transfer[order[i]], stack);
    BUG_ON(k.n != m->n);
    g_array_free(stack, TRUE);
    g_free(k.done);
}

static uint32_t completion(const struct exch_msgs *m, uint32_t i, uint32_t s) {
    return exch_message_end(m, i, s);
}

/* Lower bound of the slot from dependencies: both the send and every payload wait. */
static uint32_t release(const struct exch_msgs *m, const uint32_t *complete, uint32_t i) {
    const struct exch_problem *p = m->p;
    const uint32_t x = m->transfer[i];
    uint32_t when = 0;
    for (uint32_t d = p->first_dependency[x]; d < p->first_dependency[x + 1]; d++)
        when = MAX(when, complete[p->dependency[d]]);
    if (when == 0) return 0;
    int32_t early = 0; /* how far the earliest payload label may lie before the send slot */
    for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
        early = MIN(early, m->rec_x[j] + (int32_t)exch_lag(exch_route(), m->rec_tile[j]));
    return when + (uint32_t)-early;
}

void exch_sched_serial(const struct exch_msgs *m, const uint32_t *order, bool relaxed,
                       struct exch_sched *ret) {
    struct exch_lines *l = exch_lines_new(m, relaxed);
    uint32_t *list = g_new(uint32_t, m->n + 1);
    make_admissible(m, order, list);
    uint32_t *complete =
        m->p->first_dependency != NULL ? g_new0(uint32_t, m->p->n_transfers + 1) : NULL;
    uint32_t *wait = g_new0(uint32_t, TARGET_N_TILES), *end = g_new0(uint32_t, TARGET_N_TILES);
    uint32_t *fixed = g_new0(uint32_t, TARGET_N_TILES);
    for (uint32_t i = 0; i < m->n; i++) (m->moving[i] ? wait : fixed)[m->src[i]]++;
    ret->horizon = 0;
    memset(ret->put, 0xff, TARGET_N_TILES * sizeof *ret->put);
    for (uint32_t k = 0; k < m->n; k++) {
        const uint32_t i = list[k], t = m->src[i];
        uint32_t from = complete != NULL ? release(m, complete, i) : 0;
        if (ret->put[t] != UINT32_MAX) from = MAX(from, ret->put[t] + TARGET_EXCH_PUT_SLOTS);
        const uint32_t s = exch_lines_find(l, i, from);
        exch_lines_commit(l, i, s);
        ret->slot[i] = s;
        const uint32_t last = completion(m, i, s);
        ret->horizon = MAX(ret->horizon, last);
        if (complete != NULL) complete[m->transfer[i]] = MAX(complete[m->transfer[i]], last);
        end[t] = MAX(end[t], s + m->items[i]);
        if (m->moving[i] && --wait[t] == 0 && fixed[t] > 0)
            ret->put[t] = exch_lines_put(l, t, end[t]);
    }
    ret->evaluations += exch_lines_work(l);
    g_free(list);
    g_free(complete);
    g_free(wait);
    g_free(end);
    g_free(fixed);
    exch_lines_free(l);
}
