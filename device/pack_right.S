// pack_right: blocks of 16 x 16 halves transposed and put one behind the other: coefficient panels (the
// right operand of a product) from halves with rows along K, or A16 panels of the transpose.
//
// Arguments  m2 = out, m3 = in, m4 = panels, m5 = G (blocks of the inner axis), m6 = bytes from row to row,
//            m7 = bytes from block to block of the outer axis, m8 = of the inner axis
// Purpose    panel p = j * G + g of out (512 bytes) = inner block g of outer block j, column after column:
//            out[p][c][k] = in[row k][column c] of the block
//            coefficients: inner = 16 rows, outer = 16 columns; transpose: inner = 16 columns
//            rows of in: A16 panels [C / 16][R][16]: 32 bytes, 16 columns are 32 R bytes away; row-major
//            2 C bytes, 16 columns are 32 bytes away; 16 rows are 16 row steps away
// Shapes     rows and columns multiples of 16; in and out 8-byte aligned, any region; row step 8..4088
// Access tail none. Contexts: all six workers
// Split      panels w, w + 6, ...
// Slots      8 per 4 x 4 halves, 154 per panel. Blocks of 4 rows go through the accumulators (isa 3.12); two
//            columns of a block come out while the next one goes in:
//              ld64 row 0          ; column 1 of the block before
//              ld64 row 1          ; -
//              st64 column 0       ; -
//              st64 column 1       ; rows 0 and 1 in, column 2 out
//              ld64 row 2          ; -
//              ld64 row 3          ; -
//              st64 column 2       ; rows 2 and 3 in, column 3 out
//              st64 column 3       ; column 0
// Numerics   bit moves.
#include "kernel.inc"

KERNEL_ENTRY pack_right, pack_right_worker, 7

// m0 panels left - 1, m1 row step in 8 bytes, m2 out, m3 groups of 4 columns left, m4 in running, m5 inner
// block g, m6 from the last row back to the next 4 columns, m7 outer block's address, m8 96, m9 out of the
// block before, m10 row step in bytes, m11 G; a0:3 rows, a4:7 columns
.macro BLOCK
    { ld64step $a0:1, $m15, $m4+=, $m1 ; f16v4stacc $a6:7, TSTACC_P1 }
    { ld64step $a2:3, $m15, $m4+=, $m1 ; fnop }
    { st64 $a4:5, $m9, $m15, 0 ; fnop }
    { st64 $a6:7, $m9, $m15, 4 ; f16v4istacc $a4:5, $a0:1, $a2:3, TISTACC_P0 }
    { ld64step $a0:1, $m15, $m4+=, $m1 ; fnop }
    { ld64step $a2:3, $m15, $m4+=, $m1 ; fnop }
    { st64 $a4:5, $m9, $m15, 8 ; f16v4istacc $a6:7, $a0:1, $a2:3, TISTACC_P1 }
    { st64step $a6:7, $m8, $m9+=, 1 ; f16v4stacc $a4:5, TSTACC_P0 }
.endm
pack_right_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    mov $m5, $m0
    ld32 $m1, ARG(2)
    sub $m1, $m1, $m0
    add $m1, $m1, 5
    setzi $m8, SIXTH
    mul $m1, $m1, $m8
    shr $m1, $m1, SIXTH_SHIFT
    ld32 $m2, ARG(0)
    shl $m0, $m0, 9
    add $m2, $m2, $m0
    mov $m0, $m1
    brz $m0, pack_right_exit
    add $m0, $m0, -1
    ld32 $m10, ARG(4)
    ld32 $m7, ARG(1)
    ld32 $m11, ARG(3)
    shr $m1, $m10, 3
    shl $m6, $m10, 4
    sub $m6, 8, $m6
    setzi $m8, 96
// m5 may have gone past the blocks of its outer one.
pack_right_panel:
    cmpult $m4, $m5, $m11
    brnz $m4, pack_right_here
    sub $m5, $m5, $m11
    ld32 $m4, ARG(5)
    add $m7, $m7, $m4
    bri pack_right_panel
pack_right_here:
    ld32 $m4, ARG(6)
    mul $m4, $m4, $m5
    add $m4, $m4, $m7
    mov $m9, $m2
    add $m2, $m2, 3072
    add $m5, $m5, 6
    { setzi $m3, 2 ; fnop }
// The first block of a panel has none before it.
    { ld64step $a0:1, $m15, $m4+=, $m1 ; fnop }
    { ld64step $a2:3, $m15, $m4+=, $m1 ; fnop }
    { ld64step $a4:5, $m15, $m4+=, $m1 ; f16v4istacc $a6:7, $a0:1, $a2:3, TISTACC_P0 }
    { ld64step $a6:7, $m15, $m4+=, $m1 ; fnop }
    { nop ; f16v4istacc $a0:1, $a4:5, $a6:7, TISTACC_P1 }
    { nop ; f16v4stacc $a4:5, TSTACC_P0 }
    { rpt 3, 7 ; fnop }
    BLOCK
pack_right_columns:
    { add $m4, $m4, $m6 ; fnop }
    BLOCK
    { add $m9, $m9, 96 ; fnop }
    { rpt 3, 7 ; fnop }
    BLOCK
    { brnzdec $m3, pack_right_columns ; fnop }
    { nop ; f16v4stacc $a6:7, TSTACC_P1 }
    { st64 $a4:5, $m9, $m15, 0 ; f16v4istacc $a4:5, $azeros, $azeros, TISTACC_P0 }
    { st64 $a6:7, $m9, $m15, 4 ; f16v4istacc $a6:7, $azeros, $azeros, TISTACC_P1 }
    { st64 $a4:5, $m9, $m15, 8 ; fnop }
    st64 $a6:7, $m9, $m15, 12
    brnzdec $m0, pack_right_panel
pack_right_exit:
    exitz $m15
