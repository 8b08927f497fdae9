// amp_groups: c = a * b with 32 inputs a row: the matrix unit holds 16, so it is loaded twice.
//
// Entry      amp_groups (supervisor), returns with br $lr
// Data       per group 16 bytes at groups: a, partial sums, c. The second group takes the first one's
//            results as partial sums; those of the first are zeros
// Shapes     a: 6 * 4 rows of 32 halves; b: two groups of 16 columns of 16 halves; sums: rows of 16 halves
//            in the interleaved region, read and written in different pairs of elements
// Split      4 rows after another per worker
// Slots      4 per row and group
//
// Partials   What is given with row r begins the sums of row r + 1, and the results of row r come out
//            with row r + 1. So four calls ahead take in the partials of row 0, four behind let the last
//            row out, and the loop loads operand and next partials and stores older results at once:
//
//   P1, P2, P3, P0  { load operand, load partial, store result ; amp }
//
// A row of a is 64 bytes of which a group reads 32: the load of its last piece steps over the others.

#define AMP(phase) f16v4hihov4amp $a4:5, $a0:1, $a2:3, TAMP_F16V4_E4_P##phase
#define LOAD ld2x64pace $a0:1, $a2:3, $m6:7+=, $m8, 0b0000
#define LOAD_LAST ld2x64pace $a0:1, $a2:3, $m6:7+=, $m8, 0b0001
#define LOAD_STORE ld2xst64pace $a0:3, $a4:5, $m6:7+=, $m8, 0b000000
#define LOAD_LAST_STORE ld2xst64pace $a0:3, $a4:5, $m6:7+=, $m8, 0b000001
#define STORE st64pace $a4:5, $m6:7+=, $mzero, 0

    .set ROWS, 4                        // of a worker

    .section .text.amp_groups, "ax"
    .align 8
    .supervisor
    .globl amp_groups
    .type amp_groups, @function
amp_groups:
    setzi $m0, groups_b
    put $CCCSLOAD, $m0                  // goes on from group to group
    setzi $m1, groups_worker
    setzi $m2, groups
    setzi $m3, 2 - 1
group:
    sync 2                              // no worker may be using the weights
    .irp first, 0, 32, 8, 40, 16, 48, 24, 56
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7
    ld64putcs \first + \i
    .endr
    .endr
    runall $m1, $m2, 0
    add $m2, $m2, 16
    brnzdec $m3, group
    sync 2
    br $lr
    .size amp_groups, . - amp_groups

    .worker
    .type groups_worker, @function
groups_worker:
    setzi $a6, CSR_W_FP_CLR__ZAACC__MASK << CSR_W_FP_CLR__ZAACC__SHIFT
    uput $FP_CLR, $a6
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m2, $mvertex_base, $mzero, 0  // a
    ld32 $m3, $mvertex_base, $mzero, 1  // partial sums
    ld32 $m4, $mvertex_base, $mzero, 2  // c
    mul $m5, $m0, ROWS * 64
    add $m2, $m2, $m5
    mul $m5, $m0, ROWS * 32
    add $m3, $m3, $m5
    add $m4, $m4, $m5
    tapack $m6:7, $m2, $m3, $m4
    setzi $m8, 5                        // stride field 0: from the last piece of a row to the next row
    .irp phase, 0, 1, 2, 3
    ld64step $a2:3, $mzero, $m3+=, 1    // partials of row 0
    { nop ; f16v4hihov4amp $a4:5, $azeros, $a2:3, TAMP_F16V4_E4_P\phase }
    .endr
    tapack $m6:7, $m2, $m3, $m4
    LOAD
    { LOAD ; AMP(0) }                   // row 0: nothing comes out yet
    { LOAD ; AMP(1) }
    { LOAD_LAST ; AMP(2) }
    { LOAD ; AMP(3) }
    { LOAD ; AMP(0) }                   // row 1: the first result of row 0
    { rpt ROWS - 2, (groups_end - groups_loop) / 8 - 1 ; fnop }
groups_loop:
    { LOAD_STORE ; AMP(1) }
    { LOAD_LAST_STORE ; AMP(2) }
    { LOAD_STORE ; AMP(3) }
    { LOAD_STORE ; AMP(0) }
groups_end:
    { LOAD_STORE ; AMP(1) }             // the last row; its partials belong to no row
    { LOAD_STORE ; AMP(2) }
    { STORE ; AMP(3) }
    .irp phase, 0, 1, 2, 3
    { STORE ; f16v4hihov4amp $a4:5, $azeros, $azeros, TAMP_F16V4_E4_P\phase }
    .endr
    STORE
    exitz $mzero
    .size groups_worker, . - groups_worker

// Data of the example: rows (1, 2, ... 16, 100, 0, ... 0, 100); b = 2 on both diagonals, so that
// c = 2 * (1, ... 16) + (200, 0, ... 0, 200).
    .data
    .align 8
groups:
    .word groups_a, groups_zero, groups_sums, 0
    .word groups_a + 32, groups_sums, groups_c, 0
    .align 8
groups_a:
    .rept 6 * ROWS
    .half 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0
    .half 100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0
    .endr
groups_b:
    .rept 2
    .set column, 0
    .rept 16
    .set row, 0
    .rept 16
    .short (row == column) & 0x4000     // 2.0; a comparison that holds gives -1
    .set row, row + 1
    .endr
    .set column, column + 1
    .endr
    .endr

    .section .interleaved.zero, "aw"
    .align 8
groups_zero:
    .space 6 * ROWS * 32 + 32           // the last worker loads partials of a row behind

    .section .interleaved.sums, "aw"
    .align 32768
groups_sums:
    .space 6 * ROWS * 32 + 32

    .section .interleaved.c, "aw", @nobits
    .align 32768
    .globl groups_c
groups_c:
    .space 6 * ROWS * 32
