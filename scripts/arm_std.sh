#!/usr/bin/env bash
# Prints a sysroot for ARM of Debian's compiler, rustc-web: arm_std.sh TOOLS. Installs the compiler and, into TOOLS, the standard library
# of its version for arm64.
set -euo pipefail
tools=$1
target=aarch64-unknown-linux-gnu
rustc=/usr/bin/rustc
[ -x "$rustc" ] || scripts/install.sh rustc-web >&2

# The package of the standard library, unpacked: a system of its own for apt, as this machine's has no packages for arm64.
version=$(dpkg-query --show --showformat '${Version}' rustc-web)
std=$tools/arm-std-$version
if [ ! -d "$std/usr" ]; then
    apt=$(mktemp -d)
    trap 'rm -rf "$apt"' EXIT
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/std"
    touch "$apt/state/status"
    chmod -R a+rwX "$apt"
    options=(-qq -o "Dir::State=$apt/state" -o "Dir::State::status=$apt/state/status" -o "Dir::Cache=$apt/cache"
        -o APT::Architecture=arm64 -o APT::Architectures=arm64)
    apt-get "${options[@]}" update
    (cd "$apt" && apt-get "${options[@]}" download "libstd-rust-web-dev:arm64=$version")
    dpkg-deb -x "$apt"/libstd-rust-web-dev_*.deb "$apt/std"
    mkdir -p "$tools"
    rm -rf "$std"
    mv "$apt/std" "$std"
fi
sysroot=$std/sysroot
mkdir -p "$sysroot/lib/rustlib"
ln -sfn "$std/usr/lib/rustlib/$target" "$sysroot/lib/rustlib/"
host=$("$rustc" -vV | sed -n 's/^host: //p')
ln -sfn "$("$rustc" --print sysroot)/lib/rustlib/$host" "$sysroot/lib/rustlib/"
echo "$sysroot"
