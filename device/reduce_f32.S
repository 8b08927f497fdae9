// reduce_f32: sum of P partials of F32 in A8 panels (the result of gemm_f16s), to halves in A16 panels or
// F8 in A32 panels.
//
// Purpose    out = seed + remote 1 + ... + remote (P - 1), rounded once to half [, F143 times 2^-scale]
// Entries    reduce_f32_{h,q}: halves, F8; _one behind it: P = 1 (the rounding alone); then _std: inputs
//            anywhere
// Arguments  m2 = out, m3 = seed, m4 = remotes (packed runs of R * C floats), m5 = P - 1, m6 = R,
//            m7 = C / 8, q: m8 = (-scale) & 63
// Shapes     R >= 1; C a multiple of 16, for F8 of 32
// Alignment  inputs 16 bytes, in the interleaved region (128-bit loads; std: 8 bytes, anywhere); out 8
//            bytes, anywhere
// Scratch    the first word at the worker base. Access tail: none
// Split      rows of each 8-column panel round robin: w, w + 6, ...
// Slots      per row of 8 floats: halves 2 P + 5, F8 2 P + 4 (P = 1: 5); std: one more for each load. The
//            four accumulators of f32v4acc take half a row at a time; a MIX of zeros rounds and clears them:
//              ld128 seed, first half    ; mix: second half of the row before
//              rpt P - 2                 ; [to F8]
//                ld128 remote            ; acc what was loaded before
//              ld128 last remote         ; acc   (its step goes to the other half, or to the next row)
//              st64 row before           ; acc
//              ld128 seed, second half   ; mix: first half
//              the same                  (halves: st64 first half ; acc)
//              brnzdec                   (F8: beside the last acc)
// Numerics   accumulators in F32 from +0, additions in the order seed, remote 1, 2, ...; F8 rounds the half
//            and saturates without a trap
#include "kernel.inc"

// m0 seed, m1 run stride, m2 rows of this worker - 1, m3 of them left, m4 P - 2, m5 step from the last run
// to the other half of the row in the first one, m6 to the next row, m7 from the last row to the next
// panel, m8 the same for out inside a panel of out, m9 remotes, m10 out, m11 panels left
// a0:3 loaded; a4:5, a6:7 halves of the row
// scratch: 0 step of out from panel to panel
#define STEP $mworker_base, $m15, 0

.macro F32_SEED std, step, aux
    .if \std
    { ld64step $a0:1, $m15, $m0+=, 1 ; \aux }
    { ld64step $a2:3, $m15, $m0+=, 2 * \step - 1 ; fnop }
    .else
    { ld128step $a0:3, $m15, $m0+=, \step ; \aux }
    .endif
.endm
.macro F32_REMOTE std, stride
    .if \std
    { ld64step $a0:1, $m15, $m9+=, 1 ; f32v4acc $a0:3 }
    { ld64step $a2:3, $m15, $m9+=, \stride ; fnop }
    .else
    { ld128step $a0:3, $m15, $m9+=, \stride ; f32v4acc $a0:3 }
    .endif
.endm
// The remotes of half a row; \aux beside rpt.
.macro F32_REMOTES one, std, stride, aux
    .if \one
    .ifnc "\aux", "fnop"
    { nop ; \aux }
    .endif
    .else
    { rpt $m4, \std ; \aux }
    F32_REMOTE \std, $m1
    F32_REMOTE \std, \stride
    .endif
.endm

// \log: 1 for halves (two panels make one of out), 2 for F8 (four); \unit: bytes of a row in out.
.macro REDUCE_F32 name, f8, one, std, log, unit
    KERNEL_ENTRY reduce_f32_\name, reduce_f32_\name\()_worker, 6 + \f8
reduce_f32_\name\()_worker:
    { get $m0, $WSR ; setzi $a0, ZAACC }
    { and $m0, $m0, 7 ; uput $FP_CLR, $a0 }
    ld32 $m1, ARG(4)
    setzi $m3, SIXTH
    sub $m2, $m1, $m0
    add $m2, $m2, 5
    mul $m2, $m2, $m3
    shr $m2, $m2, SIXTH_SHIFT
    brz $m2, reduce_f32_\name\()_exit
    mul $m8, $m2, 192
    shl $m1, $m1, 5
    sub $m7, $m1, $m8
    sub $m8, \unit, $m8
    .if \f8
    ld32 $a0, ARG(6)
    { nop ; uput $FP_SCL, $a0 }
    { nop ; setzi $a0, 3 }
    { nop ; uput $FP_NFMT, $a0 }
    { nop ; uput $FP_CTL, $azero }
    .endif
    add $m3, $m1, -(\unit << \log)
    st32 $m3, STEP
    ld32 $m11, ARG(5)
    ld32 $m4, ARG(3)
    .ifeq \one
    mul $m1, $m1, $m11
    shr $m1, $m1, 4 - \std
    add $m4, $m4, -1
    mul $m5, $m4, $m1
    .if \std
    sub $m6, 21, $m5
    add $m1, $m1, -1
    .else
    sub $m6, 11, $m5
    .endif
    sub $m5, 1, $m5
    .endif
    shl $m3, $m0, 5
    ld32 $m10, ARG(0)
    add $m10, $m10, $m3
    ld32 $m9, ARG(2)
    add $m9, $m9, $m3
    ld32 $m0, ARG(1)
    add $m0, $m0, $m3
    add $m2, $m2, -1
    .align 8
reduce_f32_\name\()_panel:
    { mov $m3, $m2 ; uput $TAS, $azero }   // undefined at launch, and NaN x 0 would stay
    F32_SEED \std, 1, fnop
    F32_REMOTES \one, \std, $m5, fnop
    { bri reduce_f32_\name\()_second ; f32v4acc $a0:3 }
reduce_f32_\name\()_row:
    F32_SEED \std, 1, "f16v4mix $a6:7, $azeros, $azeros"
    .if \f8
    F32_REMOTES \one, \std, $m5, "f16v8tof8 $a6:7, $a4:7"
    { st64step $a6:7, $m15, $m10+=, 24 ; f32v4acc $a0:3 }
    .else
    F32_REMOTES \one, \std, $m5, fnop
    { st64step $a6:7, $m15, $m10+=, 23 ; f32v4acc $a0:3 }
    .endif
reduce_f32_\name\()_second:
    F32_SEED \std, 11, "f16v4mix $a4:5, $azeros, $azeros"
    F32_REMOTES \one, \std, $m6, fnop
    .if \f8
    { brnzdec $m3, reduce_f32_\name\()_row ; f32v4acc $a0:3 }
    { nop ; f16v4mix $a6:7, $azeros, $azeros }
    { nop ; f16v8tof8 $a6:7, $a4:7 }
    st64step $a6:7, $m15, $m10+=, 24
    .else
    { st64step $a4:5, $m15, $m10+=, 1 ; f32v4acc $a0:3 }
    { brnzdec $m3, reduce_f32_\name\()_row ; fnop }
    { nop ; f16v4mix $a6:7, $azeros, $azeros }
    st64step $a6:7, $m15, $m10+=, 23
    .endif
    add $m0, $m0, $m7
    add $m9, $m9, $m7
    add $m10, $m10, $m8
    add $m11, $m11, -1
    brz $m11, reduce_f32_\name\()_exit
    and $m3, $m11, (1 << \log) - 1
    brnz $m3, reduce_f32_\name\()_panel
    ld32 $m3, STEP
    add $m10, $m10, $m3
    bri reduce_f32_\name\()_panel
reduce_f32_\name\()_exit:
    exitz $m15
.endm

REDUCE_F32 h, 0, 0, 0, 1, 16
REDUCE_F32 h_std, 0, 0, 1, 1, 16
REDUCE_F32 h_one, 0, 1, 0, 1, 16
REDUCE_F32 h_one_std, 0, 1, 1, 1, 16
REDUCE_F32 q, 1, 0, 0, 2, 8
REDUCE_F32 q_std, 1, 0, 1, 2, 8
REDUCE_F32 q_one, 1, 1, 0, 2, 8
REDUCE_F32 q_one_std, 1, 1, 1, 2, 8
