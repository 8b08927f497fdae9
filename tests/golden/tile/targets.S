/* The supervisor starts workers that count down and call; its array has no size. */
    .supervisor
    .globl start
start:
    setzi $m0, count
    setzi $m1, table
    runall $m0, $m1, 0
    sync 2
    br $lr
    .worker
count:
    setzi $m2, 1
again:
    call $m3, twice
    brnzdec $m2, again
    bri count+16
    exitz $mzero
twice:
    br $m3
    .data
    .globl table
table:
    .half 1.0, 2.0, 3.0, 4.0
behind:
    .word 7
