// cast_panels: A16 panels of halves to A32 panels of F8, out = round(in * 2^-scale).
//
// Entries    cast_panels; cast_shifted_panels: in place, the halves standing S bytes behind the result
// Arguments  m2 = out, m3 = in, m4 = R, m5 = C / 16, m6 = (-scale) & 63,
//            m7 = format (3 F143, 0 F152)
//            shifted: m2 = out (in = out + S), m3 = R, m4 = C / 32, m5 = (-scale) & 63, m6 = format,
//            m7 = S / (32 R)
// Chunks     shifted: S / (32 R) pairs of panels, then twice as many in each launch: a chunk's
//            results end where its halves begin
// Shapes     R >= 1, C a multiple of 32; in in the interleaved region, 32-byte aligned (128-bit loads);
//            out 8-byte aligned, anywhere
// Split      contiguous rows from floor(w * R / 6) in every panel
// Access tail none. Contexts: all six workers.
// Slots      4 per row of an A16 panel, 9 per panel:
//              ld128 ; convert
//              st64  ; -         twice per row; the second store steps to the next row
// Numerics   nearest even, saturating without a trap.
#include "kernel.inc"

KERNEL_ENTRY cast_panels, cast_panels_worker, 6

// m0 rows of this worker - 1, m1 panels left - 1, m2 out, m3 in, m4 step of in to the next panel,
// m5 step of out to the next panel, m6 sum of two such steps, m7 rows left
cast_panels_worker:
    { ld32 $a0, ARG(5) ; fnop }
    { get $m0, $WSR ; uput $FP_NFMT, $a0 }
    { and $m0, $m0, 7 ; fnop }
    { ld32 $a0, ARG(4) ; uput $FP_CTL, $azero }
    { ld32 $m4, ARG(2) ; uput $FP_SCL, $a0 }
    setzi $m5, SIXTH
    mul $m5, $m5, $m4
    mul $m1, $m5, $m0
    add $m5, $m5, $m1
    shr $m1, $m1, SIXTH_SHIFT
    shr $m5, $m5, SIXTH_SHIFT
    sub $m0, $m5, $m1
    brz $m0, cast_panels_exit
    shl $m1, $m1, 5
    ld32 $m2, ARG(0)
    add $m2, $m2, $m1
    ld32 $m3, ARG(1)
    add $m3, $m3, $m1
    shl $m4, $m4, 5
    shl $m5, $m0, 5
    sub $m4, $m4, $m5
    sub $m6, $m4, $m5
    sub $m5, 16, $m5
    ld32 $m1, ARG(3)
    add $m1, $m1, -1
cast_panels_panel:
    { ld128step $a0:3, $m15, $m3+=, 1 ; fnop }
    { add $m7, $m0, -1 ; fnop }
    { rpt $m7, 3 ; fnop }
    { ld128step $a0:3, $m15, $m3+=, 1 ; f16v8tof8 $a4:5, $a0:3 }
    { st64step $a4:5, $m15, $m2+=, 1 ; fnop }
    { ld128step $a0:3, $m15, $m3+=, 1 ; f16v8tof8 $a4:5, $a0:3 }
    { st64step $a4:5, $m15, $m2+=, 3 ; fnop }
    { ld128step $a0:3, $m15, $m3+=, 1 ; f16v8tof8 $a4:5, $a0:3 }
    { st64step $a4:5, $m15, $m2+=, 1 ; fnop }
    { add $m3, $m3, $m4 ; f16v8tof8 $a4:5, $a0:3 }
    { st64step $a4:5, $m15, $m2+=, 3 ; fnop }
    add $m2, $m2, $m5
    sub $m5, $m6, $m5
    brnzdec $m1, cast_panels_panel
cast_panels_exit:
    exitz $m15

// m0 worker, m1 step, m2 out, m3 32 R, m4 pairs left, m5 panels of the chunk, m7 pairs of the next
// chunk, m8 in, m9 pairs of this one
    KERNEL_SECTION cast_shifted_panels
    .supervisor
    KERNEL_GLOBAL cast_shifted_panels
    add $m11, $m11, -32
    setzi $m0, cast_panels_worker
    mul $m8, $m7, $m3
    min $m9, $m7, $m4
    nop
    nop
    nop
    nop
    st32 $m3, $m11, $m15, 2
    st32 $m5, $m11, $m15, 4
    st32 $m6, $m11, $m15, 5
    shl $m8, $m8, 5
    shl $m3, $m3, 5
    add $m5, $m9, $m9
    nop
    nop
    nop
    nop
    add $m8, $m2, $m8
cast_shifted_panels_chunk:
    st32 $m2, $m11, $m15, 0
    st32 $m5, $m11, $m15, 3
    st32 $m8, $m11, $m15, 1
    runall $m0, $m11, 0
    mul $m1, $m9, $m3
    sub $m4, $m4, $m9
    add $m7, $m7, $m7
    add $m2, $m2, $m1
    add $m1, $m1, $m1
    min $m9, $m7, $m4
    add $m8, $m8, $m1
    add $m5, $m9, $m9
    sync 2
    brnz $m4, cast_shifted_panels_chunk
    add $m11, $m11, 32
    br $m10
    .size cast_shifted_panels, . - cast_shifted_panels
    .worker
    .align 8
