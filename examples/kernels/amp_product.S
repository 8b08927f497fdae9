// amp_product: c = a * b with the matrix unit, halves in and out, 16 columns, partial sums in F16.
//
// Entry      amp_product (supervisor), returns with br $lr
// Data       words at amp_vertex: a, c, rows of every worker - 1
// Shapes     a: 6 * n rows of 16 halves, c: the same, in the interleaved region; b: 16 columns of 16
//            halves, column by column (the numbers that meet one row of a lie together). n >= 2
// Split      n rows after another per worker
// Slots      4 per row: four 64-bit pieces of a row against 16 columns, 16 products each
//
// Weights    The unit holds 16 columns x 4 words of 4 halves, written by the supervisor only. Column k
//            goes to unit 0, 1, 8, 9, 2, 3, 10, 11, ...: then the four results of a call are columns
//            4p..4p+3 in memory order, and a row comes out of four calls as it lies in memory.
// Pipeline   Phase 0 exchanges sums and output chain. Results of a row leave during the next row, so
//            the loop runs over rows 1..n-1 while rows 0..n-2 are stored:
//
//   P1  { load next piece, store result 4r+0 ; amp }
//   P2  { load next piece, store result 4r+1 ; amp }
//   P3  { load next piece, store result 4r+2 ; amp }
//   P0  { load next piece, store result 4r+3 ; amp }

#define AMP(phase) f16v4hihov4amp $a6:7, $a0:1, $azeros, TAMP_F16V4_E4_P##phase
#define DRAIN(phase) f16v4hihov4amp $a6:7, $azeros, $azeros, TAMP_F16V4_E4_P##phase
#define LOAD ld64step $a0:1, $mzero, $m2+=, 1
#define LOAD_STORE ldst64pace $a0:1, $a6:7, $m6:7+=, $mzero, 0
#define STORE st64pace $a6:7, $m6:7+=, $mzero, 0

// Eight consecutive words of b to entries first..first+7 of the unit: two columns.
.macro TWO_COLUMNS first
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    ld64putcs \first + \i
    .endr
.endm

    .section .text.amp_product, "ax"
    .align 8
    .supervisor
    .globl amp_product
    .type amp_product, @function
amp_product:
    setzi $m0, amp_b
    put $CCCSLOAD, $m0
    setzi $m1, amp_worker
    setzi $m2, amp_vertex
    sync 2                              // no worker may be using the weights
    .irp first, 0, 32, 8, 40, 16, 48, 24, 56
    TWO_COLUMNS \first
    .endr
    runall $m1, $m2, 0
    sync 2
    br $lr
    .size amp_product, . - amp_product

    .worker
    .type amp_worker, @function
amp_worker:
    setzi $a6, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT
    uput $FP_CLR, $a6
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m2, $mvertex_base, $mzero, 0  // a
    ld32 $m3, $mvertex_base, $mzero, 1  // c
    ld32 $m4, $mvertex_base, $mzero, 2  // rows - 1
    add $m5, $m4, 1
    mul $m5, $m5, $m0                   // rows before those of this worker, of 32 bytes
    shl $m5, $m5, 5
    add $m2, $m2, $m5
    add $m3, $m3, $m5
    add $m4, $m4, -1
    LOAD
    { LOAD ; AMP(0) }                   // row 0: nothing comes out yet
    { LOAD ; AMP(1) }
    { LOAD ; AMP(2) }
    { LOAD ; AMP(3) }
    { LOAD ; AMP(0) }                   // row 1: the first result of row 0
    tapack $m6:7, $m2, $mzero, $m3
    { rpt $m4, (amp_loop_end - amp_loop) / 8 - 1 ; fnop }
amp_loop:
    { LOAD_STORE ; AMP(1) }
    { LOAD_STORE ; AMP(2) }
    { LOAD_STORE ; AMP(3) }
    { LOAD_STORE ; AMP(0) }
amp_loop_end:
    { LOAD_STORE ; AMP(1) }             // the last row
    { LOAD_STORE ; AMP(2) }
    { STORE ; AMP(3) }
    { STORE ; DRAIN(0) }                // zeros in, its results out
    { STORE ; DRAIN(1) }
    { STORE ; DRAIN(2) }
    { STORE ; DRAIN(3) }
    STORE
    exitz $mzero
    .size amp_worker, . - amp_worker

// Data of the example: 24 rows (0, 1, ... 15), b = 2 on the diagonal, so c = (0, 2, ... 30).
    .set ROWS, 4

    .data
    .align 8
amp_vertex:
    .word amp_a, amp_c, ROWS - 1
    .align 8
amp_a:
    .rept 6 * ROWS
    .half 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0
    .endr
amp_b:
    .set column, 0
    .rept 16
    .set row, 0
    .rept 16
    .short (row == column) & 0x4000     // 2.0; a comparison that holds gives -1
    .set row, row + 1
    .endr
    .set column, column + 1
    .endr

    .section .interleaved.c, "aw", @nobits
    .align 8
    .globl amp_c
amp_c:
    .space 6 * ROWS * 32
