/* Decoded slots, found by content. Each thread keeps a table keyed by the one or two words of a slot,
 * so a word is decoded once per thread however many tiles and addresses hold it, and code that a
 * program changes needs no care at all: the key is compared with memory on every issue.
 * Open addressing over indices into a pool; a full pool is forgotten whole. */
#include "tile/tile_exec.h"

enum { POOL = 1 << 14, TABLE = POOL * 4, TABLE_SHIFT = 64 - 16 };
_Static_assert(TABLE == 1 << 16, "the hash takes the top 16 bits");

struct tile_pool {
    uint32_t n;
    uint16_t index[TABLE]; /* 0 = empty, else pool index + 1 */
    struct tile_slot slot[POOL];
};

static tile_fn *const FUNCTIONS[ISA_N_OPS] = {
#define ISA(id, ...) [ISA_OP_##id] = tile_op_##id,
#include "isa/isa.def"
#undef ISA
};

static void redirect(struct isa_insn *i) {
    const struct isa_form *f = isa_form(i->op);
    for (uint32_t k = 0; k < f->n_operands; k++) {
        const uint8_t role = f->operand[k].role, class = f->operand[k].class;
        if (role != ISA_ROLE_D && role != ISA_ROLE_D1) continue;
        uint8_t *d = role == ISA_ROLE_D ? &i->d : &i->d1;
        const bool m = class == ISA_CLASS_M || class == ISA_CLASS_M2;
        if (class == ISA_CLASS_M_BUMP ? *d >= 12 : *d >= (m ? 12 : 8)) *d = TILE_SINK;
    }
}

static void add_registers(struct tile_slot *s, const struct isa_insn *i) {
    struct isa_regs r = isa_insn_regs(i);
    if (i->op == ISA_OP_LD64A32) r.a_write &= (uint16_t)~(1u << i->d); /* keeps what it holds */
    s->reads |= (r.m_read & 0x0fffu) | (r.a_read & 0xffu) << 16;
    s->writes |= (r.m_write & 0x0fffu) | (r.a_write & 0xffu) << 16;
}

static void add_result(struct tile_slot *s, const struct isa_insn *i) {
    const struct isa_form *f = isa_form(i->op);
    if (f->pipe != ISA_AUX || i->d >= 8) return;
    s->n_result = (uint8_t)__builtin_popcount(isa_insn_regs(i).a_write);
    s->result = i->d;
}

static uint16_t store_registers(const struct isa_insn *i) {
    const struct isa_form *f = isa_form(i->op);
    uint32_t regs = 0;
    for (uint32_t k = 0; f->access[0].store && k < f->n_operands; k++) {
        const uint8_t role = f->operand[k].role;
        if (role == ISA_ROLE_BASE || role == ISA_ROLE_DELTA || role == ISA_ROLE_OFF)
            regs |= 1u << isa_operand_get(i, k);
    }
    return (uint16_t)regs;
}

/* Slots that the instruction takes whatever its arguments; the exponentials add theirs when they
 * execute (isa 1.9: one for zeros, else exp_slots). */
static uint8_t fixed_slots(uint16_t op) {
    if (op == ISA_OP_F16V2EXP || op == ISA_OP_F16V2EXP2) return 1;
    return isa_form((enum isa_op)op)->slots;
}

static uint8_t super_cost(const struct isa_insn *i) {
    if (i->op == ISA_OP_DELAY) return 0;
    if (isa_form(i->op)->access[0].store) return TARGET_SUPER_STORE_CYCLES;
    if (i->op != ISA_OP_PUT) return 1;
    const uint32_t k = (uint32_t)i->imm - TILE_EXCHANGE_CSR_BASE;
    return k < TILE_N_EXCHANGE_CSRS ? TARGET_SUPER_PUT_EXCHANGE_CYCLES : TARGET_SUPER_PUT_CYCLES;
}

/* An instruction of the auxiliary pipeline that only computes: it is the last thing of a slot. */
static void note_data(struct tile_slot *s, const struct isa_insn *i) {
    const struct isa_form *f = isa_form(i->op);
    s->data = f->pipe == ISA_AUX && f->kind == ISA_KIND_FLOAT;
    s->exp = i->op == ISA_OP_F16V2EXP || i->op == ISA_OP_F16V2EXP2;
}

/* The two destinations of a dual load must differ, zero registers included (isa 3.6). */
static bool destinations_meet(const struct isa_insn *i) {
    const struct isa_form *f = isa_form(i->op);
    if (f->n_operands < 2 || f->operand[1].role != ISA_ROLE_D1) return false;
    const bool pair = f->operand[1].class == ISA_CLASS_A2;
    return i->d1 + pair >= i->d && i->d1 <= i->d + 1;
}

static void slot_make(struct tile_slot *s, uint32_t word0, uint32_t word1) {
    *s = (struct tile_slot){.words = {word0, word1}, .bytes = 4, .slots = 1};
    const uint32_t words[2] = {word0, word1};
    struct isa_slot d;
    const enum isa_slot_error e = isa_slot_decode(words, 2, 0, &d);
    if (e != ISA_SLOT_OK) {
        s->error = e == ISA_SLOT_UNKNOWN ? TILE_FAULT_INSTR_UNDEFINED : TILE_FAULT_BUNDLE_INVALID;
        s->bytes = word0 >> 31 ? 8 : 4;
        return;
    }
    s->bytes = (uint8_t)(4 * d.n_words);
    const struct isa_form *m = isa_form(d.main.op);
    s->who = m->who;
    s->slots = fixed_slots(d.main.op);
    s->control = m->kind == ISA_KIND_CONTROL;
    s->row = m->kind == ISA_KIND_EXCH || d.main.op == ISA_OP_DELAY;
    s->in_repeat = d.bundle && isa_in_repeat(d.main.op) && isa_in_repeat(d.aux.op);
    s->is_uget = d.bundle && isa_in_repeat(d.main.op) &&
                 (d.aux.op == ISA_OP_UGET || d.aux.op == ISA_OP_UPUT);
    s->store_regs = store_registers(&d.main);
    s->super_cost = super_cost(&d.main);
    s->amp = d.bundle && (d.aux.op == ISA_OP_F16V4HIHOV4AMP || d.aux.op == ISA_OP_F8V8HIHOV4AMP);
    add_registers(s, &d.main);
    add_result(s, &d.main);
    s->main = FUNCTIONS[d.main.op];
    s->mi = d.main;
    redirect(&s->mi);
    if (destinations_meet(&d.main)) s->error = TILE_FAULT_INSTR_OPERAND;
    s->worker = (s->who & ISA_MODE_W) != 0 && s->error == TILE_FAULT_NONE;
    note_data(s, &d.main);
    if (!d.bundle) return;
    const struct isa_form *a = isa_form(d.aux.op);
    s->who = m->who & a->who & ISA_MODE_W;
    s->slots = MAX(s->slots, fixed_slots(d.aux.op));
    add_registers(s, &d.aux);
    add_result(s, &d.aux);
    note_data(s, &d.aux);
    s->aux = FUNCTIONS[d.aux.op];
    s->ai = d.aux;
    redirect(&s->ai);
    s->worker = (s->who & ISA_MODE_W) != 0 && s->error == TILE_FAULT_NONE;
}

/* Words that no lone instruction has: matches nothing. */
static const struct tile_slot NO_SLOT = {.words = {0, UINT32_MAX}};

static void forget(struct tile_cache *c) {
    for (uint32_t k = 0; k < TILE_RECENT; k++) c->recent[k] = &NO_SLOT;
    c->pool->n = 0;
    memset(c->pool->index, 0, sizeof c->pool->index);
}

struct tile_cache *tile_cache_get(void) {
    static _Thread_local struct tile_cache *cache;
    if (cache == NULL) {
        cache = g_new(struct tile_cache, 1);
        cache->pool = g_new(struct tile_pool, 1);
        forget(cache);
    }
    return cache;
}

static uint32_t hash(uint32_t word0, uint32_t word1) {
    const uint64_t key = word0 | (uint64_t)word1 << 32;
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> TABLE_SHIFT);
}

const struct tile_slot *tile_cache_decode(struct tile_cache *c, uint32_t word0, uint32_t word1) {
    struct tile_pool *p = c->pool;
    uint32_t h = hash(word0, word1);
    for (; p->index[h] != 0; h = (h + 1) % TABLE) {
        const struct tile_slot *s = &p->slot[p->index[h] - 1];
        if (s->words[0] == word0 && s->words[1] == word1) return s;
    }
    if (p->n == POOL) {
        forget(c);
        h = hash(word0, word1);
    }
    struct tile_slot *s = &p->slot[p->n++];
    slot_make(s, word0, word1);
    p->index[h] = (uint16_t)p->n;
    return s;
}
