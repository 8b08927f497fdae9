// row_max: the largest score of each row.
//
// Arguments  m2 = out, m3 = in, m4 = R, m5 = full panels, m6 = keys behind them (0..15)
// Shapes     in: A16 panels [keys / 16][R][16] of halves; out: R words, the maximum in both halves.
//            Keys behind the valid ones are not looked at; at least one valid key
// Alignment  8 bytes each, any region. Access tail: none
// Split      rows w, w + 6, ...   Contexts: all six workers
// Slots      4 per panel (ld64 next ; max), 14 per row, 22 more with a ragged panel
// Numerics   exact; starts at -65504; of zeros of both signs either may be given.
#include "kernel.inc"

KERNEL_ENTRY row_max, row_max_worker, 5

    .align 8
// Masks of 0 .. 3 valid halves of a quad.
row_max_masks:
    .word 0, 0, 0x0000ffff, 0, 0xffffffff, 0, 0xffffffff, 0x0000ffff

// m0 rows left - 1, m1 out, m2 in of the row, m3 running, m4 step to the next panel in 8 bytes,
// m5 full panels, m6 ragged quads - 1 or the like, m7 panels - 1, m8 mask address, m9 quads left
// a4:5 maximum, a6:7 -65504
row_max_worker:
    { get $m9, $WSR ; setzi $a6, 0x3fbff }
    { and $m9, $m9, 7 ; or $a6, $a6, 0xfbf00000 }
    { ld32 $m4, ARG(2) ; mov $a7, $a6 }
    { setzi $m8, SIXTH ; fnop }
    sub $m0, $m4, $m9
    add $m0, $m0, 5
    mul $m0, $m0, $m8
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, row_max_exit
    add $m0, $m0, -1
    ld32 $m1, ARG(0)
    shl $m3, $m9, 2
    add $m1, $m1, $m3
    ld32 $m2, ARG(1)
    shl $m3, $m9, 5
    add $m2, $m2, $m3
    ld32 $m5, ARG(3)
    ld32 $m6, ARG(4)
    shl $m4, $m4, 2
    add $m4, $m4, -3
    and $m9, $m6, 3
    shl $m9, $m9, 3
    setzi $m8, row_max_masks
    add $m8, $m8, $m9
    add $m7, $m5, -1
    shr $m9, $m6, 2
row_max_row:
    { mov $m3, $m2 ; mov $a4:5, $a6:7 }
    { add $m2, $m2, 192 ; fnop }
    brz $m5, row_max_ragged
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
row_max_ragged:
    brz $m6, row_max_store
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
row_max_store:
    { nop ; f16v4maxc $a4, $a4:5 }
    { nop ; f16v2maxc $a4, $a4 }
    st32step $a4, $m15, $m1+=, 6
    brnzdec $m0, row_max_row
row_max_exit:
    exitz $m15
