/* From a finished run to intervals. With marks of the model, an interval of a tile lasts from the issue
 * of the first instruction of a step to that of the next; with sampling code, from sample to sample.
 * In a repeat these are the samples of the last iteration; those before it are one interval. Everything
 * is cropped at the latest entry into the first step (runtime 6.2). */
#include "profile/profile.h"

#include "target/target.h"

#include <string.h>

void profile_free(struct profile *p) {
    if (p != NULL) arena_free(p->arena);
}

struct boundary {
    uint32_t mark; /* within the tile; the number of marks for the end */
    uint64_t cycle;
};

static void marks_of_model(const struct session *s, uint32_t t, GArray *out) {
    uint32_t n;
    const struct device_mark *m = session_functions(s)->marks(session_device(s), t, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct boundary b = {.mark = m[i].mark, .cycle = m[i].cycle};
        g_array_append_val(out, b);
    }
}

/* Samples are 32 bits wide and wrap. */
static void marks_of_samples(const struct session *s, uint32_t t, GArray *out) {
    const struct package *p = session_package(s);
    const uint32_t n = p->first_mark[t + 1] - p->first_mark[t];
    uint64_t last = 0;
    for (uint32_t i = 0; i <= n; i++) {
        uint32_t word;
        session_functions(s)->memory_read(session_device(s), t, p->sample_address[t] + 4 * i, &word,
                                          sizeof word);
        last += (uint32_t)(word - (uint32_t)last);
        const struct boundary b = {.mark = i, .cycle = last};
        g_array_append_val(out, b);
    }
}

static uint32_t crop(uint64_t cycle, uint64_t origin) {
    return cycle > origin ? (uint32_t)(cycle - origin) : 0;
}

/* Names, operations and steps are those of the package; of a repeat, only the iterations that have no
 * samples are an interval. */
static void take_steps(struct profile *p, const struct package *from) {
    p->n_names = from->n_names;
    p->names = arena_new_array(p->arena, const char *, p->n_names);
    for (uint32_t i = 0; i < p->n_names; i++) p->names[i] = arena_strdup(p->arena, from->names[i]);
    p->n_steps = from->n_steps;
    p->steps = arena_new_array(p->arena, struct profile_step, p->n_steps);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct package_step *s = &from->steps[i];
        p->steps[i] = (struct profile_step){
            .kind = s->kind == TG_EXCHANGE  ? PROFILE_EXCHANGE
                    : s->kind == TG_COMPUTE ? PROFILE_COMPUTE
                                            : PROFILE_REPEAT,
            .operation = s->operation, .reason = s->reason, .horizon = s->horizon,
            .package_step = i, .transfers = s->transfers, .messages = s->messages,
            .endpoint_bound = s->endpoint_bound, .bound = s->bound,
            .row_bytes_max = s->row_bytes_max, .row_bytes_tile = s->row_bytes_tile,
            .words = s->words};
    }
}

static void add_interval(const struct package *from, uint32_t t, const struct boundary *b,
                         uint64_t origin, GArray *out) {
    const uint32_t n_marks = from->first_mark[t + 1] - from->first_mark[t];
    if (b->mark >= n_marks) return;
    const struct package_mark *m = &from->marks[from->first_mark[t] + b->mark];
    const struct profile_interval i = {
        .step = m->step, .kernel = m->kernel, .calls = m->calls,
        .start = crop(b[0].cycle, origin), .end = crop(b[1].cycle, origin),
        .predicted = m->predicted_end - m->predicted_start,
        .send_words = m->send_words, .receive_words = m->receive_words};
    if (i.end > 0) g_array_append_val(out, i);
}

static uint64_t take_intervals(struct profile *p, const struct session *s) {
    const struct package *from = session_package(s);
    GArray **marks = g_new0(GArray *, p->n_tiles);
    uint64_t origin = 0, end = 0;
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        marks[t] = g_array_new(false, false, sizeof(struct boundary));
        if (p->source == PROFILE_FROM_SAMPLES) marks_of_samples(s, t, marks[t]);
        else marks_of_model(s, t, marks[t]);
        if (marks[t]->len < 2) continue;
        origin = MAX(origin, g_array_index(marks[t], struct boundary, 0).cycle);
        end = MAX(end, g_array_index(marks[t], struct boundary, marks[t]->len - 1).cycle);
    }
    GArray *all = g_array_new(false, false, sizeof(struct profile_interval));
    p->first = arena_new_array(p->arena, uint32_t, p->n_tiles + 1);
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        for (uint32_t i = 0; i + 1 < marks[t]->len; i++)
            add_interval(from, t, &g_array_index(marks[t], struct boundary, i), origin, all);
        p->first[t + 1] = all->len;
        g_array_free(marks[t], true);
    }
    p->intervals = arena_copy(p->arena, all->data, sizeof *p->intervals * all->len);
    g_array_free(all, true);
    g_free(marks);
    p->cycles_measured = end > origin ? end - origin : 0;
    return origin;
}

/* The phases of a run follow the exchange steps of the package, repeats unfolded. */
static void take_phases(struct profile *p, const struct session *s, uint64_t origin) {
    const struct package *from = session_package(s);
    uint32_t n;
    const struct device_phase *ran = session_functions(s)->phases(session_device(s), &n);
    p->phases = arena_new_array(p->arena, struct profile_phase, n);
    uint32_t step = 0, begin = 0, left = 0;
    while (p->n_phases < n && step < from->n_steps) {
        const struct package_step *at = &from->steps[step];
        if (at->kind == TG_REPEAT_BEGIN) {
            begin = step;
            left = at->count;
        }
        if (at->kind == TG_REPEAT_END && --left != 0) step = begin;
        if (at->kind == TG_EXCHANGE) {
            const struct device_phase *d = &ran[p->n_phases];
            p->phases[p->n_phases++] = (struct profile_phase){
                .step = step, .first_entry = crop(d->first_arrival, origin),
                .last_entry = crop(d->last_arrival, origin),
                .last_exit = crop(d->last_exit, origin), .last_tile = d->last_tile,
                .horizon = d->horizon, .active = d->active};
            p->exchange_cycles += d->last_exit - d->last_arrival;
        }
        step++;
    }
}

struct profile *profile_from_session(const struct session *s, GError **error) {
    const struct package *from = session_package(s);
    uint64_t cycles;
    if (!session_cycles(s, &cycles)) {
        diag_set(error, PROFILE_NO_MARKS, "the run recorded no step boundaries");
        return NULL;
    }
    struct arena *a = arena_new();
    struct profile *p = arena_alloc(a, sizeof *p);
    p->arena = a;
    p->workload = arena_strdup(a, from->meta.workload);
    p->plan = arena_strdup(a, from->meta.plan);
    p->device = session_functions(s)->name;
    p->source = from->meta.samples ? PROFILE_FROM_SAMPLES : PROFILE_FROM_MODEL;
    p->clock_hz = TARGET_CLOCK_HZ;
    p->cycles_predicted = from->meta.cycles_predicted;
    p->peak_tile_bytes = from->meta.peak_tile_bytes;
    p->row_bytes_max = from->meta.row_bytes_max;
    p->n_tiles = from->meta.n_tiles;
    take_steps(p, from);
    const uint64_t origin = take_intervals(p, s);
    take_phases(p, s, origin);
    return p;
}

/* --- Sums --- */

/* Phases by step, in order of time. */
struct phase_index {
    uint32_t *first; /* [n_steps + 1] */
    const struct profile_phase **phase;
};

static struct phase_index phase_index_new(const struct profile *p) {
    struct phase_index x = {.first = g_new0(uint32_t, p->n_steps + 2),
                            .phase = g_new(const struct profile_phase *, p->n_phases + 1)};
    uint32_t *first = x.first + 1;
    for (uint32_t i = 0; i < p->n_phases; i++) first[p->phases[i].step + 1]++;
    for (uint32_t s = 0; s < p->n_steps; s++) first[s + 1] += first[s];
    for (uint32_t i = 0; i < p->n_phases; i++) x.phase[first[p->phases[i].step]++] = &p->phases[i];
    return x;
}

/* Adds what a tile did. Its intervals of an exchange step are the last of the step's phases: earlier
 * ones are cropped or have no samples. */
static void add_tile(const struct profile *p, const struct phase_index *x, uint32_t t,
                     uint32_t *behind, struct profile_shares *sum) {
    memset(behind, 0, sizeof *behind * p->n_steps);
    for (uint32_t i = p->first[t + 1]; i-- > p->first[t];) {
        const struct profile_interval *v = &p->intervals[i];
        const uint32_t length = v->end - v->start, n = x->first[v->step + 1] - x->first[v->step];
        if (p->steps[v->step].kind == PROFILE_COMPUTE) sum->compute += length;
        if (p->steps[v->step].kind == PROFILE_REPEAT) sum->unsampled += length;
        if (p->steps[v->step].kind != PROFILE_EXCHANGE || behind[v->step] == n) continue;
        const struct profile_phase *f = x->phase[x->first[v->step + 1] - ++behind[v->step]];
        if (v->calls != 0) sum->exchange += v->end - CLAMP(f->last_entry, v->start, v->end);
    }
}

void profile_shares(const struct profile *p, struct profile_shares *ret) {
    struct phase_index x = phase_index_new(p);
    uint32_t *behind = g_new(uint32_t, p->n_steps + 1);
    struct profile_shares sum = {0};
    for (uint32_t t = 0; t < p->n_tiles; t++) add_tile(p, &x, t, behind, &sum);
    g_free(behind);
    g_free(x.first);
    g_free(x.phase);
    const double all = (double)p->cycles_measured * p->n_tiles;
    *ret = (struct profile_shares){.wait = 1};
    if (all <= 0) return;
    ret->exchange = sum.exchange / all;
    ret->compute = sum.compute / all;
    ret->unsampled = sum.unsampled / all;
    ret->wait = 1 - ret->exchange - ret->compute - ret->unsampled;
}
