/* A phase as text: per tile what it sends, which controls it executes
 * and which message is at its pointer stage, one column for a fixed number of slots. Meant for
 * phases of a few tiles; its cost is columns x tiles. Where several things fall into one column,
 * the last one shows; two different controls show as *. */
#include "fabric/fabric_impl.h"

#include <string.h>

struct canvas {
    const struct fabric *f;
    uint32_t per_column, n_columns;
    GString *out;
    GHashTable *letters; /* message number -> letter */
    char *line;
};

static char letter_of(const struct canvas *c, uint32_t message) {
    return (char)GPOINTER_TO_INT(g_hash_table_lookup(c->letters, GUINT_TO_POINTER(message)));
}

static void clear(struct canvas *c) {
    memset(c->line, '.', c->n_columns);
    c->line[c->n_columns] = 0;
}

static void mark(struct canvas *c, int64_t from, int64_t end, char letter) {
    for (int64_t slot = MAX(from, 0); slot < end; slot += c->per_column - slot % c->per_column) {
        const int64_t column = slot / c->per_column;
        if (column >= c->n_columns) return;
        c->line[column] = letter;
    }
}

static void mark_control(struct canvas *c, uint32_t slot, char letter) {
    char *at = &c->line[MIN(slot / c->per_column, c->n_columns - 1)];
    *at = *at == '.' || *at == letter ? letter : '*';
}

static void flush(struct canvas *c, const char *what) {
    if (strspn(c->line, ".") == c->n_columns) return; /* nothing to show */
    g_string_append_printf(c->out, "%10s %-7s |%s|\n", "", what, c->line);
}

static void draw_sends(struct canvas *c, const struct tile_plan *p) {
    clear(c);
    for (uint32_t k = 0; k < p->n_pieces; k++) {
        const struct piece *pc = &c->f->pieces[p->first_piece + k];
        mark(c, pc->slot, (int64_t)pc->slot + pc->n, letter_of(c, pc->message));
    }
    flush(c, "sends");
}

static void draw_controls(struct canvas *c, const struct tile_plan *p) {
    static const char set[N_CONTROLS] = {'M', 'D', 'P', 'F'},
                      reset[N_CONTROLS] = {'n', 'd', 'P', 'f'};
    clear(c);
    for (uint32_t kind = 0; kind < N_CONTROLS; kind++) {
        uint32_t n;
        const struct control *v = fabric_line(c->f, p, kind, &n);
        const uint32_t neutral = kind == CONTROL_FMT ? 0 : TARGET_EXCH_MUX_NEUTRAL;
        for (uint32_t k = 0; k < n; k++)
            mark_control(c, v[k].slot,
                         (v[k].value & ~CONTROL_MERGED) == neutral ? reset[kind] : set[kind]);
    }
    flush(c, "control");
}

static void draw_receives(struct canvas *c, const struct tile_plan *p) {
    const struct fabric_delivery *d = fabric_plan_deliveries(c->f, p);
    clear(c);
    for (uint32_t k = 0; k < p->n_deliveries; k++)
        mark(c, d[k].stage, (int64_t)d[k].stage + d[k].items, letter_of(c, d[k].message));
    flush(c, "stage");
}

/* The slots of the ruler's tens, and what one column stands for. */
static void draw_ruler(struct canvas *c) {
    g_string_append_printf(c->out, "one column: %u slot%s\n%-18s ", c->per_column,
                           c->per_column == 1 ? "" : "s", "");
    for (uint32_t column = 0; column < c->n_columns; column += 10)
        g_string_append_printf(c->out, column + 10 < c->n_columns ? "|%-9u" : "|%u",
                               column * c->per_column);
    g_string_append_c(c->out, '\n');
}

static void name_messages(struct canvas *c) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->f->n_plans; i++) {
        const struct tile_plan *p = &c->f->plans[i];
        for (uint32_t k = 0; k < p->n_messages; k++, n++) {
            const struct message *m = &c->f->messages[p->first_message + k];
            const char letter = letters[n % (sizeof letters - 1)];
            g_hash_table_insert(c->letters, GUINT_TO_POINTER(p->first_message + k),
                                GINT_TO_POINTER((int)letter));
            g_string_append_printf(c->out, "%c: tile %u from %#x, %u %s, slots %u..%u\n", letter,
                                   p->tile, c->f->pieces[m->first_piece].address, m->end - m->slot,
                                   m->item_bytes == 8 ? "64-bit items" : "words", m->slot,
                                   m->end - 1);
        }
    }
}

char *fabric_diagram(const struct fabric *f, uint32_t n_columns) {
    uint32_t horizon = 1;
    for (uint32_t i = 0; i < f->n_plans; i++) {
        const struct tile_plan *p = &f->plans[i];
        const struct fabric_delivery *d = fabric_plan_deliveries(f, p);
        for (uint32_t k = 0; k < p->n_deliveries; k++)
            horizon = MAX(horizon, d[k].stage + d[k].items);
        for (uint32_t k = 0; k < p->n_pieces; k++)
            horizon =
                MAX(horizon, f->pieces[p->first_piece + k].slot + f->pieces[p->first_piece + k].n);
        horizon = MAX(horizon, p->slots);
    }
    struct canvas c = {.f = f,
                       .out = g_string_new(NULL),
                       .letters = g_hash_table_new(NULL, NULL),
                       .per_column = ceil_div_u32(horizon, MAX(n_columns, 10))};
    c.n_columns = ceil_div_u32(horizon, c.per_column);
    c.line = g_malloc(c.n_columns + 1);
    name_messages(&c);
    g_string_append(c.out,
                    "control: M mux, n mux neutral, D pair mux, d pair mux neutral, P pointer, "
                    "F format, f format off, * several\n");
    draw_ruler(&c);
    for (uint32_t i = 0; i < f->n_plans; i++) {
        const struct tile_plan *p = &f->plans[i];
        g_string_append_printf(c.out, "tile %u, ends at %u\n", p->tile, p->slots);
        draw_sends(&c, p);
        draw_controls(&c, p);
        draw_receives(&c, p);
    }
    g_free(c.line);
    g_hash_table_destroy(c.letters);
    return g_string_free(c.out, FALSE);
}
