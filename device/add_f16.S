// add_f16, mul_f16: out = left + right or left * right, in halves; right is as large as left, one row for all
// rows or one half for each row.
//
// Entries    add_f16, mul_f16: one run of n quads. add_f16_rows, mul_f16_rows: R rows of n quads, right is
//            one row. add_f16_each, mul_f16_each: R rows of n quads, right has R halves.
// Arguments  m2 = out (may be left or right of equal size), m3 = left, m4 = right, m5 = n,
//            _rows, _each: m6 = R
// Shapes     n >= 1 quads (4 halves); all 8-byte aligned (right of _each: 2), any region
// Split      quads of a row round robin: w, w + 6, ...; all workers visit every row; _each: rows w, w + 6, ...
// Access tail none. Contexts: all six workers.
// Slots      3 per quad:
//              ld64 left next   ; add or multiply
//              ld64 right next  ; -
//              st64             ; -
//            _each: 2 per quad:
//              ld64 left next   ; add or multiply
//              st64             ; -
// Numerics   one rounding, nearest even.
#include "kernel.inc"

// m0 offset left, m1 offset right, m2 out, m3 left, m4 right, m5 quads of this worker - 1, m6 rows,
// m7 offset out, m8 step to the next row, m9 offset of right at the start of a row
.macro POINT name, op
    KERNEL_ENTRY \name, \name\()_worker, 4

\name\()_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m5, ARG(3)
    setzi $m6, SIXTH
    sub $m5, $m5, $m0
    add $m5, $m5, 5
    mul $m5, $m5, $m6
    shr $m5, $m5, SIXTH_SHIFT
    brz $m5, \name\()_exit
    add $m5, $m5, -1
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    ld32 $m4, ARG(2)
    shl $m0, $m0, 3
    mov $m1, $m0
    mov $m7, $m0
    ld64step $a0:1, $m3, $m0+=, 6
    ld64step $a2:3, $m4, $m1+=, 6
    { rpt $m5, 2 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 6 ; \op $a4:5, $a0:1, $a2:3 }
    { ld64step $a2:3, $m4, $m1+=, 6 ; fnop }
    { st64step $a4:5, $m2, $m7+=, 6 ; fnop }
    { nop ; \op $a4:5, $a0:1, $a2:3 }
    st64step $a4:5, $m2, $m7+=, 6
\name\()_exit:
    exitz $m15

    KERNEL_ENTRY \name\()_rows, \name\()_rows_worker, 5
\name\()_rows_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m5, ARG(3)
    setzi $m6, SIXTH
    shl $m8, $m5, 3
    sub $m5, $m5, $m0
    add $m5, $m5, 5
    mul $m5, $m5, $m6
    shr $m5, $m5, SIXTH_SHIFT
    brz $m5, \name\()_rows_exit
    mul $m6, $m5, 48
    sub $m8, $m8, $m6
    add $m5, $m5, -1
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    ld32 $m4, ARG(2)
    ld32 $m6, ARG(4)
    add $m6, $m6, -1
    shl $m0, $m0, 3
    mov $m9, $m0
    mov $m7, $m0
    nop
\name\()_rows_row:
    mov $m1, $m9
    ld64step $a2:3, $m4, $m1+=, 6
    { ld64step $a0:1, $m3, $m0+=, 6 ; fnop }
    { rpt $m5, 2 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 6 ; \op $a4:5, $a0:1, $a2:3 }
    { ld64step $a2:3, $m4, $m1+=, 6 ; fnop }
    { st64step $a4:5, $m2, $m7+=, 6 ; fnop }
    { add $m0, $m0, $m8 ; \op $a4:5, $a0:1, $a2:3 }
    { st64step $a4:5, $m2, $m7+=, 6 ; fnop }
    add $m7, $m7, $m8
    brnzdec $m6, \name\()_rows_row
\name\()_rows_exit:
    exitz $m15

    KERNEL_ENTRY \name\()_each, \name\()_each_worker, 5
// m0 offset left, m1 offset right, m2 out, m3 left, m4 right, m5 quads of a row - 1, m6 rows of this worker
// - 1, m7 offset out, m8 from the end of a row to the next one of this worker
\name\()_each_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m6, ARG(4)
    setzi $m5, SIXTH
    sub $m6, $m6, $m0
    add $m6, $m6, 5
    mul $m6, $m6, $m5
    shr $m6, $m6, SIXTH_SHIFT
    brz $m6, \name\()_each_exit
    add $m6, $m6, -1
    ld32 $m5, ARG(3)
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    ld32 $m4, ARG(2)
    shl $m1, $m0, 1
    shl $m8, $m5, 3
    mul $m0, $m0, $m8
    mul $m8, $m8, 5
    mov $m7, $m0
    add $m5, $m5, -1
\name\()_each_row:
    { ldb16step $a2, $m4, $m1+=, 6 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 1 ; fnop }
    { rpt $m5, 1 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 1 ; \op $a4:5, $a2:BL, $a0:1 }
    { st64step $a4:5, $m2, $m7+=, 1 ; fnop }
    { add $m0, $m0, $m8 ; \op $a4:5, $a2:BL, $a0:1 }
    { st64step $a4:5, $m2, $m7+=, 1 ; fnop }
    add $m7, $m7, $m8
    brnzdec $m6, \name\()_each_row
\name\()_each_exit:
    exitz $m15
.endm

POINT add_f16, f16v4add
POINT mul_f16, f16v4mul
