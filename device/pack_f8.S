// pack_f8: halves in rows or A16 panels to A32 panels of F8 in one pass, out = round(in * 2^-scale).
//
// Entries    pack_f8: the workers share the rows; pack_f8_groups: they share the column groups
// Arguments  m2 = out, m3 = in, m4 = R, m5 = C / 16, m6 = bytes from row to row of in, m7 = bytes from
//            column group to column group, m8 = (-scale) & 63, m9 = format (3 F143, 0 F152)
//            A16 panels: 32 and 32 R; rows of C halves: 2 C and 32
// Shapes     R >= 1; C a multiple of 16; an odd number of column groups is padded with zeros to 32 columns;
//            row step a multiple of 16, up to 4104 bytes
// Alignment  in 16 bytes, in the interleaved region (two 64-bit loads in one instruction); out 8 bytes,
//            anywhere but in the memory elements of in
// Split      contiguous rows from floor(w * R / 6) in every column group; groups: all rows of the column
//            groups w, w + 6, ... (an odd number of column groups must be more than 6)
// Access tail none. Contexts: all six workers
// Slots      2 per row of 16 columns, 9 per column group: one bundle per vector of 8 halves
//              load next, store previous ; convert
//            the loads step inside the row and to the next one in turn, the stores by 8 and by 24 bytes
// Numerics   nearest even, saturating without a trap
#include "kernel.inc"

// Stride selectors: 1 = inside the row of in (2 words), 2 = to its next row, 3 = to the next row of out
#define LOAD_IN 5   /* both loads by 1 */
#define LOAD_NEXT 10 /* both loads by 2 */
#define OUT_NEXT 48

// m0 rows of this worker, m1 stride word, m2:3 packed in, in + 8, out, m4 free, m5 step of out to the next
// column group, m6 sum of two such steps, m7 step of in, m8 in, m9 rows - 1, m10 out, m11 column groups
// left - 1; a0:3 vector, a4:5 converted
.macro PACK_F8 name, groups
    KERNEL_ENTRY \name, \name\()_worker, 8
\name\()_worker:
    { ld32 $a0, ARG(7) ; fnop }
    { get $m0, $WSR ; uput $FP_NFMT, $a0 }
    { and $m0, $m0, 7 ; fnop }
    { ld32 $a0, ARG(6) ; uput $FP_CTL, $azero }
    { ld32 $m4, ARG(2) ; uput $FP_SCL, $a0 }
    setzi $m5, SIXTH
    ld32 $m6, ARG(4)
    ld32 $m8, ARG(1)
    ld32 $m10, ARG(0)
    ld32 $m7, ARG(5)
    ld32 $m11, ARG(3)
    .if \groups
    sub $m11, $m11, $m0
    add $m11, $m11, 5
    mul $m11, $m11, $m5
    shr $m11, $m11, SIXTH_SHIFT
    brz $m11, \name\()_exit
    mul $m9, $m7, $m0
    add $m8, $m8, $m9
    mul $m7, $m7, 6
    shl $m5, $m4, 5
    shr $m9, $m0, 1
    mul $m9, $m9, $m5
    add $m10, $m10, $m9
    and $m9, $m0, 1
    shl $m9, $m9, 4
    add $m10, $m10, $m9
    mov $m0, $m4
    .else
    mul $m5, $m5, $m4
    mul $m1, $m5, $m0
    add $m5, $m5, $m1
    shr $m1, $m1, SIXTH_SHIFT
    shr $m5, $m5, SIXTH_SHIFT
    sub $m0, $m5, $m1
    brz $m0, \name\()_exit
    mul $m9, $m6, $m1
    add $m8, $m8, $m9
    shl $m9, $m1, 5
    add $m10, $m10, $m9
    .endif
    add $m1, $m6, -16
    shl $m1, $m1, 7
    or $m1, $m1, 2
    setzi $m9, 3
    shl $m9, $m9, 20
    or $m1, $m1, $m9
    .if \groups
    mul $m5, $m5, 3
    add $m6, $m5, $m5
    .else
    shl $m6, $m4, 5
    setzi $m5, 16
    nop
    .endif
    add $m11, $m11, -1
    add $m9, $m0, -1
\name\()_group:
    add $m4, $m8, 8
    tapack $m2:3, $m8, $m4, $m10
    { ld2x64pace $a0:1, $a2:3, $m2:3+=, $m1, LOAD_IN ; fnop }
    { ld2x64pace $a0:1, $a2:3, $m2:3+=, $m1, LOAD_NEXT ; f16v8tof8 $a4:5, $a0:3 }
    { rpt $m9, 1 ; fnop }
    { ld2xst64pace $a0:3, $a4:5, $m2:3+=, $m1, LOAD_IN ; f16v8tof8 $a4:5, $a0:3 }
    { ld2xst64pace $a0:3, $a4:5, $m2:3+=, $m1, LOAD_NEXT + OUT_NEXT ; f16v8tof8 $a4:5, $a0:3 }
    { st64pace $a4:5, $m2:3+=, $m1, 0 ; f16v8tof8 $a4:5, $a0:3 }
    { st64pace $a4:5, $m2:3+=, $m1, 3 ; fnop }
    add $m8, $m8, $m7
    add $m10, $m10, $m5
    sub $m5, $m6, $m5
    brnzdec $m11, \name\()_group
// An odd number of column groups: zeros in the other half of the last panel, by the worker that would have
// the next group.
    ld32 $m11, ARG(3)
    and $m9, $m11, 1
    brz $m9, \name\()_exit
    .if \groups
    get $m4, $WSR
    and $m4, $m4, 7
    sub $m11, $m11, $m4
    setzi $m4, SIXTH
    mul $m4, $m4, $m11
    shr $m4, $m4, SIXTH_SHIFT
    mul $m4, $m4, 6
    sub $m11, $m11, $m4
    brnz $m11, \name\()_exit
    .else
    nop
    .endif
    { rpt $m0, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 1 ; fnop }
    { st64step $azeros, $m15, $m10+=, 3 ; fnop }
\name\()_exit:
    exitz $m15
.endm

PACK_F8 pack_f8, 0
PACK_F8 pack_f8_groups, 1
