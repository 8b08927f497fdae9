/* The profile page: one self-contained file made from page.html. Intervals are written as
 * variable-length numbers in the order in which the page reads them, compressed with zlib (which
 * browsers inflate by themselves) and embedded in base64; everything else is a small JSON object. */
#include "profile/profile.h"

#include "profile/profile_page_html.h"

#include <gio/gio.h>
#include <string.h>

/* --- Intervals --- */

static void put_u(GByteArray *out, uint64_t v) {
    uint8_t bytes[10], n = 0;
    while (v > 127) {
        bytes[n++] = (uint8_t)(v | 128);
        v >>= 7;
    }
    bytes[n++] = (uint8_t)v;
    g_byte_array_append(out, bytes, n);
}

static void put_z(GByteArray *out, int64_t v) {
    put_u(out, v < 0 ? (uint64_t)(-2 * v - 1) : (uint64_t)(2 * v));
}

static GByteArray *intervals_bytes(const struct profile *p) {
    GByteArray *out = g_byte_array_new();
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        uint32_t step = 0, at = 0;
        put_u(out, p->first[t + 1] - p->first[t]);
        for (uint32_t i = p->first[t]; i < p->first[t + 1]; i++) {
            const struct profile_interval *v = &p->intervals[i];
            put_z(out, (int64_t)v->step - step);
            put_u(out, v->kernel == TG_NONE ? 0 : (uint64_t)v->kernel + 1);
            put_u(out, v->calls);
            put_u(out, v->start - at);
            put_u(out, v->end - v->start);
            put_z(out, (int64_t)v->predicted - (v->end - v->start));
            put_u(out, v->send_words);
            put_u(out, v->receive_words);
            step = v->step;
            at = v->end;
        }
    }
    return out;
}

static GByteArray *deflate(const GByteArray *raw) {
    GConverter *z = G_CONVERTER(g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_ZLIB, 6));
    GByteArray *out = g_byte_array_new();
    g_byte_array_set_size(out, raw->len + raw->len / 100 + 1024);
    gsize in = 0, done = 0;
    for (GConverterResult r = G_CONVERTER_CONVERTED; r != G_CONVERTER_FINISHED;) {
        gsize took, gave;
        r = g_converter_convert(z, raw->data + in, raw->len - in, out->data + done,
                                out->len - done, G_CONVERTER_INPUT_AT_END, &took, &gave, NULL);
        BUG_ON(r == G_CONVERTER_ERROR);
        in += took;
        done += gave;
    }
    g_byte_array_set_size(out, (guint)done);
    g_object_unref(z);
    return out;
}

/* --- The JSON object --- */

static void put_kernels(const struct profile *p, GString *out) {
    bool *used = g_new0(bool, p->n_names + 1);
    for (uint32_t i = 0; i < p->first[p->n_tiles]; i++)
        if (p->intervals[i].kernel != TG_NONE) used[p->intervals[i].kernel] = true;
    const char *comma = "";
    for (uint32_t i = 0; i < p->n_names; i++) {
        if (!used[i]) continue;
        g_string_append_printf(out, "%s%u", comma, i);
        comma = ",";
    }
    g_free(used);
}

/* kind, operation, reason, horizon; of an exchange also transfers, endpoint bound, bound, row bytes
 * and the tile that has them. */
static void put_step(const struct profile_step *s, const char *comma, GString *out) {
    g_string_append_printf(out, "%s[%u,%u,%u,%u", comma, s->kind, s->operation, s->reason, s->horizon);
    if (s->kind == PROFILE_EXCHANGE)
        g_string_append_printf(out, ",%u,%u,%u,%u,%u", s->transfers, s->endpoint_bound, s->bound,
                               s->row_bytes_max, s->row_bytes_tile);
    g_string_append_c(out, ']');
}

static char *meta_json(const struct profile *p) {
    GString *out = g_string_new("{\"workload\":");
    json_string(p->workload, out);
    g_string_append(out, ",\"device\":");
    json_string(p->device, out);
    g_string_append(out, ",\"plan\":");
    json_string(p->plan, out);
    g_string_append_printf(
        out,
        ",\"source\":\"%s\",\"tiles\":%u,\"intervals\":%u,\"clock\":%" G_GUINT64_FORMAT
        ",\"cycles\":%" G_GUINT64_FORMAT ",\"predicted\":%" G_GUINT64_FORMAT
        ",\"exchange\":%" G_GUINT64_FORMAT ",\"peak\":%u,\"rows\":%u,\"names\":[",
        p->source == PROFILE_FROM_SAMPLES ? "cycle samples of the program" : "clock of the model",
        p->n_tiles, p->first[p->n_tiles], p->clock_hz, p->cycles_measured, p->cycles_predicted,
        p->exchange_cycles, p->peak_tile_bytes, p->row_bytes_max);
    for (uint32_t i = 0; i < p->n_names; i++) {
        if (i != 0) g_string_append_c(out, ',');
        json_string(p->names[i], out);
    }
    g_string_append(out, "],\"kernels\":[");
    put_kernels(p, out);
    g_string_append(out, "],\"steps\":[");
    for (uint32_t i = 0; i < p->n_steps; i++)
        put_step(&p->steps[i], i != 0 ? "," : "", out);
    g_string_append(out, "],\"phases\":[");
    for (uint32_t i = 0; i < p->n_phases; i++) {
        const struct profile_phase *f = &p->phases[i];
        g_string_append_printf(out, "%s[%u,%u,%u,%u,%u]", i != 0 ? "," : "", f->step,
                               f->first_entry, f->last_entry, f->last_exit, f->last_tile);
    }
    g_string_append(out, "]}");
    return g_string_free(out, false);
}

/* --- The page --- */

/* Appends the template up to the placeholder and returns what follows it. */
static const char *until(const char *from, const char *placeholder, GString *out) {
    const char *at = strstr(from, placeholder);
    BUG_ON(at == NULL);
    g_string_append_len(out, from, at - from);
    return at + strlen(placeholder);
}

bool profile_page_write(const struct profile *p, const char *path, GError **error) {
    GByteArray *raw = intervals_bytes(p), *packed = deflate(raw);
    gchar *base64 = g_base64_encode(packed->data, packed->len);
    char *meta = meta_json(p);
    gchar *title = g_markup_escape_text(p->workload[0] != 0 ? p->workload : "profile", -1);
    GString *page = g_string_new(NULL);
    const char *rest = until((const char *)profile_page_html, "@TITLE@", page);
    g_string_append(page, title);
    rest = until(rest, "@META@", page);
    g_string_append(page, meta);
    rest = until(rest, "@DATA@", page);
    g_string_append(page, base64);
    g_string_append(page, rest);
    const bool ok = file_write_atomic(path, page->str, page->len, error);
    g_string_free(page, true);
    g_free(title);
    g_free(meta);
    g_free(base64);
    g_byte_array_free(packed, true);
    g_byte_array_free(raw, true);
    return ok;
}
