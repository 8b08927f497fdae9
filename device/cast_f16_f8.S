// cast_f16_f8: halves to F143 or F152, out = round(in * 2^-scale), nearest even, saturating.
//
// Entries    cast_f16_f8_il: in in the interleaved region (128-bit loads), 2 slots per 8 halves
//            cast_f16_f8_std: in anywhere, 3 slots per 8 halves
// Arguments  m2 = out, m3 = in, m4 = n / 8, m5 = (-scale) & 63, m6 = format (3 F143, 0 F152)
// Shapes     n a multiple of 8; out 8-byte, in 16-byte (std: 8-byte) aligned
// Split      vectors of 8 round robin: w, w + 6, ...
// Overflow   saturates without a trap. Access tail none. Contexts: all six workers.
// Slots      il:  ld128 next       ; convert
//                 st64             ; -
//            std: ld64 lower next  ; convert   (the conversion reads both halves before the loads)
//                 ld64 upper next  ; -
//                 st64             ; -
#include "kernel.inc"

// m0 offset out, m1 offset in, m2 out, m3 in, m4 vectors of this worker - 1
.macro CAST name, wide
    KERNEL_ENTRY cast_f16_f8_\name, cast_f16_f8_\name\()_worker, 5
cast_f16_f8_\name\()_worker:
    { ld32 $a0, ARG(4) ; fnop }
    { get $m0, $WSR ; uput $FP_NFMT, $a0 }
    { and $m0, $m0, 7 ; fnop }
    { ld32 $a0, ARG(3) ; uput $FP_CTL, $azero }
    { ld32 $m4, ARG(2) ; uput $FP_SCL, $a0 }
    setzi $m5, SIXTH
    sub $m4, $m4, $m0
    add $m4, $m4, 5
    mul $m4, $m4, $m5
    shr $m4, $m4, SIXTH_SHIFT
    brz $m4, cast_f16_f8_\name\()_exit
    add $m4, $m4, -1
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    shl $m1, $m0, 4
    shl $m0, $m0, 3
    .if \wide
    ld128step $a0:3, $m3, $m1+=, 6
    { rpt $m4, 1 ; fnop }
    { ld128step $a0:3, $m3, $m1+=, 6 ; f16v8tof8 $a4:5, $a0:3 }
    { st64step $a4:5, $m2, $m0+=, 6 ; fnop }
    .else
    ld64step $a0:1, $m3, $m1+=, 1
    { ld64step $a2:3, $m3, $m1+=, 11 ; fnop }
    { rpt $m4, 2 ; fnop }
    { ld64step $a0:1, $m3, $m1+=, 1 ; f16v8tof8 $a4:5, $a0:3 }
    { ld64step $a2:3, $m3, $m1+=, 11 ; fnop }
    { st64step $a4:5, $m2, $m0+=, 6 ; fnop }
    .endif
    { nop ; f16v8tof8 $a4:5, $a0:3 }
    st64step $a4:5, $m2, $m0+=, 6
cast_f16_f8_\name\()_exit:
    exitz $m15
.endm

CAST il, 1
CAST std, 0
