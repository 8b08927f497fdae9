/* Tile runtime: start-up, completion, worker barrier, cycle sample (runtime 1.10, 4.7, 4.8).
 *
 * Called by generated programs. Conventions: $m10 (start, complete), $m7 (barrier), $m9 (sample) hold
 * the return address; $m11 is the supervisor's stack, which grows down; $m8 is scratch everywhere.
 * Contexts: the supervisor, and all six workers for a few slots each.
 * Addresses of the runtime state are those of target.def: worker stacks from 0x580e0, 0x100 bytes
 * each, supervisor stack below 0x586e0, completion word 0x58000.
 */

#define WORKER_STACKS 0x580e0
#define WORKER_STACK_BYTES 0x100
#define SUPERVISOR_STACK 0x586e0
#define COMPLETION_WORD 0x58000
#define MUX_NEUTRAL 0x640
#define MUX_HOST 0x600
#define ZONE_LOCAL 2
#define ZONE_INTERNAL 3
#define ZONE_HOST 7
#define TRAP_OVERFLOW 4

.section .text.runtime_start, "ax", @progbits
.align 8
.globl runtime_start
.type runtime_start, @function
.supervisor
/* m2 = physical tile number * 8. */
runtime_start:
    sync ZONE_INTERNAL
    sync ZONE_LOCAL
    setzi $m8, MUX_NEUTRAL
    put $INCOMING_MUX, $m8
    put $INCOMING_MUXPAIR, $m8
    put $INCOMING_FORMAT, $m15
    put $INCOMING_BASE, $m15
    put $OUTGOING_BASE, $m15
    setzi $m8, TRAP_OVERFLOW
    put $FP_ICTL, $m8
    setzi $m8, WORKER_STACKS
    put $WORKER0_BASE, $m8
    add $m8, $m8, WORKER_STACK_BYTES
    put $WORKER1_BASE, $m8
    add $m8, $m8, WORKER_STACK_BYTES
    put $WORKER2_BASE, $m8
    add $m8, $m8, WORKER_STACK_BYTES
    put $WORKER3_BASE, $m8
    add $m8, $m8, WORKER_STACK_BYTES
    put $WORKER4_BASE, $m8
    add $m8, $m8, WORKER_STACK_BYTES
    put $WORKER5_BASE, $m8
    setzi $m11, SUPERVISOR_STACK
    add $m11, $m11, -8
    st32 $m2, $m11, $m15, 0
    setzi $m8, worker_init
    runall $m8, $m11, 0
    sync ZONE_LOCAL
    add $m11, $m11, 8
    setzi $m8, MUX_HOST
    put $INCOMING_MUX, $m8
    sync ZONE_HOST
    setzi $m8, MUX_NEUTRAL
    put $INCOMING_MUX, $m8
    br $m10

.align 8
.worker
/* Seeds the generator with (physical tile + 1) * 8 | context and warms it up. */
worker_init:
    ld32 $m0, $mvertex_base, $m15, 0
    get $m1, $WSR
    and $m1, $m1, 7
    add $m1, $m1, 1
    add $m0, $m0, 8
    or $m0, $m0, $m1
    st32 $m0, $mworker_base, $m15, 0
    ld32 $a0, $mworker_base, $m15, 0
    uput $PRNG_SEED, $a0
    rpt 16, (warm_end - warm) / 8 - 1
warm:
    { nop
      urand64 $a0:1 }
warm_end:
    exitz $m15

.section .text.runtime_complete, "ax", @progbits
.align 8
.globl runtime_complete
.type runtime_complete, @function
.supervisor
/* Tells the host, then stops the supervisor: an invalid program counter. */
runtime_complete:
    setzi $m8, 1
    setzi $m9, COMPLETION_WORD
    st32 $m8, $m9, $m15, 0
    br $m15

.section .text.runtime_barrier, "ax", @progbits
.align 8
.globl runtime_barrier
.type runtime_barrier, @function
.supervisor
/* On return no worker runs. Returns through m7. */
runtime_barrier:
    setzi $m8, worker_exit
    runall $m8, $m15, 0
    sync ZONE_LOCAL
    br $m7
.worker
worker_exit:
    exitz $m15

.section .text.runtime_sample, "ax", @progbits
.align 8
.globl runtime_sample
.type runtime_sample, @function
.supervisor
/* Stores the low half of the cycle counter at the address in m8. Worker 0 reads it. Returns through
 * m9; clobbers m7, m8. */
runtime_sample:
    setzi $m7, WORKER_STACKS
    st32 $m8, $m7, $m15, 0
    setzi $m8, worker_sample
    runall $m8, $m7, 0
    sync ZONE_LOCAL
    br $m9
.worker
worker_sample:
    get $m0, $WSR
    and $m0, $m0, 7
    brnz $m0, sample_done
    ld32 $m0, $mvertex_base, $m15, 0
    get $m1, $COUNT_L
    st32 $m1, $m0, $m15, 0
sample_done:
    exitz $m15
