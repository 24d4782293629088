#!/bin/sh
# run.sh [ARGUMENT..]: builds the peers for this CPU, and measures them beside HushDB: `hush-peers ARGUMENT..`. `make peers` runs it.
set -eu
cd "$(dirname "$0")"
cargo="${CARGO:-cargo}"
features=""
if grep -q -m 1 avx512f /proc/cpuinfo 2>/dev/null; then
    features="--features avx512"
fi
# shellcheck disable=SC2086 # no feature is no argument
"$cargo" build --release --locked $features >&2
(cd chalamet && "$cargo" build --release --locked >&2)
exec "${CARGO_TARGET_DIR:-../../target/peers}/release/hush-peers" "$@"
