/* Hand-written tile graphs through compile, package, device model and session: values, cycles, faults. */
#include "../device_session.h"

#include "isa/isa_exch.h"
#include "target/target.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

/* Predicted and measured cycles agree within one lane per kernel call or launch. */
static void expect_cycles(struct session *s, uint64_t tolerance) {
    uint64_t measured;
    g_assert_true(session_cycles(s, &measured));
    const uint64_t predicted = session_package(s)->meta.cycles_predicted;
    g_test_message("predicted %" G_GUINT64_FORMAT ", measured %" G_GUINT64_FORMAT, predicted,
                   measured);
    g_assert_cmpuint(measured, <=, predicted + tolerance);
    g_assert_cmpuint(predicted, <=, measured + tolerance);
}

/* One tile: a copy from the input to the output. */
static struct tile_graph *copy_graph(void) {
    struct tile_graph *g = dg_new(1);
    const uint32_t in = dg_alloc(g, 0, 512, TG_HOST_INPUT, "in");
    const uint32_t out = dg_alloc(g, 0, 512, TG_HOST_OUTPUT, "out");
    dg_step(g, TG_COMPUTE, "copy it");
    dg_call(g, 0, (struct kernel_spec){KERNEL_COPY_U64, {512}}, (uint32_t[]){out, in}, 2);
    dg_bind(g, in, TG_BIND_INPUT, "x");
    dg_bind(g, out, TG_BIND_OUTPUT, "y");
    return g;
}

static void test_copy(void) {
    struct tile_graph *g = copy_graph();
    struct package *p = compile(g, (struct compile_options){0});
    struct session *s = open_session(p);
    GError *error = NULL;
    g_assert_false(session_run(s, &error)); /* the input was never set */
    g_assert_error(error, diag_quark(), DIAG_RUNTIME_NOT_SET);
    g_clear_error(&error);
    for (uint32_t i = 1; i < 4; i++) {
        set_pattern(s, "x", 256, i);
        run_ok(s);
        expect_pattern(s, "y", 256, i);
        expect_cycles(s, 6);
    }
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

/* Tile 0 sends to 1 and 3, tile 3 to 0; tile 2 takes no part; then a copy on tile 1. */
static struct tile_graph *exchange_graph(uint32_t words) {
    struct tile_graph *g = dg_new(4);
    uint32_t a[6];
    a[0] = dg_alloc(g, 0, 4 * words, TG_HOST_INPUT, "a");
    a[1] = dg_alloc(g, 1, 4 * words, 0, "a copy");
    a[2] = dg_alloc(g, 3, 4 * words, TG_HOST_OUTPUT, "a out");
    a[3] = dg_alloc(g, 3, 4 * words, TG_HOST_INPUT, "b");
    a[4] = dg_alloc(g, 0, 4 * words, TG_HOST_OUTPUT, "b out");
    a[5] = dg_alloc(g, 1, 4 * words, TG_HOST_OUTPUT, "c out");
    dg_step(g, TG_EXCHANGE, "move");
    dg_transfer(g, a[0], words, (uint32_t[]){a[1], a[2]}, 2);
    dg_transfer(g, a[3], words, (uint32_t[]){a[4]}, 1);
    dg_step(g, TG_COMPUTE, "copy");
    dg_call(g, 1, (struct kernel_spec){KERNEL_COPY_U64, {4 * words}}, (uint32_t[]){a[5], a[1]}, 2);
    dg_bind(g, a[0], TG_BIND_INPUT, "a");
    dg_bind(g, a[3], TG_BIND_INPUT, "b");
    dg_bind(g, a[2], TG_BIND_OUTPUT, "a_out");
    dg_bind(g, a[4], TG_BIND_OUTPUT, "b_out");
    dg_bind(g, a[5], TG_BIND_OUTPUT, "c_out");
    return g;
}

static void run_exchange(uint32_t words, struct compile_options o) {
    struct tile_graph *g = exchange_graph(words);
    struct package *p = compile(g, o);
    struct session *s = open_session(p);
    set_pattern(s, "a", 2 * words, 5);
    set_pattern(s, "b", 2 * words, 6);
    run_ok(s);
    expect_pattern(s, "a_out", 2 * words, 5);
    expect_pattern(s, "b_out", 2 * words, 6);
    expect_pattern(s, "c_out", 2 * words, 5);
    expect_cycles(s, 6 + 20 * o.sample);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

static void test_exchange(void) {
    static const uint32_t sizes[] = {2, 16, 52, 128, 1000, 4148};
    for (uint32_t i = 0; i < ARRAY_LEN(sizes); i++)
        run_exchange(sizes[i], (struct compile_options){0});
    run_exchange(64, (struct compile_options){.sample = true});
    run_exchange(64, (struct compile_options){.base_writes = true});
}

/* Cycles of a phase beside its horizon, from the last tile's sample in front of it to the last sample
 * behind it. Samples are taken in the lane of worker 0 and so are multiples of 6 apart. */
static uint32_t phase_cost(uint32_t words) {
    struct tile_graph *g = dg_new(2);
    uint32_t a[4];
    for (uint32_t i = 0; i < 2; i++) {
        a[i] = dg_alloc(g, i, 4 * words, TG_HOST_INPUT, "in");
        a[2 + i] = dg_alloc(g, i, 4 * words, TG_HOST_OUTPUT, "out");
    }
    for (uint32_t k = 0; k < 2; k++) {
        dg_step(g, TG_EXCHANGE, "move");
        dg_transfer(g, a[0], words, (uint32_t[]){a[3]}, 1);
        dg_transfer(g, a[1], words, (uint32_t[]){a[2]}, 1);
    }
    dg_bind(g, a[0], TG_BIND_INPUT, "x0");
    dg_bind(g, a[1], TG_BIND_INPUT, "x1");
    struct package *p = compile(g, (struct compile_options){.sample = true, .base_writes = true});
    struct session *s = open_session(p);
    set_pattern(s, "x0", 2 * words, 1);
    set_pattern(s, "x1", 2 * words, 2);
    run_ok(s);
    uint32_t sample[2][3];
    for (uint32_t t = 0; t < 2; t++)
        session_functions(s)->memory_read(session_device(s), t, p->sample_address[t], sample[t], 12);
    const uint32_t before = MAX(sample[0][1], sample[1][1]);
    const uint32_t after = MAX(sample[0][2], sample[1][2]);
    const uint32_t cost = after - before - p->steps[1].horizon;
    session_close(s);
    package_free(p);
    tile_graph_free(g);
    return cost;
}

/* Architecture 5: a phase emitted as in runtime 4.3 with sampling costs 237 cycles beside its horizon.
 * Over 48 horizons in a row every lane occurs equally often; the mean counts. */
static void test_phase_cost(void) {
    uint32_t sum = 0, n = 0;
    for (uint32_t words = 64; words < 112; words++, n++) {
        const uint32_t cost = phase_cost(words);
        g_assert_cmpuint(cost, >=, 237 - 6);
        g_assert_cmpuint(cost, <=, 237 + 6);
        sum += cost;
    }
    g_test_message("mean cost %.2f", (double)sum / n);
    g_assert_cmpfloat(fabs((double)sum / n - 237), <=, 0.5);
}

/* A repeat: block i of the input is copied to block i of the output, then sent to the other tile. */
static void test_repeat(void) {
    enum { BLOCKS = 5, BYTES = 96 };
    struct tile_graph *g = dg_new(2);
    const uint32_t in = dg_alloc(g, 0, BYTES, TG_HOST_INPUT, "in");
    const uint32_t mid = dg_alloc(g, 0, BYTES, 0, "mid");
    const uint32_t out = dg_alloc(g, 0, BYTES, TG_HOST_OUTPUT, "out");
    const uint32_t far = dg_alloc(g, 1, BYTES, TG_HOST_OUTPUT, "far");
    g->allocs.blocks[in] = g->allocs.blocks[out] = BLOCKS;
    g->allocs.stride[in] = BYTES;
    g->allocs.stride[out] = 2 * BYTES;
    dg_step(g, TG_REPEAT_BEGIN, "layers")->count = BLOCKS;
    dg_step(g, TG_COMPUTE, "take");
    dg_call(g, 0, (struct kernel_spec){KERNEL_COPY_U64, {BYTES}}, (uint32_t[]){mid, in}, 2);
    dg_call(g, 0, (struct kernel_spec){KERNEL_COPY_U64, {BYTES}}, (uint32_t[]){out, mid}, 2);
    dg_step(g, TG_EXCHANGE, "send");
    dg_transfer(g, mid, BYTES / 4, &far, 1);
    dg_step(g, TG_REPEAT_END, "layers");
    bind_blocks(g, in, TG_BIND_INPUT, "x");
    bind_blocks(g, out, TG_BIND_OUTPUT, "y");
    dg_bind(g, far, TG_BIND_OUTPUT, "last");
    struct package *p = compile(g, (struct compile_options){0});
    struct session *s = open_session(p);
    set_pattern(s, "x", BLOCKS * BYTES / 2, 9);
    run_ok(s);
    expect_pattern(s, "y", BLOCKS * BYTES / 2, 9);
    GError *error = NULL;
    uint16_t all[BLOCKS * BYTES / 2], last[BYTES / 2];
    fill_pattern(all, ARRAY_LEN(all), 9);
    session_get(s, "last", last, sizeof last, &error);
    g_assert_no_error(error);
    g_assert_cmpmem(last, sizeof last, all + (BLOCKS - 1) * BYTES / 2, sizeof last);
    expect_cycles(s, 6 * BLOCKS);
    uint32_t n;
    session_functions(s)->marks(session_device(s), 0, &n);
    g_assert_cmpuint(n, ==, 2 * BLOCKS + 1);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

/* --- Faults --- */

static char *fault_text(struct session *s) {
    GError *error = NULL;
    g_assert_false(session_run(s, &error));
    g_assert_error(error, diag_quark(), DIAG_DEVICE_FAULT);
    g_error_free(error);
    GString *text = g_string_new(NULL);
    session_fault_print(s, text);
    return g_string_free(text, false);
}

static void expect_in(const char *text, const char *part) {
    if (strstr(text, part) == NULL) g_error("'%s' is not in:\n%s", part, text);
}

/* One step that reads a buffer nobody wrote. */
static struct tile_graph *graph_haunted(void) {
    struct tile_graph *g = dg_new(1);
    const uint32_t ghost = dg_alloc(g, 0, 64, 0, "ghost");
    const uint32_t out = dg_alloc(g, 0, 64, TG_HOST_OUTPUT, "out");
    dg_step(g, TG_COMPUTE, "haunt");
    dg_call(g, 0, (struct kernel_spec){KERNEL_COPY_U64, {64}}, (uint32_t[]){out, ghost}, 2);
    dg_bind(g, out, TG_BIND_OUTPUT, "y");
    return g;
}

static void test_fault_unwritten(void) {
    struct tile_graph *g = graph_haunted();
    struct package *p = compile(g, (struct compile_options){0});
    struct session *s = open_session(p);
    char *text = fault_text(s);
    expect_in(text, "READ_UNWRITTEN");
    expect_in(text, "tile       0, worker");
    expect_in(text, "ghost+0x");
    expect_in(text, "operation  haunt (operator), step 0");
    expect_in(text, "copy_u64");
    g_free(text);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

/* A store behind an allocation: which one, how far. */
static void test_fault_unallocated(void) {
    struct tile_graph *g = copy_graph();
    struct package *p = compile(g, (struct compile_options){0});
    uint32_t end = 0;
    for (uint32_t i = 0; i < p->first_owner[1]; i++) {
        struct package_owner *o = &p->owners[i];
        if (strcmp(p->names[o->name], "out") != 0) continue;
        o->bytes -= 24;
        end = o->address + o->bytes;
    }
    struct session *s = open_session(p);
    set_pattern(s, "x", 256, 1);
    char *text = fault_text(s), *address = g_strdup_printf("address    0x%x: ", end);
    expect_in(text, "WRITE_UNALLOCATED (26)");
    expect_in(text, address);
    expect_in(text, "0 bytes behind the end of out (");
    expect_in(text, "operation  copy it (operator), step 0");
    expect_in(text, "=> 0x");
    expect_in(text, "copy_u64");
    g_free(address);
    g_free(text);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

static JsonObject *fault_json(struct session *s, JsonParser *parser) {
    GString *text = g_string_new(NULL);
    GError *error = NULL;
    session_fault_json(s, text);
    json_parser_load_from_data(parser, text->str, (gssize)text->len, &error);
    g_assert_no_error(error);
    g_string_free(text, true);
    return json_node_get_object(json_parser_get_root(parser));
}

/* Every field of the report, as an object. */
static void test_fault_json(void) {
    struct tile_graph *g = graph_haunted();
    struct package *p = compile(g, (struct compile_options){0});
    struct session *s = open_session(p);
    g_free(fault_text(s));
    JsonParser *parser = json_parser_new();
    JsonObject *f = fault_json(s, parser);
    g_assert_cmpint(json_object_get_int_member(f, "number"), ==, 25);
    g_assert_cmpstr(json_object_get_string_member(f, "name"), ==, "READ_UNWRITTEN");
    g_assert_true(json_object_get_null_member(f, "exception")); /* the hardware is silent */
    g_assert_cmpint(json_object_get_int_member(f, "tile"), ==, 0);
    g_assert_cmpint(json_object_get_int_member(f, "context"), >=, 1);
    g_assert_cmpstr(json_object_get_string_member(f, "symbol"), ==, "copy_u64_worker");
    g_assert_nonnull(strstr(json_object_get_string_member(f, "file"), "copy_u64.S"));
    g_assert_cmpint(json_object_get_int_member(f, "line"), >, 0);
    g_assert_cmpint(json_object_get_int_member(f, "cycle"), >, 0);
    g_assert_nonnull(strstr(json_object_get_string_member(f, "owner"), "ghost+0x"));
    g_assert_cmpstr(json_object_get_string_member(f, "operation"), ==, "haunt");
    JsonArray *window = json_object_get_array_member(f, "window");
    bool found = false;
    for (guint i = 0; i < json_array_get_length(window); i++) {
        JsonObject *o = json_array_get_object_element(window, i);
        if (json_object_get_int_member(o, "address") != json_object_get_int_member(f, "pc")) continue;
        found = strstr(json_object_get_string_member(o, "text"), "ld64step") != NULL;
    }
    g_assert_true(found);
    JsonObject *registers = json_object_get_object_member(f, "registers");
    g_assert_cmpuint(json_array_get_length(json_object_get_array_member(registers, "m")), ==, 16);
    g_assert_cmpuint(json_array_get_length(json_object_get_array_member(registers, "a")), ==, 8);
    JsonArray *contexts = json_object_get_array_member(f, "contexts");
    g_assert_cmpuint(json_array_get_length(contexts), ==, TARGET_N_CONTEXTS);
    JsonObject *own = json_array_get_object_element(contexts, (guint)json_object_get_int_member(f, "context"));
    g_assert_cmpstr(json_object_get_string_member(own, "state"), ==, "fault");
    g_object_unref(parser);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

/* Makes the first instruction of a tile's program `word`. */
static void patch_program(struct package *p, uint32_t tile, uint32_t word_index, uint32_t word) {
    for (uint32_t i = p->first_segment[tile]; i < p->first_segment[tile + 1]; i++)
        if (p->segments[i].kind == PACKAGE_SEGMENT_PROGRAM)
            memcpy(p->image + p->segments[i].offset + 4 * word_index, &word, 4);
}

static void test_fault_deadlock(void) {
    struct tile_graph *g = exchange_graph(8);
    struct package *p = compile(g, (struct compile_options){0});
    patch_program(p, 2, 0, isa_word_br(15));
    struct session *s = open_session(p);
    set_pattern(s, "a", 16, 5);
    set_pattern(s, "b", 16, 6);
    char *text = fault_text(s);
    expect_in(text, "deadlock, DEADLOCK (700)");
    expect_in(text, "0 run, 3 wait in a barrier, 1 are done");
    expect_in(text, "3 tiles wait for 1 that are done");
    g_free(text);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

static void expect_fabric_fault(struct package *p, const char *part, uint32_t number) {
    struct session *s = open_session(p);
    set_pattern(s, "a", 16, 5);
    set_pattern(s, "b", 16, 6);
    char *text = fault_text(s);
    expect_in(text, part);
    const struct device_fault *f = session_functions(s)->fault(session_device(s));
    g_assert_cmpint(f->kind, ==, DEVICE_FAULT_FABRIC);
    g_assert_cmpuint(f->number, ==, number);
    g_free(text);
    session_close(s);
}

/* C3: tile 2 takes part in the barrier with `sync 3` although it has no row. */
static void test_fault_sync(void) {
    struct tile_graph *g = exchange_graph(8);
    struct package *p = compile(g, (struct compile_options){0});
    patch_program(p, 2, 2, isa_word_nop());
    patch_program(p, 2, 3, isa_word_sync(3));
    expect_fabric_fault(p, "(C3) tile 2", 603);
    package_free(p);
    tile_graph_free(g);
}

static struct package_segment *find_segment(struct package *p, uint32_t tile, uint32_t kind) {
    for (uint32_t i = p->first_segment[tile]; i < p->first_segment[tile + 1]; i++)
        if (p->segments[i].kind == kind) return &p->segments[i];
    g_error("tile %u has no such segment", tile);
}

/* C3: tile 1 answers with `sans` as if it took no part, and calls its row nevertheless. */
static void test_fault_both(void) {
    struct tile_graph *g = exchange_graph(8);
    struct package *p = compile(g, (struct compile_options){0});
    const struct package_segment *s = find_segment(p, 1, PACKAGE_SEGMENT_PROGRAM);
    uint32_t *words = (uint32_t *)(void *)(p->image + s->offset), at = 0;
    while (words[at] != isa_word_sync(3)) at++;
    patch_program(p, 1, at - 1, isa_word_sans(0)); /* in place of `put INCOMING_DCOUNT`, set by start-up */
    patch_program(p, 1, at, isa_word_sync(1));
    expect_fabric_fault(p, "(C3) tile 1", 603);
    package_free(p);
    tile_graph_free(g);
}

/* Moves the rows of all tiles to `to`, with the calls to them. */
static void move_rows(struct package *p, uint32_t to) {
    for (uint32_t t = 0; t < p->meta.n_tiles; t++) {
        bool has_rows = false;
        for (uint32_t i = p->first_segment[t]; i < p->first_segment[t + 1]; i++)
            has_rows = has_rows || p->segments[i].kind == PACKAGE_SEGMENT_ROWS;
        if (!has_rows) continue;
        struct package_segment *rows = find_segment(p, t, PACKAGE_SEGMENT_ROWS);
        const struct package_segment *program = find_segment(p, t, PACKAGE_SEGMENT_PROGRAM);
        uint32_t *words = (uint32_t *)(void *)(p->image + program->offset);
        for (uint32_t k = 0; k < program->bytes / 4; k++)
            for (uint32_t at = 0; at < rows->bytes; at += 4)
                if (words[k] == isa_word_call(10, rows->address + at)) words[k] = isa_word_call(10, to + at);
        rows->address = to;
    }
}

/* H2: the code around a phase lies in an element of its own; tile 0's row reads from that element. */
static void test_fault_code_element(void) {
    struct tile_graph *g = exchange_graph(8);
    struct package *p = compile(g, (struct compile_options){0});
    move_rows(p, 0x78000);
    struct session *s = open_session(p);
    set_pattern(s, "a", 16, 5);
    set_pattern(s, "b", 16, 6);
    run_ok(s);
    expect_pattern(s, "a_out", 16, 5);
    session_close(s);
    const struct package_segment *program = find_segment(p, 0, PACKAGE_SEGMENT_PROGRAM);
    const struct package_segment *rows = find_segment(p, 0, PACKAGE_SEGMENT_ROWS);
    g_assert_cmpuint(target_element(program->address), !=, target_element(rows->address));
    uint32_t *words = (uint32_t *)(void *)(p->image + rows->offset), at = 0;
    while (isa_exch_decode(words + at, 1).kind != ISA_EXCH_SEND) at++;
    words[at] = isa_word_send(8, program->address / 4, words[at] & 7);
    expect_fabric_fault(p, "(H2) tile 0", 502);
    package_free(p);
    tile_graph_free(g);
}

static void test_limit(void) {
    struct tile_graph *g = copy_graph();
    struct package *p = compile(g, (struct compile_options){0});
    GError *error = NULL;
    struct session *s;
    const struct device_options o = {.n_tiles = 1, .marks = true, .max_cycles = 300};
    session_open(device_model(), p, &o, &s, &error);
    g_assert_no_error(error);
    set_pattern(s, "x", 256, 1);
    char *text = fault_text(s);
    expect_in(text, "still runs after 300 cycles");
    expect_in(text, "limit, LIMIT (702)");
    expect_in(text, "operation  none: the start or end of the tile runtime");
    expect_in(text, "\n  worker 3   runs, cycle 3");
    expect_in(text, "\n  supervisor sync 2, cycle");
    expect_in(text, "worker_init+0x");
    g_free(text);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

/* What does not fit is data: the tile, its users, the bytes. */
static void test_infeasible(void) {
    struct tile_graph *g = dg_new(2);
    uint32_t a[3];
    for (uint32_t i = 0; i < 3; i++)
        a[i] = dg_alloc(g, 1, 250000, TG_PARAMETER, i == 0 ? "huge" : "large");
    dg_step(g, TG_COMPUTE, "nothing fits");
    dg_call(g, 1, (struct kernel_spec){KERNEL_COPY_U64, {249992}}, (uint32_t[]){a[1], a[0]}, 2);
    dg_call(g, 1, (struct kernel_spec){KERNEL_COPY_U64, {249992}}, (uint32_t[]){a[2], a[0]}, 2);
    tg_lifetimes(g);
    GError *error = NULL;
    struct compile_result r;
    g_assert_true(compile_tile_graph(g, &(struct compile_options){0}, &r, &error));
    g_assert_no_error(error);
    g_assert_null(r.package);
    g_assert_cmpint(r.limit, ==, COMPILE_LIMIT_PLACE);
    g_assert_cmpuint(r.tile, ==, 1);
    g_assert_cmpuint(r.need_bytes, >, r.has_bytes);
    expect_in(r.report, "tile 1");
    expect_in(r.report, "huge");
    expect_in(r.report, "bytes are missing");
    compile_result_free(&r);
    tile_graph_free(g);
}

static void test_two_sessions(void) {
    struct tile_graph *g = copy_graph();
    struct package *p = compile(g, (struct compile_options){0});
    const struct device_options wrong = {.n_tiles = 2};
    GError *error = NULL;
    struct session *s;
    g_assert_false(session_open(device_model(), p, &wrong, &s, &error));
    g_assert_error(error, diag_quark(), DIAG_DEVICE_PACKAGE_TILES);
    g_clear_error(&error);
    s = open_session(p);
    uint16_t v[256];
    g_assert_false(session_get(s, "y", v, sizeof v, &error));
    g_assert_error(error, diag_quark(), DIAG_RUNTIME_NOT_RUN);
    g_clear_error(&error);
    g_assert_false(session_set(s, "x", v, 2, &error));
    g_assert_error(error, diag_quark(), DIAG_RUNTIME_SIZE);
    g_clear_error(&error);
    g_assert_false(session_set(s, "y", v, sizeof v, &error));
    g_assert_error(error, diag_quark(), DIAG_RUNTIME_NO_TENSOR);
    g_clear_error(&error);
    session_close(s);
    package_free(p);
    tile_graph_free(g);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/device/copy", test_copy);
    g_test_add_func("/device/exchange", test_exchange);
    g_test_add_func("/device/phase_cost", test_phase_cost);
    g_test_add_func("/device/repeat", test_repeat);
    g_test_add_func("/device/fault/unwritten", test_fault_unwritten);
    g_test_add_func("/device/fault/unallocated", test_fault_unallocated);
    g_test_add_func("/device/fault/json", test_fault_json);
    g_test_add_func("/device/fault/deadlock", test_fault_deadlock);
    g_test_add_func("/device/fault/sync", test_fault_sync);
    g_test_add_func("/device/fault/both", test_fault_both);
    g_test_add_func("/device/fault/code_element", test_fault_code_element);
    g_test_add_func("/device/limit", test_limit);
    g_test_add_func("/device/infeasible", test_infeasible);
    g_test_add_func("/device/two_sessions", test_two_sessions);
    return g_test_run();
}
