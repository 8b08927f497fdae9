#!/bin/sh
# Cycles and bytes of the workloads, from the one-line reports of e2e-test.
set -eu
run() {
    case=$1
    shift
    "$IPU_STACK" e2e-test "$@" --no-profile --json | python3 -c '
import json, sys
case = sys.argv[1]
r = json.loads(sys.stdin.read())
for key in ("cycles_predicted", "cycles_measured", "exchange_cycles", "active_tiles",
            "peak_tile_bytes", "row_bytes_max", "package_bytes"):
    print(f"e2e,{case},{key},{r[key]}")
print("%s: compile %.2f s, run %.2f s" % (case, r["compile_seconds"], r["run_seconds"]), file=sys.stderr)
' "$case"
}
for tiles in 1 7 64 1472; do
    run "mlp-smoke-$tiles" --workload mlp-smoke --tiles $tiles
done
run gemm-smoke-64 --workload gemm-smoke --tiles 64
run batched-gemm-smoke-64 --workload batched-gemm-smoke --tiles 64
run siglip-mlp-b1 --workload siglip-mlp-benchmark --mlp-batch 1
run siglip-mlp-b1-f8 --workload siglip-mlp-benchmark --mlp-batch 1 --fp8-scale -4
run siglip-attention-b1 --workload siglip-attention-benchmark --attention-batch 1
run siglip-vit-1-layer-b1-f8 --workload siglip-vit-benchmark --fuse-qkv --fp8-scale -4 \
    --diagnostic-atol 0.2 --diagnostic-rtol 0.05
