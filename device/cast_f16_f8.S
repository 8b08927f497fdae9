// cast_f16_f8: halves to F143 or F152, out = round(in * 2^-scale), nearest even, saturating.
//
// Entries    cast_f16_f8_il: in in the interleaved region (128-bit loads), 2 slots per 8 halves
//            cast_f16_f8_std: in anywhere, 3 slots per 8 halves
//            cast_shifted_f8_il, cast_shifted_f8_std: in place, the halves standing S bytes behind the result
// Arguments  m2 = out, m3 = in, m4 = n / 8, m5 = (-scale) & 63, m6 = format (3 F143, 0 F152)
//            shifted: m2 = out (in = out + S), m3 = n / 8, m4 = (-scale) & 63, m5 = format, m6 = S / 8
// Shapes     n a multiple of 8; S a multiple of 16 (std: 8); out 8-byte, in 16-byte (std: 8-byte) aligned
// Split      vectors of 8 round robin: w, w + 6, ...
// Overflow   saturates without a trap. Access tail none. Contexts: all six workers.
// Chunks     shifted: S / 8 vectors, then twice as many in each launch, so that no launch writes where it reads
//            (a chunk's results end where its halves begin)
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

// m0 worker, m1 -, m2 out, m3 vectors left, m6 vectors of the next chunk, m7 in, m8 of this one
.macro CAST_SHIFTED name
    KERNEL_SECTION cast_shifted_f8_\name
    .supervisor
    KERNEL_GLOBAL cast_shifted_f8_\name
    add $m11, $m11, -32
    setzi $m0, cast_f16_f8_\name\()_worker
    shl $m7, $m6, 3
    min $m8, $m6, $m3
    nop
    nop
    nop
    nop
    st32 $m4, $m11, $m15, 3
    st32 $m5, $m11, $m15, 4
    add $m7, $m2, $m7
cast_shifted_f8_\name\()_chunk:
    st32 $m2, $m11, $m15, 0
    st32 $m8, $m11, $m15, 2
    st32 $m7, $m11, $m15, 1
    runall $m0, $m11, 0
    shl $m9, $m8, 3
    shl $m1, $m8, 4
    sub $m3, $m3, $m8
    add $m6, $m6, $m6
    add $m2, $m2, $m9
    add $m7, $m7, $m1
    min $m8, $m6, $m3
    sync 2
    brnz $m3, cast_shifted_f8_\name\()_chunk
    add $m11, $m11, 32
    br $m10
    .size cast_shifted_f8_\name, . - cast_shifted_f8_\name
    .worker
    .align 8
.endm

CAST_SHIFTED il
CAST_SHIFTED std
