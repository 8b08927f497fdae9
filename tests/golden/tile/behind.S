/* The array has no size: the report still says what the address lies behind. */
    .worker
    .globl behind
behind:
    setzi $m0, numbers
    ld64 $a0:1, $m0, $mzero, 1
    exitz $mzero
    .section .interleaved.numbers, "aw"
    .align 8
numbers:
    .space 8
