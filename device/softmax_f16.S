// softmax_f16: unnormalised softmax of whole rows: exponentials, scaled maximum and denominator.
//
// Purpose    e = exp(scale * (s - max)); out = e, statistics = scale * max and the sum of e (F32)
// Arguments  m2 = out (may be the scores), m3 = statistics [2][R] in F32, m4 = scores, m5 = R,
//            m6 = full panels, m7 = keys behind them (0..15) | panels of zeros << 8,
//            m8 = -scale (half bits)
// Shapes     scores, out: A16 panels [keys / 16][R][16] of halves; masked keys come out as 0. The scores
//            of a row spread by less than 65504
// Alignment  8 bytes each, any region. Access tail: none. Contexts: all six workers
// Split      rows w, w + 6, ...
// Slots      per full panel 4 for the maximum and 18 for the exponentials, 8 more unless their arguments
//            are zero (f16v2exp takes 1 or 2 slots):
//              -              ; max - s of a quad
//              ld64 next      ; times -scale
//              -              ; exp
//              -              ; exp
//              -              ; max - s
//              ld64 next      ; times -scale
//              st64           ; exp
//              -              ; exp
//              st64           ; sum of the 8
// Numerics   max - s and its product with -scale round to half, so does the exponential; sums in F32.
#include "kernel.inc"

// m0 rows left - 1, m1 statistics, m2 out, m3 scores of the row, m4 step to the next panel, m5 full
// panels, m6 ragged keys, m7 zero panels, m8 mask, m9 in, m10 out running, m11 counts
// a6 {max, -scale}, a7 -scale in both halves
.macro SOFTMAX_GROUP load, astep, ostep
    { nop ; f16v4sub $a0:1, $a6:BL, $a4:5 }
    { ld64step $a4:5, $m15, $m9+=, \astep ; f16v4mul $a0:1, $a6:BU, $a0:1 }
    { nop ; f16v2exp $a0, $a0 }
    { nop ; f16v2exp $a1, $a1 }
    { nop ; f16v4sub $a2:3, $a6:BL, $a4:5 }
    .if \load
    { ld64step $a4:5, $m15, $m9+=, 1 ; f16v4mul $a2:3, $a6:BU, $a2:3 }
    .else
    { nop ; f16v4mul $a2:3, $a6:BU, $a2:3 }
    .endif
    { st64step $a0:1, $m15, $m10+=, 1 ; f16v2exp $a2, $a2 }
    { nop ; f16v2exp $a3, $a3 }
    { st64step $a2:3, $m15, $m10+=, \ostep ; f16v8acc $a0:3 }
.endm
.macro SOFTMAX_QUAD
    { ld64step $a4:5, $m15, $m9+=, 1 ; fnop }
    { nop ; f16v4sub $a0:1, $a6:BL, $a4:5 }
    { nop ; f16v4mul $a0:1, $a6:BU, $a0:1 }
.endm

KERNEL_ENTRY softmax_f16, softmax_f16_worker, 7

// Masks of 0 .. 3 valid halves of a quad.
softmax_f16_masks:
    .word 0, 0, 0x0000ffff, 0, 0xffffffff, 0, 0xffffffff, 0x0000ffff
softmax_f16_worker:
    { get $m9, $WSR ; setzi $a0, ZAACC }
    { and $m9, $m9, 7 ; uput $FP_CLR, $a0 }
    { ld32 $m4, ARG(3) ; fnop }
    { ld32 $a7, ARG(6) ; fnop }
    { setzi $m8, SIXTH ; sort4x16lo $a7, $a7, $a7 }
    { sub $m0, $m4, $m9 ; fnop }
    add $m0, $m0, 5
    mul $m0, $m0, $m8
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, softmax_f16_exit
    add $m0, $m0, -1
    ld32 $m1, ARG(1)
    shl $m3, $m9, 2
    add $m1, $m1, $m3
    shl $m9, $m9, 5
    ld32 $m2, ARG(0)
    add $m2, $m2, $m9
    ld32 $m3, ARG(2)
    add $m3, $m3, $m9
    shl $m4, $m4, 2
    add $m4, $m4, -3
    ld32 $m5, ARG(4)
    ld32 $m6, ARG(5)
    shr $m7, $m6, 8
    and $m6, $m6, 255
    and $m9, $m6, 3
    shl $m9, $m9, 3
    setzi $m8, softmax_f16_masks
    add $m8, $m8, $m9
    nop
softmax_f16_row:
    { mov $m9, $m3 ; setzi $a4, 0x3fbff }
    { mov $m10, $m2 ; or $a4, $a4, 0xfbf00000 }
    { add $m11, $m5, -1 ; mov $a5, $a4 }
    { brz $m5, softmax_f16_max_ragged ; fnop }
    { ld64step $a0:1, $m15, $m9+=, 1 ; fnop }
    { rpt $m11, 3 ; fnop }
    { ld64step $a0:1, $m15, $m9+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m9+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m9+=, $m4 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m9+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m9+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m9+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m9+=, $m4 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
softmax_f16_max_ragged:
    brz $m6, softmax_f16_max_done
    shr $m11, $m6, 2
    { rpt $m11, 1 ; fnop }
    { ld64step $a0:1, $m15, $m9+=, 1 ; fnop }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64 $a2:3, $m8, $m15, 0 ; fnop }
    { ld64 $a0:1, $m15, $m9, 0 ; setzi $a6, 0x3fbff }
    { nop ; and64 $a0:1, $a0:1, $a2:3 }
    { nop ; or $a6, $a6, 0xfbf00000 }
    { nop ; andc $a2, $a6, $a2 }
    { nop ; andc $a3, $a6, $a3 }
    { nop ; or64 $a0:1, $a0:1, $a2:3 }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
softmax_f16_max_done:
    { nop ; f16v4maxc $a4, $a4:5 }
    { nop ; f16v2maxc $a4, $a4 }
    { nop ; sort4x16lo $a6, $a4, $a7 }
    { nop ; f16tof32 $a4, $a4 }
    { nop ; f16tof32 $a5, $a7 }
    { nop ; f32mul $a4, $a4, $a5 }
    { add $m11, $m5, -1 ; f32sub $a4, $azero, $a4 }
    { st32 $a4, $m1, $m15, 0 ; fnop }
    { mov $m9, $m3 ; fnop }
    { brz $m5, softmax_f16_ragged ; fnop }
    { ld64step $a4:5, $m15, $m9+=, 1 ; fnop }
    { rpt $m11, 17 ; fnop }
    SOFTMAX_GROUP 1, 1, 1
    SOFTMAX_GROUP 1, $m4, $m4
    SOFTMAX_GROUP 1, 1, 1
    SOFTMAX_GROUP 0, $m4, $m4
softmax_f16_ragged:
    brz $m6, softmax_f16_zeros
    shr $m11, $m6, 2
    { rpt $m11, 6 ; fnop }
    SOFTMAX_QUAD
    { nop ; f16v2exp $a0, $a0 }
    { nop ; f16v2exp $a1, $a1 }
    { nop ; f16v4acc $a0:1 }
    { st64step $a0:1, $m15, $m10+=, 1 ; fnop }
    SOFTMAX_QUAD
    { ld64 $a2:3, $m8, $m15, 0 ; f16v4min $a0:1, $a0:1, $azeros }
    { nop ; f16v2exp $a0, $a0 }
    { sub $m11, 3, $m11 ; f16v2exp $a1, $a1 }
    { nop ; and64 $a0:1, $a0:1, $a2:3 }
    { st64step $a0:1, $m15, $m10+=, 1 ; f16v4acc $a0:1 }
    { rpt $m11, 0 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { shl $m11, $m4, 3 ; fnop }
    { add $m10, $m10, $m11 ; fnop }
    { add $m10, $m10, -8 ; fnop }
softmax_f16_zeros:
    { rpt $m7, 3 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, $m4 ; fnop }
    { nop ; f32v2gina $a0:1, $azeros, 0 }
    { nop ; f32v2gina $a2:3, $azeros, 0 }
    { nop ; f32v2add $a0:1, $a0:1, $a2:3 }
    { nop ; f32v2gina $a2:3, $azeros, 0 }
    { nop ; f32v2add $a0:1, $a0:1, $a2:3 }
    { nop ; f32v2gina $a2:3, $azeros, 0 }
    { ld32 $m11, ARG(3) ; f32v2add $a0:1, $a0:1, $a2:3 }
    { shl $m11, $m11, 2 ; f32add $a0, $a0, $a1 }
    st32 $a0, $m1, $m11, 0
    add $m1, $m1, 24
    add $m2, $m2, 192
    add $m3, $m3, 192
    nop
    brnzdec $m0, softmax_f16_row
softmax_f16_exit:
    exitz $m15
