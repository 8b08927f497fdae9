#!/bin/sh
# The layering check: a room includes only rooms that stand before it in the dependency order; rooms
# in one group do not include each other; cli may include all. Prints each violation, exits 1.
cd "$(dirname "$0")/.." || exit 2
order="base:0 target:1 isa:2 numeric:3 kernel:4 graph:5 fabric:5 tile:5 exchange:5 place:5 model:6
reference:6 program:6 lower:7 plan:8 emit:9 package:10 compile:11 device:11 runtime:12 profile:13
cli:14"
rank() {
    for pair in $order; do
        [ "${pair%%:*}" = "$1" ] && echo "${pair##*:}" && return
    done
    echo none
}
bad=0
for file in src/*/*.[ch] src/*/*.def; do
    [ -f "$file" ] || continue
    room=${file#src/}
    room=${room%%/*}
    mine=$(rank "$room")
    for other in $(sed -n 's/^ *# *include "\([a-z]*\)\/.*/\1/p' "$file" | sort -u); do
        [ "$other" = "$room" ] && continue
        theirs=$(rank "$other")
        if [ "$theirs" = none ] || [ "$mine" = none ] || [ "$theirs" -ge "$mine" ]; then
            echo "$file: room $room must not include room $other"
            bad=1
        fi
    done
done
# The two independences: exchange and fabric share only base, isa and target; references call no kernel.
for pair in "exchange numeric" "exchange kernel" "fabric numeric" "fabric kernel" \
            "reference kernel" "reference tile" "numeric kernel" "plan device" "plan tile"; do
    room=${pair% *} other=${pair#* }
    if grep -ln "# *include \"$other/" src/"$room"/*.[ch] 2>/dev/null; then
        echo "room $room must not include room $other (independence)"
        bad=1
    fi
done
[ "$bad" = 0 ] && echo "layering: ok"
exit "$bad"
