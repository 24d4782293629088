#!/usr/bin/env bash
# Runs every benchmark. Results are shares of bounds that the same run measures. For JSON: hush-bench WHAT --json.
set -euo pipefail
bench=$1
echo "== scan"
"$bench" scan
if grep -q amx_int8 /proc/cpuinfo; then
    echo "== scan without AMX"
    HUSH_CPU=avx512 "$bench" scan
fi
echo "== ntt"
"$bench" ntt
echo "== build"
"$bench" build
echo "== answer"
"$bench" answer
echo "== onion"
"$bench" onion
echo "== tfhe"
"$bench" tfhe --size 256M
echo "== packed"
"$bench" packed
echo "== colpack"
"$bench" colpack
