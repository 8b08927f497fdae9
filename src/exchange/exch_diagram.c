/* Text diagram of a small phase: for each active tile what leaves (send), what its multiplexer
 * listens to (mux) and what is written (write), one letter per message, `.` idle; `=` own lane lent
 * to the pair partner. */
#include "exchange/exch_int.h"

#include <string.h>

enum { COLUMNS = 96, MAX_TILES = 64 };

struct canvas {
    char line[3][COLUMNS + 1];
    bool used;
};

static char letter(uint32_t message) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    return letters[message % (sizeof letters - 1)];
}

static void draw(struct canvas *c, uint32_t line, uint32_t from, uint32_t n, uint32_t per,
                 char mark) {
    c->used = true;
    for (uint32_t k = from / per; k <= (from + n - 1) / per && k < COLUMNS; k++)
        c->line[line][k] = mark;
}

static void draw_message(struct canvas *c, const struct exch_problem *p,
                         const struct exch_message *m, uint32_t i, uint32_t per) {
    const struct exch_route *route = exch_route();
    const uint32_t src = p->source_tile[m->transfer], n = m->paired ? m->words / 2 : m->words;
    draw(&c[src], 0, m->slot, n, per, letter(i));
    if (m->paired && !c[src ^ 1].used) draw(&c[src ^ 1], 0, m->slot, n, per, '=');
    for (uint32_t r = p->first_recipient[m->transfer]; r < p->first_recipient[m->transfer + 1];
         r++) {
        const uint32_t t = p->recipient_tile[r];
        const int32_t own = route->ttm[src][t], other = route->ttm[src][t ^ 1];
        const uint32_t x = m->slot + (uint32_t)(m->paired ? MAX(own, other) : own);
        draw(&c[t], 1, x, n, per, letter(i));
        draw(&c[t], 2, x + exch_lag(route, t), n, per, letter(i));
    }
}

static void list_messages(GString *out, const struct exch_problem *p, const struct exch_result *r) {
    for (uint32_t i = 0; i < r->n_messages && i < 3 * MAX_TILES; i++) {
        const struct exch_message *m = &r->messages[i];
        g_string_append_printf(out, "%c  transfer %u: tile %u -> ", letter(i), m->transfer,
                               p->source_tile[m->transfer]);
        for (uint32_t k = p->first_recipient[m->transfer]; k < p->first_recipient[m->transfer + 1];
             k++)
            g_string_append_printf(out, "%s%u", k == p->first_recipient[m->transfer] ? "" : ",",
                                   p->recipient_tile[k]);
        g_string_append_printf(out, ", words %u..%u, slot %u%s\n", m->first_word,
                               m->first_word + m->words - 1, m->slot, m->paired ? ", paired" : "");
    }
}

char *exch_diagram(const struct exch_problem *p, const struct exch_result *r) {
    struct canvas *c = g_new0(struct canvas, r->n_tiles);
    const uint32_t per = MAX(1, ceil_div_u32(r->horizon, COLUMNS));
    for (uint32_t t = 0; t < r->n_tiles; t++)
        for (uint32_t l = 0; l < 3; l++) memset(c[t].line[l], '.', COLUMNS);
    for (uint32_t i = 0; i < r->n_messages; i++) draw_message(c, p, &r->messages[i], i, per);
    GString *out = g_string_new(NULL);
    g_string_append_printf(out, "horizon %u, %u slots per column\n", r->horizon, per);
    uint32_t shown = 0, hidden = 0;
    for (uint32_t t = 0; t < r->n_tiles; t++) {
        if (!c[t].used) continue;
        if (shown++ >= MAX_TILES) {
            hidden++;
            continue;
        }
        static const char *const names[] = {"send ", "mux  ", "write"};
        const uint32_t width = MIN(COLUMNS, ceil_div_u32(r->horizon, per));
        bool head = true;
        for (uint32_t l = 0; l < 3; l++) {
            if (strspn(c[t].line[l], ".") == COLUMNS) continue;
            if (head) g_string_append_printf(out, "tile %4u %s ", t, names[l]);
            else g_string_append_printf(out, "          %s ", names[l]);
            g_string_append_len(out, c[t].line[l], width);
            g_string_append_c(out, '\n');
            head = false;
        }
    }
    if (hidden > 0) g_string_append_printf(out, "and %u more tiles\n", hidden);
    list_messages(out, p, r);
    g_free(c);
    return g_string_free(out, FALSE);
}
