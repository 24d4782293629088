#!/usr/bin/env bash
# Tests the CPU kernels for ARM on a machine of another architecture, under qemu. With `all`: also the unit tests of the crates
# below the server, and a table that is built, served and looked up in. Times here say nothing of an ARM machine.
# Takes Debian's compiler, as scripts/wasm.sh does, with the standard library of the same version for arm64.
set -euo pipefail
what=${1:-kernels} tools=$2
target=aarch64-unknown-linux-gnu
cargo=${CARGO:-cargo} rustc=/usr/bin/rustc
packages=(rustc-web qemu-user gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross)

can_build() { [ -x "$rustc" ] && command -v aarch64-linux-gnu-g++ qemu-aarch64 >/dev/null; }
can_build || scripts/install.sh "${packages[@]}"

sysroot=$(scripts/arm_std.sh "$tools")
run=(qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu)
export RUSTC=$rustc RUSTFLAGS="--sysroot $sysroot" CARGO_TARGET_DIR=target/arm
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="${run[*]}"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
export AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
unset RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
flags=(--locked --ignore-rust-version --target "$target")

if [ "$what" = kernels ]; then
    exec "$cargo" test "${flags[@]}" --package hush-cpu --lib --test conformance --test rlwe_fold
fi
"$cargo" test "${flags[@]}" --lib --tests -p hush-math -p hush-he -p hush-ops -p hush-cpu -p hush-protocol -p hush-client
"$cargo" build "${flags[@]}" --workspace
python3 scripts/arm_lookup.py "${run[@]}" "$CARGO_TARGET_DIR/$target/debug/hushdb"
