// gelu_f16: out = GELU(in), a tanh of a clamped polynomial.
//
// Entries    gelu_f16: tanh form; gelu_erf_f16: the erf form, same passes, constants fitted to it
// Arguments  m2 = out (may be in), m3 = in, m4 = elements / 2
// Shapes     an even number of halves; both 8-byte aligned, any region
// Split      quads round robin: w, w + 6, ...; a last pair goes to the worker whose turn it is
// Access tail none: the load ahead is held at the worker's last quad. Contexts: all six workers.
// Slots      9 per quad (two quads in flight; the result of MIX comes one pass later):
//              nop                ; square
//              nop                ; cube
//              nop                ; mix, returns the polynomial of the previous quad
//              ld64 x previous    ; tanh
//              ld64 x next        ; tanh
//              min offset         ; 1 + t
//              nop                ; 0.5 *
//              nop                ; * x previous (not clamped)
//              st64 previous      ; clamp next
// Numerics   every step rounds to half; the polynomial once from F32. Any finite input is safe.
#include "kernel.inc"
#include "gelu.inc"

// m1 pairs, m2 quads, m4 quads of this worker - 1, m5 out, m6 in, m7 offset of the load ahead,
// m8 offset of the reload, m9 offset out, m10 last offset
// a0:1 x ahead, a2:3 value, a4:5 clamped x / x, a6 bounds, a7 {0.5, 1.0}
.macro GELU_QUADS p, tas_lo, tas_hi
KERNEL_ENTRY \p, \p\()_worker, 3
\p\()_worker:
    { get $m0, $WSR ; setzi $a0, ZAACC }
    { and $m0, $m0, 7 ; uput $FP_CLR, $a0 }
    { ld32 $m1, ARG(2) ; setzi $a6, GELU_BOUNDS_LO }
    { shr $m2, $m1, 1 ; or $a6, $a6, GELU_BOUNDS_HI }
    { setzi $m3, SIXTH ; setzi $a7, GELU_HALF_ONE_LO }
    { sub $m4, $m2, $m0 ; or $a7, $a7, GELU_HALF_ONE_HI }
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
    { rpt $m4, 8 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { nop ; f16v4mul $a2:3, $a4:5, $a4:5 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { nop ; f16v4mix $a2:3, $a2:3, $a4:5 }
    { ld64step $a4:5, $m6, $m8+=, 6 ; f16v2tanh $a2, $a2 }
    { ld64step $a0:1, $m6, $m7+=, 6 ; f16v2tanh $a3, $a3 }
    { min $m7, $m7, $m10 ; f16v4add $a2:3, $a7:BU, $a2:3 }
    { nop ; f16v4mul $a2:3, $a7:BL, $a2:3 }
    { nop ; f16v4mul $a2:3, $a2:3, $a4:5 }
    { st64step $a2:3, $m5, $m9+=, 6 ; f16v4clamp $a4:5, $a0:1, $a6 }
    { ld64step $a4:5, $m6, $m8+=, 6 ; f16v4mix $a2:3, $azeros, $azeros }
    { nop ; f16v2tanh $a2, $a2 }
    { and $m1, $m1, 1 ; f16v2tanh $a3, $a3 }
    { shl $m2, $m2, 3 ; f16v4add $a2:3, $a7:BU, $a2:3 }
    { nop ; f16v4mul $a2:3, $a7:BL, $a2:3 }
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
    { nop ; f16v2tanh $a2, $a2 }
    { nop ; f16v2add $a2, $a7:BU, $a2 }
    { nop ; f16v2mul $a2, $a7:BL, $a2 }
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

GELU_QUADS gelu_f16, GELU_TAS_LO, GELU_TAS_HI
GELU_QUADS gelu_erf_f16, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
