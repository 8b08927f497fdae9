/* Networks on the command line: options, random contents, and the straight line to a package. */
#include "cli/cli.h"
#include "cli/cli_net.h"

#include "lower/lower.h"
#include "numeric/num_format.h"
#include "target/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

GOptionEntry *cli_net_entries(struct cli_net *n, const GOptionEntry *own) {
#define INT(name, field, text) {name, 0, 0, G_OPTION_ARG_INT, &n->field, text, "N"}
#define FLAG(name, field, text) {name, 0, 0, G_OPTION_ARG_NONE, &n->field, text, NULL}
    const GOptionEntry shared[] = {
        {"workload", 0, 0, G_OPTION_ARG_STRING, &n->workload, "Built-in network", "NAME"},
        {"graph", 0, 0, G_OPTION_ARG_FILENAME, &n->graph_path, "Network in text form", "FILE"},
        INT("tiles", tiles, "Tiles to use (default: all 1472)"),
        {"seed", 0, 0, G_OPTION_ARG_INT64, &n->seed, "Seed of random contents (default 1)", "N"},
        INT("threads", threads, "Threads (default: one per core)"),
        INT("mlp-batch", mlp_batch, "Images"),
        INT("mlp-tokens", mlp_tokens, "Tokens per image"),
        INT("mlp-dim", mlp_dim, "Width"),
        INT("mlp-hidden-dim", mlp_hidden_dim, "Hidden width"),
        INT("mlp-blocks", mlp_blocks, "Blocks in a repeat"),
        INT("attention-batch", attention_batch, "Images"),
        INT("attention-heads", attention_heads, "Heads"),
        INT("attention-blocks", attention_blocks, "Blocks"),
        INT("benchmark-rows", benchmark_rows, "Rows of the left operand"),
        INT("benchmark-inner", benchmark_inner, "Inner dimension"),
        INT("benchmark-columns", benchmark_columns, "Columns of the right operand"),
        INT("vit-batch", vit_batch, "Images"),
        INT("vit-layers", vit_layers, "Layers"),
        INT("vit-image-size", vit_image_size, "Pixels per side, a multiple of 14"),
        FLAG("vit-small", vit_small, "Small encoder for tests"),
        FLAG("fuse-qkv", fuse_qkv, "One product for Q, K and V"),
        {"fp8-scale", 0, 0, G_OPTION_ARG_STRING, &n->fp8_scale,
         "Products with parameters in F8, operands scaled by 2^S", "S"},
        {"attention-qk-fp8-scale", 0, 0, G_OPTION_ARG_STRING, &n->attention_qk_scale,
         "Queries and keys of attention in F8, scaled by 2^S", "S"},
        {"attention-pv-fp8-scale", 0, 0, G_OPTION_ARG_STRING, &n->attention_pv_scale,
         "Probabilities and values of attention in F8, scaled by 2^S", "S"},
        {"attention-strategy", 0, 0, G_OPTION_ARG_STRING, &n->attention_strategy,
         "auto, key-split, materialised or streaming", "NAME"},
        {"attention-products", 0, 0, G_OPTION_ARG_STRING, &n->attention_products,
         "Own grids in materialised attention: auto, shared-rows, qk-only, pv-only, independent",
         "NAME"},
        {"gemm-plan-constraint", 0, 0, G_OPTION_ARG_STRING_ARRAY, &n->constraints,
         "OP:ROWSxCOLUMNSxINNER[:...], may be repeated", "SPEC"},
        FLAG("inputs-once", inputs_once,
             "Store host inputs once and distribute them on the device (default: as they are read)"),
        INT("row-passes", row_passes, "Passes over the rows of every product (default: as memory requires)"),
        INT("optimization-steps", optimization_steps, "Grids kept per product (default: planner's)"),
        {"exchange-effort", 0, 0, G_OPTION_ARG_STRING, &n->exchange_effort,
         "Schedules: quick (default), normal (1 % fewer cycles, slower) or best", "E"},
        INT("exchange-schedule-finalists", finalists, "Plans tried when one does not fit (default 3)"),
        {"export-exchange-schedule", 0, 0, G_OPTION_ARG_FILENAME, &n->exchange_export,
         "Write the problems of all exchange phases (.json, .json.zst, or SQLite)", "FILE"},
        {"placement-dump", 0, 0, G_OPTION_ARG_FILENAME, &n->placement_dump,
         "Write every placement problem with its map here", "DIR"},
        FLAG("sample-cycles", sample,
             "Cycle sampling in the programs (of a step in a repeat: its last iteration)"),
    };
#undef INT
#undef FLAG
    size_t n_own = 0;
    while (own[n_own].long_name != NULL) n_own++;
    GOptionEntry *all = g_new0(GOptionEntry, ARRAY_LEN(shared) + n_own + 1);
    memcpy(all, shared, sizeof shared);
    memcpy(all + ARRAY_LEN(shared), own, sizeof *own * n_own);
    return all;
}

/* Options that belong to some workloads: numbers from 1 on (0 = not given) and flags. */
#define MLP "siglip-mlp-benchmark"
#define ATTENTION "siglip-attention-benchmark"
#define VIT "siglip-vit-benchmark"
static const struct workload_option {
    const char *option, *workloads; /* separated by ", " */
    size_t number, flag;            /* offset in struct cli_net + 1; 0 = not this kind */
    gint64 most;
} workload_options[] = {
#define NUMBER(option, field, most, workloads)                                                     \
    {option, workloads, offsetof(struct cli_net, field) + 1, 0, most}
#define FLAG(option, field, workloads)                                                             \
    {option, workloads, 0, offsetof(struct cli_net, field) + 1, 0}
    NUMBER("--mlp-batch", mlp_batch, 1 << 20, MLP),
    NUMBER("--mlp-tokens", mlp_tokens, 1 << 24, MLP ", " ATTENTION),
    NUMBER("--mlp-dim", mlp_dim, 1 << 24, MLP),
    NUMBER("--mlp-hidden-dim", mlp_hidden_dim, 1 << 24, MLP),
    NUMBER("--mlp-blocks", mlp_blocks, 1 << 20, MLP),
    NUMBER("--attention-batch", attention_batch, 1 << 20, ATTENTION),
    NUMBER("--attention-heads", attention_heads, 1 << 20, ATTENTION),
    NUMBER("--attention-blocks", attention_blocks, 1 << 20, ATTENTION),
    NUMBER("--benchmark-rows", benchmark_rows, 1 << 28, "gemm-benchmark"),
    NUMBER("--benchmark-inner", benchmark_inner, 1 << 28, "gemm-benchmark"),
    NUMBER("--benchmark-columns", benchmark_columns, 1 << 28, "gemm-benchmark"),
    NUMBER("--vit-batch", vit_batch, 1 << 20, VIT),
    NUMBER("--vit-layers", vit_layers, 1 << 20, VIT),
    NUMBER("--vit-image-size", vit_image_size, 1 << 20, VIT),
    FLAG("--vit-small", vit_small, VIT),
    FLAG("--fuse-qkv", fuse_qkv, ATTENTION ", " VIT),
#undef NUMBER
#undef FLAG
};

void cli_net_defaults(struct cli_net *n) {
    *n = (struct cli_net){.tiles = TARGET_N_TILES, .seed = 1, .finalists = 3};
    for (size_t i = 0; i < ARRAY_LEN(workload_options); i++)
        if (workload_options[i].number != 0)
            *(gint *)(void *)((char *)n + workload_options[i].number - 1) = CLI_NET_NOT_GIVEN;
}

static bool one_of(const char *list, const char *name) {
    char **names = g_strsplit(list, ", ", -1);
    const bool found = name != NULL && g_strv_contains((const char *const *)names, name);
    g_strfreev(names);
    return found;
}

/* What is given must be in range and have a meaning for the network. */
static bool check_workload_options(const struct cli_net *n, GError **error) {
    for (size_t i = 0; i < ARRAY_LEN(workload_options); i++) {
        const struct workload_option *o = &workload_options[i];
        const char *base = (const char *)n;
        if (o->flag != 0 && !*(const gboolean *)(const void *)(base + o->flag - 1)) continue;
        if (o->number != 0) {
            const gint v = *(const gint *)(const void *)(base + o->number - 1);
            if (v == CLI_NET_NOT_GIVEN) continue;
            if (!cli_number_check(o->option, v, 1, o->most, error)) return false;
        }
        if (one_of(o->workloads, n->workload)) continue;
        diag_set(error, CLI_IRRELEVANT, o->option, o->workloads,
                 n->workload != NULL ? n->workload : "a graph from a file");
        return false;
    }
    if (n->vit_small && n->vit_image_size != CLI_NET_NOT_GIVEN) {
        diag_set(error, CLI_ARGUMENTS, "--vit-small excludes --vit-image-size");
        return false;
    }
    return true;
}

static bool check_numbers(const struct cli_net *n, GError **error) {
    const struct {
        const char *option;
        gint64 v, least, most;
    } c[] = {
        {"--tiles", n->tiles, 1, TARGET_N_TILES},
        {"--row-passes", n->row_passes, 0, 8},
        {"--optimization-steps", n->optimization_steps, 0, 1 << 20},
        {"--exchange-schedule-finalists", n->finalists, 1, 1000},
    };
    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        if (!cli_number_check(c[i].option, c[i].v, c[i].least, c[i].most, error)) return false;
    return check_workload_options(n, error);
}

/* Options that no operation of the network could take. */
static bool check_operations(const struct cli_net *n, GError **error) {
    bool product = false, attention = false;
    for (uint32_t i = 0; i < n->graph->n_ops; i++) {
        product = product || n->graph->ops[i].kind == GRAPH_GEMM;
        attention = attention || n->graph->ops[i].kind == GRAPH_ATTENTION;
    }
    const struct {
        const char *option, *needs;
        bool ok;
    } c[] = {
        {"--fp8-scale", "networks with products", n->fp8_scale == NULL || product},
        {"--attention-qk-fp8-scale", "networks with attention",
         n->attention_qk_scale == NULL || attention},
        {"--attention-pv-fp8-scale", "networks with attention",
         n->attention_pv_scale == NULL || attention},
        {"--attention-strategy", "networks with attention",
         n->attention_strategy == NULL || attention},
        {"--attention-products", "networks with attention",
         n->attention_products == NULL || attention},
    };
    for (size_t i = 0; i < ARRAY_LEN(c); i++) {
        if (c[i].ok) continue;
        diag_set(error, CLI_IRRELEVANT, c[i].option, c[i].needs, n->name);
        return false;
    }
    return true;
}

static struct graph *build_workload(const struct cli_net *n, GError **error) {
    struct graph_workload_options o;
    graph_workload_defaults(&o);
    o.tiles = (uint32_t)n->tiles;
#define TAKE(field) \
    if (n->field != CLI_NET_NOT_GIVEN) o.field = (uint32_t)n->field
    TAKE(mlp_batch);
    TAKE(mlp_tokens);
    TAKE(mlp_dim);
    TAKE(mlp_hidden_dim);
    TAKE(mlp_blocks);
    TAKE(attention_batch);
    TAKE(attention_heads);
    TAKE(attention_blocks);
    TAKE(benchmark_rows);
    TAKE(benchmark_inner);
    TAKE(benchmark_columns);
    TAKE(vit_batch);
    TAKE(vit_layers);
    TAKE(vit_image_size);
#undef TAKE
    if (n->vit_small) o.vit_small = true;
    if (n->fuse_qkv) o.fuse_qkv = true;
    return graph_workload_build(n->workload, &o, error);
}

static struct graph *read_graph(const char *path, GError **error) {
    uint8_t *text;
    size_t size;
    if (!file_read(path, 1 << 28, &text, &size, error)) return NULL;
    text[size] = 0;
    struct graph *g = NULL;
    if (memchr(text, 0, size) != NULL) diag_set(error, CLI_NOT_TEXT, path);
    else g = graph_parse((const char *)text, path, error);
    g_free(text);
    if (g != NULL && !graph_verify(g, error)) {
        graph_free(g);
        return NULL;
    }
    return g;
}

bool cli_net_build(struct cli_net *n, GError **error) {
    if (!check_numbers(n, error) || !cli_threads_set(n->threads, error)) return false;
    if ((n->workload == NULL) == (n->graph_path == NULL)) {
        diag_set(error, CLI_ONE_NETWORK);
        return false;
    }
    n->graph = n->workload != NULL ? build_workload(n, error) : read_graph(n->graph_path, error);
    n->name = n->workload != NULL ? n->workload : n->graph_path;
    return n->graph != NULL && check_operations(n, error);
}

void cli_net_clear(struct cli_net *n) {
    graph_free(n->graph);
    g_free(n->workload);
    g_free(n->graph_path);
    g_free(n->fp8_scale);
    g_free(n->attention_qk_scale);
    g_free(n->attention_pv_scale);
    g_free(n->placement_dump);
    g_free(n->exchange_export);
    g_free(n->attention_strategy);
    g_free(n->attention_products);
    g_free(n->exchange_effort);
    g_strfreev(n->constraints);
}

void cli_stage(const char *text) {
    if (isatty(STDERR_FILENO)) fprintf(stderr, "ipu-stack: %s\n", text);
}

/* --- Compiling --- */

/* A power-of-two scale switches its F8 product on. */
static bool read_scale(const char *option, const char *text, bool *ret_on, int32_t *ret,
                       GError **error) {
    if (text == NULL) return true;
    char *end;
    errno = 0;
    const long s = strtol(text, &end, 10);
    if (errno != 0 || *end != 0 || end == text) {
        diag_set(error, CLI_NOT_NUMBER, option, text);
        return false;
    }
    if (!cli_number_check(option, s, -16, 15, error)) return false;
    *ret_on = true;
    *ret = (int32_t)s;
    return true;
}

struct choice {
    const char *text;
    uint8_t value;
};
/* With the names that other documents use. */
static const struct choice STRATEGIES[] = {
#define PLAN_ATTENTION(name, text) {text, PLAN_ATTENTION_##name},
#include "plan/plan_attention.def"
#undef PLAN_ATTENTION
    {"materialized", PLAN_ATTENTION_MATERIALISED},
    {"flash", PLAN_ATTENTION_STREAMING},
    {NULL, 0},
};
static const struct choice PRODUCTS[] = {
#define PLAN_PRODUCTS(name, text) {text, PLAN_PRODUCTS_##name},
#include "plan/plan_attention.def"
#undef PLAN_PRODUCTS
    {NULL, 0},
};

static const struct choice EFFORTS[] = {
    {"quick", EXCH_EFFORT_QUICK},
    {"normal", EXCH_EFFORT_NORMAL},
    {"best", EXCH_EFFORT_BEST},
    {NULL, 0},
};

static bool read_choice(const char *option, const char *text, const struct choice *choices,
                        uint8_t *ret, GError **error) {
    if (text == NULL) return true;
    GString *known = g_string_new(NULL);
    bool found = false;
    for (const struct choice *c = choices; !found && c->text != NULL; c++) {
        found = strcmp(c->text, text) == 0;
        if (found) *ret = c->value;
        g_string_append_printf(known, "%s%s", known->len != 0 ? ", " : "", c->text);
    }
    if (!found) diag_set(error, CLI_CHOICE, option, text, known->str);
    g_string_free(known, true);
    return found;
}

static bool plan_options(const struct cli_net *n, struct plan_options *o,
                         struct plan_constraint **ret_constraints, GError **error) {
    plan_options_defaults(o);
    o->n_tiles = (uint32_t)n->tiles;
    o->inputs_once = n->inputs_once;
    o->passes = (uint32_t)n->row_passes;
    if (n->optimization_steps != 0) o->candidates = (uint32_t)n->optimization_steps;
    if (!read_scale("--fp8-scale", n->fp8_scale, &o->fp8, &o->fp8_exponent, error) ||
        !read_scale("--attention-qk-fp8-scale", n->attention_qk_scale, &o->attention_qk_fp8,
                    &o->attention_qk_exponent, error) ||
        !read_scale("--attention-pv-fp8-scale", n->attention_pv_scale, &o->attention_pv_fp8,
                    &o->attention_pv_exponent, error) ||
        !read_choice("--attention-strategy", n->attention_strategy, STRATEGIES,
                     &o->attention_strategy, error) ||
        !read_choice("--attention-products", n->attention_products, PRODUCTS,
                     &o->attention_products, error))
        return false;
    const uint32_t n_constraints = n->constraints != NULL ? g_strv_length(n->constraints) : 0;
    *ret_constraints = g_new0(struct plan_constraint, n_constraints + 1);
    for (uint32_t i = 0; i < n_constraints; i++)
        if (!plan_constraint_parse(n->constraints[i], &(*ret_constraints)[i], error)) return false;
    o->n_constraints = n_constraints;
    o->constraints = *ret_constraints;
    return true;
}

static char *plan_text(const struct plan_result *r) {
    GString *s = g_string_new(NULL);
    for (uint32_t i = 0; i < r->n_products; i++) {
        const struct plan_product *p = &r->products[i];
        g_string_append_printf(s, "  %-20s grid %ux%ux%u (rows x columns x inner), largest tile "
                                  "%ux%ux%u, %s\n",
                               p->operation, p->rows, p->columns, p->inner, p->local_rows,
                               p->local_columns, p->local_inner,
                               p->interleaved ? "interleaved" : "standard");
    }
    return g_string_free(s, false);
}

static char *infeasible_json(const struct plan_infeasible *f, const char *help) {
    GString *s = g_string_new(NULL);
    g_string_append_printf(
        s,
        "{\"status\":\"infeasible\",\"part\":\"%s\",\"tile\":%u,\"needs_bytes\":%" G_GUINT64_FORMAT
        ",\"has_bytes\":%" G_GUINT64_FORMAT ",\"missing_bytes\":%" G_GUINT64_FORMAT ",\"users\":[",
        f->memory, f->tile, f->needs_bytes, f->has_bytes, f->needs_bytes - f->has_bytes);
    for (uint32_t i = 0; i < f->n_users; i++) {
        g_string_append_printf(s, "%s{\"bytes\":%" G_GUINT64_FORMAT ",\"name\":", i != 0 ? "," : "",
                               f->users[i].bytes);
        json_string(f->users[i].name, s);
        g_string_append_c(s, '}');
    }
    g_string_append(s, "],\"help\":[");
    json_string(help, s);
    g_string_append(s, "]}");
    return g_string_free(s, false);
}

/* Whether a plan exists with other options. */
static bool plan_exists(const struct cli_net *n, const struct plan_options *o) {
    struct plan_result r;
    const bool ok = plan_graph(n->graph, o, &r, NULL) == PLAN_OK;
    if (ok) program_free(r.program);
    return ok;
}

/* What would help, with what is known of it. */
static GString *plan_help(const struct cli_net *n, const struct plan_options *o,
                          const struct plan_infeasible *f) {
    GString *help = g_string_new("a smaller batch or fewer rows");
    struct plan_options f8 = *o, more = *o;
    f8.fp8 = true;
    more.n_tiles = TARGET_N_TILES;
    if (!o->fp8)
        g_string_append_printf(help, ", operands of products in F8 (--fp8-scale%s)",
                               plan_exists(n, &f8) ? "; a plan then exists" : "");
    if (n->graph->n_blocks > 1) {
        g_string_append(help, ", fewer iterations of its repeat");
        if (f->fewer_iterations != 0)
            g_string_append_printf(help, " (%u fewer are enough for this product)", f->fewer_iterations);
    }
    if (n->tiles < TARGET_N_TILES)
        g_string_append_printf(help, ", more tiles (--tiles; %d of %u are used%s)", n->tiles,
                               TARGET_N_TILES,
                               plan_exists(n, &more) ? "; with all a plan exists" : "");
    return help;
}

static void infeasible_plan(const struct cli_net *n, const struct plan_options *o,
                            const struct plan_infeasible *f, struct cli_built *ret) {
    GString *s = g_string_new(NULL);
    g_string_append_printf(s,
                           "does not fit: '%s' needs %" G_GUINT64_FORMAT " bytes of %s memory on "
                           "tile %u, which has %" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                           " bytes too many\n",
                           f->operation, f->needs_bytes, f->memory, f->tile, f->has_bytes,
                           f->needs_bytes - f->has_bytes);
    if (f->grid[0] != 0)
        g_string_append_printf(s, "  on the grid that lacks least, %ux%ux%u (rows x columns x "
                                  "inner):\n", f->grid[0], f->grid[1], f->grid[2]);
    for (uint32_t i = 0; i < f->n_users; i++)
        g_string_append_printf(s, "  %12" G_GUINT64_FORMAT " B  %s\n", f->users[i].bytes,
                               f->users[i].name);
    GString *help = plan_help(n, o, f);
    g_string_append_printf(s, "what would help: %s\n", help->str);
    g_free(ret->report);
    ret->report = g_string_free(s, false);
    g_free(ret->report_json);
    ret->report_json = infeasible_json(f, help->str);
    g_string_free(help, true);
}

/* One plan down to its package. *ret_more: another plan may still fit. */
static bool compile_rank(const struct cli_net *n, const struct plan_options *o,
                         struct cli_built *ret, bool *ret_more, GError **error) {
    uint8_t effort = EXCH_EFFORT_QUICK;
    if (!read_choice("--exchange-effort", n->exchange_effort, EFFORTS, &effort, error))
        return false;
    struct plan_result plan;
    *ret_more = false;
    cli_stage("planning");
    const enum plan_status status = plan_graph(n->graph, o, &plan, error);
    if (status == PLAN_ERROR) return false;
    if (status == PLAN_INFEASIBLE) {
        if (ret->report == NULL) infeasible_plan(n, o, &plan.infeasible, ret);
        return true;
    }
    cli_stage("placing, scheduling and emitting");
    char *text = plan_text(&plan);
    struct tile_graph *g = NULL;
    const struct compile_options c = {.sample = n->sample, .effort = effort,
                                      .workload = n->name, .plan = text,
                                      .placement_dump = n->placement_dump,
                                      .exchange_export = n->exchange_export};
    struct compile_result r = {0};
    struct lower_options l;
    lower_defaults(&l);
    l.results = n->diagnostic;
    const bool ok = lower_program(plan.program, &l, &g, error) &&
                    compile_tile_graph(g, &c, &r, error);
    if (ok && r.package != NULL) {
        ret->package = g_steal_pointer(&r.package);
        ret->plan = g_steal_pointer(&text);
        ret->rows = r.rows;
        ret->rank = o->rank;
        ret->precision = plan.precision;
        ret->program = g_steal_pointer(&plan.program);
    } else if (ok && ret->report == NULL) {
        ret->report = g_steal_pointer(&r.report);
        ret->report_json = g_steal_pointer(&r.report_json);
    }
    *ret_more = ok && ret->package == NULL;
    compile_result_free(&r);
    if (g != NULL) tile_graph_free(g);
    if (plan.program != NULL) program_free(plan.program);
    g_free(text);
    return ok;
}

bool cli_net_compile(const struct cli_net *n, struct cli_built *ret, GError **error) {
    *ret = (struct cli_built){0};
    struct plan_options o;
    struct plan_constraint *constraints = NULL;
    const gint64 start = g_get_monotonic_time();
    bool ok = plan_options(n, &o, &constraints, error), more = true;
    for (o.rank = 0; ok && more && o.rank < (uint32_t)n->finalists; o.rank++)
        ok = compile_rank(n, &o, ret, &more, error);
    g_free(constraints);
    ret->seconds = (double)(g_get_monotonic_time() - start) / 1e6;
    if (!ok) cli_built_clear(ret);
    return ok;
}

void cli_built_clear(struct cli_built *b) {
    package_free(b->package);
    g_free(b->report);
    g_free(b->report_json);
    g_free(b->plan);
    if (b->program != NULL) program_free(b->program);
    *b = (struct cli_built){0};
}

/* --- Contents --- */

void cli_decode(const struct package_binding *b, const uint8_t *stored, uint64_t n, float *ret) {
    switch (b->format) {
    case TG_F32: memcpy(ret, stored, 4 * n); break;
    case TG_F16: num_f16_to_f32_n(n, (const uint16_t *)stored, ret); break;
    case TG_U32:
        for (uint64_t i = 0; i < n; i++) {
            uint32_t v;
            memcpy(&v, stored + 4 * i, 4);
            ret[i] = (float)v;
        }
        break;
    default:
        num_f8_to_f32_n(n, stored, b->format == TG_F8_F143 ? NUM_F143 : NUM_F152, b->scale, ret);
    }
}

void cli_encode(const struct package_binding *b, const float *values, uint64_t n, uint8_t *ret) {
    switch (b->format) {
    case TG_F32: memcpy(ret, values, 4 * n); break;
    case TG_F16: num_f16_from_f32_n(n, values, (uint16_t *)ret); break;
    case TG_U32:
        for (uint64_t i = 0; i < n; i++) {
            const uint32_t v = values[i] >= 0 && values[i] < 0x1p32f ? (uint32_t)values[i] : UINT32_MAX;
            memcpy(ret + 4 * i, &v, 4);
        }
        break;
    default:
        num_f8_from_f32_n(n, values, b->format == TG_F8_F143 ? NUM_F143 : NUM_F152, b->scale, ret);
    }
}

enum { FILL_BLOCK = 1 << 14 };
struct filling {
    const struct cli_net *n;
    const struct graph_value *v;
    const struct package_binding *b;
    uint64_t elements;
    uint8_t *out;
    uint64_t *bad; /* of every block: the first element that the format cannot hold, or n */
};

static void fill_block(uint32_t i, uint32_t thread, void *context) {
    (void)thread;
    const struct filling *f = context;
    const uint64_t first = (uint64_t)i * FILL_BLOCK;
    const uint64_t n = MIN((uint64_t)FILL_BLOCK, f->elements - first);
    float v[FILL_BLOCK];
    graph_fill_elements(f->v, (uint64_t)f->n->seed, first, n, v);
    const uint64_t bad = cli_range_check(f->b, v, n);
    f->bad[i] = bad < n ? first + bad : f->elements;
    cli_encode(f->b, v, n, f->out + first * package_format_bytes(f->b->format));
}

/* Fails for the first element that the format cannot hold. */
static bool fill_check(const struct filling *f, uint32_t n_blocks, GError **error) {
    uint64_t bad = f->elements;
    for (uint32_t i = 0; i < n_blocks; i++) bad = MIN(bad, f->bad[i]);
    if (bad == f->elements) return package_indices_check(f->b, f->out, error);
    diag_set(error, CLI_FILL_RANGE, f->b->name, bad,
             (double)graph_fill_element(f->v, (uint64_t)f->n->seed, bad),
             package_format_name(f->b->format));
    return false;
}

uint8_t *cli_net_fill(const struct cli_net *n, uint32_t value, const struct package_binding *b,
                      GError **error) {
    struct filling f = {.n = n, .v = &n->graph->values[value], .b = b,
                        .elements = package_binding_elements(b),
                        .out = g_malloc(b->data_bytes + 1)};
    const uint32_t n_blocks = (uint32_t)ceil_div_u64(f.elements, FILL_BLOCK);
    f.bad = g_new(uint64_t, n_blocks + 1);
    par_for(n_blocks, fill_block, &f);
    const bool ok = fill_check(&f, n_blocks, error);
    g_free(f.bad);
    if (ok) return f.out;
    g_free(f.out);
    graph_error_at(n->graph, f.v->line, error);
    return NULL;
}

bool cli_net_parameters(const struct cli_net *n, struct package *p, GError **error) {
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        struct package_binding *b = &p->bindings[i];
        if (b->kind != TG_BIND_PARAMETER) continue;
        const uint32_t value = graph_find_value(n->graph, b->name);
        BUG_ON(value == GRAPH_NONE);
        uint8_t *data = cli_net_fill(n, value, b, error);
        if (data == NULL) return false;
        b->data = arena_copy(p->arena, data, b->data_bytes);
        g_free(data);
    }
    return true;
}
