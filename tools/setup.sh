#!/bin/sh
# Installs the Debian packages of tools/packages.txt (and of the lists named as arguments) that are
# missing. Uses sudo only when not root; does nothing, and needs no network, when all are there.
set -eu
cd "$(dirname "$0")"
missing=
for list in packages.txt "$@"; do
    while read -r name; do
        [ -z "$name" ] && continue
        state=$(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null || true)
        [ "$state" = installed ] || missing="$missing $name"
    done <"$list"
done
[ -z "$missing" ] && exit 0
echo "installing:$missing"
as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
export DEBIAN_FRONTEND=noninteractive
$as_root apt-get update -q
# shellcheck disable=SC2086
$as_root apt-get install -q -y --no-install-recommends $missing
