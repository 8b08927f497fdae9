// fill_u64: zeros.
//
// Arguments  m2 = out, m3 = words + 5
// Shapes     words of 8 bytes, any number; out 8-byte aligned, any region
// Split      words round robin: w, w + 6, ...
// Slots      11 + words of the worker (one bundle per word)
// Access tail none. Contexts: all six workers.
#include "kernel.inc"

KERNEL_ENTRY fill_u64, fill_u64_worker, 2

// m0 worker, m2 out, m3 words of this worker, m5 byte offset
fill_u64_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    setzi $m4, SIXTH
    shl $m5, $m0, 3
    sub $m3, $m3, $m0
    mul $m3, $m3, $m4
    shr $m3, $m3, SIXTH_SHIFT
    rpt $m3, 0
    { st64step $azeros, $m2, $m5+=, 6 ; fnop }
    exitz $m15
