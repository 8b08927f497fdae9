#!/bin/sh
# Cycles, phases, transfers, row bytes and peak bytes of the workloads, from the reports of e2e-test.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
run() {
    case=$1
    shift
    "$IPU_STACK" e2e-test "$@" --no-profile --json | python3 -c '
import json, sys
case = sys.argv[1]
r = json.loads(sys.stdin.read())
for key in ("cycles_predicted", "cycles_measured", "exchange_cycles", "active_tiles",
            "peak_tile_bytes", "row_bytes_max", "package_bytes", "input_bytes"):
    print(f"e2e,{case},{key},{r[key]}")
if r["cycles_predicted_inputs_once"] is not None:
    once = int(r["cycles_predicted_inputs_once"])
    print(f"e2e,{case},cycles_predicted_inputs_once,{once}")
phases = r["phases"]
rows = {"phases": len(phases)}
for key in ("transfers", "messages", "words", "horizon", "bound"):
    rows[key] = sum(p[key] for p in phases)
for key in ("messages", "row_bytes_max"):
    rows["phase_" + key.replace("_max", "") + "_max"] = max((p[key] for p in phases), default=0)
for key, value in rows.items():
    print(f"e2e,{case},{key},{value}")
print("%s: compile %.2f s, run %.2f s" % (case, r["compile_seconds"], r["run_seconds"]), file=sys.stderr)
' "$case"
}
for tiles in 1 7 64 1472; do
    run "mlp-smoke-$tiles" --workload mlp-smoke --tiles $tiles
    run "attention-smoke-$tiles" --workload attention-smoke --tiles $tiles
done
run gemm-smoke-64 --workload gemm-smoke --tiles 64
run batched-gemm-smoke-64 --workload batched-gemm-smoke --tiles 64
cat >"$folder/transposed" <<'END'
graph transposed
%a = input [6, 72, 40] fill normal 1 0
%b = parameter [6, 48, 72] fill normal 0.1 0
%c = gemm %a, %b transpose_left transpose_right : [6, 40, 48]
output %c atol 0.01 rtol 0.002
END
for tiles in 1 7 64 1472; do
    run "transposed-gemm-$tiles" --graph "$folder/transposed" --tiles $tiles
done
run gemm-benchmark-1 --workload gemm-benchmark --tiles 1 --benchmark-rows 1024
run gemm-benchmark-7 --workload gemm-benchmark --tiles 7 --benchmark-rows 8192
run gemm-benchmark-64 --workload gemm-benchmark --tiles 64 --benchmark-rows 65536
run gemm-benchmark-1472 --workload gemm-benchmark
run siglip-mlp-b1 --workload siglip-mlp-benchmark --mlp-batch 1
run siglip-mlp-b1-f8 --workload siglip-mlp-benchmark --mlp-batch 1 --fp8-scale -4
attention="--workload siglip-attention-benchmark --attention-batch 1"
run siglip-attention-b1 $attention
for strategy in key-split materialised streaming; do
    run "siglip-attention-b1-$strategy" $attention --attention-strategy $strategy
done
run siglip-attention-b1-f8 $attention --fp8-scale -4
f8="--fp8-scale -4 --diagnostic-atol 0.2 --diagnostic-rtol 0.05"
for batch in 1 2; do
    small="--workload siglip-vit-benchmark --vit-small --tiles 64 --vit-batch $batch"
    run "vit-small-b$batch" $small
    run "vit-small-b$batch-f8" $small $f8
    run "vit-small-b$batch-fused" $small --fuse-qkv
    run "vit-small-b$batch-fused-f8" $small --fuse-qkv $f8
done
layer="--workload siglip-vit-benchmark --fuse-qkv"
run siglip-vit-1-layer-b1-f8 $layer $f8
run siglip-vit-1-layer-b2-f8 $layer $f8 --vit-batch 2
run siglip-vit-1-layer-b1 $layer
