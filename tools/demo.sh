#!/bin/sh
# The demonstration: one MLP of the SigLIP encoder on 1,472 tiles, checked, with its profile page.
set -eu
out=$1/demo
mkdir -p "$out"
echo "compiling the MLP of one SigLIP So400m/14 layer and running it on the device model ..."
exec "$1/ipu-stack" e2e-test --workload siglip-mlp-benchmark --mlp-batch 1 \
    --package "$out/mlp.ipuexe" --profile-output "$out/mlp.ipuprof" --page "$out/mlp.html"
