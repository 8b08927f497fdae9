// cast_wide: element-wise casts that are not F16 to F8.
//
// Entries    cast_f8_f16: out = in * 2^scale; m4 = n / 8, m5 = scale & 63, m6 = format (3 F143, 0 F152)
//            (overflow saturates without a trap)
//            cast_f8_f32: the same in F32, exact; m4 = n / 8, m5 = upper 12 bits of the F32 2^scale,
//            m6 as before
//            cast_f32_f16: nearest even, overflow saturates without a trap; m4 = n / 4
//            cast_f16_f32: exact; m4 = n / 4
//            cast_f32_f8: in to half (as cast_f32_f16), then out = round(half * 2^-scale); m4 = n / 8,
//            m5 = (-scale) & 63, m6 = format (3 F143, 0 F152)
//            cast_f8_f8: out = round(in * 2^-scale), one rounding (halves hold every F8 value); m4,
//            m5 as before, m6 = format of in, m7 = format of out
// Arguments  m2 = out, m3 = in, then as above
// Shapes     n a multiple of 8 (F8) or 4; 8-byte aligned, any region; no overlap. Access tail: none
// Split      vectors round robin: w, w + 6, ...   Contexts: all six workers
// Slots      f8_f16 4 per 8 (ld64, two st64), f8_f32 12 per 8 (ld64, four st64), f32_f16 4 per 4
//            (two ld64, st64), f16_f32 4 per 4 (ld64, two st64), f32_f8 7 per 8 (four ld64, of which
//            one beside a conversion, st64), f8_f8 9 per 8 (formats and scales are set for either
//            conversion, so it is a branch and not a repeat)
#include "kernel.inc"

// m0 offset in, m1 offset out, m2 out, m3 in, m4 vectors of this worker
.macro CAST_SETUP exit, in_shift, out_shift
    ld32 $m4, ARG(2)
    setzi $m5, SIXTH
    sub $m4, $m4, $m0
    add $m4, $m4, 5
    mul $m4, $m4, $m5
    shr $m4, $m4, SIXTH_SHIFT
    brz $m4, \exit
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    shl $m1, $m0, \out_shift
    shl $m0, $m0, \in_shift
    nop
.endm

KERNEL_ENTRY cast_f8_f16, cast_f8_f16_worker, 5
cast_f8_f16_worker:
    { ld32 $a0, ARG(4) ; fnop }
    { ld32 $a1, ARG(3) ; uput $FP_NFMT, $a0 }
    { get $m0, $WSR ; uput $FP_SCL, $a1 }
    { and $m0, $m0, 7 ; uput $FP_CTL, $azero }
    CAST_SETUP cast_f8_f16_exit, 3, 4
    { rpt $m4, 3 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 6 ; fnop }
    { nop ; f8v4tof16 $a2:3, $a0 }
    { st64step $a2:3, $m2, $m1+=, 1 ; f8v4tof16 $a4:5, $a1 }
    { st64step $a4:5, $m2, $m1+=, 11 ; fnop }
cast_f8_f16_exit:
    exitz $m15

// a7 2^scale
KERNEL_ENTRY cast_f8_f32, cast_f8_f32_worker, 5
cast_f8_f32_worker:
    { ld32 $a0, ARG(4) ; fnop }
    { ld32 $m4, ARG(3) ; uput $FP_NFMT, $a0 }
    { shl $m4, $m4, 20 ; uput $FP_SCL, $azero }
    { st32 $m4, $mworker_base, $m15, 0 ; fnop }
    { ld32 $a7, $mworker_base, $m15, 0 ; fnop }
    { get $m0, $WSR ; fnop }
    { and $m0, $m0, 7 ; fnop }
    CAST_SETUP cast_f8_f32_exit, 3, 5
    { rpt $m4, 11 ; fnop }
    { ld64step $a4:5, $m3, $m0+=, 6 ; fnop }
    { nop ; f8v4tof16 $a2:3, $a4 }
    { nop ; f8v4tof16 $a4:5, $a5 }
    { nop ; f16v2tof32 $a0:1, $a2 }
    { nop ; f32v2mul $a0:1, $a7:B, $a0:1 }
    { st64step $a0:1, $m2, $m1+=, 1 ; f16v2tof32 $a0:1, $a3 }
    { nop ; f32v2mul $a0:1, $a7:B, $a0:1 }
    { st64step $a0:1, $m2, $m1+=, 1 ; f16v2tof32 $a0:1, $a4 }
    { nop ; f32v2mul $a0:1, $a7:B, $a0:1 }
    { st64step $a0:1, $m2, $m1+=, 1 ; f16v2tof32 $a0:1, $a5 }
    { nop ; f32v2mul $a0:1, $a7:B, $a0:1 }
    { st64step $a0:1, $m2, $m1+=, 21 ; fnop }
cast_f8_f32_exit:
    exitz $m15

KERNEL_ENTRY cast_f32_f16, cast_f32_f16_worker, 3
cast_f32_f16_worker:
    { get $m0, $WSR ; uput $FP_CTL, $azero }
    { and $m0, $m0, 7 ; fnop }
    CAST_SETUP cast_f32_f16_exit, 4, 3
    { rpt $m4, 3 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 1 ; fnop }
    { ld64step $a2:3, $m3, $m0+=, 11 ; fnop }
    { nop ; f32v4tof16 $a4:5, $a0:3 }
    { st64step $a4:5, $m2, $m1+=, 6 ; fnop }
cast_f32_f16_exit:
    exitz $m15

KERNEL_ENTRY cast_f16_f32, cast_f16_f32_worker, 3
cast_f16_f32_worker:
    { get $m0, $WSR ; fnop }
    { and $m0, $m0, 7 ; fnop }
    CAST_SETUP cast_f16_f32_exit, 3, 4
    { rpt $m4, 3 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 6 ; fnop }
    { nop ; f16v2tof32 $a2:3, $a0 }
    { st64step $a2:3, $m2, $m1+=, 1 ; f16v2tof32 $a4:5, $a1 }
    { st64step $a4:5, $m2, $m1+=, 11 ; fnop }
cast_f16_f32_exit:
    exitz $m15

KERNEL_ENTRY cast_f32_f8, cast_f32_f8_worker, 5
cast_f32_f8_worker:
    { ld32 $a0, ARG(4) ; uput $FP_CTL, $azero }
    { ld32 $a1, ARG(3) ; uput $FP_NFMT, $a0 }
    { get $m0, $WSR ; uput $FP_SCL, $a1 }
    { and $m0, $m0, 7 ; fnop }
    CAST_SETUP cast_f32_f8_exit, 5, 3
    { rpt $m4, 6 ; fnop }
    { ld64step $a0:1, $m3, $m0+=, 1 ; fnop }
    { ld64step $a2:3, $m3, $m0+=, 1 ; fnop }
    { ld64step $a4:5, $m3, $m0+=, 1 ; f32v4tof16 $a0:1, $a0:3 }
    { ld64step $a6:7, $m3, $m0+=, 21 ; fnop }
    { nop ; f32v4tof16 $a2:3, $a4:7 }
    { nop ; f16v8tof8 $a4:5, $a0:3 }
    { st64step $a4:5, $m2, $m1+=, 6 ; fnop }
cast_f32_f8_exit:
    exitz $m15

// a4 format of in, a5 format of out, a6 -scale
KERNEL_ENTRY cast_f8_f8, cast_f8_f8_worker, 6
cast_f8_f8_worker:
    { ld32 $a6, ARG(3) ; uput $FP_CTL, $azero }
    { ld32 $a4, ARG(4) ; fnop }
    { ld32 $a5, ARG(5) ; fnop }
    { get $m0, $WSR ; fnop }
    { and $m0, $m0, 7 ; fnop }
    CAST_SETUP cast_f8_f8_exit, 3, 3
    { add $m4, $m4, -1 ; fnop }
cast_f8_f8_vector:
    { ld64step $a0:1, $m3, $m0+=, 6 ; uput $FP_NFMT, $a4 }
    { nop ; uput $FP_SCL, $azero }
    { nop ; f8v4tof16 $a2:3, $a1 }
    { nop ; f8v4tof16 $a0:1, $a0 }
    { nop ; uput $FP_NFMT, $a5 }
    { nop ; uput $FP_SCL, $a6 }
    { nop ; f16v8tof8 $a0:1, $a0:3 }
    { st64step $a0:1, $m2, $m1+=, 6 ; fnop }
    brnzdec $m4, cast_f8_f8_vector
cast_f8_f8_exit:
    exitz $m15
