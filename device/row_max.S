// row_max: the largest score of each row.
//
// Entries    row_max; row_max_causal: row r has the keys up to min(valid, r + offset), none is allowed
// Arguments  m2 = out, m3 = in, m4 = R, m5 = full panels, m6 = keys behind them (0..15)
//            causal: m5 = valid keys, m6 = offset + 8192
// Shapes     in: A16 panels [keys / 16][R][16] of halves; out: R words, the maximum in both halves.
//            Keys behind the valid ones are not looked at; a row without keys gives -65504
// Alignment  8 bytes (out 4), any region. Access tail: none
// Split      rows w, w + 6, ...   Contexts: all six workers
// Slots      4 per panel (ld64 next ; max), 14 per row, 22 more with a ragged panel, 11 more with causal
// Numerics   exact; starts at -65504; a number wins over NaN, +0 over -0 (isa 3.7).
#include "kernel.inc"

.macro ROW_MAX name, causal
KERNEL_ENTRY \name, \name\()_worker, 5

    .align 8
// Masks of 0 .. 3 valid halves of a quad.
\name\()_masks:
    .word 0, 0, 0x0000ffff, 0, 0xffffffff, 0, 0xffffffff, 0x0000ffff

// m0 rows left - 1, m1 out, m2 in of the row, m3 running, m4 step to the next panel in 8 bytes,
// m5 full panels, m6 keys behind them, m7 panels - 1, m8 mask address, m9 quads left, m10 keys that the row
// sees, m11 valid keys (causal)
// a4:5 maximum, a6:7 -65504
\name\()_worker:
    { get $m9, $WSR ; setzi $a6, 0xffbff }
    { and $m9, $m9, 7 ; or $a6, $a6, 0xfbf00000 }
    { ld32 $m4, ARG(2) ; mov $a7, $a6 }
    { setzi $m8, SIXTH ; fnop }
    sub $m0, $m4, $m9
    add $m0, $m0, 5
    mul $m0, $m0, $m8
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, \name\()_exit
    add $m0, $m0, -1
    ld32 $m1, ARG(0)
    shl $m3, $m9, 2
    add $m1, $m1, $m3
    ld32 $m2, ARG(1)
    shl $m3, $m9, 5
    add $m2, $m2, $m3
    .if \causal
    mov $m10, $m9
    .endif
    ld32 $m5, ARG(3)
    ld32 $m6, ARG(4)
    shl $m4, $m4, 2
    add $m4, $m4, -3
    .if \causal
    mov $m11, $m5
    add $m10, $m6, $m10
    add $m10, $m10, -8192
    .else
    and $m9, $m6, 3
    shl $m9, $m9, 3
    setzi $m8, \name\()_masks
    add $m8, $m8, $m9
    add $m7, $m5, -1
    shr $m9, $m6, 2
    .endif
\name\()_row:
    .if \causal
    min $m9, $m10, $m11
    max $m9, $m9, 0
    shr $m5, $m9, 4
    and $m6, $m9, 15
    and $m8, $m6, 3
    shl $m8, $m8, 3
    setzi $m9, \name\()_masks
    add $m8, $m8, $m9
    add $m10, $m10, 6
    add $m7, $m5, -1
    shr $m9, $m6, 2
    nop
    .endif
    { mov $m3, $m2 ; mov $a4:5, $a6:7 }
    { add $m2, $m2, 192 ; fnop }
    brz $m5, \name\()_ragged
    ld64step $a0:1, $m15, $m3+=, 1
    { rpt $m7, 3 ; fnop }
    { ld64step $a0:1, $m15, $m3+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m3+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m3+=, $m4 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m3+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m3+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m3+=, 1 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { ld64step $a0:1, $m15, $m3+=, $m4 ; f16v4max $a4:5, $a4:5, $a0:1 }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
\name\()_ragged:
    brz $m6, \name\()_store
    nop
    { rpt $m9, 1 ; fnop }
    { ld64step $a0:1, $m15, $m3+=, 1 ; fnop }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
    // the quad with 0 .. 3 valid halves: masked ones become -65504
    { ld64 $a2:3, $m8, $m15, 0 ; fnop }
    { ld64 $a0:1, $m15, $m3, 0 ; fnop }
    { nop ; and64 $a0:1, $a0:1, $a2:3 }
    { nop ; andc64 $a2:3, $a6:7, $a2:3 }
    { nop ; or64 $a0:1, $a0:1, $a2:3 }
    { nop ; f16v4max $a4:5, $a4:5, $a0:1 }
\name\()_store:
    { nop ; f16v4maxc $a4, $a4:5 }
    { nop ; f16v2maxc $a4, $a4 }
    st32step $a4, $m15, $m1+=, 6
    brnzdec $m0, \name\()_row
\name\()_exit:
    exitz $m15
.endm

ROW_MAX row_max, 0
ROW_MAX row_max_causal, 1
