/* Problem files in JSON, schema 4 of exchange phases (plain or zstd), read by a small scanner: the
 * files are large (millions of numbers) and of one shape, and a tree of boxed values would take 40
 * times the room. Unknown keys are refused, so nothing is silently skipped. */
#include "exchange/exch_file.h"

#include <string.h>

struct scan {
    const char *at, *end, *why;
};

static void space(struct scan *s) {
    while (s->at < s->end && strchr(" \t\r\n", *s->at) != NULL) s->at++;
}
static bool is(struct scan *s, char c) {
    space(s);
    if (s->at >= s->end || *s->at != c) return false;
    s->at++;
    return true;
}
static bool want(struct scan *s, char c) {
    if (is(s, c)) return true;
    if (s->why == NULL) s->why = "unexpected character";
    return false;
}
static bool number(struct scan *s, int64_t low, int64_t high, int64_t *ret) {
    space(s);
    const bool minus = s->at < s->end && *s->at == '-';
    if (minus) s->at++;
    int64_t v = 0;
    const char *first = s->at;
    while (s->at < s->end && *s->at >= '0' && *s->at <= '9' && v <= (INT64_C(1) << 40))
        v = v * 10 + (*s->at++ - '0');
    if (minus) v = -v;
    if (s->at == first || v < low || v > high) {
        if (s->why == NULL)
            s->why = s->at == first ? "a number is missing" : "a number is out of range";
        return false;
    }
    *ret = v;
    return true;
}
static bool u32(struct scan *s, uint32_t *ret) {
    int64_t v;
    if (!number(s, 0, UINT32_MAX, &v)) return false;
    *ret = (uint32_t)v;
    return true;
}
/* A string without escapes, at most 63 bytes. */
static bool string(struct scan *s, char ret[64]) {
    if (!want(s, '"')) return false;
    uint32_t n = 0;
    while (s->at < s->end && *s->at != '"' && *s->at != '\\' && n < 63) ret[n++] = *s->at++;
    ret[n] = 0;
    return want(s, '"');
}
/* Next key of an object: false at its end or on an error. `first` starts true. */
static bool key(struct scan *s, bool *first, char ret[64]) {
    if (is(s, '}')) return false;
    if (!*first && !want(s, ',')) return false;
    *first = false;
    return string(s, ret) && want(s, ':');
}
static bool element(struct scan *s, bool *first) {
    if (is(s, ']')) return false;
    if (!*first && !want(s, ',')) return false;
    *first = false;
    return true;
}
static bool refuse(struct scan *s, const char *why) {
    if (s->why == NULL) s->why = why;
    return false;
}

struct phase_data {
    GArray *source, *address, *words, *first, *tile, *at, *width, *stride, *dep, *first_dep;
    uint32_t number, n_iterations, row_address, row_bytes;
    bool moving, depends, widths;
};

static void data_new(struct phase_data *d) {
    GArray **all[] = {&d->source, &d->address, &d->words,  &d->first, &d->tile,
                      &d->at,     &d->width,   &d->stride, &d->dep,   &d->first_dep};
    *d = (struct phase_data){0};
    for (uint32_t i = 0; i < ARRAY_LEN(all); i++) *all[i] = g_array_new(FALSE, FALSE, 4);
}
static void data_free(struct phase_data *d) {
    GArray *all[] = {d->source, d->address, d->words,  d->first, d->tile,
                     d->at,     d->width,   d->stride, d->dep,   d->first_dep};
    for (uint32_t i = 0; i < ARRAY_LEN(all); i++) g_array_free(all[i], TRUE);
}
static void push(GArray *a, uint32_t v) {
    g_array_append_val(a, v);
}

/* One address, or one per iteration at a constant stride. */
static bool addresses(struct scan *s, struct phase_data *d) {
    if (!want(s, '[')) return false;
    uint32_t n = 0, first = 0, previous = 0;
    int32_t stride = 0;
    for (bool f = true; element(s, &f); n++) {
        uint32_t v;
        if (!u32(s, &v)) return false;
        if (n == 0) first = v;
        else if (n == 1) stride = (int32_t)(v - previous);
        else if ((int32_t)(v - previous) != stride)
            return refuse(s, "source addresses without a constant stride");
        previous = v;
    }
    if (n == 0) return refuse(s, "no source address");
    if (n > 1) {
        if (d->n_iterations > 1 && d->n_iterations != n && stride != 0)
            return refuse(s, "different numbers of iterations");
        if (stride != 0) d->n_iterations = n;
        d->moving |= stride != 0;
    }
    push(d->address, first);
    push(d->stride, (uint32_t)stride);
    return true;
}

static bool destinations(struct scan *s, struct phase_data *d) {
    if (!want(s, '[')) return false;
    for (bool f = true; element(s, &f);) {
        uint32_t tile, at;
        if (!want(s, '[') || !u32(s, &tile) || !want(s, ',') || !u32(s, &at) || !want(s, ']'))
            return false;
        if (tile > UINT16_MAX) return refuse(s, "a tile number is out of range");
        push(d->tile, tile);
        push(d->at, at);
    }
    return true;
}

/* The plain names say what the writer of a capture chose; only the last two are constraints. */
static const char *const width_names[] = {"Any", "Word32", "Paired64", "OnlyWord32",
                                          "OnlyPaired64"};

static bool width(struct scan *s, struct phase_data *d) {
    char text[64];
    if (!string(s, text)) return false;
    for (uint32_t i = 0; i < ARRAY_LEN(width_names); i++)
        if (strcmp(text, width_names[i]) == 0) {
            const uint32_t width = i < 3 ? EXCH_WIDTH_ANY : i - 2;
            d->widths |= width != EXCH_WIDTH_ANY;
            push(d->width, width);
            return true;
        }
    return refuse(s, "unknown width");
}

static bool depends(struct scan *s, struct phase_data *d) {
    if (!want(s, '[')) return false;
    for (bool f = true; element(s, &f);) {
        uint32_t v;
        if (!u32(s, &v)) return false;
        push(d->dep, v);
        d->depends = true;
    }
    return true;
}

static bool transfer(struct scan *s, struct phase_data *d) {
    if (!want(s, '{')) return false;
    push(d->first, d->tile->len);
    push(d->first_dep, d->dep->len);
    uint32_t seen = 0, v;
    char name[64];
    for (bool f = true; key(s, &f, name);) {
        static const char *const keys[] = {
            "source", "source_addresses", "destinations", "words", "width", "after"};
        uint32_t k = 0;
        while (k < ARRAY_LEN(keys) && strcmp(name, keys[k]) != 0) k++;
        if (k == ARRAY_LEN(keys)) return refuse(s, "unknown key of a transfer");
        if (seen & 1u << k) return refuse(s, "a key occurs twice");
        seen |= 1u << k;
        bool ok = true;
        if (k == 0 || k == 3) {
            ok = u32(s, &v);
            if (ok && k == 0 && v > UINT16_MAX) return refuse(s, "a tile number is out of range");
            if (ok) push(k == 0 ? d->source : d->words, v);
        } else if (k == 1) ok = addresses(s, d);
        else if (k == 2) ok = destinations(s, d);
        else if (k == 4) ok = width(s, d);
        else ok = depends(s, d);
        if (!ok) return false;
    }
    if (s->why != NULL) return false;
    if ((seen & 15) != 15) return refuse(s, "a transfer lacks a key");
    if (!(seen & 16)) push(d->width, EXCH_WIDTH_ANY);
    return true;
}

/* The elements of an array of 32-bit numbers, which may be empty. */
static void take(void *to, const GArray *from) {
    if (from->len != 0) memcpy(to, from->data, 4 * (size_t)from->len);
}

static struct exch_problem *make_problem(struct phase_data *d) {
    const uint32_t n = d->source->len;
    struct exch_problem *p = exch_problem_new(n, d->tile->len);
    push(d->first, d->tile->len);
    push(d->first_dep, d->dep->len);
    for (uint32_t x = 0; x < n; x++)
        p->source_tile[x] = (uint16_t)g_array_index(d->source, uint32_t, x);
    for (uint32_t r = 0; r < d->tile->len; r++)
        p->recipient_tile[r] = (uint16_t)g_array_index(d->tile, uint32_t, r);
    take(p->source_address, d->address);
    take(p->words, d->words);
    take(p->first_recipient, d->first);
    take(p->recipient_address, d->at);
    if (d->moving) {
        exch_problem_add_strides(p);
        take(p->source_stride, d->stride);
        p->n_iterations = d->n_iterations;
    }
    if (d->widths) {
        exch_problem_add_widths(p);
        for (uint32_t x = 0; x < n; x++)
            p->width[x] = (uint8_t)g_array_index(d->width, uint32_t, x);
    }
    if (d->depends) {
        exch_problem_add_dependencies(p, d->dep->len);
        take(p->first_dependency, d->first_dep);
        take(p->dependency, d->dep);
    }
    p->row_address = d->row_address;
    p->row_bytes = d->row_bytes;
    return p;
}

static bool transfers(struct scan *s, struct phase_data *d) {
    if (!want(s, '[')) return false;
    for (bool f = true; element(s, &f);)
        if (!transfer(s, d)) return false;
    return s->why == NULL;
}

static bool phase(struct scan *s, GPtrArray *phases, GArray *numbers) {
    struct phase_data d;
    data_new(&d);
    bool ok = want(s, '{'), any = false;
    char name[64];
    for (bool f = true; ok && key(s, &f, name);) {
        if (strcmp(name, "phase") == 0) ok = u32(s, &d.number);
        else if (strcmp(name, "row_address") == 0) ok = u32(s, &d.row_address);
        else if (strcmp(name, "row_bytes") == 0) ok = u32(s, &d.row_bytes);
        else if (strcmp(name, "transfers") == 0) ok = any = !any && transfers(s, &d);
        else ok = refuse(s, "unknown key of a phase");
    }
    ok = ok && s->why == NULL && (any || refuse(s, "a phase lacks its transfers"));
    if (ok) {
        g_ptr_array_add(phases, make_problem(&d));
        push(numbers, d.number);
    }
    data_free(&d);
    return ok;
}

static bool file(struct scan *s, GPtrArray *phases, GArray *numbers) {
    char name[64];
    uint32_t v;
    if (!want(s, '{')) return false;
    for (bool f = true; key(s, &f, name);) {
        if (strcmp(name, "schema_version") == 0) {
            if (!u32(s, &v)) return false;
            if (v != 4) return refuse(s, "schema_version is not 4");
        } else if (strcmp(name, "tile_count") == 0) {
            if (!u32(s, &v)) return false;
            if (v == 0 || v > TARGET_N_TILES) return refuse(s, "tile_count is not 1..1472");
        } else if (strcmp(name, "phases") == 0) {
            if (!want(s, '[')) return false;
            for (bool g = true; element(s, &g);)
                if (!phase(s, phases, numbers)) return false;
        } else {
            return refuse(s, "unknown key");
        }
        if (s->why != NULL) return false;
    }
    space(s);
    if (s->why == NULL && s->at != s->end) return refuse(s, "text behind the end");
    return s->why == NULL && (phases->len > 0 || refuse(s, "no phases"));
}

struct exch_problem_set *exch_json_parse(const char *path, const uint8_t *data, size_t size,
                                         GError **error) {
    struct scan s = {(const char *)data, (const char *)data + size, NULL};
    GPtrArray *phases = g_ptr_array_new();
    GArray *numbers = g_array_new(FALSE, FALSE, 4);
    if (file(&s, phases, numbers)) return exch_set_take(phases, numbers);
    char *why = g_strdup_printf("%s at byte %zu", s.why != NULL ? s.why : "damaged",
                                (size_t)(s.at - (const char *)data));
    diag_set(error, EXCH_FILE, path, why);
    g_free(why);
    exch_problem_set_free(exch_set_take(phases, numbers));
    return NULL;
}

static void print_transfer(GString *out, const struct exch_problem *p, uint32_t x) {
    g_string_append_printf(out, "{\"source\":%u,\"source_addresses\":[%u", p->source_tile[x],
                           p->source_address[x]);
    if (p->source_stride != NULL && p->source_stride[x] != 0)
        for (uint32_t k = 1; k < p->n_iterations; k++)
            g_string_append_printf(out, ",%u",
                                   p->source_address[x] + k * (uint32_t)p->source_stride[x]);
    g_string_append(out, "],\"destinations\":[");
    for (uint32_t r = p->first_recipient[x]; r < p->first_recipient[x + 1]; r++)
        g_string_append_printf(out, "%s[%u,%u]", r == p->first_recipient[x] ? "" : ",",
                               p->recipient_tile[r], p->recipient_address[r]);
    g_string_append_printf(out, "],\"words\":%u", p->words[x]);
    if (p->width != NULL && p->width[x] != EXCH_WIDTH_ANY)
        g_string_append_printf(out, ",\"width\":\"%s\"", width_names[2 + p->width[x]]);
    if (p->first_dependency != NULL && p->first_dependency[x] < p->first_dependency[x + 1]) {
        g_string_append(out, ",\"after\":");
        for (uint32_t k = p->first_dependency[x]; k < p->first_dependency[x + 1]; k++)
            g_string_append_printf(out, "%c%u", k == p->first_dependency[x] ? '[' : ',',
                                   p->dependency[k]);
        g_string_append_c(out, ']');
    }
    g_string_append_c(out, '}');
}

GString *exch_json_print(const struct exch_problem_set *set) {
    GString *out = g_string_new(NULL);
    g_string_append_printf(out, "{\"schema_version\":4,\"tile_count\":%d,\"phases\":[",
                           TARGET_N_TILES);
    for (uint32_t k = 0; k < set->n_phases; k++) {
        const struct exch_problem *p = set->phases[k];
        g_string_append_printf(out, "%s{\"phase\":%u,", k == 0 ? "" : ",", set->number[k]);
        if (p->row_bytes != 0)
            g_string_append_printf(out, "\"row_address\":%u,\"row_bytes\":%u,", p->row_address,
                                   p->row_bytes);
        g_string_append(out, "\"transfers\":[");
        for (uint32_t x = 0; x < p->n_transfers; x++) {
            if (x > 0) g_string_append_c(out, ',');
            print_transfer(out, p, x);
        }
        g_string_append(out, "]}");
    }
    g_string_append(out, "]}\n");
    return out;
}
