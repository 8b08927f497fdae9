/* Traces: a stretch of code of a worker with its repeats unrolled, run as rows of the matrix unit.
 *
 * A launch of a product is a line of bundles { transfers ; AMP } with repeats in it and a few integer
 * instructions that move pointers. Where the calls are whole rows (phases 0 to 3) and the registers
 * go round as the products use them (tile_amp_rows.h), everything but the data is known when the
 * launch begins: the rows, the pointers and all other registers at its end, relative to the
 * registers at its beginning. So a trace is made once for the values that its course depends on
 * (repeat counts, strides, steps), and a run checks the ranges of all its accesses at once, hands the
 * rows to the vector code and writes the registers. What a trace can't hold ends it; where a check
 * fails or a value is infinite or NaN the code runs in another way.
 *
 * A block of rows loads before it stores, so no load may fetch what a slot of the block stores before
 * it: the distances between streams at which that would happen are kept (`clash`). */
#include "tile/tile_amp_plan.h"
#include "tile/tile_fused.h"

enum {
    MAX_SLOTS = 128,
    MIN_ROWS = 2,
    MAX_ROWS = 64,
    MAX_RUN = 1024, /* slots */
    MAX_STREAMS = TILE_FUSED_STREAMS,
    MAX_KEYS = 8,
    MAX_VARIANTS = 8,
    MAX_MEETINGS = 24,
    MAX_CLASHES = 512,
    MAX_CLASH_PAIRS = 8,
    WINDOW = 4 * TILE_FUSED_ROWS, /* calls of a block of rows */
    N_REGS = 16
};

enum trace_kind { TRACE_AMP, TRACE_REPEAT, TRACE_REPEAT_IMM, TRACE_ADD, TRACE_ADD_IMM, TRACE_TAPACK };
struct trace_slot {
    uint8_t kind, pointer; /* AMP: first register of the packed pair, or NO_POINTER */
    bool in_repeat;
    uint32_t reads, writes;
    struct isa_insn main; /* not AMP */
    struct tile_amp_slot amp;
};
enum { NO_POINTER = 0xff };

/* What a register holds: the value that another one had at the start of the trace plus a constant, or
 * half of the packed addresses of three streams. */
struct symbol {
    bool packed;
    uint8_t reg;    /* packed: first of the streams */
    uint8_t half;   /* packed */
    uint32_t add;
};
/* Where a stream starts: a third of packed registers, or a register plus a constant. */
struct start {
    bool packed;
    uint8_t reg, part;
    uint32_t add;
};
struct stream {
    struct start start;
    int32_t low, high;   /* offsets of its accesses */
    int32_t least, most; /* offsets where an addition found or left it */
    bool used, loads, stores, second, added;
};
/* Two streams accessed in one bundle (tile_ranges_apart). */
struct meeting {
    uint8_t a, b, parities;
};
/* A load fetches what was stored just before if the streams start so far apart; ordered. */
struct clash {
    uint8_t load, store;
    int32_t distance;
};
/* The clashes of two streams. */
struct clash_pair {
    uint8_t load, store;
    uint16_t first, n;
    int64_t apart; /* a distance that is none of theirs, found last */
};

/* Behind a number of whole rows. */
struct position {
    uint32_t slot, repeat_first, repeat_end, repeat_count; /* indices of slots; passes left */
    uint32_t n_slots, n_streams;
    uint32_t reads, writes; /* registers; reads: before they were written */
    bool repeated;
    struct symbol m[N_REGS];
    int32_t at[MAX_STREAMS];
};

struct variant {
    uint32_t n_keys, n_rows, n_meetings, n_clashes, n_pairs;
    uint8_t key[MAX_KEYS]; /* registers */
    uint32_t value[MAX_KEYS];
    struct position end;
    uint32_t changed; /* bit per register that is not what it was */
    struct stream stream[MAX_STREAMS];
    struct meeting meeting[MAX_MEETINGS];
    struct clash_pair pair[MAX_CLASH_PAIRS];
    struct clash *clash;
    struct tile_fused_row *rows;
    uint32_t n_words;
    struct tile_row_word (*words)[4]; /* of rows that are not whole */
};

struct tile_trace {
    uint32_t n; /* slots */
    uint8_t *words;
    struct trace_slot *slots;
    bool f8;
    uint8_t x, partial, result[2]; /* pairs; results by parity of the phase */
    uint8_t f143_base;
    uint64_t weights; /* words used */
    uint32_t n_variants, next_variant;
    struct variant variant[MAX_VARIANTS];
};

/* --- The code. --- */

static bool amp_decode(struct tile_trace *c, const struct tile_slot *s, struct trace_slot *ret) {
    struct tile_amp_plan plan;
    if (!tile_amp_plan_make(&plan, s, 1) || (c->n > 0 && c->f8 != plan.f8) ||
        (plan.n_pointers == 1 && !plan.pointer[0].packed))
        return false;
    c->f8 = plan.f8;
    c->weights |= plan.weights;
    ret->kind = TRACE_AMP;
    ret->pointer = plan.n_pointers == 1 ? plan.pointer[0].reg : NO_POINTER;
    ret->amp = plan.slot[0];
    return true;
}

static bool int_decode(const struct tile_slot *s, struct trace_slot *ret) {
    static const struct {
        enum isa_op op;
        enum trace_kind kind;
    } OPS[] = {{ISA_OP_RPT_R, TRACE_REPEAT},   {ISA_OP_RPT_Z, TRACE_REPEAT_IMM},
               {ISA_OP_ADD_R, TRACE_ADD},      {ISA_OP_ADD_S, TRACE_ADD_IMM},
               {ISA_OP_ADD_Z, TRACE_ADD_IMM},  {ISA_OP_TAPACK, TRACE_TAPACK}};
    if (s->ai.op != ISA_OP_SETZI_A || s->ai.d != TILE_SINK) return false; /* fnop */
    ret->main = s->mi;
    for (uint32_t k = 0; k < ARRAY_LEN(OPS); k++)
        if (OPS[k].op == s->mi.op) {
            ret->kind = (uint8_t)OPS[k].kind;
            return true;
        }
    return false;
}

/* The pairs that go round; false when they are not four different ones. */
static bool pairs_find(struct tile_trace *c) {
    uint32_t n = 0, x = TILE_PAIR_ZERO;
    for (uint32_t k = 0; k < c->n; k++) {
        if (c->slots[k].kind != TRACE_AMP) continue;
        if (n < 2) c->result[n++] = c->slots[k].amp.result;
        if (x == TILE_PAIR_ZERO) x = c->slots[k].amp.x;
    }
    if (n < 2 || x >= 4 || c->result[0] >= 4 || c->result[1] >= 4) return false;
    const uint32_t rest = 0xf & ~(1u << x | 1u << c->result[0] | 1u << c->result[1]);
    if (__builtin_popcount(rest) != 1) return false;
    c->x = (uint8_t)x;
    c->partial = (uint8_t)__builtin_ctz(rest);
    return true;
}

struct tile_trace *tile_trace_make(uint32_t pc, const uint8_t *memory) {
    struct trace_slot slots[MAX_SLOTS];
    struct tile_trace *c = g_new0(struct tile_trace, 1);
    /* No repeat may end where region 0 does. */
    for (; c->n < MAX_SLOTS && pc + 8 * c->n + 8 < TARGET_REGION1_BASE; c->n++) {
        uint32_t word[2];
        memcpy(word, memory + 8 * c->n, 8);
        if (word[0] >> 31 == 0) break;
        const struct tile_slot *s = tile_cache_decode(tile_cache_get(), word[0], word[1]);
        struct trace_slot *t = &slots[c->n];
        *t = (struct trace_slot){.in_repeat = s->in_repeat, .reads = s->reads, .writes = s->writes};
        if (s->error != TILE_FAULT_NONE || !s->worker || s->slots != 1 ||
            !(s->amp ? amp_decode(c, s, t) : int_decode(s, t)))
            break;
    }
    c->slots = g_memdup2(slots, c->n * sizeof *slots);
    c->words = g_memdup2(memory, 8 * c->n);
    if (c->n >= 4 * MIN_ROWS && pairs_find(c)) return c;
    tile_trace_free(c);
    return NULL;
}

static void variant_clear(struct variant *v) {
    g_free(v->clash);
    g_free(v->rows);
    g_free(v->words);
    *v = (struct variant){0};
}

void tile_trace_free(struct tile_trace *c) {
    if (c == NULL) return;
    for (uint32_t k = 0; k < MAX_VARIANTS; k++) variant_clear(&c->variant[k]);
    g_free(c->slots);
    g_free(c->words);
    g_free(c);
}

/* --- Making a variant. --- */

/* A row while it is made. */
struct words {
    struct tile_row_word word[4];
    uint8_t mask;
};
struct row {
    struct words x, partial, store;
    bool x_zero, partial_zero;
};
struct maker {
    const struct tile_trace *c;
    const uint32_t *m; /* registers at the start */
    struct variant *v;
    struct position now;
    struct {
        uint8_t stream;
        bool stored;
        int32_t at;
    } stores[WINDOW]; /* of the last calls, by their number */
};

/* The value of a register, which the variant then depends on. */
static bool value_get(struct maker *k, uint32_t reg, uint32_t *ret) {
    const struct symbol *s = &k->now.m[reg];
    struct variant *v = k->v;
    if (s->packed) return false;
    *ret = k->m[s->reg] + s->add;
    for (uint32_t i = 0; i < v->n_keys; i++)
        if (v->key[i] == s->reg) return true;
    if (v->n_keys == MAX_KEYS) return false;
    v->value[v->n_keys] = k->m[s->reg];
    v->key[v->n_keys++] = s->reg;
    return true;
}

/* Three streams that registers d and d + 1 hold from now on. */
static bool packed_new(struct maker *k, uint32_t d, const struct start *start) {
    struct position *p = &k->now;
    if (p->n_streams + 3 > MAX_STREAMS || d + 1 >= N_REGS) return false;
    for (uint32_t i = 0; i < 3; i++) {
        k->v->stream[p->n_streams + i] = (struct stream){.start = start[i]};
        p->at[p->n_streams + i] = 0;
    }
    for (uint32_t i = 0; i < 2; i++)
        p->m[d + i] = (struct symbol){.packed = true, .reg = (uint8_t)p->n_streams, .half = (uint8_t)i};
    p->n_streams += 3;
    return true;
}

/* The first stream of the pair at reg. */
static bool packed_get(struct maker *k, uint32_t reg, uint32_t *ret) {
    const struct symbol *s = &k->now.m[reg];
    if (!s[0].packed && !s[1].packed) {
        struct start start[3];
        if (s[0].reg != reg || s[1].reg != reg + 1 || s[0].add != 0 || s[1].add != 0) return false;
        for (uint32_t i = 0; i < 3; i++)
            start[i] = (struct start){.packed = true, .reg = (uint8_t)reg, .part = (uint8_t)i};
        if (!packed_new(k, reg, start)) return false;
    }
    if (!s[0].packed || !s[1].packed || s[0].half != 0 || s[1].half != 1 || s[0].reg != s[1].reg)
        return false;
    *ret = s[0].reg;
    return true;
}

static bool tapack(struct maker *k, const struct isa_insn *i) {
    const uint8_t from[3] = {i->s0, i->s1, i->s2};
    struct start start[3];
    for (uint32_t j = 0; j < 3; j++) {
        const struct symbol *s = &k->now.m[from[j]];
        if (s->packed) return false;
        start[j] = (struct start){.reg = s->reg, .add = s->add};
    }
    return packed_new(k, i->d, start);
}

static void reach(struct stream *s, int32_t at) {
    if (!s->added || at < s->least) s->least = at;
    if (!s->added || at > s->most) s->most = at;
    s->added = true;
}

/* register d = register a + value. An address that moves must stay one (run_fits): then what lies above it
 * in the register does not change. */
static bool add(struct maker *k, uint32_t d, uint32_t a, uint32_t value) {
    struct symbol s = k->now.m[a];
    if (d >= N_REGS) return true;
    if (s.packed) {
        const int32_t move = (int32_t)value;
        if (d != a || move % 8 != 0 || move >= 1 << 21 || move <= -(1 << 21)) return false;
        const uint32_t stream = s.reg + s.half;
        reach(&k->v->stream[stream], k->now.at[stream]);
        k->now.at[stream] += move;
        reach(&k->v->stream[stream], k->now.at[stream]);
        return true;
    }
    s.add += value;
    k->now.m[d] = s;
    return true;
}

static void next_slot(struct position *p) {
    p->n_slots++;
    p->slot++;
    if (p->repeat_count == 0 || p->slot != p->repeat_end) return;
    p->repeat_count--;
    if (p->repeat_count != 0) p->slot = p->repeat_first;
}

static bool repeat(struct maker *k, const struct isa_insn *i, bool immediate) {
    struct position *p = &k->now;
    uint32_t count = i->imm2;
    if (p->repeat_count != 0 || (!immediate && !value_get(k, i->s0, &count))) return false;
    const uint32_t first = p->slot + 1, end = first + (uint32_t)i->imm + 1;
    if (end > k->c->n) return false;
    for (uint32_t s = first; s < end; s++)
        if (!k->c->slots[s].in_repeat) return false;
    p->repeated = true;
    p->repeat_first = first;
    p->repeat_end = end;
    p->repeat_count = count & 0xffff;
    p->n_slots++;
    p->slot = p->repeat_count != 0 ? first : end;
    return true;
}

static bool int_step(struct maker *k, const struct trace_slot *s) {
    const struct isa_insn *i = &s->main;
    uint32_t value = (uint32_t)i->imm;
    switch ((enum trace_kind)s->kind) {
    case TRACE_REPEAT:
    case TRACE_REPEAT_IMM:
        return repeat(k, i, s->kind == TRACE_REPEAT_IMM);
    case TRACE_ADD:
        if (!value_get(k, i->s1, &value)) return false;
        /* fall through */
    case TRACE_ADD_IMM:
        if (!add(k, i->d, i->s0, value)) return false;
        break;
    case TRACE_TAPACK:
        if (!tapack(k, i)) return false;
        break;
    default:
        return false;
    }
    next_slot(&k->now);
    return true;
}

static bool meeting_note(struct maker *k, uint32_t a, uint32_t b) {
    struct variant *v = k->v;
    const uint8_t parity = ((k->now.at[a] + k->now.at[b]) & 8) ? 2 : 1;
    for (uint32_t i = 0; i < v->n_meetings; i++) {
        struct meeting *m = &v->meeting[i];
        if (m->a != a || m->b != b) continue;
        m->parities |= parity;
        return true;
    }
    if (v->n_meetings == MAX_MEETINGS) return false;
    v->meeting[v->n_meetings++] = (struct meeting){(uint8_t)a, (uint8_t)b, parity};
    return true;
}

static bool clash_note(struct maker *k, uint32_t load, uint32_t store, int32_t distance) {
    struct variant *v = k->v;
    for (uint32_t i = v->n_clashes; i-- > 0;) {
        const struct clash *c = &v->clash[i];
        if (c->load == load && c->store == store && c->distance == distance) return true;
    }
    if (v->n_clashes == MAX_CLASHES) return false;
    v->clash[v->n_clashes++] = (struct clash){(uint8_t)load, (uint8_t)store, distance};
    return true;
}

/* The word of a call in its row. */
static void word_note(struct words *w, uint32_t phase, uint32_t stream, int32_t at) {
    w->word[phase] = (struct tile_row_word){at, (uint8_t)stream};
    w->mask |= (uint8_t)(1u << phase);
}

static void access_note(struct maker *k, uint32_t stream, bool store) {
    struct stream *s = &k->v->stream[stream];
    const int32_t at = k->now.at[stream];
    if (!s->used || at < s->low) s->low = at;
    if (!s->used || at > s->high) s->high = at;
    s->used = true;
    *(store ? &s->stores : &s->loads) = true;
}

static bool load_note(struct maker *k, const struct tile_amp_access *a, uint32_t first,
                      struct row *row, uint32_t phase) {
    const uint32_t stream = first + a->stream;
    const int32_t at = k->now.at[stream];
    access_note(k, stream, false);
    k->v->stream[stream].second |= a->stream == 1;
    if (a->pair == k->c->x) word_note(&row->x, phase, stream, at);
    else if (a->pair == k->c->partial) word_note(&row->partial, phase, stream, at);
    else if (a->pair != TILE_PAIR_SINK) return false;
    for (uint32_t i = 0; i < WINDOW; i++)
        if (k->stores[i].stored && !clash_note(k, stream, k->stores[i].stream, at - k->stores[i].at))
            return false;
    return true;
}

static bool store_note(struct maker *k, const struct tile_amp_access *a, uint32_t first,
                       struct row *row, uint32_t phase) {
    const uint32_t stream = first + a->stream;
    if (a->pair != k->c->result[phase & 1]) return false;
    access_note(k, stream, true);
    word_note(&row->store, phase, stream, k->now.at[stream]);
    return true;
}

/* Moves the stream; false when the stride register is not known. */
static bool step_on(struct maker *k, const struct tile_amp_access *a, uint32_t first) {
    uint32_t m[N_REGS];
    if (a->step.kind == TILE_AMP_STEP_FIELD && !value_get(k, a->step.reg, &m[a->step.reg])) return false;
    k->now.at[first + a->stream] += tile_amp_step_bytes(&a->step, m);
    return true;
}

/* The transfers of a bundle. */
static bool transfers(struct maker *k, const struct trace_slot *s, struct row *row) {
    const struct tile_amp_slot *a = &s->amp;
    const struct tile_amp_access *used[3];
    uint32_t n = 0, first = 0;
    const uint32_t window = (4 * k->v->n_rows + a->phase) % WINDOW;
    if (s->pointer != NO_POINTER && !packed_get(k, s->pointer, &first)) return false;
    if (tile_fused_loads(a->kind)) used[n++] = &a->load[0];
    if (tile_fused_loads_two(a->kind)) used[n++] = &a->load[1];
    for (uint32_t i = 0; i < n; i++)
        if (!load_note(k, used[i], first, row, a->phase)) return false;
    k->stores[window].stored = tile_fused_stores(a->kind);
    if (tile_fused_stores(a->kind)) {
        if (!store_note(k, &a->store, first, row, a->phase)) return false;
        k->stores[window].stream = (uint8_t)(first + a->store.stream);
        k->stores[window].at = k->now.at[first + a->store.stream];
        used[n++] = &a->store;
    }
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (!meeting_note(k, first + used[i]->stream, first + used[j]->stream)) return false;
    for (uint32_t i = 0; i < n; i++)
        if (!step_on(k, used[i], first)) return false;
    return true;
}

static bool amp_step(struct maker *k, const struct trace_slot *s, uint32_t phase,
                     struct row *row) {
    const struct tile_amp_slot *a = &s->amp;
    const bool x_zero = a->x == TILE_PAIR_ZERO, partial_zero = a->partial == TILE_PAIR_ZERO;
    if (a->phase != phase || a->result != k->c->result[phase & 1] || (!x_zero && a->x != k->c->x) ||
        (!partial_zero && a->partial != k->c->partial))
        return false;
    if (phase == 0) row->x_zero = x_zero, row->partial_zero = partial_zero;
    if (row->x_zero != x_zero || row->partial_zero != partial_zero) return false;
    return transfers(k, s, row);
}

static struct tile_row_words words_put(struct variant *v, const struct words *w) {
    struct tile_row_words ret = {w->word[0], w->mask, w->mask == 0xf, 0};
    for (uint32_t k = 1; k < 4; k++)
        ret.whole = ret.whole && w->word[k].stream == w->word[0].stream &&
                    w->word[k].at == w->word[0].at + (int32_t)(8 * k);
    if (ret.whole || ret.mask == 0) return ret;
    ret.words = (uint16_t)v->n_words;
    memcpy(v->words[v->n_words++], w->word, sizeof w->word);
    return ret;
}
static struct tile_fused_row row_put(struct variant *v, const struct row *r) {
    return (struct tile_fused_row){.x = words_put(v, &r->x), .partial = words_put(v, &r->partial),
                                   .store = words_put(v, &r->store), .x_zero = r->x_zero,
                                   .partial_zero = r->partial_zero};
}

/* The next row from k->now on; what comes before its calls belongs to it. */
static bool row_step(struct maker *k, struct row *row) {
    *row = (struct row){0};
    for (uint32_t phase = 0; phase < 4;) {
        if (k->now.slot >= k->c->n || k->now.n_slots >= MAX_RUN) return false;
        const struct trace_slot *s = &k->c->slots[k->now.slot];
        k->now.reads |= s->reads & ~k->now.writes;
        k->now.writes |= s->writes;
        if (s->kind != TRACE_AMP) {
            if (!int_step(k, s)) return false;
            continue;
        }
        if (!amp_step(k, s, phase, row)) return false;
        next_slot(&k->now);
        phase++;
    }
    return true;
}

static int clash_order(const void *pa, const void *pb) {
    const struct clash *a = pa, *b = pb;
    const int by_pair = (a->load - b->load) * 256 + a->store - b->store;
    return by_pair != 0 ? by_pair : (a->distance > b->distance) - (a->distance < b->distance);
}

/* False when there are too many pairs. */
static bool clashes_order(struct variant *v) {
    qsort(v->clash, v->n_clashes, sizeof *v->clash, clash_order);
    for (uint32_t i = 0; i < v->n_clashes; i++) {
        const struct clash *c = &v->clash[i];
        struct clash_pair *p = &v->pair[v->n_pairs];
        if (v->n_pairs != 0 && p[-1].load == c->load && p[-1].store == c->store) {
            p[-1].n++;
            continue;
        }
        if (v->n_pairs == MAX_CLASH_PAIRS) return false;
        *p = (struct clash_pair){c->load, c->store, (uint16_t)i, 1, INT64_MIN};
        v->n_pairs++;
    }
    return true;
}

/* At most so many rows from the registers m on; none when they can't be run. */
static void variant_make(const struct tile_trace *c, const uint32_t *m, uint32_t rows, struct variant *v) {
    struct tile_fused_row rows_made[MAX_ROWS];
    struct tile_row_word words[3 * MAX_ROWS][4];
    struct clash clash[MAX_CLASHES];
    struct maker k = {.c = c, .m = m, .v = v};
    struct row row;
    *v = (struct variant){.clash = clash, .words = words};
    for (uint32_t r = 0; r < N_REGS; r++) k.now.m[r].reg = (uint8_t)r;
    uint32_t n_meetings = 0, n_clashes = 0; /* of whole rows */
    for (v->end = k.now; v->n_rows < rows && row_step(&k, &row); v->n_rows++) {
        rows_made[v->n_rows] = row_put(v, &row);
        v->end = k.now;
        n_meetings = v->n_meetings, n_clashes = v->n_clashes;
    }
    v->n_meetings = n_meetings, v->n_clashes = n_clashes;
    for (uint32_t r = 0; r < N_REGS; r++) {
        const struct symbol *s = &v->end.m[r];
        if (s->packed || s->reg != r || s->add != 0) v->changed |= 1u << r;
    }
    if (!clashes_order(v)) v->n_rows = 0;
    v->rows = g_memdup2(rows_made, v->n_rows * sizeof *v->rows);
    v->words = g_memdup2(words, v->n_words * sizeof *words);
    v->clash = g_memdup2(clash, v->n_clashes * sizeof *clash);
}

static struct variant *variant_get(struct tile_trace *c, const uint32_t *m) {
    for (uint32_t i = 0; i < c->n_variants; i++) {
        struct variant *v = &c->variant[i];
        bool same = true;
        for (uint32_t k = 0; k < v->n_keys; k++) same = same && m[v->key[k]] == v->value[k];
        if (same) return v;
    }
    struct variant *v = &c->variant[c->next_variant++ % MAX_VARIANTS];
    if (c->n_variants < MAX_VARIANTS) c->n_variants++;
    variant_clear(v);
    variant_make(c, m, MAX_ROWS, v);
    return v;
}

/* --- Running. --- */

static uint32_t start_address(const struct start *s, const uint32_t *m) {
    if (s->packed) return tile_packed_get(&m[s->reg], s->part);
    return (m[s->reg] + s->add) & TILE_ADDRESS_MASK;
}

static bool stream_fits(const struct tile_exec *e, struct tile_code_range code, const struct stream *s,
                        struct tile_range *v, bool *io_all_written) {
    if (s->added && (v->start + s->least < 0 || v->start + s->most > TILE_ADDRESS_MASK)) return false;
    if (!s->used) return true;
    v->first = v->start + s->low;
    v->end = v->start + s->high + 8;
    return (!s->second || v->first >= TARGET_REGION1_BASE) &&
           tile_range_ok(e, code, s->loads, s->stores, v, io_all_written);
}

static bool clashes(const struct variant *v, struct clash_pair *p, const struct tile_range *range) {
    const struct tile_range *load = &range[p->load], *store = &range[p->store];
    const int64_t distance = store->start - load->start;
    if (distance == p->apart || load->end <= store->first || store->end <= load->first) return false;
    uint32_t low = p->first, high = p->first + p->n; /* the first that is not less */
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (v->clash[middle].distance < distance) low = middle + 1;
        else high = middle;
    }
    if (low < (uint32_t)p->first + p->n && v->clash[low].distance == distance) return true;
    p->apart = distance;
    return false;
}

static bool run_fits(const struct tile_exec *e, const struct tile_trace *c, struct variant *v,
                     struct tile_range *range, bool *ret_all_written) {
    const struct tile_code_range code = {e->pc, e->pc + 8 * c->n};
    *ret_all_written = true;
    for (uint32_t i = 0; i < v->end.n_streams; i++) {
        range[i].start = start_address(&v->stream[i].start, e->m);
        if (!stream_fits(e, code, &v->stream[i], &range[i], ret_all_written)) return false;
    }
    for (uint32_t i = 0; i < v->n_meetings; i++) {
        const struct meeting *m = &v->meeting[i];
        if (!tile_ranges_apart(&range[m->a], &range[m->b], m->parities, true)) return false;
    }
    for (uint32_t i = 0; i < v->n_pairs; i++)
        if (clashes(v, &v->pair[i], range)) return false;
    return true;
}

/* Registers, repeat and program counter behind the rows of v. */
static void finish(struct tile_exec *e, const struct variant *v) {
    const struct position *p = &v->end;
    uint32_t m[N_REGS];
    memcpy(m, e->m, sizeof m);
    for (uint32_t left = v->changed; left != 0; left &= left - 1) {
        const uint32_t r = (uint32_t)__builtin_ctz(left);
        const struct symbol *s = &p->m[r];
        if (!s->packed) {
            e->m[r] = m[s->reg] + s->add;
            continue;
        }
        uint32_t address[3], pair[2];
        for (uint32_t i = 0; i < 3; i++)
            address[i] = start_address(&v->stream[s->reg + i].start, m) + (uint32_t)p->at[s->reg + i];
        tile_packed_set(pair, address);
        e->m[r] = pair[s->half];
    }
    e->w->defined |= p->writes;
    if (p->repeated) {
        e->w->repeat_first = e->pc + 8 * p->repeat_first;
        e->w->repeat_end = e->pc + 8 * p->repeat_end;
        e->w->repeat_count = p->repeat_count;
    }
    e->pc += 8 * p->slot;
}

bool tile_trace_is(const struct tile_trace *c, const uint8_t *memory) {
    return memcmp(memory, c->words, 8 * c->n) == 0;
}

uint32_t tile_trace_run(struct tile_exec *e, struct tile_trace *c, uint64_t most) {
    if (e->timing || !tile_all_written(e->t, e->pc, 8 * c->n) || !tile_fused_ready(e, c->weights))
        return 0;
    struct variant *v = variant_get(c, e->m);
    struct tile_range range[MAX_STREAMS];
    struct tile_fused_run r;
    bool all_written;
    if (v->n_rows < MIN_ROWS || v->n_rows == MAX_ROWS || v->end.n_slots > most || (v->end.reads & ~e->w->defined) ||
        !run_fits(e, c, v, range, &all_written))
        return 0;
    const enum tile_fused_type type = tile_fused_prepare(e, c->f8, &c->f143_base, &r);
    r.rows = v->rows;
    r.row_words = v->words;
    r.row_x = c->x, r.row_partial = c->partial;
    r.row_result[0] = c->result[0], r.row_result[1] = c->result[1];
    r.written = all_written ? NULL : e->t->written;
    for (uint32_t i = 0; i < v->end.n_streams; i++)
        r.pointer[i] = r.memory + (range[i].start - TARGET_SRAM_BASE);
    const uint32_t done = e->vec->rows[type](&r, v->n_rows);
    if (done == 0) return 0;
    memcpy(e->a, r.pairs, 32);
    if (done == v->n_rows) {
        finish(e, v);
        return v->end.n_slots;
    }
    struct variant part;
    variant_make(c, e->m, done, &part);
    finish(e, &part);
    const uint32_t slots = part.end.n_slots;
    variant_clear(&part);
    return slots;
}
