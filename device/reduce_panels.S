// reduce_panels: sum of P partials in panel order with what follows it: residual, bias, GELU, F8.
//
// Purpose    s = seed + remote 1 + ... + remote (P - 1) [+ residual] [+ bias of the column], in F32;
//            out = s, GELU(s) or either of them as F143 times 2^-scale
// Entries    reduce_panels_{r,b,rb,g,bg,e,be}: F16 out in A16, as the operands
//            reduce_panels_{q,bq,gq,bgq,eq,beq}: F143 out in A32; with h for q F152
//            (r residual, b bias, g GELU, e its erf form, q F8); each with _std behind it for inputs anywhere
// Arguments  m2 = out, m3 = seed, m4 = remotes (packed runs of R * C halves), m5 = P - 1, m6 = R,
//            m7 = C / 16, then residual, bias, (-scale) & 63 as far as the entry has them (with GELU
//            (-scale - 1) & 63: the half of GELU is taken in the conversion)
// Shapes     R >= 1; C a multiple of 16, for F8 of 32; P >= 1 (P = 1: no remotes)
// Alignment  inputs 16 bytes, in the interleaved region (128-bit loads; std: 8 bytes, anywhere); out 8
//            bytes, anywhere. Without F8 out may be the seed or the residual
// Scratch    32 bytes at the worker base. Access tail: none
// Split      in each 16-column panel the vectors of 8 halves round robin: w, w + 6, ...; a worker meets
//            the same half of the columns all the time, so its bias is one vector per panel
// Slots      per vector P + residual + bias + (F16 5, F8 5, GELU 21, GELU to F8 18); std: one more for
//            each load. The end of a vector runs beside the loads of the next one:
//              F16                  F8                   GELU                 GELU to F8
//              branch ; gina 0, 1   branch ; gina 0, 1   add remotes ; gina   add remotes ; gina
//              load   ; gina 2, 3   load   ; gina 2, 3   12: clamp, cube and  8: cube and MIX of both
//              store  ; gina 4, 5   add    ; gina 4, 5   MIX of both quads    quads, gina
//              [load  ; acc]        nop    ; gina 6, 7   store: quad 0        4: quad 0, 2: tanh quad 1
//              rpt    ; gina 6, 7   [load  ; acc]        branch ; sigm        branch ; add
//              load   ; acc   P - 1 rpt    ; to F8       load   ; sigm        load   ; mul
//              store  ; acc         load   ; acc   P - 1 [load  ; acc]        [load  ; acc]
//              add    ; -           store  ; acc         rpt ; mul, P - 1, st rpt, P - 1, store
// GELU       two ginas take quad 0 out of the accumulators and shift quad 1 down, where the first MIX
//            (which starts the polynomial of quad 0) returns it; so quad 1 costs no gina. To F8 needs
//            no clamp: nothing traps, and a saturated cube has the tanh of +-1 that a clamped one has.
// Numerics   F32 sum in the order residual, bias, seed, remotes; rounded once to half; GELU as in
//            gelu_f16 (halves); F8 rounds the half result, nearest even, and overflow saturates without a trap.
//            GELU to F8 rounds x * (1 + tanh), saturating, and halves it with the scale. A sum of zeros
//            is +0.
#include "kernel.inc"
#include "gelu.inc"

// m0 seed, m1 run stride in 16 bytes, m2 vectors of this worker - 1, m3 of them left, m4 P - 1,
// m5 residual, m6 bias, m7 step of out to the next panel (F8), m8 step of the remotes to the next
// vector, m9 remotes, m10 out, m11 panels left - 1; all addresses of the next access
// a0:3 loaded vector; F16 and F8: a4:7 result; GELU: a4:5 and a6:7 the quads, a0:3 their passes
// scratch: 16 bounds, 20 {0.5, 1}, 24 step of all to the next panel, 28 sum of two steps of out (F8)
#define SCRATCH(n) $mworker_base, $m15, n

// One vector into a0:3 from the address in \reg, stepped to the next one of the worker; or the bias.
.macro PANEL_STEP std, reg, aux
    .if \std
    { ld64step $a0:1, $m15, \reg+=, 1 ; \aux }
    { ld64step $a2:3, $m15, \reg+=, 11 ; fnop }
    .else
    { ld128step $a0:3, $m15, \reg+=, 6 ; \aux }
    .endif
.endm
.macro PANEL_BIAS std, aux
    .if \std
    { ld64 $a0:1, $m6, $m15, 0 ; \aux }
    { ld64 $a2:3, $m6, $m15, 1 ; fnop }
    .else
    { ld128 $a0:3, $m6, $m15, 0 ; \aux }
    .endif
.endm
// The first operand of a vector, and those behind it up to the seed.
.macro PANEL_FIRST residual, bias, std, aux
    .if \residual
    PANEL_STEP \std, $m5, "\aux"
    .elseif \bias
    PANEL_BIAS \std, "\aux"
    .else
    PANEL_STEP \std, $m0, "\aux"
    .endif
.endm
.macro PANEL_MORE residual, bias, std
    .if \residual & \bias
    PANEL_BIAS \std, "f16v8acc $a0:3"
    .endif
    .if \residual | \bias
    PANEL_STEP \std, $m0, "f16v8acc $a0:3"
    .endif
.endm
// The remotes; \aux beside rpt.
.macro PANEL_REMOTES std, aux
    .if \std
    { rpt $m4, 1 ; \aux }
    { ld64step $a0:1, $m15, $m9+=, 1 ; f16v8acc $a0:3 }
    { ld64step $a2:3, $m15, $m9+=, $m1 ; fnop }
    .else
    { rpt $m4, 0 ; \aux }
    { ld128step $a0:3, $m15, $m9+=, $m1 ; f16v8acc $a0:3 }
    .endif
.endm

// A vector behind its last accumulation, with the bundles before the next vector's; \top: where the
// branch goes, with the rest of this vector beside the first loads of the next one. What stands behind
// the branch ends the last vector of a panel.
.macro VECTOR_F16 residual, bias, std, top, collect
\top:
    PANEL_FIRST \residual, \bias, \std, "f16v2gina $a5, $azero, 0"
    { st64step $a4:5, $m15, $m10+=, 1 ; f16v2gina $a6, $azero, 0 }
    { add $m9, $m9, $m8 ; f16v2gina $a7, $azero, 0 }
    PANEL_MORE \residual, \bias, \std
    PANEL_REMOTES \std, fnop
    { st64step $a6:7, $m15, $m10+=, 11 ; f16v8acc $a0:3 }
\collect:
    { brnzdec $m3, \top ; f16v2gina $a4, $azero, 0 }
    { add $m9, $m9, $m8 ; f16v2gina $a5, $azero, 0 }
    { st64step $a4:5, $m15, $m10+=, 1 ; f16v2gina $a6, $azero, 0 }
    { nop ; f16v2gina $a7, $azero, 0 }
    st64step $a6:7, $m15, $m10+=, 11
.endm
.macro VECTOR_F8 bias, std, top, collect
\top:
    PANEL_FIRST 0, \bias, \std, "f16v2gina $a5, $azero, 0"
    { add $m9, $m9, $m8 ; f16v2gina $a6, $azero, 0 }
    { nop ; f16v2gina $a7, $azero, 0 }
    PANEL_MORE 0, \bias, \std
    PANEL_REMOTES \std, "f16v8tof8 $a4:5, $a4:7"
    { st64step $a4:5, $m15, $m10+=, 12 ; f16v8acc $a0:3 }
\collect:
    { brnzdec $m3, \top ; f16v2gina $a4, $azero, 0 }
    { add $m9, $m9, $m8 ; f16v2gina $a5, $azero, 0 }
    { nop ; f16v2gina $a6, $azero, 0 }
    { nop ; f16v2gina $a7, $azero, 0 }
    { nop ; f16v8tof8 $a4:5, $a4:7 }
    st64step $a4:5, $m15, $m10+=, 12
.endm
.macro VECTOR_GELU bias, std, top, collect
\top:
    PANEL_FIRST 0, \bias, \std, "f16v2sigm $a5, $a5"
    PANEL_MORE 0, \bias, \std
    PANEL_REMOTES \std, "f16v4mul $a6:7, $a4:5, $a6:7"
    { st64step $a6:7, $m15, $m10+=, 11 ; f16v8acc $a0:3 }
\collect:
    { add $m9, $m9, $m8 ; f16v2gina $a4, $azero, 0 }
    { ld32 $a6, SCRATCH(4) ; f16v2gina $a5, $azero, 0 }
    { nop ; f16v4clamp $a0:1, $a4:5, $a6 }
    { nop ; f16v4mul $a2:3, $a0:1, $a0:1 }
    { nop ; f16v4mul $a2:3, $a2:3, $a0:1 }
    { ld32 $a2, SCRATCH(4) ; f16v4mix $a6:7, $a2:3, $a0:1 }
    { nop ; f16v4clamp $a0:1, $a6:7, $a2 }
    { nop ; f16v4mul $a2:3, $a0:1, $a0:1 }
    { nop ; f16v4mul $a2:3, $a2:3, $a0:1 }
    { nop ; f16v4mix $a0:1, $a2:3, $a0:1 }
    { nop ; f16v2sigm $a0, $a0 }
    { nop ; f16v2sigm $a1, $a1 }
    { nop ; f16v4mul $a0:1, $a0:1, $a4:5 }
    { st64step $a0:1, $m15, $m10+=, 1 ; f16v4mix $a4:5, $azeros, $azeros }
    { brnzdec $m3, \top ; f16v2sigm $a4, $a4 }
    { nop ; f16v2sigm $a5, $a5 }
    { nop ; f16v4mul $a6:7, $a4:5, $a6:7 }
    st64step $a6:7, $m15, $m10+=, 11
.endm
.macro VECTOR_GELU_F8 bias, std, top, collect
\top:
    PANEL_FIRST 0, \bias, \std, "f16v4mul $a6:7, $a0:1, $a6:7"
    PANEL_MORE 0, \bias, \std
    PANEL_REMOTES \std, "f16v8tof8 $a4:5, $a4:7"
    { st64step $a4:5, $m15, $m10+=, 12 ; f16v8acc $a0:3 }
\collect:
    { add $m9, $m9, $m8 ; f16v2gina $a4, $azero, 0 }
    { nop ; f16v2gina $a5, $azero, 0 }
    { nop ; f16v4mul $a0:1, $a4:5, $a4:5 }
    { nop ; f16v4mul $a0:1, $a0:1, $a4:5 }
    { nop ; f16v4mix $a6:7, $a0:1, $a4:5 }
    { nop ; f16v4mul $a0:1, $a6:7, $a6:7 }
    { nop ; f16v4mul $a0:1, $a0:1, $a6:7 }
    { ld32 $a2, SCRATCH(5) ; f16v4mix $a0:1, $a0:1, $a6:7 }
    { nop ; f16v2tanh $a0, $a0 }
    { nop ; f16v2tanh $a1, $a1 }
    { nop ; f16v4add $a0:1, $a2:BU, $a0:1 }
    { nop ; f16v4mul $a4:5, $a0:1, $a4:5 }
    { nop ; f16v4mix $a0:1, $azeros, $azeros }
    { nop ; f16v2tanh $a0, $a0 }
    { nop ; f16v2tanh $a1, $a1 }
    { brnzdec $m3, \top ; f16v4add $a0:1, $a2:BU, $a0:1 }
    { nop ; f16v4mul $a6:7, $a0:1, $a6:7 }
    { nop ; f16v8tof8 $a4:5, $a4:7 }
    st64step $a4:5, $m15, $m10+=, 12
.endm

// format: $FP_NFMT of an F8 result; lo, hi: $TAS of GELU
.macro REDUCE_PANELS name, residual, bias, gelu, f8, std, format, lo, hi
.set args_\name, 6 + \residual + \bias + \f8
    KERNEL_ENTRY reduce_panels_\name, reduce_panels_\name\()_worker, args_\name
reduce_panels_\name\()_worker:
    { get $m0, $WSR ; setzi $a0, ZAACC }
    { and $m0, $m0, 7 ; uput $FP_CLR, $a0 }
    ld32 $m1, ARG(4)
    setzi $m3, SIXTH
    add $m2, $m1, $m1
    sub $m2, $m2, $m0
    add $m2, $m2, 5
    mul $m2, $m2, $m3
    shr $m2, $m2, SIXTH_SHIFT
    brz $m2, reduce_panels_\name\()_exit
    mul $m3, $m2, 96
    shl $m7, $m1, 5
    sub $m8, $m7, $m3
    st32 $m8, SCRATCH(6)
    .if \f8
    sub $m8, $m8, $m3
    st32 $m8, SCRATCH(7)
    sub $m7, 16, $m3
    ld32 $a0, ARG(6 + \residual + \bias)
    { nop ; uput $FP_SCL, $a0 }
    { nop ; setzi $a0, \format }
    { nop ; uput $FP_NFMT, $a0 }
    { nop ; uput $FP_CTL, $azero }
    .endif
    .if \gelu
    .if \f8
    { nop ; setzi $a1, GELU_HALF_ONE_LO }
    { nop ; or $a1, $a1, GELU_HALF_ONE_HI }
    { st32 $a1, SCRATCH(5) ; setzi $a0, \lo }
    .else
    { nop ; setzi $a0, GELU_BOUNDS_LO }
    { nop ; or $a0, $a0, GELU_BOUNDS_HI }
    { st32 $a0, SCRATCH(4) ; setzi $a0, \lo }
    .endif
    { nop ; or $a0, $a0, \hi }
    { nop ; uput $TAS, $a0 }
    .endif
    ld32 $m11, ARG(5)
    ld32 $m4, ARG(3)
    mul $m1, $m1, $m11
    add $m1, $m1, $m1
    mul $m8, $m1, $m4
    shl $m8, $m8, 4
    sub $m8, 96, $m8
    .if \std
    add $m1, $m1, $m1
    add $m1, $m1, -1
    .endif
    .if \bias
    and $m9, $m0, 1
    shl $m9, $m9, 4
    ld32 $m6, ARG(6 + \residual)
    add $m6, $m6, $m9
    .endif
    ld32 $m10, ARG(0)
    .if \f8
    shr $m9, $m0, 1
    shl $m9, $m9, 5
    add $m10, $m10, $m9
    and $m9, $m0, 1
    shl $m9, $m9, 3
    add $m10, $m10, $m9
    shl $m9, $m0, 4
    .else
    shl $m9, $m0, 4
    add $m10, $m10, $m9
    .endif
    .if \residual
    ld32 $m5, ARG(6)
    add $m5, $m5, $m9
    .endif
    ld32 $m0, ARG(1)
    add $m0, $m0, $m9
    ld32 $m3, ARG(2)
    add $m9, $m9, $m3
    add $m2, $m2, -1
    add $m11, $m11, -1
    .align 8
reduce_panels_\name\()_panel:
    { mov $m3, $m2 ; fnop }
    PANEL_FIRST \residual, \bias, \std, fnop
    PANEL_MORE \residual, \bias, \std
    PANEL_REMOTES \std, fnop
    { bri reduce_panels_\name\()_collect ; f16v8acc $a0:3 }
    .if \gelu
    .if \f8
    VECTOR_GELU_F8 \bias, \std, reduce_panels_\name\()_top, reduce_panels_\name\()_collect
    .else
    VECTOR_GELU \bias, \std, reduce_panels_\name\()_top, reduce_panels_\name\()_collect
    .endif
    .else
    .if \f8
    VECTOR_F8 \bias, \std, reduce_panels_\name\()_top, reduce_panels_\name\()_collect
    .else
    VECTOR_F16 \residual, \bias, \std, reduce_panels_\name\()_top, reduce_panels_\name\()_collect
    .endif
    .endif
    ld32 $m3, SCRATCH(6)
    add $m0, $m0, $m3
    add $m9, $m9, $m3
    .if \residual
    add $m5, $m5, $m3
    .endif
    .if \bias
    add $m6, $m6, 32
    .endif
    .if \f8
    ld32 $m3, SCRATCH(7)
    add $m10, $m10, $m7
    sub $m7, $m3, $m7
    .else
    add $m10, $m10, $m3
    .endif
    brnzdec $m11, reduce_panels_\name\()_panel
reduce_panels_\name\()_exit:
    exitz $m15
.endm

REDUCE_PANELS r, 1, 0, 0, 0, 0, 0, 0, 0
REDUCE_PANELS r_std, 1, 0, 0, 0, 1, 0, 0, 0
REDUCE_PANELS b, 0, 1, 0, 0, 0, 0, 0, 0
REDUCE_PANELS b_std, 0, 1, 0, 0, 1, 0, 0, 0
REDUCE_PANELS rb, 1, 1, 0, 0, 0, 0, 0, 0
REDUCE_PANELS rb_std, 1, 1, 0, 0, 1, 0, 0, 0
REDUCE_PANELS g, 0, 0, 1, 0, 0, 0, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
REDUCE_PANELS e, 0, 0, 1, 0, 0, 0, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
REDUCE_PANELS g_std, 0, 0, 1, 0, 1, 0, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
REDUCE_PANELS e_std, 0, 0, 1, 0, 1, 0, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
REDUCE_PANELS bg, 0, 1, 1, 0, 0, 0, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
REDUCE_PANELS be, 0, 1, 1, 0, 0, 0, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
REDUCE_PANELS bg_std, 0, 1, 1, 0, 1, 0, GELU_SIGM_TAS_LO, GELU_SIGM_TAS_HI
REDUCE_PANELS be_std, 0, 1, 1, 0, 1, 0, GELU_SIGM_ERF_TAS_LO, GELU_SIGM_ERF_TAS_HI
REDUCE_PANELS q, 0, 0, 0, 1, 0, 3, 0, 0
REDUCE_PANELS h, 0, 0, 0, 1, 0, 0, 0, 0
REDUCE_PANELS q_std, 0, 0, 0, 1, 1, 3, 0, 0
REDUCE_PANELS h_std, 0, 0, 0, 1, 1, 0, 0, 0
REDUCE_PANELS bq, 0, 1, 0, 1, 0, 3, 0, 0
REDUCE_PANELS bh, 0, 1, 0, 1, 0, 0, 0, 0
REDUCE_PANELS bq_std, 0, 1, 0, 1, 1, 3, 0, 0
REDUCE_PANELS bh_std, 0, 1, 0, 1, 1, 0, 0, 0
REDUCE_PANELS gq, 0, 0, 1, 1, 0, 3, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS gh, 0, 0, 1, 1, 0, 0, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS eq, 0, 0, 1, 1, 0, 3, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
REDUCE_PANELS eh, 0, 0, 1, 1, 0, 0, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
REDUCE_PANELS gq_std, 0, 0, 1, 1, 1, 3, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS gh_std, 0, 0, 1, 1, 1, 0, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS eq_std, 0, 0, 1, 1, 1, 3, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
REDUCE_PANELS eh_std, 0, 0, 1, 1, 1, 0, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
REDUCE_PANELS bgq, 0, 1, 1, 1, 0, 3, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS bgh, 0, 1, 1, 1, 0, 0, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS beq, 0, 1, 1, 1, 0, 3, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
REDUCE_PANELS beh, 0, 1, 1, 1, 0, 0, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
REDUCE_PANELS bgq_std, 0, 1, 1, 1, 1, 3, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS bgh_std, 0, 1, 1, 1, 1, 0, GELU_TAS_LO, GELU_TAS_HI
REDUCE_PANELS beq_std, 0, 1, 1, 1, 1, 3, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
REDUCE_PANELS beh_std, 0, 1, 1, 1, 1, 0, GELU_ERF_TAS_LO, GELU_ERF_TAS_HI
