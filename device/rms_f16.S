// rms_f16: out = x / sqrt(mean(x^2) + 1e-6) * gamma over whole rows.
//
// Arguments  m2 = out, m3 = in, m4 = gamma, m5 = R, m6 = G (panels of 16 columns), m7 = bytes from row to
//            row, m8 = bytes from panel to panel (row-major: 32 G, 32; A16 panels: 32, 32 R)
// Shapes     R >= 1, G >= 1; in in the interleaved region, 16-byte aligned (128-bit loads); out, gamma 8-byte
//            aligned, anywhere; out has the layout of in and may be in
// Scratch    8 bytes at the worker base. Access tail none. Contexts: all six workers
// Split      rows w, w + 6, ...
// Slots      2 G for the squares, 32 G for the products (8 per quad), 33 per row
// Numerics   squares summed in F32, reciprocal root in F32; x times it in F32, rounded once to half, times
//            gamma in half.
#include "kernel.inc"
#include "norm.inc"

KERNEL_ENTRY rms_f16, rms_f16_worker, 7

// m0 rows left - 1, m1 in, m2 out of the row, m3 gamma, m5 G - 1, m6 offset in gamma, m7 stride in,
// m8 stride out, m9 panel step, m10, m11 running; a6 1 / rms
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
rms_f16_worker:
    NORM_CONSTANTS 4
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m0, ARG(3)
    sub $m0, $m0, $m11
    add $m0, $m0, 5
    setzi $m10, SIXTH
    mul $m0, $m0, $m10
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, rms_f16_exit
    add $m0, $m0, -1
    ld32 $m5, ARG(4)
    add $m5, $m5, -1
    ld32 $m9, ARG(6)
    ld32 $m4, ARG(5)
    mul $m10, $m4, $m11
    mul $m4, $m4, 6
    ld32 $m1, ARG(1)
    add $m1, $m1, $m10
    ld32 $m2, ARG(0)
    add $m2, $m2, $m10
    ld32 $m3, ARG(2)
    nop
rms_f16_row:
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
    add $m1, $m1, $m4
    add $m2, $m2, $m4
    nop
    brnzdec $m0, rms_f16_row
rms_f16_exit:
    exitz $m15
