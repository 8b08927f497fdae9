#!/bin/sh
# The tile model alone: cycles, slots and the share of fused slots of kernels in device/, instructions per
# worker slot (callgrind, AVX2 code, start-up cancelled), and speeds on stderr.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export OMP_WAIT_POLICY=passive # without it the command starts itself again, out of sight of valgrind
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
python3 - "$data" <<'PY'
import random, struct, sys
random.seed(1)
def halves(name, n):
    with open(f"{sys.argv[1]}/{name}", "wb") as f:
        f.write(b"".join(struct.pack("<e", random.gauss(0, 1)) for _ in range(n)))
def f8(name, n): # F143 of moderate size, no NaN
    with open(f"{sys.argv[1]}/{name}", "wb") as f:
        f.write(bytes(random.randrange(0x10, 0x44) | random.choice((0, 0x80)) for _ in range(n)))
halves("left16", 244 * 128); halves("right16", 128 * 64); halves("x", 16384)
f8("left8", 244 * 256); f8("right8", 256 * 64)
PY
run() { "$IPU_STACK" tile-run -I "$here/../device" -s --json "$@"; }
instructions() {
    n=$1; shift
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$IPU_STACK" tile-run -I "$here/../device" -s \
        --json --simd avx2 --repeat "$n" "$@" 2>&1 >/dev/null | sed -n 's/.*Collected : //p'
}
measure() {
    case=$1; shift
    run "$@" --repeat 1000 >"$data/report" # enough that the first run, which decodes, does not show
    few=0 many=0
    if command -v valgrind >/dev/null; then few=$(instructions 1 "$@") many=$(instructions 4 "$@"); fi
    python3 - "$case" "$few" "$many" "$data/report" <<'PY'
import json, sys
case, few, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
r = json.load(open(sys.argv[4]))
assert r["stop"] == "done", r["fault"]
for key in ("cycles", "worker_slots", "fused_slots", "loop_slots"):
    print(f"tile,{case},{key},{r[key]}")
if many:
    print(f"tile,{case},instructions_per_slot_avx2,{round((many - few) / 3 / r['worker_slots'])}")
print("%s: %.1f million worker slots a second, %.1f %% fused, %.1f %% in loops"
      % (case, r["million_slots_per_second"], 100 * r["fused_share"], 100 * r["loop_share"]), file=sys.stderr)
PY
}
d=$here/../device
for rows in 57 244; do
    measure "gemm-f16-$rows" "$d/gemm.S" -e gemm_f16_il --set m2=0x90000 --set m3=0xa8000 --set m4=0x80000 \
        --set m5=$rows --set m6=8 --set m7=4 --data 0xa8000="$data/left16" --data 0x80000="$data/right16"
    measure "gemm-f8-$rows" "$d/gemm.S" -e gemm_f8_il --set m2=0x90000 --set m3=0xa8000 --set m4=0x80000 \
        --set m5=$rows --set m6=8 --set m7=4 --set m8=0x3c --set m9=3 --data 0xa8000="$data/left8" --data 0x80000="$data/right8"
done
measure gelu-16384 "$d/gelu_f16.S" -e gelu_f16 --set m2=0x90000 --set m3=0xa8000 --set m4=8192 --data 0xa8000="$data/x"
measure softmax-12x720 "$d/softmax_f16.S" -e softmax_f16 --set m2=0x90000 --set m3=0x60000 --set m4=0xa8000 \
    --set m5=12 --set m6=45 --set m7=0 --set m8=0xb000b000 --data 0xa8000="$data/x"
measure norm-12x1152 "$d/norm_f16.S" -e norm_f16 --set m2=0x60000 --set m3=0xa8000 --set m4=0x90000 --set m5=0x91000 \
    --set m6=12 --set m7=72 --set m8=2304 --set m9=32 --data 0xa8000="$data/x" --data 0x90000="$data/x"
