// gather_rows: out[i] = table[index[i]], rows of 64-bit words (embedding).
//
// Arguments  m2 = out, m3 = table, m4 = index, m5 = R, m6 = words of a row
// Shapes     index: R words, each a row number of the table; rows 8-byte aligned, any region; index 4-byte
// Split      rows w, w + 6, ...   Access tail: none. Contexts: all six workers
// Slots      2 per word, 7 per row
#include "kernel.inc"

KERNEL_ENTRY gather_rows, gather_rows_worker, 5

// m0 rows left - 1, m1 words, m2 out, m3 table, m4 index, m5 bytes of a row, m6 step of out, m7 source
gather_rows_worker:
    get $m10, $WSR
    and $m10, $m10, 7
    ld32 $m0, ARG(3)
    sub $m0, $m0, $m10
    add $m0, $m0, 5
    setzi $m6, SIXTH
    mul $m0, $m0, $m6
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, gather_rows_exit
    add $m0, $m0, -1
    ld32 $m1, ARG(4)
    shl $m5, $m1, 3
    ld32 $m2, ARG(0)
    mul $m6, $m5, $m10
    add $m2, $m2, $m6
    mul $m6, $m5, 5
    ld32 $m3, ARG(1)
    ld32 $m4, ARG(2)
    shl $m10, $m10, 2
    add $m4, $m4, $m10
gather_rows_row:
    { ld32step $m7, $m15, $m4+=, 6 ; fnop }
    { mul $m7, $m7, $m5 ; fnop }
    { add $m7, $m7, $m3 ; fnop }
    { rpt $m1, 1 ; fnop }
    { ld64step $a0:1, $m15, $m7+=, 1 ; fnop }
    { st64step $a0:1, $m15, $m2+=, 1 ; fnop }
    add $m2, $m2, $m6
    brnzdec $m0, gather_rows_row
gather_rows_exit:
    exitz $m15
