/* Rounds: an edge colouring of the graph of senders and receivers. Messages of one round share no
 * endpoint.
 *
 * Where recipients always come in the same sets, a set is one node and the graph is bipartite: then
 * the number of rounds is the largest number of messages of a node (Konig), found by flipping
 * alternating paths. Otherwise each message takes the first round that is free at all its
 * endpoints. Longest messages first, so that a round holds messages of like length. */
#include "exchange/exch_int.h"

#include <stdlib.h>
#include <string.h>

enum { SENDERS = 0, RECEIVERS = TARGET_N_TILES, NODES = 2 * TARGET_N_TILES };

struct colouring {
    const struct exch_msgs *m;
    uint32_t n_colours;
    int32_t *at;      /* [NODES][n_colours] message or -1 */
    uint32_t *colour; /* [messages] */
    uint32_t *node;   /* receiver node of a message */
};

static int32_t *cell(const struct colouring *k, uint32_t node, uint32_t colour) {
    return &k->at[(size_t)node * k->n_colours + colour];
}

static uint32_t first_free(const struct colouring *k, uint32_t node) {
    uint32_t c = 0;
    while (*cell(k, node, c) >= 0) c++;
    return c;
}

static void put(struct colouring *k, uint32_t i, uint32_t colour) {
    k->colour[i] = colour;
    *cell(k, SENDERS + k->m->src[i], colour) = (int32_t)i;
    *cell(k, RECEIVERS + k->node[i], colour) = (int32_t)i;
}

/* Swaps colours a and b along the path that leaves `node` with colour b, so that b becomes free
 * there. */
static void flip(struct colouring *k, uint32_t node, uint32_t a, uint32_t b) {
    GArray *path = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t at = node, want = b;
    for (int32_t i; (i = *cell(k, at, want)) >= 0; want = want == a ? b : a) {
        g_array_append_val(path, i);
        at = at >= RECEIVERS ? SENDERS + k->m->src[i] : RECEIVERS + k->node[i];
    }
    for (uint32_t n = 0; n < path->len; n++) {
        const uint32_t i = g_array_index(path, uint32_t, n), c = k->colour[i];
        *cell(k, SENDERS + k->m->src[i], c) = -1;
        *cell(k, RECEIVERS + k->node[i], c) = -1;
    }
    for (uint32_t n = 0; n < path->len; n++) {
        const uint32_t i = g_array_index(path, uint32_t, n);
        put(k, i, k->colour[i] == a ? b : a);
    }
    g_array_free(path, TRUE);
}

static void colour_exact(struct colouring *k, uint32_t i) {
    const uint32_t s = SENDERS + k->m->src[i], r = RECEIVERS + k->node[i];
    const uint32_t a = first_free(k, s), b = first_free(k, r);
    /* a is free at the sender: free it at the receiver too */
    if (a != b && *cell(k, r, a) >= 0) flip(k, r, b, a);
    put(k, i, a);
}

static uint32_t *longest_first(const struct exch_msgs *m) {
    uint64_t *key = g_new(uint64_t, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++) key[i] = (uint64_t)(UINT32_MAX - m->items[i]) << 32 | i;
    qsort(key, m->n, sizeof *key, exch_key_compare);
    uint32_t *order = g_new(uint32_t, m->n + 1);
    for (uint32_t i = 0; i < m->n; i++) order[i] = (uint32_t)key[i];
    g_free(key);
    return order;
}

/* True if each tile always receives in the same set; node = the first tile of the set. */
static bool sets_are_nodes(const struct exch_msgs *m, uint32_t *node) {
    uint32_t set[TARGET_N_TILES];
    memset(set, 0xff, sizeof set);
    uint32_t size[TARGET_N_TILES] = {0};
    for (uint32_t i = 0; i < m->n; i++) {
        uint32_t first = UINT32_MAX;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) first = MIN(first, m->rec_tile[j]);
        node[i] = first;
        const uint32_t n = m->rec0[i + 1] - m->rec0[i];
        if (size[first] != 0 && size[first] != n) return false;
        size[first] = n;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) {
            uint32_t *in = &set[m->rec_tile[j]];
            if (*in != UINT32_MAX && *in != first) return false;
            *in = first;
        }
    }
    return true;
}

static uint32_t largest_degree(const struct exch_msgs *m) {
    uint32_t degree[NODES] = {0}, most = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        degree[SENDERS + m->src[i]]++;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) degree[RECEIVERS + m->rec_tile[j]]++;
    }
    for (uint32_t n = 0; n < NODES; n++) most = MAX(most, degree[n]);
    return most;
}

/* First round free at the sender and at every recipient. */
static void colour_first_fit(const struct exch_msgs *m, const uint32_t *order, uint32_t most,
                             uint32_t *round) {
    const uint32_t words = (4 * most) / 64 + 2; /* more rounds share the last one */
    uint64_t *used = g_new0(uint64_t, (size_t)NODES * words);
    for (uint32_t n = 0; n < m->n; n++) {
        const uint32_t i = order[n];
        uint32_t w = 0;
        uint64_t taken;
        do {
            taken = used[(size_t)(SENDERS + m->src[i]) * words + w];
            for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
                taken |= used[(size_t)(RECEIVERS + m->rec_tile[j]) * words + w];
        } while (taken == UINT64_MAX && ++w + 1 < words);
        const uint32_t bit = taken == UINT64_MAX ? 63 : (uint32_t)__builtin_ctzll(~taken);
        round[i] = w * 64 + bit;
        used[(size_t)(SENDERS + m->src[i]) * words + w] |= UINT64_C(1) << bit;
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            used[(size_t)(RECEIVERS + m->rec_tile[j]) * words + w] |= UINT64_C(1) << bit;
    }
    g_free(used);
}

void exch_rounds(const struct exch_msgs *m, uint32_t *ret_round) {
    uint32_t *order = longest_first(m), *node = g_new(uint32_t, m->n + 1);
    const uint32_t most = largest_degree(m);
    if (sets_are_nodes(m, node)) {
        struct colouring k = {m, most, g_new(int32_t, (size_t)NODES * most), ret_round, node};
        memset(k.at, 0xff, (size_t)NODES * most * sizeof *k.at);
        for (uint32_t n = 0; n < m->n; n++) colour_exact(&k, order[n]);
        g_free(k.at);
    } else {
        colour_first_fit(m, order, most, ret_round);
    }
    g_free(order);
    g_free(node);
}
