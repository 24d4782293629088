#!/bin/sh
# Checks the formatting, lints and tests of the crates that differ from a commit (HEAD, or the first argument), for use between commits.
# `make test` also checks the crates that depend on the changed ones.
set -eu
base=${1:-HEAD}
cargo=${CARGO:-cargo}

$cargo fmt --all --check
python3 scripts/check_house.py

changed=$({ git diff --name-only "$base"; git ls-files --others --exclude-standard; } |
    sed -n 's|^crates/\([^/]*\)/.*|\1|p' | sort -u)
crates=
for crate in $changed; do
    [ -e "crates/$crate/Cargo.toml" ] && crates="$crates --package $crate"
done
if [ -z "$crates" ]; then
    echo "quick: no crate differs from $base"
    exit
fi
# shellcheck disable=SC2086 # a list of words
$cargo clippy --locked --all-targets --all-features $crates -- -D warnings
# shellcheck disable=SC2086
$cargo test --locked --all-features $crates
