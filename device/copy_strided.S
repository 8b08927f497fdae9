// copy_strided: outer x rows runs of words with strides on both sides (layout changes between row-major,
// panels and views: a run is a row of a panel, outer counts panels), with zeros behind each run.
//
// Entries    copy_strided: 64-bit words; copy_strided_u32: 32-bit words; _pad behind either: zeros follow
// Arguments  m2 = out, m3 = in, m4 = rows | words << 13, m5 = bytes from row to row in in, m6 = in out,
//            m7 = outer | words of zeros << 16, m8 = bytes from outer to outer in in, m9 = in out
// Shapes     rows 1..8191, words of a run 1..127, zeros 1..15 words; aligned to the words, any region;
//            bytes between the runs of out stay as they are. Access tail: none
// Split      rows w, w + 6, ... of every outer. Contexts: all six workers
// Slots      2 per word (load, store), 4 per row, 6 per outer; pad: 1 per word of zeros, 1 more per row
#include "kernel.inc"

// m0 rows of this worker - 1, m1 words, m2 out, m3 in, m4 step to its next row in in, m5 in out,
// m6 outer left - 1, m7 step to the next outer in in, m8 in out, m9 rows left, m10 words of zeros
.macro COPY_STRIDED name, log, pad
    KERNEL_ENTRY \name, \name\()_worker, 8
\name\()_worker:
    get $m10, $WSR
    and $m10, $m10, 7
    ld32 $m1, ARG(2)
    shl $m0, $m1, 19
    shr $m0, $m0, 19
    shr $m1, $m1, 13
    sub $m0, $m0, $m10
    add $m0, $m0, 5
    setzi $m9, SIXTH
    mul $m0, $m0, $m9
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, \name\()_exit
    ld32 $m4, ARG(3)
    ld32 $m5, ARG(4)
    ld32 $m2, ARG(0)
    mul $m9, $m5, $m10
    add $m2, $m2, $m9
    ld32 $m3, ARG(1)
    mul $m9, $m4, $m10
    add $m3, $m3, $m9
    mul $m4, $m4, 6
    mul $m5, $m5, 6
    ld32 $m7, ARG(6)
    mul $m9, $m4, $m0
    sub $m7, $m7, $m9
    ld32 $m8, ARG(7)
    mul $m9, $m5, $m0
    sub $m8, $m8, $m9
    shl $m9, $m1, \log
    sub $m4, $m4, $m9
    sub $m5, $m5, $m9
    ld32 $m6, ARG(5)
    .if \pad
    shr $m10, $m6, 16
    shl $m9, $m10, \log
    sub $m5, $m5, $m9
    shl $m6, $m6, 16
    shr $m6, $m6, 16
    nop
    .endif
    add $m6, $m6, -1
    add $m0, $m0, -1
\name\()_outer:
    mov $m9, $m0
    nop
\name\()_row:
    { rpt $m1, 1 ; fnop }
    .if \log == 3
    { ld64step $a0:1, $m15, $m3+=, 1 ; fnop }
    { st64step $a0:1, $m15, $m2+=, 1 ; fnop }
    .else
    { ld32step $a0, $m15, $m3+=, 1 ; fnop }
    { st32step $a0, $m15, $m2+=, 1 ; fnop }
    .endif
    .if \pad
    { rpt $m10, 0 ; fnop }
    .if \log == 3
    { st64step $azeros, $m15, $m2+=, 1 ; fnop }
    .else
    { st32step $azero, $m15, $m2+=, 1 ; fnop }
    .endif
    .endif
    { add $m3, $m3, $m4 ; fnop }
    add $m2, $m2, $m5
    brnzdec $m9, \name\()_row
    add $m3, $m3, $m7
    add $m2, $m2, $m8
    nop
    brnzdec $m6, \name\()_outer
\name\()_exit:
    exitz $m15
.endm

COPY_STRIDED copy_strided, 3, 0
COPY_STRIDED copy_strided_pad, 3, 1
COPY_STRIDED copy_strided_u32, 2, 0
COPY_STRIDED copy_strided_u32_pad, 2, 1
