// gelu_f8: rows of halves to F143 or F152, out = round(GELU(in [+ bias]) * 2^-e).
//
// Entries    gelu_f8, bias_gelu_f8; gelu_f152, bias_gelu_f152; gelu_erf_f8 and so on: the erf form
// Arguments  m2 = out, m3 = in, m4 = vectors of 8 halves of a row, m5 = R,
//            m6 = bytes of an output row, m7 = (-e) & 63, bias_: m8 = bias
// Shapes     width a multiple of 8; output rows of width rounded up to 32, the rest zero
// Alignment  8 bytes each, any region. Scratch 20 bytes at the worker base. Access tail: none
// Split      vectors of a row round robin: w, w + 6, ...; all workers visit every row
// Slots      25 per vector of 8 halves (bias: 27), 13 per row: two quads side by side, their
//            unclamped values wait in the scratch
// Numerics   as gelu_f16 / bias_gelu_f16; the conversion rounds to nearest even, saturating.
#include "kernel.inc"
#include "gelu.inc"

#define SCRATCH(n) $mworker_base, $m15, n

// m0 offset in, m1 rows left - 1, m2 offset out, m3 bias, m4 vectors of this worker, m5 out, m6 in of
// the row, m7 vectors left, m8 bytes of an output row, m9 vectors of a row, m10 worker
.macro GELU_F8 name, bias, format, tas_lo, tas_hi
    KERNEL_ENTRY \name, \name\()_worker, 6 + \bias
\name\()_worker:
    { get $m10, $WSR ; setzi $a0, ZAACC }
    { and $m10, $m10, 7 ; uput $FP_CLR, $a0 }
    { ld32 $m9, ARG(2) ; setzi $a0, GELU_BOUNDS_LO }
    { setzi $m3, SIXTH ; or $a0, $a0, GELU_BOUNDS_HI }
    { st32 $a0, SCRATCH(4) ; fnop }
    { sub $m4, $m9, $m10 ; fnop }
    { nop ; setzi $a0, \tas_lo }
    { add $m4, $m4, 5 ; or $a0, $a0, \tas_hi }
    { mul $m4, $m4, $m3 ; uput $TAS, $a0 }
    { ld32 $a0, ARG(5) ; setzi $a1, \format }
    { shr $m4, $m4, SIXTH_SHIFT ; uput $FP_SCL, $a0 }
    { ld32 $m1, ARG(3) ; uput $FP_NFMT, $a1 }
    { nop ; uput $FP_CTL, $azero }
    add $m1, $m1, -1
    ld32 $m5, ARG(0)
    ld32 $m6, ARG(1)
    ld32 $m8, ARG(4)
    .if \bias
    ld32 $m3, ARG(6)
    .else
    nop
    .endif
    nop
\name\()_row:
    shl $m0, $m10, 4
    shl $m2, $m10, 3
    mov $m11, $m0
    brz $m4, \name\()_padding
    add $m7, $m4, -1
    nop
\name\()_vector:
    { ld64step $a4:5, $m6, $m0+=, 1 ; fnop }
    { ld64step $a6:7, $m6, $m0+=, 11 ; fnop }
    .if \bias
    { ld64step $a0:1, $m3, $m11+=, 1 ; fnop }
    { ld64step $a2:3, $m3, $m11+=, 11 ; f16v4add $a4:5, $a4:5, $a0:1 }
    { ld32 $a0, SCRATCH(4) ; f16v4add $a6:7, $a6:7, $a2:3 }
    { st64 $a4:5, SCRATCH(0) ; f16v4clamp $a4:5, $a4:5, $a0 }
    .else
    { ld32 $a0, SCRATCH(4) ; fnop }
    { st64 $a4:5, SCRATCH(0) ; f16v4clamp $a4:5, $a4:5, $a0 }
    .endif
    { st64 $a6:7, SCRATCH(1) ; f16v4clamp $a6:7, $a6:7, $a0 }
    { nop ; f16v4mul $a0:1, $a4:5, $a4:5 }
    { nop ; f16v4mul $a2:3, $a6:7, $a6:7 }
    { nop ; f16v4mul $a0:1, $a0:1, $a4:5 }
    { nop ; f16v4mul $a2:3, $a2:3, $a6:7 }
    { nop ; f16v4mix $a0:1, $a0:1, $a4:5 }
    { nop ; f16v4mix $a0:1, $a2:3, $a6:7 }
    { nop ; f16v4mix $a2:3, $azeros, $azeros }
    { ld64 $a4:5, SCRATCH(0) ; f16v2sigm $a0, $a0 }
    { ld64 $a6:7, SCRATCH(1) ; f16v2sigm $a1, $a1 }
    { nop ; f16v2sigm $a2, $a2 }
    { nop ; f16v2sigm $a3, $a3 }
    { nop ; f16v4mul $a0:1, $a0:1, $a4:5 }
    { nop ; f16v4mul $a2:3, $a2:3, $a6:7 }
    { nop ; f16v8tof8 $a0:1, $a0:3 }
    st64step $a0:1, $m5, $m2+=, 6
    brnzdec $m7, \name\()_vector
// m2 is the first output word of this worker behind the row; the padding has up to three words.
\name\()_padding:
    cmpult $m7, $m2, $m8
    brz $m7, \name\()_next
    st64step $azeros, $m5, $m2+=, 6
\name\()_next:
    shl $m7, $m9, 4
    add $m6, $m6, $m7
    add $m5, $m5, $m8
    nop
    brnzdec $m1, \name\()_row
    exitz $m15
.endm

GELU_F8 gelu_f8, 0, 3, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
GELU_F8 gelu_f152, 0, 0, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
GELU_F8 bias_gelu_f8, 1, 3, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
GELU_F8 bias_gelu_f152, 1, 0, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
GELU_F8 gelu_erf_f8, 0, 3, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
GELU_F8 gelu_erf_f152, 0, 0, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
GELU_F8 bias_gelu_erf_f8, 1, 3, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
GELU_F8 bias_gelu_erf_f152, 1, 0, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
