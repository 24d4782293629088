#!/usr/bin/env bash
# Checks that the program compiles for macOS, and the clients for Windows: elsewhere.sh. Nothing is linked or run.
# Takes Debian's compiler with the sources of the standard library, as scripts/wasm.sh does, and Zig for the parts that are in C.
set -euo pipefail
cargo=${CARGO:-cargo}
rustc=/usr/bin/rustc
[ -f "$("$rustc" --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library/Cargo.toml" ] || scripts/install.sh rustc-web rust-web-src
export RUSTC=$rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS="-D warnings" CARGO_TARGET_DIR=target/elsewhere
unset RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
check=(python3 scripts/zig.py --check "$cargo" --locked --ignore-rust-version -Zbuild-std=std,panic_abort)
"${check[@]}" --target aarch64-apple-darwin --package hushdb
"${check[@]}" --target x86_64-pc-windows-gnu --package hush-client --package hush-mobile --features hush-client/http
