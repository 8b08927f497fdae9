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
    RMS_ROW
    add $m1, $m1, $m4
    add $m2, $m2, $m4
    nop
    brnzdec $m0, rms_f16_row
rms_f16_exit:
    exitz $m15
