// copy_u16: rows of halves at any even address (the edges of layouts whose runs are not whole words).
//
// Entries    copy_u16: rows w, w + 6, ... by worker w; copy_u16_serial: all rows by worker 0 (rows whose
//            first and last halves may share a word of out)
// Arguments  m2 = out, m3 = in, m4 = rows, m5 = halves of a row, m6 = bytes from row to row in out,
//            m7 = in in
// Shapes     2-byte aligned, any region. Words of out that the copy covers by half are read and written
//            whole: they must have been written before, and no other worker may write them
// Access tail none (reads and writes up to 2 bytes beside out inside its words)
// Slots      12 per half, 4 per row
#include "kernel.inc"

// m0 rows left - 1, m1 halves left, m2 out, m3 in, m4 halves - 1, m5 step of out, m6 of in, m7 value,
// m8 parity, m9 word address, m10 old word
.macro COPY_U16 name, serial
    KERNEL_ENTRY \name, \name\()_worker, 6
\name\()_worker:
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m0, ARG(2)
    .if \serial
    brnz $m11, \name\()_exit
    .else
    sub $m0, $m0, $m11
    add $m0, $m0, 5
    setzi $m1, SIXTH
    mul $m0, $m0, $m1
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, \name\()_exit
    .endif
    add $m0, $m0, -1
    ld32 $m4, ARG(3)
    ld32 $m5, ARG(4)
    ld32 $m6, ARG(5)
    ld32 $m2, ARG(0)
    mul $m7, $m5, $m11
    add $m2, $m2, $m7
    ld32 $m3, ARG(1)
    mul $m7, $m6, $m11
    add $m3, $m3, $m7
    .if \serial
    .else
    mul $m5, $m5, 6
    mul $m6, $m6, 6
    .endif
    shl $m7, $m4, 1
    sub $m5, $m5, $m7
    sub $m6, $m6, $m7
    add $m4, $m4, -1
\name\()_row:
    mov $m1, $m4
\name\()_half:
    ldz16step $m7, $m15, $m3+=, 1
    and $m8, $m2, 2
    sub $m9, $m2, $m8
    ld32 $m10, $m9, $m15, 0
    add $m2, $m2, 2
    brnz $m8, \name\()_upper
    shr $m10, $m10, 16
    shl $m10, $m10, 16
    bri \name\()_store
\name\()_upper:
    shl $m10, $m10, 16
    shr $m10, $m10, 16
    shl $m7, $m7, 16
\name\()_store:
    or $m10, $m10, $m7
    st32 $m10, $m9, $m15, 0
    brnzdec $m1, \name\()_half
    add $m2, $m2, $m5
    add $m3, $m3, $m6
    brnzdec $m0, \name\()_row
\name\()_exit:
    exitz $m15
.endm

COPY_U16 copy_u16, 0
COPY_U16 copy_u16_serial, 1
