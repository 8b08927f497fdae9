/* The placement page: one self-contained file made from place_page.html. The tiles' summaries are a
 * small JSON object in plain text; the requests with their addresses are JSON, compressed with zlib
 * (browsers inflate it by themselves) and embedded in base64. */
#include "place/place_report.h"

#include "place/place_page_html.h"

#include <gio/gio.h>
#include <string.h>

static void put_string(GString *out, const char *s) {
    g_string_append_c(out, '"');
    for (const unsigned char *c = (const unsigned char *)s; *c != 0; c++) {
        if (*c == '"' || *c == '\\') g_string_append_c(out, '\\');
        /* '<' would end the script element that holds the text. */
        if (*c < 32 || *c == '<') g_string_append_printf(out, "\\u%04x", *c);
        else g_string_append_c(out, (char)*c);
    }
    g_string_append_c(out, '"');
}

/* [address, bytes, tail, first, last, name, kind, flags, blocks, stride, alias] of every request.
 */
static void put_requests(GString *out, const struct place_problem *p,
                         const struct place_result *r) {
    g_string_append(out, "{\"names\":[");
    for (uint32_t i = 0; i < p->n_names; i++) {
        if (i != 0) g_string_append_c(out, ',');
        put_string(out, p->name[i]);
    }
    g_string_append(out, "],\"tiles\":[");
    for (uint32_t t = 0; t < p->n_tiles; t++) {
        g_string_append(out, t == 0 ? "[" : ",[");
        for (uint32_t i = p->first[t]; i < p->first[t + 1]; i++) {
            const struct place_request *q = &p->request[i];
            g_string_append_printf(
                out, "%s[%u,%" G_GUINT64_FORMAT ",%u,%u,%u,%u,%u,%u,%u,%u,%u]",
                i == p->first[t] ? "" : ",", r->address[i], place_request_extent(q), q->tail_bytes,
                q->first_step, q->last_step, q->name, q->kind, q->flags, q->n_blocks,
                q->n_blocks > 1 ? place_request_stride(q) : 0, q->flags & PLACE_ALIAS ? 1U : 0U);
        }
        g_string_append_c(out, ']');
    }
    g_string_append(out, "]}");
}

static char *deflate_base64(const GString *raw) {
    GConverter *z = G_CONVERTER(g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_ZLIB, 6));
    const size_t room = raw->len + raw->len / 100 + 1024;
    uint8_t *out = g_malloc(room);
    gsize in = 0, done = 0;
    GConverterResult rc = G_CONVERTER_CONVERTED;
    while (rc != G_CONVERTER_FINISHED && rc != G_CONVERTER_ERROR) {
        gsize read, written;
        rc = g_converter_convert(z, raw->str + in, raw->len - in, out + done, room - done,
                                 G_CONVERTER_INPUT_AT_END, &read, &written, NULL);
        in += read;
        done += written;
    }
    BUG_ON(rc == G_CONVERTER_ERROR);
    g_object_unref(z);
    char *text = g_base64_encode(out, done);
    g_free(out);
    return text;
}

static void put_memory(GString *out, const struct place_memory *m) {
    g_string_append_printf(
        out, "{\"base\":%u,\"end\":%u,\"inter\":%u,\"el\":%u,\"iel\":%u,\"closed\":[", m->base,
        m->end, m->interleaved_base, m->element_bytes, m->interleaved_element_bytes);
    uint32_t at = m->base;
    for (uint32_t i = 0; i <= m->n_ranges; i++) {
        const uint32_t next = i < m->n_ranges ? m->range_base[i] : m->end;
        g_string_append_printf(out, "%s[%u,%u]", i == 0 ? "" : ",", at, next);
        if (i < m->n_ranges) at = m->range_end[i];
    }
    g_string_append(out, "]}");
}

static const struct place_proof *proof_of(const struct place_result *r, uint32_t tile) {
    for (uint32_t i = 0; i < r->n_proofs; i++)
        if (r->proof[i].tile == tile) return &r->proof[i];
    return NULL;
}

static void put_tile(GString *out, const struct place_problem *p, const struct place_result *r,
                     uint32_t tile) {
    struct place_tile_summary s;
    place_tile_summarise(p, r, tile, &s);
    g_string_append_printf(out,
                           "{\"tile\":%u,\"status\":\"%s\",\"peak\":%" G_GUINT64_FORMAT
                           ",\"step\":%u,\"usable\":%" G_GUINT64_FORMAT,
                           tile, place_status_name(r->tile_status[tile]), s.peak_bytes, s.peak_step,
                           s.usable_bytes);
    const struct place_proof *proof = proof_of(r, tile);
    if (proof != NULL) {
        GString *text = g_string_new(NULL);
        place_proof_print(p, proof, text);
        g_string_append(out, ",\"proof\":");
        put_string(out, text->str);
        g_string_free(text, TRUE);
    }
    g_string_append_c(out, '}');
    place_tile_summary_clear(&s);
}

static void put_meta(GString *out, const struct place_problem *p, const struct place_result *r) {
    g_string_append_printf(out, "{\"status\":\"%s\",\"requests\":%u,\"distinct\":%u,\"memory\":",
                           place_status_name(r->status), p->n_requests, r->n_distinct);
    put_memory(out, &p->memory);
    g_string_append(out, ",\"kinds\":[");
    for (uint32_t k = 0; k < PLACE_N_KINDS; k++) {
        if (k != 0) g_string_append_c(out, ',');
        put_string(out, place_kind_name(k));
    }
    g_string_append(out, "],\"tiles\":[");
    uint32_t *tile = place_tiles_tightest(p, r);
    for (uint32_t i = 0; i < p->n_tiles; i++) {
        if (i != 0) g_string_append_c(out, ',');
        put_tile(out, p, r, tile[i]);
    }
    g_free(tile);
    g_string_append(out, "]}");
}

bool place_page_write(const struct place_problem *p, const struct place_result *r, const char *path,
                      GError **error) {
    const char *html = (const char *)place_page_html;
    const char *meta_at = strstr(html, "@META@"), *data_at = strstr(html, "@DATA@");
    BUG_ON(meta_at == NULL || data_at == NULL || meta_at > data_at);
    GString *raw = g_string_new(NULL), *page = g_string_new_len(html, meta_at - html);
    put_meta(page, p, r);
    g_string_append_len(page, meta_at + 6, data_at - meta_at - 6);
    put_requests(raw, p, r);
    char *data = deflate_base64(raw);
    g_string_append(page, data);
    g_string_append(page, data_at + 6);
    g_free(data);
    g_string_free(raw, TRUE);
    const bool ok = file_write_atomic(path, page->str, page->len, error);
    g_string_free(page, TRUE);
    return ok;
}
