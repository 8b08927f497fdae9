// finite_check: finds halves that are infinite or NaN.
//
// Arguments  m2 = out, m3 = in, m4 = pairs
// Purpose    out: six words, word w = 1 + the number of the first bad pair among w, w + 6, ..., or 0
// Shapes     in: an even number of halves, 4-byte aligned, any region; out 4-byte. Access tail: none
// Split      pairs w, w + 6, ...   Contexts: all six workers
// Slots      9 per pair
// Numerics   looks at exponent bits only; raises nothing.
#include "kernel.inc"

KERNEL_ENTRY finite_check, finite_check_worker, 3

// m0 worker, m1 result, m2 out, m3 in, m4 pairs of this worker, m5 mask of the low exponent, m6 of the
// high one, m7 pair, m8 word, m9 number
finite_check_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m4, ARG(2)
    sub $m4, $m4, $m0
    add $m4, $m4, 5
    setzi $m5, SIXTH
    mul $m4, $m4, $m5
    shr $m4, $m4, SIXTH_SHIFT
    ld32 $m2, ARG(0)
    ld32 $m3, ARG(1)
    shl $m7, $m0, 2
    add $m2, $m2, $m7
    add $m9, $m0, 1
    setzi $m1, 0
    setzi $m5, 0x7c00
    shl $m6, $m5, 16
    brz $m4, finite_check_store
    add $m4, $m4, -1
finite_check_pair:
    ld32step $m8, $m3, $m7+=, 6
    and $m10, $m8, $m5
    cmpeq $m10, $m10, $m5
    and $m8, $m8, $m6
    cmpeq $m8, $m8, $m6
    or $m10, $m10, $m8
    brnz $m10, finite_check_found
    add $m9, $m9, 6
    brnzdec $m4, finite_check_pair
    bri finite_check_store
finite_check_found:
    mov $m1, $m9
finite_check_store:
    st32 $m1, $m2, $m15, 0
    exitz $m15
