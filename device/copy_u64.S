// copy_u64: copies 64-bit words.
//
// Arguments  m2 = out, m3 = in, m4 = words + 5
// Shapes     words of 8 bytes, any number; both 8-byte aligned, any region, no overlap
// Split      words round robin: w, w + 6, ...
// Slots      13 + 2 per word of the worker: load, store
// Access tail none. Contexts: all six workers.
#include "kernel.inc"

KERNEL_ENTRY copy_u64, copy_u64_worker, 3

// m0 worker, m2 out, m3 in, m4 words of this worker, m6 offset in, m7 offset out
copy_u64_worker:
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
    rpt $m4, 1
    { ld64step $a0:1, $m3, $m6+=, 6 ; fnop }
    { st64step $a0:1, $m2, $m7+=, 6 ; fnop }
    exitz $m15
