#!/usr/bin/env bash
# Installs the Debian packages that a target needs, as root or with sudo.
set -euo pipefail
root=()
[ "$(id -u)" = 0 ] || root=(sudo -n)
command -v apt-get >/dev/null || { echo "install these, then run it again: $*" >&2; exit 1; }
echo "installing $*" >&2
"${root[@]}" apt-get -qq update
"${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >/dev/null
