// norm_valid: layer and RMS normalisation of rows whose last panel is padded, any epsilon.
//
// Entries    norm_valid_f16: (x - mean) / sqrt(var + epsilon) * gamma + beta
//            rms_valid_f16: x / sqrt(mean(x^2) + epsilon) * gamma
// Arguments  m2 = out, m3 = in, m4 = gamma, (norm: m5 = beta,) then R, G (panels of 16 columns), valid
//            columns, the upper 20 bits of epsilon (F32)
// Shapes     A16 panels [G][R][16]; columns from `valid` on are zero in in, gamma and beta and come out as
//            zero; in in the interleaved region, 16-byte aligned (128-bit loads); out, gamma, beta 8-byte
//            aligned, anywhere; out may be in
// Scratch    12 bytes at the worker base. Access tail none. Contexts: all six workers
// Split      rows w, w + 6, ...
// Slots      as norm_f16 (36 G a row) and rms_f16 (34 G a row), other constants
// Numerics   as norm_f16 and rms_f16; the squares of the zeros' distance to half(mean) are taken off the sum.
#include "kernel.inc"
#include "norm.inc"

KERNEL_ENTRY norm_valid_f16, norm_valid_worker, 8

// Scratch 0 = 1 / valid, 1 = epsilon; m5 = G; accumulators clear.
.macro VALID_CONSTANTS panels, valid, epsilon
    { ld32 $a0, ARG(\valid) ; setzi $a1, ZAACC }
    { ld32 $m5, ARG(\panels) ; uput $FP_CLR, $a1 }
    { nop ; f32fromui32 $a0, $a0 }
    { ld32 $m7, ARG(\epsilon) ; f32oox $a0, $a0 }
    { shl $m7, $m7, 12 ; fnop }
    { st32 $m7, SCRATCH(1) ; fnop }
    { st32 $a0, SCRATCH(0) ; fnop }
.endm
// m0 rows left - 1, m5 G - 1, m9 panel step, m11 worker; m1 in, m2 out of the first row. Leaves without rows.
.macro VALID_ROWS rows, exit
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m0, ARG(\rows)
    shl $m9, $m0, 5
    sub $m0, $m0, $m11
    add $m0, $m0, 5
    setzi $m10, SIXTH
    mul $m0, $m0, $m10
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, \exit
    add $m0, $m0, -1
    add $m5, $m5, -1
    shl $m10, $m11, 5
    ld32 $m1, ARG(1)
    add $m1, $m1, $m10
    ld32 $m2, ARG(0)
    add $m2, $m2, $m10
    ld32 $m3, ARG(2)
.endm

norm_valid_worker:
    VALID_CONSTANTS 5, 6, 7
    shl $m1, $m5, 4
    ld32 $m2, ARG(6)
    sub $m1, $m1, $m2
    st32 $m1, SCRATCH(2)
    nop
    ld32 $a0, SCRATCH(2)
    { nop ; f32fromui32 $a0, $a0 }
    st32 $a0, SCRATCH(2)
    VALID_ROWS 4, norm_valid_exit
    ld32 $m4, ARG(3)
norm_valid_row:
    { shr $m7, $m9, 4 ; fnop }
    { add $m7, $m7, -1 ; fnop }
    { mov $m10, $m1 ; fnop }
    NORM_SQUARES $m1
    { ld32 $a3, SCRATCH(2) ; f16tof32 $a2, $a7 }
    { nop ; f32mul $a2, $a2, $a2 }
    { nop ; f32mul $a2, $a2, $a3 }
    { nop ; f32sub $a0, $a0, $a2 }
    NORM_VARIANCE 1
    NORM_SCALE
    { mov $m11, $m2 ; fnop }
    NORM_APPLY
    add $m1, $m1, 192
    add $m2, $m2, 192
    nop
    brnzdec $m0, norm_valid_row
norm_valid_exit:
    exitz $m15

KERNEL_ENTRY rms_valid_f16, rms_valid_worker, 7

// m6 offset in gamma, m8 panel step, m10, m11 running; a6 1 / rms
.macro RMS_QUAD xstep, ostep
    { ld64step $a4:5, $m15, $m10+=, \xstep ; fnop }
    { nop ; f16v2tof32 $a0:1, $a4 }
    { nop ; f16v2tof32 $a2:3, $a5 }
    { nop ; f32v2mul $a0:1, $a6:B, $a0:1 }
    { ld64step $a4:5, $m3, $m6+=, 1 ; f32v2mul $a2:3, $a6:B, $a2:3 }
    { nop ; f32v4tof16 $a0:1, $a0:3 }
    { nop ; f16v4mul $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m15, $m11+=, \ostep ; fnop }
.endm
rms_valid_worker:
    VALID_CONSTANTS 4, 5, 6
    VALID_ROWS 3, rms_valid_exit
rms_valid_row:
    { shr $m7, $m9, 4 ; fnop }
    { add $m7, $m7, -1 ; fnop }
    { mov $m10, $m1 ; fnop }
    { ld128step $a0:3, $m15, $m10+=, 1 ; fnop }
    { rpt $m5, 1 ; fnop }
    { ld128step $a0:3, $m15, $m10+=, $m7 ; f16v8sqacc $a0:3 }
    { ld128step $a0:3, $m15, $m10+=, 1 ; f16v8sqacc $a0:3 }
    { ld128step $a0:3, $m15, $m10+=, $m7 ; f16v8sqacc $a0:3 }
    { mov $m10, $m1 ; f16v8sqacc $a0:3 }
    NORM_COLLECT
    { ld32 $a1, SCRATCH(1) ; f32mul $a0, $a0, $a4 }
    { mov $m11, $m2 ; f32add $a0, $a0, $a1 }
    { shr $m8, $m9, 3 ; f32oorx $a6, $a0 }
    { add $m8, $m8, -3 ; fnop }
    { setzi $m6, 0 ; fnop }
    { add $m7, $m5, 1 ; fnop }
    { rpt $m7, 31 ; fnop }
    RMS_QUAD 1, 1
    RMS_QUAD 1, 1
    RMS_QUAD 1, 1
    RMS_QUAD $m8, $m8
    add $m1, $m1, 192
    add $m2, $m2, 192
    nop
    brnzdec $m0, rms_valid_row
rms_valid_exit:
    exitz $m15
