/* ipu-stack tile-run: runs a kernel on one tile; cycles per worker, label and instruction. */
#include "cli/cli.h"
#include "cli/cli_tile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct trace_slot {
    bool shown;
    uint32_t context, pc;
    uint64_t cycle;
    uint32_t m[16], a[8]; /* before */
    char *text, *writes;
};

struct run {
    struct cli_tile c;
    char **dump_specs;
    struct cli_tile_dump *dumps;
    uint32_t n_dumps;
    gboolean trace, cycles, json, registers;
    gint repeat;
    double seconds;        /* of the host, all repeats */
    uint64_t slots, fused, loop; /* of all repeats */
    /* Per word of region 0: times issued, cycles until the context's next slot. Per context: their sum. */
    uint64_t *count, *spent;
    uint8_t *who; /* the context that issued it last */
    uint64_t context_cycles[TILE_N_CONTEXTS];
    uint32_t last_pc[TILE_N_CONTEXTS];
    uint64_t last_cycle[TILE_N_CONTEXTS];
    /* --trace: the slot that was shown last, before its effects, and the registers then. */
    struct trace_slot trace_slot;
    GArray *traced; /* struct trace_slot, for JSON; `text` and `writes` are g_free'd */
};

enum { N_WORDS = (TARGET_REGION1_BASE - TARGET_SRAM_BASE) / 4 };

static void account(struct run *r, uint32_t context, uint64_t until) {
    const uint32_t word = (r->last_pc[context] - TARGET_SRAM_BASE) / 4;
    if (r->last_pc[context] == 0 || word >= N_WORDS) return;
    r->count[word]++;
    r->who[word] = (uint8_t)context;
    r->spent[word] += until - r->last_cycle[context];
    r->context_cycles[context] += until - r->last_cycle[context];
    r->last_pc[context] = 0;
}

static void copy_registers(const struct tile *t, uint32_t context, uint32_t m[16], uint32_t a[8]) {
    memset(a, 0, 8 * sizeof *a);
    memcpy(m, context ? t->w[context - 1].m : t->s.m, 16 * sizeof *m);
    if (context) memcpy(a, t->w[context - 1].a, 8 * sizeof *a);
}

/* What the slot that was shown last has written: registers that changed. */
static char *writes_of(const struct tile *t, const struct trace_slot *s) {
    uint32_t m[16], a[8];
    copy_registers(t, s->context, m, a);
    GString *out = g_string_new(NULL);
    for (uint32_t k = 0; k < 24; k++) {
        const uint32_t old = k < 16 ? s->m[k] : s->a[k - 16], now = k < 16 ? m[k] : a[k - 16];
        if (old != now)
            g_string_append_printf(out, "%s%c%u=%08x", out->len ? " " : "", k < 16 ? 'm' : 'a', k % 16, now);
    }
    return g_string_free(out, false);
}

static void trace_finish(struct run *r) {
    struct trace_slot *s = &r->trace_slot;
    if (!s->shown) return;
    s->shown = false;
    const struct tile_fault *f = &r->c.tile.fault;
    const bool fault = f->number != TILE_FAULT_NONE && f->context == s->context && f->cycle == s->cycle;
    s->writes = fault ? g_strdup("fault") : writes_of(&r->c.tile, s);
    if (r->json) {
        g_array_append_val(r->traced, *s);
        return;
    }
    static const char *const NAMES[] = {"S", "w0", "w1", "w2", "w3", "w4", "w5"};
    printf("%10" PRIu64 "  %-2s  0x%05x  %s%s%s\n", s->cycle, NAMES[s->context], s->pc, s->text,
           s->writes[0] ? "  -> " : "", s->writes);
    g_free(s->text);
    g_free(s->writes);
}

static void trace_begin(struct run *r, uint32_t context, uint32_t pc, uint64_t cycle) {
    GString *text = g_string_new(NULL);
    cli_tile_slot(&r->c, pc, context, text);
    r->trace_slot = (struct trace_slot){.shown = true, .context = context, .pc = pc, .cycle = cycle,
                                        .text = g_string_free(text, false)};
    copy_registers(&r->c.tile, context, r->trace_slot.m, r->trace_slot.a);
}

static bool observe(void *user, const struct tile *t, uint32_t context, uint32_t pc,
                    uint64_t cycle) {
    struct run *r = user;
    if (r->trace) {
        trace_finish(r);
        trace_begin(r, context, pc, cycle);
    }
    /* A launch starts a new account: the time between two launches belongs to nobody. */
    if (context != 0 && t->w[context - 1].start_cycle == cycle)
        account(r, context, r->last_cycle[context] + TARGET_LANE_CYCLES);
    account(r, context, cycle);
    r->last_pc[context] = pc;
    r->last_cycle[context] = cycle;
    return false;
}

/* The end of the last slot of a context. */
static uint64_t last_end(const struct run *r, uint32_t context) {
    const struct tile *t = &r->c.tile;
    const uint64_t last = r->last_cycle[context];
    if (context == 0) return MAX(last + 1, t->stop.cycle);
    const struct tile_worker *w = &t->w[context - 1];
    return w->active ? w->next_cycle : last + TARGET_LANE_CYCLES;
}

/* A slot that ended in a fault has not been issued. */
static void finish_accounts(struct run *r) {
    const struct tile_fault *f = &r->c.tile.fault;
    if (f->number != TILE_FAULT_NONE && r->last_pc[f->context] == f->pc && r->last_cycle[f->context] == f->cycle)
        r->last_pc[f->context] = 0;
    for (uint32_t k = 0; k < TILE_N_CONTEXTS; k++) account(r, k, last_end(r, k));
    if (r->trace) trace_finish(r);
}

/* Label that an address belongs to. */
static const char *label_of(const struct run *r, uint32_t address) {
    const struct isa_image_symbol *s = isa_image_at(r->c.image, address);
    return s != NULL ? s->name : "?";
}

static void print_instructions(const struct run *r) {
    printf("\n  address    issued      cycles  instruction\n");
    const char *label = NULL;
    for (uint32_t i = 0; i < N_WORDS; i++) {
        if (r->count[i] == 0) continue;
        const uint32_t at = TARGET_SRAM_BASE + 4 * i;
        const char *mine = label_of(r, at);
        if (label == NULL || strcmp(label, mine) != 0) printf("%s:\n", mine);
        label = mine;
        GString *text = g_string_new(NULL);
        cli_tile_slot(&r->c, at, r->who[i], text);
        printf("  0x%05x  %8" PRIu64 "  %10" PRIu64 "  %s\n", at, r->count[i], r->spent[i], text->str);
        g_string_free(text, true);
    }
}

/* Calls f for every label with its sums, in order of addresses. */
static void each_label(const struct run *r, void (*f)(const char *, uint64_t, uint64_t, void *),
                       void *context) {
    const char *label = NULL;
    uint64_t count = 0, spent = 0;
    for (uint32_t i = 0; i <= N_WORDS; i++) {
        const bool used = i < N_WORDS && r->count[i] != 0;
        if (i < N_WORDS && !used) continue;
        const char *mine = used ? label_of(r, TARGET_SRAM_BASE + 4 * i) : NULL;
        if (label != NULL && (mine == NULL || strcmp(label, mine) != 0)) {
            f(label, count, spent, context);
            count = spent = 0;
        }
        if (!used) break;
        label = mine;
        count += r->count[i];
        spent += r->spent[i];
    }
}

static void print_label(const char *label, uint64_t count, uint64_t spent, void *context) {
    (void)context;
    printf("  %-28s %10" PRIu64 " issued  %10" PRIu64 " cycles\n", label, count, spent);
}

static void print_workers(const struct run *r) {
    const struct tile *t = &r->c.tile;
    for (uint32_t i = 0; i < TILE_N_WORKERS; i++) {
        const struct tile_worker *w = &t->w[i];
        if (w->slots == 0) continue;
        printf("  worker %u: %" PRIu64 " slots, last launch cycles %" PRIu64 "..%" PRIu64 "\n", i,
               w->slots, w->start_cycle, w->active ? w->next_cycle : w->exit_cycle);
    }
    if (r->c.supervisor) printf("  supervisor: %" PRIu64 " instructions\n", t->s.instructions);
    if (t->counters.fetch_conflicts != 0)
        printf("  %" PRIu64 " data accesses to the memory element that code is fetched from\n",
               t->counters.fetch_conflicts);
}

static void print_permissive(const struct tile *t) {
    for (uint32_t n = 1; n < TILE_FAULT_LIMIT; n++)
        if (t->counters.faults[n] != 0)
            printf("  %" PRIu64 " x fault %u %s\n", t->counters.faults[n], n,
                   tile_fault_info((enum tile_fault_number)n)->name);
}

/* That nothing was found is worth a line when it was asked for. */
static void print_no_races(const struct run *r) {
    const struct tile *t = &r->c.tile;
    if (r->c.races && t->stop.reason == TILE_STOP_DONE && t->counters.faults[TILE_FAULT_RACE_WRITE_WRITE] == 0 &&
        t->counters.faults[TILE_FAULT_RACE_READ_WRITE] == 0)
        printf("  no races\n");
}

static bool has_run(const struct run *r, uint32_t context) {
    return context ? r->c.tile.w[context - 1].slots != 0 : r->c.supervisor;
}

static void print_cycles(const struct run *r) {
    printf("\n");
    uint64_t total = 0;
    for (uint32_t k = 0; k < TILE_N_CONTEXTS; k++) {
        if (!has_run(r, k)) continue;
        printf("  %-28s %28" PRIu64 " cycles\n", cli_tile_context_name(k), r->context_cycles[k]);
        total += r->context_cycles[k];
    }
    printf("  %-28s %28" PRIu64 " cycles\n\n", "all contexts", total);
    each_label(r, print_label, NULL);
    print_instructions(r);
}

static void print_text(const struct run *r) {
    const struct tile *t = &r->c.tile;
    GString *text = g_string_new(NULL);
    if (t->stop.reason == TILE_STOP_FAULT)
        cli_tile_fault(&r->c, text);
    else
        g_string_append_printf(text, "%s after %" PRIu64 " cycles\n", cli_tile_stop_name(t->stop.reason),
                               t->stop.cycle);
    fputs(text->str, stdout);
    g_string_truncate(text, 0);
    print_workers(r);
    print_permissive(t);
    print_no_races(r);
    if (r->repeat > 1)
        printf("  %d runs: %.1f million worker slots a second, %.1f %% fused, %.1f %% in loops\n", r->repeat,
               (double)r->slots / r->seconds / 1e6, 100.0 * (double)r->fused / (double)MAX(1, r->slots),
               100.0 * (double)r->loop / (double)MAX(1, r->slots));
    if (t->stop.reason == TILE_STOP_LIMIT) {
        g_string_append(text, "contexts\n");
        cli_tile_contexts(&r->c, text);
    }
    for (uint32_t k = 0; r->registers && k < TILE_N_CONTEXTS; k++) {
        if (!has_run(r, k)) continue;
        g_string_append_printf(text, "%s\n", cli_tile_context_name(k));
        cli_tile_registers(&r->c, k, text);
    }
    fputs(text->str, stdout);
    g_string_truncate(text, 0);
    if (r->cycles) print_cycles(r);
    for (uint32_t i = 0; i < r->n_dumps; i++) cli_tile_dump_print(&r->c, &r->dumps[i], text);
    fputs(text->str, stdout);
    g_string_free(text, true);
}

/* --- JSON. --- */

static void json_label(const char *label, uint64_t count, uint64_t spent, void *context) {
    JsonBuilder *b = context;
    json_builder_begin_object(b);
    cli_tile_json_text(b, "label", label);
    cli_tile_json_int(b, "issued", count);
    cli_tile_json_int(b, "cycles", spent);
    json_builder_end_object(b);
}

static void json_instructions(JsonBuilder *b, const struct run *r) {
    json_builder_set_member_name(b, "instructions");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < N_WORDS; i++) {
        if (r->count[i] == 0) continue;
        GString *text = g_string_new(NULL);
        cli_tile_slot(&r->c, TARGET_SRAM_BASE + 4 * i, r->who[i], text);
        json_builder_begin_object(b);
        cli_tile_json_int(b, "address", TARGET_SRAM_BASE + 4 * i);
        cli_tile_json_int(b, "issued", r->count[i]);
        cli_tile_json_int(b, "cycles", r->spent[i]);
        cli_tile_json_text(b, "text", text->str);
        json_builder_end_object(b);
        g_string_free(text, true);
    }
    json_builder_end_array(b);
}

static void json_workers(JsonBuilder *b, const struct run *r) {
    const struct tile *t = &r->c.tile;
    json_builder_set_member_name(b, "workers");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < TILE_N_WORKERS; i++) {
        if (t->w[i].slots == 0) continue;
        json_builder_begin_object(b);
        cli_tile_json_int(b, "worker", i);
        cli_tile_json_int(b, "slots", t->w[i].slots);
        cli_tile_json_int(b, "cycles", t->w[i].slots * TARGET_LANE_CYCLES);
        cli_tile_json_int(b, "first_cycle", t->w[i].start_cycle);
        json_builder_set_member_name(b, "exit_cycle");
        if (t->w[i].active)
            json_builder_add_null_value(b);
        else
            json_builder_add_int_value(b, (gint64)t->w[i].exit_cycle);
        if (r->registers) cli_tile_json_registers(b, &r->c, i + 1);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void json_supervisor(JsonBuilder *b, const struct run *r) {
    json_builder_set_member_name(b, "supervisor");
    if (!r->c.supervisor) {
        json_builder_add_null_value(b);
        return;
    }
    json_builder_begin_object(b);
    cli_tile_json_int(b, "instructions", r->c.tile.s.instructions);
    if (r->cycles) cli_tile_json_int(b, "cycles", r->context_cycles[0]);
    if (r->registers) cli_tile_json_registers(b, &r->c, 0);
    json_builder_end_object(b);
}

static void json_counted(JsonBuilder *b, const struct tile *t) {
    json_builder_set_member_name(b, "counted_faults");
    json_builder_begin_array(b);
    for (uint32_t n = 1; n < TILE_FAULT_LIMIT; n++) {
        if (t->counters.faults[n] == 0) continue;
        json_builder_begin_object(b);
        cli_tile_json_int(b, "number", n);
        cli_tile_json_text(b, "name", tile_fault_info((enum tile_fault_number)n)->name);
        cli_tile_json_int(b, "count", t->counters.faults[n]);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void json_trace(JsonBuilder *b, const struct run *r) {
    json_builder_set_member_name(b, "trace");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < r->traced->len; i++) {
        const struct trace_slot *s = &g_array_index(r->traced, struct trace_slot, i);
        json_builder_begin_object(b);
        cli_tile_json_int(b, "cycle", s->cycle);
        cli_tile_json_int(b, "context", s->context);
        cli_tile_json_int(b, "pc", s->pc);
        cli_tile_json_text(b, "text", s->text);
        cli_tile_json_text(b, "writes", s->writes);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void json_cycles(JsonBuilder *b, const struct run *r) {
    json_builder_set_member_name(b, "labels");
    json_builder_begin_array(b);
    each_label(r, json_label, b);
    json_builder_end_array(b);
    json_instructions(b, r);
}

static void print_json(const struct run *r) {
    const struct tile *t = &r->c.tile;
    JsonBuilder *b = json_builder_new();
    json_builder_begin_object(b);
    cli_tile_json_text(b, "stop", cli_tile_stop_name(t->stop.reason));
    cli_tile_json_text(b, "entry", label_of(r, r->c.entry_pc));
    cli_tile_json_int(b, "cycles", t->stop.cycle);
    cli_tile_json_int(b, "worker_slots", t->counters.worker_slots);
    cli_tile_json_int(b, "fused_slots", t->counters.fused_slots);
    cli_tile_json_int(b, "loop_slots", t->counters.loop_slots);
    cli_tile_json_int(b, "fetch_conflicts", t->counters.fetch_conflicts);
    cli_tile_json_int(b, "supervisor_instructions", t->s.instructions);
    if (r->repeat > 1) {
        json_builder_set_member_name(b, "million_slots_per_second");
        json_builder_add_double_value(b, (double)r->slots / r->seconds / 1e6);
        json_builder_set_member_name(b, "fused_share");
        json_builder_add_double_value(b, (double)r->fused / (double)MAX(1, r->slots));
        json_builder_set_member_name(b, "loop_share");
        json_builder_add_double_value(b, (double)r->loop / (double)MAX(1, r->slots));
    }
    json_workers(b, r);
    json_supervisor(b, r);
    cli_tile_json_contexts(b, &r->c);
    json_counted(b, t);
    cli_tile_json_fault(b, &r->c);
    if (r->cycles) json_cycles(b, r);
    if (r->trace) json_trace(b, r);
    json_builder_set_member_name(b, "dumps");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < r->n_dumps; i++) cli_tile_json_dump(b, &r->c, &r->dumps[i]);
    json_builder_end_array(b);
    json_builder_end_object(b);
    cli_tile_json_print(b);
}

static enum tile_stop_reason timed_run(struct run *r) {
    const clock_t start = clock();
    const enum tile_stop_reason reason = tile_run(&r->c.tile, (uint64_t)r->c.max_cycles);
    r->seconds += (double)(clock() - start) / CLOCKS_PER_SEC;
    r->slots += r->c.tile.counters.worker_slots;
    r->fused += r->c.tile.counters.fused_slots;
    r->loop += r->c.tile.counters.loop_slots;
    return reason;
}

/* Everything that can be wrong with the options, before anything runs. */
static bool prepare(struct run *r, char **paths) {
    GError *error = NULL;
    if (!cli_number_check("--repeat", r->repeat, 1, 1000000000, &error)) {
        cli_fail(r->c.verb, error);
        return false;
    }
    if (!cli_tile_open(&r->c, paths)) return false;
    r->n_dumps = r->dump_specs != NULL ? g_strv_length(r->dump_specs) : 0;
    r->dumps = g_new0(struct cli_tile_dump, r->n_dumps + 1);
    for (uint32_t i = 0; i < r->n_dumps; i++)
        if (!cli_tile_dump_parse(&r->c, "--dump", r->dump_specs[i], &r->dumps[i])) return false;
    if (!r->trace && !r->cycles) return true;
    r->count = g_new0(uint64_t, N_WORDS);
    r->spent = g_new0(uint64_t, N_WORDS);
    r->who = g_new0(uint8_t, N_WORDS);
    r->traced = g_array_new(false, false, sizeof(struct trace_slot));
    r->c.tile.observer = observe;
    r->c.tile.observer_user = r;
    return true;
}

static int run(struct run *r, char **paths) {
    if (!prepare(r, paths)) return CLI_WRONG_INPUT;
    enum tile_stop_reason reason = TILE_STOP_DONE;
    for (gint k = 0; reason == TILE_STOP_DONE && k < r->repeat; k++) {
        if (k > 0) {
            if (r->count != NULL) finish_accounts(r);
            if (!cli_tile_restart(&r->c)) return CLI_WRONG_INPUT;
        }
        reason = timed_run(r);
    }
    if (r->count != NULL) finish_accounts(r);
    if (r->json)
        print_json(r);
    else
        print_text(r);
    return reason == TILE_STOP_DONE ? CLI_OK : CLI_DEVICE_FAULT;
}

static void clear(struct run *r) {
    for (uint32_t i = 0; r->traced != NULL && i < r->traced->len; i++) {
        g_free(g_array_index(r->traced, struct trace_slot, i).text);
        g_free(g_array_index(r->traced, struct trace_slot, i).writes);
    }
    if (r->traced != NULL) g_array_free(r->traced, true);
    cli_tile_close(&r->c);
    g_strfreev(r->dump_specs);
    g_free(r->dumps);
    g_free(r->count);
    g_free(r->spent);
    g_free(r->who);
}

int cmd_tile_run(int argc, char **argv) {
    struct run r = {.c = CLI_TILE_DEFAULTS("tile-run"), .repeat = 1};
    const GOptionEntry entries[] = {
        CLI_TILE_OPTIONS(&r.c),
        {"dump", 0, 0, G_OPTION_ARG_STRING_ARRAY, &r.dump_specs, "Memory after the run",
         CLI_TILE_DUMP_SPEC},
        {"trace", 0, 0, G_OPTION_ARG_NONE, &r.trace, "Every slot and the registers it changed", NULL},
        {"cycles", 0, 0, G_OPTION_ARG_NONE, &r.cycles, "Cycles per context, label and instruction", NULL},
        {"registers", 0, 0, G_OPTION_ARG_NONE, &r.registers, "Print registers after the run", NULL},
        {"repeat", 0, 0, G_OPTION_ARG_INT, &r.repeat,
         "Run so often, registers reset, memory kept; prints the speed of the model", "N"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &r.json, "One JSON object", NULL},
        {0}};
    bool done;
    int status = CLI_WRONG_INPUT;
    if (cli_options(&argc, &argv, entries, "FILE.S|OBJECT...",
                    "Runs code on one tile. Workers end with exitz; supervisor code is called with\n"
                    "$m10 = 0 and $m11 = its stack, and ends when it returns.",
                    &done))
        status = done ? CLI_OK : run(&r, argv + 1);
    clear(&r);
    return status;
}
