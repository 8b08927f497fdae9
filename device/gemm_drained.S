// gemm_drained: matrix products of few rows, and products that add to the stored result.
//
// Purpose    out = [out +] left x right; formats as in gemm.S
// Arguments  m2 = out, m3 = left, m4 = right, m5 = R, m6 = K groups, m7 = column groups (as in gemm.S),
//            m8 = sum of the scale exponents, 6 bits, m9 = formats as in $FP_INFMT (F8)
// Entries    gemm_drained_{f16,f8,f16s}_{init,acc}_{il,std}; f32: below; with _next before il and std: a
//            batch of matrices of one column group; _batch: of more
// Shapes     R = 1..6138, K a multiple of 16 (F8: 32), C of 16 (f16s: 8)
// Alignment  32 bytes each; out in the interleaved region if K groups > 1 or acc; out and left in
//            different memory elements. Access tail: none
// Contexts   all six workers; rows split in six contiguous blocks floor(w * R / 6), which may be empty
//
// Every launch fills the AMP pipeline and drains it. With c = 4 * row + phase, call c takes left word
// c and the partial of word c + 4, and returns result word c - 4. Three or more rows: bundle c loads
// left word c + 1 and partial word c + 5 and stores result word c - 6, so that partial and result lie
// in different elements of an interleaved pair.
// Slots of a launch: n rows >= 3: acc 4n + 15, init 4n + 13; two rows: 23, 19; one row: 16, 12;
// none: 2; the first launch 25 to 35 more, the first of a later column group 2 more, of a matrix 1.
// Numerics: per K group the F32 accumulator starts at the stored half (or zero) and is rounded to
// nearest even when the group's result is stored; f16s stores it as it is.
#include "kernel.inc"
#include "gemm.inc"

// Worker registers: m1 n - 3, m2 and m10 the bodies (acc, init) for n rows, m3 left of the current
// panel, m4:5 packed left, partial, out, m6 out of the current column group, m7 bytes of a panel,
// m9 step back to the first panel, m8 free
// a0:1 left, a2:3 partial, results a4:5, a6:7 in turn

#define STEP 0

// Four calls without left data bring in the partials of row 0 (two 128-bit loads); the bundles of
// the last three take the caller's main instructions.
.macro FILL_ACC amp
    { ld128 $a0:3, $m6, $m15, 0 ; fnop }
    { ld128 $a4:7, $m6, $m15, 1 ; \amp $a0:1, $azeros, $a0:1, TAMP_F16V4_E4_P0 }
.endm
.macro FILL_PACED amp
    FILL_ACC \amp
    { add $m8, $m6, 32 ; \amp $a0:1, $azeros, $a2:3, TAMP_F16V4_E4_P1 }
    { tapack $m4:5, $m3, $m8, $m6 ; \amp $a0:1, $azeros, $a4:5, TAMP_F16V4_E4_P2 }
    { ld2x64pace $a0:1, $a2:3, $m4:5+=, $m15, STEP ; \amp $a4:5, $azeros, $a6:7, TAMP_F16V4_E4_P3 }
.endm

.macro L2 amp, res, phase
    { ld2x64pace $a0:1, $a2:3, $m4:5+=, $m15, STEP ; \amp \res, $a0:1, $a2:3, TAMP_F16V4_E4_P\phase }
.endm
.macro L2S amp, res, phase
    { ld2xst64pace $a0:3, \res, $m4:5+=, $m15, STEP ; \amp \res, $a0:1, $a2:3, TAMP_F16V4_E4_P\phase }
.endm
.macro LS amp, res, part, phase
    { ldst64pace $a0:1, \res, $m4:5+=, $m15, STEP ; \amp \res, $a0:1, \part, TAMP_F16V4_E4_P\phase }
.endm
.macro LI amp, res, idx, phase
    { ld64 $a0:1, $m3, $m15, \idx ; \amp \res, $a0:1, $azeros, TAMP_F16V4_E4_P\phase }
.endm
.macro SC amp, res, left, phase
    { st64pace \res, $m4:5+=, $m15, STEP ; \amp \res, \left, $azeros, TAMP_F16V4_E4_P\phase }
.endm

// Calls 4n - 4 .. 4n + 3 of three or more rows, the next panel, exit.
.macro TAIL_MANY amp
    LS \amp, $a4:5, $azeros, 0
    LS \amp, $a6:7, $azeros, 1
    LS \amp, $a4:5, $azeros, 2
    SC \amp, $a6:7, $a0:1, 3
    SC \amp, $a4:5, $azeros, 0
    SC \amp, $a6:7, $azeros, 1
    SC \amp, $a4:5, $azeros, 2
    SC \amp, $a6:7, $azeros, 3
    st64pace $a4:5, $m4:5+=, $m15, STEP
    st64pace $a6:7, $m4:5+=, $m15, STEP
    add $m3, $m3, $m7
    exitz $m15
.endm

// Calls 4 .. 11 of two rows (left word 4 is loaded), results in three registers in turn.
.macro TAIL_TWO amp
    LI \amp, $a4:5, 5, 0
    LI \amp, $a6:7, 6, 1
    LI \amp, $a2:3, 7, 2
    { st64 $a4:5, $m6, $m15, 0 ; \amp $a4:5, $a0:1, $azeros, TAMP_F16V4_E4_P3 }
    { st64 $a6:7, $m6, $m15, 1 ; \amp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P0 }
    { st64 $a2:3, $m6, $m15, 2 ; \amp $a2:3, $azeros, $azeros, TAMP_F16V4_E4_P1 }
    { st64 $a4:5, $m6, $m15, 3 ; \amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P2 }
    { st64 $a6:7, $m6, $m15, 4 ; \amp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P3 }
    st64 $a2:3, $m6, $m15, 5
    st64 $a4:5, $m6, $m15, 6
    st64 $a6:7, $m6, $m15, 7
    add $m3, $m3, $m7
    exitz $m15
    nop
.endm

// Calls 0 .. 7 of one row (left word 0 is loaded, its partials are in).
.macro TAIL_ONE amp
    LI \amp, $a4:5, 1, 0
    LI \amp, $a4:5, 2, 1
    LI \amp, $a4:5, 3, 2
    { add $m3, $m3, $m7 ; \amp $a4:5, $a0:1, $azeros, TAMP_F16V4_E4_P3 }
    { nop ; \amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P0 }
    { st64 $a4:5, $m6, $m15, 0 ; \amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P1 }
    { st64 $a4:5, $m6, $m15, 1 ; \amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P2 }
    { st64 $a4:5, $m6, $m15, 2 ; \amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P3 }
    st64 $a4:5, $m6, $m15, 3
    exitz $m15
.endm

// First launch: rows, pointers, steps.
.macro DRAINED_SETUP type
    GEMM_ROWS
    shl $m8, $m8, 5
    shl $m7, $m10, 5
    ld32 $m3, ARG(1)
    add $m3, $m3, $m8
    ld32 $m6, ARG(0)
    add $m6, $m6, $m8
    .ifc \type, f32
    add $m6, $m6, $m8
    .endif
    ld32 $m9, ARG(4)
    mul $m9, $m9, $m7
    sub $m9, $m15, $m9
.endm
// A launch at the next column group: back to the first panel of left, forward to the next of out. At the
// next matrix of a batch left goes on.
.macro DRAINED_COLUMN type, mode
gemm_drained_\type\()_\mode\()_column:
    add $m3, $m3, $m9
gemm_drained_\type\()_\mode\()_next:
    add $m6, $m6, $m7
    .ifc \type, f32
    add $m6, $m6, $m7
    .endif
.endm

.macro GEMM_DRAINED_WORKERS type, amp
    KERNEL_SECTION gemm_drained_workers_\type
    .worker
gemm_drained_\type\()_setup:
    DRAINED_SETUP \type
    add $m1, $m0, -3
    setzi $m2, gemm_drained_\type\()_acc_many
    setzi $m10, gemm_drained_\type\()_init_many
    brpos $m1, gemm_drained_\type\()_go
    setzi $m2, gemm_drained_\type\()_acc_two
    setzi $m10, gemm_drained_\type\()_init_two
    add $m8, $m0, -2
    brz $m8, gemm_drained_\type\()_go
    setzi $m2, gemm_drained_\type\()_acc_one
    setzi $m10, gemm_drained_\type\()_init_one
    add $m8, $m0, -1
    brz $m8, gemm_drained_\type\()_go
    setzi $m2, gemm_drained_\type\()_idle
    setzi $m10, gemm_drained_\type\()_idle
gemm_drained_\type\()_go:
    ld32 $m11, ARG(2)
    br $m11
// The body for this worker's number of rows.
    DRAINED_COLUMN \type, acc
gemm_drained_\type\()_acc:
    br $m2
    DRAINED_COLUMN \type, init
gemm_drained_\type\()_init:
    br $m10
gemm_drained_\type\()_idle:
    exitz $m15
    .align 8
gemm_drained_\type\()_acc_many:
    FILL_PACED \amp
    L2 \amp, $a4:5, 0
    L2 \amp, $a6:7, 1
    L2 \amp, $a4:5, 2
    L2 \amp, $a6:7, 3
    L2 \amp, $a4:5, 0
    L2 \amp, $a6:7, 1
    { rpt $m1, 3 ; fnop }
    L2S \amp, $a4:5, 2
    L2S \amp, $a6:7, 3
    L2S \amp, $a4:5, 0
    L2S \amp, $a6:7, 1
    L2S \amp, $a4:5, 2
    LS \amp, $a6:7, $a2:3, 3
    TAIL_MANY \amp
gemm_drained_\type\()_acc_two:
    FILL_PACED \amp
    L2 \amp, $a4:5, 0
    L2 \amp, $a4:5, 1
    L2 \amp, $a4:5, 2
    { ld64 $a0:1, $m3, $m15, 4 ; \amp $a4:5, $a0:1, $a2:3, TAMP_F16V4_E4_P3 }
    TAIL_TWO \amp
gemm_drained_\type\()_acc_one:
    FILL_ACC \amp
    { nop ; \amp $a0:1, $azeros, $a2:3, TAMP_F16V4_E4_P1 }
    { nop ; \amp $a0:1, $azeros, $a4:5, TAMP_F16V4_E4_P2 }
    { ld64 $a0:1, $m3, $m15, 0 ; \amp $a4:5, $azeros, $a6:7, TAMP_F16V4_E4_P3 }
    TAIL_ONE \amp
gemm_drained_\type\()_init_many:
    { ld64 $a0:1, $m3, $m15, 0 ; fnop }
    LI \amp, $a4:5, 1, 0
    LI \amp, $a6:7, 2, 1
    LI \amp, $a4:5, 3, 2
    LI \amp, $a6:7, 4, 3
    LI \amp, $a4:5, 5, 0
    LI \amp, $a6:7, 6, 1
    add $m8, $m3, 56
    tapack $m4:5, $m8, $m6, $m6
    { rpt $m1, 3 ; fnop }
    LS \amp, $a4:5, $azeros, 2
    LS \amp, $a6:7, $azeros, 3
    LS \amp, $a4:5, $azeros, 0
    LS \amp, $a6:7, $azeros, 1
    LS \amp, $a4:5, $azeros, 2
    LS \amp, $a6:7, $azeros, 3
    TAIL_MANY \amp
gemm_drained_\type\()_init_two:
    { ld64 $a0:1, $m3, $m15, 0 ; fnop }
    LI \amp, $a4:5, 1, 0
    LI \amp, $a4:5, 2, 1
    LI \amp, $a4:5, 3, 2
    LI \amp, $a4:5, 4, 3
    TAIL_TWO \amp
gemm_drained_\type\()_init_one:
    { ld64 $a0:1, $m3, $m15, 0 ; fnop }
    TAIL_ONE \amp
.endm

GEMM_DRAINED_WORKERS f16, f16v4hihov4amp
GEMM_DRAINED_WORKERS f8, f8v8hihov4amp
GEMM_DRAINED_WORKERS f16s, f16v4sisoamp

// Supervisor registers: m0 entry of the next launch, m1 first of a later column group, m2 inner,
// m6 K groups - 1, m5 of them left, m7 column groups left.
.macro GEMM_DRAINED_SUPERVISOR mem
    KERNEL_SECTION gemm_drained_supervisor_\mem
    .supervisor
gemm_drained_loop_\mem:
    or $m5, $m6, 0
gemm_drained_group_\mem:
    sync 2
    LOADS_\mem
    runall $m0, $m11, 0
    or $m0, $m2, 0
    brnzdec $m5, gemm_drained_group_\mem
    or $m0, $m1, 0
    or $m5, $m6, 0
    brnzdec $m7, gemm_drained_group_\mem
    add $m11, $m11, 24
    sync 2
    br $m10
.endm

GEMM_DRAINED_SUPERVISOR il
GEMM_DRAINED_SUPERVISOR std
GEMM_DRAINED_SUPERVISOR il8
GEMM_DRAINED_SUPERVISOR std8

// A batch of matrices with several column groups: m9 first of a later matrix, m8 matrices left.
.macro GEMM_DRAINED_BATCH_SUPERVISOR mem
    KERNEL_SECTION gemm_drained_batch_supervisor_\mem
    .supervisor
gemm_drained_batch_loop_\mem:
    or $m5, $m6, 0
    st32 $m7, $m11, $m15, 5
gemm_drained_batch_group_\mem:
    sync 2
    LOADS_\mem
    runall $m0, $m11, 0
    or $m0, $m2, 0
    brnzdec $m5, gemm_drained_batch_group_\mem
    or $m0, $m1, 0
    or $m5, $m6, 0
    brnzdec $m7, gemm_drained_batch_group_\mem
    brz $m8, gemm_drained_batch_end_\mem
    ld32 $m7, $m11, $m15, 5
    add $m8, $m8, -1
    or $m0, $m9, 0
    bri gemm_drained_batch_group_\mem
gemm_drained_batch_end_\mem:
    add $m11, $m11, 24
    sync 2
    br $m10
.endm

GEMM_DRAINED_BATCH_SUPERVISOR il
GEMM_DRAINED_BATCH_SUPERVISOR std
GEMM_DRAINED_BATCH_SUPERVISOR il8
GEMM_DRAINED_BATCH_SUPERVISOR std8

// First launch: set-up, then \mode; inner launches add to what is stored. \later: worker entry at a later
// column group, or matrix of one; batch: matrices of several column groups.
.macro GEMM_DRAINED_ENTRY name, type, mode, loads, later, batch
    KERNEL_SECTION \name
    .supervisor
    KERNEL_GLOBAL \name
    GEMM_BEGIN \type
    .if \batch
    GEMM_BATCH
    .endif
    setzi $m1, gemm_drained_\type\()_\mode
    setzi $m0, gemm_drained_\type\()_setup
    GEMM_FRAME
    .if \batch
    GEMM_BATCH_COLUMNS
    .endif
    st32 $m1, $m11, $m15, 2
    setzi $m1, gemm_drained_\type\()_\mode\()_\later
    setzi $m2, gemm_drained_\type\()_acc
    .if \batch
    setzi $m9, gemm_drained_\type\()_\mode\()_next
    add $m8, $m8, -1
    .endif
    add $m6, $m6, -1
    add $m7, $m7, -1
    .if \batch
    bri gemm_drained_batch_loop_\loads
    .else
    bri gemm_drained_loop_\loads
    .endif
.endm
.macro GEMM_DRAINED_MODE type, mode, mem, loads
    GEMM_DRAINED_ENTRY gemm_drained_\type\()_\mode\()_\mem, \type, \mode, \loads, column, 0
    GEMM_DRAINED_ENTRY gemm_drained_\type\()_\mode\()_next_\mem, \type, \mode, \loads, next, 0
    GEMM_DRAINED_ENTRY gemm_drained_\type\()_\mode\()_batch_\mem, \type, \mode, \loads, column, 1
.endm
.macro GEMM_DRAINED_ENTRIES type, suffix
    GEMM_DRAINED_MODE \type, init, il, il\suffix
    GEMM_DRAINED_MODE \type, init, std, std\suffix
    GEMM_DRAINED_MODE \type, acc, il, il\suffix
    GEMM_DRAINED_MODE \type, acc, std, std\suffix
.endm

GEMM_DRAINED_ENTRIES f16
GEMM_DRAINED_ENTRIES f8
GEMM_DRAINED_ENTRIES f16s, 8

// F32 products: left A8 [K / 8][R][8] of floats, right panels of 8 x 16 floats (512 bytes, column after
// column), out [C / 16][R][16] of floats. Entries gemm_drained_f32_{init,acc}_{il,std}; every operand may
// stand in either region (64-bit accesses only) but the right operand of il.
// Slots of a launch of n rows: init 20 n + 26, acc 20 n + 30 (one row: 43); none 2.
// Numerics: acc = acc + x * w, rounded once per product, k ascending.
//
// Worker registers beside those above: m0 n - 1, m1 n - 2, m4 left, m5 partials, m8 results running
// a0:1 two left values, a4:5 partial pair, a2:3 and a6:7 results
.macro F32_TWO load, store, p, q
    { ld64step $a0:1, $m15, $m4+=, 1 ; fnop }
    .if \load
    { ld64step $a4:5, $m15, $m5+=, 1 ; fnop }
    { ld64step $a4:5, $m15, $m5+=, 1 ; f32sisov2amp $a6:7, $a0, $a4:5, TAMP_F32_E4_P\p }
    .else
    { nop ; f32sisov2amp $a6:7, $a0, $azeros, TAMP_F32_E4_P\p }
    .endif
    .if \load
    .if \store
    { st64step $a6:7, $m15, $m8+=, 1 ; f32sisov2amp $a2:3, $a1, $a4:5, TAMP_F32_E4_P\q }
    .else
    { nop ; f32sisov2amp $a2:3, $a1, $a4:5, TAMP_F32_E4_P\q }
    .endif
    .else
    .if \store
    { st64step $a6:7, $m15, $m8+=, 1 ; f32sisov2amp $a2:3, $a1, $azeros, TAMP_F32_E4_P\q }
    .else
    { nop ; f32sisov2amp $a2:3, $a1, $azeros, TAMP_F32_E4_P\q }
    .endif
    .endif
    .if \store
    { st64step $a2:3, $m15, $m8+=, 1 ; fnop }
    .endif
.endm
.macro F32_ROW load, store
    F32_TWO \load, \store, 0, 1
    F32_TWO \load, \store, 2, 3
    F32_TWO \load, \store, 4, 5
    F32_TWO \load, \store, 6, 7
.endm
.macro F32_FILL p
    { ld64step $a4:5, $m15, $m5+=, 1 ; f32sisov2amp $a6:7, $azero, $a4:5, TAMP_F32_E4_P\p }
.endm
.macro F32_DRAIN p
    { st64step $a6:7, $m15, $m8+=, 1 ; f32sisov2amp $a6:7, $azero, $azeros, TAMP_F32_E4_P\p }
.endm

    KERNEL_SECTION gemm_drained_workers_f32
    .worker
gemm_drained_f32_setup:
    DRAINED_SETUP f32
    setzi $m2, gemm_drained_f32_idle
    setzi $m10, gemm_drained_f32_idle
    brz $m0, gemm_drained_f32_go
    setzi $m2, gemm_drained_f32_acc_body
    setzi $m10, gemm_drained_f32_init_body
    add $m1, $m0, -2
    add $m0, $m0, -1
gemm_drained_f32_go:
    ld32 $m11, ARG(2)
    br $m11
    DRAINED_COLUMN f32, acc
gemm_drained_f32_acc:
    br $m2
    DRAINED_COLUMN f32, init
gemm_drained_f32_init:
    br $m10
gemm_drained_f32_idle:
    exitz $m15
    .align 8
gemm_drained_f32_acc_body:
    { mov $m5, $m6 ; fnop }
    { ld64step $a4:5, $m15, $m5+=, 1 ; fnop }
    F32_FILL 0
    F32_FILL 1
    F32_FILL 2
    F32_FILL 3
    F32_FILL 4
    F32_FILL 5
    F32_FILL 6
    { mov $m4, $m3 ; f32sisov2amp $a6:7, $azero, $a4:5, TAMP_F32_E4_P7 }
    { mov $m8, $m6 ; fnop }
    brz $m0, gemm_drained_f32_acc_one
    nop
    F32_ROW 1, 0
    { rpt $m1, 19 ; fnop }
    F32_ROW 1, 1
    F32_ROW 0, 1
    bri gemm_drained_f32_drain
    nop
gemm_drained_f32_init_body:
    { mov $m4, $m3 ; fnop }
    { mov $m8, $m6 ; fnop }
    F32_ROW 0, 0
    { rpt $m0, 15 ; fnop }
    F32_ROW 0, 1
gemm_drained_f32_drain:
    { add $m3, $m3, $m7 ; f32sisov2amp $a6:7, $azero, $azeros, TAMP_F32_E4_P0 }
    F32_DRAIN 1
    F32_DRAIN 2
    F32_DRAIN 3
    F32_DRAIN 4
    F32_DRAIN 5
    F32_DRAIN 6
    F32_DRAIN 7
    st64step $a6:7, $m15, $m8+=, 1
    exitz $m15
gemm_drained_f32_acc_one:
    F32_ROW 0, 0
    bri gemm_drained_f32_drain

GEMM_DRAINED_ENTRIES f32
