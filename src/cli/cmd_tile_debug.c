/* ipu-stack tile-debug: one tile, slot by slot; commands from a terminal or a script. */
#include "cli/cli.h"
#include "cli/cli_tile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WATCHES = 16 };

struct watch {
    uint32_t address, value;
};

struct debug {
    struct cli_tile c;
    char *script;
    GArray *breaks; /* uint32_t addresses */
    struct watch watches[MAX_WATCHES];
    uint32_t n_watches;
    uint64_t steps;    /* slots until the next stop; 0 = none */
    int32_t only;      /* context that steps count, -1 = any */
    uint32_t context;  /* that stopped */
    bool started, quit;
    GString *why;
};

static uint32_t word_at(const struct debug *d, uint32_t address) {
    uint32_t v = 0;
    if (sram_range_ok(address, 4)) memcpy(&v, sram_at(d->c.sram, 0, address), 4);
    return v;
}

static bool watch_hit(struct debug *d) {
    bool hit = false;
    for (uint32_t i = 0; i < d->n_watches; i++) {
        struct watch *w = &d->watches[i];
        const uint32_t now = word_at(d, w->address);
        if (now == w->value) continue;
        g_string_append_printf(d->why, "watch 0x%x: %08x -> %08x\n", w->address, w->value, now);
        w->value = now;
        hit = true;
    }
    return hit;
}

static bool observe(void *user, const struct tile *t, uint32_t context, uint32_t pc,
                    uint64_t cycle) {
    struct debug *d = user;
    (void)t;
    (void)cycle;
    bool stop = watch_hit(d);
    for (uint32_t i = 0; i < d->breaks->len; i++)
        if (g_array_index(d->breaks, uint32_t, i) == pc && d->started) {
            g_string_append(d->why, "breakpoint\n");
            stop = true;
        }
    const bool counts = d->only < 0 || (uint32_t)d->only == context;
    if (d->steps != 0 && counts && --d->steps == 0) stop = true;
    d->started = true;
    if (stop) d->context = context;
    return stop;
}

/* --- Reports. --- */

static void print_where(const struct debug *d) {
    const struct tile *t = &d->c.tile;
    GString *text = g_string_new(NULL);
    const uint32_t pc = d->context == 0 ? t->s.pc : t->w[d->context - 1].pc;
    g_string_append_printf(text, "cycle %" PRIu64 ", ", t->stop.cycle);
    if (d->context == 0)
        g_string_append(text, "supervisor, ");
    else
        g_string_append_printf(text, "worker %u, ", d->context - 1);
    cli_tile_where(&d->c, pc, text);
    g_string_append(text, ": ");
    cli_tile_slot(&d->c, pc, text);
    puts(text->str);
    g_string_free(text, true);
}

static void go(struct debug *d, uint64_t steps) {
    struct tile *t = &d->c.tile;
    d->steps = steps;
    g_string_truncate(d->why, 0);
    const enum tile_stop_reason r = tile_run(t, (uint64_t)d->c.max_cycles);
    watch_hit(d);
    fputs(d->why->str, stdout);
    if (r == TILE_STOP_BREAK) {
        print_where(d);
        return;
    }
    if (r == TILE_STOP_FAULT) {
        GString *text = g_string_new(NULL);
        d->context = t->fault.context;
        cli_tile_fault(&d->c, text);
        fputs(text->str, stdout);
        g_string_free(text, true);
        return;
    }
    printf("%s at cycle %" PRIu64 "\n", cli_tile_stop_name(r), t->stop.cycle);
}

/* --- Commands: the rest of the line is the argument. --- */

static bool want_address(const struct debug *d, const char *text, uint32_t *ret) {
    if (text[0] != 0 && cli_tile_address(&d->c, text, ret)) return true;
    printf("'%s': expected an address or a symbol\n", text);
    return false;
}

static void cmd_break(struct debug *d, const char *arg) {
    uint32_t a;
    if (!want_address(d, arg, &a)) return;
    g_array_append_val(d->breaks, a);
    printf("breakpoint %u at 0x%x\n", d->breaks->len, a);
}
static void cmd_delete(struct debug *d, const char *arg) {
    const unsigned long n = strtoul(arg, NULL, 10);
    if (arg[0] == 0) {
        g_array_set_size(d->breaks, 0);
        d->n_watches = 0;
    } else if (n >= 1 && n <= d->breaks->len) {
        g_array_remove_index(d->breaks, (guint)n - 1);
    } else {
        printf("no breakpoint %s\n", arg);
    }
}
static void cmd_watch(struct debug *d, const char *arg) {
    uint32_t a;
    if (!want_address(d, arg, &a)) return;
    if (d->n_watches == MAX_WATCHES || a % 4 != 0 || !sram_range_ok(a, 4)) {
        printf("at most %d words of SRAM can be watched\n", MAX_WATCHES);
        return;
    }
    d->watches[d->n_watches++] = (struct watch){a, word_at(d, a)};
    printf("watch 0x%x = %08x\n", a, word_at(d, a));
}
static void cmd_step(struct debug *d, const char *arg) {
    const uint64_t n = arg[0] ? strtoull(arg, NULL, 0) : 1;
    d->only = -1;
    go(d, n + (d->started ? 0 : 1));
}
/* Steps of the context that stopped last. */
static void cmd_next(struct debug *d, const char *arg) {
    const uint64_t n = arg[0] ? strtoull(arg, NULL, 0) : 1;
    d->only = (int32_t)d->context;
    go(d, n + (d->started ? 0 : 1));
    d->only = -1;
}
static void cmd_continue(struct debug *d, const char *arg) {
    (void)arg;
    go(d, 0);
}
static void cmd_registers(struct debug *d, const char *arg) {
    const uint32_t context = arg[0] ? (uint32_t)strtoul(arg, NULL, 10) + 1 : d->context;
    if (context >= TILE_N_CONTEXTS) {
        printf("'%s': expected a worker, 0..5\n", arg);
        return;
    }
    GString *text = g_string_new(NULL);
    cli_tile_registers(&d->c, context, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}
static void cmd_memory(struct debug *d, const char *arg) {
    GString *text = g_string_new(NULL);
    if (cli_tile_dump(&d->c, arg, text)) fputs(text->str, stdout);
    g_string_free(text, true);
}
static void cmd_list(struct debug *d, const char *arg) {
    uint32_t a = d->context == 0 ? d->c.tile.s.pc : d->c.tile.w[d->context - 1].pc;
    if (arg[0] != 0 && !want_address(d, arg, &a)) return;
    GString *text = g_string_new(NULL);
    cli_tile_window(&d->c, a, 5, 10, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}
static void cmd_contexts(struct debug *d, const char *arg) {
    (void)arg;
    GString *text = g_string_new(NULL);
    cli_tile_contexts(&d->c, text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}
static void cmd_focus(struct debug *d, const char *arg) {
    const uint32_t context = strcmp(arg, "s") == 0 ? 0 : (uint32_t)strtoul(arg, NULL, 10) + 1;
    if (context < TILE_N_CONTEXTS)
        d->context = context;
    else
        printf("'%s': expected s or a worker, 0..5\n", arg);
}
static void cmd_quit(struct debug *d, const char *arg) {
    (void)arg;
    d->quit = true;
}

struct command {
    const char *name, *alias, *help;
    void (*run)(struct debug *, const char *);
};
static void cmd_help(struct debug *d, const char *arg);
static const struct command COMMANDS[] = {
    {"break", "b", "ADDR: stop before the slot at an address or symbol", cmd_break},
    {"delete", "d", "[N]: remove a breakpoint, or all breakpoints and watches", cmd_delete},
    {"watch", "w", "ADDR: stop after the word at an address has changed", cmd_watch},
    {"step", "s", "[N]: N slots of any context, in cycle order", cmd_step},
    {"next", "n", "[N]: N slots of the context that stopped last", cmd_next},
    {"continue", "c", "run to the next stop", cmd_continue},
    {"registers", "r", "[WORKER]: of the context that stopped last, or of a worker", cmd_registers},
    {"memory", "x", "ADDR:LEN[:words|f16|f32|f8|bytes]", cmd_memory},
    {"list", "l", "[ADDR]: disassembly around the next slot or an address", cmd_list},
    {"contexts", "i", "where every context is", cmd_contexts},
    {"focus", "f", "s|WORKER: the context that next and registers mean", cmd_focus},
    {"help", "h", "this list", cmd_help},
    {"quit", "q", "end", cmd_quit},
};
static void cmd_help(struct debug *d, const char *arg) {
    (void)d;
    (void)arg;
    for (uint32_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        printf("%-10s %-2s  %s\n", COMMANDS[i].name, COMMANDS[i].alias, COMMANDS[i].help);
}

static void execute(struct debug *d, char *line) {
    g_strstrip(line);
    if (line[0] == 0 || line[0] == '#') return;
    char *arg = line + strcspn(line, " \t");
    if (*arg != 0) *arg++ = 0;
    g_strstrip(arg);
    for (uint32_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(line, COMMANDS[i].name) == 0 || strcmp(line, COMMANDS[i].alias) == 0) {
            COMMANDS[i].run(d, arg);
            return;
        }
    printf("'%s': no such command; help lists them\n", line);
}

static int session(struct debug *d) {
    FILE *f = stdin;
    if (d->script != NULL && (f = fopen(d->script, "r")) == NULL) {
        fprintf(stderr, "ipu-stack tile-debug: %s: cannot open\n", d->script);
        return CLI_WRONG_INPUT;
    }
    const bool terminal = f == stdin && isatty(STDIN_FILENO);
    d->c.tile.observer = observe;
    d->c.tile.observer_user = d;
    d->context = d->c.supervisor ? 0 : 1;
    char line[512];
    while (!d->quit) {
        if (terminal) {
            fputs("(tile) ", stdout);
            fflush(stdout);
        }
        if (fgets(line, sizeof line, f) == NULL) break;
        if (!terminal) printf("> %s%s", line, strchr(line, '\n') ? "" : "\n");
        execute(d, line);
    }
    if (f != stdin) fclose(f);
    return CLI_OK;
}

int cmd_tile_debug(int argc, char **argv) {
    struct debug d = {.c = {.verb = "tile-debug"}, .only = -1};
    const GOptionEntry entries[] = {
        CLI_TILE_OPTIONS(&d.c),
        {"script", 0, 0, G_OPTION_ARG_FILENAME, &d.script, "Commands, one a line", "FILE"},
        {0}};
    bool done;
    int status = CLI_WRONG_INPUT;
    d.breaks = g_array_new(false, false, sizeof(uint32_t));
    d.why = g_string_new(NULL);
    if (cli_options(&argc, &argv, entries, "FILE.S|OBJECT...",
                    "Commands come from the terminal, standard input or --script; `help` lists them.",
                    &done))
        status = done ? CLI_OK : cli_tile_open(&d.c, argv + 1) ? session(&d) : CLI_WRONG_INPUT;
    cli_tile_close(&d.c);
    g_array_free(d.breaks, true);
    g_string_free(d.why, true);
    g_free(d.script);
    return status;
}
