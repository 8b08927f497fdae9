/* Queries: intervals are filtered, grouped and summed. Timeline cycles of a group are the length of the
 * union of its intervals (they overlap across tiles), work cycles the sum of their lengths. Cost: one
 * pass and a sort of the matching intervals. */
#include "isa/isa_form.h"
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {"exchange", "compute", "repeat"};
static const char *const group_names[] = {"kind", "kernel", "operation", "step", "tile"};
static const char *const sort_names[] = {"phase-cycles", "work-cycles", "maximum-cycles", "samples",
                                         "name"};
_Static_assert(ARRAY_LEN(kind_names) == PROFILE_N_KINDS, "a name per kind");
_Static_assert(ARRAY_LEN(group_names) == PROFILE_N_GROUPS, "a name per group");
_Static_assert(ARRAY_LEN(sort_names) == PROFILE_N_SORTS, "a name per order");

const char *profile_kind_name(uint32_t kind) { return kind_names[kind]; }

enum profile_kind profile_kind_find(const char *name) {
    uint32_t i = 0;
    while (i < PROFILE_N_KINDS && strcmp(kind_names[i], name) != 0) i++;
    return (enum profile_kind)i;
}

enum profile_group profile_group_find(const char *name) {
    uint32_t i = 0;
    while (i < PROFILE_N_GROUPS && strcmp(group_names[i], name) != 0) i++;
    return (enum profile_group)i;
}

enum profile_sort profile_sort_find(const char *name) {
    uint32_t i = 0;
    while (i < PROFILE_N_SORTS && strcmp(sort_names[i], name) != 0) i++;
    return (enum profile_sort)i;
}

#define COMPARE(a, b) \
    if ((a) != (b)) return (a) < (b) ? -1 : 1
static int compare_u32(const void *a, const void *b) {
    COMPARE(*(const uint32_t *)a, *(const uint32_t *)b);
    return 0;
}

/* A matching interval. */
struct match {
    uint32_t key; /* of its group */
    uint32_t tile, interval, start, end, step;
};

struct group {
    char *name;
    uint32_t key, samples, tiles, steps;
    uint64_t timeline, work;
    uint32_t median, p95, longest, first, last;
};

static bool listed(const uint32_t *list, uint32_t n, uint32_t v) {
    if (list == NULL) return true;
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == v) return true;
    return false;
}

static bool passes(const struct profile *p, const struct profile_query *q, uint32_t tile,
                   const struct profile_interval *v) {
    const struct profile_step *s = &p->steps[v->step];
    if (q->kind >= 0 && s->kind != (uint32_t)q->kind) return false;
    if (q->kernel != NULL && (v->kernel == TG_NONE || strcmp(p->names[v->kernel], q->kernel) != 0))
        return false;
    if (q->operation != NULL && strstr(p->names[s->operation], q->operation) == NULL) return false;
    if (q->at >= 0 && !((int64_t)v->start <= q->at && q->at < (int64_t)v->end)) return false;
    return listed(q->tiles, q->n_tiles, tile) && listed(q->steps, q->n_steps, v->step);
}

static uint32_t key_of(const struct profile *p, enum profile_group g, uint32_t tile,
                       const struct profile_interval *v) {
    switch (g) {
    case PROFILE_BY_KIND: return p->steps[v->step].kind;
    case PROFILE_BY_KERNEL: return v->kernel;
    case PROFILE_BY_OPERATION: return p->steps[v->step].operation;
    case PROFILE_BY_STEP: return v->step;
    default: return tile;
    }
}

static char *key_name(const struct profile *p, enum profile_group g, uint32_t key) {
    switch (g) {
    case PROFILE_BY_KIND: return g_strdup(profile_kind_name(key));
    case PROFILE_BY_KERNEL: return g_strdup(key == TG_NONE ? "(no kernel)" : p->names[key]);
    case PROFILE_BY_OPERATION: return g_strdup(p->names[key]);
    case PROFILE_BY_STEP:
        return g_strdup_printf("step %u, %s", key, p->names[p->steps[key].operation]);
    default: return g_strdup_printf("tile %u", key);
    }
}

enum { NAMES_LISTED = 12 };

static int compare_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names, each once, ascending. */
static GPtrArray *distinct_names(const struct profile *p, const uint32_t *ids, uint32_t n) {
    GPtrArray *names = g_ptr_array_new();
    uint32_t *sorted = g_memdup2(ids, n * sizeof *ids);
    qsort(sorted, n, sizeof *sorted, compare_u32);
    for (uint32_t i = 0; i < n; i++)
        if (sorted[i] != TG_NONE && (i == 0 || sorted[i] != sorted[i - 1]))
            g_ptr_array_add(names, (char *)p->names[sorted[i]]);
    g_ptr_array_sort(names, compare_text);
    g_free(sorted);
    return names;
}

static bool fail_name(const char *kind, const char *name, const GPtrArray *names, GError **error) {
    const uint32_t listed_names = MIN(names->len, NAMES_LISTED);
    char *near_names = isa_suggest(name, (const char *const *)names->pdata, names->len);
    GString *list = g_string_new(names->len == 0 ? "none" : NULL);
    for (uint32_t i = 0; i < listed_names; i++)
        g_string_append_printf(list, "%s%s", i != 0 ? ", " : "", (const char *)names->pdata[i]);
    if (listed_names < names->len)
        g_string_append_printf(list, " and %u more", names->len - listed_names);
    diag_set(error, PROFILE_NO_NAME, kind, name, near_names, list->str);
    g_string_free(list, true);
    g_free(near_names);
    return false;
}

bool profile_query_check(const struct profile *p, const struct profile_query *q, GError **error) {
    const uint32_t n = p->first[p->n_tiles];
    uint32_t *kernel = g_new(uint32_t, n + 1), *operation = g_new(uint32_t, p->n_steps + 1);
    for (uint32_t i = 0; i < n; i++) kernel[i] = p->intervals[i].kernel;
    for (uint32_t i = 0; i < p->n_steps; i++) operation[i] = p->steps[i].operation;
    GPtrArray *kernels = distinct_names(p, kernel, n);
    GPtrArray *operations = distinct_names(p, operation, p->n_steps);
    bool has_kernel = q->kernel == NULL, has_operation = q->operation == NULL;
    for (uint32_t i = 0; i < kernels->len && !has_kernel; i++)
        has_kernel = strcmp(kernels->pdata[i], q->kernel) == 0;
    for (uint32_t i = 0; i < operations->len && !has_operation; i++)
        has_operation = strstr(operations->pdata[i], q->operation) != NULL;
    const bool ok = (has_kernel || fail_name("kernel", q->kernel, kernels, error)) &&
                    (has_operation ||
                     fail_name("operation with", q->operation, operations, error));
    g_ptr_array_free(kernels, true);
    g_ptr_array_free(operations, true);
    g_free(kernel);
    g_free(operation);
    return ok;
}

static GArray *find_matches(const struct profile *p, const struct profile_query *q) {
    GArray *found = g_array_new(false, false, sizeof(struct match));
    for (uint32_t t = 0; t < p->n_tiles; t++)
        for (uint32_t i = p->first[t]; i < p->first[t + 1]; i++) {
            const struct profile_interval *v = &p->intervals[i];
            if (!passes(p, q, t, v)) continue;
            const struct match m = {.key = key_of(p, q->group, t, v), .tile = t, .interval = i,
                                    .start = v->start, .end = v->end, .step = v->step};
            g_array_append_val(found, m);
        }
    return found;
}

static int compare_matches(const void *a, const void *b) {
    const struct match *x = a, *y = b;
    COMPARE(x->key, y->key);
    COMPARE(x->start, y->start);
    COMPARE(x->interval, y->interval);
    return 0;
}
static int compare_length(const void *a, const void *b) {
    const struct match *x = a, *y = b;
    COMPARE(y->end - y->start, x->end - x->start);
    COMPARE(x->interval, y->interval);
    return 0;
}
static int compare_groups(const void *a, const void *b, void *order) {
    const struct group *x = a, *y = b;
    switch (*(const enum profile_sort *)order) {
    case PROFILE_SORT_TIMELINE: COMPARE(y->timeline, x->timeline); break;
    case PROFILE_SORT_WORK: COMPARE(y->work, x->work); break;
    case PROFILE_SORT_LONGEST: COMPARE(y->longest, x->longest); break;
    case PROFILE_SORT_SAMPLES: COMPARE(y->samples, x->samples); break;
    default: return strcmp(x->name, y->name);
    }
    COMPARE(x->key, y->key);
    return 0;
}

static uint32_t count_distinct(uint32_t *v, uint32_t n) {
    qsort(v, n, sizeof *v, compare_u32);
    uint32_t distinct = 0;
    for (uint32_t i = 0; i < n; i++) distinct += i == 0 || v[i] != v[i - 1];
    return distinct;
}

/* The matches of one group, ascending by start. */
static struct group sum_group(const struct profile *p, const struct profile_query *q,
                              const struct match *m, uint32_t n) {
    struct group g = {.key = m->key, .name = key_name(p, q->group, m->key), .samples = n,
                      .first = m->start};
    uint32_t *v = g_new(uint32_t, n), covered = m->start;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = MAX(m[i].start, covered);
        if (m[i].end > from) g.timeline += m[i].end - from;
        covered = MAX(covered, m[i].end);
        g.work += m[i].end - m[i].start;
        g.last = MAX(g.last, m[i].end);
        v[i] = m[i].tile;
    }
    g.tiles = count_distinct(v, n);
    for (uint32_t i = 0; i < n; i++) v[i] = m[i].step;
    g.steps = count_distinct(v, n);
    for (uint32_t i = 0; i < n; i++) v[i] = m[i].end - m[i].start;
    qsort(v, n, sizeof *v, compare_u32);
    g.median = v[(uint64_t)(n - 1) * 50 / 100];
    g.p95 = v[(uint64_t)(n - 1) * 95 / 100];
    g.longest = v[n - 1];
    g_free(v);
    return g;
}

struct answer {
    GArray *matches; /* by length, longest first */
    GArray *groups;
};

static struct answer answer_new(const struct profile *p, const struct profile_query *q) {
    struct answer a = {find_matches(p, q), g_array_new(false, false, sizeof(struct group))};
    g_array_sort(a.matches, compare_matches);
    const struct match *m = (const struct match *)a.matches->data;
    for (uint32_t i = 0, j; i < a.matches->len; i = j) {
        for (j = i; j < a.matches->len && m[j].key == m[i].key;) j++;
        const struct group g = sum_group(p, q, m + i, j - i);
        g_array_append_val(a.groups, g);
    }
    enum profile_sort order = q->sort;
    g_array_sort_with_data(a.groups, compare_groups, &order);
    g_array_sort(a.matches, compare_length);
    return a;
}

static void answer_clear(struct answer *a) {
    for (uint32_t i = 0; i < a->groups->len; i++)
        g_free(g_array_index(a->groups, struct group, i).name);
    g_array_free(a->groups, true);
    g_array_free(a->matches, true);
}

static uint32_t shown_groups(const struct answer *a, const struct profile_query *q) {
    return q->limit == 0 ? a->groups->len : MIN(q->limit, a->groups->len);
}

void profile_query_print(const struct profile *p, const struct profile_query *q, GString *out) {
    struct answer a = answer_new(p, q);
    g_string_append_printf(out,
                           "tiles=%u samples=%u/%u spanCycles=%" G_GUINT64_FORMAT " spanMs=%.4f\n",
                           p->n_tiles, a.matches->len, p->first[p->n_tiles], p->cycles_measured,
                           1e3 * (double)p->cycles_measured / (double)p->clock_hz);
    g_string_append(out, "timeline      work  tiles  active  samples    mean  median     p95 "
                         "longest     first      last  group\n");
    for (uint32_t i = 0; i < shown_groups(&a, q); i++) {
        const struct group *g = &g_array_index(a.groups, struct group, i);
        g_string_append_printf(
            out,
            "%8" G_GUINT64_FORMAT " %10" G_GUINT64_FORMAT " %5u %7.1f %8u %7.0f %7u %7u %7u %9u %9u  "
            "%s\n",
            g->timeline, g->work, g->tiles,
            g->timeline != 0 ? (double)g->work / (double)g->timeline : 0, g->samples,
            (double)g->work / g->samples, g->median, g->p95, g->longest, g->first, g->last,
            g->name);
    }
    for (uint32_t i = 0; i < MIN(q->samples, a.matches->len); i++) {
        const struct match *m = &g_array_index(a.matches, struct match, i);
        const struct profile_interval *v = &p->intervals[m->interval];
        g_string_append_printf(out, "sample tile=%u offset=%u cycles=%u step=%u operation=%s kernel=%s\n",
                               m->tile, m->start, m->end - m->start, m->step,
                               p->names[p->steps[m->step].operation],
                               v->kernel == TG_NONE ? "" : p->names[v->kernel]);
    }
    answer_clear(&a);
}

void profile_query_json(const struct profile *p, const struct profile_query *q, GString *out) {
    struct answer a = answer_new(p, q);
    g_string_append_printf(out,
                           "{\"clockHz\":%" G_GUINT64_FORMAT ",\"tileCount\":%u,\"sampleCount\":%u,"
                           "\"matchedSampleCount\":%u,\"profileSpanCycles\":%" G_GUINT64_FORMAT
                           ",\"groupBy\":\"%s\",\"groups\":[",
                           p->clock_hz, p->n_tiles, p->first[p->n_tiles], a.matches->len,
                           p->cycles_measured, group_names[q->group]);
    for (uint32_t i = 0; i < shown_groups(&a, q); i++) {
        const struct group *g = &g_array_index(a.groups, struct group, i);
        g_string_append(out, i != 0 ? ",{\"name\":" : "{\"name\":");
        json_string(g->name, out);
        g_string_append_printf(
            out,
            ",\"samples\":%u,\"tiles\":%u,\"steps\":%u,\"timelineCycles\":%" G_GUINT64_FORMAT
            ",\"workCycles\":%" G_GUINT64_FORMAT
            ",\"medianCycles\":%u,\"p95Cycles\":%u,\"maximumCycles\":%u,\"firstOffset\":%u,"
            "\"lastOffset\":%u}",
            g->samples, g->tiles, g->steps, g->timeline, g->work, g->median, g->p95, g->longest,
            g->first, g->last);
    }
    g_string_append(out, "],\"samples\":[");
    for (uint32_t i = 0; i < MIN(q->samples, a.matches->len); i++) {
        const struct match *m = &g_array_index(a.matches, struct match, i);
        const struct profile_interval *v = &p->intervals[m->interval];
        g_string_append_printf(out, "%s{\"tile\":%u,\"offset\":%u,\"cycles\":%u,\"step\":%u,\"operation\":",
                               i != 0 ? "," : "", m->tile, m->start, m->end - m->start, m->step);
        json_string(p->names[p->steps[m->step].operation], out);
        g_string_append(out, ",\"kernel\":");
        if (v->kernel == TG_NONE) g_string_append(out, "null");
        else json_string(p->names[v->kernel], out);
        g_string_append_c(out, '}');
    }
    g_string_append(out, "]}\n");
    answer_clear(&a);
}

/* --- Barriers --- */

void profile_barriers_print(const struct profile *p, GString *out) {
    g_string_append(out, "arrival spreads overlap with work on other tiles: do not add them up\n"
                         "phase  step  firstEntry  lastEntry   lastExit  lastTile  spread  behind  "
                         "horizon  operation\n");
    for (uint32_t i = 0; i < p->n_phases; i++) {
        const struct profile_phase *f = &p->phases[i];
        g_string_append_printf(out, "%5u %5u %11u %10u %10u %9u %7u %7u %8u  %s\n", i, f->step,
                               f->first_entry, f->last_entry, f->last_exit, f->last_tile,
                               f->last_entry - f->first_entry, f->last_exit - f->last_entry,
                               f->horizon, p->names[p->steps[f->step].operation]);
    }
}

void profile_barriers_json(const struct profile *p, GString *out) {
    g_string_append_c(out, '[');
    for (uint32_t i = 0; i < p->n_phases; i++) {
        const struct profile_phase *f = &p->phases[i];
        g_string_append_printf(
            out,
            "%s{\"phase\":%u,\"step\":%u,\"firstEntry\":%u,\"lastEntry\":%u,\"lastExit\":%u,"
            "\"lastArrivingTile\":%u,\"arrivalSpreadCycles\":%u,\"afterLastArrivalCycles\":%u,"
            "\"scheduledEventCycles\":%u}",
            i != 0 ? "," : "", i, f->step, f->first_entry, f->last_entry, f->last_exit,
            f->last_tile, f->last_entry - f->first_entry, f->last_exit - f->last_entry,
            f->horizon);
    }
    g_string_append(out, "]\n");
}
