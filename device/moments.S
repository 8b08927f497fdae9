// moments: mean and variance of row parts, and the normalisation that uses them (distributed layer
// normalisation).
//
// Entries    moments_f16: out[segment][row] = (mean, variance) in F32 over that part of the row
//            add_moments_f16: sum = left + right in halves, and the moments of it
//            apply_moments_f16: out = (x - mean) / sqrt(var + 1e-6) * gamma + beta, mean and var
//            combined from equal parts
//            apply_rms_f16: out = x / sqrt(ms + 1e-6) * gamma, ms = average of var + mean^2 of equal
//            parts
// Arguments  moments_f16: m2 = out, m3 = in, m4 = R, m5 = word
//            add_moments_f16: m2 = sum, m3 = out, m4 = left, m5 = right, m6 = R, m7 = word
//            apply_rms_f16: m2 = out, m3 = in, m4 = moments, m5 = gamma, m6 = R, m7 = word, m8 = parts
//            apply_moments_f16: m2 = out, m3 = in, m4 = moments, m5 = gamma, m6 = beta, m7 = R,
//            m8 = word, m9 = parts
//            word = G | panels << 12 | S << 13 | T << 16: G panels of 16 columns; panels 1: A16 panels,
//            0: row-major; S segments of a row (1, 2, 3 or 6), T = 6 / S
// Shapes     moments: S divides G. apply: moments [parts][R] of (mean, variance), parts >= 1;
//            segments only divide the work, G >= S
// Alignment  moments: in, left, right, sum 16 bytes, in the interleaved region (128-bit loads), out
//            4 bytes, sum may be left or right; apply: all 8 bytes (moments 4, in
//            of apply_moments 4), any region; out may be in
// Scratch    16 bytes at the worker base. Access tail none
// Split      worker w takes segment w mod S of rows w / S, w / S + T, ...
// Slots      moments: 8 G / S + 34 per row, with the addition 16 G / S + 41; apply: 28 G / S + 8
//            parts + 35 per row; rms: 32 G / S + 5 parts + 22
// Numerics   as norm_f16 and rms_f16, the moments those of the rounded sum; mean = average of the
//            means, variance = average of var + (mean_i - mean)^2, all in F32.
#include "kernel.inc"
#include "norm.inc"

// Scratch 0 = 1 / columns of G panels (m5 = G - 1); clears the accumulators.
.macro MOMENTS_START
    add $m10, $m5, 1
    shl $m10, $m10, 4
    st32 $m10, SCRATCH(0)
    { ld32 $a0, SCRATCH(0) ; setzi $a1, ZAACC }
    { nop ; uput $FP_CLR, $a1 }
    { nop ; f32fromui32 $a0, $a0 }
    { nop ; f32oox $a0, $a0 }
    { st32 $a0, SCRATCH(0) ; fnop }
.endm

// From the word, and R in argument \rows: m0 rows of this worker - 1, m5 panels of the segment - 1,
// m6 T, m7 the segment's first panel, m8 segment, m9 bytes from panel to panel, m10 bytes from row to
// row, m11 first row; branches to \exit if there are no rows. m1 to m3 are used.
.macro MOMENTS_SHARE word, rows, exit
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m5, ARG(\word)
    ld32 $m1, ARG(\rows)
    setzi $m3, SIXTH
    shr $m6, $m5, 16
    shr $m2, $m5, 13
    and $m2, $m2, 7
    mul $m10, $m11, $m6
    mul $m10, $m10, $m3
    shr $m10, $m10, SIXTH_SHIFT
    mul $m8, $m10, $m2
    sub $m8, $m11, $m8
    mov $m11, $m10
    sub $m0, $m1, $m11
    add $m0, $m0, $m6
    add $m0, $m0, -1
    mul $m0, $m0, $m2
    mul $m0, $m0, $m3
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, \exit
    add $m0, $m0, -1
    and $m10, $m5, 4095
    mul $m9, $m10, $m6
    mul $m9, $m9, $m3
    mul $m7, $m9, $m8
    add $m3, $m7, $m9
    shr $m7, $m7, SIXTH_SHIFT
    shr $m3, $m3, SIXTH_SHIFT
    // row-major: 32 G and 32; panels: 32 and 32 R
    shl $m10, $m10, 5
    setzi $m9, 32
    shr $m2, $m5, 12
    and $m2, $m2, 1
    sub $m5, $m3, $m7
    add $m5, $m5, -1
    shl $m1, $m1, 5
    movnz $m10, $m2, $m9
    movnz $m9, $m2, $m1
.endm

KERNEL_ENTRY moments_f16, moments_f16_worker, 4

// m1 in of the row, m2 out, m3 step of in, m4 step of out
moments_f16_worker:
    MOMENTS_SHARE 3, 2, moments_f16_exit
    mul $m1, $m11, $m10
    mul $m2, $m7, $m9
    add $m1, $m1, $m2
    ld32 $m2, ARG(1)
    add $m1, $m1, $m2
    mul $m3, $m10, $m6
    ld32 $m2, ARG(2)
    mul $m2, $m2, $m8
    add $m2, $m2, $m11
    shl $m2, $m2, 3
    ld32 $m4, ARG(0)
    add $m2, $m2, $m4
    shl $m4, $m6, 3
    shr $m7, $m9, 4
    add $m7, $m7, -1
    MOMENTS_START
moments_f16_row:
    { mov $m10, $m1 ; fnop }
    NORM_MOMENTS $m1, 0
    { st32 $a6, $m2, $m15, 0 ; fnop }
    { st32 $a0, $m2, $m15, 1 ; fnop }
    add $m1, $m1, $m3
    add $m2, $m2, $m4
    nop
    brnzdec $m0, moments_f16_row
moments_f16_exit:
    exitz $m15

KERNEL_ENTRY add_moments_f16, add_moments_f16_worker, 6

// m1 offset of the row, m2 out, m3 step of m1, m4 step in a panel of 8 bytes, m6 left, m8 right, m9
// sum,
// m10, m11 offsets, addresses; scratch 8 step of out
add_moments_f16_worker:
    MOMENTS_SHARE 5, 4, add_moments_f16_exit
    mul $m1, $m11, $m10
    mul $m2, $m7, $m9
    add $m1, $m1, $m2
    mul $m3, $m10, $m6
    ld32 $m2, ARG(4)
    mul $m2, $m2, $m8
    add $m2, $m2, $m11
    shl $m2, $m2, 3
    ld32 $m4, ARG(1)
    add $m2, $m2, $m4
    shl $m4, $m6, 3
    st32 $m4, SCRATCH(2)
    nop
    shr $m7, $m9, 4
    add $m7, $m7, -1
    shr $m4, $m9, 3
    add $m4, $m4, -3
    MOMENTS_START
add_moments_f16_row:
    { ld32 $m6, ARG(2) ; fnop }
    { ld32 $m8, ARG(3) ; fnop }
    { ld32 $m9, ARG(0) ; fnop }
    { mov $m10, $m1 ; fnop }
    { mov $m11, $m1 ; fnop }
    { add $m5, $m5, 1 ; fnop }
    NORM_ADD $m6, $m8, $m9, $m10, $m11, $m5, $m7, $m4
    { add $m10, $m9, $m1 ; fnop }
    { add $m5, $m5, -1 ; fnop }
    { add $m11, $m9, $m1 ; fnop }
    NORM_DEVIATIONS $m11
    NORM_VARIANCE 0
    { st32 $a6, $m2, $m15, 0 ; fnop }
    { st32 $a0, $m2, $m15, 1 ; fnop }
    ld32 $m6, SCRATCH(2)
    add $m1, $m1, $m3
    add $m2, $m2, $m6
    brnzdec $m0, add_moments_f16_row
add_moments_f16_exit:
    exitz $m15

KERNEL_ENTRY apply_moments_f16, apply_moments_f16_worker, 8

// m1 in, m2 out of the row; m3 gamma, m4 beta; frame word 7 parts; scratch 4 epsilon, 0 step of a row
// a5 1 / parts
apply_moments_f16_worker:
    MOMENTS_SHARE 6, 5, apply_moments_f16_exit
    { mul $m1, $m11, $m10 ; setzi $a1, EPSILON_LO }
    { mul $m2, $m7, $m9 ; or $a1, $a1, EPSILON_HI }
    { add $m1, $m1, $m2 ; fnop }
    { ld32 $m2, ARG(1) ; setzi $a0, ZAACC }
    { st32 $a1, SCRATCH(1) ; uput $FP_CLR, $a0 }
    { ld32 $a0, ARG(7) ; fnop }
    { add $m2, $m2, $m1 ; f32fromui32 $a0, $a0 }
    { ld32 $m3, ARG(0) ; f32oox $a5, $a0 }
    { st32 $a5, SCRATCH(2) ; fnop }
    add $m1, $m1, $m3
    shl $m7, $m7, 5
    ld32 $m3, ARG(3)
    add $m3, $m3, $m7
    ld32 $m4, ARG(4)
    add $m4, $m4, $m7
    mul $m6, $m10, $m6
    st32 $m6, SCRATCH(0)
    // m1 is out and m2 in from here on; m10 address of the row's moments
    shl $m10, $m11, 3
    ld32 $m6, ARG(2)
    add $m10, $m10, $m6
    st32 $m10, SCRATCH(3)
apply_moments_f16_row:
    { ld32 $m10, SCRATCH(3) ; fnop }
    { ld32 $m6, ARG(5) ; zero $a6 }
    { ld32 $m11, ARG(7) ; zero $a0 }
    { shl $m6, $m6, 1 ; fnop }
    { ld32 $a5, SCRATCH(2) ; fnop }
    { rpt $m11, 1 ; fnop }
    { ld32step $a2, $m15, $m10+=, $m6 ; fnop }
    { nop ; f32add $a6, $a6, $a2 }
    { ld32 $m10, SCRATCH(3) ; f32mul $a6, $a6, $a5 }
    { rpt $m11, 5 ; fnop }
    { ld32 $a3, $m10, $m15, 1 ; fnop }
    { ld32step $a2, $m15, $m10+=, $m6 ; fnop }
    { nop ; f32sub $a2, $a2, $a6 }
    { nop ; f32mul $a2, $a2, $a2 }
    { nop ; f32add $a3, $a3, $a2 }
    { nop ; f32add $a0, $a0, $a3 }
    { ld32 $a1, SCRATCH(1) ; f32mul $a0, $a0, $a5 }
    { mov $m10, $m2 ; fnop }
    { mov $m11, $m1 ; fnop }
    NORM_SCALE
    NORM_APPLY
    ld32 $m10, SCRATCH(0)
    add $m1, $m1, $m10
    add $m2, $m2, $m10
    ld32 $m10, SCRATCH(3)
    ld32 $m6, ARG(6)
    shr $m6, $m6, 16
    shl $m6, $m6, 3
    add $m10, $m10, $m6
    st32 $m10, SCRATCH(3)
    brnzdec $m0, apply_moments_f16_row
apply_moments_f16_exit:
    exitz $m15

// As above without an offset; m3 gamma. a5 1 / parts, a6 1 / rms.
.macro RMS_APPLY_QUAD xstep, ostep
    { ld64step $a4:5, $m15, $m10+=, \xstep ; fnop }
    { nop ; f16v2tof32 $a0:1, $a4 }
    { nop ; f16v2tof32 $a2:3, $a5 }
    { nop ; f32v2mul $a0:1, $a6:B, $a0:1 }
    { ld64step $a4:5, $m3, $m6+=, 1 ; f32v2mul $a2:3, $a6:B, $a2:3 }
    { nop ; f32v4tof16 $a0:1, $a0:3 }
    { nop ; f16v4mul $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m15, $m11+=, \ostep ; fnop }
.endm

KERNEL_ENTRY apply_rms_f16, apply_rms_f16_worker, 7

// m1 out, m2 in of the row, m4 address of its moments, m8 step in a panel, scratch 0 step of a row,
// 8 1 / parts
apply_rms_f16_worker:
    MOMENTS_SHARE 5, 4, apply_rms_f16_exit
    { mul $m1, $m11, $m10 ; setzi $a1, EPSILON_LO }
    { mul $m2, $m7, $m9 ; or $a1, $a1, EPSILON_HI }
    { add $m1, $m1, $m2 ; fnop }
    { ld32 $m2, ARG(1) ; fnop }
    { st32 $a1, SCRATCH(1) ; fnop }
    { ld32 $a0, ARG(6) ; fnop }
    { add $m2, $m2, $m1 ; f32fromui32 $a0, $a0 }
    { ld32 $m3, ARG(0) ; f32oox $a5, $a0 }
    { st32 $a5, SCRATCH(2) ; fnop }
    add $m1, $m1, $m3
    shl $m7, $m7, 5
    ld32 $m3, ARG(3)
    add $m3, $m3, $m7
    mul $m6, $m10, $m6
    st32 $m6, SCRATCH(0)
    shr $m8, $m9, 3
    add $m8, $m8, -3
    add $m5, $m5, 1
    shl $m4, $m11, 3
    ld32 $m6, ARG(2)
    add $m4, $m4, $m6
apply_rms_f16_row:
    { mov $m10, $m4 ; fnop }
    { ld32 $m6, ARG(4) ; zero $a0 }
    { shl $m6, $m6, 1 ; fnop }
    { ld32 $m11, ARG(6) ; fnop }
    { ld32 $a5, SCRATCH(2) ; fnop }
    { rpt $m11, 4 ; fnop }
    { ld32 $a3, $m10, $m15, 1 ; fnop }
    { ld32step $a2, $m15, $m10+=, $m6 ; fnop }
    { nop ; f32mul $a2, $a2, $a2 }
    { nop ; f32add $a3, $a3, $a2 }
    { nop ; f32add $a0, $a0, $a3 }
    { ld32 $a1, SCRATCH(1) ; f32mul $a0, $a0, $a5 }
    { mov $m10, $m2 ; f32add $a0, $a0, $a1 }
    { mov $m11, $m1 ; f32oorx $a6, $a0 }
    { setzi $m6, 0 ; fnop }
    { rpt $m5, 31 ; fnop }
    RMS_APPLY_QUAD 1, 1
    RMS_APPLY_QUAD 1, 1
    RMS_APPLY_QUAD 1, 1
    RMS_APPLY_QUAD $m8, $m8
    ld32 $m10, SCRATCH(0)
    add $m1, $m1, $m10
    add $m2, $m2, $m10
    ld32 $m6, ARG(5)
    shr $m6, $m6, 16
    shl $m6, $m6, 3
    add $m4, $m4, $m6
    brnzdec $m0, apply_rms_f16_row
apply_rms_f16_exit:
    exitz $m15
