/* Reports of a diagnostic run, for people and as JSON. */
#include "runtime/diagnostic.h"

#include <math.h>

static void print_entry(const struct diagnostic_entry *e, GString *out) {
    g_string_append_printf(out, "  %4u %-10s %-24s", e->op, e->kind, e->name);
    g_string_append_printf(out, " turn %-3u step %-4u %10" G_GUINT64_FORMAT " values", e->iteration,
                           e->step, e->n_values);
    if (e->n_values == 0)
        g_string_append(out, "  NOT COMPARED\n");
    else
        g_string_append_printf(out, "  max error %-10.4g cosine %.7f  %s\n", e->max_abs_error,
                               e->cosine, diagnostic_entry_pass(e) ? "pass" : "FAIL");
}

static void print_first(const struct package *p, const struct diagnostic_entry *e, GString *out) {
    const struct diagnostic_place *x = &e->first_failed;
    g_string_append_printf(out, "first      operation %u, %s '%s', iteration %u", e->op, e->kind,
                           e->name, e->iteration);
    if (e->n_failed == 0) {
        g_string_append(out, ": no place of it was compared\n");
        return;
    }
    g_string_append_printf(out, ": %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                                " values outside the limits\n",
                           e->n_failed, e->n_values);
    g_string_append_printf(out, "           element %" G_GUINT64_FORMAT " is %.9g, the reference has "
                                "%.9g\n",
                           x->element, (double)x->computed, (double)x->expected);
    g_string_append_printf(out, "           behind step %u (%s, %s) on tile %u at 0x%x: ", x->step,
                           p->names[p->steps[x->step].operation],
                           p->names[p->steps[x->step].reason], x->tile, x->address);
    package_owner_print(p, x->tile, x->address, x->step, out);
    g_string_append_c(out, '\n');
}

void diagnostic_print(struct diagnostic *d, GString *out) {
    const struct diagnostic_entry *e;
    const uint32_t n = diagnostic_entries(d, &e);
    uint32_t n_pass = 0, *missing;
    for (uint32_t i = 0; i < n; i++) n_pass += diagnostic_entry_pass(&e[i]);
    const uint32_t n_missing = diagnostic_missing(d, &missing);
    g_string_append_printf(out, "intermediates  %u compared, %u pass, %u not stored (fused into the "
                                "operation that reads them, or views)\n",
                           n, n_pass, n_missing);
    g_free(missing);
    for (uint32_t i = 0; i < n; i++) print_entry(&e[i], out);
    const struct diagnostic_entry *first = diagnostic_first(d);
    if (first != NULL) print_first(diagnostic_given(d)->package, first, out);
}

static void json_number(const char *key, double v, GString *out) {
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (isfinite(v))
        g_string_append_printf(out, ",\"%s\":%s", key,
                               g_ascii_formatd(text, sizeof text, "%.9g", v));
    else
        g_string_append_printf(out, ",\"%s\":null", key);
}

static void json_entry_open(const struct diagnostic_entry *e, GString *out) {
    g_string_append_printf(out, "{\"op\":%u,\"kind\":\"%s\",\"operation\":", e->op, e->kind);
    json_string(e->name, out);
    g_string_append_printf(out, ",\"iteration\":%u", e->iteration);
}

static void json_entry(const struct diagnostic_entry *e, GString *out) {
    json_entry_open(e, out);
    g_string_append_printf(out, ",\"step\":%u,\"elements\":%" G_GUINT64_FORMAT ",\"values_checked\":%"
                                G_GUINT64_FORMAT ",\"values_failed\":%" G_GUINT64_FORMAT,
                           e->step, e->elements, e->n_values, e->n_failed);
    json_number("max_abs_error", e->n_values != 0 ? e->max_abs_error : (double)NAN, out);
    json_number("cosine", e->cosine, out);
    if (e->n_values != 0)
        g_string_append_printf(out, ",\"worst_index\":%" G_GUINT64_FORMAT ",\"worst_tile\":%u",
                               e->worst.element, e->worst.tile);
    g_string_append_printf(out, ",\"pass\":%s}", diagnostic_entry_pass(e) ? "true" : "false");
}

static void json_first(const struct package *p, const struct diagnostic_entry *e, GString *out) {
    const struct diagnostic_place *x = &e->first_failed;
    json_entry_open(e, out);
    if (e->n_failed != 0) {
        GString *owner = g_string_new(NULL);
        package_owner_print(p, x->tile, x->address, x->step, owner);
        g_string_append_printf(out, ",\"index\":%" G_GUINT64_FORMAT ",\"tile\":%u,\"address\":%u",
                               x->element, x->tile, x->address);
        g_string_append(out, ",\"owner\":");
        json_string(owner->str, out);
        g_string_append_printf(out, ",\"step\":%u,\"step_operation\":", x->step);
        json_string(p->names[p->steps[x->step].operation], out);
        g_string_append(out, ",\"step_reason\":");
        json_string(p->names[p->steps[x->step].reason], out);
        json_number("computed", (double)x->computed, out);
        json_number("expected", (double)x->expected, out);
        g_string_free(owner, true);
    }
    g_string_append_c(out, '}');
}

void diagnostic_json(struct diagnostic *d, GString *out) {
    const struct diagnostic_entry *e;
    const uint32_t n = diagnostic_entries(d, &e);
    g_string_append(out, ",\"intermediates\":[");
    for (uint32_t i = 0; i < n; i++) {
        if (i != 0) g_string_append_c(out, ',');
        json_entry(&e[i], out);
    }
    g_string_append_printf(out, "],\"intermediates_pass\":%s,\"not_stored\":[",
                           diagnostic_pass(d) ? "true" : "false");
    uint32_t *missing;
    const uint32_t n_missing = diagnostic_missing(d, &missing);
    for (uint32_t i = 0; i < n_missing; i++) {
        if (i != 0) g_string_append_c(out, ',');
        json_string(diagnostic_given(d)->graph->values[missing[i]].name, out);
    }
    g_free(missing);
    g_string_append(out, "],\"first_divergence\":");
    const struct diagnostic_entry *first = diagnostic_first(d);
    if (first != NULL) json_first(diagnostic_given(d)->package, first, out);
    else g_string_append(out, "null");
}
