#!/bin/sh
# Exchange: horizons, bounds, bytes and fingerprints of the synthetic kinds (seeds 1 to 3) and of the captured
# phases, one thread, verified by the fabric. Figures on stdout, seconds on stderr. SEEDS and KINDS narrow it.
set -eu
data=../tests/data/phases
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rows() {
    case=$1 file=$2
    shift 2
    "$IPU_STACK" exchange-schedule-bench "$file" --json "$@" | python3 -c '
import json, sys
case = sys.argv[1]
phases = json.load(sys.stdin)["phases"]
for p in phases:
    name = case if len(phases) == 1 else "%s-%d" % (case, p["phase"])
    for key in ("horizon", "bound", "endpoint_bound", "ratio", "row_bytes_max", "row_bytes_total", "width",
                "priority", "verified", "fingerprint"):
        v = p[key]
        print("exchange,%s,%s,%s" % (name, key, "%.4f" % v if key == "ratio" else str(v).lower() if key == "verified" else v))
    print("%s: schedule %.2f s, check %.2f s, fabric %.2f s" %
          (name, p["seconds"], p["check_seconds"], p["verify_seconds"]), file=sys.stderr)
' "$case"
}
# Of the Pareto set, the shortest schedule whose largest row has at most so many bytes.
compact() {
    case=$1 file=$2 bytes=$3
    "$IPU_STACK" exchange-schedule-bench "$file" --pareto 8 --json | python3 -c '
import json, sys
case, limit = sys.argv[1], int(sys.argv[2])
points = json.load(sys.stdin)["phases"]
p = min((p for p in points if p["row_bytes_max"] <= limit), key=lambda p: p["horizon"])
for key in ("horizon", "ratio", "row_bytes_max", "row_bytes_total", "verified", "fingerprint"):
    v = p[key]
    print("exchange,%s,%s,%s" % (case, key, "%.4f" % v if key == "ratio" else str(v).lower() if key == "verified" else v))
print("%s: Pareto set %.2f s" % (case, points[-1]["seconds"]), file=sys.stderr)
' "$case" "$bytes"
}
for name in mlp-b1 mlp-256 attention-b1; do
    rows "$name" "$data/$name.json.zst"
done
for kind in ${KINDS:-syn-100k syn-m0 syn-m3 syn-a syn-a-gather syn-a2w syn-h2 syn-v34 syn-v34x syn-1m syn-1mx}; do
    for seed in ${SEEDS:-1 2 3}; do
        "$IPU_STACK" exchange-problem --kind "$kind" --seed "$seed" -o "$work/p.exch" >&2
        rows "$kind-seed$seed" "$work/p.exch"
        [ "$kind" != syn-v34 ] || compact "$kind-compact-seed$seed" "$work/p.exch" 5000
        [ "$kind" = syn-h2 ] || continue
        "$IPU_STACK" exchange-problem --kind "$kind" --seed "$seed" --addresses hostile -o "$work/p.exch" >&2
        rows "$kind-hostile-seed$seed" "$work/p.exch"
    done
done
