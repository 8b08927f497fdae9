/* ipu-stack tile-debug: one tile, slot by slot; commands from a terminal or a script.
 *
 * The session stands before a slot: its context is the one that `next`, `registers` and conditions mean.
 * An observer sees every slot; it notices what the slot before has written, then breakpoints, then
 * counts steps. Observed execution is plain and in cycle order: results and cycles are those of a run.
 * A refused command ends nothing; a script with one ends with status 2, else with 4 after a fault or at the limit. */
#include "cli/cli.h"
#include "cli/cli_tile.h"
#include "cli/tile_points.h"
#include "isa/isa_form.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct debug {
    struct cli_tile c;
    char *script;
    gboolean json;
    GArray *points;    /* struct tile_point */
    uint32_t n_points; /* numbers given */
    uint64_t steps;    /* slots until the next stop; 0 = none */
    int32_t only;      /* context that steps count, -1 = any */
    uint32_t until;    /* address at which `only` stops, 0 = none */
    uint32_t context;  /* that stopped */
    uint32_t last_context, last_pc; /* of the slot that ran last */
    bool finish;       /* stop when worker `only` has exited */
    bool quit, refused;
    uint32_t line, n_refused, first_refused;
    GString *out; /* of the command */
};

/* --- Running. --- */

static bool points_hit(struct debug *d, uint32_t context, uint32_t pc) {
    bool hit = false;
    for (uint32_t i = 0; i < d->points->len; i++) {
        struct tile_point *p = &g_array_index(d->points, struct tile_point, i);
        if (p->kind == TILE_POINT_BREAK) {
            if (!tile_point_break(p, &d->c, context, pc)) continue;
            g_string_append_printf(d->out, "breakpoint %u\n", p->number);
        } else {
            struct tile_seen old;
            if (!tile_point_changed(p, &d->c, &old)) continue;
            g_string_append_printf(d->out, "watch %u, ", p->number);
            tile_point_name(p, d->out);
            g_string_append(d->out, ": ");
            tile_point_value(old, d->out);
            g_string_append(d->out, " -> ");
            tile_point_value(p->seen, d->out);
            if (d->last_pc != 0) {
                g_string_append_printf(d->out, " by %s at ", cli_tile_context_name(d->last_context));
                cli_tile_where(&d->c, d->last_pc, d->out);
            }
            g_string_append_c(d->out, '\n');
        }
        hit = true;
    }
    return hit;
}

static bool observe(void *user, const struct tile *t, uint32_t context, uint32_t pc,
                    uint64_t cycle) {
    struct debug *d = user;
    (void)cycle;
    bool stop = points_hit(d, context, pc);
    const bool counts = d->only < 0 || (uint32_t)d->only == context;
    if (d->steps != 0 && counts && --d->steps == 0) stop = true;
    if (d->until == pc && counts) stop = true;
    const bool finished = d->finish && !t->w[d->only - 1].active;
    if (stop || finished) d->context = stop ? context : (uint32_t)d->only;
    stop = stop || finished;
    d->last_context = context;
    d->last_pc = pc;
    return stop;
}

static void print_where(struct debug *d) {
    const struct tile *t = &d->c.tile;
    const uint32_t pc = cli_tile_context_pc(&d->c, d->context);
    g_string_append_printf(d->out, "cycle %" PRIu64 ", %s, ", t->stop.cycle, cli_tile_context_name(d->context));
    cli_tile_where(&d->c, pc, d->out);
    g_string_append(d->out, ": ");
    cli_tile_slot(&d->c, pc, d->context, d->out);
    g_string_append_c(d->out, '\n');
}

/* Runs until `steps` slots of `only` are done, `only` reaches `until`, or something else stops it. */
static void go(struct debug *d, uint64_t steps, int32_t only, uint32_t until) {
    struct tile *t = &d->c.tile;
    d->steps = steps;
    d->only = only;
    d->until = until;
    const enum tile_stop_reason r = tile_run(t, (uint64_t)d->c.max_cycles);
    if (r == TILE_STOP_BREAK) {
        print_where(d);
        return;
    }
    points_hit(d, TILE_N_CONTEXTS, 0); /* of the last slot: no breakpoint is there */
    d->last_pc = 0;
    if (r == TILE_STOP_FAULT) {
        d->context = t->fault.context;
        cli_tile_fault(&d->c, d->out);
        return;
    }
    g_string_append_printf(d->out, "%s at cycle %" PRIu64 "\n", cli_tile_stop_name(r), t->stop.cycle);
    if (r == TILE_STOP_LIMIT) cli_tile_contexts(&d->c, d->out);
}

/* --- Commands: the rest of the line is the argument. --- */

#define REFUSE(d, ...)                                                                             \
    do {                                                                                           \
        GError *refused_ = NULL;                                                                   \
        diag_set(&refused_, __VA_ARGS__);                                                          \
        (d)->refused = !cli_tile_refuse(&(d)->c, refused_);                                        \
    } while (0)

/* A whole number of at least `least`; `fallback` for none. */
static bool want_number(struct debug *d, const char *arg, uint64_t least, uint64_t fallback, uint64_t *ret) {
    char *end;
    *ret = fallback;
    if (arg[0] == 0) return true;
    *ret = g_ascii_strtoull(arg, &end, 0);
    if (g_ascii_isdigit(arg[0]) && *end == 0 && *ret >= least) return true;
    REFUSE(d, CLI_TILE_NUMBER, arg, least ? "a number of at least 1" : "a number");
    return false;
}

/* s, supervisor, 0..5. */
static bool want_context(struct debug *d, const char *arg, uint32_t *ret) {
    const bool s = strcmp(arg, "s") == 0 || strcmp(arg, "supervisor") == 0;
    if (s && d->c.supervisor) {
        *ret = 0;
        return true;
    }
    if (!s && arg[0] >= '0' && arg[0] < '0' + TILE_N_WORKERS && arg[1] == 0) {
        *ret = (uint32_t)(arg[0] - '0') + 1;
        return true;
    }
    REFUSE(d, CLI_TILE_NUMBER, arg, d->c.supervisor ? "s or a worker, 0..5" : "a worker, 0..5");
    return false;
}

static void add_point(struct debug *d, struct tile_point *p) {
    p->number = ++d->n_points;
    g_array_append_val(d->points, *p);
    tile_point_print(p, &d->c, d->out);
}

static void cmd_break(struct debug *d, const char *arg) {
    struct tile_point p;
    d->refused = !tile_point_break_parse(&d->c, arg, &p);
    if (!d->refused) add_point(d, &p);
}
static void cmd_watch(struct debug *d, const char *arg) {
    struct tile_point p;
    if (arg[0] == 0) {
        REFUSE(d, CLI_TILE_NUMBER, arg, "ADDR, REG or CONTEXT:REG; points lists what is watched");
        return;
    }
    d->refused = !tile_point_watch_parse(&d->c, arg, d->context, &p);
    if (!d->refused) add_point(d, &p);
}
static void cmd_points(struct debug *d, const char *arg) {
    (void)arg;
    for (uint32_t i = 0; i < d->points->len; i++)
        tile_point_print(&g_array_index(d->points, struct tile_point, i), &d->c, d->out);
    if (d->points->len == 0) g_string_append(d->out, "no breakpoints and no watches\n");
}
static void cmd_delete(struct debug *d, const char *arg) {
    uint64_t n;
    if (!want_number(d, arg, 1, 0, &n)) return;
    if (n == 0) {
        g_array_set_size(d->points, 0);
        return;
    }
    for (uint32_t i = 0; i < d->points->len; i++) {
        if (g_array_index(d->points, struct tile_point, i).number != n) continue;
        g_array_remove_index(d->points, i);
        return;
    }
    REFUSE(d, CLI_TILE_NUMBER, arg, "the number of a breakpoint or watch; points lists them");
}
static void cmd_step(struct debug *d, const char *arg) {
    uint64_t n;
    if (want_number(d, arg, 1, 1, &n)) go(d, n, -1, 0);
}
static void cmd_next(struct debug *d, const char *arg) {
    uint64_t n;
    if (want_number(d, arg, 1, 1, &n)) go(d, n, (int32_t)d->context, 0);
}
static void cmd_continue(struct debug *d, const char *arg) {
    (void)arg;
    go(d, 0, -1, 0);
}
static void cmd_until(struct debug *d, const char *arg) {
    uint32_t a;
    d->refused = !tile_point_address(&d->c, arg, &a);
    if (!d->refused) go(d, 0, (int32_t)d->context, a);
}
/* A worker to its exit, the supervisor to the address in $m10. */
static void cmd_finish(struct debug *d, const char *arg) {
    (void)arg;
    struct tile *t = &d->c.tile;
    if (d->context == 0) {
        go(d, 0, 0, t->s.m[10]);
        return;
    }
    if (!t->w[d->context - 1].active) {
        REFUSE(d, CLI_TILE_NUMBER, cli_tile_context_name(d->context), "a worker that has not exited");
        return;
    }
    d->finish = true;
    go(d, 0, (int32_t)d->context, 0);
    d->finish = false;
}
static void cmd_registers(struct debug *d, const char *arg) {
    uint32_t context = d->context;
    if (arg[0] != 0 && !want_context(d, arg, &context)) return;
    g_string_append_printf(d->out, "%s\n", cli_tile_context_name(context));
    cli_tile_registers(&d->c, context, d->out);
}
static void cmd_memory(struct debug *d, const char *arg) {
    struct cli_tile_dump dump;
    char *spec = g_strdelimit(g_strdup(arg), " ", ':'); /* blanks do as well */
    d->refused = !cli_tile_dump_parse(&d->c, "memory", spec, &dump);
    if (!d->refused) cli_tile_dump_print(&d->c, &dump, d->out);
    g_free(spec);
}
static void cmd_set(struct debug *d, const char *arg) {
    d->refused = !tile_point_set(&d->c, arg, d->context);
}
static void cmd_list(struct debug *d, const char *arg) {
    uint32_t a = cli_tile_context_pc(&d->c, d->context);
    d->refused = arg[0] != 0 && !tile_point_address(&d->c, arg, &a);
    if (!d->refused) cli_tile_window(&d->c, a, 5, 10, d->context, d->out);
}
static void cmd_contexts(struct debug *d, const char *arg) {
    (void)arg;
    cli_tile_contexts(&d->c, d->out);
}
static void cmd_focus(struct debug *d, const char *arg) { want_context(d, arg, &d->context); }
static void cmd_quit(struct debug *d, const char *arg) {
    (void)arg;
    d->quit = true;
}

struct command {
    const char *name, *alias, *help;
    void (*run)(struct debug *, const char *);
    bool bare; /* takes no argument */
};
static void cmd_help(struct debug *d, const char *arg);
static const struct command COMMANDS[] = {
    {"break", "b", "PLACE [if WHAT == VALUE]: stop before the slot at an address, symbol, symbol+N or "
                   "FILE:LINE; WHAT is a register of the slot's context or an address; == != < <= > >=",
     cmd_break, false},
    {"watch", "w", "ADDR | REG | CONTEXT:REG: stop after a word or a register has changed", cmd_watch, false},
    {"points", "p", "breakpoints and watches", cmd_points, true},
    {"delete", "d", "[N]: remove breakpoint or watch N, or all", cmd_delete, false},
    {"step", "s", "[N]: N slots of any context, in cycle order", cmd_step, false},
    {"next", "n", "[N]: N slots of the context that stopped last", cmd_next, false},
    {"continue", "c", "run to the next stop", cmd_continue, true},
    {"until", "u", "PLACE: run until the context that stopped last gets there", cmd_until, false},
    {"finish", "e", "run until the worker exits; supervisor: until it is at the address in $m10", cmd_finish, true},
    {"registers", "r", "[s|WORKER]: of the context that stopped last, or of another", cmd_registers, false},
    {"memory", "x", CLI_TILE_DUMP_SPEC, cmd_memory, false},
    {"set", "=", "REG|ADDR VALUE: a register of the context that stopped last, or a word", cmd_set, false},
    {"list", "l", "[PLACE]: disassembly around the next slot or a place", cmd_list, false},
    {"contexts", "i", "where every context is", cmd_contexts, true},
    {"focus", "f", "s|WORKER: the context that next, until, finish, registers and set mean", cmd_focus, false},
    {"help", "h", "[COMMAND]: this list", cmd_help, false},
    {"quit", "q", "end", cmd_quit, true},
};

static const struct command *command_find(const char *name) {
    for (uint32_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (strcmp(name, COMMANDS[i].name) == 0 || strcmp(name, COMMANDS[i].alias) == 0) return &COMMANDS[i];
    return NULL;
}

static void refuse_command(struct debug *d, const char *name) {
    const char *names[ARRAY_LEN(COMMANDS)];
    for (uint32_t i = 0; i < ARRAY_LEN(COMMANDS); i++) names[i] = COMMANDS[i].name;
    char *hint = isa_suggest(name, names, ARRAY_LEN(names));
    REFUSE(d, CLI_TILE_COMMAND, name, hint);
    g_free(hint);
}

static void cmd_help(struct debug *d, const char *arg) {
    if (arg[0] != 0 && command_find(arg) == NULL) {
        refuse_command(d, arg);
        return;
    }
    for (uint32_t i = 0; i < ARRAY_LEN(COMMANDS); i++)
        if (arg[0] == 0 || command_find(arg) == &COMMANDS[i])
            g_string_append_printf(d->out, "%-10s %-2s  %s\n", COMMANDS[i].name, COMMANDS[i].alias,
                                   COMMANDS[i].help);
}

static void execute(struct debug *d, const char *line) {
    char *text = g_strstrip(g_strdup(line)), *arg = text + strcspn(text, " \t");
    if (*arg != 0) *arg++ = 0;
    g_strstrip(arg);
    const struct command *c = command_find(text);
    d->refused = false;
    if (text[0] == 0 || text[0] == '#')
        ;
    else if (c == NULL)
        refuse_command(d, text);
    else if (c->bare && arg[0] != 0)
        REFUSE(d, CLI_TILE_NUMBER, arg, "nothing behind this command");
    else
        c->run(d, arg);
    g_free(text);
    if (!d->refused) return;
    if (d->n_refused++ == 0) d->first_refused = d->line;
}

/* --- The session. --- */

static void json_command(JsonBuilder *b, const struct debug *d, const char *line) {
    json_builder_begin_object(b);
    cli_tile_json_text(b, "command", line);
    json_builder_set_member_name(b, "refused");
    json_builder_add_boolean_value(b, d->refused);
    cli_tile_json_text(b, "output", d->out->str);
    json_builder_end_object(b);
}

static void flush(struct debug *d, JsonBuilder *b, const char *line) {
    if (b != NULL)
        json_command(b, d, line);
    else
        fputs(d->out->str, stdout);
    g_string_truncate(d->out, 0);
}

/* Lines until the end of the file or `quit`; an empty one on a terminal repeats the last. */
static void read_commands(struct debug *d, FILE *f, bool terminal, JsonBuilder *b) {
    char *line = NULL, *last = g_strdup("");
    size_t size = 0;
    while (!d->quit) {
        if (terminal) fputs("(tile) ", stdout);
        fflush(stdout);
        if (getline(&line, &size, f) < 0) break;
        d->line++;
        g_strchomp(line);
        if (!terminal && b == NULL) printf("> %s\n", line);
        if (line[0] != 0 || !terminal) {
            g_free(last);
            last = g_strdup(line);
        }
        execute(d, last);
        flush(d, b, last);
    }
    free(line); /* getline's */
    g_free(last);
}

static void json_end(JsonBuilder *b, const struct debug *d) {
    json_builder_end_array(b);
    cli_tile_json_text(b, "stop", cli_tile_stop_name(d->c.tile.stop.reason));
    cli_tile_json_int(b, "cycles", d->c.tile.stop.cycle);
    cli_tile_json_contexts(b, &d->c);
    cli_tile_json_fault(b, &d->c);
    json_builder_end_object(b);
    cli_tile_json_print(b);
}

static int session(struct debug *d) {
    GError *error = NULL;
    FILE *f = stdin;
    if (d->script != NULL && (f = fopen(d->script, "r")) == NULL) {
        diag_set(&error, FILE_OPEN, d->script, g_strerror(errno));
        return cli_fail(d->c.verb, error);
    }
    const bool terminal = f == stdin && isatty(STDIN_FILENO) && !d->json;
    JsonBuilder *b = d->json ? json_builder_new() : NULL;
    if (b != NULL) {
        json_builder_begin_object(b);
        json_builder_set_member_name(b, "commands");
        json_builder_begin_array(b);
    }
    d->c.said = d->out;
    d->c.tile.observer = observe;
    d->c.tile.observer_user = d;
    go(d, 1, -1, 0); /* to the first slot */
    flush(d, b, "");
    read_commands(d, f, terminal, b);
    if (b != NULL) json_end(b, d);
    if (f != stdin) fclose(f);
    d->c.said = NULL;
    if (terminal) return CLI_OK;
    if (d->n_refused != 0) {
        fflush(stdout);
        diag_set(&error, CLI_TILE_SCRIPT, d->n_refused, d->first_refused);
        return cli_fail(d->c.verb, error);
    }
    const enum tile_stop_reason end = d->c.tile.stop.reason;
    return end == TILE_STOP_FAULT || end == TILE_STOP_LIMIT ? CLI_DEVICE_FAULT : CLI_OK;
}

int cmd_tile_debug(int argc, char **argv) {
    struct debug d = {.c = CLI_TILE_DEFAULTS("tile-debug"), .only = -1};
    const GOptionEntry entries[] = {
        CLI_TILE_OPTIONS(&d.c),
        {"script", 0, 0, G_OPTION_ARG_FILENAME, &d.script, "Commands, one a line", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &d.json, "One JSON object: commands, what they said, the end", NULL},
        {0}};
    bool done;
    int status = CLI_WRONG_INPUT;
    d.points = g_array_new(false, false, sizeof(struct tile_point));
    d.out = g_string_new(NULL);
    if (cli_options(&argc, &argv, entries, "FILE.S|OBJECT...",
                    "Commands come from the terminal, standard input or --script; `help` lists them.\n"
                    "A script with a refused command ends with status 2, one that ends at a fault or the limit with 4.",
                    &done))
        status = done ? CLI_OK : cli_tile_open(&d.c, argv + 1) ? session(&d) : CLI_WRONG_INPUT;
    cli_tile_close(&d.c);
    g_array_free(d.points, true);
    g_string_free(d.out, true);
    g_free(d.script);
    return status;
}
