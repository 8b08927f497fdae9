/* Diagnostic runs: a right encoder passes in every intermediate, in every iteration; one wrong byte,
 * in a parameter or in a value while it lives, is found at the operation, iteration, element, tile
 * and owner where it acts first. */
#include "compile/compile.h"
#include "graph/graph.h"
#include "exchange/exch.h"
#include "lower/lower.h"
#include "plan/plan.h"
#include "runtime/diagnostic.h"
#include "runtime/runtime.h"

#include "numeric/num_format.h"
#include "target/target.h"

#include <math.h>
#include <string.h>

enum { N_TILES = 64, N_LAYERS = 3, SEED = 1 };
static const uint8_t BAD_HALF[2] = {0x00, 0x5c}; /* 256 */

struct net {
    struct graph *g;
    struct plan_result plan;
    struct package *p;
};

static struct net compiled;

static void compile_net(void) {
    GError *error = NULL;
    struct graph_workload_options w;
    graph_workload_defaults(&w);
    w.tiles = N_TILES;
    w.vit_small = true;
    w.vit_layers = N_LAYERS;
    compiled.g = graph_workload_build("siglip-vit-benchmark", &w, &error);
    g_assert_no_error(error);
    struct plan_options o;
    plan_options_defaults(&o);
    o.n_tiles = N_TILES;
    g_assert_cmpint(plan_graph(compiled.g, &o, &compiled.plan, &error), ==, PLAN_OK);
    struct lower_options l;
    lower_defaults(&l);
    l.results = true;
    struct tile_graph *tg;
    g_assert_true(lower_program(compiled.plan.program, &l, &tg, &error));
    const struct compile_options c = {.effort = EXCH_EFFORT_NORMAL};
    struct compile_result r;
    g_assert_true(compile_tile_graph(tg, &c, &r, &error));
    g_assert_nonnull(r.package);
    compiled.p = g_steal_pointer(&r.package);
    compile_result_free(&r);
    tile_graph_free(tg);
}

/* Flips what a tile holds when it begins the step behind `step` of turn `turn`. */
struct damage {
    struct diagnostic *d;
    const struct package_slice *slice; /* first element of it; NULL: nothing */
    uint32_t turn, seen;
};

static void damage_seen(void *user, struct device *device, uint32_t tile, uint32_t mark) {
    struct damage *x = user;
    const uint32_t at = compiled.p->first_mark[tile] + mark;
    const uint32_t step = at < compiled.p->first_mark[tile + 1] ? compiled.p->marks[at].step
                                                                : compiled.p->n_steps;
    if (x->slice != NULL && tile == x->slice->tile && step > x->slice->step) {
        uint32_t next = compiled.p->first_mark[tile];
        while (compiled.p->marks[next].step <= x->slice->step) next++;
        if (compiled.p->marks[next].step == step && x->seen++ == x->turn)
            memcpy(device_model()->memory(device, tile) + (x->slice->address - TARGET_SRAM_BASE),
                   BAD_HALF, sizeof BAD_HALF);
    }
    diagnostic_seen(x->d, device, tile, mark);
}

static void set_all(struct session *s) {
    GError *error = NULL;
    for (uint32_t i = 0; i < compiled.p->n_bindings; i++) {
        const struct package_binding *b = &compiled.p->bindings[i];
        if (b->kind != TG_BIND_INPUT && b->kind != TG_BIND_PARAMETER) continue;
        g_assert_cmpuint(b->format, ==, TG_F16);
        const uint64_t n = package_binding_elements(b);
        uint16_t *data = g_new(uint16_t, n);
        const struct graph_value *v = &compiled.g->values[graph_find_value(compiled.g, b->name)];
        for (uint64_t k = 0; k < n; k++)
            data[k] = num_f16_from_f32(graph_fill_element(v, SEED, k));
        g_assert_true(session_set(s, b->name, data, b->data_bytes, &error));
        g_free(data);
    }
}

/* Runs with a damage; ret_session stays open for symbols. */
static struct diagnostic *run(struct damage *x, const struct package_slice *parameter) {
    GError *error = NULL;
    const struct diagnostic_options o = {.functions = device_model(), .package = compiled.p,
                                         .graph = compiled.g, .atol = 0.03, .rtol = 0.03};
    struct diagnostic *d = x->d = diagnostic_new(&o);
    struct reference_fill fill = {.graph = compiled.g, .seed = SEED};
    const struct reference_options r = {.precision = &compiled.plan.precision,
                                        .source = reference_fill_source, .source_user = &fill,
                                        .visit = diagnostic_visit, .visit_user = d};
    struct reference *reference = reference_run(compiled.g, &r, &error);
    g_assert_no_error(error);
    reference_free(reference);
    const struct device_options device = {.n_tiles = N_TILES, .marks = true, .seen = damage_seen,
                                          .seen_user = x};
    struct session *s;
    g_assert_true(session_open(device_model(), compiled.p, &device, &s, &error));
    set_all(s);
    if (parameter != NULL)
        session_functions(s)->memory_write(session_device(s), parameter->tile, parameter->address,
                                           BAD_HALF, sizeof BAD_HALF);
    g_assert_true(session_run(s, &error));
    session_close(s);
    return d;
}

static const struct diagnostic_entry *entry(struct diagnostic *d, const char *name, uint32_t turn) {
    const struct diagnostic_entry *e;
    const uint32_t n = diagnostic_entries(d, &e);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(e[i].name, name) == 0 && e[i].iteration == turn) return &e[i];
    g_error("no entry %s, iteration %u", name, turn);
}

static void test_right(void) {
    struct damage none = {0};
    struct diagnostic *d = run(&none, NULL);
    const struct diagnostic_entry *e;
    const uint32_t n = diagnostic_entries(d, &e);
    for (uint32_t i = 0; i < n; i++) {
        g_assert_true(diagnostic_entry_pass(&e[i]));
        g_assert_cmpuint(e[i].n_values, >=, e[i].elements); /* every element, replicas as well */
        g_assert_cmpfloat(e[i].cosine, >, 0.999);
        if (i > 0 && strcmp(e[i].name, e[i - 1].name) == 0) g_assert_cmpuint(e[i].iteration, >, 0);
    }
    g_assert_true(diagnostic_pass(d));
    g_assert_null(diagnostic_first(d));
    for (uint32_t turn = 0; turn < N_LAYERS; turn++) {
        entry(d, "block.attention", turn);
        entry(d, "block.gelu", turn);
        entry(d, "block.residual2", turn);
    }
    entry(d, "stem.position", 0);
    entry(d, "head.residual2", 0);
    uint32_t *missing;
    const uint32_t n_missing = diagnostic_missing(d, &missing);
    for (uint32_t i = 0; i < n_missing; i++) /* what is stored is not missing */
        g_assert_cmpstr(compiled.g->values[missing[i]].name, !=, "block.q");
    g_assert_cmpuint(n_missing, >, 0);
    g_free(missing);
    diagnostic_free(d);
}

/* A wrong weight of layer 2 acts on one column of that layer's GELU, and nowhere before. */
static void test_parameter(void) {
    const struct package_binding *b = package_binding_find(compiled.p, "encoder.up.weight");
    g_assert_nonnull(b);
    const uint32_t rows = b->shape[1], columns = b->shape[2];
    const struct package_slice *slice = NULL;
    for (uint32_t i = b->first_slice; i < b->end_slice; i++)
        if (compiled.p->slices[i].tensor_offset / (rows * columns) == 1) slice = &compiled.p->slices[i];
    g_assert_nonnull(slice);
    struct damage none = {0};
    struct diagnostic *d = run(&none, slice);
    const struct diagnostic_entry *first = diagnostic_first(d);
    g_assert_nonnull(first);
    g_assert_cmpstr(first->name, ==, "block.gelu");
    g_assert_cmpstr(first->kind, ==, "gelu");
    g_assert_cmpuint(first->iteration, ==, 1);
    g_assert_cmpuint(first->first_failed.element % columns, ==, slice->tensor_offset % columns);
    g_assert_true(diagnostic_entry_pass(entry(d, "block.norm2", 1)));
    g_assert_true(diagnostic_entry_pass(entry(d, "block.gelu", 0)));
    g_assert_false(diagnostic_pass(d));
    GString *text = g_string_new(NULL), *json = g_string_new(NULL);
    diagnostic_print(d, text);
    diagnostic_json(d, json);
    g_assert_nonnull(strstr(text->str, "gelu 'block.gelu', iteration 1"));
    g_assert_nonnull(strstr(json->str, "\"first_divergence\":{\"op\":"));
    g_string_free(text, true);
    g_string_free(json, true);
    diagnostic_free(d);
}

/* A value that changes while it lives. */
static void test_value(gconstpointer data) {
    const char *name = data;
    const struct package_binding *b = package_result_find(compiled.p, name);
    g_assert_nonnull(b);
    const struct package_slice *slice = &compiled.p->slices[(b->first_slice + b->end_slice) / 2];
    struct damage x = {.slice = slice, .turn = 2};
    struct diagnostic *d = run(&x, NULL);
    g_assert_cmpuint(x.seen, ==, N_LAYERS);
    const struct diagnostic_entry *first = diagnostic_first(d);
    g_assert_nonnull(first);
    g_assert_cmpstr(first->name, ==, name);
    g_assert_cmpuint(first->iteration, ==, 2);
    g_assert_cmpuint(first->n_failed, ==, 1);
    g_assert_cmpuint(first->first_failed.element, ==, slice->tensor_offset);
    g_assert_cmpuint(first->first_failed.tile, ==, slice->tile);
    g_assert_cmpuint(first->first_failed.address, ==, slice->address);
    g_assert_cmpfloat((double)first->first_failed.computed, ==, 256);
    GString *owner = g_string_new(NULL);
    package_owner_print(compiled.p, slice->tile, slice->address, slice->step, owner);
    GString *text = g_string_new(NULL);
    diagnostic_print(d, text);
    g_assert_nonnull(strstr(text->str, owner->str));
    g_test_message("%s: %s", name, owner->str);
    g_string_free(owner, true);
    g_string_free(text, true);
    diagnostic_free(d);
}

/* The host window is lent to values that live neither before the first step nor behind the last, and
 * to nothing that the host writes or reads. */
static void test_window(void) {
    const struct package *p = compiled.p;
    const uint32_t base = TARGET_HOST_WINDOW_BASE, end = base + TARGET_HOST_WINDOW_BYTES;
    uint32_t n_lent = 0;
    for (uint32_t i = 0; i < p->first_owner[N_TILES]; i++) {
        const struct package_owner *o = &p->owners[i];
        if (o->address >= end || o->address + o->bytes <= base) continue;
        n_lent++;
        g_assert_cmpuint(o->first_step, >, 0);
        g_assert_cmpuint(o->last_step, <, p->n_steps);
    }
    g_assert_cmpuint(n_lent, >, 0);
    g_test_message("%u of %u allocations lie in the window", n_lent, p->first_owner[N_TILES]);
    for (uint32_t i = 0; i < p->n_bindings; i++) {
        const struct package_binding *b = &p->bindings[i];
        for (uint32_t k = b->first_slice; b->kind != TG_BIND_RESULT && k < b->end_slice; k++)
            g_assert_true(p->slices[k].address >= end || p->slices[k].address < base);
    }
}

/* NaN and infinity never pass. */
static void test_entry_rules(void) {
    const struct diagnostic_entry nothing = {.n_values = 0}, failed = {.n_values = 3, .n_failed = 1},
                                  good = {.n_values = 3};
    g_assert_false(diagnostic_entry_pass(&nothing));
    g_assert_false(diagnostic_entry_pass(&failed));
    g_assert_true(diagnostic_entry_pass(&good));
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    compile_net();
    g_test_add_func("/diagnostic/right", test_right);
    g_test_add_func("/diagnostic/parameter", test_parameter);
    static const char *const names[] = {"block.norm1", "block.v.product", "block.residual1",
                                        "block.gelu"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(names); i++) {
        char *path = g_strdup_printf("/diagnostic/value/%s", names[i]);
        g_test_add_data_func(path, names[i], test_value);
        g_free(path);
    }
    g_test_add_func("/diagnostic/window", test_window);
    g_test_add_func("/diagnostic/entry_rules", test_entry_rules);
    const int status = g_test_run();
    package_free(compiled.p);
    program_free(compiled.plan.program);
    graph_free(compiled.g);
    return status;
}
