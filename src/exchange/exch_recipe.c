/* Recipes: slots and widths of a schedule, replayed on a problem that differs only in addresses.
 * The replay commits every message to fresh time lines at its old slot, so every rule is checked
 * again; elements that are shared now, or a width that is no longer possible, refuse it. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

struct exch_recipe {
    uint64_t key;
    uint32_t n_transfers, n_messages;
    struct exch_message *messages;
    uint32_t *order; /* by slot */
    uint32_t base_switch[TARGET_N_TILES];
    bool relaxed;
    const char *priority;
    enum exch_width width;
};

static uint64_t mix(uint64_t h, const void *data, size_t n) {
    const uint8_t *b = data;
    for (size_t i = 0; i < n; i++) h = (h ^ b[i]) * UINT64_C(0x100000001b3);
    return h ^ h >> 31;
}

uint64_t exch_problem_key(const struct exch_problem *p) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    const size_t n = p->n_transfers;
    h = mix(h, &p->n_transfers, 4);
    h = mix(h, p->source_tile, 2 * n);
    h = mix(h, p->words, 4 * n);
    h = mix(h, p->first_recipient, 4 * (n + 1));
    h = mix(h, p->recipient_tile, 2 * (size_t)p->n_recipients);
    if (p->width != NULL) h = mix(h, p->width, n);
    if (p->source_stride != NULL) h = mix(h, p->source_stride, 4 * n);
    h = mix(h, &p->n_iterations, 4);
    if (p->first_dependency != NULL) {
        h = mix(h, p->first_dependency, 4 * (n + 1));
        h = mix(h, p->dependency, 4 * (size_t)p->first_dependency[n]);
    }
    return h;
}

struct exch_recipe *exch_recipe_new(const struct exch_problem *p, const struct exch_result *r) {
    struct exch_recipe *k = g_new0(struct exch_recipe, 1);
    k->key = exch_problem_key(p);
    k->n_transfers = p->n_transfers;
    k->n_messages = r->n_messages;
    k->messages = g_memdup2(r->messages, sizeof *r->messages * (size_t)r->n_messages);
    k->order = g_new(uint32_t, r->n_messages + 1);
    memcpy(k->base_switch, r->base_switch, sizeof k->base_switch);
    k->relaxed = r->relaxed;
    k->priority = r->priority;
    k->width = r->width;
    uint64_t *key = g_new(uint64_t, r->n_messages + 1);
    for (uint32_t i = 0; i < r->n_messages; i++) key[i] = (uint64_t)r->messages[i].slot << 32 | i;
    qsort(key, r->n_messages, sizeof *key, exch_key_compare);
    for (uint32_t i = 0; i < r->n_messages; i++) k->order[i] = (uint32_t)key[i];
    g_free(key);
    return k;
}

void exch_recipe_free(struct exch_recipe *k) {
    if (k == NULL) return;
    g_free(k->messages);
    g_free(k->order);
    g_free(k);
}

/* The messages of the recipe made anew at the problem's addresses; NULL if they come out otherwise.
 */
static struct exch_msgs *same_messages(const struct exch_problem *p, const struct exch_recipe *k) {
    uint8_t *paired = g_new0(uint8_t, p->n_transfers + 1);
    uint16_t *pieces = g_new0(uint16_t, p->n_transfers + 1);
    bool ok = true;
    for (uint32_t i = 0; i < k->n_messages; i++) {
        const uint32_t x = k->messages[i].transfer;
        paired[x] = k->messages[i].paired;
        if (pieces[x]++ == 0 && paired[x]) ok = ok && exch_pairable(p, x);
    }
    struct exch_msgs *m = ok ? exch_msgs_new(p, paired, pieces) : NULL;
    ok = ok && m->n == k->n_messages;
    for (uint32_t i = 0; ok && i < m->n; i++)
        ok = m->transfer[i] == k->messages[i].transfer &&
             m->offset[i] == k->messages[i].first_word &&
             m->items[i] * exch_item_bytes(m, i) == 4 * k->messages[i].words;
    g_free(paired);
    g_free(pieces);
    if (ok) return m;
    exch_msgs_free(m);
    return NULL;
}

static bool commit_all(struct exch_lines *l, const struct exch_msgs *m, const struct exch_recipe *k,
                       struct exch_sched *s) {
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t n = 0; n < m->n; n++) {
            const uint32_t i = k->order[n], slot = k->messages[i].slot;
            if ((m->moving[i] != 0) != (pass == 0)) continue;
            if (slot < m->s_min[i] || exch_lines_try(l, i, slot) != slot) return false;
            exch_lines_commit(l, i, slot);
            s->slot[i] = slot;
        }
        for (uint32_t t = 0; pass == 0 && t < TARGET_N_TILES; t++) {
            s->put[t] = k->base_switch[t];
            if (s->put[t] != UINT32_MAX && exch_lines_put(l, t, s->put[t]) != s->put[t])
                return false;
        }
    }
    return true;
}

struct exch_result *exch_replay(const struct exch_problem *p, const struct exch_recipe *k) {
    if (k->n_transfers != p->n_transfers || exch_problem_key(p) != k->key) return NULL;
    struct exch_msgs *m = same_messages(p, k);
    if (m == NULL) return NULL;
    struct arena *a = arena_new();
    struct exch_sched *s = exch_sched_new(a, m, k->relaxed);
    struct exch_lines *l = exch_lines_new(m, k->relaxed);
    struct exch_result *r = NULL;
    if (commit_all(l, m, k, s)) r = exch_result_new(m, s, NULL);
    if (r != NULL) {
        exch_bounds(p, &r->bounds);
        r->bounds.endpoint = exch_endpoint_bound(m);
        r->priority = k->priority;
        r->width = k->width;
        r->replayed = true;
    }
    exch_lines_free(l);
    arena_free(a);
    exch_msgs_free(m);
    return r;
}
