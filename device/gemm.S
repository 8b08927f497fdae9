// gemm: matrix products, initialise mode; F16 and F8 operands with F16 result, F16 with F32 result.
//
// Purpose    out = left x right; left AMP-left A16 (F16) or A32 (F8) [R][K]; right panels of 512 bytes,
//            column group outer, K group inner (kernels 1.3, 1.5); out AMP-left A16 [R][C] of halves.
//            f16s: right in panels of 16 x 8 halves (256 bytes), column groups of 8; out AMP-left A8
//            [R][C] of floats
// Arguments  m2 = out, m3 = left, m4 = right, m5 = R, m6 = K groups, m7 = column groups (_next: matrices;
//            _batch: column groups | matrices << 12), m8 = sum of the scale exponents, 6 bits, m9 = formats as in $FP_INFMT (F8)
// Entries    gemm_{f16,f8,f16s}_{il,std}: two or more K groups; gemm_{f16,f8,f16s}_k1_{il,std}: one.
//            gemm_f16_packed_{il,std}: below
//            with _next before il and std: a batch of matrices of one column group; _batch: of more
//            il: right in the interleaved region (128-bit coefficient loads); std: anywhere
// Shapes     R = 18..768 (every worker has 3..128 rows), K a multiple of 16 (F8: 32), C of 16 (f16s: 8)
// Alignment  32 bytes each; out in the interleaved region if K groups > 1; out and left in
//            different memory elements. Access tail: none
// Contexts   all six workers; rows split in six contiguous blocks floor(w * R / 6)
//
// The AMP pipeline never drains between coefficient groups. The rows of a worker go round and round:
// while the last row of one K group is in the unit, the partials of the first row of the next K group
// are already shifted in, and the results of the last row leave during the first row of the next
// launch (accumulators and registers survive between launches, isa 1.5). With c = 4 * row + phase
// counting the AMP calls of a launch and idx = 8-byte words of the worker's rows, bundle c
//     loads    left idx c + 1 and partial idx c + 5  (mod 4n)
//     computes call c
//     stores   result idx c - 6 (mod 4n), made two bundles earlier: partial and result then lie in
//              different elements of an interleaved pair
// so a launch of n rows takes 4n + 3 slots: 4n bundles, the step to the next panel, rpt, exit.
//
//   launch          partials of rows 1..   partials of the next launch's row 0   extra slots
//   im  first of K  zero                   read                                  2: next out column
//   am  inner       read                   read                                  -
//   az  last of K   read                   zero                                  -
//   ad  last of all read                   zero                                  5: drain
//   iz  only K      zero                   zero                                  2
//   id  only, last  zero                   zero                                  7
//   ab  like az, then the next matrix of a batch                                 2
//   ib  like iz, then the next matrix                                            4
//
// Per group the supervisor executes sync, 32 (64; f16s: half as many) coefficient loads, runall, one register move and one
// branch; the last two and the sync hide behind the workers.
// Numerics: per K group the F32 accumulator starts at the stored half and is rounded to nearest even
// when the group's result is stored; f16s stores it as it is. The first launch stores zeros in its own last rows of column
// group 0, which the same launch overwrites.
#include "kernel.inc"
#include "gemm.inc"

// Worker registers: m0 n - 3, m1 stride word (1 - 4n), m2 step to the next panel, m4:5 packed left,
// partial, out, m6 out of the current column group, m7 bytes of a panel, m8 left + 56,
// m9 step back to the first panel. a0:1 left, a2:3 partial, a4:5 and a6:7 results in turn.

// Stride selectors: load step | second load step << 2 | store step << 4; 1 = by the stride word.
#define STEP 0
#define WRAP_LOAD1 4
#define WRAP_STORE3 16
#define WRAP_STORE2 4

// Two loads, store, call with the loaded partials (PP) or zero partials (PZ).
.macro PP amp, res, phase, sel
    { ld2xst64pace $a0:3, \res, $m4:5+=, $m1, \sel ; \amp \res, $a0:1, $a2:3, TAMP_F16V4_E4_P\phase }
.endm
.macro PZ amp, res, phase, sel
    { ld2xst64pace $a0:3, \res, $m4:5+=, $m1, \sel ; \amp \res, $a0:1, $azeros, TAMP_F16V4_E4_P\phase }
.endm
// One load, store, call.
.macro LP amp, res, phase
    { ldst64pace $a0:1, \res, $m4:5+=, $m1, STEP ; \amp \res, $a0:1, $a2:3, TAMP_F16V4_E4_P\phase }
.endm
.macro LZ amp, res, phase
    { ldst64pace $a0:1, \res, $m4:5+=, $m1, STEP ; \amp \res, $a0:1, $azeros, TAMP_F16V4_E4_P\phase }
.endm
// Store, call: last left word of the call, then drain.
.macro SZ amp, res, phase
    { st64pace \res, $m4:5+=, $m1, STEP ; \amp \res, $a0:1, $azeros, TAMP_F16V4_E4_P\phase }
.endm
.macro SD amp, res, phase
    { st64pace \res, $m4:5+=, $m1, STEP ; \amp \res, $azeros, $azeros, TAMP_F16V4_E4_P\phase }
.endm

// Four bundles from phase 2 on; init: partials zero, else read.
.macro FOUR amp, init
    .if \init
    LZ \amp, $a4:5, 2
    LZ \amp, $a6:7, 3
    LZ \amp, $a4:5, 0
    LZ \amp, $a6:7, 1
    .else
    PP \amp, $a4:5, 2, STEP
    PP \amp, $a6:7, 3, STEP
    PP \amp, $a4:5, 0, STEP
    PP \amp, $a6:7, 1, STEP
    .endif
.endm
// Bundles 0..5. init: the results of the previous column group leave in them, then out steps by \column.
.macro HEAD amp, init, column
    .if \init
    LZ \amp, $a4:5, 0
    LZ \amp, $a6:7, 1
    FOUR \amp, 1
    { add $m6, $m6, \column ; fnop }
    { tapack $m4:5, $m8, $m6, $m6 ; fnop }
    .else
    PP \amp, $a4:5, 0, STEP
    PP \amp, $a6:7, 1, STEP
    PP \amp, $a4:5, 2, STEP
    PP \amp, $a6:7, 3, STEP
    PP \amp, $a4:5, 0, STEP
    PP \amp, $a6:7, 1, WRAP_STORE3
    .endif
.endm
// Bundles 0..5 and the loop over 4 (n - 3) bundles.
.macro BODY amp, init
    HEAD \amp, \init, $m7
    { rpt $m0, 3 ; fnop }
    FOUR \amp, \init
.endm
// Bundles 4n - 4 .. 4n - 1 with partials of the next launch's first row.
.macro NEXT_READ amp
    PP \amp, $a4:5, 0, STEP
    PP \amp, $a6:7, 1, STEP
    PP \amp, $a4:5, 2, STEP
    { add $m4, $m4, $m2 ; fnop }
    PP \amp, $a6:7, 3, STEP
    exitz $m15
    nop
.endm
// With zero partials, back to the first panel.
.macro NEXT_ZERO amp
    LZ \amp, $a4:5, 0
    LZ \amp, $a6:7, 1
    LZ \amp, $a4:5, 2
    { add $m4, $m4, $m9 ; fnop }
    LZ \amp, $a6:7, 3
    exitz $m15
    nop
.endm
// With zero partials, on to the first panel of the next matrix.
.macro NEXT_MATRIX amp
    LZ \amp, $a4:5, 0
    LZ \amp, $a6:7, 1
    LZ \amp, $a4:5, 2
    { add $m4, $m4, $m2 ; fnop }
    { add $m8, $m8, $m2 ; fnop }
    { sub $m8, $m8, $m9 ; fnop }
    LZ \amp, $a6:7, 3
    exitz $m15
    nop
.endm
// Last launch: drain.
.macro NEXT_NONE amp
    LZ \amp, $a4:5, 0
    LZ \amp, $a6:7, 1
    LZ \amp, $a4:5, 2
    SZ \amp, $a6:7, 3
    SD \amp, $a4:5, 0
    SD \amp, $a6:7, 1
    SD \amp, $a4:5, 2
    SD \amp, $a6:7, 3
    st64pace $a4:5, $m4:5+=, $m1, STEP
    st64pace $a6:7, $m4:5+=, $m1, STEP
    exitz $m15
    nop
.endm

// Bundles 4n - 6 .. of each kind of launch; \next: what follows, with zero partials.
.macro END_IM amp
    LZ \amp, $a4:5, 2
    PZ \amp, $a6:7, 3, STEP
    NEXT_READ \amp
.endm
.macro END_AM amp
    PP \amp, $a4:5, 2, WRAP_LOAD1
    PP \amp, $a6:7, 3, STEP
    NEXT_READ \amp
.endm
.macro END_ACC amp, next
    PP \amp, $a4:5, 2, STEP
    LP \amp, $a6:7, 3
    \next \amp
.endm
.macro END_INIT amp, next
    LZ \amp, $a4:5, 2
    LZ \amp, $a6:7, 3
    \next \amp
.endm

// Set-up of the first launch, then the entry named in the frame.
// Frame: 0 out, 1 left, 2 first entry, 3 R, 4 K groups
.macro GEMM_SETUP name
\name:
    GEMM_ROWS
    { shl $m8, $m8, 5 ; zero $a4:5 }
    { shl $m7, $m10, 5 ; zero $a6:7 }
    ld32 $m3, ARG(1)
    add $m3, $m3, $m8
    ld32 $m6, ARG(0)
    add $m6, $m6, $m8
    shl $m9, $m0, 5
    sub $m2, $m7, $m9
    add $m11, $m6, $m9
    add $m11, $m11, -48
    ld32 $m8, ARG(4)
    mul $m8, $m8, $m7
    sub $m9, $m2, $m8
    shl $m1, $m0, 2
    sub $m1, 1, $m1
    add $m0, $m0, -3
    sub $m6, $m6, $m7
    add $m10, $m3, 8
    tapack $m4:5, $m10, $m10, $m11
    add $m8, $m3, 56
    ld64 $a0:1, $m3, $m15, 0
    ld32 $m10, ARG(2)
    br $m10
.endm

.macro GEMM_WORKERS type, amp
    KERNEL_SECTION gemm_workers_\type
    .worker
    GEMM_SETUP gemm_\type\()_setup
    .align 8
gemm_\type\()_im:
    BODY \amp, 1
    END_IM \amp
gemm_\type\()_am:
    BODY \amp, 0
    END_AM \amp
gemm_\type\()_az:
    BODY \amp, 0
    END_ACC \amp, NEXT_ZERO
gemm_\type\()_ad:
    BODY \amp, 0
    END_ACC \amp, NEXT_NONE
gemm_\type\()_iz:
    BODY \amp, 1
    END_INIT \amp, NEXT_ZERO
gemm_\type\()_id:
    BODY \amp, 1
    END_INIT \amp, NEXT_NONE
// Only batches link these.
    KERNEL_SECTION gemm_workers_batch_\type
    .worker
gemm_\type\()_ab:
    BODY \amp, 0
    END_ACC \amp, NEXT_MATRIX
gemm_\type\()_ib:
    BODY \amp, 1
    END_INIT \amp, NEXT_MATRIX
.endm

GEMM_WORKERS f16, f16v4hihov4amp
GEMM_WORKERS f8, f8v8hihov4amp
GEMM_WORKERS f16s, f16v4sisoamp

// Packed result (F16, two or more K groups): 16 rows x 16 columns of out are a coefficient panel of a
// following product, out = base + (row / 16) * step + column group * 512 + (row mod 16) * 32 bytes (kernels
// 1.7), step = m8. R a multiple of 16, 32..768; workers take blocks of rows floor(w * R / 24) * 4.
// The rows of a worker are cut at the panels into segments of 4..16 rows. Partial and result pointers step
// over the gap by field 2 of the stride word, each when it gets there: 12 bundles around a boundary. A
// launch takes 1 slot more than above, and with B boundaries 2 B + 1 more. All rows of a worker must lie
// within 511 words.
// Worker registers beside those above: m0 rows of the first segment - 3, m3 boundaries left, m7 rows of the
// last segment - 3, m10 boundaries.
#define JUMP_LOAD1 8
#define JUMP_STORE3 32
#define JUMP_STORE2 8
.macro LZ_JUMP amp, res, phase
    { ldst64pace $a0:1, \res, $m4:5+=, $m1, JUMP_STORE2 ; \amp \res, $a0:1, $azeros, TAMP_F16V4_E4_P\phase }
.endm

// \count rows - 3 of a segment.
.macro PACKED_ROWS amp, init, count
    { rpt \count, 3 ; fnop }
    FOUR \amp, \init
.endm
// From the last rows of a segment to the first ones of the next.
.macro PACKED_BOUNDARY amp, init
    .if \init
    FOUR \amp, 1
    FOUR \amp, 1
    LZ \amp, $a4:5, 2
    LZ \amp, $a6:7, 3
    LZ \amp, $a4:5, 0
    LZ_JUMP \amp, $a6:7, 1
    .else
    PP \amp, $a4:5, 2, JUMP_LOAD1
    PP \amp, $a6:7, 3, STEP
    PP \amp, $a4:5, 0, STEP
    PP \amp, $a6:7, 1, STEP
    FOUR \amp, 0
    PP \amp, $a4:5, 2, STEP
    PP \amp, $a6:7, 3, STEP
    PP \amp, $a4:5, 0, STEP
    PP \amp, $a6:7, 1, JUMP_STORE3
    .endif
.endm
// What BODY is for one segment.
.macro PACKED_BODY amp, init, name
    HEAD \amp, \init, 512
    PACKED_ROWS \amp, \init, $m0
    { brz $m10, \name\()_end ; fnop }
    { add $m3, $m10, -2 ; fnop }
    { brneg $m3, \name\()_last ; fnop }
\name\()_middle:
    PACKED_BOUNDARY \amp, \init
    PACKED_ROWS \amp, \init, 13
    { brnzdec $m3, \name\()_middle ; fnop }
\name\()_last:
    PACKED_BOUNDARY \amp, \init
    PACKED_ROWS \amp, \init, $m7
\name\()_end:
.endm

    KERNEL_SECTION gemm_workers_f16_packed
    .worker
// Frame: as above, 5 step
gemm_f16_packed_setup:
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m10, ARG(3)
    setzi $m9, SIXTH
    shr $m8, $m10, 2
    mul $m9, $m9, $m8
    mul $m8, $m9, $m11
    add $m9, $m9, $m8
    shr $m8, $m8, SIXTH_SHIFT
    shl $m7, $m10, 5
    { shr $m9, $m9, SIXTH_SHIFT ; setzi $a0, ZAACC }
    { sub $m0, $m9, $m8 ; uput $FP_CLR, $a0 }
    { shl $m0, $m0, 2 ; zero $a4:5 }
    { shl $m8, $m8, 2 ; zero $a6:7 }
    ld32 $m3, ARG(1)
    shl $m9, $m8, 5
    add $m3, $m3, $m9
    shl $m9, $m0, 5
    sub $m2, $m7, $m9
    ld32 $m6, ARG(0)
    ld32 $m10, ARG(5)
    shr $m9, $m8, 4
    mul $m11, $m9, $m10
    add $m6, $m6, $m11
    and $m8, $m8, 15
    shl $m11, $m8, 5
    add $m6, $m6, $m11
    add $m11, $m8, $m0
    add $m11, $m11, -1
    shr $m11, $m11, 4
    add $m10, $m10, -512
    mul $m5, $m11, $m10
    shl $m4, $m0, 5
    add $m4, $m4, $m5
    shr $m1, $m4, 3
    sub $m1, 1, $m1
    shl $m1, $m1, 22
    shr $m1, $m1, 22
    shr $m9, $m10, 3
    add $m9, $m9, 1
    shl $m9, $m9, 10
    or $m1, $m1, $m9
    add $m4, $m4, $m6
    add $m4, $m4, -48
    ld32 $m9, ARG(4)
    mul $m9, $m9, $m7
    sub $m9, $m2, $m9
    sub $m5, 16, $m8
    min $m5, $m5, $m0
    sub $m7, $m0, $m5
    shl $m8, $m11, 4
    sub $m7, $m7, $m8
    add $m7, $m7, 13
    add $m0, $m5, -3
    mov $m10, $m11
    add $m6, $m6, -512
    add $m5, $m3, 8
    tapack $m4:5, $m5, $m5, $m4
    add $m8, $m3, 56
    ld64 $a0:1, $m3, $m15, 0
    ld32 $m11, ARG(2)
    br $m11
    .align 8
gemm_f16_packed_im:
    PACKED_BODY f16v4hihov4amp, 1, gemm_f16_packed_im
    END_IM f16v4hihov4amp
gemm_f16_packed_am:
    PACKED_BODY f16v4hihov4amp, 0, gemm_f16_packed_am
    END_AM f16v4hihov4amp
gemm_f16_packed_az:
    PACKED_BODY f16v4hihov4amp, 0, gemm_f16_packed_az
    END_ACC f16v4hihov4amp, NEXT_ZERO
gemm_f16_packed_ad:
    PACKED_BODY f16v4hihov4amp, 0, gemm_f16_packed_ad
    END_ACC f16v4hihov4amp, NEXT_NONE

// Supervisor registers: m0 entry of the next launch, m1 first, m2 inner, m3 last, m9 final entry,
// m4 inner launches - 1 of a column group, m5 of them left, m7 column groups left.
.macro GEMM_SUPERVISOR mem
    KERNEL_SECTION gemm_supervisor_\mem
    .supervisor
// Entered with m0, m1, m8 (inner), m9, m6 (last) set by GEMM_ENTRY; frame words 0, 1, 3, 4 stored.
gemm_loop_k1_\mem:
    add $m5, $m7, -1
    add $m4, $m7, -2
    or $m3, $m0, 0
    setzi $m7, 0
    brnz $m5, gemm_loop_\mem
    st32 $m9, $m11, $m15, 2
    bri gemm_last_\mem
gemm_loop_\mem:
    st32 $m1, $m11, $m15, 2
    or $m5, $m4, 0
gemm_group_\mem:
    sync 2
    LOADS_\mem
    runall $m0, $m11, 0
    or $m0, $m2, 0
    brnzdec $m5, gemm_group_\mem
    brnz $m7, gemm_last_\mem
    or $m3, $m9, 0
gemm_last_\mem:
    sync 2
    LOADS_\mem
    runall $m3, $m11, 0
    or $m0, $m1, 0
    or $m5, $m4, 0
    brnzdec $m7, gemm_group_\mem
    add $m11, $m11, 24
    sync 2
    br $m10
.endm

GEMM_SUPERVISOR il
GEMM_SUPERVISOR std
GEMM_SUPERVISOR il8
GEMM_SUPERVISOR std8

// The same for a batch of matrices with several column groups: m6 last of a column group, m9 last of a
// matrix, in the last matrix the final entry; m8 matrices left.
.macro GEMM_BATCH_SUPERVISOR mem
    KERNEL_SECTION gemm_batch_supervisor_\mem
    .supervisor
gemm_batch_loop_\mem:
    st32 $m1, $m11, $m15, 2
    or $m5, $m4, 0
    or $m3, $m6, 0
    st32 $m7, $m11, $m15, 5
gemm_batch_group_\mem:
    sync 2
    LOADS_\mem
    runall $m0, $m11, 0
    or $m0, $m2, 0
    brnzdec $m5, gemm_batch_group_\mem
    brnz $m7, gemm_batch_last_\mem
    or $m3, $m9, 0
gemm_batch_last_\mem:
    sync 2
    LOADS_\mem
    runall $m3, $m11, 0
    or $m0, $m1, 0
    or $m5, $m4, 0
    or $m3, $m6, 0
    brnzdec $m7, gemm_batch_group_\mem
    brz $m8, gemm_batch_end_\mem
    ld32 $m7, $m11, $m15, 5
    add $m8, $m8, -1
    brnz $m8, gemm_batch_group_\mem
    ld32 $m9, $m11, $m15, 6
    bri gemm_batch_group_\mem
gemm_batch_end_\mem:
    add $m11, $m11, 32
    sync 2
    br $m10
.endm

GEMM_BATCH_SUPERVISOR il
GEMM_BATCH_SUPERVISOR std
GEMM_BATCH_SUPERVISOR il8
GEMM_BATCH_SUPERVISOR std8

// \name: symbol; \loads: the coefficient loads of this type; \last, \first: worker entries.
.macro GEMM_ENTRY name, type, loads, last
    KERNEL_SECTION \name
    .supervisor
    KERNEL_GLOBAL \name
    GEMM_BEGIN \type
    add $m4, $m6, -2
    setzi $m0, gemm_\type\()_setup
    setzi $m1, gemm_\type\()_im
    setzi $m9, gemm_\type\()_ad
    GEMM_FRAME
    .ifc \type, f16_packed
    st32 $m8, $m11, $m15, 5
    .endif
    setzi $m2, gemm_\type\()_am
    setzi $m3, gemm_\type\()_\last
    add $m7, $m7, -1
    bri gemm_loop_\loads
.endm
.macro GEMM_ENTRY_K1 name, type, loads, first
    KERNEL_SECTION \name
    .supervisor
    KERNEL_GLOBAL \name
    GEMM_BEGIN \type
    setzi $m0, gemm_\type\()_setup
    setzi $m1, gemm_\type\()_\first
    setzi $m9, gemm_\type\()_id
    GEMM_FRAME
    or $m2, $m1, 0
    bri gemm_loop_k1_\loads
.endm
.macro GEMM_BATCH_ENTRY type, mem, loads
    KERNEL_SECTION gemm_\type\()_batch_\mem
    .supervisor
    KERNEL_GLOBAL gemm_\type\()_batch_\mem
    GEMM_BEGIN \type, 32
    GEMM_BATCH
    setzi $m0, gemm_\type\()_setup
    setzi $m1, gemm_\type\()_im
    setzi $m9, gemm_\type\()_ad
    GEMM_FRAME
    GEMM_BATCH_COLUMNS
    st32 $m9, $m11, $m15, 6
    add $m4, $m6, -2
    setzi $m2, gemm_\type\()_am
    setzi $m6, gemm_\type\()_az
    setzi $m9, gemm_\type\()_ab
    add $m8, $m8, -1
    add $m7, $m7, -1
    bri gemm_batch_loop_\loads
// One K group: the column groups are the inner loop, the matrices the outer one.
    KERNEL_SECTION gemm_\type\()_k1_batch_\mem
    .supervisor
    KERNEL_GLOBAL gemm_\type\()_k1_batch_\mem
    GEMM_BEGIN \type
    GEMM_BATCH
    setzi $m0, gemm_\type\()_setup
    setzi $m1, gemm_\type\()_iz
    setzi $m9, gemm_\type\()_id
    GEMM_FRAME
    GEMM_BATCH_COLUMNS
    setzi $m3, gemm_\type\()_ib
    or $m2, $m1, 0
    add $m4, $m7, -2
    add $m7, $m8, -1
    bri gemm_loop_\loads
.endm
.macro GEMM_ENTRIES type, mem, loads
    GEMM_ENTRY gemm_\type\()_\mem, \type, \loads, az
    GEMM_ENTRY gemm_\type\()_next_\mem, \type, \loads, ab
    GEMM_ENTRY_K1 gemm_\type\()_k1_\mem, \type, \loads, iz
    GEMM_ENTRY_K1 gemm_\type\()_k1_next_\mem, \type, \loads, ib
    GEMM_BATCH_ENTRY \type, \mem, \loads
.endm

GEMM_ENTRY gemm_f16_packed_il, f16_packed, il, az
GEMM_ENTRY gemm_f16_packed_std, f16_packed, std, az
GEMM_ENTRIES f16, il, il
GEMM_ENTRIES f16, std, std
GEMM_ENTRIES f8, il, il
GEMM_ENTRIES f8, std, std
GEMM_ENTRIES f16s, il, il8
GEMM_ENTRIES f16s, std, std8
