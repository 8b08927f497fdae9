// add_norm_f16: sum = left + right and its layer normalisation, out = (sum - mean) / sqrt(var +
// 1e-6) * gamma + beta, over whole rows (a residual and the normalisation behind it).
//
// Entries    add_norm_f16: every worker takes whole rows w, w + 6, ... in one launch
//            add_norm_f16_split: six workers share every row, two launches per row (few rows)
// Arguments  m2 = out, m3 = sum, m4 = left, m5 = right, m6 = gamma, m7 = beta, m8 = R, m9 = G |
//            panels << 12 (panels 1: A16 panels, 0: row-major)
// Shapes     R >= 1, G >= 1 panels of 16 columns (split: G >= 6); left, right, sum in the
//            interleaved region, 16-byte aligned (128-bit loads); out, gamma, beta 8-byte aligned,
//            anywhere; sum may be left or right
// Scratch    16 bytes at the worker base; split: 96 bytes in the supervisor's frame
// Access tail none. Contexts: all six workers
// Slots      44 G a row and a constant: 10 G addition, store and sum (norm.inc NORM_ADD), 6 G
//            squares, 28 G apply
// Numerics   the sum rounds to half; then as norm_f16 of it
#include "kernel.inc"
#include "norm.inc"

// m5 G, m9 bytes from panel to panel, m10 from row to row; m1, m2 used
.macro ADD_NORM_SHAPE
    ld32 $m5, ARG(7)
    ld32 $m1, ARG(6)
    shr $m2, $m5, 12
    and $m5, $m5, 4095
    shl $m10, $m5, 5
    setzi $m9, 32
    shl $m1, $m1, 5
    movnz $m10, $m2, $m9
    movnz $m9, $m2, $m1
.endm
// sum and its statistics over m5 panels from offset m1: m2 = address of sum there, m5 - 1 panels then.
// \epsilon as in NORM_VARIANCE. m3, m4, m6, m7, m8, m10, m11 used.
.macro ADD_NORM_MOMENTS epsilon
    { shr $m7, $m9, 4 ; fnop }
    { add $m7, $m7, -1 ; fnop }
    { shr $m8, $m9, 3 ; fnop }
    { add $m8, $m8, -3 ; fnop }
    { ld32 $m2, ARG(2) ; fnop }
    { ld32 $m3, ARG(3) ; fnop }
    { ld32 $m4, ARG(1) ; fnop }
    { mov $m10, $m1 ; fnop }
    { mov $m11, $m1 ; fnop }
    NORM_ADD $m2, $m3, $m4, $m10, $m11, $m5, $m7, $m8
    { add $m2, $m4, $m1 ; fnop }
    { mov $m10, $m2 ; fnop }
    { add $m5, $m5, -1 ; fnop }
    NORM_DEVIATIONS $m2
    NORM_VARIANCE \epsilon
.endm

KERNEL_ENTRY add_norm_f16, add_norm_f16_worker, 8

// m0 rows left - 1, m1 offset of the row, m5 G, m9 bytes from panel to panel
// scratch 0 1 / columns, 4 epsilon, 8 step of m1
add_norm_f16_worker:
    ADD_NORM_SHAPE
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m0, ARG(6)
    sub $m0, $m0, $m11
    add $m0, $m0, 5
    setzi $m1, SIXTH
    mul $m0, $m0, $m1
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, add_norm_f16_exit
    add $m0, $m0, -1
    mul $m1, $m10, $m11
    mul $m10, $m10, 6
    st32 $m10, SCRATCH(2)
    shl $m10, $m5, 4
    st32 $m10, SCRATCH(0)
    { ld32 $a0, SCRATCH(0) ; setzi $a1, ZAACC }
    { nop ; uput $FP_CLR, $a1 }
    { nop ; f32fromui32 $a0, $a0 }
    { nop ; f32oox $a0, $a0 }
    { st32 $a0, SCRATCH(0) ; setzi $a1, EPSILON_LO }
    { nop ; or $a1, $a1, EPSILON_HI }
    { st32 $a1, SCRATCH(1) ; fnop }
add_norm_f16_row:
    ADD_NORM_MOMENTS 1
    NORM_SCALE
    { ld32 $m3, ARG(4) ; fnop }
    { ld32 $m4, ARG(5) ; fnop }
    { ld32 $m11, ARG(0) ; fnop }
    { add $m11, $m11, $m1 ; fnop }
    NORM_APPLY
    ld32 $m10, SCRATCH(2)
    add $m1, $m1, $m10
    add $m5, $m5, 1
    brnzdec $m0, add_norm_f16_row
add_norm_f16_exit:
    exitz $m15

// Split: the supervisor walks over the rows. Frame: 0..7 as above (0 to 3 advance), 8..31 six times
// (mean, sum of squared deviations, columns, -).
    KERNEL_SECTION add_norm_f16_split
    .supervisor
    KERNEL_GLOBAL add_norm_f16_split
    add $m11, $m11, -128
    and $m1, $m9, 4095
    shr $m0, $m9, 12
    nop
    nop
    nop
    nop
    nop
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    st32 $m9, $m11, $m15, 7
    setzi $m9, 32
    shl $m6, $m1, 5
    add $m8, $m8, -1
    setzi $m1, add_norm_f16_split_apply
    nop
    nop
    nop
    nop
    movnz $m6, $m0, $m9
    setzi $m0, add_norm_f16_split_moments
add_norm_f16_split_row:
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    runall $m0, $m11, 0
    add $m2, $m2, $m6
    add $m3, $m3, $m6
    add $m4, $m4, $m6
    add $m5, $m5, $m6
    sync 2
    runall $m1, $m11, 0
    sync 2
    brnzdec $m8, add_norm_f16_split_row
    add $m11, $m11, 128
    br $m10
    .size add_norm_f16_split, . - add_norm_f16_split
    .worker
    .align 8
// Panels of worker m11: floor(w G / 6) to floor((w + 1) G / 6): m5 of them from m10 on; m9 panel step
.macro ADD_NORM_SHARE
    ADD_NORM_SHAPE
    get $m11, $WSR
    and $m11, $m11, 7
    setzi $m8, SIXTH
    mul $m8, $m8, $m5
    mul $m10, $m8, $m11
    add $m8, $m10, $m8
    shr $m10, $m10, SIXTH_SHIFT
    shr $m8, $m8, SIXTH_SHIFT
.endm
add_norm_f16_split_moments:
    ADD_NORM_SHARE
    sub $m5, $m8, $m10
    mul $m1, $m10, $m9
    shl $m0, $m5, 4
    st32 $m0, SCRATCH(0)
    shl $m0, $m11, 4
    { add $m0, $m0, $m13 ; setzi $a1, ZAACC }
    { ld32 $a0, SCRATCH(0) ; uput $FP_CLR, $a1 }
    { nop ; f32fromui32 $a0, $a0 }
    { st32 $a0, $m0, $m15, 10 ; f32oox $a1, $a0 }
    { st32 $a1, SCRATCH(0) ; fnop }
    ADD_NORM_MOMENTS 0
    { st32 $a6, $m0, $m15, 8 ; fnop }
    { ld32 $a1, $m0, $m15, 10 ; fnop }
    { nop ; f32mul $a0, $a0, $a1 }
    st32 $a0, $m0, $m15, 9
    exitz $m15
    .align 8
add_norm_f16_split_apply:
    ADD_NORM_SHARE
    st32 $m5, SCRATCH(0)
    sub $m5, $m8, $m10
    add $m5, $m5, -1
    mul $m8, $m10, $m9
    shl $m10, $m10, 5
    ld32 $m3, ARG(4)
    ld32 $m4, ARG(5)
    add $m3, $m3, $m10
    add $m4, $m4, $m10
    ld32 $m11, ARG(0)
    add $m11, $m11, $m8
    ld32 $m10, ARG(1)
    add $m10, $m10, $m8
    NORM_COMBINE $mworker_base, 0
    NORM_SCALE
    NORM_APPLY
    exitz $m15
