// norm_valid: layer and RMS normalisation of rows whose last panel is padded, any epsilon.
//
// Entries    norm_valid_f16: (x - mean) / sqrt(var + epsilon) * gamma + beta
//            rms_valid_f16: x / sqrt(mean(x^2) + epsilon) * gamma
// Arguments  m2 = out, m3 = in, m4 = gamma, (norm: m5 = beta,) then R, G (panels of 16 columns), valid
//            columns, the upper 20 bits of epsilon (F32)
// Shapes     A16 panels [G][R][16]; columns from `valid` on are zero in in, gamma and beta and come out as
//            zero; in in the interleaved region, 16-byte aligned (128-bit loads); out, gamma, beta 8-byte
//            aligned, anywhere; out may be in
// Scratch    48 bytes at the worker base. Access tail none. Contexts: all six workers
// Split      rows w, w + 6, ...
// Slots      as norm_f16 (36 G a row) and rms_f16 (34 G a row), other constants
// Numerics   as norm_f16 and rms_f16; the distances of the padding to half(mean) are masked.
#include "kernel.inc"
#include "norm.inc"

KERNEL_ENTRY norm_valid_f16, norm_valid_worker, 8

#define MASK(n) $mworker_base, $m15, n

// The mask of the next quad to 64-bit word \n of the scratch; m1 valid halves from it on.
.macro VALID_MASK n
    max $m3, $m1, 0
    min $m3, $m3, 4
    shl $m3, $m3, 3
    add $m3, $m3, $m2
    ld64 $a0:1, $m3, $m15, 0
    st64 $a0:1, MASK(\n)
    add $m1, $m1, -4
.endm
// Eight distances to half(mean) with the masks n and n + 1.
.macro VALID_DISTANCES n
    { ld64 $a4:5, MASK(\n) ; f16v4sub $a0:1, $a7:BL, $a0:1 }
    { nop ; f16v4sub $a2:3, $a7:BL, $a2:3 }
    { ld64 $a4:5, MASK(\n + 1) ; and64 $a0:1, $a0:1, $a4:5 }
    { nop ; and64 $a2:3, $a2:3, $a4:5 }
.endm

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

// Masks of 0 .. 4 valid halves of a quad.
norm_valid_masks:
    .word 0, 0, 0x0000ffff, 0, 0xffffffff, 0, 0xffffffff, 0x0000ffff, 0xffffffff, 0xffffffff
norm_valid_worker:
    VALID_CONSTANTS 5, 6, 7
    // four masks of the last panel, whose valid halves are those of the row less 16 (G - 1)
    ld32 $m1, ARG(6)
    shl $m3, $m5, 4
    sub $m1, $m1, $m3
    add $m1, $m1, 16
    setzi $m2, norm_valid_masks
    VALID_MASK 2
    VALID_MASK 3
    VALID_MASK 4
    VALID_MASK 5
    VALID_ROWS 4, norm_valid_exit
    ld32 $m4, ARG(3)
norm_valid_row:
    { shr $m7, $m9, 4 ; fnop }
    { add $m7, $m7, -1 ; fnop }
    { mov $m10, $m1 ; fnop }
    NORM_SUM $m1
    NORM_MEAN
    VALID_DISTANCES 2
    { ld128step $a0:3, $m15, $m10+=, $m7 ; f16v8sqacc $a0:3 }
    VALID_DISTANCES 4
    { mov $m10, $m1 ; f16v8sqacc $a0:3 }
    NORM_COLLECT
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

rms_valid_worker:
    VALID_CONSTANTS 4, 5, 6
    VALID_ROWS 3, rms_valid_exit
rms_valid_row:
    RMS_ROW
    add $m1, $m1, 192
    add $m2, $m2, 192
    nop
    brnzdec $m0, rms_valid_row
rms_valid_exit:
    exitz $m15
