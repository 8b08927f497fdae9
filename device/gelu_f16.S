// gelu_f16: out = GELU(in), a tanh of a clamped polynomial.
//
// Entries    gelu_f16: tanh form, halves; gelu_erf_f16: erf form, halves; gelu_tanh_f32, gelu_erf_f32: the
//            same forms in F32 (halves in and out)
// Arguments  m2 = out (may be in), m3 = in, m4 = elements / 2
// Shapes     an even number of halves; both 8-byte (F32 forms: 4-byte) aligned, any region
// Split      quads round robin: w, w + 6, ...; a last pair goes to the worker whose turn it is
// Access tail none: the load ahead is held at the worker's last quad. Contexts: all six workers.
// Slots      halves: 9 per quad (two quads in flight; the result of MIX comes one pass later):
//              nop                ; square
//              nop                ; cube
//              nop                ; mix, returns the argument of the previous quad
//              ld64 x previous    ; sigm, two slots
//              ld64 x next        ; sigm, two slots
//              min offset         ; * x previous (not clamped)
//              st64 previous      ; clamp next
//            F32: 30 (erf: 12 for the polynomial, 6 for exp) or 26 (tanh: 4 and 10 for sigm) per pair;
//            x - x is added to the result, so that NaN stays NaN
// Numerics   halves: every step rounds to half, the argument once from F32: at most 1 step of a half from the
//            rounded form at x > 0 (erf form: 2), the error at x < 0 at most 0.0002 (0.0004). F32: gelu.inc.
//            Any finite input is safe; +infinity stays (F32: gives NaN), -infinity and NaN give NaN.
#include "kernel.inc"
#include "gelu.inc"

// m1 pairs, m2 quads, m4 quads of this worker - 1, m5 out, m6 in, m7 offset of the load ahead,
// m8 offset of the reload, m9 offset out, m10 last offset
// a0:1 x ahead, a2:3 value, a4:5 clamped x / x, a6 bounds
.macro GELU_QUADS p, tas_lo, tas_hi
KERNEL_ENTRY \p, \p\()_worker, 3
\p\()_worker:
    { get $m0, $WSR ; setzi $a0, ZAACC }
    { and $m0, $m0, 7 ; uput $FP_CLR, $a0 }
    { ld32 $m1, ARG(2) ; setzi $a6, GELU_BOUNDS_LO }
    { shr $m2, $m1, 1 ; or $a6, $a6, GELU_BOUNDS_HI }
    { setzi $m3, SIXTH ; fnop }
    { sub $m4, $m2, $m0 ; fnop }
    { add $m4, $m4, 5 ; setzi $a0, \tas_lo }
    { mul $m4, $m4, $m3 ; or $a0, $a0, \tas_hi }
    { shr $m4, $m4, SIXTH_SHIFT ; uput $TAS, $a0 }
    ld32 $m5, ARG(0)
    ld32 $m6, ARG(1)
    shl $m9, $m0, 3
    brz $m4, \p\()_tail
    shl $m7, $m0, 3
    shl $m8, $m0, 3
    add $m4, $m4, -1
    mul $m10, $m4, 48
    add $m10, $m10, $m7
    ld64step $a0:1, $m6, $m7+=, 6
    { min $m7, $m7, $m10 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { ld64step $a0:1, $m6, $m7+=, 6 ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { min $m7, $m7, $m10 ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { rpt $m4, 6 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { nop ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { ld64step $a4:5, $m6, $m8+=, 6 ; f16v2sigm $a2, $a2 }
    { ld64step $a0:1, $m6, $m7+=, 6 ; f16v2sigm $a3, $a3 }
    { min $m7, $m7, $m10 ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m5, $m9+=, 6 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { ld64step $a4:5, $m6, $m8+=, 6 ; f16v4mix $a2:3, $azeros, $azeros }
    { and $m1, $m1, 1 ; f16v2sigm $a2, $a2 }
    { shl $m2, $m2, 3 ; f16v2sigm $a3, $a3 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    st64step $a2:3, $m5, $m9+=, 6
    brz $m1, \p\()_exit
\p\()_turn:
    cmpeq $m3, $m9, $m2
    brz $m3, \p\()_exit
    { ld32 $a0, $m6, $m9, 0 ; zero $a1 }
    { nop ; f16v4clamp $a4:5, $a0:1, $a6 }
    { nop ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $azeros, $azeros }
    { nop ; f16v2sigm $a2, $a2 }
    { nop ; f16v2mul $a2, $a2, $a0 }
    st32 $a2, $m5, $m9, 0
\p\()_exit:
    exitz $m15
\p\()_tail:
    and $m1, $m1, 1
    shl $m2, $m2, 3
    brz $m1, \p\()_exit
    bri \p\()_turn
.endm

GELU_QUADS gelu_f16, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
GELU_QUADS gelu_erf_f16, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI

// m1 table, m4 pairs of this worker, m5 out, m6 in, m7 offset in, m8 offset out
// a0 x, a1 z, a2:3 z, a4, a5 constants, a6:7 polynomial, q, z q
.macro GELU_STEP constant, next
    { nop ; f32v2mul $a6:7, $a2:3, $a6:7 }
    { ld32 \next, $m1, $m15, \constant ; f32v2add $a6:7, $a4:B, $a6:7 }
.endm
.macro GELU_PAIRS p, erf
KERNEL_ENTRY \p, \p\()_worker, 3
\p\()_table:
    GELU_TABLE \erf
\p\()_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m4, ARG(2)
    setzi $m3, SIXTH
    sub $m4, $m4, $m0
    add $m4, $m4, 5
    mul $m4, $m4, $m3
    shr $m4, $m4, SIXTH_SHIFT
    ld32 $m5, ARG(0)
    ld32 $m6, ARG(1)
    shl $m7, $m0, 2
    mov $m8, $m7
    setzi $m1, \p\()_table
    nop
    { rpt $m4, GELU_BODY_\p ; fnop }
    { ld32step $a0, $m6, $m7+=, 6 ; fnop }
    { ld32 $a6, $m1, $m15, 0 ; f16v2absmax $a1, $a0, $azero }
    { ld32 $a4, $m1, $m15, 1 ; f16v2clamp $a1, $a1, $a6 }
    { ld32 $a5, $m1, $m15, 2 ; f16v2tof32 $a2:3, $a1 }
    .if \erf
    { nop ; f32v2mul $a6:7, $a4:B, $a2:3 }
    { ld32 $a4, $m1, $m15, 3 ; f32v2add $a6:7, $a5:B, $a6:7 }
    GELU_STEP 4, $a4
    GELU_STEP 5, $a4
    GELU_STEP 6, $a4
    GELU_STEP 7, $a4
    { nop ; f32v2mul $a6:7, $a2:3, $a6:7 }
    { nop ; f32v2add $a6:7, $a4:B, $a6:7 }
    { nop ; f32exp $a6, $a6 }
    { nop ; f32exp $a7, $a7 }
    .else
    { nop ; f32v2mul $a6:7, $a2:3, $a2:3 }
    { nop ; f32v2mul $a6:7, $a4:B, $a6:7 }
    { nop ; f32v2add $a6:7, $a5:B, $a6:7 }
    { nop ; f32v2mul $a6:7, $a2:3, $a6:7 }
    { nop ; f32sigm $a6, $a6 }
    { nop ; f32sigm $a7, $a7 }
    .endif
    { nop ; f32v2mul $a6:7, $a2:3, $a6:7 }
    { nop ; f16v2sub $a1, $a0, $a0 }
    { nop ; f16v2max $a0, $a0, $azero }
    { nop ; f16v2tof32 $a2:3, $a0 }
    { nop ; f32v2sub $a6:7, $a2:3, $a6:7 }
    { nop ; f32v2tof16 $a0, $a6:7 }
    { nop ; f16v2add $a0, $a0, $a1 }
    { st32step $a0, $m5, $m8+=, 6 ; fnop }
    exitz $m15
.endm

.set GELU_BODY_gelu_erf_f32, 25
.set GELU_BODY_gelu_tanh_f32, 17
GELU_PAIRS gelu_erf_f32, 1
GELU_PAIRS gelu_tanh_f32, 0
