/* Profiles of a network with a repeat, by the model's clock and by samples of the program: every cycle
 * of a tile belongs to one interval, and what was not sampled is charged to no step. */
#include "profile/profile.h"

#include "../cli_spawn.h"

enum { LAYERS = 3, SAMPLE_CYCLES = 200 /* more than sampling code takes at a step's ends */ };

static struct profile *profile_of(const char *options) {
    char *dir = cli_temp_dir(), *path = g_build_filename(dir, "p.ipuprof", NULL);
    char *line = g_strdup_printf("e2e-test --workload siglip-vit-benchmark --vit-small --tiles 64 "
                                 "--vit-layers %d --profile-output %s %s",
                                 LAYERS, path, options);
    cli_expect(line, 0, "");
    GError *error = NULL;
    struct profile *p = profile_read(path, &error);
    g_assert_no_error(error);
    g_free(line);
    g_free(path);
    cli_temp_remove(dir);
    return p;
}

/* Intervals follow each other without a gap; the lengths of a tile's steps add up to its time. */
static void check_sums(const struct profile *p) {
    uint64_t *step = g_new0(uint64_t, p->n_steps);
    uint32_t last = 0;
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        const uint32_t end = p->first[t + 1];
        memset(step, 0, sizeof *step * p->n_steps);
        for (uint32_t i = p->first[t]; i < end; i++) {
            const struct profile_interval *v = &p->intervals[i];
            if (i != p->first[t]) g_assert_cmpuint(v->start, ==, v[-1].end);
            step[v->step] += v->end - v->start;
        }
        uint64_t sum = 0;
        for (uint32_t s = 0; s < p->n_steps; s++) sum += step[s];
        g_assert_cmpuint(sum, ==, p->intervals[end - 1].end - p->intervals[p->first[t]].start);
        last = MAX(last, p->intervals[end - 1].end);
    }
    g_assert_cmpuint(last, ==, p->cycles_measured);
    struct profile_shares s;
    profile_shares(p, &s);
    g_assert_cmpfloat_with_epsilon(s.compute + s.exchange + s.wait + s.unsampled, 1, 1e-9);
    g_free(step);
}

static uint32_t *longest_steps(const struct profile *p) {
    uint32_t *longest = g_new0(uint32_t, p->n_steps);
    for (uint32_t i = 0; i < p->first[p->n_tiles]; i++) {
        const struct profile_interval *v = &p->intervals[i];
        longest[v->step] = MAX(longest[v->step], v->end - v->start);
    }
    return longest;
}

static uint32_t count(const struct profile *p, uint32_t kind) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->first[p->n_tiles]; i++)
        n += p->steps[p->intervals[i].step].kind == kind;
    return n;
}

static void test_repeat(void) {
    struct profile *model = profile_of(""), *samples = profile_of("--sample-cycles");
    check_sums(model);
    check_sums(samples);
    g_assert_cmpuint(count(model, PROFILE_REPEAT), ==, 0);
    g_assert_cmpuint(count(samples, PROFILE_REPEAT), ==, samples->n_tiles);
    uint32_t *a = longest_steps(model), *b = longest_steps(samples);
    g_assert_cmpuint(model->n_steps, ==, samples->n_steps);
    for (uint32_t s = 0; s < samples->n_steps; s++) {
        if (samples->steps[s].kind == PROFILE_REPEAT && b[s] != 0) {
            /* Two of three equal layers. */
            g_assert_cmpuint(b[s], >, samples->cycles_measured * 4 / 10);
            g_assert_cmpuint(b[s], <, samples->cycles_measured * 6 / 10);
        }
        if (samples->steps[s].kind == PROFILE_COMPUTE)
            g_assert_cmpuint(b[s], <, a[s] + SAMPLE_CYCLES);
    }
    for (uint32_t i = 0; i < samples->first[samples->n_tiles]; i++)
        if (samples->steps[samples->intervals[i].step].kind == PROFILE_REPEAT)
            g_assert_cmpuint(samples->intervals[i].calls, ==, LAYERS - 1);
    g_free(a);
    g_free(b);
    profile_free(model);
    profile_free(samples);
}

/* All phases of a repeat count, not those of its last iteration alone. */
static void test_shares(void) {
    struct profile *p = profile_of("");
    struct profile_shares s;
    profile_shares(p, &s);
    double cycles = 0;
    for (uint32_t i = 0; i < p->n_phases; i++) {
        const struct profile_phase *f = &p->phases[i];
        cycles += (double)(f->last_exit - f->last_entry) * f->active;
    }
    /* A tile leaves when its own row ends, which is before the last exit. */
    const double most = cycles / (double)p->cycles_measured / p->n_tiles;
    g_assert_cmpfloat(s.exchange, <, 1.05 * most);
    g_assert_cmpfloat(s.exchange, >, 0.7 * most);
    profile_free(p);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/profile/repeat", test_repeat);
    g_test_add_func("/profile/shares", test_shares);
    return g_test_run();
}
