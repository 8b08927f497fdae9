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
// Scratch    4 bytes at the worker base. Access tail none. Contexts: all six workers
// Split      panels w, w + 6, ...
// Slots      14 per 4 x 4 halves, 266 per panel:
//              ld64 row 0      ; -                     ld64 row 1       ; -
//              -               ; columns 0 low         -                ; columns 1 low
//              -               ; columns 2 low         ld32 row 2 left  ; columns 3 low
//              ld32 row 3 left ; -                     -                ; columns 0 high
//              ld32 row 2 right; columns 1 high        ld32 row 3 right ; -
//              st64 column 0   ; columns 3 high        st64 column 1    ; columns 2 high
//              st64 column 2   ; -                     st64 column 3    ; -
// Numerics   bit moves.
#include "kernel.inc"

KERNEL_ENTRY pack_right, pack_right_worker, 7

// m0 panels left - 1, m1 row step in 8 bytes, m2 out, m3 bytes of a row step + 4 and free, m4 in running, m5
// inner block g, m6 step over two rows in 4 bytes, m7 outer block's address, m8 96, m9 out running, m10 row
// step in bytes, m11 G; a0:7 the block
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
    shr $m6, $m10, 1
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
    setzi $m3, 3
    st32 $m3, $mworker_base, $m15, 0
    nop
pack_right_columns:
    { add $m3, $m10, 4 ; fnop }
    { rpt 4, 13 ; fnop }
    { ld64step $a0:1, $m15, $m4+=, $m1 ; fnop }
    { ld64step $a2:3, $m15, $m4+=, $m1 ; fnop }
    { nop ; sort4x16lo $a4, $a0, $a2 }
    { nop ; sort4x16hi $a6, $a0, $a2 }
    { nop ; sort4x16lo $a0, $a1, $a3 }
    { ld32 $a1, $m4, $m15, 0 ; sort4x16hi $a2, $a1, $a3 }
    { ld32 $a3, $m4, $m10, 0 ; fnop }
    { nop ; sort4x16lo $a5, $a1, $a3 }
    { ld32 $a1, $m4, $m15, 1 ; sort4x16hi $a7, $a1, $a3 }
    { ld32step $a3, $m3, $m4+=, $m6 ; fnop }
    { st64 $a4:5, $m9, $m15, 0 ; sort4x16hi $a4, $a1, $a3 }
    { st64 $a6:7, $m9, $m15, 4 ; sort4x16lo $a1, $a1, $a3 }
    { st64 $a0:1, $m9, $m15, 8 ; mov $a3, $a4 }
    { st64step $a2:3, $m8, $m9+=, 1 ; fnop }
    shl $m3, $m10, 4
    sub $m4, $m4, $m3
    add $m4, $m4, 8
    add $m9, $m9, 96
    ld32 $m3, $mworker_base, $m15, 0
    brz $m3, pack_right_next
    add $m3, $m3, -1
    st32 $m3, $mworker_base, $m15, 0
    bri pack_right_columns
pack_right_next:
    brnzdec $m0, pack_right_panel
pack_right_exit:
    exitz $m15
