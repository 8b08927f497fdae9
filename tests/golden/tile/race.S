/* Every worker adds 1 to the same word: a race. */
.worker
.globl race
race:
    ld32 $m1, $mvertex_base, $mzero, 0
    add $m1, $m1, 1
    stm32 $m1, $mvertex_base, $mzero
    exitz $mzero
