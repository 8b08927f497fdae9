/* ipu-stack tile-run: runs a kernel on one tile; cycles per worker, label and instruction. */
#include "cli/cli.h"
#include "cli/cli_tile.h"

#include <inttypes.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct run {
    struct cli_tile c;
    char **dumps;
    gboolean trace, cycles, json, registers;
    gint repeat;
    double seconds;        /* of the host, all repeats */
    uint64_t slots, fused; /* of all repeats */
    /* Per word of region 0: times issued, cycles until the context's next slot. */
    uint64_t *count, *spent;
    uint32_t last_pc[TILE_N_CONTEXTS];
    uint64_t last_cycle[TILE_N_CONTEXTS];
};

enum { N_WORDS = (TARGET_REGION1_BASE - TARGET_SRAM_BASE) / 4 };

static void account(struct run *r, uint32_t context, uint64_t until) {
    const uint32_t word = (r->last_pc[context] - TARGET_SRAM_BASE) / 4;
    if (r->last_pc[context] == 0 || word >= N_WORDS) return;
    r->count[word]++;
    r->spent[word] += until - r->last_cycle[context];
    r->last_pc[context] = 0;
}

static bool observe(void *user, const struct tile *t, uint32_t context, uint32_t pc,
                    uint64_t cycle) {
    struct run *r = user;
    if (r->trace) {
        GString *text = g_string_new(NULL);
        cli_tile_slot(&r->c, pc, text);
        printf("%10" PRIu64 "  %-2s  0x%05x  %s\n", cycle,
               ((const char *[]){"S", "w0", "w1", "w2", "w3", "w4", "w5"})[context], pc, text->str);
        g_string_free(text, true);
    }
    /* A launch starts a new account: the time between two launches belongs to nobody. */
    if (context != 0 && t->w[context - 1].start_cycle == cycle)
        account(r, context, r->last_cycle[context] + TARGET_LANE_CYCLES);
    account(r, context, cycle);
    r->last_pc[context] = pc;
    r->last_cycle[context] = cycle;
    return false;
}

static void finish_accounts(struct run *r) {
    for (uint32_t k = 0; k < TILE_N_CONTEXTS; k++)
        account(r, k, r->last_cycle[k] + (k ? TARGET_LANE_CYCLES : 1));
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
        cli_tile_slot(&r->c, at, text);
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
}

static void print_permissive(const struct tile *t) {
    for (uint32_t n = 1; n < TILE_FAULT_LIMIT; n++)
        if (t->counters.faults[n] != 0)
            printf("  %" PRIu64 " x fault %u %s\n", t->counters.faults[n], n,
                   tile_fault_info((enum tile_fault_number)n)->name);
}

static bool print_text(const struct run *r) {
    const struct tile *t = &r->c.tile;
    GString *text = g_string_new(NULL);
    bool ok = true;
    if (t->stop.reason == TILE_STOP_FAULT) {
        cli_tile_fault(&r->c, text);
    } else {
        printf("%s after %" PRIu64 " cycles\n", cli_tile_stop_name(t->stop.reason), t->stop.cycle);
        print_workers(r);
        print_permissive(t);
        if (r->repeat > 1)
            printf("  %d runs: %.1f million worker slots a second, %.1f %% in fused loops\n", r->repeat,
                   (double)r->slots / r->seconds / 1e6, 100.0 * (double)r->fused / (double)r->slots);
        if (t->stop.reason != TILE_STOP_DONE) cli_tile_contexts(&r->c, text);
        if (r->registers)
            for (uint32_t k = 0; k < TILE_N_CONTEXTS; k++) {
                if (k ? t->w[k - 1].slots == 0 : !r->c.supervisor) continue;
                g_string_append_printf(text, k ? "worker %u\n" : "supervisor\n", k - 1);
                cli_tile_registers(&r->c, k, text);
            }
        if (r->cycles) {
            printf("\n");
            each_label(r, print_label, NULL);
            print_instructions(r);
        }
    }
    for (char **d = r->dumps; d != NULL && *d != NULL; d++) ok = cli_tile_dump(&r->c, *d, text) && ok;
    fputs(text->str, stdout);
    g_string_free(text, true);
    return ok;
}

/* --- JSON. --- */

static void member(JsonBuilder *b, const char *name, uint64_t v) {
    json_builder_set_member_name(b, name);
    json_builder_add_int_value(b, (gint64)v);
}
static void member_text(JsonBuilder *b, const char *name, const char *v) {
    json_builder_set_member_name(b, name);
    json_builder_add_string_value(b, v);
}

static void json_label(const char *label, uint64_t count, uint64_t spent, void *context) {
    JsonBuilder *b = context;
    json_builder_begin_object(b);
    member_text(b, "label", label);
    member(b, "issued", count);
    member(b, "cycles", spent);
    json_builder_end_object(b);
}

static void json_instructions(JsonBuilder *b, const struct run *r) {
    json_builder_set_member_name(b, "instructions");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < N_WORDS; i++) {
        if (r->count[i] == 0) continue;
        GString *text = g_string_new(NULL);
        cli_tile_slot(&r->c, TARGET_SRAM_BASE + 4 * i, text);
        json_builder_begin_object(b);
        member(b, "address", TARGET_SRAM_BASE + 4 * i);
        member(b, "issued", r->count[i]);
        member(b, "cycles", r->spent[i]);
        member_text(b, "text", text->str);
        json_builder_end_object(b);
        g_string_free(text, true);
    }
    json_builder_end_array(b);
}

static void json_workers(JsonBuilder *b, const struct tile *t) {
    json_builder_set_member_name(b, "workers");
    json_builder_begin_array(b);
    for (uint32_t i = 0; i < TILE_N_WORKERS; i++) {
        if (t->w[i].slots == 0) continue;
        json_builder_begin_object(b);
        member(b, "worker", i);
        member(b, "slots", t->w[i].slots);
        member(b, "first_cycle", t->w[i].start_cycle);
        member(b, "exit_cycle", t->w[i].exit_cycle);
        json_builder_end_object(b);
    }
    json_builder_end_array(b);
}

static void json_fault(JsonBuilder *b, const struct run *r) {
    const struct tile_fault *f = &r->c.tile.fault;
    json_builder_set_member_name(b, "fault");
    if (f->number == TILE_FAULT_NONE) {
        json_builder_add_null_value(b);
        return;
    }
    GString *where = g_string_new(NULL);
    cli_tile_where(&r->c, f->pc, where);
    json_builder_begin_object(b);
    member(b, "number", f->number);
    member_text(b, "name", tile_fault_info(f->number)->name);
    member(b, "context", f->context);
    member(b, "pc", f->pc);
    member_text(b, "where", where->str);
    member(b, "cycle", f->cycle);
    member(b, "address", f->address);
    member(b, "value", f->value);
    json_builder_end_object(b);
    g_string_free(where, true);
}

static bool json_dumps(JsonBuilder *b, const struct run *r) {
    bool ok = true;
    json_builder_set_member_name(b, "dumps");
    json_builder_begin_array(b);
    for (char **d = r->dumps; d != NULL && *d != NULL; d++) {
        GString *text = g_string_new(NULL);
        ok = cli_tile_dump(&r->c, *d, text) && ok;
        json_builder_add_string_value(b, text->str);
        g_string_free(text, true);
    }
    json_builder_end_array(b);
    return ok;
}

static bool print_json(const struct run *r) {
    const struct tile *t = &r->c.tile;
    JsonBuilder *b = json_builder_new();
    json_builder_begin_object(b);
    member_text(b, "stop", cli_tile_stop_name(t->stop.reason));
    member(b, "cycles", t->stop.cycle);
    member(b, "worker_slots", t->counters.worker_slots);
    member(b, "fused_slots", t->counters.fused_slots);
    member(b, "supervisor_instructions", t->s.instructions);
    if (r->repeat > 1) {
        json_builder_set_member_name(b, "million_slots_per_second");
        json_builder_add_double_value(b, (double)r->slots / r->seconds / 1e6);
        json_builder_set_member_name(b, "fused_share");
        json_builder_add_double_value(b, (double)r->fused / (double)r->slots);
    }
    json_workers(b, t);
    json_fault(b, r);
    if (r->cycles) {
        json_builder_set_member_name(b, "labels");
        json_builder_begin_array(b);
        each_label(r, json_label, b);
        json_builder_end_array(b);
        json_instructions(b, r);
    }
    const bool ok = json_dumps(b, r);
    json_builder_end_object(b);
    JsonNode *root = json_builder_get_root(b);
    char *text = json_to_string(root, true);
    printf("%s\n", text);
    g_free(text);
    json_node_unref(root);
    g_object_unref(b);
    return ok;
}

static enum tile_stop_reason timed_run(struct run *r) {
    const clock_t start = clock();
    const enum tile_stop_reason reason = tile_run(&r->c.tile, (uint64_t)r->c.max_cycles);
    r->seconds += (double)(clock() - start) / CLOCKS_PER_SEC;
    r->slots += r->c.tile.counters.worker_slots;
    r->fused += r->c.tile.counters.fused_slots;
    return reason;
}

static int run(struct run *r, char **paths) {
    if (!cli_tile_open(&r->c, paths)) return CLI_WRONG_INPUT;
    if (r->trace || r->cycles) {
        r->count = g_new0(uint64_t, N_WORDS);
        r->spent = g_new0(uint64_t, N_WORDS);
        r->c.tile.observer = observe;
        r->c.tile.observer_user = r;
    }
    enum tile_stop_reason reason = TILE_STOP_DONE;
    for (gint k = 0; reason == TILE_STOP_DONE && k < (r->repeat ? r->repeat : 1); k++) {
        if (k > 0 && !cli_tile_restart(&r->c)) return CLI_WRONG_INPUT;
        reason = timed_run(r);
    }
    if (r->count != NULL) finish_accounts(r);
    const bool ok = r->json ? print_json(r) : print_text(r);
    if (!ok) return CLI_WRONG_INPUT;
    return reason == TILE_STOP_DONE ? CLI_OK : CLI_DEVICE_FAULT;
}

int cmd_tile_run(int argc, char **argv) {
    struct run r = {.c = {.verb = "tile-run"}};
    const GOptionEntry entries[] = {
        CLI_TILE_OPTIONS(&r.c),
        {"dump", 0, 0, G_OPTION_ARG_STRING_ARRAY, &r.dumps, "Memory after the run",
         "ADDR:LEN[:words|f16|f32|f8|bytes]"},
        {"trace", 0, 0, G_OPTION_ARG_NONE, &r.trace, "Print every slot", NULL},
        {"cycles", 0, 0, G_OPTION_ARG_NONE, &r.cycles, "Cycles per label and instruction", NULL},
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
    cli_tile_close(&r.c);
    g_strfreev(r.dumps);
    g_free(r.count);
    g_free(r.spent);
    return status;
}
