// copy_u64: copies 64-bit words.
//
// Entries    copy_u64: no condition; copy_u64_pace: in and out in different memory elements
// Arguments  m2 = out, m3 = in, m4 = words + 5
// Shapes     words of 8 bytes, any number; both 8-byte aligned, any region, no overlap
// Split      words round robin: w, w + 6, ...
// Slots      13 + 2 per word of the worker: load, store
//            pace: 20 + 1 per word: store the word before and load
// Access tail none. Contexts: all six workers.
#include "kernel.inc"

// m0 worker, m1 stride word, m2 out, m3 in, m4 words of this worker, m6 offset in, m7 offset out,
// m8:9 packed in, out
.macro COPY_SHARE
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    ld32 $m4, ARG(2)
    setzi $m5, SIXTH
    shl $m6, $m0, 3
    shl $m7, $m0, 3
    sub $m4, $m4, $m0
    mul $m4, $m4, $m5
    shr $m4, $m4, SIXTH_SHIFT
.endm

KERNEL_ENTRY copy_u64, copy_u64_worker, 3
copy_u64_worker:
    COPY_SHARE
    rpt $m4, 1
    { ld64step $a0:1, $m3, $m6+=, 6 ; fnop }
    { st64step $a0:1, $m2, $m7+=, 6 ; fnop }
    exitz $m15

KERNEL_ENTRY copy_u64_pace, copy_u64_pace_worker, 3
copy_u64_pace_worker:
    COPY_SHARE
    brz $m4, copy_u64_pace_exit
    ld64step $a0:1, $m3, $m6+=, 6
    setzi $m1, 6
    add $m3, $m3, $m6
    add $m2, $m2, $m7
    tapack $m8:9, $m3, $m3, $m2
    add $m4, $m4, -1
    { rpt $m4, 0 ; fnop }
    { ldst64pace $a0:1, $a0:1, $m8:9+=, $m1, 5 ; fnop }
    st64pace $a0:1, $m8:9+=, $m1, 0
copy_u64_pace_exit:
    exitz $m15
