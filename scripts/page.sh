#!/usr/bin/env bash
# Builds the page of `hushdb serve` in target/page from clients/page and the npm package in target/npm. An unchanged page keeps its
# times, so that the program is not compiled again.
set -euo pipefail
new=target/page-new out=target/page
rm -rf "$new"
mkdir -p "$new"
cp clients/page/static/* "$new"
cp -r target/npm "$new/client"
rm "$new"/client/{*.tgz,*.md,LICENSE,package.json,node.js,inline.js,inline-node.js,wasm/inline.js}
target/npm-tools/node_modules/.bin/tsc -p clients/page
find "$new" -name '*.d.ts' -delete
if ! diff -rq "$new" "$out" >/dev/null 2>&1; then
    rm -rf "$out"
    mv "$new" "$out"
fi
echo "page: $out, $(du -sb "$out" | cut -f1) bytes"
