#!/bin/sh
# check.sh BUILD SUITE...: runs the meson suites and prints the totals in the last line.
set -u
build=$1
shift
suites=
for s in "$@"; do suites="$suites --suite $s"; done
ninja -C "$build" >"$build/build.log" 2>&1 || { tail -n 40 "$build/build.log"; echo "0 passed, 1 failed"; exit 1; }
log=$build/meson-logs/testlog.junit.xml
rm -f "$log"
# Address-space layout and allocation patterns must not matter: meson sets MALLOC_PERTURB_.
# shellcheck disable=SC2086
meson test -C "$build" $suites --print-errorlogs --no-stdsplit >"$build/check.log" 2>&1
status=$?
grep -v '^ninja: ' "$build/check.log" | tail -n 200
if [ ! -f "$log" ]; then
    echo "0 passed, 1 failed"
    exit 1
fi
cp "$log" "$build/check-$(echo "$*" | tr ' ' '-').junit.xml"
tools/tally.py "$log" || status=1
exit "$status"
