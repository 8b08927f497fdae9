/* Candidates of one product: all grids rows x columns x K partitions without idle partitions,
 * priced by the kernels' closed forms and by what the busiest tile moves in each phase.
 *
 * Work of a candidate, in order: in-phase (left operand multicast to the tiles of a row part and K
 * part; coefficients gathered from their homes by the tiles of a K part and column part), product,
 * partials to their owners (the k tiles of a result block own equal windows of its storage),
 * reduction, elementwise operations on the owned windows.
 *
 * Only grids in which every count is the smallest for its local size are tried, so that about the
 * product of three times the square root of the extents remain. */
#include "plan/plan_internal.h"
#include "target/target.h"

#include <string.h>

/* Costs of a phase besides its load: what a phase takes beyond its horizon (exchange 3.7), and the
 * latency of the longest route with its controls (exchange 3.1: ttm up to 112, 58 + 2 x 22). */
enum { PHASE_CYCLES = 240, ROUTE_SLOTS = 130 };
/* A message costs its receiver about this many slots besides its words when many tiles compete. */
enum { MESSAGE_SLOTS_X16 = 24 };

uint64_t plan_phase_cycles(uint64_t items, uint64_t message_words) {
    if (items == 0) return 0;
    const uint64_t messages = ceil_div_u64(items, MAX(message_words, 1));
    return PHASE_CYCLES + ROUTE_SLOTS + items + items / 50 + messages * MESSAGE_SLOTS_X16 / 16;
}

/* Receive slots of an in-phase. A home inside the buffer that the rest arrives in shares memory
 * elements with it: its sends wait for the receives into those elements, but not for the left
 * operand's. */
static uint64_t in_items(const struct plan_candidate *c, uint64_t left) {
    const uint64_t words = c->right_bytes / 4;
    if (c->r == 1) return left;
    if (c->home == PLAN_HOME_INSIDE) return MAX(words, left + words - words / c->r);
    return left + (c->pair_rows && c->r > 2 ? words / 2 : words);
}

uint64_t plan_in_cycles(const struct plan_candidate *c, uint64_t left, uint64_t message_words) {
    return plan_phase_cycles(in_items(c, left), message_words) +
           (c->passes - 1) * plan_phase_cycles(left, message_words);
}

static uint64_t left_items(const struct plan_candidate *c) {
    const uint64_t words = c->left_bytes / 4;
    return c->pair_columns ? words / 2 : words;
}

struct price {
    const struct plan_gemm *m;
    const struct plan_options *o;
    struct plan_set *set;
    GArray *found;        /* plan_candidate, product_cycles a lower bound */
    uint64_t homes_bytes; /* of other parameters on a tile */
    uint32_t left_limit;
    bool any_use;         /* grids that leave most tiles idle, too */
    GHashTable *products; /* price_key -> cycles: variants of a grid share the product */
};

static uint64_t product_cycles(struct price *p, const struct plan_candidate *c) {
    const struct kernel_spec spec = {
        p->m->format == PROGRAM_F16 ? KERNEL_GEMM_F16 : KERNEL_GEMM_F8,
        {c->local_rows, c->local_inner, c->local_columns, 0, c->interleaved}};
    const uint64_t key = ((uint64_t)c->local_rows << 41) ^ ((uint64_t)c->local_inner << 21) ^
                         ((uint64_t)c->local_columns << 1) ^ c->interleaved;
    const uint64_t *known = g_hash_table_lookup(p->products, &key);
    if (known) return known[1];
    const uint64_t entry[2] = {key, kernel_cycles(&spec)};
    p->set->evaluations++;
    g_hash_table_add(p->products, g_memdup2(entry, sizeof entry));
    return entry[1];
}

/* The matrix unit alone: four slots a row and group on the busiest worker. */
static uint64_t product_bound(const struct plan_gemm *m, const struct plan_candidate *c) {
    const uint64_t groups = (uint64_t)(c->local_inner / plan_group(m)) * (c->local_columns / 16);
    return groups * 4 * TARGET_LANE_CYCLES * ceil_div_u32(c->local_rows, TARGET_N_WORKERS);
}

/* The axis in the low bit of the tile number decides what pairs of tiles share. */
static void map_tiles(const struct plan_gemm *m, struct plan_candidate *c, bool rows_fast) {
    if (rows_fast) {
        c->stride_r = 1;
        c->stride_c = c->r;
        c->stride_k = c->r * c->c;
    } else {
        c->stride_c = 1;
        c->stride_k = c->c;
        c->stride_r = c->c * c->k;
    }
    c->pair_rows = rows_fast && c->r % 2 == 0;
    c->pair_columns = !rows_fast && c->c % 2 == 0;
    (void)m;
}

static void set_memory(const struct plan_gemm *m, struct plan_candidate *c) {
    const uint32_t bytes = program_format_bytes(m->format);
    c->left_bytes = bytes * c->local_rows * c->local_inner;
    c->right_bytes = bytes * c->local_inner * c->local_columns;
    c->out_bytes = 2 * c->local_rows * c->local_columns;
    c->result_bytes = c->k > 1 ? align_up_u32(ceil_div_u32(c->out_bytes, c->owners), 32) : 0;
    c->received_bytes = c->result_bytes * (c->k - 1);
    c->result_bytes *= c->passes;
    const uint32_t kept = c->passes == 1 ? 0
                          : c->k > 1     ? c->result_bytes
                                         : c->passes * c->out_bytes;
    c->resident_bytes = c->home == PLAN_HOME_INSIDE
                            ? c->right_bytes
                            : align_up_u32(ceil_div_u32(c->right_bytes, c->r), 32);
    const uint32_t home = c->home == PLAN_HOME_APART ? c->resident_bytes : 0;
    const uint32_t during = c->left_bytes + c->right_bytes + home + c->out_bytes + kept;
    const uint32_t after = (c->passes > 1 ? c->right_bytes + home : c->resident_bytes) +
                           c->out_bytes + c->received_bytes + c->result_bytes;
    c->peak_bytes = MAX(during, after);
    const uint32_t held = c->home == PLAN_HOME_INSIDE ? c->right_bytes : 0;
    c->interleaved_bytes =
        MAX(c->right_bytes + c->out_bytes, held + c->out_bytes + c->received_bytes);
}

static uint32_t epilogue_bits(const struct plan_gemm *m) {
    return (m->epilogue & PROGRAM_EPILOGUE_BIAS ? KERNEL_EPILOGUE_BIAS : 0) |
           (m->epilogue & PROGRAM_EPILOGUE_GELU ? KERNEL_EPILOGUE_GELU : 0) |
           (m->epilogue & PROGRAM_EPILOGUE_RESIDUAL ? KERNEL_EPILOGUE_RESIDUAL : 0);
}

/* The reduction with its epilogue on the owned window. A window that is cut at panel borders takes
 * two calls, of which the second one has at least one vector. */
static uint64_t reduction_cycles(const struct plan_gemm *m, const struct plan_candidate *c,
                                 uint32_t owned) {
    if (!m->epilogue) {
        const struct kernel_spec reduce = {KERNEL_REDUCE_F16, {c->k, owned}};
        return c->k > 1 ? kernel_cycles(&reduce) : 0;
    }
    const uint32_t rows32 = owned / 16, height = c->local_rows;
    const struct kernel_spec whole = {
        KERNEL_REDUCE_PANELS,
        {c->k, MIN(rows32, height), 16 * MAX(rows32 / height, 1), epilogue_bits(m)}};
    const struct kernel_spec rest = {KERNEL_REDUCE_PANELS, {c->k, 1, 16, epilogue_bits(m)}};
    const bool cut = c->k > 1 && c->local_columns / 16 % c->owners;
    return kernel_cycles(&whole) + (cut ? kernel_cycles(&rest) : 0);
}

/* Bringing a computed left operand into F8: to boxes on the readers, the cast there. */
static uint64_t conversion_cycles(const struct plan_gemm *m, const struct plan_candidate *c) {
    if (m->format == PROGRAM_F16 || m->free_input) return 0;
    const uint32_t groups = c->local_inner / 32, columns = MIN(groups, c->c);
    const uint32_t rows = ceil_div_u32(c->local_rows * c->passes, MAX(c->c / columns, 1));
    const uint32_t width = 32 * ceil_div_u32(groups, columns);
    const struct kernel_spec cast = kernel_cast_to_panels(rows, width, 0);
    return plan_phase_cycles((uint64_t)rows * width / 2, rows * 8) + kernel_cycles(&cast);
}

static void set_cycles(const struct plan_gemm *m, struct plan_candidate *c) {
    c->product_cycles = product_bound(m, c);
    const uint32_t owned = c->k > 1 ? c->result_bytes / c->passes / 2 : c->out_bytes / 2;
    c->partial_cycles = c->pointwise_cycles = 0;
    if (c->k > 1) {
        const bool residual = m->epilogue & PROGRAM_EPILOGUE_RESIDUAL;
        const uint32_t result = c->result_bytes / c->passes;
        const uint64_t bytes = c->received_bytes + (residual ? result : 0);
        c->partial_cycles = plan_phase_cycles(bytes / 4, result / 4);
    } else if (m->epilogue & PROGRAM_EPILOGUE_RESIDUAL) {
        c->partial_cycles = plan_phase_cycles(c->out_bytes / 4, 64);
    }
    c->reduce_cycles = reduction_cycles(m, c, owned);
    if (m->n_pointwise) {
        const struct kernel_spec gelu = {KERNEL_GELU_F16, {owned}};
        c->pointwise_cycles = m->n_pointwise * kernel_cycles(&gelu);
    }
    c->convert_cycles = conversion_cycles(m, c);
    c->in_cycles = plan_in_cycles(c, m->free_input ? 0 : left_items(c), UINT32_MAX);
    if (m->swapped) { /* the parameter is the left operand, what is computed the right one */
        const uint64_t right = m->free_input ? 0 : c->right_bytes / (c->pair_rows ? 8 : 4);
        c->in_cycles = plan_phase_cycles((c->c > 1 ? left_items(c) : 0) + right, UINT32_MAX);
    }
    c->in_cycles += c->convert_cycles;
    c->product_cycles *= c->passes;
    c->partial_cycles *= c->passes;
    c->reduce_cycles *= c->passes;
    c->pointwise_cycles *= c->passes;
    c->fixed_cycles =
        c->product_cycles + c->partial_cycles + c->reduce_cycles + c->pointwise_cycles;
}

static void add_user(struct plan_infeasible *x, const char *name, uint64_t bytes) {
    if (bytes == 0) return;
    uint32_t i = x->n_users++;
    for (; i > 0 && x->users[i - 1].bytes < bytes; i--) x->users[i] = x->users[i - 1];
    x->users[i] = (struct plan_user){name, bytes};
}

/* What the tile holds where it needs most: while the product runs, or while partials are reduced. */
static void list_users(const struct plan_candidate *c, struct plan_infeasible *x) {
    const uint32_t home = c->home == PLAN_HOME_APART ? c->resident_bytes : 0;
    const uint32_t kept = c->passes == 1 ? 0 : c->k > 1 ? c->result_bytes : c->passes * c->out_bytes;
    const uint32_t during = c->left_bytes + c->right_bytes + home + c->out_bytes + kept;
    x->n_users = 0;
    add_user(x, "result", c->out_bytes);
    if (c->peak_bytes == during) {
        add_user(x, "left operand", c->left_bytes);
        add_user(x, "coefficients", c->right_bytes);
        add_user(x, "home of the coefficients", home);
        add_user(x, "finished passes", kept);
    } else {
        add_user(x, "coefficients", c->passes > 1 ? c->right_bytes : 0);
        add_user(x, "home of the coefficients", c->passes > 1 ? home : c->resident_bytes);
        add_user(x, "received partials", c->received_bytes);
        add_user(x, "reduced result", c->result_bytes);
    }
}

static bool fits(struct price *p, const struct plan_candidate *c) {
    const struct plan_options *o = p->o;
    const uint64_t sum = (uint64_t)o->standard_bytes + o->interleaved_bytes;
    const uint64_t all = sum - MIN(p->homes_bytes, sum);
    const bool total = c->peak_bytes <= all, inter = c->interleaved_bytes <= o->interleaved_bytes;
    if (total && inter) return true;
    struct plan_infeasible *x = &p->set->best_misfit;
    const uint64_t needs = total ? c->interleaved_bytes : c->peak_bytes;
    const uint64_t has = total ? o->interleaved_bytes : all;
    if (x->needs_bytes && x->needs_bytes - x->has_bytes <= needs - has) return false;
    *x = (struct plan_infeasible){.operation = p->m->g->ops[p->m->op].name,
                                  .memory = total ? "interleaved" : "all",
                                  .needs_bytes = needs,
                                  .has_bytes = has,
                                  .grid = {c->r, c->c, c->k}};
    list_users(c, x);
    return false;
}

/* Passes over the rows, for a swapped product and one that adds fewer rows than it has not offered.
 */
static uint32_t most_passes(const struct plan_gemm *m, uint32_t r) {
    if (m->swapped) return 1;
    if (m->epilogue & PROGRAM_EPILOGUE_RESIDUAL) {
        uint32_t rows, columns;
        plan_matrix(&m->g->values[m->residual].shape, &rows, &columns);
        if (rows != m->rows) return 1;
    }
    return MIN(PLAN_MOST_PASSES, m->rows / r);
}

/* As few passes as memory allows, or those of the constraint. */
static bool fewest_passes(struct price *p, struct plan_candidate *x) {
    const struct plan_gemm *m = p->m;
    const uint32_t most = most_passes(m, x->r);
    const uint32_t forced = m->constraint.passes ? m->constraint.passes : MIN(p->o->passes, most);
    if (forced > most) return false;
    for (x->passes = forced ? forced : 1; x->passes <= (forced ? forced : most); x->passes++) {
        const uint32_t parts = x->passes * x->r;
        x->local_rows = ceil_div_u32(m->rows, parts);
        /* An owner has a window of at least one 32-byte row; a small block has fewer than k. */
        const uint64_t rows32 =
            (uint64_t)(m->rows / parts) * (ceil_div_u32(m->columns, 16) / x->c) * m->batch;
        x->owners = (uint32_t)MIN(rows32, x->k);
        set_memory(m, x);
        if ((m->swapped ? x->right_bytes : x->left_bytes) > p->left_limit) continue;
        if (!x->interleaved) x->interleaved_bytes -= MIN(x->right_bytes, x->interleaved_bytes);
        if (fits(p, x)) return true;
    }
    return false;
}

static void consider(struct price *p, uint32_t r, uint32_t c, uint32_t k) {
    const struct plan_gemm *m = p->m;
    const uint32_t group = plan_group(m), inner_groups = ceil_div_u32(m->inner, group);
    const uint32_t column_groups = ceil_div_u32(m->columns, 16);
    struct plan_candidate x = {.r = r,
                               .c = c,
                               .k = k,
                               .local_columns = 16 * ceil_div_u32(column_groups, c) * m->batch,
                               .local_inner = group * ceil_div_u32(inner_groups, k)};
    if (m->constraint.column_block && m->constraint.column_block != x.local_columns) return;
    for (uint32_t variant = 0; variant < 8; variant++) {
        const bool rows_fast = variant & 1;
        x.home = variant & 2 ? PLAN_HOME_APART : PLAN_HOME_INSIDE;
        x.interleaved = !(variant & 4);
        if (rows_fast && (r % 2 || r == 1)) continue;
        if (x.home == PLAN_HOME_APART && r == 1) continue;
        if (x.home == PLAN_HOME_INSIDE && r > 1 && (m->repeated || m->swapped)) continue;
        if (m->constraint.memory == PROGRAM_STANDARD && x.interleaved) continue;
        if (m->constraint.memory == PROGRAM_INTERLEAVED && !x.interleaved) continue;
        map_tiles(m, &x, rows_fast);
        if (!fewest_passes(p, &x)) continue;
        set_cycles(m, &x);
        g_array_append_val(p->found, x);
    }
}

static int by_cost(const void *a, const void *b) {
    const struct plan_candidate *x = a, *y = b;
    const uint64_t cx = x->fixed_cycles + x->in_cycles, cy = y->fixed_cycles + y->in_cycles;
    if (cx != cy) return cx < cy ? -1 : 1;
    if (x->peak_bytes != y->peak_bytes) return x->peak_bytes < y->peak_bytes ? -1 : 1;
    if (x->r != y->r) return x->r < y->r ? -1 : 1;
    if (x->c != y->c) return x->c < y->c ? -1 : 1;
    if (x->k != y->k) return x->k < y->k ? -1 : 1;
    if (x->home != y->home) return x->home < y->home ? -1 : 1;
    if (x->interleaved != y->interleaved) return x->interleaved ? -1 : 1;
    return x->stride_c < y->stride_c ? -1 : x->stride_c > y->stride_c;
}

/* Exact prices in ascending order of the bounds, until the next bound exceeds the dearest one kept.
 */
static void keep_cheapest(struct price *p, uint32_t most) {
    struct plan_candidate *found = (struct plan_candidate *)p->found->data;
    struct plan_set *set = p->set;
    qsort(found, p->found->len, sizeof *found, by_cost);
    for (uint32_t i = 0; i < p->found->len; i++) {
        struct plan_candidate x = found[i];
        const struct plan_candidate *last = set->n ? &set->candidates[set->n - 1] : NULL;
        if (set->n == most && by_cost(last, &x) <= 0) break;
        const uint64_t exact = x.passes * product_cycles(p, &x);
        x.fixed_cycles += exact - x.product_cycles;
        x.product_cycles = exact;
        if (set->n == most && by_cost(last, &x) <= 0) continue;
        uint32_t at = set->n < most ? set->n++ : most - 1;
        for (; at > 0 && by_cost(&x, &set->candidates[at - 1]) < 0; at--)
            set->candidates[at] = set->candidates[at - 1];
        set->candidates[at] = x;
    }
}

static bool smallest(uint32_t units, uint32_t n) {
    return ceil_div_u32(units, ceil_div_u32(units, n)) == n;
}

static void enumerate(struct price *p) {
    const struct plan_gemm *m = p->m;
    const uint32_t columns = ceil_div_u32(m->columns, 16),
                   inner = ceil_div_u32(m->inner, plan_group(m));
    const struct plan_constraint *f = &m->constraint;
    if (f->rows) {
        if (f->rows <= m->rows && f->columns <= columns && f->inner <= inner &&
            (uint64_t)f->rows * f->columns * f->inner <= p->o->n_tiles)
            consider(p, f->rows, f->columns, f->inner);
    } else {
        /* A grid that uses less than a third of the tiles is never best unless the work is so small
         * that spreading it costs more than it saves. */
        const uint64_t possible = (uint64_t)m->rows * columns * inner;
        const bool small = possible < 4 * (uint64_t)p->o->n_tiles;
        const uint64_t least = p->any_use || small ? 1 : p->o->n_tiles / 3;
        for (uint32_t r = 1; r <= MIN(m->rows, p->o->n_tiles); r++) {
            if (!smallest(m->rows, r)) continue;
            for (uint32_t c = 1; c <= MIN(columns, p->o->n_tiles / r); c++) {
                if (!smallest(columns, c)) continue;
                for (uint32_t k = 1; k <= MIN(inner, p->o->n_tiles / r / c); k++)
                    if (smallest(inner, k) && (uint64_t)r * c * k >= least) consider(p, r, c, k);
            }
        }
    }
}

void plan_gemm_candidates(const struct plan_gemm *m, const struct plan_options *o,
                          uint64_t homes_bytes, struct arena *arena, struct plan_set *ret) {
    *ret = (struct plan_set){0};
    struct price p = {.m = m,
                      .o = o,
                      .set = ret,
                      .homes_bytes = homes_bytes,
                      .found = g_array_new(FALSE, FALSE, sizeof(struct plan_candidate)),
                      .products = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL)};
    /* The limit of a free input is a preference: dropped when nothing is left. */
    p.left_limit = m->free_input ? o->free_input_bytes : UINT32_MAX;
    enumerate(&p);
    for (uint32_t relax = 0; relax < 2 && p.found->len == 0; relax++) {
        p.any_use = true;
        if (relax) p.left_limit = UINT32_MAX;
        enumerate(&p);
    }
    ret->candidates = arena_new_array(arena, struct plan_candidate, o->candidates);
    keep_cheapest(&p, o->candidates);
    g_array_free(p.found, TRUE);
    g_hash_table_destroy(p.products);
}

/* Number of messages that a receiver of `to` gets for one of its K parts: its rows times its panels
 * cut by the source's row parts and windows. Counted for the first part, which is the largest. */
static uint64_t edge_messages(const struct plan_gemm *mf, const struct plan_candidate *from,
                              const struct plan_gemm *mt, const struct plan_candidate *to) {
    const uint32_t panels_from = from->local_columns / 16, panels = to->local_inner / 16;
    if (mt->format != PROGRAM_F16) return to->c; /* boxes on the readers, see conversion_cycles */
    const uint32_t parts = from->r * from->passes;
    uint64_t n = 0;
    for (uint32_t panel = 0; panel < panels; panel++)
        for (uint32_t row = 0; row < to->local_rows;) {
            const uint32_t part = program_part_of(mf->rows, 1, parts, row);
            const uint32_t start = program_part_start(mf->rows, 1, parts, part);
            const uint32_t end = program_part_start(mf->rows, 1, parts, part + 1);
            const uint32_t stop = MIN(end, to->local_rows), height = end - start;
            const uint32_t rows32 = height * panels_from;
            const uint32_t first = panel % panels_from * height + row - start;
            const uint32_t last = first + stop - row - 1;
            n += program_part_of(rows32, 1, from->owners, last) -
                 program_part_of(rows32, 1, from->owners, first) + 1;
            row = stop;
        }
    return n;
}

uint64_t plan_edge_cycles(const struct plan_gemm *mf, const struct plan_candidate *from,
                          const struct plan_gemm *mt, const struct plan_candidate *to) {
    return plan_in_cycles(to, left_items(to),
                          to->left_bytes / 4 / edge_messages(mf, from, mt, to)) +
           to->convert_cycles;
}
