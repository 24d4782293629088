#!/usr/bin/env bash
# What a machine with a GPU but without cargo needs: the program, the benchmarks and the tests of the CUDA backend, stripped and
# packed, in target/gpu-carry. Each has the kernels within it.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
out=target/gpu-carry
limit=$((60 << 20))
glibc=2.34 # of RHEL 9 and Amazon Linux 2023
rm -rf "$out.new" && mkdir -p "$out.new"
"$cargo" build --release --locked -p hushdb -p hush-bench --features cuda
cp "${CARGO_TARGET_DIR:-target}"/release/{hushdb,hush-bench} "$out.new/"
tests=$("$cargo" test --release --locked -p hush-cuda --features driver,emulator --no-run --message-format=json)
for name in primitives steps; do
    path=$(python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == sys.argv[1]:
        print(message["executable"])
' "$name" <<<"$tests")
    cp "$path" "$out.new/$name"
done
python3 scripts/glibc.py "$glibc" "$out.new"/*
strip "$out.new"/*
gzip "$out.new"/*
size=$(du -sb "$out.new" | cut -f1)
if ((size > limit)); then
    echo "error: $out is $size bytes, more than the $limit that are carried: leave a test out" >&2
    exit 1
fi
rm -rf "$out" && mv "$out.new" "$out"
ls -l "$out"
