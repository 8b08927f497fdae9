// dot_product: sum of x[i] * y[i], halves in, one F32 out; a supervisor that starts workers twice.
//
// Entry      dot_product (supervisor), returns with br $lr
// Data       words at dot_vertex: x, y, partial sums (six F32), result, quads of halves
// Shapes     at least 6 quads (one per worker); 8-byte aligned; y in the interleaved region (the
//            second address of a double load may not lie in executable memory)
// Split      quads round robin; every worker leaves one partial sum, one worker adds the six
// Slots      1 per quad: { load next x and y ; multiply and accumulate }
// Numerics   products and sums in F32: AACC[0] takes the even pairs of lanes, AACC[2] the odd ones

    .section .text.dot_product, "ax"
    .align 8
    .supervisor
    .globl dot_product
    .type dot_product, @function
dot_product:
    setzi $m0, dot_share                // all six workers, the same vertex
    setzi $m1, dot_vertex
    runall $m0, $m1, 0
    setzi $m0, dot_sum                  // overlaps with their start
    setzi $m1, dot_vertex - TMEM_REGION0_BASE_ADDR
    sync 2                              // until they have all exited
    run $m0, $m1, 0                     // one worker; run adds the base of tile memory
    sync 2
    br $lr
    .size dot_product, . - dot_product

    .worker
    .type dot_share, @function
dot_share:
    setzi $a0, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT
    uput $FP_CLR, $a0                   // accumulators to zero
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, $mvertex_base, $mzero, 0  // x
    ld32 $m2, $mvertex_base, $mzero, 1  // y
    ld32 $m3, $mvertex_base, $mzero, 2  // partial sums
    ld32 $m4, $mvertex_base, $mzero, 4  // quads
    add $m5, $m4, 5                     // share = (quads + 5 - worker) / 6
    sub $m5, $m5, $m0
    setzi $m6, 43691
    mul $m5, $m5, $m6
    shr $m5, $m5, 18
    add $m5, $m5, -1                    // the last one is outside the loop
    shl $m7, $m0, 3
    add $m1, $m1, $m7
    add $m2, $m2, $m7
    tapack $m6:7, $m1, $m2, $mzero
    setzi $m8, 6
    ld2x64pace $a0:1, $a2:3, $m6:7+=, $m8, 0b0101
    { rpt $m5, (1f - 0f) / 8 - 1 ; fnop }
0:
    { ld2x64pace $a0:1, $a2:3, $m6:7+=, $m8, 0b0101 ; f16v4cmac $a0:1, $a2:3 }
1:
    f16v4cmac $a0:1, $a2:3
    f32v2gina $a0:1, $azeros, 0         // AACC[0], AACC[2]
    f32add $a0, $a0, $a1
    st32 $a0, $m3, $mzero, $m0          // one word per worker: nobody shares it
    exitz $mzero
    .size dot_share, . - dot_share

    .type dot_sum, @function
dot_sum:
    ld32 $m3, $mvertex_base, $mzero, 2
    ld32 $m4, $mvertex_base, $mzero, 3
    ld32step $a0, $mzero, $m3+=, 1
    ld32step $a1, $mzero, $m3+=, 1
    { rpt 4, 0 ; fnop }
    { ld32step $a1, $mzero, $m3+=, 1 ; f32add $a0, $a0, $a1 }
    f32add $a0, $a0, $a1
    st32 $a0, $m4, $mzero, 0
    exitz $mzero
    .size dot_sum, . - dot_sum

// Data of the example: 60 quads, each (1, 2, 3, 4) . (0.5, 0.25, 2, -1) = 3; the sum is 180.
    .set QUADS, 60

    .data
    .align 8
dot_vertex:
    .word dot_x, dot_y, dot_partials, dot_result, QUADS
    .align 8
dot_x:
    .rept QUADS
    .half 1.0, 2.0, 3.0, 4.0
    .endr

    .section .interleaved.y
    .align 8
dot_y:
    .rept QUADS
    .half 0.5, 0.25, 2.0, -1.0
    .endr

    .bss
    .align 8
dot_partials:
    .space 24
    .globl dot_result
dot_result:
    .space 4
