/* A profile in a few lines, and as JSON: the run as a whole, then every step. */
#include "profile/profile.h"

struct step_sum {
    uint32_t tiles;       /* with work in it */
    uint64_t cycles, max; /* summed over tiles; longest on one tile */
    uint32_t start, end;  /* first start, last end */
    uint64_t wait;        /* EXCHANGE: arrival spread, summed over phases */
    uint32_t kernel, calls; /* of the last interval */
};

static struct step_sum *sum_steps(const struct profile *p) {
    struct step_sum *sum = g_new0(struct step_sum, p->n_steps + 1);
    for (uint32_t i = 0; i < p->n_steps; i++) {
        sum[i].start = UINT32_MAX;
        sum[i].kernel = TG_NONE;
    }
    for (uint32_t i = 0; i < p->first[p->n_tiles]; i++) {
        const struct profile_interval *v = &p->intervals[i];
        struct step_sum *s = &sum[v->step];
        s->start = MIN(s->start, v->start);
        s->end = MAX(s->end, v->end);
        if (v->calls == 0) continue;
        s->tiles++;
        s->calls = v->calls;
        s->cycles += v->end - v->start;
        s->max = MAX(s->max, v->end - v->start);
        if (s->kernel == TG_NONE) s->kernel = v->kernel;
    }
    for (uint32_t i = 0; i < p->n_phases; i++)
        sum[p->phases[i].step].wait += p->phases[i].last_entry - p->phases[i].first_entry;
    return sum;
}

static void print_head(const struct profile *p, GString *out) {
    struct profile_shares s;
    profile_shares(p, &s);
    g_string_append_printf(out, "workload   %s on %u tiles, %s\n",
                           p->workload[0] != 0 ? p->workload : "(none)", p->n_tiles, p->device);
    g_string_append_printf(out, "cycles     %" G_GUINT64_FORMAT " measured%s, %" G_GUINT64_FORMAT
                                " predicted, %.3f ms at %.2f GHz\n",
                           p->cycles_measured,
                           p->source == PROFILE_FROM_SAMPLES ? " by samples" : "",
                           p->cycles_predicted,
                           1e3 * (double)p->cycles_measured / (double)p->clock_hz,
                           (double)p->clock_hz / 1e9);
    g_string_append_printf(out, "exchange   %" G_GUINT64_FORMAT " cycles in %u phases\n",
                           p->exchange_cycles, p->n_phases);
    g_string_append_printf(out, "tile time  compute %.1f %%, exchange %.1f %%, waiting %.1f %%",
                           100 * s.compute, 100 * s.exchange, 100 * s.wait);
    if (s.unsampled > 0)
        g_string_append_printf(out, ", iterations not sampled %.1f %%", 100 * s.unsampled);
    g_string_append_c(out, '\n');
    g_string_append_printf(out, "intervals  %u\n", p->first[p->n_tiles]);
}

void profile_print(const struct profile *p, GString *out) {
    print_head(p, out);
    struct step_sum *sum = sum_steps(p);
    g_string_append(out, "step  kind      start       end   tiles    longest  what\n");
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (sum[i].start == UINT32_MAX) continue;
        const struct profile_step *s = &p->steps[i];
        g_string_append_printf(out, "%4u  %-8s %8u  %8u  %6u  %9" G_GUINT64_FORMAT "  %s, %s", i,
                               profile_kind_name(s->kind), sum[i].start, sum[i].end, sum[i].tiles,
                               sum[i].max, p->names[s->operation],
                               p->names[s->reason]);
        if (sum[i].kernel != TG_NONE)
            g_string_append_printf(out, ", %s", p->names[sum[i].kernel]);
        if (s->kind == PROFILE_EXCHANGE)
            g_string_append_printf(out, ", horizon %u (bound %u), %u transfers, rows %u B, arrival "
                                   "spread %" G_GUINT64_FORMAT,
                                   s->horizon, s->bound, s->transfers, s->row_bytes_max, sum[i].wait);
        if (s->kind == PROFILE_REPEAT)
            g_string_append_printf(out, ", %u iterations before the last, not sampled", sum[i].calls);
        g_string_append_c(out, '\n');
    }
    g_free(sum);
}

static void json_number(double v, GString *out) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(out, g_ascii_formatd(text, sizeof text, "%.6g", v));
}

static void json_steps(const struct profile *p, GString *out) {
    struct step_sum *sum = sum_steps(p);
    const char *comma = "";
    for (uint32_t i = 0; i < p->n_steps; i++) {
        if (sum[i].start == UINT32_MAX) continue;
        const struct profile_step *s = &p->steps[i];
        g_string_append_printf(out, "%s{\"step\":%u,\"kind\":\"%s\",\"operation\":", comma, i,
                               profile_kind_name(s->kind));
        json_string(p->names[s->operation], out);
        g_string_append(out, ",\"reason\":");
        json_string(p->names[s->reason], out);
        g_string_append(out, ",\"kernel\":");
        if (sum[i].kernel != TG_NONE) json_string(p->names[sum[i].kernel], out);
        else g_string_append(out, "null");
        g_string_append_printf(out,
                               ",\"start\":%u,\"end\":%u,\"tiles\":%u,\"work_cycles\":%"
                               G_GUINT64_FORMAT ",\"longest\":%" G_GUINT64_FORMAT
                               ",\"horizon\":%u,\"transfers\":%u,\"messages\":%u"
                               ",\"endpoint_bound\":%u,\"bound\":%u,\"row_bytes_max\":%u"
                               ",\"row_bytes_tile\":%u,\"words\":%" G_GUINT64_FORMAT
                               ",\"arrival_spread\":%" G_GUINT64_FORMAT "}",
                               sum[i].start, sum[i].end, sum[i].tiles, sum[i].cycles, sum[i].max,
                               s->horizon, s->transfers, s->messages, s->endpoint_bound, s->bound,
                               s->row_bytes_max, s->row_bytes_tile, s->words, sum[i].wait);
        comma = ",";
    }
    g_free(sum);
}

void profile_json(const struct profile *p, GString *out) {
    struct profile_shares s;
    profile_shares(p, &s);
    g_string_append(out, "{\"workload\":");
    json_string(p->workload, out);
    g_string_append_printf(
        out,
        ",\"tiles\":%u,\"clock_hz\":%" G_GUINT64_FORMAT ",\"source\":\"%s\",\"cycles_measured\":%"
        G_GUINT64_FORMAT ",\"cycles_predicted\":%" G_GUINT64_FORMAT
        ",\"exchange_cycles\":%" G_GUINT64_FORMAT ",\"phases\":%u,\"intervals\":%u,"
        "\"compute_share\":",
        p->n_tiles, p->clock_hz, p->source == PROFILE_FROM_SAMPLES ? "samples" : "model",
        p->cycles_measured, p->cycles_predicted, p->exchange_cycles, p->n_phases,
        p->first[p->n_tiles]);
    json_number(s.compute, out);
    g_string_append(out, ",\"exchange_share\":");
    json_number(s.exchange, out);
    g_string_append(out, ",\"wait_share\":");
    json_number(s.wait, out);
    g_string_append(out, ",\"unsampled_share\":");
    json_number(s.unsampled, out);
    g_string_append(out, ",\"steps\":[");
    json_steps(p, out);
    g_string_append(out, "]}\n");
}
