/* Preparation: transfers to messages for one choice of widths.
 *
 * A message is a part of a transfer that is sent in one stream: the whole transfer as a rule; cut
 * where it is longer than 4,148 items, where it would never fit (exchange 12.3: 28 words to itself
 * become two packets of 14), or where the caller asks for pieces. Moving sources use the base
 * register where every moving source of the tile has one stride, else patches. */
#include "exchange/exch_int.h"

struct build {
    struct exch_msgs *m;
    const struct exch_problem *p;
    const uint8_t *paired;
    const uint16_t *pieces;
};

static bool any_part_never_fits(const struct exch_problem *p, uint32_t x, bool paired,
                                uint32_t items, uint32_t parts) {
    const uint32_t small = items / parts, large = small + (items % parts != 0);
    return exch_never_fits(p, x, paired, large) || exch_never_fits(p, x, paired, small);
}

static uint32_t n_parts(const struct build *b, uint32_t x, uint32_t items, bool paired) {
    uint32_t parts = b->pieces != NULL && b->pieces[x] > 1 ? b->pieces[x] : 1;
    const uint32_t least = ceil_div_u32(items, TARGET_EXCH_MAX_ITEMS);
    if (parts < least) parts = least;
    if (parts > items) parts = items;
    while (parts > 1 && parts > least && any_part_never_fits(b->p, x, paired, items, parts))
        parts--;
    while (parts < items && any_part_never_fits(b->p, x, paired, items, parts)) parts++;
    return parts;
}

static void add_recipients(struct build *b, uint32_t i, uint32_t x) {
    struct exch_msgs *m = b->m;
    const struct exch_route *route = exch_route();
    const uint32_t src = m->src[i], bytes = m->items[i] * exch_item_bytes(m, i);
    int32_t least = INT32_MAX;
    uint32_t dirs = 0, n = 0;
    bool own_pair = false;
    for (uint32_t r = b->p->first_recipient[x]; r < b->p->first_recipient[x + 1]; r++, n++) {
        const uint32_t d = b->p->recipient_tile[r], j = m->rec0[i] + n;
        const int32_t t = route->ttm[src][d], other = route->ttm[src][d ^ 1];
        m->rec_tile[j] = (uint16_t)d;
        m->rec_x[j] = (int16_t)(m->paired[i] ? MAX(t, other) : t + 1);
        m->rec_flag[j] = route->dir[src][d] | (t < other ? REC_EARLY : 0);
        m->rec_elem[j] = exch_element_mask(b->p->recipient_address[r] + 4 * m->offset[i], bytes);
        least = MIN(least, m->rec_x[j]);
        dirs = route->dir[src][d];
        own_pair = own_pair || d / 2 == src / 2;
    }
    m->rec0[i + 1] = m->rec0[i] + n;
    m->s_min[i] = (uint32_t)MAX(0, 1 - least); /* every source label at least 1 */
    const bool single = m->paired[i] ? n == 2 && !own_pair : n == 1;
    m->sctl[i] = (uint8_t)((single ? dirs : 3) | (m->paired[i] ? 4 : 0));
}

static void add_transfer(struct build *b, uint32_t x) {
    struct exch_msgs *m = b->m;
    const struct exch_problem *p = b->p;
    const bool paired = b->paired[x];
    const uint32_t items = paired ? p->words[x] / 2 : p->words[x];
    const uint32_t parts = n_parts(b, x, items, paired);
    m->first_of[x] = m->n;
    uint32_t done = 0;
    for (uint32_t k = 0; k < parts; k++) {
        const uint32_t i = m->n++, n = items / parts + (k < items % parts);
        m->transfer[i] = x;
        m->offset[i] = done * (paired ? 2 : 1);
        m->src[i] = p->source_tile[x];
        m->items[i] = (uint16_t)n;
        m->paired[i] = paired;
        m->src_elem[i] = exch_element_mask(exch_src_address(m, i), n * (paired ? 8u : 4u));
        if (p->source_stride != NULL && p->source_stride[x] != 0) {
            m->moving[i] = 1;
            for (uint32_t it = 1; it < p->n_iterations; it++)
                m->src_elem[i] |=
                    exch_element_mask(exch_src_address(m, i) + it * (uint32_t)p->source_stride[x],
                                      n * (paired ? 8u : 4u));
        }
        add_recipients(b, i, x);
        done += n;
    }
}

static void count(struct build *b, uint32_t *ret_n, uint32_t *ret_rec) {
    uint32_t n = 0, rec = 0;
    for (uint32_t x = 0; x < b->p->n_transfers; x++) {
        const uint32_t items = b->paired[x] ? b->p->words[x] / 2 : b->p->words[x];
        const uint32_t parts = n_parts(b, x, items, b->paired[x]);
        n += parts;
        rec += parts * (b->p->first_recipient[x + 1] - b->p->first_recipient[x]);
    }
    *ret_n = n;
    *ret_rec = rec;
}

/* Which tiles move their base: all moving sources of one stride. */
static void choose_bases(struct exch_msgs *m) {
    for (uint32_t i = 0; i < m->n; i++) {
        if (!m->moving[i]) continue;
        const int32_t stride = m->p->source_stride[m->transfer[i]];
        uint8_t *base = &m->base[m->src[i]];
        if (*base == EXCH_BASE_ZERO) {
            *base = EXCH_BASE_MOVING;
            m->stride[m->src[i]] = stride;
        } else if (m->stride[m->src[i]] != stride) {
            *base = EXCH_BASE_PATCHED;
        }
    }
    /* Moving sends go first, before the switch of the base; one that must wait for others can't. */
    const uint32_t *dep = m->p->first_dependency;
    for (uint32_t i = 0; i < m->n && dep != NULL; i++)
        if (m->moving[i] && dep[m->transfer[i] + 1] > dep[m->transfer[i]])
            m->base[m->src[i]] = EXCH_BASE_PATCHED;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->base[m->src[i]] == EXCH_BASE_PATCHED) m->moving[i] = 0;
}

/* Keeps of every mask the elements that the tile uses in both ways. */
static void find_shared(struct exch_msgs *m) {
    uint32_t *out = g_new0(uint32_t, TARGET_N_TILES), *in = g_new0(uint32_t, TARGET_N_TILES);
    for (uint32_t i = 0; i < m->n; i++) {
        out[m->src[i]] |= m->src_elem[i];
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++) in[m->rec_tile[j]] |= m->rec_elem[j];
    }
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) m->shared[t] = out[t] & in[t];
    for (uint32_t i = 0; i < m->n; i++) {
        m->src_elem[i] &= m->shared[m->src[i]];
        for (uint32_t j = m->rec0[i]; j < m->rec0[i + 1]; j++)
            m->rec_elem[j] &= m->shared[m->rec_tile[j]];
    }
    g_free(out);
    g_free(in);
}

struct exch_msgs *exch_msgs_new(const struct exch_problem *p, const uint8_t *paired,
                                const uint16_t *pieces) {
    struct arena *a = arena_new();
    struct exch_msgs *m = arena_new_array(a, struct exch_msgs, 1);
    struct build b = {m, p, paired, pieces};
    uint32_t n, n_rec;
    count(&b, &n, &n_rec);
    *m = (struct exch_msgs){
        .arena = a,
        .p = p,
        .n_rec = n_rec,
        .transfer = arena_new_array(a, uint32_t, n + 1),
        .offset = arena_new_array(a, uint32_t, n + 1),
        .src = arena_new_array(a, uint16_t, n + 1),
        .items = arena_new_array(a, uint16_t, n + 1),
        .paired = arena_new_array(a, uint8_t, n + 1),
        .sctl = arena_new_array(a, uint8_t, n + 1),
        .moving = arena_new_array(a, uint8_t, n + 1),
        .s_min = arena_new_array(a, uint32_t, n + 1),
        .src_elem = arena_new_array(a, uint32_t, n + 1),
        .rec0 = arena_new_array(a, uint32_t, n + 1),
        .rec_tile = arena_new_array(a, uint16_t, n_rec + 1),
        .rec_x = arena_new_array(a, int16_t, n_rec + 1),
        .rec_flag = arena_new_array(a, uint8_t, n_rec + 1),
        .rec_elem = arena_new_array(a, uint32_t, n_rec + 1),
        .shared = arena_new_array(a, uint32_t, TARGET_N_TILES),
        .first_of = arena_new_array(a, uint32_t, p->n_transfers + 1),
        .base = arena_new_array(a, uint8_t, TARGET_N_TILES),
        .stride = arena_new_array(a, int32_t, TARGET_N_TILES),
    };
    for (uint32_t x = 0; x < p->n_transfers; x++) add_transfer(&b, x);
    m->first_of[p->n_transfers] = m->n;
    choose_bases(m);
    find_shared(m);
    return m;
}

void exch_msgs_free(struct exch_msgs *m) {
    if (m != NULL) arena_free(m->arena);
}
