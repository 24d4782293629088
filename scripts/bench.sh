#!/usr/bin/env bash
# Every benchmark in one run, as shares of bounds measured in it. JSON: hushdb bench WHAT --json.
set -euo pipefail
hushdb=$1
echo "== scan"
"$hushdb" bench scan
if grep -q amx_int8 /proc/cpuinfo; then
    echo "== scan without AMX"
    HUSH_CPU=avx512 "$hushdb" bench scan
fi
echo "== ntt"
"$hushdb" bench ntt
echo "== build"
"$hushdb" bench build
echo "== answer"
"$hushdb" bench answer
echo "== onion"
"$hushdb" bench onion
echo "== packed"
"$hushdb" bench packed
echo "== colpack"
"$hushdb" bench colpack
