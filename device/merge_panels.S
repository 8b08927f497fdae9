// merge_panels: adds a block of keys to the running result of streaming attention.
//
// Purpose    A block gives values v (A16 panels of halves, exponentials times V), a scaled row
//            maximum m' and a row sum s'. The state of a row is {m, s, 0, 0} and C values, all F32:
//              M = max(m, m'), a = exp(m - M), b = exp(m' - M)
//              state = {M, a s + b s', a old + b v}; the last block gives (a old + b v) / (a s + b s')
// Entries    merge_panels_first, _next, _last: statistics of softmax_f16, F32 [2][R] (scaled
//            maximum, sum); merge_panels_max_first, _max_next, _max_last: maxima of row_max (R words
//            with the half in both halves), scaled here; the sum is one of the columns of v (a
//            column of ones in V)
// Arguments  first, next: m2 = state, m3 = values, m4 = statistics, m5 = R, m6 = G, max: m7 = scale
//            (half bits)
//            last: m2 = out, m3 = state, m4 = values, m5 = statistics, m6 = R, m7 = G, max: m8 = scale,
//            m9 = column of the sum
// Shapes     R >= 1; G panels of 16 columns; state [R][4 + 16 G] of floats; out as v
// Alignment  8 bytes each (statistics 4, values of next and last 4), any region; out is none of the
//            inputs. Access tail: none
// Scratch    32 bytes at the worker base. Contexts: all six workers
// Split      rows w, w + 6, ...
// Slots      first: 12 per panel. next: 24 per panel, 3 per pair:
//              ld32 v          ; axpy of the pair before, returns the result before that
//              ld64 old        ; v to F32
//              st64 result     ; times a
//            (the first two stores hit the row's own header, which is written last). last: 29 per
//            panel, 7 per quad:
//              ld32 v          ; axpy of the pair before
//              ld64 old        ; v to F32
//              -               ; times a
//              ld32 v          ; axpy
//              ld64 old        ; the quad before to halves
//              ld32 a          ; v to F32
//              st64 quad before; times a
//            (the first store goes to the scratch).
// Numerics   F32 throughout; exponentials of differences <= 0, so a, b <= 1; one rounding to half at
//            the end. The last block multiplies a and b by 1 / sum. Finite data; a sum of zero
//            divides by zero.
#include "kernel.inc"

#define SCRATCH(n) $mworker_base, $m15, n

// m0 rows left - 1, m1 values, m2 state, m3 statistics of the row, m4 G, m5 words (first: quads) of
// v from a panel's last to the next panel, m6 step of the state (last: of out, varying), m7 v, m8
// old, m9 store, m10 bytes to the sums (last: panels left), m11 -
// scratch: 0, 4 new maximum and sum; last: 0 a, 8 and 12 byte offsets of the sum in v and in old, 16
// state step, 20 out of the row, 24 the store of no quad
.macro MERGE_SETUP name, o
    KERNEL_ENTRY merge_panels_\name, merge_panels_\name\()_worker, args_\name
merge_panels_\name\()_worker:
    { get $m9, $WSR ; setzi $a0, ZAACC }
    { and $m9, $m9, 7 ; uput $FP_CLR, $a0 }
    ld32 $m10, ARG(3 + \o)
    setzi $m8, SIXTH
    sub $m0, $m10, $m9
    add $m0, $m0, 5
    mul $m0, $m0, $m8
    shr $m0, $m0, SIXTH_SHIFT
    brz $m0, merge_panels_\name\()_exit
    add $m0, $m0, -1
    ld32 $m4, ARG(4 + \o)
    shl $m8, $m9, 5
    ld32 $m1, ARG(1 + \o)
    add $m1, $m1, $m8
    shl $m8, $m9, 2
    ld32 $m3, ARG(2 + \o)
    add $m3, $m3, $m8
    shl $m5, $m10, 3
    add $m5, $m5, -7
    shl $m8, $m4, 6
    add $m8, $m8, 16
    mul $m6, $m8, 6
    mul $m8, $m8, $m9
    ld32 $m2, ARG(\o)
    add $m2, $m2, $m8
    .if \o
    st32 $m6, SCRATCH(4)
    shl $m9, $m9, 5
    ld32 $m8, ARG(0)
    add $m8, $m8, $m9
    st32 $m8, SCRATCH(5)
    shl $m11, $m10, 2
    add $m11, $m11, -3
    .endif
    shl $m10, $m10, 2
.endm

// a2 = M, a0 = b, a5 = a, a3 = sum of the state, a4 = sum of the block; m7, m8 set.
.macro MERGE_WEIGHTS o, max
    .if \max
    { ld32 $a0, $m3, $m15, 0 ; fnop }
    { ldb16 $a5, ARG(10 + 2 * \o) ; f16tof32 $a0, $a0 }
    { ld32 $a1, $m2, $m15, 0 ; f16tof32 $a5, $a5 }
    { nop ; f32mul $a0, $a0, $a5 }
    .else
    { ld32 $a0, $m3, $m15, 0 ; fnop }
    { ld32 $a1, $m2, $m15, 0 ; fnop }
    .endif
    { mov $m7, $m1 ; f32max $a2, $a0, $a1 }
    { add $m8, $m2, 16 ; f32sub $a0, $a0, $a2 }
    .if \max
    .if \o
    { ld32 $m10, SCRATCH(2) ; f32sub $a1, $a1, $a2 }
    { ld32 $m6, SCRATCH(3) ; f32exp $a0, $a0 }
    { nop ; f32exp $a5, $a1 }
    { ldb16 $a4, $m1, $m10, 0 ; fnop }
    { ld32 $a3, $m8, $m6, 0 ; f16tof32 $a4, $a4 }
    .else
    { nop ; f32sub $a1, $a1, $a2 }
    { nop ; f32exp $a0, $a0 }
    { nop ; f32exp $a5, $a1 }
    .endif
    .else
    .if \o
    { ld32 $m10, ARG(4) ; f32sub $a1, $a1, $a2 }
    { shl $m10, $m10, 2 ; f32exp $a0, $a0 }
    .else
    { nop ; f32sub $a1, $a1, $a2 }
    { nop ; f32exp $a0, $a0 }
    .endif
    { ld32 $a3, $m2, $m15, 1 ; f32exp $a5, $a1 }
    { ld32 $a4, $m3, $m10, 0 ; fnop }
    .endif
.endm

.macro MERGE_FIRST name, max
.set args_\name, 5 + \max
    MERGE_SETUP \name, 0
    add $m5, $m5, 1
    shr $m5, $m5, 1
merge_panels_\name\()_row:
    .if \max
    { ld32 $a0, $m3, $m15, 0 ; fnop }
    { ldb16 $a5, ARG(10) ; f16tof32 $a0, $a0 }
    { add $m9, $m2, 8 ; f16tof32 $a5, $a5 }
    { nop ; f32mul $a6, $a0, $a5 }
    { mov $m7, $m1 ; zero $a7 }
    .else
    { ld32 $a6, $m3, $m15, 0 ; fnop }
    { ld32 $a7, $m3, $m10, 0 ; fnop }
    { add $m9, $m2, 8 ; fnop }
    { mov $m7, $m1 ; fnop }
    .endif
    { rpt $m4, 11 ; and64 $a2:3, $azeros, $azeros }
    { ld64step $a4:5, $m15, $m7+=, 1 ; fnop }
    { st64step $a2:3, $m15, $m9+=, 1 ; f16v2tof32 $a0:1, $a4 }
    { st64step $a0:1, $m15, $m9+=, 1 ; f16v2tof32 $a2:3, $a5 }
    { ld64step $a4:5, $m15, $m7+=, 1 ; fnop }
    { st64step $a2:3, $m15, $m9+=, 1 ; f16v2tof32 $a0:1, $a4 }
    { st64step $a0:1, $m15, $m9+=, 1 ; f16v2tof32 $a2:3, $a5 }
    { ld64step $a4:5, $m15, $m7+=, 1 ; fnop }
    { st64step $a2:3, $m15, $m9+=, 1 ; f16v2tof32 $a0:1, $a4 }
    { st64step $a0:1, $m15, $m9+=, 1 ; f16v2tof32 $a2:3, $a5 }
    { ld64step $a4:5, $m15, $m7+=, $m5 ; fnop }
    { st64step $a2:3, $m15, $m9+=, 1 ; f16v2tof32 $a0:1, $a4 }
    { st64step $a0:1, $m15, $m9+=, 1 ; f16v2tof32 $a2:3, $a5 }
    { st64 $a2:3, $m9, $m15, 0 ; fnop }
    { st64 $a6:7, $m2, $m15, 0 ; fnop }
    { st64 $azeros, $m2, $m15, 1 ; fnop }
    add $m3, $m3, 24
    add $m1, $m1, 192
    add $m2, $m2, $m6
    brnzdec $m0, merge_panels_\name\()_row
merge_panels_\name\()_exit:
    exitz $m15
.endm

.macro MERGE_PAIR xstep
    { ld32step $a4, $m15, $m7+=, \xstep ; f32v2axpy $a6:7, $a2:3, $a0:1 }
    { ld64step $a0:1, $m15, $m8+=, 1 ; f16v2tof32 $a2:3, $a4 }
    { st64step $a6:7, $m15, $m9+=, 1 ; f32v2mul $a0:1, $a5:B, $a0:1 }
.endm
.macro MERGE_NEXT name, max
.set args_\name, 5 + \max
    MERGE_SETUP \name, 0
merge_panels_\name\()_row:
    MERGE_WEIGHTS 0, \max
    .if \max
    { mov $m9, $m2 ; uput $TAS, $a0 }
    { add $m3, $m3, 24 ; zero $a3 }
    .else
    { mov $m9, $m2 ; uput $TAS, $a0 }
    { nop ; f32mul $a3, $a5, $a3 }
    { nop ; f32mul $a4, $a0, $a4 }
    { add $m3, $m3, 24 ; f32add $a3, $a3, $a4 }
    .endif
    { st64 $a2:3, SCRATCH(0) ; and64 $a0:1, $azeros, $azeros }
    { rpt $m4, 23 ; and64 $a2:3, $azeros, $azeros }
    MERGE_PAIR 1
    MERGE_PAIR 1
    MERGE_PAIR 1
    MERGE_PAIR 1
    MERGE_PAIR 1
    MERGE_PAIR 1
    MERGE_PAIR 1
    MERGE_PAIR $m5
    { ld64 $a4:5, SCRATCH(0) ; f32v2axpy $a6:7, $a2:3, $a0:1 }
    { st64step $a6:7, $m15, $m9+=, 1 ; f32v2axpy $a6:7, $azeros, $azeros }
    { st64step $a6:7, $m15, $m9+=, 1 ; fnop }
    { st64 $a4:5, $m2, $m15, 0 ; fnop }
    { st64 $azeros, $m2, $m15, 1 ; fnop }
    add $m1, $m1, 192
    add $m2, $m2, $m6
    nop
    brnzdec $m0, merge_panels_\name\()_row
merge_panels_\name\()_exit:
    exitz $m15
.endm

.macro MERGE_QUAD xstep, ostep, beside
    { ld32step $a3, $m15, $m7+=, 1 ; f32v2axpy $a4:5, $a2:3, $a0:1 }
    { ld64step $a0:1, $m15, $m8+=, 1 ; f16v2tof32 $a2:3, $a3 }
    { \beside ; f32v2mul $a0:1, $a6:B, $a0:1 }
    { ld32step $a3, $m15, $m7+=, \xstep ; f32v2axpy $a6:7, $a2:3, $a0:1 }
    { ld64step $a0:1, $m15, $m8+=, 1 ; f32v4tof16 $a4:5, $a4:7 }
    { ld32 $a6, SCRATCH(0) ; f16v2tof32 $a2:3, $a3 }
    { st64step $a4:5, $m15, $m9+=, \ostep ; f32v2mul $a0:1, $a6:B, $a0:1 }
.endm
.macro MERGE_LAST name, max
.set args_\name, 6 + 2 * \max
    MERGE_SETUP \name, 1
    .if \max
    ld32 $m6, ARG(7)
    shl $m9, $m6, 2
    st32 $m9, SCRATCH(3)
    shr $m9, $m6, 4
    mul $m9, $m9, $m10
    shl $m9, $m9, 3
    and $m6, $m6, 15
    shl $m6, $m6, 1
    add $m9, $m9, $m6
    st32 $m9, SCRATCH(2)
    .endif
    nop
merge_panels_\name\()_row:
    MERGE_WEIGHTS 1, \max
    { ld32 $m6, SCRATCH(5) ; f32mul $a3, $a5, $a3 }
    { add $m9, $mworker_base, 24 ; f32mul $a4, $a0, $a4 }
    { add $m10, $m6, 192 ; f32add $a3, $a3, $a4 }
    { st32 $m10, SCRATCH(5) ; f32oox $a3, $a3 }
    { sub $m6, $m6, $m9 ; f32mul $a0, $a0, $a3 }
    { shrs $m6, $m6, 3 ; uput $TAS, $a0 }
    { add $m3, $m3, 24 ; f32mul $a6, $a5, $a3 }
    { st32 $a6, SCRATCH(0) ; and64 $a0:1, $azeros, $azeros }
    { add $m10, $m4, -1 ; and64 $a2:3, $azeros, $azeros }
merge_panels_\name\()_panel:
    MERGE_QUAD 1, $m6, nop
    MERGE_QUAD 1, 1, "mov $m6, $m11"
    MERGE_QUAD 1, 1, nop
    MERGE_QUAD $m5, 1, nop
    { brnzdec $m10, merge_panels_\name\()_panel ; fnop }
    { ld32 $m6, SCRATCH(4) ; f32v2axpy $a4:5, $a2:3, $a0:1 }
    { add $m1, $m1, 192 ; f32v2axpy $a6:7, $azeros, $azeros }
    { add $m2, $m2, $m6 ; f32v4tof16 $a4:5, $a4:7 }
    { st64 $a4:5, $m9, $m15, 0 ; fnop }
    { brnzdec $m0, merge_panels_\name\()_row ; fnop }
merge_panels_\name\()_exit:
    exitz $m15
.endm

MERGE_FIRST first, 0
MERGE_FIRST max_first, 1
MERGE_NEXT next, 0
MERGE_NEXT max_next, 1
MERGE_LAST last, 0
MERGE_LAST max_last, 1
