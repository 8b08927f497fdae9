/* Runs one call. Operands that must be separate get memory elements of their own; all others follow
 * each other with 64 untouched bytes between them. The program is assembled from text and linked
 * with the kernels' objects, of which only the reachable sections are kept. */
#include "cli/kernel_run.h"

#include "numeric/num_kernel.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    RUN_SAMPLE_WORDS = TARGET_COMPLETION_WORD, /* two words */
    RUN_STANDARD_BASE = 0x5c000,
    RUN_GAP = 64,
    RUN_MAX_CYCLES = 100 * 1000 * 1000,
};
#define NUM_F16_LARGEST 65504.0f

static const char *const data_names[KERNEL_N_DATA] = {"random", "uniform", "extreme", "subnormal",
                                                      "zero",   "nan",     "infinite", "every"};
const char *kernel_data_name(enum kernel_data data) {
    return data_names[data];
}

/* --- Twins. --- */

struct run_twin {
    uint32_t kernel;
    num_kernel_twin *twin;
};
static const struct run_twin run_twins[] = {
#define TWIN(name, function) {KERNEL_##name, function},
#include "cli/kernel_twin.def"
#undef TWIN
};

static num_kernel_twin *run_twin_of(uint32_t kernel) {
    for (size_t i = 0; i < ARRAY_LEN(run_twins); i++)
        if (run_twins[i].kernel == kernel) return run_twins[i].twin;
    return NULL;
}

/* --- Placement. --- */

static uint32_t run_next_element(uint32_t address) {
    const uint32_t element = target_element(address);
    return target_element_base(element) == address ? address : target_element_base(element + 1);
}

static bool run_is_separate(const struct kernel_needs *n, uint32_t i) {
    for (uint32_t j = 0; j < n->n_operands; j++)
        if ((n->separate[i] >> j & 1) || (n->separate[j] >> i & 1)) return true;
    return false;
}

static bool run_place(struct kernel_run *run, GError **error) {
    const struct kernel_needs *n = &run->needs;
    uint32_t cursor[2] = {RUN_STANDARD_BASE, TARGET_REGION1_BASE};
    for (uint32_t i = n->n_operands; i-- > 0;) { /* inputs first: outputs may follow them */
        const struct kernel_operand *o = &n->operand[i];
        bool aliased = false;
        for (uint32_t j = 0; run->options.in_place && j < n->n_operands; j++)
            if (j > i && (n->alias[i] >> j & 1)) {
                run->address[i] = run->address[j];
                aliased = true;
            }
        if (aliased) continue;
        const uint32_t size = o->bytes + o->tail_bytes;
        uint32_t region = o->memory == KERNEL_MEMORY_INTERLEAVED || run->options.high;
        if (o->memory == KERNEL_MEMORY_STANDARD) region = 0;
        if (region == 0 && cursor[0] + size + 2 * TARGET_ELEMENT_BYTES > TARGET_REGION1_BASE &&
            o->memory == KERNEL_MEMORY_ANY)
            region = 1;
        uint32_t align = o->align; /* of what may stand here, too */
        for (uint32_t k = 0; run->options.in_place && k < i; k++)
            if (n->alias[k] >> i & 1) align = MAX(align, n->operand[k].align);
        uint32_t address = align_up_u32(cursor[region], RUN_GAP);
        if (run_is_separate(n, i)) address = run_next_element(address);
        address += run->options.offset * align;
        run->address[i] = align_up_u32(address, align);
        uint32_t end = run->address[i] + size;
        if (run_is_separate(n, i)) end = run_next_element(end);
        cursor[region] = end + RUN_GAP;
        const uint32_t limit = region ? TARGET_SRAM_END : TARGET_REGION1_BASE;
        if (run->address[i] + size > limit) {
            diag_set(error, KERNEL_CHECK, kernel_name(run->spec.kernel),
                     "the operands do not fit on one tile");
            return false;
        }
    }
    return true;
}

/* --- Data. --- */

static float run_value(const struct kernel_run_options *o, uint32_t operand, uint64_t index) {
    const uint64_t stream = operand + 1, draw = rand_u64(o->seed, stream, index);
    const float v = rand_normal(o->seed, stream, index);
    const float extreme = o->extreme > 0 ? o->extreme : NUM_F16_LARGEST;
    switch (o->data) {
    case KERNEL_DATA_UNIFORM:
        return 0.75f;
    case KERNEL_DATA_EXTREME:
        return copysignf(draw & 1 ? extreme : extreme * (float)(draw >> 40) * 0x1p-24f, v);
    case KERNEL_DATA_SUBNORMAL:
        return v * 3e-6f;
    case KERNEL_DATA_ZERO:
        return copysignf(0, v);
    case KERNEL_DATA_NAN:
        return draw % 8 == 0 ? NAN : v;
    case KERNEL_DATA_INFINITE:
        return draw % 8 == 0 ? copysignf(INFINITY, v) : v;
    default:
        return v;
    }
}

/* Bytes of operand i inside SRAM: fewer than its own only where a call is forced. */
static uint32_t run_bytes(const struct kernel_run *run, uint32_t i) {
    const uint32_t space = TARGET_SRAM_END - MIN(run->address[i], (uint32_t)TARGET_SRAM_END);
    return MIN(run->needs.operand[i].bytes, space);
}

static bool run_is_clipped(const struct kernel_run *run) {
    for (uint32_t i = 0; i < run->needs.n_operands; i++)
        if (run_bytes(run, i) < run->needs.operand[i].bytes) return true;
    return false;
}

static void run_fill(struct kernel_run *run, uint32_t i) {
    struct kernel_operand clipped = run->needs.operand[i], *const o = &clipped;
    clipped.bytes = run_bytes(run, i);
    if (clipped.bytes == 0) return;
    const struct kernel_run_options *opt = &run->options;
    uint8_t *bytes = sram_at(run->sram, 0, run->address[i]);
    const enum kernel_format format = (enum kernel_format)o->format;
    if (format == KERNEL_F16)
        for (uint32_t e = 0; e < o->bytes / 2; e++) {
            const uint16_t h = opt->data == KERNEL_DATA_EVERY
                                   ? (uint16_t)e
                                   : num_f16_from_f32_ieee(run_value(opt, i, e));
            memcpy(bytes + 2 * e, &h, 2);
        }
    else if (format == KERNEL_F32)
        for (uint32_t e = 0; e < o->bytes / 4; e++) {
            const float v = run_value(opt, i, e);
            memcpy(bytes + 4 * e, &v, 4);
        }
    else if (format == KERNEL_F16_PAIR)
        for (uint32_t e = 0; e < o->bytes / 4; e++) {
            const uint16_t h = num_f16_from_f32_ieee(run_value(opt, i, e));
            memcpy(bytes + 4 * e, &h, 2);
            memcpy(bytes + 4 * e + 2, &h, 2);
        }
    else if (format == KERNEL_F8)
        for (uint32_t e = 0; e < o->bytes; e++)
            bytes[e] = num_f8_from_f32(run_value(opt, i, e), NUM_F143, 0);
    else
        for (uint32_t e = 0; e < o->bytes; e++) bytes[e] = (uint8_t)rand_u64(opt->seed, i, e);
    sram_mark_written(run->sram, 0, run->address[i], o->bytes);
}

/* Sums of exponentials are positive. */
static void run_adjust_merge(struct kernel_run *run) {
    const uint32_t *p = run->spec.p, last = p[3];
    for (uint32_t r = 0; r < p[0]; r++) {
        const float sum = 1 + fabsf(rand_normal(run->options.seed, 99, r));
        float *state = (float *)(void *)sram_at(run->sram, 0, run->address[last]);
        uint16_t *values = (uint16_t *)(void *)sram_at(run->sram, 0, run->address[last + 1]);
        float *statistics = (float *)(void *)sram_at(run->sram, 0, run->address[last + 2]);
        if (!p[2]) state[(size_t)r * (4 + p[1]) + 1] = sum;
        if (!p[4]) statistics[p[0] + r] = sum;
        if (!p[4] || !last) continue;
        state[(size_t)r * (4 + p[1]) + 4 + p[6]] = sum;
        values[(p[6] / 16 * p[0] + r) * 16 + p[6] % 16] = num_f16_from_f32(sum);
    }
}

/* What a contract asks of its data: maxima not below the scores, positive divisors and
 * variances, indices inside the table. */
static void run_adjust(struct kernel_run *run) {
    const uint32_t *p = run->spec.p;
    uint16_t *x = (uint16_t *)(void *)sram_at(run->sram, 0, run->address[1]);
    if (run->spec.kernel == KERNEL_EXP_PANELS) {
        uint32_t *max = (uint32_t *)(void *)sram_at(run->sram, 0, run->address[2]);
        const uint32_t limits[5] = {p[0], p[1], p[2], p[6], p[7]};
        void *const op[2] = {max, x};
        num_kernel_row_max(limits, op);
    }
    uint32_t *index = (uint32_t *)(void *)sram_at(run->sram, 0, run->address[2]);
    for (uint32_t r = 0; run->spec.kernel == KERNEL_GATHER_ROWS && r < p[0]; r++) index[r] %= p[2];
    float *moments = (float *)(void *)sram_at(run->sram, 0, run->address[2]);
    for (uint32_t k = 0; run->spec.kernel == KERNEL_APPLY_MOMENTS_F16 && k < p[0] * p[3]; k++)
        moments[2 * k + 1] = fabsf(moments[2 * k + 1]);
    if (run->spec.kernel == KERNEL_MERGE_PANELS) run_adjust_merge(run);
    for (uint32_t r = 0; run->spec.kernel == KERNEL_NORMALISE_PANELS && r < p[0]; r++) {
        const float v = 1 + fabsf(rand_normal(run->options.seed, 99, r));
        for (uint32_t k = 0; p[5] && k < MAX(p[6], 1); k++) moments[(2 * k + 1) * p[0] + r] = v;
        if (p[5]) continue;
        x[(p[2] / 16 * p[0] + r) * 16 + p[2] % 16] = num_f16_from_f32(v);
    }
}

/* Columns from `valid` on are zero. */
static void run_clear_padding(struct kernel_run *run) {
    const uint32_t *p = run->spec.p;
    const bool norm = run->spec.kernel == KERNEL_NORM_VALID_F16;
    if (!norm && run->spec.kernel != KERNEL_RMS_VALID_F16) return;
    for (uint32_t c = p[2]; c < p[1]; c++) {
        uint16_t *x = (uint16_t *)(void *)sram_at(run->sram, 0, run->address[1]);
        for (uint32_t r = 0; r < p[0]; r++) x[(c / 16 * p[0] + r) * 16 + c % 16] = 0;
        for (uint32_t i = 2; i < 3u + norm; i++)
            ((uint16_t *)(void *)sram_at(run->sram, 0, run->address[i]))[c] = 0;
    }
}

static bool run_aliases_input(const struct kernel_run *run, uint32_t i) {
    for (uint32_t j = 0; j < run->needs.n_operands; j++)
        if (j != i && run->address[j] == run->address[i] && run->needs.operand[j].bytes &&
            (run->needs.operand[j].access & KERNEL_READ))
            return true;
    return false;
}

static void run_prepare(struct kernel_run *run) {
    for (uint32_t i = 0; i < run->needs.n_operands; i++) {
        const struct kernel_operand *o = &run->needs.operand[i];
        if (o->access & KERNEL_READ) run_fill(run, i);
    }
    if (!run_is_clipped(run)) run_adjust(run);
    run_clear_padding(run);
    for (uint32_t i = 0; i < run->needs.n_operands; i++) {
        const struct kernel_operand *o = &run->needs.operand[i];
        const uint32_t bytes = run_bytes(run, i);
        if (!(o->access & KERNEL_READ) && !run_aliases_input(run, i) && bytes > 0)
            memset(sram_at(run->sram, 0, run->address[i]), 0xa5, bytes); /* unwritten */
        if (o->tail_bytes && bytes == o->bytes) tile_tail_add(&run->tile, run->address[i] + o->bytes, o->tail_bytes);
    }
    run->before = g_memdup2(sram_at(run->sram, 0, TARGET_SRAM_BASE), SRAM_BYTES);
}

static void run_expect(struct kernel_run *run) {
    num_kernel_twin *twin = run_twin_of(run->spec.kernel);
    if (!twin) return;
    /* Forced onto other operands, indices are anything. */
    if (run->options.force && run->spec.kernel == KERNEL_GATHER_ROWS) return;
    void *op[KERNEL_MAX_OPERANDS] = {0};
    for (uint32_t i = 0; i < run->needs.n_operands; i++) {
        const uint32_t bytes = run_bytes(run, i);
        run->expected[i] = g_malloc0(MAX(run->needs.operand[i].bytes, 1));
        if (bytes > 0) memcpy(run->expected[i], sram_at(run->sram, 0, run->address[i]), bytes);
        op[i] = run->expected[i];
    }
    twin(run->spec.p, op);
}

/* --- Program. --- */

static GString *run_program(const struct kernel_run *run) {
    GString *s =
        g_string_new(".section .text.run, \"ax\"\n.supervisor\n.globl run_start\nrun_start:\n");
    for (uint32_t w = 0; w < TARGET_N_WORKERS; w++)
        g_string_append_printf(s, "setzi $m0, %u\nput $WORKER%u_BASE, $m0\n",
                               (uint32_t)TARGET_WORKER_STACK_BASE + w * TARGET_WORKER_STACK_BYTES,
                               w);
    g_string_append_printf(s,
                           "setzi $m0, 4\nput $FP_ICTL, $m0\nsetzi $m11, %u\nsetzi $m8, %u\n"
                           "call $m9, runtime_sample\n",
                           (uint32_t)TARGET_SUPERVISOR_STACK_TOP, (uint32_t)RUN_SAMPLE_WORDS);
    for (uint32_t i = 0; i < run->n_registers; i++)
        g_string_append_printf(s, "setzi $m%u, %u\n", i + 2, run->registers[i]);
    g_string_append_printf(s,
                           ".globl run_call\nrun_call:\ncall $m10, %s\n.globl run_behind\n"
                           "run_behind:\nsetzi $m8, %u\ncall $m9, runtime_sample\nbr $m15\n",
                           kernel_symbol(&run->spec), (uint32_t)RUN_SAMPLE_WORDS + 4);
    return s;
}

/* The kernels' objects, behind `program` if that is not NULL. */
static GPtrArray *run_objects(struct isa_object *program) {
    GPtrArray *objects = g_ptr_array_new_with_free_func((GDestroyNotify)isa_object_free);
    if (program) g_ptr_array_add(objects, program);
    size_t n;
    const struct kernel_object *kernels = kernel_objects(&n);
    for (size_t i = 0; i < n; i++) {
        struct isa_object *o =
            isa_object_read(kernels[i].bytes, kernels[i].size, kernels[i].name, NULL);
        BUG_ON(!o);
        g_ptr_array_add(objects, o);
    }
    return objects;
}

static struct isa_image *run_link(const struct kernel_run *run, GError **error) {
    struct isa_messages messages = {0};
    isa_messages_init(&messages);
    GString *text = run_program(run);
    struct isa_object *program = isa_asm_source(text->str, text->len, "run.s", NULL, &messages);
    g_string_free(text, true);
    struct isa_image *image = NULL;
    if (program) {
        GPtrArray *objects = run_objects(program);
        const char *roots[] = {"run_start"};
        const struct isa_layout layout = {.entry = "run_start", .roots = roots, .n_roots = 1};
        image =
            isa_link((struct isa_object *const *)objects->pdata, objects->len, &layout, &messages);
        g_ptr_array_unref(objects);
    }
    if (!image) {
        GString *report = g_string_new(NULL);
        isa_messages_print(&messages, report);
        diag_set(error, KERNEL_CHECK, kernel_name(run->spec.kernel), report->str);
        g_string_free(report, true);
    }
    isa_messages_clear(&messages);
    return image;
}

uint32_t kernel_run_code_bytes(const struct kernel_spec *spec) {
    struct isa_messages messages = {0};
    isa_messages_init(&messages);
    GPtrArray *objects = run_objects(NULL);
    const char *roots[] = {kernel_symbol(spec)};
    const struct isa_layout layout = {.roots = roots, .n_roots = 1};
    struct isa_image *image =
        isa_link((struct isa_object *const *)objects->pdata, objects->len, &layout, &messages);
    uint32_t bytes = 0;
    for (guint i = 0; image && i < image->segments->len; i++)
        bytes += g_array_index(image->segments, struct isa_segment, i).size;
    if (image) isa_image_free(image);
    g_ptr_array_unref(objects);
    isa_messages_clear(&messages);
    return bytes;
}

static void run_load(struct kernel_run *run) {
    for (guint i = 0; i < run->image->segments->len; i++) {
        const struct isa_segment *s = &g_array_index(run->image->segments, struct isa_segment, i);
        if (!s->bytes || s->size == 0) continue;
        memcpy(sram_at(run->sram, 0, s->address), s->bytes, s->size);
        sram_mark_written(run->sram, 0, s->address, s->size);
    }
}

/* --- Running. --- */

struct run_watch {
    uint32_t call, behind;
    uint64_t call_cycle, behind_cycle;
};

static bool run_observe(void *user, const struct tile *t, uint32_t context, uint32_t pc,
                        uint64_t cycle) {
    (void)t;
    struct run_watch *watch = user;
    if (context != 0) return false;
    if (pc == watch->call) watch->call_cycle = cycle;
    if (pc == watch->behind) watch->behind_cycle = cycle;
    return false;
}

static void run_execute(struct kernel_run *run) {
    struct run_watch watch = {0};
    if (run->options.exact_lane) {
        watch.call = isa_image_find(run->image, "run_call")->address;
        watch.behind = isa_image_find(run->image, "run_behind")->address;
        run->tile.observer = run_observe;
        run->tile.observer_user = &watch;
    }
    tile_start(&run->tile, run->image->entry, 0);
    const enum tile_stop_reason reason = tile_run(&run->tile, RUN_MAX_CYCLES);
    run->call_cycles = watch.behind_cycle - watch.call_cycle;
    run->call_lane = (uint32_t)(watch.call_cycle % TARGET_LANE_CYCLES);
    if (reason == TILE_STOP_DONE) return;
    run->faulted = true;
    GString *s = g_string_new(NULL);
    if (reason == TILE_STOP_FAULT) {
        tile_fault_print(&run->tile, &run->tile.fault, s);
        const char *file;
        const uint32_t line = isa_image_line(run->image, run->tile.fault.pc, &file);
        if (file) g_string_append_printf(s, " at %s:%u", file, line);
    } else {
        g_string_append_printf(s, "the program stopped with reason %d at 0x%x", (int)reason,
                               run->tile.stop.pc);
    }
    run->fault = g_string_free(s, false);
}

static void run_measure(struct kernel_run *run) {
    uint32_t sample[2];
    memcpy(sample, sram_at(run->sram, 0, RUN_SAMPLE_WORDS), sizeof sample);
    run->sampled_cycles = sample[1] - sample[0];
    run->closed_form_cycles = run->options.exact_lane
                                  ? kernel_cycles_lane(&run->spec, run->call_lane)
                                  : kernel_cycles(&run->spec);
}

/* The registers of the call; with `force` those of a legal placement, its addresses replaced. */
static bool run_bind(struct kernel_run *run, GError **error) {
    const struct kernel_run_options *o = &run->options;
    if (!run_place(run, error)) return false;
    uint32_t legal[KERNEL_MAX_OPERANDS];
    memcpy(legal, run->address, sizeof legal);
    if (o->n_addresses) memcpy(run->address, o->address, sizeof run->address);
    if (!kernel_bind(&run->spec, o->force ? legal : run->address, run->registers, &run->n_registers,
                     error))
        return false;
    for (uint32_t r = 0; o->force && r < run->n_registers; r++)
        for (uint32_t i = 0; i < run->needs.n_operands; i++)
            if (run->registers[r] == legal[i]) {
                run->registers[r] = run->address[i];
                break;
            }
    return true;
}

struct kernel_run *kernel_run_new(const struct kernel_spec *spec,
                                  const struct kernel_run_options *options, GError **error) {
    struct kernel_run *run = g_new0(struct kernel_run, 1);
    run->spec = *spec;
    run->options = *options;
    run->config =
        (struct tile_config){.standalone = true,
                                       .exp_slots = (uint8_t)options->exp_slots,
                                       .races = options->races};
    run->sram = sram_new(1);
    tile_init(&run->tile, &run->config, run->sram, 0);
    tile_reset(&run->tile);
    if (!kernel_describe(spec, &run->needs, error) || !run_bind(run, error) ||
        !(run->image = run_link(run, error))) {
        kernel_run_free(run);
        return NULL;
    }
    run_load(run);
    run_prepare(run);
    run_expect(run);
    run_execute(run);
    run_measure(run);
    return run;
}

void kernel_run_free(struct kernel_run *run) {
    if (!run) return;
    for (uint32_t i = 0; i < KERNEL_MAX_OPERANDS; i++) g_free(run->expected[i]);
    if (run->image) isa_image_free(run->image);
    tile_free(&run->tile);
    sram_free(run->sram);
    g_free(run->before);
    g_free(run->fault);
    g_free(run);
}

uint32_t kernel_run_wrong(const struct kernel_run *run, uint32_t operand, uint32_t *ret_first) {
    const struct kernel_operand *o = &run->needs.operand[operand];
    const uint32_t bytes = run_bytes(run, operand);
    if (!(o->access & KERNEL_WRITE) || !run->expected[operand] || bytes == 0) return 0;
    const uint8_t *got = sram_at(run->sram, 0, run->address[operand]);
    uint32_t wrong = 0;
    for (uint32_t b = 0; b < bytes; b++) {
        if (got[b] == run->expected[operand][b]) continue;
        if (wrong++ == 0) *ret_first = b;
    }
    return wrong;
}

static bool run_may_change(const struct kernel_run *run, uint32_t address) {
    if (address >= RUN_SAMPLE_WORDS && address < TARGET_SUPERVISOR_STACK_TOP) return true;
    for (uint32_t i = 0; i < run->needs.n_operands; i++) {
        const struct kernel_operand *o = &run->needs.operand[i];
        if ((o->access & KERNEL_WRITE) && address >= run->address[i] &&
            address < run->address[i] + o->bytes)
            return true;
    }
    return false;
}

uint32_t kernel_run_stray(const struct kernel_run *run, uint32_t *ret_address) {
    const uint8_t *after = sram_at(run->sram, 0, TARGET_SRAM_BASE);
    uint32_t stray = 0;
    for (uint32_t b = 0; b < SRAM_BYTES; b++) {
        if (after[b] == run->before[b] || run_may_change(run, TARGET_SRAM_BASE + b)) continue;
        if (stray++ == 0) *ret_address = TARGET_SRAM_BASE + b;
    }
    return stray;
}

/* Worker 0 reads the counter in cycle 0 of a lane-0 slot, stores, exits (12); join 14; br 5; setzi
 * per register; the call; setzi, call, setzi, store (its address 8 later), setzi, runall 7 later;
 * worker 0's fifth slot reads again. */
uint64_t kernel_run_sampled_form(const struct kernel_spec *spec, uint32_t n_registers) {
    enum { TO_CALL = 12 + TARGET_EXIT_TO_LANE_CYCLES + TARGET_SUPER_BRANCH_CYCLES, TO_RUNALL = 23 };
    const uint64_t call = TO_CALL + n_registers;
    const uint64_t behind = call + kernel_cycles_lane(spec, (uint32_t)(call % TARGET_LANE_CYCLES));
    const uint64_t first = behind + TO_RUNALL + TARGET_RUN_TO_SLOT_CYCLES;
    return ceil_div_u64(first, TARGET_LANE_CYCLES) * TARGET_LANE_CYCLES + 4 * TARGET_LANE_CYCLES;
}
