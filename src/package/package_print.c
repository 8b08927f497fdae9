/* What a package holds, for people and as JSON. */
#include "package/package.h"

static void print_shape(const struct package_binding *b, GString *out) {
    g_string_append_c(out, '[');
    for (uint32_t d = 0; d < b->n_dims; d++)
        g_string_append_printf(out, "%s%u", d != 0 ? ", " : "", b->shape[d]);
    g_string_append_c(out, ']');
}

static uint64_t tile_bytes(const struct package *p, uint32_t tile, uint32_t kind) {
    uint64_t n = 0;
    for (uint32_t i = p->first_segment[tile]; i < p->first_segment[tile + 1]; i++)
        if (p->segments[i].kind == kind) n += p->segments[i].bytes;
    return n;
}

static const char *const binding_kind[] = {"input", "output", "parameter", "result"};
static const char *const step_kind[] = {"exchange", "compute", "repeat", "end"};

static void print_bindings(const struct package *p, GString *out) {
    g_string_append(out, "tensors\n");
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        g_string_append_printf(out, "  %-9s %-24s %s ", binding_kind[b->kind], b->name,
                               package_format_name(b->format));
        print_shape(b, out);
        g_string_append_printf(out, ", %u slices", b->end_slice - b->first_slice);
        if (b->bound != 0) g_string_append_printf(out, ", indices below %u", b->bound);
        if (b->kind == TG_BIND_PARAMETER && b->data == NULL)
            g_string_append(out, ", values not in the package");
        g_string_append_c(out, '\n');
    }
}

static void print_steps(const struct package *p, GString *out) {
    g_string_append(out, "steps\n");
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct package_step *s = &p->steps[i];
        g_string_append_printf(out, "  %4u %-8s %-24s %-12s", i, step_kind[s->kind],
                               p->names[s->operation], p->names[s->reason]);
        if (s->kind == TG_EXCHANGE)
            g_string_append_printf(out, " horizon %u (bound %u), %u transfers, %u messages, %"
                                   G_GUINT64_FORMAT " words, rows %u B",
                                   s->horizon, s->bound, s->transfers, s->messages, s->words,
                                   s->row_bytes_max);
        if (s->kind == TG_REPEAT_BEGIN) g_string_append_printf(out, " %u times", s->count);
        g_string_append_c(out, '\n');
    }
}

void package_print(const struct package *p, GString *out) {
    const struct package_meta *m = &p->meta;
    g_string_append_printf(out, "package     schema %d, %s, by %s\n", PACKAGE_SCHEMA, m->target,
                           m->compiler);
    if (m->workload[0] != 0) g_string_append_printf(out, "workload    %s\n", m->workload);
    g_string_append_printf(out, "instructions table %s\n", m->isa_version);
    g_string_append_printf(out, "tiles       %u, %u of them active\n", m->n_tiles,
                           m->n_active_tiles);
    g_string_append_printf(out, "predicted   %" G_GUINT64_FORMAT " cycles, exchange %" G_GUINT64_FORMAT
                                "\n",
                           m->cycles_predicted, m->exchange_cycles_predicted);
    g_string_append_printf(out, "SRAM        %u B on the tightest tile (%u); code %" G_GUINT64_FORMAT
                                " B, programs up to %u B, rows up to %u B\n",
                           m->peak_tile_bytes, m->peak_tile,
                           tile_bytes(p, 0, PACKAGE_SEGMENT_CODE), m->program_bytes_max,
                           m->row_bytes_max);
    g_string_append_printf(out, "sampling    %s\n", m->samples ? "in the programs" : "none");
    g_string_append_printf(out, "file        %" G_GUINT64_FORMAT " B\n", p->file_bytes);
    if (m->plan[0] != 0) g_string_append_printf(out, "plan\n%s", m->plan);
    print_bindings(p, out);
    print_steps(p, out);
}

static void json_bindings(const struct package *p, GString *out) {
    g_string_append(out, ",\"tensors\":[");
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        g_string_append_printf(out, "%s{\"name\":", i != 0 ? "," : "");
        json_string(b->name, out);
        g_string_append_printf(out, ",\"kind\":\"%s\",\"format\":\"%s\",\"scale\":%d,\"shape\":",
                               binding_kind[b->kind], package_format_name(b->format), b->scale);
        print_shape(b, out);
        if (b->bound != 0) g_string_append_printf(out, ",\"bound\":%u", b->bound);
        g_string_append_printf(out, ",\"slices\":%u,\"has_data\":%s}",
                               b->end_slice - b->first_slice, b->data != NULL ? "true" : "false");
    }
    g_string_append_c(out, ']');
}

void package_phase_json(const struct package_step *s, GString *out) {
    g_string_append_printf(out,
                           ",\"transfers\":%u,\"messages\":%u,\"words\":%" G_GUINT64_FORMAT
                           ",\"endpoint_bound\":%u,\"bound\":%u,\"horizon\":%u"
                           ",\"row_bytes_max\":%u,\"row_bytes_tile\":%u",
                           s->transfers, s->messages, s->words, s->endpoint_bound, s->bound,
                           s->horizon, s->row_bytes_max, s->row_bytes_tile);
}

static void json_steps(const struct package *p, GString *out) {
    g_string_append(out, ",\"steps\":[");
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct package_step *s = &p->steps[i];
        g_string_append_printf(out, "%s{\"kind\":\"%s\",\"operation\":", i != 0 ? "," : "",
                               step_kind[s->kind]);
        json_string(p->names[s->operation], out);
        g_string_append(out, ",\"reason\":");
        json_string(p->names[s->reason], out);
        if (s->kind == TG_EXCHANGE)
            package_phase_json(s, out);
        if (s->kind == TG_REPEAT_BEGIN) g_string_append_printf(out, ",\"count\":%u", s->count);
        g_string_append_c(out, '}');
    }
    g_string_append_c(out, ']');
}

void package_json(const struct package *p, GString *out) {
    const struct package_meta *m = &p->meta;
    g_string_append_printf(out, "{\"schema\":%d,\"target\":", PACKAGE_SCHEMA);
    json_string(m->target, out);
    g_string_append(out, ",\"compiler\":");
    json_string(m->compiler, out);
    g_string_append(out, ",\"workload\":");
    json_string(m->workload, out);
    g_string_append(out, ",\"isa_version\":");
    json_string(m->isa_version, out);
    g_string_append_printf(
        out,
        ",\"tiles\":%u,\"active_tiles\":%u,\"entry\":%u,\"samples\":%s,\"cycles_predicted\":%"
        G_GUINT64_FORMAT ",\"exchange_cycles_predicted\":%" G_GUINT64_FORMAT
        ",\"peak_tile_bytes\":%u,\"peak_tile\":%u,\"row_bytes_max\":%u,\"program_bytes_max\":%u,"
        "\"package_bytes\":%" G_GUINT64_FORMAT,
        m->n_tiles, m->n_active_tiles, m->entry, m->samples ? "true" : "false",
        m->cycles_predicted, m->exchange_cycles_predicted, m->peak_tile_bytes, m->peak_tile,
        m->row_bytes_max, m->program_bytes_max, p->file_bytes);
    json_bindings(p, out);
    json_steps(p, out);
    g_string_append(out, "}\n");
}
