#!/usr/bin/env bash
# Builds the client, without its transport, for browsers (wasm32-unknown-unknown). Arguments are passed to `cargo build` instead.
# Uses rustup's target if it is installed; otherwise Debian's compiler and the sources of the standard library, which apt-get installs
# if they are missing.
set -euo pipefail
cargo=${CARGO:-cargo}
target=wasm32-unknown-unknown
# This build has its own target directory, because its flags, and perhaps its compiler, differ from all other builds.
# Nothing runs, so the cheapest profile is enough.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0
[ $# -gt 0 ] || set -- --package hush-client
build=("$cargo" build --locked "$@" --target "$target" --target-dir target/wasm)

library=$("${RUSTC:-rustc}" --print target-libdir --target "$target" 2>/dev/null || true)
if compgen -G "$library/libstd-*.rlib" >/dev/null; then
    exec "${build[@]}"
fi

rustc=/usr/bin/rustc
packages=(rustc-web rust-web-src lld)
can_build_std() {
    [ -x "$rustc" ] && [ -f "$("$rustc" --print sysroot)/lib/rustlib/src/rust/library/Cargo.toml" ] && command -v wasm-ld >/dev/null
}
if ! can_build_std && ! { "${0%/*}/install.sh" "${packages[@]}" && can_build_std; }; then
    echo "wasm: no standard library for $target here. Install one: 'rustup target add $target', or on Debian" >&2
    echo "'apt-get install ${packages[*]}'; then run it again." >&2
    exit 1
fi
# Debian chooses this compiler's version, so the crates' minimum is ignored. Unstable options build the standard library.
export RUSTC=$rustc RUSTC_BOOTSTRAP=1 RUSTFLAGS="${RUSTFLAGS:-} -C linker-flavor=wasm-ld" CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld
unset RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
exec "${build[@]}" -Zbuild-std=std,panic_abort --ignore-rust-version
