/* Every form of the instruction table against a second definition (tests/oracle): random and edge
 * values in all registers, accumulators, weights and control registers, random operands, alone and in
 * bundles with a random partner; the whole state of the worker is compared after every slot. A form
 * that was never executed, or that the oracle does not know, fails the test by name.
 *
 * Instructions of the supervisor are tested one by one below. IPU_SEED=N draws other states and operands,
 * IPU_ROUNDS=N that many times as many slots of each form. */
#include "../oracle/oracle_float.h"
#include "../oracle/oracle_int.h"
#include "../oracle/oracle_make.h"
#include "../oracle/oracle_memory.h"
#include "../oracle/oracle_unit.h"
#include "tile_build.h"

static struct build b;
static uint64_t other_seed, rounds = 1;
static uint32_t n_executed[ISA_N_OPS];

static uint8_t shadow[SPAN];

/* --- Executing. --- */

static uint32_t word_for(const struct step *x, enum isa_op op, struct isa_insn *ret) {
    uint32_t words[2];
    *ret = (struct isa_insn){.op = (uint16_t)op, .n_words = 1};
    for (uint32_t k = 0; k < x->f->n_operands; k++) isa_operand_set(ret, k, x->v[k]);
    isa_encode(ret, words);
    return words[0];
}

static void tile_from(const struct oracle *s) {
    struct tile *t = &b.tile;
    tile_reset(t);
    struct tile_worker *w = &t->w[0];
    memcpy(w->m, s->m, 48);
    memcpy(w->a, s->a, 32);
    w->defined = w->acc_defined = UINT32_MAX;
    w->prng_defined = 15;
    memcpy(w->prng, s->prng, 16);
    for (uint32_t k = 0; k < 32; k++)
        memcpy((k % 2 ? w->acc.odd : w->acc.even) + k / 2, &s->aacc[k], 4);
    memcpy(t->weights, s->cwei, sizeof s->cwei);
    t->weights_defined = UINT64_MAX;
    t->weights_generation++;
    t->s.fp_ictl = s->ctl;
    t->s.fp_infmt = s->nfmt;
    t->s.fp_iscl = s->scl;
    t->s.ssr = 1;
    t->worker_base[0] = s->m[12];
    for (uint32_t k = 0; k < 32; k++) w->acc_raw |= s->aacc[k] != bits_of(flushed(f32_of(s->aacc[k])));
    w->tas = s->tas;
    w->tas_defined = true;
    w->dbg_data = s->dbg_data;
    tile_start_workers(t, s->pc, s->m[13], 1, 0);
    w->fp_sts = s->sts;
}

static bool near(uint32_t got, uint32_t want, bool loose, bool half) {
    if (got == want || !loose) return got == want;
    if (!half) return llabs((int64_t)got - (int64_t)want) <= 1;
    return abs((int)(got & 0xffff) - (int)(want & 0xffff)) <= 1 && abs((int)(got >> 16) - (int)(want >> 16)) <= 1;
}
#define SAME(got, want) g_assert_cmphex(got, ==, want)
static struct oracle before; /* what the latest slot started from */
static void compare(const struct oracle *s, const char *what, bool half) {
    const struct tile *t = &b.tile;
    const struct tile_worker *w = &t->w[0];
    bool equal = w->fp_sts == s->sts && w->pc == s->npc && memcmp(w->m, s->m, 48) == 0;
    for (uint32_t r = 0; r < 8; r++) equal = equal && near(w->a[r], s->a[r], s->loose, half);
    for (uint32_t k = 0; k < 32; k++)
        equal = equal && bits_of((k % 2 ? w->acc.odd : w->acc.even)[k / 2]) == s->aacc[k];
    if (!equal || t->fault.number)
        g_test_message("%s; seed %" G_GUINT64_FORMAT ", fault %u, control %08x", what, seed, t->fault.number, s->ctl);
    for (uint32_t r = 0; r < 8 && !equal; r++)
        g_test_message("$a%u was %08x, is %08x, should be %08x", r, before.a[r], w->a[r], s->a[r]);
    g_assert_cmpint(t->fault.number, ==, TILE_FAULT_NONE);
    for (uint32_t r = 0; r < 12; r++) SAME(w->m[r], s->m[r]);
    for (uint32_t r = 0; r < 8; r++)
        if (!near(w->a[r], s->a[r], s->loose, half)) SAME(w->a[r], s->a[r]);
    for (uint32_t k = 0; k < 32; k++) SAME(bits_of((k % 2 ? w->acc.odd : w->acc.even)[k / 2]), s->aacc[k]);
    SAME(w->fp_sts, s->sts);
    SAME(w->fp_ctl, s->ctl);
    SAME(w->fp_nfmt, s->nfmt);
    SAME(w->fp_scl, s->scl);
    SAME(w->tas, s->tas);
    SAME(w->prng[0], s->prng[0]);
    SAME(w->prng[1], s->prng[1]);
    SAME(w->pc, s->npc);
    SAME(w->repeat_count, s->count);
    SAME(w->repeat_first, s->first);
    SAME(w->repeat_end, s->end);
    SAME(w->dbg_data, s->dbg_data);
    SAME(w->dbg_brk_id, s->dbg_brk_id);
    g_assert_cmpuint(w->slots, ==, s->slots);
    g_assert_cmpint(w->active, ==, !s->exited);
    if (s->exited) g_assert_cmpint(t->s.ssr & 1, ==, s->boolean);
    for (uint32_t r = 8; r < 16; r++) SAME(w->a[r], 0);
    if (s->store_bytes == 0) return;
    memcpy(shadow + (s->store_at - LOW), s->store, s->store_bytes);
    g_assert_cmpmem(sram_at(b.sram, 0, s->store_at), s->store_bytes, s->store, s->store_bytes);
}

/* --- One slot: an instruction, maybe with a partner. --- */

static bool oracle_step(struct oracle *s, const struct step *x) {
    s->slots = slots_of(s, x);
    if (x->f->kind == ISA_KIND_CONTROL || x->f->kind == ISA_KIND_SYSTEM) return oracle_control(s, x);
    return oracle_memory(s, x) || oracle_int(s, x) || oracle_unit(s, x) || oracle_float(s, x);
}
/* Both read the old state; their destinations differ. */
static void bundle_step(struct oracle *s, const struct step *main, const struct step *aux) {
    struct oracle m = *s, a = *s;
    oracle_step(&m, main);
    oracle_step(&a, aux);
    const struct oracle old = *s;
    *s = a;
    memcpy(s->m, m.m, sizeof s->m);
    for (uint32_t r = 0; r < 8; r++)
        if (m.a[r] != old.a[r]) s->a[r] = m.a[r];
    s->npc = m.npc;
    s->count = m.count, s->first = m.first, s->end = m.end;
    s->store_at = m.store_at, s->store_bytes = m.store_bytes;
    memcpy(s->store, m.store, 8);
    s->dbg_data = m.dbg_data, s->dbg_brk_id = m.dbg_brk_id;
}

static struct step step_of(enum isa_op op) {
    struct step x = {.f = isa_form(op), .name = isa_form(op)->mnemonic};
    operands_make(&x);
    return x;
}
static bool is_worker_op(enum isa_op op) {
    return (isa_form(op)->who & ISA_MODE_W) != 0 && op != ISA_OP_TRAP && op != ISA_OP_F32SISOV2SLIC;
}
/* A partner of the other pipeline. */
static enum isa_op partner(enum isa_op op) {
    for (;;) {
        const enum isa_op other = (enum isa_op)below(ISA_N_OPS);
        const struct isa_form *f = isa_form(other);
        if (is_worker_op(other) && f->pipe == (isa_form(op)->pipe == ISA_MAIN ? ISA_AUX : ISA_MAIN)) return other;
    }
}

static bool try_slot(enum isa_op op, bool bundled) {
    struct oracle s;
    struct isa_insn one, two = {0};
    state_make(&s);
    s.pc = CODE;
    struct step x = step_of(op), y;
    uint32_t words[2], n = 1;
    if (!addresses_make(&s, &x)) return false;
    value_make(&s, &x);
    words[0] = word_for(&x, op, &one);
    if (bundled) {
        const enum isa_op other = partner(op);
        y = step_of(other);
        const bool first = x.f->pipe == ISA_MAIN;
        if (!first && !addresses_make(&s, &y)) return false;
        value_make(&s, &y);
        words[1] = word_for(&y, other, &two);
        if (isa_bundle_check(first ? &one : &two, first ? &two : &one) != ISA_BUNDLE_OK) return false;
        if (!first) words[1] = words[0], words[0] = word_for(&y, other, &two);
        words[0] |= 0x80000000, words[1] |= 0x80000000;
        n = 2;
    } else {
        s.pc = CODE + 4; /* the body of a lone repeat begins at a multiple of 8 */
    }
    s.npc = s.pc + 4 * n;
    memcpy(sram_at(b.sram, 0, s.pc), words, 4 * n);
    sram_mark_written(b.sram, 0, s.pc, 4 * n);
    before = s;
    tile_from(&s);
    char what[120];
    g_snprintf(what, sizeof what, "%s%s%s (%08x %08x)", x.f->id, bundled ? " with " : "", bundled ? y.f->id : "", words[0],
               bundled ? words[1] : 0);
    if (!bundled) {
        const bool known = oracle_step(&s, &x);
        if (!known) g_test_message("the oracle does not know %s", x.f->id);
        g_assert_true(known);
    } else {
        bundle_step(&s, x.f->pipe == ISA_MAIN ? &x : &y, x.f->pipe == ISA_MAIN ? &y : &x);
    }
    tile_run(&b.tile, 6);
    const uint32_t stops = s.sts & before.ctl & 7; /* the first of INV, DIV0, OFLO counts */
    if (stops != 0) {
        g_assert_cmpint(b.tile.fault.number, ==, stops & 1   ? TILE_FAULT_FP_INVALID
                                                 : stops & 2 ? TILE_FAULT_FP_DIV0
                                                             : TILE_FAULT_FP_OVERFLOW);
        SAME(b.tile.fault.pc, s.pc);
        SAME(tile_context_status(&b.tile, 1) >> 4 & 15, 5);
        return true;
    }
    compare(&s, what, starts(&x, "f16") || (bundled && starts(&y, "f16")));
    return true;
}

static void data_make(void) {
    memory = sram_at(b.sram, 0, LOW);
    for (uint32_t k = 0; k < SPAN; k += 8) {
        const uint64_t v = any();
        memcpy(shadow + k, &v, 8);
    }
    memcpy(sram_at(b.sram, 0, LOW), shadow, SPAN);
    sram_mark_written(b.sram, 0, LOW, SPAN);
}

static bool ends_with(enum isa_op op, const char *what) { return g_str_has_suffix(isa_form(op)->mnemonic, what); }
/* `times` slots of every form that a worker executes; model B: of the matrix unit's. */
static void run_all(const struct tile_config *c, uint64_t with_seed, uint32_t times) {
    seed = with_seed + 1000 * other_seed;
    draws = 0;
    window = c->amp_model == TILE_AMP_WINDOW;
    build_init(&b, *c);
    data_make();
    for (uint32_t op = 0; op < ISA_N_OPS; op++) {
        if (!is_worker_op(op)) continue;
        if (window && !ends_with((enum isa_op)op, "amp") && !ends_with((enum isa_op)op, "slic")) continue;
        const bool alone = isa_form(op)->pipe == ISA_SOLO;
        for (uint32_t k = 0; k < times * rounds; k++)
            n_executed[op] += try_slot(op, !alone && k % 3 == 2);
        g_assert_cmpmem(sram_at(b.sram, 0, LOW), SPAN, shadow, SPAN);
    }
    build_free(&b);
}

static void test_worker(void) {
    for (uint32_t simd = TILE_SIMD_SCALAR; simd <= (uint32_t)tile_simd_best(); simd++)
        run_all(&(struct tile_config){.simd = (enum tile_simd)simd}, 20 + simd, 300);
}
static void test_window(void) {
    run_all(&(struct tile_config){.amp_model = TILE_AMP_WINDOW}, 51, 400);
    window = false;
}

/* --- What counts as defined. --- */

/* A lone instruction in a random state with everything defined. */
static void lone_make(struct oracle *s, struct step *x, enum isa_op op) {
    struct isa_insn insn;
    do {
        state_make(s);
        s->ctl &= ~7u;
        *x = step_of(op);
    } while (!addresses_make(s, x));
    value_make(s, x);
    s->pc = CODE + 4;
    s->npc = CODE + 8;
    put32(&b, s->pc, word_for(x, op, &insn));
    tile_from(s);
}
static void registers_of(const struct step *x, uint32_t *reads, uint32_t *writes) {
    *reads = *writes = 0;
    for (uint32_t k = 0; k < x->f->n_operands; k++) {
        const struct isa_class_info *c = class_of(x, k);
        const bool write = isa_roles[x->f->operand[k].role].write, m = c->file == 'M';
        if (!c->reg) continue;
        uint32_t bits = (((1u << c->n) - 1) << x->v[k]) & (m ? 0xfff : 0xff);
        if (!m) bits <<= 16;
        if (!write || c->both) *reads |= bits;
        if (named(x, "ld64a32") && k == 0 && x->v[0] < 8) bits &= ~(0x10000u << x->v[0]); /* stays */
        if (write || c->both) *writes |= bits;
    }
}
/* Every register that is read must have been written, and those alone; what is written counts. */
static void test_defined_registers(void) {
    build_init(&b, (struct tile_config){0});
    seed = 71 + 1000 * other_seed;
    data_make();
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        for (uint32_t k = 0; is_worker_op((enum isa_op)op) && k < 20; k++) {
            struct oracle s;
            struct step x;
            uint32_t reads, writes, undefined = 0;
            lone_make(&s, &x, (enum isa_op)op);
            registers_of(&x, &reads, &writes);
            while (k % 2 && reads != 0 && undefined == 0) undefined = reads & 1u << below(28);
            b.tile.w[0].defined = reads & ~undefined;
            tile_run(&b.tile, 6);
            if (undefined != 0) {
                if (b.tile.fault.number != TILE_FAULT_READ_UNDEFINED) g_test_message("%s", x.f->id);
                g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_READ_UNDEFINED);
                g_assert_cmphex(1u << b.tile.fault.value, ==, undefined);
                continue;
            }
            if (b.tile.fault.number || b.tile.w[0].defined != (reads | writes)) g_test_message("%s", x.f->id);
            g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_NONE);
            SAME(b.tile.w[0].defined, reads | writes);
        }
    build_free(&b);
}
/* Instructions that move accumulators: what comes from an undefined one is undefined, all else is not. */
static void test_defined_accumulators(void) {
    static const enum isa_op ops[] = {ISA_OP_F32V2GINA, ISA_OP_F16V2GINA, ISA_OP_F16V4ISTACC, ISA_OP_F16V4STACC,
                                      ISA_OP_F16V4MIX, ISA_OP_F32V2AXPY};
    build_init(&b, (struct tile_config){0});
    seed = 72 + 1000 * other_seed;
    for (uint32_t o = 0; o < ARRAY_LEN(ops); o++)
        for (uint32_t n = 0; n < 256; n++) {
            struct oracle s;
            struct step x;
            const uint32_t k = n % 32; /* AACC[k] is undefined */
            lone_make(&s, &x, ops[o]);
            struct oracle other = s;
            other.aacc[k] ^= 0x00012345;
            oracle_step(&s, &x);
            oracle_step(&other, &x);
            b.tile.w[0].acc_defined = ~(1u << (k / 2 + (k % 2 ? 16 : 0)));
            tile_run(&b.tile, 6);
            uint32_t want = 0;
            for (uint32_t j = 0; j < 32; j++)
                if (s.aacc[j] == other.aacc[j]) want |= 1u << (j / 2 + (j % 2 ? 16 : 0));
            if (b.tile.w[0].acc_defined != want) g_test_message("%s, AACC[%u]", x.f->id, k);
            g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_NONE);
            SAME(b.tile.w[0].acc_defined, want);
        }
    build_free(&b);
}

/* --- Accesses that can't be made, by form (isa 1.10, 3.5, 3.6, 6). --- */

/* The instruction of lone_make with one register changed; the number of its fault. */
static enum tile_fault_number with_m(const struct oracle *s, int64_t r, uint32_t v) {
    tile_from(s);
    b.tile.w[0].m[r] = v;
    tile_run(&b.tile, 6);
    return b.tile.fault.number;
}
static void plain_faults(const struct oracle *s, const struct step *x) {
    const uint32_t bytes = x->f->access[0].bytes;
    const int64_t r = x->v[1] < 12 ? x->v[1] : x->v[2];
    const uint32_t v = s->m[r];
    g_assert_cmpint(with_m(s, r, v), ==, TILE_FAULT_NONE);
    for (uint32_t k = 1; k < bytes; k++) g_assert_cmpint(with_m(s, r, v + k), ==, TILE_FAULT_ADDRESS_MISALIGNED);
    g_assert_cmpint(with_m(s, r, v - 0x60000), ==, v >= 0x60000 ? TILE_FAULT_ADDRESS_RANGE : TILE_FAULT_ADDRESS_CARRY);
    g_assert_cmpint(with_m(s, r, v + 0x60000), ==, TILE_FAULT_ADDRESS_RANGE);
    g_assert_cmpint(with_m(s, r, v + 0x200000), ==, TILE_FAULT_ADDRESS_CARRY);
    if (bytes == 16 && v >= 0x20000)
        g_assert_cmpint(with_m(s, r, v - 0x20000), ==, TILE_FAULT_ADDRESS_REGION);
}
static void table_faults(const struct oracle *s, const struct step *x) {
    const bool pair = named(x, "ldb16b16"), single = starts(x, "stm");
    const int64_t table = x->v[1], base = x->v[2], delta = x->v[3];
    g_assert_cmpint(with_m(s, table, s->m[table] + 1), ==, TILE_FAULT_ADDRESS_MISALIGNED);
    g_assert_cmpint(with_m(s, table, s->m[table] + 0x60000), ==, TILE_FAULT_ADDRESS_RANGE);
    if (single) return;
    if (pair) { /* both halves in one memory element */
        const uint32_t d = s->m[base];
        g_assert_cmpint(with_m(s, base, (d & 0xffff) * 0x10001 + 0x100000), ==, TILE_FAULT_ELEMENT_CONFLICT);
        return;
    }
    const uint32_t d = named(x, "ldd16v2a32") ? s->m[delta] >> 16 : s->m[delta] & 0xffff;
    g_assert_cmpint(with_m(s, base, s->m[base] + 1), ==, TILE_FAULT_ADDRESS_MISALIGNED);
    g_assert_cmpint(with_m(s, base, s->m[table] - d), ==, TILE_FAULT_ELEMENT_CONFLICT);
}
static enum tile_fault_number with_field(const struct oracle *s, int64_t r, uint32_t k, uint32_t at) {
    struct oracle changed = *s;
    put_field(&changed, r, k, at);
    tile_from(&changed);
    tile_run(&b.tile, 6);
    return b.tile.fault.number;
}
static void pace_faults(const struct oracle *s, const struct step *x) {
    static const struct { const char *name; uint32_t used, bytes[3]; } ops[] = {
        {"ld2x64pace", 3, {8, 8, 0}}, {"ld64a32pace", 3, {8, 4, 0}}, {"ld64b16pace", 3, {8, 2, 0}},
        {"ldst64pace", 5, {8, 0, 8}}, {"ld2xst64pace", 7, {8, 8, 8}}, {"st64pace", 4, {0, 0, 8}}};
    const int64_t r = x->v[x->f->n_operands - 3];
    uint32_t a[3], o = 0;
    while (!named(x, ops[o].name)) o++;
    unpack(s, r, a);
    for (uint32_t k = 0; k < 3; k++) {
        const bool used = ops[o].used >> k & 1;
        g_assert_cmpint(with_field(s, r, k, a[k] + 1), ==, used ? TILE_FAULT_ADDRESS_MISALIGNED : TILE_FAULT_NONE);
        g_assert_cmpint(with_field(s, r, k, 0x1ffff8), ==, used ? TILE_FAULT_ADDRESS_RANGE : TILE_FAULT_NONE);
        for (uint32_t j = 0; used && j < k; j++) {
            if ((ops[o].used >> j & 1) == 0) continue;
            g_assert_cmpint(with_field(s, r, k, (a[j] & ~15u) + (a[j] & 8)), ==, TILE_FAULT_ELEMENT_CONFLICT);
            g_assert_cmpint(with_field(s, r, k, (a[j] & ~15u) + (~a[j] & 8)), ==, TILE_FAULT_NONE);
        }
    }
    if (ops[o].used & 2) g_assert_cmpint(with_field(s, r, 1, 0x60000), ==, TILE_FAULT_ADDRESS_EXECUTABLE);
}
static void test_access_faults(void) {
    build_init(&b, (struct tile_config){0});
    seed = 81 + 1000 * other_seed;
    data_make();
    for (uint32_t k = 0; k < 64; k += 4) put32(&b, 0x60000 + k, 0);
    sram_mark_written(b.sram, 0, LOW, SPAN);
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        for (uint32_t n = 0; isa_form((enum isa_op)op)->kind == ISA_KIND_MEM && n < 10; n++) {
            struct oracle s;
            struct step x;
            lone_make(&s, &x, (enum isa_op)op);
            if (ends(&x, "pace")) pace_faults(&s, &x);
            else if (starts(&x, "stm") || starts(&x, "ldd") || named(&x, "ld64a32") || named(&x, "ldb16b16")) table_faults(&s, &x);
            else plain_faults(&s, &x);
        }
    build_free(&b);
}

/* --- The supervisor: what it shares with workers, and its own instructions. --- */

static bool supervisor_op(enum isa_op op) {
    const struct isa_form *f = isa_form(op);
    return (f->who & ISA_MODE_S) != 0 && (f->who & ISA_MODE_W) != 0 && op != ISA_OP_TRAP && f->kind != ISA_KIND_SYSTEM;
}
static uint32_t cost_of(const struct step *x, bool taken) {
    if (x->f->kind == ISA_KIND_MEM && x->name[0] == 's') return 2;
    return taken ? 5 : 1;
}
static void super_start(uint32_t pc) {
    tile_start(&b.tile, pc, 0);
    b.tile.s.defined = UINT32_MAX;
}
static bool try_supervisor(enum isa_op op) {
    struct oracle s;
    struct isa_insn insn;
    struct step x = step_of(op);
    state_make(&s);
    s.pc = CODE;
    s.m[12] = s.m[13] = 0; /* the aliases are the workers' */
    if (!addresses_make(&s, &x)) return false;
    const uint32_t word = word_for(&x, op, &insn);
    put32(&b, CODE, word);
    tile_reset(&b.tile);
    memcpy(b.tile.s.m, s.m, 48);
    super_start(CODE);
    s.npc = CODE + 4;
    g_assert_true(oracle_step(&s, &x));
    tile_run(&b.tile, 1);
    const struct tile_fault *f = &b.tile.fault; /* the target of a jump need not exist */
    const bool fetch = x.f->kind == ISA_KIND_CONTROL && f->pc == s.npc &&
                       (f->number == TILE_FAULT_PC_RANGE || f->number == TILE_FAULT_PC_MISALIGNED);
    if (f->number && !fetch) g_test_message("%s faults with %u", x.f->id, f->number);
    g_assert_true(fetch || f->number == TILE_FAULT_NONE);
    g_assert_cmpmem(b.tile.s.m, 48, s.m, 48);
    SAME(b.tile.s.pc, s.npc);
    const bool branch = x.f->kind == ISA_KIND_CONTROL, falls = s.npc == CODE + 4;
    if (!branch || !falls) g_assert_cmpuint(b.tile.s.ready_cycle, ==, cost_of(&x, branch));
    if (s.store_bytes == 0) return true;
    memcpy(shadow + (s.store_at - LOW), s.store, s.store_bytes);
    g_assert_cmpmem(sram_at(b.sram, 0, s.store_at), s.store_bytes, s.store, s.store_bytes);
    return true;
}
static void test_supervisor(void) {
    seed = 31 + 1000 * other_seed;
    build_init(&b, (struct tile_config){0});
    data_make();
    for (uint32_t op = 0; op < ISA_N_OPS; op++)
        for (uint32_t k = 0; supervisor_op((enum isa_op)op) && k < 200; k++) try_supervisor((enum isa_op)op);
    g_assert_cmpmem(sram_at(b.sram, 0, LOW), SPAN, shadow, SPAN);
    build_free(&b);
}

/* Runs lone supervisor instructions from CODE on with $m as given. */
static void super_run(const uint32_t *words, uint32_t n, const uint32_t m[12], uint64_t cycles) {
    for (uint32_t k = 0; k < n; k++) put32(&b, CODE + 4 * k, words[k]);
    memcpy(b.tile.s.m, m, 48);
    super_start(CODE);
    tile_run(&b.tile, cycles);
    for (uint32_t k = 0; k < n; k++) {
        struct isa_insn i;
        g_assert_true(isa_decode(words[k], 0, &i));
        n_executed[i.op]++;
    }
}

/* Fields that exist, by the sheet (isa 2.4): what is written and comes back. */
static const struct { uint32_t index, mask; } SUPER_CSRS[] = {
    {0x20, 0x1f0007}, {0x21, 0x1fffff}, {0x22, 0x1fffff}, {0x23, 0x1fffff}, {0x24, 0x1fffff}, {0x25, 0x1fffff},
    {0x26, 0x1fffff}, {0x31, 3}, {0x33, 0x3f}, {0x50, 0x1fffff}, {0x70, UINT32_MAX}, {0x71, 1}, {0xa0, 0x7ff},
    {0xa1, 0x7ff}, {0xa2, 0x1ffffc}, {0xa3, 3}, {0xa4, 0x1ffffc}, {0xa5, 0x1fffff}, {0xa6, 0x1ffff},
    /* debug: all bits that do not arm a break */
    {0x73, 3}, {0x74, 0x0f}, {0x75, 0}, {0x80, 4}, {0x81, 0x7fffc}, {0x82, 0x7fffc}, {0x90, 0x7f},
    {0x91, 0x1fffff}, {0x92, UINT32_MAX}, {0xa7, 0x1ffffc}, {0xa8, 0x1fffff}, {0xa9, 0x1f}, {0xaa, 0x7ffff}, {0xab, 0x1f}};

static void test_super_csrs(void) {
    build_init(&b, (struct tile_config){0});
    for (uint32_t k = 0; k < ARRAY_LEN(SUPER_CSRS); k++)
        for (uint32_t v = 0; v < 4; v++) {
            uint32_t in = v == 0 ? 0 : v == 1 ? UINT32_MAX : (uint32_t)any();
            const uint32_t index = SUPER_CSRS[k].index;
            if (index == 0x20) in &= ~0x40000u; /* RND: modes that exist */
            if (index == 0x74 || index == 0x80 || index == 0x90) in &= SUPER_CSRS[k].mask;
            const uint32_t m[12] = {in};
            const uint32_t code[3] = {W(PUT, (int)index, 0), W(GET, 1, (int)index), W(TRAP, 0)};
            tile_reset(&b.tile);
            super_run(code, 3, m, 1000);
            g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_TRAP);
            SAME(b.tile.s.m[1], m[0] & SUPER_CSRS[k].mask);
            const bool exchange = index >= 0xa0;
            g_assert_cmpuint(b.tile.stop.cycle, ==, (exchange ? 13 : 8) + 1);
        }
    build_free(&b);
}

/* Which context may read and write which register, over all numbers (isa 2.4). */
enum { READS = 1, WRITES = 2 };
static uint32_t may(char space, uint32_t k) {
    switch (space) {
    case 'u': return k == 0 ? READS : k <= 10 ? READS | WRITES : 0;
    case 'w': return k == 0x70 || k == 0x71 ? READS | WRITES : k <= 6 || k == 0x60 || k == 0x61 ? READS : 0;
    default:
        if (k == 0 || k == 1 || k == 3 || k == 0x60 || k == 0x61 || k == 0x72) return READS;
        if (k == 2 || (k >= 0x20 && k <= 0x26) || k == 0x31 || k == 0x33 || k == 0x50) return READS | WRITES;
        if ((k >= 0x70 && k <= 0x75) || (k >= 0x80 && k <= 0x82) || (k >= 0x90 && k <= 0x92)) return READS | WRITES;
        return k >= 0xa0 && k <= 0xab ? READS | WRITES : 0;
    }
}
static enum tile_fault_number csr_access(char space, uint32_t k, bool write) {
    const uint32_t word = space == 'u' ? (write ? W(UPUT, (int)k, 15) : W(UGET, 0, (int)k))
                                       : (write ? W(PUT, (int)k, 15) : W(GET, 0, (int)k));
    put32(&b, CODE, word);
    put32(&b, CODE + 4, space == 's' ? W(BRI, 0) : W(EXITZ, 15));
    tile_reset(&b.tile);
    b.tile.w[0].tas_defined = true;
    if (space == 's') run_super(&b);
    else run_worker(&b);
    return b.tile.fault.number;
}
static void test_csr_access(void) {
    build_init(&b, (struct tile_config){0});
    for (const char *space = "uws"; *space != 0; space++)
        for (uint32_t k = 0; k < 256; k++) {
            const uint32_t allowed = may(*space, k);
            g_assert_cmpint(csr_access(*space, k, false), ==, allowed & READS ? TILE_FAULT_NONE : TILE_FAULT_CSR_INVALID);
            const enum tile_fault_number refused = *space == 's' && k == 0xff ? TILE_FAULT_TRAP /* strap */
                                                   : allowed                  ? TILE_FAULT_CSR_READ_ONLY
                                                                              : TILE_FAULT_CSR_INVALID;
            g_assert_cmpint(csr_access(*space, k, true), ==, allowed & WRITES ? TILE_FAULT_NONE : refused);
        }
    build_free(&b);
}

/* $CR acts on the local consensus; status, number of the tile, counter. */
static void test_super_status(void) {
    build_init(&b, (struct tile_config){0});
    const uint32_t m[12] = {2, 1};
    const uint32_t code[] = {W(PUT, 2, 0), W(GET, 2, 1), W(PUT, 2, 1), W(GET, 3, 1), W(GET, 4, 3), W(GET, 5, 0x60),
                             W(GET, 6, 0x61), W(GET, 7, 0x72), W(GET, 8, 0), W(GET, 9, 2), W(TRAP, 0)};
    super_run(code, ARRAY_LEN(code), m, 1000);
    const uint32_t want[8] = {1, 0, target_ptile((struct ltile){0}).n, 8 + 1 + 8 + 1 + 1, 0, 1, CODE + 32, 0};
    g_assert_cmpmem(b.tile.s.m + 2, 32, want, 32);
    build_free(&b);
}

/* ld64putcs, ld128putcs, $CCCSLOAD; $CR clears. */
static void test_weights(void) {
    build_init(&b, (struct tile_config){0});
    seed = 41 + 1000 * other_seed;
    data_make();
    for (uint32_t k = 0; k < 64; k++) {
        const uint32_t at = LOW + 16 * below(64), m[12] = {at, 4};
        const uint32_t code[] = {W(PUT, 0x50, 0), W(LD64PUTCS, (int)k), W(LD128PUTCS, (int)(k ^ 1) & 62), W(GET, 2, 0x50), W(TRAP, 1)};
        tile_reset(&b.tile);
        super_run(code, 2, m, 9);
        uint64_t want[4];
        memcpy(want, shadow + (at - LOW), 32);
        SAME(b.tile.weights[k], want[0]);
        g_assert_cmphex(b.tile.weights_defined, ==, UINT64_C(1) << k);
        tile_reset(&b.tile);
        const uint32_t wide[] = {code[0], code[2], code[3], W(PUT, 2, 1), W(TRAP, 1)};
        super_run(wide, 3, m, 10);
        const uint32_t pair = (k ^ 1) & 62;
        SAME(b.tile.weights[pair], want[0]);
        SAME(b.tile.weights[pair + 1], want[1]);
        SAME(b.tile.s.m[2], at + 16);
        tile_reset(&b.tile);
        super_run(wide, 5, m, 100);
        g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_TRAP);
        SAME(b.tile.weights[pair + 1], 0);
        g_assert_cmphex(b.tile.weights_defined, ==, UINT64_MAX);
    }
    build_free(&b);
}

/* run: the lowest free worker, base relative to the memory; runall: all six, absolute (isa 1.5). */
static void test_launches(void) {
    build_init(&b, (struct tile_config){0});
    enum { ENTRY = CODE + 0x200 };
    put32(&b, ENTRY, W(EXITZ, 15));
    const uint32_t m[12] = {ENTRY, 0x20000, 0x60000};
    const uint32_t one[] = {W(RUN, 0, 1, 0x40), W(RUN, 0, 1, 0x80)};
    super_run(one, 2, m, 2);
    for (uint32_t w = 0; w < 6; w++) g_assert_cmpint(b.tile.w[w].active, ==, w < 2);
    SAME(b.tile.w[0].m[13], 0x20000 + 0x4c000 + 0x40);
    SAME(b.tile.w[1].m[13], 0x20000 + 0x4c000 + 0x80);
    tile_reset(&b.tile);
    const uint32_t all[] = {W(RUNALL, 0, 2, 0x40), W(SYNC, 2), W(TRAP, 0)};
    super_run(all, 3, m, 1000);
    for (uint32_t w = 0; w < 6; w++) SAME(b.tile.w[w].m[13], 0x60000 + w * 0x40);
    /* lane w at or after 7: lanes 1..5, 0 at 7..12, in which they also exit; 14 cycles to join */
    g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_TRAP);
    g_assert_cmpuint(b.tile.stop.cycle, ==, 12 + 14);
    build_free(&b);
}

static void test_waits(void) {
    build_init(&b, (struct tile_config){.standalone = true});
    const uint32_t m[12] = {0};
    const uint32_t delays[] = {1, 2, 17, 0x80000};
    for (uint32_t k = 0; k < 4; k++) {
        const uint32_t code[] = {W(DELAY, (int)delays[k]), W(TRAP, 0)};
        tile_reset(&b.tile);
        super_run(code, 2, m, 1 << 20);
        g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_TRAP);
        g_assert_cmpuint(b.tile.stop.cycle, ==, delays[k]);
    }
    build_free(&b);
    build_init(&b, (struct tile_config){0});
    const uint32_t code[] = {W(SANS, 1), W(SYNC, 1), W(TRAP, 15)};
    tile_reset(&b.tile);
    super_run(code, 3, m, 100);
    g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_SYNC);
    g_assert_true(b.tile.stop.zone == 1 && b.tile.stop.sans == 1 && b.tile.stop.cycle == 1);
    tile_release_sync(&b.tile, 50);
    tile_run(&b.tile, 100);
    g_assert_true(b.tile.stop.reason == TILE_STOP_TRAP && b.tile.stop.zone == 15 && b.tile.stop.cycle == 50);
    SAME(tile_context_status(&b.tile, 0) >> 4 & 15, 3); /* PBRK1 */
    build_free(&b);
}

/* Without a fabric they are refused; a device gets to see them before they execute. */
static void test_exchange_words(void) {
    for (uint32_t device = 0; device < 2; device++) {
        build_init(&b, (struct tile_config){.standalone = device == 0});
        for (uint32_t op = 0; op < ISA_N_OPS; op++) {
            if (isa_form((enum isa_op)op)->kind != ISA_KIND_EXCH) continue;
            struct isa_insn i = {.op = (uint16_t)op, .n_words = isa_form((enum isa_op)op)->n_words, .imm2 = 1};
            uint32_t words[2] = {0};
            isa_encode(&i, words);
            put32(&b, CODE, words[0]);
            put32(&b, CODE + 4, words[1]);
            tile_reset(&b.tile);
            super_start(CODE);
            tile_run(&b.tile, 10);
            if (device) g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_ROW);
            else g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_ROW_WITHOUT_FABRIC);
            n_executed[op]++;
        }
        build_free(&b);
    }
}

/* What a worker stops at: trap, and the one instruction whose meaning is not public. */
static void test_stops(void) {
    const struct { uint32_t word; enum isa_op op; enum tile_fault_number fault; uint32_t etype; } stops[] = {
        {W(TRAP, 0), ISA_OP_TRAP, TILE_FAULT_TRAP, 2},
        {W(TRAP, 1), ISA_OP_TRAP, TILE_FAULT_TRAP, 3},
        {W(F32SISOV2SLIC, 0, 2, 4, 0), ISA_OP_F32SISOV2SLIC, TILE_FAULT_NOT_PUBLIC, 12}};
    build_init(&b, (struct tile_config){0});
    for (uint32_t k = 0; k < ARRAY_LEN(stops); k++) {
        put32(&b, CODE, stops[k].word);
        tile_reset(&b.tile);
        b.tile.w[0].defined = UINT32_MAX;
        g_assert_cmpint(run_worker(&b), ==, TILE_STOP_FAULT);
        g_assert_cmpint(b.tile.fault.number, ==, stops[k].fault);
        SAME(tile_context_status(&b.tile, 1) >> 4 & 15, stops[k].etype);
        n_executed[stops[k].op]++;
    }
    build_free(&b);
}

/* $WSR.ERPT of an exception inside a repeat body; what a second runall does to active workers. */
static void test_status(void) {
    build_init(&b, (struct tile_config){0});
    I(SETZI_A, 0, 1);
    I(UPUT, ISA_CSR_FP_CTL, 0);
    I(OR_A_T, 1, 15, 0x7f800000);
    I(RPT_Z, 3, 0);
    B(MNOP, W(F32SUB, 2, 1, 1)); /* infinity - infinity */
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_FAULT);
    g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_FP_INVALID);
    SAME(tile_context_status(&b.tile, 1), 0x200 | 5 << 4);
    b.at = CODE;
    tile_reset(&b.tile);
    I(SETZI_M, 0, CODE + 0x200);
    I(RUNALL, 0, 15, 0);
    I(RUNALL, 0, 15, 0);
    put32(&b, CODE + 0x200, W(BRI, CODE + 0x200)); /* for ever */
    tile_start(&b.tile, CODE, 0);
    tile_run(&b.tile, 10000);
    g_assert_cmpint(b.tile.fault.number, ==, TILE_FAULT_RUN_ACTIVE);
    SAME(tile_ctxt_sts(&b.tile), 0x3fff);
    SAME(tile_context_status(&b.tile, 0), 8 | 9 << 4); /* RAERR, INVALID_OP */
    build_free(&b);
}

/* What a launch sets and what a context keeps (isa 1.5). */
static void test_launch_state(void) {
    build_init(&b, (struct tile_config){0});
    seed = 61 + 1000 * other_seed;
    struct oracle s;
    state_make(&s);
    s.pc = CODE;
    s.ctl &= ~7u;
    put32(&b, CODE, W(EXITZ, 15));
    tile_from(&s);
    b.tile.w[0].repeat_count = 0;
    tile_run(&b.tile, 1000);
    b.tile.s.fp_ictl = 2 << 16 | 1;
    b.tile.s.fp_infmt = 1;
    b.tile.s.fp_iscl = 0x21;
    b.tile.worker_base[0] = 0x5d000;
    struct tile_worker *w = &b.tile.w[0];
    w->fp_sts = 7;
    w->fp_ctl = w->fp_nfmt = w->fp_scl = 0;
    const struct tile_worker kept = *w;
    tile_start_workers(&b.tile, CODE, 0x61000, 1, b.tile.lanes_cycle);
    tile_run(&b.tile, UINT64_MAX);
    g_assert_cmpint(b.tile.stop.reason, ==, TILE_STOP_DONE);
    g_assert_true(w->fp_ctl == (2 << 16 | 1) && w->fp_nfmt == 1 && w->fp_scl == 0x21 && w->fp_sts == 0);
    g_assert_true(w->m[12] == 0x5d000 && w->m[13] == 0x61000);
    g_assert_cmpmem(w->m, 48, kept.m, 48);
    g_assert_cmpmem(w->a, 32, kept.a, 32);
    g_assert_cmpmem(&w->acc, sizeof w->acc, &kept.acc, sizeof kept.acc);
    g_assert_true(w->tas == kept.tas && memcmp(w->prng, kept.prng, 16) == 0 && w->wsr == kept.wsr);
    build_free(&b);
}

/* Uses of permutations that only work as defined (isa 3.4): n low bytes of a new word into an old one. */
static void test_merges(void) {
    const struct { uint32_t code[2], bytes; } merges[] = {
        {{W(ROLL8L_M, 2, 0, 1), W(ROLL8R_M, 2, 2, 2)}, 3},
        {{W(ROLL16_M, 2, 0, 1), W(ROLL16_M, 2, 2, 2)}, 2},
        {{W(ROLL8R_M, 2, 0, 1), W(ROLL8L_M, 2, 2, 2)}, 1}};
    build_init(&b, (struct tile_config){0});
    for (uint32_t k = 0; k < 3; k++) {
        put32(&b, CODE, merges[k].code[0]), put32(&b, CODE + 4, merges[k].code[1]), put32(&b, CODE + 8, W(EXITZ, 15));
        tile_reset(&b.tile);
        b.tile.w[0].m[0] = 0xa3a2a1a0, b.tile.w[0].m[1] = 0xb3b2b1b0;
        b.tile.w[0].defined = UINT32_MAX;
        g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
        const uint32_t low = UINT32_MAX >> (32 - 8 * merges[k].bytes);
        SAME(b.tile.w[0].m[2], (0xa3a2a1a0 & ~low) | (0xb3b2b1b0 & low));
    }
    build_free(&b);
}

/* The slots of exponentials, by their parameter (isa 1.9). */
static void test_exp_slots(void) {
    for (uint8_t slots = 0; slots <= 3; slots++)
        for (uint32_t zero = 0; zero < 2; zero++) {
            build_init(&b, (struct tile_config){.exp_slots = slots});
            put32(&b, CODE, W(F16V2EXP, 1, 0)), put32(&b, CODE + 4, W(EXITZ, 15));
            b.tile.w[0].a[0] = zero ? 0x80000000 : 0x00010000;
            b.tile.w[0].defined = UINT32_MAX;
            g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
            g_assert_cmpuint(b.tile.w[0].slots, ==, (zero ? 1 : slots ? slots : 2) + 1u);
            build_free(&b);
        }
}

/* Runs last: every form of the table was executed and compared. */
static void test_coverage(void) {
    uint32_t n = 0;
    for (uint32_t op = 0; op < ISA_N_OPS; op++) {
        const bool enough = n_executed[op] >= (is_worker_op((enum isa_op)op) ? 50 : 1);
        if (!enough) g_test_message("%s: executed %u times", isa_form((enum isa_op)op)->id, n_executed[op]);
        n += enough;
    }
    g_test_message("%u of %u forms", n, (uint32_t)ISA_N_OPS);
    g_assert_cmpuint(n, ==, ISA_N_OPS);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    if (g_getenv("IPU_SEED")) other_seed = g_ascii_strtoull(g_getenv("IPU_SEED"), NULL, 0);
    if (g_getenv("IPU_ROUNDS")) rounds = g_ascii_strtoull(g_getenv("IPU_ROUNDS"), NULL, 0);
    g_test_add_func("/tile/oracle/1-worker", test_worker);
    g_test_add_func("/tile/oracle/1-window", test_window);
    g_test_add_func("/tile/oracle/1-defined-registers", test_defined_registers);
    g_test_add_func("/tile/oracle/1-defined-accumulators", test_defined_accumulators);
    g_test_add_func("/tile/oracle/1-access-faults", test_access_faults);
    g_test_add_func("/tile/oracle/2-supervisor", test_supervisor);
    g_test_add_func("/tile/oracle/3-super-csrs", test_super_csrs);
    g_test_add_func("/tile/oracle/3-csr-access", test_csr_access);
    g_test_add_func("/tile/oracle/3-super-status", test_super_status);
    g_test_add_func("/tile/oracle/4-weights", test_weights);
    g_test_add_func("/tile/oracle/5-launches", test_launches);
    g_test_add_func("/tile/oracle/6-waits", test_waits);
    g_test_add_func("/tile/oracle/7-exchange", test_exchange_words);
    g_test_add_func("/tile/oracle/8-stops", test_stops);
    g_test_add_func("/tile/oracle/8-status", test_status);
    g_test_add_func("/tile/oracle/8-launch-state", test_launch_state);
    g_test_add_func("/tile/oracle/8-merges", test_merges);
    g_test_add_func("/tile/oracle/8-exp-slots", test_exp_slots);
    g_test_add_func("/tile/oracle/9-coverage", test_coverage);
    return g_test_run();
}
