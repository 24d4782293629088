#!/usr/bin/env bash
# The page that `hushdb serve` shows: target/page, of clients/page and the npm package in target/npm. One that has not changed is left
# as it is, so that the program is not compiled anew.
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
