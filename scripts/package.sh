#!/usr/bin/env bash
# Packages every crate but the tests of decoders (fuzz), and builds each from its package alone: a package must contain every file that its build reads.
#
# Works in a copy without `publish = false`: cargo rejects a dependency on a package that is never published.
set -euo pipefail
cargo=${CARGO:-cargo}
root=$PWD
copy=$root/target/package/tree
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard --deduplicate | tar -cf - --null --ignore-failed-read --files-from - | tar -xf - -C "$copy"
sed -i '/^publish = false$/d' "$copy/Cargo.toml"
sed -i '/^publish\.workspace = true$/d' "$copy"/crates/*/Cargo.toml
cd "$copy"
# Nothing runs, so the cheapest profile is enough.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=0
"$cargo" package --workspace --exclude hush-fuzz --allow-dirty --locked --target-dir "$root/target/package/build"
