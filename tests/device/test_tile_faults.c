/* One program per fault: the record names number, context, pc, address; the same program in permissive
 * mode goes on where that is possible. The last test holds the list of cases to the table. */
#include "numeric/num_format.h"
#include "tile_build.h"

static struct build b;
static bool tested[TILE_FAULT_LIMIT];
static uint32_t last_cause; /* of the fault that `expect` saw last */
static struct tile_config config;

static void begin(void) {
    build_init(&b, config);
    put32(&b, DATA, 0);
    put32(&b, DATA1, 0);
}

/* Runs and compares; context 0 supervisor, 1 worker 0. `value` < 0: not compared. */
static void expect(enum tile_fault_number number, uint32_t context, uint32_t pc, uint32_t address) {
    const enum tile_stop_reason r = context ? run_worker(&b) : run_super(&b);
    const struct tile_fault *f = &b.tile.fault;
    g_assert_cmpint(f->number, ==, number);
    g_assert_cmpint(r, ==, TILE_STOP_FAULT);
    g_assert_cmpuint(f->context, ==, context);
    g_assert_cmphex(f->pc, ==, pc);
    g_assert_cmphex(f->address, ==, address);
    GString *text = g_string_new(NULL);
    tile_fault_print(&b.tile, f, text);
    g_assert_nonnull(strstr(text->str, tile_fault_info(number)->name));
    g_string_free(text, true);
    g_assert_cmpint(tile_run(&b.tile, UINT64_MAX), ==, TILE_STOP_FAULT); /* stays stopped */
    const uint32_t etype = tile_context_status(&b.tile, context) >> 4 & 15;
    if (number != TILE_FAULT_TRAP) g_assert_cmpuint(etype, ==, tile_fault_info(number)->etype);
    const char *exception = tile_fault_exception(f, &last_cause);
    g_assert_true((exception != NULL) == (etype != 0));
    g_assert_true((last_cause != 0) == (etype != 0));
    g_assert_true((tile_cause_text(last_cause)[0] != 0) == (etype != 0));
    tested[number] = true;
    build_free(&b);
}
#define EXPECT_W(name, pc, address) expect(TILE_FAULT_##name, 1, pc, address)
#define EXPECT_S(name, pc, address) expect(TILE_FAULT_##name, 0, pc, address)

static void test_fetch(void) {
    begin(), I(SETZI_M, 0, 0x80000), I(BR, 0);
    EXPECT_W(PC_RANGE, 0x80000, 0);
    g_assert_cmpuint(last_cause, ==, 76); /* memory, but not executable */
    begin(), I(BRI, 0x7fffc), b.at = 0x7fffc, I(SETZI_M, 0, 0); /* falls out of region 0 */
    EXPECT_W(PC_RANGE, 0x80000, 0);
    begin(), I(SETZI_M, 0, CODE + 2), I(BR, 0);
    EXPECT_W(PC_MISALIGNED, CODE + 2, 0);
    begin(), I(SETZI_M, 0, 0x100), I(BR, 0);
    EXPECT_S(PC_RANGE, 0x100, 0);
    g_assert_cmpuint(last_cause, ==, 77);
    begin(), I(SETZI_M, 0, CODE + 1), I(BR, 0);
    EXPECT_S(PC_MISALIGNED, CODE + 1, 0);
    begin(), I(SETZI_M, 0, 0), B(MNOP, FNOP);
    EXPECT_W(BUNDLE_MISALIGNED, CODE + 4, 0);
    begin(), build_word(&b, 0x0fffffff);
    EXPECT_W(INSTR_UNDEFINED, CODE, 0);
    begin(), build_word(&b, 0x0fffffff);
    EXPECT_S(INSTR_UNDEFINED, CODE, 0);
    begin(), build_word(&b, MNOP | 0x80000000), build_word(&b, FNOP);
    EXPECT_W(BUNDLE_INVALID, CODE, 0);
    begin(), B(W(LD32_A_Z, 0, 13, 15, 0), W(SETZI_A, 0, 1)); /* both write a0 */
    EXPECT_W(BUNDLE_INVALID, CODE, 0);
    begin(), I(BRI, CODE + 0x400);
    EXPECT_W(FETCH_UNWRITTEN, CODE + 0x400, CODE + 0x400);
    begin(), I(SYNC, 2);
    EXPECT_W(MODE_SUPERVISOR, CODE, 0);
    begin(), I(F32ADD, 0, 14, 14);
    EXPECT_S(MODE_WORKER, CODE, 0);
    begin(), B(MNOP, FNOP);
    EXPECT_S(MODE_WORKER, CODE, 0);
    begin(), I(EXITZ, 15);
    EXPECT_S(MODE_WORKER, CODE, 0);
}

static void test_operands(void) {
    begin(), I(SETZI_A, 0, 8), I(UPUT, ISA_CSR_FP_CLR, 0), I(F16V4HIHOV4AMP, 14, 14, 14, 0x0c);
    b.tile.weights_defined = UINT64_MAX;
    EXPECT_W(INSTR_OPERAND, CODE + 8, 0);
    /* Destinations of a dual load that meet, zero registers too. */
    const uint32_t meet[] = {W(LD2X64PACE, 0, 0, 2, 15, 0), W(LD2X64PACE, 14, 14, 2, 15, 0),
                             W(LD64A32PACE, 0, 1, 2, 15, 0), W(LD64B16PACE, 14, 15, 2, 15, 0)};
    for (uint32_t k = 0; k < ARRAY_LEN(meet); k++) {
        begin(), I(SETZI_M, 0, DATA), I(TAPACK, 2, 0, 0, 0), build_word(&b, meet[k]);
        EXPECT_W(INSTR_OPERAND, CODE + 8, 0);
    }
    begin(), I(F32INT, 0, 14, 7);
    EXPECT_W(INSTR_OPERAND, CODE, 0);
    begin(), I(F32V2GINA, 0, 14, 4);
    EXPECT_W(INSTR_OPERAND, CODE, 0);
    begin(), I(GET, 0, 0x99);
    EXPECT_W(CSR_INVALID, CODE, 0);
    begin(), I(GET, 0, 0x04);
    EXPECT_S(CSR_INVALID, CODE, 0);
    begin(), I(UGET, 0, 0x20);
    EXPECT_W(CSR_INVALID, CODE, 0);
    begin(), I(PUT, ISA_CSR_WSR, 15);
    EXPECT_W(CSR_READ_ONLY, CODE, 0);
    begin(), I(PUT, ISA_CSR_TILE_ID, 15);
    EXPECT_S(CSR_READ_ONLY, CODE, 0);
    begin(), I(UPUT, ISA_CSR_FP_STS, 14);
    EXPECT_W(CSR_READ_ONLY, CODE, 0);
    begin(), I(TRAP, 0);
    EXPECT_W(TRAP, CODE, 0);
    g_assert_cmpuint(last_cause, ==, 2);
    begin(), I(TRAP, 1);
    EXPECT_W(TRAP, CODE, 0);
    g_assert_cmpuint(last_cause, ==, 3);
    config.standalone = true; /* without a host nobody serves it */
    begin(), I(TRAP, 1);
    EXPECT_S(TRAP, CODE, 0);
    config.standalone = false;
    begin(), I(F32SISOV2SLIC, 0, 14, 14, 0);
    EXPECT_W(NOT_PUBLIC, CODE, 0);
    begin(), I(SETZI_M, 0, 1), I(PUT, ISA_CSR_DBG_IBRK0_CTL, 0); /* arms a break */
    EXPECT_S(NOT_PUBLIC, CODE + 4, 0);
    begin(), I(SETZI_M, 0, 0x20), I(PUT, ISA_CSR_DBG_ECSR, 0);
    EXPECT_S(NOT_PUBLIC, CODE + 4, 0);
    begin(), I(OR_M_T, 0, 15, 0x00100000), I(SHL_Z, 0, 0, 1), I(PUT, ISA_CSR_DBG_DBRK0_CTL, 0);
    EXPECT_S(NOT_PUBLIC, CODE + 8, 0);
    config.standalone = true;
    begin(), I(SEND, 1, 0, 1);
    EXPECT_S(ROW_WITHOUT_FABRIC, CODE, 0);
    config.standalone = false;
}

static void test_repeat(void) {
    begin(), I(SETZI_M, 14, 0), I(RPT_Z, 2, 0), I(SETZI_M, 0, 1);
    EXPECT_W(REPEAT_INSTR, CODE + 8, 0);
    begin(), B(W(RPT_Z, 2, 0), FNOP), B(W(BRI, CODE), FNOP);
    EXPECT_W(REPEAT_INSTR, CODE + 8, 0);
    begin(), B(W(RPT_Z, 2, 0), FNOP), B(MNOP, W(UGET, 0, 0));
    EXPECT_W(REPEAT_INSTR, CODE + 8, 0);
    begin(), I(RPT_Z, 2, 0);
    EXPECT_W(REPEAT_BODY, CODE, CODE + 4);
    begin(), I(BRI, 0x7fff0), b.at = 0x7fff0, B(W(RPT_Z, 2, 0), FNOP), B(MNOP, FNOP);
    EXPECT_W(REPEAT_END, 0x7fff0, 0x80000);
    config.uget_in_repeat = true;
    begin(), B(W(RPT_Z, 2, 0), FNOP), B(MNOP, W(UGET, 0, 0)), I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    build_free(&b);
    config.uget_in_repeat = false;
}

static void test_addresses(void) {
    begin(), I(SETZI_M, 0, 0x4bffc), I(LD32_M_Z, 1, 0, 15, 0);
    EXPECT_W(ADDRESS_RANGE, CODE + 4, 0x4bffc);
    begin(), I(SETZI_M, 0, 0xe7ffc), I(LD64_Z, 0, 0, 15, 1);
    EXPECT_W(ADDRESS_MISALIGNED, CODE + 4, 0xe8004);
    begin(), I(SETZI_M, 0, 0xe8000), I(ST32_M, 0, 0, 15, 0);
    EXPECT_W(ADDRESS_RANGE, CODE + 4, 0xe8000);
    begin(), I(LDZ16_Z, 0, 13, 15, 0), I(SETZI_M, 1, 1), I(LDZ16_Z, 0, 13, 1, 0);
    EXPECT_W(ADDRESS_MISALIGNED, CODE + 8, DATA + 1);
    begin(), I(SETZI_M, 0, 2), I(ST32_M, 15, 13, 0, 0);
    EXPECT_W(ADDRESS_MISALIGNED, CODE + 4, DATA + 2);
    begin(), I(LD128_Z, 0, 13, 15, 0);
    for (uint32_t k = 0; k < 4; k++) put32(&b, DATA + 4 * k, 0);
    EXPECT_W(ADDRESS_REGION, CODE, DATA);
    begin(), I(OR_M_T, 0, 15, INT32_MIN), I(LD32_M_Z, 1, 0, 13, 0);
    EXPECT_W(ADDRESS_CARRY, CODE + 4, UINT32_MAX & ~15u);
    begin(), I(LD32_M_Z, 1, 13, 15, 9);
    EXPECT_W(READ_UNWRITTEN, CODE, DATA + 36);
    begin(), I(LD64_Z, 0, 13, 15, 0); /* the first word is written, the second is not */
    EXPECT_W(READ_UNWRITTEN, CODE, DATA + 4);
    begin(), I(SETZI_M, 0, 6), I(LDZ16_Z, 1, 13, 0, 0);
    EXPECT_W(READ_UNWRITTEN, CODE + 4, DATA + 4);
    begin(), I(SETZI_M, 0, 1), I(LDZ16_Z, 1, 15, 0, 0); /* address 1 is shown although it is small */
    EXPECT_W(ADDRESS_MISALIGNED, CODE + 4, 1);
    begin(), I(LD32_M_Z, 1, 15, 15, 0);
    EXPECT_W(ADDRESS_RANGE, CODE, 0);
}

/* Every pair of accesses of every instruction with several: the same element in the whole of region 0,
 * the same half of a pair of elements in region 1; the record names the address that comes second. */
enum { TWO_LOADS, LOAD_AND_STORE, TWO_LOADS_AND_STORE };
static void pace(uint32_t kind, uint32_t a0, uint32_t a1, uint32_t a2) {
    begin();
    const uint32_t a[3] = {a0, a1, a2};
    for (uint32_t k = 0; k < 6; k++) put32(&b, a[k / 2] + 4 * (k % 2), 0);
    b.tile.w[0].m[0] = a0, b.tile.w[0].m[1] = a1, b.tile.w[0].m[2] = a2;
    b.tile.w[0].defined = 7;
    I(TAPACK, 4, 0, 1, 2);
    if (kind == TWO_LOADS) I(LD2X64PACE, 0, 2, 4, 15, 0);
    if (kind == LOAD_AND_STORE) I(LDST64PACE, 0, 14, 4, 15, 0);
    if (kind == TWO_LOADS_AND_STORE) I(LD2XST64PACE, 0, 14, 4, 15, 0);
    I(EXITZ, 15);
}
static void pace_conflict(uint32_t kind, const uint32_t *a, uint32_t j) {
    pace(kind, a[0], a[1], a[2]);
    EXPECT_W(ELEMENT_CONFLICT, CODE + 4, a[j]);
    g_assert_cmpuint(last_cause, ==, 7 + j);
}
static void test_access_pairs(void) {
    static const uint32_t uses[3][3] = {{1, 1, 0}, {1, 0, 1}, {1, 1, 1}};
    for (uint32_t kind = 0; kind < 3; kind++) {
        const uint32_t apart[3] = {DATA, DATA1, DATA1 + 0x10008};
        pace(kind, apart[0], apart[1], apart[2]);
        g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
        build_free(&b);
        for (uint32_t i = 0; i < 3; i++)
            for (uint32_t j = i + 1; j < 3; j++) {
                if (!uses[kind][i] || !uses[kind][j]) continue;
                uint32_t a[3] = {apart[0], apart[1], apart[2]};
                a[i] = DATA1 + 0x4000, a[j] = DATA1 + 0x7fe0; /* ends of the same half */
                if (i == 0 && j == 2) a[1] = DATA1 + 0x10000;
                pace_conflict(kind, a, j);
                a[j] += 8; /* the other half */
                pace(kind, a[0], a[1], a[2]);
                g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
                build_free(&b);
                if (j == 1) continue; /* EA1 may not be in region 0 */
                a[i] = i == 1 ? a[i] : DATA, a[j] = i == 1 ? a[i] + 16 : DATA + 0x1ff8;
                pace_conflict(kind, a, j);
            }
    }
    begin(), put32(&b, DATA + 4, 0); /* a table beside its data */
    I(SETZI_M, 2, DATA), I(SETZI_M, 3, 0), I(LDD16A64, 0, 2, 13, 3);
    EXPECT_W(ELEMENT_CONFLICT, CODE + 8, DATA);
    /* which address is out of range, misaligned */
    pace(TWO_LOADS_AND_STORE, DATA, DATA1, DATA1 + 0x10008), b.tile.w[0].m[2] += 4;
    EXPECT_W(ADDRESS_MISALIGNED, CODE + 4, DATA1 + 0x1000c);
    g_assert_cmpuint(last_cause, ==, 60);
    pace(TWO_LOADS, DATA, DATA1, DATA1), b.tile.w[0].m[1] = TARGET_SRAM_END;
    EXPECT_W(ADDRESS_RANGE, CODE + 4, TARGET_SRAM_END);
    g_assert_cmpuint(last_cause, ==, 28);
}

static void test_two_addresses(void) {
    begin();
    put32(&b, DATA + 4, 0), put32(&b, DATA + 8, 0), put32(&b, DATA + 12, 0);
    put32(&b, DATA1 + 4, 0), put32(&b, DATA1 + 0x8000, 0), put32(&b, DATA1 + 0x8004, 0);
    I(SETZI_M, 0, DATA), I(SETZI_M, 1, DATA1), I(TAPACK, 2, 1, 0, 0), I(LD2X64PACE, 0, 2, 2, 15, 0);
    EXPECT_W(ADDRESS_EXECUTABLE, CODE + 12, DATA);
    begin();
    for (uint32_t k = 1; k < 8; k++) put32(&b, DATA1 + 4 * k, 0);
    I(SETZI_M, 0, DATA1), I(ADD_Z, 1, 0, 16), I(TAPACK, 2, 0, 1, 0), I(LD2X64PACE, 0, 2, 2, 15, 0);
    EXPECT_W(ELEMENT_CONFLICT, CODE + 12, DATA1 + 16); /* the same half of the pair */
    begin();
    put32(&b, DATA1 + 4, 0);
    I(SETZI_M, 0, DATA1), I(TAPACK, 2, 0, 0, 0), I(LDST64PACE, 0, 14, 2, 15, 0);
    EXPECT_W(ELEMENT_CONFLICT, CODE + 8, DATA1);
    begin(); /* allocation: only the first word may be written */
    static uint64_t writable[SRAM_WRITTEN_WORDS];
    writable[(DATA - TARGET_SRAM_BASE) / 256] |= UINT64_C(1) << (DATA - TARGET_SRAM_BASE) / 4 % 64;
    b.tile.writable = writable;
    I(ST32_M, 15, 13, 15, 0), I(ST64_Z, 14, 13, 15, 0);
    EXPECT_W(WRITE_UNALLOCATED, CODE + 4, DATA + 4); /* the word that is not allocated */
    begin(), I(SETZI_M, 0, (int)DATA1 + 8), I(PUT, ISA_CSR_CCCSLOAD, 0), I(LD128PUTCS, 0);
    EXPECT_S(CCCS_MISALIGNED, CODE + 8, DATA1 + 8);
    begin(), I(SETZI_M, 0, (int)DATA1), I(PUT, ISA_CSR_CCCSLOAD, 0), I(LD64PUTCS, 64);
    EXPECT_S(CCCS_INDEX, CODE + 8, 0);
    begin(), I(SETZI_M, 0, (int)DATA1), I(PUT, ISA_CSR_CCCSLOAD, 0), I(LD128PUTCS, 3);
    EXPECT_S(CCCS_INDEX, CODE + 8, 0);
}

static void test_registers(void) {
    begin(), I(ADD_Z, 0, 3, 1);
    EXPECT_W(READ_UNDEFINED, CODE, 0);
    begin(), I(ST32_A_Z, 5, 13, 15, 0);
    EXPECT_W(READ_UNDEFINED, CODE, 0);
    begin(), I(ADD_Z, 0, 3, 1);
    EXPECT_S(READ_UNDEFINED, CODE, 0);
    begin(), I(F16V8ACC, 12);
    EXPECT_W(ACCUMULATORS_UNDEFINED, CODE, 0);
    begin(), I(URAND32, 0);
    EXPECT_W(PRNG_UNSEEDED, CODE, 0);
    begin(), I(F32V2AXPY, 0, 14, 14);
    EXPECT_W(TAS_UNDEFINED, CODE, 0);
    begin(), I(SETZI_A, 0, 8), I(UPUT, ISA_CSR_FP_CLR, 0), I(F16V4MIX, 0, 14, 14);
    EXPECT_W(TAS_UNDEFINED, CODE + 8, 0);
    begin(), I(UGET, 0, ISA_CSR_TAS);
    EXPECT_W(TAS_UNDEFINED, CODE, 0);
    begin(), I(SETZI_A, 0, 8), I(UPUT, ISA_CSR_FP_CLR, 0), I(F16V4SISOAMP, 0, 14, 14, 2);
    b.tile.weights_defined = UINT64_MAX & ~(UINT64_C(1) << 10); /* unit 2, phase 2 */
    EXPECT_W(WEIGHTS_UNDEFINED, CODE + 8, 0);
}

/* A register of the previous launch counts as defined; an exit keeps it. */
static void test_retained(void) {
    begin(), I(SETZI_M, 5, 7), I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    const uint32_t second = b.at;
    I(ST32_M, 5, 13, 15, 0), I(EXITZ, 15);
    tile_start_workers(&b.tile, second, DATA, 1, 1000);
    g_assert_cmpint(tile_run(&b.tile, 100000), ==, TILE_STOP_DONE);
    g_assert_cmpuint(get32(&b, DATA), ==, 7);
    build_free(&b);
}

enum { WORKER_AT = CODE + 0x200 };
static void endless_worker(void) {
    const uint32_t at = b.at;
    b.at = WORKER_AT;
    I(BRI, WORKER_AT);
    b.at = at;
}

static void test_launches(void) {
    begin(), endless_worker(), I(SETZI_M, 0, WORKER_AT), I(RUN, 0, 15, 0), I(RUNALL, 0, 15, 0);
    EXPECT_S(RUN_ACTIVE, CODE + 8, 0);
    begin(), I(SETZI_M, 0, 0x90000), I(RUNALL, 0, 15, 0);
    EXPECT_S(RUN_ENTRY, CODE + 4, 0x90000);
    g_assert_cmpuint(last_cause, ==, 73);
    begin(), I(SETZI_M, 0, 0x1000), I(RUNALL, 0, 15, 0);
    EXPECT_S(RUN_ENTRY, CODE + 4, 0x1000);
    g_assert_cmpuint(last_cause, ==, 54);
    begin(), I(SETZI_M, 0, CODE + 2), I(RUNALL, 0, 15, 0);
    EXPECT_S(RUN_ENTRY_MISALIGNED, CODE + 4, CODE + 2);
    begin(), I(SETZI_M, 0, CODE), I(SETZI_M, 1, 2), I(RUNALL, 0, 1, 0);
    EXPECT_S(RUN_BASE, CODE + 8, 2);
    begin(), I(SYNC, 9);
    EXPECT_S(SYNC_ZONE, CODE, 0);
    begin(), endless_worker(), I(SETZI_M, 0, WORKER_AT), I(RUN, 0, 15, 0), I(LD64PUTCS, 0);
    EXPECT_S(WEIGHTS_BUSY, CODE + 8, 0);
    begin(), endless_worker(), I(SETZI_M, 0, WORKER_AT), I(RUN, 0, 15, 0), I(PUT, ISA_CSR_WORKER0_BASE, 15);
    EXPECT_S(BASE_BUSY, CODE + 8, 0);
    begin(), endless_worker(), I(SETZI_M, 0, WORKER_AT), I(RUN, 0, 15, 0), I(SYNC, 3);
    EXPECT_S(SYNC_WORKERS, CODE + 8, 0);
    begin(), I(SANS, 0), I(SANS, 0);
    EXPECT_S(SANS_ACTIVE, CODE + 4, 0);
    begin(), I(SYNC, 1);
    EXPECT_S(SANS_ACTIVE, CODE, 0);
    begin(), endless_worker(), I(SETZI_M, 0, WORKER_AT), I(RUN, 0, 15, 0), I(BR, 15);
    EXPECT_S(END_WORKERS, 0, 0);
    config.permissive = true;
    begin(), endless_worker(), I(SETZI_M, 0, WORKER_AT), I(RUN, 0, 15, 0), I(BR, 15);
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    g_assert_cmpuint(b.tile.counters.faults[TILE_FAULT_END_WORKERS], ==, 1);
    build_free(&b);
    config.permissive = false;
    config.standalone = true;
    uint32_t seen = 0;
    for (uint32_t n = 0; n < 60; n++) { /* the worker exits before or after the end, in all phases */
        begin(), b.at = WORKER_AT, I(SETZI_M, 0, 0), I(EXITZ, 15), b.at = CODE;
        I(SETZI_M, 0, WORKER_AT), I(RUN, 0, 15, 0), I(DELAY, (int)n + 1), I(BR, 15);
        const enum tile_stop_reason r = run_super(&b);
        const struct tile *t = &b.tile;
        const bool ended = !t->w[0].active && t->w[0].exit_cycle < t->s.ready_cycle;
        g_assert_cmpint(r, ==, ended ? TILE_STOP_DONE : TILE_STOP_FAULT);
        seen |= ended ? 2 : 1;
        build_free(&b);
    }
    g_assert_cmpuint(seen, ==, 3);
    for (int zone = 0; zone < 8; zone++) {
        if (zone == 2) continue;
        begin(), I(SANS, 0), I(SYNC, zone);
        EXPECT_S(DEADLOCK, CODE + 4, 0);
    }
    begin(), I(SYNC, 2), I(BR, 15); /* no worker: nothing to wait for */
    g_assert_cmpint(run_super(&b), ==, TILE_STOP_DONE);
    build_free(&b);
    config.standalone = false;
}

static void fp_case(uint32_t enable) {
    begin();
    b.tile.s.fp_ictl = enable;
    put32(&b, DATA, 0x7bff7bff), put32(&b, DATA + 4, 0x3f800000);
    I(LD32_A_Z, 0, 13, 15, 0), I(LD32_A_Z, 1, 13, 15, 1);
}
static void test_floating_point(void) {
    fp_case(NUM_OFLO), I(F16V2ADD, 2, 0, 0);
    EXPECT_W(FP_OVERFLOW, CODE + 8, 0);
    fp_case(NUM_DIV0), I(F32DIV, 2, 1, 15);
    EXPECT_W(FP_DIV0, CODE + 8, 0);
    fp_case(NUM_INV), I(F32DIV, 2, 15, 15);
    EXPECT_W(FP_INVALID, CODE + 8, 0);
    fp_case(0), I(F16V2ADD, 2, 0, 0), I(F32DIV, 3, 1, 15), I(F32DIV, 4, 15, 15), I(UGET, 5, ISA_CSR_FP_STS);
    I(EXITZ, 15); /* not enabled: only recorded */
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    g_assert_cmpuint(b.tile.w[0].a[5], ==, 7);
    build_free(&b);
}

/* Worker w adds 1 to the word at vertex base + 4 * (w * scale). */
static void race_code(uint32_t shift, uint32_t load) {
    I(GET, 0, ISA_CSR_WSR), I(AND_M_Z, 0, 0, 7), I(SHR_Z, 0, 0, (int)shift);
    if (load) I(LD32_M_R, 1, 13, 15, 15);
    I(SETZI_M, 2, 1), I(STM32, 2, 13, 0), I(EXITZ, 15);
}
static void race_expect(enum tile_fault_number number, uint32_t address) {
    tile_start_workers(&b.tile, CODE, DATA, 6, 0);
    g_assert_cmpint(tile_run(&b.tile, 100000), ==, number ? TILE_STOP_FAULT : TILE_STOP_DONE);
    g_assert_cmpint(b.tile.fault.number, ==, number);
    if (number) g_assert_cmphex(b.tile.fault.address, ==, address);
    tested[number] = true;
    build_free(&b);
}
static void test_races(void) {
    config.races = true;
    begin(), race_code(0, 0), race_expect(TILE_FAULT_NONE, 0);
    begin(), race_code(1, 0), race_expect(TILE_FAULT_RACE_WRITE_WRITE, DATA);
    begin(), race_code(0, 1), race_expect(TILE_FAULT_RACE_READ_WRITE, DATA);
    begin(), tile_tail_add(&b.tile, DATA, 4), race_code(0, 1), race_expect(TILE_FAULT_NONE, 0);
    config.races = false;
    begin(), race_code(1, 0), race_expect(TILE_FAULT_NONE, 0); /* only with the detector */
}

/* Supervisor against workers: a launch orders what the supervisor did before it, `sync 2` all. */
static void worker_stores(void) {
    const uint32_t at = b.at;
    b.at = WORKER_AT;
    I(LD32_M_Z, 1, 13, 15, 0), I(ADD_Z, 1, 1, 1), I(ST32_M, 1, 13, 15, 1), I(EXITZ, 15);
    b.at = at;
}
static void super_begin(void) {
    begin(), worker_stores(), I(SETZI_M, 0, WORKER_AT), I(SETZI_M, 1, DATA - TARGET_SRAM_BASE);
    I(SETZI_M, 2, DATA), I(SETZI_M, 3, 5);
}
static void super_expect(enum tile_fault_number number, uint32_t context, uint32_t pc, uint32_t address) {
    I(SYNC, 2), I(BR, 15);
    const enum tile_stop_reason r = run_super(&b);
    const struct tile_fault *f = &b.tile.fault;
    g_assert_cmpint(f->number, ==, number);
    g_assert_cmpint(r, ==, number != TILE_FAULT_NONE ? TILE_STOP_FAULT : TILE_STOP_DONE);
    g_assert_cmpuint(f->context, ==, context);
    g_assert_cmphex(f->pc, ==, pc);
    g_assert_cmphex(f->address, ==, address);
    build_free(&b);
}
static void test_supervisor_races(void) {
    config.races = config.standalone = true;
    /* argument, launch, sync, result: no race; also for a second worker while the first runs */
    super_begin(), I(ST32_M, 3, 2, 15, 0), I(RUN, 0, 1, 0), I(SYNC, 2), I(LD32_M_Z, 4, 2, 15, 1);
    super_expect(TILE_FAULT_NONE, 0, 0, 0);
    super_begin(), I(ST32_M, 3, 2, 15, 0), I(RUN, 0, 1, 0), I(ST32_M, 3, 2, 15, 8), I(RUN, 0, 1, 32);
    super_expect(TILE_FAULT_NONE, 0, 0, 0);
    /* the argument is written after the launch */
    super_begin(), I(ST32_M, 3, 2, 15, 0), I(RUN, 0, 1, 0), I(ST32_M, 3, 2, 15, 0);
    super_expect(TILE_FAULT_RACE_READ_WRITE, 1, WORKER_AT, DATA);
    /* the result is read when the worker has ended, but without the sync that says so */
    super_begin(), I(ST32_M, 3, 2, 15, 0), I(RUN, 0, 1, 0), I(DELAY, 100), I(LD32_M_Z, 4, 2, 15, 1);
    super_expect(TILE_FAULT_RACE_READ_WRITE, 0, CODE + 28, DATA + 4);
    /* `run` is no sync between workers, even when the first has ended */
    super_begin(), I(ST32_M, 3, 2, 15, 0), I(RUN, 0, 1, 0), I(RUN, 0, 1, 0);
    super_expect(TILE_FAULT_RACE_WRITE_WRITE, 2, WORKER_AT + 8, DATA + 4);
    super_begin(), I(ST32_M, 3, 2, 15, 0), I(RUN, 0, 1, 0), I(SYNC, 2), I(RUN, 0, 1, 0);
    super_expect(TILE_FAULT_NONE, 0, 0, 0);
    config.races = config.standalone = false;
}

/* Tails are exempt byte by byte: an access that begins before or ends behind one is not. */
static void test_tail_edges(void) {
    begin(), tile_tail_add(&b.tile, DATA + 4, 4), I(LD64_Z, 0, 13, 15, 0), I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE); /* data, then tail */
    build_free(&b);
    begin(), tile_tail_add(&b.tile, DATA + 8, 4), I(LD64_Z, 0, 13, 15, 1), I(EXITZ, 15);
    EXPECT_W(READ_UNWRITTEN, CODE, DATA + 12); /* tail, then nothing */
}

/* Read-ahead inside a declared tail is exempt. */
static void test_tail(void) {
    begin(), tile_tail_add(&b.tile, DATA + 4, 8), I(LD32_M_Z, 0, 13, 15, 1), I(LD32_M_Z, 0, 13, 15, 2);
    I(LD32_M_Z, 0, 13, 15, 3);
    EXPECT_W(READ_UNWRITTEN, CODE + 8, DATA + 12);
}

static void test_permissive(void) {
    config.permissive = true;
    begin(), I(LD32_M_Z, 0, 13, 15, 3), I(ADD_Z, 1, 5, 0), I(SETZI_M, 2, 0x100), I(LD32_M_Z, 3, 2, 15, 0);
    I(ST32_M, 0, 2, 15, 0), I(EXITZ, 15);
    g_assert_cmpint(run_worker(&b), ==, TILE_STOP_DONE);
    g_assert_cmpuint(b.tile.counters.faults[TILE_FAULT_READ_UNWRITTEN], ==, 1);
    g_assert_cmpuint(b.tile.counters.faults[TILE_FAULT_READ_UNDEFINED], ==, 1);
    g_assert_cmpuint(b.tile.counters.faults[TILE_FAULT_ADDRESS_RANGE], ==, 2);
    g_assert_cmpuint(b.tile.w[0].m[3], ==, 0);
    build_free(&b);
    config.permissive = false;
}

/* A fault inside a repeat body: the same record from fused and plain execution. */
static void test_in_repeat(void) {
    struct tile_fault f[2];
    for (uint32_t plain = 0; plain < 2; plain++) {
        config.plain = plain;
        begin();
        for (uint32_t k = 0; k < 10; k++) put32(&b, DATA + 4 * k, k);
        I(SETZI_M, 0, 0), I(SETZI_M, 14, 0);
        B(W(RPT_Z, 50, 1), FNOP);
        B(MNOP, FNOP);
        B(W(LD32STEP_M_S, 1, 13, 0, 1), FNOP);
        I(EXITZ, 15);
        g_assert_cmpint(run_worker(&b), ==, TILE_STOP_FAULT);
        f[plain] = b.tile.fault;
        build_free(&b);
    }
    config.plain = false;
    g_assert_cmpint(f[0].number, ==, TILE_FAULT_READ_UNWRITTEN);
    g_assert_cmpuint(f[0].cycle, ==, 6 * (3 + 2 * 10 + 1));
    g_assert_cmpmem(&f[0], sizeof f[0], &f[1], sizeof f[1]);
}

/* A program that never ends stops at the limit, and can go on from there. */
static void test_limit(void) {
    begin(), I(BRI, CODE);
    tile_start_workers(&b.tile, CODE, DATA, 6, 0);
    g_assert_cmpint(tile_run(&b.tile, 6000), ==, TILE_STOP_LIMIT);
    for (uint32_t w = 0; w < 6; w++) g_assert_cmpuint(b.tile.w[w].slots, ==, 1000);
    g_assert_cmpint(tile_run(&b.tile, 12000), ==, TILE_STOP_LIMIT);
    g_assert_cmpuint(b.tile.w[3].slots, ==, 2000);
    build_free(&b);
}

static void test_all_tested(void) {
    for (uint32_t n = 1; n < TILE_FAULT_LIMIT; n++)
        if (tile_fault_info((enum tile_fault_number)n) != NULL && !tested[n])
            g_error("fault %u %s has no test", n, tile_fault_info((enum tile_fault_number)n)->name);
}

static void test_all(void) {
    test_fetch();
    test_operands();
    test_repeat();
    test_addresses();
    test_two_addresses();
    test_access_pairs();
    test_registers();
    test_retained();
    test_launches();
    test_floating_point();
    test_races();
    test_supervisor_races();
    test_tail();
    test_tail_edges();
    test_permissive();
    test_in_repeat();
    test_limit();
    test_all_tested();
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tile/faults", test_all);
    return g_test_run();
}
