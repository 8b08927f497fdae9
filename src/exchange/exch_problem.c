/* Problems: arrays, checks with numbered reasons, orders that the data demand.
 *
 * Overlaps are found by sorting intervals per tile: n log n over the recipients. The check of
 * dependencies is Kahn's algorithm. Nothing is repaired here: a problem is right or refused. */
#include "exchange/exch_int.h"

#include <stdlib.h>

struct exch_problem *exch_problem_new(uint32_t n_transfers, uint32_t n_recipients) {
    struct arena *a = arena_new();
    struct exch_problem *p = arena_new_array(a, struct exch_problem, 1);
    *p = (struct exch_problem){
        .arena = a,
        .n_transfers = n_transfers,
        .n_recipients = n_recipients,
        .source_tile = arena_new_array(a, uint16_t, n_transfers + 1),
        .source_address = arena_new_array(a, uint32_t, n_transfers + 1),
        .words = arena_new_array(a, uint32_t, n_transfers + 1),
        .first_recipient = arena_new_array(a, uint32_t, n_transfers + 1),
        .recipient_tile = arena_new_array(a, uint16_t, n_recipients + 1),
        .recipient_address = arena_new_array(a, uint32_t, n_recipients + 1),
    };
    return p;
}

void exch_problem_free(struct exch_problem *p) {
    if (p != NULL) arena_free(p->arena);
}

void exch_problem_add_widths(struct exch_problem *p) {
    if (p->width == NULL) p->width = arena_new_array(p->arena, uint8_t, p->n_transfers + 1);
}

void exch_problem_add_strides(struct exch_problem *p) {
    if (p->source_stride == NULL)
        p->source_stride = arena_new_array(p->arena, int32_t, p->n_transfers + 1);
}

void exch_problem_add_dependencies(struct exch_problem *p, uint32_t n_dependencies) {
    p->first_dependency = arena_new_array(p->arena, uint32_t, p->n_transfers + 1);
    p->dependency = arena_new_array(p->arena, uint32_t, n_dependencies + 1);
}

uint32_t exch_element_mask(uint32_t address, uint64_t bytes) {
    const uint64_t last = address + bytes - 1;
    if (address < TARGET_SRAM_BASE || last >= TARGET_SRAM_END) return 0; /* unplaced */
    const uint32_t a = target_element(address), b = target_element((uint32_t)last);
    return (uint32_t)((UINT64_C(2) << b) - (UINT64_C(1) << a));
}

/* --- Widths --- */

static int compare_u16(const void *a, const void *b) {
    return (int)*(const uint16_t *)a - (int)*(const uint16_t *)b;
}

/* Receivers form complete physical pairs (logical 2k, 2k+1), not only the sender's own. */
static bool pairs_complete(const struct exch_problem *p, uint32_t x) {
    const uint32_t a = p->first_recipient[x], n = p->first_recipient[x + 1] - a;
    if (n % 2 != 0) return false;
    const uint16_t *tile = p->recipient_tile + a;
    bool in_order = true;
    for (uint32_t i = 0; i < n && in_order; i += 2) in_order = (tile[i] ^ 1) == tile[i + 1];
    if (!in_order) {
        uint16_t small[64];
        uint16_t *sorted = n <= 64 ? small : g_new(uint16_t, n);
        memcpy(sorted, tile, n * sizeof *sorted);
        qsort(sorted, n, sizeof *sorted, compare_u16);
        in_order = true;
        for (uint32_t i = 0; i < n && in_order; i += 2)
            in_order = sorted[i] % 2 == 0 && sorted[i] + 1 == sorted[i + 1];
        if (sorted != small) g_free(sorted);
        if (!in_order) return false;
    }
    return n > 2 || tile[0] / 2 != p->source_tile[x] / 2;
}

static bool addresses_even(const struct exch_problem *p, uint32_t x) {
    if (p->source_address[x] % 8 != 0) return false;
    if (p->source_stride != NULL && p->source_stride[x] % 8 != 0) return false;
    for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++)
        if (p->recipient_address[r] % 8 != 0) return false;
    return true;
}

bool exch_never_fits(const struct exch_problem *p, uint32_t x, bool paired, uint32_t items) {
    const struct exch_route *route = exch_route();
    const uint32_t src = p->source_tile[x];
    for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++) {
        const uint32_t d = p->recipient_tile[r];
        if (paired) {
            const uint32_t two_r = 2u * route->row[d];
            if (items <= 2 || items == 51 + two_r || items == 53 + two_r) return true;
        }
        if (d != src) continue;
        const int32_t self = route->ttm[src][src];
        if (!paired && (items == 28 || items == (self == -28 ? 27u : 29u))) return true;
        if (paired && self == -29 && (items == 28 || items == 29)) return true;
    }
    return false;
}

bool exch_pairable(const struct exch_problem *p, uint32_t x) {
    return p->words[x] % 2 == 0 && addresses_even(p, x) && pairs_complete(p, x) &&
           !exch_never_fits(p, x, true, p->words[x] / 2);
}

/* --- Checks --- */

/* Range of a source over all iterations: first byte and bytes. */
static void source_range(const struct exch_problem *p, uint32_t x, int64_t *ret_first,
                         int64_t *ret_last) {
    int64_t first = p->source_address[x], last = first + 4 * (int64_t)p->words[x] - 1;
    if (p->source_stride != NULL && p->n_iterations > 1) {
        const int64_t move = (int64_t)p->source_stride[x] * (p->n_iterations - 1);
        if (move < 0) first += move;
        else last += move;
    }
    *ret_first = first;
    *ret_last = last;
}

static bool range_ok(const struct exch_problem *p, int64_t first, int64_t last) {
    if (p->unplaced) return first >= 0 && last < (1 << 20);
    return first >= TARGET_SRAM_BASE && last < TARGET_SRAM_END;
}

static uint32_t row_elements(const struct exch_problem *p, uint32_t tile) {
    const uint64_t bytes = exch_problem_row_bytes(p, tile);
    return bytes == 0 ? 0 : exch_element_mask(p->row_address, bytes + TARGET_FETCH_AHEAD_BYTES);
}

static bool check_rows_place(const struct exch_problem *p, GError **error) {
    if (p->row_bytes == 0) return true;
    const uint64_t end = (uint64_t)p->row_address + p->row_bytes + TARGET_FETCH_AHEAD_BYTES;
    if (p->row_address % 8 == 0 && p->row_address >= TARGET_SRAM_BASE && end <= TARGET_REGION1_BASE)
        return true;
    diag_set(error, EXCH_ROW_PLACE, p->row_address, p->row_bytes, TARGET_FETCH_AHEAD_BYTES);
    return false;
}

static bool check_source(const struct exch_problem *p, uint32_t x, GError **error) {
    int64_t first, last;
    source_range(p, x, &first, &last);
    const uint32_t tile = p->source_tile[x];
    if (!range_ok(p, first, last)) {
        diag_set(error, EXCH_SOURCE_RANGE, x, tile, (guint64)first, (guint64)last);
        return false;
    }
    if (first % 4 != 0 || (p->source_stride != NULL && p->source_stride[x] % 4 != 0)) {
        diag_set(error, EXCH_SOURCE_ALIGN, x, tile, p->source_address[x]);
        return false;
    }
    if (!p->unplaced &&
        (exch_element_mask((uint32_t)first, (uint64_t)(last - first + 1)) & row_elements(p, tile)) != 0) {
        diag_set(error, EXCH_ROW_ELEMENT, x, tile, "source", (guint32)first);
        return false;
    }
    return true;
}

static bool check_recipient(const struct exch_problem *p, uint32_t x, uint32_t r, GError **error) {
    const uint32_t tile = p->recipient_tile[r], address = p->recipient_address[r];
    if (tile >= TARGET_N_TILES) {
        diag_set(error, EXCH_TILE, x, tile, TARGET_N_TILES - 1);
        return false;
    }
    const int64_t last = (int64_t)address + 4 * (int64_t)p->words[x] - 1;
    if (!range_ok(p, address, last)) {
        diag_set(error, EXCH_DEST_RANGE, x, tile, (guint64)address, (guint64)last);
        return false;
    }
    if (address % 4 != 0) {
        diag_set(error, EXCH_DEST_ALIGN, x, tile, address);
        return false;
    }
    const uint32_t mask = exch_element_mask(address, 4 * (uint64_t)p->words[x]);
    if ((mask & row_elements(p, tile)) != 0) {
        diag_set(error, EXCH_ROW_ELEMENT, x, tile, "destination", address);
        return false;
    }
    if (tile != p->source_tile[x]) return true;
    int64_t first;
    int64_t end;
    source_range(p, x, &first, &end);
    if ((exch_element_mask((uint32_t)first, (uint64_t)(end - first + 1)) & mask) != 0) {
        diag_set(error, EXCH_SELF_ELEMENT, x, tile);
        return false;
    }
    return true;
}

static bool check_transfer(const struct exch_problem *p, uint32_t x, uint32_t *seen,
                           GError **error) {
    const uint32_t tile = p->source_tile[x], a = p->first_recipient[x],
                   b = p->first_recipient[x + 1];
    if (tile >= TARGET_N_TILES) {
        diag_set(error, EXCH_TILE, x, tile, TARGET_N_TILES - 1);
        return false;
    }
    if (p->words[x] == 0 || a >= b) {
        diag_set(error, EXCH_EMPTY, x, tile, p->words[x], b > a ? b - a : 0);
        return false;
    }
    if (!check_source(p, x, error)) return false;
    for (uint32_t r = a; r < b; r++) {
        if (!check_recipient(p, x, r, error)) return false;
        if (seen[p->recipient_tile[r]] == x + 1) {
            diag_set(error, EXCH_DUPLICATE, x, p->recipient_tile[r]);
            return false;
        }
        seen[p->recipient_tile[r]] = x + 1;
    }
    if (b - a == 1 && p->recipient_tile[a] == tile) {
        diag_set(error, EXCH_SELF_ONLY, x, tile);
        return false;
    }
    const uint32_t width = p->width != NULL ? p->width[x] : EXCH_WIDTH_ANY;
    if (width == EXCH_WIDTH_PAIRED && !exch_pairable(p, x)) {
        diag_set(error, EXCH_NOT_PAIRABLE, x, tile);
        return false;
    }
    const uint32_t items = width == EXCH_WIDTH_PAIRED ? p->words[x] / 2 : p->words[x];
    if (items > TARGET_EXCH_MAX_ITEMS && !p->split_long) {
        diag_set(error, EXCH_TOO_LONG, x, tile, items, TARGET_EXCH_MAX_ITEMS);
        return false;
    }
    return true;
}

struct span {
    uint32_t tile, first, end, transfer;
};
static int compare_span(const void *a, const void *b) {
    const struct span *x = a, *y = b;
    if (x->tile != y->tile) return x->tile < y->tile ? -1 : 1;
    if (x->first != y->first) return x->first < y->first ? -1 : 1;
    return x->transfer < y->transfer ? -1 : x->transfer > y->transfer;
}

static struct span *destination_spans(const struct exch_problem *p) {
    struct span *s = g_new(struct span, p->n_recipients + 1);
    for (uint32_t x = 0; x < p->n_transfers; x++)
        for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++)
            s[r] = (struct span){p->recipient_tile[r], p->recipient_address[r],
                                 p->recipient_address[r] + 4 * p->words[x], x};
    bool sorted = true;
    for (uint32_t r = 1; r < p->n_recipients && sorted; r++)
        sorted = compare_span(&s[r - 1], &s[r]) <= 0;
    if (!sorted) qsort(s, p->n_recipients, sizeof *s, compare_span);
    return s;
}

static bool check_overlap(const struct exch_problem *p, GError **error) {
    struct span *s = destination_spans(p);
    bool ok = true;
    uint32_t widest = 0; /* the span of this tile that reaches farthest */
    for (uint32_t r = 1; r < p->n_recipients && ok; r++) {
        if (s[widest].tile != s[r].tile || s[r - 1].end > s[widest].end) widest = r - 1;
        if (s[widest].tile != s[r].tile || s[widest].end <= s[r].first) continue;
        const uint32_t x = MAX(s[widest].transfer, s[r].transfer),
                       y = MIN(s[widest].transfer, s[r].transfer);
        diag_set(error, EXCH_OVERLAP, x, s[r].tile, s[r].first, y);
        ok = false;
    }
    g_free(s);
    return ok;
}

static bool check_dependencies(const struct exch_problem *p, GError **error) {
    if (p->first_dependency == NULL) return true;
    const uint32_t n = p->n_transfers, n_dep = p->first_dependency[n];
    for (uint32_t x = 0; x < n; x++)
        for (uint32_t k = p->first_dependency[x]; k < p->first_dependency[x + 1]; k++)
            if (p->dependency[k] >= n || p->dependency[k] == x) {
                diag_set(error, EXCH_CYCLE, x, p->source_tile[x]);
                return false;
            }
    uint32_t *waiting = g_new0(uint32_t, n + 1), *first = g_new0(uint32_t, n + 2),
             *next = g_new(uint32_t, n_dep + 1), *queue = g_new(uint32_t, n + 1);
    for (uint32_t k = 0; k < n_dep; k++) first[p->dependency[k] + 2]++;
    for (uint32_t x = 0; x < n; x++) first[x + 2] += first[x + 1];
    for (uint32_t x = 0; x < n; x++)
        for (uint32_t k = p->first_dependency[x]; k < p->first_dependency[x + 1]; k++) {
            next[first[p->dependency[k] + 1]++] = x;
            waiting[x]++;
        }
    uint32_t tail = 0;
    for (uint32_t x = 0; x < n; x++)
        if (waiting[x] == 0) queue[tail++] = x;
    for (uint32_t head = 0; head < tail; head++)
        for (uint32_t k = first[queue[head]]; k < first[queue[head] + 1]; k++)
            if (--waiting[next[k]] == 0) queue[tail++] = next[k];
    const bool ok = tail == n;
    if (!ok) {
        uint32_t x = 0;
        while (waiting[x] == 0) x++;
        diag_set(error, EXCH_CYCLE, x, p->source_tile[x]);
    }
    g_free(waiting);
    g_free(first);
    g_free(next);
    g_free(queue);
    return ok;
}

bool exch_problem_check(const struct exch_problem *p, GError **error) {
    if (!check_rows_place(p, error)) return false;
    uint32_t *seen = g_new0(uint32_t, TARGET_N_TILES);
    bool ok = true;
    for (uint32_t x = 0; x < p->n_transfers && ok; x++) ok = check_transfer(p, x, seen, error);
    g_free(seen);
    return ok && check_overlap(p, error) && check_dependencies(p, error);
}

/* --- Orders that the data demand --- */

/* A source read and a destination written that overlap on one tile keep their order in the list.
 * (Two destinations never overlap: refused.) Sources of a tile sorted by address are met by the
 * sorted destinations; overlaps are rare, so the scan back is short. */
void exch_problem_find_dependencies(struct exch_problem *p) {
    struct span *dst = destination_spans(p);
    struct span *src = g_new(struct span, p->n_transfers + 1);
    uint32_t longest = 0;
    for (uint32_t x = 0; x < p->n_transfers; x++) {
        int64_t first, last;
        source_range(p, x, &first, &last);
        src[x] = (struct span){p->source_tile[x], (uint32_t)first, (uint32_t)last + 1, x};
        longest = MAX(longest, src[x].end - src[x].first);
    }
    qsort(src, p->n_transfers, sizeof *src, compare_span);
    GArray *pairs = g_array_new(FALSE, FALSE, sizeof(uint64_t)); /* later << 32 | earlier */
    uint32_t k = 0;
    for (uint32_t r = 0; r < p->n_recipients; r++) {
        const struct span d = dst[r];
        while (k < p->n_transfers && (src[k].tile < d.tile ||
                                      (src[k].tile == d.tile && src[k].first + longest <= d.first)))
            k++;
        for (uint32_t j = k; j < p->n_transfers && src[j].tile == d.tile && src[j].first < d.end;
             j++) {
            if (src[j].end <= d.first || src[j].transfer == d.transfer) continue;
            const uint64_t a = MAX(src[j].transfer, d.transfer),
                           b = MIN(src[j].transfer, d.transfer);
            const uint64_t pair = a << 32 | b;
            g_array_append_val(pairs, pair);
        }
    }
    if (p->first_dependency != NULL)
        for (uint32_t x = 0; x < p->n_transfers; x++)
            for (uint32_t i = p->first_dependency[x]; i < p->first_dependency[x + 1]; i++) {
                const uint64_t pair = (uint64_t)x << 32 | p->dependency[i];
                g_array_append_val(pairs, pair);
            }
    const uint32_t n = pairs->len;
    p->first_dependency = NULL; /* none at all opens the phase to every scheduler */
    if (n != 0) exch_problem_add_dependencies(p, n);
    for (uint32_t i = 0; i < n; i++) p->first_dependency[g_array_index(pairs, uint64_t, i) >> 32]++;
    uint32_t sum = 0;
    for (uint32_t x = 0; n != 0 && x <= p->n_transfers; x++) {
        const uint32_t c = p->first_dependency[x];
        p->first_dependency[x] = sum;
        sum += c;
    }
    uint32_t *at = g_new0(uint32_t, p->n_transfers + 1);
    if (n != 0) memcpy(at, p->first_dependency, (p->n_transfers + 1) * sizeof *at);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t pair = g_array_index(pairs, uint64_t, i);
        p->dependency[at[pair >> 32]++] = (uint32_t)pair;
    }
    g_free(at);
    g_array_free(pairs, TRUE);
    g_free(src);
    g_free(dst);
}
