/* Synthetic problems of exchange 16: same draws in the same order as the definitions, so that every
 * implementation makes the same bytes. Check values: exch_problem_crc and tests. */
#include "exchange/exch_int.h"

#include <string.h>

struct gen {
    uint32_t x;         /* generator state */
    GArray *transfers;  /* struct item */
    GArray *recipients; /* uint16_t */
};
struct item {
    uint16_t source;
    uint32_t words, first;
};

static uint32_t draw(struct gen *g, uint32_t m) {
    g->x = g->x * 1664525u + 1013904223u;
    return (g->x >> 8) % m;
}

static void swap(uint32_t *a, uint32_t i, uint32_t j) {
    const uint32_t t = a[i];
    a[i] = a[j];
    a[j] = t;
}

static void shuffle(struct gen *g, uint32_t *a, uint32_t n) {
    for (uint32_t i = n - 1; i >= 1; i--) swap(a, i, draw(g, i + 1));
}

static uint32_t *perm(struct gen *g, uint32_t n) {
    uint32_t *a = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++) a[i] = i;
    shuffle(g, a, n);
    return a;
}

static void begin(struct gen *g, uint32_t s, uint32_t words) {
    const struct item t = {(uint16_t)s, words, g->recipients->len};
    g_array_append_val(g->transfers, t);
}
static void to(struct gen *g, uint32_t d) {
    const uint16_t tile = (uint16_t)d;
    g_array_append_val(g->recipients, tile);
}
static void add(struct gen *g, uint32_t s, uint32_t d, uint32_t words) {
    begin(g, s, words);
    to(g, d);
}

/* --- Unicast kinds (16.2) --- */

static void balanced(struct gen *g, uint32_t rounds, uint32_t extra, uint32_t q, bool mixed) {
    const uint32_t n = TARGET_N_TILES;
    for (uint32_t r = 0; r < rounds; r++) {
        uint32_t *a = perm(g, n);
        for (uint32_t i = 0; i < n; i++)
            if (a[i] == i) swap(a, i, (i + 1) % n);
        uint32_t words = 32;
        if (mixed && r % 8 == 6) words = 24;
        if (mixed && r % 8 == 7) words = 40;
        for (uint32_t i = 0; i < n; i++) add(g, i, a[i], words);
        g_free(a);
    }
    uint32_t *a = perm(g, n), *b = perm(g, n), c = 0;
    for (uint32_t e = 0; e < extra; e++) {
        const uint32_t d = a[e / q];
        if (b[c % n] == d) c++;
        add(g, b[c % n], d, 32);
        c++;
    }
    g_free(a);
    g_free(b);
}

static void syn_m3(struct gen *g) {
    for (uint32_t pass = 0; pass < 4; pass++) {
        uint32_t *a = perm(g, TARGET_N_TILES);
        for (uint32_t h = 0; h < 54; h++)
            for (uint32_t i = 0; i < 27; i++)
                for (uint32_t k = 1; k <= 26; k++)
                    add(g, a[27 * h + i], a[27 * h + (i + k) % 27], 64);
        g_free(a);
    }
    uint32_t *a = perm(g, TARGET_N_TILES);
    for (uint32_t k = 1; g->transfers->len < 155880; k++)
        for (uint32_t h = 0; h < 54; h++)
            for (uint32_t i = 0; i < 27 && g->transfers->len < 155880; i++)
                add(g, a[27 * h + i], a[27 * h + (i + k) % 27], 64);
    g_free(a);
}

static uint32_t *senders(struct gen *g, const uint32_t *p, uint32_t n) {
    uint32_t *s = g_new(uint32_t, 60000);
    for (uint32_t e = 0; e < 60000; e++) s[e] = p[e % n];
    shuffle(g, s, 60000);
    return s;
}

static void syn_a(struct gen *g) {
    uint32_t *p = perm(g, TARGET_N_TILES), *s = senders(g, p, 160);
    for (uint32_t i = 0; i < 160; i++)
        for (uint32_t j = 0; j < 375; j++) {
            uint32_t from = s[375 * i + j];
            if (from == p[i]) from = p[(i + 1 + j % 159) % 160];
            add(g, from, p[i], 2 + 2 * ((5 * j + i) % 6));
        }
    g_free(p);
    g_free(s);
}

static void syn_a_gather(struct gen *g) {
    uint32_t *p = perm(g, TARGET_N_TILES), *s = senders(g, p, 1440);
    for (uint32_t i = 0; i < 160; i++)
        for (uint32_t j = 0; j < 375; j++) {
            const uint32_t e = 375 * i + j;
            if (s[e] == p[i]) swap(s, e, (e + 1) % 60000);
            if (s[e] == p[i])
                s[e] = p[(e + 7) % 1440] != p[i] ? p[(e + 7) % 1440] : p[(e + 8) % 1440];
            add(g, s[e], p[i], 2 + 2 * ((5 * j + i) % 6));
        }
    g_free(p);
    g_free(s);
}

static void syn_a2w(struct gen *g) {
    uint32_t *p = perm(g, TARGET_N_TILES), *s = senders(g, p, 48);
    for (uint32_t i = 0; i < 48; i++)
        for (uint32_t j = 0; j < 1250; j++) {
            uint32_t from = s[1250 * i + j];
            if (from == p[i]) from = p[(i + 1 + j % 47) % 48];
            add(g, from, p[i], 1 + (5 * j + i) % 3);
        }
    g_free(p);
    g_free(s);
}

/* --- Multicast kinds (16.3) --- */

static void syn_m0(struct gen *g) {
    uint32_t *p = perm(g, 736), sl[807], rl[807], n = 0;
    for (uint32_t i = 0; i < 486; i++)
        for (uint32_t k = 0; k < (i < 321 ? 2u : 1u); k++) sl[n++] = i;
    memcpy(rl, sl, sizeof rl);
    shuffle(g, sl, 807);
    for (uint32_t i = 0; i < 806; i++)
        if (rl[i] == rl[i + 1] && sl[i] == sl[i + 1]) swap(sl, i, (i + 2) % 807);
    for (uint32_t i = 0; i < 807; i++) {
        begin(g, 2 * p[sl[i] / 2] + sl[i] % 2, 3072);
        to(g, 2 * p[243 + rl[i]]);
        to(g, 2 * p[243 + rl[i]] + 1);
    }
    g_free(p);
}

/* Tile j of the group of a message: type A holds 24 neighbours, type B every 60th tile. */
static uint32_t group_tile(bool a, uint32_t group, uint32_t j) {
    return a ? 24 * group + j : group + 60 * j;
}
static bool in_group(bool a, uint32_t group, uint32_t t) {
    return a ? t / 24 == group : t % 60 == group;
}

static void h2_activations(struct gen *g, const uint32_t *p) {
    uint32_t n_a = 0, n_b = 0, q = 0;
    for (uint32_t k = 0; k < 4842; k++) {
        const bool a = (k + 1) * 3308 / 4842 > k * 3308 / 4842;
        const uint32_t group = (a ? n_a : n_b) % 60;
        const bool loop = !a && (n_b + 1) * 276 / 1534 > n_b * 276 / 1534;
        uint32_t source;
        if (loop) {
            source = group + 60 * draw(g, 24);
        } else {
            do source = p[q++ % 1440];
            while (in_group(a, group, source));
        }
        begin(g, source, 324);
        for (uint32_t j = 0; j < 24; j++)
            if (group_tile(a, group, j) != source) to(g, group_tile(a, group, j));
        if (a) n_a++;
        else n_b++;
    }
}

static void syn_h2(struct gen *g) {
    uint32_t *p = perm(g, 1440);
    h2_activations(g, p);
    uint32_t *w = perm(g, 360), *s = perm(g, 1440);
    for (uint32_t i = 0; i < 360; i++)
        for (uint32_t k = 0; k < 2; k++) {
            begin(g, s[i] / 4 == w[i] ? s[1439 - i] : s[i], k == 0 ? 4148 : 2764);
            for (uint32_t j = 0; j < 4; j++) to(g, 4 * w[i] + j);
        }
    g_free(p);
    g_free(w);
    g_free(s);
}

/* Like the random phases of 11.3 in shape, over all tiles: unicast and multicast of 1..400 words.
 */
static void random_mix(struct gen *g) {
    for (uint32_t k = 0; k < 4000; k++) {
        const uint32_t source = draw(g, TARGET_N_TILES), pairs = draw(g, 3) == 0;
        begin(g, source, pairs ? 2 * (1 + draw(g, 200)) : 1 + draw(g, 400));
        const uint32_t start = g->recipients->len, n = 1 + draw(g, 8);
        for (uint32_t c = 0; c < n; c++) {
            const uint32_t t = draw(g, TARGET_N_TILES);
            bool used = t / 2 == source / 2;
            for (uint32_t r = start; r < g->recipients->len; r++)
                used = used || g_array_index(g->recipients, uint16_t, r) / 2 == t / 2;
            if (used) continue;
            to(g, pairs ? t & ~1u : t);
            if (pairs) to(g, t | 1u);
        }
        if (g->recipients->len == start) g_array_set_size(g->transfers, g->transfers->len - 1);
    }
}

/* --- Finish --- */

static void sort_by_source(struct gen *g) {
    const uint32_t n = g->transfers->len;
    struct item *in = (struct item *)g->transfers->data, *out = g_new(struct item, n + 1);
    uint32_t first[TARGET_N_TILES + 1] = {0};
    for (uint32_t i = 0; i < n; i++) first[in[i].source + 1]++;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) first[t + 1] += first[t];
    for (uint32_t i = 0; i < n; i++) out[first[in[i].source]++] = in[i];
    memcpy(in, out, n * sizeof *in);
    g_free(out);
}

static struct exch_problem *to_problem(const struct gen *g, bool unicast) {
    const uint32_t n = g->transfers->len;
    const struct item *t = (const struct item *)g->transfers->data;
    struct exch_problem *p = exch_problem_new(n, g->recipients->len);
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        p->source_tile[i] = t[i].source;
        p->words[i] = t[i].words;
        p->first_recipient[i] = at;
        const uint32_t end = unicast || i + 1 == n ? t[i].first + 1 : t[i + 1].first;
        const uint32_t stop = unicast ? end : (i + 1 == n ? g->recipients->len : end);
        for (uint32_t r = t[i].first; r < stop; r++)
            p->recipient_tile[at++] = g_array_index(g->recipients, uint16_t, r);
    }
    p->first_recipient[n] = at;
    return p;
}

enum addresses { UNICAST, FREE, HOSTILE };

static void give_addresses(struct exch_problem *p, enum addresses how) {
    uint32_t src[TARGET_N_TILES], dst_own[TARGET_N_TILES], *dst = how == HOSTILE ? src : dst_own;
    for (uint32_t t = 0; t < TARGET_N_TILES; t++) {
        dst_own[t] = 0x90000;
        src[t] = how == HOSTILE ? 0x80000 : 0x50000;
    }
    const uint32_t align = how == UNICAST ? 4 : 8;
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        const uint32_t bytes = align_up_u32(4 * p->words[x], align);
        p->source_address[x] = src[p->source_tile[x]];
        src[p->source_tile[x]] += bytes;
        for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++) {
            p->recipient_address[r] = dst[p->recipient_tile[r]];
            dst[p->recipient_tile[r]] += bytes;
        }
    }
}

enum kind {
#define EXCH_KIND(id, name) KIND_##id,
#include "exchange/exch_kind.def"
#undef EXCH_KIND
    N_KINDS
};
static const char *const kind_names[] = {
#define EXCH_KIND(id, name) name,
#include "exchange/exch_kind.def"
#undef EXCH_KIND
};

static void generate(struct gen *g, enum kind kind) {
    switch (kind) {
    case KIND_SYN_V34:
        balanced(g, 398, 512, 7, false);
        break;
    case KIND_SYN_1M:
        balanced(g, 796, 1024, 14, false);
        break;
    case KIND_SYN_V34X:
        balanced(g, 398, 512, 7, true);
        break;
    case KIND_SYN_1MX:
        balanced(g, 796, 1024, 14, true);
        break;
    case KIND_SYN_100K:
        balanced(g, 68, 0, 1, false);
        break;
    case KIND_SYN_M3:
        syn_m3(g);
        break;
    case KIND_SYN_A:
        syn_a(g);
        break;
    case KIND_SYN_A_GATHER:
        syn_a_gather(g);
        break;
    case KIND_SYN_A2W:
        syn_a2w(g);
        break;
    case KIND_SYN_M0:
        syn_m0(g);
        break;
    case KIND_SYN_H2:
        syn_h2(g);
        break;
    case KIND_RANDOM:
        random_mix(g);
        break;
    case N_KINDS:
        break;
    }
}

struct exch_problem *exch_generate(const char *name, uint32_t seed, bool hostile, GError **error) {
    uint32_t kind = 0;
    while (kind < N_KINDS && strcmp(name, kind_names[kind]) != 0) kind++;
    if (kind == N_KINDS) {
        char *list = g_strjoinv(", ", (char *[]){
#define EXCH_KIND(id, text) text,
#include "exchange/exch_kind.def"
#undef EXCH_KIND
                                          NULL});
        diag_set(error, EXCH_KIND, name, list);
        g_free(list);
        return NULL;
    }
    const bool unicast = kind < KIND_SYN_M0;
    if (unicast && hostile) {
        diag_set(error, EXCH_KIND_ADDRESSES, name);
        return NULL;
    }
    struct gen g = {seed, g_array_new(FALSE, FALSE, sizeof(struct item)),
                    g_array_new(FALSE, FALSE, sizeof(uint16_t))};
    generate(&g, kind);
    if (unicast) sort_by_source(&g);
    struct exch_problem *p = to_problem(&g, unicast);
    give_addresses(p, unicast ? UNICAST : hostile ? HOSTILE : FREE);
    p->name = arena_printf(p->arena, "%s seed %u%s", name, seed, hostile ? " hostile" : "");
    g_array_free(g.transfers, TRUE);
    g_array_free(g.recipients, TRUE);
    return p;
}

/* --- Check value: CRC-32 (zlib) over the list as little-endian words (16.4) --- */

static uint32_t crc_table[256];

static void crc_word(uint32_t *crc, uint32_t v) {
    for (uint32_t i = 0; i < 4; i++, v >>= 8) *crc = crc_table[(*crc ^ v) & 255] ^ *crc >> 8;
}

static void crc_init(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (uint32_t k = 0; k < 8; k++) c = c & 1 ? UINT32_C(0xedb88320) ^ c >> 1 : c >> 1;
        crc_table[i] = c;
    }
}

uint32_t exch_problem_crc(const struct exch_problem *p) {
    static gsize once;
    if (g_once_init_enter(&once)) {
        crc_init();
        g_once_init_leave(&once, 1);
    }
    uint32_t crc = UINT32_MAX;
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        crc_word(&crc, p->source_tile[x]);
        crc_word(&crc, p->source_address[x]);
        crc_word(&crc, p->words[x]);
        crc_word(&crc, p->first_recipient[x + 1] - p->first_recipient[x]);
        for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++) {
            crc_word(&crc, p->recipient_tile[r]);
            crc_word(&crc, p->recipient_address[r]);
        }
    }
    return ~crc;
}
