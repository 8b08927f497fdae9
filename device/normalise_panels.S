// normalise_panels: rows divided by one of their columns (the sum of exponentials that a column of
// ones in the right operand of the product has made), or by the sums that softmax_f16 has left.
//
// Entries    normalise_panels_f16: out in A16 panels; _f8, _f152: A32 panels, F143 or F152 times 2^-e
//            normalise_panels_sums_f16, _sums_f8, _sums_f152: divisors from statistics
//            normalise_panels_parts_f16, ...: exponentials of one of P parts of the keys, from the
//            statistics of
//            all: times exp(m - M) / S, M = max m_i, S = sum of exp(m_i - M) s_i
// Arguments  m2 = out, m3 = in, m4 = R, m5 = C / 16 (F8: C / 32), m6 = byte offset of the divisor of
//            row 0, m7 = (-e) & 63 (F8)
//            sums: m2 = out, m3 = in, m4 = statistics, F32 [2][R], m5 = R, m6 = C / 16 or C / 32, m7
//            as above;
//            parts: statistics [P][2][R], then P - 1 and the byte offset of the own part behind these
// Shapes     in: A16 panels [C / 16][R][16] of halves; the divisors are positive
// Alignment  8 bytes each (statistics 4), any region; out may be in with F16 out. Access tail: none
// Split      rows w, w + 6, ...   Contexts: all six workers
// Slots      F16: 8 per panel (ld64 ; mix and st64 per quad), F8: 16 per pair of panels (two of the
//            first, conversion and st64 per two quads)
// Numerics   zeros come out as +0; F8 saturates without a trap; 1 / divisor in F32, split in two
//            halves h + l; x * h + x * l in F32, rounded once.
#include "kernel.inc"

// m0 rows left - 1, m1 in, m2 out of the row, m3 address of the divisor, m4 panels (pairs) - 1,
// m5 step to the next panel, m9, m10 running
.macro NORMALISE_SETUP name, f8, format, sums
    { get $m9, $WSR ; setzi $a0, ZAACC }
    { and $m9, $m9, 7 ; uput $FP_CLR, $a0 }
    .if \f8
    { ld32 $a0, ARG(5) ; setzi $a1, \format }
    { ld32 $m5, ARG(2 + (\sums + 1) / 2) ; uput $FP_SCL, $a0 }
    { setzi $m8, SIXTH ; uput $FP_NFMT, $a1 }
    { nop ; uput $FP_CTL, $azero }
    .else
    { ld32 $m5, ARG(2 + (\sums + 1) / 2) ; fnop }
    { setzi $m8, SIXTH ; fnop }
    .endif
    sub $m0, $m5, $m9
    add $m0, $m0, 5
    mul $m0, $m0, $m8
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, normalise_panels_\name\()_exit
    add $m0, $m0, -1
    shl $m8, $m9, 5
    ld32 $m1, ARG(1)
    add $m1, $m1, $m8
    ld32 $m2, ARG(0)
    add $m2, $m2, $m8
    .if \sums == 2
    ld32 $m3, ARG(2)
    shl $m8, $m9, 2
    add $m3, $m3, $m8
    ld32 $m8, ARG(5 + \f8)
    shl $m6, $m5, 1
    shl $m7, $m5, 2
    .elseif \sums
    ld32 $m3, ARG(2)
    shl $m8, $m5, 2
    add $m3, $m3, $m8
    shl $m8, $m9, 2
    add $m3, $m3, $m8
    .else
    ld32 $m3, ARG(4)
    add $m3, $m3, $m1
    .endif
    shl $m5, $m5, 2
    add $m5, $m5, -3
    ld32 $m4, ARG(3 + (\sums + 1) / 2)
    add $m4, $m4, -1
.endm
// $TAS = {h, l} with h + l = 1 / divisor; 11 slots, 10 with sums. Parts: m6 words from part to part,
// m7 bytes from maxima to sums, m8 P - 1.
.macro NORMALISE_DIVISOR sums, f8
    .if \sums == 2
    { mov $m11, $m3 ; fnop }
    { ld32step $a0, $m15, $m11+=, $m6 ; fnop }
    { rpt $m8, 1 ; mov $a1, $a0 }
    { ld32step $a0, $m15, $m11+=, $m6 ; fnop }
    { nop ; f32max $a1, $a1, $a0 }
    { mov $m11, $m3 ; fnop }
    { add $m10, $m8, 1 ; fnop }
    { rpt $m10, 5 ; zero $a2 }
    { ld32 $a3, $m11, $m7, 0 ; fnop }
    { ld32step $a0, $m15, $m11+=, $m6 ; fnop }
    { nop ; f32sub $a0, $a0, $a1 }
    { nop ; f32exp $a0, $a0 }
    { nop ; f32mul $a0, $a0, $a3 }
    { nop ; f32add $a2, $a2, $a0 }
    { ld32 $m10, ARG(6 + \f8) ; f32oox $a2, $a2 }
    { ld32 $a0, $m3, $m10, 0 ; fnop }
    { add $m3, $m3, 24 ; f32sub $a0, $a0, $a1 }
    { nop ; f32exp $a0, $a0 }
    { nop ; f32mul $a0, $a0, $a2 }
    .elseif \sums
    { ld32 $a0, $m3, $m15, 0 ; fnop }
    { add $m3, $m3, 24 ; f32oox $a0, $a0 }
    .else
    { ldb16 $a0, $m3, $m15, 0 ; fnop }
    { add $m3, $m3, 192 ; f16tof32 $a0, $a0 }
    { nop ; f32oox $a0, $a0 }
    .endif
    { mov $m10, $m2 ; f32tof16 $a1, $a0 }
    { mov $m9, $m1 ; f16tof32 $a2, $a1 }
    { nop ; f32sub $a0, $a0, $a2 }
    { nop ; f32tof16 $a0, $a0 }
    { ld64step $a4:5, $m15, $m9+=, 1 ; sort4x16lo $a0, $a1, $a0 }
    { nop ; uput $TAS, $a0 }
.endm

// Two quads of a row: y of the older one leaves, x two quads on is loaded.
.macro NORMALISE_TWO f8, load, astep, bstep, drain, ostep
    .if \load
    { ld64step $a4:5, $m15, $m9+=, \astep ; f16v4mix $a0:1, $a4:5, $a4:5 }
    .else
    { nop ; f16v4mix $a0:1, $a4:5, $a4:5 }
    .endif
    .if \f8
    .else
    { st64step $a0:1, $m15, $m10+=, 1 ; fnop }
    .endif
    .if \drain
    { nop ; f16v4mix $a2:3, $azeros, $azeros }
    .else
    { ld64step $a4:5, $m15, $m9+=, \bstep ; f16v4mix $a2:3, $a4:5, $a4:5 }
    .endif
    .if \f8
    { nop ; f16v8tof8 $a2:3, $a0:3 }
    .endif
    { st64step $a2:3, $m15, $m10+=, \ostep ; fnop }
.endm
.macro NORMALISE_ROWS name, f8, format, sums
.set args_\name, 5 + \f8 + \sums / 2 * 2
    KERNEL_ENTRY normalise_panels_\name, normalise_panels_\name\()_worker, args_\name
normalise_panels_\name\()_worker:
    NORMALISE_SETUP \name, \f8, \format, \sums
    .align 8
normalise_panels_\name\()_row:
    NORMALISE_DIVISOR \sums, \f8
    { ld64step $a4:5, $m15, $m9+=, 1 ; f16v4mix $a0:1, $a4:5, $a4:5 }
    .if \f8
    { rpt $m4, 15 ; fnop }
    NORMALISE_TWO 1, 1, 1, $m5, 0, 1
    NORMALISE_TWO 1, 1, 1, 1, 0, 1
    NORMALISE_TWO 1, 1, 1, $m5, 0, 1
    NORMALISE_TWO 1, 1, 1, 1, 0, $m5
    NORMALISE_TWO 1, 1, 1, $m5, 0, 1
    NORMALISE_TWO 1, 1, 1, 1, 0, 1
    NORMALISE_TWO 1, 1, 1, $m5, 0, 1
    NORMALISE_TWO 1, 0, 1, 1, 1, $m5
    .else
    { rpt $m4, 7 ; fnop }
    NORMALISE_TWO 0, 1, 1, $m5, 0, 1
    NORMALISE_TWO 0, 1, 1, 1, 0, $m5
    NORMALISE_TWO 0, 1, 1, $m5, 0, 1
    NORMALISE_TWO 0, 0, 1, 1, 1, $m5
    .endif
    add $m1, $m1, 192
    add $m2, $m2, 192
    nop
    brnzdec $m0, normalise_panels_\name\()_row
normalise_panels_\name\()_exit:
    exitz $m15
.endm

NORMALISE_ROWS f16, 0, 0, 0
NORMALISE_ROWS f8, 1, 3, 0
NORMALISE_ROWS f152, 1, 0, 0
NORMALISE_ROWS sums_f16, 0, 0, 1
NORMALISE_ROWS sums_f8, 1, 3, 1
NORMALISE_ROWS sums_f152, 1, 0, 1
NORMALISE_ROWS parts_f16, 0, 0, 2
NORMALISE_ROWS parts_f8, 1, 3, 2
NORMALISE_ROWS parts_f152, 1, 0, 2
