/* Adds 1 to the worker's word of six. */
.worker
.globl add_one
add_one:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, $mvertex_base, $mzero, $m0
    add $m1, $m1, 1
    stm32 $m1, $mvertex_base, $m0
    exitz $mzero
