#!/bin/sh
# Placement: MiniMalloc at capacity and below, a 27-layer encoder's requests on all tiles,
# exchange-aware maps of syn-h2. Deterministic figures on stdout, seconds on stderr.
set -eu
field() { sed -n "s/.*\"$1\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" | head -1; }
proof() { sed -n 's/.*"proof":{"tile":[0-9]*,"kind":"\([a-z-]*\)".*/\1/p'; }
data=../tests/data/minimalloc
begin=$(date +%s)
for name in A C E G I K; do
    file=$data/$name.1048576.csv
    out=$("$IPU_STACK" placement-solve "$file" --capacity 1048576 --tiles 0 --json) || true
    echo "place,minimalloc-$name,status,$(echo "$out" | field status)"
    echo "place,minimalloc-$name,steps,$(echo "$out" | field steps)"
    echo "minimalloc-$name: $(echo "$out" | field seconds) s" >&2
    [ "$name" = C ] && continue # its live peak is below its capacity
    out=$("$IPU_STACK" placement-solve "$file" --capacity 1048575 --tiles 0 --json) || true
    echo "place,minimalloc-$name-less-1,proof,$(echo "$out" | proof)"
    echo "minimalloc-$name less 1: $(echo "$out" | field seconds) s" >&2
done
echo "minimalloc in all: $(($(date +%s) - begin)) s" >&2
out=$("$IPU_STACK" placement-solve --example 1472 --threads 2 --tiles 0 --json)
for metric in status requests distinct_tiles constructive_tiles steps; do
    echo "place,encoder-27,$metric,$(echo "$out" | field $metric)"
done
echo "encoder-27: $(echo "$out" | field seconds) s on two threads" >&2
ninja -C "$BUILD" tests/test_place_exchange >/dev/null
"$BUILD/tests/test_place_exchange" | sed -n \
    's/^# seed \([0-9]*\): free \([0-9]*\), aware \([0-9]*\), arena order \([0-9]*\)$/place,syn-h2-\1,free_horizon,\2\
place,syn-h2-\1,aware_horizon,\3\
place,syn-h2-\1,arena_horizon,\4/p'
