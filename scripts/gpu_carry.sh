#!/usr/bin/env bash
# Packs target/hushdb-gpu.tar.gz for a machine with a GPU but without cargo: the program, the benchmarks and the tests of the CUDA
# backend, stripped, each with its kernels inside; the script that runs them; and the end-to-end tests. Files in the archive have the
# same paths as here. Zig links the programs, for C libraries that are older than this machine's.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
out=target/gpu-carry
archive=target/hushdb-gpu.tar.gz
limit=$((60 << 20))
glibc=2.28 # the version of RHEL 8 and Debian 10
build=(python3 scripts/zig.py "$cargo" --release --locked)
rm -rf "$out" "$archive" && mkdir -p "$out"
# Tests of look-ups use the small parameter sets, which have no security.
"${build[@]}" -p hushdb -p hush-bench --features cuda,hushdb/insecure-presets
cp "${CARGO_TARGET_DIR:-target}"/x86_64-unknown-linux-gnu/release/{hushdb,hush-bench} "$out/"
tests=$("${build[@]}" -p hush-cuda --features driver,emulator --tests --message-format=json)
for name in primitives steps; do
    path=$(python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == sys.argv[1]:
        print(message["executable"])
' "$name" <<<"$tests")
    cp "$path" "$out/$name"
done
python3 scripts/glibc.py "$glibc" "$out"/*
strip "$out"/*
tar --create --exclude=__pycache__ --transform='s,^,hushdb-gpu/,' "$out" scripts/gpu_check tests/e2e | gzip -9 >"$archive.new"
size=$(stat --format=%s "$archive.new")
if ((size > limit)); then
    echo "error: $archive has $size bytes, more than the $limit that are carried: leave a test out" >&2
    exit 1
fi
mv "$archive.new" "$archive"
ls -l "$out" "$archive"
