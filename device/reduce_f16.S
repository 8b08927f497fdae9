// reduce_f16: out = seed + remote 1 + ... + remote (P - 1), in F32, rounded once to F16.
//
// Entries    reduce_f16: seed and remotes in the interleaved region (128-bit loads); reduce_f16_std: all
//            operands anywhere, 8-byte aligned; reduce_f16_strided, reduce_f16_strided_std: gaps between the
//            remotes
// Arguments  m2 = out (may be the seed), m3 = seed, m4 = remotes (runs of n halves), m5 = P - 1,
//            m6 = n / 8 (vectors of 8 halves); strided: m7 = bytes from run to run / 16, else packed
// Shapes     n a multiple of 8, P >= 2. Seed and remotes 16-byte aligned, out 8-byte aligned
// Split      vectors round robin: w, w + 6, ...
// Access tail none. Contexts: all six workers.
// Slots      P + 4 per vector (std: 2 P + 4, two 64-bit loads in the place of one); the end of a vector
//            runs beside the loads of the next one:
//              brnzdec               ; gina 0, 1
//              ld128 seed            ; gina 2, 3
//              st64 0..3             ; gina 4, 5
//              rpt P - 2             ; gina 6, 7
//                ld128 remote        ; acc what was loaded before
//              ld128 last remote     ; acc   (its step goes to the first remote of the next vector)
//              st64 4..7             ; acc last remote
// Numerics   accumulators in F32 from +0, additions in the order seed, remote 1, 2, ...; one rounding;
//            a sum of zeros is +0.
#include "kernel.inc"

// m0 offset seed, m1 run stride, m3 vectors - 1, m4 P - 2, m5 seed, m6 remotes, m7 out,
// m8 step from the last run to the next vector of the first one, m9 offset remotes, m10 offset out
// a0:3 loaded vector, a4:7 result
// One vector of 8 halves into a0:3 from base + delta, delta stepped to the next vector of the worker, or
// by the stride of the runs; \aux beside the (first) load.
.macro LOAD_SEED std, aux
    .if \std
    { ld64step $a0:1, $m5, $m0+=, 1 ; \aux }
    { ld64step $a2:3, $m5, $m0+=, 11 ; fnop }
    .else
    { ld128step $a0:3, $m5, $m0+=, 6 ; \aux }
    .endif
.endm
.macro LOAD_REMOTE std, stride
    .if \std
    { ld64step $a0:1, $m6, $m9+=, 1 ; f16v8acc $a0:3 }
    { ld64step $a2:3, $m6, $m9+=, \stride ; fnop }
    .else
    { ld128step $a0:3, $m6, $m9+=, \stride ; f16v8acc $a0:3 }
    .endif
.endm
.macro LOAD_REMOTES std, aux
    { rpt $m4, \std ; \aux }
    LOAD_REMOTE \std, $m1
    LOAD_REMOTE \std, $m8
.endm

.macro REDUCE name, std, strided
    KERNEL_ENTRY \name, \name\()_worker, 5 + \strided
\name\()_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, ARG(4)
    setzi $m2, SIXTH
    sub $m3, $m1, $m0
    add $m3, $m3, 5
    mul $m3, $m3, $m2
    shr $m3, $m3, SIXTH_SHIFT
    { brz $m3, \name\()_exit ; setzi $a0, ZAACC }
    { ld32 $m4, ARG(3) ; uput $FP_CLR, $a0 }
    ld32 $m5, ARG(1)
    ld32 $m6, ARG(2)
    ld32 $m7, ARG(0)
    add $m4, $m4, -1
    .if \strided
    ld32 $m1, ARG(5)
    nop
    .endif
    .if \std
    add $m1, $m1, $m1
    .endif
    mul $m8, $m4, $m1
    .if \std
    sub $m8, 11, $m8
    add $m1, $m1, -1
    .else
    sub $m8, 6, $m8
    .endif
    shl $m0, $m0, 4
    mov $m9, $m0
    mov $m10, $m0
    add $m3, $m3, -1
    LOAD_SEED \std, fnop
    LOAD_REMOTES \std, fnop
    { bri \name\()_collect ; f16v8acc $a0:3 }
\name\()_vector:
    LOAD_SEED \std, "f16v2gina $a5, $azero, 0"
    { st64step $a4:5, $m7, $m10+=, 1 ; f16v2gina $a6, $azero, 0 }
    LOAD_REMOTES \std, "f16v2gina $a7, $azero, 0"
    { st64step $a6:7, $m7, $m10+=, 11 ; f16v8acc $a0:3 }
\name\()_collect:
    { brnzdec $m3, \name\()_vector ; f16v2gina $a4, $azero, 0 }
    { nop ; f16v2gina $a5, $azero, 0 }
    { st64step $a4:5, $m7, $m10+=, 1 ; f16v2gina $a6, $azero, 0 }
    { nop ; f16v2gina $a7, $azero, 0 }
    { st64step $a6:7, $m7, $m10+=, 11 ; fnop }
\name\()_exit:
    exitz $m15
.endm

REDUCE reduce_f16, 0, 0
REDUCE reduce_f16_std, 1, 0
REDUCE reduce_f16_strided, 0, 1
REDUCE reduce_f16_strided_std, 1, 1
