// max_partials: element-wise maximum of P runs of words that hold two halves (combines row maxima).
//
// Arguments  m2 = out (may be the first run), m3 = in (packed runs), m4 = P, m5 = words of a run
// Shapes     P >= 1, any number of words; 4-byte aligned, any region. Access tail: none
// Split      words round robin: w, w + 6, ...   Contexts: all six workers
// Slots      P + 5 per word (ld32 next ; max)
// Numerics   exact; a number wins over NaN, +0 over -0 (isa 3.7).
#include "kernel.inc"

KERNEL_ENTRY max_partials, max_partials_worker, 4

// m1 bytes of a run, m2 out, m3 in of the word, m4 P - 1, m5 words of this worker - 1, m6 running,
// m7 stride in words
max_partials_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m7, ARG(3)
    setzi $m6, SIXTH
    sub $m5, $m7, $m0
    add $m5, $m5, 5
    mul $m5, $m5, $m6
    shr $m5, $m5, SIXTH_SHIFT
    brz $m5, max_partials_exit
    add $m5, $m5, -1
    shl $m0, $m0, 2
    ld32 $m2, ARG(0)
    add $m2, $m2, $m0
    ld32 $m3, ARG(1)
    add $m3, $m3, $m0
    ld32 $m4, ARG(2)
    add $m4, $m4, -1
    nop
max_partials_word:
    { mov $m6, $m3 ; fnop }
    { ld32step $a0, $m15, $m6+=, $m7 ; fnop }
    { rpt $m4, 0 ; mov $a1, $a0 }
    { ld32step $a0, $m15, $m6+=, $m7 ; f16v2max $a1, $a1, $a0 }
    { add $m3, $m3, 24 ; f16v2max $a1, $a1, $a0 }
    st32step $a1, $m15, $m2+=, 6
    brnzdec $m5, max_partials_word
max_partials_exit:
    exitz $m15
