#!/usr/bin/env bash
# Runs every benchmark. Results are shares of bounds that the same run measures. For JSON: hush-bench WHAT --json.
set -euo pipefail
bench=$1
say() {
    echo "== $*"
    "$bench" "$@"
}
say scan
if grep -q amx_int8 /proc/cpuinfo; then
    HUSH_CPU=avx512 say scan
fi
say ntt
say hint
say build --protocol simple,frodo --filter band256,fuse3,fuse4
say answer --protocol simple,frodo --filter band256 --http
say answer --protocol onion --preset ONION_M31 --value-bytes 22528 --batch 1,8,32 --steps
say answer --protocol onion --preset ONION_S --value-bytes 8192 --batch 1,8,32 --steps
say answer --protocol tfhe --form symbols --size 256M --value-bytes 256 --batch 1,8 --steps
say answer --protocol tfhe --form evaluation --size 256M --value-bytes 256 --batch 1,8 --steps
say answer --protocol hybrid,exppack-s,double-pack --value-bytes 4096 --batch 1,8,32 --steps
say answer --protocol colpack,colpack-s --value-bytes 4096 --batch 1,8,32 --steps
