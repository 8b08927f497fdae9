// norm_f16: layer normalisation of whole rows, out = (x - mean) / sqrt(var + 1e-6) * gamma + beta.
//
// Entries    norm_f16: every worker takes whole rows w, w + 6, ... in one launch
//            norm_f16_split: six workers share every row, two launches per row (few rows)
// Arguments  m2 = out, m3 = in, m4 = gamma, m5 = beta, m6 = R, m7 = G (panels of 16 columns),
//            m8 = bytes from row to row, m9 = bytes from panel to panel
//            (row-major: 32 G, 32; A16 panels: 32, 32 R)
// Shapes     R >= 1, G >= 1 (split: G >= 6); in in the interleaved region, 16-byte aligned (128-bit
//            loads); out, gamma, beta 8-byte aligned, anywhere; out has the layout of in and may be in
// Scratch    8 bytes at the worker base; split: 96 bytes in the supervisor's frame
// Access tail none. Contexts: all six workers.
// Slots      per row 36 G and a constant: 2 G sum, 6 G squares, 28 G apply (7 per quad: two widenings,
//            two axpy, one narrowing, multiply, add; loads and stores co-issued)
// Numerics   F32 sums; squares of half(x - half(mean)); reciprocal root in F32; (x - mean) / sigma as
//            x / sigma - mean / sigma in F32, rounded once to half; gamma and beta in half.
#include "kernel.inc"
#include "norm.inc"

KERNEL_ENTRY norm_f16, norm_f16_worker, 8

// m0 rows left - 1, m1 in, m2 out of the row
norm_f16_worker:
    NORM_CONSTANTS 5
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m0, ARG(4)
    sub $m0, $m0, $m11
    add $m0, $m0, 5
    setzi $m10, SIXTH
    mul $m0, $m0, $m10
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, norm_f16_exit
    add $m0, $m0, -1
    ld32 $m5, ARG(5)
    add $m5, $m5, -1
    ld32 $m9, ARG(7)
    ld32 $m10, ARG(6)
    mul $m10, $m10, $m11
    ld32 $m1, ARG(1)
    add $m1, $m1, $m10
    ld32 $m2, ARG(0)
    add $m2, $m2, $m10
    ld32 $m3, ARG(2)
    ld32 $m4, ARG(3)
    nop
norm_f16_row:
    { shr $m7, $m9, 4 ; fnop }
    { add $m7, $m7, -1 ; fnop }
    { mov $m10, $m1 ; fnop }
    NORM_MOMENTS $m1, 1
    NORM_SCALE
    { mov $m11, $m2 ; fnop }
    NORM_APPLY
    ld32 $m10, ARG(6)
    mul $m10, $m10, 6
    add $m1, $m1, $m10
    add $m2, $m2, $m10
    nop
    brnzdec $m0, norm_f16_row
norm_f16_exit:
    exitz $m15

// Split: the supervisor walks over the rows. Frame: 0..7 as above (0 and 1 advance), 8..31 six times
// (mean, sum of squared deviations, columns, -).
    KERNEL_SECTION norm_f16_split
    .supervisor
    KERNEL_GLOBAL norm_f16_split
    add $m11, $m11, -128
    setzi $m0, norm_f16_split_moments
    setzi $m1, norm_f16_split_apply
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m7, $m11, $m15, 5
    st32 $m9, $m11, $m15, 7
    add $m6, $m6, -1
norm_f16_split_row:
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    runall $m0, $m11, 0
    add $m2, $m2, $m8
    add $m3, $m3, $m8
    sync 2
    runall $m1, $m11, 0
    sync 2
    brnzdec $m6, norm_f16_split_row
    add $m11, $m11, 128
    br $m10
    .size norm_f16_split, . - norm_f16_split
    .worker
    .align 8
// Panels of worker w: floor(w G / 6) to floor((w + 1) G / 6). m5 panels - 1, m10 first panel's offset.
.macro NORM_SHARE
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m5, ARG(5)
    setzi $m8, SIXTH
    mul $m8, $m8, $m5
    mul $m10, $m8, $m11
    add $m5, $m10, $m8
    shr $m10, $m10, SIXTH_SHIFT
    shr $m5, $m5, SIXTH_SHIFT
    sub $m5, $m5, $m10
    ld32 $m9, ARG(7)
.endm
norm_f16_split_moments:
    NORM_SHARE
    shl $m0, $m5, 4
    st32 $m0, SCRATCH(0)
    add $m5, $m5, -1
    mul $m10, $m10, $m9
    ld32 $m1, ARG(1)
    add $m1, $m1, $m10
    mov $m10, $m1
    { shr $m7, $m9, 4 ; fnop }
    { add $m7, $m7, -1 ; setzi $a1, ZAACC }
    { ld32 $a0, SCRATCH(0) ; uput $FP_CLR, $a1 }
    { shl $m11, $m11, 4 ; f32fromui32 $a0, $a0 }
    { add $m11, $m11, $m13 ; f32oox $a1, $a0 }
    { st32 $a0, $m11, $m15, 10 ; fnop }
    { st32 $a1, SCRATCH(0) ; fnop }
    NORM_MOMENTS $m1, 0
    { st32 $a6, $m11, $m15, 8 ; fnop }
    { ld32 $a1, $m11, $m15, 10 ; fnop }
    { nop ; f32mul $a0, $a0, $a1 }
    st32 $a0, $m11, $m15, 9
    exitz $m15
norm_f16_split_apply:
    NORM_SHARE
    add $m5, $m5, -1
    mul $m8, $m10, $m9
    shl $m10, $m10, 5
    ld32 $m3, ARG(2)
    ld32 $m4, ARG(3)
    add $m3, $m3, $m10
    add $m4, $m4, $m10
    ld32 $m11, ARG(0)
    add $m11, $m11, $m8
    ld32 $m10, ARG(1)
    add $m10, $m10, $m8
    NORM_COMBINE $mvertex_base, 5
    NORM_SCALE
    NORM_APPLY
    exitz $m15
