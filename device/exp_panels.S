// exp_panels: exponentials of scores against a row maximum, exp(scale * (s - max)), no sum.
//
// Entries    exp_panels_f16: out in A16 panels; exp_panels_f8, exp_panels_f152: out in A32 panels,
//            F143 or F152 times 2^-e
// Arguments  m2 = out, m3 = scores, m4 = maxima, m5 = R, m6 = full pairs of panels,
//            m7 = keys behind them (0..31) | pairs of zeros << 8, m8 = scale (half bits),
//            m9 = (-e) & 63; _causal behind an entry: m6 = valid keys - 1 | (pairs of panels - 1) << 12,
//            m7 = offset + 8192, row r having the keys up to min(valid, r + offset), none allowed
// Shapes     scores: A16 panels [keys / 16][R][16] of halves, keys a multiple of 32; maxima: R words with
//            the half in both halves, at least as large as every valid score of the row
// Alignment  8 bytes each (maxima 4), any region; out may be the scores with F16 out. Access tail: none
// Scratch    136 bytes at the worker base: masks of 17 quads, 8 full ones, the ragged one, 8 empty ones; a row
//            takes 8 of them from its first ragged quad on
// Split      rows w, w + 6, ...   Contexts: all six workers
// Slots      per 8 keys 7 bundles with F8 out (6 with F16), of which 4 are f16v2exp and take 2 slots
//            each unless both arguments are zero:
//              ld64 next + 1 ; mix, returns the argument of the first quad
//              st64 previous ; exp
//              -             ; exp
//              ld64 next + 2 ; mix, returns the argument of the second quad
//              -             ; exp
//              -             ; exp
//              -             ; to F8
// Numerics   scale * s - scale * max in F32 (MIX), rounded to half; exponential rounded to half; masked
//            keys exactly 0.
#include "kernel.inc"

#define MASKS(n) $mworker_base, $m15, n

// m0 rows left - 1, m1 in, m2 out, m3 maxima of the row, m4 full pairs, m5 step of in to the next
// panel, m6 step of out, m7 ragged keys, m8 zero pairs, m9 in, m10 out running, m11 counts
// a4:5 scores, a6:7 maximum, a0:3 arguments and exponentials of two quads

// b3 .. b7 of a group of two quads; \dstep behind the load of the second quad of the next group,
// \look 0: there is no next group
.macro EXP_FIRST f8, look, dstep, ostep
    { nop ; f16v2exp $a1, $a1 }
    .if \look
    { ld64step $a4:5, $m15, $m9+=, \dstep ; f16v4mix $a2:3, $a4:5, $a6:7 }
    .else
    { nop ; f16v4mix $a2:3, $azeros, $azeros }
    .endif
    .if \f8
    { nop ; f16v2exp $a2, $a2 }
    { nop ; f16v2exp $a3, $a3 }
    { nop ; f16v8tof8 $a2:3, $a0:3 }
    .else
    { st64step $a0:1, $m15, $m10+=, 1 ; f16v2exp $a2, $a2 }
    { nop ; f16v2exp $a3, $a3 }
    .endif
.endm
// b1, b2 of the next group with the store of this one.
.macro EXP_NEXT look, ostep
    .if \look
    { ld64step $a4:5, $m15, $m9+=, 1 ; f16v4mix $a0:1, $a4:5, $a6:7 }
    .else
    { nop ; f16v4mix $a0:1, $a4:5, $a6:7 }
    .endif
    { st64step $a2:3, $m15, $m10+=, \ostep ; f16v2exp $a0, $a0 }
.endm

// Masked quads of one panel: the arguments, so that nothing behind the keys counts, and the results.
.macro EXP_MASKED_HALF f8, dstep, ostep
    { ld64step $a4:5, $m15, $m9+=, 1 ; fnop }
    { ld64step $a4:5, $m15, $m9+=, \dstep ; f16v4mix $a0:1, $a4:5, $a6:7 }
    { nop ; f16v4mix $a0:1, $a4:5, $a6:7 }
    { ld64 $a4:5, $mworker_base, $m11, 0 ; f16v4mix $a2:3, $azeros, $azeros }
    { ld64 $a4:5, $mworker_base, $m11, 1 ; and64 $a0:1, $a0:1, $a4:5 }
    { nop ; and64 $a2:3, $a2:3, $a4:5 }
    { nop ; f16v2exp $a0, $a0 }
    { nop ; f16v2exp $a1, $a1 }
    { nop ; f16v2exp $a2, $a2 }
    { ld64step $a4:5, $mworker_base, $m11+=, 1 ; f16v2exp $a3, $a3 }
    { ld64step $a4:5, $mworker_base, $m11+=, 1 ; and64 $a0:1, $a0:1, $a4:5 }
    { nop ; and64 $a2:3, $a2:3, $a4:5 }
    .if \f8
    { nop ; f16v8tof8 $a0:1, $a0:3 }
    { st64step $a0:1, $m15, $m10+=, \ostep ; fnop }
    .else
    { st64step $a0:1, $m15, $m10+=, 1 ; fnop }
    { st64step $a2:3, $m15, $m10+=, \ostep ; fnop }
    .endif
.endm

// 8 full masks, one for the ragged quad, 8 empty ones. 20 slots.
.macro EXP_MASKS
    { setzi $m11, 0 ; not64 $a0:1, $azeros }
    { rpt 8, 0 ; fnop }
    { st64step $a0:1, $mworker_base, $m11+=, 1 ; fnop }
    { rpt 9, 0 ; fnop }
    { st64step $azeros, $mworker_base, $m11+=, 1 ; fnop }
.endm
// The mask of the ragged quad to its place, from m7 ragged keys. 6 slots.
.macro EXP_RAGGED name
    and $m9, $m7, 3
    shl $m9, $m9, 3
    setzi $m10, exp_panels_\name\()_masks
    nop
    { ld64 $a0:1, $m10, $m9, 0 ; fnop }
    { st64 $a0:1, MASKS(8) ; fnop }
.endm

.macro EXP_PANELS name, f8, format, causal
    KERNEL_ENTRY exp_panels_\name, exp_panels_\name\()_worker, 8
// Masks of 0 .. 3 valid halves of a quad.
exp_panels_\name\()_masks:
    .word 0, 0, 0x0000ffff, 0, 0xffffffff, 0, 0xffffffff, 0x0000ffff
exp_panels_\name\()_worker:
    { get $m9, $WSR ; setzi $a0, ZAACC }
    { and $m9, $m9, 7 ; uput $FP_CLR, $a0 }
    { ld32 $a0, ARG(6) ; setzi $a1, 0x03c00 }
    { ld32 $m5, ARG(3) ; sort4x16lo $a0, $a0, $a0 }
    { setzi $m8, SIXTH ; or $a1, $a1, 0xbc000000 }
    { sub $m0, $m5, $m9 ; f16v2mul $a0, $a0, $a1 }
    { add $m0, $m0, 5 ; uput $TAS, $a0 }
    .if \f8
    { ld32 $a0, ARG(7) ; setzi $a1, \format }
    { mul $m0, $m0, $m8 ; uput $FP_SCL, $a0 }
    { shr $m0, $m0, SIXTH_SHIFT ; uput $FP_NFMT, $a1 }
    { nop ; uput $FP_CTL, $azero }
    .else
    { mul $m0, $m0, $m8 ; fnop }
    { shr $m0, $m0, SIXTH_SHIFT ; fnop }
    .endif
    brz $m0, exp_panels_\name\()_exit
    add $m0, $m0, -1
    ld32 $m3, ARG(2)
    shl $m8, $m9, 2
    add $m3, $m3, $m8
    shl $m8, $m9, 5
    ld32 $m1, ARG(1)
    add $m1, $m1, $m8
    ld32 $m2, ARG(0)
    add $m2, $m2, $m8
    shl $m5, $m5, 2
    add $m5, $m5, -3
    .if \causal
    ld32 $m6, ARG(5)
    add $m6, $m6, $m9
    add $m6, $m6, -8192
    nop
    EXP_MASKS
    .else
    ld32 $m4, ARG(4)
    ld32 $m7, ARG(5)
    shr $m8, $m7, 8
    and $m7, $m7, 255
    brz $m7, exp_panels_\name\()_row
    nop
    EXP_MASKS
    EXP_RAGGED \name
    .endif
exp_panels_\name\()_row:
    .if \causal
    ld32 $m8, ARG(4)
    and $m10, $m8, 4095
    add $m10, $m10, 1
    min $m10, $m10, $m6
    max $m10, $m10, 0
    shr $m4, $m10, 5
    and $m7, $m10, 31
    add $m10, $m10, 31
    shr $m10, $m10, 5
    shr $m8, $m8, 12
    sub $m8, $m8, $m10
    add $m8, $m8, 1
    add $m6, $m6, 6
    nop
    EXP_RAGGED \name
    .endif
    { ld32 $a6, $m3, $m15, 0 ; fnop }
    { add $m3, $m3, 24 ; mov $a7, $a6 }
    { mov $m9, $m1 ; fnop }
    { mov $m10, $m2 ; fnop }
    brz $m4, exp_panels_\name\()_ragged
    add $m11, $m4, -1
    { ld64step $a4:5, $m15, $m9+=, 1 ; fnop }
    { ld64step $a4:5, $m15, $m9+=, 1 ; f16v4mix $a0:1, $a4:5, $a6:7 }
    { ld64step $a4:5, $m15, $m9+=, 1 ; f16v4mix $a0:1, $a4:5, $a6:7 }
    { nop ; f16v2exp $a0, $a0 }
    .if \f8
    { rpt $m11, 27 ; fnop }
    EXP_FIRST 1, 1, $m5
    EXP_NEXT 1, 1
    EXP_FIRST 1, 1, 1
    EXP_NEXT 1, 1
    EXP_FIRST 1, 1, $m5
    EXP_NEXT 1, 1
    EXP_FIRST 1, 1, 1
    EXP_NEXT 1, $m5
    EXP_FIRST 1, 1, $m5
    EXP_NEXT 1, 1
    EXP_FIRST 1, 1, 1
    EXP_NEXT 1, 1
    EXP_FIRST 1, 1, $m5
    EXP_NEXT 0, 1
    EXP_FIRST 1, 0, 1
    { st64step $a2:3, $m15, $m10+=, $m5 ; fnop }
    .else
    { rpt $m11, 23 ; fnop }
    EXP_FIRST 0, 1, $m5
    EXP_NEXT 1, 1
    EXP_FIRST 0, 1, 1
    EXP_NEXT 1, $m5
    EXP_FIRST 0, 1, $m5
    EXP_NEXT 1, 1
    EXP_FIRST 0, 1, 1
    EXP_NEXT 1, $m5
    EXP_FIRST 0, 1, $m5
    EXP_NEXT 1, 1
    EXP_FIRST 0, 1, 1
    EXP_NEXT 1, $m5
    EXP_FIRST 0, 1, $m5
    EXP_NEXT 0, 1
    EXP_FIRST 0, 0, 1
    { st64step $a2:3, $m15, $m10+=, $m5 ; fnop }
    .endif
exp_panels_\name\()_ragged:
    brz $m7, exp_panels_\name\()_zeros
    shr $m11, $m7, 2
    shl $m11, $m11, 3
    sub $m11, 64, $m11
    EXP_MASKED_HALF \f8, 1, 1
    .if \f8
    EXP_MASKED_HALF \f8, $m5, 1
    EXP_MASKED_HALF \f8, 1, 1
    .else
    EXP_MASKED_HALF \f8, $m5, $m5
    EXP_MASKED_HALF \f8, 1, 1
    .endif
    EXP_MASKED_HALF \f8, $m5, $m5
exp_panels_\name\()_zeros:
    brz $m8, exp_panels_\name\()_done
    nop
    .if \f8
    { rpt $m8, 3 ; fnop }
    .else
    { rpt $m8, 7 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, $m5 ; fnop }
    .endif
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, $m5 ; fnop }
exp_panels_\name\()_done:
    add $m1, $m1, 192
    add $m2, $m2, 192
    nop
    brnzdec $m0, exp_panels_\name\()_row
exp_panels_\name\()_exit:
    exitz $m15
.endm

EXP_PANELS f16, 0, 0, 0
EXP_PANELS f8, 1, 3, 0
EXP_PANELS f152, 1, 0, 0
EXP_PANELS f16_causal, 0, 0, 1
EXP_PANELS f8_causal, 1, 3, 1
EXP_PANELS f152_causal, 1, 0, 1
