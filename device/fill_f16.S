// fill_f16: every half of out becomes one value.
//
// Arguments  m2 = out, m3 = words + 5 (of 8 bytes), m4 = value (half bits)
// Shapes     8-byte aligned, any region. Access tail none. Contexts: all six workers
// Split      words round robin: w, w + 6, ...
// Slots      14 + words of the worker
#include "kernel.inc"

KERNEL_ENTRY fill_f16, fill_f16_worker, 3

// m0 worker, m2 out, m3 words of this worker, m5 byte offset, a0:1 the value four times
fill_f16_worker:
    { ld32 $a0, ARG(2) ; fnop }
    { get $m0, $WSR ; sort4x16lo $a0, $a0, $a0 }
    { and $m0, $m0, 7 ; mov $a1, $a0 }
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    setzi $m4, SIXTH
    shl $m5, $m0, 3
    sub $m3, $m3, $m0
    mul $m3, $m3, $m4
    shr $m3, $m3, SIXTH_SHIFT
    nop
    { rpt $m3, 0 ; fnop }
    { st64step $a0:1, $m2, $m5+=, 6 ; fnop }
    exitz $m15
