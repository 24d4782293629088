#!/usr/bin/env bash
# Makes a release of the last commit twice, in two folders of other names and depths, and compares all files: twice.sh MAKE.
# MACHINES names the machines of the release, as for `make dist`.
set -euo pipefail
make=$1 root=$(cd "$(dirname "$0")/../.." && pwd)
commit=$(git -C "$root" rev-parse HEAD) # before anything: commits may be added meanwhile
scratch=$(mktemp -d)
echo "dist: two releases in $scratch, which take an hour on two cores and 8 GB each" >&2
trap 'rm -rf "$scratch"' EXIT
for folder in "$scratch/one" "$scratch/a/second/folder"; do
    git clone --quiet --no-checkout "$root" "$folder" && git -C "$folder" checkout --quiet --detach "$commit"
    env -u CARGO_TARGET_DIR "$make" --no-print-directory -C "$folder" dist
    mv "$folder/target/dist" "$folder.dist" && rm -rf "$folder"
done
cd "$scratch"
(cd one.dist && sha256sum --quiet --check SHA256SUMS)
if ! diff --recursive one.dist a/second/folder.dist; then
    trap - EXIT
    echo "dist: the two releases differ; both are kept in $scratch" >&2
    exit 1
fi
echo "dist: $(find one.dist -maxdepth 1 -type f | wc -l) files, equal byte for byte"
