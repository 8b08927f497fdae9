// bias_gelu_f16: out = GELU(in + bias), rows of width halves, bias one row.
//
// Entries    bias_gelu_f16: width a multiple of 4; bias_gelu_f16_words: the same, 4-byte alignment;
//            bias_gelu_f16_pairs: width even; each with _erf behind it for the erf form
// Arguments  m2 = out, m3 = in, m4 = bias, m5 = quads (pairs) of a row, m6 = R
// Alignment  8 bytes (words, pairs: 4) each, any region; out is not in. Access tail: none (loads
//            ahead are held at the worker's last quad). Contexts: all six workers
// Split      quads (pairs) of a row round robin: w, w + 6, ...; all workers visit every row
// Slots      10 per quad, 21 per row more:
//              min offset x   ; square of the clamped sum
//              min offset sum ; cube
//              ld64 x next    ; mix, returns the argument of the previous quad
//              ld64 sum prev. ; sigm, two slots
//              -              ; sigm, two slots
//              ld64 bias next ; * sum previous (not clamped)
//              st64 previous  ; x + bias
//              st64 sum       ; clamp
//            The unclamped sum waits in out. Words: 17 per quad, pairs: 14 per pair, 8 per row.
// Numerics   the sum rounds to half; then as gelu_f16.
#include "kernel.inc"
#include "gelu.inc"

.macro BIAS_GELU_SETUP exit, tas_lo, tas_hi
    { get $m0, $WSR ; setzi $a0, ZAACC }
    { and $m0, $m0, 7 ; uput $FP_CLR, $a0 }
    { ld32 $m1, ARG(3) ; setzi $a6, GELU_BOUNDS_LO }
    { setzi $m3, SIXTH ; or $a6, $a6, GELU_BOUNDS_HI }
    { sub $m4, $m1, $m0 ; fnop }
    { add $m4, $m4, 5 ; fnop }
    { mul $m4, $m4, $m3 ; setzi $a0, \tas_lo }
    { shr $m4, $m4, SIXTH_SHIFT ; or $a0, $a0, \tas_hi }
    { brz $m4, \exit ; uput $TAS, $a0 }
    { add $m4, $m4, -1 ; fnop }
    { ld32 $m5, ARG(0) ; fnop }
    { ld32 $m6, ARG(1) ; fnop }
    { ld32 $m2, ARG(2) ; fnop }
    { ld32 $m11, ARG(4) ; fnop }
    { add $m11, $m11, -1 ; fnop }
.endm

.macro BIAS_GELU_QUADS p, tas_lo, tas_hi
KERNEL_ENTRY \p, \p\()_worker, 5

// m0 first offset, m1 bytes of a row, m2 bias, m4 quads - 1, m5 out, m6 in of the row, m7 offset of
// x and bias, m8 offset of the sum, m9 offset of the result, m10 last offset, m11 rows left - 1
// a0:1 x and sum, a2:3 value, a4:5 clamped / sum / bias, a6 bounds
\p\()_worker:
    BIAS_GELU_SETUP \p\()_exit, \tas_lo, \tas_hi
    shl $m0, $m0, 3
    shl $m1, $m1, 3
    mul $m10, $m4, 48
    add $m10, $m10, $m0
\p\()_row:
    { mov $m7, $m0 ; fnop }
    { ld64 $a0:1, $m6, $m7, 0 ; fnop }
    { ld64step $a4:5, $m2, $m7+=, 6 ; fnop }
    { mov $m8, $m0 ; f16v4add $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m5, $m8+=, 6 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { min $m7, $m7, $m10 ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { min $m8, $m8, $m10 ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { ld64 $a0:1, $m6, $m7, 0 ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { ld64step $a4:5, $m2, $m7+=, 6 ; fnop }
    { mov $m9, $m0 ; f16v4add $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m5, $m8+=, 6 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { rpt $m4, 7 ; fnop }
    { min $m7, $m7, $m10 ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { min $m8, $m8, $m10 ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { ld64 $a0:1, $m6, $m7, 0 ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { ld64 $a4:5, $m5, $m9, 0 ; f16v2sigm $a2, $a2 }
    { nop ; f16v2sigm $a3, $a3 }
    { ld64step $a4:5, $m2, $m7+=, 6 ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m5, $m9+=, 6 ; f16v4add $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m5, $m8+=, 6 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { ld64 $a4:5, $m5, $m9, 0 ; f16v4mix $a2:3, $azeros, $azeros }
    { add $m6, $m6, $m1 ; f16v2sigm $a2, $a2 }
    { nop ; f16v2sigm $a3, $a3 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m5, $m9+=, 6 ; fnop }
    add $m5, $m5, $m1
    brnzdec $m11, \p\()_row
\p\()_exit:
    exitz $m15
.endm

.macro BIAS_GELU_PAIRS p, tas_lo, tas_hi
KERNEL_ENTRY \p, \p\()_worker, 5
\p\()_worker:
    BIAS_GELU_SETUP \p\()_exit, \tas_lo, \tas_hi
    shl $m0, $m0, 2
    shl $m1, $m1, 2
    add $m4, $m4, 1
    nop
\p\()_row:
    mov $m7, $m0
    mov $m8, $m0
    { mov $m9, $m0 ; fnop }
    { rpt $m4, 11 ; zero $a1 }
    { ld32step $a0, $m6, $m7+=, 6 ; fnop }
    { ld32step $a2, $m2, $m8+=, 6 ; fnop }
    { nop ; f16v2add $a0, $a0, $a2 }
    { nop ; f16v2clamp $a4, $a0, $a6 }
    { nop ; zero $a5 }
    { nop ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $azeros, $azeros }
    { nop ; f16v2sigm $a2, $a2 }
    { nop ; f16v2mul $a2, $a2, $a0 }
    { st32step $a2, $m5, $m9+=, 6 ; fnop }
    add $m6, $m6, $m1
    add $m5, $m5, $m1
    nop
    brnzdec $m11, \p\()_row
\p\()_exit:
    exitz $m15
.endm

// Quads of 32-bit accesses, for rows that are only 4-byte aligned.
.macro BIAS_GELU_WORDS p, tas_lo, tas_hi
KERNEL_ENTRY \p, \p\()_worker, 5
\p\()_worker:
    BIAS_GELU_SETUP \p\()_exit, \tas_lo, \tas_hi
    shl $m0, $m0, 3
    shl $m1, $m1, 3
    add $m4, $m4, 1
    nop
\p\()_row:
    mov $m7, $m0
    mov $m8, $m0
    { mov $m9, $m0 ; fnop }
    { rpt $m4, 14 ; fnop }
    { ld32step $a0, $m6, $m7+=, 1 ; fnop }
    { ld32step $a1, $m6, $m7+=, 11 ; fnop }
    { ld32step $a2, $m2, $m8+=, 1 ; fnop }
    { ld32step $a3, $m2, $m8+=, 11 ; fnop }
    { nop ; f16v4add $a0:1, $a0:1, $a2:3 }
    { nop ; f16v4clamp $a4:5, $a0:1, $a6 }
    { nop ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $azeros, $azeros }
    { nop ; f16v2sigm $a2, $a2 }
    { nop ; f16v2sigm $a3, $a3 }
    { nop ; f16v4mul $a2:3, $a2:3, $a0:1 }
    { st32step $a2, $m5, $m9+=, 1 ; fnop }
    { st32step $a3, $m5, $m9+=, 11 ; fnop }
    add $m6, $m6, $m1
    add $m5, $m5, $m1
    nop
    brnzdec $m11, \p\()_row
\p\()_exit:
    exitz $m15
.endm

BIAS_GELU_QUADS bias_gelu_f16, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
BIAS_GELU_QUADS bias_gelu_f16_erf, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
BIAS_GELU_PAIRS bias_gelu_f16_pairs, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
BIAS_GELU_PAIRS bias_gelu_f16_pairs_erf, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
BIAS_GELU_WORDS bias_gelu_f16_words, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
BIAS_GELU_WORDS bias_gelu_f16_words_erf, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
