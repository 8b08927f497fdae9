#!/bin/sh
# The demonstration: one MLP of the SigLIP encoder on 1,472 tiles, checked, with its profile page.
set -eu
build=$1
out=$build/demo
mkdir -p "$out"
"$build/ipu-stack" e2e-test --workload siglip-mlp-benchmark --mlp-batch 1 \
    --package "$out/mlp.ipuexe" --profile-output "$out/mlp.ipuprof"
"$build/ipu-stack" profile-render "$out/mlp.ipuprof" -o "$out/mlp.html"
echo "profile page: $out/mlp.html"
