/* Sums of partials and what follows them. Every owner of a window of a result block receives that
 * window of the other tiles' partials, packed, and adds them to its own one, which stays where it
 * is.
 *
 * Without an epilogue a linear window is one run of elements; a window of rows is a run in each
 * panel. With one it is cut at the borders of the 16-column panels into pieces of whole rows (a
 * ragged head, full panels, a ragged tail), because bias belongs to columns; each piece is packed
 * and called by itself. A value without partials runs the epilogue alone. Remotes are taken in
 * rotation behind the owner's partial, so that no two owners want the same sender first. Sums that
 * follow each other and do not depend on each other receive in one phase. */
#include "lower/lower_internal.h"

struct sum_piece {
    uint32_t panel, rows, panels; /* `panels` full panels, or rows of one */
    uint32_t offset, bytes;       /* in the window */
    uint32_t from;                /* in the partials' storage */
};
enum { MAX_PIECES = 64 };

struct sum {
    struct lower *l;
    const struct program_op *op;
    const struct program_value *o, *p;
    struct program_shard s;
    uint32_t number, n_partials, own; /* own: partial index on the owner's tile, or TG_NONE */
    struct sum_piece piece[MAX_PIECES];
    uint32_t n_pieces;
    uint32_t buffer, n_remote;
};

static void add_piece(struct sum *u, uint32_t height, uint32_t from, uint32_t rows) {
    const uint32_t start = u->s.window / 32;
    u->piece[u->n_pieces++] = (struct sum_piece){.panel = from / height,
                                                 .rows = rows < height ? rows : height,
                                                 .panels = rows < height ? 1 : rows / height,
                                                 .offset = 32 * (from - start),
                                                 .bytes = 32 * rows,
                                                 .from = 32 * from};
}

/* A window of rows: its rows of every panel. */
static void cut_rows(struct sum *u) {
    struct program_shard part = u->s; /* without partials: the window itself */
    const uint32_t index[PROGRAM_N_AXES] = {u->s.index[0], u->s.index[1], u->s.index[2]};
    if (u->n_partials > 1) program_shard_at(u->p, program_shard_number(u->p, index), &part);
    const uint32_t rows = u->s.extent[1], first = u->s.start[1] - part.start[1];
    const uint32_t panels = u->s.part_bytes / 32 / rows;
    BUG_ON(panels > MAX_PIECES);
    for (uint32_t i = 0; i < panels; i++)
        u->piece[u->n_pieces++] = (struct sum_piece){.panel = i,
                                                     .rows = rows,
                                                     .panels = 1,
                                                     .offset = 32 * i * rows,
                                                     .bytes = 32 * rows,
                                                     .from = 32 * (i * part.extent[1] + first)};
}

/* Pieces of the window in units of 32-byte rows; `height` rows make a panel. */
static void cut_window(struct sum *u) {
    u->n_pieces = 0;
    if (u->o->layout.window_rows) {
        cut_rows(u);
        return;
    }
    const bool batched = u->o->layout.order == PROGRAM_AMP_BATCHED;
    const uint32_t height =
        u->op->epilogue ? (batched ? 1 : u->s.extent[0]) * u->s.extent[1] : u->s.bytes / 32;
    if (!u->op->epilogue) {
        u->piece[u->n_pieces++] = (struct sum_piece){
            .rows = height, .panels = 1, .bytes = u->s.bytes, .from = u->s.window};
        return;
    }
    uint32_t at = u->s.window / 32;
    const uint32_t end = at + u->s.bytes / 32;
    if (at % height) {
        const uint32_t stop = MIN(end, (at / height + 1) * height);
        add_piece(u, height, at, stop - at);
        at = stop;
    }
    if (end - at >= height) {
        add_piece(u, height, at, (end - at) / height * height);
        at += (end - at) / height * height;
    }
    if (end > at) add_piece(u, height, at, end - at);
}

static uint32_t partial_alloc(const struct sum *u, uint32_t k) {
    uint32_t index[PROGRAM_N_AXES] = {u->s.index[0], u->s.index[1], u->s.index[2], k};
    if (u->n_partials == 1) index[PROGRAM_WINDOW] = u->s.index[PROGRAM_WINDOW];
    return u->l->alloc_of[u->op->inputs[0]][program_shard_number(u->p, index)];
}

static void load(struct sum *u, uint32_t number) {
    struct lower *l = u->l;
    program_shard_at(u->o, number, &u->s);
    u->number = number;
    u->own = TG_NONE;
    for (uint32_t k = 0; k < u->n_partials; k++)
        if (lower_tile_of(l, partial_alloc(u, k)) == u->s.tile) u->own = k;
    u->n_remote = u->own == TG_NONE ? u->n_partials : u->n_partials - 1;
    cut_window(u);
}

/* Offset in the buffer of a piece's first remote. */
static uint32_t piece_base(const struct sum *u, const struct sum_piece *p) {
    return p->offset * u->n_remote;
}

static void receive(struct sum *u) {
    if (u->n_remote == 0) return;
    struct lower *l = u->l;
    const struct tg_alloc_row row = {.tile = (uint16_t)u->s.tile,
                                     .bytes = u->n_remote * u->s.bytes,
                                     .align = 32,
                                     .alias = TG_NONE,
                                     .blocks = 1,
                                     .value = tg_name(&l->b, u->p->name)};
    u->buffer = tg_alloc_add(&l->b, &row);
    const uint32_t n = u->n_partials, first = u->own == TG_NONE ? 0 : u->own + 1;
    for (uint32_t i = 0; i < u->n_remote; i++) {
        const uint32_t alloc = partial_alloc(u, (first + i) % n);
        for (uint32_t k = 0; k < u->n_pieces; k++) {
            const struct sum_piece *p = &u->piece[k];
            struct tg_ref to = {u->buffer, piece_base(u, p) + i * p->bytes};
            lower_send(l, (struct tg_ref){alloc, p->from}, p->bytes, &to, 1);
        }
    }
}

static uint32_t epilogue_bits(const struct program_op *op) {
    return (op->epilogue & PROGRAM_EPILOGUE_BIAS ? KERNEL_EPILOGUE_BIAS : 0) |
           (op->epilogue & PROGRAM_EPILOGUE_GELU ? KERNEL_EPILOGUE_GELU : 0) |
           (op->epilogue & PROGRAM_EPILOGUE_RESIDUAL ? KERNEL_EPILOGUE_RESIDUAL : 0);
}

/* The bias shard of the owner: same parts, any replica on its tile. */
static uint32_t bias_alloc(const struct sum *u, uint32_t value) {
    const bool batched = lower_value(u->l, value)->layout.count[PROGRAM_BATCH] > 1;
    uint32_t index[PROGRAM_N_AXES] = {batched ? u->s.index[0] : 0, u->s.index[1], u->s.index[2]};
    const uint32_t shard = lower_shard_on_tile(u->l, value, index, u->s.tile);
    BUG_ON(shard == PROGRAM_NONE);
    return u->l->alloc_of[value][shard];
}

static bool call_piece(struct sum *u, const struct sum_piece *p) {
    struct lower *l = u->l;
    const struct program_op *op = u->op;
    const uint32_t base = u->n_remote ? piece_base(u, p) : 0;
    const bool own = u->own != TG_NONE;
    const uint32_t seed =
        u->n_partials == 1 ? p->offset : p->from; /* equal windows, or whole parts */
    struct tg_ref operands[KERNEL_MAX_OPERANDS];
    uint32_t n = 0;
    operands[n++] = (struct tg_ref){l->alloc_of[op->output][u->number], p->offset};
    operands[n++] =
        own ? (struct tg_ref){partial_alloc(u, u->own), seed} : (struct tg_ref){u->buffer, base};
    if (u->n_partials > 1) operands[n++] = (struct tg_ref){u->buffer, own ? base : base + p->bytes};
    struct kernel_spec spec = {KERNEL_REDUCE_F16, {u->n_partials, p->bytes / 2}};
    if (op->epilogue) {
        spec = (struct kernel_spec){KERNEL_REDUCE_PANELS,
                                    {u->n_partials, p->rows, 16 * p->panels, epilogue_bits(op)}};
        uint32_t input = 1;
        const uint32_t bias =
            op->epilogue & PROGRAM_EPILOGUE_BIAS ? op->inputs[input++] : PROGRAM_NONE;
        if (op->epilogue & PROGRAM_EPILOGUE_RESIDUAL)
            operands[n++] = (struct tg_ref){l->alloc_of[op->inputs[input]][u->number], p->offset};
        if (bias != PROGRAM_NONE)
            operands[n++] = (struct tg_ref){bias_alloc(u, bias), 32 * p->panel};
    }
    return tg_call(&l->b, u->s.tile, &spec, operands, l->error);
}

/* One sum with the shards that its owners receive. */
struct sum_op {
    const struct program_op *op;
    uint32_t n;
    struct sum *shards;
};

static struct sum_op collect(struct lower *l, const struct program_op *op) {
    struct sum u = {
        .l = l, .op = op, .o = lower_value(l, op->output), .p = lower_value(l, op->inputs[0])};
    u.n_partials = u.p->layout.count[PROGRAM_PARTIAL];
    if (u.n_partials > 1) lower_phase_open(l, op, op->inputs[0], op->output);
    const uint32_t n = program_n_shards(u.o);
    struct sum *sums = g_new(struct sum, n);
    for (uint32_t i = 0; i < n; i++) {
        load(&u, i);
        receive(&u);
        sums[i] = u;
    }
    return (struct sum_op){op, n, sums};
}

static bool call_all(struct lower *l, const struct sum_op *s) {
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->shards[i].n_pieces; k++)
            if (!call_piece(&s->shards[i], &s->shards[i].piece[k])) return false;
    tg_close_compute(&l->b, tg_name(&l->b, s->op->operation), tg_name(&l->b, s->op->reason));
    l->made_step[s->op->output] = l->b.steps->len - 1;
    return true;
}

bool lower_sums(struct lower *l, const uint32_t *ops, uint32_t n) {
    struct sum_op *sums = g_new(struct sum_op, n);
    for (uint32_t i = 0; i < n; i++) sums[i] = collect(l, &l->p->ops[ops[i]]);
    bool ok = lower_phase_close(l);
    for (uint32_t i = 0; ok && i < n; i++) ok = call_all(l, &sums[i]);
    for (uint32_t i = 0; i < n; i++) g_free(sums[i].shards);
    g_free(sums);
    return ok;
}

static bool is_sum(const struct program_op *op) {
    return op->kind == PROGRAM_COMPUTE && op->compute == PROGRAM_SUM;
}

uint32_t lower_sums_joint(const struct lower *l, const uint32_t *ops, uint32_t n) {
    uint32_t end = 0;
    for (; end < n && is_sum(&l->p->ops[ops[end]]); end++) {
        const struct program_op *op = &l->p->ops[ops[end]];
        for (uint32_t i = 0; i < end; i++)
            for (uint32_t k = 0; k < op->n_inputs; k++)
                if (l->root_value[op->inputs[k]] == l->root_value[l->p->ops[ops[i]].output])
                    return end;
    }
    return end;
}
