// softmax_f16: unnormalised softmax of whole rows: exponentials, scaled maximum and denominator.
//
// Purpose    e = exp(scale * (s - max)); out = e, statistics = scale * max and the sum of e (F32)
// Entries    softmax_f16: a worker per row; softmax_f16_split: six workers share every row, three
//            launches per row (few rows); softmax_f16_causal: a worker per row, keys behind row +
//            offset masked too
// Arguments  m2 = out (may be the scores), m3 = statistics [2][R] in F32, m4 = scores, m5 = R,
//            m6 = full panels, m7 = keys behind them (0..15) | panels of zeros << 8,
//            m8 = -scale (half bits); causal: m6 = valid keys << 8 | panels, m7 = offset + 1 + 8192
// Shapes     scores, out: A16 panels [keys / 16][R][16] of halves; masked keys come out as 0. The
//            scores of a row spread by less than 65504
// Alignment  8 bytes each (statistics 4), any region. Access tail: none. Contexts: all six workers
// Split      rows w, w + 6, ... (causal: each with min(valid, row + offset + 1) keys, none where
//            that is negative: -65504 * scale and a sum of 0); split: full panels floor(w F / 6) ..
//            floor((w + 1) F / 6), the rest of the row by worker 5
// Slots      per full panel 4 for the maximum and 18 for the exponentials, 8 more unless their
//            arguments are zero (f16v2exp takes 1 or 2 slots):
//              -              ; max - s of a quad
//              ld64 next      ; times -scale
//              -              ; exp
//              -              ; exp
//              -              ; max - s
//              ld64 next      ; times -scale
//              st64           ; exp
//              -              ; exp
//              st64           ; sum of the 8
// Numerics   max - s and its product with -scale round to half, so does the exponential; sums in F32
//            (split: of the six parts in order).
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

// The maximum of the row at m3 over m5 full panels and m6 keys more, in both halves of a4.
.macro SOFTMAX_MAX p
    { mov $m9, $m3 ; setzi $a4, 0xffbff }
    { mov $m10, $m2 ; or $a4, $a4, 0xfbf00000 }
    { add $m11, $m5, -1 ; mov $a5, $a4 }
    { brz $m5, \p\()_max_ragged ; fnop }
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
\p\()_max_ragged:
    brz $m6, \p\()_max_done
    shr $m11, $m6, 2
    { rpt $m11, 1 ; fnop }
    { ld64step $a0:1, $m15, $m9+=, 1 ; fnop }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64 $a2:3, $m8, $m15, 0 ; fnop }
    { ld64 $a0:1, $m15, $m9, 0 ; setzi $a6, 0xffbff }
    { nop ; and64 $a0:1, $a0:1, $a2:3 }
    { nop ; or $a6, $a6, 0xfbf00000 }
    { nop ; andc $a2, $a6, $a2 }
    { nop ; andc $a3, $a6, $a3 }
    { nop ; or64 $a0:1, $a0:1, $a2:3 }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
\p\()_max_done:
    { nop ; f16v4maxc $a4, $a4:5 }
    { nop ; f16v2maxc $a4, $a4 }
.endm

// Exponentials of the row at m3 to m10 with a6 = {max, -scale}: m5 full panels, m6 ragged keys, m7
// panels of zeros. The sum is a0 + a1 + a2 + a3 in pairs.
.macro SOFTMAX_EXP p
    { mov $m9, $m3 ; fnop }
    { brz $m5, \p\()_ragged ; fnop }
    { ld64step $a4:5, $m15, $m9+=, 1 ; fnop }
    { rpt $m11, 17 ; fnop }
    SOFTMAX_GROUP 1, 1, 1
    SOFTMAX_GROUP 1, $m4, $m4
    SOFTMAX_GROUP 1, 1, 1
    SOFTMAX_GROUP 0, $m4, $m4
\p\()_ragged:
    brz $m6, \p\()_zeros
    shr $m11, $m6, 2
    { rpt $m11, 6 ; fnop }
    SOFTMAX_QUAD
    { nop ; f16v2exp $a0, $a0 }
    { nop ; f16v2exp $a1, $a1 }
    { nop ; f16v4acc $a0:1 }
    { st64step $a0:1, $m15, $m10+=, 1 ; fnop }
    { ld64step $a4:5, $m15, $m9+=, 1 ; fnop }
    { ld64 $a2:3, $m8, $m15, 0 ; f16v4sub $a0:1, $a6:BL, $a4:5 }
    { ld64 $a4:5, $m8, $m15, 4 ; f16v4mul $a0:1, $a6:BU, $a0:1 }
    { nop ; and64 $a0:1, $a0:1, $a2:3 }
    { nop ; or64 $a0:1, $a0:1, $a4:5 }
    { nop ; f16v2exp $a0, $a0 }
    { sub $m11, 3, $m11 ; f16v2exp $a1, $a1 }
    { nop ; and64 $a0:1, $a0:1, $a2:3 }
    { st64step $a0:1, $m15, $m10+=, 1 ; f16v4acc $a0:1 }
    { rpt $m11, 0 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { shl $m11, $m4, 3 ; fnop }
    { add $m10, $m10, $m11 ; fnop }
    { add $m10, $m10, -8 ; fnop }
\p\()_zeros:
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
.endm

// A row after the other; causal: the keys of a row are counted as it begins.
.macro SOFTMAX_ROWS p, causal
KERNEL_ENTRY \p, \p\()_worker, 7

// Masks of 0 .. 3 valid halves of a quad; behind them -1 for the others, so that the slots of their
// exponentials do not depend on what stands there.
\p\()_masks:
    .word 0, 0, 0x0000ffff, 0, 0xffffffff, 0, 0xffffffff, 0x0000ffff
    .word 0xbc00bc00, 0xbc00bc00, 0xbc000000, 0xbc00bc00, 0, 0xbc00bc00, 0, 0xbc000000
\p\()_worker:
    { get $m9, $WSR ; setzi $a0, ZAACC }
    { and $m9, $m9, 7 ; uput $FP_CLR, $a0 }
    { ld32 $m4, ARG(3) ; fnop }
    { ld32 $a7, ARG(6) ; fnop }
    { setzi $m8, SIXTH ; sort4x16lo $a7, $a7, $a7 }
    { sub $m0, $m4, $m9 ; fnop }
    add $m0, $m0, 5
    mul $m0, $m0, $m8
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, \p\()_exit
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
    .if \causal == 0
    ld32 $m5, ARG(4)
    ld32 $m6, ARG(5)
    shr $m7, $m6, 8
    and $m6, $m6, 255
    and $m9, $m6, 3
    shl $m9, $m9, 3
    setzi $m8, \p\()_masks
    add $m8, $m8, $m9
    .endif
    nop
\p\()_row:
    .if \causal
    ld32 $m9, ARG(1)
    ld32 $m10, ARG(5)
    sub $m9, $m1, $m9
    shr $m9, $m9, 2
    add $m9, $m9, $m10
    add $m9, $m9, -8192
    ld32 $m7, ARG(4)
    shr $m10, $m7, 8
    and $m7, $m7, 255
    min $m9, $m9, $m10
    max $m9, $m9, 0
    shr $m5, $m9, 4
    and $m6, $m9, 15
    add $m9, $m9, 15
    shr $m9, $m9, 4
    sub $m7, $m7, $m9
    and $m9, $m6, 3
    shl $m9, $m9, 3
    setzi $m8, \p\()_masks
    add $m8, $m8, $m9
    .endif
    SOFTMAX_MAX \p
    { nop ; sort4x16lo $a6, $a4, $a7 }
    { nop ; f16tof32 $a4, $a4 }
    { nop ; f16tof32 $a5, $a7 }
    { nop ; f32mul $a4, $a4, $a5 }
    { add $m11, $m5, -1 ; f32sub $a4, $azero, $a4 }
    { st32 $a4, $m1, $m15, 0 ; fnop }
    SOFTMAX_EXP \p
    { ld32 $m11, ARG(3) ; f32v2add $a0:1, $a0:1, $a2:3 }
    { shl $m11, $m11, 2 ; f32add $a0, $a0, $a1 }
    st32 $a0, $m1, $m11, 0
    add $m1, $m1, 24
    add $m2, $m2, 192
    add $m3, $m3, 192
    nop
    brnzdec $m0, \p\()_row
\p\()_exit:
    exitz $m15
.endm

SOFTMAX_ROWS softmax_f16, 0
SOFTMAX_ROWS softmax_f16_causal, 1

// Split: frame 0..6 as above (0, 1, 2 advance), 8..13 maxima, 14..19 sums of the workers.
    KERNEL_SECTION softmax_f16_split
    .supervisor
    KERNEL_GLOBAL softmax_f16_split
    add $m11, $m11, -80
    setzi $m0, softmax_f16_split_max
    setzi $m1, softmax_f16_split_exp
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    setzi $m9, softmax_f16_split_sum
    add $m5, $m5, -1
softmax_f16_split_row:
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    runall $m0, $m11, 0
    add $m2, $m2, 32
    add $m3, $m3, 4
    add $m4, $m4, 32
    sync 2
    runall $m1, $m11, 0
    sync 2
    runall $m9, $m11, 0
    sync 2
    brnzdec $m5, softmax_f16_split_row
    add $m11, $m11, 80
    br $m10
    .size softmax_f16_split, . - softmax_f16_split
    .worker
    .align 8
softmax_f16_split_masks:
    .word 0, 0, 0x0000ffff, 0, 0xffffffff, 0, 0xffffffff, 0x0000ffff
    .word 0xbc00bc00, 0xbc00bc00, 0xbc000000, 0xbc00bc00, 0, 0xbc00bc00, 0, 0xbc000000
// m0 worker, m3 scores and m2 out of its first panel, m4 panel step, m5 its full panels, m6 ragged
// keys,
// m7 zero panels, m8 mask
.macro SOFTMAX_SHARE
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m4, ARG(3)
    ld32 $m5, ARG(4)
    ld32 $m6, ARG(5)
    ld32 $m7, ARG(6)
    setzi $m9, SIXTH
    mul $m9, $m9, $m5
    mul $m10, $m9, $m0
    add $m5, $m10, $m9
    shr $m10, $m10, SIXTH_SHIFT
    shr $m5, $m5, SIXTH_SHIFT
    sub $m5, $m5, $m10
    shl $m9, $m4, 5
    mul $m10, $m10, $m9
    ld32 $m2, ARG(0)
    add $m2, $m2, $m10
    ld32 $m3, ARG(2)
    add $m3, $m3, $m10
    shl $m4, $m4, 2
    add $m4, $m4, -3
    // the rest of the row is worker 5's
    cmpeq $m9, $m0, 5
    mul $m6, $m6, $m9
    shr $m7, $m6, 8
    and $m6, $m6, 255
    and $m9, $m6, 3
    shl $m9, $m9, 3
    setzi $m8, softmax_f16_split_masks
    add $m8, $m8, $m9
    add $m1, $m13, 32
.endm
softmax_f16_split_max:
    SOFTMAX_SHARE
    SOFTMAX_MAX softmax_f16_split_a
    shl $m0, $m0, 2
    st32 $a4, $m1, $m0, 0
    exitz $m15
    .align 8
softmax_f16_split_exp:
    SOFTMAX_SHARE
    { ld32 $a4, $m1, $m15, 0 ; setzi $a0, ZAACC }
    { ld32 $a0, $m1, $m15, 1 ; uput $FP_CLR, $a0 }
    { ld32 $a0, $m1, $m15, 2 ; f16v2max $a4, $a4, $a0 }
    { ld32 $a0, $m1, $m15, 3 ; f16v2max $a4, $a4, $a0 }
    { ld32 $a0, $m1, $m15, 4 ; f16v2max $a4, $a4, $a0 }
    { ld32 $a0, $m1, $m15, 5 ; f16v2max $a4, $a4, $a0 }
    { ld32 $a7, ARG(6) ; f16v2max $a4, $a4, $a0 }
    { mov $m10, $m2 ; sort4x16lo $a6, $a4, $a7 }
    { add $m11, $m5, -1 ; fnop }
    SOFTMAX_EXP softmax_f16_split_b
    { shl $m0, $m0, 2 ; f32v2add $a0:1, $a0:1, $a2:3 }
    { nop ; f32add $a0, $a0, $a1 }
    st32 $a0, $m1, $m0, 6
    exitz $m15
softmax_f16_split_sum:
    { get $m0, $WSR ; fnop }
    and $m0, $m0, 7
    brnz $m0, softmax_f16_split_done
    { add $m1, $m13, 32 ; fnop }
    { ld32 $a4, $m1, $m15, 0 ; fnop }
    { ld32 $a0, $m1, $m15, 1 ; fnop }
    { ld32 $a0, $m1, $m15, 2 ; f16v2max $a4, $a4, $a0 }
    { ld32 $a0, $m1, $m15, 3 ; f16v2max $a4, $a4, $a0 }
    { ld32 $a0, $m1, $m15, 4 ; f16v2max $a4, $a4, $a0 }
    { ld32 $a0, $m1, $m15, 5 ; f16v2max $a4, $a4, $a0 }
    { ldb16 $a5, ARG(12) ; f16v2max $a4, $a4, $a0 }
    { ld32 $a0, $m1, $m15, 6 ; f16tof32 $a4, $a4 }
    { ld32 $a1, $m1, $m15, 7 ; f16tof32 $a5, $a5 }
    { ld32 $a1, $m1, $m15, 8 ; f32add $a0, $a0, $a1 }
    { ld32 $a1, $m1, $m15, 9 ; f32add $a0, $a0, $a1 }
    { ld32 $a1, $m1, $m15, 10 ; f32add $a0, $a0, $a1 }
    { ld32 $a1, $m1, $m15, 11 ; f32add $a0, $a0, $a1 }
    { ld32 $m2, ARG(1) ; f32add $a0, $a0, $a1 }
    { ld32 $m3, ARG(3) ; f32mul $a4, $a4, $a5 }
    { shl $m3, $m3, 2 ; f32sub $a4, $azero, $a4 }
    { st32 $a4, $m2, $m15, 0 ; fnop }
    { st32 $a0, $m2, $m3, 0 ; fnop }
softmax_f16_split_done:
    exitz $m15
