#!/bin/sh
# run.sh BUILD [NAME...]: runs bench/NAME.sh (default: all) and puts their rows into bench/results.csv. A
# script prints rows `room,case,metric,value` (cycles, bytes, counts: deterministic) on stdout and
# speeds, which are informative, on stderr. Rows of scripts that did not run are kept.
set -eu
build=$(realpath "$1")
shift
cd "$(dirname "$0")"
[ $# -gt 0 ] || set -- $(ls ./*.sh | sed 's|^\./||; s|\.sh$||' | grep -v '^run$')
for name in "$@"; do
    echo "== $name ==" >&2
    IPU_STACK=$build/ipu-stack BUILD=$build sh "./$name.sh" >"results.rows.tmp.$$"
    sed -i "s/^/$name,/" "results.rows.tmp.$$"
    touch results.csv
    grep -v "^script,\|^$name," results.csv >"results.keep.tmp.$$" || true
    {
        echo "script,room,case,metric,value"
        cat "results.keep.tmp.$$" "results.rows.tmp.$$" | LC_ALL=C sort
    } >"results.new.tmp.$$"
    mv "results.new.tmp.$$" results.csv
    rm -f "results.keep.tmp.$$" "results.rows.tmp.$$"
done
git diff --stat -- results.csv >&2 || true
