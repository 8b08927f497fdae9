// vector_add: c = a + b, in halves, on the six workers of a tile.
//
// Entry      vector_add (worker)
// Vertex     four words: address of a, address of b, address of c, quads of halves
// Shapes     at least 12 quads (each worker needs two); 8-byte aligned; b and c in the interleaved
//            region, in different 32 KiB pairs of elements, because a bundle reads b and writes c
// Split      quads round robin: worker w takes w, w + 6, w + 12, ...
// Slots      1 per quad: one bundle loads a and b, stores an older sum and adds
//
//   bundle j of the loop    main: load a[j+2], b[j+2]; store c[j]      aux: sum of j+1
//
// All sources of a bundle are read before anything is written: the store takes the sum of the last
// bundle, the addition the numbers loaded by it.

    .section .text.vector_add, "ax"
    .align 8
    .worker
    .globl vector_add
    .type vector_add, @function
vector_add:
    get $m0, $WSR                       // number of this worker, 0..5
    and $m0, $m0, 7
    ld32 $m1, $mvertex_base, $mzero, 0  // a
    ld32 $m2, $mvertex_base, $mzero, 1  // b
    ld32 $m3, $mvertex_base, $mzero, 2  // c
    ld32 $m4, $mvertex_base, $mzero, 3  // quads
    add $m5, $m4, 5                     // share = (quads + 5 - worker) / 6
    sub $m5, $m5, $m0
    setzi $m6, 43691                    // n / 6 = (n * 43691) >> 18
    mul $m5, $m5, $m6
    shr $m5, $m5, 18
    add $m5, $m5, -2                    // two of them are outside the loop
    shl $m0, $m0, 3                     // first quad of this worker
    add $m1, $m1, $m0
    add $m2, $m2, $m0
    add $m3, $m3, $m0
    tapack $m6:7, $m1, $m2, $m3         // three addresses in one pair
    setzi $m8, 6                        // stride field 0: six quads
    ld2x64pace $a0:1, $a2:3, $m6:7+=, $m8, 0b0101
    { ld2x64pace $a0:1, $a2:3, $m6:7+=, $m8, 0b0101 ; f16v4add $a4:5, $a0:1, $a2:3 }
    { rpt $m5, (loop_end - loop) / 8 - 1 ; fnop }
loop:
    { ld2xst64pace $a0:3, $a4:5, $m6:7+=, $m8, 0b010101 ; f16v4add $a4:5, $a0:1, $a2:3 }
loop_end:
    { st64pace $a4:5, $m6:7+=, $m8, 0b01 ; f16v4add $a4:5, $a0:1, $a2:3 }
    st64pace $a4:5, $m6:7+=, $m8, 0b01
    exitz $mzero
    .size vector_add, . - vector_add

// Data of the example: 96 quads.
    .set QUADS, 96

    .data
    .align 8
    .globl vertex
vertex:
    .word a, b, c, QUADS
    .align 8
a:
    .rept QUADS
    .half 1.0, 2.0, 3.0, 4.0
    .endr

    .section .interleaved.b
    .align 8
b:
    .rept QUADS
    .half 0.5, 0.25, -1.0, 10.0
    .endr

    .section .interleaved.c, "aw", @nobits
    .align 32768
    .globl c
c:
    .space 8 * QUADS
